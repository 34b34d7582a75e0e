"""The CPU engine: compiled loops over blocks of rows, distributed over threads.

The blocks depend on the data alone, every block writes rows of its own, and sums over blocks are added in their order:
so the numbers are the same, to the last bit, whatever the number of threads. Sums over more rows than a shard has are
added by the tree of `threads.tree_sum`, as a cluster adds them.

Where there is a compiled loop for a rule and a likelihood (`kernels.cells`), a pass over the cells is one loop for each
side. Elsewhere it has three stages: the dot products, the rule, and the sums.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from threading import Lock
from typing import Any, Self

import numpy as np

from halfseen.arrays import Array, smallest
from halfseen.engines.base import CANCELLED, AdagradState, Engine, Gradients, RidgePenalty, Rule, Side, Sums
from halfseen.engines.threads import (
    Block,
    Threads,
    blocks_of_rows,
    hold_blas,
    release_blas,
    row_blocks,
    shard_blocks,
    sum_by_shard,
    tree_sum,
)
from halfseen.kernels import cells as cell_kernels
from halfseen.kernels import special, steps
from halfseen.likelihoods import rules
from halfseen.likelihoods.rules import Terms
from halfseen.observed import Observed, stable_order

#: Cells per block: large enough that starting a block costs nothing, small enough that its arrays stay in the cache.
CELLS_PER_BLOCK = 1 << 16
#: Bytes per chunk of element-wise work: below this, threads spend their time waiting for the interpreter.
BYTES_PER_CHUNK = 1 << 19
#: Shards whose cells a block of columns has at most as many of as one block of rows.
SHARDS_PER_BLOCK = 8
#: Bytes of normal equations that a cluster adds at a time, at most.
BYTES_OF_EQUATIONS = 1 << 26
#: Entries of a factor per matrix product: large enough for BLAS to be at its best.
ENTRIES_PER_PRODUCT = 1 << 18


@dataclass(frozen=True, eq=False)
class Order:
    """The cells in row or column order: pointers, indices into the far factor, permutation from row order (or None)."""

    indptr: Array
    indices: Array
    from_row_order: Array | None = None
    shards: tuple[slice, ...] | None = None
    """Rows that no block may join."""

    @cached_property
    def blocks_by_shard(self) -> list[list[Block]]:
        """Consecutive rows with about `CELLS_PER_BLOCK` cells, those of each shard."""
        return [row_blocks(self.indptr, CELLS_PER_BLOCK, rows) for rows in self.shards or (None,)]

    @cached_property
    def blocks(self) -> list[Block]:
        """The blocks of all shards."""
        return [block for blocks in self.blocks_by_shard for block in blocks]

    @cached_property
    def blocks_per_shard(self) -> list[int]:
        return list(map(len, self.blocks_by_shard))

    def take(self, c: Array, part: slice) -> Array:
        """A block's part of a cell array, permuted from row order into this order."""
        if self.from_row_order is None:
            taken: Array = c[part]
            return taken
        taken = np.empty(part.stop - part.start, c.dtype)
        cell_kernels.gather(c, self.from_row_order[part], taken)
        return taken


class CpuCells:
    """The observed cells in memory. Column orders are made when they are first needed."""

    def __init__(self, observed: Observed, shards: Sequence[Block] | None = None) -> None:
        self.observed = observed
        self.y = observed.values
        self.weights = observed.weights
        self.is_first_at_cell = observed.is_first_at_cell if observed.unseen == "zero" else None
        shards = shard_blocks(observed.indptr) if shards is None else shards
        self.row_shards = tuple(rows for rows, _, _ in shards)
        self.cell_shards = tuple(cells for _, _, cells in shards)
        self._rows = Order(observed.indptr, observed.indices, shards=self.row_shards)
        self._ordered: dict[tuple[Order, bool | None], Array] = {}

    def order(self, side: Side) -> Order:
        """All cells in row or in column order."""
        return self._rows if side is Side.ROWS else self._columns

    @cached_property
    def _columns(self) -> Order:
        columns = self.observed.columns
        return Order(columns.indptr, columns.rows, columns.order)

    @cached_property
    def columns_by_shard(self) -> list[Order]:
        """The cells of each shard in column order."""
        if len(self.row_shards) == 1:
            return [self._columns]
        orders = []
        for rows, cells in zip(self.row_shards, self.cell_shards, strict=True):
            indptr, order = stable_order(self.observed.indices[cells], self.observed.shape[1])
            row_of_cell = np.repeat(
                np.arange(rows.start, rows.stop, dtype=self.observed.indices.dtype),
                np.diff(self.observed.indptr[rows.start : rows.stop + 1]),
            )
            orders.append(Order(indptr, row_of_cell[order], order + self.observed.indptr.dtype.type(cells.start)))
        return orders

    @cached_property
    def column_blocks(self) -> list[slice]:
        """Consecutive columns, with more cells per block the more shards there are, so that each has enough of them."""
        counts = sum(np.diff(order.indptr).astype(np.int64) for order in self.columns_by_shard)
        size = CELLS_PER_BLOCK * min(len(self.row_shards), SHARDS_PER_BLOCK)
        return [columns for columns, _, _ in row_blocks(np.append(0, np.cumsum(counts)), size)]

    @cached_property
    def ends_of_shards(self) -> Array:
        """Where the rows of each shard end."""
        return np.array([rows.stop for rows in self.row_shards], self.observed.indices.dtype)

    @cached_property
    def rows(self) -> Array:
        """The row of every cell."""
        return self.observed.row_of_cell()

    @cached_property
    def _levels(self) -> Array:
        return self.y.astype(np.uint8 if self.y.max(initial=0) < 256 else np.uint32)

    @property
    def nbytes(self) -> int:
        """Bytes of the cells, and of the orders of them that were made so far."""
        made = [self.y, self.weights, self.is_first_at_cell, self.observed.indptr, self.observed.indices]
        made += [self.__dict__.get(name) for name in ("rows", "_levels")] + list(self._ordered.values())
        for order in {*self.__dict__.get("columns_by_shard", ()), *filter(None, [self.__dict__.get("_columns")])}:
            made += [order.indptr, order.indices, order.from_row_order]
        return sum({id(array): array.nbytes for array in made if array is not None}.values())

    def weights_in(self, order: Order) -> Array:
        """The weights in an order; empty if all are 1."""
        if self.weights is None:
            return np.empty(0, self.y.dtype)  # of one type, so that no loop is compiled twice
        if (order, None) not in self._ordered:
            self._ordered[order, None] = order.take(self.weights, slice(0, order.indices.size))
        return self._ordered[order, None]

    def values_in(self, order: Order, as_levels: bool) -> Array:
        """The values in an order; as small integers if they are levels."""
        if (order, as_levels) not in self._ordered:
            y = self._levels if as_levels else self.y
            self._ordered[order, as_levels] = order.take(y, slice(0, order.indices.size))
        return self._ordered[order, as_levels]


class CpuEngine(Engine[CpuCells]):
    """Runs on `n_jobs` threads; BLAS is limited to one, because its sums depend on their number.

    Parameters
    ----------
    n_jobs : int or None
        Number of threads.
    has_part : bool, default=False
        Whether it computes on a part of the shards only: sums over rows then stay in double precision, because those of
        other parts will be added.
    """

    name = "cpu"
    offers = frozenset({"newton", "sgd", "gd", "numpy"})

    def __init__(self, n_jobs: int | None, has_part: bool = False) -> None:
        self.threads = Threads(n_jobs)
        self._has_part = has_part

    @property
    def n_threads(self) -> int:
        return self.threads.count

    def __enter__(self) -> Self:
        hold_blas()
        return self

    def __exit__(self, *_: object) -> None:
        self.threads.__exit__()
        release_blas()

    def place(self, observed: Observed, *sides: Side, shards: Sequence[slice] | None = None) -> CpuCells:
        return CpuCells(observed, None if shards is None else blocks_of_rows(observed.indptr, shards))

    def by_shard(self, function: Callable[..., Any], cells: CpuCells, *arrays: Array) -> list[Any]:
        if len(cells.row_shards) == 1:
            return [function(self, cells, *arrays)]
        parts = map(cells.observed.select_rows, cells.row_shards)
        return [function(self, self.place(part, shards=[slice(0, part.shape[0])]), *arrays) for part in parts]

    def asarray(self, array: Array, side: Side | None = None) -> Array:
        return np.ascontiguousarray(array)

    def to_numpy(self, array: Array) -> Array:
        return array

    def sddmm(self, cells: CpuCells, W: Array, H: Array) -> Array:
        order = cells.order(Side.ROWS)
        x = np.empty(order.indices.size, W.dtype)

        def block(part: Block) -> None:
            rows, pointers, seen = part
            cell_kernels.sddmm(order.indptr[pointers], order.indices[seen], W[rows], H, x[seen])

        self.threads.all(block, order.blocks)
        return x

    def spmm(self, cells: CpuCells, c: Array, far: Array, side: Side) -> Array:
        return self._spmm_all(cells, (c,), far, side)[0]

    def _spmm_all(self, cells: CpuCells, arrays: tuple[Array, ...], far: Array, side: Side) -> tuple[Array, ...]:
        """`spmm` of one or two cell arrays; of two the rows of `far` are loaded only once."""
        kernel = cell_kernels.spmm if len(arrays) == 1 else cell_kernels.spmm_both

        def block(order: Order, part: Block, outs: list[Array]) -> None:
            _, pointers, seen = part
            taken = (order.take(c, seen) for c in arrays)
            kernel(order.indptr[pointers], order.indices[seen], *taken, far, *outs)

        return self._sum_along(cells, side, len(arrays), far, block)

    def _sum_along(
        self, cells: CpuCells, side: Side, n_arrays: int, far: Array, work: Callable[[Order, Block, list[Array]], Any]
    ) -> tuple[Array, ...]:
        """Arrays with a row for each row (or column) of the matrix; `work` on (order, block, outs) writes those of a
        block. Along columns, it does so for the cells of each shard, and the tree adds them."""
        orders = [cells.order(side)] if side is Side.ROWS else cells.columns_by_shard
        dtype = np.float64 if self._has_part and len(orders) > 1 else far.dtype
        sums = tuple(np.empty((orders[0].indptr.size - 1, far.shape[1]), dtype) for _ in range(n_arrays))
        if len(orders) == 1:
            self.threads.all(lambda part: work(orders[0], part, [out[part[0]] for out in sums]), orders[0].blocks)
            return sums

        def add_shards(columns: slice) -> None:
            size, pointers = columns.stop - columns.start, slice(columns.start, columns.stop + 1)

            def of_shard(order: Order) -> Array:
                outs = np.empty((n_arrays, size, far.shape[1]), far.dtype)
                seen = slice(int(order.indptr[columns.start]), int(order.indptr[columns.stop]))
                work(order, (columns, pointers, seen), list(outs))
                return outs

            for out, total in zip(sums, tree_sum(map(of_shard, orders)), strict=True):
                out[columns] = total

        self.threads.all(add_shards, cells.column_blocks)
        return sums

    def sweep(self, cells: CpuCells, rule: Rule, params: Any, W: Any, H: Any, *sides: Side, n_levels: int = 0) -> Sums:
        fused = _fused_sweep(cells, rule, params)
        if fused is not None and (len(sides) < 2 or rule is rules.pulls):  # of others no coefficients are kept
            return self._fused(cells, fused, W, H, sides)
        order = cells.order(Side.ROWS)
        has_x = W is not None and H is not None
        arrays: list[Array] = []
        allocating = Lock()

        def block(part: Block) -> Any:
            rows, pointers, seen = part
            x = np.empty(seen.stop - seen.start, H.dtype) if has_x else None
            if has_x:
                cell_kernels.sddmm(order.indptr[pointers], order.indices[seen], W[rows], H, x)
            terms = rule(params, cells.y[seen], x, *(_part(a, seen) for a in (cells.weights, cells.is_first_at_cell)))
            if sides:
                with allocating:
                    if not arrays:
                        arrays.extend(np.empty(cells.y.size, c.dtype) for c in terms.arrays)
                for target, c in zip(arrays, terms.arrays, strict=True):
                    target[seen] = c
            return _sum_terms(cells.y[seen], terms, n_levels)

        totals = self.threads.all(block, order.blocks)
        rows, columns = (
            self._spmm_all(cells, tuple(arrays), far, side) if side in sides and arrays else ()
            for side, far in ((Side.ROWS, H), (Side.COLUMNS, W))
        )
        return Sums(rows, columns, sum_by_shard(totals, order.blocks_per_shard))

    def _fused(self, cells: CpuCells, fused: "FusedSweep", W: Any, H: Any, sides: tuple[Side, ...]) -> Sums:
        """The compiled loop of a pass, along rows or columns; then sums along columns of the same coefficients."""
        if not sides and not fused.n_totals:
            return Sums((), (), None)
        sides = sides if fused.n_arrays else ()
        is_by_columns, is_by_both = sides == (Side.COLUMNS,), len(sides) == 2
        near, far = (H, W) if is_by_columns else (W, H)
        n_arrays, n_totals = fused.n_arrays if sides else 0, 0 if is_by_columns else fused.n_totals
        nothing = np.empty((0, far.shape[1]), far.dtype)
        pull = np.empty(cells.y.size if is_by_both else 0, far.dtype)

        def block(order: Order, part: Block, outs: list[Array]) -> Array:
            rows, pointers, seen = part
            totals = np.zeros(n_totals)
            y, weights = cells.values_in(order, fused.as_levels)[seen], cells.weights_in(order)[seen]
            where = (order.indptr[pointers], order.indices[seen], y, weights)
            F = nothing if near is None else near[rows]
            outs = outs + [nothing] * (2 - len(outs))
            fused.kernel(*where, *fused.arguments, F, far, *outs, totals, pull[seen])
            return totals

        if is_by_columns:
            for order in cells.columns_by_shard:  # before threads ask for them
                cells.values_in(order, fused.as_levels), cells.weights_in(order)
            return Sums((), self._sum_along(cells, Side.COLUMNS, n_arrays, far, block), None)
        order = cells.order(Side.ROWS)
        sums = tuple(np.empty((order.indptr.size - 1, far.shape[1]), far.dtype) for _ in range(n_arrays))
        vectors = self.threads.all(lambda part: block(order, part, [out[part[0]] for out in sums]), order.blocks)
        totals = sum_by_shard(vectors, order.blocks_per_shard)[fused.totals] if n_totals else None
        return Sums(sums, self._spmm_all(cells, (pull,), W, Side.COLUMNS) if is_by_both else (), totals)

    def conjugate_gradients(
        self, cells: CpuCells, curvature: Array, pull: Array, near: Array, far: Array, gram: Array, l2: Array,
        side: Side, n_steps: int, tol: float = 0.0,
    ) -> tuple[Array, Array]:  # fmt: skip
        order, noise = cells.order(side), noise_of(near.dtype)
        out = np.empty_like(near)

        by_shard = side is Side.COLUMNS and len(cells.row_shards) > 1  # sums over rows are those of the shards

        def block(part: Block) -> Array:
            rows, pointers, seen = part
            c, s = (order.take(array, seen) for array in (curvature, pull))
            where, factors = (order.indptr[pointers], order.indices[seen]), (near[rows], far, gram, l2[rows])
            how = (n_steps, tol, noise, out[rows])
            if not by_shard:
                return np.array([steps.conjugate_gradients(*where, c, s, *factors, *how)])
            total = np.empty(rows.stop - rows.start)
            steps.conjugate_gradients_of_shards(*where, cells.ends_of_shards, c, s, *factors, *how, total)
            return total

        totals = self.threads.all(block, order.blocks)
        if by_shard:  # that of each column, so that blocks do not matter
            return out, np.sum(np.concatenate(totals), keepdims=True)
        return out, sum_by_shard(totals, order.blocks_per_shard)

    def residual_sums(
        self, cells: CpuCells, curvature: Array, pull: Array | None, near: Array, far: Array
    ) -> tuple[Array, Array]:
        """For each column i the sum of (pull - curvature * x) far_u, and those of pull * x and |pull|, of all shards,
        with x = near_i @ far_u. Without a pull it is 0, and the other sums are not there."""
        order = cells.order(Side.COLUMNS)
        sums = np.empty(near.shape, self._dtype_of_sums(cells, far))
        sizes = np.empty((0 if pull is None else len(near), 2))

        def block(part: Block) -> None:
            rows, pointers, seen = part
            c = order.take(curvature, seen)
            s = c[:0] if pull is None else order.take(pull, seen)
            where = (order.indptr[pointers], order.indices[seen], cells.ends_of_shards)
            room = steps.room_for_sums(near, cells.ends_of_shards.size)
            steps.residual_sums(*where, c, s, near[rows], far, where[1], room, sums[rows], sizes[rows])

        self.threads.all(block, order.blocks)
        return sums, sizes

    def _dtype_of_sums(self, cells: CpuCells, far: Array) -> Any:
        """Double precision, if sums of several shards are to be added to others."""
        return np.float64 if self._has_part and len(cells.row_shards) > 1 else far.dtype

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
        out, order = np.empty_like(near), cells.order(side)
        l2, centre, fixed = (array.astype(near.dtype) for array in penalty)

        by_shard = side is Side.COLUMNS and len(cells.row_shards) > 1  # sums over rows are those of the shards

        def block(part: Block) -> None:
            rows, pointers, seen = part
            s, c = (order.take(array, seen) for array in (slope, curvature))
            where, how = (order.indptr[pointers], order.indices[seen]), (near[rows], far, l2, centre, fixed, out[rows])
            if by_shard:
                steps.newton_step_of_shards(*where, cells.ends_of_shards, s, c, *how)
            else:
                steps.newton_step(*where, s, c, *how)

        self.threads.all(block, order.blocks)
        return out

    def normal_equations(self, cells: CpuCells, slope: Array, curvature: Array, far: Array, columns: slice) -> Array:
        """For some columns the sums of slope * far_u, and the lower half of those of curvature * far_u far_u^T."""
        k, order = far.shape[1], cells.order(Side.COLUMNS)
        start, stop, _ = columns.indices(order.indptr.size - 1)
        out = np.empty((stop - start, k * (k + 3) // 2), self._dtype_of_sums(cells, far))

        def block(part: Block) -> None:
            some, pointers, seen = part
            s, c = (order.take(array, seen) for array in (slope, curvature))
            where = (order.indptr[pointers], order.indices[seen], cells.ends_of_shards)
            steps.normal_equations(*where, s, c, far, out[some.start - start : some.stop - start])

        self.threads.all(block, row_blocks(order.indptr, CELLS_PER_BLOCK, slice(start, stop)))
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

    def gradients(
        self, cells: CpuCells, loss: str, tau: Array, shape: tuple[float, float, float], W: Array, H: Array,
        counts: tuple[Array, Array], penalties: tuple[RidgePenalty, RidgePenalty],
    ) -> Gradients:  # fmt: skip
        code = {"linear": steps.LINEAR, "multi-sigmoid": steps.MULTI_SIGMOID, "round": steps.ROUND}[loss]
        of_W, of_H, of_tau = np.empty_like(W), np.empty_like(H), np.empty_like(tau)
        where = (cells.rows, cells.observed.indices, cells.y, cells.weights_in(cells.order(Side.ROWS)))
        sides = ((W, counts[0], *penalties[0]), (H, counts[1], *penalties[1]))
        cost = steps.gradients(*where, code, tau, *shape, *sides[0], *sides[1], of_W, of_H, of_tau)
        return Gradients(cost, of_W, of_H, of_tau)

    def map(
        self, rule: Rule, params: Any, *arrays: Any, n_levels: int = 0, shards: Sequence[slice] | None = None
    ) -> tuple[tuple[Array, ...], Any]:
        chunks = _chunks(arrays[0], shards)
        parts, counts = [part for chunk in chunks for part in chunk], list(map(len, chunks))
        if rule.__name__ in _COMPILED_RULES:
            compiled, n_arrays = _COMPILED_RULES[rule.__name__]
            results = tuple(np.empty_like(arrays[0]) for _ in range(n_arrays))

            def compiled_chunk(part: slice) -> Any:
                return compiled(params, [result[part] for result in results], *(_part(array, part) for array in arrays))

            return results, sum_by_shard(self.threads.all(compiled_chunk, parts), counts)
        outs: list[Array] = []
        allocating = Lock()

        def chunk(part: slice) -> Any:
            entries: list[Any] = [_part(array, part) for array in arrays]
            terms = rule(params, *entries)
            with allocating:
                if not outs:  # the first thread to finish allocates the results of all
                    outs.extend(np.empty((len(arrays[0]), *a.shape[1:]), a.dtype) for a in terms.arrays)
            for result, out in zip(terms.arrays, outs, strict=True):
                out[part] = result
            return _sum_terms(entries[0], terms, n_levels)

        totals = self.threads.all(chunk, parts)
        return tuple(outs), sum_by_shard(totals, counts)

    def column_sums(self, factor: Array, shards: Sequence[slice] | None = None) -> Array:
        parts: list[Any] = [np.sum(factor[rows], axis=0, dtype=np.float64) for rows in shards or (slice(None),)]
        sums = tree_sum(parts)
        return sums if self._has_part else sums.astype(factor.dtype)

    def over_rows(
        self, function: Callable[..., Any], params: Any, *arrays: Array, shards: Sequence[slice] | None = None,
        summed: bool = True,
    ) -> Any:  # fmt: skip
        if shards is None or len(shards) == 1:
            return function(params, *arrays)
        parts: list[Any] = [function(params, *(array[rows] for array in arrays)) for rows in shards]
        if not summed:
            return np.concatenate(parts)
        total = tree_sum(parts)
        return total if self._has_part else total.astype(parts[0].dtype)

    def gram(self, factor: Array, shards: Sequence[slice] | None = None) -> Array:
        chunks = _chunks(factor, shards, ENTRIES_PER_PRODUCT)
        parts = [part for chunk in chunks for part in chunk]
        grams = self.threads.all(lambda part: factor[part].T @ factor[part], parts)
        gram: Array = sum_by_shard(grams, list(map(len, chunks)))
        return gram if self._has_part else gram.astype(factor.dtype, copy=False)


def noise_of(dtype: Any) -> float:
    """What conjugate gradients take for 0, as a share of what the Gram matrix gives."""
    return CANCELLED * float(np.finfo(dtype).eps)


@dataclass(frozen=True)
class FusedSweep:
    """A compiled loop for a rule and a likelihood."""

    kernel: Any
    arguments: tuple[Any, ...]
    as_levels: bool
    """Whether it takes values as small integers."""
    n_arrays: int
    """How many sums along a side it makes."""
    totals: Array = field(default_factory=lambda: np.empty(0, np.intp))
    """Where the totals of the rule are in those of the loop."""
    n_totals: int = 0


def _fused_sweep(cells: CpuCells, rule: Rule, params: Any) -> FusedSweep | None:
    """The compiled loop for a rule, if there is one for the likelihood, and no cell has several values."""
    likelihood: Any = getattr(params, "likelihood", None)
    kind = getattr(likelihood, "kernel", None)
    if kind is None or cells.is_first_at_cell is not None:
        return None
    squared, inner = (True, likelihood.inner) if kind.startswith("squared") else (False, likelihood)
    scale = 0.0 if params.zeros is None else params.zeros.scale
    as_levels = kind.endswith("ordinal")
    if rule is rules.pushes and as_levels and not squared:
        return FusedSweep(cell_kernels.sum_levels, (inner.table[3], scale), True, 1)
    if rule is rules.pulls and squared:
        return None
    if rule not in _FUSED_RULES or (rule in (rules.means, rules.counts_and_means) and not as_levels):
        return None
    what, n_arrays = _FUSED_RULES[rule]
    arguments = (what, squared, smallest(cells.y) ** (1.0 / likelihood.root), scale)
    if not as_levels:
        return FusedSweep(cell_kernels.sweep_values, arguments, False, n_arrays, np.arange(1), 1)
    n = inner.table.shape[1]
    taken = {
        rules.pulls: np.arange(1 + n * likelihood.learns),
        rules.means: np.append(0, np.arange(1 + n, 1 + 2 * n)),
        rules.counts_and_means: np.arange(1 + 2 * n),
    }.get(rule, np.arange(1))
    return FusedSweep(cell_kernels.sweep_levels, (inner.table, *arguments), True, n_arrays, taken, 1 + 2 * n)


_FUSED_RULES = {
    rules.pulls: (cell_kernels.PULLS, 1),
    rules.pulls_and_pushes: (cell_kernels.PULLS_AND_PUSHES, 2),
    rules.costs: (cell_kernels.COSTS, 0),
    rules.means: (cell_kernels.MEANS, 0),
    rules.counts_and_means: (cell_kernels.COUNTS_AND_MEANS, 0),
}


def _gamma_posterior(params: Any, outs: list[Array], P: Array, Q: Array, geometric: Array, b: Array) -> Array:
    """The rule of this name in `solvers.gamma`, compiled: writes its arrays, and returns its totals."""
    a, constant, row = params
    Q = row[None] if Q is None else Q
    return np.array(special.gamma_posterior(P, Q, geometric, b[:, 0], a, constant, smallest(P) ** 0.5, *outs))


def _multiplied(params: Any, outs: list[Array], F: Array, P: Array, Q: Array) -> None:
    """The rule of this name in `solvers.multiplicative`, compiled."""
    penalty, exponent, row = params
    Q = row[None] if Q is None else Q
    special.multiplied(F, P, Q, penalty.l1, penalty.l2, exponent, smallest(F) ** 0.5, *outs)


#: Compiled forms of rules, by name, and how many arrays they make.
_COMPILED_RULES: dict[str, tuple[Any, int]] = {"gamma_posterior": (_gamma_posterior, 4), "multiplied": (_multiplied, 1)}


def _part(array: Array | None, part: slice) -> Array | None:
    return None if array is None else array[part]


def _sum_terms(levels: Array, terms: Terms, n_levels: int) -> Array | None:
    """The vector of a block's sums, in double precision."""
    if not terms.totals and not terms.by_level:
        return None
    sums: list[Array] = [np.sum(total, dtype=np.float64, keepdims=True).reshape(1) for total in terms.totals]
    if terms.by_level:
        levels = levels.astype(np.intp)
        sums += [np.bincount(levels, values, minlength=n_levels) for values in terms.by_level]
    return np.concatenate(sums)


def _chunks(array: Array, shards: Sequence[slice] | None, entries: int | None = None) -> list[list[slice]]:
    """For each shard, at least one slice, with about `BYTES_PER_CHUNK` (or this many entries) along the first axis."""
    step = max(1, (entries or BYTES_PER_CHUNK // array.itemsize) // max(1, int(np.prod(array.shape[1:]))))
    return [
        [
            slice(start, min(start + step, rows.stop))
            for start in range(rows.start, max(rows.start + 1, rows.stop), step)
        ]
        for rows in shards or (slice(0, len(array)),)
    ]


def kernel_folder() -> str | None:
    """The folder of the compiled kernels' disk cache; None if there is none."""
    dispatcher: Any = cell_kernels.sddmm
    folder: str | None = dispatcher._cache.cache_path
    return folder
