"""Whatever can score the columns for a row, seen alike: fitted models, pairs of factors, arrays, functions."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from halfseen.arrays import Array
from halfseen.engines.topk import DenseScores, Products, Scores
from halfseen.errors import DataError, ParameterError
from halfseen.estimators.base import BaseFactorization
from halfseen.labels import Places
from halfseen.model import Seen, read_cells
from halfseen.observed import Observed

#: Rows ranked in one go by factors: enough to keep threads busy, few enough that their lists take little room.
ROWS_OF_FACTORS = 1 << 12
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
    n_jobs: int | None = None

    def read(self, X: Any, name: str) -> Observed:
        """The cells of train or test."""
        return read_cells(X, name, self.unseen, self.level_names)


def scorer_of(model: Any, train: Any) -> tuple[Scorer, Observed | Seen]:
    """The scorer that a model is, and what was seen in training: by default, what the model was fitted on."""
    if isinstance(model, BaseFactorization):
        check_is_fitted(model)
        scorer = _by_factors(
            model.W_,
            model.H_,
            model.model_.labels,
            unseen=model.model_.unseen,
            level_names=model.model_.encoder.levels_to_read,
            n_jobs=model.n_jobs,
        )
        return scorer, model.seen_ if train is None else scorer.read(train, "train")
    seen = read_cells(train, "train")
    labels = Places(seen.row_labels, seen.column_labels)
    scorer = _scorer(model, seen.shape, labels)
    if scorer.shape != seen.shape:
        raise DataError(
            f"The model must score the {seen.shape[0]} rows and {seen.shape[1]} columns of train. "
            f"Found {scorer.shape[0]} rows and {scorer.shape[1]} columns. Fit it on train."
        )
    return scorer, seen


def _scorer(model: Any, shape: tuple[int, int], labels: Places) -> Scorer:
    if isinstance(model, tuple) and [type(factor) for factor in model] == [np.ndarray, np.ndarray]:
        return _by_factors(model[0], model[1], labels)
    if isinstance(model, np.ndarray) and model.ndim == 2:
        return _by_array(model, labels)
    if callable(model):
        return _by_function(model, shape, labels)
    raise ParameterError(
        "model must be a fitted model, a pair of arrays (W, H), an array of scores, or a function from positions of "
        f"rows to their scores. Found a {type(model).__name__}. Pass one of these."
    )


def _by_factors(W: Array, H: Array, labels: Places, **further: Any) -> Scorer:
    for name, factor in (("W", W), ("H", H)):
        if factor.ndim != 2 or factor.dtype.kind not in "fiub" or not np.all(np.isfinite(factor)):
            raise DataError(
                f"{name} must be an array of finite numbers, a row for each {'row' if name == 'W' else 'column'} of "
                f"the data. Found shape {factor.shape}, dtype {factor.dtype}, or numbers that are not finite. "
                "Fit the model again."
            )
    if W.shape[1] != H.shape[1]:
        raise DataError(
            f"W and H must have the same number of components. Found {W.shape[1]} and {H.shape[1]}. "
            "Pass H with a row for each column of the data."
        )
    W, H = _as_floats(W), _as_floats(H)
    return Scorer((len(W), len(H)), lambda rows: Products(W[rows], H), ROWS_OF_FACTORS, labels, **further)


def _by_array(x: Array, labels: Places) -> Scorer:
    n, m = x.shape
    return Scorer((n, m), lambda rows: _given(x[rows], rows, m), _height(m), labels)


def _by_function(score: Callable[[Array], Any], shape: tuple[int, int], labels: Places) -> Scorer:
    return Scorer(shape, lambda rows: _given(np.asarray(score(rows)), rows, shape[1]), _height(shape[1]), labels)


def _given(x: Array, rows: Array, m: int) -> DenseScores:
    if x.shape != (rows.size, m) or x.dtype.kind not in "fiub":
        raise DataError(
            f"Scores of {rows.size} rows must be a dense array of numbers of shape {(rows.size, m)}. "
            f"Found shape {x.shape}, dtype {x.dtype}. Return a row of scores for each row asked for."
        )
    if np.isnan(x).any():
        row, column = np.argwhere(np.isnan(x))[0]
        raise DataError(
            f"Scores must be numbers. Found NaN at row {rows[row]}, column {column} (positions). "
            "Use -inf for a column that must not be ranked."
        )
    return DenseScores(_as_floats(x))


def _as_floats(array: Array) -> Array:
    """In single or double precision, which are the ones compiled for."""
    return array if array.dtype in (np.float32, np.float64) else array.astype(np.float64)


def _height(columns: int) -> int:
    return max(1, SCORES_AT_A_TIME // max(1, columns))
