"""--relevant: from which value on held-out cells are relevant; by the name of a level, where these are words."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from halfseen.checks import did_you_mean
from halfseen.errors import ParameterError


class Threshold(NamedTuple):
    """A value as it is called, and as cells are read: levels that are words stand for 1, 2, ... there."""

    called: str | float
    value: float


def thresholds(model: Any, asked: Sequence[str]) -> list[Threshold]:
    """Those asked for. By default 1; of words the lowest, which is above the zeros of unseen cells; where unseen cells
    are missing the next, as every cell reaches the lowest."""
    names = model._fitted_names() if hasattr(model, "_fitted_names") else None
    if names is None:
        return [_number(text) for text in asked or ["1"]]
    by_default = names[0] if model.unseen == "zero" else names[1]
    return [_level(text, names) for text in asked or [by_default]]


def _number(text: str) -> Threshold:
    try:
        return Threshold(float(text), float(text))
    except ValueError:
        raise ParameterError(
            f"relevant must be a number, as the values of the model are. Found {text!r}. Use the lowest value that "
            "makes a column relevant, such as 1 or 4."
        ) from None


def _level(text: str, names: list[str]) -> Threshold:
    if text not in names:
        near = did_you_mean(text, names)
        remedy = f"Did you mean {near!r}?" if near else "Name the lowest that makes a column relevant."
        raise ParameterError(
            f"relevant must be one of the model's levels {', '.join(map(repr, names))}. Found {text!r}. {remedy}"
        )
    return Threshold(text, 1.0 + names.index(text))
