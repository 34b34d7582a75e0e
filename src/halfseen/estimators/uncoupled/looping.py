"""The methods that give every asked cell a value of its own, and factorize these by the loop."""

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from halfseen.arrays import Array
from halfseen.coupling.decoding import decoded
from halfseen.coupling.pseudo import pseudo_observations
from halfseen.data.uncoupled import Uncoupled
from halfseen.engines import Engine, Side, open_engine
from halfseen.engines.threads import Threads
from halfseen.errors import DataError
from halfseen.estimators import watching
from halfseen.estimators.base import checked_start
from halfseen.estimators.uncoupled.found import Found
from halfseen.fitting import run
from halfseen.labels import quoted
from halfseen.likelihoods import Likelihood, Poisson, likelihood_for
from halfseen.model import Fit
from halfseen.observed import Observed
from halfseen.solvers import Gamma, GammaPrior, Multiplicative, Penalty, Problem, Solver


def by_loop(model: Any, seen: Uncoupled) -> Found:
    """By "unmf", "bayes" or "decode": values for the asked cells, and an ordinary factorization of these."""
    likelihood: Likelihood = Poisson() if model.method == "bayes" else likelihood_for(model.loss)
    _refuse_illegal(seen, likelihood, model.method)
    further = {}
    if model.method == "decode":
        values, n_clipped = decoded(seen)
    else:
        with Threads(model.n_jobs) as threads:
            values, n_clipped, w, balance = pseudo_observations(seen, model.balance, threads)
        further = {"w_": w, "balance_": balance}
    _refuse_illegal_values(values, likelihood)
    with open_engine(model.engine, model.n_jobs) as engine:
        fit = _factorized(model, seen, engine, values, likelihood)
    return Found(fit.rows, fit.columns, dict(fit.trace), fit.status, n_clipped, None, further)


def _refuse_illegal(seen: Uncoupled, likelihood: Likelihood, method: str) -> None:
    """Answers that the loss has no place for. "decode" with the squared error has one for all: below 0 counts as 0."""
    legal = likelihood.legal(seen.answers)
    if legal.all() or (likelihood.name == "frobenius" and method == "decode"):
        return
    first = int(np.argmin(legal))
    question = int(np.searchsorted(seen.answer_indptr, first, side="right")) - 1
    name = question if seen.question_labels is None else quoted(seen.question_labels[question])
    raise DataError(
        f"{likelihood.domain} Found {seen.answers[first]:g} among the answers to question {name}. "
        'Shift or drop these answers, or use method="gibbs".'
    )


def _refuse_illegal_values(values: Observed, likelihood: Likelihood) -> None:
    """What the comparisons made of legal answers may be 0, for which some losses have no place."""
    illegal = int(np.count_nonzero(~likelihood.legal(values.values)))
    if illegal:
        raise DataError(
            f"{likelihood.domain} Found {illegal:,} of {values.nnz:,} cells at 0 by what the comparisons make of their "
            'question\'s answers. Use loss="frobenius" or "kullback-leibler", or another balance.'
        )


def _factorized(model: Any, seen: Uncoupled, engine: Engine, values: Observed, likelihood: Likelihood) -> Fit:
    if model.method == "bayes":
        prior = GammaPrior(model.prior_shape, model.prior_rate)
        solver: Solver[Any] = Gamma(prior, prior)
    else:
        solver = Multiplicative(Penalty())
    solver.check(likelihood)
    task = Problem(engine, engine.place(values, Side.ROWS, Side.COLUMNS), likelihood)
    random = check_random_state(model.random_state)
    how: dict[str, Any] = {"max_iter": model.max_iter, "tol": model.tol}
    with watching.watch(model, seen, None, None, values, task) as watch:
        return run(task, solver, lambda: _start(model, seen, task, solver, random), **how, watch=watch)


def _start(
    model: Any, seen: Uncoupled, task: Problem, solver: Solver[Any], random: np.random.RandomState
) -> tuple[Array, Array]:
    sizes = [(size, model.n_components) for size in (seen.n_questions, seen.n_respondents)]
    if isinstance(model.init, str):
        return solver.random(task, sizes[0], random), solver.random(task, sizes[1], random)
    turned = seen.questions_are == "columns"
    W, H = (
        checked_start(given, size, name, solver)
        for given, size, name in zip(model.init, sizes[::-1] if turned else sizes, ("W0", "H0"), strict=True)
    )
    return (H, W) if turned else (W, H)
