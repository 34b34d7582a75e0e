"""Rank one with holes: fits against KL-WNMF and against reading the data

KL-WNMF is that of the study `a1gm`: NumPy, the paper's stop rule, BLAS on one thread. All start from the same array
with NaN; reading the data is a plain `X.sum()`, and the goals are upper bounds of ratios. Medians of turns taken in one
process.
"""

import tracemalloc

import numpy as np

import halfseen
from benchmarks.measuring import table
from halfseen.studies.framework import median_seconds
from halfseen.studies.kl_wnmf import kl_wnmf, with_weights

#: Rows, columns; in how many columns there are holes, and their share there; the goals against KL-WNMF and X.sum().
TABLES = (
    (10_000, 2_000, 2_000, 0.05, "0.03", "3"),
    (73_718, 9, 1, 0.044, "0.10", ""),
    (20_640, 9, 1, 0.01, "0.10", ""),
    (33_656, 14, 3, 0.16, "0.10", ""),
    (2_938, 19, 14, 0.06, "", ""),
    (30, 30, 30, 0.05, "", ""),
)


def run() -> list[str]:
    rows = [_compared(*one) for one in TABLES]
    return table(
        ("table", "holes", "exact ms", "sweeps", "A1GM ms", "KL-WNMF ms", "exact / KL-WNMF", "goal", "X.sum() ms",
         "exact / X.sum()", "goal", "peak / X"), rows
    )  # fmt: skip


def _compared(n: int, m: int, holed: int, share: float, goal: str, bandwidth_goal: str) -> tuple[str, ...]:
    X = _with_holes(n, m, holed, share)
    exact, a1gm = halfseen.RankOneNMF(), halfseen.RankOneNMF(method="a1gm")
    works = [lambda: exact.fit(X), lambda: kl_wnmf(with_weights(X), 0), X.sum]
    if holed < m:  # else A1GM has nothing left
        works.append(lambda: a1gm.fit(X))
    milliseconds = [1e3 * second for second in median_seconds(works, at_least=9, until=2.0)]
    fit, baseline, reading = milliseconds[:3]
    return (
        f"{n:,} x {m:,}", f"{np.isnan(X).mean():.1%}", f"{fit:.2f}", str(exact.n_iter_),
        f"{milliseconds[3]:.2f}" if holed < m else "-", f"{baseline:.2f}", f"{fit / baseline:.3f}", goal,
        f"{reading:.3f}", f"{fit / reading:.1f}", bandwidth_goal, f"{_peak(exact, X) / X.nbytes:.2f}",
    )  # fmt: skip


def _with_holes(n: int, m: int, holed: int, share: float) -> np.ndarray:
    random = np.random.default_rng(0)
    X = random.uniform(0.1, 1.0, (n, m))
    X[:, :holed][random.random((n, holed)) < share] = np.nan
    return X


def _peak(model: halfseen.RankOneNMF, X: np.ndarray) -> float:
    """The most memory a fit holds over its input, in bytes."""
    tracemalloc.start()
    model.fit(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return float(peak)
