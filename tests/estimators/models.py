"""Data, and small fitted models with known factors, that the tests of estimators share."""

import os
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from halfseen import Observed, WeightedNMF
from halfseen.errors import DataError
from halfseen.solvers import PointFactor

USERS = ["ann", "bob", "cid", "dan"]
ITEMS = ["ale", "bun", "cod", "dip", "egg"]
U1 = Path(os.environ.get("HALFSEEN_DATA", "")) / "movielens-100k"
needs_movielens = pytest.mark.skipif(not U1.exists(), reason="MovieLens 100K is not in the data folder")


@contextmanager
def refused(error=DataError, parameter=None, found="", where="", remedy=""):
    """The block raises `error`, which names the parameter at fault, and has these words in its fields."""
    with pytest.raises(error) as caught:
        yield caught
    value = caught.value
    assert parameter in (None, value.parameter), repr(value.parameter)
    assert found in value.found, value.found
    assert where in value.where, value.where
    assert remedy in value.remedy, value.remedy


# Matrices


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


def levels_matrix(n=30, m=20, highest=5, share=0.4, seed=0):
    """Levels 1..highest in some cells, 0 elsewhere, and in all of row 4 and column 7."""
    rng = np.random.default_rng(seed)
    Y = rng.integers(1, highest + 1, (n, m)) * (rng.random((n, m)) < share)
    Y[4], Y[:, 7] = 0, 0
    return Y


def counts(n=30, m=20, seed=0):
    """Counts in some cells, 0 elsewhere, and in all of row 4 and column 7."""
    rng = np.random.default_rng(seed)
    Y = rng.poisson(rng.gamma(1.0, 4.0, (n, m))) * (rng.random((n, m)) < 0.4)
    Y[4], Y[:, 7] = 0, 0
    return Y


def with_holes(Y, share=0.3, seed=2):
    return np.where(np.random.default_rng(seed).random(Y.shape) < share, np.nan, Y)


def start(n, m, k=4, seed=1):
    rng = np.random.default_rng(seed)
    return rng.gamma(1.0, 1.0, (n, k)), rng.gamma(1.0, 1.0, (m, k))


def movielens():
    """Training and test cells of the first fold of MovieLens 100K."""
    cells = (np.loadtxt(U1 / f"u1.{name}", dtype=int) for name in ("base", "test"))
    return [
        Observed.from_cells(one[:, 0] - 1, one[:, 1] - 1, one[:, 2].astype(float), (943, 1682), unseen="zero")
        for one in cells
    ]


# Models


def fitted(X, **parameters):
    return WeightedNMF(2, max_iter=30, tol=0, random_state=0).set_params(**parameters).fit(X)


def with_scores(scores, model=None):
    """A model whose score of row u and column i is scores[u, i]."""
    scores = np.asarray(scores, dtype=float)
    model = fitted(np.ones(scores.shape), n_components=1) if model is None else model
    return with_factors(model, scores, np.eye(scores.shape[1]))


def with_factors(model, W, H):
    """The model at other factors, which are points."""
    W, H = (PointFactor(np.asarray(factor, float)) for factor in (W, H))
    model.model_ = replace(model.model_, rows=W, columns=H)
    return model


def folding_until(model, **limits):
    """The model with another `max_iter` or `tol` of folding in; that of rank one has a closed form and none."""
    folding = model.model_.folding
    if folding is not None:
        model.model_ = replace(model.model_, folding=replace(folding, **limits))
    return model


class Recorder:
    """Callback that records its calls; stops after some iterations."""

    def __init__(self, stop_after=None):
        self.stop_after, self.calls, self.models, self.data = stop_after, [], [], []

    def setup(self, estimator, context):
        self.calls.append("setup")

    def teardown(self, estimator, context):
        self.calls.append("teardown")

    def on_fit_task_begin(self, estimator, context, *, X=None):
        self.calls.append(f"{context.task_name} begins")
        self.data.append(X)

    def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
        self.calls.append(f"{context.task_name} ends")
        self.models.append(fitted_estimator)
        return self.calls.count("iteration ends") == self.stop_after
