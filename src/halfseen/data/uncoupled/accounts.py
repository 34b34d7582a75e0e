"""What an uncoupled collection holds, what was left out of it, and what is odd about it, by count."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Kind(NamedTuple):
    """A kind of lines that are left out: what one is, what several are, and what to do about it."""

    noun: str
    one: str
    several: str
    remedy: str

    def told(self, count: int) -> str:
        return f"{counted(count, self.noun)} {self.one if count == 1 else self.several}"


NOBODY_ASKED = "to a question nobody was asked", "to questions nobody was asked", "Add who was asked it"

LEFT_OUT = {
    "answers_unasked": Kind("answer", *NOBODY_ASKED),
    "comparisons_unasked": Kind("comparison", *(words.replace("to ", "on ", 1) for words in NOBODY_ASKED)),
    "comparisons_strange": Kind(
        "comparison",
        "of somebody who was not asked that question",
        "of people who were not asked that question",
        "Add them to those who were asked",
    ),
    "comparisons_self": Kind("comparison", "of somebody with themselves", "of somebody with themselves", "Drop it"),
    "comparisons_empty": Kind("comparison", "with both sides unknown", "with both sides unknown", "Drop it"),
}


@dataclass(frozen=True)
class Account:
    """Counts; `str` tells them in sentences, leaving out what there is none of.

    Left out: `answers_missing` (no number given) and `answers_unasked` (to questions that nobody was asked);
    `comparisons_unasked` (on such questions), `comparisons_strange` (of people who were not asked that question),
    `comparisons_self` (of somebody with themselves), `comparisons_empty` (both sides unknown).

    Kept: `cells_repeated` were asked more than once; comparisons that are `half_known`, `repeated` (beyond the first
    time), `two_way` (pairs compared both ways: ties), `cyclic` (in longer cycles, which hold only if all in them are
    equal), `contradictory` (in ties or cycles of more people than the question has equal answers). Questions with
    `fewer_answers` than they were asked, with `more_answers`, with `no_answers`, with `no_comparisons`; respondents
    `never_compared`. `decimal_commas`: whether the answers were written with these.
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

    def __str__(self) -> str:
        sentences = (self._whole(), self._left_out(), self._of_questions(), *self._of_comparisons())
        return " ".join(sentence for sentence in sentences if sentence)

    def _whole(self) -> str:
        both_ways = f"{counted(self.two_way, 'pair')} both ways" if self.two_way else ""
        parts = (
            counted(self.questions, "question"),
            counted(self.respondents, "respondent"),
            counted(self.asked, "asked cell") + _aside(_some(self.cells_repeated, "asked more than once")),
            counted(self.answers, "answer") + _aside(_some(self.answers_missing, "missing dropped")),
            counted(self.comparisons, "comparison")
            + _aside(both_ways, _some(self.half_known, "half-known"), _some(self.repeated, "repeated")),
        )
        return f"{', '.join(parts)}.{' Answers have decimal commas.' if self.decimal_commas else ''}"

    def _left_out(self) -> str:
        told = [kind.told(getattr(self, name)) for name, kind in LEFT_OUT.items() if getattr(self, name)]
        return f"Left out: {', '.join(told)}." if told else ""

    def _of_questions(self) -> str:
        amounts = {
            "fewer answers than were asked for": self.fewer_answers,
            "more answers than were asked for": self.more_answers,
            "no answer": self.no_answers,
            "no comparison": self.no_comparisons,
        }
        told = [f"{count:,} {'has' if count == 1 else 'have'} {what}" for what, count in amounts.items() if count]
        return f"Of the questions, {', '.join(told)}." if told else ""

    def _of_comparisons(self) -> list[str]:
        told = []
        if self.never_compared:
            were = "was" if self.never_compared == 1 else "were"
            told.append(f"{counted(self.never_compared, 'respondent')} {were} never compared.")
        if self.cyclic:
            told.append(f"{counted(self.cyclic, 'comparison')} in cycles, which hold only if all in a cycle are equal.")
        if self.contradictory:
            wrong = counted(self.contradictory, "comparison")
            told.append(f"{wrong} can't all hold: they demand more equal answers than there are.")
        return told


def counted(count: int, noun: str) -> str:
    """A number and its noun: "1 answer", "4,950 answers"."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _some(count: int, what: str) -> str:
    return f"{count:,} {what}" if count else ""


def _aside(*remarks: str) -> str:
    told = [remark for remark in remarks if remark]
    return f" ({', '.join(told)})" if told else ""
