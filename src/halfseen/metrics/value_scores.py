"""Scores of predicted values, and of probabilities of ordered levels: plain functions of arrays."""

import math
from typing import Any, NamedTuple

import numpy as np

from halfseen.arrays import Array
from halfseen.docstrings import insert_parameters
from halfseen.errors import DataError, ParameterError
from halfseen.validation import whole

#: How far from 1 the probabilities of a cell may sum, which may have been made in single precision.
MAX_DEVIATION = 1e-5


@insert_parameters
def rmse(values: Any, predictions: Any, *, weights: Any = None) -> float:
    """Root of the mean squared error of predicted values.

    Parameters
    ----------
    {value scores}

    Returns
    -------
    float
    """
    errors, weights = _check_values(values, predictions, weights)
    return float(np.sqrt(np.average(errors**2, weights=weights)))


@insert_parameters
def mae(values: Any, predictions: Any, *, weights: Any = None) -> float:
    """Mean absolute error of predicted values.

    Parameters
    ----------
    {value scores}

    Returns
    -------
    float
    """
    errors, weights = _check_values(values, predictions, weights)
    return float(np.average(np.abs(errors), weights=weights))


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
    codes, p, weights = _check_levels(levels, probabilities, labels, weights)
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
    codes, p, weights = _check_levels(levels, probabilities, labels, weights)
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
    codes, p, weights = _check_levels(levels, probabilities, labels, weights)
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


def _check_levels(levels: Any, probabilities: Any, labels: Any, weights: Any) -> tuple[Array, Array, Array]:
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
    return codes, p, _check_weights(weights, codes.shape)


def _check_values(values: Any, predictions: Any, weights: Any) -> tuple[Array, Array]:
    """Errors and weights, as numbers."""
    values, predictions = np.asarray(values), np.asarray(predictions)
    for name, array in (("values", values), ("predictions", predictions)):
        is_list = array.shape == values.shape and array.size > 0 and array.dtype.kind in "fiub"
        if not is_list or not np.all(np.isfinite(array)):
            raise DataError(
                "must be finite numbers, as many as there are values.",
                parameter=name,
                found=f"shape {array.shape}, dtype {array.dtype}, or numbers that are not finite",
                remedy="Pass the cells of all in one order, without holes.",
            )
    return predictions - values.astype(np.float64), _check_weights(weights, values.shape)


def _check_weights(weights: Any, shape: tuple[int, ...]) -> Array:
    """Weights of cells, as numbers; 1 where there are none."""
    weights = np.ones(shape) if weights is None else np.asarray(weights)
    is_list = weights.shape == shape and weights.dtype.kind in "fiub"
    if not (is_list and np.all(weights >= 0) and np.all(np.isfinite(weights)) and weights.any()):
        raise DataError(
            f"must be {math.prod(shape)} finite numbers of 0 or more, not all of them 0.",
            parameter="weights",
            found=f"others, or another shape: {weights.shape}",
            remedy="Pass one for each cell.",
        )
    return weights.astype(np.float64)


# ---------------------------------------------------------------------------------------------------------------------
# how scores vary from row to row, and what they are computed from


class Estimate(NamedTuple):
    """A metric, and of each row what its variation is estimated by: NaN for rows that do not count.

    The standard error of the metric is that of the mean of `of_rows`; the one of a difference between two models is
    that of the mean of the differences.
    """

    value: float
    of_rows: Array


def cell_mean(rows: Array, of_cells: Array, n_rows: int) -> Estimate:
    """Mean over cells; it varies with the rows as a ratio of two means over rows does (linearized).

    With S_u the sum over the n_u cells of row u, and U rows that have cells:

        mean = sum S_u / sum n_u,    of_rows_u = mean + (S_u - mean n_u) U / sum n_u

    Parameters
    ----------
    rows : ndarray of int
        Row of each cell.
    of_cells : ndarray
        Loss of each cell.
    n_rows : int
        Number of rows.

    Returns
    -------
    Estimate
    """
    sums, counts = np.bincount(rows, of_cells, n_rows), np.bincount(rows, minlength=n_rows)
    mean = float(np.mean(of_cells))
    per_cell = np.count_nonzero(counts) / max(rows.size, 1)
    return Estimate(mean, np.where(counts > 0, mean + (sums - mean * counts) * per_cell, np.nan))


def root(square: Estimate) -> Estimate:
    """Root of a mean square, which varies as its tangent does."""
    value = float(np.sqrt(square.value))
    slope = 0.5 / value if value > 0 else 0.0
    return Estimate(value, value + slope * (square.of_rows - square.value))


def group_means(
    positions: Array, values: Array, size: int, weights: Array | None = None, default: float = 0.0
) -> Array:
    """Weighted mean of the values at each position; the default where there are none."""
    weights = np.ones(values.size) if weights is None else weights
    total, sums = np.bincount(positions, weights, size), np.bincount(positions, weights * values, size)
    return np.divide(sums, total, out=np.full(size, default), where=total > 0)


def given_not_lowest(p: Array) -> Array:
    """Probabilities given that the level is not the lowest; uniform over the others where the lowest has all."""
    above = p.copy()
    above[..., 0] = 0.0
    total = above.sum(axis=-1, keepdims=True)
    uniform = np.where(np.arange(p.shape[-1]) > 0, 1 / (p.shape[-1] - 1), 0.0)
    return np.where(total > 0, above / np.where(total > 0, total, 1.0), uniform)
