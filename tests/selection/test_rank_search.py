"""RankSearch: which rank is taken, what is fitted, what is found, what is refused."""

import pickle
import re
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse, stats
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

import halfseen
from halfseen import (
    BernoulliPoisson,
    CompoundPoisson,
    OrdinalMF,
    OrdNMF,
    PoissonFactorization,
    RankOneNMF,
    RankSearch,
    RoundMF,
    SquaredOrdNMF,
    SquaredPoisson,
    UncoupledNMF,
    WeightedNMF,
    observe,
)
from halfseen.errors import DataError, ParameterError
from halfseen.selection.rank_search import Results, choose_rank, distances_to_best
from tests.estimators.models import refused
from tests.selection.data import counts, holed_counts, stars, table


def settled(**further):
    """WeightedNMF as quick as it gets."""
    return WeightedNMF(**{"loss": "frobenius", "accelerate": True, "max_iter": 2000, "tol": 1e-6, **further})


@pytest.fixture(scope="module")
def search():
    return RankSearch(settled(random_state=7), [3, 1, 2, 4], random_state=0).fit(table(2, 0))


# The rule, by scores that are given.

# Folds differ by far more than ranks do: 5 folds, 4 ranks, the third the best.
FOLDS = np.array([0.1, 0.5, 0.9, 0.3, 0.7])
NEAR = np.array([0.004, -0.004, 0.002, 0.001, 0.0])
SCORES = np.array([FOLDS - 0.1 + NEAR, FOLDS - 0.0005 - NEAR, FOLDS, FOLDS - 0.02])


def test_the_standard_error_is_that_of_the_distance_to_the_best():
    errors = distances_to_best(SCORES)[1]
    assert errors[2] == 0
    assert errors[3] == pytest.approx(0, abs=1e-15)
    for rank in (0, 1):
        assert errors[rank] == pytest.approx(stats.sem(SCORES[2] - SCORES[rank]), rel=1e-12)


def test_the_smallest_rank_within_one_standard_error_is_taken():
    assert choose_rank(SCORES, "best") == 2
    assert choose_rank(SCORES, "one-standard-error") == 1


def test_the_spread_of_the_folds_themselves_does_not_count():
    """By the usual rule, one standard error of the best mean, even the first rank would pass."""
    assert SCORES[0].mean() > SCORES[2].mean() - stats.sem(SCORES[2])
    assert choose_rank(SCORES[[0, 2]], "one-standard-error") == 1


def test_of_equal_ranks_the_smallest_is_taken():
    for rule in ("best", "one-standard-error"):
        assert choose_rank(np.tile(FOLDS, (3, 1)), rule) == 0


def test_the_rule_agrees_with_a_search_by_hand():
    random = np.random.default_rng(0)
    for _ in range(200):
        scores = random.normal(size=(6, 4)) + random.normal(size=4) * 5
        best = max(range(6), key=lambda rank: scores[rank].mean())
        by_hand = next(
            rank for rank in range(6)
            if rank == best or (scores[best] - scores[rank]).mean() <= stats.sem(scores[best] - scores[rank])
        )  # fmt: skip
        assert choose_rank(scores, "one-standard-error") == by_hand


def test_results_are_a_dict_that_prints_as_a_table():
    columns = {"n_components": np.array([5, 10]), "mean": np.array([0.25, 0.5]), "standard_error": np.array([0.125, 0])}
    results = Results(1, **columns, scores=np.zeros((2, 3)), seconds=np.array([1.0, 2.5]))
    assert isinstance(results, dict)
    header, first, second = repr(results).splitlines()
    assert re.split(r"  +", header) == ["n_components", "mean score", "std. error of distance to best", "seconds"]
    assert first.split() == ["5", "0.25", "0.12", "1.00"]
    assert second.split() == ["10", "0.5", "0", "2.50", "*"]
    further = Results(0, **dict(results), parameters=[{"l2": 0.1}, {"l2": 1.0}])
    assert [line.split()[4:] for line in repr(further).splitlines()[1:]] == [["l2=0.1", "*"], ["l2=1.0"]]


# What is found.


@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize(
    ("model", "data"),
    [(WeightedNMF(), holed_counts), (PoissonFactorization(), counts), (OrdNMF(), stars)],
    ids=["WeightedNMF", "PoissonFactorization", "OrdNMF"],
)
def test_the_planted_rank_is_found(model, data, k):
    """Two of the cases of the benchmark, which has ten for each model."""
    found = RankSearch(model, range(1, 8), random_state=0, refit=False).fit(data(k, seed=k))
    assert found.best_n_components_ == k


def test_what_is_told(search):
    results = search.results_
    assert results["n_components"].tolist() == [1, 2, 3, 4]
    assert results["scores"].shape == (4, 5)
    np.testing.assert_allclose(results["mean"], results["scores"].mean(axis=1))
    assert results["seconds"].shape == (4,)
    assert np.all(results["seconds"] > 0)
    assert search.best_n_components_ == 2
    assert search.best_params_ == {"n_components": 2}
    assert search.best_score_ == results["mean"][1]
    assert (search.metric, search.metric_, search.rule) == (None, "divergence", "one-standard-error")
    assert search.grid_ is None
    assert search.n_features_in_ == 40


def test_the_best_model_is_the_estimators_own_fit_of_all_cells(search):
    X = table(2, 0)
    model = settled(random_state=7, n_components=2).fit(X)
    np.testing.assert_array_equal(search.best_estimator_.W_, model.W_)
    np.testing.assert_array_equal(search.complete(X), model.complete(X))
    np.testing.assert_array_equal(search.predict([0, 1], [2, 3]), model.predict([0, 1], [2, 3]))
    np.testing.assert_array_equal(search.transform(X[:5]), model.transform(X[:5]))
    assert search.score(X) == model.score(X)
    for found, wanted in zip(search.recommend(0, n=3), model.recommend(0, n=3), strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_what_the_model_can_not_do_the_search_can_not_either(search, tmp_path):
    assert not hasattr(search, "predict_proba")
    assert hasattr(RankSearch(OrdNMF()), "predict_proba")
    search.save(tmp_path / "model.hs")
    np.testing.assert_array_equal(halfseen.load(tmp_path / "model.hs").H_, search.best_estimator_.H_)
    with pytest.raises(NotFittedError):
        RankSearch(OrdNMF()).predict([0], [0])


# What is fitted.


def recorded(estimator, X, **how):
    """All (model, train, test) that a search shows its metric, by rank."""
    seen = {}

    def metric(model, train, test):
        seen.setdefault(model.n_components, []).append((model, train, test))
        return -float(model.n_components)

    RankSearch(estimator, [1, 2], metric=metric, refit=False, random_state=3, n_jobs=1, **how).fit(X)
    return seen


def test_every_cell_is_held_out_once_at_every_rank():
    X = table(2, 1)
    for folds in recorded(settled(), X, n_folds=4).values():
        held = [test.to_dense() for _, _, test in folds]
        assert len(held) == 4
        np.testing.assert_array_equal(sum(~np.isnan(one) for one in held), ~np.isnan(X))
        for (_, train, _), one in zip(folds, held, strict=True):
            np.testing.assert_array_equal(np.where(np.isnan(one), train.to_dense(), one), X)


def test_without_warm_starts_each_model_is_a_plain_fit():
    for rank, folds in recorded(settled(), table(2, 1), n_folds=3, warm=False).items():
        for model, train, _ in folds:
            plain = settled(n_components=rank, random_state=model.random_state).fit(train)
            np.testing.assert_array_equal(model.W_, plain.W_)


def test_warm_starts_begin_with_the_factors_of_the_rank_before():
    seen = recorded(settled(), table(2, 1), n_folds=3)
    for (small, _, _), (large, _, _) in zip(seen[1], seen[2], strict=True):
        np.testing.assert_allclose(large.init[0][:, :1] @ large.init[1][:, :1].T, 0.5 * small.W_ @ small.H_.T)
        assert small.init == "random"


def test_the_numbers_are_the_same_whatever_the_number_of_threads():
    X = stars(2, 0, n=60, m=40)
    one, two = (RankSearch(OrdNMF(), [1, 2, 3], random_state=5, n_jobs=jobs, refit=False).fit(X) for jobs in (1, 2))
    np.testing.assert_array_equal(one.results_["scores"], two.results_["scores"])
    other = RankSearch(OrdNMF(), [1, 2, 3], random_state=6, refit=False).fit(X)
    assert not np.array_equal(one.results_["scores"], other.results_["scores"])


def inputs():
    X = table(2, 0)
    rows, columns = np.nonzero(~np.isnan(X))
    long = pd.DataFrame({"user": rows, "item": columns, "rating": X[rows, columns]})
    return {
        "dense": X,
        "sparse": sparse.csr_array((X[rows, columns], (rows, columns)), shape=X.shape),
        "long": long.sort_values(["user", "item"]),
        "wide": pd.DataFrame(X, columns=[f"c{column}" for column in range(X.shape[1])]),
        "observed": observe(X),
    }


@pytest.mark.parametrize("kind", ["sparse", "long", "wide", "observed", "file"])
def test_everything_that_can_be_observed_can_be_searched(kind, search, tmp_path):
    if kind == "file":
        inputs()["long"].to_csv(tmp_path / "long.csv", index=False)
    X = tmp_path / "long.csv" if kind == "file" else inputs()[kind]
    found = RankSearch(settled(random_state=7), [1, 2, 3, 4], random_state=0).fit(X)
    assert found.best_n_components_ == 2
    if kind not in ("long", "file"):  # their columns are numbered by first appearance, which moves the folds
        np.testing.assert_allclose(found.results_["scores"], search.results_["scores"], rtol=1e-6)
    if kind == "wide":
        assert found.feature_names_in_[0] == "c0"


def test_weights_reach_the_fits_and_the_judges():
    X = table(2, 0)
    weights = np.where(np.isnan(X), 1.0, np.random.default_rng(0).uniform(0.5, 2.0, X.shape))
    seen = []

    def metric(model, train, test):
        seen.append((train.weights, test.weights))
        return 0.0

    model = settled(random_state=0)
    found = RankSearch(model, [1], metric=metric, n_folds=2, random_state=0, n_jobs=1).fit(X, cell_weight=weights)
    (first, first_test), _ = seen
    np.testing.assert_array_equal(np.sort(np.append(first, first_test)), np.sort(weights[~np.isnan(X)]))
    np.testing.assert_array_equal(
        found.best_estimator_.W_, model.set_params(n_components=1).fit(X, cell_weight=weights).W_
    )


@pytest.mark.parametrize(
    "estimator",
    [
        WeightedNMF(unseen="zero"), PoissonFactorization(), BernoulliPoisson(), CompoundPoisson(), OrdNMF(),
        OrdNMF(noise="exponential"), SquaredOrdNMF(), SquaredPoisson(), RoundMF(), RoundMF(loss="round"), OrdinalMF(),
        OrdinalMF(own_thresholds="rows"), OrdNMF(unseen="missing"),
    ],
    ids=repr,
)  # fmt: skip
def test_every_model_with_components_can_be_searched(estimator):
    """Two blocks that nothing connects: two components tell more of a held-out cell than one."""
    rng = np.random.default_rng(0)
    same = np.add.outer(np.arange(40), np.arange(30)) % 2 == 0
    Y = np.where(same, 4.0, 1.0)
    if estimator.unseen == "zero":
        Y = np.where(same & (rng.random(Y.shape) < 0.7), rng.integers(1, 5, Y.shape), 0.0)
        Y = np.minimum(Y, 1.0) if isinstance(estimator, BernoulliPoisson) else Y
    else:
        Y[rng.random(Y.shape) < 0.3] = np.nan
    estimator = clone(estimator).set_params(max_iter=2000, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = RankSearch(estimator, [1, 2], n_folds=2, metric=None, random_state=0, rule="best").fit(Y)
    assert found.best_n_components_ == 2 or isinstance(estimator, RoundMF | OrdinalMF)  # biases aside, these have 1
    assert found.best_estimator_.n_components == found.best_n_components_


def test_the_only_cells_of_a_level_are_never_held_out():
    Y = table(1, 0, n=20, m=15)
    Y = np.where(np.isnan(Y), np.nan, np.digitize(Y, [np.nanmedian(Y)]) + 1.0)
    Y[tuple(np.argwhere(~np.isnan(Y))[0])] = 3.0
    for folds in recorded(OrdinalMF(random_state=0), Y).values():
        for _, train, test in folds:
            assert (train.values == 3).sum() == 1
            assert 3 not in test.values


def test_levels_may_be_texts():
    """Who likes what is known up to one in ten: more than of a fair coin, no more than of such a coin."""
    rng = np.random.default_rng(0)
    user, item = np.divmod(np.arange(40 * 30), 30)
    liked = (user % 2 == item % 2) != (rng.random(user.size) < 0.1)
    lines = pd.DataFrame({"user": user, "item": item, "rating": np.where(liked, "good", "bad")})
    found = RankSearch(OrdinalMF(levels=["bad", "good"]), [1, 2], random_state=0).fit(lines)
    assert found.best_estimator_.levels_.tolist() == ["bad", "good"]
    assert -stats.bernoulli(0.5).entropy() + 0.1 < found.best_score_ < -stats.bernoulli(0.1).entropy() + 0.02


# Further parameters, and scikit-learn's manners.


def test_further_parameters_are_tried_with_each_rank():
    X = table(2, 0, noise=0.3)
    found = RankSearch(settled(), [1, 2, 3], parameters={"l2": [0.0, 5.0, 5000.0]}, random_state=0).fit(X)
    assert found.grid_["parameters"] == [{"l2": 0.0}, {"l2": 5.0}, {"l2": 5000.0}]
    every = found.grid_["scores"]
    assert every.shape == (3, 3, 5)
    best = every.mean(axis=2).argmax(axis=0)
    assert [one["l2"] for one in found.results_["parameters"]] == [[0.0, 5.0, 5000.0][place] for place in best]
    np.testing.assert_array_equal(found.results_["scores"], [every[place, rank] for rank, place in enumerate(best)])
    assert found.best_params_["l2"] != 5000.0
    assert found.best_estimator_.l2 == found.best_params_["l2"]
    alone = RankSearch(settled(l2=5.0), [1, 2, 3], random_state=0, refit=False).fit(X)
    np.testing.assert_array_equal(alone.results_["scores"], every[1])


def test_parameters_reach_the_estimator_and_copies_are_equal():
    search = RankSearch(WeightedNMF(), [1, 2]).set_params(estimator__l2=0.5, rule="best")
    assert search.estimator.l2 == 0.5
    assert clone(search).get_params()["estimator__l2"] == 0.5
    assert repr(search) == "RankSearch(estimator=WeightedNMF(l2=0.5), ranks=[1, 2], rule='best')"
    with pytest.raises(ParameterError, match="Did you mean 'ranks'"):
        search.set_params(rank=[1])
    with pytest.raises(ParameterError, match="Did you mean 'n_components'"):
        search.set_params(estimator__k=1)


def test_ranks_by_default_go_as_far_as_the_data():
    found = RankSearch(settled(), random_state=0, refit=False, n_folds=2).fit(table(1, 0, n=30, m=6))
    assert found.results_["n_components"].tolist() == [1, 2, 3, 5]


def test_without_a_refit_there_is_no_model():
    found = RankSearch(settled(), [1, 2], refit=False, random_state=0).fit(table(1, 0))
    assert found.best_params_ == {"n_components": 1}
    assert not hasattr(found, "best_estimator_")
    with pytest.raises(AttributeError, match="has no attribute 'predict'") as error:
        found.predict(0, 0)
    assert "refit must be True" in str(error.value.__cause__)


def test_another_fit_forgets_the_one_before():
    X = table(1, 0, n=30, m=20)
    search = RankSearch(settled(), [1], random_state=0).fit(pd.DataFrame(X).add_prefix("c"))
    assert search.feature_names_in_.size == 20
    search.set_params(refit=False).fit(X)
    assert not hasattr(search, "feature_names_in_")
    assert not hasattr(search, "best_estimator_")


def test_a_search_survives_pickle(search):
    again = pickle.loads(pickle.dumps(search))
    assert repr(again.results_) == repr(search.results_)
    np.testing.assert_array_equal(again.best_estimator_.W_, search.best_estimator_.W_)


def test_the_rule_may_be_the_best():
    X = table(2, 0)
    by_rule, best = (
        RankSearch(settled(), [1, 2, 3, 4], rule=rule, random_state=0, refit=False).fit(X)
        for rule in ("one-standard-error", "best")
    )
    np.testing.assert_array_equal(by_rule.results_["scores"], best.results_["scores"])
    assert best.best_n_components_ == 1 + int(np.argmax(best.results_["mean"]))
    assert by_rule.best_n_components_ <= best.best_n_components_


# What goes wrong.


@pytest.mark.parametrize(
    ("how", "parameter"),
    [
        ({"ranks": []}, "ranks"),
        ({"ranks": [2, 3, 2]}, "ranks"),
        ({"ranks": [2, 2.5]}, "ranks"),
        ({"ranks": [0, 1]}, "ranks"),
        ({"ranks": 5}, "ranks"),
        ({"ranks": "5,10"}, "ranks"),
        ({"metric": "ndgc@10"}, "metric"),
        ({"metric": "log-likelihood"}, "metric"),
        ({"rule": "1se"}, "rule"),
        ({"n_folds": 1}, "n_folds"),
        ({"parameters": {"l2": 3}}, "parameters"),
        ({"parameters": {"l2": []}}, "parameters"),
        ({"parameters": {"n_components": [2]}}, "parameters"),
        ({"parameters": {"unseen": ["zero", "missing"]}}, "parameters"),
        ({"parameters": {"loss": ["frobenius", "kullback-leibler"]}}, "metric"),
        ({"parameters": {"l3": [2]}}, "l3"),
        ({"estimator": RankOneNMF()}, "estimator"),
        ({"estimator": WeightedNMF}, "estimator"),
        ({"estimator": "ordnmf"}, "estimator"),
        ({"estimator": WeightedNMF(init=(np.ones((60, 2)), np.ones((40, 2))))}, "init"),
        ({"estimator": WeightedNMF(l2=-1)}, "l2"),
    ],
)
def test_invalid_searches_are_refused(how, parameter):
    with refused(ParameterError, parameter):
        RankSearch(**{"estimator": WeightedNMF(), "ranks": [1, 2], **how}).fit(table(2, 0))


def test_a_model_without_cells_is_refused():
    with refused(ParameterError, "estimator", found="UncoupledNMF"):
        RankSearch(UncoupledNMF(), [1, 2]).fit(table(2, 0))


def test_too_few_cells_are_refused():
    with refused(DataError, found="3 cells for 5 folds"):
        RankSearch(WeightedNMF(), [1]).fit([[1.0, 2.0], [3.0, np.nan]])
    with refused(DataError, found="among 4 cells"):
        RankSearch(OrdinalMF(), [1], n_folds=2).fit([[1.0, 2.0], [3.0, 4.0]])


def test_a_score_that_is_no_number_is_refused():
    with refused(DataError, found="nan"):
        RankSearch(settled(), [1], metric=lambda *_: np.nan).fit(table(1, 0))


def test_fits_that_tol_stopped_too_early_are_told_of():
    """tol is of the loss at the start, hundreds of times that at the end, of which an iteration takes off percents."""
    X = table(2, 0, noise=0.0)
    early, late = WeightedNMF(2, random_state=0), settled(n_components=2, random_state=0)
    before, last = early.fit(X).trace_["objective"][-2:]
    assert early.status_.name == "CONVERGED"
    assert before - last > 0.01 * last
    with pytest.warns(ConvergenceWarning, match=r"while the loss still fell by more than 1% .* lower tol"):
        RankSearch(early, [1, 2], n_folds=2, refit=False, random_state=0).fit(X)
    RankSearch(late, [2], n_folds=2, refit=False, random_state=0).fit(table(2, 0))  # warnings are errors here


def test_losses_may_be_compared_by_one_measure():
    losses = ["frobenius", "kullback-leibler"]
    found = [
        RankSearch(
            settled(), [2], metric="rmse", parameters={"loss": losses}, n_folds=2, refit=False, random_state=0
        ).fit(unit * table(2, 0))
        for unit in (1.0, 0.01)
    ]
    assert found[0].best_params_ == found[1].best_params_
    np.testing.assert_allclose(0.01 * found[0].grid_["scores"], found[1].grid_["scores"], rtol=1e-3)


def test_fits_that_do_not_settle_are_told_of_once():
    with pytest.warns(ConvergenceWarning) as told:
        RankSearch(WeightedNMF(max_iter=2, tol=1e-12), [1, 3], n_folds=2, refit=False, random_state=0).fit(table(2, 0))
    (warning,) = told
    assert "4 of 4 that stopped" in str(warning.message)
    assert warning.filename == __file__


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_after_an_interruption_nothing_is_kept(n_jobs):
    fits = []

    def metric(model, train, test):
        fits.append(model)
        if len(fits) == 3:
            raise KeyboardInterrupt
        return 0.0

    search = RankSearch(settled(), [1, 2], metric=metric, random_state=0, n_jobs=n_jobs)
    with pytest.raises(KeyboardInterrupt, match=r"interrupted at fit \d+ of 10; nothing of it is kept"):
        search.fit(table(2, 0))
    assert not [name for name in vars(search) if name.endswith("_")]


def test_a_bar_counts_the_fits_on_a_terminal(monkeypatch):
    import io
    import sys

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    RankSearch(settled(verbose=1), [1, 2], n_folds=3, verbose=1, refit=False, random_state=0).fit(table(1, 0))
    assert "RankSearch" in terminal.getvalue()
    assert "6/6" in terminal.getvalue()
    assert "WeightedNMF" not in terminal.getvalue()
