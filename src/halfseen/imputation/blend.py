"""Candidates for every hole, and a blend of them with weights for each column by cells held out.

A tenth of the seen cells is hidden, twice, and more often where that is few cells; every candidate is fitted to the
rest and predicts them. On the standard scale, where the column mean is 0, the weights of column j minimise over w >= 0
with sum_c w_c <= 1

    sum_cells (y - sum_c w_c x_c)^2,    over the column's own held-out cells and `COMMON_CELLS` of the average column

(non-negative least squares; what the weights lack to 1 is the column mean's). The residuals of held-out cells, whose
weights come from the other draws, give the intervals: a cell's prediction plus its scale times the quantiles of its
column's residuals in such scales.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.optimize import nnls
from scipy.special import ndtr, ndtri

from halfseen.arrays import Array
from halfseen.imputation.columns import Marginal
from halfseen.imputation.gaussian import Conditional, Structure
from halfseen.imputation.neighbours import Neighbours, leave_one_out
from halfseen.imputation.trees import (
    MOST_COLUMNS,
    Forest,
    boosting_features,
    fit_boosters,
    fit_forests,
    limited_threads,
    other_columns,
)

#: The candidates beside the column mean, in their order.
CANDIDATES = ("gaussian", "gaussian+neighbours", "neighbours", "copula", "copula+neighbours", "boosting", "trees")
#: Held-out cells of the average column that stand beside a column's own; the same for the shape of residuals.
COMMON_CELLS, COMMON_RESIDUALS = 300.0, 20.0
#: Share of the seen cells that are held out; how often at least, and at most, until so many cells were.
HELD_OUT, LEAST_DRAWS, MOST_DRAWS, ENOUGH_CELLS = 0.1, 2, 20, 300
#: Probabilities at which the quantiles of residuals are kept.
PROBABILITIES = np.concatenate([[0.001, 0.0025, 0.005], np.arange(1, 100) / 100, [0.995, 0.9975, 0.999]])
#: Cells of a block of rows that is predicted at a time.
BLOCK_CELLS = 4_000_000
#: Multiples of the copula's spread that are tried for the probabilities of levels, the usual one first, and held-out
#: cells of a column that they are tried on at most.
LEVEL_SCALES, MOST_SCORED = np.array([1.0, 0.25, 0.5, 0.7, 1.4, 2.0, 3.0]), 500
#: Bootstraps of rows that say how far the deviations of a column's draws are shared.
N_REFITS = 10
#: Skewness of residuals up to which they are centred.
MOST_SKEW = 0.3
#: Added to the variance of a cell, in the column's: no scale is 0.
LEAST_VARIANCE = 0.001
#: Held-out cells further from the mean, in spreads, count as if they were this far: one cell must not decide.
FAR = 5.0
#: Squared error, in variances, that boosting or trees must save on the first held-out cells of so many columns at most,
#: to be tried on others; the weight that they must have in a column to be fitted to all of its cells.
LEAST_GAIN, MOST_SCREENED, LEAST_WEIGHT = 0.002, 12, 0.03
#: Candidates that look for neighbours of the Gaussian's residuals, and of the copula's; the share of the blend's
#: squared error that each kind must save, and on how many held-out cells of the first draw that is asked: in large
#: tables the search takes most of the time.
NEAR, NEAR_SCORES, LEAST_SAVED, SCREENED_CELLS = (1, 2), (4,), 0.002, 20_000
#: Standard deviations from the mean beyond which all values are the same to the candidates, as some use 32 bits.
LIMIT = 1e12


@dataclass(frozen=True)
class Standard:
    """The standard scale of each column, and the range of what was seen, on that scale.

    Parameters
    ----------
    centre, spread : ndarray of shape (p,)
        Means and standard deviations of the seen cells; spread 1 where all are the same.
    low, high : ndarray of shape (p,)
        Least and largest seen cell on the standard scale.
    """

    centre: Array
    spread: Array
    low: Array
    high: Array

    @classmethod
    def of(cls, X: Array) -> "Standard":
        """From a table with NaN in its holes; numbers of any size."""
        seen = ~np.isnan(X)
        counts = np.maximum(seen.sum(axis=0), 1)
        size = np.max(np.abs(X), axis=0, where=seen, initial=0.0)
        size = np.where(size > 0, size, 1.0)
        scaled = np.where(seen, X / size, 0.0)
        centre = scaled.sum(axis=0) / counts
        spread = np.sqrt((np.where(seen, scaled - centre, 0.0) ** 2).sum(axis=0) / counts)
        spread = np.where(spread > 1e-12 * np.maximum(np.abs(centre), 1e-300), spread, 1.0)
        low = np.min(scaled - centre, axis=0, where=seen, initial=np.inf) / spread
        high = np.max(scaled - centre, axis=0, where=seen, initial=-np.inf) / spread
        empty = ~seen.any(axis=0)
        return cls(centre * size, spread * size, np.where(empty, 0.0, low), np.where(empty, 0.0, high))

    def of_values(self, X: Array) -> Array:
        """Values on the standard scale, within `LIMIT`: new rows may show any number, and squares must stay finite."""
        with np.errstate(over="ignore"):
            Z = X / self.spread - self.centre / self.spread
        return np.clip(Z, -LIMIT, LIMIT)

    def to_values(self, Z: Array, columns: Array) -> Array:
        """Numbers of these columns on the scale of the data."""
        return Z * self.spread[columns] + self.centre[columns]


@dataclass(frozen=True)
class Prediction:
    """What the candidates say of the holes of a table, hole by hole, on the standard scale.

    Parameters
    ----------
    rows, columns : ndarray of shape (m,)
        The holes.
    means : ndarray of shape (n_candidates, m)
        Of each candidate.
    variances : ndarray of shape (m,)
        Of the copula.
    latent : ndarray of shape (2, m)
        Means and variances of the copula's normal scores.
    """

    rows: Array
    columns: Array
    means: Array
    variances: Array
    latent: Array


@dataclass(frozen=True)
class Candidates:
    """All candidates, fitted to one table.

    Parameters
    ----------
    standard : Standard
        Standard scale of the columns.
    marginals : tuple of Marginal
        Distributions of the columns on the standard scale.
    gaussian, copula : Gaussian or FactorModel
        Fitted to the standard scale and to normal scores.
    near, near_scores : Neighbours
        Neighbours of their residuals.
    boosters : dict of int to HistGradientBoostingRegressor
        Gradient boosting by column.
    forests : dict of int to Forest
        Random trees by column.
    """

    standard: Standard
    marginals: tuple[Marginal, ...]
    gaussian: Conditional
    copula: Conditional
    near: Neighbours
    near_scores: Neighbours
    boosters: dict[int, Any]
    forests: dict[int, Forest]

    @classmethod
    def fit(cls, X: Array, groups: Array, structure: Structure) -> "Candidates":
        """Fit to a table, all but the trees.

        Parameters
        ----------
        X : ndarray of shape (n, p)
            Rows, NaN where nothing was seen.
        groups : ndarray of shape (p,)
            Columns with the same number are missing together.
        structure : Structure
            How the covariances are fitted.
        """
        standard, seen = Standard.of(X), ~np.isnan(X)
        Z = standard.of_values(X)
        marginals = tuple(
            Marginal.of(z[s], x[s]) if s.any() else Marginal.of(np.zeros(1))
            for x, z, s in zip(X.T, Z.T, seen.T, strict=True)
        )
        scores = np.column_stack([one.to_latent(z) for one, z in zip(marginals, Z.T, strict=True)])
        gaussian, copula = (structure.fit(one) for one in (Z, scores))
        filled, filled_scores = gaussian.complete(Z)[0], copula.complete(scores)[0]
        near = Neighbours.of(gaussian, filled, seen, groups)
        near_scores = Neighbours.of(copula, filled_scores, seen, groups)
        return cls(standard, marginals, gaussian, copula, near, near_scores, {}, {})

    def with_trees(self, X: Array, tried: dict[str, Array], seed: int) -> "Candidates":
        """The same with "boosting" and "trees" for these columns, where they are not there yet."""
        Z, seen, groups = self.standard.of_values(X), ~np.isnan(X), self.near.groups
        boosted, grown = (
            np.setdiff1d(tried[one], list(fitted))
            for one, fitted in (("boosting", self.boosters), ("trees", self.forests))
        )
        boosters, forests = {}, {}
        filled = self.gaussian.complete(Z)[0] if boosted.size or grown.size else Z
        if boosted.size:
            boosters = fit_boosters(Z, filled - leave_one_out(self.gaussian, filled, groups), boosted, groups, seed)
        if grown.size:
            forests = fit_forests(filled + self.near.means(filled, ~seen)[0], seen, grown, groups, seed)
        boosters |= {j: one for j, one in self.boosters.items() if j in tried["boosting"]}
        forests |= {j: one for j, one in self.forests.items() if j in tried["trees"]}
        return replace(self, boosters=boosters, forests=forests)

    def predict(self, X: Array, wanted: Array | None = None, weights: Array | None = None) -> Prediction:
        """What the candidates say of the holes of these rows, or of those that are `wanted`.

        Neighbours are not looked for where they weigh nothing, if there are `weights`; what says nothing then is 0.
        """
        holes = np.isnan(X) if wanted is None else wanted
        columns, rows = np.nonzero(holes.T)
        Z = self.standard.of_values(X)
        near: Any = True
        near_scores: Any = True
        if weights is not None:  # trees read residuals of all columns
            near, near_scores = weights[:, NEAR].any(axis=1) | bool(self.forests), weights[:, NEAR_SCORES].any(axis=1)
        filled, _ = self.gaussian.complete(Z)
        residuals, values = self.near.means(filled, holes & near)
        scores = np.column_stack([one.to_latent(z) for one, z in zip(self.marginals, Z.T, strict=True)])
        filled_scores, score_variance = self.copula.complete(scores)
        score_residuals, _ = self.near_scores.means(filled_scores, holes & near_scores)
        cells = rows, columns
        means, variances = np.zeros((len(CANDIDATES), rows.size)), np.zeros(rows.size)
        means[0], means[1], means[2] = filled[cells], filled[cells] + residuals[cells], values[cells]
        means[5] = means[6] = means[1]  # where there are too few cells for trees
        ends = np.searchsorted(columns, np.arange(X.shape[1] + 1))
        for j in np.unique(columns):
            here, hole = slice(ends[j], ends[j + 1]), rows[ends[j] : ends[j + 1]]
            latent, spread = filled_scores[hole, j], score_variance[hole, j]
            means[3, here], variances[here] = self.marginals[j].moments(latent, spread)
            means[4, here], _ = self.marginals[j].moments(latent + score_residuals[hole, j], spread)
            if j in self.boosters:
                means[5, here] = self.boosters[j].predict(boosting_features(Z[hole], filled[hole], j, self.near.groups))
            if j in self.forests:
                completed = filled[hole] + residuals[hole]
                means[6, here] = self.forests[j].predict(other_columns(completed, j, self.near.groups))
        means = np.clip(means, self.standard.low[columns], self.standard.high[columns])
        latent = np.stack([filled_scores[cells], score_variance[cells]])
        return Prediction(rows, columns, means, variances, latent)


@dataclass(frozen=True)
class Filled:
    """Predictions for the holes of a table, hole by hole, on the scale of the data.

    Parameters
    ----------
    rows, columns : ndarray of shape (m,)
        The holes.
    means, scales : ndarray of shape (m,)
        Prediction of each, and the unit in which its column's residuals are counted.
    latent : ndarray of shape (2, m)
        Means and variances of the copula's normal scores.
    """

    rows: Array
    columns: Array
    means: Array
    scales: Array
    latent: Array


@dataclass(frozen=True)
class TableModel:
    """A table's candidates with their weights, and what they left unexplained on held-out cells.

    Parameters
    ----------
    candidates : Candidates
        Fitted to all seen cells.
    weights : ndarray of shape (p, n_candidates)
        Weights by column; what they lack to 1 is the column mean's.
    quantiles : ndarray of shape (p, n_probabilities)
        Of the residuals of held-out cells, in scales, at `PROBABILITIES`.
    level_scales : ndarray of shape (p,)
        By which the copula's spread is multiplied for the probabilities of levels.
    errors, mean_errors : ndarray of shape (p,)
        Root mean squared error of held-out cells in the column's spread: of the blend, and of the column mean.
    n_held_out : ndarray of shape (p,)
        Number of held-out cells.
    accuracies, mode_accuracies : ndarray of shape (p,)
        Share of held-out cells that are filled with their own value, and of those that have the most frequent one,
        where values are few; NaN elsewhere.
    structure : Structure
        How the covariances were fitted, as held-out cells decided.
    n_rows : int
        Number of rows of the fit.
    """

    candidates: Candidates
    weights: Array
    quantiles: Array
    level_scales: Array
    errors: Array
    mean_errors: Array
    n_held_out: Array
    accuracies: Array
    mode_accuracies: Array
    structure: Structure
    n_rows: int

    def predict(self, X: Array) -> Filled:
        """Predict the holes of rows of the table, or of new ones; block by block."""
        standard, parts = self.candidates.standard, []
        height = max(1, BLOCK_CELLS // X.shape[1])
        for top in range(0, len(X), height):
            with limited_threads(X.size):
                found = self.candidates.predict(X[top : top + height], weights=self.weights)
            means, scales = blended(found, self.weights)
            means = np.clip(means, standard.low[found.columns], standard.high[found.columns])
            values = standard.to_values(means, found.columns)
            scales = scales * standard.spread[found.columns]
            parts.append((found.rows + top, found.columns, values, scales, found.latent))
        return Filled(*(np.concatenate(one, axis=-1) for one in zip(*parts, strict=True)))

    def level_shares(self, filled: Filled, column: int) -> tuple[Array, Array]:
        """Levels of a column, and their probabilities at its holes, of shape (levels, holes).

        The copula's thresholds, with the mean of the blend, and the spread that held-out cells have.
        """
        here = filled.columns == column
        standard, marginal = self.candidates.standard, self.candidates.marginals[column]
        wanted = (filled.means[here] - standard.centre[column]) / standard.spread[column]
        mean, variance = filled.latent[:, here]
        shares = marginal.shares_with_mean(wanted, mean, variance, self.level_scales[column])
        return marginal.originals, shares

    def quantile(self, filled: Filled, probabilities: Array) -> Array:
        """The value up to which a hole's value is with this probability, one for each hole; within the seen range.

        By the residuals of held-out cells; values that many cells of the column have, by their probabilities: what is
        between two of them by these stays there.
        """
        standard, j = self.candidates.standard, filled.columns
        grid = np.clip(np.searchsorted(PROBABILITIES, probabilities), 1, PROBABILITIES.size - 1)
        low, high = PROBABILITIES[grid - 1], PROBABILITIES[grid]
        share = np.clip((probabilities - low) / (high - low), 0.0, 1.0)
        steps = (1 - share) * self.quantiles[j, grid - 1] + share * self.quantiles[j, grid]
        every = np.arange(standard.low.size)
        ends = standard.to_values(standard.low, every), standard.to_values(standard.high, every)
        values = np.clip(filled.means + filled.scales * steps, ends[0][j], ends[1][j])
        for column in np.unique(j):
            atoms = self.candidates.marginals[column].common
            if atoms.any():
                here = j == column
                levels, shares = self.level_shares(filled, column)
                places = np.minimum((np.cumsum(shares, axis=0) < probabilities[here]).sum(axis=0), levels.size - 1)
                below = np.maximum.accumulate(np.where(atoms, levels, -np.inf))
                above = np.minimum.accumulate(np.where(atoms, levels, np.inf)[::-1])[::-1]
                values[here] = np.clip(values[here], below[places], above[places])
        return values

    def interval(self, filled: Filled, level: float) -> tuple[Array, Array]:
        """Ends of intervals that hold the values of the holes with this probability.

        As much is left out below as above. Where all values of a column are common, the interval is the likeliest of
        those with as many values, and holds so many that its probability is the nearest to what is asked for.
        """
        low, high = (self.quantile(filled, np.full(filled.means.size, p)) for p in ((1 - level) / 2, (1 + level) / 2))
        for column in np.unique(filled.columns):
            if not self.candidates.marginals[column].common.all():
                continue
            here, (levels, shares) = filled.columns == column, self.level_shares(filled, column)
            below = np.vstack([np.zeros(shares.shape[1]), np.cumsum(shares, axis=0)])
            found, starts = [], []
            for n in range(1, levels.size + 1):
                masses = below[n:] - below[:-n]
                starts.append(np.argmax(masses, axis=0))
                found.append(np.max(masses, axis=0))
            n = np.argmin(np.abs(np.array(found) - level), axis=0)
            start = np.array(starts)[n, np.arange(n.size)]
            low[here], high[here] = levels[start], levels[start + n]
        return low, high

    def ranks(self, X: Array, filled: Filled, n: int, random: np.random.RandomState) -> Iterator[Array]:
        """Draws, for each hole, of where its value is in its distribution, from 0 to 1, the holes of a table together.

        A row y drawn from a Gaussian and completed from the cells that a row x shows deviates from itself as x does
        from its conditional mean (Matheron's rule), and completion is linear: so x is completed by a draw of

            y_m + E[x_m | x_o] - E[y_m | y_o]

        The Gaussian of each draw is fitted to another bootstrap of the rows: what the holes of a column share is how
        far its regression on the others may be off. This is part of the error of a held-out cell, too: so the whole
        deviation is brought to the variance of one cell, and its rank is uniform.

        Parameters
        ----------
        X : ndarray of shape (n_rows, p)
            Rows, NaN in their holes.
        filled : Filled
            Predictions for these.
        n : int
            Number of draws.
        random : RandomState
            What is drawn.
        """
        gaussian, near = self.candidates.gaussian, self.candidates.near
        seen, residuals = ~np.isnan(near.residuals), np.nan_to_num(near.residuals)
        stored, Z = near.rows.astype(float), self.candidates.standard.of_values(X)
        seed = int(random.randint(2**31 - 1))  # a draw is the same whatever the number of others
        streams = [np.random.RandomState([seed, i]) for i in range(max(n, N_REFITS))]
        shown = np.where(seen, stored, np.nan)
        others = [self.structure.refit(gaussian, shown, self.n_rows, one) for one in streams]
        moved = [np.where(seen, leave_one_out(one, stored, near.groups) - residuals, 0.0) for one in others[:N_REFITS]]
        squares = np.maximum((residuals**2).sum(axis=0), 1e-12)
        shared = np.mean([(one**2).sum(axis=0) for one in moved], axis=0) / squares
        height = max(1, BLOCK_CELLS // X.shape[1])
        blocks = []
        for top in range(0, len(X), height):
            here = np.flatnonzero((filled.rows >= top) & (filled.rows < top + height))
            blocks.append((slice(top, top + height), here, (filled.rows[here] - top, filled.columns[here])))
        mean, spread = np.empty((2, filled.rows.size))
        for rows, here, cells in blocks:
            completed, variance = gaussian.complete(Z[rows])
            mean[here] = completed[cells]
            spread[here] = np.sqrt(variance[cells] * (1 + shared[filled.columns[here]]))
        for other, stream in zip(others[:n], streams[:n], strict=True):
            found = np.empty(filled.rows.size)
            for rows, here, cells in blocks:
                drawn = other.draw(len(Z[rows]), stream) - other.mean
                completed, _ = other.complete(Z[rows] - drawn)
                found[here] = ndtr((drawn[cells] + completed[cells] - mean[here]) / spread[here])
            yield found


def blended(found: Prediction, weights: Array) -> tuple[Array, Array]:
    """The blend of candidates, and the scale of its residuals: the copula's, which is small where little varies."""
    w = weights[found.columns].T
    return (w * found.means).sum(axis=0), np.sqrt(found.variances + LEAST_VARIANCE)


def blend_weights(gram: Array, products: Array, counts: Array, common: float = COMMON_CELLS) -> Array:
    """Weights of the candidates for each column.

    Parameters
    ----------
    gram : ndarray of shape (p, c, c)
        sum x x^T over the held-out cells of each column.
    products : ndarray of shape (p, c)
        sum x y.
    counts : ndarray of shape (p,)
        Number of held-out cells.
    common : float
        Cells of the average column that stand beside a column's own.

    Returns
    -------
    ndarray of shape (p, c)
        argmin over w >= 0, sum w <= 1, of w^T A w - 2 w^T b, with A and b of both kinds of cells.
    """
    total = max(counts.sum(), 1)
    A = gram + common * gram.sum(axis=0) / total
    b = products + common * products.sum(axis=0) / total
    c = b.shape[1]
    weights = np.zeros(b.shape)
    for j in range(len(b)):
        size = max(np.trace(A[j]) / c, 1e-12)
        root = np.linalg.cholesky(A[j] + 1e-6 * size * np.eye(c))
        # the mean is one more candidate, which says 0; a heavy equation makes the sum of all weights 1
        heavy = 1e3 * np.sqrt(size)
        equations = np.vstack([np.column_stack([root.T, np.zeros(c)]), np.full(c + 1, heavy)])
        weights[j] = nnls(equations, np.append(np.linalg.solve(root, b[j]), heavy))[0][:c]
    return weights


def squared_error(gram: Array, products: Array, counts: Array, without: Sequence[int] = ()) -> float:
    """Squared error per held-out cell, in variances, of the best blend without some candidates, less the mean's."""
    kept = np.delete(np.arange(len(CANDIDATES)), without)
    G, b = gram[:, kept[:, None], kept], products[:, kept]
    w = blend_weights(G, b, counts)
    return float(np.einsum("pc,pcd,pd->", w, G, w) - 2 * np.sum(w * b)) / max(float(counts.sum()), 1.0)


def fit_table(
    X: Array, groups: Array, *, trees: bool = True, max_rows: int = 10_000, random_state: Any = None
) -> TableModel:
    """Fit all candidates and their weights.

    Parameters
    ----------
    X : ndarray of shape (n, p)
        Rows, NaN where nothing was seen.
    groups : ndarray of shape (p,)
        Columns with the same number are missing together: those of one category.
    trees : bool, default=True
        Whether gradient boosting and random trees are candidates.
    max_rows : int, default=10_000
        Rows to fit to, drawn at random where there are more; half as many to hold cells out of.
    random_state : RandomState
        What is drawn: rows, held-out cells.

    Returns
    -------
    TableModel
        The fitted model.
    """
    random = random_state or np.random.RandomState(0)
    seed = int(random.randint(2**31 - 1))
    if len(X) > max_rows:
        X = X[np.sort(random.permutation(len(X))[:max_rows])]
    p = X.shape[1]
    part = X if 2 * len(X) <= max_rows else X[np.sort(random.permutation(len(X))[: max_rows // 2])]
    tried = {one: np.arange(p if trees and p <= MOST_COLUMNS else 0) for one in ("boosting", "trees")}
    n_draws = int(np.ceil(ENOUGH_CELLS / max(HELD_OUT * np.count_nonzero(~np.isnan(part)), 1.0)))
    masks = [hide_cells(part, groups, random) for _ in range(min(max(n_draws, LEAST_DRAWS), MOST_DRAWS))]
    units, trials = Standard.of(part).spread, []
    draws: list[tuple[Prediction, Array, Candidates]] = []
    used = np.ones((p, len(CANDIDATES)))
    for hidden in masks:
        rest = np.where(hidden, np.nan, part)
        standard = Standard.of(rest)
        trials.append((standard.of_values(rest), standard.of_values(part), hidden))
    structure = Structure.best(trials if len(trials) > LEAST_DRAWS else trials[:1])
    for hidden in masks:
        rest = np.where(hidden, np.nan, part)
        candidates = Candidates.fit(rest, groups, structure)
        standard = candidates.standard
        if not draws and tried["trees"].size:  # what is slow must be worth it in some of the columns
            some = np.unique(np.linspace(0, p - 1, MOST_SCREENED).astype(int))
            candidates = candidates.with_trees(rest, dict.fromkeys(tried, some), seed)
            found = candidates.predict(rest, hidden & np.isin(np.arange(p), some))
            truth = standard.of_values(part)[found.rows, found.columns]
            for c, one in ((5, "boosting"), (6, "trees")):
                sums = held_out_sums(found, truth, p)
                if squared_error(*sums, [c]) - squared_error(*sums) < LEAST_GAIN:
                    tried[one] = tried[one][:0]
        if not draws and np.count_nonzero(hidden) >= SCREENED_CELLS:
            n_columns = int(np.ceil(p * SCREENED_CELLS / np.count_nonzero(hidden)))
            some = np.isin(np.arange(p), np.linspace(0, p - 1, n_columns).astype(int))
            found = candidates.predict(rest, hidden & some)
            truth = standard.of_values(part)[found.rows, found.columns]
            sums = held_out_sums(found, truth, p)
            least = squared_error(*sums)
            most = least + LEAST_SAVED * (least + np.mean(np.clip(truth, -FAR, FAR) ** 2))
            kinds = [NEAR_SCORES] if any(one.size for one in tried.values()) else [NEAR_SCORES, (*NEAR, 5, 6)]
            for kind in kinds:  # trees, or else what stands for them, go by the neighbours of residuals
                if squared_error(*sums, kind) < most:
                    used[:, kind] = 0.0
        candidates = candidates.with_trees(rest, tried, seed)
        found = candidates.predict(rest, hidden, used)
        truth = standard.of_values(part)[found.rows, found.columns]
        draws.append((found, truth, replace(candidates, boosters={}, forests={})))
    of_draws = [held_out_sums(found, truth, p) for found, truth, _ in draws]
    totals = [sum(one) for one in zip(*of_draws, strict=True)]
    weights = blend_weights(*totals)
    # residuals of each draw by the weights of the others
    scores, hits, parts = np.zeros((p, LEVEL_SCALES.size)), np.zeros((2, p)), []
    for (found, truth, candidates), own in zip(draws, of_draws, strict=True):
        others = blend_weights(*(total - one for total, one in zip(totals, own, strict=True)))
        means, scale = blended(found, others)
        scores += level_scores(found, means, truth, candidates.marginals)
        hits += held_out_hits(found, means, truth, candidates)
        size = (candidates.standard.spread / units)[found.columns]
        parts.append((truth - means, scale, truth, found.columns, size))
    residual, scale, truth, column, size = (np.concatenate(one) for one in zip(*parts, strict=True))
    counts = totals[2]
    errors, mean_errors = (
        np.sqrt(np.bincount(column, (size * one) ** 2, minlength=p) / np.maximum(counts, 1))
        for one in (residual, truth)
    )
    # a column that is not predicted better than by its mean is filled with that
    squares = [np.bincount(groups, one**2 * counts) for one in (errors, mean_errors)]
    behind = (squares[0] >= squares[1])[groups] & (counts > 0)
    weights[behind] = 0.0
    errors = np.where(behind, mean_errors, errors)
    residual = np.where(behind[column], truth, residual)
    # held-out cells are few beside those of the fit: what their mean is off by chance must not move all draws;
    # where residuals are skewed, their mean depends on a few of them, and quantiles stay where they are
    scaled, n = residual / scale, np.maximum(counts, 1)
    offset = np.bincount(column, scaled, minlength=p) / (n + 1)
    second, third = (np.bincount(column, (scaled - offset[column]) ** power, minlength=p) / n for power in (2, 3))
    scaled -= np.where(third**2 < MOST_SKEW**2 * second**3, offset, 0.0)[column]
    quantiles = residual_quantiles(scaled, column, p)
    scores += COMMON_RESIDUALS * scores.sum(axis=0) / max(column.size, 1)
    for c, one in ((5, "boosting"), (6, "trees")):
        tried[one] = tried[one][weights[tried[one], c] >= LEAST_WEIGHT]
    candidates = Candidates.fit(X, groups, structure).with_trees(X, tried, seed)
    for c, fitted in ((5, candidates.boosters), (6, candidates.forests)):  # else they say what candidate 1 does
        others = np.setdiff1d(np.arange(p), list(fitted))
        weights[others, 1] += weights[others, c]
        weights[others, c] = 0.0
    for c, plain in (
        (1, 0),
        (4, 3),
    ):  # without neighbours these say what their model does, and neighbours what the mean
        weights[:, plain] += np.where(used[:, c] == 0, weights[:, c], 0.0)
    weights *= used
    level_scales = LEVEL_SCALES[np.argmax(scores, axis=1)]
    accuracies, mode_accuracies = hits / np.where(counts > 0, counts, np.nan)
    return TableModel(
        candidates,
        weights,
        quantiles,
        level_scales,
        errors,
        mean_errors,
        counts,
        accuracies,
        mode_accuracies,
        structure,
        len(X),
    )


def hide_cells(X: Array, groups: Array, random: np.random.RandomState) -> Array:
    """Mask of cells to hold out; columns of a group together, and none of a column that shows fewer than five.

    Two of three are hidden together, as the holes of another row are, since what is missing together can't predict each
    other; the third at random.
    """
    seen = ~np.isnan(X)
    _, first, place = np.unique(groups, return_index=True, return_inverse=True)
    holes = ~seen[:, first]
    share = holes.mean()
    moved = min(1.0, HELD_OUT * 2 / 3 / share) if share > 0 else 0.0  # rows that get the holes of another
    patterns = holes[random.permutation(len(X))] & (random.random_sample((len(X), 1)) < moved)
    chosen = patterns | (random.random_sample((len(X), first.size)) < HELD_OUT - moved * share)
    return chosen[:, place] & seen & (seen.sum(axis=0) >= 5)


def held_out_sums(found: Prediction, truth: Array, p: int) -> tuple[Array, Array, Array]:
    """Gram matrices, products and numbers of cells, by column."""
    c = len(found.means)
    ends = np.searchsorted(found.columns, np.arange(p + 1))
    gram, products = np.zeros((p, c, c)), np.zeros((p, c))
    means, truth = np.clip(found.means, -FAR, FAR), np.clip(truth, -FAR, FAR)
    for j in range(p):
        here = means[:, ends[j] : ends[j + 1]]
        gram[j], products[j] = here @ here.T, here @ truth[ends[j] : ends[j + 1]]
    return gram, products, np.diff(ends).astype(float)


def level_scores(found: Prediction, means: Array, truth: Array, marginals: tuple[Marginal, ...]) -> Array:
    """Log-likelihoods of held-out cells for each of `LEVEL_SCALES`, by column; 0 where no value is common."""
    scores = np.zeros((len(marginals), LEVEL_SCALES.size))
    ends = np.searchsorted(found.columns, np.arange(len(marginals) + 1))
    for j, marginal in enumerate(marginals):
        here = slice(ends[j], min(ends[j + 1], ends[j] + MOST_SCORED))
        if not marginal.common.any() or marginal.atoms.size < 2 or here.start == here.stop:
            continue
        level = np.searchsorted((marginal.atoms[1:] + marginal.atoms[:-1]) / 2, truth[here])
        mean, variance = found.latent[:, here]
        for place, scale in enumerate(LEVEL_SCALES):
            shares = marginal.shares_with_mean(means[here], mean, variance, scale)
            scores[j, place] = np.log(np.maximum(shares[level, np.arange(level.size)], 1e-4)).sum()
    return scores


def held_out_hits(found: Prediction, means: Array, truth: Array, candidates: Candidates) -> Array:
    """Held-out cells that are filled with their own value, and those with the most frequent one, of shape (2, p).

    A cell of a group is filled with the column that is predicted highest, a level with the median one; NaN where values
    are many.
    """
    standard, groups = candidates.standard, candidates.near.groups
    hits = np.full((2, groups.size), np.nan)
    ends = np.searchsorted(found.columns, np.arange(groups.size + 1))
    predicted, true = (standard.to_values(one, found.columns) for one in (means, truth))
    for j, marginal in enumerate(candidates.marginals):
        own, here = np.flatnonzero(groups == groups[j]), slice(ends[j], ends[j + 1])
        if own.size > 1:
            filled, value = (np.argmax([one[ends[i] : ends[i + 1]] for i in own], axis=0) for one in (predicted, true))
            mode = int(np.argmax(standard.centre[own]))
        elif marginal.common.all():
            mean, variance = found.latent[:, here]
            shares = marginal.shares_with_mean(means[here], mean, variance)
            filled = np.minimum((np.cumsum(shares, axis=0) < 0.5).sum(axis=0), marginal.atoms.size - 1)
            value = np.searchsorted((marginal.atoms[1:] + marginal.atoms[:-1]) / 2, truth[here])
            mode = int(np.argmax(np.diff(ndtr(marginal.cuts))))
        else:
            continue
        hits[:, j] = np.count_nonzero(filled == value), np.count_nonzero(value == mode)
    return hits


def residual_quantiles(residuals: Array, columns: Array, p: int, common: float = COMMON_RESIDUALS) -> Array:
    """Quantiles of each column's residuals, beside which some of all columns stand, in the column's own size.

    Parameters
    ----------
    residuals : ndarray of shape (m,)
        Residuals in scales.
    columns : ndarray of shape (m,)
        Their columns.
    p : int
        Number of columns.
    common : float
        Weight of the residuals of all columns together, in cells.

    Returns
    -------
    ndarray of shape (p, n_probabilities)
        Quantiles at `PROBABILITIES`; value i of m at the probability i / (m + 1).
    """
    if residuals.size == 0:
        return np.tile(ndtri(PROBABILITIES), (p, 1))
    counts = np.bincount(columns, minlength=p)
    overall = max(np.mean(residuals**2), 1e-300)  # of constants, 0
    sizes = np.sqrt((np.bincount(columns, residuals**2, minlength=p) + common * overall) / (counts + common))
    alike = np.sort(residuals / sizes[columns])
    if alike.size > 1000:
        alike = np.quantile(alike, (np.arange(1000) + 0.5) / 1000)
    quantiles = np.empty((p, PROBABILITIES.size))
    for j in range(p):
        own = residuals[columns == j] / sizes[j]
        values = np.concatenate([own, alike])
        weights = np.concatenate([np.ones(own.size), np.full(alike.size, common / alike.size)])
        order = np.argsort(values)
        middles = np.cumsum(weights[order]) - weights[order] / 2
        quantiles[j] = sizes[j] * np.interp(PROBABILITIES, (middles + 0.5) / (weights.sum() + 1), values[order])
    return quantiles
