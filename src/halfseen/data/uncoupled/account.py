"""Counts of what an uncoupled collection holds, of what was left out of it, and of what is odd about it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from halfseen.errors import DataError


def counted(count: int, noun: str) -> str:
    """A number and its noun: "1 answer", "4,950 answers"."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


#: Kinds of lines that are left out: the noun, the words for one and for several of them, and what to do about it.
LEFT_OUT = {
    "answers_unasked": (
        "answer", "to a question nobody was asked", "to questions nobody was asked", "Add who was asked it"),
    "comparisons_unasked": (
        "comparison", "on a question nobody was asked", "on questions nobody was asked", "Add who was asked it"),
    "comparisons_strange": (
        "comparison", "of somebody who was not asked that question", "of people who were not asked that question",
        "Add them to those who were asked"),
    "comparisons_self": ("comparison", "of somebody with themselves", "of somebody with themselves", "Drop it"),
    "comparisons_empty": ("comparison", "with both sides unknown", "with both sides unknown", "Drop it"),
}  # fmt: skip


def _left_out(kind: str, count: int) -> str:
    noun, one, several, _ = LEFT_OUT[kind]
    return f"{counted(count, noun)} {one if count == 1 else several}"


class Fault(NamedTuple):
    """Lines of one kind of `LEFT_OUT`; `place` gives the place of a line in words."""

    kind: str
    lines: np.ndarray
    place: Callable[[int], str]

    def __str__(self) -> str:
        count = self.lines.size
        return f"{_left_out(self.kind, count)} ({'the first ' * (count > 1)}{self.place(int(self.lines[0]))})"

    def error(self) -> DataError:
        noun, one, _, remedy = LEFT_OUT[self.kind]
        return DataError(
            "Answers and comparisons must speak of what was asked, and compare two people. "
            f"Found {'an' if noun == 'answer' else 'a'} {noun} "
            f'{one}, {self.place(int(self.lines[0]))}. {remedy}, or have it left out and told: faults="report".'
        )


@dataclass(frozen=True)
class Account:
    """Counts; `str` gives them in sentences, without those that are 0.

    Left out: `answers_missing` (no number given) and `answers_unasked` (to questions that nobody was asked);
    `comparisons_unasked` (on such questions), `comparisons_strange` (of people who were not asked that question),
    `comparisons_self` (of somebody with themselves), `comparisons_empty` (both sides unknown).

    Kept: `cells_repeated` were asked more than once; comparisons that are `half_known`, `repeated` (beyond the first
    time), `two_way` (pairs compared both ways: ties), `cyclic` (in longer cycles, which hold only if all in them are
    equal), `contradictory` (in ties or cycles of more people than the question has equal answers). Questions with
    `fewer_answers` than they were asked, with `more_answers`, with `no_answers`, with `no_comparisons`; respondents
    `never_compared`. `decimal_commas`: whether the answers were written with these. `columns`: where each role of each
    list was read from.
    """

    questions: int
    respondents: int
    asked: int
    answers: int
    comparisons: int
    answers_missing: int = 0
    answers_unasked: int = 0
    comparisons_unasked: int = 0
    comparisons_strange: int = 0
    comparisons_self: int = 0
    comparisons_empty: int = 0
    cells_repeated: int = 0
    half_known: int = 0
    repeated: int = 0
    two_way: int = 0
    cyclic: int = 0
    contradictory: int = 0
    fewer_answers: int = 0
    more_answers: int = 0
    no_answers: int = 0
    no_comparisons: int = 0
    never_compared: int = 0
    decimal_commas: bool = False
    columns: dict[str, dict[str, str]] = field(default_factory=dict, compare=False)

    def __str__(self) -> str:
        def aside(counts: dict[str, int]) -> str:
            remarks = [f"{count:,} {words}" for words, count in counts.items() if count]
            return f" ({', '.join(remarks)})" if remarks else ""

        pairs = "pair both ways" if self.two_way == 1 else "pairs both ways"
        of_comparisons = {pairs: self.two_way, "half-known": self.half_known, "repeated": self.repeated}
        parts = (
            counted(self.questions, "question"),
            counted(self.respondents, "respondent"),
            counted(self.asked, "asked cell") + aside({"asked more than once": self.cells_repeated}),
            counted(self.answers, "answer") + aside({"missing dropped": self.answers_missing}),
            counted(self.comparisons, "comparison") + aside(of_comparisons),
        )
        sentences = [f"{', '.join(parts)}."]
        if self.decimal_commas:
            sentences.append("Answers have decimal commas.")
        if left_out := [_left_out(kind, getattr(self, kind)) for kind in LEFT_OUT if getattr(self, kind)]:
            sentences.append(f"Left out: {', '.join(left_out)}.")
        of_questions = {
            "fewer answers than were asked for": self.fewer_answers,
            "more answers than were asked for": self.more_answers,
            "no answer": self.no_answers,
            "no comparison": self.no_comparisons,
        }
        odd = [f"{count:,} {'has' if count == 1 else 'have'} {what}" for what, count in of_questions.items() if count]
        if odd:
            sentences.append(f"Of the questions, {', '.join(odd)}.")
        if self.never_compared:
            were = "was" if self.never_compared == 1 else "were"
            sentences.append(f"{counted(self.never_compared, 'respondent')} {were} never compared.")
        if self.cyclic:
            cyclic = counted(self.cyclic, "comparison")
            sentences.append(f"{cyclic} in cycles, which hold only if all in a cycle are equal.")
        if self.contradictory:
            wrong = counted(self.contradictory, "comparison")
            sentences.append(f"{wrong} can't all hold: they demand more equal answers than there are.")
        return " ".join(sentences)
