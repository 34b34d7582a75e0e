"""OrdNMF under exponential and gamma noise: what a user does with it, against the dense oracle and planted truths."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse, stats
from sklearn.base import clone

import halfseen
from halfseen import Observed, OrdNMF, Status, encoders, observe
from halfseen.errors import DataError, ParameterError
from tests.ordinal import gig, noises

EXPONENTIAL = {"noise": "exponential"}
GAMMA = {"noise": "gamma", "noise_shape": 2.5}
THRESHOLDS = np.array([1.0, 2.0, 4.0, 8.0])
both = pytest.mark.parametrize("noise", [EXPONENTIAL, GAMMA], ids=["exponential", "gamma"])


def shape_of(noise):
    return noise.get("noise_shape", 1.0)


def planted(noise, n=40, m=30, seed=0):
    """(levels 0..4, x), thresholds as far out as the noise."""
    Y, W, H = noises.simulate(n, m, 3, shape_of(noise) * THRESHOLDS, seed, "gamma", shape_of(noise))
    return Y, W @ H.T


def held_out(Y, share=0.2, seed=9):
    out = np.random.default_rng(seed).random(Y.shape) < share
    return np.where(out, np.nan, Y), np.where(out, Y, np.nan)


def start(n, m, k=3, seed=1):
    rng = np.random.default_rng(seed)
    return rng.gamma(1.0, 1.0, (n, k)), rng.gamma(1.0, 1.0, (m, k))


def fitted(X, noise, k=3, **ask):
    return OrdNMF(k, **{"max_iter": 30, "tol": 0, "random_state": 0, "unseen": "missing"} | noise | ask).fit(X)


@both
@pytest.mark.parametrize("unseen", ["missing", "zero"])
def test_thirty_iterations_are_the_oracles(noise, unseen):
    """With unseen="zero" the oracle sees the whole grid."""
    Y, _ = planted(noise, 12, 9)
    seen = np.random.default_rng(2).random(Y.shape) < 0.7
    if unseen == "zero":
        X, truth, C = sparse.csr_array(np.where(seen, Y, 0.0)), np.where(seen, Y, 0), np.ones(Y.shape)
    else:
        X, truth, C = np.where(seen, Y, np.nan), Y, seen.astype(float)
    W, H = start(*Y.shape)
    model = fitted(X, noise, init=(W, H), unseen=unseen, accelerate=False)
    counts = np.bincount(truth[C > 0])
    shares = (np.cumsum(counts)[:-1] + 0.5) / (counts.sum() + 1)
    first = 3 * stats.gamma.ppf(shares, shape_of(noise))
    *_, record = gig.ordnmf(truth, C, W, H, first, 30, shape_of(noise), shape=1.0)
    assert_allclose(model.W_, record.w.mean, rtol=1e-9)
    assert_allclose(model.H_, record.h.mean, rtol=1e-9)
    assert_allclose(model.W_rate_, record.w.rate, rtol=1e-9)
    assert_allclose(model.H_inverse_rate_, record.h.inverse_rate, rtol=1e-8, atol=1e-12)
    assert_array_equal(model.W_shape_, 1.0)
    assert_allclose(model.thresholds_, record.thresholds, rtol=1e-9)
    assert model.trace_["objective"][-1] == pytest.approx(record.elbo, rel=1e-10)


@both
@pytest.mark.parametrize("accelerate", [False, True])
def test_the_bound_never_falls_and_the_fit_settles(noise, accelerate):
    Y, _ = planted(noise)
    model = fitted(held_out(Y)[0], noise, max_iter=2000, tol=1e-5, accelerate=accelerate)
    assert model.status_ is Status.CONVERGED
    bounds = model.trace_["objective"]
    assert np.diff(bounds).min() > -1e-10 * abs(bounds[-1])
    assert bounds[-1] - bounds[0] > 0.01 * abs(bounds[0])


@both
@pytest.mark.parametrize("seed", [0, 1])
def test_planted_thresholds_are_found(noise, seed):
    """Up to the scale that they share with x."""
    Y, _ = planted(noise, 150, 120, seed)
    model = fitted(Y.astype(float), noise, max_iter=300, tol=1e-5, random_state=seed)
    assert_allclose(model.thresholds_ / model.thresholds_[0], THRESHOLDS / THRESHOLDS[0], rtol=0.12)


@both
def test_on_data_of_its_own_noise_it_is_ahead_of_inverse_gamma_noise(noise):
    for seed in (0, 1):
        Y, _ = planted(noise, 100, 80, seed)
        train, test = held_out(Y)
        ask = {"max_iter": 300, "tol": 1e-5, "random_state": seed}
        own, other = fitted(train, noise, **ask), fitted(train, {}, **ask)
        assert own.log_likelihood(test) > other.log_likelihood(test) + 0.02 * np.count_nonzero(~np.isnan(test))


def test_on_data_of_inverse_gamma_noise_it_is_behind():
    Y, *_ = noises.simulate(100, 80, 3, THRESHOLDS, 0)
    train, test = held_out(Y)
    ask = {"max_iter": 300, "tol": 1e-5}
    assert fitted(train, {}, **ask).log_likelihood(test) > fitted(train, EXPONENTIAL, **ask).log_likelihood(test)


@both
def test_probabilities_are_those_of_the_model(noise):
    Y, _ = planted(noise)
    model = fitted(held_out(Y)[0], noise)
    cells = np.indices(Y.shape).reshape(2, -1)
    truth = np.exp(noises.log_probabilities(model.W_ @ model.H_.T, model.thresholds_, "gamma", shape_of(noise)))
    assert_allclose(model.predict_proba(*cells).reshape(truth.shape), truth, rtol=1e-8, atol=1e-13)
    assert_allclose(model.predict(*cells), truth.reshape(-1, 5) @ np.arange(5.0), rtol=1e-9)
    median = (np.cumsum(truth, axis=-1) < 0.5).sum(axis=-1)
    assert_array_equal(model.predict_level(*cells), median.reshape(-1))
    logs = np.log(np.take_along_axis(truth, Y[..., None], -1)[..., 0])
    assert model.log_likelihood(Y.astype(float)) == pytest.approx(logs.sum(), rel=1e-9)


@both
def test_score_is_the_mean_log_likelihood_after_folding_in(noise):
    Y, _ = planted(noise)
    train, test = held_out(Y)
    model = fitted(train, noise)
    x = model.transform(test) @ model.H_.T
    logs = noises.log_probabilities(x, model.thresholds_, "gamma", shape_of(noise))
    seen = ~np.isnan(test)
    assert model.score(test) == pytest.approx(np.take_along_axis(logs, Y[..., None], -1)[..., 0][seen].mean(), rel=1e-8)


@both
@pytest.mark.parametrize("unseen", ["missing", "zero"])
def test_new_rows_reach_the_fixed_point_of_a_full_fit_with_h_fixed(noise, unseen):
    """The oracle's half-steps, taken often, from elsewhere."""
    Y, _ = planted(noise)
    train = Y.astype(float) if unseen == "zero" else held_out(Y)[0]
    model = fitted(train, noise, unseen=unseen, max_iter=200)
    new, _ = planted(noise, 5, 30, seed=7)
    seen = np.random.default_rng(3).random(new.shape) < 0.8
    X = np.where(seen, new, 0.0 if unseen == "zero" else np.nan)
    folded = model.set_params(max_iter=5000, tol=1e-12).transform(X)
    levels, C = (X.astype(int), np.ones(X.shape)) if unseen == "zero" else (new, seen.astype(float))
    far = gig.Posterior(1.0, model.H_rate_, model.H_inverse_rate_)
    near = gig.Point(np.repeat(model.W_.mean(axis=0)[None], 5, axis=0) * 1.02)
    for _ in range(400):
        near, _ = gig.moved(levels, C, near, far, model.thresholds_, shape_of(noise), 1.0, None)
    assert_allclose(folded @ model.H_.T, near.mean @ model.H_.T, rtol=1e-5)
    assert_allclose(model.transform(X[[3]])[0], folded[3], rtol=1e-9)


@both
def test_training_rows_folded_in_get_the_factors_of_the_fit(noise):
    Y, _ = planted(noise, 20, 15)
    X = held_out(Y)[0]
    model = fitted(X, noise, k=2, max_iter=4000, tol=1e-13).set_params(tol=1e-10)
    assert_allclose(model.transform(X) @ model.H_.T, model.W_ @ model.H_.T, rtol=2e-3)


@both
def test_a_saved_model_says_the_same(noise, tmp_path):
    frame = pd.DataFrame({"user": list("aabbccd"), "item": list("xyxzyzx"), "rating": [1.0, 5, 3, 5, 1, 3, 5]})
    for unseen in ("zero", "missing"):
        model = fitted(frame, noise, k=2, unseen=unseen)
        model.save(tmp_path / "model.hs")
        again = halfseen.load(tmp_path / "model.hs")
        assert again.get_params() == model.get_params()
        assert type(again.model_.rows) is type(model.model_.rows)
        assert_array_equal(again.predict_proba(["a", "b"], "z"), model.predict_proba(["a", "b"], "z"))
        assert_array_equal(again.thresholds_, model.thresholds_)
        assert_array_equal(again.transform(frame), model.transform(frame))
        assert_array_equal(again.H_inverse_rate_, model.H_inverse_rate_)
        assert again.score(frame) == model.score(frame)
        assert_array_equal(again.recommend(["a", "d"], n=2).ids, model.recommend(["a", "d"], n=2).ids)


@both
def test_a_weight_of_two_is_a_cell_seen_twice(noise):
    Y, _ = planted(noise, 12, 10)
    weight = np.random.default_rng(0).integers(1, 3, Y.shape)
    rows, columns = (np.repeat(places, weight.ravel()) for places in np.indices(Y.shape).reshape(2, -1))
    for unseen in ("missing", "zero"):
        twice = Observed.from_cells(
            rows, columns, Y[rows, columns].astype(float), Y.shape, duplicates="keep", unseen=unseen
        )
        once = observe(Y.astype(float), cell_weight=weight.astype(float), unseen=unseen)
        one, other = (fitted(X, noise, unseen=unseen) for X in (once, twice))
        assert_allclose(one.W_, other.W_, rtol=1e-9)
        assert_allclose(one.thresholds_, other.thresholds_, rtol=1e-9)
        assert one.trace_["objective"][-1] == pytest.approx(other.trace_["objective"][-1], rel=1e-11)


@both
def test_zeros_that_are_unseen_stored_or_dense_are_the_same(noise):
    Y, _ = planted(noise, 15, 12)
    W, H = start(*Y.shape)
    dense = fitted(Y.astype(float), noise, init=(W, H), unseen="zero")
    seen = fitted(Y.astype(float), noise, init=(W, H), unseen="missing")
    stored = fitted(sparse.csr_array(Y.astype(float)), noise, init=(W, H), unseen="zero")
    for other in (seen, stored):
        assert_allclose(other.W_, dense.W_, rtol=1e-10)
        assert_allclose(other.thresholds_, dense.thresholds_, rtol=1e-10)
    hidden = np.random.default_rng(5).random(Y.shape) < 0.2
    masked = observe(Y.astype(float), unseen="zero", cell_weight=np.where(hidden, 0.0, 1.0))
    one = fitted(masked, noise, init=(W, H), unseen="zero")
    other = fitted(np.where(hidden, np.nan, Y), noise, init=(W, H), unseen="missing")
    assert_allclose(one.H_, other.H_, rtol=1e-10)


@both
def test_small_prior_shapes_let_entries_die_out_and_larger_ones_do_not(noise):
    """Next to 0 a harmonic mean goes to its power 2 (1 - a): ever faster to 0 for a < 1/2, and back up for a > 1/2."""
    Y, _ = planted(noise)
    X = held_out(Y)[0]
    dead = [np.mean(fitted(X, noise, prior_shape=a, max_iter=200).model_.rows.harmonic == 0) for a in (0.3, 0.7)]
    assert dead[0] > 0.05
    assert dead[1] == 0


@both
def test_a_row_of_nothing_but_unseen_zeros_is_low(noise):
    Y, _ = planted(noise)
    Y[3] = 0
    model = fitted(Y, noise, unseen="zero", max_iter=100)
    x = model.W_ @ model.H_.T
    assert x[3].mean() < 0.3 * x.mean()


def test_a_grid_too_large_to_be_spelled_out_is_refused(monkeypatch):
    monkeypatch.setattr(encoders, "MAX_FILLED_CELLS", 100)
    X = sparse.csr_array(np.random.default_rng(0).integers(0, 4, (30, 20)).astype(float))
    sentence = r'noise="gamma"\) counts every unseen zero .* at most 100. Found 30 x 20. Use noise="inverse-gamma"'
    with pytest.raises(DataError, match=sentence):
        OrdNMF(2, noise="gamma").fit(X)
    model = fitted(X[:5], EXPONENTIAL, unseen="zero")
    with pytest.raises(DataError, match="pass fewer rows at a time"):
        model.transform(X)
    fitted(X, EXPONENTIAL, unseen="missing", max_iter=2)


@pytest.mark.parametrize(
    ("ask", "sentence"),
    [
        ({"noise": "normal"}, "noise must be one of 'inverse-gamma', 'exponential', 'gamma'. Found 'normal'"),
        ({"noise": "gamma", "noise_shape": 0.0}, "noise_shape must be a finite number of at least 0.1. Found 0.0"),
        ({"noise_shape": 2.0}, "noise_shape must be 1 with inverse-gamma noise, which is not linear .* Found 2.0"),
        ({"noise": "exponential", "noise_shape": 2.0}, 'noise_shape must be 1 with exponential .*Use noise="gamma"'),
        ({"noise": "gamma", "thresholds": [1.0]}, "thresholds must stand between the 3 levels: 2 of them. Found 1."),
        ({"noise": "gamma", "init": (np.zeros((2, 2)), np.ones((3, 2)))}, "W0 of init must hold finite numbers"),
    ],
)
def test_parameters_that_can_not_be(ask, sentence):
    with pytest.raises(ParameterError, match=sentence):
        OrdNMF(2, **ask).fit(np.array([[1.0, 2.0, 0.0], [0.0, 2.0, 1.0]]))


@both
def test_thresholds_that_are_given_stay(noise):
    Y, _ = planted(noise)
    model = fitted(held_out(Y)[0], noise, thresholds=[1.0, 2.0, 5.0, 9.0])
    assert_array_equal(model.thresholds_, [1.0, 2.0, 5.0, 9.0])


@both
def test_single_precision_follows_double(noise):
    Y, _ = planted(noise)
    X = held_out(Y)[0]
    single, double = (fitted(X.astype(dtype), noise, max_iter=10) for dtype in (np.float32, np.float64))
    assert {array.dtype for factor in (single.model_.rows, single.model_.columns) for array in factor} == {
        np.dtype(np.float32)
    }
    assert_allclose(single.inverse_transform(single.W_), double.inverse_transform(double.W_), rtol=1e-2, atol=1e-2)
    settled = fitted(X.astype(np.float32), noise, max_iter=1000, tol=1e-4)
    assert settled.status_ is Status.CONVERGED


@both
def test_threads_change_nothing(noise):
    Y, _ = planted(noise, 300, 250)
    one, three = (fitted(Y.astype(float), noise, n_jobs=n_jobs, max_iter=3) for n_jobs in (1, 3))
    assert_array_equal(one.W_, three.W_)
    assert_array_equal(one.thresholds_, three.thresholds_)


@both
def test_draws_and_intervals(noise):
    """A posterior interval holds the mean of its draws; data drawn from the model have its histogram of levels."""
    Y, _ = planted(noise)
    model = fitted(held_out(Y)[0], noise, max_iter=100)
    draws = np.array([W for W, _ in model.sample_factors(2000, random_state=0)])
    assert_allclose(draws.mean(axis=0), model.W_, atol=6 * draws.std(axis=0).max() / np.sqrt(2000))
    (low, high), _ = model.factor_intervals(0.8)
    inside = np.mean((draws > low) & (draws < high), axis=0)
    assert np.all(np.abs(inside - 0.8) < 5 * np.sqrt(0.16 / 2000))
    drawn = np.mean([np.bincount(data.data.astype(int), minlength=5) for data in model.sample(20, 0)], axis=0)
    assert_allclose(drawn, np.bincount(Y.ravel()) * 0.8, rtol=0.25, atol=20)


def test_clones_keep_the_noise():
    model = OrdNMF(4, noise="gamma", noise_shape=3.0)
    assert clone(model).get_params() == model.get_params()
    assert "noise_shape=3.0" in repr(model)


@both
def test_levels_may_be_texts(noise):
    frame = pd.DataFrame({"user": list("aabbccd"), "item": list("xyxzyzx"), "rating": ["low", "high"] * 3 + ["mid"]})
    model = fitted(frame, noise, k=1, levels=["low", "mid", "high"])
    assert set(model.predict_level(["a", "b"], "x")) <= {"low", "mid", "high"}
    assert model.predict_proba("a", "z").shape == (3,)
