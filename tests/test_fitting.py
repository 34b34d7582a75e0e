"""The loop: how runs end, and what they leave."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from halfseen.fitting import run
from halfseen.io import observe
from halfseen.likelihoods import Gaussian, Poisson
from halfseen.model import Status
from halfseen.solvers import Gamma, GammaPrior, Multiplicative, PointFactor
from tests import oracle
from tests.laws.cases import counts, half_seen, open_problem, start

X = half_seen(zeros=False)
W, H = start(*X.shape, 3)


def fit(solver=None, likelihood=None, data=X, begin=(W, H), **limits):
    limits = {"max_iter": 5, "tol": 0.0} | limits
    with open_problem(likelihood or Poisson(), observe(data)) as problem:
        return run(problem, solver or Multiplicative(), lambda: tuple(F.copy() for F in begin), **limits)


def after(steps, data=X):
    """The oracle's factors after some steps."""
    Y, C = oracle.grid(observe(data))
    factors = W, H
    for _ in range(steps):
        factors = oracle.multiplicative_step(Y, C, *factors, 1.0)
    return factors


def assert_at(fit, steps):
    """The fit stands where the oracle stands after so many steps (blank rows and columns aside)."""
    rows, columns = after(steps)
    assert_allclose(np.delete(fit.rows.mean, 5, axis=0), np.delete(rows, 5, axis=0), rtol=1e-10)
    assert_allclose(np.delete(fit.columns.mean, 7, axis=0), np.delete(columns, 7, axis=0), rtol=1e-10)
    assert fit.n_iter == len(fit.trace["objective"]) == len(fit.trace["seconds"]) == steps
    Y, C = oracle.grid(observe(X))
    expected = [oracle.loss(Y, C, *after(step), 1.0) for step in range(1, steps + 1)]
    assert_allclose(fit.trace["objective"], expected, rtol=1e-10)


class Disturbed(Multiplicative):
    """Goes wrong in a chosen epoch."""

    def __init__(self, epoch, disturb):
        super().__init__()
        self.left, self.disturb = epoch, disturb

    def epoch(self, problem, state):
        self.left -= 1
        new = super().epoch(problem, state)
        return new if self.left else self.disturb(state, new)


def interrupt(*_):
    raise KeyboardInterrupt


def test_max_iter():
    result = fit(max_iter=4)
    assert result.status is Status.MAX_ITER
    assert_at(result, 4)


def test_seconds_go_on_from_the_start():
    seconds = fit(max_iter=6).trace["seconds"]
    assert seconds[0] > 0
    assert np.all(np.diff(seconds) > 0)


def test_converged_by_the_rule_of_the_paper():
    """(previous - current) / loss at the start < tol, for the first time at the last iteration."""
    result = fit(max_iter=1000, tol=1e-3)
    Y, C = oracle.grid(observe(X))
    losses = np.concatenate([[oracle.loss(Y, C, W, H, 1.0)], result.trace["objective"]])
    gains = -np.diff(losses) / losses[0]
    assert result.status is Status.CONVERGED
    assert gains[-1] < 1e-3
    assert np.all(gains[:-1] >= 1e-3)


def test_the_bound_has_converged_when_its_relative_rise_is_small():
    result = fit(Gamma(), data=counts(), max_iter=1000, tol=1e-4)
    bounds = result.trace["objective"]
    rises = np.diff(bounds) / np.abs(bounds[1:])
    assert result.status is Status.CONVERGED
    assert rises[-1] < 1e-4
    assert np.all(rises[:-1] >= 1e-4)


def test_a_callback_sees_every_iteration_and_may_stop():
    seen = []

    def callback(iteration, state):
        seen.append((iteration, state.objective))
        return iteration == 3

    result = fit(max_iter=10, callback=callback)
    assert result.status is Status.STOPPED
    assert seen == list(enumerate(result.trace["objective"], start=1))
    assert_at(result, 3)


def test_a_callback_that_returns_nothing_stops_nothing():
    assert fit(max_iter=4, callback=lambda *_: None).status is Status.MAX_ITER


def test_an_interrupted_callback_leaves_the_iteration_it_saw():
    result = fit(max_iter=10, callback=lambda iteration, _: interrupt() if iteration == 2 else False)
    assert result.status is Status.INTERRUPTED
    assert_at(result, 2)


@pytest.mark.parametrize("epoch", [1, 3])
def test_an_interrupted_epoch_leaves_the_one_before(epoch):
    result = fit(Disturbed(epoch, interrupt), max_iter=10)
    assert result.status is Status.INTERRUPTED
    assert_at(result, epoch - 1)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("epoch", [1, 3])
def test_an_epoch_that_is_not_finite_is_not_kept(bad, epoch):
    def break_it(old, new):
        return replace(new, rows=PointFactor(np.full_like(new.rows.mean, np.nan)), objective=bad)

    result = fit(Disturbed(epoch, break_it), max_iter=10)
    assert result.status is Status.NOT_FINITE
    assert_at(result, epoch - 1)


@pytest.mark.parametrize("epoch", [1, 3])
def test_an_epoch_that_worsens_is_not_kept(epoch):
    def worsen(old, new):
        return replace(new, rows=PointFactor(7 * new.rows.mean), objective=old.objective * (1 + 1e-6))

    result = fit(Disturbed(epoch, worsen), max_iter=10)
    assert result.status is Status.WORSENED
    assert_at(result, epoch - 1)


def test_rounding_is_not_worsening():
    def hardly(old, new):
        return replace(new, objective=old.objective * (1 + 1e-14))

    result = fit(Disturbed(3, hardly), max_iter=4)
    assert result.status is Status.CONVERGED
    assert result.n_iter == 3


def test_a_falling_bound_is_worsening():
    class Falling(Gamma):
        def epoch(self, problem, state):
            new = super().epoch(problem, state)
            return new if not np.isfinite(state.objective) else replace(new, objective=state.objective - 1.0)

    result = fit(Falling(), data=counts(), max_iter=10)
    assert result.status is Status.WORSENED
    assert result.n_iter == 1


def test_a_perfect_start_has_converged():
    """Powers of two, so that nothing is rounded: the loss is 0 from the start, and gains nothing."""
    begin = 2.0 ** np.arange(4)[:, None], 2.0 ** np.arange(3)[:, None]
    result = fit(likelihood=Gaussian(), data=begin[0] @ begin[1].T, begin=begin, max_iter=10, tol=1e-4)
    assert_array_equal(result.trace["objective"], 0)
    assert_array_equal(result.rows.mean, begin[0])
    assert result.status is Status.CONVERGED


@pytest.mark.parametrize("solver", [Multiplicative(), Gamma(GammaPrior(0.4), GammaPrior(0.4))], ids=["point", "gamma"])
def test_blank_rows_and_columns_get_the_average_of_the_others(solver):
    result = fit(solver, data=np.round(X))
    assert_allclose(result.rows.mean[5], np.delete(result.rows.mean, 5, axis=0).mean(axis=0), rtol=1e-12)
    assert_allclose(result.columns.mean[7], np.delete(result.columns.mean, 7, axis=0).mean(axis=0), rtol=1e-12)


def test_blanks_are_as_uncertain_as_the_prior_of_their_side():
    result = fit(Gamma(GammaPrior(0.4), GammaPrior(2.0)), data=np.round(X))
    assert_allclose(result.rows.shape[5], 0.4)
    assert_allclose(result.columns.shape[7], 2.0)


def test_where_zeros_count_nothing_is_blank():
    with open_problem(Poisson(), observe(X, unseen="zero")) as problem:
        result = run(problem, Multiplicative(), lambda: (W, H), max_iter=3, tol=0.0)
    assert_array_equal(result.rows.mean[5], 0)
    assert_array_equal(result.columns.mean[7], 0)


def test_the_start_is_left_alone():
    begin = W.copy(), H.copy()
    with open_problem(Poisson(), observe(X)) as problem:
        run(problem, Multiplicative(), lambda: begin, max_iter=3, tol=0.0)
    assert_array_equal(begin[0], W)
    assert_array_equal(begin[1], H)


def test_the_start_takes_the_precision_of_the_data():
    result = fit(data=X.astype(np.float32))
    assert result.rows.mean.dtype == result.columns.mean.dtype == np.float32


def test_every_status_says_what_it_means():
    assert {str(status) for status in Status} == {status.name for status in Status}
    assert all(status.value.endswith(".") and len(status.value) > 20 for status in Status)
