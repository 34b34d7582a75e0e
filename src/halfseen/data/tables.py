"""Wide tables whose text goes through untouched: read, holes filled, written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from halfseen.data.arrays import dense_cells
from halfseen.data.files import has_header_line
from halfseen.data.frames import as_floats, holds_numbers
from halfseen.data.labels import as_labels, text_array
from halfseen.data.numerals import all_numbers, is_missing, numbers
from halfseen.data.observed import Observed
from halfseen.data.parquet import is_parquet, read_parquet
from halfseen.data.reading import Reading
from halfseen.data.textfiles import TextFile, complaints, read_text
from halfseen.errors import DataError


@dataclass(frozen=True)
class WideTable:
    """A table as it was read, and its numeric columns as a half-seen matrix.

    `names` and `cells` run in parallel, one for each column; the cells of a text file are the text that stood there.
    Without a header the names are "0", "1", ...
    """

    names: list[str]
    cells: list[list[Any]]
    numeric: list[str]
    observed: Observed
    has_header: bool

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


def read_wide_table(path: Any) -> WideTable:
    """Read a wide text or Parquet file; a column is numeric if all that isn't missing in it is, and something is."""
    path = Path(path)
    if not is_parquet(path):
        return read_text(path, _read_text_table)
    with complaints(path):
        frame = read_parquet(path)
    columns = [frame.get_column(name) for name in frame.columns]
    numeric = {column.name: as_floats(column) for column in columns if holds_numbers(column)}
    return _table(frame.columns, [column.to_list() for column in columns], numeric, True)


def _read_text_table(file: TextFile) -> WideTable:
    has_header = has_header_line(file, Reading(layout="wide"))
    names = file.sample[0] if has_header else [str(number) for number in range(file.width)]
    as_labels(names, "column", file.width)
    columns: list[list[str]] = [[] for _ in names]
    for chunk in file.chunks(has_header):
        for column, fields in zip(columns, zip(*chunk, strict=True), strict=True):
            column.extend(fields)
    numeric = {name: numbers(cells) for name, cells in _numeric(names, columns)}
    return _table(names, columns, numeric, has_header)


def _numeric(names: list[str], columns: list[list[str]]) -> Iterator[tuple[str, list[str]]]:
    return ((name, cells) for name, cells in zip(names, columns, strict=True) if all_numbers(cells))


def _table(names: list[str], cells: list[list[Any]], numeric: dict[str, np.ndarray], has_header: bool) -> WideTable:
    if not numeric:
        raise DataError(
            f"A wide table must have a column of numbers. Found none in: {', '.join(names[:20])}. "
            "Check the decimal point and the marks of missing values."
        )
    array = np.column_stack(list(numeric.values()))
    observed = Reading().observed(dense_cells(array), array.shape, column_labels=text_array(numeric))
    return WideTable(names, cells, list(numeric), observed, has_header)
