"""Newton's method: its derivatives by finite differences, its systems by a dense solver, its steps by the cost."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from halfseen import Status, observe
from halfseen.engines.threads import Threads
from halfseen.rank_one import DenseTable, ListedTable, newton, parts_of

from . import oracle
from .cases import NAN, TABLES, blocks, chain, factors, fitted, gammas, holed, living_parts, sums_of, tree, weights_for

THREADS = Threads(1)
MATRICES = ["whole", "few holes", "half of it", "few seen", "sparse counts", "dead lines", "chain", "parts", "uneven"]


def cube(seed=0, share=0.3, shape=(4, 3, 5)):
    return holed(gammas(shape, seed), share, seed)


def parts_and_truth(X, weighted=False):
    """The parts of a table of any order, and its cost as a function of the logarithms of the factors."""
    C = weights_for(X) if weighted else None
    inner = X.shape[1:] if X.ndim > 2 else None
    flat = X.reshape(len(X), -1)
    table = (
        DenseTable(flat, THREADS, inner)
        if C is None
        else ListedTable(observe(flat, cell_weight=C.reshape(flat.shape)), inner)
    )
    splits = np.cumsum(X.shape)[:-1]
    parts = parts_of(table, table.condensed)
    if parts.marginals.merged is not None:  # one by one, to compare with the oracle
        table = ListedTable(observe(flat), inner)
        parts = parts_of(table, table.condensed)

    def cost(logs):
        return oracle.cost_tensor(X, [np.exp(log) for log in np.split(logs, splits)], C)

    return parts, cost, splits


def point(parts, logs, splits):
    return newton._Point(tuple(np.exp(log) for log in np.split(logs, splits)), parts, THREADS)


def drawn(parts, seed, count=1):
    """Random logarithms; those of lines that sum to 0 are as after a sweep: -800, the logarithm of 0."""
    lives = np.concatenate(parts.marginals.sums) > 0
    drawn = np.random.default_rng(seed).normal(size=(count, lives.size))
    drawn[0, ~lives] = -800.0
    return drawn[0] if count == 1 else drawn


def totals(parts):
    """What the part of each line sums to; 1 where it belongs to none."""
    first = parts.of[0]
    sums = [parts.marginals.sums[0][first == part].sum() for part in range(parts.count)]
    return np.array([sums[part] if part >= 0 else 1.0 for part in np.concatenate(parts.of)])


def derivatives(cost, logs, step=1e-4):
    """By central differences of fourth order."""

    def along(by):
        return 8 * (cost(logs + by) - cost(logs - by)) - cost(logs + 2 * by) + cost(logs - 2 * by)

    return np.array([along(unit) for unit in np.eye(logs.size) * step]) / (12 * step)


CASES = [(TABLES[name], weighted) for name in MATRICES for weighted in (False, True)] + [
    (cube(), False), (cube(1), True), (cube(2, 0.8), False), (cube(3, 0.2, (3, 2, 4, 2)), True),
]  # fmt: skip


@pytest.mark.parametrize(("X", "weighted"), CASES)
def test_the_gradient_by_finite_differences(X, weighted):
    parts, cost, splits = parts_and_truth(X, weighted)
    logs = drawn(parts, 0)
    here = point(parts, logs, splits)
    numeric = derivatives(cost, logs) / totals(parts)
    assert_allclose(here.gradient[here.lives], numeric[here.lives], rtol=1e-7, atol=1e-8)
    assert not here.gradient[~here.lives].any()


@pytest.mark.parametrize(("X", "weighted"), CASES)
def test_the_curvature_by_finite_differences_of_the_gradient(X, weighted):
    parts, _, splits = parts_and_truth(X, weighted)
    logs, direction = drawn(parts, 1, 2)
    here = point(parts, logs, splits)
    direction = np.where(here.lives, direction, 0.0)
    step = 1e-4

    def sums(t):
        return point(parts, logs + t * step * direction, splits).sums

    numeric = (8 * (sums(1) - sums(-1)) - sums(2) + sums(-2)) / (12 * step)
    found = here.curvature(direction)
    assert_allclose(found, numeric, rtol=1e-7, atol=1e-9 * np.abs(numeric).max())


@pytest.mark.parametrize(("X", "weighted"), CASES)
def test_the_rise_is_that_of_the_cost(X, weighted):
    parts, _, splits = parts_and_truth(X, weighted)
    C = weights_for(X) if weighted else None
    logs, by = drawn(parts, 2, 2)
    here = point(parts, logs, splits)
    by = np.where(here.lives, by, 0.0)
    moved = here.moved(by)
    with np.errstate(divide="ignore"):
        assert_allclose(
            np.concatenate([np.log(factor) for factor in moved])[here.lives], (logs + by)[here.lives], atol=1e-13
        )
    expected = np.empty(parts.count)
    for part in range(parts.count):  # each as a share of what it sums to
        inside = (parts.of[0] == part).reshape(-1, *[1] * (X.ndim - 1))
        alone = np.where(inside, X, NAN)
        after, before = (oracle.cost_tensor(alone, at, C) for at in (moved, here.factors))
        expected[part] = (after - before) / parts.marginals.sums[0][parts.of[0] == part].sum()
    assert_allclose(here.rise(moved, by), expected, rtol=1e-9, atol=1e-12)


def test_systems_are_solved():
    rng = np.random.default_rng(3)
    root = rng.normal(size=(12, 12))
    matrix = root @ root.T + np.diag(10.0 ** rng.uniform(-3, 3, 12))
    right = rng.normal(size=12)
    found = newton._solved(lambda x: matrix @ x, right, np.diag(matrix).copy())
    rest = right - matrix @ found
    assert rest @ (rest / np.diag(matrix)) <= 1e-6 * (right @ (right / np.diag(matrix)))
    diagonal = np.diag(matrix).copy()
    diagonal[4] = 0.0
    alone = np.arange(12) != 4
    found = newton._solved(lambda x: np.where(alone, matrix @ x, 0.0), np.where(alone, right, 0.0), diagonal)
    assert found[4] == 0.0
    assert not newton._solved(lambda x: matrix @ x, np.zeros(12), np.diag(matrix).copy()).any()


def test_a_free_scale_is_no_trouble():
    """The matrix is singular, and the right side does not see it."""
    laplace = 2 * np.eye(5) - np.eye(5, k=1) - np.eye(5, k=-1)
    laplace[0, 0] = laplace[4, 4] = 1.0
    right = np.array([1.0, -2.0, 0.5, 1.5, -1.0])
    found = newton._solved(lambda x: laplace @ x, right, np.diag(laplace).copy())
    assert_allclose(laplace @ found, right, atol=5e-3)


@pytest.mark.parametrize("X", [TABLES["parts"], TABLES["dead lines"], chain(9), cube(5), cube(6, 0.9, (5, 4, 3))])
def test_a_direction_freed_of_its_drift_moves_the_product_as_before(X):
    parts, _, splits = parts_and_truth(X)
    logs, direction = drawn(parts, 4, 2)
    here = point(parts, logs, splits)
    direction = np.where(here.lives, direction, 0.0)
    freed = newton._without_drift(direction, here.sums, parts)

    def moves(by):
        return sum(np.meshgrid(*np.split(by, splits), indexing="ij"))

    of = np.meshgrid(*parts.of, indexing="ij")
    inside = np.all([other == of[0] for other in of], axis=0) & (of[0] >= 0)
    assert_allclose(moves(freed)[inside], moves(direction)[inside], atol=1e-12)
    assert not freed[~here.lives].any()
    for by, weight, labels in list(zip(np.split(freed, splits), np.split(here.sums, splits), parts.of, strict=True))[
        1:
    ]:
        for part in range(parts.count):
            assert (by * weight)[labels == part].sum() == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize(("X", "weighted"), CASES)
def test_a_step_leads_down_and_nowhere_from_the_end(X, weighted):
    parts, cost, splits = parts_and_truth(X, weighted)
    C = weights_for(X) if weighted else None
    logs = 0.5 * np.random.default_rng(5).normal(size=sum(X.shape))
    lives = np.concatenate(parts.marginals.sums) > 0
    logs[~lives] = -800.0  # as after a sweep: 0
    costs, at = [cost(logs)], tuple(np.exp(log) for log in np.split(logs, splits))
    for _ in range(25):
        at, change = newton.newton_step(at, parts, THREADS)
        costs.append(oracle.cost_tensor(X, at, C))
        if change < 1e-10:
            break
    rounding = 1e-12 * (costs[0] + parts.marginals.total)
    assert np.all(np.diff(costs) <= rounding)
    assert change < 1e-10
    best = [factor.astype(float) for factor in fitted(X, cell_weight=C).axis_factors_]
    assert costs[-1] == pytest.approx(oracle.cost_tensor(X, best, C), rel=1e-9, abs=1e-9)


def test_steps_are_quadratic_near_the_end():
    """From one percent away to ten digits in three steps."""
    X = chain(60)
    parts, _, splits = parts_and_truth(X)
    best = np.concatenate(oracle.best_logs(X))
    at = tuple(np.exp(log) for log in np.split(best + 0.01 * np.random.default_rng(6).normal(size=120), splits))
    for _ in range(4):
        at, change = newton.newton_step(at, parts, THREADS)
    assert change < 1e-6
    assert_allclose(np.outer(*at)[~np.isnan(X)], X[~np.isnan(X)], rtol=1e-8)


def test_huge_steps_are_shortened():
    X = chain(20)
    parts, cost, splits = parts_and_truth(X)
    logs = np.concatenate(oracle.best_logs(X)) + np.r_[np.zeros(20), np.linspace(-30, 30, 20)]
    moved, change = newton.newton_step(tuple(np.exp(log) for log in np.split(logs, splits)), parts, THREADS)
    assert change <= 4.0
    assert cost(np.concatenate([np.log(factor) for factor in moved])) < cost(logs)


HARD = {
    "chain": chain(90, 7),
    "tree": tree(60, 50, 8),
    "chains beside each other": blocks(chain(40, 1), chain(30, 2), gammas((5, 4))),
    "a chain of blocks": np.where(
        np.abs(np.subtract.outer(np.arange(90), np.arange(90))) < 3, gammas((90, 90), 9), NAN
    ),
    "a thin bridge": np.block([[gammas((8, 8)), np.full((8, 8), NAN)], [np.full((8, 8), NAN), gammas((8, 8), 1)]]),
}
HARD["a thin bridge"][7, 8] = 1e-3


@pytest.mark.parametrize("X", HARD.values(), ids=HARD)
@pytest.mark.parametrize("weighted", [False, True])
def test_hard_patterns_are_finished_in_few_iterations(X, weighted):
    C = weights_for(X) if weighted else None
    model = fitted(X, cell_weight=C)
    assert model.status_ is Status.CONVERGED
    assert model.n_iter_ <= 60
    w, h = factors(model)
    seen = ~np.isnan(X)
    inside = np.equal.outer(*living_parts(X)) & seen
    assert_allclose(np.outer(w, h)[inside], np.outer(*oracle.best(X, C))[inside], rtol=1e-8)
    objectives = model.trace_["objective"]
    assert np.all(np.diff(objectives) <= 1e-12 * (abs(objectives[0]) + sums_of(X, C)[0].sum()))


def test_a_hard_tensor():
    X = np.full((40, 40, 3), NAN)
    X[np.arange(40), np.arange(40)] = gammas((40, 3))
    X[np.arange(39), np.arange(1, 40), 0] = gammas(39, 1)
    model = fitted(X)
    assert model.status_ is Status.CONVERGED
    assert model.n_iter_ <= 60
    fit = oracle.fit_tensor(model.axis_factors_)
    for axis in range(3):
        others = tuple(other for other in range(3) if other != axis)
        assert_allclose(np.where(np.isnan(X), 0, fit).sum(others), np.nansum(X, others), rtol=1e-8)
