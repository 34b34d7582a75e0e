"""Cells that training has seen do not judge a model: against sets of pairs."""

import warnings

import numpy as np
import pytest

from halfseen import RankOneNMF, WeightedNMF, observe
from halfseen.errors import DataError, DataWarning
from halfseen.metrics import ranking_scores, scorers
from halfseen.metrics.scorers import held_out
from halfseen.observed import Observed
from halfseen.ranking import Seen
from tests.estimators.models import refused


def pairs(cells):
    return list(zip(cells.row_of_cell().tolist(), cells.indices.tolist(), cells.values.tolist(), strict=True))


def draw(seed, n=9, m=7, share=0.3):
    random = np.random.default_rng(seed)
    X = random.random((n, m)) + 1
    return observe(np.where(random.random((n, m)) < share, X, np.nan), allow_empty=True)


def told(test, *seen):
    """What is left, and the sentence if there was one."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        left = held_out(test, *seen)
    return left, [str(one.message) for one in caught]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("height", [1, 4, 100])
def test_what_is_left_is_in_none_of_the_sets(seed, height, monkeypatch):
    monkeypatch.setattr(scorers, "ROWS_COMPARED", height)
    test, *trains = (draw(seed + part) for part in (0, 100, 200))
    left, sentences = told(test, *(Seen.from_observed(one) for one in trains))
    known = {(row, column) for one in trains for row, column, _ in pairs(one)}
    expected = [cell for cell in pairs(test) if cell[:2] not in known]
    assert 0 < len(expected) < test.nnz
    assert pairs(left) == expected
    assert left.shape == test.shape
    count = f"Found {test.nnz - len(expected)} of {test.nnz} that are. They were left out."
    assert sentences == [f"Test cells should not be among those of training. {count}"]


def test_a_fit_of_a_dense_table_knows_its_holes():
    """Where few cells are holes, these are what a model lists."""
    X = np.random.default_rng(0).random((6, 5)) + 1
    X[0, 1] = X[3, 3] = X[5, 0] = np.nan
    model = RankOneNMF().fit(X)
    assert model.seen_.lists_holes
    left, _ = told(observe(np.ones((6, 5))), model.seen_)
    assert pairs(left) == [(0, 1, 1.0), (3, 3, 1.0), (5, 0, 1.0)]


def test_where_nothing_is_shared_the_cells_stay_as_they_are():
    test = draw(0)
    none = observe(np.full(test.shape, np.nan), allow_empty=True)
    for seen in ([], [Seen.from_observed(none)]):
        left, sentences = told(test, *seen)
        assert left is test
        assert sentences == []
    assert told(none, Seen.from_observed(test))[0] is none


def test_each_measurement_of_a_cell_is_left_out():
    test = Observed.from_cells([0, 0, 0], [1, 1, 2], [1.0, 2.0, 3.0], (1, 3), duplicates="keep")
    train = Observed.from_cells([0], [1], [5.0], (1, 3))
    assert pairs(told(test, Seen.from_observed(train))[0]) == [(0, 2, 3.0)]


def test_a_test_of_training_cells_alone_is_refused_with_the_cause():
    """Not with the advice to lower a threshold."""
    X = np.random.default_rng(0).integers(1, 6, (6, 5)) * 1.0
    model = WeightedNMF(1, unseen="zero", random_state=0, max_iter=5, tol=0).fit(X)
    for scores, train in ((model, None), (np.ones((6, 5)), X)):
        with refused(DataError, found="none among 30"):
            ranking_scores(scores, train, X, k=3)


def test_all_cells_are_counted_also_those_of_rows_without_anything_relevant():
    train = np.array([[1.0, np.nan, np.nan], [1.0, np.nan, 2.0]])
    test = np.array([[np.nan, 5.0, np.nan], [1.0, 1.0, 1.0]])
    with pytest.warns(DataWarning, match=r"Found 2 of 4 that are\. They were left out\.") as caught:
        ranking_scores(np.ones((2, 3)), train, test, k=2, relevant=5)
    assert caught[0].filename == __file__
