"""Whole fits of both estimators with every loss and both solvers, watched from state to state."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from halfseen import OrdinalMF, RoundMF
from halfseen.datasets import load_tabular
from halfseen.errors import DataWarning
from tests.datasets.server import paths_or_skip
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


def survey(n, m, seed, reversed_items=False):
    """Answers 1..5 to questions about one trait, a seventh of them missing; some questions may be put the other way."""
    rng = np.random.default_rng(seed)
    loadings = rng.uniform(0.6, 1.4, m) * np.where(reversed_items & (np.arange(m) % 3 == 0), -1.0, 1.0)
    x = rng.normal(size=(n, 1)) * loadings + 0.7 * rng.normal(size=(n, m))
    return np.where(rng.random((n, m)) < 0.15, np.nan, np.digitize(x, [-1.5, -0.5, 0.5, 1.5]) + 1.0)


def wiki4he():
    """Twelve Likert items of a real survey."""
    paths_or_skip("wiki4he")
    answers = load_tabular("wiki4he").to_dense()
    items = np.flatnonzero(np.nanmax(answers, axis=0) == 5)[:12]
    return answers[~np.isnan(answers[:, items]).all(axis=1)][:, items]


@pytest.mark.parametrize("biases", [True, False])
@pytest.mark.parametrize("l2", [None, 12.0])
@pytest.mark.parametrize("data", [lambda: survey(400, 12, 1), lambda: survey(300, 12, 2), wiki4he])
def test_one_component_does_not_stop_before_it_has_found_the_trait(data, l2, biases):
    """By default the loss comes within 0.1 % of what a hundred times as many iterations reach, whatever the start."""
    X = data()
    losses = [
        OrdinalMF(1, biases=biases, l2=l2, random_state=seed, n_jobs=1).fit(X).trace_["objective"][-1]
        for seed in range(3)
    ]
    far = OrdinalMF(1, biases=biases, l2=l2, tol=1e-8, max_iter=1000, random_state=0, n_jobs=1).fit(X)
    assert max(losses) < 1.001 * far.trace_["objective"][-1]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("biases", [True, False])
@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("name", ["logit", "linear"])
def test_fits_end_at_no_saddle(name, k, biases, seed):
    """No direction of the Hessian, by differences of the oracle's slopes, goes down; nor does L-BFGS from nearby."""
    X = survey(40, 8, seed, reversed_items=True)
    model = fitted(name, X, n_components=k, biases=biases, random_state=seed, max_iter=500, tol=1e-6)
    prior, loss, tau = oracle.Prior(model.l2_, biases), oracle.LOSSES[name], model.likelihood_.thresholds
    C = (~np.isnan(X)).astype(float)
    Y = np.where(C > 0, np.nan_to_num(X, nan=1.0) - 1, 0)
    factors = (model.W_, model.H_)
    is_free = [np.broadcast_to(prior.held(F.shape[1], side) == 0, F.shape) for side, F in enumerate(factors)]
    n_free, n_rows = sum(free.sum() for free in is_free), is_free[0].sum()
    # of "linear" all thresholds are one offset
    n_parameters = tau.size if name == "logit" else 1

    def gradient(step):
        moved = [F.copy() for F in factors]
        moved[0][is_free[0]] += step[:n_rows]
        moved[1][is_free[1]] += step[n_rows:n_free]
        cut = tau + step[n_free:]
        down = oracle.slopes(loss, Y, C, *moved, cut, prior)
        by_tau = oracle.by_thresholds(loss, Y, C, moved[0] @ moved[1].T, cut)
        by_tau = by_tau if name == "logit" else by_tau[:1] + by_tau[1:].sum()
        return np.concatenate([*(g[free] for g, free in zip(down, is_free, strict=True)), by_tau])

    unit = 1e-4 * np.eye(n_free + n_parameters)
    hessian = np.array([(gradient(step) - gradient(-step)) / 2e-4 for step in unit])
    assert np.linalg.eigvalsh((hessian + hessian.T) / 2)[0] > -0.01 * model.l2_
    random = np.random.default_rng(seed)
    for _ in range(3):
        W, H = (np.where(free, F + random.normal(0, 0.5, F.shape), F) for F, free in zip(factors, is_free, strict=True))
        found = oracle.lowest(loss, Y, C, W, H, tau, prior, learned=name == "logit", steps=300)
        assert found > 0.999 * model.trace_["objective"][-1]


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
