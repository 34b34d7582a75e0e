"""What every study has in common: it runs, and gives tables and pictures. It prints nothing and writes no files."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from halfseen.arrays import Array
from halfseen.datasets import source
from halfseen.datasets.registry import local_paths
from halfseen.errors import DataError, DataWarning

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Called with a few words on what a study is about to do.
Tell = Callable[[str], None]


def tell_nobody(what: str) -> None:
    """No progress is shown."""


@dataclass(frozen=True)
class Column:
    """A column of a table: its name, the group of columns it belongs to, and the format of its numbers."""

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
    """Rows of values under columns, and footnotes. `name` distinguishes the tables of one study."""

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
    """A picture that can be drawn on a matplotlib figure. `name` distinguishes the pictures of one study."""

    name: str
    title: str
    draw: Callable[[Figure], None]


class Goal(NamedTuple):
    """What was to be reached, in words, and whether it is."""

    words: str
    reached: bool


@dataclass(frozen=True)
class Result:
    """What a run gives: a summary of a sentence or two, tables, pictures, and the goals reached or not."""

    summary: str
    tables: Sequence[Table]
    pictures: Sequence[Picture] = ()
    goals: Sequence[Goal] = ()

    @property
    def verdict(self) -> str:
        """ "pass", or how many goals are short; nothing where the study has no goals, or did too little to judge."""
        short = sum(not goal.reached for goal in self.goals)
        if not self.goals:
            return ""
        return f"short of {short} of {len(self.goals)}" if short else "pass"


class Study(ABC):
    """One table or figure of a paper: its data, methods and seeds, and the paper's numbers."""

    name: str
    paper: str
    title: str
    needs: tuple[str, ...] = ()  # names of datasets

    def absent(self) -> list[str]:
        """Those of the datasets it needs that are not in the data folder."""

        def is_there(name: str) -> bool:
            try:
                return bool(local_paths(source(name)))
            except DataError:
                return False

        return [name for name in self.needs if not is_there(name)]

    @abstractmethod
    def run(self, *, quick: bool = False, seed: int = 0, tell: Tell = tell_nobody) -> Result:
        """Do the work; `quick` does a small part of it, to see that it runs.

        Where data are absent the rest is done and the table says what is absent; where all are, the loader's
        `DataError` is raised.
        """


def mean_and_spread(values: Array) -> tuple[float, float | None]:
    """The mean and the standard deviation, None where there is but one value."""
    return float(values.mean()), float(np.std(values, ddof=1)) if len(values) > 1 else None


@contextmanager
def quietly() -> Iterator[None]:
    """Without warnings of few cells, empty lines and short runs, where these are intended."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


def words(setting: Mapping[str, Any]) -> str:
    """A setting of a method in words."""
    texts = {name: f"{value:g}" if isinstance(value, float) else str(value) for name, value in setting.items()}
    return ", ".join(f"{name} {value}" for name, value in texts.items())
