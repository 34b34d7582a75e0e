"""Uncoupled answers as they are sampled: in every row as many tokens as cells; their units; the draws that are kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from halfseen.arrays import Array
from halfseen.sampling.markov_chains import Plan, Recorder

if TYPE_CHECKING:
    from halfseen.sampling.coupling_chain import CouplingChain

SCALES = ("auto", "all", "question")
#: Questions with fewer answers tell too little of their own standard deviation, or of whether answers are all equal.
_MIN_ANSWERS = 5
#: Up to this share of questions that all answered alike, those in common units count as any other.
_FEW_EQUAL = 0.1
#: Where the logarithms of the questions' standard deviations scatter by more than this, beyond chance, questions are in
#: different units: nine tenths of the deviations then span more than sevenfold.
_MAX_LOG_SCATTER = 0.6
#: Relative to its mean, a smaller deviation of a question's answers is rounding.
_ROUNDING = 1e-12
#: Least variance of noise in any units.
MIN_VARIANCE = 1e-4
#: Exchanges proposed per cell: in the first sweep, and in every other.
FIRST_PROPOSALS, PROPOSALS = 20, 3
#: Number of cells whose predictions are monitored.
MONITORED_CELLS = 20


class Units(NamedTuple):
    """Units in which answers are sampled: (answer - centre) / scale, of each question."""

    centre: Array
    scale: Array

    @property
    def are_own(self) -> bool:
        """Whether they differ from question to question."""
        return bool(np.ptp(self.centre) > 0 or np.ptp(self.scale) > 0)

    @classmethod
    def from_answers(cls, seen: Any, scale: str) -> Units:
        """By "all", mean and standard deviation of all answers of a collection; by "question", those of each question.

        Questions on one scale, such as stars, tell more together: which of them is high is a pattern, too. Questions in
        different units, such as ages and incomes, have no common deviation. "auto" finds out which it is.
        """
        counts, answers = np.diff(seen.answer_indptr), seen.answers
        row = np.repeat(np.arange(counts.size), counts)
        mean, deviation = float(answers.mean()), float(answers.std()) if np.ptp(answers) > 0 else 1.0
        means = np.where(counts > 0, np.bincount(row, answers, minlength=counts.size) / np.maximum(counts, 1), mean)
        squares = np.bincount(row, (answers - means[row]) ** 2, minlength=counts.size)
        deviations = np.sqrt(squares / np.maximum(counts, 1))
        is_constant = deviations <= _ROUNDING * np.abs(means)
        if scale == "auto":
            # Log deviations scatter beyond chance, by which that of n answers has a variance of 1 / 2 (n - 1)?
            counted = (counts >= _MIN_ANSWERS) & ~is_constant
            scale = "all"
            if np.count_nonzero(counted) >= 2:
                beyond_chance = np.var(np.log(deviations[counted]), ddof=1) - np.mean(0.5 / (counts[counted] - 1))
                scale = "question" if beyond_chance > _MAX_LOG_SCATTER**2 else "all"
        if scale == "all":
            return cls(np.full(counts.size, mean), np.full(counts.size, deviation))
        # Equal answers have no deviation: their absolute value will do; without answers, the deviation of all answers.
        sizes = np.where((means == 0) | (counts == 0), deviation, np.abs(means))
        return cls(means, np.where(is_constant, sizes, deviations))


def noise_floor(seen: Any, units: Units) -> float:
    """Lower bound of the columns' common variance, in these units: the variance of rounding, a twelfth of the squared
    step between answers (the median over questions of the smallest step of each), and no less than 1e-4."""
    steps = np.diff(seen.answers)
    row = np.repeat(np.arange(units.scale.size), np.diff(seen.answer_indptr))
    inside = (row[1:] == row[:-1]) & (steps > 0)
    smallest = np.full(units.scale.size, np.inf)
    np.minimum.at(smallest, row[1:][inside], steps[inside])
    known = np.isfinite(smallest)
    rounding = float(np.median(smallest[known] / units.scale[known])) ** 2 / 12 if known.any() else 0.0
    return max(rounding, MIN_VARIANCE)


class CellIndex(NamedTuple):
    """Cells by rows (CSR) or by columns (CSC): pointers, indices of the other side, permutation from row order."""

    indptr: Array
    indices: Array
    order: Array | None = None


class Neighbours(NamedTuple):
    """For every cell a list of other cells of its row."""

    indptr: Array
    cells: Array

    @classmethod
    def from_pairs(cls, cells: Array, neighbours: Array, n_cells: int) -> Neighbours:
        counts = np.bincount(cells, minlength=n_cells)
        return cls(np.append(0, np.cumsum(counts)), neighbours[np.argsort(cells, kind="stable")])


@dataclass(frozen=True)
class Layout:
    """Cells and tokens, row by row.

    Whoever was asked several times has as many cells, of which the first is in `asked`, the one that was compared.
    Where a row has more answers than that, somebody's question was not written down: as many unknown respondents are
    added, each with this cell alone, in columns behind the known ones. Where it has fewer, some answers were lost: as
    many tokens are unknown values, behind the answers. `n_answers` counts the answers of each row.

    `below` and `above` have the cells that each cell was said to be no smaller, or no larger, than; `half_known` its
    comparisons won and lost against others that were not named.

    A row whose answers are all equal, in common units at least `_MIN_ANSWERS` of them and if such rows are many, is not
    `is_informative`, and missing in `columns`. The others would learn from it that there is hardly any noise.
    """

    rows: CellIndex
    columns: CellIndex
    n_answers: Array
    tokens: Array
    below: Neighbours
    above: Neighbours
    half_known: Array
    asked: Array
    n_respondents: int
    units: Units
    noise_floor: float
    is_informative: Array

    @classmethod
    def from_collection(cls, seen: Any, scale: str = "all", hidden: Array | None = None) -> Layout:
        """Lay out an `Uncoupled`, in units of all answers or of each question's (`Units`).

        `hidden` marks comparisons that are left out.
        """
        # cells: of known respondents, then of unknown ones
        times = np.ones(seen.n_asked, np.int64) if seen.times is None else seen.times.astype(np.int64)
        first_asking = np.append(0, np.cumsum(times))
        asking_indptr, n_answers = first_asking[seen.indptr], np.diff(seen.answer_indptr)
        indptr = np.append(0, np.cumsum(np.maximum(np.diff(asking_indptr), n_answers)))
        n_cells = indptr[-1]
        place_of_asking = _positions_in_longer_rows(asking_indptr, indptr)
        asked = place_of_asking[first_asking[:-1]]
        columns = np.full(n_cells, -1, np.int64)
        columns[place_of_asking] = np.repeat(seen.respondents, times)
        unknown = np.flatnonzero(columns < 0)
        columns[unknown] = seen.n_respondents + np.arange(unknown.size)

        # tokens, in units
        units = Units.from_answers(seen, scale)
        row = np.repeat(np.arange(n_answers.size), n_answers)
        tokens = np.zeros(n_cells)
        places = _positions_in_longer_rows(seen.answer_indptr, indptr)
        tokens[places] = (seen.answers - units.centre[row]) / units.scale[row]

        # cells by columns, of informative rows
        rises = row[1:][(row[1:] == row[:-1]) & (np.diff(seen.answers) > 0)]
        is_informative = (np.bincount(rises, minlength=n_answers.size) > 0) | (n_answers == 0)
        if not units.are_own:
            is_informative |= n_answers < _MIN_ANSWERS
            is_informative |= np.mean(~is_informative[n_answers > 0]) <= _FEW_EQUAL
        is_informative |= not is_informative.any()
        row_of_cell = np.repeat(np.arange(indptr.size - 1), np.diff(indptr))
        order = np.argsort(columns, kind="stable")
        order = order[is_informative[row_of_cell[order]]]
        column_counts = np.bincount(columns[order], minlength=seen.n_respondents + unknown.size)
        by_columns = CellIndex(np.append(0, np.cumsum(column_counts)), row_of_cell[order], order)

        # comparisons
        higher, lower = (seen.higher, seen.lower) if hidden is None else (seen.higher[~hidden], seen.lower[~hidden])
        half_known = np.zeros((n_cells, 2))
        for column, (one, other) in enumerate(((higher, lower), (lower, higher))):
            half_known[:, column] = np.bincount(asked[one[(one >= 0) & (other < 0)]], minlength=n_cells)
        whole = (higher >= 0) & (lower >= 0)
        higher, lower = asked[higher[whole]], asked[lower[whole]]
        return cls(
            CellIndex(indptr, columns), by_columns, n_answers, tokens, Neighbours.from_pairs(higher, lower, n_cells),
            Neighbours.from_pairs(lower, higher, n_cells), half_known, asked, seen.n_respondents, units,
            noise_floor(seen, units), is_informative,
        )  # fmt: skip

    @property
    def shape(self) -> tuple[int, int]:
        return self.rows.indptr.size - 1, self.columns.indptr.size - 1

    @property
    def n_cells(self) -> int:
        return self.tokens.size

    def in_answer_units(self, values: Array, cells: Array | slice = slice(None)) -> Array:
        """Values at cells, or at tokens of the same numbers, in the units of the answers."""
        row = self.row_of_cell[cells]
        return np.asarray(self.units.centre[row] + self.units.scale[row] * values)

    @cached_property
    def token_dtype(self) -> Any:
        """Smallest type that numbers the tokens of a row."""
        return np.min_scalar_type(int(np.diff(self.rows.indptr).max()))

    @cached_property
    def row_of_cell(self) -> Array:
        """Row of every cell, which is that of every token."""
        return np.repeat(np.arange(self.shape[0]), np.diff(self.rows.indptr))

    @cached_property
    def is_answer(self) -> Array:
        """Which tokens are answers, and not unknown."""
        inside = np.arange(self.n_cells) - self.rows.indptr[self.row_of_cell]
        return inside < self.n_answers[self.row_of_cell]


def _positions_in_longer_rows(indptr: Array, longer: Array) -> Array:
    """Positions of the entries of rows with these pointers in rows that are at least as long."""
    return np.arange(indptr[-1]) + np.repeat(longer[:-1] - indptr[:-1], np.diff(indptr))


class CouplingDraws(NamedTuple):
    """Draws kept of all chains, d of them, in the units of the answers.

    The mean of cell (i, j) in draw d is centre[i] + scale[i] <A[i, d], B[j, d]>, its standard deviation
    scale[i] sqrt(row_noise[i, d] * column_noise[j, d]). `coupling[d, c]` is the token of asked cell c, numbered inside
    its question: an answer, or beyond the answers an unknown one, whose value is unknown[d, unknown_indptr[i] + ...].
    """

    A: Array
    B: Array
    row_noise: Array
    column_noise: Array
    coupling: Array
    unknown: Array
    unknown_indptr: Array
    centre: Array
    scale: Array


class CouplingRecorder(Recorder):
    """Recorder of `CouplingChain`: log-likelihood, violated comparisons, a cell's typical deviation, spread of means.

    Means and deviations of some cells decide, of which predictions and intervals are made. The log-likelihood, the
    spread of the means and the noise of all cells drift for long after these have settled, by next to nothing.
    """

    quantities = ("objective", "violated", "noise", "spread")
    diagnosed: ClassVar[Mapping[str, str]] = {
        "noise": "noise", "violated comparisons": "violated", "log-likelihood": "objective", "spread": "spread",
    }  # fmt: skip
    monitored = ("predicted cells", "noise of cells")

    def __init__(self, chains: list[CouplingChain], plan: Plan) -> None:
        self._layout = chains[0].layout
        self._monitored = np.unique(np.linspace(0, self._layout.n_cells - 1, MONITORED_CELLS).astype(np.int64))
        super().__init__(chains, plan)

    def sweep(self, chain: CouplingChain, number: int) -> tuple[float, ...]:
        """A sweep, and what is recorded of it."""
        chain.sweep(PROPOSALS if number > 1 else FIRST_PROPOSALS)
        variance, scale, cells = chain.variance(), chain.scale[self._layout.row_of_cell], self._monitored
        log_likelihood, means, variance = chain.log_likelihood(variance), scale * chain.mean, scale**2 * variance
        quantities = (log_likelihood, chain.violations(), np.sqrt(variance.mean()), means.std())
        predicted, deviations = self._layout.in_answer_units(means[cells], cells), np.sqrt(variance[cells])
        return (*map(float, quantities), *predicted.tolist(), *deviations.tolist())

    def copy(self, chain: CouplingChain) -> dict[str, Array]:
        """The state of a chain, as fields of `CouplingDraws` without their axis of draws."""
        layout, m = self._layout, self._layout.n_respondents
        first = layout.rows.indptr[layout.row_of_cell[layout.asked]]
        A, B = chain.factors()
        copied = {
            "A": A * chain.scale[:, None], "B": B[:m], "row_noise": chain.noise.rows * chain.scale**2,
            "column_noise": chain.noise.columns[:m],
        }  # fmt: skip
        return {
            **{name: array.astype(np.float32) for name, array in copied.items()},
            "coupling": (chain.token_of_cell[layout.asked] - first).astype(layout.token_dtype),
            "unknown": (chain.tokens * chain.scale[layout.row_of_cell])[~layout.is_answer],
        }

    def draws(self) -> CouplingDraws:
        """States kept so far, chain by chain, in the units of the answers."""
        layout, draws = self._layout, [draw for of_chain in self.states() for draw in of_chain]
        arrays = {
            name: np.stack([draw[name] for draw in draws], axis=0 if name in ("coupling", "unknown") else 1)
            for name in draws[0]
        }
        arrays["unknown"] = layout.in_answer_units(arrays["unknown"], np.flatnonzero(~layout.is_answer))
        n_lost = np.diff(layout.rows.indptr) - layout.n_answers
        return CouplingDraws(**arrays, unknown_indptr=np.append(0, np.cumsum(n_lost)), **layout.units._asdict())
