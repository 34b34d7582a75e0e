"""Wide tables with text beside the numbers: read, filled, written."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfseen.errors import DataError
from halfseen.io import read_wide_table, write_table
from tests.data.strategies import CALM
from tests.io.conftest import refused

TEXT = "id,city,price,size,note\n01,Rome,1.50,NA,a\n02,Oslo,,3e2,\n03,Rome,?,7,b\n"


@pytest.fixture
def read(file):
    return lambda text, skip=(), name="t.csv", **options: read_wide_table(file(text, name), skip, **options)


def test_holes_are_filled_and_the_rest_stays_as_it_stood(read, tmp_path):
    table = read(TEXT)
    assert (table.names, table.numeric) == (["id", "city", "price", "size", "note"], ["price", "size"])
    assert table.cells[1] == table.column("city") == ["Rome", "Oslo", "Rome"]
    assert table.observed.column_labels.tolist() == table.numeric
    np.testing.assert_array_equal(table.observed.to_dense(), [[1.5, np.nan], [np.nan, 300], [np.nan, 7]])
    filled = table.filled(np.full((3, 2), 0.1))
    write_table(tmp_path / "f.csv", table.names, filled)
    expected = "id,city,price,size,note\n01,Rome,1.50,0.1,a\n02,Oslo,0.1,3e2,\n03,Rome,0.1,7,b\n"
    assert (tmp_path / "f.csv").read_text() == expected
    write_table(tmp_path / "f.parquet", table.names, filled)
    typed = pa.parquet.read_table(tmp_path / "f.parquet").to_pydict()
    assert (typed["id"], typed["price"]) == (["01", "02", "03"], [1.5, 0.1, 0.1])
    with refused(found="(2, 3)"):
        table.filled(np.ones((2, 3)))


FIELD = st.sampled_from(["", "NA", "-", "1", "2.50", "1e3", "x", "York"])


@CALM
@given(st.lists(st.tuples(*[FIELD] * 4), min_size=1, max_size=6))
def test_only_holes_of_numeric_columns_change(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("wide") / "t.csv"
    path.write_text("".join(",".join(line) + "\n" for line in [("name", *"abcd"), *(("n", *row) for row in rows)]))
    try:
        table = read_wide_table(path)
    except DataError:
        return
    filled = dict(zip(table.names, table.filled(np.full(table.observed.shape, 0.25)), strict=True))
    for place, name in enumerate("abcd"):
        for field, new in zip((row[place] for row in rows), filled[name], strict=True):
            is_hole = name in table.numeric and field in ("", "NA", "-")
            assert new == (0.25 if is_hole else field)


@pytest.mark.parametrize(("text", "numeric"), [
    ("id,a\n1,5\n2,\n", ["a"]), (",a\n1,5\n2,\n", ["a"]), ("id,a\n1,5\n,6\n", ["a"]), ("id\n1\n2\n", ["id"]),
    ("id,a\n1,5\n1,\n", ["id", "a"]), ("id,a\n1.5,5\n2,\n", ["id", "a"]), ("a,id\n1,5\n2,6\n", ["a", "id"]),
    ("a,b\n1,01\n2,02\n", ["a"]), ("a,b\n1,x\n2,3\n3,4\n", ["a", "b"]), ("a,b\n1,x\n2,y\n3,4\n", ["a"]),
])  # fmt: skip
def test_which_columns_hold_numbers(read, text, numeric):
    assert read(text).numeric == numeric


def test_notes(read):
    (note,) = read("a,b\n1,2\n2,x\n3,y\n4,8\n5,9\n").notes
    assert "'x' on line 3 of t.csv, and 1 more" in str(note)
    assert "--skip NAME" in note.remedy_cli
    assert "'user', 'item', 'rating'" in " ".join(map(str, read("user,item,rating\n1,7,3\n1,8,\n").notes))
    assert not read("a,b\n1,2\n3,\n").notes


def test_marks_and_signs_are_kept(read, tmp_path):
    table = read('name;a;note;b\nann;1,50;"x;y";2\nbob;;3,5 kg;4\n')
    assert (table.numeric, table.decimal, table.delimiter) == (["a", "b"], ",", ";")
    write_table(tmp_path / "t.csv", table.names, table.filled(np.full((2, 2), 0.25)), delimiter=";", decimal=",")
    assert (tmp_path / "t.csv").read_text() == 'name;a;note;b\nann;1,50;"x;y";2\nbob;0,25;3,5 kg;4\n'
    assert read("a;b\n1;7,5%\n2;\n").filled(np.full((2, 2), 0.25))[1] == ["7,5%", "0,25%"]
    skipped = read("version;a\n1.5;1,5\n1.234,5;2\n", skip=["version"])  # which has no say about the mark
    assert (skipped.numeric, skipped.decimal, skipped.observed.values.tolist()) == (["a"], ",", [1.5, 2])


def test_a_table_without_a_header_stays_so(read, tmp_path):
    table = read("1\t2\n?\t4\n", name="t.tsv")
    assert (table.has_header, table.names, table.numeric) == (False, ["0", "1"], ["0", "1"])
    write_table(tmp_path / "t.tsv", None, table.filled(np.full((2, 2), 9.0)), delimiter=table.delimiter)
    assert (tmp_path / "t.tsv").read_text() == "1\t2\n9.0\t4\n"


def test_a_parquet_table_keeps_its_types(tmp_path):
    columns = {"city": ["Rome", None], "rooms": [2**60 + 1, 3], "price": [1.5, None], "tags": [["a"], []]}
    pa.parquet.write_table(pa.table(columns), tmp_path / "homes.parquet")
    table = read_wide_table(tmp_path / "homes.parquet")
    assert table.numeric == ["rooms", "price"]
    write_table(tmp_path / "filled.parquet", table.names, table.filled(np.full((2, 2), 0.25)))
    filled = pa.parquet.read_table(tmp_path / "filled.parquet").to_pydict()
    assert filled == {**columns, "price": [1.5, 0.25]}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a,b\nx,y\n", "none in: a, b"),
        ("a,b\n1,inf\n", "inf at row 0, column 'b'"),
        ("n;a\nx;1.234,5\ny;2.345,5\n", "'1.234,5' on line 2 of t.csv, column 'a'.*thousands"),
        ("n;a;b\nx;1,5;2\ny;2;2.5\n", "'1,5' on line 2 of t.csv, column 'a', and '2.5' on line 3 of t.csv, column 'b'"),
        ('n,a\nx,"1,500"\ny,2\n', "'1,500' on line 2 of t.csv, column 'a'"),
        ('name,a\n"ann,1\nbob",2\n', "on line 3 of t.csv, column 'name'"),
    ],
)
def test_tables_that_cannot_be_used(read, text, found):
    with pytest.raises(DataError, match=found):
        read(text)


def test_a_skipped_column_must_be_there(read):
    with refused(found="no 'z'"):
        read("a,b\n1,2\n", skip=["z"])
