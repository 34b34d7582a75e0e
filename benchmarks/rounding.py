"""Rounding and cumulative links at k = 10: SGD, MovieLens 1M beside Surprise, Newton beside NumPy, 20 million cells

MovieLens where the data folder has it; for single epochs and iterations else as many skewed cells with random stars.
The NumPy program takes the steps of OrdinalMF, all of them whole: it multiplies sparse matrices of slopes and of
curvatures by the factor and by its squares k x k, and solves all rows at once. Memory is the peak over the input,
counted by tracemalloc; for 20 million cells that of the whole process. CPU seconds add up the threads, and hardly
depend on what else a machine is doing.
"""

import subprocess
import sys
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from benchmarks.measuring import Seconds, peak_of, seconds_of, table
from halfseen import Observed, OrdinalMF, RoundMF
from halfseen.datasets import load_ratings
from halfseen.datasets.synthetic import skewed_cells
from halfseen.engines import Side
from halfseen.errors import DataError, DataWarning
from halfseen.io import split_cells

K = 10
EPOCHS = 20
MODELS: tuple[tuple[str, Any, dict[str, Any]], ...] = (
    ("OrdinalMF, logit", OrdinalMF, {}),
    ("RoundMF, multi-sigmoid", RoundMF, {}),
)


def run() -> list[str]:
    with warnings.catch_warnings():
        for category in (ConvergenceWarning, DataWarning):  # some films have no rating left in training
            warnings.simplefilter("ignore", category)
        return [*_epochs(), "", *_beside_surprise(), "", *_iterations(), "", *_twenty_million()]


def _ratings(name: str, n: int, m: int, nnz: int) -> tuple[str, Observed]:
    try:
        return name, load_ratings(name)
    except DataError:
        return "Random stars", _random_stars(n, m, nnz)


def _random_stars(n: int, m: int, nnz: int) -> Observed:
    stars = np.random.default_rng(0).integers(1, 6, nnz).astype(np.float64)
    return Observed.from_cells(*skewed_cells(n, m, nnz, 0), stars, (n, m))


def _epochs() -> list[str]:
    """An epoch of SGD on one thread, its loss over all cells included."""
    name, ratings = _ratings("movielens-100k", 943, 1682, 100_000)
    rows = []
    for what, kind, parameters in (*MODELS, ("RoundMF, linear", RoundMF, {"loss": "linear"})):
        model = kind(K, solver="sgd", max_iter=EPOCHS, tol=0.0, random_state=0, n_jobs=1, **parameters)
        cpu = min(seconds_of(lambda model=model: model.fit(ratings)).cpu for _ in range(3)) / EPOCHS
        rows.append((what, f"**{min(_seconds_of_iterations(model)):.4f}**", f"{cpu:.4f}", 0.03))
    surprise = _surprise_fit(ratings)
    if surprise is not None:
        rows.append(("Surprise SVD", *(f"{seconds / EPOCHS:.4f}" for seconds in surprise.seconds), ""))
    return table((f"{name}, {ratings.nnz:,} cells, one thread", "s an epoch", "CPU s, a fit / 20", "goal"), rows)


def _beside_surprise() -> list[str]:
    """Fits by the defaults, to convergence, beside 20 epochs of Surprise's SVD; RMSE on a tenth that was held out."""
    try:
        train, test = split_cells(load_ratings("movielens-1m"), test_size=0.1, random_state=0)
    except DataError as error:
        return [f"Left out, MovieLens 1M beside Surprise: {error}"]
    surprise = _surprise_fit(train)
    rows = []
    if surprise is None:
        rows.append(("Surprise is not installed; it comes with halfseen[bench]", *[""] * 5))
    else:
        rows.append(_row("Surprise SVD, one thread", f"{EPOCHS} epochs", surprise, surprise, test))
    for what, kind, parameters in MODELS:
        for threads in (1, 2):
            model = kind(K, random_state=0, n_jobs=threads, **parameters)
            found = Found(seconds_of(lambda model=model: model.fit(train)), model.predict)
            rows.append(_row(f"{what}, n_jobs={threads}", f"{model.n_iter_} iterations", found, surprise, test))
    heads = ("how long", "fit, s", "of Surprise's", "CPU s", "RMSE of a tenth held out")
    return table((f"MovieLens 1M, {train.nnz:,} cells", *heads), rows)


class Found(NamedTuple):
    """How long a fit took, and what it predicts at rows and columns."""

    seconds: Seconds
    predict: Callable[[Any, Any], Any]


def _row(what: str, ending: str, found: Found, surprise: Found | None, test: Observed) -> tuple[str, ...]:
    clock, cpu = found.seconds
    share = "" if surprise is None else f"**{clock / surprise.seconds.clock:.2f}**"
    return what, ending, f"{clock:.2f}", share, f"{cpu:.2f}", f"{_error(found.predict, test):.4f}"


def _error(predict: Callable[[Any, Any], Any], test: Observed) -> float:
    rows, columns = test.row_labels[test.row_of_cell()], test.column_labels[test.indices]
    return float(np.sqrt(np.mean((predict(rows, columns) - test.values) ** 2)))


def _surprise_fit(train: Observed) -> Found | None:
    """A fit of Surprise's SVD, its own preparation of the data left out of the time."""
    try:
        from surprise import SVD, Dataset, Reader
    except ImportError:
        return None
    import pandas as pd

    rows = np.arange(train.shape[0]) if train.row_labels is None else train.row_labels
    columns = np.arange(train.shape[1]) if train.column_labels is None else train.column_labels
    frame = pd.DataFrame({"u": rows[train.row_of_cell()], "i": columns[train.indices], "r": train.values})
    full = Dataset.load_from_df(frame, Reader(rating_scale=(1, 5))).build_full_trainset()
    svd = SVD(n_factors=K, n_epochs=EPOCHS, random_state=0)
    seconds = seconds_of(lambda: svd.fit(full))

    def predict(asked_rows: Any, asked_columns: Any) -> Any:
        """mu + b_u + c_i + <p_u, q_i>, as Surprise has it: what is unknown adds nothing, the scale is kept."""
        u = np.array([full._raw2inner_id_users.get(label, -1) for label in asked_rows])
        i = np.array([full._raw2inner_id_items.get(label, -1) for label in asked_columns])
        of_rows = np.where(u < 0, 0.0, svd.bu[u])
        of_columns = np.where(i < 0, 0.0, svd.bi[i])
        products = np.where((u < 0) | (i < 0), 0.0, np.einsum("pk,pk->p", svd.pu[u], svd.qi[i]))
        return np.clip(full.global_mean + of_rows + of_columns + products, 1, 5)

    return Found(seconds, predict)


def _iterations() -> list[str]:
    """One iteration of Newton's method by rows, from the same start, without biases and momentum."""
    name, ratings = _ratings("movielens-1m", 6_040, 3_706, 1_000_000)
    single = replace(ratings, values=ratings.values.astype(np.float32))
    random = np.random.RandomState(0)
    start = tuple(random.normal(0.0, 0.1, (size, K)) for size in ratings.shape)
    how: dict[str, Any] = {"biases": False, "init": start, "accelerate": False, "max_iter": 5, "tol": 0.0, "n_jobs": 2}
    plain = PlainNewton(OrdinalMF(K, **how).fit(ratings), ratings, *start)
    seconds = min(seconds_of(plain.iterate).clock for _ in range(4))
    peak = peak_of(plain.iterate)
    rows = [("NumPy and SciPy", f"{1e3 * seconds:.0f}", "", f"{peak / 1e6:.0f}", "", f"{plain.loss:.8g}")]
    for what, kind, parameters in MODELS:
        for precision, data in (("", ratings), (", float32", single)):
            model = kind(K, **how, **parameters)
            ours = min(_seconds_of_iterations(model.fit(data)))
            held = peak_of(lambda model=model, data=data: model.fit(data))
            same = kind is OrdinalMF  # as the program in NumPy
            faster, less = (f"**{seconds / ours:.1f}**", f"{held / peak:.2f}") if same else ("", "")
            loss = f"{model.trace_['objective'][-1]:.8g}"
            rows.append((f"{what}{precision}", f"{1e3 * ours:.0f}", faster, f"{held / 1e6:.0f}", less, loss))
    first = f"{name}, {ratings.nnz:,} cells, one iteration"
    return table((first, "ms", "times as fast", "peak, MB", "of NumPy's", "loss after 5"), rows)


class PlainNewton:
    """Rows, columns, thresholds of `OrdinalMF`: the iteration of `solvers/newton.py`, every step taken whole."""

    def __init__(self, fitted: Any, ratings: Observed, W: Any, H: Any) -> None:
        self.factors = [W.copy(), H.copy()]
        self.pulled = [fitted._ridge.penalty(K, side) for side in Side]
        self.y = np.searchsorted(fitted.levels_, ratings.values).astype(np.float64)
        self.cells = (ratings.row_of_cell(), ratings.indices)
        histogram = np.bincount(self.y.astype(int))
        self.likelihood = fitted._first_likelihood(histogram)

    def iterate(self) -> None:
        for side in (0, 1):
            self._move(side)
        x = self._x()
        sums = self.likelihood.parameter_sums(self.y, x, None)
        step = np.clip(self.likelihood.parameter_step(sums), -1.0, 1.0)
        self.likelihood = self.likelihood.with_parameters(self.likelihood.parameters + step)
        self.loss = float(self.likelihood.quadratic(self.y, self._x()).cost.sum()) + sum(
            0.5 * float(np.sum(pulled.l2 * (F - pulled.centre) ** 2))
            for F, pulled in zip(self.factors, self.pulled, strict=True)
        )

    def _x(self) -> Any:
        rows, columns = self.cells
        return np.einsum("pk,pk->p", self.factors[0][rows], self.factors[1][columns])

    def _move(self, side: int) -> None:
        F, G = self.factors[side], self.factors[1 - side]
        local = self.likelihood.quadratic(self.y, self._x())
        near, far = self.cells[side], self.cells[1 - side]
        slope, curvature = (
            sparse.csr_array((part, (near, far)), shape=(len(F), len(G))) for part in (local.slope, local.curvature)
        )
        penalty, centre, _ = self.pulled[side]
        squares = np.einsum("ia,ib->iab", G, G).reshape(len(G), -1)
        g = slope @ G + penalty * (F - centre)
        A = (curvature @ squares).reshape(len(F), K, K) + np.diag(penalty)
        self.factors[side] = F - np.linalg.solve(A, g[:, :, None])[:, :, 0]


PROGRAM = """
import resource, sys, warnings
import numpy as np
import halfseen
from benchmarks.rounding import _random_stars
from dataclasses import replace
warnings.simplefilter("ignore")
stars = _random_stars(138_000, 27_000, 20_000_000)
stars = replace(stars, values=stars.values.astype(sys.argv[2]))
model = getattr(halfseen, sys.argv[1])(10, max_iter=2, tol=0.0, random_state=0, n_jobs=2).fit(stars)
seconds, peak = model.trace_["seconds"], resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
print(seconds[1] - seconds[0], peak)
"""


def _twenty_million() -> list[str]:
    """138,000 x 27,000, a process of its own for each."""
    rows = []
    for name in ("OrdinalMF", "RoundMF"):
        for dtype in ("float64", "float32"):
            command = [sys.executable, "-c", PROGRAM, name, dtype]
            found = subprocess.run(command, capture_output=True, text=True, check=True)
            one, peak = map(float, found.stdout.split())
            rows.append((name, dtype, f"{one:.1f}", f"**{peak:.1f}**"))
    return table(("twenty million cells", "dtype", "s an iteration", "peak of the process, GB"), rows)


def _seconds_of_iterations(model: Any) -> list[float]:
    """The first iteration left out, which has compiling in it."""
    return np.diff(model.trace_["seconds"]).tolist()
