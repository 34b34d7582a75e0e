"""Matrices of levels that are hard for lines and easy for rounding, and ratings with noise."""

import numpy as np

from tests.graded.oracle import grf


def of_round_rank(n=10, m=10, k=2, highest=5, seed=0):
    """GRF(U V^T), with factors and thresholds from normal distributions, the latter as wide as the products; drawn anew
    until every level is there."""
    rng = np.random.default_rng(seed)
    while True:
        x = rng.normal(size=(n, k)) @ rng.normal(size=(k, m))
        thresholds = np.sort(rng.normal(0, np.sqrt(k), highest))
        Y = grf(x, thresholds).astype(float)
        if np.unique(Y).size == highest + 1:
            return Y


def upper_triangular(n=10):
    return np.triu(np.ones((n, n)))


def band(n=10, width=3):
    """Ones on the diagonal and beside it."""
    rows, columns = np.indices((n, n))
    return (np.abs(rows - columns) <= width // 2).astype(float)


def ratings(n=60, m=40, seed=0, holes=0.5, levels=(1.0, 2.0, 3.0, 4.0, 5.0)):
    """What people with biases say of things with biases: (seen with NaN, all)."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2)) @ rng.normal(size=(2, m)) + rng.normal(size=(n, 1)) + rng.normal(size=m)
    x = x + rng.logistic(size=(n, m)) * 0.4
    cuts = np.quantile(x, np.linspace(0, 1, len(levels) + 1)[1:-1])
    Y = np.asarray(levels)[np.digitize(x, cuts)]
    seen = np.where(rng.random((n, m)) < holes, np.nan, Y)
    return seen, Y
