"""Observed: built from cells in any order, merged, checked, and seen from both sides."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfseen import observed as module
from halfseen.errors import DataWarning, ParameterError
from halfseen.io import observe
from halfseen.labels import Places
from halfseen.observed import Observed, match_cells
from tests.data.strategies import CALM, assert_same, coordinate_cells, half_seen
from tests.io.conftest import refused


def small(**options):
    return Observed.from_cells([1, 0, 0], [0, 2, 0], [5.0, 3.0, 1.0], (2, 3), **options)


def test_cells_are_sorted_with_their_weights():
    seen = small(weights=[1, 2, 3])
    assert (seen.indptr.tolist(), seen.indices.tolist(), seen.values.tolist()) == ([0, 2, 3], [0, 2, 0], [1, 3, 5])
    assert (seen.weights.tolist(), seen.nnz, seen.n_unobserved) == ([3, 2, 1], 3, 3)
    assert (seen.seen_per_row().tolist(), seen.seen_per_column().tolist()) == ([2, 1], [2, 0, 1])
    assert [seen.place(cell) for cell in (0, 2)] == ["row 0, column 0", "row 1, column 0"]
    np.testing.assert_array_equal(seen.to_dense(), [[1, np.nan, 3], [5, np.nan, np.nan]])
    np.testing.assert_array_equal(small(unseen="zero").to_dense(), [[1, 0, 3], [5, 0, 0]])
    prints = {one.fingerprint() for one in (small(), small(unseen="zero"), seen, seen.select_cells([0, 1]))}
    assert len(prints) == 4
    told = repr(small(row_labels=["ann", "bob"], weights=[1, 1, 1]))
    assert told == "Observed(2 x 3, 3 cells seen (0.5 of all), unseen='missing', float64, weights, row_labels)"


@pytest.fixture(params=["NumPy", "compiled", "threads"])
def sorting(request, monkeypatch):
    """Every way to sort cells, which depends on their number."""
    monkeypatch.setattr(module, "SMALL", module.SMALL if request.param == "NumPy" else 0)
    monkeypatch.setattr(module, "LARGE", 0 if request.param == "threads" else module.LARGE)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_order_of_cells_does_not_matter(sorting, weighted):
    @CALM
    @given(coordinate_cells(), st.randoms(use_true_random=False))
    def law(cells, random):
        shape, rows, columns, values, weights = cells
        weights = weights if weighted else None
        once = sorted({pair: k for k, pair in enumerate(zip(rows, columns, strict=True))}.values())
        built = [
            Observed.from_cells(rows[k], columns[k], values[k], shape, weights=weights[k] if weighted else None)
            for k in (once, random.sample(once, len(once)))
        ]
        assert_same(*built)
        order = built[0].columns.order
        np.testing.assert_array_equal(order, np.argsort(built[0].indices, kind="stable"))
        np.testing.assert_array_equal(built[0].columns.rows, built[0].row_of_cell()[order])
        np.testing.assert_array_equal(np.diff(built[0].columns.indptr), built[0].seen_per_column())
        assert {one.dtype for one in (order, built[0].columns.rows, built[0].indptr)} == {np.dtype(np.int32)}

    law()


@CALM
@given(half_seen(), st.data())
def test_selected_rows_and_cells(dense, data):
    chosen = data.draw(st.lists(st.integers(0, len(dense) - 1), max_size=8))
    cells = observe(dense)
    cells = dataclasses.replace(cells, row_labels=np.arange(len(dense)) + 100, weights=cells.values + 1)
    seen = cells.select_rows(np.array(chosen))
    np.testing.assert_array_equal(seen.to_dense(), dense[chosen])
    np.testing.assert_array_equal(seen.weights, seen.values + 1)
    assert seen.row_labels.tolist() == [100 + row for row in chosen]
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=cells.nnz, max_size=cells.nnz)))
    assert_same(cells.select_cells(mask), cells.select_cells(np.flatnonzero(mask)))
    expected = dense.copy()
    expected[cells.row_of_cell()[~mask], cells.indices[~mask]] = np.nan
    np.testing.assert_array_equal(cells.select_cells(mask).to_dense(), expected)


def test_what_carries_no_information_is_dropped():
    weights, drop = {"weights": [1, 0, 2, 1]}, {"unseen": "zero", "zeros": "drop"}
    for first, options, kept in (
        (np.nan, {}, [1, 2, 3]),
        (0, weights, [0, 2, 3]),
        (0, {"unseen": "zero"}, [0, 1, 2, 3]),
        (0, drop, [3]),
        (0, drop | weights, [1, 2, 3]),
        (0, {"zeros": "drop"}, [0, 1, 2, 3]),
    ):
        seen = Observed.from_cells([0] * 4, [0, 1, 2, 3], [first, 0, 0, 5], (1, 4), **options)
        assert seen.indices.tolist() == kept


def test_types_are_kept_and_nothing_is_copied_that_is_in_order():
    single = np.array([5, 3, 3], dtype=np.float32)
    seen = Observed.from_cells([1, 0, 0], [0, 2, 2], single, (2, 3), weights=[1, 2, 3], duplicates="sum")
    assert (seen.values.dtype, seen.weights.dtype) == (np.float32, np.float32)
    large = Observed.from_cells([0, 1], [2**31, 3], [1, 2], (2, 2**31 + 1))
    assert (large.indices.dtype, large.indices.tolist(), large.dtype) == (np.int64, [2**31, 3], np.float64)
    columns, values = np.array([0, 1, 0], dtype=np.int32), np.array([1.0, 2.0, 3.0])
    seen = Observed.from_cells(np.array([0, 0, 1], dtype=np.int32), columns, values, (2, 2))
    assert np.shares_memory(seen.indices, columns)
    assert np.shares_memory(seen.values, values)
    empty = Observed.from_cells([], [], [], (2, 3), allow_empty=True)
    assert (empty.nnz, empty.indptr.tolist(), empty.columns.indptr.tolist()) == (0, [0, 0, 0], [0, 0, 0, 0])


ORACLES = {
    "sum": lambda group: (sum(v for v, _ in group), sum(w for _, w in group)),
    "mean": lambda group: (sum(v * w for v, w in group) / sum(w for _, w in group), sum(w for _, w in group)),
    "min": lambda group: min(group, key=lambda one: one[0]),
    "max": lambda group: max(group, key=lambda one: one[0]),
    "first": lambda group: group[0],
    "last": lambda group: group[-1],
}


@CALM
@given(coordinate_cells(), st.sampled_from([*sorted(ORACLES), "keep"]))
def test_cells_are_merged_as_by_a_dictionary(cells, how):
    shape, *arrays = cells
    groups = {}
    for row, column, value, weight in zip(*arrays, strict=True):
        groups.setdefault((row, column), []).append((value, weight))
    groups = dict(sorted(groups.items()))
    expected = [(p, *one) for p, g in groups.items() for one in (g if how == "keep" else [ORACLES[how](g)])]
    rows, columns, values, weights = arrays
    seen = Observed.from_cells(rows, columns, values, shape, weights=weights, duplicates=how)
    assert list(zip(seen.row_of_cell(), seen.indices, strict=True)) == [pair for pair, _, _ in expected]
    np.testing.assert_allclose(seen.values, [value for _, value, _ in expected], rtol=1e-12, atol=1e-9)
    np.testing.assert_array_equal(seen.weights, [weight for _, _, weight in expected])
    assert seen.n_unobserved == shape[0] * shape[1] - len(groups)


def test_merging_at_the_edges():
    mean = Observed.from_cells([0, 0], [0, 0], [1, 3], (1, 1), weights=[0, 0], unseen="zero", duplicates="mean")
    assert (mean.values.tolist(), mean.weights.tolist()) == ([2.0], [0.0])
    zero = {"unseen": "zero", "zeros": "drop"}
    last = Observed.from_cells([0, 0, 0], [0, 0, 1], [5, 0, 1], (1, 2), **zero, duplicates="last")
    assert last.indices.tolist() == [1]  # the last value takes the first back
    kept = Observed.from_cells([0, 0, 0], [0, 0, 1], [0, 4, 0], (1, 2), **zero, duplicates="keep")
    assert kept.values.tolist() == [0, 4]  # a 0 measured beside another value is no unseen cell


def test_bad_cells_are_refused_with_their_place():
    names, numbers, pair = {"row_labels": ["a", "b"]}, {"column_labels": [5, 7, 9]}, ([0, 0], [0, 2], [1.0, 2.0])
    for cells, options, found, where in (
        (([0, 1], [0, 2], [1.0, np.inf]), {}, "inf", "at row 1, column 2"),
        (([0, 1], [0, 2], [1.0, -np.inf]), names | numbers, "-inf", "at row 'b', column 9"),
        (pair, {"weights": [1, -1]}, "-1.0", "at row 0, column 2"),
        (pair, {"weights": [1, np.nan]}, "nan", "at row 0, column 2"),
        (([0], [0], np.ones(1, np.float32)), {"weights": [1e300]}, "inf", "at row 0, column 0"),
        (([1, 1, 0, 0, 0], [0] * 5, [1] * 5), names, "3 values", "for row 'a', column 0 (2 cells are repeated)"),
        (([0, 2], [0, 0], [1.0, 2.0]), {}, "2", "at position 1"),
        (([0, 0], [0, -1], [1.0, 2.0]), {}, "-1", "at position 1"),
        (([0.5, 1.0], [0, 0], [1.0, 2.0]), {}, "dtype float64", ""),
        (([[0, 1]], [0, 1], [1.0, 2.0]), {}, "lengths (1, 2), 2, 2", ""),
        (([0], [0], [1j]), {}, "dtype complex128", ""),
        (([0], [0], ["x"]), {}, "otherwise: could not convert string to float: np.str_('x')", ""),
        (([0], [0], [np.nan]), {}, "none", "in 2 rows and 3 columns"),
        (([0], [0], [0.0]), {"unseen": "zero"}, "none", "in 2 rows and 3 columns"),
        (([0], [0], [1.0]), {"row_labels": ["a"]}, "1 labels for 2 rows", ""),
        (([0], [0], [1.0]), {"column_labels": ["a", "b", "a"]}, "'a' more than once", ""),
    ):
        with refused(found=found, where=where):
            Observed.from_cells(*cells, (2, 3), **options)


@pytest.mark.parametrize("name", ["unseen", "duplicates", "zeros"])
def test_unknown_options_are_refused(name):
    with refused(ParameterError, parameter=name, found="'else'"):
        small(**{name: "else"})


def test_cells_are_matched_to_a_model_by_labels():
    seen = small(row_labels=["ann", "bob"], column_labels=["x", "y", "z"])
    model = Places(np.array(["zoe", "ann"], object), np.array(["z", "x"], object))
    with pytest.warns(DataWarning, match=r"1 of 3 .*row 'bob', column 'x'"):
        matched = match_cells(seen, (2, 2), model, "test", duplicates="keep")
    np.testing.assert_array_equal(matched.to_dense(), [[np.nan, np.nan], [3, 1]])
    with refused(parameter="test", found="2 rows without labels"):
        match_cells(small(), (5, 3), Places(), "test", duplicates="keep")
