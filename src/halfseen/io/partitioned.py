"""Long Parquet and Feather files as an `Observed` whose arrays are mapped from files: more data than memory holds.

Rows of the files are read in parts of about `ROWS_PER_PART`. Each part numbers its ids by itself and writes its cells
with these numbers; the ids of all parts are then numbered in the order of their first appearance, and cells are
distributed to buckets, ranges of rows with about as many cells; each bucket is sorted by `Observed.from_cells`, and
the buckets are joined. What comes out, labels and bits, is what `observe` would give, and so are the errors.

What is done with a part or a bucket is a pure function of files in one folder, and may run on the workers of a cluster.
"""

import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
from pyarrow.fs import LocalFileSystem

from halfseen.array_files import map_temporary, temporary_folder
from halfseen.arrays import Array
from halfseen.errors import DataError
from halfseen.io.numbers import Scale
from halfseen.io.reader import observe_table
from halfseen.io.schema import LongHeader, ReadOptions, ReadSummary, recognise
from halfseen.io.sources import arrow_errors, open_file
from halfseen.io.tables import FilePath, Table, as_ids, encode_arrow, id_labels, ordered_levels
from halfseen.labels import Places, as_labels, index_dtype
from halfseen.observed import LARGE, Observed, Repeated, as_values, first_at_cell

#: Rows of the files, and cells of the matrix, that are in memory at a time, about.
ROWS_PER_PART = CELLS_PER_BUCKET = 1 << 20
#: Rows that Arrow decodes at a time.
ROWS_PER_BATCH = 1 << 17
#: Calls a function with the items of some lists, one of each at a time, and returns the results in their order.
Run = Callable[..., list[Any]]


def run_here(function: Callable[..., Any], *lists: Sequence[Any]) -> list[Any]:
    """One call after the other, in this process."""
    return [function(*items) for items in zip(*lists, strict=True)]


def observe_files(
    X: FilePath, folder: FilePath | None = None, *, run: Run = run_here, smallest: int = LARGE, **options: Any
) -> Observed:
    """Read long Parquet or Feather files in bounded memory; others, and those of fewer rows, as `observe` does.

    Parameters
    ----------
    X : str or path-like
        A file, or a pattern that names several.
    folder : str or path-like, default=None
        Where to make a folder for the arrays, which is removed when nothing uses them any more. None: the one for
        temporary files.
    run : callable, default=run_here
        Runs what is to be done with each part.
    smallest : int, default=LARGE
        Number of rows from which on arrays are mapped from files.
    **options
        Options of `observe`.

    Returns
    -------
    Observed
    """
    read = ReadOptions(**{**options, "unseen": options.get("unseen") or "missing"})
    table = open_file(X, read)
    header = recognise(table, read) if table.dataset is not None else None
    is_plain = read.column_labels is None and (read.cell_weight is None or read.weight_name is not None)
    if header is None or not is_plain:
        return observe_table(table, read)
    with arrow_errors(table.name, table.dataset.format.default_extname):
        sources = list_parts(table.dataset)
    if sum(part.n_rows for part in sources) < max(smallest, 1):
        return observe_table(table, read)
    Observed.from_cells([], [], [], (1, 1), unseen=read.unseen, duplicates=read.duplicates, allow_empty=True)
    try:
        place = temporary_folder(folder)
    except OSError as error:
        raise no_room(error, tempfile.gettempdir() if folder is None else folder) from None
    try:
        return read_parts(table, header, read, sources, place, run)
    except BaseException as error:
        shutil.rmtree(place, ignore_errors=True)
        if isinstance(error, OSError):
            raise no_room(error, place) from None
        raise
    finally:
        shutil.rmtree(place / "parts", ignore_errors=True)


def no_room(error: OSError, folder: FilePath) -> DataError:
    """The error for a folder in which files could not be written or found."""
    must = "The folder for temporary files must have room for the cells, and all workers must see it."
    found, remedy = error.strerror or str(error), "Choose another one: set TMPDIR."
    return DataError(must, found=found, where=f"in {str(folder)!r}", remedy=remedy)


# ---------------------------------------------------------------------------------------------------------------------
# what is read


class FilePart(NamedTuple):
    """Some rows of files."""

    number: int
    sources: tuple[tuple[str, tuple[int, ...] | None], ...]
    """Files, and the row groups of those that have any."""
    first_row: int
    n_rows: int


@dataclass(frozen=True)
class Plan:
    """What all parts and buckets need to know."""

    folder: str
    name: str
    schema: pa.Schema
    header: LongHeader
    weight: Any
    scale: Scale
    unseen: str
    duplicates: str
    is_parquet: bool

    @property
    def columns(self) -> list[Any]:
        return [name for name in (*self.header, self.weight) if name is not None]

    def path(self, kind: str, number: int) -> str:
        return f"{self.folder}/{kind}-{number}"


def list_parts(dataset: Any) -> list[FilePart]:
    """All rows of a dataset in parts: several small files together, or some row groups of a large one."""
    parts, sources, first_row, n_rows = list[FilePart](), dict[str, list[int] | None](), 0, 0

    def close() -> None:
        nonlocal first_row, n_rows
        if n_rows:
            listed = tuple((path, None if groups is None else tuple(groups)) for path, groups in sources.items())
            parts.append(FilePart(len(parts), listed, first_row, n_rows))
        sources.clear()
        first_row, n_rows = first_row + n_rows, 0

    for fragment in dataset.get_fragments():
        groups = getattr(fragment, "row_groups", None)
        if groups is None:
            sources[fragment.path] = None
            n_rows += fragment.count_rows()
        for group in groups or ():
            listed: Any = sources.setdefault(fragment.path, [])
            listed.append(group.id)
            n_rows += group.num_rows
            if n_rows >= ROWS_PER_PART:
                close()
        if n_rows >= ROWS_PER_PART:
            close()
    close()
    return parts


def tables(part: FilePart, plan: Plan, columns: list[Any]) -> Iterator[Table]:
    """The rows of a part, by about `ROWS_PER_PART`, as tables."""
    form = ds.ParquetFileFormat() if plan.is_parquet else ds.IpcFileFormat()
    first_row, n_rows, batches = part.first_row, 0, list[pa.RecordBatch]()

    def as_table() -> Table:
        whole = pa.Table.from_batches(batches)
        types = [plan.schema.field(name).type for name in columns]
        return Table(columns, lambda at: [whole.column(one) for one in at], types=types, first_row=first_row)

    for path, groups in part.sources:
        with arrow_errors(plan.name, "parquet" if plan.is_parquet else "feather"):
            chosen: dict[str, Any] = {} if groups is None else {"row_groups": groups}
            fragment = form.make_fragment(path, LocalFileSystem(), **chosen)
            scanner = fragment.scanner(plan.schema, columns=columns, batch_size=ROWS_PER_BATCH, batch_readahead=4)
            found = scanner.to_batches()
        while True:
            with arrow_errors(plan.name, "parquet" if plan.is_parquet else "feather"):
                batch = next(found, None)
            if batch is None:
                break
            batches.append(batch)
            n_rows += batch.num_rows
            if n_rows >= ROWS_PER_PART:
                yield as_table()
                first_row, n_rows, batches = first_row + n_rows, 0, []
    if n_rows:
        yield as_table()


class Piece(NamedTuple):
    """The cells of some rows of the files, with ids numbered for themselves."""

    path: str
    n_cells: int
    dtype: list[Any]
    row_ids: str
    column_ids: str


class Refused(NamedTuple):
    """What was wrong in a part: an error of reading, or a cell whose value or weight is none. The least comes first."""

    order: tuple[int, int]
    error: DataError | None
    cell: Any = None
    """Number of the piece in its part, and its record."""


def read_part(part: FilePart, plan: Plan) -> tuple[list[Piece], list[Refused]]:
    """Write the cells of a part, and the different ids in them, to files."""
    pieces, refused = list[Piece](), list[Refused]()
    for table in tables(part, plan, plan.columns):
        order, arrays = 0, list[Any]()
        try:
            for side, name in (("row", plan.header.row), ("column", plan.header.column)):
                column = table.column(name)
                order = (0 if side == "row" else 3) + (not column.null_count)  # nulls are refused before NaN
                arrays.append(encode_arrow(as_ids(column, side, partial(table.place, column=name))))
            order, value = 6, plan.header.value
            values = as_values(np.ones(table.n_rows) if value is None else table.numbers(value, plan.scale))
            order = 7
            weights = None if plan.weight is None else table.numbers(plan.weight)
        except DataError as error:
            order += order in (1, 4) and error.found[:2] != "no"  # an inexact id is refused after NaN
            refused.append(Refused((order, table.first_row), error))
            continue
        dtype: list[Any] = [("row", "i4"), ("column", "i4"), ("value", values.dtype.str)]
        dtype += [] if weights is None else [("weight", values.dtype.str)]
        records = np.empty(values.size, dtype)
        (records["row"], rows), (records["column"], columns) = arrays
        records["value"] = values
        if weights is not None:
            with np.errstate(over="ignore"):
                records["weight"] = as_values(weights)
        bad = {8: np.isinf(values)}
        if weights is not None:
            bad[9] = ~np.isfinite(records["weight"]) | (records["weight"] < 0)
        for order, mask in bad.items():
            if mask.any():
                first = int(np.argmax(mask))
                refused.append(Refused((order, table.first_row + first), None, (len(pieces), records[first])))
        name = f"{part.number}-{len(pieces)}"
        paths = [f"{plan.folder}/{kind}-{name}" for kind in ("cells", "rows", "columns")]
        write_whole(paths[0], records.tofile)
        for path, ids, codes in ((paths[1], rows, records["row"]), (paths[2], columns, records["column"])):
            counts = pa.array(np.bincount(codes, minlength=len(ids)).astype(np.int32))
            write_whole(path, partial(write_ids, ids, counts))
        pieces.append(Piece(paths[0], values.size, dtype, paths[1], paths[2]))
    return pieces, refused


def read_level_names(part: FilePart, plan: Plan) -> list[pa.Array]:
    """The texts of a column of ordered categories, as often as they change."""
    names = list[pa.Array]()
    for table in tables(part, plan, [plan.header.value]):
        for chunk in table.column(plan.header.value).chunks:
            if not names or not chunk.dictionary.equals(names[-1]):
                names.append(chunk.dictionary)
    return names


def write_whole(path: str, write: Callable[[Path], Any]) -> None:
    """Write a file that no other process sees half of; several may write the same one."""
    handle, draft = tempfile.mkstemp(".part", dir=Path(path).parent)
    with open(handle):
        write(Path(draft))
    Path(draft).replace(path)


def write_ids(ids: pa.Array, counts: pa.Array, path: Path) -> None:
    batch = pa.record_batch([ids, counts], names=["id", "count"])
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, batch.schema) as writer:
        writer.write_batch(batch)


def merge_ids(files: Sequence[str]) -> tuple[pa.Array, Array]:
    """All ids, in the order of their first appearance, and the number of cells of each.

    The numbers of the ids of each file among them are written beside it.
    """
    ids: Any = None
    waiting, n_waiting = list[tuple[str, pa.Array]](), 0

    def merge() -> None:
        nonlocal ids, n_waiting
        known = [] if ids is None else [ids]
        encoded = pa.chunked_array([*known, *(one for _, one in waiting)]).dictionary_encode()
        for (file, _), chunk in zip(waiting, encoded.chunks[len(known) :], strict=True):
            chunk.indices.to_numpy().tofile(f"{file}-places")
        ids, n_waiting = encoded.chunks[-1].dictionary, 0
        waiting.clear()

    for file in files:
        with pa.memory_map(file) as mapped:
            waiting.append((file, pa.ipc.open_file(mapped).read_all().column("id").chunk(0)))
        n_waiting += len(waiting[-1][1])
        if ids is None or n_waiting >= len(ids):  # so that all of it takes time linear in the lengths of the files
            merge()
    if waiting:
        merge()
    counts = np.zeros(len(ids), np.int64)
    for file in files:
        with pa.memory_map(file) as mapped:
            counts[np.fromfile(f"{file}-places", np.int32)] += pa.ipc.open_file(mapped).read_all()["count"].to_numpy()
    return ids, counts


# ---------------------------------------------------------------------------------------------------------------------
# what is written


def distribute(number: int, piece: Piece, cuts: Array, plan: Plan) -> list[int]:
    """Number the ids of a piece among all, and sort its cells by buckets, which begin at row 0 and at rows `cuts`.

    Returns where each bucket begins, and the end.
    """
    records = np.fromfile(piece.path, piece.dtype)
    for name, ids in (("row", piece.row_ids), ("column", piece.column_ids)):
        records[name] = np.fromfile(f"{ids}-places", np.int32)[records[name]]
    bucket = np.searchsorted(cuts, records["row"], side="right").astype(np.int32 if cuts.size > 65_000 else np.uint16)
    write_whole(plan.path("sorted", number), records[np.argsort(bucket, kind="stable")].tofile)
    starts: list[int] = np.append(0, np.cumsum(np.bincount(bucket, minlength=cuts.size + 1))).tolist()
    return starts


class Bucket(NamedTuple):
    """Sorted cells of a range of rows, in files."""

    n_cells: int
    has_values: bool
    """Whether any of them is not 0."""
    repeated: Repeated | None


def sort_bucket(number: int, rows: tuple[int, int], n_columns: int, dtype: list[Any], plan: Plan) -> Bucket:
    """Sort the cells of some rows, and merge those of a place."""
    ends, found = np.load(plan.path("starts", 0), mmap_mode="r")[:, number : number + 2], list[Array]()
    for piece, (start, stop) in enumerate(ends.tolist()):
        offset = start * np.dtype(dtype).itemsize
        found.append(np.fromfile(plan.path("sorted", piece), dtype, stop - start, offset=offset))
    records = np.concatenate(found)
    del found
    row, column, value = records["row"] - np.int32(rows[0]), records["column"].copy(), records["value"].copy()
    weights = None if plan.weight is None else records["weight"].copy()
    del records
    refuses = plan.duplicates == "error"
    cells = Observed.from_cells(
        row, column, value, (rows[1] - rows[0], n_columns), weights=weights, unseen=plan.unseen,
        duplicates="keep" if refuses else plan.duplicates, allow_empty=True,
    )  # fmt: skip
    repeated = None
    if refuses and not (is_first := first_at_cell(cells.indptr, cells.indices)).all():
        repeated = Repeated.of(cells.indptr, cells.indices, np.flatnonzero(is_first))
        repeated = repeated._replace(row=repeated.row + rows[0])
    arrays: dict[str, Array] = {"indptr": cells.indptr[1:].astype(np.int64), "values": cells.values}
    arrays |= {"indices": cells.indices.astype(np.int32, copy=False)}
    arrays |= {} if cells.weights is None else {"weights": cells.weights}
    for name, array in arrays.items():
        write_whole(plan.path(name, number), array.tofile)
    return Bucket(cells.nnz, bool(cells.values.any()), repeated)


def read_parts(
    table: Table, header: LongHeader, options: ReadOptions, parts: list[FilePart], folder: Path, run: Run
) -> Observed:
    """The cells of all parts, in files of a folder."""
    (folder / "parts").mkdir()
    plan = Plan(
        str(folder / "parts"), table.name, table.dataset.schema, header, options.weight_name, options.scale,
        options.unseen, options.duplicates, table.dataset.format.default_extname == "parquet",
    )  # fmt: skip
    if options.scale.ordered and header.value is not None:
        kind, names = plan.schema.field(header.value).type, list[pa.Array]()
        if pa.types.is_dictionary(kind) and kind.ordered:
            names = [one for some in run(read_level_names, parts, [plan] * len(parts)) for one in some]
        none = pa.array([], kind.index_type) if names else None
        chunks = [pa.DictionaryArray.from_arrays(none, one, ordered=True) for one in names]
        options = replace(options, levels=ordered_levels(pa.chunked_array(chunks, kind)) or options.levels)
        plan = replace(plan, scale=options.scale)

    # read, and number ids
    found = run(read_part, parts, [plan] * len(parts))
    pieces = [piece for some, _ in found for piece in some]
    refused = min(((one, some) for some, ones in found for one in ones), key=lambda pair: pair[0].order, default=None)
    if refused is not None and refused[0].error is not None:
        raise refused[0].error
    (row_ids, per_row), (column_ids, _) = (merge_ids([one[at] for one in pieces]) for at in (-2, -1))
    labels = id_labels(row_ids, "row"), id_labels(column_ids, "column")
    del row_ids, column_ids
    n, m = shape = labels[0].size, labels[1].size
    for one, side in zip(labels, ("row", "column"), strict=True):
        if one.dtype.kind not in "iuO":  # dates that differ may be equal in another unit
            as_labels(one, side, one.size)
    if refused is not None:
        number, record = refused[0].cell
        files = zip(("row", "column"), refused[1][number][-2:], strict=True)
        at = [np.fromfile(f"{file}-places", np.int32)[record[name]] for name, file in files]
        weight = None if plan.weight is None else [record["weight"]]
        where: dict[str, Any] = {"row_labels": labels[0], "column_labels": labels[1]}
        Observed.from_cells([at[0]], [at[1]], record["value"].reshape(1), shape, weights=weight, **where)  # raises

    # distribute cells to ranges of rows, and sort these
    ends = np.cumsum(per_row)
    goals = np.arange(CELLS_PER_BUCKET, int(ends[-1]), CELLS_PER_BUCKET)
    cuts = np.unique(np.searchsorted(ends, goals) + 1)
    cuts = cuts[cuts < n]
    starts = run(distribute, range(len(pieces)), pieces, *([one] * len(pieces) for one in (cuts, plan)))
    for piece in pieces:
        Path(piece.path).unlink()
    with Path(plan.path("starts", 0)).open("wb") as out:
        np.save(out, np.array(starts))
    rows = list(zip([0, *cuts.tolist()], [*cuts.tolist(), n], strict=True))
    numbers = range(len(rows))
    buckets = run(sort_bucket, numbers, rows, *([one] * len(rows) for one in (m, pieces[0].dtype, plan)))
    repeated = [bucket.repeated for bucket in buckets if bucket.repeated is not None]
    if repeated:
        raise repeated[0]._replace(n_cells=sum(one.n_cells for one in repeated)).error(Places(*labels))
    if not any(bucket.has_values if options.unseen == "zero" else bucket.n_cells for bucket in buckets):
        empty = np.empty(0, np.int32)
        Observed.from_cells(
            empty, empty, [], shape, unseen=options.unseen, allow_empty=options.allow_empty
        )  # may raise

    # join the buckets
    for number in range(len(pieces)):
        Path(plan.path("sorted", number)).unlink()
    nnz, value_type = sum(bucket.n_cells for bucket in buckets), dict(pieces[0].dtype)["value"]
    index_type = index_dtype(shape, nnz)
    types = {"indices": (np.dtype(np.int32), index_type), "values": (value_type, value_type)}
    types |= {} if plan.weight is None else {"weights": (value_type, value_type)}
    arrays: dict[str, Any] = {}
    for name, (given, wanted) in types.items():
        with (folder / name).open("wb") as out:
            for number in numbers:
                source = Path(plan.path(name, number))
                np.fromfile(source, given).astype(wanted, copy=False).tofile(out)
                source.unlink()
        arrays[name] = map_temporary(folder / name, wanted, nnz)
    indptr, done = [np.zeros(1, np.int64)], 0
    for number, bucket in enumerate(buckets):
        indptr.append(np.fromfile(plan.path("indptr", number), np.int64) + done)
        done += bucket.n_cells
    np.concatenate(indptr).astype(index_type).tofile(folder / "indptr")
    arrays["indptr"] = map_temporary(folder / "indptr", index_type, n + 1)
    return Observed(
        arrays["indptr"], arrays["indices"], arrays["values"], shape, arrays.get("weights"), options.unseen, *labels,
        options.scale.labels if options.scale.names else None, ReadSummary.of_long(table, header, plan.weight),
    )  # fmt: skip
