"""Sampled dense-dense products (sddmm) and sparse-dense products (spmm) over the observed cells.

All work on one block of consecutive rows of a CSR matrix: `indptr` is the block's slice of the row pointers (one longer
than the block has rows, not starting at 0), `indices`, `x`, `c` and `d` are the block's slices of the cell arrays. The
same loops serve the columns: hand them the column order and swap the factors.

Rows of the far factor `G` are gathered from all over memory. Processing several cells per iteration lets the processor
wait for several of them at once, and saves loads and stores of the near row: 4 were best for `sddmm`, 8 for `spmm`.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from halfseen.kernels import kernel

Array = npt.NDArray[Any]


@kernel
def sddmm(indptr: Array, indices: Array, F: Array, G: Array, x: Array) -> None:
    """x[p] = <F[u], G[i]> for every observed cell p = (u, i) of the block."""
    k = F.shape[1]
    first = indptr[0]
    zero = F.dtype.type(0)
    for u in range(F.shape[0]):
        f = F[u]
        p = np.int64(indptr[u] - first)
        stop = np.int64(indptr[u + 1] - first)
        while p + 4 <= stop:
            g0, g1, g2, g3 = G[indices[p]], G[indices[p + 1]], G[indices[p + 2]], G[indices[p + 3]]
            s0, s1, s2, s3 = zero, zero, zero, zero
            for j in range(k):
                s0 += f[j] * g0[j]
                s1 += f[j] * g1[j]
                s2 += f[j] * g2[j]
                s3 += f[j] * g3[j]
            x[p], x[p + 1], x[p + 2], x[p + 3] = s0, s1, s2, s3
            p += 4
        while p < stop:
            g0 = G[indices[p]]
            s0 = zero
            for j in range(k):
                s0 += f[j] * g0[j]
            x[p] = s0
            p += 1


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


@kernel
def spmm(indptr: Array, indices: Array, c: Array, G: Array, out: Array) -> None:
    """out[u] = sum of c[p] * G[i] over the observed cells p = (u, i) of row u."""
    k = G.shape[1]
    first = indptr[0]
    for u in range(out.shape[0]):
        row = out[u]
        for j in range(k):
            row[j] = 0
        p = np.int64(indptr[u] - first)
        stop = np.int64(indptr[u + 1] - first)
        while p + 8 <= stop:
            g0, g1, g2, g3 = G[indices[p]], G[indices[p + 1]], G[indices[p + 2]], G[indices[p + 3]]
            g4, g5, g6, g7 = G[indices[p + 4]], G[indices[p + 5]], G[indices[p + 6]], G[indices[p + 7]]
            c0, c1, c2, c3 = c[p], c[p + 1], c[p + 2], c[p + 3]
            c4, c5, c6, c7 = c[p + 4], c[p + 5], c[p + 6], c[p + 7]
            for j in range(k):
                near = (c0 * g0[j] + c1 * g1[j]) + (c2 * g2[j] + c3 * g3[j])
                row[j] += near + ((c4 * g4[j] + c5 * g5[j]) + (c6 * g6[j] + c7 * g7[j]))
            p += 8
        while p < stop:
            g0, c0 = G[indices[p]], c[p]
            for j in range(k):
                row[j] += c0 * g0[j]
            p += 1


@kernel
def spmm_both(indptr: Array, indices: Array, c: Array, d: Array, G: Array, of_c: Array, of_d: Array) -> None:
    """As `spmm`, for two coefficients at once: the rows of `G` are loaded only once."""
    k = G.shape[1]
    first = indptr[0]
    for u in range(of_c.shape[0]):
        row, other = of_c[u], of_d[u]
        for j in range(k):
            row[j] = 0
            other[j] = 0
        p = np.int64(indptr[u] - first)
        stop = np.int64(indptr[u + 1] - first)
        while p + 8 <= stop:
            g0, g1, g2, g3 = G[indices[p]], G[indices[p + 1]], G[indices[p + 2]], G[indices[p + 3]]
            g4, g5, g6, g7 = G[indices[p + 4]], G[indices[p + 5]], G[indices[p + 6]], G[indices[p + 7]]
            c0, c1, c2, c3 = c[p], c[p + 1], c[p + 2], c[p + 3]
            c4, c5, c6, c7 = c[p + 4], c[p + 5], c[p + 6], c[p + 7]
            d0, d1, d2, d3 = d[p], d[p + 1], d[p + 2], d[p + 3]
            d4, d5, d6, d7 = d[p + 4], d[p + 5], d[p + 6], d[p + 7]
            for j in range(k):
                near = (c0 * g0[j] + c1 * g1[j]) + (c2 * g2[j] + c3 * g3[j])
                row[j] += near + ((c4 * g4[j] + c5 * g5[j]) + (c6 * g6[j] + c7 * g7[j]))
                near = (d0 * g0[j] + d1 * g1[j]) + (d2 * g2[j] + d3 * g3[j])
                other[j] += near + ((d4 * g4[j] + d5 * g5[j]) + (d6 * g6[j] + d7 * g7[j]))
            p += 8
        while p < stop:
            g0, c0, d0 = G[indices[p]], c[p], d[p]
            for j in range(k):
                row[j] += c0 * g0[j]
                other[j] += d0 * g0[j]
            p += 1
