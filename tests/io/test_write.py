"""Tables written to files, which appear whole or not at all."""

import gzip

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfseen.errors import DataError
from halfseen.io import observe, write_table
from tests.cli.program import names_in
from tests.data.strategies import CALM, assert_same, half_seen

ENDINGS = [".csv", ".tsv", ".tsv.gz", ".txt", ".dat", ".parquet"]


@CALM
@given(half_seen(values=st.floats(allow_nan=False, allow_infinity=False)), st.sampled_from(ENDINGS))
def test_what_is_written_is_read_back_to_the_last_bit(tmp_path_factory, dense, ending):
    path = tmp_path_factory.mktemp("written") / f"table{ending}"
    names = [f"c{j}" for j in range(dense.shape[1])]
    write_table(path, names, list(dense.T))
    assert_same(observe(path), observe(dense))
    rows, columns = np.nonzero(~np.isnan(dense))
    write_table(path, ["user", "item", "value"], [rows, [names[j] for j in columns], dense[rows, columns]])
    long = observe(path, column_labels=names)
    np.testing.assert_array_equal(long.to_dense(), dense[~np.isnan(dense).all(axis=1)])


@pytest.mark.parametrize(
    ("name", "separator", "decimal", "expected"),
    [
        ("t.csv", None, ".", 'x,y,n\n0.5,"a,b",1\n,,2\n'),
        ("t.csv", "|", ".", "x|y|n\n0.5|a,b|1\n||2\n"),
        ("t.csv", "\t", ".", 'x,y,n\n0.5,"a,b",1\n,,2\n'),
        ("t.csv", "\t", ",", "x;y;n\n0,5;a,b;1\n;;2\n"),
        ("t.csv", ",", ",", 'x,y,n\n"0,5","a,b",1\n,,2\n'),
        ("t.csv", "::", ".", 'x,y,n\n0.5,"a,b",1\n,,2\n'),
        ("t.tsv", ";", ",", "x\ty\tn\n0,5\ta,b\t1\n\t\t2\n"),
        ("t.txt", "\t", ",", "x\ty\tn\n0,5\ta,b\t1\n\t\t2\n"),
    ],
)
def test_the_ending_has_a_say_about_the_separator(tmp_path, name, separator, decimal, expected):
    columns = [np.array([0.5, np.nan], np.float32), ["a,b", None], [1, 2]]
    write_table(tmp_path / name, ["x", "y", "n"], columns, delimiter=separator, decimal=decimal)
    assert (tmp_path / name).read_text() == expected


@pytest.mark.parametrize(("column", "marks", "expected"), [
    (["1,5", 0.25], {"decimal": ","}, [1.5, 0.25]), (["1,5", "kg"], {"decimal": ","}, ["1,5", "kg"]),
    (["2", "3", ""], {"decimal": ","}, [2, 3, None]), (["1,234.5", "7"], {"thousands": ","}, [1234.5, 7]),
    (["1.234", 3798.5], {"decimal": ",", "thousands": "."}, [1234, 3798.5]), (["1,5", "2"], {}, ["1,5", "2"]),
    (["007", "8"], {}, ["007", "8"]), ([str(2**60 + 1), "-"], {}, [2**60 + 1, None]),
    ([2**63 + 5, 3], {}, [2**63 + 5, 3]), ([True, 2, None], {}, [1, 2, None]),
    ([2**64, 0.5], {}, [float(2**64), 0.5]), ([["a"], None], {}, [["a"], None]),
])  # fmt: skip
def test_parquet_gets_numbers(tmp_path, column, marks, expected):
    write_table(tmp_path / "t.parquet", ["a"], [column], **marks)
    assert pq.read_table(tmp_path / "t.parquet").to_pydict() == {"a": expected}


def test_the_same_table_gives_the_same_archive(tmp_path):
    for name in ("a.csv.gz", "b.csv.gz"):
        write_table(tmp_path / name, ["x"], [[1.5]])
    assert (tmp_path / "a.csv.gz").read_bytes() == (tmp_path / "b.csv.gz").read_bytes()
    assert gzip.decompress((tmp_path / "a.csv.gz").read_bytes()) == b"x\n1.5\n"


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path):
    (tmp_path / "t.csv").write_text("old")
    with pytest.raises(ValueError, match=r"zip"):
        write_table(tmp_path / "t.csv", ["x", "y"], [[1, 2], [1]])
    for path in (tmp_path / "nowhere" / "t.csv", tmp_path / "t.xlsx", tmp_path):
        with pytest.raises(DataError, match=path.name):
            write_table(path, ["x"], [[1]])
    assert names_in(tmp_path) == ["t.csv"]
    assert (tmp_path / "t.csv").read_text() == "old"
