"""Rankings in which nearly everything is tied, cells are repeated, and blocks are small: against plain Python."""

import re
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from halfseen import Observed
from halfseen.errors import DataWarning
from halfseen.metrics import log_score, map_at_k, ndcg_at_k, ranked_probability_score, ranking_scores, scorers
from tests.metrics import oracle

SOME = settings(deadline=None, max_examples=40)


def draw(seed):
    """Scores 0, 1 and 2, cells of training and of test, some of them twice, some of them in both."""
    rng = np.random.default_rng(seed)
    n, m = rng.integers(2, 9, 2).tolist()
    scores = rng.integers(0, 3, (n, m)) * 1.0
    train, test = (rng.integers(0, size, (count, 1)) for size, count in ((n * m, n), (n * m, 3 * n)))
    train, test = np.unique(train), test.reshape(-1)
    return scores, train, test, rng.integers(1, 6, test.size) * 1.0


def as_rows(places, values, shape):
    """A list of dicts from columns to the highest value there."""
    rows = [{} for _ in range(shape[0])]
    for place, value in zip(places.tolist(), values.tolist(), strict=True):
        u, i = divmod(place, shape[1])
        rows[u][i] = max(value, rows[u].get(i, value))
    return rows


@pytest.mark.parametrize("at_a_time", [5, 10**6])
@SOME
@given(st.integers(0, 10_000), st.integers(1, 12), st.lists(st.sampled_from([0, 1, 2.5, 3, 5]), min_size=1, max_size=3))
def test_against_plain_python(at_a_time, seed, k, relevant):
    scores, train, test, values = draw(seed)
    shape = scores.shape
    seen, held = as_rows(train, train, shape), as_rows(test, values, shape)
    rows = [
        [oracle.metrics(list(scores[u]), set(seen[u]), held[u], k, s) or (np.nan,) * 4 for u in range(shape[0])]
        for s in relevant
    ]
    expected = np.moveaxis(np.array(rows), -1, 0)
    if np.isnan(expected[0]).all(axis=1).any():
        return  # nothing relevant at all is refused
    again = sum(len(set(mine) & set(asked)) for mine, asked in zip(seen, held, strict=True))
    cells = [
        Observed.from_cells(*np.divmod(places, shape[1]), v, shape, duplicates="keep")
        for places, v in ((train, np.ones(train.size)), (test, values))
    ]
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        patch.setattr(scorers, "SCORES_AT_A_TIME", at_a_time)
        found = ranking_scores(scores, *cells, k, relevant)
        means = [metric(scores, *cells, k, relevant) for metric in (ndcg_at_k, map_at_k)]
    assert_allclose(np.array(found), expected, rtol=1e-12)
    assert_allclose(means, np.nanmean(expected[[0, 3]], axis=-1), rtol=1e-12)
    if min(relevant) <= 1:  # every row with a test cell is looked at
        told = [str(warning.message) for warning in caught if issubclass(warning.category, DataWarning)]
        assert len(told) == (3 if again else 0)
        assert all(int(re.search(r"Found (\d+) of", sentence)[1]) == again for sentence in told)


@SOME
@given(st.integers(0, 10_000), st.integers(2, 6))
def test_scores_of_levels_with_cells_of_no_weight(seed, n_levels):
    """As if those cells were not there, even where one of them was said to be impossible."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(n_levels), 9)
    levels, weights = rng.integers(0, n_levels, 9), rng.choice([0.0, 0.5, 2.0], 9)
    weights[:2] = 0.0, 1.5
    p[0] = np.roll(np.eye(n_levels)[0], levels[0] + 1)  # impossible
    up_to = np.cumsum(p, axis=1)
    each = [sum((up_to[j, v] - (levels[j] <= v)) ** 2 for v in range(n_levels - 1)) for j in range(9)]
    counts = weights > 0
    assert_allclose(
        ranked_probability_score(levels, p, weights=weights), np.dot(weights, each) / weights.sum(), atol=1e-12
    )
    logs = np.log(p[np.arange(9), levels], where=counts, out=np.zeros(9))
    assert_allclose(log_score(levels, p, weights=weights), np.dot(weights, logs) / weights.sum(), rtol=1e-12)
