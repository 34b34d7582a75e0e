"""What Figures 4.4 to 4.6 have in common: ratings, factorized with more and more components."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from halfseen.arrays import Array
from halfseen.data import split_cells
from halfseen.data.datasets import source
from halfseen.studies.base import Column, Picture, Result, Study, Table, Tell, tell_nobody
from halfseen.studies.grr import PAPER
from halfseen.studies.grr.printed import LINEAR, ROUND, SIGMOID
from halfseen.studies.grr.protocol import Method, accuracy, chosen, rmse, spread, squared_errors, words
from halfseen.studies.grr.rating_methods import L2, with_loss
from halfseen.studies.grr.rating_sets import Cells, Ratings
from halfseen.studies.grr.styles import COLOURS, MARKERS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KS = (2, 5, 10, 20, 30)
SEEDS = 5
#: The number of components at which l2 is chosen, by this share of the training cells.
CHOOSING_AT, HELD_OUT = 10, 0.1
QUICK_KS, QUICK_SEEDS, QUICK_L2 = (1, 3), 2, (3.0, 6.0)


class Measure(NamedTuple):
    """What is drawn: of squared errors, one number; how it is named and shown."""

    of: Callable[[Array], float]
    title: str
    form: str


ACCURACY = Measure(accuracy, "share of predictions within 0.5", ".2%")
RMSE = Measure(rmse, "RMSE", ".4f")


class Curve(NamedTuple):
    """A method: the setting chosen, and both measures, arrays of components by seeds."""

    setting: str
    measures: Mapping[str, Array]


class RatingCurves(Study):
    """A measure against the number of components, on the first of the sets that is at hand."""

    paper = PAPER
    sets: ClassVar[Sequence[Ratings]]
    measure: ClassVar[Measure]

    def run(self, *, quick: bool = False, seed: int = 0, tell: Tell = tell_nobody) -> Result:
        absent = self.absent()
        of = next((one for one in self.sets if one.name not in absent), self.sets[-1])
        cells = Cells.part_of(of, seed) if quick else Cells.of(of, seed)
        ks, seeds = (QUICK_KS, range(seed, seed + QUICK_SEEDS)) if quick else (KS, range(seed, seed + SEEDS))
        found = {name: self._curve(name, cells, ks, seeds, quick, tell) for name in (LINEAR, SIGMOID, ROUND)}
        title = f"{cells.title}: {self.measure.title}"
        picture = Picture("", title, partial(draw, title, self.measure, ks, found))
        table = Table(title, self._columns(found), self._rows(ks, found), self._footnotes(of, cells, found, len(seeds)))
        return Result(self._summary(cells, ks, found), [table], [picture])

    def _curve(self, name: str, cells: Cells, ks: Sequence[int], seeds: range, quick: bool, tell: Tell) -> Curve:
        """The method with an l2 chosen once, fitted with every number of components from every start."""

        def method(k: int) -> Method:
            return with_loss(name, k, False, QUICK_L2 if quick else L2)

        at = max(ks) if quick else CHOOSING_AT
        judging = [split_cells(cells.train, HELD_OUT, random_state=seeds[0])]
        setting, _ = chosen(method(at), judging, seeds[0], tell)
        errors = np.empty((len(ks), len(seeds), cells.test.nnz), dtype=np.float32)
        for place, k in enumerate(ks):
            tell(f"{name}, k = {k}, {words(setting)}")
            for draw_number, seed in enumerate(seeds):
                errors[place, draw_number] = squared_errors(method(k).fit(cells.train, setting, seed), cells.test)
        both = {
            measure.title: np.array([[measure.of(one) for one in row] for row in errors])
            for measure in (ACCURACY, RMSE)
        }
        return Curve(f"{words(setting)} at k = {at}", both)

    def _columns(self, found: Mapping[str, Curve]) -> list[Column]:
        form = self.measure.form
        return [Column("k"), *(Column(part, name, form) for name in found for part in ("mean", "S.D."))]

    def _rows(self, ks: Sequence[int], found: Mapping[str, Curve]) -> list[list[Any]]:
        return [
            [k, *(value for curve in found.values() for value in self._shown(curve, place))]
            for place, k in enumerate(ks)
        ]

    def _footnotes(self, of: Ratings, cells: Cells, found: Mapping[str, Curve], seeds: int) -> list[str]:
        settings = "; ".join(f"{name}: {curve.setting}" for name, curve in found.items())
        footnotes = [
            f"Data: {of.title}, {cells.words}. Without biases, as in the thesis. l2 is chosen by RMSE at "
            f"{HELD_OUT:.0%} of the training cells, once for all k ({settings}). Mean and standard deviation of "
            f"{seeds} starts. The thesis prints no numbers for this figure.",
        ]
        first = self.sets[0]
        if of is not first:
            footnotes.append(
                f"The thesis has {first.title} here, which is not in the data folder: get its two files from "
                f"{source(first.name).address}. What is shown is of {of.title}."
            )
        return footnotes

    def _shown(self, curve: Curve, place: int) -> tuple[float, float | None]:
        values = curve.measures[self.measure.title][place]
        return float(values.mean()), spread(values)

    def _summary(self, cells: Cells, ks: Sequence[int], found: Mapping[str, Curve]) -> str:
        at = len(ks) - 1 if CHOOSING_AT not in ks else list(ks).index(CHOOSING_AT)
        told = "; ".join(f"{name} {self._shown(curve, at)[0]:{self.measure.form}}" for name, curve in found.items())
        return f"{cells.title}, k = {ks[at]}, {self.measure.title}: {told}."


def draw(title: str, measure: Measure, ks: Sequence[int], found: Mapping[str, Curve], figure: Figure) -> None:
    """The measure against k, a line a method, bars of a standard deviation."""
    axes = figure.add_subplot()
    for (name, curve), colour, marker in zip(found.items(), COLOURS, MARKERS, strict=False):
        values = curve.measures[measure.title]
        spreads = [spread(each) or 0.0 for each in values]
        axes.errorbar(ks, values.mean(axis=1), spreads, color=colour, marker=marker, capsize=3, label=name)
    axes.set(title=title, xlabel="components, k", ylabel=measure.title)
    axes.set_xticks(list(ks))
    axes.legend()
