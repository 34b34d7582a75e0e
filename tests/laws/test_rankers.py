"""What everything that ranks columns has in common, with factors or without."""

import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone

import halfseen
from halfseen import Observed, observe
from halfseen.errors import DataError, DataWarning
from halfseen.metrics import ndcg_at_k
from tests.estimators.models import refused
from tests.laws.cases import counts
from tests.laws.estimators import RANKERS, every_ranker, fitted, suited

every_ranker_without_factors = pytest.mark.parametrize("estimator", RANKERS, ids=str)


def scores_of(model, rows):
    record = model.model_
    return record.scores(record.known_rows(np.asarray(rows))).tile(slice(0, len(rows)), slice(0, record.shape[1]))


def same(found, expected):
    assert_array_equal(found.ids, expected.ids)
    assert_array_equal(found.scores, expected.scores)


@every_ranker
def test_recommendations_are_the_columns_of_the_highest_scores(estimator):
    model = fitted(estimator)
    rows = np.arange(model.model_.shape[0])
    x = scores_of(model, rows).astype(float)
    seen = np.zeros(x.shape, bool)
    for row in rows:
        seen[row, model.seen_.in_rows(rows[row : row + 1])[1]] = True
    for hidden, exclude_seen in ((seen, True), (np.zeros_like(seen), False)):
        found = model.recommend(rows, n=x.shape[1], exclude_seen=exclude_seen)
        masked = np.where(hidden, -np.inf, x)
        order = np.argsort(-masked, axis=1, kind="stable")[:, : found.ids.shape[1]]
        expected = np.where(np.isinf(np.take_along_axis(masked, order, axis=1)), -1, order)
        kept = found.ids >= 0
        assert_array_equal(kept, expected >= 0)
        assert_allclose(  # the order of scores that differ by rounding may differ
            np.take_along_axis(x, np.maximum(found.ids, 0), 1)[kept],
            np.take_along_axis(x, np.maximum(expected, 0), 1)[kept],
            rtol=1e-5,
            atol=1e-7,
        )


@every_ranker
def test_candidates_are_ranked_as_among_all(estimator):
    model = fitted(estimator)
    chosen = [8, 1, 3, 6]
    every = model.recommend([0, 3], n=11, exclude_seen=False)
    some = model.recommend([0, 3], n=11, exclude_seen=False, filter_items=chosen)
    for row in range(2):
        expected = [one for one in every.ids[row].tolist() if one in chosen]
        assert some.ids[row].tolist() == expected


@every_ranker
def test_a_loaded_model_ranks_alike(estimator, tmp_path):
    model = fitted(estimator)
    model.save(tmp_path / "model.hs")
    loaded = halfseen.load(tmp_path / "model.hs")
    assert type(loaded) is type(model)
    same(loaded.recommend([0, 1, 7], n=4), model.recommend([0, 1, 7], n=4))
    same(loaded.similar_items([1, 2], n=4), model.similar_items([1, 2], n=4))
    same(loaded.similar_users([1, 2], n=4), model.similar_users([1, 2], n=4))


@every_ranker_without_factors
def test_files_keep_labels_histories_and_the_end_of_the_fit(estimator, tmp_path):
    X = suited(estimator, counts())
    rows, columns = np.nonzero(X > 0)
    frame = pd.DataFrame({"user": [f"u{u}" for u in rows], "item": [f"i{i}" for i in columns], "y": X[rows, columns]})
    model = fitted(estimator, frame)
    model.save(tmp_path / "model.hs")
    loaded = halfseen.load(tmp_path / "model.hs")
    history = [{"i1": 2.0, "i6": 1.0}]
    same(loaded.recommend(history, n=3), model.recommend(history, n=3))
    same(loaded.recommend(["u3", "u0"], n=3), model.recommend(["u3", "u0"], n=3))
    assert loaded.status_ is model.status_
    assert loaded.n_iter_ == model.n_iter_
    for name, array in model.trace_.items():
        assert_array_equal(loaded.trace_[name], array)


@every_ranker_without_factors
def test_a_masked_cell_is_a_deleted_cell(estimator):
    """A cell of weight 0, or NaN, teaches nothing. (It counts as seen where unseen cells are zeros.)"""
    X = suited(estimator, np.nan_to_num(counts()))
    holes = np.random.default_rng(1).random(X.shape) < 0.2
    deleted, masked = np.where(holes, np.nan, X), X.copy()
    masked[holes] = np.nan
    same(fitted(estimator, deleted).recommend([0, 4], n=5), fitted(estimator, masked).recommend([0, 4], n=5))
    rows, columns = np.nonzero(X > 0)
    weights = np.where(holes[rows, columns], 0.0, 1.0)
    kept = weights > 0
    if "Blend" in str(estimator):
        return  # which cells are held out depends on their number
    weighted = Observed.from_cells(rows, columns, X[rows, columns], X.shape, weights=weights, unseen="zero")
    without = Observed.from_cells(rows[kept], columns[kept], X[rows, columns][kept], X.shape, unseen="zero")
    fixed = {"l2": 2.0} if "l2" in estimator.get_params() else {}
    one, other = fitted(estimator, weighted, **fixed), fitted(estimator, without, **fixed)
    assert_allclose(scores_of(one, range(14)), scores_of(other, range(14)), rtol=1e-5, atol=1e-6)


@every_ranker_without_factors
def test_the_number_of_threads_changes_no_bit(estimator):
    rng = np.random.default_rng(2)
    X = np.where(rng.random((150, 90)) < 0.2, rng.integers(1, 6, (150, 90)), 0.0)
    one, two = (fitted(estimator, X, n_jobs=n_jobs) for n_jobs in (1, 2))
    same(one.recommend(np.arange(150), n=20), two.recommend(np.arange(150), n=20))
    assert_array_equal(scores_of(one, range(150)), scores_of(two, range(150)))


@every_ranker_without_factors
def test_new_rows_score_as_known_rows_with_the_same_cells(estimator):
    X = suited(estimator, np.nan_to_num(counts()))
    model = fitted(estimator, X)
    known, new = model.recommend([0, 3, 4, 8], n=4), model.recommend(X[[0, 3, 4, 8]], n=4)
    if "Blend" not in str(estimator):  # whose factors of known rows moved with those of the columns
        same(new, known)
    one = [model.recommend([row], n=4) for row in (0, 3)]
    for place, single in enumerate(one):
        width = single.ids.shape[1]
        assert_array_equal(single.ids[0], known.ids[place, :width])


@every_ranker_without_factors
def test_scores_at_pairs_are_those_of_the_rows(estimator):
    model = fitted(estimator)
    x = scores_of(model, range(14))
    assert_allclose(model.predict([1, 9, 1], [3, 0, 10]), x[[1, 9, 1], [3, 0, 10]], rtol=1e-6)
    assert_allclose(model.predict(2, [3, 0]), x[2, [3, 0]], rtol=1e-6)
    assert np.ndim(model.predict(2, 3)) == 0
    X = suited(estimator, np.nan_to_num(counts()))
    of_new = fitted(estimator, X).predict(X[:4])
    assert of_new.shape == (4, 11)
    with refused(DataError, found="a sparse matrix"):
        model.predict(sparse.csr_array(X))


@every_ranker_without_factors
def test_metrics_take_every_ranker(estimator):
    X = suited(estimator, np.nan_to_num(counts(40, 20, holes=0)))
    train, test = halfseen.data.split_cells(X, 0.3, random_state=0, unseen="zero")
    model = fitted(estimator, train)
    by_model = ndcg_at_k(model, None, test, 5)
    by_array = ndcg_at_k(scores_of(model, range(40)), train, test, 5)
    assert 0 < by_model <= 1
    assert by_model == pytest.approx(by_array, abs=1e-9)


@every_ranker_without_factors
@pytest.mark.parametrize("shape", [(1, 1), (1, 6), (6, 1), (2, 2)])
def test_the_smallest_matrices_can_be_fitted(estimator, shape):
    X = np.ones(shape)
    X[0, 0] = 2.0
    model = fitted(estimator, X)
    assert np.isfinite(scores_of(model, range(shape[0]))).all()
    assert model.recommend([0], n=3, exclude_seen=False).ids.shape == (1, min(3, shape[1]))
    assert model.recommend([0], n=3).ids.size == 0


@every_ranker_without_factors
def test_rows_without_cells_are_served(estimator):
    """Like the average row: in the order of what all rows like."""
    X = np.nan_to_num(counts())
    X[5], X[:, 7] = 0, 0
    model = fitted(estimator, suited(estimator, X))
    found = model.recommend([5], n=3)
    assert np.isfinite(found.scores).all()
    same(model.recommend([{}], n=3), found)


@every_ranker_without_factors
def test_repeated_cells_and_data_of_words_are_taken(estimator):
    X = suited(estimator, np.nan_to_num(counts()))
    rows, columns = np.nonzero(X > 0)
    twice = Observed.from_cells(
        np.append(rows, rows[::3]), np.append(columns, columns[::3]), np.append(X[X > 0], X[X > 0][::3]), X.shape,
        unseen="zero", duplicates="keep",
    )  # fmt: skip
    once = observe(X, unseen="zero")
    fixed = {"l2": 2.0} if "l2" in estimator.get_params() else {}
    one, other = fitted(estimator, twice, **fixed), fitted(estimator, once, **fixed)
    if "Graph" in str(estimator) and "Blend" not in str(estimator):  # of equal values the mean is the value
        assert_allclose(scores_of(one, range(14)), scores_of(other, range(14)), rtol=1e-5, atol=1e-6)
    words = [(f"u{u}", f"i{i}", "good" if u % 2 else "fine") for u, i in zip(rows, columns, strict=True)]
    frame = pd.DataFrame(words, columns=["user", "item", "grade"])
    frame["grade"] = pd.Categorical(frame["grade"], ["fine", "good"], ordered=True)
    model = fitted(estimator, frame)
    assert model.recommend(["u1"], n=2).ids.shape == (1, 2)
    assert model.recommend([{"i1": "good"}], n=2).ids.shape == (1, 2)


@every_ranker_without_factors
def test_explanations_are_falls_of_the_score(estimator):
    X = suited(estimator, np.nan_to_num(counts()))
    model = fitted(estimator, X)
    row = {int(column): float(X[0, column]) for column in np.flatnonzero(X[0])}
    explained = model.explain(row, 3, n=50)

    def score(history):
        return float(model.recommend([history], n=11, exclude_seen=False, filter_items=[3]).scores[0, 0])

    assert explained.score == pytest.approx(score(row), rel=1e-5, abs=1e-6)
    for column, fall in zip(explained.items.tolist(), explained.contributions, strict=True):
        rest = {one: value for one, value in row.items() if one != column}
        assert fall == pytest.approx(score(row) - score(rest), rel=1e-4, abs=1e-5)


@every_ranker_without_factors
def test_parameters_are_checked_and_cloned(estimator):
    assert str(clone(estimator)) == str(estimator)
    with pytest.raises(ValueError, match="Invalid parameter 'magic'"):
        clone(estimator).set_params(magic=1)
    with refused(DataError):
        fitted(estimator, np.zeros((3, 3)))


@every_ranker_without_factors
def test_unknown_rows_and_columns_are_said(estimator):
    model = fitted(estimator)
    with pytest.warns(DataWarning, match="99"):
        assert model.recommend([0, 99], n=2).is_known.tolist() == [True, False]
    with warnings.catch_warnings(), pytest.raises(DataError):
        model.recommend([99], strict=True)
