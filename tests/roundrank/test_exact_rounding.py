"""The generalized round function, and levels of products: held against fractions, with cells on thresholds and near."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halfseen.errors import DataError, ParameterError
from halfseen.rank import grf, rounds_to
from halfseen.roundrank.exact_rounding import exact_levels
from tests.roundrank import oracle

NAN = float("nan")
numbers = st.floats(-10, 10)
rising = st.lists(numbers, max_size=5, unique=True).map(sorted)


@given(st.lists(numbers, min_size=1, max_size=8), rising)
def test_a_level_is_the_number_of_thresholds_below(x, thresholds):
    x = x + thresholds  # the thresholds themselves count as below
    assert grf(x, thresholds).tolist() == [oracle.level(each, thresholds) for each in x]


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


def test_nan_has_no_level():
    for X, where in (([[0.0, 1.0], [NAN, NAN]], "at (1, 0)"), (NAN, "")):
        with pytest.raises(DataError) as error:
            grf(X, [0.5])
        assert (error.value.parameter, error.value.found, error.value.where) == ("X", "NaN", where)


@pytest.mark.parametrize("thresholds", [None, [1, 1], [2, 1], [[1, 2]], "a", "", 3, [NAN], [0, np.inf], [[1], [1, 2]]])
def test_thresholds_must_rise(thresholds):
    with pytest.raises(ParameterError) as error:
        grf([1.0], thresholds)
    assert error.value.parameter == "thresholds"


#: Numbers of which sums and products are on the thresholds, or off them by less than a sum in floats can tell.
ODD = [0.0, 0.1, 0.2, 0.3, -0.1, -0.3, 1 / 3, 1e-17, 1.0, 3.0, 10.0, 1e200, 1e-200]
TAUS = [-0.09, -0.03, 0.0, 0.01, 0.03, 0.3, 0.9, 1.0]


@st.composite
def products(draw):
    n, m, k = (draw(st.integers(1, 4)) for _ in range(3))
    row = st.lists(st.sampled_from(ODD), min_size=k, max_size=k)
    W, H = (draw(st.lists(row, min_size=size, max_size=size)) for size in (n, m))
    return W, H, sorted(draw(st.lists(st.sampled_from(TAUS), max_size=3, unique=True)))


@given(products(), st.data())
@settings(deadline=None, max_examples=200)
def test_levels_of_products_are_those_of_fractions(product, data):
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


def test_levels_of_pairs_are_exact_where_floats_are_not():
    W, H = np.array([[0.1, 0.2], [1.0, 1e-17], [1.0, -1e-17], [0.0, 0.0]]), np.ones((4, 2))
    thresholds = np.array([0.0, 0.3, 1.0])
    truth = [oracle.levels_of([w], [h], thresholds.tolist())[0][0] for w, h in zip(W, H, strict=True)]
    assert truth == [2, 3, 2, 0]
    np.testing.assert_array_equal(exact_levels(W, H, thresholds), truth)


def test_infinite_factors_round_to_nothing_and_no_columns_are_a_product_of_zeros():
    assert not rounds_to([[np.inf]], [[1.0]], [0.0], [[1]])
    assert not rounds_to([[np.nan]], [[1.0]], [0.0], [[0]])
    assert rounds_to(np.empty((2, 0)), np.empty((3, 0)), [-1.0, 0.0], np.ones((2, 3)))
    assert not rounds_to(np.empty((2, 0)), np.empty((3, 0)), [-1.0, 0.0], np.zeros((2, 3)))


def test_shapes_must_agree():
    with pytest.raises(DataError) as error:
        rounds_to(np.ones((2, 1)), np.ones((2, 1)), [0.5], np.ones((2, 3)))
    assert error.value.found == "shapes (2, 1) and (2, 1)"
