"""Tables of every origin as Arrow columns: text, Parquet, Feather, JSON lines, Excel, frames, streams, records."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pa_json

from halfseen.errors import DataError
from halfseen.io.numbers import MISSING, NUMBERS, POINT, NotANumber, NumberParser, Scale, is_amount, is_missing
from halfseen.io.text import ZIP, Progress, TextFile, file_errors, open_bytes, open_text
from halfseen.labels import (
    encode,
    encode_integers,
    exact_integers,
    is_plain_integer,
    missing_id,
    quoted,
    text_array,
    uniform,
)

PANDAS_INDEX = "__index_level_"  # how the names begin under which pandas hides an index in a Parquet file
PARQUET, FEATHER = (".parquet", ".pq"), (".feather", ".arrow", ".ipc")
JSON_LINES = (".jsonl", ".ndjson")
FOREIGN = (
    ".xls", ".ods", ".sav", ".dta", ".rds", ".rdata", ".h5", ".hdf5", ".npz", ".npy", ".pkl", ".pickle", ".mat",
)  # fmt: skip
ARROW_MAGIC = {b"PAR1": "parquet", b"ARROW1": "feather", b"FEA1": "feather"}


@dataclass
class Table:
    """A table in columns, read when they are asked for.

    `names` are the names of its columns; positions, from 0, where it has none (`has_header`). The fields of a text file
    are strings. `load` reads columns by position, `types` are their Arrow types where they are known before. `name` is
    that of the file, for messages, `files` are the text files it is made of, `index` are labels of the rows that are no
    column. `decimal`, `thousands` and `markers` say how the numbers of a text file are written. `read` are the columns
    that were read.
    """

    names: list[Any]
    #: Reads the columns of these positions, once, as Arrow arrays (or object arrays of what Arrow can't hold).
    load: Callable[[Sequence[int]], Sequence[Any]] = field(repr=False)
    has_header: bool = True
    #: For messages: the name of the file, or of the argument.
    name: str = "X"
    #: The text files that the table is made of; none for other tables.
    files: tuple[TextFile, ...] = ()
    decimal: str | None = None
    thousands: str | None = None
    markers: frozenset[str] = MISSING
    #: Labels of the rows that are no column: the index of a pandas frame.
    index: np.ndarray | None = None
    #: Types of the columns, where they have any.
    types: Sequence[Any] | None = None
    read: dict[int, Any] = field(default_factory=dict, repr=False)

    @property
    def is_text(self) -> bool:
        """Whether the fields are strings of a text file."""
        return bool(self.files)

    @property
    def delimiter(self) -> str | None:
        """The separator of a text file, None for other tables."""
        return self.files[0].separator if self.files else None

    @property
    def cells(self) -> list[list[Any]]:
        """All columns as lists."""
        self.read_columns(self.names)
        return [_as_list(self.column(name)) for name in self.names]

    @property
    def n_rows(self) -> int:
        """Number of rows below the header."""
        if not self.read:
            self.read_columns(self.names[:1])
        return len(next(iter(self.read.values()), ()))

    @cached_property
    def _positions(self) -> dict[Any, int]:
        return {name: place for place, name in enumerate(self.names)}

    def position(self, name: Any) -> int:
        """Where a column stands."""
        return self._positions[name]

    def read_columns(self, names: Sequence[Any]) -> None:
        """Read these columns at once, as far as they have not been read."""
        wanted = [self.position(name) for name in names if self.position(name) not in self.read]
        if wanted:
            self.read.update(zip(wanted, map(_chunked, self.load(wanted)), strict=True))

    def column(self, name: Any) -> Any:
        """A column, as chunked Arrow array or, if Arrow can't hold it, as object array."""
        self.read_columns([name])
        return self.read[self.position(name)]

    def texts(self, name: Any) -> list[Any]:
        """The fields of a column as they are, as a list."""
        return _as_list(self.column(name))

    def is_numeric(self, name: Any) -> bool:
        """Whether a column holds numbers, by its type; in a text file by its first records."""
        position = self.position(name)
        if self.is_text:
            below = self.files[0].sample[self.has_header :]
            fields = [record[position] for record in below if len(record) > position]
            present = [one for one in fields if not is_missing(one, self.markers)]
            return 2 * sum(map(is_amount, present)) > len(present)
        if self.types is not None and self.types[position] is not None:
            return _is_numeric_type(self.types[position])
        return holds_numbers(self.column(name))

    def place(self, row: int, column: Any = None) -> str:
        """Where a row is, for messages; the line number of a text file is counted only now."""
        of_column = "" if column is None else f", column {column!r}"
        if not self.is_text:
            return (
                f"at position {row} of column {column!r}" if column is not None else f"at position {row} of {self.name}"
            )
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

    def find_decimal(self) -> str:
        """The decimal mark of a text table: of all its columns of numbers; a point if they do not agree."""
        for name in self.names if self.is_text else ():
            if self.is_numeric(name):
                try:
                    self.parser.parse(self.column(name), name)
                except DataError:
                    return POINT
        return self.parser.mark

    def numbers(self, name: Any, scale: Scale = NUMBERS, codes: Mapping[str, str] | None = None) -> np.ndarray:
        """A column as floats, NaN where missing; float32 stays float32. Other text is refused with its place.

        `codes` are words that stand for numbers.
        """
        column = self.column(name)
        if codes is not None:
            column = pa.chunked_array([pa.array([codes.get(one, one) for one in _as_list(column)], pa.string())])
        if self.is_text:
            parsed = self.parser.parse(column, name, scale)
            if parsed.text is None:
                return parsed.values
            position, found = parsed.text
        else:
            try:
                return to_floats(column, scale)
            except NotANumber as error:
                position, found = error.position, error.field
        unknown = "leave the field empty" if self.is_text else "use a null"
        advice = scale.advice(found) if self.is_text else scale.hint
        remedy = f"{unknown.capitalize() if scale.names else f'Write a number, {unknown}'} if it is unknown"
        raise DataError(
            f"{scale.must} Found {found!r} {self.place(position, name)}. {advice}{remedy}, or say which "
            'columns to read: columns=("user", "item", "rating").'
        )

    def check_on_one_line(self, ids: Any, name: Any, codes: np.ndarray | None = None) -> None:
        """Refuse an id that a quote which closes lines later has made of several lines, or of binary data."""
        broken = next((place for place, one in enumerate(ids) if "\n" in one or "\0" in one), None)
        if broken is not None:
            row = broken if codes is None else int(np.argmax(codes == broken))
            raise DataError(
                f"An id must be on one line. Found {ids[broken][:80]!r} {self.place(row, name)}. Look for a quote that "
                "is not closed."
            )

    def encode(self, name: Any, side: str, as_text: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """Ids numbered in the order of their first appearance: (code of every row, label of every code).

        Ids of text files lose surrounding blanks, and become integers if all of them are written as integers are.
        `as_text`: they stay text, as the labels of a fitted model are.
        """
        column = self.column(name)
        if not self.is_text:
            return encode_column(column, side, lambda row: self.place(row, name))
        codes, labels, is_integer = encode_text(column)
        if is_integer:
            return codes, text_array(labels) if as_text else labels
        missing = _missing_label(labels, self.markers)
        if missing is not None:
            raise missing_id(side, self.place(int(np.argmax(codes == missing)), name))
        self.check_on_one_line(labels, name, codes)
        if not as_text and all(map(is_plain_integer, labels)):
            return codes, exact_integers([int(one) for one in labels], side)
        return codes, labels


def _chunked(column: Any) -> Any:
    """A column as every function here takes it; object arrays stay."""
    if isinstance(column, np.ndarray):
        return column
    column = column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])
    return column.cast(pa.large_string()) if pa.types.is_string_view(column.type) else column


def _decoded(column: Any) -> Any:
    """A dictionary- or run-end-encoded column as its values."""
    if pa.types.is_run_end_encoded(column.type):
        return pa.chunked_array([pc.run_end_decode(chunk) for chunk in column.chunks], column.type.value_type)
    if pa.types.is_dictionary(column.type):
        return pa.chunked_array([chunk.dictionary_decode() for chunk in column.chunks], column.type.value_type)
    return column


def _as_list(column: Any) -> list[Any]:
    return column.tolist() if isinstance(column, np.ndarray) else column.to_pylist()


def encode_text(column: Any) -> tuple[np.ndarray, np.ndarray, bool]:
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


def _encoded(column: Any) -> tuple[np.ndarray, np.ndarray]:
    """Codes and labels of an Arrow column, in the order of first appearance."""
    encoded = column.dictionary_encode()  # one dictionary for all chunks
    if not encoded.num_chunks:
        return np.empty(0, dtype=np.int32), text_array(())
    codes = np.concatenate([chunk.indices.to_numpy(zero_copy_only=False) for chunk in encoded.chunks])
    return codes, encoded.chunks[-1].dictionary.to_numpy(zero_copy_only=False)


def _missing_label(labels: np.ndarray, markers: frozenset[str]) -> int | None:
    """The label that stands for no id: an empty one, or a missing-value marker where all others are integers."""
    marks = [code for code, label in enumerate(labels) if is_missing(label, markers)]
    others = [label for code, label in enumerate(labels) if code not in marks]
    are_integers = bool(others) and all(map(is_plain_integer, others))
    return next((code for code in marks if not labels[code] or are_integers), None)


def encode_column(column: Any, side: str, place: Callable[[int], str]) -> tuple[np.ndarray, np.ndarray]:
    """Codes and labels of a typed column."""
    if isinstance(column, np.ndarray):
        missing = [
            row for row, one in enumerate(column) if one is None or (is_missing(one) and not isinstance(one, str))
        ]
        if missing:
            raise missing_id(side, place(missing[0]))
        return encode(column.tolist(), side)
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
                raise DataError(
                    f"The ids of {side}s must be exact. Found {column[row]} {place(row)}, a float that several "
                    "integers share. Convert the ids to text."
                )
    elif _is_string(kind) or pa.types.is_null(kind):
        column = column.cast(pa.large_string())
    elif not (pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_temporal(kind)):
        raise DataError(
            f"The ids of {side}s must be numbers, text or dates. Found a column of type {kind}. Convert it to text."
        )
    codes, labels = _encoded(column)
    if _is_string(kind):
        return codes, text_array(labels)
    if labels.dtype.kind == "O" and labels.size:  # dates, decimals
        labels = uniform(labels, side)
    return codes, labels


def _is_string(kind: Any) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)


def _is_numeric_type(kind: Any) -> bool:
    tests = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_boolean)
    return any(test(kind) for test in tests)


def holds_numbers(column: Any) -> bool:
    """Whether a column holds numbers, be it as Python objects."""
    if not isinstance(column, np.ndarray):
        return _is_numeric_type(column.type)
    present = [one for one in column if not is_missing(one)]
    return bool(present) and all(isinstance(one, (int, float, np.number, np.bool_)) for one in present)


def to_floats(column: Any, scale: Scale = NUMBERS) -> np.ndarray:
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


def ordered_levels(column: Any) -> tuple[str, ...]:
    """The texts of a column of ordered categories, from the lowest to the highest; none for other columns."""
    if isinstance(column, np.ndarray) or not pa.types.is_dictionary(column.type) or not column.type.ordered:
        return ()
    chunks = column.unify_dictionaries().chunks
    names = chunks[0].dictionary.to_pylist() if chunks else []
    return tuple(names) if all(isinstance(one, str) for one in names) else ()


# ---------------------------------------------------------------------------------------------------------------------
# where tables come from


def open_table(X: Any, options: Any) -> Table | None:
    """X as a table; None if it is no table but an array, a matrix or something else."""
    if isinstance(X, np.ndarray):  # the most frequent case, known without asking anybody
        return None
    if isinstance(X, (str, os.PathLike)):
        return open_file(X, options)
    if isinstance(X, (pa.Table, pa.RecordBatch)):
        return _arrow_table(X.schema, lambda at: [X.column(one) for one in at])
    if hasattr(X, "to_table") and isinstance(getattr(X, "schema", None), pa.Schema):
        return _arrow_table(X.schema, lambda at: X.to_table(columns=[X.schema.names[one] for one in at]).columns)
    frame = _narwhal(X)
    if isinstance(frame, nw.LazyFrame):
        return _lazy_frame(frame)
    if isinstance(frame, nw.DataFrame):
        return frame_table(frame)
    if hasattr(X, "__arrow_c_stream__"):
        try:
            stream = pa.RecordBatchReader.from_stream(X)
        except pa.ArrowInvalid:  # a single column, as pandas' Series: no table
            return None
        return open_table(stream.read_all(), options)
    if isinstance(X, (list, tuple)) and X and all(isinstance(one, Mapping) for one in X):
        names = list(dict.fromkeys(name for record in X for name in record))
        return Table(names, lambda at: [_objects([one.get(names[place]) for one in X]) for place in at])
    return None


def _narwhal(X: Any) -> Any:
    try:
        return nw.from_native(X, pass_through=True)
    except nw.exceptions.DuplicateError as error:
        found = " ".join(line.strip("- ") for line in str(error).splitlines()[1:])
        raise DataError(f"Every column must have its own name. Found {found}. Rename one of them.") from None


def as_frame(X: Any) -> nw.DataFrame[Any] | None:
    """X as a narwhals frame, None if it is no frame in memory."""
    if isinstance(X, np.ndarray):
        return None
    frame = _narwhal(X)
    return frame if isinstance(frame, nw.DataFrame) else None


def _objects(values: list[Any]) -> Any:
    """A list as an Arrow array, or as an object array where its values are of several kinds."""
    try:
        array = pa.array(values, from_pandas=True)
    except (pa.ArrowException, OverflowError, UnicodeEncodeError):
        array = None
    kinds = {type(one) for one in values if one is not None}
    if array is None or len({bool: 0, int: 1, float: 2, str: 3}.keys() & kinds) > 1 or pa.types.is_decimal(array.type):
        objects = np.empty(len(values), dtype=object)
        objects[:] = values
        return objects
    return array


def _arrow_table(schema: pa.Schema, load: Callable[[Sequence[int]], Any], name: str = "X") -> Table:
    """A table of Arrow's; its rows are named by the index that pandas hid in it, if that is a single column."""
    check_names(schema.names)
    hidden = [place for place, one in enumerate(schema.names) if one.startswith(PANDAS_INDEX)]
    kept = [place for place in range(len(schema.names)) if place not in hidden]
    index = _as_list(load(hidden)[0]) if len(hidden) == 1 else []
    return Table(
        [schema.names[place] for place in kept],
        lambda at: load([kept[one] for one in at]),
        name=name,
        index=uniform(index, "row") if index and len(set(index)) == len(index) else None,
        types=[schema.types[place] for place in kept],
    )


def check_names(names: Sequence[Any]) -> None:
    """Refuse two columns of one name."""
    if len(set(names)) != len(names):
        twice = next(name for place, name in enumerate(names) if name in names[:place])
        raise DataError(f"Every column must have its own name. Found {quoted(twice)} twice. Rename one of them.")


def _lazy_frame(frame: nw.LazyFrame[Any]) -> Table:
    names = frame.collect_schema().names()
    return _arrow_table(
        frame.head(0).collect().to_arrow().schema,
        lambda at: frame.select([names[one] for one in at]).collect().to_arrow().columns,
    )


def frame_table(frame: nw.DataFrame[Any]) -> Table:
    """A frame of pandas, polars or another library in memory."""
    names = list(frame.columns)
    check_names(names)
    table = Table(names, lambda at: [_series(frame.get_column(names[one])) for one in at])
    index = nw.maybe_get_index(frame)
    if index is not None and index.nlevels == 1 and index.is_unique:
        labels = index.to_numpy()
        counts_rows = labels.dtype.kind in "iu" and np.array_equal(labels, np.arange(labels.size))
        table.index = None if counts_rows else uniform(labels, "row")
    return table


def _series(series: nw.Series[Any]) -> Any:
    if series.dtype in (nw.Object, nw.Unknown):
        return _objects(series.to_list())
    native = series.to_native()
    if series.dtype.is_numeric() and isinstance(getattr(native, "dtype", None), np.dtype):  # of pandas
        return pa.array(native.to_numpy())  # NaN stays a value here: it means missing all the same
    try:
        return series.to_arrow()
    except (pa.ArrowException, UnicodeEncodeError, TypeError):
        return _objects(series.to_list())


def open_file(X: Any, options: Any) -> Table:
    """A file, or all files that a pattern such as "part-*.csv" names."""
    path = Path(X).expanduser()
    paths = [path]
    if any(mark in str(path) for mark in "*?[") and not path.exists():
        paths = sorted(Path(one) for one in glob.glob(str(path), recursive=True))
        if not paths:
            raise DataError(f"A pattern must name at least one file. Found none for {str(X)!r}. Check the folder.")
    with file_errors(path if len(paths) == 1 else paths[0]):
        kind = _kind(paths[0])
        if kind == "text":
            return _text_table(paths, options)
        return _excel_table(paths) if kind == "excel" else _arrow_files(paths, kind)


def _kind(path: Path) -> str:
    """What a file is: by its first bytes, or by its ending where these don't tell."""
    with path.open("rb") as raw:
        head = raw.read(64)
    suffix = Path(path.stem).suffix.lower() if path.suffix in (".gz", ".bz2", ".zst", ".zip") else path.suffix.lower()
    if suffix in (".xlsx", ".xlsm") and head.startswith(ZIP):
        return "excel"
    if suffix in FOREIGN:
        raise DataError(
            f"A data file must be text, Parquet, Feather, JSON lines or .xlsx. Found {path.name!r}. Save it as CSV or "
            "Parquet."
        )
    for magic, kind in ARROW_MAGIC.items():
        if head.startswith(magic):
            return kind
    if suffix in PARQUET or suffix in FEATHER:
        raise DataError(
            f"{path.name} must be a whole {'Parquet' if suffix in PARQUET else 'Feather'} file. Found otherwise. "
            "Download or copy it again."
        )
    if suffix in JSON_LINES or (head.lstrip().startswith(b"{") and b'"' in head):
        return "json"
    if head.lstrip()[:1] == b"[" and (suffix == ".json" or re.match(rb"\s*\[\s*[\[{]", head)):
        raise DataError(
            f"JSON must have one object per line. Found an array in {path.name}. Write it as JSON lines, or as CSV."
        )
    return "text"


class _TextColumns:
    """Reads columns of text files that belong together, one after the other."""

    def __init__(self, files: Sequence[TextFile], has_header: bool, progress: Progress | None) -> None:
        self.files, self.has_header, self.progress = files, has_header, progress
        self.rows_per_file: list[int] = []

    def __call__(self, at: Sequence[int]) -> Sequence[Any]:
        tables = []
        for file in self.files:
            with file_errors(file.path):
                tables.append(file.read(at, self.has_header, self.progress))
        self.rows_per_file = [table.num_rows for table in tables]
        whole = pa.concat_tables(tables)
        return [whole.column(place) for place in range(len(at))]


def _text_table(paths: Sequence[Path], options: Any) -> Table:
    from halfseen.io.schema import has_header_line

    files = []
    for path in paths:
        with file_errors(path):
            files.append(open_text(path, options.separator, options.comment, options.encoding))
    has_header = has_header_line(files[0], options)
    for file in files[1:]:
        same = file.width == files[0].width and file.separator == files[0].separator
        if not same or (has_header and file.sample[0] != files[0].sample[0]):
            raise DataError(
                f"Files that are read together must have the same columns. Found {file.sample[0][:20]} in "
                f"{file.path.name}, and {files[0].sample[0][:20]} in {files[0].path.name}. Read them one by one."
            )
    by_position = not has_header or options.numbers_columns
    names: list[Any] = list(range(files[0].width)) if by_position else [name.strip() for name in files[0].sample[0]]
    if names.count("") > 1:  # of separators at the ends of lines, as Excel writes them
        names = [f"column {place + 1}" if name == "" and place else name for place, name in enumerate(names)]
    check_names(names)
    markers = MISSING | {str(one).strip().lower() for one in options.na_values or ()}
    return Table(
        names,
        _TextColumns(files, has_header, options.progress),
        has_header,
        paths[0].name,
        tuple(files),
        options.decimal,
        options.thousands,
        markers,
    )


def _arrow_files(paths: Sequence[Path], kind: str) -> Table:
    """Parquet, Feather and JSON lines as an Arrow dataset; a damaged file is refused when it is opened or read."""
    import pyarrow.dataset as ds

    what = "JSON lines, an object per line, all alike" if kind == "json" else f"a whole {kind.capitalize()} file"

    @contextmanager
    def errors() -> Iterator[None]:
        try:
            yield
        except (pa.ArrowException, OSError) as error:
            raise DataError(
                f"{paths[0].name} must be {what}. Found otherwise: {error}. Fix it, or download or copy it again."
            ) from None

    def load(at: Sequence[int]) -> Sequence[Any]:
        with errors():
            columns: Sequence[Any] = dataset.to_table(columns=[dataset.schema.names[one] for one in at]).columns
            return columns

    with errors():
        if kind == "json":
            tables = []
            for path in paths:
                with open_bytes(path) as raw:
                    tables.append(pa_json.read_json(raw if isinstance(raw, pa.NativeFile) else pa.PythonFile(raw)))
            dataset = ds.dataset(pa.concat_tables(tables, promote_options="permissive"))
        else:
            form = "ipc" if kind == "feather" else kind
            schemas = [ds.dataset(str(path), format=form).schema for path in paths]
            for path, schema in zip(paths, schemas, strict=True):
                if set(schema.names) != set(schemas[0].names):
                    raise DataError(
                        f"Files that are read together must have the same columns. Found {schema.names[:20]} in "
                        f"{path.name}, and {schemas[0].names[:20]} in {paths[0].name}. Read them one by one."
                    )
            whole = pa.unify_schemas(schemas, promote_options="permissive")
            dataset = ds.dataset([str(path) for path in paths], whole, form)
    return _arrow_table(dataset.schema, load, paths[0].name)


def _excel_table(paths: Sequence[Path]) -> Table:
    try:
        import openpyxl
    except ImportError:
        raise DataError(
            f"Excel files need openpyxl. Found {paths[0].name!r} and no openpyxl. Install it: pip install openpyxl; or "
            "save the table as CSV."
        ) from None
    try:
        with closing(openpyxl.load_workbook(paths[0], read_only=True, data_only=True)) as book:
            records = book.worksheets[0].iter_rows(values_only=True)
            rows = [list(row) for row in records if any(one is not None for one in row)]
    except Exception as error:  # openpyxl has no class of its own for a damaged workbook
        raise DataError(
            f"{paths[0].name} must be a whole Excel workbook. Found otherwise: {error}. Save it again, or as CSV."
        ) from None
    if len(paths) > 1 or not rows:
        found = "no row" if not rows else f"{len(paths)} workbooks"
        raise DataError(f"One Excel workbook with names in its first row can be read. Found {found}. Save it as CSV.")
    header, *below = rows
    width = max((place + 1 for row in rows for place, one in enumerate(row) if one is not None), default=0)
    names = [str(name).strip() if name is not None else "" for name in (*header, *[None] * width)][:width]
    columns = [_objects([row[place] if place < len(row) else None for row in below]) for place in range(width)]
    check_names(names)
    return Table(names, lambda at: [columns[one] for one in at], name=paths[0].name)
