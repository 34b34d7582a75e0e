"""The oracle against mathematics: slopes by finite differences, tails by series, known optima."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tests.graded import oracle

TAU = np.array([-1.2, 0.1, 0.9, 2.0])
PRIORS = [oracle.Prior(0.7), oracle.Prior(0.7, True), oracle.Prior(0.7, True, False)]


@pytest.mark.parametrize("loss", oracle.LOSSES.values(), ids=oracle.LOSSES)
@pytest.mark.parametrize("prior", PRIORS, ids=str)
def test_gradients(loss, prior):
    rng = np.random.default_rng(0)
    Y, C = rng.integers(0, 5, (6, 5)), np.where(rng.random((6, 5)) < 0.3, 0.0, rng.choice([0.5, 1, 2], (6, 5)))
    factors = [rng.normal(size=(size, 3)) for size in Y.shape]
    for side, slopes in enumerate(oracle.slopes(loss, Y, C, *factors, TAU, prior)):
        for entry in np.ndindex(slopes.shape):
            up, down = ([F.copy() for F in factors] for _ in range(2))
            up[side][entry] += 1e-5
            down[side][entry] -= 1e-5
            rise = oracle.objective(loss, Y, C, *up, TAU, prior) - oracle.objective(loss, Y, C, *down, TAU, prior)
            held = prior.held(3, side)[entry[1]]
            assert_allclose(slopes[entry], (1 - held) * rise / 2e-5, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("link", oracle.NOISES)
def test_probabilities_are_the_exponents_of_costs_and_sum_to_one(link):
    x = np.linspace(-3, 4, 15)
    p = oracle.probabilities(link, x, TAU)
    assert_allclose(p.sum(-1), 1, rtol=1e-14)
    for y in range(5):
        assert_allclose(p[:, y], np.exp(-oracle.cumulative(link)(np.full(15, y), x, TAU)[0]), rtol=1e-12, atol=1e-15)


def test_masses_in_the_tails_are_their_leading_terms():
    """log(F(b) - F(a)) far out: for logit e^a (e^(b-a) - 1) below, for cauchit (b - a) / (pi a b)."""
    a, b = np.array([-30.0, -300.0]), np.array([-29.0, -299.5])
    assert_allclose(oracle.log_mass(oracle.NOISES["logit"], a, b), a + np.log(np.expm1(b - a)), rtol=1e-12)
    assert_allclose(oracle.log_mass(oracle.NOISES["logit"], -b, -a), a + np.log(np.expm1(b - a)), rtol=1e-12)
    assert_allclose(oracle.log_mass(oracle.NOISES["cauchit"], a, b), np.log((b - a) / (np.pi * a * b)), rtol=1e-3)
