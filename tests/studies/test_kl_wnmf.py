"""KL-WNMF in NumPy: scikit-learn's updates and stop rule where nothing is missing, the optimum where cells are."""

import numpy as np
import pytest
from sklearn.decomposition import non_negative_factorization

from halfseen.studies.kl_wnmf import divergence, kl_wnmf, with_weights


@pytest.fixture
def full():
    return np.random.default_rng(1).gamma(2.0, 3.0, (9, 6))


@pytest.fixture
def holed(full):
    """Holes on no grid, every row and column seen."""
    row, column = np.indices(full.shape)
    return np.where((row + 2 * column) % 5 == 0, np.nan, full)


def kl(X, Y):
    """The divergence cell by cell, from its definition in section 1.1."""
    pairs = [(x, y) for x, y in zip(X.ravel(), Y.ravel(), strict=True) if not np.isnan(x)]
    return sum((x * np.log(x / y) if x else 0.0) - x + y for x, y in pairs)


def start_of(X, seed):
    """Where `kl_wnmf` starts: w, h of zero iterations."""
    return kl_wnmf(with_weights(X), seed, max_iter=0)[:2]


def test_the_start_is_uniform():
    w, _ = start_of(np.ones((20_000, 1)), seed=0)
    assert 0 < w.min() < 0.001
    assert 0.999 < w.max() <= 1
    np.testing.assert_allclose(np.quantile(w, [0.1, 0.5, 0.9]), [0.1, 0.5, 0.9], atol=0.02)


@pytest.mark.parametrize("n_iter", [1, 2, 3])
def test_the_updates_are_those_of_scikit_learn_with_h_first(full, n_iter):
    """scikit-learn moves its W first, so that of the transposed matrix is our h."""
    w, h = start_of(full, seed=3)
    W, H, _ = non_negative_factorization(
        full.T.copy(), h[:, None].copy(), w[None].copy(), n_components=1, init="custom", solver="mu",
        beta_loss="kullback-leibler", tol=0, max_iter=n_iter,
    )  # fmt: skip
    ours = kl_wnmf(with_weights(full), 3, tol=-np.inf, max_iter=n_iter)
    assert ours.n_iter == n_iter
    np.testing.assert_allclose(ours.h, W[:, 0], rtol=1e-10)
    np.testing.assert_allclose(ours.w, H[0], rtol=1e-10)


def test_h_moves_first_where_cells_are_missing(holed):
    """One iteration from the formula of Blondel et al., cell by cell."""
    w, h = start_of(holed, seed=3)
    X, Phi = with_weights(holed)
    h = h * np.array([sum(w * X[:, j] / (w * h[j])) / sum(w * Phi[:, j]) for j in range(6)])
    w = w * np.array([sum(h * X[i] / (w[i] * h)) / sum(h * Phi[i]) for i in range(9)])
    ours = kl_wnmf((X, Phi), 3, tol=-np.inf, max_iter=1)
    np.testing.assert_allclose(ours.h, h, rtol=1e-12)
    np.testing.assert_allclose(ours.w, w, rtol=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_it_stops_at_the_first_gain_below_the_tolerance(holed, seed):
    def error_after(n_iter):
        w, h, _ = kl_wnmf(with_weights(holed), seed, tol=-np.inf, max_iter=n_iter)
        return kl(holed, np.outer(w, h))

    errors = [error_after(n_iter) for n_iter in range(8)]
    gains = -np.diff(errors) / errors[0]
    assert kl_wnmf(with_weights(holed), seed, tol=1e-4).n_iter == 1 + np.flatnonzero(gains < 1e-4)[0]


def test_long_runs_and_the_divergence(holed, full):
    """At the optimum the sums of rows and of columns over the seen cells are those of the data."""
    X, Phi = with_weights(holed)
    w, h, _ = kl_wnmf((X, Phi), 0, tol=1e-15)
    np.testing.assert_array_equal([X, Phi], with_weights(holed))  # which are not changed
    fitted = np.where(np.isnan(holed), np.nan, np.outer(w, h))
    for axis in (0, 1):
        np.testing.assert_allclose(np.nansum(fitted, axis=axis), np.nansum(holed, axis=axis), rtol=1e-6)
    full[2, 3] = 0.0
    w, h, _ = kl_wnmf(with_weights(full), 0, tol=1e-15)
    np.testing.assert_allclose(np.outer(w, h), np.outer(full.sum(axis=1), full.sum(axis=0)) / full.sum(), rtol=1e-6)
    holed[4, 4] = 0.0
    w, h = np.linspace(1, 2, 9), np.linspace(3, 1, 6)
    assert divergence(holed, w, h) == pytest.approx(kl(holed, np.outer(w, h)), rel=1e-12)
