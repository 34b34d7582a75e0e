"""Models to files and back."""

import json
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from halfseen.archive import read_archive, write_archive
from halfseen.arrays import Array
from halfseen.errors import ModelFileError
from halfseen.estimators.seen import Seen
from halfseen.result import Status

_OPTIONAL = ("row_labels_", "column_labels_", "feature_names_in_")


def save(model: Any, path: Any) -> None:
    """Write everything that predicting, folding in and recommending need."""
    from halfseen import __version__

    arrays = {f"{side}/{name}": array for side, factor in _sides(model) for name, array in factor._asdict().items()}
    arrays |= {"seen/indptr": model.seen_.indptr, "seen/indices": model.seen_.indices}
    arrays |= {f"further/{name}": array for name, array in model._further_arrays().items()}
    arrays |= {f"trace/{name}": array for name, array in model.trace_.items()}
    arrays |= {name: getattr(model, name) for name in _OPTIONAL if getattr(model, name, None) is not None}
    header = {
        "halfseen": __version__,
        "estimator": type(model).__name__,
        "parameters": {name: _plain(value) for name, value in model.get_params(deep=False).items()},
        "status": model.status_.name,
        "fingerprint": getattr(model, "fingerprint_", None),
        "n_features_in": model.n_features_in_,
        "seen_lists_holes": model.seen_.lists_holes,
    }
    write_archive(path, header, {name: np.asarray(array) for name, array in arrays.items()})


def load(path: Any) -> Any:
    """The model that `save` wrote to `path`, ready to predict.

    Examples
    --------
    >>> import halfseen as hs
    >>> hs.RankOneNMF().fit([[1.0, 2.0], [2.0, 4.0]]).save("model.hs")
    >>> round(float(hs.load("model.hs").predict(1, 1)), 6)
    4.0
    """
    header, arrays = read_archive(path)
    kind = _estimator(header, path)
    try:
        return _restored(kind, header, arrays)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ModelFileError(
            f"The parts of a model file must fit together. Those of {str(path)!r} do not ({error}). "
            "It was changed by other hands, or by a newer halfseen: fit again, or update."
        ) from error


def _restored(kind: Any, header: dict[str, Any], arrays: dict[str, Array]) -> Any:
    model = kind(**_parameters(header))
    rows, columns = (model.factor_type(**_of(arrays, side)) for side in ("rows", "columns"))
    model.factors_ = (rows, columns)
    model.W_, model.H_ = rows.mean, columns.mean
    model.trace_ = _of(arrays, "trace")
    model.n_iter_, model.status_ = len(model.trace_["objective"]), Status[header["status"]]
    model.n_features_in_ = header["n_features_in"]
    lists_holes = header.get("seen_lists_holes", False)
    model.seen_ = Seen(arrays["seen/indptr"], arrays["seen/indices"], model.n_features_in_, lists_holes)
    if header["fingerprint"] is not None:
        model.fingerprint_ = header["fingerprint"]
    for name in _OPTIONAL:
        if name in arrays or name != "feature_names_in_":
            setattr(model, name, arrays.get(name))
    model._restore(_of(arrays, "further"))
    _check_that_parts_fit(model)
    return model


def _check_that_parts_fit(model: Any) -> None:
    """Refuse arrays whose sizes contradict each other."""
    (n, k), (m, also_k) = model.W_.shape, model.H_.shape
    indptr, indices = model.seen_.indptr, model.seen_.indices
    sizes = {
        "components": (k, also_k),  # not n_components, which may have been set anew after the fit
        "columns": (m, model.n_features_in_),
        "rows": (n, indptr.size - 1),
        "seen cells": (int(indptr[-1]), indices.size),
        "row labels": (n, n if model.row_labels_ is None else len(model.row_labels_)),
        "column labels": (m, m if model.column_labels_ is None else len(model.column_labels_)),
        "shapes": {array.shape for array in model.factors_[0]} | {(n, k)},
        "shapes of columns": {array.shape for array in model.factors_[1]} | {(m, k)},
    }
    for what, numbers in sizes.items():
        if len(set(numbers)) > 1:
            raise ValueError(f"{what}: {', '.join(map(str, numbers))}")


def _sides(model: Any) -> Any:
    return zip(("rows", "columns"), model.factors_, strict=True)


def _of(arrays: dict[str, Array], group: str) -> dict[str, Array]:
    """The arrays of a group, by their names in it."""
    return {name.partition("/")[2]: array for name, array in arrays.items() if name.startswith(f"{group}/")}


def _plain(value: Any) -> Any:
    """A parameter as JSON has it; a start or a random state that is an object is not needed any more."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, np.ndarray) and value.ndim == 1:  # levels, thresholds, weights
        value = value.tolist()
    try:
        json.dumps(value)
    except TypeError:
        return None
    return value


def _parameters(header: dict[str, Any]) -> dict[str, Any]:
    parameters: dict[str, Any] = header["parameters"]
    # A start that was a pair of arrays is not kept: it is not needed any more.
    return {name: "random" if (name, value) == ("init", None) else value for name, value in parameters.items()}


def _estimator(header: dict[str, Any], path: Any) -> Any:
    import halfseen

    name = header.get("estimator")
    kind = getattr(halfseen, name) if isinstance(name, str) and name in halfseen.__all__ else None
    if not (isinstance(kind, type) and issubclass(kind, BaseEstimator) and hasattr(kind, "_restore")):
        raise ModelFileError(
            f"A model file must hold an estimator of this version of halfseen. {str(path)!r} holds {name!r}. "
            "Update halfseen to read it."
        )
    return kind
