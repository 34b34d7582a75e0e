"""Files, long and wide, with and without a header, text and Parquet."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfseen.data import observe, parquet, write_table
from halfseen.errors import DataError

from .strategies import CALM, assert_same, half_seen

NAN = np.nan


@pytest.fixture
def read(tmp_path):
    def written_and_read(text, name="table.csv", **options):
        path = tmp_path / name
        path.write_text(text)
        return observe(path, **options)

    return written_and_read


@pytest.mark.parametrize(
    ("text", "rows", "columns", "dense"),
    [
        ("196\t242\t3\t881250949\n186\t302\t4\t891717742\n", [196, 186], [242, 302], [[3, NAN], [NAN, 4]]),
        ("1::1193::5::978300760\n2::1193::3::978302109\n", [1, 2], [1193], [[5], [3]]),
        ("userID\tartistID\tweight\n2\t51\t13883\n", [2], [51], [[13883]]),
        ("ann x 3\nbob x 4\n", ["ann", "bob"], ["x"], [[3], [4]]),
        ("user;item\nann;x\nbob;y\n", ["ann", "bob"], ["x", "y"], [[1, NAN], [NAN, 1]]),
        ("1,007,3\n1,7,4\n", [1], ["007", "7"], [[3, 4]]),
        ("user,item,rating,timestamp\n9007199254740993,1,2,3\n", [9007199254740993], [1], [[2]]),
    ],
    ids=["MovieLens", "colons", "Last.fm", "blanks", "pairs", "leading zeros", "huge"],
)
def test_long_files(read, text, rows, columns, dense):
    seen = read(text)
    assert (seen.row_labels.tolist(), seen.column_labels.tolist()) == (rows, columns)
    np.testing.assert_array_equal(seen.to_dense(), dense)


@pytest.mark.parametrize(
    ("text", "rows", "columns", "dense"),
    [
        ("a,b\n1,\n?,4\n", None, ["a", "b"], [[1, NAN], [NAN, 4]]),
        ("name,a,b\nann,NA,2\nbob,3,null\n", ["ann", "bob"], ["a", "b"], [[NAN, 2], [3, NAN]]),
        (",a,b\n10,1,2\n20,3,4\n", [10, 20], ["a", "b"], [[1, 2], [3, 4]]),
        (",0,1\n0,1.5,\n1,,4\n", [0, 1], ["0", "1"], [[1.5, NAN], [NAN, 4]]),
        ("1.5 2 3\n4 NaN 6\n", None, None, [[1.5, 2, 3], [4, NAN, 6]]),
        ("1,2,3,4,5\n,7,8,9,10\n", None, None, [[1, 2, 3, 4, 5], [NAN, 7, 8, 9, 10]]),
        ("x\n1\n2\n", None, ["x"], [[1], [2]]),
    ],
    ids=["header", "names", "index", "pandas", "fractions", "numbers", "one column"],
)
def test_wide_files(read, text, rows, columns, dense):
    seen = read(text)
    np.testing.assert_array_equal(seen.to_dense(), dense)
    assert (None if seen.row_labels is None else seen.row_labels.tolist()) == rows
    assert (None if seen.column_labels is None else seen.column_labels.tolist()) == columns


def test_three_numbers_a_line_are_long_unless_told_otherwise(read):
    assert read("1,2,3\n4,5,6\n").nnz == 2
    assert read("1,2,3\n4,5,6\n", layout="wide").shape == (2, 3)


def test_columns_are_named_or_numbered(read):
    text = "who,what,how_much\nann,x,3\n"
    assert read(text, columns=("what", "who", "how_much")).row_labels.tolist() == ["x"]
    assert read(text, layout="long").row_labels.tolist() == ["ann"]
    assert read("3,ann,x\n4,bob,x\n", columns=(1, 2, 0)).values.tolist() == [3, 4]
    with pytest.raises(DataError, match=r"Found no 'stars'\. The table has: who, what, how_much"):
        read(text, columns=("who", "what", "stars"))


def test_an_unknown_number_beside_pairs_leaves_it_open(read):
    with pytest.raises(DataError, match=r"Say columns=\('user', 'item', 'hours'\)"):
        read("user,item,hours\nann,x,3\n")


def test_weights_come_from_a_column_or_a_list(read):
    text = "user,item,rating,trust\nann,x,3,0.5\nbob,x,4,2\n"
    assert read(text, cell_weight="trust").weights.tolist() == [0.5, 2]
    assert read(text, cell_weight=[1, 3]).weights.tolist() == [1, 3]
    with pytest.raises(DataError, match=r"Found no 'w'. The table has: user, item, rating, trust"):
        read(text, cell_weight="w")
    with pytest.raises(DataError, match=r"a weight for every cell. Found only the column 'b'"):
        read("a,b\n1,2\n", cell_weight="b")


def test_files_are_placed_among_the_fitted_columns(read):
    np.testing.assert_array_equal(read("b,a\n1,2\n", column_labels=["a", "b", "c"]).to_dense(), [[2, 1, NAN]])
    long = read("user,item,rating\n1,20,5\n", column_labels=[10, 20])
    np.testing.assert_array_equal(long.to_dense(), [[NAN, 5]])


@CALM
@given(half_seen(values=st.floats(allow_nan=False, allow_infinity=False)), st.sampled_from([".csv", ".tsv", ".tsv.gz"]))
def test_what_is_written_is_read_back_to_the_last_bit(tmp_path_factory, dense, suffix):
    path = tmp_path_factory.mktemp("written") / f"table{suffix}"
    names = [f"c{j}" for j in range(dense.shape[1])]
    write_table(path, names, list(dense.T))
    read_back = observe(path, allow_empty=True)
    kept = ~np.isnan(dense).all(axis=1) if dense.shape[1] == 1 else np.ones(len(dense), dtype=bool)
    assert_same(read_back, observe(dense[kept]))
    rows, columns = np.nonzero(~np.isnan(dense))
    write_table(path, ["user", "item", "value"], [rows, [names[j] for j in columns], dense[rows, columns]])
    long = observe(path, column_labels=names)
    np.testing.assert_array_equal(long.to_dense(), dense[~np.isnan(dense).all(axis=1)])


@pytest.mark.parametrize("library", ["pyarrow", "polars"])
@pytest.mark.parametrize("suffix", [".parquet", ".pq"])
def test_parquet_through_either_library(tmp_path, monkeypatch, library, suffix):
    pytest.importorskip(library)
    monkeypatch.setattr(parquet, "LIBRARIES", (library,))
    long, wide = tmp_path / f"long{suffix}", tmp_path / f"wide{suffix}"
    write_table(long, ["user", "item", "rating"], [["ann", "bob"], [2**60 + 1, 5], [3.5, np.nan]])
    write_table(wide, ["name", "a", "b"], [["ann", "bob"], [1.0, np.nan], [2, 3]])
    assert observe(long).column_labels.tolist() == [2**60 + 1, 5]
    assert observe(long).values.tolist() == [3.5]
    assert observe(wide).row_labels.tolist() == ["ann", "bob"]
    np.testing.assert_array_equal(observe(wide).to_dense(), [[1, 2], [NAN, 3]])


@pytest.mark.parametrize("library", ["pyarrow", "polars"])
def test_damaged_and_absent_parquet_files(tmp_path, monkeypatch, library):
    pytest.importorskip(library)
    monkeypatch.setattr(parquet, "LIBRARIES", (library,))
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 not really")
    with pytest.raises(DataError, match=r"bad\.parquet must be a whole Parquet file"):
        observe(tmp_path / "bad.parquet")
    with pytest.raises(DataError, match=r"none\.parquet must exist"):
        observe(tmp_path / "none.parquet")
    (tmp_path / "folder.parquet").mkdir()
    with pytest.raises(DataError, match=r"Found a directory"):
        observe(tmp_path / "folder.parquet")


def test_parquet_needs_a_library(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet, "LIBRARIES", ())
    with pytest.raises(DataError, match=r'Found neither\. Install one: pip install "halfseen\[frames\]"'):
        observe(tmp_path / "any.parquet")
