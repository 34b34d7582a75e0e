"""Ranks of a matrix: proved bounds on its round-rank and sign-rank; the number of cells that determine it."""

import re
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from sklearn.utils import check_random_state

from halfseen.arrays import Array
from halfseen.engines.threads import one_blas_thread
from halfseen.errors import ParameterError
from halfseen.roundrank.exact_rounding import RoundingProblem, check_levels, check_thresholds
from halfseen.roundrank.lower_bounds import LowerBound, lower_bounds
from halfseen.roundrank.outer_products import decide_outer_product
from halfseen.roundrank.upper_bounds import best_construction, bisect_rank, search_factors
from halfseen.validation import between, check_parameters, flag, one_of, seed, whole

_ONE = LowerBound(1, "0 does not round to Y.")
_TWO = LowerBound(2, "No outer product rounds to Y: the signs or the sizes of its factors would contradict each other.")


@dataclass(frozen=True, eq=False)
class RoundRank:
    """Bounds on a round-rank or sign-rank, with their proofs. The link of W H' is Y, exactly."""

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
    title: str = "Round-rank"
    """Name of the rank."""

    @property
    def exact(self) -> bool:
        """Whether the bounds meet."""
        return self.lower == self.upper

    def __str__(self) -> str:
        rank = f"{self.upper}" if self.exact else f"from {self.lower} to {self.upper}"
        return f"{self.title} {rank}. {self.why_lower} {self.why_upper}"


Bounds = TypeVar("Bounds", bound=RoundRank)


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
    problem = RoundingProblem(check_levels(Y, tau), tau)
    return bound_rank(problem, n_init if search else 0, check_random_state(random_state))


def bound_rank(problem: RoundingProblem, n_init: int, random: RandomState) -> RoundRank:
    """Bounds on the smallest rank that solves a problem; the upper one without a search if `n_init` is 0."""
    problem, row_of, column_of = problem.distinct()
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
            attempt = partial(search_factors, problem, n_init=n_init, random=random)
            certificate = bisect_rank(lower.rank, best.rank, attempt) or best
    return RoundRank(
        lower.rank, certificate.rank, certificate.W[row_of], certificate.H[column_of], certificate.thresholds,
        lower.reason, certificate.reason,
    )  # fmt: skip


def sign_rank(
    Y: ArrayLike,
    *,
    zeros: str = "above",
    search: bool = True,
    n_init: int = 5,
    random_state: int | RandomState | None = 0,
) -> RoundRank:
    """sign-rank(Y) = min rank X with sign(X) = Y,  sign(x) = 0 if x < 0 and 1 otherwise  (Eq. 2.3).

    An x of 0 counts as above, which GRF with the threshold 0 (Eq. 2.5) counts as below: the sign-rank of Y is the
    round-rank of 1 - Y with the threshold 0. Elsewhere, as in Forster's theorem, X must not hold any 0: this rank is
    at least as large, and may be larger. [[0, 1], [1, 1]] has sign-rank 1, by X = [[-1, 0], [0, 0]], and 2 without
    zeros.

    Ranks up to 2 are decided exactly but for large matrices, where the search among arrangements of vectors in the
    plane may be given up; bounds on larger ones are those of `round_rank`.

    Parameters
    ----------
    Y : array-like of shape (n, m)
        Zeros and ones.
    zeros : {"above", "below", "none"}, default="above"
        What an x of 0 counts as: 1, 0, or neither.
    search : bool, default=True
        Whether to search for factors of smaller rank than the constructions have.
    n_init : int, default=5
        Starts of the search for each rank that is tried.
    random_state : int, RandomState instance or None, default=0
        Random seed of the search.

    Returns
    -------
    RoundRank
        The bounds `lower` and `upper`, factors `W` and `H` with  [W H' >= 0] = Y  (or > 0, or either), exactly, and
        the reasons.

    Examples
    --------
    >>> import numpy as np, halfseen as hs
    >>> ranks = [hs.rank.sign_rank(np.eye(n), zeros="none") for n in (2, 3, 4, 5)]
    >>> [(rank.lower, rank.upper) for rank in ranks]
    [(1, 1), (2, 2), (3, 3), (3, 3)]
    """
    check_parameters(
        {"zeros": zeros, "search": search, "n_init": n_init, "random_state": random_state},
        {"zeros": one_of("above", "below", "none"), "search": flag(), "n_init": whole(1), "random_state": seed()},
    )
    levels = check_levels(Y, np.zeros(1))
    problem = RoundingProblem(1 - levels if zeros == "above" else levels, np.zeros(1), strict=zeros == "none")
    bounds = bound_rank(problem, n_init if search else 0, check_random_state(random_state))
    if zeros == "above":
        bounds = about_complement(replace(bounds, W=-bounds.W))
    return replace(bounds, title="Sign-rank")


def about_complement(bounds: Bounds) -> Bounds:
    """The same bounds, with reasons that speak of 1 - Y where they were those of the levels swapped."""
    why_lower, why_upper = (re.sub(r"\bY\b", "1 - Y", why) for why in (bounds.why_lower, bounds.why_upper))
    return replace(bounds, why_lower=why_lower, why_upper=why_upper)


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


class CellsNeeded(NamedTuple):
    """Numbers of cells, drawn uniformly, for a matrix to be determined; the first three are necessary."""

    degrees_of_freedom: int
    """r (n + m - r), by Eq. 1.3: with fewer, no matrix of rank r in general position is determined."""
    every_line: float
    """With fewer, every row and column has a seen cell with less than the probability asked for."""
    worst_case: float
    """With fewer, some matrices of rank r and least coherence are determined with less than that probability."""
    order: float
    """n r log n, n the longer side: what Theorem 1.1.1 prints, up to a constant. It may exceed n m."""


def cells_needed(n: int, m: int, rank: int, *, probability: float = 0.95) -> CellsNeeded:
    """n r log n  cells, in order, must be seen for a matrix of rank r to be determined  (Theorem 1.1.1).

    Cells are seen independently of each other, each with probability p, so that n m p are expected. The proof has two
    conditions. There must be r (n + m - r) cells, the degrees of freedom (Eq. 1.3). And every row and column must have
    a seen cell, a row with probability 1 - (1 - p)^m, independently of the others:

        (1 - (1 - p)^m)^n >= probability,     (1 - (1 - p)^n)^m >= probability

    which asks for about n log n. Both together show max(n r, n log n), not the product that is printed. The product is
    right for the worst matrix of rank r. Let X have r blocks of ones on its diagonal, as equal in size as possible. If
    some row has no seen cell in its block, its factor can be multiplied by any number and all seen cells, zeros among
    them, stay. So m / r takes the place of m in (1 - p)^m, and n / r that of n: about r n log n cells.

    Parameters
    ----------
    n : int
        Number of rows.
    m : int
        Number of columns.
    rank : int
        r, from 1 to min(n, m).
    probability : float, default=0.95
        Probability with which the matrix is to be determined, between 0 and 1.

    Returns
    -------
    CellsNeeded
        The degrees of freedom, and the expected numbers of cells for every row and column to have one, and for the
        worst matrix, which are necessary; and `order`, what the theorem prints, which may exceed n m. None is said to
        be sufficient.

    References
    ----------
    .. [1] E. J. Candès and T. Tao, "The power of convex relaxation: near-optimal matrix completion", IEEE Transactions
       on Information Theory 56, 2010, Theorem 1.7.

    Examples
    --------
    >>> import halfseen as hs
    >>> needed = hs.rank.cells_needed(50, 50, 2)
    >>> needed.degrees_of_freedom, round(needed.every_line), round(needed.worst_case)
    (196, 322, 602)
    """
    check_parameters(
        {"n": n, "m": m, "rank": rank, "probability": probability},
        {"n": whole(1), "m": whole(1), "rank": whole(1), "probability": between(0, 1)},
    )
    if rank > min(n, m):
        raise ParameterError(
            "must be at most the number of rows, and of columns.", found=f"{rank} for {n} x {m}",
            remedy="Lower it.", parameter="rank",
        )  # fmt: skip

    def expected(n_blocks: int) -> float:
        """n m p, p the smallest with which every row and every column has a seen cell in its block."""
        heights, widths = (np.diff(np.arange(n_blocks + 1) * size // n_blocks) for size in (n, m))

        def excess(log_unseen: float) -> float:
            of_rows, of_columns = (
                np.sum(lines * np.log(-np.expm1(cells * log_unseen)))
                for lines, cells in ((heights, widths), (widths, heights))
            )
            return float(min(of_rows, of_columns) - np.log(probability))

        return float(-n * m * np.expm1(brentq(excess, -1e3, -1e-12)))

    longer = max(n, m)
    return CellsNeeded(rank * (n + m - rank), expected(1), expected(rank), float(longer * rank * np.log(longer)))
