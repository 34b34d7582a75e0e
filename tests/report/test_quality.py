"""What a report judges a model by: cells that training has not seen, in units that can be compared."""

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose

import halfseen as hs
from halfseen.errors import DataError, DataWarning
from tests.report.models import fitted, quiet, table
from tests.report.pages import Page, page_of, split

pytestmark = pytest.mark.usefixtures("undrawn")

# Cells of test that training has seen.


def overlapping(X, share, seed=0):
    """Cells of X by lot, among them its holes: what a careless user takes for held out."""
    random = np.random.default_rng(seed)
    return np.where(np.isnan(X) | (random.random(X.shape) < share), random.integers(1, 6, X.shape), np.nan)


@pytest.mark.parametrize("unseen", ["missing", "zero"])
@pytest.mark.parametrize("is_train_given", [True, False])
def test_cells_of_training_are_left_out_and_told_of(unseen, is_train_given):
    X = table(30, 9, whole=True).to_numpy()
    test = overlapping(X, 0.3)
    fresh = np.where(np.isnan(X), test, np.nan)
    model = hs.WeightedNMF(2, unseen=unseen, random_state=0).fit(X)
    train = X if is_train_given else None
    known = int(np.sum(~np.isnan(test) & ~np.isnan(X)))
    sentence = f"Found {known} of {np.sum(~np.isnan(test))} that are. They were left out."
    with pytest.warns(DataWarning, match=re.escape(sentence)) as caught:
        page = Page(hs.make_report(model, train, test).html)
    assert caught[0].filename == __file__
    assert len(caught) == 1
    assert f"{np.sum(~np.isnan(fresh))} cells held out, in rows and columns of the model." in page.notes
    assert any(sentence in note for note in page.notes)
    honest = page_of(model, train, fresh)
    assert page.tables == honest.tables
    with pytest.raises(DataError):
        page_of(model, train, X)


def test_what_either_the_fit_or_train_has_seen_is_left_out():
    X = table(20, 9, whole=True).to_numpy()
    model = hs.WeightedNMF(1, random_state=0).fit(X)
    train = X.copy()
    train[:10] = np.nan  # a part of the fit's cells, and one that the fit lacked
    row, column = np.argwhere(np.isnan(X))[-1]
    train[row, column] = 1.0
    with pytest.warns(DataWarning, match="that are"):
        page = page_of(model, train, np.ones(X.shape))
    assert f"{np.isnan(X).sum() - 1} cells held out, in rows and columns of the model." in page.notes


def test_an_answer_that_was_asked_for_was_not_seen():
    model, seen = fitted("UncoupledNMF by decoding")
    answers = table(6, 8, seed=1).set_axis([f"question {place}" for place in range(6)])
    page = page_of(model, seen, answers)
    assert f"{answers.notna().sum().sum()} cells held out, in rows and columns of the model." in page.notes
    table_ = page.numbers(f"Values of {answers.notna().sum().sum()} cells: smaller is better")
    errors = answers.sub(answers.mean(axis=1), axis=0)
    expected = [np.sqrt((errors**2).stack().mean()), errors.abs().stack().mean()]
    assert_allclose(table_["Mean of the question's answers"], expected, rtol=5e-4)
    assert not any(note.startswith("Pass the training data") for note in page.notes)
    other = hs.Uncoupled([("question 0", "x"), ("question 0", "y")], [("question 0", 1.0)], faults="report")
    notes = page_of(model, other, answers).notes  # whose questions are others
    assert "These are not exactly the cells that the model was fitted on." in notes
    assert "Pass the training data to see simple baselines beside the model." in notes


# Columns of different units.


def in_units(n=60, seed=0):
    """A table whose columns differ in units; nothing varies in the last, of which more is held out."""
    X = table(n, 5, seed=seed).to_numpy() * [1, 1000, 0.01, 30, 1]
    X[:, 4] = np.where(np.isnan(X[:, 4]), np.nan, 7.0)
    train, test = split(X)
    return train, test


UNITS = ", errors in units of each column's spread (the standard deviation over the cells seen in training)"


@pytest.mark.parametrize("units", ["", UNITS])
def test_errors_beside_those_of_means_in_units_of_the_columns_spread_where_units_differ(units):
    train, test = in_units() if units else split(table(60, 5))
    model = hs.WeightedNMF(2, random_state=0).fit(train)
    page = page_of(model, train, test)
    dense, held = train.to_dense(), test.to_dense()
    scale = np.nanstd(dense, axis=0) if units else np.ones(5)
    at = ~np.isnan(held) & (scale > 0)
    table_ = page.numbers(f"Values of {at.sum()} cells{units}: smaller is better")
    guesses = {
        "WeightedNMF": model.W_ @ model.H_.T,
        "Mean of all": np.full(dense.shape, np.nanmean(dense)),
        "Mean of the row": np.repeat(np.nanmean(dense, axis=1)[:, None], 5, axis=1),
        "Mean of the column": np.repeat(np.nanmean(dense, axis=0)[None], 60, axis=0),
    }
    assert list(table_) == list(guesses)
    for name, guess in guesses.items():
        errors = ((guess - held) / np.where(scale > 0, scale, np.nan))[at]
        assert_allclose(
            table_[name], [np.sqrt(np.mean(errors**2)), np.mean(np.abs(errors))], rtol=2e-3 if units else 5e-4
        )
    best = min(list(guesses)[1:], key=lambda name: table_[name][0])
    spread = ", in units of each column's spread" if units else ""
    own = table_["WeightedNMF"][0]
    assert f"Root mean squared error on held-out cells{spread}: {own:.4g} ({best}: " in page.notes[0]
    if units:
        left_out = int((~np.isnan(held[:, 4])).sum())
        assert left_out > 0
        assert any(note.startswith(f"{left_out} cells left out: ") for note in page.notes)
        bare = page_of(model, None, test)
        assert any(note.endswith("here the columns of the largest values decide.") for note in bare.notes)


def test_without_a_column_that_varies_errors_are_as_they_are():
    X = np.tile([1.0, 100.0], (6, 1))
    X[0, 0] = X[1, 1] = np.nan
    test = np.full(X.shape, np.nan)
    test[0, 0], test[1, 1] = 4.0, 104.0
    page = page_of(hs.WeightedNMF(1, random_state=0).fit(X), X, test)
    table_ = page.numbers("Values of 2 cells: smaller is better")
    assert_allclose(table_["Mean of the column"], [np.sqrt((9 + 16) / 2), 3.5], rtol=5e-4)


@pytest.mark.parametrize("questions_are", ["rows", "columns"])
def test_questions_may_differ_in_units_too(questions_are):
    random = np.random.default_rng(0)
    X = random.gamma(2.0, 1.0, (4, 10)) * np.array([1.0, 500.0, 0.1, 3.0])[:, None]
    X = X if questions_are == "rows" else X.T
    seen = hs.Uncoupled.from_coupled(X, 10, random_state=0, questions_are=questions_are)
    with quiet():
        model = hs.UncoupledNMF(1, method="decode", max_iter=5, random_state=0).fit(seen)
        page = page_of(model, seen, X)
    units = ", errors in units of each question's spread (the standard deviation over its answers)"
    table_ = page.numbers(f"Values of 40 cells{units}: smaller is better")
    assert_allclose(table_["Mean of the question's answers"][0], 1.0, rtol=1e-3)  # the spread itself


def test_levels_are_never_of_different_units():
    """However rarely a level above 0 was seen in some column."""
    Y = np.zeros((40, 3))
    Y[:, 0], Y[0, 1], Y[1::2, 2] = 5.0, 1.0, 3.0
    Y[3, 0] = Y[5, 1] = Y[7, 2] = np.nan
    test = np.where(np.isnan(Y), 1.0, np.nan)
    page = page_of(hs.OrdinalMF(1, random_state=0).fit(Y), Y, test)
    assert "Values of 3 cells: smaller is better" in page.tables


def test_a_report_carries_the_scores_that_it_shows():
    train, test = split(table(30, 5, seed=1).to_numpy())
    model = hs.WeightedNMF(2, random_state=0).fit(train)
    report = hs.make_report(model, train, test)
    (shown,) = report.scores
    heads, own, *_ = Page(report.html).tables[shown["caption"]]
    assert list(shown["lines"][0]) == heads
    errors = model.predict(test.row_of_cell(), test.indices) - test.values
    assert shown["lines"][0]["Root mean squared error"] == pytest.approx(np.sqrt(np.mean(errors**2)), rel=1e-12)
    of_cells = np.abs(errors)
    counts, sums = np.bincount(test.row_of_cell()), np.bincount(test.row_of_cell(), of_cells)
    left = (sums - of_cells.mean() * counts)[counts > 0]
    error = np.sqrt(np.sum(left**2) * left.size / (left.size - 1)) / of_cells.size
    assert shown["standard_errors"][0]["Mean absolute error"] == pytest.approx(error, rel=1e-12)
    pairs = zip(list(shown["lines"][0].values())[1:], shown["standard_errors"][0].values(), strict=True)
    assert [f"{value:.4g} ± {error:.2g}" for value, error in pairs] == own[1:]
    assert hs.make_report(model, train).scores == ()
