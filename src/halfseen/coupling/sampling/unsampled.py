"""What is known of cells when nobody was compared: every coupling is as likely as any other."""

from __future__ import annotations

import numpy as np
from scipy.special import stdtrit

from halfseen.arrays import Array
from halfseen.coupling.sampling.posterior import Likeliest, outward


class AnyCoupling:
    """Every answer of a question may be anybody's: all that is known of a cell are its question's answers.

    Questions without an answer have the mean of all answers. `askings` says how often each question
    was asked.
    """

    def __init__(self, indptr: Array, askings: Array, n_respondents: int, answers: Array, answer_indptr: Array) -> None:
        self._askings, self._indptr, self._n_respondents = askings, indptr, n_respondents
        self.answers, self.answer_indptr = answers, answer_indptr
        counts = np.diff(answer_indptr)
        row = np.repeat(np.arange(counts.size), counts)
        sums = np.bincount(row, answers, minlength=counts.size)
        self.row_means = np.where(counts > 0, sums / np.maximum(counts, 1), answers.mean())

    def means_at(self, rows: Array, columns: Array, cells: Array) -> Array:
        """The mean of the question's answers."""
        means: Array = self.row_means[rows]
        return means

    def means(self) -> Array:
        """The same for every cell."""
        return np.repeat(self.row_means[:, None], self._n_respondents, axis=1)

    def quantiles_at(self, rows: Array, columns: Array, cells: Array, shares: tuple[float, ...]) -> list[Array]:
        """Of the question's answers where it was asked; elsewhere of one more answer like them."""
        counts = np.diff(self.answer_indptr)[rows]
        own = (cells >= 0) & (counts > 0)
        out = []
        for share in shares:
            places = np.minimum(self.answer_indptr[rows] + outward(share, counts), self.answers.size - 1)
            out.append(np.where(own, self.answers[places], self._of_one_more(rows, share)))
        return out

    def _of_one_more(self, rows: Array, share: float) -> Array:
        """mean + t s sqrt(1 + 1 / n), Student's t with n - 1 degrees of freedom; with fewer than two answers, s and the
        degrees of freedom are those of all answers about all their mean."""
        counts = np.diff(self.answer_indptr)
        row = np.repeat(np.arange(counts.size), counts)
        squares = np.bincount(row, (self.answers - self.row_means[row]) ** 2, minlength=counts.size)
        freedom = np.where(counts > 1, counts - 1, max(self.answers.size - 1, 1))
        variance = np.where(counts > 1, squares, np.sum((self.answers - self.answers.mean()) ** 2)) / freedom
        reach = stdtrit(freedom, share) * np.sqrt(variance * (1 + 1 / np.maximum(counts, 1)))
        quantiles: Array = (self.row_means + reach)[rows]
        return quantiles

    def likeliest(self) -> Likeliest:
        """Every question's most frequent answer, and its share among those asked or answering, whichever are more."""
        counts, asked = np.diff(self.answer_indptr), np.diff(self._indptr)
        answer, times = np.full(counts.size, np.nan), np.zeros(counts.size)
        starts = np.ones(self.answers.size, bool)
        starts[1:] = self.answers[1:] != self.answers[:-1]
        starts[self.answer_indptr[:-1][counts > 0]] = True
        runs = np.flatnonzero(starts)
        lengths = np.diff(np.append(runs, self.answers.size))
        row_of_run = np.searchsorted(self.answer_indptr, runs, side="right") - 1
        best = np.lexsort((-runs, lengths, row_of_run))  # the last of each row is its longest, earliest run
        last = np.append(np.flatnonzero(np.diff(row_of_run[best])), best.size - 1)
        chosen = best[last]
        answer[row_of_run[chosen]] = self.answers[runs[chosen]]
        times[row_of_run[chosen]] = lengths[chosen]
        share = times / np.maximum(np.maximum(counts, self._askings), 1)
        return Likeliest(*(np.repeat(per_row, asked) for per_row in (answer, share, self.row_means)))
