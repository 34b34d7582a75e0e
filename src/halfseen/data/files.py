"""Files: Parquet by its suffix, everything else as text, long or wide by its header or its first lines."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from halfseen.data.decimals import is_numeral, seems_numeric
from halfseen.data.frames import read_frame
from halfseen.data.headers import LongHeader, check_present, long_header
from halfseen.data.longtext import read_long
from halfseen.data.numerals import is_missing
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
    by_position = not has_header or how.numbers_columns
    names: Sequence[Any] = range(file.width) if by_position else file.sample[0]
    if how.weight_name is not None:
        check_present(how.weight_name, names)
    if not has_header and how.columns is None and how.layout != "wide" and all_look_long(file.sample):
        header: LongHeader | None = LongHeader(0, 1, 2)
    else:
        header = long_header(names, how, lambda name: seems_numeric(file, names.index(name)))
    if header is None:
        return read_wide(file, names, has_header, how)
    return read_long(file, names, header, has_header, how)


def has_header_line(file: TextFile, how: Reading) -> bool:
    """Whether the first line holds names: if the caller doesn't say, it does unless it looks like data."""
    first = file.sample[0]
    if how.header is not None:
        return how.header
    if how.columns is not None:
        return not how.numbers_columns
    if how.layout != "wide" and all_look_long(file.sample):
        return False
    if any(map(_is_no_name, first[1:])) and not _heads_an_index(file.sample):
        return False
    return _heads_an_index(file.sample) or not all(is_missing(field) or is_numeral(field) for field in first)


def looks_long(record: Record) -> bool:
    """Whether a record looks like row, column, value and perhaps a time."""
    return len(record) in (3, 4) and is_numeral(record[2]) and not any(map(_is_fraction, record[:2]))


def all_look_long(sample: Sequence[Record]) -> bool:
    """Whether the first lines look so: one alone might be the header of a table of years."""
    width = len(sample[0])
    return all(looks_long(record) for record in sample if len(record) == width)


def _is_no_name(field: str) -> bool:
    """Whether a field is a broken number, which heads no column."""
    return is_numeral(field) and _is_fraction(field)


def _is_fraction(field: str) -> bool:
    """Whether a field is a number as ids are not written, or missing."""
    return is_missing(field) or (is_numeral(field) and not field.strip().lstrip("+-").isdigit())


def _heads_an_index(sample: Sequence[Record]) -> bool:
    """Whether the first record is a header, be it of numbers: an empty corner, different names, an index below."""
    (corner, *names), *below = sample
    is_header = not corner.strip() and bool(names) and len(set(names)) == len(names) and not any(map(is_missing, names))
    return is_header and bool(below) and all(record[0].strip() for record in below)
