"""The thesis on generalized round-rank: its matrices and ratings, its methods and ours, and how they are compared."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit

import halfseen
from halfseen.arrays import Array
from halfseen.datasets import draw_active, load_ratings, load_smallnetflix, load_split, planted_levels, source
from halfseen.io import split_cells
from halfseen.metrics import ranked_probability_score
from halfseen.observed import Observed
from halfseen.rank import band, complete_by_orders, identity, triangular
from halfseen.studies.framework import Progress, RunSettings, Setting, describe, ignore_fit_warnings, parallel_map

# The matrices of Chapters 2 and 4, each of a generalized round-rank of 2 at most


class MatrixFamily(NamedTuple):
    """Matrices of one form: generalized round-rank k, the thesis's fixed thresholds, and how they are constructed.

    `construct` takes a size and a seed, and returns levels, both factors and thresholds.
    """

    title: str
    k: int
    fixed: tuple[float, ...]
    construct: Callable[[int, int], tuple[Array, Array, Array, Array]]

    def levels(self, size: int, seed: int) -> Array:
        """The matrix of levels."""
        return self.construct(size, seed)[0]


IDENTITY = MatrixFamily("identity", 2, (0.5,), lambda size, seed: identity(size))
UPPER_TRIANGLE = MatrixFamily("upper triangle", 1, (0.5,), lambda size, seed: triangular(size))
#: The thesis's bandwidth: 3 at size 10, where the rank is 8 as it says, and 10 at size 50.
BAND = MatrixFamily("band diagonal", 2, (0.5,), lambda size, seed: band(size, 3 if size == 10 else size // 5))
RANDOM_SIGNS = MatrixFamily(
    "random, levels 0 and 1", 2, (0.0,), lambda size, seed: planted_levels(size, size, 2, 1, seed)
)
RANDOM = MatrixFamily(
    "random, levels 0 to 5", 2, (0.0, 1.0, 2.0, 3.0, 4.0), lambda size, seed: planted_levels(size, size, 2, 5, seed)
)

# The ratings of section 4.3


class RatingsDataset(NamedTuple):
    """A data set: its name, how it is split, in words, and its training and test cells by seed."""

    name: str
    split: str
    load: Callable[[int], tuple[Observed, Observed]]

    @property
    def title(self) -> str:
        """Title in the catalogue."""
        return source(self.name).title


def published_split(name: str, seed: int) -> tuple[Observed, Observed]:
    """A split of MovieLens 100K, for any seed."""
    return load_split(name)


#: Data of section 4.3, by a name of ours: smallnetflix, what stands in for it, and the splits of MovieLens 100K.
DATASETS = {
    "smallnetflix": RatingsDataset(
        "smallnetflix", "its own training and validation cells", lambda seed: load_smallnetflix()
    ),
    "movielens-1m": RatingsDataset(
        "movielens-1m", "a fifth of the cells, drawn uniformly, for test",
        lambda seed: split_cells(load_ratings("movielens-1m"), 0.2, random_state=seed),
    ),
    **{
        split: RatingsDataset("movielens-100k", f"its own split {split}", partial(published_split, split))
        for split in ("u1", "u2", "u3", "u4", "u5")
    },
    "movielens-100k": RatingsDataset("movielens-100k", "all cells", lambda seed: (load_ratings("movielens-100k"),) * 2),
}  # fmt: skip

#: Rows and columns of a quick run, and in words.
QUICK_SHAPE = (120, 100)
QUICK_SAMPLE = (
    f"{QUICK_SHAPE[0]} users and {QUICK_SHAPE[1]} films, drawn by how many cells they have; a fifth of their cells, "
    "drawn uniformly, is for test"
)


def quick_split(cells: Observed, seed: int) -> tuple[Observed, Observed]:
    """Training and test cells of a sample of the rows and columns."""
    return split_cells(draw_active(cells, *QUICK_SHAPE, random_state=seed), 0.2, random_state=seed)


# How methods are compared: settings selected by cells held out of training, never by test cells


@dataclass(frozen=True)
class Method:
    """Row of a table: an unfitted estimator by setting and seed, and the settings to select from."""

    name: str
    make: Callable[..., Any]
    grid: Sequence[Setting] = ({},)

    def fit(self, cells: Observed, setting: Setting, seed: int) -> Any:
        """Fit without warnings: with few cells, empty rows and short runs are intended."""
        with ignore_fit_warnings():
            return self.make(**setting, random_state=seed).fit(cells)


def select_setting(
    method: Method, splits: Sequence[tuple[Observed, Observed]], seed: int, progress: Progress
) -> tuple[Setting, float]:
    """The setting with the lowest RMSE over the held-out cells of all splits (cells to fit, held out), and its RMSE."""
    scored = []
    for setting in method.grid:
        progress(f"{method.name}, choosing: {describe(setting, '-')}")
        models = ((method.fit(train, setting, seed), held_out) for train, held_out in splits)
        errors = np.concatenate([squared_errors(model, held_out) for model, held_out in models])
        scored.append((setting, rmse(errors)))
    return min(scored, key=lambda one: one[1])


def cell_labels(model: Any, cells: Observed) -> tuple[Array, Array]:
    """Rows and columns of the cells, which are those of the fit, as `predict` takes them: by label, if any."""
    rows, columns = cells.row_of_cell(), cells.indices
    if model.row_labels_ is None:
        return rows, columns
    return model.row_labels_[rows], model.column_labels_[columns]


def squared_errors(model: Any, cells: Observed) -> Array:
    """(prediction - truth)^2 of each cell; infinite where a fit has diverged."""
    predicted = np.asarray(model.predict(*cell_labels(model, cells)), dtype=np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        return np.nan_to_num((predicted - cells.values) ** 2, nan=np.inf, posinf=np.inf)


def rmse(errors: Array) -> float:
    """sqrt of the mean of squared errors."""
    return float(np.sqrt(errors.mean()))


def accuracy(errors: Array) -> float:
    """Share of predictions within 0.5 of the truth  (section 4.3), by their squared errors."""
    return float((errors <= 0.25).mean())


# Fits to ratings, each of which is a piece of work for a process

#: Share of the training cells by which settings are selected.
HELD_OUT = 0.1


class RatingsCells(NamedTuple):
    """Which cells: the name in `DATASETS`, the seed of the split, whether of a quick run, and the data folder."""

    dataset: str
    seed: int
    quick: bool
    folder: str


@lru_cache(maxsize=5)
def load_cells(cells: RatingsCells) -> tuple[Observed, Observed]:
    """Training and test cells, loaded once per process."""
    train, test = DATASETS[cells.dataset].load(cells.seed)
    return quick_split(train, cells.seed) if cells.quick else (train, test)


class RatingsFit(NamedTuple):
    """A fit from one start; scored at test cells or, `to_select`, at cells held out of the training cells."""

    cells: RatingsCells
    method: Method
    setting: Setting
    start: int
    to_select: bool = False

    @property
    def name(self) -> str:
        choosing = ", choosing" if self.to_select else f", start {self.start}"
        return f"{self.cells.dataset}: {self.method.name}{choosing}: {describe(self.setting, '-')}"


class RatingsScores(NamedTuple):
    """RMSE, share within 0.5, and ranked probability score."""

    rmse: float
    accuracy: float
    rps: float


def score_fit(fit: RatingsFit) -> RatingsScores:
    """Fit and score."""
    train, test = load_cells(fit.cells)
    if fit.to_select:
        train, test = split_cells(train, HELD_OUT, random_state=fit.cells.seed)
    model = fit.method.fit(train, fit.setting, fit.start)
    errors = squared_errors(model, test)
    rps = ranked_probability_score(test.values, level_probabilities(model, test), labels=model.levels_)
    return RatingsScores(rmse(errors), accuracy(errors), rps)


def score_fits(fits: Sequence[RatingsFit], settings: RunSettings, progress: Progress) -> list[RatingsScores]:
    """Scores of all fits, in processes; on a GPU one after another."""
    n_jobs = settings.n_jobs if settings.engine == "cpu" else 1
    scores: list[RatingsScores] = parallel_map(score_fit, fits, n_jobs, progress, lambda fit: fit.name)
    return scores


def held_out_scores(
    methods: Sequence[Method], data: Sequence[RatingsCells], settings: RunSettings, progress: Progress
) -> list[tuple[RatingsFit, RatingsScores]]:
    """Scores at held-out training cells of every setting of every method, from one start."""
    fits = [
        RatingsFit(cells, method, setting, settings.seed, True)
        for cells, method in product(data, methods)
        for setting in method.grid
    ]
    return list(zip(fits, score_fits(fits, settings, progress), strict=True))


# The thesis's methods and ours

LINEAR, SIGMOID, SIGMOID_FIXED = "Linear", "Multi-sigmoid", "Multi-sigmoid, fixed τ"
ROUND, ROUND_FIXED = "Round", "Round, fixed τ"
OURS_SIGMOID, OURS_ORDINAL, OURS_ORDERS = "ours: Multi-sigmoid", "ours: OrdinalMF", "ours: mean over orders"

#: The thesis's program: steps of the factors to select from (its own are 100 times these), iterations, and ridge per
#: cell (2 beta), which is next to nothing for Round.
STEPS = (0.03, 0.01, 0.003, 0.001)
ITERATIONS = 4000
THESIS_L2, THESIS_ROUND_L2 = 2 * 0.002, 2 * 1e-7
#: Our methods: grid of l2, starts both while selecting and afterwards, and tol.
L2 = (0.03, 0.1, 0.3, 1.0)
STARTS = 10
TOL = 1e-3
#: Matrices as small as these are done before a second thread has started.
ONE_THREAD = 1
#: Next to nothing: a matrix to be recovered is not predicted.
RECOVERY_L2 = 1e-5

LOSSES = {ROUND: "round", LINEAR: "linear", SIGMOID: "multi-sigmoid"}
#: Grid of l2 for ratings, and of the components of OrdinalMF; the thesis's best competitor has 30.
RATINGS_L2 = (3.0, 5.0, 7.0, 10.0, 15.0, 22.0, 30.0, 45.0)
ORDINAL_K = (10, 30)


def _losses(family: MatrixFamily) -> dict[str, dict[str, Any]]:
    """The thesis's five methods. Fixed thresholds need no cell at every level."""
    fixed = {"thresholds": family.fixed, "levels": list(range(len(family.fixed) + 1))}
    return {
        LINEAR: {"loss": "linear"},
        SIGMOID: {"loss": "multi-sigmoid"},
        SIGMOID_FIXED: {"loss": "multi-sigmoid", **fixed},
        ROUND: {"loss": "round"},
        ROUND_FIXED: {"loss": "round", **fixed},
    }


def recovery_methods(family: MatrixFamily, starts: int) -> list[Method]:
    """The thesis's five by Newton's method, without biases, each from several starts."""
    make = partial(halfseen.RoundMF, family.k, biases=False, tol=0.0, n_init=starts, n_jobs=ONE_THREAD)
    ridges = {ROUND: None, ROUND_FIXED: None}  # Round's own is as small
    return [
        Method(name, partial(make, l2=ridges.get(name, RECOVERY_L2), **loss)) for name, loss in _losses(family).items()
    ]


def thesis_methods(
    family: MatrixFamily, steps: Sequence[float] = STEPS, iterations: int = ITERATIONS
) -> list[Method]:  # fmt: skip
    """The thesis's five rows by its own program: full gradients, a constant step, a ridge per cell  (section 3.2).

    It starts at factors uniform in (-0.005, 0.005) and, if they are learned, at thresholds 0, 1, ... Linear has no
    offset; Round has no margin, and outer intervals of length 1.
    """
    highest = len(family.fixed)
    rounding = {"l2": THESIS_ROUND_L2, "margin": 0.0, "ends": 1.0}
    options: dict[str, dict[str, Any]] = {
        LINEAR: {"thresholds": np.arange(highest) + 0.5, "levels": list(range(highest + 1))},
        ROUND: rounding,
        ROUND_FIXED: rounding,
    }
    make = partial(
        halfseen.RoundMF, family.k, biases=False, centred=False, solver="gd", init="random", tol=0.0,
        max_iter=iterations, n_jobs=ONE_THREAD,
    )  # fmt: skip
    grid = [{"learning_rate": step} for step in steps]
    return [
        Method(name, partial(make, **{"l2": THESIS_L2, **loss, **options.get(name, {})}), grid)
        for name, loss in _losses(family).items()
    ]


class OrderMeans:
    """`complete_by_orders` with the methods of an estimator, for triangles in any order."""

    row_labels_ = None

    def __init__(self, random_state: int) -> None:
        self.random_state = random_state

    def fit(self, cells: Observed) -> "OrderMeans":
        """Sample the orders that agree with the cells."""
        self.mean_ = complete_by_orders(cells, random_state=self.random_state).mean
        return self

    def predict(self, rows: Array, columns: Array) -> Array:
        """Mean level over the orders."""
        return np.asarray(self.mean_[rows, columns])


def our_methods(family: MatrixFamily, l2: Sequence[float] = L2, starts: int = STARTS) -> list[Method]:
    """Newton's method from several starts; at k = 1, where x has no room for averages, with biases and our centre.

    At k = 1, which is a triangle here, also the mean over all orders of rows and columns.
    """
    form = {"biases": family.k == 1, "centred": family.k == 1}
    grid = [{**form, "l2": value} for value in l2]
    options: dict[str, Any] = {"n_init": starts, "tol": TOL, "n_jobs": ONE_THREAD}
    return [
        Method(OURS_SIGMOID, partial(halfseen.RoundMF, family.k, **options), grid),
        Method(OURS_ORDINAL, partial(halfseen.OrdinalMF, family.k, **options), grid),
        *([Method(OURS_ORDERS, OrderMeans)] if family.k == 1 else []),
    ]


def ratings_method(
    name: str, k: int, biases: bool, l2: Sequence[float], settings: RunSettings
) -> Method:  # fmt: skip
    """RoundMF with one of the thesis's losses, for ratings."""
    make = partial(halfseen.RoundMF, k, loss=LOSSES[name], biases=biases, **resources(settings))
    return Method(f"{name}, biases" if biases else name, make, [{"l2": value} for value in l2])


def ordinal_ratings_method(ks: Sequence[int], l2: Sequence[float], settings: RunSettings) -> Method:
    """OrdinalMF, with its number of components selected too."""
    grid = [{"n_components": k, "l2": value} for k, value in product(ks, l2)]
    return Method("OrdinalMF", partial(halfseen.OrdinalMF, **resources(settings)), grid)


def resources(settings: RunSettings) -> dict[str, Any]:
    """Parameters of an estimator: the engine, and one thread where processes share the machine."""
    return {"engine": settings.engine, "n_jobs": None if settings.n_jobs == 1 else ONE_THREAD}


def level_probabilities(model: Any, cells: Observed) -> Array:
    """(cells, levels): OrdinalMF's own; the heights of Multi-sigmoid's steps; else 1 at the predicted level."""
    rows, columns = cells.row_of_cell(), cells.indices
    if isinstance(model, halfseen.OrdinalMF):
        return np.asarray(model.predict_proba(*cell_labels(model, cells)))
    x = np.einsum("ck,ck->c", model.W_[rows], model.H_[columns])
    if model.loss == "multi-sigmoid":
        above = expit(x[:, None] - model.likelihood_.thresholds)
    else:
        above = (x[:, None] > model.thresholds_).astype(np.float64)
    return -np.diff(above, axis=1, prepend=1.0, append=0.0)
