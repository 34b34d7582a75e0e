"""Defects of reading and writing: those of version 0.1.0 as users met them, then those found by reading the code.

The tests of the first part use the public interface alone, so that they run against any version.
"""

import bz2
import io
import os
import zipfile

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import halfseen as hs
from halfseen.errors import DataError
from halfseen.io.splits import check_pair, split_file
from tests.cli.program import done, refused
from tests.cli.program import halfseen as run

LONG = "user,item,rating\nann,x,3\nbob,x,4\nann,y,5\n"


@pytest.fixture
def imputed(file):
    """The table that `impute -k 1` writes, as columns of texts, and its notes."""

    def impute(text, *options):
        result = run("impute", file(text), "-k", 1, "-o", "-", *options)
        assert result.exit_code == 0, result.output
        separator = ";" if ";" in text else ","
        names, *rows = (line.split(separator) for line in result.stdout.splitlines())
        notes = "".join(line for line in result.stderr.splitlines() if line.startswith("note: "))
        return {name: [row[place] for row in rows] for place, name in enumerate(names)}, notes

    return impute


def fitted(path, *options):
    """The model that `fit` saves."""
    model = path.with_suffix(".hs")
    result = run("fit", path, "--method", "nmf", "-k", 1, "-q", "-o", model, *options)
    assert result.exit_code == 0, result.output
    return hs.load(model)


# 1.1: what is missing, and text among numbers.


def test_a_dash_is_missing(imputed):
    text = "name,rent,food,travel,books\nann,640,310,70,45\nbob,820,{0},150,95\ncy,NA,350,140,70\ndora,1200,560,?,130\n"
    text += "eve,700,330,90,{0}\nfay,990,450,160,110\n"
    dashes, _ = imputed(text.format("-"))
    empty, _ = imputed(text.format(""))
    assert dashes == empty
    assert "-" not in dashes["food"] + dashes["books"]


def test_text_among_numbers_is_noted_and_holes_are_filled(imputed):
    text = "a,b\n1,2\n2,\n3,6\n4,8\n5,unknown\n"
    table, notes = imputed(text)
    assert (float(table["b"][1]), table["b"][4]) == (pytest.approx(4), "unknown")
    assert "'unknown' on line 6" in notes
    table, notes = imputed(text, "--na", "unknown")
    assert (float(table["b"][4]), notes) == (pytest.approx(8), "")  # clipped to the largest seen


def test_percent_signs_are_understood(imputed):
    first, filled, *_ = imputed("a,b\n1,7.5%\n2,\n3,9%\n4,12%\n")[0]["b"]
    assert (first, filled[-1], 7.5 <= float(filled[:-1]) <= 12) == ("7.5%", "%", True)


# 1.3: ids and codes are no amounts.


def test_an_id_column_with_a_hole_is_not_filled(imputed):
    table, _ = imputed("customer_id,spend,visits\n5,20,2\n,22,3\n12,24,\n13,26,4\n")
    assert table["customer_id"] == ["5", "", "12", "13"]
    assert table["visits"][2] != ""


def test_zero_padded_codes_are_not_filled_and_change_nothing(imputed):
    text = "age,zip,spend\n20,01013,3\n30,02134,\n,N/A,6\n40,90210,7\n"
    table, notes = imputed(text)
    assert table == imputed(text, "--skip", "zip")[0]
    assert (table["zip"][2], "'zip'" in notes) == ("N/A", True)


@pytest.mark.parametrize("name", ["visit_id", "zip", "area code", "birth_year"])
def test_columns_that_may_hold_codes_are_noted(imputed, name):
    _, notes = imputed(f"spend,{name}\n3,2000\n4,1990\n,2010\n")
    assert f"'{name}'" in notes


# 1.6: points before three digits between semicolons.


def test_points_that_may_be_thousands_separators_are_refused_or_settled(file, imputed):
    text = "name;umsatz;kosten\na;1.234;2.500\nb;2.345;\nc;3.100;4.900\nd;4.000;6.100\n"
    sentence = refused("impute", file(text), "-k", 1, "-o", "-")
    assert "'1.234' on line 2 of t.csv, column 'umsatz'" in sentence
    assert "--decimal" in sentence
    large, _ = imputed(text, "--thousands", ".", "--decimals", "all")
    small, _ = imputed(text, "--decimal", ".", "--decimals", "all")
    assert float(large["kosten"][1].replace(",", ".")) == pytest.approx(1000 * float(small["kosten"][1]))
    output = file("", "o.parquet")
    done("impute", file(text), "-k", 1, "-q", "--thousands", ".", "--force", "-o", output)
    assert pq.read_table(output).column("umsatz").to_pylist() == [1234, 2345, 3100, 4000]


# 1.7: blanks.


def test_blanks_around_ids_and_headers_are_no_part_of_them(file):
    seen = hs.observe(file("user , item , rating \n bob , x , 5\nbob, y, 3\nann , x, 2\n"))
    assert (seen.row_labels.tolist(), seen.column_labels.tolist()) == (["bob", "ann"], ["x", "y"])
    assert "'user'" in str(seen.account)


# 1.10: what is written over, and what is copied.


def test_impute_does_not_write_over_its_input(file):
    path = file("a,b\n1,2\n2,\n3,6\n")
    assert "t.csv" in refused("impute", path, "-k", 1, "-o", path)
    assert path.read_text() == "a,b\n1,2\n2,\n3,6\n"


def test_split_copies_lines_between_blanks_as_they_are(file, tmp_path):
    lines = [f"{i} {j}  {i + j}" for i in range(4) for j in range(4)]
    done("split", file("\n".join(lines), "r.txt"), "-q", "-o", tmp_path / "a.txt", "--held-out", tmp_path / "b.txt")
    copied = [line for part in "ab" for line in (tmp_path / f"{part}.txt").read_text().splitlines()]
    assert sorted(copied) == sorted(lines)


# Section 2: options, formats, and what need not be a stop.


def test_decimal_thousands_and_na_may_be_given(file):
    path = file("user;item;rating\na;x;1.234,5\nb;x;2.000,25\na;y;k.A.\nb;y;1\n")
    model = fitted(path, "--decimal", ",", "--thousands", ".", "--na", "-,k.A.")
    assert model.row_labels_.tolist() == ["a", "b"]
    seen = hs.observe(path, decimal=",", thousands=".", na_values=["k.A."])
    assert seen.values.tolist() == [1234.5, 2000.25, 1]


def test_separator_and_encoding_may_be_given(file):
    path = file("user^item^rating\nŁ^x^3\nb^x^4\n".encode("cp1250"))
    assert fitted(path, "--sep", "^", "--encoding", "cp1250").row_labels_.tolist() == ["Ł", "b"]


def zipped(name, content):
    with zipfile.ZipFile(buffer := io.BytesIO(), "w") as archive:
        archive.writestr(name, content)
    return buffer.getvalue()


JSON = ['{"userId": 1, "movieId": 63, "rating": 3}', '{"userId": 2, "movieId": 63, "rating": 4}']


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.jsonl", "\n".join(JSON)),
        ("t.json", "\n".join(JSON)),
        ("t.csv.bz2", bz2.compress(LONG.encode())),
        ("t.csv.zst", pa.compress(LONG.encode(), "zstd", asbytes=True)),
        ("index.csv", ",userId,movieId,rating\n0,5,63,3\n1,6,63,4\n"),
        ("excel.csv", "sep=;\nuser;item;rating\nann;x;3\nbob;x;4\n"),
        ("comments.csv", "# made by x, y\n# and z\nuser,item,rating\nann,x,3\nbob,x,4\n"),
        ("t.zip", zipped("t.csv", LONG)),
    ],
)
def test_more_formats_are_read(file, name, content):
    seen = hs.observe(file(content, name))
    assert (seen.shape[0], seen.values[[0, -1]].tolist()) == (2, [3, 4])


@pytest.mark.parametrize("name", ["t.json", "t.txt"])
def test_json_arrays_are_refused_by_name(file, name):
    with pytest.raises(DataError, match="JSON"):
        hs.observe(file("[" + ",\n".join(JSON) + "]", name))


def test_ids_with_a_point_are_found_without(file, tmp_path):
    model = fitted(file("user,item,rating\n2.0,10,3\n3.0,10,4\n2.0,11,5\n3.0,11,1\n"))
    assert model.predict(["2", "3", "2"], 10).tolist() == model.predict(["2.0", "3.0", "2.0"], 10).tolist()
    assert done("predict", tmp_path / "t.hs", "--row", "2", "--col", "10")


# Part 2, S4, S5, S7: Parquet, wide tables, stray bytes.


@pytest.mark.parametrize("ids", [list("abcab"), [1, 2, 3, 1, 2]])
@pytest.mark.parametrize("more", [{}, {"tags": [["a"], [], None, ["b", "c"], ["d"]], "extra": [{"p": 1}] * 5}])
def test_long_parquet_files_are_split(tmp_path, ids, more):
    columns = {"user": ids, "item": list("xyxzz"), "rating": [1, 2, 3, 4, 5], **more}
    pq.write_table(pa.table(columns), tmp_path / "s.parquet")
    for ending in ("parquet", "csv"):
        parts = [tmp_path / f"{part}.{ending}" for part in "ab"]
        done("split", tmp_path / "s.parquet", "-q", "-o", parts[0], "--held-out", parts[1])
    lines = [line for part in "ab" for line in pq.read_table(tmp_path / f"{part}.parquet").to_pylist()]
    assert sorted(map(str, lines)) == sorted(map(str, pa.table(columns).to_pylist()))


def test_a_table_of_twenty_thousand_columns(file):
    names = ",".join(f"gene{number:05d}" for number in range(20_000))
    rows = [",".join(str((row + number) % 7) for number in range(20_000)) for row in range(3)]
    seen = hs.observe(file(f"id,{names}\n" + "".join(f"r{place},{row}\n" for place, row in enumerate(rows))))
    assert (seen.shape, seen.nnz, seen.values[:3].tolist()) == ((3, 20_000), 60_000, [0, 1, 2])


def test_a_line_of_ten_megabytes(file):
    name = "a" * 10_000_000
    seen = hs.observe(file(f"user,item,rating\nb,x,4\n{name},x,3\n"))
    assert seen.row_labels.tolist() == ["b", name]


@pytest.mark.parametrize("lines", [0, 1000])
def test_another_encoding_is_named(file, lines):
    plain = "".join(f"u{number},x,1\n" for number in range(lines))
    path = file(f"user,item,rating\n{plain}Jürgen,x,2\nann,x,1\n".encode("latin-1"))
    assert "cp1252" in str(hs.observe(path).account)


# S9 and S10: tracebacks, and silent surprises.


@pytest.mark.parametrize(("method", "columns"), [
    ("nmf", {"a": pa.array([2**63 + 5, 3, 4], pa.uint64()), "b": [1.0, None, 3.0]}),
    ("ordinal", {"a": [True, None, True, True, None], "b": [1, 2, 1, 2, 2], "c": [2, 2, 1, 1, 2]}),
])  # fmt: skip
def test_impute_to_parquet_keeps_unsigned_integers_and_takes_booleans(tmp_path, method, columns):
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    done("impute", tmp_path / "t.parquet", "--method", method, "-k", 1, "-q", "-o", tmp_path / "o.parquet")
    filled, before = (pq.read_table(tmp_path / f"{one}.parquet").column("a").to_pylist() for one in "ot")
    assert None not in filled
    assert all(new == old for new, old in zip(filled, before, strict=True) if old is not None)


LINES = "".join(f"u{number},x,1\n" for number in range(150))
STRAY = "".join(f"ü{number},x,1\n" for number in range(1000)).encode() + "Jürgen,x,2\n".encode("latin-1")
OTHER_DIGITS = ["\uff11\uff12", "\u0661\u0662", "\u0967", "\U0001d7d9"]


@pytest.mark.parametrize(
    ("content", "found"),
    [
        ("user,v,v\na,1,2\n", "'v' twice"),
        ("user,item,item\na,x,3\nb,x,4\n", "'item' twice"),
        ('"', "none in t.csv"),
        ('""  \n', "none in t.csv"),
        ('user,item,rating\n"ann,x,3\nbob,x,4\ncy",y,5\ndee,x,2\n', "on line 4 of t.csv.*quote"),
        ('user,item,rating\nann,"x,3\nbob,x,4\ncy,x",5\ndee,x,2\n', "on line 4 of t.csv.*quote"),
        ('name,a,b\n"ann,1,2\nbob,1,2\ncy",3,4\ndee,1,2\n', "on line 4 of t.csv.*quote"),
        (f"user,item,rating\n{LINES}a\0b,x,1\n", r"a\\x00b' on line 152"),
        (f"name,a,b\n{LINES.replace('x', '2')}a\0b,2,1\n", r"a\\x00b' on line 152"),
        (b"user,item,rating\n" + STRAY, r"line 1002 .*J\\\\xfcrgen"),
        *((f"user,item,rating\na,x,3\nb,x,{one}\n", f"'{one}' on line 3") for one in (*OTHER_DIGITS, "1e-400")),
        *((f"name,a,b\na,1,3\nb,2,{one}\n", f"'{one}' on line 3") for one in (*OTHER_DIGITS, "1e-400")),
    ],
    ids=range(20),
)
def test_odd_files_are_refused_in_a_sentence(file, content, found):
    with pytest.raises(DataError, match=found):
        hs.observe(file(content))
    assert refused("fit", file(content), "-o", file("", "o.hs"))


@pytest.mark.parametrize(("command", "text", "ending"), [("fit", LONG, "hs"), ("impute", "a,b\n1,2\n2,\n3,6\n", "csv")])
def test_an_output_stays_private_or_a_link_as_it_was(file, tmp_path, command, text, ending):
    private, target = file("old", f"private.{ending}"), file("old", f"target.{ending}")
    new, link = tmp_path / f"new.{ending}", tmp_path / f"link.{ending}"
    private.chmod(0o600)
    link.symlink_to(target)
    for output in (private, new, link):
        done(command, file(text), "-k", 1, "-q", *(["--force"] if command == "impute" else []), "-o", output)
    assert b"old" not in (private.read_bytes(), target.read_bytes())
    mask = os.umask(0)
    os.umask(mask)
    assert [path.stat().st_mode & 0o777 for path in (private, new)] == [0o600, 0o666 & ~mask]
    assert link.is_symlink()


# Second part: found by reading the code.


def cells(observed):
    rows, columns = observed.row_labels[observed.row_of_cell()], observed.column_labels[observed.indices]
    return set(zip(rows.tolist(), columns.tolist(), observed.values.tolist(), strict=True))


@pytest.fixture
def split(tmp_path):
    """Split a file, and observe both parts."""

    def split(path, ending="csv", **options):
        parts = [tmp_path / f"{side}.{ending}" for side in ("train", "test")]
        split_file(path, *parts, random_state=0, **options)
        return list(map(hs.observe, parts))

    return split


def test_a_query_without_an_order_is_run_once():
    rng = np.random.default_rng(0)
    frame = pl.DataFrame({"user": rng.integers(0, 300, 9000), "item": rng.integers(0, 200, 9000)})
    frame = frame.unique().with_columns(rating=(pl.col("user") * 7 + pl.col("item")) % 11, time=pl.col("user") + 1)
    query = frame.lazy().group_by("user", "item").agg(pl.col("rating").first(), pl.col("time").first())
    expected = set(frame.select("user", "item", "rating").rows())
    for options in ({"random_state": 0}, {"by": "time", "time": "time"}):
        train, test = hs.data.split_cells(query, 0.3, **options)
        assert cells(train) | cells(test) == expected


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_ids_are_the_same_in_both_parts_of_a_split(file, split, ending):
    ids = ["007", "-7", "1e3", "1000", "+7", "7", "NA", "null"]
    lines = [f"{user},{item},{number}.5" for number, (user, item) in enumerate((u, i) for u in ids for i in "x-")]
    path = file("user,item,rating\n" + "\n".join(lines) + "\n", "r.csv")
    train, held = split(path, ending)
    assert cells(train) | cells(held) == cells(hs.observe(path))


def test_a_split_without_a_header_is_known_again_as_long(file, split):
    lines = [f"{user}\t{item}\t{1 + (user * item) % 5}\t{900 + user}" for user in range(1, 6) for item in range(1, 6)]
    train, held = split(file("\n".join(lines) + "\n", "u.data"), "parquet", by="time", last=1)
    assert (train.summary.layout, train.nnz, held.nnz) == ("long", 20, 5)


def test_lines_without_a_value_are_not_the_last_of_a_row(file, split):
    path = file("user,item,rating,time\na,x,1,1\na,z,3,2\na,y,,3\nb,x,3,1\nb,z,1,2\nb,y,,5\n", "r.csv")
    for _, test in (split(path, by="time", last=1), hs.data.split_cells(path, by="time", last=1)):
        assert cells(test) == {("a", "z", 3.0), ("b", "z", 1.0)}


def test_times_are_compared_as_times_and_not_as_texts(file, split):
    """Ten in Paris is before nine in New York."""
    lines = ["a,x,1,2024-01-31T10:00:00+01:00", "a,y,2,2024-01-31T09:00:00-05:00", "a,z,3,2024-01-31T09:30:00+00:00"]
    path = file("user,item,rating,time\n" + "\n".join(lines) + "\n", "r.csv")
    tests = [hs.data.split_cells(source, by="time", last=1)[1] for source in (path, pd.read_csv(path))]
    assert all(cells(test) == {("a", "y", 2.0)} for test in (*tests, split(path, by="time", last=1)[1]))
    with pytest.raises(DataError, match="'soon' on line 3"):
        hs.data.split_cells(file("user,item,rating,time\na,x,1,2024-01-31\na,y,2,soon\n"), 1, by="time")


def test_a_table_of_nothing_but_codes_is_refused_by_name(read):
    with pytest.raises(DataError, match="'zip'"):
        read("zip,area\n01013,044\n02134,044\n")


def test_files_that_are_read_together_have_the_same_columns(tmp_path):
    for name, value in (("p1", "rating"), ("p2", "stars")):
        pq.write_table(pa.table({"user": [name], "item": ["x"], value: [1]}), tmp_path / f"{name}.parquet")
    with pytest.raises(DataError, match=r"p2\.parquet"):
        hs.observe(tmp_path / "p*.parquet")
    pq.write_table(pa.table({"user": ["p2"], "item": ["x"], "rating": [1.5]}), tmp_path / "p2.parquet")
    assert hs.observe(tmp_path / "p*.parquet").values.tolist() == [1, 1.5]


def test_an_empty_rating_does_not_make_ids_values(read):
    lines = [f"{user},{item},{'' if user == item == 3 else 2}" for user in range(6) for item in range(6)]
    assert read("\n".join(lines) + "\n").nnz == 35


@pytest.mark.parametrize("end", ["\r", "\r\n", "\n"])
@pytest.mark.parametrize("separator", ["::", ",", "§"])
def test_every_end_of_a_line_ends_it(read, end, separator):
    text = end.join(line.replace(",", separator) for line in ["user,item,rating", "a,x,1", "b,y,2", "c,x,3"]) + "\n"
    assert read(text, separator=separator).row_labels.tolist() == ["a", "b", "c"]


@pytest.mark.parametrize("line", ["Empty CSV,5", "invalid UTF8,5", "block size straddles,5"])
def test_a_broken_line_may_say_what_it_likes(read, line):
    with pytest.raises(DataError, match=r"Line 3 of t\.csv"):
        read(f"user,item,rating\na,x,1\n{line}\n", allow_empty=True)


def test_encodings_that_are_given_are_kept(read):
    text = b"user,item,rating\n" + b"a,x,1\n" * 30_000 + b"caf\xe9,x,1\n"
    for encoding, error in (("utf-8", DataError), ("ascii", DataError), ("rot13", hs.errors.ParameterError)):
        with pytest.raises(error):
            read(text, encoding=encoding, duplicates="first")
    seen = read(b"\xef\xbb\xbfuser,item,rating\na,x,1\n", encoding="UTF-8", columns=("user", "item", "rating"))
    assert seen.summary.encoding == ""


def test_encoded_columns_are_read_as_their_values():
    frame = pd.DataFrame({"user": pd.Categorical([1.5, 2.5, 1.5]), "item": ["x", "x", "y"], "rating": [1, 2, 3]})
    assert hs.observe(frame).row_labels.tolist() == [1.5, 2.5]
    repeated = pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(["a", "a"]))
    table = pa.table({"user": repeated, "item": ["x", "y"], "rating": [1, 2]})
    assert hs.observe(table).row_labels.tolist() == ["a"]
    with pytest.raises(DataError, match="share"):
        hs.observe(pd.DataFrame({"user": [2.0**60, 2.0**61], "item": ["x", "y"], "rating": [1, 2]}))


def test_separators_at_the_ends_of_lines_and_a_header_alone(read):
    assert read("user;item;rating;;\na;x;1;;\nb;y;2;;\n").values.tolist() == [1, 2]
    assert read("user,item,rating", allow_empty=True).shape == (0, 0)


def test_quotes_after_blanks_far_down(read):
    lines = "".join(f"u{number},x,1\n" for number in range(150))
    assert read(f'user,item,rating\n{lines}late, "y,z",2\n').column_labels.tolist() == ["x", "y,z"]


def test_a_training_file_that_is_not_there_is_left_to_its_reader(file, split, tmp_path):
    split(file("user,item,rating\n" + "".join(f"a,{item},1\n" for item in range(9))))
    check_pair(tmp_path / "nowhere.csv", tmp_path / "test.csv")
