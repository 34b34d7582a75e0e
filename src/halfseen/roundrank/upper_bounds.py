"""Upper bounds on the round-rank: factors of few columns, by construction and by search, each checked exactly."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.random import RandomState
from scipy.optimize import OptimizeResult, minimize
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from halfseen.arrays import Array
from halfseen.errors import ParameterError
from halfseen.roundrank.exact_rounding import Certificate, RoundingProblem, grf
from halfseen.roundrank.outer_products import decide_outer_product
from halfseen.roundrank.planar_signs import decide_plane

Found = TypeVar("Found")

#: Levels that are tried as the level of 0 when thresholds are free: the most frequent ones.
_MAX_ZERO_LEVELS = 5
#: Iterations of L-BFGS, and the corrections it keeps. Twice the usual number pays: more starts reach a solution.
_MAX_ITER = 500
_MEMORY = 20
#: Ever smaller margins, relative to the first: the only solutions may be those with little room.
_MARGINS = (1.0, 0.1, 0.01, 0.001)


def best_construction(problem: RoundingProblem, lower: int) -> Certificate:
    """The certificate of smallest rank by a construction; no further one is tried after one of rank `lower`."""
    best = by_unit_vectors(problem)
    for construct in (by_plane, by_runs, by_truncation, by_shift):
        for certificate in construct(problem, lower, best.rank) if best.rank > lower else ():
            best = min(best, certificate, key=lambda one: one.rank)
    return best


def bisect_rank(lower: int, upper: int, attempt: Callable[[int], Found | None]) -> Found | None:
    """What was found at the smallest rank from `lower` to below `upper` that bisection reaches."""
    best = None
    while lower < upper:
        middle = (lower + upper) // 2
        if found := attempt(middle):
            best, upper = found, middle
        else:
            lower = middle + 1
    return best


def by_unit_vectors(problem: RoundingProblem) -> Certificate:
    """X is a product of as many columns as it has rows, or columns, other than 0  (Lemma A.1)."""
    certificates, tables = list[Certificate](), level_values(problem)
    for transpose in (False, True):
        oriented = problem.transposed if transpose else problem
        for table in tables:
            X = table[oriented.levels]
            nonzero = np.flatnonzero(X.any(axis=1))
            W = np.zeros((len(X), nonzero.size))
            W[nonzero, np.arange(nonzero.size)] = 1.0
            reason = f"Y has {nonzero.size} rows, or columns, that differ and can't all be 0."
            certificate = oriented.certify(W, X[nonzero].T, reason)
            if certificate is None:
                raise ParameterError(
                    "must leave room for numbers between, below and above them.", found=f"{problem.thresholds}",
                    remedy="Use numbers of moderate size.", parameter="thresholds",
                )  # fmt: skip
            certificates.append(certificate.transposed if transpose else certificate)
    return min(certificates, key=lambda one: one.rank)


def level_values(problem: RoundingProblem) -> list[Array]:
    """Tables of numbers that round to the levels 0..N, some with 0 among them."""
    if problem.thresholds is None:
        present, counts = np.unique(problem.levels, return_counts=True)
        lines = [*problem.levels, *problem.levels.T]
        constant = [line[0] for line in lines if np.ptp(line) == 0]
        zeros = dict.fromkeys([*constant, *present[np.argsort(-counts)][:_MAX_ZERO_LEVELS]])
        return [np.arange(problem.n_thresholds + 1.0) - zero for zero in zeros]
    tau = problem.thresholds
    reach = np.diff(tau).mean() if tau.size > 1 else np.abs(tau).max(initial=0.0) or 1.0
    with np.errstate(over="ignore"):
        edges = np.concatenate([tau[:1] - 2 * reach, tau, tau[-1:] + 2 * reach])
        between = np.maximum(edges[:-1] / 2 + edges[1:] / 2, np.nextafter(edges[:-1], np.inf))
    with_zero = between.copy()
    with_zero[grf(0.0, tau)] = 0.0
    return [between] if problem.strict else [with_zero, between]


def by_plane(problem: RoundingProblem, lower: int, upper: int) -> Iterator[Certificate]:
    """Signs of products of vectors in the plane, where the threshold is 0."""
    at_zero = problem.thresholds is not None and np.array_equal(problem.thresholds, [0.0])
    if at_zero and lower <= 2 and (certificate := decide_plane(problem)[0]):
        yield certificate


def by_truncation(problem: RoundingProblem, lower: int, upper: int) -> Iterator[Certificate]:
    """Truncated SVD of numbers for the levels: all singular vectors give the linear rank, fewer may do."""
    on_threshold = problem.thresholds is not None and 0.0 in problem.thresholds  # where rounding errors decide
    for table in level_values(problem)[-1 if on_threshold else 0 :]:
        left, values, right = np.linalg.svd(table[problem.levels], full_matrices=False)

        def attempt(rank: int, W: Array = left * values, H: Array = right.T) -> Certificate | None:
            reason = f"{rank} singular vectors of numbers for the levels round to Y."
            return problem.certify(np.ascontiguousarray(W[:, :rank]), np.ascontiguousarray(H[:, :rank]), reason)

        if certificate := bisect_rank(lower, upper, attempt):
            upper = certificate.rank
            yield certificate


def by_shift(problem: RoundingProblem, lower: int, upper: int) -> Iterator[Certificate]:
    """k X + c rounds to Y with thresholds k tau + c: one column more than with free thresholds (Lemmas 2.1.1, 2.1.2).

    Two thresholds at most can be moved to given places.
    """
    if problem.thresholds is None or problem.thresholds.size not in (1, 2):
        return
    free = replace(problem, thresholds=None)
    solution = decide_outer_product(free)[0] or best_construction(free, max(lower - 1, 1))
    tau, own = problem.thresholds, solution.thresholds
    if own.size < tau.size:  # the highest level is not there: its threshold may be any number above all others
        above = 1.0 + max(float((solution.W @ solution.H.T).max()), float(own.max(initial=-np.inf)))
        own = np.append(own, above)
    scale = np.ptp(tau) / np.ptp(own) if tau.size == 2 else 1.0
    W = np.column_stack([scale * solution.W, np.full(len(solution.W), tau[0] - scale * own[0])])
    H = np.column_stack([solution.H, np.ones(len(solution.H))])
    reason = f"{solution.reason[:-1]} with other thresholds, and one column more shifts them."
    if certificate := problem.certify(W, H, reason):
        yield certificate


# Binary matrices whose rows are runs.


def by_runs(problem: RoundingProblem, lower: int, upper: int) -> Iterator[Certificate]:
    """Ones side by side, or zeros side by side, in some order of the columns (or rows): two columns of factors do."""
    present = np.unique(problem.levels)
    if present.size != 2 or (problem.thresholds is not None and problem.thresholds.size != 1):
        return
    tau = 1.0 if problem.thresholds is None else float(problem.thresholds[0])
    for transpose in (False, True):
        oriented = problem.transposed if transpose else problem
        ones = oriented.levels == present[1]
        for sign, binary, symbol in ((1, ones, "ones"), (-1, ~ones, "zeros")):
            factors = run_factors(binary, sign * tau)
            reason = f"The {symbol} of Y are runs, in some order."
            if factors and (certificate := oriented.certify(sign * factors[0], factors[1], reason)):
                yield certificate.transposed if transpose else certificate


def run_factors(binary: Array, threshold: float) -> tuple[Array, Array] | None:
    """W and H whose product is above the threshold where `binary` is true; None if no order is found.

    With x_j > 0 rising, and a < b, neither of them an x_j, the run of all x_j between a and b is where

        (x - a)(b - x) > 0,   that is   (a + b) x - x^2 > a b,   that is   -x - a b / x > -(a + b)

    The second form has a positive threshold after division by a b, the third a negative one after division by a + b;
    with threshold 0 all three terms are needed.
    """
    count = binary.shape[1]
    for order in _column_orders(binary):
        ordered = binary[:, order]
        start = np.where(ordered.any(axis=1), ordered.argmax(axis=1), 0)
        stop = start + ordered.sum(axis=1)
        runs = (np.arange(count) >= start[:, None]) & (np.arange(count) < stop[:, None])
        if not np.array_equal(runs, ordered):
            continue
        x, a, b = (np.arange(count) + 1) / count, (start + 0.5) / count, (stop + 0.5) / count
        one = np.ones_like(a)
        if threshold > 0:
            W, curve = np.column_stack([a + b, -one]) / (a * b)[:, None] * threshold, np.column_stack([x, x**2])
        elif threshold < 0:
            W, curve = np.column_stack([one, a * b]) / (a + b)[:, None] * threshold, np.column_stack([x, 1 / x])
        else:
            W, curve = np.column_stack([-a * b, a + b, -one]), np.column_stack([np.ones_like(x), x, x**2])
        H = np.empty_like(curve)
        H[order] = curve
        return W, H
    return None


def _column_orders(binary: Array) -> Iterator[Array]:
    """Orders of the columns in which rows may be runs: as they are, and by Fiedler vectors.

    Columns that share many ones are near each other in the eigenvector of the second smallest eigenvalue of the
    Laplacian of their numbers of shared ones. Where rows can be runs and the columns are connected, it orders them so
    (Atkins, Boman & Hendrickson, "A spectral algorithm for seriation and the consecutive ones problem", 1998).
    """
    yield np.arange(binary.shape[1])
    shared = binary.T.astype(float) @ binary
    _, component_of = connected_components(csr_array(shared), directed=False)
    orders = []
    for component in np.unique(component_of):
        columns = np.flatnonzero(component_of == component)
        if columns.size >= 3:
            weights = shared[np.ix_(columns, columns)]
            _, vectors = np.linalg.eigh(np.diag(weights.sum(axis=1)) - weights)
            columns = columns[np.argsort(vectors[:, 1])]
        orders.append(columns)
    yield np.concatenate(orders)


# Search.


def search_factors(problem: RoundingProblem, rank: int, n_init: int, random: RandomState) -> Certificate | None:
    """A certificate of that rank from one of `n_init` starts; None if no start leads to one."""
    for attempt in range(n_init):
        loss, scale = HingeLoss.of(problem, attempt)
        W, H, _ = loss.unpack(loss.minimize(loss.start(rank, attempt, random)))
        if certificate := problem.certify(W * scale, H, f"A search found factors of {rank} columns."):
            return certificate
    return None


@dataclass(frozen=True)
class HingeLoss:
    """The sum over cells of  (tau_y + e - x)_+^2 / 2 + (x + e - tau_{y+1})_+^2 / 2,  in units of the margin e.

    The Round loss (section 3.2), squared, without bounds for the lowest and the highest level: 0 where all cells are
    inside by a margin e. The order of free thresholds follows from that of the cells. Levels are 0..N, all of them
    present if the thresholds are free (None); given thresholds are about 1 in size. Cells may have `weights`.
    """

    levels: Array
    thresholds: Array | None
    margin: float
    n_thresholds: int
    weights: Array | None = None

    @classmethod
    def of(cls, problem: RoundingProblem, attempt: int) -> tuple["HingeLoss", float]:
        """The loss with thresholds of about 1, and the number they were divided by.

        Of one free threshold nothing matters but its sign (Lemma 2.1.2). Free to move, it is drawn to 0, where it is
        good for little: so it is free in one start, 1 in the next and -1 in the one after.
        """
        levels, tau, scale = problem.levels, problem.thresholds, 1.0
        if tau is not None:
            scale = float(np.abs(tau).max()) or 1.0
            tau = tau / scale
        else:
            present, codes = np.unique(levels, return_inverse=True)
            levels = codes.reshape(levels.shape)
            if present.size != 2 or not attempt % 3:
                return cls(levels, None, 1.0, present.size - 1), 1.0
            tau = np.array([1.0 if attempt % 3 == 1 else -1.0])
        return cls(levels, tau, float(np.diff(tau).min()) / 4 if tau.size > 1 else 0.5, tau.size), scale

    def unpack(self, vector: Array) -> tuple[Array, Array, Array]:
        """W, H and the thresholds from the one vector that the optimizer moves."""
        n, m = self.levels.shape
        n_free = self.n_thresholds if self.thresholds is None else 0
        rank = (vector.size - n_free) // (n + m)
        W, H, tau = np.split(vector, [n * rank, (n + m) * rank])
        return W.reshape(n, rank), H.reshape(m, rank), tau if self.thresholds is None else self.thresholds

    def __call__(self, vector: Array, margin: float) -> tuple[float, Array]:
        """The loss and its gradient."""
        W, H, tau = self.unpack(vector)
        X = W @ H.T
        edges = np.concatenate([[-np.inf], tau, [np.inf]])
        too_low = np.maximum(edges[self.levels] + margin - X, 0.0)
        too_high = np.maximum(X + margin - edges[self.levels + 1], 0.0)
        if self.weights is not None:
            too_low, too_high = self.weights * too_low, self.weights * too_high
        loss = 0.5 * float(np.sum(too_low**2) + np.sum(too_high**2))
        by_x = too_high - too_low
        push_up, push_down = (
            np.bincount(self.levels.reshape(-1), each.reshape(-1), tau.size + 1) for each in (too_low, too_high)
        )
        by_tau = (push_up[1:] - push_down[:-1])[: vector.size - W.size - H.size]
        gradient = np.concatenate([(by_x @ H).reshape(-1), (by_x.T @ W).reshape(-1), by_tau])
        return loss / margin**2, gradient / margin**2

    def start(self, rank: int, attempt: int, random: RandomState) -> Array:
        """First the singular value decomposition of the levels, then random factors."""
        n, m = self.levels.shape
        if attempt == 0:
            zero = self.levels.mean()
            left, values, right = np.linalg.svd(self.levels - zero, full_matrices=False)
            roots = np.sqrt(values[:rank])
            factors = np.concatenate([(left[:, :rank] * roots).reshape(-1), (right[:rank].T * roots).reshape(-1)])
        else:
            zero = random.randint(self.n_thresholds + 1)  # its level: thresholds of both signs are tried
            factors = random.standard_normal((n + m) * rank)
        tau = np.arange(self.n_thresholds) + 0.5 - zero if self.thresholds is None else np.empty(0)
        return np.concatenate([factors, tau])

    def minimize(self, vector: Array) -> Array:
        """Minimize with L-BFGS. Below half a squared margin all cells have their levels, and it stops."""

        def stop(intermediate_result: OptimizeResult) -> None:
            if intermediate_result.fun < 0.5:
                raise StopIteration

        for share in _MARGINS:
            result = minimize(
                self, vector, args=(share * self.margin,), jac=True, method="L-BFGS-B", callback=stop,
                options={"maxiter": _MAX_ITER, "maxcor": _MEMORY},
            )  # fmt: skip
            vector = result.x
            if result.fun < 0.5:
                break
        return vector
