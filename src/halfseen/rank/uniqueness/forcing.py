"""Any rank: a level is forced if with every other level some r + 1 rows, or columns, would be linearly independent.

A matrix of rank r has no r + 1 independent rows. So an unseen cell can't be above a level if, with its interval moved
above that level, some r + 1 rows through it are independent whatever the numbers in their intervals (independence.py);
likewise below, and for columns. A cell that is forced is then as good as seen, and may help to force others.

The matrix of a model with biases, W = [w, b, 1] and H = [h, 1, c], may be given a further column and a further row of
ones, with 0 where they meet, without gaining rank: their factors are (0, 0, 1) and (0, 1, 0).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from math import comb

import numpy as np
from scipy.sparse import coo_array, csr_array

from halfseen.arrays import Array
from halfseen.rank.uniqueness.independence import groups_with_independent_rows
from halfseen.rank.uniqueness.intervals import Intervals

#: Columns that are looked at in sets of rows: those where most of the rows are known.
_MOST_COLUMNS = 40
#: Intervals that are looked at together.
_INTERVALS_AT_A_TIME = 1 << 17


@dataclass(frozen=True)
class Sheet:
    """What is known of the cells of a matrix of some rank, as codes, and the interval that each code stands for.

    With V levels: 0 nothing is known; 1..V a level; from V + 1 on, below each level; from 2 V + 1 on, above each; then
    the numbers 1 and 0.
    """

    codes: csr_array
    intervals: Intervals
    rank: int

    @classmethod
    def of(cls, levels: coo_array, thresholds: Array, rank: int, biases: bool) -> "Sheet":
        """From the levels that were seen, stored plus 1."""
        n_levels = thresholds.size + 1
        each, none, top = np.arange(n_levels), np.zeros(n_levels, np.intp), np.full(n_levels, n_levels - 1)
        lowest = np.concatenate([[0], each, none, each + 1])
        highest = np.concatenate([[n_levels - 1], each, each - 1, top])
        intervals = Intervals.of_levels(lowest, highest, thresholds).and_point(1.0).and_point(0.0)
        codes = _with_ones(levels, 3 * n_levels + 1) if biases else levels
        return cls(codes.tocsr(), intervals, rank)

    @property
    def n_levels(self) -> int:
        return (self.intervals.lower.size - 3) // 3

    @property
    def transposed(self) -> "Sheet":
        return replace(self, codes=self.codes.T.tocsr())

    def with_levels(self, u: Array, i: Array, levels: Array) -> "Sheet":
        """The same with further cells known; one that is told twice counts once."""
        _, first = np.unique(np.ravel_multi_index((u, i), self.codes.shape), return_index=True)
        further = coo_array((levels[first] + 1, (u[first], i[first])), shape=self.codes.shape)
        return replace(self, codes=(self.codes + further).tocsr())


def _with_ones(levels: coo_array, one: int) -> coo_array:
    n, m = levels.shape
    (rows, columns), data = levels.coords, levels.data
    return coo_array(
        (
            np.concatenate([data, np.full(n + m, one), [one + 1]]),
            (np.concatenate([rows, np.arange(n), np.full(m + 1, n)]),
             np.concatenate([columns, np.full(n, m), np.arange(m + 1)])),
        ),
        shape=(n + 1, m + 1),
    )  # fmt: skip


def forced(sheet: Sheet, u: Array, i: Array, levels: Array, effort: int) -> Array:
    """Whether every matrix of the rank that is in the intervals has these levels at cells (u, i), as far as proved."""
    sure = np.zeros(u.size, bool)
    while True:
        left = np.flatnonzero(~sure)
        found = left[_forced_at_once(sheet, u[left], i[left], levels[left], effort)]
        if not found.size:
            return sure
        sure[found] = True
        sheet = sheet.with_levels(u[found], i[found], levels[found])


def _forced_at_once(sheet: Sheet, u: Array, i: Array, levels: Array, effort: int) -> Array:
    """The same by what is known now, without what is found on the way."""
    sure = np.ones(u.size, bool)
    below, above = sheet.n_levels + 1, 2 * sheet.n_levels + 1
    for first_code, without in ((below, 0), (above, sheet.n_levels - 1)):
        tried = np.flatnonzero(sure & (levels != without))
        sure[tried] = _refuted(sheet, u[tried], i[tried], first_code + levels[tried], effort)
    return sure


def _refuted(sheet: Sheet, u: Array, i: Array, codes: Array, effort: int) -> Array:
    """Whether no matrix has cells (u, i) in the intervals that the codes stand for, by its rows or by its columns."""
    refuted = _refuted_by_rows(sheet, u, i, codes, effort)
    left = np.flatnonzero(~refuted)
    refuted[left] = _refuted_by_rows(sheet.transposed, i[left], u[left], codes[left], effort)
    return refuted


def _refuted_by_rows(sheet: Sheet, u: Array, i: Array, codes: Array, effort: int) -> Array:
    refuted = np.zeros(u.size, bool)
    by_column = sheet.codes.T.tocsr()
    blocks = (
        _rows_to_try(sheet, by_column, int(a), int(b), int(c), effort) for a, b, c in zip(u, i, codes, strict=True)
    )
    for cells, stacks in _together(blocks):
        refuted[list(groups_with_independent_rows(sheet.intervals[stacks], cells))] = True
    return refuted


def _rows_to_try(sheet: Sheet, by_column: csr_array, u: int, i: int, code: int, effort: int) -> Array:
    """(sets, r + 1, c) codes: row u with other rows known in column i, as many sets as `effort` allows.

    Rows come first that are known in many of the columns where row u is known.
    """
    (rows, of_rows), (columns, of_columns) = _stored(by_column, i), _stored(sheet.codes, u)
    if rows.size < sheet.rank:
        return np.empty((0, sheet.rank + 1, 1), np.intp)
    block = sheet.codes[rows][:, columns].toarray()
    best = np.argsort(-np.count_nonzero(block, axis=1), kind="stable")[: _pool(rows.size, sheet.rank, effort)]
    block = block[best]
    most = np.argsort(-np.count_nonzero(block, axis=0), kind="stable")[:_MOST_COLUMNS]
    codes = np.vstack([np.append(of_columns[most], code), np.column_stack([block[:, most], of_rows[best]])])
    sets = np.array(list(combinations(range(1, best.size + 1), sheet.rank)))
    return codes[np.insert(sets, 0, 0, axis=1)]


def _pool(rows: int, rank: int, effort: int) -> int:
    """How many rows may be combined: r at least, and more while there are no more than `effort` sets of r."""
    size = rank
    while size < rows and comb(size + 1, rank) <= effort:
        size += 1
    return size


def _stored(matrix: csr_array, row: int) -> tuple[Array, Array]:
    """The columns that a row has, and what is there."""
    cells = slice(*matrix.indptr[row : row + 2])
    return matrix.indices[cells], matrix.data[cells]


def _together(blocks: Iterable[Array]) -> Iterator[tuple[Array, Array]]:
    """Blocks of different width in large stacks, filled up with cells of which nothing is known, and their numbers."""
    held: list[tuple[int, Array]] = []
    for place, block in enumerate(blocks):
        held.append((place, block))
        if sum(one.size for _, one in held) > _INTERVALS_AT_A_TIME:
            yield _stacked(held)
            held = []
    if held:
        yield _stacked(held)


def _stacked(held: list[tuple[int, Array]]) -> tuple[Array, Array]:
    width = max(block.shape[2] for _, block in held)
    stacks = [np.pad(block, ((0, 0), (0, 0), (0, width - block.shape[2]))) for _, block in held]
    return np.repeat([place for place, _ in held], [len(block) for _, block in held]), np.concatenate(stacks)
