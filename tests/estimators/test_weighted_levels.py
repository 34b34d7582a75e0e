"""Ordinal models of weighted and repeated cells whose levels are any numbers: weights, starts, steps, refusals."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

import halfseen
from halfseen import BernoulliPoisson, OrdNMF, SquaredOrdNMF
from halfseen.errors import DataError, ParameterError
from halfseen.estimators import ordnmf
from halfseen.metrics import predictive_check
from tests.estimators.test_relatives import counts
from tests.ordinal import oracle
from tests.ordinal.test_cells_seen_oftener import K, draw, squared_steps

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
STARS = {"zero": np.array([0.0, 0.5, 3.0, 3.5]), "missing": np.array([-1.0, 0.5, 3.0, 3.5])}
every_case = pytest.mark.parametrize("unseen", STARS)
each_seed = pytest.mark.parametrize("seed", [0, 1, 2])


def problem(seed, unseen, repeated):
    """The cells as a user has them; spelled out, each counted as often as its weight and its level say; a start."""
    observed, (u, i, y, c), start = draw(seed, unseen, True, repeated)
    stars = replace(observed, values=STARS[unseen][observed.values.astype(int)])
    mean = np.average(y[y > 0], weights=c[y > 0])
    first = oracle.first_decrements(np.bincount(y, c), unseen)
    return stars, (u, i, y, c * np.where(y > 0, y / mean, 1.0)), first / first.sum(), start, mean


@every_case
@each_seed
@pytest.mark.parametrize("repeated", [False, True])
def test_steps_are_those_of_all_cells_spelled_out(unseen, seed, repeated, monkeypatch):
    monkeypatch.setitem(ordnmf.EAGER_EXPONENT, False, 0.5)
    stars, cells, D, (W, H), mean = problem(seed, unseen, repeated)
    ask = {"l2": 0.7, "init": (W, H), "accelerate": False, "max_iter": 12, "tol": 0, "unseen": unseen}
    model = SquaredOrdNMF(K, **ask).fit(stars)
    W, H, D, loss = squared_steps(cells, D, W, H, 0.7, 12)
    assert_allclose(model.level_weights_, [1.0, 1 / mean, 2 / mean, 3 / mean])
    assert_allclose(model.W_, W, rtol=1e-8, atol=1e-100)
    assert_allclose(model.H_, H, rtol=1e-8, atol=1e-100)
    assert_allclose(model.thresholds_, oracle.Ordinal(D).thresholds, rtol=1e-8)
    assert model.trace_["objective"][-1] == pytest.approx(loss, rel=1e-9)


@every_case
@each_seed
def test_the_start_has_the_share_of_cells_above_zero_as_rate(unseen, seed):
    stars, (_, _, y, c), *_ = problem(seed, unseen, False)
    n, m = stars.shape
    share = min(1.0, c[y > 0].sum() / (n * m if unseen == "zero" else c.sum()))
    random = np.random.RandomState(seed)
    W, H = (np.sqrt(np.sqrt(share) / K) * random.standard_gamma(1.0, (size, K)) for size in (n, m))
    ask = {"l2": 0.3, "max_iter": 2, "tol": 0, "unseen": unseen}
    drawn, given = (SquaredOrdNMF(K, **ask, init=init, random_state=seed).fit(stars) for init in ("random", (W, H)))
    assert_allclose(drawn.W_, given.W_, rtol=1e-10)
    assert_allclose(drawn.H_, given.H_, rtol=1e-10)


@every_case
def test_folded_rows_hear_the_weights_of_levels(unseen):
    """With H and thresholds held, a row rests where what pulls it equals what pushes it."""
    stars, (u, i, y, c), *_ = problem(0, unseen, False)
    model = SquaredOrdNMF(K, l2=0.3, max_iter=30, tol=0, random_state=0, unseen=unseen).fit(stars)
    W = model.set_params(max_iter=5000, tol=1e-12).transform(stars)
    family = oracle.Ordinal(oracle.decrements_of(model.thresholds_))
    x = np.sum(W[u] * model.H_[i], axis=1)
    slope = 2 * c * (family.counts(y, x**2) / np.where(x > 0, x, 1.0) - family.push(y) * x)
    gradient = np.zeros_like(W)
    np.add.at(gradient, u, slope[:, None] * model.H_[i])
    gradient -= 0.3 * W
    assert np.abs(W * gradient).max() < 1e-6 * np.abs(W).max()


@pytest.mark.parametrize("kind", [OrdNMF, SquaredOrdNMF])
@every_case
def test_a_saved_model_expects_and_folds_in_what_it_did(kind, unseen, tmp_path):
    stars, *_ = problem(1, unseen, False)
    model = kind(K, max_iter=10, tol=0, random_state=0, unseen=unseen).fit(stars)
    model.save(tmp_path / "model.hs")
    back = halfseen.load(tmp_path / "model.hs")
    values, u = STARS[unseen], np.arange(3)
    expected = model.predict_proba(u, u) @ values
    assert_allclose(model.predict(u, u), expected, rtol=1e-9)
    assert_allclose(back.predict(u, u), expected, rtol=1e-9)
    assert_allclose(back.transform(stars), model.transform(stars), rtol=1e-12)
    assert_allclose(back.score(stars), model.score(stars), rtol=1e-12)


@pytest.mark.parametrize("unseen", ["zero", "missing"])
def test_weights_of_levels_are_as_many_as_levels(unseen):
    stars, *_ = problem(0, unseen, False)
    for weights in ([1.0, 2.0], [1.0] * 5, {0.5: 1.0, 3.0: 1.0}):
        with pytest.raises(ParameterError, match="level_weight must hold a weight for each of the"):
            SquaredOrdNMF(K, level_weight=weights, unseen=unseen).fit(stars)


@pytest.mark.parametrize("kind", [OrdNMF, SquaredOrdNMF])
@every_case
def test_levels_of_which_no_cell_is_seen(kind, unseen):
    """Nothing tells where their thresholds are: of the lowest no less, unless it is that of unseen zeros."""
    stars, *_ = problem(0, unseen, False)
    lowest, *others = STARS[unseen].tolist()
    for levels, empty in (
        ([lowest, *others, 4.0], 4),
        ([lowest, 0.5, 2.0, 3.0, 3.5], 2),
        ([-3.0, lowest, *others], -3),
    ):
        if levels[0] < 0 and unseen == "zero":
            continue  # below unseen zeros nothing can be
        with pytest.raises(DataError, match=f"Found none at level {empty}. Leave it out of levels"):
            kind(K, levels=levels, unseen=unseen).fit(stars)
    above = stars.select_cells(stars.values > lowest)
    given = kind(K, levels=STARS[unseen].tolist(), unseen=unseen, max_iter=2, random_state=0)
    if unseen == "zero":
        assert_allclose(given.fit(above).levels_, STARS[unseen])
    else:
        with pytest.raises(DataError, match=r"Found none at level -1\. Leave it out of levels"):
            given.fit(above)


def test_a_hundred_levels_are_levels_and_one_more_are_counts():
    values = np.arange(101.0).reshape(1, -1).repeat(2, axis=0) + 1.0
    assert OrdNMF(1, unseen="missing", max_iter=2, random_state=0).fit(values[:, :100]).levels_.size == 100
    with pytest.raises(DataError, match=r"at most 100 ordered levels\. Found 101 different values.*Quantizer"):
        OrdNMF(1, unseen="missing").fit(values)


def test_a_check_of_counts_that_are_there_or_not_asks_no_more():
    Y = counts()
    check = predictive_check(BernoulliPoisson(2, random_state=0, max_iter=5).fit(Y), Y, n=2)
    assert check.observed[:2].tolist() == [(Y == 0).sum(), (Y > 0).sum()]
    assert check.observed[2:].sum() == 0
