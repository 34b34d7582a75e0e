"""Levels under gamma noise against quadrature, scipy's distributions, closed forms and differences."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from halfseen.likelihoods import GammaNoise, InverseGammaNoise
from halfseen.likelihoods.gamma_noise import log_mass_and_mean
from tests.ordinal import gig, noises

THRESHOLDS = np.array([0.4, 1.0, 2.5, 7.0])
X = np.array([1e-3, 0.05, 0.3, 1.0, 2.5, 17.0, 4e3])
every_shape = pytest.mark.parametrize("shape", [1.0, 0.4, 2.0, 5.5, 40.0])


def all_pairs():
    y, x = np.meshgrid(np.arange(5.0), X)
    return y.ravel(), x.ravel()


def of_oracle(table, y, x, shape):
    return table(x, THRESHOLDS, "gamma", shape)[np.arange(y.size), y.astype(int)]


@every_shape
def test_log_probabilities_pulls_and_pushes_are_those_of_quadrature(shape):
    y, x = all_pairs()
    truth = of_oracle(noises.log_probabilities, y, x, shape)
    assert_allclose(GammaNoise(THRESHOLDS, shape).log_prob(y, x), truth, rtol=1e-9, atol=1e-12)
    y, x = all_pairs()
    pull, push = GammaNoise(THRESHOLDS, shape).pull_push(y, x)
    truth = [part[np.arange(y.size), y.astype(int)] for part in noises.pull_push(x, THRESHOLDS, "gamma", shape)]
    assert_allclose(pull, truth[0], rtol=1e-8)
    assert_allclose(push, truth[1], rtol=1e-14)


@every_shape
def test_probabilities_are_those_of_scipy_and_add_up(shape):
    likelihood, x = GammaNoise(THRESHOLDS, shape), X.reshape(7, 1)
    found = likelihood.probabilities(x)
    assert found.shape == (7, 1, 5)
    below = stats.gamma(shape).cdf(np.append(THRESHOLDS, np.inf) / x[..., None])
    assert_allclose(np.cumsum(found, axis=-1), below, rtol=1e-10, atol=1e-13)
    assert_allclose(found.sum(axis=-1), 1, rtol=1e-12)
    assert_allclose(likelihood.mean(x), found @ np.arange(5.0), rtol=1e-10, atol=1e-14)
    stars = np.array([1.0, 2.0, 2.5, 4.0, 5.0])
    assert_allclose(GammaNoise(THRESHOLDS, shape, values=stars).mean(x), found @ stars, rtol=1e-10)


@pytest.mark.parametrize("x", [1e-70, 1e-8, 1e-3, 0.5, 30.0, 1e6, 1e60])
def test_exponential_noise_has_closed_forms_at_all_sizes(x):
    edges, x = np.concatenate([[0.0], THRESHOLDS, [np.inf]]), np.full(5, x)
    low, width = edges[:-1] / x, np.diff(edges) / x
    truth = -low + np.log(-np.expm1(-width))
    assert_allclose(GammaNoise(THRESHOLDS).log_prob(np.arange(5.0), x), truth, rtol=1e-13)


@pytest.mark.parametrize("shape", [0.999999, 1.000001])
def test_next_to_exponential_noise_the_general_formula_takes_over_smoothly(shape):
    y, x = all_pairs()
    one, other = GammaNoise(THRESHOLDS), GammaNoise(THRESHOLDS, shape)
    assert_allclose(other.log_prob(y, x), one.log_prob(y, x), rtol=1e-4, atol=1e-5)
    assert_allclose(other.pull_push(y, x)[0], one.pull_push(y, x)[0], rtol=1e-5)


@every_shape
def test_far_out_means_stay_within_their_bounds_and_have_their_limits(shape):
    """Above a large number a gamma variable goes about 1 beyond it; below a small one its density is like a power."""
    low = 10.0 ** np.arange(4.0, 80, 4)
    mass, mean = log_mass_and_mean(shape, low, np.full_like(low, np.inf))
    assert np.all(mean >= low)
    assert_allclose((mean - low)[low < 1e9], 1, atol=0.02)
    assert_allclose(mean, low, rtol=2e-4)
    assert_allclose(mass, -low, rtol=0.05)
    high = 10.0 ** -np.arange(4.0, 80, 4)
    mass, mean = log_mass_and_mean(shape, np.zeros_like(high), high)
    assert_allclose(mean, high * shape / (shape + 1), rtol=1e-3)
    assert_allclose(mass, stats.gamma(shape).logpdf(1) + 1 + shape * np.log(high) - np.log(shape), rtol=1e-3)


@pytest.mark.parametrize("shape", [0.4, 1.0, 5.5])
@pytest.mark.parametrize("low", [1e-5, 0.3, 2.0, 30.0, 900.0])
def test_narrow_levels_have_the_density_in_their_middle(shape, low):
    low = np.full(3, low)
    high = low * (1 + np.array([1e-3, 1e-6, 1e-9]))
    mass, mean = log_mass_and_mean(shape, low, high)
    middle = (low + high) / 2
    assert_allclose(mass, stats.gamma(shape).logpdf(middle) + np.log(high - low), rtol=1e-6, atol=1e-4 * low[0] ** 2)
    assert np.all((mean >= low) & (mean <= high))
    assert_allclose(mean[0], middle[0], rtol=1e-4)


def cells(shape, seed=0, n=40, m=30):
    """Levels whose thresholds are as far out as the noise, x, and weights."""
    Y, W, H = noises.simulate(n, m, 3, shape * THRESHOLDS, seed, "gamma", shape)
    return Y, W @ H.T, np.random.default_rng(seed).choice([0.5, 1.0, 2.0], Y.shape)


def by_level(likelihood, Y, x, C):
    """The sums of the derivatives by the thresholds, weighted."""
    level, terms = Y.ravel().astype(int), likelihood.threshold_derivatives(Y.ravel(), x.ravel())
    return np.concatenate([np.bincount(level, C.ravel() * term, likelihood.highest + 1) for term in terms])


@every_shape
def test_what_thresholds_ask_of_cells_are_the_derivatives(shape):
    Y, x, C = cells(shape, n=8, m=7)
    sums = by_level(GammaNoise(shape * THRESHOLDS, shape), Y, x, C)
    lower, upper, of_lower, of_upper, of_both = sums.reshape(5, 5)
    slope, bend = gig.slope_and_bend(Y, C, x, shape * THRESHOLDS, shape)
    assert_allclose(upper[:-1] + lower[1:], slope, rtol=1e-8, atol=1e-8)
    assert_allclose(of_upper[:-1] + of_lower[1:], -np.diag(bend), rtol=1e-8)
    assert_allclose(of_both[1:-1], -np.diag(bend, 1), rtol=1e-8)


def best_thresholds(likelihood, Y, x, C, steps):
    """Newton's steps, each taken back by halves until it is no loss."""

    def cost(likelihood):
        return (C * likelihood.divergence(Y, x)).sum()

    for _ in range(steps):
        new = likelihood.newton_step(by_level(likelihood, Y, x, C))
        for _ in range(30):
            if cost(new) <= cost(likelihood):
                likelihood = new
                break
            new = new.midpoint(likelihood)
    return likelihood


@every_shape
def test_thresholds_are_found_where_x_is_known(shape):
    """To what 1,200 cells allow: the slope is 0 there, and the truth is not far."""
    Y, x, C = cells(shape)
    found = best_thresholds(GammaNoise(np.array([1.0, 2.0, 3.0, 4.0]), shape), Y, x, C, 60).thresholds
    slope, _ = gig.slope_and_bend(Y, C, x, found, shape)
    assert_allclose(slope, 0, atol=1e-5)
    assert_allclose(found, shape * THRESHOLDS, rtol=0.2)


def test_a_level_that_no_cell_is_at_does_not_break_the_others():
    Y, x, C = cells(1.0)
    Y = np.maximum(Y, 1)
    found = best_thresholds(GammaNoise(THRESHOLDS), Y, x, C, 200).thresholds
    assert 0 < found[0] < 1e-10
    slope, _ = gig.slope_and_bend(Y - 1, C, x, found[1:], 1.0)
    assert_allclose(slope, 0, atol=1e-5)


def test_the_start_gives_levels_their_shares_and_half_way_is_the_geometric_middle():
    likelihood = GammaNoise.from_histogram(np.array([400.0, 300.0, 200.0, 100.0]), 2.5, 7.0)
    assert_allclose(likelihood.probabilities(np.array(7.0)), [0.4, 0.3, 0.2, 0.1], atol=1e-3)
    one, other = GammaNoise(THRESHOLDS), GammaNoise(4 * THRESHOLDS)
    assert_allclose(one.midpoint(other).thresholds, 2 * THRESHOLDS)


def test_single_precision_is_kept_and_right():
    y, x = all_pairs()
    for shape in (1.0, 2.5):
        likelihood = GammaNoise(THRESHOLDS, shape)
        single = [*likelihood.pull_push_cost(*(a.astype(np.float32) for a in (y, x))), likelihood.mean(np.float32(x))]
        assert {part.dtype for part in single} == {np.dtype(np.float32)}
        for narrow, wide in zip(single, [*likelihood.pull_push_cost(y, x), likelihood.mean(x)], strict=True):
            assert_allclose(narrow, wide, rtol=1e-5, atol=1e-30)
    assert_array_equal(likelihood.legal(np.array([-1.0, 0.0, 1.5, 4.0, 5.0])), [False, True, False, True, False])


# Inverse-gamma noise: what docs/methods.md says of its shapes, below 1 too.

DECREMENTS = np.array([0.5, 0.8, 0.3, 0.1])
inverse_shapes = pytest.mark.parametrize("shape", [0.1, 0.5, 0.9, 1.7, 4.0])


def lifted(decrements, shape, level, x):
    """log(exp(theta_{v-1} x) p(v | x))."""
    likelihood = InverseGammaNoise(np.asarray(decrements), shape)
    return likelihood.log_prob(np.full_like(x, level), x) + likelihood.theta[level - 1] * x


@inverse_shapes
def test_levels_above_0_are_log_convex_in_log_x_for_every_shape(shape):
    x = np.geomspace(1e-3, 50, 400)
    for level in range(1, 5):
        assert np.diff(lifted(DECREMENTS, shape, level, x), 2).min() > -1e-10


@inverse_shapes
def test_a_zero_is_log_convex_in_x_below_shape_1_and_log_concave_above(shape):
    x = np.linspace(1e-3, 20, 400)
    bends = np.diff(InverseGammaNoise(DECREMENTS, shape).log_prob(np.zeros_like(x), x), 2)
    assert np.all(bends > 0 if shape < 1 else bends < 0)


@inverse_shapes
def test_the_push_of_a_zero_is_unbounded_at_0_below_shape_1_only(shape):
    """So no constant push leaves a pull of 0 or more."""
    likelihood = InverseGammaNoise(DECREMENTS, shape)
    x = 10.0 ** -np.arange(2.0, 60, 8)
    slopes = likelihood.above(0, x) / x  # of log p(0) = log(1 - P(y > 0)) between 0 and x, at least
    if shape < 1:
        assert np.all(np.diff(slopes) > 0)
        assert slopes[-1] > 100 * likelihood.theta[0]
    else:
        assert np.all(slopes <= likelihood.theta[0])
    far = np.array([4e3, 4e3 + 1e-2])
    assert_allclose(-np.diff(likelihood.log_prob(np.zeros(2), far)) / 1e-2, likelihood.theta[0], rtol=0.01)


@inverse_shapes
def test_levels_are_log_convex_in_the_log_decrements_from_shape_1_on_only(shape):
    """A counter-example for each shape below 1: theta_1 = D_2 at 1/e^2, 1 and e^2, with D_1 = 1 and a small x."""
    low, middle, high = (lifted([1.0, D], shape, 1, np.array([1e-3]))[0] for D in np.exp([-2.0, 0.0, 2.0]))
    assert (middle > (low + high) / 2) == (shape < 1)
    slopes = np.diff([np.log((t + 1) ** shape - t**shape) for t in np.exp([-60.0, -59.0, 20.0, 21.0])])[::2]
    assert_allclose(slopes, [0, shape - 1], atol=2e-3 if shape > 0.3 else 5e-3)
    if shape > 1:
        random = np.random.default_rng(0)
        for _ in range(100):
            a, b = random.normal(0, 2, (2, 4))
            x, level = np.exp(random.normal(0, 1, 1)), int(random.integers(1, 5))
            low, middle, high = (lifted(np.exp(one), shape, level, x)[0] for one in (a, (a + b) / 2, b))
            assert middle <= (low + high) / 2 + 1e-9 * (1 + abs(low) + abs(high))
