# mypy: disable-error-code="no-untyped-def"
"""Triton kernels over the observed cells, for torch tensors on a GPU: no atomics, so the same bits in every run.

A `Plan` cuts the rows of a CSR matrix into chunks of cells, one program each. A chunk writes the sums of its row, or,
where a row is cut into several, a part of them, and a second kernel adds the parts in their order. The same functions
serve the columns: pass the plan and the indices of the column order, and swap the factors `near` (of the plan's rows)
and `far` (of `indices`). The rows of `far` are gathered from all over memory and are the cost of every pass: `sweep`
gathers them once for the products x, the likelihood's rule at each cell, and the sums along the rows.

The dtype of the factors is the dtype of the arithmetic; statistics are in float64. All tensors must be contiguous and
on one device. Only the functions that plan wait for it.
"""

from dataclasses import dataclass
from functools import lru_cache
from math import lgamma
from typing import Any

import numpy as np
import torch
import triton
import triton.language as tl

from halfseen.arrays import Array

#: Cells per chunk: long enough that parts of cut rows are few, short enough that the longest chunk is soon done.
CELLS_PER_CHUNK = 2048
#: Chunks per launch of a pass with statistics: limits the memory of their partial sums.
CHUNKS_PER_LAUNCH = 1 << 20
#: Levels per pass of statistics by level.
LEVELS_PER_PASS = 64
#: Bytes of the normal equations of one batch of rows.
BYTES_PER_BATCH = 1 << 28
#: Largest number of components for which normal equations are formed.
MAX_NEWTON_COMPONENTS = 128
#: Scores per tile of `top_k`.
SCORES_PER_TILE = 1 << 26

#: The likelihoods of `sweep`.
KINDS = ("poisson", "ordinal", "squared poisson", "squared ordinal")
#: The statistics of `sweep` in the order in which they are returned: totals, then sums by level.
TOTALS, BY_LEVEL = ("gain", "cost", "x"), ("counts", "means")


# Plans


@dataclass(frozen=True)
class Plan:
    """Chunks of the rows of a CSR matrix, longest first. Tensors are on the device.

    Parameters
    ----------
    n_rows, n_slots : int
        Rows of the sums, and rows of scratch behind them for the parts of rows that are cut.
    first : Tensor of int64 of shape (n_chunks,)
        First cell of each chunk.
    count, row : Tensor of int32 of shape (n_chunks,)
        Number of cells (0 for a row without cells), and row.
    target : Tensor of int64 of shape (n_chunks,)
        Row of the sums to write: that of the chunk, or `n_rows` plus a slot.
    cut_row, cut_slot, cut_count : Tensor of shape (n_cut,)
        Rows of several chunks, with their first slot and their number of slots, which are consecutive.
    """

    n_rows: int
    n_slots: int
    first: Any
    count: Any
    row: Any
    target: Any
    cut_row: Any
    cut_slot: Any
    cut_count: Any

    @property
    def n_chunks(self) -> int:
        return int(self.first.shape[0])

    def launches(self, size: int) -> list[tuple[int, tuple[Any, ...]]]:
        """Number, and first, count, row, target, of at most `size` chunks at a time."""
        arrays = self.first, self.count, self.row, self.target
        parts = [tuple(array[top : top + size] for array in arrays) for top in range(0, self.n_chunks, size)]
        return [(len(part[0]), part) for part in parts]

    def empty_sums(self, like: Any, *width: int) -> Any:
        return torch.empty((self.n_rows + self.n_slots, *width), dtype=_dtype(like), device=like.device)

    def add_parts(self, sums: Any) -> Any:
        """The first `n_rows` rows of `sums`, after the parts of cut rows are added into them, in order."""
        width = sums[:1].numel()
        if len(self.cut_row) and width:
            block = min(128, max(16, triton.next_power_of_2(width)))
            grid = (len(self.cut_row), triton.cdiv(width, block))
            slots = self.cut_row, self.cut_slot, self.cut_count
            add_parts_kernel[grid](sums, *slots, self.n_rows, width, SLOTS=8, BLOCK=block, num_warps=1)
        return sums[: self.n_rows]


def plan_rows(indptr: Array, device: Any, cells_per_chunk: int = CELLS_PER_CHUNK) -> Plan:
    """Cut the rows into chunks of at most `cells_per_chunk` cells.

    `indptr` are row pointers on the host; a slice of them, which need not start at 0, plans a range of rows.
    """
    indptr = np.asarray(indptr, np.int64)
    lengths = np.diff(indptr)
    chunks = np.maximum(1, -(-lengths // cells_per_chunk))
    row = np.repeat(np.arange(lengths.size), chunks)
    start = (np.arange(row.size) - np.repeat(np.cumsum(chunks) - chunks, chunks)) * cells_per_chunk
    count = np.minimum(lengths[row] - start, cells_per_chunk)
    is_part = chunks[row] > 1
    target = np.where(is_part, lengths.size + np.cumsum(is_part) - 1, row)
    # longest first; NumPy sorts 16 bits by radix
    missing = cells_per_chunk - count
    order = np.argsort(missing.astype(np.uint16) if cells_per_chunk < 1 << 16 else missing, kind="stable")
    cut = np.flatnonzero(chunks > 1)
    slot = np.cumsum(chunks[cut]) - chunks[cut]

    def place(array: Array, dtype: Any) -> Any:
        return torch.from_numpy(array.astype(dtype)).to(device)

    chunk_arrays = [
        place(array[order], dtype)
        for array, dtype in ((indptr[row] + start, "i8"), (count, "i4"), (row, "i4"), (target, "i8"))
    ]
    chunk_arrays += [place(cut, "i8"), place(slot, "i8"), place(chunks[cut], "i4")]
    return Plan(lengths.size, int(is_part.sum()), *chunk_arrays)


@triton.jit
def add_parts_kernel(sums, cut_row, cut_slot, cut_count, n_rows, width, SLOTS: tl.constexpr, BLOCK: tl.constexpr):
    cut = tl.program_id(0)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    first = tl.load(cut_slot + cut) + n_rows
    count = tl.load(cut_count + cut)
    slots = tl.arange(0, SLOTS)
    total = tl.zeros([BLOCK], sums.dtype.element_ty)
    for start in range(0, count, SLOTS):
        part = start + slots
        at = (first + part)[:, None] * width + column[None, :]
        total += tl.sum(tl.load(sums + at, mask=(part < count)[:, None] & (column < width)[None, :], other=0.0), axis=0)
    tl.store(sums + tl.load(cut_row + cut) * width + column, total, mask=column < width)


def _dtype(factor: Any) -> Any:
    """The dtype of the arithmetic: float32 for a factor in half precision."""
    return factor.dtype if factor.dtype in (torch.float32, torch.float64) else torch.float32


def _tile(k: int, dtype: Any, cells: int | None, num_warps: int | None) -> dict[str, int]:
    """Compile-time sizes of a gathered tile of `cells` rows of `far`, each in S segments of C components.

    A segment is 128 bytes as a rule, which 8 lanes load; a warp loads the same segment of 4 cells at once. So products
    need 3 exchanges between lanes rather than 5. Of 32 cells each lane computes the rule of one; fewer are computed
    more than once, but longer rows of `far` leave no registers for 32.
    """
    K = max(4, triton.next_power_of_2(k))
    C = max(min(K, 128 // dtype.itemsize), K // 4)
    S, size = K // C, K * dtype.itemsize
    cells = cells or (32 if size <= 512 else 8)
    return {"k": k, "S": S, "C": C, "CELLS": cells, "num_warps": num_warps or max(1, size // 1024)}


@triton.jit
def component_offsets(S: tl.constexpr, C: tl.constexpr):
    return tl.arange(0, S)[:, None] * C + tl.arange(0, C)[None, :]


@triton.jit
def gather_rows(indices, far, p, valid, k: tl.constexpr, S: tl.constexpr, C: tl.constexpr):
    """The rows of the far factor at the cells p, of shape (cells, S, C): 0 where not valid and beyond k."""
    i = tl.load(indices + p, mask=valid, other=0).to(tl.int64)
    a = component_offsets(S, C)[None, :, :]
    return tl.load(far + i[:, None, None] * k + a, mask=valid[:, None, None] & (a < k), other=0.0)


@triton.jit
def products(tile, f):
    """The product of each gathered row with f."""
    return tl.sum(tl.sum(tile * f[None, :, :], axis=1), axis=1)


@triton.jit
def weighted_rows(c, tile):
    """The sum of the gathered rows times c."""
    return tl.sum(c[:, None, None] * tile, axis=0)


# Products and sums


def sddmm(
    plan: Plan, indices: Any, near: Any, far: Any, *, cells: int | None = None, num_warps: int | None = None
) -> Any:
    """x[p] = <near[u], far[i]> for every cell p = (u, i), in the order of the plan."""
    x = torch.empty(indices.shape, dtype=near.dtype, device=near.device)
    if plan.n_chunks and len(x):
        sizes = _tile(near.shape[1], near.dtype, cells, num_warps)
        sddmm_kernel[(plan.n_chunks,)](plan.first, plan.count, plan.row, indices, near, far, x, **sizes)
    return x


@triton.jit
def sddmm_kernel(
    first, count, row, indices, near, far, x,
    k: tl.constexpr, S: tl.constexpr, C: tl.constexpr, CELLS: tl.constexpr,
):  # fmt: skip
    chunk = tl.program_id(0)
    begin, n = tl.load(first + chunk), tl.load(count + chunk)
    a = component_offsets(S, C)
    f = tl.load(near + tl.load(row + chunk).to(tl.int64) * k + a, mask=a < k, other=0.0)
    for start in range(0, n, CELLS):
        cell = start + tl.arange(0, CELLS)
        valid = cell < n
        tile = gather_rows(indices, far, begin + cell, valid, k, S, C).to(f.dtype)
        tl.store(x + begin + cell, products(tile, f), mask=valid)


def spmm(
    plan: Plan, indices: Any, c: Any, far: Any, order: Any = None,
    *, cells: int | None = None, num_warps: int | None = None,
) -> Any:  # fmt: skip
    """For each row the sum of c[p] * far[i] over its cells p.

    Parameters
    ----------
    c : Tensor, pair of Tensor or None
        Coefficients of the cells; two give two sums from one gather of `far`; None stands for 1.
    order : Tensor of int, default=None
        Positions in `c` of the plan's cells. None: `c` is in the order of the plan.

    Returns
    -------
    Tensor of shape (n_rows, k), or a pair of them
    """
    both = c if isinstance(c, tuple) else (c,)
    sums = [plan.empty_sums(far, far.shape[1]) for _ in both]
    if plan.n_chunks and far.shape[1]:
        first, last = (far if both[at] is None else both[at] for at in (0, -1))
        spmm_kernel[(plan.n_chunks,)](
            plan.first, plan.count, plan.target, indices, first, last, indices if order is None else order, far, far,
            sums[0], sums[-1], ONES=c is None, TWO=len(both) == 2, ORDERED=order is not None, BY_LEVEL=False,
            **_tile(far.shape[1], sums[0].dtype, cells, num_warps),
        )  # fmt: skip
    added = tuple(plan.add_parts(part) for part in sums)
    return added if len(both) == 2 else added[0]


def level_sums(
    plan: Plan, indices: Any, y: Any, table_row: Any, far: Any,
    *, cells: int | None = None, num_warps: int | None = None,
) -> Any:  # fmt: skip
    """For each row the sum of table_row[y[p]] * far[i] over its cells p; `y` are levels in the order of the plan."""
    sums = plan.empty_sums(far, far.shape[1])
    if plan.n_chunks and far.shape[1]:
        spmm_kernel[(plan.n_chunks,)](
            plan.first, plan.count, plan.target, indices, y, y, indices, table_row, far, sums, sums,
            ONES=False, TWO=False, ORDERED=False, BY_LEVEL=True, **_tile(far.shape[1], sums.dtype, cells, num_warps),
        )  # fmt: skip
    return plan.add_parts(sums)


@triton.jit
def spmm_kernel(
    first, count, target, indices, c, d, order, table, far, of_c, of_d,
    k: tl.constexpr, S: tl.constexpr, C: tl.constexpr, CELLS: tl.constexpr,
    ONES: tl.constexpr, TWO: tl.constexpr, ORDERED: tl.constexpr, BY_LEVEL: tl.constexpr,
):  # fmt: skip
    chunk = tl.program_id(0)
    begin, n = tl.load(first + chunk), tl.load(count + chunk)
    DTYPE: tl.constexpr = of_c.dtype.element_ty
    total = tl.zeros([S, C], DTYPE)
    other = tl.zeros([S, C], DTYPE)
    for start in range(0, n, CELLS):
        cell = start + tl.arange(0, CELLS)
        valid = cell < n
        p = begin + cell
        tile = gather_rows(indices, far, p, valid, k, S, C).to(DTYPE)
        if ONES:
            total += tl.sum(tile, axis=0)
        else:
            if ORDERED:
                p = tl.load(order + p, mask=valid, other=0).to(tl.int64)
            of_cell = tl.load(c + p, mask=valid, other=0)
            if BY_LEVEL:
                of_cell = tl.load(table + of_cell.to(tl.int32), mask=valid, other=0.0)
            total += weighted_rows(of_cell.to(DTYPE), tile)
            if TWO:
                other += weighted_rows(tl.load(d + p, mask=valid, other=0).to(DTYPE), tile)
    a = component_offsets(S, C)
    at = tl.load(target + chunk) * k + a
    tl.store(of_c + at, total, mask=a < k)
    if TWO:
        tl.store(of_d + at, other, mask=a < k)


# The fused sweep


def sweep(
    plan: Plan, indices: Any, y: Any, kind: str, table: Any, near: Any, far: Any,
    *, sums: tuple[str, ...] = ("pull",), statistics: tuple[str, ...] = (),
    unseen: tuple[int, Any] | None = None, weights: Any = None, cells: int | None = None, num_warps: int | None = None,
) -> tuple[tuple[Any, ...], Any]:  # fmt: skip
    """Products, rule, sums along the rows and statistics of the cells, in one pass with one gather of `far`.

    At each cell x = <near[u], far[i]>. Formulas as in `likelihoods`; those of the squared kinds are at the rate x * x.

    Parameters
    ----------
    y : Tensor of shape (nnz,)
        Values, or levels as integers, in the order of the plan.
    kind : {"poisson", "ordinal", "squared poisson", "squared ordinal"}
        The likelihood.
    table : Tensor of float of shape (4, n_levels) or None
        For each level the decrement D (0 for level 0), the same but infinite for level 0, theta, and the push.
        Poisson needs none, except for its length if `y` are levels and statistics by level are asked for.
    sums : tuple of {"pull", "push"}
        The coefficients of the sums along the rows, in this order.
    statistics : tuple of {"gain", "cost", "x", "counts", "means"}
        Totals over all cells of log p + push * x (y log x for Poisson: without its constants), of the divergence, and
        of x (of x * x if unseen cells push with power 1, or else if the kind is squared); and by level the sums of
        pull * x (half of it for the squared kinds) and of the rate.
    unseen : pair of int and float or Tensor, default=None
        Power and scale of the push of an unseen cell that counts as a zero, which is subtracted from push and cost.
    weights : Tensor of shape (nnz,), default=None
        Weights of the cells, in the order of the plan; of all but "x", and not of what is subtracted.

    Returns
    -------
    sums : tuple of Tensor of shape (n_rows, k)
    statistics : Tensor of float64
        Those asked for, totals first, in the order above whatever the order asked for.
    """
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(KINDS)}; found {kind!r}.")
    k, device = near.shape[1], near.device
    levels = table.shape[1] if set(statistics) & set(BY_LEVEL) else 0
    power = unseen[0] if unseen is not None else -1
    scale = near if unseen is None else _scalar(unseen[1], near)
    arrays = table if table is not None else near, near, far, scale, near if weights is None else weights
    outs: dict[str, Any] = {name: plan.empty_sums(near, k) for name in ("pull", "push") if name in sums}
    out_arrays = [outs.get(name, near) for name in ("pull", "push")]
    tiny = float(torch.finfo(near.dtype).smallest_normal)
    rule = {
        "ORDINAL": kind.endswith("ordinal"), "SQUARED": kind.startswith("squared"), "UNSEEN": power,
        "WEIGHTED": weights is not None,
        "TERMS": 10 if near.dtype == torch.float32 else 16, "FLOOR": tiny**0.5, "ROOT_FLOOR": tiny**0.25,
    }  # fmt: skip
    sizes = _tile(k, near.dtype, cells, num_warps)

    def launch(lowest: int, asked: dict[str, bool], summed: bool) -> Any:
        """Totals asked for and the sums by level from the `lowest` on."""
        width = max(0, min(levels - lowest, LEVELS_PER_PASS))
        n_totals, n_by_level = (sum(asked[name] for name in names) for names in (TOTALS, BY_LEVEL))
        size = n_totals + n_by_level * width
        added = torch.zeros(size, dtype=torch.float64, device=device)
        for n, part in plan.launches(CHUNKS_PER_LAUNCH):
            partial = torch.empty((n, size), dtype=torch.float64, device=device)
            sweep_kernel[(n,)](
                *part, indices, y, *arrays, *out_arrays, partial,
                table.shape[1] if table is not None else 1, lowest, width, size,
                **rule, **{name.upper(): asked[name] for name in TOTALS + BY_LEVEL},
                PULL=summed and "pull" in outs, PUSH=summed and "push" in outs,
                LEVELS=max(1, triton.next_power_of_2(width)), **sizes,
            )  # fmt: skip
            if size:
                added += partial.sum(dim=0)
        return added[:n_totals], added[n_totals:].reshape(n_by_level, width)

    asked = {name: name in statistics for name in TOTALS + BY_LEVEL}
    totals, first = launch(0, asked, True)
    by_level = [first]
    for lowest in range(LEVELS_PER_PASS, levels, LEVELS_PER_PASS):
        by_level.append(launch(lowest, asked | dict.fromkeys(TOTALS, False), False)[1])
    added = tuple(plan.add_parts(outs[name]) for name in sums)
    return added, torch.cat([totals, torch.cat(by_level, dim=1).reshape(-1)])


def _scalar(value: Any, like: Any) -> Any:
    """A number on the device: Triton would round a float argument to float32."""
    if isinstance(value, torch.Tensor):
        return value.to(dtype=like.dtype)
    return torch.full((1,), value, dtype=like.dtype, device=like.device)


@triton.jit
def floored_at(x, FLOOR: tl.constexpr):
    floor = tl.full(x.shape, FLOOR, x.dtype)
    return tl.where(x < floor, floor, x)


@triton.jit
def one_minus_exp(z, TERMS: tl.constexpr):
    """1 - exp(-z) for z >= 0, below 1/2 by its series z (1 - z/2 (1 - z/3 (1 - ...)))."""
    half = tl.full(z.shape, 0.5, z.dtype)
    near = tl.where(z < half, z, half)
    series = tl.full(z.shape, 1.0, z.dtype)
    for term in tl.static_range(TERMS - 1):
        series = 1.0 - near * series * (1.0 / (TERMS - term))
    return tl.where(z < half, near * series, 1.0 - tl.exp(-z))


@triton.jit
def sweep_kernel(
    first, count, row, target, indices, y, table, near, far, scale, weights, pulls, pushes, partial,
    n_levels, lowest, width, size,
    k: tl.constexpr, S: tl.constexpr, C: tl.constexpr, CELLS: tl.constexpr, LEVELS: tl.constexpr,
    ORDINAL: tl.constexpr, SQUARED: tl.constexpr, UNSEEN: tl.constexpr, WEIGHTED: tl.constexpr,
    TERMS: tl.constexpr, FLOOR: tl.constexpr, ROOT_FLOOR: tl.constexpr, PULL: tl.constexpr, PUSH: tl.constexpr,
    GAIN: tl.constexpr, COST: tl.constexpr, X: tl.constexpr, COUNTS: tl.constexpr, MEANS: tl.constexpr,
):  # fmt: skip
    chunk = tl.program_id(0)
    begin, n = tl.load(first + chunk), tl.load(count + chunk)
    DTYPE: tl.constexpr = near.dtype.element_ty
    a = component_offsets(S, C)
    f = tl.load(near + tl.load(row + chunk).to(tl.int64) * k + a, mask=a < k, other=0.0)
    if UNSEEN >= 0:
        unseen = tl.load(scale)
    of_pull = tl.zeros([S, C], DTYPE)
    of_push = tl.zeros([S, C], DTYPE)
    gains = tl.zeros([CELLS], tl.float64)
    costs = tl.zeros([CELLS], tl.float64)
    xs = tl.zeros([CELLS], tl.float64)
    counts = tl.zeros([LEVELS, CELLS], tl.float64)
    means = tl.zeros([LEVELS, CELLS], tl.float64)
    for start in range(0, n, CELLS):
        cell = start + tl.arange(0, CELLS)
        valid = cell < n
        p = begin + cell
        tile = gather_rows(indices, far, p, valid, k, S, C).to(DTYPE)
        x = products(tile, f)
        value = tl.load(y + p, mask=valid, other=0)

        # the rule at the rate
        rate = x
        if SQUARED:
            rate = x * x
        above = floored_at(rate, FLOOR)
        if ORDINAL:
            level = value.to(tl.int32)
            decrement = tl.load(table + level, mask=valid, other=0.0).to(DTYPE)
            steep = tl.load(table + n_levels + level, mask=valid, other=1.0).to(DTYPE)
            push = tl.load(table + 3 * n_levels + level, mask=valid, other=0.0).to(DTYPE)
            risen = one_minus_exp(steep * above, TERMS)
            pull = decrement / risen
            if GAIN or COST:
                theta = tl.load(table + 2 * n_levels + level, mask=valid, other=0.0).to(DTYPE)
                cost = theta * rate - tl.log(risen)
                gain = push * rate - cost
        else:
            of_cell = value.to(DTYPE)
            pull = of_cell / above
            push = tl.full([CELLS], 1.0, DTYPE)
            gain = of_cell * tl.log(above)
            if COST:
                logarithm = tl.log(floored_at(of_cell, FLOOR) / above)
                cost = tl.where(of_cell > 0.0, of_cell * logarithm, 0.0) - of_cell + rate
        if SQUARED:
            pull = 2.0 * floored_at(x, ROOT_FLOOR) * pull
            push = 2.0 * x * push

        weight = 1.0
        if WEIGHTED:
            weight = tl.load(weights + p, mask=valid, other=0.0).to(DTYPE)
            pull = pull * weight
            push = push * weight
            if GAIN:
                gain = gain * weight
            if COST:
                cost = cost * weight

        # what the cell would push and cost if it were not observed
        if UNSEEN == 0:
            push = push - unseen
            if COST:
                cost = cost - unseen * x
        if UNSEEN == 1:
            push = push - unseen * x
            if COST:
                cost = cost - 0.5 * unseen * x * x

        # sums and statistics
        if PULL:
            of_pull += weighted_rows(pull, tile)
        if PUSH:
            of_push += weighted_rows(push, tile)
        if GAIN:
            gains += tl.where(valid, gain, 0.0).to(tl.float64)
        if COST:
            costs += tl.where(valid, cost, 0.0).to(tl.float64)
        if X:
            if UNSEEN == 1 or (UNSEEN < 0 and SQUARED):
                xs += tl.where(valid, x * x, 0.0).to(tl.float64)
            else:
                xs += tl.where(valid, x, 0.0).to(tl.float64)
        if COUNTS or MEANS:
            # a cell that is not valid has x = 0, and adds nothing
            is_level = value.to(tl.int32)[None, :] - lowest == tl.arange(0, LEVELS)[:, None]
            if COUNTS:
                n_cell = pull * x
                if SQUARED:
                    n_cell = n_cell * 0.5
                counts += tl.where(is_level, n_cell[None, :], 0.0).to(tl.float64)
            if MEANS:
                means += tl.where(is_level, (rate * weight)[None, :], 0.0).to(tl.float64)

    at = tl.load(target + chunk) * k + a
    if PULL:
        tl.store(pulls + at, of_pull, mask=a < k)
    if PUSH:
        tl.store(pushes + at, of_push, mask=a < k)
    to = partial + chunk.to(tl.int64) * size
    if GAIN:
        tl.store(to, tl.sum(gains, axis=0))
        to += 1
    if COST:
        tl.store(to, tl.sum(costs, axis=0))
        to += 1
    if X:
        tl.store(to, tl.sum(xs, axis=0))
        to += 1
    levels = tl.arange(0, LEVELS)
    if COUNTS:
        tl.store(to + levels, tl.sum(counts, axis=1), mask=levels < width)
        to += width
    if MEANS:
        tl.store(to + levels, tl.sum(means, axis=1), mask=levels < width)


# Newton's method by rows


def plan_batches(
    indptr: Array, k: int, dtype: Any, device: Any, size: int = BYTES_PER_BATCH
) -> list[tuple[slice, Plan]]:
    """Batches of consecutive rows whose normal equations need about `size` bytes, each with its plan."""
    indptr = np.asarray(indptr, np.int64)
    per_batch = max(1, size // max(1, k * k * dtype.itemsize))
    matrices = np.arange(indptr.size) + indptr // CELLS_PER_CHUNK  # rows, and parts of cut rows
    batches, top = [], 0
    while top < indptr.size - 1:
        end = max(top + 1, int(np.searchsorted(matrices, matrices[top] + per_batch, side="right")) - 1)
        batches.append((slice(top, end), plan_rows(indptr[top : end + 1], device)))
        top = end
    return batches


def normal_equations(
    plan: Plan | Array, indices: Any, slope: Any, curvature: Any, far: Any, order: Any = None,
    rows: slice = slice(None), *, cells: int = 16, num_warps: int | None = None,
) -> tuple[Any, Any]:  # fmt: skip
    """For each row g = sum of slope * far[i], of shape (n, k), and A = sum of curvature * far[i] far[i]^T, (n, k, k).

    `plan` is a plan, or pointers on the host, of which `rows` may select a range; `order` as in `spmm`.
    """
    if not isinstance(plan, Plan):
        start, stop, _ = rows.indices(len(plan) - 1)
        plan = plan_rows(plan[start : stop + 1], far.device)
    k = far.shape[1]
    if k > MAX_NEWTON_COMPONENTS:
        raise ValueError(f"Normal equations are formed for at most {MAX_NEWTON_COMPONENTS} components; found {k}.")
    g, A = plan.empty_sums(far, k), plan.empty_sums(far, k, k)
    if plan.n_chunks:
        K = max(16, triton.next_power_of_2(k))
        normal_equations_kernel[(plan.n_chunks,)](
            plan.first, plan.count, plan.target, indices, slope, curvature, order if order is not None else indices,
            far, g, A, k=k, K=K, CELLS=cells, ORDERED=order is not None,
            num_warps=num_warps or min(8, max(1, K * K * far.itemsize // 8192)),
        )  # fmt: skip
    return plan.add_parts(g), plan.add_parts(A)


@triton.jit
def normal_equations_kernel(
    first, count, target, indices, slope, curvature, order, far, g, A,
    k: tl.constexpr, K: tl.constexpr, CELLS: tl.constexpr, ORDERED: tl.constexpr,
):  # fmt: skip
    chunk = tl.program_id(0)
    begin, n = tl.load(first + chunk), tl.load(count + chunk)
    DTYPE: tl.constexpr = far.dtype.element_ty
    a = tl.arange(0, K)
    of_slope = tl.zeros([K], DTYPE)
    of_curvature = tl.zeros([K, K], DTYPE)
    for start in range(0, n, CELLS):
        cell = start + tl.arange(0, CELLS)
        valid = cell < n
        p = begin + cell
        i = tl.load(indices + p, mask=valid, other=0).to(tl.int64)
        tile = tl.load(far + i[:, None] * k + a[None, :], mask=valid[:, None] & (a < k)[None, :], other=0.0)
        if ORDERED:
            p = tl.load(order + p, mask=valid, other=0).to(tl.int64)
        s = tl.load(slope + p, mask=valid, other=0.0).to(DTYPE)
        c = tl.load(curvature + p, mask=valid, other=0.0).to(DTYPE)
        of_slope += tl.sum(s[:, None] * tile, axis=0)
        of_curvature = tl.dot(tl.trans(c[:, None] * tile), tile, of_curvature, input_precision="ieee", out_dtype=DTYPE)
    to = tl.load(target + chunk)
    tl.store(g + to * k + a, of_slope, mask=a < k)
    tl.store(A + to * k * k + a[:, None] * k + a[None, :], of_curvature, mask=(a < k)[:, None] & (a < k)[None, :])


def newton_step(
    batches: list[tuple[slice, Plan]], indices: Any, slope: Any, curvature: Any, near: Any, far: Any,
    l2: Any, centre: Any, fixed: Any, order: Any = None,
) -> Any:  # fmt: skip
    """near - A^{-1} g for each row, with the ridge penalty added to g and A (`engines.base.Engine.newton_step`).

    A component that is fixed, or not determined by its row, does not move. `batches` are those of `plan_batches`;
    `l2`, `centre` and `fixed` have one number per component.
    """
    k = near.shape[1]
    out = torch.empty_like(near)
    penalty = [array.to(near.dtype) for array in (l2, centre, fixed)]
    K = max(16, triton.next_power_of_2(k))
    num_warps = min(8, max(1, K * K * near.itemsize // 8192))
    for rows, plan in batches:
        g, A = normal_equations(plan, indices, slope, curvature, far, order)
        solve_kernel[(plan.n_rows,)](
            A, g, near[rows], *penalty, out[rows],
            EPS=float(torch.finfo(near.dtype).eps), k=k, K=K, num_warps=num_warps,
        )  # fmt: skip
    return out


@triton.jit
def solve_kernel(A, g, near, l2, centre, fixed, out, EPS: tl.constexpr, k: tl.constexpr, K: tl.constexpr):
    """Cholesky's method as in `kernels.steps._solve`; the columns of the factor replace those of the matrix."""
    u = tl.program_id(0).to(tl.int64)
    a = tl.arange(0, K)
    inside = a < k
    both = inside[:, None] & inside[None, :]
    M = tl.load(A + u * k * k + a[:, None] * k + a[None, :], mask=both, other=0.0)
    f = tl.load(near + u * k + a, mask=inside, other=0.0)
    ridge = tl.load(l2 + a, mask=inside, other=0.0)
    v = tl.load(g + u * k + a, mask=inside, other=0.0) + ridge * (f - tl.load(centre + a, mask=inside, other=0.0))
    is_free = tl.where(tl.load(fixed + a, mask=inside, other=1.0) == 0.0, 1, 0)
    is_diagonal = a[:, None] == a[None, :]
    M += tl.where(is_diagonal, ridge[:, None], 0.0)
    lowest = tl.max(tl.sum(tl.where(is_diagonal, M, 0.0), axis=1), axis=0) * EPS * k
    inverse = tl.zeros([K], M.dtype)  # of the roots of the pivots
    for j in range(k):
        column = tl.sum(tl.where((a == j)[None, :], M, 0.0), axis=1)
        pivot = tl.sum(tl.where(a == j, column, 0.0), axis=0)
        moves = (pivot > lowest) & (tl.sum(tl.where(a == j, is_free, 0), axis=0) > 0)
        root = tl.where(moves, 1.0 / tl.sqrt(tl.where(moves, pivot, 1.0)), 0.0)
        column = tl.where(a > j, column * root, 0.0)
        M = tl.where((a == j)[None, :], column[:, None], M - column[:, None] * column[None, :])
        entry = tl.sum(tl.where(a == j, v, 0.0), axis=0) * root
        v = tl.where(a == j, entry, v - column * entry)
        inverse = tl.where(a == j, root, inverse)
    for step in range(k):
        j = k - 1 - step
        column = tl.sum(tl.where((a == j)[None, :], M, 0.0), axis=1)
        v = tl.where(a == j, (v - tl.sum(column * v, axis=0)) * inverse, v)
    tl.store(out + u * k + a, f - v, mask=inside)


# Ranking


def top_k(
    W: Any, H: Any, n: int, hidden_indptr: Any = None, hidden_indices: Any = None, tile_rows: int | None = None
) -> tuple[Any, Any]:
    """The n best columns of each row of W @ H.T, best first; of equal scores the first column.

    Parameters
    ----------
    n : int
        Columns per row; if there are fewer, as many as these.
    hidden_indptr, hidden_indices : Tensor of int, default=None
        Columns that must not be returned, listed row by row, on the device.
    tile_rows : int, default=None
        Rows of scores computed at a time. None: as many as give `SCORES_PER_TILE` scores.

    Returns
    -------
    columns : Tensor of int64 of shape (rows, min(n, columns))
        -1 where no column is left. Scores of NaN and -inf are never kept.
    scores : Tensor
        NaN where no column is left.
    """
    rows, m = W.shape[0], H.shape[0]
    n = min(n, m)
    columns = torch.empty((rows, n), dtype=torch.int64, device=W.device)
    scores = torch.empty((rows, n), dtype=W.dtype, device=W.device)
    tile_rows = tile_rows or max(1, SCORES_PER_TILE // max(1, m))
    for top in range(0, rows if n else 0, tile_rows):
        part = slice(top, min(top + tile_rows, rows))
        x = W[part] @ H.T
        if hidden_indptr is not None:
            hide_kernel[(len(x),)](
                x, hidden_indptr[part.start : part.stop + 1], hidden_indices, m, BLOCK=128, num_warps=1
            )
        if x.dtype == torch.float32:
            keys = torch.empty(x.shape, dtype=torch.int64, device=x.device)
            keys_kernel[(len(x), triton.cdiv(m, 1024))](x, keys, m, BLOCK=1024)
            best = m - 1 - (torch.topk(keys, n, dim=1).values & 0xFFFFFFFF)
        else:
            x = torch.where(torch.isnan(x), -torch.inf, x)
            best = torch.sort(x, dim=1, descending=True, stable=True).indices[:, :n]
        score = torch.gather(x, 1, best)
        is_kept = score > -torch.inf
        columns[part] = torch.where(is_kept, best, -1)
        scores[part] = torch.where(is_kept, score, torch.nan)
    return columns, scores


@triton.jit
def hide_kernel(x, indptr, indices, m, BLOCK: tl.constexpr):
    """Set the scores of the listed columns to -inf."""
    row = tl.program_id(0)
    begin, end = tl.load(indptr + row), tl.load(indptr + row + 1)
    for start in range(begin, end, BLOCK):
        p = start + tl.arange(0, BLOCK)
        column = tl.load(indices + p, mask=p < end, other=0).to(tl.int64)
        nothing = tl.full([BLOCK], float("-inf"), x.dtype.element_ty)
        tl.store(x + row.to(tl.int64) * m + column, nothing, mask=p < end)


@triton.jit
def keys_kernel(x, keys, m, BLOCK: tl.constexpr):
    """Integers in the order of (score, -column): NaN as -inf, -0 as 0."""
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    at = tl.program_id(0).to(tl.int64) * m + column
    score = tl.load(x + at, mask=column < m, other=0.0)
    score = tl.where(score == score, score, float("-inf"))
    bits = tl.where(score == 0.0, 0.0, score).to(tl.int32, bitcast=True)
    ordered = bits ^ ((bits >> 31) & 0x7FFFFFFF)
    tl.store(keys + at, (ordered.to(tl.int64) << 32) | (m - 1 - column).to(tl.int64), mask=column < m)


# The gamma posterior


def gamma_posterior(
    P: Any, Q: Any, geometric: Any, b: Any, shape: float, *, rows: int | None = None, num_warps: int = 4
) -> tuple[Any, ...]:
    """Gamma(shape + geometric * P, b + Q) of every entry, as in `solvers.gamma.Gamma._update`.

    Parameters
    ----------
    P, geometric : Tensor of shape (n, k)
        Sums of the pulls, and the geometric means before.
    Q : Tensor of shape (n, k), (k,) or (1, k)
        Sums of the pushes; a single row is that of all rows.
    b : Tensor of shape (n,), (n, 1) or (1,)
        Prior rates.
    shape : float
        Prior shape.

    Returns
    -------
    shape, rate, mean, geometric : Tensor of shape (n, k)
    gain : Tensor of float64 of shape (n,)
        Sum of E[log p(w)] - E[log q(w)] of each row.
    pushed : Tensor of float64 of shape (n,)
        Sum of mean * Q of each row.
    """
    n, k = P.shape
    outs = [torch.empty_like(P) for _ in range(4)]
    gain, pushed = (torch.zeros(n, dtype=torch.float64, device=P.device) for _ in range(2))
    if n and k:
        K = triton.next_power_of_2(k)
        rows = rows or max(1, 1024 // K)
        gamma_posterior_kernel[(triton.cdiv(n, rows),)](
            P, Q, geometric, b.to(P.dtype), *_numbers(P.device, gain.dtype, shape, lgamma(shape)).split(1), *outs,
            gain, pushed, n,
            k=k, K=K, ROWS=rows, FULL=Q.numel() == n * k, SAME_RATE=b.numel() == 1,
            SMALLEST=float(torch.finfo(P.dtype).smallest_normal) ** 0.5, num_warps=num_warps,
        )  # fmt: skip
    return *outs, gain, pushed


@triton.jit
def gamma_posterior_kernel(
    P, Q, geometric, b, prior_shape, log_gamma_of_prior, shapes, rates, means, geometrics, gains, pusheds, n,
    k: tl.constexpr, K: tl.constexpr, ROWS: tl.constexpr,
    FULL: tl.constexpr, SAME_RATE: tl.constexpr, SMALLEST: tl.constexpr,
):  # fmt: skip
    """With t = shape + 8, r = 1 / t and `kernels.special`'s p(shape) = product of shape + i for i below 8:

        digamma = log t - d,    d = r/2 + r^2/12 - ... + sum of 1 / (shape + i),
        E[log p] - E[log q] = a log(t / rate) - log(sqrt(t) p / t^8) - (a - shape) d - 8 + log(2 pi)/2 + r/12 - ...

    but for what b adds: nothing large cancels. geometric = t / rate exp(-d), where d is largest by 1 / shape: in single
    precision that term is corrected and the exponential split, because geometric means down to exp(-43) are kept.
    """
    DTYPE: tl.constexpr = P.dtype.element_ty
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, K)
    inside = (row < n)[:, None] & (column < k)[None, :]
    at = row[:, None] * k + column[None, :]
    a64 = tl.load(prior_shape)
    a = a64.to(DTYPE)
    pulls = tl.load(P + at, mask=inside, other=0.0)
    if FULL:
        pushes = tl.load(Q + at, mask=inside, other=0.0)
    else:
        pushes = tl.load(Q + column, mask=column < k, other=0.0)[None, :] + tl.zeros([ROWS, K], DTYPE)
    if SAME_RATE:  # noqa: SIM108
        prior_rate = tl.load(b) + tl.zeros([ROWS], DTYPE)
    else:
        prior_rate = tl.load(b + row, mask=row < n, other=1.0)
    shape = a + tl.load(geometric + at, mask=inside, other=0.0) * pulls
    rate = tl.where(inside, prior_rate[:, None] + pushes, 1.0)
    mean = shape / rate

    t = shape + 8.0
    r = 1.0 / t
    s = r * r
    tail = s * (1 / 12 - s * (1 / 120 - s * (1 / 252 - s * (1 / 240 - s * (1 / 132 - s * (691 / 32760 - s / 12))))))
    stirling = 1 / 1680 - s * (1 / 1188 - s * (691 / 360360 - s / 156))
    stirling = r * (1 / 12 - s * (1 / 360 - s * (1 / 1260 - s * stirling)))
    # the shift by eight, scaled by t: q = shape (shape + 7), p = q (q + 6) (q + 10) (q + 12)
    last = (shape + 7.0) * r
    q = shape * r * last
    q6, q10, q12 = q + 6.0 * s, q + 10.0 * s, q + 12.0 * s
    product = q6 * q10 * q12
    shift = r * (1.0 / last + (2.0 * shape + 7.0) * r * ((q10 * q12 + q6 * q12 + q6 * q10) / product))
    inverse = 1.0 / shape
    near = 0.5 * r + tail + shift
    d = near + inverse
    ratio = t / rate
    if tl.float32 == DTYPE:
        rest = 1.0 - shape.to(tl.float64) * inverse.to(tl.float64)
        whole = inverse.to(tl.float64) * (1.0 + rest) + near.to(tl.float64)
        bits = whole * 1.4426950408889634
        n_bits = tl.floor(bits)
        fraction = (bits - n_bits).to(tl.float32)
        new = ratio * tl.exp2(-fraction) * tl.exp2(-n_bits.to(tl.float32))
    else:
        new = ratio * tl.exp(-d)
    new = tl.where(new < tl.full(new.shape, SMALLEST, DTYPE), 0.0, new)

    entry = a * tl.log(ratio) - tl.log(tl.sqrt(t) * (q * product)) - (a - shape) * d + stirling
    entry = tl.where(inside, entry.to(tl.float64) - 7.081061466795327, 0.0)  # log(2 pi) / 2 - 8
    rate64 = prior_rate.to(tl.float64)
    gain = tl.sum(entry, axis=1) + k * (a64 * tl.log(rate64) - tl.load(log_gamma_of_prior))
    gain -= rate64 * tl.sum(tl.where(inside, mean, 0.0).to(tl.float64), axis=1)
    pushed = tl.sum(tl.where(inside, mean * pushes, 0.0).to(tl.float64), axis=1)
    tl.store(shapes + at, shape, mask=inside)
    tl.store(rates + at, rate, mask=inside)
    tl.store(means + at, mean, mask=inside)
    tl.store(geometrics + at, new, mask=inside)
    tl.store(gains + row, gain, mask=row < n)
    tl.store(pusheds + row, pushed, mask=row < n)


# Steps of factors


def column_sums(factor: Any) -> Any:
    """The sum over the rows of a factor, in double precision."""
    n, k = factor.shape
    rows, K = 1024, max(16, min(128, triton.next_power_of_2(max(k, 1))))
    parts = torch.zeros((max(1, triton.cdiv(n, rows)), k), dtype=torch.float64, device=factor.device)
    if factor.numel():
        column_sums_kernel[(len(parts), triton.cdiv(k, K))](factor, parts, n, k, ROWS=rows, STEP=16, K=K)
    return parts.sum(dim=0)


@triton.jit
def column_sums_kernel(factor, parts, n, k, ROWS: tl.constexpr, STEP: tl.constexpr, K: tl.constexpr):
    column = tl.program_id(1) * K + tl.arange(0, K)
    total = tl.zeros([STEP, K], tl.float64)
    for start in range(0, ROWS, STEP):
        row = tl.program_id(0).to(tl.int64) * ROWS + start + tl.arange(0, STEP)
        inside = (row < n)[:, None] & (column < k)[None, :]
        total += tl.load(factor + row[:, None] * k + column[None, :], mask=inside, other=0.0).to(tl.float64)
    tl.store(parts + tl.program_id(0).to(tl.int64) * k + column, tl.sum(total, axis=0), mask=column < k)


@lru_cache
def _numbers(device: Any, dtype: Any, *values: float) -> Any:
    """Numbers on the device, which are copied there once."""
    return torch.tensor(values, dtype=dtype, device=device)


def multiplied(F: Any, P: Any, Q: Any, l1: float, l2: float, exponent: float) -> Any:
    """F (P / (Q + l1 + l2 F))^exponent of every entry, as in `solvers.multiplicative`; Q may be one row for all."""
    n, k = F.shape
    out = torch.empty_like(F)
    if out.numel():
        numbers = _numbers(F.device, F.dtype, l1, l2, exponent)
        multiplied_kernel[(triton.cdiv(n * k, 1024),)](
            F, P, Q, numbers, out, n * k, k, FULL=Q.numel() == n * k,
            SMALLEST=float(torch.finfo(F.dtype).smallest_normal) ** 0.5,
            POWER=1 if exponent == 1.0 else 2 if exponent == 0.5 else 0, BLOCK=1024,
        )  # fmt: skip
    return out


@triton.jit
def multiplied_kernel(
    F, P, Q, numbers, out, size, k,
    FULL: tl.constexpr, SMALLEST: tl.constexpr, POWER: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < size
    f = tl.load(F + at, mask=inside, other=0.0)
    if FULL:  # noqa: SIM108
        push = tl.load(Q + at, mask=inside, other=0.0)
    else:
        push = tl.load(Q + at % k, mask=inside, other=0.0)
    push = push + (tl.load(numbers) + tl.load(numbers + 1) * f)
    pushed = push > 0.0
    ratio = tl.where(pushed, tl.load(P + at, mask=inside, other=0.0) / tl.where(pushed, push, 1.0), 1.0)
    if POWER == 2:
        ratio = tl.sqrt(ratio)
    if POWER == 0:
        is_positive = ratio > 0.0
        power = tl.exp(tl.load(numbers + 2) * tl.log(tl.where(is_positive, ratio, 1.0)))
        ratio = tl.where(is_positive, power, ratio)  # 0 and NaN stay
    new = f * ratio
    tl.store(out + at, tl.where(new < tl.full(new.shape, SMALLEST, new.dtype), 0.0, new), mask=inside)


def extrapolated(now: Any, before: Any, beta: float, largest_ratio: float) -> Any:
    """now (now / before)^beta of every entry, ratios clipped, as the rule of this name in `solvers.base`."""
    out = torch.empty_like(now)
    if out.numel():
        finfo = torch.finfo(now.dtype)
        extrapolated_kernel[(triton.cdiv(now.numel(), 1024),)](
            now, before, _scalar(beta, now), out, now.numel(), LARGEST=largest_ratio,
            TINY=float(finfo.smallest_normal), SMALLEST=float(finfo.smallest_normal) ** 0.5, BLOCK=1024,
        )  # fmt: skip
    return out


@triton.jit
def extrapolated_kernel(
    now, before, beta, out, size,
    LARGEST: tl.constexpr, TINY: tl.constexpr, SMALLEST: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < size
    x = tl.load(now + at, mask=inside, other=1.0)
    ratio = x / floored_at(tl.load(before + at, mask=inside, other=1.0), TINY)
    # numbers in tl.where would be rounded to float32
    low, high = tl.full(x.shape, 1.0 / LARGEST, x.dtype), tl.full(x.shape, LARGEST, x.dtype)
    ratio = tl.where(ratio < low, low, tl.where(ratio > high, high, ratio))
    new = x * tl.exp(tl.load(beta) * tl.log(ratio))
    tl.store(out + at, tl.where(new < tl.full(new.shape, SMALLEST, new.dtype), 0.0, new), mask=inside)
