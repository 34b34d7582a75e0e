"""Solvers, likelihoods and estimators know no device: on an engine with arrays of its own they agree with the cpu."""

import importlib
import inspect
import os
import pkgutil
import sys
import warnings
from types import SimpleNamespace

import array_api_strict as xp
import cloudpickle
import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import halfseen.folding
import halfseen.solvers
from halfseen import (
    BernoulliPoisson,
    CompoundPoisson,
    ImplicitMF,
    OrdinalMF,
    OrdNMF,
    PoissonFactorization,
    RankOneNMF,
    RoundMF,
    SquaredOrdNMF,
    SquaredPoisson,
    Status,
    UncoupledNMF,
    WeightedNMF,
)
from halfseen.engines import ENGINES, Engine, Side, open_engine
from halfseen.errors import DataWarning, EngineError, ParameterError
from halfseen.fitting import run
from halfseen.folding import fold_in
from halfseen.io import observe
from halfseen.likelihoods import LINKS, Gaussian, rules
from halfseen.likelihoods.rules import CellParams, Terms
from halfseen.solvers import Gamma, LeastSquares, Multiplicative, Newton, Penalty, Problem, Ridge
from tests.estimators.models import Recorder, refused
from tests.laws.cases import (
    LIKELIHOODS,
    OWNED,
    SMOOTHS,
    STORED,
    counts,
    levels,
    matrix,
    signed_start,
    start,
    weights_for,
)

#: As on the cpu: a number that is too large is infinite, and what follows from it is judged.
pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")

#: Not where the array library puts what says no device, nor where NumPy's arrays may meet its own.
DEVICE = xp.Device("device1")


class StrictCells:
    row_shards = cell_shards = None

    def __init__(self, observed):
        self.observed = observed
        self.rows, self.columns = observed.row_of_cell(), observed.indices
        first = observed.is_first_at_cell if observed.unseen == "zero" else None
        self.y, self.weights, self.is_first_at_cell = (
            None if array is None else xp.asarray(array, device=DEVICE)
            for array in (observed.values, observed.weights, first)
        )

    def near_and_far(self, side):
        """The two positions of every cell."""
        return (self.rows, self.columns) if side is Side.ROWS else (self.columns, self.rows)


class StrictEngine(Engine):
    """What an engine must have, as plainly as can be, on arrays that refuse what is not in the array API standard, and
    arrays of another device."""

    name = "strict"
    offers = frozenset({"newton"})

    def place(self, observed, *sides, shards=None):
        return StrictCells(observed)

    def asarray(self, array, side=None):
        assert isinstance(array, np.ndarray)
        return xp.asarray(array, device=DEVICE, copy=True)

    def to_numpy(self, array):
        assert array.device == DEVICE
        return np.from_dlpack(array.to_device(xp.Device("CPU_DEVICE"))).copy()

    def sddmm(self, cells, W, H):
        return self.asarray(np.einsum("ck,ck->c", self.to_numpy(W)[cells.rows], self.to_numpy(H)[cells.columns]))

    def spmm(self, cells, c, far, side):
        near, other = cells.near_and_far(side)
        far = self.to_numpy(far)
        sums = np.zeros((cells.observed.shape[side is Side.COLUMNS], far.shape[1]), far.dtype)
        np.add.at(sums, near, self.to_numpy(c)[:, None] * far[other])
        return self.asarray(sums)

    def newton_step(self, cells, slope, curvature, near, far, penalty, side):
        rows, others = cells.near_and_far(side)
        s, c, F, G = (self.to_numpy(array) for array in (slope, curvature, near, far))
        free = penalty.fixed == 0
        for u in range(len(F)):
            mine = rows == u
            g = G[others[mine]]
            gradient = g.T @ s[mine] + penalty.l2 * (F[u] - penalty.centre)
            hessian = (g.T * c[mine]) @ g + np.diag(penalty.l2)
            F[u, free] -= np.linalg.solve(hessian[np.ix_(free, free)], gradient[free])
        return self.asarray(F)


def test_scipy_is_as_users_have_it():
    assert "SCIPY_ARRAY_API" not in os.environ


# ---------------------------------------------------------------------------------------------------------------------
# solvers


def is_for_all(likelihood):
    return not likelihood.needs


def fits(solver, likelihood, observed, factors, **how):
    """Of a few epochs on strict arrays and on the cpu, with the rows that are folded in on both."""
    with StrictEngine() as strict, open_engine("cpu", 1) as cpu:
        both = []
        for engine in (strict, cpu):
            problem = Problem(engine, engine.place(observed, *Side), likelihood)
            both.append((problem, run(problem, solver, lambda: factors, tol=0.0, **how)))
        here = both[1][1]
        average = here.rows.mean.mean(axis=0)
        return [(fit, fold_in(problem, solver, here.columns, average, max_iter=10, tol=1e-3)) for problem, fit in both]


def assert_agree(both, rtol, objective_rtol=1e-10):
    (strict, strict_folded), (here, folded) = both
    assert strict.status is here.status is Status.MAX_ITER
    assert_allclose(strict.trace["objective"], here.trace["objective"], rtol=objective_rtol)
    for one, other in ((strict.rows, here.rows), (strict.columns, here.columns), (strict_folded, folded)):
        for found, expected in zip(one, other, strict=True):
            assert type(found) is np.ndarray
            assert found.dtype == expected.dtype
            assert_allclose(found, expected, rtol=rtol, atol=1e-3 * rtol)


CASES = [
    pytest.param(solver, likelihood, unseen, kind, id=f"{solver.name}-{likelihood.name}-{unseen}-{kind}")
    for likelihood in filter(is_for_all, LIKELIHOODS)
    for solver in [Multiplicative(), Multiplicative(Penalty(0.1, 0.2), eager=0.9), Gamma()]
    if likelihood.push_is_constant or not isinstance(solver, Gamma)
    for unseen in ["missing", "zero"]
    if unseen == "missing" or likelihood.unseen is not None
    for kind in ["plain", "weighted", "repeated"]
]
CASES += [
    pytest.param(LeastSquares(0.5), Gaussian(), unseen, kind, id=f"least squares-{unseen}-{kind}")
    for unseen in ["missing", "zero"]
    for kind in ["plain", "weighted", "repeated"]
]


@pytest.mark.parametrize("accelerate", [False, True], ids=["plainly", "with momentum"])
@pytest.mark.parametrize(("solver", "likelihood", "unseen", "kind"), CASES)
def test_a_fit_on_other_arrays_equals_the_cpu(solver, likelihood, unseen, kind, accelerate):
    observed = matrix(likelihood, unseen, kind)
    factors = start(*observed.shape, 3)
    assert_agree(fits(solver, likelihood, observed, factors, max_iter=6, accelerate=accelerate), 1e-8)


SMOOTH_CASES = {**SMOOTHS, "own thresholds": OWNED}


@pytest.mark.parametrize("accelerate", [False, True], ids=["plainly", "with momentum"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", SMOOTH_CASES)
def test_a_fit_by_newton_on_other_arrays_equals_the_cpu(name, weighted, accelerate):
    Y = levels()
    if name == "own thresholds":  # the last of its owners stands for all other columns
        Y += 5 * np.minimum(np.arange(Y.shape[1]), len(OWNED.offsets))
    observed = observe(Y, cell_weight=weights_for(Y) if weighted else None)
    ridge = Ridge(0.5, biases=True)
    factors = [ridge.initialize(F, side) for F, side in zip(signed_start(*Y.shape, 2), Side, strict=True)]
    # A few epochs: what rounding makes different grows, where hinges have corners and a row nearly gets worse.
    assert_agree(fits(Newton(ridge), SMOOTH_CASES[name], observed, factors, max_iter=5, accelerate=accelerate), 1e-7)


@pytest.mark.parametrize(
    ("solver", "likelihood"),
    [(Multiplicative(), LIKELIHOODS[0]), (Gamma(), LIKELIHOODS[0]), (Newton(Ridge(0.5)), SMOOTHS["logit"])],
    ids=["multiplicative", "gamma", "newton"],
)
def test_single_precision_stays_single_on_other_arrays(solver, likelihood):
    if isinstance(solver, Newton):
        observed, factors = observe(levels(dtype=np.float32)), signed_start(14, 11, 2, dtype=np.float32)
    else:
        observed = matrix(likelihood, "missing", "plain", np.float32)
        factors = start(*observed.shape, 2, dtype=np.float32)
    both = fits(solver, likelihood, observed, factors, max_iter=5)
    assert both[0][0].rows.mean.dtype == np.float32
    assert_agree(both, 1e-3, objective_rtol=1e-5)


# ---------------------------------------------------------------------------------------------------------------------
# estimators


@pytest.fixture
def strict(monkeypatch):
    monkeypatch.setitem(ENGINES, "strict", lambda n_jobs: StrictEngine())


def fitted(estimator, X, engine, callback=None, **parameters):
    """A short fit, which need not converge."""
    model = clone(estimator).set_params(engine=engine, random_state=0, n_jobs=1, **parameters)
    model = model if callback is None else model.set_callbacks(callback)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X)


ESTIMATORS = [
    WeightedNMF(),
    WeightedNMF(loss="frobenius", unseen="zero", accelerate=True),
    WeightedNMF(unseen="zero", l1=0.1, init="rank-one"),
    WeightedNMF(loss=1.5, l2=0.1),
    PoissonFactorization(),
    PoissonFactorization(unseen="missing", prior_rate=1.0),
    BernoulliPoisson(),
    CompoundPoisson(),
    OrdNMF(),
    OrdNMF(unseen="missing"),
    SquaredOrdNMF(),
    SquaredOrdNMF(frequency_scaling=0.5),
    SquaredPoisson(),
    ImplicitMF(dtype=None),
    *(OrdinalMF(link=link) for link in LINKS),
    OrdinalMF(own_thresholds="rows"),
    OrdinalMF(own_thresholds="columns", early_stopping=True, n_iter_no_change=2),
    OrdinalMF(early_stopping=True, n_init=2),
    RoundMF(),
    RoundMF(loss="linear", biases=False),
    RoundMF(loss="round"),
]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
def test_an_estimator_on_other_arrays_equals_the_cpu(estimator, strict):
    X = levels() if hasattr(estimator, "levels") else counts()
    recorder = Recorder()
    models = [
        fitted(estimator, X, "cpu", n_components=2, max_iter=6, tol=0),
        fitted(estimator, X, "strict", recorder, n_components=2, max_iter=6, tol=0),
    ]
    here, elsewhere = models
    assert elsewhere.status_ is here.status_
    for name in here.trace_.keys() - {"seconds"}:
        assert_allclose(elsewhere.trace_[name], here.trace_[name], rtol=1e-9, err_msg=name)
    for ask in (
        lambda model: model.W_,
        lambda model: model.H_,
        lambda model: model.transform(X[::2]),
        lambda model: model.score(X),
        lambda model: model.predict(X[:3]),
    ):
        assert_allclose(ask(elsewhere), ask(here), rtol=1e-6, atol=1e-9)
    # what callbacks see is as NumPy as what is left in the end
    seen = [model for model in recorder.models if model is not None]
    assert len(seen) >= here.n_iter_
    for model in (elsewhere, *seen):
        assert {type(array) for factor in (model.model_.rows, model.model_.columns) for array in factor} == {np.ndarray}
    assert np.isfinite(seen[0].predict([0, 1], [2, 3])).all()


# ---------------------------------------------------------------------------------------------------------------------
# what does not fit together


@pytest.mark.parametrize(
    ("estimator", "what"),
    [
        (OrdNMF(noise="gamma", noise_shape=2.0), "gamma noise"),
        (OrdNMF(noise="exponential"), "exponential noise"),
        (OrdinalMF(solver="sgd"), "stochastic"),
        (RoundMF(solver="sgd"), "stochastic"),
        (RoundMF(solver="gd"), "gradient descent"),
    ],
    ids=str,
)
def test_what_an_engine_lacks_is_named(estimator, what, strict):
    with refused(EngineError, "engine") as refusal:
        fitted(estimator, levels(), "strict", n_components=1)
    assert what in refusal.value.must
    model = fitted(estimator, levels(), "cpu", n_components=1, max_iter=2).set_params(engine="strict")
    if isinstance(estimator, OrdNMF):
        for method in (model.transform, model.score):
            with refused(EngineError, "engine"):
                method(levels())
    else:  # rows are folded in by Newton's method
        assert np.isfinite(model.transform(levels())).all()


@pytest.mark.parametrize("estimator", [RankOneNMF(), UncoupledNMF()], ids=str)
def test_estimators_with_loops_of_their_own_run_on_the_cpu_only(estimator):
    with refused(EngineError, "engine"):
        clone(estimator).set_params(engine="cuda").fit(counts())


def test_the_rule_of_engines_follows_the_registry(strict):
    assert list(ENGINES) == ["cpu", "cuda", "dask", "strict"]
    with refused(ParameterError, "engine") as refusal:
        WeightedNMF(engine="strct").fit(counts())
    assert "'strict'" in refusal.value.must
    assert "'strict'" in refusal.value.remedy


def test_without_torch_or_a_gpu_cuda_is_refused(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with refused(EngineError, "engine", remedy="pip install 'halfseen[cuda]'"):
        open_engine("cuda")
    torch = SimpleNamespace(__version__="3.0", cuda=SimpleNamespace(is_available=lambda: False))
    monkeypatch.setitem(sys.modules, "torch", torch)
    with refused(EngineError, "engine", found="PyTorch 3.0", remedy='engine="cpu"'):
        open_engine("cuda")


# ---------------------------------------------------------------------------------------------------------------------
# rules can be sent to another process

MODULES = [rules, halfseen.folding] + [
    importlib.import_module(f"halfseen.solvers.{module.name}")
    for module in pkgutil.iter_modules(halfseen.solvers.__path__)
]
RULES = {
    f"{module.__name__}.{name}": function
    for module in MODULES
    for name, function in inspect.getmembers(module, inspect.isfunction)
    if function.__module__ == module.__name__ and function.__annotations__.get("return") is Terms
}


def test_all_rules_are_found():
    assert {name.rsplit(".", 1)[1] for name in RULES} >= {
        "pulls", "pulls_and_pushes", "pushes", "costs", "means", "counts_and_means", "counts", "quadratics",
        "divergences", "parameter_terms", "gamma_posterior", "multiplied", "penalties_of", "extrapolated",
        "ridge_costs", "normal_equations", "relative_changes", "inverse_gaussian_posterior", "local_bound",
    }  # fmt: skip


@pytest.mark.parametrize("name", RULES)
def test_a_rule_is_small(name):
    assert len(cloudpickle.dumps(RULES[name])) < 10_000


@pytest.mark.parametrize("name", STORED)
def test_the_parameters_of_rules_are_small(name):
    likelihood = STORED[name]
    assert len(cloudpickle.dumps(CellParams(likelihood, likelihood.unseen))) < 10_000


class WatchedEngine(StrictEngine):
    """Keeps the rules that it is given."""

    def __init__(self):
        self.rules = set()

    def sweep(self, cells, rule, params, W, H, *sides, n_levels=0):
        self.rules.add(rule)
        return super().sweep(cells, rule, params, W, H, *sides, n_levels=n_levels)

    def map(self, rule, params, *arrays, **how):
        self.rules.add(rule)
        return super().map(rule, params, *arrays, **how)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
def test_engines_are_given_such_rules_only(estimator, monkeypatch):
    engine = WatchedEngine()
    monkeypatch.setitem(ENGINES, "strict", lambda n_jobs: engine)
    X = levels() if hasattr(estimator, "levels") else counts()
    fitted(estimator, X, "strict", n_components=2, max_iter=4, tol=0).score(X)
    assert engine.rules
    assert engine.rules <= set(RULES.values())
