"""Preprocessing as in papers: active rows and columns of ratings kept or drawn, values of tables made positive."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from halfseen.errors import DataError
from halfseen.observed import Observed
from halfseen.validation import Seed, check_parameters, seed, whole


def as_in_ordnmf(
    observed: Observed, *, n_rows: int = 20_000, n_columns: int | None = None, random_state: Seed = None
) -> Observed:
    """Draw a subset of a large dataset as Gouvert, Oberlin and Févotte (2020), section 5.1.

    `keep_active`, then `draw_active`, then `keep_active` again, as in the code of Liang et al. (2016). The paper draws
    20,000 users of MovieLens 20M, and 20,000 users and songs of the Taste Profile.

    Parameters
    ----------
    observed : Observed
        The data.
    n_rows, n_columns : int, default=20,000 and None
        Numbers of rows and columns to draw, see `draw_active`.
    random_state : int, RandomState or None, default=None
        Random seed.

    Returns
    -------
    Observed
        Cells in the rows and columns drawn.
    """
    return keep_active(draw_active(keep_active(observed), n_rows, n_columns, random_state=random_state))


def keep_active(observed: Observed, at_least: int = 20) -> Observed:
    """Keep columns with enough cells, then rows with enough of the remaining cells; see also `k_core`.

    Parameters
    ----------
    observed : Observed
        The data.
    at_least : int, default=20
        Minimum number of cells.

    Returns
    -------
    Observed
        Cells in the rows and columns kept; columns that are now empty are dropped.
    """
    check_parameters({"at_least": at_least}, {"at_least": whole(1)})
    kept = _select_columns(observed, observed.seen_per_column() >= at_least)
    kept = kept.select_rows(kept.seen_per_row() >= at_least)
    if not kept.nnz:
        n, m = observed.shape
        must = f"Some rows and columns must have at least {at_least} cells."
        where = f"among {n} rows and {m} columns with {observed.nnz} cells"
        raise DataError(must, found="none", where=where, remedy="Lower `at_least`.", parameter="at_least")
    return _select_columns(kept, kept.seen_per_column() > 0)


def k_core(observed: Observed, at_least: int) -> Observed:
    """Keep the rows and columns that have enough cells in each other: `keep_active` until nothing changes.

    Parameters
    ----------
    observed : Observed
        The data.
    at_least : int
        Minimum number of cells.

    Returns
    -------
    Observed
        Cells in the rows and columns kept.
    """
    kept = keep_active(observed, at_least)
    return kept if kept.shape == observed.shape else k_core(kept, at_least)


def draw_active(
    observed: Observed, n_rows: int | None = None, n_columns: int | None = None, *, random_state: Seed = None
) -> Observed:
    """Draw rows, then columns, without replacement and with probabilities proportional to their cells.

    Parameters
    ----------
    observed : Observed
        The data.
    n_rows, n_columns : int, default=None
        Numbers to draw; None, or more than there are: all that have a cell.
    random_state : int, RandomState or None, default=None
        Random seed.

    Returns
    -------
    Observed
        Cells in the rows and columns drawn.
    """
    from sklearn.utils import check_random_state

    sizes = {"n_rows": n_rows or 1, "n_columns": n_columns or 1}
    rules = dict.fromkeys(sizes, whole(1)) | {"random_state": seed()}
    check_parameters({**sizes, "random_state": random_state}, rules)
    random = check_random_state(random_state)
    for axis, count in enumerate((n_rows, n_columns)):
        cells = observed.seen_per_column() if axis else observed.seen_per_row()
        mask = cells > 0
        if count is not None and count < mask.sum():
            mask[:] = False
            mask[random.choice(cells.size, count, replace=False, p=cells / cells.sum())] = True
        observed = _select_columns(observed, mask) if axis else observed.select_rows(mask)
    return observed


def _select_columns(observed: Observed, mask: np.ndarray) -> Observed:
    left = observed.select_cells(mask[observed.indices])
    indices = (np.cumsum(mask) - 1).astype(left.indices.dtype)[left.indices]
    labels = None if left.column_labels is None else left.column_labels[mask]
    return replace(left, indices=indices, shape=(left.shape[0], int(mask.sum())), column_labels=labels)


def as_in_a1gm(observed: Observed) -> Observed:
    """Make every value positive as Ghalamkari and Sugiyama (2022), section 3.2, do.

        x -> |x|,    and then    0 -> (sum of |x| + number of missing cells) / (number of cells)

    Zeros become the mean of the matrix in which every missing cell is 1. The paper says only "the average value of the
    matrix"; with missing cells at 1 its results are reproduced to the printed digits.

    Parameters
    ----------
    observed : Observed
        The data, with ``unseen="missing"``.

    Returns
    -------
    Observed
        The same cells with positive values.
    """
    if observed.unseen != "missing":
        remedy = 'Read the data with `unseen="missing"`.'
        raise DataError('must be "missing".', parameter="unseen", found=repr(observed.unseen), remedy=remedy)
    values, n_missing = np.abs(observed.values), observed.n_unobserved
    zeros = values == 0
    if zeros.all() and n_missing == 0:
        raise DataError("Some value must not be 0.", found="only zeros", remedy="Leave the matrix as it is.")
    values[zeros] = float((values.sum(dtype=np.float64) + n_missing) / (values.size + n_missing))
    return replace(observed, values=values)
