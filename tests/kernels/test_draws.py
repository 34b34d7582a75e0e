"""Rows drawn from normal distributions against dense linear algebra."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse, stats

from halfseen.kernels.draws import draw_rows

CHANCE = 1e-6


def problem(k, seed=0, shape=(6, 9)):
    """Cells of some rows (one has none), values, the far factor, precisions and a prior."""
    random = np.random.default_rng(seed)
    seen = random.random(shape) < 0.6
    seen[2] = False
    X = np.where(seen, random.normal(size=shape), 0.0)
    cells = sparse.csr_array(seen.astype(float))
    x = X[np.repeat(np.arange(shape[0]), np.diff(cells.indptr)), cells.indices]
    G = random.normal(size=(shape[1], k))
    near, far = random.gamma(2, 1, shape[0]), random.gamma(2, 1, shape[1])
    half = random.normal(size=(k, k + 2))
    prior, pulled = half @ half.T, random.normal(size=k)
    return (cells.indptr, cells.indices, x, G, near, far, prior, pulled), (seen, X)


def dense(arguments, whole, row):
    """The precision and the mean of one row, by matrix products."""
    _, _, _, G, near, far, prior, pulled = arguments
    seen, X = whole
    weights = np.diag(seen[row] * near[row] * far)
    precision = prior + G.T @ weights @ G
    return precision, np.linalg.solve(precision, pulled + G.T @ weights @ X[row])


def drawn(arguments, start, shape=None, begin=0, end=None):
    out = np.array(start, float)
    draw_rows(begin, len(out) if end is None else end, *arguments, out)
    return out


@pytest.mark.parametrize("k", [1, 2, 3, 7])
def test_a_draw_is_the_mean_and_a_root_of_the_covariance_times_its_noise(k):
    """An affine function of the numbers that `out` comes with: found by zeros and unit vectors."""
    arguments, whole = problem(k)
    n = len(arguments[4])
    means = drawn(arguments, np.zeros((n, k)))
    roots = np.stack([drawn(arguments, np.tile(unit, (n, 1))) - means for unit in np.eye(k)], axis=2)
    for row in range(n):
        precision, mean = dense(arguments, whole, row)
        assert_allclose(means[row], mean, rtol=1e-9, atol=1e-11)
        assert_allclose(roots[row] @ roots[row].T, np.linalg.inv(precision), rtol=1e-8, atol=1e-11)
    noise = np.random.default_rng(1).normal(size=(n, k))
    assert_allclose(drawn(arguments, noise), means + np.einsum("nab,nb->na", roots, noise), rtol=1e-9, atol=1e-11)


def test_many_draws_have_the_mean_and_the_covariance():
    """By Mahalanobis' distance, which is chi-square, and its single coordinates, which are normal."""
    (indptr, indices, x, G, near, far, prior, pulled), whole = problem(3)
    row, copies = 1, 20_000
    precision, mean = dense((indptr, indices, x, G, near, far, prior, pulled), whole, row)
    mine = slice(indptr[row], indptr[row + 1])
    size = mine.stop - mine.start
    many = (
        size * np.arange(copies + 1), np.tile(indices[mine], copies), np.tile(x[mine], copies), G,
        np.full(copies, near[row]), far, prior, pulled,
    )  # fmt: skip
    draws = drawn(many, np.random.default_rng(2).standard_normal((copies, 3))) - mean
    distances = np.einsum("na,ab,nb->n", draws, precision, draws)
    assert stats.kstest(distances, "chi2", (3,)).pvalue > CHANCE
    covariance = np.linalg.inv(precision)
    for direction in (*np.eye(3), [1.0, -1.0, 0.5]):
        spread = np.sqrt(np.dot(direction, covariance @ direction))
        assert stats.kstest(draws @ direction / spread, "norm").pvalue > CHANCE


def test_a_row_without_cells_is_drawn_from_the_prior():
    arguments, _ = problem(2)
    *_, prior, pulled = arguments
    assert_allclose(drawn(arguments, np.zeros((6, 2)))[2], np.linalg.solve(prior, pulled), rtol=1e-10)


def test_only_the_rows_asked_for_are_drawn():
    arguments, _ = problem(3)
    start = np.random.default_rng(3).normal(size=(6, 3))
    whole = drawn(arguments, start)
    part = drawn(arguments, start, begin=2, end=4)
    assert_array_equal(part[2:4], whole[2:4])
    assert_array_equal(part[[0, 1, 4, 5]], start[[0, 1, 4, 5]])
