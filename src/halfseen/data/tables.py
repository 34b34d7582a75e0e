"""Wide tables whose text goes through untouched: read, holes filled, written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from halfseen.data.accounts import Account, named_rows
from halfseen.data.arrays import dense_cells
from halfseen.data.decimals import POINT, Decimals, all_numerals, hint_about
from halfseen.data.files import has_header_line
from halfseen.data.headers import check_present
from halfseen.data.labels import as_labels, text_array
from halfseen.data.numerals import NotANumber, all_numbers, is_missing, numbers
from halfseen.data.observed import Observed
from halfseen.data.parquet import is_parquet, read_parquet
from halfseen.data.reading import Reading
from halfseen.data.textfiles import TextFile, complaints, read_text
from halfseen.data.widetext import holds_row_ids
from halfseen.errors import DataError


@dataclass(frozen=True)
class Table:
    """A table as it was read: `names` and `cells` run in parallel, one for each column.

    The cells of a text file are the text that stood there, and `delimiter` is what parted them. `has_header` says
    whether it has a line of names; else these are "0", "1", ...
    """

    names: list[str]
    cells: list[list[Any]]
    has_header: bool
    delimiter: str | None = field(default=None, kw_only=True)

    def column(self, name: Any) -> list[Any]:
        """The cells of a column, by its name."""
        return self.cells[self.names.index(str(name))]


@dataclass(frozen=True)
class WideTable(Table):
    """A table; `numeric` are the names of its columns of numbers, `observed` are these as a half-seen matrix, `decimal`
    is their decimal mark. `names`, `cells`, `has_header` and `delimiter` as in any table."""

    numeric: list[str]
    observed: Observed
    decimal: str = field(default=POINT, kw_only=True)

    def filled(self, values: np.ndarray) -> list[list[Any]]:
        """The columns, holes filled from `values` (rows by numeric columns); what was seen stays as it was."""
        if values.shape != self.observed.shape:
            raise DataError(f"Values must have the shape {self.observed.shape}. Found {values.shape}.")
        fillers = dict(zip(self.numeric, values.T, strict=True))
        return [
            _filled(column, fillers[name]) if name in fillers else column
            for name, column in zip(self.names, self.cells, strict=True)
        ]


def _filled(column: Sequence[Any], filler: np.ndarray) -> list[Any]:
    return [new if is_missing(old) else old for old, new in zip(column, filler, strict=True)]


def read_table(path: Any, layout: str = "wide", header: bool | None = None) -> Table:
    """Read the text or Parquet file at `path` column by column; `layout` helps to tell whether a text file has a
    header, unless `header` says it."""
    path = Path(path)
    if not is_parquet(path):
        return read_text(path, lambda file: _read_text_table(file, Reading(layout=layout, header=header)))
    with complaints(path):
        frame = read_parquet(path)
    return Table(list(frame.columns), [frame.get_column(name).to_list() for name in frame.columns], True)


def _read_text_table(file: TextFile, how: Reading) -> Table:
    has_header = has_header_line(file, how)
    names = file.sample[0] if has_header else [str(number) for number in range(file.width)]
    as_labels(names, "column", file.width)
    columns: list[list[str]] = [[] for _ in names]
    for chunk in file.chunks(has_header):
        for column, fields in zip(columns, zip(*chunk, strict=True), strict=True):
            column.extend(fields)
    return Table(list(names), columns, has_header, delimiter=file.delimiter)


def read_wide_table(path: Any, skip: Sequence[str] = (), header: bool | None = None) -> WideTable:
    """Read the wide text or Parquet file at `path`; a column is numeric if all that isn't missing in it is, and
    something is. `header` says whether a text file has a header line; None: by its looks.

    Columns named in `skip` go through like text, whatever they hold, and so does a first column of row ids. The numbers
    of a text file may have decimal commas.
    """
    path = Path(path)
    if is_parquet(path):
        table = read_table(path)
        columns = {name: cells for name, cells in _speaking(table, skip).items() if all_numbers(cells)}
        return _widened(table, {name: numbers(cells) for name, cells in columns.items()})
    how = Reading(layout="wide", header=header)
    return read_text(path, lambda file: _read_wide_text(file, skip, how))


def _read_wide_text(file: TextFile, skip: Sequence[str], how: Reading) -> WideTable:
    table, decimals = _read_text_table(file, how), Decimals(file)
    columns = {name: cells for name, cells in _speaking(table, skip).items() if all_numerals(cells)}
    numeric = {name: _numbers(decimals, cells, name, table.has_header) for name, cells in columns.items()}
    decimals.settle()
    return _widened(table, numeric, decimals.mark)


def _numbers(decimals: Decimals, cells: Sequence[str], name: str, has_header: bool) -> np.ndarray:
    try:
        return decimals.numbers(cells, int(has_header), name)
    except NotANumber as error:
        line = decimals.file.line_of(has_header + error.position)
        raise DataError(
            f"Values must be numbers. Found {error.field!r} on line {line} of {decimals.file.path.name}, column "
            f"{name!r}. {hint_about(error.field)}If these are no numbers, skip the column."
        ) from None


def _speaking(table: Table, skip: Sequence[str]) -> dict[str, list[Any]]:
    """The columns that may hold numbers."""
    for name in skip:
        check_present(name, table.names)
    if _has_row_ids(table):
        skip = (*skip, table.names[0])
    return {name: cells for name, cells in zip(table.names, table.cells, strict=True) if name not in skip}


def _has_row_ids(table: Table) -> bool:
    return table.has_header and holds_row_ids(table.names, table.cells[0])


def _widened(table: Table, numeric: Mapping[str, np.ndarray], decimal: str = POINT) -> WideTable:
    if not numeric:
        raise DataError(
            f"A wide table must have a column of numbers. Found none in: {', '.join(table.names[:20])}. "
            "Check the decimal marks and the marks of missing values."
        )
    array = np.column_stack(list(numeric.values()))
    observed = Reading().observed(dense_cells(array), array.shape, column_labels=text_array(numeric))
    roles = named_rows(table.names[0]) if _has_row_ids(table) else {}
    account = Account("wide", roles, has_header=table.has_header, width=len(numeric), decimal=decimal)
    observed = replace(observed, account=account)
    return WideTable(
        table.names, table.cells, table.has_header, list(numeric), observed, delimiter=table.delimiter, decimal=decimal
    )
