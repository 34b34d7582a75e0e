"""Starts that know the data."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import halfseen
from halfseen import RankOneNMF, WeightedNMF, observe
from halfseen.errors import ParameterError
from halfseen.estimators.nmf import rank_one_start
from tests.rank_one import oracle


def holed(n=60, m=25, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.gamma(2.0, 1.0, (n, m)) * rng.uniform(0.1, 10, (n, 1)) * rng.uniform(0.1, 10, m)
    X[rng.random((n, m)) < 0.4] = np.nan
    return X


def test_it_lies_around_the_best_rank_one_factors():
    X = holed()
    w, h = oracle.best(X)
    W, H = rank_one_start(observe(X), 400, np.random.RandomState(0), None)
    for factor, best in ((W, w), (H, h)):
        ratio = factor / best[:, None] * np.sqrt(400)
        assert ratio.min() > 0.49
        assert ratio.max() < 1.51
        assert np.unique(ratio).size == ratio.size
    assert_allclose(W @ H.T, np.outer(w, h), rtol=0.15)  # the numbers around 1 average out over many components


def test_a_fit_starts_there_and_goes_on_as_from_given_factors():
    X = holed()
    start = rank_one_start(observe(X), 3, np.random.RandomState(7), None)
    named = WeightedNMF(3, init="rank-one", random_state=7, max_iter=20, tol=0).fit(X)
    given = WeightedNMF(3, init=start, max_iter=20, tol=0).fit(X)
    assert_array_equal(named.W_, given.W_)
    assert_array_equal(named.H_, given.H_)


@pytest.mark.parametrize(
    ("loss", "unseen"),
    [(loss, "missing") for loss in ("kullback-leibler", "frobenius", "itakura-saito", 1.5)]
    + [("kullback-leibler", "zero"), ("frobenius", "zero")],
)
def test_every_loss_can_start_there(loss, unseen):
    X = holed()
    model = WeightedNMF(3, loss=loss, unseen=unseen, init="rank-one", random_state=0, max_iter=200, tol=0).fit(X)
    assert np.all(np.diff(model.trace_["objective"]) <= 1e-10 * model.trace_["objective"][0])


def test_with_one_component_it_is_nearly_there():
    X = holed()
    best = oracle.cost(X, *oracle.best(X))
    first = WeightedNMF(1, init="rank-one", random_state=0, max_iter=3, tol=0).fit(X)
    assert_allclose(first.trace_["objective"][-1], best, rtol=1e-3)


def test_the_same_seed_gives_the_same_start_and_another_another():
    X = holed()
    same, again, other = (
        WeightedNMF(3, init="rank-one", random_state=seed, max_iter=5, tol=0).fit(X).W_ for seed in (1, 1, 2)
    )
    assert_array_equal(same, again)
    assert not np.allclose(same, other)


def test_a_saved_model_keeps_the_name_of_its_start(tmp_path):
    WeightedNMF(2, init="rank-one", random_state=0).fit(holed()).save(tmp_path / "model.hs")
    assert halfseen.load(tmp_path / "model.hs").init == "rank-one"


def test_rows_and_columns_without_anything_seen_have_the_average():
    X = holed()
    X[3], X[:, 4] = np.nan, np.nan
    W, H = rank_one_start(observe(X), 50, np.random.RandomState(0), None)
    assert_allclose(W[3].mean(), np.delete(W, 3, axis=0).mean(), rtol=0.2)
    assert_allclose(H[4].mean(), np.delete(H, 4, axis=0).mean(), rtol=0.2)


def test_it_belongs_to_weighted_nmf():
    with pytest.raises(ParameterError, match="init must be 'random' or a pair"):
        halfseen.PoissonFactorization(init="rank-one").fit(holed())
    assert "init" not in RankOneNMF().get_params()
