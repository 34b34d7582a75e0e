"""Files, long and wide, with and without a header, text and Parquet."""

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import halfseen
from halfseen.cli import fit
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
        (",2001,2002\nann,5,3\nbob,4,\n", ["ann", "bob"], ["2001", "2002"], [[5, 3], [4, NAN]]),
        (",2001,2002,2003\n7,5,3,1\n8,4,,2\n", [7, 8], ["2001", "2002", "2003"], [[5, 3, 1], [4, NAN, 2]]),
        (",7,7\n1,5,3\n", None, None, [[NAN, 7, 7], [1, 5, 3]]),
        (",7,8\n,5,3\n", None, None, [[NAN, 7, 8], [NAN, 5, 3]]),
        (",7,\n1,5,3\n", None, None, [[NAN, 7, NAN], [1, 5, 3]]),
        ("user_id,a,b\n10,1,2\n20,3,4\n", [10, 20], ["a", "b"], [[1, 2], [3, 4]]),
        ("id,a,b\n01,1,2\n02,3,4\n", ["01", "02"], ["a", "b"], [[1, 2], [3, 4]]),
        ("id,a,b\n10,1,2\n10,3,4\n", None, ["id", "a", "b"], [[10, 1, 2], [10, 3, 4]]),
        ("id\n1\n2\n", None, ["id"], [[1], [2]]),
        ("1.5 2 3\n4 NaN 6\n", None, None, [[1.5, 2, 3], [4, NAN, 6]]),
        ("1,2,3,4,5\n,7,8,9,10\n", None, None, [[1, 2, 3, 4, 5], [NAN, 7, 8, 9, 10]]),
        ("x\n1\n2\n", None, ["x"], [[1], [2]]),
    ],
    ids=[
        "header",
        "names",
        "index",
        "pandas",
        "years",
        "numbers named",
        "twice",
        "no index",
        "hole",
        "ids",
        "leading zeros",
        "no ids",
        "only ids",
        "fractions",
        "numbers",
        "one column",
    ],
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


def test_the_caller_may_say_whether_there_is_a_header(read):
    years = "2001,2002\n5,3\n4,1\n"
    assert read(years).shape == (3, 2)
    assert read(years, header=True).column_labels.tolist() == ["2001", "2002"]
    corner = ",2001,2002\n7,5,3\n"
    assert read(corner).shape == (1, 2)
    np.testing.assert_array_equal(read(corner, header=False).to_dense(), [[NAN, 2001, 2002], [7, 5, 3]])
    assert read("1,2,3\n4,5,6\n", header=True, layout="long").row_labels.tolist() == [4]


def test_columns_may_be_numbered_below_a_header(read):
    text = "user,item,a,b\nann,x,3,4\n"
    assert read(text, header=True, columns=(0, 1, 3)).values.tolist() == [4]
    with pytest.raises(DataError, match=r"Found no 'user'\. The table has: 0, 1, 2, 3"):
        read(text, header=False, columns=("user", "item", "a"))


def test_the_command_line_may_say_whether_there_is_a_header(tmp_path):
    (tmp_path / "years.csv").write_text("2001,2002\n5,3\n4,1\n")
    shapes = {}
    for word in ("--header", "--no-header"):
        words = [
            str(tmp_path / "years.csv"),
            "-k",
            "1",
            "--max-iter",
            "1",
            "--tol",
            "0",
            "-q",
            "-o",
            str(tmp_path / "m"),
            word,
        ]
        done = CliRunner().invoke(fit.command, words, catch_exceptions=False)
        assert done.exit_code == 0, done.output
        shapes[word] = halfseen.load(tmp_path / "m").W_.shape[0]
    assert shapes == {"--header": 2, "--no-header": 3}


def test_an_array_has_no_header():
    with pytest.raises(DataError, match=r"header and a weight's column name speak of frames and files"):
        observe([[1.0]], header=True)


def test_an_unknown_number_beside_pairs_leaves_it_open(read):
    with pytest.raises(DataError, match=r"Say columns=\('user', 'item', 'warmth'\)"):
        read("user,item,warmth\nann,x,3\n")


def test_a_long_file_that_lacks_a_side_is_not_taken_for_a_wide_one(read):
    with pytest.raises(DataError, match=r"no column of items among: userId, thing, rating"):
        read("userId,thing,rating\n1,10,4\n1,11,5\n")


def test_weights_come_from_a_column_or_a_list(read):
    text = "user,item,rating,trust\nann,x,3,0.5\nbob,x,4,2\n"
    assert read(text, cell_weight="trust").weights.tolist() == [0.5, 2]
    assert read(text, cell_weight=[1, 3], columns=("user", "item", "rating")).weights.tolist() == [1, 3]
    with pytest.raises(DataError, match=r"Found no 'w'. The table has: user, item, rating, trust"):
        read(text, cell_weight="w")
    with pytest.raises(DataError, match=r"a weight for every cell. Found only the column 'b'"):
        read("a,b\n1,2\n", cell_weight="b")


def test_a_frame_of_weights_is_matched_by_name(read):
    pd = pytest.importorskip("pandas")
    weights = pd.DataFrame({"b": [20, 30], "a": [10, 7]})
    assert read("id,a,b\n4,1,\n9,2,3\n", cell_weight=weights).weights.tolist() == [10, 7, 30]
    with pytest.raises(DataError, match=r"must have the columns of X\. Found no 'c' among"):
        read("a,c\n1,2\n3,4\n", cell_weight=weights)


def test_a_fitted_column_of_a_file_names_no_rows(read):
    assert read("user,x\n7,1\n8,2\n", column_labels=["user", "x"]).nnz == 4


def test_files_are_placed_among_the_fitted_columns(read):
    np.testing.assert_array_equal(read("b,a\n1,2\n", column_labels=["a", "b", "c"]).to_dense(), [[2, 1, NAN]])
    long = read("user,item,rating\n1,20,5\n", column_labels=[10, 20])
    np.testing.assert_array_equal(long.to_dense(), [[NAN, 5]])


def test_ids_of_a_file_are_of_the_kind_of_the_fitted_ones(read):
    history = "user,item,rating\n1,123,5\n"
    isbn = np.array(["123", "456", "99X", "0123"], dtype=object)
    np.testing.assert_array_equal(read(history, column_labels=isbn).to_dense(), [[5, NAN, NAN, NAN]])
    np.testing.assert_array_equal(read(history, column_labels=np.array([7, 123])).to_dense(), [[NAN, 5]])
    np.testing.assert_array_equal(read("7,123\n1,2\n", header=True, column_labels=[123, 7]).to_dense(), [[2, 1]])
    with pytest.raises(DataError, match=r"Found '99X' \(1 unknown in all\)"):
        read("user,item,rating\n1,123,5\n1,99X,5\n", column_labels=np.array([7, 123]))


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
    with pytest.raises(DataError, match=r"Found neither\. Install one: pip install pyarrow"):
        observe(tmp_path / "any.parquet")


def test_a_header_of_years_is_no_rating(tmp_path):
    (tmp_path / "years.csv").write_text("country,2001,2002,2003\nFR,1.5,2.5,3.5\nDE,2.0,2.1,2.2\nIT,0.5,,0.7\n")
    observed = observe(tmp_path / "years.csv")
    assert observed.shape == (3, 3)
    assert observed.row_labels.tolist() == ["FR", "DE", "IT"]
    np.testing.assert_array_equal(observed.to_dense(), [[1.5, 2.5, 3.5], [2.0, 2.1, 2.2], [0.5, np.nan, 0.7]])


@pytest.mark.parametrize("mark", ["n/a", "Na", "#N/A", ".", "--", "NULL", "<NA>"])
def test_marks_of_missing_values_are_known_in_any_case(tmp_path, mark):
    (tmp_path / "t.csv").write_text(f"name,p,q\na,1,2\nb,{mark},4\n")
    np.testing.assert_array_equal(observe(tmp_path / "t.csv").to_dense(), [[1, 2], [np.nan, 4]])


@pytest.mark.parametrize("header", ["user_idx,item_idx,value", "member_id,video_id,views", "account,offer,clicks"])
def test_more_spellings_of_long_headers(tmp_path, header):
    (tmp_path / "t.csv").write_text(f"{header}\n1,7,2\n2,7,3\n")
    observed = observe(tmp_path / "t.csv")
    assert observed.shape == (2, 1)
    assert observed.values.tolist() == [2, 3]


def test_the_given_order_is_not_taken_where_a_header_tells_another(tmp_path):
    (tmp_path / "t.csv").write_text("movie,who,stars\n7,1,2\n7,2,3\n")
    with pytest.raises(DataError, match="no column of users"):
        observe(tmp_path / "t.csv", layout="long")
