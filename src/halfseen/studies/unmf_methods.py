"""The paper on uncoupled data: its matrices, five folds over their cells, its methods and ours, baselines, claims."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
from halfseen.sampling.coupling import Layout
from halfseen.studies.framework import Goal, Setting, ignore_fit_warnings
from halfseen.uncoupled import Uncoupled
from halfseen.uncoupled.pseudo_observations import error_weights, pseudo_observations

FOLDS = 5
#: n_per of the paper: pairs compared in each row.
GRID = (6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28)


class UncoupledConfig(NamedTuple):
    """Size of a run: numbers of comparisons, folds, stop of all that iterates, sweeps, all draws or one, and rows."""

    grid: Sequence[int]
    folds: int
    max_iter: int
    tol: float
    sweeps: int
    burn: int
    every_draw: bool
    rows: int | None = None


#: Iterations end, and sweeps are as many, as `UncoupledNMF` has it by default.
FULL = UncoupledConfig(GRID, FOLDS, 500, 1e-5, 300, 100, every_draw=True)
QUICK = UncoupledConfig((6, 28), 2, 10, 1e-5, 30, 10, every_draw=False, rows=60)

# Data


@dataclass(frozen=True)
class MatrixDataset:
    """A panel of Figure 1: the paper's k and range of random guesses, and the number of draws.

    Each draw has folds and comparisons of its own, the synthetic matrix also its noise.
    """

    letter: str
    title: str
    k: int
    guesses: tuple[float, float]
    draws: int
    read: Callable[[], Observed] | None = None
    source: str | None = None  # name in the data folder

    def load(self, draw: int, rows: int | None = None) -> Observed:
        """The matrix without labels, or a sample of its rows."""
        matrix = observe(unmf_synthetic(draw)) if self.read is None else self.read()
        matrix = replace(matrix, row_labels=None, column_labels=None)
        return matrix if rows is None else draw_active(matrix, rows, random_state=draw)


SYNTHETIC = MatrixDataset("a", "SYNTH", 2, (0.5, 6.5), 5)
MOVIELENS = MatrixDataset("b", "MovieLens genres", 3, (1.0, 5.0), 2, load_movielens_genres, "movielens-genres")
SUSHI = MatrixDataset("c", "SUSHI groups", 3, (0.0, 4.0), 2, load_sushi_groups, "sushi-groups")
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
        """Fit in one thread. The objective alone decides when to stop, by the library's rule."""
        if self.parameters["method"] == "gibbs":
            length: dict[str, Any] = {"n_sweeps": config.sweeps, "n_burn": config.burn}
        else:
            length = {"max_iter": config.max_iter, "tol": config.tol}
        model = halfseen.UncoupledNMF(self.k or k, **self.parameters, **length, random_state=seed, n_jobs=1)
        with ignore_fit_warnings():
            return model.fit(seen)


ZERO = UncoupledMethod("UNMF, λ zero", {"method": "unmf", "balance": "zero"})
HALF = UncoupledMethod("UNMF, λ half", {"method": "unmf", "balance": "half"})
WHOLE = UncoupledMethod("UNMF, λ full", {"method": "unmf", "balance": "full"})
KL_ZERO, KL_HALF, KL_WHOLE = (
    UncoupledMethod(f"{method.name}, KL", {**method.parameters, "loss": "kullback-leibler"})
    for method in (ZERO, HALF, WHOLE)
)
BAYES = UncoupledMethod("bayes", {"method": "bayes"})
DECODE = UncoupledMethod("decode, k = 1", {"method": "decode"}, k=1)
GIBBS = UncoupledMethod("gibbs, k = 5", {"method": "gibbs"}, k=5)

#: The first two are those of the paper's experiments.
METHODS = (ZERO, HALF, WHOLE, KL_ZERO, KL_HALF, KL_WHOLE, BAYES, DECODE, GIBBS)

# Baselines that need no comparisons

#: Numbers of components to select from, by this many folds of the training cells.
KS, SELECTION_FOLDS = (1, 2, 3, 5), 5
#: Components of the coupled sampler, as of `GIBBS`, and its trust in comparisons, of which it has none.
BAYES_K, TRUST = 5, 1.0


def coupled_nmf(train: Observed, cells: tuple[Array, Array], k: int, config: UncoupledConfig, seed: int) -> Array:
    """The paper's ORACLE: squared error, multiplicative updates, stopped as the uncoupled methods are."""
    model = halfseen.WeightedNMF(
        k, loss="frobenius", max_iter=config.max_iter, tol=config.tol, random_state=seed, n_jobs=1
    )
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
    with one_blas_thread(), Threads(1) as threads:  # its matrices are small
        chain = known_chain(train, k, seed, threads)
        for number in range(sweeps):
            chain.sweep(0)
            if number >= burn:
                total += chain.A @ chain.B.T
    centre, scale = (unit[:, None] for unit in chain.layout.units)
    return np.asarray(centre + scale * total / (sweeps - burn))


def known_chain(train: Observed, k: int, seed: int, threads: Threads) -> Any:
    """A chain in which every cell has its own value, and keeps it as long as no exchanges are proposed."""
    from halfseen.sampling.coupling_chain import CouplingChain

    layout = Layout.from_collection(Uncoupled.from_coupled(train, 0))
    chain = CouplingChain(layout, k, TRUST, np.random.default_rng(seed), threads)
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


def row_shares(seen: Uncoupled, balance: str) -> tuple[Observed, Observed]:
    """Pseudo-observations of Eq. 4 as printed, and with the same share of each row in both of its sums.

    Row i has the share n_Ci / n_C of the comparisons, but n_Ui / n_U of the asked cells. Where these differ, Eq. 4 is
    not the coupled loss even if all pairs are compared. With the latter share in both, y - lambda is multiplied by
    their ratio.
    """
    with Threads(1) as threads:
        w, _ = error_weights(seen.answers, seen.answer_indptr, threads)
    printed, _, _, balances = pseudo_observations(seen, w, balance)
    n_asked, n_compared = np.diff(seen.indptr), np.diff(seen.comparison_indptr)
    ratio = np.where(n_compared > 0, n_asked / n_asked.sum() * n_compared.sum() / np.maximum(n_compared, 1), 1.0)
    row = seen.row_of_cell()
    values = balances[row] + (printed.values - balances[row]) * ratio[row]
    return printed, replace(printed, values=np.maximum(values, 0.0))


class FoldTask(NamedTuple):
    """A fold of a drawn matrix on which all methods are run."""

    dataset: MatrixDataset
    config: UncoupledConfig
    draw: int
    number: int
    X: Observed

    def __str__(self) -> str:
        return f"{self.dataset.title}, draw {self.draw}, fold {self.number + 1}"

    @property
    def fold(self) -> Fold:
        """Training and test cells."""
        return make_folds(self.X, self.draw)[self.number]


def fold_tasks(dataset: MatrixDataset, config: UncoupledConfig, seed: int) -> list[FoldTask]:
    """The folds of all draws, which have the seeds from `seed` on."""
    draws = range(seed, seed + (dataset.draws if config.every_draw else 1))
    matrices = {draw: dataset.load(draw, config.rows) for draw in draws}
    return [
        FoldTask(dataset, config, draw, number, X) for draw, X in matrices.items() for number in range(config.folds)
    ]


class FoldErrors(NamedTuple):
    """Test MAE of all methods by number of comparisons, and calibration of `GIBBS` at some of these.

    Also test MAE of the paper's methods with Eq. 4 as printed and with equal `row_shares`, each with the most
    comparisons of the grid and with those of all pairs.
    """

    errors: Mapping[str, list[float]]
    calibrations: Mapping[int, Calibration]
    shares: Mapping[str, list[float]]


def fold_errors(task: FoldTask) -> FoldErrors:
    """Run all methods on a fold."""
    dataset, config, fold = task.dataset, task.config, task.fold
    errors: dict[str, list[float]] = {method.name: [] for method in METHODS}
    for name in BASELINES:
        errors[name] = [fold.mae(predict_baseline(name, fold, dataset, config))] * len(config.grid)
    calibrations: dict[int, Calibration] = {}
    for n_per in config.grid:
        seen = fold.uncouple(n_per, task.draw)
        for method in METHODS:
            model = method.fit(seen, dataset.k, config, fold.seed)
            errors[method.name].append(fold.mae(model.predict(*fold.test_cells)))
            if method is GIBBS and n_per in CALIBRATE_AT:
                calibrations[n_per] = calibrate(model, fold)
    shares: dict[str, list[float]] = {method.name: [] for method in (ZERO, HALF)}
    for n_per in (config.grid[-1], task.X.shape[1] ** 2):
        seen = fold.uncouple(n_per, task.draw)
        for method in (ZERO, HALF):
            for values in row_shares(seen, method.parameters["balance"]):
                predicted = coupled_nmf(values, fold.test_cells, dataset.k, config, fold.seed)
                shares[method.name].append(fold.mae(predicted))
    return FoldErrors(errors, calibrations, shares)


class ErrorCurves(NamedTuple):
    """Test MAE by method, as (runs, numbers of comparisons), calibrations by number of comparisons, and `row_shares`.

    A run is a fold of a draw. A baseline has the same error for every number of comparisons.
    """

    dataset: MatrixDataset
    config: UncoupledConfig
    shape: tuple[int, int]
    errors: Mapping[str, Array]
    calibrations: Mapping[int, Array]
    shares: Mapping[str, Array]

    @classmethod
    def from_folds(cls, tasks: Sequence[FoldTask], results: Sequence[FoldErrors]) -> ErrorCurves:
        """Errors of all folds of a dataset."""
        dataset, config, *_, X = tasks[0]
        errors = {name: np.array([result.errors[name] for result in results]) for name in NAMES}
        numbers = results[0].calibrations
        calibrations = {n_per: np.array([result.calibrations[n_per] for result in results]) for n_per in numbers}
        shares = {name: np.array([result.shares[name] for result in results]) for name in results[0].shares}
        return cls(dataset, config, X.shape, errors, calibrations, shares)

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

    def medians(self, name: str) -> Array:
        """Median of a method over the runs, by number of comparisons."""
        return np.median(self.errors[name], axis=0)

    def at(self, name: str, n_per: int) -> float:
        """Mean of a method with this many comparisons per row."""
        return float(self.means(name)[list(self.config.grid).index(n_per)])


# The paper's claims


def claims(curves: ErrorCurves) -> list[Goal]:
    """What section 5 says of Figure 1, which prints no numbers, for one dataset.

    Averages and standard deviations are over the folds, as in the figure. Few comparisons are the fewest of the grid,
    many the most.
    """
    few, many = curves.config.grid[0], curves.config.grid[-1]
    oracle, random = curves.errors[ORACLE][:, 0], curves.errors[RANDOM][:, 0]
    goals = []
    for name in (ZERO.name, HALF.name):
        first, last = curves.errors[name][:, 0], curves.errors[name][:, -1]
        means = float(first.mean()), float(last.mean())
        of_method, shown = f"{curves.title}, {name}", f"{means[0]:.3f} with {few}, {means[1]:.3f} with {many}"
        n_better = int(np.count_nonzero(last < first))
        goals.append(
            Goal.claim(
                f"{of_method}: 'improves with the number of PCD': the average with {many} comparisons per row is below "
                f"that with {few}, and so are most folds: {shown}, {n_better} of {first.size} folds",
                means[1] < means[0] and 2 * n_better > first.size,
            )
        )
        ratios, limit = [mean / oracle.mean() for mean in means], oracle.mean() + np.std(oracle, ddof=1)
        goals.append(
            Goal.claim(
                f"{of_method}: 'approaches the performance of ORACLE NMF', 'matches' it in section 1: the average "
                f"with {many} is nearer to the oracle's than with {few}, and within one S.D. of its folds: "
                f"{ratios[0]:.2f} and {ratios[1]:.2f} times {oracle.mean():.3f}, which with the S.D. is {limit:.3f}",
                bool(ratios[1] < ratios[0] and means[1] <= limit),
            )
        )
        goals.append(
            Goal.claim(
                f"{of_method}: 'is effective': with {many} comparisons the average is below that of RANDOM, the "
                f"paper's benchmark: {means[1]:.3f} against {random.mean():.3f}",
                bool(means[1] < random.mean()),
            )
        )
    (zero, zero_std), (half, half_std) = (
        (float(curves.means(name)[0]), float(curves.stds(name)[0])) for name in (ZERO.name, HALF.name)
    )
    goals.append(
        Goal.claim(
            f"{curves.title}, {HALF.name}: 'shows stable performance even when only small amount of PCD is available': "
            f"with {few}, average and S.D. are below those of λ zero: {half:.3f} (S.D. {half_std:.3f}) against "
            f"{zero:.3f} (S.D. {zero_std:.3f})",
            half < zero and half_std < zero_std,
        )
    )
    return goals
