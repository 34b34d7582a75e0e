"""The em-algorithm: the oracle's steps, which fill the matrix, without filling it."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from halfseen import Status

from . import oracle
from .cases import GRID_LIKE, NAN, TABLES, factors, fitted, gammas, holed, product


@pytest.mark.parametrize("name", ["one hole", "few holes", "half of it", "counts", "chain", "uneven"])
@pytest.mark.parametrize("iterations", [1, 2, 7])
def test_its_steps_are_those_of_the_oracle(name, iterations):
    X = TABLES[name]
    ours = fitted(X, "em", max_iter=iterations, tol=0)
    assert ours.n_iter_ == iterations
    assert_allclose(product(ours), np.outer(*oracle.em(X, iterations)), rtol=1e-12)
    assert ours.W_.sum() == pytest.approx(ours.H_.sum(), rel=1e-12)


@pytest.mark.parametrize("name", ["one hole", "few holes", "half of it", "counts", "dead lines", "rank one", "uneven"])
def test_it_ends_where_the_exact_method_does(name):
    X = TABLES[name]
    model = fitted(X, "em")
    assert model.status_ is Status.CONVERGED
    assert model.n_iter_ < 300
    lives = np.outer(model.parts_[0] >= 0, model.parts_[1] >= 0)
    assert_allclose(product(model)[lives], product(fitted(X))[lives], rtol=1e-8)
    assert oracle.cost(X, *factors(model)) == pytest.approx(oracle.cost(X, *factors(fitted(X))), rel=1e-9)


@pytest.mark.parametrize("X", GRID_LIKE.values(), ids=GRID_LIKE)
def test_on_grid_like_holes_it_meets_a1gm(X):
    assert_allclose(product(fitted(X, "em")), product(fitted(X, "a1gm")), rtol=1e-8)


def test_it_tells_that_it_has_not_settled():
    model = fitted(TABLES["chain"], "em", max_iter=50)
    assert (model.status_, model.n_iter_) == (Status.MAX_ITER, 50)


def test_empty_lines_take_no_part_and_get_the_average():
    X = holed(gammas((9, 7)), 0.2)
    X[4], X[:, 2] = NAN, NAN
    model = fitted(X, "em")
    rows, columns = np.arange(9) != 4, np.arange(7) != 2
    small = fitted(X[rows][:, columns], "em")
    assert_allclose(model.W_[rows], small.W_, rtol=1e-9)
    assert_allclose(model.H_[columns], small.H_, rtol=1e-9)
    assert model.W_[4] == pytest.approx(model.W_[rows].mean(), rel=1e-12)
    assert model.H_[2] == pytest.approx(model.H_[columns].mean(), rel=1e-12)


def test_nothing_but_zeros():
    model = fitted(np.where(np.eye(3) > 0, NAN, 0.0), "em")
    assert_allclose(product(model), 0.0)
