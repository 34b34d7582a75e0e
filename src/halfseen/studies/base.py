"""What every study has in common: it runs, and gives tables and pictures. It prints nothing and writes no files."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from halfseen.data.datasets import source
from halfseen.data.shelf import paths_of
from halfseen.errors import DataError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Told in a few words what a study is about to do.
Tell = Callable[[str], None]


def tell_nobody(what: str) -> None:
    """For who does not want to be told."""


@dataclass(frozen=True)
class Column:
    """A column of a table: its name, the group of columns it belongs to, and how its numbers are shown."""

    name: str
    group: str = ""
    form: str = ""

    @property
    def full_name(self) -> str:
        return f"{self.group} {self.name}".strip()

    def text(self, value: Any) -> str:
        """A value as it is shown: what is not known as a dash, text as it is, numbers in this column's form."""
        if value is None:
            return "-"
        return value if isinstance(value, str) else format(value, self.form)


@dataclass(frozen=True)
class Table:
    """Rows of values under columns, and what has to be said of them. `name` tells the tables of one study apart."""

    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Any]]
    footnotes: Sequence[str] = ()
    name: str = ""

    def texts(self) -> list[list[str]]:
        """The cells as they are shown."""
        return [[column.text(value) for column, value in zip(self.columns, row, strict=True)] for row in self.rows]

    def column(self, full_name: str) -> list[Any]:
        """The values under a column's group and name."""
        place = [column.full_name for column in self.columns].index(full_name)
        return [row[place] for row in self.rows]


@dataclass(frozen=True)
class Picture:
    """A picture that can be drawn on a matplotlib figure. `name` tells the pictures of one study apart."""

    name: str
    title: str
    draw: Callable[[Figure], None]


class Goal(NamedTuple):
    """What was to be reached, in words, and whether it is."""

    words: str
    reached: bool


@dataclass(frozen=True)
class Result:
    """What came out: a summary of a sentence or two, tables, pictures, and how far what was to be reached is."""

    summary: str
    tables: Sequence[Table]
    pictures: Sequence[Picture] = field(default=())
    goals: Sequence[Goal] = field(default=())

    @property
    def verdict(self) -> str:
        """ "pass", or how many goals are short; nothing where the study has no goals, or did too little to judge."""
        short = sum(not goal.reached for goal in self.goals)
        if not self.goals:
            return ""
        return f"short of {short} of {len(self.goals)}" if short else "pass"


class Study(ABC):
    """One table or figure of a paper: its data, methods and seeds, and the paper's numbers."""

    name: ClassVar[str]
    paper: ClassVar[str]
    title: ClassVar[str]
    needs: ClassVar[tuple[str, ...]] = ()  # names of datasets

    def absent(self) -> list[str]:
        """Those of the datasets it needs that are not at hand."""
        return [name for name in self.needs if not _is_there(name)]

    @abstractmethod
    def run(self, *, quick: bool = False, seed: int = 0, tell: Tell = tell_nobody) -> Result:
        """Do the work; `quick` does a small part of it, to see that it runs.

        Where data are absent the rest is done and the table says what is absent; where all are, the loader's
        `DataError` goes up.
        """


def _is_there(name: str) -> bool:
    try:
        return bool(paths_of(source(name)))
    except DataError:
        return False
