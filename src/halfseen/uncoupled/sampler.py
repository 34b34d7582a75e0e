"""The fit of `UncoupledNMF` by sampling: chains, and a non-negative factorization of the posterior mean."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from halfseen.engines import Side, open_engine
from halfseen.engines.threads import Threads
from halfseen.errors import DataWarning
from halfseen.estimators.inputs import keep
from halfseen.fitting import Outcome, callbacks, run, sklearn_callbacks
from halfseen.io import observe
from halfseen.likelihoods import likelihood_for
from halfseen.model import Fit, Status
from halfseen.sampling.coupling import CouplingRecorder, Layout
from halfseen.sampling.markov_chains import Plan, sample_chains
from halfseen.solvers import Multiplicative, Penalty, PointFactor, Problem
from halfseen.uncoupled.collection import Uncoupled
from halfseen.uncoupled.posterior import AnyCoupling, SampledCoupling
from halfseen.uncoupled.pseudo_observations import observed_at_cells

#: Largest posterior mean that is factorized whole; of larger ones, the asked cells are.
MAX_CELLS_AT_ONCE = 1 << 24


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
        draws, mixed, trace, status = outcome.state.sampled(outcome.status, outcome.trace)
        W = np.column_stack([draws.scale[:, None] * draws.A[:, -1], draws.centre])
        H = np.column_stack([draws.B[:, -1], np.ones(len(draws.B))])
        fit = Fit(PointFactor(W), PointFactor(H), None, trace, status)
        return attributes_of(fit, 0, SampledCoupling(draws, *collected), diagnostics_=mixed)

    from halfseen.sampling.coupling_chain import CouplingChain  # compiled code

    random = np.random.default_rng(check_random_state(model.random_state).randint(2**31, size=4))
    streams = [random, *random.spawn(model.n_chains - 1)]
    plan = Plan(model.n_sweeps, model.n_burn, model.n_draws)
    most = max(plan.sweeps, 3 * plan.sweeps if model.max_sweeps is None else model.max_sweeps)
    with (
        open_engine(model.engine, model.n_jobs) as engine,
        callbacks(model, seen, None, None, at_sweep, most) as callback,
    ):
        layout = Layout.from_collection(seen, model.scale)

        def make_chain(threads: Threads, number: int) -> CouplingChain:
            chain = CouplingChain(layout, model.n_components, model.trust, streams[number], threads)
            chain.warm_up()
            return chain

        sampled = sample_chains(make_chain, CouplingRecorder, model.n_chains, plan, model.n_jobs, callback, most)
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
