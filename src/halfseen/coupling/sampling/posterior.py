"""What is known of cells after sampling: means, intervals, the most likely answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr

from halfseen.arrays import Array

#: Entries (cells times draws) that are worked on at a time.
ENTRIES_AT_A_TIME = 1 << 22
#: How often the interval that holds a quantile is halved.
_HALVINGS = 44


class Draws(NamedTuple):
    """What is kept of a chain, d draws of it, in the units of the answers.

    The mean of cell (i, j) in draw d is centre[i] + scale[i] <A[i, d], B[j, d]>, its deviation is
    scale[i] sqrt(row_noise[i, d] * column_noise[j, d]). `coupling[d, c]` is the token of asked cell c, numbered inside
    its question: an answer, or beyond the answers an unknown one, whose value is unknown[d, unknown_indptr[i] + ...].
    """

    A: Array
    B: Array
    row_noise: Array
    column_noise: Array
    coupling: Array
    unknown: Array
    unknown_indptr: Array
    centre: Array
    scale: Array


class Likeliest(NamedTuple):
    """Of every asked cell: the most likely answer, how likely it is, and the mean of the answer. Where the answer was
    lost in all draws, it is NaN."""

    answer: Array
    probability: Array
    mean: Array


class SampledCoupling:
    """The posterior, by draws. Questions are rows; cells asked are told apart from the others."""

    def __init__(self, draws: Draws, indptr: Array, answers: Array, answer_indptr: Array) -> None:
        self.draws = draws
        self.answers, self.answer_indptr, self._indptr = answers, answer_indptr, indptr

    def means_at(self, rows: Array, columns: Array, cells: Array) -> Array:
        """The posterior mean at pairs of positions; `cells` are their numbers where they were asked, else -1."""
        draws, out = self.draws, np.empty(rows.size)
        for part in self._parts(rows.size):
            dots = np.einsum("pdk,pdk->p", draws.A[rows[part]], draws.B[columns[part]], dtype=np.float64)
            out[part] = draws.centre[rows[part]] + draws.scale[rows[part]] * dots / len(draws.coupling)
            asked = np.flatnonzero(cells[part] >= 0)
            out[part][asked] = self._values(cells[part][asked]).mean(axis=0)
        return out

    def means(self) -> Array:
        """The model's mean of every cell, asked or not."""
        A, B = self.draws.A, self.draws.B
        total = np.zeros((len(A), len(B)))
        for draw in range(A.shape[1]):
            total += A[:, draw].astype(np.float64) @ B[:, draw].T.astype(np.float64)
        means: Array = self.draws.centre[:, None] + self.draws.scale[:, None] * total / A.shape[1]
        return means

    def quantiles_at(self, rows: Array, columns: Array, cells: Array, shares: tuple[float, ...]) -> list[Array]:
        """Of the value at each pair: of the answers drawn where it was asked, else of the mixture of normals."""
        out = [np.empty(rows.size) for _ in shares]
        for part in self._parts(rows.size):
            asked, others = np.flatnonzero(cells[part] >= 0), np.flatnonzero(cells[part] < 0)
            values = np.sort(self._values(cells[part][asked]), axis=0)
            for found, share in zip(out, shares, strict=True):
                found[part][others] = self._mixture_quantiles(rows[part][others], columns[part][others], share)
                found[part][asked] = values[outward(share, len(values))]
        return out

    def _mixture_quantiles(self, rows: Array, columns: Array, share: float) -> Array:
        """x with  mean over draws of Phi((x - mean) / deviation) = share, by halving."""
        draws = self.draws
        means = np.einsum("pdk,pdk->pd", draws.A[rows], draws.B[columns], dtype=np.float64)
        deviations = np.sqrt(draws.row_noise[rows].astype(np.float64) * draws.column_noise[columns])
        low, high = (means - 10 * deviations).min(axis=1), (means + 10 * deviations).max(axis=1)
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            below = ndtr((middle[:, None] - means) / deviations).mean(axis=1) < share
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        quantiles: Array = draws.centre[rows] + draws.scale[rows] * (low + high) / 2
        return quantiles

    def likeliest(self) -> Likeliest:
        """Of every asked cell. The probability is that of the answer which one half of the draws has most often, among
        the other half: how often an informed guess is right. (The share of the most frequent of few draws would be too
        high.)"""
        n_cells = self.draws.coupling.shape[1]
        answer, probability, mean = (np.empty(n_cells) for _ in range(3))
        for part in self._parts(n_cells):
            cells = np.arange(part.start, min(part.stop, n_cells))
            values, known = self._values(cells), self._are_answers(cells)
            values_of_answers = np.where(known, values, np.nan)
            answer[part] = _modes(values_of_answers)
            probability[part] = _chance_of_a_guess(values_of_answers)
            mean[part] = values.mean(axis=0)
        return Likeliest(answer, probability, mean)

    def _row_of(self, cells: Array) -> Array:
        return np.searchsorted(self._indptr, cells, side="right") - 1

    def _are_answers(self, cells: Array) -> Array:
        """Which drawn tokens of these cells are answers, and not unknown."""
        row = self._row_of(cells)
        return self.draws.coupling[:, cells] < (self.answer_indptr[row + 1] - self.answer_indptr[row])

    def _values(self, cells: Array) -> Array:
        """The values drawn at asked cells: a row for each draw."""
        draws, row = self.draws, self._row_of(cells)
        tokens = draws.coupling[:, cells].astype(np.int64)
        first, count = self.answer_indptr[row], self.answer_indptr[row + 1] - self.answer_indptr[row]
        values: Array = self.answers[np.minimum(first + tokens, self.answers.size - 1)]
        lost = np.nonzero(tokens >= count)
        if lost[0].size:
            which = lost[1]
            place = draws.unknown_indptr[row[which]] + tokens[lost] - count[which]
            values[lost] = draws.unknown[lost[0], place]
        return values

    def _parts(self, size: int) -> Iterator[slice]:
        step = max(1, ENTRIES_AT_A_TIME // len(self.draws.coupling))
        return (slice(start, start + step) for start in range(0, size, step))


def outward(share: float, count: Any) -> Any:
    """The place, among so many rising values, of the quantile at `share`: an interval of answers holds its ends."""
    place = share * np.maximum(count - 1, 0)
    rounded = np.floor(place) if share < 0.5 else np.ceil(place)
    return rounded.astype(np.int64)


def _modes(values: Array) -> Array:
    """The most frequent number of each column; of equally frequent ones the smallest. NaN if there is none."""
    ordered = np.sort(values, axis=0)  # NaN last, and each its own run
    starts = np.ones(ordered.shape, bool)
    starts[1:] = ordered[1:] != ordered[:-1]
    place = np.arange(len(values))[:, None]
    begun = np.maximum.accumulate(np.where(starts, place, 0), axis=0)
    last = np.argmax(place - begun, axis=0)  # where the longest run has its last entry
    modes: Array = np.take_along_axis(ordered, last[None], axis=0)[0]
    return modes


def _chance_of_a_guess(values: Array) -> Array:
    """How often each half's most frequent value is met in the other half."""
    half = max(1, len(values) // 2)
    one, other = values[:half], values[half:] if len(values) > 1 else values
    return (_shares(other, _modes(one)) + _shares(one, _modes(other))) / 2


def _shares(values: Array, wanted: Array) -> Array:
    """How often each column holds the value wanted; what is unknown is never a hit."""
    shares: Array = (values == wanted).mean(axis=0)
    return shares
