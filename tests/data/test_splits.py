"""Cells parted into training and test."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse, stats

from halfseen.data import Observed, observe
from halfseen.data.splits import k_folds, split_cells
from halfseen.errors import DataError, ParameterError

from .strategies import CALM, assert_same, half_seen


def cells_of(observed):
    """Every cell as (row, column, value, weight), in order."""
    weights = np.ones(observed.nnz) if observed.weights is None else observed.weights
    return list(zip(observed.row_of_cell(), observed.indices, observed.values, weights, strict=True))


def together(*parts):
    return sorted(cell for part in parts for cell in cells_of(part))


@CALM
@given(half_seen(least=2), st.floats(0.01, 0.99), st.integers(0, 100))
def test_every_cell_goes_to_one_part(dense, share, seed):
    seen = observe(dense)
    count = round(share * seen.nnz)
    if not 0 < count < seen.nnz:
        with pytest.raises(DataError, match=r"Training and test must have a cell each"):
            split_cells(dense, share, seed)
        return
    train, test = split_cells(dense, share, seed)
    assert test.nnz == count
    assert together(train, test) == together(seen)
    for part in (train, test):
        assert_same(part, observe(part.to_dense()))  # row order, pointers and dtypes as `observe` makes them


def test_a_number_of_cells():
    dense = np.arange(12.0).reshape(3, 4)
    for count in (1, np.int64(5), 11):
        train, test = split_cells(dense, count, 0)
        assert (train.nnz, test.nnz) == (12 - count, count)


def test_everything_else_stays():
    frame = pd.DataFrame(
        {"user": list("aabbc"), "item": list("xyxyx"), "rating": [1.0, 2, 3, 4, 0], "w": [1.0, 2, 3, 4, 5]}
    )
    seen = observe(frame, columns=("user", "item", "rating"), cell_weight="w", unseen="zero")
    train, test = split_cells(seen, 0.4, 0)
    for part in (train, test):
        assert part.row_labels is seen.row_labels
        assert part.column_labels is seen.column_labels
        assert (part.unseen, part.shape) == ("zero", (3, 2))
    assert together(train, test) == together(seen)  # the stored 0 was seen, and its weight goes with it


def test_single_precision_stays():
    for part in split_cells(np.ones((4, 4), np.float32), 0.5, 0):
        assert part.dtype == np.float32


@pytest.mark.parametrize("kind", ["sparse", "long", "wide", "file"])
def test_inputs_of_every_kind(kind, tmp_path):
    dense = np.where(np.eye(5) > 0, np.nan, np.arange(25.0).reshape(5, 5) + 1)
    rows, columns = np.nonzero(~np.isnan(dense))
    long = pd.DataFrame({"user": rows, "item": columns, "rating": dense[rows, columns]})
    long.to_csv(tmp_path / "cells.csv", index=False)
    X = {
        "sparse": sparse.coo_array((dense[rows, columns], (rows, columns)), dense.shape),
        "long": long,
        "wide": pd.DataFrame(dense),
        "file": tmp_path / "cells.csv",
    }[kind]
    train, test = split_cells(X, 5, 0)
    assert (train.nnz, test.nnz) == (15, 5)
    assert together(train, test) == together(observe(X))


def test_zeros_of_a_dense_array_are_drawn_only_as_values():
    counts = np.array([[3.0, 0, 1], [0, 2, 0], [1, 0, 0]])
    assert sum(part.nnz for part in split_cells(counts, 0.5, 0)) == 9
    train, test = split_cells(counts, 0.5, 0, unseen="zero")
    assert train.unseen == test.unseen == "zero"
    assert train.nnz + test.nnz == 4
    np.testing.assert_array_equal(train.to_dense() + test.to_dense(), counts)


def test_the_same_seed_parts_alike_and_another_does_not():
    dense = np.random.default_rng(0).random((20, 20))
    first, again, other = (split_cells(dense, 0.3, seed) for seed in (7, 7, 8))
    for a, b in zip(first, again, strict=True):
        assert_same(a, b)
    assert cells_of(first[1]) != cells_of(other[1])
    state = np.random.RandomState(7)
    assert cells_of(split_cells(dense, 0.3, state)[1]) == cells_of(first[1])
    assert cells_of(split_cells(dense, 0.3, state)[1]) != cells_of(first[1])


def test_every_cell_is_equally_likely():
    drawn = np.zeros(10)
    state = np.random.RandomState(0)
    for _ in range(2000):
        drawn[split_cells(np.ones((2, 5)), 0.3, state)[1].to_dense().reshape(-1) == 1] += 1
    assert drawn.sum() == 6000
    assert stats.chisquare(drawn).pvalue > 1e-3


def test_values_of_one_place_stay_together():
    rows = np.repeat(np.arange(30), 3)
    seen = Observed.from_cells(rows, np.repeat(np.arange(30) % 4, 3), np.arange(90.0), (30, 4), duplicates="keep")
    train, test = split_cells(seen, 0.2, 0)
    assert (train.nnz, test.nnz) == (72, 18)
    assert not set(train.row_of_cell()) & set(test.row_of_cell())
    for train, test in k_folds(seen, 3, 0):
        assert (train.nnz, test.nnz) == (60, 30)
        assert not set(train.row_of_cell()) & set(test.row_of_cell())


@CALM
@given(half_seen(least=2), st.integers(2, 6))
def test_folds_part_the_cells(dense, n_folds):
    seen = observe(dense)
    if seen.nnz < n_folds:
        with pytest.raises(DataError, match=rf"Found {seen.nnz} cells for {n_folds} folds. Make fewer folds."):
            k_folds(dense, n_folds)
        return
    tests = []
    for train, test in k_folds(dense, n_folds, 0):
        assert together(train, test) == together(seen)
        tests.append(test)
    assert len(tests) == n_folds
    assert together(*tests) == together(seen)
    assert max(test.nnz for test in tests) - min(test.nnz for test in tests) <= 1


def test_little_room_is_taken():
    """In arrays of one float64 a cell; the two parts themselves take one and a half."""
    rng = np.random.default_rng(0)
    rows, columns = np.divmod(rng.choice(4_000_000, 200_000, replace=False), 1000)
    seen = Observed.from_cells(rows, columns, rng.random(200_000), (4000, 1000))
    split_cells(seen)
    tracemalloc.start()
    try:
        split_cells(seen)
        assert tracemalloc.get_traced_memory()[1] < 4 * 8 * 200_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("test_size", [0, 0.0, 1.0, -0.1, 1.5, -3, None, "0.2", True, np.nan])
def test_no_test_size(test_size):
    with pytest.raises(ParameterError, match=r"test_size must be a share .* Found .* Use 0.2 for a fifth"):
        split_cells(np.ones((3, 3)), test_size)


@pytest.mark.parametrize(("test_size", "count"), [(0.01, 0), (0.99, 9), (9, 9), (100, 100)])
def test_nothing_left(test_size, count):
    sentence = rf"Found 9 seen, of which test_size={test_size} makes {count} test cells. Choose another test_size\."
    with pytest.raises(DataError, match=sentence):
        split_cells(np.ones((3, 3)), test_size)


def test_a_single_cell():
    with pytest.raises(DataError, match=r"Found 1 seen, .*Choose another test_size, or get more cells."):
        split_cells([[np.nan, 2.0]], 1)


def test_other_bad_input():
    with pytest.raises(DataError, match="At least one cell must be seen"):
        split_cells([[np.nan]])
    with pytest.raises(ParameterError, match="random_state must be None, a whole number"):
        split_cells(np.ones((3, 3)), random_state="0")
    with pytest.raises(ParameterError, match=r"unseen must be one of missing, zero. Found 'none'"):
        split_cells(np.ones((3, 3)), unseen="none")
    with pytest.raises(ParameterError, match=r"n_folds must be a whole number of at least 2. Found 1"):
        k_folds(np.ones((3, 3)), 1)
