"""The OrdNMF paper: its datasets and smaller ones, its models and other recommenders, and how they are scored."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.util import find_spec
from itertools import product
from typing import Any, NamedTuple

import joblib
import numpy as np
from numpy.random import RandomState
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
from halfseen.studies.framework import Progress, RunSettings, Setting, describe, parallel_map

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
    #: Seed of the authors' split of this very matrix; else a split is drawn by the seed of the run.
    split_seed: int | None = None

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
            split_seed=self.split_seed,
        )

    @property
    def title(self) -> str:
        """Title in the catalogue."""
        return f"{source(self.name).title}{' (a part)' if self.is_sample else ''}"


def half_stars(observed: Observed) -> Observed:
    """Stars times 2: the paper's levels from 1 to 10."""
    return replace(observed, values=2 * observed.values)


def as_they_are(values: Any) -> Any:
    """Values that need no preparation."""
    return values


def quantize(counts: Observed) -> Observed:
    """The paper's classes 1 to 10 of play counts."""
    return halfseen.Quantizer(EDGES).fit(counts).transform(counts)


def binarize(observed: Observed, at_least: float) -> Observed:
    """1 for the cells of at least this value; all others as if not seen."""
    kept = observed.select_cells(observed.values >= at_least)
    return replace(kept, values=np.ones_like(kept.values))


#: The paper's data: the authors' own matrix, or one drawn again, as they did, from what was published.
PAPER_FILMS = (
    Dataset("ordnmf-movielens", "the authors' matrix", lambda levels, seed: levels, split_seed=1001),
    Dataset(
        "movielens-20m",
        "films, then users, with 20 and more ratings, 20,000 users drawn, both again; stars times 2",
        lambda ratings, seed: half_stars(as_in_ordnmf(ratings, random_state=seed)),
    ),
)
PAPER_PLAYS = (
    Dataset("ordnmf-taste-profile", "the authors' matrix", lambda counts, seed: counts, split_seed=1001),
    Dataset(
        "taste-profile",
        "songs, then users, with 20 and more, 20,000 users and songs drawn, both again",
        lambda counts, seed: as_in_ordnmf(counts, n_columns=20_000, random_state=seed),
    ),
)
#: Smaller ones, where neither can be had.
FILMS = (
    Dataset("movielens-1m", "stars times 2", lambda ratings, seed: half_stars(ratings)),
    Dataset("movielens-latest-small", "half stars: stars times 2", lambda ratings, seed: half_stars(ratings)),
    Dataset("movietweetings-100k", "users and films with 5 and more", lambda ratings, seed: k_core(ratings, 5)),
)
PLAYS = (Dataset("lastfm-hetrec2011", "users and artists with 5 and more", lambda counts, seed: k_core(counts, 5)),)


def available(papers: Sequence[Dataset], substitutes: Sequence[Dataset], absent: Sequence[str]) -> Sequence[Dataset]:
    """The first of the paper's that is present, else the present substitutes, else the first, whose loader raises."""
    present = tuple(one for one in papers if one.name not in absent)[:1]
    return present or tuple(one for one in substitutes if one.name not in absent) or substitutes[:1]


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
    the test cells by Eq. 39. Those with `uses_engine` are fitted by the engine of the run, others on the CPU.
    """

    model: str
    data: str
    grid: Sequence[Setting]
    fit: Callable[[Cells, Setting, int], Any]
    is_random: bool = True
    package: str | None = None
    log_likelihood: Callable[[Any, Cells], float] | None = None
    uses_engine: bool = False

    @property
    def key(self) -> tuple[str, str]:
        """Model and data."""
        return self.model, self.data

    @property
    def is_installed(self) -> bool:
        """Whether the package that it needs is there."""
        return self.package is None or find_spec(self.package) is not None


class RankingScores(NamedTuple):
    """The selected setting, NDCG@100 as (starts, thresholds), and log-likelihoods (starts) if there are any."""

    setting: Setting
    ndcg: Array
    log_likelihood: Array | None


def split(raw: Observed, levels_of: Callable[[Observed], Observed], seed: int, split_seed: int | None = None) -> Split:
    """Draw test cells, and cells held out of the others, uniformly; test cells as the authors do, by a `split_seed`."""
    if split_seed is None:
        train, test = split_cells(raw, TEST_SHARE, random_state=seed)
    else:
        is_test = np.zeros(raw.nnz, dtype=bool)
        random = RandomState(split_seed)
        is_test[random.choice(raw.nnz, int(raw.nnz * TEST_SHARE), replace=False)] = True
        train, test = raw.select_cells(~is_test), raw.select_cells(is_test)
    inner_train, validation = split_cells(train, TEST_SHARE, random_state=seed)
    return Split(*(Cells(cells, levels_of(cells)) for cells in (train, test, inner_train, validation)))


def ndcg(model: Any, train: Cells, test: Cells, thresholds: Sequence[int]) -> Array:
    """NDCG@100 at each threshold, of the ranking of all cells that are not in training."""
    return np.asarray(ndcg_at_k(model, train.raw, test.raw, LENGTH, list(thresholds)))


class RankingJob(NamedTuple):
    """A fit with a setting from a seed, and the thresholds at which it is scored."""

    ranker: Ranker
    setting: Setting
    seed: int
    train: Cells
    test: Cells
    thresholds: Sequence[int]

    def score(self) -> tuple[Array, float | None]:
        """NDCG@100 at each threshold, and the log-likelihood if the ranker has one."""
        model = self.ranker.fit(self.train, self.setting, self.seed)
        log_likelihood = self.ranker.log_likelihood and self.ranker.log_likelihood(model, self.test)
        return ndcg(model, self.train, self.test, self.thresholds), log_likelihood

    def __str__(self) -> str:
        return ", ".join(filter(None, (" ".join(self.ranker.key), describe(self.setting), f"seed {self.seed}")))


def run_jobs(
    jobs: Sequence[RankingJob], settings: RunSettings, progress: Progress
) -> Iterator[tuple[RankingJob, tuple[Array, float | None]]]:
    """Jobs with their scores. Those on a GPU run one after the other, all others `settings.n_jobs` at once."""
    on_gpu = [job for job in jobs if job.ranker.uses_engine and settings.engine != "cpu"]
    on_cpu = [job for job in jobs if not (job.ranker.uses_engine and settings.engine != "cpu")]
    for part, n_jobs in ((on_gpu, 1), (on_cpu, settings.n_jobs)):
        yield from zip(part, parallel_map(RankingJob.score, part, n_jobs, progress), strict=True)


def score_rankers(
    rankers: Sequence[Ranker],
    cells: Split,
    thresholds: Sequence[int],
    select_at: int,
    starts: int,
    settings: RunSettings,
    progress: Progress,
) -> dict[tuple[str, str], RankingScores | None]:
    """Scores on the test cells, by key; None for what is not installed.

    Every ranker has the setting that ranks the validation cells best at one threshold, and is then fitted to all
    training cells from several starts. Test cells choose nothing.
    """
    installed = [ranker for ranker in rankers if ranker.is_installed]
    jobs = [
        RankingJob(ranker, setting, settings.seed, cells.inner_train, cells.validation, [select_at])
        for ranker in installed
        if len(ranker.grid) > 1
        for setting in ranker.grid
    ]
    best = {ranker.key: (-np.inf, ranker.grid[0]) for ranker in installed}
    for job, (at_threshold, _) in run_jobs(jobs, settings, lambda message: progress(f"choosing: {message}")):
        if at_threshold[0] > best[job.ranker.key][0]:
            best[job.ranker.key] = float(at_threshold[0]), job.setting
    jobs = [
        RankingJob(ranker, best[ranker.key][1], settings.seed + start, cells.train, cells.test, thresholds)
        for ranker in installed
        for start in range(starts if ranker.is_random else 1)
    ]
    results: dict[tuple[str, str], list[tuple[Array, float | None]]] = {ranker.key: [] for ranker in installed}
    for job, scored in run_jobs(jobs, settings, progress):
        results[job.ranker.key].append(scored)
    scores: dict[tuple[str, str], RankingScores | None] = {ranker.key: None for ranker in rankers}
    for ranker in installed:
        ndcgs, logs = zip(*results[ranker.key], strict=True)
        log_likelihoods = None if ranker.log_likelihood is None else np.array(logs)
        scores[ranker.key] = RankingScores(best[ranker.key][1], np.array(ndcgs), log_likelihoods)
    return scores


# The paper's models


@dataclass(frozen=True)
class RankingConfig:
    """Size of a run: the K and prior shapes alpha to select from, starts, the end of fits, and the engine.

    Of the settings of recommenders that are not the paper's, one in `one_in` is tried.
    """

    K: tuple[int, ...]
    alphas: tuple[float, ...]
    other_K: tuple[int, ...]
    one_in: int
    starts: int
    tol: float
    max_iter: int = 3000
    engine: str = "cpu"


#: The paper's K (as in its script: the text has 350 in place of 250), its prior shapes, its five starts, and its end: a
#: relative rise of the bound below 1e-5.
FULL = RankingConfig((25, 50, 100, 150, 200, 250), (0.1, 0.3, 1.0), (100, 200, 400), 1, 5, 1e-5)
QUICK = RankingConfig((5, 10), (0.3,), (5,), 6, 2, 1e-3)

#: Smallest probability whose logarithm is taken.
TINY = 1e-300


def table2_rankers(config: RankingConfig) -> list[Ranker]:
    """Levels as they are, and binary data from any rating on and from four stars on."""
    return [
        _factorization("OrdNMF", "R", halfseen.OrdNMF, lambda cells, K: cells.levels, config),
        *(ranker for at_least in (1, 8) for ranker in _binary_models(at_least, config)),
        _factorization("PF", "R", halfseen.PoissonFactorization, lambda cells, K: cells.raw, config),
        *_other_rankers("R", config),
    ]


def table3_rankers(config: RankingConfig) -> list[Ranker]:
    """Quantised counts, counts as they are, and whether there are any."""
    ordnmf = _factorization("OrdNMF", "Q", halfseen.OrdNMF, lambda cells, K: cells.levels, config)
    dcpf = _factorization("dcPF", "R", halfseen.CompoundPoisson, lambda cells, K: cells.raw, config)
    return [
        replace(ordnmf, log_likelihood=lambda model, test: float(model.log_likelihood(test.levels))),
        replace(dcpf, log_likelihood=lambda model, test: level_log_likelihood(model, test.levels, EDGES)),
        *_binary_models(1, config),
        _factorization("OrdNMF, learned edges", "R", halfseen.OrdNMF, learned_levels, config),
        *_other_rankers("Q", config),
    ]


def learned_levels(cells: Cells, K: int) -> Observed:
    """As many classes as the paper's, with edges that are learned from the training cells with a factorization of K.

    They depend neither on the prior shape nor on the start, and are learned once by each process for these cells and K.
    """
    raw = cells.raw
    key = K, joblib.hash((raw.indptr, raw.indices, raw.values))
    if key not in _learned_edges:
        quantizer = halfseen.Quantizer("fit", n_levels=len(EDGES), n_components=K, random_state=0)
        _learned_edges[key] = quantizer.fit(raw).edges_
    levels: Observed = halfseen.Quantizer(_learned_edges[key]).fit(raw).transform(raw)
    return levels


#: Edges of `learned_levels` by K and a digest of the cells.
_learned_edges: dict[tuple[int, str], Array] = {}


def _factorization(
    model: str, data: str, make: Any, cells_of: Callable[[Cells, int], Observed], config: RankingConfig
) -> Ranker:
    """A variational factorization with K and the shape of its priors to select; `cells_of` depends on K if it must."""

    def fit(cells: Cells, setting: Setting, seed: int) -> Any:
        options = {"random_state": seed, "tol": config.tol, "max_iter": config.max_iter, "engine": config.engine}
        return make(setting["K"], prior_shape=setting["alpha"], **options).fit(cells_of(cells, setting["K"]))

    grid = [{"K": K, "alpha": alpha} for K in config.K for alpha in config.alphas]
    return Ranker(model, data, grid, fit, uses_engine=True)


def _binary_models(at_least: int, config: RankingConfig) -> list[Ranker]:
    models = {"BePoF": halfseen.BernoulliPoisson, "PF": halfseen.PoissonFactorization}
    return [
        _factorization(model, f"B (>= {at_least})", make, lambda cells, K: binarize(cells.raw, at_least), config)
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

#: Their grids, which are coarse: the paper has none of them. l2 of SquaredOrdNMF as a share of sqrt(n) + sqrt(m).
EASE_L2 = (300.0, 1000.0, 3000.0, 10_000.0, 30_000.0, 100_000.0)
ALS_REGULARIZATIONS = (30.0, 100.0, 300.0)
ALS_ALPHAS = (1.0, 3.0, 10.0)
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
        options = {"l2": l2, "random_state": seed, "max_iter": SQUARED_ITERATIONS, "tol": 0.0, "engine": config.engine}
        return halfseen.SquaredOrdNMF(setting["K"], **options).fit(cells.levels)

    def fit_ease(cells: Cells, setting: Setting, seed: int) -> Scores:
        return ease(seen_as(cells, setting), setting["l2"])

    def fit_als(cells: Cells, setting: Setting, seed: int) -> Factors:
        return als(cells.levels, setting["K"], setting["regularization"], setting["alpha"], seed)

    def fit_hpf(cells: Cells, setting: Setting, seed: int) -> Factors:
        return hpf(seen_as(cells, setting), setting["K"], seed)

    def fit_popularity(cells: Cells, setting: Setting, seed: int) -> Factors:
        return popularity(cells.raw)

    K, both = config.other_K, f"{data} or B"
    als_grid = grid(K=K[::2], regularization=ALS_REGULARIZATIONS, alpha=ALS_ALPHAS)
    return [
        Ranker("SquaredOrdNMF", data, grid(K=K, l2_share=L2_SHARES), fit_squared, uses_engine=True),
        Ranker("EASE", both, grid(l2=EASE_L2, on=SEEN_AS), fit_ease, is_random=False),
        Ranker("ALS (implicit)", data, als_grid, fit_als, package="implicit"),
        Ranker("HPF (hpfrec)", both, grid(K=config.K[1:2], on=SEEN_AS), fit_hpf, package="hpfrec"),
        Ranker("popularity", "B (>= 1)", [{}], fit_popularity, is_random=False),
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
    with threadpool_limits(1, "blas"):  # as implicit asks for; fits run side by side, in a thread each
        model = import_module("implicit.als").AlternatingLeastSquares(
            factors=factors, regularization=regularization, alpha=alpha, random_state=seed, num_threads=1
        )
        model.fit(_matrix(train).astype(np.float32), show_progress=False)
    return model.user_factors, model.item_factors


def hpf(train: Observed, k: int, seed: int) -> Factors:
    """hpfrec's hierarchical Poisson factorization (Gopalan, Hofman and Blei, 2015); results would depend on threads."""
    model = import_module("hpfrec").HPF(
        k=k, stop_crit="train-llk", maxiter=500, random_seed=seed, reindex=False, verbose=False,
        produce_dicts=False, keep_data=False, ncores=1,
    )  # fmt: skip
    model.fit(_matrix(train).tocoo())
    return model.Theta, model.Beta


def _matrix(train: Observed) -> sparse.csr_matrix:
    """The cells without seen zeros, which weigh nothing here."""
    X = sparse.csr_matrix((train.values, train.indices, train.indptr), shape=train.shape, copy=True)
    X.eliminate_zeros()
    return X
