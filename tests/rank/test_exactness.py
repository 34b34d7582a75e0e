"""Does a product round to given levels: held against fractions, with cells on thresholds and next to them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halfseen.errors import DataError
from halfseen.rank import rounds_to
from tests.rank import oracle

#: Numbers of which sums and products are on the thresholds, or off them by less than a sum in floats can tell.
ODD = [0.0, 0.1, 0.2, 0.3, -0.1, -0.3, 1 / 3, 1e-17, 1.0, 3.0, 10.0, 1e200, 1e-200]


TAUS = [-0.09, -0.03, 0.0, 0.01, 0.03, 0.3, 0.9, 1.0]


def lists(elements, size):
    return st.lists(elements, min_size=size, max_size=size)


@st.composite
def products(draw):
    n, m, k = (draw(st.integers(1, 4)) for _ in range(3))
    W, H = (draw(lists(lists(st.sampled_from(ODD), k), rows)) for rows in (n, m))
    return W, H, sorted(draw(st.lists(st.sampled_from(TAUS), max_size=3, unique=True)))


@given(products(), st.data())
@settings(deadline=None, max_examples=200)
def test_the_answer_is_that_of_fractions(product, data):
    W, H, thresholds = product
    Y = oracle.levels_of(W, H, thresholds)
    assert rounds_to(W, H, thresholds, Y)
    if thresholds:
        row, column = data.draw(st.integers(0, len(W) - 1)), data.draw(st.integers(0, len(H) - 1))
        Y[row][column] = (Y[row][column] + 1) % (len(thresholds) + 1)
        assert not rounds_to(W, H, thresholds, Y)


def test_sums_that_floats_get_wrong():
    # 0.1 + 0.2 in floats is the float after 0.3; the sum of the two floats is between them
    between = [[0.1, 0.2]], [[1.0, 1.0]]
    assert rounds_to(*between, [0.3], [[1]])
    assert rounds_to(*between, [0.1 + 0.2], [[0]])
    assert 0.1 * 3 > 0.3  # but the product of the float 0.1 by 3 is above the float 0.3 as well, by less
    assert rounds_to([[0.1]], [[3.0]], [0.3], [[1]])
    assert rounds_to([[0.1]], [[3.0]], [0.1 * 3], [[0]])
    # 1 + 1e-17 is 1 in floats
    assert rounds_to([[1.0, 1e-17]], [[1.0, 1.0]], [1.0], [[1]])
    # products that vanish in floats, and such that are larger than any
    assert rounds_to([[1e-200]], [[1e-200]], [0.0], [[1]])
    assert rounds_to([[1e-200]], [[-1e-200]], [0.0], [[0]])
    assert rounds_to([[0.0]], [[1e-200]], [0.0], [[0]])
    assert rounds_to([[1e200, 1e200, 1.0]], [[1e200, -1e200, 1.0]], [0.5], [[1]])


def test_what_is_not_finite_rounds_to_nothing():
    assert not rounds_to([[np.inf]], [[1.0]], [0.0], [[1]])
    assert not rounds_to([[np.nan]], [[1.0]], [0.0], [[0]])


def test_no_columns_are_a_product_of_zeros():
    assert rounds_to(np.empty((2, 0)), np.empty((3, 0)), [-1.0, 0.0], np.ones((2, 3)))
    assert not rounds_to(np.empty((2, 0)), np.empty((3, 0)), [-1.0, 0.0], np.zeros((2, 3)))


def test_shapes_must_agree():
    with pytest.raises(DataError, match=r"2 and 3, and one number of columns\. Found shapes \(2, 1\) and \(2, 1\)\."):
        rounds_to(np.ones((2, 1)), np.ones((2, 1)), [0.5], np.ones((2, 3)))
    with pytest.raises(
        DataError, match=r"Levels must be 0 to 1, as there are 1 thresholds\. Found 2 at row 0, column 1\."
    ):
        rounds_to([[1.0]], [[1.0], [2.0]], [0.5], [[1, 2]])
