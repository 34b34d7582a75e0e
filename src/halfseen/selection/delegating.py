"""What a search can do once the best model is there: whatever that model can."""

from collections.abc import Callable
from typing import Any

from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted


def delegated(name: str) -> Any:
    """A method that hands its arguments to the method of that name of `best_estimator_`; there if the model has it."""

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        check_is_fitted(self)
        return getattr(self.best_estimator_, name)(*args, **kwargs)

    method.__name__ = name
    method.__doc__ = f"`best_estimator_.{name}`, with the same arguments."
    return available_if(_has(name))(method)


def _has(name: str) -> Callable[[Any], bool]:
    def has(search: Any) -> bool:
        if not search.refit:
            raise AttributeError(
                f"{name} needs the model fitted on all cells, so refit must be True. Found {search.refit!r}. "
                "Fit the estimator with best_params_ yourself, or set refit=True."
            )
        return hasattr(search.estimator, name)

    return has
