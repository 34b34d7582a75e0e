"""The Gaussian with holes, against closed forms and a direct maximisation of the likelihood."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from scipy.stats import multivariate_normal

from halfseen.imputation import gaussian
from halfseen.imputation.gaussian import FactorModel, Gaussian, Structure, fit_factors, fit_gaussian, fits_full
from tests.imputation.cases import correlated


def conditional(Z, mean, covariance):
    """Conditional means and covariances row by row, as a textbook has them."""
    filled, covariances = Z.copy(), []
    for row in filled:
        m, o = np.isnan(row), ~np.isnan(row)
        solved = np.linalg.solve(covariance[np.ix_(o, o)], covariance[np.ix_(o, m)])
        row[m] = mean[m] + (row[o] - mean[o]) @ solved
        covariances.append(covariance[np.ix_(m, m)] - covariance[np.ix_(m, o)] @ solved)
    return filled, covariances


def models(p=6, k=2, seed=3):
    """A full model, one of low rank, and the covariance of the second."""
    random = np.random.default_rng(seed)
    _, _, mean, covariance = correlated(p=p)
    loadings, noise = random.normal(size=(p, k)), random.uniform(0.2, 1.0, p)
    full = Gaussian(mean, covariance, np.linalg.inv(covariance))
    return (full, covariance), (FactorModel(mean, loadings, noise), loadings @ loadings.T + np.diag(noise))


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("holes", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("block", [50, 4_000_000])
def test_conditional_means_and_variances_are_the_textbooks(which, holes, block, monkeypatch):
    monkeypatch.setattr(gaussian, "BLOCK", block)
    model, covariance = models()[which]
    Z = correlated(60, holes=holes, seed=1)[0]
    Z[0] = np.nan
    Z[1, 1:] = 1.0
    filled, variance = model.complete(Z)
    expected, covariances = conditional(Z, model.mean, covariance)
    assert_allclose(filled, expected, rtol=1e-8, atol=1e-10)
    for row, found, one in zip(Z, variance, covariances, strict=True):
        assert_allclose(found[np.isnan(row)], np.diag(one), rtol=1e-8)
        assert (found[~np.isnan(row)] == 0).all()


@pytest.mark.parametrize("which", [0, 1])
def test_the_precision_is_the_covariances_inverse(which):
    model, covariance = models()[which]
    P, cells = np.linalg.inv(covariance), correlated(20)[1]
    assert_allclose(model.precision_rows(np.array([4, 1])), P[[4, 1]], rtol=1e-8, atol=1e-10)
    assert_allclose(model.precision_diagonal(), np.diag(P), rtol=1e-8)
    assert_allclose(model.scaled_residuals(cells), (cells - model.mean) @ P, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("which", [0, 1])
def test_draws_have_the_mean_and_covariance_of_the_model(which):
    model, covariance = models()[which]
    drawn = model.draw(200_000, np.random.RandomState(0))
    assert_allclose(drawn.mean(axis=0), model.mean, atol=0.03)
    spreads = np.sqrt(np.diag(covariance))
    assert_allclose(np.cov(drawn.T) / np.outer(spreads, spreads), covariance / np.outer(spreads, spreads), atol=0.01)


def test_em_finds_what_maximises_the_likelihood_of_the_seen_cells():
    Z = correlated(40, p=3, holes=0.25)[0]

    def minus_likelihood(parameters):
        mean, root = parameters[:3], np.zeros((3, 3))
        root[np.tril_indices(3)] = parameters[3:]
        covariance, total = root @ root.T + 1e-10 * np.eye(3), 0.0
        for row in Z:
            o = ~np.isnan(row)
            if o.any():
                total -= multivariate_normal.logpdf(row[o], mean[o], covariance[np.ix_(o, o)])
        return total

    start = np.concatenate([np.zeros(3), np.eye(3)[np.tril_indices(3)]])
    best = minimize(minus_likelihood, start, method="BFGS", options={"gtol": 1e-4})
    root = np.zeros((3, 3))
    root[np.tril_indices(3)] = best.x[3:]
    model = fit_gaussian(Z, earlier_rows=0.0, max_iter=2000, tol=1e-8)
    assert_allclose(model.mean, best.x[:3], atol=1e-3)
    assert_allclose(model.covariance, root @ root.T, atol=3e-3)


def test_without_holes_the_covariance_is_shrunk_to_its_diagonal_as_by_earlier_rows():
    cells = correlated(50)[1]
    model = fit_gaussian(cells)
    S = np.cov(cells.T, bias=True)
    assert_allclose(model.covariance, np.where(np.eye(6), S, 50 / (50 + 5) * S), rtol=1e-6)
    assert model.n_iter == 1


def factor_likelihood(Z, model):
    """Log-likelihood of the seen cells."""
    covariance = model.loadings @ model.loadings.T + np.diag(model.noise)
    return sum(
        multivariate_normal.logpdf(row[o], model.mean[o], covariance[np.ix_(o, o)])
        for row, o in zip(Z, ~np.isnan(Z), strict=True)
    )


def test_em_of_factors_raises_the_likelihood_to_that_of_the_truth_and_beyond():
    Z, _, mean, covariance = correlated(300, p=8, holes=0.2)
    traced = [factor_likelihood(Z, fit_factors(Z, 2, 0.0, max_iter=n, tol=0)) for n in (1, 2, 5, 20, 100)]
    assert (np.diff(traced) > 0).all()
    truth = Gaussian(mean, covariance, np.linalg.inv(covariance))
    rows = zip(Z, ~np.isnan(Z), strict=True)
    assert traced[-1] > sum(
        multivariate_normal.logpdf(row[o], truth.mean[o], truth.covariance[np.ix_(o, o)]) for row, o in rows
    )


def test_factors_predict_about_as_well_as_the_truth():
    Z, cells, mean, covariance = correlated(1000, p=8, holes=0.2, seed=5)
    holes = np.isnan(Z)
    error = np.mean((fit_factors(Z, 2).complete(Z)[0] - cells)[holes] ** 2)
    assert error < 1.03 * np.mean((conditional(Z, mean, covariance)[0] - cells)[holes] ** 2)


def test_hidden_cells_choose_the_pull_to_the_diagonal():
    _, cells, *_ = correlated(60, p=12, seed=2)
    random = np.random.default_rng(0)
    noise, hidden = random.normal(size=(60, 12)), random.random((60, 12)) < 0.2
    pulls = {}
    for name, truth in (("related", cells @ np.ones((12, 12)) + 0.01 * noise), ("noise", noise)):
        truth = truth / truth.std(axis=0)
        pulls[name] = Structure.best([(np.where(hidden, np.nan, truth), truth, hidden)]).earlier_rows
    assert pulls["related"] == min(gaussian.PULLS) * 8
    assert pulls["noise"] == max(gaussian.PULLS) * 8


def test_wide_tables_get_low_rank():
    assert fits_full(correlated(50)[0])
    assert not fits_full(np.zeros((3, gaussian.MOST_FULL + 1)))
    assert not fits_full(np.where(np.arange(300) % 2, np.nan, np.zeros((5000, 300))))


@pytest.mark.parametrize("structure", [Structure(0.0), Structure(0.0, rank=2)], ids=["full", "low rank"])
@pytest.mark.parametrize("times", [1, 4])
def test_refits_vary_as_fits_to_other_rows_do(structure, times):
    """The mean of complete rows by S / n, also where the model is of more rows than the bootstrap; within 4 errors."""
    cells, random = correlated(300)[1], np.random.RandomState(0)
    model = structure.fit(cells)
    means = [structure.refit(model, cells, times * 300, random).mean for _ in range(400)]
    assert_allclose(np.var(means, axis=0) * 300 * times / np.var(cells, axis=0), 1, atol=4 * np.sqrt(2 / 400))
    assert_allclose(np.mean(means, axis=0), cells.mean(axis=0), atol=0.05)
