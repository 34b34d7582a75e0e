"""The gamma function's two companions against SciPy's."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import special

from halfseen.kernels.special import digamma_and_log_gamma

ARGUMENTS = np.concatenate([np.geomspace(1e-6, 1e12, 4001), np.linspace(0.5, 3, 1001), np.arange(1.0, 60.0)])


def test_double_precision():
    digamma, log_gamma = digamma_and_log_gamma(ARGUMENTS)
    assert digamma.dtype == log_gamma.dtype == np.float64
    assert_allclose(digamma, special.digamma(ARGUMENTS), rtol=1e-14, atol=2e-14)
    assert_allclose(log_gamma, special.gammaln(ARGUMENTS), rtol=1e-14, atol=2e-14)


def test_single_precision_is_right_to_its_last_digits():
    a = ARGUMENTS.astype(np.float32)
    digamma, log_gamma = digamma_and_log_gamma(a)
    assert digamma.dtype == log_gamma.dtype == np.float32
    assert_allclose(digamma, special.digamma(a.astype(np.float64)), rtol=1.2e-7, atol=1e-13)
    assert_allclose(log_gamma, special.gammaln(a.astype(np.float64)), rtol=1.2e-7, atol=1e-13)


@pytest.mark.parametrize("a", [1e-30, 1e-300, 1e30, 1e38])
def test_far_out(a):
    digamma, log_gamma = digamma_and_log_gamma(np.array([a]))
    assert_allclose(digamma, special.digamma(a), rtol=1e-14)
    assert_allclose(log_gamma, special.gammaln(a), rtol=1e-14)


@pytest.mark.parametrize("shape", [(0, 3), (4, 0), (2, 3), (5, 1)])
def test_shapes_are_kept_and_arguments_left_alone(shape):
    a = np.full(shape, 2.5)
    digamma, log_gamma = digamma_and_log_gamma(a)
    assert digamma.shape == log_gamma.shape == shape
    assert_allclose(digamma, special.digamma(2.5), rtol=1e-14)
    assert np.all(a == 2.5)
