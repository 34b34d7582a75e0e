"""Early stopping on cells that are held out, restarts, and being interrupted."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from halfseen import OrdinalMF, RoundMF, Status, observe
from halfseen.errors import DataError
from halfseen.fitting import EarlyStopping
from halfseen.held_out import split_validation
from halfseen.likelihoods import Gaussian
from halfseen.observed import Observed
from halfseen.solvers import Newton, PointFactor, State
from tests.estimators.models import Recorder, refused
from tests.graded import oracle
from tests.graded.data import ratings
from tests.laws.cases import open_problem

both = pytest.mark.parametrize("kind", [RoundMF, OrdinalMF])
X = ratings()[0]


def seen(cells):
    return set(zip(cells.row_of_cell().tolist(), cells.indices.tolist(), strict=True))


@pytest.mark.parametrize("share", [0.01, 0.1, 0.5, 0.99])
@pytest.mark.parametrize("holes", [0.3, 0.9])
def test_cells_are_held_out_but_never_the_only_one_of_a_row_or_column(share, holes):
    observed = observe(ratings(holes=holes)[0])
    for seed in range(5):
        fitted, validation = split_validation(observed, share, np.random.RandomState(seed))
        assert seen(fitted) | seen(validation) == seen(observed)
        assert not seen(fitted) & seen(validation)
        assert validation.nnz <= round(share * observed.nnz)
        if share <= 0.1 and holes < 0.5:
            assert validation.nnz == round(share * observed.nnz)
        for counts in ("seen_per_row", "seen_per_column"):
            assert_array_equal(getattr(fitted, counts)() > 0, getattr(observed, counts)() > 0)
        dense = observed.to_dense()
        assert_array_equal(validation.values, dense[validation.row_of_cell(), validation.indices])


def test_weights_go_with_their_cells():
    weight = np.arange(X.size, dtype=float).reshape(X.shape) + 1
    for part in split_validation(observe(X, cell_weight=weight), 0.2, np.random.RandomState(0)):
        assert_array_equal(part.weights, weight[part.row_of_cell(), part.indices])


def test_where_no_cell_can_be_spared_the_data_are_refused():
    alone = Observed.from_cells([0, 1, 2], [0, 1, 2], [1.0, 2.0, 3.0], (3, 3))
    with refused(DataError, "early_stopping"):
        split_validation(alone, 0.5, np.random.RandomState(0))


def stopping(kind, data=X, **parameters):
    model = kind(8, l2=0.02, early_stopping=True, validation_fraction=0.2, random_state=0, tol=0, max_iter=60, n_jobs=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.set_params(**parameters).fit(data)


def cost(model, cells):
    """The mean cost of cells, by the oracle."""
    x = (model.W_ @ model.H_.T)[cells.row_of_cell(), cells.indices]
    name = model.loss if isinstance(model, RoundMF) else model.link
    return oracle.LOSSES[name](np.searchsorted(model.levels_, cells.values), x, model.likelihood_.thresholds)[0].mean()


@both
@pytest.mark.parametrize("solver", ["newton", "sgd"])
def test_the_iteration_with_the_lowest_held_out_loss_is_kept(kind, solver):
    model = stopping(kind, solver=solver, n_iter_no_change=3, learning_rate=0.5, batch_size=100)
    losses = model.trace_["held_out"]
    assert model.status_ is Status.HELD_OUT
    assert len(losses) == len(model.trace_["objective"]) == model.n_iter_ < 60
    assert np.argmin(losses) == len(losses) - 1 - 3
    _, validation = split_validation(observe(X), 0.2, np.random.RandomState(0))
    assert_allclose(cost(model, validation), losses.min(), rtol=1e-9)


@both
def test_more_patience_goes_on_for_longer(kind):
    short, long = (stopping(kind, n_iter_no_change=wait) for wait in (2, 6))
    assert_allclose(short.trace_["held_out"], long.trace_["held_out"][: short.n_iter_], rtol=1e-12)
    assert long.n_iter_ > short.n_iter_


@both
def test_without_early_stopping_nothing_is_held_out(kind):
    model = stopping(kind, early_stopping=False, max_iter=5)
    assert set(model.trace_) == {"objective", "seconds"}
    assert model.status_ is Status.MAX_ITER


@both
def test_a_run_that_ends_before_has_its_own_status(kind):
    model = stopping(kind, max_iter=2, n_iter_no_change=50)
    assert model.status_ is Status.MAX_ITER
    assert len(model.trace_["held_out"]) == 2
    settled = stopping(kind, l2=30.0, tol=1e-3, n_iter_no_change=50)
    assert settled.status_ is Status.CONVERGED


@both
def test_callbacks_see_every_iteration_and_may_stop(kind):
    recorder = Recorder()
    watched = stopping(kind).set_callbacks(recorder)
    watched.fit(X)
    assert recorder.calls.count("iteration ends") == watched.n_iter_
    model = stopping(kind).set_callbacks(Recorder(stop_after=2))
    model.fit(X)
    assert model.status_ is Status.STOPPED
    assert len(model.trace_["held_out"]) == 2


@both
@pytest.mark.parametrize("solver", ["newton", "sgd"])
@pytest.mark.filterwarnings("ignore::halfseen.errors.DataWarning")
def test_rows_and_columns_without_a_cell_get_the_average_whether_stopped_early_or_not(kind, solver):
    data = X.copy()
    data[3], data[:, 5] = np.nan, np.nan
    for early in (False, True):
        model = stopping(kind, data, solver=solver, early_stopping=early, max_iter=10)
        for F, blank in ((model.W_, 3), (model.H_, 5)):
            assert_allclose(F[blank], np.delete(F, blank, axis=0).mean(axis=0), atol=1e-9)


@both
def test_a_level_that_only_held_out_cells_have_is_no_trouble(kind):
    data = ratings(12, 10, levels=(1.0, 2.0, 3.0))[0]
    place = np.argwhere(~np.isnan(data))[7]
    data[tuple(place)] = 9.0
    for seed in range(12):
        model = stopping(kind, data, random_state=seed, validation_fraction=0.4, max_iter=10, l2=1.0)
        assert np.all(np.isfinite(model.W_))
        assert np.all(np.diff(model.thresholds_) > 0)


def test_held_out_cells_count_by_their_weights():
    weight = np.random.default_rng(0).choice([0.1, 5.0], X.shape)
    observed = observe(X, cell_weight=weight)
    model = stopping(OrdinalMF, observed, max_iter=3)
    _, validation = split_validation(observed, 0.2, np.random.RandomState(0))
    x = (model.W_ @ model.H_.T)[validation.row_of_cell(), validation.indices]
    costs = oracle.LOSSES["logit"](validation.values - 1, x, model.thresholds_)[0]
    assert_allclose(model.trace_["held_out"].min(), np.average(costs, weights=validation.weights), rtol=1e-9)


def test_patience_counts_from_the_lowest_loss():
    """y = 1 costs (1 - x)^2 / 2."""
    cells = Observed.from_cells([0], [0], [1.0], (1, 1))
    answers = []
    with open_problem(Gaussian(), cells) as held_out:
        patience = EarlyStopping(held_out, 2)
        for step, x in enumerate([5.0, 4.0, 4.5, 3.0, 3.5, 3.2, 1.0]):
            rows, columns = PointFactor(np.full((1, 1), x)), PointFactor(np.ones((1, 1)))
            answers.append(patience(step + 1, State(rows, columns, None, 0.0, Gaussian())))
    assert answers == [False, False, False, False, False, True, False]
    assert_allclose(patience.losses[:2], [8.0, 4.5])


# Restarts


@both
def test_the_best_of_several_starts_is_kept(kind):
    data = ratings(15, 12, holes=0.3)[0]
    singles = []
    state = np.random.RandomState(7)
    for _ in range(4):
        model = kind(3, l2=0.05, random_state=state, max_iter=15, tol=0, n_jobs=1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            singles.append(model.fit(data).trace_["objective"][-1])
            many = kind(3, l2=0.05, random_state=7, n_init=4, max_iter=15, tol=0, n_jobs=1).fit(data)
    assert np.ptp(singles) > 1e-3
    assert_allclose(many.trace_["objective"][-1], min(singles), rtol=1e-9)


@both
def test_of_several_starts_held_out_cells_choose(kind):
    many, one = (stopping(kind, n_init=n, max_iter=15) for n in (4, 1))
    assert many.trace_["held_out"].min() <= one.trace_["held_out"].min()


@both
def test_callbacks_go_with_restarts(kind):
    recorder = Recorder()
    model = kind(2, n_init=3, max_iter=4, tol=0, random_state=0).set_callbacks(recorder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X)
    assert recorder.calls.count("iteration ends") == 12
    stopped = kind(2, n_init=3, max_iter=4, tol=0, random_state=0).set_callbacks(Recorder(stop_after=2)).fit(X)
    assert stopped.status_ is Status.STOPPED
    assert stopped.n_iter_ == 2


# The keyboard


def interrupting(monkeypatch, after):
    """Ctrl-C in the epoch after so many."""
    epoch, count = Newton.epoch, [0]

    def interrupted(self, task, state):
        count[0] += 1
        if count[0] == after + 1:
            raise KeyboardInterrupt
        return epoch(self, task, state)

    monkeypatch.setattr(Newton, "epoch", interrupted)
    return count


@both
@pytest.mark.parametrize("early", [False, True])
def test_an_interrupted_fit_is_kept(kind, early, monkeypatch):
    count = interrupting(monkeypatch, 3)
    model = kind(3, early_stopping=early, random_state=0, tol=0, accelerate=False, n_init=4)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X)
    assert model.status_ is Status.INTERRUPTED
    assert model.n_iter_ == 3
    assert count[0] == 4  # who asked for the end does not want another start
    assert np.isfinite(model.predict(0, 0))


def test_ctrl_c_in_the_smooth_fit_before_rounding_ends_it_all(monkeypatch):
    count = interrupting(monkeypatch, 3)
    model = RoundMF(2, loss="round", random_state=0, accelerate=False)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X)
    assert model.status_ is Status.INTERRUPTED
    assert count[0] == 4
    assert np.isfinite(model.predict(0, 0))
