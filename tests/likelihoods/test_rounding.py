"""The losses of generalized round-rank: what their curvatures promise, and what they cost where."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit

from halfseen.likelihoods import Linear, MultiSigmoid, Round
from tests.laws.cases import THRESHOLDS

X = np.linspace(-4, 5, 91) + 0.00123


@pytest.mark.parametrize("smoothing", [0.01, 0.3])
@pytest.mark.parametrize("margin", [0.0, 0.05, 0.2])
def test_the_parabola_of_the_curvature_lies_above_the_cost_of_rounding_everywhere(margin, smoothing):
    """cost(t) <= cost(x) + slope (t - x) + curvature / 2 (t - x)^2: a step to the lowest point of the right never
    makes a cell worse."""
    likelihood = Round(THRESHOLDS, margin=margin, smoothing=smoothing)
    t = np.linspace(-8, 9, 3401)
    for y in range(5):
        at = likelihood.quadratic(np.full(X.size, float(y)), X)
        above = [part[:, None] for part in at]
        parabola = above[0] + above[1] * (t - X[:, None]) + above[2] / 2 * (t - X[:, None]) ** 2
        cost = likelihood.quadratic(np.full(t.size, float(y)), t).cost
        assert np.max(cost - parabola) < 1e-9


def test_rounding_costs_the_distance_from_an_interval_and_predicts_the_level():
    likelihood = Round(THRESHOLDS, margin=0.05, smoothing=0.01)
    ends = np.concatenate([[-np.inf], THRESHOLDS, [np.inf]])
    for y in range(5):
        cost = likelihood.quadratic(np.full(X.size, float(y)), X).cost
        distance = np.maximum(ends[y] + 0.05 - X, 0) + np.maximum(X + 0.05 - ends[y + 1], 0)
        assert_array_equal(cost[distance == 0], 0)
        assert np.all(np.abs(cost - distance) <= 0.005 + 1e-12)
        far = distance > 0.01
        assert_allclose(cost[far], distance[far] - 0.005, rtol=1e-9)
    likelihood = Round(THRESHOLDS, margin=0.0, ends=1.0)
    assert likelihood.quadratic(np.array([0.0]), THRESHOLDS[:1] - 0.9).cost == 0
    assert_allclose(likelihood.quadratic(np.array([0.0]), THRESHOLDS[:1] - 1.5).cost, 0.5 - 0.005)
    assert_allclose(likelihood.quadratic(np.array([4.0]), THRESHOLDS[-1:] + 3).cost, 2 - 0.005)
    likelihood = Round(THRESHOLDS, values=np.array([1.0, 2.0, 4.0, 4.5, 9.0]))
    x = np.concatenate([X, THRESHOLDS])
    assert_array_equal(likelihood.mean(x), likelihood.values[likelihood.levels(x)])


def test_rounding_as_in_the_thesis_is_its_hinge():
    """(b_low - x)_+ + (x - b_high)_+  (section 3.2), outer intervals being one unit long: cost and slope."""
    likelihood = Round(THRESHOLDS, margin=0.0, ends=1.0, smoothing=1e-12)
    bounds = np.concatenate([[THRESHOLDS[0] - 1], THRESHOLDS, [THRESHOLDS[-1] + 1]])
    y, x = (a.ravel() for a in np.meshgrid(np.arange(5), X))
    below, above = bounds[y] - x, x - bounds[y + 1]
    at = likelihood.quadratic(y.astype(float), x)
    assert_allclose(at.cost, np.maximum(below, 0) + np.maximum(above, 0), atol=1e-11)
    assert_array_equal(at.slope, (above > 0).astype(float) - (below > 0))


def test_outer_ends_move_with_their_thresholds():
    likelihood = Round(THRESHOLDS, margin=0.1, ends=1.0, smoothing=0.3)
    y, x = (a.ravel() for a in np.meshgrid(np.arange(5.0), X))
    gradient, _ = likelihood.parameter_gradient(likelihood.parameter_sums(y, x, None))

    def cost(p):
        return likelihood.with_parameters(p).quadratic(y, x).cost.sum()

    p = likelihood.parameters
    differences = [(cost(p + s) - cost(p - s)) / 2e-6 for s in 1e-6 * np.eye(4)]
    assert_allclose(gradient, differences, rtol=1e-4, atol=1e-4)


def test_the_staircase_and_its_curvatures_of_gauss_and_newton():
    likelihood = MultiSigmoid(THRESHOLDS)
    y, x = (a.ravel() for a in np.meshgrid(np.arange(5.0), X))
    stairs = expit(x[:, None] - THRESHOLDS).sum(-1)
    slope = (expit(x[:, None] + 1e-6 - THRESHOLDS).sum(-1) - expit(x[:, None] - 1e-6 - THRESHOLDS).sum(-1)) / 2e-6
    assert_allclose(likelihood.mean(x), stairs, rtol=1e-12)
    assert_allclose(likelihood.quadratic(y, x).curvature, 2 * slope**2, rtol=1e-6, atol=1e-12)
    likelihood = MultiSigmoid(THRESHOLDS)
    y, x = (a.ravel() for a in np.meshgrid(np.arange(5.0), X))
    weight = np.random.default_rng(0).uniform(0.5, 2, y.size)
    _, matrix = likelihood.parameter_gradient(likelihood.parameter_sums(y, x, weight))
    p = likelihood.parameters
    differences = np.array(
        [
            (likelihood.with_parameters(p + s).mean(x) - likelihood.with_parameters(p - s).mean(x)) / 2e-6
            for s in 1e-6 * np.eye(4)
        ]
    )
    assert_allclose(matrix, 2 * (differences * weight) @ differences.T, rtol=1e-5, atol=1e-6)
    values = np.array([1.0, 2.0, 4.0, 4.5, 9.0])
    likelihood = MultiSigmoid(THRESHOLDS, values=values)
    assert_allclose(likelihood.mean(X), 1 + expit(X[:, None] - THRESHOLDS) @ np.diff(values), rtol=1e-12)


def test_linear_rounds_to_the_nearest_level():
    likelihood = Linear(4, 1.7)
    assert_array_equal(likelihood.levels(X), np.clip(np.round(X + 1.7), 0, 4))
    assert_allclose(likelihood.initialize(np.array([1.0, 2.0, 0, 0, 1])).offset, (2 + 4) / 4)
    fixed = Linear(4, 1.7, learned=False)
    assert fixed.initialize(np.ones(5)).offset == 1.7


FAR_APART = [[0.0, 30.0], [25.0, 26.0], [100.0, 200.0], [-70.0, -1.0, 65.0], [-1.0, 0.0, 2.5]]


@pytest.mark.parametrize("thresholds", FAR_APART)
def test_steps_are_sigmoids_however_far_they_lie_from_0_and_from_each_other(thresholds):
    """What is fitted is what is predicted: the cost is that of psi, by SciPy's sigmoid, at all x."""
    tau = np.array(thresholds)
    x = np.concatenate([[-300.0, -50.0, 0.0, 50.0, 300.0], *(t + np.linspace(-6, 6, 7) for t in tau)])
    psi = expit(x[:, None] - tau).sum(axis=1)
    for y in range(tau.size + 1):
        cost = MultiSigmoid(tau).quadratic(np.full_like(x, y), x).cost
        assert_allclose(cost, (y - psi) ** 2, rtol=1e-9, atol=1e-12)
    assert_allclose(MultiSigmoid(tau).mean(x), psi, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("thresholds", [*FAR_APART, [-0.72, -0.49, -0.33, -0.15]])
def test_learned_steps_pass_from_level_to_level_where_they_are_half_way_up(thresholds):
    tau = np.array(thresholds)
    psi = expit(MultiSigmoid(tau).cuts[:, None] - tau).sum(axis=1)
    assert_allclose(psi, np.arange(tau.size) + 0.5, atol=1e-9)
    assert_array_equal(MultiSigmoid(tau, learned=False).cuts, tau)
