"""Marginals and weights: the same from every kind of table, in any number of blocks, on any number of threads."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from halfseen import observe
from halfseen.engines.threads import Threads
from halfseen.observed import Observed
from halfseen.rankone import DenseTable, ListedTable, incomplete_tables, kron, marginals
from halfseen.rankone.marginals import WeightMatrix, sum_along_axes

from . import oracle
from .cases import NAN, TABLES, counts, fitted, gammas, holed, product, weights_for

THREADS = Threads(1)
every_table = pytest.mark.parametrize("X", TABLES.values(), ids=TABLES)


def phi_of(found):
    """The weights of the cells of the data as a dense matrix."""
    weights = found.weights
    phi = np.full(weights.shape, weights.base)
    rows = np.repeat(np.arange(weights.shape[0]), np.diff(weights.indptr))
    np.add.at(phi, (rows, weights.indices), weights.data)
    phi = found.expand(phi)
    return phi if found.axes[0] == 0 else phi.T


def assert_marginals(table, X, phi, weights=None):
    """Against plain NumPy; where the table lies column by column, in its order."""
    found = table.marginals
    assert_allclose(phi_of(found), phi, rtol=1e-14, atol=1e-15)
    if found.axes[0] != 0:
        X, phi = X.T, phi.T
    weighted = np.nan_to_num(X) * (1.0 if weights is None else weights)
    assert_allclose(found.row_sums, weighted.sum(1), rtol=1e-13)
    assert_allclose(found.sums[1], weighted.sum(0), rtol=1e-13)
    assert found.total == pytest.approx(weighted.sum(), rel=1e-13)
    assert_array_equal(found.counts[1], (~np.isnan(X)).sum(0))
    assert found.counts[0].sum() == (~np.isnan(X)).sum()
    positive = (weighted > 0).sum(1)[weighted.sum(1) > 0]
    assert table.positive_counts == (positive.min(), positive.max())
    # products with the weights; a merged row stands for all its rows
    group = np.arange(len(phi)) if found.merged is None else found.merged.group
    every = phi[np.unique(group, return_index=True)[1]]
    w, h = gammas(len(every)), gammas(phi.shape[1], 1)
    assert_allclose(found.weights.matvec(h, THREADS), every @ h, rtol=1e-12)
    assert_allclose(found.weights.rmatvec(w, THREADS), w @ every, rtol=1e-12)


@every_table
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("order", ["C", "F", "strided"])
def test_dense_tables(X, order, dtype):
    X = X.astype(dtype)
    data = np.repeat(np.repeat(X, 2, 0), 2, 1)[::2, ::2] if order == "strided" else np.asarray(X, order=order)
    table = DenseTable(data, THREADS)
    assert table.is_valid
    assert_marginals(table, X.astype(float), oracle.exposures(X.astype(float)))


@every_table
@pytest.mark.parametrize("weighted", [False, True])
def test_lists_of_cells(X, weighted):
    C = weights_for(X) if weighted else None
    assert_marginals(ListedTable(observe(X, cell_weight=C)), X, oracle.exposures(X, C), C)


def test_a_cell_seen_twice():
    rows, columns, values = np.array([0, 0, 1, 2, 2]), np.array([1, 1, 0, 1, 2]), np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    for unseen, phi in (("missing", [[0, 2, 0], [1, 0, 0], [0, 1, 1]]), ("zero", [[1, 2, 1], [1, 1, 1], [1, 1, 1]])):
        observed = Observed.from_cells(rows, columns, values, (3, 3), duplicates="keep", unseen=unseen)
        found = ListedTable(observed).marginals
        assert_allclose(phi_of(found), phi)
        assert not found.is_empty(0).any()
        assert_allclose(found.sums[0], [3, 3, 9])
        assert_allclose(found.sums[1], [3, 7, 5])


def test_the_shorter_list_is_kept():
    """Holes if they are few, else what was seen; for a list of cells as for a dense table."""
    for share, lists_holes in ((0.1, True), (0.4, True), (0.6, False), (0.9, False)):
        X = holed(gammas((20, 15)), share)
        for table in (DenseTable(X, THREADS), DenseTable(np.asfortranarray(X), THREADS), ListedTable(observe(X))):
            assert (table.marginals.weights.base > 0) == lists_holes
            assert table.marginals.unmerged().weights.indices.size == min(np.isnan(X).sum(), (~np.isnan(X)).sum())
            assert table.marginals.binary


def test_rows_with_the_same_holes_are_one_unless_there_are_too_many_kinds(monkeypatch):
    """Their factors are in proportion to their sums, so that a fit need not know them one by one."""
    X = gammas((50, 6))
    X[[7, 30, 41], [2, 4, 2]] = NAN
    found = DenseTable(X, THREADS).merged_marginals
    assert found.weights.shape == (3, 6)
    assert_array_equal(found.merged.group[[7, 30, 41, 0]], [0, 1, 0, 2])
    shares = found.expand_factor(np.array([5.0, 6.0, 1.0]))
    sums = np.nansum(X, 1)
    for part, factor in ((0, 5.0), (1, 6.0), (2, 1.0)):
        inside = found.merged.group == part
        assert_allclose(shares[inside], factor * sums[inside] / sums[inside].sum(), rtol=1e-13)
    alone = found.unmerged()
    assert alone.merged is None
    assert_allclose(phi_of(alone), ~np.isnan(X))
    assert_array_equal(alone.counts[0], (~np.isnan(X)).sum(1))
    assert_allclose(alone.sums[0], sums, rtol=1e-13)
    monkeypatch.setattr(incomplete_tables, "_MAX_GROUPS", 3)
    X = holed(gammas((30, 9)), 0.3)
    found = DenseTable(X, THREADS).merged_marginals
    assert found.sums[0].size == np.isnan(X).any(1).sum() + (~np.isnan(X)).all(1).any()
    assert_allclose(phi_of(found), ~np.isnan(X))


@pytest.mark.parametrize("share", [0.05, 0.4, 0.8])
@pytest.mark.parametrize("kind", ["dense", "flipped", "listed", "weighted", "tensor", "a1gm", "em"])
def test_many_blocks_and_threads_give_the_same_bits(share, kind, monkeypatch):
    monkeypatch.setattr(incomplete_tables, "_CELLS_PER_BLOCK", 300)
    monkeypatch.setattr(marginals, "_CELLS_PER_BLOCK", 10)
    X = holed(gammas((130, 24), 5), share, 5)
    if kind == "a1gm":  # which needs rows and columns without a hole
        X[::2], X[:, ::2] = gammas((65, 24)), gammas((130, 12))
    method = kind if kind in ("a1gm", "em") else "exact"
    data = {"flipped": np.asfortranarray(X), "listed": observe(X), "tensor": X.reshape(130, 4, 6)}.get(kind, X)
    C = weights_for(X) if kind == "weighted" else None
    assert len(DenseTable(X, THREADS).marginals.weights._blocks) > 1
    one, two, three = (fitted(data, method, cell_weight=C, n_jobs=n_jobs) for n_jobs in (1, 2, 3))
    for other in (two, three):
        assert_array_equal(one.W_, other.W_)
        assert_array_equal(one.H_, other.H_)
        assert_array_equal(one.trace_["objective"], other.trace_["objective"])
    monkeypatch.undo()
    assert_allclose(product(fitted(data, method, cell_weight=C)), product(one), rtol=1e-9)


@pytest.mark.parametrize("sizes", [(1e18, 1e-12), (1e30, 1e25), (1e200, 1e100)])
def test_sums_that_a_giant_would_hide(sizes):
    """Both products with the weights, by `math.fsum` over the cells that count."""
    X = holed(gammas((14, 11)), 0.2)
    X[[0, 3, 5], 4], X[[0, 7], 9], X[6, :10] = NAN, NAN, NAN
    w, h = gammas(14, 1), gammas(11, 2)
    h[[4, 9]] = sizes
    w[[0, 6]] = sizes
    hole = np.isnan(X)
    indptr, holes = np.append(0, np.cumsum(hole.sum(1))), np.nonzero(hole)[1].astype(np.int32)
    phi = WeightMatrix.from_missing(indptr, holes, X.shape)
    assert_allclose(phi.matvec(h, THREADS), [math.fsum(h[~row]) for row in hole], rtol=1e-13)
    assert_allclose(phi.rmatvec(w, THREADS), [math.fsum(w[~column]) for column in hole.T], rtol=1e-13)


def test_cells_of_tiny_weight_among_zeros_keep_their_digits():
    X, C = counts((5, 4), 3) + 1.0, np.random.default_rng(0).uniform(0.5, 2.0, (5, 4))
    X[0, 0], C[0, 0] = 0.0, 1.0
    C[2] *= 1e-10
    assert_allclose(product(fitted(X, cell_weight=C, unseen="zero")), np.outer(*oracle.best(X, C)), rtol=1e-9)
    # Of both its weights, none may drown in the 1 that is taken away once.
    rows, columns = np.array([0, 0, 0, 1, 2]), np.array([0, 0, 1, 0, 2])
    values, weights = np.array([1.0, 3.0, 2.0, 1.0, 4.0]), np.array([2e-9, 1e-9, 1e-8, 1.0, 0.5])
    observed = Observed.from_cells(rows, columns, values, (3, 3), weights=weights, duplicates="keep", unseen="zero")
    phi = ListedTable(observed).marginals.weights
    C = np.array([[3e-9, 1e-8, 1.0], [1.0, 1.0, 1.0], [1.0, 1.0, 0.5]])
    assert_allclose(phi.matvec(np.array([1.0, 1.0, 0.0]), THREADS), [1.3e-8, 2.0, 2.0], rtol=1e-13)
    assert_allclose(phi.rmatvec(np.array([1.0, 0.0, 0.0]), THREADS), C[0], rtol=1e-13)
    X = np.array([[5 / 3, 2.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 4.0]])
    assert_allclose(product(fitted(observed, unseen="zero")), np.outer(*oracle.best(X, C)), rtol=1e-9)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("m", [6, 50])
def test_what_is_wrong_with_a_table_is_noticed(order, m):
    X = holed(gammas((9, m)), 0.2)
    assert DenseTable(np.asarray(X, order=order), THREADS).is_valid
    for cells, values in (((4, 3), -1.0), ((4, 3), -1e-300), ((4, 3), np.inf), ((4, 3), -np.inf),
                          ((4, [3, 4]), [np.inf, -np.inf]), (4, 1e308)):  # fmt: skip
        wrong = X.copy()
        wrong[cells] = values
        assert not DenseTable(np.asarray(wrong, order=order), THREADS).is_valid
    assert not DenseTable(np.full((3, 4), NAN), THREADS).is_valid
    assert DenseTable(np.zeros((3, 4)), THREADS).is_valid


def test_a_signature_is_that_of_the_data_however_they_lie():
    X = holed(gammas((9, 7)), 0.2)
    seen = ~np.isnan(X)
    expected = (np.nansum(X, 1), np.nansum(X, 0), seen.sum(1), seen.sum(0))
    first = DenseTable(X, THREADS).marginals.signature(THREADS)
    for table in (DenseTable(X, THREADS), DenseTable(np.asfortranarray(X), THREADS), ListedTable(observe(X))):
        for one, wanted in zip(table.marginals.signature(THREADS), (*expected, first[-1]), strict=True):
            assert_allclose(one, wanted, rtol=1e-13)
    X = np.array([[NAN, 2.0, 1.0], [2.0, NAN, 1.0], [1.0, 1.0, 1.0]])  # the same sums and counts if rows are exchanged
    *same, last = DenseTable(X, THREADS).marginals.signature(THREADS)
    *also, other = DenseTable(X[[1, 0, 2]], THREADS).marginals.signature(THREADS)
    assert all(np.allclose(one, two) for one, two in zip(same, also, strict=True))
    assert not np.allclose(last, other)


def test_tensors_are_unfolded_as_reshape_does():
    a, b, c = gammas(2), gammas(3, 1), gammas(4, 2)
    assert_allclose(kron((a, b, c)), np.kron(np.kron(a, b), c), rtol=1e-15)
    assert kron((a,)) is a
    cube = gammas((2, 3, 4))
    for found, axes in zip(sum_along_axes(cube), ((1, 2), (0, 2), (0, 1)), strict=True):
        assert_allclose(found, cube.sum(axes), rtol=1e-14)
    assert sum_along_axes(a)[0] is a
    assert DenseTable(np.asfortranarray(gammas((4, 15))), THREADS, (3, 5)).marginals.axes == (0, 1, 2)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("share", [0.2, 0.7])
def test_sums_along_the_axes_of_a_tensor(share, weighted):
    X = holed(gammas((4, 3, 5)), share)
    C = weights_for(X) if weighted else None
    flat = X.reshape(4, 15)
    if weighted:
        found = ListedTable(observe(flat, cell_weight=C.reshape(4, 15)), (3, 5)).marginals
    else:
        found = DenseTable(flat, THREADS, (3, 5)).marginals.unmerged()
    data = np.nan_to_num(X) * (C if weighted else 1.0)
    for axis, axes in enumerate(((1, 2), (0, 2), (0, 1))):
        assert_allclose(found.sums[axis], data.sum(axes), rtol=1e-13)
        assert_array_equal(found.counts[axis], (~np.isnan(X)).sum(axes))
    assert found.inner_shape == (3, 5)
    assert found.axes == (0, 1, 2)
