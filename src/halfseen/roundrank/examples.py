"""Matrices of full linear rank, or nearly so, whose round-rank is 1 or 2 at every size."""

from typing import NamedTuple

import numpy as np

from halfseen.arrays import Array
from halfseen.validation import check_parameters, whole


class Construction(NamedTuple):
    """A matrix of levels, and factors and thresholds it is rounded from: GRF(W H') = Y, exactly."""

    Y: Array
    """Levels, of shape (n, m)."""
    W: Array
    """Factor of the rows, of shape (n, k)."""
    H: Array
    """Factor of the columns, of shape (m, k)."""
    thresholds: Array
    """tau_1 < ... < tau_N."""


def triangular(n: int) -> Construction:
    """Y_ij = 1 for i <= j:  (n + j + 1/2) / (n + i) > 1.  Linear rank n, round-rank 1.

    The round-rank with threshold 0 is 2 (n > 1): a product of signs is not triangular.

    Parameters
    ----------
    n : int
        Size of the matrix.

    Returns
    -------
    Construction
        The matrix with factors of one column.
    """
    check_parameters({"n": n}, {"n": whole(1)})
    i = np.arange(n)[:, None]
    return Construction((i <= i.T).astype(np.intp), n / (n + i), (n + i + 0.5) / n, np.array([1.0]))


def identity(n: int) -> Construction:
    """Y_ij = 1 for i = j: the band of width 0. Linear rank n, round-rank 2 (and 1 for n = 1 or 2).

    Parameters
    ----------
    n : int
        Size of the matrix.

    Returns
    -------
    Construction
        The matrix with factors of two columns.
    """
    return band(n, 0)


def band(n: int, width: int) -> Construction:
    """Y_ij = 1 for |i - j| <= width:  cos(pi (i - j) / n) > cos(pi (width + 1/2) / n).  Round-rank 2, at most.

    The points (cos, sin)(pi i / n) are on half a circle, where those near to each other have a large dot product.
    The matrix of size 10 and width 3 has linear rank 8 (section 4.1).

    Parameters
    ----------
    n : int
        Size of the matrix.
    width : int
        Number of diagonals of ones on either side of the main diagonal.

    Returns
    -------
    Construction
        The matrix with factors of two columns.
    """
    check_parameters({"n": n, "width": width}, {"n": whole(1), "width": whole(0)})
    i = np.arange(n)
    angle = np.pi * i[:, None] / n
    points = np.hstack([np.cos(angle), np.sin(angle)])
    first_outside = min(width, n - 1) + 0.5
    Y = np.abs(np.subtract.outer(i, i)) <= width
    return Construction(Y.astype(np.intp), points, points, np.array([np.cos(np.pi * first_outside / n)]))
