"""Momentum: the extrapolation is the formula's, and what does not gain is not kept."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from halfseen.io import observe
from halfseen.likelihoods import Gaussian, Ordinal, Poisson
from halfseen.solvers import Gamma, Momentum, Multiplicative, Penalty
from tests.laws.cases import counts, half_seen, open_problem, start


def levels_of(unseen):
    return observe(np.minimum(counts(30, 20), 3), unseen=unseen)


def counts_of(unseen):
    return observe(counts(30, 20), unseen=unseen)


CASES = {
    "Poisson": (Gamma, Poisson(), counts_of),
    "ordinal": (Gamma, Ordinal(np.array([0.4, 0.3, 0.3])), levels_of),
    "Frobenius": (
        lambda: Multiplicative(Penalty(l2=0.3)),
        Gaussian(),
        lambda unseen: observe(half_seen(30, 20, zeros=False, blanks=False), unseen=unseen),
    ),
}


def run(solver, mover, problem, steps, k=4, seed=0):
    n, m = problem.cells.observed.shape
    state = solver.init_state(problem, *start(n, m, k, seed))
    for _ in range(steps):
        yield state
        state = mover.epoch(problem, state)
    yield state


def by_hand(solver, problem, steps, k=4):
    """The same in plain NumPy around the solver's epochs: extrapolate logarithms, keep what gains."""
    n, m = problem.cells.observed.shape
    state = solver.init_state(problem, *start(n, m, k))
    before, s = None, 1.0
    better = np.less_equal if solver.minimizes else np.greater_equal
    for _ in range(steps):
        new, s_next = None, (1 + np.sqrt(1 + 4 * s**2)) / 2
        if before is not None and abs(state.objective - before.objective) <= solver.momentum_below * abs(
            state.objective
        ):
            beta, sides = (s - 1) / s_next, []
            for now, then in ((state.rows, before.rows), (state.columns, before.columns)):
                ahead = {}
                for name in now.extrapolated:
                    log, log_then = np.log(getattr(now, name)), np.log(getattr(then, name))
                    ahead[name] = np.exp(log + beta * np.clip(log - log_then, -np.log(20), np.log(20)))
                sides.append(now._replace(**ahead))
            new = solver.epoch(problem, solver.state_at(problem.with_likelihood(state.likelihood), *sides))
            new = new if better(new.objective, state.objective) else None
        if new is None:
            s_next = (1 + np.sqrt(5)) / 2
            again = solver.state_at(problem.with_likelihood(state.likelihood), state.rows, state.columns)
            new = solver.epoch(problem, again)
        before, state, s = state, new, s_next
    return state


@pytest.mark.parametrize("case", CASES)
def test_states_are_those_worked_out_by_hand(case):
    make, likelihood, data = CASES[case]
    solver = make()
    with open_problem(likelihood, data("zero")) as problem:
        *_, last = run(solver, Momentum(solver), problem, 30)
        wanted = by_hand(make(), problem, 30)
    assert_allclose(last.rows.mean, wanted.rows.mean, rtol=1e-8, atol=1e-12)
    assert_allclose(last.columns.mean, wanted.columns.mean, rtol=1e-8, atol=1e-12)
    assert_allclose(last.objective, wanted.objective, rtol=1e-10)


def test_the_first_epochs_of_a_gamma_posterior_are_plain():
    """As long as one raises the bound by more than `momentum_below` of its size."""
    observed = counts_of("zero")
    solver = Gamma()
    with open_problem(Poisson(), observed) as problem:
        plain = list(run(solver, solver, problem, 40))
        quick = list(run(solver, Momentum(solver), problem, 40))
    bounds = np.array([state.objective for state in plain[1:]])
    wild = 2 + int(np.argmax(np.diff(bounds) <= solver.momentum_below * np.abs(bounds[1:])))
    assert 3 < wild < 40
    for number, (slow, fast) in enumerate(zip(plain, quick, strict=True)):
        assert np.array_equal(slow.rows.mean, fast.rows.mean) == (number <= wild)


class Wary(Multiplicative):
    """A solver that gets nowhere from ahead."""

    def epoch(self, problem, state, **options):
        new = super().epoch(problem, state, **options)
        return replace(new, objective=np.nan) if state.objective == np.inf else new


def test_what_does_not_gain_is_done_again_without_momentum():
    observed = observe(half_seen(30, 20), unseen="missing")
    with open_problem(Gaussian(), observed) as problem:
        solver = Wary()
        *_, last = run(solver, Momentum(solver), problem, 10)
        *_, plain = run(solver, solver, problem, 10)
    assert_array_equal(last.rows.mean, plain.rows.mean)
    assert last.objective == plain.objective
