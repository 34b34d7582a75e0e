"""Tables with holes for the tests of imputation."""

import numpy as np


def correlated(n=200, p=6, holes=0.2, seed=0):
    """Rows of a Gaussian with two factors: (rows with holes, all cells, mean, covariance)."""
    random = np.random.default_rng(seed)
    loadings = random.normal(size=(p, 2))
    mean, covariance = random.normal(size=p), loadings @ loadings.T + np.diag(random.uniform(0.3, 1.0, p))
    cells = random.multivariate_normal(mean, covariance, n)
    return np.where(random.random((n, p)) < holes, np.nan, cells), cells, mean, covariance
