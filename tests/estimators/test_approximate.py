"""Approximate lists, `recommend(approximate=True)`: how many of the best they find, and when lists are exact anyway."""

import copy
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

import halfseen as hs
from halfseen.engines import topk
from halfseen.errors import DataWarning, ParameterError
from tests.estimators.models import fitted, refused, with_factors, with_scores

N, M, K = 60, 3000, 16


def clustered(seed=0, signed=True):
    """Factors of rows and columns around shared centers; columns differ in length, as popular and rare ones do."""
    rng = np.random.default_rng(seed)
    centers = rng.standard_normal((40, K)) if signed else rng.gamma(0.3, 1.0, (40, K))
    W, H = (centers[rng.integers(40, size=size)] + 0.4 * rng.standard_normal((size, K)) for size in (N, M))
    W, H = (W, H) if signed else (np.abs(W), np.abs(H))
    return W, H * rng.gamma(4.0, 0.25, (M, 1))


def model_of(W, H, seed=1):
    """A model with these factors, whose rows have seen from 1 to 19 columns, of which several are their best."""
    rng = np.random.default_rng(seed)
    best = np.argsort(-(W @ H.T), axis=1)
    lists = [np.unique(np.append(best[u, : u % 8], rng.integers(len(H), size=1 + u % 12))) for u in range(len(W))]
    rows, columns = np.repeat(np.arange(len(W)), [one.size for one in lists]), np.concatenate(lists)
    X = sparse.csr_array((0.5 + np.arange(rows.size) % 3, (rows, columns)), (len(W), len(H)))
    with pytest.warns(DataWarning, match="Every column should have a seen cell"):
        model = fitted(X, n_components=W.shape[1], max_iter=2)
    return with_factors(model, W, H), lists


@pytest.fixture
def usearch():
    return pytest.importorskip("usearch", reason="usearch is not installed")


@pytest.fixture
def searched(monkeypatch):
    """Numbers of rows that were looked for in an index."""
    counts, search = [], topk.NeighborIndex.search

    def counting(self, W, count, n_jobs):
        counts.append(len(W))
        return search(self, W, count, n_jobs)

    monkeypatch.setattr(topk.NeighborIndex, "search", counting)
    return counts


@pytest.mark.usefixtures("usearch")
@pytest.mark.parametrize("signed", [True, False])
def test_most_of_the_best_columns_are_found_with_exact_scores(signed, searched):
    """Of the ten best, at least nine: the graph finds 99 of 100 here, and other processors round otherwise when they
    build it. Columns at random would be 10 of 3,000, and those by lengths on a sphere, instead of products, a third.
    """
    W, H = clustered(signed=signed)
    model, seen = model_of(W, H)
    scores = W @ H.T
    for u, columns in enumerate(seen):
        scores[u, columns] = -np.inf
    best = np.argsort(-scores, axis=1)[:, :10]
    ids, found = model.recommend(np.arange(N), n=10, approximate=True)
    assert sum(searched) == N
    assert np.mean([np.isin(theirs, mine).mean() for theirs, mine in zip(best, ids, strict=True)]) >= 0.9
    assert_allclose(found, np.take_along_axis(scores, ids, axis=1), rtol=1e-12)
    assert np.all(np.diff(found, axis=1) <= 0)
    assert all(len(set(one)) == 10 for one in ids.tolist())


@pytest.mark.usefixtures("usearch")
def test_seen_and_excluded_columns_are_never_found(searched):
    W, H = clustered()
    model, seen = model_of(W, H)
    best = np.argsort(-(W @ H.T), axis=1)
    exclude = np.unique(best[:30, 8])
    ids = model.recommend(np.arange(N), n=10, exclude=exclude, approximate=True).ids
    assert not np.isin(ids, exclude).any()
    assert all(not np.isin(ids[u], seen[u]).any() for u in range(N))
    shown = model.recommend(np.arange(N), n=10, exclude_seen=False, approximate=True).ids
    assert sum(searched) == 2 * N
    assert any(np.isin(shown[u], seen[u]).any() for u in range(N))


@pytest.mark.usefixtures("usearch")
@pytest.mark.parametrize("n_jobs", [1, 3])
def test_lists_are_the_same_every_time_together_or_alone(n_jobs):
    W, H = clustered()
    model, again = (model_of(W, H)[0].set_params(n_jobs=jobs) for jobs in (1, n_jobs))
    together = model.recommend(np.arange(N), approximate=True)
    assert_array_equal(together.ids, again.recommend(np.arange(N), approximate=True).ids)
    assert_array_equal(together.scores, again.recommend(np.arange(N), approximate=True).scores)
    alone = [again.recommend([u], approximate=True) for u in range(N)]
    assert_array_equal(together.ids, np.concatenate([one.ids for one in alone]))
    assert_array_equal(together.scores, np.concatenate([one.scores for one in alone]))


@pytest.mark.usefixtures("usearch")
def test_the_index_is_built_once_and_not_copied():
    W, H = clustered()
    model, _ = model_of(W, H)
    expected = model.recommend([0, 1], approximate=True)
    index = model.model_.neighbors
    assert index._graph is not None
    model.recommend([2], approximate=True)
    assert model.model_.neighbors is index
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert other.model_.neighbors._graph is None
        assert other.model_.neighbors.H is other.model_.H
        assert_array_equal(other.recommend([0, 1], approximate=True).ids, expected.ids)


@pytest.mark.usefixtures("usearch")
def test_new_rows_are_looked_for_in_the_index(searched):
    W, H = clustered(signed=False)
    model, _ = model_of(W, H)
    histories = [{5: 1.0, 17: 2.0}, {100: 1.0}]
    mine, exact = model.recommend(histories, approximate=True), model.recommend(histories)
    assert sum(searched) == 2
    assert np.mean([np.isin(one, other).mean() for one, other in zip(exact.ids, mine.ids, strict=True)]) >= 0.9
    assert not np.isin(mine.ids[0], [5, 17]).any()


@pytest.mark.usefixtures("usearch")
def test_rows_that_need_many_columns_are_ranked_exactly(searched):
    W, H = clustered()
    model, _ = model_of(W, H)
    everybody = np.arange(N)
    for asked in (
        {"n": M + 5},
        {"n": 500},
        {"n": 10, "filter_items": [3, 4, 5, 1000]},
        {"n": 10, "filter_items": []},
        {"n": 10, "exclude": np.arange(300)},
    ):
        mine, exact = model.recommend(everybody, **asked, approximate=True), model.recommend(everybody, **asked)
        assert_array_equal(mine.ids, exact.ids)
        assert_array_equal(mine.scores, exact.scores)
    assert not searched
    assert model.recommend([], approximate=True).ids.shape[0] == 0


@pytest.mark.usefixtures("usearch")
@pytest.mark.parametrize("of_rows", [0, 2, 7])
def test_rows_for_which_the_index_finds_too_little_are_ranked_exactly(of_rows, monkeypatch):
    W, H = clustered()
    model, _ = model_of(W, H)
    search = topk.NeighborIndex.search

    def short(self, W, count, n_jobs):
        return [found[: 9 if row % 3 == 0 else None] for row, found in enumerate(search(self, W, count, n_jobs))]

    monkeypatch.setattr(topk.NeighborIndex, "search", short)
    ids, _ = model.recommend(np.arange(of_rows), n=10, approximate=True)
    assert ids.shape[0] == of_rows
    assert (ids >= 0).all()
    if of_rows:
        assert_array_equal(ids[0], model.recommend([0], n=10).ids[0])


@pytest.mark.usefixtures("usearch")
@pytest.mark.filterwarnings("ignore:(overflow|invalid|divide)")
@pytest.mark.parametrize("change", ["row of zeros", "infinite row", "no length", "infinite column"])
def test_factors_that_no_index_can_hold_are_ranked_exactly(change):
    W, H = clustered()
    W[0] = {"row of zeros": 0, "infinite row": np.inf}.get(change, W[0])
    H = H * 0 if change == "no length" else H
    H[7, 0] = np.inf if change == "infinite column" else H[7, 0]
    mine, exact = (
        topk.best_columns(topk.Products(W, H, None, lambda: topk.NeighborIndex(H)), 10, approximate=how)
        for how in (True, False)
    )
    rows = slice(0, 1) if "row" in change else slice(None)
    assert_array_equal(mine.columns[rows], exact.columns[rows])
    assert_array_equal(mine.scores[rows], exact.scores[rows])


@pytest.mark.parametrize("estimator", [hs.ItemGraph(), hs.Popularity()])
def test_models_without_factors_need_no_index(estimator, monkeypatch):
    monkeypatch.setattr(topk, "find_spec", lambda name: None)
    X = sparse.csr_array(np.random.default_rng(0).random((40, 12)) < 0.3, dtype=float)
    model = estimator.fit(X)
    assert_array_equal(model.recommend([0, 1], n=3, approximate=True).ids, model.recommend([0, 1], n=3).ids)


def test_without_the_library_a_message_says_what_to_install(monkeypatch):
    monkeypatch.setattr(topk, "find_spec", lambda name: None)
    model = with_scores(np.arange(10.0).reshape(2, 5))
    with refused(ParameterError, found="none", remedy="pip install 'halfseen[index]'") as caught:
        model.recommend([0], approximate=True)
    assert "--approximate" in caught.value.remedy_cli
    assert model.recommend([0], exclude_seen=False).ids[0, 0] == 4
    with refused(ParameterError, "approximate"):
        model.recommend([0], approximate="yes")
