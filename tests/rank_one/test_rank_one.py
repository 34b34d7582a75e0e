"""`rank_one`: the numbers, messages and warnings of `RankOneNMF`, by a compiled loop wherever that suffices."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from halfseen import RankOneNMF, Status, rank_one
from halfseen.errors import DataError, DataWarning, HalfseenError
from halfseen.estimators import rank_one_nmf as module
from halfseen.rankone import table_sums
from halfseen.rankone.table_sums import a1gm_of_dense, exact_of_dense

from . import oracle
from .cases import GRID_LIKE, NAN, TABLES, fitted, gammas, half_seen, holed

#: Tables that the compiled loop leaves to the estimator: parts, empty lines, little observed.
LEFT = {"half of it", "few seen", "dead lines", "chain", "tree", "parts", "rank one", "row", "column", "sparse counts"}
#: Tables that A1GM can fit: with a row and a column without a hole, and no zeros in their way.
USABLE = {
    name: X
    for name, X in (TABLES | GRID_LIKE).items()
    if all((~np.isnan(X)).all(axis).any() for axis in (0, 1)) and name != "sparse counts"
}


def quietly(X, **options):
    with warnings.catch_warnings(action="ignore"):
        return rank_one(X, **options)


@pytest.fixture
def no_estimator(monkeypatch):
    """The estimator is not to be used."""
    monkeypatch.setattr(module, "RankOneNMF", None)


@pytest.mark.parametrize("name", TABLES)
def test_it_is_the_best_fit(name):
    X = TABLES[name]
    ours, model = quietly(X), fitted(X)
    seen = ~np.isnan(X)
    assert_allclose(np.outer(ours.w, ours.h)[seen], np.outer(*oracle.best(X))[seen], rtol=1e-8)
    for factor, same in zip(ours[:2], model.axis_factors_, strict=True):
        assert_allclose(factor, same, rtol=1e-9)
    assert (ours.status, ours.increase_rate) == (Status.CONVERGED, None)
    assert ours.n_iter >= 1


@pytest.mark.parametrize("name", USABLE)
def test_a1gm_is_algorithm_1(name):
    X = USABLE[name]
    ours, model = quietly(X, method="a1gm"), fitted(X, "a1gm")
    assert_allclose(np.outer(ours.w, ours.h), np.outer(*oracle.a1gm(X)), rtol=1e-12)
    for factor, same in zip(ours[:2], model.axis_factors_, strict=True):
        assert_allclose(factor, same, rtol=1e-12)
    holes = np.isnan(X)
    treated = holes.any(axis=1).sum() * holes.any(axis=0).sum()
    assert ours.increase_rate == (treated / holes.sum() if holes.any() else 1.0)
    assert (ours.n_iter, ours.status) == (1, Status.CONVERGED)


@pytest.mark.parametrize("method", ["exact", "a1gm"])
def test_the_compiled_loop_does_what_it_can(method, no_estimator):
    tables = USABLE if method == "a1gm" else {name: X for name, X in (TABLES | GRID_LIKE).items() if name not in LEFT}
    assert len(tables) >= 12
    for X in tables.values():
        for same in (X, np.asfortranarray(X), np.repeat(X, 2, axis=1)[:, ::2]):
            w, h = rank_one(same, method=method)[:2]
            assert w.sum() == pytest.approx(h.sum(), rel=1e-13)
            assert (w.shape, h.shape) == ((X.shape[0],), (X.shape[1],))
            assert_allclose(np.outer(w, h), np.outer(*rank_one(X, method=method)[:2]), rtol=1e-9)


def test_the_compiled_loop_leaves_the_rest():
    for X in (TABLES["parts"], TABLES["chain"], TABLES["dead lines"], np.full((2, 2), NAN), -np.ones((2, 2)),
              np.array([[1e200, 1], [1, np.inf]]), gammas((3, 3)) * 1e-200, np.zeros((2, 3)), np.empty((0, 3)),
              np.array([[1e-40, 1e-40], [1.0, NAN]])):  # fmt: skip
        assert exact_of_dense(X, 1e-10, 50)[2] == 0
        if not np.array_equal(X, TABLES["dead lines"], equal_nan=True):
            assert a1gm_of_dense(X)[2] == -1
    assert exact_of_dense(TABLES["few holes"], 1e-10, 2)[2] == 0  # more sweeps are needed


def outcome_of(fit, X, method):
    """The factors, or the message of the refusal."""
    try:
        return fit(X, method=method)
    except DataError as error:
        return str(error)


@given(half_seen())
@settings(max_examples=60, deadline=None)
def test_on_any_small_table_it_agrees_with_the_estimator(X):
    for method in ("exact", "a1gm"):
        ours, theirs = outcome_of(quietly, X, method), outcome_of(fitted, X, method)
        if isinstance(ours, str):
            assert ours == theirs
        else:
            fits = (np.outer(w, h)[~np.isnan(X)] for w, h in (ours[:2], theirs.axis_factors_))
            assert_allclose(*fits, rtol=1e-8, atol=1e-9 * np.nansum(X))  # parts joined by zeros are a limit


@pytest.mark.parametrize("method", ["exact", "a1gm", "em"])
@pytest.mark.parametrize("X", [
    np.array([[1.0, -2.0], [3.0, 4.0]]), np.full((2, 2), NAN), np.array([[1.0, np.inf], [1.0, 2.0]]), np.ones(3),
    np.array([["a", "b"]]), np.empty((0, 2)), "nothing.csv",
], ids=["negative", "empty", "infinite", "a vector", "words", "no rows", "no file"])  # fmt: skip
def test_bad_data_are_refused_as_by_the_estimator(X, method):
    with pytest.raises(HalfseenError) as theirs:
        RankOneNMF(method).fit(X)
    with pytest.raises(type(theirs.value)) as ours:
        rank_one(X, method=method)
    assert str(ours.value) == str(theirs.value)


def test_what_a1gm_and_the_function_itself_refuse():
    with pytest.raises(DataError, match=r"A1GM must find a row and a column without a hole. Found a hole in every row"):
        rank_one(np.array([[1, NAN, 2], [2, 3, NAN]]), method="a1gm")
    with pytest.raises(DataError, match=r"A1GM must find a value above 0 where rows and columns without holes meet"):
        rank_one(np.array([[0.0, 1.0], [1.0, NAN]]), method="a1gm")
    with pytest.raises(DataError, match=r"X must be a matrix\. Found 3 axes\. Use RankOneNMF"):
        rank_one(np.ones((2, 3, 2)))
    with pytest.raises(HalfseenError, match="method must be"):
        rank_one(np.ones((2, 3)), method="svd")


def test_warnings_are_those_of_the_estimator():
    with pytest.warns(DataWarning, match="Seen cells should connect all rows and columns. Found 4 parts"):
        rank_one(TABLES["parts"])


def test_other_kinds_of_data():
    X = np.round(holed(gammas((7, 5), 3, form=9.0), 0.1))
    w, h = rank_one(X)[:2]
    triples = sparse.coo_array(np.nan_to_num(X))
    for same in (pd.DataFrame(X), X.tolist()):
        assert_allclose(np.outer(*rank_one(same)[:2]), np.outer(w, h), rtol=1e-9)
    single = rank_one(X.astype(np.float32))
    assert single.w.dtype == single.h.dtype == np.float32
    assert_allclose(np.outer(*single[:2]), np.outer(w, h), rtol=1e-5)
    assert_allclose(np.outer(*rank_one(X, method="em")[:2]), np.outer(w, h), rtol=1e-7)
    assert triples.nnz == np.count_nonzero(~np.isnan(X))
    assert_allclose(np.outer(*rank_one(triples)[:2]), np.outer(w, h), rtol=1e-9)
    whole = np.arange(1, 13).reshape(3, 4)
    assert_allclose(np.outer(*rank_one(whole)[:2]), np.outer(whole.sum(1), whole.sum(0)) / whole.sum(), rtol=1e-12)
    untouched = X.copy()
    rank_one(X)
    assert_array_equal(X, untouched)


@pytest.mark.parametrize("method", ["exact", "a1gm"])
@pytest.mark.parametrize("kind", ["float32", "bool", "int8", "uint8", "int16", "int32", "int64", "uint64", "list"])
def test_other_numbers_and_lists_take_the_compiled_loop_too(kind, method, monkeypatch):
    X = np.random.default_rng(1).integers(0, 5, (9, 7)) + (np.arange(7) == 2)
    if kind == "float32":
        X = np.where(np.isnan(GRID_LIKE["spread"]), NAN, 3.7 * GRID_LIKE["spread"])
    data = X.tolist() if kind == "list" else X.astype(kind)
    model, estimator = fitted(data, method), module.RankOneNMF
    for same in (data,) if kind == "list" else (data, np.asfortranarray(data), np.repeat(data, 2, axis=1)[:, ::2]):
        monkeypatch.setattr(module, "RankOneNMF", None)
        ours = rank_one(same, method=method)
        monkeypatch.setattr(module, "RankOneNMF", estimator)
        for factor, theirs in zip(ours[:2], model.axis_factors_, strict=True):
            assert factor.dtype == theirs.dtype == (np.float32 if kind == "float32" else np.float64)
            assert_allclose(factor, theirs, rtol=3e-7 if kind == "float32" else 1e-9)


def test_single_precision_of_a_wide_range_is_left_to_the_estimator():
    """Its factors must be numbers of float32 above 0, for which the estimator chooses their scale."""
    wide = np.float32([[1e-20, 1e-28], [1e18, 1e10]])
    for X in (wide, wide.T, np.float32([[1e-38, 1e-38], [1.0, NAN]]), np.float32(gammas((3, 3)) * 1e-35)):
        assert exact_of_dense(np.ascontiguousarray(X), 1e-10, 50)[2] == 0
        ours, model = quietly(X), fitted(X)
        for factor, theirs in zip(ours[:2], model.axis_factors_, strict=True):
            assert factor.dtype == np.float32
            assert (factor > 0).all()
            assert_array_equal(factor, theirs)


@pytest.mark.parametrize("X", [
    [[1.0, 2.0], [3.0]], [[1.0, None], [3.0, 4.0]], [["1", "2"], ["3", "x"]], [[]], [], [1.0, 2.0],
    [[10**30, 1], [1, 1]], [[1j, 1.0], [1.0, 2.0]], [[-1, 1], [1, 2]],
], ids=str)  # fmt: skip
def test_other_lists_are_what_they_are_for_the_estimator(X):
    ours, theirs = outcome_of(quietly, X, "exact"), outcome_of(fitted, X, "exact")
    if isinstance(ours, str):
        assert ours == theirs
    else:
        assert_allclose(np.outer(*ours[:2]), np.outer(*theirs.axis_factors_), rtol=1e-9)


@pytest.mark.parametrize("share", [0.0, 0.001, 0.3, 1.0])
def test_missing_cells_are_listed_by_blocks_in_little_more_than_their_memory(share):
    X = holed(np.where(np.arange(700) % 7 > 5, 0.0, gammas((300, 700), 3)), share)
    X[5, 5] = -1.0
    assert X.size > 3 * table_sums._CELLS_PER_BLOCK
    sums, of_blocks = ((np.empty(300), np.zeros(700)) for _ in range(2))
    rows, indptr, missing, totals = table_sums.dense_table_sums_by_blocks(X, *of_blocks)
    all_rows, ends, every, same = np.empty(300, int), np.empty(301, int), np.empty(X.size + 1, np.int32), np.empty(6)
    count = table_sums.dense_table_sums(X, *sums, all_rows, ends, every, np.empty(700, np.uint8), same)
    assert_array_equal(rows, all_rows[:count])
    assert_array_equal(indptr[: count + 1], ends[: count + 1])
    assert_array_equal(missing[: ends[count]], every[: ends[count]])
    assert_array_equal(np.concatenate(of_blocks), np.concatenate(sums))
    assert_allclose(totals, same, rtol=1e-13)
    assert missing.size <= 2 * np.isnan(X).sum()
    assert module._as_plain_array(np.broadcast_to(1.0, (1, 2**31))) is None  # more columns than int32 can number
