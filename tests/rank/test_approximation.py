"""Approximation by matrices of low linear rank."""

import numpy as np
import pytest

from halfseen.errors import DataError, ParameterError
from halfseen.rank import approximation_errors, epsilon_rank


def rotated(values, shape, seed=0):
    """A matrix of given singular values."""
    random = np.random.default_rng(seed)
    left, _ = np.linalg.qr(random.standard_normal((shape[0], len(values))))
    right, _ = np.linalg.qr(random.standard_normal((shape[1], len(values))))
    return left @ np.diag(values) @ right.T


def test_errors_are_sums_of_squares_of_the_singular_values_left_out():
    X = rotated([5.0, 3.0, 1.0], (6, 4))
    np.testing.assert_allclose(approximation_errors(X), [35.0, 10.0, 1.0, 0.0, 0.0], atol=1e-12)
    assert approximation_errors(X)[-1] == 0


def test_no_approximation_is_better_than_these():
    """Alternating least squares, which knows nothing of singular values, comes down to the same errors."""
    random = np.random.default_rng(1)
    X = random.standard_normal((8, 6))
    for rank, error in enumerate(approximation_errors(X)[1:], start=1):
        H = random.standard_normal((6, rank))
        for _ in range(500):
            W = np.linalg.lstsq(H, X.T, rcond=None)[0].T
            H = np.linalg.lstsq(W, X, rcond=None)[0].T
        assert np.sum((X - W @ H.T) ** 2) == pytest.approx(error, abs=1e-8)


@pytest.mark.parametrize("n", [1, 7, 50])
def test_the_identity_is_worth_as_much_as_its_size(n):
    """n - k is the error of rank k (section 2.2.2): at eps = n - k exactly, whatever the rounding, k will do."""
    np.testing.assert_allclose(approximation_errors(np.eye(n)), n - np.arange(n + 1), atol=1e-12)
    turned = np.linalg.qr(np.random.default_rng(n).standard_normal((n, n)))[0]
    for k in range(n):
        assert epsilon_rank(np.eye(n), n - k) == epsilon_rank(turned, n - k) == k
        assert epsilon_rank(turned, n - k - 1e-9) == k + 1


def test_without_an_error_it_is_the_linear_rank():
    assert epsilon_rank(rotated([1.0, 1e-3, 1e-8], (9, 7)), 0) == 3
    assert epsilon_rank(rotated([1.0, 1e-3, 1e-8], (9, 7)), 1e-15) == 2
    assert epsilon_rank(np.outer([1.0, 2.0, 3.0], [0.1, 0.7]), 0) == 1
    assert epsilon_rank(np.zeros((3, 2)), 0) == 0
    for seed in range(5):
        X = np.random.default_rng(seed).integers(-1, 2, (7, 5))
        assert epsilon_rank(X, 0) == np.linalg.matrix_rank(X)


def test_bad_input_is_named():
    with pytest.raises(
        DataError, match=r"finite number in every cell\. Found nan at row 1, column 0\. Complete X first\."
    ):
        epsilon_rank([[1.0, 2.0], [np.nan, 1.0]], 0.1)
    with pytest.raises(DataError, match="Found inf at row 0, column 1"):
        approximation_errors([[1.0, np.inf]])
    with pytest.raises(ParameterError, match=r"eps must be a finite number of at least 0\. Found -1"):
        epsilon_rank([[1.0]], -1)
