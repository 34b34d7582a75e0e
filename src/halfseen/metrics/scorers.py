"""Scores of rows and columns from fitted models, pairs of factors, arrays or functions; cells held out of training."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from halfseen.arrays import Array
from halfseen.engines.topk import DenseScores, Products, Scores
from halfseen.errors import DataError, DataWarning, ParameterError
from halfseen.estimators.base import BaseRecommender
from halfseen.labels import Places
from halfseen.observed import Observed, match_cells
from halfseen.ranking import Ranker, Seen, read_cells

#: Rows ranked in one go by models and factors: enough to keep threads busy, few enough that their lists are small.
ROWS_AT_A_TIME = 1 << 12
#: Scores asked for in one go where they don't come from factors: 8 MB.
SCORES_AT_A_TIME = 1 << 20


@dataclass(frozen=True)
class Scorer:
    """Scores for `shape` rows and columns, which may have labels."""

    shape: tuple[int, int]
    scores_of: Callable[[Array], Scores]
    """The scores of the rows at these positions."""
    rows_at_a_time: int
    labels: Places
    unseen: str = "missing"
    """How data that are not yet observed are to be read: what unseen means, and the texts that stand for 1, 2, ..."""
    level_names: Any = None
    engine: str = "cpu"
    n_jobs: int | None = None
    trained_on: Observed | Seen | None = None
    """Cells of training, where they are not those that the rows have seen."""

    def popularity(self, seen: Seen) -> Array:
        """Share of the training rows that have seen each column, at least one row's."""
        of = seen if self.trained_on is None else self.trained_on
        if isinstance(of, Observed):
            of = Seen.from_observed(rows_of(of, self.shape[1], self.labels.column_labels))
        return np.maximum(of.per_column(), 1) / max(of.indptr.size - 1, 1)

    def read(self, X: Any, name: str) -> Observed:
        """The cells of train or test."""
        return read_cells(X, name, self.unseen, self.level_names)


def scorer_of(model: Any, train: Any, history: Any = None) -> tuple[Scorer, Observed | Seen]:
    """The scorer that a model is, and what its rows have seen: by default, what the model was fitted on.

    With a history, whose rows are new, rows are folded in when they are asked for. Other models than estimators score
    its rows, and the columns of train.
    """
    if isinstance(model, BaseRecommender):
        check_is_fitted(model)
        ranker: Ranker = model.model_
        reads, runs = (ranker.unseen, ranker.levels_to_read), (model.engine, model.n_jobs)
        if history is None:
            scorer = Scorer(
                ranker.shape,
                lambda rows: ranker.scores(ranker.known_rows(rows)),
                ROWS_AT_A_TIME,
                ranker.labels,
                *reads,
                *runs,
            )
            return scorer, ranker.seen if train is None else scorer.read(train, "train")
        if not ranker.can_fold_in:
            raise ParameterError(
                "must be a model that rows can be folded into, if there is a history.",
                parameter="model",
                found=f"a {type(model).__name__}",
                remedy="Leave the history out.",
            )
        cells = rows_of(read_cells(history, "history", *reads), ranker.shape[1], ranker.labels.column_labels)
        trained_on = ranker.seen if train is None else read_cells(train, "train", *reads)

        def folded_in(rows: Array) -> Scores:
            return ranker.scores(ranker.served_rows(cells.select_rows(rows), *runs, type(model).__name__))

        labels = Places(cells.row_labels, ranker.labels.column_labels)
        return Scorer(cells.shape, folded_in, ROWS_AT_A_TIME, labels, *reads, *runs, trained_on), cells
    seen, before = read_cells(train, "train"), None
    if history is not None:
        before = seen
        seen = rows_of(read_cells(history, "history"), seen.shape[1], seen.column_labels)
    scorer = _scorer(model, seen.shape, Places(seen.row_labels, seen.column_labels))
    if scorer.shape != seen.shape:
        raise DataError(
            f"The model must score the {seen.shape[0]} rows and {seen.shape[1]} columns of "
            f"{'train' if history is None else 'history and train'}.",
            parameter="model",
            found=f"{scorer.shape[0]} rows and {scorer.shape[1]} columns",
            remedy="Fit it on train.",
        )
    return replace(scorer, trained_on=before), seen


def rows_of(history: Observed, n_columns: int, column_labels: Array | None) -> Observed:
    """The rows of a history over the columns of a model; cells in others are left out, with a warning."""
    labels = Places(history.row_labels, column_labels)
    return match_cells(history, (history.shape[0], n_columns), labels, "history", duplicates="keep")


def _scorer(model: Any, shape: tuple[int, int], labels: Places) -> Scorer:
    if isinstance(model, tuple) and [type(factor) for factor in model] == [np.ndarray, np.ndarray]:
        return _by_factors(model[0], model[1], labels)
    if isinstance(model, np.ndarray) and model.ndim == 2:
        return _by_array(model, labels)
    if callable(model):
        return _by_function(model, shape, labels)
    raise ParameterError(
        "must be a fitted model, a pair of arrays (W, H), an array of scores, or a function from positions of rows to "
        "their scores.",
        parameter="model",
        found=f"a {type(model).__name__}",
        remedy="Pass one of these.",
    )


def _by_factors(W: Array, H: Array, labels: Places) -> Scorer:
    for name, factor in (("W", W), ("H", H)):
        if factor.ndim != 2 or factor.dtype.kind not in "fiub" or not np.all(np.isfinite(factor)):
            raise DataError(
                f"must be an array of finite numbers, a row for each {'row' if name == 'W' else 'column'} of the data.",
                parameter=name,
                found=f"shape {factor.shape}, dtype {factor.dtype}, or numbers that are not finite",
                remedy="Fit the model again.",
            )
    if W.shape[1] != H.shape[1]:
        raise DataError(
            "W and H must have the same number of components.",
            found=f"{W.shape[1]} and {H.shape[1]}",
            remedy="Pass H with a row for each column of the data.",
        )
    W, H = _as_floats(W), _as_floats(H)
    return Scorer((len(W), len(H)), lambda rows: Products(W[rows], H), ROWS_AT_A_TIME, labels)


def _by_array(x: Array, labels: Places) -> Scorer:
    n, m = x.shape
    return Scorer((n, m), lambda rows: _given(x[rows], rows, m), _height(m), labels)


def _by_function(score: Callable[[Array], Any], shape: tuple[int, int], labels: Places) -> Scorer:
    return Scorer(shape, lambda rows: _given(np.asarray(score(rows)), rows, shape[1]), _height(shape[1]), labels)


def _given(x: Array, rows: Array, m: int) -> DenseScores:
    if x.shape != (rows.size, m) or x.dtype.kind not in "fiub":
        raise DataError(
            f"Scores of {rows.size} rows must be a dense array of numbers of shape {(rows.size, m)}.",
            found=f"shape {x.shape}, dtype {x.dtype}",
            remedy="Return a row of scores for each requested row.",
        )
    if np.isnan(x).any():
        row, column = np.argwhere(np.isnan(x))[0]
        raise DataError(
            "Scores must be numbers.",
            found="NaN",
            where=f"at row {rows[row]}, column {column} (positions)",
            remedy="Use -inf for a column that must not be ranked.",
        )
    return DenseScores(_as_floats(x))


def _as_floats(array: Array) -> Array:
    """In single or double precision, which are the ones compiled for."""
    return array if array.dtype in (np.float32, np.float64) else array.astype(np.float64)


def _height(columns: int) -> int:
    return max(1, SCORES_AT_A_TIME // max(1, columns))


#: Rows compared at a time: the cells seen in a dense table are listed row by row.
ROWS_COMPARED = 1 << 12


def held_out(test: Observed, *seen: Seen) -> Observed:
    """The cells of test that none of `seen` has; the others are left out, with a warning.

    Parameters
    ----------
    test : Observed
        Cells in the rows and columns of the model.
    *seen : Seen
        Cells of training, in the same rows and columns.

    Returns
    -------
    Observed
    """
    n, m = test.shape
    again = np.zeros(test.nnz, bool)
    for top in range(0, n, ROWS_COMPARED):
        rows = np.arange(top, min(top + ROWS_COMPARED, n))
        indptr = test.indptr[top : rows[-1] + 2]
        cells = slice(indptr[0], indptr[-1])
        if cells.start < cells.stop:
            keys = cell_keys(indptr, test.indices[cells], m)
            for one in seen:
                again[cells] |= find_keys(keys, cell_keys(*one.in_rows(rows), m)) >= 0
    if not again.any():
        return test
    if again.all():
        raise DataError(
            "Test must have cells that training has not seen.",
            found=f"none among {test.nnz}",
            remedy="Hold some out before the fit (`halfseen.data.split_cells`), or test on others.",
        )
    warning = DataWarning(
        "Test cells should not be among those of training.",
        found=f"{np.count_nonzero(again)} of {test.nnz} that are",
        remedy="They were left out.",
    )
    warnings.warn(warning, stacklevel=4)  # where the user called a metric
    return test.select_cells(~again)


def cell_keys(indptr: Array, columns: Array, width: int) -> Array:
    """Row * width + column of each cell of a CSR matrix, ascending."""
    return np.repeat(np.arange(indptr.size - 1) * width, np.diff(indptr)) + columns


def find_keys(keys: Array, known: Array) -> Array:
    """Position of each key among ascending known ones; -1 where there is none."""
    positions = np.searchsorted(known, keys)
    return np.where(np.append(known, -2)[positions] == keys, positions, -1)
