"""Tables as Arrow columns, and the conversion of columns to ids (codes and labels), floats and levels."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from narwhals.typing import IntoFrame
from numpy.typing import ArrayLike
from scipy import sparse

from halfseen.errors import DataError
from halfseen.io.numbers import MISSING, NUMBERS, POINT, NotANumber, NumberParser, Scale, is_amount, is_missing
from halfseen.io.text import TextFile
from halfseen.labels import encode, encode_integers, exact_integers, is_plain_integer, missing_id, text_array, uniform


class ArrowStream(Protocol):
    """A stream of Arrow record batches, as of DuckDB, ADBC or Ibis."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...


#: Path of a file.
FilePath: TypeAlias = str | os.PathLike[str]
#: Name of a column; its position, from 0, in a table without names.
ColumnName: TypeAlias = Hashable
#: A table: path or pattern of files, frame, lazy frame, Arrow table, dataset or stream, list of records.
TableSource: TypeAlias = FilePath | IntoFrame | ArrowStream | pa.Table | Sequence[Mapping[str, Any]]
#: A table, a dense array-like or a scipy sparse matrix.
MatrixSource: TypeAlias = TableSource | ArrayLike | sparse.sparray | sparse.spmatrix
#: Weights of cells: a matrix, a list in the order of the cells, or the name of a column.
CellWeight: TypeAlias = MatrixSource | None
#: A column: an Arrow array, or an object array of what Arrow cannot hold.
Column: TypeAlias = pa.ChunkedArray | np.ndarray


@dataclass
class Table:
    """A table whose columns are read on demand. The fields of a text file are strings.

    Parameters
    ----------
    names : list of str or int
        Names of the columns; positions, from 0, if there is no header.
    load : callable
        Reads the columns at these positions, once.
    has_header : bool, default=True
        Whether the columns have names.
    name : str, default="X"
        Name of the file or argument, for messages.
    files : tuple of TextFile, default=()
        Text files that the table is made of.
    decimal, thousands : str, default=None
        Marks of the numbers in a text file.
    markers : frozenset of str
        Missing-value markers of a text file.
    index : ndarray, default=None
        Labels of the rows that are no column: the index of a pandas frame.
    types : sequence of Arrow types, default=None
        Types of the columns, as far as they are known before these are read.
    read : dict of int to column
        Columns that were read, by position.
    dataset : pyarrow.dataset.Dataset, default=None
        Parquet and Feather files, which can be read in parts.
    first_row : int, default=0
        Number of the first row in the files, of a part of them.
    """

    names: list[Any]
    load: Callable[[Sequence[int]], Sequence[Any]] = field(repr=False)
    has_header: bool = True
    name: str = "X"
    files: tuple[TextFile, ...] = ()
    decimal: str | None = None
    thousands: str | None = None
    markers: frozenset[str] = MISSING
    index: np.ndarray | None = None
    types: Sequence[Any] | None = None
    read: dict[int, Column] = field(default_factory=dict, repr=False)
    dataset: Any = field(default=None, repr=False)
    first_row: int = 0

    @property
    def is_text(self) -> bool:
        """Whether the fields are strings of a text file."""
        return bool(self.files)

    @property
    def delimiter(self) -> str | None:
        """Separator of a text file, None for other tables."""
        return self.files[0].separator if self.files else None

    @property
    def cells(self) -> list[list[Any]]:
        """All columns as lists."""
        self.read_columns(self.names)
        return [self.texts(name) for name in self.names]

    @property
    def n_rows(self) -> int:
        """Number of rows below the header."""
        if not self.read:
            self.read_columns(self.names[:1])
        return len(next(iter(self.read.values()), ()))

    @cached_property
    def positions(self) -> dict[ColumnName, int]:
        """Position of each column."""
        return {name: position for position, name in enumerate(self.names)}

    def read_columns(self, names: Sequence[ColumnName]) -> None:
        """Read these columns at once, as far as they have not been read."""
        wanted = [self.positions[name] for name in names if self.positions[name] not in self.read]
        if wanted:
            self.read.update(zip(wanted, map(_chunked, self.load(wanted)), strict=True))

    def column(self, name: ColumnName) -> Any:
        """A column, as Arrow array or, if Arrow cannot hold it, as object array."""
        self.read_columns([name])
        return self.read[self.positions[name]]

    def texts(self, name: ColumnName) -> list[Any]:
        """The fields of a column as they are, as a list."""
        column = self.column(name)
        return column.tolist() if isinstance(column, np.ndarray) else column.to_pylist()

    def is_numeric(self, name: ColumnName) -> bool:
        """Whether a column holds numbers, by its type; in a text file by its first records."""
        position = self.positions[name]
        if self.is_text:
            below = self.files[0].sample[self.has_header :]
            fields = [record[position] for record in below if len(record) > position]
            present = [one for one in fields if not is_missing(one, self.markers)]
            return 2 * sum(map(is_amount, present)) > len(present)
        if self.types is not None and self.types[position] is not None:
            return _is_numeric_type(self.types[position])
        return holds_numbers(self.column(name))

    def place(self, row: int, column: ColumnName | None = None) -> str:
        """Where a row is, for messages; the line number of a text file is counted only now."""
        if not self.is_text:
            row += self.first_row
            return f"at position {row} of {self.name if column is None else f'column {column!r}'}"
        of_column = "" if column is None else f", column {column!r}"
        for file, count in zip(self.files, self.rows_per_file, strict=True):
            if row < count:
                return f"on line {file.line_of(row, self.has_header)} of {file.path.name}{of_column}"
            row -= count
        return f"in {self.name}{of_column}"

    @property
    def rows_per_file(self) -> Sequence[int]:
        """Rows that came from each text file."""
        return self.load.rows_per_file  # type: ignore[attr-defined]

    @cached_property
    def parser(self) -> NumberParser:
        """Parses the numbers of a text table."""
        return NumberParser(self.place, self.delimiter or ",", self.decimal, self.thousands, self.markers)

    def is_present(self, name: ColumnName) -> np.ndarray:
        """Mask of the rows in which a column is not missing."""
        column = self.column(name)
        if isinstance(column, np.ndarray):
            return np.array([not is_missing(one, self.markers) for one in column], dtype=bool)
        if not self.is_text:
            return ~column.is_null(nan_is_null=pa.types.is_floating(column.type)).to_numpy()
        codes, labels = _encoded(column)
        return np.array([not is_missing(one, self.markers) for one in labels], dtype=bool)[codes]

    def find_decimal(self) -> str:
        """Decimal mark of all columns of numbers of a text table; a point if they do not agree."""
        for name in self.names if self.is_text else ():
            if self.is_numeric(name):
                try:
                    self.parser.parse(self.column(name), name)
                except DataError:
                    return POINT
        return self.parser.mark

    def numbers(self, name: ColumnName, scale: Scale = NUMBERS, codes: Mapping[str, str] | None = None) -> np.ndarray:
        """A column as floats, NaN where missing; float32 stays float32.

        `codes` are words that stand for numbers; other text is refused.
        """
        column = self.column(name)
        if codes is not None:
            column = pa.chunked_array([pa.array([codes.get(one, one) for one in self.texts(name)], pa.string())])
        if self.is_text:
            parsed = self.parser.parse(column, name, scale)
            if parsed.text is None:
                return parsed.values
            position, text = parsed.text
        else:
            try:
                return to_floats(column, scale)
            except NotANumber as error:
                position, text = error.position, error.field
        unknown = "leave the field empty" if self.is_text else "use a null"
        remedy = f"{unknown.capitalize() if scale.names else f'Write a number, {unknown}'} if it is unknown"
        remedy += ', or say which columns to read: `columns=("user", "item", "rating")`.'
        raise scale.error(text, self.place(position, name), remedy, None if self.is_text else scale.hint)

    def check_on_one_line(
        self, ids: Sequence[str] | np.ndarray, name: ColumnName, codes: np.ndarray | None = None
    ) -> None:
        """Refuse an id of several lines, made by a quote that is closed too late, or of binary data."""
        broken = next((place for place, one in enumerate(ids) if "\n" in one or "\0" in one), None)
        if broken is not None:
            row = broken if codes is None else int(np.argmax(codes == broken))
            must, remedy = "An id must be on one line.", "Look for a quote that is not closed."
            raise DataError(must, found=repr(ids[broken][:80]), where=self.place(row, name), remedy=remedy)

    def encode(self, name: ColumnName, side: str, as_text: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """Number ids in the order of their first appearance: (code of every row, label of every code).

        Ids of text files lose surrounding blanks, and become integers if all of them are written as integers are,
        unless `as_text`.
        """
        column = self.column(name)
        if not self.is_text:
            return encode_column(column, side, lambda row: self.place(row, name))
        codes, labels, is_integer = encode_text(column)
        if is_integer:
            return codes, text_array(labels) if as_text else labels
        # missing is an empty id, and a marker where all others are integers
        markers = [code for code, label in enumerate(labels) if is_missing(label, self.markers)]
        others = [label for code, label in enumerate(labels) if code not in markers]
        are_integers = bool(others) and all(map(is_plain_integer, others))
        for code in markers:
            if not labels[code] or are_integers:
                raise missing_id(side, self.place(int(np.argmax(codes == code)), name))
        self.check_on_one_line(labels, name, codes)
        if not as_text and all(map(is_plain_integer, labels)):
            return codes, exact_integers([int(one) for one in labels], side)
        return codes, labels


def _chunked(column: Any) -> Any:
    """An Arrow array as chunked array; object arrays stay."""
    if isinstance(column, np.ndarray):
        return column
    column = column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])
    return column.cast(pa.large_string()) if pa.types.is_string_view(column.type) else column


def _decoded(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A dictionary- or run-end-encoded column as its values."""
    if pa.types.is_run_end_encoded(column.type):
        return pa.chunked_array([pc.run_end_decode(chunk) for chunk in column.chunks], column.type.value_type)
    if pa.types.is_dictionary(column.type):
        return pa.chunked_array([chunk.dictionary_decode() for chunk in column.chunks], column.type.value_type)
    return column


def encode_text(column: pa.ChunkedArray) -> tuple[np.ndarray, np.ndarray, bool]:
    """Codes and labels of a string column, and whether the labels are integers already; texts lose outer blanks."""
    integers = encode_integers([chunk for chunk in column.chunks if len(chunk)])
    if integers is not None:
        return *integers, True
    codes, labels = _encoded(column)
    stripped = text_array(label.strip() for label in labels)
    if (stripped == labels).all():
        return codes, stripped, False
    merged, labels = encode(stripped, "row")
    return merged[codes], labels, False


def _encoded(column: pa.ChunkedArray) -> tuple[np.ndarray, np.ndarray]:
    """Codes and labels of an Arrow column, in the order of first appearance."""
    codes, dictionary = encode_arrow(column)
    return codes, dictionary.to_numpy(zero_copy_only=False)


def encode_arrow(column: pa.ChunkedArray) -> tuple[np.ndarray, pa.Array]:
    """Codes of an Arrow column, and its different values in the order of first appearance."""
    encoded = column.dictionary_encode()  # one dictionary for all chunks
    if not encoded.num_chunks:
        return np.empty(0, dtype=np.int32), pa.array([], pa.large_string())
    codes = np.concatenate([chunk.indices.to_numpy(zero_copy_only=False) for chunk in encoded.chunks])
    return codes, encoded.chunks[-1].dictionary


def encode_column(column: Column, side: str, place: Callable[[int], str]) -> tuple[np.ndarray, np.ndarray]:
    """Codes and labels of a typed column."""
    if isinstance(column, np.ndarray):
        for row, one in enumerate(column):
            if is_missing(one) and not isinstance(one, str):
                raise missing_id(side, place(row))
        return encode(column.tolist(), side)
    codes, dictionary = encode_arrow(as_ids(column, side, place))
    return codes, id_labels(dictionary, side)


def as_ids(column: Any, side: str, place: Callable[[int], str]) -> pa.ChunkedArray:
    """An Arrow column of ids, decoded; missing ones, inexact ones and those of other types are refused."""
    column = _decoded(_chunked(column))
    if column.null_count:
        raise missing_id(side, place(pc.index(pc.is_null(column), True).as_py()))
    kind = column.type
    if pa.types.is_floating(kind):
        column = pc.add(column.cast(pa.float32()) if pa.types.is_float16(kind) else column, 0)  # -0.0 is 0.0
        for wrong in (pc.is_nan(column), pc.greater_equal(pc.abs(column), 2.0**53)):
            row = pc.index(wrong, True).as_py()
            if row >= 0 and column[row].as_py() != column[row].as_py():
                raise missing_id(side, place(row))
            if row >= 0:
                found = f"{column[row]} {place(row)}, a float that several integers share"
                raise DataError(f"The ids of {side}s must be exact.", found=found, remedy="Convert the ids to text.")
    elif _is_string(kind) or pa.types.is_null(kind):
        column = column.cast(pa.large_string())
    elif not (pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_temporal(kind)):
        must = f"The ids of {side}s must be numbers, text or dates."
        raise DataError(must, found=f"a column of type {kind}", remedy="Convert it to text.")
    return column


def id_labels(dictionary: pa.Array, side: str) -> np.ndarray:
    """The different values of a column of ids as labels."""
    labels = dictionary.to_numpy(zero_copy_only=False)
    if _is_string(dictionary.type):
        return text_array(labels)
    if labels.dtype.kind == "O" and labels.size:  # dates, decimals
        labels = uniform(labels, side)
    return labels


def _is_string(kind: Any) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)


def _is_numeric_type(kind: Any) -> bool:
    tests = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_boolean)
    return any(test(kind) for test in tests)


def holds_numbers(column: Column) -> bool:
    """Whether a column holds numbers, be it as Python objects."""
    if not isinstance(column, np.ndarray):
        return _is_numeric_type(column.type)
    present = [one for one in column if not is_missing(one)]
    return bool(present) and all(isinstance(one, (int, float, np.number, np.bool_)) for one in present)


def to_floats(column: Column, scale: Scale = NUMBERS) -> np.ndarray:
    """A typed column as floats, NaN where null; NotANumber names the first that is none."""
    if isinstance(column, np.ndarray):
        return scale.numbers(column.tolist())
    kind = column.type
    if pa.types.is_null(kind):
        return np.full(len(column), np.nan)
    if not _is_numeric_type(kind):
        decoded = _decoded(column)
        return to_floats(decoded, scale) if _is_numeric_type(decoded.type) else scale.numbers(decoded.to_pylist())
    if pa.types.is_decimal(kind) or pa.types.is_boolean(kind) or column.null_count:
        column = column.cast(pa.float32() if pa.types.is_float32(kind) else pa.float64(), safe=False)
    array = column.to_numpy()
    return array if array.dtype in (np.float32, np.float64) else array.astype(np.float64)


def ordered_levels(column: Column) -> tuple[str, ...]:
    """Texts of a column of ordered categories, from the lowest to the highest; none for other columns."""
    if isinstance(column, np.ndarray) or not pa.types.is_dictionary(column.type) or not column.type.ordered:
        return ()
    chunks = column.unify_dictionaries().chunks
    names = chunks[0].dictionary.to_pylist() if chunks else []
    return tuple(names) if all(isinstance(one, str) for one in names) else ()
