"""Uncoupled data: who was asked what, the answers without names, who is above whom; read from lists, or simulated."""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from halfseen.arrays import Array
from halfseen.errors import DataError, ParameterError
from halfseen.io import observe
from halfseen.observed import Observed
from halfseen.uncoupled.list_checks import (
    Answers,
    AskedCells,
    CheckedLists,
    Comparisons,
    ListSummary,
    check_lists,
    summarize,
)
from halfseen.uncoupled.lists import read_lists
from halfseen.validation import check_parameters, one_of, whole


class Frame(Protocol):
    """A pandas, polars or Arrow frame."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


#: What a list, or a matrix to be split, may be given as.
ListSource: TypeAlias = Frame | str | os.PathLike[str] | Sequence[Sequence[Any]] | Array
MatrixSource: TypeAlias = Frame | str | os.PathLike[str] | ArrayLike | sparse.sparray | sparse.spmatrix | Observed

_RULES = {"questions_are": one_of("rows", "columns"), "faults": one_of("report", "refuse")}
_FEW = 2  # times as many pairs as wanted: few enough to look at all of them


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Uncoupled:
    """A matrix whose values and indices were collected apart, as in a survey that keeps names and answers separate.

    Inside, questions are rows and respondents are columns. A cell is a question that a respondent was asked; cells
    are numbered row by row. Questions and respondents are numbered in the order of their first appearance in `asked`;
    no other order of lines matters. A tie is two comparisons, one each way.

    Parameters
    ----------
    asked : frame, path, sequence of tuples or array
        Who was asked what: (question, respondent). Like the other lists, a pandas, polars or Arrow frame, the path of
        a CSV or Parquet file, a list of tuples, or an array of two or three columns.
    answers : frame, path, sequence of tuples or array
        Answers without names: (question, value). Missing ones (NaN, None, "N/A", ...) are dropped.
    comparisons : frame, path, sequence of tuples or array, default=None
        Who is above whom: (question, higher, lower), None, NaN or an empty text for an unknown side.
    question, respondent, value, higher, lower : str or int, default=None
        Headers of these columns, in all lists that have them; their positions from 0 where there are none. By default
        the only header that `asked` and `answers` share heads the questions, the others are known by the usual
        spellings, and the rest goes by the order above.
    questions_are : {"rows", "columns"}, default="rows"
        What questions are in the matrix as the user sees it (`shape`).
    faults : {"report", "refuse"}, default="report"
        What to do with answers to questions nobody was asked, and with comparisons on such questions, of people who
        were not asked that question, of somebody with themselves, or without any known side: "report" leaves them out
        and counts them in one `DataWarning`, "refuse" raises a `DataError` at the first. Comparisons that demand more
        equal answers than there are, which no order of the answers can satisfy, are kept with a warning, or refused.

    Examples
    --------
    >>> import halfseen as hs
    >>> asked = [(what, who) for what in ("rent", "food") for who in ("ann", "bob")]
    >>> answers = [("rent", 640), ("rent", 820), ("food", 310), ("food", 350)]
    >>> collected = hs.Uncoupled(asked, answers, [("rent", "bob", "ann")])
    >>> collected.shape, collected.n_comparisons
    ((2, 2), 1)
    """

    n_questions: int
    """Number of questions."""
    n_respondents: int
    """Number of respondents."""
    indptr: Array
    """Start of the asked cells of each question, of shape (n_questions + 1,)."""
    respondents: Array
    """Respondent of each asked cell, ascending inside each question."""
    times: Array | None
    """How often each cell was asked; None: each once."""
    answer_indptr: Array
    """Start of the answers to each question."""
    answers: Array
    """Answers, ascending inside each question: nobody can tell in which order they were given."""
    comparison_indptr: Array
    """Start of the comparisons on each question."""
    higher: Array
    """Cell whose answer is at least that of `lower`, in each comparison; -1 if it is not known."""
    lower: Array
    """Cell whose answer is at most that of `higher`; -1 if it is not known."""
    question_labels: Array | None
    """Labels of the questions, if they have any."""
    respondent_labels: Array | None
    """Labels of the respondents, if they have any."""
    questions_are: str
    """"rows" or "columns" of the matrix."""
    summary: ListSummary
    """Counts of what was read, what was left out, and what is odd."""

    def __init__(
        self,
        asked: ListSource,
        answers: ListSource,
        comparisons: ListSource | None = None,
        *,
        question: str | int | None = None,
        respondent: str | int | None = None,
        value: str | int | None = None,
        higher: str | int | None = None,
        lower: str | int | None = None,
        questions_are: str = "rows",
        faults: str = "report",
    ) -> None:
        check_parameters({"questions_are": questions_are, "faults": faults}, _RULES)
        columns = {"question": question, "respondent": respondent, "value": value, "higher": higher, "lower": lower}
        lists = check_lists(read_lists(asked, answers, comparisons, columns), refuse=faults == "refuse")
        self._set_fields(lists, questions_are)
        for warning in lists.warnings:
            warnings.warn(warning, stacklevel=2)

    @classmethod
    def from_coupled(
        cls,
        X: MatrixSource,
        n_comparisons: int = 12,
        *,
        random_state: int | Sequence[int] | np.random.Generator | None = None,
        questions_are: str = "rows",
    ) -> Uncoupled:
        """Split a matrix into the three lists, to simulate a collection.

        In each question of l observed cells, min(n_comparisons, l (l - 1) / 2) different pairs of cells are compared;
        a pair of equal values gives two comparisons, one each way.

        Parameters
        ----------
        X : array, sparse matrix, frame, path or Observed
            Anything that `observe` reads, with one value per cell and without weights.
        n_comparisons : int, default=12
            Number of pairs to compare on each question.
        random_state : int, sequence of int, numpy.random.Generator or None, default=None
            Random seed of the pairs.
        questions_are : {"rows", "columns"}, default="rows"
            What questions are in X.
        """
        rules = {"n_comparisons": whole(0), "questions_are": _RULES["questions_are"]}
        check_parameters({"n_comparisons": n_comparisons, "questions_are": questions_are}, rules)
        try:
            rng = np.random.default_rng(random_state)
        except (TypeError, ValueError):
            must = "must be None, a whole number of at least 0, several of them, or a random generator."
            found, remedy = repr(random_state), "Use 0 for draws that can be repeated."
            raise ParameterError(must, found=found, remedy=remedy, parameter="random_state") from None
        self = cls.__new__(cls)
        self._set_fields(split_matrix(observe(X, unseen=None), n_comparisons, rng, questions_are), questions_are)
        return self

    def _set_fields(self, lists: CheckedLists, questions_are: str) -> None:
        """Set the fields, once, from a constructor."""
        asked, answers, comparisons = lists.asked, lists.answers, lists.comparisons
        fields = {
            "n_questions": asked.indptr.size - 1, "n_respondents": asked.n_respondents, "indptr": asked.indptr,
            "respondents": asked.respondents, "times": lists.times, "answer_indptr": answers.indptr,
            "answers": answers.values, "comparison_indptr": comparisons.indptr, "higher": comparisons.higher,
            "lower": comparisons.lower, "question_labels": lists.labels[0], "respondent_labels": lists.labels[1],
            "questions_are": questions_are, "summary": lists.summary,
        }  # fmt: skip
        for name, value in fields.items():
            object.__setattr__(self, name, value)  # the way to initialise a frozen dataclass

    @property
    def account(self) -> ListSummary:
        """The `summary`, by its name in version 0.1.0."""
        return self.summary

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the matrix as the user sees it: questions by respondents, or the other way round."""
        shape = self.n_questions, self.n_respondents
        return shape if self.questions_are == "rows" else shape[::-1]

    @property
    def n_asked(self) -> int:
        """Number of asked cells."""
        return self.respondents.size

    @property
    def n_answers(self) -> int:
        """Number of answers."""
        return self.answers.size

    @property
    def n_comparisons(self) -> int:
        """Number of comparisons, repeated ones counted each time."""
        return self.higher.size

    @property
    def asked_cells(self) -> AskedCells:
        """The asked cells, to look them up."""
        n_times = np.bincount(self.row_of_cell(), self.times, minlength=self.n_questions)
        return AskedCells(self.indptr, self.respondents, self.n_respondents, n_times)

    def row_of_cell(self) -> Array:
        """Question of each cell."""
        return np.repeat(np.arange(self.n_questions), np.diff(self.indptr))

    def wins(self) -> Array:
        """Number of comparisons that each cell won, those against unknown cells included."""
        return np.bincount(self.higher[self.higher >= 0], minlength=self.n_asked).astype(np.float64)

    def losses(self) -> Array:
        """Number of comparisons that each cell lost, those against unknown cells included."""
        return np.bincount(self.lower[self.lower >= 0], minlength=self.n_asked).astype(np.float64)

    def fingerprint(self) -> str:
        """A short text that differs whenever the cells, answers, comparisons or the roles do."""
        roles = f"{self.n_questions} {self.n_respondents} {self.questions_are}"
        digest = hashlib.blake2b(roles.encode(), digest_size=16)
        digest.update(str((self.n_asked, self.n_answers, self.n_comparisons, self.times is None)).encode())
        lists = (self.indptr, self.respondents, self.times, self.answer_indptr, self.answers)
        for array in (*lists, self.comparison_indptr, self.higher, self.lower):
            digest.update(b"" if array is None else np.ascontiguousarray(array).data)
        return digest.hexdigest()

    def __repr__(self) -> str:
        known = [name for name in ("question_labels", "respondent_labels") if getattr(self, name) is not None]
        labels = "".join(f", {name}" for name in known)
        return (
            f"Uncoupled({self.n_questions} questions x {self.n_respondents} respondents, {self.n_asked} cells asked, "
            f"{self.n_answers} answers, {self.n_comparisons} comparisons, questions_are={self.questions_are!r}{labels})"
        )


def split_matrix(X: Observed, n_comparisons: int, rng: np.random.Generator, questions_are: str) -> CheckedLists:
    """Split a matrix as a survey would: answers apart from their cells, random pairs of cells compared by value."""
    if X.is_first_at_cell is not None or X.weights is not None:
        must = "A matrix to be taken apart must have one value in each cell, and no weights."
        found = "weights" if X.is_first_at_cell is None else "cells that were seen more than once"
        remedy = 'Drop the weights; merge such cells: `observe(X, duplicates="mean")`.'
        raise DataError(must, found=found, remedy=remedy, parameter="X")
    questions, respondents, values, shape = X.row_of_cell(), X.indices, X.values, X.shape
    labels = (X.row_labels, X.column_labels)
    if questions_are == "columns":
        order = X.columns.order
        questions, respondents, values = respondents[order], questions[order], values[order]
        shape, labels = shape[::-1], labels[::-1]
    asked, times = AskedCells.from_lines(questions, respondents, shape)
    answers = Answers.from_lines(questions, values.astype(np.float64), shape[0])

    rows, first, second = _draw_pairs(asked.indptr, n_comparisons, rng)
    is_higher, tied = values[first] >= values[second], values[first] == values[second]
    higher, lower = np.where(is_higher, first, second), np.where(is_higher, second, first)
    rows = np.append(rows, rows[tied])
    higher, lower = np.append(higher, lower[tied]), np.append(lower, higher[tied])
    return summarize(asked, times, answers, Comparisons.from_lines(rows, higher, lower, asked.indptr), labels)


def _draw_pairs(indptr: Array, n_comparisons: int, rng: np.random.Generator) -> tuple[Array, Array, Array]:
    """Rows and both cells of different pairs, min(n_comparisons, l (l - 1) / 2) in each row of l cells."""
    sizes = np.diff(indptr).astype(np.int64)
    n_pairs = sizes * (sizes - 1) // 2
    wanted = np.minimum(n_pairs, n_comparisons)
    few = n_pairs <= _FEW * wanted
    starts = np.append(0, np.cumsum(n_pairs))

    # rows with few pairs: those of the smallest of random numbers, one for each pair
    rows = np.repeat(np.arange(sizes.size), n_pairs * few)
    rank = np.arange(rows.size) - np.append(0, np.cumsum(n_pairs * few))[rows]  # 0, 1, ... in each row
    order = np.argsort((rows << 32) + rng.integers(0, 1 << 32, rows.size), kind="stable")  # row by row
    chosen = (starts[rows] + rank)[order[rank < wanted[rows]]]

    # the others: pairs are drawn, repetitions dropped, and as many drawn again
    drawn, lacking = np.empty(0, dtype=np.int64), wanted * ~few
    while lacking.any():
        rows = np.repeat(np.arange(sizes.size), lacking)
        drawn = sorted_unique(np.append(drawn, starts[rows] + rng.integers(0, n_pairs[rows])))
        lacking = wanted * ~few - np.diff(np.searchsorted(drawn, starts))

    pairs = np.append(chosen, drawn)
    rows = np.searchsorted(starts, pairs, side="right") - 1
    first, second = _pair_members(pairs - starts[rows])
    return rows, indptr[rows] + first, indptr[rows] + second


def _pair_members(pairs: Array) -> tuple[Array, Array]:
    """Pair number second (second - 1) / 2 + first, 0 <= first < second, as (first, second)."""
    second = ((1 + np.sqrt(8.0 * pairs + 1)) / 2).astype(np.int64)
    second -= second * (second - 1) // 2 > pairs  # where the root was rounded
    second += second * (second + 1) // 2 <= pairs
    return pairs - second * (second - 1) // 2, second


def sorted_unique(numbers: Array) -> Array:
    """Distinct numbers, sorted in place; much faster than np.unique where most are in order already."""
    numbers.sort(kind="stable")
    return numbers[np.append(True, numbers[1:] != numbers[:-1])]
