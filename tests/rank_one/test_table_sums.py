"""Marginals of dense tables and products with weights, against plain NumPy."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from halfseen.rankone.table_sums import (
    block_sums,
    dense_table_sums,
    group_equal_rows,
    weight_matvec,
    weight_rmatvec,
    weight_rmatvec_columns,
)

NAN = np.nan
indices = pytest.mark.parametrize("index", [np.int32, np.int64])


def half_seen(n, m, share, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    X = rng.poisson(1.5, (n, m)) * rng.gamma(1.0, 1.0, (n, m))
    return np.where(rng.random((n, m)) < share, NAN, X).astype(dtype)


class Sums:
    """What `dense_table_sums` finds in a table."""

    def __init__(self, X, index=np.int32, column_sums=0.0):
        n, m = X.shape
        self.row_sums, self.column_sums = np.full(n, -7.0), np.full(m, column_sums)
        rows, indptr = np.full(n, -7, np.int64), np.full(n + 1, -7, np.int64)
        holes, found = np.full(X.size + 1, -7, index), np.full(6, -7.0)
        listed = dense_table_sums(X, self.row_sums, self.column_sums, rows, indptr, holes, np.empty(m, np.uint8), found)
        self.rows, self.indptr = rows[:listed], indptr[: listed + 1]
        self.holes = holes[: self.indptr[-1]]
        self.negatives, self.whole, self.lowest, self.highest, self.fewest, self.most = found.tolist()


def assert_sums(X, index=np.int32):
    found, hole = Sums(X, index), np.isnan(X)
    Y = np.nan_to_num(X.astype(np.float64))
    row_sums, with_holes = Y.sum(1), hole.any(1)
    assert_allclose(found.row_sums, row_sums, rtol=1e-14, atol=1e-300)
    assert_allclose(found.column_sums, Y.sum(0), rtol=1e-14, atol=1e-300)
    assert_array_equal(found.rows, np.flatnonzero(with_holes))
    assert_array_equal(np.diff(found.indptr), hole.sum(1)[with_holes])
    assert_array_equal(found.holes, np.nonzero(hole)[1])
    assert found.negatives == (X < 0).sum()
    assert found.whole == pytest.approx(row_sums[~with_holes].sum(), rel=1e-14, abs=1e-300)
    above = row_sums > 0
    assert found.lowest == pytest.approx(row_sums[above].min(initial=np.inf), rel=1e-14)
    assert found.highest == pytest.approx(row_sums[above].max(initial=0.0), rel=1e-14)
    positive = (Y > 0).sum(1)[above].astype(float)
    assert (found.fewest, found.most) == (positive.min(initial=np.inf), positive.max(initial=0.0))


@indices
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_tables_of_any_width(dtype, index):
    """Narrow tables are looked over first: both sides of that width, and every remainder of a loop unrolled."""
    for m in [*range(1, 21), 31, 32, 33, 34, 40, 65]:
        for share in (0.0, 0.03, 0.4, 1.0):
            assert_sums(half_seen(7, m, share, m, dtype), index)


@pytest.mark.parametrize("m", [5, 40])
def test_odd_tables_and_infinities(m):
    whole = half_seen(6, m, 0.0) + 1.0
    zero_row = whole.copy()
    zero_row[2], zero_row[3, 1] = 0.0, 0.0
    for table in (whole, zero_row, np.zeros((4, m)), np.full((4, m), NAN), whole[:0], whole[:, :1].copy()):
        assert_sums(table)
    for value in (-1.0, -0.0, 5e-324):
        odd = half_seen(6, m, 0.2)
        odd[0, 0], odd[4] = value, value
        assert_sums(odd)
    for value in (np.inf, -np.inf):
        X = half_seen(6, m, 0.2) + 1.0
        X[3, 2] = value
        found = Sums(X)
        assert found.row_sums[3] == found.column_sums[2] == value
        assert found.highest == np.inf or found.negatives == 1
    X[3, 1] = np.inf  # both of them in one row
    assert np.isnan(Sums(X).row_sums[3])
    assert Sums(X).negatives == 1
    assert Sums(X).column_sums[1] == np.inf


def test_columns_are_added_to_singles_in_double_and_nothing_is_nothing():
    X = half_seen(6, 5, 0.3)
    assert_allclose(Sums(X, column_sums=2.0).column_sums, np.nansum(X, 0) + 2.0, rtol=1e-14)
    X = np.full((3, 50_000), 0.1, np.float32)
    assert_allclose(Sums(X).row_sums, 50_000 * float(np.float32(0.1)), rtol=1e-12)
    empty = np.empty(0)
    out = np.empty(0)
    weight_matvec(np.zeros(1, np.int64), np.empty(0, np.int32), empty, np.ones(3), 1.0, 3.0, out)
    weight_rmatvec(np.zeros(1, np.int64), np.empty(0, np.int32), empty, empty, out)
    sums = np.empty(2)
    weight_matvec(np.zeros(3, np.int64), np.empty(0, np.int32), empty, empty, 1.0, 0.0, sums)
    assert_array_equal(sums, 0.0)


# Sums over lists of cells


class List:
    """A list of cells of a grid and their changes; `phi` is what it means, cell by cell."""

    def __init__(self, n, m, share, kind, index, seed=0, repeated=False):
        rng = np.random.default_rng(seed)
        listed = rng.random((n, m)) < share
        counts, columns = listed.sum(1), np.nonzero(listed)[1]
        if repeated:  # as cells that were seen twice
            counts, columns = 2 * counts, np.repeat(columns, 2)
        self.indptr = np.append(0, np.cumsum(counts)).astype(np.int64 if index == np.int64 else np.int32)
        self.indices = columns.astype(index)
        size = columns.size
        self.change = {
            "holes": np.broadcast_to(np.float64(-1.0), (size,)),
            "seen": np.broadcast_to(np.float64(1.0), (size,)),
            "weights": rng.uniform(0.0, 3.0, size),
            "weighted zeros": rng.uniform(-0.5, 2.0, size),
        }[kind]
        self.base = 1.0 if kind in ("holes", "weighted zeros") else 0.0
        self.phi = np.full((n, m), self.base)
        np.add.at(self.phi, (np.repeat(np.arange(n), counts), columns), self.change)

    def of_rows(self, far):
        out = np.full(len(self.phi), -7.0)
        weight_matvec(self.indptr, self.indices, self.change, far, self.base, float(far.sum()), out)
        return out

    def of_columns(self, near):
        out = np.full(self.phi.shape[1], self.base * near.sum())
        weight_rmatvec(self.indptr, self.indices, self.change, near, out)
        return out

    def anew(self, near, wanted):
        out = np.where(np.isin(np.arange(self.phi.shape[1]), wanted), 0.0, -7.0)
        room = np.ones(self.phi.shape[1])
        weight_rmatvec_columns(self.indptr, self.indices, self.change, near, wanted, room, out)
        assert (room == 1).all()
        return out


LISTS = [("holes", False), ("seen", False), ("weights", False), ("weighted zeros", False), ("weights", True)]


@indices
@pytest.mark.parametrize(("kind", "repeated"), LISTS)
def test_sums_over_lists(kind, repeated, index):
    for m in range(1, 21):
        for share in (0.0, 0.1, 0.5, 1.0):
            cells = List(6, m, share, kind, index, m, repeated)
            rng = np.random.default_rng(m)
            near, far = rng.gamma(1.0, 1.0, 6), rng.gamma(1.0, 1.0, m)
            assert_allclose(cells.of_rows(far), cells.phi @ far, rtol=1e-13, atol=1e-13)
            assert_allclose(cells.of_columns(near), near @ cells.phi, rtol=1e-13, atol=1e-13)


@indices
@pytest.mark.parametrize("kind", ["holes", "weighted zeros"])
@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_columns_summed_anew(kind, share, index):
    cells = List(9, 12, share, kind, index, repeated=False)
    near = np.random.default_rng(0).gamma(1.0, 1.0, 9)
    for wanted in (np.arange(12), np.array([3, 4, 11]), np.array([0])):
        found = cells.anew(near, wanted)
        assert_allclose(found[wanted], (near @ cells.phi)[wanted], rtol=1e-13, atol=1e-15)
        others = np.setdiff1d(np.arange(12), wanted)
        assert_array_equal(found[others], -7.0)


def test_cancellation_and_repeated_cells():
    """A cell of weight 0.4 seen twice, in a grid of zeros: 1 is taken away once. And a giant that does not count."""
    change = np.array([-1.0, 0.4 - 1.0, 0.4, -1.0])
    indptr, indices = np.array([0, 3, 4]), np.array([0, 1, 1, 0], np.int32)
    out = np.zeros(3)
    weight_rmatvec_columns(indptr, indices, change, np.array([2.0, 3.0]), np.arange(3), np.ones(3), out)
    assert_allclose(out, [0.0, 0.8 * 2.0 + 3.0, 5.0], rtol=1e-14)
    rows = np.empty(2)
    weight_matvec(indptr, indices, change, np.array([1e20, 2.0, 5.0]), 1.0, 1e20, rows)
    assert_allclose(rows, [0.8 * 2.0 + 5.0, 7.0], rtol=1e-14)
    # A hundredth of the total, more or less, is what decides whether the rest is summed anew.
    rng = np.random.default_rng(2)
    for left in (0.5, 0.02, 0.0101, 0.0099, 1e-3, 1e-9, 1e-15):
        far = rng.gamma(1.0, 1.0, 40)
        far[20] = far[np.arange(40) != 20].sum() * (1 / left - 1)
        out = np.empty(1)
        weight_matvec(np.array([0, 1]), np.array([20]), np.array([-1.0]), far, 1.0, float(far.sum()), out)
        assert_allclose(out[0], math.fsum(np.delete(far, 20)), rtol=2e-14)


# Rows that are alike, and sums beside a block


def groups_of(lists, room, index=np.int32):
    indptr = np.append(0, np.cumsum([len(one) for one in lists])).astype(np.int64)
    indices = np.array([cell for one in lists for cell in one], index)
    group, firsts = np.full(len(lists), -7), np.full(room, -7)
    count = group_equal_rows(indptr, indices, group, firsts)
    return count, group, firsts


@indices
def test_rows_with_the_same_list_are_of_one_group(index):
    lists = [(1, 3), (2,), (1, 3), (1,), (1, 2, 3), (2,), (), (1, 3), (3, 1), (), (1, 4)]
    count, group, firsts = groups_of(lists, 20, index)
    assert count == len(set(lists))
    assert_array_equal(group, [list(dict.fromkeys(lists)).index(one) for one in lists])
    assert_array_equal(firsts[:count], [lists.index(one) for one in dict.fromkeys(lists)])
    assert_array_equal(firsts[count:], -7)
    assert groups_of(lists, count)[0] == count
    assert [groups_of(lists, room)[0] for room in range(count)] == [-1] * count
    assert groups_of([], 0)[0] == groups_of([], 3)[0] == 0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_beside_a_block(dtype):
    X = half_seen(9, 13, 0.3, dtype=dtype)
    free = np.arange(13) % 3 == 0
    for rows in (np.array([1, 4, 8]), np.arange(9), np.array([5]), np.empty(0, np.int64)):
        beside, below = np.full(rows.size, -7.0), np.full(13, 2.0)
        block_sums(X, rows, free, beside, below)
        part = X[rows].astype(np.float64)
        assert_allclose(beside, np.nansum(part[:, free], 1), rtol=1e-14)
        assert_allclose(below, np.nansum(part, 0) + 2.0, rtol=1e-14)
