"""On planted matrices without noise nothing that is called forced is wrong, and much is called forced."""

import numpy as np
import pytest
from scipy.sparse import coo_array

import halfseen as hs
from halfseen.rank.uniqueness.answers import Question, answers, proven
from tests.rank import certainty_oracle as oracle


def asked(W, H, thresholds, levels, mask):
    seen = np.nonzero(mask)
    question = Question(W, H, thresholds, coo_array((levels[seen] + 1, seen), shape=mask.shape))
    return question, *np.nonzero(~mask)


def proofs(seed, shape, rank, n_thresholds, seen, kind="real"):
    """How many unseen cells there are, and how many are forced. Asked for the true levels, and for wrong ones."""
    W, H, thresholds, levels, mask = oracle.planted(seed, shape, rank, n_thresholds, seen, kind)
    question, u, i = asked(W, H, thresholds, levels, mask)
    sure, forced = proven(question, u, i, levels[u, i], effort=40)
    np.testing.assert_array_equal(forced[sure], levels[u, i][sure])
    if rank > 1:  # at rank one the level is found, not asked for
        others = (levels[u, i] + 1 + seed % n_thresholds) % (n_thresholds + 1)
        assert not proven(question, u, i, others, effort=40)[0].any()
    return u.size, np.count_nonzero(sure)


@pytest.mark.parametrize(
    ("cases", "shape", "rank", "n_thresholds", "seen", "kind", "share"),
    [
        (450, (6, 6), 1, 3, 0.7, "real", 0.1),
        (150, (9, 5), 1, 1, 0.6, "real", 0.1),
        (200, (5, 7), 1, 4, 0.6, "whole", 0.1),
        (60, (12, 12), 2, 3, 0.96, "real", 0.05),
        (40, (9, 14), 2, 5, 0.96, "real", 0.03),
        (60, (8, 8), 2, 4, 0.95, "whole", 0.05),
        (40, (7, 7), 3, 3, 0.9, "real", 0.0),
    ],
)
def test_a_thousand_planted_matrices(cases, shape, rank, n_thresholds, seen, kind, share):
    """A thousand in all. The last number says how many of the unseen cells must be forced at least."""
    counted = [proofs(seed, shape, rank, n_thresholds, seen, kind) for seed in range(cases)]
    unseen, forced = np.sum(counted, axis=0)
    assert unseen > cases
    assert forced >= share * unseen


@pytest.mark.parametrize(("shape", "rank", "seen"), [((8, 8), 1, 0.6), ((11, 11), 2, 0.93)])
def test_forced_cells_stay_and_open_cells_do_not_on_walks_of_another_kind(shape, rank, seen):
    """From another member of X* than the planted one, whose levels may be wrong where nothing is certain."""
    kinds = {"forced": 0, "open": 0, "wrong": 0}
    for seed in range(4):
        W, H, thresholds, levels, mask = oracle.planted(seed, shape, rank, 3, seen)
        ends, rng = oracle.ends_of(levels, mask, thresholds), np.random.default_rng(seed)
        *_, (other_W, other_H) = oracle.walk(W, H, *ends, 60, rng)
        question, u, i = asked(other_W, other_H, thresholds, levels, mask)
        found = answers(question, u, i, 50, np.random.RandomState(0))
        assert found.missed == 0
        is_open = found.lowest < found.highest
        assert not np.any(is_open & found.is_forced)
        np.testing.assert_array_equal(found.lowest[found.is_forced], levels[u, i][found.is_forced])
        for near, far in oracle.walk(W, H, *ends, 60, rng):
            there = np.searchsorted(thresholds, np.sum(near[u] * far[i], axis=1))
            np.testing.assert_array_equal(there[found.is_forced], found.lowest[found.is_forced])
        kinds["forced"] += found.is_forced.sum()
        kinds["open"] += is_open.sum()
        kinds["wrong"] += np.count_nonzero(found.level != levels[u, i])
    assert min(kinds.values()) > 0


def test_open_cells_are_open_by_signs_and_logarithms():
    """At rank one the whole range of a cell is known from linear programs."""
    count = 0
    for seed in range(12):
        W, H, thresholds, levels, mask = oracle.planted(seed, (3, 4), 1, 4, 0.75)
        lower, upper = oracle.ends_of(levels, mask, thresholds)
        without_zero = (lower >= 0) | (upper < 0)
        if not (without_zero.any(axis=0).all() and without_zero.any(axis=1).all()):
            continue
        least, most = oracle.ranges_at_rank_one(lower, upper)
        question, u, i = asked(W, H, thresholds, levels, mask)
        found = answers(question, u, i, 50, np.random.RandomState(0))
        count += np.count_nonzero(found.lowest < found.highest)
        assert np.all(np.searchsorted(thresholds, least[u, i] - 1e-7) <= found.lowest)
        assert np.all(np.searchsorted(thresholds, most[u, i] + 1e-7) >= found.highest)
        sharp = [np.searchsorted(thresholds, each[u, i] + way * 1e-7) for each, way in ((least, 1), (most, -1))]
        assert np.all((sharp[0] == sharp[1])[found.is_forced])
    assert count > 5


@pytest.mark.parametrize(("rank", "seen"), [(1, 0.6), (2, 0.95)])
def test_fitted_models_call_nothing_forced_that_is_not(rank, seen):
    forced = wrong = 0
    for seed in range(3):
        _, _, thresholds, levels, mask = oracle.planted(seed, (12, 12), rank, 3, seen)
        Y = np.where(mask, levels, np.nan)
        model = hs.RoundMF(
            rank, loss="round", thresholds=thresholds, levels=range(4), biases=False, n_init=3, random_state=0
        ).fit(Y)
        found = hs.rank.certainty(model, Y, effort=50)
        truth = levels[found.positions]
        assert sum(found.counts.values()) == truth.size
        is_forced = found.verdict == hs.rank.Verdict.FORCED
        np.testing.assert_array_equal(found.lowest[is_forced], truth[is_forced])
        np.testing.assert_array_equal(found.highest[is_forced], truth[is_forced])
        forced, wrong = forced + is_forced.sum(), wrong + np.count_nonzero(found.level != truth)
    assert forced > 0
    assert wrong > 0  # of the others, the model gets some wrong
