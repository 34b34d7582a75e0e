"""The best columns of rows against scores made whole and sorted."""

import sys
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from threadpoolctl import threadpool_info

from halfseen.engines import topk
from halfseen.engines.topk import DenseScores, Products, best_columns
from tests.data.strategies import CALM


def listed(mask):
    """The true cells of a mask, row by row."""
    return np.append(0, np.cumsum(mask.sum(axis=1))), np.nonzero(mask)[1]


def brute_force(x, n, hidden=None, candidates=None):
    """Plain Python: (columns, scores) of each row, best first, of equal ones the first column first."""
    allowed = range(x.shape[1]) if candidates is None else candidates.tolist()
    columns, scores = [], []
    for u, row in enumerate(x.tolist()):
        free = [i for i in allowed if hidden is None or not hidden[u, i]]
        chosen = sorted(free, key=lambda i: (-row[i], i))[:n]
        padding = min(n, len(allowed)) - len(chosen)
        columns.append(chosen + [-1] * padding)
        scores.append([row[i] for i in chosen] + [np.nan] * padding)
    size = (len(x), min(n, len(allowed)))
    return np.array(columns).reshape(size), np.array(scores).reshape(size)


def whole_numbers(rng, rows, columns, k):
    """Factors whose products are exact, with many ties."""
    return rng.integers(0, 3, (rows, k)) * 1.0, rng.integers(0, 3, (columns, k)) * 1.0


@CALM
@given(st.data())
def test_against_brute_force(data):
    rows, columns, k = (data.draw(st.integers(1, most)) for most in (9, 12, 3))
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    W, H = whole_numbers(rng, rows, columns, k)
    hidden = rng.random((rows, columns)) < data.draw(st.sampled_from([0.0, 0.3, 0.9, 1.0]))
    candidates = data.draw(st.none() | st.just(np.flatnonzero(rng.random(columns) < 0.5)))
    n = data.draw(st.integers(1, 15))
    expected = brute_force(W @ H.T, n, hidden, candidates)
    for scores in (Products(W, H), DenseScores(W @ H.T), Products(W.astype(np.float32), H.astype(np.float32))):
        found = best_columns(scores, n, listed(hidden), candidates, 2, data.draw(st.integers(1, 50)))
        assert_array_equal(found.columns, expected[0])
        assert_array_equal(found.scores, expected[1])
        assert found.scores.dtype == scores.dtype


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_same_bits_for_any_number_of_threads(dtype):
    rng = np.random.default_rng(0)
    W, H = rng.random((500, 20)).astype(dtype), rng.random((300, 20)).astype(dtype)
    hidden = listed(rng.random((500, 300)) < 0.1)
    one, two, five = (best_columns(Products(W, H), 25, hidden, None, jobs, 3000) for jobs in (1, 2, 5))
    for other in (two, five):
        assert_array_equal(other.columns, one.columns)
        assert_array_equal(other.scores, one.scores)


def test_rows_too_long_for_a_tile(monkeypatch):
    monkeypatch.setattr(topk, "COLUMNS_PER_TILE", 7)
    W, H = whole_numbers(np.random.default_rng(0), 30, 100, 3)
    hidden = np.random.default_rng(1).random((30, 100)) < 0.2
    for scores in (Products(W, H), DenseScores(W @ H.T)):
        found = best_columns(scores, 12, listed(hidden), scores_per_tile=50)
        for mine, theirs in zip(found, brute_force(W @ H.T, 12, hidden), strict=True):
            assert_array_equal(mine, theirs)


@pytest.mark.parametrize(("rows", "columns", "candidates"), [(0, 4, None), (3, 0, None), (3, 4, np.array([], int))])
def test_nothing_to_rank(rows, columns, candidates):
    found = best_columns(Products(np.ones((rows, 2)), np.ones((columns, 2))), 5, candidates=candidates)
    expected = (rows, 0 if candidates is not None else min(5, columns))
    assert found.columns.shape == found.scores.shape == expected


def test_a_column_without_a_number_is_never_best():
    x = np.array([[np.nan, 1.0, -np.inf, 2.0], [np.nan, np.nan, np.inf, -np.inf]])
    found = best_columns(DenseScores(x), 3)
    assert_array_equal(found.columns, [[3, 1, -1], [2, -1, -1]])
    assert_array_equal(found.scores, [[2, 1, np.nan], [np.inf, np.nan, np.nan]])


def test_what_is_passed_in_is_left_alone():
    x, hidden = np.arange(12.0).reshape(3, 4), np.eye(3, 4) > 0
    indptr, columns = listed(hidden)
    best_columns(DenseScores(x), 2, (indptr, columns))
    assert_array_equal(x, np.arange(12.0).reshape(3, 4))
    assert_array_equal(columns, [0, 1, 2])
    assert_array_equal(best_columns(DenseScores(np.asfortranarray(x)), 2).columns, [[3, 2]] * 3)


def test_numbers_beyond_all_bounds_raise_no_warning():
    W, H = np.full((3, 2), 1e300), np.array([[1e300, 1.0], [1.0, 1.0]])
    assert_array_equal(best_columns(Products(W, H), 2).columns, [[0, 1]] * 3)


def blas_threads():
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


def test_blas_has_one_thread_unless_there_is_little_to_do(monkeypatch):
    before, inside = blas_threads(), []

    class Watching(DenseScores):
        def tile(self, rows, columns):
            inside.append(blas_threads())
            return super().tile(rows, columns)

    best_columns(Watching(np.ones((1, 3))), 2)
    assert inside == [before]
    monkeypatch.setattr(topk, "SCORES_OF_A_REQUEST", 11)
    best_columns(Watching(np.ones((4, 3))), 2, n_jobs=2, scores_per_tile=3)
    assert inside[1:] == [[1] * len(before)] * 4
    assert blas_threads() == before


def test_no_more_room_than_for_the_lists_and_a_few_tiles():
    """The whole matrix of scores would take 64 MB."""
    rng = np.random.default_rng(0)
    W, H = rng.random((4000, 4)), rng.random((2000, 4))
    best_columns(Products(W, H), 10, n_jobs=2)
    tracemalloc.start()
    try:
        found = best_columns(Products(W, H), 10, n_jobs=2, scores_per_tile=1 << 17)
        assert tracemalloc.get_traced_memory()[1] < sum(array.nbytes for array in found) + 2.5 * 8 * (1 << 17)
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("seed", range(8))
def test_small_requests_have_the_same_lists_without_compiled_code(seed, monkeypatch):
    """Ties, hidden columns, candidates, NaN and -inf included."""
    random = np.random.default_rng(seed)
    n, m = int(random.integers(1, 9)), int(random.integers(1, 60))
    x = random.integers(0, 4, (n, m)).astype([np.float32, np.float64][seed % 2])
    x[random.random((n, m)) < 0.1] = np.nan
    x[random.random((n, m)) < 0.1] = -np.inf
    is_hidden = random.random((n, m)) < 0.3
    hidden = np.append(0, np.cumsum(is_hidden.sum(axis=1))), np.nonzero(is_hidden)[1]
    candidates = None if seed % 3 else np.flatnonzero(random.random(m) < 0.7)
    monkeypatch.setattr(topk, "COLUMNS_PER_TILE", 7)
    factors = Products(np.nan_to_num(x, neginf=0), random.random((m, m)).astype(x.dtype))
    for scores in (DenseScores(x), factors):
        for k in (1, 3, m):
            compiled = best_columns(scores, k, hidden, candidates)
            with monkeypatch.context() as patched:
                patched.delitem(sys.modules, "numba")
                small = best_columns(scores, k, hidden, candidates)
            for mine, theirs in zip(small, compiled, strict=True):
                assert_array_equal(mine, theirs)
                assert mine.dtype == theirs.dtype


@pytest.mark.parametrize("seed", range(12))
def test_lists_of_one_row_by_a_sketch(seed, monkeypatch):
    """Exact, with ties: whole numbers have exact products; others the same columns as scores of all of them."""
    monkeypatch.setattr(topk, "COLUMNS_FOR_A_SKETCH", 1)
    random = np.random.default_rng(seed)
    m, k, dtype = int(random.integers(1, 400)), int(random.integers(1, 20)), [np.float32, np.float64][seed % 2]
    kind = seed % 3
    if kind == 0:  # ties
        W, H = random.integers(-3, 4, (1, k)).astype(dtype), random.integers(-2, 3, (m, k)).astype(dtype)
    else:
        W, H = random.standard_normal((1, k)).astype(dtype), random.standard_normal((m, k)).astype(dtype)
        H *= (10.0 ** random.uniform(-3, 3, (m, 1))).astype(dtype)
        H[random.random(m) < 0.1] = 0
    is_hidden = random.random((1, m)) < 0.3
    candidates = None if seed % 2 else np.flatnonzero(random.random(m) < 0.7)
    scores = Products(W, H, lambda: topk.Sketch(H))
    low, high = topk.Sketch(H).bounds(W[0])
    x = H.astype(np.float64) @ W[0].astype(np.float64)
    assert np.all((low <= x) & (x <= high))
    for n in (1, 5, m, m + 3):
        for hidden in (None, listed(is_hidden)):
            found = best_columns(scores, n, hidden, candidates)
            expected = best_columns(Products(W, H), n, hidden, candidates)
            assert found.columns.dtype == expected.columns.dtype
            assert found.scores.dtype == expected.scores.dtype
            np.testing.assert_allclose(
                found.scores, expected.scores, rtol=1e-5 if dtype == np.float32 else 1e-12, atol=1e-5
            )
            if kind == 0:
                assert_array_equal(found.columns, expected.columns)
                assert_array_equal(found.scores, expected.scores)


@pytest.mark.filterwarnings("ignore:(overflow|invalid)")
def test_columns_beyond_single_precision_are_still_ranked(monkeypatch):
    monkeypatch.setattr(topk, "COLUMNS_FOR_A_SKETCH", 1)
    W, H = np.array([[1.0, 1.0]]), np.array([[1e200, 0.0], [1.0, 2.0], [-1e200, 0.0], [3e200, 1.0], [1e-300, 0.0]])
    found = best_columns(Products(W, H, lambda: topk.Sketch(H)), 4)
    assert found.columns.tolist() == [[3, 0, 1, 4]]


def test_a_row_that_is_not_finite_needs_no_sketch(monkeypatch):
    monkeypatch.setattr(topk, "COLUMNS_FOR_A_SKETCH", 1)
    W, H = np.array([[np.inf, 1.0]]), np.ones((4, 2))
    assert best_columns(Products(W, H, lambda: None), 2).columns.tolist() == [[0, 1]]
