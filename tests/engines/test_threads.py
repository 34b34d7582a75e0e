"""Threads, BLAS limited to one thread while engines are open, and the engine that `engine` and `n_jobs` name."""

import threading
import time

import joblib
import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from halfseen.engines import open_engine
from halfseen.engines.threads import Threads, thread_count, without_overflow_warnings
from halfseen.errors import ParameterError
from halfseen.likelihoods.rules import Terms


def names():
    return {thread.name for thread in threading.enumerate() if thread.name.startswith("halfseen")}


@pytest.mark.parametrize(
    ("n_jobs", "count"),
    [(1, 1), (3, 3), (np.int64(2), 2), (None, joblib.cpu_count()), (-1, joblib.cpu_count()), (-1000, 1),
     (-joblib.cpu_count(), 1)],
)  # fmt: skip
def test_how_many(n_jobs, count):
    assert thread_count(n_jobs) == Threads(n_jobs).count == count


@pytest.mark.parametrize("n_jobs", [1, 2, 5])
def test_results_come_in_the_order_of_the_parts(n_jobs):
    def late_first(part):
        time.sleep(0.002 * (5 - part))
        return part * part

    with Threads(n_jobs) as threads:
        assert threads.all(late_first, range(5)) == [0, 1, 4, 9, 16]
        assert threads.all(late_first, iter([3])) == [9]
        assert threads.all(late_first, []) == []
        assert threads.all(late_first, (part for part in (2, 1))) == [4, 1]


def test_a_single_part_and_a_single_thread_start_none():
    before = names()
    with Threads(4) as threads:
        assert threads.all(lambda part: threading.current_thread(), [1]) == [threading.main_thread()]
        assert names() == before
    with Threads(1) as threads:
        assert set(threads.all(lambda part: threading.current_thread(), range(9))) == {threading.main_thread()}
        assert names() == before


def test_several_parts_run_at_once_and_the_threads_end():
    meeting = threading.Barrier(2, timeout=20)
    before = names()
    with Threads(2) as threads:
        assert len(set(threads.all(lambda part: meeting.wait(), range(2)))) == 2
        assert names() - before
    assert names() == before


def test_they_can_be_entered_again():
    threads = Threads(2)
    for _ in range(2):
        with threads:
            assert threads.all(abs, [-1, -2, -3]) == [1, 2, 3]


def test_an_error_comes_out_and_the_threads_end():
    before = names()
    for n_jobs in (1, 2):
        with pytest.raises(ZeroDivisionError), Threads(n_jobs) as threads:
            threads.all(lambda part: 1 // part, [1, 0, 2])
    assert names() == before


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_numbers_beyond_all_bounds_raise_no_warning(n_jobs):
    huge = np.array([1e300])
    with Threads(n_jobs) as threads:
        found = threads.all(lambda part: (huge * huge, huge * huge - huge * huge), range(3))
    assert all(np.isinf(product) and np.isnan(difference) for product, difference in found)
    assert np.isinf(without_overflow_warnings(lambda part: part * part, huge))


def test_division_by_zero_is_still_told():
    with Threads(1) as threads, pytest.warns(RuntimeWarning, match="divide by zero"):
        threads.all(lambda part: np.ones(1) / np.zeros(1), [0])


@pytest.mark.parametrize("n_jobs", [0, 1.5, "two"])
def test_other_numbers_of_threads_are_refused(n_jobs):
    with pytest.raises(ParameterError, match="n_jobs must be"):
        open_engine("cpu", n_jobs)


@pytest.mark.parametrize("name", ["cpuu", "torch"])
def test_unknown_engines_are_refused(name):
    with pytest.raises(ParameterError, match="engine must be"):
        open_engine(name)


def test_an_engine_has_the_threads_it_was_asked_for_and_an_error_in_one_comes_out():
    before = names()
    with open_engine("cpu", 2) as engine:
        assert engine.n_threads == 2
        engine.map(lambda _, a: Terms((np.sqrt(a),)), None, np.ones(1 << 18))
        assert names() - before
        with pytest.raises(ZeroDivisionError):
            engine.map(lambda _, a: 1 // 0, None, np.ones(10))
    assert names() == before


def blas_threads():
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def test_engines_that_overlap_hold_blas_until_all_are_closed_errors_or_not():
    with threadpool_limits(2, user_api="blas"):
        first, second = open_engine("cpu", 1), open_engine("cpu", 1)
        first.__enter__()
        second.__enter__()
        first.__exit__()
        assert blas_threads() == {1}
        second.__exit__()
        assert blas_threads() == {2}
        with pytest.raises(ArithmeticError), open_engine("cpu", 1):
            raise ArithmeticError
        assert blas_threads() == {2}
