"""Tables written to text and Parquet files, whole or not at all."""

from __future__ import annotations

import csv
import gzip
import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from halfseen.data.drafts import moved_when_whole
from halfseen.data.labels import is_plain_integer
from halfseen.data.numerals import all_numbers, is_missing, numbers
from halfseen.data.parquet import is_parquet, write_parquet
from halfseen.errors import DataError

DELIMITERS = {".csv": ",", ".txt": ",", ".tsv": "\t", ".tab": "\t"}


def write_table(path: Any, names: Sequence[str] | None, columns: Sequence[Any]) -> None:
    """Write columns under their names (None: without a header) as .csv, .tsv, either with .gz, or .parquet.

    Numbers are written as short as they can be read back; text as it is; NaN and None as empty fields. The file
    appears when it is whole: it is written beside its place and then moved there.
    """
    path = Path(path)
    columns = [column.tolist() if _is_float64(column) else list(column) for column in columns]
    try:
        with moved_when_whole(path) as draft:
            _write(draft, path, names, columns)
    except OSError as error:
        raise DataError(
            f"The place of a table must be writable, with room enough. Could not write {str(path)!r}: "
            f"{error.strerror or error}. Choose another place; nothing was left there."
        ) from None


def _write(draft: Path, path: Path, names: Sequence[str] | None, columns: list[list[Any]]) -> None:
    if is_parquet(path):
        names = [str(number) for number in range(len(columns))] if names is None else names
        write_parquet(draft, {name: _typed(column) for name, column in zip(names, columns, strict=True)})
    else:
        _write_text(draft, path, names, columns)


def check_ending(path: Any) -> None:
    """Refuse a format that tables aren't written in."""
    path = Path(path)
    if not is_parquet(path):
        _delimiter(path)


def _is_float64(column: Any) -> bool:
    return isinstance(column, np.ndarray) and column.dtype == np.float64


def _write_text(draft: Path, path: Path, names: Sequence[str] | None, columns: list[list[Any]]) -> None:
    with _text(draft, zipped=path.suffix == ".gz") as file:
        writer = csv.writer(file, delimiter=_delimiter(path), lineterminator="\n")
        if names is not None:
            writer.writerow(names)
        writer.writerows(zip(*(map(_field, column) for column in columns), strict=True))


def _delimiter(path: Path) -> str:
    suffix = Path(path.stem).suffix if path.suffix == ".gz" else path.suffix
    if suffix.lower() not in DELIMITERS:
        raise DataError(
            f"A table is written as .csv, .tsv, .csv.gz, .tsv.gz or .parquet. Found {path.name!r}. Choose one of these."
        )
    return DELIMITERS[suffix.lower()]


def _field(value: Any) -> str:
    return value if isinstance(value, str) else "" if is_missing(value) else str(value)


def _typed(column: list[Any]) -> Any:
    """A column of one type, as Parquet wants it: numbers written as text become numbers again."""
    present = [value for value in column if value is not None]
    if all(isinstance(value, str) for value in present):
        return _typed_text(column)
    if any(isinstance(value, (str, float, np.floating)) for value in present) and all_numbers(present):
        return numbers(column)
    if any(isinstance(value, str) for value in present):
        return [None if value is None else str(value) for value in column]
    return column


def _typed_text(column: list[Any]) -> Any:
    """Integers to the last digit, other numbers as floats; ids such as 007 stay text, as they do in labels."""
    there = [value for value in column if not is_missing(value)]
    if there and all(map(is_plain_integer, there)):
        return [None if is_missing(value) else int(value) for value in column]
    padded = any(re.match(r"[+-]?0[0-9]", value.strip()) for value in there)
    return numbers(column) if all_numbers(column) and not padded else column


@contextmanager
def _text(draft: Path, zipped: bool) -> Iterator[TextIO]:
    with draft.open("wb") as raw:
        # No name and no time inside the archive: the same table gives the same bytes.
        binary: Any = gzip.GzipFile("", "wb", fileobj=raw, mtime=0) if zipped else raw
        with io.TextIOWrapper(binary, encoding="utf-8", newline="") as file:
            yield file
