"""From what a user passes to what was seen, keeping scikit-learn's contract about columns and their names."""

import os
from typing import Any

import numpy as np
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.validation import _check_feature_names, _check_n_features

from halfseen.arrays import Array
from halfseen.data import Observed, observe
from halfseen.data.frames import as_frame, holds_nothing_but_columns, long_header_of
from halfseen.data.numerals import NotANumber
from halfseen.data.reading import Reading
from halfseen.data.scales import Scale
from halfseen.data.triples import are_triples
from halfseen.errors import DataError, ParameterError
from halfseen.estimators.labelling import positions


def observe_for_fit(model: Any, X: Any, cell_weight: Any) -> Observed:
    """What was seen, as the model's `unseen` reads it; the columns' number and names are remembered."""
    _refuse_lost_zeros(model, X)
    observed = observe(X, unseen=model.unseen, cell_weight=cell_weight, levels=model._levels_to_read())
    remember_columns(model, X, observed.shape[1])
    return observed


def remember_columns(model: Any, X: Any, count: int) -> None:
    """Keep the number of columns and, where they have names, these, as scikit-learn does."""
    for name in ("n_features_in_", "feature_names_in_"):
        if hasattr(model, name):
            delattr(model, name)
    if not isinstance(X, np.ndarray) and _has_columns_as_features(X):  # an array has no names to keep
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
    if _has_columns_as_features(X) and (hasattr(model, "feature_names_in_") or model.column_labels_ is None):
        _check_feature_names(model, X, reset=False)
    is_triples = are_triples(X, Reading(levels=how["levels"]))
    if (is_triples or _names_its_columns(X)) and model.column_labels_ is not None:
        return observe(X, column_labels=model.column_labels_, **how)
    if is_triples or _is_long(X):  # a fit without labels counts its columns
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
    if not _is_long(X) or _get_output_config("transform", model)["dense"] != "pandas":
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


def _has_columns_as_features(X: Any) -> bool:
    """Whether the columns of X itself are the columns of the matrix: arrays, sparse matrices and wide frames."""
    if isinstance(X, Observed | str | os.PathLike):
        return False
    frame = as_frame(X)
    return frame is None or (not _is_long(X) and holds_nothing_but_columns(frame))


def _is_long(X: Any) -> bool:
    frame = None if isinstance(X, Observed) else as_frame(X)
    return frame is not None and long_header_of(frame) is not None


def _names_its_columns(X: Any) -> bool:
    """Whether the columns of X are found by label: frames, files, and what was read from them."""
    if isinstance(X, Observed):
        return X.column_labels is not None
    return isinstance(X, str | os.PathLike) or as_frame(X) is not None
