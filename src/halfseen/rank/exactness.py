"""Does a product of factors round to given levels? Answered for the numbers as they stand, rounding errors excluded."""

from fractions import Fraction
from typing import Any

import numpy as np

from halfseen.arrays import Array
from halfseen.errors import DataError
from halfseen.rank.levels import checked_levels
from halfseen.rank.rounding import checked_thresholds

_PRECISION = float(np.finfo(np.float64).eps)
_SMALLEST = float(np.finfo(np.float64).smallest_normal)


def rounds_to(W: Any, H: Any, thresholds: Any, Y: Any) -> bool:
    """Whether GRF(W H') = Y in exact arithmetic  (Eq. 2.5 and 2.6).

    A sum of k products in floating point, in whatever order, is off by at most  k u / (1 - k u) sum |w| |h|,  u half
    the precision (Higham, "Accuracy and Stability of Numerical Algorithms", section 3.1). Cells whose level that can't
    change are read off; the others are summed as fractions.

    Parameters
    ----------
    W, H : (n, k) and (m, k) the factors.
    thresholds : tau_1 < ... < tau_N.
    Y : (n, m) levels 0..N.
    """
    tau = checked_thresholds(thresholds)
    levels = checked_levels(Y, tau)
    W, H = np.asarray(W, dtype=np.float64), np.asarray(H, dtype=np.float64)
    if W.ndim != 2 or H.ndim != 2 or W.shape[1] != H.shape[1] or (len(W), len(H)) != levels.shape:
        raise DataError(
            f"W and H must have a row for each row and column of Y, {levels.shape[0]} and {levels.shape[1]}, and one "
            f"number of columns. Found shapes {W.shape} and {H.shape}. Check them."
        )
    return are_levels_of(W, H, tau, levels)


def are_levels_of(W: Array, H: Array, thresholds: Array, levels: Array) -> bool:
    """The same for arrays that are known to be well formed."""
    if not (np.isfinite(W).all() and np.isfinite(H).all()):
        return False
    with np.errstate(over="ignore", invalid="ignore"):
        X, slack = W @ H.T, _rounding_error(W, H)
        bounds = [np.where(np.isfinite(slack), X + way * slack, way * np.inf) for way in (-1, 1)]
    lowest, highest = (np.searchsorted(thresholds, bound, side="left") for bound in bounds)
    if np.any(lowest > levels) or np.any(highest < levels):
        return False
    return all(exact_level(W[i], H[j], thresholds) == levels[i, j] for i, j in np.argwhere(lowest < highest))


def _rounding_error(W: Array, H: Array) -> Array:
    """What bounds |W @ H.T - W H'|, with room for its own rounding; 0 where a factor is 0."""
    terms = W.shape[1] + 2
    bound = terms * (_PRECISION * (np.abs(W) @ np.abs(H).T) + _SMALLEST)
    return np.where(np.logical_and.outer(W.any(axis=1), H.any(axis=1)), bound, 0.0)


def exact_level(w: Array, h: Array, thresholds: Array) -> int:
    lives = np.flatnonzero((w != 0) & (h != 0))
    x = sum((Fraction(a) * Fraction(b) for a, b in zip(w[lives].tolist(), h[lives].tolist(), strict=True)), Fraction(0))
    return sum(Fraction(tau) < x for tau in thresholds.tolist())
