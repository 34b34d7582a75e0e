"""Matrices of high linear rank that are rounded from one or two columns."""

import numpy as np
import pytest

from halfseen.errors import ParameterError
from halfseen.rank import band, grf, identity, rounds_to, triangular
from tests.roundrank import oracle


@pytest.mark.parametrize("n", [1, 2, 3, 4, 10, 50, 400])
def test_factors_round_to_the_matrices(n):
    cases = [(triangular(n), np.triu(np.ones((n, n))), 1), (identity(n), np.eye(n), 2)]
    cases += [(band(n, width), np.tri(n, n, width) * np.tri(n, n, width).T, 2) for width in (0, 1, 3, 10, 1000)]
    for (Y, W, H, thresholds), truth, rank in cases:
        np.testing.assert_array_equal(Y, truth)
        assert (W.shape, H.shape) == ((n, rank), (n, rank))
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
    for make, sizes, name in ((triangular, (0,), "n"), (identity, (2.5,), "n"), (band, (3, -1), "width")):
        with pytest.raises(ParameterError, match=f"^{name} must be a whole number"):
            make(*sizes)
