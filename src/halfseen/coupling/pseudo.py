"""Pseudo-observations: what the comparisons make of a question's answers, as values of single cells."""

from typing import Any, NamedTuple

import numpy as np

from halfseen.arrays import Array
from halfseen.coupling.deviations import error_weights
from halfseen.coupling.placing import at_cells
from halfseen.data.uncoupled import Uncoupled
from halfseen.engines.threads import Threads
from halfseen.errors import DataError, ParameterError
from halfseen.observed import Observed

#: How much of w_1 + w_2 the lambda of each question is.
BALANCES = {"zero": 0.0, "half": 0.5, "full": 1.0}


class Pseudo(NamedTuple):
    """The pseudo-observations, how many of them were below 0, and of each question w (n, 2) and lambda (n)."""

    observed: Observed
    clipped: int
    w: Array
    balance: Array


def pseudo_observations(seen: Uncoupled, balance: Any, threads: Threads) -> Pseudo:
    """y_ij = z_ij / gamma_ij, with the weights gamma_ij: Eq. 4 is the sum of  gamma_ij d(y_ij | x_ij) and a constant.

    `balance` is lambda: "zero", "half" or "full" of w_i1 + w_i2, a number, or a number for each question. With "full" a
    cell that was never compared gets w_i1 + w_i2, about the mean of its question's answers.
    """
    w, _ = error_weights(seen.answers, seen.answer_indptr, threads)
    return pseudo_given(seen, w, balance)


def pseudo_given(seen: Uncoupled, w: Array, balance: Any) -> Pseudo:
    """As `pseudo_observations`, under given w.

        gamma = times / n_U,   gamma+ = (n_i / n_C) wins / n_i+,   gamma- = (n_i / n_C) losses / n_i-,
        z = gamma+ w_1 + gamma- w_2 + (gamma - (gamma+ + gamma-) / 2) lambda           (Eq. 4)

    Of the n_i comparisons on question i, n_i+ tell their higher side and n_i- their lower one: a question's share is
    known from all of them, who stands where from those that tell it. With all sides known these are the paper's
    wins / n_C and losses / n_C. Where w is NaN, no answer is known: the mean of the other questions' w takes its place,
    and the mean of all answers that of y.
    """
    silent = np.isnan(w[:, 0])
    w = np.where(silent[:, None], w[~silent].mean(axis=0), w)
    wins, losses = seen.wins(), seen.losses()
    lambda_ = _one_sided(_checked(balance, w), w, seen, wins, losses)
    if not (seen.n_comparisons or (lambda_ > 0).any()):
        raise DataError(
            "Without comparisons, lambda must be above 0 for some question: else every pseudo-observation is 0. Found "
            f'no comparison, and balance={balance!r}. Add comparisons, or use balance="full".'
        )

    def spread(per_question: Array) -> Array:
        return np.repeat(per_question, np.diff(seen.indptr))

    share = np.diff(seen.comparison_indptr) / max(seen.n_comparisons, 1)
    row = seen.row_of_cell()
    y = np.zeros(wins.size)
    for of_side, times_there in ((w[:, 0], wins), (w[:, 1], losses)):
        told = np.maximum(np.bincount(row, times_there, minlength=share.size), 1.0)
        y += spread((of_side - lambda_ / 2) * share / told) * times_there
    y *= y.size if seen.times is None else seen.times.sum() / seen.times
    y += spread(lambda_)
    y[spread(silent)] = seen.answers.mean()
    return Pseudo(*at_cells(seen, y), w, lambda_)


def _checked(balance: Any, w: Array) -> Array:
    """The lambda of each question that `balance` asks for."""
    if isinstance(balance, str) and balance in BALANCES:
        asked: Array = BALANCES[balance] * w.sum(axis=1)
        return asked
    must = f"balance must be one of {', '.join(map(repr, BALANCES))}, a finite number, or one for each question."
    if balance is None:
        raise ParameterError(f"{must} Found None. Choose one of these.")
    try:
        numbers = np.asarray(balance, dtype=np.float64)
    except (TypeError, ValueError):
        raise ParameterError(f"{must} Found {balance!r}. Choose one of these.") from None
    if numbers.shape not in ((), (len(w),)):
        found = f"an array of shape {numbers.shape} for {len(w)} questions"
        raise ParameterError(f"{must} Found {found}. List a number for each question, in their order.")
    if not np.isfinite(numbers).all():
        first = numbers[~np.isfinite(numbers)][0] if numbers.ndim else balance
        raise ParameterError(f"{must} Found {first}. Replace what is not finite.")
    return np.array(np.broadcast_to(numbers, len(w)))


def _one_sided(lambda_: Array, w: Array, seen: Uncoupled, wins: Array, losses: Array) -> Array:
    """Where a question's comparisons never tell who is lower (or never who is higher), lambda = 2 w_2 (or 2 w_1) makes
    the loss do without (section 4.2)."""
    row = seen.row_of_cell()
    won, lost = (np.bincount(row, of_cells, len(w)) > 0 for of_cells in (wins, losses))
    return np.where(won & ~lost, 2 * w[:, 1], np.where(lost & ~won, 2 * w[:, 0], lambda_))
