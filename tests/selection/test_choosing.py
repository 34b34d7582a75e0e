"""Which rank is taken, by scores that are given."""

import re

import numpy as np
import pytest
from scipy import stats

from halfseen.selection.rank_search import Results, choose_rank, distances_to_best

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
