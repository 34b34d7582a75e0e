"""Rising numbers as free parameters."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from halfseen.likelihoods.ordinal_base import parameters_from_thresholds, threshold_jacobian, thresholds_from_parameters

parameters = st.lists(st.floats(-8, 8), min_size=1, max_size=9).map(np.array)


@given(parameters)
def test_there_and_back(p):
    tau = thresholds_from_parameters(p)
    assert np.all(np.diff(tau) > 0)
    assert_allclose(parameters_from_thresholds(tau), p, rtol=1e-6, atol=1e-6)
    assert_allclose(np.diff(tau), np.exp(p[1:]), rtol=1e-6)
    assert tau[0] == p[0]
    p = np.clip(p, -5, 5)
    steps = 1e-6 * np.eye(p.size)
    differences = np.column_stack(
        [(thresholds_from_parameters(p + s) - thresholds_from_parameters(p - s)) / 2e-6 for s in steps]
    )
    assert_allclose(threshold_jacobian(p), differences, rtol=1e-6, atol=1e-6 * np.exp(p).max())


@pytest.mark.parametrize("gap", [-1e3, -40.0, -30.0, 30.0, 40.0, 1e3])
@pytest.mark.parametrize("first", [-1e6, -300.0, 0.0, 1.0, 300.0, 1e6])
def test_order_is_kept_wherever_the_parameters_go(first, gap):
    """Gaps too small or too large for the numbers beside them must not make two thresholds one."""
    tau = thresholds_from_parameters(np.array([first, 1.0, gap, 0.5, gap]))
    assert np.all(np.isfinite(tau))
    assert np.all(np.diff(tau) > 0)
    with np.errstate(all="raise"):
        assert np.all(np.isfinite(parameters_from_thresholds(tau)))


def test_many_sets_at_once():
    p = np.random.default_rng(0).normal(size=(3, 4))
    tau = np.array([thresholds_from_parameters(row) for row in p])
    assert_allclose(thresholds_from_parameters(p), tau)
    assert_allclose(parameters_from_thresholds(tau), p, rtol=1e-12, atol=1e-14)
