"""Training and test cells brought to the rows and columns of a model."""

import warnings
from typing import Any

import numpy as np

from halfseen.arrays import Array
from halfseen.data import Observed
from halfseen.data.labels import keys
from halfseen.errors import DataError, DataWarning
from halfseen.metrics.scorers import Scorer


def matched(observed: Observed, scorer: Scorer, name: str, *, duplicates: str) -> Observed:
    """The same cells where the scorer has their rows and columns; others are left out, with a warning.

    Labels find labels. Where only the data have labels, these are positions; where they have none, the data must have
    as many rows (or columns) as the scorer.
    """
    rows = _positions(observed.row_labels, observed.shape[0], scorer.labels.row_labels, scorer.shape[0], "row", name)
    columns = _positions(
        observed.column_labels, observed.shape[1], scorer.labels.column_labels, scorer.shape[1], "column", name
    )
    if rows is None and columns is None and (duplicates == "keep" or observed.firsts is None):
        return observed
    row_of_cell, column_of_cell = observed.row_of_cell(), observed.indices
    row_of_cell = row_of_cell if rows is None else rows[row_of_cell]
    column_of_cell = column_of_cell if columns is None else columns[column_of_cell]
    known = (row_of_cell >= 0) & (column_of_cell >= 0)
    _warn_of_unknown(observed, known, name)
    return Observed.from_cells(
        row_of_cell[known], column_of_cell[known], observed.values[known], scorer.shape,
        unseen=observed.unseen, duplicates=duplicates, allow_empty=True,
    )  # fmt: skip


def _positions(labels: Array | None, size: int, known: Array | None, count: int, side: str, name: str) -> Array | None:
    """Where each row or column of the data stands in the scorer, -1 for nowhere; None if each stands where it stood."""
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
    return _found(labels, known)


def _found(labels: Array, known: Array) -> Array:
    asked, there = keys(labels), keys(known)
    if {labels.dtype.kind, known.dtype.kind} in ({"O", "i"}, {"O", "u"}):  # 7 finds "7"
        asked, there = list(map(str, asked)), list(map(str, there))
    position_of: dict[Any, int] = {label: position for position, label in enumerate(there)}
    return np.array([position_of.get(label, -1) for label in asked], np.int64)


def _warn_of_unknown(observed: Observed, known: Array, name: str) -> None:
    if known.all():
        return
    unknown = np.flatnonzero(~known)
    warnings.warn(
        f"The cells of {name} should be in rows and columns that the model knows. Found {unknown.size} of "
        f"{observed.nnz} that are not, the first at {observed.place(int(unknown[0]))}. They were left out.",
        DataWarning,
        stacklevel=5,  # where the user called a metric
    )
