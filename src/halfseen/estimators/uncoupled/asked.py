"""Which cells were asked, and their numbers."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from halfseen.arrays import Array
from halfseen.coupling.sampling.unsampled import AnyCoupling
from halfseen.data.uncoupled import Uncoupled
from halfseen.estimators.seen import Seen


@dataclass(frozen=True)
class Asked:
    """Respondents listed for each question, respondents[indptr[i]:indptr[i + 1]], ascending; `askings` says how often
    each question was asked, which is more if somebody was asked twice."""

    indptr: Array
    respondents: Array
    n_respondents: int
    askings: Array

    @classmethod
    def in_(cls, seen: Uncoupled) -> "Asked":
        askings = np.bincount(seen.row_of_cell(), seen.times, minlength=seen.n_questions)
        return cls(seen.indptr, seen.respondents, seen.n_respondents, askings)

    def any_coupling(self, answers: Array, answer_indptr: Array) -> AnyCoupling:
        """What would be known without comparisons."""
        return AnyCoupling(self.indptr, self.askings, self.n_respondents, answers, answer_indptr)

    def rows(self) -> Array:
        """The question of every cell."""
        return np.repeat(np.arange(self.indptr.size - 1), np.diff(self.indptr))

    @cached_property
    def _keys(self) -> Array:
        return self.rows() * self.n_respondents + self.respondents

    def cells_at(self, rows: Array, columns: Array) -> Array:
        """The number of the cell at each pair of a question and a respondent, -1 where nobody was asked."""
        wanted = rows * np.int64(self.n_respondents) + columns
        places = np.minimum(np.searchsorted(self._keys, wanted), self._keys.size - 1)
        return np.where(self._keys[places] == wanted, places, -1)

    def seen(self, turned: bool) -> Seen:
        """The same as the rows of the user's matrix list them; `turned` if respondents are its rows."""
        if not turned:
            return Seen(self.indptr, self.respondents, self.n_respondents)
        order = np.argsort(self.respondents, kind="stable")
        counts = np.bincount(self.respondents, minlength=self.n_respondents)
        return Seen(np.append(0, np.cumsum(counts)), self.rows()[order], self.indptr.size - 1)
