"""What the squared models find from the data, and the l2 of columns that are seen often and rarely."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone

from halfseen import SquaredOrdNMF, SquaredPoisson, load, metrics, observe
from halfseen.errors import ParameterError
from halfseen.estimators import squared_models
from halfseen.io import split_cells
from halfseen.solvers import ColumnPenalty, Penalty
from tests.estimators.models import counts, levels_matrix, refused
from tests.ordinal import squared

P = 0.5


@pytest.fixture(scope="module")
def stars():
    """So many cells that some are held out to find l2."""
    x = np.random.default_rng(0).gamma(0.3, 1.0, (500, 4)) @ np.random.default_rng(1).gamma(0.3, 1.0, (4, 150))
    levels = np.random.default_rng(2).poisson(0.8 * x).clip(0, 5)
    assert (levels > 0).sum() > squared_models.LEAST_CELLS
    return observe(levels.astype(float), unseen="zero")


def scales(Y, p=P):
    count = np.maximum((Y > 0).sum(axis=0), 1)
    return (count / count.mean()) ** p


def dense_loss(Y, model, l2):
    """The penalised loss of a SquaredPoisson in dense NumPy; l2 is a number, or one for each column."""
    rate = (model.W_ @ model.H_.T) ** 2
    logs = np.where(Y > 0, Y * np.log(np.where(Y > 0, rate / np.where(Y > 0, Y, 1), 1)), 0.0)
    prior = 0.5 * model.l2_ * (model.W_**2).sum() + 0.5 * (np.broadcast_to(l2, Y.shape[1])[:, None] * model.H_**2).sum()
    return (rate - Y - logs).sum() + prior


@pytest.mark.parametrize("accelerate", [True, False])
@pytest.mark.parametrize("kind", [SquaredOrdNMF, SquaredPoisson])
def test_the_loss_never_rises_with_an_l2_for_each_column(kind, accelerate):
    Y = levels_matrix() if kind is SquaredOrdNMF else counts()
    ask = {"l2": 0.7, "random_state": 0, "accelerate": accelerate, "max_iter": 80, "tol": 0}
    model = kind(4, frequency_scaling=P, **ask).fit(Y)
    losses = model.trace_["objective"]
    assert np.all(np.diff(losses) <= 1e-9 * abs(losses[0]))
    assert_allclose(model.column_l2_, 0.7 * scales(Y), rtol=1e-12)
    if kind is SquaredPoisson:
        assert losses[-1] == pytest.approx(dense_loss(Y, model, 0.7 * scales(Y)), rel=1e-10)


def test_steps_with_an_l2_for_each_column_are_those_of_the_oracle(monkeypatch):
    monkeypatch.setitem(squared_models.EAGER_EXPONENT, False, 0.5)
    Y = levels_matrix()
    W, H, D = squared.start(Y, 4, np.random.RandomState(0))
    S, l2 = squared.level_weights(Y), 1.5 * scales(Y)
    ask = {"init": (W, H), "l2": 1.5, "frequency_scaling": P, "accelerate": False, "max_iter": 20, "tol": 0}
    model = SquaredOrdNMF(4, **ask).fit(Y)
    for _ in range(20):
        W = squared.half_step(Y, S, W, H, D, 1.5)
        H = squared.half_step(Y.T, S.T, H, W, D, l2[:, None])
        D = squared.pinned_decrements(Y, S, W, H, D)
    assert_allclose(model.W_, W, rtol=1e-8, atol=1e-12)
    assert_allclose(model.H_, H, rtol=1e-8, atol=1e-12)


def test_at_the_end_the_gradient_of_the_penalised_loss_is_zero():
    """Where an entry is above 0, by finite differences of the dense loss."""
    Y = counts(12, 8)
    model = SquaredPoisson(2, l2=0.7, frequency_scaling=P, random_state=0, max_iter=20_000, tol=1e-14).fit(Y)
    l2, step = 0.7 * scales(Y), 1e-6

    class At:
        W_, H_, l2_ = model.W_.copy(), model.H_.copy(), 0.7

    for factor in (At.W_, At.H_):
        for at in zip(*np.nonzero(factor > 1e-3), strict=True):
            value, losses = factor[at], []
            for factor[at] in (value - step, value + step):
                losses.append(dense_loss(Y, At, l2))
            factor[at] = value
            assert abs(losses[1] - losses[0]) / (2 * step) < 2e-2


def test_frequency_scaling_of_zero_is_plain_and_equal_counts_are_too():
    Y = levels_matrix()
    ask = {"l2": 0.7, "random_state": 0, "max_iter": 10, "tol": 0}
    plain = SquaredOrdNMF(3, **ask).fit(Y)
    assert type(plain.model_.folding.solver.penalty) is Penalty
    assert_array_equal(plain.column_l2_, np.full(Y.shape[1], 0.7))
    full = levels_matrix(share=2.0)[:, :7]
    full[4] = 1
    even = [SquaredOrdNMF(3, frequency_scaling=p, **ask).fit(full) for p in (0.0, 1.0)]
    assert_allclose(even[0].H_, even[1].H_, rtol=1e-9)


def test_new_rows_and_files_know_the_l2_of_columns(tmp_path):
    Y = levels_matrix()
    model = SquaredOrdNMF(3, l2=0.7, frequency_scaling=P, random_state=0, max_iter=200, tol=1e-9).fit(Y)
    model.save(tmp_path / "model.hs")
    again = load(tmp_path / "model.hs")
    assert isinstance(again.model_.folding.solver.penalty, ColumnPenalty)
    assert_array_equal(again.column_l2_, model.column_l2_)
    assert_array_equal(again.transform(Y[:5]), model.transform(Y[:5]))
    # the columns' l2 has no part in new rows, for which columns are fixed
    record = model.model_
    plain = replace(record.folding, solver=replace(record.folding.solver, penalty=Penalty(l2=0.7)))
    folded = replace(record, folding=plain).fold_in(observe(Y[:5], unseen="zero"), "cpu", 1, "")
    assert_array_equal(folded, model.transform(Y[:5]))


@pytest.mark.parametrize("kind", [SquaredOrdNMF, SquaredPoisson])
def test_components_and_l2_are_found_from_the_data(kind, stars):
    model = kind(random_state=0).fit(stars)
    n, m = stars.shape
    share = model.l2_ / (np.sqrt(n) + np.sqrt(m))
    assert model.n_components_ == min(squared_models.COMPONENTS, n, m) == model.W_.shape[1]
    assert squared_models.L2_SHARES[-1] <= share <= squared_models.L2_SHARES[0]
    assert share != pytest.approx(squared_models.L2_SHARE)
    same = kind(random_state=0, n_jobs=2).fit(stars)
    assert same.l2_ == model.l2_
    assert_array_equal(same.W_, model.W_)
    given = kind(model.n_components_, l2=model.l2_, random_state=0).fit(stars)
    assert_array_equal(given.H_, model.H_)
    assert clone(model).get_params()["l2"] is None
    assert kind(7, random_state=0).fit(stars).n_components_ == 7


def test_what_is_found_ranks_about_as_well_as_the_best_of_a_grid(stars):
    train, test = split_cells(stars, 0.2, random_state=0)
    base = float(np.sqrt(train.shape).sum())

    def ndcg(**given):
        return metrics.ndcg_at_k(SquaredOrdNMF(random_state=0, **given).fit(train), train, test, 100)

    assert ndcg() > max(ndcg(l2=share * base) for share in (0.1, 0.3, 0.6, 1.0, 1.6)) - 0.01


def test_few_cells_and_missing_ones_take_the_rule():
    Y = levels_matrix()
    n, m = Y.shape
    expected = squared_models.L2_SHARE * (np.sqrt(n) + np.sqrt(m))
    assert SquaredOrdNMF(random_state=0).fit(Y).l2_ == pytest.approx(expected, rel=1e-15)
    # no cell of these can be held out
    alone = SquaredPoisson(2, random_state=0, max_iter=1, tol=0).fit(sparse.eye_array(6000, format="csr"))
    assert alone.l2_ == pytest.approx(2 * squared_models.L2_SHARE * np.sqrt(6000), rel=1e-15)


def test_given_starts_say_how_many_components():
    Y = levels_matrix()
    W, H, _ = squared.start(Y, 4, np.random.RandomState(0))
    assert SquaredOrdNMF(init=(W, H)).fit(Y).n_components_ == 4


def test_precision(monkeypatch):
    Y = levels_matrix().astype(float)
    ask = {"l2": 0.7, "random_state": 0, "max_iter": 10, "tol": 0}
    double, single = (SquaredOrdNMF(3, dtype=dtype, **ask).fit(Y) for dtype in ("float64", "float32"))
    assert_array_equal(SquaredOrdNMF(3, **ask).fit(Y).W_, double.W_)  # few cells
    assert single.W_.dtype == double.W_.dtype == np.float64
    assert_array_equal(single.W_, single.W_.astype(np.float32))
    assert_allclose(single.W_ @ single.H_.T, double.W_ @ double.H_.T, rtol=1e-3, atol=1e-4)
    assert_array_equal(single.levels_, double.levels_)
    monkeypatch.setattr(squared_models, "CELLS_OF_SINGLE_PRECISION", 10)
    assert_array_equal(SquaredOrdNMF(3, **ask).fit(Y).W_, single.W_)
    assert SquaredOrdNMF(3, **ask).fit(Y.astype(np.float32)).W_.dtype == np.float32


@pytest.mark.parametrize(
    ("name", "value"), [("n_components", 0), ("l2", -1.0), ("frequency_scaling", -0.5), ("dtype", "float16")]
)
def test_refusals(name, value):
    with refused(ParameterError, name):
        SquaredPoisson(**{name: value}).fit(counts())


def test_new_columns_have_the_l2_of_the_average_one(tmp_path):
    lines = [(f"u{u}", f"i{i}", int(y)) for (u, i), y in np.ndenumerate(levels_matrix()) if y]
    model = SquaredOrdNMF(3, l2=0.7, frequency_scaling=P, random_state=0, max_iter=50).fit(lines)
    before = model.column_l2_
    model.partial_fit([("u0", "new", 5), ("u1", "new", 3), ("u2", "newer", 1)])
    assert_array_equal(model.column_l2_, np.append(before, [0.7, 0.7]))
    model.save(tmp_path / "model.hs")
    assert_array_equal(load(tmp_path / "model.hs").H_, model.H_)
    assert np.all(np.isfinite(model.H_))
