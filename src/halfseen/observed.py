"""The partially observed matrix: observed cells, their values, and the meaning of unobserved cells."""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from halfseen.arrays import in_parts
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
    """A matrix of which some cells are observed, in CSR format, columns ascending inside each row.

    `values[indptr[i]:indptr[i + 1]]` are the values of row i, in the columns `indices[...]`. Make one with `observe`
    or `from_cells`, which validate their input; the bare constructor does not.
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
        rows: ArrayLike,
        columns: ArrayLike,
        values: ArrayLike,
        shape: tuple[int, int],
        *,
        weights: ArrayLike | None = None,
        unseen: str = "missing",
        row_labels: Iterable[Any] | None = None,
        column_labels: Iterable[Any] | None = None,
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

        Returns
        -------
        Observed
            The cells, sorted by row and column.
        """
        # validate
        n, m = shape = (int(shape[0]), int(shape[1]))
        places = Places(as_labels(row_labels, "row", n), as_labels(column_labels, "column", m))
        choices = {"unseen": (unseen, UNSEEN), "zeros": (zeros, ZEROS), "duplicates": (duplicates, DUPLICATES)}
        for name, (value, allowed) in choices.items():
            if value not in allowed:
                raise ParameterError(f"must be one of {', '.join(allowed)}.", parameter=name, found=repr(value))
        # row i, column j, value x and weight w of each cell; arrays are freed as soon as they are replaced
        i, j, x, w = np.asarray(rows), np.asarray(columns), as_values(values), None
        if weights is not None:
            with np.errstate(over="ignore"):  # one too large for float32 becomes inf, which is refused below
                w = np.ascontiguousarray(as_values(weights), dtype=x.dtype)
        del rows, columns, values, weights
        lengths = [array.shape for array in (i, j, x, w) if array is not None]
        if any(len(length) != 1 or length != lengths[0] for length in lengths):
            must = "Rows, columns, values and weights must have the same length."
            found = "lengths " + ", ".join(str(length[0] if len(length) == 1 else length) for length in lengths)
            raise DataError(must, found=found, remedy="Give every cell a row, a column and a value.")
        dtype = index_dtype(shape, j.size)
        i = _check_positions(i, n, "row").astype(dtype, copy=False)
        j = _check_positions(j, m, "column").astype(dtype, copy=False)
        if (infinite := np.isinf(x)).any():
            first = int(np.argmax(infinite))
            found, where = str(x[first]), f"at {places.of(int(i[first]), int(j[first]))}"
            remedy, cli = "Replace it by NaN if it is unknown.", "Leave it empty if it is unknown."
            raise DataError("Values must be finite.", found=found, where=where, remedy=remedy, remedy_cli=cli)
        if w is not None and (bad := ~np.isfinite(w) | (w < 0)).any():
            first = int(np.argmax(bad))
            must, where = "Weights of cells must be finite and not negative.", places.of(int(i[first]), int(j[first]))
            remedy = "Use 0 for a cell that should not count."
            raise DataError(must, found=str(w[first]), where=f"at {where}", remedy=remedy)

        # drop cells that carry no information
        keep = np.isnan(x)
        np.logical_not(keep, out=keep)
        if w is not None and unseen == "missing":
            keep &= w > 0
        if not keep.all():
            i, j, x, w = i[keep], j[keep], x[keep], None if w is None else w[keep]
        del infinite, keep

        # sort by row, then column
        if bool(((i[1:] > i[:-1]) | ((i[1:] == i[:-1]) & (j[1:] >= j[:-1]))).all()):
            indptr = np.searchsorted(i, np.arange(n + 1, dtype=i.dtype))  # bincount would take 8 bytes per cell
            del i
        else:
            cells = [i, j, x, w]
            del i, j, x, w  # so that they can be freed on the way
            indptr, j, x, w = _sort_cells(cells, shape)

        # merge duplicates
        first_at = first_at_cell(indptr, j)
        if duplicates != "keep" and not first_at.all():
            starts = np.flatnonzero(first_at)
            if duplicates == "error":
                raise Repeated.of(indptr, j, starts).error(places)
            x, w = _merge(x, w, starts, duplicates)
            j, indptr = j[starts], np.searchsorted(starts, indptr)
            first_at = np.ones(j.size, dtype=bool)

        # drop zeros that mean the same as an unobserved cell
        if zeros == "drop" and unseen == "zero":
            keep = x != 0
            if w is not None:
                keep |= w != 1
            keep |= ~(first_at & np.append(first_at[1:], True))  # a 0 measured beside other values is no unseen cell
            if not keep.all():
                j, x, indptr = j[keep], x[keep], np.append(0, np.cumsum(keep))[indptr]
                w = None if w is None else w[keep]
        del first_at

        dtype = index_dtype(shape, x.size)
        indptr, j, x = indptr.astype(dtype, copy=False), np.ascontiguousarray(j, dtype=dtype), np.ascontiguousarray(x)
        observed = cls(indptr, j, x, shape, None if w is None else np.ascontiguousarray(w), unseen, *places)
        if not allow_empty and not (observed.values.any() if unseen == "zero" else observed.nnz):
            what = "non-zero value" if unseen == "zero" else "cell"
            must, remedy = f"At least one {what} must be observed.", "Check that the right file and columns were read."
            raise DataError(must, found="none", where=f"in {n} rows and {m} columns", remedy=remedy)
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
        done, last = 0, self.indices[:0]
        for (part,) in in_parts(self.indices):
            part = np.concatenate([last, part])  # from the last one before
            repeats = np.flatnonzero(part[1:] == part[:-1]) + 1 + done - last.size
            if (self.indptr[np.searchsorted(self.indptr, repeats)] != repeats).any():  # it does not begin a row
                return first_at_cell(self.indptr, self.indices).astype(self.dtype)
            done, last = done + part.size - last.size, part[-1:]
        return None

    @property
    def cell_of_value(self) -> np.ndarray | None:
        """Number of the cell of each value, in row order; None if no cell has several."""
        first = self.is_first_at_cell
        return None if first is None else np.cumsum(first, dtype=np.int64) - 1

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
        counts = np.zeros(self.shape[1], np.int64)
        for (part,) in in_parts(self.indices):
            counts += np.bincount(part, minlength=self.shape[1])
        return counts

    def row_of_cell(self) -> np.ndarray:
        """Row of each cell, in row order."""
        return np.repeat(np.arange(self.shape[0], dtype=self.indices.dtype), self.seen_per_row())

    def place(self, cell: int) -> str:
        """Where a cell is, for an error message: "row 'ann', column 'x'".

        Parameters
        ----------
        cell : int
            Position of the cell, in row order.

        Returns
        -------
        str
        """
        row = int(np.searchsorted(self.indptr, cell, side="right")) - 1
        return Places(self.row_labels, self.column_labels).of(row, int(self.indices[cell]))

    def select_rows(self, rows: ArrayLike | slice) -> Observed:
        """Select rows.

        Parameters
        ----------
        rows : array-like or slice
            Positions, in the order wanted, or a mask; of a range of rows nothing is copied.

        Returns
        -------
        Observed
        """
        if isinstance(rows, slice):
            first, stop = rows.start, rows.stop
            cells = slice(*self.indptr[[first, stop]].tolist())
            return replace(
                self,
                indptr=self.indptr[first : stop + 1] - self.indptr[first],
                indices=self.indices[cells],
                values=self.values[cells],
                shape=(stop - first, self.shape[1]),
                weights=None if self.weights is None else self.weights[cells],
                row_labels=None if self.row_labels is None else self.row_labels[rows],
            )
        chosen = np.asarray(rows)
        chosen = np.arange(self.shape[0])[chosen if chosen.size else chosen.astype(np.intp)]
        by_row = sparse.csr_array((np.arange(self.nnz), self.indices, self.indptr), shape=self.shape)[chosen]
        return replace(
            self,
            indptr=by_row.indptr.astype(self.indptr.dtype, copy=False),
            indices=self.indices[by_row.data],
            values=self.values[by_row.data],
            shape=(chosen.size, self.shape[1]),
            weights=None if self.weights is None else self.weights[by_row.data],
            row_labels=None if self.row_labels is None else self.row_labels[chosen],
        )

    def select_columns(self, columns: ArrayLike) -> Observed:
        """Select columns.

        Parameters
        ----------
        columns : array-like
            Ascending positions, or a mask.

        Returns
        -------
        Observed
        """
        chosen = np.asarray(columns)
        chosen = np.arange(self.shape[1])[chosen if chosen.size else chosen.astype(np.intp)]
        place = np.full(self.shape[1], -1, self.indices.dtype)
        place[chosen] = np.arange(chosen.size)
        cells = self.select_cells(place[self.indices] >= 0)
        labels = None if self.column_labels is None else self.column_labels[chosen]
        shape = self.shape[0], chosen.size
        return replace(cells, indices=place[cells.indices], shape=shape, column_labels=labels)

    def select_cells(self, cells: ArrayLike) -> Observed:
        """Select cells; all rows and columns stay.

        Parameters
        ----------
        cells : array-like
            Ascending positions, or a mask.

        Returns
        -------
        Observed
        """
        chosen = np.asarray(cells)
        chosen = np.flatnonzero(chosen) if chosen.dtype == bool else chosen
        return replace(
            self,
            indptr=np.searchsorted(chosen, self.indptr).astype(self.indptr.dtype),
            indices=self.indices[chosen],
            values=self.values[chosen],
            weights=None if self.weights is None else self.weights[chosen],
        )

    def to_dense(self) -> np.ndarray:
        """Return a full array, NaN (or 0, under unseen="zero") at unobserved cells, the last value of repeated ones."""
        dense = np.full(self.shape, 0 if self.unseen == "zero" else np.nan, dtype=self.dtype)
        dense[self.row_of_cell(), self.indices] = self.values
        return dense

    def fingerprint(self) -> str:
        """Hash of the cells, their values, weights and meaning."""
        digest = hashlib.blake2b(f"{self.shape} {self.unseen} {self.dtype}".encode(), digest_size=16)
        for array in (self.indptr, self.indices, self.values, self.weights):
            for (part,) in () if array is None else in_parts(array):
                digest.update(np.ascontiguousarray(part).data)
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

    Labels are matched with labels. Where only the data have labels, these are positions; where they have none, the data
    must have as many rows (or columns) as the model.
    """
    positions: list[np.ndarray | None] = []
    sides = ("row", observed.row_labels, labels.row_labels), ("column", observed.column_labels, labels.column_labels)
    for (side, given, known), size, count in zip(sides, observed.shape, shape, strict=True):
        if given is None and size != count:
            must = f"must have the {count} {side}s of the model, or labels."
            remedy = f"Pass all {side}s in their order, or a frame with labels."
            raise DataError(must, parameter=name, found=f"{size} {side}s without labels", remedy=remedy)
        known = np.arange(count) if known is None else known
        same = given is None or given is known or np.array_equal(given, known)
        positions.append(None if same or given is None else Index(known).find(given))
    rows, columns = positions
    if rows is None and columns is None and (duplicates == "keep" or observed.is_first_at_cell is None):
        return observed
    row_of_cell, column_of_cell = observed.row_of_cell(), observed.indices
    row_of_cell = row_of_cell if rows is None else rows[row_of_cell]
    column_of_cell = column_of_cell if columns is None else columns[column_of_cell]
    known_cells = (row_of_cell >= 0) & (column_of_cell >= 0)
    if not known_cells.all():
        unknown = np.flatnonzero(~known_cells)
        must = f"The cells of {name} should be in rows and columns that the model knows."
        found = f"{unknown.size} of {observed.nnz} that are not, the first"
        where = f"at {observed.place(int(unknown[0]))}"
        warning = DataWarning(must, found=found, where=where, remedy="They were left out.")
        warnings.warn(warning, stacklevel=4)  # where the user called a metric, or a method of the model
    return Observed.from_cells(
        row_of_cell[known_cells], column_of_cell[known_cells], observed.values[known_cells], shape,
        weights=None if observed.weights is None else observed.weights[known_cells], unseen=observed.unseen,
        row_labels=labels.row_labels, column_labels=labels.column_labels, duplicates=duplicates, allow_empty=True,
    )  # fmt: skip


def as_values(values: ArrayLike) -> np.ndarray:
    """Values as a contiguous float array: float32 stays float32, everything else becomes float64."""
    array = np.asarray(values)
    if array.dtype.kind == "c":
        remedy = "Pass real and imaginary part alone."
        raise DataError("Complex data not supported.", found=f"dtype {array.dtype}", remedy=remedy)
    try:
        return np.ascontiguousarray(array, dtype=np.float32 if array.dtype == np.float32 else np.float64)
    except ValueError as error:
        remedy = "Convert them to numbers."
        raise DataError("Values must be numbers.", found=f"otherwise: {error}", remedy=remedy) from None


def _check_positions(positions: np.ndarray, size: int, side: str) -> np.ndarray:
    if positions.size == 0:
        return positions.astype(np.int32)
    if positions.dtype.kind not in "iu":
        must = f"Positions of {side}s must be integers."
        raise DataError(must, found=f"dtype {positions.dtype}", remedy=f"Number the {side}s.")
    if positions.min() < 0 or positions.max() >= size:
        first = int(np.argmax((positions < 0) | (positions >= size)))
        must, remedy = f"Positions of {side}s must lie in 0..{size - 1}.", "Correct it, or pass a larger shape."
        raise DataError(must, found=str(positions[first]), where=f"at position {first}", remedy=remedy)
    return positions


def stable_order(codes: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Stable counting sort of codes in 0..size-1: (start of each code, order that sorts them)."""
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
    """Run work(first, last, ...) in threads, on ranges of codes with about as many cells each."""
    n_threads = min(os.cpu_count() or 1, 4) if starts[-1] > LARGE else 1
    if n_threads == 1:
        work(0, starts.size - 1, *arguments)
        return
    cuts = np.searchsorted(starts, np.linspace(0, starts[-1], n_threads + 1)[1:-1])
    cuts = np.clip(cuts, 0, starts.size - 1)
    with ThreadPoolExecutor(n_threads) as pool:
        ranges = zip([0, *cuts], [*cuts, starts.size - 1], strict=True)
        list(pool.map(lambda ends: work(*ends, *arguments), ranges))


def first_at_cell(indptr: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Mask of the sorted cells that are the first at their (row, column)."""
    first = np.ones(columns.size, dtype=bool)
    first[1:] = columns[1:] != columns[:-1]
    starts = indptr[:-1]
    first[starts[starts < columns.size]] = True
    return first


class Repeated(NamedTuple):
    """Cells given more than once: their number, and the row, the column and the number of values of the first."""

    n_cells: int
    row: int
    column: int
    n_values: int

    @classmethod
    def of(cls, indptr: np.ndarray, columns: np.ndarray, starts: np.ndarray) -> Repeated:
        """Of sorted cells, those of a place beginning at `starts`."""
        counts = np.diff(np.append(starts, columns.size))
        repeated = np.flatnonzero(counts > 1)
        start = starts[repeated[0]]
        row = int(np.searchsorted(indptr, start, side="right")) - 1
        return cls(repeated.size, row, int(columns[start]), int(counts[repeated[0]]))

    def error(self, places: Places) -> DataError:
        """The error for data in which cells must be different."""
        where = places.of(self.row, self.column)
        where = f"for {where} ({'1 cell is' if self.n_cells == 1 else f'{self.n_cells} cells are'} repeated)"
        must, found = "Every cell may appear once.", f"{self.n_values} values"
        advice = 'Say how to merge them: {}, or "sum", "min", "max", "first", "last", "keep".'
        remedy, cli = advice.format('`observe(X, duplicates="mean")`'), advice.format('`duplicates="mean"`')
        return DataError(must, found=found, where=where, remedy=remedy, remedy_cli=cli, parameter="duplicates")


def _merge(
    values: np.ndarray, weights: np.ndarray | None, starts: np.ndarray, method: str
) -> tuple[np.ndarray, np.ndarray | None]:
    """One value and weight for each group of sorted cells, which begin at `starts`."""

    def sums(array: np.ndarray) -> np.ndarray:
        return np.add.reduceat(array, starts, dtype=np.float64)

    sizes = np.diff(np.append(starts, values.size))
    if method in ("sum", "mean"):
        total = None if weights is None else sums(weights).astype(weights.dtype)
        if method == "sum":
            return sums(values).astype(values.dtype), total
        share = np.ones(values.size) if weights is None else weights.astype(np.float64)
        share = np.where(np.repeat(sums(share) == 0, sizes), 1.0, share)  # weightless cells have a plain mean
        return (sums(share * values) / sums(share)).astype(values.dtype), total
    if method in ("min", "max"):
        group = np.repeat(np.arange(starts.size), sizes)
        chosen = np.lexsort((values if method == "min" else -values, group))[starts]
    else:
        chosen = starts if method == "first" else starts + sizes - 1
    return values[chosen], None if weights is None else weights[chosen]
