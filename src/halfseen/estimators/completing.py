"""X with its holes filled, in the shape in which it came."""

from typing import Any

import narwhals as nw
import numpy as np

from halfseen.arrays import Array
from halfseen.errors import DataError
from halfseen.estimators.features import is_list_of_histories, observe_rows
from halfseen.io.reader import grid_of
from halfseen.io.schema import spelled_long
from halfseen.io.sources import as_frame
from halfseen.observed import Observed

#: The largest completed matrix that is made: 2^31 cells, 16 GB.
MOST_CELLS = 1 << 31


def completed(model: Any, X: Any) -> Any:
    """The model's mean in the holes of X, the rest as given."""
    frame = as_frame(X)
    grid = grid_of(X) if frame is None and not is_list_of_histories(X) else None
    if grid is not None:  # no list of its cells need be made
        filled = model._means(model._rows_of(X))
        np.copyto(filled, grid.values, where=~np.isnan(grid.values), casting="same_kind")
        return filled
    given = observe_rows(model, X, unseen="missing")
    if given.shape[0] * given.shape[1] > MOST_CELLS:
        raise DataError(
            f"A completed matrix must have at most {MOST_CELLS:,} cells. Found {given.shape[0]:,} x "
            f"{given.shape[1]:,}. Use predict for the cells of interest, or recommend for the best of each row."
        )
    filled = model._means(model._rows_of(X))
    filled[given.row_of_cell(), given.indices] = given.values
    if frame is None:
        return filled
    header = spelled_long(frame.columns, lambda _: False)
    return _wide(frame, given, filled) if header is None else _long(frame, header, given, filled)


def _wide(frame: Any, given: Observed, filled: Array) -> Any:
    """The frame with the holes of its columns filled; a column without a hole stays as it is."""
    holes = len(frame) - given.seen_per_column()
    labels = list(frame.columns) if given.column_labels is None else given.column_labels.tolist()
    backend = nw.get_native_namespace(frame)
    columns = [
        nw.new_series(name, filled[:, place], backend=backend)
        for place, name in enumerate(labels)
        if name in frame.columns and holes[place] > 0
    ]
    return frame.with_columns(*columns).to_native()


def _long(frame: Any, header: Any, given: Observed, filled: Array) -> Any:
    """A line for every pair of a row and a column."""
    n, m = given.shape
    rows = np.arange(n) if given.row_labels is None else given.row_labels
    columns = np.arange(m) if given.column_labels is None else given.column_labels
    lines = {
        header.row: np.repeat(rows, m).tolist(),
        header.column: np.tile(columns, n).tolist(),
        header.value or "value": filled.reshape(-1),
    }
    return nw.from_dict(lines, backend=nw.get_native_namespace(frame)).to_native()
