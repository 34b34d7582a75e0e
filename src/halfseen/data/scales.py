"""How values are written: as numbers, or as texts with an order, such as "bad", "fair", "good" for 1, 2, 3."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from halfseen.data.decimals import hint_about
from halfseen.data.labels import quoted, text_array
from halfseen.data.numerals import NotANumber, is_missing, numbers
from halfseen.errors import ParameterError

#: Asks for the order of a frame's ordered categories, where it has any.
ORDERED = "ordered"


@dataclass(frozen=True)
class Scale:
    """Texts from the lowest to the highest, which stand for 1, 2, ...; without names values are numbers.

    Numbers beside or instead of the texts are taken for what they stand for.
    """

    names: tuple[str, ...] = ()
    #: Whether texts would be welcome, if only their order were known.
    ordered: bool = False

    @classmethod
    def of(cls, levels: Any) -> Scale:
        """As the caller of `observe` says it: None, "ordered", or a list of texts."""
        if levels is None or (isinstance(levels, str) and levels == ORDERED):
            return cls(ordered=levels is not None)
        names = [] if isinstance(levels, str) else list(levels)
        different = len(set(map(str, names))) == len(names)
        if not names or not different or not all(isinstance(name, str) and name.strip() for name in names):
            raise ParameterError(
                f'levels must be None, "{ORDERED}", or different texts from the lowest to the highest. Found '
                f'{levels!r}. Give such a list: levels=["bad", "fair", "good"].'
            )
        return cls(tuple(str(name).strip() for name in names))

    def numbers(self, fields: Sequence[Any]) -> np.ndarray:
        """Fields as floats, NaN where missing; NotANumber names the first that is neither number nor level."""
        if not self.names:
            return numbers(fields)
        number_of = {name: place for place, name in enumerate(self.names, start=1)}
        return np.array([_number(position, field, number_of) for position, field in enumerate(fields)], np.float64)

    @property
    def labels(self) -> np.ndarray | None:
        """The texts as an array."""
        return text_array(self.names) if self.names else None

    @property
    def must(self) -> str:
        """What must hold of a value, in a sentence."""
        if self.names:
            return f"Values must be among the levels {', '.join(map(quoted, self.names))}."
        return f"Values must be numbers{', or texts whose order is told' if self.ordered else ''}."

    @property
    def kind(self) -> str:
        """What values are."""
        return "levels" if self.names else "numbers"

    @property
    def hint(self) -> str:
        """What to do about another value, before what can always be done."""
        if self.names:
            return "Correct it, or add it to levels. "
        return "List the texts from the lowest to the highest in levels. " if self.ordered else ""

    def advice(self, field: Any) -> str:
        """The hint; about a number with marks that are not read, one about these."""
        return ("" if self.names else hint_about(field)) or self.hint


NUMBERS = Scale()


def _number(position: int, field: Any, number_of: dict[str, int]) -> float:
    if isinstance(field, str) and field.strip() in number_of:
        return number_of[field.strip()]  # first of all, because a level may be called "none"
    if is_missing(field):
        return np.nan
    if isinstance(field, Real):
        return float(field)  # the number of a level, as the rest of the house has it
    raise NotANumber(position, field)
