"""The preparations of papers."""

import numpy as np
import pytest

from halfseen.data import observe
from halfseen.data.datasets import as_in_a1gm
from halfseen.errors import DataError


def test_negatives_become_positive_and_zeros_the_mean_with_holes_at_one():
    prepared = as_in_a1gm(observe(np.array([[0.0, -3.0, np.nan], [5.0, -0.0, 2.0]])))
    mean = (3 + 1 + 5 + 2) / 6  # by hand: the two zeros count as 0, the hole as 1
    np.testing.assert_allclose(prepared.to_dense(), [[mean, 3, np.nan], [5, mean, 2]], rtol=1e-15)


def test_the_rest_stays_and_so_does_the_original():
    seen = observe(np.array([[0, -1], [2, 3]], dtype=np.float32), cell_weight=[1, 2, 3, 4])
    prepared = as_in_a1gm(seen)
    assert prepared.dtype == np.float32
    assert prepared.values.tolist() == [1.5, 1, 2, 3]
    assert prepared.weights.tolist() == [1, 2, 3, 4]
    assert seen.values.tolist() == [0, -1, 2, 3]


def test_zeros_and_holes_alone_have_a_mean():
    assert as_in_a1gm(observe([[0.0, np.nan]])).values.tolist() == [0.5]


def test_refusals():
    with pytest.raises(DataError, match=r"a value other than 0 to take a mean of. Found only zeros"):
        as_in_a1gm(observe(np.zeros((2, 2))))
    with pytest.raises(DataError, match=r"must be missing here. Found unseen='zero'"):
        as_in_a1gm(observe([[1.0, 0.0]], unseen="zero"))
