"""Completion over all orders, against their enumeration and against numbers of another program."""

import itertools
import re

import numpy as np
import pytest

import halfseen as hs
from halfseen.errors import DataError, ParameterError
from halfseen.rank import band, complete_by_orders, triangular
from halfseen.studies.grr_tables import split_levels

NAN = np.nan
#: Mean over 10 seeds of the RMSE at test cells of 50 x 50 triangles, by the share of cells seen; another program's.
ALL_ORDERS = {0.2: 0.256, 0.4: 0.190, 0.8: 0.154}


def agrees(matrix, X):
    return np.all(np.isnan(X) | (matrix == X))


def mean_over_orders(X):
    """Of all orders of rows and columns together that agree with X."""
    n, m = X.shape
    kept = []
    for order in itertools.permutations(range(n + m)):
        place = np.argsort(order)
        matrix = place[:n, None] < place[n:]
        if agrees(matrix, X):
            kept.append(matrix)
    return np.mean(kept, axis=0)


def mean_over_permutations(X, known):
    rows, columns = (list(itertools.permutations(range(size))) for size in X.shape)
    all_of_them = (known[np.ix_(a, b)] for a in rows for b in columns)
    return np.mean([matrix for matrix in all_of_them if agrees(matrix, X)], axis=0)


@pytest.mark.parametrize(
    "X",
    [
        [[1, NAN, NAN], [NAN, 0, NAN], [NAN, NAN, NAN]],
        [[1, 1, NAN], [0, NAN, 1], [0, 0, NAN]],
        [[NAN, 0, 1, NAN], [1, NAN, NAN, NAN]],
        [[1, NAN, NAN], [0, NAN, 0], [NAN, 1, NAN]],
    ],
)
def test_means_are_those_of_all_orders(X):
    X = np.array(X)
    posterior = complete_by_orders(X, n_sweeps=10_000, n_burn=100)
    truth = mean_over_orders(X)
    np.testing.assert_allclose(posterior.mean, truth, atol=0.02)
    clear = np.abs(truth - 0.5) > 0.03
    np.testing.assert_array_equal(posterior.level[clear], truth[clear] > 0.5)
    np.testing.assert_array_equal(posterior.mean[~np.isnan(X)], X[~np.isnan(X)])


@pytest.mark.parametrize("known", [triangular(4).Y, band(4, 1).Y])
def test_means_over_the_orders_of_a_known_matrix_are_those_of_all_permutations(known):
    X = np.where([[1, 0, 0, 0], [0, 1, 0, 1], [0, 0, 1, 0], [0, 1, 0, 0]], known, NAN)
    posterior = complete_by_orders(X, known, n_sweeps=20_000, n_burn=100)
    np.testing.assert_allclose(posterior.mean, mean_over_permutations(X, known), atol=0.02)


def rmse(prediction, test):
    return np.sqrt(np.mean((prediction[test.row_of_cell(), test.indices] - test.values) ** 2))


def test_triangles_are_completed_as_well_as_by_another_program():
    Y = triangular(50).Y
    for share, printed in ALL_ORDERS.items():
        splits = [split_levels(Y, share, seed) for seed in range(6)]
        errors = [rmse(complete_by_orders(train, n_sweeps=800, n_burn=100).mean, test) for train, test in splits]
        assert np.mean(errors) == pytest.approx(printed, abs=0.012)


def test_the_same_seed_gives_the_same_means_and_an_order_of_rows_or_kind_of_data_does_not_matter():
    X = np.where(np.random.default_rng(0).random((8, 6)) < 0.4, np.tri(8, 6), NAN)
    settings = {"n_sweeps": 4000, "random_state": 3}
    first, again = (complete_by_orders(one, **settings).mean for one in (X, hs.observe(X)))
    np.testing.assert_array_equal(first, again)
    turned = complete_by_orders(1 - X.T, **settings).mean  # rows as columns, and the order reversed
    np.testing.assert_allclose(1 - turned.T, first, atol=0.03)


def test_all_unseen_is_a_coin_and_all_seen_is_kept():
    np.testing.assert_allclose(complete_by_orders(np.full((4, 3), NAN), n_sweeps=4000).mean, 0.5, atol=0.03)
    np.testing.assert_array_equal(complete_by_orders(np.tri(6, 4)).level, np.tri(6, 4))


@pytest.mark.parametrize(
    ("X", "n_cells", "cells"),
    [
        ([[1, 0, NAN], [NAN, NAN, NAN], [0, 1, NAN]], 4, {"1 at row 0, column 0", "0 at row 2, column 0"}),
        # no two rows contradict each other, but three do
        ([[1, NAN, 0], [0, 1, NAN], [NAN, 0, 1]], 6, {"1 at row 1, column 1", "0 at row 0, column 2"}),
    ],
)
def test_cells_of_no_triangle_are_refused_and_named(X, n_cells, cells):
    with pytest.raises(DataError) as error:
        complete_by_orders(X)
    assert error.value.parameter == "X"
    assert all(cell in error.value.found for cell in cells)
    named = re.findall(r"(\d) at row (\d), column (\d)", error.value.found)
    assert len(named) == n_cells
    assert all(X[int(row)][int(column)] == int(level) for level, row, column in named)


def test_other_levels_and_bad_settings_are_refused():
    with pytest.raises(DataError) as error:
        complete_by_orders([[0, 1], [NAN, 2]])
    assert (error.value.found, error.value.where) == ("2", "at row 1, column 1")
    for known, found in ((np.tri(3), "shape (3, 3)"), (np.zeros((2, 2)), "another level")):
        with pytest.raises(DataError) as error:
            complete_by_orders([[0, 1], [NAN, NAN]], known)
        assert (error.value.parameter, error.value.found) == ("known", found)
    with pytest.raises(ParameterError, match="n_burn"):
        complete_by_orders([[0, 1]], n_sweeps=10, n_burn=10)
    with pytest.raises(ParameterError, match='unseen="zero"'):
        complete_by_orders(hs.observe([[0.0, 1.0]], unseen="zero"))
