"""Ranking: the best columns for rows, and rows and columns that are alike.

The records of all models that rank are `Ranker`: they know labels, seen cells and scores, and estimators, metrics and
the command line ask them. A new kind of model says only what its rows are (`known_rows`, `served_rows`), how they score
the columns (`scores`), and which rows or columns are alike (`similarities`).
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any, ClassVar

import numpy as np

from halfseen import validation
from halfseen.arrays import Array, ArraySpec, in_parts
from halfseen.engines.base import Best, ColumnLists
from halfseen.engines.threads import one_blas_thread
from halfseen.engines.topk import DenseScores, Scores, best_columns
from halfseen.errors import DataError, DataWarning, ParameterError
from halfseen.labels import Index, Places, quoted, uniform
from halfseen.observed import Observed, first_at_cell, match_cells

#: Libraries of frames, in the order in which one is taken.
FRAMES = ("polars", "pandas", "pyarrow")
#: Cells of shortened histories that are folded in at a time, to explain a recommendation.
CELLS_EXPLAINED = 1 << 21
#: Types of the values of seen cells in a record, the smallest first.
VALUE_TYPES = ("u1", "i1", "f2", "u2", "i2", "f4", "i4", "f8")


class Recommendations(tuple[Array, Array]):
    """Best columns of each row, best first: a pair `ids, scores` that knows more.

    Where a row has fewer candidates than another, its last ids are None (-1 for positions) and their scores NaN.

    Attributes
    ----------
    ids : ndarray of shape (n_rows, n)
        Labels of the columns (or rows, if these are similar rows), or their positions where they have none.
    scores : ndarray of shape (n_rows, n)
        Scores by which they were ranked.
    rows : ndarray of shape (n_rows,)
        What was asked for: labels or positions.
    is_known : ndarray of bool of shape (n_rows,)
        Whether the model knows the row. One that it does not know gets the most popular columns; their scores are the
        numbers of their training cells.
    notes : sequence of DataWarning
        What was left out, and how much.
    positions : ndarray of int of shape (n_rows, n)
        Positions of the columns in the model, -1 where there is none.
    """

    rows: Array
    is_known: Array
    notes: tuple[DataWarning, ...]
    positions: Any

    def __new__(
        cls,
        ids: Array,
        scores: Array,
        rows: Any = None,
        is_known: Any = None,
        notes: Sequence[DataWarning] = (),
        positions: Any = None,
    ) -> "Recommendations":
        self = super().__new__(cls, (ids, scores))
        self.rows = np.arange(len(ids)) if rows is None else rows
        self.is_known = np.ones(len(ids), bool) if is_known is None else is_known
        self.notes = tuple(notes)
        self.positions = positions
        return self

    def __getnewargs__(self) -> tuple[Any, ...]:
        return *self, self.rows, self.is_known, self.notes, self.positions

    def __repr__(self) -> str:
        return f"Recommendations(ids={self.ids!r}, scores={self.scores!r})"

    def to_frame(self, backend: str | None = None) -> Any:
        """A frame with a line for each row and rank: row, rank, item, score, and whether the row is known.

        Parameters
        ----------
        backend : {"polars", "pandas", "pyarrow"}, default=None
            Library of the frame. None: the first of these that is installed.

        Returns
        -------
        frame
            Without lines where a row has fewer items than another.
        """
        rows, ranks = np.nonzero(self.scores == self.scores)
        columns = {
            "row": self.rows[rows],
            "rank": ranks + 1,
            "item": self.ids[rows, ranks],
            "score": self.scores[rows, ranks],
            "known": self.is_known[rows],
        }
        return native_frame(columns, backend)

    @property
    def ids(self) -> Array:
        """Labels of the columns, or their positions where they have none."""
        return self[0]

    @property
    def scores(self) -> Array:
        """Scores by which the columns were ranked."""
        return self[1]


@dataclass(frozen=True, eq=False)
class Explanation:
    """What speaks for a recommendation: the cells of the row, by how much the score falls without each.

    Attributes
    ----------
    row, item : label
        What was explained, by label or position.
    score : float
        Score of the item, with all cells of the row.
    items : ndarray of shape (n,)
        Items of the row, by label or position; those that speak most for the recommendation come first.
    values : ndarray of shape (n,)
        The row's values of these items.
    contributions : ndarray of shape (n,)
        Score minus the score without this cell.
    """

    row: Any
    item: Any
    score: float
    items: Array
    values: Array
    contributions: Array

    def __repr__(self) -> str:
        head = f"{self.item} for {self.row}: score {self.score:.4g}"
        cells = zip(self.contributions, self.items, self.values, strict=True)
        return "\n".join([head, *(f"  {change:+.4g}  {item} ({value:g})" for change, item, value in cells)])

    def to_frame(self, backend: str | None = None) -> Any:
        """A frame with a line for each of the items: item, value, contribution.

        Parameters
        ----------
        backend : {"polars", "pandas", "pyarrow"}, default=None
            Library of the frame. None: the first of these that is installed.

        Returns
        -------
        frame
        """
        columns = {"item": self.items, "value": self.values, "contribution": self.contributions}
        return native_frame(columns, backend)


def native_frame(columns: Mapping[str, Any], backend: str | None) -> Any:
    """Columns, arrays or lists, as a frame of a library by its name; None: of the first that is installed."""
    import narwhals as nw

    validation.check_parameters({"backend": backend}, {"backend": validation.one_of(*FRAMES, or_none=True)})
    library: Any = backend or next(name for name in FRAMES if find_spec(name))  # the last always is
    if not find_spec(library):
        must, remedy = "must be of a library that is installed.", f"pip install {library}, or use another."
        raise ParameterError(must, parameter="backend", found=repr(library), remedy=remedy)
    lists: dict[str, Any] = {}
    texts = []
    for name, column in columns.items():
        is_object = isinstance(column, np.ndarray) and column.dtype.kind in "OM"
        lists[name] = column.tolist() if is_object else column
        if is_object and column.dtype.kind == "O" and len(set(map(type, lists[name])) - {type(None)}) != 1:
            # none, or unknown ids of another kind
            lists[name] = [None if one is None else str(one) for one in lists[name]]
            texts.append(nw.col(name).cast(nw.String))
    return nw.from_dict(lists, backend=library).with_columns(*texts).to_native()


@dataclass(frozen=True, eq=False)
class Seen:
    """Which cells a fit has seen, row by row: indices[indptr[i]:indptr[i + 1]] are the columns seen in row i, or, if
    `lists_holes`, those that were not.

    `values` are the values of these cells, in the smallest type that holds them exactly; None where they are not known,
    as in files of version 0.1, and where holes are listed. `weights` are their weights, None if all are 1.
    """

    indptr: Array
    indices: Array
    n_columns: int
    lists_holes: bool = False
    values: Array | None = None
    weights: Array | None = None

    state: ClassVar[Mapping[str, Any]] = {
        "indptr": ArraySpec("i", ("rows+1",), low=0, sorted=True),
        "indices": ArraySpec("i", ("cells",), low=0, high="columns"),
        "n_columns": int,
        "lists_holes": bool,
        "values": ArraySpec("iuf", ("cells",), small=True, optional=True),
        "weights": ArraySpec("iuf", ("cells",), small=True, low=0, optional=True),
    }

    def check_state(self, path: str) -> None:
        """Refuse row pointers that do not list all cells, and values of holes."""
        if self.indptr[0] != 0 or self.indptr[-1] != self.indices.size:
            raise ValueError(f"{path}/indptr must run from 0 to {self.indices.size}")
        if (self.lists_holes and self.values is not None) or (self.values is None and self.weights is not None):
            raise ValueError(f"{path}/values must be absent where holes are listed, and so must weights without values")

    @classmethod
    def from_observed(cls, observed: Observed) -> "Seen":
        """A copy, because a sparse X shares its arrays with what was read of it, and may be changed later; files of
        arrays can't, and are used on."""
        from halfseen.array_files import mapped_file

        indptr, indices = (one if mapped_file(one) else one.copy() for one in (observed.indptr, observed.indices))
        weights = None if observed.weights is None else smallest_exact(observed.weights)
        return cls(indptr, indices, observed.shape[1], False, smallest_exact(observed.values), weights)

    def in_rows(self, rows: Array) -> ColumnLists:
        """Columns seen in the given rows, as (indptr, indices)."""
        if not self.lists_holes and rows.size and np.all(np.diff(rows) == 1):  # consecutive rows, often all of them
            indptr = self.indptr[rows[0] : rows[-1] + 2].astype(np.int64)
            return indptr - indptr[0], self.indices[indptr[0] : indptr[-1]]
        ends, cells = self._cells_of(rows)
        if not self.lists_holes:
            return ends, self.indices[cells]
        is_seen = np.ones((ends.size - 1, self.n_columns), bool)
        is_seen[np.repeat(np.arange(len(is_seen)), np.diff(ends)), self.indices[cells]] = False
        return np.arange(ends.size) * self.n_columns - ends, np.nonzero(is_seen)[1]

    def per_column(self) -> Array:
        """Number of cells seen in each column; one with several values counts once."""
        is_first = first_at_cell(self.indptr, self.indices)
        counts: Array = np.bincount(self.indices[is_first], minlength=self.n_columns)
        return self.indptr.size - 1 - counts if self.lists_holes else counts

    def observed(self, rows: Array, unseen: str, dtype: Any = np.float64) -> Observed:
        """The cells of the given rows with their values, for models that fold them in."""
        if self.values is None:
            raise DataError(
                "The model must know the values of its training cells.",
                found="none, as in files of version 0.1 and fits of `RankOneNMF` to tables without many holes",
                remedy="Fit again, or pass the history of the row: a dict from columns to values.",
                remedy_cli="Fit again.",
            )
        ends, cells = self._cells_of(rows)
        shape = rows.size, self.n_columns
        weights = None if self.weights is None else self.weights[cells].astype(dtype)
        return Observed(ends, self.indices[cells], self.values[cells].astype(dtype), shape, weights, unseen)

    def _cells_of(self, rows: Array) -> tuple[Array, Array]:
        """Positions of the listed cells of some rows, with row pointers."""
        counts = np.diff(self.indptr)[rows]
        ends = np.concatenate([[0], np.cumsum(counts)])
        return ends, np.arange(ends[-1]) - np.repeat(ends[:-1] - self.indptr[rows], counts)


def smallest_exact(values: Array) -> Array:
    """A copy of numbers in the smallest type that holds each of them exactly: stars take a byte, half stars two."""
    from halfseen.array_files import computed_in_parts

    ends = [(part.min(), part.max()) for (part,) in in_parts(values)] or [(0, 0)]
    low, high = min(low for low, _ in ends), max(high for _, high in ends)
    for name in VALUE_TYPES:
        kind = np.dtype(name)
        limits: Any = np.finfo(kind) if kind.kind == "f" else np.iinfo(kind)
        fits = low >= limits.min and high <= limits.max
        if fits and all(np.array_equal(part.astype(kind), part) for (part,) in in_parts(values)):
            return computed_in_parts(lambda part, kind=kind: part.astype(kind), values, dtype=kind)
    return computed_in_parts(np.copy, values, dtype=values.dtype)


class Ranker(ABC):
    """A model that ranks columns for rows: the base of the records of all such models.

    Attributes
    ----------
    index : tuple of Index or None
        Labels of rows and of columns.
    seen : Seen
        Cells of the training data.
    unseen : {"missing", "zero"}
        What an unseen cell means.
    fingerprint : str or None
        Of the training data.
    """

    index: tuple[Index | None, Index | None]
    seen: Seen
    unseen: str
    fingerprint: str | None

    # -----------------------------------------------------------------------------------------------------------------
    # what a kind of model says

    @abstractmethod
    def known_rows(self, positions: Array) -> Any:
        """Rows of the fit, as `scores` takes them."""

    @abstractmethod
    def served_rows(self, observed: Observed, engine: str, n_jobs: int | None, name: str) -> Any:
        """New rows with their histories, as `scores` takes them; one without any is served like the average row."""

    @abstractmethod
    def scores(self, rows: Any) -> Scores:
        """Scores of all columns for each of these rows, computed tile by tile."""

    @abstractmethod
    def similarities(self, positions: Array, side: str) -> Scores:
        """How alike the rows or columns (`side`) at these positions and all others are, computed tile by tile."""

    @property
    def can_fold_in(self) -> bool:
        """Whether new rows can be served."""
        return True

    @property
    def levels_to_read(self) -> Any:
        """Which text may stand for values, as `levels` of `halfseen.observe`."""
        return None

    def nearest_levels(self, observed: Observed) -> tuple[Observed, int]:
        """Cells whose values between two levels of the fit are at the nearer one, and the number of these cells."""
        return observed, 0

    # -----------------------------------------------------------------------------------------------------------------
    # labels and cells

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of columns."""
        return self.seen.indptr.size - 1, self.seen.n_columns

    @property
    def labels(self) -> Places:
        """Labels of rows and columns, None where they have none."""
        return Places(*(None if index is None else index.labels for index in self.index))

    def positions(self, wanted: Any, side: str, strict: bool = True) -> Array:
        """Positions of rows or columns (`side`) requested by label or, if the fit had none, by position.

        What the model does not know is refused or, unless `strict`, at position -1.
        """
        wanted = [wanted] if is_single(wanted) else wanted
        if len(wanted) == 0:
            return np.empty(0, np.int64)
        axis = 0 if side == "row" else 1
        index, size = self.index[axis], self.shape[axis]
        remedy = cli = f"For a new {side}, fit again."
        if side == "row" and self.can_fold_in:
            remedy = f"{remedy[:-1]}, or pass its history (a dict from columns to values)."
            cli = f"{cli[:-1]}, or pass its history: halfseen recommend --history FILE."
        if index is None:
            wanted = np.asarray(wanted)
            if wanted.dtype.kind not in "iu":
                raise DataError(
                    f"The {side}s of this model have no labels and are asked for by position, 0 to {size - 1}.",
                    found=f"{wanted.reshape(-1)[:1].tolist()}",
                    remedy="Pass whole numbers, or fit on data with labels.",
                )
            is_outside = (wanted < 0) | (wanted >= size)
            outside = np.flatnonzero(is_outside)
            if outside.size and strict:
                raise DataError(
                    f"Positions of {side}s must be 0 to {size - 1}.",
                    found=f"{wanted.reshape(-1)[outside[0]]} ({outside.size} outside in all)",
                    remedy=remedy,
                    remedy_cli=cli,
                )
            return np.where(is_outside, -1, wanted.astype(np.int64))
        try:
            positions = index.find(uniform(wanted, side))
        except DataError:  # ids of mixed kinds: each is looked up, and the first unknown one named below
            positions = np.array([_position(index, label, side) for label in wanted], dtype=np.int64)
        unknown = np.flatnonzero(positions < 0)
        if unknown.size and strict:
            first = list(wanted)[unknown[0]]
            hint = ""
            if index.labels.dtype.kind != "O":
                hint = f"The ids are of type {index.labels.dtype}, not text. " if isinstance(first, str) else ""
            elif near := validation.did_you_mean(str(first), index.positions):
                hint = f"Did you mean {near!r}? "
            raise DataError(
                f"A {side} must be one of the {len(index)} {side}s that were fitted.",
                found=f"{quoted(first)} ({unknown.size} unknown in all)",
                remedy=hint + remedy,
                remedy_cli=hint + cli,
            )
        return positions

    def labels_at(self, positions: Array, side: str) -> Array:
        """Labels at positions; the positions themselves if the fit had no labels."""
        index = self.index[0 if side == "row" else 1]
        return positions if index is None else index.labels[positions]

    def pairs(self, rows: Any, cols: Any) -> tuple[Array, Array]:
        """Positions of pairs; one row for many columns, or one column for many rows, is allowed."""
        u, i = (
            self.positions(wanted, side).reshape(() if is_single(wanted) else -1)
            for wanted, side in ((rows, "row"), (cols, "column"))
        )
        if u.shape and i.shape and u.shape != i.shape:
            raise DataError(
                "rows and cols must be equally long, a cell for each pair.",
                found=f"{u.size} rows and {i.size} columns",
                remedy="Repeat the shorter one, or pass a single label.",
            )
        return u, i

    def read_cells(self, X: Any, name: str = "X") -> Observed:
        """Cells of X in the rows and columns of the model; others are left out, with a warning."""
        cells = read_cells(X, name, self.unseen, self.levels_to_read)
        return match_cells(cells, self.shape, self.labels, name, duplicates="keep")

    def known_columns(self, wanted: Any, name: str, strict: bool, notes: list[DataWarning]) -> Array:
        """Positions of the columns that the model knows; unless `strict`, others are left out, with a note."""
        positions = self.positions(wanted, "column", strict)
        if (positions >= 0).all():
            return positions
        notes.append(unknown_columns(name, [wanted] if is_single(wanted) else wanted, positions, self.shape[1]))
        return positions[positions >= 0]

    def known(self, wanted: Any, side: str, strict: bool, notes: list[DataWarning]) -> Array:
        """Positions of rows or columns that the model knows; others beside them are left out, with a note."""
        positions = self.positions(wanted, side, strict)
        unknown = np.flatnonzero(positions < 0)
        if unknown.size == positions.size:
            return self.positions(wanted, side)
        if unknown.size:
            size = self.shape[0 if side == "row" else 1]
            must = f"The {side}s asked for should be among the {size} that were fitted."
            found = f"{unknown.size} of {positions.size} that are not, the first {quoted(list(wanted)[unknown[0]])}"
            notes.append(DataWarning(must, found=found, remedy="They were left out. `strict=True` refuses them."))
        return positions[positions >= 0]

    def read_histories(
        self, histories: Sequence[Mapping[Any, Any]], strict: bool = True, allow_empty: bool = True
    ) -> tuple[Observed, list[DataWarning]]:
        """New rows from dicts of columns and values; unless `strict`, unknown columns are left out, with a note."""
        from halfseen.io.numbers import NotANumber, Scale

        scale, notes, values = Scale.of(self.levels_to_read), [], [np.empty(0)]
        for row, history in enumerate(histories):
            try:
                values.append(scale.numbers(list(history.values())))
            except NotANumber as error:
                raise DataError(
                    scale.must,
                    found=repr(error.field),
                    where=f"in history {row}, column {list(history)[error.position]!r}",
                    remedy=f"{scale.hint}Use None if it is unknown.",
                ) from None
        labels = [label for history in histories for label in history]
        rows = np.repeat(np.arange(len(histories)), [len(history) for history in histories])
        columns, cells = self.positions(labels, "column", strict), np.concatenate(values)
        if (columns < 0).any():
            notes.append(unknown_columns("histories", labels, columns, self.shape[1]))
            is_known = columns >= 0
            rows, columns, cells = rows[is_known], columns[is_known], cells[is_known]
        shape = len(histories), self.shape[1]
        observed = Observed.from_cells(
            rows, columns, cells, shape, unseen=self.unseen, column_labels=self.labels.column_labels,
            allow_empty=allow_empty,
        )  # fmt: skip
        return observed, notes

    def merged(self, new: Observed, dtype: Any) -> tuple[Observed, Array]:
        """The cells of the fit with new ones, and the rows that have new ones.

        Rows and columns are matched by label; those that are new follow those of the fit. Without labels of rows all
        rows are new. A cell that the fit has seen gets its new value.
        """
        old = self.seen.observed(np.arange(self.shape[0]), self.unseen, dtype)
        places, labels = [], []
        for axis, (index, given) in enumerate(zip(self.index, (new.row_labels, new.column_labels), strict=True)):
            size, count = self.shape[axis], new.shape[axis]
            place = np.arange(count) + (size if axis == 0 else 0)
            names = None if index is None else index.labels
            if index is not None and given is not None:
                place = index.find(given)
                unknown = np.flatnonzero(place < 0)
                place[unknown] = size + np.arange(unknown.size)
                if unknown.size:
                    added = [*index.labels.tolist(), *given[unknown].tolist()]
                    is_same = index.labels.dtype.kind == given.dtype.kind
                    names = uniform(added if is_same else list(map(str, added)), "row" if axis == 0 else "column")
            elif axis == 0 and (index is not None or given is not None):
                raise DataError(
                    "New cells must have labels of rows if the cells of the fit have them, and none if not.",
                    found="labels" if index is None else "none",
                    remedy="Pass cells of the same kind as those of the fit.",
                    parameter="X",
                )
            places.append(place)
            labels.append(names)
        rows, columns = places[0][new.row_of_cell()], places[1][new.indices]
        n, m = (max(size, int(place.max(initial=-1)) + 1) for size, place in zip(self.shape, places, strict=True))
        old_rows, old_columns = old.row_of_cell().astype(np.int64), old.indices.astype(np.int64)
        stays = ~np.isin(old_rows * m + old_columns, rows.astype(np.int64) * m + columns)
        ones = [np.ones(cells.nnz, dtype) if cells.weights is None else cells.weights for cells in (old, new)]
        is_weighted = old.weights is not None or new.weights is not None
        observed = Observed.from_cells(
            np.concatenate([old_rows[stays], rows]),
            np.concatenate([old_columns[stays], columns]),
            np.concatenate([old.values[stays], new.values.astype(dtype)]),
            (n, m),
            weights=np.concatenate([ones[0][stays], ones[1]]) if is_weighted else None,
            unseen=self.unseen,
            row_labels=labels[0],
            column_labels=labels[1],
            duplicates="keep",
            allow_empty=True,
        )
        return observed, np.unique(np.concatenate([rows, np.arange(self.shape[0], n)]))

    # -----------------------------------------------------------------------------------------------------------------
    # ranking

    def recommend(
        self,
        rows: Any,
        n: int = 10,
        exclude_seen: bool = True,
        filter_items: Any = None,
        exclude: Any = None,
        strict: bool = False,
        *,
        engine: str = "cpu",
        n_jobs: int | None = None,
        name: str = "The model",
        approximate: bool = False,
    ) -> Recommendations:
        """Best columns for rows of the fit, by label or position, or for new ones, an `Observed` of their histories.

        Unknown rows get popular columns, unknown columns are left out, and values between two levels are at the nearer
        one, all with a note; if `strict`, they are refused. `name` is the estimator's, for messages, and `approximate`
        as for `best_columns`.
        """
        notes: list[DataWarning] = []
        candidates: Array | None = None
        seen: ColumnLists | None
        if filter_items is not None or exclude is not None:
            is_candidate = np.full(self.shape[1], filter_items is None)
            if filter_items is not None:
                is_candidate[self.known_columns(filter_items, "`filter_items`", strict, notes)] = True
            if exclude is not None:
                is_candidate[self.known_columns(exclude, "`exclude`", strict, notes)] = False
            candidates = np.flatnonzero(is_candidate)
        if isinstance(rows, Observed):
            observed = rows if strict else self.at_nearest_levels(rows, notes)
            served, seen = self.served_rows(observed, engine, n_jobs, name), (observed.indptr, observed.indices)
            seen = seen if exclude_seen else None
            found = self.recommend_rows(served, seen, n, candidates, engine, n_jobs, approximate)
            return Recommendations(*found, observed.row_labels, notes=notes, positions=found.positions)
        positions = self.positions(rows, "row", strict)
        is_known = positions >= 0
        known = positions if is_known.all() else positions[is_known]
        seen = self.seen.in_rows(known) if exclude_seen else None
        of_known = self.scores(self.known_rows(known))
        best = best_columns(of_known, n, seen, candidates, n_jobs, engine=engine, approximate=approximate)
        if known is positions:
            return self.named(best, rows=self.labels_at(positions, "row"), notes=notes)

        # the most popular columns for unknown rows
        wanted = [rows] if is_single(rows) else list(rows)
        notes.append(unknown_rows(wanted, positions, self.shape[0]))
        counts = self.seen.per_column()[None].astype(best.scores.dtype)
        popular = best_columns(DenseScores(counts), n, None, candidates, n_jobs)
        columns, scores = (np.repeat(of_all, len(wanted), axis=0) for of_all in popular)
        columns[is_known], scores[is_known] = best
        labels = np.empty(len(wanted), object)
        labels[:] = wanted
        return self.named(Best(columns, scores), rows=labels, is_known=is_known, notes=notes)

    def at_nearest_levels(self, observed: Observed, notes: list[DataWarning]) -> Observed:
        """Histories whose values between two levels are at the nearer one, with a note."""
        observed, n_moved = self.nearest_levels(observed)
        if n_moved:
            notes.append(
                DataWarning(
                    "Values of histories should be among the levels that were fitted.",
                    found=f"{n_moved} of {observed.nnz} between two levels",
                    remedy="They were taken for the nearer one. `strict=True` refuses them.",
                )
            )
        return observed

    def explain(
        self, observed: Observed, column: int, engine: str = "cpu", n_jobs: int | None = None, name: str = "The model"
    ) -> tuple[float, Array]:
        """Score of a column for a row with this history, and how much it falls if each of its cells is left out.

        All shortened histories are folded in, some at a time: n cells are n histories of n - 1 cells.
        """

        def score(rows: Observed) -> Array:
            scores = self.scores(self.served_rows(rows, engine, n_jobs, name)).among(np.array([column]))
            with one_blas_thread():
                of_column: Array = scores.tile(slice(0, rows.shape[0]), slice(0, 1))[:, 0].astype(np.float64)
            return of_column

        n, others = observed.nnz, np.arange(observed.nnz - 1)
        without = np.empty(n)
        height = max(1, CELLS_EXPLAINED // max(n, 1))
        for top in range(0, n, height):
            left_out = np.arange(top, min(top + height, n))
            cells = others + (others >= left_out[:, None])  # all but one
            shortened = replace(
                observed,
                indptr=np.arange(left_out.size + 1) * (n - 1),
                indices=observed.indices[cells].reshape(-1),
                values=observed.values[cells].reshape(-1),
                weights=None if observed.weights is None else observed.weights[cells].reshape(-1),
                shape=(left_out.size, observed.shape[1]),
                row_labels=None,
            )
            without[left_out] = score(shortened)
        whole = float(score(observed)[0])
        return whole, whole - without

    def recommend_rows(
        self,
        rows: Any,
        seen: ColumnLists | None,
        n: int,
        candidates: Array | None = None,
        engine: str = "cpu",
        n_jobs: int | None = None,
        approximate: bool = False,
    ) -> Recommendations:
        """Best n of the candidate columns (ascending positions; None: all) for rows, without what they have seen."""
        best = best_columns(self.scores(rows), n, seen, candidates, n_jobs, engine=engine, approximate=approximate)
        return self.named(best)

    def similar(
        self, positions: Array, side: str, n: int, engine: str = "cpu", n_jobs: int | None = None
    ) -> Recommendations:
        """Rows or columns most like those at these positions, without these themselves."""
        itself = np.arange(positions.size + 1), positions
        best = best_columns(self.similarities(positions, side), n, itself, n_jobs=n_jobs, engine=engine)
        return self.named(best, side, self.labels_at(positions, side))

    def named(self, best: Best, side: str = "column", rows: Any = None, **further: Any) -> Recommendations:
        """Columns (or rows, as `side` says) by their labels, without those that no row has."""
        is_filled = best.columns >= 0
        width = int(is_filled.sum(axis=1).max(initial=0))
        positions, scores, is_filled = best.columns[:, :width], best.scores[:, :width], is_filled[:, :width]
        ids = self.labels_at(positions, side)
        if not is_filled.all():
            nothing: Any = -1 if self.index[0 if side == "row" else 1] is None else None
            ids = np.where(is_filled, ids, nothing)
        return Recommendations(ids, scores, rows, positions=positions, **further)


def unknown_rows(labels: Sequence[Any], positions: Array, n_rows: int) -> DataWarning:
    """The note that rows at position -1 get popular columns."""
    unknown = np.flatnonzero(positions < 0)
    return DataWarning(
        f"Rows should be among the {n_rows} that were fitted.",
        found=f"{unknown.size} of {len(labels)} that are not, the first {quoted(labels[unknown[0]])}",
        remedy="They get the most popular columns. `strict=True` refuses them.",
    )


def unknown_columns(name: str, labels: Sequence[Any], positions: Array, n_columns: int) -> DataWarning:
    """The note that columns of `name` were left out, those at position -1."""
    unknown = np.flatnonzero(positions < 0)
    return DataWarning(
        f"Columns of {name} should be among the {n_columns} that were fitted.",
        found=f"{unknown.size} of {len(labels)} that are not, the first {quoted(labels[unknown[0]])}",
        remedy="They were left out. `strict=True` refuses them.",
    )


def index_of(observed: Observed) -> tuple[Index | None, Index | None]:
    """Labels of the rows and columns of data, None where they have none."""
    rows, columns = observed.row_labels, observed.column_labels
    return None if rows is None else Index(rows), None if columns is None else Index(columns)


def is_single(wanted: Any) -> bool:
    """Whether something is one label, rather than a list of them."""
    return isinstance(wanted, str | bytes) or not hasattr(wanted, "__len__")


def _position(index: Index, label: Any, side: str) -> int:
    try:
        return index.positions.get(label, -1)
    except TypeError:
        raise DataError(
            f"A {side} must be asked for by a label, all of one kind.",
            found=f"a {type(label).__name__}",
            remedy="Pass a list of labels, or a list of histories (dicts from columns to values).",
        ) from None


def read_cells(X: Any, name: str, unseen: str = "missing", levels: Any = None) -> Observed:
    """Cells about which a model is asked, in rows and columns of their own, which may be new ones.

    An `Observed` says itself what unseen means.
    """
    from halfseen.io import observe  # readers of files are loaded when there is something to read

    if X is None:
        raise DataError("must be data, as for fit.", parameter=name, found="None", remedy=f"Pass the cells of {name}.")
    return observe(X, unseen=None if isinstance(X, Observed) else unseen, levels=levels, allow_empty=True)
