"""Candidates, their weights by held-out cells, intervals and draws."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize, nnls
from scipy.stats import norm

from halfseen.imputation import blend
from halfseen.imputation.blend import (
    CANDIDATES,
    PROBABILITIES,
    Standard,
    blend_weights,
    fit_table,
    residual_quantiles,
)
from halfseen.imputation.gaussian import Gaussian
from tests.imputation.cases import correlated


def test_the_standard_scale_is_that_of_the_seen_cells():
    X = correlated(100)[0]
    standard = Standard.of(X)
    assert_allclose(standard.centre, np.nanmean(X, axis=0))
    assert_allclose(standard.spread, np.nanstd(X, axis=0))
    Z = standard.of_values(X)
    assert_allclose((np.nanmin(Z, axis=0), np.nanmax(Z, axis=0)), (standard.low, standard.high))
    assert_allclose(standard.to_values(Z[:, 2], np.full(100, 2)), X[:, 2])


def test_numbers_of_any_size_have_a_standard_scale():
    X = np.array([[1e300, 1e-300, 7.0, np.nan], [-1e300, 3e-300, 7.0, np.nan], [0.0, np.nan, 7.0, np.nan]])
    standard = Standard.of(X)
    Z = standard.of_values(X)
    assert_allclose(Z[:, 0], [1.224745, -1.224745, 0], atol=1e-6)
    assert_allclose(Z[:2, 1], [-1, 1])
    assert_array_equal(Z[:, 2], 0)
    assert np.isfinite(standard.spread).all()


def test_weights_are_those_of_non_negative_least_squares_with_cells_of_the_average_column():
    random = np.random.default_rng(0)
    cells = [
        (A := random.normal(size=(m, 3)), A @ [s, 0.2, 0.0] + random.normal(size=m))
        for m, s in ((5, 0), (40, 2), (0, 0))
    ]
    sums = [(A.T @ A, A.T @ y, len(y)) for A, y in cells]
    gram, products, counts = (np.array(one, float) for one in zip(*sums, strict=True))
    weights = blend_weights(gram, products, counts, common=20.0)
    everything = np.vstack([A for A, _ in cells]), np.concatenate([y for _, y in cells])
    share = np.sqrt(20 / 45)
    for found, (A, y) in zip(weights, cells, strict=True):
        A, y = np.vstack([A, share * everything[0]]), np.concatenate([y, share * everything[1]])
        expected = nnls(A, y)[0]
        if expected.sum() > 1:
            bounds, total = [(0, None)] * 3, {"type": "ineq", "fun": lambda w: 1 - w.sum()}
            loss = lambda w, A=A, y=y: np.sum((A @ w - y) ** 2)  # noqa: E731
            expected = minimize(loss, np.full(3, 0.2), bounds=bounds, constraints=total, method="SLSQP", tol=1e-12).x
        assert_allclose(found, expected, atol=1e-3)
    assert weights.sum(axis=1).max() > 0.999


def test_without_held_out_cells_the_mean_is_all_there_is():
    assert_allclose(blend_weights(np.zeros((2, 3, 3)), np.zeros((2, 3)), np.zeros(2)), 0, atol=1e-12)


def test_quantiles_of_residuals_are_those_of_their_column():
    random = np.random.default_rng(0)
    columns = np.repeat([0, 1], [20_000, 20_000])
    residuals = np.where(columns == 0, random.normal(size=40_000), 3 * random.exponential(size=40_000))
    quantiles = residual_quantiles(residuals, columns, 3)
    middle = (PROBABILITIES > 0.03) & (PROBABILITIES < 0.97)
    assert_allclose(quantiles[0, middle], norm.ppf(PROBABILITIES[middle]), atol=0.05)
    assert_allclose(quantiles[1, middle], -3 * np.log1p(-PROBABILITIES[middle]), atol=0.2)
    assert (np.diff(quantiles, axis=1) >= 0).all()


def cells_of(model, X):
    filled = model.predict(X)
    return filled, np.stack([filled.rows, filled.columns])


def test_a_table_is_filled_better_than_by_its_means_and_about_as_well_as_by_the_truth():
    X, cells, mean, covariance = correlated(600, holes=0.15)
    model = fit_table(X, np.arange(6), trees=False)
    filled, (rows, columns) = cells_of(model, X)
    assert_array_equal(np.sort(rows * 6 + columns), np.flatnonzero(np.isnan(X)))
    best = Gaussian(mean, covariance, np.linalg.inv(covariance)).complete(X)[0]
    error, least = (np.mean((one - cells[rows, columns]) ** 2) for one in (filled.means, best[rows, columns]))
    assert error < 1.1 * least
    assert error < 0.7 * np.mean((np.nanmean(X, axis=0)[columns] - cells[rows, columns]) ** 2)
    ratio = np.mean(model.errors**2) / np.mean(model.mean_errors**2)
    assert 0.7 < ratio / (error / np.mean((np.nanmean(X, axis=0)[columns] - cells[rows, columns]) ** 2)) < 1.4


@pytest.mark.parametrize("skewed", [False, True])
def test_intervals_cover_as_often_as_they_say(skewed):
    X, cells, *_ = correlated(1500, holes=0.15, seed=4)
    X, cells = (np.exp(one) if skewed else one for one in (X, cells))
    model = fit_table(X, np.arange(6), trees=False)
    filled, (rows, columns) = cells_of(model, X)
    truth = cells[rows, columns]
    for level in (0.5, 0.9):
        low, high = model.interval(filled, level)
        # three standard errors: of the holes, and of the held-out cells that the quantiles come from
        chance = 3 * np.sqrt(1 / truth.size + 1 / model.n_held_out.sum())
        assert abs(np.mean((low <= truth) & (truth <= high)) - level) < chance * np.sqrt(level * (1 - level))
        assert abs(np.mean(truth < low) - np.mean(truth > high)) < chance * np.sqrt(1 - level)


def test_intervals_of_few_values_are_likely_and_hold_about_what_is_asked_for():
    _, cells, *_ = correlated(2000, p=5, holes=0.0, seed=6)
    values = np.stack([np.digitize(one, np.quantile(one, [0.1, 0.6, 0.8])) for one in cells.T], axis=1) * 0.1
    X = np.where(np.random.default_rng(0).random(values.shape) < 0.2, np.nan, values)
    model = fit_table(X, np.arange(5), trees=False)
    filled = model.predict(X)
    low, high = model.interval(filled, 0.8)
    for j in range(5):
        own, (levels, shares) = filled.columns == j, model.level_shares(filled, j)
        assert_array_equal(levels, np.unique(values))  # without rounding
        for a, b, share in zip(low[own], high[own], shares.T, strict=True):
            spans = [(x, y) for x in levels for y in levels[levels >= x]]
            masses = {one: share[(levels >= one[0]) & (levels <= one[1])].sum() for one in spans}
            sizes = {one: np.count_nonzero((levels >= one[0]) & (levels <= one[1])) for one in spans}
            likeliest = [max((one for one in spans if sizes[one] == n), key=masses.get) for n in range(1, 5)]
            assert (a, b) == min(likeliest, key=lambda one: abs(masses[one] - 0.8))
    truth = values[filled.rows, filled.columns]
    assert abs(np.mean((low <= truth) & (truth <= high)) - 0.8) < 0.05


def test_a_value_that_many_cells_have_is_an_end_of_intervals():
    random = np.random.default_rng(0)
    amount = np.maximum(random.normal(size=(2000, 1)) + 0.5 * random.normal(size=(2000, 4)), 0.0)  # half are 0
    X = np.where(random.random(amount.shape) < 0.15, np.nan, amount)
    model = fit_table(X, np.arange(4), trees=False)
    filled = model.predict(X)
    truth = amount[filled.rows, filled.columns]
    low, high = model.interval(filled, 0.9)
    assert np.mean(low == 0) > 0.4
    assert 0.88 < np.mean((low <= truth) & (truth <= high)) < 0.97


def test_spreads_of_levels_come_from_held_out_cells():
    """Column 0 is a function of column 1 that only neighbours and trees know: the copula's spread is far too large."""
    random = np.random.default_rng(0)
    x = random.uniform(-2, 2, 1500)
    cells = np.column_stack([np.digitize(np.abs(x), [0.5, 1.0, 1.5]), x, random.normal(size=1500)])
    X = cells.astype(float)
    X[random.random(1500) < 0.2, 0] = np.nan
    model = fit_table(X, np.arange(3))
    filled = model.predict(X)
    _, shares = model.level_shares(filled, 0)
    level = cells[filled.rows, 0].astype(int)
    assert model.level_scales[0] < 1
    assert np.log(shares[level, np.arange(level.size)]).mean() > -0.3  # -1.39 by the shares of the four levels


def test_draws_have_the_spread_and_the_correlations_of_what_was_hidden():
    X, _, _, covariance = correlated(4000, p=4, holes=0.0, seed=2)
    X[:2000, :2] = np.nan  # two columns missing together
    model = fit_table(X, np.arange(4), trees=False)
    filled, (rows, columns) = cells_of(model, X)
    drawn = X.copy()
    drawn[rows, columns] = model.quantile(filled, next(model.ranks(X, filled, 1, np.random.RandomState(0))))
    spreads = np.sqrt(np.outer(np.diag(covariance), np.diag(covariance)))
    assert_allclose(np.cov(drawn[:2000].T) / spreads, covariance / spreads, atol=0.1)


def test_probabilities_of_levels_are_calibrated():
    _, cells, *_ = correlated(3000, p=5, holes=0.0, seed=6)
    levels = np.stack([np.digitize(one, np.quantile(one, [0.1, 0.2, 0.7])) for one in cells.T], axis=1).astype(float)
    X = np.where(np.random.default_rng(0).random(levels.shape) < 0.2, np.nan, levels)
    model = fit_table(X, np.arange(5), trees=False)
    filled = model.predict(X)
    for j in range(5):
        values, shares = model.level_shares(filled, j)
        truth = levels[filled.rows, filled.columns][filled.columns == j]
        assert_allclose(values, [0, 1, 2, 3], atol=1e-9)
        assert_allclose(shares.mean(axis=1), [np.mean(truth == one) for one in range(4)], atol=0.05)
        bins = np.digitize(
            shares, np.linspace(0, 1, 11)
        )  # of ten probabilities, those of each are right about as often
        is_level = truth == np.arange(4)[:, None]
        off = sum(abs((shares - is_level)[bins == one].sum()) for one in np.unique(bins))
        chance = sum(np.sqrt((shares * (1 - shares))[bins == one].sum()) for one in np.unique(bins))
        assert off < 2 * chance  # 0.8 in the mean, were all of them right


def test_accuracies_are_those_of_cells_that_were_not_seen():
    _, cells, *_ = correlated(4000, p=5, holes=0.0, seed=6)
    levels = np.stack([np.digitize(one, np.quantile(one, [0.1, 0.6])) for one in cells[:, :4].T], axis=1).astype(float)
    category = np.eye(3)[np.argmax(cells[:, [0, 2, 4]] + 0.3, axis=1)]
    table, groups = np.column_stack([levels, category]), np.array([0, 1, 2, 3, 4, 4, 4])
    X = np.where((np.random.default_rng(0).random((4000, 5)) < 0.15)[:, groups], np.nan, table)
    model = fit_table(X, groups, trees=False)
    filled = model.predict(X)
    completed = table.copy()
    completed[filled.rows, filled.columns] = filled.means
    for j in range(5):
        rows = np.isnan(X[:, j])
        if j < 4:
            values, shares = model.level_shares(filled, j)
            right = values[(np.cumsum(shares, axis=0) < 0.5).sum(axis=0)] == table[rows, j]
            mode = table[rows, j] == 1
        else:
            right = np.argmax(completed[rows, 4:], axis=1) == np.argmax(table[rows, 4:], axis=1)
            mode = table[rows, 4 + np.argmax(np.nanmean(X[:, 4:], axis=0))] == 1
        chance = 3 * np.sqrt(0.25 * (1 / rows.sum() + 1 / model.n_held_out[j]))
        assert abs(model.accuracies[j] - right.mean()) < chance
        assert abs(model.mode_accuracies[j] - mode.mean()) < chance


def test_noise_gets_its_mean():
    random = np.random.default_rng(0)
    X = random.normal(size=(400, 5))
    X[random.random(X.shape) < 0.1] = np.nan
    model = fit_table(X, np.arange(5))
    filled = model.predict(X)
    standard = model.candidates.standard
    assert (
        np.sqrt(np.mean(((filled.means - standard.centre[filled.columns]) / standard.spread[filled.columns]) ** 2))
        < 0.15
    )


def test_a_column_that_is_predicted_worse_than_by_its_mean_gets_its_mean():
    """Few cells of a column that is noise, among columns that others predict well: the common weights don't suit it."""
    X, *_ = correlated(300, p=8)
    random = np.random.default_rng(1)
    noise = np.where(random.random((300, 6)) < 0.15, random.exponential(size=(300, 6)) ** 4, np.nan)
    model = fit_table(np.column_stack([X, noise]), np.arange(14), trees=False)
    assert (model.errors <= model.mean_errors).all()
    behind = model.errors == model.mean_errors
    assert behind[8:].any()
    assert_array_equal(model.weights[behind], 0)
    assert model.weights[~behind].sum(axis=1).min() > 0


def test_boosting_finds_what_is_not_linear():
    random = np.random.default_rng(0)
    cells = random.normal(size=(1500, 4))
    cells[:, 0] = np.sign(cells[:, 1]) * np.sign(cells[:, 2]) + 0.1 * random.normal(size=1500)
    X = np.where(random.random(cells.shape) < 0.1, np.nan, cells)
    errors = {}
    for boosting in (False, True):
        model = fit_table(X, np.arange(4), trees=boosting)
        filled, (rows, columns) = cells_of(model, X)
        own = columns == 0
        errors[boosting] = np.mean((filled.means - cells[rows, columns])[own] ** 2)
    assert errors[True] < 0.8 * errors[False]
    assert model.weights[0, CANDIDATES.index("boosting")] > 0.3


def test_cells_of_a_category_are_held_out_together():
    groups = np.array([0, 1, 1, 1, 2])
    X = np.random.default_rng(0).normal(size=(50, 5))
    X[3, 1:4] = np.nan
    X[:47, 4] = np.nan
    hidden = blend.hide_cells(X, groups, np.random.RandomState(0))
    assert_array_equal(hidden[:, 1], hidden[:, 2])
    assert_array_equal(hidden[:, 1], hidden[:, 3])
    assert not hidden[np.isnan(X)].any()
    assert not hidden[:, 4].any()
    assert hidden.any()


def test_cells_are_held_out_together_where_they_are_missing_together():
    random = np.random.default_rng(0)
    X = random.normal(size=(2000, 4))
    X[random.random(2000) < 0.3, :2] = np.nan
    hidden = blend.hide_cells(X, np.arange(4), np.random.RandomState(0))
    assert_allclose(hidden.sum() / np.count_nonzero(~np.isnan(X)), blend.HELD_OUT, atol=0.03)
    assert hidden[hidden[:, 0], 1].mean() > 0.6
    assert hidden[hidden[:, 2], 3].mean() < 0.15
    assert hidden[:, 2].sum() > 0


def test_wide_tables_choose_their_rank_and_are_filled(monkeypatch):
    monkeypatch.setattr("halfseen.imputation.gaussian.MOST_FULL", 10)
    X, cells, *_ = correlated(200, p=30, holes=0.1)
    model = fit_table(X, np.arange(30), trees=False)
    assert model.structure.rank == 5
    filled, (rows, columns) = cells_of(model, X)
    assert np.mean((filled.means - cells[rows, columns]) ** 2) < 0.5 * np.mean(np.nanvar(X, axis=0))


def test_blocks_of_rows_change_nothing(monkeypatch):
    X = correlated(120)[0]
    model = fit_table(X, np.arange(6), trees=False, max_rows=80)
    whole = model.predict(X)
    monkeypatch.setattr(blend, "BLOCK_CELLS", 6 * 25)
    parts = model.predict(X)
    for one, other in ((whole, parts),):
        order = [np.lexsort((found.columns, found.rows)) for found in (one, other)]
        assert_array_equal(one.rows[order[0]], other.rows[order[1]])
        assert_allclose(one.means[order[0]], other.means[order[1]], rtol=1e-9)


@pytest.mark.parametrize("shape", [(1, 3), (3, 1), (4, 4)])
def test_tiny_tables_get_their_means(shape):
    X = np.arange(12.0)[: shape[0] * shape[1]].reshape(shape) if shape != (4, 4) else np.eye(4)
    X[0, 0] = np.nan
    filled = fit_table(X, np.arange(shape[1])).predict(X)
    assert_allclose(filled.means, 0 if shape[0] == 1 else np.nanmean(X[:, 0]), atol=1e-9)


@pytest.mark.parametrize("bent", [False, True])
def test_large_tables_pay_for_neighbours_only_where_these_help(monkeypatch, bent):
    """They do where rows lie on a curve; a Gaussian knows all that there is of its own rows."""
    random, t = np.random.default_rng(0), np.linspace(-2, 2, 600)
    X = np.stack([np.sin(3 * t), np.cos(3 * t), np.cos(5 * t), np.sin(7 * t)], axis=1) if bent else correlated(600)[1]
    X = np.where(random.random(X.shape) < 0.15, np.nan, X + 0.05 * random.normal(size=X.shape))
    monkeypatch.setattr(blend, "SCREENED_CELLS", 100)
    model = fit_table(X, np.arange(X.shape[1]), trees=False)
    assert model.weights[:, [1, 2, 4]].any() == bent
    searched = [
        blend.blended(model.candidates.predict(X, weights=one), model.weights)[0] for one in (None, model.weights)
    ]
    assert_allclose(*searched, rtol=1e-12, atol=1e-12)
