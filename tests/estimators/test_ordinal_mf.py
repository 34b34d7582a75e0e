"""OrdinalMF and RoundMF: levels cut out of x by thresholds, common ones or those of rows and columns."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from halfseen import Observed, OrdinalMF, RoundMF, load, observe
from halfseen.errors import DataError, ParameterError
from halfseen.estimators import ordinal_mf
from halfseen.likelihoods import LINKS, OwnThresholds
from halfseen.model import Status
from halfseen.solvers import Ridge
from tests.estimators.models import folding_until, refused
from tests.graded import oracle
from tests.graded.data import ratings, upper_triangular
from tests.laws.cases import THRESHOLDS

X, FULL = ratings()
SMALL = ratings(20, 15)[0]
LOSSES = ["multi-sigmoid", "round", "linear"]
MODELS = {
    **{loss: RoundMF(3, loss=loss) for loss in LOSSES},
    **{link: OrdinalMF(3, link=link) for link in oracle.NOISES},
}
every_model = pytest.mark.parametrize("name", MODELS)
both = pytest.mark.parametrize("kind", [RoundMF, OrdinalMF])
both_sides = pytest.mark.parametrize("side", ["rows", "columns"])


def fitted(model, data=X, **parameters):
    """A fit of a model, of its class, or of one of those above by name; it need not converge."""
    model = MODELS[model] if isinstance(model, str) else model(2) if isinstance(model, type) else model
    parameters = {"random_state": 0, "max_iter": 40, "n_jobs": 1} | parameters
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return clone(model).set_params(**parameters).fit(data)


def short(kind, data=SMALL, **parameters):
    return fitted(kind, data, **{"max_iter": 15, "tol": 0} | parameters)


def cells_of(X):
    return [places.ravel() for places in np.indices(X.shape)]


def x_of(model):
    return model.W_ @ model.H_.T


# Predictions


@every_model
def test_predictions_are_those_of_x_by_the_oracle(name):
    model = fitted(name)
    rows, columns = cells_of(X)
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
    W = folding_until(model, tol=1e-9, max_iter=300).transform(data)
    if name == "round":
        same = oracle.grf(W @ model.H_.T, model.thresholds_) == oracle.grf(x_of(model), model.thresholds_)
        assert same[~np.isnan(data)].mean() > 0.8
    else:
        assert_allclose(W, model.W_, atol=0.02)


@pytest.mark.parametrize("name", ["linear", "logit", "probit", "cloglog", "loglog"])
def test_new_rows_are_at_their_one_optimum(name):
    model = folding_until(fitted(name), tol=1e-12, max_iter=500)
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
    rows, columns = cells_of(noise)
    assert model.predict(rows, columns).std() < 0.5


@pytest.mark.parametrize("link", oracle.NOISES)
def test_log_likelihood_is_that_of_the_probabilities(link):
    model = fitted(link)
    rows, columns = np.nonzero(~np.isnan(X))
    p = model.predict_proba(rows, columns)
    assert_allclose(p.sum(-1), 1, rtol=1e-12)
    each = np.log(p[np.arange(rows.size), X[rows, columns].astype(int) - 1])
    assert_allclose(model.log_likelihood(X, each=True), each, rtol=1e-7)
    assert_allclose(model.log_likelihood(X), each.sum(), rtol=1e-7)


def test_held_out_levels_are_more_probable_than_by_how_often_they_come():
    model = fitted("logit")
    hidden = np.isnan(X)
    rows, columns = np.nonzero(hidden)
    truth = FULL[hidden].astype(int) - 1
    p = model.predict_proba(rows, columns)[np.arange(rows.size), truth]
    often = np.bincount(X[~hidden].astype(int) - 1) / (~hidden).sum()
    assert np.log(p).mean() > np.log(often[truth]).mean() + 0.1


def test_samples_follow_the_probabilities():
    model = fitted("logit", max_iter=10)
    draws = np.stack([one.toarray() for one in model.sample(300, random_state=0)])
    rows, columns = np.nonzero(~np.isnan(X))
    share = (draws[:, rows, columns][..., None] == np.arange(1, 6)).mean(0)
    assert_allclose(share, model.predict_proba(rows, columns), atol=0.13)
    assert abs(share - model.predict_proba(rows, columns)).mean() < 0.02
    assert_array_equal(draws[0] > 0, ~np.isnan(X))


def test_intervals_are_quantiles_of_the_probabilities():
    model = fitted("logit", max_iter=10)
    rows, columns = np.arange(30), np.arange(30)
    low, high = model.predict_interval(rows, columns, 0.8)
    up_to = model.predict_proba(rows, columns).cumsum(-1)
    assert_array_equal(low, 1 + (up_to < 0.1).sum(-1))
    assert_array_equal(high, 1 + (up_to[:, :-1] < 0.9).sum(-1))


# Rounding


def test_the_smooth_start_of_rounding_is_a_fit_of_the_staircase(monkeypatch):
    """What is handed over: the factors and the thresholds of multi-sigmoid, from the same start."""
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


@pytest.mark.parametrize("centred", [False, True])
def test_rounding_under_a_ridge_keeps_the_thresholds_of_its_start_and_its_centre(centred):
    """Otherwise thresholds would shrink with x, and with a strong ridge all cells would be at one level."""
    smooth, model = (
        fitted(RoundMF(3, loss=loss, l2=8.0, centred=centred, biases=False)) for loss in ("multi-sigmoid", "round")
    )
    assert_allclose(model.thresholds_, smooth.thresholds_, atol=0.1)
    assert model.ridge_ == Ridge(8.0, False, centred)
    seen = ~np.isnan(X)
    errors = [np.mean((levels - FULL)[~seen] ** 2) for levels in (model.complete(X), np.full(X.shape, X[seen].mean()))]
    assert errors[0] < errors[1]


def test_learned_thresholds_of_the_staircase_are_where_its_height_passes_from_level_to_level():
    """So that the level is that which the prediction is nearest to; thresholds that are given stay what they are."""
    model = fitted("multi-sigmoid")
    stairs = (1 / (1 + np.exp(model.likelihood_.thresholds - model.thresholds_[:, None]))).sum(-1)
    assert_allclose(stairs, [0.5, 1.5, 2.5, 3.5], rtol=1e-9)
    rows, columns = cells_of(X)
    assert_array_equal(model.predict_level(rows, columns), np.round(model.predict(rows, columns)))
    given = fitted("multi-sigmoid", thresholds=[-1.0, 0.0, 0.2, 3.0])
    assert_array_equal(given.thresholds_, [-1.0, 0.0, 0.2, 3.0])


# The optimiser of the thesis


def hinge_slope(r):
    """Derivative of the smoothed hinge of the author's program."""
    return 0.0 if r < 0 else min(100.0 * r, 1.0)


def descended(loss, Y, weights, W, H, tau, learned, rate, l2, steps):
    """The author's program, cell by cell: all gradients at the old place, then a step; thresholds take a tenth."""
    W, H, tau, top = W.copy(), H.copy(), np.array(tau, float), len(tau)
    for _ in range(steps):
        of_W, of_H, of_tau = np.zeros_like(W), np.zeros_like(H), np.zeros_like(tau)
        for u, i in np.argwhere(~np.isnan(Y)):
            y, x = int(Y[u, i]), W[u] @ H[i]
            if loss == "round":  # no margin, outer intervals of length 1
                low = tau[y - 1] if y > 0 else tau[0] - 1.0
                high = tau[y] if y < top else tau[-1] + 1.0
                below, above = hinge_slope(low - x), hinge_slope(x - high)
                slope, by_tau = above - below, np.zeros(top)
                by_tau[y - 1] += below * (y > 0)
                if y < top:
                    by_tau[y] -= above
            elif loss == "multi-sigmoid":
                sigmoids = 1 / (1 + np.exp(tau - x))
                by_tau = -2 * (sigmoids.sum() - y) * sigmoids * (1 - sigmoids)
                slope = -by_tau.sum()
            else:
                slope, by_tau = 2 * (x - y), np.zeros(top)
            of_W[u] += weights[u, i] * (slope * H[i] + l2 * W[u])
            of_H[i] += weights[u, i] * (slope * W[u] + l2 * H[i])
            of_tau += weights[u, i] * by_tau
        W, H = W - rate * of_W, H - rate * of_H
        tau = np.sort(tau - rate / 10 * of_tau) if learned else tau
    return W, H, tau


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("fixed", [False, True], ids=["learned", "fixed"])
@pytest.mark.parametrize("loss", LOSSES)
def test_gradient_descent_is_the_thesis_own(loss, fixed, weighted):
    Y = SMALL - 1  # levels 0..4
    rng = np.random.default_rng(0)
    W, H = rng.uniform(-1.5, 1.5, (20, 2)), rng.uniform(-1.5, 1.5, (15, 2))
    weights = rng.choice([0.5, 1.0, 2.0], Y.shape) if weighted else np.ones(Y.shape)
    if loss == "linear":
        given, start, fixed = [0.5, 1.5, 2.5, 3.5], [0.5, 1.5, 2.5, 3.5], True
    else:
        given, start = ([-0.5, 0.3, 1.1, 2.0],) * 2 if fixed else (None, [0.0, 1.0, 2.0, 3.0])
    model = RoundMF(
        2, loss=loss, solver="gd", learning_rate=0.01, l2=0.02, biases=False, centred=False, thresholds=given,
        init=(W, H), margin=0.0, ends=1.0, max_iter=12, tol=0.0,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(Y, cell_weight=weights if weighted else None)
    truth = descended(loss, Y, weights, W, H, start, not fixed, 0.01, 0.02, 12)
    tau = model.likelihood_.thresholds
    for found, expected in zip((model.W_, model.H_, tau), truth, strict=True):
        assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
    assert np.abs(truth[0] - W).max() > 0.05
    if not fixed:
        assert np.abs(tau - start).max() > 0.005


@pytest.mark.parametrize("biases", [False, True], ids=["no biases", "biases"])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_loss_of_gradient_descent_is_that_of_its_cells_and_a_ridge_for_each(loss, biases):
    model = short(RoundMF, loss=loss, solver="gd", learning_rate=0.003, l2=0.03, biases=biases, init="random")
    rows, columns = np.nonzero(~np.isnan(SMALL))
    cost = model.likelihood_.divergence(SMALL[rows, columns] - 1, x_of(model)[rows, columns]).sum()
    prior = oracle.Prior(0.03, biases)
    for side, (factor, at) in enumerate(((model.W_, rows), (model.H_, columns))):
        k = factor.shape[1]
        cost += (prior.weights(k) / 2 * (factor[at] - prior.centre(k, side)) ** 2).sum()
    assert_allclose(model.trace_["objective"][-1], cost, rtol=1e-9)


def test_gradient_descent_starts_small_and_may_diverge():
    first = short(RoundMF, solver="gd", learning_rate=1e-12, max_iter=1, biases=False, centred=False)
    assert 0.004 < np.abs(first.W_).max() <= 0.005
    assert_allclose(first.likelihood_.thresholds, [0, 1, 2, 3], atol=1e-8)
    model = short(RoundMF, loss="linear", solver="gd", learning_rate=10.0, max_iter=200, biases=False)
    assert model.status_ is Status.NOT_FINITE


def test_gradient_descent_folds_rows_in_by_the_ridge_of_an_average_row():
    model = short(RoundMF, solver="gd", l2=0.02, biases=False)
    assert_allclose(model.l2_, 0.02 * (~np.isnan(SMALL)).sum() / 20)
    assert_allclose(short(RoundMF, solver="gd").l2_, short(RoundMF).l2_, rtol=0.1)  # but for where thresholds start


def test_restarts_end_when_rounding_is_exact(monkeypatch):
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
    rows, columns = cells_of(Y)
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


def slopes_at_0(Y):
    """Slopes of the logistic loss at x = 0, with thresholds by the shares of the levels; 0 where nothing is seen."""
    seen = ~np.isnan(Y)
    share = np.array([(Y[seen] <= level).mean() for level in range(1, 5)])
    S = np.zeros(Y.shape)
    S[seen] = oracle.LOSSES["logit"](Y[seen] - 1, np.zeros(seen.sum()), np.log(share / (1 - share)))[1]
    return S


def random_levels(n, m, seed=0):
    rng = np.random.default_rng(seed)
    return np.where(rng.random((n, m)) < 0.2, np.nan, rng.integers(1, 6, (n, m)).astype(float))


def test_the_default_prior_of_rounding_is_next_to_nothing_and_given_ones_stay():
    assert fitted("round", max_iter=2).l2_ <= 1e-4
    assert fitted("logit", l2=0.3, max_iter=2).l2_ == 0.3


@pytest.mark.parametrize(("n", "m"), [(200, 150), (400, 12), (12, 400), (30, 3)])
def test_where_all_is_noise_the_default_prior_is_most_of_its_spectral_norm(n, m):
    """So is the next one: of noise the leading singular values are nearly alike, and all of each is noise."""
    Y = random_levels(n, m)
    largest = np.linalg.norm(slopes_at_0(Y), 2)
    for k in (1, 2):
        assert_allclose(fitted(OrdinalMF(k), Y, max_iter=1).l2_, 0.6 * largest, rtol=0.15)


def test_the_default_prior_takes_off_what_noise_has_added_to_the_singular_values():
    """Noise is drawn on a known matrix of rank 2: by how much it raises the singular values is seen, not computed."""
    rng = np.random.default_rng(0)
    x = 0.5 * rng.normal(size=(300, 2)) @ rng.normal(size=(2, 60))
    Y = np.digitize(x + rng.logistic(size=x.shape), [-1.5, -0.5, 0.5, 1.5]) + 1.0
    S = slopes_at_0(Y)
    mean = np.mean([slopes_at_0(np.digitize(x + rng.logistic(size=x.shape), [-1.5, -0.5, 0.5, 1.5]) + 1.0)
                    for _ in range(100)], axis=0)  # fmt: skip
    # to be taken off: y less the part of the true matrix along the singular vectors that are observed
    left, y, right = np.linalg.svd(S, full_matrices=False)
    kept = [left[:, j] @ mean @ right[j] for j in range(3)]
    assert_allclose(fitted(OrdinalMF(2), Y, max_iter=1).l2_, 0.6 * np.abs(y[:3] - kept).mean(), rtol=0.15)


def test_with_the_default_prior_hidden_answers_of_a_short_survey_are_predicted():
    """As well as with an l2 chosen for it. (The spectral norm of noise, 12, gets 45 %.)"""
    rng = np.random.default_rng(1)
    trait = rng.normal(size=(400, 1))
    answers = trait @ rng.uniform(0.6, 1.4, (1, 12)) + 0.7 * rng.normal(size=(400, 12))
    Y = np.digitize(answers, [-1.5, -0.5, 0.5, 1.5]) + 1.0
    hidden = rng.random(Y.shape) < 0.15
    right = {
        l2: (fitted(OrdinalMF(1), np.where(hidden, np.nan, Y), l2=l2, max_iter=200).predict_level(*np.nonzero(hidden))
             == Y[hidden]).mean()
        for l2 in (None, 3.0, 5.0, 12.0)
    }  # fmt: skip
    assert right[None] > max(right[3.0], right[5.0]) - 0.02
    assert right[None] > right[12.0] + 0.04


def test_cells_given_twice_count_as_one_in_the_default_prior():
    """Their weights add up, as do their slopes."""
    Y = random_levels(40, 20)
    rows, columns = np.nonzero(~np.isnan(Y))
    twice = Observed.from_cells(
        *(np.tile(one, 2) for one in (rows, columns, Y[rows, columns])), Y.shape, duplicates="keep"
    )
    once = observe(Y, cell_weight=np.full(Y.shape, 2.0))
    assert_allclose(fitted("logit", twice, max_iter=1).l2_, fitted("logit", once, max_iter=1).l2_, rtol=1e-3)


@pytest.mark.parametrize("name", ["multi-sigmoid", "logit"])
def test_cells_that_all_weigh_twice_as_much_are_fitted_the_same_by_a_prior_twice_as_strong(name):
    one, two = (fitted(name, observe(X, cell_weight=np.full(X.shape, w)), max_iter=10, tol=0) for w in (1.0, 2.0))
    assert_allclose(two.l2_, 2 * one.l2_, rtol=1e-12)
    assert_allclose(two.W_, one.W_, rtol=1e-6, atol=1e-9)


def test_a_line_comes_back_from_its_file_to_the_last_bit(tmp_path):
    """The offset is a number of its own: the thresholds half-way between the levels have lost some of its digits."""
    random = np.random.default_rng(0)
    for seed in range(8):
        data = (random.random((12, 9)) < 0.15).astype(float)
        data[0, :2] = 0.0, 1.0
        model = RoundMF(2, loss="linear", random_state=seed).fit(data)
        model.save(tmp_path / "line.hs")
        assert_array_equal(load(tmp_path / "line.hs").predict(data), model.predict(data))


@pytest.mark.parametrize("thresholds", [[10.0, 11.0], [25.0, 26.0]])
def test_thresholds_far_from_the_start_are_reached(thresholds):
    """Far out the slope is large and the curvature next to nothing: only a small part of a step helps at first."""
    levels = np.random.default_rng(0).integers(0, 3, (12, 9)).astype(float)
    near = OrdinalMF(3, thresholds=[-0.5, 0.5], l2=1e-3, random_state=0).fit(levels)
    far = OrdinalMF(3, thresholds=thresholds, l2=1e-3, random_state=0).fit(levels)
    assert far.trace_["objective"][-1] < near.trace_["objective"][-1] + 15  # what the biases pay for the way there


def test_from_a_given_start_there_is_one_way(monkeypatch):
    runs = []
    run = ordinal_mf.run
    monkeypatch.setattr(ordinal_mf, "run", lambda *a, **k: runs.append(1) or run(*a, **k))
    random = np.random.default_rng(0)
    start = random.normal(size=(X.shape[0], 3)), random.normal(size=(X.shape[1], 3))
    RoundMF(3, n_init=4, init=start).fit(X)
    assert len(runs) == 1
    RoundMF(3, n_init=4, random_state=0).fit(X)
    assert len(runs) == 5


# Thresholds of rows and of columns


def owned(owners=3, seed=0, l2=0.8):
    rng = np.random.default_rng(seed)
    return OwnThresholds(THRESHOLDS, link=LINKS["logit"], offsets=rng.normal(0, 0.4, (owners, 4)), l2=l2)


def cells(owners=3, seed=1):
    rng = np.random.default_rng(seed)
    owner, level, x = rng.integers(0, owners + 1, 200), rng.integers(0, 5, 200), rng.normal(0, 2, 200)
    return owner, level, x, (owner * 5 + level).astype(float)


def own_thresholds(likelihood, owner):
    """By the definition: the first threshold and the logarithms of the gaps, plus what is the owner's."""
    steps = np.append(THRESHOLDS[0], np.log(np.diff(THRESHOLDS)))
    if owner < len(likelihood.offsets):
        steps = steps + likelihood.offsets[owner]
    return np.cumsum(np.append(steps[0], np.exp(steps[1:])))


def test_each_cell_is_cut_by_its_owners_thresholds_and_the_last_owner_is_nobody():
    likelihood, (owner, level, x, y) = owned(), cells()
    local = likelihood.quadratic(y, x)
    for one in range(4):
        mine = owner == one
        assert_allclose(likelihood.owner_thresholds[one], own_thresholds(likelihood, one), rtol=1e-12)
        cost, slope = oracle.LOSSES["logit"](level[mine], x[mine], own_thresholds(likelihood, one))
        assert_allclose(local.cost[mine], cost, rtol=1e-9)
        assert_allclose(local.slope[mine], slope, rtol=1e-9, atol=1e-12)
        at = likelihood.for_owners(np.full(mine.sum(), one))
        assert_allclose(at.quadratic(level[mine].astype(float), x[mine]).cost, cost, rtol=1e-9)
        p = oracle.probabilities("logit", x[mine], own_thresholds(likelihood, one))
        assert_allclose(at.probabilities(x[mine]), p, rtol=1e-8, atol=1e-14)
    assert_array_equal(likelihood.legal(np.array([-1.0, 0, 19, 20, 2.5])), [False, True, True, False, False])


def test_the_gradient_by_common_and_own_parameters_and_newtons_step():
    likelihood = owned()
    _, _, x, y = (a[cells()[0] < 3] for a in cells())  # of nobody's cells nobody learns

    def loss(p):
        moved = likelihood.with_parameters(p)
        return moved.quadratic(y, x).cost.sum() + moved.parameter_penalty

    p = likelihood.parameters
    sums = likelihood.parameter_sums(y, x, None)
    gradient, _ = likelihood.parameter_gradient(sums)
    unit = np.eye(p.size)
    differences = np.array([(loss(p + 1e-6 * u) - loss(p - 1e-6 * u)) / 2e-6 for u in unit])
    assert_allclose(gradient, differences, rtol=1e-5, atol=1e-5)
    assert_allclose(likelihood.parameter_penalty, 0.4 * (likelihood.offsets**2).sum())
    # Where the gradient by each threshold is carried along, without how the gaps themselves bend.
    step = likelihood.parameter_step(sums)
    assert gradient @ step < 0
    blocks = likelihood.parameter_gradient(sums)[1]
    whole = np.zeros((16, 16))
    whole[:4, :4] = blocks.sum(0)
    for one, block in enumerate(blocks):
        place = slice(4 + 4 * one, 8 + 4 * one)
        whole[place, place] = block + 0.8 * np.eye(4)
        whole[:4, place], whole[place, :4] = block, block
    assert_allclose(step, -np.linalg.solve(whole, gradient), rtol=1e-6, atol=1e-9)


@both_sides
def test_people_who_use_the_scale_differently_are_told_apart(side):
    """Half of the owners give nothing but the ends of the scale where the others give the middle."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 2)) @ rng.normal(size=(2, 50)) + 0.5 * rng.logistic(size=(60, 50))
    narrow, wide = np.array([-0.2, -0.1, 0.1, 0.2]), np.array([-2.5, -0.8, 0.8, 2.5])
    Y = np.where(np.arange(60)[:, None] % 2, oracle.grf(x, wide), oracle.grf(x, narrow)) + 1.0
    Y = np.where(rng.random(Y.shape) < 0.3, np.nan, Y)
    data = Y if side == "rows" else Y.T
    own, shared = fitted(OrdinalMF, data, own_thresholds=side), fitted(OrdinalMF, data)
    assert own.own_thresholds_.shape == (60, 4)
    assert np.all(np.diff(own.own_thresholds_, axis=1) > 0)
    spread = own.own_thresholds_[:, -1] - own.own_thresholds_[:, 0]
    assert spread[1::2].min() > spread[::2].max()
    assert own.log_likelihood(data) > shared.log_likelihood(data) + 100
    assert shared.own_thresholds_ is None


@both_sides
def test_predictions_use_ones_own_thresholds_and_new_rows_the_common_ones(side):
    model = fitted("logit", own_thresholds=side)
    rows, columns = cells_of(X)
    x = (model.W_ @ model.H_.T).ravel()
    own = model.own_thresholds_
    tau = own[rows] if side == "rows" else own[columns]
    p = np.stack([oracle.probabilities("logit", x[cell], tau[cell]) for cell in range(50)])
    assert_allclose(model.predict_proba(rows, columns)[:50], p, rtol=1e-7)
    assert_allclose(model.predict(rows, columns)[:50], p @ np.arange(1.0, 6.0), rtol=1e-9)
    holes = np.isnan(X)
    assert_allclose(model.complete(X)[holes], model.predict(*np.nonzero(holes)), rtol=1e-12)
    new = ratings(3, 40, seed=5)[0]
    x = model.transform(new) @ model.H_.T
    taus = np.broadcast_to(model.thresholds_, (40, 4)) if side == "rows" else own
    p = np.stack([oracle.probabilities("logit", x[:, i], taus[i]) for i in range(40)], axis=1)
    assert_allclose(model.predict_proba(new), p, rtol=1e-7)
    assert_allclose(model.predict(new), p @ np.arange(1.0, 6.0), rtol=1e-9)


@both_sides
def test_new_rows_fold_in_by_the_common_thresholds_or_those_of_columns(side):
    model = folding_until(fitted("logit", own_thresholds=side, link="probit"), tol=1e-12, max_iter=500)
    new, prior, k = ratings(4, 40, seed=5)[0], oracle.Prior(model.l2_, True), model.W_.shape[1]

    def loss(Y, x, tau):
        """Each column by thresholds of its own, if it has any."""
        own = model.own_thresholds_ if side == "columns" else np.broadcast_to(tau, (40, 4))
        parts = [oracle.LOSSES["probit"](Y[:, i], x[:, i], own[i]) for i in range(40)]
        return tuple(np.stack(part, axis=1) for part in zip(*parts, strict=True))

    for row, found in zip(new, model.transform(new), strict=True):
        seen = (~np.isnan(row)).astype(float)
        truth = oracle.best_row(
            loss, np.where(seen, np.nan_to_num(row) - 1, 0), seen, model.H_, model.thresholds_,
            prior.weights(k), prior.centre(k, 0), prior.held(k, 0), prior.centre(k, 0),
        )  # fmt: skip
        assert_allclose(found, truth, atol=1e-5)


@both_sides
def test_own_thresholds_are_held_together_by_the_prior(side):
    loose, tight = (fitted("logit", own_thresholds=side, l2=l2) for l2 in (1.0, 1e4))
    apart = [np.abs(model.own_thresholds_ - model.thresholds_).max() for model in (loose, tight)]
    assert apart[0] > 0.05
    assert apart[1] < 0.05 * apart[0]


@pytest.mark.parametrize(
    "others", [{"own_thresholds": "users"}, {"thresholds": [-1, 0, 1, 2]}, {"solver": "sgd"}], ids=str
)
def test_own_thresholds_that_can_not_be_learned_are_refused(others):
    with refused(ParameterError, "own_thresholds"):
        fitted("logit", **{"own_thresholds": "rows"} | others)


@both_sides
@pytest.mark.filterwarnings("ignore::halfseen.errors.DataWarning")
def test_owners_of_whom_nothing_was_seen_have_the_common_thresholds(side):
    data = X.copy()
    data[3], data[:, 5] = np.nan, np.nan
    model = fitted("logit", data, own_thresholds=side)
    assert_allclose(model.own_thresholds_[3 if side == "rows" else 5], model.thresholds_, rtol=1e-9)


@pytest.mark.filterwarnings("ignore::halfseen.errors.DataWarning")
def test_single_precision_that_can_not_count_owners_is_refused():
    data = np.full((2_000_000, 1), np.nan, np.float32)
    data[:6, 0] = [1, 2, 3, 4, 5, 5]
    with refused(DataError, "own_thresholds", found="float32"):
        OrdinalMF(1, own_thresholds="rows", max_iter=1).fit(data)


# Levels, thresholds and starts that are given


@both
@pytest.mark.parametrize(
    "levels", [(0.5, 1.0, 1.5, 2.0), (-2.0, 0.0, 7.0), (0.0, 1.0), tuple(np.arange(11.0))], ids=str
)
def test_levels_are_the_different_values_and_come_back_as_they_were_written(kind, levels):
    data = ratings(20, 15, levels=levels)[0]
    model = short(kind, data)
    assert_array_equal(model.levels_, levels)
    assert model.thresholds_.shape == (len(levels) - 1,)
    rows, columns = cells_of(data)
    assert set(np.unique(model.predict_level(rows, columns))) <= set(levels)
    predicted = model.predict(rows, columns)
    assert np.all((predicted >= levels[0] - 1e-9) & (predicted <= levels[-1] + 1e-9))
    codes = short(kind, np.searchsorted(levels, np.nan_to_num(data)) + np.where(np.isnan(data), np.nan, 0.0))
    assert_allclose(model.W_, codes.W_, rtol=1e-12)


@both
def test_texts_are_levels_in_the_given_order(kind):
    names = np.array(["bad", "fair", "good"], dtype=object)
    data = ratings(20, 15, levels=(0.0, 1.0, 2.0))[0]
    texts = np.full(data.shape, None, dtype=object)
    texts[~np.isnan(data)] = names[data[~np.isnan(data)].astype(int)]
    model, plain = short(kind, texts, levels=list(names)), short(kind, data)
    assert list(model.levels_) == list(names)
    assert_allclose(model.W_, plain.W_, rtol=1e-12)
    rows, columns = cells_of(data)
    assert_array_equal(model.predict_level(rows, columns), names[plain.predict_level(rows, columns).astype(int)])
    assert_allclose(model.predict(rows, columns), plain.predict(rows, columns), rtol=1e-12)
    assert_allclose(model.transform(texts), plain.transform(data), rtol=1e-9)
    with refused(DataError, found="'good'"):
        model.complete(texts)


@both
def test_thresholds_may_be_given_and_stay(kind):
    model = short(kind, thresholds=[-2.0, -0.5, 0.5, 3.0])
    assert_array_equal(model.thresholds_, [-2, -0.5, 0.5, 3])
    assert_array_equal(short(kind, thresholds=(-2, -0.5, 0.5, 3)).W_, model.W_)


@both
def test_a_level_that_nobody_gave_is_allowed_where_thresholds_are_fixed(kind):
    """Its place is told, though no cell is there."""
    data = np.where(SMALL == 3, np.nan, SMALL)
    model = short(kind, data, levels=[1, 2, 3, 4, 5], thresholds=[-2.0, -0.5, 0.5, 3.0])
    assert_array_equal(model.levels_, [1, 2, 3, 4, 5])


@both
@pytest.mark.parametrize(
    "thresholds", [[100.0, 200.0, 300.0, 400.0], [-1000.0, -1.0, 1.0, 1000.0], [1e-3, 2e-3, 3e-3, 4e-3]], ids=str
)
def test_thresholds_may_be_in_any_unit(kind, thresholds):
    """Ratings of 0 to 500 in steps of 100, or of thousandths: a fit begins, and explains what it sees the better.
    (A staircase of sigmoids has no slope far from its steps, so of RoundMF's losses "round" is asked.)"""
    loss = {"loss": "round"} if kind is RoundMF else {}
    model = short(kind, thresholds=thresholds, l2=1e-3, max_iter=60, **loss)
    trace = model.trace_["objective"]
    assert np.all(np.isfinite(trace))
    assert trace[-1] < trace[0]


@both
@pytest.mark.parametrize(
    "wrong",
    [
        *(
            {"thresholds": one}
            for one in ([1, 3, 2, 4], [1, 1, 2, 3], [1, np.nan, 3, 4], [1, 2, 3, np.inf], "abcd", [])
        ),
        *({"thresholds": one} for one in ([[1, 2], [3, 4]], [0.0, 1.0, 2.0], [0.0, 1.0, 2.0, 3.0, 4.0])),
        {"l2": -1},
        {"l2": np.nan},
        {"n_components": 0},
        {"solver": "lbfgs"},
        {"learning_rate": 0},
        {"batch_size": 0},
        {"n_init": 0},
        {"validation_fraction": 1.0},
        {"n_iter_no_change": 0},
        {"biases": "yes"},
        {"early_stopping": 1},
        {"levels": [3, 2, 1]},
        {"levels": ["a", "a"]},
    ],
    ids=str,
)
def test_invalid_parameters_are_refused(kind, wrong):
    with refused(ParameterError, *wrong):
        short(kind, **wrong)


def test_lines_have_thresholds_a_unit_apart():
    model = short(RoundMF, loss="linear", thresholds=[0.5, 1.5, 2.5, 3.5], biases=False)
    assert_allclose(model.predict(*cells_of(SMALL)), 1 + x_of(model).ravel(), rtol=1e-12)  # Eq. 1.5: no offset
    with refused(ParameterError, "thresholds"):
        short(RoundMF, loss="linear", thresholds=[1, 2, 3, 5])


@both
@pytest.mark.parametrize("absent", [3, 5])
def test_a_level_that_is_absent_is_refused_where_thresholds_are_learned(kind, absent):
    with refused(DataError, "levels", found=f"none at level {absent}"):
        short(kind, np.where(absent == SMALL, np.nan, SMALL), levels=[1, 2, 3, 4, 5])


@both
@pytest.mark.parametrize("data", [SMALL, sparse.csr_array(np.nan_to_num(SMALL)), np.eye(2)], ids=type)
def test_unseen_cells_can_not_be_zeros(kind, data):
    """Before anything else goes wrong, and without the name of a loss that these models do not have."""
    with refused((DataError, ParameterError), "unseen", remedy='unseen="missing"') as error:
        short(kind, data, unseen="zero")
    assert "frobenius" not in str(error.value)


@both
@pytest.mark.filterwarnings("ignore::halfseen.errors.DataWarning")
def test_one_cell_is_enough_where_levels_and_thresholds_are_told(kind):
    data = np.full((3, 2), np.nan)
    data[1, 1] = 2
    model = short(kind, data, levels=[1, 2], thresholds=[0.0], l2=0.1, max_iter=50)
    assert model.predict_level(1, 1) == 2


@both
@pytest.mark.parametrize(
    ("wrong", "which"),
    [
        (lambda W, H: (W[:-1], H), "W0"),
        (lambda W, H: (W, H[:, :1]), "H0"),
        (lambda W, H: (W * np.nan, H), "W0"),
        (lambda W, H: (W, H + np.inf), "H0"),
        (lambda W, H: (W.astype(str), H), "W0"),
    ],
)
def test_invalid_starts_are_refused(kind, wrong, which):
    rng = np.random.default_rng(0)
    with refused(ParameterError, "init") as error:
        short(kind, init=wrong(rng.normal(size=(20, 2)), rng.normal(size=(15, 2))))
    assert error.value.must.startswith(which)


@both
def test_a_start_of_either_sign_is_where_the_fit_begins_with_columns_of_biases_or_without(kind):
    """Without them biases begin at 0; and the arrays that were given stay as they were."""
    rng = np.random.default_rng(0)
    W, H = rng.normal(size=(20, 2)), rng.normal(size=(15, 2))
    kept = W.copy(), H.copy()
    nothing, one = (lambda n: np.zeros((n, 1))), (lambda n: np.ones((n, 1)))
    long = np.hstack([W, nothing(20), one(20)]), np.hstack([H, one(15), nothing(15)])
    without, full = short(kind, init=(W, H)), short(kind, init=long)
    assert_allclose(without.trace_["objective"], full.trace_["objective"], rtol=1e-10)
    assert_allclose(without.W_, full.W_, rtol=1e-8)
    assert_array_equal(W, kept[0])
    assert_array_equal(H, kept[1])
    assert np.abs(short(kind, init=(H[:, ::-1][np.arange(20) % 15], H)).W_ - without.W_).max() > 1e-6


@both
def test_the_ones_beside_biases_are_ones_whatever_was_given(kind):
    rng = np.random.default_rng(0)
    model = short(kind, init=(rng.normal(size=(20, 4)), rng.normal(size=(15, 4))), max_iter=2)
    assert_array_equal(model.W_[:, -1], 1)
    assert_array_equal(model.H_[:, -2], 1)


@both
def test_a_fit_goes_on_from_where_another_ended(kind):
    first = short(kind, max_iter=200, l2=2.0)
    again = short(kind, init=(first.W_, first.H_), thresholds=first.likelihood_.thresholds, l2=2.0, max_iter=1)
    assert_allclose(again.trace_["objective"][0], first.trace_["objective"][-1], rtol=1e-4)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_default_l2_follows_weights_of_any_size():
    X = np.random.default_rng(0).integers(0, 4, (20, 15)).astype(float)
    l2 = OrdinalMF(2, max_iter=1).fit(X).l2_
    for weight in (1e-200, 0.7, 1e200):
        weighted = OrdinalMF(2, max_iter=1).fit(X, cell_weight=np.full(X.shape, weight))
        assert_allclose(weighted.l2_, weight * l2, rtol=1e-6)
