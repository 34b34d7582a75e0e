"""The generalized round function."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfseen.errors import DataError, ParameterError
from halfseen.rank import grf
from tests.rank import oracle

NAN = float("nan")
numbers = st.floats(-10, 10)
rising = st.lists(numbers, max_size=5, unique=True).map(sorted)


@given(st.lists(numbers, min_size=1, max_size=8), rising)
def test_a_level_is_the_number_of_thresholds_below(x, thresholds):
    x = x + thresholds  # the thresholds themselves count as below
    assert grf(x, thresholds).tolist() == [oracle.level(each, thresholds) for each in x]


def test_equation_2_5_case_by_case():
    assert grf([0.9, 1.0, 1.1, 2.0, 2.1, 3.0, 9.0], [1, 2, 3]).tolist() == [0, 0, 1, 1, 2, 2, 3]


@given(st.lists(numbers, min_size=1, max_size=8), rising)
def test_lemma_A2_levels_are_sums_of_binary_ones(x, thresholds):
    binary = [grf(x, [tau]) for tau in thresholds]
    assert grf(x, thresholds).tolist() == np.sum([np.zeros(len(x), int), *binary], axis=0).tolist()


@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (2, 0), (2, 1, 3)])
def test_levels_are_integers_of_the_same_shape(shape):
    levels = grf(np.full(shape, 1.5), [1.0])
    assert levels.shape == shape
    assert levels.dtype.kind == "i"
    assert np.all(levels == 1)


def test_numbers_lists_and_infinities():
    assert int(grf(3, [1, 2])) == 2
    assert grf([[-np.inf, np.inf]], [0.0]).tolist() == [[0, 1]]
    assert grf(np.array([1, 2], dtype=np.int8), [1]).tolist() == [0, 1]
    assert grf(np.float32(0.1), [np.float32(0.1)]) == 0
    assert grf([True, False], [0.5]).tolist() == [1, 0]
    assert grf([5.0, -5.0], []).tolist() == [0, 0]


def test_what_is_unknown_has_no_level():
    with pytest.raises(DataError, match=r"must be numbers\. Found NaN at \(1, 0\)\."):
        grf([[0.0, 1.0], [NAN, NAN]], [0.5])
    with pytest.raises(DataError, match=r"Found NaN\."):
        grf(NAN, [0.5])


@pytest.mark.parametrize("thresholds", [None, [1, 1], [2, 1], [[1, 2]], "a", "", 3, [NAN], [0, np.inf], [[1], [1, 2]]])
def test_thresholds_must_rise(thresholds):
    with pytest.raises(
        ParameterError, match=r"thresholds must be rising numbers\. Found .*\. List them in their order\."
    ):
        grf([1.0], thresholds)
