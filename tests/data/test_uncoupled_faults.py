"""Lists that don't fit together: what is left out, what is kept, what is told, and what is refused."""

import warnings

import pytest

from halfseen import Uncoupled
from halfseen.errors import DataError, DataWarning

ASKED = [("q", "ann"), ("q", "bob"), ("q", "cid"), ("r", "ann"), ("r", "dan")]
ANSWERS = [("q", 1), ("q", 2), ("q", 3), ("r", 4), ("r", 4)]

#: What is wrong, the lines that have it, how one is told, how several are, and which count tells it.
FAULTY_COMPARISONS = {
    "unknown question": ("comparisons_unasked", ("x", "ann", "bob"), "on a question nobody was asked"),
    "unknown people": ("comparisons_strange", ("q", "ann", "eve"), "of somebody who was not asked that question"),
    "people asked other things": (
        "comparisons_strange",
        ("q", "dan", "ann"),
        "of somebody who was not asked that question",
    ),
    "a half-known stranger": ("comparisons_strange", ("r", None, "bob"), "of somebody who was not asked that question"),
    "two unknown people": ("comparisons_strange", ("r", "eve", "eva"), "of somebody who was not asked that question"),
    "oneself": ("comparisons_self", ("q", "bob", "bob"), "of somebody with themselves"),
    "nobody": ("comparisons_empty", ("q", None, None), "with both sides unknown"),
}
GOOD = [("q", "bob", "ann"), ("r", "dan", None)]


def told(*lists):
    """The collection and the text of its only warning."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        seen = Uncoupled(*lists)
    (warning,) = caught
    assert warning.category is DataWarning
    assert warning.filename == __file__
    return seen, str(warning.message)


@pytest.mark.parametrize("kind", FAULTY_COMPARISONS)
def test_faulty_comparisons(kind):
    count, line, what = FAULTY_COMPARISONS[kind]
    seen, text = told(ASKED, ANSWERS, [GOOD[0], line, GOOD[1]])
    assert getattr(seen.account, count) == 1
    assert (seen.higher.tolist(), seen.lower.tolist()) == ([1, 4], [0, -1])
    assert f"Found 1 comparison {what} (at position 1 of comparisons). These were left out" in text
    with pytest.raises(DataError, match=rf"Found a comparison {what}, at position 1 of comparisons. (Add|Drop)"):
        Uncoupled(ASKED, ANSWERS, [GOOD[0], line, GOOD[1]], faults="refuse")


def test_answers_to_questions_nobody_was_asked():
    answers = [*ANSWERS, ("x", 1), ("y", None)]
    seen, text = told(ASKED, answers, GOOD)
    assert (seen.account.answers_unasked, seen.account.answers_missing, seen.n_answers) == (2, 1, 5)
    assert "Found 2 answers to questions nobody was asked (the first at position 5 of answers)." in text
    with pytest.raises(
        DataError, match=r"Found an answer to a question nobody was asked, at position 5 of answers. Add"
    ):
        Uncoupled(ASKED, answers, GOOD, faults="refuse")


def test_all_faults_in_one_warning_and_the_first_line_is_refused():
    lines = [GOOD[0]] + [line for _, line, _ in reversed(FAULTY_COMPARISONS.values())] * 2
    seen, text = told(ASKED, ANSWERS, lines)
    assert (seen.n_comparisons, text.count("Found")) == (1, 1)
    for told_of in (
        "2 comparisons on questions nobody was asked (the first at position 7 of comparisons)",
        "8 comparisons of people who were not asked that question (the first at position 3 of comparisons)",
        "2 comparisons of somebody with themselves (the first at position 2 of comparisons)",
        "2 comparisons with both sides unknown (the first at position 1 of comparisons)",
    ):
        assert told_of in text
    with pytest.raises(DataError, match="with both sides unknown, at position 1 of comparisons"):
        Uncoupled(ASKED, ANSWERS, lines, faults="refuse")


def test_faults_in_files_are_told_with_their_line(tmp_path):
    for name, text in {
        "a.csv": "item,user\nq,1\nq,2\n",
        "b.csv": "item,value\n\nq,1\nz,5\nq,2\n",
        "c.csv": "item,higher,lower\nq,1,2\nq,2,2\nq,1,9\nq,,9\n",
    }.items():
        (tmp_path / name).write_text(text)
    paths = [tmp_path / name for name in ("a.csv", "b.csv", "c.csv")]
    _, text = told(*paths)
    assert "1 answer to a question nobody was asked (on line 4 of b.csv)" in text
    assert "2 comparisons of people who were not asked that question (the first on line 4 of c.csv)" in text
    assert "1 comparison of somebody with themselves (on line 3 of c.csv)" in text
    with pytest.raises(DataError, match=r"on line 4 of b.csv"):
        Uncoupled(*paths, faults="refuse")


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
        seen, text = told(*lists)
        what = f"{contradictory} comparisons in ties or cycles of more respondents than the question has equal answers"
        assert f"Found {what}, the first on question 'q', of 'a' with 'b'. These were kept" in text
        with pytest.raises(DataError, match=f"Comparisons must hold for some order of the answers. Found {what}"):
            Uncoupled(*lists, faults="refuse")
    assert (seen.n_comparisons, seen.account.cyclic, seen.account.contradictory) == (
        len(compared),
        cyclic,
        contradictory,
    )
