"""MRR, hit rate, AUC, coverage and novelty, and errors of values, against plain Python and scikit-learn."""

import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.metrics import average_precision_score, roc_auc_score

from halfseen import observe
from halfseen.engines import topk
from halfseen.engines.topk import DenseScores, Products, count_above
from halfseen.errors import DataError
from halfseen.io import split_cells
from halfseen.metrics import (
    auc,
    coverage_at_k,
    hit_rate_at_k,
    mae,
    map_at_k,
    mrr_at_k,
    ndcg_at_k,
    novelty_at_k,
    ranking_scores,
    rmse,
    scorers,
    standard_error,
)
from tests.data.strategies import CALM
from tests.estimators.models import refused
from tests.metrics import oracle
from tests.metrics.test_ranking import problem

OF_LISTS = (mrr_at_k, hit_rate_at_k, coverage_at_k, novelty_at_k)


def further(scores, train, test, k, relevant):
    """By plain Python: MRR, hit rate, coverage, novelty, AUC; -inf is never recommended, and below all others."""
    n, m = train.shape
    seen_by = [max(sum(not math.isnan(train[u, i]) for u in range(n)), 1) for i in range(m)]
    ranks, hits, covered, novel, wins = [], [], set(), [], []
    for u in range(n):
        seen = set(oracle.seen(train[u].tolist()))
        good = {i for i, value in oracle.seen(test[u].tolist()).items() if value >= relevant and i not in seen}
        if not good:
            continue
        first = [i for i in oracle.ranked(scores[u].tolist(), seen) if scores[u, i] > -math.inf][:k]
        found = [rank for rank, i in enumerate(first, 1) if i in good]
        ranks.append(1 / found[0] if found else 0.0)
        hits.append(float(bool(found)))
        covered |= set(first)
        if first:
            novel.append(sum(-math.log2(seen_by[i] / n) for i in first) / len(first))
        others = set(range(m)) - seen - good
        if others:
            pairs = [(scores[u, i] > scores[u, j]) + 0.5 * (scores[u, i] == scores[u, j]) for i in good for j in others]
            wins.append(sum(pairs) / len(pairs))
    means = [sum(of) / len(of) if of else math.nan for of in (ranks, hits, novel, wins)]
    return means[0], means[1], len(covered) / m, means[2], means[3]


@CALM
@given(st.integers(0, 10_000), st.integers(1, 20), st.sampled_from([1, 4, 5]), st.booleans())
def test_against_plain_python(seed, k, relevant, with_holes):
    """Ties are frequent, since scores are whole numbers; k may be more than there are columns."""
    W, H, train, test = problem(seed)
    scores = W @ H.T
    if with_holes:
        scores = np.where(np.random.default_rng(seed).random(scores.shape) < 0.3, -np.inf, scores)
    if not np.any(test >= relevant):
        return
    expected = further(scores, train, test, k, relevant)
    found = [metric(scores, train, test, k, relevant) for metric in OF_LISTS]
    assert_allclose(found, expected[:4], rtol=1e-12)
    assert_allclose(auc(scores, train, test, relevant), expected[4], rtol=1e-12)
    if not with_holes:
        assert_allclose([metric((W, H), train, test, k, relevant) for metric in OF_LISTS], expected[:4], rtol=1e-12)
        assert_allclose(auc((W, H), train, test, relevant), expected[4], rtol=1e-12)


@pytest.mark.parametrize("relevant", [1, 3, 5])
def test_auc_and_whole_average_precision_are_scikit_learns(relevant):
    W, H, train, test = problem(3, rows=20, columns=40, exact=False)
    scores = W @ H.T
    theirs = {roc_auc_score: [], average_precision_score: []}
    for u in range(20):
        free = np.isnan(train[u])
        good = test[u, free] >= relevant
        if good.any():
            for metric, of_rows in theirs.items():
                of_rows.append(metric(good, scores[u, free]))
    assert_allclose(auc(scores, train, test, relevant), np.mean(theirs[roc_auc_score]), rtol=1e-13)
    whole = map_at_k(scores, train, test, 40, relevant)
    assert_allclose(whole, np.mean(theirs[average_precision_score]), rtol=1e-13)


def test_lists_of_lengths_are_each_of_them_alone():
    W, H, train, test = problem(exact=False)
    for metric in (*OF_LISTS, ndcg_at_k, map_at_k):
        found = metric((W, H), train, test, [1, 5, 40], [1, 4])
        assert found.shape == (3, 2)
        assert_array_equal(found, [metric((W, H), train, test, k, [1, 4]) for k in (1, 5, 40)])
        assert_array_equal(metric((W, H), train, test, [5]), [metric((W, H), train, test, 5)])
    scores = ranking_scores((W, H), train, test, [1, 5], [1, 4])
    assert scores.ndcg.shape == (2, 2, 12)
    assert_array_equal(scores.recall[1, 1], ranking_scores((W, H), train, test, 5, 4).recall)


def test_rows_are_ranked_once_for_all_lengths_and_thresholds():
    W, H, train, test = problem()
    asked = []

    def scores(rows):
        asked.extend(rows.tolist())
        return W[rows] @ H.T

    ndcg_at_k(scores, train, test, [1, 5, 10], [1, 4, 5])
    assert len(asked) == len(set(asked))


def test_rows_whose_unseen_columns_are_all_relevant_have_no_auc():
    nan = np.nan
    train, test = np.array([[1.0, nan, nan], [1.0, nan, nan]]), np.array([[nan, 5.0, 5.0], [nan, 5.0, nan]])
    assert auc(np.array([[0.0, 1.0, 2.0], [0.0, 1.0, 2.0]]), train, test) == 0.0
    assert np.isnan(auc(np.ones((1, 3)), train[:1], test[:1]))
    assert ndcg_at_k(np.ones((1, 3)), train[:1], test[:1]) == 1.0


def test_nan_scores_are_refused():
    scores, train, test = np.array([[1.0, np.nan]]), [[1.0, np.nan]], [[np.nan, 4.0]]
    for metric in (*OF_LISTS, auc):
        with pytest.raises(DataError, match=r"NaN at row 0, column 1"):
            metric(scores, train, test)


@pytest.mark.parametrize("columns_per_tile", [1, 7, 100])
@pytest.mark.parametrize("scores_per_tile", [1, 50, 10**6])
def test_counts_of_better_columns_in_tiles(columns_per_tile, scores_per_tile, monkeypatch):
    """Of any tiles and threads; NaN and -inf are below all others, and equal."""
    monkeypatch.setattr(topk, "COLUMNS_PER_TILE", columns_per_tile)
    random = np.random.default_rng(0)
    x = random.choice([-np.inf, np.nan, 1.0, 2.0, 3.0, np.inf], (9, 23))
    hidden = random.random(x.shape) < 0.3
    wanted = ~hidden & (random.random(x.shape) < 0.4)
    lists = [
        (np.append(0, np.cumsum(mask.sum(axis=1))), np.nonzero(mask)[1]) for mask in (wanted, hidden)
    ]  # fmt: skip
    clean = np.where(np.isnan(x), -np.inf, x)
    expected = [
        (np.sum(~hidden[u] & (clean[u] > clean[u, i])), np.sum(~hidden[u] & (clean[u] == clean[u, i])) - 1)
        for u, i in zip(*np.nonzero(wanted), strict=True)
    ]
    for n_jobs in (1, 3):
        found = count_above(DenseScores(x), *lists, n_jobs, scores_per_tile)
        assert_array_equal(np.array(found).T, expected)


def test_a_score_equals_itself_in_every_tile(monkeypatch):
    """However its product is computed: sums of many terms depend on the shape of what is multiplied."""
    monkeypatch.setattr(topk, "COLUMNS_PER_TILE", 37)
    random = np.random.default_rng(0)
    W, H = random.random((50, 200)).astype(np.float32), random.random((301, 200)).astype(np.float32)
    indptr, columns = np.arange(0, 51 * 301, 301), np.tile(np.arange(301), 50)
    above, equal = count_above(Products(W, H), (indptr, columns))
    assert equal.min() >= 0
    for u in range(50):
        assert above[indptr[u] : indptr[u + 1]].min() == 0
        assert (above + equal)[indptr[u] : indptr[u + 1]].max() == 300


@pytest.mark.parametrize("n_jobs", [2, 5, None])
def test_the_same_bits_for_any_number_of_threads(n_jobs, monkeypatch):
    monkeypatch.setattr(scorers, "ROWS_AT_A_TIME", 70)
    W, H, train, test = problem(0, 200, 100, 10, exact=False)
    for metric in OF_LISTS:
        arguments = (W, H), train, test, [3, 10], [1, 4]
        assert_array_equal(metric(*arguments, n_jobs=n_jobs), metric(*arguments, n_jobs=1))
    arguments = (W, H), train, test, [1, 4]
    assert_array_equal(auc(*arguments, n_jobs=n_jobs), auc(*arguments, n_jobs=1))


def test_no_matrix_of_all_scores_is_made():
    """It would take 64 MB."""
    random = np.random.default_rng(0)
    W, H = random.random((4000, 4)), random.random((2000, 4))
    cells = sparse.random_array((4000, 2000), density=0.002, rng=random, format="csr")
    train, test = split_cells(observe(cells), 0.3, 0)
    for model in ((W, H), lambda rows: W[rows] @ H.T):
        for metric in (auc, coverage_at_k, novelty_at_k):
            metric(model, train, test, relevant=0)
            tracemalloc.start()
            try:
                metric(model, train, test, relevant=0, n_jobs=1)
                assert tracemalloc.get_traced_memory()[1] < 32e6
            finally:
                tracemalloc.stop()


def test_standard_errors_by_formula():
    values = np.array([[0.5, np.nan, 1.0, 0.0, 0.7], [np.nan, np.nan, 2.0, np.nan, np.nan]])
    one = values[0][~np.isnan(values[0])]
    assert_allclose(standard_error(values), [np.std(one, ddof=1) / 2, np.nan], rtol=1e-14)
    assert standard_error([3.0, 3.0, 3.0]) == 0.0


def test_errors_of_values():
    values, predictions, weights = [1.0, 2.0, 4.0], [1.5, 2.0, 3.0], [1, 0, 2]
    assert rmse(values, predictions) == pytest.approx(np.sqrt((0.25 + 1) / 3))
    assert mae(values, predictions) == 0.5
    assert rmse(values, predictions, weights=weights) == pytest.approx(np.sqrt((0.25 + 2) / 3))
    assert mae(values, predictions, weights=weights) == pytest.approx(2.5 / 3)
    for metric in (rmse, mae):
        for wrong in ([1.0, 2.0], [1.0, np.nan, 2.0], "abc"):
            with refused(DataError, "predictions"):
                metric(values, wrong)
        with refused(DataError, "weights"):
            metric(values, predictions, weights=[0, 0, 0])
        with refused(DataError, "values"):
            metric([], [])
