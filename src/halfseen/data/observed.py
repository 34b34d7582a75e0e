"""The half-seen matrix: which cells were seen, what was seen there, and what an unseen cell means."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from halfseen.data import cells as seen
from halfseen.data import merging
from halfseen.data.accounts import Account
from halfseen.data.cells import Cells
from halfseen.data.labels import Places, as_labels
from halfseen.errors import DataError, ParameterError

UNSEEN = ("missing", "zero")
ZEROS = ("keep", "drop")


@dataclass(frozen=True)
class ColumnOrder:
    """The same cells in column order: `values[order]` runs down the columns, `rows` are the rows of these cells."""

    indptr: np.ndarray
    rows: np.ndarray
    order: np.ndarray


@dataclass(frozen=True, eq=False, repr=False)
class Observed:
    """The half-seen matrix, its cells in row order (CSR), columns ascending inside each row.

    `values[indptr[i]:indptr[i + 1]]` are the values seen in row i, in the columns `indices[...]`. `weights` says how
    much each cell counts (None: each once). `unseen` says what a cell that is not stored means: "missing" (it may be
    anything) or "zero" (it is 0, with weight 1). `level_names` are the texts that the values 1, 2, ... stand for, where
    values were texts. `account` tells which columns of a frame or a file were taken for what. Make one by `observe` or
    `from_cells`, which check everything; the bare constructor checks nothing.
    """

    indptr: np.ndarray
    """(n + 1,) where the cells of each row begin."""
    indices: np.ndarray
    """The column of each cell."""
    values: np.ndarray
    """What was seen in each cell."""
    shape: tuple[int, int]
    """How many rows and columns there are."""
    weights: np.ndarray | None = None
    """How much each cell counts."""
    unseen: str = "missing"
    """What a cell that is not stored means: "missing" or "zero"."""
    row_labels: np.ndarray | None = None
    """The names of the rows, if they have any."""
    column_labels: np.ndarray | None = None
    """The names of the columns, if they have any."""
    level_names: np.ndarray | None = None
    """The texts that the values 1, 2, ... stand for, if they do."""
    account: Account | None = None
    """Which columns of a frame or a file were taken for what."""

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
        """Build from coordinates, in any order, in time proportional to their number.

        `rows` and `columns` are the positions, from 0, of the cells, `values` what was seen there, `weights` how much
        each counts (None: once), `shape` the numbers of rows and columns, `row_labels` and `column_labels` their names,
        if they have any. `unseen` says what all other cells mean.

        A NaN value is an unseen cell. Under unseen="missing" a cell of weight 0 is left out. Columns, values and
        weights that are in row order already, of the right dtype and all kept are shared with the caller, not copied.

        `zeros` says what happens under unseen="zero" to a cell of value 0 and weight 1, which says to a fit what an
        unseen cell says: "keep" it, because it was seen (and need not be recommended), or "drop" it, where 0 is how
        nothing was written, as in dense arrays. A matrix without any other value is refused, unless `allow_empty`.

        `duplicates` says what happens to a cell given more than once: "error"; "sum", "mean" (weighted by the
        weights), "min", "max", "first" or "last" merge it into one; "keep" keeps every value as a measurement of its
        own. The weight of a merged cell is the sum of its weights for "sum" and "mean", else the one of the value
        chosen.
        """
        cells = Cells(np.asarray(rows), np.asarray(columns), values, weights)
        shape = (int(shape[0]), int(shape[1]))  # NumPy's integers are no JSON
        return cls._of_cells(cells, shape, unseen, (row_labels, column_labels), duplicates, zeros, allow_empty)

    @classmethod
    def _of_cells(
        cls,
        cells: Cells,
        shape: tuple[int, int],
        unseen: str,
        labels: tuple[Any, Any],
        duplicates: str,
        zeros: str,
        allow_empty: bool,
    ) -> Observed:
        """As `from_cells`, from cells that are used up."""
        places = _checked_labels(*labels, shape)
        _check_words(unseen, duplicates, zeros)
        cells.values = seen.as_values(cells.values)
        cells.weights = seen.as_weights(cells.weights, cells.values.dtype)
        seen.check_lengths(cells)
        _place(cells, shape)
        _check_cells(cells, places)
        cells = _said_once(cells, shape, unseen, duplicates, places)
        if zeros == "drop":
            cells = _without_zeros(cells, unseen, duplicates)
        return cls._of_sorted(cells, shape, unseen, places)._refused_if_empty(allow_empty)

    @classmethod
    def _of_sorted(cls, cells: Cells, shape: tuple[int, int], unseen: str, labels: Places) -> Observed:
        dtype = seen.index_dtype(shape, cells.values.size)
        every_row = np.arange(shape[0] + 1, dtype=cells.rows.dtype)
        indptr = np.searchsorted(cells.rows, every_row).astype(dtype)  # bincount would take 8 bytes a cell
        indices = np.ascontiguousarray(cells.columns, dtype=dtype)
        values, weights = map(_contiguous, (cells.values, cells.weights))
        return cls(indptr, indices, values, shape, weights, unseen, *labels)  # type: ignore[arg-type]

    def _refused_if_empty(self, allow_empty: bool) -> Observed:
        seen_at_all = self.values.any() if self.unseen == "zero" else self.nnz
        if not (seen_at_all or allow_empty):
            what = "non-zero value" if self.unseen == "zero" else "cell"
            raise DataError(
                f"At least one {what} must be seen. Found none in {self.shape[0]} rows and {self.shape[1]} columns. "
                "Check that the right file and columns were read."
            )
        return self

    @cached_property
    def columns(self) -> ColumnOrder:
        """The same cells in column order, made once."""
        indptr, order = seen.counting_order(self.indices, self.shape[1])
        rows = self.row_of_cell()[order]
        return ColumnOrder(indptr.astype(self.indptr.dtype, copy=False), rows, order)

    @property
    def nnz(self) -> int:
        """How many cells are seen."""
        return self.values.size

    @property
    def dtype(self) -> np.dtype:
        """float32 or float64."""
        return self.values.dtype

    @cached_property
    def firsts(self) -> np.ndarray | None:
        """1 for the first of the cells at a place, 0 for its repetitions; None if no place was seen twice.

        Only `duplicates="keep"` lets a place be seen more than once. The grid has it once.
        """
        firsts = np.ones(self.nnz, dtype=bool)
        firsts[1:] = self.indices[1:] != self.indices[:-1]
        starts = self.indptr[:-1]
        firsts[starts[starts < self.nnz]] = True
        return None if firsts.all() else firsts.astype(self.dtype)

    @property
    def unseen_places(self) -> int:
        """How many places of the grid were not seen."""
        seen = self.nnz if self.firsts is None else int(self.firsts.sum())
        return self.shape[0] * self.shape[1] - seen

    def seen_per_row(self) -> np.ndarray:
        """How many cells are seen in each row."""
        return np.diff(self.indptr)

    def seen_per_column(self) -> np.ndarray:
        """How many cells are seen in each column."""
        if "columns" in self.__dict__:  # the column order is there: no need to count, which takes 8 bytes a cell
            return np.diff(self.columns.indptr)
        return np.bincount(self.indices, minlength=self.shape[1])

    def row_of_cell(self) -> np.ndarray:
        """The row of each cell, in row order."""
        return np.repeat(np.arange(self.shape[0], dtype=self.indices.dtype), self.seen_per_row())

    def place(self, cell: int) -> str:
        """Where a cell is, in the words of an error sentence: "row 'ann', column 'x'"."""
        row = int(np.searchsorted(self.indptr, cell, side="right")) - 1
        return Places(self.row_labels, self.column_labels).of(row, int(self.indices[cell]))

    def select_rows(self, rows: Any) -> Observed:
        """Some of the rows, by number or mask, in the order asked for."""
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
        """The same rows and columns, and of the cells some, by ascending number or mask."""
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
        """A full array with NaN (or 0, under unseen="zero") at unseen cells; of repeated cells the last."""
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
        extras = [
            name
            for name in ("weights", "row_labels", "column_labels", "level_names")
            if getattr(self, name) is not None
        ]
        told = "".join(f", {name}" for name in extras)
        return (
            f"Observed({self.shape[0]} x {self.shape[1]}, {self.nnz} cells seen ({share:.3g} of all), "
            f"unseen={self.unseen!r}, {self.dtype}{told})"
        )


def _checked_labels(row_labels: Any, column_labels: Any, shape: tuple[int, int]) -> Places:
    return Places(as_labels(row_labels, "row", shape[0]), as_labels(column_labels, "column", shape[1]))


def _check_words(unseen: str, duplicates: str, zeros: str) -> None:
    if unseen not in UNSEEN:
        raise ParameterError(f"unseen must be one of {', '.join(UNSEEN)}. Found {unseen!r}.")
    if zeros not in ZEROS:
        raise ParameterError(f"zeros must be one of {', '.join(ZEROS)}. Found {zeros!r}.")
    merging.check_how(duplicates)


def _place(cells: Cells, shape: tuple[int, int]) -> None:
    dtype = seen.index_dtype(shape, cells.columns.size)
    cells.rows = seen.as_positions(cells.rows, shape[0], "row").astype(dtype, copy=False)
    cells.columns = seen.as_positions(cells.columns, shape[1], "column").astype(dtype, copy=False)


def _check_cells(cells: Cells, labels: Places) -> None:
    def where(cell: int) -> str:
        return labels.of(int(cells.rows[cell]), int(cells.columns[cell]))

    seen.check_values(cells.values, where)
    seen.check_weights(cells.weights, where)


def _said_once(cells: Cells, shape: tuple[int, int], unseen: str, duplicates: str, labels: Places) -> Cells:
    """The cells in row order, the repeated ones merged, those that say nothing left out."""
    keep = seen.speaking(cells.values, cells.weights, unseen)
    cells = seen.in_row_order(cells if keep is None else cells.take(keep), shape)
    return merging.merged(cells, duplicates, labels)


def _without_zeros(cells: Cells, unseen: str, duplicates: str) -> Cells:
    """The cells that say something else than an unseen cell would."""
    keep = seen.differing_from_unseen(cells.values, cells.weights, unseen)
    if keep is not None and duplicates == "keep":
        keep |= ~merging.alone(cells)  # a 0 measured beside other values is no unseen cell
    return cells if keep is None else cells.take(keep)


def _contiguous(array: np.ndarray | None) -> np.ndarray | None:
    return None if array is None else np.ascontiguousarray(array)
