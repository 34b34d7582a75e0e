"""Ordinal factorization of a million stars: OrdNMF beside plain NumPy, with and without momentum; SquaredOrdNMF

MovieLens 1M, 80 % of its cells, where the data folder has it; else as many skewed cells with random stars. The NumPy
program is a straightforward one of the paper's algorithm: it gathers arrays of cells x components for the dot products,
and multiplies sparse by dense matrices for the sums. Memory is the peak over the input, counted by tracemalloc.
"""

import warnings
from collections.abc import Iterator
from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from benchmarks.measuring import peak_of, table
from halfseen import Observed, OrdNMF, SquaredOrdNMF
from halfseen.datasets import load_ratings
from halfseen.datasets.synthetic import skewed_cells
from halfseen.errors import DataError
from halfseen.io import split_cells
from halfseen.metrics import ndcg_at_k
from tests.ordinal.oracle import SHAPE, Gamma, Ordinal, Start, first_decrements, mean_count, prior_rates

K = 100


def run() -> list[str]:
    name, ratings = _ratings()
    train, test = split_cells(ratings, test_size=0.2, random_state=0)
    single = replace(train, values=train.values.astype(np.float32))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return [
            f"{name}, {train.nnz:,} cells.",
            "",
            *_iterations(train, single),
            "",
            *_momentum(train),
            "",
            *_ranking(train, single, test),
        ]


def _ratings() -> tuple[str, Observed]:
    try:
        return "MovieLens 1M", replace(load_ratings("movielens-1m"), unseen="zero")
    except DataError:
        n, m, nnz = 6_040, 3_706, 1_000_000
        stars = np.random.default_rng(0).integers(1, 6, nnz).astype(np.float64)
        return "Random stars", Observed.from_cells(*skewed_cells(n, m, nnz, 0), stars, (n, m), unseen="zero")


def _iterations(train: Observed, single: Observed) -> list[str]:
    """One iteration of the same algorithm, from the same start."""
    random = np.random.RandomState(0)
    start = tuple(random.standard_gamma(1.0, (size, K)) for size in train.shape)

    def numpy_run(iterations: int) -> Iterator[Any]:
        return _numpy_ordnmf(train, *start, iterations)

    seconds = _median_seconds(numpy_run(5))
    peak = peak_of(lambda: list(numpy_run(2)))
    rows = [("NumPy and SciPy", f"{1e3 * seconds:.0f}", "", "", f"{peak / 1e6:.0f}", "")]
    for what, data in (("OrdNMF", train), ("OrdNMF, float32", single)):
        ours = OrdNMF(K, init=start, accelerate=False, max_iter=25, tol=0.0, n_jobs=2)
        mine = float(np.median(np.diff(ours.fit(data).trace_["seconds"])))
        products = _two_products(data, K)
        held = peak_of(lambda ours=ours, data=data: ours.set_params(max_iter=3).fit(data))
        rows.append(
            (
                what,
                f"{1e3 * mine:.1f}",
                f"**{seconds / mine:.1f}**",
                f"**{mine / products:.2f}** of {1e3 * products:.1f} ms",
                f"{held / 1e6:.0f}",
                f"{held / peak:.2f}",
            )
        )
    header = (
        "one iteration, k = 100",
        "ms",
        "times as fast",
        "of Y @ H and Y.T @ W in SciPy",
        "peak, MB",
        "of NumPy's",
    )
    return table(header, rows)


def _numpy_ordnmf(train: Observed, W0: np.ndarray, H0: np.ndarray, iterations: int) -> Iterator[Any]:
    """The paper's Algorithm 1 in NumPy: arrays of cells x components for dot products, sparse products for sums.

    Unseen cells enter through theta_0 times the sum over all cells, less what the seen ones put in too much.
    """
    rows, columns, levels = train.row_of_cell(), train.indices, train.values.astype(np.int64)

    def along(values: np.ndarray) -> Any:
        return sparse.csr_array((values, columns, train.indptr), shape=train.shape)

    def dots(F: np.ndarray, G: np.ndarray) -> Any:
        return (F[rows] * G[columns]).sum(1)

    D = first_decrements(np.bincount(levels), "zero")
    w, h = Start(W0), Start(H0)
    x = dots(w.geometric, h.geometric)
    counts = mean_count(D[levels - 1] * x)
    for _ in range(iterations):
        prior_w, prior_h = prior_rates(w, SHAPE), prior_rates(h, SHAPE)
        # Eq. 35: the cells with y <= l are all cells less those seen above l
        at_level = np.bincount(levels, dots(w.mean, h.mean), minlength=len(D) + 1)[1:]
        above = np.cumsum(at_level[::-1])[::-1] - at_level
        whole = w.mean.sum(0) @ h.mean.sum(0)
        D = np.bincount(levels, counts, minlength=len(D) + 1)[1:] / (whole - above)
        family = Ordinal(D)
        shares, excess = along(counts / x), along(family.theta[0] - family.push(levels))
        shape_w = SHAPE + w.geometric * (shares @ h.geometric)
        shape_h = SHAPE + h.geometric * (shares.T @ w.geometric)
        w = Gamma(shape_w, prior_w + family.theta[0] * h.mean.sum(0) - excess @ h.mean)
        h = Gamma(shape_h, prior_h + family.theta[0] * w.mean.sum(0) - excess.T @ w.mean)
        x = dots(w.geometric, h.geometric)
        counts = mean_count(D[levels - 1] * x)
        yield w, h


def _two_products(data: Observed, k: int) -> float:
    """Seconds of SciPy's sparse times dense along both sides, on one thread: the median of nine."""
    Y = sparse.csr_array((data.values, data.indices, data.indptr), shape=data.shape)
    random = np.random.default_rng(0)
    W, H = (random.gamma(1.0, 1.0, (size, k)).astype(data.dtype) for size in data.shape)
    T, times = Y.T.tocsr(), []
    for _ in range(9):
        started = perf_counter()
        Y @ H
        T @ W
        times.append(perf_counter() - started)
    return float(np.median(times))


def _momentum(train: Observed) -> list[str]:
    """Time to where the plain algorithm stops."""
    rows = []
    for seed in range(2):
        plain, quick = (
            OrdNMF(K, accelerate=accelerate, random_state=seed, n_jobs=2).fit(train).trace_
            for accelerate in (False, True)
        )
        there = int(np.argmax(quick["objective"] >= plain["objective"][-1]))
        reached = bool(quick["objective"][there] >= plain["objective"][-1])
        rows.append(
            (
                seed,
                f"{len(plain['seconds'])}, {plain['seconds'][-1]:.1f} s, {plain['objective'][-1]:.0f}",
                f"{len(quick['seconds'])}, {quick['seconds'][-1]:.1f} s, {quick['objective'][-1]:.0f}",
                f"**{quick['seconds'][there] / plain['seconds'][-1]:.2f}**" if reached else "never",
            )
        )
    return table(("seed", "plain: iterations, time, bound", "with momentum", "time to plain's bound, of plain's"), rows)


def _ranking(train: Observed, single: Observed, test: Observed) -> list[str]:
    """SquaredOrdNMF by its defaults, and how long the ranking metric takes."""
    rows = []
    for what, data in (("float64", train), ("float32", single)):
        started = perf_counter()
        model = SquaredOrdNMF(200, random_state=0, n_jobs=2).fit(data)
        fitted = perf_counter() - started
        plain = SquaredOrdNMF(200, random_state=0, n_jobs=2, accelerate=False, max_iter=15, tol=0.0).fit(data)
        iteration = float(np.median(np.diff(plain.trace_["seconds"])))
        products = _two_products(data, 200)
        started = perf_counter()
        first = ndcg_at_k(model, data, test, k=100, relevant=1)
        ranked = perf_counter() - started
        others = [ndcg_at_k(model, data, test, k=100, relevant=s) for s in (3, 4, 5)]
        scores = " / ".join(f"{score:.3f}" for score in (first, *others))
        of_products = f"**{iteration / products:.2f}** of {1e3 * products:.1f} ms"
        rows.append((what, model.n_iter_, f"**{fitted:.1f}**", of_products, scores, f"{ranked:.2f}"))
    header = (
        "SquaredOrdNMF, k = 200", "iterations", "fit, s", "a plain iteration, of two products in SciPy",
        "NDCG@100, stars of 1 / 3 / 4 / 5", "ndcg_at_k, s",
    )  # fmt: skip
    return table(header, rows)


def _median_seconds(iterations: Iterator[Any]) -> float:
    """An iteration's, the first left out."""
    times = [perf_counter()]
    for _ in iterations:
        times.append(perf_counter())
    return float(np.median(np.diff(times)[1:]))
