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

Factors = tuple[Array, ...]


@dataclass(frozen=True)
class Step:
    """The factors after an update, the objective there, and how far from the best they still are, as a part of them."""

    factors: Factors
    objective: float
    distance: float


def exact(parts: Parts, threads: Threads, tol: float) -> Iterator[Step]:
    """Ever better factors, until their distance from the best is at most `tol`."""
    marginals = parts.marginals
    factors = start(marginals)
    distance_after = settling()
    sweeps, slow = 0, False
    while True:
        with unbounded():
            if slow:
                moved, distance = newton_step(factors, parts, threads)
                factors, _ = sweep(moved, marginals, threads)
            else:
                previous, (factors, slowest) = factors, sweep(factors, marginals, threads)
                distance, rate = distance_after(largest_change(previous[1:], factors[1:]), slowest)
                sweeps += 1
                slow = sweeps >= _PATIENCE and _sweeps_left(distance, rate, tol) > _MANY_SWEEPS
            if distance <= tol:  # the first factor is half a sweep behind the others
                factors = (first_given(factors[1:], marginals, threads), *factors[1:])
            step = Step(factors, objective(factors, marginals, marginals.total), distance)
        yield step
        if distance <= tol:
            return


def unbounded() -> np.errstate:
    """Numbers may grow or shrink beyond all bounds without a warning: the status of a run tells of it."""
    return np.errstate(divide="ignore", over="ignore", under="ignore", invalid="ignore")


def start(marginals: Marginals) -> Factors:
    """Each axis but the first by its means; of a size in the middle of all numbers, so that none vanishes."""
    firsts = []
    for sums, counts in zip(marginals.sums[1:], marginals.counts[1:], strict=True):
        means = sums / np.maximum(counts, 1)
        lives = means > 0
        middle = 0.5 * (np.log(means[lives].min()) + np.log(means[lives].max())) if lives.any() else 0.0
        firsts.append(means * np.exp(-middle / 2) * np.exp(-middle / 2))
    return np.empty(0), *firsts


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
    hidden = (1.0 / min(rows.min(initial=1.0), 1.0) - 1.0) * (1.0 / min(columns.min(initial=1.0), 1.0) - 1.0)
    return min(float(hidden), 1.0)


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
    return np.divide(sums, exposures, out=np.zeros_like(sums), where=(sums > 0) & (exposures > 0))


def objective(factors: Factors, marginals: Marginals, mass: float) -> float:
    """The cost but for what no factor can change, a constant of the data; `mass` is what the fit sums to."""
    pairs = zip(marginals.sums, factors, strict=True)
    return mass - sum(
        float((sums * np.log(factor, out=np.zeros_like(factor), where=sums > 0)).sum()) for sums, factor in pairs
    )


def largest_change(old: Factors, new: Factors) -> float:
    """By how much any entry moved, as a part of what it was."""
    changes = [np.abs(after[before > 0] / before[before > 0] - 1.0) for before, after in zip(old, new, strict=True)]
    return max((float(change.max()) for change in changes if change.size), default=0.0)


def settling() -> Callable[..., tuple[float, float]]:
    """Tells from the changes of one update after another how far away the end is, and at which rate it comes near.

    Changes that shrink by a rate q each time add up to change * q / (1 - q) from now on: much less than the last
    change where it is fast, much more where it is slow. Of the last two rates the slower one is believed, unless it is
    slower than can be.
    """
    changes, rates = [np.inf], [1.0]

    def after(change: float, slowest: float = 1.0) -> tuple[float, float]:
        rates.append(change / changes[-1] if 0 < changes[-1] < np.inf else 1.0)
        changes.append(change)
        rate = min(max(rates[-2:]), slowest)
        if change == 0.0:
            return 0.0, rate
        return (change * rate / (1.0 - rate) if rate < 1.0 else np.inf), rate

    return after


def _sweeps_left(distance: float, rate: float, tol: float) -> float:
    if not 0.0 < rate < 1.0 or not np.isfinite(distance) or tol <= 0:
        return np.inf
    return float(np.log(tol / distance) / np.log(rate))
