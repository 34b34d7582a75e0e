"""Synthetic data against the factors that they are made of."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halfseen.datasets import make_survey, planted, planted_levels, unmf_synthetic
from halfseen.datasets.synthetic import skewed_cells
from halfseen.errors import ParameterError
from tests.io.conftest import refused

some_examples = settings(deadline=None, max_examples=50)


@pytest.mark.parametrize("noise", ["poisson", "gaussian", None])
def test_planted_values_are_the_product_and_noise(noise):
    seen, W, H = planted(300, 200, 3, seen=0.3, noise=noise, random_state=0)
    assert (W.shape, H.shape, seen.shape) == ((300, 3), (200, 3), (300, 200))
    assert abs(seen.nnz - 18_000) < 4 * np.sqrt(60_000 * 0.3 * 0.7)
    means = (W @ H.T)[seen.row_of_cell(), seen.indices]
    if noise == "poisson":
        assert (seen.values == np.round(seen.values)).all()
        assert abs((seen.values - means).sum()) < 4 * np.sqrt(means.sum())
    elif noise == "gaussian":
        assert seen.values.min() >= 0
        assert np.std(seen.values - means) == pytest.approx(0.1 * means.std(), rel=0.1)
    else:
        np.testing.assert_allclose(seen.values, means)


@some_examples
@given(st.integers(1, 8), st.integers(1, 8), st.sampled_from([0.0, 0.1, 1.0]))
def test_every_row_and_column_is_seen(n, m, share):
    seen, _, _ = planted(n, m, 2, seen=share, random_state=3)
    assert min(seen.seen_per_row().min(), seen.seen_per_column().min()) >= 1


@some_examples
@given(st.integers(5, 12), st.integers(5, 12), st.integers(1, 3), st.integers(1, 5), st.integers(0, 2**32))
def test_planted_levels_are_the_thresholds_below_the_product(n, m, k, thresholds, seed):
    Y, W, H, tau = planted_levels(n, m, k, thresholds, seed)
    assert (W.shape, H.shape, tau.shape) == ((n, k), (m, k), (thresholds,))
    assert (np.diff(tau) > 0).all()
    np.testing.assert_array_equal(Y, [[sum(w @ h > t for t in tau) for h in H] for w in W])
    assert set(Y.ravel()) == set(range(thresholds + 1))


@some_examples
@given(st.integers(1, 30), st.integers(1, 30), st.integers(0, 2**32))
def test_skewed_cells_are_different_and_in_row_order(n, m, seed):
    rows, columns = skewed_cells(n, m, n * m // 2, seed)
    flat = rows * m + columns
    assert (flat.size, (np.diff(flat) > 0).all()) == (n * m // 2, True)
    assert ((rows >= 0) & (rows < n) & (columns < m)).all()


def test_skewed_cells_are_skewed_on_both_sides():
    for side in skewed_cells(2000, 1000, 50_000, 0):
        counts = np.sort(np.bincount(side))[::-1]
        assert counts[: counts.size // 10].sum() > 0.35 * counts.sum()


def test_the_uncoupled_synthetic_matrix_is_two_blocks_and_noise():
    many, means = np.array([unmf_synthetic(seed) for seed in range(4000)]), np.full((10, 10), 2.0)
    for i, j in np.ndindex(10, 10):  # from 0
        means[i, j] += (j + 2) / 2 if max(i, j) <= 3 else (j - 3) / 2 if min(i, j) > 4 else 0
    np.testing.assert_allclose(many.mean(axis=0), means, atol=4.5 * 0.6 / np.sqrt(4000))
    np.testing.assert_allclose((many - means).std(), 0.6, rtol=0.02)
    assert (many >= 0).all()


def test_a_survey_has_the_answers_of_its_truth_without_names():
    collected, truth = make_survey(6, 5, 4, random_state=0)
    assert truth.shape == (6, 5)
    np.testing.assert_array_equal(truth, np.round(truth, 1))
    assert all(part in repr(collected) for part in ("6 questions x 5 respondents", "30 answers", "24 comparisons"))


@pytest.mark.parametrize("make", [
    lambda seed: planted(9, 8, 2, random_state=seed)[1], lambda seed: planted_levels(9, 8, 2, 3, seed)[1],
    lambda seed: make_survey(6, 5, 4, random_state=seed).truth, lambda seed: skewed_cells(9, 8, 30, seed)[1],
])  # fmt: skip
def test_the_same_seed_gives_the_same_data(make):
    assert np.array_equal(make(4), make(4))
    assert not np.array_equal(make(4), make(5))


@pytest.mark.parametrize(("function", "others", "wrong"), [
    (planted, (3, 3, 1), {"seen": 1.5}), (planted, (3, 3, 1), {"noise": "loud"}), (skewed_cells, (3, 4), {"nnz": 7}),
    (planted_levels, (3, 4, 1), {"thresholds": 12}), (make_survey, (), {"n_respondents": 1}),
])  # fmt: skip
def test_impossible_parameters_are_refused(function, others, wrong):
    ((name, value),) = wrong.items()
    with refused(ParameterError, parameter=name, found=repr(value)):
        function(*others, **wrong)
