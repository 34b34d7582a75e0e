"""The variational oracle and those of noises against other truths: finite differences, sampling, scipy."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import special, stats

from . import gig, noises, oracle

both_meanings = pytest.mark.parametrize("unseen", ["zero", "missing"])


def problem(unseen="zero", shape=(7, 6), top=3, K=3):
    """Levels 0..top, every one of them present, with NaN where cells may be missing; and a start."""
    random = np.random.default_rng(0)
    Y = random.integers(0, top + 1, shape).astype(float)
    hole = random.random(shape) < (0.4 if unseen == "missing" else 0.0)
    Y.flat[: top + 1], hole.flat[: top + 1] = np.arange(top + 1), False
    return np.where(hole, np.nan, Y), *(random.gamma(1.0, 1.0, (size, K)) for size in shape)


def steepest(function, at, step=1e-5):
    """The largest derivative by the logarithms of positive parameters."""
    moves = step * np.eye(at.size).reshape(-1, *at.shape)
    return max(abs(function(at * np.exp(move)) - function(at * np.exp(-move))) for move in moves) / (2 * step)


@both_meanings
@pytest.mark.parametrize("thresholds", [None, [0.5, 2.0, 3.0]])
def test_each_update_is_the_maximum_of_the_bound_in_its_coordinate(unseen, thresholds):
    """One iteration walked by hand from the end of the 5th; it must also end where the 6th ends."""
    Y, W, H = problem(unseen, (5, 4), K=2)
    *_, before, after = oracle.ordnmf(Y, W, H, 6, unseen=unseen, thresholds=thresholds)
    Y, C = oracle.grid(Y, unseen)

    def bound(**new):
        return oracle.ordinal_bound(Y, C, a=oracle.SHAPE, **{**state, **new})

    def local(record):
        products, D = record.w.geometric[:, None] * record.h.geometric, record.family.decrements
        return D[np.maximum(Y - 1, 0)] * products.sum(2), products / products.sum(2, keepdims=True)

    def is_best(name, at, make=lambda values: values):
        state[name] = make(at)
        assert steepest(lambda moved: bound(**{name: make(moved)}), at) < 1e-7

    state = dict(zip(("w", "h", "prior_w", "prior_h"), before, strict=False), decrements=before.family.decrements)
    state["counts_rate"], state["split"] = local(before)
    assert bound() == pytest.approx(before.elbo, rel=1e-13)
    assert steepest(lambda b: bound(prior_w=b), before.prior_w) > 1e-3  # a slope is seen where there is one
    is_best("prior_w", after.prior_w)
    is_best("prior_h", after.prior_h)
    if thresholds is None:
        is_best("decrements", after.family.decrements)
    for name, q in (("w", after.w), ("h", after.h)):
        is_best(name, q.shape, lambda shape, q=q: oracle.Gamma(shape, q.rate))
        is_best(name, q.rate, lambda rate, q=q: oracle.Gamma(q.shape, rate))
    state["counts_rate"], state["split"] = local(after)
    is_best("counts_rate", state["counts_rate"])
    is_best("split", state["split"], lambda phi: phi / phi.sum(2, keepdims=True))
    assert bound() == pytest.approx(after.elbo, rel=1e-13)


@both_meanings
def test_the_elbo_by_sampling_q(unseen):
    """E_q[log p(y, n, c, w, h) - log q(n, c, w, h)], every density written out."""
    Y, W, H = problem(unseen, (2, 3), K=2)
    record = oracle.ordnmf(Y, W, H, 5, unseen=unseen)[-1]
    Y, C = oracle.grid(Y, unseen)
    random, draws, D = np.random.default_rng(0), 50_000, record.family.decrements
    logs, factors = np.zeros(draws), []
    for q, prior in ((record.w, record.prior_w), (record.h, record.prior_h)):
        drawn = random.gamma(q.shape, 1 / q.rate, (draws, *q.shape.shape))
        logs += stats.gamma(oracle.SHAPE, scale=1 / prior).logpdf(drawn).sum((1, 2))
        logs -= stats.gamma(q.shape, scale=1 / q.rate).logpdf(drawn).sum((1, 2))
        factors.append(drawn)
    for u, i in zip(*np.nonzero(C), strict=True):
        parts, y = factors[0][:, u] * factors[1][:, i], Y[u, i]
        logs -= parts.sum(1) * D[max(y - 1, 0) :].sum()
        if y > 0:
            products = record.w.geometric[u] * record.h.geometric[i]
            rate, phi = D[y - 1] * products.sum(), products / products.sum()
            n = stats.poisson.ppf(random.uniform(np.exp(-rate), 1, draws), rate).astype(int)
            c = random.multinomial(n, phi)
            logs += n * np.log(D[y - 1]) + (special.xlogy(c, parts) - special.gammaln(c + 1)).sum(1)  # Eq. 29
            logs -= stats.poisson.logpmf(n, rate) - np.log(-np.expm1(-rate)) + stats.multinomial.logpmf(c, n, phi)
    error = logs.std() / np.sqrt(draws)
    assert error < 0.02
    assert record.elbo == pytest.approx(logs.mean(), abs=4 * error)


@pytest.mark.parametrize("p", [0.05, 0.5, 0.95])
def test_compound_poisson_against_scipy(p):
    """With x known, the sum over n is the negative binomial, and E[n] the mean of n given y; p is the best there is."""
    x, Y, s = np.full(8, 1.7), np.arange(1, 9), -np.log1p(-p)
    family = oracle.CompoundPoisson(s)
    counts = family.counts(Y, x)
    np.testing.assert_allclose(family.evidence(Y, x) - x, stats.nbinom(x / s, 1 - p).logpmf(Y), rtol=1e-11)
    given = [np.eye(9)[0]]
    for _ in Y:
        given.append(np.convolve(given[-1], stats.logser(p).pmf(np.arange(9)))[:9])
    joint = np.array(given)[1:, 1:] * stats.poisson(1.7).pmf(Y)[:, None]  # (n, y)
    np.testing.assert_allclose(counts, Y @ joint / joint.sum(0), rtol=1e-12)
    tried = family.refit(Y, np.ones(8), counts, None).p * np.array([1 - 1e-3, 1, 1 + 1e-3])
    assert np.argmax([(Y * np.log(p) - counts * np.log(-np.log1p(-p))).sum() for p in tried]) == 1


THRESHOLDS = np.array([0.4, 1.0, 2.5, 7.0])
CASES = [("inverse-gamma", 1.0), ("inverse-gamma", 0.5), ("exponential", 1.0), ("gamma", 0.4), ("gamma", 5.0)]
every_noise = pytest.mark.parametrize(("noise", "alpha"), CASES)
every_alpha = pytest.mark.parametrize("alpha", [1.0, 0.4, 3.0])


def shares(x, noise, alpha):
    """P(y = v | x) as scipy has it."""
    law = stats.invgamma(alpha) if noise == "inverse-gamma" else stats.gamma(alpha)
    return np.diff(law.cdf(np.append(THRESHOLDS, np.inf) / np.asarray(x)[..., None]), prepend=0.0)


@every_noise
def test_probabilities_are_those_of_scipy(noise, alpha):
    x = np.array([[0.05, 0.3], [2.0, 9.0]])
    expected = shares(x, noise, alpha)
    assert_allclose(noises.cumulative(x, THRESHOLDS, noise, alpha), np.cumsum(expected, -1), rtol=1e-12, atol=1e-300)
    found = np.exp(noises.log_probabilities(x, THRESHOLDS, noise, alpha))
    assert_allclose(np.cumsum(found, -1), np.cumsum(expected, -1), rtol=1e-11, atol=1e-14)
    y = np.array([[1, 2], [4, 3]])
    seen = np.log(np.take_along_axis(expected, y[..., None], -1)[..., 0] / expected[..., 1:].sum(-1)).sum()  # Eq. 39
    assert noises.log_likelihood_of_seen(y, x, THRESHOLDS, noise, alpha) == pytest.approx(seen, rel=1e-9)


@every_alpha
def test_derivatives_by_thresholds(alpha):
    Y, C, W, H = gig.cells(alpha)
    x, here, steps = W @ H.T, np.log(gig.THRESHOLDS), 1e-4 * np.eye(3)

    def value(log_b):
        return (C * gig.at(noises.log_probabilities(x, np.exp(log_b), "gamma", alpha), Y)).sum()

    def slopes(at):
        return np.array([(value(at + d) - value(at - d)) / 2e-4 for d in steps])

    slope, bend = gig.slope_and_bend(Y, C, x, gig.THRESHOLDS, alpha)
    assert_allclose(slope, slopes(here), rtol=1e-6, atol=1e-6)
    assert_allclose(-bend, [(slopes(here + e) - slopes(here - e)) / 2e-4 for e in steps], rtol=1e-4, atol=1e-4)
    assert np.linalg.eigvalsh(bend).min() > 0
