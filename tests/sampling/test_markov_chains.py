"""A chain from start to end: its layout, where it starts, what is kept of it; split R-hat and effective draws."""

from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from halfseen import Status, Uncoupled
from halfseen.engines.threads import Threads
from halfseen.sampling.coupling import FIRST_PROPOSALS, PROPOSALS, CouplingRecorder, Layout
from halfseen.sampling.coupling_chain import WARM_UP, CouplingChain
from halfseen.sampling.markov_chains import Plan, mixing, sample_chains
from tests.sampling import coupling_oracle as oracle


def collection():
    """Question a: as many answers as cells; b: one lost; c: one more than asked; d: asked twice."""
    asked = [*((q, j) for q in "ab" for j in range(3)), ("c", 1), ("c", 2), ("d", 2), ("d", 0), ("d", 2)]
    answers = [*zip("aaa", (3, 1, 2), strict=True), *zip("bb", (7, 6), strict=True)]
    answers += [*zip("ccc", (4, 8, 5), strict=True), *zip("ddd", (9, 2, 0), strict=True)]
    compared = [
        ("a", 0, 1), ("a", 0, 1), ("a", 2, 1), ("b", 1, None), ("b", None, 2), ("c", 2, 1), ("d", 2, 0), ("d", 2, None)
    ]  # fmt: skip
    return Uncoupled(asked, answers, compared)


def test_the_layout_has_as_many_tokens_as_cells():
    seen = collection()
    layout = Layout.from_collection(seen)
    values = np.array([1, 2, 3, 6, 7, 4, 5, 8, 0, 2, 9.0])
    assert_array_equal(layout.rows.indptr, [0, 3, 6, 9, 12])
    assert_array_equal(layout.rows.indices, [0, 1, 2, 0, 1, 2, 1, 2, 3, 0, 2, 2])
    assert layout.shape == (4, 4)
    assert_array_equal(layout.n_answers, [3, 2, 3, 3])
    assert_allclose(layout.units, np.outer((values.mean(), values.std()), np.ones(layout.shape[0])), rtol=1e-15)
    assert_array_equal(np.flatnonzero(~layout.is_answer), [5])
    assert_allclose(layout.in_answer_units(layout.tokens)[layout.is_answer], values, rtol=0, atol=1e-12)
    assert_array_equal(layout.asked, [0, 1, 2, 3, 4, 5, 6, 7, 9, 10])
    assert_array_equal(layout.columns.indptr, [0, 3, 6, 11, 12])
    assert_array_equal(layout.rows.indices[layout.columns.order], np.sort(layout.rows.indices))
    assert_array_equal(layout.columns.indices, layout.row_of_cell[layout.columns.order])
    below, above = (
        [cells.tolist() for cells in np.split(one.cells, one.indptr[1:-1])] for one in (layout.below, layout.above)
    )
    assert below == [[1, 1], [], [1], [], [], [], [], [6], [], [], [9], []]
    assert above == [[], [0, 0, 2], [], [], [], [], [7], [], [], [10], [], []]
    assert_array_equal(np.nonzero(layout.half_known), [[4, 5, 10], [0, 1, 0]])


def test_a_chain_starts_in_the_order_of_win_rates_and_lost_answers_anywhere_at_the_mean():
    """Shrunk: (wins + 1) / (comparisons + 2), half-known ones included; ties by chance."""
    compared = [(0, 3, 0), (0, 3, 1), (0, 3, 1), (0, 3, 2), (0, 4, 3), (0, 5, None)]
    seen = Uncoupled([(0, j) for j in range(6)], [(0, j) for j in range(6)], compared)
    rates = [1 / 3, 1 / 4, 1 / 3, 5 / 7, 2 / 3, 2 / 3]  # four wins of five say more than one of one
    orders = set()
    for seed in range(40):
        chain = CouplingChain(Layout.from_collection(seen), 2, 1.0, np.random.default_rng(seed), Threads(1))
        places = np.argsort(chain.x)  # cells by rising values
        assert (np.diff(np.array(rates)[places]) >= 0).all()
        assert_array_equal(chain.cell_of_token[chain.token_of_cell], np.arange(6))
        orders.add(tuple(places))
    assert len(orders) == 4
    seen = Uncoupled([(0, j) for j in range(4)], [(0, 1), (0, 2), (0, 6)], [(0, 1, 0), (0, 3, 2)])
    lost = []
    for seed in range(60):
        chain = CouplingChain(Layout.from_collection(seen), 1, 1.0, np.random.default_rng(seed), Threads(1))
        lost.append(int(chain.cell_of_token[3]))
        assert_allclose(chain.layout.in_answer_units(chain.tokens)[3], 3.0)
    assert set(lost) == {0, 1, 2, 3}


@pytest.mark.parametrize(
    ("plan", "expected"),
    [((10, 4, 3), [6, 8, 10]), ((10, 4, 6), [5, 6, 7, 8, 9, 10]), ((10, 4, 100), [5, 6, 7, 8, 9, 10]),
     ((10, 0, 1), [10]), ((1, 0, 1), [1]), ((400, 100, 100), list(range(103, 401, 3)))],
)  # fmt: skip
def test_kept_sweeps_are_spread_evenly_up_to_the_last(plan, expected):
    assert Plan(*plan).kept().tolist() == expected


class Recorded(CouplingChain):
    """A chain that notes what it was asked for, and where it stood after every sweep."""

    def sweep(self, moves):
        super().sweep(moves)
        self.__dict__.setdefault("past", []).append(
            (moves, self.A.copy(), self.B.copy(), self.noise, self.x, self.mean.copy(), self.violations())
        )


@pytest.fixture
def recorded():
    """The chains of all runs of a test."""
    RECORDED.clear()
    return RECORDED


RECORDED = []


def run(plan, watch=None, seed=0, trust=2.0, n_chains=1, n_jobs=1, max_sweeps=None):
    layout = Layout.from_collection(collection())
    streams = np.random.default_rng(seed).spawn(n_chains)

    def make_chain(threads, number):
        chain = Recorded(layout, 2, trust, streams[number], threads)
        RECORDED.append(chain)
        chain.warm_up()
        return chain

    return layout, sample_chains(make_chain, CouplingRecorder, n_chains, Plan(*plan), n_jobs, watch, max_sweeps)


def test_what_is_kept_and_the_trace_are_what_the_chain_drew(recorded):
    layout, sampled = run((9, 3, 3))
    past = recorded[0].past
    assert [moves for moves, *_ in past] == [0] * WARM_UP + [FIRST_PROPOSALS] + [PROPOSALS] * 8
    assert WARM_UP > 0  # else the first coupling would be lost to a random start
    sweeps, draws = past[WARM_UP:], sampled.draws
    assert draws.coupling.shape == (3, 10)
    seen = collection()
    for d, number in enumerate((5, 7, 9)):
        _, A, B, noise, x, _, _ = sweeps[number - 1]
        assert_allclose(draws.A[:, d], A, rtol=1e-6)
        assert_allclose(draws.B[:, d], B[:3], rtol=1e-6)
        assert_allclose(draws.row_noise[:, d], noise.rows, rtol=1e-6)
        assert_allclose(draws.column_noise[:, d], noise.columns[:3], rtol=1e-6)
        values = layout.in_answer_units(x)[layout.asked]
        row = seen.row_of_cell()
        for cell, token in enumerate(draws.coupling[d].tolist()):
            of_row = seen.answers[seen.answer_indptr[row[cell]] : seen.answer_indptr[row[cell] + 1]]
            said = of_row[token] if token < of_row.size else draws.unknown[d, 0]
            assert_allclose(said, values[cell], rtol=0, atol=1e-9)
    assert_array_equal(draws.unknown_indptr, [0, 0, 1, 1, 1])
    assert_array_equal(draws.centre, layout.units.centre)
    assert_array_equal(draws.scale, layout.units.scale)
    layout, sampled = run((9, 3, 3))
    sweeps = recorded[0].past[WARM_UP:]
    row, column = layout.row_of_cell, layout.rows.indices
    told = sampled.trace
    for number, (_, A, B, noise, x, mean, violated) in enumerate(sweeps):
        deviations = np.sqrt(noise.rows[row] * noise.columns[column])
        assert_allclose(mean, np.einsum("ck,ck->c", A[row], B[column]), rtol=1e-10)
        assert_allclose(told["objective"][number], stats.norm.logpdf(x, mean, deviations).sum(), rtol=1e-10)
        assert told["violated"][number] == violated
        assert_allclose(told["spread"][number], mean.std(), rtol=1e-10)
        assert_allclose(told["noise"][number], np.sqrt(np.mean(deviations**2)), rtol=1e-10)
    assert all(len(values) == 9 for values in told.values())
    assert (np.diff(told["seconds"]) >= 0).all()


def test_mixing_is_of_the_sweeps_that_are_not_discarded(recorded):
    layout, sampled = run((60, 20, 10))
    told, found = sampled.trace, sampled.mixing
    names = {"violated comparisons": "violated", "log-likelihood": "objective", "spread": "spread", "noise": "noise"}
    assert set(found) == {"predicted cells", "noise of cells", *names}
    for name, key in names.items():
        draws = told[key][20:]
        assert_allclose(found[name].mean, draws.mean(), rtol=1e-12)
        assert_allclose(found[name].r_hat, oracle.split_r_hat(draws) if np.ptp(draws) else 1.0, rtol=1e-10)
    means = np.array([layout.in_answer_units(past[5]) for past in recorded[0].past[WARM_UP + 20 :]])
    r_hats = [oracle.split_r_hat(cell) for cell in means.T]
    effective = [oracle.effective_draws(cell) for cell in means.T]
    assert_allclose(found["predicted cells"].mean, means.mean(), rtol=1e-12)
    assert_allclose(found["predicted cells"].r_hat, np.quantile(r_hats, 0.9), rtol=1e-10)
    assert_allclose(found["predicted cells"].effective, np.quantile(effective, 0.1), rtol=1e-8)
    row, column = layout.row_of_cell, layout.rows.indices
    noises = [past[3] for past in recorded[0].past[WARM_UP + 20 :]]
    deviations = np.array([np.sqrt(noise.rows[row] * noise.columns[column]) for noise in noises])
    assert_allclose(found["noise of cells"].mean, deviations.mean(), rtol=1e-12)
    assert_allclose(found["noise of cells"].r_hat, np.quantile(list(map(oracle.split_r_hat, deviations.T)), 0.9))


def test_only_what_is_predicted_and_the_noise_decide(monkeypatch):
    """Of too few draws nothing is known (NaN): that has a status of its own."""
    calm = dict.fromkeys(("noise", "violated comparisons", "log-likelihood", "spread"), 9.0)
    calm |= {"predicted cells": 1.0, "noise of cells": 1.0}
    cases = [("spread", 1.2, Status.SAMPLED), ("spread", np.nan, Status.SAMPLED)]
    bad_ones = [(1.2, Status.UNMIXED), (np.inf, Status.UNMIXED), (np.nan, Status.TOO_SHORT)]
    cases += [(name, *bad) for name in ("noise of cells", "predicted cells") for bad in bad_ones]
    for name, bad, status in cases:
        told = {one: SimpleNamespace(r_hat=bad if one == name else r_hat) for one, r_hat in calm.items()}
        monkeypatch.setattr(CouplingRecorder, "mixing", lambda self, told=told: told)
        assert run((4, 1, 2))[1].status is status, (name, bad)


def assert_kept(draws, past, numbers):
    """These sweeps, numbered from 1; 0 is where the chain stood before the first."""
    assert draws.coupling.shape[0] == draws.A.shape[1] == draws.unknown.shape[0] == len(numbers)
    for d, number in enumerate(numbers):
        _, A, B, noise, *_ = past[WARM_UP + number - 1]
        assert_array_equal(draws.A[:, d], A.astype(np.float32))
        assert_array_equal(draws.B[:, d], B[:3].astype(np.float32))
        assert_array_equal(draws.row_noise[:, d], noise.rows.astype(np.float32))
        assert_array_equal(draws.column_noise[:, d], noise.columns[:3].astype(np.float32))


def test_a_callback_is_called_after_every_sweep_and_may_stop(recorded):
    """As that of `fitting.run`: with the number, and something that has an objective."""
    calls = []

    def watch(number, recorder):
        calls.append((number, recorder.objective, recorder.trace({})))
        return number == 6

    _, sampled = run((9, 3, 3), watch)
    assert sampled.status is Status.STOPPED
    assert [number for number, *_ in calls] == [1, 2, 3, 4, 5, 6]
    assert_array_equal(sampled.trace["objective"], [objective for _, objective, _ in calls])
    for number, _, trace in calls:
        for name, values in trace.items():
            assert_array_equal(sampled.trace[name][:number], values)
    assert_kept(sampled.draws, recorded[0].past, [4, 6])  # of those planned only 5 had come; 7 and 9 never did


@pytest.mark.parametrize("plan", [(30, 10, 8), (30, 3, 4), (30, 0, 30), (30, 29, 1), (30, 20, 1)], ids=str)
@pytest.mark.parametrize("done", [1, 2, 3, 7, 12, 13, 21, 29, 30])
def test_a_chain_stopped_early_keeps_what_was_planned_or_more_of_its_second_half(recorded, plan, done):
    _, sampled = run(plan, lambda number, fit: number == done)
    assert sampled.status is Status.STOPPED
    numbers = oracle.sweeps_kept_when_stopped(done, *plan)
    assert_kept(sampled.draws, recorded[0].past, numbers)
    if done == plan[0]:
        assert numbers == oracle.planned_sweeps(*plan)
    # What the sentence above promises, whatever the oracle says: enough, all late enough, evenly apart.
    assert min(done - min(plan[1], done // 2), plan[2]) / 3 <= len(numbers) <= plan[2]
    assert min(numbers) > min(plan[1], done // 2)
    assert len(set(np.diff(numbers))) <= 2
    late = slice(plan[1] if done > plan[1] else 0, None)
    assert_allclose(sampled.mixing["spread"].mean, sampled.trace["spread"][late].mean())


def test_a_chain_interrupted_in_its_first_sweep_keeps_its_start(recorded, monkeypatch):
    whole = Recorded.sweep

    def interrupted(self, moves):
        if moves:
            raise KeyboardInterrupt
        whole(self, moves)

    monkeypatch.setattr(Recorded, "sweep", interrupted)
    _, sampled = run((9, 3, 3))
    assert sampled.status is Status.INTERRUPTED
    assert_kept(sampled.draws, recorded[0].past, [0])
    assert sampled.mixing == {}
    assert sampled.trace["objective"].size == 0


def test_chains_that_have_not_mixed_go_on(recorded, monkeypatch):
    """For as many sweeps again, up to the most; the same share is discarded, what is kept is spread over the rest."""
    statuses = iter([True, True, False])
    monkeypatch.setattr(CouplingRecorder, "needs_more", property(lambda self: next(statuses)))
    _, sampled = run((12, 4, 8), max_sweeps=40)
    assert len(sampled.trace["objective"]) == len(recorded[0].past) - WARM_UP == 40
    assert next(statuses) is False  # nobody asked again after the most
    assert_kept(sampled.draws, recorded[0].past, [16, 20, 24, 26, 29, 33, 36, 40])


def test_several_chains_are_as_if_run_alone_whatever_the_threads():
    """Each from its own stream; draws chain by chain; the trace is their mean."""
    runs = [run((9, 3, 6), n_chains=3, n_jobs=n_jobs)[1] for n_jobs in (1, 2, 5)]
    for other in runs[1:]:
        for one, two in zip(runs[0].draws, other.draws, strict=True):
            assert_array_equal(one, two)
        assert_array_equal(runs[0].trace["objective"], other.trace["objective"])
    streams, layout = np.random.default_rng(0).spawn(3), Layout.from_collection(collection())
    alone = []
    for stream in streams:
        chain = CouplingChain(layout, 2, 2.0, stream, Threads(1))
        chain.warm_up()
        alone.append(sample_chains(lambda *_, chain=chain: chain, CouplingRecorder, 1, Plan(9, 3, 2), 1, None))
    assert_array_equal(runs[0].draws.A, np.concatenate([one.draws.A for one in alone], axis=1))
    assert_array_equal(runs[0].draws.coupling, np.concatenate([one.draws.coupling for one in alone]))
    assert_allclose(runs[0].trace["noise"], np.mean([one.trace["noise"] for one in alone], axis=0), rtol=1e-12)


def autoregressive(phi, size, seed=0):
    """x_t = phi x_{t-1} + noise, of variance 1 from the start on."""
    random = np.random.default_rng(seed)
    noise = random.standard_normal(size) * np.sqrt(1 - phi**2)
    x = np.empty(size)
    x[0] = random.standard_normal()
    for t in range(1, size):
        x[t] = phi * x[t - 1] + noise[t]
    return x


CHAINS = {
    "independent": autoregressive(0.0, 200),
    "slow": autoregressive(0.9, 301),
    "alternating": autoregressive(-0.6, 200),
    "drifting": autoregressive(0.5, 150) + np.linspace(0, 4, 150),
    "four draws": np.array([1.0, 3.0, 2.0, 5.0]),
    "five draws": np.array([1.0, 3.0, 2.0, 5.0, -1.0]),
    "eight draws": np.array([1.0, 2.0, 3.0, 3.0, 4.0, 5.0, 5.0, 6.0]),
    "one step": np.repeat([0.0, 1.0], 10) + 1e-3 * np.tile([0.0, 1.0], 10),
}


@pytest.mark.parametrize("draws", CHAINS.values(), ids=CHAINS)
def test_they_are_what_plain_loops_give(draws):
    found = mixing(draws)
    assert_allclose(found.mean, sum(draws) / len(draws), rtol=1e-12)
    assert_allclose(found.r_hat, oracle.split_r_hat(draws), rtol=1e-12)
    assert_allclose(found.effective, oracle.effective_draws(draws), rtol=1e-10)


@pytest.mark.parametrize("phi", [0.0, 0.5, 0.8])
def test_an_autoregressive_chain_is_worth_what_theory_says(phi):
    """n (1 - phi) / (1 + phi) draws: the mean of 40 chains, within four deviations of their own scatter and 5 %.

    Cutting the sum off, and a mean of ratios, leave a bias of a few per cent.
    """
    n = 4000
    found = np.array([mixing(autoregressive(phi, n, seed)).effective for seed in range(40)])
    expected = n * (1 - phi) / (1 + phi)
    assert abs(found.mean() - expected) < 4 * found.std() / np.sqrt(found.size) + 0.05 * expected


def test_chains_that_settled_that_drift_and_that_stand_still():
    assert abs(mixing(autoregressive(0.3, 4000)).r_hat - 1) < 0.01
    # Halves at 0 and at d, of deviation 1: r_hat^2 is nearly 1 + d^2 / 2.
    halves = autoregressive(0.0, 4000) + np.repeat([0.0, 3.0], 2000)
    assert_allclose(mixing(halves).r_hat, np.sqrt(1 + 3.0**2 / 2), rtol=0.03)
    assert mixing(np.full(50, 0.7)) == (pytest.approx(0.7), 1.0, 50.0)
    found = mixing(np.repeat([0.0, 1.0], 10))
    assert found.r_hat == np.inf
    assert found.effective < 4


@pytest.mark.parametrize("draws", [[2.0], [1.0, 2.0], [1.0, 2.0, 4.0]])
def test_of_too_few_draws_nothing_can_be_said(draws):
    """Halves of one draw have no variance; not even whether it stands still is known."""
    for these in (np.array(draws), np.full(len(draws), 3.0)):
        found = mixing(these)
        assert found.mean == pytest.approx(these.mean())
        assert np.isnan([found.r_hat, found.effective]).all()
