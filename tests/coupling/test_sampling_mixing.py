"""Split R-hat and effective draws against plain loops, and against chains of which both are known."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from halfseen.coupling.sampling.diagnostics import mixing
from tests.coupling import sampling_oracle as oracle


def autoregressive(phi, size, seed=0):
    """x_t = phi x_{t-1} + noise, of variance 1 from the start on."""
    random = np.random.default_rng(seed)
    noise = random.standard_normal(size) * np.sqrt(1 - phi**2)
    x = np.empty(size)
    x[0] = random.standard_normal()
    for t in range(1, size):
        x[t] = phi * x[t - 1] + noise[t]
    return x


CHAINS = {
    "independent": autoregressive(0.0, 200),
    "slow": autoregressive(0.9, 301),
    "alternating": autoregressive(-0.6, 200),
    "drifting": autoregressive(0.5, 150) + np.linspace(0, 4, 150),
    "four draws": np.array([1.0, 3.0, 2.0, 5.0]),
    "five draws": np.array([1.0, 3.0, 2.0, 5.0, -1.0]),
    "eight draws": np.array([1.0, 2.0, 3.0, 3.0, 4.0, 5.0, 5.0, 6.0]),
    "one step": np.repeat([0.0, 1.0], 10) + 1e-3 * np.tile([0.0, 1.0], 10),
}


@pytest.mark.parametrize("draws", CHAINS.values(), ids=CHAINS)
def test_they_are_what_plain_loops_give(draws):
    found = mixing(draws)
    assert_allclose(found.mean, sum(draws) / len(draws), rtol=1e-12)
    assert_allclose(found.r_hat, oracle.split_r_hat(draws), rtol=1e-12)
    assert_allclose(found.effective, oracle.effective_draws(draws), rtol=1e-10)


@pytest.mark.parametrize("phi", [0.0, 0.5, 0.8])
def test_an_autoregressive_chain_is_worth_what_theory_says(phi):
    """n (1 - phi) / (1 + phi) draws: the mean of 40 chains, within four deviations of their own scatter and 5 %.

    Cutting the sum off, and a mean of ratios, leave a bias of a few per cent.
    """
    n = 4000
    found = np.array([mixing(autoregressive(phi, n, seed)).effective for seed in range(40)])
    expected = n * (1 - phi) / (1 + phi)
    assert abs(found.mean() - expected) < 4 * found.std() / np.sqrt(found.size) + 0.05 * expected


def test_a_chain_that_settled_has_an_r_hat_of_one_and_one_that_drifts_has_not():
    assert abs(mixing(autoregressive(0.3, 4000)).r_hat - 1) < 0.01
    # Halves at 0 and at d, of deviation 1: r_hat^2 is nearly 1 + d^2 / 2.
    halves = autoregressive(0.0, 4000) + np.repeat([0.0, 3.0], 2000)
    assert_allclose(mixing(halves).r_hat, np.sqrt(1 + 3.0**2 / 2), rtol=0.03)


def test_what_never_moves_has_mixed():
    assert mixing(np.full(50, 0.7)) == (pytest.approx(0.7), 1.0, 50.0)


@pytest.mark.parametrize("draws", [[2.0], [1.0, 2.0], [1.0, 2.0, 4.0]])
def test_of_too_few_draws_nothing_can_be_said(draws):
    """Halves of one draw have no variance; not even whether it stands still is known."""
    for these in (np.array(draws), np.full(len(draws), 3.0)):
        found = mixing(these)
        assert found.mean == pytest.approx(these.mean())
        assert np.isnan([found.r_hat, found.effective]).all()


def test_two_halves_that_stand_still_at_different_values_never_met():
    found = mixing(np.repeat([0.0, 1.0], 10))
    assert found.r_hat == np.inf
    assert found.effective < 4
