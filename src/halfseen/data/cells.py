"""Seen cells as coordinates: checked, put into row order, and freed of those that say nothing.

Everything here costs time in proportion to the number of cells: sorting is counting.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from halfseen.errors import DataError

Where = Callable[[int], str]


@dataclass
class Cells:
    """Cells as parallel arrays; `weights` is None when every cell counts once.

    They can change, so that an array that was replaced is freed before the next one is made.
    """

    rows: np.ndarray
    columns: np.ndarray
    values: np.ndarray
    weights: np.ndarray | None = None

    def take(self, chosen: Any) -> Cells:
        """The cells an index array, a mask or a slice chooses."""
        weights = None if self.weights is None else self.weights[chosen]
        return Cells(self.rows[chosen], self.columns[chosen], self.values[chosen], weights)


def as_values(values: Any) -> np.ndarray:
    """Values as a contiguous float array: float32 stays float32, everything else becomes float64."""
    values = np.asarray(values)
    if values.dtype.kind == "c":
        raise DataError(f"Complex data not supported. Found dtype {values.dtype}. Pass real and imaginary part alone.")
    dtype = np.float32 if values.dtype == np.float32 else np.float64
    try:
        return np.ascontiguousarray(values, dtype=dtype)
    except ValueError as error:
        raise DataError(f"Values must be numbers. Found otherwise: {error}. Turn them into numbers.") from None


def as_weights(weights: Any, dtype: np.dtype) -> np.ndarray | None:
    """Weights in the dtype of the values; None stays None."""
    if weights is None:
        return None
    with np.errstate(over="ignore"):  # one too large for float32 becomes inf, which the check of weights reports
        return np.ascontiguousarray(as_values(weights), dtype=dtype)


def as_positions(positions: Any, size: int, side: str) -> np.ndarray:
    """Row or column numbers (`side`) as integers within 0..size-1."""
    positions = np.asarray(positions)
    if positions.size == 0:
        return positions.astype(np.int32)
    if positions.dtype.kind not in "iu":
        raise DataError(f"Numbers of {side}s must be integers. Found dtype {positions.dtype}. Number the {side}s.")
    outside = (positions < 0) | (positions >= size)
    if outside.any():
        first = int(np.argmax(outside))
        raise DataError(
            f"Numbers of {side}s must lie in 0..{size - 1}. Found {positions[first]} at position {first}. "
            "Correct it, or pass a larger shape."
        )
    return positions


def index_dtype(shape: tuple[int, int], nnz: int) -> np.dtype:
    """int32 where shape and number of cells fit, else int64."""
    fits = max(*shape, nnz) <= np.iinfo(np.int32).max
    return np.dtype(np.int32 if fits else np.int64)


def check_lengths(cells: Cells) -> None:
    """Refuse arrays that don't run in parallel."""
    arrays = (cells.rows, cells.columns, cells.values, cells.weights)
    lengths = [array.shape for array in arrays if array is not None]
    if any(len(shape) != 1 or shape != lengths[0] for shape in lengths):
        found = ", ".join(str(shape[0] if len(shape) == 1 else shape) for shape in lengths)
        raise DataError(
            f"Rows, columns, values and weights must be lists of one length. Found lengths {found}. "
            "Give every cell a row, a column and a value."
        )


def check_values(values: np.ndarray, where: Where) -> None:
    """Refuse infinite values; NaN is an unseen cell."""
    infinite = np.isinf(values)
    if infinite.any():
        first = int(np.argmax(infinite))
        raise DataError(
            f"Values must be finite. Found {values[first]} at {where(first)}. Replace it by NaN if it is unknown."
        )


def check_weights(weights: np.ndarray | None, where: Where) -> None:
    """Refuse negative, infinite and missing weights."""
    if weights is None:
        return
    bad = ~np.isfinite(weights) | (weights < 0)
    if bad.any():
        first = int(np.argmax(bad))
        raise DataError(
            f"Weights of cells must be finite and not negative. Found {weights[first]} at {where(first)}. "
            "Use 0 for a cell that should not count."
        )


def speaking(values: np.ndarray, weights: np.ndarray | None, unseen: str) -> np.ndarray | None:
    """Which cells say anything before repeated ones are merged; None if all do."""
    keep = ~np.isnan(values)
    if weights is not None and unseen == "missing":
        keep &= weights > 0
    return None if keep.all() else keep


def differing_from_unseen(values: np.ndarray, weights: np.ndarray | None, unseen: str) -> np.ndarray | None:
    """Which cells say something else than an unseen cell would; None if all do."""
    if unseen == "missing":
        return None
    keep = values != 0
    if weights is not None:
        keep |= weights != 1
    return None if keep.all() else keep


def counting_order(codes: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """A stable counting sort of codes in 0..size-1: (where each code starts, the order that sorts them)."""
    starts = np.arange(codes.size + 1, dtype=index_dtype((codes.size, size), codes.size))
    one_cell_a_row = (np.ones(codes.size, dtype=np.int8), codes.astype(starts.dtype, copy=False), starts)
    by_code = sparse.csr_array(one_cell_a_row, shape=(codes.size, size)).tocsc()
    return by_code.indptr, by_code.indices


def in_row_order(cells: Cells, shape: tuple[int, int]) -> Cells:
    """The same cells by row and then column; repeated cells keep their order. Those passed in are used up."""
    if _already_in_row_order(cells):
        return cells
    order = _row_order(cells, shape)
    cells.columns = cells.columns[order]
    cells.values = cells.values[order]
    if cells.weights is not None:
        cells.weights = cells.weights[order]
    return cells


def _row_order(cells: Cells, shape: tuple[int, int]) -> np.ndarray:
    """The order that sorts the cells; their rows are sorted already when it returns, to hold few arrays at once."""
    _, by_column = counting_order(cells.columns, shape[1])
    cells.rows = cells.rows[by_column]
    starts, by_row = counting_order(cells.rows, shape[0])
    cells.rows = np.repeat(np.arange(shape[0], dtype=cells.rows.dtype), np.diff(starts))
    return by_column[by_row]


def _already_in_row_order(cells: Cells) -> bool:
    rows, columns = cells.rows, cells.columns
    later_row = rows[1:] > rows[:-1]
    same_row_not_earlier = (rows[1:] == rows[:-1]) & (columns[1:] >= columns[:-1])
    return bool((later_row | same_row_not_earlier).all())
