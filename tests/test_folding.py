"""New rows folded in, each by itself."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from halfseen.folding import fold_in
from halfseen.io import observe
from halfseen.likelihoods import Poisson
from halfseen.solvers import Gamma, Multiplicative, PointFactor
from tests import oracle
from tests.laws.cases import half_seen, open_problem, start, states

X = half_seen(zeros=False)
W, H = start(*X.shape, 3)


def folded(data, average, **how):
    with open_problem(Poisson(), observe(data, allow_empty=True)) as problem:
        return fold_in(problem, Multiplicative(), PointFactor(H.copy()), average, **how).mean


def test_folding_in_stops_each_row_by_itself():
    """A row that has settled stays where it is, however long the others go on."""
    data = X[[0, 1, 2]]
    average = W.mean(axis=0)
    alone = folded(data[:1], average, max_iter=1000, tol=1e-3)
    together = folded(data, average, max_iter=1000, tol=1e-3)
    assert_allclose(together[:1], alone, rtol=1e-12)
    assert np.abs(folded(data[:1], average, max_iter=1000, tol=1e-9) - alone).max() > 1e-6


def test_folding_in_takes_at_most_max_iter_steps_from_the_average():
    average = W.mean(axis=0)
    Y, C = oracle.grid(observe(X[:4]))
    expected = np.repeat(average[None], 4, axis=0)
    for _ in range(3):
        expected = oracle.multiplicative_half(Y, C, expected, H, 1.0)
    assert_allclose(folded(X[:4], average, max_iter=3, tol=0.0), expected, rtol=1e-10)


def test_a_row_without_a_cell_stays_at_the_average():
    average = W.mean(axis=0)
    W_new = folded(np.vstack([X[0], np.full(X.shape[1], np.nan)]), average, max_iter=50, tol=1e-6)
    assert_allclose(W_new[1], average)
    assert np.abs(W_new[0] - average).max() > 1e-3
    assert_allclose(folded(np.full((2, X.shape[1]), np.nan), average, max_iter=50, tol=1e-6), [average, average])


@pytest.mark.parametrize("unseen", ["missing", "zero"])
@pytest.mark.parametrize("kind", ["point", "gamma"])
def test_many_rows_that_settle_at_very_different_times_are_each_their_own(kind, unseen):
    """Most rows settle soon, a few go on for long, some have no cell: every one ends where it would end alone."""
    rng = np.random.default_rng(0)
    data = np.where(rng.random((60, 11)) < 0.4, np.nan, rng.poisson(3.0, (60, 11)) * 1.0)
    data[[7, 20]] = np.nan
    data[[3, 50], 1:] = 0  # a row that goes to zero for ever
    data[:40] = np.where(np.isnan(data[:40]), np.nan, W[0] @ H.T)
    solver, far = {"point": (Multiplicative(), PointFactor(H)), "gamma": (Gamma(), gamma_columns())}[kind]
    how = {"max_iter": 120, "tol": 1e-5}

    def fold(some):
        with open_problem(Poisson(), observe(some, unseen=unseen, allow_empty=True)) as problem:
            return fold_in(problem, solver, far, W.mean(axis=0), **how)

    together = fold(data)
    for row in (0, 3, 7, 20, 39, 41, 45, 50, 55, 59):
        for found, alone in zip(together, fold(data[[row]]), strict=True):
            assert_allclose(found[row], alone[0], rtol=1e-9, atol=1e-13)
    assert np.unique(together.mean[40:].round(6), axis=0).shape[0] > 15


def gamma_columns():
    """The columns' factor of a short fit."""
    *_, last = states(Gamma(), Poisson(), observe(np.round(X)), W, H, steps=5)
    return last.columns
