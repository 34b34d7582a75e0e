"""The paper on uncoupled data: its matrices, five folds over their cells, its methods and ours, baselines and goals."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, NamedTuple

import numpy as np

import halfseen
from halfseen.arrays import Array
from halfseen.datasets import draw_active, load_movielens_genres, load_sushi_groups, unmf_synthetic
from halfseen.engines.threads import Threads, one_blas_thread
from halfseen.io import k_folds, observe
from halfseen.observed import Observed
from halfseen.studies.framework import Progress, Setting, ignore_fit_warnings
from halfseen.uncoupled import Uncoupled
from halfseen.uncoupled.layout import Layout

FOLDS = 5
#: n_per of the paper: pairs compared in each row.
GRID = (6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28)


class UncoupledConfig(NamedTuple):
    """Size of a run: numbers of comparisons, folds, iterations, sweeps, whether all draws of a matrix, and its rows."""

    grid: Sequence[int]
    folds: int
    iterations: int
    sweeps: int
    burn: int
    every_draw: bool
    rows: int | None = None


FULL = UncoupledConfig(GRID, FOLDS, 250, 400, 100, every_draw=True)
QUICK = UncoupledConfig((6, 28), 2, 30, 30, 10, every_draw=False, rows=60)

# Data


@dataclass(frozen=True)
class MatrixDataset:
    """A panel of Figure 1: the paper's k and range of random guesses, and the matrix by the number of a draw."""

    letter: str
    title: str
    k: int
    guesses: tuple[float, float]
    read: Callable[[int], Observed]
    draws: int = 1
    source: str | None = None  # name in the data folder

    def load(self, draw: int, rows: int | None = None) -> Observed:
        """The matrix without labels, or a sample of its rows."""
        matrix = replace(self.read(draw), row_labels=None, column_labels=None)
        return matrix if rows is None else draw_active(matrix, rows, random_state=draw)


SYNTHETIC = MatrixDataset("a", "SYNTH", 2, (0.5, 6.5), lambda draw: observe(unmf_synthetic(draw)), draws=5)
MOVIELENS = MatrixDataset(
    "b", "MovieLens genres", 3, (1.0, 5.0), lambda draw: load_movielens_genres(), source="movielens-genres"
)
SUSHI = MatrixDataset("c", "SUSHI groups", 3, (0.0, 4.0), lambda draw: load_sushi_groups(), source="sushi-groups")
DATASETS = (SYNTHETIC, MOVIELENS, SUSHI)


class Fold(NamedTuple):
    """Training and test cells, and the seed of fits to them."""

    train: Observed
    test: Observed
    seed: int

    @property
    def test_cells(self) -> tuple[Array, Array]:
        """Rows and columns of the test cells: all that a method is given of them."""
        return self.test.row_of_cell(), self.test.indices

    def uncouple(self, n_per: int, seed: int) -> Uncoupled:
        """The training cells as uncoupled data with n_per comparisons per row."""
        return Uncoupled.from_coupled(self.train, n_per, random_state=[seed, self.seed, n_per])

    def mae(self, predicted: Array) -> float:
        """mean over test cells of  |x - predicted|."""
        return float(np.abs(self.test.values - predicted).mean())


def make_folds(X: Observed, seed: int) -> list[Fold]:
    """Five folds of the seen cells in a random order, each for test once."""
    places = np.array_split(np.random.default_rng(seed).permutation(X.nnz), FOLDS)
    masks = [np.isin(np.arange(X.nnz), one) for one in places]
    return [Fold(X.select_cells(~mask), X.select_cells(mask), seed + number) for number, mask in enumerate(masks)]


# Methods for uncoupled data


@dataclass(frozen=True)
class UncoupledMethod:
    """Parameters of `UncoupledNMF`; `k` components, or the paper's number for the data."""

    name: str
    parameters: Setting
    k: int | None = None

    def fit(self, seen: Uncoupled, k: int, config: UncoupledConfig, seed: int) -> Any:
        """Fit for a fixed number of iterations: no prediction decides when to stop."""
        if self.parameters["method"] == "gibbs":
            length: dict[str, Any] = {"n_sweeps": config.sweeps, "n_burn": config.burn}
        else:
            length = {"max_iter": config.iterations, "tol": 0.0}
        with ignore_fit_warnings():
            return halfseen.UncoupledNMF(self.k or k, **self.parameters, **length, random_state=seed).fit(seen)


ZERO = UncoupledMethod("UNMF, λ zero", {"method": "unmf", "balance": "zero"})
HALF = UncoupledMethod("UNMF, λ half", {"method": "unmf", "balance": "half"})
WHOLE = UncoupledMethod("UNMF, λ full", {"method": "unmf", "balance": "full"})
KL = UncoupledMethod("UNMF, λ full, KL", {"method": "unmf", "balance": "full", "loss": "kullback-leibler"})
BAYES = UncoupledMethod("bayes", {"method": "bayes"})
DECODE = UncoupledMethod("decode, k = 1", {"method": "decode"}, k=1)
GIBBS = UncoupledMethod("gibbs, k = 5", {"method": "gibbs"}, k=5)

#: The first two are the paper's.
METHODS = (ZERO, HALF, WHOLE, KL, BAYES, DECODE, GIBBS)

# Baselines that need no comparisons

#: Numbers of components to select from, by this many folds of the training cells.
KS, SELECTION_FOLDS = (1, 2, 3, 5), 5
#: Components of the coupled sampler, as of `GIBBS`, and its trust in comparisons, of which it has none.
BAYES_K, TRUST = 5, 1.0


def coupled_nmf(train: Observed, cells: tuple[Array, Array], k: int, config: UncoupledConfig, seed: int) -> Array:
    """The paper's ORACLE: squared error, multiplicative updates, as many as of the uncoupled methods."""
    model = halfseen.WeightedNMF(k, loss="frobenius", max_iter=config.iterations, tol=0.0, random_state=seed)
    with ignore_fit_warnings():
        return np.asarray(model.fit(train).predict(*cells))


def best_k(train: Observed, ks: Sequence[int], config: UncoupledConfig, seed: int) -> int:
    """The k with the lowest absolute error over folds of the training cells."""
    folds = list(k_folds(train, SELECTION_FOLDS, random_state=seed))
    errors = dict.fromkeys(ks, 0.0)
    for k, (fitted, held_out) in product(ks, folds):
        predicted = coupled_nmf(fitted, (held_out.row_of_cell(), held_out.indices), k, config, seed)
        errors[k] += float(np.abs(predicted - held_out.values).sum())
    return min(ks, key=lambda k: errors[k])


def coupled_bayes(train: Observed, k: int, sweeps: int, burn: int, seed: int) -> Array:
    """The sampler of couplings, given the true coupling.

    The posterior mean of every cell under  x_ij ~ N(a_i . b_j, rho_i s_j^2), x known at the training cells.
    """
    total = np.zeros(train.shape)
    with one_blas_thread(), Threads(None) as threads:  # its matrices are small
        chain = known_chain(train, k, seed, threads)
        for number in range(sweeps):
            chain.sweep(0)
            if number >= burn:
                total += chain.A @ chain.B.T
    centre, scale = (unit[:, None] for unit in chain.layout.units)
    return np.asarray(centre + scale * total / (sweeps - burn))


def known_chain(train: Observed, k: int, seed: int, threads: Threads) -> Any:
    """A chain in which every cell has its own value, and keeps it as long as no exchanges are proposed."""
    from halfseen.uncoupled.chain import Chain

    layout = Layout.from_collection(Uncoupled.from_coupled(train, 0))
    chain = Chain(layout, k, TRUST, np.random.default_rng(seed), threads)
    by_value = np.lexsort((train.values, train.row_of_cell()))  # tokens rise in each row
    chain.cell_of_token = by_value
    chain.token_of_cell = np.argsort(by_value)
    return chain


RANDOM, ROW_MEAN = "RANDOM", "row mean"
ORACLE, BEST_K, COUPLED_BAYES = "coupled NMF", "coupled NMF, best k", "coupled Bayes, k = 5"


def predict_baseline(name: str, fold: Fold, dataset: MatrixDataset, config: UncoupledConfig) -> Array:
    """Predictions at the test cells. RANDOM, uniform in the paper's range, and ORACLE are the paper's."""
    train, cells, seed = fold.train, fold.test_cells, fold.seed
    if name == RANDOM:
        return np.random.default_rng(seed).uniform(*dataset.guesses, size=fold.test.nnz)
    if name == ROW_MEAN:  # of all cells for an empty row
        counts = train.seen_per_row()
        sums = np.bincount(train.row_of_cell(), train.values, minlength=train.shape[0])
        return np.where(counts > 0, sums / np.maximum(counts, 1), train.values.mean())[cells[0]]
    if name == COUPLED_BAYES:
        return coupled_bayes(train, BAYES_K, config.sweeps, config.burn, seed)[cells]
    k = dataset.k if name == ORACLE else best_k(train, KS, config, seed)
    return coupled_nmf(train, cells, k, config, seed)


BASELINES = (RANDOM, ROW_MEAN, ORACLE, BEST_K, COUPLED_BAYES)
#: The rows of the tables.
NAMES = (*(method.name for method in METHODS), *BASELINES)

# Test errors and calibration

#: Level of the intervals, and the numbers of comparisons at which calibration is measured.
LEVEL = 0.9
CALIBRATE_AT = (6, 12, 20, 28)


class Calibration(NamedTuple):
    """Coverage and width of intervals at test cells; disclosure risk of asked cells, and share of correct guesses."""

    coverage: float
    width: float
    risk: float
    hits: float


def calibrate(model: Any, fold: Fold) -> Calibration:
    """Calibration of a model with sampled couplings, by values that it was not given."""
    low, high = model.predict_interval(*fold.test_cells, LEVEL)
    answer: Array = model.coupling().answer  # in the order of the training cells
    return Calibration(
        float(np.mean((low <= fold.test.values) & (fold.test.values <= high))),
        float(np.mean(high - low)),
        float(model.disclosure_risk().mean()),
        float(np.mean(answer == fold.train.values)),
    )


class ErrorCurves(NamedTuple):
    """Test MAE by method, as (runs, numbers of comparisons), and calibrations by number of comparisons, as (runs, 4).

    A run is a fold of a matrix. A baseline has the same error for every number of comparisons.
    """

    dataset: MatrixDataset
    config: UncoupledConfig
    shape: tuple[int, int]
    errors: Mapping[str, Array]
    calibrations: Mapping[int, Array]

    @property
    def title(self) -> str:
        """Title of the dataset, or of a sample of it."""
        is_sample = self.shape[0] == self.config.rows
        return f"{self.dataset.title} (a part)" if is_sample else self.dataset.title

    def means(self, name: str) -> Array:
        """Mean of a method over the runs, by number of comparisons."""
        return np.asarray(self.errors[name].mean(axis=0))

    def stds(self, name: str) -> Array:
        """The standard deviations that go with them."""
        return np.std(self.errors[name], axis=0, ddof=1)

    def at(self, name: str, n_per: int) -> float:
        """Mean of a method with this many comparisons per row."""
        return float(self.means(name)[list(self.config.grid).index(n_per)])


def error_curves(dataset: MatrixDataset, config: UncoupledConfig, seed: int, progress: Progress) -> ErrorCurves:
    """Run all methods on the folds of all matrices, which are drawn with the seeds from `seed` on."""
    draws = range(seed, seed + (dataset.draws if config.every_draw else 1))
    matrices = [dataset.load(draw, config.rows) for draw in draws]
    runs: dict[str, list[list[float]]] = {name: [] for name in NAMES}
    calibrations: dict[int, list[Calibration]] = {}
    for draw, X in zip(draws, matrices, strict=True):
        for number, fold in enumerate(make_folds(X, draw)[: config.folds], 1):
            where = f"{dataset.title}, {f'draw {draw}, ' if dataset.draws > 1 else ''}fold {number}"
            progress(f"{where}: baselines")
            for name in BASELINES:
                runs[name].append([fold.mae(predict_baseline(name, fold, dataset, config))] * len(config.grid))
            for method in METHODS:
                runs[method.name].append([])
            for n_per in config.grid:
                progress(f"{where}: {n_per} comparisons a row")
                seen = fold.uncouple(n_per, draw)
                models = {method.name: method.fit(seen, dataset.k, config, fold.seed) for method in METHODS}
                for name, model in models.items():
                    runs[name][-1].append(fold.mae(model.predict(*fold.test_cells)))
                if n_per in CALIBRATE_AT:
                    calibrations.setdefault(n_per, []).append(calibrate(models[GIBBS.name], fold))
    errors = {name: np.array(by_fold) for name, by_fold in runs.items()}
    by_number = {n_per: np.array(by_fold) for n_per, by_fold in calibrations.items()}
    return ErrorCurves(dataset, config, matrices[0].shape, errors, by_number)


# Goals

#: Largest test MAE of sampled couplings, by data and comparisons per row.
LARGEST = {SYNTHETIC.title: {28: 0.66}, MOVIELENS.title: {12: 0.400, 28: 0.388}, SUSHI.title: {12: 0.905, 28: 0.900}}
#: Largest ratio of their error to that of the row mean.
AGAINST_ROW_MEAN = 1.02
#: Five-fold errors of an earlier prototype, and the relative tolerance.
EARLIER = {
    (HALF.name, MOVIELENS.title): {6: 1.04, 12: 0.811, 20: 0.697, 28: 0.620},
    (WHOLE.name, MOVIELENS.title): {6: 0.552, 12: 0.508, 20: 0.480, 28: 0.471},
    (HALF.name, SUSHI.title): {6: 1.60, 12: 1.33, 20: 1.30, 28: 1.30},
    (WHOLE.name, SUSHI.title): {6: 1.48, 12: 1.26, 20: 1.21, 28: 1.20},
}
TOLERANCE = 0.05


class GoalRow(NamedTuple):
    """Row of the table of goals."""

    method: str
    data: str
    comparisons: int
    wanted: str
    ours: float
    reached: bool


def goal_rows(curves: ErrorCurves) -> Iterator[GoalRow]:
    """All goals for one dataset."""
    data, grid = curves.dataset.title, curves.config.grid
    for n_per, largest in LARGEST[data].items():
        if n_per in grid:
            ours = curves.at(GIBBS.name, n_per)
            yield GoalRow(GIBBS.name, data, n_per, f"at most {largest:.3f}", ours, ours <= largest)
    # where sampled couplings are worst relative to the row mean
    means, row_mean = curves.means(GIBBS.name), curves.means(ROW_MEAN)
    worst = int((means / row_mean).argmax())
    largest, ours = AGAINST_ROW_MEAN * row_mean[worst], float(means[worst])
    wanted = f"at most {largest:.3f}, {AGAINST_ROW_MEAN:g} times the row mean, at every number: here the worst"
    yield GoalRow(GIBBS.name, data, grid[worst], wanted, ours, bool(ours <= largest))
    for (name, where), errors in EARLIER.items():
        for n_per, earlier in errors.items():
            if where == data and n_per in grid:
                ours = curves.at(name, n_per)
                is_near = abs(ours - earlier) <= TOLERANCE * earlier
                yield GoalRow(name, data, n_per, f"{earlier:#.3g} within {TOLERANCE:.0%}", ours, is_near)
