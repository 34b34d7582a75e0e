"""What models say of cells, cell by cell: likelihoods, medians, intervals and draws against scipy's distributions."""

import math
from copy import copy
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from halfseen import CompoundPoisson, Observed, OrdNMF, PoissonFactorization, SquaredOrdNMF, SquaredPoisson
from halfseen.likelihoods import CompoundPoisson as CompoundCounts
from halfseen.likelihoods import GammaNoise
from tests.estimators.models import with_factors
from tests.estimators.test_ordnmf import levels_matrix
from tests.estimators.test_relatives import counts

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

KINDS = (OrdNMF, SquaredOrdNMF, PoissonFactorization, CompoundPoisson, SquaredPoisson)
ORDINAL = (OrdNMF, SquaredOrdNMF)
MEANINGS = ("zero", "missing", "missing", "zero", "zero")
SIZE = 15, 10
SOME = settings(deadline=None, max_examples=5)
every_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
both_meanings = pytest.mark.parametrize("unseen", ["zero", "missing"])


@cache
def fitted(kind, unseen="zero"):
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


@every_kind
@both_meanings
@SOME
@given(st.integers(0, 10_000), st.booleans(), st.booleans())
def test_log_likelihoods_of_weighted_and_repeated_cells(kind, unseen, seed, weighted, repeated):
    model, rng = fitted(kind, unseen), np.random.default_rng(seed)
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
    model, rng = fitted(kind, unseen), np.random.default_rng(seed)
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
        model = copy(fitted(kind))
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
    model = fitted(kind)
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


@pytest.mark.parametrize(("kind", "unseen"), list(zip(KINDS, MEANINGS, strict=True)))
def test_draws_have_the_frequencies_of_their_probabilities(kind, unseen):
    """With posteriors as narrow as numbers, every cell of a draw is a draw at the model's x."""
    model = copy(fitted(kind, unseen))
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
