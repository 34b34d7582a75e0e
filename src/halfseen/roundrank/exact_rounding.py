"""The generalized round function (GRF), in exact arithmetic: levels of products, and certificates GRF(W H') = Y.

A sum of k products in floating point, in any order, is off by at most  k u / (1 - k u) sum |w| |h|,  u half the machine
precision (Higham, "Accuracy and Stability of Numerical Algorithms", section 3.1). Levels that this error cannot change
are read off; the others are computed with fractions.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from halfseen.arrays import Array
from halfseen.errors import DataError, ParameterError
from halfseen.io.reader import as_numbers, well_formed
from halfseen.labels import Places
from halfseen.validation import rising

PRECISION = float(np.finfo(np.float64).eps)
SMALLEST = float(np.finfo(np.float64).smallest_normal)
#: Each level has its threshold, so larger numbers are hardly meant as levels.
MAX_LEVEL = 1_000_000


def grf(X: ArrayLike, thresholds: ArrayLike) -> Array:
    """GRF(x) = the number of thresholds strictly below x, elementwise  (Eq. 2.5).

    A number on a threshold counts as below it: GRF(tau_d) = d - 1. Without thresholds every level is 0.

    Parameters
    ----------
    X : array-like of float
        Numbers, of any shape. Infinite numbers have the lowest or the highest level; NaN is refused.
    thresholds : array-like of shape (n_thresholds,)
        tau_1 < ... < tau_N.

    Returns
    -------
    ndarray of int
        Levels 0..N, in the shape of X.
    """
    numbers = as_numbers(np.atleast_1d(X)).reshape(np.shape(X))
    unknown = np.argwhere(np.isnan(numbers))
    if len(unknown):
        where = f"at {tuple(unknown[0].tolist())}" if numbers.ndim else ""
        raise DataError(
            "must hold numbers.", found="NaN", where=where, remedy="Leave out cells that are not known.", parameter="X"
        )
    return np.asarray(np.searchsorted(check_thresholds(thresholds), numbers, side="left"))


def check_thresholds(thresholds: ArrayLike | None) -> Array:
    """Thresholds as an array of floats; refused unless they are finite and rise. There may be none."""
    if thresholds is None or (not np.array_equal(thresholds, []) and rising()(thresholds)):
        raise ParameterError(
            "must be rising numbers.",
            found=repr(thresholds),
            remedy="List them in their order.",
            parameter="thresholds",
        )
    return np.asarray(thresholds, dtype=np.float64)


def check_levels(Y: ArrayLike, thresholds: Array | None = None) -> Array:
    """Y as integers 0..N; refused if a cell is anything else, or needs more thresholds than are given."""
    if hasattr(Y, "toarray"):
        raise DataError(
            "must hold a level in every cell.", found="a sparse matrix",
            remedy="Pass `Y.toarray()` if the rest is 0.", parameter="Y",
        )  # fmt: skip
    numbers = as_numbers(well_formed(Y))
    not_a_level = (numbers < 0) | (numbers > MAX_LEVEL) | (numbers != np.floor(numbers))
    rules = [
        (np.isnan(numbers), "known everywhere", "Leave out its row or its column."),
        (not_a_level, f"whole numbers from 0 to {MAX_LEVEL}", "Round it, or renumber the levels."),
    ]
    if thresholds is not None:
        must = f"0 to {thresholds.size}, as there are {thresholds.size} thresholds"
        rules.append((numbers > thresholds.size, must, "Give more thresholds."))
    for broken, must, remedy in rules:
        if broken.any():
            row, column = np.argwhere(broken)[0].tolist()
            raise DataError(
                f"Levels must be {must}.", found=f"{numbers[row, column]:g}".replace("nan", "NaN"),
                where=f"at {Places().of(row, column)}", remedy=remedy, parameter="Y",
            )  # fmt: skip
    return numbers.astype(np.intp)


@dataclass(frozen=True)
class Intervals:
    """x between `lower` and `upper`, an end itself excluded where it is open; infinite where nothing is known."""

    lower: Array
    upper: Array
    lower_open: Array
    upper_open: Array

    @classmethod
    def of_levels(cls, lowest: Array, highest: Array, thresholds: Array) -> "Intervals":
        """tau_lowest < x <= tau_{highest + 1}  (Eq. 2.5): the numbers that round to levels from lowest to highest."""
        edges = np.concatenate([[-np.inf], thresholds, [np.inf]])
        lower, upper = edges[lowest], edges[highest + 1]
        return cls(lower, upper, np.ones(lower.shape, bool), np.zeros(upper.shape, bool))

    def __getitem__(self, index: Any) -> "Intervals":
        return Intervals(*(end[index] for end in (self.lower, self.upper, self.lower_open, self.upper_open)))

    def with_point(self, x: float) -> "Intervals":
        """The same intervals, and a number that is known exactly at the end."""
        ends = (np.append(end, x) for end in (self.lower, self.upper))
        return Intervals(*ends, *(np.append(is_open, False) for is_open in (self.lower_open, self.upper_open)))

    def negated(self, where: Array) -> "Intervals":
        """The intervals of -x where the mask is true."""
        return Intervals(
            np.where(where, -self.upper, self.lower),
            np.where(where, -self.lower, self.upper),
            np.where(where, self.upper_open, self.lower_open),
            np.where(where, self.lower_open, self.upper_open),
        )

    @property
    def exclude_zero(self) -> Array:
        """Mask of the intervals in which x cannot be 0."""
        above = (self.lower > 0) | ((self.lower == 0) & self.lower_open)
        below = (self.upper < 0) | ((self.upper == 0) & self.upper_open)
        return above | below


def rounds_to(W: ArrayLike, H: ArrayLike, thresholds: ArrayLike, Y: ArrayLike) -> bool:
    """Whether GRF(W H') = Y in exact arithmetic  (Eq. 2.5 and 2.6).

    Parameters
    ----------
    W : array-like of shape (n, k)
        Factor of the rows.
    H : array-like of shape (m, k)
        Factor of the columns.
    thresholds : array-like of shape (n_thresholds,)
        tau_1 < ... < tau_N.
    Y : array-like of shape (n, m)
        Levels 0..N.

    Returns
    -------
    bool
        True if every cell of the product, without any rounding error, has its level.
    """
    tau = check_thresholds(thresholds)
    levels = check_levels(Y, tau)
    W, H = np.asarray(W, dtype=np.float64), np.asarray(H, dtype=np.float64)
    if W.ndim != 2 or H.ndim != 2 or W.shape[1] != H.shape[1] or (len(W), len(H)) != levels.shape:
        n, m = levels.shape
        raise DataError(
            f"W and H must have a row for each row and column of Y, {n} and {m}, and one number of columns.",
            found=f"shapes {W.shape} and {H.shape}", remedy="Check them.",
        )  # fmt: skip
    return matches_levels(W, H, tau, levels)


def matches_levels(W: Array, H: Array, thresholds: Array, levels: Array) -> bool:
    """Whether GRF(W H') = levels, for arrays that are known to be well formed."""
    if not (np.isfinite(W).all() and np.isfinite(H).all()):
        return False
    with np.errstate(over="ignore", invalid="ignore"):
        X = W @ H.T
        # bound on the rounding error of X, with room for its own rounding; 0 where a factor is 0
        slack = (W.shape[1] + 2) * (PRECISION * (np.abs(W) @ np.abs(H).T) + SMALLEST)
        slack = np.where(np.logical_and.outer(W.any(axis=1), H.any(axis=1)), slack, 0.0)
        ends = [np.where(np.isfinite(slack), X + sign * slack, sign * np.inf) for sign in (-1, 1)]
    lowest, highest = (np.searchsorted(thresholds, end, side="left") for end in ends)
    if np.any(lowest > levels) or np.any(highest < levels):
        return False
    return all(exact_level(W[i], H[j], thresholds) == levels[i, j] for i, j in np.argwhere(lowest < highest))


def exact_levels(W: Array, H: Array, thresholds: Array) -> Array:
    """GRF(w @ h)  (Eq. 2.5) for each pair of rows of W and H, without rounding errors."""
    x = np.einsum("pk,pk->p", W, H)
    slack = (W.shape[1] + 2) * (PRECISION * np.einsum("pk,pk->p", np.abs(W), np.abs(H)) + SMALLEST)
    lowest, highest = (np.searchsorted(thresholds, x + sign * slack, side="left") for sign in (-1, 1))
    for pair in np.flatnonzero(lowest < highest):
        lowest[pair] = exact_level(W[pair], H[pair], thresholds)
    return lowest


def exact_level(w: Array, h: Array, thresholds: Array) -> int:
    """GRF(w @ h), computed with fractions."""
    used = np.flatnonzero((w != 0) & (h != 0))
    x = sum((Fraction(a) * Fraction(b) for a, b in zip(w[used].tolist(), h[used].tolist(), strict=True)), Fraction(0))
    return sum(Fraction(tau) < x for tau in thresholds.tolist())


@dataclass(frozen=True)
class Certificate:
    """Factors and thresholds with GRF(W H') = Y, checked exactly, and where they come from."""

    W: Array
    H: Array
    thresholds: Array
    reason: str

    @property
    def rank(self) -> int:
        return self.W.shape[1]

    @property
    def transposed(self) -> "Certificate":
        return replace(self, W=self.H, H=self.W)


@dataclass(frozen=True)
class RoundingProblem:
    """Find W and H of few columns with GRF(W H') = levels; the thresholds are given, or free (None).

    Where it is `strict`, no product may be equal to a threshold.
    """

    levels: Array
    thresholds: Array | None
    strict: bool = False

    @property
    def n_thresholds(self) -> int:
        return int(self.levels.max()) if self.thresholds is None else self.thresholds.size

    @property
    def transposed(self) -> "RoundingProblem":
        return replace(self, levels=self.levels.T)

    def certify(self, W: Array, H: Array, reason: str) -> Certificate | None:
        """A certificate with these factors; None if they do not round to the levels."""
        with np.errstate(over="ignore", invalid="ignore"):
            thresholds = separating_thresholds(W @ H.T, self.levels) if self.thresholds is None else self.thresholds
        if thresholds is None or not matches_levels(W, H, thresholds, self.levels):
            return None
        if self.strict and not matches_levels(-W, H, -thresholds[::-1], thresholds.size - self.levels):
            return None  # -x would be above -tau, were x not equal to tau
        return Certificate(W, H, thresholds, reason)

    def distinct(self) -> tuple["RoundingProblem", Array, Array]:
        """The problem without repeated rows and columns, and the distinct row (column) that each row (column) equals.

        Repeated rows and columns can have the same factors, so they do not change a rank.
        """
        (rows, row_of), (columns, column_of) = _distinct_rows(self.levels), _distinct_rows(self.levels.T)
        return replace(self, levels=self.levels[np.ix_(rows, columns)]), row_of, column_of


def _distinct_rows(matrix: Array) -> tuple[Array, Array]:
    """Positions of the distinct rows, in order of occurrence, and which of them each row equals."""
    _, first, inverse = np.unique(matrix, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first)
    number = np.empty_like(order)
    number[order] = np.arange(order.size)
    return first[order], number[inverse.reshape(-1)]


def separating_thresholds(X: Array, levels: Array) -> Array | None:
    """Thresholds halfway between the numbers of neighbouring levels; None if the levels are not separated.

    Where levels are skipped, their thresholds share the gap.
    """
    present = np.unique(levels)
    top = np.maximum.accumulate([X[levels == level].max() for level in present])
    bottom = np.minimum.accumulate([X[levels == level].min() for level in present[::-1]])[::-1]
    if not (np.isfinite(top[-1]) and np.isfinite(bottom[0]) and np.all(top[:-1] < bottom[1:])):
        return None
    below = bottom[0] - max(1.0, abs(bottom[0])) * np.arange(present[0], 0, -1)
    gaps = zip(top[:-1], bottom[1:], np.diff(present), strict=True)
    inside = [low + (high - low) * (np.arange(1, count + 1) / (count + 1)) for low, high, count in gaps]
    thresholds = np.concatenate([below, *inside])
    return thresholds if np.all(np.diff(thresholds) > 0) else None
