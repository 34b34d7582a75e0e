"""OrdNMF under its three noises: against algorithms written densely and planted truths."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse, stats

import halfseen
from halfseen import Observed, OrdNMF, Status, encoders, observe
from halfseen.errors import DataError, ParameterError
from tests.estimators.models import (
    folding_until,
    levels_matrix,
    movielens,
    needs_movielens,
    refused,
    start,
    with_holes,
)
from tests.ordinal import gig, noises, oracle

EXPONENTIAL = {"noise": "exponential"}
GAMMA = {"noise": "gamma", "noise_shape": 2.5}
THRESHOLDS = np.array([1.0, 2.0, 4.0, 8.0])
both = pytest.mark.parametrize("noise", [EXPONENTIAL, GAMMA], ids=["exponential", "gamma"])


def assert_like(model, record):
    assert_allclose(model.W_, record.w.mean, rtol=1e-9)
    assert_allclose(model.H_, record.h.mean, rtol=1e-9)
    assert_allclose(model.W_shape_, record.w.shape, rtol=1e-9)
    assert_allclose(model.H_rate_, record.h.rate, rtol=1e-9)
    assert_allclose(model.thresholds_, record.family.thresholds, rtol=1e-9)
    assert model.trace_["objective"][-1] == pytest.approx(record.elbo, rel=1e-11)


@pytest.mark.parametrize("kind", ["dense", "sparse", "long"])
def test_fifty_iterations_are_those_of_algorithm_1(kind):
    Y = levels_matrix()
    W, H = start(*Y.shape)
    data = {"dense": Y, "sparse": sparse.csr_array(Y.astype(float)), "long": None}[kind]
    if kind == "long":
        data = Observed.from_cells(*np.nonzero(Y), Y[np.nonzero(Y)].astype(float), Y.shape, unseen="zero")
    model = OrdNMF(4, init=(W, H), accelerate=False, max_iter=50, tol=0).fit(data)
    *_, record = oracle.ordnmf(Y, W, H, 50)
    assert model.n_iter_ == 50
    assert_like(model, record)
    assert np.all(np.diff(model.trace_["objective"]) > -1e-9 * abs(model.trace_["objective"][-1]))


def test_missing_cells_say_nothing_and_the_lowest_level_seen_is_the_lowest():
    Y = with_holes(levels_matrix() + 1.0)  # stars 1..6
    Y[4], Y[:, 7] = 1.0, 1.0
    W, H = start(*Y.shape)
    model = OrdNMF(4, init=(W, H), accelerate=False, max_iter=50, tol=0, unseen="missing").fit(Y)
    *_, record = oracle.ordnmf(Y - 1.0, W, H, 50, unseen="missing")
    assert_like(model, record)
    assert_array_equal(model.levels_, [1, 2, 3, 4, 5, 6])


def test_thresholds_that_are_given_stay():
    Y = levels_matrix(highest=3)
    W, H = start(*Y.shape)
    model = OrdNMF(4, thresholds=[1.0, 2.0, 5.0], init=(W, H), accelerate=False, max_iter=20, tol=0).fit(Y)
    *_, record = oracle.ordnmf(Y, W, H, 20, thresholds=[1.0, 2.0, 5.0])
    assert_like(model, record)
    assert_allclose(model.thresholds_, [1.0, 2.0, 5.0], rtol=1e-15)


@pytest.mark.parametrize("unseen", ["zero", "missing"])
@pytest.mark.parametrize("thresholds", [None, [0.5, 1.0, 2.0, 5.0, 9.0]])
def test_the_approximation_of_section_4_2(unseen, thresholds):
    """q(n) = delta_1 at five levels: the dense algorithm with E[n] = 1, whose bound is below that of Algorithm 1."""
    Y = levels_matrix().astype(float)
    W, H = start(*Y.shape)
    Y = Y if unseen == "zero" else with_holes(Y)
    ask = {"init": (W, H), "accelerate": False, "max_iter": 30, "tol": 0, "unseen": unseen, "thresholds": thresholds}
    model = OrdNMF(4, approximate=True, **ask).fit(Y)
    *_, record = oracle.ordnmf(Y, W, H, 30, unseen=unseen, thresholds=thresholds, kind=oracle.SingleCount)
    assert_like(model, record)
    bound = model.trace_["objective"]
    assert np.all(np.diff(bound) > -1e-9 * abs(bound[-1]))
    assert bound[-1] < OrdNMF(4, **ask).fit(Y).trace_["objective"][-1]
    x = model.W_ @ model.H_.T  # probabilities are the model's, not the approximation's
    up_to = np.exp(-x[3, 5] / np.append(model.thresholds_, np.inf))
    assert_allclose(np.cumsum(model.predict_proba(3, 5)), up_to, rtol=1e-9)


def test_one_level_without_more_counts_is_poisson_factorization():
    """ "PF algorithm applied to binary data is an approximation of BePoF algorithm for q(n) = delta_1"."""
    Y = np.minimum(levels_matrix(), 1)
    W, H = start(*Y.shape)
    ask = {"init": (W, H), "accelerate": False, "max_iter": 25, "tol": 0}
    poisson = halfseen.PoissonFactorization(4, **ask).fit(Y)
    *_, record = oracle.ordnmf(Y, W, H, 25, thresholds=[1.0], kind=oracle.SingleCount)
    for model in (poisson, OrdNMF(4, thresholds=[1.0], approximate=True, **ask).fit(Y)):
        assert_allclose(model.W_, record.w.mean, rtol=1e-10)
        assert_allclose(model.H_shape_, record.h.shape, rtol=1e-10)
        assert model.trace_["objective"][-1] == pytest.approx(record.elbo, rel=1e-11)


def test_expected_counts_tell_how_good_the_approximation_is():
    Y = levels_matrix()
    W, H = start(*Y.shape)
    model = OrdNMF(4, init=(W, H), accelerate=False, max_iter=20, tol=0).fit(Y)
    *_, record = oracle.ordnmf(Y, W, H, 20)
    expected = record.family.counts(Y, record.w.geometric @ record.h.geometric.T)
    assert_allclose(model.expected_counts(Y), expected[Y > 0], rtol=1e-8)
    z = np.array([1e-12, 1.0, 30.0])  # by the definition of the zero-truncated Poisson distribution
    n = np.arange(1, 200)
    p = stats.poisson.pmf(n, z[:, None])
    by_sums = (p * n).sum(axis=1) / p.sum(axis=1)
    ours = halfseen.likelihoods.Ordinal(np.array([0.5, 1.0])).expected_counts(np.array([2.0, 2, 2]), z)
    assert_allclose(ours, by_sums, rtol=1e-9)
    rare = np.where(np.random.default_rng(0).random((60, 50)) < 0.02, Y.max(), 0)  # where x is small, n is mostly 1
    rare[0, :5] = np.arange(1, 6)
    assert OrdNMF(2, random_state=0, max_iter=30, tol=0).fit(rare).expected_counts(rare).mean() < 1.1
    with pytest.raises(ParameterError):
        OrdNMF(2, max_iter=2, tol=0, noise="exponential").fit(Y).expected_counts(Y)


@pytest.mark.parametrize("alpha", [2, 3])
@pytest.mark.parametrize(("unseen", "thresholds"), [("zero", None), ("missing", None), ("zero", [0.3, 0.8, 2.0])])
def test_inverse_gamma_noise_of_other_shapes(alpha, unseen, thresholds):
    """Against points of Poisson processes, summed one by one."""
    Y = levels_matrix(12, 9, highest=3).astype(float)
    W, H = start(*Y.shape)
    Y = Y if unseen == "zero" else with_holes(Y)
    ask = {"init": (W, H), "accelerate": False, "max_iter": 8, "tol": 0, "unseen": unseen, "thresholds": thresholds}
    model = OrdNMF(4, noise_shape=float(alpha), **ask).fit(Y)
    *_, record = oracle.inverse_gamma(Y, W, H, 8, alpha, unseen=unseen, thresholds=thresholds)
    assert_like(model, record)


@pytest.mark.parametrize("alpha", [1.5, 6.0])
def test_inverse_gamma_noise_of_any_shape_from_1_on(alpha):
    Y = levels_matrix()
    model = OrdNMF(3, noise_shape=alpha, random_state=0, max_iter=60, tol=0, accelerate=False).fit(Y)
    bound = model.trace_["objective"]
    assert np.all(np.diff(bound) > -1e-9 * abs(bound[-1]))
    x = model.W_ @ model.H_.T
    expected = stats.invgamma(alpha).cdf(np.append(model.thresholds_, np.inf) / x[4, 6])
    assert_allclose(np.cumsum(model.predict_proba(4, 6)), expected, rtol=1e-9)
    # Shape 1 is the limit: there the two likelihoods are one.
    ask = {"init": start(*Y.shape), "accelerate": False, "max_iter": 5, "tol": 0, "thresholds": np.arange(1.0, 6.0)}
    near = OrdNMF(4, noise_shape=1 + 1e-9, **ask).fit(Y)
    assert_allclose(near.W_, OrdNMF(4, **ask).fit(Y).W_, rtol=1e-6)


def test_levels_may_be_any_numbers_and_are_kept():
    Y = levels_matrix(highest=4)
    stars = np.array([0.0, 0.5, 2.5, 4.0, 5.0])
    W, H = start(*Y.shape)
    plain = OrdNMF(4, init=(W, H), max_iter=10, tol=0).fit(Y)
    half = OrdNMF(4, init=(W, H), max_iter=10, tol=0).fit(stars[Y])
    assert_array_equal(half.W_, plain.W_)
    assert_array_equal(half.levels_, stars)
    rows, columns = np.array([0, 3, 9]), np.array([1, 5, 2])
    probabilities = half.predict_proba(rows, columns)
    assert_allclose(half.predict(rows, columns), probabilities @ stars, rtol=1e-12)
    assert set(half.predict_level(rows, columns)) <= set(stars)
    assert_allclose(half.transform(stars[Y])[:3], plain.transform(Y)[:3], rtol=1e-12)


def test_probabilities_are_those_of_the_model():
    Y = levels_matrix()
    model = OrdNMF(4, random_state=0, max_iter=20, tol=0).fit(Y)
    x = model.W_ @ model.H_.T
    up_to = np.exp(-x[..., None] / np.append(model.thresholds_, np.inf))
    everything = model.predict_proba(*np.indices(Y.shape).reshape(2, -1)).reshape(*Y.shape, 6)
    assert_allclose(everything.cumsum(axis=-1), up_to, rtol=1e-10)
    assert_allclose(everything.sum(axis=-1), 1.0, rtol=1e-12)
    median = np.array([[np.argmax(cell >= 0.5) for cell in row] for row in up_to])
    assert_array_equal(model.predict_level(*np.indices(Y.shape).reshape(2, -1)), median.reshape(-1))
    assert model.predict_proba(0, 1).shape == (6,)
    assert model.predict_proba(Y[:2].astype(float)).shape == (2, 20, 6)


@pytest.mark.parametrize("unseen", ["zero", "missing"])
def test_new_rows_reach_the_fixed_point_of_the_fit_with_h_fixed(unseen):
    """That of the oracle's ascent from the same start, with q(H) and the thresholds of the fit."""
    Y, new = levels_matrix(), levels_matrix(5, 20, seed=9)
    model = OrdNMF(3, random_state=0, max_iter=200, tol=0, unseen=unseen).fit(Y)
    h = oracle.Gamma(model.H_shape_, model.H_rate_)
    family = oracle.Ordinal(-np.diff(1 / model.thresholds_, append=0.0))
    record = oracle.Record(None, h, None, None, family, None)
    average = np.repeat(model.W_.mean(axis=0)[None], 5, axis=0)
    expected = oracle.fold_in(new, record, average, 4000, unseen=unseen)[-1].w.mean
    folded = folding_until(model, max_iter=4000, tol=0).transform(new)
    assert_allclose(folded, expected, rtol=1e-6, atol=1e-9 * expected.max())
    for row, alone in zip(folded, new, strict=True):
        assert_allclose(model.transform(alone[None])[0], row, rtol=1e-9)


def test_data_that_are_not_levels_are_refused():
    for levels, found in (([1, 2], "3"), ([1, 2, 3, 4], "none at level 4")):
        with refused(DataError, "levels", found=found):
            OrdNMF(2, levels=levels).fit(np.array([[1.0, 2.0], [0.0, 3.0]]))
    model = OrdNMF(2, random_state=0, max_iter=5, tol=0).fit(np.array([[1.0, 2.0, 0.0], [0.0, 2.0, 1.0]]))
    with refused(DataError, "levels", found="5", where="row 0, column 1"):
        model.transform(np.array([[1.0, 5.0, 0.0]]))


@pytest.mark.parametrize(
    "ask",
    [
        {"thresholds": [2.0, 1.0]},
        {"thresholds": [0.0, 1.0]},
        {"thresholds": [1.0]},
        {"thresholds": [1.0], "noise": "gamma"},
        {"levels": [1, 1]},
        {"levels": "many"},
        {"noise": "normal"},
        {"noise_shape": 0.0, "noise": "gamma"},
        {"noise_shape": 0.5},
        {"approximate": True, "noise": "exponential"},
        {"approximate": True, "noise_shape": 2.0},
        {"approximate": 1},
        {"noise_shape": 2.0, "noise": "exponential"},
        {"init": (np.zeros((2, 2)), np.ones((3, 2))), "noise": "gamma"},
    ],
    ids=str,
)
def test_invalid_parameters_are_refused(ask):
    with refused(ParameterError, next(iter(ask))):
        OrdNMF(2, **ask).fit(np.array([[1.0, 2.0, 0.0], [0.0, 2.0, 1.0]]))


def test_a_binary_matrix_has_one_threshold():
    Y = levels_matrix(highest=1)
    model = OrdNMF(3, random_state=0, max_iter=300).fit(Y)
    assert model.status_ is Status.CONVERGED
    assert model.thresholds_.shape == (1,)


@pytest.mark.parametrize("seed", range(5))
def test_the_toy_example_gives_its_thresholds_back(seed):
    """Within a tenth; divided by the first, because thresholds and factors share a free scale."""
    truth = np.array([1.0, 5.0, 10.0, 20.0, 50.0])
    Y, *_ = noises.simulate(100, 200, 3, truth, seed)
    model = OrdNMF(3, random_state=seed).fit(Y)
    assert model.status_ is Status.CONVERGED
    assert_allclose(model.thresholds_ / model.thresholds_[0], truth, rtol=0.1)


@needs_movielens
def test_movielens_100k_comes_out_as_in_an_independent_run():
    """204 iterations, an evidence bound of -333,716, and NDCG@100 .5355 / .5271 / .4922 / .4135."""
    train, test = movielens()
    random = np.random.RandomState(0)
    start = random.gamma(1.0, 1.0, (943, 50)), random.gamma(1.0, 1.0, (1682, 50))
    model = OrdNMF(50, init=start, accelerate=False).fit(train)
    assert model.n_iter_ == 204
    assert model.trace_["objective"][-1] == pytest.approx(-333715.94, abs=0.01)
    found = halfseen.metrics.ndcg_at_k(model, train, test, k=100, relevant=[1, 3, 4, 5])
    assert_allclose(found, [0.5355, 0.5271, 0.4922, 0.4135], atol=6e-5)
    assert observe(train, unseen=None) is train


# Exponential and gamma noise


def shape_of(noise):
    return noise.get("noise_shape", 1.0)


def planted(noise, n=40, m=30, seed=0):
    """(levels 0..4, x), thresholds as far out as the noise."""
    Y, W, H = noises.simulate(n, m, 3, shape_of(noise) * THRESHOLDS, seed, "gamma", shape_of(noise))
    return Y, W @ H.T


def held_out(Y, share=0.2, seed=9):
    out = np.random.default_rng(seed).random(Y.shape) < share
    return np.where(out, np.nan, Y), np.where(out, Y, np.nan)


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
    W, H = start(*Y.shape, 3)
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
def test_probabilities_under_other_noises(noise):
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


@pytest.mark.parametrize(("noise", "unseen"), [(GAMMA, "missing"), (EXPONENTIAL, "zero")], ids=["gamma", "exponential"])
def test_new_rows_reach_the_fixed_point_of_a_full_fit_with_h_fixed(noise, unseen):
    """The oracle's half-steps, taken often, from elsewhere."""
    Y, _ = planted(noise)
    train = Y.astype(float) if unseen == "zero" else held_out(Y)[0]
    model = fitted(train, noise, unseen=unseen, max_iter=200)
    new, _ = planted(noise, 5, 30, seed=7)
    seen = np.random.default_rng(3).random(new.shape) < 0.8
    X = np.where(seen, new, 0.0 if unseen == "zero" else np.nan)
    folded = folding_until(model, max_iter=5000, tol=1e-12).transform(X)
    levels, C = (X.astype(int), np.ones(X.shape)) if unseen == "zero" else (new, seen.astype(float))
    far = gig.Posterior(1.0, model.H_rate_, model.H_inverse_rate_)
    near = gig.Point(np.repeat(model.W_.mean(axis=0)[None], 5, axis=0) * 1.02)
    for _ in range(400):
        near, _ = gig.moved(levels, C, near, far, model.thresholds_, shape_of(noise), 1.0, None)
    assert_allclose(folded @ model.H_.T, near.mean @ model.H_.T, rtol=1e-5)
    assert_allclose(model.transform(X[[3]])[0], folded[3], rtol=1e-9)


@both
def test_a_weight_of_two_is_a_cell_seen_twice_under_other_noises(noise):
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
    W, H = start(*Y.shape, 3)
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


def test_a_grid_too_large_to_be_filled_is_refused(monkeypatch):
    monkeypatch.setattr(encoders, "MAX_FILLED_CELLS", 100)
    X = sparse.csr_array(np.random.default_rng(0).integers(0, 4, (30, 20)).astype(float))
    with refused(DataError, "noise", found="30 x 20", remedy="inverse-gamma"):
        OrdNMF(2, noise="gamma").fit(X)
    model = fitted(X[:5], EXPONENTIAL, unseen="zero")
    with refused(DataError, "noise", remedy="fewer rows at a time"):
        model.transform(X)
    fitted(X, EXPONENTIAL, unseen="missing", max_iter=2)


@both
def test_given_thresholds_of_other_noises_stay(noise):
    Y, _ = planted(noise)
    model = fitted(held_out(Y)[0], noise, thresholds=[1.0, 2.0, 5.0, 9.0])
    assert_array_equal(model.thresholds_, [1.0, 2.0, 5.0, 9.0])


@both
def test_single_precision_converges(noise):
    settled = fitted(held_out(planted(noise)[0])[0].astype(np.float32), noise, max_iter=1000, tol=1e-4)
    assert settled.status_ is Status.CONVERGED


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


@both
def test_levels_may_be_texts(noise):
    frame = pd.DataFrame({"user": list("aabbccd"), "item": list("xyxzyzx"), "rating": ["low", "high"] * 3 + ["mid"]})
    model = fitted(frame, noise, k=1, levels=["low", "mid", "high"])
    assert set(model.predict_level(["a", "b"], "x")) <= {"low", "mid", "high"}
    assert model.predict_proba("a", "z").shape == (3,)
