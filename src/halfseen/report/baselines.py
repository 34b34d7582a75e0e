"""Simple rules that a model should do better than, as functions of the training cells."""

from __future__ import annotations

import numpy as np

from halfseen.arrays import Array
from halfseen.observed import Observed


def mean_rules(train: Observed, values: Array, rows: Array, columns: Array) -> dict[str, Array]:
    """What three means predict at cells of these rows and columns; one of which nothing was seen gets the mean of
    all."""
    overall = float(np.average(values, weights=train.weights))
    return {
        "Mean of all": np.full(rows.size, overall),
        "Mean of the row": _means(train.row_of_cell(), values, train.weights, train.shape[0], overall)[rows],
        "Mean of the column": _means(train.indices, values, train.weights, train.shape[1], overall)[columns],
    }


def _means(places: Array, values: Array, weights: Array | None, size: int, otherwise: float) -> Array:
    weights = np.ones(values.size) if weights is None else weights
    total = np.bincount(places, weights, size)
    sums = np.bincount(places, weights * values, size)
    return np.divide(sums, total, out=np.full(size, otherwise), where=total > 0)


def question_means(answers: Array, ends: Array) -> Array:
    """The mean of each question's answers; a question without any gets the mean of all."""
    counts = np.diff(ends)
    questions = np.repeat(np.arange(counts.size), counts)
    return _means(questions, answers, None, counts.size, float(answers.mean()) if answers.size else 0.0)


def popularity(indices: Array, shape: tuple[int, int]) -> tuple[Array, Array]:
    """Factors that rank the same for all: the columns that were seen most often first."""
    return np.ones((shape[0], 1)), np.bincount(indices, minlength=shape[1]).astype(np.float64)[:, None]


def shares_of_levels(codes: Array, n_levels: int, weights: Array | None) -> Array:
    """How often each level was seen, as probabilities; one that was not, half a cell's worth."""
    counts = np.bincount(codes, weights, n_levels)
    counts = np.maximum(counts, 0.5)
    shares: Array = counts / counts.sum()
    return shares
