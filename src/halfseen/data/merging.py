"""What to do with a cell that was given more than once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from halfseen.data.cells import Cells
from halfseen.data.labels import Places
from halfseen.errors import DataError, ParameterError

Groups = np.ndarray  # where each group of repeated cells starts


def merged(cells: Cells, how: str, places: Places) -> Cells:
    """Cells in row order with the repeated ones merged, or refused, as `how` says."""
    first = first_of_each(cells)
    if how == "keep" or first.all():
        return cells
    if how == "error":
        raise _repeated(cells, first, places)
    return MERGERS[how](cells, np.flatnonzero(first))


def check_how(how: str) -> None:
    """Refuse a word that no merger has."""
    if how not in (allowed := ("error", *MERGERS, "keep")):
        raise ParameterError(f"duplicates must be one of {', '.join(allowed)}. Found {how!r}.")


def first_of_each(cells: Cells) -> np.ndarray:
    """Which of the cells, in row order, open a new (row, column) pair."""
    first = np.ones(cells.rows.size, dtype=bool)
    first[1:] = (cells.rows[1:] != cells.rows[:-1]) | (cells.columns[1:] != cells.columns[:-1])
    return first


def alone(cells: Cells) -> np.ndarray:
    """Which of the cells, in row order, share their (row, column) pair with no other."""
    first = first_of_each(cells)
    return first & np.append(first[1:], True)


def _repeated(cells: Cells, first: np.ndarray, places: Places) -> DataError:
    counts = np.diff(np.append(np.flatnonzero(first), first.size))
    worst = int(np.argmax(counts > 1))
    start = int(np.flatnonzero(first)[worst])
    where = places.of(int(cells.rows[start]), int(cells.columns[start]))
    repeated = int((counts > 1).sum())
    cells_are = "1 cell is" if repeated == 1 else f"{repeated} cells are"
    return DataError(
        f"Every cell may appear once. Found {counts[worst]} values for {where} ({cells_are} repeated). "
        'Say how to merge them: observe(X, duplicates="mean"), or "sum", "min", "max", "first", "last", "keep".'
    )


def _sums(array: np.ndarray, starts: Groups) -> np.ndarray:
    return np.add.reduceat(array, starts, dtype=np.float64)


def _sum(cells: Cells, starts: Groups) -> Cells:
    weights = None if cells.weights is None else _sums(cells.weights, starts).astype(cells.weights.dtype)
    values = _sums(cells.values, starts).astype(cells.values.dtype)
    return Cells(cells.rows[starts], cells.columns[starts], values, weights)


def _mean(cells: Cells, starts: Groups) -> Cells:
    total = _sum(cells, starts)
    weights = np.ones(cells.values.size) if cells.weights is None else cells.weights.astype(np.float64)
    # A group of weightless cells has a mean too: the plain one.
    weights = np.where(np.repeat(_sums(weights, starts) == 0, _sizes(cells, starts)), 1.0, weights)
    means = _sums(weights * cells.values, starts) / _sums(weights, starts)
    return replace(total, values=means.astype(cells.values.dtype))


def _sizes(cells: Cells, starts: Groups) -> np.ndarray:
    return np.diff(np.append(starts, cells.values.size))


def _lowest(cells: Cells, starts: Groups, sign: float = 1.0) -> Cells:
    group = np.repeat(np.arange(starts.size), _sizes(cells, starts))
    by_value_in_group = np.lexsort((sign * cells.values, group))
    return cells.take(by_value_in_group[starts])


def _highest(cells: Cells, starts: Groups) -> Cells:
    return _lowest(cells, starts, sign=-1.0)


def _first(cells: Cells, starts: Groups) -> Cells:
    return cells.take(starts)


def _last(cells: Cells, starts: Groups) -> Cells:
    return cells.take(np.append(starts[1:], cells.values.size) - 1)


MERGERS: dict[str, Callable[[Cells, Groups], Cells]] = {
    "sum": _sum,
    "mean": _mean,
    "min": _lowest,
    "max": _highest,
    "first": _first,
    "last": _last,
}
