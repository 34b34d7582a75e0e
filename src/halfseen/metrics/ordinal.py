"""How good probabilities of ordered levels are, cell by cell: plain functions of arrays.

Everywhere `levels` holds what was seen, `probabilities` a row a cell and a column a level, lowest first.
"""

from typing import Any, NamedTuple

import numpy as np

from halfseen.arrays import Array
from halfseen.checks import whole
from halfseen.errors import DataError, ParameterError

#: How far from 1 the probabilities of a cell may sum: they may have been made in single precision.
_SLACK = 1e-5


def ranked_probability_score(levels: Any, probabilities: Any, *, labels: Any = None, weights: Any = None) -> float:
    """The mean over cells of  sum over l < V of (F_l - [y <= l])^2,  F_l the probability of level l or lower.

    Epstein's score (1969), not divided by the number of thresholds: 0 at best, in units of levels, so that it is the
    mean absolute error where one level has all the probability. Smaller is better; honest probabilities are best.

    Parameters
    ----------
    levels : (n,) the level seen in each cell: its number from 0 on, or one of `labels`.
    probabilities : (n, V + 1) what `predict_proba` gives.
    labels : (V + 1,) what the columns are called, ascending; None: 0, 1, ..., V.
    weights : (n,) how much each cell counts; None: each once.
    """
    codes, p, weights = _checked(levels, probabilities, labels, weights)
    below = np.cumsum(p[:, :-1], axis=1)
    seen_below = codes[:, None] <= np.arange(below.shape[1])
    return float(np.average(np.sum((below - seen_below) ** 2, axis=1), weights=weights))


def log_score(levels: Any, probabilities: Any, *, labels: Any = None, weights: Any = None) -> float:
    """The mean over cells of  log p(y):  larger is better, 0 at best, -inf if a level was seen that had no probability.

    Parameters
    ----------
    levels, probabilities, labels, weights : as in `ranked_probability_score`.
    """
    codes, p, weights = _checked(levels, probabilities, labels, weights)
    counts = weights > 0  # else an impossible cell of weight 0 would spoil the mean
    with np.errstate(divide="ignore"):
        logs = np.log(p[np.arange(codes.size), codes][counts])
    return float(np.average(logs, weights=weights[counts]))


class Calibration(NamedTuple):
    """A table by columns, a line for each level and bin of predicted probabilities in which there are cells."""

    level: Array
    """The level: its label."""
    lower: Array
    """Where the bin begins."""
    upper: Array
    """Where it ends, itself excluded; in the last bin included."""
    cells: Array
    """How many cells fall into it, by weight."""
    predicted: Array
    """The mean predicted probability of the level in these cells."""
    found: Array
    """The share of these cells that have the level. Near `predicted` if the probabilities mean what they say."""


def calibration(
    levels: Any, probabilities: Any, bins: Any = 10, *, labels: Any = None, weights: Any = None
) -> Calibration:
    """Predicted beside found frequencies: for each level, cells with about the same predicted probability together.

    Parameters
    ----------
    bins : how many bins of equal width from 0 to 1, or their ascending edges, from 0 to 1.
    levels, probabilities, labels, weights : as in `ranked_probability_score`.

    `pandas.DataFrame(calibration(...)._asdict())` is the table as a frame.
    """
    codes, p, weights = _checked(levels, probabilities, labels, weights)
    edges, n_levels = _bin_edges(bins), p.shape[1]
    n_bins = edges.size - 1
    bin_of = np.minimum(np.searchsorted(edges, p, side="right") - 1, n_bins - 1)
    line_of = (np.arange(n_levels) * n_bins + bin_of).reshape(-1)  # of each cell and level, were no line left out

    def summed(each: Array) -> Array:
        return np.bincount(line_of, (weights[:, None] * each).reshape(-1), n_levels * n_bins)

    cells = summed(np.ones_like(p))
    lines = np.flatnonzero(cells)
    level, place = np.divmod(lines, n_bins)
    names = np.arange(n_levels) if labels is None else np.asarray(labels)
    has_level = codes[:, None] == np.arange(n_levels)
    predicted, found = (summed(each)[lines] / cells[lines] for each in (p, has_level))
    return Calibration(names[level], edges[place], edges[place + 1], cells[lines], predicted, found)


def _bin_edges(bins: Any) -> Array:
    edges = np.linspace(0, 1, int(bins) + 1) if whole(1)(bins) is None else np.asarray(bins)
    good = edges.ndim == 1 and edges.size > 1 and edges.dtype.kind in "fiu"
    if not (good and edges[0] == 0 and edges[-1] == 1 and np.all(np.diff(edges) > 0)):
        raise ParameterError(
            f"bins must be a whole number of at least 1, or edges that ascend from 0 to 1. Found {bins!r}. Use 10."
        )
    return edges.astype(np.float64)


def _checked(levels: Any, probabilities: Any, labels: Any, weights: Any) -> tuple[Array, Array, Array]:
    """The column of each cell's level, the probabilities, and the weights, all as numbers."""
    p = _checked_probabilities(probabilities)
    codes = _codes(np.asarray(levels), labels, p.shape)
    weights = np.ones(codes.size) if weights is None else np.asarray(weights)
    good = weights.shape == codes.shape and weights.dtype.kind in "fiub"
    if not (good and np.all(weights >= 0) and np.all(np.isfinite(weights)) and weights.any()):
        raise DataError(
            f"weights must be {codes.size} finite numbers of 0 or more, not all of them 0. Found others, or another "
            f"shape: {weights.shape}. Pass one for each cell."
        )
    return codes, p, weights.astype(np.float64)


def _checked_probabilities(probabilities: Any) -> Array:
    p = np.asarray(probabilities)
    if p.ndim != 2 or p.shape[0] == 0 or p.shape[1] < 2 or p.dtype.kind not in "fiub":
        raise DataError(
            "Probabilities must be numbers, a row for each cell and a column for each of two or more levels. "
            f"Found shape {p.shape}, dtype {p.dtype}. Pass what predict_proba gives."
        )
    p = p.astype(np.float64)
    bad = ~(np.all(p >= 0, axis=1) & (np.abs(p.sum(axis=1) - 1) <= _SLACK))
    if bad.any():
        first = int(np.argmax(bad))
        raise DataError(
            f"The probabilities of a cell must be 0 or more and sum to 1. Found {p[first].tolist()} in row {first} "
            f"({bad.sum()} such rows in all). Divide each row by its sum."
        )
    return p


def _codes(levels: Array, labels: Any, shape: tuple[int, ...]) -> Array:
    """The column of each level."""
    n, n_levels = shape
    if levels.shape != (n,):
        raise DataError(
            f"There must be a level for each of the {n} rows of probabilities. Found shape {levels.shape}. Pass the "
            "cells of both in one order."
        )
    names = np.arange(n_levels) if labels is None else np.asarray(labels)
    if names.shape != (n_levels,):
        raise DataError(
            f"labels must name the {n_levels} columns of probabilities. Found shape {names.shape}. Pass one a column."
        )
    column_of = {label: column for column, label in enumerate(names.tolist())}
    codes = np.array([column_of.get(level, -1) for level in levels.tolist()])
    if np.any(codes < 0):
        first = int(np.argmax(codes < 0))
        raise DataError(
            f"Levels must be among the columns of probabilities: {', '.join(map(str, names.tolist()[:20]))}. "
            f"Found {levels.tolist()[first]!r} at position {first}. Leave it out, or say in labels which levels the "
            "columns are."
        )
    return codes
