"""Observed: built from cells in any order, checked, and seen from both sides."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfseen.data import Observed, observe
from halfseen.errors import DataError, ParameterError

from .strategies import CALM, assert_same, coordinate_cells, half_seen


def small(**options):
    return Observed.from_cells([1, 0, 0], [0, 2, 0], [5.0, 3.0, 1.0], (2, 3), **options)


def test_cells_come_into_row_order():
    seen = small()
    assert seen.indptr.tolist() == [0, 2, 3]
    assert seen.indices.tolist() == [0, 2, 0]
    assert seen.values.tolist() == [1, 3, 5]
    assert (seen.nnz, seen.dtype, seen.indices.dtype) == (3, np.float64, np.int32)


def test_counts_and_rows_of_cells():
    seen = small()
    assert seen.seen_per_row().tolist() == [2, 1]
    assert seen.seen_per_column().tolist() == [2, 0, 1]
    assert seen.row_of_cell().tolist() == [0, 0, 1]


def test_weights_move_with_their_cells():
    assert small(weights=[1, 2, 3]).weights.tolist() == [3, 2, 1]


def test_dense_has_holes_or_zeros():
    np.testing.assert_array_equal(small().to_dense(), [[1, np.nan, 3], [5, np.nan, np.nan]])
    np.testing.assert_array_equal(small(unseen="zero").to_dense(), [[1, 0, 3], [5, 0, 0]])


@CALM
@given(half_seen())
def test_column_order_is_the_stable_sort_by_column(dense):
    seen = observe(dense)
    order = seen.columns.order
    np.testing.assert_array_equal(order, np.argsort(seen.indices, kind="stable"))
    np.testing.assert_array_equal(seen.columns.rows, seen.row_of_cell()[order])
    np.testing.assert_array_equal(np.diff(seen.columns.indptr), seen.seen_per_column())
    assert {seen.columns.indptr.dtype, seen.columns.rows.dtype, order.dtype} == {np.dtype(np.int32)}


def test_column_order_is_made_once():
    seen = small()
    assert seen.columns is seen.columns


@CALM
@given(coordinate_cells(), st.randoms(use_true_random=False))
def test_the_order_of_different_cells_does_not_matter(cells, random):
    shape, rows, columns, values, weights = cells
    once = sorted({pair: k for k, pair in enumerate(zip(rows, columns, strict=True))}.values())
    shuffled = random.sample(once, len(once))
    built = [Observed.from_cells(rows[k], columns[k], values[k], shape, weights=weights[k]) for k in (once, shuffled)]
    assert_same(*built)


@CALM
@given(half_seen(), st.data())
def test_selected_rows_are_rows_of_the_dense_array(dense, data):
    chosen = data.draw(st.lists(st.integers(0, len(dense) - 1), max_size=8))
    labels = np.arange(len(dense)) + 100
    cells = observe(dense)
    seen = dataclasses.replace(cells, row_labels=labels, weights=cells.values + 1).select_rows(np.array(chosen))
    np.testing.assert_array_equal(seen.to_dense(), dense[chosen])
    np.testing.assert_array_equal(seen.weights, seen.values + 1)
    assert seen.row_labels.tolist() == [100 + row for row in chosen]
    assert seen.indptr.dtype == np.int32


def test_rows_are_selected_by_mask():
    np.testing.assert_array_equal(small().select_rows(np.array([False, True])).to_dense(), [[5, np.nan, np.nan]])


def test_nan_is_an_unseen_cell():
    assert Observed.from_cells([0, 0], [0, 1], [np.nan, 2.0], (1, 2)).indices.tolist() == [1]


def test_a_missing_cell_of_weight_zero_is_left_out():
    assert small(weights=[0, 1, 1]).values.tolist() == [1, 3]


def test_under_zero_a_given_zero_was_seen():
    assert Observed.from_cells([0, 0], [0, 1], [0, 4], (1, 2), unseen="zero").indices.tolist() == [0, 1]


def test_where_zeros_are_dropped_a_plain_zero_says_nothing_but_a_weightless_cell_does():
    zero = {"unseen": "zero", "zeros": "drop"}
    seen = Observed.from_cells([0] * 4, [0, 1, 2, 3], [0, 0, 0, 5], (1, 4), weights=[1, 0, 2, 1], **zero)
    assert (seen.indices.tolist(), seen.weights.tolist()) == ([1, 2, 3], [0, 2, 1])
    assert Observed.from_cells([0, 0], [0, 1], [0, 4], (1, 2), **zero).indices.tolist() == [1]
    assert Observed.from_cells([0, 0], [0, 1], [0, 4], (1, 2), zeros="drop").indices.tolist() == [0, 1]


def test_a_zero_kept_beside_another_measurement_stays():
    how = {"unseen": "zero", "zeros": "drop", "duplicates": "keep"}
    seen = Observed.from_cells([0, 0, 0], [0, 0, 1], [0, 4, 0], (1, 2), **how)
    assert seen.values.tolist() == [0, 4]


def test_float32_stays_and_integers_become_float64():
    values = np.array([5, 3, 1], dtype=np.float32)
    seen = Observed.from_cells([1, 0, 0], [0, 2, 0], values, (2, 3), weights=[1, 2, 3])
    assert (seen.values.dtype, seen.weights.dtype) == (np.float32, np.float32)
    assert Observed.from_cells([0], [0], np.array([7], dtype=np.int8), (1, 1)).dtype == np.float64


def test_large_shapes_get_64_bit_indices():
    seen = Observed.from_cells([0, 1], [2**31, 3], [1.0, 2.0], (2, 2**31 + 1))
    assert seen.indices.dtype == np.int64
    assert seen.indices.tolist() == [2**31, 3]


def test_nothing_is_copied_that_is_in_order():
    columns, values = np.array([0, 1, 0], dtype=np.int32), np.array([1.0, 2.0, 3.0])
    seen = Observed.from_cells(np.array([0, 0, 1], dtype=np.int32), columns, values, (2, 2))
    assert np.shares_memory(seen.indices, columns)
    assert np.shares_memory(seen.values, values)


def test_the_matrix_says_what_it_is():
    told = repr(small(row_labels=["ann", "bob"], weights=[1, 1, 1]))
    assert told == "Observed(2 x 3, 3 cells seen (0.5 of all), unseen='missing', float64, weights, row_labels)"


def test_a_cell_says_where_it_is():
    seen = small(row_labels=["ann", "bob"])
    assert [seen.place(cell) for cell in range(3)] == [
        "row 'ann', column 0",
        "row 'ann', column 2",
        "row 'bob', column 0",
    ]


@pytest.mark.parametrize("bad", [np.inf, -np.inf])
def test_infinite_values_are_refused(bad):
    with pytest.raises(DataError, match=rf"must be finite\. Found {bad} at row 1, column 2\. Replace it by NaN"):
        Observed.from_cells([0, 1], [0, 2], [1.0, bad], (2, 3))


def test_the_first_infinite_value_is_named_by_its_labels():
    with pytest.raises(DataError, match=r"Found inf at row 'ann', column 7"):
        Observed.from_cells([0, 0], [1, 0], [np.inf, np.inf], (1, 2), row_labels=["ann"], column_labels=[5, 7])


@pytest.mark.parametrize("bad", [-1.0, np.nan, np.inf])
def test_bad_weights_are_refused(bad):
    with pytest.raises(DataError, match=rf"finite and not negative\. Found {bad} at row 0, column 2"):
        small(weights=[1.0, bad, 1.0])


def test_a_weight_too_large_for_float32_is_refused():
    with pytest.raises(DataError, match=r"Found inf at row 0, column 0"):
        Observed.from_cells([0], [0], np.ones(1, np.float32), (1, 1), weights=[1e300])


@pytest.mark.parametrize(
    ("rows", "columns", "sentence"),
    [
        ([0, 2], [0, 0], r"rows must lie in 0\.\.1\. Found 2 at position 1"),
        ([0, 0], [0, -1], r"columns must lie in 0\.\.2\. Found -1 at position 1"),
        ([0.5, 1.0], [0, 0], "rows must be integers. Found dtype float64"),
        ([0], [0, 1], "of one length. Found lengths 1, 2, 2"),
        ([[0, 1]], [0, 1], r"of one length. Found lengths \(1, 2\), 2, 2"),
    ],
)
def test_bad_positions_are_refused(rows, columns, sentence):
    with pytest.raises(DataError, match=sentence):
        Observed.from_cells(rows, columns, [1.0, 2.0], (2, 3))


def test_complex_and_text_values_are_refused():
    with pytest.raises(DataError, match=r"Complex data not supported"):
        Observed.from_cells([0], [0], [1j], (1, 1))
    with pytest.raises(DataError, match=r"Values must be numbers. Found otherwise: .*'x'"):
        Observed.from_cells([0], [0], ["x"], (1, 1))


def test_a_matrix_must_be_seen_somewhere():
    with pytest.raises(DataError, match=r"At least one cell must be seen. Found none in 2 rows and 3 columns"):
        Observed.from_cells([0], [0], [np.nan], (2, 3))
    with pytest.raises(DataError, match=r"At least one non-zero value must be seen"):
        Observed.from_cells([0], [0], [0.0], (2, 3), unseen="zero")
    with pytest.raises(DataError, match=r"At least one non-zero value must be seen"):
        Observed.from_cells([0, 0], [0, 1], [0.0, 0.0], (2, 3), weights=[2, 1], unseen="zero")
    assert Observed.from_cells([0], [0], [0.0], (2, 3), unseen="zero", allow_empty=True).nnz == 1


def test_nothing_seen_may_be_allowed():
    seen = Observed.from_cells([], [], [], (2, 3), allow_empty=True)
    assert (seen.nnz, seen.indptr.tolist()) == (0, [0, 0, 0])
    assert seen.columns.indptr.tolist() == [0, 0, 0, 0]
    assert np.isnan(seen.to_dense()).all()


def test_unknown_words_are_refused():
    with pytest.raises(ParameterError, match=r"unseen must be one of missing, zero. Found 'gone'"):
        small(unseen="gone")
    with pytest.raises(ParameterError, match=r"duplicates must be one of error, sum, .*keep. Found 'avg'"):
        small(duplicates="avg")
    with pytest.raises(ParameterError, match=r"zeros must be one of keep, drop. Found 'lose'"):
        small(zeros="lose")
