"""Trees, which find what is not linear: gradient boosting of a table with holes, random trees of a completed one."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache
from typing import Any

import joblib
import numpy as np
from sklearn.ensemble import ExtraTreesRegressor, HistGradientBoostingRegressor
from threadpoolctl import ThreadpoolController

from halfseen.arrays import Array

#: Columns up to which trees are tried: the time of all columns grows with their square.
MOST_COLUMNS = 100
#: Trees of a forest; rows times columns times columns that a forest may have, and its least number of rows.
N_TREES, FOREST_CELLS, LEAST_ROWS = 50, 2_500_000, 10
#: Cells of a table from which on columns are fitted in parallel, and up to which all else is done by one thread, as
#: several would wait for each other most of the time.
MANY_CELLS, FEW_CELLS = 20_000, 1_000_000


@cache
def thread_controller() -> ThreadpoolController:
    """Threads of BLAS and OpenMP; to look for their libraries takes longer than to fill a row."""
    return ThreadpoolController()


def limited_threads(n_cells: int) -> AbstractContextManager[Any]:
    """One thread for BLAS and OpenMP where cells are few, else all."""
    limiter: AbstractContextManager[Any] = thread_controller().limit(limits=1 if n_cells <= FEW_CELLS else None)
    return limiter


@dataclass(frozen=True)
class Forest:
    """Extremely randomized trees (Geurts, Ernst and Wehenkel, 2006), 14 bytes per node.

    Parameters
    ----------
    features : ndarray of int16 of shape (n_nodes,)
        Column that a node compares; -1 in a leaf.
    numbers : ndarray of shape (n_nodes,)
        Threshold of a node, value of a leaf.
    rights : ndarray of int32 of shape (n_nodes,)
        Where rows above the threshold go; the others go to the next node.
    roots : ndarray of int64 of shape (n_trees,)
        First node of each tree.
    """

    features: Array
    numbers: Array
    rights: Array
    roots: Array

    @classmethod
    def fit(cls, X: Array, y: Array, seed: int) -> "Forest":
        """Fit to rows without holes."""
        trees = [one.tree_ for one in ExtraTreesRegressor(N_TREES, max_features=0.5, random_state=seed).fit(X, y)]
        roots = np.cumsum([0, *(tree.node_count for tree in trees)])
        is_leaf = [tree.feature < 0 for tree in trees]
        return cls(
            np.concatenate([np.maximum(tree.feature, -1) for tree in trees]).astype(np.int16),
            np.concatenate(
                [np.where(leaf, tree.value[:, 0, 0], tree.threshold) for leaf, tree in zip(is_leaf, trees, strict=True)]
            ),
            np.concatenate(
                [tree.children_right + root for root, tree in zip(roots[:-1], trees, strict=True)], dtype=np.int32
            ),
            roots[:-1],
        )

    def predict(self, X: Array) -> Array:
        """Mean of the trees, for each row."""
        from halfseen.kernels.forests import mean_of_trees  # compiled code

        return mean_of_trees(self.features, self.numbers, self.rights, self.roots, X.astype(np.float32))


def fit_forests(completed: Array, seen: Array, columns: Array, groups: Array, seed: int) -> dict[int, Forest]:
    """A forest for each of these columns, from the columns of other groups.

    Parameters
    ----------
    completed : ndarray of shape (n, p)
        Rows without holes, on the standard scale.
    seen : ndarray of bool of shape (n, p)
        Cells that are not filled in.
    columns : ndarray of int
        Columns to fit.
    groups : ndarray of shape (p,)
        Columns with the same number are missing together.
    seed : int
        Seed of the trees.
    """
    n_rows = FOREST_CELLS // completed.shape[1] ** 2

    def fit(j: int) -> Forest | None:
        rows = np.flatnonzero(seen[:, j])
        if rows.size > n_rows:
            rows = rows[np.linspace(0, rows.size - 1, n_rows).astype(int)]
        if rows.size < LEAST_ROWS:
            return None
        return Forest.fit(other_columns(completed[rows], j, groups), completed[rows, j], seed)

    return fit_columns(fit, columns, seen.size)


def fit_boosters(Z: Array, expected: Array, columns: Array, groups: Array, seed: int) -> dict[int, Any]:
    """Gradient boosting for each of these columns, from the others with their holes and a prediction to refine.

    Parameters
    ----------
    Z : ndarray of shape (n, p)
        Rows on the standard scale, NaN where nothing was seen.
    expected : ndarray of shape (n, p)
        What a row's other cells say of a cell.
    columns : ndarray of int
        Columns to fit.
    groups : ndarray of shape (p,)
        Columns with the same number are missing together.
    seed : int
        Seed of the trees.
    """

    def fit(j: int) -> HistGradientBoostingRegressor | None:
        shown = ~np.isnan(Z[:, j])
        leaf = int(np.clip(shown.sum() // 40, 5, 20))
        if shown.sum() < 4 * leaf:
            return None
        booster = HistGradientBoostingRegressor(
            max_iter=40, max_leaf_nodes=16, min_samples_leaf=leaf, l2_regularization=1.0, early_stopping=False,
            random_state=seed,
        )  # fmt: skip
        features = boosting_features(Z[shown], expected[shown], j, groups)
        features[:, np.isnan(features).all(axis=0)] = 0.0  # never seen beside j: scikit-learn fails
        return booster.fit(features, Z[shown, j])

    return fit_columns(fit, columns, Z.size)


def fit_columns(fit: Callable[[int], Any], columns: Array, n_cells: int) -> dict[int, Any]:
    """Results of `fit` by column, but None; in parallel threads where there are many cells."""
    with limited_threads(0):
        n_jobs = -1 if n_cells >= MANY_CELLS else 1
        found = joblib.Parallel(n_jobs=n_jobs, prefer="threads")(joblib.delayed(fit)(int(j)) for j in columns)
    return {int(j): one for j, one in zip(columns, found, strict=True) if one is not None}


def other_columns(X: Array, j: int, groups: Array) -> Array:
    """The columns of other groups than that of j."""
    return X[:, groups != groups[j]]


def boosting_features(Z: Array, expected: Array, j: int, groups: Array) -> Array:
    """The columns of other groups, with their holes, and the prediction to refine."""
    return np.column_stack([other_columns(Z, j, groups), expected[:, j]])
