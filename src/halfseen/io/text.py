"""Text files: recognising separator, encoding and comments by their first lines, and reading them with Arrow.

Arrow reads the fields as strings, on all processors. Only when it fails is the file read again, slowly, to name the
line that is broken.
"""

from __future__ import annotations

import codecs
import csv
import io
import mmap
import re
import zipfile
from collections.abc import Callable, Iterator, Sequence
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
UNIT = "\x1f"  # what stands for a separator of several characters on its way to Arrow
SAMPLE_LINES, SAMPLE_CHARACTERS = 100, 1 << 20
BLOCK = 1 << 20
LARGEST_BLOCK = (1 << 31) - 1
#: First bytes of compressed files, and what Arrow calls the compression.
COMPRESSED = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\x28\xb5\x2f\xfd": "zstd", b"\x04\x22\x4d\x18": "lz4"}
ZIP = b"PK\x03\x04"

csv.field_size_limit((1 << 31) - 1)  # a table of 20,000 columns is one field under a wrong separator


@contextmanager
def file_errors(path: Path) -> Iterator[None]:
    """Turn what may go wrong with a file into sentences."""
    try:
        yield
    except FileNotFoundError:
        raise DataError(
            f"The file {path} must exist. Found nothing there. "
            "Check the path, or pass an array, a sparse matrix or a frame."
        ) from None
    except IsADirectoryError:
        raise DataError(f'{path} must be a file. Found a directory. Name a file, or files: "{path}/*.csv".') from None
    except (EOFError, zipfile.BadZipFile) as error:
        raise DataError(
            f"{path.name} must be a whole file. Found it damaged: {error}. Download or copy it again."
        ) from None
    except csv.Error as error:
        raise DataError(
            f"{path.name} must be a table of text. Found otherwise: {error}. Look for a quote that is not closed."
        ) from None
    except OSError as error:
        if error.strerror is None:  # Arrow's own, of a damaged archive
            raise DataError(
                f"{path.name} must be a whole compressed file. Found it damaged: {error}. Download or copy it again."
            ) from None
        raise DataError(f"{path.name} must be readable. Found otherwise: {error.strerror}. Check the path.") from None


@contextmanager
def open_bytes(path: Path) -> Iterator[Any]:
    """The contents of a file, decompressed if its first bytes say so."""
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
                    raise DataError(
                        f"A zip archive must hold one table. Found {len(inside)} files in {path.name}. Unpack it, and "
                        "name the file."
                    )
                with archive.open(inside[0]) as unpacked:
                    yield unpacked
        else:
            yield raw


@dataclass
class TextFile:
    """A text file whose encoding and separator are known.

    `sample` holds its first records, the header among them. `skip` physical lines stand above these: an Excel line
    `sep=;`, comments.
    """

    path: Path
    encoding: str
    separator: str
    sample: list[Record]
    comment: str | None = None
    skip: int = 0
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
        """All records with the numbers of their last lines, read by Python: slow, for messages."""
        with open_bytes(self.path) as raw:
            lines = io.TextIOWrapper(cast(Any, _Readable(raw)), self.encoding, errors="replace", newline="")
            for _ in islice(lines, self.skip):
                pass
            kept = _Uncommented(lines, self.comment)
            reader = split_lines(kept, self.separator)
            for record in reader:
                if not is_blank(record):
                    yield self.skip + kept.line_num, record

    def line_of(self, record: int, has_header: bool) -> int:
        """The line number of a data record, counted from 0."""
        kept = (one for one in self.records() if len(one[1]) == self.width)
        return next(islice(kept, record + has_header, None), (0, []))[0]

    def read(self, positions: Sequence[int], has_header: bool, progress: Progress | None = None) -> pa.Table:
        """The columns at these positions as strings, named by their positions."""
        names = [str(position) for position in range(self.width)]
        above = next(self.records(), (1, []))[0] if has_header else self.skip
        options: dict[str, Any] = {
            "column_names": names,
            "skip_rows": above if self.is_plain else 0,  # else they are left out on the way
            "block_size": max(BLOCK, 16 * max(sum(map(len, record)) for record in self.sample)),
        }
        is_split_elsewhere = not has_quotes(self.separator)
        parse = pa_csv.ParseOptions(
            delimiter=UNIT if is_split_elsewhere else self.separator,
            quote_char=False if is_split_elsewhere else '"',
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
                text = str(error)  # which quotes a broken line: that is looked for first
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
        if self.is_plain and progress is None:
            with open_bytes(self.path) as raw:
                yield (
                    raw
                    if isinstance(raw, pa.NativeFile)
                    else pa.PythonFile(raw)
                    if isinstance(raw, zipfile.ZipExtFile)
                    else str(self.path)
                )
            return
        with self.path.open("rb") as raw:
            size = raw.seek(0, 2)
        with open_bytes(self.path) as raw:
            yield pa.PythonFile(_Lines(raw, self, above, progress, size), mode="r")

    def _broken_line(self, has_header: bool, complaint: str) -> DataError:
        standard = "header" if has_header else "first line"
        for line, record in self.records():
            text = self.separator.join(record)
            if len(record) != self.width and not self._is_no_record(text):
                return DataError(
                    f"Line {line} of {self.path.name} must have {self.width} fields, as its {standard} has. "
                    f"Found {len(record)}: {text[:200]!r}. Fix or remove this line."
                )
        return DataError(
            f"{self.path.name} must be a table of text. Found otherwise: {complaint}. "
            "Look for a quote that is not closed."
        )


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


class _Uncommented:
    """Lines without those that begin with a comment mark; `line_num` counts all of them."""

    def __init__(self, lines: Iterator[str], comment: str | None) -> None:
        self.lines, self.comment, self.line_num = lines, comment, 0

    def __iter__(self) -> Iterator[str]:
        for line in self.lines:
            self.line_num += 1
            if self.comment is None or not line.startswith(self.comment):
                yield line


class _Lines(io.RawIOBase):
    """The lines of a text file as Arrow takes them: in UTF-8, without comments, separated by one character."""

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
    """Whether fields between such separators may be quoted: those that Arrow and Python's csv know."""
    return len(separator) == 1 and separator.isascii() and separator != BLANKS


def _wrong_encoding(path: Path, encoding: str, error: UnicodeDecodeError) -> DataError:
    return DataError(
        f"{path.name} must be in the encoding {encoding}. Found otherwise: {error.reason} at byte {error.start}. Pass "
        "another encoding, or leave it out."
    )


def split_lines(lines: Any, separator: str) -> Iterator[Record]:
    """Lines split at the separator; only those of a single ASCII character have quotes."""
    if not has_quotes(separator):
        at = None if separator == BLANKS else separator
        return (line.strip("\r\n").split(at) if line.strip() else [] for line in lines)
    return csv.reader(lines, delimiter=separator, skipinitialspace=separator != "\t")


def is_blank(record: Record) -> bool:
    """Whether a record is a blank line."""
    return len(record) < 2 and not (record and record[0].strip())


def open_text(path: Path, separator: str | None, comment: str | None, encoding: str | None) -> TextFile:
    """Look at the first lines of a text file; what the caller gives is not guessed."""
    _check_options(separator, comment, encoding)
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
        raise DataError(f"{path.name} must be a text or Parquet file. Found binary data. Save it as CSV.")

    # what stands above the table: an Excel line that names the separator, comments
    skip = 0
    if lines and (excel := re.fullmatch(r'"?sep=(.|\\t)"?\s*', lines[0])):
        separator = separator or excel[1].replace("\\t", "\t")
        skip = 1
    if comment is not None:
        table = [line for line in lines[skip:] if line.strip() and not line.startswith(comment)]
    else:
        below = [line for line in lines[skip:] if line.strip() and not line.startswith("#")]
        found = separator or _sniffed(below)
        width = len(next(split_lines(below[:1], found), [])) if below else 0
        while skip < len(lines) and lines[skip].startswith("#"):
            if len(next(split_lines([lines[skip]], found), [])) == width and width > 1:
                break  # a header that begins with #
            skip += 1
        table = [line for line in lines[skip:] if line.strip()]
    if not table:
        raise DataError(f"A data file must have at least one line. Found none in {path.name}. Check the path.")
    separator = separator or _sniffed(table)
    sample = [record for record in split_lines(table, separator) if not is_blank(record)]
    if not sample:
        raise DataError(f"A data file must have at least one field. Found none in {path.name}. Check the path.")
    may_have_quotes = has_quotes(separator) and _contains(path, '"', if_compressed=True)
    after_blank = f'{separator} "'
    in_sample = any(after_blank in line for line in table)
    quoted = may_have_quotes and separator != "\t" and (in_sample or _contains(path, after_blank, if_compressed=False))
    return TextFile(path, encoding, separator, sample, comment, skip, may_have_quotes, quoted, is_given)


def _contains(path: Path, text: str, if_compressed: bool) -> bool:
    """Whether a text is in a file, which can't be known of a compressed one."""
    if path.stat().st_size == 0:
        return False
    with path.open("rb") as raw, mmap.mmap(raw.fileno(), 0, access=mmap.ACCESS_READ) as contents:
        is_compressed = contents[:4] == ZIP or any(contents[:4].startswith(magic) for magic in COMPRESSED)
        return if_compressed if is_compressed else contents.find(text.encode()) >= 0


def _check_options(separator: str | None, comment: str | None, encoding: str | None) -> None:
    if separator is not None and (not isinstance(separator, str) or not separator or separator in ('"', "\n")):
        raise ParameterError(f'separator must be text that stands between fields, such as ";". Found {separator!r}.')
    if comment is not None and (not isinstance(comment, str) or not comment.strip()):
        raise ParameterError(f'comment must be the text that comment lines begin with, such as "#". Found {comment!r}.')
    if encoding is not None:
        try:
            "".encode(encoding)  # which refuses what is no encoding of text
        except (LookupError, TypeError):
            raise ParameterError(
                f"encoding must be one that Python knows, such as utf-8, latin-1, cp1252. Found {encoding!r}."
            ) from None


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


def _sniffed(lines: list[str]) -> str:
    """The separator that splits most of the lines into as many fields as the first, and the first into several."""

    def agreeing(separator: str) -> int:
        widths = [len(record) for record in split_lines(lines, separator) if not is_blank(record)]
        return widths.count(widths[0]) if widths and widths[0] > 1 else 0

    counts = {separator: agreeing(separator) for separator in SEPARATORS}
    found = max(SEPARATORS, key=counts.__getitem__) if any(counts.values()) else ","
    if found == "," and counts[BLANKS] == counts[","] > 0:  # 1,5 2,5: blanks between numbers with decimal commas
        fields = (field for line in lines for field in line.split() if "," in field)
        found = BLANKS if all(re.fullmatch(r"[+-]?[0-9]*,[0-9]+", field) for field in fields) else found
    return found


def find_encoding(path: Path) -> str:
    """The encoding of a file that is not UTF-8 to its end; one stray byte in a UTF-8 file is refused.

    A file of some single-byte encoding has few byte sequences, if any, that are valid UTF-8 beyond ASCII.
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
            raise DataError(
                f"{path.name} must be in one encoding. Found UTF-8, and on line {line} a byte that is not: {shown!r}. "
                'Fix this line, or pass encoding="latin-1" if the whole file is not UTF-8.'
            ) from None
    try:
        contents.decode("cp1252")
    except UnicodeDecodeError:
        return "latin-1"
    return "cp1252"
