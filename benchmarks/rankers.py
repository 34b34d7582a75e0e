"""Models that rank, for `benchmarks/ranking.py`: of halfseen, irspack, implicit and LensKit, EASE, popularity.

Where the cells are ratings or levels, all get these values, or choose whether to; iALS of irspack is that of Rendle et
al. (2022), with its ridge scaled by frequency; implicit and LensKit fit the model of Hu, Koren and Volinsky (2008).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
from scipy import sparse

import halfseen
from benchmarks.contenders import THREADS, Setting, grid, lenskit_dataset, ones
from halfseen import Observed
from halfseen.studies import ordnmf_methods


@dataclass(frozen=True)
class Ranker:
    """A model of a library. Rows and columns are numbers, so that nobody pays for labels."""

    name: str
    package: str
    fit: Callable[[Any, Setting, int], Any]
    """From prepared cells, a setting and a seed to a fitted model; this is what is timed."""
    answer: Callable[[Any], Any]
    """Of a model, what `halfseen.metrics` ranks by."""
    grid: Sequence[Setting] = ({},)
    prepare: Callable[[Observed], Any] = lambda cells: cells
    """Cells in the library's own form; not timed."""
    fold_in: Callable[[Any, Observed], Any] | None = None
    """Of a model and histories of new rows, what `halfseen.metrics` ranks them by."""
    is_random: bool = True

    @property
    def is_installed(self) -> bool:
        return find_spec(self.package) is not None


def matrix(cells: Observed) -> Any:
    return sparse.csr_matrix((cells.values, cells.indices, cells.indptr), shape=cells.shape)


# ours

#: l2 of SquaredOrdNMF, as shares of sqrt(n) + sqrt(m).
SHARES = (0.4, 0.55, 0.72, 0.9, 1.2, 1.6)


def _ours(name: str) -> Callable[[Any, Setting, int], Any]:
    def fit(cells: Observed, setting: Setting, seed: int) -> Any:
        kind = getattr(halfseen, name)
        model = kind()
        chosen = {"n_jobs": THREADS, **setting}
        if "random_state" in model.get_params(deep=False):
            chosen["random_state"] = seed
        if name == "SquaredOrdNMF" and "l2" in chosen:
            chosen["l2"] *= float(np.sqrt(cells.shape).sum())
        model.set_params(**chosen)
        return model.fit(cells)

    return fit


def _fold_in(model: Any, history: Observed) -> Any:
    """Scores of rows that are folded in."""
    record = model.model_
    rows = record.served_rows(history, "cpu", THREADS, type(model).__name__)
    scores = record.scores(rows)
    return lambda positions: scores.tile(slice(0, history.shape[0]), slice(0, scores.shape[1]))[positions]


def _itself(model: Any) -> Any:
    return model


def ours(name: str, settings: Sequence[Setting] = ({},), tuned: str = "", is_random: bool = True) -> Ranker:
    return Ranker(
        f"halfseen {name}{tuned}", "halfseen", _ours(name), _itself, settings, fold_in=_fold_in, is_random=is_random
    )


# others


def _ials(cells: Any, setting: Setting, seed: int) -> Any:
    from irspack import IALSRecommender

    X = cells if setting.get("seen", "values") == "values" else cells.sign()
    chosen = {name: value for name, value in setting.items() if name != "seen"}
    return IALSRecommender(X, **chosen, random_seed=seed, n_threads=THREADS).learn()


def _factors_of_ials(model: Any) -> Any:
    return model.get_user_embedding(), model.get_item_embedding()


def _ials_of_new(model: Any, history: Observed) -> Any:
    X = matrix(history)
    return model.compute_user_embedding(X), model.get_item_embedding()


def _slim(cells: Any, setting: Setting, seed: int) -> Any:
    from irspack import SLIMRecommender

    return SLIMRecommender(cells, **setting, n_threads=THREADS).learn()


def _scores_of_slim(model: Any) -> Any:
    B, X = model.W, model.X_train_all
    return lambda rows: np.asarray((X[rows] @ B).todense() if sparse.issparse(B) else X[rows] @ B)


def _slim_of_new(model: Any, history: Observed) -> Any:
    B, X = model.W, matrix(history)
    return lambda rows: np.asarray((X[rows] @ B).todense() if sparse.issparse(B) else X[rows] @ B)


def _ease(cells: Observed, setting: Setting, seed: int) -> Any:
    cells = cells if setting["seen"] == "values" else ones(cells)
    gram = np.asarray((matrix(cells).T @ matrix(cells)).todense(), dtype=np.float64)
    gram.flat[:: len(gram) + 1] += setting["l2"]
    inverse = np.linalg.inv(gram)
    B = inverse / -np.diag(inverse)
    np.fill_diagonal(B, 0.0)
    return B, cells, setting


def _scores_of_ease(model: Any) -> Any:
    B, cells, _ = model
    X = matrix(cells)
    return lambda rows: X[rows] @ B


def _ease_of_new(model: Any, history: Observed) -> Any:
    B, _, setting = model
    X = matrix(history if setting["seen"] == "values" else ones(history))
    return lambda rows: X[rows] @ B


def _implicit(cells: Any, setting: Setting, seed: int) -> Any:
    from implicit.als import AlternatingLeastSquares
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1, "blas"):  # as implicit asks for
        model = AlternatingLeastSquares(**setting, random_state=seed, num_threads=THREADS)
        model.fit(cells.astype(np.float32), show_progress=False)
    return model


def _implicit_of_new(model: Any, history: Observed) -> Any:
    X = matrix(history).astype(np.float32)
    return model.recalculate_user(np.arange(X.shape[0]), X), model.item_factors


def _bpr(cells: Any, setting: Setting, seed: int) -> Any:
    from implicit.bpr import BayesianPersonalizedRanking

    model = BayesianPersonalizedRanking(**setting, random_state=seed, num_threads=THREADS)
    model.fit(cells.astype(np.float32), show_progress=False)
    return model


def _lenskit(cells: Any, setting: Setting, seed: int) -> Any:
    from lenskit.als import ImplicitMFScorer
    from lenskit.training import TrainingOptions

    shape, dataset = cells
    model = ImplicitMFScorer(**setting, use_ratings=True)
    model.train(dataset, TrainingOptions(rng=seed))
    return shape, model


def _factors_of_lenskit(fitted: Any) -> Any:
    """Rows and columns without a cell are unknown to it, and get zeros."""
    (n, m), model = fitted
    size = model.config.embedding_size
    W, H = np.zeros((n, size), np.float32), np.zeros((m, size), np.float32)
    W[model.users.ids()], H[model.items.ids()] = model.user_embeddings, model.item_embeddings
    return W, H


def _factors_of_implicit(model: Any) -> Any:
    return np.asarray(model.user_factors), np.asarray(model.item_factors)


IALS = grid(n_components=(128, 256, 512), alpha0=(0.1, 0.3, 1.0), reg=(0.003, 0.01, 0.03, 0.1))
EASE = grid(seen=("values", "ones"), l2=(100.0, 300.0, 1000.0, 3000.0, 10_000.0, 30_000.0, 100_000.0))
RIVALS = (
    Ranker(
        "irspack iALS", "irspack", _ials, _factors_of_ials,
        IALS,
        matrix, _ials_of_new,
    ),
    Ranker(
        "EASE", "halfseen", _ease, _scores_of_ease,
        EASE, fold_in=_ease_of_new,
        is_random=False,
    ),
    Ranker(
        "irspack SLIM", "irspack", _slim, _scores_of_slim,
        grid(alpha=(0.05, 0.2, 1.0), l1_ratio=(0.1,)), matrix, _slim_of_new, is_random=False,
    ),
    Ranker(
        "implicit ALS", "implicit", _implicit, _factors_of_implicit,
        grid(factors=(128,), regularization=(10.0, 30.0, 80.0), alpha=(1.0, 2.0, 4.0)), matrix, _implicit_of_new,
    ),
    Ranker(
        "implicit BPR", "implicit", _bpr, _factors_of_implicit,
        grid(factors=(128,), regularization=(0.01, 0.03), iterations=(100,)), matrix,
    ),
    Ranker(
        "LensKit ImplicitMF", "lenskit", _lenskit, _factors_of_lenskit,
        grid(embedding_size=(128,), regularization=(30.0, 80.0), weight=(1.0, 2.0, 4.0)),
        lambda cells: (cells.shape, lenskit_dataset(cells)),
    ),
    Ranker(
        "popularity", "halfseen", lambda cells, setting, seed: ordnmf_methods.popularity(cells), _itself,
        fold_in=lambda model, history: (np.ones((history.shape[0], 1)), model[1]), is_random=False,
    ),
)  # fmt: skip
RANKERS = (
    ours("Blend"),
    ours("SquaredOrdNMF"),
    ours("SquaredOrdNMF", grid(n_components=(100, 200, 400), l2=SHARES), ", tuned"),
    ours("ImplicitMF"),
    ours(
        "ImplicitMF",
        grid(n_components=(128, 256), unseen_weight=(None, 0.1, 0.3, 1.0), l2=(None, 0.001, 0.003, 0.01, 0.03)),
        ", tuned",
    ),
    ours("ItemGraph", is_random=False),
    *RIVALS,
)
OURS = tuple(one.name for one in RANKERS if one.name.startswith("halfseen "))
