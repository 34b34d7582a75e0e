"""Held-out cells: what a fit sets aside of its training cells, to choose settings by, or when to stop."""

from typing import NamedTuple

import numpy as np

from halfseen.arrays import Array
from halfseen.errors import DataError
from halfseen.observed import Observed

#: Share of the cells by which settings are chosen.
SHARE = 0.2
#: Length of the rankings by which settings and weights are chosen.
LENGTH = 100


def split_validation(observed: Observed, share: float, random: np.random.RandomState) -> tuple[Observed, Observed]:
    """Cells to fit, and a random share to hold out, never the only cell of a row or column."""
    order = random.permutation(observed.nnz)
    is_spare = np.ones(observed.nnz, bool)
    for positions, count in ((observed.row_of_cell(), observed.shape[0]), (observed.indices, observed.shape[1])):
        ordered = positions[order]
        first = np.full(count, -1)
        first[ordered[::-1]] = np.arange(ordered.size)[::-1]
        is_spare &= np.arange(ordered.size) != first[ordered]  # not the first of its row (or column) in this order
    chosen = order[is_spare][: round(share * observed.nnz)]
    if not chosen.size:
        raise DataError(
            "Early stopping must hold cells out of rows and columns that keep others.",
            found=f"none that could be, among {observed.nnz} cells",
            remedy="Set `early_stopping=False`, or raise `validation_fraction`.",
            remedy_cli="Leave out --early-stopping.",
            parameter="early_stopping",
        )
    kept = np.ones(observed.nnz, bool)
    kept[chosen] = False
    return observed.select_cells(np.flatnonzero(kept)), observed.select_cells(np.sort(chosen))


def hold_out(observed: Observed, random: np.random.RandomState, n_times: int = 1) -> list[tuple[Array, Array]]:
    """Positions of the cells for training, and of those held out, at random; all cells of no row are held out.

    Several times, other cells each time. None where there is no cell to hold out.
    """
    pair_of_cell = observed.cell_of_value
    pair_of_cell = np.arange(observed.nnz) if pair_of_cell is None else pair_of_cell
    n_pairs = int(pair_of_cell[-1]) + 1 if pair_of_cell.size else 0
    order, size, rows = random.permutation(n_pairs), round(SHARE * n_pairs), observed.row_of_cell()
    splits = []
    for start in range(0, n_times * size, max(size, 1)):
        is_held = np.zeros(n_pairs, bool)
        is_held[order[start : start + size]] = True
        cells_held = is_held[pair_of_cell]
        left = np.bincount(rows, ~cells_held, observed.shape[0])
        cells_held &= left[rows] > 0
        if cells_held.any():
            splits.append((np.flatnonzero(~cells_held), np.flatnonzero(cells_held)))
    return splits


class HeldOut(NamedTuple):
    """Cells that were held out of some rows: what rankings are judged by."""

    rows: Array
    """Positions of the rows."""
    cells: Observed
    """Their held-out cells."""
    thresholds: Array
    """A column is relevant if its value is at least this; a metric is averaged over these."""

    @classmethod
    def draw(cls, held: Observed, most_rows: int, random: np.random.RandomState) -> "HeldOut":
        """At most so many of the rows that have held-out cells."""
        rows = np.flatnonzero(held.seen_per_row())
        if rows.size > most_rows:
            rows = np.sort(random.choice(rows, most_rows, replace=False))
        return cls(rows, held.select_rows(rows), relevance_thresholds(held.values))

    def values_at(self, columns: Array) -> Array:
        """Values of the held-out cells of the rows at columns, (n_rows, ...); -inf where there is none, and at -1."""
        n, m = self.cells.shape
        keys = self.cells.row_of_cell().astype(np.int64) * m + self.cells.indices
        asked = np.where(columns < 0, -1, np.arange(n)[:, None] * m + columns)
        places = np.minimum(np.searchsorted(keys, asked), max(keys.size - 1, 0))
        return np.where(keys[places] == asked, self.cells.values[places], -np.inf)

    def ndcg(self, values: Array) -> Array:
        """NDCG of rankings whose columns have these values, (n_thresholds, n_rows); NaN where nothing is relevant."""
        discounts = 1 / np.log2(np.arange(2, LENGTH + 2))
        ideal = np.append(np.nan, np.cumsum(discounts))
        scores = []
        for threshold in self.thresholds:
            relevant = np.append(0, np.cumsum(self.cells.values >= threshold))
            n_relevant = relevant[self.cells.indptr[1:]] - relevant[self.cells.indptr[:-1]]
            gains = (values >= threshold) @ discounts[: values.shape[1]]
            scores.append(gains / ideal[np.minimum(n_relevant, LENGTH)])
        return np.array(scores)


def mean_ndcg(of_rows: Array) -> float:
    """The mean over thresholds of the mean over rows; 0 if no row has a relevant column."""
    is_judged = ~np.isnan(of_rows)
    means = np.nansum(of_rows, axis=1) / np.maximum(is_judged.sum(axis=1), 1)
    return float(means[is_judged.any(axis=1)].mean()) if is_judged.any() else 0.0


def relevance_thresholds(values: Array) -> Array:
    """The lowest value above 0, and those that 80, 50 and 20 % of the cells reach: 1, 3, 4, 5 for stars."""
    values = values[values > 0] if (values > 0).any() else values
    return np.unique(np.quantile(values, [0.0, 0.2, 0.5, 0.8], method="inverted_cdf")) if values.size else np.ones(1)
