"""The units in which answers are sampled: one for all questions, or one for each."""

from typing import NamedTuple

import numpy as np

from halfseen.arrays import Array
from halfseen.data.uncoupled import Uncoupled

SCALES = ("auto", "all", "question")
#: Questions with fewer answers say too little of their own deviation.
_FEWEST_ANSWERS = 5
#: Where the logarithms of the questions' deviations scatter by more than this, beyond chance, they are in different
#: units: nine tenths of them then span more than sevenfold.
_FAR_APART = 0.6
#: Relative to its mean, a smaller deviation of a question's answers is rounding.
_ROUNDING = 1e-12
#: The least variance of noise in any units.
LEAST_VARIANCE = 1e-4


class Units(NamedTuple):
    """Of each question, what its answers are counted from, and in units of what."""

    centre: Array
    scale: Array


def units_of(seen: Uncoupled, scale: str) -> Units:
    """By "all", the mean and deviation of all answers; by "question", those of each question's own.

    Questions on one scale, such as stars, tell more together: which of them is high is a pattern, too. Questions in
    different units, such as ages and incomes, have no common deviation. "auto" looks which it is.
    """
    counts = np.diff(seen.answer_indptr)
    row = np.repeat(np.arange(counts.size), counts)
    mean, deviation = float(seen.answers.mean()), float(seen.answers.std()) if np.ptp(seen.answers) > 0 else 1.0
    means = np.where(counts > 0, np.bincount(row, seen.answers, minlength=counts.size) / np.maximum(counts, 1), mean)
    squares = np.bincount(row, (seen.answers - means[row]) ** 2, minlength=counts.size)
    deviations = np.sqrt(squares / np.maximum(counts, 1))
    is_even = deviations <= _ROUNDING * np.abs(means)
    is_telling = (counts >= _FEWEST_ANSWERS) & ~is_even
    if scale == "all" or (scale == "auto" and not _far_apart(deviations[is_telling], counts[is_telling])):
        return Units(np.full(counts.size, mean), np.full(counts.size, deviation))
    # A question whose answers are all the same has no deviation: its size will do; without answers, all answers'.
    sizes = np.where((means == 0) | (counts == 0), deviation, np.abs(means))
    return Units(means, np.where(is_even, sizes, deviations))


def _far_apart(deviations: Array, counts: Array) -> bool:
    """Whether log deviations scatter beyond chance, by which that of n answers has a variance of 1 / 2 (n - 1)."""
    if deviations.size < 2:
        return False
    beyond_chance = np.var(np.log(deviations), ddof=1) - np.mean(0.5 / (counts - 1))
    return bool(beyond_chance > _FAR_APART**2)


def least_noise(seen: Uncoupled, units: Units) -> float:
    """What the columns' variances are drawn to at least, in these units: the variance of rounding, a twelfth of the
    squared step between answers (the median over questions of the smallest step of each), and no less than 1e-4."""
    steps = np.diff(seen.answers)
    row = np.repeat(np.arange(units.scale.size), np.diff(seen.answer_indptr))
    inside = (row[1:] == row[:-1]) & (steps > 0)
    smallest = np.full(units.scale.size, np.inf)
    np.minimum.at(smallest, row[1:][inside], steps[inside])
    known = np.isfinite(smallest)
    rounding = float(np.median(smallest[known] / units.scale[known])) ** 2 / 12 if known.any() else 0.0
    return max(rounding, LEAST_VARIANCE)
