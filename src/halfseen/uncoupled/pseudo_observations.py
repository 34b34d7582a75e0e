"""One value for each asked cell, made of its question's answers and its comparisons, and their factorization.

Pseudo-observations after Kohjima (2022), or rank decoding: the answer at a cell's share of won comparisons.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from halfseen.arrays import Array
from halfseen.checkpoint import CheckpointFolder, seed_of
from halfseen.engines import Side, open_engine
from halfseen.engines.threads import Block, Threads, row_blocks
from halfseen.errors import DataError, ParameterError
from halfseen.estimators.base import check_start
from halfseen.estimators.inputs import keep
from halfseen.fitting import Outcome, callbacks, fit_at, run
from halfseen.labels import index_dtype, quoted
from halfseen.likelihoods import Likelihood, Poisson, likelihood_for
from halfseen.observed import Observed
from halfseen.solvers import Gamma, GammaPrior, Multiplicative, Penalty, Problem, Solver
from halfseen.uncoupled.collection import Uncoupled

#: lambda of each question as a multiple of w_1 + w_2.
BALANCES = {"zero": 0.0, "half": 0.5, "full": 1.0}
#: Answers per block of rows: below this, a second thread does not pay.
_ANSWERS_PER_BLOCK = 1 << 16


class PseudoObservations(NamedTuple):
    """Values at the asked cells, how many of them were below 0, and of each question w (n, 2) and lambda (n)."""

    observed: Observed
    n_clipped: int
    w: Array
    balance: Array


def error_weights(answers: Array, answer_indptr: Array, threads: Threads) -> tuple[Array, Array]:
    """w_i = argmin over w >= 0 of  Err_i(w) = mean over the answers x of row i of |x - 2 w_1 F(x) - 2 w_2 (1 - F(x))|,

    F the row's empirical distribution function: the bound of Theorem 4.2 (Eq. 3) as section 4.3 estimates it. It is a
    line in F of least absolute deviations, found exactly. Where several lines are best, the flattest is taken, with the
    lowest |w_1 - w_2|, so that w is unique and comparisons count least: if all answers of a row are x,
    w_1 = w_2 = x / 2.

    The answers ascend inside each row, `answers[answer_indptr[i]:answer_indptr[i + 1]]`. Returns w, of shape (n, 2),
    and Err_i(w_i), both NaN for a row without answers.
    """
    from halfseen.uncoupled.least_deviations import fit_lines

    ends, errors = np.empty((answer_indptr.size - 1, 2)), np.empty(answer_indptr.size - 1)

    def block(part: Block) -> None:
        rows, pointers, _ = part
        fit_lines(answer_indptr[pointers], answers, ends[rows], errors[rows])

    threads.all(block, row_blocks(answer_indptr, _ANSWERS_PER_BLOCK))
    return np.ascontiguousarray(ends[:, ::-1]) / 2.0, errors


def pseudo_observations(seen: Uncoupled, w: Array, balance: str | ArrayLike) -> PseudoObservations:
    """y_ij = z_ij / gamma_ij, with the weights gamma_ij: Eq. 4 is the sum of  gamma_ij d(y_ij | x_ij) and a constant.

        gamma = times / n_U,   gamma+ = (n_i / n_C) wins / n_i+,   gamma- = (n_i / n_C) losses / n_i-,
        z = gamma+ w_1 + gamma- w_2 + (gamma - (gamma+ + gamma-) / 2) lambda           (Eq. 4)

    Of the n_i comparisons on question i, n_i+ name their higher side and n_i- their lower one: a question's share is
    known from all of them, the cells from those that name them. With all sides known these are the paper's wins / n_C
    and losses / n_C. Where w is NaN, no answer is known: the mean of the other questions' w takes its place, and the
    mean of all answers that of y.

    `balance` is lambda: "zero", "half" or "full" of w_i1 + w_i2, a number, or one for each question. With "full" a cell
    that was never compared gets w_i1 + w_i2, about the mean of its question's answers.
    """
    unanswered = np.isnan(w[:, 0])
    w = np.where(unanswered[:, None], w[~unanswered].mean(axis=0), w)
    wins, losses, row = seen.wins(), seen.losses(), seen.row_of_cell()
    lambda_ = _check_balance(balance, w)
    # Where a question's comparisons never name the lower side (or never the higher one), lambda = 2 w_2 (or 2 w_1)
    # makes the loss do without (section 4.2).
    won, lost = (np.bincount(row, of_cells, len(w)) > 0 for of_cells in (wins, losses))
    lambda_ = np.where(won & ~lost, 2 * w[:, 1], np.where(lost & ~won, 2 * w[:, 0], lambda_))
    if not (seen.n_comparisons or (lambda_ > 0).any()):
        must = "Without comparisons, lambda must be above 0 for some question: else every pseudo-observation is 0."
        found, remedy = f"no comparison, and balance={balance!r}", 'Add comparisons, or use `balance="full"`.'
        raise DataError(must, found=found, remedy=remedy, parameter="balance")

    def at_cells(per_question: Array) -> Array:
        return np.repeat(per_question, np.diff(seen.indptr))

    share = np.diff(seen.comparison_indptr) / max(seen.n_comparisons, 1)
    y = np.zeros(wins.size)
    for w_side, counts in ((w[:, 0], wins), (w[:, 1], losses)):
        named = np.maximum(np.bincount(row, counts, minlength=share.size), 1.0)
        y += at_cells((w_side - lambda_ / 2) * share / named) * counts
    y *= y.size if seen.times is None else seen.times.sum() / seen.times
    y += at_cells(lambda_)
    y[at_cells(unanswered)] = seen.answers.mean()
    return PseudoObservations(*observed_at_cells(seen, y), w, lambda_)


def _check_balance(balance: Any, w: Array) -> Array:
    """lambda of each question."""
    if isinstance(balance, str) and balance in BALANCES:
        return BALANCES[balance] * w.sum(axis=1)
    found, remedy = repr(balance), "Choose one of these."
    try:
        numbers = None if balance is None else np.asarray(balance, dtype=np.float64)
    except (TypeError, ValueError):
        numbers = None
    if numbers is not None and numbers.shape not in ((), (len(w),)):
        found = f"an array of shape {numbers.shape} for {len(w)} questions"
        remedy = "List a number for each question, in their order."
    elif numbers is not None:
        finite = np.isfinite(numbers)
        if finite.all():
            return np.array(np.broadcast_to(numbers, len(w)))
        found, remedy = f"{numbers[~finite][0] if numbers.ndim else balance}", "Replace what is not finite."
    must = f"must be one of {', '.join(map(repr, BALANCES))}, a finite number, or one for each question."
    raise ParameterError(must, found=found, remedy=remedy, parameter="balance")


def decoded_answers(seen: Uncoupled) -> tuple[Observed, int]:
    """y_ij = Q_i(q_ij),   q_ij = (wins + 1) / (wins + losses + 2),   Q_i the quantile function of question i's answers.

    q is the mean of a cell's rank, from 0 to 1, if all ranks were equally likely before it was compared with random
    others. So an answer's q is the share of the others that lie below it: Q_i is linear between one answer and the
    next, from the lowest at 0 to the highest at 1 (NumPy's "linear"). Questions without any answer get the mean of all
    answers. Returns the values, and how many of them were below 0.
    """
    wins, row, answers = seen.wins(), seen.row_of_cell(), seen.answers
    rate = (wins + 1.0) / (wins + seen.losses() + 2.0)
    first, last = seen.answer_indptr[row], seen.answer_indptr[row + 1] - 1
    place = rate * np.maximum(last - first, 0)
    below = place.astype(np.int64)
    place -= below  # the rest of the way to the next answer
    below = np.minimum(first + below, answers.size - 1)  # rows without answers may point behind the last
    values = answers[below]
    values += place * (answers[np.maximum(np.minimum(below + 1, last), 0)] - values)
    return observed_at_cells(seen, np.where(first > last, answers.mean(), values))


def observed_at_cells(seen: Uncoupled, values: Array) -> tuple[Observed, int]:
    """The matrix, questions as rows, with `values` at its asked cells, each weighted by how often it was asked.

    Factors are never negative: values below 0 become 0, in place. Returns how many did, too.
    """
    shape = (seen.n_questions, seen.n_respondents)
    dtype = index_dtype(shape, values.size)
    n_clipped = int(np.count_nonzero(values < 0))
    observed = Observed(
        seen.indptr.astype(dtype, copy=False),
        seen.respondents.astype(dtype, copy=False),
        np.maximum(values, 0.0, out=values),
        shape,
        weights=seen.times,
        row_labels=seen.question_labels,
        column_labels=seen.respondent_labels,
    )
    return observed, n_clipped


def fit_by_loop(
    model: Any, seen: Uncoupled, attributes_of: Callable[..., dict[str, Any]], folder: CheckpointFolder | None = None
) -> None:
    """Fit by "unmf", "bayes" or "decode": values for the asked cells, and an ordinary factorization of these."""
    is_bayes = model.method == "bayes"
    likelihood: Likelihood = Poisson() if is_bayes else likelihood_for(model.loss)

    # "decode" with the squared error allows any answer: it clips what is below 0
    legal = likelihood.legal(seen.answers)
    if not (legal.all() or (likelihood.name == "frobenius" and model.method == "decode")):
        first = int(np.argmin(legal))
        question = int(np.searchsorted(seen.answer_indptr, first, side="right")) - 1
        name = question if seen.question_labels is None else quoted(seen.question_labels[question])
        found, where = f"{seen.answers[first]:g}", f"among the answers to question {name}"
        remedy = 'Shift or drop these answers, or use `method="gibbs"`.'
        raise DataError(likelihood.domain, found=found, where=where, remedy=remedy, parameter="X")
    further = {}
    if model.method == "decode":
        values, n_clipped = decoded_answers(seen)
    else:
        with Threads(model.n_jobs) as threads:
            w, errors = error_weights(seen.answers, seen.answer_indptr, threads)
        values, n_clipped, w, balance = pseudo_observations(seen, w, model.balance)
        further = {"w_": w, "balance_": balance, "error_bounds_": errors}
    illegal = int(np.count_nonzero(~likelihood.legal(values.values)))  # clipped at 0, which some losses don't allow
    if illegal:
        found = f"{illegal:,} of {values.nnz:,} cells at 0 by what the comparisons make of their question's answers"
        remedy = 'Use `loss="frobenius"` or "kullback-leibler", or another balance.'
        raise DataError(likelihood.domain, found=found, remedy=remedy, parameter="loss")

    prior = GammaPrior(model.prior_shape, model.prior_rate)
    solver: Solver[Any] = Gamma(prior, prior) if is_bayes else Multiplicative(Penalty())
    solver.check(likelihood)
    random = check_random_state(seed_of(model.random_state, folder))
    stage = None if folder is None else folder.stage("fit", random)
    sizes = [(size, model.n_components) for size in (seen.n_questions, seen.n_respondents)]
    with open_engine(model.engine, model.n_jobs) as engine:
        problem = Problem(engine, engine.place(values, Side.ROWS, Side.COLUMNS), likelihood)

        def start() -> tuple[Array, Array]:
            if isinstance(model.init, str):
                return solver.random(problem, sizes[0], random), solver.random(problem, sizes[1], random)
            is_upright = seen.questions_are == "rows"  # W0 and H0 are as the user sees the matrix
            shapes = sizes if is_upright else sizes[::-1]
            W, H = (check_start(*one, solver) for one in zip(model.init, shapes, ("W0", "H0"), strict=True))
            return (W, H) if is_upright else (H, W)

        attributes = partial(attributes_of, n_clipped=n_clipped, posterior=None, **further)

        def at_iteration(outcome: Outcome) -> dict[str, Any]:
            return attributes(fit_at(problem, solver, *outcome))

        with callbacks(model, seen, None, None, at_iteration, model.max_iter) as callback:
            fit = run(problem, solver, start, max_iter=model.max_iter, tol=model.tol, callback=callback, stage=stage)
            keep(model, attributes(fit))
