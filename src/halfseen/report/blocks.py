"""The blocks that a page is made of: sections of facts, notes, tables and pictures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from halfseen.plots.axes import display_label

#: The most letters of a name in a table.
MAX_LETTERS = 80


@dataclass(frozen=True)
class Placed:
    """A text of a table with its place in an order that is not alphabetical, such as that of levels."""

    text: str
    place: int


@dataclass(frozen=True)
class Facts:
    """Pairs of a name and a value."""

    pairs: Sequence[tuple[str, Any]]
    kind: str = "facts"


@dataclass(frozen=True)
class Note:
    """A paragraph."""

    text: str
    kind: str = "note"


@dataclass(frozen=True)
class Table:
    """Rows of texts and numbers; `bar` is the column that is also drawn as bars, `own` the rows of the model itself."""

    caption: str
    heads: Sequence[str]
    rows: Sequence[Sequence[Any]]
    bar: int | None = None
    own: Sequence[int] = ()
    is_wide: bool = True
    kind: str = "table"

    @property
    def numeric(self) -> list[bool]:
        """Whether each column has numbers only."""
        return [
            all(
                row[place] is None or (isinstance(row[place], int | float) and not isinstance(row[place], bool))
                for row in self.rows
            )
            for place in range(len(self.heads))
        ]

    @property
    def largest(self) -> float:
        """The length of the longest bar."""
        if self.bar is None:
            return 1.0
        return max((abs(float(row[self.bar])) for row in self.rows), default=0.0) or 1.0


@dataclass(frozen=True)
class Picture:
    """A drawing, its description in words, and its numbers for those who can't see it."""

    svg: str
    alt: str
    caption: str
    numbers: Table | None = None
    kind: str = "picture"


@dataclass(frozen=True)
class Component:
    """A heading with a note, and tables, such as of a component's strongest columns and rows."""

    name: str
    note: str
    tables: Sequence[Table]


@dataclass(frozen=True)
class Components:
    """Components, one of which the reader can select."""

    parts: Sequence[Component]
    kind: str = "components"


@dataclass(frozen=True)
class Fold:
    """A table that is folded at first."""

    summary: str
    table: Table
    kind: str = "fold"


Block = Facts | Note | Table | Picture | Components | Fold


@dataclass(frozen=True)
class Section:
    """A heading and its blocks; the headline is a sentence for the head of the page."""

    name: str
    title: str
    blocks: list[Block] = field(default_factory=list)
    headline: str = ""


def label_text(label: Any) -> str:
    """A label as tables show it."""
    return display_label(label, MAX_LETTERS)


def placed(texts: Sequence[str]) -> list[Placed]:
    """Texts that are in their order."""
    return [Placed(text, place) for place, text in enumerate(texts)]


def counted(number: int, noun: str) -> str:
    """A number and its noun: "1 cell", "4,950 cells"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def percent(share: float) -> str:
    return f"{100 * share:.3g}%"
