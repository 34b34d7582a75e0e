"""Uncoupled collections against dictionaries and loops, whatever they hold, in whatever order."""

import copy
import dataclasses
import pickle
import warnings

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import halfseen
from halfseen import Uncoupled
from halfseen.errors import DataError, DataWarning
from tests.data.collections_by_hand import built, is_number
from tests.data.strategies import CALM

QUESTIONS = st.sampled_from(["age", "income", "weight"])
PEOPLE = st.sampled_from(["ann", "bob", "cid", "dan"])
VALUES = st.sampled_from([0.0, -0.0, 1.0, 2.5, None, float("nan")])
MAYBE = st.one_of(PEOPLE, st.none(), st.just("eve"))
ARRAYS = ("indptr", "respondents", "times", "answer_indptr", "answers", "comparison_indptr", "higher", "lower")
LABELS = ("question_labels", "respondent_labels")

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
    fields, account = built(asked, answers, comparisons)
    for name, expected in fields.items():
        found = getattr(seen, name)
        assert (found.tolist() if isinstance(found, np.ndarray) else found) == expected, name
    assert dataclasses.asdict(seen.account) == account | {"decimal_commas": False, "columns": seen.account.columns}
    assert all(getattr(seen, name).dtype == np.int64 for name in ARRAYS if name not in ("times", "answers"))
    assert seen.answers.dtype == np.float64


@CALM
@given(asked_lists, answer_lists, comparison_lists, st.randoms(use_true_random=False))
def test_the_order_of_answers_and_comparisons_changes_no_bit(asked, answers, comparisons, random):
    assume(has_an_answer(asked, answers))
    seen = quietly(asked, answers, comparisons)
    random.shuffle(answers)
    random.shuffle(comparisons)
    again = quietly(asked, answers, comparisons)
    for name in ARRAYS:
        one, other = getattr(seen, name), getattr(again, name)
        assert one is other is None or (one.dtype == other.dtype and one.tobytes() == other.tobytes()), name
    assert seen.account == again.account
    assert seen.fingerprint() == again.fingerprint()


@CALM
@given(asked_lists, answer_lists, comparison_lists, st.randoms(use_true_random=False))
def test_the_order_of_those_asked_changes_the_numbers_alone(asked, answers, comparisons, random):
    assume(has_an_answer(asked, answers))
    told = [in_names(quietly(asked, answers, comparisons))]
    random.shuffle(asked)
    told.append(in_names(quietly(asked, answers, comparisons)))
    assert told[0] == told[1]


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
        seen.account,
    )


@CALM
@given(asked_lists, answer_lists, comparison_lists)
def test_wins_and_losses_are_counted_by_hand(asked, answers, comparisons):
    assume(has_an_answer(asked, answers))
    seen = quietly(asked, answers, comparisons)
    fields, _ = built(asked, answers, comparisons)
    assert seen.wins().tolist() == [fields["higher"].count(cell) for cell in range(seen.n_asked)]
    assert seen.losses().tolist() == [fields["lower"].count(cell) for cell in range(seen.n_asked)]
    assert seen.wins().dtype == np.float64


def small(**options):
    asked = [("q", "ann"), ("q", "bob"), ("r", "bob")]
    return Uncoupled(asked, [("q", 1), ("q", 2), ("r", 3)], [("q", "ann", "bob")], **options)


def test_it_can_not_be_changed_but_copied_and_pickled():
    seen = small()
    with pytest.raises(dataclasses.FrozenInstanceError):
        seen.answers = np.zeros(3)
    for other in (copy.deepcopy(seen), pickle.loads(pickle.dumps(seen))):
        assert other.fingerprint() == seen.fingerprint()
        assert other.respondent_labels.tolist() == ["ann", "bob"]


def test_the_matrix_as_the_user_sees_it():
    assert small().shape == (2, 2)
    wide = Uncoupled([("q", 1), ("q", 2), ("q", 3)], [("q", 1.0)], questions_are="columns")
    assert (wide.shape, wide.n_questions, wide.n_respondents) == ((3, 1), 1, 3)


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


def test_it_introduces_itself():
    assert repr(small()) == (
        "Uncoupled(2 questions x 2 respondents, 3 cells asked, 3 answers, 1 comparisons, questions_are='rows', "
        "question_labels, respondent_labels)"
    )
    assert str(small().account) == (
        "2 questions, 2 respondents, 3 asked cells, 3 answers, 1 comparison. Of the questions, 1 has no comparison."
    )


def test_the_account_in_sentences():
    asked = [("q", "ann"), ("q", "bob"), ("q", "bob"), ("q", "cid"), ("r", "ann"), ("s", "bob"), ("s", "dan")]
    answers = [("q", 1), ("q", 2), ("q", "N/A"), ("q", 3), ("q", 4), ("r", 1), ("r", 1), ("x", 1), ("x", 2)]
    compared = [("q", "ann", "bob"), ("q", "bob", "ann"), ("q", "bob", "ann"), ("q", "cid", None), ("q", "cid", "cid")]
    with pytest.warns(DataWarning):
        seen = Uncoupled(asked, answers, compared)
    assert str(seen.account) == (
        "3 questions, 4 respondents, 6 asked cells (1 asked more than once), 6 answers (1 missing dropped), "
        "4 comparisons (1 pair both ways, 1 half-known, 1 repeated). "
        "Left out: 2 answers to questions nobody was asked, 1 comparison of somebody with themselves. "
        "Of the questions, 1 has more answers than were asked for, "
        "1 has no answer, 2 have no comparison. 1 respondent was never compared. "
        "3 comparisons can't all hold: they demand more equal answers than there are."
    )


@pytest.mark.parametrize("nothing", [None, [], np.empty((0, 3)), np.empty(0)])
def test_no_comparisons_at_all(nothing):
    seen = Uncoupled([("q", 1), ("q", 2)], [("q", 1.0)], nothing)
    assert (seen.n_comparisons, seen.comparison_indptr.tolist()) == (0, [0, 0])
    assert (seen.account.no_comparisons, seen.account.never_compared) == (1, 2)
    assert seen.wins().tolist() == seen.losses().tolist() == [0, 0]


def test_one_question_one_respondent_one_answer():
    seen = Uncoupled([("q", "ann")], [("q", 7)])
    assert (seen.shape, seen.n_asked, seen.n_answers, seen.answers.tolist()) == ((1, 1), 1, 1, [7])


@pytest.mark.parametrize("far", [2**63 - 1, -(2**63), 10**12])
def test_huge_ids(far):
    asked = np.array([[far, 5], [3, far], [far, far]])
    seen = Uncoupled(asked, [(3, 1.0), (far, 2.0)], [(far, 5, far), (far, far, None)])
    assert seen.question_labels.tolist() == [far, 3]
    assert seen.respondent_labels.tolist() == [5, far]
    assert seen.respondents.tolist() == [0, 1, 1]
    assert (seen.higher.tolist(), seen.lower.tolist()) == ([0, 1], [1, -1])


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint64", "float32", "bool"])
def test_ids_of_any_kind_of_number(dtype):
    low, high = (np.iinfo(dtype).min, np.iinfo(dtype).max) if dtype[0] in "iu" else (0, 1)
    asked = np.repeat(np.array([[high, low], [low, high], [high, high]], dtype=dtype), 30, axis=0)
    seen = Uncoupled(asked, [(int(low), 1.0), (int(high), 2.0)], [(int(high), int(low), int(high))])
    assert seen.question_labels.astype(object).tolist() == [high, low]
    assert (seen.respondents.tolist(), seen.times.tolist()) == ([0, 1, 1], [30, 30, 30])
    assert (seen.higher.tolist(), seen.lower.tolist()) == ([0], [1])


def test_it_is_a_public_name():
    assert halfseen.Uncoupled is Uncoupled is halfseen.data.Uncoupled
    assert "Uncoupled" in dir(halfseen)
