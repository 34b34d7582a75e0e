"""Incomplete tables, dense or as a list of cells: one pass over the data for all that the rank-one methods need.

The values matter only through the marginals, so the pass gives these, the missing cells and a few counts.
"""

from abc import ABC, abstractmethod
from functools import cached_property, reduce
from typing import NamedTuple

import numpy as np

from halfseen.arrays import Array
from halfseen.engines.threads import Threads
from halfseen.errors import DataError
from halfseen.observed import Observed
from halfseen.rankone.marginals import MIN_DIFFERENCE, Marginals, MergedRows, WeightMatrix, sum_along_axes

#: Cells per block of a dense table: below this, a second thread does not pay.
_CELLS_PER_BLOCK = 1 << 20
#: Rows are merged if they have at most this many different sets of missing cells.
_MAX_GROUPS = 64
#: Sums must leave room for numbers this many times as large.
_MARGIN = 1e3
#: Weights below this are stored apart from the 1 of an unobserved zero.
_SMALL_WEIGHT = 1e-3
#: Largest grid with unobserved zeros that is listed cell by cell, if necessary.
_MAX_LISTED = 1 << 24


class ObservedCells(NamedTuple):
    """Rows, (unfolded) columns and weights of observed cells, and whether the value is positive."""

    rows: Array
    columns: Array
    weights: Array | None
    positive: Array


class Table(ABC):
    """An incomplete table, after one pass over its cells."""

    #: Rows with a missing cell, in order: the first rows of `marginals`, followed by the complete rows, if any.
    incomplete_rows: Array
    #: Smallest and largest number of positive values in a row that has any.
    positive_counts: tuple[float, float]

    @property
    @abstractmethod
    def marginals(self) -> Marginals:
        """Marginals; complete rows may be merged into one."""

    @property
    def merged_marginals(self) -> Marginals:
        """Marginals; rows with the same missing cells may be merged."""
        return self.marginals

    @property
    def has_zero_weights(self) -> bool:
        """Whether unobserved cells count as zeros, but some cells have weight 0."""
        return False

    @abstractmethod
    def observed_cells(self) -> ObservedCells:
        """All observed cells, for the few tables whose connectivity does not follow from counts."""

    @abstractmethod
    def block_sums(self, rows: Array, complete: Array) -> tuple[Array, Array]:
        """Sums of the given rows over complete columns (a mask); sums of all columns over the other rows."""

    @abstractmethod
    def sums_outside(self, incomplete: tuple[Array, ...]) -> tuple[Array, ...]:
        """Sums along each axis over the cells outside the block in which incomplete slices (a mask per axis) meet."""


class DenseTable(Table):
    """Dense table, NaN where a cell is missing; `inner_shape` if its columns unfold further axes of a tensor."""

    def __init__(self, matrix: Array, threads: Threads, inner_shape: tuple[int, ...] | None = None) -> None:
        from halfseen.rankone.table_sums import dense_table_sums

        # A column-major matrix is read as it lies in memory, with its columns in the place of rows.
        transposed = matrix.flags.f_contiguous and not matrix.flags.c_contiguous and inner_shape is None
        self._matrix = np.ascontiguousarray(matrix.T if transposed else matrix)
        n, m = self._matrix.shape
        self._inner_shape = inner_shape or (m,)
        self._axes = (1, 0) if transposed else tuple(range(1 + len(self._inner_shape)))
        self._threads = threads
        self._row_sums = np.empty(n)

        def block(top: int) -> tuple[Array, ...]:
            X = self._matrix[top : top + height]
            sums, flags, totals = np.zeros(m), np.empty(m, np.uint8), np.empty(6)
            rows, ends = np.empty(len(X), np.int64), np.empty(len(X) + 1, np.int64)
            missing = np.empty(X.size + 1, _index_dtype(m))
            out = self._row_sums[top : top + height]
            count = dense_table_sums(X, out, sums, rows, ends, missing, flags, totals)
            # A copy, so that the next block reuses the large array while it is in the cache.
            return sums, rows[:count] + top, np.diff(ends[: count + 1]), missing[: ends[count]].copy(), totals

        height = max(1, _CELLS_PER_BLOCK // max(m, 1))
        sums, *lists, totals = zip(*threads.all(block, range(0, n, height)), strict=True)
        self._column_sums = reduce(np.add, sums)
        self.incomplete_rows, counts, self._missing = (a[0] if len(a) == 1 else np.concatenate(a) for a in lists)
        self._indptr = np.append(0, np.cumsum(counts))
        negative, complete_sum, low, high, fewest, most = np.array(totals).T
        self._n_negative, self._complete_sum = negative.sum(), float(complete_sum.sum())
        self._row_sum_range = (float(low.min()), float(high.max()))
        self.positive_counts = (float(fewest.min()), float(most.max()))

    @property
    def is_valid(self) -> bool:
        """Whether cells are observed, all finite and not negative, with finite sums and a finite total."""
        with np.errstate(over="ignore", invalid="ignore"):
            finite = np.isfinite(self._row_sum_range[1]) and np.isfinite(self._column_sums.sum() * _MARGIN)
        return bool(finite) and self._n_negative == 0 and self._missing.size < self._matrix.size

    @cached_property
    def marginals(self) -> Marginals:
        if 2 * self._missing.size <= self._matrix.size:
            every = np.arange(self.incomplete_rows.size)
            return self._merge(every, every)
        observed = ~np.isnan(self._matrix)
        columns = np.broadcast_to(np.arange(observed.shape[1], dtype=self._missing.dtype), observed.shape)[observed]
        counts = observed.sum(axis=1)
        weights = WeightMatrix.from_observed(np.append(0, np.cumsum(counts)), columns, None, observed.shape)
        return self._make_marginals(self._row_sums, counts * 1.0, weights, np.ones(len(observed)), None)

    @cached_property
    def merged_marginals(self) -> Marginals:
        from halfseen.rankone.table_sums import group_equal_rows

        if 2 * self._missing.size > self._matrix.size:
            return self.marginals
        count = self.incomplete_rows.size
        group, first_rows = np.empty(count, np.int64), np.empty(min(_MAX_GROUPS, count), np.int64)
        count = group_equal_rows(self._indptr, self._missing, group, first_rows)
        return self._merge(group, first_rows[:count]) if count >= 0 else self.marginals

    def _merge(self, groups: Array, first_rows: Array) -> Marginals:
        """Merge incomplete rows by group, of which `first_rows` are examples, and all complete rows into the last."""
        n, m = self._matrix.shape
        rows, indices, indptr = self.incomplete_rows, self._missing, self._indptr
        if first_rows.size < rows.size:
            indices = np.concatenate([indices[indptr[first] : indptr[first + 1]] for first in first_rows.tolist()])
            indptr = np.append(0, np.cumsum(np.diff(indptr)[first_rows]))
        sums = np.bincount(groups, self._row_sums[rows], first_rows.size)
        heights = np.bincount(groups, minlength=first_rows.size).astype(np.float64)
        if rows.size < n:
            indptr = np.append(indptr, indptr[-1])
            sums, heights = np.append(sums, self._complete_sum), np.append(heights, n - rows.size)
        weights = WeightMatrix.from_missing(indptr, indices, (indptr.size - 1, m))
        group = np.full(n, first_rows.size, np.int32)
        group[rows] = groups
        merged = MergedRows(group, self._row_sums, *self._row_sum_range)
        return self._make_marginals(sums, (m - np.diff(indptr)) * heights, weights, heights, merged)

    def _make_marginals(
        self, row_sums: Array, row_counts: Array, weights: WeightMatrix, heights: Array, merged: MergedRows | None
    ) -> Marginals:
        """Marginals of rows that stand for `heights` rows each."""
        column_counts = weights.rmatvec(heights, self._threads)
        sums = (row_sums, *sum_along_axes(self._column_sums.reshape(self._inner_shape)))
        counts = (row_counts, *sum_along_axes(column_counts.reshape(self._inner_shape)))
        return Marginals(sums, counts, weights, self._axes, binary=True, merged=merged)

    def observed_cells(self) -> ObservedCells:
        rows, columns = np.nonzero(~np.isnan(self._matrix))
        return ObservedCells(rows, columns, None, self._matrix[rows, columns] > 0)

    def block_sums(self, rows: Array, complete: Array) -> tuple[Array, Array]:
        from halfseen.rankone.table_sums import block_sums

        beside, below = np.empty(rows.size), np.zeros(self._matrix.shape[1])
        block_sums(self._matrix, rows, complete, beside, below)
        above = self._column_sums - below
        cancelled = np.flatnonzero(above < MIN_DIFFERENCE * self._column_sums)
        if cancelled.size:
            others = np.ones(len(self._matrix), bool)
            others[rows] = False
            above[cancelled] = self._matrix[np.ix_(others, cancelled)].sum(axis=0, dtype=np.float64)
        return beside, above

    def sums_outside(self, incomplete: tuple[Array, ...]) -> tuple[Array, ...]:
        values = np.nan_to_num(self._matrix.reshape(len(self._matrix), *self._inner_shape)).astype(np.float64)
        values[np.ix_(*incomplete)] = 0.0
        return sum_along_axes(values)


class ListedTable(Table):
    """Observed cells with their weights; unobserved cells are missing or zero."""

    def __init__(self, observed: Observed, inner_shape: tuple[int, ...] | None = None) -> None:
        self._observed = observed
        n, m = observed.shape
        weighted = observed.values.astype(np.float64)
        if observed.weights is not None:
            weighted *= observed.weights
        self._rows, self._weighted = observed.row_of_cell(), weighted
        # As floats, because bincount gives integers if there are no cells.
        row_sums = np.bincount(self._rows, weighted, minlength=n).astype(np.float64, copy=False)
        column_sums = np.bincount(observed.indices, weighted, minlength=m).astype(np.float64, copy=False)
        _check_sums(row_sums, column_sums)
        positive = np.bincount(self._rows, weighted > 0, minlength=n)[row_sums > 0].astype(np.float64)
        self.positive_counts = (float(positive.min(initial=np.inf)), float(positive.max(initial=0.0)))
        sums = (row_sums, *sum_along_axes(column_sums.reshape(inner_shape or (m,))))
        counts = (observed.seen_per_row(), *sum_along_axes(observed.seen_per_column().reshape(inner_shape or (m,))))
        self.incomplete_rows = np.flatnonzero((counts[0] < m) & (observed.unseen == "missing"))  # a zero is not missing
        binary = observed.weights is None and observed.is_first_at_cell is None
        weights = self._weight_matrix(binary)
        self._marginals = Marginals(sums, counts, weights, tuple(range(len(sums))), binary, observed.unseen)

    @property
    def marginals(self) -> Marginals:
        return self._marginals

    def _weight_matrix(self, binary: bool) -> WeightMatrix:
        observed = self._observed
        n, m = observed.shape
        if observed.unseen == "missing":
            if not binary or observed.n_unobserved >= observed.nnz:
                return WeightMatrix.from_observed(observed.indptr, observed.indices, observed.weights, observed.shape)
            is_missing = np.ones((n, m), bool)
            is_missing[self._rows, observed.indices] = False
            missing = np.broadcast_to(np.arange(m, dtype=_index_dtype(m)), (n, m))[is_missing]
            return WeightMatrix.from_missing(np.arange(n + 1) * m - observed.indptr, missing, observed.shape)
        if binary:
            return WeightMatrix.from_missing(np.zeros(n + 1, np.int64), np.empty(0, np.int32), observed.shape)
        weights = np.ones(observed.nnz) if observed.weights is None else observed.weights.astype(np.float64)
        if observed.n_unobserved == 0:
            return WeightMatrix.from_observed(observed.indptr, observed.indices, weights, observed.shape)
        is_first = np.ones(observed.nnz) if observed.is_first_at_cell is None else observed.is_first_at_cell
        # Added to 1, a small weight would lose its digits: such a cell is stored twice, as -1 and as its weight.
        times = 1 + (weights < _SMALL_WEIGHT)
        data = np.repeat(weights - is_first, times)
        seconds = np.cumsum(times)[times == 2] - 1
        data[seconds - 1], data[seconds] = -is_first[times == 2], weights[times == 2]
        indptr = np.append(0, np.cumsum(times))[observed.indptr]
        return WeightMatrix(1.0, indptr, np.repeat(observed.indices, times), data, observed.shape)

    @property
    def has_zero_weights(self) -> bool:
        """Whether unobserved cells count as zeros, but some cells have weight 0; False for very large grids."""
        observed = self._observed
        small = observed.shape[0] * observed.shape[1] <= _MAX_LISTED
        return observed.unseen == "zero" and observed.weights is not None and small and not observed.weights.all()

    def observed_cells(self) -> ObservedCells:
        observed = self._observed
        if observed.weights is None or not self.has_zero_weights:
            return ObservedCells(self._rows, observed.indices, observed.weights, self._weighted > 0)
        weights, values = np.ones(observed.shape), np.zeros(observed.shape)
        cells = (self._rows, observed.indices)
        weights[cells] = 0.0
        np.add.at(weights, cells, observed.weights)
        np.add.at(values, cells, self._weighted)
        rows, columns = np.nonzero(weights)
        return ObservedCells(rows, columns, weights[rows, columns], values[rows, columns] > 0)

    def block_sums(self, rows: Array, complete: Array) -> tuple[Array, Array]:
        n, m = self._observed.shape
        selected = np.zeros(n, bool)
        selected[rows] = True
        columns, inside = self._observed.indices, selected[self._rows]
        beside = np.bincount(self._rows, np.where(inside & complete[columns], self._weighted, 0.0), minlength=n)
        return beside[rows], np.bincount(columns, np.where(inside, 0.0, self._weighted), minlength=m)

    def sums_outside(self, incomplete: tuple[Array, ...]) -> tuple[Array, ...]:
        positions = (self._rows, *np.unravel_index(self._observed.indices, self._marginals.inner_shape))
        inside = np.logical_and.reduce([mask[at] for mask, at in zip(incomplete, positions, strict=True)])
        outside = np.where(inside, 0.0, self._weighted)
        return tuple(
            np.bincount(at, outside, minlength=mask.size) for mask, at in zip(incomplete, positions, strict=True)
        )


def _index_dtype(size: int) -> np.dtype:
    return np.dtype(np.int32 if size <= np.iinfo(np.int32).max else np.int64)


def _check_sums(row_sums: Array, column_sums: Array) -> None:
    """Refuse sums that are infinite, or so large that products with them would be."""
    remedy = "Divide X by a large number first."
    for axis, sums in (("row", row_sums), ("column", column_sums)):
        infinite = np.flatnonzero(~np.isfinite(sums))
        if infinite.size:
            raise DataError("The sum of every row and column must be a finite number.", found=str(sums[infinite[0]]),
                            where=f"in {axis} {infinite[0]}", remedy=remedy, parameter="X")  # fmt: skip
    with np.errstate(over="ignore"):
        total = float(row_sums.sum())
    if not np.isfinite(total * _MARGIN):
        must = f"The sum of X must be at most {np.finfo(float).max / _MARGIN:.0e}, to leave room for arithmetic."
        raise DataError(must, found=f"{total:g}", remedy=remedy, parameter="X")
