"""x = <w_u, h_i> at pairs of rows and columns."""

import numpy as np

from halfseen.arrays import Array

#: Pairs whose two factor rows are gathered at a time.
PAIRS_AT_A_TIME = 1 << 14


def products_at(W: Array, H: Array, u: Array, i: Array) -> Array:
    """<W_u, H_i> at the pairs of positions (u[j], i[j]); one position serves for many."""
    x = np.empty(np.broadcast_shapes(u.shape, i.shape), W.dtype)
    u, i = (np.broadcast_to(places, x.shape).reshape(-1) for places in (u, i))
    for start in range(0, x.size, PAIRS_AT_A_TIME):
        part = slice(start, start + PAIRS_AT_A_TIME)
        x.reshape(-1)[part] = np.einsum("pk,pk->p", W[u[part]], H[i[part]])
    return x
