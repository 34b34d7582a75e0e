"""Single cells in random order: where they lead, and what a bad epoch does."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from halfseen.engines import Side
from halfseen.fitting import run
from halfseen.io import observe
from halfseen.solvers import SGD, Newton, Ridge, sgd
from tests import oracle
from tests.graded import oracle as graded
from tests.laws.cases import SMOOTHS, levels, open_problem, signed_start, states, weights_for

PRIOR = graded.Prior(1.0, True)


def solver(rate=0.1, batch=30, seed=0, l2=1.0):
    return SGD(Ridge(l2, True), rate, batch, np.random.RandomState(seed))


def start(shape):
    return [PRIOR.with_biases(F, side) for side, F in enumerate(signed_start(*shape, 2))]


@pytest.mark.parametrize("name", ["linear", "multi-sigmoid", "logit", "loglog"])
def test_it_comes_to_about_the_loss_of_newton(name):
    """On a problem of which each row has seen much and the prior is strong."""
    observed, ridge = observe(levels(60, 40)), Ridge(5.0, True)
    begun = [ridge.initialize(F, side) for F, side in zip(signed_start(60, 40, 2), Side, strict=True)]
    with open_problem(SMOOTHS[name], observed) as problem:
        one, other = (
            run(problem, one, lambda: begun, max_iter=60, tol=1e-6)
            for one in (Newton(ridge), SGD(ridge, 0.3, 100, np.random.RandomState(0)))
        )
    assert other.trace["objective"][-1] < 1.1 * one.trace["objective"][-1]


@pytest.mark.parametrize("name", ["linear", "logit"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("fewest", [1, 10])
def test_an_epoch_is_the_oracles(name, weighted, fewest, monkeypatch):
    """Slopes at the factors before a batch, of which there are enough; then one cell after another; then the
    parameters, by the same x. The seed settles the order, in which every cell comes once."""
    monkeypatch.setattr(sgd, "_MIN_BATCHES", fewest)
    Y = levels(blanks=False)
    observed = observe(Y, cell_weight=weights_for(Y) if weighted else None)
    W, H = start(observed.shape)
    likelihood, rate, batch = SMOOTHS[name], 0.01, 20
    *_, state = states(solver(rate, batch), likelihood, observed, W, H, 1)
    batch = min(batch, observed.nnz // fewest)
    order = np.random.RandomState(0).permutation(observed.nnz)
    rows, columns = observed.row_of_cell(), observed.indices
    weights = np.ones(observed.nnz) if observed.weights is None else observed.weights
    past, seen = [np.zeros(len(W)), np.zeros(len(H))], (observed.seen_per_row(), observed.seen_per_column())
    pulls = [(PRIOR.weights(4), PRIOR.centre(4, side), PRIOR.held(4, side)) for side in (0, 1)]
    tau, squares = likelihood.thresholds, np.zeros(likelihood.parameters.size)
    for first in range(0, observed.nnz, batch):
        which = order[first : first + batch]
        u, i, y, c = rows[which], columns[which], observed.values[which], weights[which]
        x = np.einsum("ck,ck->c", W[u], H[i])
        slope = c * graded.LOSSES[name](y, x, tau)[1]
        W, H, past = graded.descended(list(zip(u, i, strict=True)), slope, W, H, rate, past, seen, pulls)
        by_tau = graded.by_thresholds(graded.LOSSES[name], y[None], c[None], x[None], tau)
        if name == "linear":  # the offset moves all thresholds, the other way
            gradient = np.array([-by_tau.sum()])
            squares += gradient**2
            tau = tau + rate * gradient / np.sqrt(squares)
        else:
            gradient = np.cumsum(by_tau[::-1])[::-1] * np.append(1.0, np.diff(tau))
            squares += gradient**2
            steps = np.append(tau[0], np.log(np.diff(tau))) - rate * gradient / np.sqrt(squares)
            tau = np.cumsum(np.append(steps[0], np.exp(steps[1:])))
    assert_allclose(state.rows.mean, W, rtol=1e-6, atol=1e-8)
    assert_allclose(state.columns.mean, H, rtol=1e-6, atol=1e-8)
    assert_allclose(state.likelihood.thresholds, tau, rtol=1e-6, atol=1e-8)
    values, C = oracle.grid(observed)
    assert_allclose(state.objective, graded.objective(graded.LOSSES[name], values, C, W, H, tau, PRIOR), rtol=1e-6)


def test_epochs_that_make_it_worse():
    observed = observe(levels())
    run_of = list(states(solver(rate=0.8, batch=200), SMOOTHS["linear"], observed, *start(observed.shape), 8))
    rates = [state.kept.learning_rate for state in run_of]
    assert rates[0] == 0.8
    assert rates[-1] < 0.8
    assert np.all(np.diff(rates) <= 0)
    halvings = np.log2(0.8 / np.array(rates))
    assert_allclose(halvings, np.round(halvings))
    assert np.all(np.diff([state.objective for state in run_of]) <= 0)
    observed = observe(levels())
    with open_problem(SMOOTHS["logit"], observed) as problem:
        fit = run(problem, Newton(Ridge(1.0, True)), lambda: start(observed.shape), max_iter=2000, tol=1e-13)
        best = fit.rows.mean.copy(), fit.columns.mean.copy()
        problem = problem.with_likelihood(fit.likelihood)
        stuck = solver(rate=5.0, batch=10)
        state = stuck.init_state(problem, *best)
        after = stuck.epoch(problem, state)
    assert after.objective <= state.objective
    assert after.objective > state.objective * (1 - 1e-6)
