"""Predicting single cells, completing what has holes, folding rows in."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from halfseen import PoissonFactorization, load, observe
from halfseen.errors import DataError, ParameterError
from halfseen.estimators import base
from tests.estimators.models import ITEMS, USERS, fitted, long_frame, refused, seen_matrix, stored, wide_frame

X = seen_matrix()


def dense_mean(model):
    return model.W_ @ model.H_.T


# predict


def test_pairs():
    model = fitted(X)
    mean = dense_mean(model)
    assert_allclose(model.predict([0, 3, 1], [4, 0, 1]), mean[[0, 3, 1], [4, 0, 1]], rtol=1e-12)
    assert_allclose(model.predict(np.array([2]), np.array([2])), mean[[2], [2]], rtol=1e-12)


def test_one_row_for_many_columns_and_the_other_way_round():
    model = fitted(X)
    mean = dense_mean(model)
    assert_allclose(model.predict(1, [0, 1, 2]), mean[1, :3], rtol=1e-12)
    assert_allclose(model.predict([0, 1, 2], 4), mean[:3, 4], rtol=1e-12)
    single = model.predict(1, 2)
    assert np.ndim(single) == 0
    assert_allclose(single, mean[1, 2], rtol=1e-12)


def test_labels():
    model = fitted(long_frame())
    rows, columns = list(model.row_labels_), list(model.column_labels_)
    mean = dense_mean(model)
    expected = [mean[rows.index("dan"), columns.index("egg")], mean[rows.index("ann"), columns.index("bun")]]
    assert_allclose(model.predict(["dan", "ann"], ["egg", "bun"]), expected)
    assert_allclose(model.predict("bob", ITEMS), mean[rows.index("bob"), [columns.index(item) for item in ITEMS]])
    assert_allclose(model.predict(pd.Series(USERS), "ale"), model.predict(USERS, "ale"))
    assert_allclose(model.predict(np.array(USERS), "ale"), model.predict(USERS, "ale"))


@pytest.mark.parametrize("data", [X, long_frame()], ids=["positions", "labels"])
def test_no_pairs_at_all(data):
    assert fitted(data).predict([], []).shape == (0,)


def test_unknown_labels_are_named():
    model = fitted(long_frame())
    for rows, columns, found, remedy in (
        (["ann", "eve", "eva"], "ale", "'eve' (2 unknown in all)", "For a new row"),
        ("ann", "alle", "'alle'", "Did you mean 'ale'?"),
        (3, "ale", "3", ""),
        (["ann", 7], "ale", "7", ""),
    ):
        with refused(DataError, found=found, remedy=remedy):
            model.predict(rows, columns)


def labelled_by(labels):
    rows, columns = np.nonzero(~np.isnan(X))
    return pd.DataFrame({"user": [labels[i] for i in rows], "item": columns, "rating": X[rows, columns]})


@pytest.mark.parametrize(
    "labels",
    [
        [2**64 - 1, 0, 2**63, 5],
        [10**18 + 1, 10**18 + 2, 10**18 + 3, -(2**63)],
        [0.5, 1.5, 2.5, -1.0],
        [datetime.datetime(2020, 1, day) for day in (1, 2, 3, 4)],
        list(pd.date_range("2020-01-01", periods=4, freq="D")),
    ],
    ids=["huge", "far apart by one", "floats", "datetimes", "timestamps"],
)
def test_ids_of_every_kind_are_found_exactly(labels):
    frame = labelled_by(labels)
    model = fitted(frame)
    assert_allclose(model.predict(labels, [2] * 4), model.predict(labels, 2), rtol=1e-12)
    assert_allclose(model.predict(labels, 2), model.W_ @ model.H_[list(model.column_labels_).index(2)], rtol=1e-12)
    assert_allclose(model.predict(labels[1], 2), model.predict(labels, 2)[1], rtol=1e-12)
    assert_array_equal(model.recommend(labels[1]).ids, model.recommend([labels[1]]).ids)


def test_many_pairs_are_predicted_in_blocks(monkeypatch):
    model = fitted(X)
    rows, columns = np.divmod(np.arange(20), 5)
    whole = model.predict(rows, columns)
    monkeypatch.setattr("halfseen.model.PRODUCTS_AT_A_TIME", 3)
    assert_array_equal(model.predict(rows, columns), whole)
    assert_allclose(whole, (model.W_ @ model.H_.T).reshape(-1), rtol=1e-12)


def test_predicting_from_data_is_folding_in():
    model = fitted(X)
    new = X[:2] + 1
    assert_allclose(model.predict(new), model.transform(new) @ model.H_.T, rtol=1e-12)
    with refused(DataError, "X", found="sparse"):
        model.predict(sparse.csr_array(np.nan_to_num(X)))


# complete


def completed_truth(model, X):
    """The data of the fit, filled from its own W."""
    return np.where(np.isnan(X), model.W_ @ model.H_.T, X)


def folded_truth(model, X):
    """Other data, filled after folding their rows in."""
    observed = observe(X, column_labels=model.column_labels_)
    return np.where(np.isnan(X), model.transform(observed) @ model.H_.T, X)


def test_data_of_the_fit_are_filled_as_predict_says_and_other_rows_are_folded_in():
    model = fitted(X)
    rows, columns = np.nonzero(np.isnan(X))
    assert_allclose(model.complete(X)[rows, columns], model.predict(rows, columns), rtol=1e-12)
    for other in (X[:2], X + 1, X[::-1]):
        assert_allclose(model.complete(other), folded_truth(model, other), rtol=1e-9)
    assert not np.allclose(model.complete(X[:2]), model.complete(X)[:2], rtol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_arrays(dtype):
    given = X.astype(dtype)
    model = fitted(given)
    filled = model.complete(given)
    assert filled.dtype == dtype
    assert_allclose(filled, completed_truth(model, given), rtol=1e-6)
    assert_array_equal(filled[~np.isnan(X)], given[~np.isnan(X)])
    assert np.isnan(given).sum() == np.isnan(X).sum()


def test_masked_arrays_sparse_matrices_files_and_what_was_observed(tmp_path):
    model = fitted(X)
    expected = completed_truth(model, X)
    masked = np.ma.array(np.nan_to_num(X), mask=np.isnan(X))
    path = tmp_path / "wide.csv"
    pd.DataFrame(X).to_csv(path, index=False, header=False)
    for data in (masked, stored(), stored().tocsr(), observe(X), path, str(path), X.tolist()):
        assert_allclose(model.complete(data), expected, rtol=1e-9)


def test_lists_of_histories():
    model = fitted(X)
    histories = [{j: value for j, value in enumerate(row) if not np.isnan(value)} for row in X]
    assert_allclose(model.complete(histories), completed_truth(model, X), rtol=1e-9)


MAKERS = {
    "pandas": lambda frame: frame,
    "polars": lambda frame: pl.DataFrame({name: frame[name].to_list() for name in frame}),
    "arrow": lambda frame: pa.Table.from_pydict({name: frame[name].to_list() for name in frame}),
}
every_kind = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)


def as_columns(frame):
    """Any frame as a dict of lists."""
    return frame.to_pydict() if isinstance(frame, pa.Table) else {name: list(frame[name]) for name in frame.columns}


@every_kind
def test_wide_frames(make):
    frame = make(wide_frame())
    model = fitted(frame)
    filled = model.complete(frame)
    assert type(filled) is type(frame)
    columns = as_columns(filled)
    assert list(columns) == ITEMS
    assert_allclose(np.column_stack(list(columns.values())), completed_truth(model, X), rtol=1e-9)


def test_a_wide_frame_keeps_its_index_and_its_whole_columns():
    frame = wide_frame().set_index(pd.Index(USERS))
    frame["bun"] = [3, 4, 5, 6]
    model = fitted(frame)
    filled = model.complete(frame)
    assert list(filled.index) == USERS
    assert filled["bun"].dtype == frame["bun"].dtype
    assert_allclose(filled.to_numpy(), completed_truth(model, frame.to_numpy(dtype=float)), rtol=1e-9)


@pytest.mark.parametrize("order", [ITEMS, ITEMS[::-1]], ids=["same order", "another order"])
def test_a_wide_frame_keeps_its_column_of_ids_and_its_order(order):
    frame = wide_frame()
    frame.insert(0, "name", USERS)
    model = fitted(frame)
    filled = model.complete(frame[["name", *order]])
    assert list(filled["name"]) == USERS
    assert list(filled.columns) == ["name", *order]
    assert_allclose(filled[ITEMS].to_numpy(), completed_truth(model, X), rtol=1e-9)


def test_a_wide_frame_that_lacks_fitted_columns_is_not_filled_wrongly():
    """Its ids stay ids: it is filled in the columns it has."""
    frame = wide_frame()
    frame.insert(0, "name", USERS)
    model = fitted(frame)
    fewer = frame[["name", "ale", "bun", "cod", "dip"]]
    filled = model.complete(fewer)
    assert list(filled["name"]) == USERS
    given = np.column_stack([X[:, :4], np.full(4, np.nan)])
    assert_allclose(filled[ITEMS[:4]].to_numpy(), folded_truth(model, given)[:, :4], rtol=1e-9)


@every_kind
def test_long_frames_get_a_line_for_every_pair(make):
    frame = make(long_frame())
    model = fitted(frame)
    filled = model.complete(frame)
    assert type(filled) is type(frame)
    columns = as_columns(filled)
    assert list(columns) == ["user", "item", "rating"]
    lines = {(user, item): value for user, item, value in zip(*columns.values(), strict=True)}
    assert len(lines) == len(columns["user"]) == 20
    for row, user in enumerate(USERS):
        W = model.W_[list(model.row_labels_).index(user)]
        for column, item in enumerate(ITEMS):
            mean = W @ model.H_[list(model.column_labels_).index(item)]
            assert lines[user, item] == pytest.approx(mean if np.isnan(X[row, column]) else X[row, column], rel=1e-9)


def test_where_unseen_is_zero_a_hole_is_filled_all_the_same():
    model = PoissonFactorization(2, max_iter=30, tol=0, random_state=0).fit(X)
    assert_allclose(model.complete(X), completed_truth(model, X), rtol=1e-9)


def test_a_stored_zero_is_kept():
    given = np.where(X == 1, 0.0, X)
    for model in (fitted(given), fitted(given, unseen="zero")):
        assert_array_equal(model.complete(given)[X == 1], 0)


def test_what_would_not_fit_into_memory_is_refused(monkeypatch):
    model = fitted(X)
    monkeypatch.setattr(base, "MAX_COMPLETED_CELLS", 19)
    with refused(DataError, found="4 x 5", remedy="predict"):
        model.complete(stored())


# transform and inverse_transform


def test_frames_are_matched_by_name():
    model = fitted(long_frame())
    shuffled = long_frame().sample(frac=1, random_state=1)
    order = [USERS.index(user) for user in shuffled["user"].unique()]
    assert_allclose(model.transform(shuffled), model.transform(long_frame())[order], rtol=1e-12)
    with refused(DataError, found="'gin'"):
        model.transform(long_frame().replace("ale", "gin"))


def test_weights_count_in_folding_in():
    model = fitted(X)
    heavy = np.where(np.arange(5) < 2, 0.0, 1.0) * np.ones((4, 1))
    assert_allclose(model.transform(X, cell_weight=heavy), model.transform(np.where(heavy > 0, X, np.nan)), rtol=1e-12)


def test_folding_in_checks_the_values():
    with refused(DataError, found="-1", where="row 0, column 1"):
        fitted(X).transform(np.array([[1.0, -1.0, 2.0, 3.0, 4.0]]))


def test_inverse_transform():
    model = fitted(X)
    W = np.array([[1.0, 0.0], [0.5, 2.0]])
    assert_allclose(model.inverse_transform(W), W @ model.H_.T)
    for wrong in (np.ones(2), np.ones((2, 3)), np.ones((1, 1, 2))):
        with refused(ParameterError, "W"):
            model.inverse_transform(wrong)


def test_the_file_remembers_which_data_were_fitted(tmp_path):
    model = fitted(X)
    model.save(tmp_path / "model.hs")
    again = load(tmp_path / "model.hs")
    assert again.model_.fingerprint == model.model_.fingerprint == observe(X).fingerprint()
    assert_array_equal(again.complete(X), model.complete(X))


def test_frames_from_a_long_frame_are_indexed_by_its_rows():
    frame = long_frame()
    model = fitted(frame).set_output(transform="pandas")
    W = model.transform(frame)
    assert list(W.index) == list(model.row_labels_)
    assert_allclose(W.to_numpy(), model.set_output(transform="default").transform(frame))
    wide = wide_frame().set_index(pd.Index(["p", "q", "r", "s"]))
    assert list(fitted(wide).set_output(transform="pandas").transform(wide).index) == ["p", "q", "r", "s"]


def test_a_first_column_of_ids_is_no_feature():
    frame = wide_frame()
    frame.insert(0, "id", [11, 12, 13, 14])
    model = fitted(frame)
    assert model.n_features_in_ == 5
    assert not hasattr(model, "feature_names_in_")
    assert list(model.row_labels_) == [11, 12, 13, 14]
    assert_allclose(model.transform(frame), fitted(wide_frame()).transform(wide_frame()), rtol=1e-12)
    assert list(model.complete(frame)["id"]) == [11, 12, 13, 14]
