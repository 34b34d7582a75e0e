"""Compiled steps: Cholesky's method where it is easy and where a matrix has no full rank."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from halfseen.kernels import steps

RTOL = {np.float32: 2e-4, np.float64: 1e-9}
each_float = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def step(slope, curvature, F, G, l2, centre, fixed):
    """One row that has seen every column."""
    out = np.empty_like(F)
    indptr, indices = np.array([0, len(G)]), np.arange(len(G))
    steps.newton_step(indptr, indices, slope, curvature, F, G, l2, centre, fixed, out)
    return out


@each_float
def test_components_that_say_the_same_move_as_if_one_of_them_were_not_there(dtype):
    """Two equal columns of G and no l2: the system has no single solution, and the second stays."""
    rng = np.random.default_rng(0)
    one = rng.normal(size=(9, 1))
    G = np.hstack([one, one, rng.normal(size=(9, 1))]).astype(dtype)
    slope, curvature = rng.normal(size=9).astype(dtype), np.ones(9, dtype)
    F, nothing = np.ones((1, 3), dtype), np.zeros(3, dtype)
    found = step(slope, curvature, F, G, nothing, nothing, nothing)
    without = np.linalg.solve(G[:, [0, 2]].T @ G[:, [0, 2]], G[:, [0, 2]].T @ slope)
    assert found[0, 1] == 1
    assert_allclose(found[0, [0, 2]], 1 - without, rtol=50 * RTOL[dtype], atol=RTOL[dtype])


def test_a_cell_moves_both_its_rows_from_where_they_were_before_it():
    """The second of the two must not see the first one moved; by hand, at k = 1."""
    W, H = np.array([[2.0]]), np.array([[3.0]])
    past = np.zeros(1), np.zeros(1)
    seen, nothing = np.ones(1), np.zeros(1)
    steps.adagrad_step(
        np.array([0]), np.array([0]), np.array([0.5]), 0.1,
        W, seen, past[0], nothing, nothing, nothing,
        H, seen, past[1], nothing, nothing, nothing,
    )  # fmt: skip
    # g_w = 0.5 * 3, g_h = 0.5 * 2: the first step of AdaGrad is the rate, whatever the slope.
    assert_allclose(W, [[1.9]])
    assert_allclose(H, [[2.9]])
    assert_allclose(past, [[1.5**2], [1.0]])
