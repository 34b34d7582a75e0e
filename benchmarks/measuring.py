"""How times are taken and shown."""

from collections.abc import Callable, Iterable
from time import perf_counter
from typing import Any


def best_of(work: Callable[[], Any], repeats: int = 5) -> float:
    """The shortest of several runs in seconds, after one to warm up: what the machine can do when left alone."""
    work()
    times = []
    for _ in range(repeats):
        started = perf_counter()
        work()
        times.append(perf_counter() - started)
    return min(times)


def table(header: Iterable[str], rows: Iterable[Iterable[Any]]) -> list[str]:
    """A Markdown table."""
    header = list(header)
    lines = ["| " + " | ".join(header) + " |", "|" + " --- |" * len(header)]
    return lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
