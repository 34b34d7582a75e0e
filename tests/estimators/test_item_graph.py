"""Item graphs against least squares column by column; popularity against counts."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from halfseen import ItemGraph, Observed, Popularity, observe
from halfseen.engines.threads import Threads
from halfseen.engines.topk import COLUMNS_PER_TILE, Chosen
from halfseen.errors import DataError, ParameterError
from halfseen.graphs import (
    Cells,
    DenseWeights,
    GraphScores,
    Regression,
    Ridge,
    SparseWeights,
    best_penalty,
    cells_of,
    invert,
)
from halfseen.held_out import HeldOut, hold_out, mean_ndcg, relevance_thresholds
from halfseen.metrics import ndcg_at_k, ranking_scores
from tests.estimators.models import refused


def ratings(n=60, m=25, share=0.3, seed=0):
    """Ratings of two kinds of people and two kinds of things."""
    rng = np.random.default_rng(seed)
    liked = (np.arange(n)[:, None] % 2) == (np.arange(m) % 2)
    X = np.where(liked, rng.integers(3, 6, (n, m)), rng.integers(1, 4, (n, m))).astype(float)
    return np.where(rng.random((n, m)) < share * np.where(liked, 1.5, 0.5), X, 0.0)


def penalties(X, l2, exponent):
    squares = (X**2).sum(axis=0)
    mean = squares.mean()
    return l2 * (np.where(squares > 0, squares, mean) / mean) ** exponent


def by_least_squares(X, l2, l2_exponent=0.5, row_exponent=0.5, neighbours=None):
    """B column by column: argmin |R^(1/2) (x_j - X b)|^2 + sum_i l_i b_i^2 with b_j = 0, as an augmented system."""
    counts = (X != 0).sum(axis=1)
    scaled = X * ((np.maximum(counts, 1) / counts.mean()) ** (-row_exponent / 2))[:, None]
    l = penalties(scaled, l2, l2_exponent)  # noqa: E741
    m = X.shape[1]
    B = np.zeros((m, m))
    for j in range(m):
        others = np.delete(np.arange(m), j) if neighbours is None else neighbours(scaled, j)
        rows = np.vstack([scaled[:, others], np.diag(np.sqrt(l[others]))])
        target = np.append(scaled[:, j], np.zeros(others.size))
        B[others, j] = np.linalg.lstsq(rows, target, rcond=None)[0]
    return B


@pytest.mark.parametrize("exponents", [(0.0, 0.0), (0.5, 0.5), (1.0, 0.3)])
@pytest.mark.parametrize("shape", [(60, 25), (20, 45)], ids=["tall", "wide"])
def test_weights_are_the_least_squares_solution_of_each_column(shape, exponents):
    X = ratings(*shape)
    X[:, 3] = 0
    model = ItemGraph(l2=7.0, l2_exponent=exponents[0], row_exponent=exponents[1]).fit(X)
    expected = by_least_squares(X, 7.0, *exponents)
    assert model.weights_.dtype == np.float32
    assert_allclose(model.weights_, expected, rtol=1e-5, atol=1e-6)
    assert_array_equal(model.weights_.diagonal(), 0)
    assert_allclose(model.predict(np.arange(9), 4), X[:9] @ expected[:, 4], rtol=1e-5, atol=1e-5)


def test_without_exponents_it_is_the_published_closed_form():
    X = ratings()
    P = np.linalg.inv(X.T @ X + 3.0 * np.eye(25))
    expected = P / -np.diag(P)
    np.fill_diagonal(expected, 0)
    model = ItemGraph(l2=3.0, l2_exponent=0, row_exponent=0).fit(X)
    assert_allclose(model.weights_, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("values", "of"), [("log", np.log1p), ("presence", lambda x: (x > 0) * 1.0)])
def test_values_may_be_logarithms_or_presence(values, of):
    X = ratings()
    found = ItemGraph(values=values, l2=2.0).fit(X).weights_
    assert_allclose(found, by_least_squares(of(X), 2.0), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("shape", [(90, 25), (60, 45)], ids=["tall", "wide"])
def test_as_many_neighbours_as_columns_are_all(shape):
    X = ratings(*shape, share=0.6)
    assert (X.T @ X > 0).all()  # a column is no neighbour of one that it is never seen with
    cells = cells_of(observe(X, unseen="zero"), "values")
    ridge = Ridge(0.5, 0.5, shape[1] - 1)
    with Threads(2) as threads:
        few = Regression(cells, shape[1], ridge, threads).solve(5.0).matrix
        all_of_them = Regression(cells, shape[1], replace(ridge, width=None), threads).solve(5.0).matrix
    assert sparse.issparse(few)
    assert_allclose(few.toarray(), all_of_them, rtol=1e-4, atol=2e-6)
    assert_array_equal(ItemGraph(l2=5.0).fit(X).weights_, all_of_them)
    assert_array_equal(ItemGraph(l2=5.0, n_neighbors=shape[1]).fit(X).weights_, all_of_them)


def test_neighbours_are_those_of_the_largest_cosines():
    X = ratings()

    def strongest(scaled, j):
        G = scaled.T @ scaled
        strengths = np.abs(G[:, j]) / np.sqrt(G.diagonal() * G[j, j])
        strengths[j] = 0
        return np.sort(np.argsort(-strengths, kind="stable")[:6])

    found = ItemGraph(l2=5.0, n_neighbors=6).fit(X).weights_.toarray()
    assert_allclose(found, by_least_squares(X, 5.0, neighbours=strongest), rtol=1e-4, atol=1e-6)
    assert ((found != 0).sum(axis=0) <= 6).all()


def test_the_penalty_is_found_by_held_out_cells():
    X = ratings(200, 40)
    model = ItemGraph(random_state=0).fit(X)
    tried, ndcg = model.trace_["l2"], model.trace_["objective"]
    assert model.n_iter_ == tried.size >= 3
    best = tried[ndcg.argmax()]
    assert best / 2 < model.l2_ < 2 * best
    assert 0 < ndcg.max() <= 1
    assert ItemGraph(random_state=0).fit(X).l2_ == model.l2_
    assert ItemGraph(l2=9.0).fit(X).n_iter_ == 0


def test_the_search_brackets_the_top():
    met = []

    def score(l2):
        met.append(l2)
        return -((np.log2(l2) - np.log2(37.0)) ** 2)

    for start in (1.0, 30.0, 1000.0):
        met.clear()
        assert best_penalty(score, start) == pytest.approx(37.0)  # of a parabola, exactly
        assert len(met) == len(set(met))


def test_wide_counts_choose_their_own_scale():
    rng = np.random.default_rng(0)
    X = ratings(150, 30) * np.exp(rng.normal(0, 3, (150, 30)))
    chosen = ItemGraph(random_state=0).fit(X)
    assert chosen.values_ in ("log", "presence")  # a few large counts rule the sums of squares
    assert ItemGraph(random_state=0).fit(ratings()).values_ == "values"
    with refused(DataError, found="-"):
        ItemGraph(values="log").fit(sparse.csr_array(np.where(X > 0, -X, 0)))
    assert ItemGraph(l2=1.0).fit(sparse.csr_array(-X)).values_ == "values"


def test_held_out_ndcg_is_that_of_the_metrics():
    X = observe(ratings(50, 30), unseen="zero")
    random = np.random.RandomState(0)
    ((inner, held),) = hold_out(X, random)
    train, test = X.select_cells(inner), X.select_cells(held)
    assert_array_equal(np.sort(np.append(inner, held)), np.arange(X.nnz))
    assert (train.seen_per_row()[test.seen_per_row() > 0] > 0).all()
    held_out = HeldOut.draw(test, 1000, random)
    scores = np.random.default_rng(0).random((50, 30))
    ranked = np.argsort(-np.where(train.to_dense() > 0, -np.inf, scores), axis=1, kind="stable")
    width = 30 - train.seen_per_row().max()
    found = held_out.ndcg(held_out.values_at(ranked[held_out.rows, :width]))
    by_metric = ranking_scores(scores, train, test, int(width), list(held_out.thresholds)).ndcg
    is_full = np.array(
        [(test.values[a:b] > 0).sum() <= width for a, b in zip(test.indptr, test.indptr[1:], strict=False)]
    )
    assert_allclose(found[:, is_full[held_out.rows]], by_metric[:, held_out.rows][:, is_full[held_out.rows]])
    assert mean_ndcg(found) == pytest.approx(np.nanmean(found, axis=1).mean())
    assert mean_ndcg(np.full((2, 3), np.nan)) == 0


def test_cells_are_held_out_once_each():
    X = observe(ratings(), unseen="zero")
    held = [held for _, held in hold_out(X, np.random.RandomState(0), 3)]
    assert np.unique(np.concatenate(held)).size == sum(map(len, held)) == pytest.approx(0.6 * X.nnz, abs=9)
    assert hold_out(observe(np.eye(3), unseen="zero"), np.random.RandomState(0)) == []


def test_thresholds_of_stars_and_of_presence():
    stars = np.repeat([1.0, 2.0, 3.0, 4.0, 5.0], [56, 108, 261, 349, 226])
    assert relevance_thresholds(stars).tolist() == [1, 3, 4, 5]
    assert relevance_thresholds(np.ones(9)).tolist() == [1]
    assert relevance_thresholds(np.array([0.0, 0, 2])).tolist() == [2]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_inverses_in_place(dtype):
    rng = np.random.default_rng(0)
    A = rng.normal(size=(150, 200))
    A = (A @ A.T + np.eye(150)).astype(dtype)
    upper = np.triu(A)
    invert(upper)
    assert_allclose(upper @ A, np.eye(150), atol=2e-3 if dtype == np.float32 else 1e-10)
    assert_array_equal(upper, upper.T)
    with pytest.raises(np.linalg.LinAlgError):
        invert(-np.eye(3).astype(dtype))


@pytest.mark.parametrize("is_compiled", [False, True])
@pytest.mark.parametrize("is_sparse", [False, True])
def test_one_row_is_scored_as_among_many_and_as_in_any_tile(is_sparse, is_compiled, monkeypatch):
    """To the last bit, whether one row is summed by a compiled loop or before one is loaded."""
    monkeypatch.setattr("halfseen.graphs.is_for_kernel", lambda x: is_compiled or len(x) > 1)
    rng = np.random.default_rng(0)
    n, m = 7, 500
    B = np.where(rng.random((m, m)) < 0.1, rng.normal(size=(m, m)), 0).astype(np.float32)
    by_row = sparse.csr_array(B)
    weights = SparseWeights(by_row.indptr, by_row.indices, by_row.data, m) if is_sparse else DenseWeights(B)
    X = sparse.csr_array(np.where(rng.random((n, m)) < 0.2, rng.random((n, m)), 0).astype(np.float32))
    cells = Cells(X.indptr, X.indices, X.data)
    whole = GraphScores(cells, weights).tile(slice(0, n), slice(0, COLUMNS_PER_TILE))
    assert_allclose(whole, X.toarray() @ B, rtol=1e-4, atol=1e-4)
    for row in range(n):
        one = GraphScores(cells.rows(np.array([row])), weights)
        assert_array_equal(one.tile(slice(0, 1), slice(0, m))[0], whole[row])
        assert_array_equal(one.tile(slice(0, 1), slice(100, 200))[0], whole[row, 100:200])
    chosen = np.array([3, 77, 78, 499])
    some = GraphScores(cells, weights).among(chosen)
    assert isinstance(some, Chosen)
    assert some.shape == (n, 4)
    assert_array_equal(some.tile(slice(2, 5), slice(1, 3)), whole[2:5, [77, 78]])
    assert_array_equal(some.among(np.array([0, 3])).tile(slice(0, n), slice(0, 2)), whole[:, [3, 499]])


def test_similar_columns_are_rows_of_the_weights():
    X = ratings()
    model = ItemGraph(l2=5.0).fit(X)
    found = model.similar_items([4], n=24)
    assert_allclose(found.scores[0], model.weights_[4, found.ids[0]])
    assert (np.diff(found.scores[0]) <= 0).all()
    alike = model.similar_users([4], n=59)
    unit = X / np.linalg.norm(X, axis=1)[:, None]
    assert_allclose(alike.scores[0], (unit @ unit[4])[alike.ids[0]], rtol=1e-5, atol=1e-6)


def test_explanations_are_values_times_weights():
    X = ratings()
    model = ItemGraph(l2=5.0).fit(X)
    explained = model.explain(3, 5, n=99)
    assert_allclose(explained.contributions, X[3, explained.items] * model.weights_[explained.items, 5], rtol=1e-5)
    few = ItemGraph(l2=5.0, n_neighbors=5).fit(X).explain(3, 5, n=99)
    assert few.contributions.sum() == pytest.approx(few.score, rel=1e-5)


def test_weights_of_cells_count_as_often():
    X = ratings()
    rows, columns = np.nonzero(X)
    doubled = Observed.from_cells(
        rows, columns, X[rows, columns], X.shape, weights=np.full(rows.size, 2.0), unseen="zero"
    )
    one, two = ItemGraph(l2=8.0).fit(doubled), ItemGraph(l2=8.0).fit(2 * X)
    assert_allclose(one.weights_, two.weights_, rtol=1e-5)
    assert_allclose(one.predict([3, 4], 5), two.predict([3, 4], 5), rtol=1e-5)


def test_popularity_counts_or_sums():
    X = ratings()
    assert_array_equal(Popularity().fit(X).popularity_, (X > 0).sum(axis=0))
    assert_array_equal(Popularity("values").fit(X).popularity_, X.sum(axis=0))
    model = Popularity().fit(X)
    order = np.argsort(-model.popularity_, kind="stable")
    assert model.recommend([0], n=25, exclude_seen=False).ids[0].tolist() == order.tolist()
    test = np.where(ratings(seed=1) * (X == 0) > 0, 1.0, 0.0)
    by_array = ndcg_at_k(np.tile(model.popularity_, (60, 1)), observe(X, unseen="zero"), observe(test, unseen="zero"))
    assert ndcg_at_k(model, None, observe(test, unseen="zero")) == pytest.approx(by_array)


def test_it_ranks_better_than_popularity():
    X = ratings(300, 60)
    rng = np.random.default_rng(0)
    is_test = rng.random(X.shape) < 0.2
    train, test = observe(np.where(is_test, 0, X), unseen="zero"), observe(np.where(is_test, X, 0), unseen="zero")
    graph, popular = (
        ndcg_at_k(model.fit(train), None, test, 10) for model in (ItemGraph(random_state=0), Popularity())
    )
    assert graph > popular + 0.1


def test_parameters_are_refused_by_name():
    for parameters, name in (
        ({"values": "stars"}, "values"), ({"l2": 0.0}, "l2"), ({"l2_exponent": -1}, "l2_exponent"),
        ({"n_neighbors": 0}, "n_neighbors"), ({"n_neighbors": "few"}, "n_neighbors"), ({"engine": "cuda"}, "engine"),
    ):  # fmt: skip
        with refused(ParameterError, parameter=name):
            ItemGraph(**parameters).fit(ratings())
    with refused(ParameterError, parameter="l2", found="a mean of 1e-300"):
        ItemGraph(l2=1e-300).fit(np.ones((60, 25)))
    assert ItemGraph(n_neighbors="all", l2=1.0).fit(ratings()).weights_.shape == (25, 25)


def test_frames_keep_their_labels():
    frame = pd.DataFrame(
        {"user": ["a", "a", "b", "b", "c"], "item": ["x", "y", "x", "y", "x"], "rating": [5.0, 4, 4, 5, 3]}
    )
    model = ItemGraph(l2=1.0).fit(frame)
    assert model.recommend(["c"], n=1).ids.tolist() == [["y"]]
    assert model.column_labels_.tolist() == ["x", "y"]
