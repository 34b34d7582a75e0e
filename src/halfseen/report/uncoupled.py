"""The section on uncoupled data: whose answers are whose, and how far that is disclosed."""

from __future__ import annotations

from typing import Any

import numpy as np

from halfseen import plots
from halfseen.arrays import Array
from halfseen.estimators.labelling import labels_at
from halfseen.report.blocks import Block, Facts, Note, Picture, Section, Table, percent, text_of
from halfseen.report.drawing import drawn
from halfseen.report.known import Known

#: The couplings that are listed, and the questions that are drawn, with at most so many respondents.
_LINES, _QUESTIONS, _RESPONDENTS = 30, 3, 40


def whose_answers(known: Known) -> Section | None:
    """Disclosure risk, the likeliest couplings, and pictures of some questions."""
    if not known.is_uncoupled:
        return None
    model, title = known.model, "Whose answers"
    if model._posterior is None:
        sentence = f'Method {model.method!r} does not tell whose an answer may be; fit with "gibbs" for that.'
        return Section("coupling", title, [Note(sentence)])
    risk, alone = model.disclosure_risk(), model.disclosure_risk(comparisons=False)
    blocks: list[Block] = [
        Facts([
            ("A guess of an answer is right", f"{percent(risk.mean())} of the time in the mean"),
            ("Without any comparisons", f"{percent(alone.mean())} of the time"),
            ("Cells disclosed almost surely", f"{np.count_nonzero(risk > 0.95):,} of {risk.size:,} (above 0.95)"),
        ]),
        _risks(model, risk, alone),
        _likeliest(model, risk),
        *_questions(known, risk),
    ]  # fmt: skip
    return Section("coupling", title, blocks)


def _risks(model: Any, risk: Array, alone: Array) -> Picture:
    alt = (
        f"Histogram of the disclosure risk of {risk.size:,} asked cells, mean {risk.mean():.3g}; without comparisons "
        f"it would be {alone.mean():.3g}."
    )
    caption = "How probable the best guess of each asked cell's answer is, with the comparisons and without."
    return Picture(drawn(lambda ax: plots.disclosure(model, ax=ax)), alt, caption)


def _likeliest(model: Any, risk: Array) -> Table:
    coupling = model.coupling()
    best = np.argsort(-risk, kind="stable")[:_LINES]
    lines = [
        [
            text_of(coupling.row[at]),
            text_of(coupling.column[at]),
            *map(float, (coupling.answer[at], risk[at], coupling.mean[at])),
        ]
        for at in best
    ]
    some = f"The {best.size} likeliest couplings" if best.size < risk.size else "All couplings, the likeliest first"
    return Table(some, ["Row", "Column", "Likeliest answer", "Probability", "Mean"], lines, bar=3)


def _questions(known: Known, risk: Array) -> list[Block]:
    """Pictures of the questions with most at stake that have few enough respondents to be read."""
    model = known.model
    asked = np.diff(model._asked.indptr)
    sums = np.bincount(model._asked.rows(), risk, asked.size)
    drawable = np.flatnonzero((asked > 1) & (asked <= _RESPONDENTS))
    chosen = drawable[np.argsort(-(sums[drawable] / asked[drawable]), kind="stable")[:_QUESTIONS]]
    return [_question(known, int(place)) for place in chosen]


def _question(known: Known, place: int) -> Picture:
    side = "column" if known.model._turned else "row"
    label = labels_at(known.model, np.array([place]), side)[0]
    (name,) = known.names(np.array([place]), side)
    alt = f"Heat map for question {name}: how probable each answer is for each respondent."
    caption = f"Who may have given which answer to {name}."
    return Picture(drawn(lambda ax: plots.coupling(known.model, label, ax=ax), height=4.2), alt, caption)
