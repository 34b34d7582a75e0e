"""The generalised inverse-Gaussian distribution against quadrature, limits and draws."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import special, stats

from halfseen.solvers import gig
from tests.ordinal.gig import Posterior

RATE = 1.7
every_shape = pytest.mark.parametrize("shape", [0.05, 0.3, 1.0, 2.5, 30.0])
every_z = pytest.mark.parametrize("z", [1e-12, 1e-3, 0.5, 3.0, 200.0])


def inverse_rate(z):
    return (z / 2) ** 2 / RATE


@every_shape
@every_z
def test_moments_are_those_of_quadrature(shape, z):
    truth = Posterior(shape, np.array([RATE]), np.array([inverse_rate(z)]))
    found = gig.moments(shape, np.array([RATE]), np.sqrt([inverse_rate(z)]))
    assert_allclose(found.mean, truth.mean, rtol=1e-10)
    assert_allclose(found.harmonic, truth.harmonic, rtol=1e-9)
    assert_allclose(found.inverse_part, truth.mean_inverse * truth.inverse_rate, rtol=1e-9)
    entropy = found.log_norm - (shape - 1) * truth.mean_log + RATE * found.mean + found.inverse_part
    assert_allclose(entropy, truth.entropy, rtol=1e-9, atol=1e-9)


@every_shape
def test_without_an_inverse_rate_it_is_a_gamma_variable(shape):
    for root in (0.0, 1e-170):
        found = gig.moments(shape, np.array([RATE]), np.array([root]))
        assert_allclose(found.mean, shape / RATE, rtol=1e-12)
        assert_allclose(found.log_norm, special.gammaln(shape) - shape * np.log(RATE), rtol=1e-10)
    found = gig.moments(shape, np.array([RATE]), np.zeros(1))
    assert_allclose(found.harmonic, max(shape - 1, 0) / RATE, rtol=1e-12)


@pytest.mark.parametrize("z", [1e6, 1e9, 1e12, 1e40])
def test_where_the_bessel_functions_end_it_is_normal_around_its_mode(z):
    """w is near s = sqrt(inverse_rate / rate), with variance s^2 / z; Z by Laplace's method."""
    root = z / 2 / np.sqrt(RATE)
    found = gig.moments(0.3, np.array([RATE]), np.array([root]))
    s = root / np.sqrt(RATE)
    assert_allclose(found.mean, s, rtol=2 / z + 1e-12)
    assert_allclose(found.harmonic, s, rtol=2 / z + 1e-12)
    assert_allclose(found.log_norm, 0.3 * np.log(s) - z + 0.5 * np.log(2 * np.pi / z), rtol=1e-12)


@every_shape
@pytest.mark.parametrize("z", [0.0, 1e-12, 1e-3, 3.0, 200.0])
def test_draws_are_spread_as_they_should(shape, z):
    random = np.random.default_rng(0)
    draws = 20_000
    w = gig.draw(shape, np.full(draws, RATE), np.full(draws, inverse_rate(z)), random)
    parts = np.array([0.02, 0.1, 0.5, 0.9, 0.98])
    limits = [gig.quantile(shape, np.array([RATE]), np.array([inverse_rate(z)]), part)[0] for part in parts]
    below = np.mean(w[:, None] < limits, axis=0)
    assert np.all(np.abs(below - parts) < 4.5 * np.sqrt(parts * (1 - parts) / draws))


@every_shape
def test_quantiles_of_a_gamma_variable_are_scipys(shape):
    for part in (0.05, 0.5, 0.95):
        found = gig.quantile(shape, np.array([RATE]), np.zeros(1), part)
        assert_allclose(stats.gamma.cdf(found, shape, scale=1 / RATE), part, rtol=1e-6)


@pytest.mark.parametrize("z", [0.05, 1.0, 30.0])
def test_quantiles_are_scipys(z):
    law = stats.geninvgauss(0.3, z, scale=np.sqrt(inverse_rate(z) / RATE))
    for part in (0.05, 0.5, 0.95):
        found = gig.quantile(0.3, np.array([RATE]), np.array([inverse_rate(z)]), part)[0]
        assert law.cdf(found) == pytest.approx(part, rel=1e-6)
