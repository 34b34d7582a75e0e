"""Cells that a model may be judged by: those that it was not fitted on."""

import warnings

import numpy as np

from halfseen.arrays import Array
from halfseen.errors import DataError, DataWarning
from halfseen.model import Seen
from halfseen.observed import Observed

#: Rows compared in one go: what was seen in a dense table is spelled out row by row.
_ROWS_AT_A_TIME = 1 << 12


def held_out(test: Observed, *seen: Seen) -> Observed:
    """The cells of test that none of `seen` has; the others are left out, with a warning.

    test : cells in the rows and columns of the model.
    seen : what training saw, in the same rows and columns.
    """
    again = np.zeros(test.nnz, bool)
    for one in seen:
        again |= _seen_before(test, one)
    if not again.any():
        return test
    if again.all():
        raise DataError(
            f"Test must have cells that training has not seen. Found none among {test.nnz}. Hold some out before the "
            "fit (halfseen.data.split_cells), or test on others."
        )
    warnings.warn(
        f"Test cells should not be among those of training. Found {np.count_nonzero(again)} of {test.nnz} that are. "
        "They were left out.",
        DataWarning,
        stacklevel=4,  # where the user called a metric
    )
    return test.select_cells(~again)


def _seen_before(test: Observed, seen: Seen) -> Array:
    """Whether each cell of test was seen."""
    n, m = test.shape
    again = np.zeros(test.nnz, bool)
    for top in range(0, n, _ROWS_AT_A_TIME):
        rows = np.arange(top, min(top + _ROWS_AT_A_TIME, n))
        indptr = test.indptr[top : rows[-1] + 2]
        cells = slice(indptr[0], indptr[-1])
        if cells.start < cells.stop:
            asked = cell_numbers(indptr, test.indices[cells], m)
            again[cells] = places_among(asked, cell_numbers(*seen.in_rows(rows), m)) >= 0
    return again


def cell_numbers(indptr: Array, columns: Array, width: int) -> Array:
    """Row * width + column of each cell of a CSR matrix, ascending."""
    return np.repeat(np.arange(indptr.size - 1) * width, np.diff(indptr)) + columns


def places_among(asked: Array, numbers: Array) -> Array:
    """Where each of the numbers asked for stands among ascending ones; -1 for nowhere."""
    places = np.searchsorted(numbers, asked)
    return np.where(np.append(numbers, -2)[places] == asked, places, -1)
