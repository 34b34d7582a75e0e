"""OrdinalMF: probabilities, and thresholds of rows' and columns' own."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from halfseen import OrdinalMF
from halfseen.errors import DataError, ParameterError
from halfseen.likelihoods import LINKS, OwnThresholds
from tests.graded import oracle
from tests.graded.data import ratings
from tests.laws.cases import THRESHOLDS

X, FULL = ratings()
both_sides = pytest.mark.parametrize("side", ["rows", "columns"])


def fitted(data=X, n_components=3, **wishes):
    wishes = {"random_state": 0, "max_iter": 40, "n_jobs": 1} | wishes
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return OrdinalMF(n_components, **wishes).fit(data)


@pytest.mark.parametrize("link", oracle.NOISES)
def test_log_likelihood_is_that_of_the_probabilities(link):
    model = fitted(link=link)
    rows, columns = np.nonzero(~np.isnan(X))
    p = model.predict_proba(rows, columns)
    assert_allclose(p.sum(-1), 1, rtol=1e-12)
    each = np.log(p[np.arange(rows.size), X[rows, columns].astype(int) - 1])
    assert_allclose(model.log_likelihood(X, each=True), each, rtol=1e-7)
    assert_allclose(model.log_likelihood(X), each.sum(), rtol=1e-7)


def test_held_out_levels_are_more_probable_than_by_how_often_they_come():
    model = fitted()
    hidden = np.isnan(X)
    rows, columns = np.nonzero(hidden)
    truth = FULL[hidden].astype(int) - 1
    p = model.predict_proba(rows, columns)[np.arange(rows.size), truth]
    often = np.bincount(X[~hidden].astype(int) - 1) / (~hidden).sum()
    assert np.log(p).mean() > np.log(often[truth]).mean() + 0.1


def test_samples_follow_the_probabilities():
    model = fitted(max_iter=10)
    draws = np.stack([one.toarray() for one in model.sample(300, random_state=0)])
    rows, columns = np.nonzero(~np.isnan(X))
    share = (draws[:, rows, columns][..., None] == np.arange(1, 6)).mean(0)
    assert_allclose(share, model.predict_proba(rows, columns), atol=0.13)
    assert abs(share - model.predict_proba(rows, columns)).mean() < 0.02
    assert_array_equal(draws[0] > 0, ~np.isnan(X))


def test_intervals_are_quantiles_of_the_probabilities():
    model = fitted(max_iter=10)
    rows, columns = np.arange(30), np.arange(30)
    low, high = model.predict_interval(rows, columns, 0.8)
    up_to = model.predict_proba(rows, columns).cumsum(-1)
    assert_array_equal(low, 1 + (up_to < 0.1).sum(-1))
    assert_array_equal(high, 1 + (up_to[:, :-1] < 0.9).sum(-1))


# Thresholds of one's own


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
    own, shared = fitted(data, 2, own_thresholds=side), fitted(data, 2)
    assert own.own_thresholds_.shape == (60, 4)
    assert np.all(np.diff(own.own_thresholds_, axis=1) > 0)
    spread = own.own_thresholds_[:, -1] - own.own_thresholds_[:, 0]
    assert spread[1::2].min() > spread[::2].max()
    assert own.log_likelihood(data) > shared.log_likelihood(data) + 100
    assert shared.own_thresholds_ is None


@both_sides
def test_predictions_use_ones_own_thresholds_and_new_rows_the_common_ones(side):
    model = fitted(own_thresholds=side)
    rows, columns = (places.ravel() for places in np.indices(X.shape))
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
    model = fitted(own_thresholds=side, link="probit").set_params(tol=1e-12, max_iter=500)
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
    loose, tight = (fitted(own_thresholds=side, l2=l2) for l2 in (1.0, 1e4))
    apart = [np.abs(model.own_thresholds_ - model.thresholds_).max() for model in (loose, tight)]
    assert apart[0] > 0.05
    assert apart[1] < 0.05 * apart[0]


def test_what_own_thresholds_can_not_have():
    with pytest.raises(ParameterError, match="own_thresholds must be one of 'rows', 'columns' or None"):
        fitted(own_thresholds="users")
    with pytest.raises(ParameterError, match="own_thresholds must be None where thresholds are given"):
        fitted(own_thresholds="rows", thresholds=[-1, 0, 1, 2])
    with pytest.raises(ParameterError, match="Found 'rows' and solver='sgd'"):
        fitted(own_thresholds="rows", solver="sgd")


@both_sides
@pytest.mark.filterwarnings("ignore::halfseen.errors.DataWarning")
def test_owners_of_whom_nothing_was_seen_have_the_common_thresholds(side):
    data = X.copy()
    data[3], data[:, 5] = np.nan, np.nan
    model = fitted(data, own_thresholds=side)
    assert_allclose(model.own_thresholds_[3 if side == "rows" else 5], model.thresholds_, rtol=1e-9)


@pytest.mark.filterwarnings("ignore::halfseen.errors.DataWarning")
def test_single_precision_that_can_not_count_owners_is_refused():
    data = np.full((2_000_000, 1), np.nan, np.float32)
    data[:6, 0] = [1, 2, 3, 4, 5, 5]
    with pytest.raises(DataError, match=r"must tell 10,000,005 pairs .* apart.* float32.*Use float64"):
        OrdinalMF(1, own_thresholds="rows", max_iter=1).fit(data)
