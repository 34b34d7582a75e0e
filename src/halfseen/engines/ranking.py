"""The best columns of rows, by scores that are made tile by tile: no matrix of all rows by all columns."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np

from halfseen.arrays import Array
from halfseen.engines import blas
from halfseen.engines.threads import Threads

#: Scores that a thread holds at a time: 4 MB in double precision.
SCORES_PER_TILE = 1 << 19
#: Columns of a tile at most, so that many rows share it: with few, reading the columns' factor would take the time.
COLUMNS_PER_TILE = 1 << 13
#: So few scores, of one row as a rule, are made before BLAS could be held to one thread.
SCORES_OF_A_REQUEST = 1 << 14

#: Columns listed for each row, as in a CSR matrix: pointers, and columns.
Listed = tuple[Array, Array]


class Best(NamedTuple):
    """For each row its best columns and their scores, best first; -1 and NaN where fewer columns remained."""

    columns: Array
    scores: Array


class Scores(Protocol):
    """The scores of rows and columns, made when a tile of them is asked for."""

    @property
    def shape(self) -> tuple[int, int]: ...

    @property
    def dtype(self) -> np.dtype[Any]: ...

    def tile(self, rows: slice, columns: slice) -> Array:
        """Scores in an array of their own, row-major, that may be written to."""
        ...

    def among(self, columns: Array) -> "Scores":
        """The scores of these columns alone."""
        ...


@dataclass(frozen=True)
class Products:
    """x = <W_u, H_i>. A rising function of x ranks as x does, so no model's link is asked for."""

    W: Array
    H: Array

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
class Given:
    """Scores that lie in an array."""

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

    def among(self, columns: Array) -> "Given":
        return Given(self.x[:, columns])


def best_columns(
    scores: Scores,
    n: int,
    hidden: Listed | None = None,
    candidates: Array | None = None,
    n_jobs: int | None = None,
    scores_per_tile: int | None = None,
) -> Best:
    """The n best columns of each row; of equal ones the first. Scores of NaN and -inf are never among them.

    Parameters
    ----------
    scores : `Products` of two factors, `Given` scores, or another maker of tiles.
    n : how many columns a row; if there are fewer candidates, as many as these.
    hidden : columns that a row must not get, listed row by row.
    candidates : the only columns that any row may get, ascending; None: all.
    n_jobs : how many threads. The answer is the same, to the last bit, for any number.
    scores_per_tile : scores that a thread holds at a time; None takes `SCORES_PER_TILE`.
    """
    size = scores.shape[1]
    if candidates is None or candidates.size == size:
        return _best(scores, n, hidden, np.arange(size), n_jobs, scores_per_tile)
    place_of: Array = np.full(size, -1, np.int64)
    place_of[candidates] = np.arange(candidates.size)
    places, found = _best(scores.among(candidates), n, hidden, place_of, n_jobs, scores_per_tile)
    if candidates.size == 0:
        return Best(places, found)
    return Best(np.where(places < 0, -1, candidates[places]), found)


def _best(
    scores: Scores, n: int, hidden: Listed | None, place_of: Array, n_jobs: int | None, scores_per_tile: int | None
) -> Best:
    rows, columns = scores.shape
    size = (rows, min(n, columns))
    best = Best(np.full(size, -1, np.int64), np.full(size, -np.inf, scores.dtype))
    if best.scores.size == 0:
        return best
    width = min(columns, COLUMNS_PER_TILE)
    height = max(1, (scores_per_tile or SCORES_PER_TILE) // width)
    blocks = [slice(top, min(top + height, rows)) for top in range(0, rows, height)]
    work = partial(_rank_rows, scores, width, hidden, place_of, best)
    with _blas_held() if rows * columns > SCORES_OF_A_REQUEST else nullcontext(), Threads(n_jobs) as threads:
        threads.all(work, blocks)
    return best


@contextmanager
def _blas_held() -> Iterator[None]:
    blas.hold()
    try:
        yield
    finally:
        blas.release()


def _rank_rows(scores: Scores, width: int, hidden: Listed | None, place_of: Array, best: Best, rows: slice) -> None:
    """Walk the tiles of some rows, and write their best columns."""
    from halfseen.kernels import top  # numba is loaded when there is work for it

    for first in range(0, scores.shape[1], width):
        x = scores.tile(rows, slice(first, first + width))
        if hidden is not None:
            indptr = hidden[0][rows.start : rows.stop + 1].astype(np.int64)
            top.hide(x, first, indptr, hidden[1][indptr[0] : indptr[-1]], place_of)
        top.keep_best(x, first, best.columns[rows], best.scores[rows])
    best.scores[rows][best.columns[rows] < 0] = np.nan
