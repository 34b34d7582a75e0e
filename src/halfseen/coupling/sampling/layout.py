"""Uncoupled data as the sampler walks them: in every row as many tokens as cells."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from halfseen.arrays import Array
from halfseen.coupling.sampling.units import Units, least_noise, units_of
from halfseen.data.uncoupled import Uncoupled


@dataclass(frozen=True)
class Side:
    """The cells as the rows, or the columns, have them: pointers, the other side's index, the way from row order."""

    indptr: Array
    indices: Array
    order: Array | None = None


@dataclass(frozen=True)
class Links:
    """For every cell a list of other cells of its row."""

    indptr: Array
    cells: Array


@dataclass(frozen=True)
class Layout:
    """Cells and tokens, row by row.

    Who was asked several times has as many cells, of which the first is `asked`, the one that was compared. Where a row
    has more answers than that, somebody's question was not written down: as many unknown respondents join, each with
    this cell alone, in columns of their own behind the known ones. Where it has fewer, some answers were lost: as many
    tokens are unknown values, behind the answers.
    """

    rows: Side
    columns: Side
    known: Array
    tokens: Array
    beaten: Links
    beaters: Links
    alone: Array
    asked: Array
    n_respondents: int
    units: Units
    least_noise: float

    @classmethod
    def of(cls, seen: Uncoupled, scale: str = "all") -> Layout:
        """The layout of what was collected, in units of all answers or of each question's (`units.py`)."""
        times = np.ones(seen.n_asked, np.int64) if seen.times is None else seen.times.astype(np.int64)
        first_asking = np.append(0, np.cumsum(times))
        asking_indptr, answers = first_asking[seen.indptr], np.diff(seen.answer_indptr)
        indptr = np.append(0, np.cumsum(np.maximum(np.diff(asking_indptr), answers)))
        place_of_asking = _spread_out(asking_indptr, indptr)
        place_of_cell = place_of_asking[first_asking[:-1]]
        columns = np.full(indptr[-1], -1, np.int64)
        columns[place_of_asking] = np.repeat(seen.respondents, times)
        unknown = np.flatnonzero(columns < 0)
        columns[unknown] = seen.n_respondents + np.arange(unknown.size)
        units = units_of(seen, scale)
        row_of_answer = np.repeat(np.arange(answers.size), answers)
        tokens = np.zeros(indptr[-1])
        tokens[_spread_out(seen.answer_indptr, indptr)] = (seen.answers - units.centre[row_of_answer]) / units.scale[
            row_of_answer
        ]
        rows = Side(indptr, columns)
        return cls(
            rows, _by_columns(rows, seen.n_respondents + unknown.size), answers, tokens,
            *_links(seen, place_of_cell, indptr[-1]), _alone(seen, place_of_cell, indptr[-1]), place_of_cell,
            seen.n_respondents, units, least_noise(seen, units),
        )  # fmt: skip

    @property
    def shape(self) -> tuple[int, int]:
        return self.rows.indptr.size - 1, self.columns.indptr.size - 1

    @property
    def n_cells(self) -> int:
        return self.tokens.size

    def told(self, values: Array, cells: Array | slice = slice(None)) -> Array:
        """Values at cells, or at tokens of the same numbers, as the answers have them."""
        row = self.row_of_cell[cells]
        told: Array = self.units.centre[row] + self.units.scale[row] * values
        return told

    @cached_property
    def token_dtype(self) -> Any:
        """The smallest type that numbers the tokens of a row."""
        return np.min_scalar_type(int(np.diff(self.rows.indptr).max()))

    @cached_property
    def row_of_cell(self) -> Array:
        """The row of every cell, which is that of every token."""
        return np.repeat(np.arange(self.shape[0]), np.diff(self.rows.indptr))

    @cached_property
    def is_answer(self) -> Array:
        """Which tokens are answers, and not unknown."""
        inside = np.arange(self.n_cells) - self.rows.indptr[self.row_of_cell]
        return inside < self.known[self.row_of_cell]


def _spread_out(indptr: Array, wider: Array) -> Array:
    """Where the entries of rows with these pointers stand in rows that are at least as long."""
    shifts: Array = np.repeat(wider[:-1] - indptr[:-1], np.diff(indptr))
    return np.arange(indptr[-1]) + shifts


def _by_columns(rows: Side, n_columns: int) -> Side:
    order = np.argsort(rows.indices, kind="stable")
    indptr = np.append(0, np.cumsum(np.bincount(rows.indices, minlength=n_columns)))
    row_of_cell = np.repeat(np.arange(rows.indptr.size - 1), np.diff(rows.indptr))
    return Side(indptr, row_of_cell[order], order)


def _links(seen: Uncoupled, place_of_cell: Array, n_cells: int) -> tuple[Links, Links]:
    """Who was said to be no smaller than whom, and the same from the other side."""
    whole = (seen.higher >= 0) & (seen.lower >= 0)
    higher, lower = place_of_cell[seen.higher[whole]], place_of_cell[seen.lower[whole]]
    return _listed(higher, lower, n_cells), _listed(lower, higher, n_cells)


def _listed(by: Array, cells: Array, n_cells: int) -> Links:
    counts = np.bincount(by, minlength=n_cells)
    return Links(np.append(0, np.cumsum(counts)), cells[np.argsort(by, kind="stable")])


def _alone(seen: Uncoupled, place_of_cell: Array, n_cells: int) -> Array:
    """Every cell's comparisons won and lost against others that were not named."""
    alone = np.zeros((n_cells, 2))
    for column, (one, other) in enumerate(((seen.higher, seen.lower), (seen.lower, seen.higher))):
        cells = place_of_cell[one[(one >= 0) & (other < 0)]]
        alone[:, column] = np.bincount(cells, minlength=n_cells)
    return alone
