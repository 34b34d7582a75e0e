"""The generalized round function: from real numbers to ordered levels."""

from typing import Any

import numpy as np

from halfseen.arrays import Array
from halfseen.checks import rising
from halfseen.errors import DataError, ParameterError
from halfseen.io.reader import as_numbers


def grf(X: Any, thresholds: Any) -> Array:
    """GRF(x) = the number of thresholds strictly below x, cell by cell  (Eq. 2.5).

    A number on a threshold counts as below it: GRF(tau_d) = d - 1. Without thresholds every level is 0.

    Parameters
    ----------
    X : number, list or array of any shape; infinite numbers are the lowest or the highest level, NaN is refused.
    thresholds : tau_1 < ... < tau_N.

    Returns
    -------
    Integers 0..N, an array of the shape of X.
    """
    numbers = as_numbers(np.atleast_1d(X)).reshape(np.shape(X))
    unknown = np.argwhere(np.isnan(numbers))
    if len(unknown):
        place = f" at {tuple(unknown[0].tolist())}" if numbers.ndim else ""
        raise DataError(f"What is rounded must be numbers. Found NaN{place}. Leave out cells that are not known.")
    return np.asarray(np.searchsorted(checked_thresholds(thresholds), numbers, side="left"))


def checked_thresholds(thresholds: Any) -> Array:
    """Thresholds as an array of floats; refused unless they are finite and rise. There may be none."""
    none_at_all = np.array_equal(thresholds, [])
    if not none_at_all and (thresholds is None or rising()(thresholds)):
        raise ParameterError(f"thresholds must be rising numbers. Found {thresholds!r}. List them in their order.")
    return np.asarray(thresholds, dtype=np.float64)
