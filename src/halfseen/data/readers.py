"""The one door by which data come in: `observe` takes every kind of half-seen matrix."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from halfseen.data.arrays import read_dense, read_sparse, well_formed, with_holes
from halfseen.data.cells import Cells
from halfseen.data.files import read_file
from halfseen.data.frames import as_frame, long_header_of, read_frame, wide_grid
from halfseen.data.grids import Grid
from halfseen.data.labels import positions_or_nowhere, text_array
from halfseen.data.observed import Observed
from halfseen.data.reading import Reading, weights_of
from halfseen.data.scales import Scale
from halfseen.data.triples import are_triples, read_triples
from halfseen.errors import DataError


def observe(
    X: Any,
    *,
    unseen: str | None = "missing",
    cell_weight: Any = None,
    duplicates: str = "error",
    layout: str = "auto",
    columns: tuple[Any, ...] | None = None,
    column_labels: Any = None,
    allow_empty: bool = False,
    header: bool | None = None,
    levels: Any = None,
) -> Observed:
    """Read a half-seen matrix of any kind.

    Parameters
    ----------
    X : a dense array-like (NaN, None and masked cells are unseen); a scipy sparse matrix or array (what is not stored
        is unseen, a stored 0 is a value); a pandas, polars or Arrow frame, or a path to a text file (.csv, .tsv, ...,
        also .gz) or a Parquet file, long (row, column, value) or wide; or an `Observed`. The rows of a wide table are
        named by its first column if that holds texts, or whole numbers under a header such as "id" or "user_id",
        different in every row; else by the index of a pandas frame, unless it only counts the rows, repeats itself or
        has several levels: the rows go without labels then. A list of triples (row, column, value) whose rows are named
        by text, or with layout="long", is a long table as well.
    unseen : "missing" (an unseen cell may be anything), "zero" (it is 0), or None (as an `Observed` has it, else
        "missing"). Under "zero" the zeros of dense arrays and wide tables are unseen cells; those that sparse
        matrices, long tables and an `Observed` store were seen, and stay.
    cell_weight : how much each cell counts: an array of X's shape, a frame with the columns of a wide table, in any
        order, a sparse matrix that stores the same cells, a list in the order of the cells, or the name of a column of
        a long table.
    duplicates : what to do with a cell given more than once: "error", "sum", "mean", "min", "max", "first", "last",
        or "keep"; see `Observed.from_cells`.
    layout : "long", "wide" or "auto" (long if the headers look so: user, item, rating and the like).
    columns : the headers of rows, columns and values of a long table, such as ("user", "item", "rating"); only the
        first two if every listed pair counts as 1. In a text file also position numbers, from 0.
    column_labels : the labels of the columns of a fitted model: the result has exactly these columns, in this order.
    allow_empty : allow a matrix without a seen cell.
    header : whether the first line of a text file holds the names of its columns; None: decide by looking at it.
        Frames and Parquet files always have names.
    levels : for values that are texts with an order: these texts, from the lowest to the highest, which are read as the
        numbers 1, 2, ...; "ordered" takes the texts and their order from a long frame's values, if these are ordered
        categories; None: values are numbers.

    Examples
    --------
    >>> import halfseen as hs
    >>> hs.observe([[5, 3, None], [4, None, 1]])
    Observed(2 x 3, 4 cells seen (0.667 of all), unseen='missing', float64)
    >>> hs.observe([("ann", "tea", 2), ("bob", "jam", 1)], unseen="zero").row_labels
    array(['ann', 'bob'], dtype=object)
    """
    how = Reading(
        unseen or "missing", cell_weight, duplicates, layout, columns, column_labels, allow_empty, header, levels
    )
    if isinstance(X, Observed):
        return _again(X, replace(how, unseen=unseen or X.unseen))
    if sparse.issparse(X):
        return read_sparse(X, how)
    if isinstance(X, (str, os.PathLike)):
        return read_file(Path(X), how)
    if (frame := as_frame(X)) is not None:
        return read_frame(frame, how)
    if are_triples(X, how):
        return read_triples(X, how)
    if _is_array_like(X):
        return read_dense(X, how)
    raise DataError(
        "X must be an array, a scipy sparse matrix, a pandas, polars or Arrow frame, or the path of a CSV or Parquet "
        f"file. Found {'None' if X is None else f'a {type(X).__name__}'}. Turn it into one of these."
    )


def grid_of(X: Any) -> Grid | None:
    """X as a dense table, if that is what it is; None for sparse matrices, long tables, files and an `Observed`."""
    if isinstance(X, (Observed, str, os.PathLike)) or sparse.issparse(X):
        return None
    if (frame := as_frame(X)) is not None:
        return wide_grid(frame) if long_header_of(frame, Reading()) is None else None
    return Grid(with_holes(X, well_formed(X))) if _is_array_like(X) else None


def _is_array_like(X: Any) -> bool:
    is_sequence = isinstance(X, Sequence) and not isinstance(X, (str, bytes))
    return is_sequence or (hasattr(X, "__array__") and np.asarray(X).ndim > 0)


def _again(X: Observed, how: Reading) -> Observed:
    """An `Observed` as it is, or rebuilt where something else is wished for."""
    how.refuse_frame_words()
    if how.duplicates == "error":
        how = replace(how, duplicates="keep")  # cells it holds more than once were meant so
    X = _renamed(X, how.scale) if how.scale.names else X
    nothing_new = how.cell_weight is None and how.column_labels is None
    if nothing_new and how.unseen == X.unseen and how.duplicates == "keep":
        return X
    cells = Cells(X.row_of_cell(), X.indices, X.values, X.weights)
    if how.cell_weight is not None:
        cells.weights = weights_of(cells, X.shape, how.cell_weight)
    again = how.observed(cells, X.shape, X.row_labels, X.column_labels)
    return replace(again, level_names=X.level_names, account=X.account)


def _renamed(X: Observed, scale: Scale) -> Observed:
    """An `Observed` whose values 1, 2, ... stand for the texts of the scale."""
    if X.level_names is None or tuple(X.level_names) == scale.names:
        return replace(X, level_names=scale.labels)
    new = positions_or_nowhere(X.level_names, text_array(scale.names)) + 1
    is_level = X.values == np.floor(X.values)  # the mean of two levels is none, and says so later
    values = np.where(is_level, np.append(0, new)[X.values.astype(np.intp)], X.values)
    strange = np.flatnonzero((values == 0) & (X.values > 0))
    if strange.size:
        name = X.level_names[int(X.values[strange[0]]) - 1]
        cells = "1 such cell" if strange.size == 1 else f"{strange.size} such cells"
        raise DataError(
            f"{scale.must} Found {name!r} at {X.place(int(strange[0]))} ({cells}). Leave them out, or add the level."
        )
    return replace(X, values=values.astype(X.dtype), level_names=scale.labels)
