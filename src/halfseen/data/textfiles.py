"""Text files as records: decompressed, decoded, split, and every complaint with its line number."""

from __future__ import annotations

import csv
import gzip
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Protocol, TextIO, TypeVar

from halfseen.errors import DataError

Record = list[str]
Result = TypeVar("Result")

BLANKS = " "
DELIMITERS = ("::", "\t", ";", "|", ",", BLANKS)  # of equally good ones the first wins
SAMPLE_RECORDS = 20
FIELDS_PER_CHUNK = 1 << 13  # small enough that a chunk stays in the processor's cache


class Records(Protocol):
    """An iterator over records that knows the number of the line it last read; csv.reader is one."""

    @property
    def line_num(self) -> int: ...

    def __iter__(self) -> Iterator[Record]: ...

    def __next__(self) -> Record: ...


class SplitRecords:
    """Records split at "::" or at runs of blanks, which csv.reader can't do; these have no quotes."""

    def __init__(self, lines: TextIO, delimiter: str) -> None:
        self.lines, self.line_num = lines, 0
        self.delimiter = None if delimiter == BLANKS else delimiter

    def __iter__(self) -> SplitRecords:
        return self

    def __next__(self) -> Record:
        line = next(self.lines)
        self.line_num += 1
        return line.strip("\r\n").split(self.delimiter) if line.strip() else []


def records_of(lines: TextIO, delimiter: str) -> Records:
    """The records of an open file."""
    if len(delimiter) > 1 or delimiter == BLANKS:
        return SplitRecords(lines, delimiter)
    return csv.reader(lines, delimiter=delimiter, skipinitialspace=delimiter != "\t")


def is_blank(record: Record) -> bool:
    """Whether a record is a blank line."""
    return len(record) < 2 and not (record and record[0].strip())


@dataclass(frozen=True)
class TextFile:
    """A text file whose encoding and delimiter are known; `sample` holds its first records."""

    path: Path
    encoding: str
    delimiter: str
    sample: list[Record]

    @property
    def width(self) -> int:
        """How many fields every record must have."""
        return len(self.sample[0])

    def chunks(self, has_header: bool) -> Iterator[list[Record]]:
        """Lists of records, all of the right width, without blank lines and without the header."""
        standard = "header" if has_header else "first line"
        with opened(self.path, self.encoding) as lines:
            records = (record for record in records_of(lines, self.delimiter) if not is_blank(record))
            first = sum(1 for _ in islice(records, int(has_header)))
            while chunk := list(islice(records, max(1, FIELDS_PER_CHUNK // self.width))):
                self._check_widths(chunk, first, standard)
                first += len(chunk)
                yield chunk

    def _check_widths(self, chunk: list[Record], first: int, standard: str) -> None:
        if set(map(len, chunk)) == {self.width}:
            return
        wrong = next(position for position, record in enumerate(chunk) if len(record) != self.width)
        text = self.delimiter.join(chunk[wrong])
        raise DataError(
            f"Line {self.line_of(first + wrong)} of {self.path.name} must have {self.width} fields, as its {standard} "
            f"has. Found {len(chunk[wrong])}: {text[:200]!r}. Mend or delete the line."
        )

    def line_of(self, number: int) -> int:
        """The line on which a record ends, found by reading once more: only errors ask."""
        with opened(self.path, self.encoding) as lines:
            records = records_of(lines, self.delimiter)
            next(islice((record for record in records if not is_blank(record)), number, None), None)
            return records.line_num


def read_text(path: Path, read: Callable[[TextFile], Result]) -> Result:
    """Hand the file to `read`, decoded as UTF-8, or once more as Latin-1 if it isn't UTF-8 to its end."""
    with complaints(path):
        encoding = _marked_encoding(path)
        try:
            return read(_inspected(path, encoding))
        except UnicodeDecodeError:
            return read(_inspected(path, "latin-1"))


def _marked_encoding(path: Path) -> str:
    with opened(path, None) as raw:
        return "utf-16" if raw.read(2) in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"


def _inspected(path: Path, encoding: str) -> TextFile:
    with opened(path, encoding) as lines:
        start = list(islice((line for line in lines if line.strip()), SAMPLE_RECORDS))
    if not start:
        raise DataError(f"A data file must have a line at least. Found none in {path.name}. Check the path.")
    if any("\0" in line for line in start):
        raise DataError(f"{path.name} must be a text or Parquet file. Found binary data. Save it as CSV.")
    delimiter = _sniffed(start)
    return TextFile(path, encoding, delimiter, _split(start, delimiter))


def _sniffed(start: list[str]) -> str:
    """The delimiter that splits most of the lines into as many fields as the first, and the first into several."""

    def agreeing(delimiter: str) -> int:
        widths = [len(record) for record in _split(start, delimiter)]
        return widths.count(widths[0]) if widths[0] > 1 else 0

    return max(DELIMITERS, key=agreeing) if any(map(agreeing, DELIMITERS)) else ","


def _split(start: list[str], delimiter: str) -> list[Record]:
    return [record for record in records_of(iter(start), delimiter) if not is_blank(record)]  # type: ignore[arg-type]


@contextmanager
def opened(path: Path, encoding: str | None) -> Iterator[TextIO]:
    """The file, decompressed if need be; bytes if no encoding is given."""
    with path.open("rb") as raw:
        zipped = path.suffix == ".gz" or raw.read(2) == b"\x1f\x8b"
    mode = "rb" if encoding is None else "rt"
    newline = None if encoding is None else ""  # csv wants line ends as they are
    opener = gzip.open if zipped else open
    with opener(path, mode, encoding=encoding, newline=newline) as lines:
        yield lines  # type: ignore[misc]


@contextmanager
def complaints(path: Path) -> Iterator[None]:
    """Turn what may go wrong with a file into sentences."""
    try:
        yield
    except FileNotFoundError:
        raise DataError(
            f"The file {path} must exist. Found nothing there. "
            "Check the path, or pass an array, a sparse matrix or a frame."
        ) from None
    except IsADirectoryError:
        raise DataError(f"{path} must be a file. Found a directory. Name a file in it.") from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(
            f"{path.name} must be a whole gzip file. Found it damaged: {error}. Copy or download it again."
        ) from None
    except csv.Error as error:
        raise DataError(
            f"{path.name} must be a table of text. Found otherwise: {error}. Look for a quote that isn't closed."
        ) from None
    except OSError as error:
        raise DataError(f"{path.name} must be readable. Found otherwise: {error.strerror}. Check the path.") from None
