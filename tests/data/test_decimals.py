"""Decimal commas in text files: read where they can be known as such, and refused with their place where not."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from halfseen import Uncoupled, observe
from halfseen.data import read_wide_table, textfiles, write_table
from halfseen.errors import DataError

from .strategies import CALM, half_seen


@pytest.fixture
def read(tmp_path):
    def read(text, **wishes):
        path = tmp_path / "t.csv"
        path.write_text(text)
        return observe(path, **wishes)

    return read


def with_comma(number, delimiter):
    """Python's shortest digits of a number, with a decimal comma, in quotes where these are needed."""
    text = "" if np.isnan(number) else repr(float(number)).replace(".", ",")
    return f'"{text}"' if delimiter == "," else text


@CALM
@given(half_seen(), st.sampled_from([";", "\t", "|", ","]))
def test_a_wide_file_is_read_as_with_points(tmp_path_factory, values, delimiter):
    values = np.vstack([values, np.full(values.shape[1], 0.5)])  # whose comma can't be a mark between thousands
    lines = [["name", *(f"c{place}" for place in range(values.shape[1]))]]
    lines += [[f"r{place}", *(with_comma(one, delimiter) for one in row)] for place, row in enumerate(values)]
    path = tmp_path_factory.mktemp("wide") / "t.csv"
    path.write_text("".join(delimiter.join(line) + "\n" for line in lines))
    found = observe(path)
    assert_array_equal(found.to_dense(), values)
    assert found.account.decimal == ","


@pytest.mark.parametrize("header", ["user;item;rating;sure\n", ""], ids=["header", "no header"])
def test_a_long_file_and_its_weights(read, header):
    text = f"{header}ann;x;3,5;0,25\nbob;y;4;1\nann;y;,5;2\n"
    wishes = {"cell_weight": "sure"} if header else {}
    found = read(text, **wishes)
    assert_array_equal(found.to_dense(), [[3.5, 0.5], [np.nan, 4]])
    assert found.weights is None or found.weights.tolist() == [0.25, 2, 1]
    assert found.account.decimal == ","


def test_a_first_column_of_numbers_names_no_rows(read):
    assert_array_equal(read("a;b\n1,5;2\n2,5;3\n").to_dense(), [[1.5, 2], [2.5, 3]])
    assert_array_equal(read("1,5;2\n2,5;3\n").to_dense(), [[1.5, 2], [2.5, 3]])


def test_ids_with_commas_stay_what_they_are(read):
    found = read("user;item;rating\n1,5;x;2,5\n2,5;y;1\n")
    assert found.row_labels.tolist() == ["1,5", "2,5"]


def test_levels_may_have_commas_in_their_names(read):
    found = read("user;item;rating\nann;x;1,5\nbob;x;0.5\n", levels=["0.5", "1,5"])
    assert found.to_dense().tolist() == [[2], [1]]


def test_points_and_commas_in_one_file_are_refused_with_their_places(read, monkeypatch):
    monkeypatch.setattr(textfiles, "FIELDS_PER_CHUNK", 3)  # a line at a time: the file as a whole counts
    with pytest.raises(DataError) as caught:
        read("user;item;rating\nann;x;1.5\nbob;y;2\n\nann;y;2,5\n")
    assert str(caught.value) == (
        "Numbers must have one decimal mark throughout a file. Found '2,5' on line 5 of t.csv, column 'rating', and "
        "'1.5' on line 2 of t.csv, column 'rating'. Write all with points or all with commas; marks between thousands "
        "are not read."
    )
    with pytest.raises(DataError, match=r"Found '1,5' on line 2 of t.csv, column 'a', and '2.5' on line 3 of .* 'b'"):
        read("name;a;b\nx;1,5;2\ny;2,5;2.5\n")


@pytest.mark.parametrize("mark", [".", "n.a."])
def test_a_mark_of_what_is_missing_is_no_decimal_point(read, mark):
    assert_array_equal(read(f"a;b\n1,5;{mark}\n{mark};2\n").to_dense(), [[1.5, np.nan], [np.nan, 2]])


@pytest.mark.parametrize("delimiter", [",", "\t"])
def test_a_comma_that_may_part_thousands_is_refused_unless_another_tells(read, delimiter):
    lines = ["user{0}item{0}rating", 'ann{0}x{0}"1,250"', "bob{0}y{0}3", 'ann{0}y{0}"2,500"', ""]
    text = "\n".join(lines).format(delimiter)
    with pytest.raises(DataError) as caught:
        read(text)
    assert str(caught.value) == (
        "A comma in a number must be known to be its decimal mark. Found '1,250' on line 2 of t.csv, column 'rating', "
        "which may also be a mark between thousands, and no number that tells. Write 1.250 or 1250, or part the fields "
        "by semicolons: commas are decimal marks there."
    )
    assert read(text + f'bob{delimiter}x{delimiter}"0,125"\n').values.tolist() == [1.25, 2.5, 0.125, 3]
    assert read("\n".join(lines).format(";")).values.tolist() == [1.25, 2.5, 3]


@pytest.mark.parametrize("field", ["1.234,5", "1,234,567", "1.234.567", "1,234.5"])
@pytest.mark.parametrize("levels", [None, "ordered"])
def test_marks_between_thousands_are_named(read, field, levels):
    with pytest.raises(DataError) as caught:
        read(f"user;item;rating\nann;x;2\nbob;y;{field}\n", levels=levels)
    assert f"Found '{field}' on line 3 of t.csv, column 'rating'. It seems to have marks between thousands: " in str(
        caught.value
    )
    assert "levels" not in str(caught.value)


def test_frames_of_texts_are_told_of_the_comma(read):
    frame = pd.DataFrame({"user": ["a", "b"], "item": ["x", "x"], "rating": ["3,5", "2"]})
    with pytest.raises(DataError, match=r"Found '3,5' at .* It seems to have a decimal comma: make it 3\.5\."):
        observe(frame, levels="ordered")


@pytest.mark.parametrize("field", ["1,2,3", "a,5", "1,", ",", "1,5 kg", "1,_5"])
def test_other_texts_with_commas_are_no_numbers(read, field):
    with pytest.raises(DataError, match=r"^Values must be numbers\. Found"):
        read(f"user;item;rating\nann;x;2\nbob;y;{field}\n")


def test_answers_without_names(tmp_path):
    (tmp_path / "asked.csv").write_text("question;respondent\nq;ann\nq;bob\n")
    (tmp_path / "answers.csv").write_text("question;value\nq;2,5\nq;1\n")
    seen = Uncoupled(tmp_path / "asked.csv", tmp_path / "answers.csv")
    assert seen.answers.tolist() == [1, 2.5]
    assert "2 answers, 0 comparisons. Answers have decimal commas." in str(seen.account)
    (tmp_path / "answers.csv").write_text("question;value\nq;2,5\nq;1.5\n")
    with pytest.raises(DataError, match=r"Found '2,5' on line 2 of answers.csv, .* and '1.5' on line 3"):
        Uncoupled(tmp_path / "asked.csv", tmp_path / "answers.csv")


# Tables that are filled.


def test_a_table_comes_back_with_its_separator_and_its_commas(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('name;a;note;b\nann;1,50;"x;y";2\nbob;;3,5 kg;4\n')
    table = read_wide_table(path)
    assert (table.numeric, table.decimal, table.delimiter) == (["a", "b"], ",", ";")
    write_table(path, table.names, table.filled(np.full((2, 2), 0.25)), delimiter=";", decimal=",")
    assert path.read_text() == 'name;a;note;b\nann;1,50;"x;y";2\nbob;0,25;3,5 kg;4\n'


@pytest.mark.parametrize(
    ("name", "delimiter", "decimal", "expected"),
    [
        ("t.csv", None, ".", 'x,y\n0.5,"a,b"\n'),
        ("t.csv", "|", ".", "x|y\n0.5|a,b\n"),
        ("t.csv", "\t", ".", 'x,y\n0.5,"a,b"\n'),
        ("t.csv", "\t", ",", "x;y\n0,5;a,b\n"),
        ("t.csv", ",", ",", 'x,y\n"0,5","a,b"\n'),
        ("t.csv", "::", ".", 'x,y\n0.5,"a,b"\n'),
        ("t.tsv", ";", ",", "x\ty\n0,5\ta,b\n"),
        ("t.txt", "\t", ",", "x\ty\n0,5\ta,b\n"),
    ],
)
def test_the_ending_has_a_say(tmp_path, name, delimiter, decimal, expected):
    write_table(tmp_path / name, ["x", "y"], [[0.5], ["a,b"]], delimiter=delimiter, decimal=decimal)
    assert (tmp_path / name).read_text() == expected


def test_parquet_gets_numbers(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    columns = [["1,5", 0.25], ["1,5", "kg"], ["2", "3"]]
    write_table(tmp_path / "t.parquet", ["a", "b", "c"], columns, delimiter=";", decimal=",")
    found = parquet.read_table(tmp_path / "t.parquet").to_pydict()
    assert found == {"a": [1.5, 0.25], "b": ["1,5", "kg"], "c": [2, 3]}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("n;a\nx;1.234,5\ny;2\n", r"Found '1.234,5' on line 2 of t.csv, column 'a'. It seems to have marks between th"),
        ("n;a;b\nx;1,5;2\ny;2;2.5\n", r"Found '1,5' on line 2 of t.csv, column 'a', and '2.5' on line 3 of t.csv, co"),
        ('n,a\nx,"1,500"\ny,2\n', r"Found '1,500' on line 2 of t.csv, column 'a', which may also be a mark between"),
    ],
)
def test_a_table_whose_numbers_cannot_be_known_is_refused(tmp_path, text, sentence):
    """And not filled in part, as if these columns were text."""
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(DataError, match=sentence):
        read_wide_table(tmp_path / "t.csv")


def test_a_column_that_is_skipped_has_no_say(tmp_path):
    (tmp_path / "t.csv").write_text("version;a\n1.5;1,5\n1.234,5;2\n")
    table = read_wide_table(tmp_path / "t.csv", skip=["version"])
    assert (table.numeric, table.decimal) == (["a"], ",")
    assert table.observed.values.tolist() == [1.5, 2]
