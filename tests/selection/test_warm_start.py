"""Starts of a larger rank, made of the factors of a smaller one."""

import numpy as np
import pytest

from halfseen import OrdinalMF, OrdNMF, PoissonFactorization, RoundMF, SquaredOrdNMF, WeightedNMF, observe
from halfseen.estimators.base import prepare
from halfseen.selection.warm_start import JITTER, warm_start
from tests.estimators.models import with_factors
from tests.selection.data import counts, stars, table


def fitted(model, observed):
    return model.set_params(max_iter=500, random_state=0, n_jobs=1).fit(observed)


def mean_x(W, H):
    return float((W @ H.T).mean())


def test_new_components_of_weighted_nmf_are_random_and_make_up_half_of_x():
    observed = observe(table(2, 0))
    model = fitted(WeightedNMF(2, accelerate=True), observed)
    W, H = warm_start(model, 5, observed, np.random.RandomState(0))
    assert (W.shape, H.shape) == ((60, 5), (40, 5))
    np.testing.assert_allclose(W[:, :2] @ H[:, :2].T, 0.5 * model.W_ @ model.H_.T, rtol=1e-12)
    assert mean_x(W[:, 2:], H[:, 2:]) == pytest.approx(0.5 * mean_x(model.W_, model.H_), rel=0.2)
    assert np.all(W[:, 2:] > 0)
    assert np.unique(W[:, 2:]).size == 60 * 3


def test_new_components_of_a_posterior_are_copies_of_the_largest_ones():
    observed = counts(3, 0)
    model = fitted(PoissonFactorization(3), observed)
    largest = int(np.argmax(model.W_.mean(axis=0) * model.H_.mean(axis=0)))
    W, H = warm_start(model, 4, observed, np.random.RandomState(0))
    copies = [largest, largest + 1]
    for new, old in ((W, model.W_), (H, model.H_)):
        np.testing.assert_array_equal(np.delete(new, copies, axis=1), np.delete(old, largest, axis=1))
        ratio = new[:, copies] * np.sqrt(2) / old[:, [largest]]
        assert np.all((ratio >= JITTER[0]) & (ratio <= JITTER[1]))
        assert np.unique(ratio).size == ratio.size
    assert mean_x(W, H) == pytest.approx(mean_x(model.W_, model.H_), rel=0.1)


def test_many_copies_are_shared_out_by_size():
    """Components that make up 5, 2 and 1 of x become 5, 2 and 1 of the same size."""
    observed = counts(3, 0)
    model = fitted(PoissonFactorization(3), observed)
    random = np.random.RandomState(0)
    W, H = random.uniform(1, 2, model.W_.shape), random.uniform(1, 2, model.H_.shape)
    W *= [5.0, 2.0, 1.0] / (W.mean(axis=0) * H.mean(axis=0))
    W, H = warm_start(with_factors(model, W, H), 8, observed, random)
    np.testing.assert_allclose(W.mean(axis=0) * H.mean(axis=0), np.ones(8), rtol=0.1)


@pytest.mark.parametrize("noise", ["inverse-gamma", "exponential"])
def test_factors_of_ordered_levels_are_of_the_scale_of_the_thresholds_that_a_fit_starts_with(noise):
    """Levels have probabilities by x / thresholds alone: this ratio is what a start must keep."""
    observed = stars(2, 0, n=40, m=30)
    model = fitted(OrdNMF(2, noise=noise), observed)
    W, H = warm_start(model, 3, observed, np.random.RandomState(0))
    likelihood = prepare(OrdNMF(3, noise=noise), observed).likelihood
    scale = likelihood.thresholds[0] if noise == "exponential" else 1 / likelihood.theta[0]
    before = mean_x(model.W_, model.H_) / model.thresholds_[0]
    assert mean_x(W, H) / scale == pytest.approx(before, rel=0.1)


@pytest.mark.parametrize("kind", [OrdinalMF, RoundMF, SquaredOrdNMF])
def test_models_that_gain_nothing_start_from_scratch(kind):
    observed = stars(2, 0, n=40, m=30)
    observed = observed if kind is SquaredOrdNMF else observe(np.where(observed.to_dense() > 0, 2.0, 1.0))
    assert warm_start(fitted(kind(2), observed), 3, observed, np.random.RandomState(0)) is None


@pytest.mark.parametrize(
    ("model", "observed"),
    [(WeightedNMF(2), observe(table(3, 1))), (PoissonFactorization(2), counts(3, 1)), (OrdNMF(2), stars(3, 1))],
    ids=lambda value: type(value).__name__,
)
def test_a_warm_start_ends_as_high_as_one_from_scratch_in_fewer_iterations(model, observed):
    """Over a few ranks and seeds together; single fits may end either way."""
    warm = cold = warm_end = cold_end = 0
    sign = 1 if model.score_is_log_likelihood else -1
    for seed in range(3):
        small = type(model)(2, random_state=seed, n_jobs=1, max_iter=2000).fit(observed)
        for k in (3, 4, 5):
            start = warm_start(small, k, observed, np.random.RandomState(seed))
            one, other = (
                type(model)(k, random_state=seed, n_jobs=1, max_iter=2000, init=init).fit(observed)
                for init in (start, "random")
            )
            warm, cold = warm + one.n_iter_, cold + other.n_iter_
            warm_end += sign * one.trace_["objective"][-1]
            cold_end += sign * other.trace_["objective"][-1]
            small = one
    assert warm < cold
    assert warm_end > cold_end - 0.01 * abs(cold_end)
