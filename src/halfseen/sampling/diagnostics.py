"""Length of a chain, and how well its draws have mixed."""

from typing import Any, NamedTuple

import numpy as np

from halfseen.arrays import Array

#: Above this split R-hat chains have not mixed.
MAX_R_HAT = 1.1


class Plan(NamedTuple):
    """Length of a chain: number of sweeps, of those discarded at the start, of draws kept of the rest."""

    sweeps: int
    burn: int
    draws: int

    def kept(self) -> Array:
        """Numbers of the sweeps that are kept, evenly spread over those not discarded, the last one among them."""
        after = self.sweeps - self.burn
        count = min(self.draws, after)
        return self.burn + (np.arange(1, count + 1) * after) // count


class Mixing(NamedTuple):
    """How well a quantity mixed: its mean, split R-hat (1 at best), and the number of independent draws it is worth."""

    mean: float
    r_hat: float
    effective: float


def mixing(draws: Array) -> Mixing:
    """Split R-hat and effective sample size, as in Gelman and others, Bayesian Data Analysis (2013), section 11.4-5.

    Each chain is cut into two halves of n draws. With W the mean of their variances and B = n times the variance of
    their means, r_hat^2 = (n - 1) / n + B / (n W). The autocorrelations, from the halves' variograms, are summed in
    pairs as long as a pair's sum stays positive. A quantity that never moved has mixed perfectly; of fewer than four
    draws nothing can be said: NaN.

    Parameters
    ----------
    draws : ndarray of shape (n_draws,) or (n_chains, n_draws)
        Draws of one quantity, in the order of the sweeps.

    Returns
    -------
    Mixing
    """
    draws = np.atleast_2d(draws)
    n = draws.shape[1] // 2
    halves = draws[:, : 2 * n].reshape(2 * len(draws), n)
    if n < 2:
        return Mixing(float(draws.mean()), np.nan, np.nan)
    if np.ptp(draws) == 0:
        return Mixing(float(draws.mean()), 1.0, float(draws.size))
    within = float(halves.var(axis=1, ddof=1).mean())
    overall = (n - 1) / n * within + float(halves.mean(axis=1).var(ddof=1))
    r_hat = float(np.sqrt(overall / within)) if within > 0 else np.inf

    # autocorrelations of lags 1, 2, ..., cut off before the first pair of lags (2t, 2t + 1) whose sum is not positive
    total, pair = 0.0, [1.0]  # lag 0
    for lag in range(1, n - 1):
        variogram = float(np.mean((halves[:, lag:] - halves[:, :-lag]) ** 2))
        pair.append(1 - variogram / (2 * overall))
        if len(pair) == 2:
            if sum(pair) <= 0:
                break
            total += sum(pair)
            pair = []
    return Mixing(float(draws.mean()), r_hat, halves.size / (1 + 2 * max(total - 1.0, 0.0)))


def worst(several: list[Mixing]) -> Mixing:
    """Of several quantities: the mean of the means, and the R-hat and number that nine of ten are not worse than."""
    means, r_hats, effective = np.transpose(several)
    between: Any = "linear" if np.isfinite(r_hats).all() else "higher"  # two infinite ones have nothing between them
    r_hat = float(np.quantile(r_hats, 0.9, method=between))
    return Mixing(float(means.mean()), r_hat, float(np.quantile(effective, 0.1)))
