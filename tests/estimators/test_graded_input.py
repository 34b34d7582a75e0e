"""Both factorizations through thresholds: what goes in, what is refused, and in which words."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

import halfseen
from halfseen import OrdinalMF, RoundMF
from halfseen.errors import DataError, DataWarning, ParameterError
from tests.graded.data import ratings

X = ratings(20, 15)[0]
both = pytest.mark.parametrize("kind", [RoundMF, OrdinalMF])


def fitted(kind, data=X, n_components=2, **wishes):
    wishes = {"random_state": 0, "max_iter": 15, "tol": 0, "n_jobs": 1} | wishes
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return kind(n_components, **wishes).fit(data)


def assert_refused(error, what, found, remedy, fit):
    """Three sentences: what must hold; what was found, and where; what to do."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        with pytest.raises(error) as refused:
            fit()
    message = str(refused.value)
    assert re.search(f"{what}.*{found}.*{remedy}", message), message
    return message


# Levels


@both
@pytest.mark.parametrize(
    "levels", [(0.5, 1.0, 1.5, 2.0), (-2.0, 0.0, 7.0), (0.0, 1.0), tuple(np.arange(11.0))], ids=str
)
def test_levels_are_the_different_values_and_come_back_as_they_were_written(kind, levels):
    data = ratings(20, 15, levels=levels)[0]
    model = fitted(kind, data)
    assert_array_equal(model.levels_, levels)
    assert model.thresholds_.shape == (len(levels) - 1,)
    rows, columns = (places.ravel() for places in np.indices(data.shape))
    assert set(np.unique(model.predict_level(rows, columns))) <= set(levels)
    predicted = model.predict(rows, columns)
    assert np.all((predicted >= levels[0] - 1e-9) & (predicted <= levels[-1] + 1e-9))
    codes = fitted(kind, np.searchsorted(levels, np.nan_to_num(data)) + np.where(np.isnan(data), np.nan, 0.0))
    assert_allclose(model.W_, codes.W_, rtol=1e-12)


@both
def test_texts_are_levels_in_the_order_that_is_told(kind):
    names = np.array(["bad", "fair", "good"], dtype=object)
    data = ratings(20, 15, levels=(0.0, 1.0, 2.0))[0]
    texts = np.full(data.shape, None, dtype=object)
    texts[~np.isnan(data)] = names[data[~np.isnan(data)].astype(int)]
    model, plain = fitted(kind, texts, levels=list(names)), fitted(kind, data)
    assert list(model.levels_) == list(names)
    assert_allclose(model.W_, plain.W_, rtol=1e-12)
    rows, columns = (places.ravel() for places in np.indices(data.shape))
    assert_array_equal(model.predict_level(rows, columns), names[plain.predict_level(rows, columns).astype(int)])
    assert_allclose(model.predict(rows, columns), plain.predict(rows, columns), rtol=1e-12)
    assert_allclose(model.transform(texts), plain.transform(data), rtol=1e-9)
    with pytest.raises(DataError, match="complete fills holes with expected values"):
        model.complete(texts)


@both
def test_texts_survive_a_file(kind, tmp_path):
    frame = pd.DataFrame(
        {"user": list("aabbcc"), "item": list("xyxyxy"), "rating": ["good", "bad", "fair", "good", "bad", "fair"]}
    )
    model = fitted(kind, frame, levels=["bad", "fair", "good"])
    model.save(tmp_path / "model")
    back = halfseen.load(tmp_path / "model")
    assert list(back.levels_) == ["bad", "fair", "good"]
    assert_array_equal(back.predict_level(list("abc"), list("xyx")), model.predict_level(list("abc"), list("xyx")))
    assert set(model.row_labels_) == set("abc")


@both
def test_texts_without_an_order_are_refused(kind):
    texts = np.array([["bad", "good"], ["good", "bad"]], dtype=object)
    assert_refused(
        DataError, "texts whose order is given", "Found 'bad' at row 0, column 0", "levels", lambda: fitted(kind, texts)
    )


@both
def test_levels_may_be_given_and_set_later(kind):
    model = fitted(kind, levels=[1, 2, 3, 4, 5])
    assert_array_equal(model.levels_, [1, 2, 3, 4, 5])
    plain = fitted(kind)
    assert_allclose(plain.W_, model.W_, rtol=1e-12)
    other = kind(2, random_state=0, max_iter=5, tol=0).set_params(levels=[1, 2, 3, 4, 5])
    assert_array_equal(other.fit(X).levels_, [1, 2, 3, 4, 5])


@both
def test_thresholds_may_be_given_and_stay(kind):
    model = fitted(kind, thresholds=[-2.0, -0.5, 0.5, 3.0])
    assert_array_equal(model.thresholds_, [-2, -0.5, 0.5, 3])
    assert_array_equal(fitted(kind, thresholds=(-2, -0.5, 0.5, 3)).W_, model.W_)


@both
def test_a_level_that_nobody_gave_is_allowed_where_thresholds_are_fixed(kind):
    """Its place is told, though no cell is there."""
    data = np.where(X == 3, np.nan, X)
    model = fitted(kind, data, levels=[1, 2, 3, 4, 5], thresholds=[-2.0, -0.5, 0.5, 3.0])
    assert_array_equal(model.levels_, [1, 2, 3, 4, 5])


@both
@pytest.mark.parametrize(
    "thresholds", [[100.0, 200.0, 300.0, 400.0], [-1000.0, -1.0, 1.0, 1000.0], [1e-3, 2e-3, 3e-3, 4e-3]], ids=str
)
def test_thresholds_may_be_in_any_unit(kind, thresholds):
    """Ratings of 0 to 500 in steps of 100, or of thousandths: a fit begins, and explains what it sees the better.
    (A staircase of sigmoids has no slope far from its steps, so of RoundMF's losses "round" is asked.)"""
    loss = {"loss": "round"} if kind is RoundMF else {}
    model = fitted(kind, thresholds=thresholds, l2=1e-3, max_iter=60, **loss)
    trace = model.trace_["objective"]
    assert np.all(np.isfinite(trace))
    assert trace[-1] < trace[0]


# Refusals


@both
@pytest.mark.parametrize(
    "thresholds",
    [[1, 3, 2, 4], [1, 1, 2, 3], [1, np.nan, 3, 4], [1, 2, 3, np.inf], "abcd", [], [[1, 2], [3, 4]]],
    ids=str,
)
def test_thresholds_must_rise(kind, thresholds):
    assert_refused(
        ParameterError, "thresholds must be None or rising numbers", r"Found", "order",
        lambda: fitted(kind, thresholds=thresholds),
    )  # fmt: skip


@both
@pytest.mark.parametrize("thresholds", [[0.0, 1.0, 2.0], [0.0, 1.0, 2.0, 3.0, 4.0]], ids=["too few", "too many"])
def test_there_must_be_a_threshold_between_each_two_levels(kind, thresholds):
    assert_refused(
        ParameterError, "between the 5 levels: 4 of them", f"Found {len(thresholds)}", "None to learn",
        lambda: fitted(kind, thresholds=thresholds),
    )  # fmt: skip


def test_lines_have_no_thresholds():
    assert_refused(
        ParameterError, 'thresholds must be None for loss="linear"', r"Found \[1, 2, 3, 4\]", "another loss",
        lambda: fitted(RoundMF, loss="linear", thresholds=[1, 2, 3, 4]),
    )  # fmt: skip


@both
def test_measurements_are_no_levels(kind):
    data = np.random.default_rng(0).normal(size=(20, 20))
    message = assert_refused(
        DataError, "at most 100 ordered levels", "Found 400 different values", "Quantizer", lambda: fitted(kind, data)
    )
    assert kind.__name__ in message


@both
def test_values_between_given_levels_are_refused_with_their_place(kind):
    data = X.copy()
    data[3, 4] = 3.5
    assert_refused(
        DataError,
        "among the levels that were given: 1, 2, 3, 4, 5",
        r"Found 3.5 at row 3, column 4 \(1 such cell\)",
        "round",
        lambda: fitted(kind, data, levels=[1, 2, 3, 4, 5]),
    )


@both
def test_all_cells_equal_are_no_levels_and_the_remedy_is_one_that_helps(kind):
    message = assert_refused(
        DataError, "two levels or more", "Found only 3", "", lambda: fitted(kind, np.full((5, 5), 3.0))
    )
    assert "OrdNMF" in message  # these models refuse unseen="zero" themselves


@both
@pytest.mark.parametrize("absent", [3, 5])
def test_a_level_that_is_absent_is_refused_where_thresholds_are_learned(kind, absent):
    data = np.where(absent == X, np.nan, X)
    assert_refused(
        DataError, "Every level must be seen", f"Found none at level {absent}", "Leave it out",
        lambda: fitted(kind, data, levels=[1, 2, 3, 4, 5]),
    )  # fmt: skip


@both
@pytest.mark.parametrize(
    "data",
    [X, sparse.csr_array(np.nan_to_num(X)), np.array([[0.0, 1.0], [1.0, 0.0]])],
    ids=["dense", "sparse", "zeros"],
)
def test_unseen_cells_can_not_be_zeros(kind, data):
    """Before anything else goes wrong, and without the name of a loss that these models do not have."""
    message = assert_refused(
        (DataError, ParameterError), "unseen", "", '"missing"', lambda: fitted(kind, data, unseen="zero")
    )
    assert "frobenius" not in message


@both
@pytest.mark.parametrize(
    ("data", "what"),
    [
        (np.full((3, 3), np.nan), "At least one cell must be observed"),
        (np.empty((0, 3)), "0 sample"),
        (np.array([[1.0, np.inf], [2.0, 3.0]]), "Values must be finite. Found inf at row 0, column 1"),
        (np.array([[1.0, np.nan], [np.nan, np.nan]]), "two levels or more"),
    ],
    ids=["all missing", "no rows", "infinite", "one cell"],
)
def test_data_without_anything_to_learn_from(kind, data, what):
    assert_refused(DataError, re.escape(what), "", "", lambda: fitted(kind, data))


@both
@pytest.mark.filterwarnings("ignore::halfseen.errors.DataWarning")
def test_one_cell_is_enough_where_levels_and_thresholds_are_told(kind):
    data = np.full((3, 2), np.nan)
    data[1, 1] = 2
    model = fitted(kind, data, levels=[1, 2], thresholds=[0.0], l2=0.1, max_iter=50)
    assert model.predict_level(1, 1) == 2


@both
def test_cells_that_come_twice_are_refused_unless_merged(kind):
    frame = pd.DataFrame({"user": [1, 1, 2, 2], "item": [1, 1, 1, 2], "rating": [1.0, 2.0, 3.0, 1.0]})
    with pytest.raises(DataError, match=r"twice|once|duplicate"):
        fitted(kind, frame)


@both
@pytest.mark.parametrize(
    ("wish", "must"),
    [
        ({"l2": -1}, "l2 must be a finite number of at least 0 or None. Found -1"),
        ({"l2": np.nan}, "l2 must be a finite number"),
        ({"n_components": 0}, "n_components must be a whole number of at least 1"),
        ({"solver": "lbfgs"}, "solver must be one of 'newton', 'sgd'. Found 'lbfgs'"),
        ({"learning_rate": 0}, "learning_rate must be a finite number above 0"),
        ({"batch_size": 0}, "batch_size must be a whole number"),
        ({"n_init": 0}, "n_init must be a whole number"),
        ({"validation_fraction": 1.0}, "validation_fraction must be a number between 0 and 1"),
        ({"n_iter_no_change": 0}, "n_iter_no_change must be a whole number"),
        ({"biases": "yes"}, "biases must be True or False"),
        ({"early_stopping": 1}, "early_stopping must be True or False"),
        ({"levels": [3, 2, 1]}, "levels must be None, rising numbers or different texts"),
        ({"levels": ["a", "a"]}, "levels must be None, rising numbers or different texts"),
    ],
    ids=str,
)  # fmt: skip
def test_parameters_out_of_range(kind, wish, must):
    with pytest.raises(ParameterError, match=re.escape(must)):
        fitted(kind, **wish)


def test_names_that_are_nearly_right_are_told():
    with pytest.raises(ParameterError, match=r"Found 'sigmoid'. Did you mean 'multi-sigmoid'"):
        fitted(RoundMF, loss="sigmoid")
    with pytest.raises(ParameterError, match=r"Found 'logistic'. Did you mean 'logit'"):
        fitted(OrdinalMF, link="logistic")
    with pytest.raises(ParameterError, match="Did you mean 'n_components'"):
        RoundMF().set_params(factors=3)


# Starts


@both
@pytest.mark.parametrize(
    ("wrong", "what"),
    [
        (lambda W, H: (W[:-1], H), r"W0 of init must have a row for each row.*shape \(20, 2\). Found shape \(19, 2\)"),
        (lambda W, H: (W, H[:, :1]), r"H0 of init must have a row for each column"),
        (lambda W, H: (W * np.nan, H), "W0 of init must hold finite numbers"),
        (lambda W, H: (W, H + np.inf), "H0 of init must hold finite numbers"),
        (lambda W, H: (W.astype(str), H), "W0 of init must hold finite numbers"),
    ],
)  # fmt: skip
def test_starts_that_can_not_be(kind, wrong, what):
    rng = np.random.default_rng(0)
    with pytest.raises(ParameterError, match=what):
        fitted(kind, init=wrong(rng.normal(size=(20, 2)), rng.normal(size=(15, 2))))


@both
def test_a_start_of_either_sign_is_where_the_fit_begins_with_columns_of_biases_or_without(kind):
    """Without them biases begin at 0; and the arrays that were given stay as they were."""
    rng = np.random.default_rng(0)
    W, H = rng.normal(size=(20, 2)), rng.normal(size=(15, 2))
    kept = W.copy(), H.copy()
    nothing, one = (lambda n: np.zeros((n, 1))), (lambda n: np.ones((n, 1)))
    long = np.hstack([W, nothing(20), one(20)]), np.hstack([H, one(15), nothing(15)])
    short, full = fitted(kind, init=(W, H)), fitted(kind, init=long)
    assert_allclose(short.trace_["objective"], full.trace_["objective"], rtol=1e-10)
    assert_allclose(short.W_, full.W_, rtol=1e-8)
    assert_array_equal(W, kept[0])
    assert_array_equal(H, kept[1])
    assert np.abs(fitted(kind, init=(H[:, ::-1][np.arange(20) % 15], H)).W_ - short.W_).max() > 1e-6


@both
def test_the_ones_beside_biases_are_ones_whatever_was_given(kind):
    rng = np.random.default_rng(0)
    model = fitted(kind, init=(rng.normal(size=(20, 4)), rng.normal(size=(15, 4))), max_iter=2)
    assert_array_equal(model.W_[:, -1], 1)
    assert_array_equal(model.H_[:, -2], 1)


@both
def test_a_fit_goes_on_from_where_another_ended(kind):
    first = fitted(kind, max_iter=200, l2=2.0)
    again = fitted(kind, init=(first.W_, first.H_), thresholds=first.likelihood_.thresholds, l2=2.0, max_iter=1)
    assert_allclose(again.trace_["objective"][0], first.trace_["objective"][-1], rtol=1e-4)


# Rows that were not fitted, rows that are not known


@both
def test_unknown_rows_and_columns(kind):
    model = fitted(kind)
    with pytest.raises(DataError, match=r"0 to 19. Found 99"):
        model.predict([99], [0])
    frame = pd.DataFrame({"user": list("aabbcc"), "item": list("xyxyxy"), "rating": [1, 2, 3, 1, 2, 3]})
    with pytest.raises(DataError, match="Found 'zoe'"):
        fitted(kind, frame).predict(["zoe"], ["x"])
    with pytest.raises(DataError, match=r"levels that were fitted: 1, 2, 3, 4, 5. Found 9 at row 0, column 2"):
        model.transform(np.where(np.arange(15) == 2, 9.0, np.nan)[None])
