"""Threads: a pool with ordered results, blocks of rows to share among threads, and BLAS limited to one thread.

Large matrices are cut into shards, ranges of rows with about `CELLS_PER_SHARD` cells. On a cluster each is a task; and
everywhere what is summed over rows is summed in each shard, and the sums of shards are added by one fixed tree: so the
numbers are the same, to the last bit, on one machine and on many.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cached_property, partial, reduce
from threading import Lock
from typing import Any, Self

import numpy as np

from halfseen.arrays import Array

#: The rows of a block, their pointers, and their cells.
Block = tuple[slice, slice, slice]
#: Cells of a shard. The numbers of larger fits depend on it, to the last bits.
CELLS_PER_SHARD = 1 << 20


def row_blocks(indptr: Array, cells: int, rows: slice | None = None) -> list[Block]:
    """Consecutive rows with about `cells` cells per block, of all rows or of some; they depend on the data alone."""
    first, n = (0, indptr.size - 1) if rows is None else (rows.start, rows.stop)
    goals = np.arange(int(indptr[first]) + cells, int(indptr[n]), cells)
    ends = np.unique(np.append(first + np.searchsorted(indptr[first : n + 1], goals), n))
    starts = np.append(first, ends[:-1])
    return blocks_of_rows(indptr, map(slice, starts.tolist(), ends.tolist()))


def blocks_of_rows(indptr: Array, ranges: Iterable[slice]) -> list[Block]:
    """Ranges of rows with their pointers and cells."""
    return [
        (rows, slice(rows.start, rows.stop + 1), slice(*indptr[[rows.start, rows.stop]].tolist())) for rows in ranges
    ]


def shard_blocks(indptr: Array) -> list[Block]:
    """The shards of a matrix."""
    return row_blocks(indptr, CELLS_PER_SHARD)


def tree_sum(parts: Iterable[Array]) -> Array:
    """The sum of arrays in double precision, pairs first, then pairs of pairs: in one order, whoever adds them."""
    sums: list[tuple[int, Array]] = []
    for part in parts:
        level, total = 0, np.asarray(part, np.float64)
        while sums and sums[-1][0] == level:
            level, total = level + 1, sums.pop()[1] + total
        sums.append((level, total))
    total = sums.pop()[1]
    while sums:
        total = sums.pop()[1] + total
    return total


def sum_by_shard(parts: Sequence[Any], counts: Sequence[int]) -> Any:
    """The sum of vectors, the first `counts[0]` of them of the first shard, and so on; None if they are None."""
    if parts[0] is None:
        return None
    ends = np.cumsum(counts).tolist()
    shards = [reduce(np.add, parts[end - count : end]) for end, count in zip(ends, counts, strict=True) if count]
    return shards[0] if len(shards) == 1 else tree_sum(shards)


def thread_count(n_jobs: int | None) -> int:
    """The number of threads for `n_jobs`: all processors for None and -1, all but one for -2 ..."""
    import joblib

    if n_jobs is None:
        return int(joblib.cpu_count())
    return int(n_jobs) if n_jobs > 0 else max(1, int(joblib.cpu_count()) + 1 + int(n_jobs))


class Threads:
    """A pool of `n_jobs` threads, to be entered with `with`. They start with the first work of several parts."""

    def __init__(self, n_jobs: int | None) -> None:
        self._n_jobs = n_jobs

    @cached_property
    def count(self) -> int:
        """The number of threads."""
        return thread_count(self._n_jobs)

    @cached_property
    def _pool(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(self.count, thread_name_prefix="halfseen")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if "_pool" in self.__dict__:
            self._pool.shutdown(wait=True, cancel_futures=True)
            del self._pool

    def all(self, work: Callable[[Any], Any], parts: Iterable[Any]) -> list[Any]:
        """`work` on every part, on all threads; the results in the order of the parts."""
        parts = list(parts)
        if len(parts) == 1 or self.count == 1:
            return [without_overflow_warnings(work, part) for part in parts]
        return list(self._pool.map(partial(without_overflow_warnings, work), parts))


def without_overflow_warnings(work: Callable[[Any], Any], part: Any) -> Any:
    """`work(part)`. Numbers that overflow end a run with a status, not with a warning from some thread."""
    with np.errstate(over="ignore", invalid="ignore"):
        return work(part)


_blas_lock = Lock()
_blas_holders = 0
_blas_limits: Any = None
#: The libraries that were found, and the number of modules then: to look for them takes most of a millisecond.
_blas_found: tuple[int, Any] = (0, None)


def hold_blas() -> None:
    """Limit BLAS to one thread, because its sums depend on their number, until as many calls of `release_blas`.

    The setting is global to the process. Were every engine to restore the value from before it, two fits that overlap
    in different threads would leave BLAS at one thread for good.
    """
    global _blas_holders, _blas_limits, _blas_found
    with _blas_lock:
        if _blas_holders == 0:
            from threadpoolctl import ThreadpoolController

            if _blas_found[0] != len(sys.modules):  # a module may have brought a library
                _blas_found = len(sys.modules), ThreadpoolController()
            _blas_limits = _blas_found[1].limit(limits=1, user_api="blas")
        _blas_holders += 1


def release_blas() -> None:
    """Restore the threads of BLAS if nobody else holds them."""
    global _blas_holders
    with _blas_lock:
        _blas_holders -= 1
        if _blas_holders == 0:
            _blas_limits.restore_original_limits()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread inside the context."""
    hold_blas()
    try:
        yield
    finally:
        release_blas()
