"""Blends: standardised scores, weights by held-out cells, parameters of the models."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

import halfseen
from halfseen import Blend, ImplicitMF, ItemGraph, Popularity, SquaredOrdNMF, observe
from halfseen.blending import Blended, Candidates, Columns, Standardized, find_weights, standard_error
from halfseen.engines import topk
from halfseen.engines.topk import DenseScores, Products
from halfseen.errors import ParameterError
from halfseen.held_out import HeldOut, hold_out, mean_ndcg
from halfseen.metrics import ranking_scores
from tests.estimators.models import refused
from tests.estimators.test_item_graph import ratings

SMALL = [SquaredOrdNMF(3, max_iter=20), ImplicitMF(4, max_iter=8), ItemGraph()]


def standardised(x):
    deviation = x.std(axis=1, keepdims=True)
    return (x - x.mean(axis=1, keepdims=True)) / np.where(deviation > 0, deviation, 1)


def all_of(scores):
    return scores.tile(slice(0, scores.shape[0]), slice(0, scores.shape[1]))


@pytest.mark.parametrize("kind", ["factors", "array"])
def test_scores_are_standardised_over_all_columns(kind, monkeypatch):
    rng = np.random.default_rng(0)
    W, H = rng.gamma(1, 1, (9, 4)), rng.gamma(1, 1, (23, 4))
    W[3] = 0
    scores = Products(W, H) if kind == "factors" else DenseScores(W @ H.T)
    expected = standardised(W @ H.T)
    assert_array_equal(expected[3], 0)
    assert_allclose(all_of(Standardized(scores)), expected, atol=1e-12)
    monkeypatch.setattr("halfseen.blending.COLUMNS_PER_TILE", 5)  # moments go over several tiles
    assert_allclose(Standardized(scores).tile(slice(2, 6), slice(7, 11)), expected[2:6, 7:11], atol=1e-12)
    monkeypatch.setattr(topk, "COLUMNS_PER_TILE", 6)
    chosen = np.array([0, 8, 22])
    assert_allclose(all_of(Standardized(scores).among(chosen)), expected[:, chosen], atol=1e-12)


def test_moments_of_products_follow_from_those_of_the_columns():
    rng = np.random.default_rng(1)
    W, H = rng.normal(size=(5, 3)), rng.normal(size=(40, 3)) + 2
    mean, deviation = Columns.of(H).moments(W)
    assert_allclose(mean, (W @ H.T).mean(axis=1))
    assert_allclose(deviation, (W @ H.T).std(axis=1))


def test_blended_scores_are_weighted_sums():
    rng = np.random.default_rng(2)
    parts = [rng.normal(size=(6, 11)) * 10**power + power for power in range(3)]
    weights = np.array([0.5, 0.0, 0.5])
    blended = Blended([Standardized(DenseScores(part)) for part in parts], weights)
    expected = sum(weight * standardised(part) for weight, part in zip(weights, parts, strict=True))
    assert_allclose(all_of(blended), expected, atol=1e-12)
    assert_allclose(all_of(blended.among(np.array([1, 9]))), expected[:, [1, 9]], atol=1e-12)


def test_the_model_blends_its_models():
    X = ratings()
    blend = Blend(SMALL, random_state=0).fit(X)
    rows = np.arange(60)
    parts = [
        standardised(all_of(model.scores(model.known_rows(rows))).astype(float)) for model in blend.models_.values()
    ]
    expected = sum(weight * part for weight, part in zip(blend.weights_, parts, strict=True))
    assert_allclose(all_of(blend.model_.scores(blend.model_.known_rows(rows))), expected, atol=1e-5)
    assert blend.weights_.sum() == pytest.approx(1)
    similar = [standardised(all_of(model.similarities(np.array([2, 4]), "column")).astype(float))
               for model in blend.models_.values()]  # fmt: skip
    expected = sum(weight * part for weight, part in zip(blend.weights_, similar, strict=True))
    assert_allclose(all_of(blend.model_.similarities(np.array([2, 4]), "column")), expected, atol=1e-5)


def test_models_of_the_blend_are_fits_to_all_cells():
    X = ratings()
    blend = Blend([ImplicitMF(3, random_state=3), ItemGraph(l2=4.0)], random_state=0).fit(X)
    alone = ImplicitMF(3, random_state=3).fit(observe(X, unseen="zero"))
    assert_array_equal(blend.models_["implicitmf"].W, alone.W_)
    assert_array_equal(blend.models_["itemgraph"].weights.array, ItemGraph(l2=4.0).fit(X).weights_)
    assert blend.models_["implicitmf"].seen is blend.model_.seen


def judged(n=120, m=50, seed=0):
    """Models of training cells, and the cells held out of it."""
    X = observe(ratings(n, m, seed=seed), unseen="zero")
    random = np.random.RandomState(seed)
    ((inner, held),) = hold_out(X, random)
    train = X.select_cells(inner)
    models = [clone(model).set_params(**extra).fit(train) for model, extra in
              zip(SMALL, ({"random_state": 0}, {"random_state": 0}, {"l2": 9.0}), strict=True)]  # fmt: skip
    return train, X.select_cells(held), HeldOut.draw(X.select_cells(held), 1000, random), models


def test_weights_are_as_good_as_those_of_a_grid():
    _, _, held_out, models = judged()
    candidates = Candidates.find([model.model_ for model in models], held_out, models[0].seen_, 1)

    def score(weights):
        return mean_ndcg(candidates.ndcg(weights, 1))

    weights, path = find_weights(score, 3)
    steps = np.arange(21) / 20
    grid = [np.array([a, b, max(0.0, 1 - a - b)]) for a in steps for b in steps if a + b <= 1 + 1e-9]
    assert path[-1] >= max(map(score, grid)) - 0.002
    assert path[-1] == pytest.approx(score(weights), abs=1e-4)
    assert (np.diff(path) > 0).all()


def test_candidates_give_the_metrics_ndcg():
    train, test, held_out, models = judged()
    candidates = Candidates.find([model.model_ for model in models], held_out, models[0].seen_, 2)
    weights = np.array([0.5, 0.2, 0.3])
    rows = np.arange(120)
    x = sum(weight * standardised(all_of(model.model_.scores(model.model_.known_rows(rows))).astype(float))
            for weight, model in zip(weights, models, strict=True))  # fmt: skip
    expected = ranking_scores(x, train, test, 100, list(held_out.thresholds)).ndcg
    assert_allclose(candidates.ndcg(weights, 1), expected[:, held_out.rows], atol=2e-3)
    assert mean_ndcg(candidates.ndcg(weights, 1)) == pytest.approx(np.nanmean(expected, axis=1).mean(), abs=1e-4)


def test_candidates_of_many_columns_are_the_best_of_each_model(monkeypatch):
    monkeypatch.setattr("halfseen.blending.CANDIDATES", 7)
    monkeypatch.setattr("halfseen.blending.SCORES_PER_TILE", 500)
    _, _, held_out, models = judged()
    records = [model.model_ for model in models]
    found = Candidates.find(records, held_out, models[0].seen_, 2)
    for row in (0, 40, 100):
        kept = np.isfinite(found.scores[0, row])
        assert 7 <= kept.sum() <= 21
        for place, record in enumerate(records):
            x = standardised(all_of(record.scores(record.known_rows(held_out.rows[[row]]))).astype(float))[0]
            x[models[0].seen_.in_rows(held_out.rows[[row]])[1]] = -np.inf
            assert set(np.sort(x)[-7:].astype(np.float32).round(4)) <= set(found.scores[place, row][kept].round(4))


def test_a_search_climbs_a_hill():
    top = np.array([0.55, 0.3, 0.1, 0.05])
    weights, _ = find_weights(lambda one: -float(((one - top) ** 2).sum()), 4)
    assert_allclose(weights, top, atol=0.03)
    assert find_weights(lambda one: 1.0, 1)[0].tolist() == [1.0]
    assert find_weights(lambda one: float(one[1]), 2)[0].tolist() == [0.0, 1.0]


def test_quality_tells_of_each_model():
    blend = Blend(SMALL, random_state=0).fit(ratings(150, 40))
    quality = blend.quality_
    assert quality["model"].tolist() == ["squaredordnmf", "implicitmf", "itemgraph", "blend"]
    assert quality["ndcg"][-1] >= quality["ndcg"][:-1].max() - 1e-9
    assert (quality["standard_error"] > 0).all()
    assert_array_equal(quality["weight"], [*blend.weights_, 1])
    assert blend.trace_["objective"][-1] == pytest.approx(quality["ndcg"][-1], abs=1e-4)
    alone = Blend([ItemGraph()], random_state=0).fit(ratings())
    assert np.isnan(alone.quality_["ndcg"]).all()  # nothing to choose


def test_standard_errors_are_those_of_means():
    rng = np.random.default_rng(0)
    x = rng.random((1, 50))
    x[0, 7] = np.nan
    given = x[~np.isnan(x)]
    assert standard_error(x) == pytest.approx(given.std(ddof=1) / np.sqrt(given.size))


def test_a_blend_is_better_than_its_models_where_they_see_different_things():
    rng = np.random.default_rng(0)
    n, m = 400, 80
    scores = [rng.normal(size=(n, m)) for _ in range(2)]
    relevant = (scores[0] + scores[1] + rng.normal(size=(n, m))) > 3
    held_out = HeldOut(np.arange(n), observe(relevant * 1.0, unseen="zero"), np.ones(1))
    values = np.where(relevant, 1.0, -np.inf)
    candidates = Candidates(np.array([standardised(one) for one in scores], np.float32), values, held_out)
    weights, path = find_weights(lambda one: mean_ndcg(candidates.ndcg(one, 1)), 2)
    assert_allclose(weights, 0.5, atol=0.1)
    assert path[-1] > max(mean_ndcg(candidates.ndcg(one, 1)) for one in np.eye(2)) + 0.03


def test_parameters_of_models_are_set_by_name():
    blend = Blend([ItemGraph(), ("x", 1)])
    with refused(ParameterError, parameter="models"):
        blend.fit(ratings())
    for wrong in (
        "itemgraph",
        [],
        [1],
        [ItemGraph],
        [("a", ItemGraph()), ("a", Popularity())],
        [("a__b", ItemGraph())],
    ):
        with refused(ParameterError, parameter="models"):
            Blend(wrong).fit(ratings())
    blend = Blend([ItemGraph(), SquaredOrdNMF(2)])
    assert blend.get_params()["squaredordnmf__n_components"] == 2
    blend.set_params(itemgraph__l2=3.0, random_state=4)
    assert blend.models[0].l2 == 3.0
    assert blend.random_state == 4
    blend.set_params(itemgraph=Popularity())
    assert isinstance(blend.models[0], Popularity)
    named = clone(Blend([("one", ItemGraph()), ("two", ItemGraph(l2=2.0))])).set_params(one__l2=5.0)
    assert [model.l2 for _, model in named.models] == [5.0, 2.0]
    assert list(named.fit(ratings()).models_) == ["one", "two"]
    assert list(Blend([ItemGraph(l2=1.0), ItemGraph(l2=2.0)]).fit(ratings()).models_) == ["itemgraph-1", "itemgraph-2"]
    with pytest.raises(ValueError, match="squaredordnmf"):
        blend.set_params(squaredordnfm__l2=1.0)
    with pytest.raises(ValueError, match="n_components"):
        blend.set_params(squaredordnmf__rank=1)


def test_fits_leave_the_models_given_as_they_were():
    graph = ItemGraph()
    Blend([graph, Popularity()], random_state=0).fit(ratings())
    assert not hasattr(graph, "model_")
    assert graph.l2 is None


def test_one_model_alone_and_a_blend_of_blends(tmp_path):
    X = ratings()
    alone = Blend([ItemGraph(l2=3.0)]).fit(X)
    assert alone.weights_.tolist() == [1.0]
    assert_array_equal(alone.recommend([0, 1], n=5).ids, ItemGraph(l2=3.0).fit(X).recommend([0, 1], n=5).ids)
    nested = Blend([Blend([ItemGraph(l2=3.0), Popularity()]), Popularity("values")], random_state=0).fit(X)
    nested.save(tmp_path / "nested.hs")
    loaded = halfseen.load(tmp_path / "nested.hs")
    assert_array_equal(loaded.recommend([0, 1], n=5).ids, nested.recommend([0, 1], n=5).ids)
    assert_array_equal(loaded.quality_["ndcg"], nested.quality_["ndcg"])
    for blend in (nested, loaded):  # one copy of the cells for all
        assert all(
            one.seen is blend.seen_ for model in blend.models_.values() for one in getattr(model, "models", [model])
        )


def test_without_cells_to_hold_out_all_weigh_the_same():
    blend = Blend([ItemGraph(), Popularity()]).fit(np.eye(4))
    assert blend.weights_.tolist() == [0.5, 0.5]
    assert np.isnan(blend.quality_["ndcg"]).all()


def test_records_that_do_not_fit_together_are_refused():
    model = Blend([ItemGraph(l2=3.0), Popularity()], random_state=0).fit(ratings()).model_
    with pytest.raises(ValueError, match="2 models"):
        replace(model, models=model.models[:1]).check_state("model")
