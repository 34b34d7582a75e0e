"""Ranks of a matrix: proved bounds on its generalized round-rank, and its epsilon-rank."""

from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from halfseen.arrays import Array
from halfseen.engines.threads import one_blas_thread
from halfseen.errors import DataError
from halfseen.io.reader import as_numbers, well_formed
from halfseen.labels import Places
from halfseen.roundrank.exact_rounding import RoundingProblem, check_levels, check_thresholds
from halfseen.roundrank.lower_bounds import LowerBound, lower_bounds
from halfseen.roundrank.outer_products import decide_outer_product
from halfseen.roundrank.upper_bounds import best_construction, bisect_rank, search_factors
from halfseen.validation import check_parameters, flag, number, seed, whole

_ONE = LowerBound(1, "Not all of Y is at the level of 0.")
_TWO = LowerBound(2, "No outer product rounds to Y: the signs or the sizes of its factors would contradict each other.")


@dataclass(frozen=True, eq=False)
class RoundRank:
    """Bounds on a round-rank, with their proofs. GRF(W H') = Y with these thresholds, exactly."""

    lower: int
    """No matrix of smaller rank rounds to Y."""
    upper: int
    """Rank of W H', which rounds to Y."""
    W: Array = field(repr=False)
    """Factor of the rows, of shape (n, upper)."""
    H: Array = field(repr=False)
    """Factor of the columns, of shape (m, upper)."""
    thresholds: Array
    """tau_1 < ... < tau_N: those given, or those with which W H' rounds to Y."""
    why_lower: str
    """Why the lower bound holds, in a sentence."""
    why_upper: str
    """Where the factors come from, in a sentence."""

    @property
    def exact(self) -> bool:
        """Whether the bounds meet."""
        return self.lower == self.upper

    def __str__(self) -> str:
        rank = f"{self.upper}" if self.exact else f"from {self.lower} to {self.upper}"
        return f"Round-rank {rank}. {self.why_lower} {self.why_upper}"


def round_rank(
    Y: ArrayLike,
    thresholds: ArrayLike | None = None,
    *,
    search: bool = True,
    n_init: int = 5,
    random_state: int | RandomState | None = 0,
) -> RoundRank:
    """GRR(Y) = min rank X with GRF(X) = Y, over X  (Eq. 2.6)  or over X and the thresholds  (Eq. 2.2).

    Whether the rank is 0 or 1 is decided exactly. Beyond, the lower bound is the best of Forster's bound and of
    shattered rows and columns; the upper bound is the best of constructions and of a search. Both are proved, the
    upper one by factors whose rounded product was checked in exact arithmetic: they hold however far apart they are.

    Parameters
    ----------
    Y : array-like of shape (n, m)
        Levels 0..N, a whole number in every cell.
    thresholds : array-like of shape (n_thresholds,), default=None
        tau_1 < ... < tau_N. If None, those with which the rank is smallest.
    search : bool, default=True
        Whether to search for factors of smaller rank than the constructions have.
    n_init : int, default=5
        Starts of the search for each rank that is tried, of which there are about log2 of the distance between the
        bounds. More may lower the upper bound; for matrices of many hundred rows few take long as well.
    random_state : int, RandomState instance or None, default=0
        Random seed of the search.

    Returns
    -------
    RoundRank
        The bounds `lower` and `upper`, whether they meet (`exact`), the factors `W`, `H` and the `thresholds`, and the
        reasons `why_lower` and `why_upper`.

    Examples
    --------
    >>> import numpy as np, halfseen as hs
    >>> bounds = hs.rank.round_rank(np.tri(8))  # of linear rank 8
    >>> bounds.lower, bounds.upper
    (1, 1)
    >>> bool(np.all(hs.rank.grf(bounds.W @ bounds.H.T, bounds.thresholds) == np.tri(8)))
    True
    """
    check_parameters(
        {"search": search, "n_init": n_init, "random_state": random_state},
        {"search": flag(), "n_init": whole(1), "random_state": seed()},
    )
    tau = None if thresholds is None else check_thresholds(thresholds)
    problem, row_of, column_of = RoundingProblem(check_levels(Y, tau), tau).distinct()
    n, m = problem.levels.shape
    with one_blas_thread():  # the search ends elsewhere with other sums, and small ones do not gain by threads
        if certificate := problem.certify(np.zeros((n, 0)), np.zeros((m, 0)), "0 rounds to Y."):
            lower = LowerBound(0, "No rank is smaller.")
        else:
            certificate, impossible = decide_outer_product(problem)
            lower = _TWO if impossible else _ONE
        if certificate is None:
            lower = max([lower, *lower_bounds(problem)], key=lambda bound: bound.rank)
            best = best_construction(problem, lower.rank)
            random = check_random_state(random_state)
            attempt = partial(search_factors, problem, n_init=n_init if search else 0, random=random)
            certificate = bisect_rank(lower.rank, best.rank, attempt) or best
    return RoundRank(
        lower.rank, certificate.rank, certificate.W[row_of], certificate.H[column_of], certificate.thresholds,
        lower.reason, certificate.reason,
    )  # fmt: skip


def bound_for_any_thresholds(rank: int, n_thresholds: int) -> int:
    """GRR_tau'(Y) <= N GRR_tau*(Y) + 1,  tau* the best thresholds and tau' any others  (Theorem 2.1.1).

    With N = 1 or 2 the rank rises by 1 at most: k X + c with k > 0 moves two thresholds to any two places (Lemmas
    2.1.1 and 2.1.2). From N = 3 on the thesis' proof has a gap, and `round_rank` does not rely on it: see "The notions
    of rank" in the methods.

    Parameters
    ----------
    rank : int
        GRR_tau*(Y), or an upper bound on it.
    n_thresholds : int
        N.

    Returns
    -------
    int
        The bound of the theorem.
    """
    check_parameters({"rank": rank, "n_thresholds": n_thresholds}, {"rank": whole(0), "n_thresholds": whole(1)})
    return int(n_thresholds) * int(rank) + 1


def approximation_errors(X: ArrayLike) -> Array:
    """||X - X_k||_F^2 = the sum of the squares of all singular values but the k largest, k = 0..min(n, m).

    X_k is the best approximation of rank k (Theorem 2.2.2): what Figure 2.2 shows.

    Parameters
    ----------
    X : array-like of shape (n, m)
        Finite numbers.

    Returns
    -------
    ndarray of shape (min(n, m) + 1,)
        Squared errors; the last is 0.
    """
    return _tail_sums(np.linalg.svd(_check_finite(X), compute_uv=False))


def epsilon_rank(X: ArrayLike, eps: float) -> int:
    """min rank X' with ||X - X'||_F^2 <= eps  (Eq. 2.20).

    Singular values are known up to  max(n, m) * precision * the largest,  and are lowered by that: so an error that is
    eps but for rounding counts as eps, and with eps = 0 this is `numpy.linalg.matrix_rank`.

    Parameters
    ----------
    X : array-like of shape (n, m)
        Finite numbers.
    eps : float
        Largest squared error, 0 or more.

    Returns
    -------
    int
        The smallest rank with such an error.
    """
    check_parameters({"eps": eps}, {"eps": number(0)})
    numbers = _check_finite(X)
    values = np.linalg.svd(numbers, compute_uv=False)
    uncertainty = max(numbers.shape) * np.finfo(values.dtype).eps * values.max(initial=0.0)
    return int(np.argmax(_tail_sums(np.maximum(values - uncertainty, 0.0)) <= eps))


def _tail_sums(values: Array) -> Array:
    """Sums of squares from each position on, the smallest added first, and 0."""
    return np.append(np.cumsum(values[::-1] ** 2)[::-1], 0.0)


def _check_finite(X: ArrayLike) -> Array:
    """X as floats; refused where a cell is not finite."""
    numbers = as_numbers(well_formed(X)).astype(np.float64)
    infinite = np.argwhere(~np.isfinite(numbers))
    if len(infinite):
        row, column = infinite[0].tolist()
        raise DataError(
            "must hold a finite number in every cell.", found=f"{numbers[row, column]:g}",
            where=f"at {Places().of(row, column)}", remedy="Complete X first.", parameter="X",
        )  # fmt: skip
    return numbers
