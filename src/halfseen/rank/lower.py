"""Below which rank nothing rounds to given levels."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from halfseen.arrays import Array
from halfseen.rank.levels import checked_levels
from halfseen.rank.proofs import Question

#: By how much a computed spectral norm may be too small, as a part of it: far more than singular values ever are off.
_CAUTION = 1e-9
#: Cells that are looked at in the search for shattered columns.
_MOST_CELLS = 10_000_000


class Bound(NamedTuple):
    """A bound on a rank, and why it holds."""

    rank: int
    why: str


def forster_bound(Y: Any) -> int:
    """sign-rank [Y >= d] >= sqrt(n m) / ||M||,  M = 1 where Y >= d and -1 elsewhere: the largest bound of all d.

    Forster's theorem ("A linear lower bound on the unbounded error probabilistic communication complexity", 2002); the
    norm is the largest singular value. The sign-rank is the rank of the simplest matrix without zeros that has the
    signs of M. If X rounds to Y with threshold tau_d, then X - tau_d - e has these signs for some small e > 0, and a
    rank larger by at most 1 (Lemma 2.1.1): so round-ranks are at least this bound less 1.

    Parameters
    ----------
    Y : (n, m) levels 0..N, or a binary matrix.
    """
    levels = checked_levels(Y)
    return max((_forster(binary) for _, binary in thresholded(levels)), default=1)


def _forster(binary: Array) -> int:
    norm = float(np.linalg.norm(np.where(binary, 1.0, -1.0), 2)) * (1 + _CAUTION)
    return int(np.ceil(np.sqrt(binary.size) / norm))


def thresholded(levels: Array) -> Iterator[tuple[int, Array]]:
    """Each d with [levels >= d], where that is not the same everywhere."""
    for level in np.unique(levels)[1:].tolist():
        yield level, levels >= level


def binary_bounds(question: Question) -> Iterator[Bound]:
    """What the binary matrices [Y >= d] tell: GRR(Y) is at least that of each with its threshold (Lemma A.3)."""
    for level, binary in thresholded(question.levels):
        at_zero = question.thresholds is not None and question.thresholds[level - 1] == 0
        forster = _forster(binary)
        yield Bound(forster - 1, f"By Forster's bound the sign-rank of [Y >= {level}] is at least {forster}.")
        for side, matrix in (("columns", binary), ("rows", binary.T)):
            count = shattered(matrix, at_zero)
            yield Bound(count, f"{count} {side} of [Y >= {level}] are shattered.")


def shattered(binary: Array, at_zero: bool = False) -> int:
    """How many columns show every pattern of 0 and 1 in some row: no rank below that number will do.

    Let d columns be shattered, and their factors v_j be of length k < d. Then sum c_j v_j = 0 for some c other than 0,
    with sum c_j >= 0, else take -c. For tau >= 0 there is a row u with x_j = u' v_j > tau exactly where c_j > 0: then
    0 = sum c_j x_j > tau sum c_j >= 0.  For tau < 0 there is one with x_j > tau exactly where c_j < 0: then
    0 = sum c_j x_j < 0.  Neither can be.

    At the threshold 0 it is enough to see one of each two opposite patterns, and 1 everywhere: a row with x_j > 0
    exactly where c_j < 0 serves as well, if there are any, because -c will do as well as c.

    The search for such columns is cut short when it takes long; then there may be more.
    """
    budget = [_MOST_CELLS]
    start = np.zeros(len(binary), dtype=np.intp)
    return _extended(binary.astype(np.intp), start, 0, 0, at_zero, budget)


def _extended(binary: Array, pattern_of_row: Array, size: int, first: int, at_zero: bool, budget: list[int]) -> int:
    """The largest shattered set that extends one of `size` columns by columns from `first` on."""
    n_patterns = 2 ** (size + 1)
    if n_patterns > len(binary) * (2 if at_zero else 1) or first == binary.shape[1] or budget[0] <= 0:
        return size
    patterns = 2 * pattern_of_row[:, None] + binary[:, first:]
    budget[0] -= patterns.size
    seen = np.zeros((n_patterns, patterns.shape[1]), dtype=bool)
    seen[patterns, np.arange(patterns.shape[1])] = True
    if at_zero:
        seen[1:-1] |= seen[-2:0:-1].copy()
        seen[0] = True
    best = size
    for place in np.flatnonzero(seen.all(axis=0)).tolist():
        best = max(best, _extended(binary, patterns[:, place], size + 1, first + place + 1, at_zero, budget))
    return best
