"""Tables in files parted into two, to learn from and to test by, no field changed: as `split_cells` parts data."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from halfseen.data.decimals import all_numerals
from halfseen.data.headers import LongHeader, long_header
from halfseen.data.numerals import is_missing
from halfseen.data.reading import Reading
from halfseen.data.splits import drawn_for_test
from halfseen.data.tables import Table, WideTable, read_table, read_wide_table


def part_table(
    path: Any, test_size: float = 0.2, random_state: Any = None, *,
    layout: str = "auto", columns: Any = None, header: bool | None = None,
) -> tuple[Table, Table, int]:  # fmt: skip
    """Part the cells of a file at random.

    A long table is parted by lines, which stay as they are; lines of the same pair stay together. The two parts of a
    wide table have all its rows and columns: a cell of numbers is empty in one of them.

    Parameters
    ----------
    path : of a text or Parquet file.
    test_size : the share of the cells that are for test, rounded to whole cells, or their number.
    random_state : None, a whole number or a RandomState: the same number parts the same cells alike.
    layout, columns, header : how to read the file, as in `observe`.

    Returns
    -------
    train, test : two tables, for `write_table`.
    n_test : the number of cells in test.
    """
    how = Reading(layout=layout, columns=columns, header=header)
    table = read_table(path, layout=layout, header=_has_header(how))
    long = _long_header(table, how)
    if long is None:
        return _part_cells(read_wide_table(path, header=header), test_size, random_state)
    return _part_lines(table, long, test_size, random_state)


def _has_header(how: Reading) -> bool | None:
    """What naming columns says of the header: those that are numbered have none, unless the caller knows better."""
    return how.header if how.header is not None or how.columns is None else not how.numbers_columns


def _long_header(table: Table, how: Reading) -> LongHeader | None:
    if how.numbers_columns:
        return LongHeader(*(table.names[place] for place in how.columns or ()))
    if not table.has_header and how.columns is None and how.layout == "auto":
        looks_long = len(table.names) in (3, 4) and all_numerals(table.cells[2])
        return LongHeader(*table.names[:3]) if looks_long else None
    return long_header(table.names, how, lambda name: all_numerals(table.column(name)))


def _part_lines(table: Table, long: LongHeader, test_size: float, random_state: Any) -> tuple[Table, Table, int]:
    numbers: dict[tuple[Any, Any], int] = {}
    pairs = zip(table.column(long.row), table.column(long.column), strict=True)
    pair_of_line = np.array([numbers.setdefault(pair, len(numbers)) for pair in pairs], dtype=np.intp)
    is_test = drawn_for_test(len(numbers), test_size, random_state)[pair_of_line]
    train, test = (
        replace(table, cells=[[cells[line] for line in np.flatnonzero(part)] for cells in table.cells])
        for part in (~is_test, is_test)
    )
    return train, test, int(is_test.sum())


def _part_cells(table: WideTable, test_size: float, random_state: Any) -> tuple[Table, Table, int]:
    seen = {name: ~np.array([is_missing(cell) for cell in table.column(name)]) for name in table.numeric}
    drawn = drawn_for_test(sum(int(column.sum()) for column in seen.values()), test_size, random_state)
    is_test, start = {}, 0
    for name, column in seen.items():
        is_test[name] = np.zeros(column.size, dtype=bool)
        is_test[name][column] = drawn[start : start + int(column.sum())]
        start += int(column.sum())
    train, test = (
        replace(table, cells=[_emptied(table, name, is_test, of_test) for name in table.names])
        for of_test in (False, True)
    )
    return train, test, int(drawn.sum())


def _emptied(table: WideTable, name: str, is_test: dict[str, np.ndarray], of_test: bool) -> list[Any]:
    """A column without the cells of the other part."""
    cells = table.column(name)
    if name not in is_test:
        return cells
    return [cell if tested == of_test else None for cell, tested in zip(cells, is_test[name], strict=True)]
