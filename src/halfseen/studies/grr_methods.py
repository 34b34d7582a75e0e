"""The thesis on generalized round-rank: its matrices and ratings, its methods and ours, and how they are compared."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit

import halfseen
from halfseen.arrays import Array
from halfseen.datasets import draw_active, load_ratings, load_smallnetflix, load_split, planted_levels, source
from halfseen.io import split_cells
from halfseen.observed import Observed
from halfseen.rank import band, identity, triangular
from halfseen.studies.framework import Progress, Setting, describe, ignore_fit_warnings

# The matrices of Chapters 2 and 4, each of a generalized round-rank of 2 at most


class MatrixFamily(NamedTuple):
    """Matrices of one form: generalized round-rank k, the thesis's fixed thresholds, and levels by size and seed."""

    title: str
    k: int
    fixed: tuple[float, ...]
    levels: Callable[[int, int], Array]


IDENTITY = MatrixFamily("identity", 2, (0.5,), lambda size, seed: identity(size).Y)
UPPER_TRIANGLE = MatrixFamily("upper triangle", 1, (0.5,), lambda size, seed: triangular(size).Y)
#: The thesis's bandwidth: 3 at size 10, where the rank is 8 as it says, and 10 at size 50.
BAND = MatrixFamily("band diagonal", 2, (0.5,), lambda size, seed: band(size, 3 if size == 10 else size // 5).Y)
RANDOM_SIGNS = MatrixFamily(
    "random, levels 0 and 1", 2, (0.0,), lambda size, seed: planted_levels(size, size, 2, 1, seed)[0]
)
RANDOM = MatrixFamily(
    "random, levels 0 to 5", 2, (0.0, 1.0, 2.0, 3.0, 4.0),
    lambda size, seed: planted_levels(size, size, 2, 5, seed)[0],
)  # fmt: skip

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


SMALLNETFLIX = RatingsDataset("smallnetflix", "its own training and validation cells", lambda seed: load_smallnetflix())
MOVIELENS_1M = RatingsDataset(
    "movielens-1m", "a fifth of the cells, drawn uniformly, for test",
    lambda seed: split_cells(load_ratings("movielens-1m"), 0.2, random_state=seed),
)  # fmt: skip
MOVIELENS_100K = RatingsDataset("movielens-100k", "its own split u1", lambda seed: load_split("u1"))

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
    """(prediction - truth)^2 of each cell."""
    predicted = np.asarray(model.predict(*cell_labels(model, cells)), dtype=np.float64)
    return np.asarray((predicted - cells.values) ** 2)


def rmse(errors: Array) -> float:
    """sqrt of the mean of squared errors."""
    return float(np.sqrt(errors.mean()))


def accuracy(errors: Array) -> float:
    """Share of predictions within 0.5 of the truth  (section 4.3), by their squared errors."""
    return float((errors <= 0.25).mean())


# The thesis's methods and ours

LINEAR, SIGMOID, SIGMOID_FIXED = "Linear", "Multi-sigmoid", "Multi-sigmoid, fixed τ"
ROUND, ROUND_FIXED = "Round", "Round, fixed τ"
OURS_SIGMOID, OURS_ROUND, OURS_ORDINAL = "ours: Multi-sigmoid", "ours: Round", "ours: OrdinalMF"

#: Grid of l2 for our methods, and epochs of the thesis's.
L2 = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
EPOCHS = 40
#: Matrices as small as these are done before a second thread has started.
ONE_THREAD = 1
#: Without a margin the learned threshold of two levels comes to x, where nothing costs anything, and all stays there.
MARGIN = 0.25
#: Next to nothing: a matrix to be recovered is not predicted.
RECOVERY_L2 = 1e-5

LOSSES = {ROUND: "round", LINEAR: "linear", SIGMOID: "multi-sigmoid"}
#: Grid of l2 for ratings, and of the components of OrdinalMF; the thesis's best competitor has 30.
RATINGS_L2 = (3.0, 5.0, 7.0, 10.0, 15.0, 22.0, 30.0)
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


def recovery_methods(family: MatrixFamily) -> list[Method]:
    """The thesis's five by Newton's method, without biases."""
    make = partial(halfseen.RoundMF, family.k, biases=False, l2=RECOVERY_L2, tol=0.0, n_jobs=ONE_THREAD)
    return [Method(name, partial(make, **loss)) for name, loss in _losses(family).items()]


def thesis_methods(family: MatrixFamily, size: int, epochs: int = EPOCHS) -> list[Method]:
    """Stochastic gradients from a start uniform in (-0.005, 0.005), no biases  (section 3.2, the thesis's program)."""
    margins = {ROUND: {"margin": MARGIN}, ROUND_FIXED: {"margin": 0.0}}

    def make(loss: Setting, *, random_state: int) -> halfseen.RoundMF:
        random = np.random.default_rng(random_state)
        W, H = (random.uniform(-0.005, 0.005, (size, family.k)) for _ in range(2))
        return halfseen.RoundMF(
            family.k, biases=False, centred=False, solver="sgd", init=(W, H), l2=1e-4, tol=0.0, max_iter=epochs,
            random_state=random_state, n_jobs=ONE_THREAD, **loss,
        )  # fmt: skip

    losses = {name: loss | margins.get(name, {}) for name, loss in _losses(family).items()}
    return [Method(name, partial(make, loss)) for name, loss in losses.items()]


def our_methods(family: MatrixFamily, l2: Sequence[float] = L2, starts: int = 2) -> list[Method]:
    """Newton's method from several starts, with or without biases, a ridge around 0 or our centre."""
    forms = product((False, True), (False, True), l2)
    grid = [{"biases": biases, "centred": centred, "l2": value} for biases, centred, value in forms]
    options: dict[str, Any] = {"n_init": starts, "n_jobs": ONE_THREAD}
    losses = _losses(family)

    def rounded(*, fixed: bool, random_state: int) -> halfseen.RoundMF:
        loss = losses[ROUND_FIXED if fixed else ROUND]
        return halfseen.RoundMF(family.k, biases=False, margin=MARGIN, random_state=random_state, **options, **loss)

    return [
        Method(OURS_SIGMOID, partial(halfseen.RoundMF, family.k, **options), grid),
        Method(OURS_ROUND, rounded, [{"fixed": False}, {"fixed": True}]),
        Method(OURS_ORDINAL, partial(halfseen.OrdinalMF, family.k, **options), grid),
    ]


def ratings_method(name: str, k: int, biases: bool, l2: Sequence[float]) -> Method:
    """RoundMF with one of the thesis's losses, for ratings."""
    make = partial(halfseen.RoundMF, k, loss=LOSSES[name], biases=biases)
    return Method(f"{name}, biases" if biases else name, make, [{"l2": value} for value in l2])


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
