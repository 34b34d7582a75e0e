"""How methods are measured: the data of section 5, five folds over their cells, the training cells taken apart."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from halfseen.arrays import Array
from halfseen.datasets import draw_active, load_movielens_genres, load_sushi_groups, unmf_synthetic
from halfseen.io import observe
from halfseen.observed import Observed
from halfseen.uncoupled import Uncoupled

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


@dataclass(frozen=True)
class DataSet:
    """A panel of Figure 1: its letter and title, the paper's k and the range of its random guesses.

    `read` gives the matrix by the number of a draw; the real sets have one, and ignore the number. `source` is the name
    of what must be in the data folder.
    """

    letter: str
    title: str
    k: int
    guesses: tuple[float, float]
    read: Callable[[int], Observed]
    draws: int = 1
    source: str | None = None

    def load(self, draw: int, rows: int | None = None) -> Observed:
        """The matrix without labels: cells go by their positions. `rows`: so many of its rows, drawn (None: all)."""
        whole = replace(self.read(draw), row_labels=None, column_labels=None)
        return whole if rows is None else draw_active(whole, rows, random_state=draw)


SYNTHETIC = DataSet("a", "SYNTH", 2, (0.5, 6.5), lambda draw: observe(unmf_synthetic(draw)), draws=5)
MOVIELENS = DataSet(
    "b", "MovieLens genres", 3, (1.0, 5.0), lambda draw: load_movielens_genres(), source="movielens-genres"
)
SUSHI = DataSet("c", "SUSHI groups", 3, (0.0, 4.0), lambda draw: load_sushi_groups(), source="sushi-groups")
SETS = (SYNTHETIC, MOVIELENS, SUSHI)


class Fold(NamedTuple):
    """Training and test cells, and the seed of whatever is random in a fit to them."""

    train: Observed
    test: Observed
    seed: int

    @property
    def places(self) -> tuple[Array, Array]:
        """Rows and columns of the test cells: all that a method is given of them."""
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
    tests = [np.isin(np.arange(X.nnz), part) for part in parts]
    return [Fold(X.select_cells(~one), X.select_cells(one), seed + number) for number, one in enumerate(tests)]
