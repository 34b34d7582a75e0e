"""SquaredOrdNMF against the model written densely, and what is its own."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.utils.estimator_checks import parametrize_with_checks

import halfseen
from halfseen import Observed, SquaredOrdNMF, metrics
from halfseen.errors import ParameterError
from tests.estimators.test_ordnmf import U1, levels_matrix
from tests.ordinal import oracle, squared


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks([SquaredOrdNMF(max_iter=30)])
def test_scikit_learns_contract(estimator, check):
    check(estimator)


@pytest.mark.parametrize("level_weight", ["levels", None])
def test_iterations_with_the_safe_exponent_are_those_of_the_oracle(level_weight, monkeypatch):
    monkeypatch.setattr("halfseen.estimators.squared_ordnmf.EAGER", 0.5)
    Y = levels_matrix()
    W, H, D = squared.start(Y, 4, np.random.RandomState(0))
    S = squared.level_weights(Y) if level_weight else np.ones(Y.shape)
    model = SquaredOrdNMF(4, l2=1.5, level_weight=level_weight, init=(W, H), max_iter=50, tol=0).fit(Y)
    W, H, D, best = squared.squared_ordnmf(Y, S, W, H, D, 1.5, 50)[-1]
    assert_allclose(model.W_, W, rtol=1e-8, atol=1e-12)
    assert_allclose(model.H_, H, rtol=1e-8, atol=1e-12)
    assert_allclose(model.thresholds_, oracle.Ordinal(D).thresholds, rtol=1e-9)
    assert model.trace_["objective"][-1] == pytest.approx(-best, rel=1e-10)
    assert model.thresholds_[0] == pytest.approx(1.0, rel=1e-9)


def test_eager_steps_are_faster_and_never_raise_the_loss():
    Y = levels_matrix(80, 60)
    model = SquaredOrdNMF(10, random_state=0, max_iter=60, tol=0).fit(Y)
    losses = model.trace_["objective"]
    assert np.all(np.diff(losses) <= 1e-10 * losses[0])


def test_the_same_start_and_penalty_whatever_is_not_said():
    Y = levels_matrix(40, 90)
    model = SquaredOrdNMF(5, random_state=3, max_iter=5, tol=0).fit(Y)
    assert model.l2_ == pytest.approx(0.72 * (np.sqrt(40) + np.sqrt(90)))
    assert_array_equal(SquaredOrdNMF(5, random_state=3, max_iter=5, tol=0, n_jobs=1).fit(Y).W_, model.W_)
    W, H, _ = squared.start(Y, 5, np.random.RandomState(3))
    again = SquaredOrdNMF(5, init=(W, H), max_iter=5, tol=0).fit(Y)
    assert_allclose(again.W_, model.W_, rtol=1e-9, atol=1e-15)


def test_probabilities_and_files(tmp_path):
    Y = levels_matrix()
    model = SquaredOrdNMF(3, l2=2.0, random_state=0, max_iter=30, tol=0).fit(Y)
    rate = (model.W_ @ model.H_.T) ** 2
    expected = np.exp(-rate[2, 5] / np.append(model.thresholds_, np.inf))
    assert_allclose(model.predict_proba(2, 5).cumsum(), expected, rtol=1e-10)
    assert_allclose(model.predict(2, 5), model.predict_proba(2, 5) @ np.arange(6), rtol=1e-10)
    model.save(tmp_path / "model.hs")
    again = halfseen.load(tmp_path / "model.hs")
    assert_array_equal(again.predict_proba([0, 2], 5), model.predict_proba([0, 2], 5))
    assert_array_equal(again.transform(Y[:3]), model.transform(Y[:3]))


def test_parameters_that_can_not_be():
    for ask, sentence in (
        ({"l2": -1.0}, "l2 must be a finite number of at least 0 or None"),
        ({"level_weight": "level"}, "level_weight must be one of 'levels' or None. .*Did you mean 'levels'"),
    ):
        with pytest.raises(ParameterError, match=sentence):
            SquaredOrdNMF(2, **ask).fit(levels_matrix())


@pytest.mark.skipif(not U1.exists(), reason="MovieLens 100K is not in the data folder")
def test_it_ranks_as_was_found_on_movielens_100k():
    """Found with another program there: .588 / .587 / .561 / .482, where OrdNMF has .535 / .527 / .492 / .413."""
    cells = {name: np.loadtxt(U1 / f"u1.{name}", dtype=int) for name in ("base", "test")}
    train, test = (
        Observed.from_cells(one[:, 0] - 1, one[:, 1] - 1, one[:, 2].astype(float), (943, 1682), unseen="zero")
        for one in cells.values()
    )
    model = SquaredOrdNMF(200, random_state=0, tol=0).fit(train)
    found = metrics.ndcg_at_k(model, train, test, k=100, relevant=[1, 3, 4, 5])
    assert np.all(found > [0.575, 0.575, 0.550, 0.472])
