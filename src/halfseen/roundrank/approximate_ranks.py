"""Approximate ranks: the smallest linear rank, round-rank or sign-rank of any matrix near to a given one.

*The ball.* Y' is near to Y if ||Y - Y'||_F^2 <= eps. Levels are whole numbers, so that Y' differs from Y in at most
c = floor(eps) cells. With a sigmoid as the link, no level is ever reached. A cell that is off by 1/2 or more costs 1/4
or more, so that there are at most c = floor(4 eps) such cells. All others are on their side of 1/2, or, with a sum of
sigmoids, nearest to their level: X rounds to a Y' that differs from Y in at most c cells.

*Below.* So all ranks are at least the smallest round-rank of the matrices with c cells changed. If these are few, they
are gone through one by one; else the bounds of `lower_bounds` allow for c changes.

*Above.* Any factors show an upper bound: their levels, computed exactly, are a Y'. For sigmoids, factors that round to
Y are scaled: sigmoid(t x) comes as near to 0 or 1 as one likes, if x is not 0.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations, islice, product

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike
from scipy.optimize import brentq, minimize
from scipy.special import expit
from sklearn.utils import check_random_state

from halfseen.arrays import Array
from halfseen.engines.threads import one_blas_thread
from halfseen.errors import DataError, ParameterError
from halfseen.io.reader import as_numbers, well_formed
from halfseen.labels import Places
from halfseen.roundrank.bounds import RoundRank, about_complement, bound_rank
from halfseen.roundrank.exact_rounding import RoundingProblem, check_levels, check_thresholds, exact_levels
from halfseen.roundrank.lower_bounds import LowerBound, lower_bounds
from halfseen.roundrank.upper_bounds import HingeLoss, bisect_rank
from halfseen.validation import check_parameters, flag, number, one_of, seed, whole

#: Fits of the search, each without the cells that the one before missed most.
_N_TRIMMED_FITS = 5
#: Doublings of factors until sigmoids are near enough to their levels.
_MAX_DOUBLINGS = 200


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


@dataclass(frozen=True, eq=False)
class ApproximateRank(RoundRank):
    """Bounds on an approximate rank, with their proofs: the link of W H' is within eps of Y."""

    approximation: Array = field(repr=False, kw_only=True)
    """Y', the link of W H', of shape (n, m)."""
    error: float = field(kw_only=True)
    """||Y - Y'||_F^2, at most eps."""


def approximate_rank(
    Y: ArrayLike,
    eps: float,
    thresholds: ArrayLike | None = None,
    *,
    link: str = "round",
    search: bool = True,
    n_init: int = 5,
    max_matrices: int = 200,
    random_state: int | RandomState | None = 0,
) -> ApproximateRank:
    """eps-rank_psi(Y) = min r_psi(Y') with ||Y - Y'||_F^2 <= eps,  psi a link  (Eq. 2.21).

    Theorem 3.2.1 says that eps-rank_sigmoid(Y) = sign-rank(Y) for any eps > 0. That holds for 0 < eps < 1/4 and the
    sign-rank without zeros, `sign_rank(Y, zeros="none")`. From 1/4 on, eps-rank_sigmoid may be smaller: X = 0 is within
    n m / 4 of every Y. And where an x of 0 counts as above, the sign-rank may be smaller: sigmoid(t 0) = 1/2 for all t.
    With thresholds to choose (Remark 3.2.1), eps-rank_multi-sigmoid(Y) = `round_rank(Y)` for 0 < eps < 1/4.

    Parameters
    ----------
    Y : array-like of shape (n, m)
        Levels 0..N, a whole number in every cell.
    eps : float
        Largest squared error, 0 or more; above 0 for sigmoids.
    thresholds : array-like of shape (n_thresholds,), default=None
        tau_1 < ... < tau_N of the link "round". If None, those with which the rank is smallest.
    link : {"round", "sign", "sigmoid", "multi-sigmoid"}, default="round"
        psi: GRF (Eq. 2.5), the sign of Eq. 2.3, 1 / (1 + exp(-x)) for levels 0 and 1, or the sum of sigmoids
        x - tau_d with thresholds to choose (section 3.2).
    search : bool, default=True
        Whether to search for factors of smaller rank than those of Y and of the matrices gone through.
    n_init : int, default=5
        Starts of the search for each rank that is tried.
    max_matrices : int, default=200
        Number of matrices Y' that are gone through, if there are no more: then the lower bound is that of the best.
    random_state : int, RandomState instance or None, default=0
        Random seed of the search.

    Returns
    -------
    ApproximateRank
        The bounds `lower` and `upper`, whether they meet (`exact`), the factors `W`, `H` and the `thresholds`, their
        `approximation` of Y and its `error`, and the reasons `why_lower` and `why_upper`.

    Examples
    --------
    >>> import numpy as np, halfseen as hs
    >>> ranks = [hs.rank.approximate_rank(np.eye(9), eps) for eps in (0, 2, 7, 9)]
    >>> [(rank.lower, rank.upper) for rank in ranks]
    [(2, 2), (2, 2), (1, 1), (0, 0)]
    """
    check_parameters(
        {"eps": eps, "link": link, "search": search, "n_init": n_init, "max_matrices": max_matrices,
         "random_state": random_state},
        {"eps": number(0, above="sigmoid" in str(link)), "link": one_of("round", "sign", "sigmoid", "multi-sigmoid"),
         "search": flag(), "n_init": whole(1), "max_matrices": whole(1), "random_state": seed()},
    )  # fmt: skip
    if thresholds is not None and link != "round":
        raise ParameterError(
            f"must be left out with the link {link!r}.", found=repr(thresholds), remedy='Or choose `link="round"`.',
            parameter="thresholds",
        )  # fmt: skip
    tau = None if thresholds is None else check_thresholds(thresholds)
    levels = check_levels(Y, np.zeros(1) if link in ("sign", "sigmoid") else tau)
    ball = Ball(levels, float(eps), link, tau)
    with one_blas_thread():
        return ball.bounds(n_init if search else 0, max_matrices, check_random_state(random_state))


@dataclass(frozen=True)
class Ball:
    """The matrices that a link can have within eps of Y."""

    levels: Array
    eps: float
    link: str
    thresholds: Array | None

    @property
    def is_smooth(self) -> bool:
        return "sigmoid" in self.link

    @property
    def changes(self) -> int:
        """Largest number of cells of a matrix in the ball that round to another level."""
        return min(int(4 * self.eps if self.is_smooth else self.eps), self.levels.size)

    @property
    def problem(self) -> RoundingProblem:
        """What factors must round to, were there no error; -x rounds to the levels of the sign swapped (Eq. 2.3)."""
        if self.link in ("sign", "sigmoid"):
            levels = 1 - self.levels if self.link == "sign" else self.levels
            return RoundingProblem(levels, np.zeros(1), strict=self.link == "sigmoid")
        return RoundingProblem(self.levels, self.thresholds)

    def bounds(self, n_init: int, max_matrices: int, random: RandomState) -> ApproximateRank:
        """Rank 0 decided, then Y itself, the matrices with few changes, and a search between the bounds."""
        if constant := self.constant():
            return constant
        exactly = bound_rank(self.problem, n_init, random)
        lower, upper = LowerBound(exactly.lower, exactly.why_lower), self.of_rounded(exactly)
        if upper is None:
            raise ParameterError(
                "must be larger.", found=f"{self.eps:g}", remedy="No float is near enough to the levels.",
                parameter="eps",
            )  # fmt: skip
        if self.changes:
            lower = LowerBound(1, "No constant is near enough to Y.")
            lower = max([lower, *lower_bounds(self.problem, self.changes)], key=lambda bound: bound.rank)
        if self.changes and lower.rank < upper.upper:
            near = list(islice(self.near(), max_matrices + 1))
            if len(near) <= max_matrices:
                ranks = [bound_rank(replace(self.problem, levels=levels), 0, random) for levels in near]
                least = min(rank.lower for rank in ranks)
                reason = f"None of the {len(near)} matrices so near to Y has a smaller rank."
                lower = max(lower, LowerBound(least, reason), key=lambda bound: bound.rank)
                upper = min([upper, *filter(None, map(self.of_rounded, ranks))], key=lambda one: one.upper)
            attempt = partial(self.search, n_init=n_init, random=random)
            upper = bisect_rank(lower.rank, upper.upper, attempt) or upper
        bounds = replace(upper, lower=lower.rank, why_lower=lower.reason)
        return about_complement(bounds) if self.link == "sign" else bounds

    def at(self, W: Array, H: Array, thresholds: Array, reason: str) -> ApproximateRank | None:
        """The link of W H' with these thresholds, if it is near enough to Y."""
        n, m = self.levels.shape
        if self.is_smooth:
            approximation = expit((W @ H.T)[:, :, None] - thresholds).sum(axis=2)
        else:
            rows, columns = np.divmod(np.arange(n * m), m)
            approximation = exact_levels(W[rows], H[columns], thresholds).reshape(n, m)
        if self.link == "sign":
            W, approximation = -W, 1 - approximation
        error = float(np.sum((approximation - self.levels) ** 2.0))
        if error > self.eps:
            return None
        return ApproximateRank(
            0, W.shape[1], W, H, thresholds, "No rank is smaller.", reason, "Approximate rank",
            approximation=approximation, error=error,
        )  # fmt: skip

    def constant(self) -> ApproximateRank | None:
        """X = 0, if that is near enough to Y, with the best thresholds if they are free."""
        highest, steps = self.problem.n_thresholds, np.arange(self.problem.n_thresholds)
        if self.problem.thresholds is not None:
            candidates = [self.problem.thresholds]
        elif not self.is_smooth or not highest:
            candidates = [steps + 0.5 - level for level in range(highest + 1)]
        else:  # psi(0) is the mean, or nearly so where that is an end of the range
            room = min(np.sqrt(self.eps / self.levels.size), 1.0) / 2
            height = np.clip(self.levels.mean(), room, highest - room)
            reach = highest + float(np.log(2 * highest / room))
            candidates = [steps - brentq(lambda x: expit(x - steps).sum() - height, -reach, reach)]
        W, H = (np.zeros((size, 0)) for size in self.levels.shape)
        found = (self.at(W, H, thresholds, "0 is near enough to Y.") for thresholds in candidates)
        return min(filter(None, found), key=lambda one: one.error, default=None)

    def of_rounded(self, rank: RoundRank) -> ApproximateRank | None:
        """Factors that round to levels near to Y; for sigmoids, they are doubled until these are near enough."""
        top = max(float(np.max(rank.W @ rank.H.T)), float(rank.thresholds.max(initial=-np.inf)))
        above = np.arange(self.problem.n_thresholds - rank.thresholds.size) + top + 1.0  # of levels that are not there
        thresholds = np.append(rank.thresholds, above)
        scales = 2.0 ** np.arange(_MAX_DOUBLINGS) if self.is_smooth else np.ones(1)
        found = (self.at(scale * rank.W, rank.H, scale * thresholds, rank.why_upper) for scale in scales)
        return next(filter(None, found), None)

    def near(self) -> Iterator[Array]:
        """All levels within eps of Y; for sigmoids, all that have another level in so few cells."""
        flat, levels_of_cell = self.problem.levels.reshape(-1), range(self.problem.n_thresholds + 1)
        for count in range(self.changes + 1):
            for places in combinations(range(flat.size), count):
                for levels in product(levels_of_cell, repeat=count):
                    moves = np.abs(np.array(levels, dtype=np.intp) - flat[list(places)])
                    if np.all(moves > 0) and (self.is_smooth or np.sum(moves**2) <= self.eps):
                        one = flat.copy()
                        one[list(places)] = levels
                        yield one.reshape(self.levels.shape)

    def search(self, rank: int, n_init: int, random: RandomState) -> ApproximateRank | None:
        """Factors of that rank from one of `n_init` starts, by least squares or by a hinge.

        The hinge is minimized again without the cells that are furthest off, as many as may change.
        """
        problem, reason = self.problem, f"A search found factors of {rank} columns."
        has_all_levels = np.unique(problem.levels).size == problem.n_thresholds + 1
        for attempt in range(n_init):
            loss = HingeLoss(problem.levels, problem.thresholds, 1.0, problem.n_thresholds)
            if not self.is_smooth and (problem.thresholds is not None or has_all_levels):
                loss, _ = HingeLoss.of(problem, attempt)
            vector = loss.start(rank, attempt, random)
            for _ in range(1 if self.is_smooth else _N_TRIMMED_FITS):
                if self.is_smooth:
                    vector = minimize(partial(self.squared_error, loss), vector, jac=True, method="L-BFGS-B").x
                else:
                    vector = loss.minimize(vector)
                W, H, thresholds = loss.unpack(vector)
                thresholds = np.sort(thresholds)
                scale = 1.0
                if problem.thresholds is not None:
                    scale = float(np.abs(problem.thresholds).max()) or 1.0
                    thresholds = problem.thresholds
                if found := self.at(W * scale, H, thresholds, reason):
                    return found
                edges, X = np.concatenate([[-np.inf], thresholds, [np.inf]]), scale * W @ H.T
                missed = np.maximum(edges[problem.levels] - X, X - edges[problem.levels + 1]).reshape(-1)
                weights = np.ones(missed.size)
                weights[np.argsort(-missed)[: self.changes]] = 0.0
                loss = replace(loss, weights=weights.reshape(X.shape))
        return None

    def squared_error(self, loss: HingeLoss, vector: Array) -> tuple[float, Array]:
        """||Y - psi(W H')||_F^2 and its gradient."""
        W, H, thresholds = loss.unpack(vector)
        steps = expit((W @ H.T)[:, :, None] - thresholds)
        error = steps.sum(axis=2) - self.levels
        by_step = 2 * error[:, :, None] * steps * (1 - steps)
        by_x, by_tau = by_step.sum(axis=2), -by_step.sum(axis=(0, 1))[: vector.size - W.size - H.size]
        return float(np.sum(error**2)), np.concatenate([(by_x @ H).reshape(-1), (by_x.T @ W).reshape(-1), by_tau])
