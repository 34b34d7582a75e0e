"""Neighbours of the residuals: what the rows most alike show beyond what the Gaussian knows.

To a hole in column j the weighted mean of the residuals of the nearest rows that show j is added. The distance is over
the other columns, completed, each weighted by its partial correlation with j:

    d_j(a, b)^2 = sum_l |rho_jl| (z_al - z_bl)^2,       rho_jl = -P_jl / sqrt(P_jj P_ll)

A neighbour weighs 1 / (d / median d + .1); some neighbours of residual 0 stand beside those found.
"""

from dataclasses import dataclass

import numpy as np
from sklearn.neighbors import NearestNeighbors

from halfseen.arrays import Array
from halfseen.imputation.gaussian import Conditional

#: Neighbours of a cell, and how many of residual 0 stand beside them.
N_NEIGHBOURS, N_ZEROS = 10, 2.0
#: Columns that a distance is over, at most: those most correlated; rows among which neighbours are looked for.
MOST_COLUMNS, MOST_ROWS = 60, 5_000


@dataclass(frozen=True)
class Neighbours:
    """Rows among which neighbours are found.

    Parameters
    ----------
    model : Gaussian or FactorModel
        What completed the rows; its precision gives the distances.
    rows : ndarray of shape (n, p)
        Completed rows on the standard scale.
    residuals : ndarray of shape (n, p)
        What a seen cell has beyond the model's prediction from the others of its row; NaN where nothing was seen.
    groups : ndarray of shape (p,)
        Columns with the same number are missing together (those of one category).
    """

    model: Conditional
    rows: Array
    residuals: Array
    groups: Array

    @classmethod
    def of(cls, model: Conditional, filled: Array, seen: Array, groups: Array) -> "Neighbours":
        """From rows completed by a model."""
        if len(filled) > MOST_ROWS:
            some = np.linspace(0, len(filled) - 1, MOST_ROWS).astype(int)
            filled, seen = filled[some], seen[some]
        residuals = np.where(seen, leave_one_out(model, filled, groups), np.nan)
        return cls(model, filled.astype(np.float32), residuals.astype(np.float32), groups)

    def means(self, filled: Array, holes: Array) -> tuple[Array, Array]:
        """Weighted means at the holes of the neighbours' residuals, and of their own cells.

        Parameters
        ----------
        filled : ndarray of shape (m, p)
            Rows completed by the model.
        holes : ndarray of bool of shape (m, p)
            Cells to look for.

        Returns
        -------
        residuals, values : ndarray of shape (m, p)
            Both 0 where there is no hole, or no row that shows the column.
        """
        residuals, values = np.zeros(filled.shape), np.zeros(filled.shape)
        columns = np.flatnonzero(holes.any(axis=0))
        weights = self.distance_weights(columns)
        if len(filled) == 1:  # new rows come one by one: all of their holes at once
            all_squares = weights @ ((self.rows - filled.astype(np.float32)) ** 2).T
        for place, j in enumerate(columns):
            queries, shown = np.flatnonzero(holes[:, j]), np.flatnonzero(~np.isnan(self.residuals[:, j]))
            use = np.flatnonzero(weights[place])
            k = min(N_NEIGHBOURS, shown.size)
            if k == 0 or use.size == 0:
                continue
            scale = np.sqrt(weights[place, use])
            here = filled[np.ix_(queries, use)] * scale
            if len(filled) == 1:
                nearest = shown[np.argpartition(all_squares[[place]][:, shown], k - 1, axis=1)[:, :k]]
            else:
                there = self.rows[np.ix_(shown, use)] * scale
                finder = NearestNeighbors(n_neighbors=k, algorithm="brute").fit(there)
                nearest = shown[finder.kneighbors(here.astype(np.float32), return_distance=False)]
            # again, and always in the same way: a row's fill must not depend on the rows beside it
            squares = np.stack(
                [((self.rows[near][:, use] * scale - here) ** 2).sum(axis=1) for near in nearest.T], axis=1
            )
            distances = np.sqrt(squares)
            closeness = 1 / (distances / np.maximum(np.median(distances, axis=1, keepdims=True), 1e-12) + 0.1)
            closeness /= closeness.sum(axis=1, keepdims=True)
            residuals[queries, j] = (closeness * self.residuals[nearest, j]).sum(axis=1) * k / (k + N_ZEROS)
            values[queries, j] = (closeness * self.rows[nearest, j]).sum(axis=1)
        return residuals, values

    def distance_weights(self, columns: Array) -> Array:
        """|rho_jl| for these columns j, a row each; 0 for l of the same group, and but for the largest of a row."""
        P = self.model.precision_rows(columns)
        own = P[np.arange(columns.size), columns]
        weights = np.abs(P) / np.sqrt(self.model.precision_diagonal()) / np.sqrt(own)[:, None]
        weights[self.groups[columns][:, None] == self.groups] = 0.0
        if self.groups.size > MOST_COLUMNS:
            least = -np.partition(-weights, MOST_COLUMNS - 1, axis=1)[:, [MOST_COLUMNS - 1]]
            weights[weights < least] = 0.0
        return weights.astype(np.float32)


def leave_one_out(model: Conditional, filled: Array, groups: Array) -> Array:
    """Residuals of cells given the row's columns of all other groups, P_gg^-1 (P (z - mu))_g."""
    residuals = model.scaled_residuals(filled)
    sizes = np.bincount(groups)
    single = sizes[groups] == 1
    residuals[:, single] /= model.precision_diagonal()[single]
    for group in np.flatnonzero(sizes > 1):
        g = np.flatnonzero(groups == group)
        residuals[:, g] = residuals[:, g] @ np.linalg.inv(model.precision_rows(g)[:, g])
    return residuals
