"""Whether a chain has drawn enough: split R-hat and effective sample size of a quantity's draws."""

from typing import NamedTuple

import numpy as np

from halfseen.arrays import Array


class Mixing(NamedTuple):
    """How well a quantity has mixed: its mean, split R-hat (1 at best), and how many independent draws it is worth."""

    mean: float
    r_hat: float
    effective: float


def mixing(draws: Array) -> Mixing:
    """Split R-hat and effective sample size, as in Gelman and others, Bayesian Data Analysis (2013), section 11.4-5.

    The chain is cut into two halves of n draws. With W the mean of their variances and B = n times the variance of
    their means, r_hat^2 = (n - 1) / n + B / (n W). The autocorrelations, from both halves' variograms, are summed in
    pairs as long as a pair's sum stays positive. A quantity that never moved has mixed as well as can be; of fewer than
    four draws nothing can be said: NaN.
    """
    n = draws.size // 2
    halves = draws[: 2 * n].reshape(2, n)
    if n < 2:
        return Mixing(float(draws.mean()), np.nan, np.nan)
    if np.ptp(draws) == 0:
        return Mixing(float(draws.mean()), 1.0, float(draws.size))
    within = float(halves.var(axis=1, ddof=1).mean())
    overall = (n - 1) / n * within + float(halves.mean(axis=1).var(ddof=1))
    r_hat = float(np.sqrt(overall / within)) if within > 0 else np.inf
    return Mixing(float(draws.mean()), r_hat, 2 * n / (1 + 2 * _sum_of_correlations(halves, overall)))


def _sum_of_correlations(halves: Array, overall: float) -> float:
    """Of lags 1, 2, ..., cut off before the first pair of lags (2t, 2t + 1) whose sum is not positive."""
    n = halves.shape[1]
    total = 0.0
    pair = [1.0]  # lag 0
    for lag in range(1, n - 1):
        variogram = float(np.mean((halves[:, lag:] - halves[:, :-lag]) ** 2))
        pair.append(1 - variogram / (2 * overall))
        if len(pair) == 2:
            if sum(pair) <= 0:
                break
            total += sum(pair)
            pair = []
    return max(total - 1.0, 0.0)
