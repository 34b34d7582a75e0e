"""Every estimator of the library, fitted on small data with everything in them that could hurt a page."""

import warnings
from contextlib import contextmanager
from functools import cache

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import halfseen as hs
from halfseen.errors import DataWarning

#: Names that are no plain words: markup, formulas, an emoji, a control character, right-to-left, one that is long.
NASTY = [
    "<script>alert(1)</script>",
    "</title><img src=x onerror=alert(2)>",
    "$x^2$ & $\\frac$",
    "\"quoted\" 'twice'",
    "🍺 ビール",
    "tab\there\x07",
    "שלום",
    "long " * 40,
    "{{ 7 * 7 }}{% raw %}",
]


def table(n=16, m=9, *, seed=0, whole=False, top=5):
    """A wide frame with holes, its columns under nasty names."""
    random = np.random.default_rng(seed)
    X = random.gamma(1.0, 1.0, (n, 2)) @ random.gamma(1.0, 1.0, (2, m)) + 0.1
    X = np.clip(np.round(X), 1, top) if whole else X
    X[random.random((n, m)) < 0.3] = np.nan
    return pd.DataFrame(X, columns=NASTY[:m])


def words():
    stars = table(whole=True, top=3)
    return stars.replace({1.0: "bad", 2.0: "<b>fair</b>", 3.0: "good"}).astype(object).where(stars.notna(), None)


def survey(**how):
    X = table(6, 8, seed=1)
    X.index = [f"question {place}" for place in range(6)]
    lists = (
        [(q, p) for q in X.index for p in X.columns if X.notna().loc[q, p]],
        [(q, X.loc[q, p]) for q in X.index for p in X.columns if X.notna().loc[q, p]],
        [
            (q, *sorted((a, b), key=lambda p: -X.loc[q, p]))
            for q in X.index
            for a, b in zip(X.columns[:-1], X.columns[1:], strict=True)
            if X.notna().loc[q, [a, b]].all()
        ],
    )
    return hs.Uncoupled(*lists[: 3 if how.pop("compared", True) else 2], **how)


#: A model to fit and its data, by name.
CASES = {
    "WeightedNMF": (hs.WeightedNMF(2), table),
    "WeightedNMF of zeros": (hs.WeightedNMF(2, unseen="zero"), table),
    "RankOneNMF": (hs.RankOneNMF(), table),
    "RankOneNMF by a1gm": (hs.RankOneNMF("a1gm"), lambda: np.array([[1.0, 2, 3], [2, np.nan, 4], [3, 5, 6]])),
    "RankOneNMF of a tensor": (hs.RankOneNMF(), lambda: _tensor()),
    "PoissonFactorization": (hs.PoissonFactorization(2), lambda: table(whole=True)),
    "PoissonFactorization of missing cells": (hs.PoissonFactorization(2, unseen="missing"), lambda: table(whole=True)),
    "BernoulliPoisson": (hs.BernoulliPoisson(2), lambda: table(whole=True)),
    "CompoundPoisson": (hs.CompoundPoisson(2), lambda: table(whole=True)),
    "OrdNMF": (hs.OrdNMF(2), lambda: table(whole=True)),
    "OrdNMF of words": (hs.OrdNMF(2, levels=["bad", "<b>fair</b>", "good"]), words),
    "OrdNMF of missing cells": (hs.OrdNMF(2, unseen="missing"), lambda: table(whole=True)),
    "OrdNMF with gamma noise": (hs.OrdNMF(2, noise="gamma", noise_shape=2.0), lambda: table(whole=True)),
    "SquaredOrdNMF": (hs.SquaredOrdNMF(2), lambda: table(whole=True)),
    "SquaredPoisson": (hs.SquaredPoisson(2), lambda: table(whole=True)),
    "RoundMF": (hs.RoundMF(2), lambda: table(whole=True)),
    "RoundMF without biases": (hs.RoundMF(2, biases=False, early_stopping=True), lambda: table(whole=True)),
    "OrdinalMF": (hs.OrdinalMF(2, own_thresholds="rows"), lambda: table(whole=True)),
    "OrdinalMF of words": (hs.OrdinalMF(2, levels=["bad", "<b>fair</b>", "good"]), words),
    "UncoupledNMF": (hs.UncoupledNMF(2, n_sweeps=60, n_burn=20), survey),
    "UncoupledNMF, turned": (hs.UncoupledNMF(2, n_sweeps=60, n_burn=20), lambda: survey(questions_are="columns")),
    "UncoupledNMF without comparisons": (hs.UncoupledNMF(2), lambda: survey(compared=False)),
    "UncoupledNMF by decoding": (hs.UncoupledNMF(2, method="decode"), survey),
}


def _tensor():
    random = np.random.default_rng(0)
    X = np.einsum("i,j,k->ijk", *(random.random(size) + 0.5 for size in (6, 4, 3)))
    X[random.random(X.shape) < 0.2] = np.nan
    return X


@cache
def fitted(name):
    """A model of a case, and what it was fitted on; made once, to be left as it is."""
    model, data = CASES[name]
    X = data()
    seed = {"random_state": 0} if "random_state" in model.get_params() else {}
    with quiet():
        return clone(model).set_params(**seed).fit(X), X


@contextmanager
def quiet():
    """Without the warnings that small data deserve."""
    with warnings.catch_warnings():
        for category in (ConvergenceWarning, DataWarning):
            warnings.simplefilter("ignore", category)
        yield
