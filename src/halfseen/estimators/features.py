"""From what a user passes to what was seen, keeping scikit-learn's contract about columns and their names."""

import os
from typing import Any

import numpy as np
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.validation import _check_feature_names, _check_n_features

from halfseen.arrays import Array
from halfseen.errors import DataError, ParameterError
from halfseen.estimators.labelling import positions
from halfseen.io import observe
from halfseen.io.numbers import NotANumber, Scale
from halfseen.io.reader import are_triples
from halfseen.io.schema import ReadOptions, spelled_long
from halfseen.io.sources import as_frame, frame_table
from halfseen.io.wide import find_row_names
from halfseen.observed import Observed


def observe_for_fit(model: Any, X: Any, cell_weight: Any) -> Observed:
    """The observed cells, as the model's `unseen` reads them; the columns' number and names are remembered."""
    _refuse_lost_zeros(model, X)
    observed = observe(X, unseen=model.unseen, cell_weight=cell_weight, levels=model._levels_to_read())
    remember_columns(model, X, observed.shape[1])
    return observed


def remember_columns(model: Any, X: Any, count: int) -> None:
    """Keep the number of columns and, where they have names, these, as scikit-learn does."""
    for name in ("n_features_in_", "feature_names_in_"):
        if hasattr(model, name):
            delattr(model, name)
    if not isinstance(X, np.ndarray) and _kind_of(X) == "features":  # an array has no names to keep
        _check_feature_names(model, X, reset=True)
    model.n_features_in_ = count


def observe_rows(
    model: Any, X: Any, *, cell_weight: Any = None, unseen: str | None = None, allow_empty: bool = True
) -> Observed:
    """New rows over the columns of the fit: matched by label where X has labels, else by position."""
    _refuse_lost_zeros(model, X)
    how: dict[str, Any] = {"unseen": unseen or model.unseen, "allow_empty": allow_empty}
    how["levels"] = model._fitted_names()
    if is_list_of_histories(X):
        return _observe_histories(model, X, **how)
    how["cell_weight"] = cell_weight
    kind = _kind_of(X)
    if kind == "features" and (hasattr(model, "feature_names_in_") or model.column_labels_ is None):
        _check_feature_names(model, X, reset=False)
    is_triples = are_triples(X, ReadOptions(levels=how["levels"]))
    has_names = X.column_labels is not None if isinstance(X, Observed) else kind != "features" or _is_table(X)
    if (is_triples or has_names) and model.column_labels_ is not None:
        return observe(X, column_labels=model.column_labels_, **how)
    if is_triples or kind == "long":  # a fit without labels counts its columns
        return observe(X, column_labels=np.arange(model.n_features_in_), **how)
    observed = observe(X, **how)
    if observed.shape[1] != model.n_features_in_:
        # scikit-learn's own sentence, which its estimator checks ask for, and what to do.
        try:
            _check_n_features(model, np.empty((1, observed.shape[1])), reset=False)
        except ValueError as error:
            raise DataError(f"{error} Pass rows with the columns of the fit; NaN where a cell is unseen.") from None
    return observed


def read_cells(X: Any, name: str, unseen: str = "missing", levels: Any = None) -> Observed:
    """What was seen in cells that a model is asked about, in rows and columns of their own, which may be new ones.

    An `Observed` says itself what unseen means.
    """
    if X is None:
        raise DataError(f"{name} must be data, as for fit. Found None. Pass the cells of {name}.")
    return observe(X, unseen=None if isinstance(X, Observed) else unseen, levels=levels, allow_empty=True)


def _refuse_lost_zeros(model: Any, X: Any) -> None:
    if isinstance(X, Observed) and X.unseen == "zero" and model.unseen == "missing":
        raise ParameterError(
            'What was observed with unseen="zero" has left zeros out, so it must be fitted so. Found a model with '
            'unseen="missing". Set unseen="zero" in the model, or observe again with unseen="missing".'
        )


def with_row_labels(model: Any, X: Any, observed: Observed, W: Array) -> Any:
    """W as it is; for a long frame, if scikit-learn's `set_output` asks for pandas, with an index of its own.

    scikit-learn would take the index of X, which has a line for every cell.
    """
    if _kind_of(X) != "long" or _get_output_config("transform", model)["dense"] != "pandas":
        return W
    import pandas as pd

    return pd.DataFrame(W, index=observed.row_labels)


def is_list_of_histories(X: Any) -> bool:
    """Whether X is a list of dicts, each from column labels to values."""
    return isinstance(X, list | tuple) and len(X) > 0 and all(isinstance(history, dict) for history in X)


def _observe_histories(model: Any, histories: Any, unseen: str, allow_empty: bool, levels: Any) -> Observed:
    rows = np.repeat(np.arange(len(histories)), [len(history) for history in histories])
    labels = [label for history in histories for label in history]
    scale = Scale.of(levels)
    values = np.concatenate([np.empty(0), *(_values_of(history, row, scale) for row, history in enumerate(histories))])
    columns = positions(model, labels, "column") if labels else np.empty(0, np.int64)
    shape = (len(histories), model.n_features_in_)
    return Observed.from_cells(
        rows, columns, values, shape,
        unseen=unseen, column_labels=model.column_labels_, allow_empty=allow_empty,
    )  # fmt: skip


def _values_of(history: dict[Any, Any], row: int, scale: Scale) -> Array:
    try:
        return scale.numbers(list(history.values()))
    except NotANumber as error:
        raise DataError(
            f"{scale.must} Found {error.field!r} in history {row}, column {list(history)[error.position]!r}. "
            f"{scale.hint}Use None if it is unknown."
        ) from None


def _kind_of(X: Any) -> str:
    """What the columns of X are: "features", as of arrays, sparse matrices and wide frames of nothing but numbers;
    "long" for long frames; "other" for files, streams, an `Observed`, and wide frames that name their rows."""
    if isinstance(X, Observed | str | os.PathLike):
        return "other"
    frame = as_frame(X)
    if frame is None:
        return "other" if _is_table(X) else "features"
    if spelled_long(frame.columns, lambda _: False) is not None:
        return "long"
    only_numbers = all(dtype.is_numeric() for dtype in frame.schema.dtypes())
    names_rows = find_row_names(frame_table(frame), ReadOptions()).in_first_column
    return "features" if only_numbers and not names_rows else "other"


def _is_table(X: Any) -> bool:
    """Whether X is a frame or a stream, whose columns have names."""
    return not isinstance(X, np.ndarray | list | tuple) and (
        hasattr(X, "__arrow_c_stream__") or as_frame(X) is not None
    )
