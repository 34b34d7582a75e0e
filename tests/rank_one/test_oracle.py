"""The oracle against other truths: finite differences, scipy, closed forms."""

import numpy as np
import pytest
from scipy import optimize, sparse

from . import oracle
from .cases import infimum

NAN = np.nan
with_and_without_weights = pytest.mark.parametrize("weighted", [False, True])


def table(seed, shape=(6, 5), holes=0.3, mean=2.0, weighted=False):
    """Counts with zeros and holes, and weights or none."""
    rng = np.random.default_rng(seed)
    X = np.where(rng.random(shape) < holes, NAN, rng.poisson(mean, shape).astype(float))
    return X, rng.uniform(0.1, 3.0, shape) if weighted else None


def test_the_cost_cell_by_cell():
    X, w, h = np.array([[2.0, NAN, 0.0], [NAN, 3.0, 1.0]]), np.array([0.5, 2.0]), np.array([1.0, 3.0, 0.2])
    of_cells = np.array([2 * np.log(2 / 0.5) - 2 + 0.5, 0.1, 3 * np.log(3 / 6) - 3 + 6, -np.log(0.4) - 0.6])
    assert oracle.cost(X, w, h) == pytest.approx(of_cells.sum(), rel=1e-14)
    C = np.array([[1.0, 7.0, 2.0], [7.0, 0.5, 0.0]])
    assert oracle.cost(X, w, h, C) == pytest.approx(of_cells @ [1, 2, 0.5, 0], rel=1e-14)
    assert oracle.cost(np.array([[1.0]]), np.zeros(1), np.ones(1)) == np.inf


@with_and_without_weights
@pytest.mark.parametrize("seed", range(3))
def test_scipy_finds_the_same_minimum_from_another_start(seed, weighted):
    X, C = table(seed, mean=4.0, holes=0.2, weighted=weighted)

    def cost(t):
        return oracle.cost(X, np.exp(t[:6]), np.exp(t[6:]), C)

    def slope(t):
        return oracle.slope(X, np.exp(t[:6]), np.exp(t[6:]), C)

    at = np.random.default_rng(seed).normal(size=11)
    numeric = [(cost(at + step) - cost(at - step)) / 2e-6 for step in 1e-6 * np.eye(11)]
    np.testing.assert_allclose(slope(at), numeric, rtol=1e-6, atol=1e-6)
    w, h = oracle.best(X, C)
    theirs = optimize.minimize(cost, at, jac=slope, method="L-BFGS-B", options={"ftol": 1e-15}).fun
    assert oracle.cost(X, w, h, C) <= theirs == pytest.approx(oracle.cost(X, w, h, C), rel=1e-9)
    np.testing.assert_allclose(oracle.slope(X, w, h, C), 0.0, atol=1e-12 * np.nansum(X))
    for other in (oracle.best(X, C, seed=1), oracle.kl_wnmf(X, 2000, 0, C), oracle.best_tensor(X, C)):
        np.testing.assert_allclose(np.outer(*other), np.outer(w, h), rtol=1e-10)


def test_without_holes_it_is_ho_and_van_doorens_formula_and_in_a_tensor_no_step_leads_down():
    X, cube = table(4, holes=0.0)[0], np.random.default_rng(0).poisson(3.0, (3, 4, 2)).astype(float)
    np.testing.assert_allclose(np.outer(*oracle.best(X)), np.outer(X.sum(1), X.sum(0)) / X.sum(), rtol=1e-12)
    closed = oracle.fit_tensor([cube.sum((1, 2)), cube.sum((0, 2)), cube.sum((0, 1))]) / cube.sum() ** 2
    np.testing.assert_allclose(oracle.fit_tensor(oracle.best_tensor(cube)), closed, rtol=1e-12)
    cube[0, 1, 0] = cube[2, 0, 1] = NAN
    factors, rng = oracle.best_tensor(cube), np.random.default_rng(0)
    for size in (1e-4, 1e-2, 1.0):
        moved = [factor * np.exp(size * rng.normal(size=factor.size)) for factor in factors]
        assert oracle.cost_tensor(cube, moved) >= oracle.cost_tensor(cube, factors)


@pytest.mark.parametrize("seed", range(10))
def test_parts_are_those_of_scipy_and_the_lowest_cost_is_the_sum_over_the_strong_ones(seed):
    X, _ = table(seed, holes=0.6, mean=0.8)
    seen, positive = ~np.isnan(X), np.nan_to_num(X) > 0
    for found, back, kind in ((oracle.parts(X), seen, "weak"), (oracle.limit_parts(X), positive, "strong")):
        edges = np.block([[np.zeros((6, 6)), seen], [back.T, np.zeros((5, 5))]])
        _, labels = sparse.csgraph.connected_components(sparse.csr_array(edges), connection=kind)
        pairs = set(zip(np.concatenate(found).tolist(), labels.tolist(), strict=True))
        assert len(pairs) == len(set(labels.tolist())) == len(set(np.concatenate(found).tolist()))
    assert oracle.cost(X, *oracle.best(X)) == pytest.approx(infimum(X), abs=1e-10)
