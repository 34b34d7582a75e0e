"""Arrays of the Dask engine that are not computed yet: what solvers do with them is recorded."""

import weakref
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from halfseen.array_files import ArrayFile
from halfseen.arrays import Array
from halfseen.engines.base import RowDraws, Side
from halfseen.engines.dask_tasks import GroupFile, numpy_function
from halfseen.observed import Observed

if TYPE_CHECKING:
    from halfseen.engines.dask import DaskEngine


class DaskCells:
    """The observed cells, in files that the workers read."""

    def __init__(self, engine: "DaskEngine", observed: Observed, groups: list[GroupFile]) -> None:
        self.observed, self.groups, self._engine = observed, groups, engine
        shards = [shard for group in groups for shard in group.shards]
        self.row_shards = tuple(rows for rows, _, _ in shards)
        self.cell_shards = tuple(cells for _, _, cells in shards)

    def _array(self, name: str, dtype: Any) -> "Deferred":
        return self._engine.remote(Node("cells", (self, name)), [(self, np.ones(1, dtype))])[0]

    @property
    def y(self) -> "Deferred":
        return self._array("y", self.observed.values.dtype)

    @property
    def weights(self) -> "Deferred | None":
        weights = self.observed.weights
        return None if weights is None else self._array("weights", weights.dtype)

    @property
    def is_first_at_cell(self) -> "Deferred | None":
        return self._array("is_first_at_cell", self.observed.dtype) if self.groups[0].has_repeated else None


class Deferred:
    """An array of the cluster, or one of the client that follows from sums over all rows: not computed yet.

    Operations are recorded. `along` says what it has an entry of along its first axis: `Side.ROWS`, the rows of the
    matrix; cells that are placed; or None, if it is an array of the client. Rows and cells allow only operations that
    treat them independently. `meta` is an array of the same kind with one entry.
    """

    __array_ufunc__ = None  # so that NumPy's arrays leave arithmetic to this class

    def __init__(self, engine: "DaskEngine", along: Any, node: "Node", place: int, meta: Array) -> None:
        self.engine, self.along, self.node, self.place, self.meta = engine, along, node, place, meta
        node.made.append(weakref.ref(self))

    @property
    def dtype(self) -> Any:
        return self.meta.dtype

    @property
    def ndim(self) -> int:
        return int(self.meta.ndim)

    @property
    def device(self) -> str:
        return "cpu"

    @property
    def shape(self) -> tuple[int, ...]:
        if self.along is None:
            return tuple(self.meta.shape)
        length = self.along.observed.nnz if isinstance(self.along, DaskCells) else self.engine.n_rows
        return (length, *self.meta.shape[1:])

    def __len__(self) -> int:
        return self.shape[0]

    def __array_namespace__(self, api_version: str | None = None) -> Any:
        return Functions(self.engine)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.asarray(self.engine.to_numpy(self), dtype)

    def __bool__(self) -> bool:
        raise NotImplementedError("the truth of an array of the cluster: it is not computed yet")

    def __eq__(self, other: object) -> Any:
        raise NotImplementedError("== and != of arrays of the cluster")

    __ne__ = __eq__
    __hash__ = object.__hash__

    def __float__(self) -> float:
        return float(self.engine.to_numpy(self))

    def astype(self, dtype: Any, copy: bool = True) -> "Deferred":
        return self.engine.record("astype", self, dtype, copy=copy)

    def any(self, axis: int) -> "Deferred":
        return self.engine.record("any", self, axis=axis)

    def __neg__(self) -> "Deferred":
        return self.engine.record("negative", self)

    def __invert__(self) -> "Deferred":
        return self.engine.record("invert", self)

    def __getitem__(self, index: Any) -> "Deferred":
        return self.engine.record("getitem", self, index)


def _binary(name: str, reflected: bool = False) -> Callable[[Any, Any], Any]:
    def operation(self: Any, other: Any) -> Any:
        return self.engine.record(name, *((other, self) if reflected else (self, other)))

    return operation


for _name, _function in {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "pow": "power", "and": "bitwise_and",
    "or": "bitwise_or",
}.items():  # fmt: skip
    setattr(Deferred, f"__{_name}__", _binary(_function))
    setattr(Deferred, f"__r{_name}__", _binary(_function, reflected=True))
for _name, _function in {
    "gt": "greater", "ge": "greater_equal", "lt": "less", "le": "less_equal", "matmul": "matmul",
}.items():  # fmt: skip
    setattr(Deferred, f"__{_name}__", _binary(_function))


class Functions:
    """The functions of NumPy, recorded where an argument is `Deferred`."""

    def __init__(self, engine: "DaskEngine") -> None:
        self._engine = engine

    def __getattr__(self, name: str) -> Any:
        found = numpy_function(name) if name == "astype" else getattr(np, name)
        if isinstance(found, type) or not callable(found) or name == "finfo":
            return found
        return partial(self._engine.record, name)

    def asarray(self, array: Any, dtype: Any = None, device: Any = None) -> Any:
        return array if isinstance(array, Deferred) else np.asarray(array, dtype)


class Bundle:
    """Arrays that a program kept of all groups: with the workers, or in files."""

    def __init__(self, nodes: Sequence[tuple["Node", int]], futures: Sequence[Any]) -> None:
        self.futures: Sequence[Any] | None = futures
        self.files: list[dict[int, ArrayFile]] = []
        """For each group the files of the arrays, by their places, once they are written."""
        self._nodes = [(weakref.ref(node), of_node) for node, of_node in nodes]
        for place, (node, of_node) in enumerate(nodes):
            node.kept[of_node] = self, place

    def places(self) -> list[int]:
        """Where there are arrays that somebody still has."""
        return [
            place
            for place, (ref, of_node) in enumerate(self._nodes)
            if (node := ref()) is not None and node.array(of_node) is not None
        ]


@dataclass(eq=False)
class Node:
    """A recorded operation."""

    name: str
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    made: list[Any] = field(default_factory=list)
    """Weak references to what it gave."""
    kept: dict[int, tuple[Bundle, int]] = field(default_factory=dict)
    """Where its arrays of rows and cells are."""
    values: dict[int, Any] = field(default_factory=dict)
    """Its arrays of the client."""

    def array(self, place: int) -> Deferred | None:
        """One of its arrays, if somebody still has it."""
        found = (one for ref in self.made if (one := ref()) is not None and one.place == place)
        return next(found, None)

    def forget(self) -> None:
        """Forget what it was made of, now that it is done."""
        self.args, self.kwargs = (), {}


class DeferredDraws:
    """As `RowDraws`: what it draws first is for rows, and is drawn by the workers."""

    def __init__(self, engine: "DaskEngine", seed: int) -> None:
        self._engine, self._seed, self._drawn = engine, seed, 0

    def __getattr__(self, kind: str) -> Any:
        def draw(*args: Any, size: Any = None) -> Any:
            *args, size = args if size is None else (*args, size)  # type: ignore[assignment]
            stream, self._drawn = self._drawn, self._drawn + 1
            if stream:
                return getattr(RowDraws(self._seed, stream=stream), kind)(*args, size=size)
            node = Node("draw", (kind, self._seed, stream, size[1], tuple(args)))
            return self._engine.remote(node, [(Side.ROWS, np.ones((1, size[1])))])[0]

        return draw


def flat(values: Iterable[Any]) -> list[Any]:
    return [one for value in values for one in (flat(value) if isinstance(value, list | tuple) else [value])]


def meta_of(value: Any) -> Any:
    if isinstance(value, Deferred):
        return value.meta
    return type(value)(map(meta_of, value)) if type(value) in (list, tuple) else value


def is_row_by_row(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether an operation treats the entries along the first axis independently, to the last bit."""
    if name in ("sum", "mean", "max", "min", "any", "all"):
        return kwargs.get("axis") in (1, -1)  # what is left of one axis has none, and is refused
    if name == "concat":
        return kwargs.get("axis") in (1, -1) and all(np.ndim(meta_of(one)) > 1 for one in args[0])
    if name == "getitem":
        return type(args[1]) is tuple and args[1][0] == slice(None)
    function = getattr(np, name, None)
    is_of_entries = isinstance(function, np.ufunc) and function.signature is None  # unlike matmul
    return is_of_entries or name in ("astype", "clip", "full_like", "ones_like", "where", "zeros_like")
