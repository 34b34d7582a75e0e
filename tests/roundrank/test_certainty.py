"""`hs.rank.certainty`: small matrices that can be thought through, planted ones without noise, and what it refuses."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

import halfseen as hs
from halfseen.errors import DataError, DataWarning, ParameterError
from halfseen.roundrank.certainty import UniquenessProblem
from halfseen.solvers import PointFactor
from tests.roundrank import oracle

nan = np.nan
certainty = hs.rank.certainty

#: At rank one, x22 = x12 x21 / x11.
GEOMETRIC = [1.0, 2.0, 4.0, 8.0]


def model_of(W, H, thresholds, Y, **more):
    """A model with these factors: where its fit got to does not matter here."""
    levels = range(len(thresholds) + 1)
    more = {"levels": levels, "biases": False, "random_state": 0, "max_iter": 1, "tol": 0.0, **more}
    model = hs.RoundMF(len(W[0]), loss="round", thresholds=thresholds, **more).fit(Y)
    rows, columns = (PointFactor(np.array(factor, dtype=float)) for factor in (W, H))
    model.model_ = replace(model.model_, rows=rows, columns=columns)
    return model


@pytest.mark.parametrize(
    ("u", "v", "Y", "verdict", "lowest", "highest"),
    [
        ([1, 4], [1.5, 6], [[1, 3], [3, nan]], "forced", 4, 4),  # above 4 * 4 / 2 = 8
        ([1, 2], [1.5, 1.5], [[1, 1], [2, nan]], "open", 1, 3),  # from 1 * 2 / 2 = 1 to 2 * 4 / 1 = 8
        ([1, 0.15], [10, 1.5], [[4, 1], [1, nan]], "forced", 0, 0),  # at most 2 * 2 / 8
        ([1, 0.15], [10, 10], [[4, 4], [1, nan]], "open", 0, 4),  # from 0 on, without end
    ],
)
def test_a_cell_of_two_by_two(u, v, Y, verdict, lowest, highest):
    table = certainty(model_of(np.array(u)[:, None], np.array(v)[:, None], GEOMETRIC, Y), Y)
    assert table.verdict.tolist() == [verdict]
    assert lowest <= table.lowest[0] <= table.level[0] <= table.highest[0] <= highest
    assert (table.lowest[0] < table.highest[0]) == (verdict == "open")


def test_signs_at_threshold_zero():
    """u1, u2, v1, v2, v4 > 0, but of u3 and v3 it is only known that they are at most 0: x33 = 0 would be level 0."""
    Y = np.array([[1, 1, 0, 1], [1, nan, 0, nan], [0, 0, nan, nan]])
    table = certainty(model_of([[1], [1], [-1]], [[1], [1], [-1], [1]], [0.0], Y), Y)
    cells = [(1, 1, 1), (1, 3, 1), (2, 2, 1), (2, 3, 0)]
    assert list(zip(table.rows, table.columns, table.lowest, strict=True)) == cells
    assert (table.verdict == "forced").tolist() == [True, True, False, True]


def test_a_cell_forced_by_signs_at_rank_two():
    """Row 3 is a combination of rows 1 and 2 with coefficients that can't be negative: see the test of the proofs."""
    Y = np.array([[1, 1, 0, 1], [1, 0, 1, 1], [1, 0, 0, nan]])
    W, H = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [[1.0, 1.0], [1.0, -2.0], [-2.0, 1.0], [1.0, 1.0]]
    table = certainty(model_of(W, H, [0.0], Y), Y)
    assert (table.verdict.tolist(), table.lowest.tolist()) == (["forced"], [1])
    assert np.isnan(table.bound)
    more = np.vstack([Y, [[1, nan, 0, 1]]])  # row 4 = a row 1 + b row 2, and with a large a it is above 0 in column 2
    model = model_of([*W, [1.0, 1.0]], H, [0.0], more)
    table = certainty(model, more)
    assert table.counts == {"forced": 1, "open": 1, "undecided": 0}
    np.testing.assert_array_equal(table.as_matrix()[[2, 3], [3, 1]], ["forced", "open"])
    assert np.count_nonzero(table.as_matrix() == "") == more.size - 2
    # a cell requested twice is answered twice and used once: counted twice, its level would force others wrongly
    twice = certainty(model, more, cells=([2, 2, 3, 2], [3, 3, 1, 3]))
    assert twice.verdict.tolist() == ["forced", "forced", "open", "forced"]


def test_only_the_requested_cells():
    Y = np.array([[1, 3, 3, nan], [3, nan, nan, 0]])
    model = model_of([[1], [4]], [[1.5], [6], [6], [0]], GEOMETRIC, Y)
    table = certainty(model, Y, cells=([1, 1], [2, 1]))
    assert (table.rows.tolist(), table.columns.tolist()) == ([1, 1], [2, 1])
    assert table.verdict.tolist() == ["forced", "forced"]
    assert sum(certainty(model, Y).counts.values()) == 3
    assert certainty(model, Y, cells=(1, 2)).verdict.tolist() == ["forced"]


def test_labels_and_levels_are_those_of_the_data():
    words = ["bad", "fair", "good", "great", "superb"]
    ratings = [words[k] for k in (1, 3, 3, 4)]
    frame = pd.DataFrame({"user": ["ann", "ann", "bob", "bob"], "item": ["x", "y", "x", "z"], "rating": ratings})
    model = model_of([[1], [4]], [[1.5], [6], [3]], GEOMETRIC, frame, levels=words)
    table = certainty(model, frame)
    assert list(zip(table.rows, table.columns, strict=True)) == [("ann", "z"), ("bob", "y")]
    assert table.verdict[1] == "forced"
    assert (table.level[1], table.lowest[1], table.highest[1]) == ("superb", "superb", "superb")
    assert certainty(model, frame, cells=("bob", "y")).verdict.tolist() == ["forced"]


def test_biases_stay_biases():
    """x = w_i h_j + b_i + c_j: what is forced is so for all of this form, the planted one among them."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((7, 1)) @ rng.standard_normal((1, 8)) + rng.standard_normal((7, 1)) + rng.standard_normal(8)
    levels = np.searchsorted([-1.0, 0.0, 1.0], X)
    Y = np.where(rng.random(X.shape) < 0.8, levels, nan)
    model = hs.RoundMF(1, loss="round", thresholds=[-1.0, 0.0, 1.0], n_init=5, random_state=0, tol=0.0).fit(Y)
    assert model.W_.shape[1] == 3
    table = certainty(model, Y, effort=60)
    assert table.counts["open"] > 0
    forced = table.verdict == "forced"
    np.testing.assert_array_equal(table.lowest[forced], levels[table.positions][forced])


def test_the_verdicts_are_repeatable():
    rng = np.random.default_rng(0)
    W, H = rng.standard_normal((2, 6, 2))
    Y = np.where(rng.random((6, 6)) < 0.7, np.searchsorted([-1.0, 0.0, 1.0], W @ H.T), nan)
    model = model_of(W, H, [-1.0, 0.0, 1.0], Y)
    first, second = (certainty(model, Y, effort=30, random_state=1) for _ in range(2))
    for name in ("verdict", "lowest", "highest"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))


def test_a_model_that_misses_seen_cells_opens_nothing():
    """Levels of rank four, without noise, and factors of rank two."""
    rng = np.random.default_rng(3)
    Y = np.searchsorted([-1.0, 0.0, 1.0], rng.standard_normal((9, 4)) @ rng.standard_normal((4, 9))).astype(float)
    Y[rng.random(Y.shape) < 0.2] = nan
    W, H = rng.standard_normal((2, 9, 2))
    missed = np.count_nonzero((np.searchsorted([-1.0, 0.0, 1.0], W @ H.T) != Y) & ~np.isnan(Y))
    model = model_of(W, H, [-1.0, 0.0, 1.0], Y)
    with pytest.warns(DataWarning) as caught:
        table = certainty(model, Y)
    assert caught[0].message.found.startswith(f"{missed} of {np.count_nonzero(~np.isnan(Y))} ")
    assert caught[0].filename == __file__
    assert table.counts["open"] == 0
    np.testing.assert_array_equal(table.lowest, table.highest)


def test_a_few_missed_cells_are_repaired():
    """The levels are those of u v'; the model has x11 wrong, and the forced x22 as well."""
    Y = np.array([[1, 3] + [2] * 9, [3, nan] + [nan] * 9])
    model = model_of([[1.0], [1.2]], np.array([[1.5], [6.0]] + [[3.0]] * 9), GEOMETRIC, Y)
    assert model.predict_level(1, 1) == 3
    table = certainty(model, Y, cells=(1, 1))
    assert (table.level[0], table.verdict[0], table.lowest[0], table.highest[0]) == (3, "forced", 4, 4)


def test_nothing_unseen_gives_an_empty_table():
    Y = np.array([[1, 3], [3, 4]])
    table = certainty(model_of([[1], [4]], [[1.5], [6]], GEOMETRIC, Y), Y)
    assert table.counts == {"forced": 0, "open": 0, "undecided": 0}
    assert table.rows.size == table.coefficients.size == 0
    np.testing.assert_array_equal(table.as_matrix(), [["", ""], ["", ""]])


def test_models_without_common_thresholds_are_refused():
    Y = np.array([[1.0, 3.0], [3.0, nan]])
    with pytest.raises(NotFittedError):
        certainty(hs.RoundMF(1), Y)
    own = hs.OrdinalMF(1, own_thresholds="rows").fit(Y)
    for model, found in ((hs.OrdNMF(1).fit(Y), "a OrdNMF"), (3, "a int"), (own, "thresholds per row or per column")):
        with pytest.raises(ParameterError) as error:
            certainty(model, Y)
        assert (error.value.parameter, error.value.found) == ("model", found)
    assert certainty(model_of([[1], [4]], [[1.5], [6]], GEOMETRIC, Y), Y).counts["forced"] == 1


def test_data_and_cells_that_do_not_fit_are_refused():
    Y = np.array([[1, 3, 3], [3, nan, nan]])
    model = model_of([[1], [4]], [[1.5], [6], [6]], GEOMETRIC, Y)
    for other, match in ((Y[:1], "must have the 2 rows of the model"), (Y + 3, "Found 6 at row 0, column 1")):
        with pytest.raises(DataError, match=match):
            certainty(model, other)
    with pytest.raises(ParameterError, match="Unseen cells of Y must be missing"):
        certainty(model, hs.observe(np.nan_to_num(Y), unseen="zero"))
    for cells, kind, match in (
        ("x", ParameterError, "cells must be a pair"),
        (([0, 1], [2, 2]), DataError, r"cells must be unseen in Y\. Found row 0, column 2 \(1 seen in all\)"),
    ):
        with pytest.raises(kind, match=match):
            certainty(model, Y, cells=cells)
    with pytest.raises(ParameterError, match="effort must be"):
        certainty(model, Y, effort=0)


def test_many_cells_must_be_named():
    Y = np.full((150, 150), nan)
    Y[:, 0] = Y[0, :] = 1
    model = model_of(np.full((150, 1), 1.5), np.ones((150, 1)), GEOMETRIC, Y)
    with pytest.raises(ParameterError) as error:
        certainty(model, Y)
    assert (error.value.parameter, error.value.found) == ("cells", "22201 unseen cells")
    assert certainty(model, Y, cells=([5, 6], [7, 7])).counts["open"] == 2


@pytest.mark.parametrize(("shape", "rank", "seen"), [((8, 8), 1, 0.6), ((11, 11), 2, 0.93)])
def test_forced_cells_stay_and_open_cells_do_not_on_walks_of_another_kind(shape, rank, seen):
    """From another member of X* than the planted one, whose levels may be wrong where nothing is certain."""
    kinds = {"forced": 0, "open": 0, "wrong": 0}
    for seed in range(4):
        W, H, thresholds, levels, mask = oracle.planted(seed, shape, rank, 3, seen)
        ends, rng = oracle.ends_of(levels, mask, thresholds), np.random.default_rng(seed)
        *_, (other_W, other_H) = oracle.walk(W, H, *ends, 60, rng)
        u, i = np.nonzero(~mask)
        problem = UniquenessProblem(other_W, other_H, thresholds, oracle.seen_codes(levels, mask))
        decision = problem.decide(u, i, 50, np.random.RandomState(0))
        assert decision.n_missed == 0
        forced, is_open = decision.forced, decision.lowest < decision.highest
        assert not np.any(is_open & forced)
        np.testing.assert_array_equal(decision.lowest[forced], levels[u, i][forced])
        for near, far in oracle.walk(W, H, *ends, 60, rng):
            there = np.searchsorted(thresholds, np.sum(near[u] * far[i], axis=1))
            np.testing.assert_array_equal(there[forced], decision.lowest[forced])
        kinds["forced"] += forced.sum()
        kinds["open"] += is_open.sum()
        kinds["wrong"] += np.count_nonzero(decision.level != levels[u, i])
    assert min(kinds.values()) > 0


@pytest.mark.parametrize(("rank", "seen"), [(1, 0.6), (2, 0.95)])
def test_fitted_models_call_nothing_forced_that_is_not(rank, seen):
    n_forced = wrong = 0
    for seed in range(3):
        _, _, thresholds, levels, mask = oracle.planted(seed, (12, 12), rank, 3, seen)
        Y = np.where(mask, levels, np.nan)
        settings = {"levels": range(4), "biases": False, "n_init": 3, "random_state": 0}
        model = hs.RoundMF(rank, loss="round", thresholds=thresholds, **settings).fit(Y)
        table = certainty(model, Y, effort=50)
        truth = levels[table.positions]
        assert sum(table.counts.values()) == truth.size
        forced = table.verdict == hs.rank.Verdict.FORCED
        np.testing.assert_array_equal(table.lowest[forced], truth[forced])
        np.testing.assert_array_equal(table.highest[forced], truth[forced])
        n_forced, wrong = n_forced + forced.sum(), wrong + np.count_nonzero(table.level != truth)
    assert n_forced > 0
    assert wrong > 0  # of the others, the model gets some wrong
