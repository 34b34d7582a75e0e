"""Uncoupled collections against dictionaries and loops, lists that don't fit together, and matrices split apart."""

import copy
import dataclasses
import pickle
import warnings
from collections import Counter
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import sparse, stats

from halfseen import Uncoupled, observe
from halfseen.errors import DataError, DataWarning, ParameterError
from halfseen.uncoupled.collection import _pair_members
from tests.data.strategies import CALM, half_seen
from tests.uncoupled.collections_by_hand import built, is_number

QUESTIONS = st.sampled_from(["age", "income", "weight"])
PEOPLE = st.sampled_from(["ann", "bob", "cid", "dan"])
VALUES = st.sampled_from([0.0, -0.0, 1.0, 2.5, None, float("nan")])
MAYBE = st.one_of(PEOPLE, st.none(), st.just("eve"))
ARRAYS = ("indptr", "respondents", "times", "answer_indptr", "answers", "comparison_indptr", "higher", "lower")

asked_lists = st.lists(st.tuples(QUESTIONS, PEOPLE), min_size=1, max_size=12)
answer_lists = st.lists(st.tuples(st.one_of(QUESTIONS, st.just("shoe size")), VALUES), max_size=12)
comparison_lists = st.lists(st.tuples(st.one_of(QUESTIONS, st.just("shoe size")), MAYBE, MAYBE), max_size=15)


def quietly(*lists, **options):
    with warnings.catch_warnings(action="ignore", category=DataWarning):
        return Uncoupled(*lists, **options)


def has_an_answer(asked, answers):
    return any(is_number(value) and question in dict(asked) for question, value in answers)


@CALM
@given(asked_lists, answer_lists, comparison_lists)
def test_every_field_and_every_count(asked, answers, comparisons):
    if not has_an_answer(asked, answers):
        with pytest.raises(DataError, match="There must be an answer"):
            quietly(asked, answers, comparisons)
        return
    seen = quietly(asked, answers, comparisons)
    fields, summary = built(asked, answers, comparisons)
    for name, expected in fields.items():
        found = getattr(seen, name)
        assert (found.tolist() if isinstance(found, np.ndarray) else found) == expected, name
    assert dataclasses.asdict(seen.summary) == summary | {"decimal_commas": False, "columns": seen.summary.columns}
    assert all(getattr(seen, name).dtype == np.int64 for name in ARRAYS if name not in ("times", "answers"))
    assert seen.answers.dtype == seen.wins().dtype == np.float64
    assert seen.wins().tolist() == [fields["higher"].count(cell) for cell in range(seen.n_asked)]
    assert seen.losses().tolist() == [fields["lower"].count(cell) for cell in range(seen.n_asked)]


@CALM
@given(asked_lists, answer_lists, comparison_lists, st.randoms(use_true_random=False))
def test_the_order_changes_no_bit_and_that_of_those_asked_the_numbers_alone(asked, answers, comparisons, random):
    assume(has_an_answer(asked, answers))
    seen = quietly(asked, answers, comparisons)
    random.shuffle(answers)
    random.shuffle(comparisons)
    again = quietly(asked, answers, comparisons)
    for name in ARRAYS:
        one, other = getattr(seen, name), getattr(again, name)
        assert one is other is None or (one.dtype == other.dtype and one.tobytes() == other.tobytes()), name
    assert seen.summary == again.summary
    assert seen.fingerprint() == again.fingerprint()
    one = in_names(quietly(asked, answers, comparisons))
    random.shuffle(asked)
    assert in_names(quietly(asked, answers, comparisons)) == one


def in_names(seen):
    """What a collection says, by names."""
    questions = seen.question_labels[seen.row_of_cell()]
    people = [*seen.respondent_labels[seen.respondents], None]
    times = np.ones(seen.n_asked) if seen.times is None else seen.times
    rows = np.repeat(seen.question_labels, np.diff(seen.comparison_indptr))
    return (
        sorted(zip(questions, people, times, seen.wins(), seen.losses(), strict=False)),
        {q: seen.answers[slice(*seen.answer_indptr[i : i + 2])].tolist() for i, q in enumerate(seen.question_labels)},
        sorted((q, str(people[h]), str(people[low])) for q, h, low in zip(rows, seen.higher, seen.lower, strict=True)),
        seen.summary,
    )


def small(**options):
    asked = [("q", "ann"), ("q", "bob"), ("r", "bob")]
    return Uncoupled(asked, [("q", 1), ("q", 2), ("r", 3)], [("q", "ann", "bob")], **options)


def test_it_introduces_itself_and_can_not_be_changed_but_copied_and_pickled():
    seen = small()
    with pytest.raises(dataclasses.FrozenInstanceError):
        seen.answers = np.zeros(3)
    for other in (copy.deepcopy(seen), pickle.loads(pickle.dumps(seen))):
        assert other.fingerprint() == seen.fingerprint()
        assert other.respondent_labels.tolist() == ["ann", "bob"]
    assert repr(small()) == (
        "Uncoupled(2 questions x 2 respondents, 3 cells asked, 3 answers, 1 comparisons, questions_are='rows', "
        "question_labels, respondent_labels)"
    )
    assert small().account == small().summary  # its name in 0.1.0
    asked = [("q", "ann"), ("q", "bob"), ("q", "bob"), ("q", "cid"), ("r", "ann"), ("s", "bob"), ("s", "dan")]
    answers = [("q", 1), ("q", 2), ("q", "N/A"), ("q", 3), ("q", 4), ("r", 1), ("r", 1), ("x", 1), ("x", 2)]
    compared = [("q", "ann", "bob"), ("q", "bob", "ann"), ("q", "bob", "ann"), ("q", "cid", None), ("q", "cid", "cid")]
    assert str(quietly(asked, answers, compared).summary) == (
        "3 questions, 4 respondents, 6 asked cells (1 asked more than once), 6 answers (1 missing dropped), "
        "4 comparisons (1 pair both ways, 1 half-known, 1 repeated). Left out: 2 answers to questions nobody was "
        "asked, 1 comparison of somebody with themselves. Of the questions, 1 has more answers than were asked for, "
        "1 has no answer, 2 have no comparison. 1 respondent was never compared. "
        "3 comparisons can't all hold: they demand more equal answers than there are."
    )


KINDS = {f"{kind} {far}": (np.int64, far, 5) for kind, far in (("far", 2**63 - 1), ("far", -(2**63)), ("far", 10**12))}
KINDS |= {kind: (kind, np.iinfo(kind).max, np.iinfo(kind).min) for kind in ("uint8", "int32", "uint64")}
KINDS |= {kind: (kind, 1, 0) for kind in ("float32", "bool")}


@pytest.mark.parametrize(("dtype", "one", "other"), KINDS.values(), ids=KINDS)
def test_ids_of_any_kind_and_size_of_number(dtype, one, other):
    asked = np.repeat(np.array([[one, other], [other, one], [one, one]], dtype=dtype), 30, axis=0)
    compared = [(int(one), int(other), int(one)), (int(one), int(one), None)]
    seen = Uncoupled(asked, [(int(other), 1.0), (int(one), 2.0)], compared)
    assert seen.question_labels.astype(object).tolist() == [one, other]
    assert seen.respondent_labels.astype(object).tolist() == [other, one]
    assert (seen.respondents.tolist(), seen.times.tolist()) == ([0, 1, 1], [30, 30, 30])
    assert (seen.higher.tolist(), seen.lower.tolist()) == ([0, 1], [1, -1])


def test_the_fingerprint_tells_collections_apart():
    asked, answers, compared = [(0, 0), (0, 1), (1, 1)], [(0, 1), (0, 2), (1, 3)], [(0, 0, 1)]
    different = [
        Uncoupled(asked, answers, compared),
        Uncoupled(asked, answers, compared, questions_are="columns"),
        Uncoupled([*asked, (1, 0)], answers, compared),
        Uncoupled([*asked, (1, 1)], answers, compared),
        Uncoupled(asked, [*answers[:2], (1, 4)], compared),
        Uncoupled(asked, [(0, 1), (1, 2), (1, 3)], compared),
        Uncoupled(asked, answers, [(0, 1, 0)]),
        Uncoupled(asked, answers, [*compared, *compared]),
        Uncoupled(asked, answers),
    ]
    assert len({seen.fingerprint() for seen in different}) == len(different)


@pytest.mark.parametrize("nothing", [None, [], np.empty((0, 3)), np.empty(0)])
def test_no_comparisons_at_all(nothing):
    seen = Uncoupled([("q", 1), ("q", 2)], [("q", 1.0)], nothing)
    assert (seen.n_comparisons, seen.comparison_indptr.tolist()) == (0, [0, 0])
    assert (seen.summary.no_comparisons, seen.summary.never_compared) == (1, 2)
    assert seen.wins().tolist() == seen.losses().tolist() == [0, 0]


# Lists that don't fit together: what is left out, what is kept, what is reported, and what is refused.

ASKED = [("q", "ann"), ("q", "bob"), ("q", "cid"), ("r", "ann"), ("r", "dan")]
ANSWERS = [("q", 1), ("q", 2), ("q", 3), ("r", 4), ("r", 4)]
GOOD = [("q", "bob", "ann"), ("r", "dan", None)]
#: Lines that are at fault, and which count has them.
FAULTY = {
    "unknown question": ("comparisons_unasked", ("x", "ann", "bob")),
    "unknown people": ("comparisons_strange", ("q", "ann", "eve")),
    "people asked other things": ("comparisons_strange", ("q", "dan", "ann")),
    "a half-known stranger": ("comparisons_strange", ("r", None, "bob")),
    "two unknown people": ("comparisons_strange", ("r", "eve", "eva")),
    "oneself": ("comparisons_self", ("q", "bob", "bob")),
    "nobody": ("comparisons_empty", ("q", None, None)),
}


def reported(*lists):
    """The collection and its only warning."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        seen = Uncoupled(*lists)
    (warning,) = caught
    assert warning.category is DataWarning
    assert warning.filename == __file__
    assert warning.message.parameter == "faults"
    return seen, warning.message


def refusal(*lists):
    with pytest.raises(DataError) as error:
        Uncoupled(*lists, faults="refuse")
    assert error.value.parameter == "faults"
    return error.value


def test_faults_are_reported_with_their_places(tmp_path):
    lines = [GOOD[0]] + [line for _, line in reversed(FAULTY.values())] * 2
    seen, warning = reported(ASKED, ANSWERS, lines)
    assert seen.n_comparisons == 1
    assert warning.found == (
        "2 comparisons on questions nobody was asked (the first at position 7 of comparisons), "
        "8 comparisons of people who were not asked that question (the first at position 3 of comparisons), "
        "2 comparisons of somebody with themselves (the first at position 2 of comparisons), "
        "2 comparisons with both sides unknown (the first at position 1 of comparisons)"
    )
    error = refusal(ASKED, ANSWERS, lines)
    assert (error.found, error.where) == ("a comparison with both sides unknown", "at position 1 of comparisons")
    for name, text in {
        "a.csv": "item,user\nq,1\nq,2\n",
        "b.csv": "item,value\n\nq,1\nz,5\nq,2\n",
        "c.csv": "item,higher,lower\nq,1,2\nq,2,2\nq,1,9\nq,,9\n",
    }.items():
        (tmp_path / name).write_text(text)
    paths = [tmp_path / name for name in ("a.csv", "b.csv", "c.csv")]
    _, warning = reported(*paths)
    for place in ("(on line 4 of b.csv)", "(the first on line 4 of c.csv)", "(on line 3 of c.csv)"):
        assert place in warning.found
    assert refusal(*paths).where == "on line 4 of b.csv"
    seen, warning = reported(ASKED, [*ANSWERS, ("x", 1), ("y", None)], GOOD)
    assert (seen.summary.answers_unasked, seen.summary.answers_missing, seen.n_answers) == (2, 1, 5)
    assert warning.found.endswith("(the first at position 5 of answers)")


@pytest.mark.parametrize(
    ("answers", "compared", "cyclic", "contradictory"),
    [
        ([1, 1, 2], ["ab", "ba"], 0, 0),  # a tie, and two equal answers
        ([1, 2, 3], ["ab", "ba"], 0, 2),  # a tie, and no equal answers
        ([1, 2], ["ab", "ba"], 0, 0),  # the third answer was not given: it may equal one of them
        ([1, 1, 1], ["ab", "bc", "ca"], 3, 0),  # a cycle, and all are equal
        ([1, 1, 2], ["ab", "bc", "ca"], 3, 3),
        ([1, 1], ["ab", "bc", "ca"], 3, 0),
        ([1, 1, 1], ["ab", "ba", "bc", "cb", "ca"], 0, 0),  # a = b = c is said by ties: c >= a follows
        ([1, 1, 1], ["ab", "ba", "bc", "ca"], 2, 0),
        ([1, 1, 2, 2, 3], ["ab", "ba", "bc", "ca", "ca"], 3, 5),
        ([1, 1, 2], ["ab", "bc", "ac"], 0, 0),
    ],
)
def test_cycles_are_kept_and_refused_where_the_answers_can_not_be_equal(answers, compared, cyclic, contradictory):
    lists = [("q", one) for one in "abc"], [("q", one) for one in answers], [("q", *pair) for pair in compared]
    if not contradictory:
        seen = Uncoupled(*lists, faults="refuse")
    else:
        seen, warning = reported(*lists)
        for told in (warning, refusal(*lists)):
            assert told.found.startswith(f"{contradictory} comparisons in ties or cycles")
            assert told.where == "(the first on question 'q', of 'a' with 'b')"
    counts = seen.n_comparisons, seen.summary.cyclic, seen.summary.contradictory
    assert counts == (len(compared), cyclic, contradictory)


# Matrices split apart: how many pairs, which ones, and that they tell the truth.

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
    assert (seen.shape, seen.n_questions, seen.n_respondents) == (X.shape, *truth.shape)  # as the user sees it
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
    assert seen.summary.cyclic == seen.summary.contradictory == 0
    assert seen.times is None


@pytest.mark.parametrize("n_comparisons", [3, 1])  # all pairs are looked at; pairs are drawn and drawn again
def test_every_set_of_pairs_is_as_likely(n_comparisons):
    rows = 20_000
    seen = Uncoupled.from_coupled(np.tile(np.arange(5.0), (rows, 1)), n_comparisons, random_state=1)
    local = [side.reshape(rows, -1) - 5 * np.arange(rows)[:, None] for side in (seen.higher, seen.lower)]
    drawn = Counter(tuple(map(tuple, pairs)) for pairs in np.stack(local, axis=2).tolist())
    sets = list(combinations(sorted((high, low) for low, high in combinations(range(5), 2)), n_comparisons))
    assert set(drawn) <= set(sets)
    assert stats.chisquare([drawn[one] for one in sets]).pvalue > 1e-3


def test_long_rows_and_seeds_and_reading_the_lists_again():
    seen = Uncoupled.from_coupled(np.random.default_rng(0).random((2, 3000)), 500_000, random_state=2)
    assert np.diff(seen.comparison_indptr).tolist() == [500_000, 500_000]
    assert len(set(zip(seen.higher.tolist(), seen.lower.tolist(), strict=True))) == 1_000_000
    assert seen.summary.repeated == 0
    X = np.random.default_rng(0).random((30, 20))
    one, again, other = (Uncoupled.from_coupled(X, 6, random_state=seed).fingerprint() for seed in (3, 3, 4))
    assert one == again != other
    X = np.round(np.random.default_rng(5).random((6, 7)) * 4)
    seen = Uncoupled.from_coupled(X, 5, random_state=0)
    asked = np.argwhere(X == X)
    again = Uncoupled(asked, np.column_stack([asked[:, 0], X.ravel()]), np.array(comparisons_of(seen)), faults="refuse")
    assert again.fingerprint() == seen.fingerprint()
    assert again.summary == seen.summary


@pytest.mark.parametrize("start", [0, 10**6, 10**13, 10**15])
def test_the_members_of_a_pair_by_its_number(start):
    first, second = _pair_members(np.arange(start, start + 5000))
    by_number = [int(b) * (int(b) - 1) // 2 + int(a) for a, b in zip(first, second, strict=True)]
    assert by_number == list(range(start, start + 5000))
    assert ((first >= 0) & (first < second)).all()


def test_split_matrices_keep_labels_and_empty_lines():
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
    X = np.full((3, 4), np.nan)
    X[1, 2] = 5.0
    seen = Uncoupled.from_coupled(X)
    assert (seen.shape, seen.indptr.tolist(), seen.respondents.tolist()) == ((3, 4), [0, 0, 1, 1], [2])
    assert (seen.summary.no_answers, seen.summary.no_comparisons) == (0, 3)


TWICE = pd.DataFrame({"user": [1, 1], "item": [2, 2], "rating": [3.0, 4.0]})


@pytest.mark.parametrize(
    ("X", "options", "parameter"),
    [
        (observe(TWICE, duplicates="keep"), {}, "X"),
        (observe(np.ones((2, 2)), cell_weight=np.full((2, 2), 2.0)), {}, "X"),
        *((np.ones((2, 2)), {name: wrong}, name)
          for name, wrong in (("random_state", "x"), ("n_comparisons", 1.5), ("questions_are", "items"))),
    ],
    ids=["twice", "weights", "random_state", "n_comparisons", "questions_are"],
)  # fmt: skip
def test_what_can_not_be_split_apart(X, options, parameter):
    with pytest.raises((DataError, ParameterError)) as error:
        Uncoupled.from_coupled(X, **options)
    assert error.value.parameter == parameter
