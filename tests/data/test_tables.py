"""Wide tables with text beside the numbers."""

import gzip

import numpy as np
import pytest

from halfseen.data import read_wide_table, write_table
from halfseen.errors import DataError

TEXT = "id,city,price,size,note\n01,Rome,1.50,NA,a\n02,Oslo,,3e2,\n03,Rome,?,7,b\n"


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "homes.csv"
    path.write_text(TEXT)
    return read_wide_table(path)


def test_numeric_columns_are_those_of_numbers_only(table):
    assert table.names == ["id", "city", "price", "size", "note"]
    assert table.numeric == ["price", "size"]
    assert table.cells[1] == ["Rome", "Oslo", "Rome"]
    assert table.observed.column_labels.tolist() == table.numeric
    np.testing.assert_array_equal(table.observed.to_dense(), [[1.5, np.nan], [np.nan, 300], [np.nan, 7]])


def test_filling_leaves_what_was_seen_as_it_stood(table, tmp_path):
    filled = table.filled(np.full((3, 2), 0.1))
    write_table(tmp_path / "filled.csv", table.names, filled)
    expected = "id,city,price,size,note\n01,Rome,1.50,0.1,a\n02,Oslo,0.1,3e2,\n03,Rome,0.1,7,b\n"
    assert (tmp_path / "filled.csv").read_text() == expected


def test_values_of_another_shape_are_refused(table):
    with pytest.raises(DataError, match=r"shape \(3, 2\)\. Found \(2, 3\)"):
        table.filled(np.ones((2, 3)))


@pytest.mark.parametrize(
    ("text", "numeric"),
    [
        ("id,a\n1,5\n2,\n", ["a"]),
        (",a\n1,5\n2,\n", ["a"]),
        ("id,a\n1,5\n1,\n", ["id", "a"]),
        ("id,a\n1.5,5\n2,\n", ["id", "a"]),
        ("a,id\n1,5\n2,6\n", ["a", "id"]),
        ("id\n1\n2\n", ["id"]),
    ],
)
def test_a_first_column_of_row_ids_goes_through_untouched(tmp_path, text, numeric):
    (tmp_path / "t.csv").write_text(text)
    assert read_wide_table(tmp_path / "t.csv").numeric == numeric


def test_a_table_without_a_header_stays_so(tmp_path):
    path = tmp_path / "numbers.tsv"
    path.write_text("1\t2\n?\t4\n")
    table = read_wide_table(path)
    assert (table.has_header, table.names, table.numeric) == (False, ["0", "1"], ["0", "1"])
    write_table(path, None, table.filled(np.full((2, 2), 9.0)))
    assert path.read_text() == "1\t2\n9.0\t4\n"


def test_a_parquet_table_keeps_its_types(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    columns = {"city": ["Rome", None], "rooms": [2**60 + 1, 3], "price": [1.5, None]}
    parquet.write_table(pyarrow.table(columns), tmp_path / "homes.parquet")
    table = read_wide_table(tmp_path / "homes.parquet")
    assert table.numeric == ["rooms", "price"]
    write_table(tmp_path / "filled.parquet", table.names, table.filled(np.full((2, 2), 0.25)))
    filled = parquet.read_table(tmp_path / "filled.parquet").to_pydict()
    assert filled == {"city": ["Rome", None], "rooms": [2**60 + 1, 3], "price": [1.5, 0.25]}


def test_text_that_held_numbers_becomes_numbers_in_parquet(table, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    write_table(tmp_path / "filled.parquet", table.names, table.filled(np.full((3, 2), 0.5)))
    filled = parquet.read_table(tmp_path / "filled.parquet").to_pydict()
    assert filled["price"] == [1.5, 0.5, 0.5]
    assert filled["city"] == ["Rome", "Oslo", "Rome"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a,b\nx,y\n", "must have a column of numbers. Found none in: a, b"),
        ("a,a\n1,2\n", "Every column must have its own label. Found 'a' more than once"),
        ("a,b\n1\n", "Line 2 of t.csv must have 2 fields"),
        ("a,b\n1,inf\n", "must be finite. Found inf at row 0, column 'b'"),
    ],
)
def test_tables_that_cannot_be_used(tmp_path, text, sentence):
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(DataError, match=sentence):
        read_wide_table(tmp_path / "t.csv")


def test_numbers_are_written_short_and_holes_empty(tmp_path):
    path = tmp_path / "t.csv"
    columns = [np.array([0.1, np.nan]), np.array([0.1, 2], dtype=np.float32), ["a,b", None], np.array([1, 2])]
    write_table(path, ["x", "y", "z", "n"], columns)
    assert path.read_text() == 'x,y,z,n\n0.1,0.1,"a,b",1\n,2.0,,2\n'


def test_the_same_table_gives_the_same_archive(tmp_path):
    for name in ("a.csv.gz", "b.csv.gz"):
        write_table(tmp_path / name, ["x"], [[1.5]])
    assert (tmp_path / "a.csv.gz").read_bytes() == (tmp_path / "b.csv.gz").read_bytes()
    assert gzip.decompress((tmp_path / "a.csv.gz").read_bytes()) == b"x\n1.5\n"


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("old")
    with pytest.raises(ValueError, match=r"zip"):
        write_table(path, ["x", "y"], [[1, 2], [1]])
    assert [(one.name, one.read_text()) for one in tmp_path.iterdir()] == [("t.csv", "old")]


def test_places_that_cannot_be_written(tmp_path):
    with pytest.raises(DataError, match=r"must be writable.* Could not write .*t.csv': No such file or directory"):
        write_table(tmp_path / "nowhere" / "t.csv", ["x"], [[1]])
    with pytest.raises(DataError, match=r"written as \.csv, .*Found 't.xlsx'"):
        write_table(tmp_path / "t.xlsx", ["x"], [[1]])
    assert list(tmp_path.iterdir()) == []
