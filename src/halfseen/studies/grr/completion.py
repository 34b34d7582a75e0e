"""What Tables 4.1 to 4.3 have in common: methods in rows, RMSE by the share of cells seen in columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from halfseen.arrays import Array
from halfseen.data import Observed, k_folds
from halfseen.studies.base import Column, Goal, Result, Study, Table, Tell, tell_nobody
from halfseen.studies.grr import PAPER
from halfseen.studies.grr.matrices import Family
from halfseen.studies.grr.printed import PROPORTIONS, Rows
from halfseen.studies.grr.protocol import chosen, rmse, spread, squared_errors
from halfseen.studies.grr.variants import EPOCHS, L2, MARGIN, of_the_thesis, our_own

#: The share of the cells that are for test.
TEST_SHARE = 0.2
FOLDS = 3
CHOSEN = "ours: whichever"


class Effort(NamedTuple):
    """How much work is done: seeds, settings to choose from, and starts when choosing and afterwards."""

    proportions: Sequence[float]
    seeds: int
    l2: Sequence[float]
    epochs: int
    starts: tuple[int, int]


SIZE = 50
FULL = Effort(PROPORTIONS, 5, L2, EPOCHS, (1, 10))
QUICK = Effort((0.2, 0.8), 2, (0.1,), 4, (1, 1))

#: RMSE of each row: an array of proportions by seeds.
Found = Mapping[str, Array]


class CompletionTable(Study):
    """A table of the completion of matrices of one family."""

    paper = PAPER
    family: ClassVar[Family]
    printed: ClassVar[Rows]
    remarks: ClassVar[Sequence[str]] = ()

    def run(self, *, quick: bool = False, seed: int = 0, tell: Tell = tell_nobody) -> Result:
        effort = QUICK if quick else FULL
        found = self._found(effort, seed, tell)
        sentences = [_compared(self.printed, found, effort, [CHOSEN]), _compared(self.printed, found, effort, found)]
        goals = [] if quick else list(_goals(self.printed, found, effort))
        return Result(" ".join(sentences), [self._table(effort, found)], goals=goals)

    def _found(self, effort: Effort, seed: int, tell: Tell) -> Found:
        rows: dict[str, list[list[float]]] = {}
        for place, proportion in enumerate(effort.proportions):
            for draw in range(seed, seed + effort.seeds):
                tell(f"{proportion:.0%} seen, seed {draw}")
                cells = parted(self.family.levels(SIZE, draw), proportion, draw)
                for name, error in self._errors(*cells, effort, draw).items():
                    rows.setdefault(name, [[] for _ in effort.proportions])[place].append(error)
        return {name: np.array(errors) for name, errors in rows.items()}

    def _errors(self, train: Observed, test: Observed, effort: Effort, seed: int) -> dict[str, float]:
        """RMSE at the test cells by row; the last is that of ours which was best at the cells held out of training."""
        folds = list(k_folds(train, FOLDS, seed))
        errors, judged = {}, {}
        for method in of_the_thesis(self.family, SIZE, effort.epochs):
            errors[method.name] = rmse(squared_errors(method.fit(train, {}, seed), test))
        few, many = (our_own(self.family, effort.l2, starts) for starts in effort.starts)
        for method, afterwards in zip(few, many, strict=True):
            setting, judged[method.name] = chosen(method, folds, seed, tell_nobody)
            errors[method.name] = rmse(squared_errors(afterwards.fit(train, setting, seed), test))
        errors[CHOSEN] = errors[min(judged, key=lambda name: judged[name])]
        return errors

    def _table(self, effort: Effort, found: Found) -> Table:
        title = (
            f"RMSE at test cells by the share of cells seen: {self.family.title}, {SIZE} x {SIZE}, k = {self.family.k}"
        )
        columns = [Column("method")]
        for proportion in effort.proportions:
            group = f"{proportion:.0%}"
            columns += [Column("paper", group), Column("ours", group, ".3f"), Column("S.D.", group, ".3f")]
        return Table(title, columns, [self._row(name, found[name], effort) for name in found], self._footnotes(effort))

    def _row(self, name: str, errors: Array, effort: Effort) -> list[Any]:
        row: list[Any] = [name]
        for proportion, each in zip(effort.proportions, errors, strict=True):
            printed = self.printed.get(name)
            row += [printed and printed[PROPORTIONS.index(proportion)], float(each.mean()), spread(each)]
        return row

    def _footnotes(self, effort: Effort) -> list[str]:
        return [
            f"Mean and standard deviation of {effort.seeds} seeds, each with cells (and a random matrix) of its own. "
            f"{TEST_SHARE:.0%} of all cells are for test, the share named is for training.",
            "The thesis's rows: stochastic gradients from a start uniform in (-0.005, 0.005), no biases, "
            f"{effort.epochs} epochs. Linear has an offset, and the outer intervals of Round no end. "
            f"Fixed thresholds: {', '.join(f'{value:g}' for value in self.family.fixed)}. Round with learned ones has "
            f"a margin of {MARGIN}: without one it stays where x is the threshold.",
            "Ours: Newton's method, biases or none, a ridge around 0 or our centre, and l2 out of "
            f"{', '.join(f'{value:g}' for value in effort.l2)} (Round: fixed thresholds or not, no biases) as is best "
            f"over {FOLDS} folds of the training cells, then {_best_of(effort.starts[1])}. {CHOSEN!r} is the one of "
            "the three with the lowest error over the folds.",
            *self.remarks,
        ]


def _best_of(starts: int) -> str:
    return "one start" if starts == 1 else f"the best of {starts} starts"


def parted(levels: Array, proportion: float, seed: int) -> tuple[Observed, Observed]:
    """Cells for training, `proportion` of all, and for test, drawn uniformly; more have all those that fewer have."""
    order = np.random.default_rng(seed).permutation(levels.size)
    n_test = round(TEST_SHARE * levels.size)
    return _cells(levels, order[n_test:][: round(proportion * levels.size)]), _cells(levels, order[:n_test])


def _cells(levels: Array, places: Array) -> Observed:
    rows, columns = np.divmod(np.sort(places), levels.shape[1])
    return Observed.from_cells(rows, columns, levels[rows, columns].astype(np.float64), levels.shape)


def _goals(printed: Rows, found: Found, effort: Effort) -> Iterator[Goal]:
    """The row that chooses for itself against the thesis's best, column by column, in the digits that it prints."""
    for place, proportion in enumerate(effort.proportions):
        best = min(float(row[PROPORTIONS.index(proportion)]) for row in printed.values())
        ours = round(float(found[CHOSEN][place].mean()), 2)
        yield Goal(f"{CHOSEN!r} with {proportion:.0%} seen: RMSE of at most {best}, the thesis's best", ours <= best)


def _compared(printed: Rows, found: Found, effort: Effort, names: Iterable[str]) -> str:
    """In how many columns the best of these rows is at or below the thesis's best, in the digits that it prints."""
    places = [PROPORTIONS.index(proportion) for proportion in effort.proportions]
    theirs = np.array([[float(value) for value in row] for row in printed.values()]).min(axis=0)[places]
    ours = np.array([found[name].mean(axis=1) for name in names]).min(axis=0)
    reached = int(np.sum(np.round(ours, 2) <= theirs))
    whose = "The best of our rows" if names is found else f"The row {CHOSEN!r}"
    return f"{whose} is at or below the thesis's best in {reached} of {len(places)} columns."
