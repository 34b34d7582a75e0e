"""Coupled matrices taken apart: how many pairs, which ones, and that they tell the truth."""

from collections import Counter
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse, stats

from halfseen import Uncoupled, observe
from halfseen.data.uncoupled.uncoupling import _members
from halfseen.errors import DataError, ParameterError
from tests.data.strategies import CALM, half_seen

LEVELS = st.sampled_from([0.0, 1.0, 2.0, 3.5])


def comparisons_of(seen):
    """(question, higher respondent, lower respondent), in the order they are kept."""
    questions = np.repeat(np.arange(seen.n_questions), np.diff(seen.comparison_indptr))
    return list(zip(questions, seen.respondents[seen.higher], seen.respondents[seen.lower], strict=True))


@CALM
@given(half_seen(LEVELS), st.integers(0, 20), st.integers(0, 2**32), st.sampled_from(["rows", "columns"]))
def test_pairs_are_different_as_many_as_wanted_and_true(X, n_comparisons, seed, questions_are):
    seen = Uncoupled.from_coupled(X, n_comparisons, random_state=seed, questions_are=questions_are)
    truth = X if questions_are == "rows" else X.T
    assert (seen.shape, seen.n_questions, seen.n_respondents) == (X.shape, *truth.shape)
    told = comparisons_of(seen)
    assert len(set(told)) == len(told)
    for i, row in enumerate(truth):
        cells = np.flatnonzero(~np.isnan(row))
        assert seen.respondents[slice(*seen.indptr[i : i + 2])].tolist() == cells.tolist()
        assert seen.answers[slice(*seen.answer_indptr[i : i + 2])].tolist() == sorted(row[cells])
        mine = [(higher, lower) for question, higher, lower in told if question == i]
        pairs = {frozenset(pair) for pair in mine}
        assert len(pairs) == min(n_comparisons, len(list(combinations(cells, 2))))
        assert all(row[higher] >= row[lower] for higher, lower in mine)
        assert all(((lower, higher) in mine) == (row[higher] == row[lower]) for higher, lower in mine)
    assert seen.account.cyclic == seen.account.contradictory == 0
    assert seen.times is None


def test_all_pairs_when_there_are_few():
    X = np.array([[3.0, 1.0, 3.0, np.nan], [np.nan, 5.0, np.nan, np.nan]])
    seen = Uncoupled.from_coupled(X, 10**9, random_state=0)
    assert comparisons_of(seen) == [(0, 0, 1), (0, 0, 2), (0, 2, 0), (0, 2, 1)]


@pytest.mark.parametrize("n_comparisons", [3, 1])  # all pairs are looked at; pairs are drawn and drawn anew
def test_every_set_of_pairs_is_as_likely(n_comparisons):
    rows = 20_000
    seen = Uncoupled.from_coupled(np.tile(np.arange(5.0), (rows, 1)), n_comparisons, random_state=1)
    drawn = Counter(
        tuple(
            zip(
                *(side[slice(*seen.comparison_indptr[i : i + 2])] - 5 * i for side in (seen.higher, seen.lower)),
                strict=True,
            )
        )
        for i in range(rows)
    )
    sets = list(combinations(sorted((high, low) for low, high in combinations(range(5), 2)), n_comparisons))
    assert set(drawn) <= set(sets)
    assert stats.chisquare([drawn[one] for one in sets]).pvalue > 1e-3


def test_a_long_row_has_different_pairs():
    seen = Uncoupled.from_coupled(np.random.default_rng(0).random((2, 3000)), 500_000, random_state=2)
    assert np.diff(seen.comparison_indptr).tolist() == [500_000, 500_000]
    assert len(set(zip(seen.higher.tolist(), seen.lower.tolist(), strict=True))) == 1_000_000
    assert seen.account.repeated == 0


@pytest.mark.parametrize("start", [0, 10**6, 10**13, 10**15])
def test_the_members_of_a_pair_by_its_number(start):
    first, second = _members(np.arange(start, start + 5000))
    by_number = [int(b) * (int(b) - 1) // 2 + int(a) for a, b in zip(first, second, strict=True)]
    assert by_number == list(range(start, start + 5000))
    assert ((first >= 0) & (first < second)).all()


def test_the_seed_decides():
    X = np.random.default_rng(0).random((30, 20))
    one, again, other = (Uncoupled.from_coupled(X, 6, random_state=seed).fingerprint() for seed in (3, 3, 4))
    assert one == again != other


def test_everything_that_observe_reads_with_its_labels():
    X = pd.DataFrame([[1.0, 2.0, np.nan], [4.0, 3.0, 9.0]], index=["q", "r"], columns=["ann", "bob", "cid"])
    seen = Uncoupled.from_coupled(X, random_state=0)
    turned = Uncoupled.from_coupled(X, random_state=0, questions_are="columns")
    assert (seen.question_labels.tolist(), seen.respondent_labels.tolist()) == (["q", "r"], ["ann", "bob", "cid"])
    assert (turned.question_labels.tolist(), turned.respondent_labels.tolist()) == (["ann", "bob", "cid"], ["q", "r"])
    assert turned.shape == seen.shape == (2, 3)
    assert turned.answers.tolist() == [1, 4, 2, 3, 9]
    plain = Uncoupled.from_coupled(X.to_numpy(), random_state=0)
    assert plain.question_labels is plain.respondent_labels is None
    assert plain.fingerprint() == seen.fingerprint()
    stored = sparse.csr_array(np.nan_to_num(X.to_numpy()))
    assert Uncoupled.from_coupled(stored, random_state=0).fingerprint() == plain.fingerprint()
    assert Uncoupled.from_coupled(observe(X, unseen="zero"), random_state=0).fingerprint() == plain.fingerprint()


def test_rows_and_columns_of_which_nothing_is_seen_stay():
    X = np.full((3, 4), np.nan)
    X[1, 2] = 5.0
    seen = Uncoupled.from_coupled(X)
    assert (seen.shape, seen.indptr.tolist(), seen.respondents.tolist()) == ((3, 4), [0, 0, 1, 1], [2])
    assert (seen.account.no_answers, seen.account.no_comparisons) == (0, 3)


def test_reading_the_lists_of_a_simulated_collection_gives_it_again():
    X = np.round(np.random.default_rng(5).random((6, 7)) * 4)
    seen = Uncoupled.from_coupled(X, 5, random_state=0)
    asked = np.argwhere(X == X)
    compared = np.array(comparisons_of(seen))
    again = Uncoupled(asked, np.column_stack([asked[:, 0], X.ravel()]), compared, faults="refuse")
    assert again.fingerprint() == seen.fingerprint()
    assert again.account == seen.account


def test_what_can_not_be_taken_apart():
    twice = pd.DataFrame({"user": [1, 1], "item": [2, 2], "rating": [3.0, 4.0]})
    with pytest.raises(
        DataError, match=r"one value in each cell, and no weights. Found cells that were seen more than once"
    ):
        Uncoupled.from_coupled(observe(twice, duplicates="keep"))
    with pytest.raises(DataError, match=r"Found weights. Drop the weights"):
        Uncoupled.from_coupled(observe(np.ones((2, 2)), cell_weight=np.full((2, 2), 2.0)))
    with pytest.raises(ParameterError, match=r"n_comparisons must be a whole number of at least 0. Found 1.5"):
        Uncoupled.from_coupled(np.ones((2, 2)), 1.5)
    with pytest.raises(ParameterError, match="questions_are must be one of 'rows', 'columns'"):
        Uncoupled.from_coupled(np.ones((2, 2)), questions_are="items")
