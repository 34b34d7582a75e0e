"""The squared model's oracle against finite differences, scipy's optimiser, and the probabilities of the levels."""

import numpy as np
import pytest
from scipy import optimize, sparse

from . import noises, squared


def case(seed=0, shape=(8, 7), K=3, missing=0.0):
    random = np.random.default_rng(seed)
    Y = random.integers(0, 4, shape) * (random.random(shape) < 0.7)
    Y.flat[:4] = np.arange(4)
    S = squared.level_weights(Y) * (random.random(shape) >= missing)
    return Y, S, *squared.start(Y, K, random)


def test_the_objective_cell_by_cell():
    Y, S, W, H, D = case()
    assert D.sum() == pytest.approx(1, rel=1e-14)
    thresholds = 1 / np.cumsum(D[::-1])[::-1]
    logs = noises.log_probabilities((W @ H.T) ** 2, thresholds)
    expected = (S * np.take_along_axis(logs, Y[..., None], -1)[..., 0]).sum() - 0.7 / 2 * sum(
        (F**2).sum() for F in (W, H)
    )
    assert squared.objective(Y, S, W, H, D, 0.7) == pytest.approx(expected, rel=1e-11)


def test_weights_of_levels():
    np.testing.assert_allclose(squared.level_weights(np.array([[0, 1], [5, 3]])), [[1, 1 / 3], [5 / 3, 1]])


@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_pull_less_push_is_the_gradient(missing):
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


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("l2", [0.0, 0.5, 5.0])
@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_the_square_root_step_never_falls(seed, l2, missing):
    Y, S, W, H, D = case(seed, missing=missing)
    values = [squared.objective(Y, S, W, H, D, l2)]
    for _ in range(40):
        W = squared.half_step(Y, S, W, H, D, l2)
        values.append(squared.objective(Y, S, W, H, D, l2))
        H = squared.half_step(Y.T, S.T, H, W, D, l2)
        values.append(squared.objective(Y, S, W, H, D, l2))
        D = squared.pinned_decrements(Y, S, W, H, D)
        values.append(squared.objective(Y, S, W, H, D, l2))
        assert D.sum() == pytest.approx(1, rel=1e-12)
    assert np.diff(values).min() > -1e-10
    assert values[-1] > values[0] + 1


def test_the_square_root_step_maximises_its_minorant():
    """f_k = f'_k sqrt(P / Q) by scipy: for one row, the minorant that the docstring derives."""
    Y, S, W, H, D = case(2)
    l2, y, s, old, x = 0.7, Y[0], S[0], W[0], W[0] @ H.T
    theta = np.append(np.cumsum(D[::-1])[::-1], 0.0)
    push, z = np.where(y > 0, theta[np.maximum(y - 1, 0)], 1.0), D[np.maximum(y - 1, 0)] * x**2
    n, phi = np.where(y > 0, z / -np.expm1(-z), 0.0), old * H / x[:, None]

    def minorant(logs):
        f = np.exp(logs)
        return ((s * 2 * n) @ (phi @ logs)) - (s * push * x**2) @ (phi @ (f / old) ** 2) - l2 / 2 * (f**2).sum()

    found = optimize.minimize(lambda t: -minorant(t), np.log(old), method="BFGS", options={"gtol": 1e-8})
    np.testing.assert_allclose(squared.half_step(Y, S, W, H, D, l2)[0], np.exp(found.x), rtol=1e-5)


def test_pinned_decrements_are_the_best_on_the_simplex():
    Y, S, W, H, D = case(3)
    rate = (W @ H.T) ** 2
    z = D[np.maximum(Y - 1, 0)] * rate
    n = S * np.where(Y > 0, z / -np.expm1(-z), 0.0)
    N = np.array([n[v == Y].sum() for v in (1, 2, 3)])
    R = np.array([(S * rate)[v >= Y].sum() for v in (1, 2, 3)])

    def cost(logits):
        shares = np.exp(logits - np.logaddexp.reduce(logits))
        return -(N @ np.log(shares) - R @ shares)

    best = optimize.minimize(cost, np.zeros(3), method="BFGS", options={"gtol": 1e-8}).x
    np.testing.assert_allclose(
        squared.pinned_decrements(Y, S, W, H, D), np.exp(best - np.logaddexp.reduce(best)), rtol=1e-5
    )


def test_a_level_without_cells_gets_no_room():
    Y, S, W, H, _ = case(4)
    Y = np.where(Y == 2, 3, Y)
    D = squared.pinned_decrements(Y, S, W, H, np.array([0.3, 0.3, 0.4]))
    assert D[1] == 0
    assert D.sum() == pytest.approx(1, rel=1e-12)


def test_it_ends_where_an_optimiser_ends():
    """K = 1, thresholds held: scipy from the end of the run finds nothing better nearby."""
    Y, S, W, H, D = case(5, K=1)
    l2, W, H = 0.5, W + 0.1, H + 0.1
    for _ in range(3000):
        W = squared.half_step(Y, S, W, H, D, l2)
        H = squared.half_step(Y.T, S.T, H, W, D, l2)

    def cost(logs):
        return -squared.objective(Y, S, np.exp(logs[:8, None]), np.exp(logs[8:, None]), D, l2)

    end = np.log(np.concatenate([W[:, 0], H[:, 0]]))
    found = optimize.minimize(cost, end + 0.1, method="BFGS", options={"gtol": 1e-7})
    assert cost(end) == pytest.approx(found.fun, rel=1e-9)
    assert np.abs(optimize.approx_fprime(end, cost, 1e-6)).max() < 1e-3


def test_large_exponents_can_fall():
    """Why an exponent above 1 / 2 needs a guard."""
    Y, S, W, H, D = case(6, K=1)
    records = squared.squared_ordnmf(Y, S, W, H, D, 0.1, 60, exponent=1.1)
    assert np.diff([value for *_, value in records]).min() < -1e-6


def test_the_start_has_the_density_as_rate():
    Y = sparse.random_array((300, 200), density=0.05, rng=0, data_sampler=lambda size: np.full(size, 2)).toarray()
    W, H, _ = squared.start(Y.astype(int), 50, np.random.default_rng(0))
    assert ((W @ H.T) ** 2).mean() == pytest.approx(0.05, rel=0.2)
