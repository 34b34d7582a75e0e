"""Work handed out to threads, its results in the order of its parts."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, partial
from typing import Any, Self

import numpy as np


def count_of(n_jobs: int | None) -> int:
    """How many threads `n_jobs` asks for: all processors for None and -1, all but one for -2 ..."""
    import joblib

    if n_jobs is None:
        return int(joblib.cpu_count())
    return int(n_jobs) if n_jobs > 0 else max(1, int(joblib.cpu_count()) + 1 + int(n_jobs))


class Threads:
    """As many threads as `n_jobs` asks for, to be entered with `with`. They start with work that has several parts."""

    def __init__(self, n_jobs: int | None) -> None:
        self._n_jobs = n_jobs

    @cached_property
    def count(self) -> int:
        """How many there are."""
        return count_of(self._n_jobs)

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
            return [quietly(work, part) for part in parts]
        return list(self._pool.map(partial(quietly, work), parts))


def quietly(work: Callable[[Any], Any], part: Any) -> Any:
    """Numbers that grow beyond all bounds end a run with a status, not with a warning from some thread."""
    with np.errstate(over="ignore", invalid="ignore"):
        return work(part)
