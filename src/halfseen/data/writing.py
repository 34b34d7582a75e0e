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

from halfseen.data.decimals import COMMA, OF_COMMAS, POINT, mark_of, pointed
from halfseen.data.drafts import moved_when_whole
from halfseen.data.labels import is_plain_integer
from halfseen.data.numerals import all_numbers, is_missing, numbers
from halfseen.data.parquet import is_parquet, write_parquet
from halfseen.errors import DataError

#: What may part the fields of a text file, by its ending; the first where nothing else is wished for.
DELIMITERS = {".csv": ",;|", ".txt": ",;|\t", ".tsv": "\t", ".tab": "\t"}


def write_table(
    path: Any,
    names: Sequence[str] | None,
    columns: Sequence[Any],
    *,
    delimiter: str | None = None,
    decimal: str = POINT,
) -> None:
    """Write columns under their names (None: without a header), to a `path` that ends in .csv, .tsv, .gz or .parquet.

    Numbers are written as short as they can be read back; text as it is; NaN and None as empty fields. The file
    appears when it is whole: it is written beside its place and then moved there.

    `delimiter` and `decimal` are those of a text file that the table comes from, whose numbers may be among the text. A
    text file gets them too, as far as its ending lets it: .tsv always has tabs, and .csv never. A Parquet file gets
    numbers.
    """
    path = Path(path)
    columns = [column.tolist() if _is_float64(column) else list(column) for column in columns]
    try:
        with moved_when_whole(path) as draft:
            _write(draft, path, names, columns, delimiter, decimal)
    except OSError as error:
        raise DataError(
            f"The place of a table must be writable, with room enough. Could not write {str(path)!r}: "
            f"{error.strerror or error}. Choose another place; nothing was left there."
        ) from None


def _write(
    draft: Path,
    path: Path,
    names: Sequence[str] | None,
    columns: list[list[Any]],
    delimiter: str | None,
    decimal: str,
) -> None:
    if is_parquet(path):
        names = [str(number) for number in range(len(columns))] if names is None else names
        pairs = zip(names, columns, strict=True)
        write_parquet(draft, {name: _typed(_with_points(column, decimal)) for name, column in pairs})
    else:
        _write_text(draft, names, columns, _delimiter(path, delimiter, decimal), decimal, path.suffix == ".gz")


def _with_points(column: list[Any], decimal: str) -> list[Any]:
    """A column whose numbers have no decimal commas; text among which there is something else stays as it is."""
    return (
        [pointed(one) if isinstance(one, str) else one for one in column]
        if decimal == mark_of([column]) == COMMA
        else column
    )


def check_ending(path: Any) -> None:
    """Refuse a format that tables aren't written in."""
    path = Path(path)
    if not is_parquet(path):
        _delimiter(path)


def _is_float64(column: Any) -> bool:
    return isinstance(column, np.ndarray) and column.dtype == np.float64


def _write_text(
    draft: Path, names: Sequence[str] | None, columns: list[list[Any]], delimiter: str, decimal: str, zipped: bool
) -> None:
    with _text(draft, zipped) as file:
        writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
        if names is not None:
            writer.writerow(names)
        writer.writerows(zip(*([_field(value, decimal) for value in column] for column in columns), strict=True))


def _delimiter(path: Path, wished: str | None = None, decimal: str = POINT) -> str:
    suffix = Path(path.stem).suffix if path.suffix == ".gz" else path.suffix
    if suffix.lower() not in DELIMITERS:
        raise DataError(
            f"A table is written as .csv, .tsv, .csv.gz, .tsv.gz or .parquet. Found {path.name!r}. Choose one of these."
        )
    known = DELIMITERS[suffix.lower()]
    if wished is not None and wished in known:
        return wished
    return OF_COMMAS if decimal == COMMA and OF_COMMAS in known else known[0]


def _field(value: Any, decimal: str) -> str:
    if isinstance(value, str):
        return value
    if is_missing(value):
        return ""
    return str(value).replace(POINT, decimal) if isinstance(value, (float, np.floating)) else str(value)


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
