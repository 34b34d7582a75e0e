"""Whole fits of both estimators with every loss and both solvers, watched from state to state."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from halfseen import OrdinalMF, RoundMF
from halfseen.errors import DataWarning
from tests.graded import oracle
from tests.graded.data import ratings

MODELS = {
    **{loss: RoundMF(2, loss=loss) for loss in ("multi-sigmoid", "round", "linear")},
    **{link: OrdinalMF(2, link=link) for link in oracle.NOISES},
    "rows' own": OrdinalMF(2, own_thresholds="rows"),
    "columns' own": OrdinalMF(2, own_thresholds="columns"),
}
every_model = pytest.mark.parametrize("name", MODELS)


def fitted(name, X, **parameters):
    model = clone(MODELS[name]).set_params(**({"random_state": 0, "max_iter": 8, "tol": 0, "n_jobs": 1} | parameters))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", DataWarning)
        return model.fit(X)


def hard_data():
    """Nearly always one level; the others a few times, in rows and columns of which little is seen."""
    X = np.full((15, 12), np.nan)
    rng = np.random.default_rng(0)
    X[rng.random(X.shape) < 0.5] = 3.0
    X[[0, 1, 2, 3], [0, 1, 2, 3]] = [1, 2, 4, 5]
    return X


@every_model
@pytest.mark.parametrize("l2", [0.0, 1e-8])
def test_without_a_prior_worth_the_name_fits_go_on_well(name, l2):
    model = fitted(name, hard_data(), l2=l2, max_iter=30)
    assert np.all(np.isfinite(model.W_))
    assert np.all(np.diff(model.thresholds_) > 0)
    trace = model.trace_["objective"]
    assert np.all(np.diff(trace) <= 1e-9 * trace[0])


@every_model
def test_x_is_the_product_of_the_factors_and_biases_are_in_it(name):
    model = fitted(name, ratings(20, 15)[0])
    assert model.W_.shape == (20, 4)
    assert model.H_.shape == (15, 4)
    x = model.W_[:, :2] @ model.H_[:, :2].T + model.row_biases_[:, None] + model.column_biases_
    assert_allclose(model.W_ @ model.H_.T, x, rtol=1e-12)
    plain = fitted(name, ratings(20, 15)[0], biases=False)
    assert plain.W_.shape == (20, 2)
    assert plain.row_biases_ is None
    assert plain.column_biases_ is None


@every_model
def test_the_objective_is_the_oracles(name):
    """At the end of a fit: costs, the prior of factors and biases, the prior of own thresholds."""
    X = ratings(20, 15)[0]
    model = fitted(name, X, l2=0.7, max_iter=5)
    C = (~np.isnan(X)).astype(float)
    Y = np.where(C > 0, np.nan_to_num(X, nan=1.0) - 1, 0)
    prior = oracle.Prior(0.7, True)
    if "own" not in name:
        truth = oracle.objective(oracle.LOSSES[name], Y, C, model.W_, model.H_, model.likelihood_.thresholds, prior)
    else:
        tau = model.own_thresholds_
        steps, common = (
            np.column_stack([t[:, :1], np.log(np.diff(t, axis=1))]) for t in (tau, model.thresholds_[None])
        )
        truth = prior.cost(model.W_, 0) + prior.cost(model.H_, 1) + 0.7 / 3 / 2 * ((steps - common) ** 2).sum()
        x = model.W_ @ model.H_.T
        for owner, thresholds in enumerate(tau):
            part = np.s_[owner : owner + 1] if name.startswith("rows") else np.s_[:, owner : owner + 1]
            truth += oracle.summed(oracle.LOSSES["logit"], Y[part], C[part], x[part], thresholds)[0]
    assert_allclose(model.trace_["objective"][-1], truth, rtol=1e-9)
