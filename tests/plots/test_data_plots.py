"""Plots of data: which cells are seen, which values they have, and a table before and after completion."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from halfseen import OrdinalMF, OrdNMF, RankOneNMF, Uncoupled, UncoupledNMF, WeightedNMF, observe, plots
from halfseen.errors import ParameterError
from tests.laws.cases import levels


def picture(ax):
    (image,) = ax.images
    return np.ma.filled(image.get_array(), np.nan)


def half_seen(n=7, m=5, seed=0):
    random = np.random.default_rng(seed)
    X = random.random((n, m)) + 0.5
    X[random.random((n, m)) < 0.4] = np.nan
    X[0], X[:, 0] = 1.0, 1.0  # every row and column has something
    return X


def test_seen_cells_one_by_one(ax):
    X = half_seen()
    assert plots.holes(X, ax=ax) is ax
    assert_array_equal(picture(ax), ~np.isnan(X))
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("column", "row")
    assert len(ax.figure.axes) == 1  # seen or not: no bar of colours
    seen = sparse.csr_array(np.array([[1, 0, 0], [1, 1, 1], [1, 0, 1]], float))
    ordered = plots.holes(seen, sort=True, ax=Figure().add_subplot())
    assert_array_equal(picture(ordered), [[1, 1, 1], [1, 1, 0], [1, 0, 0]])
    assert ordered.get_xlabel() == "column, most seen first"


def test_a_large_matrix_is_binned(ax):
    """Three rows and two columns per bin, counted one by one."""
    seen = np.random.default_rng(0).random((12, 8)) < 0.3
    plots.holes(sparse.csr_array(seen.astype(float)), bins=4, ax=ax)
    assert_allclose(picture(ax), seen.reshape(4, 3, 4, 2).mean(axis=(1, 3)))
    assert ax.figure.axes[1].get_ylabel() == "share of cells seen"
    assert (ax.get_xlim(), ax.get_ylim()) == ((0, 8), (12, 0))
    unequal = plots.holes(np.ones((10, 7)), bins=3, ax=Figure().add_subplot())
    assert_array_equal(picture(unequal), np.ones((3, 3)))
    X = sparse.random(200_000, 50_000, 1e-5, random_state=np.random.default_rng(0), format="csr")
    share = picture(plots.holes(X, sort=True, bins=50, ax=Figure().add_subplot()))
    assert share.shape == (50, 50)
    assert_allclose(share.sum() * (200_000 / 50) * (50_000 / 50), X.nnz)
    assert share[0, 0] == share.max()
    twice = observe(pd.DataFrame({"user": [0, 0, 1], "item": [0, 0, 1], "rating": [1.0, 2, 3]}), duplicates="keep")
    assert_allclose(picture(plots.holes(twice, bins=1, ax=Figure().add_subplot())), [[2 / 4]])  # one cell


@pytest.mark.parametrize("questions_are", ["rows", "columns"])
def test_asked_cells_of_uncoupled_data(ax, questions_are):
    asked = [("a", "x"), ("a", "y"), ("b", "y")]
    seen = Uncoupled(asked, [("a", 1), ("a", 2), ("b", 3)], questions_are=questions_are)
    plots.holes(seen, ax=ax)
    expected = np.array([[1, 1], [0, 1]])
    assert_array_equal(picture(ax), expected if questions_are == "rows" else expected.T)
    answers = plots.values(seen, ax=Figure().add_subplot())
    assert [bar.get_height() for bar in answers.patches] == [1, 1, 1]
    assert answers.get_ylabel() == "answers"


def test_few_values_have_a_bar_each_and_levels_their_names(ax):
    X = np.array([[1.0, 2, 2.5], [2, np.nan, 1]])
    assert plots.values(X, ax=ax) is ax
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_yscale()) == ("value", "cells", "linear")
    words = pd.Categorical(["good", "bad", "good"], ["bad", "good"], ordered=True)
    frame = pd.DataFrame({"user": ["a", "a", "b"], "item": ["x", "y", "x"], "rating": words})
    other = plots.values(frame, ax=Figure().add_subplot())
    for one, heights, names in ((ax, [2, 2, 1], ["1", "2", "2.5"]), (other, [1, 2], ["bad", "good"])):
        assert [bar.get_height() for bar in one.patches] == heights
        assert [label.get_text() for label in one.get_xticklabels()] == names


def test_many_values_are_binned(ax):
    X = np.random.default_rng(0).normal(10, 2, (40, 30))
    plots.values(X, log=True, ax=ax)
    counts, edges = np.histogram(X, 30)
    assert_array_equal([bar.get_height() for bar in ax.patches], counts)
    assert_allclose([bar.get_x() for bar in ax.patches], edges[:-1])
    assert ax.get_yscale() == "log"


def fitted(X, **parameters):
    return WeightedNMF(2, loss="frobenius", random_state=0, max_iter=50, tol=0, **parameters).fit(X)


def halves(ax, width):
    both = picture(ax)
    assert both.shape[1] == 2 * width + 1
    return both[:, :width], both[:, width + 1 :]


def test_seen_beside_filled_and_a_dot_at_every_hole(ax):
    X = half_seen()
    model = fitted(X)
    assert plots.completion(model, X, ax=ax) is ax
    seen, filled = halves(ax, 5)
    assert_array_equal(seen, X)
    assert_allclose(filled, model.complete(X))
    (dots,), (ground,) = ax.collections, ax.patches
    # A dark page replaces #000000 by white; holes lie on a light ground of their own.
    assert 0 < max(dots.get_edgecolor()[0][:3]) < 0.02 < 0.9 < min(ground.get_facecolor()[:3])
    assert (ground.get_x(), ground.get_width()) == (-0.5, 5)
    assert ground.get_zorder() < ax.images[0].get_zorder()
    rows, columns = np.nonzero(np.isnan(X))
    assert_array_equal(sorted(dots.get_offsets().tolist()), sorted(zip(columns + 6, rows, strict=True)))
    assert [label.get_text() for label in ax.get_xticklabels()] == ["seen", "filled"]
    new = np.array([[1.0, np.nan, 2.0, np.nan, 0.5]])
    folded_in = plots.completion(model, new, ax=Figure().add_subplot())
    assert_allclose(halves(folded_in, 5)[1], model.complete(new))


def test_a_sample_of_a_large_table_is_drawn(ax):
    X = half_seen(60, 50)
    X[10:] = np.where(np.random.default_rng(1).random(X[10:].shape) < 0.8, np.nan, X[10:])
    X[:, 0] = 1.0
    model = fitted(X)
    plots.completion(model, X, most=20, random_state=1, ax=ax)
    seen, filled = halves(ax, 20)
    rows = [int(label.get_text()) for label in ax.get_yticklabels()]
    assert rows == sorted(rows)
    assert len(set(rows)) == 20
    assert sum(row < 10 for row in rows) >= 7  # most cells are in these rows; a uniform sample would have 3
    whole = model.complete(X)
    for row, values in zip(rows, filled, strict=True):
        assert np.isin(values, whole[row]).all()
    assert_array_equal(filled[~np.isnan(seen)], seen[~np.isnan(seen)])


def test_columns_of_different_units(ax):
    X = half_seen() * [1, 10, 100, 1000, 1]
    model = fitted(X)
    plots.completion(model, X, by_column=True, ax=ax)
    whole = model.complete(X)
    low, high = whole.min(axis=0), whole.max(axis=0)
    assert_allclose(halves(ax, 5)[1], (whole - low) / np.where(high > low, high - low, 1))


@pytest.mark.parametrize("owner", ["rows", "columns"])
def test_own_thresholds_of_rows_and_columns(ax, owner):
    Y = levels(blanks=False)
    model = OrdinalMF(2, own_thresholds=owner, random_state=0).fit(Y)
    plots.completion(model, Y, ax=ax)
    assert_allclose(halves(ax, 11)[1], model.complete(Y))


def test_a_tensor_is_drawn_unfolded(ax):
    X = np.random.default_rng(0).random((4, 3, 2)) + 1
    X[1, 2, 1] = np.nan
    model = RankOneNMF().fit(X)
    plots.completion(model, X, ax=ax)
    assert_allclose(halves(ax, 6)[1], model.complete(X).reshape(4, 6))
    plots.holes(X, ax=(other := Figure().add_subplot()))
    assert_array_equal(picture(other), ~np.isnan(X.reshape(4, 6)))


def test_what_cannot_be_drawn():
    survey = Uncoupled.from_coupled(np.array([[1.0, 2, 3], [3, 1, 2]]), 3, random_state=0)
    decoded = UncoupledNMF(1, method="decode", random_state=0).fit(survey)
    words = pd.DataFrame({"user": [0, 0, 1], "item": [0, 1, 0], "rating": ["lo", "hi", "hi"]})
    of_words = OrdNMF(1, levels=["lo", "hi"], random_state=0).fit(words)
    calls = [
        ("model", lambda: plots.completion(decoded, survey)),
        ("model", lambda: plots.completion(of_words, words)),
        ("bins", lambda: plots.holes(np.ones((2, 2)), bins=0)),
    ]
    for parameter, draw in calls:
        with pytest.raises(ParameterError, match=f"^({parameter}|Levels) must be"):
            draw()
