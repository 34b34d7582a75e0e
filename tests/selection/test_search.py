"""Search: the candidates, the rungs, what is chosen, and what is refused."""

import json
import math
import os
import pickle
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from scipy.stats import loguniform, qmc, randint, uniform
from sklearn.base import BaseEstimator, clone

import halfseen
from halfseen import (
    OrdinalMF,
    OrdNMF,
    PoissonFactorization,
    Quantizer,
    RankOneNMF,
    RankSearch,
    RoundMF,
    Search,
    SquaredOrdNMF,
    TableImputer,
    UncoupledNMF,
    WeightedNMF,
    observe,
)
from halfseen.errors import DataError, ParameterError
from halfseen.io.splits import k_folds
from halfseen.selection.search import default_parameters, halving, list_candidates
from tests.estimators.models import refused
from tests.selection.data import counts, stars, table

GRID = {"n_components": [1, 2, 3], "l2": [0.0, 1.0, 100.0]}


def settled(**further):
    """WeightedNMF as quick as it gets."""
    return WeightedNMF(**{"loss": "frobenius", "accelerate": True, "max_iter": 2000, "tol": 1e-6, **further})


# The candidates.


def test_lists_give_all_combinations():
    found = list_candidates({"l2": [1, 2], "loss": ["a", "b", "c"]}, WeightedNMF(), None, 0)
    assert sorted((one["l2"], one["loss"]) for one in found) == [(l2, loss) for l2 in (1, 2) for loss in "abc"]


def test_candidates_are_spread_more_evenly_than_random_ones():
    names = {"l2": uniform(), "prior_rate": uniform()}
    for seed in range(5):
        found = list_candidates(names, OrdNMF(), 64, seed)
        points = np.array([[one["l2"], one["prior_rate"]] for one in found])
        by_chance = np.random.default_rng(seed).random((100, 64, 2))
        assert qmc.discrepancy(points) < min(map(qmc.discrepancy, by_chance))


def test_more_candidates_begin_with_the_same_ones():
    names = {"n_components": loguniform(5, 500), "l2": loguniform(1, 100), "level_weight": ["levels", None]}
    few, many = (list_candidates(names, SquaredOrdNMF(), n, 3) for n in (7, 30))
    assert (len(few), len(many)) == (7, 30)
    assert few == many[:7]
    assert list_candidates(names, SquaredOrdNMF(), 7, 4) != few


def test_ranges_are_kept_and_whole_where_the_parameter_is():
    found = list_candidates({"n_components": loguniform(5, 500), "l2": loguniform(1, 100)}, SquaredOrdNMF(), 200, 0)
    ranks, l2 = ([one[name] for one in found] for name in ("n_components", "l2"))
    assert all(type(rank) is int and 5 <= rank <= 500 for rank in ranks)
    assert all(type(one) is float and 1 <= one <= 100 for one in l2)
    # on a logarithmic scale a half is below the geometric mean
    assert sum(rank < math.sqrt(5 * 500) for rank in ranks) == pytest.approx(100, abs=5)
    assert sum(one < 10 for one in l2) == pytest.approx(100, abs=5)


def test_no_candidate_comes_twice():
    found = list_candidates({"n_components": randint(1, 5)}, WeightedNMF(), 20, 0)
    assert sorted(one["n_components"] for one in found) == [1, 2, 3, 4]


def test_some_of_a_grid():
    names = {"n_components": list(range(1, 21)), "l2": [0.0, 1.0, 2.0]}
    found = list_candidates(names, WeightedNMF(), 30, 0)
    assert len(found) == len({repr(one) for one in found}) == 30
    assert all(one["n_components"] in names["n_components"] and one["l2"] in names["l2"] for one in found)


@pytest.mark.parametrize(
    ("estimator", "observed", "names"),
    [
        (SquaredOrdNMF(), stars(2, 0), {"n_components", "l2"}),
        (SquaredOrdNMF(n_components=7), stars(2, 0), {"l2"}),
        (SquaredOrdNMF(l2=7.0), stars(2, 0), {"n_components"}),
        (OrdNMF(), stars(2, 0), {"n_components", "prior_shape"}),
        (PoissonFactorization(), counts(2, 0), {"n_components", "prior_shape"}),
        (WeightedNMF(), observe(table(2, 0)), {"n_components", "loss"}),
        (WeightedNMF(loss="frobenius", l2=1.0), observe(table(2, 0)), {"n_components"}),
        (RoundMF(), observe(np.round(table(2, 0))), {"n_components", "l2"}),
        (OrdinalMF(), observe(np.round(table(2, 0)).clip(0, 4)), {"n_components", "l2"}),
        (OrdinalMF(inference="gibbs"), observe(np.round(table(2, 0)).clip(0, 4)), {"n_components"}),
    ],
    ids=lambda value: repr(value) if isinstance(value, BaseEstimator) else "",
)
def test_every_model_has_ranges_by_default(estimator, observed, names):
    found = default_parameters(estimator, observed)
    assert set(found) == names
    for one in list_candidates(found, estimator, 20, 0):
        for name, value in one.items():
            assert estimator.parameter_rules.get(name, lambda _: None)(value) is None
        assert one.get("n_components", 1) <= min(observed.shape)


def test_parameters_that_are_arrays_have_no_range():
    assert set(default_parameters(OrdNMF(levels=np.arange(1, 6)), stars(2, 0))) == {"n_components", "prior_shape"}


def test_the_default_range_of_l2_is_about_that_of_the_model():
    observed = stars(2, 0)
    l2 = SquaredOrdNMF(max_iter=1, tol=0, random_state=0).fit(observed).l2_
    assert default_parameters(SquaredOrdNMF(random_state=0), observed)["l2"].support() == pytest.approx(
        (l2 / 4, l2 * 4)
    )


# The rungs.


@pytest.mark.parametrize(
    ("arguments", "rungs"),
    [
        ((27, 3, 5), [(27, 1), (9, 2), (3, 5)]),
        ((20, 3, 5), [(20, 1), (7, 2), (3, 5)]),
        ((9, 3, 5), [(9, 2), (3, 5)]),
        ((5, 3, 5), [(5, 5)]),
        ((100, 3, 5), [(100, 1), (34, 2), (12, 5)]),
        ((100, 3, 900), [(100, 34), (34, 100), (12, 300), (4, 900)]),
        ((100, 3, 900, 200), [(100, 200), (34, 300), (12, 900)]),
        ((8, 2, 4), [(8, 1), (4, 2), (2, 4)]),
        ((100, None, 5), [(100, 5)]),
        ((1, 3, 5), [(1, 5)]),
    ],
)
def test_rungs(arguments, rungs):
    assert halving(*arguments) == rungs


def brute_force(X, candidates, metric, n_folds, seed):
    """Scores of plain fits on the folds of `k_folds`, candidates by folds, in the plainest way."""
    random = np.random.RandomState(seed)
    folds = []
    for train, test in k_folds(X, n_folds, random):
        folds.append((train, test, int(random.randint(2**31))))
    return np.array(
        [
            [metric(settled(**one, random_state=start).fit(train), train, test) for train, test, start in folds]
            for one in candidates
        ]
    )


def rmse(model, train, test):
    return -float(np.sqrt(np.mean((model.predict(test.row_of_cell(), test.indices) - test.values) ** 2)))


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_without_halving_it_is_the_exhaustive_search(n_jobs):
    X = table(2, 0, noise=0.3)
    search = Search(settled(), GRID, factor=None, metric="rmse", n_folds=3, warm=False, random_state=0, n_jobs=n_jobs)
    results = search.fit(X).results_
    by_hand = brute_force(X, results["parameters"], rmse, 3, 0)
    np.testing.assert_allclose(results["scores"], by_hand, rtol=1e-12)
    assert by_hand.mean(axis=1).argmax() == 0
    assert search.best_params_ == results["parameters"][0]
    assert search.best_score_ == results["mean"][0] == results["mean"].max()
    np.testing.assert_allclose(results["mean"], by_hand.mean(axis=1))
    np.testing.assert_allclose(results["distance"], by_hand[0].mean() - by_hand.mean(axis=1), atol=1e-15)
    np.testing.assert_allclose(results["standard_error"][1:], stats.sem(by_hand[0] - by_hand[1:], axis=1))
    model = settled(**search.best_params_, random_state=None)
    assert repr(search.best_estimator_) == repr(model)


def test_it_has_the_scores_of_a_search_of_ranks():
    X = table(2, 0)
    ranks = RankSearch(settled(), [1, 2, 3], parameters={"l2": [0.0, 1.0]}, random_state=0, refit=False).fit(X)
    grid = {"n_components": [1, 2, 3], "l2": [0.0, 1.0]}
    found = Search(settled(), grid, factor=None, random_state=0, refit=False).fit(X)
    assert isinstance(ranks, Search)
    for one, scores in zip(found.results_["parameters"], found.results_["scores"], strict=True):
        place = [0.0, 1.0].index(one["l2"]), one["n_components"] - 1
        np.testing.assert_array_equal(ranks.grid_["scores"][place], scores)


def recorded(resource, grid, **further):
    """A search whose metric writes down what it sees; the planted best is 13, and scores are noisy."""
    seen = []

    def metric(model, train, test):
        seen.append((model.l2, model.max_iter, train.shape[0], train, test))
        noise = np.random.default_rng(int(model.l2 * 1000) + model.random_state % 1000).normal()
        return -abs(model.l2 - 13.0) + 0.5 * noise

    model = WeightedNMF(1, tol=0, max_iter=9)
    search = Search(model, {"l2": grid}, metric=metric, resource=resource, random_state=1, n_jobs=1, **further)
    return search.fit(table(1, 0, n=200, m=12)), seen


@pytest.mark.parametrize("resource", ["folds", "rows", "max_iter"])
def test_halving_keeps_the_planted_best_and_saves_fits(resource):
    grid = [float(value) for value in range(27)]
    search, seen = recorded(resource, grid)
    assert search.best_params_ == {"l2": 13.0}
    results = search.results_
    assert results["resource_name"] == resource
    most = {"folds": 5, "rows": 200, "max_iter": 9}[resource]
    amounts, numbers = np.unique(results["resource"], return_counts=True)
    assert amounts[-1] == most
    assert numbers.tolist() == [18, 6, 3]
    if resource == "folds":
        assert len(seen) == 27 + 9 + 9
        assert np.isfinite(results["scores"]).sum(axis=1).tolist() == results["resource"].tolist()
        assert np.isfinite(results["standard_error"][:9]).all()
        assert (results["distance"] >= 0).all()
    else:
        place = 1 if resource == "max_iter" else 2
        used = [one[place] for one in seen]
        assert used == [amounts[0]] * 135 + [amounts[1]] * 45 + [amounts[2]] * 15
        assert np.isfinite(results["standard_error"]).tolist() == [True] * 3 + [False] * 24
        assert np.isfinite(results["scores"]).all()
    everything = Search(**{**search.get_params(deep=False), "factor": None}).fit(table(1, 0, n=200, m=12))
    assert everything.best_params_ == search.best_params_
    whole = everything.results_["parameters"].index({"l2": 13.0})
    np.testing.assert_array_equal(everything.results_["scores"][whole], results["scores"][0])


def test_rows_of_a_rung_are_among_those_of_the_next():
    _, seen = recorded("rows", [float(value) for value in range(9)])
    small, large = seen[0], seen[-1]
    cells = [np.concatenate([one.values for one in seen_one[3:]]) for seen_one in (small, large)]
    assert (small[2], large[2]) == (67, 200)
    assert set(cells[0]) <= set(cells[1])


def test_halving_finds_the_best_of_a_planted_problem():
    """Two parts, little noise: no other candidate comes near."""
    X = table(2, 0, n=120, m=60)
    grid = {"n_components": [1, 2, 3, 4, 5, 6], "l2": [0.0, 30.0, 300.0]}
    whole, halved = (Search(settled(), grid, factor=factor, random_state=0, refit=False).fit(X) for factor in (None, 3))
    assert whole.best_params_ == halved.best_params_ == {"l2": 0.0, "n_components": 2}
    assert np.isfinite(halved.results_["scores"]).sum() < 0.5 * whole.results_["scores"].size


@pytest.mark.parametrize("resource", ["folds", "rows"])
def test_the_numbers_are_the_same_whatever_the_number_of_threads(resource):
    X, grid = stars(2, 0, n=80, m=40), {"n_components": loguniform(1, 8), "prior_shape": loguniform(0.1, 1)}
    one, two = (
        Search(OrdNMF(), grid, n_candidates=9, resource=resource, random_state=5, n_jobs=jobs, refit=False).fit(X)
        for jobs in (1, 2)
    )
    assert one.results_["parameters"] == two.results_["parameters"]
    for name in ("scores", "mean", "standard_error", "resource"):
        np.testing.assert_array_equal(one.results_[name], two.results_[name])


# What is told.


def test_edges_are_told():
    X = table(3, 0)
    beyond = Search(settled(), {"n_components": [1, 2], "l2": [0.0, 1000.0, 2000.0]}, random_state=0).fit(X)
    assert beyond.at_edge_ == {"n_components": "largest", "l2": "smallest"}
    inside = Search(settled(), {"n_components": [1, 2, 3, 4, 5], "loss": ["frobenius"]}, random_state=0).fit(X)
    assert inside.best_params_["n_components"] == 3
    assert inside.at_edge_ == {}


def test_results_print_as_a_table():
    search = Search(settled(), GRID, random_state=0, refit=False).fit(table(2, 0))
    header, first, *others = repr(search.results_).splitlines()
    assert re.split(r"  +", header.strip()) == [
        "mean score",
        "distance to best",
        "std. error of distance to best",
        "folds",
        "seconds",
    ]
    assert first.split()[3] == "5"
    assert first.endswith("l2=0.0  n_components=2  *")
    assert len(others) == 8


def test_the_estimator_is_refitted_and_answers():
    X = table(2, 0)
    search = Search(settled(random_state=7), GRID, random_state=0).fit(X)
    model = settled(random_state=7, **search.best_params_).fit(X)
    np.testing.assert_array_equal(search.complete(X), model.complete(X))
    assert search.n_features_in_ == 40
    again = pickle.loads(pickle.dumps(search))
    assert repr(again.results_) == repr(search.results_)


def test_several_losses_by_default_are_compared_by_their_errors():
    search = Search(
        WeightedNMF(max_iter=3000, accelerate=True, tol=1e-6), random_state=0, n_candidates=2, n_folds=2, refit=False
    )
    assert search.fit(table(2, 0)).metric_ == "rmse"


class Neighbours(BaseEstimator):
    """A recommender without n_components, random_state, n_jobs, engine or unseen: columns by their correlations."""

    def __init__(self, l2=1.0):
        self.l2 = l2

    def fit(self, X):
        dense = np.nan_to_num(X.to_dense())
        gram = dense.T @ dense
        self.weights_ = np.linalg.solve(gram + self.l2 * np.eye(len(gram)), gram)
        self.scores_ = dense @ self.weights_
        return self

    def recommend(self, rows, n=10):
        return np.argsort(-self.scores_[rows])[:n]


def test_recommenders_without_components_can_be_searched():
    def metric(model, train, test):
        return halfseen.metrics.ndcg_at_k(model.scores_, train, test, k=10)

    grid = {"l2": loguniform(0.01, 1000)}
    search = Search(Neighbours(), grid, n_candidates=6, metric=metric, random_state=0).fit(stars(2, 0, n=60, m=40))
    assert 0.01 <= search.best_params_["l2"] <= 1000
    assert search.recommend(0).shape == (10,)
    assert not hasattr(search, "predict")
    ranges = default_parameters(Neighbours(), stars(2, 0, n=60, m=40))
    assert ranges["l2"].support() == pytest.approx((0.1, 10.0))


def test_one_component_can_be_searched():
    grid = {"l2": [0.0]} if "l2" in RankOneNMF().get_params() else {"max_iter": [200, 300]}
    found = Search(RankOneNMF(), grid, random_state=0)
    assert found.fit(table(1, 0)).best_params_


# The journal.


def journalled(path, X, **further):
    grid = {"n_components": [1, 2, 3, 4], "l2": [0.0, 30.0]}
    how = {"journal": path, "n_folds": 3, "random_state": 0, "refit": False, "n_jobs": 1, **further}
    return Search(settled(max_iter=60, tol=1e-3), grid, **how).fit(X)


def same(one, other):
    assert one.best_params_ == other.best_params_
    assert one.results_["parameters"] == other.results_["parameters"]
    for name in ("scores", "mean", "standard_error", "resource"):
        np.testing.assert_array_equal(one.results_[name], other.results_[name])


@pytest.fixture
def small():
    return table(2, 0, n=12, m=10, seen=0.9)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_search_goes_on_after_a_cut_at_any_byte(small, tmp_path, monkeypatch):
    path = tmp_path / "tune.jsonl"
    whole = journalled(path, small)
    same(whole, journalled(None, small))
    text = path.read_bytes()
    lines = text.splitlines(keepends=True)
    evaluations = len(lines) - 1
    assert evaluations == np.isfinite(whole.results_["scores"]).sum()
    ends = np.cumsum([len(line) for line in lines])
    cuts = {int(end) + shift for end in ends for shift in (-1, 0, 1)} | set(range(0, len(text), 211))
    for cut in sorted(cut for cut in cuts if 0 <= cut <= len(text)):
        path.write_bytes(text[:cut])
        same(whole, journalled(path, small))
        after = path.read_bytes().splitlines()
        assert len(after) == len(lines)
        assert after[0] + b"\n" == lines[0]
        keys = [{name: one for name, one in json.loads(line).items() if name != "seconds"} for line in (*after, *lines)]
        assert sorted(map(repr, keys[: len(lines)])) == sorted(map(repr, keys[len(lines) :]))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_what_a_journal_has_is_not_fitted_again(small, tmp_path, monkeypatch):
    path = tmp_path / "tune.jsonl"
    whole = journalled(path, small)
    monkeypatch.setattr(WeightedNMF, "fit", lambda *_, **__: pytest.fail("fitted again"))
    same(whole, journalled(path, small, n_jobs=2, verbose=1))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("resource", ["rows", "max_iter"])
def test_every_resource_can_go_on(resource, small, tmp_path):
    path = tmp_path / "tune.jsonl"
    whole = journalled(path, small, resource=resource, n_folds=2, factor=2)
    text = path.read_bytes()
    for cut in (len(text) // 3, 2 * len(text) // 3):
        path.write_bytes(text[:cut])
        same(whole, journalled(path, small, resource=resource, n_folds=2, factor=2))


def test_more_candidates_go_on_from_the_same_journal(tmp_path):
    X, grid, path = stars(2, 0, n=40, m=30), {"l2": loguniform(1, 100)}, tmp_path / "tune.jsonl"
    how = {"journal": path, "n_folds": 2, "factor": None, "random_state": 0, "refit": False}
    for n in (3, 5):
        Search(SquaredOrdNMF(2), grid, n_candidates=n, **how).fit(X)
        assert path.read_bytes().count(b"\n") == 1 + 2 * n


def test_a_search_of_ranks_has_a_journal_too(small, tmp_path):
    path = tmp_path / "ranks.jsonl"
    first, again = (
        RankSearch(settled(), [1, 2], journal=path, random_state=0, refit=False).fit(small) for _ in range(2)
    )
    assert path.read_bytes().count(b"\n") == 11
    np.testing.assert_array_equal(first.results_["scores"], again.results_["scores"])
    np.testing.assert_array_equal(first.results_["seconds"], again.results_["seconds"])


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_ctrl_c_keeps_what_was_done(n_jobs, tmp_path):
    X, path, fits = table(2, 0), tmp_path / "tune.jsonl", []

    def metric(model, train, test):
        fits.append(model)
        if len(fits) == 5:
            raise KeyboardInterrupt
        return rmse(model, train, test)

    search = Search(settled(), GRID, metric=metric, journal=path, random_state=0, n_jobs=n_jobs, refit=False)
    with pytest.raises(
        KeyboardInterrupt, match=r"interrupted at fit \d+ of 27; \d+ fits are in '.*tune.jsonl': the sa"
    ):
        search.fit(X)
    assert not [name for name in vars(search) if name.endswith("_")]
    kept = path.read_bytes().count(b"\n") - 1
    assert kept >= 4
    search.fit(X)
    same(search, clone(search).set_params(journal=None).fit(X))


def test_a_killed_search_goes_on(tmp_path):
    code = (
        "import halfseen as hs; from tests.selection.data import stars\n"
        "hs.Search(hs.SquaredOrdNMF(5, tol=0, max_iter=200), {'l2': [1.0, 2.0, 4.0]}, journal='tune.jsonl', "
        "random_state=0, n_jobs=1, refit=False).fit(stars(2, 0, n=80, m=60))"
    )
    path, folders = tmp_path / "tune.jsonl", (Path(halfseen.__path__[0]).parent, Path(__file__).parents[2])
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, folders))}
    process = subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, env=env)
    deadline = time.monotonic() + 100
    while not (path.exists() and path.read_bytes().count(b"\n") >= 3) and time.monotonic() < deadline:
        time.sleep(0.01)
    process.kill()
    process.wait()
    with path.open("ab") as file:
        file.write(b'{"run": "cut')
    model, X = SquaredOrdNMF(5, tol=0, max_iter=200), stars(2, 0, n=80, m=60)
    how = {"random_state": 0, "n_jobs": 1, "refit": False}
    found = Search(model, {"l2": [1.0, 2.0, 4.0]}, journal=path, **how).fit(X)
    same(found, Search(model, {"l2": [1.0, 2.0, 4.0]}, **how).fit(X))


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"n_folds": 2}, "n_folds=3 where 2 is asked for"),
        ({"metric": "rmse"}, 'metric="divergence" where "rmse" is asked for'),
        ({"random_state": 1}, "random_state=0 where 1 is asked for"),
        ({"warm": False}, "warm=true where false is asked for"),
        ({"estimator": settled(max_iter=61, tol=1e-3)}, "max_iter=60 where 61 is asked for"),
    ],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_other_settings_are_refused(change, found, small, tmp_path):
    path = tmp_path / "tune.jsonl"
    journalled(path, small)
    before = path.read_bytes()
    grid = {"n_components": [1, 2, 3, 4], "l2": [0.0, 30.0]}
    how = {"estimator": settled(max_iter=60, tol=1e-3), "n_folds": 3, "random_state": 0, **change}
    with refused(DataError, "journal", found=found):
        Search(how.pop("estimator"), grid, journal=path, refit=False, n_jobs=1, **how).fit(small)
    assert path.read_bytes() == before


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_other_data_are_refused(small, tmp_path):
    journalled(tmp_path / "tune.jsonl", small)
    other = small.copy()
    other[0, 0] += 1.0
    with refused(DataError, "journal", found="other data"):
        journalled(tmp_path / "tune.jsonl", other)


@pytest.mark.parametrize("text", [b"user,item\n", b"u", b"{}\n", b'[1]\n{"a": 2}\n', bytes(range(256))])
def test_a_file_that_is_no_journal_is_refused_and_left_alone(text, small, tmp_path):
    path = tmp_path / "ratings.csv"
    path.write_bytes(text)
    with refused(DataError, "journal", found="ratings.csv"):
        journalled(path, small)
    assert path.read_bytes() == text


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_broken_line_is_named(small, tmp_path):
    path = tmp_path / "tune.jsonl"
    journalled(path, small)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:2], lines[2][:20] + b"\n", *lines[3:]]))
    with refused(DataError, "journal", where="line 3"):
        journalled(path, small)


def test_a_journal_needs_a_place_and_a_seed(small, tmp_path):
    with refused(DataError, "journal"):
        journalled(tmp_path / "nowhere" / "tune.jsonl", small)
    with refused(ParameterError, "random_state", found="None"):
        journalled(tmp_path / "tune.jsonl", small, random_state=None)


# What goes wrong.


@pytest.mark.parametrize(
    ("how", "parameter"),
    [
        ({"parameters": {"l2": 3}}, "parameters"),
        ({"parameters": {"l2": []}}, "parameters"),
        ({"parameters": {}}, "parameters"),
        ({"parameters": [1, 2]}, "parameters"),
        ({"parameters": {"random_state": [1]}}, "parameters"),
        ({"parameters": {"unseen": ["zero", "missing"]}}, "parameters"),
        ({"parameters": {"l2": list(range(101)), "l1": list(range(101))}}, "parameters"),
        ({"parameters": {"loss": ["frobenius", "kullback-leibler"]}, "metric": "divergence"}, "metric"),
        ({"parameters": {"l3": [2]}}, "l3"),
        ({"parameters": {"l2": [0.0, -1.0]}}, "l2"),
        ({"parameters": {"n_components": [0, 1]}}, "n_components"),
        ({"estimator": WeightedNMF(3, loss="frobenius", l2=1.0), "parameters": None}, "parameters"),
        ({"metric": "ndgc@10"}, "metric"),
        ({"n_candidates": 0}, "n_candidates"),
        ({"factor": 1}, "factor"),
        ({"factor": 2.5}, "factor"),
        ({"n_folds": 1}, "n_folds"),
        ({"resource": "cells"}, "resource"),
        ({"resource": "loss"}, "resource"),
        ({"resource": "max_iter", "parameters": {"max_iter": [1, 2]}}, "resource"),
        ({"estimator": WeightedNMF}, "estimator"),
        ({"estimator": "nmf"}, "estimator"),
        ({"estimator": Quantizer([1, 2])}, "estimator"),
        ({"estimator": TableImputer()}, "estimator"),
        ({"estimator": UncoupledNMF()}, "estimator"),
        ({"estimator": WeightedNMF(init=(np.ones((60, 2)), np.ones((40, 2))))}, "init"),
    ],
)
def test_invalid_searches_are_refused(how, parameter, monkeypatch):
    monkeypatch.setattr(WeightedNMF, "fit", lambda *_, **__: pytest.fail("The refusal came only after the work."))
    with refused(ParameterError, parameter):
        Search(**{"estimator": WeightedNMF(), "parameters": {"l2": [0.0, 1.0]}, **how}).fit(table(2, 0))


def test_a_model_that_only_ranks_has_no_errors_of_values():
    with refused(ParameterError, "metric", found="'rmse' for Neighbours"):
        Search(Neighbours(), {"l2": [1.0, 2.0]}, metric="rmse").fit(stars(2, 0, n=20, m=10))


def test_a_search_of_ranks_needs_components():
    with refused(ParameterError, "estimator", found="a Neighbours", remedy="Search"):
        RankSearch(Neighbours(), [1, 2]).fit(stars(2, 0, n=20, m=10))
