"""Compiled steps: Cholesky's method where it is easy and where a matrix has no full rank."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from halfseen.kernels import steps
from halfseen.kernels.cells import sddmm_at

RTOL = {np.float32: 2e-4, np.float64: 1e-9}
each_float = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def step(slope, curvature, F, G, l2, centre, fixed):
    """One row that has seen every column."""
    out = np.empty_like(F)
    indptr, indices = np.array([0, len(G)]), np.arange(len(G))
    steps.newton_step(indptr, indices, slope, curvature, F, G, l2, centre, fixed, out)
    return out


@each_float
@pytest.mark.parametrize("k", [1, 2, 3, 7, 16])
@pytest.mark.parametrize("cells", [0, 1, 3, 4, 5, 8, 9, 40])
def test_a_step_solves_its_system_whatever_the_number_of_cells(dtype, k, cells):
    """Four cells are taken at a time, and what is left one by one."""
    rng = np.random.default_rng(k + cells)
    G, F = rng.normal(size=(cells, k)).astype(dtype), rng.normal(size=(1, k)).astype(dtype)
    slope, curvature = rng.normal(size=cells).astype(dtype), rng.uniform(0, 2, cells).astype(dtype)
    l2, centre = rng.uniform(0.5, 1, k).astype(dtype), rng.normal(size=k).astype(dtype)
    found = step(slope, curvature, F, G, l2, centre, np.zeros(k, dtype))
    A = (G.T * curvature) @ G + np.diag(l2)
    g = G.T @ slope + l2 * (F[0] - centre)
    assert_allclose(found[0], F[0] - np.linalg.solve(A, g), rtol=RTOL[dtype], atol=RTOL[dtype])


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


@each_float
@pytest.mark.parametrize("fixed", [(1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 0)])
def test_what_is_fixed_stays_and_the_others_move_without_it(dtype, fixed):
    rng = np.random.default_rng(0)
    G, F = rng.normal(size=(9, 3)).astype(dtype), rng.normal(size=(1, 3)).astype(dtype)
    slope, curvature = rng.normal(size=9).astype(dtype), rng.uniform(0.5, 2, 9).astype(dtype)
    l2, centre, fixed = np.full(3, 0.3, dtype), np.zeros(3, dtype), np.array(fixed, dtype)
    found = step(slope, curvature, F, G, l2, centre, fixed)
    free = fixed == 0
    A = ((G.T * curvature) @ G + np.diag(l2))[np.ix_(free, free)]
    g = (G.T @ slope + l2 * F[0])[free]
    assert_array_equal(found[0, ~free], F[0, ~free])
    assert_allclose(found[0, free], F[0, free] - np.linalg.solve(A, g), rtol=RTOL[dtype], atol=RTOL[dtype])


def test_blocks_begin_where_their_pointers_say():
    """Pointers of a block of rows count from the first cell of all; its cells are handed over from its own first."""
    rng = np.random.default_rng(0)
    G, F = rng.normal(size=(5, 2)), rng.normal(size=(2, 2))
    slope, curvature = rng.normal(size=7), rng.uniform(0.5, 2, 7)
    indptr, indices = np.array([100, 104, 107]), np.array([0, 1, 2, 3, 1, 2, 4])
    l2, nothing, out = np.full(2, 0.1), np.zeros(2), np.empty((2, 2))
    steps.newton_step(indptr, indices, slope, curvature, F, G, l2, nothing, nothing, out)
    for row, cells in ((0, slice(0, 4)), (1, slice(4, 7))):
        g = G[indices[cells]]
        A, down = (g.T * curvature[cells]) @ g + np.diag(l2), g.T @ slope[cells] + l2 * F[row]
        assert_allclose(out[row], F[row] - np.linalg.solve(A, down), rtol=1e-10)


def test_dots_of_listed_pairs():
    rng = np.random.default_rng(0)
    W, H = rng.normal(size=(4, 3)), rng.normal(size=(5, 3))
    rows, columns, x = np.array([0, 3, 3, 1]), np.array([4, 0, 0, 2]), np.empty(4)
    sddmm_at(rows, columns, W, H, x)
    assert_allclose(x, np.einsum("ck,ck->c", W[rows], H[columns]), rtol=1e-13)


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
