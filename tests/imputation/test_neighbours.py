"""Neighbours of residuals, against a search of all rows."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from halfseen.imputation import neighbours
from halfseen.imputation.gaussian import fit_factors, fit_gaussian
from halfseen.imputation.neighbours import N_NEIGHBOURS, N_ZEROS, Neighbours, leave_one_out
from tests.imputation.cases import correlated


def by_hand(near, filled, row, j, groups):
    """The mean residual and the mean value at one hole."""
    P = near.model.precision_rows(np.arange(groups.size))
    rho = np.abs(P[j]) / np.sqrt(np.diag(P) * P[j, j])
    rho[groups == groups[j]] = 0
    shown = np.flatnonzero(~np.isnan(near.residuals[:, j]))
    distances = np.sqrt(((near.rows[shown] - filled[row]) ** 2 * rho).sum(axis=1))
    nearest = np.argsort(distances)[:N_NEIGHBOURS]
    weights = 1 / (distances[nearest] / np.median(distances[nearest]) + 0.1)
    weights /= weights.sum()
    share = len(nearest) / (len(nearest) + N_ZEROS)
    return share * weights @ near.residuals[shown[nearest], j], weights @ near.rows[shown[nearest], j]


@pytest.mark.parametrize("fit", [fit_gaussian, lambda Z: fit_factors(Z, 2)], ids=["full", "low rank"])
def test_neighbours_are_those_of_a_search_of_all_rows(fit):
    Z, groups = correlated(150)[0], np.array([0, 1, 2, 2, 3, 4])
    model = fit(Z)
    filled, _ = model.complete(Z)
    near = Neighbours.of(model, filled, ~np.isnan(Z), groups)
    residuals, values = near.means(filled, np.isnan(Z))
    for row, j in np.argwhere(np.isnan(Z))[:40]:
        assert_allclose(
            (residuals[row, j], values[row, j]), by_hand(near, filled, row, j, groups), rtol=1e-4, atol=1e-6
        )
    assert (residuals[~np.isnan(Z)] == 0).all()


def test_a_row_has_the_same_neighbours_alone_and_among_others():
    Z, groups = correlated(150)[0], np.arange(6)
    model = fit_gaussian(Z)
    filled, _ = model.complete(Z)
    near = Neighbours.of(model, filled, ~np.isnan(Z), groups)
    together = near.means(filled, np.isnan(Z))
    for row in range(20):
        alone = near.means(filled[[row]], np.isnan(Z)[[row]])
        assert_allclose(np.vstack(alone), np.vstack([one[row] for one in together]), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("groups", [np.arange(6), np.array([0, 1, 1, 1, 2, 3])])
def test_residuals_are_those_of_a_regression_on_the_other_groups(groups):
    cells = correlated(400)[1]
    model = fit_gaussian(cells, earlier_rows=0.0)
    residuals = leave_one_out(model, cells, groups)
    centred = cells - cells.mean(axis=0)
    for j in range(6):
        others = centred[:, groups != groups[j]]
        coefficients = np.linalg.lstsq(others, centred[:, j], rcond=None)[0]
        assert_allclose(residuals[:, j], centred[:, j] - others @ coefficients, atol=1e-5)


def test_few_rows_and_few_columns_serve_where_there_are_many(monkeypatch):
    monkeypatch.setattr(neighbours, "MOST_ROWS", 40)
    monkeypatch.setattr(neighbours, "MOST_COLUMNS", 3)
    Z, groups = correlated(150)[0], np.arange(6)
    model = fit_gaussian(Z)
    filled, _ = model.complete(Z)
    near = Neighbours.of(model, filled, ~np.isnan(Z), groups)
    assert near.rows.shape == (40, 6)
    weights = near.distance_weights(groups)
    assert ((weights > 0).sum(axis=1) == 3).all()
    near.means(filled, np.isnan(Z))


def test_a_column_that_nobody_shows_gets_nothing():
    Z = correlated(30)[0]
    Z[:, 0] = np.nan
    model = fit_gaussian(Z)
    filled, _ = model.complete(Z)
    residuals, values = Neighbours.of(model, filled, ~np.isnan(Z), np.arange(6)).means(filled, np.isnan(Z))
    assert (residuals[:, 0] == 0).all()
    assert (values[:, 0] == 0).all()
