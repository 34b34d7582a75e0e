"""What is odd about a collection: counted, told, or refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from halfseen.data.labels import quoted
from halfseen.data.uncoupled.accounts import Account, counted
from halfseen.data.uncoupled.asking import Answers, AskedCells, Comparisons
from halfseen.data.uncoupled.cycles import Oddities, oddities
from halfseen.data.uncoupled.faults import Fault
from halfseen.errors import DataError


class Collection(NamedTuple):
    """What an `Uncoupled` is made of; `complaint` is what deserves a warning, or empty."""

    asked: AskedCells
    answers: Answers
    comparisons: Comparisons
    question_labels: np.ndarray | None
    respondent_labels: np.ndarray | None
    account: Account
    complaint: str = ""


def settled(
    asked: AskedCells,
    answers: Answers,
    comparisons: Comparisons,
    labels: tuple[Any, Any],
    left_out: Mapping[str, int],
    faults: Sequence[Fault] = (),
    refuse: bool = False,
    decimal_commas: bool = False,
) -> Collection:
    """The collection with its account."""
    odd = oddities(asked, answers, comparisons)
    contradiction = _contradiction(odd, asked, comparisons, labels)
    if contradiction and refuse:
        raise DataError(
            f"Comparisons must hold for some order of the answers. Found {contradiction}. "
            'Drop some of them, or have them kept and told: faults="report".'
        )
    account = _account(asked, answers, comparisons, odd, left_out, decimal_commas)
    return Collection(asked, answers, comparisons, *labels, account, _complaint(faults, contradiction))


def _contradiction(odd: Oddities, asked: AskedCells, comparisons: Comparisons, labels: tuple[Any, Any]) -> str:
    """The comparisons that no order of the answers can satisfy, in words; empty if there are none."""
    wrong = np.flatnonzero(odd.contradictory)
    if not wrong.size:
        return ""
    cells = comparisons.higher[wrong[0]], comparisons.lower[wrong[0]]
    row = int(np.searchsorted(asked.indptr, cells[0], side="right")) - 1
    question, first, second = (
        str(position) if names is None else quoted(names[position])
        for position, names in ((row, labels[0]), *((asked.respondents[cell], labels[1]) for cell in cells))
    )
    return (
        f"{counted(wrong.size, 'comparison')} in ties or cycles of more respondents than the question has equal "
        f"answers, the first on question {question}, of {first} with {second}"
    )


def _complaint(faults: Sequence[Fault], contradiction: str) -> str:
    sentences = []
    if faults:
        sentences.append(
            f"Answers and comparisons should speak of what was asked. Found {', '.join(one.told() for one in faults)}. "
            'These were left out; faults="refuse" stops at the first.'
        )
    if contradiction:
        sentences.append(
            f"Comparisons should hold for some order of the answers. Found {contradiction}. These were "
            'kept; faults="refuse" stops at them.'
        )
    return " ".join(sentences)


def _account(
    asked: AskedCells,
    answers: Answers,
    comparisons: Comparisons,
    odd: Oddities,
    left_out: Mapping[str, int],
    decimal_commas: bool,
) -> Account:
    given, askings = np.diff(answers.indptr), asked.askings()
    is_compared = np.zeros(asked.n_respondents, dtype=bool)
    for side in (comparisons.higher, comparisons.lower):
        is_compared[asked.respondents[side[side >= 0]]] = True
    return Account(
        questions=asked.n_questions,
        respondents=asked.n_respondents,
        asked=asked.respondents.size,
        answers=answers.values.size,
        comparisons=comparisons.higher.size,
        cells_repeated=0 if asked.times is None else int((asked.times > 1).sum()),
        half_known=int(odd.half_known.sum()),
        repeated=int(odd.repeated.sum()),
        two_way=odd.two_way_pairs,
        cyclic=int(odd.cyclic.sum()),
        contradictory=int(odd.contradictory.sum()),
        fewer_answers=int(((given < askings) & (given > 0)).sum()),
        more_answers=int((given > askings).sum()),
        no_answers=int(((given == 0) & (askings > 0)).sum()),
        no_comparisons=int((np.diff(comparisons.indptr) == 0).sum()),
        never_compared=int((~is_compared).sum()),
        decimal_commas=decimal_commas,
        **left_out,
    )
