"""Sampling: a chain run from start to end, its draws, its convergence diagnostics, and the fit made of these."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from halfseen.arrays import Array
from halfseen.engines import Side, open_engine
from halfseen.engines.threads import Threads
from halfseen.errors import DataWarning
from halfseen.estimators.inputs import keep
from halfseen.fitting import Callback, Outcome, callbacks, iterate, run, sklearn_callbacks
from halfseen.io import observe
from halfseen.likelihoods import likelihood_for
from halfseen.model import Fit, Status
from halfseen.sampling.diagnostics import MAX_R_HAT, Mixing, Plan, mixing, worst
from halfseen.solvers import Multiplicative, Penalty, PointFactor, Problem
from halfseen.uncoupled.collection import Uncoupled
from halfseen.uncoupled.layout import Layout
from halfseen.uncoupled.posterior import AnyCoupling, Draws, SampledCoupling
from halfseen.uncoupled.pseudo_observations import observed_at_cells

if TYPE_CHECKING:
    from halfseen.uncoupled.chain import Chain

#: Sweeps of the factors alone, before the first coupling changes: else it would be lost to a random start.
WARM_UP = 5
#: Exchanges proposed per cell: in the first sweep, and in every other.
FIRST_PROPOSALS, PROPOSALS = 20, 3
#: What decides whether a chain has mixed. The log-likelihood and the spread of the means drift for long after these
#: have settled, so they are shown and do not decide.
DECIDING = ("predicted cells", "noise")
#: Number of cells whose predictions are monitored.
MONITORED_CELLS = 20
#: Quantities that are diagnosed, by their names in the trace.
MONITORED = {"noise": "noise", "violated comparisons": "violated", "log-likelihood": "objective", "spread": "spread"}
#: Largest posterior mean that is factorized whole; of larger ones, the asked cells are.
MAX_CELLS_AT_ONCE = 1 << 24


class Sweep(NamedTuple):
    """A sweep as the trace has it: log-likelihood, violated comparisons, a cell's typical deviation, spread of the
    means, seconds since the start."""

    objective: float
    violated: float
    noise: float
    spread: float
    seconds: float


class Sampled(NamedTuple):
    """Draws of a chain, how well they mixed, and, as in a `Fit`, the trace with an entry per sweep and the status."""

    draws: Draws
    mixing: dict[str, Mixing]
    trace: dict[str, Array]
    status: Status


def sample(
    layout: Layout,
    n_components: int,
    trust: float,
    plan: Plan,
    random: np.random.Generator,
    threads: Threads,
    callback: Callback | None = None,
) -> Sampled:
    """Run a chain as planned. A keyboard interrupt ends it with draws of its second half.

    `callback` is called after every sweep with its number and the recorder of the chain; a true answer stops it.
    """
    from halfseen.uncoupled.chain import Chain  # compiled code

    started = perf_counter()
    chain = Chain(layout, n_components, trust, random, threads)
    for _ in range(WARM_UP):
        chain.sweep(0)
    recorder = _Recorder(chain, plan, started)

    def sweeps() -> Iterator[_Recorder]:
        for number in range(1, plan.sweeps + 1):
            chain.sweep(PROPOSALS if number > 1 else FIRST_PROPOSALS)
            recorder.record(number)
            yield recorder

    outcome = iterate(sweeps(), max_iter=plan.sweeps, started=started, initial=recorder, callback=callback)
    return recorder.sampled(outcome.status)


class _Recorder:
    """Records every sweep of a chain, and copies the whole state of some."""

    def __init__(self, chain: Chain, plan: Plan, started: float) -> None:
        self._chain, self._layout, self._plan, self._started = chain, chain.layout, plan, started
        self._planned = set(plan.kept().tolist())
        self._kept: list[tuple[Array, ...]] = []
        self._spread: dict[int, tuple[Array, ...]] = {}
        self._stride = 1
        self._sweeps: list[Sweep] = []
        self._monitored = np.unique(np.linspace(0, chain.layout.n_cells - 1, MONITORED_CELLS).astype(np.int64))
        self._predicted: list[Array] = []
        self._start = self._copy()

    @property
    def objective(self) -> float:
        """Log-likelihood after the last sweep."""
        return self._sweeps[-1].objective

    def record(self, number: int) -> None:
        """Record a sweep, and keep it whole if it is planned to be.

        Should the chain be stopped before its end, some of all sweeps are kept besides, evenly spread.
        """
        chain = self._chain
        variance = chain.variance()
        quantities = (chain.log_likelihood(variance), chain.violations(), np.sqrt(variance.mean()), chain.mean.std())
        self._predicted.append(self._layout.in_answer_units(chain.mean[self._monitored], self._monitored))
        self._sweeps.append(Sweep._make([*map(float, quantities), perf_counter() - self._started]))
        is_planned, is_turn = number in self._planned, number % self._stride == 0
        if is_planned or is_turn:
            copy = self._copy()
            if is_planned:
                self._kept.append(copy)
            if is_turn:
                self._spread[number] = copy
            if len(self._spread) > self._plan.draws:
                self._stride *= 2
                self._spread = {one: kept for one, kept in self._spread.items() if one % self._stride == 0}

    def sampled(self, status: Status) -> Sampled:
        """What is left of a chain that ends here, with this status."""
        mixed = self.mixing()
        if status is Status.MAX_ITER:
            r_hats = np.array([mixed[name].r_hat for name in DECIDING])
            status = Status.SAMPLED if np.all(r_hats <= MAX_R_HAT) else Status.UNMIXED
            status = Status.TOO_SHORT if np.isnan(r_hats).any() else status
        return Sampled(self.draws(), mixed, self.trace(), status)

    def _copy(self) -> tuple[Array, ...]:
        """The state of the chain, in the order of `Draws`."""
        chain, layout, m = self._chain, self._layout, self._layout.n_respondents
        first = layout.rows.indptr[layout.row_of_cell[layout.asked]]
        coupling = (chain.token_of_cell[layout.asked] - first).astype(layout.token_dtype)
        small = (chain.A, chain.B[:m], chain.noise.rows, chain.noise.columns[:m])
        return (*(array.astype(np.float32) for array in small), coupling, chain.tokens[~layout.is_answer])

    def draws(self) -> Draws:
        """Draws kept, in the units of the answers.

        Those planned or, of a chain that was stopped, more from its second half at least; else its start.
        """
        layout, sweeps, kept = self._layout, len(self._sweeps), self._kept
        if sweeps < self._plan.sweeps:
            after = min(self._plan.burn, sweeps // 2)
            late = [copy for number, copy in self._spread.items() if number > after]
            kept = max(kept, late, key=len) or [self._start]
        *factors_and_noise, coupling, unknown = zip(*kept, strict=True)
        n_lost = np.diff(layout.rows.indptr) - layout.n_answers
        return Draws._make((
            *(np.stack(arrays, axis=1) for arrays in factors_and_noise), np.stack(coupling),
            layout.in_answer_units(np.stack(unknown), np.flatnonzero(~layout.is_answer)),
            np.append(0, np.cumsum(n_lost)), *layout.units,
        ))  # fmt: skip

    def trace(self) -> dict[str, Array]:
        columns = zip(*self._sweeps, strict=True) if self._sweeps else ((),) * len(Sweep._fields)
        return {name: np.array(values, np.float64) for name, values in zip(Sweep._fields, columns, strict=True)}

    def mixing(self) -> dict[str, Mixing]:
        """Of the sweeps that were not discarded; of all, if the chain was stopped before that."""
        sweeps = len(self._sweeps)
        if sweeps == 0:
            return {}
        start = self._plan.burn if sweeps > self._plan.burn else 0
        trace = self.trace()
        worse = worst([mixing(cell) for cell in np.array(self._predicted[start:]).T])
        return {"predicted cells": worse, **{name: mixing(trace[key][start:]) for name, key in MONITORED.items()}}


def fit_by_sampling(model: Any, seen: Uncoupled, attributes_of: Callable[..., dict[str, Any]]) -> None:
    """Fit by "gibbs": couplings and factors sampled together, and a non-negative factorization of the posterior mean.

    Without comparisons every coupling is equally likely, and nothing need be sampled.
    """
    collected = (seen.asked_cells, seen.answers, seen.answer_indptr)
    if seen.n_comparisons == 0:
        must, remedy = (
            "Comparisons should tell whose an answer may be.",
            (
                "Every cell gets the mean of its question's answers, and an interval that holds most of them. Collect "
                "comparisons to learn more."
            ),
        )
        warnings.warn(DataWarning(must, found="none", remedy=remedy), stacklevel=4)
        anybody = AnyCoupling(*collected)
        means = np.maximum(anybody.row_means, 0.0)[:, None] * np.full((1, model.n_components), 1 / model.n_components)
        rows, columns = PointFactor(means), PointFactor(np.ones((seen.n_respondents, model.n_components)))
        fit = Fit(rows, columns, None, {"objective": np.empty(0), "seconds": np.empty(0)}, Status.DIRECT)
        n_clipped = int((anybody.row_means < 0).sum()) * seen.n_respondents
        with sklearn_callbacks(model, seen, None, None, lambda _: {}, 0):
            keep(model, attributes_of(fit, n_clipped, anybody, diagnostics_={}))
        return

    def at_sweep(outcome: Outcome) -> dict[str, Any]:
        """Fitted attributes after a sweep: the draws so far, and the factors of the last one, W H^T = its means."""
        draws, mixed, trace, status = outcome.state.sampled(outcome.status)
        W = np.column_stack([draws.scale[:, None] * draws.A[:, -1], draws.centre])
        H = np.column_stack([draws.B[:, -1], np.ones(len(draws.B))])
        fit = Fit(PointFactor(W), PointFactor(H), None, trace, status)
        return attributes_of(fit, 0, SampledCoupling(draws, *collected), diagnostics_=mixed)

    random = np.random.default_rng(check_random_state(model.random_state).randint(2**31, size=4))
    plan = Plan(model.n_sweeps, model.n_burn, model.n_draws)
    with (
        Threads(model.n_jobs) as threads,
        open_engine(model.engine, model.n_jobs) as engine,
        callbacks(model, seen, None, None, at_sweep, model.n_sweeps) as callback,
    ):
        layout = Layout.from_collection(seen, model.scale)
        sampled = sample(layout, model.n_components, model.trust, plan, random, threads, callback)
        posterior = SampledCoupling(sampled.draws, *collected)
        if seen.n_questions * seen.n_respondents > MAX_CELLS_AT_ONCE:
            values, n_clipped = observed_at_cells(seen, posterior.likeliest().mean)
        else:
            means = posterior.means()
            n_clipped = int(np.count_nonzero(means < 0))
            values = observe(np.maximum(means, 0.0, out=means))
        solver, likelihood = Multiplicative(Penalty()), likelihood_for("frobenius")
        problem = Problem(engine, engine.place(values, Side.ROWS, Side.COLUMNS), likelihood)
        state = check_random_state(model.random_state)
        W, H = (solver.random(problem, (size, model.n_components), state) for size in values.shape)
        fit = run(problem, solver, lambda: (W, H), max_iter=model.max_iter, tol=model.tol, accelerate=True)
        status = Status.INTERRUPTED if fit.status is Status.INTERRUPTED else sampled.status
        fit = Fit(fit.rows, fit.columns, fit.likelihood, sampled.trace, status)
        keep(model, attributes_of(fit, n_clipped, posterior, diagnostics_=sampled.mixing))
