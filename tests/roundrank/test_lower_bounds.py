"""Bounds below: Forster's, and shattered columns."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import hadamard

from halfseen.rank import forster_bound, identity
from halfseen.roundrank.lower_bounds import shattered_columns
from tests.roundrank import oracle


@pytest.mark.parametrize("n", [2, 4, 16, 64, 256])
def test_the_sign_rank_of_a_hadamard_matrix_is_at_least_its_root(n):
    """Its singular values are all sqrt(n); for n = 2 the bound sqrt(2) makes 2."""
    assert forster_bound(hadamard(n) > 0) == np.ceil(np.sqrt(n))


def test_the_largest_bound_of_all_levels_counts_and_a_constant_matrix_has_sign_rank_1():
    Y = np.where(hadamard(16) > 0, 2, 1)
    Y[0] = 0
    assert forster_bound(Y) == max(forster_bound(Y >= 1), forster_bound(Y >= 2)) == 4
    assert forster_bound(np.ones((3, 4))) == forster_bound(np.zeros((3, 4))) == 1


def test_no_bound_is_larger_than_the_rank_of_a_matrix_with_these_signs():
    random = np.random.default_rng(0)
    for _ in range(200):
        rank = random.integers(1, 5)
        X = random.standard_normal((30, rank)) @ random.standard_normal((rank, 20))
        assert forster_bound(X > 0) <= rank


def test_a_cube_is_shattered():
    for size in range(1, 7):
        cube = np.array(list(itertools.product([0, 1], repeat=size)))
        assert shattered_columns(cube) == size
        assert shattered_columns(cube[:-1]) == size - 1
        half = cube[cube[:, 0] == 1]  # one of each two opposite patterns
        assert shattered_columns(half) == size - 1
        assert shattered_columns(half, at_zero=True) == size
    assert shattered_columns(identity(50).Y) == 1


@given(st.integers(1, 20), st.integers(1, 6), st.integers(0, 2**32 - 1))
@settings(deadline=None)
def test_shattered_columns_are_counted_right(n, m, seed):
    binary = np.random.default_rng(seed).integers(0, 2, (n, m))
    assert shattered_columns(binary) == oracle.shattered(binary)


@given(st.data())
@settings(deadline=None, max_examples=300)
def test_no_more_columns_are_shattered_than_the_rank(data):
    """For factors of small whole numbers, so that many cells are on the threshold."""
    rank = data.draw(st.integers(1, 3))
    random = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    tau = data.draw(st.integers(-3, 3))
    binary = random.integers(-2, 3, (40, rank)) @ random.integers(-2, 3, (rank, 6)) > tau
    for matrix in (binary, binary.T):
        assert shattered_columns(matrix, at_zero=tau == 0) <= rank
