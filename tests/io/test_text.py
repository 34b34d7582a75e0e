"""Text files: dialects, encodings, compression; every complaint with its line."""

import gzip
import io
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfseen.errors import DataError, ParameterError
from halfseen.io import observe, text
from tests.data.strategies import CALM
from tests.io.conftest import refused

LINES = [["user", "item", "rating"], ["ann", "x", "3"], ["bob", "y", "4.5"], ["ann", "y", ""]]
TEXT = "".join(",".join(line) + "\n" for line in LINES)
DENSE = [[3, np.nan], [np.nan, 4.5]]


@pytest.mark.parametrize("separator", [",", "\t", ";", "|", "::", " , "])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\n\n \n"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_separators_and_line_ends(file, separator, end, encoding):
    for last in (end, ""):
        content = (end.join(separator.join(line) for line in LINES) + last).encode(encoding)
        for packed in (content, gzip.compress(content)):
            for progress in (None, lambda done, size: None):
                seen = observe(file(packed), progress=progress)
                np.testing.assert_array_equal(seen.to_dense(), DENSE)
                assert (seen.row_labels.tolist(), seen.column_labels.tolist()) == (["ann", "bob"], ["x", "y"])


def test_a_separator_may_be_given_and_runs_of_blanks_are_one(read):
    for separator, written in (("^", "^"), (" ", "  "), ("||", "||"), (",", ",")):
        text = "\n".join(written.join([*line[:2], line[2] or "NA"]) for line in LINES)
        np.testing.assert_array_equal(read(text, separator=separator).to_dense(), DENSE)
    blanks = "user  item   rating\n  ann x    3\nbob\ty 4.5 \nann y NA\n"
    np.testing.assert_array_equal(read(blanks).to_dense(), DENSE)


def test_bad_options_are_refused(read):
    for option in ({"separator": ""}, {"separator": '"'}, {"comment": " "}, {"encoding": "utf-9"}):
        with refused(ParameterError, parameter=next(iter(option))):
            read(TEXT, **option)


NAME = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zs", "Zl", "Zp"]), min_size=1).map("n".__add__)


@CALM
@given(st.lists(st.tuples(NAME, NAME), min_size=1, unique=True), st.sampled_from([1, 7, 1 << 20]), st.data())
def test_quotes_and_the_ends_of_blocks_do_no_harm(tmp_path_factory, pairs, block, data):
    encoding = data.draw(st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]))
    quoted = [",".join('"' + name.replace('"', '""') + '"' for name in pair) for pair in pairs]
    path = tmp_path_factory.mktemp("written") / "t.csv"
    path.write_bytes("\n".join(["user,item", *quoted]).encode(encoding))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text, "BLOCK", block)
        seen = observe(path)
    assert seen.row_labels.tolist() == list(dict.fromkeys(user for user, _ in pairs))
    rows, columns = seen.row_labels[seen.row_of_cell()], seen.column_labels[seen.indices]
    assert sorted(zip(rows, columns, strict=True)) == sorted(pairs)


@pytest.mark.parametrize(("encoding", "name"), [("cp1252", "€"), ("shift-jis", "日本"), ("utf-16-le", "é")])
def test_an_encoding_may_be_given(read, encoding, name):
    text = f"user,item,rating\nann,{name},3\n"
    assert read(text.encode(encoding), encoding=encoding).column_labels.tolist() == [name]
    with refused(parameter="encoding"):
        read(text, encoding="ascii")


def test_lines_above_the_table_and_comments(read):
    for content, options in (
        (TEXT.replace("bob", "% a, b, c\nbob"), {"comment": "%"}),
        ('"sep=;"\n# x\n' + TEXT.replace(",", ";"), {}),
        ("#user,item,rating\n" + TEXT.partition("\n")[2], {"columns": ("#user", "item", "rating")}),
    ):
        np.testing.assert_array_equal(read(content, **options).to_dense(), DENSE)


def test_damaged_archives_are_refused(file):
    packed = gzip.compress(b"user,item,rating\n" + b"".join(b"%d,1,3\n" % n for n in range(50_000)))
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as opened:
        for name in ("a.csv", "b.csv"):
            opened.writestr(name, TEXT)
    damaged = {"half.gz": packed[: len(packed) // 2], "checksum.gz": packed[:-8] + b"\0" * 8}
    for name, content in {**damaged, "two.zip": archive.getvalue(), "cut.zip": archive.getvalue()[:40]}.items():
        with pytest.raises(DataError, match=name):
            observe(file(content, name))


def test_several_files_are_one_table(file, tmp_path):
    for number in range(3):
        file(f"user,item,rating\nu{number},x,{number + 1}\nu{number},y,5\n", f"part-{number}.csv")
    seen = observe(str(tmp_path / "part-*.csv"))
    assert (seen.row_labels.tolist(), seen.values.tolist()) == (["u0", "u1", "u2"], [1, 5, 2, 5, 3, 5])
    for content in ("user,item,rating\nu9,x,good\n", "user,x,item\nu9,1,x\n"):
        file(content, "part-9.csv")
        with pytest.raises(DataError, match=r"part-9.csv"):
            observe(tmp_path / "part-*.csv")
    with refused(found="none", where=f"for {str(tmp_path / 'none-*.csv')!r}"):
        observe(tmp_path / "none-*.csv")


@pytest.mark.parametrize(
    ("content", "place"),
    [
        ("user,item,rating\nann,x,3\n\nann,x\n", r"Line 4 of t.csv must have 3 fields.* Found 2: 'ann,x'"),
        ("1,2,3\n1,3,3,4\n", "Line 2 .* 3 fields.* Found 4: '1,3,3,4'"),
        ("1::2::3\n1::3\n", "Line 2 .* Found 2"),
        ("# a\na b c\n1 2 3\n1 3\n", "Line 4 .* Found 2"),
        ("user,item,rating\n" + "u,i,1\n" * 100_000 + "ann,x\n", "Line 100002 .* Found 2: 'ann,x'"),
        ("user,item,rating\nann,x,3\n\nbob,x,good\n", "'good' on line 4 of t.csv, column 'rating'"),
        ("sep=;\n# x\nuser;item;rating\nann;x;3\nbob;x;1_0\n", "'1_0' on line 5"),
        ("user,item,rating\nann,x,3\n,x,2\n", "no row id on line 3 of t.csv, column 'user'"),
        ("user,item,rating\nann,5,3\nbob,NA,2\n", "no column id on line 3"),
        ("user,item,rating\nann,x,inf\n", "inf at row 'ann', column 'x'"),
        ("name,a,b\nann,1,2\nbob,3,z\n", "'z' on line 3 of t.csv, column 'b'"),
        ("name,a,b\nann,1,2\nann,3,4\n", "'ann' on line 2 of t.csv, column 'name'"),
        ("name\nann\nbob\n", "'ann' on line 2 of t.csv, column 'name'"),
        ("1.5,2,3,4,5\n1,2,3,x,5\n", "'x' on line 2 of t.csv, column 3"),
        ("\n \n", "none in t.csv"),
        ("user,item,rating\n", "At least one cell"),
        ("a\0b,c\n", "binary data"),
        ('user,item,rating\nann,x,3\nbob,"' + "y" * 200_000, "t.csv .*'bob,y"),
    ],
    ids=range(18),
)
def test_complaints(read, content, place):
    with pytest.raises(DataError, match=place):
        read(content)


def test_ids_are_integers_where_all_are_written_as_such(read):
    integers = ["1", "-5", "0", " 7"], ["9007199254740993", "18446744073709551615"]
    texts = ["18446744073709551616"], ["7", "007"], ["1", "1.0"], ["0x10", "+3", "1e3"], ["DE", "NA"]
    for ids, labels in (*((one, list(map(int, one))) for one in integers), *((one, one) for one in texts)):
        lines = "".join(f"{one},{number},1\n" for number, one in enumerate(ids))
        assert read(f"user,item,rating\n{lines}").row_labels.tolist() == labels


def test_files_that_are_not_there(tmp_path):
    for path in (tmp_path / "nothing.csv", "no such text", tmp_path, "x" * 5000):
        with pytest.raises(DataError, match=r"must (exist|be a file|be readable)"):
            observe(path)
