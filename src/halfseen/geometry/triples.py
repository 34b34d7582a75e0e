"""Triples (X, Y, Z) of matrices that share rows or columns, and the L-shaped table they make."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from halfseen.arrays import Array
from halfseen.errors import DataError
from halfseen.io.reader import as_numbers
from halfseen.labels import Places
from halfseen.observed import as_values


class Triple(NamedTuple):
    """X of shape (I, J); Y of shape (N, J), sharing its columns; Z of shape (I, M), sharing its rows.

    Together they are the cells of a table whose last block is missing:

        X  Z
        Y  .
    """

    X: Any
    """(I, J)"""
    Y: Any
    """(N, J), below X"""
    Z: Any
    """(I, M), beside X"""

    @classmethod
    def read(cls, X: Any, Y: Any = None, Z: Any = None) -> Triple:
        """X, Y and Z: dense or sparse matrices of finite numbers, none of them negative; None is an empty one."""
        X = _matrix(X, "X")
        rows, columns = X.shape
        if not (rows and columns):
            raise DataError(f"X must have a row and a column. Found shape {X.shape}. Pass Y or Z as X if it is all.")
        Y = np.empty((0, columns), X.dtype) if Y is None else _matrix(Y, "Y")
        Z = np.empty((rows, 0), X.dtype) if Z is None else _matrix(Z, "Z")
        if Y.shape[1] != columns:
            raise DataError(
                f"Y must have {columns} columns like X. Found shape {Y.shape}. Transpose Y, or pass it as Z."
            )
        if Z.shape[0] != rows:
            raise DataError(f"Z must have {rows} rows like X. Found shape {Z.shape}. Transpose Z, or pass it as Y.")
        return cls(X, Y, Z)

    def total(self) -> float:
        """S(X) + S(Y) + S(Z)."""
        with np.errstate(over="ignore"):
            total = float(sum(part.sum(dtype=np.float64) for part in self))
        if not 0 < total < np.inf:
            raise DataError(f"The sum of X, Y and Z must be finite and above 0. Found {total:g}. Rescale all three.")
        return total

    def joined(self, block: Any = np.nan) -> Array:
        """The table [X Z; Y block] in double precision."""
        x, y, z = (part.toarray() if sparse.issparse(part) else part for part in self)
        filled = np.broadcast_to(block, (y.shape[0], z.shape[1]))
        table: Array = np.block([[x, z], [y, filled]]).astype(np.float64, copy=False)
        return table

    @classmethod
    def split(cls, table: Array, shape: tuple[int, int]) -> Triple:
        """The parts of a table, whose X has this shape."""
        rows, columns = shape
        return cls(table[:rows, :columns], table[rows:, :columns], table[:rows, columns:])


def _matrix(values: Any, name: str) -> Any:
    """A checked matrix: float32 stays float32, everything else becomes float64; sparse stays sparse, in coordinates."""
    matrix: Any = values.tocoo() if sparse.issparse(values) else _array(values, name)
    if matrix.ndim != 2:
        found = f"shape {matrix.shape}" if matrix.ndim else f"a {type(values).__name__}"
        raise DataError(f"{name} must have rows and columns. Found {found}. Pass an array of two axes.")
    if sparse.issparse(matrix):
        matrix = sparse.coo_array((as_values(matrix.data), matrix.coords), shape=matrix.shape)
    else:
        matrix = as_numbers(matrix)
    cells = matrix.data if sparse.issparse(matrix) else matrix
    if not (cells.min(initial=0.0) >= 0 and cells.max(initial=0.0) < np.inf):  # so NaN does not pass
        _refuse_illegal(matrix, name)
    return matrix


def _array(values: Any, name: str) -> Array:
    if isinstance(values, np.ma.MaskedArray):
        return np.ma.filled(values.astype(np.float64), np.nan)
    try:
        return np.asarray(values)
    except ValueError:
        raise DataError(f"The rows of {name} must be of one length. Found different ones. Make them equal.") from None


def _refuse_illegal(matrix: Any, name: str) -> None:
    cells = sparse.coo_array(matrix)
    first = int(np.argmax(~((cells.data >= 0) & (cells.data < np.inf))))
    place = Places().of(*(int(position[first]) for position in cells.coords))
    raise DataError(
        f"Cells of {name} must be finite and not negative. Found {cells.data[first]:g} at {place}. "
        "Correct it, or use RankOneNMF if it is a hole."
    )
