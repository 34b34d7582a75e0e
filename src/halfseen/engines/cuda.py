"""The CUDA engine: torch tensors on an NVIDIA GPU, and Triton kernels for the passes over the cells.

Where there is a kernel for a rule and a likelihood (`triton_kernels.sweep`), a pass is one kernel for each side;
elsewhere it has three stages, with the rule in torch. No atomic operations are used: the same bits in every run.
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, Self

import numpy as np
import torch

from halfseen.arrays import Array
from halfseen.engines import triton_kernels
from halfseen.engines.base import Best, ColumnLists, Engine, RidgePenalty, Rule, Side, Sums
from halfseen.errors import EngineError
from halfseen.likelihoods import Likelihood, rules
from halfseen.observed import Observed

#: Factors of both sides that a fit may hold at a time: distributions of the last states and the next, and its sums.
FACTORS_HELD = 20
#: Bytes of a cell: its index and level in three orders, and what sorting them takes.
BYTES_PER_CELL = 48
#: Cell arrays that rules without a kernel of their own hold at a time.
ARRAYS_OF_STAGED_RULES = 12
#: PyTorch sorts no more entries at once.
MOST_CELLS = 2**31 - 1
#: Up to this many levels, sums by level are taken level by level; beyond, in the order of levels.
LEVELS_BY_MASK = 32
#: Entries of a factor, or of the results, that are on the device at a time while rows are ranked.
ENTRIES_PER_RANKING = 1 << 26


class Order:
    """The cells in row or column order."""

    def __init__(self, indptr: Array, indices: Any) -> None:
        self.indptr = indptr
        self.indices = indices
        self.plan = triton_kernels.plan_rows(indptr, indices.device)
        self._batches: dict[Any, Any] = {}

    def batches(self, k: int, dtype: Any) -> Any:
        """Batches of rows for Newton's method."""
        if (k, dtype) not in self._batches:
            self._batches[k, dtype] = triton_kernels.plan_batches(self.indptr, k, dtype, self.indices.device)
        return self._batches[k, dtype]


class CudaCells:
    """The observed cells in the memory of the GPU; the column order is made there, if columns are asked for."""

    row_shards = cell_shards = None

    def __init__(self, observed: Observed, sides: tuple[Side, ...], device: Any) -> None:
        self.observed = observed
        self._device = device
        self._level_order: Order | None = None
        m = observed.shape[1]
        indices = _tensor(observed.indices.astype(np.int32, copy=False)).to(device)
        self.orders = {Side.ROWS: Order(observed.indptr, indices)}
        if Side.COLUMNS in sides:
            counts = torch.bincount(indices, minlength=m)
            pointers = np.append(0, np.cumsum(counts.cpu().numpy()))
            self.orders[Side.COLUMNS] = Order(pointers, self._rows()[self.order])
        self._ordered: dict[tuple[Side, bool], Any] = {}
        self._column_weights: Any = None
        self._table: tuple[Any, Any] | None = None
        #: The last far factor of `columns_by_level`, and what it gave.
        self.by_level: tuple[Any, Any] | None = None

    @cached_property
    def order(self) -> Any:
        """Where the cells of the column order are in the row order."""
        order = torch.sort(self.orders[Side.ROWS].indices, stable=True).indices
        return order.to(torch.int32) if order.numel() < 2**31 else order

    @cached_property
    def y(self) -> Any:
        return self._place(self.observed.values)

    @cached_property
    def weights(self) -> Any | None:
        return None if self.observed.weights is None else self._place(self.observed.weights)

    @cached_property
    def is_first_at_cell(self) -> Any | None:
        first = self.observed.is_first_at_cell if self.observed.unseen == "zero" else None
        return None if first is None else self._place(first.astype(self.observed.dtype))

    def table(self, likelihood: Any) -> Any:
        """The table of an ordinal likelihood on the device; that of the last one is kept."""
        if self._table is None or self._table[0] is not likelihood:
            host = torch.from_numpy(likelihood.table.astype(self.observed.dtype))
            host = host.pin_memory() if self._device.type == "cuda" else host
            self._table = (likelihood, host.to(self._device, non_blocking=True))
        return self._table[1]

    def weights_along(self, side: Side) -> Any | None:
        """The weights in the order of a side; None if all are 1."""
        if self.weights is None or side is Side.ROWS:
            return self.weights
        if self._column_weights is None:
            self._column_weights = self.weights[self.order]
        return self._column_weights

    def values(self, side: Side, as_levels: bool) -> Any:
        """The values in the order of a side; as small integers if they are levels."""
        if (side, as_levels) not in self._ordered:
            if side is Side.COLUMNS:
                values = self.values(Side.ROWS, as_levels)[self.order]
                if self.weights is None:
                    del self.order  # fused passes need it no more; made again if others do
            elif as_levels:
                values = self.observed.values
                values = self._place(values.astype(np.int8 if values.max(initial=0) < 128 else np.int32))
            else:
                values = self.y
            self._ordered[side, as_levels] = values
        return self._ordered[side, as_levels]

    def columns_by_level(self, far: Any, n_levels: int) -> Any:
        """The sum of far_u over the cells of each level of each column, of shape (columns, levels, components).

        With it both the pushes along columns and the sums of E[x] by level are sums over columns, not over cells.
        """
        if self._level_order is None or len(self._level_order.indptr) != self.observed.shape[1] * n_levels + 1:
            key = self.orders[Side.ROWS].indices.to(torch.int64) * n_levels + self.values(Side.ROWS, True)
            counts = torch.bincount(key, minlength=self.observed.shape[1] * n_levels)
            order = torch.sort(key, stable=True).indices
            self._level_order = Order(np.append(0, np.cumsum(counts.cpu().numpy())), self._rows()[order])
        order = self._level_order
        sums = triton_kernels.spmm(order.plan, order.indices, None, far).reshape(-1, n_levels, far.shape[1])
        self.by_level = (far, sums)
        return sums

    def _rows(self) -> Any:
        """The row of every cell."""
        n = self.observed.shape[0]
        per_row = torch.from_numpy(np.diff(self.observed.indptr).astype(np.int64)).to(self._device)
        return torch.repeat_interleave(torch.arange(n, dtype=torch.int32, device=self._device), per_row)

    @cached_property
    def poisson_constant(self) -> Any:
        """The sum of y - y log(y), by which the local term of the bound differs from the kernel's y log(x)."""
        y = self.y.to(torch.float64)
        constant = y - torch.xlogy(y, y)
        return torch.sum(constant if self.weights is None else constant * self.weights)

    def _place(self, array: Array) -> Any:
        return _tensor(array).to(self._device)


class CudaEngine(Engine[CudaCells]):
    """Runs on the current GPU of torch.

    Parameters
    ----------
    device : str, default="cuda"
        Device of the tensors. "cpu" is for tests, where Triton interprets its kernels.
    """

    name = "cuda"
    offers = frozenset({"newton", "top_k"})

    def __init__(self, device: str = "cuda") -> None:
        self.device = torch.device(device)

    def __enter__(self) -> Self:
        self._precision = torch.get_float32_matmul_precision()
        torch.set_float32_matmul_precision("highest")  # a program may have asked for less for its own networks
        return self

    def __exit__(self, *raised: Any) -> None:
        torch.set_float32_matmul_precision(self._precision)
        error = raised[1] if len(raised) > 1 else None
        if isinstance(error, torch.OutOfMemoryError):
            raise EngineError(
                "The GPU must have room for all of a fit.",
                found="too little memory",
                remedy='Use fewer components, or `engine="cpu"`.',
                parameter="engine",
            ) from error

    def check_memory(self, observed: Observed, n_components: int, likelihood: Likelihood) -> None:
        """Refuse a fit that the GPU can't hold."""
        if observed.nnz > MOST_CELLS:
            raise EngineError(
                f"A fit on the GPU must have at most {MOST_CELLS:,} cells.",
                found=f"{observed.nnz:,}",
                remedy='Use `engine="cpu"`.',
                parameter="engine",
            )
        if self.device.type != "cuda":
            return
        n, m = observed.shape
        itemsize = observed.dtype.itemsize
        arrays = ARRAYS_OF_STAGED_RULES if likelihood.kernel is None else 2
        per_cell = BYTES_PER_CELL + itemsize * (arrays + (observed.weights is not None))
        needed = per_cell * observed.nnz + FACTORS_HELD * (n + m) * n_components * itemsize
        unused = torch.cuda.memory_reserved(self.device) - torch.cuda.memory_allocated(self.device)
        free = torch.cuda.mem_get_info(self.device)[0] + unused  # and what torch holds, but does not use
        if needed > free:
            raise EngineError(
                f"The GPU must have room for {observed.nnz:,} cells of {per_cell} bytes and {FACTORS_HELD} factors of "
                f"{n + m:,} x {n_components} numbers of {itemsize} bytes, {needed / 1e9:.1f} GB in all.",
                found=f"{free / 1e9:.1f} GB free",
                remedy=f'Use fewer components{", float32 values" if itemsize > 4 else ""}, or `engine="cpu"`.',
                parameter="engine",
            )

    def place(self, observed: Observed, *sides: Side, shards: Sequence[slice] | None = None) -> CudaCells:
        return CudaCells(observed, sides, self.device)

    def asarray(self, array: Array, side: Side | None = None) -> Any:
        return _tensor(array).to(self.device)

    def to_numpy(self, array: Any) -> Array:
        numpy: Array = array.contiguous().cpu().numpy()
        return numpy

    def fetch(self, *vectors: Any) -> list[Array]:
        sizes = np.cumsum([len(vector) for vector in vectors])[:-1]
        return np.split(torch.cat(vectors).cpu().numpy(), sizes)

    def sddmm(self, cells: CudaCells, W: Any, H: Any) -> Any:
        order = cells.orders[Side.ROWS]
        return triton_kernels.sddmm(order.plan, order.indices, W, H)

    def spmm(self, cells: CudaCells, c: Any, far: Any, side: Side) -> Any:
        order = cells.orders[side]
        permutation = cells.order if side is Side.COLUMNS else None
        return triton_kernels.spmm(order.plan, order.indices, c, far, permutation)

    def sweep(self, cells: CudaCells, rule: Rule, params: Any, W: Any, H: Any, *sides: Side, n_levels: int = 0) -> Sums:
        (known, by_level), cells.by_level = cells.by_level or (None, None), None
        if rule is rules.means and known is not None and known is W:  # the last pushes have left what is needed
            means = torch.bmm(by_level, H[:, :, None])[:, :, 0].sum(dim=0, dtype=torch.float64)
            return Sums((), (), torch.cat([means.sum()[None], means]))
        fused = _fused_sweep(cells, rule, params)
        if fused is None:
            return super().sweep(cells, rule, params, W, H, *sides, n_levels=n_levels)
        results: dict[Side, tuple[Any, ...]] = {Side.ROWS: (), Side.COLUMNS: ()}
        totals = None
        for side in sides or (Side.ROWS,):
            near, far = (W, H) if side is Side.ROWS else (H, W)
            results[side], found = fused(cells, side, near, far, bool(sides), totals is None)
            totals = found if totals is None else totals
        return Sums(results[Side.ROWS], results[Side.COLUMNS], totals)

    def map(
        self, rule: Rule, params: Any, *arrays: Any, n_levels: int = 0, shards: Sequence[slice] | None = None
    ) -> tuple[tuple[Any, ...], Any]:
        if rule.__name__ == "gamma_posterior":
            P, Q, geometric, b = arrays
            shape, _, row = params
            *found, gain, pushed = triton_kernels.gamma_posterior(P, row if Q is None else Q, geometric, b, shape)
            return tuple(found), torch.stack([gain.sum(), pushed.sum()])
        if rule.__name__ == "multiplied":
            penalty, exponent, row = params
            F, P, Q = arrays
            Q = row if Q is None else Q
            return (triton_kernels.multiplied(F, P, Q, penalty.l1, penalty.l2, exponent),), None
        if rule.__name__ == "extrapolated" and params.multiplies:
            half = len(arrays) // 2
            pairs = zip(arrays[:half], arrays[half:], strict=True)
            found = [triton_kernels.extrapolated(*pair, params.beta, params.largest_ratio) for pair in pairs]
            return tuple(found), None
        return super().map(rule, params, *arrays, n_levels=n_levels)

    def column_sums(self, factor: Any, shards: Sequence[slice] | None = None) -> Any:
        return triton_kernels.column_sums(factor).to(factor.dtype)

    def sums_by_level(self, levels: Any, values: Any, n_levels: int) -> Any:
        if n_levels <= LEVELS_BY_MASK:
            return super().sums_by_level(levels, values, n_levels)
        order = torch.sort(levels, stable=True).indices
        lengths = torch.bincount(levels.to(torch.int64), minlength=n_levels)
        return torch.segment_reduce(values[order].to(torch.float64), "sum", lengths=lengths)

    def newton_step(
        self, cells: CudaCells, slope: Any, curvature: Any, near: Any, far: Any, penalty: RidgePenalty, side: Side
    ) -> Any:
        if near.shape[1] > triton_kernels.MAX_NEWTON_COMPONENTS:
            raise EngineError(
                f"Newton's method on the GPU needs at most {triton_kernels.MAX_NEWTON_COMPONENTS} components, of which "
                "biases take 2.",
                found=str(near.shape[1]),
                remedy='Use fewer components, or `engine="cpu"`.',
                parameter="n_components",
            )
        order = cells.orders[side]
        batches = order.batches(near.shape[1], near.dtype)
        l2, centre, fixed = (self.asarray(array.astype(np.float64)).to(near.dtype) for array in penalty)
        permutation = cells.order if side is Side.COLUMNS else None
        return triton_kernels.newton_step(
            batches, order.indices, slope, curvature, near, far, l2, centre, fixed, permutation
        )

    def top_k(self, W: Array, H: Array, n: int, hidden: ColumnLists | None) -> Best:
        rows, n = len(W), min(n, len(H))
        best = Best(np.empty((rows, n), np.int64), np.empty((rows, n), W.dtype))
        far = self.asarray(H)
        height = max(1, ENTRIES_PER_RANKING // max(1, n, W.shape[1]))
        for top in range(0, rows, height):
            part, lists = slice(top, min(top + height, rows)), (None, None)
            if hidden is not None:
                indptr = hidden[0][part.start : part.stop + 1].astype(np.int64)
                lists = self.asarray(indptr - indptr[0]), self.asarray(hidden[1][indptr[0] : indptr[-1]])
            found = triton_kernels.top_k(self.asarray(W[part]), far, n, *lists)
            best.columns[part], best.scores[part] = (self.to_numpy(array) for array in found)
        return best

    def describe(self) -> str:
        """The name of the GPU and its memory."""
        free, total = (size / 1e9 for size in torch.cuda.mem_get_info(self.device))
        return f"{torch.cuda.get_device_name(self.device)}, {free:.1f} of {total:.1f} GB free"


def _tensor(array: Array) -> Any:
    """An array as a tensor on the host; PyTorch warns of arrays that it might write to, but must not."""
    array = np.ascontiguousarray(array)
    return torch.from_numpy(array if array.flags.writeable else array.copy())


#: For each rule its sums along a side and its statistics, as `triton_kernels.sweep` knows them.
_FUSED_RULES: dict[Any, tuple[tuple[str, ...], tuple[str, ...]]] = {
    rules.pulls: (("pull",), ("gain", "counts")),
    rules.pulls_and_pushes: (("pull", "push"), ("cost",)),
    rules.costs: ((), ("cost",)),
    rules.means: ((), ("x", "means")),
    rules.counts_and_means: ((), ("x", "counts", "means")),
}


def _fused_sweep(cells: CudaCells, rule: Rule, params: Any) -> Callable[..., tuple[tuple[Any, ...], Any]] | None:
    """A pass along one side in one kernel, if there is one for the rule and the likelihood, and cells count once."""
    likelihood: Any = getattr(params, "likelihood", None)
    kind = getattr(likelihood, "kernel", None)
    if kind is None or cells.is_first_at_cell is not None:
        return None
    kind = kind.replace("kullback-leibler", "poisson")
    as_levels, zeros = kind.endswith("ordinal"), params.zeros
    inner: Any = likelihood.inner if kind.startswith("squared") else likelihood
    if rule is rules.pushes and kind in ("ordinal", "poisson") and cells.weights is None:
        return lambda cells, side, near, far, summed, _: (
            _pushes(cells, side, far, inner, zeros) if summed else ((), None)
        )
    if rule is rules.pulls and kind.startswith("squared"):
        return None
    if rule not in _FUSED_RULES or (rule in (rules.means, rules.counts_and_means) and not as_levels):
        return None
    sums, statistics = _FUSED_RULES[rule]
    if not likelihood.learns:
        statistics = tuple(name for name in statistics if name != "counts")

    def along(cells: CudaCells, side: Side, near: Any, far: Any, summed: bool, with_totals: bool) -> Any:
        order = cells.orders[side]
        found, totals = triton_kernels.sweep(
            order.plan, order.indices, cells.values(side, as_levels), kind,
            cells.table(inner) if as_levels else None, near, far,
            sums=sums if summed else (), statistics=statistics if with_totals else (),
            unseen=None if zeros is None or rule is rules.pulls else (zeros.power, zeros.scale),
            weights=cells.weights_along(side),
        )  # fmt: skip
        if with_totals and kind == "poisson" and rule is rules.pulls:
            totals = totals + cells.poisson_constant
        return found, totals if with_totals else None

    return along


def _pushes(cells: CudaCells, side: Side, far: Any, likelihood: Any, zeros: Any) -> tuple[tuple[Any, ...], None]:
    order, scale = cells.orders[side], 0.0 if zeros is None else zeros.scale
    if likelihood.kernel == "ordinal":
        coefficients = cells.table(likelihood)[3] - scale
        n_levels = len(coefficients)
        if side is Side.COLUMNS and n_levels * cells.observed.shape[1] <= 2 * sum(cells.observed.shape):
            return (torch.matmul(coefficients, cells.columns_by_level(far, n_levels)),), None
        levels = cells.values(side, True)
        return (triton_kernels.level_sums(order.plan, order.indices, levels, coefficients, far),), None
    return ((1.0 - scale) * triton_kernels.spmm(order.plan, order.indices, None, far),), None
