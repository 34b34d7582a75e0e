"""What was to be reached, and whether it is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from halfseen.studies.base import Column, Goal, Table
from halfseen.studies.unmf.baselines import ROW_MEAN
from halfseen.studies.unmf.measuring import Measured
from halfseen.studies.unmf.methods import GIBBS, HALF, WHOLE
from halfseen.studies.unmf.sets import MOVIELENS, SUSHI, SYNTHETIC

#: The largest test MAE of sampled couplings, by data and comparisons a row.
LARGEST = {SYNTHETIC.title: {28: 0.66}, MOVIELENS.title: {12: 0.400, 28: 0.388}, SUSHI.title: {12: 0.905, 28: 0.900}}
#: Nowhere may they be worse than the row mean by more than this factor.
AGAINST_ROW_MEAN = 1.02
#: Five-fold figures of a prototype that was written before, and how far ours may be from them.
EARLIER = {
    (HALF.name, MOVIELENS.title): {6: 1.04, 12: 0.811, 20: 0.697, 28: 0.620},
    (WHOLE.name, MOVIELENS.title): {6: 0.552, 12: 0.508, 20: 0.480, 28: 0.471},
    (HALF.name, SUSHI.title): {6: 1.60, 12: 1.33, 20: 1.30, 28: 1.30},
    (WHOLE.name, SUSHI.title): {6: 1.48, 12: 1.26, 20: 1.21, 28: 1.20},
}
TOLERANCE = 0.05


class Judgement(NamedTuple):
    """A row of the table: whose, on which data, with how many comparisons; what was to be, what is."""

    method: str
    data: str
    comparisons: int
    wanted: str
    ours: float
    reached: bool

    @property
    def goal(self) -> Goal:
        """The same in a sentence."""
        return Goal(f"{self.method}, {self.data}, {self.comparisons} comparisons: {self.wanted}", self.reached)


def judgements(found: Measured) -> Iterator[Judgement]:
    """All that can be judged by what was measured on one set of data."""
    data = found.of.title
    for n_per, largest in LARGEST[data].items():
        if n_per in found.grid:
            ours = found.at(GIBBS.name, n_per)
            yield Judgement(GIBBS.name, data, n_per, f"at most {largest:.3f}", ours, ours <= largest)
    yield _against_row_mean(found)
    for (name, where), figures in EARLIER.items():
        for n_per, earlier in figures.items():
            if where == data and n_per in found.grid:
                ours = found.at(name, n_per)
                near = abs(ours - earlier) <= TOLERANCE * earlier
                yield Judgement(name, data, n_per, f"{earlier:#.3g} within {TOLERANCE:.0%}", ours, near)


def _against_row_mean(found: Measured) -> Judgement:
    """Where sampled couplings are worst, as seen from the row mean."""
    ours = found.means(GIBBS.name)
    share = ours / found.means(ROW_MEAN)
    worst = int(share.argmax())
    largest = AGAINST_ROW_MEAN * found.means(ROW_MEAN)[worst]
    wanted = f"at most {largest:.3f}, {AGAINST_ROW_MEAN:g} times the row mean, at every number: here the worst"
    reached = bool(ours[worst] <= largest)
    return Judgement(GIBBS.name, found.of.title, found.grid[worst], wanted, float(ours[worst]), reached)


def goals_table(found: Sequence[Measured]) -> Table:
    columns = [
        Column("method"), Column("data"), Column("comparisons a row"), Column("goal"), Column("ours", form=".4f"),
        Column("reached"),
    ]  # fmt: skip
    rows: list[list[Any]] = [
        [*judged[:-1], "yes" if judged.reached else "short"] for one in found for judged in judgements(one)
    ]
    footnotes = [
        "Goals with a tolerance are five-fold figures of a prototype that was written before this library.",
        f"What {GIBBS.name!r} takes as given (k, trust, priors) was settled with that prototype, by a look at one fold "
        "of the real data: the third digit deserves no trust.",
    ]
    return Table("Test MAE that was to be reached", columns, rows, footnotes, "goals")
