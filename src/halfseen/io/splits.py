"""Train/test splits of cells: at random, per row, by time, leave-last-out, in folds; and of rows.

All values of a cell are in the same part.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike

from halfseen.errors import DataError, ParameterError
from halfseen.io.numbers import Levels
from halfseen.io.reader import build_observed, observe, read_long, with_ordered_levels
from halfseen.io.schema import LongHeader, ReadOptions, recognise, time_column
from halfseen.io.sources import open_file, open_table
from halfseen.io.tables import Column, ColumnName, FilePath, MatrixSource, Table
from halfseen.io.text import TextFile, open_bytes
from halfseen.io.wide import WideTable, read_wide_table
from halfseen.io.write import atomic_writes, is_parquet, open_draft, separator_for, write_draft, write_errors
from halfseen.observed import Observed
from halfseen.validation import Seed, between, check_parameters, one_of, seed, whole

BY = ("random", "row", "time")
SIDECAR = ".split.json"


def split_cells(
    X: MatrixSource | Observed,
    test_size: float = 0.2,
    random_state: Seed = None,
    *,
    by: str = "random",
    last: int | None = None,
    time: ColumnName | ArrayLike = None,
    unseen: str | None = None,
    levels: Levels = "ordered",
) -> tuple[Observed, Observed]:
    """Split the observed cells into training and test cells.

    Both parts have all rows, columns, labels and weights of X. Values of a cell that was observed several times stay
    together.

    Parameters
    ----------
    X : array-like, frame, path or Observed
        Whatever `observe` reads.
    test_size : float or int, default=0.2
        Share of the cells (of each row, by "row") that are for test, rounded to whole cells, or their number.
    random_state : None, int or RandomState, default=None
        Seed of the random choice.
    by : {"random", "row", "time"}, default="random"
        "random": every set of cells is equally likely, so that a row with few cells may have all of them in test.
        "row": the share is taken of every row, which keeps a training cell at least. "time": the latest cells.
    last : int, default=None
        By "time": the last so many cells of every row, which keeps a training cell at least (leave-last-out).
    time : str or array-like, default=None
        By "time": the column of times of a long table, if it is not recognised; or the times of the cells of an
        `Observed` or array, in row order.
    unseen : {"missing", "zero"}, default=None
        Meaning of an unobserved cell; None: as an `Observed` has it, else "missing". Pass "zero" for dense arrays in
        which 0 is an unobserved cell: else it is a value, and may be drawn for test.
    levels : list of str or "ordered", default="ordered"
        The texts among the values from the lowest to the highest; "ordered" takes those of ordered categories.

    Returns
    -------
    train, test : Observed
        Training and test cells.

    Examples
    --------
    >>> import numpy as np, halfseen as hs
    >>> train, test = hs.data.split_cells(np.ones((10, 10)), test_size=0.2, random_state=0)
    >>> train.nnz, test.nnz, train.shape == test.shape
    (80, 20, True)
    """
    check_parameters({"by": by}, {"by": one_of(*BY)})
    times = None
    if by == "time" and not isinstance(X, Observed):
        options = ReadOptions(unseen=unseen or "missing", levels=levels)
        table = open_table(X, options)
        header = None if table is None else recognise(table, options)
        if table is not None and header is not None:
            return _split_by_time(table, header, options, test_size, last, time)
    observed = observe(X, unseen=unseen, levels=levels)
    if by == "time":
        times = np.asarray(time) if time is not None and not isinstance(time, str) else np.empty(0)
        if times.shape != (observed.nnz,):
            must = f"Splitting by time needs the time of each of the {observed.nnz} cells."
            remedy = "Pass a long table with a column of times, or `time=array`."
            raise DataError(must, found=str(times.size), remedy=remedy, parameter="time")
    train, test = split_indices(observed, test_size, random_state, by=by, last=last, times=times)
    return observed.select_cells(train), observed.select_cells(test)


def split_indices(
    observed: Observed,
    test_size: float = 0.2,
    random_state: Seed = None,
    *,
    by: str = "random",
    last: int | None = None,
    times: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Positions of the training and test cells of `split_cells`."""
    rows, is_first = observed.row_of_cell(), observed.is_first_at_cell
    rows = rows if is_first is None else rows[is_first > 0]
    is_test = _choose(rows, observed.cell_of_value, test_size, random_state, by, last, times)
    return np.flatnonzero(~is_test), np.flatnonzero(is_test)


def split_rows(
    X: MatrixSource | Observed,
    test_rows: float = 0.1,
    test_size: float = 0.2,
    random_state: Seed = None,
    *,
    min_cells: int = 5,
    unseen: str | None = None,
    levels: Levels = "ordered",
) -> tuple[Observed, Observed, Observed]:
    """Hold rows (users) out of training, and split the cells of each into its history and test cells.

    Strong generalization (Liang et al., 2018): a model is fitted on the other rows, the histories are folded in, and
    the test cells are ranked: `halfseen.evaluate(models, train, test, history=history)`. All parts have all columns,
    but what the rows held out have in a column that no training row has is left out, since no model can rank it.

    Parameters
    ----------
    X : array-like, frame, path or Observed
        Whatever `observe` reads.
    test_rows : float or int, default=0.1
        Share of the rows with at least `min_cells` cells that are held out, or their number.
    test_size : float or int, default=0.2
        Share of the cells of each of these that is for test, rounded to whole cells, or their number. A row keeps a
        cell of history at least.
    random_state : None, int or RandomState, default=None
        Seed of the random choice.
    min_cells : int, default=5
        Rows with fewer cells are never held out.
    unseen, levels : str or list of str
        See `split_cells`.

    Returns
    -------
    train, history, test : Observed
        Cells of the training rows; and both parts of the rows held out, which have the same rows.

    References
    ----------
    .. [1] D. Liang, R. G. Krishnan, M. D. Hoffman, T. Jebara, "Variational autoencoders for collaborative filtering",
       WWW 2018.

    Examples
    --------
    >>> import numpy as np, halfseen as hs
    >>> train, history, test = hs.data.split_rows(np.ones((10, 10)), test_rows=2, random_state=0)
    >>> train.shape, history.shape, history.nnz, test.nnz
    ((8, 10), (2, 10), 16, 4)
    """
    observed = observe(X, unseen=unseen, levels=levels)
    random = _generator(random_state)
    is_first = observed.is_first_at_cell
    of_pair = observed.row_of_cell() if is_first is None else observed.row_of_cell()[is_first > 0]
    is_held = _choose_rows(np.bincount(of_pair, minlength=observed.shape[0]), test_rows, min_cells, random)
    train, held = observed.select_rows(np.flatnonzero(~is_held)), observed.select_rows(np.flatnonzero(is_held))
    held = held.select_cells(train.seen_per_column()[held.indices] > 0)
    history, test = split_indices(held, test_size, random, by="row")
    return train, held.select_cells(history), held.select_cells(test)


def _choose_rows(counts: np.ndarray, test_rows: float, min_cells: int, random: np.random.RandomState) -> np.ndarray:
    """Mask of rows to hold out, of those with enough cells."""
    check_parameters({"min_cells": min_cells}, {"min_cells": whole(2)})
    enough = np.flatnonzero(counts >= min_cells)
    n_rows = int(test_rows) if whole(1)(test_rows) is None else 0
    if not n_rows:
        if between(0, 1)(test_rows) is not None:
            must = "must be a share between 0 and 1, both excluded, or a whole number of rows of at least 1."
            raise ParameterError(must, parameter="test_rows", found=repr(test_rows), remedy="Use 0.1 for a tenth.")
        n_rows = round(enough.size * test_rows)
    if not 0 < n_rows <= enough.size or n_rows == np.count_nonzero(counts):
        must = f"Rows with {min_cells} cells or more must be there to hold out, and others to train on."
        found = f"{enough.size} of {np.count_nonzero(counts)}, {n_rows} of them to be held out"
        raise DataError(must, found=found, remedy="Choose another `test_rows` or `min_cells`.", parameter="test_rows")
    is_held = np.zeros(counts.size, bool)
    is_held[random.permutation(enough)[:n_rows]] = True
    return is_held


def k_folds(
    X: MatrixSource | Observed,
    n_folds: int = 5,
    random_state: Seed = None,
    *,
    unseen: str | None = None,
    levels: Levels = "ordered",
) -> Iterator[tuple[Observed, Observed]]:
    """Split the observed cells into folds of equal size; every cell is a test cell once.

    Parameters
    ----------
    X : array-like, frame, path or Observed
        Whatever `observe` reads.
    n_folds : int, default=5
        Number of folds.
    random_state : None, int or RandomState, default=None
        Seed of the random choice.
    unseen, levels : str or list of str
        See `split_cells`.

    Returns
    -------
    folds : iterator of (train, test)
        For each fold, all other cells and its own, see `split_cells`.
    """
    observed = observe(X, unseen=unseen, levels=levels)
    folds = fold_indices(observed, n_folds, random_state)
    return ((observed.select_cells(train), observed.select_cells(test)) for train, test in folds)


def fold_indices(
    observed: Observed, n_folds: int = 5, random_state: Seed = None
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Positions of the training and test cells of the folds of `k_folds`."""
    pair_of_cell = observed.cell_of_value
    n_pairs = observed.nnz if pair_of_cell is None else int(pair_of_cell[-1]) + 1
    fold = _folds(n_pairs, pair_of_cell, n_folds, random_state)
    return ((np.flatnonzero(fold != test), np.flatnonzero(fold == test)) for test in range(n_folds))


def _folds(n_pairs: int, pair_of_cell: np.ndarray | None, n_folds: int, random_state: Seed) -> np.ndarray:
    """Fold of each cell."""
    check_parameters({"n_folds": n_folds}, {"n_folds": whole(2)})
    if n_pairs < n_folds:
        must, found = "Every fold must have a cell.", f"{n_pairs} cells for {n_folds} folds"
        raise DataError(must, found=found, remedy="Make fewer folds, or get more cells.", parameter="n_folds")
    fold = np.empty(n_pairs, np.int32)
    fold[_generator(random_state).permutation(n_pairs)] = np.arange(n_pairs) % n_folds
    return fold if pair_of_cell is None else fold[pair_of_cell]


def _choose(
    rows: np.ndarray,
    pair_of_cell: np.ndarray | None,
    test_size: float,
    random_state: Seed,
    by: str,
    last: int | None,
    times: np.ndarray | None,
) -> np.ndarray:
    """Mask of the test cells; `rows` are the rows of the pairs, `times` those of all cells."""
    check_parameters({"by": by}, {"by": one_of(*BY)})
    if last is not None and by != "time":
        must = 'must go with `by="time"`.'
        raise ParameterError(must, parameter="last", found=repr(by), remedy='Pass `by="time"`, or leave it out.')
    n_pairs = rows.size
    is_test = np.zeros(n_pairs, bool)
    if by == "time":
        latest = np.asarray(times)
        if pair_of_cell is not None:  # a pair is as late as the last of its values
            order = np.argsort(latest, kind="stable")
            of_cells, latest = latest, np.empty(n_pairs, latest.dtype)
            latest[pair_of_cell[order]] = of_cells[order]
    if by == "random":
        is_test[_generator(random_state).permutation(n_pairs)[: _test_count(test_size, n_pairs)]] = True
    elif by == "time" and last is None:
        is_test[np.argsort(latest, kind="stable")[n_pairs - _test_count(test_size, n_pairs) :]] = True
    else:  # the last of every row, in the order of time or in a random one
        counts = np.bincount(rows)
        if by == "time":
            check_parameters({"last": last}, {"last": whole(1)})
            order, wanted = np.lexsort((np.arange(n_pairs), latest, rows)), np.full(counts.size, last)
        else:
            order = np.lexsort((_generator(random_state).random_sample(n_pairs), rows))
            wanted = np.array([_test_count(test_size, count, strict=False) for count in counts.tolist()])
        from_the_end = np.repeat(np.cumsum(counts), counts) - np.arange(n_pairs) - 1
        is_test[order[from_the_end < np.repeat(np.minimum(wanted, np.maximum(counts - 1, 0)), counts)]] = True
        if not is_test.any():
            must = "Some row must have cells for training and for test."
            raise DataError(must, found=f"at most {counts.max(initial=0)} per row", remedy='Split `by="random"`.')
    return is_test if pair_of_cell is None else is_test[pair_of_cell]


def _generator(random_state: Seed) -> np.random.RandomState:
    from sklearn.utils import check_random_state

    check_parameters({"random_state": random_state}, {"random_state": seed()})
    return check_random_state(random_state)


def _test_count(test_size: float, cells: int, strict: bool = True) -> int:
    """Number of test cells, `strict` if there must be some, and training cells, too."""
    if whole(1)(test_size) is None:
        count = int(test_size)
    elif between(0, 1)(test_size) is None:
        count = round(cells * test_size)
    else:
        must = "must be a share between 0 and 1, both excluded, or a whole number of cells of at least 1."
        remedy = "Use 0.2 for a fifth of the cells."
        raise ParameterError(must, parameter="test_size", found=repr(test_size), remedy=remedy)
    if strict and not 0 < count < cells:
        remedy = f"Choose another `test_size`{'' if cells > 1 else ', or get more cells'}."
        found = f"{cells} cells, {count} of them for test"
        raise DataError("Training and test must have a cell each.", found=found, remedy=remedy, parameter="test_size")
    return count


def _times(table: Table, header: LongHeader, name: Any) -> np.ndarray:
    """Times of the lines of a long table as numbers."""
    if name is not None and not isinstance(name, (str, int)):
        times = np.asarray(name)
        if times.shape != (table.n_rows,):
            must = f"There must be a time for each of the {table.n_rows} lines."
            raise DataError(must, found=str(times.size), parameter="time")
        return times
    name = time_column(table, header, name)
    column = table.column(name)
    if not table.is_text and not isinstance(column, np.ndarray) and pa.types.is_temporal(column.type):
        times = column.cast(pa.int32() if pa.types.is_date32(column.type) else pa.int64()).to_numpy()
    elif table.is_numeric(name):
        times = table.numbers(name)
    else:
        times = _parse_times(column, lambda row: table.place(row, name))
    missing = np.flatnonzero(np.isnan(times)) if times.dtype.kind == "f" else np.empty(0, np.intp)
    if missing.size:
        must = "Every line must have a time."
        raise DataError(must, found="none", where=table.place(int(missing[0]), name), remedy="Fill it in, or drop it.")
    return times


def _parse_times(column: Column, place: Callable[[int], str]) -> np.ndarray:
    """Dates and times in ISO 8601 as microseconds, all with zone offsets or all without."""
    for kind in (pa.timestamp("us"), pa.timestamp("us", "UTC")):
        with suppress(pa.ArrowException, TypeError):
            times: np.ndarray = pc.cast(pc.utf8_trim_whitespace(column), kind).cast(pa.int64()).to_numpy()
            return times
    texts = list(map(str, column if isinstance(column, np.ndarray) else column.to_pylist()))
    wrong = next((row for row, text in enumerate(texts) if not re.match(r"\s*[0-9]{4}-[0-9]{2}-[0-9]{2}", text)), 0)
    must = "Times must be numbers or dates such as 2024-01-31 or 2024-01-31T12:30:00+02:00, all with zones or none."
    raise DataError(must, found=repr(texts[wrong]), where=place(wrong), remedy="Write them so, or as seconds.")


def _line_pairs(rows: np.ndarray, columns: np.ndarray, width: int) -> tuple[np.ndarray | None, np.ndarray]:
    """Pair of each line, None if no pair has two lines, and the first line of each pair, in ascending order."""
    keys = pa.array(rows.astype(np.int64) * width + columns).dictionary_encode()
    pair_of_line = keys.indices.to_numpy(zero_copy_only=False)
    n_pairs = len(keys.dictionary)
    if n_pairs == rows.size:
        return None, np.arange(rows.size)
    first = np.empty(n_pairs, np.int64)
    first[pair_of_line[::-1]] = np.arange(rows.size - 1, -1, -1)
    return pair_of_line, first


def _split_by_time(
    table: Table, header: LongHeader, options: ReadOptions, test_size: float, last: int | None, time: Any
) -> tuple[Observed, Observed]:
    """`split_cells` of a long table by time."""
    is_array = time is not None and not isinstance(time, (str, int))
    names = (*header, None if is_array else time_column(table, header, time))
    table.read_columns([name for name in names if name is not None])  # at once: a query may change its order
    times = _times(table, header, time)
    options = replace(with_ordered_levels(table, header, options), allow_empty=True)
    cells = read_long(table, header, options)
    known = ~np.isnan(cells.values)
    cells.rows, cells.columns, cells.values, times = (
        array[known] for array in (cells.rows, cells.columns, cells.values, times)
    )
    pair_of_line, first = _line_pairs(cells.rows, cells.columns, cells.shape[1])
    is_test = _choose(cells.rows[first], pair_of_line, test_size, None, "time", last, times)
    train, test = (
        build_observed(
            [array[side] for array in (cells.rows, cells.columns, cells.values)],
            cells.shape, None, options, cells.row_labels, cells.column_labels,
        )
        for side in (~is_test, is_test)
    )  # fmt: skip
    return train, test


# files


@dataclass(frozen=True)
class FileSplit:
    """Result of `split_file`: numbers of cells, the record of how they were chosen, and numbers of rows held out."""

    layout: str
    n_train: int
    n_test: int
    record: dict[str, Any]
    n_history: int = 0
    n_rows: int = 0


def split_file(
    path: FilePath,
    train: FilePath,
    held_out: FilePath,
    *,
    test_size: float = 0.2,
    random_state: Seed = None,
    by: str = "random",
    last: int | None = None,
    time: ColumnName | None = None,
    folds: int | None = None,
    fold: int = 0,
    history: FilePath | None = None,
    test_rows: float = 0.1,
    min_cells: int = 5,
    **options: Any,
) -> FileSplit:
    """Split a file into two, or into three by "user", which are all written or none.

    A long table is split by lines, which are copied as they are wherever the ending of the output allows it. The two
    parts of a wide table have all its rows and columns: each cell of numbers is empty in one of them. Beside the test
    file a record of the split is written, which `check_pair` reads.

    Parameters
    ----------
    path : str or path-like
        A file that `observe` reads.
    train, held_out : str or path-like
        Files of the training and the test cells.
    test_size, random_state, by, last, time
        See `split_cells`; or by "user", which holds whole rows out, see `split_rows`.
    folds, fold : int, default=None and 0
        Hold out one of so many folds instead, counted from 0.
    history : str or path-like, default=None
        By "user": file of the cells of these rows that are not for test.
    test_rows, min_cells
        By "user", see `split_rows`.
    **options
        Reader options of `observe`: layout, columns, header, separator, decimal, thousands, na_values, comment,
        encoding.

    Returns
    -------
    FileSplit
        Layout, numbers of training and test cells, and the record.
    """
    read_options = ReadOptions(**options)
    table = open_file(path, read_options)
    header = recognise(table, read_options)
    record: dict[str, Any] = {"seed": random_state, "by": by, "last": last}
    if folds is not None:
        record |= {"folds": folds, "fold": fold}
        if by != "random" or not 0 <= fold < folds:
            must = f'Folds must be `by="random"`, and numbered from 0 to {folds - 1}.'
            raise ParameterError(must, found=f"{by!r}, fold {fold}", parameter="fold")
    if (history is not None) != (by == "user"):
        must = 'must be given if it is split by="user", and else left out.'
        remedy = "Name a file for the histories of the users held out, or leave it out."
        raise ParameterError(must, parameter="history", found=f"by {by!r}", remedy=remedy)
    n_rows = 0

    def choose(rows: np.ndarray, pair_of_cell: np.ndarray | None, times: np.ndarray | None) -> np.ndarray:
        if folds is not None:
            return _folds(rows.size, pair_of_cell, folds, random_state) == fold
        return _choose(rows, pair_of_cell, test_size, random_state, by, last, times)

    if header is None:
        if by in ("time", "user"):
            what = ", with a column of times, are split by time" if by == "time" else " are split by users"
            raise DataError(f"Only long tables{what}.", found="a wide one", remedy='Use `by="random"`.', parameter="by")
        reader = {name: value for name, value in options.items() if name not in ("layout", "columns")}
        wide = read_wide_table(path, **reader)
        is_test = choose(wide.observed.row_of_cell(), None, None)
        parts: list[Any] = [_without(wide, is_test), _without(wide, ~is_test)]
    else:
        names = [header.row, header.column] + ([time_column(table, header, time)] if by == "time" else [])
        names += [header.value] if header.value is not None and by != "random" else []
        table.read_columns(table.names if not table.is_text or is_parquet(Path(train)) else names)
        times = _times(table, header, time) if by == "time" else None
        (rows, _), (columns, labels) = table.encode(header.row, "row"), table.encode(header.column, "column")
        kept = np.ones(rows.size, dtype=bool)
        if header.value is not None and by != "random":  # lines without a value stay in training
            kept = table.is_present(header.value)
        in_history, is_left_out = np.zeros(rows.size, dtype=bool), np.zeros(rows.size, dtype=bool)
        if by == "user":
            random = _generator(random_state)
            _, first = _line_pairs(rows[kept], columns[kept], max(labels.size, 1))
            is_held = _choose_rows(np.bincount(rows[kept][first]), test_rows, min_cells, random)
            n_rows, in_history = int(is_held.sum()), np.append(is_held, np.zeros(rows.max() + 1, bool))[rows]
            is_known = np.bincount(columns[kept & ~in_history], minlength=labels.size) > 0
            is_left_out = in_history & ~is_known[columns]
            kept = kept & in_history & ~is_left_out
        pair_of_line, first = _line_pairs(rows[kept], columns[kept], max(labels.size, 1))
        is_test = np.zeros(rows.size, dtype=bool)
        if by == "user":
            is_test[kept] = _choose(rows[kept][first], pair_of_line, test_size, random, "row", last, None)
        else:
            is_test[kept] = choose(rows[kept][first], pair_of_line, None if times is None else times[kept])
        parts = [~in_history & ~is_test, is_test]
        if by == "user":
            parts.insert(1, in_history & ~is_test & ~is_left_out)
    outputs = [Path(train), *([] if history is None else [Path(history)]), Path(held_out)]
    names_of_parts = ("train", "held_out") if history is None else ("train", "history", "held_out")
    columns_of: dict[bool, Any] = {}  # for Parquet, and for text
    with write_errors(outputs[0]), atomic_writes(*outputs, f"{held_out}{SIDECAR}") as drafts:
        for draft, output, part in zip(drafts, outputs, parts, strict=False):
            if header is None:
                names_or_none = wide.names if wide.has_header else None
                write_draft(draft, output, names_or_none, part, wide.delimiter, wide.decimal, wide.thousands)
            elif not (table.is_text and _copy_lines(table, part, draft, output)):
                if columns_of.get(is_parquet(output)) is None:
                    columns_of[is_parquet(output)] = _columns_to_write(table, header, is_parquet(output))
                names_or_none, whole = columns_of[is_parquet(output)]
                mask = pa.array(part)
                some = [one[part] if isinstance(one, np.ndarray) else one.filter(mask) for one in whole]
                write_draft(draft, output, names_or_none, some, table.delimiter, ".", None)
        record |= {
            side: {"file": output.name, "digest": _digest(draft)}
            for side, output, draft in zip(names_of_parts, outputs, drafts, strict=False)
        }
        drafts[-1].write_text(json.dumps(record, indent=1, default=str) + "\n", encoding="utf-8")
    layout, n_test = "wide" if header is None else "long", int(is_test.sum())
    if history is None:
        return FileSplit(layout, is_test.size - n_test, n_test, record)
    return FileSplit(layout, int(parts[0].sum()), n_test, record, int(parts[1].sum()), n_rows)


def check_pair(train: FilePath, held_out: FilePath) -> None:
    """Refuse a training file that does not belong to a test file, if `split_file` left a record of the split."""
    try:
        record = json.loads(Path(f"{held_out}{SIDECAR}").read_text(encoding="utf-8"))
        same_train = record["train"]["digest"] == _digest(Path(train))
        same_test = record["held_out"]["digest"] == _digest(Path(held_out))
    except (OSError, ValueError, KeyError, TypeError):  # no record, or no file, which is refused where it is read
        return
    if same_test and not same_train:
        must = "Training and test cells must be of the same split."
        found = f"{Path(held_out).name}, held out of {record['train']['file']} by seed {record['seed']}, and another "
        found += f"{Path(train).name}: cells of the one may be in the other"
        raise DataError(must, found=found, remedy="Split the data again.")


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


def _without(wide: WideTable, is_dropped: np.ndarray) -> list[list[Any]]:
    """Columns of a wide table without some of its cells of numbers."""
    dropped = wide.observed.select_cells(is_dropped)
    columns = wide.cells
    positions = [wide.names.index(name) for name in wide.numeric]
    for row, column in zip(dropped.row_of_cell().tolist(), dropped.indices.tolist(), strict=True):
        columns[positions[column]][row] = None
    return columns


def _copy_lines(table: Table, kept: np.ndarray, draft: Path, output: Path) -> bool:
    """Copy lines of text files as they are; False if a line is not a record, or the output needs another separator."""
    separator = table.delimiter or ""
    if is_parquet(output) or (len(separator) == 1 and separator_for(output, separator) != separator):
        return False
    if len(separator) > 1 and output.suffix in (".csv", ".tsv", ".tab"):
        return False
    pieces, start = [], 0
    for number, (file, count) in enumerate(zip(table.files, table.rows_per_file, strict=True)):
        ends_lines_as_ascii = "a\n".encode(file.encoding).endswith(b"a\n")
        if not ends_lines_as_ascii or file.comment is not None:
            return False
        piece = _lines_of(file, table.has_header, kept[start : start + count], with_header=number == 0)
        if piece is None:
            return False
        pieces.append(piece)
        start += count
    with open_draft(draft, output) as raw:
        raw.writelines(pieces)
    return True


def _lines_of(file: TextFile, has_header: bool, kept: np.ndarray, with_header: bool) -> bytes | None:
    """Lines of the records `kept` of a file, after its header; None if its lines are not its records."""
    with open_bytes(file.path) as raw:
        contents = np.frombuffer(raw.read(), dtype=np.uint8)
    if contents.size and contents[-1] != ord("\n"):
        contents = np.append(contents, np.uint8(ord("\n")))
    ends = np.flatnonzero(contents == ord("\n")) + 1
    starts = np.append(0, ends[:-1])
    lengths = ends - starts
    above = next(file.records(), (1, []))[0] if has_header else file.skip
    is_record = (lengths > 2) | ((lengths == 2) & (contents[starts] != ord("\r")))
    is_record[:above] = False
    if int(is_record.sum()) != kept.size:
        return None
    copied = np.zeros(starts.size, dtype=bool)
    copied[is_record] = kept
    copied[:above] = with_header
    return contents[np.repeat(copied, lengths)].tobytes()


def _columns_to_write(table: Table, header: LongHeader, typed: bool) -> tuple[list[str] | None, list[Any]]:
    """Names and columns of a long table; for Parquet, those of text files get types, decided by the whole column.

    Ids are written as `observe` labels them. Columns without names get the usual ones, which are recognised.
    """
    table.read_columns(table.names)
    if not (typed and table.is_text):
        return [str(name) for name in table.names] if table.has_header else None, list(map(table.column, table.names))
    usual = dict(zip(header, ("user", "item", "rating"), strict=True))
    others = [name for name in table.names if name not in header]
    usual |= {name: "timestamp" if len(others) == 1 else f"column {name}" for name in others}
    columns = []
    for name in table.names:
        column = table.column(name)
        if name in header[:2]:
            codes, labels = table.encode(name, "row" if name == header.row else "column")
            column = pa.chunked_array([pa.array(labels).take(pa.array(codes))])
        else:
            with suppress(DataError):  # other text stays text
                is_numeric = name == header.value or table.is_numeric(name)
                column = pa.chunked_array([pa.array(table.numbers(name), from_pandas=True)]) if is_numeric else column
        columns.append(column)
    return [str(name) if table.has_header else usual[name] for name in table.names], columns
