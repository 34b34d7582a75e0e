"""Sources of tables: text, Parquet, Feather, JSON lines and Excel files, frames, Arrow streams, records."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa
import pyarrow.json as pa_json

from halfseen.errors import DataError
from halfseen.io.numbers import MISSING
from halfseen.io.schema import ReadOptions, has_header_line
from halfseen.io.tables import ColumnName, FilePath, Table
from halfseen.io.text import ZIP, Progress, TextFile, file_errors, open_bytes, open_text
from halfseen.labels import quoted, uniform

PANDAS_INDEX = "__index_level_"  # beginning of the names of columns in which pandas stores an index in a Parquet file
PARQUET, FEATHER = (".parquet", ".pq"), (".feather", ".arrow", ".ipc")
JSON_LINES = (".jsonl", ".ndjson")
FOREIGN = (
    ".xls", ".ods", ".sav", ".dta", ".rds", ".rdata", ".h5", ".hdf5", ".npz", ".npy", ".pkl", ".pickle", ".mat",
)  # fmt: skip
ARROW_MAGIC = {b"PAR1": "parquet", b"ARROW1": "feather", b"FEA1": "feather"}


def open_table(X: Any, options: ReadOptions) -> Table | None:
    """X as a table; None if it is an array, a matrix or something else."""
    if isinstance(X, np.ndarray):  # the most frequent case
        return None
    if isinstance(X, (str, os.PathLike)):
        return open_file(X, options)
    if isinstance(X, (pa.Table, pa.RecordBatch)):
        return _arrow_table(X.schema, lambda at: [X.column(one) for one in at])
    if hasattr(X, "to_table") and isinstance(getattr(X, "schema", None), pa.Schema):
        return _arrow_table(X.schema, lambda at: X.to_table(columns=[X.schema.names[one] for one in at]).columns)
    frame = _to_narwhals(X)
    if isinstance(frame, nw.LazyFrame):
        fields = frame.collect_schema().names()
        empty = frame.head(0).collect().to_arrow()
        return _arrow_table(
            empty.schema, lambda at: frame.select([fields[one] for one in at]).collect().to_arrow().columns
        )
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
        return Table(names, lambda at: [_to_column([one.get(names[place]) for one in X]) for place in at])
    return None


def _to_narwhals(X: Any) -> Any:
    """A frame of any library as one of narwhals; other objects stay."""
    try:
        return nw.from_native(X, pass_through=True)
    except nw.exceptions.DuplicateError as error:
        names = " ".join(line.strip("- ") for line in str(error).splitlines()[1:])
        raise DataError("Every column must have its own name.", found=names, remedy="Rename one of them.") from None


def as_frame(X: Any) -> nw.DataFrame[Any] | None:
    """X as a narwhals frame, None if it is no frame in memory."""
    frame = None if isinstance(X, np.ndarray) else _to_narwhals(X)
    return frame if isinstance(frame, nw.DataFrame) else None


def _to_column(values: list[Any]) -> Any:
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
    """An Arrow table; its rows are labelled by the index that pandas stored in it, if that is a single column."""
    check_names(schema.names)
    hidden = [place for place, one in enumerate(schema.names) if one.startswith(PANDAS_INDEX)]
    kept = [place for place in range(len(schema.names)) if place not in hidden]
    index = load(hidden)[0].to_pylist() if len(hidden) == 1 else []
    return Table(
        [schema.names[place] for place in kept],
        lambda at: load([kept[one] for one in at]),
        name=name,
        index=uniform(index, "row") if index and len(set(index)) == len(index) else None,
        types=[schema.types[place] for place in kept],
    )


def check_names(names: Sequence[ColumnName]) -> None:
    """Refuse two columns of one name."""
    if len(set(names)) != len(names):
        twice = next(name for place, name in enumerate(names) if name in names[:place])
        must, remedy = "Every column must have its own name.", "Rename one of them."
        raise DataError(must, found=f"{quoted(twice)} twice", remedy=remedy)


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
    """A column of a frame as an Arrow array, or as an object array."""
    if series.dtype in (nw.Object, nw.Unknown):
        return _to_column(series.to_list())
    native = series.to_native()
    if series.dtype.is_numeric() and isinstance(getattr(native, "dtype", None), np.dtype):  # of pandas
        return pa.array(native.to_numpy())  # NaN stays a value here: it means missing all the same
    try:
        return series.to_arrow()
    except (pa.ArrowException, UnicodeEncodeError, TypeError):
        return _to_column(series.to_list())


def open_file(X: FilePath, options: ReadOptions) -> Table:
    """A file, or all files that a pattern such as "part-*.csv" names."""
    path = Path(X).expanduser()
    paths = [path]
    if any(mark in str(path) for mark in "*?[") and not path.exists():
        paths = sorted(Path(one) for one in glob.glob(str(path), recursive=True))
        if not paths:
            must = "A pattern must name at least one file."
            raise DataError(must, found="none", where=f"for {str(X)!r}", remedy="Check the folder.")
    with file_errors(path if len(paths) == 1 else paths[0]):
        kind = _kind(paths[0])
        if kind == "text":
            return _text_table(paths, options)
        return _excel_table(paths) if kind == "excel" else _arrow_files(paths, kind)


def _kind(path: Path) -> str:
    """Kind of a file: "text", "excel", "parquet", "feather" or "json", by its first bytes and its ending."""
    with path.open("rb") as raw:
        head = raw.read(64)
    suffix = Path(path.stem).suffix.lower() if path.suffix in (".gz", ".bz2", ".zst", ".zip") else path.suffix.lower()
    if suffix in (".xlsx", ".xlsm") and head.startswith(ZIP):
        return "excel"
    if suffix in FOREIGN:
        must = "A data file must be text, Parquet, Feather, JSON lines or .xlsx."
        raise DataError(must, found=repr(path.name), remedy="Save it as CSV or Parquet.")
    for magic, kind in ARROW_MAGIC.items():
        if head.startswith(magic):
            return kind
    if suffix in PARQUET or suffix in FEATHER:
        must = f"{path.name} must be a whole {'Parquet' if suffix in PARQUET else 'Feather'} file."
        raise DataError(must, found="otherwise", remedy="Download or copy it again.")
    if suffix in JSON_LINES or (head.lstrip().startswith(b"{") and b'"' in head):
        return "json"
    if head.lstrip()[:1] == b"[" and (suffix == ".json" or re.match(rb"\s*\[\s*[\[{]", head)):
        must = "JSON must have one object per line."
        raise DataError(must, found="an array", where=f"in {path.name}", remedy="Write it as JSON lines, or as CSV.")
    return "text"


class _TextColumns:
    """Reads columns of text files that belong together."""

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


def _text_table(paths: Sequence[Path], options: ReadOptions) -> Table:
    files = []
    for path in paths:
        with file_errors(path):
            files.append(open_text(path, options.separator, options.comment, options.encoding))
    has_header = has_header_line(files[0], options)
    for file in files[1:]:
        same = file.width == files[0].width and file.separator == files[0].separator
        if not same or (has_header and file.sample[0] != files[0].sample[0]):
            raise _different_columns(file.path, file.sample[0], files[0].path, files[0].sample[0])
    by_position = not has_header or options.numbers_columns
    names: list[Any] = list(range(files[0].width)) if by_position else [name.strip() for name in files[0].sample[0]]
    if names.count("") > 1:  # from separators at the ends of lines, as Excel writes them
        names = [f"column {place + 1}" if name == "" and place else name for place, name in enumerate(names)]
    check_names(names)
    markers = MISSING | {str(one).strip().lower() for one in options.na_values or ()}
    load = _TextColumns(files, has_header, options.progress)
    return Table(names, load, has_header, paths[0].name, tuple(files), options.decimal, options.thousands, markers)


def _different_columns(path: Path, names: list[str], first: Path, first_names: list[str]) -> DataError:
    found, where = f"{names[:20]} in {path.name}, and {first_names[:20]}", f"in {first.name}"
    must = "Files that are read together must have the same columns."
    return DataError(must, found=found, where=where, remedy="Read them one by one.")


@contextmanager
def arrow_errors(name: str, kind: str) -> Iterator[None]:
    """Turn errors of Arrow's readers into `DataError`: a damaged file is noticed when it is opened or read."""
    what = "JSON lines, an object per line, all alike" if kind == "json" else f"a whole {kind.capitalize()} file"
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        must = f"{name} must be {what}."
        raise DataError(must, found=f"otherwise: {error}", remedy="Fix it, or download or copy it again.") from None


def _arrow_files(paths: Sequence[Path], kind: str) -> Table:
    """Parquet, Feather and JSON lines as an Arrow dataset."""
    import pyarrow.dataset as ds

    def errors() -> AbstractContextManager[None]:
        return arrow_errors(paths[0].name, kind)

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
                    raise _different_columns(path, schema.names, paths[0], schemas[0].names)
            whole = pa.unify_schemas(schemas, promote_options="permissive")
            dataset = ds.dataset([str(path) for path in paths], whole, form)
    table = _arrow_table(dataset.schema, load, paths[0].name)
    table.dataset = None if kind == "json" else dataset
    return table


def _excel_table(paths: Sequence[Path]) -> Table:
    try:
        import openpyxl
    except ImportError:
        must, remedy = "Excel files need openpyxl.", "Install it: pip install openpyxl; or save the table as CSV."
        raise DataError(must, found=f"{paths[0].name!r} and no openpyxl", remedy=remedy) from None
    try:
        with closing(openpyxl.load_workbook(paths[0], read_only=True, data_only=True)) as book:
            records = book.worksheets[0].iter_rows(values_only=True)
            rows = [list(row) for row in records if any(one is not None for one in row)]
    except Exception as error:  # openpyxl has no exception of its own for a damaged workbook
        must = f"{paths[0].name} must be a whole Excel workbook."
        raise DataError(must, found=f"otherwise: {error}", remedy="Save it again, or as CSV.") from None
    if len(paths) > 1 or not rows:
        must = "One Excel workbook with names in its first row can be read."
        raise DataError(must, found="no row" if not rows else f"{len(paths)} workbooks", remedy="Save it as CSV.")
    header, *below = rows
    width = max((place + 1 for row in rows for place, one in enumerate(row) if one is not None), default=0)
    names = [str(name).strip() if name is not None else "" for name in (*header, *[None] * width)][:width]
    columns = [_to_column([row[place] if place < len(row) else None for row in below]) for place in range(width)]
    check_names(names)
    return Table(names, lambda at: [columns[one] for one in at], name=paths[0].name)
