"""Counts as ordered levels."""

import itertools

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_array_equal
from scipy import optimize, sparse
from sklearn.pipeline import make_pipeline

from halfseen import PoissonFactorization, observe
from halfseen.errors import DataError, ParameterError
from halfseen.estimators.quantizer import Quantizer, best_edges, theta_at
from tests.data.strategies import CALM
from tests.estimators.models import refused

PLAYS = [1, 2, 5, 10, 20, 50, 100, 200, 500]
COUNTS = np.array([[0.0, 1, 4], [5, np.nan, 9], [499, 500, 352_698]])
LEVELS = np.array([[0.0, 1, 2], [3, np.nan, 3], [8, 9, 9]])


def long_frame(library=pd):
    rows, columns = np.nonzero(~np.isnan(COUNTS))
    ids = {"user": [f"u{i}" for i in rows], "item": [f"i{j}" for j in columns]}
    return library.DataFrame({**ids, "plays": COUNTS[rows, columns].astype(int), "date": ["today"] * rows.size})


def test_the_levels_of_the_paper():
    quantizer = Quantizer(PLAYS)
    assert_array_equal(quantizer.fit_transform(COUNTS), LEVELS)
    assert_array_equal(quantizer.edges_, PLAYS)


@CALM
@given(
    hnp.arrays(np.float64, (3, 4), elements=st.floats(-5, 100) | st.just(np.nan) | st.sampled_from([1.0, 2.5, 60.0])),
    st.sampled_from([[1.0, 2.5, 60.0], [0.5], (3, 4, 5, 6)]),
)
def test_a_level_is_the_number_of_edges_reached(values, edges):
    values[0, 0] = 1.0
    expected = [[np.nan if np.isnan(one) else sum(edge <= one for edge in edges) for one in row] for row in values]
    assert_array_equal(Quantizer(edges).fit_transform(values), expected)


@CALM
@given(
    hnp.arrays(np.float64, 30, elements=st.floats(0, 1e6) | st.integers(0, 5).map(float)),
    st.sampled_from(["quantiles", [1, 2, 5]]),
    st.integers(1, 12),
)
def test_back_and_forth(values, edges, n_levels):
    values[0] = 3.0
    X = values.reshape(5, 6)
    quantizer = Quantizer(edges, n_levels=n_levels).fit(X)
    levels = quantizer.transform(X)
    back = quantizer.inverse_transform(levels)
    assert_array_equal(quantizer.transform(back), levels)
    for level, value in enumerate(quantizer.values_):
        mine = np.sort(X[levels == level])
        lowest = np.append(0.0, quantizer.edges_)[level]
        assert value == (mine[(mine.size - 1) // 2] if mine.size else lowest)


@CALM
@given(st.integers(1, 12), st.integers(0, 1000))
def test_learned_levels_are_equally_full(n_levels, seed):
    """Where no value comes twice."""
    X = np.random.default_rng(seed).permutation(np.arange(-3.0, 61)).reshape(8, 8)
    quantizer = Quantizer(n_levels=n_levels).fit(X)
    per_level = np.bincount(quantizer.transform(X).astype(int).reshape(-1))
    assert quantizer.edges_[0] == 1.0
    assert per_level[0] == 4  # -3, -2, -1 and 0
    assert per_level.size == n_levels + 1
    assert per_level[1:].max() - per_level[1:].min() <= 1


def test_a_value_that_fills_several_levels_is_one():
    counts = np.array([[1.0] * 6, [1, 1, 1, 2, 3, 400]])
    assert_array_equal(Quantizer(n_levels=3).fit(counts).edges_, [1.0])
    assert_array_equal(Quantizer(n_levels=4).fit(counts).edges_, [1.0, 2.0])
    assert_array_equal(Quantizer(n_levels=6).fit(counts).edges_, [1.0, 3.0])
    assert_array_equal(Quantizer(n_levels=100).fit(counts).edges_, [1.0, 2.0, 3.0, 400.0])


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "lil"])
def test_sparse_matrices_store_the_same_cells(kind):
    rows, columns = np.nonzero(COUNTS > 0)
    X = sparse.coo_array((COUNTS[rows, columns], (rows, columns)), (3, 3)).asformat(kind)
    before = X.toarray()
    levels = Quantizer(PLAYS).fit_transform(X)
    assert levels.format == kind
    assert_array_equal(levels.toarray(), np.nan_to_num(LEVELS))
    assert_array_equal(X.toarray(), before)


def test_a_stored_value_below_all_edges_stays_stored():
    X = sparse.csr_array(([3.0, 0.0, 7.0], ([0, 0, 1], [0, 2, 1])), (2, 3))
    levels = Quantizer([5]).fit_transform(X)
    assert levels.nnz == 3
    assert_array_equal(observe(levels).to_dense(), [[0, np.nan, 0], [np.nan, 1, np.nan]])


def test_what_was_observed():
    seen = observe(long_frame(), columns=("user", "item", "plays"), cell_weight=np.arange(1.0, 9), unseen="zero")
    levels = Quantizer(PLAYS).fit_transform(seen)
    assert_array_equal(levels.to_dense(), np.nan_to_num(LEVELS))
    assert levels.unseen == "zero"
    assert levels.weights is seen.weights
    assert levels.row_labels is seen.row_labels
    assert_array_equal(seen.to_dense(), np.nan_to_num(COUNTS))


@pytest.mark.parametrize("library", [pd, pl])
def test_long_frames(library):
    frame = long_frame(library)
    levels = Quantizer(PLAYS).fit_transform(frame)
    assert isinstance(levels, library.DataFrame)
    assert list(levels.columns) == ["user", "item", "plays", "date"]
    assert levels["plays"].to_list() == LEVELS[~np.isnan(LEVELS)].tolist()
    assert str(levels["plays"].dtype).lower() == "int64"
    for name in ("user", "item", "date"):
        assert levels[name].to_list() == frame[name].to_list()
    assert frame["plays"].to_list() == COUNTS[~np.isnan(COUNTS)].tolist()


def test_long_frames_with_other_items():
    quantizer = Quantizer(PLAYS).fit(long_frame())
    other = pd.DataFrame({"user": ["x"], "item": ["new"], "plays": [25.5]}, index=[77])
    pd.testing.assert_frame_equal(quantizer.transform(other), other.assign(plays=5.0))


def test_wide_frames():
    frame = pd.DataFrame(COUNTS, index=["a", "b", "c"], columns=["x", "y", "z"]).astype({"x": int})
    levels = Quantizer(PLAYS).fit_transform(frame)
    expected = pd.DataFrame(LEVELS, index=["a", "b", "c"], columns=["x", "y", "z"]).astype({"x": int})
    pd.testing.assert_frame_equal(levels, expected)


def test_columns_that_name_the_rows_stay():
    frame = pl.DataFrame({"user_id": [100, 200, 300], "x": [0, 5, 499], "y": [1.0, None, 500.0]})
    levels = Quantizer(PLAYS).fit_transform(frame)
    assert levels["user_id"].to_list() == [100, 200, 300]
    assert levels["x"].to_list() == [0, 3, 8]
    assert np.array_equal(levels["y"].to_numpy(), [1.0, np.nan, 9.0], equal_nan=True)


def test_values_that_are_no_whole_numbers_come_back_in_columns_of_whole_levels():
    quantizer = Quantizer([1, 10]).fit([[2.5, 20.0]])
    back = quantizer.inverse_transform(pd.DataFrame({"a": [1, 2], "b": [2, 0]}))
    pd.testing.assert_frame_equal(back, pd.DataFrame({"a": [2.5, 20.0], "b": [20, 0]}))


def test_files(tmp_path):
    long_frame()[["user", "item", "plays"]].to_csv(tmp_path / "plays.csv", index=False)
    levels = Quantizer(PLAYS).fit_transform(tmp_path / "plays.csv")
    assert_array_equal(levels.to_dense(), LEVELS)
    assert list(levels.column_labels) == ["i0", "i1", "i2"]


def test_single_precision_stays():
    for X in (COUNTS.astype(np.float32), sparse.csr_array(np.nan_to_num(COUNTS).astype(np.float32))):
        assert Quantizer(PLAYS).fit_transform(X).dtype == np.float32


def test_in_a_pipeline():
    counts = sparse.csr_array(np.random.default_rng(0).poisson(3.0, (20, 10)) * 1.0)
    model = PoissonFactorization(2, max_iter=10, tol=0, random_state=0)
    features = make_pipeline(Quantizer([1, 3, 6]), model).fit_transform(counts)
    assert_array_equal(features, model.fit_transform(Quantizer([1, 3, 6]).fit_transform(counts)))


@pytest.mark.parametrize(
    "edges",
    ["quantile", [], [1, 1], [2, 1], [0, 1], [-1, 1], [1, np.nan], [1, np.inf], [[1, 2]], 5, None, ["a"], {1}],
    ids=str,
)  # fmt: skip
def test_invalid_edges_are_refused(edges):
    with refused(ParameterError, "edges"):
        Quantizer(edges).fit(COUNTS)


def test_invalid_numbers_of_levels_are_refused():
    with refused(ParameterError, "n_levels"):
        Quantizer(n_levels=0).fit(COUNTS)


def test_data_without_levels_are_refused():
    quantizer = Quantizer([1, 2]).fit(COUNTS)
    for wrong in (1.5, 3, -1):
        with refused(DataError, found=f"{float(wrong)}"):
            quantizer.inverse_transform([[0.0, wrong, np.nan]])
    pairs = pd.DataFrame({"user": ["a", "b"], "item": ["x", "x"]})
    with refused(DataError, found="only 'user', 'item'", remedy="duplicates="):
        Quantizer([1]).fit(pairs).transform(pairs)
    for data, found in ((7, ""), ([[1.0, np.inf, 2.0]], "inf")):
        with refused(DataError, found=found):
            Quantizer(PLAYS).fit(COUNTS).transform(data)
    quantizer = Quantizer().fit(COUNTS)
    kept = dict(vars(quantizer))
    with refused(DataError, "edges", found="none among 1"):
        quantizer.fit([[0.0, np.nan]])
    assert vars(quantizer) == kept  # of the fit before


def test_repeated_cells_are_to_be_merged_first():
    log = pd.DataFrame({"user": ["a", "a"], "item": ["x", "x"], "plays": [3, 4]})
    with refused(DataError, remedy="merge"):
        Quantizer(PLAYS).fit(log)
    assert Quantizer(PLAYS).fit_transform(observe(log, duplicates="sum")).values.tolist() == [3.0]


# Edges that are learned with a factorization.


def planted_counts(seed=0):
    """Levels of OrdNMF that begin at 1, 4 and 11; within a level all counts are equally likely, whatever x is."""
    random = np.random.default_rng(seed)
    x = random.gamma(1.0, 1.0, (150, 3)) @ random.gamma(1.0, 1.0, (3, 100))
    level = np.searchsorted([2.0, 5.0, 12.0], x / random.standard_gamma(1.0, x.shape), side="right")
    starts = np.array([0, 1, 4, 11, 31])
    return x, random.integers(starts[level], starts[level + 1])


@pytest.mark.parametrize("seed", [0, 1])
def test_planted_edges_are_found(seed):
    _, Y = planted_counts(seed)
    for X in (np.where(Y > 0, Y, np.nan), sparse.csr_array(Y.astype(float))):
        quantizer = Quantizer("fit", n_levels=3, n_components=3, random_state=0).fit(X)
        assert quantizer.edges_.tolist() == [1, 4, 11]
    assert Quantizer(n_levels=3).fit(X).edges_.tolist() != [1, 4, 11]


def test_theta_of_each_threshold_has_the_highest_likelihood():
    x, Y = planted_counts()
    x, Y = x[:20], np.minimum(Y[:20], 6)
    theta = theta_at(Y[Y > 0], x[Y > 0], x[Y == 0].sum())
    assert theta.shape == (7,)
    assert theta[-1] == 0
    assert np.all(np.diff(theta) < 0)
    for v in range(1, 7):

        def log_likelihood(one, v=v):
            return np.where(v <= Y, np.log(-np.expm1(-one * x)), -one * x).sum()

        best = optimize.minimize_scalar(lambda log: -log_likelihood(np.exp(log)), (-8, 2), tol=1e-10)
        assert theta[v - 1] == pytest.approx(np.exp(best.x), rel=1e-5)


@pytest.mark.parametrize("n_levels", [1, 2, 3, 4, 7])
def test_dynamic_programming_finds_the_best_of_all_edges(n_levels):
    random = np.random.default_rng(0)
    level, x = random.integers(1, 8, 60), random.gamma(1.0, 2.0, 60)
    theta = np.append(np.sort(random.gamma(1.0, 1.0, 7))[::-1], 0.0)

    def log_likelihood(edges):
        total = 0.0
        for start, end in itertools.pairwise([*edges, 7]):
            inside = (level > start) & (level <= end)
            total += np.log(np.exp(-theta[end] * x[inside]) - np.exp(-theta[start] * x[inside])).sum()
            total += sum(np.log(np.mean(level[inside] == one)) for one in level[inside])
        return total

    every = [(0, *rest) for rest in itertools.combinations(range(1, 7), n_levels - 1)]
    assert tuple(best_edges(level, x, theta, n_levels)) == max(every, key=log_likelihood)


def test_few_values_are_their_own_edges_and_results_are_repeatable():
    X = np.array([[1.0, 2, np.nan], [2, 5, 1], [5, 1, 1]])
    assert Quantizer("fit", n_levels=4).fit(X).edges_.tolist() == [1, 2, 5]
    _, Y = planted_counts()
    edges = [Quantizer("fit", n_levels=5, n_components=2, random_state=3).fit(Y).edges_ for _ in range(2)]
    assert_array_equal(*edges)
    assert edges[0].size == 5
    full = Quantizer("fit", n_levels=3, n_components=3, random_state=0).fit(Y + 1.0)  # no cell is a zero
    assert full.edges_[0] == 1
    assert np.all(np.diff(full.edges_) > 0)
    with pytest.raises(DataError):
        Quantizer("fit").fit(np.zeros((3, 3)))
