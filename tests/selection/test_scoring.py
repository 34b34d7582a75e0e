"""What held-out cells say of a model, beside the same by NumPy, SciPy and scikit-learn."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import kl_div
from sklearn.metrics import mean_absolute_error, ndcg_score, root_mean_squared_error

import halfseen
from halfseen import OrdinalMF, OrdNMF, PoissonFactorization, RoundMF, WeightedNMF, observe
from halfseen.errors import DataError, ParameterError
from halfseen.io import split_cells
from halfseen.selection.scoring import default_metric, get_scorer
from tests.estimators.models import refused
from tests.selection.data import counts, table


@pytest.fixture(scope="module")
def tabular():
    train, test = split_cells(table(2, 0), random_state=0)
    return WeightedNMF(2, random_state=0, accelerate=True, max_iter=1000).fit(train), train, test


@pytest.fixture(scope="module")
def clicks():
    train, test = split_cells(counts(2, 0), random_state=0)
    return PoissonFactorization(2, random_state=0).fit(train), train, test


def x_at(model, test):
    return (model.W_ @ model.H_.T)[test.row_of_cell(), test.indices]


@pytest.mark.parametrize(("metric", "error"), [("rmse", root_mean_squared_error), ("mae", mean_absolute_error)])
def test_errors_of_values_are_scikit_learns(metric, error, tabular):
    model, train, test = tabular
    assert get_scorer(metric, 1, model)(model, train, test) == pytest.approx(-error(test.values, x_at(model, test)))


def test_errors_of_levels_are_those_of_the_expected_level():
    X = np.round(table(2, 0).clip(0, 4))
    train, test = split_cells(X, random_state=0)
    model = OrdinalMF(2, random_state=0).fit(train)
    expected = model.predict_proba(test.row_of_cell(), test.indices) @ model.levels_
    found = get_scorer("rmse", 1, model)(model, train, test)
    assert found == pytest.approx(-root_mean_squared_error(test.values, expected))


def test_errors_need_levels_that_are_numbers():
    lines = [("a", "x", "bad"), ("a", "y", "good"), ("b", "x", "good"), ("b", "y", "bad"), ("c", "x", "bad")]
    cells = observe(lines, levels=["bad", "good"])
    model = RoundMF(1, levels=["bad", "good"], random_state=0).fit(cells)
    with refused(DataError, found="'good'"):
        get_scorer("rmse", 1, model)(model, cells, cells)


@pytest.mark.parametrize("loss", ["frobenius", "kullback-leibler"])
def test_the_divergence_is_the_loss_on_held_out_cells(loss, tabular):
    model, train, test = tabular
    model = WeightedNMF(2, loss=loss, random_state=0, max_iter=2000).fit(train)
    y, x = test.values, x_at(model, test)
    by_hand = {"frobenius": 0.5 * (y - x) ** 2, "kullback-leibler": kl_div(y, x)}[loss]
    assert get_scorer("divergence", 1, model)(model, train, test) == pytest.approx(-by_hand.mean(), rel=1e-9)


def test_weights_count(tabular):
    model, train, test = tabular
    weights = np.random.default_rng(0).uniform(0.5, 2, test.nnz)
    heavy = halfseen.Observed.from_cells(test.row_of_cell(), test.indices, test.values, test.shape, weights=weights)
    error = root_mean_squared_error(test.values, x_at(model, test), sample_weight=weights)
    assert get_scorer("rmse", 1, model)(model, train, heavy) == pytest.approx(-error)


def test_the_log_likelihood_of_counts_is_given_that_they_are_above_zero(clicks):
    model, train, test = clicks
    x = x_at(model, test)
    by_hand = stats.poisson.logpmf(test.values, x) - np.log1p(-np.exp(-x))
    assert get_scorer("log-likelihood", 1, model)(model, train, test) == pytest.approx(by_hand.mean(), rel=1e-9)


def test_ranking_is_scikit_learns(clicks):
    model, train, test = clicks
    x, seen, relevant = model.W_ @ model.H_.T, train.to_dense() > 0, test.to_dense() >= 2
    rows = [row for row in range(len(x)) if relevant[row].any()]
    gains = [ndcg_score([relevant[row][~seen[row]]], [x[row][~seen[row]]], k=7) for row in rows]
    assert get_scorer("ndcg@7", 2, model)(model, train, test) == pytest.approx(np.mean(gains))
    best = [set(np.flatnonzero(~seen[row])[np.argsort(-x[row][~seen[row]])[:7]]) for row in rows]
    hits = [len(found & set(np.flatnonzero(relevant[row]))) for row, found in zip(rows, best, strict=True)]
    assert get_scorer("precision@7", 2, model)(model, train, test) == pytest.approx(np.mean(hits) / 7)
    recalls = [hit / relevant[row].sum() for row, hit in zip(rows, hits, strict=True)]
    assert get_scorer("recall@7", 2, model)(model, train, test) == pytest.approx(np.mean(recalls))


def test_a_function_is_taken_as_it_is(tabular):
    model, train, test = tabular
    assert get_scorer(lambda *what: what == (model, train, test), 1, model)(model, train, test) == 1.0
    with refused(ParameterError, "metric", found="a list"):
        get_scorer(lambda *_: [1.0], 1, model)(model, train, test)


@pytest.mark.parametrize(
    ("estimator", "metric"),
    [
        (OrdNMF(), "ndcg@100"),
        (PoissonFactorization(), "ndcg@100"),
        (WeightedNMF(unseen="zero"), "ndcg@100"),
        (OrdNMF(unseen="missing"), "log-likelihood"),
        (OrdinalMF(), "log-likelihood"),
        (WeightedNMF(), "divergence"),
        (RoundMF(), "divergence"),
    ],
)
def test_every_model_has_a_metric_by_default(estimator, metric):
    assert default_metric(estimator) == metric


@pytest.mark.parametrize(
    ("metric", "hint"),
    [
        ("ndgc@100", "Did you mean 'ndcg@100'?"),
        ("ndcg", "Did you mean 'ndcg@100'?"),
        ("loglikelihood", "Did you mean 'log-likelihood'?"),
        ("ndcg@0", "Did you mean 'ndcg@100'?"),
        ("accuracy", "Choose one of these."),
        (3, "Choose one of these."),
    ],
)
def test_an_unknown_metric_is_answered_with_a_hint(metric, hint):
    with refused(ParameterError, "metric", found=repr(metric), remedy=hint):
        get_scorer(metric, 1, OrdNMF())


def test_a_metric_that_the_model_does_not_have_is_refused():
    with refused(ParameterError, "metric", found="WeightedNMF", remedy="divergence"):
        get_scorer("log-likelihood", 1, WeightedNMF())
