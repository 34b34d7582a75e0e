"""Run times of methods that are compared with each other."""

from collections.abc import Callable, Sequence
from statistics import median
from time import perf_counter
from typing import Any

from halfseen.engines.threads import hold_blas, release_blas


def median_seconds(works: Sequence[Callable[[], Any]], at_least: int = 5, until: float = 0.5) -> list[float]:
    """The median run time of each work, over rounds in which each has its turn once.

    In turns, so that whatever else the machine does for a while slows all of them. A round before those that count
    lets the compiled code be compiled. Rounds go on for `at_least` so many and `until` so many seconds have passed.
    BLAS is held to one thread: on a machine that is not idle, threads of its own made NumPy up to 40 times slower.
    """
    hold_blas()
    try:
        for work in works:
            work()
        rounds: list[list[float]] = []
        started = perf_counter()
        while len(rounds) < at_least or perf_counter() - started < until:
            rounds.append([seconds(work) for work in works])
    finally:
        release_blas()
    return [median(times) for times in zip(*rounds, strict=True)]


def seconds(work: Callable[[], Any]) -> float:
    """How long one run takes."""
    started = perf_counter()
    work()
    return perf_counter() - started
