"""What is read of one of the three lists of an uncoupled collection."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from halfseen.data.decimals import POINT, hint_about
from halfseen.data.uncoupled.ids import Ids
from halfseen.errors import DataError


class Listing(NamedTuple):
    """A list as it was read: the ids by role, the values (none but in the answers), where a line stands,
    and the decimal mark of a text file."""

    ids: dict[str, Ids]
    values: np.ndarray
    place: Callable[[int], str]
    decimal: str = POINT

    @property
    def n_lines(self) -> int:
        return self.ids["question"].codes.size


def not_a_number(field: Any, place: str) -> DataError:
    return DataError(
        f"Answers must be numbers. Found {field!r} {place}. {hint_about(field)}Write a number, or nothing if "
        "there is no answer."
    )
