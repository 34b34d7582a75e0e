"""The estimators that laws range over, and short fits of them: a new estimator joins these lists."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from halfseen import (
    BernoulliPoisson,
    Blend,
    CompoundPoisson,
    ImplicitMF,
    ItemGraph,
    OrdinalMF,
    OrdNMF,
    PoissonFactorization,
    Popularity,
    RankOneNMF,
    RoundMF,
    SquaredOrdNMF,
    SquaredPoisson,
    WeightedNMF,
)
from halfseen.errors import DataWarning
from tests.laws.cases import counts

FACTORIZATIONS = [
    WeightedNMF(),
    WeightedNMF(loss="frobenius"),
    WeightedNMF(loss=1.5, l1=0.1, l2=0.1),
    WeightedNMF(loss="frobenius", unseen="zero"),
    WeightedNMF(unseen="zero"),
    PoissonFactorization(),
    PoissonFactorization(unseen="missing", prior_rate=1.0),
]
RELATIVES = [
    OrdNMF(),
    OrdNMF(unseen="missing", noise="exponential"),
    BernoulliPoisson(),
    CompoundPoisson(),
    SquaredOrdNMF(),
    SquaredPoisson(),
    ImplicitMF(dtype=None),
    RoundMF(),
    RoundMF(loss="linear", biases=False),
    OrdinalMF(),
]
RANK_ONE = [RankOneNMF(), RankOneNMF("em"), RankOneNMF(unseen="zero")]
ESTIMATORS = [*FACTORIZATIONS, *RANK_ONE, *RELATIVES]
#: One for each kind of record that a file may hold, and each set of methods.
RECORDED = [
    WeightedNMF(),
    WeightedNMF(loss=1.5, l2=0.1),
    PoissonFactorization(unseen="missing", prior_rate=1.0),
    BernoulliPoisson(),
    CompoundPoisson(),
    OrdNMF(),
    OrdNMF(noise="gamma", noise_shape=2.0),
    SquaredOrdNMF(),
    SquaredPoisson(),
    ImplicitMF(),
    ImplicitMF(confidence="log", frequency=0.5, dtype=None),
    RoundMF(),
    RoundMF(loss="round"),
    RoundMF(solver="gd", learning_rate=0.001),
    RoundMF(loss="linear"),
    OrdinalMF(early_stopping=True),
    OrdinalMF(own_thresholds="rows"),
    OrdinalMF(own_thresholds="columns"),
    OrdinalMF(inference="gibbs", implicit=True, n_sweeps=20, n_burn=5, n_draws=10),
    OrdinalMF(inference="gibbs", own_thresholds="rows", biases=False, n_sweeps=20, n_burn=5, n_draws=10),
    OrdinalMF(inference="gibbs", own_thresholds="columns", n_chains=1, n_sweeps=20, n_burn=5, n_draws=10),
    RankOneNMF(),
    RankOneNMF("a1gm", unseen="zero"),
]
#: Rankers without factors.
RANKERS = [
    ItemGraph(),
    ItemGraph(n_neighbors=3, l2=1.0, values="log"),
    Popularity(),
    Popularity("values"),
    Blend([SquaredOrdNMF(2, max_iter=10), ImplicitMF(3, max_iter=5), ItemGraph(l2=2.0)]),
]
every_estimator = pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
every_ranker = pytest.mark.parametrize("estimator", [*ESTIMATORS, *RANKERS], ids=str)
every_record = pytest.mark.parametrize("estimator", RECORDED, ids=str)


def with_parameters(estimator, **parameters):
    """A new estimator with these parameters, if it has them: the best rank-one fit has no rank, start or seed."""
    known = estimator.get_params()
    return clone(estimator).set_params(**{name: value for name, value in parameters.items() if name in known})


def suited(estimator, X):
    """The data as they are; where levels are asked for, in five of them."""
    return np.minimum(X, 4) if hasattr(estimator, "levels") else X


def fitted(estimator, X=None, n_components=3, **parameters):
    """A short fit, which need not converge."""
    X = suited(estimator, counts()) if X is None else X
    parameters = {"max_iter": 30, "tol": 0, "random_state": 0, "n_components": n_components} | parameters
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        return with_parameters(estimator, **parameters).fit(X)


def answers(model, X):
    """All that a fitted model says: of its rows and columns, and of new rows X, by the name of the method."""
    rows, columns = np.array([0, 3, 1]), np.array([2, 0, 4])
    asked = {
        "transform": (X,),
        "rows_of": (X,),
        "inverse_transform": (model.W_[:2],),
        "predict": (rows, columns),
        "complete": (X,),
        "recommend": (rows,),
        "score": (X,),
    }
    if "levels" in model.offers:
        asked["predict_level"] = (rows, columns)
    if "likelihood" in model.offers:
        asked |= {"log_likelihood": (X,), "predict_interval": (rows, columns), "sample": (1, 0)}
    if {"levels", "likelihood"} <= model.offers:
        asked["predict_proba"] = (rows, columns)
    if "posterior" in model.offers:
        asked |= {"sample_factors": (1, 0), "factor_intervals": ()}
    found = {name: getattr(model, name)(*arguments) for name, arguments in asked.items()}
    found["predict new"] = model.predict(X)
    found["recommend new"] = model.recommend(X[:2])
    found["sample"] = [one.toarray() for one in found.get("sample", ())]
    return found


def assert_same_answers(found, expected):
    """To the last bit."""
    assert found.keys() == expected.keys()
    for name in found:
        _assert_same(found[name], expected[name], name)


def _assert_same(found, expected, name):
    if isinstance(found, tuple | list):
        for one, other in zip(found, expected, strict=True):
            _assert_same(one, other, name)
    else:
        np.testing.assert_array_equal(found, expected, err_msg=name)
