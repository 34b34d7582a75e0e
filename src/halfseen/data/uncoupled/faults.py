"""Answers and comparisons that speak of what was not asked: found, counted, and told with their first place."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from halfseen.data.uncoupled.accounts import LEFT_OUT
from halfseen.errors import DataError

NOT_ASKED = -2  # in the place of a position: an id that `asked` doesn't have
Place = Callable[[int], str]


class Fault(NamedTuple):
    """Lines of one kind (of LEFT_OUT) that can't be used; `place` says where a line stands."""

    name: str
    lines: np.ndarray
    place: Place

    @property
    def n_lines(self) -> int:
        return int(self.lines.size)

    @property
    def first(self) -> int:
        return int(self.lines[0])

    def told(self) -> str:
        return f"{LEFT_OUT[self.name].told(self.n_lines)} ({'the first ' * (self.n_lines > 1)}{self.place(self.first)})"

    def refusal(self) -> DataError:
        noun, one, _, remedy = LEFT_OUT[self.name]
        return DataError(
            "Answers and comparisons must speak of what was asked, and compare two people. "
            f"Found {'an' if noun == 'answer' else 'a'} {noun} "
            f'{one}, {self.place(self.first)}. {remedy}, or have it left out and told: faults="report".'
        )


def faults_of_answers(questions: np.ndarray, place: Place) -> list[Fault]:
    """Answers to questions that nobody was asked."""
    return _found({"answers_unasked": questions < 0}, place)


def faults_of_comparisons(
    questions: np.ndarray, sides: tuple[np.ndarray, np.ndarray], cells: tuple[np.ndarray, np.ndarray], place: Place
) -> list[Fault]:
    """Comparisons on unknown questions, of people who were not asked, of one person, of nobody; a line has one fault.

    `sides` are positions of respondents, -1 for an unknown side; `cells` the cells where they were asked, else -1.
    """
    unasked = questions < 0
    strange = np.logical_or(*((side != -1) & (cell < 0) for side, cell in zip(sides, cells, strict=True))) & ~unasked
    same = ~unasked & ~strange & (cells[0] == cells[1])
    nobody = cells[0] < 0
    kinds = {
        "comparisons_unasked": unasked,
        "comparisons_strange": strange,
        "comparisons_self": same & ~nobody,
        "comparisons_empty": same & nobody,
    }
    return _found(kinds, place)


def _found(kinds: Mapping[str, np.ndarray], place: Place) -> list[Fault]:
    return [Fault(name, np.flatnonzero(lines), place) for name, lines in kinds.items() if lines.any()]


def refuse_first(faults: list[Fault]) -> None:
    """Refuse the fault that stands first in its list."""
    if faults:
        raise min(faults, key=lambda fault: fault.first).refusal()
