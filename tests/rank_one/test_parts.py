"""Which rows and columns hang together: against the oracle's walks, and what a fit makes of it."""

import numpy as np
import pytest
from hypothesis import given, settings
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from halfseen import RankOneNMF, observe
from halfseen.errors import DataWarning
from halfseen.rank_one import parts

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
@given(half_seen())
def test_parts_of_any_table(X):
    for data in (X, np.asfortranarray(X), listed(X), observe(X)):
        assert_parts(fitted(data), X)


@pytest.mark.parametrize("seed", range(10))
def test_parts_of_larger_tables(seed):
    X = holed(counts((25, 20), seed, 0.6), 0.9, seed)
    assert len(np.unique(living_parts(X)[0])) > 2
    for data in (X, np.asfortranarray(X), listed(X)):
        assert_parts(fitted(data), X)
    assert_parts(fitted(X, cell_weight=weights_for(X)), X)


@pytest.mark.parametrize("X", TABLES.values(), ids=TABLES)
def test_counts_that_prove_a_single_part_are_right(X, monkeypatch):
    """The same labels and the same factors if they are not asked."""
    told = fitted(X)
    monkeypatch.setattr(parts, "_surely_one", lambda table, marginals: marginals.total == 0)
    walked = fitted(X)
    for by_count, by_walk in zip(told.parts_, walked.parts_, strict=True):
        assert_array_equal(by_count, by_walk)
    assert_array_equal(told.W_, walked.W_)


@settings(deadline=None, max_examples=100)
@given(half_seen(largest=4))
def test_counts_never_join_what_is_apart(X):
    """Small tables full of zeros, where a wrong count shows."""
    assert_parts(fitted(X), X)
    assert_parts(fitted(X.T.copy()), X.T)


@pytest.mark.parametrize("kind", ["rows", "columns", "listed"])
def test_parts_have_equal_sums_and_the_fits_they_have_alone(kind):
    tables = [gammas((3, 2), 1), 1e6 * holed(gammas((5, 4), 2), 0.2), 1e-6 * chain(4), np.array([[7.0]])]
    X = blocks(*tables)
    data = {"rows": X, "columns": np.asfortranarray(X), "listed": listed(X)}[kind]
    with pytest.warns(DataWarning) as told:
        model = RankOneNMF().fit(data)
    assert [str(warning.message) for warning in told] == [
        "Seen cells should connect all rows and columns. Found 4 parts without a connection, the second one with row "
        "3. Each has a scale of its own, fixed by equal sums; what the model says of cells between parts means "
        "nothing."
    ]
    assert told[0].filename == __file__
    assert model.n_parts_ == 4
    w, h = factors(model)
    for part, table in enumerate(tables):
        inside = [of == part for of in model.parts_]
        assert_allclose(w[inside[0]].sum(), h[inside[1]].sum(), rtol=1e-12)
        alone = fitted(table)
        assert_allclose(w[inside[0]], alone.W_[:, 0], rtol=1e-9)
        assert_allclose(h[inside[1]], alone.H_[:, 0], rtol=1e-9)


def test_the_second_part_is_named_by_its_label():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        blocks(gammas((2, 2)), gammas((2, 3), 1)), index=["a", "b", "c", "d"], columns=list("vwxyz")
    )
    with pytest.warns(DataWarning, match=r"Found 2 parts without a connection, the second one with row 'c'\."):
        RankOneNMF().fit(frame)


@pytest.mark.filterwarnings("error")
def test_one_part_is_not_worth_a_word():
    X = TABLES["chain"]
    assert RankOneNMF().fit(X).n_parts_ == 1
    assert RankOneNMF(unseen="zero").fit(listed(np.eye(4))).n_parts_ == 1
    assert RankOneNMF().fit(np.eye(4)).n_parts_ == 1
    assert RankOneNMF().fit(np.zeros((3, 2))).n_parts_ == 0


# Limits

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
    assert (w > 0).all()
    assert (h > 0).all()
    assert np.isfinite(w).all()
    assert np.isfinite(h).all()
    assert_allclose(w * h, 1.0, rtol=1e-9 if dtype == np.float64 else 1e-5)
    # The zeros share the powers of ten that there are, 200 of them, or 30 in single precision.
    nearest = np.exp(-np.log(10) * (200 if dtype == np.float64 else 30) / (n - 1))
    assert oracle.cost(X, w, h) <= 1.1 * n * max(1e-10, nearest) + (1e-9 if dtype == np.float64 else 1e-6 * n)


def test_a_heavy_zero_is_met_as_well_as_a_light_one():
    X, C = LIMITS["two"], np.array([[1.0, 1e6], [1.0, 1.0]])
    for data, unseen in ((X, "missing"), (np.nan_to_num(X, nan=5.0), "zero")):
        C[1, 0] = 1.0 if unseen == "missing" else 0.0
        w, h = factors(fitted(data, cell_weight=C, unseen=unseen))
        assert 1e6 * w[0] * h[1] <= 1.1e-10 * 2
        assert_allclose(w * h, 1.0, rtol=1e-9)


def test_whole_rows_of_zeros_do_not_take_others_with_them():
    """Rows without a hole are one, some of them zeros, in a table whose counts prove nothing."""
    X = np.array([[0, 0, 1, 0], [0, 0, 0, 0], [NAN, 1, NAN, 0], [1, NAN, NAN, NAN], [0, 0, 0, 0], [0, 0, 0, 2.0]])
    for data in (X, np.asfortranarray(X), listed(X)):
        model = fitted(data)
        assert_parts(model, X)
        assert oracle.cost(X, *factors(model)) == pytest.approx(infimum(X), abs=1e-9)


def test_a_limit_is_told_of():
    with pytest.warns(DataWarning) as told:
        RankOneNMF().fit(LIMITS["two"])
    assert len(told) == 1
    assert str(told[0].message).startswith(
        "Seen zeros should not be all that connects rows and columns. Found 2 parts held together by nothing else, the "
        "second one with row 1. The best fit is a limit that no factors reach"
    )
    assert told[0].filename == __file__


@pytest.mark.parametrize("seed", range(8))
def test_random_tables_that_are_limits(seed):
    rng = np.random.default_rng(seed)
    found = 0
    while found < 4:
        X = holed(counts((6, 6), rng.integers(1 << 30), 0.7), 0.55, rng.integers(1 << 30))
        if is_reached(X):
            continue
        found += 1
        model = fitted(X)
        assert_parts(model, X)
        assert oracle.cost(X, *factors(model)) == pytest.approx(infimum(X), abs=2e-10 * np.nansum(X) + 1e-12)


# Cells that do not count, in a grid where unseen cells are zeros


def test_weight_zero_under_unseen_zeros_is_a_hole():
    X, C = np.array([[1.0, 0.0], [7.0, 2.0]]), np.array([[1.0, 1.0], [0.0, 1.0]])
    limit = np.where(C > 0, X, NAN)
    model = fitted(X, cell_weight=C, unseen="zero")
    assert_parts(model, limit)
    assert oracle.cost(limit, *factors(model)) <= 1e-9
    apart = fitted(np.array([[1.0, 5.0], [7.0, 1e6]]), cell_weight=np.eye(2), unseen="zero")
    assert apart.n_parts_ == 2
    assert_allclose(apart.W_, apart.H_, rtol=1e-9)


# Tensors


def test_parts_of_a_tensor():
    X = np.full((5, 4, 3), NAN)
    X[:2, :2, :1], X[2:4, 2:, 1:] = gammas((2, 2, 1)), gammas((2, 2, 2), 1)
    X[4, 0, 0] = 0.0
    with pytest.warns(DataWarning, match=r"Found 2 parts without a connection, the second one with row 2\."):
        model = RankOneNMF().fit(X)
    for found, expected in zip(model.parts_, ([0, 0, 1, 1, -1], [0, 0, 1, 1], [0, 1, 1]), strict=True):
        assert_array_equal(found, expected)
    for part in (0, 1):
        sums = [factor[of == part].sum() for factor, of in zip(model.axis_factors_, model.parts_, strict=True)]
        assert_allclose(sums, sums[0], rtol=1e-12)


def test_a_slice_of_zeros_connects_nothing_in_a_tensor():
    """Its factor is 0, whatever those of the other axes are."""
    X = np.full((5, 4, 3), NAN)
    X[:2, :2, :1], X[2:4, 2:, 1:] = gammas((2, 2, 1)), gammas((2, 2, 2), 1)
    X[4] = 0.0
    model = fitted(X)
    assert model.n_parts_ == 2
