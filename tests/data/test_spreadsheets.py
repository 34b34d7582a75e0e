"""Excel workbooks, made here part by part."""

import gzip
from functools import partial

import pytest

from halfseen.data.columns import sheet_columns
from halfseen.data.spreadsheets import read_sheet
from halfseen.errors import DataError
from tests.data.workbooks import MAIN, STRICT, parts_of, write_workbook


@pytest.fixture
def workbook(tmp_path):
    return partial(write_workbook, tmp_path / "book.xlsx")


@pytest.mark.parametrize("namespace", [MAIN, STRICT], ids=["transitional", "strict"])
@pytest.mark.parametrize("target", ["worksheets/sheet1.xml", "/xl/worksheets/sheet1.xml"])
def test_every_kind_of_cell(workbook, namespace, target):
    sheet = read_sheet(workbook(parts_of(namespace=namespace, target=target)))
    assert sheet.names == ["name", "size", "note"]
    assert sheet.column("name") == ["Ann & Bob", "x", "last"]
    assert sheet.column("size") == ["1.5E-2", "", "-7"]
    assert sheet.column("note") == ["", "1", ""]
    assert sheet.rows == [2, 4, 6]


def test_a_workbook_of_numbers_needs_no_texts(workbook):
    parts = parts_of("<row><c><v>2019</v></c></row><row><c><v>0.25</v></c></row>")
    del parts["xl/sharedStrings.xml"]
    assert sheet_columns(workbook(parts))["2019"].tolist() == [0.25]


def test_packed_once_more(workbook, tmp_path):
    packed = tmp_path / "book.xlsx.gz"
    packed.write_bytes(gzip.compress(workbook(parts_of()).read_bytes()))
    assert read_sheet(packed).names == ["name", "size", "note"]


def test_numbers_are_asked_for_by_name(workbook):
    path = workbook(parts_of())
    assert sheet_columns(path, ["size"])["size"].tolist()[::2] == [0.015, -7.0]
    with pytest.raises(DataError, match=r"Found 'Ann & Bob' on row 2 of book\.xlsx, column 'name'"):
        sheet_columns(path, ["size", "name"])
    with pytest.raises(DataError, match=r"Found no 'colour'. The table has: name, size, note"):
        sheet_columns(path, ["colour"])


@pytest.mark.parametrize(
    ("part", "content", "found"),
    [
        ("xl/worksheets/sheet1.xml", None, "There is no item named 'xl/worksheets/sheet1.xml'"),
        ("xl/workbook.xml", None, "There is no item named 'xl/workbook.xml'"),
        ("xl/workbook.xml", f"<workbook {MAIN}><sheets/></workbook>", "it has no sheet"),
        ("xl/workbook.xml", f"<workbook {MAIN}><sheets><sheet/></sheets></workbook>", "None"),
        ("xl/worksheets/sheet1.xml", f"<worksheet {MAIN}><sheetData><row", "unclosed token"),
        ("xl/sharedStrings.xml", f"<sst {MAIN}><si><t>name</t></si></sst>", "list index out of range"),
    ],
)
def test_broken_workbooks(workbook, part, content, found):
    parts = parts_of()
    del parts[part]
    if content is not None:
        parts[part] = content
    with pytest.raises(DataError, match=f"book.xlsx must be a whole Excel workbook .*Found otherwise: .*{found}"):
        read_sheet(workbook(parts))


def test_what_is_no_workbook(workbook, tmp_path):
    path = workbook(parts_of())
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(DataError, match=r"Found otherwise: File is not a zip file. Copy or download it again"):
        read_sheet(path)
    with pytest.raises(DataError, match=r"absent.xlsx must exist"):
        read_sheet(tmp_path / "absent.xlsx")


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ("", "must have names in its first row. Found book.xlsx empty"),
        (
            "<row><c><v>1</v></c></row><row r='8'><c r='A8'><v>2</v></c><c r='C8'><v>77</v></c></row>",
            "Row 8 of book.xlsx must have cells only in columns that the first row names. Found '77' in another",
        ),
        ("<row><c><v>1</v></c><c><v>1</v></c></row>", "Every column must have its own label. Found '1' more than once"),
    ],
)
def test_sheets_that_are_no_tables(workbook, rows, sentence):
    with pytest.raises(DataError, match=sentence):
        read_sheet(workbook(parts_of(rows)))
