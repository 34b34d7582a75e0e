"""Wide tables whose text goes through untouched: read, holes filled, written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from halfseen.data.arrays import dense_cells
from halfseen.data.files import has_header_line
from halfseen.data.headers import check_present
from halfseen.data.labels import as_labels, text_array
from halfseen.data.numerals import all_numbers, is_missing, numbers
from halfseen.data.observed import Observed
from halfseen.data.parquet import is_parquet, read_parquet
from halfseen.data.reading import Reading
from halfseen.data.textfiles import TextFile, complaints, read_text
from halfseen.data.widetext import holds_row_ids
from halfseen.errors import DataError


@dataclass(frozen=True)
class Table:
    """A table as it was read: `names` and `cells` run in parallel, one for each column.

    The cells of a text file are the text that stood there. Without a header the names are "0", "1", ...
    """

    names: list[str]
    cells: list[list[Any]]
    has_header: bool

    def column(self, name: Any) -> list[Any]:
        """The cells of a column, by its name."""
        return self.cells[self.names.index(str(name))]


@dataclass(frozen=True)
class WideTable(Table):
    """A table, and its numeric columns as a half-seen matrix."""

    numeric: list[str]
    observed: Observed

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
    """Read a text or Parquet file column by column; `layout` helps to tell whether a text file has a header."""
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
    return Table(list(names), columns, has_header)


def read_wide_table(path: Any, skip: Sequence[str] = (), header: bool | None = None) -> WideTable:
    """Read a wide text or Parquet file; a column is numeric if all that isn't missing in it is, and something is.

    Columns named in `skip` go through like text, whatever they hold, and so does a first column of row ids.
    """
    table = read_table(path, header=header)
    for name in skip:
        check_present(name, table.names)
    if table.has_header and holds_row_ids(table.names, table.cells[0]):
        skip = (*skip, table.names[0])
    columns = zip(table.names, table.cells, strict=True)
    numeric = {name: numbers(cells) for name, cells in columns if name not in skip and all_numbers(cells)}
    if not numeric:
        raise DataError(
            f"A wide table must have a column of numbers. Found none in: {', '.join(table.names[:20])}. "
            "Check the decimal point and the marks of missing values."
        )
    array = np.column_stack(list(numeric.values()))
    observed = Reading().observed(dense_cells(array), array.shape, column_labels=text_array(numeric))
    return WideTable(table.names, table.cells, table.has_header, list(numeric), observed)
