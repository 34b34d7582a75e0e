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

import shutil
import tempfile
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from time import perf_counter
from typing import Any, ClassVar, Self

import numpy as np

from halfseen.array_files import ArrayFile, mapped_file, temporary_folder, write_array
from halfseen.arrays import Array
from halfseen.engines.base import Along, Engine, RidgePenalty, Rule, Side, Sums
from halfseen.engines.cluster import ERRORS_OF_FOLDERS, MAX_LOSSES_OF_FIT, Workers, error_of_folder
from halfseen.engines.cpu import BYTES_OF_EQUATIONS, CpuEngine, noise_of
from halfseen.engines.dask_tasks import (
    BYTES_PER_CELL,
    FAN_IN,
    CellsOf,
    GroupFile,
    Home,
    Kept,
    PartOf,
    Program,
    Slot,
    Step,
    WholeOf,
    add,
    forget_all,
    numpy_function,
    run_by_shard,
    run_program,
    take,
    write_pieces,
)  # fmt: skip
from halfseen.engines.deferred import Bundle, DaskCells, Deferred, DeferredDraws, Node, flat, is_row_by_row, meta_of
from halfseen.engines.threads import Block, blocks_of_rows, shard_blocks
from halfseen.kernels import steps
from halfseen.observed import Observed

#: Groups per thread of the workers, at least; and by how much the busiest may have more than its share: more groups
#: balance better, fewer cost less.
GROUPS_PER_THREAD, IMBALANCE = 2, 1.1
#: Shards of a group at most.
SHARDS_PER_GROUP = 8
#: Share of a worker's memory that a task may need for its own.
SHARE_OF_TASK = 0.1
#: Arrays of the client that are larger are read from a file by the tasks, not sent with them.
LARGEST_SENT = 1 << 12
#: Sums of a group that are larger are added by the workers, not by the client; those of an operation
#: that are larger are kept apart from others, so that they are dropped when nobody needs them any more.
LARGE = 1 << 20
#: Seconds between cuts at least; and the largest share of the time that they may take.
SECONDS_PER_CUT, SHARE_OF_CUTS = 1.0, 0.02
#: Seconds between questions which workers there are.
SECONDS_BETWEEN_LOOKS = 2.0
#: Bytes of the client's arrays in files, since the last cut, at most.
BYTES_PER_CUT = 4 << 30

#: Operations that tasks are named after.
PASSES = ("sweep", "sddmm", "conjugate_gradients", "residual_sums", "normal_equations")
#: Columns that a thread of the client updates at a time.
COLUMNS_PER_BLOCK = 1024


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
        self._workers = Workers(max_losses=MAX_LOSSES_OF_FIT)
        self._placed: list[DaskCells] = []
        self._pending: list[Node] = []
        self._bundles: weakref.WeakSet[Bundle] = weakref.WeakSet()
        self._homes: list[Any] = []
        self._files: dict[int, tuple[weakref.ref[Array], ArrayFile]] = {}
        self._of_cells: set[str] = set()
        self._scratch_files: set[str] = set()
        self._unneeded: set[str] = set()
        self._counter = 0

    # -----------------------------------------------------------------------------------------------------------------
    # the cluster, and what it reads

    def __enter__(self) -> Self:
        import dask

        self._last_cut, self._time_of_cut, self._bytes = perf_counter(), 0.0, 0
        self._workers.n_workers = self._local.n_threads
        self._workers.how_to_go_on = (
            "With `checkpoint=`, the same call would go on from where it was."
            if self.folder is None
            else "The same call goes on from its last checkpoint."
        )
        with ExitStack() as stack:
            stack.enter_context(self._local)
            parent = self.folder or dask.config.get("temporary-directory", None)
            try:
                self._scratch = temporary_folder(parent)
                stack.callback(shutil.rmtree, self._scratch, ignore_errors=True)
                stack.enter_context(self._workers)
                self._workers.check_folder(self._scratch)
            except OSError as error:
                if error.errno not in ERRORS_OF_FOLDERS:
                    raise
                folder = Path(tempfile.gettempdir() if parent is None else parent)
                raise error_of_folder(error, folder) from None
            if not self._workers.is_local:
                stack.callback(self._workers.call, forget_all)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._pending.clear()
        self._files.clear()
        self._placed.clear()
        self._bundles.clear()
        self._homes = []
        self._stack.close()

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
        workers = self._workers.client.scheduler_info(n_workers=-1)["workers"].values()
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
            try:
                file = write_array(array, self._scratch / f"array-{self._counter}", lasting=False)
            except OSError as error:
                raise error_of_folder(error, self._scratch) from None
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
        return self.remote(Node("part", (PartOf(tuple(pieces), along),)), [(along, meta)])[0]

    def row_draws(self, seed: int) -> Any:
        return DeferredDraws(self, seed)

    def record(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """A function of NumPy; computed at once where nothing is `Deferred`."""
        given = [*flat(args), *kwargs.values()]
        alongs = {one.along for one in given if isinstance(one, Deferred)}
        function = numpy_function(name)
        if not alongs:
            return function(*args, **kwargs)
        alongs.discard(None)
        if len(alongs) > 1:
            raise NotImplementedError(f"{name} of rows and cells")
        with np.errstate(all="ignore"):
            meta = np.asarray(function(*map(meta_of, args), **{key: meta_of(value) for key, value in kwargs.items()}))
        if not alongs:
            return Deferred(self, None, Node(name, args, kwargs), 0, meta)
        if meta.ndim == 0 or not is_row_by_row(name, args, kwargs):
            raise NotImplementedError(f"{name} of rows or cells: sums over them are those of `map`")
        return self.remote(Node("numpy", (name, *args), kwargs), [(alongs.pop(), meta)])[0]

    def remote(self, node: Node, arrays: Sequence[tuple[Any, Array]]) -> list[Deferred]:
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
        *results, totals = self.remote(
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
            terms = rule(self._without_sums(params), *map(meta_of, arrays))
        n_totals = len(terms.totals) + n_levels * len(terms.by_level)
        metas = [(along, np.asarray(array)[:1]) for array in terms.arrays]
        cells = along if isinstance(along, DaskCells) else None
        node = Node("map", (cells, rule, params, n_levels, *arrays))
        *results, totals = self.remote(node, [*metas, (None, np.ones(n_totals))])
        return tuple(results), totals if n_totals else None

    def _sum(self, node: Node, meta: Array) -> Any:
        """A sum over rows, in the precision of one entry."""
        return self.remote(node, [(None, meta)])[0]

    def column_sums(self, factor: Any, shards: Sequence[slice] | None = None) -> Any:
        if self._is_remote(factor):
            return self._sum(Node("column_sums", (factor,)), np.ones(factor.shape[1], factor.dtype))
        return self._local.column_sums(self._without_sums(factor))

    def gram(self, factor: Any, shards: Sequence[slice] | None = None) -> Any:
        if self._is_remote(factor):
            return self._sum(Node("gram", (factor,)), np.ones((factor.shape[1],) * 2, factor.dtype))
        return self._local.gram(self._without_sums(factor))

    def sddmm(self, cells: DaskCells, W: Any, H: Any) -> Any:
        return self.remote(Node("sddmm", (cells, W, H)), [(cells, np.ones(1, W.dtype))])[0]

    def spmm(self, cells: DaskCells, c: Any, far: Any, side: Side) -> Any:
        along = Side.ROWS if side is Side.ROWS else None
        node = Node("spmm", (cells, c, far, side))
        (sums,) = self.remote(node, [(along, np.ones((1, far.shape[1]), far.dtype))])
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
            meta = np.asarray(function(params, *map(meta_of, arrays)))
        node = Node("over_rows", (along if isinstance(along, DaskCells) else None, summed, function, params, *arrays))
        return self.remote(node, [(None if summed else along, meta)])[0]

    def newton_step(
        self, cells: DaskCells, slope: Any, curvature: Any, near: Any, far: Any, penalty: RidgePenalty, side: Side
    ) -> Any:
        if side is Side.ROWS:
            node = Node("newton_step", (cells, slope, curvature, near, far, penalty, side))
            return self.remote(node, [(Side.ROWS, near.meta)])[0]
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
            rows, total = self.remote(node, [kind, (None, np.ones(1))])
            return rows if side is Side.ROWS else self._value(rows), total
        near, gram, l2 = map(self._without_sums, (near, gram, l2))
        kinds, noise = [(None, np.ones((1, size))) for size in (near.shape[1], 2)], noise_of(near.dtype)
        sums, sizes = map(self._value, self.remote(Node("residual_sums", (cells, curvature, pull, near, far)), kinds))
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
        self._workers.threads(SECONDS_BETWEEN_LOOKS)  # which tells of lost workers
        n = len(self._groups)
        groups = [tuple(cells.groups[number] for cells in placed) for number in range(n)]
        what = next((step.name for step in program.steps if step.name in PASSES), "update")
        given = [bundle.files if bundle.futures is None else bundle.futures for bundle in inputs]
        self._homes = self._homes or self._map("home", Home, [one.cells.stop - one.cells.start for one in self._groups])
        done = self._map(what, run_program, groups, [program] * n, self._homes, *given)
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
        """Tasks with a name for people."""
        self._counter += 1
        of = f"iteration {self.iteration}-{self._scratch.name[9:]}-{self._counter}"
        keys = [f"{what}-{of}-{number}" for number in range(len(iterables[0]))]
        try:
            futures: list[Any] = self._workers.client.map(function, *iterables, pure=False, key=keys)
        except Exception:
            self._workers.check_scheduler()
            raise
        return futures

    def _gather(self, wanted: Sequence[Any], watched: Sequence[Any] = (), lasting: bool = False) -> list[Any]:
        """Results of tasks. The shards of `watched` ones, a task for each group, show progress."""
        self._workers.on_progress, self._workers.on_loss = self.on_progress, self.on_loss
        sizes = [len(group.shards) for group in self._groups]
        return self._workers.gather(wanted, watched, sizes, None if lasting else self._scratch)

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
        files, n = self._gather(futures, lasting=lasting) if futures else [], len(self._groups)
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


__all__ = ["DaskEngine"]
