"""Lower bounds on the round-rank: Forster's bound on the sign-rank, and shattered rows and columns."""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from halfseen.arrays import Array
from halfseen.roundrank.exact_rounding import RoundingProblem, check_levels
from halfseen.roundrank.outer_products import decide_outer_product
from halfseen.roundrank.planar_signs import decide_plane

#: Relative error allowed for a computed spectral norm: far more than singular values are ever off.
_NORM_MARGIN = 1e-9
#: Cells examined in the search for shattered columns.
_MAX_CELLS = 10_000_000


class LowerBound(NamedTuple):
    """A lower bound on a rank, and why it holds."""

    rank: int
    reason: str


def forster_bound(Y: ArrayLike) -> int:
    """sign-rank [Y >= d] >= sqrt(n m) / ||M||,  M = 1 where Y >= d and -1 elsewhere: the largest bound of all d.

    The norm is the largest singular value. The sign-rank is the smallest rank of a matrix without zeros that has the
    signs of M. If X rounds to Y with threshold tau_d, then X - tau_d - e has these signs for some small e > 0, and a
    rank larger by at most 1 (Lemma 2.1.1): so round-ranks are at least this bound less 1.

    Parameters
    ----------
    Y : array-like of shape (n, m)
        Levels 0..N, or a binary matrix.

    Returns
    -------
    int
        The bound; 1 for a constant matrix.

    References
    ----------
    .. [1] J. Forster, "A linear lower bound on the unbounded error probabilistic communication complexity", Journal of
       Computer and System Sciences 65, 2002.
    """
    levels = check_levels(Y)
    return max((_forster(levels >= level) for level in np.unique(levels)[1:]), default=1)


def _forster(binary: Array, changes: int = 0) -> int:
    """sqrt(n m) / (||M|| + 2 sqrt(changes)), rounded up: a changed cell is 2 off, and no norm exceeds Frobenius'."""
    norm = float(np.linalg.norm(np.where(binary, 1.0, -1.0), 2)) + 2 * np.sqrt(changes)
    return int(np.ceil(np.sqrt(binary.size) / (norm * (1 + _NORM_MARGIN))))


def lower_bounds(problem: RoundingProblem, changes: int = 0) -> Iterator[LowerBound]:
    """Bounds from the binary matrices [Y >= d]: GRR(Y) is at least that of each with its threshold (Lemma A.3).

    They hold for every matrix that differs from Y in at most `changes` cells; those with none are sharper where
    rows and columns are not repeated, those with some where they are.
    """
    still = f", after any change of {changes} cell{'s'[: changes > 1]}" if changes else ""
    for level in np.unique(problem.levels)[1:].tolist():
        binary = problem.levels >= level
        thresholds = problem.thresholds
        at_zero = thresholds is not None and bool(thresholds[level - 1] == 0)
        forster = _forster(binary, changes)
        reason = f"By Forster's bound the sign-rank of [Y >= {level}] is at least {forster}{still}."
        yield LowerBound(forster - (0 if problem.strict else 1), reason)
        for side, matrix in (("columns", binary), ("rows", binary.T)):
            count = shattered_columns(matrix, at_zero, problem.strict, changes + 1)
            yield LowerBound(count, f"{count} {side} of [Y >= {level}] are shattered{still}.")
        if at_zero and not changes:
            signs = RoundingProblem(binary.astype(np.intp), np.zeros(1), problem.strict)
            if decide_plane(signs.distinct()[0])[1]:
                yield LowerBound(3, f"No products of vectors in the plane have the signs of [Y >= {level}].")
    if changes:
        blocks = max(disjoint_blocks(problem), disjoint_blocks(problem.transposed))
        if blocks > changes:
            yield LowerBound(2, f"Of {blocks} blocks of Y without common cells none is rounded from an outer product.")


def disjoint_blocks(problem: RoundingProblem) -> int:
    """The number of blocks of successive rows, each too large to be rounded from an outer product.

    A matrix that differs from Y in fewer cells than there are blocks has one of them in common with Y.
    """
    count, start = 0, 0
    for stop in range(1, len(problem.levels) + 1):
        block = replace(problem, levels=problem.levels[start:stop]).distinct()[0]
        W, H = (np.zeros((size, 0)) for size in block.levels.shape)
        if block.certify(W, H, "0 rounds to Y.") is None:
            impossible = decide_outer_product(block)[1]
            count, start = count + impossible, stop if impossible else start
    return count


def shattered_columns(binary: Array, at_zero: bool = False, strict: bool = False, copies: int = 1) -> int:
    """The number of columns that show every pattern of 0 and 1 in some row: no smaller rank rounds to them.

    Let d columns be shattered, and their factors v_j be of length k < d. Then sum c_j v_j = 0 for some c other than 0,
    with sum c_j >= 0, else take -c. For tau >= 0 there is a row u with x_j = u' v_j > tau exactly where c_j > 0: then
    0 = sum c_j x_j > tau sum c_j >= 0.  For tau < 0 there is one with x_j > tau exactly where c_j < 0: then
    0 = sum c_j x_j < 0.  Both are contradictions.

    At the threshold 0 it is enough to see one of each two opposite patterns, and 1 everywhere: a row with x_j > 0
    exactly where c_j < 0 serves as well, if there are any, because -c will do as well as c. Where no product may be 0
    (`strict`), 0 everywhere serves as well as 1 everywhere.

    A pattern that is seen `copies` times remains in one of them after fewer changes.

    The search is cut short after `_MAX_CELLS` cells; then there may be more.
    """
    binary, budget = binary.astype(np.intp), _MAX_CELLS

    def extended(pattern_of_row: Array, size: int, first: int) -> int:
        """The largest shattered set that extends one of `size` columns by columns from `first` on."""
        nonlocal budget
        n_patterns = 2 ** (size + 1)
        if n_patterns * copies > len(binary) * (2 if at_zero else 1) or first == binary.shape[1] or budget <= 0:
            return size
        patterns = 2 * pattern_of_row[:, None] + binary[:, first:]
        budget -= patterns.size
        places = patterns + n_patterns * np.arange(patterns.shape[1])
        seen = np.bincount(places.reshape(-1), minlength=n_patterns * patterns.shape[1]).reshape(-1, n_patterns).T
        if at_zero:
            ones = seen[-1].copy()
            seen = seen + seen[::-1]
            if not strict:
                seen[[0, -1]] = ones
        columns = np.flatnonzero(np.all(seen >= copies, axis=0)).tolist()
        return max([size, *(extended(patterns[:, column], size + 1, first + column + 1) for column in columns)])

    return extended(np.zeros(len(binary), dtype=np.intp), 0, 0)
