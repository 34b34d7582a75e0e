"""The three lists in row order: who was asked what, what was answered, who is higher than whom.

Nothing depends on the order of the lines: cells go by respondent, answers by value, comparisons by their two cells.
Stable sorts are quick where most is in order already, as lists often are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from halfseen.data.cells import counting_order


class AskedCells(NamedTuple):
    """The cells in row order, each once: `respondents[indptr[i]:indptr[i + 1]]` were asked question i.

    `times` says how often each cell was asked; None if each was asked once.
    """

    indptr: np.ndarray
    respondents: np.ndarray
    times: np.ndarray | None
    n_respondents: int

    @classmethod
    def of(cls, questions: np.ndarray, respondents: np.ndarray, shape: tuple[int, int]) -> AskedCells:
        keys = np.sort(questions.astype(np.int64) * shape[1] + respondents, kind="stable")
        starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1])) if keys.size else keys
        times = np.diff(np.append(starts, keys.size)).astype(np.float64)
        keys = keys[starts]
        indptr = np.searchsorted(keys, np.arange(shape[0] + 1, dtype=np.int64) * shape[1])
        return cls(indptr, keys % max(shape[1], 1), None if (times == 1).all() else times, shape[1])

    @property
    def n_questions(self) -> int:
        return self.indptr.size - 1

    def row_of_cell(self) -> np.ndarray:
        """The question of each cell."""
        return np.repeat(np.arange(self.n_questions), np.diff(self.indptr))

    def askings(self) -> np.ndarray:
        """How often each question was asked."""
        if self.times is None:
            return np.diff(self.indptr)
        return np.bincount(self.row_of_cell(), weights=self.times, minlength=self.n_questions).astype(np.int64)

    def find(self, questions: np.ndarray, *sides: np.ndarray) -> list[np.ndarray]:
        """The cells of the respondents on each side; -1 where these or the question are below 0, or were not asked."""
        asked = np.flatnonzero(questions >= 0)
        asked = asked[
            counting_order(questions[asked], self.n_questions)[1]
        ]  # row by row: the search stays in the cache
        keys = self.row_of_cell() * self.n_respondents + self.respondents
        starts = questions[asked].astype(np.int64) * self.n_respondents
        return [self._found(keys, asked, starts, respondents) for respondents in sides]

    @staticmethod
    def _found(keys: np.ndarray, lines: np.ndarray, starts: np.ndarray, respondents: np.ndarray) -> np.ndarray:
        wanted = np.where(respondents[lines] < 0, -1, starts + respondents[lines])
        place = np.minimum(np.searchsorted(keys, wanted), keys.size - 1)
        cells = np.full(respondents.size, -1, dtype=np.int64)
        cells[lines] = np.where(keys[place] == wanted, place, -1)
        return cells


class Answers(NamedTuple):
    """The answers row by row, ascending in each row."""

    indptr: np.ndarray
    values: np.ndarray

    @classmethod
    def of(cls, questions: np.ndarray, values: np.ndarray, n_questions: int) -> Answers:
        values = values + 0.0  # -0 becomes 0: the two are equal, and must not tell which line came first
        by_value = np.argsort(values)
        starts, by_row = counting_order(questions[by_value], n_questions)
        return cls(starts.astype(np.int64), values[by_value[by_row]])


class Comparisons(NamedTuple):
    """The comparisons row by row, by cell numbers: higher, then lower; -1 for an unknown side."""

    indptr: np.ndarray
    higher: np.ndarray
    lower: np.ndarray

    @classmethod
    def of(cls, questions: np.ndarray, higher: np.ndarray, lower: np.ndarray, indptr: np.ndarray) -> Comparisons:
        """Sorted by one number each, in which the comparisons that a row of n cells may have take (n + 1)^2 places."""
        sizes = np.diff(indptr) + 1
        starts = np.append(0, np.cumsum(sizes**2))
        local_higher, local_lower = (np.where(side < 0, 0, side - indptr[questions] + 1) for side in (higher, lower))
        keys = np.sort(starts[questions] + local_higher * sizes[questions] + local_lower, kind="stable")
        rows = np.repeat(np.arange(sizes.size), np.bincount(questions, minlength=sizes.size))
        sides = np.divmod(keys - starts[rows], sizes[rows])
        higher, lower = (np.where(side == 0, -1, side - 1 + indptr[rows]) for side in sides)
        return cls(np.searchsorted(rows, np.arange(sizes.size + 1)), higher, lower)
