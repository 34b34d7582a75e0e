"""Which columns of a table were taken for what, in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from halfseen.data.decimals import COMMA, POINT

MOST_NAMED = 5  # columns that are not used; of more, the rest is counted
MOST_VALUES = 20  # different ones, as levels and small counts have


@dataclass(frozen=True)
class Account:
    """What was recognised in a frame or a file; `str` tells it in sentences.

    `layout` is "long" or "wide". `roles` says where things are from, as in {"rows": "column 'user'", ...}: rows,
    columns, values and weights of a long table, those that it has; the names of the rows of a wide one, if it has any.
    `unused` are the columns of a long table that are none of these, `width` is the number of columns of a wide one.
    `decimal` is the decimal mark of a text file. `if_long` says how to read a wide table that might as well be long.
    """

    layout: str
    roles: dict[str, str]
    has_header: bool = True
    unused: tuple[str, ...] = ()
    width: int = 0
    holds: str = "numbers"
    decimal: str = POINT
    if_long: str = ""

    @classmethod
    def of_long(
        cls, named: Sequence[Any], names: Sequence[Any], weight: Any, has_header: bool = True, decimal: str = POINT
    ) -> Account:
        """Of a long table: `named` are the columns of rows, columns and values, by their names or, without a header, by
        their positions, `weight` that of the weights, `names` all of them."""
        of = dict(zip(("rows", "columns", "values", "weights"), (*named, weight), strict=True))
        used = {role: name for role, name in of.items() if name is not None}
        roles = {role: f"column {_said(name, has_header)}" for role, name in used.items()}
        unused = tuple(_said(name, has_header) for name in names if name not in used.values())
        return cls("long", roles, has_header, unused, decimal=decimal)

    def __str__(self) -> str:
        told = self._long() if self.layout == "long" else self._wide()
        return told + (" Numbers have decimal commas." if self.decimal == COMMA else "") + self._doubt()

    def _long(self) -> str:
        first, *others = (
            f"{role} {'are ' * (not place)}from {of}" for place, (role, of) in enumerate(self.roles.items())
        )
        start = first[0].upper() + first[1:] if self.has_header else f"No header: {first}"
        ones = "" if "values" in self.roles else "; no column of values: every pair counts 1"
        return f"{', '.join([start, *others])}{ones}{self._not_used()}."

    def _not_used(self) -> str:
        if not self.unused:
            return ""
        if len(self.unused) == 1:
            return f"; column {self.unused[0]} is not used"
        *named, last = self.unused[:MOST_NAMED]
        more = len(self.unused) - MOST_NAMED
        listed = ", ".join([*named, last]) + f" and {more} more" if more > 0 else f"{', '.join(named)} and {last}"
        return f"; columns {listed} are not used"

    def _wide(self) -> str:
        header = "" if self.has_header else " without a header"
        rows = f"names of rows from {self.roles['rows']}, " if self.roles else ""
        return f"A wide table{header}: {rows}{self.width:,} column{'' if self.width == 1 else 's'} of {self.holds}."

    def _doubt(self) -> str:
        return f" If its lines are row, column, value, say {self.if_long}." if self.if_long else ""


def _said(name: Any, has_header: bool) -> str:
    """A column by its name, or by its number, from 1, where it has none."""
    return repr(name) if has_header else str(name + 1)


def named_rows(name: Any, has_header: bool = True) -> dict[str, str]:
    """The roles of a wide table whose first column, of this name, names the rows."""
    return {"rows": f"column {name!r}" if has_header and name else "the first column"}


def might_be_long(table: np.ndarray) -> bool:
    """Whether three columns of numbers might be rows, columns and values: ids that come again, pairs that do not, and
    few different values."""
    ids, values = table[:, :2], table[:, 2]
    if not len(table) or np.isnan(ids).any() or (ids != np.floor(ids)).any() or (ids < 0).any():
        return False
    come_again = all(np.unique(column).size < len(table) for column in ids.T)
    return come_again and np.unique(values).size <= MOST_VALUES and len(np.unique(ids, axis=0)) == len(table)
