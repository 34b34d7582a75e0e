"""Dense and sparse arrays, an Observed again, triples; weights; columns placed among fitted ones."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.utils.estimator_checks import _NotAnArray

from halfseen.errors import DataError, ParameterError
from halfseen.io import observe, reader
from halfseen.observed import Observed
from tests.data.strategies import CALM, assert_same, half_seen, numbers
from tests.io.conftest import refused

HOLES = [[1.0, np.nan, 0.0], [np.nan, 2.0, 3.0]]
CELLS = Observed.from_cells([0, 0, 1, 1], [0, 2, 1, 2], [1, 0, 2, 3], (2, 3))


@CALM
@given(half_seen(), st.sampled_from([np.float64, np.float32]), st.sampled_from("CF"), st.sampled_from([5, 1 << 22]))
def test_dense_arrays_come_back(dense, dtype, order, block):
    array = np.array(dense, dtype=dtype, order=order)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reader, "CELLS_PER_BLOCK", block)
        seen = observe(array)
    np.testing.assert_array_equal(seen.to_dense(), dense.astype(dtype))
    np.testing.assert_array_equal(array, dense.astype(dtype))
    assert seen.dtype == dtype


@pytest.mark.parametrize(
    "X",
    [
        tuple(map(tuple, HOLES)),
        _NotAnArray(np.array(HOLES)),
        np.array([[1, pd.NA, False], [pd.NaT, "2", 3]], dtype=object),
        [["1", None, "0"], [None, "2", 3]],
        np.ma.masked_array([[1, np.inf, 0], [7, 2, 3]], mask=[[0, 1, 0], [1, 0, 0]]),
        *(np.array(HOLES, dtype=dtype) for dtype in (np.float16, np.longdouble, ">f8")),
    ],
)
def test_every_dense_kind_gives_the_same_matrix(X):
    assert_same(observe(X), CELLS)


def as_format(name, coordinates):
    return sparse.bsr_array(coordinates.tocsr(), blocksize=(1, 1)) if name == "bsr" else coordinates.asformat(name)


@CALM
@given(half_seen(values=numbers.filter(bool)))
def test_every_sparse_format_gives_the_same_matrix(dense):
    rows, columns = np.nonzero(~np.isnan(dense))
    coordinates = sparse.coo_array((dense[rows, columns], (rows, columns)), shape=dense.shape)
    for name in ("csr", "csc", "coo", "bsr", "lil", "dok", "dia"):
        assert_same(observe(as_format(name, coordinates)), observe(dense))


def test_what_sparse_matrices_store_and_that_they_stay_as_they_were():
    stored = sparse.coo_array(([1.0, 0.0, np.nan, 2.0, 3.0], ([0, 0, 1, 1, 1], [0, 2, 0, 1, 2])), shape=(2, 3))
    for name in ("csr", "csc", "coo", "bsr"):
        assert_same(observe(as_format(name, stored)), CELLS)
        assert observe(as_format(name, stored), unseen="zero").values.tolist() == [1, 0, 2, 3]
    matrix = sparse.random_array((30, 20), density=0.3, format="csr", rng=np.random.default_rng(0))
    assert np.shares_memory(observe(matrix).values, matrix.data)
    unsorted = sparse.csr_array((np.array([3.0, 1.0]), np.array([2, 0]), np.array([0, 2])), shape=(1, 3))
    assert observe(unsorted).indices.tolist() == [0, 2]
    assert unsorted.indices.tolist() == [2, 0]
    slack = sparse.csc_array((np.array([1.0, 2.0, 9.0]), np.array([0, 1, 0]), np.array([0, 1, 2])), shape=(2, 2))
    np.testing.assert_array_equal(observe(slack).to_dense(), [[1, np.nan], [np.nan, 2]])
    twice = sparse.coo_array(([1.0, 5.0], ([0, 0], [1, 1])), shape=(1, 2))
    assert observe(twice, duplicates="last").values.tolist() == [5]


def test_under_zero_the_zeros_of_dense_arrays_and_wide_tables_are_unobserved(tmp_path):
    (tmp_path / "wide.csv").write_text("a,b,c\n1,,0\n,2,3\n")
    (tmp_path / "long.csv").write_text("user,item,rating\nann,x,1\nann,y,0\nbob,y,2\n")
    for wide in (HOLES, pd.DataFrame(HOLES, columns=list("abc")), tmp_path / "wide.csv"):
        assert observe(wide, unseen="zero").values.tolist() == [1, 2, 3]
        assert observe(wide).values.tolist() == [1, 0, 2, 3]
    assert observe(tmp_path / "long.csv", unseen="zero").values.tolist() == [1, 0, 2]


def test_triples_are_a_long_table():
    triples = [("ann", "x", 5), ("bob", "y", 3), ("ann", "y", None)]
    seen = observe(triples)
    assert (seen.row_labels.tolist(), seen.column_labels.tolist()) == (["ann", "bob"], ["x", "y"])
    np.testing.assert_array_equal(seen.to_dense(), [[5, np.nan], [np.nan, 3]])
    assert observe([(7, 1, 5), (8, 1, 3)], layout="long").row_labels.tolist() == [7, 8]
    assert observe([(7, 1, 5), (8, 1, 3)]).shape == (2, 3)  # a table of three columns, unless it is said
    with refused(found="'three'", where="in triple 1, for row 'bob', column 'y'"):
        observe([("ann", "x", 5), ("bob", "y", "three")])


def test_an_observed_is_returned_as_it_is_unless_something_else_is_asked_for():
    named = Observed.from_cells([0, 0, 1], [0, 2, 1], [1, 0, 5], (2, 3), row_labels=["ann", "bob"])
    assert observe(named) is observe(named, unseen=None) is named
    zero = observe(named, unseen="zero", cell_weight=[1, 2, 3])
    assert (zero.unseen, zero.values.tolist(), zero.weights.tolist()) == ("zero", [1, 0, 5], [1, 2, 3])
    assert zero.row_labels.tolist() == ["ann", "bob"]
    assert observe(zero, unseen="missing").weights.tolist() == [1, 2, 3]
    twice = Observed.from_cells([0, 0], [0, 0], [1.0, 3.0], (1, 1), duplicates="keep")
    assert observe(twice, unseen="zero").values.tolist() == [1, 3]
    assert observe(twice, duplicates="mean").values.tolist() == [2]


@pytest.mark.parametrize(
    ("X", "found"),
    [
        *((X, "^X must be an array") for X in (None, 5, {1, 2}, {"ann": ["x"]}, b"bytes", np.float64(3))),
        (np.array([[1, None], [None, "b"]], dtype=object), "'b' at row 1, column 1"),
        ([[1, np.inf]], "inf at row 0, column 1"),
        ([1.0, 2.0], "Expected 2D array, got 1D array instead"),  # scikit-learn's words, which its checks ask for
        (np.zeros((3, 0)), r"0 feature\(s\) \(shape=\(3, 0\)\) while a minimum of 1 is required."),
        (sparse.csr_array(np.array([[1j]])), "Complex data not supported"),
        ([[1, 2], [3]], "lists of one length"),
        (sparse.coo_array([1.0, 2.0]), r"shape \(2,\)"),
        (sparse.csr_array((2, 2)), "none in 2 rows and 2 columns"),
        (pd.Series([1.0, 2.0]), "2-dimensional container"),
    ],
)
def test_what_cannot_be_used_is_refused(X, found):
    with pytest.raises(DataError, match=found):
        observe(X)


def test_options_of_tables_are_refused_for_arrays():
    options = {"layout": "long"}, {"columns": ("u", "i")}, {"cell_weight": "w"}, {"header": True}, {"decimal": ","}
    for X, option in product((np.ones((2, 3)), sparse.csr_array(np.ones((2, 3))), CELLS), options):
        with refused(found="them with an array"):
            observe(X, **option)


def test_options_must_make_sense():
    wrong = {
        "columns": ["user", ("a",), ("a", "b", "c", "d"), ("a", "a", "b")], "layout": ["tall"], "na_values": ["-"],
        "levels": ["high", [], ["low", "low"], ["low", 2], ["low", " "]],
    }  # fmt: skip
    for option in (
        *({name: one} for name in wrong for one in wrong[name]),
        {"columns": ("a", "b"), "cell_weight": "b"},
    ):
        with refused(ParameterError, parameter=next(iter(option))):
            observe([[1.0]], **option)


# Weights, and columns placed among those of a fitted model.

X = np.array([[1.0, np.nan, 3.0], [np.nan, 5.0, np.nan]])
WEIGHTS = np.array([[1.0, np.nan, 2.0], [-1.0, 4.0, np.inf]])


def stored(values):
    return sparse.csr_array((values, ([0, 0, 1], [0, 2, 1])), shape=(2, 3))


def test_weights_of_every_form():
    for weights in (WEIGHTS, WEIGHTS.tolist(), [1, 2, 4], stored([1, 2, 4]), stored([1, 2, 4]).tocsc()):
        for kind in (X, stored([1.0, 3.0, 5.0]), observe(X)):
            assert observe(kind, cell_weight=weights).weights.tolist() == [1, 2, 4]


def test_weights_that_cannot_be_used_are_refused():
    for weights, found, where in (
        (np.ones((3, 2)), "(3, 2)", ""),
        (np.ones(4), "4", ""),
        (sparse.csr_array((3, 3)), "(3, 3)", ""),
        (sparse.csr_array((2, 3)), "none", "at row 0, column 0"),
        (sparse.csr_array([[1.0, 0, 0], [0, 1, 0]]), "none", "at row 0, column 2"),
        (sparse.csr_array(np.ones((2, 3))), "6 weights for 3 cells", ""),
    ):
        with refused(parameter="cell_weight", found=found, where=where):
            observe(X, cell_weight=weights)


def test_columns_are_placed_among_the_fitted_ones():
    new = Observed.from_cells([0, 1], [0, 1], [1.0, 2.0], (2, 2), column_labels=["z", "x"])
    placed = observe(new, column_labels=["x", "y", "z"])
    np.testing.assert_array_equal(placed.to_dense(), [[np.nan, np.nan, 1], [2, np.nan, np.nan]])
    for array in (X, stored([1.0, 3.0, 5.0])):
        placed = observe(array, column_labels=["x", "y", "z"])
        assert_same(placed, observe(X))
        assert placed.column_labels.tolist() == ["x", "y", "z"]
    with refused(parameter="X", found="3, without names"):
        observe(X, column_labels=["x", "y"])
    with refused(found="'q' (2 unknown in all)"):
        observe([("a", "x", 1), ("a", "q", 1), ("a", "r", 1)], column_labels=["x", "y"])
