"""Exponential, logarithm and special functions in compiled loops, against NumPy's and SciPy's."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import special as scipy

from halfseen.kernels import kernel, special

ARGUMENTS = np.concatenate([np.geomspace(1e-6, 1e12, 4001), np.linspace(0.5, 3, 1001), np.arange(1.0, 60.0)])


@kernel
def companions(a, digamma, log_gamma):
    for i in range(a.size):
        digamma[i], log_gamma[i] = special.digamma_and_log_gamma(a[i])


@kernel
def exponentials(z, exp, one_minus_exp):
    for i in range(z.size):
        exp[i], one_minus_exp[i] = special.exp(-z[i]), special.one_minus_exp(z[i])


@kernel
def logarithms(x, out):
    for i in range(x.size):
        out[i] = special.log(x[i])


def test_digamma_and_log_gamma():
    digamma, log_gamma = np.empty((2, ARGUMENTS.size))
    companions(ARGUMENTS, digamma, log_gamma)
    assert_allclose(digamma, scipy.digamma(ARGUMENTS), rtol=1e-14, atol=2e-14)
    assert_allclose(log_gamma, scipy.gammaln(ARGUMENTS), rtol=1e-14, atol=2e-14)


@pytest.mark.parametrize("a", [1e-30, 1e-300, 1e30, 1e38])
def test_far_out(a):
    digamma, log_gamma = np.empty((2, 1))
    companions(np.array([a]), digamma, log_gamma)
    assert_allclose(digamma, scipy.digamma(a), rtol=1e-14)
    assert_allclose(log_gamma, scipy.gammaln(a), rtol=1e-14)


def test_exponentials_lose_no_digit():
    z = np.concatenate([[0.0, 1e-300], np.geomspace(1e-20, 700, 4001), [5e3, np.inf]])
    exp, one_minus_exp = np.empty((2, z.size))
    exponentials(z, exp, one_minus_exp)
    assert_allclose(exp, np.exp(-z), rtol=4e-16, atol=1e-300)
    assert_allclose(one_minus_exp, -np.expm1(-z), rtol=4e-16)


def test_logarithms_lose_no_digit():
    x = np.concatenate([np.geomspace(np.finfo(float).tiny, 1e308, 4001), np.linspace(0.9, 1.1, 1001)])
    out = np.empty(x.size)
    logarithms(x, out)
    assert_allclose(out, np.log(x), rtol=4e-16, atol=1e-300)


@kernel
def normals(z, p, tails, quantiles):
    for i in range(z.size):
        tails[i] = special.normal_tail(z[i])
    for i in range(p.size):
        quantiles[i] = special.normal_quantile(p[i])


def test_normal_tails_and_quantiles():
    z = np.linspace(0.0, 37.0, 20_001)
    p = np.concatenate(
        [np.geomspace(1e-11, 0.5, 4001), 1 - np.geomspace(1e-11, 0.5, 4001), np.linspace(0.07, 0.08, 101)]
    )
    tails, quantiles = np.empty(z.size), np.empty(p.size)
    normals(z, p, tails, quantiles)
    truth = scipy.ndtr(-z)
    assert_allclose(tails[z <= 2], truth[z <= 2], rtol=1e-14)
    assert_allclose(tails[z <= 5], truth[z <= 5], rtol=1e-10)
    assert_allclose(tails, truth, rtol=1e-5)
    assert_allclose(quantiles, scipy.ndtri(p), rtol=0, atol=1e-14)


@kernel
def shares(bits, out):
    for i in range(bits.size):
        out[i] = special.share_of_bits(bits[i])


def test_shares_of_bits():
    bits, out = np.array([0, 1 << 12, 1 << 63, 2**64 - 1], np.uint64), np.empty(4)
    shares(bits, out)
    assert_allclose(out, [0.0, 2.0**-52, 0.5, 1.0], rtol=1e-15)
    assert out.max() < 1.0
