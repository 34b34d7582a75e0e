"""`observe`: one way from every kind of input to an `Observed`."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeGuard

import numpy as np
from scipy import sparse

from halfseen.errors import DataError, DataWarning
from halfseen.io.numbers import NUMBERS, Levels, NotANumber, Scale
from halfseen.io.schema import IDS, TITLES, LongHeader, OnUnknown, ReadOptions, ReadSummary, plain_spelling, recognise
from halfseen.io.sources import as_frame, open_file, open_table
from halfseen.io.tables import CellWeight, ColumnName, FilePath, MatrixSource, Table, ordered_levels
from halfseen.io.text import Progress
from halfseen.io.wide import grid_of_frame, observe_wide
from halfseen.labels import NULL_TYPES, Index, Places, encode, index_dtype, quoted, text_array
from halfseen.observed import LARGE, Observed, as_values

CELLS_PER_BLOCK = 1 << 22


def observe(
    X: MatrixSource | Observed,
    *,
    unseen: str | None = "missing",
    cell_weight: CellWeight = None,
    duplicates: str = "error",
    layout: str = "auto",
    columns: Sequence[ColumnName] | None = None,
    column_labels: Iterable[Any] | None = None,
    allow_empty: bool = False,
    header: bool | None = None,
    levels: Levels = None,
    separator: str | None = None,
    decimal: str | None = None,
    thousands: str | None = None,
    na_values: Sequence[str] | None = None,
    comment: str | None = None,
    encoding: str | None = None,
    progress: Progress | None = None,
    on_unknown: OnUnknown | None = None,
) -> Observed:
    """Read a matrix with missing cells from data of any kind.

    Parameters
    ----------
    X : array-like, sparse matrix, frame, Arrow stream, list of records, path or Observed
        A dense array-like (NaN, None and masked cells are unobserved); a scipy sparse matrix or array (what is not
        stored is unobserved, a stored 0 is a value); a pandas, polars (also lazy) or Arrow table or dataset, or
        anything with ``__arrow_c_stream__`` (DuckDB, ADBC, Ibis), or a list of dicts; the path of a text, Parquet,
        Feather, JSON lines or Excel file, also compressed, or a pattern that names several ("part-*.csv"); or an
        `Observed`. Tables may be long (row, column, value) or wide. The rows of a wide table are named by its first
        column if that holds texts, or whole numbers under a header such as "id" or "user_id", different in every row;
        else by the index of a pandas frame, unless it only counts the rows. A list of triples (row, column, value)
        whose rows are named by text, or with layout="long", is a long table as well.
    unseen : {"missing", "zero"} or None, default="missing"
        Meaning of an unobserved cell: it may be anything, or it is 0. None: as an `Observed` has it, else "missing".
        Under "zero" the zeros of dense arrays and wide tables are unobserved cells; those that sparse matrices, long
        tables and an `Observed` store stay.
    cell_weight : array-like, frame, sparse matrix or str, default=None
        Weight of each cell: an array of X's shape, a frame with the columns of a wide table, in any order, a sparse
        matrix that stores the same cells, a list in the order of the cells, or the name of a column of a long table.
    duplicates : {"error", "sum", "mean", "min", "max", "first", "last", "keep"}, default="error"
        What to do with a cell given more than once; see `Observed.from_cells`.
    layout : {"auto", "long", "wide"}, default="auto"
        Whether a table is long or wide; "auto": long if its headers look so (user, item, rating and the like).
    columns : tuple of str or int, default=None
        The headers of rows, columns and values of a long table, such as ("user", "item", "rating"); only the first two
        if every listed pair counts as 1. In a text file also positions, from 0.
    column_labels : array-like, default=None
        The labels of the columns of a fitted model: the result has exactly these columns, in this order.
    allow_empty : bool, default=False
        Whether a matrix without an observed cell is allowed.
    header : bool, default=None
        Whether the first line of a text file holds the names of its columns. None: inferred from the first lines.
    levels : list of str, "ordered" or None, default=None
        For values that are texts with an order: these texts from the lowest to the highest, which are read as 1, 2,
        ...; "ordered" takes them from a long frame's values, if these are ordered categories.
    separator : str, default=None
        Separator of the fields of a text file; " " for runs of blanks. None: inferred from the first lines.
    decimal, thousands : str, default=None
        Decimal mark and thousands separator of a text file. None: inferred from the numbers; what could be read in two
        ways is refused.
    na_values : list of str, default=None
        More texts that mark missing values, beside the empty field, NA, N/A, NaN, null, None, ?, -, --, . and #N/A, in
        any case.
    comment : str, default=None
        Beginning of lines that are no data. None: lines above the table that begin with # are skipped.
    encoding : str, default=None
        Encoding of a text file. None: UTF-8 or UTF-16, else a single-byte encoding, which the summary names.
    progress : callable, default=None
        Called with the bytes read so far and the size of a text file.
    on_unknown : callable, default=None
        Called with the labels that are not in `column_labels`, and the number of their cells, which are then left out.
        None: such labels are refused.

    Returns
    -------
    Observed
        Observed cells, by rows.

    Examples
    --------
    >>> import halfseen as hs
    >>> hs.observe([[5, 3, None], [4, None, 1]])
    Observed(2 x 3, 4 cells seen (0.667 of all), unseen='missing', float64)
    >>> hs.observe([("ann", "tea", 2), ("bob", "jam", 1)], unseen="zero").row_labels
    array(['ann', 'bob'], dtype=object)
    """
    options = ReadOptions(
        unseen or "missing", cell_weight, duplicates, layout, columns, column_labels, allow_empty, header, levels,
        separator, decimal, thousands, na_values, comment, encoding, progress, on_unknown,
    )  # fmt: skip
    if isinstance(X, Observed):
        return _reobserve(X, replace(options, unseen=unseen or X.unseen))
    if sparse.issparse(X):
        return _observe_sparse(X, options)
    table = open_table(X, options)
    if table is not None:
        return observe_table(table, options)
    if are_triples(X, options):
        return _observe_triples(X, options)
    if _is_array_like(X):
        options.refuse_table_options()
        array = with_holes(X, well_formed(X), options.scale)
        return _observe_dense(array, options.cell_weight, None, None, options)
    must = "must be an array, a scipy sparse matrix, a pandas, polars or Arrow frame, or the path of a text or Parquet "
    found = "None" if X is None else f"a {type(X).__name__}"
    raise DataError(f"{must}file.", parameter="X", found=found, remedy="Convert it to one of these.")


def read_table(path: FilePath, layout: str = "wide", header: bool | None = None, **options: Any) -> Table:
    """Read a text, Parquet, Feather, JSON lines or Excel file by columns, fields as they are.

    Parameters
    ----------
    path : str or path-like
        The file.
    layout : {"auto", "long", "wide"}, default="wide"
        Layout of the table, which helps to decide whether a text file has a header.
    header : bool, default=None
        Whether the first line of a text file holds names. None: inferred from the first lines.
    **options
        Reader options of `observe`: separator, decimal, thousands, na_values, comment, encoding.

    Returns
    -------
    Table
        Columns of the file, read on demand.
    """
    return open_file(path, ReadOptions(layout=layout, header=header, **options))


def read_titles(path: FilePath, find: Callable[[list[Any]], np.ndarray], size: int) -> np.ndarray:
    """Titles of the rows or columns of a model, from a table of ids and titles in any order; None where it has none.

    Parameters
    ----------
    path : str or path-like
        The table.
    find : callable
        From ids to their positions in the model, -1 where it does not know them.
    size : int
        Number of rows or columns of the model.

    Returns
    -------
    ndarray of shape (size,)
        Texts, or None.
    """
    table = read_table(path)
    if table.has_header and table.is_text and find([str(table.names[0])])[0] >= 0:
        table = read_table(path, header=False)  # the first line has an id of the model
    if len(table.names) < 2:
        must, found = "A file of names must have a column of ids and one of titles.", f"{len(table.names)} column"
        raise DataError(must, found=found, where=f"in {str(path)!r}", remedy="Add the other, or check the separator.")
    heads = [plain_spelling(name) for name in table.names]
    at_id = next((place for place, head in enumerate(heads) if head in IDS), 0)
    others = [place for place in range(len(heads)) if place != at_id]
    at_title = next((place for place in others if heads[place] in TITLES), others[0])
    ids, texts = table.texts(table.names[at_id]), table.texts(table.names[at_title])
    lines = [line for line, one in enumerate(ids) if one is not None and one == one]  # NaN is not itself
    titles = np.full(size, None, dtype=object)
    for line, position in zip(lines, find([ids[line] for line in lines]).tolist(), strict=True):
        if position >= 0 and texts[line] is not None:
            titles[position] = str(texts[line])
    return titles


def observe_table(table: Table, options: ReadOptions) -> Observed:
    """A table as an `Observed`, by what its columns are recognised as."""
    header = recognise(table, options)
    if header is None:
        return observe_wide(table, options, partial(_observe_dense, options=options))
    table.read_columns([name for name in (*header, options.weight_name) if name is not None])  # a query may be run once
    options = with_ordered_levels(table, header, options)
    cells = read_long(table, header, options)
    summary = ReadSummary.of_long(table, header, options.weight_name)
    labels, shape, weights = (cells.row_labels, cells.column_labels), cells.shape, cells.weights
    if options.weight_name is None:
        weights = weights_of(cells.rows, cells.columns, shape, options.cell_weight)
    arrays = [cells.rows, cells.columns, cells.values]
    del cells  # from here on the arrays are held once, so that each can be freed as it is replaced
    return replace(build_observed(arrays, shape, weights, options, *labels), summary=summary)


def with_ordered_levels(table: Table, header: LongHeader, options: ReadOptions) -> ReadOptions:
    """The options, with the levels of a long frame's ordered categories where these are asked for."""
    if not options.scale.ordered or header.value is None:
        return options
    return replace(options, levels=ordered_levels(table.column(header.value)) or options.levels)


@dataclass
class LongCells:
    """Lines of a long table: positions of their rows and columns, values, weights, labels."""

    rows: np.ndarray
    columns: np.ndarray
    values: np.ndarray
    weights: np.ndarray | None
    row_labels: np.ndarray
    column_labels: np.ndarray

    @property
    def shape(self) -> tuple[int, int]:
        return self.row_labels.size, self.column_labels.size


def read_long(table: Table, header: LongHeader, options: ReadOptions) -> LongCells:
    """Read the lines of a long table, ids numbered in the order of their first appearance."""
    weight, fitted = options.weight_name, options.fitted_labels
    table.read_columns([name for name in (*header, weight) if name is not None])
    as_text = fitted is not None and fitted.dtype.kind == "O"
    jobs: list[Any] = [
        lambda: table.encode(header.row, "row"),
        lambda: table.encode(header.column, "column", as_text),
        lambda: np.ones(table.n_rows) if header.value is None else table.numbers(header.value, options.scale),
    ]
    if table.n_rows > LARGE:
        with ThreadPoolExecutor(2) as pool:
            results = [job.result() for job in [pool.submit(one) for one in jobs]]
    else:
        results = [one() for one in jobs]
    (rows, row_labels), (columns, column_labels), values = results
    weights = None if weight is None else table.numbers(weight)
    if table.is_text:
        table.parser.settle()
        table.parser.with_points.clear()
        numeric = row_labels.dtype.kind != "O" and column_labels.dtype.kind != "O"
        sure = table.has_header or options.layout == "long" or options.columns is not None
        if numeric and not sure and not (row_labels.size < rows.size and column_labels.size < columns.size):
            must = "It should be known what three columns of numbers without a header are."
            remedy = 'Its lines were read as row, column, value; pass `layout="wide"` if it is a table.'
            warning = DataWarning(must, found=f"{table.name}, in which ids are not repeated", remedy=remedy)
            warnings.warn(warning, stacklevel=5)
    table.read.clear()
    return LongCells(rows, columns, values, weights, row_labels, column_labels)


def build_observed(
    arrays: list[np.ndarray],
    shape: tuple[int, int],
    weights: np.ndarray | None,
    options: ReadOptions,
    row_labels: np.ndarray | None = None,
    column_labels: np.ndarray | None = None,
    zeros: str = "keep",
) -> Observed:
    """Make an `Observed` of rows, columns and values, which are used up; columns are placed among the fitted ones."""
    fitted = options.fitted_labels
    if fitted is not None:
        if column_labels is not None:
            positions = Index(fitted).find(column_labels)
            unknown = np.flatnonzero(positions < 0)
            if unknown.size and options.on_unknown is not None:
                is_known = positions[arrays[1]] >= 0
                arrays[:] = (array[is_known] for array in arrays)
                weights = None if weights is None else weights[is_known]
                options.on_unknown(column_labels[unknown], int(is_known.size - np.count_nonzero(is_known)))
            elif unknown.size:
                must = f"Columns must be among the {fitted.size} that were fitted."
                found = f"{quoted(column_labels[unknown[0]])} ({unknown.size} unknown in all)"
                raise DataError(must, found=found, remedy="Leave them out, or fit again with them.")
            arrays[1] = positions.astype(index_dtype((1, fitted.size), column_labels.size))[arrays[1]]
        elif shape[1] != fitted.size:
            must = f"must have the {fitted.size} columns that were fitted."
            remedy = "Pass a frame whose columns have names, or an array of the right width."
            raise DataError(must, parameter="X", found=f"{shape[1]}, without names", remedy=remedy)
        shape, column_labels = (shape[0], fitted.size), fitted
    observed = Observed.from_cells(
        arrays.pop(0), arrays.pop(0), arrays.pop(0), shape,
        weights=weights, unseen=options.unseen, row_labels=row_labels, column_labels=column_labels,
        duplicates=options.duplicates, zeros=zeros, allow_empty=options.allow_empty,
    )  # fmt: skip
    return replace(observed, level_names=options.scale.labels) if options.scale.names else observed


# arrays


def dense_observed(array: np.ndarray, **labels: Any) -> Observed:
    """A float array with NaN where nothing was observed."""
    return Observed.from_cells(*_coordinates(~np.isnan(array)), array[~np.isnan(array)], array.shape, **labels)


def _observe_dense(
    array: np.ndarray, weights: Any, row_labels: np.ndarray | None, column_labels: Any, options: ReadOptions
) -> Observed:
    array = well_formed(array)
    seen = ~np.isnan(array)
    rows, columns = _coordinates(seen)
    weights, cells = weights_of(rows, columns, array.shape, weights), [rows, columns, array[seen]]
    return build_observed(cells, array.shape, weights, options, row_labels, column_labels, zeros="drop")


def _coordinates(seen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of the true cells, in blocks, because np.nonzero alone takes 16 bytes per cell."""
    count = int(np.count_nonzero(seen))
    dtype = index_dtype(seen.shape, count)
    rows, columns = np.empty(count, dtype), np.empty(count, dtype)
    height = max(1, CELLS_PER_BLOCK // max(seen.shape[1], 1))
    done = 0
    for top in range(0, seen.shape[0], height):
        block_rows, block_columns = np.nonzero(seen[top : top + height])
        here = slice(done, done := done + block_rows.size)
        rows[here] = block_rows + top
        columns[here] = block_columns
    return rows, columns


def with_holes(X: Any, array: np.ndarray, scale: Scale = NUMBERS) -> np.ndarray:
    """The array that was made of X as floats, NaN where X is masked."""
    array = as_numbers(array, scale)
    return np.where(np.ma.getmaskarray(X), np.nan, array) if isinstance(X, np.ma.MaskedArray) else array


def well_formed(X: Any, accept_sparse: bool = False) -> Any:
    """X as a two-dimensional array; errors have scikit-learn's messages, which its estimator checks ask for."""
    if type(X) is np.ndarray and X.ndim == 2 and X.dtype in (np.float32, np.float64) and X.size:
        return X  # as scikit-learn would, only faster
    from sklearn.utils.validation import check_array

    try:
        return check_array(X, accept_sparse=accept_sparse, dtype=None, ensure_all_finite=False)
    except ValueError as error:
        if "inhomogeneous" in str(error):
            must, remedy = "The rows of X must be lists of one length.", "Fill them up with NaN."
            raise DataError(must, found="different lengths", remedy=remedy) from None
        raise DataError(str(error)) from None


def as_numbers(array: np.ndarray, scale: Scale = NUMBERS) -> np.ndarray:
    """An array of numbers, number-like text, None and NaN as floats; one that holds floats already is not copied.

    Where the scale has names, text must be one of these.
    """
    if array.dtype in (np.float32, np.float64):
        return array
    if array.dtype.kind not in "OUS":
        return as_values(array)
    try:
        if scale.names:
            return scale.numbers(array.reshape(-1).tolist()).reshape(array.shape)
        return array.astype(np.float64)
    except NotANumber as error:
        raise _no_number(scale, error.field, *divmod(error.position, array.shape[-1])) from None
    except (ValueError, TypeError):
        values = np.empty(array.size)
        for cell, one in enumerate(array.flat):
            try:
                values[cell] = np.nan if type(one).__name__ in NULL_TYPES else float(one)
            except ValueError:
                raise _no_number(scale, one, *divmod(cell, array.shape[-1])) from None
        return values.reshape(array.shape)


def _no_number(scale: Scale, one: Any, row: int, column: int) -> DataError:
    """The error for a value of an array that is no number."""
    remedy = f"{scale.advice(one)}Convert it to {'' if scale.names else 'a number, or to '}NaN if it is unknown."
    return DataError(scale.must, found=quoted(one), where=f"at {Places().of(row, column)}", remedy=remedy)


def _observe_sparse(X: Any, options: ReadOptions) -> Observed:
    """Cells that a scipy sparse matrix or array stores, NaN aside.

    A block of a BSR matrix stores all its cells; a DIA matrix cannot store a 0.
    """
    options.refuse_table_options()
    if X.ndim != 2:
        must = "must have rows and columns."
        raise DataError(must, parameter="X", found=f"a sparse array of shape {X.shape}", remedy="Reshape it.")
    matrix = well_formed(X, accept_sparse=True)
    if matrix.format in ("csr", "csc") and matrix.indices.size > matrix.indptr[-1]:
        matrix = matrix.copy()
        matrix.prune()  # tocoo would read unused room as cells
    coordinates = matrix.tocoo(copy=False)
    cells = [*coordinates.coords, as_values(coordinates.data)]
    del coordinates, matrix
    weights = weights_of(cells[0], cells[1], X.shape, options.cell_weight)
    return build_observed(cells, X.shape, weights, options)


def are_triples(X: object, options: ReadOptions) -> TypeGuard[list[tuple[Any, Any, Any]]]:
    """Whether X is a list of tuples (row, column, value) whose first row is a text, or under layout="long".

    Three numbers may as well be a row of a dense table with three columns, and so may three levels.
    """
    if not (isinstance(X, list) and X and all(isinstance(one, tuple) and len(one) == 3 for one in X)):
        return False
    name = X[0][0]
    named = isinstance(name, str) and name not in options.scale.names
    return options.layout == "long" or (options.layout == "auto" and named)


def _observe_triples(triples: list[tuple[Any, Any, Any]], options: ReadOptions) -> Observed:
    rows, columns, values = map(list, zip(*triples, strict=True))
    try:
        numbers = options.scale.numbers(values)
    except NotANumber as error:
        at = error.position
        where = f"in triple {at}, for row {rows[at]!r}, column {columns[at]!r}"
        raise options.scale.error(error.field, where, "Use None if it is unknown.") from None
    row_codes, row_labels = encode(rows, "row")
    column_codes, column_labels = encode(columns, "column")
    shape = (row_labels.size, column_labels.size)
    weights = weights_of(row_codes, column_codes, shape, options.cell_weight)
    return build_observed([row_codes, column_codes, numbers], shape, weights, options, row_labels, column_labels)


def _is_array_like(X: Any) -> bool:
    is_sequence = isinstance(X, Sequence) and not isinstance(X, (str, bytes))
    return is_sequence or (hasattr(X, "__array__") and np.asarray(X).ndim > 0)


@dataclass(frozen=True)
class Grid:
    """A dense table, NaN where nothing was observed. Its values may share memory with what the user passed."""

    values: np.ndarray
    row_labels: np.ndarray | None = None
    column_labels: np.ndarray | None = None


def grid_of(X: MatrixSource | Observed) -> Grid | None:
    """X as a dense table; None for sparse matrices, long tables, files and an `Observed`."""
    if isinstance(X, (Observed, str)) or hasattr(X, "__fspath__") or sparse.issparse(X):
        return None
    if (frame := as_frame(X)) is not None:
        grid = grid_of_frame(frame)
        return None if grid is None else Grid(well_formed(grid[0]), *grid[1:])
    is_records = isinstance(X, (list, tuple)) and bool(X) and isinstance(X[0], dict)
    return Grid(with_holes(X, well_formed(X))) if _is_array_like(X) and not is_records else None


# an Observed again, and weights


def _reobserve(X: Observed, options: ReadOptions) -> Observed:
    """An `Observed` as it is, or rebuilt where the options ask for something else."""
    options.refuse_table_options()
    if options.duplicates == "error":
        options = replace(options, duplicates="keep")  # cells it holds more than once were meant so
    X = _recode_levels(X, options.scale) if options.scale.names else X
    nothing_new = options.cell_weight is None and options.column_labels is None
    if nothing_new and options.unseen == X.unseen and options.duplicates == "keep":
        return X
    rows = X.row_of_cell()
    weights = X.weights
    if options.cell_weight is not None:
        weights = weights_of(rows, X.indices, X.shape, options.cell_weight)
    again = build_observed([rows, X.indices, X.values], X.shape, weights, options, X.row_labels, X.column_labels)
    return replace(again, level_names=X.level_names, summary=X.summary)


def _recode_levels(X: Observed, scale: Scale) -> Observed:
    """An `Observed` whose values 1, 2, ... stand for the names of the scale."""
    if X.level_names is None or tuple(X.level_names) == scale.names:
        return replace(X, level_names=scale.labels)
    new = Index(text_array(scale.names)).find(X.level_names) + 1
    is_level = X.values == np.floor(X.values)  # the mean of two levels is none, and is refused later
    values = np.where(is_level, np.append(0, new)[X.values.astype(np.intp)], X.values)
    strange = np.flatnonzero((values == 0) & (X.values > 0))
    if strange.size:
        name = X.level_names[int(X.values[strange[0]]) - 1]
        cells = "1 such cell" if strange.size == 1 else f"{strange.size} such cells"
        remedy = "Leave them out, or add the level."
        raise DataError(scale.must, found=repr(name), where=f"at {X.place(int(strange[0]))} ({cells})", remedy=remedy)
    return replace(X, values=values.astype(X.dtype), level_names=scale.labels)


def weights_of(
    rows: np.ndarray, columns: np.ndarray, shape: tuple[int, int], cell_weight: CellWeight
) -> np.ndarray | None:
    """Weight of each cell, from an array of X's shape, a sparse one, or a list in the order of the cells."""
    if cell_weight is None:
        return None
    is_sparse = sparse.issparse(cell_weight)
    weights: Any = cell_weight if is_sparse else np.asarray(cell_weight)
    if weights.ndim == 1 and not is_sparse:
        if weights.size != rows.size:
            must, found = f"must hold one weight for each of the {rows.size} cells.", str(weights.size)
            raise DataError(must, parameter="cell_weight", found=found, remedy="Pass them in the order of the cells.")
        return weights
    if weights.shape != shape:
        must = f"must have the shape of X, {shape}."
        raise DataError(must, parameter="cell_weight", found=str(weights.shape), remedy="Pass a weight for each cell.")
    if not is_sparse:
        return weights[rows, columns]
    stored = weights.tocoo()
    known = stored.coords[0].astype(np.int64) * shape[1] + stored.coords[1]
    order = np.argsort(known, kind="stable")
    asked = rows.astype(np.int64) * shape[1] + columns
    place = np.minimum(np.searchsorted(known[order], asked), max(known.size - 1, 0))
    is_stored = known[order][place] == asked if known.size else np.zeros(asked.size, dtype=bool)
    if not is_stored.all():
        first = int(np.argmin(is_stored))
        where = Places().of(int(rows[first]), int(columns[first]))
        must = "must store a weight for every cell of X."
        raise DataError(must, parameter="cell_weight", found="none", where=f"at {where}", remedy="Add it.")
    if known.size != asked.size:
        must, found = "must store the same cells as X.", f"{known.size} weights for {asked.size} cells"
        raise DataError(must, parameter="cell_weight", found=found, remedy="Delete the weights of unobserved cells.")
    return stored.data[order][place]
