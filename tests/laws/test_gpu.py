"""A fit on a GPU equals that on the cpu, for every estimator; without a GPU one of them, in Triton's interpreter."""

import gc

import numpy as np
import pytest
from numpy.linalg import norm
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from halfseen import (
    BernoulliPoisson,
    CompoundPoisson,
    ImplicitMF,
    OrdinalMF,
    OrdNMF,
    PoissonFactorization,
    RoundMF,
    SquaredOrdNMF,
    SquaredPoisson,
    Status,
    WeightedNMF,
)
from halfseen.engines import ENGINES
from tests.engines.devices import torch_device
from tests.estimators.models import Recorder
from tests.laws.cases import half_seen, levels

ESTIMATORS = [
    WeightedNMF(),
    WeightedNMF(loss="frobenius"),
    WeightedNMF(loss="itakura-saito"),
    WeightedNMF(unseen="zero", l1=0.1, l2=0.1, accelerate=True),
    WeightedNMF(loss="frobenius", unseen="zero"),
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
    OrdinalMF(),
    OrdinalMF(link="probit"),
    OrdinalMF(own_thresholds="rows"),
    OrdinalMF(own_thresholds="columns"),
    RoundMF(),
    RoundMF(loss="linear"),
    RoundMF(loss="round"),
]
every_estimator = pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
#: How far factors of 50 iterations may be from those of the cpu, in norm. In single precision those of the cpu are as
#: far from its own in double precision: Newton's method hardly moves along flat directions of the loss.
RTOL = {np.float32: 1e-3, np.float64: 1e-8}

pytestmark = pytest.mark.filterwarnings(
    "ignore::halfseen.errors.DataWarning", "ignore::sklearn.exceptions.ConvergenceWarning"
)


@pytest.fixture
def gpu():
    if torch_device() != "cuda":
        pytest.skip("no GPU")


def data(estimator, n=150, m=80, dtype=np.float64):
    """Levels or counts, with an empty row and an empty column."""
    if hasattr(estimator, "levels"):
        return levels(n, m, dtype=dtype)
    is_positive = getattr(estimator, "loss", None) == "itakura-saito"
    X = np.round(half_seen(n, m, zeros=not is_positive)) + is_positive
    return X.astype(dtype)


def ready(estimator, engine, callback=None, **parameters):
    """An estimator for a fit that need not converge."""
    parameters = {"n_components": 4, "max_iter": 50, "tol": 0, "random_state": 0, "engine": engine} | parameters
    model = clone(estimator).set_params(**parameters)
    return model if callback is None else model.set_callbacks(callback)


def fitted(estimator, X, engine, callback=None, **parameters):
    return ready(estimator, engine, callback, **parameters).fit(X)


def assert_agree(found, expected, X, rtol):
    """Factors, and what follows from them."""
    assert found.status_ is expected.status_
    assert_allclose(found.trace_["objective"], expected.trace_["objective"], rtol=rtol)
    for one, other in (
        (found.W_, expected.W_),
        (found.H_, expected.H_),
        (found.transform(X[:9]), expected.transform(X[:9])),
        (found.predict(X[:9]), expected.predict(X[:9])),
        (found.recommend(range(5), exclude_seen=False).scores, expected.recommend(range(5), exclude_seen=False).scores),
    ):
        assert one.dtype == other.dtype
        assert norm(one - other) <= rtol * norm(other), norm(one - other) / norm(other)
    assert_allclose(found.score(X), expected.score(X), rtol=rtol)


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@every_estimator
def test_a_fit_equals_the_cpu(estimator, dtype):
    X = data(estimator, dtype=dtype)
    # where costs have corners, rounding errors of single precision grow with every iteration
    max_iter = 15 if dtype is np.float32 and getattr(estimator, "loss", None) == "round" else 50
    models = [fitted(estimator, X, engine, max_iter=max_iter) for engine in ("cuda", "cuda", "cpu")]
    assert_agree(models[0], models[2], X, RTOL[dtype])
    for factor in ("W_", "H_"):
        assert_array_equal(*(getattr(model, factor) for model in models[:2]))


def test_a_fit_in_the_interpreter_equals_the_cpu(monkeypatch):
    if torch_device() == "cuda":
        pytest.skip("there is a GPU")
    from halfseen.engines.cuda import CudaEngine

    monkeypatch.setitem(ENGINES, "cuda", lambda n_jobs: CudaEngine("cpu"))
    X = data(OrdNMF(), 12, 9)
    assert_agree(*(fitted(OrdNMF(), X, engine, max_iter=3) for engine in ("cuda", "cpu")), X, 1e-10)


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("estimator", [OrdinalMF(), RoundMF()], ids=str)
def test_early_stopping(estimator):
    X = data(estimator)
    how = {"early_stopping": True, "n_iter_no_change": 2, "max_iter": 100}
    here, there = (fitted(estimator, X, engine, **how) for engine in ("cpu", "cuda"))
    assert there.status_ is here.status_ is Status.HELD_OUT
    assert_allclose(there.trace_["held_out"], here.trace_["held_out"], rtol=1e-6)


class Interrupting(Recorder):
    def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
        if super().on_fit_task_end(estimator, context, fitted_estimator=fitted_estimator):
            raise KeyboardInterrupt


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("estimator", [WeightedNMF(), OrdNMF(), OrdinalMF()], ids=str)
def test_callbacks_may_stop_or_interrupt_a_fit(estimator):
    X = data(estimator)
    short = fitted(estimator, X, "cuda", max_iter=3)
    recorder = Recorder(stop_after=3)
    stopped = fitted(estimator, X, "cuda", recorder)
    assert stopped.status_ is Status.STOPPED
    assert {type(recorder.models[-1].W_), type(stopped.W_)} == {np.ndarray}
    interrupted = ready(estimator, "cuda", Interrupting(stop_after=3))
    with pytest.raises(KeyboardInterrupt):
        interrupted.fit(X)
    assert interrupted.status_ is Status.INTERRUPTED
    for model in (stopped, interrupted):
        assert model.n_iter_ == 3
        assert_array_equal(model.W_, short.W_)


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("estimator", [WeightedNMF(), OrdNMF(), OrdinalMF()], ids=str)
def test_memory_does_not_grow(estimator):
    import torch

    X, allocated = data(estimator, 40, 30), []
    for _ in range(100):
        fitted(estimator, X, "cuda", max_iter=2).transform(X[:3])
        gc.collect()
        allocated.append(torch.cuda.memory_allocated())
    assert allocated[-1] <= allocated[4]
