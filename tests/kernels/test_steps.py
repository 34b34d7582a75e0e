"""Compiled steps: Cholesky's method where it is easy and where a matrix has no full rank."""

from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from halfseen.engines.threads import tree_sum
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


def crowd(k, dtype, n_rows=400, n_columns=23):
    """Columns of which some have no cell, few, or very many; their cells in column order."""
    rng = np.random.default_rng(k)
    counts = rng.choice([0, 1, 5, 60, 400], n_columns)
    indices = np.concatenate([np.sort(rng.choice(n_rows, count, replace=False)) for count in counts]).astype(np.int32)
    indptr = np.append(0, np.cumsum(counts)).astype(np.int32)
    c, s = (rng.uniform(0.5, 3.0, indices.size).astype(dtype) for _ in range(2))
    F, G = (rng.normal(size=(n, k)).astype(dtype) for n in (n_columns, n_rows))
    return indptr, indices, c, s, F, G


def of_rows(indptr, indices, rows, *arrays):
    """The cells of some rows only."""
    chosen = (indices >= rows.start) & (indices < rows.stop)
    return np.append(0, np.cumsum(chosen))[indptr].astype(np.int32), indices[chosen], *(a[chosen] for a in arrays)


def residual_sums(indptr, indices, ends, c, s, F, G):
    sums, sizes = np.empty(F.shape), np.zeros((len(F), 2))
    steps.residual_sums(indptr, indices, ends, c, s, F, G, indices, steps.room_for_sums(F, ends.size), sums, sizes)
    return np.hstack([sums, sizes])


def normal_equations(indptr, indices, ends, c, s, F, G):
    k = F.shape[1]
    out = np.empty((len(F), k * (k + 3) // 2))
    steps.normal_equations(indptr, indices, ends, s, c, G, out)
    return out


@each_float
@pytest.mark.parametrize("n_shards", [1, 2, 5, 7, 16, 21])
@pytest.mark.parametrize("sums_of", [residual_sums, normal_equations])
def test_sums_of_shards_are_added_as_by_the_tree(sums_of, n_shards, dtype):
    """To the last bit, also where some shards have no cell of a column: `tree_sum` adds their zeros."""
    indptr, indices, c, s, F, G = crowd(5, dtype)
    ends = np.linspace(0, len(G), n_shards + 1).astype(np.int32)
    found = sums_of(indptr, indices, ends[1:], c, s, F, G)
    parts = []
    for start, stop in pairwise(ends):
        *where, c_of_part, s_of_part = of_rows(indptr, indices, slice(start, stop), c, s)
        parts.append(sums_of(*where, ends[-1:], c_of_part, s_of_part, F, G))
    assert_array_equal(found, tree_sum(parts))


@each_float
def test_sums_of_shards(dtype):
    indptr, indices, c, s, F, G = (a.astype(np.float64) if a.dtype == dtype else a for a in crowd(6, dtype))
    given = [a.astype(dtype) if a.dtype == np.float64 else a for a in (c, s, F, G)]
    ends = np.array([100, 101, 250, 400], np.int32)
    gradients, equations = (f(indptr, indices, ends, *given) for f in (residual_sums, normal_equations))
    for u in range(len(F)):
        cells = slice(indptr[u], indptr[u + 1])
        g, x = G[indices[cells]], G[indices[cells]] @ F[u]
        expected = np.append((s[cells] - c[cells] * x) @ g, [s[cells] @ x, np.abs(s[cells]).sum()])
        assert_allclose(gradients[u], expected, rtol=RTOL[dtype], atol=100 * RTOL[dtype])
        A = (g.T * c[cells]) @ g
        expected = np.append(s[cells] @ g, A[np.tril_indices(6)])
        assert_allclose(equations[u], expected, rtol=RTOL[dtype], atol=100 * RTOL[dtype])


@each_float
@pytest.mark.parametrize("k", [1, 3, 8, 21, 64, 130])
def test_steps_of_a_few_columns_have_the_bits_of_steps_of_all(k, dtype):
    """Compiled into one loop, as on one machine, or with sums of all cells between them, as on a cluster."""
    indptr, indices, c, s, F, G = crowd(k, dtype)
    ends, gram, l2 = np.array([100, 101, 250, 400], np.int32), 0.1 * (G.T @ G), np.full(len(F), 0.3, dtype)
    noise = 64 * float(np.finfo(dtype).eps)
    out, total = np.empty_like(F), np.empty(len(F))
    how = (3, 1e-12, noise)
    steps.conjugate_gradients_of_shards(indptr, indices, ends, c, s, F, G, gram, l2, *how, out, total)

    state = (*(np.empty_like(F) for _ in range(3)), np.empty_like(l2), np.empty(len(F)), np.empty(len(F)))
    sums = residual_sums(indptr, indices, ends, c, s, F, G)
    steps.start_gradients(sums[:, :k].copy(), sums[:, k:].copy(), F, gram, l2, 1e-12, *state)
    for _ in range(3):
        sums = residual_sums(indptr, indices, ends, c, s[:0], state[2], G)[:, :k].copy()
        steps.step_gradients(sums, gram, l2, noise, *state)
    assert_array_equal(out, state[0])
    assert_array_equal(total, state[-1])

    if k < 64:
        l2, nothing, moved, other = np.full(k, 0.3, dtype), np.zeros(k, dtype), np.empty_like(F), np.empty_like(F)
        steps.newton_step_of_shards(indptr, indices, ends, s, c, F, G, l2, nothing, nothing, moved)
        sums = normal_equations(indptr, indices, ends, c, s, F, G)
        steps.solve_equations(sums, F, l2, nothing, nothing, other)
        assert_array_equal(moved, other)
