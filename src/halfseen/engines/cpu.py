"""The CPU engine: compiled loops over blocks of rows, distributed over threads.

The blocks depend on the data alone, every block writes rows of its own, and sums over blocks are added in their order:
so the numbers are the same, to the last bit, whatever the number of threads.

Where there is a compiled loop for a rule and a likelihood (`kernels.cells`), a pass over the cells is one loop for each
side. Elsewhere it has three stages: the dot products, the rule, and the sums.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property, reduce
from threading import Lock
from typing import Any, Self

import numpy as np

from halfseen.arrays import Array, smallest
from halfseen.engines.base import CANCELLED, AdagradState, Engine, Gradients, RidgePenalty, Rule, Side, Sums
from halfseen.engines.threads import Block, Threads, hold_blas, release_blas, row_blocks
from halfseen.kernels import cells as cell_kernels
from halfseen.kernels import special, steps
from halfseen.likelihoods import rules
from halfseen.likelihoods.rules import Terms
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

    def take(self, c: Array, part: slice) -> Array:
        """A block's part of a cell array, permuted from row order into this order."""
        if self.from_row_order is None:
            taken: Array = c[part]
            return taken
        taken = np.empty(part.stop - part.start, c.dtype)
        cell_kernels.gather(c, self.from_row_order[part], taken)
        return taken


class CpuCells:
    """The observed cells in memory: the column order is made only if columns are asked for."""

    def __init__(self, observed: Observed, sides: Iterable[Side]) -> None:
        self.observed = observed
        self.y = observed.values
        self.weights = observed.weights
        self.is_first_at_cell = observed.is_first_at_cell if observed.unseen == "zero" else None
        self.orders = {Side.ROWS: Order(observed.indptr, observed.indices)}
        if Side.COLUMNS in sides:
            columns = observed.columns
            self.orders[Side.COLUMNS] = Order(columns.indptr, columns.rows, columns.order)
        self._ordered: dict[tuple[Side, bool], Array] = {}
        self._ordered_weights: dict[Side, Array] = {}

    @cached_property
    def rows(self) -> Array:
        """The row of every cell."""
        return self.observed.row_of_cell()

    def weights_along(self, side: Side) -> Array:
        """The weights in the order of a side; empty if all are 1."""
        if self.weights is None:
            return np.empty(0, self.y.dtype)  # of one type, so that no loop is compiled twice
        if side not in self._ordered_weights:
            self._ordered_weights[side] = self.orders[side].take(self.weights, slice(0, self.weights.size))
        return self._ordered_weights[side]

    def values(self, side: Side, as_levels: bool) -> Array:
        """The values in the order of a side; as small integers if they are levels."""
        if (side, as_levels) not in self._ordered:
            y = self.y.astype(np.uint8 if self.y.max(initial=0) < 256 else np.uint32) if as_levels else self.y
            self._ordered[side, as_levels] = self.orders[side].take(y, slice(0, y.size))
        return self._ordered[side, as_levels]


class CpuEngine(Engine[CpuCells]):
    """Runs on `n_jobs` threads; BLAS is limited to one, because its sums depend on their number."""

    name = "cpu"
    offers = frozenset({"newton", "sgd", "gd", "numpy"})

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

    def asarray(self, array: Array) -> Array:
        return np.ascontiguousarray(array)

    def to_numpy(self, array: Array) -> Array:
        return array

    def sddmm(self, cells: CpuCells, W: Array, H: Array) -> Array:
        order = cells.orders[Side.ROWS]
        x = np.empty(order.indices.size, W.dtype)

        def block(part: Block) -> None:
            rows, pointers, seen = part
            cell_kernels.sddmm(order.indptr[pointers], order.indices[seen], W[rows], H, x[seen])

        self._threads.all(block, order.blocks)
        return x

    def spmm(self, cells: CpuCells, c: Array, far: Array, side: Side) -> Array:
        return self._spmm_all(cells, (c,), far, side)[0]

    def _spmm_all(self, cells: CpuCells, arrays: tuple[Array, ...], far: Array, side: Side) -> tuple[Array, ...]:
        """`spmm` of one or two cell arrays; of two the rows of `far` are loaded only once."""
        order = cells.orders[side]
        sums = tuple(np.empty((order.indptr.size - 1, far.shape[1]), far.dtype) for _ in arrays)
        kernel = cell_kernels.spmm if len(arrays) == 1 else cell_kernels.spmm_both

        def block(part: Block) -> None:
            rows, pointers, seen = part
            taken = (order.take(c, seen) for c in arrays)
            kernel(order.indptr[pointers], order.indices[seen], *taken, far, *(out[rows] for out in sums))

        self._threads.all(block, order.blocks)
        return sums

    def sweep(self, cells: CpuCells, rule: Rule, params: Any, W: Any, H: Any, *sides: Side, n_levels: int = 0) -> Sums:
        fused = _fused_sweep(cells, rule, params)
        if fused is not None and (len(sides) < 2 or rule is rules.pulls):  # of others no coefficients are kept
            return self._fused(cells, fused, W, H, sides)
        order = cells.orders[Side.ROWS]
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

        totals = self._threads.all(block, order.blocks)
        rows, columns = (
            self._spmm_all(cells, tuple(arrays), far, side) if side in sides and arrays else ()
            for side, far in ((Side.ROWS, H), (Side.COLUMNS, W))
        )
        return Sums(rows, columns, _add(totals))

    def _fused(self, cells: CpuCells, fused: "FusedSweep", W: Any, H: Any, sides: tuple[Side, ...]) -> Sums:
        """The compiled loop of a pass, along rows or columns; then sums along columns of the same coefficients."""
        if not sides and not fused.n_totals:
            return Sums((), (), None)
        side = Side.COLUMNS if sides == (Side.COLUMNS,) else Side.ROWS
        near, far = (W, H) if side is Side.ROWS else (H, W)
        order, y, weights = cells.orders[side], cells.values(side, fused.as_levels), cells.weights_along(side)
        shape = (order.indptr.size - 1, far.shape[1])
        sums = tuple(np.empty(shape, far.dtype) for _ in range(fused.n_arrays if sides else 0))
        pull = np.empty(y.size if len(sides) == 2 else 0, far.dtype)
        nothing = np.empty((0, far.shape[1]), far.dtype)

        def block(part: Block) -> Array:
            rows, pointers, seen = part
            out = [array[rows] for array in sums] + [nothing] * (2 - len(sums))
            F = nothing if near is None else near[rows]
            totals = np.zeros(fused.n_totals)
            indptr, indices = order.indptr[pointers], order.indices[seen]
            fused.kernel(indptr, indices, y[seen], weights[seen], *fused.arguments, F, far, *out, totals, pull[seen])
            return totals

        added = _add(self._threads.all(block, order.blocks))
        totals = added[fused.totals] if fused.n_totals else None
        if side is Side.COLUMNS:
            return Sums((), sums, totals)
        return Sums(sums, self._spmm_all(cells, (pull,), W, Side.COLUMNS) if len(sides) == 2 else (), totals)

    def conjugate_gradients(
        self, cells: CpuCells, curvature: Array, pull: Array, near: Array, far: Array, gram: Array, l2: Array,
        side: Side, n_steps: int, tol: float = 0.0,
    ) -> tuple[Array, Array]:  # fmt: skip
        order, noise = cells.orders[side], CANCELLED * float(np.finfo(near.dtype).eps)
        out = np.empty_like(near)

        def block(part: Block) -> Array:
            rows, pointers, seen = part
            c, s = (order.take(array, seen) for array in (curvature, pull))
            factors, how = (near[rows], far, gram, l2[rows]), (n_steps, tol, noise)
            indptr, indices = order.indptr[pointers], order.indices[seen]
            return np.array([steps.conjugate_gradients(indptr, indices, c, s, *factors, *how, out[rows])])

        return out, _add(self._threads.all(block, order.blocks))

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
            s, c = (order.take(array, seen) for array in (slope, curvature))
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

    def gradients(
        self, cells: CpuCells, loss: str, tau: Array, shape: tuple[float, float, float], W: Array, H: Array,
        counts: tuple[Array, Array], penalties: tuple[RidgePenalty, RidgePenalty],
    ) -> Gradients:  # fmt: skip
        code = {"linear": steps.LINEAR, "multi-sigmoid": steps.MULTI_SIGMOID, "round": steps.ROUND}[loss]
        of_W, of_H, of_tau = np.empty_like(W), np.empty_like(H), np.empty_like(tau)
        where = (cells.rows, cells.observed.indices, cells.y, cells.weights_along(Side.ROWS))
        sides = ((W, counts[0], *penalties[0]), (H, counts[1], *penalties[1]))
        cost = steps.gradients(*where, code, tau, *shape, *sides[0], *sides[1], of_W, of_H, of_tau)
        return Gradients(cost, of_W, of_H, of_tau)

    def map(self, rule: Rule, params: Any, *arrays: Any, n_levels: int = 0) -> tuple[tuple[Array, ...], Any]:
        if rule.__name__ in _COMPILED_RULES:
            compiled, n_arrays = _COMPILED_RULES[rule.__name__]
            results = tuple(np.empty_like(arrays[0]) for _ in range(n_arrays))

            def compiled_chunk(part: slice) -> Any:
                return compiled(params, [result[part] for result in results], *(_part(array, part) for array in arrays))

            return results, _add(self._threads.all(compiled_chunk, _chunks(arrays[0])))
        outs: list[Array] = []
        allocating = Lock()

        def chunk(part: slice) -> Any:
            parts: list[Any] = [_part(array, part) for array in arrays]
            terms = rule(params, *parts)
            with allocating:
                if not outs:  # the first thread to finish allocates the results of all
                    outs.extend(np.empty((len(arrays[0]), *a.shape[1:]), a.dtype) for a in terms.arrays)
            for result, out in zip(terms.arrays, outs, strict=True):
                out[part] = result
            return _sum_terms(parts[0], terms, n_levels)

        totals = self._threads.all(chunk, _chunks(arrays[0]))
        return tuple(outs), _add(totals)

    def gram(self, factor: Array) -> Array:
        grams = self._threads.all(lambda part: factor[part].T @ factor[part], _chunks(factor, ENTRIES_PER_PRODUCT))
        return reduce(np.add, grams)


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


def _add(vectors: list[Any]) -> Any:
    return None if vectors[0] is None else reduce(np.add, vectors)


def _chunks(array: Array, entries: int | None = None) -> list[slice]:
    """Slices of the first axis with about `BYTES_PER_CHUNK` (or this many entries) each, and at least one slice."""
    step = max(1, (entries or BYTES_PER_CHUNK // array.itemsize) // max(1, int(np.prod(array.shape[1:]))))
    return [slice(start, start + step) for start in range(0, max(1, len(array)), step)]


def kernel_folder() -> str | None:
    """The folder of the compiled kernels' disk cache; None if there is none."""
    dispatcher: Any = cell_kernels.sddmm
    folder: str | None = dispatcher._cache.cache_path
    return folder
