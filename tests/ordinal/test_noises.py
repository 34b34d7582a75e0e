"""Level probabilities against draws of the generative model, scipy's distributions, closed forms, differences."""

import numpy as np
import pytest
from scipy import stats

from . import noises

THRESHOLDS = np.array([0.4, 1.0, 2.5, 7.0])
CASES = [("inverse-gamma", 1.0), ("inverse-gamma", 0.5), ("inverse-gamma", 3.0)]
CASES += [("exponential", 1.0), ("gamma", 0.4), ("gamma", 5.0)]
every_noise = pytest.mark.parametrize(("noise", "alpha"), CASES)


def laws(noise, alpha):
    """The noise's distribution as scipy has it."""
    return stats.invgamma(alpha) if noise == "inverse-gamma" else stats.gamma(alpha)


@every_noise
@pytest.mark.parametrize("x", [0.3, 2.0])
def test_levels_drawn_from_the_model(noise, alpha, x):
    """x times scipy's noise, cut at the thresholds by hand."""
    draws = 100_000
    latent = x * laws(noise, alpha).rvs(draws, random_state=0)
    found = np.histogram(latent, [0, *THRESHOLDS, np.inf])[0] / draws
    expected = np.exp(noises.log_probabilities(x, THRESHOLDS, noise, alpha))
    assert np.all(np.abs(found - expected) < 4.5 * np.sqrt(expected * (1 - expected) / draws))
    ours = noises.draw_levels(np.full(draws, x), THRESHOLDS, np.random.default_rng(0), noise, alpha)
    ours = np.bincount(ours, minlength=5) / draws
    assert np.all(np.abs(ours - expected) < 4.5 * np.sqrt(expected * (1 - expected) / draws))


@every_noise
def test_probabilities_are_those_of_scipy_and_add_up(noise, alpha):
    x = np.array([[0.05, 0.3], [2.0, 9.0]])
    below = laws(noise, alpha).cdf(THRESHOLDS / x[..., None])
    np.testing.assert_allclose(noises.cumulative(x, THRESHOLDS, noise, alpha)[..., :-1], below, rtol=1e-12, atol=1e-300)
    np.testing.assert_array_equal(noises.cumulative(x, THRESHOLDS, noise, alpha)[..., -1], 1)
    p = np.exp(noises.log_probabilities(x, THRESHOLDS, noise, alpha))
    np.testing.assert_allclose(np.cumsum(p, -1)[..., :-1], below, rtol=1e-11, atol=1e-14)
    np.testing.assert_allclose(p.sum(-1), 1, rtol=1e-12)
    levels = (np.arange(5) * p).sum(-1)
    np.testing.assert_allclose(noises.expected_level(x, THRESHOLDS, noise, alpha), levels, rtol=1e-11)


@pytest.mark.parametrize("x", [1e-8, 1e-3, 0.5, 30.0, 1e4, 1e6])
def test_closed_forms_where_the_shape_is_one_at_all_sizes(x):
    """Logarithms hold where the probabilities themselves are 0; near 1 they are right to 1e-13."""
    theta, b = np.append(1 / THRESHOLDS, 0.0), np.insert(THRESHOLDS, 0, 0.0)
    inverse = np.append(-x * theta[0], -x * theta[1:] + np.log(-np.expm1(-x * -np.diff(theta))))  # Eq. 26
    np.testing.assert_allclose(noises.log_probabilities(x, THRESHOLDS), inverse, rtol=1e-11, atol=1e-13)
    exponential = np.append(-b[:-1] / x + np.log(-np.expm1(-np.diff(b) / x)), -b[-1] / x)
    found = noises.log_probabilities(x, THRESHOLDS, "exponential")
    np.testing.assert_allclose(found, exponential, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("x", [0.05, 0.5, 3.0, 30.0])
def test_slopes_where_the_shape_is_one(x):
    """Two splits of one slope: the EM one, and that of the latent Poisson counts."""
    D = -np.diff(1 / THRESHOLDS, append=0.0)
    theta = 1 / THRESHOLDS
    poisson = np.append(-theta[0], D / -np.expm1(-D * x) - theta)
    np.testing.assert_allclose(noises.slopes(x, THRESHOLDS), poisson, rtol=1e-9)
    b = np.insert(THRESHOLDS, 0, 0.0)
    widths = np.diff(b)
    exponential = np.append(b[:-1] - widths / np.expm1(widths / x), b[-1]) / x**2
    np.testing.assert_allclose(noises.slopes(x, THRESHOLDS, "exponential"), exponential, rtol=1e-9, atol=1e-13)


@every_noise
def test_slopes_by_finite_differences(noise, alpha):
    x = np.array([0.1, 0.7, 4.0, 60.0])
    step = 1e-5 * x
    up, down = (noises.log_probabilities(at, THRESHOLDS, noise, alpha) for at in (x + step, x - step))
    found = noises.slopes(x, THRESHOLDS, noise, alpha)
    np.testing.assert_allclose(found, (up - down) / (2 * step[:, None]), rtol=1e-6, atol=1e-8)
    assert all(np.all(part > 0) for part in noises.pull_push(x, THRESHOLDS, noise, alpha))


def test_exponential_noise_is_inverse_gamma_noise_seen_in_a_mirror():
    """P(y > v) = e^{-b_v / x}: the levels from above, at 1 / x, with 1 / b from above."""
    x = np.array([0.2, 1.0, 5.0])
    mirrored = noises.log_probabilities(1 / x, 1 / THRESHOLDS[::-1])[:, ::-1]
    np.testing.assert_allclose(noises.log_probabilities(x, THRESHOLDS, "exponential"), mirrored, rtol=1e-11, atol=1e-14)


def test_the_likelihood_of_seen_levels():
    x, y = np.array([0.5, 3.0, 8.0]), np.array([1, 4, 2])
    p = np.diff(stats.invgamma(1).cdf(np.append(THRESHOLDS, np.inf) / x[:, None]), prepend=0.0, axis=1)
    expected = np.log(p[np.arange(3), y] / (1 - p[:, 0])).sum()
    assert noises.log_likelihood_of_seen(y, x, THRESHOLDS) == pytest.approx(expected, rel=1e-11)


@every_noise
def test_the_log_likelihood_is_concave_in_the_logarithms_of_rate_and_thresholds(noise, alpha):
    """Because log g has a log-concave density: midpoints of random pairs are never lower."""
    random = np.random.default_rng(0)
    for _ in range(50):
        one, other = (np.append(random.normal(), np.sort(random.normal(size=3))) for _ in range(2))
        ends = [noises.log_probabilities(np.exp(at[0]), np.exp(at[1:]), noise, alpha) for at in (one, other)]
        middle = np.exp((one + other) / 2)
        between = noises.log_probabilities(middle[0], middle[1:], noise, alpha)
        assert np.all(between >= (ends[0] + ends[1]) / 2 - 1e-10)


@every_noise
@pytest.mark.parametrize("holes", [0.0, 0.4])
def test_em_never_falls(noise, alpha, holes):
    Y, *_ = noises.simulate(9, 8, 2, THRESHOLDS, 1, noise, alpha)
    random = np.random.default_rng(2)
    C = (random.random(Y.shape) >= holes).astype(float)
    W, H = random.gamma(1.0, 1.0, (9, 3)), random.gamma(1.0, 1.0, (8, 3))
    values, b = [], np.array([0.2, 1.0, 3.0, 5.0])
    for _ in range(6):
        W = noises.half_step(Y, C, W, H, b, noise, alpha)
        values.append(noises.log_likelihood(Y, C, W, H, b, noise, alpha))
        H = noises.half_step(Y.T, C.T, H, W, b, noise, alpha)
        values.append(noises.log_likelihood(Y, C, W, H, b, noise, alpha))
        if noise == "exponential":
            b = noises.exponential_thresholds(Y, C, W, H, b)
            values.append(noises.log_likelihood(Y, C, W, H, b, noise, alpha))
    assert np.diff(values).min() > -1e-10
    assert values[-1] > values[0] + 5


def test_exponential_thresholds_are_found():
    """With x known, to the accuracy that 15,000 cells allow."""
    Y, W, H = noises.simulate(150, 100, 3, THRESHOLDS, 3, "exponential")
    b = np.array([0.2, 0.5, 3.0, 5.0])
    for _ in range(100):
        b = noises.exponential_thresholds(Y, np.ones(Y.shape), W, H, b)
    np.testing.assert_allclose(b, THRESHOLDS, rtol=0.05)


def test_the_simulator():
    Y, W, H = noises.simulate(100, 200, 3, [1, 5, 10, 20, 50], 0)
    assert Y.shape == (100, 200)
    assert W.shape == (100, 3)
    assert H.shape == (200, 3)
    p = np.diff(stats.invgamma(1).cdf(np.array([0, 1, 5, 10, 20, 50, np.inf]) / (W @ H.T)[..., None]))
    spread = np.sqrt((p * (1 - p)).sum((0, 1)))
    assert np.all(np.abs(np.bincount(Y.ravel()) - p.sum((0, 1))) < 4.5 * spread)
