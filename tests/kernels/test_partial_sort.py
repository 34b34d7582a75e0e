"""The best of many scores against a full stable sort."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_array_equal

from halfseen.kernels.partial_sort import update_topk
from tests.data.strategies import CALM


def best(x, n, width):
    """The n best of each row, offered in tiles of `width` columns."""
    columns, scores = np.full((len(x), n), -1), np.full((len(x), n), -np.inf, x.dtype)
    for first in range(0, x.shape[1], width):
        update_topk(np.ascontiguousarray(x[:, first : first + width]), first, columns, scores)
    return columns, scores


def sorted_whole(x, n):
    """The same by sorting everything."""
    ranked = np.where(np.isnan(x), -np.inf, x)
    columns = np.argsort(-ranked, axis=1, kind="stable")[:, :n]
    scores = np.take_along_axis(ranked, columns, axis=1)
    return np.where(np.isneginf(scores), -1, columns), scores


def assert_best(x, n, width):
    columns, scores = best(x, n, width)
    expected_columns, expected_scores = sorted_whole(x, n)
    assert_array_equal(columns, expected_columns)
    assert_array_equal(scores, expected_scores)


SCORES = st.floats(width=32) | st.sampled_from([0.0, -0.0, 1.0, 2.0, np.nan, np.inf, -np.inf])


@CALM
@given(
    st.sampled_from([np.float32, np.float64]).flatmap(
        lambda dtype: hnp.arrays(dtype, st.tuples(st.integers(1, 3), st.integers(1, 40)), elements=SCORES)
    ),
    st.data(),
)
def test_any_scores(x, data):
    n = data.draw(st.integers(1, x.shape[1]))
    assert_best(x, n, data.draw(st.integers(1, x.shape[1])))


SPREADS = {
    "uniform": lambda rng, size: rng.random(size),
    "heavy tail": lambda rng, size: np.exp(rng.normal(0, 30, size)),
    "below zero": lambda rng, size: -rng.gamma(1.0, 1.0, size),
    "few values": lambda rng, size: rng.integers(0, 4, size).astype(float),
    "one value": lambda rng, size: np.full(size, 3.0),
    "one stands out": lambda rng, size: np.where(np.arange(size[1]) == 7, 1e300, rng.random(size)),
    "neighbours": lambda rng, size: 1.0 + rng.integers(0, 50, size) * np.finfo(float).eps,
    "tiny": lambda rng, size: rng.integers(0, 90, size) * 5e-324,
    "rising": lambda rng, size: np.broadcast_to(np.arange(size[1]) * 1.0, size),
    "falling": lambda rng, size: np.broadcast_to(-np.arange(size[1]) * 1.0, size),
    "half hidden": lambda rng, size: np.where(rng.random(size) < 0.5, -np.inf, rng.random(size)),
    "nearly all hidden": lambda rng, size: np.where(rng.random(size) < 0.99, -np.inf, rng.random(size)),
}


@pytest.mark.parametrize("spread", SPREADS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_long_rows_of_every_spread(spread, dtype):
    with np.errstate(over="ignore"):
        x = SPREADS[spread](np.random.default_rng(0), (5, 2000)).astype(dtype)
    for n in (1, 10, 100, 1999, 2000):
        for width in (2000, 700):
            assert_best(x, n, width)
