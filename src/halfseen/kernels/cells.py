"""Loops over the observed cells: dot products (sddmm), sums along rows (spmm), and fused passes that do both at once.

All work on one block of consecutive rows of a CSR matrix: `indptr` is the block's slice of the row pointers (one longer
than the block has rows, not starting at 0), `indices`, `x`, `y`, `c` and `d` are the block's slices of the cell arrays.
The same loops serve the columns: hand them the column order and swap the factors.

Rows of the far factor `G` are gathered from all over memory. Processing several cells per iteration lets the processor
wait for several of them at once, and saves loads and stores of the near row: 4 were best for products, 8 for sums.

A fused pass processes a row's cells in groups whose rows of `G` stay in the cache: they are read for the dot products,
and again, while still there, for the sums. Rules are computed in double precision, one simple loop after another,
because such loops are vectorised and longer ones are not. `y` are values, or levels as small integers; `weight` is
empty if all are 1. `what` is the rule of `likelihoods.rules`. `squared` is for the likelihood of x^2; `floor` is the
least x, as in `arrays.floored`; an unseen zero pushes by `scale`, or by `scale * x` if squared. `table` has for each
level its decrement, the same but infinite for level 0, its theta and its push (see `Ordinal`). Sums along rows are
written to `P` and `Q`, which have no rows if they are not wanted. `totals`, empty if not wanted, gets the sum of the
rule's totals, then those by level: of E[n], and of x (or x^2). `kept`, empty if not wanted, gets the first coefficient
of each cell.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from halfseen.kernels import inlined, kernel
from halfseen.kernels.special import log, one_minus_exp

Array = npt.NDArray[Any]

#: The rules.
PULLS, PULLS_AND_PUSHES, COSTS, MEANS, COUNTS_AND_MEANS = range(5)
#: Bytes of the rows of G that a group reads: they should stay near.
_GROUP_BYTES = 65_536


@kernel
def sddmm(indptr: Array, indices: Array, F: Array, G: Array, x: Array) -> None:
    """x[p] = <F[u], G[i]> for every observed cell p = (u, i) of the block."""
    for u in range(F.shape[0]):
        start, stop = np.int64(indptr[u] - indptr[0]), np.int64(indptr[u + 1] - indptr[0])
        dots(F[u], G, indices[start:stop], x[start:stop])


@kernel
def spmm(indptr: Array, indices: Array, c: Array, G: Array, out: Array) -> None:
    """out[u] = sum of c[p] * G[i] over the observed cells p = (u, i) of row u."""
    for u in range(out.shape[0]):
        out[u, :] = 0
        start, stop = np.int64(indptr[u] - indptr[0]), np.int64(indptr[u + 1] - indptr[0])
        add_rows(c[start:stop], G, indices[start:stop], out[u])


@kernel
def spmm_both(indptr: Array, indices: Array, c: Array, d: Array, G: Array, of_c: Array, of_d: Array) -> None:
    """As `spmm`, for two coefficients at once."""
    for u in range(of_c.shape[0]):
        of_c[u, :] = 0
        of_d[u, :] = 0
        start, stop = np.int64(indptr[u] - indptr[0]), np.int64(indptr[u + 1] - indptr[0])
        add_rows_of_two(c[start:stop], d[start:stop], G, indices[start:stop], of_c[u], of_d[u])


@kernel
def sddmm_at(rows: Array, columns: Array, W: Array, H: Array, x: Array) -> None:
    """x[p] = <W[rows[p]], H[columns[p]]>."""
    for p in range(rows.size):
        w, h = W[rows[p]], H[columns[p]]
        dot = x.dtype.type(0)
        for a in range(w.size):
            dot += w[a] * h[a]
        x[p] = dot


@kernel
def gather(c: Array, positions: Array, out: Array) -> None:
    """out[p] = c[positions[p]]."""
    for p in range(positions.size):
        out[p] = c[positions[p]]


@inlined
def _cells_per_group(G: Array) -> int:
    return max(8, _GROUP_BYTES // (G.shape[1] * G.itemsize) // 8 * 8)


@kernel
def sweep_values(
    indptr: Array, indices: Array, y: Array, weight: Array, what: int, squared: bool, floor: float, scale: float,
    F: Array, G: Array, P: Array, Q: Array, totals: Array, kept: Array,
) -> None:  # fmt: skip
    """A pass over counts, under `Poisson` or its square."""
    size = _cells_per_group(G)
    x, c, d = np.empty(size, G.dtype), np.empty(size, G.dtype), np.empty(size, G.dtype)
    a, b, w = np.empty(size), np.empty(size), np.ones(size)
    total = 0.0
    for u in range(F.shape[0]):
        if len(P) > 0:
            P[u, :] = 0
        if len(Q) > 0:
            Q[u, :] = 0
        stop = np.int64(indptr[u + 1] - indptr[0])
        for start in range(np.int64(indptr[u] - indptr[0]), stop, size):
            near = indices[start : min(start + size, stop)]
            dots(F[u], G, near, x)
            if weight.size > 0:
                w[: near.size] = weight[start : start + near.size]
            total += _rule_of_values(y[start : start + near.size], x, w, what, squared, floor, scale, a, b, c, d)
            if len(Q) > 0:
                add_rows_of_two(c, d, G, near, P[u], Q[u])
            elif len(P) > 0:
                add_rows(c, G, near, P[u])
            if kept.size > 0:
                kept[start : start + near.size] = c[: near.size]
    if totals.size > 0:
        totals[0] = total


@kernel
def sweep_levels(
    indptr: Array, indices: Array, y: Array, weight: Array, table: Array, what: int, squared: bool, floor: float,
    scale: float, F: Array, G: Array, P: Array, Q: Array, totals: Array, kept: Array,
) -> None:  # fmt: skip
    """A pass over levels, under `Ordinal` or its square."""
    size = _cells_per_group(G)
    x, c, d = np.empty(size, G.dtype), np.empty(size, G.dtype), np.empty(size, G.dtype)
    a, b, w = np.empty(size), np.empty(size), np.ones(size)
    total = 0.0
    for u in range(F.shape[0]):
        if len(P) > 0:
            P[u, :] = 0
        if len(Q) > 0:
            Q[u, :] = 0
        stop = np.int64(indptr[u + 1] - indptr[0])
        for start in range(np.int64(indptr[u] - indptr[0]), stop, size):
            near = indices[start : min(start + size, stop)]
            dots(F[u], G, near, x)
            if weight.size > 0:
                w[: near.size] = weight[start : start + near.size]
            levels = y[start : start + near.size]
            total += _rule_of_levels(levels, x, w, table, what, squared, floor, scale, a, b, c, d, totals)
            if len(Q) > 0:
                add_rows_of_two(c, d, G, near, P[u], Q[u])
            elif len(P) > 0:
                add_rows(c, G, near, P[u])
            if kept.size > 0:
                kept[start : start + near.size] = c[: near.size]
    if totals.size > 0:
        totals[0] = total


@kernel
def sum_levels(
    indptr: Array, indices: Array, y: Array, weight: Array, coefficients: Array, scale: float,
    F: Array, G: Array, P: Array, Q: Array, totals: Array, kept: Array,
) -> None:  # fmt: skip
    """P[u] = sum of (weight * coefficients[level] - scale) * G[i] over the cells of row u; the rest is not used."""
    size = _cells_per_group(G)
    c = np.empty(size, G.dtype)
    for u in range(len(P)):
        P[u, :] = 0
        stop = np.int64(indptr[u + 1] - indptr[0])
        for start in range(np.int64(indptr[u] - indptr[0]), stop, size):
            near = indices[start : min(start + size, stop)]
            if weight.size > 0:
                for j in range(near.size):
                    c[j] = weight[start + j] * coefficients[y[start + j]] - scale
            else:
                for j in range(near.size):
                    c[j] = coefficients[y[start + j]] - scale
            add_rows(c, G, near, P[u])


@kernel
def _rule_of_values(
    y: Array, x: Array, w: Array, what: int, squared: bool, floor: float, scale: float,
    a: Array, b: Array, c: Array, d: Array,
) -> float:  # fmt: skip
    """pull = y / x, push = 1; gain y log(x / y) + y, cost y log(y / x) - y + x. Of squares, see `Squared`."""
    total, n = 0.0, y.size
    for j in range(n):
        a[j] = max(np.float64(x[j]), floor)  # of the rate x^2 the floor is floor^2
    if what in (COSTS, PULLS, PULLS_AND_PUSHES):
        power = 2.0 if squared else 1.0
        least = floor * floor if squared else floor
        for j in range(n):
            b[j] = w[j] * y[j]
        for j in range(n):
            # 0 x makes a total NaN where x is not finite: the logarithm above does not tell
            total += b[j] * (power * log(a[j]) - log(max(np.float64(y[j]), least)) + 1.0) + 0.0 * x[j]
        if what != PULLS:
            total = -total
            if squared:
                for j in range(n):
                    total += (w[j] - 0.5 * scale) * (np.float64(x[j]) * np.float64(x[j]))
            else:
                for j in range(n):
                    total += (w[j] - scale) * x[j]
    for j in range(n):
        b[j] = (2.0 if squared else 1.0) * w[j] * y[j]
    for j in range(n):
        c[j] = b[j] / a[j]
    if what == PULLS_AND_PUSHES:
        for j in range(n):
            d[j] = (2.0 * w[j] - scale) * x[j] if squared else w[j] - scale
    return total


@kernel
def _rule_of_levels(
    y: Array, x: Array, w: Array, table: Array, what: int, squared: bool, floor: float, scale: float,
    a: Array, b: Array, c: Array, d: Array, totals: Array,
) -> float:  # fmt: skip
    """pull = D / (1 - exp(-D x)), push = theta of the level below; gain D x + log(1 - exp(-D x)), cost theta x - log
    (1 - exp(-D x)). Of squares, see `Squared`."""
    total, n, n_levels = 0.0, y.size, table.shape[1]
    if what in (MEANS, COUNTS_AND_MEANS):
        for j in range(n):
            b[j] = np.float64(x[j]) * np.float64(x[j]) if squared else np.float64(x[j])
        for j in range(n):
            total += b[j]
        of_level = totals[1 + n_levels :]
        for j in range(n):
            of_level[y[j]] += w[j] * b[j]
        if what == MEANS:
            return total
    for j in range(n):
        a[j], b[j] = table[0, y[j]], table[1, y[j]]
    if squared:
        for j in range(n):
            at = max(np.float64(x[j]), floor)
            b[j] = one_minus_exp(b[j] * (at * at))
    else:
        for j in range(n):
            b[j] = one_minus_exp(b[j] * max(np.float64(x[j]), floor))
    if totals.size > 0 and what != COUNTS_AND_MEANS:
        for j in range(n):
            total += w[j] * (log(b[j]) if b[j] > 0.0 else -np.inf) + 0.0 * x[j]
        if what == PULLS:
            for j in range(n):
                total += w[j] * a[j] * x[j]
        else:
            total = -total
            if squared:
                for j in range(n):
                    total += (w[j] * table[2, y[j]] - 0.5 * scale) * (np.float64(x[j]) * np.float64(x[j]))
            else:
                for j in range(n):
                    total += (w[j] * table[2, y[j]] - scale) * x[j]
    if what == COSTS:
        return total
    for j in range(n):
        a[j] = w[j] * a[j] / b[j]
    if squared:
        for j in range(n):
            a[j] *= 2.0 * max(np.float64(x[j]), floor)
    for j in range(n):
        c[j] = a[j]
    if what == PULLS_AND_PUSHES:
        if squared:
            for j in range(n):
                d[j] = (2.0 * w[j] * table[3, y[j]] - scale) * x[j]
        else:
            for j in range(n):
                d[j] = w[j] * table[3, y[j]] - scale
    elif totals.size > n_levels:
        half = 0.5 if squared else 1.0
        for j in range(n):
            a[j] *= half * x[j]
        of_level = totals[1 : 1 + n_levels]
        for j in range(n):
            of_level[y[j]] += a[j]
    return total


@kernel
def dots(f: Array, G: Array, indices: Array, x: Array) -> None:
    """x[j] = <f, G[indices[j]]>."""
    k, zero = f.size, f.dtype.type(0)
    j = 0
    while j + 4 <= indices.size:
        g0, g1, g2, g3 = G[indices[j]], G[indices[j + 1]], G[indices[j + 2]], G[indices[j + 3]]
        s0, s1, s2, s3 = zero, zero, zero, zero
        for a in range(k):
            s0 += f[a] * g0[a]
            s1 += f[a] * g1[a]
            s2 += f[a] * g2[a]
            s3 += f[a] * g3[a]
        x[j], x[j + 1], x[j + 2], x[j + 3] = s0, s1, s2, s3
        j += 4
    while j < indices.size:
        g0 = G[indices[j]]
        s0 = zero
        for a in range(k):
            s0 += f[a] * g0[a]
        x[j] = s0
        j += 1


@kernel
def add_rows(c: Array, G: Array, indices: Array, row: Array) -> None:
    """row += sum of c[j] * G[indices[j]]."""
    k = row.size
    j = 0
    while j + 8 <= indices.size:
        g0, g1, g2, g3 = G[indices[j]], G[indices[j + 1]], G[indices[j + 2]], G[indices[j + 3]]
        g4, g5, g6, g7 = G[indices[j + 4]], G[indices[j + 5]], G[indices[j + 6]], G[indices[j + 7]]
        c0, c1, c2, c3 = c[j], c[j + 1], c[j + 2], c[j + 3]
        c4, c5, c6, c7 = c[j + 4], c[j + 5], c[j + 6], c[j + 7]
        for a in range(k):
            near = (c0 * g0[a] + c1 * g1[a]) + (c2 * g2[a] + c3 * g3[a])
            row[a] += near + ((c4 * g4[a] + c5 * g5[a]) + (c6 * g6[a] + c7 * g7[a]))
        j += 8
    while j < indices.size:
        g0, c0 = G[indices[j]], c[j]
        for a in range(k):
            row[a] += c0 * g0[a]
        j += 1


@kernel
def add_rows_of_two(c: Array, d: Array, G: Array, indices: Array, row: Array, other: Array) -> None:
    """As `add_rows`, for two coefficients at once: the rows of `G` are loaded only once."""
    k = row.size
    j = 0
    while j + 4 <= indices.size:
        g0, g1, g2, g3 = G[indices[j]], G[indices[j + 1]], G[indices[j + 2]], G[indices[j + 3]]
        c0, c1, c2, c3 = c[j], c[j + 1], c[j + 2], c[j + 3]
        d0, d1, d2, d3 = d[j], d[j + 1], d[j + 2], d[j + 3]
        for a in range(k):
            row[a] += (c0 * g0[a] + c1 * g1[a]) + (c2 * g2[a] + c3 * g3[a])
            other[a] += (d0 * g0[a] + d1 * g1[a]) + (d2 * g2[a] + d3 * g3[a])
        j += 4
    while j < indices.size:
        g0, c0, d0 = G[indices[j]], c[j], d[j]
        for a in range(k):
            row[a] += c0 * g0[a]
            other[a] += d0 * g0[a]
        j += 1
