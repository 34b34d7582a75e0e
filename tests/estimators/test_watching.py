"""scikit-learn's callbacks, and the progress bar."""

import io
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone

from halfseen import PoissonFactorization, Status, WeightedNMF
from tests.estimators.models import seen_matrix

X = seen_matrix()
both = pytest.mark.parametrize("kind", [WeightedNMF, PoissonFactorization])


class Recorder:
    """Writes down what it is told; stops after some iterations."""

    def __init__(self, stop_after=None):
        self.stop_after, self.calls, self.predictions, self.data = stop_after, [], [], []

    def setup(self, estimator, context):
        self.calls.append("setup")

    def teardown(self, estimator, context):
        self.calls.append("teardown")

    def on_fit_task_begin(self, estimator, context, *, X=None):
        self.calls.append(f"{context.task_name} begins")
        self.data.append(X)

    def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
        self.calls.append(f"{context.task_name} ends")
        if fitted_estimator is not None:
            self.predictions.append(fitted_estimator.predict([0, 1], [2, 3]))
        return self.calls.count("iteration ends") == self.stop_after


@both
def test_hooks_are_called_once_an_iteration(kind):
    recorder = Recorder()
    kind(2, max_iter=4, tol=0, random_state=0).set_callbacks(recorder).fit(X)
    iterations = ["iteration begins", "iteration ends"] * 4
    assert recorder.calls == ["setup", "fit begins", *iterations, "fit ends", "teardown"]
    assert all(data is X for data in recorder.data)


@both
def test_a_stop_is_honoured(kind):
    model = kind(2, max_iter=50, tol=0, random_state=0).set_callbacks(Recorder(stop_after=3)).fit(X)
    assert (model.status_, model.n_iter_) == (Status.STOPPED, 3)
    expected = kind(2, max_iter=3, tol=0, random_state=0).fit(X)
    assert_allclose(model.W_, expected.W_, rtol=1e-12)


@both
def test_the_model_so_far_can_predict(kind):
    recorder = Recorder()
    model = kind(2, max_iter=3, tol=0, random_state=0).set_callbacks(recorder).fit(X)
    for iteration in (1, 2, 3):
        so_far = kind(2, max_iter=iteration, tol=0, random_state=0).fit(X)
        assert_allclose(recorder.predictions[iteration - 1], so_far.predict([0, 1], [2, 3]), rtol=1e-12)
    assert_allclose(recorder.predictions[-1], model.predict([0, 1], [2, 3]), rtol=1e-12)


@both
def test_being_watched_changes_nothing(kind):
    model = kind(2, max_iter=10, tol=0, random_state=0)
    watched = clone(model).set_callbacks(Recorder()).fit(X)
    assert_allclose(watched.W_, model.fit(X).W_, rtol=0)


def test_callbacks_are_torn_down_when_a_fit_fails():
    recorder = Recorder()

    class Failing(Recorder):
        def on_fit_task_end(self, estimator, context):
            raise RuntimeError("stop here")

    with pytest.raises(RuntimeError, match="stop here"):
        WeightedNMF(2).set_callbacks(recorder, Failing()).fit(X)
    assert recorder.calls[-1] == "teardown"


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_bar_is_shown_on_a_terminal_only_and_only_if_wished(monkeypatch):
    model = WeightedNMF(2, max_iter=5, tol=0, random_state=0)
    for stream, verbose, shown in ((Terminal(), 1, True), (Terminal(), 0, False), (io.StringIO(), 1, False)):
        monkeypatch.setattr(sys, "stderr", stream)
        model.set_params(verbose=verbose).fit(X)
        assert ("WeightedNMF" in stream.getvalue()) == shown
        assert ("5/5" in stream.getvalue()) == shown


def test_a_bar_changes_nothing(monkeypatch):
    quiet = WeightedNMF(2, max_iter=5, tol=0, random_state=0).fit(X)
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert np.array_equal(WeightedNMF(2, max_iter=5, tol=0, random_state=0, verbose=1).fit(X).W_, quiet.W_)
