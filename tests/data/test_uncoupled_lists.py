"""The three lists of an uncoupled collection: frames, files, arrays and tuples all say the same; so do all headers."""

import gzip

import numpy as np
import pandas as pd
import pytest

from halfseen import Uncoupled
from halfseen.errors import DataError, ParameterError

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
        made.append(columns if library is None else library(columns))
    return made


def written(folder, texts, ending=".csv"):
    paths = []
    for name, text in zip(("asked", "answers", "comparisons"), texts, strict=False):
        paths.append(folder / f"{name}{ending}")
        paths[-1].write_bytes(gzip.compress(text.encode()) if ending.endswith("gz") else text.encode())
    return paths


# Kinds of lists.


@pytest.mark.parametrize("kind", ["pandas", "pandas strings", "categories", "polars", "arrow"])
def test_frames(kind):
    if kind == "arrow":
        library = pytest.importorskip("pyarrow").table
    elif kind == "polars":
        library = pytest.importorskip("polars").DataFrame
    elif kind == "pandas":
        library = pd.DataFrame
    else:
        dtype = "string" if kind == "pandas strings" else "category"
        library = lambda columns: pd.DataFrame(columns).astype({n: dtype for n in columns if n != "value"})  # noqa: E731
    assert same(Uncoupled(*frames(library)), expected())


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".csv.gz", ".parquet"])
def test_files(tmp_path, ending):
    made = frames(pd.DataFrame)
    if ending == ".parquet":
        pytest.importorskip("pyarrow")
        paths = [tmp_path / f"{place}.parquet" for place in range(3)]
        for frame, path in zip(made, paths, strict=True):
            frame.to_parquet(path)
    else:
        paths = written(
            tmp_path, [frame.to_csv(index=False, sep="\t" if "t" in ending else ",") for frame in made], ending
        )
    assert same(Uncoupled(*paths), expected())
    assert same(Uncoupled(*map(str, paths)), expected())


def test_arrays_and_lists_of_lists():
    assert same(Uncoupled(np.array(ASKED), ANSWERS, np.array(COMPARED, dtype=object)), expected())
    assert same(Uncoupled([list(line) for line in ASKED], np.array(ANSWERS, dtype=object), COMPARED), expected())


def numbered():
    questions, people = {"age": 20, "pay": 7}, {"ann": 300, "bob": 1, "cid": 2, None: np.nan}
    return (
        np.array([(questions[q], people[p]) for q, p in ASKED]),
        np.array([(questions[q], np.nan if value is None else value) for q, value in ANSWERS]),
        np.array([(questions[q], people[h], people[low]) for q, h, low in COMPARED]),
    )


def test_numbers_with_nan_for_an_unknown_side():
    asked, answers, compared = numbered()
    seen = Uncoupled(asked, answers, compared)
    assert seen.fingerprint() == expected().fingerprint()
    assert (seen.question_labels.tolist(), seen.respondent_labels.tolist()) == ([20, 7], [300, 1, 2])
    assert seen.question_labels.dtype == seen.respondent_labels.dtype == np.int64


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_of_numbers_with_nulls(library):
    make = pytest.importorskip(library).DataFrame
    asked, answers, compared = numbered()
    nulls = [[None if value != value else int(value) for value in line] for line in compared.tolist()]
    made = frames(make, lists=(asked.tolist(), answers.tolist(), nulls))
    assert same(Uncoupled(*made), Uncoupled(asked, answers, compared))
    if library == "pandas":
        made[2] = made[2].convert_dtypes()
        assert str(made[2]["lower"].dtype) == "Int64"
        assert same(Uncoupled(*made), Uncoupled(asked, answers, compared))


def test_files_of_numbers_that_pandas_wrote_as_floats(tmp_path):
    asked, answers, compared = numbered()
    made = frames(pd.DataFrame, lists=(asked, answers, compared))
    texts = [made[0].astype(int).to_csv(index=False), made[1].to_csv(index=False), made[2].to_csv(index=False)]
    assert ".0" in texts[2]
    assert same(Uncoupled(*written(tmp_path, texts)), Uncoupled(asked, answers, compared))


def test_ids_as_text_in_one_list_and_as_numbers_in_another():
    asked, answers, compared = numbered()
    as_text = [(str(q), str(p)) for q, p in asked]
    assert same(Uncoupled(as_text, answers, compared), Uncoupled(asked, answers, compared))
    assert same(Uncoupled(asked, answers.astype(str), COMPARED[:0]), Uncoupled(asked, answers))


def test_007_is_not_7():
    with pytest.warns(match="1 comparison of somebody who was not asked"):
        Uncoupled([("q", "007"), ("q", "8")], [("q", 1)], [("q", 7, 8)])
    seen = Uncoupled([("q", "007"), ("q", "8")], [("q", 1)], [("q", "8", "007")])
    assert (seen.higher.tolist(), seen.lower.tolist()) == ([1], [0])


@pytest.mark.parametrize("mark", ["N/A", "n/a", "", "  ", "nan", "?", None, float("nan"), pd.NA, pd.NaT])
def test_missing_answers_are_dropped_and_counted(mark):
    seen = Uncoupled([("q", 1)], [("q", mark), ("q", 3), ("q", mark)])
    assert (seen.answers.tolist(), seen.account.answers_missing) == ([3], 2)


@pytest.mark.parametrize("mark", ["", " ", "None", "NA", None, float("nan"), pd.NA])
def test_unknown_sides(mark):
    seen = Uncoupled([("q", "a"), ("q", "b")], [("q", 3)], [("q", mark, "a"), ("q", "b", mark)])
    assert (seen.higher.tolist(), seen.lower.tolist(), seen.account.half_known) == ([-1, 1], [0, -1], 2)


def test_somebody_called_none_is_somebody():
    seen = Uncoupled([("q", "None"), ("q", "b")], [("q", 3)], [("q", "None", "b"), ("q", None, "b")])
    assert (seen.higher.tolist(), seen.lower.tolist()) == ([-1, 0], [1, 1])


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


def test_given_names():
    headers = (("wer", "was"), ("wieviel", "was"), ("was", "unten", "oben"))
    lists = ([line[::-1] for line in ASKED], [line[::-1] for line in ANSWERS], [(q, b, a) for q, a, b in COMPARED])
    names = {"question": "was", "respondent": "wer", "value": "wieviel", "higher": "oben", "lower": "unten"}
    seen = Uncoupled(*frames(pd.DataFrame, headers, lists), **names)
    assert same(seen, expected())
    assert seen.account.columns["answers"] == {"question": "column 'was'", "value": "column 'wieviel'"}
    mixed = frames(pd.DataFrame, headers, lists)
    mixed[1] = ANSWERS  # names are for the lists that have some
    del names["value"]
    assert same(Uncoupled(*mixed, **names), expected())


def test_given_places_of_columns_without_names(tmp_path):
    seen = Uncoupled(*written(tmp_path, ["bob,pay\nann,age\n", "3,age\n4,pay\n"]), question=1)
    assert (seen.question_labels.tolist(), seen.answers.tolist()) == (["pay", "age"], [4, 3])
    assert same(seen, Uncoupled([("bob", "pay"), ("ann", "age")], [(3, "age"), (4, "pay")], question=1))


def test_columns_beside_are_passed_by(tmp_path):
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
    numbers = ["7 1\n7 2\n8 1\n", "7 3.5\n8 2\n", "7 1 2\n"]
    assert same(
        Uncoupled(*written(tmp_path, numbers)), Uncoupled([(7, 1), (7, 2), (8, 1)], [(7, 3.5), (8, 2)], [(7, 1, 2)])
    )


def test_a_first_line_whose_ids_come_again_late_is_no_header(tmp_path):
    asked = [(f"q{place % 40}", f"p{place % 90}") for place in range(500)]
    texts = ["".join(f"{q},{p}\n" for q, p in asked), "q0,1\nq1,2\n", "".join(f"{q},,{p}\n" for q, p in asked)]
    seen = Uncoupled(*written(tmp_path, texts))
    assert same(seen, Uncoupled(asked, [("q0", 1), ("q1", 2)], [(q, None, p) for q, p in asked]))
    assert (seen.n_asked, seen.question_labels[0]) == (len(set(asked)), "q0")


def test_a_file_of_comparisons_with_a_header_alone(tmp_path):
    paths = written(tmp_path, ["q,u\na,1\n", "q,y\na,1\n", "q,higher,lower\n"])
    assert Uncoupled(*paths).n_comparisons == 0


# What can't be read.


def refused(match, *lists, **options):
    with pytest.raises(DataError, match=match):
        Uncoupled(*lists, **options)


ONE = [("q", "a")]


def test_nothing_asked_nothing_answered():
    refused("Somebody must have been asked something. Found no line in asked", [], [("q", 1)])
    refused("Somebody must have been asked", np.empty((0, 2)), [("q", 1)])
    refused("There must be an answer to a question that was asked. Found none in 0 lines", ONE, [])
    refused("Found none in 2 lines of answers, 2 of them without a number", ONE, [("q", None), ("q", "N/A")])
    refused("Found none in 1 line of answers, 0 of them without", ONE, [("r", 1)])


@pytest.mark.parametrize(
    ("lists", "found"),
    [
        ((None, [("q", 1)]), "asked must be a pandas, polars or Arrow frame.* Found None"),
        ((ONE, 3), "answers must be .* Found a int"),
        ((ONE, [("q", 1)], {"q": 1}), "comparisons must be .* Found a dict"),
        ((np.zeros(4), [("q", 1)]), r"asked must be an array of 2 columns: question, respondent. Found shape \(4,\)"),
        ((np.zeros((4, 3)), [("q", 1)]), "The list asked must have 2 columns: question, respondent. Found 3: 0, 1, 2"),
        ((ONE, [("q",)]), "The list answers must have 2 columns: question, value. Found 1: 0"),
        ((ONE, [("q", 1), ("q", 1, 2)]), r"Every line of answers must have 2 fields: question, value. Found \('q', 1,"),
        ((["qa"], [("q", 1)]), "Every line of asked must have 2 fields: question, respondent. Found 'qa' at position"),
        ((ONE, [("q", "high")]), "Answers must be numbers. Found 'high' at position 0 of answers"),
        ((ONE, [("q", 1), ("q", float("-inf"))]), "Answers must be finite. Found -inf at position 1 of answers"),
        ((ONE, pd.DataFrame({"q": ["q"], "y": ["high"]})), "Found 'high' at position 0 of"),
        (([("q", "a"), ("q", None)], [("q", 1)]), "Every line of asked must name a respondent. Found none at position"),
        (([("", "a")], [("q", 1)]), "Every line of asked must name a question. Found none at position 0"),
        (([(1, 1)], [(None, 1)]), "Every line of answers must name a question. Found none at position 0"),
        ((ONE, [("q", 1)], [("q", "a", None), (None, "a", None)]), "Every line of comparisons must name a question"),
        (([(1, "a"), ("q", "b")], [("q", 1)]), "The ids of questions must be all of one kind. Found integer and text"),
    ],
)  # fmt: skip
def test_bad_lists(lists, found):
    refused(found, *lists)


def test_bad_headers():
    made = frames(pd.DataFrame)
    refused("The column named as question='what' must be in the list asked. Found only: question, respondent",
            *made, question="what")  # fmt: skip
    refused("Names of columns must be those of a frame or a file. Found value='y' with lists", ONE, ANSWERS, value="y")
    wide = made[0].assign(other=1)[["respondent", "other"]].assign(more=2)
    refused("The list asked must have 2 columns: question, respondent. Found 3: respondent, other, more", wide, ANSWERS)
    twice = made[0].rename(columns={"question": "subject", "respondent": "person"})
    refused("Found 'subject' and 'person', which may both be the respondent, and nothing that is headed as the quest",
            twice, ANSWERS)  # fmt: skip
    assert same(Uncoupled(twice, ANSWERS, respondent="person"), Uncoupled(ASKED, ANSWERS))
    scored = made[1].assign(score=1.0)
    refused("Found 'value' and 'score', which may both be the value. Say which it is", ASKED, scored)
    assert Uncoupled(ASKED, scored, value="score").answers.tolist() == [1, 1, 1, 1]


def test_bad_files(tmp_path):
    good = "question,respondent\nq,a\nq,b\n"
    refused("must exist", tmp_path / "nowhere.csv", [("q", 1)])
    refused("Line 3 of asked.csv must have 2 fields", *written(tmp_path, ["question,respondent\nq,a\nq", "q,y\nq,1\n"]))
    refused("Found 'much' on line 3 of answers.csv", *written(tmp_path, [good, "question,value\nq,1\nq,much\n"]))
    refused("Found inf on line 2 of answers.csv", *written(tmp_path, [good, "question,value\nq,inf\n"]))
    refused(
        "must name a respondent. Found none on line 2 of asked.csv", *written(tmp_path, ["q,user\nq,\nq,1", "q,y\nq,1"])
    )
    refused(
        "The list asked must have 2 columns.* Found 1: question", *written(tmp_path, ["question\nq\n", "q,y\nq,1\n"])
    )
    refused(
        "Line 2 of comparisons.csv must have 3 fields", *written(tmp_path, [good, "q,y\nq,1", "q,higher,lower\nq,a\n"])
    )


def test_a_damaged_gzip_file(tmp_path):
    paths = written(tmp_path, ["question,respondent\n" + "q,a\n" * 999, "q,y\nq,1\n"], ".csv.gz")
    paths[0].write_bytes(paths[0].read_bytes()[:-20])
    refused("asked.csv.gz must be a whole", *paths)


@pytest.mark.parametrize("option", [{"questions_are": "col"}, {"faults": "ignore"}])
def test_words_that_are_not_known(option):
    (name,) = option
    with pytest.raises(ParameterError, match=f"{name} must be one of"):
        Uncoupled(ONE, [("q", 1)], **option)
