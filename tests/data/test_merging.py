"""Repeated cells: refused by default, else merged as a dictionary would."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfseen.data import Observed
from halfseen.errors import DataError

from .strategies import CALM, coordinate_cells


def weighted_mean(group):
    return sum(v * w for v, w in group) / sum(w for _, w in group), sum(w for _, w in group)


ORACLES = {
    "sum": lambda group: (sum(v for v, _ in group), sum(w for _, w in group)),
    "mean": weighted_mean,
    "min": lambda group: min(group, key=lambda one: one[0]),
    "max": lambda group: max(group, key=lambda one: one[0]),
    "first": lambda group: group[0],
    "last": lambda group: group[-1],
}


def grouped(rows, columns, values, weights):
    groups = {}
    for row, column, value, weight in zip(rows, columns, values, weights, strict=True):
        groups.setdefault((row, column), []).append((value, weight))
    return dict(sorted(groups.items()))


@CALM
@given(coordinate_cells(), st.sampled_from(sorted(ORACLES)))
def test_merged_cells_are_those_of_a_dictionary(cells, how):
    shape, *arrays = cells
    rows, columns, values, weights = arrays
    expected = {pair: ORACLES[how](group) for pair, group in grouped(*arrays).items()}
    seen = Observed.from_cells(rows, columns, values, shape, weights=weights, duplicates=how)
    assert list(zip(seen.row_of_cell(), seen.indices, strict=True)) == list(expected)
    np.testing.assert_allclose(seen.values, [value for value, _ in expected.values()], rtol=1e-12, atol=1e-9)
    np.testing.assert_array_equal(seen.weights, [weight for _, weight in expected.values()])


@CALM
@given(coordinate_cells())
def test_kept_cells_are_all_there_in_their_order(cells):
    shape, rows, columns, values, weights = cells
    seen = Observed.from_cells(rows, columns, values, shape, weights=weights, duplicates="keep")
    flat = [one for group in grouped(rows, columns, values, weights).values() for one in group]
    assert list(zip(seen.values, seen.weights, strict=True)) == flat


def test_unweighted_cells_merge_without_weights():
    seen = Observed.from_cells([0, 0, 0], [0, 0, 1], [1.0, 4.0, 7.0], (1, 2), duplicates="mean")
    assert (seen.values.tolist(), seen.weights) == ([2.5, 7.0], None)


def test_weightless_cells_have_a_plain_mean():
    seen = Observed.from_cells([0, 0], [0, 0], [1.0, 3.0], (1, 1), weights=[0, 0], unseen="zero", duplicates="mean")
    assert (seen.values.tolist(), seen.weights.tolist()) == ([2.0], [0.0])


def test_a_last_value_of_zero_takes_the_cell_back():
    seen = Observed.from_cells([0, 0, 0], [0, 0, 1], [5, 0, 1], (1, 2), unseen="zero", zeros="drop", duplicates="last")
    assert seen.indices.tolist() == [1]


def test_float32_is_merged_as_float32():
    values = np.array([1, 2], dtype=np.float32)
    assert Observed.from_cells([0, 0], [0, 0], values, (1, 1), duplicates="sum").dtype == np.float32


def test_repeated_cells_are_refused_with_the_first_of_them():
    with pytest.raises(DataError, match=r"Found 3 values for row 'ann', column 'x' \(2 cells are repeated\)"):
        Observed.from_cells(
            [1, 1, 0, 0, 0], [0, 0, 0, 0, 0], [1, 2, 3, 4, 5], (2, 1), row_labels=["ann", "bob"], column_labels=["x"]
        )


def test_the_sentence_says_how_to_merge():
    with pytest.raises(DataError, match=r'row 0, column 1 \(1 cell is repeated\)\. .*observe\(X, duplicates="mean"\)'):
        Observed.from_cells([0, 0], [1, 1], [1, 2], (1, 2))
