"""Tensors, unfolded: rows are those of the first axis, columns the cells of all the others."""

from typing import Any

import numpy as np
from scipy import sparse

from halfseen.arrays import Array
from halfseen.errors import DataError, ParameterError
from halfseen.io.reader import with_holes

Shape = tuple[int, ...]


def unfolded(X: Any, cell_weight: Any = None) -> tuple[Any, Any, Shape | None]:
    """A tensor and its weights as matrices, and the shape of their rows; anything else as it is, and None."""
    if not _is_tensor(X):
        return X, cell_weight, None
    values = with_holes(X, _as_array(X))
    _check(values)
    return values.reshape(len(values), -1), _matrix_of_weights(cell_weight, values.shape), values.shape[1:]


def rows_unfolded(X: Any, inner_shape: Shape | None, cell_weight: Any = None) -> tuple[Any, Any]:
    """New rows for a model and their weights: for that of a tensor, arrays whose rows have the fitted shape."""
    if inner_shape is None:
        return X, cell_weight
    found = np.shape(_as_array(X))
    if found[1:] != inner_shape:
        raise DataError(
            f"X must have rows of the shape that was fitted, {inner_shape}. Found an X of shape {found}. "
            "Pass an array with these axes; NaN where a cell is unseen."
        )
    return unfolded(X, cell_weight)[:2]


def _as_array(X: Any) -> Array:
    try:
        return np.asarray(X)
    except ValueError:
        sentence = "The rows of X along every axis must be lists of one length. Found different lengths. Fill them up."
        raise DataError(sentence) from None


def _matrix_of_weights(cell_weight: Any, shape: Shape) -> Any:
    if cell_weight is None:
        return None
    cell_weight = np.asarray(cell_weight)
    if cell_weight.shape != shape:
        raise DataError(
            f"cell_weight must have the shape of X, {shape}. Found {cell_weight.shape}. Pass a weight for each cell."
        )
    return cell_weight.reshape(len(cell_weight), -1)


def columns_at(places: tuple[Any, ...], inner_shape: Shape) -> Array:
    """The columns of cells given by their positions along all axes but the first."""
    if len(places) != len(inner_shape):
        raise ParameterError(
            f"predict must be told a position on each of the {len(inner_shape) + 1} axes. Found {len(places) + 1}. "
            "Call predict(i, j, k, ...)."
        )
    try:
        return np.ravel_multi_index(np.broadcast_arrays(*places), inner_shape)
    except (TypeError, ValueError) as error:
        raise DataError(
            f"Positions must be whole numbers within the fitted axes, of lengths {inner_shape} after the first. "
            f"Found others: {error}. Count from 0."
        ) from None


def _is_tensor(X: Any) -> bool:
    if isinstance(X, list | tuple):
        return bool(X) and isinstance(X[0], list | tuple | np.ndarray) and np.ndim(X[0][:1]) > 1
    return isinstance(X, np.ndarray) and X.ndim > 2 and not sparse.issparse(X)


def _check(values: Array) -> None:
    """Refuse a tensor that can't be factorized, in the words of its axes."""
    if values.size == 0:
        raise DataError(f"Every axis of X must have a length of 1 or more. Found shape {values.shape}. Drop the axis.")
    with np.errstate(invalid="ignore"):
        low, high = np.nanmin(values, initial=np.inf), np.nanmax(values, initial=-np.inf)
    if low > high:
        raise DataError(f"At least one cell must be seen. Found none in shape {values.shape}. Check the data.")
    if not np.isfinite([low, high]).all():
        _refuse(values, np.isinf(values), "finite", "Replace it by NaN if it is unknown.")
    if low < 0:
        _refuse(values, values < 0, "0 or larger under the Kullback-Leibler loss", "Shift or drop it.")


def _refuse(values: Array, wrong: Array, must: str, remedy: str) -> None:
    first = np.unravel_index(int(np.argmax(wrong)), values.shape)
    place = ", ".join(str(int(position)) for position in first)
    raise DataError(f"Values must be {must}. Found {values[first]:g} at position ({place}). {remedy}")
