"""Cumulative links: exact second derivatives, probabilities, and cells very far from where they should be."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from halfseen.likelihoods import LINKS, Cumulative
from tests.graded import oracle
from tests.laws.cases import THRESHOLDS

every_link = pytest.mark.parametrize("link", LINKS)
X = np.linspace(-4, 5, 31)
LOG_CONCAVE = [name for name in LINKS if name != "cauchit"]


def cumulative(link, **wishes):
    return Cumulative(THRESHOLDS, link=LINKS[link], **wishes)


def pairs():
    y, x = np.meshgrid(np.arange(5.0), X)
    return y.ravel(), x.ravel()


@pytest.mark.parametrize("link", LOG_CONCAVE)
def test_curvatures_are_the_second_derivatives(link):
    y, x = pairs()
    up, down = (cumulative(link).quadratic(y, x + way).slope for way in (1e-5, -1e-5))
    assert_allclose(cumulative(link).quadratic(y, x).curvature, (up - down) / 2e-5, rtol=1e-4, atol=1e-7)


def test_where_cauchit_is_not_convex_the_square_of_the_slope_stands_in():
    y, x = pairs()
    likelihood = cumulative("cauchit")
    up, down = (likelihood.quadratic(y, x + way).slope for way in (1e-5, -1e-5))
    second, local = (up - down) / 2e-5, likelihood.quadratic(y, x)
    assert (second < -1e-3).any()
    convex = second > 1e-4
    assert_allclose(local.curvature[convex], second[convex], rtol=1e-3, atol=1e-6)
    concave = second < -1e-4
    assert_allclose(local.curvature[concave], local.slope[concave] ** 2, rtol=1e-12)


@every_link
def test_the_matrix_by_the_thresholds_is_the_second_derivative(link):
    """In units of the thresholds: the chain rule to the parameters has no second part here."""
    y, x = pairs()
    weight = np.random.default_rng(0).uniform(0.5, 2, y.size)
    likelihood = cumulative(link)
    gradient, matrix = likelihood._threshold_gradient(likelihood.parameter_sums(y, x, weight))

    def gradient_at(tau):
        moved = Cumulative(tau, link=LINKS[link])
        return moved._threshold_gradient(moved.parameter_sums(y, x, weight))[0]

    C = weight[None]
    assert_allclose(gradient, oracle.by_thresholds(oracle.cumulative(link), y[None], C, x[None], THRESHOLDS), rtol=1e-5)
    steps = 1e-5 * np.eye(THRESHOLDS.size)
    differences = np.array([(gradient_at(THRESHOLDS + s) - gradient_at(THRESHOLDS - s)) / 2e-5 for s in steps])
    assert_allclose(matrix, differences, rtol=1e-4, atol=1e-4 * np.abs(matrix).max())


@every_link
def test_probabilities(link):
    p = cumulative(link).probabilities(X)
    assert p.shape == (X.size, 5)
    assert_allclose(p.sum(-1), 1, rtol=1e-14)
    assert_allclose(p, oracle.probabilities(link, X, THRESHOLDS), rtol=1e-9, atol=1e-15)
    y, x = pairs()
    assert_allclose(np.exp(-cumulative(link).quadratic(y, x).cost), p.ravel(), rtol=1e-9, atol=1e-14)
    grid = cumulative(link).probabilities(X[:30].reshape(5, 6))
    assert_allclose(grid.reshape(30, 5), p[:30])


@every_link
@pytest.mark.parametrize("values", [None, np.array([1.0, 2.0, 4.0, 4.5, 9.0])], ids=["codes", "values"])
def test_the_mean_is_the_sum_of_values_times_probabilities(link, values):
    likelihood = cumulative(link, values=values)
    v = np.arange(5) if values is None else values
    assert_allclose(likelihood.mean(X), oracle.probabilities(link, X, THRESHOLDS) @ v, rtol=1e-12)


@every_link
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("x", [60.0, 90.0, 1000.0])
def test_a_cell_very_far_from_its_level_costs_much_and_is_pulled_back(link, dtype, x):
    """Never an endless cost, nor no number: a solver could not compare it."""
    y = np.arange(5, dtype=dtype)
    with np.errstate(all="raise", under="ignore"):
        above, below = (cumulative(link).quadratic(y, np.full(5, way * x, dtype)) for way in (1, -1))
    for local in (above, below):
        assert all(np.all(np.isfinite(part)) for part in local)
    assert np.all(above.cost[:4] > 1)
    assert np.all(above.slope[:4] > 0)
    assert np.all(below.cost[1:] > 1)
    assert np.all(below.slope[1:] < 0)
