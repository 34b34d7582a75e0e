"""Seen cells and their values, in records and in files."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import halfseen
from halfseen import observe
from halfseen.errors import DataError
from halfseen.ranking import Seen, smallest_exact


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1.0, 5.0], "u1"), ([0.5, 4.5], "f2"), ([-1.0, 1.0], "i1"), ([300.0, 2.0], "f2"), ([5001.0], "u2"),
        ([-5001.0], "i2"), ([0.1], "f8"), ([70001.0], "f4"), ([2.0**24 + 1], "i4"), ([2.0**40 + 1], "f8"),
        ([1e300], "f8"), ([], "u1"), (np.float32([0.1]), "f4"),
    ],
)  # fmt: skip
def test_values_are_kept_in_the_smallest_type_that_holds_them(values, kind):
    values = np.asarray(values, dtype=getattr(values, "dtype", np.float64))
    kept = smallest_exact(values)
    assert kept.dtype == np.dtype(kind)
    assert_array_equal(kept.astype(values.dtype), values)
    assert kept is not values


def test_cells_of_rows_with_their_values():
    X = np.array([[0.5, np.nan, 2.0], [np.nan, np.nan, np.nan], [3.0, 1.5, np.nan]])
    seen = Seen.from_observed(observe(X))
    assert seen.values.dtype == np.float16
    cells = seen.observed(np.array([2, 0, 1]), "missing")
    assert_array_equal(cells.to_dense() if hasattr(cells, "to_dense") else dense(cells), X[[2, 0, 1]])
    assert seen.per_column().tolist() == [2, 1, 1]
    with pytest.raises(DataError, match="Fit again"):
        Seen(seen.indptr, seen.indices, 3).observed(np.array([0]), "missing")


def dense(cells):
    X = np.full(cells.shape, np.nan)
    X[cells.row_of_cell(), cells.indices] = cells.values
    return X


def test_a_cell_with_several_values_counts_once_per_column():
    cells = [("a", "x", 1.0), ("a", "x", 2.0), ("b", "x", 3.0), ("b", "y", 1.0), ("b", "y", 1.0)]
    model = halfseen.Popularity().fit(observe(cells, unseen="zero", duplicates="keep"))
    assert model.seen_.per_column().tolist() == model.popularity_.tolist() == [2, 1]


def test_cells_per_column_where_holes_are_listed():
    X = np.random.default_rng(0).random((6, 5)) + 1
    X[0, 1] = X[3, 3] = X[5, 1] = np.nan
    seen = halfseen.RankOneNMF().fit(X).seen_
    assert seen.lists_holes
    assert seen.per_column().tolist() == [6, 4, 6, 5, 6]


def test_files_keep_the_values_of_cells(tmp_path):
    X = np.random.default_rng(0).integers(0, 6, (9, 7)) * 0.5
    model = halfseen.SquaredOrdNMF(2, max_iter=5, tol=0, random_state=0).fit(X)
    model.save(tmp_path / "model.hs")
    loaded = halfseen.load(tmp_path / "model.hs")
    assert loaded.seen_.values.dtype == np.float16
    assert_array_equal(loaded.seen_.values, model.seen_.values)
    assert repr(loaded.explain(3, 2)) == repr(model.explain(3, 2))
