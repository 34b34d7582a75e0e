"""What a fit starts from, uses and warns of; callbacks and the progress bar."""

import io
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import halfseen
from halfseen import PoissonFactorization, RankOneNMF, Status, Uncoupled, UncoupledNMF, WeightedNMF, observe
from halfseen.errors import DataError, DataWarning, ParameterError
from halfseen.estimators.nmf import rank_one_start
from halfseen.likelihoods import Gaussian, Poisson, likelihood_for
from halfseen.observed import Observed
from halfseen.solvers import Multiplicative, PointFactor
from tests.estimators.models import Recorder, fitted, long_frame, refused, seen_matrix, wide_frame
from tests.laws.cases import open_problem
from tests.laws.estimators import with_parameters
from tests.rank_one import oracle

X = seen_matrix()
both = pytest.mark.parametrize("kind", [WeightedNMF, PoissonFactorization])


# Parameters


@pytest.mark.parametrize(
    ("model", "parameter"),
    [
        (WeightedNMF(0), "n_components"),
        (WeightedNMF(2.0), "n_components"),
        (WeightedNMF(max_iter=0), "max_iter"),
        (WeightedNMF(tol=-1e-3), "tol"),
        (WeightedNMF(tol=np.nan), "tol"),
        (WeightedNMF(init="nndsvd"), "init"),
        (WeightedNMF(unseen="zeros"), "unseen"),
        (WeightedNMF(engine="gpu"), "engine"),
        (WeightedNMF(n_jobs=0), "n_jobs"),
        (WeightedNMF(loss="frobenious"), "loss"),
        (WeightedNMF(l1=-1), "l1"),
        (WeightedNMF(l2=np.inf), "l2"),
        (PoissonFactorization(prior_shape=0), "prior_shape"),
        (PoissonFactorization(prior_rate=0), "prior_rate"),
        (PoissonFactorization(init="rank-one"), "init"),
    ],
    ids=str,
)
def test_invalid_parameters_are_refused_at_the_fit(model, parameter):
    with refused(ParameterError, parameter):
        model.fit(X)


@both
def test_parameters_are_set_by_name(kind):
    model = kind().set_params(n_components=4, tol=0.5)
    assert (model.n_components, model.tol) == (4, 0.5)
    with refused(ParameterError, "n_components__x"):
        model.set_params(n_components__x=3)


@pytest.mark.parametrize(("beta", "kind"), [(1e-15, "itakura-saito"), (1 + 1e-12, Poisson), (2 - 1e-12, Gaussian)])
def test_betas_next_to_a_special_case_are_that_case(beta, kind):
    likelihood = likelihood_for(beta)
    assert likelihood.name == kind if isinstance(kind, str) else isinstance(likelihood, kind)


# Starts


@both
@pytest.mark.parametrize(
    ("W", "H", "which"),
    [
        (np.ones((4, 3)), np.ones((5, 2)), "W0"),
        (np.ones((4, 2)), np.ones((2, 5)), "H0"),
        (np.ones((4, 2)), np.ones(5), "H0"),
        (np.full((4, 2), -1.0), np.ones((5, 2)), "W0"),
        (np.ones((4, 2)), np.full((5, 2), np.nan), "H0"),
        (np.ones((4, 2)), np.full((5, 2), np.inf), "H0"),
        (np.full((4, 2), "a"), np.ones((5, 2)), "W0"),
    ],
)
def test_invalid_starts_are_refused(kind, W, H, which):
    with refused(ParameterError, "init") as error:
        kind(2, init=(W, H)).fit(X)
    assert error.value.must.startswith(which)


def test_a_start_with_a_row_of_zeros_is_refused_where_nothing_could_lift_it():
    start = np.array([[1.0, 1.0], [0.0, 0.0], [1.0, 0.0], [2.0, 1.0]]), np.ones((5, 2))
    with refused(ParameterError, "init"):
        PoissonFactorization(2, init=start).fit(np.nan_to_num(X))
    model = WeightedNMF(2, init=start, max_iter=3, tol=0).fit(X)
    assert_array_equal(model.W_[1], 0)


def test_a_start_is_used_and_left_alone():
    W, H = np.full((4, 2), 2), np.arange(10).reshape(5, 2)
    model = WeightedNMF(2, init=(W, H), max_iter=1, tol=0, loss="frobenius", unseen="zero").fit(X)
    again = WeightedNMF(2, init=[W.tolist(), H.tolist()], max_iter=1, tol=0, loss="frobenius", unseen="zero").fit(X)
    assert_array_equal(model.W_, again.W_)
    assert np.all(W == 2)
    assert model.H_[0, 0] == 0  # a zero can't grow
    assert model.init[0] is W


def test_a_random_start_has_the_mean_of_the_data():
    rng = np.random.default_rng(0)
    data = rng.gamma(2.0, 30.0, (200, 150))
    for unseen, expected in (("missing", data.mean()), ("zero", data.mean() / 2)):
        observed = observe(sparse.coo_array(np.where(rng.random(data.shape) < 0.5, data, 0)), unseen=unseen)
        random = np.random.RandomState(0)
        with open_problem(Poisson(), observed) as problem:
            W, H = (Multiplicative().random(problem, (size, 5), random) for size in observed.shape)
        assert_allclose((W @ H.T).mean(), expected, rtol=0.1)


def test_a_start_of_infinite_loss_is_kept_and_reported():
    huge = np.full((4, 2), 1e15, np.float32), np.full((5, 2), 1e15, np.float32)
    model = WeightedNMF(2, loss="frobenius", init=huge)
    with pytest.warns(ConvergenceWarning, match="not finite"):
        model.fit(np.nan_to_num(X, nan=1.0).astype(np.float32))
    assert (model.status_, model.n_iter_) == (Status.NOT_FINITE, 0)
    assert_array_equal(model.W_, huge[0])


# The start around the best rank-one factors


def holed(n=60, m=25, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.gamma(2.0, 1.0, (n, m)) * rng.uniform(0.1, 10, (n, 1)) * rng.uniform(0.1, 10, m)
    X[rng.random((n, m)) < 0.4] = np.nan
    return X


def test_a_rank_one_start_lies_around_the_best_rank_one_factors():
    X = holed()
    w, h = oracle.best(X)
    W, H = rank_one_start(observe(X), 400, np.random.RandomState(0), None)
    for factor, best in ((W, w), (H, h)):
        ratio = factor / best[:, None] * np.sqrt(400)
        assert ratio.min() > 0.49
        assert ratio.max() < 1.51
        assert np.unique(ratio).size == ratio.size
    assert_allclose(W @ H.T, np.outer(w, h), rtol=0.15)  # the numbers around 1 average out over many components


def test_a_fit_goes_on_from_a_rank_one_start_as_from_given_factors(tmp_path):
    X = holed()
    start = rank_one_start(observe(X), 3, np.random.RandomState(7), None)
    named = WeightedNMF(3, init="rank-one", random_state=7, max_iter=20, tol=0).fit(X)
    given = WeightedNMF(3, init=start, max_iter=20, tol=0).fit(X)
    assert_array_equal(named.W_, given.W_)
    assert_array_equal(named.H_, given.H_)
    assert not np.allclose(clone(named).set_params(random_state=8).fit(X).W_, named.W_)
    named.save(tmp_path / "model.hs")
    assert halfseen.load(tmp_path / "model.hs").init == "rank-one"


@pytest.mark.parametrize(
    ("loss", "unseen"),
    [(loss, "missing") for loss in ("kullback-leibler", "frobenius", "itakura-saito", 1.5)]
    + [("kullback-leibler", "zero"), ("frobenius", "zero")],
)
def test_every_loss_can_start_at_rank_one(loss, unseen):
    model = WeightedNMF(3, loss=loss, unseen=unseen, init="rank-one", random_state=0, max_iter=200, tol=0).fit(holed())
    assert np.all(np.diff(model.trace_["objective"]) <= 1e-10 * model.trace_["objective"][0])


def test_with_one_component_a_rank_one_start_is_nearly_the_best_fit():
    X = holed()
    best = oracle.cost(X, *oracle.best(X))
    first = WeightedNMF(1, init="rank-one", random_state=0, max_iter=3, tol=0).fit(X)
    assert_allclose(first.trace_["objective"][-1], best, rtol=1e-3)


def test_empty_rows_and_columns_start_at_the_average():
    X = holed()
    X[3], X[:, 4] = np.nan, np.nan
    W, H = rank_one_start(observe(X), 50, np.random.RandomState(0), None)
    assert_allclose(W[3].mean(), np.delete(W, 3, axis=0).mean(), rtol=0.2)
    assert_allclose(H[4].mean(), np.delete(H, 4, axis=0).mean(), rtol=0.2)


# Data


def test_zeros_are_refused_where_they_have_no_likelihood():
    with refused(DataError, found="0", where="row 0, column 0"):
        WeightedNMF(loss="itakura-saito").fit(np.where(X == 5, 0.0, X))
    with refused(DataError, "unseen"):
        WeightedNMF(loss=1.5, unseen="zero").fit(X)


def test_observed_data_without_their_zeros_are_not_fitted_as_missing():
    zeros = observe(np.nan_to_num(X), unseen="zero")
    for call in (WeightedNMF(2).fit, fitted(X).transform):
        with refused(ParameterError, "unseen"):
            call(zeros)
    model = WeightedNMF(2, unseen="zero", random_state=0)
    assert_allclose(model.fit(observe(X)).W_, model.fit(np.nan_to_num(X)).W_, rtol=1e-10)


def test_huge_ids_cost_nothing():
    """Labels are numbers of their own, not positions: two cells make a 2 x 2 matrix."""
    frame = pd.DataFrame({"user": [2**64 - 1, 5], "item": [10**18, 7], "rating": [1.0, 2.0]}).astype({"user": "uint64"})
    model = fitted(frame, n_components=1)
    assert model.W_.shape == model.H_.shape == (2, 1)
    assert_allclose(model.predict([2**64 - 1, 5], [10**18, 7]), [1.0, 2.0], rtol=1e-6)


def test_many_empty_rows_are_no_trouble():
    observed = Observed.from_cells([0, 99_999], [0, 1], [1.0, 2.0], (100_000, 2))
    with pytest.warns(DataWarning, match=r"row 1 .*9999[78]"):
        model = fitted(observed, n_components=1)
    assert_allclose(model.predict([0, 99_999], [0, 1]), [1.0, 2.0], rtol=1e-6)


def test_weights_of_every_kind_count_alike():
    weight = np.random.default_rng(0).uniform(0.5, 2, X.shape)
    seen = ~np.isnan(X)
    rows, columns = np.nonzero(seen)
    W, H = np.random.default_rng(1).random((4, 2)), np.random.default_rng(2).random((5, 2))
    model = WeightedNMF(2, max_iter=20, tol=0, init=(W, H))
    expected = model.fit(X, cell_weight=weight).W_
    for form in (weight[seen], sparse.coo_array((weight[seen], (rows, columns)), X.shape)):
        assert_allclose(model.fit(X, cell_weight=form).W_, expected, rtol=1e-12)
    assert np.abs(model.fit(X).W_ - expected).max() > 1e-3
    frame = pd.DataFrame({"user": rows, "item": columns, "rating": X[seen], "importance": weight[seen]})
    model.set_params(init=(W, H[pd.unique(frame["item"])]))  # columns in the order of their first appearance
    assert_allclose(model.fit(frame, cell_weight="importance").W_, expected, rtol=1e-12)


def test_weights_whose_rows_are_in_another_order_are_refused():
    weights = pd.DataFrame(np.arange(1.0, 21.0).reshape(4, 5), columns=wide_frame().columns)
    with pytest.raises(DataError, match="rows of X, in their order"):
        WeightedNMF(2).fit(wide_frame(), cell_weight=weights.iloc[::-1])
    fitted(wide_frame()).fit(wide_frame(), cell_weight=weights)


def test_a_new_fit_forgets_the_one_before():
    model = fitted(long_frame())
    assert model.predict("ann", "ale") > 0
    model.fit(X[:3, :4])
    assert model.row_labels_ is None
    assert model.n_features_in_ == 4
    assert_allclose(model.predict([0], [3]), [model.W_[0] @ model.H_[3]])


# Warnings


@both
def test_rows_and_columns_without_a_seen_cell_are_warned_of(kind):
    data = X.copy()
    data[0], data[3] = np.nan, np.nan
    with pytest.warns(DataWarning, match=r"in row 0\b"):
        model = kind(2, unseen="missing", max_iter=5, tol=0).fit(data)
    assert_allclose(model.W_[0], model.W_[[1, 2]].mean(axis=0), rtol=1e-10)
    data = X.copy()
    data[:, 2] = np.nan
    with pytest.warns(DataWarning, match=r"in column 2\b"):
        model = kind(2, unseen="missing", max_iter=5, tol=0).fit(data)
    assert_allclose(model.H_[2], model.H_[[0, 1, 3, 4]].mean(axis=0), rtol=1e-10)
    data[1] = np.nan
    model = kind(2, unseen="zero", max_iter=5, tol=0).fit(data)  # where zeros count, nothing is warned of
    assert model.W_[1].sum() < 0.2 * model.W_[0].sum()


def test_a_warning_points_at_the_users_line():
    data = X.copy()
    data[1] = np.nan
    with pytest.warns(DataWarning) as caught:
        WeightedNMF(2, max_iter=5, tol=0).fit(data)
    assert caught[0].filename == __file__
    with pytest.warns(ConvergenceWarning) as caught:
        WeightedNMF(2, max_iter=1, tol=1e-9).fit(X)
    assert caught[0].filename == __file__


def test_counts_whose_zeros_are_not_stored_and_cells_of_one_value_warn():
    from scipy import sparse

    counts = np.random.default_rng(0).poisson(0.7, (30, 20)).astype(float)
    pairs = [(f"u{i}", f"i{j}", 1.0) for i, j in zip(*np.nonzero(counts), strict=True)]
    given = {"max_iter": 2000, "random_state": 0}
    for data in (sparse.csr_array(counts), pairs):
        with pytest.warns(DataWarning, match=r"[Zz]eros") as caught:
            WeightedNMF(2, **given).fit(data)
        assert [one.filename for one in caught if one.category is DataWarning] == [__file__]
        WeightedNMF(2, unseen="zero", **given).fit(data)
    places = np.append(np.nonzero(counts), np.argwhere(counts == 0)[:1].T, axis=1)
    with_zeros = sparse.coo_array((np.append(counts[counts > 0], 0.0), places))
    stars = [(user, item, 1.0 + k % 5) for k, (user, item, _) in enumerate(pairs)]
    for data in (with_zeros, stars, np.where(counts > 0, counts, np.nan), sparse.csr_array(counts * 1.5)):
        WeightedNMF(2, **given).fit(data)


@both
def test_a_fit_that_did_not_converge_warns(kind):
    with pytest.warns(ConvergenceWarning, match=rf"{kind.__name__}: Stopped at max_iter"):
        model = kind(2, max_iter=2, tol=1e-12, random_state=0).fit(X)
    assert (model.status_, model.n_iter_) == (Status.MAX_ITER, 2)
    model = kind(2, max_iter=5000, tol=1e-3, random_state=0).fit(X)
    assert model.status_ is Status.CONVERGED
    assert model.n_iter_ < 5000
    assert kind(2, max_iter=3, tol=0, random_state=0).fit(X).status_ is Status.MAX_ITER  # all are asked for: no warning


def disturbed_epochs(monkeypatch, disturb):
    """The third epoch of multiplicative updates goes wrong."""
    epoch, left = Multiplicative.epoch, [3]

    def disturbed(self, problem, state):
        left[0] -= 1
        new = epoch(self, problem, state)
        return new if left[0] else disturb(new)

    monkeypatch.setattr(Multiplicative, "epoch", disturbed)


@pytest.mark.parametrize(("status", "objective"), [(Status.NOT_FINITE, np.nan), (Status.WORSENED, 1e9)])
def test_an_epoch_that_fails_is_warned_of_and_the_fit_kept(status, objective, monkeypatch):
    disturbed_epochs(
        monkeypatch, lambda new: replace(new, rows=PointFactor(new.rows.mean * np.nan), objective=objective)
    )
    with pytest.warns(ConvergenceWarning, match=status.value[:30]):
        model = WeightedNMF(2, max_iter=10, tol=0, random_state=0).fit(X)
    monkeypatch.undo()
    assert (model.status_, model.n_iter_) == (status, 2)
    assert_array_equal(model.W_, fitted(X, max_iter=2).W_)


def test_an_interrupted_fit_is_kept_and_the_interrupt_goes_on(monkeypatch):
    def interrupt(_):
        raise KeyboardInterrupt

    disturbed_epochs(monkeypatch, interrupt)
    model = WeightedNMF(2, max_iter=10, tol=0, random_state=0)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X)
    monkeypatch.undo()
    assert (model.status_, model.n_iter_) == (Status.INTERRUPTED, 2)
    assert_array_equal(model.W_, fitted(X, max_iter=2).W_)


def test_values_beyond_the_precision_end_the_fit_as_not_finite():
    """Their squares overflow: that is a status and one warning, not many warnings from inside."""
    data = (X * 1e30).astype(np.float32)
    with pytest.warns(ConvergenceWarning, match="not finite") as caught:
        model = fitted(data, loss="frobenius")
    assert model.status_ is Status.NOT_FINITE
    assert np.all(np.isfinite(model.W_))
    assert all(issubclass(warning.category, ConvergenceWarning) for warning in caught)


# scikit-learn's callbacks


COLLECTED = Uncoupled.from_coupled(X, random_state=0)
#: Estimators with their data, and what their number of iterations is called. All sweeps of "gibbs" are kept.
WATCHED = [
    (WeightedNMF(2), X, "max_iter"),
    (PoissonFactorization(2), X, "max_iter"),
    (PoissonFactorization(2, unseen="missing"), np.vstack([X, np.full(5, np.nan)]), "max_iter"),
    (RankOneNMF(), X, "max_iter"),
    (RankOneNMF("em"), X, "max_iter"),
    (RankOneNMF(), np.stack([X, X[::-1]], axis=2), "max_iter"),
    (UncoupledNMF(2, n_burn=0, max_sweeps=1), COLLECTED, "n_sweeps"),
    *((UncoupledNMF(2, method=method), COLLECTED, "max_iter") for method in ("unmf", "bayes", "decode")),
]


@pytest.mark.parametrize(("estimator", "data", "limit"), WATCHED, ids=[f"{case[0]}{case[1].shape}" for case in WATCHED])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning", "ignore::halfseen.errors.DataWarning")
class TestCallbacks:
    def test_are_called_once_per_iteration(self, estimator, data, limit):
        model, recorder = with_parameters(estimator, tol=0, random_state=0, **{limit: 4}), Recorder()
        watched = clone(model).set_callbacks(recorder).fit(data)
        iterations = ["iteration begins", "iteration ends"] * 4
        assert recorder.calls == ["setup", "fit begins", *iterations, "fit ends", "teardown"]
        assert all(one is data for one in recorder.data)
        assert_array_equal(watched.W_, model.fit(data).W_)

    def test_may_stop_the_fit(self, estimator, data, limit):
        model = with_parameters(estimator, tol=0, random_state=0, **{limit: 50})
        model.set_callbacks(Recorder(stop_after=3)).fit(data)
        assert (model.status_, model.n_iter_) == (Status.STOPPED, 3)
        expected = with_parameters(estimator, tol=0, random_state=0, **{limit: 3}).fit(data)
        assert_allclose(model.W_, expected.W_, rtol=1e-12)

    def test_see_the_model_as_if_it_were_stopped(self, estimator, data, limit):
        recorder = Recorder()
        with_parameters(estimator, tol=0, random_state=0, **{limit: 3}).set_callbacks(recorder).fit(data)
        at = np.indices(data.shape).reshape(len(data.shape), -1)
        for iterations, model in zip((1, 2, 3, 3), recorder.models, strict=True):  # the last one is of the whole fit
            expected = with_parameters(estimator, tol=0, random_state=0, **{limit: iterations}).fit(data)
            assert_allclose(model.predict(*at), expected.predict(*at), rtol=1e-12)
            assert_allclose(model.trace_["objective"], expected.trace_["objective"], rtol=1e-12)
            assert model.n_iter_ == iterations
            assert model.status_ is (expected.status_ if model is recorder.models[-1] else Status.STOPPED)
            assert vars(model).keys() >= vars(expected).keys()


def test_callbacks_see_nothing_of_an_earlier_fit():
    recorder = Recorder()
    model = RankOneNMF("a1gm").fit(wide_frame().assign(cod=1.0).fillna({"ale": 1.0, "bun": 1.0}).iloc[:3, :3])
    model.set_params(method="exact").set_callbacks(recorder).fit(X)
    assert recorder.models[0].feature_names_in_ is recorder.models[0].increase_rate_ is None


def test_callbacks_of_a_fit_without_iterations():
    recorder = Recorder()
    with pytest.warns(DataWarning, match="Comparisons should") as warned:
        UncoupledNMF(2).set_callbacks(recorder).fit(Uncoupled.from_coupled(X, 0))
    assert recorder.calls == ["setup", "fit begins", "fit ends", "teardown"]
    assert recorder.models[0].status_ is Status.DIRECT
    assert warned[0].filename == __file__


def test_the_factors_after_a_sweep_are_those_of_the_last_draw(tmp_path):
    recorder = Recorder(stop_after=5)
    UncoupledNMF(2, random_state=0).set_callbacks(recorder).fit(COLLECTED)
    model = recorder.models[4]
    draws = model.posterior_.draws
    means = draws.centre[:, None] + draws.scale[:, None] * (draws.A[:, -1] @ draws.B[:, -1].T)
    assert_allclose(model.W_ @ model.H_.T, means, rtol=1e-5)
    model.save(tmp_path / "sweep.hs")
    assert_array_equal(halfseen.load(tmp_path / "sweep.hs").complete(COLLECTED), model.complete(COLLECTED))


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


def test_a_bar_is_shown_on_a_terminal_if_verbose_and_changes_nothing(monkeypatch):
    model = WeightedNMF(2, max_iter=5, tol=0, random_state=0)
    quiet = model.fit(X).W_
    for stream, verbose, shown in ((Terminal(), 1, True), (Terminal(), 0, False), (io.StringIO(), 1, False)):
        monkeypatch.setattr(sys, "stderr", stream)
        assert_array_equal(model.set_params(verbose=verbose).fit(X).W_, quiet)
        assert ("WeightedNMF" in stream.getvalue()) == shown
        assert ("5/5" in stream.getvalue()) == shown
