"""Relatives of OrdNMF: SquaredOrdNMF, SquaredPoisson, BernoulliPoisson, CompoundPoisson, each against its oracle."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

import halfseen
from halfseen import (
    BernoulliPoisson,
    CompoundPoisson,
    PoissonFactorization,
    SquaredOrdNMF,
    SquaredPoisson,
    metrics,
)
from halfseen.errors import DataError, ParameterError
from halfseen.estimators import squared_models
from tests.estimators.models import (
    counts,
    folding_until,
    levels_matrix,
    movielens,
    needs_movielens,
    refused,
    start,
    with_holes,
)
from tests.ordinal import oracle, squared


@pytest.mark.parametrize("level_weight", ["levels", None])
def test_iterations_with_the_safe_exponent_are_those_of_the_oracle(level_weight, monkeypatch):
    monkeypatch.setitem(squared_models.EAGER_EXPONENT, False, 0.5)
    Y = levels_matrix()
    W, H, D = squared.start(Y, 4, np.random.RandomState(0))
    S = squared.level_weights(Y) if level_weight else np.ones(Y.shape)
    ask = {"l2": 1.5, "init": (W, H), "accelerate": False, "max_iter": 50, "tol": 0}
    model = SquaredOrdNMF(4, level_weight=level_weight, **ask).fit(Y)
    W, H, D, best = squared.squared_ordnmf(Y, S, W, H, D, 1.5, 50)[-1]
    assert_allclose(model.W_, W, rtol=1e-8, atol=1e-12)
    assert_allclose(model.H_, H, rtol=1e-8, atol=1e-12)
    assert_allclose(model.thresholds_, oracle.Ordinal(D).thresholds, rtol=1e-9)
    assert model.trace_["objective"][-1] == pytest.approx(-best, rel=1e-10)
    assert model.thresholds_[0] == pytest.approx(1.0, rel=1e-9)


def test_the_default_start_and_penalty():
    Y = levels_matrix(40, 90)
    model = SquaredOrdNMF(5, random_state=3, max_iter=5, tol=0).fit(Y)
    assert model.l2_ == pytest.approx(0.72 * (np.sqrt(40) + np.sqrt(90)))
    assert_array_equal(SquaredOrdNMF(5, random_state=3, max_iter=5, tol=0, n_jobs=1).fit(Y).W_, model.W_)
    W, H, _ = squared.start(Y, 5, np.random.RandomState(3))
    again = SquaredOrdNMF(5, init=(W, H), max_iter=5, tol=0).fit(Y)
    assert_allclose(again.W_, model.W_, rtol=1e-9, atol=1e-15)


def test_probabilities_are_those_of_the_model():
    model = SquaredOrdNMF(3, l2=2.0, random_state=0, max_iter=30, tol=0).fit(levels_matrix())
    rate = (model.W_ @ model.H_.T) ** 2
    expected = np.exp(-rate[2, 5] / np.append(model.thresholds_, np.inf))
    assert_allclose(model.predict_proba(2, 5).cumsum(), expected, rtol=1e-10)
    assert_allclose(model.predict(2, 5), model.predict_proba(2, 5) @ np.arange(6), rtol=1e-10)


def test_weights_of_levels_may_be_given(tmp_path, monkeypatch):
    monkeypatch.setitem(squared_models.EAGER_EXPONENT, False, 0.5)
    Y = levels_matrix()
    W, H, D = squared.start(Y, 4, np.random.RandomState(0))
    weights = [0.5, 1.0, 0.25, 2.0, 3.0]
    S = np.append(1.0, weights)[Y]
    ask = {"l2": 1.5, "init": (W, H), "accelerate": False, "max_iter": 20, "tol": 0}
    model = SquaredOrdNMF(4, level_weight=weights, **ask).fit(Y)
    W, H, D, best = squared.squared_ordnmf(Y, S, W, H, D, 1.5, 20)[-1]
    assert_allclose(model.W_, W, rtol=1e-8, atol=1e-12)
    assert model.trace_["objective"][-1] == pytest.approx(-best, rel=1e-10)
    assert_array_equal(model.level_weights_, [1.0, *weights])
    same = SquaredOrdNMF(4, level_weight=dict(enumerate(weights, start=1)), **ask).fit(Y)
    assert_array_equal(same.W_, model.W_)
    listed = SquaredOrdNMF(4, level_weight=np.array(weights), **ask).fit(Y)
    for given, kept in ((same, same.level_weight), (listed, weights)):
        given.save(tmp_path / "model.hs")
        again = halfseen.load(tmp_path / "model.hs")
        assert again.level_weight == kept
        assert_array_equal(again.transform(Y[:3]), model.transform(Y[:3]))
    # Held-out cells are asked how likely they are, not how much they count.
    plain = SquaredOrdNMF(4, level_weight=None, **ask).fit(Y)
    same = {name: getattr(model.model_, name) for name in ("rows", "columns", "likelihood")}
    plain.model_ = replace(plain.model_, **same)
    assert plain.log_likelihood(Y) == model.log_likelihood(Y)


def test_where_unseen_cells_say_nothing_every_level_has_a_weight():
    Y = levels_matrix() + 1.0
    thresholds = [1, 2, 3, 4, 5]  # where they are learned, their start counts cells by their own weights alone
    ask = {"thresholds": thresholds, "l2": 1.0, "unseen": "missing", "random_state": 0, "max_iter": 10, "tol": 0}
    weights = np.arange(1.0, 7.0)
    by_level = SquaredOrdNMF(3, level_weight=weights, **ask).fit(Y)
    by_cell = SquaredOrdNMF(3, level_weight=None, **ask).fit(Y, cell_weight=weights[levels_matrix()])
    assert_allclose(by_level.W_, by_cell.W_, rtol=1e-9)


# With Poisson in the place of levels.


def squared_poisson_loss(Y, W, H, l2):
    x = W @ H.T
    with np.errstate(divide="ignore", invalid="ignore"):
        cost = np.where(Y > 0, Y * np.log(Y / x**2) - Y, 0.0) + x**2
    return cost.sum() + l2 / 2 * (np.sum(W**2) + np.sum(H**2))


def squared_poisson_step(Y, F, G, l2):
    """F (P / Q)^(1/2): P = sum of 2 (y / x) G, Q = sum of 2 x G + l2 F, over the whole grid."""
    x = F @ G.T
    pull = np.divide(2.0 * Y, x, out=np.zeros(x.shape), where=Y > 0)
    return F * np.sqrt(pull @ G / (2 * x @ G + l2 * F))


def test_squared_poisson_is_the_model_written_densely(monkeypatch):
    monkeypatch.setitem(squared_models.EAGER_EXPONENT, False, 0.5)
    rng = np.random.default_rng(0)
    Y = (rng.poisson(3.0, (12, 9)) * (rng.random((12, 9)) < 0.5)).astype(float)
    W, H = rng.random((12, 3)), rng.random((9, 3))
    model = SquaredPoisson(3, l2=0.7, init=(W, H), accelerate=False, max_iter=20, tol=0).fit(Y)
    for _ in range(20):
        W = squared_poisson_step(Y, W, H, 0.7)
        H = squared_poisson_step(Y.T, H, W, 0.7)
    assert_allclose(model.W_, W, rtol=1e-9)
    assert_allclose(model.H_, H, rtol=1e-9)
    assert model.trace_["objective"][-1] == pytest.approx(squared_poisson_loss(Y, W, H, 0.7), rel=1e-11)
    assert_allclose(model.predict(0, [1, 2]), (W[0] @ H[[1, 2]].T) ** 2, rtol=1e-9)


def test_squared_poisson_is_squared_ordnmf_of_rare_events():
    """Where x is small, 1 - exp(-x^2) is x^2: presence has the likelihood of a count of 1."""
    Y = np.minimum(levels_matrix(60, 50, share=0.02), 1)
    ask = {"l2": 3.0, "random_state": 0, "max_iter": 200, "tol": 0}
    poisson = SquaredPoisson(2, **ask).fit(Y)
    levels = SquaredOrdNMF(2, level_weight=None, **ask).fit(Y)
    x, other = poisson.W_ @ poisson.H_.T, levels.W_ @ levels.H_.T
    assert x.max() < 0.6
    assert_allclose(other, x, atol=0.1 * x.max())


def test_rows_folded_into_squared_poisson_are_those_of_a_fit_with_fixed_columns():
    """A step does not move what is above 0; what is on its way to 0, which takes for ever, does not turn back."""
    Y = levels_matrix(40, 90)
    model = SquaredPoisson(5, random_state=3, max_iter=30, tol=0).fit(Y)
    assert model.l2_ == pytest.approx(0.72 * (np.sqrt(40) + np.sqrt(90)))
    folded = folding_until(model, max_iter=5000, tol=1e-13).transform(Y[5:9].astype(float))
    moved, there = squared_poisson_step(Y[5:9], folded, model.H_, model.l2_), folded > 1e-3
    assert_allclose(moved[there], folded[there], rtol=1e-6)
    assert np.all(moved[~there] <= folded[~there] * (1 + 1e-6))


@pytest.mark.parametrize(
    "ask",
    [
        {"l2": -1.0},
        {"level_weight": "level"},
        {"level_weight": [1, 1, 0, 1, 1]},
        {"level_weight": [1, 2]},
        {"level_weight": {1: 1, 2: 1, 3: 1, 5: 1}},
    ],
    ids=str,
)
def test_invalid_parameters_are_refused(ask):
    with refused(ParameterError, *ask):
        SquaredOrdNMF(2, **ask).fit(levels_matrix())


@needs_movielens
def test_it_ranks_movielens_100k_as_another_program_does():
    """Found there: .588 / .587 / .561 / .482, where OrdNMF has .535 / .527 / .492 / .413."""
    train, test = movielens()
    model = SquaredOrdNMF(200, random_state=0, tol=0).fit(train)
    found = metrics.ndcg_at_k(model, train, test, k=100, relevant=[1, 3, 4, 5])
    assert np.all(found > [0.575, 0.575, 0.550, 0.472])


def test_a_start_with_a_row_of_zeros_is_refused():
    Y = levels_matrix()
    W, H = np.ones((Y.shape[0], 2)), np.ones((Y.shape[1], 2))
    W[3] = 0
    with refused(ParameterError, "init", where="in row 3"):
        SquaredOrdNMF(2, init=(W, H)).fit(Y)


def test_under_a_crushing_penalty_thresholds_stay_where_they_started():
    Y = levels_matrix()
    flat = np.full((Y.shape[0], 2), 0.1), np.full((Y.shape[1], 2), 0.1)
    ask = {"init": flat, "max_iter": 3, "tol": 0}
    model = SquaredOrdNMF(2, l2=1e300, **ask).fit(Y)
    assert_array_equal(model.W_, 0.0)
    counts = np.bincount(Y[Y > 0].astype(int))[1:]
    decrements = counts / (counts.sum() + np.cumsum(counts))
    assert_allclose(1 / model.thresholds_, np.cumsum(decrements[::-1])[::-1] / decrements.sum(), rtol=1e-12)


# Presence, and compound counts


def assert_like(model, record):
    assert_allclose(model.W_, record.w.mean, rtol=1e-9)
    assert_allclose(model.H_, record.h.mean, rtol=1e-9)
    assert model.trace_["objective"][-1] == pytest.approx(record.elbo, rel=1e-11)
    assert np.all(np.diff(model.trace_["objective"]) > -1e-9 * abs(model.trace_["objective"][-1]))


@pytest.mark.parametrize("unseen", ["zero", "missing"])
def test_bernoulli_poisson_is_the_oracles(unseen):
    Y = counts() if unseen == "zero" else with_holes(counts())
    W, H = start(*Y.shape)
    model = BernoulliPoisson(4, init=(W, H), accelerate=False, max_iter=50, tol=0, unseen=unseen).fit(Y)
    *_, record = oracle.bepof(Y, W, H, 50, unseen=unseen)
    assert_like(model, record)
    x = model.W_ @ model.H_.T
    assert_allclose(model.predict([0, 1], [2, 3]), 1 - np.exp(-x[[0, 1], [2, 3]]), rtol=1e-12)


@pytest.mark.parametrize("unseen", ["zero", "missing"])
@pytest.mark.parametrize("p", [None, 0.3])
def test_compound_poisson_is_the_oracles(unseen, p):
    Y = counts() if unseen == "zero" else with_holes(counts())
    W, H = start(*Y.shape)
    model = CompoundPoisson(4, p=p, init=(W, H), accelerate=False, max_iter=50, tol=0, unseen=unseen).fit(Y)
    *_, record = oracle.dcpf(Y, W, H, 50, unseen=unseen, p=p)
    assert_like(model, record)
    assert model.p_ == pytest.approx(record.family.p, rel=1e-10)


def test_the_limits_of_p_are_poisson():
    Y = counts()
    W, H = start(*Y.shape)
    ask = {"init": (W, H), "max_iter": 30, "tol": 0}
    raw, binary = (PoissonFactorization(4, **ask).fit(data) for data in (Y, np.minimum(Y, 1)))
    assert_allclose(CompoundPoisson(4, p=1e-10, **ask).fit(Y).W_, raw.W_, rtol=1e-6)
    nearly_one = CompoundPoisson(4, p=1 - 1e-16 * 2, **ask).fit(Y)
    assert (
        np.abs(nearly_one.W_ - binary.W_).max() < np.abs(CompoundPoisson(4, p=0.9, **ask).fit(Y).W_ - binary.W_).max()
    )


def test_compound_poisson_is_negative_binomial():
    Y = counts()
    model = CompoundPoisson(3, random_state=0, max_iter=50, tol=0).fit(Y)
    x = model.W_ @ model.H_.T
    r = x / -np.log1p(-model.p_)
    likelihood = model.likelihood_
    assert_allclose(likelihood.log_prob(Y.astype(float), x), stats.nbinom.logpmf(Y, r, 1 - model.p_), rtol=1e-9)
    assert_allclose(model.predict([0, 3], [1, 2]), stats.nbinom.mean(r, 1 - model.p_)[[0, 3], [1, 2]], rtol=1e-10)
    pull, push = likelihood.pull_push(Y.astype(float), x)
    step = 1e-6 * x
    slope = (likelihood.log_prob(Y * 1.0, x + step) - likelihood.log_prob(Y * 1.0, x - step)) / (2 * step)
    assert_allclose(pull - push, slope, rtol=1e-5, atol=1e-6)


def test_data_without_a_likelihood_are_refused():
    with refused(DataError, found="1.5", where="row 0, column 0", remedy="Round"):
        CompoundPoisson(2).fit([[1.5, 2.0], [0.0, 1.0]])
    for p in (0.0, 1.0, "half"):
        with refused(ParameterError, "p"):
            CompoundPoisson(2, p=p).fit(counts())
