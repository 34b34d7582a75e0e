"""Connected components against the oracle's walks, limits, and the scale that the product leaves free."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from halfseen import RankOneNMF
from halfseen.errors import DataWarning
from halfseen.rankone import components

from . import oracle
from .cases import (
    NAN,
    TABLES,
    blocks,
    chain,
    counts,
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
    weights_for,
)


def listed(X):
    """As a sparse matrix, which is read as a list of cells."""
    stored = np.nonzero(~np.isnan(X))
    return sparse.coo_array((X[stored], stored), X.shape)


def assert_parts(model, X, weights=None):
    for found, expected in zip(model.parts_, living_parts(X, weights), strict=True):
        assert_array_equal(found, expected)
    assert model.n_parts_ == max(part.max() for part in model.parts_) + 1


@settings(deadline=None, max_examples=200)
@given(st.one_of(half_seen(), half_seen(largest=4)))
def test_parts_of_any_table(X):
    """Small ones full of zeros too, where a wrong count shows."""
    for data in (X, np.asfortranarray(X), listed(X)):
        assert_parts(fitted(data), X)


@pytest.mark.parametrize(("shape", "mean", "share"), [((25, 20), 0.6, 0.9), ((6, 6), 0.7, 0.55)])
def test_parts_of_random_tables_and_the_lowest_cost(shape, mean, share):
    for seed in range(20):
        X = holed(counts(shape, seed, mean), share, seed)
        model = fitted(X)
        for data in (np.asfortranarray(X), listed(X)):
            assert_parts(fitted(data), X)
        assert_parts(model, X)
        assert_parts(fitted(X, cell_weight=weights_for(X)), X)
        assert oracle.cost(X, *factors(model)) == pytest.approx(infimum(X), abs=2e-10 * np.nansum(X) + 1e-12)


@pytest.mark.parametrize("X", TABLES.values(), ids=TABLES)
def test_counts_that_prove_a_single_part_are_right(X, monkeypatch):
    """The same labels and the same factors if they are not asked."""
    told = fitted(X)
    monkeypatch.setattr(components, "_is_connected", lambda table, marginals: marginals.total == 0)
    walked = fitted(X)
    for by_count, by_walk in zip(told.parts_, walked.parts_, strict=True):
        assert_array_equal(by_count, by_walk)
    assert_array_equal(told.W_, walked.W_)


@pytest.mark.parametrize("kind", ["rows", "columns", "listed"])
def test_parts_have_equal_sums_and_the_fits_they_have_alone(kind):
    tables = [gammas((3, 2), 1), 1e6 * holed(gammas((5, 4), 2), 0.2), 1e-6 * chain(4), np.array([[7.0]])]
    X = blocks(*tables)
    data = {"rows": X, "columns": np.asfortranarray(X), "listed": listed(X)}[kind]
    with pytest.warns(DataWarning, match=r"Found 4 parts without a connection, the second one with row 3\.") as told:
        model = RankOneNMF().fit(data)
    assert [warning.filename for warning in told] == [__file__]
    assert model.n_parts_ == 4
    w, h = factors(model)
    for part, table in enumerate(tables):
        inside = [of == part for of in model.parts_]
        assert_allclose(w[inside[0]].sum(), h[inside[1]].sum(), rtol=1e-12)
        alone = fitted(table)
        assert_allclose(w[inside[0]], alone.W_[:, 0], rtol=1e-9)
        assert_allclose(h[inside[1]], alone.H_[:, 0], rtol=1e-9)


@pytest.mark.parametrize("order", ["C", "F"])
def test_warnings_name_the_second_part_and_the_empty_lines(order):
    """Also where most rows have no hole; limits are told of."""
    pandas = pytest.importorskip("pandas")
    X = blocks(gammas((2, 2)), gammas((3, 3), 1))
    X[4], X[:, 3] = NAN, NAN
    frame = pandas.DataFrame(X, index=list("abcde"), columns=list("vwxyz"))
    whole = gammas((9, 7))
    whole[1, 2], whole[4], whole[:, 5] = NAN, NAN, NAN
    for data, names in (
        (frame, ("row 'e'", "with row 'c'", "column 'y'")),
        (np.asarray(whole, order=order), ("in row 4.", "in column 5.")),
        (np.asarray(LIMITS["two"], order=order), ("with row 1. The best fit is a limit",)),
    ):
        with pytest.warns(DataWarning) as told:
            RankOneNMF().fit(data)
        messages = [str(warning.message) for warning in told]
        assert [sum(name in message for message in messages) for name in names] == [1] * len(messages)
        assert {warning.filename for warning in told} == {__file__}


@pytest.mark.filterwarnings("error")
def test_one_part_is_not_worth_a_word():
    X = TABLES["chain"]
    assert RankOneNMF().fit(X).n_parts_ == 1
    assert RankOneNMF(unseen="zero").fit(listed(np.eye(4))).n_parts_ == 1
    assert RankOneNMF().fit(np.eye(4)).n_parts_ == 1
    assert RankOneNMF().fit(np.zeros((3, 2))).n_parts_ == 0


LIMITS = {
    "two": np.array([[1.0, 0.0], [NAN, 1.0]]),
    "three": np.array([[1.0, 0.0, NAN], [NAN, 2.0, 0.0], [NAN, NAN, 3.0]]),
    "a fork": np.array([[1.0, 0.0, 0.0], [NAN, 2.0, NAN], [NAN, NAN, 3.0]]),
    "a diamond": np.array([[1, 0, 0, 0], [NAN, 2, NAN, 0], [NAN, NAN, 3, 0], [NAN, NAN, NAN, 4.0]]),
    "upward": np.array([[1.0, NAN, NAN], [0.0, 2.0, NAN], [0.0, 0.0, 3.0]]),
    "blocks": np.block([[gammas((3, 3)), np.zeros((3, 2))], [np.full((2, 3), NAN), gammas((2, 2), 1)]]),
    "and apart": blocks(np.array([[1.0, 0.0], [NAN, 1.0]]), gammas((2, 2), 2)),
    "uneven": np.array([[1e8, 0.0, 0.0], [NAN, 1e-8, 0.0], [NAN, NAN, 1.0]]),
    "dead too": np.array([[1.0, 0.0, 0.0], [NAN, 1.0, 0.0], [0.0, 0.0, 0.0], [NAN, NAN, NAN]]),
}


@pytest.mark.parametrize("X", LIMITS.values(), ids=LIMITS)
@pytest.mark.parametrize("kind", ["rows", "columns", "listed", "weighted"])
def test_limits_are_approached_as_near_as_tol_asks(X, kind):
    assert not is_reached(X)
    data = {"rows": X, "columns": np.asfortranarray(X), "listed": listed(X), "weighted": X}[kind]
    C = weights_for(X) if kind == "weighted" else None
    for tol in (1e-4, 1e-10):
        model = fitted(data, tol=tol, cell_weight=C)
        assert_parts(model, X, C)
        total = (oracle.exposures(X, C) * np.nan_to_num(X)).sum()
        above = oracle.cost(X, *factors(model), C) - infimum(X, C)
        assert -1e-12 * total <= above <= tol * total * 1.1 + 1e-12 * total
        assert np.isfinite(product(model)).all()


@pytest.mark.parametrize("n", [5, 12, 30, 60])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_chains_of_limits(n, dtype):
    """Every zero wants to be smaller than the numbers there are, for long chains: finite, and as near as they allow."""
    X = np.where(np.eye(n) > 0, 1.0, NAN)
    X[np.arange(n - 1), np.arange(1, n)] = 0.0
    model = fitted(X.astype(dtype))
    assert model.n_parts_ == n
    w, h = factors(model)
    assert all((factor > 0).all() and np.isfinite(factor).all() for factor in (w, h))
    assert_allclose(w * h, 1.0, rtol=1e-9 if dtype == np.float64 else 1e-5)
    # The zeros share the powers of ten that there are, 200 of them, or 30 in single precision.
    nearest = np.exp(-np.log(10) * (200 if dtype == np.float64 else 30) / (n - 1))
    assert oracle.cost(X, w, h) <= 1.1 * n * max(1e-10, nearest) + (1e-9 if dtype == np.float64 else 1e-6 * n)


def test_heavy_zeros_and_rows_of_zeros():
    X, C = LIMITS["two"], np.array([[1.0, 1e6], [1.0, 1.0]])
    for data, unseen in ((X, "missing"), (np.nan_to_num(X, nan=5.0), "zero")):
        C[1, 0] = 1.0 if unseen == "missing" else 0.0
        w, h = factors(fitted(data, cell_weight=C, unseen=unseen))
        assert 1e6 * w[0] * h[1] <= 1.1e-10 * 2
        assert_allclose(w * h, 1.0, rtol=1e-9)
    # Rows without a hole are one, some of them zeros, in a table whose counts prove nothing.
    X = np.array([[0, 0, 1, 0], [0, 0, 0, 0], [NAN, 1, NAN, 0], [1, NAN, NAN, NAN], [0, 0, 0, 0], [0, 0, 0, 2.0]])
    for data in (X, np.asfortranarray(X), listed(X)):
        model = fitted(data)
        assert_parts(model, X)
        assert oracle.cost(X, *factors(model)) == pytest.approx(infimum(X), abs=1e-9)
    X, C = np.array([[1.0, 0.0], [7.0, 2.0]]), np.array([[1.0, 1.0], [0.0, 1.0]])
    limit = np.where(C > 0, X, NAN)
    model = fitted(X, cell_weight=C, unseen="zero")
    assert_parts(model, limit)
    assert oracle.cost(limit, *factors(model)) <= 1e-9
    apart = fitted(np.array([[1.0, 5.0], [7.0, 1e6]]), cell_weight=np.eye(2), unseen="zero")
    assert apart.n_parts_ == 2
    assert_allclose(apart.W_, apart.H_, rtol=1e-9)


# Cells that do not count, in a grid where unseen cells are zeros


def test_parts_of_a_tensor():
    X = np.full((5, 4, 3), NAN)
    X[:2, :2, :1], X[2:4, 2:, 1:] = gammas((2, 2, 1)), gammas((2, 2, 2), 1)
    X[4, 0, 0] = 0.0
    model = fitted(X)
    for found, expected in zip(model.parts_, ([0, 0, 1, 1, -1], [0, 0, 1, 1], [0, 1, 1]), strict=True):
        assert_array_equal(found, expected)
    for part in (0, 1):
        sums = [factor[of == part].sum() for factor, of in zip(model.axis_factors_, model.parts_, strict=True)]
        assert_allclose(sums, sums[0], rtol=1e-12)
    X[4] = 0.0  # a slice of zeros connects nothing: its factor is 0
    assert fitted(X).n_parts_ == 2


@pytest.mark.parametrize("X", TABLES.values(), ids=TABLES)
@pytest.mark.parametrize("method", ["exact", "em"])
def test_each_part_has_equal_sums(X, method):
    model = fitted(X, method, max_iter=50)
    w, h = factors(model)
    assert model.n_parts_ >= 1
    for part in range(model.n_parts_):
        assert_allclose(w[model.parts_[0] == part].sum(), h[model.parts_[1] == part].sum(), rtol=1e-12)


def test_empty_lines_get_the_average_of_the_others():
    X = holed(gammas((9, 7)), 0.2)
    X[[2, 8]], X[:, 5] = NAN, NAN
    with pytest.warns(DataWarning) as told:
        model = RankOneNMF().fit(X)
    for warning, found in zip(told, ("Found none in row 2 and 1 more.", "Found none in column 5."), strict=True):
        assert found in str(warning.message)
        assert warning.filename == __file__
    rows, columns = ~np.isnan(X).all(1), ~np.isnan(X).all(0)
    small = fitted(X[rows][:, columns])
    assert_allclose(model.W_[rows], small.W_, rtol=1e-9)
    assert_allclose(model.H_[columns], small.H_, rtol=1e-9)
    assert_allclose(model.W_[~rows], small.W_.mean(), rtol=1e-9)
    assert_allclose(model.H_[~columns], small.H_.mean(), rtol=1e-9)
    X = gammas((6, 4))
    X[1], X[3] = 0.0, NAN  # zeros are known: they count in the average
    model = fitted(X)
    assert model.W_[3] == pytest.approx(model.W_[[0, 1, 2, 4, 5]].mean(), rel=1e-12)
    assert model.W_[1] == 0


@pytest.mark.parametrize("scales", [np.logspace(-35, 35, 8)[:, None], np.array([1e30, 1e-30, 1.0, 1.0, 1.0])])
def test_single_precision_spans_what_it_can(scales):
    """Rows over 70 of its 76 decades, as numbers above the smallest normal one: the fit is as good as its digits."""
    X = (scales * gammas((8, 5))).astype(np.float32)
    X[2, 3] = NAN
    model = fitted(X)
    assert model.W_.dtype == model.H_.dtype == np.float32
    assert model.W_.min() >= 1.17e-38
    assert relative_gap(X.astype(float), *factors(model)) < 1e-5


def test_shifts_stay_within_their_bounds_and_sum_to_zero():
    rng = np.random.default_rng(0)
    for _ in range(200):
        axes = rng.integers(2, 5)
        shift = rng.normal(size=axes) * 300
        shift -= shift.mean()
        low, high = -rng.uniform(0, 400, axes), rng.uniform(0, 400, axes)
        found = components._clip_shifts(shift, low, high)
        assert found.sum() == pytest.approx(0.0, abs=1e-9)
        # Bounds that hold 0 always leave room for shifts that sum to 0.
        assert ((found >= low - 1e-9) & (found <= high + 1e-9)).all()
        if ((shift >= low) & (shift <= high)).all():
            assert_allclose(found, shift, atol=1e-9)
    no_room = components._clip_shifts(np.array([5.0, -5.0]), np.array([10.0, 10.0]), np.array([20.0, 20.0]))
    assert no_room.sum() == pytest.approx(0.0, abs=1e-12)
