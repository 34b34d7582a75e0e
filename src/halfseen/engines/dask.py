"""The Dask engine: rows in shards over the workers of a cluster, columns on the client.

Shards are ranges of rows that the data alone decide (`threads.shard_blocks`); a group is 1, 2, 4, ... neighbouring
shards, and a task of every phase. Arrays with a row for each row of the matrix, or an entry for each cell, are
`Deferred`: what solvers do with them is recorded, and done when a sum over all rows is asked for, in one task for each
group. The sums of groups are added by a tree that continues the one of `threads.tree_sum` inside a group: so the bits
are those of the CPU engine, whatever the workers. Everything with a row for each column is a NumPy array of the client.

Tasks are pure. They read cells, and the factor of the columns, from files in a folder that all workers see, and keep
cells in memory as far as `cell_cache` has room. Nothing is scattered, no task is bound to a worker: what a lost worker had
is computed again from the last state in files. To keep that short, and the graph small, `cut` writes all arrays of
rows to files from time to time, and tasks go on from there.
"""

import operator
import shutil
import tempfile
import weakref
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Lock
from time import perf_counter
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from halfseen.arrays import Array
from halfseen.engines.base import Engine, RowDraws, Rule, Side, Sums
from halfseen.engines.cpu import CpuCells, CpuEngine
from halfseen.engines.threads import Block, shard_blocks, tree_sum
from halfseen.errors import EngineError
from halfseen.io.array_files import ArrayFile, mapped_file, write_array
from halfseen.observed import Observed

#: Groups per thread of the workers, about: more balance better, fewer cost less.
GROUPS_PER_THREAD = 4
#: Shards of a group at most, so that a task needs little memory.
SHARDS_PER_GROUP = 8
#: Arrays of the client that are larger are read from a file by the tasks, not sent with them.
LARGEST_SENT = 1 << 12
#: Seconds between cuts at least; and the largest share of the time that they may take.
SECONDS_PER_CUT, SHARE_OF_CUTS = 10.0, 0.02
#: Bytes of the columns' factors in files, since the last cut, at most.
BYTES_PER_CUT = 4 << 30
#: Share of a worker's memory that may hold cells between tasks.
SHARE_OF_CACHE = 0.3


# ---------------------------------------------------------------------------------------------------------------------
# on the workers


class GroupFile(NamedTuple):
    """The cells of a group of shards, in the files of the whole matrix."""

    number: int
    shards: tuple[Block, ...]
    indptr: ArrayFile
    indices: ArrayFile
    values: ArrayFile
    weights: ArrayFile | None
    n_columns: int
    unseen: str
    has_repeated: bool
    """Whether some cell of the whole matrix has several values."""

    @property
    def rows(self) -> slice:
        return slice(self.shards[0][0].start, self.shards[-1][0].stop)

    @property
    def cells(self) -> slice:
        return slice(self.shards[0][2].start, self.shards[-1][2].stop)

    def load(self) -> CpuCells:
        """The cells, from the cache or from the files."""
        return cell_cache.get(self)

    def read(self) -> CpuCells:
        rows, cells = self.rows, self.cells
        indptr = self.indptr.read(slice(rows.start, rows.stop + 1))
        observed = Observed(
            indptr - indptr[0],
            self.indices.read(cells),
            self.values.read(cells),
            (rows.stop - rows.start, self.n_columns),
            None if self.weights is None else self.weights.read(cells),
            self.unseen,
        )

        def moved(part: slice, by: int) -> slice:
            return slice(part.start - by, part.stop - by)

        blocks = [(moved(r, rows.start), moved(p, rows.start), moved(c, cells.start)) for r, p, c in self.shards]
        placed = CpuCells(observed, blocks)
        if self.has_repeated and self.unseen == "zero" and placed.is_first_at_cell is None:
            placed.is_first_at_cell = np.ones_like(observed.values)  # so that all groups sum in the same way
        return placed


class CellCache:
    """Cells of groups that a worker keeps between tasks; the ones that were not used for longest go first."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._kept: OrderedDict[Any, CpuCells] = OrderedDict()

    def get(self, group: GroupFile) -> CpuCells:
        key = group.indices, group.values, group.cells.start, group.cells.stop
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        cells = group.read()
        room = self._room()
        with self._lock:
            self._kept[key] = cells
            while len(self._kept) > 1 and sum(map(self._bytes, self._kept.values())) > room:
                self._kept.popitem(last=False)
            if self._bytes(cells) > room:
                self._kept.pop(key, None)
        return cells

    def clear(self) -> None:
        with self._lock:
            self._kept.clear()

    @staticmethod
    def _bytes(cells: CpuCells) -> int:
        """About what the cells of a group take, with both their orders."""
        return 32 * cells.y.size

    @staticmethod
    def _room() -> float:
        from distributed import get_worker

        try:
            limit = get_worker().memory_manager.memory_limit
        except (ValueError, AttributeError):  # not on a worker
            limit = None
        return np.inf if not limit else SHARE_OF_CACHE * limit


cell_cache = CellCache()
_array_cache: OrderedDict[ArrayFile, Array] = OrderedDict()
_array_lock = Lock()


def read_array(file: ArrayFile) -> Array:
    """An array of the columns; the last ones are kept, because every group needs them."""
    with _array_lock:
        if file not in _array_cache:
            _array_cache[file] = file.read()
            while len(_array_cache) > 4:
                _array_cache.popitem(last=False)
        _array_cache.move_to_end(file)
        return _array_cache[file]


class Slot(NamedTuple):
    """An array that an earlier step of the same program made."""

    step: int
    place: int


class Kept(NamedTuple):
    """An array that an earlier program kept: number of the bundle among the inputs, and place in it."""

    bundle: int
    place: int


class RowsOf(NamedTuple):
    """The rows of a group in an array of the client."""

    file: ArrayFile
    of_cells: bool = False


class WholeOf(NamedTuple):
    """An array of the client."""

    file: ArrayFile


class Step(NamedTuple):
    """An operation of a program: its name in `OPERATIONS`, and its arguments."""

    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


class Program(NamedTuple):
    """What a phase does with every group of shards."""

    steps: tuple[Step, ...]
    kept: tuple[Slot, ...]
    """Arrays that stay with the workers."""
    summed: tuple[Slot, ...]
    """Sums over the rows of the group, to be added to those of others."""


def run_program(group: GroupFile, program: Program, *bundles: Any) -> tuple[list[Any], list[Any]]:
    """What the program keeps of a group, and its sums. Bundles are lists of arrays, or of the files that hold them."""
    cells, results = group.load(), list[tuple[Any, ...]]()

    def resolve(value: Any) -> Any:
        if isinstance(value, Slot):
            return results[value.step][value.place]
        if isinstance(value, Kept):
            array = bundles[value.bundle][value.place]
            return array.read() if isinstance(array, ArrayFile) else array
        if isinstance(value, RowsOf):
            return value.file.read(group.cells if value.of_cells else group.rows)
        if isinstance(value, WholeOf):
            return read_array(value.file)
        return tuple(map(resolve, value)) if type(value) is tuple else value

    with CpuEngine(1, has_part=True) as engine, np.errstate(all="ignore"):
        for step in program.steps:
            kwargs = {name: resolve(value) for name, value in step.kwargs.items()}
            work = Work(engine, group, cells)
            results.append(OPERATIONS[step.name](work, *map(resolve, step.args), **kwargs))
    return [results[step][place] for step, place in program.kept], [
        results[step][place] for step, place in program.summed
    ]


class Work(NamedTuple):
    """What operations have at hand."""

    engine: CpuEngine
    group: GroupFile
    cells: CpuCells


def _sweep(work: Work, rule: Rule, params: Any, W: Any, H: Any, sides: Any, n_levels: int) -> tuple[Any, ...]:
    sums = work.engine.sweep(work.cells, rule, params, W, H, *sides, n_levels=n_levels)
    return *sums.rows, *sums.columns, sums.totals


def _map(work: Work, rule: Rule, params: Any, *arrays: Any, n_levels: int, of_cells: bool) -> tuple[Any, ...]:
    shards = work.cells.cell_shards if of_cells else work.cells.row_shards
    results, totals = work.engine.map(rule, params, *arrays, n_levels=n_levels, shards=shards)
    return *results, totals


def _numpy(work: Work, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
    return (NUMPY[name](*args, **kwargs) if name in NUMPY else getattr(np, name)(*args, **kwargs),)


def _draw(work: Work, kind: str, seed: int, stream: int, size: int, args: Any) -> tuple[Any, ...]:
    rows = work.group.rows
    draws = RowDraws(seed, first=rows.start, stream=stream)
    return (getattr(draws, kind)(*args, size=(rows.stop - rows.start, size)),)


OPERATIONS: dict[str, Callable[..., tuple[Any, ...]]] = {
    "sweep": _sweep,
    "map": _map,
    "numpy": _numpy,
    "draw": _draw,
    "cells": lambda work, name: (getattr(work.cells, name),),
    "gram": lambda work, factor: (work.engine.gram(factor, work.cells.row_shards),),
    "column_sums": lambda work, factor: (work.engine.column_sums(factor, work.cells.row_shards),),
    "sddmm": lambda work, W, H: (work.engine.sddmm(work.cells, W, H),),
    "spmm": lambda work, c, far, side: (work.engine.spmm(work.cells, c, far, side),),
    "newton_step": lambda work, *args: (work.engine.newton_step(work.cells, *args),),
}
#: Operations that are no functions of NumPy under their name.
NUMPY: dict[str, Callable[..., Any]] = {
    "getitem": operator.getitem,
    "astype": lambda array, dtype, copy=True: np.asarray(array).astype(dtype, copy=copy),
}


def write_bundle(bundle: list[Any], paths: Sequence[str]) -> list[ArrayFile]:
    """Write the arrays of a bundle, those that have a path, each whole or not at all."""
    return [write_array(array, path) if path else array for array, path in zip(bundle, paths, strict=True)]


def add(left: list[Any], right: list[Any]) -> list[Any]:
    """Sums of two halves of a tree, added."""
    return [None if one is None else tree_sum((one, other)) for one, other in zip(left, right, strict=True)]


# ---------------------------------------------------------------------------------------------------------------------
# on the client


class Kind:
    """Of what a `Deferred` has an entry along its first axis."""

    ROWS, CELLS, HOST = "rows", "cells", "host"


class Deferred:
    """An array of the cluster, or one of the client that follows from sums over all rows: not computed yet.

    Operations are recorded. What has rows or cells along its first axis allows only those that treat them independently.
    """

    __array_ufunc__ = None  # so that NumPy's arrays leave arithmetic to this class

    def __init__(self, engine: "DaskEngine", kind: str, node: "Node", place: int, meta: Any) -> None:
        self.engine, self.kind, self.node, self.place, self.meta = engine, kind, node, place, meta
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
        length = {Kind.ROWS: self.engine.n_rows, Kind.CELLS: self.engine.n_cells}.get(self.kind)
        return tuple(self.meta.shape) if length is None else (length, *self.meta.shape[1:])

    def __len__(self) -> int:
        return self.shape[0]

    def __array_namespace__(self, api_version: str | None = None) -> Any:
        return Functions(self.engine)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.asarray(self.engine.to_numpy(self), dtype)

    def __float__(self) -> float:
        return float(self.engine.to_numpy(self))

    def astype(self, dtype: Any, copy: bool = True) -> "Deferred":
        return self.engine.record("astype", self, dtype, copy=copy)

    def any(self, axis: int) -> "Deferred":
        return self.engine.record("any", self, axis=axis)

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
Deferred.__neg__ = lambda self: self.engine.record("negative", self)  # type: ignore[attr-defined]
Deferred.__invert__ = lambda self: self.engine.record("invert", self)  # type: ignore[attr-defined]


class Functions:
    """The functions of NumPy, recorded where an argument is `Deferred`."""

    def __init__(self, engine: "DaskEngine") -> None:
        self._engine = engine

    def __getattr__(self, name: str) -> Any:
        found = getattr(np, name)
        if isinstance(found, type) or not callable(found):
            return found
        return partial(self._engine.record, name)

    def finfo(self, dtype: Any) -> Any:
        return np.finfo(dtype)

    def asarray(self, array: Any, dtype: Any = None, device: Any = None) -> Any:
        """An array of the client; that of a mask of all rows goes to where these are."""
        if isinstance(array, Deferred):
            return array
        array = np.asarray(array, dtype)
        is_of_rows = array.ndim == 2 and len(array) == self._engine.n_rows > 1
        return self._engine.asarray(array, Side.ROWS) if is_of_rows else array


class Bundle:
    """Arrays that a program kept of all groups: with the workers, or in files."""

    def __init__(self, futures: Sequence[Any]) -> None:
        self.futures: Sequence[Any] | None = futures
        self.files: Sequence[list[ArrayFile]] | None = None


@dataclass(eq=False)
class Node:
    """A recorded operation."""

    name: str
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    made: list[Any] = field(default_factory=list)
    """Weak references to what it gave."""
    bundle: Bundle | None = None
    places: dict[int, int] = field(default_factory=dict)
    """Where in the bundle its arrays are."""
    values: dict[int, Any] = field(default_factory=dict)
    """Results on the client."""


class DaskCells:
    """The observed cells in files that the workers read."""

    def __init__(self, engine: "DaskEngine", observed: Observed, groups: list[GroupFile], shards: list[Block]) -> None:
        self.observed, self.groups, self._engine = observed, groups, engine
        self.row_shards = tuple(rows for rows, _, _ in shards)
        self.cell_shards = tuple(cells for _, _, cells in shards)
        self.is_first_at_cell = observed.is_first_at_cell if observed.unseen == "zero" else None

    @property
    def y(self) -> Any:
        return self._engine.of_cells("y", self.observed.values)

    @property
    def weights(self) -> Any:
        weights = self.observed.weights
        return None if weights is None else self._engine.of_cells("weights", weights)


class DaskEngine(Engine[DaskCells]):
    """Runs on the workers of the current Dask client; without one, on a cluster of processes of this machine.

    Parameters
    ----------
    n_jobs : int or None
        Number of threads of the client, which updates the columns; and of the processes of a cluster of its own.
    folder : str or path-like, default=None
        Where files for the workers lie; None: a temporary folder, which all workers must see.
    """

    name = "dask"
    offers: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, n_jobs: int | None, folder: Path | None = None) -> None:
        self.folder = folder
        self._local = CpuEngine(n_jobs)
        self._cluster: Any = None
        self._pending: list[Node] = []
        self._files: dict[int, tuple[Array, ArrayFile]] = {}
        self._counter = 0
        self.cells: DaskCells | None = None
        self.on_progress: Callable[[int, int], None] | None = None

    # -----------------------------------------------------------------------------------------------------------------
    # the cluster, and what it reads

    def __enter__(self) -> Self:
        import distributed

        self._local.__enter__()
        try:
            self.client = distributed.get_client()
        except ValueError:
            self._cluster = local_cluster(self._local.n_threads)
            self.client = distributed.Client(self._cluster)
        import dask

        parent = self.folder or dask.config.get("temporary-directory", None)
        self._scratch = Path(tempfile.mkdtemp(prefix="halfseen-", dir=parent))
        self._check_folder()
        self._last_cut, self._time_of_cut, self._bytes = perf_counter(), 0.0, 0
        return self

    def __exit__(self, *_: object) -> None:
        self._pending.clear()
        self._files.clear()
        if self._cluster is not None:
            self.client.close()
            self._cluster.close()
        self._local.__exit__()
        shutil.rmtree(self._scratch, ignore_errors=True)

    def _check_folder(self) -> None:
        """Refuse a folder that some worker does not see."""
        probe = self._scratch / "probe"
        probe.touch()
        sees = self.client.run(_sees, str(probe), on_error="return")
        blind = [worker for worker, answer in sees.items() if answer is not True]
        if not sees or blind:
            shutil.rmtree(self._scratch, ignore_errors=True)
            found = "no worker" if not sees else f"{len(blind)} of {len(sees)} that do not see {str(self._scratch)!r}"
            raise EngineError(
                "All workers must see the folder in which a fit keeps its files.",
                found=found,
                remedy="Start workers." if not sees else "Pass `checkpoint=`, a folder on a volume that all share.",
                parameter="engine",
            )

    def place(self, observed: Observed, *sides: Side) -> DaskCells:
        shards = shard_blocks(observed.indptr)
        n_threads = max(1, sum(self.client.nthreads().values()))
        size = 1
        while 2 * size <= SHARDS_PER_GROUP and len(shards) > size * GROUPS_PER_THREAD * n_threads:
            size *= 2
        arrays = (observed.indptr, observed.indices, observed.values, observed.weights)
        files = [None if array is None else self.file_of(array) for array in arrays]
        has_repeated = observed.unseen == "zero" and observed.is_first_at_cell is not None
        groups: list[GroupFile] = [
            GroupFile(
                number, tuple(shards[start : start + size]), *files, observed.shape[1], observed.unseen, has_repeated
            )  # type: ignore[arg-type]
            for number, start in enumerate(range(0, len(shards), size))
        ]
        self.cells = DaskCells(self, observed, groups, shards)
        return self.cells

    @property
    def groups(self) -> list[GroupFile]:
        if self.cells is None:
            raise RuntimeError("Cells are placed before arrays of rows.")
        return self.cells.groups

    @property
    def n_rows(self) -> int:
        return self.groups[-1].rows.stop

    @property
    def n_cells(self) -> int:
        return self.groups[-1].cells.stop

    def file_of(self, array: Array) -> ArrayFile:
        """The file of an array of the client: its own, if it is mapped from one, else a new one."""
        known = self._files.get(id(array))
        if known is not None and known[0] is array:
            return known[1]
        file = mapped_file(array)
        if file is None:
            self._counter += 1
            self._bytes += array.nbytes
            file = write_array(array, str(self._scratch / f"array-{self._counter}"))
        self._files[id(array)] = array, file
        return file

    # -----------------------------------------------------------------------------------------------------------------
    # recording

    def asarray(self, array: Array, side: Side | None = None) -> Any:
        if isinstance(array, Deferred) or side is not Side.ROWS:
            return array if isinstance(array, Deferred) else np.ascontiguousarray(array)
        array = np.ascontiguousarray(array)
        node = Node("numpy", ("asarray", RowsOf(self.file_of(array))))
        self._pending.append(node)
        return Deferred(self, Kind.ROWS, node, 0, _sample(array))

    def of_cells(self, name: str, array: Array) -> Deferred:
        node = Node("cells", (name,))
        self._pending.append(node)
        return Deferred(self, Kind.CELLS, node, 0, _sample(array))

    def row_draws(self, seed: int) -> Any:
        return DeferredDraws(self, seed)

    def record(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """A function of NumPy; computed at once where nothing is `Deferred`."""
        flat = [*args, *kwargs.values()]
        for value in args:
            flat += value if isinstance(value, list | tuple) else []
        kinds = {value.kind for value in flat if isinstance(value, Deferred)}
        function = NUMPY.get(name) or getattr(np, name)
        if not kinds:
            return function(*args, **kwargs)
        of_rows = kinds - {Kind.HOST}
        if len(of_rows) > 1:
            raise NotImplementedError(f"{name} of rows and cells")
        kind = of_rows.pop() if of_rows else Kind.HOST
        with np.errstate(all="ignore"):
            meta = function(*map(_meta, args), **{key: _meta(value) for key, value in kwargs.items()})
        if kind == Kind.HOST:
            return Deferred(self, kind, Node(name, args, kwargs), 0, meta)
        if np.ndim(meta) == 0 or not _is_row_by_row(name, args, kwargs):
            raise NotImplementedError(f"{name} of {kind}: sums over them are those of `map`")
        node = Node("numpy", (name, *args), kwargs)
        self._pending.append(node)
        return Deferred(self, kind, node, 0, np.asarray(meta))

    def _remote(self, node: Node, arrays: Sequence[tuple[str, Any]]) -> list[Any]:
        """What an operation on the workers gives: (kind, sample) of each of its arrays; sums have kind "host"."""
        self._pending.append(node)
        return [Deferred(self, kind, node, place, meta) for place, (kind, meta) in enumerate(arrays)]

    def sweep(self, cells: DaskCells, rule: Rule, params: Any, W: Any, H: Any, *sides: Side, n_levels: int = 0) -> Sums:
        H, observed = self._on_host(H), cells.observed
        dtype = (W if H is None else H).dtype
        k = (W if H is None else H).shape[1]
        x = None if W is None or H is None else np.ones(1, dtype)
        one = [None if array is None else np.asarray(array[:1]) for array in (observed.values, observed.weights)]
        first = None if cells.is_first_at_cell is None else np.ones(1, observed.dtype)
        with np.errstate(all="ignore"):
            terms = rule(params, one[0], x, one[1], first)
        kinds: list[tuple[str, Any]] = []
        for side, kind in ((Side.ROWS, Kind.ROWS), (Side.COLUMNS, Kind.HOST)):
            if side in sides:
                kinds += [(kind, np.ones((1, k), dtype)) for _ in terms.arrays]
        n_totals = len(terms.totals) + n_levels * len(terms.by_level)
        has_totals = n_totals > 0 and sides != (Side.COLUMNS,)
        node = Node("sweep", (rule, params, W, H, sides, n_levels))
        results = self._remote(node, [*kinds, (Kind.HOST, np.ones(n_totals))])
        n_arrays = len(terms.arrays)
        rows = tuple(results[:n_arrays]) if Side.ROWS in sides else ()
        columns = tuple(results[len(rows) : len(rows) + n_arrays]) if Side.COLUMNS in sides else ()
        return Sums(rows, columns, results[-1] if has_totals else None)

    def map(
        self, rule: Rule, params: Any, *arrays: Any, n_levels: int = 0, shards: Sequence[slice] | None = None
    ) -> tuple[tuple[Any, ...], Any]:
        kinds = {array.kind for array in arrays if isinstance(array, Deferred)} - {Kind.HOST}
        params = self._params_on_host(params)
        if not kinds:
            return self._local.map(rule, params, *map(self._on_host, arrays), n_levels=n_levels, shards=shards)
        (kind,) = kinds
        arrays = tuple(
            self._on_host(array) if isinstance(array, Deferred) and array.kind == Kind.HOST else array
            for array in arrays
        )
        with np.errstate(all="ignore"):
            terms = rule(params, *map(_meta, arrays))
        n_totals = len(terms.totals) + n_levels * len(terms.by_level)
        node = Node("map", (rule, params, *arrays), {"n_levels": n_levels, "of_cells": kind == Kind.CELLS})
        metas = [(kind, np.asarray(array)[:1]) for array in terms.arrays]
        *results, totals = self._remote(node, [*metas, (Kind.HOST, np.ones(n_totals))])
        return tuple(results), totals if n_totals else None

    def _sum(self, name: str, meta: Array, dtype: Any, *args: Any) -> Any:
        (total,) = self._remote(Node(name, args), [(Kind.HOST, meta)])
        return self.record("astype", total, dtype)

    def column_sums(self, factor: Any, shards: Sequence[slice] | None = None) -> Any:
        if isinstance(factor, Deferred) and factor.kind == Kind.ROWS:
            return self._sum("column_sums", np.ones(factor.shape[1]), factor.dtype, factor)
        return self._local.column_sums(self._on_host(factor))

    def gram(self, factor: Any, shards: Sequence[slice] | None = None) -> Any:
        if isinstance(factor, Deferred) and factor.kind == Kind.ROWS:
            return self._sum("gram", np.ones((factor.shape[1],) * 2), factor.dtype, factor)
        return self._local.gram(self._on_host(factor))

    def sddmm(self, cells: DaskCells, W: Any, H: Any) -> Any:
        return self._remote(Node("sddmm", (W, self._on_host(H))), [(Kind.CELLS, np.ones(1, W.dtype))])[0]

    def spmm(self, cells: DaskCells, c: Any, far: Any, side: Side) -> Any:
        meta = np.ones((1, far.shape[1]), far.dtype)
        if side is Side.COLUMNS:
            return self._sum("spmm", meta, far.dtype, c, far, side)
        return self._remote(Node("spmm", (c, self._on_host(far), side)), [(Kind.ROWS, meta)])[0]

    # -----------------------------------------------------------------------------------------------------------------
    # computing

    def _on_host(self, array: Any) -> Any:
        """An array of the client, computed if it was not yet; others stay as they are."""
        return self.to_numpy(array) if isinstance(array, Deferred) and array.kind == Kind.HOST else array

    def _params_on_host(self, params: Any) -> Any:
        if type(params) is tuple:
            return tuple(map(self._on_host, params))
        return self._on_host(params)

    def fetch(self, *vectors: Any) -> list[Array]:
        return [self.to_numpy(vector) for vector in vectors]

    def to_numpy(self, array: Any) -> Array:
        if not isinstance(array, Deferred):
            return np.asarray(array)
        if array.kind == Kind.HOST:
            return self._value(array)
        if array.node.bundle is None:
            self.flush()
        bundle, place = array.node.bundle, array.node.places[array.place]
        if bundle.files is not None:
            pieces = [files[place].read() for files in bundle.files]
        else:
            futures = self.client.map(operator.itemgetter(place), bundle.futures, pure=False, key=self._key("piece"))
            pieces = self._gather(futures)
        return np.concatenate(pieces)

    def _value(self, array: Deferred) -> Any:
        """The value of an array of the client."""
        node = array.node
        if array.place not in node.values:
            if node in self._pending:
                self.flush()
            else:

                def value_of(one: Any) -> Any:
                    if isinstance(one, list | tuple):
                        return type(one)(map(value_of, one)) if type(one) in (list, tuple) else one
                    return self._value(one) if isinstance(one, Deferred) else one

                function = NUMPY.get(node.name) or getattr(np, node.name)
                kwargs = {key: value_of(value) for key, value in node.kwargs.items()}
                with np.errstate(over="ignore", invalid="ignore"):
                    node.values[0] = function(*map(value_of, node.args), **kwargs)
        return node.values[array.place]

    def flush(self) -> None:
        """Do what was recorded, a task for each group, and add the sums of the groups."""
        # what is needed: arrays that somebody still has, and what they are made of
        nodes, self._pending = self._pending, []
        wanted: set[Node] = {node for node in nodes if any(ref() is not None for ref in node.made)}
        for node in reversed(nodes):
            if node in wanted:
                wanted |= {one.node for one in _arguments(node) if one.node.bundle is None}
        nodes = [node for node in nodes if node in wanted]
        # what client-side numbers go into it (they are sums of earlier phases)
        number, steps, bundles = {node: place for place, node in enumerate(nodes)}, list[Step](), list[Bundle]()

        def as_argument(value: Any) -> Any:
            if isinstance(value, Deferred):
                if value.kind == Kind.HOST:
                    return as_argument(self._value(value))
                if value.node in number:
                    return Slot(number[value.node], value.place)
                bundle: Any = value.node.bundle
                if bundle not in bundles:
                    bundles.append(bundle)
                return Kept(bundles.index(bundle), value.node.places[value.place])
            if isinstance(value, np.ndarray) and value.nbytes > LARGEST_SENT:
                return WholeOf(self.file_of(value))
            return tuple(map(as_argument, value)) if type(value) in (tuple, list) else value

        for node in nodes:
            kwargs = {key: as_argument(value) for key, value in node.kwargs.items()}
            steps.append(Step(node.name, tuple(map(as_argument, node.args)), kwargs))
        alive = [(node, one) for node in nodes for ref in node.made if (one := ref()) is not None]
        kept = [(node, one.place) for node, one in alive if one.kind != Kind.HOST and node.name != "cells"]
        summed = [(node, one.place) for node, one in alive if one.kind == Kind.HOST]
        program = Program(
            tuple(steps),
            tuple(Slot(number[node], place) for node, place in kept),
            tuple(Slot(number[node], place) for node, place in summed),
        )
        for node in nodes:
            if node.name == "cells":  # read again where it is needed
                self._pending.append(node)
        self._run(program, bundles, kept, summed)
        if self.is_cut_due():
            self.cut()

    def _run(self, program: Program, bundles: list[Bundle], kept: Any, summed: Any) -> None:
        inputs = [bundle.futures or bundle.files for bundle in bundles]
        done = self._map(run_program, self.groups, [program] * len(self.groups), *inputs)
        if kept:
            bundle = Bundle(self._map(operator.itemgetter(0), done))
            for place, (node, of_node) in enumerate(kept):
                node.bundle, node.places[of_node] = bundle, place
        sums = self._map(operator.itemgetter(1), done)
        del done
        while len(sums) > 1:
            pairs = self._map(add, sums[: len(sums) // 2 * 2 : 2], sums[1::2])
            sums = [*pairs, *sums[len(sums) // 2 * 2 :]]
        (totals,) = self._gather(sums)
        for (node, place), total in zip(summed, totals, strict=True):
            if node.name in ("sweep", "spmm") and total is not None and total.ndim == 2:
                total = total.astype(node.made[place]().dtype if node.made[place]() is not None else total.dtype)
            node.values[place] = total

    def _key(self, name: str) -> str:
        self._counter += 1
        return f"{name}-{self._scratch.name}-{self._counter}"

    def _map(self, function: Any, *iterables: Any) -> list[Any]:
        """A task for each of the items."""
        name = getattr(function, "__name__", type(function).__name__)
        futures: list[Any] = self.client.map(function, *iterables, pure=False, key=self._key(name))
        return futures

    def _gather(self, futures: Any) -> Any:
        return self.client.gather(futures)

    # -----------------------------------------------------------------------------------------------------------------
    # state in files

    def is_cut_due(self) -> bool:
        since = perf_counter() - self._last_cut
        return since > max(SECONDS_PER_CUT, self._time_of_cut / SHARE_OF_CUTS) or self._bytes > BYTES_PER_CUT

    def cut(self) -> None:
        """Write all arrays of rows to files, from which tasks go on: what came before is forgotten."""


class DeferredDraws:
    """As `RowDraws`: what it draws first is for rows, and is drawn by the workers."""

    def __init__(self, engine: DaskEngine, seed: int) -> None:
        self._engine, self._seed, self._drawn = engine, seed, 0

    def __getattr__(self, kind: str) -> Any:
        def draw(*args: Any, size: tuple[int, int]) -> Any:
            stream, self._drawn = self._drawn, self._drawn + 1
            if stream:
                return getattr(RowDraws(self._seed, stream=stream), kind)(*args, size=size)
            node = Node("draw", (kind, self._seed, stream, size[1], args))
            return self._engine._remote(node, [(Kind.ROWS, np.ones((1, size[1])))])[0]

        return draw


def local_cluster(n_workers: int, memory_limit: Any = "auto") -> Any:
    """A cluster of processes of this machine, one thread each; nothing is spilled to disk: cells are read again."""
    import dask
    import distributed

    memory = {f"distributed.worker.memory.{name}": False for name in ("target", "spill")}
    with dask.config.set(memory):
        return distributed.LocalCluster(
            n_workers=n_workers, threads_per_worker=1, processes=True, memory_limit=memory_limit, dashboard_address=None
        )


def _sees(path: str) -> bool:
    return Path(path).exists()


def _arguments(node: Node) -> list[Deferred]:
    """The arrays of rows and cells that an operation takes."""
    flat: list[Any] = [*node.args, *node.kwargs.values()]
    flat += [one for value in flat if isinstance(value, list | tuple) for one in value]
    return [one for one in flat if isinstance(one, Deferred) and one.kind != Kind.HOST]


def _meta(value: Any) -> Any:
    if isinstance(value, Deferred):
        return value.meta
    return type(value)(map(_meta, value)) if type(value) in (list, tuple) else value


def _sample(array: Array) -> Array:
    return np.array(array[:1])


def _is_row_by_row(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether an operation treats the entries along the first axis independently."""
    if name in ("sum", "mean", "max", "min", "any", "all"):
        return kwargs.get("axis") in (1, -1)
    if name == "getitem":
        return type(args[1]) is tuple and args[1][0] == slice(None)
    return name not in ("concat", "stack", "reshape", "flip", "cumsum", "sort", "linalg")


__all__ = ["DaskCells", "DaskEngine", "Deferred", "local_cluster"]
