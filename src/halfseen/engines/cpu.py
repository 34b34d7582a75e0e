"""The processor: compiled loops over blocks of rows, handed out to threads.

The blocks depend on the data alone, every block writes rows of its own, and sums over blocks are added in their order:
so the numbers are the same, to the last bit, whatever the number of threads.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from threading import Lock
from typing import Any, Self

import numpy as np

from halfseen import kernels
from halfseen.arrays import Array
from halfseen.engines import blas
from halfseen.engines.base import Descent, Engine, Placed, Pulled, Side
from halfseen.engines.blocks import Block, blocks_of
from halfseen.engines.threads import Threads
from halfseen.observed import Observed

#: Cells a block: large enough that starting a block costs nothing, small enough that its arrays stay in the cache.
CELLS_PER_BLOCK = 1 << 16
#: Bytes a chunk of element-wise work: below this, threads spend their time waiting for the interpreter.
BYTES_PER_CHUNK = 1 << 19
#: Entries of a factor whose products are taken at a time: large enough for BLAS to be at its best.
ENTRIES_PER_PRODUCT = 1 << 18


@dataclass(frozen=True)
class Order:
    """The cells as one side walks them: pointers, indices into the far factor, and the way from row order (or None)."""

    indptr: Array
    indices: Array
    from_row_order: Array | None = None

    @cached_property
    def blocks(self) -> list[Block]:
        """Consecutive rows with about `CELLS_PER_BLOCK` cells."""
        return blocks_of(self.indptr, CELLS_PER_BLOCK)


class CpuCells(Placed):
    """What was seen, in memory: nothing is copied, and the column order is made only if the columns are walked."""

    def __init__(self, observed: Observed, sides: Iterable[Side]) -> None:
        self.observed = observed
        self.y = observed.values
        self.weights = observed.weights
        self.firsts = observed.firsts if observed.unseen == "zero" else None
        self.orders = {side: self._order(side) for side in {Side.ROWS, *sides}}

    @cached_property
    def rows(self) -> Array:
        """The row of every cell."""
        return self.observed.row_of_cell()

    def _order(self, side: Side) -> Order:
        if side is Side.ROWS:
            return Order(self.observed.indptr, self.observed.indices)
        columns = self.observed.columns
        return Order(columns.indptr, columns.rows, columns.order)


class CpuEngine(Engine):
    """Runs on the threads that `n_jobs` asks for; BLAS is held to one, because its sums depend on how many it uses."""

    name = "cpu"
    digamma_and_log_gamma = staticmethod(kernels.digamma_and_log_gamma)

    def __init__(self, n_jobs: int | None) -> None:
        self._threads = Threads(n_jobs)

    @property
    def n_threads(self) -> int:
        return self._threads.count

    def __enter__(self) -> Self:
        blas.hold()
        return self

    def __exit__(self, *_: object) -> None:
        self._threads.__exit__()
        blas.release()

    def place(self, observed: Observed, *sides: Side) -> CpuCells:
        return CpuCells(observed, sides)

    def place_factor(self, factor: Array) -> Array:
        return np.ascontiguousarray(factor)

    def fetch(self, array: Array) -> Array:
        return array

    def dots(self, cells: Placed, W: Array, H: Array, into: Array | None = None) -> Array:
        order: Order = cells.orders[Side.ROWS]  # type: ignore[attr-defined]
        x = np.empty(order.indices.size, W.dtype) if into is None else into

        def block(part: Block) -> None:
            rows, pointers, seen = part
            kernels.dots(order.indptr[pointers], order.indices[seen], W[rows], H, x[seen])

        self._threads.all(block, order.blocks)
        return x

    def spread(self, cells: Placed, c: Any, far: Array, side: Side) -> Any:
        order: Order = cells.orders[side]  # type: ignore[attr-defined]
        if np.isscalar(c) and c == 0:
            return 0.0
        out = np.empty((order.indptr.size - 1, far.shape[1]), far.dtype)

        def block(part: Block) -> None:
            rows, pointers, seen = part
            kernels.spread(order.indptr[pointers], order.indices[seen], _cut(c, order, seen, far.dtype), far, out[rows])

        self._threads.all(block, order.blocks)
        return out

    def spread_both(self, cells: Placed, c: Any, d: Any, far: Array, side: Side) -> tuple[Any, Any]:
        if np.isscalar(c) or np.isscalar(d):
            return super().spread_both(cells, c, d, far, side)
        order: Order = cells.orders[side]  # type: ignore[attr-defined]
        of_c, of_d = (np.empty((order.indptr.size - 1, far.shape[1]), far.dtype) for _ in range(2))

        def block(part: Block) -> None:
            rows, pointers, seen = part
            both = (_cut(array, order, seen, far.dtype) for array in (c, d))
            kernels.spread_both(order.indptr[pointers], order.indices[seen], *both, far, of_c[rows], of_d[rows])

        self._threads.all(block, order.blocks)
        return of_c, of_d

    def newton(
        self, cells: Placed, slope: Array, curvature: Array, near: Array, far: Array, pulled: Pulled, side: Side
    ) -> Array:
        order: Order = cells.orders[side]  # type: ignore[attr-defined]
        out = np.empty_like(near)
        pulls = [array.astype(near.dtype) for array in pulled]

        def block(part: Block) -> None:
            rows, pointers, seen = part
            s, c = (_cut(array, order, seen, far.dtype) for array in (slope, curvature))
            kernels.newton(order.indptr[pointers], order.indices[seen], s, c, near[rows], far, *pulls, out[rows])

        self._threads.all(block, order.blocks)
        return out

    def dots_at(self, cells: Placed, which: Array, W: Array, H: Array) -> Array:
        x = np.empty(which.size, W.dtype)
        kernels.dots_at(cells.rows[which], cells.observed.indices[which], W, H, x)  # type: ignore[attr-defined]
        return x

    def descend(self, cells: Placed, which: Array, slope: Array, W: Array, H: Array, descent: Descent) -> None:
        rows, columns = cells.rows[which], cells.observed.indices[which]  # type: ignore[attr-defined]
        sides = zip((W, H), descent.seen, descent.past, descent.pulled, strict=True)
        of_sides = [(F, seen, past, *(a.astype(F.dtype) for a in pulled)) for F, seen, past, pulled in sides]
        kernels.descend(rows, columns, slope, descent.rate, *of_sides[0], *of_sides[1])

    def each(self, rule: Callable[..., Any], *arrays: Array, into: tuple[Array | None, ...] = ()) -> Any:
        alone = False

        def without_sums(*parts: Array) -> tuple[Any, ...]:
            nonlocal alone
            results = rule(*parts)
            alone = not isinstance(results, tuple)
            return (0.0, results) if alone else (0.0, *results)

        _, *results = self.tally(without_sums, *arrays, into=into)
        return results[0] if alone else tuple(results)

    def tally(self, rule: Callable[..., Any], *arrays: Array, into: tuple[Array | None, ...] = ()) -> tuple[Any, ...]:
        outs: list[Any] = []
        whose_turn = Lock()

        def chunk(part: slice) -> Any:
            sums, *results = rule(*(array[part] for array in arrays))
            with whose_turn:
                if not outs:  # who is ready first makes room for all
                    wishes = into + (None,) * (len(results) - len(into))
                    outs.extend(_room_for(result, arrays[0], out) for result, out in zip(results, wishes, strict=True))
            _write(results, outs, part)
            return sums

        sums = self._threads.all(chunk, _chunks(arrays[0]))
        return np.sum(sums, axis=0, dtype=np.float64), *outs

    def total(self, rule: Callable[..., Any], *arrays: Array) -> float:
        def chunk(part: slice) -> float:
            return float(np.sum(rule(*(array[part] for array in arrays)), dtype=np.float64))

        return float(sum(self._threads.all(chunk, _chunks(arrays[0]))))

    def gram(self, factor: Array) -> Array:
        grams = self._threads.all(lambda part: factor[part].T @ factor[part], _chunks(factor, ENTRIES_PER_PRODUCT))
        return reduce(np.add, grams)

    def column_sums(self, factor: Array) -> Array:
        return factor.sum(axis=0, dtype=np.float64).astype(factor.dtype)


def _cut(c: Any, order: Order, seen: slice, dtype: np.dtype[Any]) -> Array:
    """The block's part of a cell array, brought from row order into the order that is walked."""
    if np.isscalar(c):
        return np.full(seen.stop - seen.start, c, dtype)
    if order.from_row_order is None:
        part: Array = c[seen]
        return part
    part = np.empty(seen.stop - seen.start, c.dtype)
    kernels.gather(c, order.from_row_order[seen], part)
    return part


def _chunks(array: Array, entries: int | None = None) -> list[slice]:
    """Slices of the first axis with about `BYTES_PER_CHUNK` (or so many entries) each, and at least one slice."""
    step = max(1, (entries or BYTES_PER_CHUNK // array.itemsize) // max(1, int(np.prod(array.shape[1:]))))
    return [slice(start, start + step) for start in range(0, max(1, len(array)), step)]


def _room_for(result: Any, like: Array, out: Array | None) -> Any:
    """Where a result goes: nowhere if it is one number for all, else `out`, else a new array."""
    if np.isscalar(result):
        return result
    return np.empty((len(like), *result.shape[1:]), result.dtype) if out is None else out


def _write(results: Sequence[Any], outs: list[Any], part: slice) -> None:
    for result, out in zip(results, outs, strict=True):
        if not np.isscalar(out) and result is not out:
            out[part] = result


def kernel_folder() -> str | None:
    """Where compiled kernels are kept between processes; None if there is no place for them."""
    folder: str | None = kernels.dots._cache.cache_path  # type: ignore[attr-defined]
    return folder
