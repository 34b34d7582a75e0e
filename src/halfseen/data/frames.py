"""Frames of pandas, polars, Arrow and their kin, long or wide, read through narwhals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import narwhals as nw
import numpy as np

from halfseen.data.accounts import Account, might_be_long
from halfseen.data.arrays import as_numbers, dense_cells, well_formed
from halfseen.data.cells import Cells, index_dtype
from halfseen.data.grids import Grid
from halfseen.data.headers import LongHeader, check_present, heads_row_ids, likely_long, line_of_columns, long_header
from halfseen.data.labels import IDS_PER_CHUNK, coded, missing_id, numbered, quoted, text_array, uniform
from halfseen.data.numerals import NotANumber
from halfseen.data.observed import Observed
from halfseen.data.reading import Reading, weights_of
from halfseen.data.scales import NUMBERS, Scale
from halfseen.errors import DataError

PANDAS_INDEX = "__index_level_"  # how the names begin under which pandas hides an index in a Parquet file


def as_frame(X: Any) -> nw.DataFrame[Any] | None:
    """X as a narwhals frame, None if it is no frame at all."""
    if isinstance(X, np.ndarray):  # the most frequent case, known without asking every library
        return None
    try:
        frame = nw.from_native(X, pass_through=True)
    except nw.exceptions.DuplicateError as error:
        found = " ".join(line.strip("- ") for line in str(error).splitlines()[1:])
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
    """Which columns of a long frame hold rows, columns and values; None for a wide frame.

    Without `how` the headers alone are looked at, and what they leave open is not refused.
    """
    if how is None:
        return long_header(frame.columns, Reading(), lambda _: False)
    return long_header(frame.columns, how, lambda name: holds_numbers(frame.get_column(name)))


def _read_long(frame: nw.DataFrame[Any], header: LongHeader, how: Reading) -> Observed:
    if how.scale.ordered and header.value is not None:
        how = replace(how, levels=ordered_names(frame.get_column(header.value)) or how.levels)
    cells, row_labels, column_labels = _long_cells(frame, header, how.scale)
    shape = (row_labels.size, column_labels.size)
    given = how.cell_weight if how.weight_name is None else as_floats(frame.get_column(how.weight_name))
    cells.weights = weights_of(cells, shape, given)
    observed = how.observed(cells, shape, row_labels, column_labels)
    return replace(observed, account=Account.of_long(header, frame.columns, how.weight_name))


def ordered_names(column: nw.Series[Any]) -> tuple[str, ...]:
    """The texts of a column of ordered categories, from the lowest to the highest; none for other columns."""
    categories = tuple(column.dtype.categories) if isinstance(column.dtype, nw.Enum) else ()
    return categories if all(isinstance(one, str) for one in categories) else ()


def _long_cells(frame: nw.DataFrame[Any], header: LongHeader, scale: Scale) -> tuple[Cells, np.ndarray, np.ndarray]:
    rows, row_labels = _numbered_ids(frame.get_column(header.row), "row")
    columns, column_labels = _numbered_ids(frame.get_column(header.column), "column")
    values = np.ones(rows.size) if header.value is None else as_floats(frame.get_column(header.value), scale)
    return Cells(rows, columns, values), row_labels, column_labels


def _numbered_ids(ids: nw.Series[Any], side: str) -> tuple[np.ndarray, np.ndarray]:
    missing = ids.is_null().to_numpy()
    if missing.any():
        raise missing_id(side, f"at position {int(np.argmax(missing))} of column {ids.name!r}")
    if ids.dtype.is_integer() or ids.dtype.is_float() or ids.dtype == nw.Boolean or ids.dtype == nw.Datetime:
        return numbered(ids.to_numpy(), side)
    return _numbered_texts(ids) or numbered(ids.to_list(), side)


def _numbered_texts(ids: nw.Series[Any]) -> tuple[np.ndarray, np.ndarray] | None:
    """Ids that are all text, numbered in chunks: a list of all would take ten times their codes. None for others."""
    code_of: dict[str, int] = {}
    codes = np.empty(len(ids), dtype=index_dtype((1, 1), len(ids)))
    for start in range(0, len(ids), IDS_PER_CHUNK):
        here = slice(start, start + IDS_PER_CHUNK)
        chunk = ids[here].to_list()
        if set(map(type, chunk)) != {str}:
            return None
        codes[here] = coded(chunk, code_of)
    return codes, text_array(code_of)


def holds_numbers(column: nw.Series[Any]) -> bool:
    """Whether a column holds numbers, be it only as Python objects."""
    if column.dtype.is_numeric() or column.dtype == nw.Boolean:
        return True
    if column.dtype in (nw.Object, nw.Unknown):
        present = column.drop_nulls().to_list()
        return bool(present) and all(isinstance(one, (int, float, np.number, np.bool_)) for one in present)
    return False


def as_floats(column: nw.Series[Any], scale: Scale = NUMBERS) -> np.ndarray:
    """A column as floats, NaN where null; float32 stays float32."""
    if column.dtype == nw.Decimal:
        column = column.cast(nw.Float64)
    if column.dtype.is_numeric() or column.dtype == nw.Boolean:
        return as_numbers(column.to_numpy())  # a cast would refuse integers that floats can't hold to the last digit
    try:
        return scale.numbers(column.to_list())
    except NotANumber as error:
        kinds = "" if scale.names else "a number, or into "
        raise DataError(
            f"{scale.must} Found {error.field!r} at position {error.position} of column {column.name!r}. "
            f"{scale.advice(error.field)}Turn it into {kinds}a null if it is unknown."
        ) from None


def _read_wide(frame: nw.DataFrame[Any], how: Reading) -> Observed:
    how.refuse_weight_name()
    row_labels, names = _rows_and_columns(frame, how)
    array = well_formed(wide_array(frame, names, how.scale))
    cells = dense_cells(array, weights_by_name(how, names, row_labels))
    observed = how.observed(cells, array.shape, row_labels, _column_labels(names), zeros="drop")
    first = frame.columns[0] if frame.columns else None
    rows_from = "the index" if first in names else f"column {first!r}"
    roles = {} if row_labels is None else {"rows": rows_from}
    doubt = how_if_long(array, frame.columns, likely_long_of(frame), how)
    return replace(observed, account=Account("wide", roles, width=len(names), holds=how.scale.kind, if_long=doubt))


def likely_long_of(frame: nw.DataFrame[Any]) -> LongHeader | None:
    """What the columns of a frame would be, were it long."""
    return likely_long(frame.columns, lambda name: holds_numbers(frame.get_column(name)))


def how_if_long(array: np.ndarray, names: Sequence[Any], likely: LongHeader | None, how: Reading) -> str:
    """How to read a wide table if it should be a long one, which only the caller knows; empty where he has said it."""
    if likely is None or how.layout == "wide" or array.shape[1] != len(names):
        return ""
    columns = array[:, [list(names).index(name) for name in likely]]
    return line_of_columns(likely) if might_be_long(columns) else ""


def wide_grid(frame: nw.DataFrame[Any]) -> Grid:
    """A wide frame as it lies."""
    row_labels, names = _rows_and_columns(frame, Reading())
    return Grid(well_formed(wide_array(frame, names)), row_labels, _column_labels(names))


def weights_by_name(how: Reading, names: Sequence[Any], row_labels: np.ndarray | None) -> Any:
    """The weights of a wide table; those of a frame are found by the names of its columns, where both have names."""
    frame = None if how.cell_weight is None else as_frame(how.cell_weight)
    if frame is None:
        return how.cell_weight
    rows, found = _rows_and_columns(frame, how)
    if set(names) == set(frame.columns):
        rows, found = _index(frame), list(frame.columns)
    if set(found) != set(names):
        if _column_labels(list(names)) is None or _column_labels(found) is None:
            return how.cell_weight
        raise _other_columns(found, names)
    _check_same_rows(rows, row_labels)
    return wide_array(frame, list(names))


def _other_columns(found: Sequence[Any], names: Sequence[Any]) -> DataError:
    lacking = [name for name in names if name not in found]
    odd = f"no {lacking[0]!r}" if lacking else repr(next(name for name in found if name not in names))
    return DataError(
        f"cell_weight must have the columns of X. Found {odd} among its columns. "
        "Rename them, or pass an array, whose columns are in the order of X's."
    )


def _check_same_rows(found: np.ndarray | None, wanted: np.ndarray | None) -> None:
    if found is None and wanted is None:
        return
    # An index that only counts the rows was not taken for labels, but tells their order all the same.
    size = len(found if found is not None else wanted)  # type: ignore[arg-type]
    found, wanted = (np.arange(size) if labels is None else labels for labels in (found, wanted))
    in_one_order = set(found.tolist()) == set(wanted.tolist())
    if found.shape != wanted.shape or not in_one_order or (found == wanted).all():
        return
    first = int(np.argmin(found == wanted))
    raise DataError(
        f"cell_weight must have the rows of X, in their order. Found row {quoted(found[first])} in the place of row "
        f"{quoted(wanted[first])}. Sort it as X, or pass an array, whose rows are in the order of X's."
    )


def holds_nothing_but_columns(frame: nw.DataFrame[Any]) -> bool:
    """Whether all columns of a wide frame are columns of the matrix: numbers, and none that names the rows."""
    all_numbers = all(dtype.is_numeric() for dtype in frame.schema.dtypes())
    return all_numbers and _rows_and_columns(frame, Reading())[1] == list(frame.columns)


def _rows_and_columns(frame: nw.DataFrame[Any], how: Reading) -> tuple[np.ndarray | None, list[Any]]:
    """The labels of the rows, if there are any, and the names of the columns that remain."""
    hidden = [name for name in frame.columns if str(name).startswith(PANDAS_INDEX)]
    names = [name for name in frame.columns if name not in hidden]
    first = frame.get_column(names[0]) if names else None
    if first is not None and len(names) > 1 and not how.fits_column(first.name) and _holds_row_ids(first):
        return uniform(first.to_numpy(), "row"), names[1:]
    if (index := _index(frame)) is not None:
        return index, names
    if hidden:
        return _hidden_index(frame, hidden), names
    if first is not None and _names_rows(first):
        return text_array(first.to_list()), names[1:]
    return None, names


def _holds_row_ids(column: nw.Series[Any]) -> bool:
    """Whether a column is headed as ids of rows are, and holds integers, different in every row."""
    are_ids = heads_row_ids(column.name) and column.dtype.is_integer() and not column.is_null().any()
    return are_ids and column.n_unique() == len(column)


def _index(frame: nw.DataFrame[Any]) -> np.ndarray | None:
    """The index of a pandas frame, unless it only counts the rows, has several levels, or repeats itself."""
    index = nw.maybe_get_index(frame)
    if index is None or index.nlevels > 1 or not index.is_unique:
        return None
    labels = index.to_numpy()
    counts_rows = labels.dtype.kind in "iu" and np.array_equal(labels, np.arange(labels.size))
    return None if counts_rows else uniform(labels, "row")


def _hidden_index(frame: nw.DataFrame[Any], hidden: list[str]) -> np.ndarray | None:
    index = frame.get_column(hidden[0])
    return uniform(index.to_list(), "row") if len(hidden) == 1 and index.n_unique() == len(index) else None


def _names_rows(column: nw.Series[Any]) -> bool:
    """Whether a column holds text, different in every row."""
    fields = [] if holds_numbers(column) else column.to_list()
    return bool(fields) and all(isinstance(field, str) for field in fields) and len(set(fields)) == len(fields)


def wide_array(frame: nw.DataFrame[Any], names: list[Any], scale: Scale = NUMBERS) -> np.ndarray:
    """The named columns side by side; float32 if all of them are."""
    for name in names:
        _check_numbers(frame, name, scale)
    columns = [as_floats(frame.get_column(name), scale) for name in names]
    dtype = np.float32 if columns and all(column.dtype == np.float32 for column in columns) else np.float64
    array = np.empty((len(frame), len(names)), dtype=dtype)
    for position, column in enumerate(columns):
        array[:, position] = column
    return array


def _check_numbers(frame: nw.DataFrame[Any], name: Any, scale: Scale) -> None:
    column = frame.get_column(name)
    if not (scale.names or holds_numbers(column) or column.is_null().all()):
        advised = line_of_columns(likely_long_of(frame))
        raise DataError(
            f"The columns of a wide table must be numbers. Found column {name!r} of type {column.dtype}. "
            f"Drop it, make it the index, or name the columns of a long table: {advised}."
        )


def _column_labels(names: list[Any]) -> np.ndarray | None:
    """Names as labels, unless pandas only counted the columns."""
    return None if names == list(range(len(names))) else uniform(names, "column")
