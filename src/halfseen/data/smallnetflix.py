"""smallnetflix: ratings of the Netflix prize, parted into training and validation, in Matrix Market files."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np

from halfseen.data.catalogue import SMALLNETFLIX
from halfseen.data.observed import Observed
from halfseen.data.shelf import paths_of
from halfseen.data.textfiles import complaints, opened
from halfseen.errors import DataError

BANNER = "%%MatrixMarket"
GENERAL = "matrix coordinate (real|integer) general"
AGAIN = "Copy or download the file again."


class Triples(NamedTuple):
    """Row, column and value of each cell, as a file has them; rows and columns are numbered from 1."""

    rows: np.ndarray
    columns: np.ndarray
    values: np.ndarray


def load_smallnetflix() -> tuple[Observed, Observed]:
    """Training and validation cells of smallnetflix: users by films, labelled by their numbers, stars 1 to 5.

    As published by GraphLab: 95,526 users, 3,561 films, 3,298,163 ratings for training and 545,177 for validation.
    The files must lie in the folder `smallnetflix` of the data folder, which the environment variable HALFSEEN_DATA
    names, as published, or packed by gzip. Both parts have all users and films, in the order of their numbers.
    """
    parts = [read_triples(path) for path in paths_of(SMALLNETFLIX)]
    users = np.unique(np.concatenate([part.rows for part in parts]))
    films = np.unique(np.concatenate([part.columns for part in parts]))
    train, test = (_observed(part, users, films) for part in parts)
    return train, test


def read_triples(path: Path) -> Triples:
    """The cells of a file of lines `row column value` between blanks, rows and columns numbered from 1.

    A Matrix Market file (coordinate, general) has a banner above them, comments, and a line with the numbers of rows,
    columns and cells. The same cells are also passed on without these lines, and so are read too.
    """
    with complaints(path):
        try:
            with opened(path, "latin-1") as lines:
                size, cells = _opening(lines, path)
                with warnings.catch_warnings(action="ignore"):  # of no cell at all, which is refused below
                    table = np.loadtxt(cells, comments="%", ndmin=2)
        except DataError:
            raise
        except ValueError:
            raise _broken_line(path) from None
        if table.shape[1] != 3:
            raise _broken_line(path)
    triples = Triples(_numbers(table[:, 0], "Row", path), _numbers(table[:, 1], "Column", path), table[:, 2])
    if size is not None:
        _check_size(triples, size, path)
    return triples


def _opening(lines: Iterable[str], path: Path) -> tuple[tuple[int, int, int] | None, Iterator[str]]:
    """Rows, columns and cells as a Matrix Market file announces them (None: no such file), and the lines of cells."""
    lines = iter(lines)
    first = next((line for line in lines if line.strip()), "")
    if not first:
        raise DataError(f"A data file must have a line at least. Found none in {path.name}. {AGAIN}")
    if not first.startswith(BANNER):
        return None, chain([first], lines)
    if first.lower().split()[1:] not in (["matrix", "coordinate", field, "general"] for field in ("real", "integer")):
        raise DataError(f"{path.name} must be a {BANNER} of a {GENERAL}. Found {first.strip()!r}. {AGAIN}")
    announced = next((line for line in lines if line.strip() and not line.startswith("%")), "")
    try:
        rows, columns, cells = map(int, announced.split())
    except ValueError:
        raise DataError(
            f"{path.name} must say how many rows, columns and cells it has. Found {announced.strip()!r}. {AGAIN}"
        ) from None
    return (rows, columns, cells), lines


def _broken_line(path: Path) -> DataError:
    """The complaint about the first line that is no cell, found by reading once more: only errors ask."""
    must = f"Every line of {path.name} must have a row, a column and a value."
    with opened(path, "latin-1") as lines:
        broken = next((line for line in _opening(lines, path)[1] if not _is_cell(line)), None)
    if broken is None:
        return DataError(f"{must} Found no line. {AGAIN}")
    with opened(path, "latin-1") as lines:
        number = next(number for number, line in enumerate(lines, 1) if line == broken)
    return DataError(f"{must} Found {broken.strip()[:200]!r} on line {number}. {AGAIN}")


def _is_cell(line: str) -> bool:
    """Whether a line has three numbers, or nothing but a comment."""
    fields = line.partition("%")[0].split()
    return not fields or (len(fields) == 3 and all(map(_is_number, fields)))


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def _numbers(ids: np.ndarray, what: str, path: Path) -> np.ndarray:
    """The numbers of rows or columns, which must be whole and start at 1."""
    wrong = np.flatnonzero((ids < 1) | (ids != np.floor(ids)))
    if wrong.size:
        raise DataError(f"{what} numbers must be whole, from 1 on. Found {ids[wrong[0]]:g} in {path.name}. {AGAIN}")
    return ids.astype(np.int64)


def _check_size(triples: Triples, size: tuple[int, int, int], path: Path) -> None:
    found = (int(triples.rows.max(initial=0)), int(triples.columns.max(initial=0)), triples.values.size)
    if found[2] != size[2] or found[0] > size[0] or found[1] > size[1]:
        said, is_there = (f"{rows} rows, {columns} columns, {cells} cells" for rows, columns, cells in (size, found))
        raise DataError(f"{path.name} must have what it says: {said}. Found {is_there}. {AGAIN}")


def _observed(part: Triples, users: np.ndarray, films: np.ndarray) -> Observed:
    """The cells among these users and films, whose numbers ascend."""
    return Observed.from_cells(
        np.searchsorted(users, part.rows),
        np.searchsorted(films, part.columns),
        part.values,
        (users.size, films.size),
        row_labels=users,
        column_labels=films,
    )
