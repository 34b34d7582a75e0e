"""The exponents of the multiplicative updates, and what they leave of numbers that are too small."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from halfseen.engines import Side
from halfseen.io import observe
from halfseen.likelihoods import likelihood_for
from halfseen.solvers import Gamma, GammaPrior, Multiplicative, Penalty
from tests.laws.cases import half_seen, start, states


@pytest.mark.parametrize(
    ("beta", "plain", "with_l2"),
    [(-1, 1 / 3, 1 / 4), (0, 1 / 2, 1 / 3), (0.5, 2 / 3, 2 / 5), (1, 1, 1 / 2), (1.5, 1, 2 / 3), (2, 1, 1),
     (3, 1 / 2, 1 / 2), (5, 1 / 4, 1 / 4)],
)  # fmt: skip
def test_exponents(beta, plain, with_l2):
    """Févotte & Idier 2011, Table 2; a quadratic penalty pushes with the power 2."""
    likelihood = likelihood_for(beta)
    assert_allclose(Multiplicative().exponent(likelihood), plain)
    assert_allclose(Multiplicative(Penalty(l1=1.0)).exponent(likelihood), plain)
    assert_allclose(Multiplicative(Penalty(l2=1.0)).exponent(likelihood), with_l2)
    assert_allclose(Multiplicative(Penalty(l1=1.0, l2=1.0)).exponent(likelihood), with_l2)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("loss", [0, 0.5, 1, 2, 3])
def test_a_zero_stays_zero_and_what_is_too_small_becomes_one(loss, dtype):
    X = half_seen(zeros=False).astype(dtype)
    W, H = start(*X.shape, 3, dtype=dtype)
    W[3, 1] = 0
    W[4, 2] = np.finfo(dtype).smallest_subnormal
    H[2] = 0
    *_, last = states(Multiplicative(), likelihood_for(loss), observe(X), W, H, steps=4)
    assert last.rows.mean[3, 1] == last.rows.mean[4, 2] == 0
    assert_array_equal(last.columns.mean[2], 0)
    for factor in (last.rows.mean, last.columns.mean):
        assert not np.any((factor > 0) & (factor < np.finfo(dtype).tiny ** 0.5))
    assert np.all(last.rows.mean[[0, 1, 2]] > 0)


def test_penalties_and_priors_are_what_they_say():
    penalty, F = Penalty(l1=0.5, l2=2.0), np.array([0.0, 1.0, 3.0])
    assert_allclose(penalty.cost(F), 0.5 * F + F**2)
    assert_allclose(penalty.push(F), 0.5 + 2 * F)
    assert bool(penalty)
    assert not Penalty()
    mean = np.array([[1.0, 3.0], [0.5, 0.5]])
    assert_allclose(GammaPrior(0.6).rates(mean), [[0.3], [1.2]])
    assert GammaPrior(0.6, 2.0).rates(mean) == 2.0
    average = np.array([0.5, 2.0])
    blank = Gamma(GammaPrior(0.7), GammaPrior(0.7)).default_factor(average, 3, Side.ROWS)
    assert_allclose(blank.mean, np.tile(average, (3, 1)))
    assert_allclose(blank.shape, 0.7)
    assert_allclose(blank.shape / blank.rate, blank.mean)
    assert np.all(blank.geometric < blank.mean)
