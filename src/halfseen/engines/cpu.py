"""The CPU engine: compiled loops over blocks of rows, distributed over threads.

The blocks depend on the data alone, every block writes rows of its own, and sums over blocks are added in their order:
so the numbers are the same, to the last bit, whatever the number of threads.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property, reduce
from threading import Lock
from typing import Any, Self

import numpy as np

from halfseen.arrays import Array
from halfseen.engines.base import AdagradState, Engine, RidgePenalty, Side
from halfseen.engines.threads import Block, Threads, hold_blas, release_blas, row_blocks
from halfseen.kernels import cells as cell_kernels
from halfseen.kernels import special, steps
from halfseen.observed import Observed

#: Cells per block: large enough that starting a block costs nothing, small enough that its arrays stay in the cache.
CELLS_PER_BLOCK = 1 << 16
#: Bytes per chunk of element-wise work: below this, threads spend their time waiting for the interpreter.
BYTES_PER_CHUNK = 1 << 19
#: Entries of a factor per matrix product: large enough for BLAS to be at its best.
ENTRIES_PER_PRODUCT = 1 << 18


@dataclass(frozen=True)
class Order:
    """The cells in row or column order: pointers, indices into the far factor, permutation from row order (or None)."""

    indptr: Array
    indices: Array
    from_row_order: Array | None = None

    @cached_property
    def blocks(self) -> list[Block]:
        """Consecutive rows with about `CELLS_PER_BLOCK` cells."""
        return row_blocks(self.indptr, CELLS_PER_BLOCK)

    def take(self, c: Any, part: slice, dtype: np.dtype[Any]) -> Array:
        """A block's part of a cell array, permuted from row order into this order."""
        if np.isscalar(c):
            return np.full(part.stop - part.start, c, dtype)
        if self.from_row_order is None:
            taken: Array = c[part]
            return taken
        taken = np.empty(part.stop - part.start, c.dtype)
        cell_kernels.gather(c, self.from_row_order[part], taken)
        return taken


class CpuCells:
    """The observed cells in memory: nothing is copied, and the column order is made only if columns are asked for."""

    def __init__(self, observed: Observed, sides: Iterable[Side]) -> None:
        self.observed = observed
        self.y = observed.values
        self.weights = observed.weights
        self.is_first_at_cell = observed.is_first_at_cell if observed.unseen == "zero" else None
        self.orders = {Side.ROWS: Order(observed.indptr, observed.indices)}
        if Side.COLUMNS in sides:
            columns = observed.columns
            self.orders[Side.COLUMNS] = Order(columns.indptr, columns.rows, columns.order)

    @cached_property
    def rows(self) -> Array:
        """The row of every cell."""
        return self.observed.row_of_cell()


class CpuEngine(Engine[CpuCells]):
    """Runs on `n_jobs` threads; BLAS is limited to one, because its sums depend on their number."""

    name = "cpu"
    digamma_and_log_gamma = staticmethod(special.digamma_and_log_gamma)

    def __init__(self, n_jobs: int | None) -> None:
        self._threads = Threads(n_jobs)

    @property
    def n_threads(self) -> int:
        return self._threads.count

    def __enter__(self) -> Self:
        hold_blas()
        return self

    def __exit__(self, *_: object) -> None:
        self._threads.__exit__()
        release_blas()

    def place(self, observed: Observed, *sides: Side) -> CpuCells:
        return CpuCells(observed, sides)

    def asarray(self, factor: Array) -> Array:
        return np.ascontiguousarray(factor)

    def to_numpy(self, array: Array) -> Array:
        return array

    def sddmm(self, cells: CpuCells, W: Array, H: Array, into: Array | None = None) -> Array:
        order = cells.orders[Side.ROWS]
        x = np.empty(order.indices.size, W.dtype) if into is None else into

        def block(part: Block) -> None:
            rows, pointers, seen = part
            cell_kernels.sddmm(order.indptr[pointers], order.indices[seen], W[rows], H, x[seen])

        self._threads.all(block, order.blocks)
        return x

    def spmm(self, cells: CpuCells, c: Any, far: Array, side: Side) -> Any:
        order = cells.orders[side]
        if np.isscalar(c) and c == 0:
            return 0.0
        out = np.empty((order.indptr.size - 1, far.shape[1]), far.dtype)

        def block(part: Block) -> None:
            rows, pointers, seen = part
            taken = order.take(c, seen, far.dtype)
            cell_kernels.spmm(order.indptr[pointers], order.indices[seen], taken, far, out[rows])

        self._threads.all(block, order.blocks)
        return out

    def spmm_both(self, cells: CpuCells, c: Any, d: Any, far: Array, side: Side) -> tuple[Any, Any]:
        if np.isscalar(c) or np.isscalar(d):
            return super().spmm_both(cells, c, d, far, side)
        order = cells.orders[side]
        of_c, of_d = (np.empty((order.indptr.size - 1, far.shape[1]), far.dtype) for _ in range(2))

        def block(part: Block) -> None:
            rows, pointers, seen = part
            both = (order.take(array, seen, far.dtype) for array in (c, d))
            cell_kernels.spmm_both(order.indptr[pointers], order.indices[seen], *both, far, of_c[rows], of_d[rows])

        self._threads.all(block, order.blocks)
        return of_c, of_d

    def newton_step(
        self,
        cells: CpuCells,
        slope: Array,
        curvature: Array,
        near: Array,
        far: Array,
        penalty: RidgePenalty,
        side: Side,
    ) -> Array:
        order = cells.orders[side]
        out = np.empty_like(near)
        l2, centre, fixed = (array.astype(near.dtype) for array in penalty)

        def block(part: Block) -> None:
            rows, pointers, seen = part
            s, c = (order.take(array, seen, far.dtype) for array in (slope, curvature))
            indptr, indices = order.indptr[pointers], order.indices[seen]
            steps.newton_step(indptr, indices, s, c, near[rows], far, l2, centre, fixed, out[rows])

        self._threads.all(block, order.blocks)
        return out

    def sddmm_at(self, cells: CpuCells, which: Array, W: Array, H: Array) -> Array:
        x = np.empty(which.size, W.dtype)
        cell_kernels.sddmm_at(cells.rows[which], cells.observed.indices[which], W, H, x)
        return x

    def adagrad_step(
        self, cells: CpuCells, which: Array, slope: Array, W: Array, H: Array, state: AdagradState,
        counts: tuple[Array, Array], penalties: tuple[RidgePenalty, RidgePenalty],
    ) -> None:  # fmt: skip
        rows, columns = cells.rows[which], cells.observed.indices[which]
        sides = zip((W, H), counts, (state.rows, state.columns), penalties, strict=True)
        arguments = [(F, count, sums, *(a.astype(F.dtype) for a in penalty)) for F, count, sums, penalty in sides]
        steps.adagrad_step(rows, columns, slope, state.learning_rate, *arguments[0], *arguments[1])

    def map(self, rule: Callable[..., Any], *arrays: Array, into: tuple[Array | None, ...] = ()) -> Any:
        is_single = False

        def without_sums(*parts: Array) -> tuple[Any, ...]:
            nonlocal is_single
            results = rule(*parts)
            is_single = not isinstance(results, tuple)
            return (0.0, results) if is_single else (0.0, *results)

        _, *results = self.map_reduce(without_sums, *arrays, into=into)
        return results[0] if is_single else tuple(results)

    def map_reduce(
        self, rule: Callable[..., Any], *arrays: Array, into: tuple[Array | None, ...] = ()
    ) -> tuple[Any, ...]:
        outs: list[Any] = []
        allocating = Lock()

        def chunk(part: slice) -> Any:
            sums, *results = rule(*(array[part] for array in arrays))
            with allocating:
                if not outs:  # the first thread to finish allocates the results of all; a scalar is its own result
                    targets: tuple[Any, ...] = into + (None,) * (len(results) - len(into))
                    for result, target in zip(results, targets, strict=True):
                        if np.isscalar(result):
                            target = result
                        elif target is None:
                            target = np.empty((len(arrays[0]), *result.shape[1:]), result.dtype)
                        outs.append(target)
            for result, out in zip(results, outs, strict=True):
                if not np.isscalar(out) and result is not out:
                    out[part] = result
            return sums

        sums = self._threads.all(chunk, _chunks(arrays[0]))
        return np.sum(sums, axis=0, dtype=np.float64), *outs

    def sum(self, rule: Callable[..., Any], *arrays: Array) -> float:
        def chunk(part: slice) -> float:
            return float(np.sum(rule(*(array[part] for array in arrays)), dtype=np.float64))

        return float(sum(self._threads.all(chunk, _chunks(arrays[0]))))

    def gram(self, factor: Array) -> Array:
        grams = self._threads.all(lambda part: factor[part].T @ factor[part], _chunks(factor, ENTRIES_PER_PRODUCT))
        return reduce(np.add, grams)

    def column_sums(self, factor: Array) -> Array:
        return factor.sum(axis=0, dtype=np.float64).astype(factor.dtype)


def _chunks(array: Array, entries: int | None = None) -> list[slice]:
    """Slices of the first axis with about `BYTES_PER_CHUNK` (or this many entries) each, and at least one slice."""
    step = max(1, (entries or BYTES_PER_CHUNK // array.itemsize) // max(1, int(np.prod(array.shape[1:]))))
    return [slice(start, start + step) for start in range(0, max(1, len(array)), step)]


def kernel_folder() -> str | None:
    """The folder of the compiled kernels' disk cache; None if there is none."""
    dispatcher: Any = cell_kernels.sddmm
    folder: str | None = dispatcher._cache.cache_path
    return folder
