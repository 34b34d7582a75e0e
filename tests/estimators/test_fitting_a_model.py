"""What a fit accepts, refuses, and warns of."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from halfseen import PoissonFactorization, Status, WeightedNMF, observe
from halfseen.errors import DataError, DataWarning, ParameterError
from halfseen.likelihoods import likelihood_for
from halfseen.observed import Observed
from halfseen.solvers import Multiplicative
from tests.estimators.models import fitted, long_frame, seen_matrix

X = seen_matrix()
BOTH = [WeightedNMF, PoissonFactorization]
both = pytest.mark.parametrize("kind", BOTH)


# Parameters


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("factors", "n_components"),
        ("k", "n_components"),
        ("rank", "n_components"),
        ("seed", "random_state"),
        ("n_epochs", "max_iter"),
        ("n_component", "n_components"),
        ("tolerance", "tol"),
    ],
)
@both
def test_unknown_parameters_are_answered(kind, name, meant):
    hint = rf"Did you mean '{meant}'\?" if meant else "Valid parameters are: engine, init"
    with pytest.raises(ParameterError, match=rf"Invalid parameter '{name}' for estimator {kind.__name__}\. {hint}"):
        kind().set_params(**{name: 3})


@both
def test_parameters_are_set_by_name(kind):
    model = kind().set_params(n_components=4, tol=0.5)
    assert (model.n_components, model.tol) == (4, 0.5)


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"n_components": 0}, "n_components must be a whole number of at least 1. Found 0"),
        ({"n_components": 2.0}, "n_components must be a whole number"),
        ({"max_iter": 0}, "max_iter must be"),
        ({"tol": -1e-3}, "tol must be a finite number of at least 0"),
        ({"tol": np.nan}, "tol must be"),
        ({"init": "nndsvd"}, "init must be 'random' (or 'rank-one' )?or a pair of arrays"),
        ({"init": None}, "init must be"),
        ({"unseen": "zeros"}, "unseen must be one of .*Did you mean 'zero'"),
        ({"engine": "gpu"}, "engine must be one of 'cpu'"),
        ({"n_jobs": 0}, "n_jobs must be"),
    ],
)
@both
def test_wrong_parameters_are_refused_at_the_fit(kind, parameters, sentence):
    with pytest.raises(ParameterError, match=sentence):
        kind(**parameters).fit(X)


@pytest.mark.parametrize(
    ("model", "sentence"),
    [
        (WeightedNMF(loss="frobenious"), "Did you mean 'frobenius'"),
        (WeightedNMF(l1=-1), "l1 must be"),
        (WeightedNMF(l2=np.inf), "l2 must be"),
        (PoissonFactorization(prior_shape=0), "prior_shape must be a finite number above 0"),
        (PoissonFactorization(prior_rate=0), "prior_rate must be a finite number above 0 or None"),
    ],
)
def test_wrong_parameters_of_one_estimator(model, sentence):
    with pytest.raises(ParameterError, match=sentence):
        model.fit(X)


@both
@pytest.mark.parametrize(
    ("init", "sentence"),
    [
        (
            (np.ones((4, 3)), np.ones((5, 2))),
            r"W0 of init must have a row for each row of X .*shape \(4, 2\). Found shape \(4, 3\)",
        ),
        (
            (np.ones((4, 2)), np.ones((2, 5))),
            r"H0 of init must have a row for each column of X .*shape \(5, 2\). Found shape \(2, 5\)",
        ),
        ((np.ones((4, 2)), np.ones(5)), r"H0 of init .*Found shape \(5,\)"),
        ((np.full((4, 2), -1.0), np.ones((5, 2))), "W0 of init must hold finite numbers of 0 or more"),
        ((np.ones((4, 2)), np.full((5, 2), np.nan)), "H0 of init must hold finite numbers of 0 or more"),
        ((np.ones((4, 2)), np.full((5, 2), np.inf)), "H0 of init"),
        ((np.full((4, 2), "a"), np.ones((5, 2))), "W0 of init"),
    ],
)
def test_starts_of_the_wrong_kind_are_refused(kind, init, sentence):
    with pytest.raises(ParameterError, match=sentence):
        kind(2, init=init).fit(X)


def test_a_start_is_used_and_left_alone():
    W, H = np.full((4, 2), 2), np.arange(10).reshape(5, 2)
    model = WeightedNMF(2, init=(W, H), max_iter=1, tol=0, loss="frobenius", unseen="zero").fit(X)
    again = WeightedNMF(2, init=[W.tolist(), H.tolist()], max_iter=1, tol=0, loss="frobenius", unseen="zero").fit(X)
    assert_array_equal(model.W_, again.W_)
    assert np.all(W == 2)
    assert model.H_[0, 0] == 0  # a zero can't grow
    assert model.init[0] is W


def test_a_random_start_has_the_mean_of_the_data():
    rng = np.random.default_rng(0)
    data = rng.gamma(2.0, 30.0, (200, 150))
    for unseen, expected in (("missing", data.mean()), ("zero", data.mean() / 2)):
        half = sparse.coo_array(np.where(rng.random(data.shape) < 0.5, data, 0))
        model = WeightedNMF(5, unseen=unseen)
        observed = observe(half, unseen=unseen)

        class Problem:  # only what a start looks at
            likelihood = likelihood_for(model.loss)
            cells = type("Cells", (), {"observed": observed})

        random = np.random.RandomState(0)
        W, H = (Multiplicative().random(Problem, (size, 5), random) for size in observed.shape)
        assert_allclose((W @ H.T).mean(), expected, rtol=0.1)


# Data


@both
def test_negative_values_are_refused(kind):
    bad = X.copy()
    bad[2, 3] = -4
    sentence = rf"Negative values in data passed to {kind.__name__}: .* Found -4 at row 2, column 3\. Shift or drop"
    with pytest.raises(DataError, match=sentence):
        kind().fit(bad)
    with pytest.raises(DataError, match="Found -4 at row 'cid', column 'dip'"):
        kind().fit(long_frame(bad))


@both
@pytest.mark.parametrize("bad", [np.inf, -np.inf])
def test_infinite_values_are_refused(kind, bad):
    data = X.copy()
    data[1, 2] = bad
    with pytest.raises(DataError, match=rf"Values must be finite. Found {bad} at row 1, column 2"):
        kind().fit(data)


def test_zeros_are_refused_where_they_can_not_be():
    with pytest.raises(DataError, match="Found 0 at row 0, column 0"):
        WeightedNMF(loss="itakura-saito").fit(np.where(X == 5, 0.0, X))


@both
@pytest.mark.parametrize("unseen", ["missing", "zero"])
def test_a_matrix_of_which_nothing_is_seen_is_refused(kind, unseen):
    for data in (np.full((3, 2), np.nan), sparse.csr_array((3, 2))):
        with pytest.raises(DataError, match=r"At least one .* must be observed. Found none in 3 rows and 2 columns"):
            kind(unseen=unseen).fit(data)


@both
def test_a_beta_without_a_closed_form_refuses_zeros_as_unseen(kind):
    if kind is WeightedNMF:
        with pytest.raises(DataError, match=r'unseen="zero" needs a loss .* WeightedNMF uses beta=1.5'):
            kind(loss=1.5, unseen="zero").fit(X)


def test_huge_ids_cost_nothing():
    """Labels are numbers of their own, not positions: two cells make a 2 x 2 matrix."""
    import pandas as pd

    frame = pd.DataFrame({"user": [2**64 - 1, 5], "item": [10**18, 7], "rating": [1.0, 2.0]}).astype({"user": "uint64"})
    model = fitted(frame, n_components=1)
    assert model.W_.shape == model.H_.shape == (2, 1)
    assert_allclose(model.predict([2**64 - 1, 5], [10**18, 7]), [1.0, 2.0], rtol=1e-6)


def test_many_empty_rows_are_no_trouble():
    observed = Observed.from_cells([0, 99_999], [0, 1], [1.0, 2.0], (100_000, 2))
    with pytest.warns(DataWarning, match=r"Found none in row 1 .*9999[78]"):
        model = fitted(observed, n_components=1)
    assert_allclose(model.predict([0, 99_999], [0, 1]), [1.0, 2.0], rtol=1e-6)


# Weights


def test_weights_of_every_kind_count_alike():
    weight = np.random.default_rng(0).uniform(0.5, 2, X.shape)
    seen = ~np.isnan(X)
    rows, columns = np.nonzero(seen)
    model = WeightedNMF(2, max_iter=20, tol=0, random_state=0)
    expected = model.fit(X, cell_weight=weight).W_
    for form in (weight[seen], sparse.coo_array((weight[seen], (rows, columns)), X.shape)):
        assert_allclose(model.fit(X, cell_weight=form).W_, expected, rtol=1e-12)
    frame = long_frame().assign(importance=weight[seen])
    labelled = model.fit(frame, cell_weight="importance")
    order = [list(labelled.row_labels_).index(user) for user in ("ann", "bob", "cid", "dan")]
    assert labelled.W_[order].shape == expected.shape
    assert np.abs(model.fit(X).W_ - expected).max() > 1e-3


# Warnings


@both
def test_rows_and_columns_without_a_seen_cell_are_told_of(kind):
    data = X.copy()
    data[0], data[3] = np.nan, np.nan
    with pytest.warns(DataWarning, match=r"Found none in row 0\b"):
        model = kind(2, unseen="missing", max_iter=5, tol=0).fit(data)
    assert_allclose(model.W_[0], model.W_[[1, 2]].mean(axis=0), rtol=1e-10)
    data = X.copy()
    data[:, 2] = np.nan
    with pytest.warns(DataWarning, match=r"Found none in column 2\b"):
        model = kind(2, unseen="missing", max_iter=5, tol=0).fit(data)
    assert_allclose(model.H_[2], model.H_[[0, 1, 3, 4]].mean(axis=0), rtol=1e-10)


def test_the_warning_points_at_the_users_line():
    data = X.copy()
    data[1] = np.nan
    with pytest.warns(DataWarning) as caught:
        WeightedNMF(2, max_iter=5, tol=0).fit(data)
    assert caught[0].filename == __file__
    with pytest.warns(ConvergenceWarning) as caught:
        WeightedNMF(2, max_iter=1, tol=1e-9).fit(X)
    assert caught[0].filename == __file__


@both
def test_where_zeros_count_nothing_is_warned_of(kind):
    data = X.copy()
    data[1] = np.nan
    model = kind(2, unseen="zero", max_iter=5, tol=0).fit(data)
    assert model.W_[1].sum() < 0.2 * model.W_[0].sum()


@both
def test_a_fit_that_did_not_settle_says_so(kind):
    with pytest.warns(ConvergenceWarning, match=rf"{kind.__name__}: Stopped at max_iter .*Raise max_iter, or tol"):
        model = kind(2, max_iter=2, tol=1e-12, random_state=0).fit(X)
    assert model.status_ is Status.MAX_ITER
    assert model.n_iter_ == 2


@both
def test_a_fit_that_settles_is_quiet_and_tol_zero_asks_for_all_iterations(kind):
    model = kind(2, max_iter=5000, tol=1e-3, random_state=0).fit(X)
    assert model.status_ is Status.CONVERGED
    assert model.n_iter_ < 5000
    assert kind(2, max_iter=3, tol=0, random_state=0).fit(X).status_ is Status.MAX_ITER


@pytest.mark.parametrize("status", [Status.NOT_FINITE, Status.WORSENED])
def test_an_end_that_should_not_be_is_told_and_the_fit_kept(status, monkeypatch):
    from halfseen import fitting

    judged = []

    def judge(*_):
        judged.append(1)
        return status if len(judged) == 3 else None

    monkeypatch.setattr(fitting, "_trouble", judge)
    with pytest.warns(ConvergenceWarning, match=status.value[:30]):
        model = WeightedNMF(2, max_iter=10, tol=0).fit(X)
    assert (model.status_, model.n_iter_) == (status, 2)
    assert model.predict([0], [0]).shape == (1,)


def test_an_interrupted_fit_is_kept_and_the_interrupt_goes_on(monkeypatch):
    epoch, left = Multiplicative.epoch, [3]

    def interrupted(self, task, state):
        left[0] -= 1
        if left[0] == 0:
            raise KeyboardInterrupt
        return epoch(self, task, state)

    monkeypatch.setattr(Multiplicative, "epoch", interrupted)
    model = WeightedNMF(2, max_iter=10, tol=0, random_state=0)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X)
    monkeypatch.undo()
    assert (model.status_, model.n_iter_) == (Status.INTERRUPTED, 2)
    assert_array_equal(model.W_, fitted(X, max_iter=2).W_)


def test_values_beyond_the_precision_end_the_fit_as_not_finite():
    """Their squares overflow: that is a status and one warning, not a shower of warnings from inside."""
    data = (X * 1e30).astype(np.float32)
    with pytest.warns(ConvergenceWarning, match="not finite") as caught:
        model = fitted(data, loss="frobenius")
    assert model.status_ is Status.NOT_FINITE
    assert np.all(np.isfinite(model.W_))
    assert {warning.category for warning in caught} == {ConvergenceWarning}


def test_refitting_forgets_the_fit_before():
    model = fitted(long_frame())
    assert model.predict("ann", "ale") > 0
    model.fit(X[:3, :4])
    assert model.row_labels_ is None
    assert model.n_features_in_ == 4
    assert_allclose(model.predict([0], [3]), [model.W_[0] @ model.H_[3]])
