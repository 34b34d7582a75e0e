"""What the rank-one methods ask of the data: sums along the axes, the list of holes, a few counts.

The best rank-one factorization depends on the values only through their sums along the axes (the expectation
parameters of Theorem 1), so a table is looked through once and then forgotten.
"""

from abc import ABC, abstractmethod
from functools import cached_property
from typing import NamedTuple

import numpy as np

from halfseen.arrays import Array
from halfseen.engines.threads import Threads
from halfseen.errors import DataError
from halfseen.observed import Observed
from halfseen.rank_one.exposure import TRUSTED, Exposure, summed
from halfseen.rank_one.marginals import Marginals, Merged, along_axes

#: Cells a block of a dense table: below this, a second thread does not pay.
_CELLS_PER_BLOCK = 1 << 20
#: Rows are merged if they are of at most so many kinds.
_MOST_KINDS = 64
#: Sums must leave room for numbers so many times as large.
_MARGIN = 1e3
#: Weights below this are kept apart from the 1 of an unseen zero.
_SMALL = 1e-3
#: Grids with unseen zeros that are listed cell by cell, if need be.
_MOST_LISTED = 1 << 24


class SeenCells(NamedTuple):
    """Seen cells one by one: row and (unfolded) column, the weight, whether the value is above 0."""

    rows: Array
    columns: Array
    weights: Array | None
    positive: Array


class Table(ABC):
    """A half-seen table, looked through once."""

    #: The fewest and the most values above 0 in a row that has any.
    positives: tuple[float, float]

    @property
    @abstractmethod
    def marginals(self) -> Marginals:
        """The sums, rows without a hole taken as one."""

    @property
    def condensed(self) -> Marginals:
        """The sums, rows with the same holes taken as one."""
        return self.marginals

    @property
    @abstractmethod
    def holed_rows(self) -> Array:
        """Rows with a hole, in their order: the first of the marginals; if these have another, it is for all others."""

    @property
    def hides_zeros(self) -> bool:
        """Whether zeros count, but some places of the grid weigh nothing."""
        return False

    @abstractmethod
    def cells(self) -> SeenCells:
        """Every seen cell: for the rare tables whose connections can't be told from counts."""

    @abstractmethod
    def sums_around(self, rows: Array, free: Array) -> tuple[Array, Array]:
        """For the given rows, sums over the free columns; for each column, the sum over all other rows."""


class DenseTable(Table):
    """A dense matrix, NaN where nothing was seen; `inner_shape` if its columns are further axes of a tensor."""

    def __init__(self, matrix: Array, threads: Threads, inner_shape: tuple[int, ...] | None = None) -> None:
        # A matrix that lies column by column is walked as it lies, its columns in the place of rows.
        flipped = matrix.flags.f_contiguous and not matrix.flags.c_contiguous and inner_shape is None
        self._matrix = np.ascontiguousarray(matrix.T if flipped else matrix)
        self._inner = inner_shape or self._matrix.shape[1:]
        self._axes = (1, 0) if flipped else tuple(range(1 + len(self._inner)))
        self._threads = threads
        self._look_through()

    @cached_property
    def marginals(self) -> Marginals:
        return self._marginals(np.arange(self._rows.size), np.arange(self._rows.size))

    @cached_property
    def condensed(self) -> Marginals:
        return self._marginals(*self._kinds_of_rows())

    @property
    def holed_rows(self) -> Array:
        return self._rows

    def _look_through(self) -> None:
        from halfseen.kernels.rank_one import survey

        n, m = self._matrix.shape
        self._row_sums = np.empty(n)

        def block(part: slice) -> tuple[Array, ...]:
            X = self._matrix[part]
            sums, flags, found = np.zeros(m), np.empty(m, np.uint8), np.empty(6)
            rows, ends = np.empty(len(X), np.int64), np.empty(len(X) + 1, np.int64)
            holes = np.empty(X.size + 1, _index_dtype(m))
            listed = survey(X, self._row_sums[part], sums, rows, ends, holes, flags, found)
            # A copy, so that the next block finds the large array free, and warm.
            return sums, rows[:listed] + part.start, np.diff(ends[: listed + 1]), holes[: ends[listed]].copy(), found

        sums, rows, counts, holes, found = zip(*self._threads.all(block, self._blocks), strict=True)
        self._column_sums = summed(sums)
        self._rows, self._holes_in_row, self._holes = (_joined(lists) for lists in (rows, counts, holes))
        negatives, whole, lowest, highest, fewest, most = np.array(found).T
        self._negatives, self._whole = negatives.sum(), float(whole.sum())
        self._bounds = (float(lowest.min()), float(highest.max()))
        self.positives = (float(fewest.min()), float(most.max()))

    def _marginals(self, kinds: Array, firsts: Array) -> Marginals:
        """The sums of rows of the same kind together: `kinds` of those with holes; and, as the last, of whole rows."""
        n, m = self._matrix.shape
        merged, sums, heights = None, self._row_sums, np.ones(n)
        if 2 * self._holes.size > n * m:
            exposure = self._exposure_by_cells
        else:
            exposure = self._exposure_by_holes(firsts)
            group = np.full(n, firsts.size, np.int32)
            group[self._rows] = kinds
            merged = Merged(group, self._row_sums, *self._bounds)
            whole = exposure.shape[0] - firsts.size  # 1 if there are whole rows, else 0
            sums = np.append(np.bincount(kinds, self._row_sums[self._rows], firsts.size), [self._whole] * whole)
            heights = np.append(np.bincount(kinds, minlength=firsts.size), [float(n - self._rows.size)] * whole)
        listed = np.diff(exposure.indptr)
        seen_in_rows = (m - listed if exposure.base > 0 else listed) * heights
        seen_in_columns = exposure.of_columns(heights, self._threads)
        return Marginals(
            (sums, *along_axes(self._column_sums.reshape(self._inner))),
            (seen_in_rows, *along_axes(seen_in_columns.reshape(self._inner))),
            exposure,
            self._axes,
            binary=True,
            merged=merged,
        )

    def _kinds_of_rows(self) -> tuple[Array, Array]:
        """For each row with holes a number, the same for the same holes; and the first row of each number."""
        from halfseen.kernels.rank_one import alike

        kinds, firsts = np.empty(self._rows.size, np.int64), np.empty(min(_MOST_KINDS, self._rows.size), np.int64)
        count = alike(self._ends_of_holes, self._holes, kinds, firsts)
        if count < 0:  # nearly each is of its own kind
            return np.arange(self._rows.size), np.arange(self._rows.size)
        return kinds, firsts[:count]

    @cached_property
    def _ends_of_holes(self) -> Array:
        return np.append(0, np.cumsum(self._holes_in_row))

    def _exposure_by_holes(self, firsts: Array) -> Exposure:
        """The holes of one row of each kind; whole rows, if there are any, have none."""
        n, m = self._matrix.shape
        holes, ends = self._holes, self._ends_of_holes
        if firsts.size < self._rows.size:
            holes = np.concatenate([holes[ends[first] : ends[first + 1]] for first in firsts.tolist()])
            ends = np.append(0, np.cumsum(self._holes_in_row[firsts]))
        if self._rows.size < n:
            ends = np.append(ends, ends[-1])
        return Exposure.of_holes(ends, holes, (ends.size - 1, m))

    @cached_property
    def _exposure_by_cells(self) -> Exposure:
        n, m = self._matrix.shape
        seen = ~np.isnan(self._matrix)
        columns = np.broadcast_to(np.arange(m, dtype=self._holes.dtype), (n, m))[seen]
        return Exposure.of_seen(np.append(0, np.cumsum(seen.sum(axis=1))), columns, None, (n, m))

    @property
    def sound(self) -> bool:
        """Whether something was seen, all of it finite and not negative, with finite sums and a finite total."""
        with np.errstate(over="ignore", invalid="ignore"):
            finite = np.isfinite(self._bounds[1]) and np.isfinite(self._column_sums.sum() * _MARGIN)
        return bool(finite) and self._negatives == 0 and self._holes.size < self._matrix.size

    def cells(self) -> SeenCells:
        rows, columns = np.nonzero(~np.isnan(self._matrix))
        return SeenCells(rows, columns, None, self._matrix[rows, columns] > 0)

    def sums_around(self, rows: Array, free: Array) -> tuple[Array, Array]:
        from halfseen.kernels.rank_one import sums_beside

        beside, below = np.empty(rows.size), np.zeros(self._matrix.shape[1])
        sums_beside(self._matrix, rows, free, beside, below)
        above = self._column_sums - below
        doubtful = np.flatnonzero(above < TRUSTED * self._column_sums)
        if doubtful.size:
            others = np.ones(len(self._matrix), bool)
            others[rows] = False
            above[doubtful] = self._matrix[np.ix_(others, doubtful)].sum(axis=0, dtype=np.float64)
        return beside, above

    @property
    def _blocks(self) -> list[slice]:
        n, m = self._matrix.shape
        height = max(1, _CELLS_PER_BLOCK // max(m, 1))
        return [slice(top, min(top + height, n)) for top in range(0, n, height)]


class ListedTable(Table):
    """The cells of an `Observed`, with their weights; unseen cells missing or zero."""

    def __init__(self, observed: Observed, inner_shape: tuple[int, ...] | None = None) -> None:
        self._observed = observed
        n, m = observed.shape
        inner = inner_shape or (m,)
        weighted = observed.values.astype(np.float64)
        if observed.weights is not None:
            weighted *= observed.weights
        self._rows, self._weighted = observed.row_of_cell(), weighted
        # As floats, because those of nothing at all would be integers.
        row_sums = np.bincount(self._rows, weighted, minlength=n).astype(np.float64, copy=False)
        column_sums = np.bincount(observed.indices, weighted, minlength=m).astype(np.float64, copy=False)
        _refuse_infinite_sums(row_sums, column_sums)
        above = np.bincount(self._rows, weighted > 0, minlength=n)[row_sums > 0].astype(np.float64)
        self.positives = (float(above.min(initial=np.inf)), float(above.max(initial=0.0)))
        self._told = Marginals(
            (row_sums, *along_axes(column_sums.reshape(inner))),
            (observed.seen_per_row(), *along_axes(observed.seen_per_column().reshape(inner))),
            self._exposure(),
            tuple(range(1 + len(inner))),
            binary=observed.weights is None and observed.is_first_at_cell is None,
            unseen=observed.unseen,
        )

    @property
    def marginals(self) -> Marginals:
        return self._told

    @property
    def holed_rows(self) -> Array:
        holed = (self._told.counts[0] < self._told.exposure.shape[1]) & (self._told.unseen == "missing")
        return np.flatnonzero(holed)  # an unseen zero is no hole

    def _exposure(self) -> Exposure:
        observed = self._observed
        if observed.unseen == "zero":
            return self._exposure_with_zeros()
        more_than_seen = observed.weights is not None or observed.is_first_at_cell is not None
        if more_than_seen or observed.n_unobserved >= observed.nnz:
            return Exposure.of_seen(observed.indptr, observed.indices, observed.weights, observed.shape)
        return self._exposure_by_holes()

    def _exposure_by_holes(self) -> Exposure:
        n, m = self._observed.shape
        seen = np.zeros((n, m), bool)
        seen[self._rows, self._observed.indices] = True
        holes = np.broadcast_to(np.arange(m, dtype=_index_dtype(m)), (n, m))[~seen]
        return Exposure.of_holes(np.arange(n + 1) * m - self._observed.indptr, holes, (n, m))

    def _exposure_with_zeros(self) -> Exposure:
        """Every place of the grid counts once, seen ones by their weights instead."""
        observed = self._observed
        if observed.weights is None and observed.is_first_at_cell is None:
            return Exposure.everywhere(observed.shape)
        weights = np.ones(observed.nnz) if observed.weights is None else observed.weights.astype(np.float64)
        if observed.n_unobserved == 0:
            return Exposure.of_seen(observed.indptr, observed.indices, weights, observed.shape)
        firsts = np.ones(observed.nnz) if observed.is_first_at_cell is None else observed.is_first_at_cell
        # Next to 1 a small weight would lose its digits: such a cell is listed twice, less 1 and then more its weight.
        times = 1 + (weights < _SMALL)
        change = np.repeat(weights - firsts, times)
        seconds = np.cumsum(times)[times == 2] - 1
        change[seconds - 1], change[seconds] = -firsts[times == 2], weights[times == 2]
        indptr = np.append(0, np.cumsum(times))[observed.indptr]
        return Exposure(1.0, indptr, np.repeat(observed.indices, times), change, observed.shape)

    @property
    def hides_zeros(self) -> bool:
        """Whether zeros count, but some places of the grid weigh nothing, and the grid is small enough to be listed."""
        observed = self._observed
        small = observed.shape[0] * observed.shape[1] <= _MOST_LISTED
        return observed.unseen == "zero" and observed.weights is not None and small and not observed.weights.all()

    def cells(self) -> SeenCells:
        observed = self._observed
        if observed.weights is None or not self.hides_zeros:
            return SeenCells(self._rows, observed.indices, observed.weights, self._weighted > 0)
        weights, values = np.ones(observed.shape), np.zeros(observed.shape)
        places = (self._rows, observed.indices)
        weights[places] = 0.0
        np.add.at(weights, places, observed.weights)
        np.add.at(values, places, self._weighted)
        rows, columns = np.nonzero(weights)
        return SeenCells(rows, columns, weights[rows, columns], values[rows, columns] > 0)

    def sums_around(self, rows: Array, free: Array) -> tuple[Array, Array]:
        n, m = self._observed.shape
        among = np.zeros(n, bool)
        among[rows] = True
        columns, inside = self._observed.indices, among[self._rows]
        beside = np.bincount(self._rows, np.where(inside & free[columns], self._weighted, 0.0), minlength=n)
        return beside[rows], np.bincount(columns, np.where(inside, 0.0, self._weighted), minlength=m)


def _joined(lists: tuple[Array, ...]) -> Array:
    return lists[0] if len(lists) == 1 else np.concatenate(lists)


def _index_dtype(size: int) -> np.dtype:
    return np.dtype(np.int32 if size <= np.iinfo(np.int32).max else np.int64)


def _refuse_infinite_sums(row_sums: Array, column_sums: Array) -> None:
    for what, sums in (("row", row_sums), ("column", column_sums)):
        endless = np.flatnonzero(~np.isfinite(sums))
        if endless.size:
            raise DataError(
                f"The sum of every row and column must be a finite number. Found {sums[endless[0]]} in {what} "
                f"{endless[0]}. Divide X by a large number first."
            )
    with np.errstate(over="ignore"):
        total = float(row_sums.sum())
    if not np.isfinite(total * _MARGIN):
        raise DataError(
            f"The sum of X must be at most {np.finfo(float).max / _MARGIN:.0e}, to leave room for arithmetic. "
            f"Found {total:g}. Divide X by a large number first."
        )
