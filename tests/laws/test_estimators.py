"""What every estimator must obey."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse, stats
from scipy.optimize import linear_sum_assignment
from sklearn.base import clone
from sklearn.decomposition import NMF
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import halfseen
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
    Quantizer,
    RankOneNMF,
    RoundMF,
    SquaredOrdNMF,
    SquaredPoisson,
    TableImputer,
    WeightedNMF,
    observe,
)
from halfseen.engines import cpu
from halfseen.errors import DataWarning
from halfseen.model import Status
from halfseen.rankone import incomplete_tables, marginals
from tests import oracle
from tests.estimators.models import folding_until
from tests.laws.cases import counts, half_seen, start, weights_for
from tests.laws.estimators import (
    ESTIMATORS,
    FACTORIZATIONS,
    RANK_ONE,
    every_estimator,
    fitted,
    suited,
    with_parameters,
)

#: All that scikit-learn's own checks run over: a new estimator joins this list. The contract is about the class: most
#: have one setting.
CONTRACTED = [
    *{type(estimator): estimator for estimator in (*FACTORIZATIONS, *RANK_ONE)}.values(),
    RankOneNMF("a1gm", unseen="zero"),
    OrdNMF(max_iter=30),
    OrdNMF(noise="exponential", max_iter=20),
    BernoulliPoisson(max_iter=30),
    CompoundPoisson(max_iter=30),
    SquaredOrdNMF(max_iter=30),
    SquaredPoisson(max_iter=30),
    ImplicitMF(4, dtype=None),
    ItemGraph(random_state=0),
    Popularity(),
    Blend([ItemGraph(l2=1.0), Popularity()], random_state=0),
    RoundMF(max_iter=20),
    RoundMF(loss="round", biases=False, max_iter=20),
    OrdinalMF(max_iter=20),
    OrdinalMF(link="cauchit", own_thresholds="rows", max_iter=20),
    OrdinalMF(inference="gibbs", n_sweeps=20, n_burn=5),
    Quantizer(),
    Quantizer([1, 2, 5, 10, 20, 50, 100, 200, 500]),
    Quantizer(n_levels=1),
    TableImputer(),
    TableImputer(trees=False, decimals="auto", max_rows=12),
]
#: Checks whose sparse data store nothing but ones: where unseen cells are missing, that is one level.
ONE_LEVEL = dict.fromkeys(
    ["check_estimator_sparse_tag", "check_estimator_sparse_array", "check_estimator_sparse_matrix"], "one level only"
)
#: All rows of the fit together are predicted from its draws, some of them as new ones.
DRAWN = dict.fromkeys(["check_methods_sample_order_invariance", "check_methods_subset_invariance"], "draws of the fit")
every_factorization = pytest.mark.parametrize("estimator", FACTORIZATIONS, ids=str)
every_weighing_estimator = pytest.mark.parametrize(
    "estimator", [estimator for estimator in ESTIMATORS if getattr(estimator, "method", "exact") == "exact"], ids=str
)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::halfseen.errors.DataWarning")
@parametrize_with_checks(
    CONTRACTED,
    expected_failed_checks=lambda one: (
        (ONE_LEVEL if isinstance(one, RoundMF | OrdinalMF) else {})
        | (DRAWN if getattr(one, "inference", "map") == "gibbs" else {})
    ),
)
def test_scikit_learns_contract(estimator, check, monkeypatch):
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")  # else scikit-learn leaves its checks of other arrays out
    check(estimator)


def long_table(X):
    """A half-seen array as users, items and ratings, in no particular order."""
    rows, columns = np.nonzero(~np.isnan(X))
    frame = pd.DataFrame(
        {"user": [f"u{i}" for i in rows], "item": [f"i{j}" for j in columns], "rating": X[rows, columns]}
    )
    return frame.sample(frac=1, random_state=0)


# The same numbers as scikit-learn's


@pytest.mark.parametrize("loss", ["kullback-leibler", "frobenius"])
@pytest.mark.parametrize("kind", ["dense", "sparse zeros", "sparse with explicit zeros"])
def test_without_holes_it_is_scikit_learns(loss, kind):
    rng = np.random.default_rng(0)
    X = rng.gamma(1.0, 2.0, (30, 20))
    unseen = "missing"
    if kind != "dense":
        X[rng.random(X.shape) < 0.6] = 0
        X, unseen = sparse.csr_array(X), "zero"
    data = X
    if kind == "sparse with explicit zeros":
        data = X.tocoo()
        data = sparse.coo_array(
            (np.append(data.data, 0.0), (np.append(data.row, 0), np.append(data.col, int(np.argmin(X.toarray()[0]))))),
            X.shape,
        )
    W, H = start(30, 20, 4)
    theirs = NMF(4, solver="mu", beta_loss=loss, init="custom", max_iter=50, tol=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        their_W = theirs.fit_transform(X, W=W.copy(), H=H.T.copy())
    ours = WeightedNMF(4, loss=loss, init=(W, H), max_iter=50, tol=0, unseen=unseen).fit(data)
    assert ours.n_iter_ == 50
    assert_allclose(ours.W_, their_W, rtol=1e-8, atol=1e-8)
    assert_allclose(ours.components_, theirs.components_, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("loss", [0.0, 0.5, 1.5, 3.0])
def test_other_betas_are_scikit_learns_too(loss):
    X = np.random.default_rng(0).gamma(1.0, 2.0, (30, 20)) + 0.1
    W, H = start(30, 20, 4)
    theirs = NMF(4, solver="mu", beta_loss=loss, init="custom", max_iter=50, tol=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        their_W = theirs.fit_transform(X, W=W.copy(), H=H.T.copy())
    ours = WeightedNMF(4, loss=loss, init=(W, H), max_iter=50, tol=0).fit(X)
    assert_allclose(ours.W_, their_W, rtol=1e-6, atol=1e-6)
    assert_allclose(ours.components_, theirs.components_, rtol=1e-6, atol=1e-6)


# The objective


@pytest.mark.parametrize("beta", [0, 0.5, 1, 1.5, 2, 3])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("penalty", [{}, {"l1": 0.5}, {"l2": 0.5}])
def test_the_loss_of_a_fit_is_the_true_one_and_never_rises(beta, weighted, penalty):
    X = half_seen(zeros=beta > 0)
    weight = weights_for(X) if weighted else None
    W, H = start(*X.shape, 3)
    model = WeightedNMF(3, loss=beta, init=(W, H), max_iter=60, tol=0, **penalty)
    with pytest.warns(DataWarning, match="5|7"):
        model.fit(X, cell_weight=weight)
    Y, C = oracle.grid(observe(X, cell_weight=weight))
    losses = []
    for _ in range(60):
        W, H = oracle.multiplicative_step(Y, C, W, H, beta, *(penalty.get(name, 0.0) for name in ("l1", "l2")))
        losses.append(oracle.loss(Y, C, W, H, beta, *(penalty.get(name, 0.0) for name in ("l1", "l2"))))
    assert_allclose(model.trace_["objective"], losses, rtol=1e-8)
    assert np.all(np.diff(model.trace_["objective"]) <= 1e-12 * losses[0])


@every_estimator
def test_the_objective_never_worsens(estimator):
    model = fitted(estimator, suited(estimator, counts() + 0.0), max_iter=100)
    trace = model.trace_["objective"] * (-1 if model.objective_name == "Evidence bound" else 1)
    assert len(trace) == model.n_iter_ == len(model.trace_["seconds"])
    assert np.all(np.diff(trace) <= 1e-12 * np.abs(trace[0]))
    if not isinstance(model, RankOneNMF):  # which may be there after the first sweep
        assert len(trace) == 100 or model.status_ is Status.CONVERGED  # nothing more to gain
        assert trace[-1] < trace[0]


def test_the_posterior_gives_means_and_intervals():
    model = fitted(PoissonFactorization(), counts())
    assert_allclose(model.W_, model.W_shape_ / model.W_rate_, rtol=1e-14)
    assert_allclose(model.H_, model.H_shape_ / model.H_rate_, rtol=1e-14)
    for level in (0.5, 0.9, 0.99):
        sides = zip(
            model.factor_intervals(level), (model.W_shape_, model.H_shape_), (model.W_rate_, model.H_rate_), strict=True
        )
        for (low, high), shape, rate in sides:
            posterior = stats.gamma(shape, scale=1 / rate)
            assert_allclose(posterior.cdf(high) - posterior.cdf(low), level, rtol=1e-6)
            assert_allclose(posterior.cdf(low), (1 - level) / 2, rtol=1e-6)


# Planted factors


def matched_similarity(found, planted):
    """The worst cosine similarity of matched components."""
    found, planted = (F / np.linalg.norm(F, axis=0) for F in (found, planted))
    similarity = found.T @ planted
    return similarity[linear_sum_assignment(-similarity)].min()


def planted_counts(seed=0, n=150, m=100, k=3):
    """Counts around sparse planted factors: (all counts, a mask of those held out, W, H)."""
    rng = np.random.default_rng(seed)
    W, H = rng.gamma(0.3, 4.0, (n, k)), rng.gamma(0.3, 4.0, (m, k))
    X = rng.poisson(W @ H.T + 0.1).astype(float)
    return X, rng.random(X.shape) < 0.3, W, H


RECOVERING = [
    WeightedNMF(),
    WeightedNMF(loss="frobenius"),
    WeightedNMF(loss=1.5, l1=0.01),
    PoissonFactorization(unseen="missing"),
    PoissonFactorization(unseen="missing", prior_rate=0.5),
]


@pytest.mark.parametrize("estimator", RECOVERING, ids=str)
def test_planted_factors_are_recovered_from_half_the_cells(estimator):
    X, held_out, W, H = planted_counts()
    model = fitted(estimator, np.where(held_out, np.nan, X), max_iter=400, tol=1e-7)
    assert matched_similarity(model.W_, W) > 0.97
    assert matched_similarity(model.H_, H) > 0.97
    rows, columns = np.nonzero(held_out)
    train = np.where(held_out, np.nan, X)
    by_row, by_column = np.nanmean(train, axis=1)[rows], np.nanmean(train, axis=0)[columns]
    truth = X[held_out]

    def error(prediction):
        return np.mean((prediction - truth) ** 2)

    ours = error(model.predict(rows, columns))
    baselines = by_row, by_column, by_row * by_column / np.nanmean(train)
    assert ours < 0.5 * min(map(error, baselines))
    assert ours < 1.3 * error((W @ H.T + 0.1)[held_out])


@pytest.mark.parametrize("estimator", [WeightedNMF(unseen="zero"), PoissonFactorization()], ids=str)
def test_planted_factors_are_recovered_from_sparse_counts(estimator):
    X, _, W, H = planted_counts()
    model = fitted(estimator, sparse.csr_array(X), max_iter=400, tol=1e-7)
    assert matched_similarity(model.W_, W) > 0.97
    assert matched_similarity(model.H_, H) > 0.97


def test_what_unseen_means_makes_the_difference():
    X, held_out, *_ = planted_counts()
    stored = sparse.csr_array(np.where(held_out, 0, X))
    rows, columns = np.nonzero(held_out)
    missing, zero = (fitted(WeightedNMF(unseen=unseen), stored) for unseen in ("missing", "zero"))
    assert zero.predict(rows, columns).mean() < 0.8 * missing.predict(rows, columns).mean()


# Threads, seeds, precision


@every_estimator
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_same_seed_gives_the_same_bits_on_one_thread_and_two(estimator, dtype, monkeypatch):
    monkeypatch.setattr(cpu, "CELLS_PER_BLOCK", 100)
    monkeypatch.setattr(cpu, "BYTES_PER_CHUNK", 8 * 90)
    monkeypatch.setattr(incomplete_tables, "_CELLS_PER_BLOCK", 100)
    monkeypatch.setattr(marginals, "_CELLS_PER_BLOCK", 90)
    X = suited(estimator, counts(60, 50)).astype(dtype)
    one, two, again = (fitted(estimator, X, n_jobs=n_jobs, max_iter=8) for n_jobs in (1, 2, 2))
    for other in (two, again):
        assert_array_equal(one.W_, other.W_)
        assert_array_equal(one.H_, other.H_)
        assert_array_equal(one.trace_["objective"], other.trace_["objective"])
    assert_array_equal(one.transform(X[:20]), two.transform(X[:20]))
    if hasattr(estimator, "random_state"):
        assert np.abs(fitted(estimator, X, random_state=1, max_iter=8).W_ - one.W_).max() > 1e-5


@every_estimator
@pytest.mark.parametrize(("given", "kept"), [("f4", "f4"), ("f8", "f8"), ("f2", "f8"), ("i4", "f8"), ("u1", "f8")])
def test_single_precision_is_kept_and_all_else_is_double(estimator, given, kept):
    X = suited(estimator, np.nan_to_num(counts())).astype(given)
    model = fitted(estimator, X)
    arrays = [*model.model_.rows, *model.model_.columns, model.transform(X), model.predict([0], [1]), model.complete(X)]
    assert {array.dtype for array in [*arrays, model.recommend([0], exclude_seen=False).scores]} == {np.dtype(kept)}


@every_estimator
def test_single_precision_follows_double(estimator):
    X = suited(estimator, counts())
    single, double = (fitted(estimator, X.astype(dtype), max_iter=10) for dtype in (np.float32, np.float64))
    assert_allclose(single.inverse_transform(single.W_), double.inverse_transform(double.W_), rtol=1e-2, atol=1e-2)


# Folding in


@every_estimator
def test_training_rows_folded_in_get_the_factors_of_the_fit(estimator):
    X, held_out, *_ = planted_counts(n=40, m=30, k=2)
    X = suited(estimator, np.where(held_out, np.nan, X))
    # Sparse priors leave a row of levels two places to rest at, with the columns fixed.
    wish = {"prior_shape": 1.0} if isinstance(estimator, OrdNMF) else {}
    wish["max_iter"] = 1000 if isinstance(estimator, RoundMF) else 6000  # Newton's method is there long before
    model = fitted(estimator, X, n_components=2, tol=1e-13, **wish)
    model = folding_until(model, tol=1e-9)
    assert_allclose(model.transform(X), model.W_, rtol=2e-3, atol=2e-3 * model.W_.max())
    assert_allclose(
        model.inverse_transform(model.transform(X)), model.inverse_transform(model.W_), rtol=1e-2, atol=1e-2
    )


@every_estimator
def test_a_row_folded_in_depends_on_its_own_cells_only(estimator):
    X = suited(estimator, counts(20, 15))
    model = fitted(estimator, X)
    rng = np.random.default_rng(1)
    new = suited(estimator, np.where(rng.random((6, 15)) < 0.3, np.nan, rng.poisson(3, (6, 15))))
    together = model.transform(new)
    for row in range(6):
        assert_allclose(model.transform(new[[row]])[0], together[row], rtol=1e-10, atol=1e-14)
    others = np.where(np.arange(6)[:, None] == 2, new, suited(estimator, np.roll(new, 4, axis=1) * 7 + 1))
    assert_allclose(model.transform(others)[2], together[2], rtol=1e-10, atol=1e-14)
    assert np.abs(model.transform(others)[3] - together[3]).max() > 1e-3


@every_estimator
def test_a_row_without_a_cell_gets_what_is_known_of_such_a_row(estimator):
    X = suited(estimator, counts(20, 15))
    model = fitted(estimator, X)
    W = model.transform(np.vstack([np.full(15, np.nan), np.full(15, 2.0)]))
    if estimator.unseen == "missing":
        assert_allclose(W[0], model.W_.mean(axis=0), rtol=1e-6)
    else:
        x = (W @ model.H_.T).sum(axis=1)
        assert x[0] < 0.2 * x[1]


@pytest.mark.parametrize("loss", ["kullback-leibler", "frobenius", 0.5, 3])
def test_folding_in_finds_the_best_row(loss):
    """Compared with the oracle's half-steps taken very often from elsewhere."""
    model = fitted(WeightedNMF(loss=loss), half_seen(zeros=False), n_components=2)
    model = folding_until(model, tol=1e-12, max_iter=5000)
    X = half_seen(5, 11, zeros=False, blanks=False, seed=9)
    Y, C = oracle.grid(observe(X))
    beta = {"kullback-leibler": 1, "frobenius": 2}.get(loss, loss)
    W = np.ones((5, 2))
    for _ in range(5000):
        W = oracle.multiplicative_half(Y, C, W, model.H_, beta)
    assert_allclose(model.transform(X) @ model.H_.T, W @ model.H_.T, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("unseen", ["missing", "zero"])
def test_score_is_the_mean_over_all_cells_that_count(unseen):
    X = counts()
    model = fitted(PoissonFactorization(unseen=unseen), X)
    x = model.inverse_transform(model.transform(X))
    cells = stats.poisson.logpmf(np.nan_to_num(X), x)
    assert_allclose(model.score(X), cells.mean() if unseen == "zero" else cells[~np.isnan(X)].mean(), rtol=1e-10)
    nmf = fitted(WeightedNMF(loss="frobenius", unseen=unseen), X)
    x = nmf.inverse_transform(nmf.transform(X))
    cells = -0.5 * (np.nan_to_num(X) - x) ** 2
    assert_allclose(nmf.score(X), cells.mean() if unseen == "zero" else cells[~np.isnan(X)].mean(), rtol=1e-10)


# scikit-learn's company


@every_estimator
def test_clone_and_pickle(estimator):
    X = suited(estimator, counts())
    model = fitted(estimator, X)
    assert not hasattr(clone(model), "W_")
    assert clone(model).get_params() == model.get_params()
    back = pickle.loads(pickle.dumps(model))
    assert_array_equal(back.transform(X), model.transform(X))
    assert_array_equal(back.predict([0, 1], [2, 3]), model.predict([0, 1], [2, 3]))


@every_factorization
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::halfseen.errors.DataWarning")
def test_grid_search_and_pipeline_on_an_array_with_holes(estimator):
    X, held_out, W, _ = planted_counts(n=60, m=40)
    X = np.where(held_out, np.nan, X)
    model = clone(estimator).set_params(random_state=0, max_iter=60)
    if estimator.unseen == "missing":
        search = GridSearchCV(model, {"n_components": [1, 3]}, cv=3).fit(X)
        assert search.best_params_ == {"n_components": 3}
        assert search.best_score_ == search.cv_results_["mean_test_score"].max()
    pipeline = make_pipeline(model.set_params(n_components=3), Ridge())
    target = W @ [1.0, 2.0, 3.0]
    assert pipeline.fit(X, target).score(X, target) > 0.5
    assert list(pipeline[:-1].get_feature_names_out()) == [f"{type(model).__name__.lower()}{i}" for i in range(3)]


@every_estimator
def test_fit_transform_is_fit_and_transform(estimator):
    X = suited(estimator, counts())
    model = with_parameters(estimator, n_components=2, random_state=0, max_iter=20, tol=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        assert_array_equal(clone(model).fit_transform(X), model.fit(X).transform(X))


# Labels


@every_estimator
def test_labels_survive_everything(estimator, tmp_path):
    X = suited(estimator, counts(20, 15))
    X[:, 7], X[5] = 1.0, 2.0
    frame = long_table(X)
    model = fitted(estimator, frame)
    plain = fitted(estimator, observe(frame).to_dense(), init=_start_of(model))
    model = fitted(estimator, frame, init=_start_of(model))
    model.save(tmp_path / "model")
    for one in (model, halfseen.load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        rows, columns = list(one.row_labels_), list(one.column_labels_)
        assert set(rows) == set(frame["user"])
        assert set(columns) == set(frame["item"])
        assert_allclose(one.predict(rows[3], columns), plain.predict(3, np.arange(15)), rtol=1e-9)
        ids, scores = one.recommend(["u4"], n=3)
        assert_allclose(one.predict("u4", ids[0]), one.likelihood_.mean(scores[0]), rtol=1e-9)
        told = frame[(frame["user"] == "u4") & ((frame["rating"] > 0) | (estimator.unseen == "missing"))]
        assert not set(ids[0]) & set(told["item"])
        assert_allclose(one.transform(frame), plain.transform(observe(frame).to_dense()), rtol=1e-9, atol=1e-12)
        completed = one.complete(frame)
        assert len(completed) == len(rows) * len(columns)
        merged = completed.merge(frame, on=["user", "item"], suffixes=("", "_given"))
        assert_array_equal(merged["rating"], merged["rating_given"])


def _start_of(model):
    return start(*map(len, (model.W_, model.H_)), model.W_.shape[1])


@every_estimator
def test_a_model_comes_back_from_its_file_as_it_was(estimator, tmp_path):
    X = suited(estimator, counts())
    model = fitted(estimator, X)
    model.save(tmp_path / "model")
    back = halfseen.load(tmp_path / "model")
    assert type(back) is type(model)
    assert back.get_params() == model.get_params()
    assert (back.n_iter_, back.status_, back.n_features_in_) == (model.n_iter_, model.status_, 11)
    for mine, theirs in zip(
        (*model.model_.rows, *model.model_.columns), (*back.model_.rows, *back.model_.columns), strict=True
    ):
        assert_array_equal(mine, theirs)
    assert_array_equal(back.trace_["objective"], model.trace_["objective"])
    assert_array_equal(back.transform(X), model.transform(X))
    assert_array_equal(back.complete(X), model.complete(X))
    assert back.score(X) == model.score(X)
    for mine, theirs in zip(model.recommend([0, 3]), back.recommend([0, 3]), strict=True):
        assert_array_equal(mine, theirs)


@every_estimator
def test_a_masked_cell_equals_a_deleted_one(estimator):
    X = suited(estimator, counts())
    rng = np.random.default_rng(0)
    hidden = rng.random(X.shape) < 0.2
    deleted = fitted(estimator, np.where(hidden, np.nan, X), init=start(*X.shape, 3))
    stored = ~np.isnan(X) & ~hidden
    rows, columns = np.nonzero(stored)
    unlisted = fitted(estimator, sparse.coo_array((X[stored], (rows, columns)), X.shape), init=start(*X.shape, 3))
    assert_allclose(unlisted.W_, deleted.W_, rtol=1e-10)
    if estimator.unseen == "missing" and getattr(estimator, "method", "exact") == "exact":
        observed = observe(X, cell_weight=np.where(hidden, 0.0, 1.0))
        assert_allclose(fitted(estimator, observed, init=start(*X.shape, 3)).H_, deleted.H_, rtol=1e-10)


@every_weighing_estimator
def test_a_cell_counted_twice_weighs_two(estimator):
    """In the fit from a random start, and in the score."""
    X = suited(estimator, counts())
    rows, columns = np.nonzero(X > 0)
    twice = np.arange(rows.size) % 3 == 0
    again = np.append(rows, rows[twice]), np.append(columns, columns[twice])
    repeated = observe(sparse.coo_array((X[again], again), X.shape), unseen=estimator.unseen, duplicates="keep")
    weighted = observe(
        sparse.coo_array((X[rows, columns], (rows, columns)), X.shape),
        unseen=estimator.unseen,
        cell_weight=np.where(twice, 2.0, 1.0),
    )
    one, other = fitted(estimator, repeated), fitted(estimator, weighted)
    # the way out of a saddle lets rounding grow in OrdinalMF: a component that is at its centre is 1e-8 there
    exact = {"rtol": 1e-10, "atol": 1e-14} if not isinstance(estimator, OrdinalMF) else {"rtol": 1e-6, "atol": 1e-7}
    assert_allclose(one.W_, other.W_, **exact)
    # rows are folded in by iterations, in which rounding that differs by machine grows to 1e-9
    assert_allclose(one.score(repeated), one.score(weighted), rtol=1e-8)
