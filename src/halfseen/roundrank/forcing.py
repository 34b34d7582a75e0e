"""Any rank: a level is forced if with every other level some r + 1 rows, or columns, would be linearly independent.

A matrix of rank r has no r + 1 independent rows. So an unseen cell can't be above a level if, with its interval moved
above that level, some r + 1 rows through it are independent whatever the numbers in their intervals (independence.py);
likewise below, and for columns. A forced cell then counts as seen, and may help to force others.

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
from halfseen.roundrank.exact_rounding import Intervals
from halfseen.roundrank.independence import groups_with_independent_rows

#: Columns that are used in sets of rows: those where most of the rows are known.
_MAX_COLUMNS = 40
#: Intervals that are processed together.
_BATCH_SIZE = 1 << 17


@dataclass(frozen=True)
class IntervalMatrix:
    """What is known of the cells of a matrix of some rank, as codes, and the interval that each code stands for.

    With V levels: 0 nothing is known; 1..V a level; from V + 1 on, below each level; from 2 V + 1 on, above each; then
    the numbers 1 and 0.
    """

    codes: csr_array
    intervals: Intervals
    rank: int

    @classmethod
    def of(cls, levels: coo_array, thresholds: Array, rank: int, biases: bool) -> "IntervalMatrix":
        """From the seen levels, stored plus 1."""
        n_levels = thresholds.size + 1
        each, bottom, top = np.arange(n_levels), np.zeros(n_levels, np.intp), np.full(n_levels, n_levels - 1)
        lowest = np.concatenate([[0], each, bottom, each + 1])
        highest = np.concatenate([[n_levels - 1], each, each - 1, top])
        intervals = Intervals.of_levels(lowest, highest, thresholds).with_point(1.0).with_point(0.0)
        if biases:  # a row and a column of ones, with 0 where they meet
            (n, m), (rows, columns), one = levels.shape, levels.coords, 3 * n_levels + 1
            codes = np.concatenate([levels.data, np.full(n + m, one), [one + 1]])
            rows = np.concatenate([rows, np.arange(n), np.full(m + 1, n)])
            columns = np.concatenate([columns, np.full(n, m), np.arange(m + 1)])
            levels = coo_array((codes, (rows, columns)), shape=(n + 1, m + 1))
        return cls(levels.tocsr(), intervals, rank)

    @property
    def n_levels(self) -> int:
        return (self.intervals.lower.size - 3) // 3

    def with_levels(self, u: Array, i: Array, levels: Array) -> "IntervalMatrix":
        """The same with further cells known; a repeated cell counts once."""
        _, first = np.unique(np.ravel_multi_index((u, i), self.codes.shape), return_index=True)
        further = coo_array((levels[first] + 1, (u[first], i[first])), shape=self.codes.shape)
        return replace(self, codes=(self.codes + further).tocsr())


def forced_cells(matrix: IntervalMatrix, u: Array, i: Array, levels: Array, effort: int) -> Array:
    """Whether it is proved that every matrix of the rank in these intervals has these levels at cells (u, i)."""
    forced = np.zeros(u.size, bool)
    while True:
        remaining = np.flatnonzero(~forced)
        rows, columns, level = u[remaining], i[remaining], levels[remaining]
        proved = np.ones(remaining.size, bool)
        for first_code, extreme in ((matrix.n_levels + 1, 0), (2 * matrix.n_levels + 1, matrix.n_levels - 1)):
            tried = np.flatnonzero(proved & (level != extreme))
            proved[tried] = _refuted(matrix, rows[tried], columns[tried], first_code + level[tried], effort)
        if not proved.any():
            return forced
        forced[remaining[proved]] = True
        matrix = matrix.with_levels(rows[proved], columns[proved], level[proved])


def _refuted(matrix: IntervalMatrix, u: Array, i: Array, codes: Array, effort: int) -> Array:
    """Whether no matrix has cells (u, i) in the intervals that the codes stand for, by its rows or by its columns."""
    refuted = np.zeros(u.size, bool)
    by_row, by_column = matrix.codes, matrix.codes.T.tocsr()
    for own, other, near, far in ((by_row, by_column, u, i), (by_column, by_column.T.tocsr(), i, u)):
        remaining = np.flatnonzero(~refuted)
        cells = zip(near[remaining].tolist(), far[remaining].tolist(), codes[remaining].tolist(), strict=True)
        blocks = (_row_sets(own, other, matrix.rank, cell, effort) for cell in cells)
        for numbers, stacks in _stacked(blocks):
            groups = groups_with_independent_rows(matrix.intervals[stacks], numbers)
            refuted[remaining[list(groups)]] = True
    return refuted


def _row_sets(codes: csr_array, by_column: csr_array, rank: int, cell: tuple[int, int, int], effort: int) -> Array:
    """(sets, r + 1, c) codes: the row of a cell with rows known in its column, as many sets as `effort` allows.

    Rows come first that are known in many of the columns where the row is known. The cell itself has a code as well.
    """
    row, column, code = cell
    in_column, in_row = (slice(*at.indptr[k : k + 2]) for at, k in ((by_column, column), (codes, row)))
    rows, columns = by_column.indices[in_column], codes.indices[in_row]
    if rows.size < rank:
        return np.empty((0, rank + 1, 1), np.intp)
    n_combined = rank  # rows to combine: r at least, and more while there are no more than `effort` sets of r
    while n_combined < rows.size and comb(n_combined + 1, rank) <= effort:
        n_combined += 1
    block = codes[rows][:, columns].toarray()
    best = np.argsort(-np.count_nonzero(block, axis=1), kind="stable")[:n_combined]
    block = block[best]
    most = np.argsort(-np.count_nonzero(block, axis=0), kind="stable")[:_MAX_COLUMNS]
    others = np.column_stack([block[:, most], by_column.data[in_column][best]])
    own = np.append(codes.data[in_row][most], code)
    sets = np.array(list(combinations(range(1, best.size + 1), rank)))
    return np.vstack([own, others])[np.insert(sets, 0, 0, axis=1)]


def _stacked(blocks: Iterable[Array]) -> Iterator[tuple[Array, Array]]:
    """Blocks of different width in large stacks, padded with cells of which nothing is known, and their numbers."""
    batch: dict[int, Array] = {}

    def stack() -> tuple[Array, Array]:
        width = max(block.shape[2] for block in batch.values())
        padded = [np.pad(block, ((0, 0), (0, 0), (0, width - block.shape[2]))) for block in batch.values()]
        return np.repeat(list(batch), [len(block) for block in padded]), np.concatenate(padded)

    for number, block in enumerate(blocks):
        batch[number] = block
        if sum(one.size for one in batch.values()) > _BATCH_SIZE:
            yield stack()
            batch.clear()
    if batch:
        yield stack()
