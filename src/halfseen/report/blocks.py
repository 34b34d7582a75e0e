"""What a page is made of: sections of facts, notes, tables and pictures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from halfseen.plots.axes import shown

#: Letters of a name that have room in a table.
LETTERS = 80


@dataclass(frozen=True)
class Placed:
    """A text in a table, and its place in an order that is not that of the alphabet: of levels, or of intervals."""

    text: str
    place: int


@dataclass(frozen=True)
class Facts:
    """Pairs of what is told, and what it is."""

    pairs: Sequence[tuple[str, Any]]
    kind: str = "facts"


@dataclass(frozen=True)
class Note:
    """A sentence or several."""

    text: str
    kind: str = "note"


@dataclass(frozen=True)
class Table:
    """Rows of texts and numbers under heads; `bar` is the column whose numbers are also drawn as bars."""

    caption: str
    heads: Sequence[str]
    rows: Sequence[Sequence[Any]]
    bar: int | None = None
    own: Sequence[int] = ()
    """The rows that are of the model itself, among others."""
    is_wide: bool = True
    """Whether it takes the whole width of the page, or stands beside its neighbour."""
    kind: str = "table"

    @property
    def numeric(self) -> list[bool]:
        """Whether a column has numbers, which stand at the right."""
        return [all(_is_number(row[place]) for row in self.rows) for place in range(len(self.heads))]

    @property
    def largest(self) -> float:
        """The length of the longest bar."""
        if self.bar is None:
            return 1.0
        return max((abs(float(row[self.bar])) for row in self.rows), default=0.0) or 1.0


@dataclass(frozen=True)
class Picture:
    """A drawing, what it shows in words, and its numbers for those who can't see it."""

    svg: str
    alt: str
    caption: str
    numbers: Table | None = None
    kind: str = "picture"


@dataclass(frozen=True)
class Component:
    """One part that was found: a heading, and tables of its strongest columns and rows."""

    name: str
    told: str
    tables: Sequence[Table]


@dataclass(frozen=True)
class Components:
    """All parts, of which some can be chosen."""

    parts: Sequence[Component]
    kind: str = "components"


@dataclass(frozen=True)
class Fold:
    """A table that is shown when it is asked for."""

    summary: str
    table: Table
    kind: str = "fold"


Block = Facts | Note | Table | Picture | Components | Fold


@dataclass(frozen=True)
class Section:
    """A heading, and what stands under it."""

    name: str
    title: str
    blocks: list[Block] = field(default_factory=list)
    headline: str = ""
    """A sentence for the head of the page."""


def text_of(label: Any) -> str:
    """A label as tables show it."""
    return shown(label, LETTERS)


def placed(texts: Sequence[str]) -> list[Placed]:
    """Texts that are in their order."""
    return [Placed(text, place) for place, text in enumerate(texts)]


def counted(number: int, noun: str) -> str:
    """A number and its noun: "1 cell", "4,950 cells"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def percent(share: float) -> str:
    """A share as people say it: "1.06%"."""
    return f"{100 * share:.3g}%"


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))
