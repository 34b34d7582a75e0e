"""How times and memory are taken and shown."""

import contextlib
import gc
import json
import multiprocessing
import os
import re
import resource
import signal
import tracemalloc
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
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


class Usage(NamedTuple):
    """What a piece of work took."""

    clock: float
    """Seconds by the clock."""
    cpu: float
    """Seconds in which processors worked for this process and its children, user and system."""
    peak: int
    """The most bytes resident at a time, all memory of the process included."""
    held: int
    """Bytes resident before."""


def usage_of(work: Callable[[], Any]) -> tuple[Any, Usage]:
    """What the work returns and what it took. Resident memory is counted by the kernel, on Linux only."""
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak starts again from what is held now
    held, clock, cpu = _resident("VmRSS"), perf_counter(), _cpu_seconds()
    result = work()
    return result, Usage(perf_counter() - clock, _cpu_seconds() - cpu, _resident("VmHWM"), held)


def _resident(field: str) -> int:
    status = Path("/proc/self/status").read_text(encoding="ascii")
    found = re.search(rf"{field}:\s+(\d+) kB", status)
    return 1024 * int(found[1]) if found else 0


def _cpu_seconds() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def in_process(work: Callable[[], Any], cpu_limit: int | None = None) -> Any:
    """What the work returns, which JSON must be able to hold, run in a process of its own.

    Nothing that the work prints or warns of is shown. Work that takes more processor time than the limit is ended, with
    a TimeoutError; other ends without a result are a RuntimeError.
    """
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)

    def child() -> None:
        if cpu_limit is not None:
            resource.setrlimit(resource.RLIMIT_CPU, (cpu_limit, cpu_limit + 5))
        with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                answer = {"result": work()}
            except Exception as error:  # of any library: it is shown in the place of the result
                answer = {"error": f"{type(error).__name__}: {error}"}
        sender.send_bytes(json.dumps(answer).encode())

    process = context.Process(target=child, daemon=True)
    process.start()
    sender.close()
    try:
        answer = json.loads(receiver.recv_bytes())
    except EOFError:
        answer = {}
    process.join()
    if "result" in answer:
        return answer["result"]
    if process.exitcode in (-signal.SIGXCPU, -signal.SIGKILL) and cpu_limit is not None:
        raise TimeoutError(f"more than {cpu_limit} s")
    raise RuntimeError(answer.get("error", f"ended with code {process.exitcode}"))


def best_of(work: Callable[[], Any], repeats: int = 5) -> float:
    """The shortest of several runs in seconds, after one to warm up: what the machine can do when left alone."""
    work()
    return min(seconds_of(work).clock for _ in range(repeats))


def table(header: Iterable[str], rows: Iterable[Iterable[Any]]) -> list[str]:
    """A Markdown table."""
    header = list(header)
    lines = ["| " + " | ".join(header) + " |", "|" + " --- |" * len(header)]
    return lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
