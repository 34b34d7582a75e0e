"""Matrices whose truth is known."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfseen.data import planted
from halfseen.data.synthetic import planted_levels, skewed_cells, unmf_synthetic
from halfseen.errors import ParameterError

from .strategies import CALM


def test_without_noise_the_values_are_the_product():
    seen, W, H = planted(20, 15, 3, noise=None, random_state=0)
    truth = W @ H.T
    np.testing.assert_allclose(seen.values, truth[seen.row_of_cell(), seen.indices])
    assert (W.shape, H.shape, seen.shape) == ((20, 3), (15, 3), (20, 15))


def test_poisson_noise_gives_counts_around_the_product():
    seen, W, H = planted(300, 200, 2, seen=0.3, random_state=1)
    means = (W @ H.T)[seen.row_of_cell(), seen.indices]
    assert (seen.values == np.round(seen.values)).all()
    assert abs((seen.values - means).sum()) < 4 * np.sqrt(means.sum())
    assert abs(seen.nnz - 18_000) < 4 * np.sqrt(60_000 * 0.3 * 0.7)


def test_gaussian_noise_is_a_tenth_of_the_signal_and_never_negative():
    seen, W, H = planted(200, 200, 4, noise="gaussian", random_state=2)
    means = (W @ H.T)[seen.row_of_cell(), seen.indices]
    assert seen.values.min() >= 0
    assert np.std(seen.values - means) == pytest.approx(0.1 * means.std(), rel=0.05)


@CALM
@given(st.integers(1, 8), st.integers(1, 8), st.sampled_from([0.0, 0.1, 1.0]))
def test_every_row_and_column_is_seen(n, m, share):
    seen, _, _ = planted(n, m, 2, seen=share, random_state=3)
    assert seen.seen_per_row().min() >= 1
    assert seen.seen_per_column().min() >= 1


def test_the_same_seed_gives_the_same_matrix():
    a, b = planted(9, 8, 2, random_state=4)[0], planted(9, 8, 2, random_state=4)[0]
    np.testing.assert_array_equal(a.to_dense(), b.to_dense())
    assert planted(9, 8, 2, random_state=5)[0].values.tolist() != a.values.tolist()


@pytest.mark.parametrize("option", [{"seen": 1.5}, {"noise": "loud"}])
def test_impossible_wishes_are_refused(option):
    with pytest.raises(ParameterError, match=f"{next(iter(option))} must be"):
        planted(3, 3, 1, **option)


@CALM
@given(st.integers(1, 30), st.integers(1, 30), st.integers(0, 2**32))
def test_skewed_cells_are_different_and_in_row_order(n, m, seed):
    rows, columns = skewed_cells(n, m, n * m // 2, seed)
    flat = rows * m + columns
    assert flat.size == n * m // 2
    assert (np.diff(flat) > 0).all()
    assert ((rows >= 0) & (rows < n) & (columns < m)).all()


def test_skewed_cells_are_skewed_on_both_sides():
    for side in skewed_cells(2000, 1000, 50_000, 0):
        counts = np.sort(np.bincount(side))[::-1]
        assert counts[: counts.size // 10].sum() > 0.35 * counts.sum()


def test_too_many_cells_are_refused():
    with pytest.raises(ParameterError, match=r"nnz must lie between 0 and half of the 12 cells. Found 7"):
        skewed_cells(3, 4, 7)


# Levels.


@CALM
@given(st.integers(5, 12), st.integers(5, 12), st.integers(1, 3), st.integers(1, 5), st.integers(0, 2**32))
def test_planted_levels_are_the_thresholds_below_the_product(n, m, k, thresholds, seed):
    Y, W, H, tau = planted_levels(n, m, k, thresholds, seed)
    assert (W.shape, H.shape, tau.shape) == ((n, k), (m, k), (thresholds,))
    assert (np.diff(tau) > 0).all()
    np.testing.assert_array_equal(Y, [[sum(w @ h > t for t in tau) for h in H] for w in W])
    assert set(Y.ravel()) == set(range(thresholds + 1))


def test_planted_levels_are_drawn_by_their_seed():
    one, again, other = (planted_levels(9, 8, 2, 3, seed)[0].tolist() for seed in (4, 4, 5))
    assert one == again != other


@pytest.mark.parametrize("thresholds", [0, 12])
def test_an_impossible_number_of_thresholds_is_refused(thresholds):
    with pytest.raises(ParameterError, match=r"thresholds must be at least 1, and fewer than the 12 cells"):
        planted_levels(3, 4, 1, thresholds)


# The matrix of the paper on uncoupled data.


def test_the_uncoupled_synthetic_matrix_is_two_blocks_and_noise():
    many = np.array([unmf_synthetic(seed) for seed in range(400)])
    means = [[2.0] * 10 for _ in range(10)]
    for i in range(1, 11):
        for j in range(1, 11):
            means[i - 1][j - 1] += (j + 1) / 2 if max(i, j) <= 4 else (j - 4) / 2 if min(i, j) > 5 else 0
    assert (np.min(means), np.max(means)) == (2, 5)
    np.testing.assert_allclose(many.mean(axis=0), means, atol=4.5 * 0.6 / 20)
    np.testing.assert_allclose((many - means).std(), 0.6, rtol=0.02)
    assert (many >= 0).all()


def test_the_uncoupled_synthetic_matrix_is_drawn_by_its_seed():
    one, again, other = (unmf_synthetic(seed).tolist() for seed in (4, 4, 5))
    assert one == again != other
