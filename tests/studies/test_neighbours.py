"""EASE against its definition, and the others on data whose order is plain."""

import numpy as np
import pytest

from halfseen.io import observe
from halfseen.observed import Observed
from halfseen.studies.ordnmf import neighbours


def random_levels(n, m, seed=0):
    random = np.random.default_rng(seed)
    return random.integers(1, 6, (n, m)) * (random.random((n, m)) < 0.3)


def seen(X):
    return observe(np.where(X > 0, X, np.nan).astype(float))


def ease_by_columns(X, l2):
    """B column by column: a ridge regression of each column on all others."""
    B = np.zeros((X.shape[1], X.shape[1]))
    for j in range(X.shape[1]):
        others = np.delete(np.arange(X.shape[1]), j)
        A = X[:, others]
        B[others, j] = np.linalg.solve(A.T @ A + l2 * np.eye(others.size), A.T @ X[:, j])
    return X @ B


@pytest.mark.parametrize("shape", [(30, 12), (12, 30), (15, 15)])
@pytest.mark.parametrize("l2", [0.5, 50.0])
def test_ease_is_a_ridge_regression_of_each_column_on_the_others(shape, l2):
    X = random_levels(*shape).astype(float)
    rows = np.array([3, 0, 7])
    np.testing.assert_allclose(neighbours.ease(seen(X), l2)(rows), ease_by_columns(X, l2)[rows], rtol=1e-9, atol=1e-9)


def test_popularity_is_the_same_for_all():
    X = random_levels(20, 9)
    W, H = neighbours.popularity(seen(X))
    np.testing.assert_array_equal(W @ H.T, np.tile((X > 0).sum(axis=0), (20, 1)))


def in_two_groups(seed=1):
    """Rows of each group have seen two thirds of the columns of their own group, and almost nothing else."""
    random = np.random.default_rng(seed)
    own = np.add.outer(np.arange(40), np.arange(30)) % 2 == 0
    return np.where(random.random((40, 30)) < np.where(own, 0.67, 0.03), 4.0, 0.0), own


def share_of_own_ahead(scores, X, own):
    """How often a column of the own group, not seen, has a higher score than one of the other group, not seen."""
    pairs = [
        np.greater.outer(row[mine & (seen == 0)], row[~mine & (seen == 0)])
        for row, mine, seen in zip(scores, own, X, strict=True)
    ]
    return np.concatenate([one.reshape(-1) for one in pairs]).mean()


@pytest.mark.parametrize("package", ["implicit", "hpfrec"])
def test_the_packages_rank_the_own_group_first(package):
    pytest.importorskip(package)
    X, own = in_two_groups()
    W, H = neighbours.als(seen(X), 3, 1.0, 1.0, 0) if package == "implicit" else neighbours.hpf(seen(X), 3, 0)
    assert (W.shape, H.shape) == ((40, 3), (30, 3))
    assert share_of_own_ahead(W @ H.T, X, own) > 0.95


def test_seen_zeros_weigh_nothing():
    zero = Observed.from_cells([0, 0, 1], [0, 1, 0], [3.0, 0.0, 2.0], (2, 2))
    none = Observed.from_cells([0, 1], [0, 0], [3.0, 2.0], (2, 2))
    np.testing.assert_array_equal(*(neighbours.ease(one, 1.0)(np.arange(2)) for one in (zero, none)))


def test_what_is_not_installed_is_known():
    assert neighbours.is_installed("numpy")
    assert not neighbours.is_installed("a_package_that_is_not_there")
