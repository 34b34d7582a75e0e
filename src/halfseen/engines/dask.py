"""The Dask engine: rows in shards over the workers of a cluster, columns on the client.

Shards are ranges of rows that the data alone decide (`threads.shard_blocks`); a group is 1, 2, 4, ... neighbouring
shards, and a task of every phase. Arrays with a row for each row of the matrix, or an entry for each cell, are
`Deferred`: what solvers do with them is recorded, and done when a sum over all rows is asked for, in one task for each
group. The sums of groups are added by a tree that continues the one of `threads.tree_sum` inside a group: so the bits
are those of the CPU engine, whatever the workers. Everything with a row for each column is a NumPy array of the client.

Tasks are pure. They read cells, and arrays of the client, from files in a folder that all workers see, and keep cells
in memory as far as `cell_cache` has room. Nothing is scattered, no task is bound to a worker: what a lost worker had is
computed again from the last state in files. To keep that short, and the graph small, `cut` writes all arrays of rows
to files from time to time, and tasks go on from there.
"""

import asyncio
import logging
import operator
import os
import shutil
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent import futures as concurrent_futures
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Lock
from time import perf_counter
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from halfseen.array_files import ArrayFile, mapped_file, temporary_folder, write_array
from halfseen.arrays import Array
from halfseen.engines.base import Along, Engine, RidgePenalty, RowDraws, Rule, Side, Sums
from halfseen.engines.cpu import BYTES_OF_EQUATIONS, CpuCells, CpuEngine, noise_of
from halfseen.engines.threads import Block, blocks_of_rows, shard_blocks, tree_sum
from halfseen.errors import EngineError
from halfseen.kernels import steps
from halfseen.observed import Observed

#: Groups per thread of the workers, at least; and by how much the busiest may have more than its share: more groups
#: balance better, fewer cost less.
GROUPS_PER_THREAD, IMBALANCE = 2, 1.1
#: Shards of a group at most.
SHARDS_PER_GROUP = 8
#: Bytes per cell while a task works on them, about: both orders, values and the coefficients of a pass.
BYTES_PER_CELL = 48
#: Share of a worker's memory that may hold cells between tasks; and that a task may need for its own.
SHARE_OF_CACHE, SHARE_OF_TASK = 0.3, 0.15
#: Arrays of the client that are larger are read from a file by the tasks, not sent with them.
LARGEST_SENT = 1 << 12
#: Sums of a group that are larger are added by the workers, not by the client; those of an operation
#: that are larger are kept apart from others, so that they are dropped when nobody needs them any more.
LARGE = 1 << 20
#: Sums of groups that one task adds: a power of two, so that the tree is the same.
FAN_IN = 4
#: Seconds between cuts at least; and the largest share of the time that they may take.
SECONDS_PER_CUT, SHARE_OF_CUTS = 1.0, 0.02
#: Bytes of the client's arrays in files, since the last cut, at most.
BYTES_PER_CUT = 4 << 30
#: Seconds between looks at what is done; and without any worker, until the fit is given up.
SECONDS_PER_LOOK, SECONDS_WITHOUT_WORKERS = 0.25, 60.0
#: Seconds between questions which workers there are.
SECONDS_BETWEEN_HOMES = 2.0
#: How many workers may be lost with a task on a cluster of our own; and how often it is tried again beyond what a
#: cluster allows.
MAX_LOSSES, MAX_RETRIES = 10, 10

#: Operations that tasks are named after.
PASSES = ("sweep", "sddmm", "conjugate_gradients", "residual_sums", "normal_equations")
#: Columns that a thread of the client updates at a time.
COLUMNS_PER_BLOCK = 1024

logger = logging.getLogger(__name__)


# ---------------------------------------------------------------------------------------------------------------------
# on the workers


class GroupFile(NamedTuple):
    """The cells of a group of shards, in the files of the whole matrix."""

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

    @property
    def key(self) -> tuple[Any, ...]:
        return self.indices, self.values, self.weights, self.cells.start, self.cells.stop

    def read(self) -> CpuCells:
        """The cells of these rows, in memory."""
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
        if self.has_repeated and placed.is_first_at_cell is None:
            placed.is_first_at_cell = np.ones_like(observed.values)  # so that all groups sum in the same way
        return placed


class CellCache:
    """Cells of groups that a worker keeps between tasks; the ones that were not used for longest go first."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._kept: OrderedDict[Any, CpuCells] = OrderedDict()

    def get(self, group: GroupFile) -> CpuCells:
        with self._lock:
            if group.key in self._kept:
                self._kept.move_to_end(group.key)
                return self._kept[group.key]
        cells = group.read()
        with self._lock:
            return self._kept.setdefault(group.key, cells)

    def shrink(self) -> None:
        """Forget what there is no room for; orders that tasks have added to the cells count, too."""
        room = memory_limit() * SHARE_OF_CACHE
        with self._lock:
            sizes = [cells.nbytes for cells in self._kept.values()]
            while sizes and sum(sizes) > room:
                self._kept.popitem(last=False)
                del sizes[0]

    def clear(self) -> None:
        with self._lock:
            self._kept.clear()


def memory_limit() -> float:
    """Bytes that this worker may use; infinite where there is no limit."""
    from distributed import get_worker

    try:
        return float(get_worker().memory_manager.memory_limit or np.inf)
    except (ValueError, AttributeError):  # not on a worker
        return float(np.inf)


cell_cache = CellCache()
_array_cache: OrderedDict[ArrayFile, Array] = OrderedDict()
_array_lock = Lock()


def read_array(file: ArrayFile) -> Array:
    """An array of the client; the last ones are kept, because every group needs them."""
    with _array_lock:
        if file not in _array_cache:
            _array_cache[file] = file.read()
            while len(_array_cache) > 4:
                _array_cache.popitem(last=False)
        _array_cache.move_to_end(file)
        return _array_cache[file]


def forget_all() -> None:
    """Drop what this worker keeps of files, after a fit."""
    cell_cache.clear()
    with _array_lock:
        _array_cache.clear()


class Slot(NamedTuple):
    """An array that an earlier step of the same program made."""

    step: int
    place: int


class Kept(NamedTuple):
    """An array that an earlier program kept: number of the bundle among the inputs, and place in it."""

    bundle: int
    place: int


class CellsOf(NamedTuple):
    """Cells that are placed: their number among those of the program."""

    number: int


class WholeOf(NamedTuple):
    """An array of the client."""

    file: ArrayFile


class PartOf(NamedTuple):
    """The rows of a group, or its cells by their number, in an array of pieces one after the other."""

    pieces: tuple[ArrayFile, ...]
    cells: CellsOf | None


class Step(NamedTuple):
    """An operation of a program: its name in `Work`, and its arguments."""

    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


class Program(NamedTuple):
    """What a phase does with every group of shards."""

    steps: tuple[Step, ...]
    kept: tuple[tuple[Slot, ...], ...]
    """Bundles of arrays that stay with the workers."""
    summed: tuple[Slot, ...]
    """Sums over the rows of the group, to be added to those of others."""


def run_program(groups: Sequence[GroupFile], program: Program, *bundles: Any) -> tuple[list[Any], ...]:
    """The bundles that the program keeps of a group, and last its sums.

    `groups` are the same rows of all cells that are placed. Bundles are lists of arrays, or of their files.
    """
    results = list[tuple[Any, ...]]()

    def resolve(value: Any) -> Any:
        if isinstance(value, Slot):
            return results[value.step][value.place]
        if isinstance(value, Kept):
            return in_memory(bundles[value.bundle][value.place])
        if isinstance(value, CellsOf):
            return cell_cache.get(groups[value.number])
        if isinstance(value, PartOf):
            group = groups[0 if value.cells is None else value.cells.number]
            return read_part(value.pieces, group.rows if value.cells is None else group.cells)
        if isinstance(value, WholeOf):
            return read_array(value.file)
        return tuple(map(resolve, value)) if type(value) is tuple else value

    first = groups[0].rows.start
    shards = tuple(slice(rows.start - first, rows.stop - first) for rows, _, _ in groups[0].shards)
    with CpuEngine(1, has_part=True) as engine, np.errstate(all="ignore"):
        work = Work(engine, groups[0].rows, shards)
        for step in program.steps:
            kwargs = {name: resolve(value) for name, value in step.kwargs.items()}
            results.append(getattr(work, step.name)(*map(resolve, step.args), **kwargs))
    cell_cache.shrink()
    return tuple([results[step][place] for step, place in slots] for slots in (*program.kept, program.summed))


def run_by_shard(group: GroupFile, function: Callable[..., Any], arrays: Sequence[ArrayFile]) -> list[Any]:
    """What a function gives for each shard of a group, as `Engine.by_shard`."""
    with CpuEngine(1) as engine, np.errstate(all="ignore"):
        return engine.by_shard(function, group.read(), *map(read_array, arrays))


def read_part(pieces: Sequence[ArrayFile], part: slice) -> Array:
    """Some rows of an array that lies in pieces."""
    arrays, start = list[Array](), 0
    for piece in pieces:
        first, last = np.clip([part.start - start, part.stop - start], 0, piece.shape[0]).tolist()
        if last > first:
            arrays.append(piece.read(slice(first, last)))
        start += piece.shape[0]
    if not arrays:
        return pieces[0].read(slice(0, 0))
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


class Work(NamedTuple):
    """The operations of programs, by name, on the rows of a group; each gives a tuple of arrays and sums."""

    engine: CpuEngine
    rows: slice
    row_shards: tuple[slice, ...]

    def cells(self, cells: CpuCells, name: str) -> tuple[Any, ...]:
        return (getattr(cells, name),)

    def part(self, array: Array) -> tuple[Any, ...]:
        return (array,)

    def draw(self, kind: str, seed: int, stream: int, size: int, args: Any) -> tuple[Any, ...]:
        draws = RowDraws(seed, first=self.rows.start, stream=stream)
        return (getattr(draws, kind)(*args, size=(self.rows.stop - self.rows.start, size)),)

    def numpy(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        return (numpy_function(name)(*args, **kwargs),)

    def map(self, cells: CpuCells | None, rule: Rule, params: Any, n_levels: int, *arrays: Any) -> tuple[Any, ...]:
        results, totals = self.engine.map(rule, params, *arrays, n_levels=n_levels, shards=self._shards(cells))
        return *results, totals

    def over_rows(self, cells: CpuCells | None, summed: bool, *args: Any) -> tuple[Any, ...]:
        return (self.engine.over_rows(*args, summed=summed, shards=self._shards(cells)),)

    def _shards(self, cells: CpuCells | None) -> tuple[slice, ...]:
        return self.row_shards if cells is None else cells.cell_shards

    def gram(self, factor: Array) -> tuple[Any, ...]:
        return (self.engine.gram(factor, self.row_shards),)

    def column_sums(self, factor: Array) -> tuple[Any, ...]:
        return (self.engine.column_sums(factor, self.row_shards),)

    def sweep(
        self, cells: CpuCells, rule: Rule, params: Any, W: Any, H: Any, sides: tuple[Side, ...], n_levels: int
    ) -> tuple[Any, ...]:
        sums = self.engine.sweep(cells, rule, params, W, H, *sides, n_levels=n_levels)
        return *sums.rows, *sums.columns, sums.totals

    def sddmm(self, *args: Any) -> tuple[Any, ...]:
        return (self.engine.sddmm(*args),)

    def spmm(self, *args: Any) -> tuple[Any, ...]:
        return (self.engine.spmm(*args),)

    def conjugate_gradients(self, *args: Any) -> tuple[Any, ...]:
        return self.engine.conjugate_gradients(*args)

    def residual_sums(self, *args: Any) -> tuple[Any, ...]:
        return self.engine.residual_sums(*args)

    def newton_step(self, *args: Any) -> tuple[Any, ...]:
        return (self.engine.newton_step(*args),)

    def normal_equations(self, *args: Any) -> tuple[Any, ...]:
        return (self.engine.normal_equations(*args),)


def numpy_function(name: str) -> Callable[..., Any]:
    """A function of NumPy, or of its arrays."""
    if name == "getitem":
        return operator.getitem
    if name == "astype":
        return lambda array, dtype, copy=True: np.asarray(array).astype(dtype, copy=copy)
    function: Callable[..., Any] = getattr(np, name)
    return function


def take(results: Sequence[Any], place: int) -> Any:
    """One of the results of a task, as a task of its own, so that it can be kept without the others."""
    return results[place]


def write_pieces(bundle: Sequence[Any], paths: Mapping[int, str], lasting: bool) -> dict[int, ArrayFile]:
    """Write arrays of a bundle, by their places; each is written whole or not at all."""
    return {place: write_array(in_memory(bundle[place]), path, lasting) for place, path in paths.items()}


def in_memory(array: Array | ArrayFile) -> Array:
    """An array of a bundle."""
    return array.read() if isinstance(array, ArrayFile) else array


def add(*parts: Sequence[Any] | None) -> list[Any]:
    """Sums of up to `FAN_IN` neighbours of a tree, added; None where there are fewer."""
    given = [part for part in parts if part is not None]
    return [None if sums[0] is None else tree_sum(sums) for sums in zip(*given, strict=True)]


# ---------------------------------------------------------------------------------------------------------------------
# on the client


class DaskCells:
    """The observed cells, in files that the workers read."""

    def __init__(self, engine: "DaskEngine", observed: Observed, groups: list[GroupFile]) -> None:
        self.observed, self.groups, self._engine = observed, groups, engine
        shards = [shard for group in groups for shard in group.shards]
        self.row_shards = tuple(rows for rows, _, _ in shards)
        self.cell_shards = tuple(cells for _, _, cells in shards)

    def _array(self, name: str, dtype: Any) -> "Deferred":
        return self._engine._remote(Node("cells", (self, name)), [(self, np.ones(1, dtype))])[0]

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


class DaskEngine(Engine[DaskCells]):
    """Runs on the workers of the current Dask client; without one, on a cluster of processes of this machine.

    Parameters
    ----------
    n_jobs : int or None
        Number of threads of the client, which updates the columns; and of the processes of a cluster of its own.
    folder : Path, default=None
        Where files for the workers lie, all of which must see it; None: Dask's temporary directory, or that of the
        system.
    """

    name = "dask"
    offers: ClassVar[frozenset[str]] = frozenset({"newton"})

    def __init__(self, n_jobs: int | None, folder: Path | None = None) -> None:
        self.folder = folder
        self._local = CpuEngine(n_jobs)
        self._cluster: Any = None
        self._placed: list[DaskCells] = []
        self._pending: list[Node] = []
        self._bundles: weakref.WeakSet[Bundle] = weakref.WeakSet()
        self._files: dict[int, tuple[weakref.ref[Array], ArrayFile]] = {}
        self._of_cells: set[str] = set()
        self._scratch_files: set[str] = set()
        self._unneeded: set[str] = set()
        self._counter = 0

    # -----------------------------------------------------------------------------------------------------------------
    # the cluster, and what it reads

    def __enter__(self) -> Self:
        import dask
        import distributed

        self._local.__enter__()
        try:
            self.client = distributed.get_client()
        except ValueError:
            self._cluster = local_cluster(self._local.n_threads)
            self.client = distributed.Client(self._cluster)
        parent = self.folder or dask.config.get("temporary-directory", None)
        self._scratch = temporary_folder(parent)
        self._last_cut, self._time_of_cut, self._bytes = perf_counter(), 0.0, 0
        self._n_lost = 0
        self._asked, self._home = -np.inf, dict[str, int]()
        try:
            self._check_workers()
        except BaseException:
            self.__exit__()
            raise
        self._is_open = True
        self.client.subscribe_topic("all", self._on_event)
        return self

    def __exit__(self, *_: object) -> None:
        self._is_open = False
        self._pending.clear()
        self._files.clear()
        if self.client.status == "running":
            self.client.unsubscribe_topic("all")
            if self._cluster is None:
                self.client.run(forget_all, on_error="ignore")
        if self._cluster is not None:
            self.client.close()
            self._cluster.close()
        self._local.__exit__()
        shutil.rmtree(self._scratch, ignore_errors=True)

    def _check_workers(self) -> None:
        """Wait for workers, and refuse a folder that some of them do not see."""
        try:
            self.client.wait_for_workers(1, timeout=SECONDS_WITHOUT_WORKERS)
        except TimeoutError:
            raise self._without_workers() from None
        probe = self._scratch / "probe"
        probe.touch()
        sees = self.client.run(os.path.exists, str(probe), on_error="return")
        blind = [worker for worker, answer in sees.items() if answer is False]
        if blind:
            raise EngineError(
                "All workers must see the folder in which a fit keeps its files.",
                found=f"{len(blind)} of {len(sees)} that do not see {str(self._scratch)!r}",
                remedy="Set Dask's `temporary-directory`, or `checkpoint=`, to a folder on a volume that all share.",
                parameter="engine",
            )

    def _without_workers(self) -> EngineError:
        return EngineError(
            "A cluster must have workers.",
            found=f"none for {SECONDS_WITHOUT_WORKERS:.0f} seconds",
            remedy=f"Start workers. {self._how_to_go_on}",
            parameter="engine",
        )

    @property
    def _how_to_go_on(self) -> str:
        if self.folder is None:
            return "With `checkpoint=`, the same call would go on from where it was."
        return "The same call goes on from its last checkpoint."

    def _check_scheduler(self) -> None:
        """Say so if the scheduler was lost."""
        if self.client.status != "running":
            raise EngineError(
                "The scheduler of a cluster must stay until the fit has ended.",
                found="that it was lost",
                remedy=f"Start it again. {self._how_to_go_on}",
                parameter="engine",
            ) from None

    def _on_event(self, event: Any) -> None:
        """An event of the scheduler."""
        _, what = event
        if (
            self._is_open
            and isinstance(what, Mapping)
            and what.get("action") == "remove-worker"
            and not what.get("expected", False)
        ):
            self._n_lost += 1
            self._asked = -np.inf
            note = f"A worker was lost: {what.get('worker')}. Its tasks run again on others."
            (self.on_loss or logger.warning)(note)

    def place(self, observed: Observed, *sides: Side, shards: Sequence[slice] | None = None) -> DaskCells:
        blocks = shard_blocks(observed.indptr) if shards is None else blocks_of_rows(observed.indptr, shards)
        if self._placed and [rows for rows, _, _ in blocks] != list(self._placed[0].row_shards):
            raise NotImplementedError("Cells of other rows, or in other shards.")
        size = len(self._groups[0].shards) if self._placed else self._group_size(blocks)
        arrays = (observed.indptr, observed.indices, observed.values, observed.weights)
        files = [None if array is None else self.file_of(array) for array in arrays]
        self._of_cells |= {file.path for file in files if file is not None}
        has_repeated = observed.unseen == "zero" and observed.is_first_at_cell is not None
        matrix: Any = (*files, observed.shape[1], observed.unseen, has_repeated)
        groups = [GroupFile(tuple(blocks[start : start + size]), *matrix) for start in range(0, len(blocks), size)]
        cells = DaskCells(self, observed, groups)
        self._placed.append(cells)
        return cells

    def _group_size(self, shards: Sequence[Block]) -> int:
        """Shards of a group: enough groups for all threads, each with room in the smallest memory."""
        workers = self.client.scheduler_info(n_workers=-1)["workers"].values()
        n_threads = max(1, sum(worker["nthreads"] for worker in workers))
        room = min((worker["memory_limit"] or np.inf for worker in workers), default=np.inf) * SHARE_OF_TASK
        largest, size = max(cells.stop - cells.start for _, _, cells in shards), SHARDS_PER_GROUP
        while size > 1:
            n_groups = -(-len(shards) // size)
            of_busiest = -(-n_groups // n_threads) * size
            if (
                n_groups >= GROUPS_PER_THREAD * n_threads
                and of_busiest * n_threads <= IMBALANCE * len(shards)
                and size * largest * BYTES_PER_CELL <= room
            ):
                break
            size //= 2
        return size

    @property
    def _groups(self) -> list[GroupFile]:
        if not self._placed:
            raise RuntimeError("Cells are placed before arrays of rows.")
        return self._placed[0].groups

    @property
    def n_rows(self) -> int:
        return self._groups[-1].rows.stop

    def file_of(self, array: Array) -> ArrayFile:
        """The file of an array of the client: its own, if it is mapped from one, else a new one."""
        ref, file = self._files.get(id(array), (None, None))
        if ref is not None and file is not None and ref() is array:
            return file
        file = mapped_file(array)
        if file is None:
            self._counter += 1
            self._bytes += array.nbytes
            file = write_array(array, self._scratch / f"array-{self._counter}", lasting=False)
            self._scratch_files.add(file.path)
        self._files[id(array)] = weakref.ref(array), file
        return file

    # -----------------------------------------------------------------------------------------------------------------
    # recording

    def asarray(self, array: Array, side: Side | None = None) -> Any:
        if isinstance(array, Deferred):
            return array
        array = np.ascontiguousarray(array)
        return self._part([self.file_of(array)], Side.ROWS, array[:1]) if side is Side.ROWS else array

    def _part(self, pieces: Sequence[ArrayFile], along: Any, sample: Array) -> Deferred:
        """An array of rows or cells that lies in files."""
        meta = np.ones((1, *sample.shape[1:]), sample.dtype)
        return self._remote(Node("part", (PartOf(tuple(pieces), along),)), [(along, meta)])[0]

    def row_draws(self, seed: int) -> Any:
        return DeferredDraws(self, seed)

    def record(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """A function of NumPy; computed at once where nothing is `Deferred`."""
        flat = [*_flat(args), *kwargs.values()]
        alongs = {one.along for one in flat if isinstance(one, Deferred)}
        function = numpy_function(name)
        if not alongs:
            return function(*args, **kwargs)
        alongs.discard(None)
        if len(alongs) > 1:
            raise NotImplementedError(f"{name} of rows and cells")
        with np.errstate(all="ignore"):
            meta = np.asarray(function(*map(_meta, args), **{key: _meta(value) for key, value in kwargs.items()}))
        if not alongs:
            return Deferred(self, None, Node(name, args, kwargs), 0, meta)
        if meta.ndim == 0 or not _is_row_by_row(name, args, kwargs):
            raise NotImplementedError(f"{name} of rows or cells: sums over them are those of `map`")
        return self._remote(Node("numpy", (name, *args), kwargs), [(alongs.pop(), meta)])[0]

    def _remote(self, node: Node, arrays: Sequence[tuple[Any, Array]]) -> list[Deferred]:
        """What an operation on the workers gives: along what, and one entry, of each of its arrays."""
        node.args = tuple(map(self._without_sums, node.args))
        node.kwargs = {key: self._without_sums(value) for key, value in node.kwargs.items()}
        self._pending.append(node)
        return [Deferred(self, along, node, place, meta) for place, (along, meta) in enumerate(arrays)]

    def _without_sums(self, value: Any) -> Any:
        """An argument of an operation on the workers, in which arrays of the client are computed."""
        if isinstance(value, Deferred):
            return self._value(value) if value.along is None else value
        return type(value)(map(self._without_sums, value)) if type(value) in (tuple, list) else value

    @staticmethod
    def _is_remote(array: Any) -> bool:
        return isinstance(array, Deferred) and array.along is not None

    def sweep(self, cells: DaskCells, rule: Rule, params: Any, W: Any, H: Any, *sides: Side, n_levels: int = 0) -> Sums:
        observed, factor = cells.observed, W if H is None else H
        one = [None if array is None else np.ones(1, array.dtype) for array in (observed.values, observed.weights)]
        x = None if W is None or H is None else np.ones(1, factor.dtype)
        first = np.ones(1, observed.dtype) if cells.groups[0].has_repeated else None
        with np.errstate(all="ignore"):
            terms = rule(params, one[0], x, one[1], first)
        kinds: list[tuple[Any, Array]] = []
        for side, along in ((Side.ROWS, Side.ROWS), (Side.COLUMNS, None)):
            if side in sides:
                kinds += [(along, np.ones((1, factor.shape[1]), factor.dtype)) for _ in terms.arrays]
        n_totals = len(terms.totals) + n_levels * len(terms.by_level)
        *results, totals = self._remote(
            Node("sweep", (cells, rule, params, W, H, sides, n_levels)), [*kinds, (None, np.ones(n_totals))]
        )
        n_rows = len(terms.arrays) * (Side.ROWS in sides)
        has_totals = n_totals > 0 and sides != (Side.COLUMNS,)
        return Sums(tuple(results[:n_rows]), tuple(results[n_rows:]), totals if has_totals else None)

    def map(
        self, rule: Rule, params: Any, *arrays: Any, n_levels: int = 0, shards: Sequence[slice] | None = None
    ) -> tuple[tuple[Any, ...], Any]:
        alongs = {array.along for array in arrays if self._is_remote(array)}
        if not alongs:
            params, arrays = self._without_sums(params), tuple(map(self._without_sums, arrays))
            return self._local.map(rule, params, *arrays, n_levels=n_levels, shards=shards)
        (along,) = alongs
        with np.errstate(all="ignore"):
            terms = rule(self._without_sums(params), *map(_meta, arrays))
        n_totals = len(terms.totals) + n_levels * len(terms.by_level)
        metas = [(along, np.asarray(array)[:1]) for array in terms.arrays]
        cells = along if isinstance(along, DaskCells) else None
        node = Node("map", (cells, rule, params, n_levels, *arrays))
        *results, totals = self._remote(node, [*metas, (None, np.ones(n_totals))])
        return tuple(results), totals if n_totals else None

    def _sum(self, node: Node, meta: Array) -> Any:
        """A sum over rows, in the precision of one entry."""
        return self._remote(node, [(None, meta)])[0]

    def column_sums(self, factor: Any, shards: Sequence[slice] | None = None) -> Any:
        if self._is_remote(factor):
            return self._sum(Node("column_sums", (factor,)), np.ones(factor.shape[1], factor.dtype))
        return self._local.column_sums(self._without_sums(factor))

    def gram(self, factor: Any, shards: Sequence[slice] | None = None) -> Any:
        if self._is_remote(factor):
            return self._sum(Node("gram", (factor,)), np.ones((factor.shape[1],) * 2, factor.dtype))
        return self._local.gram(self._without_sums(factor))

    def sddmm(self, cells: DaskCells, W: Any, H: Any) -> Any:
        return self._remote(Node("sddmm", (cells, W, H)), [(cells, np.ones(1, W.dtype))])[0]

    def spmm(self, cells: DaskCells, c: Any, far: Any, side: Side) -> Any:
        along = Side.ROWS if side is Side.ROWS else None
        node = Node("spmm", (cells, c, far, side))
        (sums,) = self._remote(node, [(along, np.ones((1, far.shape[1]), far.dtype))])
        return sums if along is Side.ROWS else self._value(sums)

    def over_rows(
        self, function: Callable[..., Any], params: Any, *arrays: Any, shards: Sequence[slice] | None = None,
        summed: bool = True,
    ) -> Any:  # fmt: skip
        alongs = {array.along for array in arrays if self._is_remote(array)}
        params = self._without_sums(params)
        if not alongs:
            return self._local.over_rows(function, params, *map(self._without_sums, arrays), summed=summed)
        (along,) = alongs
        with np.errstate(all="ignore"):
            meta = np.asarray(function(params, *map(_meta, arrays)))
        node = Node("over_rows", (along if isinstance(along, DaskCells) else None, summed, function, params, *arrays))
        return self._remote(node, [(None if summed else along, meta)])[0]

    def newton_step(
        self, cells: DaskCells, slope: Any, curvature: Any, near: Any, far: Any, penalty: RidgePenalty, side: Side
    ) -> Any:
        if side is Side.ROWS:
            node = Node("newton_step", (cells, slope, curvature, near, far, penalty, side))
            return self._remote(node, [(Side.ROWS, near.meta)])[0]
        near, k = self._without_sums(near), near.shape[1]
        if len(cells.row_shards) == 1:
            node = Node("newton_step", (cells, slope, curvature, near, far, penalty, side))
            return self._value(self._sum(node, np.ones((1, k), near.dtype)))
        out, width = np.empty_like(near), k * (k + 3) // 2
        size = max(1, BYTES_OF_EQUATIONS // (8 * width))
        l2, centre, fixed = (array.astype(near.dtype) for array in penalty)
        for start in range(0, len(near), size):
            part = slice(start, start + size)
            node = Node("normal_equations", (cells, slope, curvature, far, part))
            sums = self._value(self._sum(node, np.ones((1, width))))
            steps.solve_equations(sums, near[part], l2, centre, fixed, out[part])
        return out

    def conjugate_gradients(
        self, cells: DaskCells, curvature: Any, pull: Any, near: Any, far: Any, gram: Any, l2: Any, side: Side,
        n_steps: int, tol: float = 0.0,
    ) -> tuple[Any, Any]:  # fmt: skip
        if side is Side.ROWS or len(cells.row_shards) == 1:
            node = Node("conjugate_gradients", (cells, curvature, pull, near, far, gram, l2, side, n_steps, tol))
            kind = (Side.ROWS, near.meta) if side is Side.ROWS else (None, np.ones((1, near.shape[1]), near.dtype))
            rows, total = self._remote(node, [kind, (None, np.ones(1))])
            return rows if side is Side.ROWS else self._value(rows), total
        near, gram, l2 = map(self._without_sums, (near, gram, l2))
        kinds, noise = [(None, np.ones((1, size))) for size in (near.shape[1], 2)], noise_of(near.dtype)
        sums, sizes = map(self._value, self._remote(Node("residual_sums", (cells, curvature, pull, near, far)), kinds))
        out, residual, direction = (np.empty_like(near) for _ in range(3))
        state = (out, residual, direction, np.empty_like(near[:, 0]), np.empty(len(near)), np.empty(len(near)))
        blocks = [slice(start, start + COLUMNS_PER_BLOCK) for start in range(0, len(near), COLUMNS_PER_BLOCK)]

        def start(part: slice) -> None:
            of_state = (array[part] for array in state)
            steps.start_gradients(sums[part], sizes[part], near[part], gram, l2[part], tol, *of_state)

        def step(part: slice) -> bool:
            of_state = (array[part] for array in state)
            return bool(steps.step_gradients(sums[part], gram, l2[part], noise, *of_state))

        self._local.threads.all(start, blocks)
        for _ in range(n_steps):
            # a copy: what tasks read must not change
            node = Node("residual_sums", (cells, curvature, None, direction.copy(), far))
            sums = self._value(self._sum(node, kinds[0][1]))
            if not any(self._local.threads.all(step, blocks)):
                break
        return out, np.sum(state[-1], keepdims=True)

    def by_shard(self, function: Callable[..., Any], cells: DaskCells, *arrays: Array) -> list[Any]:
        files = tuple(self.file_of(np.ascontiguousarray(array)) for array in arrays)
        futures = self._map(
            "fold in", run_by_shard, cells.groups, [function] * len(cells.groups), [files] * len(cells.groups)
        )
        return [one for of_group in self._gather(futures) for one in of_group]

    # -----------------------------------------------------------------------------------------------------------------
    # computing

    def fetch(self, *vectors: Any) -> list[Array]:
        return [self.to_numpy(vector) for vector in vectors]

    def to_numpy(self, array: Any) -> Array:
        if not isinstance(array, Deferred):
            return np.asarray(array)
        if array.along is None:
            return np.asarray(self._value(array))
        if array.node.name == "cells":
            cells, name = array.node.args
            return np.asarray(getattr(cells.observed, "values" if name == "y" else name))
        if array.place not in array.node.kept:
            self.flush()
        bundle, place = array.node.kept[array.place]
        if bundle.futures is None:
            return np.concatenate([files[place].read() for files in bundle.files])
        return np.concatenate(self._gather(self._map("fetch", take, bundle.futures, [place] * len(self._groups))))

    def _value(self, array: Deferred) -> Any:
        """The value of an array of the client."""
        node = array.node
        if array.place in node.values:
            return node.values[array.place]
        if node in self._pending:
            self.flush()
        else:
            function, kwargs = (
                numpy_function(node.name),
                {key: self._without_sums(one) for key, one in node.kwargs.items()},
            )
            with np.errstate(over="ignore", invalid="ignore"):
                node.values[0] = function(*map(self._without_sums, node.args), **kwargs)
            node.forget()
        return node.values[array.place]

    def flush(self) -> None:
        """Do what was recorded, a task for each group, and add the sums of the groups."""
        nodes, self._pending = self._pending, []
        alive = {node: [one for ref in node.made if (one := ref()) is not None] for node in nodes}
        number, steps = dict[Node, int](), list[Step]()
        bundles, placed = list[Bundle](), [self._placed[0]]

        def position(of: Any, among: list[Any]) -> int:
            if of not in among:
                among.append(of)
            return among.index(of)

        def as_argument(value: Any) -> Any:
            if isinstance(value, Deferred):
                if value.place in value.node.kept:
                    bundle, place = value.node.kept[value.place]
                    return Kept(position(bundle, bundles), place)
                return Slot(step_of(value.node), value.place)
            if isinstance(value, DaskCells):
                return CellsOf(position(value, placed))
            if isinstance(value, PartOf):
                return value._replace(cells=as_argument(value.cells) if isinstance(value.cells, DaskCells) else None)
            if isinstance(value, np.ndarray) and value.nbytes > LARGEST_SENT:
                return WholeOf(self.file_of(value))
            return tuple(map(as_argument, value)) if type(value) in (tuple, list) else value

        def step_of(node: Node) -> int:
            if node not in number:
                kwargs = {key: as_argument(value) for key, value in node.kwargs.items()}
                step = Step(node.name, tuple(map(as_argument, node.args)), kwargs)
                number[node] = len(steps)
                steps.append(step)
            return number[node]

        for node, made in alive.items():
            if made and node.name != "cells":
                step_of(node)
        kept, summed, n_bytes = list[list[tuple[Node, int]]]([[]]), list[Deferred](), 0
        for node, made in alive.items():
            large = list[tuple[Node, int]]()
            for one in made if node.name != "cells" else ():
                if one.along is None:
                    summed.append(one)
                    is_of_columns = (
                        node.name in ("sweep", "spmm", "residual_sums", "normal_equations") and one.ndim == 2
                    )
                    n_bytes += one.meta.nbytes * (self._placed[0].observed.shape[1] if is_of_columns else 1)
                elif one.meta.nbytes * len(one) > LARGE * len(self._groups):
                    large.append((node, one.place))
                else:
                    kept[0].append((node, one.place))
            kept.append(large)
        kept = [of_bundle for of_bundle in kept if of_bundle]
        if not kept and not summed:
            return
        program = Program(
            tuple(steps),
            tuple(tuple(Slot(number[node], place) for node, place in of_bundle) for of_bundle in kept),
            tuple(Slot(number[one.node], one.place) for one in summed),
        )
        self._run(program, bundles, placed, kept, summed, n_bytes > LARGE)
        for node in alive:
            if node.name != "cells":
                node.forget()
        if self._is_cut_due():
            self.cut()

    def _run(
        self, program: Program, inputs: Sequence[Bundle], placed: Sequence[DaskCells],
        kept: Sequence[Sequence[tuple[Node, int]]], summed: Sequence[Deferred], has_large_sums: bool,
    ) -> None:  # fmt: skip
        n = len(self._groups)
        groups = [tuple(cells.groups[number] for cells in placed) for number in range(n)]
        what = next((step.name for step in program.steps if step.name in PASSES), "update")
        given = [bundle.files if bundle.futures is None else bundle.futures for bundle in inputs]
        done = self._map(what, run_program, groups, [program] * n, *given)
        for place, of_bundle in enumerate(kept):
            self._bundles.add(Bundle(of_bundle, self._map("keep", take, done, [place] * n)))
        if not summed:
            return
        sums = self._map("sums", take, done, [len(kept)] * n)
        while has_large_sums and len(sums) > 1:
            sums += [None] * (-len(sums) % FAN_IN)
            sums = self._map("add", add, *(sums[place::FAN_IN] for place in range(FAN_IN)))
        results = self._gather(sums, done)
        for one, total in zip(summed, results[0] if len(results) == 1 else add(*results), strict=True):
            one.node.values[one.place] = total if total is None else total.astype(one.dtype, copy=False)

    def _map(self, what: str, function: Any, *iterables: Any) -> list[Any]:
        """Tasks with a name for people. If there is one for each group, neighbours go to the same worker, which
        has their cells in memory, as long as there is such a worker: another one would read them again."""
        self._counter += 1
        of = f"iteration {self.iteration}-{self._scratch.name[9:]}-{self._counter}"
        n, futures = len(iterables[0]), list[Any]()
        try:
            homes = self._homes() if n == len(self._groups) else {}
            cuts = [0, *np.cumsum(list(homes.values())).tolist()] if homes else [0, n]
            for home, start, stop in zip(homes or (None,), cuts[:-1], cuts[1:], strict=True):
                keys = [f"{what}-{of}-{number}" for number in range(start, stop)]
                given = [one[start:stop] for one in iterables]
                where: dict[str, Any] = {} if home is None else {"workers": [home], "allow_other_workers": True}
                futures += self.client.map(function, *given, pure=False, key=keys, **where) if keys else []
        except Exception:
            self._check_scheduler()
            raise
        return futures

    def _homes(self) -> dict[str, int]:
        """How many groups each worker should have, by its threads; asked for again when it may have changed."""
        now = perf_counter()
        if now - self._asked > SECONDS_BETWEEN_HOMES:
            threads = sorted(self.client.nthreads().items())
            ends = np.cumsum([0, *(count for _, count in threads)])
            places = np.round(ends / max(ends[-1], 1) * len(self._groups)).astype(int)
            self._asked, self._home = (
                now,
                dict(zip([name for name, _ in threads], np.diff(places).tolist(), strict=True)),
            )
        return self._home

    def _gather(self, wanted: Sequence[Any], watched: Sequence[Any] = ()) -> list[Any]:
        """Results of tasks; those of lost workers are computed again. The number of `watched` ones shows progress."""
        from distributed import KilledWorker

        watched, n_tries = watched or wanted, 0
        while True:
            loop: Any = self.client.loop
            getting = asyncio.run_coroutine_threadsafe(
                self.client.gather(list(wanted), direct=self._cluster is not None, asynchronous=True),
                loop.asyncio_loop,
            )
            try:
                return self._wait_for(getting, watched)
            except KilledWorker as error:  # it was on too many workers that were lost, which need not be its fault
                n_tries += 1
                if n_tries > MAX_RETRIES:
                    raise EngineError(
                        "Workers must stay, and have room for their tasks.",
                        found=f"that workers were lost whenever they had the task {str(error.task)!r}",
                        remedy="Give each more memory, or start more of them, with fewer threads each. "
                        + self._how_to_go_on,
                        parameter="engine",
                    ) from None
                self.client.retry(list(wanted))
            except FileNotFoundError as error:
                raise EngineError(
                    "All workers must see the folder in which a fit keeps its files.",
                    found=f"a worker that does not see {error.filename!r}",
                    remedy=f"Start workers that share {str(self._scratch.parent)!r}. {self._how_to_go_on}",
                    parameter="engine",
                ) from None
            except Exception:
                self._check_scheduler()
                raise
            finally:
                getting.cancel()

    def _wait_for(self, getting: Any, watched: Sequence[Any]) -> list[Any]:
        """What is being gathered; meanwhile progress is shown, and somebody must be working."""
        last_seen = looked = perf_counter()
        while True:
            done, _ = concurrent_futures.wait([getting], SECONDS_PER_LOOK)
            if done:
                results: list[Any] = getting.result()
                return results
            if self.on_progress is not None:
                self.on_progress(sum(future.done() for future in watched), len(watched))
            now = perf_counter()
            if now - looked > min(4 * SECONDS_PER_LOOK, SECONDS_WITHOUT_WORKERS / 4):
                looked = now
                last_seen = now if self.client.nthreads() else last_seen
                if now - last_seen > SECONDS_WITHOUT_WORKERS:
                    raise self._without_workers()

    # -----------------------------------------------------------------------------------------------------------------
    # state in files

    def _is_cut_due(self) -> bool:
        since = perf_counter() - self._last_cut
        return since > max(SECONDS_PER_CUT, self._time_of_cut / SHARE_OF_CUTS) or self._bytes > BYTES_PER_CUT

    def cut(self) -> None:
        """Write all arrays of rows to files, from which tasks go on: what came before is forgotten."""
        started = perf_counter()
        self._counter += 1
        bundles = [(bundle, places) for bundle in self._bundles if (places := bundle.places())]
        unwritten = [(bundle, places) for bundle, places in bundles if bundle.futures is not None]
        named = [
            (bundle, {place: str(self._scratch / f"cut-{self._counter}-{number}-{place}") for place in places})
            for number, (bundle, places) in enumerate(unwritten)
        ]
        for (bundle, _), files in zip(unwritten, self._write(named, lasting=False), strict=True):
            bundle.files, bundle.futures = files, None
            self._scratch_files |= {file.path for of_group in files for file in of_group.values()}
        # Files of arrays that nobody has any more: no task needs them again, but some that were begun for nothing, when
        # a worker was lost, may still read them. So they stay until the next time.
        needed = {files[place].path for bundle, places in bundles for files in bundle.files for place in places}
        for path in self._unneeded - needed:
            Path(path).unlink(missing_ok=True)
        self._scratch_files -= self._unneeded - needed
        self._unneeded = self._scratch_files - needed - self._of_cells
        self._files = {key: one for key, one in self._files.items() if one[1].path in self._of_cells}
        self._last_cut, self._bytes = perf_counter(), 0
        self._time_of_cut = self._last_cut - started

    def _write(self, named: Sequence[tuple[Bundle, dict[int, str]]], lasting: bool) -> list[list[dict[int, ArrayFile]]]:
        """Files of arrays of bundles, given where each is to be written, but for the number of the group."""
        futures = list[Any]()
        for bundle, paths in named:
            of_groups = [
                {place: f"{path}.{number}" for place, path in paths.items()} for number in range(len(self._groups))
            ]
            given = bundle.files if bundle.futures is None else bundle.futures
            futures += self._map("write", write_pieces, given, of_groups, [lasting] * len(of_groups))
        files, n = self._gather(futures) if futures else [], len(self._groups)
        return [files[start : start + n] for start in range(0, len(files), n)]

    def store(self, arrays: Mapping[str, Any], folder: Path) -> dict[str, list[ArrayFile]]:
        self.flush()
        stored, named = dict[str, list[ArrayFile]](), dict[Bundle, dict[int, str]]()
        for name, array in arrays.items():
            if self._is_remote(array) and array.node.name != "cells":
                bundle, place = array.node.kept[array.place]
                named.setdefault(bundle, {})[place] = str(folder / name)
            else:
                stored[name] = [write_array(self.to_numpy(array), folder / name)]
        for paths, groups in zip(named.values(), self._write(list(named.items()), lasting=True), strict=True):
            for place, path in paths.items():
                stored[Path(path).name] = [files[place] for files in groups]
        return stored

    def restore(self, pieces: Sequence[ArrayFile], along: Along = None) -> Any:
        if along is None or along is Side.COLUMNS:
            return super().restore(pieces, along)
        self._last_cut = -np.inf  # so that tasks do not need the pieces for long
        sample = np.ones((1, *pieces[0].shape[1:]), pieces[0].dtype)
        return self._part(pieces, self._placed[0] if along == "cells" else along, sample)


class DeferredDraws:
    """As `RowDraws`: what it draws first is for rows, and is drawn by the workers."""

    def __init__(self, engine: DaskEngine, seed: int) -> None:
        self._engine, self._seed, self._drawn = engine, seed, 0

    def __getattr__(self, kind: str) -> Any:
        def draw(*args: Any, size: Any = None) -> Any:
            *args, size = args if size is None else (*args, size)  # type: ignore[assignment]
            stream, self._drawn = self._drawn, self._drawn + 1
            if stream:
                return getattr(RowDraws(self._seed, stream=stream), kind)(*args, size=size)
            node = Node("draw", (kind, self._seed, stream, size[1], tuple(args)))
            return self._engine._remote(node, [(Side.ROWS, np.ones((1, size[1])))])[0]

        return draw


def local_cluster(n_workers: int, memory_limit: Any = "auto") -> Any:
    """A cluster of processes of this machine, one thread each; nothing is spilled to disk: cells are read again."""
    import dask
    import distributed

    settings: dict[str, Any] = {f"distributed.worker.memory.{name}": False for name in ("target", "spill")}
    # A worker near its limit would be paused, and wait for room that nothing makes; beyond it, it is started again.
    settings["distributed.worker.memory.pause"] = False
    # By default every array is a mapping of its own, whose pages the system clears again and again.
    settings["distributed.nanny.pre-spawn-environ"] = {
        **dask.config.get("distributed.nanny.pre-spawn-environ"),
        "MALLOC_TRIM_THRESHOLD_": str(1 << 27), "MALLOC_MMAP_THRESHOLD_": str(1 << 25),
    }  # fmt: skip
    settings["distributed.worker.profile.enabled"] = False  # which looks at all threads a hundred times a second
    settings["distributed.scheduler.allowed-failures"] = MAX_LOSSES  # tasks are hardly to blame for lost workers
    with dask.config.set(settings):
        return distributed.LocalCluster(
            n_workers=n_workers,
            threads_per_worker=1,
            processes=True,
            memory_limit=memory_limit,
            dashboard_address="127.0.0.1:0",  # any port that is free
            silence_logs=logging.CRITICAL,
        )


def _flat(values: Iterable[Any]) -> list[Any]:
    return [one for value in values for one in (_flat(value) if isinstance(value, list | tuple) else [value])]


def _meta(value: Any) -> Any:
    if isinstance(value, Deferred):
        return value.meta
    return type(value)(map(_meta, value)) if type(value) in (list, tuple) else value


def _is_row_by_row(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether an operation treats the entries along the first axis independently, to the last bit."""
    if name in ("sum", "mean", "max", "min", "any", "all"):
        return kwargs.get("axis") in (1, -1)
    if name == "concat":
        return kwargs.get("axis") in (1, -1)
    if name == "getitem":
        return type(args[1]) is tuple and args[1][0] == slice(None)
    return name not in ("matmul", "stack", "reshape", "flip", "cumsum", "sort", "linalg")


__all__ = ["DaskCells", "DaskEngine", "Deferred", "local_cluster"]
