"""Text files: every delimiter and encoding, and every complaint with its line."""

import gzip

import numpy as np
import pytest

from halfseen.data import observe, textfiles
from halfseen.errors import DataError

LINES = [["user", "item", "rating"], ["ann", "x", "3"], ["bob", "y", "4.5"], ["ann", "y", ""]]
DENSE = [[3, np.nan], [np.nan, 4.5]]


@pytest.fixture
def file(tmp_path):
    """Write text or bytes to a file and say where it is."""

    def write(content, name="ratings.csv"):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


@pytest.mark.parametrize("delimiter", [",", "\t", ";", "|", "::", ", "])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_delimiters_and_line_ends(file, delimiter, end):
    path = file(end.join(delimiter.join(line) for line in LINES))
    seen = observe(path)
    np.testing.assert_array_equal(seen.to_dense(), DENSE)
    assert (seen.row_labels.tolist(), seen.column_labels.tolist()) == (["ann", "bob"], ["x", "y"])


def test_runs_of_blanks(file):
    path = file("user  item   rating\nann x    3\nbob    y 4.5\nann y NA\n", "ratings.txt")
    np.testing.assert_array_equal(observe(path).to_dense(), DENSE)


@pytest.mark.parametrize("blank", ["\n", "  \n", "\r\n"])
def test_blank_lines_are_skipped(file, blank):
    text = blank + (blank * 2).join(",".join(line) + "\n" for line in LINES) + blank
    np.testing.assert_array_equal(observe(file(text)).to_dense(), DENSE)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1", "utf-16"])
def test_encodings(file, encoding):
    seen = observe(file("user,item,rating\nJürgen,é,3\n".encode(encoding)))
    assert (seen.row_labels.tolist(), seen.column_labels.tolist()) == (["Jürgen"], ["é"])


def test_a_file_that_stops_being_utf8_is_read_as_latin1_from_its_start(file):
    lines = [f"u{number},i,1\n" for number in range(20_000)]
    content = b"user,item,rating\n" + "".join(lines).encode() + "Jürgen,i,2\n".encode("latin-1")
    assert observe(file(content)).row_labels[-1] == "Jürgen"


def test_quoted_fields(file):
    seen = observe(file('user,item,rating\nann,"x, ""the"" y",3\n"bob\nof two lines",z,4\n'))
    assert seen.column_labels.tolist() == ['x, "the" y', "z"]
    assert seen.row_labels.tolist() == ["ann", "bob\nof two lines"]


def test_compressed_files_are_known_by_suffix_and_content(file):
    packed = gzip.compress(b"user,item,rating\nann,x,3\n")
    for name in ("ratings.csv.gz", "ratings.csv"):
        assert observe(file(packed, name)).values.tolist() == [3]


@pytest.mark.parametrize("kind", [str, lambda path: path], ids=["str", "Path"])
def test_paths_of_both_kinds(file, kind):
    assert observe(kind(file("user,item,rating\nann,x,3\n"))).nnz == 1


@pytest.mark.parametrize("size", [1, 7, 1 << 13])
def test_chunks_do_not_show(file, monkeypatch, size):
    monkeypatch.setattr(textfiles, "FIELDS_PER_CHUNK", size)
    path = file("user,item,rating\n" + "".join(f"{n % 7},{n % 5},{n}\n" for n in range(35)))
    seen = observe(path)
    expected = np.empty((7, 5))
    for n in range(35):
        expected[n % 7, n % 5] = n
    np.testing.assert_array_equal(seen.to_dense(), expected)


@pytest.mark.parametrize("size", [1, 1 << 13])
@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "user,item,rating\nann,x,3\n\nann,x\n",
            r"Line 4 of ratings.csv must have 3 fields, as its header has\. Found 2: 'ann,x'\. Mend or delete the line",
        ),
        ("1,2,3\n1,3,3,4\n", r"Line 2 .* must have 3 fields, as its first line has\. Found 4: '1,3,3,4'"),
        ("1::2::3\n1::3\n", "Line 2 .* Found 2: '1::3'"),
        ("user,item,rating\nann,x,3\n\nbob,x,good\n", "Found 'good' on line 4 of ratings.csv, column 'rating'"),
        ("user,item,rating\nann,x,3\nbob,x,1_0\n", "Found '1_0' on line 3"),
        ("user,item,rating\nann,x,3\n,x,2\n", "name its row. Found no row id on line 3 of ratings.csv"),
        ("user,item,rating\nann,5,3\nbob,NA,2\n", "name its column. Found no column id on line 3"),
        ("user,item,rating\nann,x,inf\n", "must be finite. Found inf at row 'ann', column 'x'"),
        ("name,a,b\nann,1,2\nbob,3,z\n", "Found 'z' on line 3 of ratings.csv, column 'b'"),
        ("name,a,b\nann,1,2\nann,3,4\n", "Found 'ann' on line 2 of ratings.csv, column 'name'"),
        ("1.5,2,3,4,5\n1,2,3,x,5\n", "Found 'x' on line 2 of ratings.csv, column 3"),
        ("", "must have a line at least. Found none in ratings.csv"),
        ("\n \n", "must have a line at least"),
        ("user,item,rating\n", "At least one cell must be seen"),
        ("a\0b,c\n", "must be a text or Parquet file. Found binary data"),
        ("a,b,c,d,a\n1,2,3,4,5\n", "Every column must have its own label. Found 'a' more than once"),
        ('user,item,rating\nann,x,3\nbob,"' + "y" * 200_000, "must be a table of text.*a quote that isn't closed"),
    ],
)
def test_complaints(file, monkeypatch, text, sentence, size):
    monkeypatch.setattr(textfiles, "FIELDS_PER_CHUNK", size)
    with pytest.raises(DataError, match=sentence):
        observe(file(text))


def test_an_id_that_looks_missing_among_names_is_an_id(file):
    assert observe(file("user,item,rating\nDE,x,3\nNA,x,2\n")).row_labels.tolist() == ["DE", "NA"]


def test_files_that_are_not_there(tmp_path):
    with pytest.raises(DataError, match=r"nothing\.csv must exist\. Found nothing there"):
        observe(tmp_path / "nothing.csv")
    with pytest.raises(DataError, match=r"no such text must exist.*or pass an array, a sparse matrix or a frame"):
        observe("no such text")
    with pytest.raises(DataError, match=r"must be a file. Found a directory"):
        observe(tmp_path)
    with pytest.raises(DataError, match=r"must be readable. Found otherwise: File name too long"):
        observe("x" * 5000)


def test_damaged_archives(file):
    packed = gzip.compress(b"user,item,rating\n" + b"".join(b"%d,1,3\n" % n for n in range(50_000)))
    wrong_checksum = packed[:-8] + b"\0" * 8
    for content in (packed[: len(packed) // 2], b"plain text", wrong_checksum):
        with pytest.raises(DataError, match=r"ratings\.csv\.gz must be a whole gzip file\. Found it damaged"):
            observe(file(content, "ratings.csv.gz"))
