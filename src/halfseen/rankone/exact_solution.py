"""Best rank-one factorization under the Kullback-Leibler divergence, for any pattern of missing cells.

    cost(w, h) = sum over cells of phi_ij w_i h_j  -  sum_i r_i log w_i  -  sum_j c_j log h_j  +  a constant

depends on the data only through their row sums r and column sums c over observed cells, and is convex in
(log w, log h). Its stationary point is

    w_i = r_i / sum_j phi_ij h_j,     h_j = c_j / sum_i phi_ij w_i

that is, the one-body expectation parameters are conserved (section 2.1.3). Alternating the two equations is iterative
proportional fitting. With few missing cells both denominators are the sum over all cells minus that over the missing
ones, so that a sweep costs O(rows + columns + missing cells). The same holds for tensors: one factor per axis.

Where most cells are observed, a few sweeps converge. Where few cells connect rows and columns they can take thousands:
then a truncated Newton method takes over, whose products with the Hessian cost as much as a sweep.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import reduce

import numpy as np

from halfseen.arrays import Array
from halfseen.engines.threads import Threads
from halfseen.rankone.components import Components
from halfseen.rankone.marginals import Marginals, ignore_overflow, kron, safe_divide, sum_along_axes

#: After this many sweeps, Newton's method takes over if more than `_MANY_SWEEPS` would follow at the present rate.
_MIN_SWEEPS = 10
_MANY_SWEEPS = 60
#: Sweeps after a Newton step, to measure the remaining error; and the number of steps in a row without progress after
#: which sweeps take over again: conjugate gradients miss rows that weigh less than the rounding errors of others.
_SWEEPS_PER_STEP = 3
_MAX_FAILURES = 3
_NO_STEP = 1e-9
#: Relative changes below `_NEAR` mean that bounds hold up to a half more; from `_FAR` on, that no rate can be inferred:
#: a dominant entry may have reached its place. Changes below `_NO_CHANGE` are rounding, and have no rate.
_NEAR = 0.1
_FAR = 0.5
_NO_CHANGE = 1e-13
_ROUNDING = 1e-15
#: Sums with a larger ratio than this may differ by rows or by columns, and need a careful start.
_WIDE_RANGE = 1e100
#: Safety factor: both factors contribute to the error of the product, and rates are only measured.
_SAFETY = 4.0

#: Newton's method: relative tolerance and maximum number of iterations of conjugate gradients (the next step corrects
#: the rest), largest change of a logarithm, number of halvings of a step, relative rounding error of sums.
_CG_TOL = 1e-3
_CG_MAX_ITER = 2000
_MAX_LOG_STEP = 4.0
_MAX_HALVINGS = 20
_SUM_ROUNDING = 1e-13

Factors = tuple[Array, ...]


@dataclass(frozen=True)
class Step:
    """Factors after an iteration, cost without its constant, estimated relative distance from the best factors."""

    factors: Factors
    objective: float
    distance: float


def exact(components: Components, threads: Threads, tol: float) -> Iterator[Step]:
    """Iterate by sweeps or, where these are slow, Newton's method, until the estimated distance is at most `tol`."""
    marginals, tol = components.marginals, tol / _SAFETY
    with ignore_overflow():
        factors = initial_factors(marginals, threads)
    estimate_error = error_estimator()

    def swept(factors: Factors) -> tuple[Factors, float, float]:
        """Factors after a sweep, estimated error, estimated rate."""
        new, rate_bound = sweep(factors, marginals, threads)
        return new, *estimate_error(max_relative_change(factors[1:], new[1:]), rate_bound)

    sweeps, use_newton, failures = 0, False, 0
    while True:
        with ignore_overflow():
            if use_newton:
                factors, log_step = newton_step(factors, components, threads)
                estimate_error = error_estimator()
                for _ in range(_SWEEPS_PER_STEP):
                    factors, error, _ = swept(factors)
                error = max(error, log_step**2)  # entries that sweeps hardly move may be far from the solution
                failures = failures + 1 if log_step < _NO_STEP else 0
                use_newton = failures < _MAX_FAILURES
            else:
                factors, error, rate = swept(factors)
                sweeps += 1
                is_slow = sweeps >= _MIN_SWEEPS and _sweeps_left(error, rate, tol) > _MANY_SWEEPS
                use_newton = failures < _MAX_FAILURES and is_slow
            if error <= tol:  # the first factor is half a sweep behind the others
                factors = (first_factor(factors[1:], marginals, threads), *factors[1:])
            step = Step(factors, objective(factors, marginals, marginals.total), _SAFETY * error)
        yield step
        if error <= tol:
            return


def sweep(factors: Factors, marginals: Marginals, threads: Threads) -> tuple[Factors, float]:
    """Update every factor once, each with the newest of the others; also return a bound on the rate of convergence."""
    h = kron(factors[1:])
    row_exposures = marginals.weights.matvec(h, threads)
    w = safe_divide(marginals.sums[0], row_exposures)
    column_exposures = marginals.weights.rmatvec(w, threads)
    inner = list(factors[1:])
    for axis, sums in enumerate(marginals.sums[1:]):
        exposures = column_exposures.reshape(marginals.inner_shape)
        for other in reversed(range(len(inner))):
            if other != axis:
                exposures = np.tensordot(exposures, inner[other], axes=(other, 0))
        inner[axis] = safe_divide(sums, exposures)
    if len(inner) > 1 or not marginals.binary:
        return (w, *inner), 1.0
    return (w, *inner), _rate_bound(row_exposures[w > 0] / h.sum(), column_exposures[inner[0] > 0] / w.sum())


def _rate_bound(row_shares: Array, column_shares: Array) -> float:
    """Bound on the rate of convergence, from the share of the whole fit that each row and each column observes.

    Near the solution a sweep shrinks errors by s^2, where s is the second singular value of the fit divided by the
    roots of its sums. Without missing cells the matrix has rank one and s = 0; with them, s is at most the norm of what
    they take away, and s^2 at most (largest missing / observed in a row) * (the same in a column), by Schur's test.
    """
    lowest = [min(shares.min(initial=1.0), 1.0) for shares in (row_shares, column_shares)]
    of_rows, of_columns = (max(float(1.0 / share - 1.0), _ROUNDING) for share in lowest)
    return min(of_rows * of_columns, 1.0)


def first_factor(inner: Factors, marginals: Marginals, threads: Threads) -> Array:
    """Best first factor, given the others."""
    return safe_divide(marginals.sums[0], marginals.weights.matvec(kron(inner), threads))


def solve_rows(marginals: Marginals, h: Array, threads: Threads) -> Array:
    """Fold new rows in: w_i = r_i / sum_j phi_ij h_j, and NaN where the data do not determine it."""
    exposures = marginals.weights.matvec(h, threads)
    undetermined = marginals.is_empty(0) | ((exposures == 0) & (marginals.sums[0] > 0))
    return marginals.expand_factor(np.where(undetermined, np.nan, safe_divide(marginals.sums[0], exposures)))


def objective(factors: Factors, marginals: Marginals, mass: float) -> float:
    """Cost without the sum of y log y - y, which is constant, and without `merging_cost`; `mass` is that of the fit."""
    pairs = zip(marginals.sums, factors, strict=True)
    logs = ((sums, np.log(factor, out=np.zeros_like(factor), where=sums > 0)) for sums, factor in pairs)
    return mass - sum(float((sums * log).sum()) for sums, log in logs)


def initial_factors(marginals: Marginals, threads: Threads) -> Factors:
    """Start each axis but the first at its means, as if all rows were equal.

    Where sums span so many powers of ten that factors could underflow or overflow, start at 1 instead if that is better
    after two sweeps. (The first factor of a start is not used.)
    """
    inner = zip(marginals.sums[1:], marginals.counts[1:], strict=True)
    means = [sums / np.maximum(counts, 1) for sums, counts in inner]
    by_means = (np.empty(0), *map(_center, means))
    low, high = marginals.row_sum_range
    positive = [mean[mean > 0] for mean in means if mean.any()]
    if high <= low * _WIDE_RANGE and all(values.max() <= values.min() * _WIDE_RANGE for values in positive):
        return by_means
    starts: list[tuple[float, Factors]] = []
    for factors in (by_means, (np.empty(0), *((mean > 0).astype(np.float64) for mean in means))):
        for _ in range(2):
            factors, _ = sweep(factors, marginals, threads)
            factors = (factors[0], *map(_center, factors[1:]))  # around 1, so that the first factor is near its sums
        first = first_factor(factors[1:], marginals, threads)
        cost = objective((first, *factors[1:]), marginals, marginals.total)
        starts.append((cost if np.isfinite(cost) else np.inf, factors))
    return min(starts, key=lambda start: start[0])[1]


def _center(values: Array) -> Array:
    """Divide by the geometric mean of the smallest and the largest positive value."""
    positive = values[values > 0]
    middle = 0.5 * (np.log(positive.min()) + np.log(positive.max())) if positive.size else 0.0
    half = np.exp(-middle / 2)  # applied twice, because the whole may overflow
    return values * half * half


def max_relative_change(old: Factors, new: Factors) -> float:
    """Largest change of any entry, relative to its old value."""
    changes = [np.abs(after[before > 0] / before[before > 0] - 1.0) for before, after in zip(old, new, strict=True)]
    return max((float(change.max()) for change in changes if change.size), default=0.0)


def error_estimator() -> Callable[..., tuple[float, float]]:
    """Make a function that estimates the distance to the limit, and the rate of convergence, from successive changes.

    Changes that shrink by a rate q each time add up to change * q / (1 - q) from now on: much less than the last change
    if convergence is fast, much more if it is slow. Of the last two rates the slower one counts, unless it exceeds a
    bound.
    """
    changes, rates = [np.inf], [1.0]

    def estimate(change: float, rate_bound: float = 1.0) -> tuple[float, float]:
        rates.append(change / changes[-1] if 0 < changes[-1] < _FAR else 1.0)
        changes.append(change)
        rate = max(rates[-2:])
        if change < _NEAR:  # elsewhere the bound is that of other factors than the limit
            rate = min(rate, 1.5 * rate_bound)
        if change <= _NO_CHANGE:
            return change, rate
        return (change * rate / (1.0 - rate) if rate < 1.0 else np.inf), rate

    return estimate


def _sweeps_left(error: float, rate: float, tol: float) -> float:
    """Number of sweeps at this rate until the error is at most `tol`."""
    if not 0.0 < rate < 1.0 or not np.isfinite(error) or tol <= 0:
        return np.inf
    return float(np.log(tol / error) / np.log(rate))


def newton_step(factors: Factors, components: Components, threads: Threads) -> tuple[Factors, float]:
    """Factors after a truncated Newton step on their logarithms, and the largest change of these (0: only rounding).

    With p = phi_ij w_i h_j / total, the gradient of the cost along an axis is the sums of p minus those of the data.
    The Hessian maps a direction (d_0, d_1, ...) to the sums of p * (d_0[i] + d_1[j] + ...) along each axis.
    """
    model = _LogModel(factors, components, threads)
    diagonal = np.where(model.active, model.sums, 0.0)
    direction = conjugate_gradients(model.hessian_product, -model.gradient, diagonal)
    direction = _remove_drift(direction, model.sums, components)
    largest = np.zeros(components.count)
    np.maximum.at(largest, model.component, np.abs(direction))
    sizes = _MAX_LOG_STEP / np.maximum(largest, _MAX_LOG_STEP)
    for halvings in range(_MAX_HALVINGS + 1):  # a separate step size for each component
        step = sizes[model.component] * direction
        moved = model.move(step)
        increases = model.cost_increase(moved, step) > 1e-15
        if not increases.any():
            break
        sizes = np.where(increases, sizes / 2 if halvings < _MAX_HALVINGS - 1 else 0.0, sizes)
    return moved, float(np.abs(step).max())


class _LogModel:
    """Cost around given factors as a function of their logarithms, all axes concatenated into one vector.

    Every component is normalized to a total of 1, so that small ones are solved as well as large ones.
    """

    def __init__(self, factors: Factors, components: Components, threads: Threads) -> None:
        marginals, labels = components.marginals, components.labels
        self.factors, self.inner_shape = factors, marginals.inner_shape
        self._weights, self._threads, self._count = marginals.weights, threads, components.count
        self._splits = np.cumsum([factor.size for factor in factors])[:-1]
        inside = labels[0] >= 0
        totals = np.bincount(labels[0][inside], marginals.sums[0][inside], minlength=self._count)
        scales = [np.where(label >= 0, totals[label], 1.0) for label in labels]
        self._targets = np.concatenate([sums / scale for sums, scale in zip(marginals.sums, scales, strict=True)])
        self.w = factors[0] / scales[0]
        self.h = kron(factors[1:])
        self._rows = self.w * self._weights.matvec(self.h, threads)
        self._columns = self.h * self._weights.rmatvec(self.w, threads)
        self.sums = np.concatenate([self._rows, *sum_along_axes(self._columns.reshape(self.inner_shape))])
        self.active = self._targets > 0
        self.component = np.where(self.active, np.concatenate(labels), 0)
        difference = self.sums - self._targets
        # Rounding errors of large rows would drown the gradient of small ones.
        significant = np.abs(difference) > _SUM_ROUNDING * self._targets
        self.gradient = np.where(self.active & significant, difference, 0.0)

    def hessian_product(self, direction: Array) -> Array:
        """Hessian times a direction."""
        first, *others = np.split(direction, self._splits)
        inner = reduce(lambda left, right: np.add.outer(left, right).reshape(-1), others)
        by_rows = self.w * self._product(self._weights.matvec, self.h * inner)
        by_columns = self._columns * inner + self.h * self._product(self._weights.rmatvec, self.w * first)
        rows = self.sums[: first.size] * first + by_rows
        return np.concatenate([rows, *sum_along_axes(by_columns.reshape(self.inner_shape))])

    def _product(self, product: Callable[[Array, Threads], Array], vector: Array) -> Array:
        """Product with a vector of any sign; those of the weights are exact for non-negative vectors only."""
        positive, negative = (product(np.maximum(part, 0.0), self._threads) for part in (vector, -vector))
        return positive - negative

    def move(self, step: Array) -> Factors:
        """Factors after a step of their logarithms."""
        steps = np.split(step, self._splits)
        return tuple(factor * np.exp(by) for factor, by in zip(self.factors, steps, strict=True))

    def cost_increase(self, moved: Factors, step: Array) -> Array:
        """Increase of the cost of each component after a step, relative to its total."""
        rows = self.w * np.exp(step[: self.w.size]) * self._weights.matvec(kron(moved[1:]), self._threads)
        mass = np.bincount(self.component[: self.w.size], rows - self._rows, minlength=self._count)
        return mass - np.bincount(self.component, self._targets * step, minlength=self._count)


def _remove_drift(direction: Array, mass: Array, components: Components) -> Array:
    """Remove what only rescales the factors of a component against each other, which is due to rounding."""
    labels, count = components.labels, components.count
    splits = np.cumsum([label.size for label in labels])[:-1]
    first, *others = np.split(direction.copy(), splits)
    inside = labels[0] >= 0
    for along, weight, label in zip(others, np.split(mass, splits)[1:], labels[1:], strict=True):
        active = label >= 0
        masses = np.bincount(label[active], weight[active], minlength=count)
        drift = np.bincount(label[active], (weight * along)[active], minlength=count) / masses
        along[active] -= drift[label[active]]
        first[inside] += drift[labels[0][inside]]
    return np.concatenate([first, *others])


def conjugate_gradients(product: Callable[[Array], Array], right: Array, diagonal: Array) -> Array:
    """Solve product(x) = right, preconditioned by the diagonal; x is 0 where the diagonal is."""

    def precondition(vector: Array) -> Array:
        return np.divide(vector, diagonal, out=np.zeros_like(vector), where=diagonal > 0)

    solution = np.zeros_like(right)
    residual = right.copy()
    direction = scaled = precondition(residual)
    size = float(residual @ scaled)
    enough = _CG_TOL**2 * size
    for _ in range(_CG_MAX_ITER):
        if size <= enough:
            break
        image = product(direction)
        curvature = float(direction @ image)
        if curvature <= 0:  # flat up to rounding: the rest is indistinguishable from the free scale
            break
        step = size / curvature
        solution += step * direction
        residual -= step * image
        scaled = precondition(residual)
        previous, size = size, float(residual @ scaled)
        direction = scaled + size / previous * direction
    return solution
