"""Errors of predicted values: plain functions of arrays, and their variation from row to row."""

from typing import Any, NamedTuple

import numpy as np

from halfseen.arrays import Array
from halfseen.docstrings import insert_parameters
from halfseen.errors import DataError


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
    errors, weights = _check(values, predictions, weights)
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
    errors, weights = _check(values, predictions, weights)
    return float(np.average(np.abs(errors), weights=weights))


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


def _check(values: Any, predictions: Any, weights: Any) -> tuple[Array, Array]:
    """Errors and weights, as numbers."""
    given = {"values": np.asarray(values), "predictions": np.asarray(predictions)}
    given["weights"] = np.ones(given["values"].shape) if weights is None else np.asarray(weights)
    for name, array in given.items():
        is_list = array.shape == given["values"].shape and array.size > 0 and array.dtype.kind in "fiub"
        if not is_list or not np.all(np.isfinite(array)):
            raise DataError(
                "must be finite numbers, as many as there are values.",
                parameter=name,
                found=f"shape {array.shape}, dtype {array.dtype}, or numbers that are not finite",
                remedy="Pass the cells of all in one order, without holes.",
            )
    if np.any(given["weights"] < 0) or not given["weights"].any():
        must, found = "must be 0 or more, not all of them 0.", "a negative one, or nothing but 0"
        raise DataError(must, parameter="weights", found=found, remedy="Leave them out.")
    return given["predictions"] - given["values"].astype(np.float64), given["weights"].astype(np.float64)
