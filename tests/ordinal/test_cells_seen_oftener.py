"""Ordinal fits of cells with weights, seen more than once, at levels that differ: against the same model as a list.

Here every cell of the grid is spelled out: those that were seen, as often as they were, and an unseen zero at every
place that was not. Sums are taken cell by cell. The entry rules are those of the dense oracles.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import stats

from halfseen import CompoundPoisson, Observed, OrdNMF
from halfseen.likelihoods import Ordinal, Squared
from halfseen.solvers import Multiplicative, Penalty
from tests.laws.cases import states
from tests.ordinal import gig, oracle

A_FEW = settings(deadline=None, max_examples=15)
V, K = 3, 2

some_cells = st.tuples(st.integers(0, 10_000), st.sampled_from(["zero", "missing"]), st.booleans(), st.booleans())


def draw(seed, unseen, weighted, repeated):
    """What is seen, as the library reads it and spelled out: places u and i, levels y, how much each counts."""
    rng = np.random.default_rng(seed)
    n, m = rng.integers(4, 8, 2).tolist()
    seen = rng.random((n, m)) < rng.choice([0.4, 0.9])
    seen[np.arange(n), np.arange(n) % m], seen[np.arange(m) % n, np.arange(m)] = True, True
    u, i = np.nonzero(seen)
    if repeated:
        again = rng.integers(0, u.size, u.size // 2)
        u, i = np.append(u, u[again]), np.append(i, i[again])
    y = rng.integers(0, V + 1, u.size)
    y[: V + 1] = np.arange(V + 1)  # every level is there
    c = rng.choice([0.3, 1.0, 2.5], u.size) if weighted else np.ones(u.size)
    observed = Observed.from_cells(
        u, i, y.astype(float), (n, m), unseen=unseen, weights=c if weighted else None, duplicates="keep"
    )
    if unseen == "zero":
        more_u, more_i = np.nonzero(~seen)
        u, i, y, c = np.append(u, more_u), np.append(i, more_i), np.append(y, 0 * more_u), np.append(c, 1 + 0 * more_u)
    start = rng.gamma(2.0, 0.5, (n, K)) + 0.05, rng.gamma(2.0, 0.5, (m, K)) + 0.05
    return observed, (u, i, y, c), start


def summed(place, each, size):
    sums = np.zeros((size, each.shape[1]))
    np.add.at(sums, place, each)
    return sums


def algorithm_1(cells, family, W, H, iterations, a=oracle.SHAPE):
    """Algorithm 1 over a list of cells: the factors, the likelihood, and the bound of every iteration."""
    u, i, y, c = cells
    w, h, bounds = oracle.Start(W), oracle.Start(H), []
    for _ in range(iterations):
        prior_w, prior_h = oracle.prior_rates(w, a), oracle.prior_rates(h, a)
        x = (w.geometric[u] * h.geometric[i]).sum(1)
        counts = family.counts(y, x)
        family = family.refit(y, c, counts, (w.mean[u] * h.mean[i]).sum(1))
        shares = (c * counts / x)[:, None] * w.geometric[u] * h.geometric[i]
        push = (c * family.push(y))[:, None]
        w = oracle.Gamma(a + summed(u, shares, len(W)), prior_w + summed(u, push * h.mean[i], len(W)))
        h = oracle.Gamma(a + summed(i, shares, len(H)), prior_h + summed(i, push * w.mean[u], len(H)))
        local = family.evidence(y, (w.geometric[u] * h.geometric[i]).sum(1))
        local = c * (local - family.push(y) * (w.mean[u] * h.mean[i]).sum(1))
        prior = oracle.divergence(w, a, prior_w).sum() + oracle.divergence(h, a, prior_h).sum()
        bounds.append(local.sum() - prior)
    return w, h, family, bounds


@A_FEW
@given(some_cells, st.booleans())
def test_ordnmf(case, learned):
    observed, cells, (W, H) = draw(*case)
    thresholds = None if learned else [0.5, 1.0, 4.0]
    ask = {"init": (W, H), "accelerate": False, "max_iter": 15, "tol": 0, "unseen": case[1]}
    model = OrdNMF(K, thresholds=thresholds, **ask).fit(observed)
    _, _, y, c = cells
    first = oracle.first_decrements(np.bincount(y, c), case[1]) if learned else oracle.decrements_of(thresholds)
    w, h, family, bounds = algorithm_1(cells, oracle.Ordinal(first, learned), W, H, 15)
    assert_allclose(model.W_, w.mean, rtol=1e-9)
    assert_allclose(model.H_, h.mean, rtol=1e-9)
    assert_allclose(model.W_rate_, w.rate, rtol=1e-9)
    assert_allclose(model.H_shape_, h.shape, rtol=1e-9)
    assert_allclose(model.thresholds_, family.thresholds, rtol=1e-9)
    assert_allclose(model.trace_["objective"], bounds, rtol=1e-10, atol=1e-10)


@A_FEW
@given(some_cells)
def test_compound_counts(case):
    """Their p is learned from sums over cells, each as often as it counts."""
    observed, cells, (W, H) = draw(*case)
    ask = {"init": (W, H), "accelerate": False, "max_iter": 15, "tol": 0, "unseen": case[1]}
    model = CompoundPoisson(K, **ask).fit(observed)
    w, h, family, bounds = algorithm_1(cells, oracle.CompoundPoisson(np.log(2.0)), W, H, 15)  # p starts at 1/2
    assert_allclose(model.W_, w.mean, rtol=1e-8)
    assert_allclose(model.H_, h.mean, rtol=1e-8)
    assert model.p_ == pytest.approx(family.p, rel=1e-8)
    assert_allclose(model.trace_["objective"], bounds, rtol=1e-9, atol=1e-9)


def squared_steps(cells, D, W, H, l2, iterations):
    """The squared model over a list of cells, with the exponent 1 / 2: factors, decrements, the penalised loss."""
    u, i, y, c = cells

    def moved(near, F, far, G):
        x, family = (F[near] * G[far]).sum(1), oracle.Ordinal(D)
        pull = 2 * c * family.counts(y, x**2) / np.where(x > 0, x, 1.0)  # x is 0 only where nothing is above level 0
        P = summed(near, pull[:, None] * G[far], len(F))
        Q = summed(near, (2 * c * family.push(y) * x)[:, None] * G[far], len(F)) + l2 * F
        return F * np.sqrt(P / np.where(P > 0, Q, 1.0))

    for _ in range(iterations):
        W = moved(u, W, i, H)
        H = moved(i, H, u, W)
        rate = (W[u] * H[i]).sum(1) ** 2
        N = np.bincount(y, c * oracle.Ordinal(D).counts(y, rate), V + 1)[1:]
        R = np.cumsum(np.bincount(y, c * rate, V + 1))[1:]
        low, high = -R.min(), N.sum()
        for _ in range(100):  # the mu at which the decrements add up to 1
            mu = (low + high) / 2
            low, high = (mu, high) if np.any(R + mu <= 0) or (N / (R + mu)).sum() > 1 else (low, mu)
        D = N / (R + high)
    family = oracle.Ordinal(D)
    logs = family.evidence(y, rate) - family.push(y) * rate
    return W, H, D, l2 / 2 * ((W**2).sum() + (H**2).sum()) - (c * logs).sum()


@A_FEW
@given(some_cells)
def test_the_squared_model(case):
    observed, cells, (W, H) = draw(*case)
    D = np.array([0.5, 0.3, 0.2])
    *_, last = states(Multiplicative(Penalty(l2=0.7)), Squared(Ordinal(D, pinned=True)), observed, W, H, steps=12)
    W, H, D, loss = squared_steps(cells, D, W, H, 0.7, 12)
    assert_allclose(last.rows.mean, W, rtol=1e-8, atol=1e-100)  # what is next to nothing becomes 0
    assert_allclose(last.columns.mean, H, rtol=1e-8, atol=1e-100)
    assert_allclose(last.likelihood.inner.decrements, D, rtol=1e-8)
    assert last.objective == pytest.approx(loss, rel=1e-9)


@pytest.mark.parametrize("noise_shape", [1.0, 2.5])
@pytest.mark.parametrize("seed", [0, 1])
def test_gamma_noise_with_weights_starts_at_the_weighted_histogram(noise_shape, seed):
    """Every place of the grid is a cell of its own to such noises, so the dense oracle has all it needs."""
    observed, (u, i, y, c), (W, H) = draw(seed, "zero", True, False)
    Y, C = np.zeros(observed.shape, int), np.zeros(observed.shape)
    Y[u, i], C[u, i] = y, c
    ask = {"init": (W, H), "accelerate": False, "max_iter": 6, "tol": 0, "noise": "gamma", "noise_shape": noise_shape}
    model = OrdNMF(K, **ask).fit(observed)
    *_, record = gig.ordnmf(Y, C, W, H, gig_start(y, c, noise_shape), 6, noise_shape, 1.0, None, True)
    assert_allclose(model.W_, record.w.mean, rtol=1e-8)
    assert_allclose(model.thresholds_, record.thresholds, rtol=1e-8)
    assert model.trace_["objective"][-1] == pytest.approx(record.elbo, rel=1e-8)


def gig_start(y, c, shape):
    """Thresholds that give the levels their weighted shares if every x were K, half a cell added on either side."""
    N = np.bincount(y, c)
    return K * stats.gamma.ppf((np.cumsum(N)[:-1] + 0.5) / (N.sum() + 1.0), shape)


@A_FEW
@given(st.integers(0, 10_000))
def test_pinned_decrements_are_the_best_that_add_up_to_one(seed):
    """Where sum N log D - R D is highest on the simplex, N / D - R is the same for all levels; sums of any size."""
    rng = np.random.default_rng(seed)
    size = rng.integers(1, 8)
    N, means = 10.0 ** rng.uniform(-3, 3, size), 10.0 ** rng.uniform(-3, 3, size + 1)
    D = Ordinal(np.ones(size), pinned=True).refit(np.append(0.0, N), means, unseen_mean=0.5).decrements
    R = np.cumsum(means)[1:] + 0.5
    assert np.all(D > 0)
    assert D.sum() == pytest.approx(1.0, rel=1e-9)
    assert_allclose(N / D - R, N[0] / D[0] - R[0], rtol=1e-8, atol=1e-8 * R.max())
