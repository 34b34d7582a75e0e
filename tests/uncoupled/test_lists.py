"""The three lists of an uncoupled collection: frames, files, arrays and tuples all say the same; so do all headers."""

import gzip

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from halfseen import Uncoupled
from halfseen.errors import DataError, DataWarning, ParameterError

ASKED = [("age", "ann"), ("age", "bob"), ("pay", "bob"), ("pay", "cid"), ("age", "cid")]
ANSWERS = [("age", 30.0), ("pay", 2.5), ("age", None), ("age", 41.0)]
COMPARED = [("age", "bob", "ann"), ("pay", None, "cid"), ("age", "ann", None)]
HEADERS = (("question", "respondent"), ("question", "value"), ("question", "higher", "lower"))
LABELS = ("question_labels", "respondent_labels")


def same(seen, other):
    """Whether two collections say the same, labels by their spelling."""
    labels = [[[str(label) for label in getattr(one, side)] for one in (seen, other)] for side in LABELS]
    return seen.fingerprint() == other.fingerprint() and all(one == another for one, another in labels)


def expected():
    return Uncoupled(ASKED, ANSWERS, COMPARED)


def frames(library, headers=HEADERS, lists=(ASKED, ANSWERS, COMPARED)):
    made = []
    for header, lines in zip(headers, lists, strict=True):
        columns = {name: [line[place] for line in lines] for place, name in enumerate(header)}
        made.append(library(columns))
    return made


def written(folder, texts, ending=".csv"):
    paths = []
    for name, text in zip(("asked", "answers", "comparisons"), texts, strict=False):
        paths.append(folder / f"{name}{ending}")
        paths[-1].write_bytes(gzip.compress(text.encode()) if ending.endswith("gz") else text.encode())
    return paths


# Kinds of lists.


FRAMES = {
    "pandas": pd.DataFrame,
    "pandas strings": lambda columns: pd.DataFrame(columns).astype({n: "string" for n in columns if n != "value"}),
    "categories": lambda columns: pd.DataFrame(columns).astype({n: "category" for n in columns if n != "value"}),
    "arrow": pa.table,
    "polars": pl.DataFrame,
}


@pytest.mark.parametrize("library", FRAMES.values(), ids=FRAMES)
def test_frames(library):
    assert same(Uncoupled(*frames(library)), expected())


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".csv.gz", ".parquet"])
def test_files(tmp_path, ending):
    made = frames(pd.DataFrame)
    if ending == ".parquet":
        paths = [tmp_path / f"{place}.parquet" for place in range(3)]
        for frame, path in zip(made, paths, strict=True):
            frame.to_parquet(path)
    else:
        separator = "\t" if "t" in ending else ","
        paths = written(tmp_path, [frame.to_csv(index=False, sep=separator) for frame in made], ending)
    assert same(Uncoupled(*paths), expected())
    assert same(Uncoupled(*map(str, paths)), expected())


def test_arrays_and_lists_of_lists():
    assert same(Uncoupled(np.array(ASKED), ANSWERS, np.array(COMPARED, dtype=object)), expected())
    assert same(Uncoupled([list(line) for line in ASKED], np.array(ANSWERS, dtype=object), COMPARED), expected())


def test_numbers_with_nan_for_an_unknown_side_and_the_same_as_frames_files_and_text(tmp_path):
    questions, people = {"age": 20, "pay": 7}, {"ann": 300, "bob": 1, "cid": 2, None: np.nan}
    asked = np.array([(questions[q], people[p]) for q, p in ASKED])
    answers = np.array([(questions[q], np.nan if value is None else value) for q, value in ANSWERS])
    compared = np.array([(questions[q], people[h], people[low]) for q, h, low in COMPARED])
    seen = Uncoupled(asked, answers, compared)
    assert seen.fingerprint() == expected().fingerprint()
    assert (seen.question_labels.tolist(), seen.respondent_labels.tolist()) == ([20, 7], [300, 1, 2])
    assert seen.question_labels.dtype == seen.respondent_labels.dtype == np.int64
    nulls = [[None if value != value else int(value) for value in line] for line in compared.tolist()]
    for library in (pd.DataFrame, lambda c: pd.DataFrame(c).convert_dtypes(), pl.DataFrame):
        assert same(Uncoupled(*frames(library, lists=(asked.tolist(), answers.tolist(), nulls))), seen)
    made = frames(pd.DataFrame, lists=(asked, answers, compared))
    texts = [made[0].astype(int).to_csv(index=False), made[1].to_csv(index=False), made[2].to_csv(index=False)]
    assert ".0" in texts[2]  # as pandas writes whole numbers beside a missing one
    assert same(Uncoupled(*written(tmp_path, texts)), seen)
    assert same(Uncoupled([(str(q), str(p)) for q, p in asked], answers, compared), seen)
    assert same(Uncoupled(asked, answers.astype(str), COMPARED[:0]), Uncoupled(asked, answers))


def test_ids_as_they_are_spelled():
    with pytest.warns(DataWarning):
        Uncoupled([("q", "007"), ("q", "8")], [("q", 1)], [("q", 7, 8)])
    seen = Uncoupled([("q", "007"), ("q", "8")], [("q", 1)], [("q", "8", "007")])
    assert (seen.higher.tolist(), seen.lower.tolist()) == ([1], [0])
    seen = Uncoupled([("q", "None"), ("q", "b")], [("q", 3)], [("q", "None", "b"), ("q", None, "b")])
    assert (seen.higher.tolist(), seen.lower.tolist()) == ([-1, 0], [1, 1])


@pytest.mark.parametrize("mark", ["N/A", "n/a", "", "  ", "nan", "?", None, float("nan"), pd.NA, pd.NaT])
def test_missing_answers_are_dropped_and_counted(mark):
    seen = Uncoupled([("q", 1)], [("q", mark), ("q", 3), ("q", mark)])
    assert (seen.answers.tolist(), seen.summary.answers_missing) == ([3], 2)


@pytest.mark.parametrize("mark", ["", " ", "None", "NA", None, float("nan"), pd.NA])
def test_unknown_sides(mark):
    seen = Uncoupled([("q", "a"), ("q", "b")], [("q", 3)], [("q", mark, "a"), ("q", "b", mark)])
    assert (seen.higher.tolist(), seen.lower.tolist(), seen.summary.half_known) == ([-1, 1], [0, -1], 2)


# Headers.


@pytest.mark.parametrize(
    "headers",
    [
        (("item", "user"), ("item", "rating"), ("item", "winner", "loser")),
        (("itemId", "userId"), ("itemId", "score"), ("itemId", "winner_id", "loser_id")),
        (("Question ID", "Person"), ("Question ID", "Answer"), ("Question ID", "Larger person", "Smaller person")),
        (("q", "u"), ("q", "y"), ("q", "more", "less")),
        (("i", "j"), ("i", "x"), ("i", "j+", "j-")),
        (("topic", "employee"), ("topic", "response"), ("topic", "better", "worse")),
        (("Frage", "Wer"), ("Frage", "Wert"), ("Frage", "oben", "unten")),
        (("row", "column"), ("row", "value"), ("row", "greater", "lesser")),
        (("user", "genre"), ("user", "mean"), ("user", "a", "b")),
        (("a", "b"), ("c", "d"), ("e", "f", "g")),
    ],
)
@pytest.mark.parametrize("as_files", [False, True])
def test_headers_that_are_known_shared_or_in_order(headers, as_files, tmp_path):
    made = frames(pd.DataFrame, headers)
    if as_files:
        made = written(tmp_path, [frame.to_csv(index=False) for frame in made])
    assert same(Uncoupled(*made), expected())


@pytest.mark.parametrize(
    "headers",
    [
        (("item", "user"), ("item", "rating"), ("item", "higher", "lower")),
        (("question", "respondent"), ("item", "answer"), ("topic", "user_plus", "user_minus")),
        (("Frage", "Wer"), ("Frage", "score"), ("Frage", "larger", "smaller")),
    ],
)
def test_headers_go_before_the_order(headers):
    made = [frame[frame.columns[::-1]] for frame in frames(pd.DataFrame, headers)]
    assert same(Uncoupled(*made), expected())


def test_given_names_places_and_columns_beside(tmp_path):
    headers = (("wer", "was"), ("wieviel", "was"), ("was", "unten", "oben"))
    lists = ([line[::-1] for line in ASKED], [line[::-1] for line in ANSWERS], [(q, b, a) for q, a, b in COMPARED])
    names = {"question": "was", "respondent": "wer", "value": "wieviel", "higher": "oben", "lower": "unten"}
    seen = Uncoupled(*frames(pd.DataFrame, headers, lists), **names)
    assert same(seen, expected())
    assert seen.summary.columns["answers"] == {"question": "column 'was'", "value": "column 'wieviel'"}
    mixed = frames(pd.DataFrame, headers, lists)
    mixed[1] = ANSWERS  # names are for the lists that have some
    del names["value"]
    assert same(Uncoupled(*mixed, **names), expected())
    seen = Uncoupled(*written(tmp_path, ["bob,pay\nann,age\n", "3,age\n4,pay\n"]), question=1)
    assert (seen.question_labels.tolist(), seen.answers.tolist()) == (["pay", "age"], [4, 3])
    assert same(seen, Uncoupled([("bob", "pay"), ("ann", "age")], [(3, "age"), (4, "pay")], question=1))
    made = frames(pd.DataFrame)
    for frame in made:
        frame.insert(0, "timestamp", range(len(frame)))
        frame["remark"] = "none"
    assert same(Uncoupled(*made), expected())
    assert same(Uncoupled(*written(tmp_path, [frame.to_csv() for frame in made])), expected())


def test_files_without_a_header(tmp_path):
    texts = [
        "\n".join(",".join(str(one or "") for one in line) for line in lines) for lines in (ASKED, ANSWERS, COMPARED)
    ]
    assert same(Uncoupled(*written(tmp_path, texts)), expected())
    numbers = Uncoupled(*written(tmp_path, ["7 1\n7 2\n8 1\n", "7 3.5\n8 2\n", "7 1 2\n"]))
    assert same(numbers, Uncoupled([(7, 1), (7, 2), (8, 1)], [(7, 3.5), (8, 2)], [(7, 1, 2)]))
    asked = [(f"q{place % 40}", f"p{place % 90}") for place in range(500)]
    texts = ["".join(f"{q},{p}\n" for q, p in asked), "q0,1\nq1,2\n", "".join(f"{q},,{p}\n" for q, p in asked)]
    seen = Uncoupled(*written(tmp_path, texts))
    assert same(seen, Uncoupled(asked, [("q0", 1), ("q1", 2)], [(q, None, p) for q, p in asked]))
    assert (seen.n_asked, seen.question_labels[0]) == (len(set(asked)), "q0")
    paths = written(tmp_path, ["q,u\na,1\n", "q,y\na,1\n", "q,higher,lower\n"])
    assert Uncoupled(*paths).n_comparisons == 0


# What can't be read.

ONE, VALUE = [("q", "a")], [("q", 1)]
SCORED = pd.DataFrame({"question": ["q"], "value": [1.0], "score": [2.0]})
PERSONS = pd.DataFrame({"subject": ["q"], "person": ["a"]})
WIDE = pd.DataFrame({"respondent": ["a"], "other": [1], "more": [2]})


@pytest.mark.parametrize(
    ("lists", "options", "parameter", "found"),
    [
        (([], VALUE), {}, "asked", "no line in asked"),
        ((np.empty((0, 2)), VALUE), {}, "asked", "no line in asked"),
        ((ONE, []), {}, "answers", "none in 0 lines of answers, 0 of them without a number"),
        ((ONE, [("q", None), ("q", "N/A")]), {}, "answers", "none in 2 lines of answers, 2 of them without a number"),
        ((ONE, [("r", 1)]), {}, "answers", "none in 1 line of answers, 0 of them without a number"),
        ((None, VALUE), {}, "asked", "None"),
        ((ONE, 3), {}, "answers", "a int"),
        ((ONE, VALUE, {"q": 1}), {}, "comparisons", "a dict"),
        ((np.zeros(4), VALUE), {}, "asked", "shape (4,)"),
        ((np.zeros((4, 3)), VALUE), {}, "asked", "3: 0, 1, 2"),
        ((ONE, [("q",)]), {}, "answers", "1: 0"),
        ((ONE, [("q", 1), ("q", 1, 2)]), {}, "answers", "('q', 1, 2) at position 1"),
        ((["qa"], VALUE), {}, "asked", "'qa' at position 0"),
        ((ONE, [("q", "high")]), {}, "answers", "'high' at position 0 of answers"),
        ((ONE, [("q", 1), ("q", float("-inf"))]), {}, "answers", "-inf at position 1 of answers"),
        ((ONE, pd.DataFrame({"q": ["q"], "y": ["high"]})), {}, "answers", "'high' at position 0 of answers"),
        (([("q", "a"), ("q", None)], VALUE), {}, "asked", "none at position 1 of asked"),
        (([("", "a")], VALUE), {}, "asked", "none at position 0 of asked"),
        (([(1, 1)], [(None, 1)]), {}, "answers", "none at position 0 of answers"),
        ((ONE, VALUE, [("q", "a", None), (None, "a", None)]), {}, "comparisons", "none at position 1 of comparisons"),
        (([(1, "a"), ("q", "b")], VALUE), {}, None, "integer and text"),
        ((PERSONS, VALUE), {"question": "what"}, "question", "only: subject, person"),
        ((ONE, VALUE), {"value": "y"}, "value", "value='y' with lists"),
        ((WIDE, VALUE), {}, "asked", "3: respondent, other, more"),
        ((PERSONS, VALUE), {}, "respondent", "'subject' and 'person', which may both be the respondent, and nothing"),
        ((ONE, SCORED), {}, "value", "'value' and 'score', which may both be the value"),
        ((ONE, VALUE), {"questions_are": "col"}, "questions_are", "'col'"),
        ((ONE, VALUE), {"faults": "ignore"}, "faults", "'ignore'"),
    ],
)
def test_bad_lists(lists, options, parameter, found):
    with pytest.raises((DataError, ParameterError)) as error:
        Uncoupled(*lists, **options)
    assert error.value.parameter == parameter
    assert f"Found {found}" in str(error.value)


def test_a_name_settles_which_of_two_columns_is_meant():
    assert Uncoupled(ONE, SCORED, value="score").answers.tolist() == [2]
    assert same(Uncoupled(PERSONS, VALUE, respondent="person"), Uncoupled(ONE, VALUE))


GOOD = "question,respondent\nq,a\nq,b\n"


@pytest.mark.parametrize(
    ("texts", "place"),
    [
        (["question,respondent\nq,a\nq", "q,y\nq,1\n"], "Line 3 of asked.csv"),
        ([GOOD, "question,value\nq,1\nq,much\n"], "Found 'much' on line 3 of answers.csv"),
        ([GOOD, "question,value\nq,inf\n"], "Found inf on line 2 of answers.csv"),
        (["q,user\nq,\nq,1", "q,y\nq,1"], "Found none on line 2 of asked.csv"),
        (["question\nq\n", "q,y\nq,1\n"], "Found 1: question"),
        ([GOOD, "q,y\nq,1", "q,higher,lower\nq,a\n"], "Line 2 of comparisons.csv"),
    ],
)
def test_bad_files(texts, place, tmp_path):
    with pytest.raises(DataError, match=place):
        Uncoupled(*written(tmp_path, texts))


def test_files_that_are_missing_or_damaged(tmp_path):
    paths = written(tmp_path, ["question,respondent\n" + "q,a\n" * 999, "q,y\nq,1\n"], ".csv.gz")
    paths[0].write_bytes(paths[0].read_bytes()[:-20])
    for asked in (tmp_path / "nowhere.csv", paths[0]):
        with pytest.raises(DataError, match=asked.name):
            Uncoupled(asked, paths[1])
