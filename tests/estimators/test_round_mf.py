"""RoundMF, and what it shares with OrdinalMF: predictions, rows folded in, recommendations."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from halfseen import OrdinalMF, RoundMF, load, observe
from tests.graded import oracle
from tests.graded.data import ratings, upper_triangular

X, FULL = ratings()
LOSSES = ["multi-sigmoid", "round", "linear"]
MODELS = {
    **{loss: RoundMF(3, loss=loss) for loss in LOSSES},
    **{link: OrdinalMF(3, link=link) for link in oracle.NOISES},
}
every_model = pytest.mark.parametrize("name", MODELS)


def fitted(name, data=X, **wishes):
    from sklearn.base import clone

    wishes = {"random_state": 0, "max_iter": 40, "n_jobs": 1} | wishes
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return clone(MODELS[name]).set_params(**wishes).fit(data)


def x_of(model):
    return model.W_ @ model.H_.T


@every_model
def test_predictions_are_those_of_x_by_the_oracle(name):
    model = fitted(name)
    rows, columns = (places.ravel() for places in np.indices(X.shape))
    x, tau, levels = x_of(model), model.thresholds_, np.arange(1.0, 6.0)
    means = {
        "multi-sigmoid": lambda: 1 + (1 / (1 + np.exp(model.likelihood_.thresholds - x[..., None]))).sum(-1),
        "round": lambda: levels[oracle.grf(x, tau)],
        "linear": lambda: 1 + x + 0.5 - tau[0],
    }
    mean = means[name]() if name in means else oracle.probabilities(name, x, tau) @ levels
    assert_allclose(model.predict(rows, columns), mean.ravel(), rtol=1e-9)
    if name in means:
        assert_array_equal(model.predict_level(rows, columns), levels[oracle.grf(x, tau)].ravel())
    else:
        p = oracle.probabilities(name, x.ravel(), tau)
        assert_allclose(model.predict_proba(rows, columns), p, rtol=1e-7, atol=1e-13)
        assert_array_equal(model.predict_level(rows, columns), levels[(p.cumsum(-1) < 0.5).sum(-1)])
    assert_allclose(model.inverse_transform(model.W_), mean, rtol=1e-9)
    assert np.ndim(model.predict(0, 0)) == 0


@every_model
def test_complete_fills_holes_and_leaves_the_rest(name):
    model = fitted(name)
    filled = model.complete(X)
    seen = ~np.isnan(X)
    assert_array_equal(filled[seen], X[seen])
    rows, columns = np.nonzero(~seen)
    assert_allclose(filled[~seen], model.predict(rows, columns), rtol=1e-12)
    error = np.abs(filled[~seen] - FULL[~seen]).mean()
    assert error < 0.8 * np.abs(np.nanmean(X) - FULL[~seen]).mean()


@every_model
def test_score_is_minus_the_mean_cost_of_the_rows_folded_in(name):
    model = fitted(name)
    seen = ~np.isnan(X)
    x = model.transform(X) @ model.H_.T
    cost = oracle.LOSSES[name](np.where(seen, X, 1) - 1, x, model.likelihood_.thresholds)[0]
    assert_allclose(model.score(X), -cost[seen].mean(), rtol=1e-9)


@every_model
def test_rows_of_the_fit_fold_in_to_where_they_were(name):
    """When the fit has come to rest; hinges let rows rest at many places."""
    data = ratings(30, 20)[0]
    model = fitted(name, data, l2=3.0, max_iter=1000, tol=1e-10)
    model.set_params(tol=1e-9, max_iter=300)
    W = model.transform(data)
    if name == "round":
        same = oracle.grf(W @ model.H_.T, model.thresholds_) == oracle.grf(x_of(model), model.thresholds_)
        assert same[~np.isnan(data)].mean() > 0.8
    else:
        assert_allclose(W, model.W_, atol=0.02)


@pytest.mark.parametrize("name", ["linear", "logit", "probit", "cloglog", "loglog"])
def test_new_rows_are_at_their_one_optimum(name):
    model = fitted(name).set_params(tol=1e-12, max_iter=500)
    new = ratings(6, 40, seed=5)[0]
    prior, k = oracle.Prior(model.l2_, True), model.W_.shape[1]
    for row, found in zip(new, model.transform(new), strict=True):
        seen = (~np.isnan(row)).astype(float)
        truth = oracle.best_row(
            oracle.LOSSES[name], np.where(seen, np.nan_to_num(row) - 1, 0), seen, model.H_, model.thresholds_,
            prior.weights(k), prior.centre(k, 0), prior.held(k, 0), prior.centre(k, 0),
        )  # fmt: skip
        assert_allclose(found, truth, atol=1e-5)


@every_model
def test_a_row_folded_in_depends_on_its_own_cells_alone_and_an_empty_one_gets_the_average(name):
    model = fitted(name)
    new = ratings(6, 40, seed=5)[0]
    new[2] = np.nan
    together = model.transform(new)
    for row in range(6):
        assert_allclose(model.transform(new[[row]])[0], together[row], rtol=1e-9, atol=1e-12)
    assert_allclose(together[2], model.W_.mean(axis=0), rtol=1e-12)
    assert np.abs(together - together[2]).max() > 0.01


@every_model
def test_predict_without_columns_folds_rows_in(name):
    model = fitted(name)
    new = ratings(4, 40, seed=5)[0]
    assert_allclose(model.predict(new), model.inverse_transform(model.transform(new)), rtol=1e-12)
    x = model.transform(new) @ model.H_.T
    if hasattr(model, "predict_proba"):
        assert_allclose(
            model.predict_proba(new), oracle.probabilities(name, x, model.thresholds_), rtol=1e-7, atol=1e-13
        )
    else:
        assert_array_equal(model.predict_level(new), np.arange(1.0, 6.0)[oracle.grf(x, model.thresholds_)])


@every_model
def test_recommendations_are_the_unseen_columns_of_the_largest_x(name):
    model = fitted(name)
    ids, scores = model.recommend([0, 7], n=5)
    for row, best, score in zip((0, 7), ids, scores, strict=True):
        x = np.where(np.isnan(X[row]), x_of(model)[row], -np.inf)
        assert_array_equal(best, np.argsort(-x, kind="stable")[:5])
        assert_allclose(score, np.sort(x)[::-1][:5], rtol=1e-12)
    history = {3: 5.0, 9: 1.0}
    row = np.full(40, np.nan)
    row[[3, 9]] = [5, 1]
    new = model.recommend([history], n=4)
    x = (model.transform(row[None]) @ model.H_.T)[0]
    x[[3, 9]] = -np.inf
    assert_array_equal(new[0][0], np.argsort(-x, kind="stable")[:4])


@every_model
def test_noise_is_left_alone_by_the_default_prior(name):
    """Levels without any pattern: the best prediction is about the same everywhere."""
    if name == "round":
        return
    noise = np.random.default_rng(0).integers(1, 6, (60, 40)).astype(float)
    model = fitted(name, noise, max_iter=100)
    rows, columns = (places.ravel() for places in np.indices(noise.shape))
    assert model.predict(rows, columns).std() < 0.5


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@every_model
def test_precision_is_kept(name, dtype):
    model = fitted(name, X.astype(dtype), max_iter=10)
    assert model.W_.dtype == model.H_.dtype == dtype
    assert model.transform(X.astype(dtype)).dtype == dtype
    assert model.predict([0], [1]).dtype == dtype


def test_the_smooth_start_of_rounding_is_a_fit_of_the_staircase(monkeypatch):
    """What is handed over: the factors and the thresholds of multi-sigmoid, from the same start."""
    from halfseen.estimators import ordinal_mf

    runs, run = [], ordinal_mf.run

    def watched(task, solver, start, **how):
        W, H = start()
        fit = run(task, solver, lambda: (W, H), **how)
        runs.append((task.likelihood.name, W.copy(), task.likelihood.thresholds, fit))
        return fit

    monkeypatch.setattr(ordinal_mf, "run", watched)
    fitted("round", max_iter=5)
    (first, *_, smooth), (second, W, thresholds, _) = runs
    assert (first, second) == ("multi-sigmoid", "round")
    assert_array_equal(W, smooth.rows.mean)
    assert_array_equal(thresholds, smooth.likelihood.cuts)
    runs.clear()
    fitted("round", max_iter=5, init="random")
    assert [name for name, *_ in runs] == ["round"]


def test_learned_thresholds_of_the_staircase_are_where_its_height_passes_from_level_to_level():
    """So that the level is that which the prediction is nearest to; thresholds that are given stay what they are."""
    model = fitted("multi-sigmoid")
    stairs = (1 / (1 + np.exp(model.likelihood_.thresholds - model.thresholds_[:, None]))).sum(-1)
    assert_allclose(stairs, [0.5, 1.5, 2.5, 3.5], rtol=1e-9)
    rows, columns = (places.ravel() for places in np.indices(X.shape))
    assert_array_equal(model.predict_level(rows, columns), np.round(model.predict(rows, columns)))
    given = fitted("multi-sigmoid", thresholds=[-1.0, 0.0, 0.2, 3.0])
    assert_array_equal(given.thresholds_, [-1.0, 0.0, 0.2, 3.0])


def test_restarts_end_when_rounding_is_exact(monkeypatch):
    from halfseen.estimators import ordinal_mf

    count, run = [0], ordinal_mf.run

    def counted(*args, **how):
        count[0] += 1
        return run(*args, **how)

    monkeypatch.setattr(ordinal_mf, "run", counted)
    Y = upper_triangular(6)
    model = RoundMF(1, loss="round", thresholds=[0.5], biases=False, n_init=50, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(Y)
    rows, columns = (places.ravel() for places in np.indices(Y.shape))
    assert_array_equal(model.predict_level(rows, columns), Y.ravel())
    assert count[0] < 100


def test_the_margin_keeps_cells_off_thresholds():
    Y = upper_triangular(6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        near, far = (
            RoundMF(
                1, loss="round", thresholds=[0.5], biases=False, margin=margin, n_init=5, random_state=0, tol=0
            ).fit(Y)
            for margin in (0.05, 0.2)
        )
    for model, margin in ((near, 0.05), (far, 0.2)):
        assert np.abs(x_of(model) - 0.5).min() > margin - 0.02


def test_the_default_prior_of_rounding_is_next_to_nothing_and_that_of_others_is_the_noise():
    """sqrt(sum of squared slopes at x = 0 / rows) + sqrt(the same / columns)."""
    assert fitted("round", max_iter=2).l2_ <= 1e-4
    model = fitted("logit", max_iter=2)
    seen = ~np.isnan(X)
    share = np.array([(X[seen] <= level).mean() for level in range(1, 5)])
    tau = np.log(share / (1 - share))
    slopes = oracle.LOSSES["logit"](X[seen] - 1, np.zeros(seen.sum()), tau)[1]
    truth = np.sqrt((slopes**2).sum() / 60) + np.sqrt((slopes**2).sum() / 40)
    assert 0.5 * truth < model.l2_ < 1.5 * truth
    assert fitted("logit", l2=0.3, max_iter=2).l2_ == 0.3


@pytest.mark.parametrize("name", ["multi-sigmoid", "logit"])
def test_cells_that_all_weigh_twice_as_much_are_fitted_the_same_by_a_prior_twice_as_strong(name):
    one, two = (fitted(name, observe(X, cell_weight=np.full(X.shape, w)), max_iter=10, tol=0) for w in (1.0, 2.0))
    assert_allclose(two.l2_, 2 * one.l2_, rtol=1e-12)
    assert_allclose(two.W_, one.W_, rtol=1e-6, atol=1e-9)


def test_a_line_comes_back_from_its_file_to_the_last_bit(tmp_path):
    """The offset is a number of its own: the thresholds half-way between the levels have lost some of its digits."""
    random = np.random.default_rng(0)
    for seed in range(20):
        data = (random.random((12, 9)) < 0.15).astype(float)
        data[0, :2] = 0.0, 1.0
        model = RoundMF(2, loss="linear", random_state=seed).fit(data)
        model.save(tmp_path / "line.hs")
        assert_array_equal(load(tmp_path / "line.hs").predict(data), model.predict(data))


@pytest.mark.parametrize("name", ["multi-sigmoid", "logit"])
def test_what_was_fitted_stays_fitted_whatever_is_set_afterwards(name, tmp_path):
    model = fitted(name)
    rows, biases = model.transform(X), model.row_biases_.copy()
    model.set_params(biases=False, centred=False, l2=1e3)
    assert_array_equal(model.transform(X), rows)
    assert_array_equal(model.row_biases_, biases)
    model.save(tmp_path / "model.hs")
    assert_array_equal(load(tmp_path / "model.hs").transform(X), rows)


@pytest.mark.parametrize("thresholds", [[10.0, 11.0], [25.0, 26.0]])
def test_thresholds_far_from_the_start_are_reached(thresholds):
    """Far out the slope is large and the curvature next to nothing: only a small part of a step helps at first."""
    levels = np.random.default_rng(0).integers(0, 3, (12, 9)).astype(float)
    near = OrdinalMF(3, thresholds=[-0.5, 0.5], l2=1e-3, random_state=0).fit(levels)
    far = OrdinalMF(3, thresholds=thresholds, l2=1e-3, random_state=0).fit(levels)
    assert far.trace_["objective"][-1] < near.trace_["objective"][-1] + 15  # what the biases pay for the way there


def test_from_a_given_start_there_is_one_way(monkeypatch):
    from halfseen.estimators import ordinal_mf

    runs = []
    run = ordinal_mf.run
    monkeypatch.setattr(ordinal_mf, "run", lambda *a, **k: runs.append(1) or run(*a, **k))
    random = np.random.default_rng(0)
    start = random.normal(size=(X.shape[0], 3)), random.normal(size=(X.shape[1], 3))
    RoundMF(3, n_init=4, init=start).fit(X)
    assert len(runs) == 1
    RoundMF(3, n_init=4, random_state=0).fit(X)
    assert len(runs) == 5
