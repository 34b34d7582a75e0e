"""Active rows and columns kept and drawn, against plain dictionaries."""

from collections import Counter

import numpy as np
import pytest

from halfseen.data import Observed
from halfseen.data.datasets import as_in_ordnmf, draw_active, k_core, keep_active
from halfseen.errors import DataError, ParameterError


def some(n=60, m=50, share=0.15, seed=0, **further):
    """A matrix whose rows and columns differ much in their cells; every value tells its cell."""
    random = np.random.default_rng(seed)
    chance = np.outer(random.gamma(1.0, 1.0, n), random.gamma(1.0, 1.0, m))
    rows, columns = np.nonzero(random.random((n, m)) < share * chance)
    labels = {"row_labels": [f"r{i}" for i in range(n)], "column_labels": [f"c{j}" for j in range(m)]}
    return Observed.from_cells(rows, columns, rows * 100.0 + columns + 1, (n, m), **labels, **further)


def cells_of(observed):
    rows, columns = observed.row_labels[observed.row_of_cell()], observed.column_labels[observed.indices]
    return set(zip(rows.tolist(), columns.tolist(), observed.values.tolist(), strict=True))


def kept(cells, at_least):
    """Columns first, then rows: as one would do it with a list of triples."""
    per_column = Counter(column for _, column, _ in cells)
    cells = {cell for cell in cells if per_column[cell[1]] >= at_least}
    per_row = Counter(row for row, _, _ in cells)
    return {cell for cell in cells if per_row[cell[0]] >= at_least}


def is_sound(observed):
    """Sorted rows, every row and column with a cell, and values that still belong to their labels."""
    assert observed.indptr[-1] == observed.nnz
    assert observed.shape == (observed.row_labels.size, observed.column_labels.size)
    assert observed.seen_per_row().min() > 0
    assert observed.seen_per_column().min() > 0
    assert all(value == 100 * int(row[1:]) + int(column[1:]) + 1 for row, column, value in cells_of(observed))
    assert all(np.all(np.diff(one) > 0) for one in np.split(observed.indices, observed.indptr[1:-1]))


@pytest.mark.parametrize("at_least", [1, 5, 8])
def test_columns_then_rows_with_enough_cells_stay(at_least):
    observed = some()
    left = keep_active(observed, at_least)
    assert cells_of(left) == kept(cells_of(observed), at_least)
    is_sound(left)


def test_the_core_goes_on_until_nothing_goes():
    observed = some()
    expected = cells_of(observed)
    while (fewer := kept(expected, 6)) != expected:
        expected = fewer
    core = k_core(observed, 6)
    assert cells_of(core) == expected != kept(cells_of(observed), 6)
    is_sound(core)
    assert min(core.seen_per_row().min(), core.seen_per_column().min()) >= 6


def test_asking_for_too_many_is_refused():
    with pytest.raises(DataError, match=r"must have 99 cells or more. Found none among 60 rows and 50 columns"):
        keep_active(some(), 99)
    with pytest.raises(ParameterError, match="at_least must be a whole number of at least 1"):
        keep_active(some(), 0)


def test_weights_go_with_their_cells():
    observed = some()
    observed = some(weights=observed.values / 7)
    for left in (keep_active(observed, 5), draw_active(observed, 20, 10, random_state=0)):
        np.testing.assert_array_equal(left.weights, left.values / 7)


def test_so_many_are_drawn_and_their_cells_are_all_there():
    observed = some()
    drawn = draw_active(observed, 20, 10, random_state=3)
    rows, columns = set(drawn.row_labels), set(drawn.column_labels)
    assert len(columns) == 10
    assert len(rows) == 20
    assert cells_of(drawn) == {cell for cell in cells_of(observed) if cell[0] in rows and cell[1] in columns}
    assert cells_of(drawn) == cells_of(draw_active(observed, 20, 10, random_state=3))
    assert cells_of(drawn) != cells_of(draw_active(observed, 20, 10, random_state=4))


def test_chances_are_in_proportion_to_cells():
    """A first draw of one row hits row i with probability cells_i / cells."""
    observed = Observed.from_cells([0, 0, 0, 0, 0, 0, 1, 1, 1, 3], [0, 1, 2, 3, 4, 5, 0, 1, 2, 0], np.ones(10), (4, 6))
    labelled = Observed.from_cells(
        observed.row_of_cell(), observed.indices, observed.values, (4, 6), row_labels=list("abcd")
    )
    hits = Counter(draw_active(labelled, 1, random_state=seed).row_labels[0] for seed in range(2000))
    assert set(hits) == {"a", "b", "d"}  # c has nothing
    for label, share in (("a", 0.6), ("b", 0.3), ("d", 0.1)):
        assert hits[label] / 2000 == pytest.approx(share, abs=4 * np.sqrt(share * (1 - share) / 2000))


def test_where_there_are_fewer_all_are_taken():
    observed = keep_active(some(), 1)
    assert cells_of(draw_active(observed, 1000, 1000)) == cells_of(observed)
    assert cells_of(draw_active(observed)) == cells_of(observed)


@pytest.mark.parametrize("n_columns", [None, 60])
def test_the_preparation_of_the_paper(n_columns):
    observed = some(120, 90, share=0.5)
    left = as_in_ordnmf(observed, n_rows=50, n_columns=n_columns, random_state=5)
    is_sound(left)
    # The same by triples, with the draws repeated.
    first = kept(cells_of(observed), 20)
    drawn = draw_active(keep_active(observed, 20), 50, n_columns, random_state=5)
    rows, columns = set(drawn.row_labels), set(drawn.column_labels)
    assert len(rows) == 50
    assert cells_of(left) == kept({cell for cell in first if cell[0] in rows and cell[1] in columns}, 20)
    assert left.shape[0] <= 50
    assert left.seen_per_row().min() >= 20
