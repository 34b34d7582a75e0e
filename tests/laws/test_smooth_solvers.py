"""What both solvers that follow slopes must obey, with every likelihood that has one everywhere."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from halfseen.engines import Side, cpu
from halfseen.errors import ParameterError
from halfseen.io import observe
from halfseen.likelihoods import Poisson
from halfseen.solvers import SGD, Momentum, Newton, Ridge, sgd
from tests import oracle
from tests.graded import oracle as graded
from tests.laws.cases import SMOOTHS, levels, open_problem, signed_start, states, weights_for

K = 2
every_smooth = pytest.mark.parametrize(("name", "likelihood"), SMOOTHS.items(), ids=SMOOTHS)
with_and_without_weights = pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
with_and_without_biases = pytest.mark.parametrize("biases", [False, True], ids=["no biases", "biases"])
both_solvers = pytest.mark.parametrize("kind", ["newton", "stochastic"])


@pytest.fixture(autouse=True)
def batches_as_asked_for(monkeypatch):
    """Small data would have batches of single cells, which take long."""
    monkeypatch.setattr(sgd, "_MIN_BATCHES", 1)


def ridge_of(biases):
    return Ridge(0.4, biases)


def prior_of(biases):
    return graded.Prior(0.4, biases)


def make(kind, biases=True, *, rate=0.1, batch=23, seed=0):
    """A new one: that of single cells has an order of its own at each epoch."""
    ridge = ridge_of(biases)
    return Newton(ridge) if kind == "newton" else SGD(ridge, rate, batch, np.random.RandomState(seed))


def start_of(shape, biases=True, seed=0, dtype=np.float64):
    factors = signed_start(*shape, K, seed, dtype)
    return [prior_of(biases).with_biases(F, side) for side, F in enumerate(factors)]


def observed_of(weighted=False, **wishes):
    Y = levels(**wishes)
    return observe(Y, cell_weight=weights_for(Y) if weighted else None)


def run_of(kind, likelihood, observed, steps, biases=True, n_jobs=1, **wishes):
    dtype = observed.dtype
    return list(
        states(
            make(kind, biases, **wishes),
            likelihood,
            observed,
            *start_of(observed.shape, biases, dtype=dtype),
            steps,
            n_jobs,
        )
    )


def assert_same(one, other, rtol=1e-9):
    for mine, theirs in ((one.rows.mean, other.rows.mean), (one.columns.mean, other.columns.mean)):
        assert_allclose(mine, theirs, rtol=rtol, atol=1e-10)
    assert_allclose(one.objective, other.objective, rtol=rtol)
    assert_allclose(one.likelihood.thresholds, other.likelihood.thresholds, rtol=rtol, atol=1e-10)


@every_smooth
@both_solvers
@with_and_without_weights
@with_and_without_biases
def test_the_penalised_loss_is_the_true_one_and_never_rises_and_thresholds_stay_ordered(
    name, likelihood, kind, weighted, biases
):
    observed = observed_of(weighted)
    Y, C = oracle.grid(observed)
    run = run_of(kind, likelihood, observed, 25, biases)
    truth = [
        graded.objective(
            graded.LOSSES[name], Y, C, s.rows.mean, s.columns.mean, s.likelihood.thresholds, prior_of(biases)
        )
        for s in run
    ]
    assert_allclose([state.objective for state in run], truth, rtol=1e-10)
    assert np.all(np.diff(truth) <= 1e-12 * truth[0])
    assert truth[-1] < 0.9 * truth[0]
    for state in run:
        assert np.all(np.diff(state.likelihood.thresholds) > 0)
        if biases:
            assert_array_equal(state.rows.mean[:, -1], 1)
            assert_array_equal(state.columns.mean[:, -2], 1)


@every_smooth
@pytest.mark.parametrize("rate", [1.0, 30.0, 1e3, 1e6])
def test_single_cells_with_any_rate_keep_thresholds_ordered_and_the_loss_from_rising(name, likelihood, rate):
    run = run_of("stochastic", likelihood, observed_of(), 6, rate=rate)
    objectives = [state.objective for state in run]
    assert np.all(np.isfinite(objectives))
    assert np.all(np.diff(objectives) <= 0)
    for state in run:
        assert np.all(np.diff(state.likelihood.thresholds) > 0)


@every_smooth
@both_solvers
def test_hard_levels_keep_thresholds_ordered(name, likelihood, kind):
    """Nearly all cells at one level, others seen once; no penalty worth the name; a start far away."""
    rng = np.random.default_rng(0)
    Y = np.full((12, 10), 2.0)
    Y[[0, 3, 5, 7], [1, 4, 2, 9]] = [0, 1, 3, 4]
    Y[rng.random(Y.shape) < 0.2] = 2
    W, H = signed_start(12, 10, K)
    solver = Newton(Ridge(1e-8)) if kind == "newton" else SGD(Ridge(1e-8), 1.0, 7, np.random.RandomState(0))
    run = list(states(solver, likelihood, observe(Y), 4 * W, 4 * H, 40))
    objectives = [state.objective for state in run]
    assert np.all(np.diff(objectives) <= 1e-9 * objectives[0])
    for state in run:
        assert np.all(np.diff(state.likelihood.thresholds) > 0)


@every_smooth
@with_and_without_weights
def test_where_newton_comes_to_rest_it_stays_and_the_loss_is_flat(name, likelihood, weighted):
    """With a prior that is strong: else to move one side after the other takes long to come there."""
    if name == "round":
        pytest.skip("hinges have corners: a step of any length may be too long there")
    observed, ridge, prior = observed_of(weighted, n=9, m=8), Ridge(3.0, True), graded.Prior(3.0, True)
    Y, C = oracle.grid(observed)
    *_, before, after = states(Newton(ridge), likelihood, observed, *start_of(observed.shape), 300)
    assert_allclose(after.objective, before.objective, rtol=1e-6)
    W, H, tau = after.rows.mean, after.columns.mean, after.likelihood.thresholds
    assert_allclose(W @ H.T, before.rows.mean @ before.columns.mean.T, atol=1e-3)
    scale = np.abs(graded.summed(graded.LOSSES[name], Y, C, W @ H.T, tau)[1]).max()
    for down in graded.slopes(graded.LOSSES[name], Y, C, W, H, tau, prior):
        assert_allclose(down, 0, atol=1e-3 * scale)
    by_tau = graded.by_thresholds(graded.LOSSES[name], Y, C, W @ H.T, tau)
    # By the first threshold and the logarithms of the gaps: gaps on their way to 0 would close if they could.
    by_step = np.cumsum(by_tau[::-1])[::-1] * np.append(1.0, np.diff(tau))
    assert_allclose(by_tau.sum() if name == "linear" else by_step, 0, atol=3e-3 * scale)


@every_smooth
@both_solvers
def test_a_masked_cell_equals_a_deleted_one(name, likelihood, kind):
    Y = levels(holes=0, blanks=False)
    masked = np.random.default_rng(4).random(Y.shape) < 0.4
    rows, columns = np.nonzero(~masked)
    nan = run_of(kind, likelihood, observe(np.where(masked, np.nan, Y)), 6)[-1]
    stored = sparse.coo_array((Y[rows, columns], (rows, columns)), Y.shape)
    weight = np.where(masked, 0.0, 1.0)
    for other in (
        observe(np.ma.array(Y, mask=masked)),
        observe(stored),
        observe(Y, cell_weight=weight),
        observe(np.where(masked, 3.0, Y), cell_weight=weight),
    ):
        assert_same(run_of(kind, likelihood, other, 6)[-1], nan)


@every_smooth
def test_a_cell_of_weight_two_equals_the_same_cell_twice(name, likelihood):
    Y = levels(blanks=False)
    rows, columns = np.nonzero(~np.isnan(Y))
    twice = np.random.default_rng(4).random(rows.size) < 0.4
    heavy = sparse.coo_array((Y[rows, columns], (rows, columns)), Y.shape)
    all_rows, all_columns = np.append(rows, rows[twice]), np.append(columns, columns[twice])
    repeated = sparse.coo_array((Y[all_rows, all_columns], (all_rows, all_columns)), Y.shape)
    assert_same(
        run_of("newton", likelihood, observe(repeated, duplicates="keep"), 6)[-1],
        run_of("newton", likelihood, observe(heavy, cell_weight=np.where(twice, 2.0, 1.0)), 6)[-1],
    )


@every_smooth
def test_rows_and_columns_are_treated_alike(name, likelihood):
    """One half-step serves both sides: from the same place, the columns of Y move as the rows of its transpose."""
    Y = levels(blanks=False)
    weight = weights_for(Y)
    W, H = signed_start(*Y.shape, K)
    solver, moved = Newton(Ridge(0.4, centred=False)), []
    for data, weights, side in ((Y, weight, Side.COLUMNS), (Y.T, weight.T, Side.ROWS)):
        with open_problem(likelihood, observe(data, cell_weight=weights)) as problem:
            near, far = (solver.init_factor(F) for F in (H, W))
            moved.append(solver.half_step(problem, near, far, side).mean)
    assert_allclose(moved[0], moved[1], rtol=1e-10)
    assert np.abs(moved[0] - H).max() > 1e-3


@every_smooth
@both_solvers
def test_an_epoch_leaves_the_state_before_it_as_it_was(name, likelihood, kind):
    observed = observed_of()
    run = states(make(kind), likelihood, observed, *start_of(observed.shape), 3)
    before = next(run), next(run)
    kept = [np.array(array) for state in before for array in (*state.rows, *state.columns)]
    thresholds = [state.likelihood.thresholds.copy() for state in before]
    list(run)
    for array, copy in zip((a for s in before for a in (*s.rows, *s.columns)), kept, strict=True):
        assert_array_equal(array, copy)
    for state, copy in zip(before, thresholds, strict=True):
        assert_array_equal(state.likelihood.thresholds, copy)


@every_smooth
@both_solvers
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_same_bits_on_one_thread_and_on_two(name, likelihood, kind, dtype, monkeypatch):
    monkeypatch.setattr(cpu, "CELLS_PER_BLOCK", 17)
    monkeypatch.setattr(cpu, "BYTES_PER_CHUNK", 8 * 19)
    observed = observed_of(weighted=True, n=30, m=20, dtype=dtype)
    one, two = (run_of(kind, likelihood, observed, 4, n_jobs=n_jobs)[-1] for n_jobs in (1, 2))
    assert one.objective == two.objective
    for mine, theirs in ((one.rows, two.rows), (one.columns, two.columns)):
        assert mine.mean.dtype == dtype
        assert_array_equal(mine.mean, theirs.mean)
    assert_array_equal(one.likelihood.thresholds, two.likelihood.thresholds)


@every_smooth
@both_solvers
def test_float32_follows_float64(name, likelihood, kind):
    observed = observed_of()
    single = replace(observed, values=observed.values.astype(np.float32))
    wide, narrow = (run_of(kind, likelihood, data, 3)[-1] for data in (observed, single))
    assert_allclose(narrow.objective, wide.objective, rtol=1e-3)
    assert_allclose(
        narrow.rows.mean @ narrow.columns.mean.T, wide.rows.mean @ wide.columns.mean.T, rtol=0.02, atol=0.02
    )


@both_solvers
def test_likelihoods_without_a_slope_everywhere_are_refused(kind):
    solver = make(kind)
    for likelihood in SMOOTHS.values():
        solver.check(likelihood)
    with pytest.raises(ParameterError, match=f"{solver.name} solver needs .*Found {Poisson.name}. Choose"):
        solver.check(Poisson())


@every_smooth
def test_with_momentum_epochs_start_ahead_and_the_loss_never_rises(name, likelihood):
    """The second epoch is the first to start ahead of its state: at F + beta (F - F before), thresholds likewise."""
    observed, solver = observed_of(), make("newton")
    with open_problem(likelihood, observed) as problem:
        mover, state = Momentum(solver), solver.init_state(problem, *start_of(observed.shape))
        run = [state]
        for _ in range(12):
            run.append(mover.epoch(problem, run[-1]))
        assert np.all(np.diff([state.objective for state in run]) <= 1e-12 * run[0].objective)
        for state in run:
            assert_array_equal(state.rows.mean[:, -1], 1)
            assert np.all(np.diff(state.likelihood.thresholds) > 0)
        s2 = (1 + np.sqrt(5)) / 2
        s3 = (1 + np.sqrt(1 + 4 * s2**2)) / 2
        now, before = run[1], run[0]
        *ahead, parameters = (
            A + (s2 - 1) / s3 * (A - B)
            for A, B in (
                (now.rows.mean, before.rows.mean),
                (now.columns.mean, before.columns.mean),
                (now.likelihood.parameters, before.likelihood.parameters),
            )
        )
        there = problem.with_likelihood(now.likelihood.with_parameters(parameters))
        jumped = solver.epoch(there, solver.state_at(there, *(solver.init_factor(F) for F in ahead)))
        expected = jumped if jumped.objective <= now.objective else solver.epoch(problem, now)
    assert_allclose(run[2].rows.mean, expected.rows.mean, rtol=1e-9, atol=1e-12)
    assert_allclose(run[2].objective, expected.objective, rtol=1e-10)
