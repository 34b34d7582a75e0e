"""BLAS is held to one thread while engines are open, and given back by the last of them."""

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from halfseen.engines import open_engine


def blas_threads():
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


@pytest.fixture(autouse=True)
def two_threads_outside():
    with threadpool_limits(2, user_api="blas"):
        yield


def test_an_engine_holds_blas_and_gives_it_back():
    with open_engine("cpu", 2):
        assert blas_threads() == {1}
    assert blas_threads() == {2}


def test_engines_that_overlap_give_it_back_only_once_all_are_closed():
    first, second = open_engine("cpu", 1), open_engine("cpu", 1)
    first.__enter__()
    second.__enter__()
    first.__exit__()
    assert blas_threads() == {1}
    second.__exit__()
    assert blas_threads() == {2}


def test_it_is_given_back_after_an_error():
    with pytest.raises(ArithmeticError), open_engine("cpu", 1):
        raise ArithmeticError
    assert blas_threads() == {2}
