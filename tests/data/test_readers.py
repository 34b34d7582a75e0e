"""observe: what it takes, and what it says to everything else."""

import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse
from sklearn.utils.estimator_checks import _NotAnArray

from halfseen.data import Observed, observe
from halfseen.errors import DataError

SEEN = Observed.from_cells([0, 0, 1], [0, 2, 1], [1.0, 0.0, 5.0], (2, 3), row_labels=["ann", "bob"])


@pytest.mark.parametrize("X", [None, 5, 2.5, {1, 2}, {"ann": ["x"]}, b"bytes", object(), np.float64(3)])
def test_what_is_no_matrix_is_refused_with_what_would_be(X):
    with pytest.raises(DataError, match=r"must be an array, a scipy sparse matrix, a pandas.*CSV or Parquet file"):
        observe(X)


def test_what_can_become_an_array_is_one():
    assert observe(_NotAnArray(np.array([[1.0, np.nan]]))).values.tolist() == [1]
    assert observe(((1, 2), (3, 4))).values.tolist() == [1, 2, 3, 4]


def test_an_observed_matrix_is_returned_as_it_is():
    assert observe(SEEN) is SEEN
    assert observe(SEEN, unseen=None) is SEEN


def test_an_observed_matrix_takes_another_meaning_of_unseen():
    zero = observe(SEEN, unseen="zero")
    assert (zero.unseen, zero.values.tolist(), zero.row_labels.tolist()) == ("zero", [1, 0, 5], ["ann", "bob"])
    assert observe(zero, unseen=None) is zero


def test_none_means_missing_for_everything_else():
    assert observe([[1.0, np.nan]], unseen=None).unseen == "missing"


def test_new_weights_replace_old_ones():
    weighted = observe(SEEN, cell_weight=[1, 2, 3])
    assert weighted.weights.tolist() == [1, 2, 3]
    assert observe(weighted, cell_weight=[4, 4, 4]).weights.tolist() == [4, 4, 4]
    assert observe(weighted, unseen="zero").weights.tolist() == [1, 2, 3]


def test_kept_repetitions_survive_a_new_meaning_and_may_be_merged_later():
    twice = Observed.from_cells([0, 0], [0, 0], [1.0, 3.0], (1, 1), duplicates="keep")
    assert observe(twice, unseen="zero").values.tolist() == [1, 3]
    assert observe(twice, duplicates="mean").values.tolist() == [2]


def test_nothing_seen_may_be_allowed():
    assert observe([[np.nan, np.nan]], allow_empty=True).shape == (1, 2)


def test_importing_brings_no_frames_and_no_compiler():
    heavy = ["pandas", "polars", "pyarrow", "numba", "sklearn"]
    code = f"import sys, halfseen.data; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


ZEROS = np.array([[1.0, 0.0], [np.nan, 2.0]])
STORED = sparse.csr_array(([1.0, 0.0, 2.0], ([0, 0, 1], [0, 1, 1])))


def test_under_zero_the_zeros_of_dense_arrays_and_wide_tables_are_unseen(tmp_path):
    pd = pytest.importorskip("pandas")
    (tmp_path / "wide.csv").write_text("a,b\n1,0\n,2\n")
    for wide in (ZEROS, pd.DataFrame(ZEROS, columns=["a", "b"]), tmp_path / "wide.csv"):
        assert observe(wide, unseen="zero").values.tolist() == [1, 2]
        assert observe(wide).values.tolist() == [1, 0, 2]


def test_under_zero_stored_zeros_were_seen(tmp_path):
    pd = pytest.importorskip("pandas")
    (tmp_path / "long.csv").write_text("user,item,rating\nann,x,1\nann,y,0\nbob,y,2\n")
    long = pd.DataFrame({"user": [7, 7, 8], "item": ["x", "y", "y"], "rating": [1, 0, 2]})
    for cells in (STORED, STORED.tocsc(), STORED.tocoo(), tmp_path / "long.csv", long):
        assert observe(cells, unseen="zero").values.tolist() == [1, 0, 2]
