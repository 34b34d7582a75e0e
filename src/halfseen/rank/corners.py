"""What levels ask of the sizes of an outer product, as linear inequalities: those of the corners of the levels.

Of a cell at level y that is positive, and of one that is negative, they ask

    log tau_y < a_i + b_j <= log tau_{y+1},         log |tau_{y+1}| <= a_i + b_j < log |tau_y|

a and b the logarithms of the sizes; nothing below if that threshold is 0 or of the other sign, nothing where there is
no threshold. Rows of one sign are in the order of their sizes, and so are columns: then a cell's inequality follows
from that of the cell before it (or after it) in its row or its column, if that has its level and sign.
"""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array, csr_array, vstack

from halfseen.arrays import Array
from halfseen.rank.inequalities import Inequalities


@dataclass(frozen=True)
class Sorted:
    """Levels, and the signs 1 and -1 of the rows and columns, each sign's in the order of their sizes."""

    levels: Array
    row_signs: Array
    column_signs: Array
    level_of_zero: int
    n_thresholds: int

    @property
    def signs(self) -> Array:
        return np.outer(self.row_signs, self.column_signs)


def inequalities_of(cells: Sorted, sizes: Array | None) -> Inequalities | None:
    """For thresholds of given sizes, or for free ones (None); None if there is a contradiction at once.

    Free thresholds can be raised a little: no cell need be equal to one, and none need be 0.
    """
    levels, positive, free = cells.levels, cells.signs > 0, sizes is None
    below, above = np.where(positive, levels, levels + 1), np.where(positive, levels + 1, levels)
    bounded_below = np.where(positive, below > cells.level_of_zero, below <= cells.level_of_zero)
    bounded_above = np.where(positive, above <= cells.n_thresholds, above >= 1)
    zero = _threshold_at_zero(sizes)
    if np.any(positive & bounded_above & (above == zero)):
        return None  # no positive number is at most 0
    first, last = _first_and_last(cells)
    parts = [
        _of_cells(bounded_below & first & (below != zero), below, 1, cells.n_thresholds, positive | free),
        _of_cells(bounded_above & last, above, -1, cells.n_thresholds, ~positive | free),
        _of_order(cells.row_signs, 0, cells),
        _of_order(cells.column_signs, cells.row_signs.size, cells),
    ]
    return Inequalities(
        vstack([part.of_unknowns for part in parts], format="csr"),
        vstack([part.of_logs for part in parts], format="csr"),
        np.concatenate([part.strict for part in parts]),
    )


def _threshold_at_zero(sizes: Array | None) -> int:
    """The number of the threshold that is 0, counted from 1, or 0 if none is."""
    return int(np.argmin(sizes)) + 1 if sizes is not None and np.any(sizes == 0) else 0


def _first_and_last(cells: Sorted) -> tuple[Array, Array]:
    """Cells before which, or after which, there is none of their level and sign, in neither direction."""
    rising = cells.levels * cells.signs
    same_rows = (rising[1:] == rising[:-1]) & (cells.row_signs[1:] == cells.row_signs[:-1])[:, None]
    same_columns = (rising[:, 1:] == rising[:, :-1]) & (cells.column_signs[1:] == cells.column_signs[:-1])
    first, last = np.ones((2, *rising.shape), dtype=bool)
    first[1:] &= ~same_rows
    last[:-1] &= ~same_rows
    first[:, 1:] &= ~same_columns
    last[:, :-1] &= ~same_columns
    return first, last


def _of_cells(which: Array, thresholds: Array, way: int, n_thresholds: int, strict: Array) -> Inequalities:
    """way (a_i + b_j - log of the cell's threshold) > 0, or >= 0, for some cells; thresholds count from 1."""
    rows, columns = np.nonzero(which)
    count, number = rows.size, np.arange(rows.size)
    places = np.concatenate([rows, which.shape[0] + columns])
    unknowns = coo_array((np.full(2 * count, way), (np.tile(number, 2), places)), shape=(count, sum(which.shape)))
    logs = coo_array((np.full(count, -way), (number, thresholds[rows, columns] - 1)), shape=(count, n_thresholds))
    return Inequalities(csr_array(unknowns), csr_array(logs), strict[rows, columns])


def _of_order(signs: Array, offset: int, cells: Sorted) -> Inequalities:
    """Each row of a sign (or column, whose unknowns begin at `offset`) is larger than the one before."""
    places = np.flatnonzero(signs[1:] == signs[:-1]) + offset
    count, number = places.size, np.arange(places.size)
    both = np.concatenate([places, places + 1])
    unknowns = coo_array(
        (np.repeat([-1, 1], count), (np.tile(number, 2), both)), shape=(count, sum(cells.levels.shape))
    )
    no_logs = csr_array((count, cells.n_thresholds), dtype=np.int64)
    return Inequalities(csr_array(unknowns), no_logs, np.ones(count, dtype=bool))
