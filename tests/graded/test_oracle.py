"""The oracle against mathematics: slopes by finite differences, tails by series, known optima."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from tests.graded import oracle

TAU = np.array([-1.2, 0.1, 0.9, 2.0])
every_loss = pytest.mark.parametrize("loss", oracle.LOSSES.values(), ids=oracle.LOSSES)


def cells(seed=0):
    rng = np.random.default_rng(seed)
    Y, C = rng.integers(0, 5, (6, 5)), np.where(rng.random((6, 5)) < 0.3, 0.0, rng.choice([0.5, 1, 2], (6, 5)))
    return Y, C, rng.normal(size=(6, 3)), rng.normal(size=(5, 3))


def test_levels_are_counted_by_thresholds_strictly_below():
    assert_array_equal(oracle.grf([-5.0, -1.2, -1.19, 0.1, 0.5, 2.0, 2.1], TAU), [0, 0, 1, 1, 2, 3, 4])


@every_loss
def test_slopes(loss):
    x = np.linspace(-4, 5, 37) + 0.00123  # off the corners of hinges
    for y in range(5):
        Y = np.full(x.size, y)
        up, down = loss(Y, x + 1e-6, TAU)[0], loss(Y, x - 1e-6, TAU)[0]
        assert_allclose(loss(Y, x, TAU)[1], (up - down) / 2e-6, rtol=1e-5, atol=1e-6)


@every_loss
@pytest.mark.parametrize("prior", [oracle.Prior(0.7), oracle.Prior(0.7, True), oracle.Prior(0.7, True, False)], ids=str)
def test_gradients_of_matrices(loss, prior):
    Y, C, W, H = cells()
    free = [1 - prior.held(3, side) for side in (0, 1)]
    of_W, of_H = oracle.slopes(loss, Y, C, W, H, TAU, prior)
    for F, down, may in ((W, of_W, free[0]), (H, of_H, free[1])):
        for entry in np.ndindex(F.shape):
            step = np.zeros_like(F)
            step[entry] = 1e-5
            at = [
                oracle.objective(loss, Y, C, *((F + way, H) if F is W else (W, F + way)), TAU, prior)
                for way in (step, -step)
            ]
            assert_allclose(down[entry], may[entry[1]] * (at[0] - at[1]) / 2e-5, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("link", oracle.NOISES)
def test_probabilities_are_the_exponents_of_costs_and_sum_to_one(link):
    x = np.linspace(-3, 4, 15)
    p = oracle.probabilities(link, x, TAU)
    assert_allclose(p.sum(-1), 1, rtol=1e-14)
    for y in range(5):
        assert_allclose(p[:, y], np.exp(-oracle.cumulative(link)(np.full(15, y), x, TAU)[0]), rtol=1e-12, atol=1e-15)


def test_masses_in_the_tails_are_their_leading_terms():
    """log(F(b) - F(a)) far out: for logit e^a (e^(b-a) - 1) below, for cauchit (b - a) / (pi a b)."""
    a, b = np.array([-30.0, -300.0]), np.array([-29.0, -299.5])
    assert_allclose(oracle.log_mass(oracle.NOISES["logit"], a, b), a + np.log(np.expm1(b - a)), rtol=1e-12)
    assert_allclose(oracle.log_mass(oracle.NOISES["logit"], -b, -a), a + np.log(np.expm1(b - a)), rtol=1e-12)
    assert_allclose(oracle.log_mass(oracle.NOISES["cauchit"], a, b), np.log((b - a) / (np.pi * a * b)), rtol=1e-3)


def test_regression_of_two_levels_on_nothing_is_the_log_odds():
    """An endless prior tells no rows and columns apart: the threshold parts the noise as the levels part the cells."""
    Y = np.array([[0, 1, 1, 1], [1, 0, 1, 1]])
    x, tau = oracle.ordinal_regression("logit", Y, np.ones((2, 4)), 1e9)
    assert_allclose(x, 0, atol=1e-6)
    assert_allclose(tau, np.log(2 / 6), atol=1e-6)


def test_the_best_row_of_squares_is_ridge_regression():
    rng = np.random.default_rng(0)
    G, y = rng.normal(size=(9, 3)), rng.integers(0, 3, 9)
    penalty, centre = np.array([0.5, 1.0, 2.0]), np.array([0.1, -0.2, 0.3])
    found = oracle.best_row(
        oracle.linear, y, np.ones(9), G, np.array([0.5, 1.5]), penalty, centre, np.zeros(3), np.ones(3)
    )
    truth = np.linalg.solve(2 * G.T @ G + np.diag(penalty), 2 * G.T @ y + penalty * centre)
    assert_allclose(found, truth, atol=1e-7)
