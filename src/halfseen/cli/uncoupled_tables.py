"""What a model of uncoupled data tells, as a long table of cells or as a matrix."""

from typing import Any, NamedTuple

import numpy as np

from halfseen.arrays import Array
from halfseen.data import Uncoupled, write_table
from halfseen.errors import DataError

#: The most lines of a long table, or cells of a wide one.
MOST_CELLS = 10_000_000
#: Digits of what is written, by the largest answer: means of equal answers look like these.
DIGITS = 12


class Cells(NamedTuple):
    """Positions of questions and respondents, question by question, and which of these pairs were asked."""

    questions: Array
    respondents: Array
    asked: Array

    @classmethod
    def of(cls, seen: Uncoupled, only_asked: bool) -> "Cells":
        if only_asked:
            return cls(seen.row_of_cell(), seen.respondents, np.ones(seen.n_asked, bool))
        asked = np.zeros((seen.n_questions, seen.n_respondents), bool)
        asked[seen.row_of_cell(), seen.respondents] = True
        questions, respondents = np.indices(asked.shape).reshape(2, -1)
        return cls(questions, respondents, asked.reshape(-1))


def check_size(seen: Uncoupled, only_asked: bool, wide: bool) -> None:
    """Refuse, before any work is done, a table that nobody could read."""
    cells = seen.n_asked if only_asked and not wide else seen.n_questions * seen.n_respondents
    if cells > MOST_CELLS:
        raise DataError(
            f"A table must have at most {MOST_CELLS:,} cells. Found {cells:,} of {seen.n_questions:,} questions and "
            f"{seen.n_respondents:,} respondents. Use --only-asked without --wide, or fewer questions."
        )


def write(path: str, model: Any, seen: Uncoupled, *, level: float, only_asked: bool, wide: bool) -> None:
    """Write all pairs of a question and a respondent, or those asked alone."""
    cells = Cells.of(seen, only_asked)
    names, columns = _matrix(model, seen, cells) if wide else _lines(model, seen, cells, level)
    write_table(path, names, columns)


def _matrix(model: Any, seen: Uncoupled, cells: Cells) -> tuple[list[str], list[Any]]:
    """The values between the names of rows and columns; a cell that is not wanted stays empty."""
    values = np.full((seen.n_questions, seen.n_respondents), np.nan)
    values[cells.questions, cells.respondents] = _rounded(model.predict(*_pairs(seen, cells)), seen)
    rows, columns, corner = seen.question_labels, seen.respondent_labels, "question"
    if seen.questions_are == "columns":
        values, rows, columns, corner = values.T, columns, rows, "respondent"
    return [corner, *map(str, columns)], [rows, *map(np.ascontiguousarray, values.T)]  # type: ignore[arg-type]


def _lines(model: Any, seen: Uncoupled, cells: Cells, level: float) -> tuple[list[str], list[Any]]:
    """A line for each cell; intervals and the likeliest answer of models that were sampled."""
    pairs = _pairs(seen, cells)
    is_sampled = model.method == "gibbs"
    columns = dict(zip(("question", "respondent"), _names(seen, cells), strict=True))
    columns["value"] = _rounded(model.predict(*pairs), seen)
    if is_sampled:
        ends = model.predict_interval(*pairs, level=level)
        columns["low"], columns["high"] = (_rounded(end, seen) for end in ends)
    columns["asked"] = np.where(cells.asked, "yes", "no")
    if is_sampled:
        coupling = model.coupling()  # of the cells asked, question by question, as they are here
        told = {"likeliest answer": coupling.answer, "probability": np.round(coupling.probability, DIGITS)}
        for name, of_asked in told.items():
            columns[name] = np.full(cells.asked.size, np.nan)
            columns[name][cells.asked] = of_asked
    return list(columns), list(columns.values())


def _rounded(values: Array, seen: Uncoupled) -> Array:
    largest = np.abs(seen.answers).max()
    return np.round(values, DIGITS - int(np.ceil(np.log10(largest))) if largest > 0 else DIGITS)


def _names(seen: Uncoupled, cells: Cells) -> tuple[Array, Array]:
    return seen.question_labels[cells.questions], seen.respondent_labels[cells.respondents]  # type: ignore[index]


def _pairs(seen: Uncoupled, cells: Cells) -> tuple[Array, Array]:
    """The labels of the cells' rows and columns, as the model has them."""
    questions, respondents = _names(seen, cells)
    return (questions, respondents) if seen.questions_are == "rows" else (respondents, questions)
