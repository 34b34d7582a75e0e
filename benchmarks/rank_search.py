"""Choosing the number of components: RankSearch on planted ranks, and warm starts beside fits from scratch

Ten matrices of 300 x 200 for each model, two of each rank from 2 to 6, ranks 1 to 10 tried on 5 folds: counts with half
of the cells missing for WeightedNMF, sparse counts and sparse levels of which only those above 0 are seen for the other
two. "Warm" lets each rank start from the factors of the one before, "cold" fits each from scratch, on the same folds.
Seconds are of the processor, over all fits and scores, all ten cases together. Below, real ratings, if the data folder
has them; and `Search` of n_components and l2 together on them, by successive halving and with every candidate on every
fold: a fifth of the cells is held out first, on which the model that each of them chose is scored.
"""

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from benchmarks.measuring import seconds_of, table
from halfseen import OrdNMF, PoissonFactorization, RankSearch, Search, SquaredOrdNMF, WeightedNMF
from halfseen.datasets import load_ratings
from halfseen.errors import DataError
from halfseen.io import split_cells
from halfseen.metrics import ndcg_at_k
from tests.selection.data import counts, holed_counts, stars

MODELS: tuple[tuple[Any, Callable[..., Any]], ...] = (
    (WeightedNMF(), holed_counts),
    (PoissonFactorization(), counts),
    (OrdNMF(), stars),
)
CASES = [(k, seed) for k in range(2, 7) for seed in (100, 200)]


def run() -> list[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return [*_planted(), "", *_real(), "", *_halving()]


def _planted() -> list[str]:
    rows = []
    for model, data in MODELS:
        matrices = [data(k, seed + k, n=300, m=200) for k, seed in CASES]
        (warm, warm_seconds), (cold, cold_seconds) = (
            _searched(_search(model, range(1, 11), warm), matrices) for warm in (True, False)
        )
        found = (f"**{_hits(warm)} of 10**", f"{_hits(cold)} of 10")
        times = (f"{warm_seconds:.0f}", f"{cold_seconds:.0f}", f"**{warm_seconds / cold_seconds:.2f}**")
        rows.append((type(model).__name__, *found, *times))
    header = ("model", "planted rank found, warm", "cold", "warm, s", "cold, s", "warm, of cold")
    return table(header, rows)


def _search(model: Any, ranks: Any, warm: bool) -> RankSearch:
    return RankSearch(model, ranks, warm=warm, refit=False, random_state=0, n_jobs=2)


def _searched(search: RankSearch, matrices: list[Any]) -> tuple[list[RankSearch], float]:
    """A search of each matrix, and the seconds of all."""
    searches: list[RankSearch] = []
    seconds = seconds_of(lambda: searches.extend(clone(search).fit(X) for X in matrices))
    return searches, seconds.cpu


def _hits(searches: list[RankSearch]) -> int:
    return sum(search.best_n_components_ == k for search, (k, _) in zip(searches, CASES, strict=True))


def _real() -> list[str]:
    try:
        ratings = replace(load_ratings("movielens-100k"), unseen="zero")
    except DataError:
        return []
    ranks, rows = [5, 10, 20, 50, 100], []
    for model in (PoissonFactorization(), OrdNMF()):
        for warm in (True, False):
            (search,), seconds = _searched(_search(model, ranks, warm), [ratings])
            means = " / ".join(f"{mean:.4f}" for mean in search.results_["mean"])
            error = float(np.max(search.results_["standard_error"]))
            name = f"{type(model).__name__}, {'warm' if warm else 'cold'}"
            rows.append((name, search.best_n_components_, means, f"{error:.4f}", f"{seconds:.0f}"))
    header = ("MovieLens 100K", "chosen", "NDCG@100 at 5 / 10 / 20 / 50 / 100", "largest standard error", "s")
    return table(header, rows)


def _halving() -> list[str]:
    try:
        ratings = replace(load_ratings("movielens-100k"), unseen="zero")
    except DataError:
        return []
    train, test = split_cells(ratings, random_state=0)
    rows = []
    for factor, name in ((3, "the best third goes on"), (None, "every candidate on all folds")):
        search = Search(SquaredOrdNMF(random_state=0), factor=factor, random_state=0, n_jobs=2)
        seconds = seconds_of(lambda search=search: search.fit(train))  # type: ignore[misc]
        results, best = search.results_, search.best_params_
        chosen = f"{best['n_components']} / {best['l2']:.3g}"
        scores = f"{results['mean'][0]:.4f}", f"**{ndcg_at_k(search.best_estimator_, None, test, k=100):.4f}**"
        rows.append((name, int(np.isfinite(results["scores"]).sum()), chosen, *scores, f"**{seconds.cpu:.0f}**"))
    default = SquaredOrdNMF(random_state=0)
    seconds = seconds_of(lambda: default.fit(train))
    score = f"**{ndcg_at_k(default, None, test, k=100):.4f}**"
    rows.append(("defaults", 1, f"{default.n_components} / {default.l2_:.3g}", "", score, f"{seconds.cpu:.0f}"))
    heads = ("components / l2 chosen", "NDCG@100, folds", "held out", "s")
    return table(("SquaredOrdNMF, MovieLens 100K, 20 candidates", "fits", *heads), rows)
