"""Surprises that a reader of the code foresaw, kept from coming back."""

import json
import zipfile

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from halfseen import PoissonFactorization, Status, WeightedNMF, load, observe
from halfseen.errors import DataError, ModelFileError, ParameterError
from halfseen.likelihoods import Gaussian, Poisson, likelihood_for
from tests.estimators.models import fitted, long_frame, seen_matrix, wide_frame

X = seen_matrix()


def test_what_lost_its_zeros_is_not_fitted_as_missing():
    zeros = observe(np.nan_to_num(X), unseen="zero")
    with pytest.raises(ParameterError, match='Found a model with unseen="missing"'):
        WeightedNMF(2).fit(zeros)
    with pytest.raises(ParameterError, match='Found a model with unseen="missing"'):
        fitted(X).transform(zeros)
    model = WeightedNMF(2, unseen="zero", random_state=0)
    assert_allclose(model.fit(observe(X)).W_, model.fit(np.nan_to_num(X)).W_, rtol=1e-10)


def test_a_start_of_infinite_loss_is_no_start():
    huge = np.full((4, 2), 1e15, np.float32), np.full((5, 2), 1e15, np.float32)
    model = WeightedNMF(2, loss="frobenius", init=huge)
    with pytest.warns(ConvergenceWarning, match="not finite"):
        model.fit(np.nan_to_num(X, nan=1.0).astype(np.float32))
    assert (model.status_, model.n_iter_) == (Status.NOT_FINITE, 0)
    assert_array_equal(model.W_, huge[0])


def test_a_start_with_a_row_of_zeros_is_refused_where_nothing_could_lift_it():
    start = np.array([[1.0, 1.0], [0.0, 0.0], [1.0, 0.0], [2.0, 1.0]]), np.ones((5, 2))
    with pytest.raises(ParameterError, match=r"W0 of init must hold .*, in every row at least one above 0"):
        PoissonFactorization(2, init=start).fit(np.nan_to_num(X))
    model = WeightedNMF(2, init=start, max_iter=3, tol=0).fit(X)
    assert_array_equal(model.W_[1], 0)


@pytest.mark.parametrize(("beta", "kind"), [(1e-15, "itakura-saito"), (1 + 1e-12, Poisson), (2 - 1e-12, Gaussian)])
def test_betas_next_to_a_special_case_are_that_case(beta, kind):
    likelihood = likelihood_for(beta)
    assert likelihood.name == kind if isinstance(kind, str) else isinstance(likelihood, kind)


def rewritten(path, **arrays):
    """The model file with other arrays in it."""
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    for name, array in arrays.items():
        with zipfile.ZipFile(path, "w") as archive:
            for part, content in parts.items():
                if part == f"{name.replace('__', '/')}.npy":
                    with archive.open(part, "w") as file:
                        np.lib.format.write_array(file, array)
                else:
                    archive.writestr(part, content)


@pytest.mark.parametrize(
    ("name", "array", "what"),
    [
        ("columns__mean", np.ones((7, 2)), "columns"),
        ("rows__mean", np.ones((4, 3)), "components"),
        ("seen__indices", np.ones(2, np.int32), "seen cells"),
        ("seen__indptr", np.array([0, 13], np.int32), "rows"),
        ("row_labels_", np.arange(3), "row labels"),
    ],
)
def test_a_file_whose_arrays_contradict_each_other_is_refused(tmp_path, name, array, what):
    frame = pd.DataFrame(X, index=[10, 20, 30, 40], columns=[1, 2, 3, 4, 5])
    fitted(frame).save(tmp_path / "model.hs")
    rewritten(tmp_path / "model.hs", **{name: array})
    with pytest.raises(ModelFileError, match=rf"parts of a model file must fit together.*\({what}: "):
        load(tmp_path / "model.hs")


def test_the_file_remembers_which_data_were_fitted(tmp_path):
    model = fitted(X)
    model.save(tmp_path / "model.hs")
    assert_array_equal(load(tmp_path / "model.hs").complete(X), model.complete(X))
    with zipfile.ZipFile(tmp_path / "model.hs") as archive:
        assert json.loads(archive.read("header.json"))["fingerprint"] == observe(X).fingerprint()


def test_frames_asked_of_a_long_frame_are_indexed_by_its_rows():
    frame = long_frame()
    model = fitted(frame).set_output(transform="pandas")
    W = model.transform(frame)
    assert list(W.index) == list(model.row_labels_)
    assert_allclose(W.to_numpy(), model.set_output(transform="default").transform(frame))
    wide = wide_frame().set_index(pd.Index(["p", "q", "r", "s"]))
    assert list(fitted(wide).set_output(transform="pandas").transform(wide).index) == ["p", "q", "r", "s"]


def test_lists_of_lists_are_histories():
    model = fitted(X)
    assert_array_equal(model.recommend(X[:2].tolist()).ids, model.recommend(X[:2]).ids)


def test_someone_without_a_history_is_served_like_the_average_row():
    model = PoissonFactorization(2, random_state=0).fit(long_frame())
    ids, scores = model.recommend([{}], n=5)
    means = model.H_ @ model.W_.mean(axis=0)
    assert list(ids[0]) == list(model.column_labels_[np.argsort(-means)])
    assert_allclose(scores[0], np.sort(means)[::-1], rtol=1e-12)


def test_words_in_a_history_are_named():
    with pytest.raises(DataError, match=r"Values must be numbers. Found 'five'"):
        fitted(long_frame()).recommend([{"ale": "five"}])


def test_nested_parameters_are_unknown_parameters():
    with pytest.raises(ParameterError, match="Invalid parameter 'n_components__x'"):
        WeightedNMF().set_params(n_components__x=3)


def test_many_pairs_are_predicted_in_parts(monkeypatch):
    model = fitted(X)
    rows, columns = np.divmod(np.arange(20), 5)
    whole = model.predict(rows, columns)
    monkeypatch.setattr("halfseen.model.PRODUCTS_AT_A_TIME", 3)
    assert_array_equal(model.predict(rows, columns), whole)
    assert_allclose(whole, (model.W_ @ model.H_.T).reshape(-1), rtol=1e-12)
    assert np.ndim(model.predict(1, 2)) == 0


def test_a_first_column_of_ids_is_no_feature():
    frame = wide_frame()
    frame.insert(0, "id", [11, 12, 13, 14])
    model = fitted(frame)
    assert model.n_features_in_ == 5
    assert not hasattr(model, "feature_names_in_")
    assert list(model.row_labels_) == [11, 12, 13, 14]
    assert_allclose(model.transform(frame), fitted(wide_frame()).transform(wide_frame()), rtol=1e-12)
    assert list(model.complete(frame)["id"]) == [11, 12, 13, 14]


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        (["ann", {"ale": 5}], r"asked for by a label, all of one kind\. Found a dict"),
        ([{"ale", "bun"}], r"asked for by a label, all of one kind\. Found a set"),
        ([["ann"], "bob"], r"rows of X must be lists of one length"),
    ],
)
def test_what_is_no_label_is_refused_in_words(rows, sentence):
    with pytest.raises(DataError, match=sentence):
        fitted(long_frame()).recommend(rows)


def test_parameters_set_after_the_fit_do_not_lose_the_model(tmp_path):
    model = fitted(X).set_params(n_components=7, max_iter=1)
    model.save(tmp_path / "model.hs")
    again = load(tmp_path / "model.hs")
    assert again.get_params()["n_components"] == 7
    assert_array_equal(again.predict([0, 1], [2, 3]), model.predict([0, 1], [2, 3]))


def test_integers_are_found_by_their_spelling_and_nothing_else():
    frame = long_frame().assign(user=lambda frame: frame["user"].map({"ann": 1, "bob": 2, "cid": 3, "dan": 4}))
    assert_array_equal(fitted(frame).recommend(["1"]).ids, fitted(frame).recommend([1]).ids)
    with pytest.raises(DataError, match=r"Found '01' \(1 unknown in all\)\. The ids are of type int64, not text"):
        fitted(frame).recommend(["01"])
    with pytest.raises(DataError, match=r"Found 11 \(1 unknown in all\)\. For a new row"):
        fitted(frame).recommend([11])


def test_weights_whose_rows_stand_in_another_order_are_refused():
    weights = pd.DataFrame(np.arange(1.0, 21.0).reshape(4, 5), columns=wide_frame().columns)
    with pytest.raises(DataError, match="rows of X, in their order"):
        WeightedNMF(2).fit(wide_frame(), cell_weight=weights.iloc[::-1])
    fitted(wide_frame()).fit(wide_frame(), cell_weight=weights)
