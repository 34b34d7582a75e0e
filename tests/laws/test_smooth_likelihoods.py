"""What every likelihood with a slope everywhere must obey."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from halfseen.errors import DataError
from halfseen.io import observe
from tests.graded import oracle
from tests.laws.cases import SMOOTHS, THRESHOLDS

every_smooth = pytest.mark.parametrize(("name", "likelihood"), SMOOTHS.items(), ids=SMOOTHS)
each_float = pytest.mark.parametrize("dtype", [np.float32, np.float64])

#: Off the corners of hinges, where differences would see both sides.
X = np.linspace(-5, 6, 45) + 0.00123
STEP = 1e-5


def all_pairs(dtype=np.float64):
    y, x = np.meshgrid(np.arange(5.0), X)
    return y.ravel().astype(dtype), x.ravel().astype(dtype)


def truth(name, likelihood, y, x):
    return oracle.LOSSES[name](y, x, likelihood.thresholds)


@every_smooth
def test_cost_and_slope_are_the_papers(name, likelihood):
    y, x = all_pairs()
    cost, slope = truth(name, likelihood, y, x)
    local = likelihood.quadratic(y, x)
    assert_allclose(local.cost, cost, rtol=1e-10, atol=1e-12)
    assert_allclose(local.slope, slope, rtol=1e-10, atol=1e-12)


@every_smooth
def test_pull_and_push_are_never_negative_and_their_difference_is_the_slope(name, likelihood):
    y, x = all_pairs()
    slope = likelihood.quadratic(y, x).slope
    for pull, push, *cost in (likelihood.pull_push(y, x), likelihood.pull_push_cost(y, x)):
        assert np.all(pull >= 0)
        assert np.all(push >= 0)
        assert_allclose(push - pull, slope, rtol=1e-12, atol=1e-14)
        for one in cost:
            assert_allclose(one, likelihood.divergence(y, x), rtol=1e-12, atol=1e-14)
    assert_allclose(likelihood.divergence(y, x), likelihood.quadratic(y, x).cost, rtol=1e-12, atol=1e-14)
    assert_allclose(likelihood.log_prob(y, x), -likelihood.quadratic(y, x).cost)


@every_smooth
def test_shifted_thresholds_cost_the_same_at_shifted_x_and_stay_apart(name, likelihood):
    y, x = all_pairs()
    for by in (-3.7, 0.4, 1e6):
        moved = likelihood.shifted(by)
        assert_allclose(moved.quadratic(y, x + by).cost, likelihood.quadratic(y, x).cost, rtol=1e-7, atol=1e-8)
        assert np.all(np.diff(moved.thresholds) > 0)


@every_smooth
def test_curvatures_are_never_negative(name, likelihood):
    y, x = all_pairs()
    assert np.all(likelihood.quadratic(y, x).curvature >= 0)


@every_smooth
def test_a_level_is_counted_by_the_thresholds_below(name, likelihood):
    """Where the likelihood cuts the line: learned sigmoids, which may lie close together, where their sum says so."""
    x = np.concatenate([X, likelihood.cuts])
    assert_array_equal(likelihood.levels(x), oracle.grf(x, likelihood.cuts))
    if name != "multi-sigmoid":
        assert_array_equal(likelihood.cuts, likelihood.thresholds)


@every_smooth
@pytest.mark.parametrize("weighted", [False, True])
def test_the_gradient_by_the_parameters(name, likelihood, weighted):
    y, x = all_pairs()
    weight = np.random.default_rng(0).choice([0.5, 1.0, 3.0], y.size) if weighted else None
    gradient, _ = likelihood.parameter_gradient(likelihood.parameter_sums(y, x, weight))

    def cost(parameters):
        return np.sum(likelihood.with_parameters(parameters).quadratic(y, x).cost * (1 if weight is None else weight))

    steps = STEP * np.eye(likelihood.parameters.size)
    p = likelihood.parameters
    differences = [(cost(p + step) - cost(p - step)) / (2 * STEP) for step in steps]
    assert_allclose(gradient, differences, rtol=1e-5, atol=1e-4)


@every_smooth
def test_sums_of_parts_are_parts_of_sums(name, likelihood):
    """Cells are handed out in pieces: their sums must add up."""
    y, x = all_pairs()
    half = y.size // 3
    whole = likelihood.parameter_sums(y, x, None)
    parts = [likelihood.parameter_sums(y[part], x[part], None) for part in (slice(half), slice(half, None))]
    assert_allclose(parts[0] + parts[1], whole, rtol=1e-11, atol=1e-11)


@every_smooth
def test_curvatures_by_the_parameters_are_a_matrix_to_step_by(name, likelihood):
    """Symmetric, and never bent downwards: as far as the costs of cells that x explains go."""
    x = np.repeat(X, 3)
    y = likelihood.levels(x).astype(float)
    _, curvature = likelihood.parameter_gradient(likelihood.parameter_sums(y, x, None))
    assert_allclose(curvature, curvature.T, rtol=1e-12)
    assert np.linalg.eigvalsh(curvature).min() >= -1e-9 * np.abs(curvature).max()


@every_smooth
def test_parameters_there_and_back(name, likelihood):
    again = likelihood.with_parameters(likelihood.parameters)
    assert_allclose(again.thresholds, likelihood.thresholds, rtol=1e-14, atol=1e-14)
    assert type(again) is type(likelihood)
    y, x = all_pairs()
    assert_allclose(again.quadratic(y, x).cost, likelihood.quadratic(y, x).cost, rtol=1e-12, atol=1e-14)


@every_smooth
def test_thresholds_are_ordered_whatever_the_parameters(name, likelihood):
    rng = np.random.default_rng(0)
    for scale in (1e-3, 1.0, 10.0, 100.0):
        for _ in range(20):
            thresholds = likelihood.with_parameters(rng.normal(0, scale, likelihood.parameters.size)).thresholds
            assert np.all(np.isfinite(thresholds))
            assert np.all(np.diff(thresholds) > 0), scale


@every_smooth
def test_the_start_is_the_best_there_is_without_factors(name, likelihood):
    """Where x is 0 everywhere, no other parameters explain the levels better."""
    if name == "round":
        pytest.skip("the thesis starts a unit apart")
    histogram = np.array([3.0, 10.0, 21.0, 5.0, 2.0])
    started = likelihood.initialize(histogram)
    y, x = np.arange(5.0), np.zeros(5)
    gradient, _ = started.parameter_gradient(started.parameter_sums(y, x, histogram))
    assert_allclose(gradient, 0, atol=1e-9)


def test_rounding_starts_a_unit_apart_around_nothing():
    assert_array_equal(SMOOTHS["round"].initialize(np.ones(5)).thresholds, [-1.5, -0.5, 0.5, 1.5])


@every_smooth
@each_float
def test_single_precision_follows_double(name, likelihood, dtype):
    y, x = all_pairs(dtype)
    local = likelihood.quadratic(y, x)
    cost, slope = truth(name, likelihood, y.astype(float), x.astype(float))
    assert {part.dtype for part in local} == {np.dtype(dtype)}
    rtol = 1e-4 if dtype is np.float32 else 1e-10
    assert_allclose(local.cost, cost, rtol=rtol, atol=rtol)
    assert_allclose(local.slope, slope, rtol=10 * rtol, atol=10 * rtol)
    assert likelihood.mean(x).dtype == dtype


@every_smooth
def test_the_mean_rises_with_x_from_the_lowest_value_to_the_highest(name, likelihood):
    from dataclasses import replace

    values = np.array([1.0, 2.0, 4.0, 4.5, 9.0])
    valued = replace(likelihood, values=values)
    mean = valued.mean(X)
    assert np.all(np.diff(mean) >= 0)
    if name == "linear":
        code = X + likelihood.offset
        inside = (code >= 0) & (code <= 4)
        assert_allclose(mean[inside], np.interp(code[inside], np.arange(5), values), rtol=1e-12)
        assert_allclose(np.diff(mean[code > 4]), 4.5 * np.diff(code[code > 4]), rtol=1e-10)
        assert_allclose(np.diff(mean[code < 0]), np.diff(code[code < 0]), rtol=1e-10)
    else:
        assert np.all((mean >= 1 - 1e-12) & (mean <= 9 + 1e-12))
    plain = likelihood.mean(X)
    assert_allclose(replace(likelihood, values=np.arange(5.0)).mean(X), plain, rtol=1e-12, atol=1e-14)
    assert_allclose(replace(likelihood, values=np.arange(5.0) / 2 + 3).mean(X), plain / 2 + 3, rtol=1e-12)


@every_smooth
def test_only_levels_are_legal(name, likelihood):
    assert_array_equal(likelihood.legal(np.array([-1.0, 0.0, 1.5, 4.0, 5.0])), [False, True, False, True, False])
    with pytest.raises(DataError) as error:
        likelihood.check(observe(np.array([[0.0, 1.5], [2.0, 4.0]])), "a model")
    assert (error.value.found, error.value.where) == ("1.5", "at row 0, column 1")


@every_smooth
def test_unseen_cells_can_not_be_zeros(name, likelihood):
    with pytest.raises(DataError) as error:
        likelihood.check(observe(np.array([[0.0, 1.0], [2.0, 4.0]]), unseen="zero"), "a model")
    assert error.value.parameter == "unseen"


@every_smooth
def test_thresholds_may_be_fixed(name, likelihood):
    from dataclasses import replace

    assert replace(likelihood, learned=False).parameters.size == 0
    assert likelihood.parameters.size == (1 if name == "linear" else THRESHOLDS.size)


@every_smooth
@pytest.mark.parametrize("weighted", [False, True])
def test_descent_is_the_weighted_slope_and_the_gradient_by_the_parameters(name, likelihood, weighted):
    """The short way of single cells gives what the long way gives."""
    from dataclasses import replace

    y, x = all_pairs()
    weight = np.random.default_rng(0).choice([0.5, 1.0, 3.0], y.size) if weighted else None
    slope, gradient = likelihood.gradients(y, x, weight)
    assert_allclose(slope, likelihood.quadratic(y, x).slope * (1 if weight is None else weight), rtol=1e-12, atol=1e-14)
    assert_allclose(
        gradient, likelihood.parameter_gradient(likelihood.parameter_sums(y, x, weight))[0], rtol=1e-12, atol=1e-12
    )
    fixed = replace(likelihood, learned=False)
    assert fixed.gradients(y, x, weight)[1].size == 0


def test_the_offset_of_lines_steps_to_its_best_place_at_once():
    """Their cost is a parabola in it."""
    y, x = all_pairs()
    likelihood = SMOOTHS["linear"]
    weight = np.random.default_rng(0).uniform(0.5, 2, y.size)
    moved = likelihood.with_parameters(
        likelihood.parameters + likelihood.parameter_step(likelihood.parameter_sums(y, x, weight))
    )
    assert_allclose(moved.offset, np.average(y - x, weights=weight), rtol=1e-12)
