"""The oracles of noises, of the squared model and of gamma noise's posteriors against scipy and finite differences."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import optimize, stats

from . import gig, noises, squared

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


@every_noise
def test_pull_less_push_is_the_slope(noise, alpha):
    x = np.array([0.1, 0.7, 4.0, 60.0])
    step = 1e-5 * x
    up, down = (noises.log_probabilities(at, THRESHOLDS, noise, alpha) for at in (x + step, x - step))
    pull, push = noises.pull_push(x, THRESHOLDS, noise, alpha)
    assert_allclose(pull - push, (up - down) / (2 * step[:, None]), rtol=1e-6, atol=1e-8)
    assert min(pull.min(), push.min()) > 0


def case(seed=0, K=3, missing=0.0, shape=(8, 7)):
    random = np.random.default_rng(seed)
    Y = random.integers(0, 4, shape) * (random.random(shape) < 0.7)
    Y.flat[:4] = np.arange(4)
    S = squared.level_weights(Y) * (random.random(shape) >= missing)
    return Y, S, *squared.start(Y, K, random)


@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_squared_pull_less_push_is_the_gradient(missing):
    """From one step with a tiny exponent g: log(new / old) = g log(P / Q); Q from the formula over seen cells."""
    Y, S, W, H, D = case(1, missing=missing)
    l2, g = 0.7, 1e-3
    ratio = np.exp(np.log(squared.half_step(Y, S, W, H, D, l2, g) / W) / g)
    theta = np.append(np.cumsum(D[::-1])[::-1], 0.0)
    push = np.where(Y > 0, theta[np.maximum(Y - 1, 0)], 1.0)
    Q = 2 * W @ (H.T @ H) + ((2 * (S * push - 1) * (W @ H.T)) @ H) + l2 * W
    for at in np.ndindex(W.shape):
        move = np.zeros(W.shape)
        move[at] = 1e-6 * W[at]
        up, down = (squared.objective(Y, S, W + sign * move, H, D, l2) for sign in (1, -1))
        assert (ratio[at] - 1) * Q[at] == pytest.approx((up - down) / (2 * move[at]), rel=1e-5, abs=1e-5)


def test_pinned_decrements_are_the_best_on_the_simplex():
    Y, S, W, H, D = case(3)
    rate = (W @ H.T) ** 2
    z = D[np.maximum(Y - 1, 0)] * rate
    n = S * np.where(Y > 0, z / -np.expm1(-z), 0.0)
    N, R = (np.array([(a * on(Y, v)).sum() for v in (1, 2, 3)]) for a, on in ((n, np.equal), (S * rate, np.less_equal)))

    def cost(logits):
        logs = logits - np.logaddexp.reduce(logits)
        return -(N @ logs - R @ np.exp(logs))

    best = np.exp(optimize.minimize(cost, np.zeros(3), method="BFGS", options={"gtol": 1e-8}).x)
    assert_allclose(squared.pinned_decrements(Y, S, W, H, D), best / best.sum(), rtol=1e-5)
    without = squared.pinned_decrements(np.where(Y == 2, 3, Y), S, W, H, D)
    assert without[1] == 0  # a level without cells gets no room
    assert without.sum() == pytest.approx(1, rel=1e-12)


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
