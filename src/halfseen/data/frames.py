"""Frames of pandas, polars, Arrow and their kin, long or wide, read through narwhals."""

from __future__ import annotations

from typing import Any

import narwhals as nw
import numpy as np

from halfseen.data.arrays import as_numbers, dense_cells, well_formed
from halfseen.data.cells import Cells
from halfseen.data.headers import LongHeader, check_present, long_header
from halfseen.data.labels import missing_id, numbered, text_array, uniform
from halfseen.data.numerals import NotANumber, numbers
from halfseen.data.observed import Observed
from halfseen.data.reading import Reading, weights_of
from halfseen.errors import DataError

PANDAS_INDEX = "__index_level_0__"  # the name under which pandas hides an index in a Parquet file


def as_frame(X: Any) -> nw.DataFrame[Any] | None:
    """X as a narwhals frame, None if it is no frame at all."""
    try:
        frame = nw.from_native(X, pass_through=True)
    except nw.exceptions.DuplicateError as error:
        found = " ".join(str(error).splitlines()[1:])
        raise DataError(f"Every column must have its own name. Found {found}. Rename one of them.") from None
    if isinstance(frame, nw.LazyFrame):
        raise DataError("A frame must be in memory. Found a lazy one. Collect it first: X.collect().")
    return frame if isinstance(frame, nw.DataFrame) else None


def read_frame(frame: nw.DataFrame[Any], how: Reading) -> Observed:
    """A frame, long if its headers or the caller say so, else wide."""
    if how.weight_name is not None:
        check_present(how.weight_name, frame.columns)
    header = long_header_of(frame, how)
    return _read_wide(frame, how) if header is None else _read_long(frame, header, how)


def long_header_of(frame: nw.DataFrame[Any], how: Reading | None = None) -> LongHeader | None:
    """Which columns of a long frame hold rows, columns and values; None for a wide frame."""
    return long_header(frame.columns, how or Reading(), lambda name: holds_numbers(frame.get_column(name)))


def _read_long(frame: nw.DataFrame[Any], header: LongHeader, how: Reading) -> Observed:
    rows, row_labels = _numbered_ids(frame.get_column(header.row), "row")
    columns, column_labels = _numbered_ids(frame.get_column(header.column), "column")
    values = np.ones(rows.size) if header.value is None else as_floats(frame.get_column(header.value))
    cells, shape = Cells(rows, columns, values), (row_labels.size, column_labels.size)
    given = how.cell_weight if how.weight_name is None else as_floats(frame.get_column(how.weight_name))
    return how.observed(cells._replace(weights=weights_of(cells, shape, given)), shape, row_labels, column_labels)


def _numbered_ids(ids: nw.Series[Any], side: str) -> tuple[np.ndarray, np.ndarray]:
    missing = ids.is_null().to_numpy()
    if missing.any():
        raise missing_id(side, f"at position {int(np.argmax(missing))} of column {ids.name!r}")
    if ids.dtype.is_integer() or ids.dtype.is_float() or ids.dtype == nw.Boolean or ids.dtype == nw.Datetime:
        return numbered(ids.to_numpy(), side)
    return numbered(ids.to_list(), side)


def holds_numbers(column: nw.Series[Any]) -> bool:
    """Whether a column holds numbers, be it only as Python objects."""
    if column.dtype.is_numeric() or column.dtype == nw.Boolean:
        return True
    if column.dtype in (nw.Object, nw.Unknown):
        present = column.drop_nulls().to_list()
        return bool(present) and all(isinstance(one, (int, float, np.number, np.bool_)) for one in present)
    return False


def as_floats(column: nw.Series[Any]) -> np.ndarray:
    """A column as floats, NaN where null; float32 stays float32."""
    if column.dtype == nw.Decimal:
        column = column.cast(nw.Float64)
    if column.dtype.is_numeric() or column.dtype == nw.Boolean:
        return as_numbers(column.to_numpy())  # a cast would refuse integers that floats can't hold to the last digit
    try:
        return numbers(column.to_list())
    except NotANumber as error:
        raise DataError(
            f"Values must be numbers. Found {error.field!r} at position {error.position} of column {column.name!r}. "
            "Turn it into a number, or into a null if it is unknown."
        ) from None


def _read_wide(frame: nw.DataFrame[Any], how: Reading) -> Observed:
    how.refuse_weight_name()
    row_labels, names = _rows_and_columns(frame)
    array = well_formed(wide_array(frame, names))
    cells = dense_cells(array, how.cell_weight)
    return how.observed(cells, array.shape, row_labels, _column_labels(names))


def _rows_and_columns(frame: nw.DataFrame[Any]) -> tuple[np.ndarray | None, list[Any]]:
    """The labels of the rows, if there are any, and the names of the columns that remain."""
    index, names = _index(frame), list(frame.columns)
    if index is not None:
        return index, names
    if PANDAS_INDEX in names:
        names.remove(PANDAS_INDEX)
        return uniform(frame.get_column(PANDAS_INDEX).to_list(), "row"), names
    if names and _names_rows(frame.get_column(names[0])):
        return text_array(frame.get_column(names[0]).to_list()), names[1:]
    return None, names


def _index(frame: nw.DataFrame[Any]) -> np.ndarray | None:
    """The index of a pandas frame, unless it only counts the rows."""
    index = nw.maybe_get_index(frame)
    if index is None:
        return None
    labels = index.to_numpy()
    counts_rows = labels.dtype.kind in "iu" and np.array_equal(labels, np.arange(labels.size))
    return None if counts_rows else uniform(labels, "row")


def _names_rows(column: nw.Series[Any]) -> bool:
    """Whether a column holds text, different in every row."""
    fields = [] if holds_numbers(column) else column.to_list()
    return bool(fields) and all(isinstance(field, str) for field in fields) and len(set(fields)) == len(fields)


def wide_array(frame: nw.DataFrame[Any], names: list[Any]) -> np.ndarray:
    """The named columns side by side; float32 if all of them are."""
    columns = [_checked_floats(frame.get_column(name)) for name in names]
    dtype = np.float32 if columns and all(column.dtype == np.float32 for column in columns) else np.float64
    array = np.empty((len(frame), len(names)), dtype=dtype)
    for position, column in enumerate(columns):
        array[:, position] = column
    return array


def _checked_floats(column: nw.Series[Any]) -> np.ndarray:
    if not (holds_numbers(column) or column.is_null().all()):
        raise DataError(
            f"The columns of a wide table must be numbers. Found column {column.name!r} of type {column.dtype}. "
            'Drop it, make it the index, or name the columns of a long table: columns=("user", "item", "rating").'
        )
    return as_floats(column)


def _column_labels(names: list[Any]) -> np.ndarray | None:
    """Names as labels, unless pandas only counted the columns."""
    return None if names == list(range(len(names))) else uniform(names, "column")
