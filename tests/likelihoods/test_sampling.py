"""Values drawn from likelihoods: the same bits as plain code on the same stream, and the right frequencies."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp

from halfseen.likelihoods import CompoundPoisson, GammaNoise, Gaussian, Ordinal, Poisson, Squared
from tests.laws.cases import DECREMENTS, OWNED, SMOOTHS

X = np.random.default_rng(1).gamma(1.0, 1.0, (60, 7))
X[0, 0] = 0.0
THRESHOLDS = np.array([0.7, 1.5, 2.5, 4.0, 7.0])
LEVELS = {
    "ordinal": Ordinal(DECREMENTS),
    "presence": Ordinal(np.ones(1), learned=False),
    "gamma noise": GammaNoise(THRESHOLDS, 2.5),
    "squared": Squared(Ordinal(DECREMENTS, pinned=True)),
}
LINKED = {name: SMOOTHS[name] for name in ("logit", "probit", "cloglog", "loglog", "cauchit")}
every_level = pytest.mark.parametrize("likelihood", LEVELS.values(), ids=LEVELS)


@every_level
def test_levels_are_above_zero_or_not_and_then_somewhere(likelihood):
    y = likelihood.sample(X, np.random.default_rng(3))
    random = np.random.default_rng(3)
    unseen = likelihood.unseen
    cost = -likelihood.log_prob(np.zeros_like(X), X) if unseen is None else unseen.cost(X)
    above = random.standard_exponential(X.shape) < cost
    x = np.maximum(X[above], np.finfo(float).tiny ** 0.25)
    logs = np.stack([likelihood.log_prob(np.full_like(x, v), x) for v in range(1, likelihood.highest + 1)])
    up_to = np.cumsum(np.exp(logs - logsumexp(logs, axis=0)), axis=0)
    expected = np.zeros(X.shape)
    expected[above] = 1 + (up_to[:-1] < random.random(up_to.shape[1])).sum(axis=0)
    assert_array_equal(y, expected, strict=True)


@every_level
@pytest.mark.parametrize("x", [0.3, 2.0])
def test_levels_are_as_frequent_as_their_probabilities(likelihood, x):
    draws = likelihood.sample(np.full(20_000, x), np.random.default_rng(0))
    p = likelihood.probabilities(np.array([x]))[0]
    share = np.bincount(draws.astype(int), minlength=p.size) / draws.size
    assert np.all(np.abs(share - p) < 4.5 * np.sqrt(p * (1 - p) / draws.size) + 1e-12)


def test_counts_are_poisson_draws_of_the_rate_and_compound_ones_have_their_mean():
    expected = np.random.default_rng(3).poisson(X).astype(np.float64)
    assert_array_equal(Poisson().sample(X, np.random.default_rng(3)), expected, strict=True)
    expected = np.random.default_rng(3).poisson(X * X).astype(np.float64)
    assert_array_equal(Squared(Poisson()).sample(X, np.random.default_rng(3)), expected, strict=True)
    draws = CompoundPoisson(0.7).sample(np.full(100_000, 2.0), np.random.default_rng(0))
    assert_allclose(draws.mean(), CompoundPoisson(0.7).mean(2.0), rtol=0.02)


@pytest.mark.parametrize("s", [1e-12, 0.7, 40.0])
def test_compound_counts_are_sums_of_logarithmic_draws(s):
    likelihood = CompoundPoisson(s)
    y = likelihood.sample(X, np.random.default_rng(3))
    random = np.random.default_rng(3)
    times = random.poisson(X)
    draws = random.logseries(min(likelihood.p, np.nextafter(1.0, 0.0)), times.sum())
    parts = np.split(draws, np.cumsum(times.ravel())[:-1])
    assert_array_equal(y, np.reshape([float(part.sum()) for part in parts], X.shape), strict=True)
    assert not CompoundPoisson(s).sample(np.zeros(3), random).any()


@pytest.mark.parametrize("likelihood", LINKED.values(), ids=LINKED)
def test_cumulative_links_are_inverted(likelihood):
    x = X - 1.0
    up_to = np.cumsum(likelihood.probabilities(x), axis=-1)
    uniform = np.random.default_rng(3).random((*x.shape, 1))
    expected = (up_to[..., :-1] < uniform).sum(axis=-1).astype(np.float64)
    assert_array_equal(likelihood.sample(x, np.random.default_rng(3)), expected, strict=True)


def test_own_thresholds_are_those_of_the_cells_owners():
    owners = np.arange(X.shape[1]) % 4
    y = OWNED.for_owners(owners).sample(X, np.random.default_rng(3))
    uniform = np.random.default_rng(3).random((*X.shape, 1))
    for owner in range(4):
        mine = owners == owner
        p = OWNED.for_owners(owner).probabilities(X[:, mine])
        assert_array_equal(y[:, mine], (np.cumsum(p, axis=-1)[..., :-1] < uniform[:, mine]).sum(axis=-1))


@pytest.mark.parametrize("likelihood", [Gaussian(), SMOOTHS["round"], OWNED], ids=["gaussian", "round", "owned"])
def test_nothing_is_drawn_from_mere_losses(likelihood):
    with pytest.raises(NotImplementedError):
        likelihood.sample(X, np.random.default_rng(0))
