"""What every likelihood must obey."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import integrate, stats

from halfseen.errors import DataError
from halfseen.io import observe
from halfseen.likelihoods import GammaNoise, Gaussian, InverseGammaNoise, Poisson
from tests import oracle
from tests.laws.cases import DIVERGENCES, LIKELIHOODS, STORED, beta_of, half_seen, names, weights_for

every_likelihood = pytest.mark.parametrize("likelihood", LIKELIHOODS, ids=names)
every_divergence = pytest.mark.parametrize("likelihood", DIVERGENCES, ids=names)
with_closed_unseen = pytest.mark.parametrize("likelihood", [one for one in LIKELIHOODS if one.unseen], ids=names)
each_float = pytest.mark.parametrize("dtype", [np.float32, np.float64])

X = np.array([0.05, 0.3, 1.0, 2.5, 17.0])


def legal_values(likelihood):
    y = np.array([0.0, 0.2, 1.0, 3.0, 12.5])
    return y[likelihood.legal(y)]


def all_pairs(likelihood):
    y, x = np.meshgrid(legal_values(likelihood), X)
    return y.ravel(), x.ravel()


def pulls(likelihood, y):
    """Whether a value pulls: a zero does only where noise may have brought it down from a larger x."""
    return (y > 0) | isinstance(likelihood, (GammaNoise, InverseGammaNoise))


@every_likelihood
def test_pull_minus_push_is_the_slope_of_log_prob(likelihood):
    y, x = all_pairs(likelihood)
    step = 1e-4 * x
    slope = (likelihood.log_prob(y, x + step) - likelihood.log_prob(y, x - step)) / (2 * step)
    pull, push = np.broadcast_arrays(*likelihood.pull_push(y, x), x)[:2]
    assert_allclose(pull - push, slope, rtol=1e-5, atol=1e-6 * np.max(pull + push))


@every_likelihood
def test_pull_and_push_are_never_negative_and_only_values_pull(likelihood):
    y, x = all_pairs(likelihood)
    pull, push = np.broadcast_arrays(*likelihood.pull_push(y, x), x)[:2]
    assert_array_equal(pull > 0, pulls(likelihood, y))
    assert np.all(push > 0)


@every_divergence
def test_the_divergence_is_the_textbook_one(likelihood):
    y, x = all_pairs(likelihood)
    assert_allclose(likelihood.divergence(y, x), oracle.divergence(y, x, beta_of(likelihood)), rtol=1e-12, atol=1e-12)


@every_divergence
def test_the_divergence_vanishes_only_where_x_is_y(likelihood):
    y, x = all_pairs(likelihood)
    assert_allclose(likelihood.divergence(y, y.copy()), 0, atol=1e-14)
    assert np.all(likelihood.divergence(y, x)[y != x] > 0)


@every_divergence
def test_log_prob_is_the_best_there_is_minus_the_divergence(likelihood):
    y, x = all_pairs(likelihood)
    assert_allclose(likelihood.log_prob(y, y.copy()), likelihood.saturated(y), atol=1e-13)
    assert_allclose(likelihood.saturated(y) - likelihood.log_prob(y, x), likelihood.divergence(y, x), atol=1e-12)


@every_likelihood
def test_log_prob_falls_as_the_divergence_rises(likelihood):
    y, x = all_pairs(likelihood)
    assert_allclose(likelihood.log_prob(y, x) + likelihood.divergence(y, x), likelihood.saturated(y), atol=1e-12)
    for one, other in zip(likelihood.pull_push_cost(y, x), [*likelihood.pull_push(y, x), likelihood.divergence(y, x)],
                          strict=True):  # fmt: skip
        assert_allclose(one, other, rtol=1e-14)


def test_poisson_is_scipys():
    y, x = (a.ravel() for a in np.meshgrid(np.arange(30.0), X))
    assert_allclose(Poisson().log_prob(y, x), stats.poisson.logpmf(y, x), rtol=1e-12)


def test_gaussian_is_scipys():
    y, x = all_pairs(Gaussian())
    assert_allclose(Gaussian().log_prob(y, x), stats.norm.logpdf(y, x), rtol=1e-12)


def test_means_are_expectations():
    y = np.arange(200.0)
    for x in X:
        assert_allclose((y * np.exp(Poisson().log_prob(y, np.full_like(y, x)))).sum(), Poisson().mean(x), rtol=1e-10)
        mean = integrate.quad(lambda y, x=x: y * np.exp(Gaussian().log_prob(np.array(y), np.array(x))), x - 30, x + 30)
        assert_allclose(mean[0], Gaussian().mean(x), rtol=1e-8)


@every_divergence
def test_pull_and_push_balance_where_the_mean_is_the_value(likelihood):
    y = legal_values(likelihood)[1:]
    pull, push = likelihood.pull_push(y, y.copy())
    assert_allclose(pull, push, rtol=1e-12)
    assert_array_equal(likelihood.mean(y), y)


@with_closed_unseen
def test_an_unseen_zero_says_what_a_seen_zero_says(likelihood):
    pull, push = likelihood.pull_push(np.zeros_like(X), X)
    assert_array_equal(pull, 0)
    assert_allclose(np.broadcast_to(likelihood.unseen.at(X), X.shape), np.broadcast_to(push, X.shape))
    assert_allclose(likelihood.unseen.cost(X), likelihood.divergence(np.zeros_like(X), X), rtol=1e-13)


@with_closed_unseen
def test_the_push_of_an_unseen_zero_is_the_slope_of_its_cost(likelihood):
    step = 1e-4 * X
    slope = (likelihood.unseen.cost(X + step) - likelihood.unseen.cost(X - step)) / (2 * step)
    assert_allclose(np.broadcast_to(likelihood.unseen.at(X), X.shape), slope, rtol=1e-8)


@every_likelihood
def test_what_it_declares_of_its_push_is_true(likelihood):
    y, x = all_pairs(likelihood)
    push = np.broadcast_to(likelihood.pull_push(y, x)[1], x.shape)
    by_x = push.reshape(X.size, -1)
    assert likelihood.push_is_constant == bool(np.all(np.ptp(by_x, axis=0) == 0))
    is_inverse = np.ptp(push * x) < 1e-12 * np.max(push * x)
    assert is_inverse or not likelihood.push_is_inverse
    as_unseen = likelihood.unseen is not None and np.array_equal(
        push, np.broadcast_to(likelihood.unseen.at(x), x.shape)
    )
    assert likelihood.pushes_as_unseen == as_unseen


@every_likelihood
@each_float
def test_at_zero_nothing_breaks_and_a_product_with_zero_stays_zero(likelihood, dtype):
    y, x = legal_values(likelihood).astype(dtype), np.zeros(legal_values(likelihood).size, dtype)
    pull, push = likelihood.pull_push(y, x)
    assert_array_equal(pull * dtype(0), 0)
    assert_array_equal(np.broadcast_to(push, x.shape) * dtype(0), 0)
    assert_array_equal(pull > 0, pulls(likelihood, y))
    near = likelihood.divergence(y, np.full_like(x, 1e-2) * np.where(y > 0, y, 0))
    assert np.all((likelihood.divergence(y, x) > near)[y > 0])
    assert_allclose(likelihood.divergence(y, x)[y == 0], 0, atol=1e-4)


@every_likelihood
@each_float
def test_numbers_stay_as_precise_as_they_came(likelihood, dtype):
    y, x = (array.astype(dtype) for array in all_pairs(likelihood))
    results = [*likelihood.pull_push(y, x), likelihood.divergence(y, x), likelihood.mean(x)]
    assert {result.dtype for result in results if not isinstance(result, float)} == {np.dtype(dtype)}


@every_likelihood
def test_a_negative_value_is_refused_with_its_place(likelihood):
    dense = np.ones((3, 4))
    dense[1, 2], dense[2, 0] = -1.5, -7
    with pytest.raises(DataError) as error:
        likelihood.check(observe(dense), "Model")
    assert (error.value.found, error.value.where) == ("-1.5", "at row 1, column 2 (2 such cells)")
    assert error.value.must.endswith(likelihood.domain)
    assert error.value.remedy == likelihood.remedy


@every_likelihood
def test_zeros_are_refused_only_where_they_are_infinitely_unlikely(likelihood):
    frame = pd.DataFrame({"user": ["ann", "bob"], "item": ["x", "y"], "rating": [1.0, 0.0]})
    if beta_of(likelihood) is None or beta_of(likelihood) > 0:
        likelihood.check(observe(frame), "Model")
        return
    with pytest.raises(DataError) as error:
        likelihood.check(observe(frame), "Model")
    assert (error.value.found, error.value.where) == ("0", "at row 'bob', column 'y'")


@every_likelihood
def test_unseen_zeros_are_refused_where_they_have_no_closed_form(likelihood):
    observed = observe(np.array([[1.0, np.nan], [2.0, 1.0]]), unseen="zero")
    if likelihood.unseen is not None:
        likelihood.check(observed, "Model")
        return
    with pytest.raises(DataError) as error:
        likelihood.check(observed, "Model")
    assert error.value.parameter == "unseen"


@every_divergence
@pytest.mark.parametrize("unseen", ["missing", "zero"])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_start_is_the_mean_of_what_counts(likelihood, unseen, weighted):
    dense = half_seen()
    observed = observe(dense, unseen=unseen, cell_weight=weights_for(dense) if weighted else None)
    Y, C = oracle.grid(observed)
    assert_allclose(likelihood.start(observed), (C * Y).sum() / C.sum(), rtol=1e-12)


def draws_from(likelihood, x):
    """Many values drawn at x; None for a mere loss."""
    try:
        return likelihood.sample(np.full(20_000, x), np.random.default_rng(0))
    except NotImplementedError:
        return None


DRAWN = {name: one for name, one in STORED.items() if draws_from(one, 1.0) is not None}


@pytest.mark.parametrize("x", [0.4, 2.0])
@pytest.mark.parametrize("likelihood", DRAWN.values(), ids=DRAWN)
def test_probabilities_sum_to_one_have_the_mean_and_are_the_frequencies_of_draws(likelihood, x):
    y = np.arange(400.0 if likelihood.highest is None else likelihood.highest + 1)
    p = np.exp(likelihood.log_prob(y, np.full(y.size, x)))
    values = getattr(getattr(likelihood, "inner", likelihood), "values", None)
    assert_allclose(p.sum(), 1.0, rtol=1e-9)
    assert_allclose(likelihood.mean(np.array([x]))[0], p @ (y if values is None else values), rtol=1e-9)
    draws = draws_from(likelihood, x)
    shares = np.bincount(draws.astype(int), minlength=y.size) / draws.size
    assert np.all(np.abs(shares - p) < 4.5 * np.sqrt(p * (1 - p) / draws.size) + 1e-3)
