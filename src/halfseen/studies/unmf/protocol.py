"""How methods are measured: five folds over the cells, the training cells taken apart, the others for test."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from halfseen.arrays import Array
from halfseen.data import Observed, Uncoupled
from halfseen.errors import DataWarning

FOLDS = 5
#: n_per of the paper: how many pairs are compared in each row.
GRID = (6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28)


class Effort(NamedTuple):
    """How much work is done: numbers of comparisons, folds that are run, iterations and sweeps of a fit; of how many
    draws of a matrix, and of how many of its rows (None: all)."""

    grid: Sequence[int]
    folds: int
    iterations: int
    sweeps: int
    burn: int
    every_draw: bool
    rows: int | None = None


FULL = Effort(GRID, FOLDS, 250, 400, 100, every_draw=True)
QUICK = Effort((6, 28), 2, 30, 30, 10, every_draw=False, rows=60)


class Fold(NamedTuple):
    """Training and test cells, and the seed of whatever is random in a fit to them."""

    train: Observed
    test: Observed
    seed: int

    @property
    def places(self) -> tuple[Array, Array]:
        """Rows and columns of the test cells: all that a method hears of them."""
        return self.test.row_of_cell(), self.test.indices

    def taken_apart(self, n_per: int, seed: int) -> Uncoupled:
        """The training cells as they are collected apart, with n_per comparisons a row."""
        return Uncoupled.from_coupled(self.train, n_per, random_state=[seed, self.seed, n_per])

    def error(self, predicted: Array) -> float:
        """mean over test cells of  |x - predicted|."""
        return float(np.abs(self.test.values - predicted).mean())


def folds(X: Observed, seed: int) -> list[Fold]:
    """Five folds: the seen cells in a random order, in five parts, each of which is for test once."""
    parts = np.array_split(np.random.default_rng(seed).permutation(X.nnz), FOLDS)
    return [_fold(X, part, seed + number) for number, part in enumerate(parts)]


def _fold(X: Observed, part: Array, seed: int) -> Fold:
    is_test = np.zeros(X.nnz, bool)
    is_test[part] = True
    return Fold(X.select_cells(~is_test), X.select_cells(is_test), seed)


@contextmanager
def quietly() -> Iterator[None]:
    """Few cells, lines without any and short runs are part of the game."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield
