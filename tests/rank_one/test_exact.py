"""The exact method: it meets the oracle on every kind of table, and nothing lies below it."""

from importlib import import_module

import numpy as np
import pytest
from hypothesis import given, settings
from numpy.testing import assert_allclose, assert_array_equal

from halfseen import Status, WeightedNMF
from halfseen.errors import DataError
from halfseen.geometry import conservation_gap

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
)

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


@every_table
def test_theorem_1_conserves_the_sums(X):
    assert conservation_gap(X, *factors(fitted(X))) < 1e-9


@every_table
@weighted_or_not
def test_no_direction_leads_down(X, weighted):
    C = weights_for(X, 1) if weighted else None
    w, h = factors(fitted(X, cell_weight=C))
    lowest = oracle.cost(X, w, h, C)
    rounding = 1e-14 * (abs(constant(X, C)) + sums_of(X, C)[0].sum())
    rng = np.random.default_rng(0)
    size = w.size + h.size
    for length in (1e-5, 1e-3, 0.3):
        directions = [*np.eye(size), *-np.eye(size), *rng.normal(size=(20, size))]
        for by in directions:
            moved = np.exp(length * by)
            assert oracle.cost(X, w * moved[: w.size], h * moved[w.size :], C) >= lowest - rounding


@every_table
def test_no_other_method_is_better(X):
    lowest = oracle.cost(X, *factors(fitted(X)))
    rounding = 1e-12 * (abs(lowest) + np.nansum(X))
    others = [factors(fitted(X, "em", max_iter=300)), oracle.kl_wnmf(X, 300), oracle.em(X, 300)]
    try:
        others.append(factors(fitted(X, "a1gm")))
    except DataError:
        assert (np.isnan(X).any(0)).all() or (np.isnan(X).any(1)).all()
    for found in others:
        assert lowest <= oracle.cost(X, *found) + rounding


@pytest.mark.parametrize("name", ["whole", "one hole", "few holes", "half of it", "counts", "rank one", "uneven"])
def test_a_long_run_of_kl_wnmf_arrives_at_the_same(name):
    X = TABLES[name]
    exact = fitted(X)
    ours = within_parts(X, *factors(exact))
    assert_allclose(within_parts(X, *oracle.kl_wnmf(X, 4000)), ours, rtol=1e-7)
    weighted = WeightedNMF(1, max_iter=4000, tol=0, random_state=0).fit(X)
    assert_allclose(within_parts(X, *factors(weighted)), ours, rtol=1e-7)


@settings(deadline=None, max_examples=150)
@given(half_seen())
def test_any_table(X):
    """Holes and zeros anywhere: the lowest cost, reached or approached, and each part with equal sums."""
    model = fitted(X)
    w, h = factors(model)
    total = np.nansum(X)
    lowest = infimum(X)
    assert model.status_ is Status.CONVERGED
    assert lowest - 1e-9 <= oracle.cost(X, w, h) <= lowest + 1e-9 + 2 * model.tol * total
    assert np.all(np.diff(model.trace_["objective"]) <= 1e-13 * (1 + total))
    for part in range(model.n_parts_ if is_reached(X) else 0):
        assert_allclose(w[model.parts_[0] == part].sum(), h[model.parts_[1] == part].sum(), rtol=1e-12)
    assert not w[(model.parts_[0] < 0) & ~np.isnan(X).all(1)].any()
    assert not h[(model.parts_[1] < 0) & ~np.isnan(X).all(0)].any()


@settings(deadline=None, max_examples=60)
@given(half_seen(largest=5))
def test_any_table_with_weights(X):
    C = weights_for(X, 5)
    w, h = factors(fitted(X, cell_weight=C))
    lowest = infimum(X, C)
    assert lowest - 1e-9 <= oracle.cost(X, w, h, C) <= lowest + 1e-9 + 2e-10 * sum(sums_of(X, C)[0])


# Proposition 3


@pytest.mark.parametrize("name", ["few holes", "half of it", "sparse counts", "dead lines", "chain", "uneven"])
def test_permuted_data_have_the_permuted_factors(name):
    X = TABLES[name]
    rng = np.random.default_rng(0)
    rows, columns = rng.permutation(X.shape[0]), rng.permutation(X.shape[1])
    w, h = factors(fitted(X))
    permuted = fitted(X[rows][:, columns])
    assert_allclose(permuted.W_[:, 0], w[rows], rtol=1e-9)
    assert_allclose(permuted.H_[:, 0], h[columns], rtol=1e-9)


@every_table
def test_turned_data_have_the_turned_factors(X):
    model, turned = fitted(X), fitted(np.ascontiguousarray(X.T))
    assert_allclose(turned.W_, model.H_, rtol=1e-9)
    assert_allclose(turned.H_, model.W_, rtol=1e-9)


# The way there


@pytest.mark.parametrize("X", GRID_LIKE.values(), ids=GRID_LIKE)
def test_easy_patterns_take_few_sweeps(X):
    assert fitted(X).n_iter_ <= (12 if np.isnan(X).mean() < 0.3 else 60)


def test_without_holes_one_sweep_is_the_closed_form():
    X = gammas((20, 10))
    model = fitted(X)
    assert model.n_iter_ == 1
    assert_allclose(product(model), np.outer(X.sum(1), X.sum(0)) / X.sum(), rtol=1e-13)
    assert_allclose(model.W_.sum(), model.H_.sum(), rtol=1e-13)


@pytest.mark.parametrize("X", [chain(200), chain(200)[::-1, ::-1], tree(120, 90, 3), tree(60, 200, 4)])
def test_trees_are_fitted_without_error_in_few_iterations(X):
    model = fitted(X)
    w, h = factors(model)
    assert model.status_ is Status.CONVERGED
    assert model.n_iter_ <= 100
    assert_allclose(np.outer(w, h)[~np.isnan(X)], X[~np.isnan(X)], rtol=1e-8)
    assert oracle.cost(X, w, h) == pytest.approx(0.0, abs=1e-9)


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


exact = import_module("halfseen.rank_one.exact")  # the package has a function of this name


@pytest.mark.parametrize("rate", [0.01, 0.5, 0.9, 0.999])
def test_the_distance_is_the_sum_of_the_changes_to_come(rate):
    """A geometric series of small changes; large ones that came before tell no rate."""
    after = exact.settling()
    for change in (40.0, 3.0):
        assert after(change) == (np.inf, 1.0)
    for sweep in range(4):
        distance, believed = after(1e-5 * rate**sweep)
    assert believed == pytest.approx(rate, rel=1e-9)
    assert distance == pytest.approx(sum(1e-5 * rate**sweep for sweep in range(4, 40_000)), rel=1e-6)


def test_of_two_rates_the_slower_is_believed_unless_a_bound_forbids_it():
    after = exact.settling()
    for change in (1e-2, 1e-3, 1e-6):
        _, rate = after(change)
    assert rate == pytest.approx(0.1)
    _, rate = after(1e-7, slowest=1e-3)
    assert rate == pytest.approx(1.5e-3)
    far = exact.settling()
    far(0.4)
    assert far(0.3, slowest=1e-9)[1] == 1.0  # not near enough for a bound to hold


def test_factors_that_stand_still_have_arrived():
    after = exact.settling()
    after(1e-3)
    assert after(0.0)[0] == 0.0
    assert exact.settling()(0.0)[0] == 0.0


def test_a_bound_on_the_rate():
    """By the second singular value of the fit over the roots of its sums, near the end of any table."""
    for seed in range(20):
        X = holed(gammas((9, 7), seed), 0.15, seed)
        w, h = oracle.best(X)
        fit = np.where(np.isnan(X), 0.0, np.outer(w, h))
        values = np.linalg.svd(fit / np.sqrt(np.outer(fit.sum(1), fit.sum(0))), compute_uv=False)
        seen = ~np.isnan(X)
        assert values[1] ** 2 <= exact._slowest_rate(seen @ h / h.sum(), w @ seen / w.sum()) * (1 + 1e-12)
    assert exact._slowest_rate(np.ones(3), np.ones(2)) < 1e-20
    # What hides in the rounding of a share of 1 weighs as much as a giant does.
    assert exact._slowest_rate(np.ones(3), np.array([1.0, 1e-30])) == 1.0


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


def test_weight_zero_is_a_hole_and_a_common_weight_is_none():
    X = holed(gammas((9, 7), 22), 0.2)
    hidden = np.random.default_rng(0).random(X.shape) < 0.3
    silenced = fitted(X, cell_weight=np.where(hidden, 0.0, 1.0))
    assert_allclose(product(silenced), product(fitted(np.where(hidden, NAN, X))), rtol=1e-9)
    assert_allclose(product(fitted(X, cell_weight=np.full(X.shape, 7.0))), product(fitted(X)), rtol=1e-9)


def test_a_whole_weight_is_a_row_that_came_so_often():
    X = holed(gammas((6, 5), 23), 0.3)
    times = np.array([1, 3, 2, 1, 4, 1])
    once = fitted(X, cell_weight=np.broadcast_to(times[:, None], X.shape).copy())
    often = fitted(np.repeat(X, times, axis=0))
    assert_allclose(product(often), np.repeat(product(once), times, axis=0), rtol=1e-9)


# Scales


SCALES = [
    ("rows over 600 decades", np.logspace(-300, 300, 13), np.ones(8)),
    ("columns over 600 decades", np.ones(13), np.logspace(300, -300, 8)),
    ("both over 300 decades", np.logspace(-150, 150, 13), np.logspace(150, -150, 8)),
    ("both the same way", np.logspace(-140, 140, 13), np.logspace(-140, 140, 8)),
    ("a giant row", np.r_[np.ones(12), 1e250], np.ones(8)),
    ("a dwarf column", np.ones(13), np.r_[1e-250, np.ones(7)]),
    ("two giants", np.r_[1e20, np.ones(11), 1e40], np.r_[np.ones(7), 1e15]),
    ("all huge", np.full(13, 1e300), np.ones(8)),
    ("all tiny", np.full(13, 1e-300), np.ones(8)),
]


@pytest.mark.parametrize("share", [0.0, 0.08, 0.3, 0.6])
@pytest.mark.parametrize(("rows", "columns"), [scales[1:] for scales in SCALES], ids=[scales[0] for scales in SCALES])
def test_any_scale(rows, columns, share):
    for seed in range(3):
        X = holed(rows[:, None] * columns * gammas((rows.size, columns.size), seed), share, seed)
        assert_settled_or_told(X)


def assert_settled_or_told(X):
    """Sums forget light cells where rows and columns differ by many powers of ten: a fit that hangs on them says so."""
    model = fitted(X)
    if model.status_ is Status.CONVERGED:
        assert relative_gap(X, *factors(model)) < 1e-8
    else:
        assert model.status_ is Status.MAX_ITER
        assert relative_gap(X, *factors(model)) < 1e-3


@pytest.mark.parametrize(
    "X",
    [
        [[3e20, NAN, 2e20], [1, 1, 1]],
        [[3, 3, 2], [2e20, 2e20, NAN]],
        [[3e20, 1], [NAN, 3], [1e20, 2]],
        [[1e60, 1], [NAN, 3]],
        [[1e30, NAN], [1e15, 3e15]],
        [[1, NAN], [2, NAN], [1, 1e20]],
        [[NAN, 2], [2e12, 1], [2e24, NAN]],
        [[2e40, NAN, 1e20], [3e20, 1, NAN], [NAN, 2, NAN]],
        [[3e20, 1e40, NAN], [1e20, NAN, 3e20], [2, 2e20, 3]],
        [[NAN, 1, 100], [0.1, NAN, 1e4], [NAN, 1e5, NAN]],
    ],
)
def test_small_tables_of_uneven_size(X):
    X = np.array(X, dtype=float)
    for table in (X, X.T.copy(), X[::-1].copy()):
        model = fitted(table)
        assert model.status_ is Status.CONVERGED
        assert relative_gap(table, *factors(model)) < 1e-9


@pytest.mark.parametrize("seed", range(4))
def test_random_scales_of_random_lines(seed):
    """Each row and column either as it is or moved by up to 40 powers of ten; many holes or few."""
    rng = np.random.default_rng(seed)
    for share in (0.1, 0.3, 0.6):
        for _ in range(12):
            n, m = rng.integers(2, 9, 2)
            sizes = [10.0 ** (rng.uniform(-20, 20, size) * rng.integers(0, 2, size)) for size in (n, m)]
            X = np.outer(*sizes) * rng.gamma(1.0, 1.0, (n, m)).clip(1e-6)
            X[rng.random((n, m)) < share] = NAN
            X[0, 0] = 1.0
            assert_settled_or_told(X)


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


def test_a_small_change_is_no_proof_of_an_end():
    """A sweep hardly moves factors that are held far from their best ones by a giant."""
    X = np.array([[1e25, 1e25, 1e21], [NAN, NAN, 0.01], [1e61, NAN, NAN]])
    for table in (X, X.T.copy(), X[::-1].copy()):
        assert_settled_or_told(table)


def test_a_hard_part_beside_one_that_outweighs_it():
    """The gain left in a small part is nothing beside the total, and yet its factors must settle."""
    X = blocks(1e30 * gammas((4, 3)), chain(40), 1e-30 * chain(30, 1))
    model = fitted(X)
    assert model.n_parts_ == 3
    assert relative_gap(X, *factors(model)) < 1e-8
    assert_allclose(product(model)[4:44, 3:43][~np.isnan(chain(40))], chain(40)[~np.isnan(chain(40))], rtol=1e-8)


def test_a_chain_whose_rows_and_columns_span_many_decades():
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
        with pytest.raises(DataError, match=r"sum of every row and column must be a finite number\. Found inf in "):
            fitted(np.array(X))


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
