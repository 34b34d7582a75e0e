"""Dense arrays, masked arrays and sparse matrices, read as half-seen matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from halfseen.data.cells import Cells, as_values, index_dtype
from halfseen.data.labels import NULL_TYPES, Places, quoted
from halfseen.data.numerals import NotANumber
from halfseen.data.observed import Observed
from halfseen.data.reading import Reading, weights_of
from halfseen.data.scales import NUMBERS, Scale
from halfseen.errors import DataError

CELLS_PER_BLOCK = 1 << 22


def read_dense(X: Any, how: Reading) -> Observed:
    """A dense array-like: NaN, None and masked cells are unseen; 0 is a value, unless unseen cells are 0 as well."""
    how.refuse_frame_words()
    array = with_holes(X, well_formed(X), how.scale)
    return how.observed(dense_cells(array, how.cell_weight), array.shape, zeros="drop")


def with_holes(X: Any, array: np.ndarray, scale: Scale = NUMBERS) -> np.ndarray:
    """What was made an array of X as floats, NaN where X is masked."""
    array = as_numbers(array, scale)
    return np.where(np.ma.getmaskarray(X), np.nan, array) if isinstance(X, np.ma.MaskedArray) else array


def dense_cells(array: np.ndarray, cell_weight: Any = None) -> Cells:
    """The seen cells of a float array, with their weights."""
    seen = ~np.isnan(array)
    rows, columns = _coordinates(seen)
    cells = Cells(rows, columns, array[seen])
    cells.weights = weights_of(cells, array.shape, cell_weight)
    return cells


def _coordinates(seen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of the true cells, in blocks, because np.nonzero alone takes 16 bytes a cell."""
    count = int(np.count_nonzero(seen))
    dtype = index_dtype(seen.shape, count)
    rows, columns = np.empty(count, dtype), np.empty(count, dtype)
    height = max(1, CELLS_PER_BLOCK // max(seen.shape[1], 1))
    done = 0
    for top in range(0, seen.shape[0], height):
        block_rows, block_columns = np.nonzero(seen[top : top + height])
        here = slice(done, done := done + block_rows.size)
        rows[here] = block_rows + top
        columns[here] = block_columns
    return rows, columns


def well_formed(X: Any, accept_sparse: bool = False) -> Any:
    """X as a two-dimensional array, refused in scikit-learn's words, which its estimator checks ask for."""
    if type(X) is np.ndarray and X.ndim == 2 and X.dtype in (np.float32, np.float64) and X.size:
        return X  # as scikit-learn would, only sooner
    from sklearn.utils.validation import check_array

    try:
        return check_array(X, accept_sparse=accept_sparse, dtype=None, ensure_all_finite=False)
    except ValueError as error:
        if "inhomogeneous" in str(error):
            sentence = "The rows of X must be lists of one length. Found different lengths. Fill them up with NaN."
            raise DataError(sentence) from None
        raise DataError(str(error)) from None


def as_numbers(array: np.ndarray, scale: Scale = NUMBERS) -> np.ndarray:
    """An array of numbers, number-like text, None and NaN as floats; one that holds floats already is not copied.

    Where the scale has names, text must be one of these.
    """
    if array.dtype in (np.float32, np.float64):
        return array
    if array.dtype.kind not in "OUS":
        return as_values(array)
    if scale.names:
        return _levels(array, scale)
    try:
        return array.astype(np.float64)
    except (ValueError, TypeError):
        columns = array.shape[-1]
        converted = [_number(scale, one, *divmod(cell, columns)) for cell, one in enumerate(array.flat)]
        return np.array(converted).reshape(array.shape)


def _levels(array: np.ndarray, scale: Scale) -> np.ndarray:
    try:
        return scale.numbers(array.reshape(-1).tolist()).reshape(array.shape)
    except NotANumber as error:
        raise _no_number(scale, error.field, *divmod(error.position, array.shape[-1])) from None


def _number(scale: Scale, one: Any, row: int, column: int) -> float:
    try:
        return np.nan if type(one).__name__ in NULL_TYPES else float(one)
    except ValueError:
        raise _no_number(scale, one, row, column) from None


def _no_number(scale: Scale, one: Any, row: int, column: int) -> DataError:
    remedy = f"{scale.advice(one)}Turn it into {'' if scale.names else 'a number, or into '}NaN if it is unknown."
    return DataError(f"{scale.must} Found {quoted(one)} at {Places().of(row, column)}. {remedy}")


def read_sparse(X: Any, how: Reading) -> Observed:
    """Any scipy sparse matrix or array: what is not stored is unseen, a stored 0 is a value, a stored NaN unseen.

    A block of a BSR matrix stores all its cells; a DIA matrix can't store a 0.
    """
    how.refuse_frame_words()
    if X.ndim != 2:
        raise DataError(f"X must have rows and columns. Found a sparse array of shape {X.shape}. Reshape it.")
    coordinates = _without_slack(well_formed(X, accept_sparse=True)).tocoo(copy=False)
    rows, columns = coordinates.coords
    cells = Cells(rows, columns, as_values(coordinates.data))
    del coordinates, rows, columns
    cells.weights = weights_of(cells, X.shape, how.cell_weight)
    return how.observed(cells, X.shape)


def _without_slack(matrix: Any) -> Any:
    """CSR and CSC may own more room than they use, which scipy's tocoo would read as cells."""
    if matrix.format in ("csr", "csc") and matrix.indices.size > matrix.indptr[-1]:
        matrix = matrix.copy()
        matrix.prune()
    return matrix
