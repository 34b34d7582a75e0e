"""The oracles of noises, of the squared model and of gamma noise's posteriors against scipy and finite differences."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from . import gig, noises

THRESHOLDS = np.array([0.4, 1.0, 2.5, 7.0])
CASES = [("inverse-gamma", 1.0), ("inverse-gamma", 0.5), ("exponential", 1.0), ("gamma", 0.4), ("gamma", 5.0)]
every_noise = pytest.mark.parametrize(("noise", "alpha"), CASES)
every_alpha = pytest.mark.parametrize("alpha", [1.0, 0.4, 3.0])


def shares(x, noise, alpha):
    """P(y = v | x) as scipy has it."""
    law = stats.invgamma(alpha) if noise == "inverse-gamma" else stats.gamma(alpha)
    return np.diff(law.cdf(np.append(THRESHOLDS, np.inf) / np.asarray(x)[..., None]), prepend=0.0)


@every_noise
def test_probabilities_are_those_of_scipy(noise, alpha):
    x = np.array([[0.05, 0.3], [2.0, 9.0]])
    expected = shares(x, noise, alpha)
    assert_allclose(noises.cumulative(x, THRESHOLDS, noise, alpha), np.cumsum(expected, -1), rtol=1e-12, atol=1e-300)
    found = np.exp(noises.log_probabilities(x, THRESHOLDS, noise, alpha))
    assert_allclose(np.cumsum(found, -1), np.cumsum(expected, -1), rtol=1e-11, atol=1e-14)
    y = np.array([[1, 2], [4, 3]])
    seen = np.log(np.take_along_axis(expected, y[..., None], -1)[..., 0] / expected[..., 1:].sum(-1)).sum()  # Eq. 39
    assert noises.log_likelihood_of_seen(y, x, THRESHOLDS, noise, alpha) == pytest.approx(seen, rel=1e-9)


@every_alpha
def test_derivatives_by_thresholds(alpha):
    Y, C, W, H = gig.cells(alpha)
    x, here, steps = W @ H.T, np.log(gig.THRESHOLDS), 1e-4 * np.eye(3)

    def value(log_b):
        return (C * gig.at(noises.log_probabilities(x, np.exp(log_b), "gamma", alpha), Y)).sum()

    def slopes(at):
        return np.array([(value(at + d) - value(at - d)) / 2e-4 for d in steps])

    slope, bend = gig.slope_and_bend(Y, C, x, gig.THRESHOLDS, alpha)
    assert_allclose(slope, slopes(here), rtol=1e-6, atol=1e-6)
    assert_allclose(-bend, [(slopes(here + e) - slopes(here - e)) / 2e-4 for e in steps], rtol=1e-4, atol=1e-4)
    assert np.linalg.eigvalsh(bend).min() > 0
