"""Recommenders of other kinds, to compare with the paper's."""

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from scipy import sparse
from threadpoolctl import threadpool_limits

from halfseen.arrays import Array
from halfseen.observed import Observed

#: What `halfseen.metrics` ranks by: scores of the rows at these positions.
Scores = Callable[[Array], Array]
Factors = tuple[Array, Array]


def is_installed(package: str) -> bool:
    return find_spec(package) is not None


def popularity(train: Observed) -> Factors:
    """The same order for all: by how often a column was seen."""
    return np.ones((train.shape[0], 1)), train.seen_per_column()[:, None].astype(float)


def ease(train: Observed, l2: float) -> Scores:
    """Scores X B by the item weights that minimise |X - X B|^2 + l2 |B|^2 with diag(B) = 0 (Steck, 2019):

        P = (X^T X + l2 I)^-1,    B = I - P / diag(P)

    and so X B = X - X P / diag(P). Where there are fewer rows than columns the smaller system is solved instead:
    X P = (X X^T + l2 I)^-1 X, and diag(P) = (1 - sum_u X_ui (X P)_ui) / l2.
    """
    X = _matrix(train)
    n, m = X.shape
    if m <= n:
        P = _inverse(X.T @ X, l2)
        P /= np.diag(P).copy()
        return lambda rows: X[rows].toarray() - X[rows] @ P
    XP = _inverse(X @ X.T, l2) @ X
    XP /= (1 - np.asarray(X.multiply(XP).sum(axis=0)).reshape(-1)) / l2
    return lambda rows: X[rows].toarray() - XP[rows]


def _inverse(gram: Any, l2: float) -> Array:
    """(gram + l2 I)^-1, of a sparse matrix."""
    gram = gram.toarray()
    gram.flat[:: gram.shape[0] + 1] += l2
    return np.asarray(np.linalg.inv(gram))


def als(train: Observed, factors: int, regularization: float, alpha: float, seed: int) -> Factors:
    """implicit's alternating least squares (Hu, Koren and Volinsky, 2008): a seen cell y weighs alpha y, others 1."""
    with threadpool_limits(1, "blas"):  # as implicit asks for: it has threads of its own
        model = import_module("implicit.als").AlternatingLeastSquares(
            factors=factors, regularization=regularization, alpha=alpha, random_state=seed
        )
        model.fit(_matrix(train).astype(np.float32), show_progress=False)
    return model.user_factors, model.item_factors


def hpf(train: Observed, k: int, seed: int) -> Factors:
    """hpfrec's hierarchical Poisson factorization (Gopalan, Hofman and Blei, 2015)."""
    model = import_module("hpfrec").HPF(
        k=k, stop_crit="train-llk", maxiter=500, random_seed=seed, reindex=False, verbose=False,
        produce_dicts=False, keep_data=False,
    )  # fmt: skip
    model.fit(_matrix(train).tocoo())
    return model.Theta, model.Beta


def _matrix(train: Observed) -> sparse.csr_matrix:
    """Zeros that were seen weigh nothing here."""
    X = sparse.csr_matrix((train.values, train.indices, train.indptr), shape=train.shape, copy=True)
    X.eliminate_zeros()
    return X
