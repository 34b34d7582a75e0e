"""Files: Parquet by its suffix, everything else as text, long or wide by its header or its first lines."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from halfseen.data.frames import read_frame
from halfseen.data.headers import LongHeader, check_present, long_header
from halfseen.data.longtext import read_long
from halfseen.data.numerals import is_missing, is_number
from halfseen.data.observed import Observed
from halfseen.data.parquet import is_parquet, read_parquet
from halfseen.data.reading import Reading
from halfseen.data.textfiles import Record, TextFile, complaints, read_text
from halfseen.data.widetext import read_wide


def read_file(path: Path, how: Reading) -> Observed:
    """A Parquet or text file."""
    if is_parquet(path):
        with complaints(path):
            return read_frame(read_parquet(path), how)
    return read_text(path, lambda file: _read_text_table(file, how))


def _read_text_table(file: TextFile, how: Reading) -> Observed:
    has_header = has_header_line(file, how)
    names: Sequence[Any] = file.sample[0] if has_header else range(file.width)
    if how.weight_name is not None:
        check_present(how.weight_name, names)
    if not has_header and how.columns is None and how.layout != "wide" and looks_long(file.sample[0]):
        header: LongHeader | None = LongHeader(0, 1, 2)
    else:
        header = long_header(names, how, lambda name: _seems_numeric(file, names.index(name)))
    if header is None:
        return read_wide(file, names, has_header, how)
    return read_long(file, names, header, has_header, how)


def has_header_line(file: TextFile, how: Reading) -> bool:
    """Whether the first line holds names: it does unless it looks like data."""
    first = file.sample[0]
    if how.columns is not None:
        return not all(isinstance(name, int) for name in how.columns)
    if how.layout != "wide" and looks_long(first):
        return False
    return _counts_columns(first) or not all(is_missing(field) or is_number(field) for field in first)


def looks_long(record: Record) -> bool:
    """Whether a record looks like row, column, value and perhaps a time."""
    return len(record) in (3, 4) and is_number(record[2]) and not any(map(_is_fraction, record[:2]))


def _is_fraction(field: str) -> bool:
    """Whether a field is a number as ids are not written, or missing."""
    return is_missing(field) or (is_number(field) and not field.strip().lstrip("+-").isdigit())


def _counts_columns(record: Record) -> bool:
    """Whether a record is the header that pandas writes for columns without names: an empty corner, 0, 1, 2, ..."""
    return record[0] == "" and len(record) > 1 and record[1:] == [str(number) for number in range(len(record) - 1)]


def _seems_numeric(file: TextFile, position: int) -> bool:
    fields = [record[position] for record in file.sample[1:] if len(record) > position]
    return any(map(is_number, fields))
