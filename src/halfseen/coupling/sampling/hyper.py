"""The normal distribution that the rows of a factor come from, drawn from its Normal-Wishart posterior."""

from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from halfseen.arrays import Array

#: As if one row had been seen at 0 before.
_ROWS_BEFORE = 1.0


class Normal(NamedTuple):
    """N(mean, precision^{-1})."""

    mean: Array
    precision: Array


def drawn_normal(rows: Array, random: np.random.Generator) -> Normal:
    """mean, precision | rows, a priori  precision ~ Wishart(I, k + 1),  mean ~ N(0, precision^{-1}).

    With n rows of average f and scatter S about it,

        precision ~ Wishart((I + S + n / (n + 1) f f^T)^{-1}, k + 1 + n),
        mean ~ N(n / (n + 1) f, precision^{-1} / (n + 1))
    """
    n, k = rows.shape
    average = rows.mean(axis=0)
    scatter = (rows - average).T @ (rows - average)
    share = n / (n + _ROWS_BEFORE)
    inverse = np.eye(k) + scatter + share * _ROWS_BEFORE * np.outer(average, average)
    # With inverse = C C^T and Bartlett's lower triangle T, (C^{-T} T)(C^{-T} T)^T is a draw of the precision.
    root = solve_triangular(np.linalg.cholesky(inverse), _bartlett(k + 1.0 + n, k, random), lower=True, trans="T")
    deviation = np.linalg.solve(root.T, random.standard_normal(k))
    return Normal(share * average + deviation / np.sqrt(n + _ROWS_BEFORE), root @ root.T)


def _bartlett(freedom: float, k: int, random: np.random.Generator) -> Array:
    """T with T T^T ~ Wishart(I, freedom)."""
    triangle: Array = np.tril(random.standard_normal((k, k)), -1)
    triangle[np.diag_indices(k)] = np.sqrt(2 * random.standard_gamma((freedom - np.arange(k)) / 2))
    return triangle
