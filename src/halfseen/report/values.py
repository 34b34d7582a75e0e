"""How far off values are at cells that were held out, beside what simple rules say."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from halfseen.arrays import Array
from halfseen.errors import DataError
from halfseen.estimators.labelling import labels_at
from halfseen.estimators.leveled import LeveledMixin
from halfseen.estimators.pairs import products_at
from halfseen.observed import Observed
from halfseen.report.baselines import mean_rules, question_means
from halfseen.report.blocks import Block, Note, Table, counted
from halfseen.report.known import Known
from halfseen.report.units import Units, columns_differ, units_of

_HEADS = ["Predicted by", "Root mean squared error", "Mean absolute error"]


def errors_of_values(known: Known, test: Observed) -> Iterator[Block]:
    """A table of errors; in units of each column's spread, where columns differ in units."""
    rows, columns = test.row_of_cell(), test.indices
    try:
        values = known.numbers(test)
    except DataError as error:  # a level that training did not have
        yield Note(str(error))
        return
    guesses = {type(known.model).__name__: _predicted(known, rows, columns), **_rules(known, rows, columns)}
    units, scale = _units_at(units_of(known), rows, columns)
    judged = scale > 0
    lines = []
    for name, guess in guesses.items():
        errors = (guess - values)[judged] / scale[judged]
        lines.append([name, float(np.sqrt(np.mean(errors**2))), float(np.mean(np.abs(errors)))])
    cells = counted(int(np.count_nonzero(judged)), "cell")
    yield Table(f"Values of {cells}{known.counting}{_told(units)}: smaller is better", _HEADS, lines, own=[0])
    if units is not None and not judged.all():
        yield Note(
            f"{counted(int(np.count_nonzero(~judged)), 'cell')} left out: the values of their {units.whose}s did not "
            "vary in training, and have no spread."
        )
    if len(lines) == 1:
        yield Note(_what_is_missing(known, test))


def in_what(known: Known) -> str:
    """In which units errors are told, in a few words."""
    units = units_of(known)
    return "" if units is None else f", in units of each {units.whose}'s spread"


def _units_at(units: Units | None, rows: Array, columns: Array) -> tuple[Units | None, Array]:
    """The units, and that of each cell; 1 where all are alike, or none of the cells has a unit."""
    scale = np.ones(rows.size) if units is None else units.at(rows, columns)
    return (units, scale) if scale.any() else (None, np.ones(rows.size))


def _told(units: Units | None) -> str:
    if units is None:
        return ""
    seen = "its answers" if units.whose == "question" else "the cells seen in training"
    return f", errors in units of each {units.whose}'s spread (the standard deviation over {seen})"


def _what_is_missing(known: Known, test: Observed) -> str:
    hidden = not isinstance(known.model, LeveledMixin) and columns_differ(test)
    further = (
        ", and errors in units of each column's spread: here the columns of the largest values decide" if hidden else ""
    )
    return f"Give the data of the fit to see simple rules beside the model{further}."


def _predicted(known: Known, rows: Array, columns: Array) -> Array:
    model = known.model
    if getattr(model, "inner_shape_", None) is not None:  # of a tensor, whose columns have no names
        return products_at(model.W_, model.H_, rows, columns)
    predicted: Array = model.predict(labels_at(model, rows, "row"), labels_at(model, columns, "column"))
    return predicted


def _rules(known: Known, rows: Array, columns: Array) -> dict[str, Array]:
    if known.train is not None:
        return mean_rules(known.train, known.numbers(known.train), rows, columns)
    if known.answers is None:
        return {}
    return {"Mean of the question's answers": question_means(*known.answers)[columns if known.model._turned else rows]}
