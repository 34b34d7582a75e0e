"""No step of any solver goes back: over random data, weights, repeated cells, meanings of unseen cells, momentum.

What a state says its objective is, the cells say too when they are spelled out one by one.
"""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halfseen import Observed
from halfseen.likelihoods import BetaDivergence, CompoundPoisson, GammaNoise, Gaussian, Ordinal, Poisson, Squared
from halfseen.solvers import Gamma, GammaPrior, InverseGaussian, Momentum, Multiplicative, Penalty
from tests.laws.cases import made_legal, open_problem

A_FEW = settings(deadline=None, max_examples=5)
BOTH = ("zero", "missing")
LEVELS = np.array([0.5, 0.3, 0.2])

#: A name, the likelihood, what makes its solver, and what unseen cells can mean to it.
PAIRS = {
    "gamma of Poisson": (Poisson(), Gamma, BOTH),
    "gamma of compound counts": (CompoundPoisson(0.7), Gamma, BOTH),
    "gamma of levels": (Ordinal(LEVELS), Gamma, BOTH),
    "gamma of one level": (Ordinal(np.ones(1), learned=False), Gamma, BOTH),
    "gamma of levels, rates given": (Ordinal(LEVELS), lambda: Gamma(GammaPrior(0.8, 0.5), GammaPrior(0.3, 2.0)), BOTH),
    "multiplicative of levels": (Ordinal(LEVELS), Multiplicative, BOTH),
    "multiplicative of compound counts": (CompoundPoisson(0.7), Multiplicative, BOTH),
    "multiplicative of Poisson": (Poisson(), lambda: Multiplicative(Penalty(l1=0.2, l2=0.3)), BOTH),
    "multiplicative of Gaussian": (Gaussian(), lambda: Multiplicative(Penalty(l2=0.3)), BOTH),
    "multiplicative of Itakura-Saito": (BetaDivergence(0.0), Multiplicative, ("missing",)),
    "multiplicative of beta 3": (BetaDivergence(3.0), lambda: Multiplicative(Penalty(l1=0.1)), ("missing",)),
    "safe steps of squared levels": (Squared(Ordinal(LEVELS, pinned=True)), lambda: penalised(None), BOTH),
    "squared levels without a penalty": (Squared(Ordinal(LEVELS, pinned=True)), Multiplicative, BOTH),
    "squared counts without a penalty": (Squared(Poisson()), Multiplicative, BOTH),
    "eager steps of squared levels": (Squared(Ordinal(LEVELS, pinned=True)), lambda: penalised(0.95), BOTH),
    "eager steps of squared counts": (Squared(Poisson()), lambda: penalised(0.65), BOTH),
    "inverse-Gaussian of exponential noise": (GammaNoise(np.array([0.3, 1.0, 5.0])), InverseGaussian, ("missing",)),
    "inverse-Gaussian of gamma noise": (GammaNoise(np.array([0.3, 1.0, 5.0]), 2.5), InverseGaussian, ("missing",)),
    **{
        f"inverse-Gaussian of gamma noise {alpha}, rate {rate}": (
            GammaNoise(np.array([0.3, 1.0, 5.0]), alpha),
            partial(InverseGaussian, GammaPrior(shape, rate), GammaPrior(shape, rate)),
            ("missing",),
        )
        for alpha, shape, rate in ((0.2, 0.3, 0.5), (0.7, 1.0, None), (2.0, 2.0, None), (9.0, 2.0, 0.5))
    },
}
every_pair = pytest.mark.parametrize("pair", PAIRS)


def penalised(eager):
    return Multiplicative(Penalty(l2=0.7), eager=eager)


def draw(seed, likelihood, unseen, weighted, repeated):
    """Cells of the likelihood's kind, every row and every column with one; levels from the lowest to the highest."""
    rng = np.random.default_rng(seed)
    n, m = rng.integers(4, 12, 2).tolist()
    seen = rng.random((n, m)) < rng.choice([0.2, 0.6, 1.0])
    seen[np.arange(n), np.arange(n) % m], seen[np.arange(m) % n, np.arange(m)] = True, True
    u, i = np.nonzero(seen)
    if repeated:
        again = rng.integers(0, u.size, u.size // 2 + 1)
        u, i = np.append(u, u[again]), np.append(i, i[again])
    y = made_legal(likelihood, rng.gamma(1.0, 2.0, u.size) + (0.0 if likelihood.legal(np.zeros(1))[0] else 0.05))
    highest = int(likelihood.legal(np.arange(4.0)).sum()) if not likelihood.legal(np.array([4.0]))[0] else 0
    y[:highest] = np.arange(highest)
    weights = rng.choice([0.2, 1.0, 4.0], u.size) if weighted else None
    observed = Observed.from_cells(u, i, y, (n, m), unseen=unseen, weights=weights, duplicates="keep")
    k = rng.integers(1, 6)
    spread = rng.choice([0.3, 3.0])
    return observed, rng.gamma(spread, 1.0, (n, k)) + 1e-3, rng.gamma(spread, 1.0, (m, k)) + 1e-3


def run(likelihood, make, observed, W, H, momentum, steps):
    solver = make()
    mover = Momentum(solver) if momentum else solver
    with open_problem(likelihood, observed) as problem:
        found = [solver.init_state(problem, W, H)]
        for _ in range(steps):
            found.append(mover.epoch(problem, found[-1]))
    return solver, found


@every_pair
@A_FEW
@given(st.integers(0, 10_000), st.sampled_from(BOTH), st.booleans(), st.booleans(), st.booleans())
def test_the_objective_never_worsens(pair, seed, unseen, weighted, repeated, momentum):
    likelihood, make, meanings = PAIRS[pair]
    unseen = unseen if unseen in meanings else meanings[0]
    observed, W, H = draw(seed, likelihood, unseen, weighted, repeated)
    solver, found = run(likelihood, make, observed, W, H, momentum, 20)
    trace = np.array([state.objective for state in found])
    trace = -trace if solver.minimizes else trace[1:]  # a start without a distribution has no bound
    assert np.all(np.diff(trace) >= -1e-10 * np.abs(trace).max())
    assert trace[-1] > trace[0]


def spelled_out(observed):
    """Places, values and weights of all cells that count: the seen ones, and an unseen zero at every other place."""
    u, i, y = observed.row_of_cell(), observed.indices, observed.values
    c = np.ones(u.size) if observed.weights is None else observed.weights
    if observed.unseen == "missing":
        return u, i, y, c
    empty = np.ones(observed.shape, bool)
    empty[u, i] = False
    more_u, more_i = np.nonzero(empty)
    zeros, ones = np.zeros(more_u.size), np.ones(more_u.size)
    return np.append(u, more_u), np.append(i, more_i), np.append(y, zeros), np.append(c, ones)


@pytest.mark.parametrize("pair", [pair for pair in PAIRS if not pair.startswith(("gamma", "inverse"))])
@A_FEW
@given(st.integers(0, 10_000), st.sampled_from(BOTH), st.booleans(), st.booleans())
def test_the_loss_is_that_of_all_cells_one_by_one(pair, seed, unseen, weighted, repeated):
    """Under the likelihood as it was refitted, the penalties added."""
    likelihood, make, meanings = PAIRS[pair]
    unseen = unseen if unseen in meanings else meanings[0]
    observed, W, H = draw(seed, likelihood, unseen, weighted, repeated)
    solver, (*_, last) = run(likelihood, make, observed, W, H, False, 3)
    u, i, y, c = spelled_out(observed)
    W, H = last.rows.mean, last.columns.mean
    x = np.maximum((W[u] * H[i]).sum(1), 1e-100)
    penalty = solver.penalty
    held = sum(penalty.l1 * F.sum() + penalty.l2 / 2 * (F**2).sum() for F in (W, H))
    loss = np.sum(c * (last.likelihood.saturated(y) - last.likelihood.log_prob(y, x))) + held
    assert last.objective == pytest.approx(loss, rel=1e-9, abs=1e-9)
