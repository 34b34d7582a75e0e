"""Medians of run times, on a clock that the works themselves turn."""

import pytest
from threadpoolctl import threadpool_info

from halfseen.studies import timing


class Clock:
    """Time that passes only in works, each taking its given times one after the other; the log says who worked."""

    def __init__(self):
        self.now, self.log = 0.0, []

    def work(self, name, *times):
        left = list(times)

        def run():
            self.log.append(name)
            self.now += left.pop(0) if len(left) > 1 else left[0]

        return run


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(timing, "perf_counter", lambda: clock.now)
    return clock


def test_the_median_leaves_out_the_first_run_and_outliers(clock):
    slow, fast = clock.work("slow", 99, 3, 2, 50), clock.work("fast", 77, 0.5, 0.1, 0.2)
    assert timing.median_seconds([slow, fast], at_least=3, until=0) == pytest.approx([3, 0.2])
    assert clock.log == ["slow", "fast"] * 4


def test_short_works_are_repeated_until_the_time_is_up(clock):
    timing.median_seconds([clock.work("short", 0.25)], at_least=2, until=1.0)
    assert len(clock.log) == 1 + 4


def test_long_works_are_repeated_as_often_as_asked(clock):
    timing.median_seconds([clock.work("long", 10)], at_least=5, until=1.0)
    assert len(clock.log) == 1 + 5


def test_blas_has_one_thread_meanwhile_and_is_given_back():
    def threads():
        return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]

    before, meanwhile = threads(), []
    timing.median_seconds([lambda: meanwhile.append(threads())], at_least=1, until=0)
    assert meanwhile == [[1] * len(before)] * 2
    assert threads() == before
    with pytest.raises(ZeroDivisionError):
        timing.median_seconds([lambda: 1 / 0])
    assert threads() == before
