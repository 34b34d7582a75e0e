"""Text files: inferring separator, encoding and comments from the first lines, and reading with Arrow.

Arrow reads the fields as strings, on all processors. Only when it fails is the file read again, slowly, to name the
broken line.
"""

from __future__ import annotations

import codecs
import csv
import io
import mmap
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.csv as pa_csv

from halfseen.errors import DataError, ParameterError

Record = list[str]
#: Called with the bytes read so far and the size of the file.
Progress = Callable[[int, int], None]

BLANKS = " "  # runs of blanks and tabs
SEPARATORS = ("::", "\t", ";", "|", ",", BLANKS)  # of equally good ones the first wins
UNIT = "\x1f"  # replaces a separator of several characters for Arrow
SAMPLE_LINES, SAMPLE_CHARACTERS = 100, 1 << 20
BLOCK = 1 << 20
LARGEST_BLOCK = (1 << 31) - 1
#: First bytes of compressed files, and what Arrow calls the compression.
COMPRESSED = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\x28\xb5\x2f\xfd": "zstd", b"\x04\x22\x4d\x18": "lz4"}
ZIP = b"PK\x03\x04"

csv.field_size_limit((1 << 31) - 1)  # a table of 20,000 columns is one field under a wrong separator


@contextmanager
def file_errors(path: Path) -> Iterator[None]:
    """Turn errors of reading a file into `DataError`."""
    try:
        yield
    except FileNotFoundError:
        must, remedy = f"The file {path} must exist.", "Check the path, or pass an array, a sparse matrix or a frame."
        raise DataError(must, found="nothing there", remedy=remedy, remedy_cli="Check the path.") from None
    except IsADirectoryError:
        remedy = f'Name a file, or files: "{path}/*.csv".'
        raise DataError(f"{path} must be a file.", found="a directory", remedy=remedy) from None
    except (EOFError, zipfile.BadZipFile) as error:
        must = f"{path.name} must be a whole file."
        raise DataError(must, found=f"it damaged: {error}", remedy="Download or copy it again.") from None
    except csv.Error as error:
        must = f"{path.name} must be a table of text."
        raise DataError(must, found=f"otherwise: {error}", remedy="Look for a quote that is not closed.") from None
    except OSError as error:
        if error.strerror is None:  # Arrow's own, of a damaged archive
            must = f"{path.name} must be a whole compressed file."
            raise DataError(must, found=f"it damaged: {error}", remedy="Download or copy it again.") from None
        found = f"otherwise: {error.strerror}"
        raise DataError(f"{path.name} must be readable.", found=found, remedy="Check the path.") from None


@contextmanager
def open_bytes(path: Path) -> Iterator[Any]:
    """Open a file for reading, decompressed if its first bytes say so."""
    with path.open("rb") as raw:
        head = raw.read(4)
        raw.seek(0)
        compression = next((name for magic, name in COMPRESSED.items() if head.startswith(magic)), None)
        if compression is not None:
            with pa.CompressedInputStream(pa.OSFile(str(path)), compression) as unpacked:
                yield unpacked
        elif head == ZIP:
            with zipfile.ZipFile(raw) as archive:
                inside = [one for one in archive.namelist() if not one.endswith("/") and not one.startswith("__MACOSX")]
                if len(inside) != 1:
                    must, remedy = "A zip archive must hold one table.", "Unpack it, and name the file."
                    raise DataError(must, found=f"{len(inside)} files", where=f"in {path.name}", remedy=remedy)
                with archive.open(inside[0]) as unpacked:
                    yield unpacked
        else:
            yield raw


@dataclass
class TextFile:
    """A text file whose encoding and separator are known."""

    path: Path
    encoding: str
    separator: str
    sample: list[Record]  # the first records, the header among them
    comment: str | None = None
    skip: int = 0  # physical lines above the records: an Excel line `sep=;`, comments
    may_have_quotes: bool = True
    quotes_after_blanks: bool = False
    encoding_is_given: bool = False

    @property
    def width(self) -> int:
        """Number of fields that every record must have."""
        return len(self.sample[0])

    @property
    def is_plain(self) -> bool:
        """Whether Arrow can read the bytes as they are."""
        usual = self.encoding == "utf-8-sig" and has_quotes(self.separator)
        return usual and self.comment is None and not self.quotes_after_blanks

    def records(self) -> Iterator[tuple[int, Record]]:
        """All records with the numbers of their last lines, read by Python: slow, for error messages."""
        with open_bytes(self.path) as raw:
            lines = io.TextIOWrapper(cast(Any, _Readable(raw)), self.encoding, errors="replace", newline="")
            for _ in islice(lines, self.skip):
                pass
            line_number = self.skip

            def without_comments() -> Iterator[str]:
                nonlocal line_number
                for line in lines:
                    line_number += 1
                    if self.comment is None or not line.startswith(self.comment):
                        yield line

            for record in split_lines(without_comments(), self.separator):
                if not is_blank(record):
                    yield line_number, record

    def line_of(self, record: int, has_header: bool) -> int:
        """Line number of a data record, records counted from 0."""
        kept = (one for one in self.records() if len(one[1]) == self.width)
        return next(islice(kept, record + has_header, None), (0, []))[0]

    def read(self, positions: Sequence[int], has_header: bool, progress: Progress | None = None) -> pa.Table:
        """Read the columns at these positions as strings, named by their positions."""
        names = [str(position) for position in range(self.width)]
        above = next(self.records(), (1, []))[0] if has_header else self.skip
        options: dict[str, Any] = {
            "column_names": names,
            "skip_rows": above if self.is_plain else 0,  # else `_Lines` skips them
            "block_size": max(BLOCK, 16 * max(sum(map(len, record)) for record in self.sample)),
        }
        quotable = has_quotes(self.separator)
        parse = pa_csv.ParseOptions(
            delimiter=self.separator if quotable else UNIT,
            quote_char='"' if quotable else False,
            newlines_in_values=self.may_have_quotes,
            invalid_row_handler=lambda row: "skip" if self._is_no_record(row.text) else "error",
        )
        convert = pa_csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()),
            include_columns=[names[position] for position in positions],
            strings_can_be_null=False,
        )
        while True:
            try:
                with self._arrow_input(above, progress) as source:
                    return pa_csv.read_csv(source, pa_csv.ReadOptions(**options), parse, convert)
            except pa.ArrowInvalid as error:
                text = str(error)  # which may quote a broken line: that case comes first
                if "Expected" in text:
                    raise self._broken_line(has_header, text) from None
                if "straddl" in text and options["block_size"] < LARGEST_BLOCK:
                    options["block_size"] = min(8 * options["block_size"], LARGEST_BLOCK)
                elif text.startswith(("Empty CSV", "Could not skip")):  # a header and nothing below
                    return pa.table({names[position]: pa.array([], pa.string()) for position in positions})
                elif "invalid UTF8" in text and not self.encoding_is_given and self.encoding == "utf-8-sig":
                    self.encoding = find_encoding(self.path)  # which the summary names
                    return self.read(positions, has_header, progress)
                else:
                    raise self._broken_line(has_header, text) from None
            except UnicodeDecodeError as error:
                raise _wrong_encoding(self.path, self.encoding, error) from None

    def _is_no_record(self, text: str) -> bool:
        is_comment = text.lstrip().startswith(self.comment or "#") and bool(self.comment or self.skip)
        return not text.strip() or is_comment

    @contextmanager
    def _arrow_input(self, above: int, progress: Progress | None) -> Iterator[Any]:
        """The file as Arrow reads it."""
        if self.is_plain and progress is None:
            with open_bytes(self.path) as raw:
                is_zip = isinstance(raw, zipfile.ZipExtFile)
                yield raw if isinstance(raw, pa.NativeFile) else pa.PythonFile(raw) if is_zip else str(self.path)
            return
        with self.path.open("rb") as raw:
            size = raw.seek(0, 2)
        with open_bytes(self.path) as raw:
            yield pa.PythonFile(_Lines(raw, self, above, progress, size), mode="r")

    def _broken_line(self, has_header: bool, complaint: str) -> DataError:
        """The error that names the first line with too many or too few fields."""
        standard = "header" if has_header else "first line"
        for line, record in self.records():
            text = self.separator.join(record)
            if len(record) != self.width and not self._is_no_record(text):
                must = f"Line {line} of {self.path.name} must have {self.width} fields, as its {standard} has."
                return DataError(must, found=f"{len(record)}: {text[:200]!r}", remedy="Fix or remove this line.")
        must = f"{self.path.name} must be a table of text."
        return DataError(must, found=f"otherwise: {complaint}", remedy="Look for a quote that is not closed.")


class _Readable(io.RawIOBase):
    """Any object with read(size) as a file that Python's text layer takes."""

    def __init__(self, raw: Any) -> None:
        self.raw = raw

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self.raw.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


class _Lines(io.RawIOBase):
    """Lines of a text file for Arrow: in UTF-8, without comments, fields separated by one character."""

    def __init__(self, raw: Any, file: TextFile, above: int, progress: Progress | None, size: int) -> None:
        self.raw, self.progress, self.size = raw, progress, size
        self.done, self.ready, self.rest, self.ended = 0, b"", b"", False
        self.decoder = None if file.is_plain else codecs.getincrementaldecoder(file.encoding)()
        self.skip = 0 if file.is_plain else above
        self.edits: list[tuple[re.Pattern[bytes], bytes]] = []
        if file.comment is not None:
            self.edits.append((re.compile(rb"(?m)^" + re.escape(file.comment.encode()) + rb"[^\n]*\n?"), b""))
        if file.quotes_after_blanks:
            separator = re.escape(file.separator.encode())
            self.edits.append((re.compile(separator + rb' +(?="(?!"))'), file.separator.encode()))
        if file.separator == BLANKS:
            self.edits += [(re.compile(rb"(?m)^[ \t]+|[ \t\r]+$"), b""), (re.compile(rb"[ \t]+"), UNIT.encode())]
        elif not has_quotes(file.separator):
            self.edits.append((re.compile(re.escape(file.separator.encode())), UNIT.encode()))

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        while not self.ended and (size < 0 or len(self.ready) < size):
            data = self.raw.read(4 * BLOCK)
            self.ended = not data
            if self.progress is not None:
                where = self.raw.tell() if isinstance(self.raw, io.BufferedReader) else 0  # unknown in an archive
                self.progress(self.size if self.ended else where, self.size)
            if self.decoder is not None:
                data = self.decoder.decode(data, final=self.ended).encode("utf-8")
                data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
            if not self.edits and not self.skip:
                self.ready, self.rest = self.ready + self.rest + data, b""
                continue
            whole, newline, rest = (self.rest + data).rpartition(b"\n")
            if self.ended:
                whole, newline, rest = self.rest + data, b"", b""
            self.rest, whole = rest, whole + newline
            while self.skip and whole:
                _, newline, whole = whole.partition(b"\n")
                self.skip -= 1
            for pattern, instead in self.edits:
                whole = pattern.sub(instead, whole)
            self.ready += whole
        size = len(self.ready) if size < 0 else size
        given, self.ready = self.ready[:size], self.ready[size:]
        return given

    def readinto(self, buffer: Any) -> int:
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


def has_quotes(separator: str) -> bool:
    """Whether fields between such separators may be quoted, as Arrow and Python's csv allow."""
    return len(separator) == 1 and separator.isascii() and separator != BLANKS


def _wrong_encoding(path: Path, encoding: str, error: UnicodeDecodeError) -> DataError:
    must, found = f"{path.name} must be in the encoding {encoding}.", f"otherwise: {error.reason}"
    where, remedy = f"at byte {error.start}", "Pass another `encoding`, or leave it out."
    return DataError(must, found=found, where=where, remedy=remedy, parameter="encoding")


def split_lines(lines: Iterable[str], separator: str) -> Iterator[Record]:
    """Split lines at the separator; only fields between single ASCII characters may be quoted."""
    if not has_quotes(separator):
        at = None if separator == BLANKS else separator
        return (line.strip("\r\n").split(at) if line.strip() else [] for line in lines)
    return csv.reader(lines, delimiter=separator, skipinitialspace=separator != "\t")


def is_blank(record: Record) -> bool:
    """Whether a record is a blank line."""
    return len(record) < 2 and not (record and record[0].strip())


def open_text(path: Path, separator: str | None, comment: str | None, encoding: str | None) -> TextFile:
    """Infer from the first lines of a text file what is not given."""
    if separator is not None and (not isinstance(separator, str) or not separator or separator in ('"', "\n")):
        must = 'must be text that stands between fields, such as ";".'
        raise ParameterError(must, parameter="separator", found=repr(separator))
    if comment is not None and (not isinstance(comment, str) or not comment.strip()):
        must = 'must be the text that comment lines begin with, such as "#".'
        raise ParameterError(must, parameter="comment", found=repr(comment))
    try:
        "".encode("utf-8" if encoding is None else encoding)  # which refuses what is no encoding of text
    except (LookupError, TypeError):
        must = "must be one that Python knows, such as utf-8, latin-1, cp1252."
        raise ParameterError(must, parameter="encoding", found=repr(encoding)) from None
    is_given = encoding is not None
    if encoding is None:
        with open_bytes(path) as raw:
            marked = raw.read(3)
        encoding = "utf-16" if marked[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) else "utf-8-sig"
    else:
        encoding = codecs.lookup(encoding).name
        encoding = "utf-8-sig" if encoding == "utf-8" else encoding
    try:
        lines = _first_lines(path, encoding)
    except UnicodeDecodeError as error:
        if is_given:
            raise _wrong_encoding(path, encoding, error) from None
        encoding = find_encoding(path)
        lines = _first_lines(path, encoding)
    if any("\0" in line for line in lines):
        raise DataError(f"{path.name} must be a text or Parquet file.", found="binary data", remedy="Save it as CSV.")

    # above the table: an Excel line that names the separator, comments
    skip = 0
    if lines and (excel := re.fullmatch(r'"?sep=(.|\\t)"?\s*', lines[0])):
        separator = separator or excel[1].replace("\\t", "\t")
        skip = 1
    if comment is not None:
        table = [line for line in lines[skip:] if line.strip() and not line.startswith(comment)]
    else:
        below = [line for line in lines[skip:] if line.strip() and not line.startswith("#")]
        sniffed = separator or _sniff_separator(below)
        width = len(next(split_lines(below[:1], sniffed), [])) if below else 0
        while skip < len(lines) and lines[skip].startswith("#"):
            if len(next(split_lines([lines[skip]], sniffed), [])) == width and width > 1:
                break  # a header that begins with #
            skip += 1
        table = [line for line in lines[skip:] if line.strip()]
    separator = separator or _sniff_separator(table)
    sample = [record for record in split_lines(table, separator) if not is_blank(record)]
    if not sample:
        must = f"A data file must have at least one {'field' if table else 'line'}."
        raise DataError(must, found="none", where=f"in {path.name}", remedy="Check the path.")
    may_have_quotes = has_quotes(separator) and _contains(path, '"', if_compressed=True)
    after_blank = f'{separator} "'
    in_sample = any(after_blank in line for line in table)
    quoted = may_have_quotes and separator != "\t" and (in_sample or _contains(path, after_blank, if_compressed=False))
    return TextFile(path, encoding, separator, sample, comment, skip, may_have_quotes, quoted, is_given)


def _contains(path: Path, text: str, if_compressed: bool) -> bool:
    """Whether a text is in a file; `if_compressed` where that is unknown."""
    if path.stat().st_size == 0:
        return False
    with path.open("rb") as raw, mmap.mmap(raw.fileno(), 0, access=mmap.ACCESS_READ) as contents:
        is_compressed = contents[:4] == ZIP or any(contents[:4].startswith(magic) for magic in COMPRESSED)
        return if_compressed if is_compressed else contents.find(text.encode()) >= 0


def _first_lines(path: Path, encoding: str) -> list[str]:
    lines, characters = [], 0
    with open_bytes(path) as raw:
        text = io.TextIOWrapper(cast(Any, _Readable(raw)), encoding, newline="")
        for line in text:
            lines.append(line)
            characters += len(line)
            if len(lines) >= SAMPLE_LINES or (characters > SAMPLE_CHARACTERS and len(lines) > 3):
                break
    return lines


def _sniff_separator(lines: list[str]) -> str:
    """The separator that splits most of the lines into as many fields as the first, and the first into several."""

    def agreeing(separator: str) -> int:
        widths = [len(record) for record in split_lines(lines, separator) if not is_blank(record)]
        return widths.count(widths[0]) if widths and widths[0] > 1 else 0

    counts = {separator: agreeing(separator) for separator in SEPARATORS}
    best = max(SEPARATORS, key=counts.__getitem__) if any(counts.values()) else ","
    if best == "," and counts[BLANKS] == counts[","] > 0:  # 1,5 2,5: blanks between numbers with decimal commas
        fields = (field for line in lines for field in line.split() if "," in field)
        best = BLANKS if all(re.fullmatch(r"[+-]?[0-9]*,[0-9]+", field) for field in fields) else best
    return best


def find_encoding(path: Path) -> str:
    """Encoding of a file that is not UTF-8 to its end; a stray byte in a UTF-8 file is refused.

    A file in a single-byte encoding has few byte sequences, if any, that are valid UTF-8 beyond ASCII.
    """
    with open_bytes(path) as raw:
        contents = raw.read()
    escaped = contents.decode("utf-8", errors="surrogateescape")
    invalid = re.findall("[\udc80-\udcff]", escaped)
    valid = sum(1 for _ in re.finditer("[^\x00-\x7f\udc80-\udcff]", escaped))
    if valid >= len(invalid):
        try:
            contents.decode("utf-8")
        except UnicodeDecodeError as error:
            line = contents.count(b"\n", 0, error.start) + 1
            start = contents.rfind(b"\n", 0, error.start) + 1
            shown = contents[start : start + 200].split(b"\n")[0].decode("utf-8", errors="backslashreplace")
            must, where = f"{path.name} must be in one encoding.", f"on line {line} a byte that is not: {shown!r}"
            remedy = 'Fix this line, or pass `encoding="latin-1"` if the whole file is not UTF-8.'
            raise DataError(must, found="UTF-8, and", where=where, remedy=remedy, parameter="encoding") from None
    try:
        contents.decode("cp1252")
    except UnicodeDecodeError:
        return "latin-1"
    return "cp1252"
