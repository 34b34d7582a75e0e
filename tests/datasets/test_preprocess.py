"""Preprocessing of papers: active rows and columns against plain dictionaries, values made positive."""

from collections import Counter

import numpy as np
import pytest

from halfseen.datasets import as_in_a1gm, as_in_ordnmf, draw_active, k_core, keep_active
from halfseen.errors import DataError, ParameterError
from halfseen.io import observe
from halfseen.observed import Observed
from tests.datasets.server import cells_of
from tests.io.conftest import refused


def some(n=60, m=50, share=0.15):
    """A matrix whose rows and columns differ much in their cells; every value, and weight, identifies its cell."""
    random = np.random.default_rng(0)
    chance = np.outer(random.gamma(1.0, 1.0, n), random.gamma(1.0, 1.0, m))
    rows, columns = np.nonzero(random.random((n, m)) < share * chance)
    values, labels = rows * 100.0 + columns + 1, {"row_labels": np.arange(n), "column_labels": np.arange(m)}
    return Observed.from_cells(rows, columns, values, (n, m), weights=values / 7, **labels)


def kept(cells, at_least):
    """Columns first, then rows: as one would do it with a dictionary of cells."""
    for side in (1, 0):
        count = Counter(cell[side] for cell in cells)
        cells = {cell: value for cell, value in cells.items() if count[cell[side]] >= at_least}
    return cells


def check_sound(observed, at_least, at_least_per_column=1):
    """Check that rows are sorted and have enough cells, and that values and weights still belong to their labels."""
    assert observed.indptr[-1] == observed.nnz
    assert observed.shape == (observed.row_labels.size, observed.column_labels.size)
    assert observed.seen_per_row().min() >= at_least
    assert observed.seen_per_column().min() >= at_least_per_column
    assert all(value == 100 * row + column + 1 for (row, column), value in cells_of(observed).items())
    assert all(np.all(np.diff(one) > 0) for one in np.split(observed.indices, observed.indptr[1:-1]))
    np.testing.assert_array_equal(observed.weights, observed.values / 7)


@pytest.mark.parametrize("at_least", [1, 5, 8])
def test_columns_then_rows_with_enough_cells_are_kept(at_least):
    left = keep_active(some(), at_least)
    assert cells_of(left) == kept(cells_of(some()), at_least)
    check_sound(left, at_least)


def test_the_core_is_the_limit():
    expected = kept(kept(kept(cells_of(some()), 6), 6), 6)
    core = k_core(some(), 6)
    assert cells_of(core) == kept(expected, 6) == expected != kept(cells_of(some()), 6)
    check_sound(core, 6, 6)


def test_drawn_rows_and_columns_keep_all_their_cells():
    observed, again, other = (draw_active(some(), 20, 10, random_state=seed) for seed in (3, 3, 4))
    drawn, rows, columns = cells_of(observed), set(observed.row_labels), set(observed.column_labels)
    assert drawn == {cell: one for cell, one in cells_of(some()).items() if cell[0] in rows and cell[1] in columns}
    assert drawn == cells_of(again) != cells_of(other)
    assert observed.shape == (20, 10)
    np.testing.assert_array_equal(observed.weights, observed.values / 7)
    assert cells_of(draw_active(some(), 1000, 1000)) == cells_of(draw_active(some())) == cells_of(some())


def test_probabilities_are_proportional_to_cells():
    rows, columns = [0] * 6 + [1] * 3 + [3], [0, 1, 2, 3, 4, 5, 0, 1, 2, 0]
    observed = Observed.from_cells(rows, columns, np.ones(10), (4, 6), row_labels=list("abcd"))
    hits = Counter(draw_active(observed, 1, random_state=seed).row_labels[0] for seed in range(2000))
    assert set(hits) == {"a", "b", "d"}  # c has nothing
    for label, share in (("a", 0.6), ("b", 0.3), ("d", 0.1)):
        assert hits[label] / 2000 == pytest.approx(share, abs=4 * np.sqrt(share * (1 - share) / 2000))


@pytest.mark.parametrize("n_columns", [None, 60])
def test_the_preprocessing_of_the_ordnmf_paper(n_columns):
    observed = some(120, 90, share=0.5)
    left = as_in_ordnmf(observed, n_rows=50, n_columns=n_columns, random_state=5)
    drawn = draw_active(keep_active(observed, 20), 50, n_columns, random_state=5)
    assert (drawn.shape[0], cells_of(left)) == (50, kept(cells_of(drawn), 20))
    check_sound(left, 20)


def test_negatives_become_positive_and_zeros_the_mean_with_missing_cells_at_one():
    prepared = as_in_a1gm(observe(np.array([[0.0, -3.0, np.nan], [5.0, -0.0, 2.0]])))
    mean = (3 + 1 + 5 + 2) / 6  # by hand: the two zeros count as 0, the missing cell as 1
    np.testing.assert_allclose(prepared.to_dense(), [[mean, 3, np.nan], [5, mean, 2]], rtol=1e-15)
    assert as_in_a1gm(observe([[0.0, np.nan]])).values.tolist() == [0.5]
    seen = observe(np.array([[0, -1], [2, 3]], dtype=np.float32), cell_weight=[1, 2, 3, 4])
    prepared = as_in_a1gm(seen)
    assert (prepared.dtype, prepared.values.tolist()) == (np.float32, [1.5, 1, 2, 3])
    assert (prepared.weights.tolist(), seen.values.tolist()) == ([1, 2, 3, 4], [0, -1, 2, 3])


def test_what_is_refused():
    for at_least, error in ((99, DataError), (0, ParameterError)):
        with refused(error, parameter="at_least"):
            keep_active(some(), at_least)
    with refused(found="only zeros"):
        as_in_a1gm(observe(np.zeros((2, 2))))
    with refused(parameter="unseen", found="'zero'"):
        as_in_a1gm(observe([[1.0, 0.0]], unseen="zero"))
