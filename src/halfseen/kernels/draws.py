"""Rows of a factor drawn from their normal distributions, the other factor standing still.

The loops walk the rows from `start` to `stop` of whole arrays, as in `coupling`; the same serve the columns.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from halfseen.kernels import kernel

Array = npt.NDArray[Any]


@kernel
def draw_rows(
    start: int, stop: int, indptr: Array, indices: Array, x: Array, G: Array, near: Array, far: Array,
    prior: Array, pulled: Array, out: Array,
) -> None:  # fmt: skip
    """out[u] ~ N(A^{-1} r, A^{-1}),   A = prior + near[u] sum of far[i] G[i] G[i]^T,
    r = pulled + near[u] sum of far[i] x[p] G[i].

    A cell's precision is near[u] * far[i]; `pulled` is the prior's precision times its mean. `out` comes filled with
    standard normal numbers.
    """
    k = G.shape[1]
    A, r = np.empty((k, k)), np.empty(k)
    for u in range(start, stop):
        r[:] = 0.0
        A[:] = 0.0
        for p in range(indptr[u], indptr[u + 1]):
            i = indices[p]
            weight, value = far[i], x[p]
            for a in range(k):
                weighted = weight * G[i, a]
                r[a] += weighted * value
                for b in range(a + 1):
                    A[a, b] += weighted * G[i, b]
        for a in range(k):
            r[a] = pulled[a] + near[u] * r[a]
            for b in range(a + 1):
                A[a, b] = prior[a, b] + near[u] * A[a, b]
        _draw(A, r, u, out)


@kernel
def _draw(A: Array, r: Array, u: int, out: Array) -> None:
    """With A = C C^T, by Cholesky's method: C^T out[u] = C^{-1} r + out[u]. A, its lower half, and r are used up."""
    k = r.size
    for a in range(k):
        for b in range(a + 1):
            dot = A[a, b]
            for j in range(b):
                dot -= A[a, j] * A[b, j]
            A[a, b] = np.sqrt(dot) if a == b else dot / A[b, b]
        dot = r[a]
        for j in range(a):
            dot -= A[a, j] * r[j]
        r[a] = dot / A[a, a]
    for a in range(k - 1, -1, -1):
        dot = r[a] + out[u, a]
        for j in range(a + 1, k):
            dot -= A[j, a] * out[u, j]
        out[u, a] = dot / A[a, a]
