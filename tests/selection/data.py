"""Matrices of a known rank, drawn by NumPy alone."""

import numpy as np

from halfseen import Observed


def counts(k, seed, n=200, m=150):
    """Poisson counts of k sparse components, half a count a cell on average; what is 0 was not seen."""
    rng = np.random.default_rng(seed)
    x = _product(rng, n, m, k, 0.3)
    return _without_zeros(rng.poisson(x * (0.5 / x.mean())))


def stars(k, seed, n=200, m=150, shares=(0.8, 0.87, 0.92, 0.96)):
    """Levels 0..4 of the product of k sparse components times inverse-gamma noise; what is at 0 was not seen."""
    rng = np.random.default_rng(seed)
    x = _product(rng, n, m, k, 0.3)
    noisy = x / rng.exponential(size=x.shape)
    return _without_zeros(np.searchsorted(np.quantile(noisy, shares), noisy))


def holed_counts(k, seed, n=200, m=150, seen=0.5):
    """Poisson counts of k components with a mean of k, half of them hidden."""
    rng = np.random.default_rng(seed)
    X = rng.poisson(_product(rng, n, m, k, 1.0)).astype(float)
    X[rng.random(X.shape) >= seen] = np.nan
    return X


def table(k, seed, n=60, m=40, seen=0.6, noise=0.05):
    """A dense array with NaN: k components, a little noise, holes."""
    rng = np.random.default_rng(seed)
    x = _product(rng, n, m, k, 1.0)
    X = np.maximum(rng.normal(x, noise * x.std()), 0.0)
    X[rng.random(X.shape) >= seen] = np.nan
    return X


def _product(rng, n, m, k, shape):
    return rng.gamma(shape, 1 / shape, (n, k)) @ rng.gamma(shape, 1 / shape, (m, k)).T


def _without_zeros(Y):
    rows, columns = np.nonzero(Y)
    return Observed.from_cells(rows, columns, Y[rows, columns].astype(float), Y.shape, unseen="zero")
