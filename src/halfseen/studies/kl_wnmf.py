"""KL-WNMF at rank one in plain NumPy, the baseline of the A1GM paper (Blondel, Ho and Van Dooren, 2007)."""

from collections.abc import Callable
from math import ceil
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from scipy.special import kl_div

import halfseen
from halfseen.arrays import Array
from halfseen.studies.framework import median_seconds

#: Seconds of one measurement of `fit_seconds`, at least.
SAMPLE = 1e-3


class KLWNMFResult(NamedTuple):
    """The matrix w h^T, and the number of iterations."""

    w: Array
    h: Array
    n_iter: int


def with_weights(X: Array) -> tuple[Array, Array]:
    """X with 0 in place of NaN, and the weights Phi: 1 for a seen cell, 0 for a hole."""
    seen = ~np.isnan(X)
    return np.where(seen, X, 0.0), seen.astype(X.dtype)


def divergence(X: Array, w: Array, h: Array) -> float:
    """D_Phi(X, w h^T) of Eq. 2: sum of x log(x / y) - x + y over the cells of X that are not NaN."""
    row, column = np.nonzero(~np.isnan(X))
    return float(kl_div(X[row, column], w[row] * h[column]).sum())


def kl_wnmf(weighted: tuple[Array, Array], seed: int, tol: float = 1e-4, max_iter: int = 200) -> KLWNMFResult:
    """Minimise D_Phi(X, w h^T), Eq. 2, by multiplicative updates from a start uniform in (0, 1):

        h <- h * ((X / w h^T)^T w) / (Phi^T w)   with X = 0 in the holes
        w <- w * ((X / w h^T) h) / (Phi h)       with the new h

    until (previous error - error) / error at the start < tol, checked after every iteration: the rule of
    scikit-learn's NMF, which checks it after every tenth. h moves first, as in the authors' program; a run of two or
    three iterations ends at a different point if w does. `weighted` is the result of `with_weights`.
    """
    X, Phi = weighted
    random = np.random.default_rng(seed)
    w, h = (1.0 - random.random((length,)) for length in X.shape)
    product, ratio = np.multiply.outer(w, h), np.empty_like(X)
    seen = X[X > 0]
    x_log_x = float(seen @ np.log(seen) - seen.sum())  # sum x log x - x, where 0 log 0 = 0

    def current_divergence(total: Any) -> float:
        """sum_seen x log x - x log y - x + y, the last sum being `total`; a hole has x = 0."""
        return float(x_log_x - np.vdot(X, np.log(product, out=ratio)) + total)

    first = error = current_divergence(w @ Phi @ h)
    n_iter, gain = 0, np.inf
    while gain >= tol and n_iter < max_iter:
        h *= (w @ np.divide(X, product, out=ratio)) / (w @ Phi)
        np.multiply.outer(w, h, out=product)
        push = Phi @ h
        w *= (np.divide(X, product, out=ratio) @ h) / push
        np.multiply.outer(w, h, out=product)
        previous, error = error, current_divergence(w @ push)
        n_iter, gain = n_iter + 1, (previous - error) / first
    return KLWNMFResult(w, h, n_iter)


def fit_seconds(X: Array, seed: int, **timing: Any) -> tuple[float, float, float]:
    """Median seconds of A1GM, of the exact solution and of KL-WNMF on a matrix with NaN, each on one thread.

    A fit that takes less than `SAMPLE` is repeated that long in one measurement, as BenchmarkTools does, with which the
    paper measures. `timing` goes to `median_seconds`.
    """
    fits: list[Callable[[], Any]] = [
        lambda: halfseen.rank_one(X, method="a1gm"),
        lambda: halfseen.rank_one(X),
        lambda: kl_wnmf(with_weights(X), seed),
    ]

    def repeated(fit: Callable[[], Any]) -> tuple[Callable[[], None], int]:
        fit()  # compiles
        started = perf_counter()
        fit()
        calls = max(1, ceil(SAMPLE / (perf_counter() - started)))

        def run() -> None:
            for _ in range(calls):
                fit()

        return run, calls

    runs, calls = zip(*map(repeated, fits), strict=True)
    a1gm, exact, baseline = (time / n for time, n in zip(median_seconds(runs, **timing), calls, strict=True))
    return a1gm, exact, baseline
