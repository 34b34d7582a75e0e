"""The model that a picture or a report is of."""

from typing import Any

from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from halfseen.errors import ParameterError


def best_of(model: Any) -> Any:
    """The model that a search has chosen; a model that is no search is itself."""
    return getattr(model, "best_estimator_", model)


def model_of(model: Any) -> Any:
    """A fitted model, or the one that a search has chosen; refuse what has no factors and no trace."""
    model = best_of(model)
    if hasattr(model, "fit"):
        check_is_fitted(model)
    if not has_factors(model):
        raise ParameterError(f"model must be a fitted model with factors. {found(model)}")
    return model


def has_factors(model: Any) -> bool:
    """Whether this is a fitted model of the library."""
    return hasattr(model, "trace_") and hasattr(model, "H_")


def found(model: Any) -> str:
    """What was found in the place of a fitted model, and what to do."""
    if not is_fitted(model):
        return f"Found a {type(model).__name__} that is not fitted. Fit a model, or load one."
    remedy = "Fit it with refit=True" if hasattr(model, "refit") else "Fit a model, or load one"
    return f"Found a {type(model).__name__} without any. {remedy}."


def is_fitted(model: Any) -> bool:
    """Whether nothing is left to fit."""
    try:
        check_is_fitted(model)
    except (NotFittedError, TypeError):  # what is no estimator can't be fitted
        return not hasattr(model, "fit")
    return True
