"""Small fitted models with known factors."""

from dataclasses import replace

import numpy as np
import pandas as pd
from scipy import sparse

from halfseen import WeightedNMF
from halfseen.solvers import PointFactor

USERS = ["ann", "bob", "cid", "dan"]
ITEMS = ["ale", "bun", "cod", "dip", "egg"]


def seen_matrix():
    """Four rows, five columns, some cells unseen."""
    nan = np.nan
    return np.array([
        [5.0, 3.0, nan, 1.0, nan],
        [nan, 4.0, 4.0, nan, 1.0],
        [1.0, nan, nan, 5.0, 4.0],
        [2.0, 1.0, 3.0, nan, nan],
    ])  # fmt: skip


def long_frame(X=None):
    X = seen_matrix() if X is None else X
    rows, columns = np.nonzero(~np.isnan(X))
    return pd.DataFrame({
        "user": [USERS[i] for i in rows], "item": [ITEMS[j] for j in columns], "rating": X[rows, columns],
    })  # fmt: skip


def wide_frame():
    return pd.DataFrame(seen_matrix(), columns=ITEMS)


def stored(X=None):
    X = seen_matrix() if X is None else X
    rows, columns = np.nonzero(~np.isnan(X))
    return sparse.coo_array((X[rows, columns], (rows, columns)), X.shape)


def fitted(X, **parameters):
    return WeightedNMF(2, max_iter=30, tol=0, random_state=0).set_params(**parameters).fit(X)


def with_scores(scores, model=None):
    """A model whose score of row u and column i is scores[u, i]."""
    scores = np.asarray(scores, dtype=float)
    model = fitted(np.ones(scores.shape), n_components=1) if model is None else model
    return with_factors(model, scores, np.eye(scores.shape[1]))


def with_factors(model, W, H):
    """The model at other factors, which are points."""
    factors = (PointFactor(np.asarray(factor, float)) for factor in (W, H))
    model.model_ = replace(model.model_, **dict(zip(("rows", "columns"), factors, strict=True)))
    return model
