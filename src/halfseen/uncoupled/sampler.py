"""The fit of `UncoupledNMF` by sampling: chains, and a non-negative factorization of the posterior mean."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from halfseen.checkpoint import CheckpointFolder, Stage, seed_of
from halfseen.engines import Side, open_engine
from halfseen.engines.threads import Threads
from halfseen.errors import DataWarning, ParameterError
from halfseen.estimators.inputs import keep
from halfseen.fitting import Callback, Outcome, callbacks, run, sklearn_callbacks
from halfseen.io import observe
from halfseen.likelihoods import likelihood_for
from halfseen.model import Fit, Status
from halfseen.sampling.coupling import CouplingRecorder, Layout
from halfseen.sampling.markov_chains import Plan, Sampled, sample_chains
from halfseen.solvers import Multiplicative, Penalty, PointFactor, Problem
from halfseen.uncoupled.collection import Uncoupled
from halfseen.uncoupled.posterior import AnyCoupling, SampledCoupling
from halfseen.uncoupled.pseudo_observations import observed_at_cells

#: Numbers of components that "auto" chooses from, the share of compared pairs that it hides, and the fewest pairs.
CHOICES, HIDDEN, MIN_PAIRS = tuple(range(1, 9)), 0.1, 50
#: Length of the chains that it runs.
SHORT = Plan(sweeps=120, burn=40, draws=160)
#: Largest posterior mean that is factorized whole; of larger ones, the asked cells are.
MAX_CELLS_AT_ONCE = 1 << 24


def fit_by_sampling(
    model: Any, seen: Uncoupled, attributes_of: Callable[..., dict[str, Any]], folder: CheckpointFolder | None = None
) -> None:
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
        k = 1 if model.n_components == "auto" else model.n_components
        means = np.maximum(anybody.row_means, 0.0)[:, None] * np.full((1, k), 1 / k)
        rows, columns = PointFactor(means), PointFactor(np.ones((seen.n_respondents, k)))
        fit = Fit(rows, columns, None, {"objective": np.empty(0), "seconds": np.empty(0)}, Status.DIRECT)
        n_clipped = int((anybody.row_means < 0).sum()) * seen.n_respondents
        with sklearn_callbacks(model, seen, None, None, lambda _: {}, 0):
            keep(model, attributes_of(fit, n_clipped, anybody, diagnostics_={}))
        return

    def at_sweep(outcome: Outcome) -> dict[str, Any]:
        """Fitted attributes after a sweep: the draws so far, and the factors of the last one, W H^T = its means."""
        draws, mixed, trace, status = outcome.state.sampled(outcome.status, outcome.trace)
        W = np.column_stack([draws.scale[:, None] * draws.A[:, -1], draws.centre])
        H = np.column_stack([draws.B[:, -1], np.ones(len(draws.B))])
        fit = Fit(PointFactor(W), PointFactor(H), None, trace, status)
        return attributes_of(fit, 0, SampledCoupling(draws, *collected), diagnostics_=mixed)

    seed = seed_of(model.random_state, folder)
    random = np.random.default_rng(check_random_state(seed).randint(2**31, size=4))
    streams = [random, *random.spawn(model.n_chains - 1)]
    plan = Plan(model.n_sweeps, model.n_burn, model.n_draws)
    most = max(plan.sweeps, 2 * plan.sweeps if model.max_sweeps is None else model.max_sweeps)
    with (
        open_engine(model.engine, model.n_jobs) as engine,
        callbacks(model, seen, None, None, at_sweep, most, plan.sweeps) as callback,
    ):
        k = model.n_components
        if k == "auto":
            k = choose_n_components(model, seen, random.spawn(1)[0], folder)
        layout = Layout.from_collection(seen, model.scale)
        stage = None if folder is None else folder.stage("sweeps", *streams)
        sampled = sample(model, layout, k, streams, plan, callback, most, stage)
        posterior = SampledCoupling(sampled.draws, *collected)
        if seen.n_questions * seen.n_respondents > MAX_CELLS_AT_ONCE:
            values, n_clipped = observed_at_cells(seen, posterior.likeliest().mean)
        else:
            means = posterior.means()
            n_clipped = int(np.count_nonzero(means < 0))
            values = observe(np.maximum(means, 0.0, out=means))
        solver, likelihood = Multiplicative(Penalty()), likelihood_for("frobenius")
        problem = Problem(engine, engine.place(values, Side.ROWS, Side.COLUMNS), likelihood)
        state = check_random_state(seed)
        W, H = (solver.random(problem, (size, k), state) for size in values.shape)
        stage = None
        if folder is not None and sampled.status not in (Status.INTERRUPTED, Status.STOPPED):  # which may go on
            stage = folder.stage("fit", state)
        fit = run(problem, solver, lambda: (W, H), max_iter=model.max_iter, tol=model.tol, accelerate=True, stage=stage)
        status = Status.INTERRUPTED if fit.status is Status.INTERRUPTED else sampled.status
        fit = Fit(fit.rows, fit.columns, fit.likelihood, sampled.trace, status)
        keep(model, attributes_of(fit, n_clipped, posterior, diagnostics_=sampled.mixing))


def sample(
    model: Any, layout: Layout, k: int, streams: list[np.random.Generator], plan: Plan,
    callback: Callback | None = None, max_sweeps: int | None = None, stage: Stage | None = None,
    saves_end: bool = True,
) -> Sampled:  # fmt: skip
    """Chains of `model`, one for each stream of random numbers."""
    from halfseen.sampling.coupling_chain import CouplingChain  # compiled code

    def make_chain(threads: Threads, number: int) -> CouplingChain:
        return CouplingChain(layout, k, model.trust, streams[number], threads)

    return sample_chains(
        make_chain, CouplingRecorder, len(streams), plan, model.n_jobs, callback, max_sweeps,
        warm_up=CouplingChain.warm_up, stage=stage, saves_end=saves_end,
    )  # fmt: skip


def choose_n_components(
    model: Any, seen: Uncoupled, random: np.random.Generator, folder: CheckpointFolder | None = None
) -> int:
    """The number of components by which hidden comparisons are predicted best, or the least that is about as good.

    A tenth of the compared pairs are hidden, with all their comparisons. The score of a hidden comparison is the
    logarithm of the share of draws, of short chains, in which it holds. Of the numbers whose mean score is within one
    standard error of the best one's, by differences at the same comparisons, the smallest is taken.
    """
    pairs = np.sort(np.stack([seen.higher, seen.lower]), axis=0)
    whole = pairs[0] >= 0
    _, pair = np.unique(pairs[:, whole], axis=1, return_inverse=True)
    count = int(pair.max()) + 1 if pair.size else 0
    if count < MIN_PAIRS:
        must = f'must be a number where fewer than {MIN_PAIRS} pairs are compared: "auto" chooses it by some of these.'
        remedy = "Choose a small number, such as 2."
        raise ParameterError(must, found=f"{count} pairs", remedy=remedy, parameter="n_components")
    is_hidden = np.zeros(seen.higher.size, bool)
    chosen = random.permutation(count)[: round(HIDDEN * count)]
    is_hidden[whole] = np.isin(pair.reshape(-1), chosen)
    layout = Layout.from_collection(seen, model.scale, is_hidden)
    scores = []
    for k in CHOICES:
        streams = random.spawn(model.n_chains)
        stage = None if folder is None else folder.stage(f"k = {k}", *streams)
        record = None if stage is None else stage.load()
        if folder is not None and record is not None and record.status is Status.DIRECT:
            scores.append(folder.unpack(record.value))
            continue
        sampled = sample(model, layout, k, streams, SHORT, stage=stage, saves_end=False)
        if sampled.status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        posterior = SampledCoupling(sampled.draws, seen.asked_cells, seen.answers, seen.answer_indptr)
        higher, lower = (posterior.values_at(cells[is_hidden]) for cells in (seen.higher, seen.lower))
        score = np.log(((higher >= lower).sum(axis=0) + 1) / (len(higher) + 2))
        scores.append(score)
        if stage is not None:  # the score in the place of the draws
            stage.end(0, Status.DIRECT, partial(np.asarray, score))
    mean = np.mean(scores, axis=1)
    below = scores[int(np.argmax(mean))] - np.array(scores)
    errors = below.std(axis=1, ddof=1) / np.sqrt(below.shape[1])
    return CHOICES[int(np.argmax(below.mean(axis=1) <= errors))]
