"""What is known of cells after a fit: means, intervals, the most likely answer; and these to model files and back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr, stdtrit

from halfseen.arrays import Array
from halfseen.sampling.coupling import CouplingDraws
from halfseen.uncoupled.list_checks import Answers, AskedCells

#: Entries (cells times draws) that are processed at a time.
CHUNK_ENTRIES = 1 << 22
#: How often the interval that holds a quantile is halved.
_BISECTIONS = 44


class Likeliest(NamedTuple):
    """Of every asked cell: the most likely answer, how likely it is, and the mean of the answer. Where the answer was
    lost in all draws, it is NaN."""

    answer: Array
    probability: Array
    mean: Array


class SampledCoupling:
    """The posterior, by draws. Questions are rows; asked cells are distinguished from the others."""

    def __init__(self, draws: CouplingDraws, asked: AskedCells, answers: Array, answer_indptr: Array) -> None:
        self.draws, self.asked, self.answers, self.answer_indptr = draws, asked, answers, answer_indptr

    def means_at(self, rows: Array, columns: Array, cells: Array) -> Array:
        """Posterior mean at pairs of positions; `cells` are their numbers where they were asked, else -1."""
        draws, out = self.draws, np.empty(rows.size)
        for part in self._chunks(rows.size):
            dots = np.einsum("pdk,pdk->p", draws.A[rows[part]], draws.B[columns[part]], dtype=np.float64)
            out[part] = draws.centre[rows[part]] + draws.scale[rows[part]] * dots / len(draws.coupling)
            asked = np.flatnonzero(cells[part] >= 0)
            out[part][asked] = self.values_at(cells[part][asked]).mean(axis=0)
        return out

    def means(self) -> Array:
        """The model's mean of every cell, asked or not."""
        A, B = self.draws.A, self.draws.B
        total = np.zeros((len(A), len(B)))
        for draw in range(A.shape[1]):
            total += A[:, draw].astype(np.float64) @ B[:, draw].T.astype(np.float64)
        return np.asarray(self.draws.centre[:, None] + self.draws.scale[:, None] * total / A.shape[1])

    def quantiles_at(self, rows: Array, columns: Array, cells: Array, shares: tuple[float, ...]) -> list[Array]:
        """Quantiles of the value at each pair: of the answers drawn where it was asked, else of a mixture of normals,
        x with  mean over draws of Phi((x - mean) / deviation) = share, by bisection."""
        draws, out = self.draws, [np.empty(rows.size) for _ in shares]
        for part in self._chunks(rows.size):
            asked, others = np.flatnonzero(cells[part] >= 0), np.flatnonzero(cells[part] < 0)
            values = np.sort(self.values_at(cells[part][asked]), axis=0)
            i, j = rows[part][others], columns[part][others]
            means = np.einsum("pdk,pdk->pd", draws.A[i], draws.B[j], dtype=np.float64)
            deviations = np.sqrt(draws.row_noise[i].astype(np.float64) * draws.column_noise[j])
            for quantiles, share in zip(out, shares, strict=True):
                low, high = (means - 10 * deviations).min(axis=1), (means + 10 * deviations).max(axis=1)
                for _ in range(_BISECTIONS):
                    middle = (low + high) / 2
                    below = ndtr((middle[:, None] - means) / deviations).mean(axis=1) < share
                    low, high = np.where(below, middle, low), np.where(below, high, middle)
                quantiles[part][others] = draws.centre[i] + draws.scale[i] * (low + high) / 2
                quantiles[part][asked] = values[_outward(share, len(values))]
        return out

    def likeliest(self) -> Likeliest:
        """The most likely answer of every asked cell.

        Its probability is that of the answer which one half of the draws has most often, among the other half: how
        often an informed guess is right. (The share of the most frequent of few draws would be too high.)
        """
        n_cells = self.draws.coupling.shape[1]
        answer, probability, mean = (np.empty(n_cells) for _ in range(3))
        for part in self._chunks(n_cells):
            cells = np.arange(part.start, min(part.stop, n_cells))
            values, n_answers = self.values_at(cells), self._row_and_answers(cells)[2]
            answers = np.where(self.draws.coupling[:, cells] < n_answers, values, np.nan)
            half = max(1, len(answers) // 2)
            one, other = answers[:half], answers[half:] if len(answers) > 1 else answers
            answer[part] = _modes(answers)
            probability[part] = ((other == _modes(one)).mean(axis=0) + (one == _modes(other)).mean(axis=0)) / 2
            mean[part] = values.mean(axis=0)
        return Likeliest(answer, probability, mean)

    def answer_probabilities(self, question: int) -> tuple[Array, Array]:
        """Distinct answers to a question, and their probabilities at its asked cells, of shape (cells, answers).

        A last column is the probability that the answer was lost, if it is not 0 everywhere.
        """
        given = self.answers[slice(*self.answer_indptr[question : question + 2])]
        answers, which = np.unique(given, return_inverse=True)
        tokens = self.draws.coupling[:, slice(*self.asked.indptr[question : question + 2])]
        drawn = np.append(which, answers.size)[np.minimum(tokens, given.size)]
        shares = np.stack([(drawn == number).mean(axis=0) for number in range(answers.size + 1)], axis=1)
        return answers, shares if shares[:, -1].any() else shares[:, :-1]

    def _row_and_answers(self, cells: Array) -> tuple[Array, Array, Array]:
        """Row of each cell, start of the row's answers, and their number."""
        row = np.searchsorted(self.asked.indptr, cells, side="right") - 1
        return row, self.answer_indptr[row], self.answer_indptr[row + 1] - self.answer_indptr[row]

    def values_at(self, cells: Array) -> Array:
        """Values drawn at asked cells, of shape (draws, cells)."""
        draws, (row, first, n_answers) = self.draws, self._row_and_answers(cells)
        tokens = draws.coupling[:, cells].astype(np.int64)
        values = self.answers[np.minimum(first + tokens, self.answers.size - 1)]
        lost = np.nonzero(tokens >= n_answers)
        if lost[0].size:
            place = draws.unknown_indptr[row[lost[1]]] + tokens[lost] - n_answers[lost[1]]
            values[lost] = draws.unknown[lost[0], place]
        return values

    def _chunks(self, size: int) -> Iterator[slice]:
        step = max(1, CHUNK_ENTRIES // len(self.draws.coupling))
        return (slice(start, start + step) for start in range(0, size, step))


class AnyCoupling:
    """What is known without comparisons: every answer of a question may be anybody's.

    Questions without an answer have the mean of all answers.
    """

    def __init__(self, asked: AskedCells, answers: Array, answer_indptr: Array) -> None:
        self.asked, self.answers, self.answer_indptr = asked, answers, answer_indptr
        self._n_answers = np.diff(answer_indptr)
        self._row = np.repeat(np.arange(self._n_answers.size), self._n_answers)
        sums = np.bincount(self._row, answers, minlength=self._n_answers.size)
        self.row_means = np.where(self._n_answers > 0, sums / np.maximum(self._n_answers, 1), answers.mean())

    def means_at(self, rows: Array, columns: Array, cells: Array) -> Array:
        """Mean of the question's answers."""
        return np.asarray(self.row_means[rows])

    def means(self) -> Array:
        """The same for every cell."""
        return np.repeat(self.row_means[:, None], self.asked.n_respondents, axis=1)

    def quantiles_at(self, rows: Array, columns: Array, cells: Array, shares: tuple[float, ...]) -> list[Array]:
        """Quantiles of the question's answers where it was asked; elsewhere of one more answer like them,

        mean + t s sqrt(1 + 1 / n), Student's t with n - 1 degrees of freedom; with fewer than two answers, s and the
        degrees of freedom are those of all answers about their mean."""
        counts, answers = self._n_answers, self.answers
        squares = np.bincount(self._row, (answers - self.row_means[self._row]) ** 2, minlength=counts.size)
        freedom = np.where(counts > 1, counts - 1, max(answers.size - 1, 1))
        variance = np.where(counts > 1, squares, np.sum((answers - answers.mean()) ** 2)) / freedom
        has_answers = (cells >= 0) & (counts[rows] > 0)
        out = []
        for share in shares:
            places = np.minimum(self.answer_indptr[rows] + _outward(share, counts[rows]), answers.size - 1)
            one_more = self.row_means + stdtrit(freedom, share) * np.sqrt(variance * (1 + 1 / np.maximum(counts, 1)))
            out.append(np.where(has_answers, answers[places], one_more[rows]))
        return out

    def likeliest(self) -> Likeliest:
        """Every question's most frequent answer, and its share among those asked or answering, whichever are more."""
        answer, times = Answers(self.answer_indptr, self.answers).modes()
        share = times / np.maximum(np.maximum(self._n_answers, self.asked.n_times), 1)
        n_cells = np.diff(self.asked.indptr)
        return Likeliest(*(np.repeat(per_row, n_cells) for per_row in (answer, share, self.row_means)))

    def answer_probabilities(self, question: int) -> tuple[Array, Array]:
        """As of a `SampledCoupling`."""
        given = self.answers[slice(*self.answer_indptr[question : question + 2])]
        answers, counts = np.unique(given, return_counts=True)
        n_cells = int(np.diff(self.asked.indptr)[question])
        lost = max(n_cells - given.size, 0)
        shares = np.repeat([np.append(counts, lost) / max(n_cells, given.size)], n_cells, axis=0)
        return answers, shares if shares[:, -1].any() else shares[:, :-1]


Posterior = SampledCoupling | AnyCoupling


def _outward(share: float, count: Any) -> Any:
    """Position, among so many ascending values, of the quantile at `share`, rounded to widen an interval."""
    place = share * np.maximum(count - 1, 0)
    rounded = np.floor(place) if share < 0.5 else np.ceil(place)
    return rounded.astype(np.int64)


def _modes(values: Array) -> Array:
    """Most frequent number of each column; of equally frequent ones the smallest. NaN if there is none."""
    ordered = np.sort(values, axis=0)  # NaN last, and each its own run
    starts = np.ones(ordered.shape, bool)
    starts[1:] = ordered[1:] != ordered[:-1]
    place = np.arange(len(values))[:, None]
    start = np.maximum.accumulate(np.where(starts, place, 0), axis=0)
    last = np.argmax(place - start, axis=0)  # where the longest run has its last entry
    return np.asarray(np.take_along_axis(ordered, last[None], axis=0)[0])


#: What a posterior may be; a model file holds the position in this list.
KINDS = [type(None), AnyCoupling, SampledCoupling]


def to_state(asked: AskedCells, posterior: Posterior | None) -> dict[str, Array]:
    """The asked cells and the posterior as arrays, for a model file."""
    arrays = {"indptr": asked.indptr, "respondents": asked.respondents, "askings": asked.n_times}
    arrays["posterior"] = np.array(KINDS.index(type(posterior)))
    if posterior is not None:
        arrays |= {"answers": posterior.answers, "answer_indptr": posterior.answer_indptr}
    if isinstance(posterior, SampledCoupling):
        arrays |= {f"draws_{name}": array for name, array in posterior.draws._asdict().items()}
    return arrays


def from_state(arrays: Mapping[str, Array], n: int, m: int) -> tuple[AskedCells, Posterior | None]:
    """The asked cells and the posterior of n questions and m respondents from arrays that may be of any origin.

    Raises a ValueError, or a KeyError, unless they are as `to_state` made them.
    """
    respondents = check_array(arrays, "respondents", "i", (None,))
    indptr = _check_indptr(arrays, "indptr", n, respondents.size)
    _check(bool(np.all((respondents >= 0) & (respondents < m))), f"respondents must be numbers from 0 to {m - 1}")
    n_times = check_array(arrays, "askings", "if", (n,))
    _check(bool(np.all(n_times >= np.diff(indptr))), "askings must be at least the number of asked cells")
    asked = AskedCells(indptr, respondents, m, n_times)
    _check(_ascends(asked.rows() * np.int64(m) + respondents, strictly=True), "respondents must ascend")
    kind = int(check_array(arrays, "posterior", "i", ()))
    _check(0 <= kind < len(KINDS), f"posterior must be a number from 0 to {len(KINDS) - 1}")
    if KINDS[kind] is type(None):
        return asked, None

    answers = check_array(arrays, "answers", "f", (None,))
    _check(answers.size > 0, "answers must not be empty")
    answer_indptr = _check_indptr(arrays, "answer_indptr", n, answers.size)
    inside = np.repeat(np.arange(n), np.diff(answer_indptr))
    _check(_ascends(answers, inside), "answers must ascend inside each question")
    if KINDS[kind] is AnyCoupling:
        return asked, AnyCoupling(asked, answers, answer_indptr)

    count, k = check_array(arrays, "draws_A", "f", (n, None, None)).shape[1:]
    _check(count > 0, "draws_A must have a draw")
    unknown = check_array(arrays, "draws_unknown", "f", (count, None))
    unknown_indptr = _check_indptr(arrays, "draws_unknown_indptr", n, unknown.shape[1])
    shapes = {
        "A": (n, count, k), "B": (m, count, k), "row_noise": (n, count), "column_noise": (m, count),
        "centre": (n,), "scale": (n,),
    }  # fmt: skip
    numbers = {name: check_array(arrays, f"draws_{name}", "f", shape) for name, shape in shapes.items()}
    for name in ("row_noise", "column_noise", "scale"):
        _check(bool(np.all(numbers[name] > 0)), f"draws_{name} must hold numbers above 0")
    coupling = check_array(arrays, "draws_coupling", "u", (count, respondents.size))
    n_tokens = np.diff(answer_indptr) + np.diff(unknown_indptr)
    in_range = coupling < n_tokens[asked.rows()]
    _check(bool(np.all(in_range)), "draws_coupling must number the answers of each question, lost ones included")
    draws = CouplingDraws(**numbers, coupling=coupling, unknown=unknown, unknown_indptr=unknown_indptr)
    return asked, SampledCoupling(draws, asked, answers, answer_indptr)


def check_array(
    arrays: Mapping[str, Array], name: str, kinds: str, shape: tuple[int | None, ...], *, finite: bool = True
) -> Array:
    """The array of this name, of one of these kinds of dtype and of this shape (None: any length), finite."""
    array = arrays[name]
    fits = array.ndim == len(shape) and all(want in (None, size) for want, size in zip(shape, array.shape, strict=True))
    _check(array.dtype.kind in kinds, f"{name} must have a dtype of kind {' or '.join(kinds)}, not {array.dtype}")
    _check(fits, f"{name} must have shape {shape}, not {array.shape}".replace("None", "any"))
    _check(not finite or array.dtype.kind != "f" or bool(np.isfinite(array).all()), f"{name} must be finite")
    return array


def _check_indptr(arrays: Mapping[str, Array], name: str, n: int, n_entries: int) -> Array:
    """Pointers of n rows into so many entries."""
    indptr = check_array(arrays, name, "i", (n + 1,))
    fits = indptr[0] == 0 and indptr[-1] == n_entries and _ascends(indptr)
    _check(fits, f"{name} must ascend from 0 to {n_entries}, the number of entries")
    return indptr


def _ascends(array: Array, groups: Array | None = None, *, strictly: bool = False) -> bool:
    """Whether no entry is below the one before (or equal, if `strictly`), but where a new group begins."""
    rises = array[1:] > array[:-1] if strictly else array[1:] >= array[:-1]
    return bool(np.all(rises if groups is None else rises | (groups[1:] != groups[:-1])))


def _check(holds: bool, sentence: str) -> None:
    if not holds:
        raise ValueError(sentence)
