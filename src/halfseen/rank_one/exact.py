"""The best rank-one factorization under the Kullback-Leibler divergence, whatever the holes.

    cost(w, h) = sum over cells of phi_ij w_i h_j  -  sum_i r_i log w_i  -  sum_j c_j log h_j  +  a constant

depends on the data only through their row sums r and column sums c over seen cells, and is convex in (log w, log h).
Its one stationary point is

    w_i = r_i / sum_j phi_ij h_j,     h_j = c_j / sum_i phi_ij w_i

or in the paper's words: the one-body expectation parameters are conserved (section 2.1.3). Both sums are the sum over
everything less the holes, so that a sweep costs O(rows + columns + holes). The same holds for tensors: one factor an
axis, the sums of what was seen along each.

Sweeps settle in a handful where most is seen. Where few cells hold rows and columns together they can take thousands:
then Newton's method takes over, its linear systems solved by conjugate gradients, a product at the price of a sweep.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from halfseen.arrays import Array
from halfseen.engines.threads import Threads
from halfseen.rank_one.marginals import Marginals, unfolded
from halfseen.rank_one.newton import newton_step
from halfseen.rank_one.parts import Parts

#: Sweeps after which, at the rate seen so far, Newton's method is asked for if still more than so many would follow.
_PATIENCE = 10
_MANY_SWEEPS = 60
#: Sweeps after a step of Newton's that tell how much is left; as many steps in a row that lead nowhere end it, though
#: something is left: conjugate gradients do not see rows that weigh less than the rounding of others. Sweeps do.
_SWEEPS_TO_TELL = 3
_MOST_FAILURES = 3
_NO_STEP = 1e-9
#: Changes below this leave the factors near enough to their end for bounds to hold there, up to a half more.
_NEAR = 0.1
#: Changes from this on, as a part of what was, tell no rate: they may be those of a giant that has found its place.
_FAR = 0.5
_ROUNDING = 1e-15
#: Sums that differ by more than this may do so by rows or by columns, and want a careful start.
_WIDE = 1e100
#: Both factors have a part in what the product is off by, and rates are only measured.
_CAUTION = 4.0
#: Changes below this are rounding, and have no rate.
_NO_CHANGE = 1e-13

Factors = tuple[Array, ...]
#: From a change and a bound on the rate to the distance left and the rate believed.
Settling = Callable[..., tuple[float, float]]


@dataclass(frozen=True)
class Step:
    """The factors after an update, the objective there, and how far from the best they still are, as a part of them."""

    factors: Factors
    objective: float
    distance: float


def exact(parts: Parts, threads: Threads, tol: float) -> Iterator[Step]:
    """Ever better factors, until their distance from the best is at most `tol`."""
    marginals, tol = parts.marginals, tol / _CAUTION
    with unbounded():
        factors, distance = start(marginals, threads), np.inf
    distance_after = settling()
    sweeps, slow, failures = 0, False, 0
    while True:
        with unbounded():
            if slow:
                factors, moved = newton_step(factors, parts, threads)
                distance_after = settling()
                for _ in range(_SWEEPS_TO_TELL):
                    factors, distance, _ = _swept(factors, marginals, threads, distance_after)
                distance = max(distance, moved**2)  # what a sweep can't move may be far from its place
                failures = failures + 1 if moved < _NO_STEP else 0
                slow = failures < _MOST_FAILURES
            else:
                factors, distance, rate = _swept(factors, marginals, threads, distance_after)
                sweeps += 1
                slow = (
                    failures < _MOST_FAILURES
                    and sweeps >= _PATIENCE
                    and _sweeps_left(distance, rate, tol) > _MANY_SWEEPS
                )
            if distance <= tol:  # the first factor is half a sweep behind the others
                factors = (first_given(factors[1:], marginals, threads), *factors[1:])
            step = Step(factors, objective(factors, marginals, marginals.total), _CAUTION * distance)
        yield step
        if distance <= tol:
            return


def _swept(
    factors: Factors, marginals: Marginals, threads: Threads, distance_after: Settling
) -> tuple[Factors, float, float]:
    """The factors after a sweep, how far from their end they are, and the rate at which they come nearer."""
    new, slowest = sweep(factors, marginals, threads)
    return new, *distance_after(largest_change(factors[1:], new[1:]), slowest)


def unbounded() -> np.errstate:
    """Numbers may grow or shrink beyond all bounds without a warning: the status of a run tells of it."""
    return np.errstate(divide="ignore", over="ignore", under="ignore", invalid="ignore")


def start(marginals: Marginals, threads: Threads) -> Factors:
    """Each axis but the first by its means, as if all rows were alike; or all at 1, as if they were not.

    Where sums span so many powers of ten that factors could vanish or have no bounds, both are tried.
    """
    means = [
        sums / np.maximum(counts, 1) for sums, counts in zip(marginals.sums[1:], marginals.counts[1:], strict=True)
    ]
    alike = (np.empty(0), *map(_centred, means))
    lowest, highest = marginals.bounds_of_rows
    if highest <= lowest * _WIDE and all(_is_narrow(mean) for mean in means):
        return alike
    flat = (np.empty(0), *((mean > 0).astype(np.float64) for mean in means))
    tried = [_begun(factors, marginals, threads) for factors in (alike, flat)]
    return min(tried, key=lambda one: one[0])[1]


def _begun(factors: Factors, marginals: Marginals, threads: Threads) -> tuple[float, Factors]:
    """A start after two sweeps, and its objective; it is kept around 1, so that the first factor is near its sums."""
    for _ in range(2):
        factors, _ = sweep(factors, marginals, threads)
        factors = (factors[0], *map(_centred, factors[1:]))
    first = first_given(factors[1:], marginals, threads)
    found = objective((first, *factors[1:]), marginals, marginals.total)
    return (found if np.isfinite(found) else np.inf), factors


def _centred(means: Array) -> Array:
    """Numbers around 1: those as far above it as others are below."""
    lives = means[means > 0]
    middle = 0.5 * (np.log(lives.min()) + np.log(lives.max())) if lives.size else 0.0
    half = np.exp(-middle / 2)  # in two halves, because the whole may be beyond all numbers
    return means * half * half


def _is_narrow(means: Array) -> bool:
    lives = means[means > 0]
    return bool(lives.size == 0 or lives.max() <= lives.min() * _WIDE)


def sweep(factors: Factors, marginals: Marginals, threads: Threads) -> tuple[Factors, float]:
    """Every factor once, each with the newest of the others, and the slowest rate at which sweeps can settle."""
    exposure, h = marginals.exposure, unfolded(factors[1:])
    seen_by_rows = exposure.of_rows(h, threads)
    w = divided(marginals.sums[0], seen_by_rows)
    seen_by_columns = exposure.of_columns(w, threads)
    weights = seen_by_columns.reshape(marginals.inner_shape)
    inner = list(factors[1:])
    for axis, sums in enumerate(marginals.sums[1:]):
        inner[axis] = divided(sums, contracted(weights, inner, axis))
    if len(inner) > 1 or not marginals.binary:
        return (w, *inner), 1.0
    return (w, *inner), _slowest_rate(seen_by_rows[w > 0] / h.sum(), seen_by_columns[inner[0] > 0] / w.sum())


def _slowest_rate(rows: Array, columns: Array) -> float:
    """A bound on the rate from the share of the whole that each row and each column sees.

    Near the end a sweep shrinks errors by s^2, where s is the second singular value of the fit divided by the roots of
    its sums. Over the rank-one matrix without holes, whose second singular value is 0, it is at most the norm of what
    the holes take away, and s^2 at most (largest hidden / seen in a row) * (the same in a column), by Schur's test.
    """
    hidden = [max(float(1.0 / min(seen.min(initial=1.0), 1.0) - 1.0), _ROUNDING) for seen in (rows, columns)]
    return min(hidden[0] * hidden[1], 1.0)


def first_given(inner: Factors, marginals: Marginals, threads: Threads) -> Array:
    """The first factor that is best for the others."""
    return divided(marginals.sums[0], marginals.exposure.of_rows(unfolded(inner), threads))


def rows_given(marginals: Marginals, h: Array, threads: Threads) -> Array:
    """w of rows whose columns are known: r_i / sum_j phi_ij h_j; NaN where that has no answer."""
    exposures = marginals.exposure.of_rows(h, threads)
    blank = marginals.blank(0) | ((exposures == 0) & (marginals.sums[0] > 0))
    return marginals.each_row(np.where(blank, np.nan, divided(marginals.sums[0], exposures)))


def contracted(weights: Array, factors: list[Array], axis: int) -> Array:
    """Sums of weights times the product of all factors but that of `axis`, for each row of `axis`."""
    for other in reversed(range(len(factors))):
        if other != axis:
            weights = np.tensordot(weights, factors[other], axes=(other, 0))
    return weights


def divided(sums: Array, exposures: Array) -> Array:
    """sums / exposures, and 0 where nothing but zeros was seen, or nothing at all."""
    return np.divide(sums, exposures, out=np.zeros(sums.shape), where=(sums > 0) & (exposures > 0))


def objective(factors: Factors, marginals: Marginals, mass: float) -> float:
    """The cost without the sum of y log y - y, which no factor changes, and `cost_of_merging`; `mass` is the fit's."""
    pairs = zip(marginals.sums, factors, strict=True)
    return mass - sum(
        float((sums * np.log(factor, out=np.zeros_like(factor), where=sums > 0)).sum()) for sums, factor in pairs
    )


def largest_change(old: Factors, new: Factors) -> float:
    """By how much any entry moved, as a part of what it was."""
    changes = [np.abs(after[before > 0] / before[before > 0] - 1.0) for before, after in zip(old, new, strict=True)]
    return max((float(change.max()) for change in changes if change.size), default=0.0)


def settling() -> Settling:
    """Tells from the changes of one update after another how far away the end is, and at which rate it comes near.

    Changes that shrink by a rate q each time add up to change * q / (1 - q) from now on: much less than the last
    change where it is fast, much more where it is slow. Of the last two rates the slower one is believed, unless it is
    slower than can be.
    """
    changes, rates = [np.inf], [1.0]

    def after(change: float, slowest: float = 1.0) -> tuple[float, float]:
        rates.append(change / changes[-1] if 0 < changes[-1] < _FAR else 1.0)
        changes.append(change)
        rate = max(rates[-2:])
        if change < _NEAR:  # else the bound speaks of other factors than those where it will end
            rate = min(rate, 1.5 * slowest)
        if change <= _NO_CHANGE:
            return change, rate
        return (change * rate / (1.0 - rate) if rate < 1.0 else np.inf), rate

    return after


def _sweeps_left(distance: float, rate: float, tol: float) -> float:
    if not 0.0 < rate < 1.0 or not np.isfinite(distance) or tol <= 0:
        return np.inf
    return float(np.log(tol / distance) / np.log(rate))
