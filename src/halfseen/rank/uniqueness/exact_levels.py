"""The levels of single products, for the numbers as they stand."""

import numpy as np

from halfseen.arrays import Array
from halfseen.rank.exactness import exact_level

_PRECISION = float(np.finfo(np.float64).eps)
_SMALLEST = float(np.finfo(np.float64).smallest_normal)


def exact_levels(W: Array, H: Array, thresholds: Array) -> Array:
    """GRF(<w, h>)  (Eq. 2.5) for each pair of rows of W and H, rounding errors excluded.

    A sum of k products in floating point is off by at most  k u / (1 - k u) sum |w| |h|,  u half the precision. Where
    that may matter the sum is made in fractions.
    """
    x = np.einsum("pk,pk->p", W, H)
    slack = (W.shape[1] + 2) * (_PRECISION * np.einsum("pk,pk->p", np.abs(W), np.abs(H)) + _SMALLEST)
    lowest, highest = (np.searchsorted(thresholds, x + way * slack, side="left") for way in (-1, 1))
    for pair in np.flatnonzero(lowest < highest):
        lowest[pair] = exact_level(W[pair], H[pair], thresholds)
    return lowest
