"""Cells brought to the rows and columns of a model."""

from __future__ import annotations

import warnings

import numpy as np

from halfseen.data.labels import Places, positions_or_nowhere
from halfseen.data.observed import Observed
from halfseen.errors import DataError, DataWarning


def matched(observed: Observed, shape: tuple[int, int], labels: Places, name: str, *, duplicates: str) -> Observed:
    """The same cells where the model has their rows and columns; others are left out, with a warning.

    Labels find labels. Where only the data have labels, these are positions; where they have none, the data must have
    as many rows (or columns) as the model.
    """
    rows = _positions(observed.row_labels, observed.shape[0], labels.row_labels, shape[0], "row", name)
    columns = _positions(observed.column_labels, observed.shape[1], labels.column_labels, shape[1], "column", name)
    if rows is None and columns is None and (duplicates == "keep" or observed.firsts is None):
        return observed
    row_of_cell, column_of_cell = observed.row_of_cell(), observed.indices
    row_of_cell = row_of_cell if rows is None else rows[row_of_cell]
    column_of_cell = column_of_cell if columns is None else columns[column_of_cell]
    known = (row_of_cell >= 0) & (column_of_cell >= 0)
    _warn_of_unknown(observed, known, name)
    return Observed.from_cells(
        row_of_cell[known], column_of_cell[known], observed.values[known], shape,
        weights=None if observed.weights is None else observed.weights[known], unseen=observed.unseen,
        row_labels=labels.row_labels, column_labels=labels.column_labels, duplicates=duplicates, allow_empty=True,
    )  # fmt: skip


def _positions(
    labels: np.ndarray | None, size: int, known: np.ndarray | None, count: int, side: str, name: str
) -> np.ndarray | None:
    """Where each row or column of the data stands in the model, -1 for nowhere; None if each stands where it stood."""
    if labels is None:
        if size != count:
            raise DataError(
                f"{name} must have the {count} {side}s of the model, or labels. Found {size} {side}s without labels. "
                f"Pass all {side}s in their order, or a frame with labels."
            )
        return None
    known = np.arange(count) if known is None else known
    if labels is known or np.array_equal(labels, known):
        return None
    return positions_or_nowhere(labels, known)


def _warn_of_unknown(observed: Observed, known: np.ndarray, name: str) -> None:
    if known.all():
        return
    unknown = np.flatnonzero(~known)
    warnings.warn(
        f"The cells of {name} should be in rows and columns that the model knows. Found {unknown.size} of "
        f"{observed.nnz} that are not, the first at {observed.place(int(unknown[0]))}. They were left out.",
        DataWarning,
        stacklevel=5,  # where the user called a metric, or a method of the model
    )
