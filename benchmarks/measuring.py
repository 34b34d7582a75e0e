"""How times are taken and shown."""

import tracemalloc
from collections.abc import Callable, Iterable
from time import perf_counter, process_time
from typing import Any, NamedTuple


class Seconds(NamedTuple):
    """By the clock, and those in which a processor worked for this process."""

    clock: float
    cpu: float


def seconds_of(work: Callable[[], Any]) -> Seconds:
    clock, cpu = perf_counter(), process_time()
    work()
    return Seconds(perf_counter() - clock, process_time() - cpu)


def peak_of(work: Callable[[], Any]) -> int:
    """The most bytes held at a time, over those held before."""
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    work()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak - before


def best_of(work: Callable[[], Any], repeats: int = 5) -> float:
    """The shortest of several runs in seconds, after one to warm up: what the machine can do when left alone."""
    work()
    return min(seconds_of(work).clock for _ in range(repeats))


def table(header: Iterable[str], rows: Iterable[Iterable[Any]]) -> list[str]:
    """A Markdown table."""
    header = list(header)
    lines = ["| " + " | ".join(header) + " |", "|" + " --- |" * len(header)]
    return lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
