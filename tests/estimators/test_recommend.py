"""The best columns for rows, known and new."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from halfseen import PoissonFactorization, observe
from halfseen.errors import DataError, ParameterError
from tests.estimators.models import (
    ITEMS,
    USERS,
    fitted,
    long_frame,
    refused,
    seen_matrix,
    stored,
    wide_frame,
    with_scores,
)

X = seen_matrix()


def test_the_best_unseen_columns_come_first():
    model = fitted(long_frame())
    for row, user in enumerate(USERS):
        ids, scores = model.recommend(user)
        means = dict(zip(ITEMS, model.predict(user, ITEMS), strict=True))
        unseen = [item for item, value in zip(ITEMS, X[row], strict=True) if np.isnan(value)]
        expected = sorted(unseen, key=means.get, reverse=True)
        assert list(ids[0]) == expected
        assert_allclose(scores[0], [means[item] for item in expected], rtol=1e-12)


def test_seen_columns_may_be_asked_for():
    model = fitted(X)
    ids, scores = model.recommend([1, 3], exclude_seen=False)
    means = model.inverse_transform(model.W_[[1, 3]])
    assert_array_equal(ids, np.argsort(-means, axis=1))
    assert_allclose(scores, -np.sort(-means, axis=1), rtol=1e-12)


def test_only_some_columns_are_candidates():
    model = with_scores(np.arange(10.0).reshape(2, 5))
    assert_array_equal(model.recommend([0, 1], exclude_seen=False, items=[3, 0]).ids, [[3, 0], [3, 0]])
    assert_array_equal(model.recommend([0], exclude_seen=False, exclude=[4, 2]).ids, [[3, 1, 0]])
    assert_array_equal(model.recommend([0], exclude_seen=False, items=[4, 3, 1], exclude=3).ids, [[4, 1]])
    assert_array_equal(model.recommend([0], exclude_seen=False, items=2).ids, [[2]])
    assert_array_equal(model.recommend([0], exclude_seen=False, exclude=[]).ids, [[4, 3, 2, 1, 0]])


def test_candidates_by_label():
    model = fitted(long_frame())
    assert set(model.recommend("ann", items=["cod", "ale"]).ids[0]) == {"cod"}
    assert set(model.recommend("ann", exclude="cod").ids[0]) == {"egg"}
    with refused(DataError, found="'codd'", remedy="Did you mean 'cod'?"):
        model.recommend("ann", items=["codd"], strict=True)
    with refused(DataError, found="'gin'"):
        model.recommend("ann", exclude=["gin"], strict=True)


@pytest.mark.parametrize(
    ("data", "row", "columns"), [(X, 0, range(5)), (long_frame(), "ann", ITEMS)], ids=["positions", "labels"]
)
def test_no_rows_or_candidates_at_all(data, row, columns):
    model = fitted(data)
    for nothing in (model.recommend([row], items=[]), model.recommend([row], exclude=list(columns))):
        assert nothing.ids.shape == nothing.scores.shape == (1, 0)
    nothing = model.recommend([])
    assert len(nothing.ids) == len(nothing.scores) == 0


def test_rows_with_fewer_candidates_are_padded():
    model = fitted(X)
    ids, scores = model.recommend([0, 1, 2, 3], n=100)
    assert ids.shape == scores.shape == (4, 2)
    full = np.where(np.isnan(X), 1.0, X)
    full[0, 2] = np.nan
    model = fitted(observe(np.where(np.arange(4)[:, None] == 1, X, full)))
    ids, scores = model.recommend([0, 1, 2])
    assert_array_equal(ids[0], [2, -1])
    assert_array_equal(ids[2], [-1, -1])
    assert_array_equal(np.isnan(scores), [[False, True], [False, False], [True, True]])
    assert set(ids[1]) == {0, 3}


def test_labels_are_padded_with_none():
    frame = long_frame()
    frame = pd.concat([frame, pd.DataFrame({"user": ["ann"], "item": ["cod"], "rating": [2.0]})])
    ids, scores = fitted(frame).recommend(["ann", "bob"])
    assert list(ids[0]) == ["egg", None]
    assert set(ids[1]) == {"ale", "dip"}
    assert np.isnan(scores[0, 1])


def test_n():
    model = with_scores(np.arange(10.0).reshape(2, 5))
    for n in range(1, 8):
        assert_array_equal(model.recommend([0], n=n, exclude_seen=False).ids, [[4, 3, 2, 1, 0][:n]])
    for n in (0, -1, 2.5, None, True):
        with refused(ParameterError, "n"):
            model.recommend([0], n=n)


def test_of_equal_columns_the_first_comes_first():
    """Whatever n is, and so that a longer list begins with the shorter one."""
    rng = np.random.default_rng(0)
    scores = rng.integers(0, 3, (20, 60))
    model = with_scores(scores)
    expected = np.argsort(-scores, axis=1, kind="stable")
    for n in (1, 2, 5, 30, 59, 60):
        assert_array_equal(model.recommend(np.arange(20), n=n, exclude_seen=False).ids, expected[:, :n])


def test_many_rows_are_served_in_blocks(monkeypatch):
    model = fitted(X)
    whole = model.recommend([0, 1, 2, 3, 1, 0], n=3)
    monkeypatch.setattr("halfseen.engines.topk.SCORES_PER_TILE", 11)
    for mine, theirs in zip(model.recommend([0, 1, 2, 3, 1, 0], n=3), whole, strict=True):
        assert_array_equal(mine, theirs)


def test_rows_may_be_repeated_and_in_any_order():
    model = fitted(X)
    ids = model.recommend([3, 0, 3]).ids
    assert_array_equal(ids[0], ids[2])
    assert_array_equal(ids[1], model.recommend(0).ids[0])


@pytest.mark.parametrize(
    ("data", "rows", "found"),
    [
        (long_frame(), ["ann", "eve"], "'eve' (1 unknown in all)"),
        (long_frame(), "eve", "'eve'"),
        (X, [0, 4], "4 (1 outside in all)"),
        (X, -1, "-1"),
        (X, "ann", "['ann']"),
        (long_frame(), ["ann", {"ale": 5}], "a dict"),
        (long_frame(), [{"ale", "bun"}], "a set"),
        (long_frame(), [["ann"], "bob"], "different lengths"),
        (long_frame(), [{"gin": 3.0}], "'gin'"),
        (long_frame(), pd.DataFrame({"user": [1], "item": ["gin"], "rating": [1.0]}), "'gin'"),
        (long_frame(), [{"ale": "five"}], "'five'"),
    ],
)
def test_unknown_rows_and_columns_are_named(data, rows, found):
    with refused(DataError, found=found):
        fitted(data).recommend(rows, strict=True)


def test_integers_are_found_by_their_spelling_and_nothing_else():
    model = fitted(long_frame().assign(user=lambda frame: frame["user"].map({"ann": 1, "bob": 2, "cid": 3, "dan": 4})))
    assert_array_equal(model.recommend(["1"]).ids, model.recommend([1]).ids)
    with refused(DataError, found="'01' (1 unknown in all)", remedy="The ids are of type int64, not text"):
        model.recommend(["01"], strict=True)
    with refused(DataError, found="11 (1 unknown in all)", remedy="For a new row"):
        model.recommend([11], strict=True)


HISTORY = {"ale": 5.0, "dip": 1.0}


def as_row():
    return np.array([[5.0, np.nan, np.nan, 1.0, np.nan]])


def test_new_histories_of_every_kind_are_served_alike():
    labelled = fitted(long_frame())
    dicts = labelled.recommend([HISTORY], n=2)
    frame = labelled.recommend(
        pd.DataFrame({"user": ["new"] * 2, "item": list(HISTORY), "rating": list(HISTORY.values())}), n=2
    )
    assert_array_equal(dicts.ids, frame.ids)
    assert_allclose(dicts.scores, frame.scores, rtol=1e-12)
    assert not set(dicts.ids[0]) & set(HISTORY)
    W = labelled.transform([HISTORY])
    best = {item: W[0] @ labelled.H_[j] for j, item in enumerate(labelled.column_labels_) if item not in HISTORY}
    assert list(dicts.ids[0]) == sorted(best, key=best.get, reverse=True)[:2]

    positions = fitted(X)
    expected = positions.recommend([{0: 5.0, 3: 1.0}], n=2)
    for data in (as_row(), as_row().tolist(), stored(as_row()).tocsr(), observe(as_row()), pd.DataFrame(as_row())):
        found = positions.recommend(data, n=2)
        assert_array_equal(found.ids, expected.ids)
        assert_allclose(found.scores, expected.scores, rtol=1e-12)


@pytest.mark.parametrize("unseen", ["missing", "zero"])
def test_an_empty_history_gets_what_suits_the_average(unseen):
    model = fitted(long_frame(), unseen=unseen)
    ids, scores = model.recommend([{}, HISTORY], n=5)
    means = model.H_ @ model.W_.mean(axis=0)
    assert list(ids[0]) == list(model.column_labels_[np.argsort(-means)])
    assert_allclose(scores[0], -np.sort(-means), rtol=1e-6)


def test_a_single_history_needs_no_list():
    model = fitted(long_frame())
    assert_array_equal(model.recommend(HISTORY, n=2).ids, model.recommend([HISTORY], n=2).ids)


def test_a_new_row_that_is_a_training_row_gets_what_that_row_gets():
    model = fitted(long_frame(), max_iter=3000, tol=1e-12)
    history = {item: value for item, value in zip(ITEMS, X[1], strict=True) if not np.isnan(value)}
    assert_array_equal(model.recommend([history]).ids, model.recommend("bob").ids)


def test_recommending_is_untouched_by_set_output():
    """scikit-learn's users may ask `transform` for frames; recommendations are the same arrays."""
    model = fitted(long_frame())
    before = model.recommend([HISTORY])
    after = model.set_output(transform="pandas").recommend([HISTORY])
    assert_array_equal(after.ids, before.ids)
    assert_array_equal(after.scores, before.scores)


def test_wide_frames_are_new_histories():
    model = fitted(wide_frame())
    ids = model.recommend(wide_frame().iloc[:2]).ids
    assert set(ids[0]) == {"cod", "egg"}
    assert set(ids[1]) == {"ale", "dip"}


def test_counts_that_are_not_stored_are_zeros_and_may_be_recommended():
    counts = sparse.csr_array(np.nan_to_num(X))
    model = PoissonFactorization(2, max_iter=20, tol=0, random_state=0).fit(counts)
    for row in range(4):
        assert set(model.recommend(row).ids[0]) == set(np.flatnonzero(np.isnan(X[row])))
