"""The three lists in row order, checked against each other, and a summary of what they hold.

Nothing depends on the order of the lines: cells go by respondent, answers by value, comparisons by their two cells.
Stable sorts are fast where most is in order already, as lists often are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from halfseen.arrays import Array
from halfseen.errors import DataError, DataWarning
from halfseen.io.numbers import COMMA
from halfseen.labels import quoted
from halfseen.observed import stable_order
from halfseen.uncoupled.lists import ListData

NOT_ASKED = -2  # in the place of a position: an id that `asked` doesn't have

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


def counted(count: int, noun: str) -> str:
    """A number and its noun: "1 answer", "4,950 answers"."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _left_out(kind: str, count: int, where: str = "") -> str:
    noun, one, several, _ = LEFT_OUT[kind]
    return f"{counted(count, noun)} {one if count == 1 else several}{where and f' ({where})'}"


@dataclass(frozen=True)
class ListSummary:
    """Counts of what the lists of an `Uncoupled` hold; `str` gives them in sentences, without those that are 0.

    Left out: `answers_missing` (without a number) and `answers_unasked` (to questions that nobody was asked);
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
            remarks = [f"{count:,} {text}" for text, count in counts.items() if count]
            return f" ({', '.join(remarks)})" if remarks else ""

        pairs = "pair both ways" if self.two_way == 1 else "pairs both ways"
        of_comparisons = {pairs: self.two_way, "half-known": self.half_known, "repeated": self.repeated}
        totals = (
            counted(self.questions, "question"),
            counted(self.respondents, "respondent"),
            counted(self.asked, "asked cell") + aside({"asked more than once": self.cells_repeated}),
            counted(self.answers, "answer") + aside({"missing dropped": self.answers_missing}),
            counted(self.comparisons, "comparison") + aside(of_comparisons),
        )
        sentences = [f"{', '.join(totals)}."]
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


@dataclass(frozen=True)
class AskedCells:
    """Cells that were asked, numbered row by row: `respondents[indptr[i]:indptr[i + 1]]` were asked question i, in
    ascending order, each once; `n_times[i]` is how often it was asked, which is more if somebody was asked twice."""

    indptr: Array
    respondents: Array
    n_respondents: int
    n_times: Array

    @classmethod
    def from_lines(cls, questions: Array, respondents: Array, shape: tuple[int, int]) -> tuple[Self, Array | None]:
        """The cells of lines in any order, and how often each was asked (None: once)."""
        keys = np.sort(questions.astype(np.int64) * shape[1] + respondents, kind="stable")
        starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1])) if keys.size else keys
        counts = np.diff(np.append(starts, keys.size)).astype(np.float64)
        times = None if (counts == 1).all() else counts
        keys = keys[starts]
        rows, columns = np.divmod(keys, max(shape[1], 1))
        indptr = np.searchsorted(keys, np.arange(shape[0] + 1, dtype=np.int64) * shape[1])
        return cls(indptr, columns, shape[1], np.bincount(rows, times, minlength=shape[0])), times

    def rows(self) -> Array:
        """Question of each cell."""
        return np.repeat(np.arange(self.indptr.size - 1), np.diff(self.indptr))

    @cached_property
    def _keys(self) -> Array:
        return self.rows() * self.n_respondents + self.respondents

    def find(self, questions: Array, respondents: Array) -> Array:
        """Number of the cell at each pair of positions, -1 where it was not asked."""
        wanted = questions * np.int64(self.n_respondents) + respondents
        places = np.minimum(np.searchsorted(self._keys, wanted), self._keys.size - 1)
        return np.where(self._keys[places] == wanted, places, -1)


class Answers(NamedTuple):
    """Answers row by row, ascending in each row."""

    indptr: Array
    values: Array

    @classmethod
    def from_lines(cls, questions: Array, values: Array, n_questions: int) -> Answers:
        values = values + 0.0  # -0 becomes 0: the two are equal, and must not tell which line came first
        by_value = np.argsort(values)
        starts, by_row = stable_order(questions[by_value], n_questions)
        return cls(starts.astype(np.int64), values[by_value[by_row]])

    def modes(self) -> tuple[Array, Array]:
        """Most frequent answer of each row, the smallest of equally frequent ones (NaN: none), and how often it is."""
        is_start = np.append(True, self.values[1:] != self.values[:-1])
        is_start[self.indptr[:-1][np.diff(self.indptr) > 0]] = True
        runs = np.flatnonzero(is_start)
        lengths = np.diff(np.append(runs, self.values.size))
        row_of_run = np.searchsorted(self.indptr, runs, side="right") - 1
        best = np.lexsort((-runs, lengths, row_of_run))  # the last of each row is its longest, earliest run
        best = best[np.append(np.flatnonzero(np.diff(row_of_run[best])), best.size - 1)]
        answers, counts = np.full(self.indptr.size - 1, np.nan), np.zeros(self.indptr.size - 1, np.int64)
        answers[row_of_run[best]], counts[row_of_run[best]] = self.values[runs[best]], lengths[best]
        return answers, counts


class Comparisons(NamedTuple):
    """Comparisons row by row, by cell numbers: higher, then lower; -1 for an unknown side."""

    indptr: Array
    higher: Array
    lower: Array

    @classmethod
    def from_lines(cls, questions: Array, higher: Array, lower: Array, indptr: Array) -> Comparisons:
        """Sort by one number each: the comparisons that a row of n cells may have take (n + 1)^2 numbers."""
        sizes = np.diff(indptr) + 1
        starts = np.append(0, np.cumsum(sizes**2))
        local_higher, local_lower = (np.where(side < 0, 0, side - indptr[questions] + 1) for side in (higher, lower))
        keys = np.sort(starts[questions] + local_higher * sizes[questions] + local_lower, kind="stable")
        rows = np.repeat(np.arange(sizes.size), np.bincount(questions, minlength=sizes.size))
        sides = np.divmod(keys - starts[rows], sizes[rows])
        higher, lower = (np.where(side == 0, -1, side - 1 + indptr[rows]) for side in sides)
        return cls(np.searchsorted(rows, np.arange(sizes.size + 1)), higher, lower)


class CheckedLists(NamedTuple):
    """The lists in row order, as an `Uncoupled` has them; warnings to be raised."""

    asked: AskedCells
    times: Array | None
    answers: Answers
    comparisons: Comparisons
    labels: tuple[Array | None, Array | None]
    summary: ListSummary
    warnings: list[DataWarning]


class Fault(NamedTuple):
    """Lines of one kind of `LEFT_OUT`: how many, and where the first of them is."""

    kind: str
    n_lines: int
    first: int
    where: str


def check_lists(lists: Mapping[str, ListData], refuse: bool) -> CheckedLists:
    """Put the lists in row order; lines that don't fit are refused, or left out and counted."""
    asked, answers, comparisons = lists.values()
    if not asked.n_lines:
        must = "Somebody must have been asked something."
        raise DataError(must, found="no line in asked", remedy="Check the list.", parameter="asked")
    (rows, questions), (columns, people) = asked.ids["question"], asked.ids["respondent"]  # codes and labels
    cells, times = AskedCells.from_lines(rows, columns, (questions.size, people.size))

    def faults_of(masks: Mapping[str, Array], of: ListData) -> list[Fault]:
        lines = {kind: np.flatnonzero(mask) for kind, mask in masks.items()}
        faults = [Fault(kind, at.size, int(at[0]), of.place(int(at[0]))) for kind, at in lines.items() if at.size]
        if faults and refuse:
            fault = min(faults, key=lambda one: one.first)
            noun, one, _, remedy = LEFT_OUT[fault.kind]
            must = "Answers and comparisons must refer to what was asked, and compare two people."
            found = f"{'an' if noun == 'answer' else 'a'} {noun} {one}"
            remedy += ', or have it left out and reported: `faults="report"`.'
            raise DataError(must, found=found, where=fault.where, remedy=remedy, parameter="faults")
        return faults

    # answers
    values = answers.values.astype(np.float64, copy=False)
    infinite = np.isinf(values)
    if infinite.any():
        first = int(np.argmax(infinite))
        found, where, remedy = str(values[first]), answers.place(first), "Leave it empty if it is unknown."
        raise DataError("Answers must be finite.", found=found, where=where, remedy=remedy, parameter="answers")
    row = answers.ids["question"].positions_among(questions, NOT_ASKED)
    faults = faults_of({"answers_unasked": row < 0}, answers)
    missing = np.isnan(values)
    kept = ~missing & (row >= 0)
    if not kept.any():
        found = f"none in {counted(values.size, 'line')} of answers, {int(missing.sum()):,} of them without a number"
        must = "There must be an answer to a question that was asked."
        remedy = "Check that both lists name the same questions."
        raise DataError(must, found=found, remedy=remedy, parameter="answers")
    given = Answers.from_lines(row[kept], values[kept], questions.size)

    # comparisons; a line has one fault at most
    row = comparisons.ids["question"].positions_among(questions, NOT_ASKED)
    sides = [comparisons.ids[role].positions_among(people, NOT_ASKED) for role in ("higher", "lower")]
    lines_asked = np.flatnonzero(row >= 0)
    lines_asked = lines_asked[stable_order(row[lines_asked], questions.size)[1]]  # row by row: stays in the cache
    higher, lower = (np.full(side.size, -1, dtype=np.int64) for side in sides)
    for of_side, side in zip((higher, lower), (side[lines_asked] for side in sides), strict=True):
        of_side[lines_asked] = np.where(side < 0, -1, cells.find(row[lines_asked], side))
    unasked = row < 0
    strange = (((sides[0] != -1) & (higher < 0)) | ((sides[1] != -1) & (lower < 0))) & ~unasked
    same = ~unasked & ~strange & (higher == lower)
    kinds = {"unasked": unasked, "strange": strange, "self": same & (higher >= 0), "empty": same & (higher < 0)}
    faults += faults_of({f"comparisons_{kind}": mask for kind, mask in kinds.items()}, comparisons)
    kept = ~(unasked | strange | same)
    compared = Comparisons.from_lines(row[kept], higher[kept], lower[kept], cells.indptr)

    columns_read = {name: one.columns for name, one in lists.items() if one.n_lines}
    return summarize(
        cells, times, given, compared, (questions, people), faults, refuse,
        answers_missing=int(missing.sum()), decimal_commas=answers.decimal == COMMA, columns=columns_read,
    )  # fmt: skip


def summarize(
    asked: AskedCells,
    times: Array | None,
    answers: Answers,
    comparisons: Comparisons,
    labels: tuple[Any, Any],
    faults: Sequence[Fault] = (),
    refuse: bool = False,
    **counts: Any,
) -> CheckedLists:
    """Look for contradictions, and count what the lists hold; `counts` are further ones."""
    warnings = []
    if faults:
        found = [_left_out(one.kind, one.n_lines, f"{'the first ' * (one.n_lines > 1)}{one.where}") for one in faults]
        must = "Answers and comparisons should refer to what was asked."
        remedy = 'These were left out; `faults="refuse"` stops at the first.'
        warnings.append(DataWarning(must, found=", ".join(found), remedy=remedy, parameter="faults"))
    odd, contradictory = _inconsistencies(asked, answers, comparisons)
    if contradictory.size:
        cells = comparisons.higher[contradictory[0]], comparisons.lower[contradictory[0]]
        row = int(np.searchsorted(asked.indptr, cells[0], side="right")) - 1
        question, first, second = (
            str(position) if names is None else quoted(names[position])
            for position, names in ((row, labels[0]), *((asked.respondents[cell], labels[1]) for cell in cells))
        )
        excess = "in ties or cycles of more respondents than the question has equal answers"
        fields = {
            "found": f"{counted(contradictory.size, 'comparison')} {excess}",
            "where": f"(the first on question {question}, of {first} with {second})",
            "parameter": "faults",
        }
        if refuse:
            remedy = 'Drop some of them, or have them kept and reported: `faults="report"`.'
            raise DataError("Comparisons must hold for some order of the answers.", remedy=remedy, **fields)
        must = "Comparisons should hold for some order of the answers."
        remedy = 'These were kept; `faults="refuse"` stops at them.'
        warnings.append(DataWarning(must, remedy=remedy, **fields))
    n_given, n_asked = np.diff(answers.indptr), asked.n_times.astype(np.int64)
    is_compared = np.zeros(asked.n_respondents, dtype=bool)
    for side in (comparisons.higher, comparisons.lower):
        is_compared[asked.respondents[side[side >= 0]]] = True
    counts |= {fault.kind: fault.n_lines for fault in faults} | odd
    summary = ListSummary(
        questions=n_asked.size,
        respondents=asked.n_respondents,
        asked=asked.respondents.size,
        answers=answers.values.size,
        comparisons=comparisons.higher.size,
        cells_repeated=0 if times is None else int((times > 1).sum()),
        fewer_answers=int(((n_given < n_asked) & (n_given > 0)).sum()),
        more_answers=int((n_given > n_asked).sum()),
        no_answers=int(((n_given == 0) & (n_asked > 0)).sum()),
        no_comparisons=int((np.diff(comparisons.indptr) == 0).sum()),
        never_compared=int((~is_compared).sum()),
        **counts,
    )
    return CheckedLists(asked, times, answers, comparisons, labels, summary, warnings)


def _inconsistencies(asked: AskedCells, answers: Answers, comparisons: Comparisons) -> tuple[dict[str, int], Array]:
    """Counts of odd comparisons by their names in `ListSummary`, and which comparisons are contradictory.

    a >= b >= ... >= a holds only if all of them are equal: those of a strong component of the graph of comparisons
    are. These are the paper's ties where pairs compared both ways connect the component, else a cycle; and neither is
    possible where the component has more cells than the row has equal answers, lost ones counted in.
    """
    higher, lower = comparisons.higher, comparisons.lower
    n_cells = asked.respondents.size

    def components(edges: Array, connection: str) -> Array:
        """Number of the component of each cell."""
        if not edges.size:
            return np.arange(n_cells)
        ones = np.ones(edges.size, dtype=np.int8)
        graph = sparse.csr_array((ones, (higher[edges], lower[edges])), shape=(n_cells, n_cells))
        labels: Array = connected_components(graph, directed=True, connection=connection)[1]
        return labels

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
    row_of[equal] = asked.rows()
    lost = np.maximum(asked.n_times.astype(np.int64) - np.diff(answers.indptr), 0)
    is_impossible = (sizes > 1) & (sizes > (answers.modes()[1] + lost)[row_of])
    contradictory = np.flatnonzero(inside & is_impossible[equal[higher]])
    counts = {
        "half_known": int(half_known.sum()),
        "repeated": int(repeated.sum()),
        "two_way": two_way.size // 2,
        "cyclic": int((inside & (ties[higher] != ties[lower])).sum()),
        "contradictory": contradictory.size,
    }
    return counts, contradictory
