"""Sampled couplings by exhaustive sums and plain loops: the truth that the sampler is compared with.

A row's cells are numbered from 0; `comparisons` lists pairs (higher, lower) of them, each time one was said to be at
least the other; `alone` has each cell's comparisons won and lost against others that were not named.
"""

import math
from collections import Counter
from itertools import permutations

import numpy as np
from scipy import stats


def standing(value, answers):
    """The share of the answers below a value, equal ones half, as if there were one more, half below it."""
    below = sum((answer < value) + 0.5 * (answer == value) for answer in answers)
    return (below + 0.5) / (len(answers) + 1)


def log_density(values, answers, mean, precision, trust, comparisons, alone):
    """Of the values of a row's cells, but for a constant; `answers` are those of them that are known."""
    total = -0.5 * sum(p * (x - m) ** 2 for x, m, p in zip(values, mean, precision, strict=True))
    total -= trust * sum(values[high] < values[low] for high, low in comparisons)
    for x, (won, lost) in zip(values, alone, strict=True):
        total += won * math.log(standing(x, answers)) + lost * math.log(1 - standing(x, answers))
    return total


def couplings(answers, log_density_of=None, **how):
    """The probability of every way to hand the answers to the cells, by the values that the cells get.

    `log_density_of(values)` replaces that of independent cells.
    """
    if log_density_of is not None:
        how = {**how, "precision": [0.0] * len(answers)}
    weights = Counter()
    for values in permutations(answers):
        of_values = 0.0 if log_density_of is None else log_density_of(values)
        weights[values] += math.exp(of_values + log_density(values, answers, **how))
    total = sum(weights.values())
    return {values: weight / total for values, weight in weights.items()}


def couplings_with_one_lost(answers, step=0.005, **how):
    """The same when one cell's answer is unknown (None), and the distribution function of its value, as points.

    The unknown value is integrated over by its midpoints.
    """
    mean, precision = how["mean"], how["precision"]
    reach = 9 / math.sqrt(min(precision))
    grid = np.arange(min(mean) - reach, max(mean) + reach, step) + step / 2
    weights, density = Counter(), np.zeros(grid.size)
    for values in permutations([*answers, None]):
        lost = values.index(None)
        at_grid = np.array([_piece(values, lost, point, answers, how) for point in _pieces(answers)])
        piece = np.searchsorted(_breaks(answers), grid)
        here = np.exp(at_grid[piece] - 0.5 * precision[lost] * (grid - mean[lost]) ** 2)
        weights[values] += here.sum()
        density += here
    total = sum(weights.values())
    return {values: weight / total for values, weight in weights.items()}, (grid + step / 2, density.cumsum() / total)


def _breaks(answers):
    return np.unique(answers)


def _pieces(answers):
    """A point between each two neighbouring answers, and one on either side: what is compared does not change there."""
    breaks = _breaks(answers)
    return [breaks[0] - 1, *(breaks[1:] + breaks[:-1]) / 2, breaks[-1] + 1]


def _piece(values, lost, point, answers, how):
    """The log density with an unknown value here, but for its own distance from the mean."""
    filled = [point if x is None else x for x in values]
    own = -0.5 * how["precision"][lost] * (point - how["mean"][lost]) ** 2
    return log_density(filled, answers, **how) - own


def places_of_few(answers, mean, precision, trust, pairs):
    """The probability of every way to lay out few answers among many cells, as tuples of their cells.

    All others are lost; `pairs` are disjoint comparisons (higher, lower). What is lost is normal, and integrated over:
    a pair of which a share is violated weighs 1 - share (1 - exp(-trust)).
    """
    weights = {}
    for cells in permutations(range(len(mean)), len(answers)):
        held = dict(zip(cells, answers, strict=True))
        weight = math.prod(stats.norm.pdf(x, mean[cell], precision[cell] ** -0.5) for cell, x in held.items())
        for pair in pairs:
            (high, up), (low, down) = (
                (held[cell], 0.0) if cell in held else (mean[cell], 1 / precision[cell]) for cell in pair
            )
            violated = stats.norm.cdf((low - high) / math.sqrt(up + down)) if up + down else float(high < low)
            weight *= 1 - violated * (1 - math.exp(-trust))
        weights[cells] = weight
    total = sum(weights.values())
    return {cells: weight / total for cells, weight in weights.items()}


def chances_of_one(favours, ones, pairs=(), trust=0.0):
    """P(cell holds 1), of cells that hold so many 1 and else 0, with weight exp(sum of favours where they hold 1).

    `pairs` are disjoint comparisons (higher, lower). By sums over how many 1 the cells so far hold: of all, and of
    those where a cell holds 1.
    """
    paired = {cell for pair in pairs for cell in pair}
    groups = [*pairs, *((cell,) for cell in range(len(favours)) if cell not in paired)]

    def total(fixed):
        ways = np.zeros(ones + 1)
        ways[0] = 1.0
        for group in groups:
            new = np.zeros_like(ways)
            for held in np.ndindex(*(2,) * len(group)):
                if any(cell == fixed and not one for cell, one in zip(group, held, strict=True)):
                    continue
                weight = math.exp(sum(favours[cell] for cell, one in zip(group, held, strict=True) if one))
                weight *= math.exp(-trust * (len(group) == 2 and held[0] < held[1]))
                new[sum(held) :] += weight * ways[: ways.size - sum(held)]
            ways = new
        return ways[ones]

    return np.array([total(cell) for cell in range(len(favours))]) / total(None)


def chance_of_a_fit(counts, expected):
    """The p-value of Pearson's test; outcomes expected fewer than 5 times are counted as one."""
    counts, expected = np.asarray(counts, float), np.asarray(expected, float)
    rare = expected < 5
    if rare.any():
        counts = np.append(counts[~rare], counts[rare].sum())
        expected = np.append(expected[~rare], expected[rare].sum())
    return stats.chisquare(counts, expected * counts.sum() / expected.sum()).pvalue


def split_r_hat(draws):
    """Gelman and others (2013), section 11.4, of one chain cut into two halves."""
    n = len(draws) // 2
    halves = [list(draws[:n]), list(draws[n : 2 * n])]
    means = [sum(half) / n for half in halves]
    within = sum(sum((x - mean) ** 2 for x in half) / (n - 1) for half, mean in zip(halves, means, strict=True)) / 2
    between = n * sum((mean - sum(means) / 2) ** 2 for mean in means)
    return math.sqrt(((n - 1) / n * within + between / n) / within)


def effective_draws(draws):
    """Section 11.5: variograms of both halves, summed until two neighbouring lags (2t, 2t + 1) no longer add."""
    n = len(draws) // 2
    halves = [draws[:n], draws[n : 2 * n]]
    within = np.mean([np.var(half, ddof=1) for half in halves])
    total_variance = (n - 1) / n * within + np.var([np.mean(half) for half in halves], ddof=1)

    def correlation(lag):
        squares = [(half[t] - half[t - lag]) ** 2 for half in halves for t in range(lag, n)]
        return 1 - sum(squares) / (2 * (n - lag)) / (2 * total_variance)

    correlations = [1.0, correlation(1)]
    if sum(correlations) <= 0:
        return 2.0 * n
    while len(correlations) + 2 <= n - 1:
        pair = [correlation(len(correlations)), correlation(len(correlations) + 1)]
        if sum(pair) <= 0:
            break
        correlations += pair
    return 2 * n / (1 + 2 * max(sum(correlations[1:]), 0.0))


def planned_sweeps(sweeps, burn, draws):
    """The sweeps that are kept of a chain that ran to its end."""
    after = sweeps - burn
    count = min(draws, after)
    return [burn + (number * after) // count for number in range(1, count + 1)]


def sweeps_kept_when_stopped(done, sweeps, burn, draws):
    """After so many sweeps: those planned so far or, if they are more, the multiples of a power of two (the smallest of
    which there were no more than `draws`) that are no burn-in and not of the first half. 0 is the start."""
    planned = [number for number in planned_sweeps(sweeps, burn, draws) if number <= done]
    stride = 1
    while done // stride > draws:
        stride *= 2
    late = [number for number in range(stride, done + 1, stride) if number > burn or 2 * number > done]
    return (late if len(late) > len(planned) else planned) or [0]


class Drawn:
    """Parameters drawn from the sampler's priors: factors of k components, noises, the common one above `least`; where
    rows have `own` units, their offsets and scales."""

    def __init__(self, random, shape, k, least=0.0, own=False):
        n, m = shape
        self.A, self.B = (self._factor(random, size, k) for size in shape)
        self.common = least + random.exponential()  # Gamma(1, 1) forgets where it was cut off
        self.row_noise = 2.0 / random.gamma(2.0, 1.0, n)
        self.column_noise = 3.0 * self.common / random.gamma(3.0, 1.0, m)
        self.offset = random.standard_normal(n) if own else np.zeros(n)
        self.scale = np.exp(0.5 * random.standard_normal(n)) if own else np.ones(n)
        self.mean = self.A @ self.B.T + self.offset[:, None]

    @staticmethod
    def _factor(random, size, k):
        half = random.standard_normal((k, k + 1))
        spread = np.linalg.inv(half @ half.T)  # of a Wishart's k + 1 degrees of freedom
        centre = random.multivariate_normal(np.zeros(k), spread)
        return random.multivariate_normal(centre, spread, size)

    def value(self, random, row, column):
        """A value of this cell."""
        deviation = math.sqrt(self.row_noise[row] * self.column_noise[column])
        return self.scale[row] * (self.mean[row, column] + deviation * random.standard_normal())
