"""The half-seen matrix: which cells were observed, their values, and what an unobserved cell means."""

from __future__ import annotations

import hashlib
import os
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from halfseen.errors import DataError, DataWarning, ParameterError
from halfseen.labels import Index, Places, as_labels, index_dtype

UNSEEN = ("missing", "zero")
ZEROS = ("keep", "drop")
DUPLICATES = ("error", "sum", "mean", "min", "max", "first", "last", "keep")
SMALL = 1 << 16  # cells that NumPy sorts sooner than compiled code is loaded
LARGE = 1 << 20  # cells for which more than one thread is worth its start


@dataclass(frozen=True)
class ColumnOrder:
    """The same cells in column order: `values[order]` runs down the columns, `rows` are the rows of these cells."""

    indptr: np.ndarray
    rows: np.ndarray
    order: np.ndarray


@dataclass(frozen=True, eq=False, repr=False)
class Observed:
    """A matrix of which some cells are observed, stored by rows (CSR), columns ascending inside each row.

    `values[indptr[i]:indptr[i + 1]]` are the values of row i, in the columns `indices[...]`. Make one with `observe`
    or `from_cells`, which check everything; the bare constructor checks nothing.
    """

    indptr: np.ndarray
    """Start of each row among the cells, of shape (n + 1,)."""
    indices: np.ndarray
    """Column of each cell."""
    values: np.ndarray
    """Value of each cell, float32 or float64."""
    shape: tuple[int, int]
    """Numbers of rows and columns."""
    weights: np.ndarray | None = None
    """Weight of each cell; None: all 1."""
    unseen: str = "missing"
    """Meaning of a cell that is not stored: "missing" (it may be anything) or "zero" (it is 0, with weight 1)."""
    row_labels: np.ndarray | None = None
    """Labels of the rows, if they have any."""
    column_labels: np.ndarray | None = None
    """Labels of the columns, if they have any."""
    level_names: np.ndarray | None = None
    """The texts that the values 1, 2, ... stand for, where values were texts."""
    summary: Any = None
    """Which columns of a frame or file were read as what: a `halfseen.io.schema.ReadSummary`, or None."""

    @classmethod
    def from_cells(
        cls,
        rows: Any,
        columns: Any,
        values: Any,
        shape: tuple[int, int],
        *,
        weights: Any = None,
        unseen: str = "missing",
        row_labels: Any = None,
        column_labels: Any = None,
        duplicates: str = "error",
        zeros: str = "keep",
        allow_empty: bool = False,
    ) -> Observed:
        """Build from coordinates in any order, in time linear in their number.

        A NaN value is an unobserved cell, and under unseen="missing" so is a cell of weight 0. Arrays that are sorted
        already, of the right dtype and without cells to drop are shared with the caller, not copied.

        Parameters
        ----------
        rows, columns : array-like of int of shape (nnz,)
            Positions of the cells, from 0.
        values : array-like of float of shape (nnz,)
            Values of the cells.
        shape : tuple of int
            Numbers of rows and columns.
        weights : array-like of float of shape (nnz,), default=None
            Weights of the cells; None: all 1.
        unseen : {"missing", "zero"}, default="missing"
            Meaning of all other cells.
        row_labels, column_labels : array-like, default=None
            Labels of the rows and columns, all different.
        duplicates : {"error", "sum", "mean", "min", "max", "first", "last", "keep"}, default="error"
            What to do with a cell given more than once. "mean" is weighted by the weights; "keep" keeps every value as
            a measurement of its own. A merged cell has the sum of the weights after "sum" and "mean", else the weight
            of the value chosen.
        zeros : {"keep", "drop"}, default="keep"
            What to do under unseen="zero" with a cell of value 0 and weight 1, which tells a fit what an unobserved
            cell tells: keep it, because it was observed and need not be recommended, or drop it, as in dense arrays.
        allow_empty : bool, default=False
            Whether a matrix without any observed cell (or non-zero value, under unseen="zero") is allowed.
        """
        # validate
        n, m = shape = (int(shape[0]), int(shape[1]))
        row_labels, column_labels = as_labels(row_labels, "row", n), as_labels(column_labels, "column", m)
        places = Places(row_labels, column_labels)
        for name, value, allowed in (
            ("unseen", unseen, UNSEEN),
            ("zeros", zeros, ZEROS),
            ("duplicates", duplicates, DUPLICATES),
        ):
            if value not in allowed:
                raise ParameterError(f"{name} must be one of {', '.join(allowed)}. Found {value!r}.")
        values = as_values(values)
        if weights is not None:
            with np.errstate(over="ignore"):  # one too large for float32 becomes inf, which is refused below
                weights = np.ascontiguousarray(as_values(weights), dtype=values.dtype)
        rows, columns = np.asarray(rows), np.asarray(columns)
        lengths = [array.shape for array in (rows, columns, values, weights) if array is not None]
        if any(len(length) != 1 or length != lengths[0] for length in lengths):
            found = ", ".join(str(length[0] if len(length) == 1 else length) for length in lengths)
            raise DataError(
                f"Rows, columns, values and weights must have the same length. Found lengths {found}. "
                "Give every cell a row, a column and a value."
            )
        dtype = index_dtype(shape, columns.size)
        rows = _check_positions(rows, n, "row").astype(dtype, copy=False)
        columns = _check_positions(columns, m, "column").astype(dtype, copy=False)
        infinite = np.isinf(values)
        if infinite.any():
            first = int(np.argmax(infinite))
            where = places.of(int(rows[first]), int(columns[first]))
            raise DataError(
                f"Values must be finite. Found {values[first]} at {where}. Replace it by NaN if it is unknown."
            )
        if weights is not None:
            bad = ~np.isfinite(weights) | (weights < 0)
            if bad.any():
                first = int(np.argmax(bad))
                raise DataError(
                    f"Weights of cells must be finite and not negative. Found {weights[first]} at "
                    f"{places.of(int(rows[first]), int(columns[first]))}. Use 0 for a cell that should not count."
                )

        # drop cells that carry no information
        keep = np.isnan(values)
        np.logical_not(keep, out=keep)
        if weights is not None and unseen == "missing":
            keep &= weights > 0
        if not keep.all():
            rows, columns, values = rows[keep], columns[keep], values[keep]
            weights = None if weights is None else weights[keep]
        del infinite, keep

        # sort by row, then column
        if _is_sorted(rows, columns):
            indptr = np.searchsorted(rows, np.arange(n + 1, dtype=rows.dtype))  # bincount would take 8 bytes per cell
            del rows
        else:
            cells = [rows, columns, values, weights]
            del rows, columns, values, weights  # so that they can be freed on the way
            indptr, columns, values, weights = _sort_cells(cells, shape)

        # merge cells given more than once
        first_at = _first_at_cell(indptr, columns)
        if duplicates != "keep" and not first_at.all():
            starts = np.flatnonzero(first_at)
            if duplicates == "error":
                raise _duplicate_cells(indptr, columns, starts, places)
            values, weights = _merge(values, weights, starts, duplicates)
            columns, indptr = columns[starts], np.searchsorted(starts, indptr)
            first_at = np.ones(columns.size, dtype=bool)

        # drop zeros that say what an unobserved cell says
        if zeros == "drop" and unseen == "zero":
            keep = values != 0
            if weights is not None:
                keep |= weights != 1
            keep |= ~(first_at & np.append(first_at[1:], True))  # a 0 measured beside other values is no unseen cell
            if not keep.all():
                columns, values, indptr = columns[keep], values[keep], np.append(0, np.cumsum(keep))[indptr]
                weights = None if weights is None else weights[keep]
        del first_at

        dtype = index_dtype(shape, values.size)
        observed = cls(
            indptr.astype(dtype, copy=False),
            np.ascontiguousarray(columns, dtype=dtype),
            np.ascontiguousarray(values),
            shape,
            None if weights is None else np.ascontiguousarray(weights),
            unseen,
            row_labels,
            column_labels,
        )
        if not allow_empty and not (observed.values.any() if unseen == "zero" else observed.nnz):
            what = "non-zero value" if unseen == "zero" else "cell"
            raise DataError(
                f"At least one {what} must be observed. Found none in {n} rows and {m} columns. "
                "Check that the right file and columns were read."
            )
        return observed

    @property
    def account(self) -> Any:
        """The `summary`, by its name in version 0.1.0."""
        return self.summary

    @cached_property
    def columns(self) -> ColumnOrder:
        """The same cells in column order, computed once."""
        indptr, order = stable_order(self.indices, self.shape[1])
        rows = self.row_of_cell()[order]
        return ColumnOrder(indptr.astype(self.indptr.dtype, copy=False), rows, order)

    @property
    def nnz(self) -> int:
        """Number of observed cells."""
        return self.values.size

    @property
    def dtype(self) -> np.dtype:
        """float32 or float64."""
        return self.values.dtype

    @cached_property
    def is_first_at_cell(self) -> np.ndarray | None:
        """1 for the first of the values of a cell, 0 for its repetitions; None if no cell has several.

        Only `duplicates="keep"` lets a cell have several values.
        """
        is_first = _first_at_cell(self.indptr, self.indices)
        return None if is_first.all() else is_first.astype(self.dtype)

    @property
    def n_unobserved(self) -> int:
        """Number of cells of the matrix that were not observed."""
        seen = self.nnz if self.is_first_at_cell is None else int(self.is_first_at_cell.sum())
        return self.shape[0] * self.shape[1] - seen

    def seen_per_row(self) -> np.ndarray:
        """Number of observed cells in each row."""
        return np.diff(self.indptr)

    def seen_per_column(self) -> np.ndarray:
        """Number of observed cells in each column."""
        if "columns" in self.__dict__:  # the column order is there: no need to count, which takes 8 bytes per cell
            return np.diff(self.columns.indptr)
        return np.bincount(self.indices, minlength=self.shape[1])

    def row_of_cell(self) -> np.ndarray:
        """Row of each cell, in row order."""
        return np.repeat(np.arange(self.shape[0], dtype=self.indices.dtype), self.seen_per_row())

    def place(self, cell: int) -> str:
        """Where a cell is, for an error message: "row 'ann', column 'x'"."""
        row = int(np.searchsorted(self.indptr, cell, side="right")) - 1
        return Places(self.row_labels, self.column_labels).of(row, int(self.indices[cell]))

    def select_rows(self, rows: Any) -> Observed:
        """Some of the rows, by position or mask, in the order asked for."""
        rows = np.asarray(rows)
        rows = np.arange(self.shape[0])[rows if rows.size else rows.astype(np.intp)]
        by_row = sparse.csr_array((np.arange(self.nnz), self.indices, self.indptr), shape=self.shape)[rows]
        return replace(
            self,
            indptr=by_row.indptr.astype(self.indptr.dtype, copy=False),
            indices=self.indices[by_row.data],
            values=self.values[by_row.data],
            shape=(rows.size, self.shape[1]),
            weights=None if self.weights is None else self.weights[by_row.data],
            row_labels=None if self.row_labels is None else self.row_labels[rows],
        )

    def select_cells(self, cells: Any) -> Observed:
        """The same rows and columns with some of the cells, by ascending position or mask."""
        cells = np.asarray(cells)
        cells = np.flatnonzero(cells) if cells.dtype == bool else cells
        return replace(
            self,
            indptr=np.searchsorted(cells, self.indptr).astype(self.indptr.dtype),
            indices=self.indices[cells],
            values=self.values[cells],
            weights=None if self.weights is None else self.weights[cells],
        )

    def to_dense(self) -> np.ndarray:
        """A full array with NaN (or 0, under unseen="zero") at unobserved cells; of repeated cells the last value."""
        dense = np.full(self.shape, 0 if self.unseen == "zero" else np.nan, dtype=self.dtype)
        dense[self.row_of_cell(), self.indices] = self.values
        return dense

    def fingerprint(self) -> str:
        """A short text that differs whenever the cells, their values, weights or meaning do."""
        digest = hashlib.blake2b(f"{self.shape} {self.unseen} {self.dtype}".encode(), digest_size=16)
        for array in (self.indptr, self.indices, self.values, self.weights):
            digest.update(b"" if array is None else np.ascontiguousarray(array).data)
        return digest.hexdigest()

    def __repr__(self) -> str:
        share = self.nnz / max(self.shape[0] * self.shape[1], 1)
        extras = ("weights", "row_labels", "column_labels", "level_names")
        shown = "".join(f", {name}" for name in extras if getattr(self, name) is not None)
        return (
            f"Observed({self.shape[0]} x {self.shape[1]}, {self.nnz} cells seen ({share:.3g} of all), "
            f"unseen={self.unseen!r}, {self.dtype}{shown})"
        )


def match_cells(observed: Observed, shape: tuple[int, int], labels: Places, name: str, *, duplicates: str) -> Observed:
    """The cells of `observed` in the rows and columns of a model; others are left out, with a warning.

    Labels find labels. Where only the data have labels, these are positions; where they have none, the data must have
    as many rows (or columns) as the model.
    """
    positions: list[np.ndarray | None] = []
    sides = ("row", observed.row_labels, labels.row_labels), ("column", observed.column_labels, labels.column_labels)
    for (side, found, known), size, count in zip(sides, observed.shape, shape, strict=True):
        if found is None and size != count:
            raise DataError(
                f"{name} must have the {count} {side}s of the model, or labels. Found {size} {side}s without labels. "
                f"Pass all {side}s in their order, or a frame with labels."
            )
        known = np.arange(count) if known is None else known
        same = found is None or found is known or np.array_equal(found, known)
        positions.append(None if same or found is None else Index(known).find(found))
    rows, columns = positions
    if rows is None and columns is None and (duplicates == "keep" or observed.is_first_at_cell is None):
        return observed
    row_of_cell, column_of_cell = observed.row_of_cell(), observed.indices
    row_of_cell = row_of_cell if rows is None else rows[row_of_cell]
    column_of_cell = column_of_cell if columns is None else columns[column_of_cell]
    known_cells = (row_of_cell >= 0) & (column_of_cell >= 0)
    if not known_cells.all():
        unknown = np.flatnonzero(~known_cells)
        warnings.warn(
            f"The cells of {name} should be in rows and columns that the model knows. Found {unknown.size} of "
            f"{observed.nnz} that are not, the first at {observed.place(int(unknown[0]))}. They were left out.",
            DataWarning,
            stacklevel=4,  # where the user called a metric, or a method of the model
        )
    return Observed.from_cells(
        row_of_cell[known_cells], column_of_cell[known_cells], observed.values[known_cells], shape,
        weights=None if observed.weights is None else observed.weights[known_cells], unseen=observed.unseen,
        row_labels=labels.row_labels, column_labels=labels.column_labels, duplicates=duplicates, allow_empty=True,
    )  # fmt: skip


def as_values(values: Any) -> np.ndarray:
    """Values as a contiguous float array: float32 stays float32, everything else becomes float64."""
    values = np.asarray(values)
    if values.dtype.kind == "c":
        raise DataError(f"Complex data not supported. Found dtype {values.dtype}. Pass real and imaginary part alone.")
    dtype = np.float32 if values.dtype == np.float32 else np.float64
    try:
        return np.ascontiguousarray(values, dtype=dtype)
    except ValueError as error:
        raise DataError(f"Values must be numbers. Found otherwise: {error}. Convert them to numbers.") from None


def _check_positions(positions: np.ndarray, size: int, side: str) -> np.ndarray:
    if positions.size == 0:
        return positions.astype(np.int32)
    if positions.dtype.kind not in "iu":
        raise DataError(f"Positions of {side}s must be integers. Found dtype {positions.dtype}. Number the {side}s.")
    if positions.min() < 0 or positions.max() >= size:
        first = int(np.argmax((positions < 0) | (positions >= size)))
        raise DataError(
            f"Positions of {side}s must lie in 0..{size - 1}. Found {positions[first]} at position {first}. "
            "Correct it, or pass a larger shape."
        )
    return positions


def _is_sorted(rows: np.ndarray, columns: np.ndarray) -> bool:
    later_row = rows[1:] > rows[:-1]
    return bool((later_row | ((rows[1:] == rows[:-1]) & (columns[1:] >= columns[:-1]))).all())


def stable_order(codes: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """A stable counting sort of codes in 0..size-1: (where each code starts, the order that sorts them)."""
    dtype = index_dtype((codes.size, size), codes.size)
    if codes.size <= SMALL:
        order = np.argsort(codes, kind="stable").astype(dtype)
        starts = np.searchsorted(codes[order], np.arange(size + 1))
        return starts.astype(dtype), order
    from halfseen.kernels.indexing import count_starts, scatter

    starts, order = np.zeros(size + 1, dtype), np.empty(codes.size, dtype)
    count_starts(codes, starts)
    free = starts.copy()
    _in_threads(starts, scatter, codes, free, order)
    return starts, order


def _sort_cells(cells: list[Any], shape: tuple[int, int]) -> tuple[np.ndarray, np.ndarray, np.ndarray, Any]:
    """Sort (rows, columns, values, weights), which are used up, by row and column: (indptr, columns, values, weights).

    Two stable counting sorts, first by column, then by row; with weights, positions are sorted in the place of values.
    """
    rows, columns, values, weights = cells
    cells.clear()
    n, m = shape
    if rows.size <= SMALL:
        order = np.lexsort((columns, rows))
        indptr = np.searchsorted(rows[order], np.arange(n + 1))
        return indptr, columns[order], values[order], None if weights is None else weights[order]
    from halfseen.kernels.indexing import count_starts, scatter_cells, scatter_columns

    dtype = index_dtype(shape, rows.size)
    carried = values if weights is None else np.arange(rows.size, dtype=dtype)
    indptr, column_starts = np.zeros(n + 1, dtype), np.zeros(m + 1, dtype)
    count_starts(rows, indptr)
    count_starts(columns, column_starts)
    by_column, carried_by_column, free = np.empty_like(rows), np.empty_like(carried), column_starts.copy()
    _in_threads(column_starts, scatter_cells, columns, rows, carried, free, by_column, carried_by_column)
    del rows, columns, carried
    if weights is None:
        del values
    sorted_columns, sorted_carried, free = np.empty_like(by_column), np.empty_like(carried_by_column), indptr.copy()
    _in_threads(
        indptr, scatter_columns, column_starts, by_column, carried_by_column, free, sorted_columns, sorted_carried
    )
    if weights is None:
        return indptr, sorted_columns, sorted_carried, None
    return indptr, sorted_columns, values[sorted_carried], weights[sorted_carried]


def _in_threads(starts: np.ndarray, work: Any, *arguments: Any) -> None:
    """Run work(first, last, ...) on ranges of codes with about as many cells each; the result is the same for any."""
    n_threads = min(os.cpu_count() or 1, 4) if starts[-1] > LARGE else 1
    if n_threads == 1:
        work(0, starts.size - 1, *arguments)
        return
    cuts = np.searchsorted(starts, np.linspace(0, starts[-1], n_threads + 1)[1:-1])
    cuts = np.clip(cuts, 0, starts.size - 1)
    with ThreadPoolExecutor(n_threads) as pool:
        ranges = zip([0, *cuts], [*cuts, starts.size - 1], strict=True)
        list(pool.map(lambda ends: work(*ends, *arguments), ranges))


def _first_at_cell(indptr: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Which of the sorted cells are the first at their (row, column)."""
    first = np.ones(columns.size, dtype=bool)
    first[1:] = columns[1:] != columns[:-1]
    starts = indptr[:-1]
    first[starts[starts < columns.size]] = True
    return first


def _duplicate_cells(indptr: np.ndarray, columns: np.ndarray, starts: np.ndarray, places: Places) -> DataError:
    counts = np.diff(np.append(starts, columns.size))
    repeated = np.flatnonzero(counts > 1)
    start = starts[repeated[0]]
    where = places.of(int(np.searchsorted(indptr, start, side="right")) - 1, int(columns[start]))
    cells_are = "1 cell is" if repeated.size == 1 else f"{repeated.size} cells are"
    return DataError(
        f"Every cell may appear once. Found {counts[repeated[0]]} values for {where} ({cells_are} repeated). "
        'Say how to merge them: observe(X, duplicates="mean"), or "sum", "min", "max", "first", "last", "keep".'
    )


def _merge(
    values: np.ndarray, weights: np.ndarray | None, starts: np.ndarray, how: str
) -> tuple[np.ndarray, np.ndarray | None]:
    """One value and weight for each group of sorted cells, which begin at `starts`."""

    def sums(array: np.ndarray) -> np.ndarray:
        return np.add.reduceat(array, starts, dtype=np.float64)

    sizes = np.diff(np.append(starts, values.size))
    if how in ("sum", "mean"):
        total = None if weights is None else sums(weights).astype(weights.dtype)
        if how == "sum":
            return sums(values).astype(values.dtype), total
        share = np.ones(values.size) if weights is None else weights.astype(np.float64)
        share = np.where(np.repeat(sums(share) == 0, sizes), 1.0, share)  # weightless cells have a plain mean
        return (sums(share * values) / sums(share)).astype(values.dtype), total
    if how in ("min", "max"):
        group = np.repeat(np.arange(starts.size), sizes)
        chosen = np.lexsort((values if how == "min" else -values, group))[starts]
    else:
        chosen = starts if how == "first" else starts + sizes - 1
    return values[chosen], None if weights is None else weights[chosen]
