"""What the workers of the Dask engine do: programs of operations on groups of shards, and sums of what they give."""

import operator
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from halfseen.array_files import ArrayFile, write_array
from halfseen.arrays import Array
from halfseen.engines.base import RowDraws, Rule, Side
from halfseen.engines.cpu import CpuCells, CpuEngine
from halfseen.engines.threads import Block, tree_sum
from halfseen.observed import Observed

#: Share of a worker's memory that may hold cells between tasks.
SHARE_OF_CACHE = 0.15
#: Bytes per cell while a task works on them, about: both orders, values and the coefficients of a pass.
BYTES_PER_CELL = 48
#: Sums of groups that one task adds: a power of two, so that the tree is the same.
FAN_IN = 4


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


class Home:
    """Where the cells of a group are in memory: tasks that take it go to the worker that has it, as a rule.

    The scheduler weighs what must be sent to another worker: it is told the size of the cells, which would be read
    again there.
    """

    def __init__(self, n_cells: int) -> None:
        self.n_cells = n_cells

    def __sizeof__(self) -> int:
        return BYTES_PER_CELL * self.n_cells


def run_program(
    groups: Sequence[GroupFile], program: Program, _: Home, *bundles: Any
) -> tuple[list[Any], ...]:  # fmt: skip
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
