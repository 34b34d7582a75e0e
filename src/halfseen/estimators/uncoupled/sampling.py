"""The method that samples who gave which answer."""

import warnings
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from halfseen.coupling.placing import at_cells
from halfseen.coupling.sampling.layout import Layout
from halfseen.coupling.sampling.posterior import SampledCoupling
from halfseen.data.uncoupled import Uncoupled
from halfseen.engines import Engine, Side, open_engine
from halfseen.engines.threads import Threads
from halfseen.errors import DataWarning
from halfseen.estimators import watching
from halfseen.estimators.uncoupled.asked import Asked
from halfseen.estimators.uncoupled.found import Found
from halfseen.fitting import run
from halfseen.io import observe
from halfseen.likelihoods import likelihood_for
from halfseen.model import Fit, Status
from halfseen.observed import Observed
from halfseen.solvers import Multiplicative, Penalty, PointFactor, Problem

#: The largest posterior mean that is factorized whole; of larger ones, the asked cells are.
MOST_CELLS_AT_ONCE = 1 << 24


def by_sampling(model: Any, seen: Uncoupled) -> Found:
    """By "gibbs": couplings and factors sampled together; where nobody was compared, every coupling is as good."""
    if seen.n_comparisons == 0:
        return _without_comparisons(seen, model.n_components)
    from halfseen.coupling.sampling.running import Plan, sample

    random = np.random.default_rng(check_random_state(model.random_state).randint(2**31, size=4))
    plan = Plan(model.n_sweeps, model.n_burn, model.n_draws)
    with Threads(model.n_jobs) as threads, open_engine(model.engine, model.n_jobs) as engine:
        with watching.bar(model, model.n_sweeps) as watch:
            sampled = sample(
                Layout.of(seen, model.scale), model.n_components, model.trust, plan, random, threads, watch
            )
        posterior = SampledCoupling(sampled.draws, seen.indptr, seen.answers, seen.answer_indptr)
        fit, n_clipped = _non_negative(model, seen, engine, posterior)
    status = Status.INTERRUPTED if fit.status is Status.INTERRUPTED else sampled.status
    return Found(fit.rows, fit.columns, sampled.trace, status, n_clipped, posterior, {"diagnostics_": sampled.mixing})


def _without_comparisons(seen: Uncoupled, n_components: int) -> Found:
    warnings.warn(
        "Comparisons should tell whose an answer may be. Found none. Every cell gets the mean of its question's "
        "answers, and an interval that holds most of them. Collect comparisons to learn more.",
        DataWarning,
        stacklevel=4,
    )
    posterior = Asked.in_(seen).any_coupling(seen.answers, seen.answer_indptr)
    means = np.maximum(posterior.row_means, 0.0)[:, None]
    equal_parts = np.full((1, n_components), 1 / n_components)
    factors = PointFactor(means * equal_parts), PointFactor(np.ones((seen.n_respondents, n_components)))
    trace = {"objective": np.empty(0), "seconds": np.empty(0)}
    n_clipped = int((posterior.row_means < 0).sum()) * seen.n_respondents
    return Found(*factors, trace, Status.DIRECT, n_clipped, posterior, {"diagnostics_": {}})


def _non_negative(model: Any, seen: Uncoupled, engine: Engine, posterior: SampledCoupling) -> tuple[Fit, int]:
    """A non-negative factorization of the posterior mean, and how many of its cells were below 0."""
    values, n_clipped = _means_to_factorize(seen, posterior)
    solver = Multiplicative(Penalty())
    task = Problem(engine, engine.place(values, Side.ROWS, Side.COLUMNS), likelihood_for("frobenius"))
    random = check_random_state(model.random_state)
    sizes = [(size, model.n_components) for size in values.shape]
    start = [solver.random(task, size, random) for size in sizes]
    fit = run(task, solver, lambda: (start[0], start[1]), max_iter=model.max_iter, tol=model.tol, accelerate=True)
    return fit, n_clipped


def _means_to_factorize(seen: Uncoupled, posterior: SampledCoupling) -> tuple[Observed, int]:
    if seen.n_questions * seen.n_respondents > MOST_CELLS_AT_ONCE:
        return at_cells(seen, posterior.likeliest().mean)
    means = posterior.means()
    n_clipped = int(np.count_nonzero(means < 0))
    return observe(np.maximum(means, 0.0, out=means)), n_clipped
