"""The oracle itself: moments against scipy's distribution, derivatives by differences, a bound that never falls."""

import numpy as np
import pytest
from scipy import stats

from . import gig, noises

THRESHOLDS = np.array([0.6, 1.5, 4.0])


@pytest.mark.parametrize("shape", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("z", [0.05, 1.0, 30.0])
def test_moments_are_those_of_scipy(shape, z):
    rate = np.array([[0.7]])
    inverse_rate = (z / 2) ** 2 / rate
    found = gig.Posterior(shape, rate, inverse_rate)
    law = stats.geninvgauss(shape, z, scale=np.sqrt(inverse_rate / rate).item())
    assert found.mean == pytest.approx(law.mean(), rel=1e-9)
    assert found.mean_inverse == pytest.approx(law.expect(lambda w: 1 / w), rel=1e-7)
    assert found.mean_log == pytest.approx(law.expect(np.log), rel=1e-7, abs=1e-7)
    assert found.entropy == pytest.approx(-law.expect(law.logpdf), rel=1e-6)


def test_without_an_inverse_part_it_is_a_gamma_variable():
    found, law = gig.Posterior(0.3, np.array([2.0]), np.array([0.0])), stats.gamma(0.3, scale=0.5)
    assert found.mean == pytest.approx(law.mean(), rel=1e-10)
    assert found.entropy == pytest.approx(law.entropy(), rel=1e-9)


def cells(alpha, holes=0.3, n=7, m=6):
    Y, *_ = noises.simulate(n, m, 2, THRESHOLDS, 3, "gamma", alpha)
    random = np.random.default_rng(4)
    C = (random.random(Y.shape) >= holes) * random.choice([1.0, 2.0, 0.5], Y.shape)
    return Y, C, random.gamma(1.0, 1.0, (n, 3)), random.gamma(1.0, 1.0, (m, 3))


@pytest.mark.parametrize("alpha", [1.0, 0.4, 3.0])
def test_derivatives_by_thresholds(alpha):
    Y, C, W, H = cells(alpha)
    x = W @ H.T

    def value(log_b):
        return (C * gig.at(noises.log_probabilities(x, np.exp(log_b), "gamma", alpha), Y)).sum()

    here, steps = np.log(THRESHOLDS), 1e-4 * np.eye(3)
    slope, bend = gig.slope_and_bend(Y, C, x, THRESHOLDS, alpha)
    np.testing.assert_allclose(slope, [(value(here + d) - value(here - d)) / 2e-4 for d in steps], rtol=1e-6, atol=1e-6)
    second = [
        [(value(here + d + e) - value(here + d - e) - value(here - d + e) + value(here - d - e)) / 4e-8 for d in steps]
        for e in steps
    ]
    np.testing.assert_allclose(-bend, second, rtol=1e-4, atol=1e-4)
    assert np.linalg.eigvalsh(bend).min() > 0


@pytest.mark.parametrize("alpha", [1.0, 0.4, 3.0])
@pytest.mark.parametrize("rate", [None, 0.8])
def test_the_bound_never_falls(alpha, rate):
    Y, C, W, H = cells(alpha)
    bounds = [record.elbo for record in gig.ordnmf(Y, C, W, H, [0.3, 1.0, 5.0], 25, alpha, rate=rate)]
    assert np.diff(bounds).min() > -1e-9
    assert bounds[-1] > bounds[0] + 1
