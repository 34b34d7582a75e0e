"""Trees as candidates."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.ensemble import ExtraTreesRegressor

from halfseen.imputation import trees
from halfseen.imputation.blend import CANDIDATES, fit_table, squared_error
from tests.imputation.cases import correlated


def test_a_forest_predicts_as_scikit_learns_trees_do():
    random = np.random.default_rng(0)
    X, y = random.normal(size=(300, 5)), random.normal(size=300)
    X[:, 3] = np.round(X[:, 3])
    new = random.normal(size=(200, 5))
    forest = trees.Forest.fit(X, y, 7)
    expected = ExtraTreesRegressor(trees.N_TREES, max_features=0.5, random_state=7).fit(X, y)
    assert_allclose(forest.predict(new), expected.predict(new), rtol=1e-12)


@pytest.mark.parametrize("fit", [trees.fit_forests, trees.fit_boosters])
def test_threads_change_nothing_and_a_group_does_not_predict_itself(fit, monkeypatch):
    X, cells, *_ = correlated(200, p=5)
    groups, seen = np.array([0, 1, 1, 2, 3]), ~np.isnan(X)
    given = {trees.fit_forests: (cells, seen), trees.fit_boosters: (X, cells)}[fit]
    features = {
        trees.fit_forests: lambda j: trees.other_columns(cells, j, groups),
        trees.fit_boosters: lambda j: trees.boosting_features(X, cells, j, groups),
    }[fit]
    one = fit(*given, np.arange(4), groups, 0)
    monkeypatch.setattr(trees, "MANY_CELLS", 0)
    many = fit(*given, np.arange(4), groups, 0)
    assert list(one) == list(many) == [0, 1, 2, 3]
    for j in one:
        assert features(j).shape[1] == (3 if groups[j] == 1 else 4) + (fit is trees.fit_boosters)
        assert_array_equal(one[j].predict(features(j)), many[j].predict(features(j)))


def test_forests_of_large_tables_have_fewer_rows_and_of_small_ones_none(monkeypatch):
    _, cells, *_ = correlated(200, p=4)
    monkeypatch.setattr(trees, "FOREST_CELLS", 16 * 30)
    forest = trees.fit_forests(cells, np.ones(cells.shape, bool), np.array([0]), np.arange(4), 0)[0]
    assert np.count_nonzero(forest.features < 0) == 30 * trees.N_TREES  # a leaf per row
    assert trees.fit_forests(cells[:5], np.ones((5, 4), bool), np.arange(4), np.arange(4), 0) == {}


def test_a_candidate_saves_what_the_blend_loses_without_it():
    random = np.random.default_rng(0)
    x = random.normal(size=(len(CANDIDATES), 5000))
    y = 0.5 * x[2] + 0.3 * x[6] + 0.1 * random.normal(size=5000)
    sums = (x @ x.T)[None], (x @ y)[None], np.array([5000.0])
    loss = [squared_error(*sums, [c]) - squared_error(*sums) for c in range(len(CANDIDATES))]
    assert_allclose(loss, [0, 0, 0.5**2, 0, 0, 0, 0.3**2], atol=0.01)
    assert_allclose(squared_error(*sums) + np.mean(y**2), 0.1**2, rtol=0.1)


def test_trees_that_are_not_worth_their_time_are_left_out():
    X, *_ = correlated(400)  # a Gaussian knows all that there is
    model = fit_table(X, np.arange(6))
    assert not model.candidates.forests
    for candidate, fitted in (("boosting", model.candidates.boosters), ("trees", model.candidates.forests)):
        others = np.setdiff1d(np.arange(6), list(fitted))
        assert_array_equal(model.weights[others, CANDIDATES.index(candidate)], 0)
