"""Threads: a pool with ordered results, blocks of rows to share among threads, and BLAS limited to one thread."""

import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cached_property, partial
from threading import Lock
from typing import Any, Self

import numpy as np

from halfseen.arrays import Array

#: The rows of a block, their pointers, and their cells.
Block = tuple[slice, slice, slice]


def row_blocks(indptr: Array, cells: int) -> list[Block]:
    """Consecutive rows with about `cells` cells per block; the blocks depend on the data alone."""
    n = indptr.size - 1
    goals = np.arange(cells, int(indptr[-1]), cells)
    ends = np.unique(np.append(np.searchsorted(indptr, goals), n))
    starts = np.append(0, ends[:-1])
    return [
        (slice(a, b), slice(a, b + 1), slice(int(indptr[a]), int(indptr[b])))
        for a, b in zip(starts.tolist(), ends.tolist(), strict=True)
    ]


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
