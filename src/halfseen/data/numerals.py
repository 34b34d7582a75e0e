"""Text and Python objects as numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from halfseen.data.labels import NULL_TYPES

MISSING = frozenset({"", "na", "n/a", "n.a.", "nan", "null", "none", "?", "--", ".", "#n/a", "<na>"})


class NotANumber(ValueError):
    """A field that is neither a number nor a mark of a missing one, and where it stands."""

    def __init__(self, position: int, field: Any) -> None:
        super().__init__(position, field)
        self.position, self.field = position, field


def is_missing(field: Any) -> bool:
    """Whether a field says that nothing is known."""
    if isinstance(field, str):
        return field.strip().lower() in MISSING
    return type(field).__name__ in NULL_TYPES or (isinstance(field, float) and field != field)


def number(field: Any) -> float:
    """A field as a float, NaN where it is missing; ValueError or TypeError where it is no number."""
    if is_missing(field):
        return np.nan
    if isinstance(field, str) and "_" in field:
        raise ValueError(field)  # Python would read 1_2 as 12, which is more often an id
    return float(field)


def is_number(field: Any) -> bool:
    """Whether a field is a number that is not missing."""
    try:
        return not is_missing(field) and number(field) is not None
    except (ValueError, TypeError, OverflowError):
        return False


def numbers(fields: Sequence[Any]) -> np.ndarray:
    """Fields as floats, NaN where missing; NotANumber names the first that is neither."""
    try:
        if "_" not in "".join(fields):
            return np.array(list(map(float, fields)))
    except (ValueError, TypeError, OverflowError):
        pass  # some are missing or no numbers: the careful way tells which
    return np.array([_number_at(position, field) for position, field in enumerate(fields)], dtype=np.float64)


def _number_at(position: int, field: Any) -> float:
    try:
        return number(field)
    except (ValueError, TypeError, OverflowError):  # the last for whole numbers beyond all floats
        raise NotANumber(position, field) from None


def are_whole_ids(fields: Sequence[Any]) -> bool:
    """Whether there are fields, all written as whole numbers, each a different one."""
    texts = [str(field).strip() for field in fields]
    are_whole = bool(texts) and all(text.removeprefix("-").isdecimal() for text in texts)
    return are_whole and len(set(texts)) == len(texts)


def all_numbers(fields: Iterable[Any]) -> bool:
    """Whether every field is a number or missing, and at least one is a number."""
    found = False
    for field in fields:
        if is_number(field):
            found = True
        elif not is_missing(field):
            return False
    return found
