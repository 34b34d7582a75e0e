"""The OrdNMF paper: its datasets and smaller ones, its models and other recommenders, and how they are scored."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.util import find_spec
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.special import betainc
from threadpoolctl import threadpool_limits

import halfseen
from halfseen.arrays import Array
from halfseen.datasets import as_in_ordnmf, draw_active, k_core, load_ratings, source
from halfseen.estimators import CompoundPoisson
from halfseen.io import split_cells
from halfseen.metrics import ndcg_at_k
from halfseen.observed import Observed
from halfseen.studies.framework import Progress, Setting, describe

# Datasets: the paper's if they are in the data folder, else smaller ones

#: Lowest counts of the paper's classes of play counts: 1, 2, 3 to 5, 6 to 10, ..., 201 to 500, and more.
EDGES = (1, 2, 3, 6, 11, 21, 51, 101, 201, 501)
#: Rows and columns of a quick run.
QUICK_SHAPE = (250, 200)


@dataclass(frozen=True)
class Dataset:
    """A dataset and its preparation before it is split; a sample of it for a quick run (`is_sample`)."""

    name: str
    words: str
    prepare: Callable[[Observed, int], Observed]
    is_sample: bool = False

    def load(self, seed: int) -> Observed:
        """The prepared cells."""
        return self.prepare(load_ratings(self.name), seed)

    def sample(self) -> Dataset:
        """A sample of its rows and columns."""
        rows, columns = QUICK_SHAPE
        return Dataset(
            self.name,
            f"{self.words}; of this a part, {rows} rows and {columns} columns, drawn by how many cells they have",
            lambda raw, seed: draw_active(self.prepare(raw, seed), rows, columns, random_state=seed),
            is_sample=True,
        )

    @property
    def title(self) -> str:
        """Title in the catalogue."""
        return f"{source(self.name).title}{' (a part)' if self.is_sample else ''}"


def half_stars(observed: Observed) -> Observed:
    """Stars times 2: the paper's levels from 1 to 10."""
    return replace(observed, values=2 * observed.values)


def quantize(counts: Observed) -> Observed:
    """The paper's classes 1 to 10 of play counts."""
    return halfseen.Quantizer(EDGES).fit(counts).transform(counts)


def binarize(observed: Observed, at_least: float) -> Observed:
    """1 for the cells of at least this value; all others as if not seen."""
    kept = observed.select_cells(observed.values >= at_least)
    return replace(kept, values=np.ones_like(kept.values))


MOVIELENS_20M = Dataset(
    "movielens-20m",
    "films, then users, with 20 and more ratings, 20,000 users drawn, both again; stars times 2",
    lambda ratings, seed: half_stars(as_in_ordnmf(ratings, random_state=seed)),
)
FILMS = (
    Dataset("movielens-1m", "stars times 2", lambda ratings, seed: half_stars(ratings)),
    Dataset("movielens-latest-small", "half stars: stars times 2", lambda ratings, seed: half_stars(ratings)),
    Dataset("movietweetings-100k", "users and films with 5 and more", lambda ratings, seed: k_core(ratings, 5)),
)
TASTE_PROFILE = Dataset(
    "taste-profile",
    "songs, then users, with 20 and more, 20,000 users and songs drawn, both again",
    lambda counts, seed: as_in_ordnmf(counts, n_columns=20_000, random_state=seed),
)
PLAYS = (Dataset("lastfm-hetrec2011", "users and artists with 5 and more", lambda counts, seed: k_core(counts, 5)),)


def available(paper: Dataset, substitutes: Sequence[Dataset], absent: Sequence[str]) -> Sequence[Dataset]:
    """The paper's dataset if present, else the present substitutes, else the first of them, whose loader will raise."""
    if paper.name not in absent:
        return (paper,)
    return tuple(one for one in substitutes if one.name not in absent) or substitutes[:1]


# Scores: a setting selected by cells held out of training, several starts, the test cells

#: The paper's share of test cells; the same share of the others is held out to select settings by.
TEST_SHARE = 0.2
#: The paper's length of a list of recommendations.
LENGTH = 100


class Cells(NamedTuple):
    """Cells as methods take them: values as they are, and as ordered levels."""

    raw: Observed
    levels: Observed


class Split(NamedTuple):
    """Training and test cells; and the training cells split again, to select settings."""

    train: Cells
    test: Cells
    inner_train: Cells
    validation: Cells


@dataclass(frozen=True)
class Ranker:
    """Row of a table: a model of data, the settings to select from, and its fit.

    `fit` maps training cells, a setting and a seed to something that `ndcg_at_k` ranks by; `log_likelihood` is that of
    the test cells by Eq. 39.
    """

    model: str
    data: str
    grid: Sequence[Setting]
    fit: Callable[[Cells, Setting, int], Any]
    is_random: bool = True
    package: str | None = None
    log_likelihood: Callable[[Any, Cells], float] | None = None

    @property
    def key(self) -> tuple[str, str]:
        """Model and data."""
        return self.model, self.data


class RankingScores(NamedTuple):
    """The selected setting, NDCG@100 as (starts, thresholds), and log-likelihoods (starts) if there are any."""

    setting: Setting
    ndcg: Array
    log_likelihood: Array | None


def split(raw: Observed, levels_of: Callable[[Observed], Observed], seed: int) -> Split:
    """Draw test cells, and cells held out of the others, uniformly."""
    train, test = split_cells(raw, TEST_SHARE, random_state=seed)
    inner_train, validation = split_cells(train, TEST_SHARE, random_state=seed)
    return Split(*(Cells(cells, levels_of(cells)) for cells in (train, test, inner_train, validation)))


def ndcg(model: Any, train: Cells, test: Cells, thresholds: Sequence[int]) -> Array:
    """NDCG@100 at each threshold, of the ranking of all cells that are not in training."""
    return np.asarray(ndcg_at_k(model, train.raw, test.raw, LENGTH, list(thresholds)))


def select_setting(ranker: Ranker, cells: Split, threshold: int, seed: int, progress: Progress) -> Setting:
    """The setting that ranks the validation cells best; test cells are not used."""
    if len(ranker.grid) == 1:
        return ranker.grid[0]

    def score(setting: Setting) -> float:
        progress(f"{ranker.model} {ranker.data}, choosing: {describe(setting)}")
        model = ranker.fit(cells.inner_train, setting, seed)
        return float(ndcg(model, cells.inner_train, cells.validation, [threshold])[0])

    return max(ranker.grid, key=score)


def score_ranker(
    ranker: Ranker, cells: Split, thresholds: Sequence[int], select_at: int, starts: int, seed: int, progress: Progress
) -> RankingScores | None:
    """Score on the test cells, from several starts, with the setting selected at one threshold; None: not installed."""
    if ranker.package and find_spec(ranker.package) is None:
        return None
    setting = select_setting(ranker, cells, select_at, seed, progress)
    ndcgs, log_likelihoods = [], []
    for start in range(starts if ranker.is_random else 1):
        progress(f"{ranker.model} {ranker.data}, {describe(setting)}, start {start + 1}")
        model = ranker.fit(cells.train, setting, seed + start)
        ndcgs.append(ndcg(model, cells.train, cells.test, thresholds))
        if ranker.log_likelihood is not None:
            log_likelihoods.append(ranker.log_likelihood(model, cells.test))
    return RankingScores(setting, np.array(ndcgs), np.array(log_likelihoods) if log_likelihoods else None)


# The paper's models


@dataclass(frozen=True)
class RankingConfig:
    """Size of a run: the K to select from, starts, and the end of fits; of other settings one in `one_in` is tried."""

    K: tuple[int, ...]
    other_K: tuple[int, ...]
    one_in: int
    starts: int
    tol: float
    max_iter: int = 3000


#: The paper's K, its five starts, and its end: a relative rise of the bound below 1e-5.
FULL = RankingConfig((25, 50, 100, 150, 200, 250), (100, 200, 400), 1, 5, 1e-5)
QUICK = RankingConfig((5, 10), (5,), 6, 2, 1e-3)

#: Smallest probability whose logarithm is taken.
TINY = 1e-300


def table2_rankers(config: RankingConfig) -> list[Ranker]:
    """Levels as they are, and binary data from any rating on and from four stars on."""
    return [
        _factorization("OrdNMF", "R", halfseen.OrdNMF, lambda cells: cells.levels, config),
        *(ranker for at_least in (1, 8) for ranker in _binary_models(at_least, config)),
        _factorization("PF", "R", halfseen.PoissonFactorization, lambda cells: cells.raw, config),
        *_other_rankers("R", config),
    ]


def table3_rankers(config: RankingConfig) -> list[Ranker]:
    """Quantised counts, counts as they are, and whether there are any."""
    ordnmf = _factorization("OrdNMF", "Q", halfseen.OrdNMF, lambda cells: cells.levels, config)
    dcpf = _factorization("dcPF", "R", halfseen.CompoundPoisson, lambda cells: cells.raw, config)
    return [
        replace(ordnmf, log_likelihood=lambda model, test: float(model.log_likelihood(test.levels))),
        replace(dcpf, log_likelihood=lambda model, test: level_log_likelihood(model, test.levels, EDGES)),
        *_binary_models(1, config),
        *_other_rankers("Q", config),
    ]


def _factorization(
    model: str, data: str, make: Any, cells_of: Callable[[Cells], Observed], config: RankingConfig
) -> Ranker:
    """A variational factorization with K to select."""

    def fit(cells: Cells, setting: Setting, seed: int) -> Any:
        estimator = make(setting["K"], random_state=seed, tol=config.tol, max_iter=config.max_iter)
        return estimator.fit(cells_of(cells))

    return Ranker(model, data, [{"K": K} for K in config.K], fit)


def _binary_models(at_least: int, config: RankingConfig) -> list[Ranker]:
    models = {"BePoF": halfseen.BernoulliPoisson, "PF": halfseen.PoissonFactorization}
    return [
        _factorization(model, f"B (>= {at_least})", make, lambda cells: binarize(cells.raw, at_least), config)
        for model, make in models.items()
    ]


def level_log_likelihood(model: CompoundPoisson, levels: Observed, edges: tuple[int, ...]) -> float:
    """Eq. 39, for dcPF:  sum over the cells of log P(edge_l <= count < edge_{l+1} | count > 0),  l the cell's level.

    Rows and columns of the cells are those of the fit, in their order.
    """
    x = np.einsum("ck,ck->c", model.W_[levels.row_of_cell()], model.H_[levels.indices])
    starts, ends = np.array(edges), np.append(edges[1:], np.inf)
    level = levels.values.astype(int) - 1
    reaching = survival(x, model.p_, starts[level])
    beyond = survival(x, model.p_, ends[level])
    share = (reaching - beyond) / np.maximum(survival(x, model.p_, np.ones_like(x)), TINY)
    return float(np.log(np.maximum(share, TINY)).sum())


def survival(x: Array, p: float, count: Array) -> Array:
    """P(count or more): a Poisson(x) number of logarithmic draws is negative binomial, with r = x / -log(1 - p)."""
    finite = np.where(np.isinf(count), 1.0, count)
    return np.where(np.isinf(count), 0.0, betainc(finite, x / -np.log1p(-p), p))


# Other recommenders

#: Their grids; l2 of SquaredOrdNMF as a share of sqrt(n) + sqrt(m).
EASE_L2 = (100.0, 300.0, 1000.0, 2000.0, 5000.0, 10_000.0, 20_000.0, 50_000.0, 100_000.0, 200_000.0)
ALS_REGULARIZATIONS = (30.0, 50.0, 100.0, 200.0, 300.0, 1000.0)
ALS_ALPHAS = (1.0, 4.0, 16.0)
L2_SHARES = (0.55, 0.75, 1.0, 1.35)
#: Whether EASE and HPF are given the levels, or ones in their place.
SEEN_AS = ("levels", "ones")
#: Iterations of SquaredOrdNMF: its ranking has settled long before its loss.
SQUARED_ITERATIONS = 100

#: What `halfseen.metrics` ranks by: scores of the rows at these positions, or factors.
Scores = Callable[[Array], Array]
Factors = tuple[Array, Array]


def _other_rankers(data: str, config: RankingConfig) -> list[Ranker]:
    """Our SquaredOrdNMF, and recommenders of others."""

    def grid(**values: Any) -> Sequence[Setting]:
        settings = [dict(zip(values, one, strict=True)) for one in product(*values.values())]
        return settings[:: config.one_in]

    def seen_as(cells: Cells, setting: Setting) -> Observed:
        return cells.levels if setting["on"] == "levels" else binarize(cells.levels, 1)

    def fit_squared(cells: Cells, setting: Setting, seed: int) -> Any:
        l2 = setting["l2_share"] * float(np.sqrt(cells.levels.shape).sum())
        options = {"l2": l2, "random_state": seed, "max_iter": SQUARED_ITERATIONS, "tol": 0.0}
        return halfseen.SquaredOrdNMF(setting["K"], **options).fit(cells.levels)

    def fit_ease(cells: Cells, setting: Setting, seed: int) -> Scores:
        return ease(seen_as(cells, setting), setting["l2"])

    def fit_als(cells: Cells, setting: Setting, seed: int) -> Factors:
        return als(cells.levels, setting["K"], setting["regularization"], setting["alpha"], seed)

    def fit_hpf(cells: Cells, setting: Setting, seed: int) -> Factors:
        return hpf(seen_as(cells, setting), setting["K"], seed)

    K, both = config.other_K, f"{data} or B"
    als_grid = grid(K=K, regularization=ALS_REGULARIZATIONS, alpha=ALS_ALPHAS)
    return [
        Ranker("SquaredOrdNMF", data, grid(K=K, l2_share=L2_SHARES), fit_squared),
        Ranker("EASE", both, grid(l2=EASE_L2, on=SEEN_AS), fit_ease, is_random=False),
        Ranker("ALS (implicit)", data, als_grid, fit_als, package="implicit"),
        Ranker("HPF (hpfrec)", both, grid(K=config.K[:3], on=SEEN_AS), fit_hpf, package="hpfrec"),
        Ranker("popularity", "B (>= 1)", [{}], lambda cells, *_: popularity(cells.raw), is_random=False),
    ]


def popularity(train: Observed) -> Factors:
    """The same order for all: by the number of cells of a column."""
    return np.ones((train.shape[0], 1)), train.seen_per_column()[:, None].astype(float)


def ease(train: Observed, l2: float) -> Scores:
    """Scores X B by the item weights that minimise |X - X B|^2 + l2 |B|^2 with diag(B) = 0 (Steck, 2019):

        P = (X^T X + l2 I)^-1,    B = I - P / diag(P)

    and so X B = X - X P / diag(P). Where there are fewer rows than columns the smaller system is solved instead:
    X P = (X X^T + l2 I)^-1 X, and diag(P) = (1 - sum_u X_ui (X P)_ui) / l2.
    """
    X = _matrix(train)
    n, m = X.shape
    gram = (X.T @ X if m <= n else X @ X.T).toarray()
    gram.flat[:: gram.shape[0] + 1] += l2
    inverse = np.asarray(np.linalg.inv(gram))
    if m <= n:
        P = inverse
        P /= np.diag(P).copy()
        return lambda rows: X[rows].toarray() - X[rows] @ P
    XP = inverse @ X
    XP /= (1 - np.asarray(X.multiply(XP).sum(axis=0)).reshape(-1)) / l2
    return lambda rows: X[rows].toarray() - XP[rows]


def als(train: Observed, factors: int, regularization: float, alpha: float, seed: int) -> Factors:
    """implicit's alternating least squares (Hu, Koren and Volinsky, 2008): a seen cell y weighs alpha y, others 1."""
    with threadpool_limits(1, "blas"):  # as implicit asks for: it has its own threads
        model = import_module("implicit.als").AlternatingLeastSquares(
            factors=factors, regularization=regularization, alpha=alpha, random_state=seed
        )
        model.fit(_matrix(train).astype(np.float32), show_progress=False)
    return model.user_factors, model.item_factors


def hpf(train: Observed, k: int, seed: int) -> Factors:
    """hpfrec's hierarchical Poisson factorization (Gopalan, Hofman and Blei, 2015)."""
    model = import_module("hpfrec").HPF(
        k=k, stop_crit="train-llk", maxiter=500, random_seed=seed, reindex=False, verbose=False,
        produce_dicts=False, keep_data=False,
    )  # fmt: skip
    model.fit(_matrix(train).tocoo())
    return model.Theta, model.Beta


def _matrix(train: Observed) -> sparse.csr_matrix:
    """The cells without seen zeros, which weigh nothing here."""
    X = sparse.csr_matrix((train.values, train.indices, train.indptr), shape=train.shape, copy=True)
    X.eliminate_zeros()
    return X
