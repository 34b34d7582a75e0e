"""Columns of numbers, picked out of a table by their names; a field that is no number is named with its line."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from halfseen.data.headers import check_present
from halfseen.data.numerals import NotANumber, numbers
from halfseen.data.spreadsheets import read_sheet
from halfseen.data.tables import Table, read_table
from halfseen.data.textfiles import read_text
from halfseen.errors import DataError

Columns = dict[str, np.ndarray]  # by name, NaN where a value is missing
Codes = Mapping[str, Mapping[str, str]]  # column by column, the numbers that words stand for


def text_columns(
    path: Path, keep: Sequence[str] = (), header: Sequence[str] = (), codes: Codes | None = None
) -> Columns:
    """The columns `keep` of a text file, or all of them; `header` names those of a file without a header line."""
    table = named_table(path, header)
    return picked(table, keep, codes or {}, lambda position: line_of(path, table, position))


def sheet_columns(path: Path, keep: Sequence[str] = ()) -> Columns:
    """The columns `keep` of the first sheet of a workbook, or all of them."""
    sheet = read_sheet(path)
    return picked(sheet, keep, {}, lambda position: f"row {sheet.rows[position]} of {path.name}")


def named_table(path: Path, header: Sequence[str] = ()) -> Table:
    """A text file with the names of its header line, or with these."""
    table = read_table(path, header=not header)
    names = list(header) or [" ".join(name.split()) for name in table.names]  # some files have stray blanks in names
    if len(names) != len(table.names):
        raise DataError(
            f"{path.name} must have {len(names)} columns. Found {len(table.names)}. Copy or download it again."
        )
    return Table(names, table.cells, table.has_header)


def picked(table: Table, keep: Sequence[str], codes: Codes, place: Callable[[int], str]) -> Columns:
    """Columns of a table as numbers; `place` says where a record stands."""
    columns = {}
    for name in keep or table.names:
        check_present(name, table.names)
        known = codes.get(name, {})
        try:
            columns[name] = numbers([known.get(field, field) for field in table.column(name)])
        except NotANumber as error:
            raise DataError(
                f"Values must be numbers. Found {error.field!r} on {place(error.position)}, column {name!r}. "
                "Mend it, or copy or download the file again."
            ) from None
    return columns


def line_of(path: Path, table: Table, position: int) -> str:
    """Where a record of a text file stands, found by reading once more: only errors ask."""
    line = read_text(path, lambda file: file.line_of(position + table.has_header))
    return f"line {line} of {path.name}"
