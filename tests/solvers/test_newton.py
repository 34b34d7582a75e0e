"""Newton's method by rows against optima that others find."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import linalg, optimize
from sklearn.linear_model import Ridge as SklearnRidge

from halfseen.engines import Side
from halfseen.fitting import run
from halfseen.folding import fold_in
from halfseen.io import observe
from halfseen.likelihoods import LINKS, Cumulative, Linear, MultiSigmoid, Round
from halfseen.model import Status
from halfseen.solvers import SGD, Newton, PointFactor, Ridge
from tests import oracle
from tests.graded import oracle as graded
from tests.laws.cases import SMOOTHS, THRESHOLDS, levels, open_problem, signed_start, states, weights_for

TAU = THRESHOLDS


def second_derivative(name, Y, x, tau):
    if name == "multi-sigmoid":  # Gauss and Newton's
        steps = 1 / (1 + np.exp(tau - x[..., None]))
        return 2 * (steps * (1 - steps)).sum(-1) ** 2
    up, down = (graded.LOSSES[name](Y, x + way, tau)[1] for way in (1e-5, -1e-5))
    return (up - down) / 2e-5


@pytest.mark.parametrize("name", ["linear", "multi-sigmoid", "logit", "probit", "cloglog", "loglog"])
@pytest.mark.parametrize("biases", [False, True])
def test_a_half_step_is_the_dense_step_of_newton(name, biases):
    likelihood = SMOOTHS[name]
    Y = levels(blanks=False)
    observed = observe(Y, cell_weight=weights_for(Y))
    values, C = oracle.grid(observed)
    ridge, prior = Ridge(5.0, biases), graded.Prior(5.0, biases)  # stiff: no row must try a shorter step
    W, H = (prior.with_biases(F, side) for side, F in enumerate(signed_start(*Y.shape, 2)))
    x = W @ H.T
    slope = C * graded.LOSSES[name](values, x, likelihood.thresholds)[1]
    curvature = C * second_derivative(name, values, x, likelihood.thresholds)
    k = W.shape[1]
    truth = graded.newton_half(slope, curvature, W, H, prior.weights(k), prior.centre(k, 0), prior.held(k, 0))
    with open_problem(likelihood, observed) as problem:
        moved = Newton(ridge).half_step(problem, PointFactor(W), PointFactor(H), Side.ROWS).mean
    assert_allclose(moved, truth, rtol=1e-4, atol=1e-6)


def test_a_half_step_of_squares_is_ridge_regression_row_by_row():
    """cost (y - x)^2 and l2 / 2 |f|^2: scikit-learn's alpha is l2 / 2."""
    Y = levels(blanks=False)
    W, H = signed_start(*Y.shape, 3)
    solver = Newton(Ridge(0.8, centred=False))
    with open_problem(Linear(4, learned=False), observe(Y)) as problem:
        moved = solver.half_step(problem, PointFactor(W), PointFactor(H), Side.ROWS)
    for row, found in zip(Y, moved.mean, strict=True):
        seen = ~np.isnan(row)
        truth = SklearnRidge(alpha=0.4, fit_intercept=False, solver="cholesky").fit(H[seen], row[seen])
        assert_allclose(found, truth.coef_, rtol=1e-9)


@pytest.mark.parametrize("name", [name for name in SMOOTHS if name != "round"])
@pytest.mark.parametrize("biases", [False, True])
def test_nothing_lower_is_near_where_a_run_ends(name, biases):
    """L-BFGS, moving factors, biases and thresholds all at once, finds no way down from there. (Hinges have corners, at
    which to move one side after the other gets stuck: what "round" must show is told by its zeros.)"""
    Y = levels(8, 7, blanks=False, holes=0.2)
    observed = observe(Y, cell_weight=weights_for(Y))
    values, C = oracle.grid(observed)
    ridge, prior = Ridge(0.8, biases), graded.Prior(0.8, biases)
    W, H = (prior.with_biases(F, side) for side, F in enumerate(signed_start(*Y.shape, 2)))
    with open_problem(SMOOTHS[name], observed) as problem:
        fit = run(problem, Newton(ridge), lambda: (W, H), max_iter=800, tol=1e-11)
    place = fit.rows.mean, fit.columns.mean, fit.likelihood.thresholds
    ours = graded.objective(graded.LOSSES[name], values, C, *place, prior)
    assert_allclose(fit.trace["objective"][-1], ours, rtol=1e-9)
    if name == "linear":  # L-BFGS would move each threshold by itself
        lowest = graded.lowest(graded.LOSSES[name], values, C, *place, prior, learned=False)
    else:
        lowest = graded.lowest(graded.LOSSES[name], values, C, *place, prior)
    # Stairs that want to be one step come nearer and nearer to each other, and never arrive.
    assert lowest >= ours * (1 - (1e-3 if name == "multi-sigmoid" else 1e-5))


@pytest.mark.parametrize("name", [name for name in SMOOTHS if name not in ("multi-sigmoid", "cauchit", "round")])
def test_rows_folded_in_are_at_their_one_optimum(name):
    """With the columns fixed, the loss of a row is convex."""
    Y = levels(7, 11, blanks=False, seed=3)
    observed = observe(Y, cell_weight=weights_for(Y))
    values, C = oracle.grid(observed)
    ridge, prior = Ridge(0.6, True), graded.Prior(0.6, True)
    H = prior.with_biases(signed_start(1, 11, 2)[1] * 2, 1)
    H[:, -1] = np.linspace(-1, 1, 11)
    centre, held, start = prior.centre(4, 0), prior.held(4, 0), np.array([0.3, -0.2, 0.1, 1.0])
    with open_problem(SMOOTHS[name], observed) as problem:
        found = fold_in(problem, Newton(ridge), PointFactor(H), start, max_iter=500, tol=1e-12).mean
    for row in range(7):
        truth = graded.best_row(
            graded.LOSSES[name], values[row], C[row], H, SMOOTHS[name].thresholds,
            prior.weights(4), centre, held, centre,
        )  # fmt: skip
        assert_allclose(found[row], truth, rtol=1e-5, atol=1e-5)


def test_rows_that_a_step_would_make_worse_take_it_shorter_or_stay():
    """Far out on the staircase the curvature of Gauss and Newton is next to nothing: the first step is too long."""
    likelihood = MultiSigmoid(np.array([0.0]), learned=False)
    Y = np.array([[1.0, 1.0], [0.0, 1.0]])
    H = np.array([[1.0], [1.0]])
    W = np.array([[-6.0], [0.3]])
    solver = Newton(Ridge(0.0))
    with open_problem(likelihood, observe(Y)) as problem:
        x = problem.engine.sddmm(problem.cells, W, H)
        before = problem.quadratic(x).cost.reshape(2, 2).sum(1)
        moved = solver.half_step(problem, PointFactor(W), PointFactor(H), Side.ROWS).mean
        after = problem.quadratic(problem.engine.sddmm(problem.cells, moved, H)).cost.reshape(2, 2).sum(1)
    assert np.all(after <= before)
    steps = 1 / (1 + np.exp(-W[1]))
    slope = 2 * ((steps - 0) + (steps - 1)) * steps * (1 - steps)
    assert_allclose(moved[1], W[1] - slope / (4 * (steps * (1 - steps)) ** 2), rtol=1e-10)  # the whole step
    # At a corner of a hinge that pulls both ways with different weights there may be no better place at all.
    likelihood = Round(np.array([0.0]), learned=False, margin=0.0, smoothing=1e-9)
    solver = Newton(Ridge(0.0))
    W, H = np.zeros((1, 1)), np.ones((2, 1))
    with open_problem(likelihood, observe(np.array([[0.0, 1.0]]))) as problem:
        moved = solver.half_step(problem, PointFactor(W), PointFactor(H), Side.ROWS).mean
    assert abs(moved[0, 0]) < 1e-8


@pytest.mark.parametrize("link", ["logit", "probit"])
def test_biases_alone_are_ordinal_regression(link):
    """Factors that start at 0 on both sides stay there: what moves is convex, and has one optimum."""
    Y = levels(12, 9, blanks=False)
    observed = observe(Y)
    values, C = oracle.grid(observed)
    prior = graded.Prior(1.5, True, centred=False)
    W, H = (prior.with_biases(np.zeros((size, 1)), side) for side, size in enumerate(Y.shape))
    solver = Newton(Ridge(1.5, True, centred=False))
    *_, last = states(solver, Cumulative(TAU, link=LINKS[link]), observed, W, H, 100)
    x, tau = graded.ordinal_regression(link, values, C, 0.5)
    found = last.rows.mean @ last.columns.mean.T
    assert_array_equal(last.rows.mean[:, 0], 0)
    assert_allclose(found, x, atol=2e-4)
    assert_allclose(last.likelihood.thresholds, tau, atol=2e-4)


# What rows, columns and thresholds have in common


def with_ones(rng, k):
    """Random [w, b, 1] and [h, 1, c], far from where the penalty is low."""
    W, H = rng.normal(1.0, 1.0, (9, k + 2)), rng.normal(-1.0, 1.0, (7, k + 2))
    W[:, -1], H[:, -2] = 1.0, 1.0
    return W, H


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("learned", [False, True])
@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("k", [1, 2, 3])
def test_recentring_changes_no_cost_and_leads_to_the_lowest_penalty(k, centred, learned, seed):
    """BFGS finds nothing lower among all (w + v) @ (h + z) + b' + c' that are x + s; nor does any mirror image."""
    W, H = with_ones(np.random.default_rng(seed), k)
    ridge, prior = Ridge(2.0, True, centred), graded.Prior(2.0, True, centred)
    x, total, costs = W @ H.T, 0.0, []
    for _ in range(300):
        (of_W, of_H), shift = ridge.recentring([W.T @ W, H.T @ H], learned)
        W, H, total = W @ of_W, H @ of_H, total + shift
        costs.append(prior.cost(W, 0) + prior.cost(H, 1))
    assert_allclose(W @ H.T, x + total, atol=1e-9)
    assert_array_equal(W[:, -1], 1)
    assert_array_equal(H[:, -2], 1)
    assert np.all(np.diff(costs) <= 1e-12 * costs[0])
    assert learned or total == 0

    def cost(z):
        v, to, r, s = z[:k], z[k : 2 * k], z[-2], z[-1] if learned else 0.0
        there, other = W.copy(), H.copy()
        there[:, :k] += v
        other[:, :k] += to
        there[:, -2] += r - W[:, :k] @ to
        other[:, -1] += s - r - v @ to - H[:, :k] @ v
        assert_allclose(there @ other.T, W @ H.T + s, atol=1e-6)
        return prior.cost(there, 0) + prior.cost(other, 1)

    assert_allclose(optimize.minimize(cost, np.zeros(2 * k + 2)).fun, costs[-1], rtol=1e-6)
    for j, centre in enumerate(prior.centre(k + 2, 0)[:k]):
        mirrored, other = W.copy(), H.copy()
        mirrored[:, j], other[:, j], other[:, -1] = 2 * centre - W[:, j], -H[:, j], H[:, -1] + 2 * centre * H[:, j]
        assert_allclose(mirrored @ other.T, W @ H.T, atol=1e-9)
        assert prior.cost(mirrored, 0) + prior.cost(other, 1) >= costs[-1] - 1e-9


# Saddles


def planted(seed, n=50, m=9):
    """Levels by one trait of the rows, to which columns respond with either sign."""
    rng = np.random.default_rng(seed)
    return np.digitize(
        rng.normal(size=(n, 1)) * rng.normal(size=m) + 0.5 * rng.normal(size=(n, m)), [-1, -0.3, 0.3, 1.0]
    )


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("biases", [False, True])
@pytest.mark.parametrize("solver", [Newton, lambda ridge: SGD(ridge, 0.3, 20, np.random.RandomState(0))])
def test_a_run_that_starts_on_a_saddle_leaves_it(solver, biases, seed):
    """Factors of 0 on both sides have no slope: an epoch keeps them, a run does not."""
    observed, ridge = observe(planted(seed).astype(float)), Ridge(2.0, biases, centred=False)
    start = [ridge.with_biases(np.zeros((size, 1)), side) for size, side in zip(observed.shape, Side, strict=True)]
    *_, saddle = states(Newton(ridge), SMOOTHS["logit"], observed, *start, 60)
    with open_problem(SMOOTHS["logit"], observed) as problem:
        left = run(problem, solver(ridge), lambda: start, max_iter=100, tol=1e-4)
        other = [ridge.with_biases(F, side) for F, side in zip(signed_start(50, 9, 1), Side, strict=True)]
        truth = run(problem, Newton(ridge), lambda: other, max_iter=200, tol=1e-9)
    assert_array_equal(saddle.rows.mean[:, 0], 0)
    assert left.status is Status.CONVERGED
    assert left.trace["objective"][-1] < 1.001 * truth.trace["objective"][-1] < 0.95 * saddle.objective


@pytest.mark.parametrize("biases", [False, True])
def test_factors_stay_at_zero_if_no_singular_value_of_the_slopes_is_above_l2(biases):
    """Then 0 is the best place, as SciPy's singular values say."""
    observed = observe(planted(0).astype(float))
    values, C = oracle.grid(observed)
    for l2 in (8.0, 80.0):
        ridge = Ridge(l2, biases, centred=False)
        start = [ridge.with_biases(np.zeros((size, 1)), side) for size, side in zip(observed.shape, Side, strict=True)]
        *_, still = states(Newton(ridge), SMOOTHS["logit"], observed, *start, 60)
        slopes = graded.LOSSES["logit"](values, still.rows.mean @ still.columns.mean.T, still.likelihood.thresholds)[1]
        is_saddle = linalg.svdvals(C * slopes)[0] > l2
        with open_problem(SMOOTHS["logit"], observed) as problem:
            fit = run(problem, Newton(ridge), lambda start=start: start, max_iter=100, tol=1e-6)
        assert is_saddle == (l2 == 8.0)
        assert bool(np.any(fit.rows.mean[:, 0])) == is_saddle


def test_ends_of_runs():
    """Their loss is nothing but the distance from it, and one step takes it away."""
    *_, last = states(Newton(Ridge(0.5)), SMOOTHS["logit"], observe(levels()), *signed_start(14, 11, 2), 1)
    assert_allclose(last.rows.mean[5], graded.Prior(0.5).centre(2, 0), atol=1e-12)
    assert_allclose(last.columns.mean[7], graded.Prior(0.5).centre(2, 1), atol=1e-12)
    observed = observe(levels())
    W, H = signed_start(14, 11, 2)
    with open_problem(SMOOTHS["logit"], observed) as problem:
        begun = Newton(Ridge(0.5)).init_state(problem, W, H).objective
        fit = run(problem, Newton(Ridge(0.5)), lambda: (W, H), max_iter=500, tol=1e-3)
    gains = -np.diff(np.append(begun, fit.trace["objective"])) / begun
    assert fit.status is Status.CONVERGED
    assert np.all(gains[:-1] > 1e-3)
    assert gains[-1] <= 1e-3


@pytest.mark.parametrize("biases", [False, True])
@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("k", [1, 2, 5])
def test_the_ridge_is_the_oracles(biases, centred, k):
    size = k + 2 * biases
    ridge, prior = Ridge(2.0, biases, centred), graded.Prior(2.0, biases, centred)
    for number, side in enumerate(Side):
        penalty = ridge.penalty(size, side)
        assert_allclose(penalty.l2, prior.weights(size))
        assert_allclose(penalty.centre, prior.centre(size, number))
        assert_array_equal(penalty.fixed, prior.held(size, number))


def test_a_random_start_is_small_and_of_both_signs():
    with open_problem(SMOOTHS["logit"], observe(levels())) as problem:
        W = Newton(Ridge(0.5)).random(problem, (2000, 3), np.random.RandomState(0))
    assert (W.shape, abs(W.mean()) < 0.01) == ((2000, 3), True)
    assert_allclose(W.std(), 0.1, rtol=0.05)


@pytest.mark.parametrize("biases", [False, True])
def test_a_start_is_around_the_centre_with_biases_of_nothing_beside_ones(biases):
    F = np.full((3, 2), 0.5, np.float32)
    for number, side in enumerate(Side):
        started = Ridge(1.0, biases).initialize(F, side)
        assert started.dtype == np.float32
        assert_allclose(
            started[1], graded.Prior(1.0, biases).centre(2 + 2 * biases, number) + [0.5, 0.5, 0, 0][: 2 + 2 * biases]
        )
