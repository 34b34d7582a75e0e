"""Which engine `engine` and `n_jobs` name."""

import threading

import joblib
import numpy as np
import pytest
from threadpoolctl import threadpool_info

from halfseen.engines import open_engine
from halfseen.errors import ParameterError


@pytest.mark.parametrize(
    ("n_jobs", "threads"),
    [(1, 1), (3, 3), (np.int64(2), 2), (None, joblib.cpu_count()), (-1, joblib.cpu_count()), (-1000, 1)],
)
def test_number_of_threads(n_jobs, threads):
    assert open_engine("cpu", n_jobs).n_threads == threads


@pytest.mark.parametrize("n_jobs", [0, 1.5, "two"])
def test_other_numbers_of_threads_are_refused(n_jobs):
    with pytest.raises(ParameterError, match=rf"n_jobs must be .*Found {n_jobs!r}\. Use None"):
        open_engine("cpu", n_jobs)


def test_unknown_engines_are_refused():
    with pytest.raises(ParameterError, match=r"engine must be one of 'cpu'. Found 'cpuu'. Did you mean 'cpu'"):
        open_engine("cpuu")
    with pytest.raises(ParameterError, match=r"Found 'torch'. Choose one of these"):
        open_engine("torch")


def blas_threads():
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


def test_blas_is_held_to_one_thread_inside_only():
    before = blas_threads()
    with open_engine("cpu", 2):
        assert set(blas_threads()) <= {1}
    assert blas_threads() == before


def test_threads_end_with_the_engine():
    def names():
        return {thread.name for thread in threading.enumerate() if thread.name.startswith("halfseen")}

    with open_engine("cpu", 2) as engine:
        engine.map(np.sqrt, np.ones(1 << 18))
        assert names()
    assert not names()


def test_an_error_in_a_thread_comes_out():
    def rule(a):
        raise ZeroDivisionError("here")

    with open_engine("cpu", 2) as engine, pytest.raises(ZeroDivisionError, match="here"):
        engine.map(rule, np.ones(10))
