"""Factors, thresholds and seen levels in; what is certain of unseen cells out."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse import coo_array

from halfseen.arrays import Array
from halfseen.rank.uniqueness.chains import proven_levels
from halfseen.rank.uniqueness.conditions import FixedRowConditions, conditions_at
from halfseen.rank.uniqueness.exact_levels import exact_levels
from halfseen.rank.uniqueness.forcing import Sheet, forced
from halfseen.rank.uniqueness.intervals import Intervals
from halfseen.rank.uniqueness.walks import reached_on_walk
from halfseen.rank.uniqueness.witnesses import Side, mended, reached

#: The largest share of seen cells that factors may miss and still be worth mending.
_MENDABLE = 0.1


@dataclass(frozen=True)
class Question:
    """All matrices of the rank of W H', and of its form, that have the seen levels: what have they in common?"""

    W: Array
    H: Array
    thresholds: Array
    seen: coo_array
    """The seen levels, plus 1."""
    biases: bool = False
    """Whether the last column of W and the last but one of H are ones that stay."""

    @property
    def rank(self) -> int:
        return int(self.W.shape[1])

    @cached_property
    def sides(self) -> tuple[Side, Side]:
        """Rows and columns."""
        moves_of_rows, moves_of_columns = np.ones((2, self.rank), bool)
        if self.biases:
            moves_of_rows[-1] = moves_of_columns[-2] = False
        codes = self.seen.tocsr()
        codes.sort_indices()
        return (
            Side(self.W, self.H, codes, self.thresholds, moves_of_rows),
            Side(self.H, self.W, codes.T.tocsr(), self.thresholds, moves_of_columns),
        )


@dataclass(frozen=True)
class Answers:
    """Arrays with an entry a cell, levels as codes; and how many seen cells the factors miss, beyond mending."""

    level: Array
    lowest: Array
    highest: Array
    is_forced: Array
    conditions: FixedRowConditions
    missed: int


def answers(question: Question, u: Array, i: Array, effort: int, random: np.random.RandomState) -> Answers:
    """What is certain of the unseen cells (u, i)."""
    level = exact_levels(question.W[u], question.H[i], question.thresholds)
    rows, columns = _with_seen_levels(question)
    missed = rows.missed().size
    lowest, highest = (level.copy(), level.copy()) if missed else reached(rows, columns, u, i)
    is_forced = np.zeros(u.size, bool)
    left = np.flatnonzero(lowest == highest)
    sure, levels = proven(question, u[left], i[left], lowest[left], effort)
    is_forced[left[sure]] = True
    lowest[left[sure]] = highest[left[sure]] = levels[sure]
    left = left[~sure]
    if not missed:
        lowest[left], highest[left] = reached_on_walk(rows, columns, u[left], i[left], effort, random)
    return Answers(level, lowest, highest, is_forced, conditions_at(question.sides[1], question.W, u, i), missed)


def _with_seen_levels(question: Question) -> tuple[Side, Side]:
    """The factors, mended if that helps; as they are if it does not."""
    rows, columns = question.sides
    if not 0 < rows.missed().size <= _MENDABLE * question.seen.nnz:
        return rows, columns
    better = mended(rows, columns)
    return (rows, columns) if better[0].missed().size else better


def proven(question: Question, u: Array, i: Array, levels: Array, effort: int) -> tuple[Array, Array]:
    """Which cells are forced, and to which levels: to those given, but for rank one, where the levels are found."""
    if question.rank > 1:
        sheet = Sheet.of(question.seen, question.thresholds, question.rank, question.biases)
        return forced(sheet, u, i, levels, effort), levels
    known = Intervals.of_levels(question.seen.data - 1, question.seen.data - 1, question.thresholds)
    lowest, highest = proven_levels(question.seen.coords, known, question.seen.shape, question.thresholds, (u, i))
    return lowest == highest, lowest
