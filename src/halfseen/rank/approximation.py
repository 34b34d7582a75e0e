"""How well a matrix is approximated by such of low linear rank."""

from typing import Any

import numpy as np

from halfseen.arrays import Array
from halfseen.checks import check_parameters, number
from halfseen.errors import DataError
from halfseen.io.reader import as_numbers, well_formed
from halfseen.labels import Places


def approximation_errors(X: Any) -> Array:
    """||X - X_k||_F^2 = the sum of the squares of all singular values but the k largest, k = 0..min(n, m).

    X_k is the best approximation of rank k (Theorem 2.2.2): what Figure 2.2 shows. The last entry is 0.

    Parameters
    ----------
    X : (n, m) numbers without holes.
    """
    return _tails(np.linalg.svd(_numbers(X), compute_uv=False))


def epsilon_rank(X: Any, eps: float) -> int:
    """min rank X' with ||X - X'||_F^2 <= eps  (Eq. 2.20).

    Singular values are known up to  max(n, m) * precision * the largest,  and are lowered by that: so an error that is
    eps but for rounding counts as eps, and with eps = 0 this is `numpy.linalg.matrix_rank`.

    Parameters
    ----------
    X : (n, m) numbers without holes.
    eps : the largest squared error, 0 or more.
    """
    check_parameters({"eps": eps}, {"eps": number(0)})
    numbers = _numbers(X)
    values = np.linalg.svd(numbers, compute_uv=False)
    unsure = max(numbers.shape) * np.finfo(values.dtype).eps * values.max(initial=0.0)
    return int(np.argmax(_tails(np.maximum(values - unsure, 0.0)) <= eps))


def _tails(values: Array) -> Array:
    """The sums of squares from each place on, the smallest added first, and 0."""
    return np.append(np.cumsum(values[::-1] ** 2)[::-1], 0.0)


def _numbers(X: Any) -> Array:
    numbers = as_numbers(well_formed(X)).astype(np.float64)
    holes = np.argwhere(~np.isfinite(numbers))
    if len(holes):
        row, column = holes[0].tolist()
        raise DataError(
            f"X must hold a finite number in every cell. Found {numbers[row, column]:g} at {Places().of(row, column)}. "
            "Complete X first."
        )
    return numbers
