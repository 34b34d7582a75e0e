"""What a model does by its engine: ranking on a device that offers it, and refusals where it can't run."""

import os
import sys
from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

import halfseen as hs
from halfseen import engines
from halfseen.engines.base import Best
from halfseen.engines.cpu import CpuEngine
from halfseen.engines.topk import DenseScores, Products, best_columns
from halfseen.errors import EngineError
from halfseen.metrics import ndcg_at_k, ranking_scores
from tests.estimators.models import refused


class Device(CpuEngine):
    """A device that ranks by itself: all scores are made, and sorted."""

    name = "cuda"
    offers = CpuEngine.offers | {"top_k"}
    ranked = 0
    room = np.inf

    def check_memory(self, observed, n_components, likelihood):
        if observed.nnz * n_components > self.room:
            raise EngineError("There must be room.", parameter="engine")

    def place(self, observed, *sides, shards=None):
        assert observed.nnz < 1000
        return super().place(observed, *sides)

    def top_k(self, W, H, n, hidden):
        type(self).ranked += 1
        x = W @ H.T
        for row, (first, last) in enumerate(pairwise(hidden[0]) if hidden is not None else ()):
            x[row, hidden[1][first:last]] = -np.inf
        columns = np.argsort(-x, axis=1, kind="stable")[:, :n]
        scores = np.take_along_axis(x, columns, axis=1)
        is_left = scores > -np.inf
        return Best(np.where(is_left, columns, -1), np.where(is_left, scores, np.nan))


@pytest.fixture
def device(monkeypatch):
    monkeypatch.setitem(engines.ENGINES, "cuda", Device)
    monkeypatch.setattr(Device, "ranked", 0)
    return Device


@pytest.fixture
def no_gpu(monkeypatch):
    """A machine without PyTorch."""
    monkeypatch.setitem(sys.modules, "torch", None)


def counts():
    random = np.random.default_rng(0)
    X = random.poisson(random.gamma(1.0, 1.0, (30, 2)) @ random.gamma(1.0, 1.0, (2, 12))).astype(float)
    X[3] = 0  # nothing seen
    X[4] = 1  # all seen
    return X


def same(one, other):
    for mine, theirs in zip(one, other, strict=True):
        assert_array_equal(mine, theirs)


@pytest.fixture(scope="module")
def models():
    """The same model, for the cpu and for another engine."""
    model = hs.PoissonFactorization(3, max_iter=5, tol=0.0, random_state=0).fit(counts())
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(engines.ENGINES, "cuda", Device)
        return model, hs.PoissonFactorization(3, max_iter=5, tol=0.0, random_state=0, engine="cuda").fit(counts())


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"n": 3},
        {"exclude_seen": False},
        {"items": [1, 4, 5, 9]},
        {"exclude": [0, 7], "n": 100},
        {"items": [2, 3], "exclude": [3], "exclude_seen": False},
        {"items": [2], "exclude": [2]},
    ],
)
def test_recommend_ranks_on_the_device_as_on_the_cpu(models, device, asked):
    cpu, other = models
    for rows in ([2], np.arange(30), [5, 3, 3, 4], [{1: 2, 4: 1}, {}], []):
        same(other.recommend(rows, **asked), cpu.recommend(rows, **asked))
    assert device.ranked == 5


def test_metrics_rank_on_the_device_as_on_the_cpu(models, device):
    cpu, other = models
    test = sparse.csr_array((counts() == 0) * np.random.default_rng(1).integers(0, 3, (30, 12)))
    same(ranking_scores(other, None, test, k=4), ranking_scores(cpu, None, test, k=4))
    assert device.ranked == 1
    ndcg_at_k(
        other.W_ @ other.H_.T, sparse.csr_array(counts()), test, k=4
    )  # scores that are there are ranked where they are
    assert device.ranked == 1


def test_only_products_go_to_the_device_and_in_one_precision(device):
    random = np.random.default_rng(0)
    W, H = random.random((5, 2)).astype(np.float32), random.random((7, 2))
    same(best_columns(Products(W, H), 3, engine="cuda"), best_columns(Products(W, H), 3))
    same(best_columns(DenseScores(W @ H.T), 3, engine="cuda"), best_columns(DenseScores(W @ H.T), 3))
    assert device.ranked == 1


def test_listed_rows_are_those_seen(models):
    seen = models[0].seen_
    for rows in (np.arange(30), np.array([7]), np.arange(4, 9), np.array([5, 4]), np.array([2, 2]), np.array([], int)):
        indptr, columns = seen.in_rows(rows)
        expected = [np.flatnonzero(counts()[row]).tolist() for row in rows]
        assert [columns[a:b].tolist() for a, b in pairwise(indptr)] == expected


def test_a_model_of_a_gpu_predicts_without_one_and_says_what_else_it_needs(models, no_gpu, tmp_path):
    """As loaded on another machine."""
    models[1].save(tmp_path / "model.hs")
    model = hs.load(tmp_path / "model.hs")
    assert model.engine == "cuda"
    same([model.predict([0, 1], [2, 3])], [models[0].predict([0, 1], [2, 3])])
    assert model.inverse_transform(model.W_).shape == (30, 12)
    assert np.isfinite(model.log_likelihood(counts()))
    needing = [
        lambda: model.recommend([0]),
        lambda: model.transform(counts()),
        lambda: model.score(counts()),
        lambda: ndcg_at_k(model, None, 1.0 * (counts() == 0)),
        lambda: model.fit(counts()),
    ]
    for ask in needing:
        with refused(EngineError, "engine", remedy='`engine="cpu"`') as caught:
            ask()
        assert "halfseen[cuda]" in str(caught.value)
    same(model.set_params(engine="cpu").recommend([0, 1]), models[0].recommend([0, 1]))


def test_a_fit_without_room_is_refused_before_anything_is_placed(device, monkeypatch):
    monkeypatch.setattr(device, "room", 100)
    monkeypatch.setattr(device, "place", lambda *_: pytest.fail("placed"))
    with pytest.raises(EngineError, match="room"):
        hs.WeightedNMF(2, engine="cuda").fit(counts())


def test_rank_search_fits_one_after_the_other_on_a_device(device):
    def search(engine):
        model = hs.PoissonFactorization(max_iter=3, tol=0.0, random_state=0, engine=engine)
        return hs.RankSearch(model, ranks=[1, 2], n_folds=2, metric="ndcg@3", random_state=0, n_jobs=2).fit(counts())

    assert_array_equal(search("cuda").results_["mean"], search("cpu").results_["mean"])


def test_the_cuda_engine_ranks_as_the_cpu(models, monkeypatch):
    """On a GPU, or in Triton's interpreter."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    where = "cuda" if torch.cuda.is_available() else "cpu"
    if where == "cpu":
        os.environ["TRITON_INTERPRET"] = "1"  # also for other tests: Triton is loaded once
    pytest.importorskip("triton", reason="Triton is not installed")
    from halfseen.engines import cuda

    monkeypatch.setitem(engines.ENGINES, "cuda", lambda _: cuda.CudaEngine(where))
    cpu, other = models
    for height in (1 << 26, 40):
        monkeypatch.setattr(cuda, "ENTRIES_PER_RANKING", height)
        for asked in ({}, {"items": [1, 4, 9]}, {"exclude": [0, 7], "n": 100}, {"exclude_seen": False}):
            mine, theirs = (model.recommend(np.arange(30), **asked) for model in (other, cpu))
            assert_array_equal(mine.ids, theirs.ids)
            assert_allclose(mine.scores, theirs.scores, rtol=1e-12)
    W, H = np.ones((3, 2), np.float32), np.ones((70, 2), np.float32)  # all equal: the first columns
    hidden = np.array([0, 1, 1, 3]), np.array([0, 0, 2])
    found = best_columns(Products(W, H), 3, hidden, engine="cuda")
    assert found.columns.tolist() == [[1, 2, 3], [0, 1, 2], [1, 3, 4]]
    same(found, best_columns(Products(W, H), 3, hidden))
    assert best_columns(Products(W, H[:0]), 3, engine="cuda").columns.shape == (3, 0)
    assert best_columns(Products(W[:0], H), 3, engine="cuda").columns.shape == (0, 3)
