"""Matrices of ordered levels: read, and freed of what can't change a rank."""

from typing import Any

import numpy as np

from halfseen.arrays import Array
from halfseen.errors import DataError
from halfseen.io.reader import as_numbers, well_formed
from halfseen.labels import Places

#: Each level has its threshold, so that numbers above this were hardly meant.
HIGHEST = 1_000_000


def checked_levels(Y: Any, thresholds: Array | None = None) -> Array:
    """Y as integers 0..N; refused if a cell is anything else, or needs more thresholds than are given."""
    if hasattr(Y, "toarray"):
        raise DataError("Y must hold a level in every cell. Found a sparse matrix. Pass Y.toarray() if the rest is 0.")
    numbers = as_numbers(well_formed(Y))
    _refuse(numbers, np.isnan(numbers), "must be known everywhere", "Leave out its row or its column")
    odd = (numbers < 0) | (numbers > HIGHEST) | (numbers != np.floor(numbers))
    _refuse(numbers, odd, f"must be whole numbers from 0 to {HIGHEST}", "Round it, or number the levels anew")
    if thresholds is not None:
        must = f"must be 0 to {thresholds.size}, as there are {thresholds.size} thresholds"
        _refuse(numbers, numbers > thresholds.size, must, "Give more thresholds")
    return numbers.astype(np.intp)


def _refuse(numbers: Array, wrong: Array, must: str, remedy: str) -> None:
    cells = np.argwhere(wrong)
    if len(cells):
        row, column = cells[0].tolist()
        found = f"{numbers[row, column]:g}".replace("nan", "NaN")
        raise DataError(f"Levels {must}. Found {found} at {Places().of(row, column)}. {remedy}.")


def first_of_each(rows: Array) -> tuple[Array, Array]:
    """Where each different row occurs first, in the order of occurrence, and which of these each row is like."""
    _, first, like = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first)
    place = np.empty_like(order)
    place[order] = np.arange(order.size)
    return first[order], place[like.reshape(-1)]
