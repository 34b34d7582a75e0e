"""The default l2 of SquaredOrdNMF: which part of sqrt(n) + sqrt(m) ranks held-out cells best

Test cells stay untouched: a fifth of the training cells of a split is held out. NDCG@100 after one fit for every part
(share) tried, at the lowest and at a high threshold s of relevance. "loss": by how much the default is behind the best.
It takes long: `python -m benchmarks l2_of_squared` runs it, `python -m benchmarks` does not.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import numpy as np

import halfseen
from benchmarks.measuring import table
from halfseen.datasets import k_core, load_ratings
from halfseen.estimators.ordnmf import L2_SHARE
from halfseen.io import split_cells
from halfseen.observed import Observed
from halfseen.studies.ordnmf_methods import quantize

#: No other study draws its test cells with this seed.
SEED = 7
HELD_OUT = 0.2
COMPONENTS = (50, 100, 200)
SHARES = tuple(sorted({0.2, 0.28, 0.4, 0.55, 0.72, 0.9, 1.1, 1.35, 1.6, L2_SHARE}))

#: The synthetic draw: rows, columns, components, the shape of their gamma distribution, the mean rate, theta.
PLANTED = (2000, 1500, 20, 0.1, 0.05, (1.0, 0.6, 0.35, 0.2, 0.1))


class Case(NamedTuple):
    """Levels, and the high threshold of relevance."""

    load: Callable[[], Observed]
    high: float


def planted_levels() -> Observed:
    """Levels as OrdNMF draws them: y >= v where e < theta_v x, e ~ Exp(1), x the product of sparse gamma factors."""
    n, m, k, shape, rate, theta = PLANTED
    random = np.random.default_rng(SEED)
    x = random.gamma(shape, 1.0, (n, k)) @ random.gamma(shape, 1.0, (m, k)).T
    x *= rate / x.mean()
    levels = (random.standard_exponential((n, m, 1)) < x[:, :, None] * np.array(theta)).sum(axis=2)
    return halfseen.observe(np.where(levels > 0, levels, np.nan).astype(float))


CASES: Mapping[str, Case] = {
    "movielens-1m": Case(lambda: load_ratings("movielens-1m"), 5),
    "movielens-100k": Case(lambda: load_ratings("movielens-100k"), 5),
    "movielens-latest-small": Case(lambda: load_ratings("movielens-latest-small"), 5),
    "movietweetings-100k": Case(lambda: k_core(load_ratings("movietweetings-100k"), 5), 10),
    "lastfm-hetrec2011": Case(lambda: quantize(k_core(load_ratings("lastfm-hetrec2011"), 5)), 7),
    "planted": Case(planted_levels, 4),
}


def run() -> list[str]:
    rows = [row for name, case in CASES.items() for row in _rows(name, case)]
    header = ("data", "n x m", "cells", "K", "best share, s low", "NDCG", "loss", "best share, s high", "NDCG", "loss")
    return table(header, rows)


def _rows(name: str, case: Case) -> Iterator[tuple[str, ...]]:
    levels = case.load()
    size = f"{levels.shape[0]:,} x {levels.shape[1]:,}"
    for components in COMPONENTS:
        low, high = np.transpose([ndcgs(levels, case.high, components, share) for share in SHARES])
        yield (name, size, f"{levels.nnz:,}", str(components), *_best(low), *_best(high))


def _best(ndcg: np.ndarray) -> tuple[str, ...]:
    """The best share, its NDCG, and what the default loses."""
    best = ndcg.argmax()
    return f"{SHARES[best]:g}", f"{ndcg[best]:.4f}", f"{ndcg[best] - ndcg[SHARES.index(L2_SHARE)]:.4f}"


def ndcgs(levels: Observed, high: float, components: int, share: float) -> np.ndarray:
    """NDCG@100 of cells held out of training, at any level and from a high one on."""
    train, _ = split_cells(levels, HELD_OUT, random_state=SEED)
    fitted, held_out = split_cells(train, HELD_OUT, random_state=SEED)
    l2 = share * float(np.sqrt(fitted.shape).sum())
    model = halfseen.SquaredOrdNMF(components, l2=l2, random_state=SEED, tol=0.0).fit(fitted)
    return np.asarray(halfseen.metrics.ndcg_at_k(model, fitted, held_out, 100, [_lowest(levels), high]))


def _lowest(levels: Observed) -> float:
    return float(levels.values[levels.values > 0].min())
