"""Long text files: one cell a line, read in chunks, ids numbered as they come."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from halfseen.data.accounts import Account
from halfseen.data.amounts import Amounts
from halfseen.data.cells import Cells
from halfseen.data.headers import LongHeader
from halfseen.data.labels import coded, is_plain_integer, labels_of_text, missing_id
from halfseen.data.numerals import is_missing
from halfseen.data.observed import Observed
from halfseen.data.reading import Reading, weights_of
from halfseen.data.scales import NUMBERS
from halfseen.data.textfiles import TextFile


class IdColumn:
    """The ids of one side: every one gets a number when it first appears."""

    def __init__(self, side: str) -> None:
        self.side = side
        self.code_of: dict[str, int] = {}
        self.chunks: list[np.ndarray] = []

    def add(self, ids: Sequence[str], record: int = 0) -> None:
        self.chunks.append(coded(ids, self.code_of).astype(np.int32))

    def codes(self) -> np.ndarray:
        self.chunks = [np.concatenate([np.empty(0, dtype=np.int32), *self.chunks])]
        return self.chunks[0]

    def labels(self, fitted: np.ndarray | None = None) -> np.ndarray:
        return labels_of_text(self.code_of, self.side, fitted)

    def missing(self) -> str | None:
        """The id that stands for none: an empty one, or a missing mark among integers."""
        marks = [one for one in self.code_of if is_missing(one)]
        others_are_integers = all(is_plain_integer(one) for one in self.code_of if one not in marks)
        return next((mark for mark in marks if not mark.strip() or others_are_integers), None)


class NumberColumn:
    """A column of numbers; `read` makes them of fields and the record of the first."""

    def __init__(self, read: Callable[[Sequence[str], int], np.ndarray]) -> None:
        self.read = read
        self.chunks: list[np.ndarray] = []

    def add(self, fields: Sequence[str], record: int) -> None:
        self.chunks.append(self.read(fields, record))

    def values(self) -> np.ndarray:
        return np.concatenate([np.empty(0), *self.chunks])


def read_long(file: TextFile, names: Sequence[Any], header: LongHeader, has_header: bool, how: Reading) -> Observed:
    """The cells of a long file; `names` are its columns', in order."""
    rows, columns = IdColumn("row"), IdColumn("column")
    scales = {header.value: how.scale, how.weight_name: NUMBERS}
    read = Amounts(file)
    amounts = {
        name: NumberColumn(partial(read.read, column=name, scale=scale))
        for name, scale in scales.items()
        if name is not None
    }
    _fill(file, names, {header.row: rows, header.column: columns, **amounts}, has_header)
    read.decimals.settle()
    for ids in (rows, columns):
        _check_ids(file, ids, has_header)
    observed = _assembled(rows, columns, amounts.get(header.value), amounts.get(how.weight_name), how)
    has_names = has_header and not how.numbers_columns
    return replace(observed, account=Account.of_long(header, names, how.weight_name, has_names, read.decimals.mark))


def _fill(file: TextFile, names: Sequence[Any], into: dict[Any, Any], has_header: bool) -> None:
    done = int(has_header)
    for chunk in file.chunks(has_header):
        fields = list(zip(*chunk, strict=True))
        for name, column in into.items():
            column.add(fields[names.index(name)], done)
        done += len(chunk)


def _check_ids(file: TextFile, ids: IdColumn, has_header: bool) -> None:
    mark = ids.missing()
    if mark is not None:
        record = int(np.argmax(ids.codes() == ids.code_of[mark])) + has_header
        raise missing_id(ids.side, f"on line {file.line_of(record)} of {file.path.name}")


def _assembled(
    rows: IdColumn, columns: IdColumn, values: NumberColumn | None, weights: NumberColumn | None, how: Reading
) -> Observed:
    row_labels, column_labels = rows.labels(), columns.labels(how.fitted_labels)
    shape = (row_labels.size, column_labels.size)
    given = how.cell_weight if weights is None else weights.values()
    cells = Cells(rows.codes(), columns.codes(), np.empty(0))
    cells.values = np.ones(cells.rows.size) if values is None else values.values()
    cells.weights = weights_of(cells, shape, given)
    return how.observed(cells, shape, row_labels, column_labels)
