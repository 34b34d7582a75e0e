"""Completion of a triangle whose rows and columns are in an unknown order, as well as seen cells allow.

Levels 0 and 1 with  Y_ij = [u_i < v_j]  are a triangle, or a staircase, in some order of rows and columns: of two rows
one has all the ones of the other. These are the matrices of generalized round-rank one whose factors are positive,
[a_i b_j > tau] with u = -log a and v = log b - log tau. Nothing matters but the order of all u and v together.

*All orders.* If all (n + m)! of them are equally likely, u and v may as well be drawn uniformly from (0, 1). Given v
and the seen cells, the u_i are independent of each other, and each is uniform between the largest v_j with a 0 in its
row and the smallest with a 1: Gibbs sampling of all rows and then of all columns, without any rejection. An unseen cell
is 1 with the probability (v_j - low_i) / (high_i - low_i), and the mean of these is less noisy than that of levels.

*Orders of a known matrix.* If the matrix is known but for the order of its rows and columns, Y_ij = T[a_i, b_j] with
permutations a and b. Two rows, or two columns, swap places where both then agree with their seen cells; and a row and
a column together move to other places, those between making room, where all then agree. A move is as likely as that
back, so that all orders that can be reached are visited equally often. Not all need be within reach.
"""

from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.random import Generator, RandomState
from numpy.typing import ArrayLike

from halfseen.arrays import Array
from halfseen.errors import DataError, ParameterError
from halfseen.labels import Places
from halfseen.model import random_generator
from halfseen.observed import Observed
from halfseen.ranking import read_cells
from halfseen.roundrank.exact_rounding import check_levels
from halfseen.validation import check_parameters, seed, whole

#: Cells of a contradiction that are named.
_MAX_NAMED = 6


class OrderPosterior(NamedTuple):
    """Predictions of all cells, the seen ones as they are."""

    mean: Array
    """Probability of level 1: the prediction with the least squared error."""
    level: Array
    """The more likely level: the prediction out of 0 and 1 with the least squared error."""


def complete_by_orders(
    X: ArrayLike | Observed,
    known: ArrayLike | None = None,
    *,
    n_sweeps: int = 2000,
    n_burn: int = 200,
    random_state: int | RandomState | None = 0,
) -> OrderPosterior:
    """P(Y_ij = 1 | seen cells),  Y_ij = [u_i < v_j],  all orders of rows and columns being equally likely.

    For two levels of generalized round-rank one, as in Table 4.1. If the order is drawn at random, no predictor has a
    smaller expected squared error than `mean`, and none that predicts 0 or 1 has a smaller one than `level`.

    Parameters
    ----------
    X : array-like, sparse matrix, DataFrame or Observed
        Seen levels 0 and 1, without noise; unseen cells are missing.
    known : array-like of shape (n, m), default=None
        Matrix of 0 and 1 whose rows and columns in some order are those of X, if it is known. It need not be a
        triangle. Sampling starts from it as it is: it must agree with all seen cells. It forgets the start slowly:
        if that is the truth, means of few sweeps are too good. If None, X is any triangle.
    n_sweeps : int, default=2000
        Number of sweeps, each over all rows and columns.
    n_burn : int, default=200
        Number of first sweeps that do not count.
    random_state : int, RandomState instance or None, default=0
        Random seed.

    Returns
    -------
    OrderPosterior
        Arrays `mean` and `level` of the shape of X.

    Examples
    --------
    >>> import numpy as np, halfseen as hs
    >>> X = [[1, 1, np.nan], [0, np.nan, 1], [0, 0, np.nan]]
    >>> hs.rank.complete_by_orders(X).mean.round(1)
    array([[1. , 1. , 1. ],
           [0. , 0.3, 1. ],
           [0. , 0. , 0.6]])
    """
    check_parameters(
        {"n_sweeps": n_sweeps, "n_burn": n_burn, "random_state": random_state},
        {"n_sweeps": whole(1), "n_burn": whole(0), "random_state": seed()},
    )
    if n_burn >= n_sweeps:
        raise ParameterError(
            "must be less than `n_sweeps`.", found=f"{n_burn} of {n_sweeps}", remedy="Raise `n_sweeps`.",
            parameter="n_burn",
        )  # fmt: skip
    cells = read_cells(X, "X")
    if cells.unseen == "zero":
        raise ParameterError(
            "Unseen cells of X must be missing.", found='unseen="zero", which gives each of them a level',
            remedy='Observe X with `unseen="missing"`.', parameter="X",
        )  # fmt: skip
    levels, places = cells.to_dense(), Places(cells.row_labels, cells.column_labels)
    neither = np.argwhere(~np.isnan(levels) & (levels != 0) & (levels != 1))
    if len(neither):
        row, column = neither[0].tolist()
        raise DataError(
            "must hold levels 0 and 1.", found=f"{levels[row, column]:g}", where=f"at {places.of(row, column)}",
            remedy="Compare the levels with a threshold first.", parameter="X",
        )  # fmt: skip
    random = random_generator(random_state)
    if known is None:
        u, v = consistent_start(levels, places)
        mean = sample_orders(levels, u, v, n_sweeps, n_burn, random)
    else:
        matrix = check_levels(known, np.zeros(1))
        same_shape = matrix.shape == levels.shape
        differing = np.argwhere(levels == 1 - matrix).tolist() if same_shape else []
        if differing or not same_shape:
            found = "another level" if same_shape else f"shape {matrix.shape}"
            where = f"at {places.of(*differing[0])}" if differing else ""
            raise DataError(
                f"must have the shape of X, {levels.shape}, and its seen cells.", found=found, where=where,
                remedy="Put its rows and columns into an order that agrees with X.", parameter="known",
            )  # fmt: skip
        mean = sample_permutations(levels, matrix, n_sweeps, n_burn, random)
    return OrderPosterior(mean, (mean > 0.5).astype(np.intp))


def consistent_start(levels: Array, places: Places) -> tuple[Array, Array]:
    """u and v in (0, 1) with all seen levels; refused if there are none, with cells that contradict each other.

    A 1 puts its row before its column, a 0 behind it. An order exists exactly if there is no circle.
    """
    n, m = levels.shape
    before = {i: (n + np.flatnonzero(levels[i] == 0)).tolist() for i in range(n)}
    before |= {n + j: np.flatnonzero(levels[:, j] == 1).tolist() for j in range(m)}
    try:
        order = list(TopologicalSorter(before).static_order())
    except CycleError as error:
        # of two rows each has a 1 where the other has a 0; else any circle
        one, zero = (levels == 1).astype(np.float64), (levels == 0).astype(np.float64)
        larger = one @ zero.T > 0
        pairs = np.argwhere(larger & larger.T)
        if len(pairs):
            i, k = pairs[0].tolist()
            j, at = (int(np.flatnonzero(one[a] * zero[b])[0]) for a, b in ((i, k), (k, i)))
            circle = [(i, j), (k, j), (k, at), (i, at)]
        else:
            circle = [tuple(sorted(pair)) for pair in pairwise(error.args[1])]
            circle = [(row, column - n) for row, column in circle]
        named = [f"{levels[cell]:g} at {places.of(*cell)}" for cell in circle[:_MAX_NAMED]]
        more = f" and {len(circle) - _MAX_NAMED} more cells" if len(circle) > _MAX_NAMED else ""
        raise DataError(
            "Seen cells must be those of a triangle in some order of its rows and columns.",
            found=", ".join(named) + more, parameter="X",
            remedy="Use RoundMF with more components, or OrdinalMF where there is noise.",
        ) from None  # fmt: skip
    position = np.empty(n + m)
    position[order] = (np.arange(n + m) + 0.5) / (n + m)
    return position[:n], position[n:]


def sample_orders(levels: Array, u: Array, v: Array, n_sweeps: int, n_burn: int, random: Generator) -> Array:
    """Mean of P(u_i < v_j | v) and P(u_i < v_j | u) over Gibbs sweeps from u and v, which have the seen levels."""
    one, zero = levels == 1, levels == 0
    total = np.zeros(levels.shape)
    for sweep in range(n_sweeps):
        low, high = np.where(zero, v, 0.0).max(axis=1), np.where(one, v, 1.0).min(axis=1)
        if sweep >= n_burn:
            total += np.clip((v - low[:, None]) / (high - low)[:, None], 0.0, 1.0)
        u = low + (high - low) * random.random(u.size)
        low, high = np.where(one, u[:, None], 0.0).max(axis=0), np.where(zero, u[:, None], 1.0).min(axis=0)
        if sweep >= n_burn:
            total += np.clip((high - u[:, None]) / (high - low), 0.0, 1.0)
        v = low + (high - low) * random.random(v.size)
    return total / (2 * (n_sweeps - n_burn))


def sample_permutations(levels: Array, matrix: Array, n_sweeps: int, n_burn: int, random: Generator) -> Array:
    """Mean of T[a][:, b] over Metropolis sweeps from a and b as they are, T the matrix, which has the seen levels.

    A sweep proposes a swap for each row and each column, and as many moves of a row and a column together.
    """
    from halfseen.kernels.permutations import move_row_and_column, swap_rows  # numba is loaded when it is needed

    (n, m), T = levels.shape, np.ascontiguousarray(matrix)
    Y = np.where(np.isnan(levels), -1, levels).astype(T.dtype)
    T_by_column, Y_by_column = np.ascontiguousarray(T.T), np.ascontiguousarray(Y.T)
    a, b, total = np.arange(n), np.arange(m), np.zeros(levels.shape)
    for sweep in range(n_sweeps):
        swap_rows(T, Y, a, b, random.random((n, 2)))
        swap_rows(T_by_column, Y_by_column, b, a, random.random((m, 2)))
        move_row_and_column(T, Y, a, b, random.random((n + m, 2, 3)))
        if sweep >= n_burn:
            total += T[a][:, b]
    return total / (n_sweeps - n_burn)
