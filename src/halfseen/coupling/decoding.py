"""Rank decoding: a cell's share of comparisons won tells its place among the answers."""

from typing import NamedTuple

import numpy as np

from halfseen.arrays import Array
from halfseen.coupling.placing import at_cells
from halfseen.data.uncoupled import Uncoupled
from halfseen.observed import Observed


class Decoded(NamedTuple):
    """The decoded values, and how many of them were below 0."""

    observed: Observed
    clipped: int


def decoded(seen: Uncoupled) -> Decoded:
    """y_ij = Q_i(q_ij),   q_ij = (wins + 1) / (wins + losses + 2),   Q_i the quantile function of question i's answers.

    q is the mean of a cell's rank, from 0 to 1, when all ranks were as likely before it was compared with others drawn
    by lot. So an answer's q is the share of the others that lie below it: Q_i runs straight between one answer and the
    next, from the lowest at 0 to the highest at 1 (NumPy's "linear"). Questions of which no answer is known get the
    mean of all answers.
    """
    wins = seen.wins()
    rate = (wins + 1.0) / (wins + seen.losses() + 2.0)
    return Decoded(*at_cells(seen, _quantiles(seen.answers, seen.answer_indptr, seen.row_of_cell(), rate)))


def _quantiles(answers: Array, indptr: Array, row: Array, rate: Array) -> Array:
    """For each cell the quantile at `rate` of its row's answers, which rise."""
    first, last = indptr[row], indptr[row + 1] - 1
    place = rate * np.maximum(last - first, 0)
    below = place.astype(np.int64)
    place -= below  # what is left of the way to the next answer
    below = np.minimum(first + below, answers.size - 1)  # rows without answers may point behind the last
    values: Array = answers[below]
    values += place * (answers[np.maximum(np.minimum(below + 1, last), 0)] - values)
    return np.where(first > last, answers.mean(), values)
