"""Dense, masked and sparse input."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from halfseen.data import Observed, arrays, observe
from halfseen.errors import DataError

from .strategies import CALM, assert_same, half_seen, numbers

HOLES = [[1.0, np.nan, 0.0], [np.nan, 2.0, 3.0]]
CELLS = Observed.from_cells([0, 0, 1, 1], [0, 2, 1, 2], [1, 0, 2, 3], (2, 3))
nonzero = numbers.filter(lambda number: number != 0)


@CALM
@given(half_seen(), st.sampled_from([np.float64, np.float32]), st.sampled_from("CF"))
def test_dense_round_trip(dense, dtype, order):
    array = np.array(dense, dtype=dtype, order=order)
    before = array.copy()
    seen = observe(array)
    np.testing.assert_array_equal(seen.to_dense(), before)
    np.testing.assert_array_equal(array, before)
    assert seen.dtype == dtype


@CALM
@given(half_seen())
def test_blocks_do_not_show(dense):
    whole = observe(dense)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrays, "CELLS_PER_BLOCK", 5)
        assert_same(observe(dense), whole)


@pytest.mark.parametrize(
    "X",
    [
        HOLES,
        np.array(HOLES),
        np.array([[1, None, 0], [None, 2, 3]], dtype=object),
        [["1", None, "0"], [None, "2", 3]],
        np.ma.masked_array([[1, np.inf, 0], [7, 2, 3]], mask=[[0, 1, 0], [1, 0, 0]]),
        np.array(HOLES, dtype=np.float16),
        np.array(HOLES, dtype=np.longdouble),
        np.array(HOLES).astype(">f8"),
    ],
    ids=["lists", "array", "objects", "text", "masked", "half", "long double", "big endian"],
)
def test_every_dense_kind_gives_the_same_matrix(X):
    assert_same(observe(X), CELLS)


def test_pandas_missing_values_in_an_object_array_are_unseen():
    pandas = pytest.importorskip("pandas")
    assert_same(observe(np.array([[1, pandas.NA, 0], [pandas.NaT, "2", 3]], dtype=object)), CELLS)


def test_integers_and_bools_are_values():
    assert observe(np.array([[1, 0], [2, 3]])).values.tolist() == [1, 0, 2, 3]
    assert observe(np.array([[True, False]])).values.tolist() == [1, 0]


def test_under_zero_dense_zeros_are_unseen():
    assert observe(HOLES, unseen="zero").values.tolist() == [1, 2, 3]


def as_format(name, coordinates):
    if name == "bsr":
        return sparse.bsr_array(coordinates.tocsr(), blocksize=(1, 1))
    return coordinates.asformat(name)


@CALM
@given(half_seen(values=nonzero))
def test_every_sparse_format_gives_the_same_matrix(dense):
    rows, columns = np.nonzero(~np.isnan(dense))
    coordinates = sparse.coo_array((dense[rows, columns], (rows, columns)), shape=dense.shape)
    for name in ("csr", "csc", "coo", "bsr", "lil", "dok", "dia"):
        assert_same(observe(as_format(name, coordinates)), observe(dense))


@pytest.mark.parametrize("name", ["csr", "csc", "coo", "bsr"])
def test_a_stored_zero_is_a_value_and_a_stored_nan_is_unseen(name):
    stored = sparse.coo_array(([1.0, 0.0, np.nan, 2.0, 3.0], ([0, 0, 1, 1, 1], [0, 2, 0, 1, 2])), shape=(2, 3))
    assert_same(observe(as_format(name, stored)), CELLS)


def test_a_canonical_csr_matrix_is_not_copied():
    matrix = sparse.random_array((30, 20), density=0.3, format="csr", rng=np.random.default_rng(0))
    seen = observe(matrix)
    assert np.shares_memory(seen.values, matrix.data)
    assert np.shares_memory(seen.indices, matrix.indices)


def test_an_unsorted_csr_matrix_is_left_as_it_was():
    matrix = sparse.csr_array((np.array([3.0, 1.0]), np.array([2, 0]), np.array([0, 2])), shape=(1, 3))
    assert observe(matrix).indices.tolist() == [0, 2]
    assert matrix.indices.tolist() == [2, 0]
    assert matrix.data.tolist() == [3, 1]


def test_repeated_stored_cells_follow_duplicates():
    matrix = sparse.coo_array(([1.0, 5.0], ([0, 0], [1, 1])), shape=(1, 2))
    with pytest.raises(DataError, match=r"Found 2 values for row 0, column 1"):
        observe(matrix)
    assert observe(matrix, duplicates="last").values.tolist() == [5]
    assert matrix.nnz == 2


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csc_array])
def test_slack_behind_the_stored_cells_is_not_read(kind):
    matrix = kind((np.array([1.0, 2.0, 9.0]), np.array([0, 1, 0]), np.array([0, 1, 2])), shape=(2, 2))
    np.testing.assert_array_equal(observe(matrix).to_dense(), [[1, np.nan], [np.nan, 2]])


@pytest.mark.parametrize(
    ("X", "sentence"),
    [
        (np.array([["1", "a"]]), r"Values must be numbers\. Found 'a' at row 0, column 1\. Turn it into a number"),
        ([[1.0, 2.0], [3.0, "x"]], "Found 'x' at row 1, column 1"),
        (np.array([[1, None], [None, "b"]], dtype=object), "Found 'b' at row 1, column 1"),
        ([1.0, 2.0], "Expected 2D array, got 1D array instead"),
        (np.zeros((2, 2, 2)), "Found array with dim 3"),
        (np.zeros((3, 0)), r"0 feature\(s\) \(shape=\(3, 0\)\) while a minimum of 1 is required."),
        (np.zeros((0, 3)), r"0 sample\(s\) \(shape=\(0, 3\)\) while a minimum of 1 is required."),
        (np.array([[1j]]), "Complex data not supported"),
        ([[1, 2], [3]], "lists of one length"),
        ([[1, np.inf]], "Found inf at row 0, column 1"),
        ([[np.nan]], "At least one cell must be seen"),
        (sparse.coo_array([1.0, 2.0]), r"must have rows and columns. Found a sparse array of shape \(2,\)"),
        (sparse.csr_array(np.array([[1j]])), "Complex data not supported"),
        (sparse.csr_array((2, 0)), r"0 feature\(s\)"),
        (sparse.csr_array((2, 2)), "At least one cell must be seen"),
    ],
)
def test_arrays_that_cannot_be_used(X, sentence):
    with pytest.raises(DataError, match=sentence):
        observe(X)


def test_an_object_that_is_no_number_keeps_its_type_error():
    with pytest.raises(TypeError, match=r"argument must be .* string.* number"):
        observe(np.array([[{"foo": "bar"}, 1.0]], dtype=object))


@pytest.mark.parametrize("option", [{"layout": "long"}, {"columns": ("u", "i", "r")}, {"cell_weight": "w"}])
@pytest.mark.parametrize("X", [np.ones((2, 3)), sparse.csr_array(np.ones((2, 3))), CELLS])
def test_arrays_have_no_headers(X, option):
    with pytest.raises(DataError, match=r"speak of frames and files"):
        observe(X, **option)
