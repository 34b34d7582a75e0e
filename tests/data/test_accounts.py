"""What is told of which columns were taken for what."""

import numpy as np
import pandas as pd
import pytest

from halfseen import observe
from halfseen.data import read_wide_table, split_cells
from halfseen.errors import DataError


@pytest.fixture
def told(tmp_path):
    def told(text, **wishes):
        (tmp_path / "t.csv").write_text(text)
        return str(observe(tmp_path / "t.csv", **wishes).account)

    return told


LONG = "Rows are from column 'user', columns from column 'item'"


@pytest.mark.parametrize(
    ("text", "wishes", "sentence"),
    [
        ("user,item,rating\na,x,1\nb,y,2\n", {}, f"{LONG}, values from column 'rating'."),
        (
            "user,rating,timestamp,item\na,1,77,x\nb,2,78,y\n",
            {},
            f"{LONG}, values from column 'rating'; column 'timestamp' is not used.",
        ),
        (
            "user,item,rating,note,title\na,x,1,s,t\nb,y,2,s,t\n",
            {},
            f"{LONG}, values from column 'rating'; columns 'note' and 'title' are not used.",
        ),
        (
            "user,item,rating,a,b,c,d,e,f,g\na,x,1,,,,,,,\n",
            {},
            f"{LONG}, values from column 'rating'; columns 'a', 'b', 'c', 'd', 'e' and 2 more are not used.",
        ),
        (
            "user,item,rating,sure\na,x,1,2\nb,y,2,1\n",
            {"cell_weight": "sure"},
            f"{LONG}, values from column 'rating', weights from column 'sure'.",
        ),
        ("user,item\na,x\nb,y\n", {}, f"{LONG}; no column of values: every pair counts 1."),
        ("a,x,1\nb,y,2\n", {}, "No header: rows are from column 1, columns from column 2, values from column 3."),
        (
            "a,x,1,77\nb,y,2,78\n",
            {},
            "No header: rows are from column 1, columns from column 2, values from column 3; column 4 is not used.",
        ),
        (
            "user;item;rating\na;x;1,5\nb;y;2\n",
            {},
            f"{LONG}, values from column 'rating'. Numbers have decimal commas.",
        ),
        ("name,p,q\na,1,2\nb,3,4\n", {}, "A wide table: names of rows from column 'name', 2 columns of numbers."),
        (",p\na,1\nb,3\n", {}, "A wide table: names of rows from the first column, 1 column of numbers."),
        ("p,q\n1,2.5\n3,4\n", {}, "A wide table: 2 columns of numbers."),
        ("1,2.5\n3,4\n", {}, "A wide table without a header: 2 columns of numbers."),
        ("p,q\nlow,high\nhigh,high\nlow,low\n", {"levels": ["low", "high"]}, "A wide table: 2 columns of levels."),
    ],
)
def test_a_text_file(told, text, wishes, sentence):
    assert told(text, **wishes) == sentence


def test_frames_and_their_index():
    long = pd.DataFrame({"user": ["a"], "item": ["x"], "rating": [3], "when": ["now"]})
    assert str(observe(long).account) == f"{LONG}, values from column 'rating'; column 'when' is not used."
    wide = pd.DataFrame({"p": [1, 2], "q": [3, 4]}, index=["a", "b"])
    assert str(observe(wide).account) == "A wide table: names of rows from the index, 2 columns of numbers."
    named = wide.reset_index(names="who")
    assert str(observe(named).account) == "A wide table: names of rows from column 'who', 2 columns of numbers."


def test_a_parquet_file(tmp_path):
    pytest.importorskip("pyarrow")
    pd.DataFrame({"user": ["a"], "item": ["x"], "plays": [3]}).to_parquet(tmp_path / "t.parquet")
    assert str(observe(tmp_path / "t.parquet").account) == f"{LONG}, values from column 'plays'."


def test_arrays_have_no_columns_to_tell_of():
    assert observe(np.eye(2)).account is None
    assert observe([("a", "x", 1.0)]).account is None


def test_what_is_made_of_cells_keeps_their_account(told, tmp_path):
    told("user,item,rating\na,x,1\nb,y,2\n")
    seen = observe(tmp_path / "t.csv")
    train, test = split_cells(seen, test_size=1, random_state=0)
    again = observe(seen, unseen="zero")
    assert seen.account == train.account == test.account == again.account == seen.select_rows([0]).account


def test_a_table_to_be_filled(tmp_path):
    for name, said in {"id": "column 'id'", "": "the first column"}.items():
        (tmp_path / "t.csv").write_text(f"{name},city,a,b\n1,x,1,2\n2,y,3,4\n")
        table = read_wide_table(tmp_path / "t.csv")
        assert str(table.observed.account) == f"A wide table: names of rows from {said}, 2 columns of numbers."


# Long tables whose headers say nothing.

IDS = "kunde,artikel,note\n1,7,5\n1,8,4\n2,7,3\n3,8,1\n"
HINT = " If its lines are row, column, value, say columns=('kunde', 'artikel', 'note')."


def test_numbers_that_might_be_a_long_table_get_a_hint(told):
    assert told(IDS) == "A wide table: 3 columns of numbers." + HINT
    assert told(IDS, layout="wide") == "A wide table: 3 columns of numbers."
    assert "If" not in told(IDS, layout="long")
    with_time = "".join(f"{line},{time}\n" for line, time in zip(IDS.split(), ["time", *"1234"], strict=True))
    assert told(with_time).endswith(HINT)


@pytest.mark.parametrize(
    "text",
    [
        "a,b,c\n1,7,5\n1,7,4\n2,7,3\n",  # a pair twice
        "a,b,c\n1,7,5\n2,7,4\n3,8,3\n",  # the first comes but once
        "a,b,c\n1,7.5,5\n1,8,4\n2,7.5,3\n2,8,1\n",  # ids are whole
        "a,b,c\n1,,5\n1,8,4\n2,7,3\n2,8,1\n",  # and there
        "a,b,c,d\n1,7,5,1\n1,8,4,2\n2,7,3,3\n2,8,1,4\n",
        "a,b,c\n" + "".join(f"{i % 7},{i // 7},{i * i}\n" for i in range(49)),  # too many different values
    ],
)
def test_other_tables_get_none(told, text):
    assert "If" not in told(text)


def test_a_frame_gets_the_same_hint(tmp_path):
    (tmp_path / "t.csv").write_text(IDS)
    assert str(observe(pd.read_csv(tmp_path / "t.csv")).account).endswith(HINT)


@pytest.mark.parametrize("order", [("kunde", "artikel", "note"), ("note", "kunde", "artikel")])
def test_texts_in_three_columns_are_refused_with_the_likely_line(tmp_path, order):
    frame = pd.DataFrame({"kunde": ["A", "A", "B"], "artikel": ["p", "q", "p"], "note": [1, 2, 3]})[list(order)]
    frame.to_csv(tmp_path / "t.csv", index=False)
    for data in (tmp_path / "t.csv", frame):
        with pytest.raises(DataError) as caught:
            observe(data)
        assert str(caught.value).endswith("columns=('kunde', 'artikel', 'note').")


def test_reviews_by_their_usual_headers(told):
    text = "reviewerID,asin,reviewerName,helpful,reviewText,overall\nA1,B1,x,y,z,5.0\nA2,B1,x,y,z,4.0\n"
    assert told(text).startswith(
        "Rows are from column 'reviewerID', columns from column 'asin', values from column 'ov"
    )
