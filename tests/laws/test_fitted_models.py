"""What every fitted model keeps, whatever is set, refused or asked of its estimator afterwards."""

from dataclasses import fields, is_dataclass

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError

import halfseen
from halfseen import OrdNMF
from halfseen.errors import DataError, ParameterError
from halfseen.estimators import base, ordinal_mf, rank_one_nmf
from tests.estimators.models import refused
from tests.laws.cases import counts
from tests.laws.estimators import (
    answers,
    assert_same_answers,
    every_estimator,
    every_record,
    fitted,
    suited,
    with_parameters,
)

#: Other legal values of all parameters; of two, the one that is not set.
OTHER = {
    "n_components": [7],
    "max_iter": [1],
    "tol": [0.5],
    "accelerate": [True, False],
    "init": [(np.ones((2, 7)), np.ones((3, 7)))],
    "random_state": [5],
    "verbose": [1],
    "unseen": ["missing", "zero"],
    "n_jobs": [2],
    "checkpoint": ["elsewhere"],
    "loss": ["frobenius", "multi-sigmoid", "linear"],
    "l1": [3.0],
    "l2": [7.0],
    "frequency_scaling": [0.5],
    "prior_shape": [5.0],
    "prior_rate": [4.0],
    "p": [0.9],
    "levels": [["low", "high"]],
    "thresholds": [[1.0]],
    "level_weight": [{"low": 2.0, "high": 1.0}],
    "noise": ["exponential", "inverse-gamma"],
    "noise_shape": [3.0],
    "approximate": [True],
    "link": ["cauchit"],
    "own_thresholds": ["rows", "columns"],
    "biases": [True, False],
    "centred": [True, False],
    "margin": [0.5],
    "ends": [2.0],
    "solver": ["sgd"],
    "learning_rate": [0.9],
    "batch_size": [3],
    "n_init": [4],
    "early_stopping": [True, False],
    "validation_fraction": [0.4],
    "n_iter_no_change": [1],
    "method": ["em", "exact"],
    "inference": ["map", "gibbs"],
    "implicit": [True, False],
    "row_features": [[[1.0], [2.0]]],
    "column_features": [[[1.0], [2.0]]],
    "n_sweeps": [9],
    "n_burn": [3],
    "n_chains": [3],
    "n_draws": [2],
    "unseen_weight": [2.0],
    "confidence": ["ones", "log"],
    "frequency": [0.3],
    "n_steps": [5],
    "dtype": ["float64", None],
}
#: Parameters that a file does not keep: arrays, which a fitted model does not need, and where a fit was saved.
NOT_KEPT = ("init", "row_features", "column_features", "checkpoint")


def other_values(model):
    """For every parameter another legal value; there is one engine only."""
    values = {}
    for name, value in model.get_params().items():
        if name != "engine":
            rule = model.parameter_rules.get(name, lambda _: None)
            values[name] = next(one for one in OTHER[name] if rule(one) is None and one is not value and one != value)
    return values


@every_record
def test_parameters_set_after_a_fit_change_nothing_of_it(estimator, tmp_path):
    X = suited(estimator, counts())
    model = fitted(estimator)
    before = answers(model, X)
    model.set_params(**other_values(model))
    assert_same_answers(answers(model, X), before)
    model.save(tmp_path / "model.hs")
    again = halfseen.load(tmp_path / "model.hs")
    assert_same_answers(answers(again, X), before)
    kept = {name: value for name, value in model.get_params().items() if name not in NOT_KEPT}
    assert {name: again.get_params()[name] for name in kept} == kept


@pytest.mark.parametrize("unseen", ["zero", "missing"])
def test_text_levels_keep_their_meaning_after_set_params(unseen):
    words, rng = np.array(["bad", "fair", "good"]), np.random.default_rng(0)
    rows, columns = np.nonzero(rng.random((9, 7)) < 0.8)
    frame = pd.DataFrame({"user": rows, "item": columns, "rating": rng.choice(words, rows.size)})
    model = fitted(OrdNMF(levels=words, unseen=unseen), frame)
    expected = model.transform(frame), model.log_likelihood(frame), model.predict_level(rows, columns)
    model.set_params(unseen="missing" if unseen == "zero" else "zero", levels=words[::-1].tolist(), noise="gamma")
    for one, other in zip((model.transform, model.log_likelihood), expected, strict=False):
        np.testing.assert_array_equal(one(frame), other)
    np.testing.assert_array_equal(model.predict_level(rows, columns), expected[2])


# Refused fits


def infinite(X):
    return np.where(np.arange(X.shape[1]) == 3, np.inf, X)


def interrupted(*_, **__):
    raise KeyboardInterrupt


@every_record
@pytest.mark.filterwarnings("ignore::halfseen.errors.DataWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_refused_fit_leaves_the_last_one_whole(estimator, monkeypatch):
    X = suited(estimator, counts())
    model = fitted(estimator)
    before, kept, known = answers(model, X), dict(vars(model)), model.get_params()

    def fail(*_, **__):
        raise RuntimeError

    faults = {
        "data": (DataError, infinite(X), {}),
        "parameter": (ParameterError, X, {"max_iter": 0}),
        "start": (ParameterError, X[:9], {"init": (np.ones((9, 2)), np.ones((2, 2)))}),
        "levels": (DataError, X[:9], {"levels": [0, 1, 2, 3]}),
        "interrupt": (KeyboardInterrupt, X[:9], {}),
        "late": (RuntimeError, X[:9], {}),
    }
    for fault, (error, data, wrong) in faults.items():
        if not known.keys() >= wrong.keys():
            continue
        if fault == "interrupt":
            for module in (base, rank_one_nmf):
                monkeypatch.setattr(module, "observe_for_fit", interrupted)
            monkeypatch.setattr(rank_one_nmf, "grid_of", interrupted)
        elif fault == "late":  # the last thing before a fit is kept
            for module in (base, ordinal_mf, rank_one_nmf):
                monkeypatch.setattr(module, "keep", fail)
        with pytest.raises(error):
            model.set_params(**wrong).fit(data)
        monkeypatch.undo()
        model.set_params(**{name: known[name] for name in wrong})
        assert vars(model).keys() == kept.keys(), fault
        assert [name for name, value in vars(model).items() if value is not kept[name]] == [], fault
    assert_same_answers(answers(model, X), before)


@every_estimator
def test_a_parameter_that_breaks_its_rule_is_named(estimator):
    X = suited(estimator, counts())
    for name in estimator.parameter_rules:
        with refused(ParameterError, name):
            with_parameters(estimator, **{name: object()}).fit(X)
    with refused(ParameterError, "n_epochs", remedy="max_iter"):
        with_parameters(estimator).set_params(n_epochs=3)


@every_estimator
def test_data_that_no_model_can_have_are_refused_with_their_place(estimator):
    X = suited(estimator, np.nan_to_num(counts(), nan=2.0))
    model = with_parameters(estimator, n_components=2)
    X[1, 2] = np.inf
    with refused(DataError, found="inf", where="row 1, column 2"):
        model.fit(X)
    frame = pd.DataFrame(X, columns=list("abcdefghijk"), index=[f"r{row}" for row in range(len(X))])
    with refused(DataError, found="inf", where="row 'r1', column 'c'"):
        model.fit(frame)
    if "levels" not in model.offers or model.unseen == "zero":
        X[1, 2] = -4
        with refused(DataError, found="-4", where="row 1, column 2"):
            model.fit(X)
    for nothing in (np.full((3, 2), np.nan), sparse.csr_array((3, 2))):
        with refused(DataError, found="none", where="in 3 rows and 2 columns"):
            model.fit(nothing)


@every_estimator
def test_rows_and_columns_that_were_not_fitted_are_refused(estimator):
    X = suited(estimator, counts())
    model = fitted(estimator)
    for wrong in (X[:, :10], np.column_stack([X, X]), sparse.csr_array(np.ones((2, 9)))):
        for call in (model.transform, model.complete, model.score):
            with refused(DataError, "X"):
                call(wrong)
    for rows, columns in (([14], [0]), ([0], [11]), ([-1], [0]), (["ann"], [0]), ([0.5], [0]), ([0, 1], [0, 1, 2])):
        with refused(DataError):
            model.predict(rows, columns)
    with refused(ParameterError, "W"):
        model.inverse_transform(np.ones((2, 9)))


@every_estimator
def test_nothing_is_said_before_the_fit(estimator):
    model, X = with_parameters(estimator), np.ones((2, 2))
    for name in ("transform", "predict", "complete", "recommend", "score", "inverse_transform", "save"):
        with pytest.raises(NotFittedError):
            getattr(model, name)(X)
    assert not hasattr(model, "W_")


# The record


@every_record
def test_the_record_of_a_fit_is_frozen(estimator):
    model = fitted(estimator)
    record = model.model_
    parts = [record, record.rows, record.columns, record.likelihood, record.encoder, record.seen]
    parts += [] if record.folding is None else [record.folding, record.folding.solver]
    for part in parts:
        names = [field.name for field in fields(part)] if is_dataclass(part) else list(getattr(part, "state", ()))
        for name in names:
            with pytest.raises(AttributeError):
                setattr(part, name, None)
    for name in ("W_", "H_", "components_", "likelihood_", "row_labels_", "column_labels_", "seen_"):
        with pytest.raises(AttributeError):
            setattr(model, name, None)


def test_labels_of_a_record_are_frozen():
    frame = pd.DataFrame({"user": list("aab"), "item": list("xyx"), "rating": [1.0, 2.0, 3.0]})
    index = fitted(OrdNMF(), frame).model_.index[0]
    with pytest.raises(AttributeError):
        index.labels = np.arange(2)
