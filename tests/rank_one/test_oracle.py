"""The oracle against other truths: grids, finite differences, scipy."""

import numpy as np
import pytest
from scipy import optimize, sparse, special

from . import oracle

NAN = np.nan


def table(seed, shape=(6, 5), holes=0.3, mean=2.0):
    """Counts with zeros and holes."""
    rng = np.random.default_rng(seed)
    return np.where(rng.random(shape) < holes, NAN, rng.poisson(mean, shape).astype(float))


def weights_of(X, seed=9):
    return np.random.default_rng(seed).uniform(0.1, 3.0, X.shape)


def test_the_cost_cell_by_cell():
    X, w, h = np.array([[2.0, NAN, 0.0], [NAN, 3.0, 1.0]]), np.array([0.5, 2.0]), np.array([1.0, 3.0, 0.2])
    C = np.array([[1.0, 7.0, 2.0], [7.0, 0.5, 0.0]])
    at = {
        (0, 0): 2 * np.log(2 / 0.5) - 2 + 0.5,
        (0, 2): 0.1,
        (1, 1): 3 * np.log(3 / 6) - 3 + 6,
        (1, 2): -np.log(0.4) - 0.6,
    }
    assert oracle.cost(X, w, h) == pytest.approx(sum(at.values()), rel=1e-14)
    assert oracle.cost(X, w, h, C) == pytest.approx(at[0, 0] + 2 * at[0, 2] + 0.5 * at[1, 1], rel=1e-14)
    assert oracle.cost(np.array([[1.0]]), np.zeros(1), np.ones(1)) == np.inf


@pytest.mark.parametrize("weighted", [False, True])
def test_the_slope_by_finite_differences(weighted):
    X = table(0)
    C = weights_of(X) if weighted else None
    logs = np.random.default_rng(1).normal(size=11)

    def cost(t):
        return oracle.cost(X, np.exp(t[:6]), np.exp(t[6:]), C)

    numeric = [(cost(logs + step) - cost(logs - step)) / 2e-6 for step in 1e-6 * np.eye(11)]
    np.testing.assert_allclose(oracle.slope(X, np.exp(logs[:6]), np.exp(logs[6:]), C), numeric, rtol=1e-7, atol=1e-7)


def test_two_by_two_by_a_grid():
    X, C = np.array([[3.0, 1.0], [0.5, 4.0]]), np.array([[1.0, 2.0], [0.3, 1.0]])
    share = np.linspace(0.001, 0.999, 999)
    shares = np.stack([share, 1 - share])
    F = C[:, :, None, None] * shares[:, None, :, None] * shares[None, :, None, :]
    F *= (C * X).sum() / F.sum((0, 1))  # the best scale
    grid = special.kl_div((C * X)[:, :, None, None], F).sum((0, 1)).min()
    found = oracle.cost(X, *oracle.best(X, C), C)
    assert found <= grid <= found + 1e-5


@pytest.mark.parametrize("seed", range(6))
def test_scipy_finds_the_same_minimum(seed):
    X = table(seed, mean=4.0, holes=0.2)
    C = weights_of(X) if seed % 2 else None

    def cost_and_slope(t):
        w, h = np.exp(t[:6]), np.exp(t[6:])
        return oracle.cost(X, w, h, C), oracle.slope(X, w, h, C)

    ours = oracle.cost(X, *oracle.best(X, C), C)
    theirs = optimize.minimize(cost_and_slope, np.zeros(11), jac=True, method="L-BFGS-B", options={"ftol": 1e-15}).fun
    assert ours == pytest.approx(theirs, rel=1e-9)
    assert ours <= theirs


@pytest.mark.parametrize("seed", range(5))
def test_every_start_leads_to_the_same_factors_and_no_step_leads_down(seed):
    X = table(seed, holes=0.2)
    w, h = oracle.best(X)
    for other in range(3):
        for a, b in zip(oracle.best(X, seed=other), (w, h), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-11)
    np.testing.assert_allclose(oracle.slope(X, w, h), 0.0, atol=1e-12 * np.nansum(X))
    rng = np.random.default_rng(seed)
    for size in (1e-4, 1e-2, 1.0):
        moved = (w * np.exp(size * rng.normal(size=6)), h * np.exp(size * rng.normal(size=5)))
        assert oracle.cost(X, *moved) >= oracle.cost(X, w, h)


def test_any_scale():
    scales = np.logspace(-300, 300, 6)
    X = scales[:, None] * table(3, mean=9.0, holes=0.2).clip(1.0)
    log_w, log_h = oracle.best_logs(X)
    w, h = np.exp(log_w + log_h.max()), np.exp(log_h - log_h.max())
    sums = np.concatenate([np.nansum(X, 1), np.nansum(X, 0)])
    np.testing.assert_allclose(oracle.slope(X, w, h) / sums, 0.0, atol=1e-12)


def test_rows_and_columns_without_anything_get_zero():
    X = np.array([[0.0, 0.0, NAN], [1.0, 2.0, NAN], [NAN, NAN, NAN]])
    w, h = oracle.best(X)
    np.testing.assert_allclose(np.outer(w, h), [[0, 0, 0], [1, 2, 0], [0, 0, 0]], rtol=1e-12)
    assert oracle.cost(X, w, h) == pytest.approx(0.0, abs=1e-12)


def test_without_holes_it_is_ho_and_van_doorens_formula():
    X = table(4, holes=0.0)
    np.testing.assert_allclose(np.outer(*oracle.best(X)), np.outer(X.sum(1), X.sum(0)) / X.sum(), rtol=1e-12)
    cube = np.random.default_rng(0).poisson(3.0, (3, 4, 2)).astype(float)
    sums = [cube.sum((1, 2)), cube.sum((0, 2)), cube.sum((0, 1))]
    closed = oracle.fit_tensor(sums) / cube.sum() ** 2
    np.testing.assert_allclose(oracle.fit_tensor(oracle.best_tensor(cube)), closed, rtol=1e-12)


def test_proposition_3_and_its_transposes():
    """Permuted data have the permuted fit, G fit H. The paper prints G' fit H', right for the swaps of Algorithm 1."""
    X = table(5, shape=(4, 4), holes=0.2)
    cycle = np.eye(4)[[1, 2, 3, 0]]
    swap = np.eye(4)[[0, 3, 2, 1]]
    fit = np.outer(*oracle.best(X))
    permuted = np.outer(*oracle.best(X[[1, 2, 3, 0]][:, [0, 3, 2, 1]]))
    np.testing.assert_allclose(permuted, cycle @ fit @ swap, rtol=1e-10)
    assert not np.allclose(permuted, cycle.T @ fit @ swap.T, rtol=1e-2)


def grid_like(seed):
    X = table(seed, holes=0.0)
    X[np.ix_([1, 4], [0, 3])] = NAN
    return X


@pytest.mark.parametrize("seed", range(3))
def test_all_methods_meet_on_grid_like_holes(seed):
    X = grid_like(seed)
    best = np.outer(*oracle.best(X))
    for w, h in (oracle.a1gm(X), oracle.em(X, 1000), oracle.kl_wnmf(X, 1000, seed)):
        np.testing.assert_allclose(np.outer(w, h), best, rtol=1e-11)


@pytest.mark.parametrize("seed", range(3))
def test_elsewhere_a1gm_loses_and_the_others_arrive(seed):
    X = grid_like(seed)
    X[0, 1] = NAN
    lowest = oracle.cost(X, *oracle.best(X))
    assert oracle.cost(X, *oracle.a1gm(X)) > lowest * (1 + 1e-6)
    assert oracle.cost(X, *oracle.em(X, 1)) > lowest * (1 + 1e-6)
    for w, h in (oracle.em(X, 1000), oracle.kl_wnmf(X, 1000)):
        assert oracle.cost(X, w, h) == pytest.approx(lowest, rel=1e-12)


def test_weights_pass_through_kl_wnmf():
    X = table(6, holes=0.2)
    fits = [np.outer(*found) for found in (oracle.kl_wnmf(X, 2000, 0, weights_of(X)), oracle.best(X, weights_of(X)))]
    np.testing.assert_allclose(*fits, rtol=1e-10)


def test_tensors_of_two_axes_are_matrices_and_of_three_are_at_rest():
    X = table(7, holes=0.2)
    for ours, theirs in zip(oracle.best_tensor(X, weights_of(X)), oracle.best(X, weights_of(X)), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)
    cube = table(8, shape=(4, 3, 5), mean=5.0)
    factors = oracle.best_tensor(cube)
    rng = np.random.default_rng(0)
    for size in (1e-4, 1e-2, 1.0):
        moved = [factor * np.exp(size * rng.normal(size=factor.size)) for factor in factors]
        assert oracle.cost_tensor(cube, moved) >= oracle.cost_tensor(cube, factors)
    np.testing.assert_allclose([factor.sum() for factor in factors], factors[0].sum(), rtol=1e-12)


def same_partition(labels, others):
    return len(set(zip(labels, others, strict=True))) == len(set(labels)) == len(set(others))


@pytest.mark.parametrize("seed", range(20))
def test_parts_are_those_of_scipy(seed):
    X = table(seed, holes=0.75, mean=1.0)
    seen = ~np.isnan(X)
    positive = np.nan_to_num(X) > 0
    for found, back, kind in ((oracle.parts(X), seen, "weak"), (oracle.limit_parts(X), positive, "strong")):
        edges = np.block([[np.zeros((6, 6)), seen], [back.T, np.zeros((5, 5))]])
        _, labels = sparse.csgraph.connected_components(sparse.csr_array(edges), connection=kind)
        assert same_partition(np.concatenate(found).tolist(), labels.tolist())


def test_a_minimum_that_is_only_approached():
    """w_1 h_1 = w_2 h_2 = 1 and w_1 h_2 = e cost e, for every e > 0."""
    X = np.array([[1.0, 0.0], [NAN, 1.0]])
    assert [list(side) for side in oracle.parts(X)] == [[0, 0], [0, 0]]
    assert [list(side) for side in oracle.limit_parts(X)] == [[0, 1], [0, 1]]
    for e in (1.0, 1e-3, 1e-9):
        assert oracle.cost(X, np.array([1.0, 1 / e]), np.array([1.0, e])) == pytest.approx(e, abs=1e-15)
    assert 0 < oracle.cost(X, *oracle.best(X)) < 1e-12


@pytest.mark.parametrize("seed", range(30))
def test_the_lowest_cost_is_the_sum_over_the_strong_parts(seed):
    X = table(seed, holes=0.5, mean=0.8)
    of_rows, of_columns = oracle.limit_parts(X)
    lowest = 0.0
    for part in np.intersect1d(of_rows, of_columns):
        inside = X[of_rows == part][:, of_columns == part]
        lowest += oracle.cost(inside, *oracle.best(inside))
    assert oracle.cost(X, *oracle.best(X)) == pytest.approx(lowest, abs=1e-10)
