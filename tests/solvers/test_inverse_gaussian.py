"""Generalised inverse-Gaussian posteriors: against the dense oracle, against the evidence itself, over many draws."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import integrate, special, stats

from halfseen.errors import ParameterError
from halfseen.io import observe
from halfseen.likelihoods import GammaNoise, Poisson
from halfseen.solvers import GammaPrior, InverseGaussian
from halfseen.solvers.inverse_gaussian import gig_moments, gig_quantile, gig_sample
from tests.laws.cases import states
from tests.ordinal import gig, noises
from tests.ordinal.gig import cells

START = np.array([0.3, 1.0, 5.0])
every_noise = pytest.mark.parametrize("alpha", [1.0, 0.4, 3.0])


def run(Y, C, W, H, alpha, steps, rate=None, shape=0.3, thresholds=START, learned=True):
    """The states of the solver, without the start."""
    prior = GammaPrior(shape, rate)
    observed = observe(np.where(C > 0, Y, np.nan), cell_weight=C)
    likelihood = GammaNoise(thresholds, alpha, learned)
    return list(states(InverseGaussian(prior, prior), likelihood, observed, W, H, steps))[1:]


@every_noise
@pytest.mark.parametrize(("rate", "shape", "learned"), [(None, 0.3, True), (0.8, 0.3, False), (None, 1.7, True)])
def test_thirty_iterations_are_the_oracles(alpha, rate, shape, learned):
    Y, C, W, H = cells(alpha)
    records = gig.ordnmf(Y, C, W, H, START, 30, alpha, shape, rate, learned)
    for state, record in zip(run(Y, C, W, H, alpha, 30, rate, shape, learned=learned), records, strict=True):
        for found, truth in ((state.rows, record.w), (state.columns, record.h)):
            assert_allclose(found.mean, truth.mean, rtol=1e-9)
            assert_allclose(found.harmonic, truth.harmonic, rtol=1e-8, atol=1e-12)
            assert_allclose(found.rate, truth.rate, rtol=1e-9)
            assert_allclose(found.inverse_rate, truth.inverse_rate, rtol=1e-8, atol=1e-12)
        assert_allclose(state.likelihood.thresholds, record.thresholds, rtol=1e-9)
        assert state.objective == pytest.approx(record.elbo, rel=1e-9)


@every_noise
@pytest.mark.parametrize("level", [0, 1, 3])
def test_the_bound_is_below_the_evidence_and_near_it(alpha, level):
    """One cell, one component: log p(y) is an integral over both gamma priors, here by quadrature."""
    a, b, one = 2.0, 1.5, np.ones((1, 1))
    *_, last = run(np.array([[level]]), one, one, one, alpha, 200, b, a, learned=False)

    def given_both(log_w, log_h):
        w, h = np.exp(log_w), np.exp(log_h)
        p = np.diff(noises.cumulative(w * h, START, "gamma", alpha), prepend=0.0)[..., level]
        return p * stats.gamma.pdf(w, a, scale=1 / b) * w * stats.gamma.pdf(h, a, scale=1 / b) * h

    grid = np.linspace(-12, 4, 300)
    evidence = np.log(integrate.trapezoid(integrate.trapezoid(given_both(*np.meshgrid(grid, grid)), grid), grid))
    assert evidence - 1.2 * max(alpha, 1) < last.objective < evidence


def test_where_it_comes_to_rest_it_stays():
    Y, C, W, H = cells(1.0)
    *_, before, after = run(Y, C, W[:, :1], H[:, :1], 1.0, 2000)
    assert_allclose(after.rows.mean @ after.columns.mean.T, before.rows.mean @ before.columns.mean.T, rtol=1e-9)
    assert_allclose(after.likelihood.thresholds / after.likelihood.thresholds[0],
                    before.likelihood.thresholds / before.likelihood.thresholds[0], rtol=1e-9)  # fmt: skip


def test_other_likelihoods_are_refused():
    with pytest.raises(ParameterError, match=r"inverse-Gaussian solver needs .* Found kullback-leibler. Choose"):
        InverseGaussian().check(Poisson())
    InverseGaussian().check(GammaNoise(START))


def test_a_factor_knows_its_draws_and_quantiles():
    Y, C, W, H = cells(1.0)
    *_, last = run(Y, C, W, H, 1.0, 10)
    random = np.random.default_rng(0)
    draws = np.array([last.rows.sample(random) for _ in range(4000)])
    assert_allclose(draws.mean(axis=0), last.rows.mean, atol=5 * draws.std(axis=0).max() / np.sqrt(4000))
    below = np.mean(draws < last.rows.quantile(0.9), axis=0)
    assert np.all(np.abs(below - 0.9) < 4.5 * np.sqrt(0.09 / 4000))
    point = InverseGaussian().init_factor(W)
    assert_allclose(point.sample(random), W)
    assert_allclose(point.quantile(0.1), W)


# The generalised inverse-Gaussian distribution against quadrature, limits and draws.

RATE = 1.7
every_shape = pytest.mark.parametrize("shape", [0.05, 0.3, 1.0, 2.5, 30.0])
every_z = pytest.mark.parametrize("z", [1e-12, 1e-3, 0.5, 3.0, 200.0])


def inverse_rate(z):
    return (z / 2) ** 2 / RATE


@every_shape
@every_z
def test_moments_are_those_of_quadrature(shape, z):
    truth = gig.Posterior(shape, np.array([RATE]), np.array([inverse_rate(z)]))
    found = gig_moments(shape, np.array([RATE]), np.sqrt([inverse_rate(z)]))
    assert_allclose(found.mean, truth.mean, rtol=1e-10)
    assert_allclose(found.harmonic, truth.harmonic, rtol=1e-9)
    assert_allclose(found.inverse_part, truth.mean_inverse * truth.inverse_rate, rtol=1e-9)
    entropy = found.log_norm - (shape - 1) * truth.mean_log + RATE * found.mean + found.inverse_part
    assert_allclose(entropy, truth.entropy, rtol=1e-9, atol=1e-9)


@every_shape
def test_quantiles_of_a_gamma_variable_are_scipys(shape):
    for root in (0.0, 1e-170):
        found = gig_moments(shape, np.array([RATE]), np.array([root]))
        assert_allclose(found.mean, shape / RATE, rtol=1e-12)
        assert_allclose(found.log_norm, special.gammaln(shape) - shape * np.log(RATE), rtol=1e-10)
    found = gig_moments(shape, np.array([RATE]), np.zeros(1))
    assert_allclose(found.harmonic, max(shape - 1, 0) / RATE, rtol=1e-12)
    for part in (0.05, 0.5, 0.95):
        found = gig_quantile(shape, np.array([RATE]), np.zeros(1), part)
        assert_allclose(stats.gamma.cdf(found, shape, scale=1 / RATE), part, rtol=1e-6)


@pytest.mark.parametrize("z", [1e6, 1e9, 1e12, 1e40])
def test_where_the_bessel_functions_end_it_is_normal_around_its_mode(z):
    """w is near s = sqrt(inverse_rate / rate), with variance s^2 / z; Z by Laplace's method."""
    root = z / 2 / np.sqrt(RATE)
    found = gig_moments(0.3, np.array([RATE]), np.array([root]))
    s = root / np.sqrt(RATE)
    assert_allclose(found.mean, s, rtol=2 / z + 1e-12)
    assert_allclose(found.harmonic, s, rtol=2 / z + 1e-12)
    assert_allclose(found.log_norm, 0.3 * np.log(s) - z + 0.5 * np.log(2 * np.pi / z), rtol=1e-12)


@every_shape
@pytest.mark.parametrize("z", [0.0, 1e-12, 1e-3, 3.0, 200.0])
def test_draws_are_spread_as_they_should(shape, z):
    random = np.random.default_rng(0)
    draws = 20_000
    w = gig_sample(shape, np.full(draws, RATE), np.full(draws, inverse_rate(z)), random)
    parts = np.array([0.02, 0.1, 0.5, 0.9, 0.98])
    limits = [gig_quantile(shape, np.array([RATE]), np.array([inverse_rate(z)]), part)[0] for part in parts]
    below = np.mean(w[:, None] < limits, axis=0)
    assert np.all(np.abs(below - parts) < 4.5 * np.sqrt(parts * (1 - parts) / draws))


@pytest.mark.parametrize("z", [0.05, 1.0, 30.0])
def test_quantiles_are_scipys(z):
    law = stats.geninvgauss(0.3, z, scale=np.sqrt(inverse_rate(z) / RATE))
    for part in (0.05, 0.5, 0.95):
        found = gig_quantile(0.3, np.array([RATE]), np.array([inverse_rate(z)]), part)[0]
        assert law.cdf(found) == pytest.approx(part, rel=1e-6)
