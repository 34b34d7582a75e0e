"""Matrices of high linear rank that are rounded from one or two columns."""

import numpy as np
import pytest

from halfseen.errors import ParameterError
from halfseen.rank import band, grf, identity, rounds_to, triangular
from tests.rank import oracle

SIZES = [1, 2, 3, 4, 10, 50, 400]
every_size = pytest.mark.parametrize("n", SIZES)


@every_size
def test_triangular(n):
    Y, W, H, thresholds = triangular(n)
    np.testing.assert_array_equal(Y, np.triu(np.ones((n, n))))
    assert (W.shape, H.shape) == ((n, 1), (n, 1))
    assert rounds_to(W, H, thresholds, Y)


@every_size
def test_identity(n):
    Y, W, H, thresholds = identity(n)
    np.testing.assert_array_equal(Y, np.eye(n))
    assert (W.shape, H.shape) == ((n, 2), (n, 2))
    assert rounds_to(W, H, thresholds, Y)


@every_size
@pytest.mark.parametrize("width", [0, 1, 3, 10, 1000])
def test_band(n, width):
    Y, W, H, thresholds = band(n, width)
    np.testing.assert_array_equal(Y, np.tri(n, n, width) * np.tri(n, n, width).T)
    assert (W.shape, H.shape) == ((n, 2), (n, 2))
    assert rounds_to(W, H, thresholds, Y)


@pytest.mark.parametrize("made", [triangular(400), band(400, 10)])
def test_numbers_are_well_scaled(made):
    """Single precision will do."""
    W, H, thresholds = (numbers.astype(np.float32) for numbers in made[1:])
    assert max(np.abs(W).max(), np.abs(H).max()) <= 2
    np.testing.assert_array_equal(grf(W @ H.T, thresholds), made.Y)


def test_linear_ranks_are_those_of_the_thesis():
    assert oracle.linear_rank(triangular(12).Y) == 12
    assert oracle.linear_rank(identity(12).Y) == 12
    assert oracle.linear_rank(band(10, 3).Y) == 8  # section 4.1


def test_sizes_must_be_whole_numbers():
    with pytest.raises(ParameterError, match=r"n must be a whole number of at least 1\. Found 0"):
        triangular(0)
    with pytest.raises(ParameterError, match=r"n must be a whole number of at least 1\. Found 2\.5"):
        identity(2.5)
    with pytest.raises(ParameterError, match=r"width must be a whole number of at least 0\. Found -1"):
        band(3, -1)
