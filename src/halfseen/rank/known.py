"""Matrices of full linear rank, or nearly so, that are rounded from one or two columns, whatever their size."""

from typing import Any, NamedTuple

import numpy as np

from halfseen.arrays import Array
from halfseen.checks import check_parameters, whole


class Construction(NamedTuple):
    """A matrix of levels, and the factors and thresholds it is rounded from: GRF(W H') = Y, exactly."""

    Y: Array
    """(n, m) the levels."""
    W: Array
    """(n, k) the factor of the rows."""
    H: Array
    """(m, k) the factor of the columns."""
    thresholds: Array
    """tau_1 < ... < tau_N."""


def triangular(n: Any) -> Construction:
    """Y_ij = 1 for i <= j:  (n + j + 1/2) / (n + i) > 1.  Linear rank n, round-rank 1.

    The round-rank with threshold 0 is 2 (n > 1): a product of signs is not triangular.
    """
    check_parameters({"n": n}, {"n": whole(1)})
    place = np.arange(n)[:, None]
    return _rounded(place <= place.T, n / (n + place), (n + place + 0.5) / n, 1.0)


def identity(n: Any) -> Construction:
    """Y_ij = 1 for i = j: the band of width 0. Linear rank n, round-rank 2 (and 1 for n = 1 or 2)."""
    return band(n, 0)


def band(n: Any, width: Any) -> Construction:
    """Y_ij = 1 for |i - j| <= width:  cos(pi (i - j) / n) > cos(pi (width + 1/2) / n).  Round-rank 2, at most.

    The points (cos, sin)(pi i / n) are on half a circle, where those near to each other have a large dot product.
    The matrix of size 10 and width 3 has linear rank 8 (section 4.1).
    """
    check_parameters({"n": n, "width": width}, {"n": whole(1), "width": whole(0)})
    place = np.arange(n)
    angle = np.pi * place[:, None] / n
    points = np.hstack([np.cos(angle), np.sin(angle)])
    nearest_out = min(width, n - 1) + 0.5
    return _rounded(np.abs(np.subtract.outer(place, place)) <= width, points, points, np.cos(np.pi * nearest_out / n))


def _rounded(Y: Array, W: Array, H: Array, threshold: float) -> Construction:
    return Construction(Y.astype(np.intp), W, H, np.array([threshold]))
