"""Wide tables: which columns name rows, which hold numbers, and how holes are filled where they stand."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfseen.errors import DataError, DataWarning
from halfseen.io.numbers import POINT, Parsed, Scale, holds_codes, is_amount, is_missing
from halfseen.io.schema import (
    LongHeader,
    ReadOptions,
    ReadSummary,
    check_present,
    columns_option,
    heads_codes,
    heads_row_ids,
    likely_long,
    might_be_long,
    recognise,
    spelled_long,
)
from halfseen.io.sources import as_frame, frame_table, open_file
from halfseen.io.tables import Table, holds_numbers, to_floats
from halfseen.labels import exact_integers, is_plain_integer, quoted, text_array, uniform
from halfseen.observed import Observed


@dataclass(frozen=True)
class RowNames:
    """Where the names of the rows of a wide table are: in its first column, in the index of a frame, or nowhere."""

    labels: np.ndarray | None = None
    #: Whether the first column is no column of the matrix.
    in_first_column: bool = False
    source: str = ""


def find_row_names(table: Table, options: ReadOptions) -> RowNames:
    """A first column names the rows if it has no header, holds a text of its own in every row, or a whole number of
    its own in every row under a header of row ids. Where ids are missing, the rows go without labels."""
    names = table.names
    if not names:
        return RowNames(table.index, source="the index" if table.index is not None else "")
    first = names[0]
    source = f"column {first!r}" if table.has_header and first != "" else "the first column"
    is_candidate = len(names) > 1 and not (table.has_header and options.fits_column(first))
    if is_candidate and table.has_header and heads_row_ids(first):
        ids = _distinct_integers(table, first)
        if ids is not None:
            if len(ids) == table.n_rows:
                return RowNames(uniform(ids, "row"), True, source)
            return RowNames(table.index, True, "" if table.index is None else "the index")
    if table.index is not None:
        return RowNames(table.index, source="the index")
    if table.is_text:
        fields = [text.strip() for text in table.texts(first)]
        has_text = any(not is_missing(text, table.markers) and not is_amount(text) for text in fields)
        if len(names) > 1 and (first == "" or (has_text and len(set(fields)) == len(fields))):
            table.check_on_one_line(fields, first)
            integers = all(map(is_plain_integer, fields))
            labels = exact_integers([int(text) for text in fields], "row") if integers else text_array(fields)
            return RowNames(labels, True, source)
    elif len(names) > 1 and not table.is_numeric(first):
        texts = table.texts(first)
        if texts and all(isinstance(text, str) for text in texts) and len(set(texts)) == len(texts):
            return RowNames(text_array(texts), True, source)
    return RowNames()


def _distinct_integers(table: Table, name: Any) -> list[Any] | np.ndarray | None:
    """The ids of a column of whole numbers, missing ones left out; None if some repeat or are no whole numbers."""
    if table.is_text:
        texts = [text.strip() for text in table.texts(name)]
        ids: Any = [text for text in texts if not is_missing(text, table.markers)]
        if not ids or not all(text.removeprefix("-").isdecimal() for text in ids):
            return None
        ids = exact_integers([int(text) for text in ids], "row") if all(map(is_plain_integer, ids)) else ids
    else:
        column = table.column(name)
        if isinstance(column, np.ndarray) or not (
            pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
        ):
            return None
        ids = column.drop_null().to_numpy()
        if ids.dtype.kind == "f":
            holes = np.isnan(ids).any() or column.null_count
            ids = ids[~np.isnan(ids)]
            if not holes or not ids.size or (ids != np.floor(ids)).any():
                return None  # integers become floats in pandas only where one is missing
    return ids if len(ids) and len(set(ids if isinstance(ids, list) else ids.tolist())) == len(ids) else None


def observe_wide(table: Table, options: ReadOptions, build: Any) -> Observed:
    """A wide table as a half-seen matrix; `build` makes it of a dense array."""
    if options.weight_name is not None:
        raise DataError(
            f"A wide table must have a weight for every cell. Found only the column {options.weight_name!r}. "
            "Pass an array of the table's shape."
        )
    table.read_columns(table.names)
    rows = find_row_names(table, options)
    names = table.names[rows.in_first_column :]
    if table.is_text and table.has_header and not options.scale.names:
        codes = [
            name for name in names if not options.fits_column(name) and holds_codes(table.column(name), table.markers)
        ]
        names = [name for name in names if name not in codes]
        if codes and not names:
            raise DataError(
                f"A wide table must have a column of amounts. Found only codes, padded with zeros, as in column "
                f"{codes[0]!r} of {table.name}. Name the columns of a long table: {columns_option(likely_long(table))}."
            )
        if codes:
            warnings.warn(
                "Columns of a wide table should hold amounts. Found numbers padded with zeros, as codes are, in column "
                f"{codes[0]!r} of {table.name} ({len(codes)} such in all). They were left out.",
                DataWarning,
                stacklevel=5,
            )
    array = wide_array(table, names, options.scale)
    if table.is_text:
        table.parser.settle()
    labels = column_labels(names) if table.has_header else None
    weights = options.cell_weight if labels is None else _weights_by_name(options, names, rows.labels)
    observed = build(array, weights, rows.labels, labels)
    likely = likely_long(table)
    if_long = ""
    if likely is not None and options.layout != "wide" and len(names) == len(table.names):
        columns = array[:, [table.position(name) for name in likely]]
        if_long = columns_option(likely) if might_be_long(columns) else ""
    summary = ReadSummary.of_wide(table, len(names), rows=rows.source, holds=options.scale.kind, if_long=if_long)
    return replace(observed, summary=summary)


def wide_array(table: Table, names: Sequence[Any], scale: Scale) -> np.ndarray:
    """The named columns side by side as floats; float32 if all of them are."""
    columns = []
    for name in names:
        if table.is_text:
            parsed = table.parser.parse(table.column(name), name, scale)
            if parsed.text is not None:
                row, found = parsed.text
                raise DataError(
                    f"{scale.must} Found {found!r} {table.place(row, name)}. {scale.advice(found)}"
                    f"{'Leave' if scale.names else 'Write a number, leave'} the field empty if it is unknown, drop the "
                    f"column, or say which columns to read: {columns_option(likely_long(table))}."
                )
            columns.append(parsed.values)
            continue
        column = table.column(name)
        if not (scale.names or holds_numbers(column) or _is_all_null(column)):
            kind = "object" if isinstance(column, np.ndarray) else column.type
            raise DataError(
                f"The columns of a wide table must be numbers. Found column {name!r} of type {kind}. "
                "Drop it, make it the index, or name the columns of a long table: "
                f"{columns_option(likely_long(table))}."
            )
        columns.append(table.numbers(name, scale))
    dtype = np.float32 if columns and all(column.dtype == np.float32 for column in columns) else np.float64
    array = np.empty((table.n_rows, len(columns)), dtype=dtype)
    for position, column in enumerate(columns):
        array[:, position] = column
    return array


def _is_all_null(column: Any) -> bool:
    if isinstance(column, np.ndarray):
        return all(map(is_missing, column))
    return column.null_count == len(column)


def column_labels(names: Sequence[Any]) -> np.ndarray | None:
    """Names as labels, unless pandas only counted the columns."""
    return None if list(names) == list(range(len(names))) else uniform(list(names), "column")


def _weights_by_name(options: ReadOptions, names: Sequence[Any], row_labels: np.ndarray | None) -> Any:
    """The weights of a wide table; those of a frame are found by the names of its columns, where both have names."""
    frame = None if options.cell_weight is None else as_frame(options.cell_weight)
    if frame is None:
        return options.cell_weight
    table = frame_table(frame)
    rows = find_row_names(table, options)
    found = table.names[rows.in_first_column :]
    labels = rows.labels
    if set(names) == set(table.names):
        found, labels = table.names, table.index
    if set(found) != set(names):
        if column_labels(names) is None or column_labels(found) is None:
            return options.cell_weight
        lacking = [name for name in names if name not in found]
        odd = f"no {lacking[0]!r}" if lacking else repr(next(name for name in found if name not in names))
        raise DataError(
            f"cell_weight must have the columns of X. Found {odd} among its columns. "
            "Rename them, or pass an array, whose columns are in the order of X's."
        )
    if labels is not None or row_labels is not None:
        # An index that only counts the rows was not taken for labels, but gives their order all the same.
        size = len(labels if labels is not None else row_labels)  # type: ignore[arg-type]
        there, wanted = (np.arange(size) if one is None else one for one in (labels, row_labels))
        same_set = there.shape == wanted.shape and set(there.tolist()) == set(wanted.tolist())
        if same_set and not (there == wanted).all():
            first = int(np.argmin(there == wanted))
            raise DataError(
                f"cell_weight must have the rows of X, in their order. Found row {quoted(there[first])} in the place "
                f"of row {quoted(wanted[first])}. Sort it as X, or pass an array, whose rows are in the order of X's."
            )
    return wide_array(table, list(names), Scale())


@dataclass(frozen=True)
class WideTable:
    """A wide table whose text goes through untouched: read, holes filled, written.

    `table` is the file as it was read, `numeric` are the names of its columns of numbers, those of `percent` with
    percent signs, `observed` are these as a half-seen matrix, `decimal` is their decimal mark. `notes` say what a user
    should look at: text among numbers, columns that may hold codes, a table that looks long. `n_holes` counts what
    `filled` fills.
    """

    table: Table = field(repr=False)
    numeric: list[str]
    observed: Observed
    percent: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()
    decimal: str = POINT
    n_holes: int = 0

    @property
    def names(self) -> list[str]:
        """Names of all columns; "0", "1", ... without a header."""
        return [str(name) for name in self.table.names]

    @property
    def has_header(self) -> bool:
        """Whether the file has a line of names."""
        return self.table.has_header

    @property
    def delimiter(self) -> str | None:
        """The separator of a text file, None for others."""
        return self.table.delimiter

    @property
    def thousands(self) -> str | None:
        """The thousands separator that was given for a text file."""
        return self.table.thousands

    @property
    def cells(self) -> list[list[Any]]:
        """All columns as they were read."""
        return self.table.cells

    def column(self, name: Any) -> list[Any]:
        """A column as it was read, by its name."""
        return self.table.texts(self.table.names[self.names.index(str(name))])

    def filled(self, values: np.ndarray) -> list[Any]:
        """The columns, holes filled from `values` (rows by numeric columns); what was observed stays as it was."""
        if values.shape != self.observed.shape:
            raise DataError(f"Values must have the shape {self.observed.shape}. Found {values.shape}.")
        filler = dict(zip(self.numeric, values.T, strict=True))
        markers = self.table.markers
        columns = []
        for name in self.table.names:
            column = self.table.texts(name)
            if str(name) in filler:
                sign = "%" if str(name) in self.percent else ""
                column = [
                    _with_sign(new, sign, self.decimal) if is_missing(old, markers) else old
                    for old, new in zip(column, filler[str(name)], strict=True)
                ]
            columns.append(column)
        return columns


def _with_sign(value: Any, sign: str, decimal: str) -> Any:
    return f"{value}".replace(POINT, decimal) + sign if sign else value


def read_wide_table(path: Any, skip: Sequence[str] = (), header: bool | None = None, **options: Any) -> WideTable:
    """Read a wide text or Parquet file whose columns of numbers may have holes.

    A column holds numbers if most of what is not missing in it are numbers. Columns named in `skip` go through like
    text, and so do a first column of row ids and numbers padded with zeros, which are codes.

    Parameters
    ----------
    path : str or path-like
        A file that `observe` reads.
    skip : sequence of str, default=()
        Names of columns to leave alone.
    header : bool, default=None
        Whether the first line of a text file holds names; None: find out.
    **options
        Reader options of `observe`: separator, decimal, thousands, na_values, comment, encoding.
    """
    how = ReadOptions(layout="wide", header=header, **options)
    table = open_file(path, how)
    table.read_columns(table.names)
    for name in skip:
        check_present(name, [str(one) for one in table.names])
    rows = find_row_names(table, how)
    columns: dict[Any, np.ndarray] = {}
    percent, notes, n_texts = set(), [], 0
    for name in table.names[rows.in_first_column :]:
        parsed = None if str(name) in skip else _parse_numeric(table, name)
        if parsed is None:
            continue
        if table.is_text and holds_codes(table.column(name), table.markers):
            notes.append(f"Column {name!r} is kept as it is: its numbers are padded with zeros, as codes are.")
            continue
        columns[name] = parsed.values
        n_texts += parsed.n_texts
        if parsed.text is not None:
            row, found = parsed.text
            others = "" if parsed.n_texts == 1 else f", and {parsed.n_texts - 1} more"
            notes.append(
                f"Column {name!r} holds numbers, and other text: {found!r} {table.place(row)}{others}. It was not used "
                f"and stays as it is. If it marks missing values, pass na_values=[{found!r}]; if the column is no "
                "amount, skip it."
            )
        if parsed.percent:
            percent.add(str(name))
        elif table.has_header and heads_codes(name):
            notes.append(f"Column {name!r} may hold codes rather than amounts. If so, skip it.")
    if table.is_text:
        table.parser.settle()
    if not columns:
        raise DataError(
            f"A wide table must have a column of numbers. Found none in: {', '.join(map(str, table.names[:20]))}. "
            "Check the decimal marks and the missing-value markers."
        )
    array = np.column_stack(list(columns.values()))
    long = _looks_long(table, columns)
    if long is not None:
        notes.append(
            f"This looks like lines of row, column, value ({', '.join(map(repr, long))}), whose holes are cells "
            "without a line. Use fit and predict for these."
        )
    from halfseen.io.reader import dense_observed

    observed = dense_observed(array, column_labels=text_array(str(name) for name in columns))
    summary = ReadSummary.of_wide(table, len(columns), rows=rows.source if rows.in_first_column else "")
    return WideTable(
        table,
        list(map(str, columns)),
        replace(observed, summary=summary),
        frozenset(percent),
        tuple(notes),
        table.parser.mark if table.is_text else POINT,
        observed.n_unobserved - n_texts,
    )


def _parse_numeric(table: Table, name: Any) -> Parsed | None:
    """A column as numbers; None if it does not hold more numbers than other text."""
    column = table.column(name)
    if not table.is_text:
        is_numeric = holds_numbers(column) and not _is_all_null(column)
        return Parsed(to_floats(column), len(column)) if is_numeric else None
    head = pc.unique(column.slice(0, 1000)).to_pylist()  # so that long columns of text need not be parsed
    if not any(map(is_amount, head)) and not all(is_missing(text, table.markers) for text in head):
        return None
    parsed = table.parser.parse(column, name)
    if parsed.text is not None and is_amount(parsed.text[1]):  # a number, but with marks that were not expected
        row, found = parsed.text
        raise DataError(
            f"Values must be numbers. Found {found!r} {table.place(row, name)}. {Scale().advice(found)}"
            "If these are no numbers, skip the column."
        )
    return parsed if parsed.n_numbers > parsed.n_texts else None


def _looks_long(table: Table, numeric: Any) -> LongHeader | None:
    """The columns of a table that is headed as a long one is; it was said to be wide, so that nothing is refused."""
    try:
        header = spelled_long(table.names, lambda name: name in numeric) if table.has_header else None
    except DataError:
        return None
    return header if header is not None and header.value is not None else None


def grid_of_frame(frame: nw.DataFrame[Any]) -> tuple[np.ndarray, np.ndarray | None, np.ndarray | None] | None:
    """Values, row labels and column labels of a wide frame; None if it is long."""
    table, options = frame_table(frame), ReadOptions()
    if recognise(table, options) is not None:
        return None
    rows = find_row_names(table, options)
    names = table.names[rows.in_first_column :]
    return wide_array(table, names, options.scale), rows.labels, column_labels(names)
