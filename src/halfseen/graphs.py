"""Item graphs: every column regressed on the others, in closed form; popularity, the baseline of all rankings.

With x_u the history of row u, a row of X, and a weight in B for each pair of columns, the scores of u are

    x_u B,      B = argmin sum_u r_u |x_u - x_u B|^2 + sum_ij l_i B_ij^2,   B_jj = 0      (Steck, EASE, WWW 2019)

which has the closed form  B_ij = -P_ij / P_jj,  P = (X^T R X + L)^-1.  Rows count by r_u, the less the more cells they
have, and columns are held down by l_i, the more the more cells they have.
"""

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy import sparse
from scipy.linalg import lapack

from halfseen.arrays import Array, ArraySpec
from halfseen.engines.threads import Threads, one_blas_thread
from halfseen.engines.topk import SCORES_OF_A_REQUEST, SCORES_PER_TILE, Chosen, Products, Scores, best_columns
from halfseen.errors import DataError, ParameterError
from halfseen.held_out import LENGTH, HeldOut, hold_out, mean_ndcg
from halfseen.labels import Index
from halfseen.observed import Observed
from halfseen.ranking import Ranker, Seen, index_of

#: How values become numbers of X.
VALUES = ("values", "log", "presence")
#: Columns of which all pairs have a weight: 12 bytes a pair, 1.7 GB.
MOST_DENSE_COLUMNS = 12_000
#: Bytes for the lists of neighbours where columns are more, and the longest list.
NEIGHBOUR_BYTES, MOST_NEIGHBOURS = 1 << 30, 1000
#: Neighbours of a column in its regression, where columns are many; and while l2 is sought.
NEIGHBOURS, NEIGHBOURS_SOUGHT = 200, 50
#: Rows whose held-out cells are ranked, at most.
ROWS_RANKED = 1000
#: Columns that a thread works on at a time.
COLUMNS_AT_A_TIME = 64


class Cells(NamedTuple):
    """Rows of X as the cells that are not 0, in CSR order."""

    indptr: Array
    indices: Array
    values: Array

    def rows(self, positions: Array) -> "Cells":
        """The rows at some positions."""
        counts = np.diff(self.indptr)[positions]
        indptr = np.append(0, np.cumsum(counts))
        cells = np.arange(indptr[-1]) - np.repeat(indptr[:-1] - self.indptr[positions], counts)
        return Cells(indptr, self.indices[cells], self.values[cells])


def cells_of(observed: Observed, values: str) -> Cells:
    """Numbers of X: values (of repeated ones the mean), log(1 + value), or 1 for what is above 0; times the weight."""
    if observed.is_first_at_cell is not None:
        observed = Observed.from_cells(
            observed.row_of_cell(), observed.indices, observed.values, observed.shape,
            weights=observed.weights, unseen=observed.unseen, duplicates="mean", allow_empty=True,
        )  # fmt: skip
    x = observed.values
    if values == "log":
        if x.min(initial=0.0) < 0:
            raise DataError(
                "Values must be 0 or more where their logarithms are taken.",
                found=f"{x.min():g}",
                where=f"at {observed.place(int(np.argmin(x)))}",
                remedy='Pass `values="values"` or `values="presence"`.',
            )
        x = np.log1p(x)
    elif values == "presence":
        x = (x > 0).astype(x.dtype)
    return Cells(observed.indptr, observed.indices, x if observed.weights is None else x * observed.weights)


# ---------------------------------------------------------------------------------------------------------------------
# weights of pairs of columns, and scores


class Weights(ABC):
    """B, weights of pairs of columns: a row for each column of a history, a column for each that is scored."""

    shape: tuple[int, int]

    @property
    @abstractmethod
    def matrix(self) -> Any:
        """B, dense or sparse."""

    @abstractmethod
    def at(self, columns: Array, scored: int) -> Array:
        """Weights of cells in these columns in the score of one."""

    @abstractmethod
    def add(self, cells: Cells, first: int, x: Array) -> None:
        """x += the scores of the columns from `first` on, a row for each row of cells.

        Sums go over a row's cells in their order: those of one row are made before numba is loaded, and as it would.
        """


def is_for_kernel(x: Array) -> bool:
    """Whether scores are many, or compiled loops at hand; to load them for one row would take longer than the row."""
    return len(x) > 1 or x.size > SCORES_OF_A_REQUEST or "halfseen.kernels.ridge" in sys.modules


@dataclass(frozen=True, eq=False)
class DenseWeights(Weights):
    """B as an array, a row for each column of a history."""

    array: Array

    state: ClassVar[Mapping[str, Any]] = {"array": ArraySpec("f", ("columns", "columns"))}

    @property
    def shape(self) -> tuple[int, int]:  # type: ignore[override]
        n, m = self.array.shape
        return n, m

    @property
    def matrix(self) -> Array:
        return self.array

    def at(self, columns: Array, scored: int) -> Array:
        weights: Array = self.array[columns, scored]
        return weights

    def add(self, cells: Cells, first: int, x: Array) -> None:
        if is_for_kernel(x):
            from halfseen.kernels.ridge import add_rows

            add_rows(*cells, self.array, first, x)
            return
        for value, j in zip(cells.values, cells.indices, strict=True):
            x[0] += value * self.array[j, first : first + x.shape[1]]


@dataclass(frozen=True, eq=False)
class SparseWeights(Weights):
    """B of which row j has `weights` at `columns`, both from starts[j] to starts[j + 1]."""

    starts: Array
    columns: Array
    weights: Array
    n_columns: int

    state: ClassVar[Mapping[str, Any]] = {
        "starts": ArraySpec("i", ("columns+1",), low=0, sorted=True),
        "columns": ArraySpec("i", ("pairs",), low=0, high="columns"),
        "weights": ArraySpec("f", ("pairs",)),
        "n_columns": int,
    }

    def check_state(self, path: str) -> None:
        """Refuse pointers that do not list all weights."""
        if self.starts[0] != 0 or self.starts[-1] != self.columns.size or self.n_columns != self.starts.size - 1:
            raise ValueError(f"{path}/starts must run from 0 to {self.columns.size}")

    @property
    def shape(self) -> tuple[int, int]:  # type: ignore[override]
        return self.starts.size - 1, self.n_columns

    @property
    def matrix(self) -> sparse.csr_array:
        return sparse.csr_array((self.weights, self.columns, self.starts), shape=self.shape)

    def at(self, columns: Array, scored: int) -> Array:
        weights: Array = self.matrix[columns][:, [scored]].toarray()[:, 0]
        return weights

    def add(self, cells: Cells, first: int, x: Array) -> None:
        if is_for_kernel(x):
            from halfseen.kernels.ridge import add_sparse_rows

            add_sparse_rows(*cells, self.starts, self.columns, self.weights, first, x)
            return
        for value, j in zip(cells.values, cells.indices, strict=True):
            here = slice(self.starts[j], self.starts[j + 1])
            columns = self.columns[here] - first
            inside = (columns >= 0) & (columns < x.shape[1])
            x[0, columns[inside]] += value * self.weights[here][inside]


@dataclass(frozen=True, eq=False)
class GraphScores:
    """x_u B of rows with histories. Every sum goes over a row's cells in their order, however many rows there are."""

    cells: Cells
    weights: Weights

    @property
    def shape(self) -> tuple[int, int]:
        return self.cells.indptr.size - 1, self.weights.shape[1]

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(np.float32)

    def tile(self, rows: slice, columns: slice) -> Array:
        n, m = self.shape
        indptr = self.cells.indptr[rows.start : min(rows.stop, n) + 1]
        here = slice(indptr[0], indptr[-1])
        x = np.zeros((indptr.size - 1, min(columns.stop, m) - columns.start), np.float32)
        values = self.cells.values[here].astype(np.float32, copy=False)
        self.weights.add(Cells(indptr - indptr[0], self.cells.indices[here], values), columns.start, x)
        return x

    def among(self, columns: Array) -> Scores:
        return Chosen(self, columns)


# ---------------------------------------------------------------------------------------------------------------------
# the regressions


@dataclass(frozen=True)
class Ridge:
    """How columns are regressed on one another.

    Parameters
    ----------
    l2_exponent : float
        l_j is in proportion to this power of the column's sum of squares.
    row_exponent : float
        A row counts in proportion to minus this power of the number of its cells.
    width : int or None
        Neighbours per column; None: all columns.
    """

    l2_exponent: float
    row_exponent: float
    width: int | None


class Regression:
    """Regressions of the columns of one X on one another, for several penalties."""

    def __init__(self, cells: Cells, n_columns: int, ridge: Ridge, threads: Threads) -> None:
        self._ridge, self._threads, self.n_columns = ridge, threads, n_columns
        rows = np.repeat(np.arange(cells.indptr.size - 1), np.diff(cells.indptr))
        self._shape = cells.indptr.size - 1, n_columns
        counts = np.bincount(rows, cells.values != 0, self._shape[0])  # a cell of weight 0 is as if it were not there
        mean = counts.mean() if counts.any() else 1.0
        row_weights = (np.maximum(counts, 1) / mean) ** (-ridge.row_exponent / 2)
        self._cells = Cells(cells.indptr, cells.indices, cells.values * row_weights[rows])
        by_column = sparse.csr_array((np.arange(cells.indices.size), *cells[1::-1]), shape=self._shape).tocsc()
        self._by_column = by_column.indptr, by_column.indices, by_column.data
        squares = np.bincount(cells.indices, np.asarray(self._cells.values, np.float64) ** 2, n_columns)
        self.squares = squares
        self.mean_square = float(squares.mean()) or 1.0
        self._gram: Array | None = None
        self._lists: tuple[Array, Array] | None = None

    def penalties(self, l2: float) -> Array:
        """l_j of every column; a column without cells has the mean."""
        squares = np.where(self.squares > 0, self.squares, self.mean_square)
        penalties: Array = l2 * (squares / self.mean_square) ** self._ridge.l2_exponent
        return penalties

    def solve(self, l2: float, dtype: Any = np.float64, width: int | None = None) -> Weights:
        """B of a mean penalty, dense or of `width` weights a column; `dtype` is that of the inversion."""
        if self._ridge.width is None:
            return DenseWeights(self._solve_dense(self.penalties(l2), dtype))
        return self._solve_sparse(self.penalties(l2), width or self._ridge.width)

    def _blocks(self) -> list[tuple[int, int]]:
        m = self.n_columns
        return [(first, min(first + COLUMNS_AT_A_TIME, m)) for first in range(0, m, COLUMNS_AT_A_TIME)]

    def _solve_dense(self, penalties: Array, dtype: Any) -> Array:
        n, m = self._shape
        with one_blas_thread():
            if 2 * n < m:
                return self._solve_by_rows(penalties, dtype)
            if self._gram is None or self._gram.dtype != dtype:
                self._gram = None
                self._gram = self._fill_gram(dtype)
            P, is_last = self._gram, dtype == np.float64
            if is_last:  # in place: there will be no other
                self._gram = None
            else:
                P = P.copy()
            P[np.arange(m), np.arange(m)] += penalties.astype(dtype)
            try:
                invert(P)
            except np.linalg.LinAlgError:
                if dtype == np.float64:
                    raise ParameterError(
                        "must be large enough for the regressions to have one solution.",
                        parameter="l2",
                        found=f"a mean of {penalties.mean():.3g}, with columns of {self.mean_square:.3g} on average",
                        remedy="Use a larger one, or None.",
                    ) from None
                return self._solve_dense(penalties, np.float64)
            return weights_of(P)

    def _fill_gram(self, dtype: Any) -> Array:
        """The upper triangle of X^T R X."""
        from halfseen.kernels.ridge import fill_gram

        G, values = np.zeros((self.n_columns, self.n_columns), dtype), self._cells.values.astype(dtype)
        cells = *self._by_column, self._cells.indptr, self._cells.indices, values
        self._threads.all(lambda block: fill_gram(*block, *cells, G), self._blocks())
        return G

    def _solve_by_rows(self, penalties: Array, dtype: Any) -> Array:
        """The same where rows are few:  P = L^-1 - L^-1 X^T (I + X L^-1 X^T)^-1 X L^-1."""
        m = self.n_columns
        X = sparse.csr_array((self._cells.values.astype(dtype), *self._cells[1::-1]), shape=self._shape)
        scaled = X.toarray() / penalties.astype(dtype)
        inner = np.asarray(X @ scaled.T, np.float64)
        inner[np.arange(len(inner)), np.arange(len(inner))] += 1
        invert(inner)
        solved = inner.astype(dtype) @ scaled
        diagonal = 1 / penalties - np.einsum("uj,uj->j", scaled.astype(np.float64), solved)
        B = np.empty((m, m), np.float32)

        def fill(block: tuple[int, int]) -> None:
            columns = slice(*block)
            B[:, columns] = (scaled.T @ solved[:, columns]) / diagonal[columns]

        self._threads.all(fill, self._blocks())
        B[np.arange(m), np.arange(m)] = 0
        return B

    def _solve_sparse(self, penalties: Array, width: int) -> SparseWeights:
        from halfseen.kernels.ridge import list_neighbours, solve_columns

        m = self.n_columns
        if self._lists is None:
            room = max(width, min(MOST_NEIGHBOURS, NEIGHBOUR_BYTES // (8 * max(m, 1))))
            size = m, max(1, min(room, m - 1))
            lists = self._lists = np.empty(size, np.int32), np.empty(size, np.float32)
            cells = *self._by_column, *self._cells
            self._threads.all(lambda block: list_neighbours(*block, *cells, self.squares, *lists), self._blocks())
        lists, width = self._lists, max(1, min(width, m - 1))
        chosen, weights = np.empty((m, width), np.int32), np.empty((m, width), np.float32)
        given = *lists, self.squares, penalties, width, chosen, weights
        with one_blas_thread():
            self._threads.all(lambda block: solve_columns(*block, *given), self._blocks())
        targets, places = np.nonzero(chosen >= 0)
        triple = weights[targets, places], (chosen[targets, places], targets)
        by_history = sparse.csr_array(triple, shape=(m, m))
        by_history.sort_indices()
        return SparseWeights(by_history.indptr, by_history.indices, by_history.data, m)


def invert(A: Array) -> None:
    """The inverse of a symmetric positive definite matrix, in place; only its upper triangle is read."""
    factorize, inverse = (lapack.spotrf, lapack.spotri) if A.dtype == np.float32 else (lapack.dpotrf, lapack.dpotri)
    columns = A.T  # as LAPACK sees it: the lower triangle, column by column
    _, failed = factorize(columns, lower=1, clean=0, overwrite_a=1)
    if failed == 0:
        _, failed = inverse(columns, lower=1, overwrite_c=1)
    if failed:
        raise np.linalg.LinAlgError("The matrix is not positive definite.")
    for first in range(0, len(A), COLUMNS_AT_A_TIME):  # mirrored block by block
        last = min(first + COLUMNS_AT_A_TIME, len(A))
        A[last:, first:last] = A[first:last, last:].T
        block = A[first:last, first:last]
        block[:] = np.triu(block) + np.triu(block, 1).T


def weights_of(P: Array) -> Array:
    """B_ij = -P_ij / P_jj, and 0 for j = i, in single precision."""
    diagonal = -P.diagonal()
    B = np.empty(P.shape, np.float32)
    for first in range(0, len(P), COLUMNS_AT_A_TIME):
        rows = slice(first, first + COLUMNS_AT_A_TIME)
        np.divide(P[rows], diagonal, out=B[rows], casting="same_kind")
    B[np.arange(len(B)), np.arange(len(B))] = 0
    return B


# ---------------------------------------------------------------------------------------------------------------------
# the best penalty


def best_penalty(score: Callable[[float], float], start: float) -> float:
    """The penalty of the highest score: up or down by factors of 2 from `start`, then the top of a parabola."""
    tried = {start: score(start), 2 * start: score(2 * start)}
    factor = 2.0 if tried[2 * start] > tried[start] else 0.5
    best = max(tried, key=tried.__getitem__)
    for _ in range(12):
        tried[best * factor] = score(best * factor)
        if tried[best * factor] <= tried[best]:
            break
        best *= factor
    below, here, above = (tried.get(one, -np.inf) for one in (best / 2, best, 2 * best))
    curvature = below - 2 * here + above
    if np.isfinite(curvature) and curvature < 0:
        best *= 2.0 ** (0.5 * (below - above) / curvature)
    return best


# ---------------------------------------------------------------------------------------------------------------------
# records


@dataclass(frozen=True, eq=False)
class ItemGraphModel(Ranker):
    """All that an item graph needs to rank.

    Parameters
    ----------
    weights : DenseWeights or SparseWeights
        B.
    values : {"values", "log", "presence"}
        How values became numbers of X.
    l2 : float
        Mean penalty of a column.
    average : ndarray of shape (n_columns,)
        Mean row of X, for rows without a history.
    history : ndarray of shape (n_cells,) or None
        Numbers of X where cells had weights; else they follow from `seen`.
    index, seen, unseen, fingerprint
        See `Ranker`.
    level_names : ndarray or None
        The texts that the values 1, 2, ... stand for.
    """

    weights: Weights
    values: str
    l2: float
    average: Array
    history: Array | None
    index: tuple[Index | None, Index | None]
    seen: Seen
    unseen: str
    fingerprint: str | None = None
    level_names: Array | None = None

    state: ClassVar[Mapping[str, Any]] = {
        "weights": Weights,
        "values": str,
        "l2": float,
        "average": ArraySpec("f", ("columns",)),
        "history": ArraySpec("f", ("cells",), optional=True),
        "index": (Index | None, Index | None),
        "seen": Seen,
        "unseen": str,
        "fingerprint": str | None,
        "level_names": ArraySpec("O", ("names",), optional=True),
    }

    def check_state(self, path: str) -> None:
        """Refuse labels and values that do not fit."""
        check_labels(self, path)
        m = self.shape[1]
        if self.weights.shape != (m, m) or self.average.size != m:
            raise ValueError(f"{path}/weights must be for {m} columns")
        if self.values not in VALUES:
            raise ValueError(f"{path}/values must be one of {', '.join(VALUES)}")

    @property
    def levels_to_read(self) -> Any:
        return None if self.level_names is None else self.level_names.tolist()

    def known_rows(self, positions: Array) -> Cells:
        """Histories of rows of the fit."""
        if self.history is not None:
            return self._filled(Cells(self.seen.indptr, self.seen.indices, self.history).rows(positions))
        return self._filled(cells_of(self.seen.observed(positions, self.unseen), self.values))

    def served_rows(self, observed: Observed, engine: str, n_jobs: int | None, name: str) -> Cells:
        """Histories of new rows."""
        return self._filled(cells_of(observed, self.values))

    def _filled(self, cells: Cells) -> Cells:
        """Histories in single precision, with the average row in the place of those that are empty."""
        indptr, indices, values = cells
        counts, average = np.diff(indptr), np.flatnonzero(self.average)
        is_empty = counts == 0
        values = values.astype(np.float32)
        if not is_empty.any():
            return Cells(indptr, indices, values)
        counts = np.where(is_empty, average.size, counts)
        is_filled = np.repeat(is_empty, counts)
        columns, x = np.empty(is_filled.size, indices.dtype), np.empty(is_filled.size, np.float32)
        columns[~is_filled], x[~is_filled] = indices, values
        n_empty = np.count_nonzero(is_empty)
        columns[is_filled], x[is_filled] = np.tile(average, n_empty), np.tile(self.average[average], n_empty)
        return Cells(np.append(0, np.cumsum(counts)), columns, x)

    def scores(self, rows: Any) -> Scores:
        """x_u B."""
        return GraphScores(rows, self.weights)

    def explain(
        self, observed: Observed, column: int, engine: str = "cpu", n_jobs: int | None = None, name: str = "The model"
    ) -> tuple[float, Array]:
        """Score of a column for a row with this history, and what each of its cells adds to it, value times weight."""
        if observed.nnz < 2 or observed.is_first_at_cell is not None:  # without its only cell, a row is as the average
            return super().explain(observed, column, engine, n_jobs, name)
        cells = cells_of(observed, self.values)
        added = cells.values.astype(np.float64) * self.weights.at(cells.indices, column)
        return float(added.sum()), added

    def similarities(self, positions: Array, side: str) -> Scores:
        """Of columns: rows of B, what a cell in one adds to the scores of the others. Of rows: cosines of histories."""
        if side == "column":
            ones = np.ones(positions.size, np.float32)
            return GraphScores(Cells(np.arange(positions.size + 1), positions, ones), self.weights)
        n = self.shape[0]
        everyone = self.known_rows(np.arange(n))
        X = sparse.csr_array((everyone.values, *everyone[1::-1]), shape=self.shape)
        lengths = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).reshape(-1))
        X = sparse.csr_array(sparse.diags_array(1 / np.where(lengths > 0, lengths, 1)) @ X)
        far = X.T.tocsr()
        far.sort_indices()
        asked = X[positions]
        cells = Cells(asked.indptr, asked.indices, asked.data.astype(np.float32))
        return GraphScores(cells, SparseWeights(far.indptr, far.indices, far.data.astype(np.float32), n))


@dataclass(frozen=True, eq=False)
class PopularityModel(Ranker):
    """Columns in the order of how much they are seen, the same for all rows.

    Parameters
    ----------
    popularity : ndarray of shape (n_columns,)
        Score of each column.
    index, seen, unseen, fingerprint
        See `Ranker`.
    level_names : ndarray or None
        The texts that the values 1, 2, ... stand for.
    """

    popularity: Array
    index: tuple[Index | None, Index | None]
    seen: Seen
    unseen: str
    fingerprint: str | None = None
    level_names: Array | None = None

    state: ClassVar[Mapping[str, Any]] = {
        "popularity": ArraySpec("f", ("columns",)),
        "index": (Index | None, Index | None),
        "seen": Seen,
        "unseen": str,
        "fingerprint": str | None,
        "level_names": ArraySpec("O", ("names",), optional=True),
    }

    def check_state(self, path: str) -> None:
        """Refuse labels and scores that do not fit."""
        check_labels(self, path)
        if self.popularity.size != self.shape[1]:
            raise ValueError(f"{path}/popularity must have {self.shape[1]} scores")

    @property
    def levels_to_read(self) -> Any:
        return None if self.level_names is None else self.level_names.tolist()

    def known_rows(self, positions: Array) -> Array:
        """A factor of ones."""
        return np.ones((positions.size, 1))

    def served_rows(self, observed: Observed, engine: str, n_jobs: int | None, name: str) -> Array:
        """A factor of ones."""
        return np.ones((observed.shape[0], 1))

    def scores(self, rows: Any) -> Scores:
        """The popularity of the columns."""
        return Products(rows, self.popularity[:, None])

    def similarities(self, positions: Array, side: str) -> Scores:
        """Of columns: the popularity of the others. All rows are alike."""
        far = self.popularity if side == "column" else np.ones(self.shape[0])
        return Products(np.ones((positions.size, 1)), far[:, None])


def scores_at(model: Ranker, u: Array, i: Array) -> Array:
    """Scores at pairs of positions of rows and columns, from those of all columns of some rows at a time."""
    x = np.empty(np.broadcast_shapes(u.shape, i.shape), np.float64)
    u, i = (np.broadcast_to(positions, x.shape).reshape(-1) for positions in (u, i))
    rows, place_of = np.unique(u, return_inverse=True)
    m = model.shape[1]
    height = max(1, SCORES_PER_TILE // max(m, 1))
    for top in range(0, rows.size, height):
        here = np.flatnonzero((place_of >= top) & (place_of < top + height))
        some = rows[top : top + height]
        tile = model.scores(model.known_rows(some)).tile(slice(0, some.size), slice(0, m))
        x.reshape(-1)[here] = tile[place_of[here] - top, i[here]]
    return x


def check_labels(model: Ranker, path: str) -> None:
    """Refuse labels and a meaning of unseen cells that do not fit together."""
    for index, size in zip(model.index, model.shape, strict=True):
        if index is not None and len(index) != size:
            raise ValueError(f"{path}/index has {len(index)} labels for {size} rows or columns")
    if model.unseen not in ("missing", "zero"):
        raise ValueError(f"{path} must say what unseen cells are")


# ---------------------------------------------------------------------------------------------------------------------
# fits

#: Mean penalty where the search begins, and where no cells can be held out, in mean sums of squares of the columns.
FIRST_L2 = 6.0
#: Logarithms and presence are tried where the largest value is so many times the median.
WIDE = 10.0


class GraphFit(NamedTuple):
    """A fitted graph, and the mean penalties that were tried on held-out cells, with their NDCG and the time."""

    model: ItemGraphModel
    l2: Array
    ndcg: Array
    seconds: Array


def fit_graph(
    observed: Observed, values: str | None, l2: float | None, ridge: Ridge, random: Any, threads: Threads
) -> GraphFit:
    """Fit an item graph; the values and the penalty that are None are chosen by held-out cells."""
    m = observed.shape[1]
    candidates = [values] if values is not None else value_candidates(observed)
    tried: list[tuple[float, float, float]] = []
    values = candidates[0]
    if l2 is None or len(candidates) > 1:
        for inner, held in hold_out(observed, random):
            held_out = HeldOut.draw(observed.select_cells(held), ROWS_RANKED, random)
            searches = {
                one: search(observed.select_cells(inner), held_out, one, l2, ridge, threads) for one in candidates
            }
            values = max(searches, key=lambda one: searches[one][2])
            l2, tried, _ = searches[values]
    cells = cells_of(observed, values)
    regression = Regression(cells, m, ridge, threads)
    l2 = FIRST_L2 * regression.mean_square if l2 is None else float(l2)
    weights = regression.solve(l2)
    n = observed.shape[0]
    average = np.bincount(cells.indices, cells.values, m) / max(n, 1)
    history = None
    if observed.weights is not None:
        of_value = observed.cell_of_value
        history = (cells.values if of_value is None else (cells.values / np.bincount(of_value))[of_value]).astype(
            np.float32
        )
    model = ItemGraphModel(
        weights, values, l2, average, history, index_of(observed),
        Seen.from_observed(observed), observed.unseen, observed.fingerprint(), observed.level_names,
    )  # fmt: skip
    return GraphFit(model, *np.array(tried).reshape(-1, 3).T)


def value_candidates(observed: Observed) -> list[str]:
    """The values, and where they spread wide, what else they may be in X."""
    values = observed.values[observed.values != 0]
    if values.size and values.min() >= 0 and values.max() > WIDE * np.median(values):
        return ["log", "presence", "values"]
    return ["values"]


def search(
    inner: Observed, held_out: HeldOut, values: str, l2: float | None, ridge: Ridge, threads: Threads
) -> tuple[float, list[tuple[float, float, float]], float]:
    """The mean penalty that ranks held-out cells best; all that were tried, their NDCG and the time; the best NDCG."""
    started = perf_counter()
    tried: list[tuple[float, float, float]] = []
    cells = cells_of(inner, values)
    regression = Regression(cells, inner.shape[1], ridge, threads)
    rows = cells.rows(held_out.rows)
    rows = Cells(*rows[:2], rows.values.astype(np.float32))
    seen = Seen(inner.indptr, inner.indices, inner.shape[1]).in_rows(held_out.rows)

    def score(l2: float) -> float:
        weights = regression.solve(l2, np.float32, NEIGHBOURS_SOUGHT)
        best = best_columns(GraphScores(rows, weights), LENGTH, seen, n_jobs=threads.count)
        ndcg = mean_ndcg(held_out.ndcg(held_out.values_at(best.columns)))
        tried.append((l2, ndcg, perf_counter() - started))
        return ndcg

    if l2 is None:
        l2 = best_penalty(score, FIRST_L2 * regression.mean_square)
    else:
        score(l2)
    return l2, tried, max(ndcg for _, ndcg, _ in tried)
