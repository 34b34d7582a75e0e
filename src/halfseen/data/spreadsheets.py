"""Excel workbooks (.xlsx): their first sheet as a table, read with the standard library alone."""

from __future__ import annotations

import posixpath
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element
from zipfile import BadZipFile, ZipFile

from halfseen.data.labels import as_labels
from halfseen.data.tables import Table
from halfseen.data.textfiles import complaints, opened
from halfseen.errors import DataError

Row = dict[int, str]  # the text of each cell that isn't empty, by the number of its column

WORKBOOK = "xl/workbook.xml"
RELATIONS = "xl/_rels/workbook.xml.rels"
TEXTS = "xl/sharedStrings.xml"
BROKEN = (BadZipFile, KeyError, IndexError, ValueError, RuntimeError, ElementTree.ParseError, zlib.error)


@dataclass(frozen=True)
class Sheet(Table):
    """A sheet as it was read; `rows` are the numbers, from 1, of the sheet's rows that the records stand in."""

    rows: list[int]


def read_sheet(path: Any) -> Sheet:
    """The first sheet of a workbook: names in its first row, then one record a row; empty rows are left out.

    Cells are the text that is stored: numbers as they are written in the file, dates as their day numbers, formulas
    as the value they last had, empty cells as "".
    """
    path = Path(path)
    with complaints(path), opened(path, None) as file:
        packed = file.read()
    with _complaints_of_workbooks(path), ZipFile(BytesIO(packed)) as book:  # type: ignore[arg-type]
        rows = _rows(_part(book, _first_sheet(book)), _texts(book))
    return _as_table(rows, path)


@contextmanager
def _complaints_of_workbooks(path: Path) -> Iterator[None]:
    try:
        yield
    except BROKEN as error:
        raise DataError(
            f"{path.name} must be a whole Excel workbook (.xlsx). Found otherwise: {error}. "
            "Copy or download it again, or save it as CSV."
        ) from None


def _part(book: ZipFile, name: str) -> Element:
    return ElementTree.fromstring(book.read(name))


def _first_sheet(book: ZipFile) -> str:
    """The name of the part that holds the first sheet; the workbook knows it by an id."""
    sheet = _part(book, WORKBOOK).find("{*}sheets/{*}sheet")
    if sheet is None:
        raise ValueError("it has no sheet")
    wanted = next((value for key, value in sheet.items() if key.endswith("}id")), None)
    targets = {relation.get("Id"): relation.get("Target", "") for relation in _part(book, RELATIONS)}
    return posixpath.normpath(posixpath.join("/xl", targets[wanted])).lstrip("/")


def _texts(book: ZipFile) -> list[str]:
    """The texts that cells refer to by number; a workbook of numbers has none."""
    return [_text(one) for one in _part(book, TEXTS)] if TEXTS in book.namelist() else []


def _text(one: Element) -> str:
    """A plain text, or one in several styles; how it is pronounced (rPh) is left out."""
    parts = [*one.iterfind("{*}t"), *one.iterfind("{*}r/{*}t")]
    return "".join(part.text or "" for part in parts)


def _rows(sheet: Element, texts: list[str]) -> dict[int, Row]:
    """The rows that hold anything, by their numbers; a row or cell that doesn't say where it is follows the last."""
    rows: dict[int, Row] = {}
    number = 0
    for row in sheet.iterfind("{*}sheetData/{*}row"):
        number = int(row.get("r", number + 1))
        if cells := _cells(row, texts):
            rows[number] = cells
    return rows


def _cells(row: Element, texts: list[str]) -> Row:
    cells: Row = {}
    column = -1
    for cell in row.iterfind("{*}c"):
        reference = cell.get("r")
        column = column + 1 if reference is None else _column_number(reference)
        if text := _cell_text(cell, texts):
            cells[column] = text
    return cells


def _column_number(reference: str) -> int:
    """A1 -> 0, Z9 -> 25, AA1 -> 26."""
    number = 0
    for letter in reference.rstrip("0123456789"):
        number = 26 * number + int(letter, 36) - 9
    return number - 1


def _cell_text(cell: Element, texts: list[str]) -> str:
    kind = cell.get("t")
    if kind == "inlineStr":
        inline = cell.find("{*}is")
        return "" if inline is None else _text(inline)
    stored = cell.findtext("{*}v") or ""
    return texts[int(stored)] if kind == "s" and stored else stored


def _as_table(rows: dict[int, Row], path: Path) -> Sheet:
    if not rows:
        raise DataError(f"A sheet must have names in its first row. Found {path.name} empty. Check the path.")
    header = rows.pop(min(rows))
    for number, row in rows.items():
        if not row.keys() <= header.keys():
            extra = next(text for column, text in row.items() if column not in header)
            raise DataError(
                f"Row {number} of {path.name} must have cells only in columns that the first row names. "
                f"Found {extra[:200]!r} in another. Name the column, or clear the cell."
            )
    names = [header[column] for column in sorted(header)]
    as_labels(names, "column", len(names))
    cells = [[row.get(column, "") for row in rows.values()] for column in sorted(header)]
    return Sheet(names, cells, True, list(rows))
