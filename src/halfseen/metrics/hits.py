"""What of a ranking was relevant, and the metrics of each row that follow."""

from dataclasses import dataclass

import numpy as np

from halfseen.arrays import Array
from halfseen.metrics.held_out import cell_numbers, places_among
from halfseen.observed import Observed


@dataclass(frozen=True)
class Held:
    """The cells of some rows that were held out for test."""

    keys: Array
    """Row * number of columns + column of each cell, ascending."""
    values: Array
    shape: tuple[int, int]

    @classmethod
    def in_(cls, test: Observed) -> "Held":
        """All cells of test, each of which is there once."""
        return cls(cell_numbers(test.indptr, test.indices, test.shape[1]), test.values, test.shape)

    def values_at(self, columns: Array) -> Array:
        """The value in each of the columns that are ranked for each row; -inf where there is none."""
        rows = np.arange(self.shape[0])[:, None]
        places = places_among(np.where(columns < 0, -1, rows * self.shape[1] + columns), self.keys)
        return np.where(places < 0, -np.inf, np.append(self.values, np.nan)[places])

    def count(self, threshold: float) -> Array:
        """How many cells of each row reach the threshold."""
        rows = self.keys[self.values >= threshold] // self.shape[1]
        return np.bincount(rows, minlength=self.shape[0])


def metrics_of_rows(held: Held, columns: Array, k: int, thresholds: Array) -> Array:
    """The four metrics (first axis) for each threshold (second) of each row (third) whose ranked columns are given."""
    values = held.values_at(columns)
    return np.stack([_metrics(values >= one, held.count(one), k) for one in thresholds], axis=1)


def _metrics(hits: Array, count: Array, k: int) -> Array:
    """NDCG, precision, recall and average precision of each row with `count` relevant columns; NaN if it has none."""
    ranks = np.arange(1, hits.shape[1] + 1)
    gain = np.sum(hits / np.log2(ranks + 1), axis=1)
    best_gains = np.append(np.nan, np.cumsum(1 / np.log2(np.arange(2, k + 2))))
    relevant = np.where(count > 0, count, np.nan)
    found = hits.sum(axis=1)
    precisions = np.sum(hits * np.cumsum(hits, axis=1) / ranks, axis=1)
    return np.stack([
        gain / best_gains[np.minimum(count, k)],
        np.where(count > 0, found / k, np.nan),
        found / relevant,
        precisions / np.minimum(relevant, k),
    ])  # fmt: skip
