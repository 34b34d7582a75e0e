"""Weights of cells, and columns placed among those of a fitted model."""

import numpy as np
import pytest
from hypothesis import given
from scipy import sparse

from halfseen.data import Observed, observe
from halfseen.errors import DataError, ParameterError

from .strategies import CALM, assert_same, half_seen

X = np.array([[1.0, np.nan, 3.0], [np.nan, 5.0, np.nan]])
WEIGHTS = np.array([[1.0, np.nan, 2.0], [-1.0, 4.0, np.inf]])


def stored(values):
    return sparse.csr_array((values, ([0, 0, 1], [0, 2, 1])), shape=(2, 3))


@pytest.mark.parametrize(
    "weights",
    [WEIGHTS, WEIGHTS.tolist(), [1.0, 2.0, 4.0], stored([1.0, 2.0, 4.0]), stored([1.0, 2.0, 4.0]).tocsc()],
    ids=["dense", "lists", "one each", "csr", "csc"],
)
@pytest.mark.parametrize("kind", [np.asarray, lambda _: stored([1.0, 3.0, 5.0]), observe], ids=["X", "csr", "Observed"])
def test_weights_of_every_form(kind, weights):
    assert observe(kind(X), cell_weight=weights).weights.tolist() == [1, 2, 4]


@CALM
@given(half_seen())
def test_sparse_weights_find_their_cells_in_any_order(dense):
    rows, columns = np.nonzero(~np.isnan(dense))
    weight = np.arange(1.0, rows.size + 1)
    backwards = sparse.coo_array((weight[::-1], (rows[::-1], columns[::-1])), shape=dense.shape)
    assert observe(dense, cell_weight=backwards).weights.tolist() == weight.tolist()


@pytest.mark.parametrize(
    ("weights", "sentence"),
    [
        (np.ones((3, 2)), r"must have the shape of X, \(2, 3\)\. Found \(3, 2\)"),
        (np.ones(4), "one weight for each of the 3 cells. Found 4"),
        (sparse.csr_array((3, 3)), r"must have the shape of X, \(2, 3\)\. Found \(3, 3\)"),
        (sparse.csr_array((2, 3)), "a weight for every cell of X. Found none at row 0, column 0"),
        (sparse.csr_array([[1.0, 0, 0], [0, 1, 0]]), "Found none at row 0, column 2"),
        (sparse.csr_array(np.ones((2, 3))), "the same cells as X. Found 6 weights for 3 cells"),
        ([1.0, -2.0, 1.0], r"not negative. Found -2.0 at row 0, column 2"),
        ([1.0, np.nan, 1.0], r"not negative. Found nan at row 0, column 2"),
    ],
)
def test_weights_that_cannot_be_used(weights, sentence):
    with pytest.raises(DataError, match=sentence):
        observe(X, cell_weight=weights)


def test_a_labelled_matrix_is_placed_among_the_fitted_columns():
    new = Observed.from_cells([0, 1], [0, 1], [1.0, 2.0], (2, 2), column_labels=["z", "x"])
    placed = observe(new, column_labels=["x", "y", "z"])
    np.testing.assert_array_equal(placed.to_dense(), [[np.nan, np.nan, 1], [2, np.nan, np.nan]])
    assert placed.column_labels.tolist() == ["x", "y", "z"]


@pytest.mark.parametrize("kind", [np.asarray, lambda _: stored([1.0, 3.0, 5.0])], ids=["dense", "csr"])
def test_an_array_takes_the_fitted_labels_as_they_are(kind):
    placed = observe(kind(X), column_labels=np.array(["x", "y", "z"]))
    assert_same(placed, observe(X))
    assert placed.column_labels.tolist() == ["x", "y", "z"]


def test_an_array_of_another_width_than_fitted_is_refused():
    with pytest.raises(DataError, match=r"the 2 columns that were fitted. Found 3, without names"):
        observe(X, column_labels=["x", "y"])


@pytest.mark.parametrize("columns", ["user", ("a",), ("a", "b", "c", "d"), ("a", "a", "b")])
def test_columns_must_be_two_or_three_different_names(columns):
    with pytest.raises(ParameterError, match=r"columns must name different headers"):
        observe(X, columns=columns)


def test_the_column_of_weights_is_no_id():
    with pytest.raises(ParameterError, match=r"columns must name different headers"):
        observe(X, columns=("a", "b", "c"), cell_weight="b")


def test_layout_is_one_of_three():
    with pytest.raises(ParameterError, match=r"layout must be one of auto, long, wide. Found 'tall'"):
        observe(X, layout="tall")
