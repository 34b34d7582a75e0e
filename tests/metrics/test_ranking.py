"""Ranking metrics against plain Python and scikit-learn."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.metrics import ndcg_score

from halfseen import PoissonFactorization, RankOneNMF, WeightedNMF, observe
from halfseen.errors import DataError, DataWarning, ParameterError
from halfseen.io import split_cells
from halfseen.metrics import map_at_k, ndcg_at_k, precision_at_k, ranking_scores, recall_at_k, scorers
from halfseen.observed import Observed
from tests.data.strategies import CALM
from tests.estimators.models import fitted, long_frame, refused
from tests.metrics import oracle

METRICS = (ndcg_at_k, precision_at_k, recall_at_k, map_at_k)


def problem(seed=0, rows=12, columns=15, k=3, exact=True):
    """Factors, and levels 1..5 in dense arrays for training and test, which have no cell in common."""
    rng = np.random.default_rng(seed)
    factors = [rng.integers(0, 4, (size, k)) * 1.0 if exact else rng.random((size, k)) for size in (rows, columns)]
    levels = rng.integers(1, 6, (rows, columns)) * 1.0
    part = rng.random((rows, columns))
    part[np.arange(max(rows, columns)) % rows, np.arange(max(rows, columns)) % columns] = 0  # all have a training cell
    return *factors, np.where(part < 0.4, levels, np.nan), np.where(part > 0.7, levels, np.nan)


def expected(scores, train, test, k, relevant):
    """By plain Python: the four metrics of every row, NaN where there are none."""
    rows = oracle.all_rows(np.asarray(scores).tolist(), train.tolist(), test.tolist(), k, relevant)
    return np.array([(np.nan,) * 4 if row is None else row for row in rows]).T


@CALM
@given(st.integers(0, 10_000), st.integers(1, 20), st.sampled_from([1, 2, 4, 4.5, 5]))
def test_against_plain_python(seed, k, relevant):
    W, H, train, test = problem(seed)
    if not np.any(test >= relevant):
        return
    rows = expected(W @ H.T, train, test, k, relevant)
    assert_allclose(ranking_scores((W, H), train, test, k, relevant), rows, rtol=1e-12)
    for metric, values in zip(METRICS, rows, strict=True):
        found = metric((W, H), train, test, k, relevant)
        assert type(found) is float
        assert_allclose(found, np.nanmean(values), rtol=1e-12)


def test_several_thresholds_are_each_of_them_alone():
    W, H, train, test = problem()
    for metric in METRICS:
        found = metric((W, H), train, test, 5, relevant=[1, 3, 4, 5])
        assert_array_equal(found, [metric((W, H), train, test, 5, relevant=s) for s in (1, 3, 4, 5)])
    scores = ranking_scores((W, H), train, test, 5, relevant=(1, 5))
    assert scores.ndcg.shape == (2, 12)
    assert_array_equal(scores.recall[1], ranking_scores((W, H), train, test, 5, relevant=5).recall)


@pytest.mark.parametrize("k", [1, 5, 10, 40])
def test_ndcg_is_scikit_learns(k):
    """On the columns of each row that were not seen in training; its gains are 0 and 1."""
    W, H, train, test = problem(3, rows=20, columns=40, exact=False)
    mine = ranking_scores((W, H), train, test, k, relevant=3).ndcg
    theirs = np.full(20, np.nan)
    for u in range(20):
        free = np.isnan(train[u])
        good = (test[u, free] >= 3)[None]
        if good.any():
            theirs[u] = ndcg_score(good, (W[u] @ H.T)[None, free], k=k)
    assert_allclose(mine, theirs, rtol=1e-12)


def test_by_hand():
    """Ranking c, b, e, d after a, which was seen; relevant are b and d."""
    scores = np.array([[9.0, 4.0, 5.0, 1.0, 3.0]])
    train, test = [[3.0, *[np.nan] * 4]], [[np.nan, 4.0, 1.0, 5.0, np.nan]]
    ideal = 1 + 1 / np.log2(3)
    assert ndcg_at_k(scores, train, test, k=4, relevant=4) == pytest.approx((1 / np.log2(3) + 1 / np.log2(5)) / ideal)
    assert ndcg_at_k(scores, train, test, k=2, relevant=4) == pytest.approx(1 / np.log2(3) / ideal)
    assert precision_at_k(scores, train, test, k=4, relevant=4) == 0.5
    assert precision_at_k(scores, train, test, k=100, relevant=4) == 0.02
    assert recall_at_k(scores, train, test, k=2, relevant=4) == 0.5
    assert map_at_k(scores, train, test, k=4, relevant=4) == pytest.approx((1 / 2 + 2 / 4) / 2)
    assert map_at_k(scores, train, test, k=1, relevant=4) == 0


def test_test_values_as_scores_are_perfect():
    _, _, train, test = problem()
    best = np.where(np.isnan(test), -1.0, test)
    for metric in (ndcg_at_k, map_at_k, recall_at_k):
        assert_allclose(metric(best, train, test, k=15, relevant=[1, 4]), 1.0, rtol=1e-14)


def test_rows_without_a_relevant_column_are_left_out():
    scores = np.array([[1.0, 2.0], [2.0, 1.0], [1.0, 1.0]])
    nan = np.nan
    train, test = np.full((3, 2), nan), np.array([[5.0, nan], [5.0, 1.0], [1.0, 1.0]])
    assert_allclose(
        ranking_scores(scores, observe(train, allow_empty=True), test, relevant=5).ndcg, [1 / np.log2(3), 1, nan]
    )
    assert ndcg_at_k(scores, observe(train, allow_empty=True), test, relevant=5) == (1 / np.log2(3) + 1) / 2


# Models of every kind


def kinds_of(W, H):
    return {
        "pair": (W, H),
        "whole numbers": (W.astype(int), H.astype(np.int32)),
        "single precision": (W.astype(np.float32), H.astype(np.float32)),
        "array": W @ H.T,
        "array of whole numbers": (W @ H.T).astype(int),
        "function": lambda rows: W[rows] @ H.T,
        "function to single precision": lambda rows: (W[rows] @ H.T).astype(np.float32),
    }


@pytest.mark.parametrize("kind", kinds_of(*np.ones((2, 1, 1))))
@pytest.mark.parametrize("at_a_time", [4, 60, 10**6])
def test_models_of_every_kind(kind, at_a_time, monkeypatch):
    monkeypatch.setattr(scorers, "SCORES_AT_A_TIME", at_a_time)
    monkeypatch.setattr(scorers, "ROWS_AT_A_TIME", max(1, at_a_time // 15))
    W, H, train, test = problem()
    found = ranking_scores(kinds_of(W, H)[kind], train, test, 5, 3)
    assert_allclose(found, expected(W @ H.T, train, test, 5, 3), rtol=1e-12)


def test_functions_are_asked_for_rows_that_have_something_relevant():
    W, H, train, test = problem()
    test[3:] = np.nan
    asked = []

    def scores(rows):
        asked.extend(rows.tolist())
        return W[rows] @ H.T

    ndcg_at_k(scores, train, test, relevant=1)
    assert asked == [u for u in range(3) if not np.isnan(test[u]).all()]


def test_popularity_is_a_pair():
    _, _, train, test = problem()
    seen = observe(train)
    popular = (np.ones((12, 1)), seen.seen_per_column()[:, None])
    scores = np.broadcast_to((~np.isnan(train)).sum(axis=0), (12, 15))
    assert_allclose(ranking_scores(popular, seen, test, 5, 3), expected(scores, train, test, 5, 3), rtol=1e-12)


@pytest.mark.parametrize("estimator", [WeightedNMF(2, random_state=0, tol=0), RankOneNMF()], ids=str)
def test_fitted_models_know_what_they_were_fitted_on(estimator):
    _, _, train, test = problem()
    model = estimator.set_params(max_iter=50).fit(train)
    rows = expected(model.W_ @ model.H_.T, train, test, 5, 3)
    assert_allclose(ranking_scores(model, train, test, 5, 3), rows, rtol=1e-12)
    assert_allclose(ranking_scores(model, None, test, 5, 3), rows, rtol=1e-12)
    assert_allclose(ranking_scores(model, None, test, 5, 3, n_jobs=1), rows, rtol=1e-12)


def test_zeros_of_counts_are_unseen_as_in_the_fit():
    rng = np.random.default_rng(0)
    counts = rng.poisson(1.0, (12, 15)) * 1.0
    held = rng.random(counts.shape) < 0.3
    train, test = np.where(held, 0, counts), np.where(held, counts, 0)
    model = PoissonFactorization(2, max_iter=20, tol=0, random_state=0).fit(train)
    rows = expected(model.W_ @ model.H_.T, np.where(train > 0, train, np.nan), np.where(test > 0, test, np.nan), 5, 2)
    for wrap in (np.asarray, sparse.csr_array, lambda X: observe(X, unseen="zero")):
        assert_allclose(ranking_scores(model, wrap(train), wrap(test), 5, 2), rows, rtol=1e-12)


def test_after_a_split_all_fits_together():
    W, H, train, test = problem()
    seen = observe(np.where(np.isnan(train), test, train))
    train, test = split_cells(seen, 0.3, 0)
    rows = expected(W @ H.T, train.to_dense(), test.to_dense(), 5, 3)
    assert_allclose(ranking_scores((W, H), train, test, 5, 3), rows, rtol=1e-12)


@pytest.mark.parametrize("n_jobs", [2, 5, None])
def test_the_same_bits_for_any_number_of_threads(n_jobs, monkeypatch):
    monkeypatch.setattr(scorers, "ROWS_AT_A_TIME", 70)
    W, H, train, test = problem(0, 200, 100, 10, exact=False)
    one = ranking_scores((W, H), train, test, 10, [1, 4], n_jobs=1)
    many = ranking_scores((W, H), train, test, 10, [1, 4], n_jobs=n_jobs)
    assert_array_equal(np.array(many), np.array(one))


def test_no_matrix_of_all_scores_is_made():
    """It would take 64 MB."""
    rng = np.random.default_rng(0)
    W, H = rng.random((4000, 4)), rng.random((2000, 4))
    cells = sparse.random_array((4000, 2000), density=0.002, rng=rng, format="csr")
    train, test = split_cells(observe(cells), 0.3, 0)
    for model in ((W, H), lambda rows: W[rows] @ H.T):
        ndcg_at_k(model, train, test, 10, 0)
        tracemalloc.start()
        try:
            ndcg_at_k(model, train, test, 10, 0, n_jobs=1)
            assert tracemalloc.get_traced_memory()[1] < 24e6
        finally:
            tracemalloc.stop()


# Labels


def as_long(X, users, items, order=0):
    rows, columns = np.nonzero(~np.isnan(X))
    frame = pd.DataFrame({"user": users[rows], "item": items[columns], "rating": X[rows, columns]})
    return frame.sample(frac=1, random_state=order)


def named(numbers, kind):
    return np.array([f"x{one}" if kind == "names" else str(one) for one in numbers], object)


@pytest.mark.parametrize(
    ("in_train", "in_test"),
    [("names", "names"), ("numbers", "numbers"), ("numbers", "text"), ("text", "numbers")],
)
def test_labels_find_labels_in_any_order(in_train, in_test):
    W, H, train, test = problem()
    users, items = np.arange(100, 112), np.arange(500, 515)
    train_ids, test_ids = (
        [users, items] if kind == "numbers" else [named(users, kind), named(items, kind)]
        for kind in (in_train, in_test)
    )
    seen = observe(as_long(train, *train_ids, order=1))
    rows, columns = (
        [ids.tolist().index(label) for label in labels]
        for ids, labels in zip(train_ids, (seen.row_labels, seen.column_labels), strict=True)
    )
    assert rows != sorted(rows)
    assert columns != sorted(columns)
    W, H, train, moved = W[rows], H[columns], train[np.ix_(rows, columns)], test[np.ix_(rows, columns)]
    found = ranking_scores((W, H), seen, as_long(test, *test_ids, order=2), 5, 3)
    assert_allclose(found, expected(W @ H.T, train, moved, 5, 3), rtol=1e-12)


def test_a_fitted_model_finds_its_labels_in_train_and_test():
    model = fitted(long_frame())
    test = pd.DataFrame({"user": ["dan", "ann", "ann"], "item": ["dip", "egg", "cod"], "rating": [5.0, 4.0, 1.0]})
    ann, dan = (
        1.0 if model.predict(user, good) > model.predict(user, other) else 1 / np.log2(3)
        for user, good, other in (("ann", "egg", "cod"), ("dan", "dip", "egg"))
    )
    for train in (long_frame(), long_frame().iloc[::-1], None):
        assert ndcg_at_k(model, train, test, relevant=4) == pytest.approx((ann + dan) / 2)


def test_labels_are_positions_for_a_model_without():
    _, _, train, test = problem()
    model = WeightedNMF(2, max_iter=20, tol=0, random_state=0).fit(train)
    rows = expected(model.W_ @ model.H_.T, train, test, 5, 3)
    found = ranking_scores(model, train, as_long(test, np.arange(12), np.arange(15)), 5, 3)
    assert_allclose(found, rows, rtol=1e-12)


def test_cells_of_unknown_rows_and_columns_are_left_out_and_told():
    model = fitted(long_frame())
    test = pd.DataFrame({"user": ["ann", "eve", "ann"], "item": ["cod", "cod", "gin"], "rating": [5.0, 5.0, 5.0]})
    with pytest.warns(DataWarning, match=r"2 of 3 .*row 'ann', column 'gin'") as told:
        found = recall_at_k(model, None, test, k=5)
    assert told[0].filename == __file__
    assert found == 1.0  # 'gin' is no miss: the model could not rank it
    train = pd.concat([long_frame(), pd.DataFrame({"user": ["eve"], "item": ["cod"], "rating": [1.0]})])
    with pytest.warns(DataWarning, match="1 of 13"):
        assert recall_at_k(model, train, test.iloc[:1], k=5) == 1.0


def test_cells_that_were_seen_in_training_are_left_out_and_told():
    W, H, train, test = problem()
    rows = expected(W @ H.T, train, test, 5, 3)
    both = np.where(np.isnan(test), train, test)
    with pytest.warns(DataWarning, match=rf"Found {np.sum(~np.isnan(train))} of {np.sum(~np.isnan(both))}") as told:
        found = ranking_scores((W, H), train, both, 5, 3)
    assert told[0].filename == __file__
    assert_allclose(found, rows, rtol=1e-12)


def test_of_a_cell_tested_twice_the_highest_value_counts():
    scores, train = np.array([[3.0, 2.0, 1.0]]), [[1.0, np.nan, np.nan]]
    for values in ([1.0, 5.0], [5.0, 1.0]):
        test = Observed.from_cells([0, 0, 0], [2, 2, 1], [*values, 1.0], (1, 3), duplicates="keep")
        assert recall_at_k(scores, train, test, k=2, relevant=5) == 1.0
        assert precision_at_k(scores, train, test, k=2, relevant=5) == 0.5


# Bad input


def test_invalid_parameters_are_refused():
    W, H, train, test = problem()
    for k in (0, -1, 2.5, None):
        with refused(ParameterError, "k"):
            ndcg_at_k((W, H), train, test, k)
    for relevant in (np.nan, np.inf, None, "4", [], [[1]], [1, np.nan], True):
        with refused(ParameterError, "relevant"):
            ndcg_at_k((W, H), train, test, relevant=relevant)
    for model in (None, "pair", [[1.0, 2.0]], (np.ones((12, 2)),), ([[1.0]], [[1.0]]), np.ones(15)):
        with refused(ParameterError, "model"):
            ndcg_at_k(model, train, test)
    with pytest.raises(NotFittedError):
        ndcg_at_k(WeightedNMF(), train, test)


def test_a_test_without_a_relevant_cell_is_refused():
    W, H, train, test = problem()
    for relevant in (6, [1, 6]):
        with refused(DataError, "relevant", found=f"among {np.sum(~np.isnan(test))} cells; the highest has 5"):
            ndcg_at_k((W, H), train, test, relevant=relevant)
    with refused(DataError, "relevant", found="among 0 cells"):
        ndcg_at_k((W, H), train, observe(np.full((12, 15), np.nan), allow_empty=True))
    with pytest.warns(DataWarning), refused(DataError, "relevant", remedy="rows and columns"):
        ndcg_at_k(fitted(long_frame()), None, pd.DataFrame({"user": ["eve"], "item": ["gin"], "rating": [5]}))


def test_scores_of_another_size_or_kind_are_refused():
    W, H, train, test = problem()
    for model, found in (
        ((W[1:], H), "11 rows and 15 columns"),
        ((W @ H.T).T, "15 rows and 12 columns"),
        ((W, H[:, :2]), "3 and 2"),
        (lambda rows: np.ones(15), "shape (15,), dtype float64"),
        (lambda rows: sparse.csr_array(np.ones((rows.size, 15))), "dtype object"),
        ((np.where(W > 0, W, np.nan), H), ""),
        ((W, H.astype(object)), "dtype object"),
        (np.where(np.arange(15) == 4, np.nan, W @ H.T), "NaN"),
    ):
        with refused(DataError, found=found):
            ndcg_at_k(model, train, test)


def test_what_is_never_to_be_ranked_has_minus_infinity():
    W, H, train, test = problem()
    scores = np.where(np.arange(15) == 4, -np.inf, W @ H.T)
    assert np.any(test[:, 4] >= 3)
    found = ranking_scores(scores, train, test, 15, 3).recall
    rows = [
        np.sum(np.delete(test[u], 4) >= 3) / np.sum(test[u] >= 3) if np.any(test[u] >= 3) else np.nan for u in range(12)
    ]
    assert_allclose(found, rows, rtol=1e-14)


def test_data_of_another_size_are_refused():
    W, H, train, test = problem()
    model = WeightedNMF(2, max_iter=5, tol=0, random_state=0).fit(train)
    for scores, seen, held, parameter in (
        ((W, H), train, test[1:], "test"),
        (model, train[:, 1:], test, "train"),
        ((W, H), None, test, "train"),
        ((W, H), train, None, "test"),
    ):
        with refused(DataError, parameter):
            ndcg_at_k(scores, seen, held)
