"""Cost is linear in cells and in k

Seconds a plain iteration of `OrdNMF`, 6,000 x 3,700, 2 threads, with the straight line fitted to them.
"""

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from benchmarks.measuring import table
from halfseen import Observed, OrdNMF
from halfseen.datasets.synthetic import skewed_cells

CELLS = (250_000, 500_000, 1_000_000, 2_000_000, 4_000_000)
RANKS = (16, 32, 64, 128, 256)


def run() -> list[str]:
    by_cells = [_seconds(cells, 64) for cells in CELLS]
    by_rank = [_seconds(1_000_000, rank) for rank in RANKS]
    lines = table(("cells, at k = 64", "ms an iteration"), _rows(CELLS, by_cells))
    lines += ["", _line(CELLS, by_cells, "cells"), ""]
    lines += table(("k, at a million cells", "ms an iteration"), _rows(RANKS, by_rank))
    return [*lines, "", _line(RANKS, by_rank, "k")]


def _seconds(nnz: int, k: int, n: int = 6_000, m: int = 3_700) -> float:
    rows, columns = skewed_cells(n, m, nnz, 0)
    stars = np.random.default_rng(0).integers(1, 6, nnz).astype(np.float64)
    observed = Observed.from_cells(rows, columns, stars, (n, m), unseen="zero")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = OrdNMF(k, accelerate=False, max_iter=20, tol=0.0, n_jobs=2, random_state=0).fit(observed)
    return float(np.median(np.diff(model.trace_["seconds"])))


def _rows(sizes: tuple[int, ...], seconds: list[float]) -> list[tuple[str, str]]:
    return [(f"{size:,}", f"{1e3 * time:.1f}") for size, time in zip(sizes, seconds, strict=True)]


def _line(sizes: tuple[int, ...], seconds: list[float], what: str) -> str:
    slope, intercept = np.polyfit(sizes, seconds, 1)
    residuals = np.array(seconds) - (slope * np.array(sizes) + intercept)
    fit = 1 - residuals.var() / np.var(seconds)
    return f"Straight line: {1e3 * intercept:.1f} ms + {1e9 * slope:.3g} ns for each of the {what}, R^2 = {fit:.4f}."
