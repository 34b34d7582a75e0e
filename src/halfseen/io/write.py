"""Files that appear whole or not at all, and tables written to them as text or Parquet."""

from __future__ import annotations

import csv
import errno
import gzip
import io
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from halfseen.errors import DataError
from halfseen.io.numbers import COMMA, DECIMAL_COMMA, POINT, NotANumber, is_amount, is_missing, numbers
from halfseen.io.tables import FilePath
from halfseen.labels import is_plain_integer

#: Separators of text files by their endings; the first is the usual one.
SEPARATORS = {
    ".csv": ",;|", ".txt": ",;|\t ", ".dat": "\t,;| ", ".data": ",;|\t ", ".tsv": "\t", ".tab": "\t",
}  # fmt: skip
PARQUET = (".parquet", ".pq")
UMASK = os.umask(0)  # which can only be read by setting it
os.umask(UMASK)


@contextmanager
def atomic_writes(*paths: Path | str) -> Iterator[list[Path]]:
    """Temporary files beside `paths` to write to; at the end all are moved to their places, or none after an error.

    Links are followed, and a file that is replaced keeps its permissions. If a later move fails, earlier ones are
    undone; only a process killed between two moves leaves new files beside old ones.
    """
    targets = [Path(os.path.realpath(path)) for path in paths]
    for target, path in zip(targets, paths, strict=True):
        if not Path(path).name or target.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    drafts: list[Path] = []
    try:
        for target in targets:
            handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent)
            os.close(handle)
            drafts.append(Path(name))
        yield drafts
        for draft, target in zip(drafts, targets, strict=True):
            with draft.open("rb") as file:
                os.fsync(file.fileno())
            draft.chmod(target.stat().st_mode & 0o7777 if target.exists() else 0o666 & ~UMASK)
        moved: list[tuple[Path, Path | None]] = []
        try:
            for draft, target in zip(list(drafts), targets, strict=True):
                old = draft.with_suffix(".old") if target.exists() and target != targets[-1] else None
                if old is not None:
                    drafts.append(old)
                    try:
                        os.link(target, old)
                    except OSError:  # a file system without links
                        shutil.copy2(target, old)
                os.replace(draft, target)
                moved.append((target, old))
        except BaseException:
            for target, old in moved:
                target.unlink() if old is None else os.replace(old, target)
            raise
    finally:
        for draft in drafts:
            draft.unlink(missing_ok=True)


@contextmanager
def atomic_write(path: Path | str) -> Iterator[Path]:
    """Temporary file beside `path` to write to, moved to its place when it is complete."""
    with atomic_writes(path) as (draft,):
        yield draft


@contextmanager
def write_errors(path: FilePath) -> Iterator[None]:
    """Turn errors of writing a table into `DataError`."""
    try:
        yield
    except OSError as error:
        must = f"A table must have a writable place with room enough. Could not write {str(path)!r}: "
        remedy = "Choose another place; nothing was left there."
        raise DataError(f"{must}{error.strerror or error}.", remedy=remedy) from None


def write_table(
    path: FilePath,
    names: Sequence[str] | None,
    columns: Sequence[Any],
    *,
    delimiter: str | None = None,
    decimal: str = POINT,
    thousands: str | None = None,
) -> None:
    """Write columns to a file, atomically.

    Numbers are written with as few digits as reproduce them, text as it is, NaN and None as empty fields.

    Parameters
    ----------
    path : str or path-like
        A file ending in .csv, .tsv, .txt, .dat, also with .gz, or in .parquet.
    names : sequence of str or None
        Names of the columns; None for a file without a header.
    columns : sequence of array-like
        The columns.
    delimiter : str, default=None
        Separator of a text file, as far as its ending allows it: .tsv has tabs, .csv never.
    decimal, thousands : str, default="." and None
        Marks of the numbers among texts, and decimal mark of a text file. A Parquet file gets numbers.
    """
    path = Path(path)
    check_ending(path)
    with write_errors(path), atomic_write(path) as draft:
        write_draft(draft, path, names, columns, delimiter, decimal, thousands)


@contextmanager
def write_blocks(path: FilePath, names: Sequence[str]) -> Iterator[Callable[[Sequence[np.ndarray]], None]]:
    """Write a table block by block, atomically: yields a function that takes the columns of the next block as arrays.

    The columns have the same types in every block; those of objects are text.

    Parameters
    ----------
    path : str or path-like
        As for `write_table`.
    names : sequence of str
        Names of the columns.
    """
    path = Path(path)
    check_ending(path)
    with write_errors(path), atomic_write(path) as draft:
        if is_parquet(path):
            import pyarrow.parquet as pq

            writer: Any = None

            def write_arrow(columns: Sequence[np.ndarray]) -> None:
                nonlocal writer
                arrays = [pa.array(one, pa.string() if one.dtype == object else None) for one in columns]
                table = pa.table(dict(zip(names, arrays, strict=True)))
                writer = pq.ParquetWriter(draft, table.schema) if writer is None else writer
                writer.write_table(table)

            try:
                yield write_arrow
                if writer is None:
                    write_arrow([np.empty(0)] * len(names))
            finally:
                if writer is not None:
                    writer.close()
            return
        with open_draft(draft, path) as raw, io.TextIOWrapper(raw, encoding="utf-8", newline="") as file:
            lines = csv.writer(file, delimiter=separator_for(path), lineterminator="\n")
            lines.writerow(names)

            def write_text(columns: Sequence[np.ndarray]) -> None:
                lines.writerows(zip(*map(_to_list, columns), strict=True))

            yield write_text


def write_draft(
    draft: Path,
    path: Path,
    names: Sequence[str] | None,
    columns: Sequence[Any],
    delimiter: str | None,
    decimal: str,
    thousands: str | None = None,
) -> None:
    """Write columns to `draft` in the format of `path`."""
    if is_parquet(path):
        import pyarrow.parquet as pq

        names = [str(number) for number in range(len(columns))] if names is None else list(map(str, names))
        arrays = [
            column if isinstance(column, (pa.Array, pa.ChunkedArray)) else _typed(column, decimal, thousands)
            for column in columns
        ]
        pq.write_table(pa.table(dict(zip(names, arrays, strict=True))), draft)
        return
    with open_draft(draft, path) as raw, io.TextIOWrapper(raw, encoding="utf-8", newline="") as file:
        separator = separator_for(path, delimiter, decimal)
        writer = csv.writer(file, delimiter=separator, lineterminator="\n")
        if names is not None:
            writer.writerow(names)

        def field(value: Any) -> str:
            if isinstance(value, str) or not is_missing(value):
                is_float = isinstance(value, (float, np.floating))
                return str(value).replace(POINT, decimal) if is_float else str(value)
            return ""

        writer.writerows(zip(*(map(field, _to_list(column)) for column in columns), strict=True))


def is_parquet(path: Path) -> bool:
    """Whether a file is written as Parquet."""
    return path.suffix.lower() in PARQUET


def check_ending(path: FilePath) -> None:
    """Refuse a format that tables are not written in."""
    if not is_parquet(Path(path)):
        separator_for(Path(path))


def separator_for(path: Path, asked: str | None = None, decimal: str = POINT) -> str:
    """Separator of a text file: the one asked for, if its ending allows it, else the usual one."""
    suffix = Path(path.stem).suffix if path.suffix == ".gz" else path.suffix
    allowed = SEPARATORS.get(suffix.lower())
    if allowed is None:
        must = "A table is written as .csv, .tsv, .txt, .dat, also with .gz, or .parquet."
        raise DataError(must, found=repr(path.name), remedy="Choose one of these.")
    if asked is not None and len(asked) == 1 and asked in allowed:
        return asked
    return ";" if decimal == COMMA and ";" in allowed else allowed[0]


@contextmanager
def open_draft(draft: Path, path: Path) -> Iterator[Any]:
    """Open a draft for writing bytes, compressed if `path` ends in .gz: the same contents give the same file."""
    with draft.open("wb") as raw:
        if path.suffix == ".gz":
            with gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as packed:  # without name and time
                yield packed
        else:
            yield raw


def _to_list(column: Any) -> list[Any]:
    """A column as a list; floats of float64 arrays as Python's, which have the shortest spelling."""
    if isinstance(column, (pa.Array, pa.ChunkedArray)):
        return column.to_pylist()
    is_float64 = isinstance(column, np.ndarray) and column.dtype == np.float64
    return column.tolist() if is_float64 else list(column)


def _typed(column: Any, decimal: str, thousands: str | None) -> Any:
    """A column of one type for Parquet: numbers written as text become integers or floats.

    Codes such as 007 stay text, as they do in labels.
    """
    values = _to_list(column)
    present = [value for value in values if not is_missing(value)]
    texts = [value for value in present if isinstance(value, str)]
    if not present:
        return pa.nulls(len(values))
    if thousands is not None and all(map(is_amount, texts)):
        values = [value.replace(thousands, "") if isinstance(value, str) else value for value in values]
        texts = [text.replace(thousands, "") for text in texts]
        present = [value for value in values if not is_missing(value)]
    if decimal == COMMA and texts and all(map(is_amount, texts)):
        values = [
            value.replace(COMMA, POINT) if isinstance(value, str) and DECIMAL_COMMA.fullmatch(value.strip()) else value
            for value in values
        ]
        texts = [value for value in values if isinstance(value, str) and not is_missing(value)]
    if texts and all(map(is_plain_integer, texts)) and len(texts) == len(present):
        values = [None if is_missing(value) else int(value) for value in values]
    elif texts:
        try:
            are_codes = all(re.fullmatch(r"\s*[0-9]+\s*", text) for text in texts) and len(texts) == len(present)
            if not are_codes:  # plain integers aside, some are padded with zeros
                return pa.array(numbers(values), from_pandas=True)
        except NotANumber:
            pass
        return pa.array([None if value is None else str(value) for value in values], pa.string())
    are_integers = all(isinstance(value, int) for value in values if not is_missing(value))
    for kind in (None, pa.uint64()) if are_integers else (None,):  # the second for those beyond 2**63
        try:
            return pa.array(values, kind, from_pandas=True)
        except (pa.ArrowException, OverflowError):
            pass
    try:  # integers beside booleans, and beyond 64 bits
        return pa.array([None if is_missing(value) else float(value) for value in values])
    except (TypeError, ValueError):
        return pa.array([None if is_missing(value) else str(value) for value in values])
