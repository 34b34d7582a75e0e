"""Scores of probabilities of ordered levels: plain functions of arrays."""

from typing import Any, NamedTuple

import numpy as np

from halfseen.arrays import Array
from halfseen.docstrings import insert_parameters
from halfseen.errors import DataError, ParameterError
from halfseen.validation import whole

#: How far from 1 the probabilities of a cell may sum, which may have been made in single precision.
MAX_DEVIATION = 1e-5


@insert_parameters
def ranked_probability_score(levels: Any, probabilities: Any, *, labels: Any = None, weights: Any = None) -> float:
    """Mean over cells of  sum over l < V of (F_l - [y <= l])^2,  F_l the probability of level l or lower.

    Epstein's score (1969), not divided by the number of thresholds: 0 at best, in units of levels, so that it is the
    mean absolute error where one level has all the probability. Smaller is better; honest probabilities are best.

    Parameters
    ----------
    {level scores}
    {level labels}

    Returns
    -------
    float
    """
    codes, p, weights = _check(levels, probabilities, labels, weights)
    below = np.cumsum(p[:, :-1], axis=1)
    seen_below = codes[:, None] <= np.arange(below.shape[1])
    return float(np.average(np.sum((below - seen_below) ** 2, axis=1), weights=weights))


@insert_parameters
def log_score(levels: Any, probabilities: Any, *, labels: Any = None, weights: Any = None) -> float:
    """Mean over cells of  log p(y):  larger is better, 0 at best, -inf if a level of probability 0 occurs.

    Parameters
    ----------
    {level scores}
    {level labels}

    Returns
    -------
    float
    """
    codes, p, weights = _check(levels, probabilities, labels, weights)
    counts = weights > 0  # else an impossible cell of weight 0 would spoil the mean
    with np.errstate(divide="ignore"):
        logs = np.log(p[np.arange(codes.size), codes][counts])
    return float(np.average(logs, weights=weights[counts]))


@insert_parameters
def log_loss(levels: Any, probabilities: Any, *, labels: Any = None, weights: Any = None) -> float:
    """Mean over cells of  -log p(y):  smaller is better, 0 at best, inf if a level of probability 0 occurs.

    Parameters
    ----------
    {level scores}
    {level labels}

    Returns
    -------
    float
    """
    return -log_score(levels, probabilities, labels=labels, weights=weights)


class Calibration(NamedTuple):
    """Table by columns, a line for each level and bin of predicted probabilities that has cells.

    Attributes
    ----------
    level : ndarray
        Label of the level.
    lower, upper : ndarray
        Ends of the bin, the upper one excluded but in the last bin.
    cells : ndarray
        Number of cells, by weight.
    predicted : ndarray
        Mean predicted probability of the level in these cells.
    found : ndarray
        Share of these cells that have the level; near `predicted` if the probabilities are calibrated.
    """

    level: Array
    lower: Array
    upper: Array
    cells: Array
    predicted: Array
    found: Array


@insert_parameters
def calibration(
    levels: Any, probabilities: Any, bins: Any = 10, *, labels: Any = None, weights: Any = None
) -> Calibration:
    """Predicted beside observed frequencies: for each level, cells with about the same predicted probability together.

    Parameters
    ----------
    {level scores}
    bins : int or array-like, default=10
        Number of bins of equal width from 0 to 1, or their ascending edges, from 0 to 1.
    {level labels}

    Returns
    -------
    Calibration
        `pandas.DataFrame(calibration(...)._asdict())` is the table as a frame.
    """
    codes, p, weights = _check(levels, probabilities, labels, weights)
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
    is_list = edges.ndim == 1 and edges.size > 1 and edges.dtype.kind in "fiu"
    if not (is_list and edges[0] == 0 and edges[-1] == 1 and np.all(np.diff(edges) > 0)):
        raise ParameterError(
            "must be a whole number of at least 1, or edges that ascend from 0 to 1.",
            parameter="bins",
            found=repr(bins),
            remedy="Use 10.",
        )
    return edges.astype(np.float64)


def _check(levels: Any, probabilities: Any, labels: Any, weights: Any) -> tuple[Array, Array, Array]:
    """Column of each cell's level, probabilities, and weights, all as numbers."""
    # probabilities
    p = np.asarray(probabilities)
    if p.ndim != 2 or p.shape[0] == 0 or p.shape[1] < 2 or p.dtype.kind not in "fiub":
        raise DataError(
            "Probabilities must be numbers, a row for each cell and a column for each of two or more levels.",
            parameter="probabilities",
            found=f"shape {p.shape}, dtype {p.dtype}",
            remedy="Pass what predict_proba gives.",
        )
    p = p.astype(np.float64)
    bad = ~(np.all(p >= 0, axis=1) & (np.abs(p.sum(axis=1) - 1) <= MAX_DEVIATION))
    if bad.any():
        first = int(np.argmax(bad))
        raise DataError(
            "The probabilities of a cell must be 0 or more and sum to 1.",
            parameter="probabilities",
            found=f"{p[first].tolist()}",
            where=f"in row {first} ({bad.sum()} such rows in all)",
            remedy="Divide each row by its sum.",
        )
    # levels
    n, n_levels = p.shape
    levels = np.asarray(levels)
    if levels.shape != (n,):
        raise DataError(
            f"There must be a level for each of the {n} rows of probabilities.",
            parameter="levels",
            found=f"shape {levels.shape}",
            remedy="Pass the cells of both in one order.",
        )
    names = np.arange(n_levels) if labels is None else np.asarray(labels)
    if names.shape != (n_levels,):
        raise DataError(
            f"must name the {n_levels} columns of probabilities.",
            parameter="labels",
            found=f"shape {names.shape}",
            remedy="Pass one for each column.",
        )
    column_of = {label: column for column, label in enumerate(names.tolist())}
    codes = np.array([column_of.get(level, -1) for level in levels.tolist()])
    if np.any(codes < 0):
        first = int(np.argmax(codes < 0))
        raise DataError(
            f"Levels must be among the columns of probabilities: {', '.join(map(str, names.tolist()[:20]))}.",
            parameter="levels",
            found=repr(levels.tolist()[first]),
            where=f"at position {first}",
            remedy="Leave it out, or say in `labels` which levels the columns are.",
        )
    # weights
    weights = np.ones(codes.size) if weights is None else np.asarray(weights)
    is_list = weights.shape == codes.shape and weights.dtype.kind in "fiub"
    if not (is_list and np.all(weights >= 0) and np.all(np.isfinite(weights)) and weights.any()):
        raise DataError(
            f"must be {codes.size} finite numbers of 0 or more, not all of them 0.",
            parameter="weights",
            found=f"others, or another shape: {weights.shape}",
            remedy="Pass one for each cell.",
        )
    return codes, p, weights.astype(np.float64)
