"""Top-k: the best columns of each row, from scores computed tile by tile, never as a matrix of all rows and columns."""

import sys
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from halfseen import validation
from halfseen.arrays import Array
from halfseen.engines import RULES, open_engine
from halfseen.engines.base import Best, ColumnLists
from halfseen.engines.threads import Threads, one_blas_thread
from halfseen.observed import first_at_cell

#: Scores that a thread holds at a time: 4 MB in double precision.
SCORES_PER_TILE = 1 << 19
#: Largest number of columns per tile, so that many rows share it: with few, reading the columns' factor takes the time.
COLUMNS_PER_TILE = 1 << 13
#: Up to this many scores (of one row as a rule) are computed faster than BLAS could be limited to one thread.
SCORES_OF_A_REQUEST = 1 << 14
#: From so many columns on, a list for one row is found by way of a `Sketch`.
COLUMNS_FOR_A_SKETCH = 1 << 15
#: Up to this many scores are sorted sooner than compiled code is loaded for the first time.
SCORES_WITHOUT_KERNELS = 1 << 22


class Scores(Protocol):
    """A matrix of scores whose tiles are computed on demand."""

    @property
    def shape(self) -> tuple[int, int]: ...

    @property
    def dtype(self) -> np.dtype[Any]: ...

    def tile(self, rows: slice, columns: slice) -> Array:
        """A new row-major array of scores, which may be overwritten."""
        ...

    def among(self, columns: Array) -> "Scores":
        """The scores of these columns alone."""
        ...


class Sketch:
    """A factor with a byte per number, and by how much its products may be off.

    Each row is h = s q + e with whole numbers q from -127 to 127, so that <w, h> differs from s <w, q> by at most
    |w| |e|, and by rounding in single precision.

    Parameters
    ----------
    H : ndarray of shape (n_columns, k)
        The factor.
    """

    def __init__(self, H: Array) -> None:
        m, k = H.shape
        self.numbers = np.empty((m, k), np.int8)
        self.scale, self.error = np.empty(m, np.float32), np.empty(m, np.float32)
        for top in range(0, m, COLUMNS_PER_TILE):
            part = slice(top, top + COLUMNS_PER_TILE)
            h = H[part].astype(np.float64)
            scale = np.minimum(np.abs(h).max(axis=1, initial=0.0) / 127, np.finfo(np.float32).max).astype(np.float32)
            self.numbers[part] = np.rint(h / np.where(scale > 0, scale, 1)[:, None]).clip(-127, 127)
            rest = h - scale[:, None].astype(np.float64) * self.numbers[part]
            rounding = 2.0**-21 * (k + 8) * (np.linalg.norm(h, axis=1) + np.linalg.norm(rest, axis=1))
            with np.errstate(over="ignore"):
                self.error[part] = np.linalg.norm(rest, axis=1) * (1 + 2.0**-20) + rounding
            self.scale[part] = scale

    def bounds(self, w: Array) -> tuple[Array, Array]:
        """Lower and upper bounds of <w, h> for every row h."""
        from halfseen.kernels import partial_sort

        x = np.empty(self.scale.size, np.float32)
        partial_sort.sketched_products(w.astype(np.float32), self.numbers, self.scale, x)
        error = self.error * np.float32(np.linalg.norm(w) * (1 + 2.0**-20))
        low, high = x - error, x + error
        low[np.isnan(low)], high[np.isnan(high)] = -np.inf, np.inf  # beyond single precision nothing is known
        return low, high


@dataclass(frozen=True)
class Products:
    """x = W_u @ H_i. An increasing function of x ranks as x does, so the model's link is not needed.

    `sketch` makes, or has, a `Sketch` of H, for lists of single rows.
    """

    W: Array
    H: Array
    sketch: Callable[[], Sketch] | None = None

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.W), len(self.H)

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.result_type(self.W, self.H)

    def tile(self, rows: slice, columns: slice) -> Array:
        x: Array = self.W[rows] @ self.H[columns].T
        return x

    def among(self, columns: Array) -> "Products":
        return Products(self.W, self.H[columns])


@dataclass(frozen=True)
class DenseScores:
    """Scores given as an array."""

    x: Array

    @property
    def shape(self) -> tuple[int, int]:
        n, m = self.x.shape
        return n, m

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.x.dtype

    def tile(self, rows: slice, columns: slice) -> Array:
        return np.array(self.x[rows, columns], order="C")

    def among(self, columns: Array) -> "DenseScores":
        return DenseScores(self.x[:, columns])


@dataclass(frozen=True)
class Chosen:
    """Some columns of scores that are cheaper to compute for all columns than for some."""

    all: Scores
    columns: Array

    @property
    def shape(self) -> tuple[int, int]:
        return self.all.shape[0], self.columns.size

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.all.dtype

    def tile(self, rows: slice, columns: slice) -> Array:
        n, m = self.all.shape
        chosen = self.columns[columns]
        top, bottom = rows.start, min(rows.stop, n)
        x = np.empty((bottom - top, chosen.size), self.dtype)
        width = min(m, COLUMNS_PER_TILE)
        height = max(1, SCORES_PER_TILE // width)
        for first in range(0, m, width):
            here = (chosen >= first) & (chosen < first + width)
            if here.any():
                for row in range(top, bottom, height):
                    part = slice(row, min(row + height, bottom))
                    tile = self.all.tile(part, slice(first, min(first + width, m)))
                    x[row - top : part.stop - top, here] = tile[:, chosen[here] - first]
        return x

    def among(self, columns: Array) -> "Chosen":
        return Chosen(self.all, self.columns[columns])


class Cosines(Products):
    """Cosines between some vectors, W, and all, H, each scaled to length 1; 0 for a vector of length 0."""

    @classmethod
    def between(cls, vectors: Array, positions: Array) -> "Cosines":
        """Those of the vectors at these positions with all."""
        lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
        unit = vectors / np.where(lengths > 0, lengths, 1)[:, None]
        return cls(unit[positions], unit)

    def of(self, positions: Array) -> "Cosines":
        """Those of others."""
        return Cosines(self.H[positions], self.H)


def best_columns(
    scores: Scores,
    n: int,
    hidden: ColumnLists | None = None,
    candidates: Array | None = None,
    n_jobs: int | None = None,
    scores_per_tile: int | None = None,
    engine: str = "cpu",
) -> Best:
    """The n best columns of each row; of equal ones the first. Scores of NaN and -inf are never among them.

    Parameters
    ----------
    scores : Scores
        `Products` of two factors, `DenseScores`, or another object that computes tiles.
    n : int
        Columns per row; if there are fewer candidates, as many as these.
    hidden : pair of ndarray, default=None
        Columns that must not be returned for a row, listed row by row.
    candidates : ndarray of int, default=None
        The only columns that may be returned for any row, ascending. None: all.
    n_jobs : int, default=None
        Number of threads. The result is the same, to the last bit, for any number.
    scores_per_tile : int, default=None
        Scores that a thread holds at a time. None: `SCORES_PER_TILE`.
    engine : {"cpu", "cuda"}, default="cpu"
        Where to compute `Products`; one that does not offer "top_k" leaves it to the processors. Other scores are
        ranked where they are.

    Returns
    -------
    Best
        Columns and scores of shape (rows, n).

    Raises
    ------
    EngineError
        If the engine cannot run here.
    """
    validation.check_parameters({"engine": engine, "n_jobs": n_jobs}, RULES)
    if isinstance(scores, Products) and scores.sketch is not None and engine == "cpu" and is_worth_a_sketch(scores):
        return best_of_one(scores, scores.sketch(), n, hidden, candidates)
    position_of = np.arange(scores.shape[1])
    if candidates is not None and candidates.size != scores.shape[1]:
        position_of = np.full(scores.shape[1], -1, np.int64)
        position_of[candidates] = np.arange(candidates.size)
        scores = scores.among(candidates)
    else:
        candidates = None
    if isinstance(scores, Products) and engine != "cpu" and "top_k" in (opened := open_engine(engine, n_jobs)).offers:
        if hidden is not None and candidates is not None:
            positions = position_of[hidden[1]]
            is_candidate = positions >= 0
            hidden = np.append(0, np.cumsum(is_candidate))[hidden[0]], positions[is_candidate]
        W, H = (factor.astype(scores.dtype, copy=False) for factor in (scores.W, scores.H))
        with opened:
            best = opened.top_k(W, H, n, hidden)
    else:
        best = rank_tiles(scores, n, hidden, position_of, n_jobs, scores_per_tile or SCORES_PER_TILE)
    if candidates is None:
        return best
    return Best(np.where(best.columns < 0, -1, candidates[best.columns]), best.scores)


def count_above(
    scores: Scores,
    wanted: ColumnLists,
    hidden: ColumnLists | None = None,
    n_jobs: int | None = None,
    scores_per_tile: int = SCORES_PER_TILE,
) -> tuple[Array, Array]:
    """How many columns score higher than each wanted one, and how many others exactly as high.

    A column without a score, NaN or -inf, is below all that have one, and equal to the others without.

    Parameters
    ----------
    scores : Scores
        As for `best_columns`.
    wanted : pair of ndarray
        Columns in question, listed row by row, none of them hidden.
    hidden : pair of ndarray, default=None
        Columns that do not count for a row, listed row by row in ascending order.
    n_jobs : int, default=None
        Number of threads. The result is the same for any number.
    scores_per_tile : int
        Scores that a thread holds at a time.

    Returns
    -------
    above, equal : ndarray of int
        An entry for each wanted column.
    """
    (n, m), (indptr, columns) = scores.shape, wanted
    own = np.empty(columns.size, scores.dtype)
    above, equal = np.zeros(columns.size, np.int64), np.zeros(columns.size, np.int64)
    position_of = np.arange(m)
    width = min(m, COLUMNS_PER_TILE)
    height = max(1, scores_per_tile // max(width, 1))

    def count_rows(part: slice) -> None:
        """Count in the tiles of some rows; with several, after a first pass that looks the scores in question up."""
        from halfseen.kernels import partial_sort

        starts = indptr[part.start : part.stop + 1].astype(np.int64)
        cells = slice(starts[0], starts[-1])
        rows, x = np.repeat(np.arange(starts.size - 1), np.diff(starts)), np.empty((0, 0))
        for first in range(0, m, width):
            x = scores.tile(part, slice(first, first + width))
            here = np.flatnonzero((columns[cells] >= first) & (columns[cells] < first + width))
            own[cells][here] = x[rows[here], columns[cells][here] - first]
        own[cells][np.isnan(own[cells])] = -np.inf
        for first in range(0, m, width):
            x = scores.tile(part, slice(first, first + width)) if width < m else x
            if hidden is not None:
                listed = hidden[0][part.start : part.stop + 1].astype(np.int64)
                partial_sort.mask_columns(x, first, listed, hidden[1][listed[0] : listed[-1]], position_of)
            partial_sort.count_above(x, starts, own[cells], above[cells], equal[cells])

    blocks = [slice(top, min(top + height, n)) for top in range(0, n, height)]
    with one_blas_thread(), Threads(n_jobs) as threads:
        threads.all(count_rows, blocks)
    # hidden columns have been given -inf: where that is the score in question, all that are not above are equal
    n_candidates = np.repeat(np.full(n, m) - count_hidden(hidden, n), np.diff(indptr))
    return above, np.where(own == -np.inf, n_candidates - above, equal) - 1


def count_hidden(hidden: ColumnLists | None, n: int) -> Array:
    """Number of different columns hidden in each of n rows, listed in ascending order."""
    if hidden is None:
        return np.zeros(n, np.int64)
    counts: Array = np.diff(np.append(0, np.cumsum(first_at_cell(*hidden)))[hidden[0]])
    return counts


def rank_tiles(
    scores: Scores, n: int, hidden: ColumnLists | None, position_of: Array, n_jobs: int | None, scores_per_tile: int
) -> Best:
    """`best_columns` on the processors, tile by tile; `position_of` are the positions of hidden columns in `scores`."""
    rows, columns = scores.shape
    size = (rows, min(n, columns))
    best = Best(np.full(size, -1, np.int64), np.full(size, -np.inf, scores.dtype))
    if best.scores.size == 0:
        return best
    width = min(columns, COLUMNS_PER_TILE)
    height = max(1, scores_per_tile // width)
    is_small = rows * columns <= SCORES_WITHOUT_KERNELS and "numba" not in sys.modules

    def rank_rows(part: slice) -> None:
        """Process the tiles of some rows, and write their best columns."""
        if is_small:
            rank_few(scores, part, width, hidden, position_of, best)
            return
        from halfseen.kernels import partial_sort  # numba is loaded when there is work for it

        for first in range(0, columns, width):
            x = scores.tile(part, slice(first, first + width))
            if hidden is not None:
                indptr = hidden[0][part.start : part.stop + 1].astype(np.int64)
                partial_sort.mask_columns(x, first, indptr, hidden[1][indptr[0] : indptr[-1]], position_of)
            partial_sort.update_topk(x, first, best.columns[part], best.scores[part])
        best.scores[part][best.columns[part] < 0] = np.nan

    blocks = [slice(top, min(top + height, rows)) for top in range(0, rows, height)]
    with one_blas_thread() if rows * columns > SCORES_OF_A_REQUEST else nullcontext(), Threads(n_jobs) as threads:
        threads.all(rank_rows, blocks)
    return best


def is_worth_a_sketch(scores: Products) -> bool:
    """Whether the scores are those of one row among many columns, in a process that has compiled code at hand."""
    rows, columns = scores.shape
    is_large = rows == 1 and columns >= COLUMNS_FOR_A_SKETCH and "numba" in sys.modules
    return is_large and bool(np.isfinite(scores.W.astype(np.float32)).all())


def best_of_one(scores: Products, sketch: Sketch, n: int, hidden: ColumnLists | None, candidates: Array | None) -> Best:
    """`best_columns` of one row: exact scores of those columns alone that may be among the best, by their bounds."""
    m = scores.shape[1]
    n = min(n, m if candidates is None else candidates.size)
    low, high = sketch.bounds(scores.W[0])
    is_out = np.zeros(m, bool) if candidates is None else np.ones(m, bool)
    if candidates is not None:
        is_out[candidates] = False
    if hidden is not None:
        is_out[hidden[1][hidden[0][0] : hidden[0][1]]] = True
    low[is_out] = high[is_out] = -np.inf
    best = Best(np.full((1, n), -1, np.int64), np.full((1, n), np.nan, scores.dtype))
    if n:
        least = np.partition(low, m - n)[m - n]  # n columns have at least this
        kept = np.flatnonzero((high >= least) & ~is_out)
        x = np.einsum("ik,k->i", scores.H[kept], scores.W[0]).astype(scores.dtype, copy=False)
        order = np.argsort(-x, kind="stable")[:n]
        best.columns[0, : order.size], best.scores[0, : order.size] = kept[order], x[order]
    return best


def rank_few(
    scores: Scores, part: slice, width: int, hidden: ColumnLists | None, position_of: Array, best: Best
) -> None:
    """Write the best columns of some rows by NumPy, from the same tiles and with the same ties as the compiled code."""
    columns, n = scores.shape[1], best.columns.shape[1]
    x = np.empty((part.stop - part.start, columns), scores.dtype)
    for first in range(0, columns, width):
        x[:, first : first + width] = scores.tile(part, slice(first, first + width))
    if hidden is not None:
        ends = hidden[0][part.start : part.stop + 1]
        places = position_of[hidden[1][ends[0] : ends[-1]]]
        rows = np.repeat(np.arange(len(x)), np.diff(ends))
        x[rows[places >= 0], places[places >= 0]] = -np.inf
    x[np.isnan(x)] = -np.inf
    for u, row in enumerate(x, part.start):
        least = np.partition(row, columns - n)[columns - n]  # the n-th largest
        above = np.flatnonzero(row > least)
        level = np.flatnonzero(row == least)[: n - above.size] if least > -np.inf else above[:0]
        kept = np.sort(np.concatenate([above, level]))
        kept = kept[np.argsort(-row[kept], kind="stable")]
        best.columns[u, : kept.size], best.scores[u, : kept.size] = kept, row[kept]
    best.scores[part][best.columns[part] < 0] = np.nan
