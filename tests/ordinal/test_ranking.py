"""NDCG by hand and beside scikit-learn."""

import numpy as np
import pytest
from sklearn.metrics import ndcg_score

from .ranking import ndcg


def test_by_hand():
    scores = np.array([[4.0, 3.0, 2.0, 1.0], [1.0, 2.0, 3.0, 4.0], [1.0, 1.0, 1.0, 1.0]])
    seen = np.array([[True, False, False, False], [False] * 4, [False] * 4])
    test = np.array([[0, 2, 0, 5], [0, 0, 3, 0], [0, 0, 0, 0]])
    first = (1 + 1 / np.log2(4)) / (1 + 1 / np.log2(3))  # ranks 1 and 3 of its unseen items
    second = 1 / np.log2(3)  # rank 2; the third user has nothing relevant and is left out
    assert ndcg(scores, seen, test) == pytest.approx((first + second) / 2, rel=1e-14)
    assert ndcg(scores, seen, test, k=1) == pytest.approx(1 / 2, rel=1e-14)
    assert ndcg(scores, seen, test, relevant=5) == pytest.approx(1 / np.log2(4), rel=1e-14)


@pytest.mark.parametrize("k", [3, 10, 60])
def test_beside_scikit_learn(k):
    random = np.random.default_rng(0)
    scores, test = random.random((20, 50)), random.integers(0, 6, (20, 50)) * (random.random((20, 50)) < 0.2)
    nothing = np.zeros(test.shape, bool)
    users = (test >= 3).any(1)
    expected = ndcg_score((test >= 3)[users], scores[users], k=k)
    assert ndcg(scores, nothing, test, k, relevant=3) == pytest.approx(expected, rel=1e-12)
