"""Likelihood of held-out cells, data drawn, and intervals, against oracles, brute force and simulated truth."""

from decimal import Decimal, localcontext

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse, stats

import halfseen
from halfseen import (
    BernoulliPoisson,
    CompoundPoisson,
    OrdNMF,
    PoissonFactorization,
    SquaredOrdNMF,
    SquaredPoisson,
    WeightedNMF,
)
from halfseen import model as records
from halfseen.errors import DataError, DataWarning, ParameterError
from tests.estimators.models import with_factors
from tests.estimators.test_ordnmf import levels_matrix
from tests.estimators.test_relatives import counts
from tests.ordinal import noises

BAYESIAN = (OrdNMF, BernoulliPoisson, PoissonFactorization, CompoundPoisson)
EVERY_KIND = (*BAYESIAN, SquaredOrdNMF, SquaredPoisson)
every_kind = pytest.mark.parametrize("kind", EVERY_KIND, ids=lambda kind: kind.__name__)

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def data_for(kind, n=30, m=20):
    return levels_matrix(n, m) if kind in (OrdNMF, SquaredOrdNMF) else counts(n, m)


def fitted(kind, Y=None, **ask):
    ask = {"random_state": 0, "max_iter": 30, "tol": 0, **({"l2": 1.0} if kind in EVERY_KIND[4:] else {}), **ask}
    return kind(3, **ask).fit(data_for(kind) if Y is None else Y)


def rates(model):
    x = model.W_ @ model.H_.T
    return x**2 if isinstance(model, SquaredOrdNMF | SquaredPoisson) else x


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


@pytest.mark.parametrize("kind", [OrdNMF, SquaredOrdNMF])
@pytest.mark.filterwarnings("ignore::halfseen.errors.DataWarning")
def test_where_unseen_cells_say_nothing_all_levels_count(kind):
    Y = np.where(levels_matrix() > 0, levels_matrix(), np.nan)
    Y[4], Y[:, 7] = 1.0, 1.0
    model = fitted(kind, Y, unseen="missing")
    test = levels_matrix(seed=5, share=0.9)
    test = np.where(test > 0, test, np.nan)
    seen = ~np.isnan(test)
    logs = noises.log_probabilities(rates(model)[seen], model.thresholds_)
    truth = np.take_along_axis(logs, test[seen].astype(int)[:, None] - 1, axis=1)
    assert model.log_likelihood(test) == pytest.approx(truth.sum(), rel=1e-12)


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


def test_counts_given_that_there_are_any():
    Y = counts(seed=3)
    seen = Y > 0
    poisson, compound, squared = fitted(PoissonFactorization), fitted(CompoundPoisson), fitted(SquaredPoisson)
    for model, law in (
        (poisson, stats.poisson(rates(poisson)[seen])),
        (squared, stats.poisson(rates(squared)[seen])),
        (compound, stats.nbinom(rates(compound)[seen] / -np.log1p(-compound.p_), 1 - compound.p_)),
    ):
        truth = law.logpmf(Y[seen]) - law.logsf(0)
        assert_allclose(model.log_likelihood(Y, each=True), truth, rtol=1e-8)
        assert model.log_likelihood(Y) == pytest.approx(truth.sum(), rel=1e-10)


@pytest.mark.filterwarnings("ignore::halfseen.errors.DataWarning")
def test_counts_where_unseen_cells_say_nothing():
    Y = np.where(counts() > 0, counts(), np.nan)
    Y[4], Y[:, 7] = 0.0, 0.0
    seen = ~np.isnan(Y)
    model = fitted(PoissonFactorization, Y, unseen="missing")
    assert model.log_likelihood(Y) == pytest.approx(stats.poisson.logpmf(Y, rates(model))[seen].sum(), rel=1e-11)
    there = fitted(BernoulliPoisson, Y, unseen="missing")
    p = -np.expm1(-rates(there))
    assert there.log_likelihood(Y) == pytest.approx(np.log(np.where(Y > 0, p, 1 - p))[seen].sum(), rel=1e-11)


def test_with_one_level_there_is_nothing_left_to_guess():
    assert fitted(BernoulliPoisson).log_likelihood(counts()) == 0.0
    assert fitted(OrdNMF, np.minimum(counts(), 1)).log_likelihood(np.minimum(counts(), 1)) == 0.0


def test_a_cell_counts_as_often_as_its_weight_says():
    model, Y = fitted(OrdNMF), levels_matrix(seed=5)
    weight = np.random.default_rng(0).integers(1, 4, Y.shape).astype(float)
    each = model.log_likelihood(Y, each=True)
    weighted = halfseen.observe(Y, unseen="zero", cell_weight=weight)
    assert model.log_likelihood(weighted) == pytest.approx(each @ weight[Y > 0], rel=1e-12)


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
    sentence = (
        r"^The cells of X should be in rows and columns that the model knows\. Found 2 of 9 that are not, the first at "
        r"row 0, column 'nothing'\. They were left out\.$"
    )
    with pytest.warns(DataWarning, match=sentence):
        assert model.log_likelihood(pd.concat([frame.iloc[:7], new])) == pytest.approx(known, rel=1e-12)
    with (
        pytest.raises(DataError) as caught,
        pytest.warns(DataWarning, match="Found 2 of 2"),
    ):
        model.log_likelihood(new)
    assert str(caught.value) == (
        "X must have a cell above 0 in a row and a column of the model. Found none. "
        "Check that X is of the rows and columns of the fit."
    )


def test_a_level_that_training_did_not_have_is_named_where_it_stands():
    frame = long(levels_matrix(highest=3))
    model = fitted(OrdNMF, frame)
    with pytest.raises(DataError) as caught:
        model.log_likelihood(frame.assign(rating=[4, *frame.rating[1:]]))
    assert str(caught.value) == (
        f"Values must be among the levels that were fitted: 0, 1, 2, 3. Found 4 at row {frame.user[0]}, column "
        f"'{frame.item[0]}' (1 such cell). Fit with data that have this level, or round the value."
    )


# Data drawn.


def chi_square(found, expected):
    """The probability of cells that differ from the expected numbers as much as those found, or more."""
    keep = expected > 5
    found, expected = np.append(found[keep], found[~keep].sum()), np.append(expected[keep], expected[~keep].sum())
    if expected[-1] == 0:
        found, expected = found[:-1], expected[:-1]
    return stats.chisquare(found, expected * found.sum() / expected.sum()).pvalue


def law_at(model, x, highest=40):
    """p(y | x) for y = 0..highest, from scipy and the oracle."""
    if isinstance(model, OrdNMF):
        return np.exp(noises.log_probabilities(x, model.thresholds_))
    if isinstance(model, BernoulliPoisson):
        return np.array([np.exp(-x), -np.expm1(-x)])
    if isinstance(model, CompoundPoisson):
        return stats.nbinom.pmf(np.arange(highest), x / -np.log1p(-model.p_), 1 - model.p_)
    if isinstance(model, SquaredOrdNMF):
        return np.exp(noises.log_probabilities(x**2, model.thresholds_))
    return stats.poisson.pmf(np.arange(highest), x**2 if isinstance(model, SquaredPoisson) else x)


@every_kind
@pytest.mark.parametrize("x", [0.03, 1.7])
def test_values_are_drawn_from_the_likelihood(kind, x):
    model = fitted(kind)
    y = model.likelihood_.sample(np.full((200, 500), x), np.random.default_rng(1))
    law = law_at(model, x)
    found = np.bincount(y.astype(int).reshape(-1), minlength=law.size)[: law.size]
    assert chi_square(found, law * y.size) > 1e-3


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


def test_a_model_without_a_posterior_draws_at_its_factors():
    model = fitted(SquaredOrdNMF)
    drawn = np.stack([one.toarray() for one in model.sample(400, random_state=0)])
    mean = model.predict(*np.indices((30, 20)).reshape(2, -1)).reshape(30, 20)
    error = (drawn.mean(axis=0) - mean) / np.maximum(drawn.std(axis=0) / 20, 1e-9)
    moving = drawn.std(axis=0) > 0
    assert stats.kstest(error[moving & (mean > 0.2)], "norm").pvalue > 1e-3
    assert not hasattr(model, "sample_factors")


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


def test_without_a_posterior_levels_are_told_by_their_probabilities():
    model = fitted(SquaredOrdNMF)
    rows, columns = np.indices((30, 20)).reshape(2, -1)
    low, high = model.predict_interval(rows, columns, 0.8, n_draws=1)
    up_to = np.cumsum(model.predict_proba(rows, columns), axis=1)
    assert_array_equal(low, np.argmax(up_to >= 0.1 - 1e-12, axis=1))
    assert_array_equal(high, np.argmax(up_to >= 0.9 - 1e-12, axis=1))
    with pytest.raises(ParameterError) as caught:
        model.predict_interval(0, 1, of="mean")
    assert str(caught.value) == (
        "of must be \"value\" for SquaredOrdNMF, whose factors are single numbers without a posterior. Found 'mean'. "
        'Ask for "value", or fit OrdNMF or PoissonFactorization.'
    )


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


@pytest.mark.parametrize(
    ("ask", "sentence"),
    [
        ({"level": 1.0}, "level must be a number between 0 and 1, both excluded. Found 1.0. Choose such a number."),
        ({"of": "values"}, "of must be one of 'value', 'mean', 'x'. Found 'values'. Did you mean 'value'?"),
        ({"n_draws": 0}, "n_draws must be a whole number of at least 1. Found 0. Use 1 or more."),
    ],
)
def test_intervals_that_can_not_be(ask, sentence):
    with pytest.raises(ParameterError) as caught:
        fitted(OrdNMF).predict_interval(0, 1, **ask)
    assert str(caught.value) == sentence


def test_samples_that_can_not_be():
    with pytest.raises(ParameterError, match=r"^n must be a whole number of at least 1\. Found 0\. Use 1 or more\.$"):
        fitted(OrdNMF).sample(0)
    assert not hasattr(WeightedNMF(2), "sample")
