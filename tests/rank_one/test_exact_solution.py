"""The exact method meets the oracle on every kind of table, and nothing lies below it; Newton's method by itself."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from halfseen import Status, WeightedNMF, observe
from halfseen.engines.threads import Threads
from halfseen.errors import DataError
from halfseen.geometry import conservation_gap
from halfseen.rankone import ListedTable, exact_solution, find_components

from . import oracle
from .cases import (
    GRID_LIKE,
    NAN,
    TABLES,
    blocks,
    chain,
    constant,
    factors,
    fitted,
    gammas,
    half_seen,
    holed,
    infimum,
    is_reached,
    living_parts,
    product,
    relative_gap,
    sums_of,
    tree,
    weights_for,
)  # fmt: skip

error_estimator = exact_solution.error_estimator
every_table = pytest.mark.parametrize("X", TABLES.values(), ids=TABLES)
weighted_or_not = pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])


def within_parts(X, w, h, weights=None):
    """w h' where rows and columns belong to one part, which fixes it; NaN elsewhere."""
    of_rows, of_columns = living_parts(X, weights)
    dead = (of_rows < 0)[:, None] | (of_columns < 0)
    return np.where((of_rows[:, None] == of_columns) & ~dead, np.outer(w, h), NAN)


@every_table
@weighted_or_not
def test_it_is_the_best(X, weighted):
    C = weights_for(X) if weighted else None
    model = fitted(X, cell_weight=C)
    assert model.status_ is Status.CONVERGED
    ours, theirs = (within_parts(X, *found, C) for found in (factors(model), oracle.best(X, C)))
    assert_allclose(ours, theirs, rtol=1e-9)
    assert relative_gap(X, *factors(model), C) < 1e-9
    assert conservation_gap(X, *factors(model), C) < 1e-9  # Theorem 1


@pytest.mark.parametrize("name", ["whole", "one hole", "few holes", "half of it", "counts", "rank one", "uneven"])
def test_a_long_run_of_kl_wnmf_arrives_at_the_same(name):
    X = TABLES[name]
    exact = fitted(X)
    ours = within_parts(X, *factors(exact))
    assert_allclose(within_parts(X, *oracle.kl_wnmf(X, 4000)), ours, rtol=1e-7)
    weighted = WeightedNMF(1, max_iter=4000, tol=0, random_state=0).fit(X)
    assert_allclose(within_parts(X, *factors(weighted)), ours, rtol=1e-7)


@settings(deadline=None, max_examples=150)
@given(half_seen(), st.booleans())
def test_any_table(X, weighted):
    """Holes and zeros anywhere: the lowest cost, reached or approached, and each part with equal sums."""
    C = weights_for(X, 5) if weighted else None
    model = fitted(X, cell_weight=C)
    w, h = factors(model)
    total, lowest = sums_of(X, C)[0].sum(), infimum(X, C)
    assert model.status_ is Status.CONVERGED
    assert lowest - 1e-9 <= oracle.cost(X, w, h, C) <= lowest + 1e-9 + 2 * model.tol * total
    assert np.all(np.diff(model.trace_["objective"]) <= 1e-13 * (1 + total))
    for part in range(model.n_parts_ if is_reached(X, C) else 0):
        assert_allclose(w[model.parts_[0] == part].sum(), h[model.parts_[1] == part].sum(), rtol=1e-12)
    assert not w[(model.parts_[0] < 0) & ~np.isnan(X).all(1)].any()
    assert not h[(model.parts_[1] < 0) & ~np.isnan(X).all(0)].any()


@every_table
def test_permuted_or_turned_data_have_the_permuted_or_turned_factors(X):
    """Proposition 3."""
    rng = np.random.default_rng(0)
    rows, columns = rng.permutation(X.shape[0]), rng.permutation(X.shape[1])
    w, h = factors(fitted(X))
    for table, expected in ((X[rows][:, columns], (w[rows], h[columns])), (np.ascontiguousarray(X.T), (h, w))):
        for found, one in zip(factors(fitted(table)), expected, strict=True):
            assert_allclose(found, one, rtol=1e-9)


# The way there


@pytest.mark.parametrize("X", GRID_LIKE.values(), ids=GRID_LIKE)
def test_easy_patterns_take_few_sweeps(X):
    model = fitted(X)
    assert model.n_iter_ <= (12 if np.isnan(X).mean() < 0.3 else 60)
    if not np.isnan(X).any():  # one sweep is the closed form
        assert model.n_iter_ == 1
        assert_allclose(product(model), np.outer(X.sum(1), X.sum(0)) / X.sum(), rtol=1e-13)


@every_table
@pytest.mark.parametrize("method", ["exact", "em"])
def test_the_objective_is_the_cost_but_for_what_no_factor_changes_and_never_rises(X, method):
    objectives = fitted(X, method, max_iter=400).trace_["objective"]
    for max_iter in range(1, 6):
        model = fitted(X, method, max_iter=max_iter)
        trace = model.trace_["objective"]
        assert len(trace) == len(model.trace_["seconds"]) == model.n_iter_ == min(max_iter, len(objectives))
        assert_array_equal(trace[:-1], objectives[: len(trace) - 1])
        rounding = 1e-12 * (abs(objectives[0]) + abs(constant(X)) + np.nansum(X))
        assert trace[-1] + constant(X) == pytest.approx(oracle.cost(X, *factors(model)), rel=0, abs=rounding)
    assert np.all(np.diff(objectives) <= rounding)


@pytest.mark.parametrize("rate", [0.01, 0.5, 0.9, 0.999])
def test_the_distance_is_the_sum_of_the_changes_to_come(rate):
    """A geometric series of small changes; large ones that came before tell no rate."""
    after = error_estimator()
    for change in (40.0, 3.0):
        assert after(change) == (np.inf, 1.0)
    for sweep in range(4):
        distance, believed = after(1e-5 * rate**sweep)
    assert believed == pytest.approx(rate, rel=1e-9)
    assert distance == pytest.approx(sum(1e-5 * rate**sweep for sweep in range(4, 40_000)), rel=1e-6)


def test_estimates_of_the_distance_left():
    after = error_estimator()
    for change in (1e-2, 1e-3, 1e-6):
        _, rate = after(change)
    assert rate == pytest.approx(0.1)
    _, rate = after(1e-7, rate_bound=1e-3)
    assert rate == pytest.approx(1.5e-3)
    assert after(0.0)[0] == error_estimator()(0.0)[0] == 0.0  # factors that stand still have arrived
    far = error_estimator()
    far(0.4)
    assert far(0.3, rate_bound=1e-9)[1] == 1.0  # not near enough for a bound to hold
    # By the second singular value of the fit over the roots of its sums, near the end of any table.
    for seed in range(20):
        X = holed(gammas((9, 7), seed), 0.15, seed)
        w, h = oracle.best(X)
        fit = np.where(np.isnan(X), 0.0, np.outer(w, h))
        values = np.linalg.svd(fit / np.sqrt(np.outer(fit.sum(1), fit.sum(0))), compute_uv=False)
        seen = ~np.isnan(X)
        assert values[1] ** 2 <= exact_solution._rate_bound(seen @ h / h.sum(), w @ seen / w.sum()) * (1 + 1e-12)
    assert exact_solution._rate_bound(np.ones(3), np.ones(2)) < 1e-20
    # What hides in the rounding of a share of 1 weighs as much as a giant does.
    assert exact_solution._rate_bound(np.ones(3), np.array([1.0, 1e-30])) == 1.0


def test_a_tighter_tolerance_comes_nearer():
    X = holed(gammas((30, 20), 21), 0.4)
    best = np.outer(*oracle.best(X))
    errors = []
    for tol in (1e-2, 1e-4, 1e-6, 1e-8, 1e-10, 0.0):
        model = fitted(X, tol=tol)
        errors.append(np.abs(product(model) / best - 1).max())
        assert errors[-1] <= 5 * tol + 1e-12
    iterations = [fitted(X, tol=tol).n_iter_ for tol in (1e-2, 1e-6, 1e-10)]
    assert iterations[0] < iterations[1] < iterations[2] < 30


# Weights


def test_weights_are_repetitions():
    X = holed(gammas((9, 7), 22), 0.2)
    hidden = np.random.default_rng(0).random(X.shape) < 0.3
    silenced = fitted(X, cell_weight=np.where(hidden, 0.0, 1.0))
    assert_allclose(product(silenced), product(fitted(np.where(hidden, NAN, X))), rtol=1e-9)
    assert_allclose(product(fitted(X, cell_weight=np.full(X.shape, 7.0))), product(fitted(X)), rtol=1e-9)
    X = holed(gammas((6, 5), 23), 0.3)
    times = np.array([1, 3, 2, 1, 4, 1])
    once = fitted(X, cell_weight=np.broadcast_to(times[:, None], X.shape).copy())
    often = fitted(np.repeat(X, times, axis=0))
    assert_allclose(product(often), np.repeat(product(once), times, axis=0), rtol=1e-9)


# Scales


SCALES = {
    "rows over 600 decades": (np.logspace(-300, 300, 13), np.ones(8)),
    "columns over 600 decades": (np.ones(13), np.logspace(300, -300, 8)),
    "both over 300 decades": (np.logspace(-150, 150, 13), np.logspace(150, -150, 8)),
    "both the same way": (np.logspace(-140, 140, 13), np.logspace(-140, 140, 8)),
    "a giant row": (np.r_[np.ones(12), 1e250], np.ones(8)),
    "a dwarf column": (np.ones(13), np.r_[1e-250, np.ones(7)]),
    "two giants": (np.r_[1e20, np.ones(11), 1e40], np.r_[np.ones(7), 1e15]),
    "all huge": (np.full(13, 1e300), np.ones(8)),
    "all tiny": (np.full(13, 1e-300), np.ones(8)),
}


@pytest.mark.parametrize("share", [0.0, 0.08, 0.3, 0.6])
@pytest.mark.parametrize(("rows", "columns"), SCALES.values(), ids=SCALES)
def test_any_scale(rows, columns, share):
    for seed in range(3):
        X = holed(rows[:, None] * columns * gammas((rows.size, columns.size), seed), share, seed)
        assert_settled_or_told(X)


def assert_settled_or_told(X):
    """Sums forget light cells where rows and columns differ by many powers of ten: a fit that hangs on them says so."""
    model = fitted(X, max_iter=2000)
    if model.status_ is Status.CONVERGED:
        assert relative_gap(X, *factors(model)) < 1e-8
    else:
        assert model.status_ is Status.MAX_ITER
        assert relative_gap(X, *factors(model)) < 1e-3


@pytest.mark.parametrize(
    "X",
    [
        [[3e20, NAN, 2e20], [1, 1, 1]], [[3, 3, 2], [2e20, 2e20, NAN]], [[3e20, 1], [NAN, 3], [1e20, 2]],
        [[1e60, 1], [NAN, 3]], [[1e30, NAN], [1e15, 3e15]], [[1, NAN], [2, NAN], [1, 1e20]],
        [[NAN, 2], [2e12, 1], [2e24, NAN]], [[2e40, NAN, 1e20], [3e20, 1, NAN], [NAN, 2, NAN]],
        [[3e20, 1e40, NAN], [1e20, NAN, 3e20], [2, 2e20, 3]], [[NAN, 1, 100], [0.1, NAN, 1e4], [NAN, 1e5, NAN]],
    ],
)  # fmt: skip
def test_small_tables_of_uneven_size(X):
    X = np.array(X, dtype=float)
    for table in (X, X.T.copy(), X[::-1].copy()):
        model = fitted(table)
        assert model.status_ is Status.CONVERGED
        assert relative_gap(table, *factors(model)) < 1e-9


@pytest.mark.parametrize("seed", range(12))
def test_uneven_trees(seed):
    """Each row and column moved by up to three powers of ten: fitted without error, in few iterations."""
    rng = np.random.default_rng(seed)
    n, m = rng.integers(2, 14, 2)
    X = tree(n, m, seed) * 10.0 ** rng.uniform(-3, 3, (n, 1)) * 10.0 ** rng.uniform(-3, 3, m)
    model = fitted(X)
    assert model.status_ is Status.CONVERGED
    assert model.n_iter_ <= 100
    assert relative_gap(X, *factors(model)) < 1e-9


def test_parts_chains_and_giants_of_many_decades():
    """A sweep hardly moves factors that are held far from their best ones by a giant."""
    X = np.array([[1e25, 1e25, 1e21], [NAN, NAN, 0.01], [1e61, NAN, NAN]])
    for table in (X, X.T.copy(), X[::-1].copy()):
        assert_settled_or_told(table)
    # The gain left in a small part is nothing beside the total, and yet its factors must settle.
    X = blocks(1e30 * gammas((4, 3)), chain(40), 1e-30 * chain(30, 1))
    model = fitted(X)
    assert model.n_parts_ == 3
    assert relative_gap(X, *factors(model)) < 1e-8
    assert_allclose(product(model)[4:44, 3:43][~np.isnan(chain(40))], chain(40)[~np.isnan(chain(40))], rtol=1e-8)
    X = chain(30) * np.logspace(-40, 40, 30)[:, None]
    w, h = factors(fitted(X))
    assert_allclose(np.outer(w, h)[~np.isnan(X)], X[~np.isnan(X)], rtol=1e-7)


def test_the_largest_numbers():
    """Sums that are numbers get an answer, and those that are not a sentence."""
    for X in ([[1e307, 2e307], [1e307, NAN]], [[1.5e308, NAN], [NAN, 1.5e308]], [[1.5e308, NAN, 1], [NAN, 1.5e308, 1]]):
        X = np.array(X)
        try:
            model = fitted(X)
        except DataError as error:
            assert "finite" in str(error) or "at most 2e+305" in str(error)  # noqa: PT017
        else:
            assert relative_gap(X, *factors(model)) < 1e-9
    for X in ([[1e308, 1e308], [1.0, 2.0]], [[1e308, 1.0], [1e308, 2.0]]):
        with pytest.raises(DataError) as error:
            fitted(np.array(X))
        assert (error.value.parameter, error.value.found) == ("X", "inf")


# Cancellation


@pytest.mark.parametrize("share", [0.2, 0.45])
@pytest.mark.parametrize("axis", [0, 1])
def test_a_giant_that_is_a_hole_takes_nothing_from_the_rest(axis, share):
    """Its neighbours' sums are those of all less the giant: nothing would be left of them by subtracting."""
    rng = np.random.default_rng(3)
    X = rng.uniform(0.5, 1.5, (12, 10))
    X[:, 4] *= 1e18
    X[:, 7] *= 1e-12
    X = holed(X, share, 1)
    X[[0, 3, 5], 4] = NAN
    X = X if axis == 0 else X.T.copy()
    model = fitted(X)
    assert relative_gap(X, *factors(model)) < 1e-9
    assert_allclose(product(model), np.exp(np.add.outer(*oracle.best_logs(X))), rtol=1e-8)


# Newton's method: derivatives by finite differences, systems by a dense solver, steps by the cost

THREADS = Threads(1)
newton_step, solve = exact_solution.newton_step, exact_solution.conjugate_gradients
MATRICES = ["whole", "few holes", "half of it", "few seen", "sparse counts", "dead lines", "chain", "parts", "uneven"]


def cube(seed=0, share=0.3, shape=(4, 3, 5)):
    return holed(gammas(shape, seed), share, seed)


def parts_and_truth(X, weighted=False):
    """The parts of a table of any order, and its cost as a function of the logarithms of the factors."""
    C = weights_for(X) if weighted else None
    inner = X.shape[1:] if X.ndim > 2 else None
    flat = X.reshape(len(X), -1)
    weights = None if C is None else C.reshape(flat.shape)
    table = ListedTable(observe(flat, cell_weight=weights), inner)  # no rows are merged, as in the oracle
    splits = np.cumsum(X.shape)[:-1]
    parts = find_components(table, table.marginals)

    def cost(logs):
        return oracle.cost_tensor(X, [np.exp(log) for log in np.split(logs, splits)], C)

    return parts, cost, splits


def point(parts, logs, splits):
    return exact_solution._LogModel(tuple(np.exp(log) for log in np.split(logs, splits)), parts, THREADS)


def drawn(parts, seed):
    """Random logarithms, those of lines that sum to 0 as after a sweep: -800, the logarithm of 0; and a direction."""
    lives = np.concatenate(parts.marginals.sums) > 0
    logs, direction = np.random.default_rng(seed).normal(size=(2, lives.size))
    return np.where(lives, logs, -800.0), direction


def totals(parts):
    """What the part of each line sums to; 1 where it belongs to none."""
    first = parts.labels[0]
    sums = [parts.marginals.sums[0][first == part].sum() for part in range(parts.count)]
    return np.array([sums[part] if part >= 0 else 1.0 for part in np.concatenate(parts.labels)])


def derivatives(cost, logs, step=1e-4):
    """By central differences of fourth order."""

    def along(by):
        return 8 * (cost(logs + by) - cost(logs - by)) - cost(logs + 2 * by) + cost(logs - 2 * by)

    return np.array([along(unit) for unit in np.eye(logs.size) * step]) / (12 * step)


CASES = [(TABLES[name], weighted) for name in MATRICES for weighted in (False, True)] + [
    (cube(), False), (cube(1), True), (cube(2, 0.8), False), (cube(3, 0.2, (3, 2, 4, 2)), True),
]  # fmt: skip


@pytest.mark.parametrize(("X", "weighted"), CASES)
def test_derivatives_by_finite_differences_and_the_increase_by_that_of_the_cost(X, weighted):
    C = weights_for(X) if weighted else None
    parts, cost, splits = parts_and_truth(X, weighted)
    logs, by = drawn(parts, 1)
    here = point(parts, logs, splits)
    by = np.where(here.active, by, 0.0)
    numeric = derivatives(cost, logs) / totals(parts)
    assert_allclose(here.gradient[here.active], numeric[here.active], rtol=1e-7, atol=1e-8)
    assert not here.gradient[~here.active].any()

    def sums(t):
        return point(parts, logs + t * 1e-4 * by, splits).sums

    numeric = (8 * (sums(1) - sums(-1)) - sums(2) + sums(-2)) / 12e-4
    assert_allclose(here.hessian_product(by), numeric, rtol=1e-7, atol=1e-9 * np.abs(numeric).max())
    moved = here.move(by)
    with np.errstate(divide="ignore"):
        moved_logs = np.concatenate([np.log(factor) for factor in moved])
    assert_allclose(moved_logs[here.active], (logs + by)[here.active], atol=1e-13)
    for part, increase in enumerate(here.cost_increase(moved, by)):  # each as a share of what it sums to
        inside = parts.labels[0] == part
        alone = np.where(inside.reshape(-1, *[1] * (X.ndim - 1)), X, NAN)
        after, before = (oracle.cost_tensor(alone, at, C) for at in (moved, here.factors))
        expected = (after - before) / parts.marginals.sums[0][inside].sum()
        assert increase == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_conjugate_gradients_solve_systems_singular_ones_too():
    rng = np.random.default_rng(3)
    root = rng.normal(size=(12, 12))
    matrix = root @ root.T + np.diag(10.0 ** rng.uniform(-3, 3, 12))
    right = rng.normal(size=12)
    found = solve(lambda x: matrix @ x, right, np.diag(matrix).copy())
    rest = right - matrix @ found
    assert rest @ (rest / np.diag(matrix)) <= 1e-6 * (right @ (right / np.diag(matrix)))
    diagonal, alone = np.diag(matrix).copy(), np.arange(12) != 4
    diagonal[4] = 0.0
    found = solve(lambda x: np.where(alone, matrix @ x, 0.0), np.where(alone, right, 0.0), diagonal)
    assert found[4] == 0.0
    assert not solve(lambda x: matrix @ x, np.zeros(12), np.diag(matrix).copy()).any()
    # a free scale: the matrix is singular, and the right side does not see it
    laplace = 2 * np.eye(5) - np.eye(5, k=1) - np.eye(5, k=-1)
    laplace[0, 0] = laplace[4, 4] = 1.0
    right = np.array([1.0, -2.0, 0.5, 1.5, -1.0])
    found = solve(lambda x: laplace @ x, right, np.diag(laplace).copy())
    assert_allclose(laplace @ found, right, atol=5e-3)


@pytest.mark.parametrize(("X", "weighted"), CASES)
def test_a_step_leads_down_and_nowhere_from_the_end(X, weighted):
    parts, cost, splits = parts_and_truth(X, weighted)
    C = weights_for(X) if weighted else None
    logs = drawn(parts, 5)[0]
    logs[logs > -800.0] *= 0.5
    costs, at = [cost(logs)], tuple(np.exp(log) for log in np.split(logs, splits))
    for _ in range(25):
        at, change = newton_step(at, parts, THREADS)
        costs.append(oracle.cost_tensor(X, at, C))
        if change < 1e-10:
            break
    rounding = 1e-12 * (costs[0] + parts.marginals.total)
    assert np.all(np.diff(costs) <= rounding)
    assert change < 1e-10
    best = [factor.astype(float) for factor in fitted(X, cell_weight=C).axis_factors_]
    assert costs[-1] == pytest.approx(oracle.cost_tensor(X, best, C), rel=1e-9, abs=1e-9)


def test_steps_are_quadratic_near_the_end_and_shortened_far_from_it():
    """From one percent away to ten digits in three steps."""
    X = chain(60)
    parts, _, splits = parts_and_truth(X)
    best = np.concatenate(oracle.best_logs(X))
    at = tuple(np.exp(log) for log in np.split(best + 0.01 * np.random.default_rng(6).normal(size=120), splits))
    for _ in range(4):
        at, change = newton_step(at, parts, THREADS)
    assert change < 1e-6
    assert_allclose(np.outer(*at)[~np.isnan(X)], X[~np.isnan(X)], rtol=1e-8)
    X = chain(20)
    parts, cost, splits = parts_and_truth(X)
    logs = np.concatenate(oracle.best_logs(X)) + np.r_[np.zeros(20), np.linspace(-30, 30, 20)]
    moved, change = newton_step(tuple(np.exp(log) for log in np.split(logs, splits)), parts, THREADS)
    assert change <= 4.0
    assert cost(np.concatenate([np.log(factor) for factor in moved])) < cost(logs)


HARD = {
    "chain": chain(60, 7),
    "long chain turned round": chain(110)[::-1, ::-1],
    "tree": tree(45, 40, 8),
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
