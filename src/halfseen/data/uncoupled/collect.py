"""The three lists in row order, checked against each other.

Nothing depends on the order of the lines: cells go by respondent, answers by value, comparisons by their two cells.
Stable sorts are quick where most is in order already, as lists often are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from halfseen.data.uncoupled.account import Account, Fault, counted
from halfseen.data.uncoupled.lists import Listing
from halfseen.errors import DataError
from halfseen.io.numbers import COMMA
from halfseen.labels import quoted
from halfseen.observed import stable_order

NOT_ASKED = -2  # in the place of a position: an id that `asked` doesn't have


class AskedCells(NamedTuple):
    """The cells in row order, each once: `respondents[indptr[i]:indptr[i + 1]]` were asked question i, each cell
    `times` times (None: once)."""

    indptr: np.ndarray
    respondents: np.ndarray
    times: np.ndarray | None
    shape: tuple[int, int]

    @classmethod
    def of(cls, questions: np.ndarray, respondents: np.ndarray, shape: tuple[int, int]) -> AskedCells:
        keys = np.sort(questions.astype(np.int64) * shape[1] + respondents, kind="stable")
        starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1])) if keys.size else keys
        times = np.diff(np.append(starts, keys.size)).astype(np.float64)
        keys = keys[starts]
        indptr = np.searchsorted(keys, np.arange(shape[0] + 1, dtype=np.int64) * shape[1])
        return cls(indptr, keys % max(shape[1], 1), None if (times == 1).all() else times, shape)

    def row_of_cell(self) -> np.ndarray:
        """The question of each cell."""
        return np.repeat(np.arange(self.shape[0]), np.diff(self.indptr))

    def times_of_question(self) -> np.ndarray:
        """How often each question was asked."""
        if self.times is None:
            return np.diff(self.indptr)
        return np.bincount(self.row_of_cell(), weights=self.times, minlength=self.shape[0]).astype(np.int64)

    def find(self, questions: np.ndarray, *sides: np.ndarray) -> list[np.ndarray]:
        """The cells of the respondents on each side; -1 where these or the question are below 0, or were not asked."""
        lines = np.flatnonzero(questions >= 0)
        lines = lines[stable_order(questions[lines], self.shape[0])[1]]  # row by row: the search stays in the cache
        keys = self.row_of_cell() * self.shape[1] + self.respondents
        starts = questions[lines].astype(np.int64) * self.shape[1]
        found = []
        for respondents in sides:
            wanted = np.where(respondents[lines] < 0, -1, starts + respondents[lines])
            place = np.minimum(np.searchsorted(keys, wanted), keys.size - 1)
            cells = np.full(respondents.size, -1, dtype=np.int64)
            cells[lines] = np.where(keys[place] == wanted, place, -1)
            found.append(cells)
        return found


class Answers(NamedTuple):
    """The answers row by row, ascending in each row."""

    indptr: np.ndarray
    values: np.ndarray

    @classmethod
    def of(cls, questions: np.ndarray, values: np.ndarray, n_questions: int) -> Answers:
        values = values + 0.0  # -0 becomes 0: the two are equal, and must not tell which line came first
        by_value = np.argsort(values)
        starts, by_row = stable_order(questions[by_value], n_questions)
        return cls(starts.astype(np.int64), values[by_value[by_row]])

    def most_equal(self) -> np.ndarray:
        """How often the most frequent answer of each row was given."""
        rows = np.repeat(np.arange(self.indptr.size - 1), np.diff(self.indptr))
        is_new = np.append(True, (self.values[1:] != self.values[:-1]) | (rows[1:] != rows[:-1]))
        starts = np.flatnonzero(is_new)
        most = np.zeros(self.indptr.size - 1, dtype=np.int64)
        np.maximum.at(most, rows[starts], np.diff(np.append(starts, rows.size)))
        return most


class Comparisons(NamedTuple):
    """The comparisons row by row, by cell numbers: higher, then lower; -1 for an unknown side."""

    indptr: np.ndarray
    higher: np.ndarray
    lower: np.ndarray

    @classmethod
    def of(cls, questions: np.ndarray, higher: np.ndarray, lower: np.ndarray, indptr: np.ndarray) -> Comparisons:
        """Sorted by one number each, in which the comparisons that a row of n cells may have take (n + 1)^2 places."""
        sizes = np.diff(indptr) + 1
        starts = np.append(0, np.cumsum(sizes**2))
        local_higher, local_lower = (np.where(side < 0, 0, side - indptr[questions] + 1) for side in (higher, lower))
        keys = np.sort(starts[questions] + local_higher * sizes[questions] + local_lower, kind="stable")
        rows = np.repeat(np.arange(sizes.size), np.bincount(questions, minlength=sizes.size))
        sides = np.divmod(keys - starts[rows], sizes[rows])
        higher, lower = (np.where(side == 0, -1, side - 1 + indptr[rows]) for side in sides)
        return cls(np.searchsorted(rows, np.arange(sizes.size + 1)), higher, lower)


def collect(lists: Mapping[str, Listing], refuse: bool) -> tuple[dict[str, Any], str]:
    """The fields of an `Uncoupled`, and its warning; lines that don't fit are refused, or left out and counted."""
    asked, answers, comparisons = lists.values()
    if not asked.n_lines:
        raise DataError("Somebody must have been asked something. Found no line in asked. Check the list.")
    (rows, known), (columns, people) = asked.ids["question"], asked.ids["respondent"]  # codes and labels
    cells = AskedCells.of(rows, columns, (known.size, people.size))

    # answers
    values = answers.values.astype(np.float64, copy=False)
    infinite = np.isinf(values)
    if infinite.any():
        first = int(np.argmax(infinite))
        raise DataError(
            f"Answers must be finite. Found {values[first]} {answers.place(first)}. Leave it empty if it is unknown."
        )
    questions = answers.ids["question"].among(known, NOT_ASKED)
    faults = _faults({"answers_unasked": questions < 0}, answers.place, refuse)
    missing = np.isnan(values)
    kept = ~missing & (questions >= 0)
    if not kept.any():
        raise DataError(
            f"There must be an answer to a question that was asked. Found none in {counted(values.size, 'line')} of "
            f"answers, {int(missing.sum()):,} of them without a number. Check that both lists name the same questions."
        )
    given = Answers.of(questions[kept], values[kept], known.size)

    # comparisons; a line has one fault at most
    questions = comparisons.ids["question"].among(known, NOT_ASKED)
    higher, lower = (comparisons.ids[role].among(people, NOT_ASKED) for role in ("higher", "lower"))
    winners, losers = cells.find(questions, higher, lower)
    unasked = questions < 0
    strange = (((higher != -1) & (winners < 0)) | ((lower != -1) & (losers < 0))) & ~unasked
    same = ~unasked & ~strange & (winners == losers)
    myself, nobody = same & (winners >= 0), same & (winners < 0)
    kinds = {"unasked": unasked, "strange": strange, "self": myself, "empty": nobody}
    faults += _faults({f"comparisons_{kind}": lines for kind, lines in kinds.items()}, comparisons.place, refuse)
    kept = ~(unasked | strange | same)
    compared = Comparisons.of(questions[kept], winners[kept], losers[kept], cells.indptr)

    columns_read = {what: listing.columns for what, listing in lists.items() if listing.n_lines}
    return settle(
        cells, given, compared, (known, people), faults, refuse,
        answers_missing=int(missing.sum()), decimal_commas=answers.decimal == COMMA, columns=columns_read,
    )  # fmt: skip


def _faults(kinds: Mapping[str, np.ndarray], place: Callable[[int], str], refuse: bool) -> list[Fault]:
    """The lines of each kind that has any; the first of them is refused if `refuse`."""
    found = [Fault(kind, np.flatnonzero(lines), place) for kind, lines in kinds.items() if lines.any()]
    if found and refuse:
        raise min(found, key=lambda fault: int(fault.lines[0])).error()
    return found


def settle(
    asked: AskedCells,
    answers: Answers,
    comparisons: Comparisons,
    labels: tuple[Any, Any],
    faults: Sequence[Fault] = (),
    refuse: bool = False,
    **further: Any,
) -> tuple[dict[str, Any], str]:
    """The fields of an `Uncoupled`, `further` counts in its account, and its warning (empty: none)."""
    warnings = []
    if faults:
        warnings.append(
            f"Answers and comparisons should speak of what was asked. Found {', '.join(map(str, faults))}. "
            'These were left out; faults="refuse" stops at the first.'
        )
    odd, contradictory = _oddities(asked, answers, comparisons)
    if contradictory.size:
        sides = comparisons.higher[contradictory[0]], comparisons.lower[contradictory[0]]
        row = int(np.searchsorted(asked.indptr, sides[0], side="right")) - 1
        question, first, second = (
            str(position) if names is None else quoted(names[position])
            for position, names in ((row, labels[0]), *((asked.respondents[cell], labels[1]) for cell in sides))
        )
        found = (
            f"{counted(contradictory.size, 'comparison')} in ties or cycles of more respondents than the question has "
            f"equal answers, the first on question {question}, of {first} with {second}"
        )
        if refuse:
            raise DataError(
                f"Comparisons must hold for some order of the answers. Found {found}. "
                'Drop some of them, or have them kept and told: faults="report".'
            )
        warnings.append(
            f"Comparisons should hold for some order of the answers. Found {found}. These were "
            'kept; faults="refuse" stops at them.'
        )
    counts: dict[str, Any] = {**odd, **{fault.kind: fault.lines.size for fault in faults}, **further}
    n_given, n_asked = np.diff(answers.indptr), asked.times_of_question()
    is_compared = np.zeros(asked.shape[1], dtype=bool)
    for side in (comparisons.higher, comparisons.lower):
        is_compared[asked.respondents[side[side >= 0]]] = True
    account = Account(
        questions=asked.shape[0],
        respondents=asked.shape[1],
        asked=asked.respondents.size,
        answers=answers.values.size,
        comparisons=comparisons.higher.size,
        cells_repeated=0 if asked.times is None else int((asked.times > 1).sum()),
        fewer_answers=int(((n_given < n_asked) & (n_given > 0)).sum()),
        more_answers=int((n_given > n_asked).sum()),
        no_answers=int(((n_given == 0) & (n_asked > 0)).sum()),
        no_comparisons=int((np.diff(comparisons.indptr) == 0).sum()),
        never_compared=int((~is_compared).sum()),
        **counts,
    )
    fields = {
        "n_questions": asked.shape[0], "n_respondents": asked.shape[1],
        "indptr": asked.indptr, "respondents": asked.respondents, "times": asked.times,
        "answer_indptr": answers.indptr, "answers": answers.values,
        "comparison_indptr": comparisons.indptr, "higher": comparisons.higher, "lower": comparisons.lower,
        "question_labels": labels[0], "respondent_labels": labels[1], "account": account,
    }  # fmt: skip
    return fields, " ".join(warnings)


def _oddities(asked: AskedCells, answers: Answers, comparisons: Comparisons) -> tuple[dict[str, int], np.ndarray]:
    """Counts of odd comparisons by their names in `Account`, and which comparisons are contradictory.

    a >= b >= ... >= a holds only if all of them are equal: those of a strong component of the graph of comparisons
    are. That is as the paper writes ties where pairs compared both ways hold it together, else a cycle; and it can't be
    where the component has more cells than the row has equal answers, not given ones counted in.
    """
    higher, lower = comparisons.higher, comparisons.lower
    n_cells = asked.respondents.size

    def components(edges: np.ndarray, connection: str) -> np.ndarray:
        """The number of the component of each cell."""
        if not edges.size:
            return np.arange(n_cells)
        ones = np.ones(edges.size, dtype=np.int8)
        graph = sparse.csr_array((ones, (higher[edges], lower[edges])), shape=(n_cells, n_cells))
        return connected_components(graph, directed=True, connection=connection)[1]

    half_known = (higher < 0) != (lower < 0)
    repeated = np.zeros(higher.size, dtype=bool)
    repeated[1:] = (higher[1:] == higher[:-1]) & (lower[1:] == lower[:-1]) & ~half_known[1:]
    known = np.flatnonzero(~half_known & ~repeated)
    keys, back = (a[known] * n_cells + b[known] for a, b in ((higher, lower), (lower, higher)))  # keys ascend
    two_way = known[keys[np.minimum(np.searchsorted(keys, back), keys.size - 1)] == back]
    ties, equal = components(two_way, "weak"), components(known, "strong")
    inside = ~half_known & (equal[higher] == equal[lower])

    sizes = np.bincount(equal)
    row_of = np.zeros(sizes.size, dtype=np.int64)
    row_of[equal] = asked.row_of_cell()
    not_given = np.maximum(asked.times_of_question() - np.diff(answers.indptr), 0)
    is_impossible = (sizes > 1) & (sizes > (answers.most_equal() + not_given)[row_of])
    contradictory = np.flatnonzero(inside & is_impossible[equal[higher]])
    counts = {
        "half_known": int(half_known.sum()),
        "repeated": int(repeated.sum()),
        "two_way": two_way.size // 2,
        "cyclic": int((inside & (ties[higher] != ties[lower])).sum()),
        "contradictory": contradictory.size,
    }
    return counts, contradictory
