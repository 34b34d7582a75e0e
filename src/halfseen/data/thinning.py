"""Large sets of ratings and counts made smaller: the rows and columns with many cells kept, or drawn."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from halfseen.checks import check_parameters, seed, whole
from halfseen.data.observed import Observed
from halfseen.errors import DataError

#: What Gouvert, Oberlin and Févotte (2020) keep of their sets, by the code of Liang and others (2016).
CELLS_AT_LEAST = 20
LINES_DRAWN = 20_000


def as_in_ordnmf(
    observed: Observed, *, n_rows: int = LINES_DRAWN, n_columns: int | None = None, random_state: Any = None
) -> Observed:
    """The part of a large set that Gouvert, Oberlin and Févotte (2020), section 5.1, work with.

    Columns with at least 20 cells, then rows with at least 20 of those left; then `n_rows` rows drawn without
    replacement in proportion to their cells, and `n_columns` columns likewise (None: all); then columns and rows with
    at least 20 cells again. The paper draws 20,000 users of MovieLens 20M, and 20,000 users and songs of the Taste
    Profile. Where there are fewer, all are taken.

    Parameters
    ----------
    observed : the large set, as `load_ratings` gives it.
    n_rows, n_columns : how many rows and columns are drawn; None: all.
    random_state : None, a whole number or a RandomState: the same number draws the same.
    """
    kept = keep_active(observed)
    drawn = draw_active(kept, n_rows, n_columns, random_state=random_state)
    return keep_active(drawn)


def keep_active(observed: Observed, at_least: int = CELLS_AT_LEAST) -> Observed:
    """The columns of `observed` with `at_least` so many cells, then the rows with at least so many of those left.

    A column may have fewer afterwards: `k_core` goes on until none has.
    """
    check_parameters({"at_least": at_least}, {"at_least": whole(1)})
    kept = _lines(observed, columns=observed.seen_per_column() >= at_least)
    kept = _lines(kept, rows=kept.seen_per_row() >= at_least)
    if not kept.nnz:
        raise DataError(
            f"Some rows and columns must have {at_least} cells or more. Found none among {observed.shape[0]} rows and "
            f"{observed.shape[1]} columns with {observed.nnz} cells. Ask for fewer."
        )
    return _lines(kept, columns=kept.seen_per_column() > 0)


def k_core(observed: Observed, at_least: int) -> Observed:
    """The rows and columns of `observed` with `at_least` so many cells in one another: `keep_active` to the end."""
    kept = keep_active(observed, at_least)
    return kept if kept.shape == observed.shape else k_core(kept, at_least)


def draw_active(
    observed: Observed, n_rows: int | None = None, n_columns: int | None = None, *, random_state: Any = None
) -> Observed:
    """Some rows, then columns, drawn without replacement with chances in proportion to their cells.

    Parameters
    ----------
    observed : what is drawn from.
    n_rows, n_columns : how many; None: all.
    random_state : None, a whole number or a RandomState: the same number draws the same.
    """
    from sklearn.utils import check_random_state

    check_parameters(
        {"n_rows": n_rows or 1, "n_columns": n_columns or 1, "random_state": random_state},
        {"n_rows": whole(1), "n_columns": whole(1), "random_state": seed()},
    )
    random = check_random_state(random_state)
    drawn = _lines(observed, rows=_drawn(observed.seen_per_row(), n_rows, random))
    return _lines(drawn, columns=_drawn(drawn.seen_per_column(), n_columns, random))


def _drawn(cells: np.ndarray, count: int | None, random: np.random.RandomState) -> np.ndarray:
    """Which lines are drawn, as a mask; those without a cell have no chance."""
    kept = cells > 0
    if count is not None and count < kept.sum():
        kept = np.zeros(cells.size, bool)
        kept[random.choice(cells.size, count, replace=False, p=cells / cells.sum())] = True
    return kept


def _lines(observed: Observed, rows: np.ndarray | None = None, columns: np.ndarray | None = None) -> Observed:
    """The cells in the rows and columns of these masks, and no other rows and columns."""
    if rows is not None:
        observed = observed.select_rows(rows)
    if columns is None:
        return observed
    left = observed.select_cells(columns[observed.indices])
    position = (np.cumsum(columns) - 1).astype(left.indices.dtype)
    return replace(
        left,
        indices=position[left.indices],
        shape=(left.shape[0], int(columns.sum())),
        column_labels=None if left.column_labels is None else left.column_labels[columns],
    )
