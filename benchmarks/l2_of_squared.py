"""The l2 that SquaredOrdNMF finds, beside the one that ranks held-out cells best

Test cells stay untouched: a fifth of the training cells of a split is held out. NDCG@100, its mean over four thresholds
of relevance, after one fit for every part (share) of sqrt(n) + sqrt(m) tried, and by default, where the share is found
from the cells of the fit alone; with one l2 for all columns, and scaled by frequency. "search": its time as a part of
the fit's.
It takes long: `python -m benchmarks l2_of_squared` runs it, `python -m benchmarks` does not.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import halfseen
from benchmarks.measuring import seconds_of, table
from halfseen.datasets import k_core, load_ratings
from halfseen.io import split_cells
from halfseen.observed import Observed
from halfseen.studies.ordnmf_methods import quantize

#: No other study draws its test cells with this seed.
SEED = 7
HELD_OUT = 0.2
SHARES = (0.4, 0.5, 0.6, 0.72, 0.85, 1.0, 1.2, 1.4)
SCALINGS = (0.0, 0.25, 0.5)

#: The synthetic draw: rows, columns, components, the shape of their gamma distribution, the mean rate, theta.
PLANTED = (2000, 1500, 20, 0.1, 0.05, (1.0, 0.6, 0.35, 0.2, 0.1))


class Case(NamedTuple):
    """Levels, and the thresholds of relevance."""

    load: Callable[[], Observed]
    thresholds: tuple[float, ...]


def planted_levels() -> Observed:
    """Levels as OrdNMF draws them: y >= v where e < theta_v x, e ~ Exp(1), x the product of sparse gamma factors."""
    n, m, k, shape, rate, theta = PLANTED
    random = np.random.default_rng(SEED)
    x = random.gamma(shape, 1.0, (n, k)) @ random.gamma(shape, 1.0, (m, k)).T
    x *= rate / x.mean()
    levels = (random.standard_exponential((n, m, 1)) < x[:, :, None] * np.array(theta)).sum(axis=2)
    return halfseen.observe(np.where(levels > 0, levels, np.nan).astype(float))


CASES: Mapping[str, Case] = {
    "movielens-1m": Case(lambda: load_ratings("movielens-1m"), (1, 3, 4, 5)),
    "movielens-100k": Case(lambda: k_core(load_ratings("movielens-100k"), 5), (1, 3, 4, 5)),
    "movielens-latest-small": Case(lambda: k_core(load_ratings("movielens-latest-small"), 5), (0.5, 3, 4, 5)),
    "movietweetings-100k": Case(lambda: k_core(load_ratings("movietweetings-100k"), 5), (1, 6, 8, 10)),
    "lastfm-hetrec2011": Case(lambda: quantize(k_core(load_ratings("lastfm-hetrec2011"), 5)), (1, 5, 6, 7)),
    "planted": Case(planted_levels, (1, 2, 3, 4)),
}


def run() -> list[str]:
    rows = [row for name, case in CASES.items() for row in _rows(name, case)]
    header = ("data", "n x m", "cells", "scaling", "best share", "NDCG", "found", "NDCG", "search")
    return table(header, rows)


def _rows(name: str, case: Case) -> Iterator[tuple[str, ...]]:
    levels = case.load()
    train, _ = split_cells(levels, HELD_OUT, random_state=SEED)
    fitted, held_out = split_cells(train, HELD_OUT, random_state=SEED)
    unit = float(np.sqrt(fitted.shape).sum())

    def fit(**given: Any) -> Any:
        return halfseen.SquaredOrdNMF(**given, random_state=SEED).fit(fitted)

    def ndcg(model: Any) -> float:
        return float(np.mean(halfseen.metrics.ndcg_at_k(model, fitted, held_out, 100, list(case.thresholds))))

    for scaling in SCALINGS:
        by_share = [ndcg(fit(l2=share * unit, frequency_scaling=scaling)) for share in SHARES]
        best, l2 = int(np.argmax(by_share)), fit(frequency_scaling=scaling).l2_
        whole = seconds_of(partial(fit, frequency_scaling=scaling)).cpu
        alone = seconds_of(partial(fit, frequency_scaling=scaling, l2=l2)).cpu
        yield (
            name, f"{levels.shape[0]:,} x {levels.shape[1]:,}", f"{levels.nnz:,}", f"{scaling:g}", f"{SHARES[best]:g}",
            f"{by_share[best]:.4f}", f"{l2 / unit:.2f}", f"{ndcg(fit(frequency_scaling=scaling, l2=l2)):.4f}",
            f"{whole / alone - 1:.2f}",
        )  # fmt: skip
