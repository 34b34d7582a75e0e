"""What needs no comparisons: guesses, means of rows, and factorizations of the coupled training cells."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

import halfseen
from halfseen.arrays import Array
from halfseen.data import Observed, k_folds
from halfseen.studies.unmf.coupled_bayes import coupled_bayes
from halfseen.studies.unmf.protocol import Effort, Fold, quietly
from halfseen.studies.unmf.sets import DataSet

#: Numbers of components to choose from, by so many folds of the training cells.
KS, CHOOSING_FOLDS = (1, 2, 3, 5), 5
#: Components of the coupled sampler, as of the one that samples the coupling.
BAYES_K = 5

RANDOM, ROW_MEAN = "RANDOM", "row mean"
ORACLE, BEST_K, COUPLED_BAYES = "coupled NMF", "coupled NMF, best k", "coupled Bayes, k = 5"

#: Predictions at the test cells of a fold.
Baseline = Callable[[Fold, DataSet, Effort], Array]


def guesses(fold: Fold, of: DataSet, effort: Effort) -> Array:
    """Uniform in the range that the paper names."""
    return np.random.default_rng(fold.seed).uniform(*of.guesses, size=fold.test.nnz)


def row_means(train: Observed) -> Array:
    """The mean of each row's training cells; of all, where a row has none."""
    counts = train.seen_per_row()
    sums = np.bincount(train.row_of_cell(), train.values, minlength=train.shape[0])
    return np.where(counts > 0, sums / np.maximum(counts, 1), train.values.mean())


def coupled_nmf(train: Observed, places: tuple[Array, Array], k: int, effort: Effort, seed: int) -> Array:
    """The paper's ORACLE: squared error, multiplicative updates, as many of them as the uncoupled methods have."""
    model = halfseen.WeightedNMF(k, loss="frobenius", max_iter=effort.iterations, tol=0.0, random_state=seed)
    with quietly():
        return np.asarray(model.fit(train).predict(*places))


def best_k(train: Observed, ks: Sequence[int], effort: Effort, seed: int) -> int:
    """The k with the lowest mean absolute error over folds of the training cells."""
    parts = list(k_folds(train, CHOOSING_FOLDS, random_state=seed))
    errors = [sum(_error(fitted, judges, k, effort, seed) for fitted, judges in parts) for k in ks]
    return ks[int(np.argmin(errors))]


def _error(fitted: Observed, judges: Observed, k: int, effort: Effort, seed: int) -> float:
    places = judges.row_of_cell(), judges.indices
    return float(np.abs(coupled_nmf(fitted, places, k, effort, seed) - judges.values).sum())


def _row_mean(fold: Fold, of: DataSet, effort: Effort) -> Array:
    means: Array = row_means(fold.train)[fold.places[0]]
    return means


def _oracle(fold: Fold, of: DataSet, effort: Effort) -> Array:
    return coupled_nmf(fold.train, fold.places, of.k, effort, fold.seed)


def _best(fold: Fold, of: DataSet, effort: Effort) -> Array:
    k = best_k(fold.train, KS, effort, fold.seed)
    return coupled_nmf(fold.train, fold.places, k, effort, fold.seed)


def _bayes(fold: Fold, of: DataSet, effort: Effort) -> Array:
    whole = coupled_bayes(fold.train, BAYES_K, effort.sweeps, effort.burn, fold.seed)
    predicted: Array = whole[fold.places]
    return predicted


#: By name. The first and the third are the paper's.
BASELINES: dict[str, Baseline] = {
    RANDOM: guesses, ROW_MEAN: _row_mean, ORACLE: _oracle, BEST_K: _best, COUPLED_BAYES: _bayes,
}  # fmt: skip
