"""What a table is taken for: header, layout, roles of columns; what is said of it, and what is refused as ambiguous."""

import re

import numpy as np
import pandas as pd
import pytest

from halfseen.errors import DataError, DataWarning
from halfseen.io import observe, read_wide_table, split_cells
from tests.io.conftest import refused

NAN = np.nan


def labels(seen):
    return tuple(None if one is None else one.tolist() for one in (seen.row_labels, seen.column_labels))


@pytest.mark.parametrize(
    ("text", "rows", "columns", "dense"),
    [
        ("196\t242\t3\t8812\n186\t242\t4\t8917\n196\t302\t1\t8\n", [196, 186], [242, 302], [[3, 1], [4, NAN]]),
        ("1::1193::5::978300760\n2::1193::3::978302109\n2::7::1::9\n", [1, 2], [1193, 7], [[5, NAN], [3, 1]]),
        ("userID\tartistID\tweight\n2\t51\t13883\n", [2], [51], [[13883]]),
        ("ann x 3\nbob x 4\n", ["ann", "bob"], ["x"], [[3], [4]]),
        ("user;item\nann;x\nbob;y\n", ["ann", "bob"], ["x", "y"], [[1, NAN], [NAN, 1]]),
        ("1,007,3\n1,7,4\n", [1], ["007", "7"], [[3, 4]]),
        (",userId,movieId,rating\n0,5,63,3\n1,6,63,4\n", [5, 6], [63], [[3], [4]]),
        ("reviewerID,asin,helpful,overall\nA1,B1,x,5.0\nA2,B1,y,4.0\n", ["A1", "A2"], ["B1"], [[5], [4]]),
    ],
)
def test_long_files(read, text, rows, columns, dense):
    seen = read(text)
    assert (labels(seen), seen.summary.layout) == ((rows, columns), "long")
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
        ("country,2001,2002\nFR,1.5,2.5\nIT,0.5,\n", ["FR", "IT"], ["2001", "2002"], [[1.5, 2.5], [0.5, NAN]]),
        (",7,7\n1,5,3\n", None, None, [[NAN, 7, 7], [1, 5, 3]]),
        (",7,8\n,5,3\n", None, None, [[NAN, 7, 8], [NAN, 5, 3]]),
        (",7,\n1,5,3\n", None, None, [[NAN, 7, NAN], [1, 5, 3]]),
        ("user_id,a,b\n10,1,2\n20,3,4\n", [10, 20], ["a", "b"], [[1, 2], [3, 4]]),
        ("user_id,a,b\n10,1,2\n,3,4\n", None, ["a", "b"], [[1, 2], [3, 4]]),
        ("id,a,b\n01,1,2\n02,3,4\n", ["01", "02"], ["a", "b"], [[1, 2], [3, 4]]),
        ("id,a,b\n10,1,2\n10,3,4\n", None, ["id", "a", "b"], [[10, 1, 2], [10, 3, 4]]),
        ("id\n1\n2\n", None, ["id"], [[1], [2]]),
        ("1.5 2 3\n4 NaN 6\n", None, None, [[1.5, 2, 3], [4, NAN, 6]]),
        ("1,2,3,4,5\n,7,8,9,10\n", None, None, [[1, 2, 3, 4, 5], [NAN, 7, 8, 9, 10]]),
    ],
)
def test_wide_files(read, text, rows, columns, dense):
    seen = read(text)
    np.testing.assert_array_equal(seen.to_dense(), dense)
    assert (labels(seen), seen.summary.layout) == ((rows, columns), "wide")


LONG_NAMES = (
    "User_ID,movie-id,Rating",
    "customer,Product ID,quantity",
    "u,i,y",
    "uid,iid,play count",
    "account,offer,clicks",
)
WIDE_NAMES = "age,income,score,level", "u,x,y", "i,value,b", "person,height,b,c,d,score", "product,price,size"


@pytest.mark.parametrize("names", LONG_NAMES)
def test_usual_headers_are_recognised_in_any_order(read, names):
    fields = dict(zip((*names.split(","), "timestamp"), (7, 9, 3, 123), strict=True))
    for order in (list(fields), list(fields)[::-1]):
        seen = read(",".join(order) + "\n" + ",".join(str(fields[name]) for name in order) + "\n")
        assert (labels(seen), seen.values.tolist()) == (([7], [9]), [3])
        assert labels(observe(pd.DataFrame({name: [fields[name]] for name in order}))) == ([7], [9])


@pytest.mark.parametrize("names", WIDE_NAMES)
def test_ordinary_wide_tables_stay_wide(read, names):
    columns, line = names.split(","), ",".join("1.5" for _ in names.split(","))
    assert observe(pd.DataFrame({name: [1.5, 2.5] for name in columns})).column_labels.tolist() == columns
    assert read(f"{names}\n{line}\n{line}\n").column_labels.tolist() == columns


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("user,item,warmth\na,x,3\n", r"columns=\('user', 'item', 'warmth'\).*columns=\('user', 'item'\)"),
        ("user,item,plays,rating\na,x,3,4\n", "'plays' and 'rating'"),
        ("user,item,\na,x,3\n", "'' beside|and '', which"),  # only the first column may be an index without a name
        ("age,person,product,score\n1,2,3,4\n", "'person', 'product' and 'score', and 'age' beside them"),
        ("userId,thing,rating\n1,10,4\n", r"no column of items.*columns=\('userId', 'thing', 'rating'\)"),
        ("user,rating\n1,4\n", r"columns=\('user', 'item', 'rating'\)"),
        ("who,movieId,stars,timestamp\n1,2,3,4\n", r"no column of users.*columns=\('who', 'movieId', 'stars'\)"),
    ],
)
def test_what_is_ambiguous_is_refused_for_files_and_frames_alike(read, text, found):
    with pytest.raises(DataError, match=found) as of_file:
        read(text)
    names, fields = (line.split(",") for line in text.split())
    frame = pd.DataFrame({name: [int(one) if one.isdigit() else one] for name, one in zip(names, fields, strict=True)})
    with pytest.raises(DataError) as of_frame:
        observe(frame)
    assert str(of_file.value) == str(of_frame.value)


def test_texts_among_values_do_not_make_a_second_column_of_values(read):
    assert read("user,item,plays,rating\na,x,8,good\nb,x,9,nan\n").values.tolist() == [8, 9]


def test_three_numbers_without_a_header_are_long_and_reported_if_ids_do_not_repeat(read):
    assert read("1,2,3\n1,5,6\n4,2,2\n").nnz == 3
    with pytest.warns(DataWarning, match='layout="wide"'):
        assert read("1,2,3\n4,5,6\n").nnz == 2
    assert read("1,2,3\n4,5,6\n", layout="wide").shape == (2, 3)
    assert read("1,2,3\n4,5,6\n", layout="long").nnz == 2


def test_the_caller_says_what_is_what(read):
    text = "who,what,how_much\nann,x,3\n"
    assert read(text, columns=("what", "who", "how_much")).row_labels.tolist() == ["x"]
    assert read(text, layout="long").row_labels.tolist() == ["ann"]
    assert read("3,ann,x\n4,bob,x\n", columns=(1, 2, 0)).values.tolist() == [3, 4]
    assert read("user,item,a,b\nann,x,3,4\n", header=True, columns=(0, 1, 3)).values.tolist() == [4]
    assert read("user,item,rating\nann,x,3\n", columns=("user", "item")).values.tolist() == [1]
    assert read("1,2,3\n4,5,6\n", header=True, layout="long").row_labels.tolist() == [4]
    years = "2001,2002\n5,3\n4,1\n"
    assert read(years).shape == (3, 2)
    assert read(years, header=True).column_labels.tolist() == ["2001", "2002"]
    np.testing.assert_array_equal(read(",1,2\n7,5,3\n", header=False).to_dense(), [[NAN, 1, 2], [7, 5, 3]])
    weighted = "user,item,rating,trust\nann,x,3,0.5\nbob,x,4,2\n"
    assert read(weighted, cell_weight="trust").weights.tolist() == [0.5, 2]
    assert read(weighted, cell_weight=[1, 3], columns=("user", "item", "rating")).weights.tolist() == [1, 3]
    for options, name in (
        ({"columns": ("who", "what", "stars")}, "'stars'"),
        ({"header": False, "columns": ("who", "what")}, "'who'"),
        ({"cell_weight": "w"}, "'w'"),
    ):
        with refused(found=f"no {name}"):
            read(text, **options)
    with refused(found="these: a, b, c, d", parameter="columns"):
        read("a,b,c,d\n1,2,3,4\n", layout="long")
    with refused(where="among: movie, who, stars"):  # the given order may not be the one of the header
        read("movie,who,stars\n7,1,2\n7,2,3\n", layout="long")


def test_ids_of_a_file_are_of_the_kind_of_the_fitted_ones(read):
    history = "user,item,rating\n1,123,5\n"
    isbn = np.array(["123", "456", "99X", "0123"], dtype=object)
    np.testing.assert_array_equal(read(history, column_labels=isbn).to_dense(), [[5, NAN, NAN, NAN]])
    np.testing.assert_array_equal(read(history, column_labels=np.array([7, 123])).to_dense(), [[NAN, 5]])
    np.testing.assert_array_equal(read("7,123\n1,2\n", header=True, column_labels=[123, 7]).to_dense(), [[2, 1]])
    np.testing.assert_array_equal(read("user,x\n7,1\n", column_labels=["user", "x"]).to_dense(), [[7, 1]])
    with pytest.raises(DataError, match=r"'99X' \(1 unknown"):
        read("user,item,rating\n1,123,5\n1,99X,5\n", column_labels=np.array([7, 123]))


# What is said.


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        ("user,rating,time,item\na,1,7,x\n", {}, "from column 'item', values from column 'rating'; column 'time' is"),
        ("user,item,rating,s,t\na,x,1,s,t\n", {}, "columns 's' and 't' are not used"),
        ("user,item,rating,a,b,c,d,e,f,g\na,x,1,,,,,,,\n", {}, "'d', 'e' and 2 more are not used"),
        ("user,item,rating,sure\na,x,1,2\n", {"cell_weight": "sure"}, "weights from column 'sure'"),
        ("user,item\na,x\n", {}, "no column of values: every pair counts 1"),
        ("a,x,1,77\nb,y,2,78\n", {}, "No header: rows are from column 1, columns from column 2, values from column 3;"),
        ("user;item;rating\na;x;1,5\n", {}, "decimal commas"),
        ("name,p,q\na,1,2\nb,3,4\n", {}, "A wide table: names of rows from column 'name', 2 columns of numbers."),
        (",p\na,1\nb,3\n", {}, "names of rows from the first column, 1 column of numbers"),
        ("1,2.5\n3,4\n", {}, "A wide table without a header"),
        ("p,q\nlow,high\nhigh,high\nlow,low\n", {"levels": ["low", "high"]}, "2 columns of levels"),
    ],
)
def test_summaries(read, text, options, said):
    assert said in str(read(text, **options).summary)


def test_summaries_of_frames_and_arrays(tmp_path, read):
    wide = pd.DataFrame({"p": [1, 2], "q": [3, 4]}, index=["a", "b"])
    assert observe(wide).summary.roles == {"rows": "the index"}
    assert observe(wide.reset_index(names="who")).summary.roles == {"rows": "column 'who'"}
    assert observe(np.eye(2)).summary is observe([("a", "x", 1.0)]).summary is None
    seen = read("user,item,rating\na,x,1\nb,y,2\n")
    made = [*split_cells(seen, test_size=1, random_state=0), observe(seen, unseen="zero"), seen.select_rows([0])]
    assert all(one.summary == seen.summary for one in made)
    (tmp_path / "t.csv").write_text("id,city,a,b\n1,x,1,2\n2,y,3,4\n")
    assert read_wide_table(tmp_path / "t.csv").observed.summary.roles == {"rows": "column 'id'"}


IDS = "kunde,artikel,note\n1,7,5\n1,8,4\n2,7,3\n3,8,1\n"
HINT = "columns=('kunde', 'artikel', 'note')"


def test_numbers_that_might_be_a_long_table_get_a_hint(read, tmp_path):
    assert read(IDS).summary.if_long == HINT
    assert observe(pd.read_csv(tmp_path / "t.csv")).summary.if_long == HINT
    assert not read(IDS, layout="wide").summary.if_long
    assert not read(IDS, layout="long").summary.if_long
    with_time = "".join(f"{line},{time}\n" for line, time in zip(IDS.split(), ["time", *"1234"], strict=True))
    assert read(with_time).summary.if_long == HINT


def test_other_tables_get_none(read):
    """A pair twice, an id once in each row, a fraction or a hole as id, too many different values."""
    values = " ".join(f"{i % 7},{i // 7},{i * i}" for i in range(49))
    fraction, hole = "1,7.5,5 1,8,4 2,7.5,3 2,8,1", "1,,5 1,8,4 2,7,3 2,8,1"
    for lines in ("1,7,5 1,7,4 2,7,3", "1,7,5 2,7,4 3,8,3", fraction, hole, values):
        assert not read("\n".join(["a,b,c", *lines.split()])).summary.if_long


@pytest.mark.parametrize("order", [("kunde", "artikel", "note"), ("note", "kunde", "artikel")])
def test_texts_in_three_columns_are_refused_with_the_likely_columns(tmp_path, order):
    frame = pd.DataFrame({"kunde": ["A", "A", "B"], "artikel": ["p", "q", "p"], "note": [1, 2, 3]})[list(order)]
    frame.to_csv(tmp_path / "t.csv", index=False)
    for data in (tmp_path / "t.csv", frame):
        with pytest.raises(DataError, match=re.escape(HINT)):
            observe(data)
