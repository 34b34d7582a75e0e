"""Answers apart from those who gave them: who was asked what, the answers without the names, who is above whom."""

from __future__ import annotations

import hashlib
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from halfseen.checks import check_parameters, one_of, whole
from halfseen.data.uncoupled.account import Account
from halfseen.data.uncoupled.collect import collect
from halfseen.data.uncoupled.lists import read_lists
from halfseen.data.uncoupled.uncoupling import taken_apart
from halfseen.errors import DataWarning, ParameterError
from halfseen.io import observe

RULES = {"questions_are": one_of("rows", "columns"), "faults": one_of("report", "refuse")}


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Uncoupled:
    """A matrix whose values and indices were collected apart, as in a survey that keeps names and answers separate.

    Inside, questions are rows and respondents are columns. A cell is a question that a respondent was asked; cells
    are numbered row by row. `respondents[indptr[i]:indptr[i + 1]]` were asked question i, ascending, each once;
    `times` counts how often (None: each once). `answers[answer_indptr[i]:answer_indptr[i + 1]]` are the answers to
    question i, ascending: nobody can tell in which order they were given. Comparison m means that the answer of cell
    `higher[m]` is at least that of cell `lower[m]`, -1 for an unknown side; they go by row, by higher, by lower, with
    `comparison_indptr` like `indptr`. A tie is two comparisons, one each way. Questions and respondents are numbered
    in the order of their first appearance in `asked`; no other order of lines matters. `account` counts what was left
    out and what is odd.

    Parameters
    ----------
    asked : who was asked what: (question, respondent).
    answers : the answers without the names: (question, value). Missing ones (NaN, None, "N/A", ...) are dropped.
    comparisons : who is above whom: (question, higher, lower), None, NaN or an empty text for an unknown side; or None.
        Each of the three is a pandas, polars or Arrow frame, the path of a CSV or Parquet file, a list of tuples, or an
        array of two or three columns.
    question, respondent, value, higher, lower : the headers of these columns, in all lists that have them; where there
        are none, their positions from 0. By default the one header that `asked` and `answers` share heads the
        questions, the others are known by the usual spellings, and what is left goes by the order above.
    questions_are : "rows" or "columns" of the matrix as the user sees it (`shape`).
    faults : what to do with answers to questions nobody was asked, and with comparisons on such questions, of people
        who were not asked that question, of somebody with themselves, or without any known side: "report" leaves them
        out and counts them in one `DataWarning`, "refuse" raises a `DataError` at the first. Comparisons that
        demand more equal answers than there are, which no order of the answers can satisfy, are kept and warned of,
        or refused.

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
    """How many questions there are."""
    n_respondents: int
    """How many respondents there are."""
    indptr: np.ndarray
    """Where the asked cells of each question begin."""
    respondents: np.ndarray
    """The respondent of each asked cell."""
    times: np.ndarray | None
    """How often each cell was asked; None: each once."""
    answer_indptr: np.ndarray
    """Where the answers to each question begin."""
    answers: np.ndarray
    """The answers, ascending inside each question."""
    comparison_indptr: np.ndarray
    """Where the comparisons at each question begin."""
    higher: np.ndarray
    """The cell that is above in each comparison; -1 if it is not known."""
    lower: np.ndarray
    """The cell that is below; -1 if it is not known."""
    question_labels: np.ndarray | None
    """The names of the questions, if they have any."""
    respondent_labels: np.ndarray | None
    """The names of the respondents, if they have any."""
    questions_are: str
    """"rows" or "columns" of the matrix."""
    account: Account
    """What was read, what was left out, what is odd."""

    def __init__(
        self,
        asked: Any,
        answers: Any,
        comparisons: Any = None,
        *,
        question: Any = None,
        respondent: Any = None,
        value: Any = None,
        higher: Any = None,
        lower: Any = None,
        questions_are: str = "rows",
        faults: str = "report",
    ) -> None:
        check_parameters({"questions_are": questions_are, "faults": faults}, RULES)
        given = {"question": question, "respondent": respondent, "value": value, "higher": higher, "lower": lower}
        fields, warning = collect(read_lists(asked, answers, comparisons, given), refuse=faults == "refuse")
        self.__dict__.update(fields, questions_are=questions_are)  # a frozen object can't be set otherwise
        if warning:
            warnings.warn(warning, DataWarning, stacklevel=2)

    @classmethod
    def from_coupled(
        cls, X: Any, n_comparisons: int = 12, *, random_state: Any = None, questions_are: str = "rows"
    ) -> Uncoupled:
        """Take a matrix apart, to simulate a collection: X may be anything that `observe` reads.

        In each row (or column, as `questions_are` says) of l seen cells, min(n_comparisons, l (l - 1) / 2) different
        pairs of cells are compared; a pair of equal values gives two comparisons, one each way.
        The same `random_state`, a whole number, draws the same pairs.
        """
        checked = {"n_comparisons": n_comparisons, "questions_are": questions_are}
        check_parameters(checked, {"n_comparisons": whole(0), "questions_are": RULES["questions_are"]})
        try:
            rng = np.random.default_rng(random_state)
        except (TypeError, ValueError):
            raise ParameterError(
                "random_state must be None, a whole number of at least 0, several of them, or a random generator. "
                f"Found {random_state!r}. Use 0 for draws that can be repeated."
            ) from None
        self = cls.__new__(cls)
        fields = taken_apart(observe(X, unseen=None), n_comparisons, rng, questions_are)
        self.__dict__.update(fields, questions_are=questions_are)
        return self

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the matrix as the user sees it: questions by respondents, or the other way round."""
        shape = self.n_questions, self.n_respondents
        return shape if self.questions_are == "rows" else shape[::-1]

    @property
    def n_asked(self) -> int:
        """How many cells were asked."""
        return self.respondents.size

    @property
    def n_answers(self) -> int:
        """How many answers there are."""
        return self.answers.size

    @property
    def n_comparisons(self) -> int:
        """How many comparisons there are, repeated ones counted each time."""
        return self.higher.size

    def row_of_cell(self) -> np.ndarray:
        """The question of each cell."""
        return np.repeat(np.arange(self.n_questions), np.diff(self.indptr))

    def wins(self) -> np.ndarray:
        """How many comparisons each cell won, those against unknown ones included."""
        return np.bincount(self.higher[self.higher >= 0], minlength=self.n_asked).astype(np.float64)

    def losses(self) -> np.ndarray:
        """How many comparisons each cell lost, those against unknown ones included."""
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
