"""The three lists brought together: numbered, checked against each other, and put into row order."""

from __future__ import annotations

import numpy as np

from halfseen.data.decimals import COMMA
from halfseen.data.uncoupled.accounts import counted
from halfseen.data.uncoupled.asking import Answers, AskedCells, Comparisons
from halfseen.data.uncoupled.faults import NOT_ASKED, Fault, faults_of_answers, faults_of_comparisons, refuse_first
from halfseen.data.uncoupled.listings import Listing
from halfseen.data.uncoupled.reckoning import Collection, settled
from halfseen.errors import DataError

Labels = tuple[np.ndarray, np.ndarray]  # of the questions, of the respondents


def collected(asked: Listing, answers: Listing, comparisons: Listing, refuse: bool) -> Collection:
    """The lists as one collection; what doesn't fit is refused, or left out and told."""
    cells, labels = _asked_cells(asked)
    given, missing, odd_answers = _given_answers(answers, labels[0], refuse)
    compared, odd_comparisons = _placed_comparisons(comparisons, cells, labels, refuse)
    faults = [*odd_answers, *odd_comparisons]
    left_out = {"answers_missing": missing} | {fault.name: fault.n_lines for fault in faults}
    return settled(cells, given, compared, labels, left_out, faults, refuse, answers.decimal == COMMA)


def _asked_cells(asked: Listing) -> tuple[AskedCells, Labels]:
    if not asked.n_lines:
        raise DataError("Somebody must have been asked something. Found no line in asked. Check the list.")
    questions, respondents = asked.ids["question"], asked.ids["respondent"]
    shape = (questions.labels.size, respondents.labels.size)
    return AskedCells.of(questions.codes, respondents.codes, shape), (questions.labels, respondents.labels)


def _given_answers(answers: Listing, known: np.ndarray, refuse: bool) -> tuple[Answers, int, list[Fault]]:
    """The answers row by row, how many were missing, and those that nobody was asked for."""
    values = answers.values.astype(np.float64, copy=False)
    infinite = np.isinf(values)
    if infinite.any():
        first = int(np.argmax(infinite))
        raise DataError(
            f"Answers must be finite. Found {values[first]} {answers.place(first)}. Leave it empty if it is unknown."
        )
    questions = answers.ids["question"].among(known, NOT_ASKED)
    faults = faults_of_answers(questions, answers.place)
    if refuse:
        refuse_first(faults)
    missing = np.isnan(values)
    kept = ~missing & (questions >= 0)
    if not kept.any():
        raise DataError(
            f"There must be an answer to a question that was asked. Found none in {counted(values.size, 'line')} of "
            f"answers, {int(missing.sum()):,} of them without a number. Check that both lists name the same questions."
        )
    return Answers.of(questions[kept], values[kept], known.size), int(missing.sum()), faults


def _placed_comparisons(
    comparisons: Listing, asked: AskedCells, labels: Labels, refuse: bool
) -> tuple[Comparisons, list[Fault]]:
    """The comparisons by their cells, and those that were left out."""
    questions = comparisons.ids["question"].among(labels[0], NOT_ASKED)
    higher, lower = (comparisons.ids[role].among(labels[1], NOT_ASKED) for role in ("higher", "lower"))
    winners, losers = asked.find(questions, higher, lower)
    faults = faults_of_comparisons(questions, (higher, lower), (winners, losers), comparisons.place)
    if refuse:
        refuse_first(faults)
    kept = np.ones(questions.size, dtype=bool)
    for fault in faults:
        kept[fault.lines] = False
    return Comparisons.of(questions[kept], winners[kept], losers[kept], asked.indptr), faults
