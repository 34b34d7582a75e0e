"""Reading that went wrong once, found by a reader of the code: each in a few lines."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import halfseen as hs
from halfseen.errors import DataError
from halfseen.io.splits import check_pair, split_file


def cells(observed):
    rows = observed.row_labels[observed.row_of_cell()]
    return set(
        zip(rows.tolist(), observed.column_labels[observed.indices].tolist(), observed.values.tolist(), strict=True)
    )


def test_a_query_without_an_order_is_run_once():
    rng = np.random.default_rng(0)
    frame = pl.DataFrame({"user": rng.integers(0, 300, 9000), "item": rng.integers(0, 200, 9000)})
    frame = frame.unique().with_columns(rating=(pl.col("user") * 7 + pl.col("item")) % 11, time=pl.col("user") + 1)
    query = frame.lazy().group_by("user", "item").agg(pl.col("rating").first(), pl.col("time").first())
    expected = set(frame.select("user", "item", "rating").rows())
    train, test = hs.data.split_cells(query, 0.3, random_state=0)
    assert cells(train) | cells(test) == expected
    train, test = hs.data.split_cells(query, 0.3, by="time", time="time")
    assert cells(train) | cells(test) == expected


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_ids_are_the_same_in_both_parts_of_a_split(tmp_path, ending):
    ids = ["007", "-7", "1e3", "1000", "+7", "7", "NA", "null"]
    lines = [f"{user},{item},{number}.5" for number, (user, item) in enumerate((u, i) for u in ids for i in "x-")]
    (tmp_path / "r.csv").write_text("user,item,rating\n" + "\n".join(lines) + "\n")
    train, held = tmp_path / f"t.{ending}", tmp_path / f"h.{ending}"
    split_file(tmp_path / "r.csv", train, held, random_state=0)
    assert cells(hs.observe(train)) | cells(hs.observe(held)) == cells(hs.observe(tmp_path / "r.csv"))


def test_a_split_without_a_header_is_known_again_as_long(tmp_path):
    lines = [f"{user}\t{item}\t{1 + (user * item) % 5}\t{900 + user}" for user in range(1, 6) for item in range(1, 6)]
    (tmp_path / "u.data").write_text("\n".join(lines) + "\n")
    split_file(tmp_path / "u.data", tmp_path / "t.parquet", tmp_path / "h.parquet", by="time", last=1)
    train, held = hs.observe(tmp_path / "t.parquet"), hs.observe(tmp_path / "h.parquet")
    assert (train.summary.layout, train.nnz, held.nnz) == ("long", 20, 5)


def test_lines_without_a_value_are_not_the_last_of_a_row(tmp_path):
    (tmp_path / "r.csv").write_text("user,item,rating,time\na,x,1,1\na,z,3,2\na,y,,3\nb,x,3,1\nb,z,1,2\nb,y,,5\n")
    split_file(tmp_path / "r.csv", tmp_path / "t.csv", tmp_path / "h.csv", by="time", last=1)
    assert cells(hs.observe(tmp_path / "h.csv")) == {("a", "z", 3.0), ("b", "z", 1.0)}
    _, test = hs.data.split_cells(tmp_path / "r.csv", by="time", last=1)
    assert cells(test) == {("a", "z", 3.0), ("b", "z", 1.0)}


@pytest.mark.parametrize("as_frame", [False, True])
def test_times_are_compared_as_times_and_not_as_texts(tmp_path, as_frame):
    """Ten in Paris is before nine in New York."""
    lines = ["a,x,1,2024-01-31T10:00:00+01:00", "a,y,2,2024-01-31T09:00:00-05:00", "a,z,3,2024-01-31T09:30:00+00:00"]
    (tmp_path / "r.csv").write_text("user,item,rating,time\n" + "\n".join(lines) + "\n")
    source = pd.read_csv(tmp_path / "r.csv") if as_frame else tmp_path / "r.csv"
    assert cells(hs.data.split_cells(source, by="time", last=1)[1]) == {("a", "y", 2.0)}
    split_file(tmp_path / "r.csv", tmp_path / "t.csv", tmp_path / "h.csv", by="time", last=1)
    assert cells(hs.observe(tmp_path / "h.csv")) == {("a", "y", 2.0)}
    (tmp_path / "r.csv").write_text("user,item,rating,time\na,x,1,2024-01-31\na,y,2,soon\n")
    with pytest.raises(DataError, match="'soon' on line 3"):
        hs.data.split_cells(tmp_path / "r.csv", 1, by="time")


def test_a_table_of_nothing_but_codes_is_refused_by_name(tmp_path):
    (tmp_path / "t.csv").write_text("zip,area\n01013,044\n02134,044\n")
    with pytest.raises(DataError, match="'zip'"):
        hs.observe(tmp_path / "t.csv")


def test_files_that_are_read_together_have_the_same_columns(tmp_path):
    frames = {"p1": ("rating", [1]), "p2": ("stars", [2])}
    for name, (value, values) in frames.items():
        pq.write_table(pa.table({"user": [name], "item": ["x"], value: values}), tmp_path / f"{name}.parquet")
    with pytest.raises(DataError, match=r"p2\.parquet"):
        hs.observe(tmp_path / "p*.parquet")
    pq.write_table(pa.table({"user": ["p2"], "item": ["x"], "rating": [1.5]}), tmp_path / "p2.parquet")
    assert hs.observe(tmp_path / "p*.parquet").values.tolist() == [1, 1.5]


def test_an_empty_rating_does_not_make_ids_values(tmp_path):
    lines = [f"{user},{item},{'' if user == item == 3 else 2}" for user in range(6) for item in range(6)]
    (tmp_path / "r.csv").write_text("\n".join(lines) + "\n")
    assert hs.observe(tmp_path / "r.csv").nnz == 35


@pytest.mark.parametrize("end", ["\r", "\r\n", "\n"])
@pytest.mark.parametrize("separator", ["::", ",", "§"])
def test_every_end_of_a_line_ends_it(tmp_path, end, separator):
    lines = ["user,item,rating", "a,x,1", "b,y,2", "c,x,3"]
    text = end.join(line.replace(",", separator) for line in lines) + "\n"
    (tmp_path / "r.txt").write_bytes(text.encode())
    assert hs.observe(tmp_path / "r.txt", separator=separator).row_labels.tolist() == ["a", "b", "c"]


@pytest.mark.parametrize("line", ["Empty CSV,5", "invalid UTF8,5", "block size straddles,5"])
def test_a_broken_line_may_say_what_it_likes(tmp_path, line):
    (tmp_path / "r.csv").write_text(f"user,item,rating\na,x,1\n{line}\n")
    with pytest.raises(DataError, match=r"Line 3 of r\.csv"):
        hs.observe(tmp_path / "r.csv", allow_empty=True)


def test_encodings_that_are_given_are_kept(tmp_path):
    (tmp_path / "r.csv").write_bytes(b"user,item,rating\n" + b"a,x,1\n" * 30_000 + b"caf\xe9,x,1\n")
    for encoding in ("utf-8", "ascii"):
        with pytest.raises(DataError):
            hs.observe(tmp_path / "r.csv", encoding=encoding, duplicates="first")
    with pytest.raises(hs.errors.ParameterError):
        hs.observe(tmp_path / "r.csv", encoding="rot13")
    (tmp_path / "b.csv").write_bytes(b"\xef\xbb\xbfuser,item,rating\na,x,1\n")
    assert hs.observe(tmp_path / "b.csv", encoding="UTF-8", columns=("user", "item", "rating")).summary.encoding == ""


def test_encoded_columns_are_read_as_their_values():
    frame = pd.DataFrame({"user": pd.Categorical([1.5, 2.5, 1.5]), "item": ["x", "x", "y"], "rating": [1, 2, 3]})
    assert hs.observe(frame).row_labels.tolist() == [1.5, 2.5]
    repeated = pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(["a", "a"]))
    table = pa.table({"user": repeated, "item": ["x", "y"], "rating": [1, 2]})
    assert hs.observe(table).row_labels.tolist() == ["a"]
    with pytest.raises(DataError, match="must be exact"):
        hs.observe(pd.DataFrame({"user": [2.0**60, 2.0**61], "item": ["x", "y"], "rating": [1, 2]}))


def test_separators_at_the_ends_of_lines(tmp_path):
    (tmp_path / "r.csv").write_text("user;item;rating;;\na;x;1;;\nb;y;2;;\n")
    assert hs.observe(tmp_path / "r.csv").values.tolist() == [1, 2]


def test_quotes_after_blanks_far_down(tmp_path):
    lines = [f"u{number},x,1" for number in range(150)]
    (tmp_path / "r.csv").write_text("user,item,rating\n" + "\n".join(lines) + '\nlate, "y,z",2\n')
    assert hs.observe(tmp_path / "r.csv").column_labels.tolist() == ["x", "y,z"]


def test_a_training_file_that_is_not_there_is_left_to_its_reader(tmp_path):
    (tmp_path / "r.csv").write_text("user,item,rating\n" + "".join(f"a,{item},1\n" for item in range(9)))
    split_file(tmp_path / "r.csv", tmp_path / "t.csv", tmp_path / "h.csv", random_state=0)
    check_pair(tmp_path / "nowhere.csv", tmp_path / "h.csv")


def test_a_header_alone(tmp_path):
    (tmp_path / "r.csv").write_text("user,item,rating")
    assert hs.observe(tmp_path / "r.csv", allow_empty=True).shape == (0, 0)
