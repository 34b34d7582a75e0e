"""Non-negative combinations of linear conditions, in exact arithmetic."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from halfseen.arrays import Array


@dataclass(frozen=True)
class Conditions:
    """A alpha <= 0 for alpha >= 0: the rows of A, and where alpha_k > 0 makes a condition strict. May be a stack."""

    ends: Array
    is_open: Array

    def of(self, stack: Any) -> "Conditions":
        return Conditions(self.ends[stack], self.is_open[stack])


def rows_left(conditions: Conditions, basis: Array, weights: Array) -> Array | None:
    """The k for which combinations of the conditions in the basis leave alpha_k > 0 possible; None if they say nothing.

    Numbers from P on stand for  -alpha_k <= 0.  A combination y >= 0 is valid if  M' y >= 0;  so is the sum of valid
    ones. Tried are the weights, and for each k the y that leaves nothing but alpha_k:  (M' y)_l = 0 for all other l.
    """
    n, size = conditions.ends.shape
    rows = [_condition(conditions, int(place)) for place in basis]
    tried: list[list[Fraction] | None] = [[Fraction(each) for each in np.where(basis < n, weights, 0.0).tolist()]]
    tried += [_vanishing([row[:k] + row[k + 1 :] for row in rows]) for k in range(size)]
    valid = [y for y in tried if y is not None and min(_combined(y, rows)) >= 0]
    used = [place for place in range(size) if basis[place] < n and any(y[place] > 0 for y in valid)]
    if not used:
        return None
    g = _combined([sum((y[place] for y in valid), Fraction(0)) for place in used], [rows[place] for place in used])
    strict = np.any(conditions.is_open[basis[used]], axis=0).tolist()
    return np.flatnonzero([g[k] == 0 and not strict[k] for k in range(size)])


def _combined(y: Sequence[Fraction], rows: Sequence[Sequence[Fraction]]) -> list[Fraction]:
    """M' y."""
    return [
        sum((weight * row[k] for weight, row in zip(y, rows, strict=True)), Fraction(0)) for k in range(len(rows[0]))
    ]


def _condition(conditions: Conditions, place: int) -> list[Fraction]:
    n, size = conditions.ends.shape
    row = conditions.ends[place] if place < n else -np.eye(size)[place - n]
    return [Fraction(end) for end in row.tolist()]


def _vanishing(rows: Sequence[Sequence[Fraction]]) -> list[Fraction] | None:
    """y >= 0, other than 0, with  sum y_p rows_p = 0,  or None unless there is one, up to its size: s rows of s - 1."""
    size = len(rows)
    reduced, pivots = _row_echelon([[row[k] for row in rows] for k in range(size - 1)])
    free = [p for p in range(size) if p not in pivots]
    if len(free) != 1:
        return None
    y = [Fraction(0)] * size
    y[free[0]] = Fraction(1)
    for line, p in zip(reduced, pivots, strict=False):
        y[p] = -line[free[0]]
    return y if min(y) >= 0 else None


def _row_echelon(lines: list[list[Fraction]]) -> tuple[list[list[Fraction]], list[int]]:
    """Gauss and Jordan: the reduced lines, and the column of the leading 1 of each."""
    pivots: list[int] = []
    for column in range(len(lines[0]) if lines else 0):
        done = len(pivots)
        pivot = next((place for place in range(done, len(lines)) if lines[place][column]), None)
        if pivot is None:
            continue
        lines[done], lines[pivot] = lines[pivot], lines[done]
        lines[done] = [entry / lines[done][column] for entry in lines[done]]
        for place, line in enumerate(lines):
            if place != done and line[column]:
                lines[place] = [a - line[column] * b for a, b in zip(line, lines[done], strict=True)]
        pivots.append(column)
    return lines, pivots
