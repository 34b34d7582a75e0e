"""Likelihood of held-out cells, data drawn, and intervals, against oracles, brute force and simulated truth."""

import math
from copy import copy
from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse, stats

from halfseen import (
    BernoulliPoisson,
    CompoundPoisson,
    Observed,
    OrdNMF,
    PoissonFactorization,
    SquaredOrdNMF,
    SquaredPoisson,
    WeightedNMF,
)
from halfseen import model as records
from halfseen.errors import DataError, DataWarning, ParameterError
from halfseen.likelihoods import CompoundPoisson as CompoundCounts
from halfseen.likelihoods import GammaNoise
from tests.estimators.models import counts, levels_matrix, refused, with_factors
from tests.ordinal import noises

BAYESIAN = (OrdNMF, BernoulliPoisson, PoissonFactorization, CompoundPoisson)
ORDINAL = (OrdNMF, SquaredOrdNMF)
KINDS = (*ORDINAL, PoissonFactorization, CompoundPoisson, SquaredPoisson)
SIZE = 15, 10
SOME = settings(deadline=None, max_examples=5)
every_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
both_meanings = pytest.mark.parametrize("unseen", ["zero", "missing"])

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def data_for(kind, n=30, m=20):
    return levels_matrix(n, m) if kind in (OrdNMF, SquaredOrdNMF) else counts(n, m)


def fitted(kind, Y=None, **ask):
    ask = {
        "random_state": 0,
        "max_iter": 30,
        "tol": 0,
        **({"l2": 1.0} if kind in (SquaredOrdNMF, SquaredPoisson) else {}),
        **ask,
    }
    return kind(3, **ask).fit(data_for(kind) if Y is None else Y)


def rates(model):
    x = model.W_ @ model.H_.T
    return x**2 if isinstance(model, SquaredOrdNMF | SquaredPoisson) else x


@cache
def small(kind, unseen="zero"):
    Y = levels_matrix(*SIZE, highest=4) if kind in ORDINAL else np.minimum(counts(*SIZE), 12)
    Y[4, ::2], Y[::3, 7] = 1, 2  # no row and no column without anything
    model = kind(3, random_state=0, max_iter=20, tol=0, unseen=unseen)
    return model.set_params(**{"l2": 0.5} if "Squared" in kind.__name__ else {}).fit(Y.astype(float))


def log_law(model, x, highest=13):
    """log p(y | x) for y = 0..highest along a last axis, by the definitions, from thresholds and scipy."""
    x = np.asarray(x)[..., None] ** (2 if "Squared" in type(model).__name__ else 1)
    if isinstance(model, ORDINAL):
        theta = np.append(1 / model.thresholds_, 0.0)
        return np.concatenate([-theta[0] * x, np.log(-np.expm1(np.diff(theta) * x)) - theta[1:] * x], axis=-1)
    if isinstance(model, CompoundPoisson):
        return stats.nbinom.logpmf(np.arange(highest), x / -np.log1p(-model.p_), 1 - model.p_)
    return stats.poisson.logpmf(np.arange(highest), x)


# How likely held-out cells are.


@pytest.mark.parametrize("kind", [OrdNMF, SquaredOrdNMF])
def test_levels_above_zero_as_in_equation_39(kind):
    model, Y = fitted(kind), levels_matrix(seed=5)
    seen = Y > 0
    truth = noises.log_likelihood_of_seen(Y[seen], rates(model)[seen], model.thresholds_)
    assert model.log_likelihood(Y) == pytest.approx(truth, rel=1e-12)
    each = model.log_likelihood(Y, each=True)
    assert each.shape == (seen.sum(),)
    assert each.sum() == pytest.approx(truth, rel=1e-12)
    first = noises.log_likelihood_of_seen(Y[seen][:1], rates(model)[seen][:1], model.thresholds_)
    assert each[0] == pytest.approx(first, rel=1e-12)


@pytest.mark.parametrize(("noise", "shape"), [("exponential", 1.0), ("gamma", 2.5)])
def test_levels_under_other_noises(noise, shape):
    model, Y = fitted(OrdNMF, noise=noise, noise_shape=shape), levels_matrix(seed=5)
    seen = Y > 0
    truth = noises.log_likelihood_of_seen(Y[seen], rates(model)[seen], model.thresholds_, noise, shape)
    assert model.log_likelihood(Y) == pytest.approx(truth, rel=1e-10)
    x = float(np.median(rates(model)))
    drawn = model.likelihood_.sample(np.full(50_000, x), np.random.default_rng(1)).astype(int)
    law = np.exp(noises.log_probabilities(x, model.thresholds_, noise, shape))
    assert chi_square(np.bincount(drawn, minlength=law.size), law * drawn.size) > 1e-3
    low, high = model.predict_interval(0, np.arange(20), 0.8, of="x")
    assert np.all((low < rates(model)[0]) & (rates(model)[0] < high))
    assert abs(np.median([one.nnz for one in model.sample(20, 0)]) - np.count_nonzero(levels_matrix())) < 60


@pytest.mark.parametrize("x", [0.0, 1e-300, 1e-160, 1e-40, 1e-12, 1e-3, 1.0, 300.0, 5000.0])
@pytest.mark.parametrize("kind", [OrdNMF, SquaredOrdNMF])
def test_no_digit_is_lost_where_a_cell_is_hardly_ever_seen_or_nearly_always(kind, x):
    model = with_factors(fitted(kind), np.full((30, 1), x), np.ones((20, 1)))
    Y = np.zeros((30, 20))
    Y[0, :5] = [1, 2, 3, 4, 5]
    with localcontext(prec=800, Emin=-(10**9)):
        decrements = [Decimal(float(one)) for one in getattr(model.likelihood_, "inner", model.likelihood_).decrements]
        rate = Decimal(max(x, 1e-300)) ** (2 if kind is SquaredOrdNMF else 1)
        up_to = [(-rate * sum(decrements[v:])).exp() for v in range(6)]
        truth = [float(((up_to[v] - up_to[v - 1]) / (1 - up_to[0])).ln()) for v in range(1, 6)]
    assert_allclose(model.log_likelihood(Y, each=True), truth, rtol=1e-11)


@pytest.mark.filterwarnings("ignore::halfseen.errors.DataWarning")
def test_presence_where_unseen_cells_are_missing():
    Y = np.where(counts() > 0, counts(), np.nan)
    Y[4], Y[:, 7] = 0.0, 0.0
    model = fitted(BernoulliPoisson, Y, unseen="missing")
    p = -np.expm1(-rates(model))
    expected = np.log(np.where(Y > 0, p, 1 - p))[~np.isnan(Y)].sum()
    assert model.log_likelihood(Y) == pytest.approx(expected, rel=1e-11)


def test_with_one_level_there_is_nothing_left_to_guess():
    assert fitted(BernoulliPoisson).log_likelihood(counts()) == 0.0
    assert fitted(OrdNMF, np.minimum(counts(), 1)).log_likelihood(np.minimum(counts(), 1)) == 0.0


@every_kind
@both_meanings
@SOME
@given(st.integers(0, 10_000), st.booleans(), st.booleans())
def test_log_likelihoods_of_weighted_and_repeated_cells(kind, unseen, seed, weighted, repeated):
    model, rng = small(kind, unseen), np.random.default_rng(seed)
    u, i = np.nonzero(rng.random(SIZE) < 0.3)
    if repeated:
        u, i = np.append(u, u[::2]), np.append(i, i[::2])
    order = np.lexsort((i, u))
    u, i = u[order], i[order]
    y = rng.integers(0, 5, u.size)
    y[0] = 1  # something is above 0
    weights = rng.choice([0.2, 1.0, 3.0], u.size) if weighted else None
    cells = Observed.from_cells(u, i, y * 1.0, SIZE, unseen=unseen, weights=weights, duplicates="keep")
    law = log_law(model, np.sum(model.W_[u] * model.H_[i], axis=1))
    logs, keep = law[np.arange(u.size), y], np.ones(u.size, bool)
    if unseen == "zero":
        logs, keep = logs - np.log(-np.expm1(law[:, 0])), y > 0
    assert_allclose(model.log_likelihood(cells, each=True), logs[keep], rtol=1e-8, atol=1e-8)
    total = np.sum((logs if weights is None else logs * weights)[keep])
    assert model.log_likelihood(cells) == pytest.approx(total, rel=1e-8)


@pytest.mark.parametrize("kind", [OrdNMF, PoissonFactorization, CompoundPoisson])
@both_meanings
@settings(deadline=None, max_examples=5)
@given(st.integers(0, 10_000), st.booleans(), st.booleans())
def test_the_score_is_the_mean_over_all_cells_as_often_as_they_count(kind, unseen, seed, weighted, repeated):
    model, rng = small(kind, unseen), np.random.default_rng(seed)
    u, i = np.nonzero(rng.random(SIZE) < 0.5)
    if repeated:
        u, i = np.append(u, u[::2]), np.append(i, i[::2])
    y, c = rng.integers(0, 5, u.size), rng.choice([0.2, 1.0, 3.0], u.size) if weighted else np.ones(u.size)
    y[0] = 1
    ask = {"unseen": unseen, "weights": c if weighted else None, "duplicates": "keep"}
    cells = Observed.from_cells(u, i, y * 1.0, SIZE, **ask)
    if unseen == "zero":
        empty = np.ones(SIZE, bool)
        empty[u, i] = False
        more = np.nonzero(empty)
        u, i, y, c = (np.append(a, b) for a, b in zip((u, i, y, c), (*more, 0 * more[0], 1 + 0 * more[0]), strict=True))
    x = np.sum(model.transform(cells)[u] * model.H_[i], axis=1)
    logs = log_law(model, x)[np.arange(u.size), y]
    assert model.score(cells) == pytest.approx(np.average(logs, weights=c), rel=1e-9)


def test_a_cell_above_zero_where_the_model_expects_none():
    """As x goes to 0, p(y | y > 0) goes to [y = 1] for counts, to p^y / (y s) for compound ones, to D_y / theta_0."""
    for kind in KINDS:
        model = copy(small(kind))
        with_factors(model, np.zeros_like(model.W_), model.H_)
        y = np.ones(SIZE) if kind in (PoissonFactorization, SquaredPoisson) else np.indices(SIZE)[0] % 4 + 1.0
        if kind in ORDINAL:
            theta = np.append(1 / model.thresholds_, 0.0)
            limit = np.log(-np.diff(theta) / theta[0])
        elif kind is CompoundPoisson:
            limit = stats.logser.logpmf(np.arange(1, 5), model.p_)
        else:
            limit = np.zeros(1)
        assert_allclose(model.log_likelihood(y, each=True), limit[y.reshape(-1).astype(int) - 1], atol=1e-9)


@pytest.mark.parametrize("r", [0.3, 99.0, 100.5, 130.0, 1e3, 1e7])
def test_compound_counts_to_the_last_digits(r):
    """Rises of log-gamma and digamma as the sums that they are; from r = 100 on the likelihood takes a series."""
    likelihood, y = CompoundCounts(0.25), np.array([1.0, 2.0, 7.0, 60.0])
    x = np.full(4, 0.25 * r)
    pulls = [math.fsum(1 / (r + j) for j in range(int(count))) / 0.25 for count in y]
    logs = [math.fsum(math.log(likelihood.p * (r + j) / (j + 1)) for j in range(int(n))) - 0.25 * r for n in y]
    assert_allclose(likelihood.pull_push(y, x)[0], pulls, rtol=2e-13)
    assert_allclose(likelihood.log_prob(y, x), logs, rtol=2e-13, atol=2e-12)


@pytest.mark.parametrize("shape", [0.4, 2.5])
@pytest.mark.parametrize("width", [1e-9, 1e-5])
def test_a_level_between_thresholds_that_are_next_to_each_other(shape, width):
    """Its probability is the density times the width, of which a difference of two probabilities would keep little."""
    thresholds = np.array([0.7, 0.7 + width])
    likelihood, one = GammaNoise(thresholds, shape), np.ones(1)
    wanted = stats.gamma.logpdf(thresholds.mean(), shape) + np.log(np.diff(thresholds))
    assert_allclose(likelihood.log_prob(one, one), wanted, rtol=0, atol=1e-10)
    assert_allclose(likelihood.pull_push(one, one)[0], thresholds.mean(), rtol=1e-9)


@pytest.mark.parametrize("width", [1e-3, 0.1, 0.199, 0.201, 1.0])
def test_the_pull_of_exponential_noise_below_a_threshold(width):
    """E[g | g < b] = 1 - b / (e^b - 1), as the series of its exact coefficients adds it up."""
    b = Fraction(width)
    terms = [b**j / math.factorial(j) for j in range(1, 40)]  # e^b - 1
    wanted = float(1 - b / sum(terms))
    assert_allclose(GammaNoise(np.array([width])).pull_push(np.zeros(1), np.ones(1))[0], wanted, rtol=1e-13)


def long(Y):
    rows, columns = np.nonzero(Y)
    return pd.DataFrame({"user": rows, "item": [f"i{j}" for j in columns], "rating": Y[rows, columns]})


def test_cells_are_found_by_their_labels():
    frame = long(levels_matrix())
    model = fitted(OrdNMF, frame)
    shuffled = frame.sample(frac=1.0, random_state=0)
    assert model.log_likelihood(shuffled) == pytest.approx(model.log_likelihood(frame), rel=1e-12)
    known = model.log_likelihood(frame.iloc[:7])
    new = pd.DataFrame({"user": [0, 2**62], "item": ["nothing", "i1"], "rating": [1, 2]})
    with pytest.warns(DataWarning, match=r"2 of 9 .*row 0, column 'nothing'"):
        assert model.log_likelihood(pd.concat([frame.iloc[:7], new])) == pytest.approx(known, rel=1e-12)
    with pytest.warns(DataWarning, match="2 of 2"), refused(DataError, "X"):
        model.log_likelihood(new)


def test_a_level_that_training_did_not_have_is_named_where_it_stands():
    frame = long(levels_matrix(highest=3))
    model = fitted(OrdNMF, frame)
    where = f"row {frame.user[0]}, column '{frame.item[0]}' (1 such cell)"
    with refused(DataError, "levels", found="4", where=where):
        model.log_likelihood(frame.assign(rating=[4, *frame.rating[1:]]))


# Data drawn.


def chi_square(found, expected):
    """The probability of cells that differ from the expected numbers as much as those found, or more."""
    keep = expected > 5
    found, expected = np.append(found[keep], found[~keep].sum()), np.append(expected[keep], expected[~keep].sum())
    if expected[-1] == 0:
        found, expected = found[:-1], expected[:-1]
    return stats.chisquare(found, expected * found.sum() / expected.sum()).pvalue


@pytest.mark.parametrize("kind", BAYESIAN)
def test_factors_are_drawn_from_their_posteriors(kind):
    model = fitted(kind)
    draws = model.sample_factors(400, random_state=0)
    for side, (shape, rate) in enumerate(((model.W_shape_, model.W_rate_), (model.H_shape_, model.H_rate_))):
        drawn = np.stack([draw[side] for draw in draws])
        uniform = stats.gamma.cdf(drawn, shape, scale=1 / rate)
        assert stats.kstest(uniform.reshape(-1), "uniform").pvalue > 1e-3
        assert drawn.shape == (400, *shape.shape)
    assert_array_equal(model.sample_factors(1, random_state=0)[0][0], draws[0][0])


@pytest.mark.parametrize("kind", BAYESIAN)
def test_data_sets_are_those_of_the_posterior_predictive(kind, monkeypatch):
    """Sums of whole data sets: as many as where factors and values are drawn by brute force."""
    monkeypatch.setattr(records, "CELLS_AT_A_TIME", 70)  # four rows of blocks that don't divide the grid
    model = fitted(kind)
    drawn = model.sample(150, random_state=1)
    assert all(isinstance(one, sparse.csr_array) and one.shape == (30, 20) for one in drawn)
    assert all(np.all(one.data != 0) for one in drawn)
    rng = np.random.default_rng(2)
    brute = []
    for _ in range(150):
        W, H = (rng.gamma(a, 1 / b) for a, b in ((model.W_shape_, model.W_rate_), (model.H_shape_, model.H_rate_)))
        brute.append(model.likelihood_.sample(W @ H.T, rng))
    for statistic in (lambda y: (y > 0).sum(), lambda y: y.sum(), lambda y: y[:, 3].sum(), lambda y: y[5].sum()):
        ours, theirs = ([statistic(y) for y in many] for many in ([one.toarray() for one in drawn], brute))
        assert stats.ks_2samp(ours, theirs).pvalue > 1e-3


@pytest.mark.parametrize(
    ("kind", "unseen"), list(zip(KINDS, ("zero", "missing", "missing", "zero", "zero"), strict=True))
)
def test_draws_have_the_frequencies_of_their_probabilities(kind, unseen):
    """With posteriors as narrow as numbers, every cell of a draw is a draw at the model's x."""
    model = copy(small(kind, unseen))
    if model.model_.has_posterior:
        narrow = (
            f._replace(shape=f.mean * 0 + 1e10, rate=1e10 / f.mean) for f in (model.model_.rows, model.model_.columns)
        )
        model.model_ = replace(model.model_, **dict(zip(("rows", "columns"), narrow, strict=True)))
    draws = 150
    drawn = np.stack([one.toarray() for one in model.sample(draws, random_state=3)]).astype(int)
    p = np.exp(log_law(model, model.W_ @ model.H_.T))
    if kind in ORDINAL:
        assert_allclose(model.predict_proba(*np.indices(SIZE).reshape(2, -1)), p.reshape(-1, 5), atol=1e-12)
    else:
        p = np.concatenate([p[..., :5], np.maximum(1 - p[..., :5].sum(-1, keepdims=True), 0.0)], axis=-1)
    found = np.stack([(np.minimum(drawn, p.shape[-1] - 1) == v).sum(axis=0) for v in range(p.shape[-1])], axis=-1)
    z = (found.sum((0, 1)) - draws * p.sum((0, 1))) / np.sqrt(draws * (p * (1 - p)).sum((0, 1)) + 1e-9)
    assert np.abs(z).max() < 4.5
    common = np.minimum(p, 1 - p) * draws > 20  # where a count is about normal
    z = (found - draws * p)[common] / np.sqrt(draws * p * (1 - p))[common]
    assert np.abs(z).max() < 5.0
    assert 0.8 < np.mean(z**2) < 1.25  # neither too wide nor too narrow


@pytest.mark.filterwarnings("ignore::halfseen.errors.DataWarning")
def test_where_unseen_cells_say_nothing_the_cells_of_the_fit_are_drawn():
    Y = np.where(levels_matrix() > 0, levels_matrix() - 3.0, np.nan)  # levels -2..2, and 0 among them
    model = fitted(OrdNMF, Y, unseen="missing", prior_rate=1.0)
    (drawn,) = model.sample(random_state=0)
    assert drawn.nnz == (~np.isnan(Y)).sum()  # zeros are stored
    assert_array_equal(drawn.indices, np.nonzero(~np.isnan(Y))[1])
    assert set(drawn.data) == {-2.0, -1.0, 0.0, 1.0, 2.0}
    again = OrdNMF(3, unseen="missing", prior_rate=1.0, random_state=0, max_iter=3, tol=0).fit(drawn)
    assert_array_equal(again.levels_, model.levels_)


def test_the_same_seed_draws_the_same_and_none_others():
    model = fitted(OrdNMF)
    one, other = (model.sample(2, random_state=seed) for seed in (3, 3))
    for a, b in zip(one, other, strict=True):
        assert_array_equal(a.toarray(), b.toarray())
    assert (one[0] != one[1]).nnz > 0
    random = np.random.RandomState(3)
    assert (model.sample(1, random)[0] != model.sample(1, random)[0]).nnz > 0
    assert (model.sample(1)[0] != model.sample(1)[0]).nnz > 0


def test_labels_of_levels_are_drawn():
    stars = np.array([0.0, 0.5, 2.5, 4.0])
    model = fitted(OrdNMF, stars[levels_matrix(highest=3)])
    assert set(model.sample(1, 0)[0].data) == {0.5, 2.5, 4.0}


# Intervals.


def brute_intervals(model, u, i, tails, of, draws=60_000, seed=9):
    """At one pair: quantiles of x, of the mean, or of values, over plain draws."""
    rng = np.random.default_rng(seed)
    W, H = (
        rng.gamma(a[place], 1 / b[place], (draws, a.shape[1]))
        for a, b, place in ((model.W_shape_, model.W_rate_, u), (model.H_shape_, model.H_rate_, i))
    )
    x = np.sum(W * H, axis=1)
    if of == "value":
        return np.quantile(model.likelihood_.sample(x, rng), tails, method="inverted_cdf")
    return np.quantile(x if of == "x" else model.likelihood_.mean(x), tails)


@pytest.mark.parametrize("kind", BAYESIAN)
@pytest.mark.parametrize("of", ["x", "mean"])
def test_intervals_are_those_of_brute_force(kind, of, monkeypatch):
    monkeypatch.setattr(records, "PAIRS_AT_A_TIME", 2)
    model = fitted(kind)
    u, i = np.array([0, 0, 3, 7, 12]), np.array([1, 5, 5, 2, 19])
    low, high = model.predict_interval(u, i, 0.8, of, n_draws=4000)
    assert low.shape == high.shape == (5,)
    for place in range(5):
        expected = brute_intervals(model, u[place], i[place], [0.1, 0.9], of)
        spread = expected[1] - expected[0]
        assert_allclose([low[place], high[place]], expected, atol=0.08 * spread)


@pytest.mark.parametrize("kind", BAYESIAN)
def test_intervals_of_values_are_those_of_brute_force(kind):
    model = fitted(kind)
    for u, i in ((0, 1), (3, 5), (7, 2), (12, 19)):
        found = model.predict_interval(u, i, 0.77, n_draws=4000)
        values = [brute_intervals(model, u, i, [tail - 0.02, tail + 0.02], "value") for tail in (0.115, 0.885)]
        # A step that lies within the error of the draws may fall either way.
        for end, (least, most) in zip(found, values, strict=True):
            assert least <= end <= most


@pytest.mark.parametrize("kind", ORDINAL)
def test_the_median_is_the_lowest_level_that_half_of_all_cases_do_not_exceed(kind):
    model = kind(1, thresholds=[1.0, 2.0, 5.0], random_state=0, max_iter=2, tol=0).fit(levels_matrix(highest=3))
    rates = np.log(2) * np.array([1.0, 2.0, 5.0])  # P(y <= v) is 1/2 at the v-th
    for push, medians in ((1 - 1e-6, [0, 1, 2]), (1.0, [0, 1, 2]), (1 + 1e-6, [1, 2, 3])):
        x = (push * rates) ** (0.5 if kind is SquaredOrdNMF else 1)
        with_factors(model, x[:, None], np.ones((1, 1)))
        assert_array_equal(model.predict_level([0, 1, 2], [0, 0, 0]), medians)


def test_an_interval_of_levels_begins_at_the_level_that_reaches_its_tail():
    """Without a posterior the interval is read off p(v | x), and no draw blurs where it begins and ends."""
    model = SquaredOrdNMF(1, thresholds=[1.0, 2.0, 5.0], max_iter=2, tol=0).fit(levels_matrix(highest=3))
    rates = np.array([1.0, 2.0, 5.0])
    for push, more in ((1 - 1e-6, 0), (1.0, 0), (1 + 1e-6, 1)):
        for tail, end in ((0.25, "low"), (0.75, "high")):
            with_factors(model, np.sqrt(-push * rates * np.log(tail))[:, None], np.ones((1, 1)))
            for rows in ([0, 1, 2], [2, 1], [2]):  # the others are not asked for
                found = model.predict_interval(rows, [0] * len(rows), level=0.5, n_draws=1)
                assert_array_equal(getattr(found, end), np.add(rows, more))


@every_kind
@pytest.mark.parametrize("of", ["value", "mean", "x"])
@settings(deadline=None, max_examples=3)
@given(st.integers(0, 10_000), st.lists(st.floats(0.01, 0.99), min_size=2, max_size=3, unique=True))
def test_a_more_probable_interval_holds_the_less_probable_one(kind, of, seed, levels):
    model = small(kind)
    if of != "value" and not model.model_.has_posterior:
        return
    rng = np.random.default_rng(seed)
    u, i = rng.integers(0, SIZE[0], 5), rng.integers(0, SIZE[1], 5)
    found = [model.predict_interval(u, i, level, of, n_draws=60, random_state=seed) for level in sorted(levels)]
    for narrow, wide in pairwise(found):
        assert np.all((wide.low <= narrow.low) & (narrow.high <= wide.high))
    assert all(np.all(one.low <= one.high) for one in found)
    if of == "value":  # which is one that can be seen
        assert all(np.all(np.floor(end) == end) for one in found for end in one)


def test_a_model_without_a_posterior_has_intervals_of_values_only():
    model = fitted(SquaredOrdNMF)
    assert not hasattr(model, "sample_factors")
    with refused(ParameterError, "of", found="'mean'"):
        model.predict_interval(0, 1, of="mean")


def test_intervals_hold_what_they_promise_on_simulated_data():
    """Cells held out of simulated counts lie within nine tenths intervals nine times out of ten, or a little more."""
    rng = np.random.default_rng(0)
    Y = rng.poisson(rng.gamma(1.0, 1.0, (80, 3)) @ rng.gamma(1.0, 2.0, (60, 3)).T).astype(float)
    held = rng.random(Y.shape) < 0.1
    model = PoissonFactorization(3, unseen="missing", prior_shape=1.0, random_state=0).fit(np.where(held, np.nan, Y))
    low, high = model.predict_interval(*np.nonzero(held), 0.9)
    within = np.mean((low <= Y[held]) & (Y[held] <= high))
    assert 0.88 < within < 0.97
    tight_low, tight_high = model.predict_interval(*np.nonzero(held), 0.5)
    within = np.mean((tight_low <= Y[held]) & (Y[held] <= tight_high))
    assert 0.48 < within < 0.75  # counts are steps: such intervals are a good deal wider than they need be
    assert np.all((low <= tight_low) & (tight_high <= high))


def test_intervals_of_levels_hold_what_they_promise():
    Y, *_ = noises.simulate(100, 120, 3, [1, 5, 10, 20, 50], seed=1)
    held = np.random.default_rng(0).random(Y.shape) < 0.1
    seen = np.where(held, np.nan, Y.astype(float))
    model = OrdNMF(3, unseen="missing", prior_shape=1.0, random_state=0).fit(seen)
    low, high = model.predict_interval(*np.nonzero(held), 0.8)
    assert 0.78 < np.mean((low <= Y[held]) & (Y[held] <= high)) < 0.95


def test_the_same_question_has_the_same_answer_and_one_pair_no_axis():
    model = fitted(OrdNMF)
    assert_array_equal(model.predict_interval([0, 1], 2), model.predict_interval([0, 1], 2))
    low, high = model.predict_interval(0, 2, of="x")
    assert low.shape == ()
    assert low < model.W_[0] @ model.H_[2] < high
    assert model.predict_interval([], []).low.shape == (0,)


@pytest.mark.parametrize("ask", [{"level": 1.0}, {"of": "values"}, {"n_draws": 0}, {"random_state": -1}], ids=str)
def test_invalid_intervals_are_refused(ask):
    with refused(ParameterError, *ask):
        fitted(OrdNMF).predict_interval(0, 1, **ask)


@pytest.mark.parametrize("level", [0, 1, -0.5, "0.9", None])
def test_invalid_levels_of_factor_intervals_are_refused(level):
    with refused(ParameterError, "level"):
        fitted(PoissonFactorization).factor_intervals(level)


def test_intervals_of_factors_are_as_precise_as_the_data():
    model = fitted(PoissonFactorization, counts().astype(np.float32))
    assert {bound.dtype for side in model.factor_intervals() for bound in side} == {np.dtype(np.float32)}


def test_invalid_samples_are_refused():
    with refused(ParameterError, "n"):
        fitted(OrdNMF).sample(0)
    assert not hasattr(WeightedNMF(2), "sample")
