"""Wide tables: which columns hold row names and which numbers; tables that are read, filled and written."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfseen.errors import DataError, DataWarning
from halfseen.io.numbers import NUMBERS, POINT, Parsed, Scale, holds_codes, is_amount, is_missing
from halfseen.io.schema import (
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
from halfseen.io.tables import Column, ColumnName, FilePath, Table, holds_numbers, to_floats
from halfseen.labels import exact_integers, is_plain_integer, quoted, text_array, uniform
from halfseen.observed import Observed

SKIP_CLI = "leave it as it is: --skip NAME"
#: Missing-value markers that are words of a column of text now and then: none, mild, severe; + and -.
DOUBTFUL_MARKERS = ("none", "-")


@dataclass(frozen=True)
class RowNames:
    """Names of the rows of a wide table: from its first column, from the index of a frame, or none."""

    labels: np.ndarray | None = None
    in_first_column: bool = False  # which is then no column of the matrix
    source: str = ""


def find_row_names(table: Table, options: ReadOptions) -> RowNames:
    """Find the names of the rows of a wide table.

    The first column names the rows if it has no header, or holds different texts, or different whole numbers under a
    header of row ids. Where ids are missing, the rows have no labels.
    """
    names = table.names
    if not names:
        return RowNames(table.index, source="the index" if table.index is not None else "")
    first = names[0]
    source = f"column {first!r}" if table.has_header and first != "" else "the first column"
    is_candidate = len(names) > 1 and not (table.has_header and first in options.fitted_names)
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


def _distinct_integers(table: Table, name: ColumnName) -> list[Any] | np.ndarray | None:
    """Ids of a column of whole numbers, missing ones left out; None if some repeat or are no whole numbers."""
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


def observe_wide(table: Table, options: ReadOptions, build: Callable[..., Observed]) -> Observed:
    """A wide table as an `Observed`, which `build` makes of a dense array."""
    if options.weight_name is not None:
        must, remedy = "A wide table must have a weight for every cell.", "Pass an array of the table's shape."
        raise DataError(must, found=f"only the column {options.weight_name!r}", remedy=remedy, parameter="cell_weight")
    table.read_columns(table.names)
    rows = find_row_names(table, options)
    names = table.names[rows.in_first_column :]
    if table.is_text and table.has_header and not options.scale.names:
        others = [name for name in names if name not in options.fitted_names]
        codes = [name for name in others if holds_codes(table.column(name), table.markers)]
        names = [name for name in names if name not in codes]
        if codes and not names:
            must, found = "A wide table must have a column of amounts.", "only codes, padded with zeros, as"
            where = f"in column {codes[0]!r} of {table.name}"
            remedy = f"Name the columns of a long table: `{columns_option(likely_long(table))}`."
            raise DataError(must, found=found, where=where, remedy=remedy, parameter="columns")
        if codes:
            must, found = "Columns of a wide table should hold amounts.", "numbers padded with zeros, as codes are,"
            where = f"in column {codes[0]!r} of {table.name} ({len(codes)} such in all)"
            warnings.warn(DataWarning(must, found=found, where=where, remedy="They were left out."), stacklevel=5)
    array = wide_array(table, names, options.scale)
    if table.is_text:
        table.parser.settle()
    labels = column_labels(names) if table.has_header else None
    weights = options.cell_weight if labels is None else _weights_by_name(options, names, rows.labels)
    observed = build(array, weights, rows.labels, labels)
    likely = likely_long(table)
    if_long = ""
    if likely is not None and options.layout != "wide" and len(names) == len(table.names):
        columns = array[:, [table.positions[name] for name in likely]]
        if_long = columns_option(likely) if might_be_long(columns) else ""
    holds = "levels" if options.scale.names else "numbers"
    return replace(observed, summary=_summary(table, len(names), rows.source, holds=holds, if_long=if_long))


def _summary(table: Table, width: int, rows: str, **fields: Any) -> ReadSummary:
    """Summary of a wide table, the names of whose rows are from `rows`."""
    return ReadSummary.of(table, "wide", {"rows": rows} if rows else {}, table.has_header, width=width, **fields)


def wide_array(table: Table, names: Sequence[ColumnName], scale: Scale) -> np.ndarray:
    """The named columns side by side as floats; float32 if all of them are."""
    columns = []
    for name in names:
        if table.is_text:
            parsed = table.parser.parse(table.column(name), name, scale)
            if parsed.text is not None:
                row, text = parsed.text
                remedy = (
                    f"{'Leave' if scale.names else 'Write a number, leave'} the field empty if it is unknown, drop "
                )
                remedy += f"the column, or say which columns to read: `{columns_option(likely_long(table))}`."
                raise scale.error(text, table.place(row, name), remedy)
            columns.append(parsed.values)
            continue
        column = table.column(name)
        if not (scale.names or holds_numbers(column) or _is_all_null(column)):
            kind = "object" if isinstance(column, np.ndarray) else column.type
            must, found = "The columns of a wide table must be numbers.", f"column {name!r} of type {kind}"
            remedy = "Drop it, make it the index, or name the columns of a long table: "
            raise DataError(must, found=found, remedy=f"{remedy}`{columns_option(likely_long(table))}`.")
        columns.append(table.numbers(name, scale))
    dtype = np.float32 if columns and all(column.dtype == np.float32 for column in columns) else np.float64
    array = np.empty((table.n_rows, len(columns)), dtype=dtype)
    for position, column in enumerate(columns):
        array[:, position] = column
    return array


def _is_all_null(column: Column) -> bool:
    return all(map(is_missing, column)) if isinstance(column, np.ndarray) else column.null_count == len(column)


def column_labels(names: Sequence[ColumnName]) -> np.ndarray | None:
    """Names as labels, unless pandas only counted the columns."""
    return None if list(names) == list(range(len(names))) else uniform(list(names), "column")


def _weights_by_name(options: ReadOptions, names: Sequence[ColumnName], row_labels: np.ndarray | None) -> Any:
    """Weights of a wide table; those of a frame are found by the names of its columns, where both have names."""
    frame = None if options.cell_weight is None else as_frame(options.cell_weight)
    if frame is None:
        return options.cell_weight
    table = frame_table(frame)
    rows = find_row_names(table, options)
    headers, labels = table.names[rows.in_first_column :], rows.labels
    if set(names) == set(table.names):
        headers, labels = table.names, table.index
    if set(headers) != set(names):
        if column_labels(names) is None or column_labels(headers) is None:
            return options.cell_weight
        lacking = [name for name in names if name not in headers]
        odd = f"no {lacking[0]!r}" if lacking else repr(next(name for name in headers if name not in names))
        must = "must have the columns of X."
        remedy = "Rename them, or pass an array, whose columns are in the order of X's."
        raise DataError(must, parameter="cell_weight", found=f"{odd} among its columns", remedy=remedy)
    if labels is not None or row_labels is not None:
        # An index that only counts the rows was not taken for labels, but gives their order all the same.
        size = len(labels if labels is not None else row_labels)  # type: ignore[arg-type]
        there, wanted = (np.arange(size) if one is None else one for one in (labels, row_labels))
        same_set = there.shape == wanted.shape and set(there.tolist()) == set(wanted.tolist())
        if same_set and not (there == wanted).all():
            first = int(np.argmin(there == wanted))
            must = "must have the rows of X, in their order."
            found = f"row {quoted(there[first])} in the place of row {quoted(wanted[first])}"
            remedy = "Sort it as X, or pass an array, whose rows are in the order of X's."
            raise DataError(must, parameter="cell_weight", found=found, remedy=remedy)
    return wide_array(table, names, NUMBERS)


@dataclass(frozen=True)
class WideTable:
    """A wide table whose missing numbers can be filled, its text kept as it is.

    Attributes
    ----------
    table : Table
        The file as it was read.
    numeric : list of str
        Names of its columns of numbers.
    observed : Observed
        The numbers.
    percent : frozenset of str
        Names of columns whose numbers have percent signs.
    texts : list of str
        Names of its other columns, but for row names, codes and those that are skipped.
    notes : tuple of DataWarning
        What a user should look at: text among numbers, columns that may hold codes, a table that looks long.
    decimal : str
        Decimal mark of the numbers.
    n_holes : int
        Number of missing cells, which `filled` fills.
    """

    table: Table = field(repr=False)
    numeric: list[str]
    observed: Observed
    texts: list[str] = field(default_factory=list)
    percent: frozenset[str] = frozenset()
    notes: tuple[DataWarning, ...] = ()
    decimal: str = POINT
    n_holes: int = 0

    @property
    def names(self) -> list[str]:
        """Names of all columns; "0", "1", ... if there is no header."""
        return [str(name) for name in self.table.names]

    @property
    def has_header(self) -> bool:
        """Whether the file has a line of names."""
        return self.table.has_header

    @property
    def delimiter(self) -> str | None:
        """Separator of a text file, None for others."""
        return self.table.delimiter

    @property
    def thousands(self) -> str | None:
        """Thousands separator that was given for a text file."""
        return self.table.thousands

    @property
    def cells(self) -> list[list[Any]]:
        """All columns as they were read."""
        return self.table.cells

    def column(self, name: ColumnName) -> list[Any]:
        """A column as it was read."""
        return self.table.texts(self.table.names[self.names.index(str(name))])

    def filled(self, values: np.ndarray) -> list[list[Any]]:
        """The columns with missing cells filled from `values`, of shape (rows, numeric columns)."""
        if values.shape != self.observed.shape:
            raise DataError(f"Values must have the shape {self.observed.shape}.", found=str(values.shape))
        return self.with_fills(dict(zip(self.numeric, values.T, strict=True)))[0]

    def with_fills(self, fills: Mapping[str, Sequence[Any]]) -> tuple[list[list[Any]], list[list[bool]]]:
        """All columns, missing cells filled from `fills` unless they are missing there too; and what was filled."""
        columns = [self.table.texts(name) for name in self.table.names]
        is_filled = [[False] * self.table.n_rows for _ in columns]
        for name, fillers in fills.items():
            place = self.names.index(name)
            column, is_percent = columns[place], name in self.percent
            if any(isinstance(one, bool) for one in column):  # True and False of Parquet stay such
                fillers = [bool(one) if one in (0, 1) else one for one in fillers]
            for row, filler in enumerate(fillers):
                if is_missing(column[row], self.table.markers) and not (filler is None or filler != filler):
                    column[row] = f"{filler}%".replace(POINT, self.decimal) if is_percent else filler
                    is_filled[place][row] = True
        return columns, is_filled

    def to_arrow(self) -> pa.Table:
        """Columns of numbers as floats, others as texts, null where a cell is missing."""
        numbers = self.observed.to_dense()
        columns: dict[str, Any] = {}
        for name in self.names:
            if name in self.numeric:
                columns[name] = pa.array(numbers[:, self.numeric.index(name)], from_pandas=True)
            elif name in self.texts:
                cells = (None if is_missing(one, self.table.markers) else one for one in self.column(name))
                columns[name] = pa.array([one.strip() if isinstance(one, str) else one for one in cells])
        return pa.table(columns)


def read_wide_table(
    path: FilePath, skip: Sequence[str] = (), header: bool | None = None, mixed: bool = False, **options: Any
) -> WideTable:
    """Read a wide file whose columns may have missing cells.

    A column holds numbers if most of what is not missing in it are numbers. Columns named in `skip` are kept like
    text, and so are a first column of row ids and numbers padded with zeros, which are codes.

    Parameters
    ----------
    path : str or path-like
        A file that `observe` reads.
    skip : sequence of str, default=()
        Names of columns to leave as they are.
    header : bool, default=None
        Whether the first line of a text file holds names. None: inferred from the first lines.
    mixed : bool, default=False
        Whether columns of text are of use too: then none need hold numbers.
    **options
        Reader options of `observe`: separator, decimal, thousands, na_values, comment, encoding.

    Returns
    -------
    WideTable
        The table, and its numbers as an `Observed`.
    """
    read_options = ReadOptions(layout="wide", header=header, **options)
    table = open_file(path, read_options)
    table.read_columns(table.names)
    for name in skip:
        check_present(name, [str(one) for one in table.names])
    rows = find_row_names(table, read_options)
    columns: dict[ColumnName, np.ndarray] = {}
    percent, notes, n_texts, texts = set(), [], 0, []
    first = table.names[0]
    kept = rows.in_first_column and str(first) not in skip
    if kept and any(is_missing(one, table.markers) for one in table.texts(first)):
        must = f"Column {first!r} is kept as it is: it has the names of the rows, which are not invented."
        notes.append(DataWarning(must))
    for name in table.names[rows.in_first_column :]:
        if str(name) in skip:
            continue
        parsed = _parse_numeric(table, name)
        if parsed is None:
            texts.append(str(name))
            words = [one.strip() for one in table.texts(name)] if mixed and table.is_text else []
            word = next((one for one in words if one.lower() in DOUBTFUL_MARKERS), None)
            if word is not None:
                must = f"Column {name!r} holds {word!r} {words.count(word):,} times, which was read as missing."
                start = "If it is a value there, write another word for it, or "
                notes.append(DataWarning(must, remedy=f"{start}skip the column.", remedy_cli=f"{start}{SKIP_CLI}."))
            continue
        if table.is_text and holds_codes(table.column(name), table.markers):
            must = f"Column {name!r} is kept as it is: its numbers are padded with zeros, as codes are."
            notes.append(DataWarning(must))
            continue
        columns[name] = parsed.values
        n_texts += parsed.n_texts
        if parsed.text is not None:
            row, text = parsed.text
            others = "" if parsed.n_texts == 1 else f", and {parsed.n_texts - 1} more"
            must = f"Column {name!r} holds numbers, and other text: {text!r} {table.place(row)}{others}."
            start = f"It was not used and stays as it is. If it marks missing values, pass `na_values=[{text!r}]`; if "
            start += "the column is no amount, "
            notes.append(DataWarning(must, remedy=f"{start}skip it.", remedy_cli=f"{start}{SKIP_CLI}."))
        if parsed.percent:
            percent.add(str(name))
        elif table.has_header and heads_codes(name) and not mixed:
            must = f"Column {name!r} may hold codes rather than amounts."
            notes.append(DataWarning(must, remedy="If so, skip it.", remedy_cli=f"If so, {SKIP_CLI}."))
    if table.is_text:
        table.parser.settle()
    if not columns and not (mixed and texts):
        must = "A wide table must have a column of numbers."
        remedy = "Check the decimal marks and the missing-value markers."
        raise DataError(must, found="none", where=f"in: {', '.join(map(str, table.names[:20]))}", remedy=remedy)
    try:
        long = spelled_long(table.names, lambda name: name in columns) if table.has_header else None
    except DataError:  # an ambiguous header
        long = None
    if long is not None and long.value is not None:
        must = f"This looks like lines of row, column, value ({', '.join(map(repr, long))}), whose holes are cells "
        remedy, cli = "Use fit and predict for these.", "Use halfseen fit and halfseen predict for these."
        notes.append(DataWarning(f"{must}without a line.", remedy=remedy, remedy_cli=cli))
    from halfseen.io.reader import dense_observed

    numeric = list(map(str, columns))
    array = np.column_stack(list(columns.values())) if columns else np.empty((table.n_rows, 0))
    observed = dense_observed(array, column_labels=text_array(numeric), allow_empty=not columns)
    observed = replace(observed, summary=_summary(table, len(columns), rows.source if rows.in_first_column else ""))
    decimal, n_holes = table.parser.mark if table.is_text else POINT, observed.n_unobserved - n_texts
    return WideTable(table, numeric, observed, texts, frozenset(percent), tuple(notes), decimal, n_holes)


def _parse_numeric(table: Table, name: ColumnName) -> Parsed | None:
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
        row, text = parsed.text
        start, where = f"{NUMBERS.advice(text)}If these are no numbers, ", table.place(row, name)
        remedy, cli = f"{start}skip the column.", f"{start}{SKIP_CLI}."
        raise DataError(NUMBERS.must, found=repr(text), where=where, remedy=remedy, remedy_cli=cli)
    return parsed if parsed.n_numbers > parsed.n_texts else None


def grid_of_frame(frame: nw.DataFrame[Any]) -> tuple[np.ndarray, np.ndarray | None, np.ndarray | None] | None:
    """Values, row labels and column labels of a wide frame; None if it is long."""
    table, options = frame_table(frame), ReadOptions()
    if recognise(table, options) is not None:
        return None
    rows = find_row_names(table, options)
    names = table.names[rows.in_first_column :]
    return wide_array(table, names, options.scale), rows.labels, column_labels(names)
