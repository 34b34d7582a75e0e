"""Rank decoding against NumPy's quantiles, cell by cell."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from halfseen.coupling.decoding import decoded
from tests.coupling import oracle
from tests.coupling.collected import lists, seen_of

SHAPE = (5, 7)


def values_of(asked, answers, compared, shape=SHAPE):
    observed = decoded(seen_of(asked, answers, compared, shape)).observed
    rows = np.repeat(np.arange(shape[0]), np.diff(observed.indptr))
    return dict(zip(zip(rows.tolist(), observed.indices.tolist(), strict=True), observed.values, strict=True))


def check(asked, answers, compared, shape=SHAPE):
    found, truth = values_of(asked, answers, compared, shape), oracle.decoded(asked, answers, compared)
    assert found.keys() == truth.keys()
    for cell, value in truth.items():
        assert found[cell] == pytest.approx(value, rel=1e-13), cell


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    "more", [{}, {"repeats": 6}, {"unknown": 0.6}, {"comparisons": 0}, {"comparisons": 40}], ids=str
)
def test_they_are_numpys_quantiles(seed, more):
    check(*lists(seed, **more))


@pytest.mark.parametrize("missing", [[0], [4], [1, 2], [0, 1, 2, 3]], ids=str)
def test_questions_without_answers_get_the_mean_of_all(missing):
    asked, answers, compared = lists(5)
    check(asked, [one for one in answers if one[0] not in missing], compared)


def test_other_numbers_of_answers_than_of_cells():
    asked, answers, compared = lists(6)
    rng = np.random.default_rng(6)
    answers = [one for one in answers if rng.random() < 0.5] + [(1, 0.5)] * 20 + [(3, 2.0)]
    check(asked, answers, compared)


def test_order_is_found_when_every_pair_was_compared():
    """The more of the others lie below a cell, the higher its value; the shrunk extremes lie inside the answers."""
    rng = np.random.default_rng(7)
    X = rng.normal(5, 1, (3, 8))
    asked = [(i, j) for i in range(3) for j in range(8)]
    compared = [one for i in range(3) for one in oracle.every_pair(X[i], i) if one[1] != one[2]]
    found = values_of(asked, [(i, X[i, j]) for i, j in asked], compared, X.shape)
    Y = np.array([[found[i, j] for j in range(8)] for i in range(3)])
    assert_array_equal(np.argsort(Y, axis=1), np.argsort(X, axis=1))
    assert (Y.max(axis=1) < X.max(axis=1)).all()
    assert (Y.min(axis=1) > X.min(axis=1)).all()


def test_answers_below_0_become_0_and_are_counted():
    asked, answers, compared = lists(8)
    answers = [(i, x - 4) for i, x in answers]
    truth = oracle.decoded(asked, answers, compared)
    found = decoded(seen_of(asked, answers, compared, SHAPE))
    assert found.clipped == sum(value < 0 for value in truth.values()) > 0
    assert_allclose(found.observed.values, [max(truth[cell], 0) for cell in sorted(truth)], rtol=1e-13)


def test_the_order_of_the_lists_does_not_matter():
    asked, answers, compared = lists(9)
    turned = values_of(asked[::-1], answers[::-1], compared[::-1])
    assert turned == values_of(asked, answers, compared)
