"""What Figures 4.4 to 4.6 have in common: ratings, factorized with more and more components."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from halfseen.arrays import Array
from halfseen.data import Observed, split_cells
from halfseen.data.datasets import draw_active, load_ratings, load_smallnetflix, load_split, source
from halfseen.studies.base import Column, Picture, Result, Study, Table, Tell, tell_nobody
from halfseen.studies.grr import PAPER
from halfseen.studies.grr.printed import LINEAR, ROUND, SIGMOID
from halfseen.studies.grr.protocol import Method, accuracy, chosen, rmse, spread, squared_errors, words
from halfseen.studies.grr.rating_methods import L2, with_loss
from halfseen.studies.grr.styles import COLOURS, MARKERS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KS = (2, 5, 10, 20, 30)
SEEDS = 5
#: The number of components at which l2 is chosen, by this share of the training cells.
CHOOSING_AT, HELD_OUT = 10, 0.1
QUICK_KS, QUICK_SEEDS, QUICK_L2, QUICK_SIZE = (1, 3), 2, (3.0, 6.0), (120, 100)

#: Training and test cells, by a seed.
Load = Callable[[int], tuple[Observed, Observed]]


class Ratings(NamedTuple):
    """A data set: its name, how it is parted, in words, and its parts."""

    name: str
    words: str
    load: Load

    @property
    def title(self) -> str:
        return source(self.name).title


SMALLNETFLIX = Ratings("smallnetflix", "its own training and validation cells", lambda seed: load_smallnetflix())
MOVIELENS_1M = Ratings(
    "movielens-1m",
    "a fifth of the cells, drawn uniformly, for test",
    lambda seed: split_cells(load_ratings("movielens-1m"), 0.2, random_state=seed),
)
MOVIELENS_100K = Ratings("movielens-100k", "its own split u1", lambda seed: load_split("u1"))


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
        train, test = _small(of, seed) if quick else of.load(seed)
        ks, seeds = (QUICK_KS, range(seed, seed + QUICK_SEEDS)) if quick else (KS, range(seed, seed + SEEDS))
        found = {name: self._curve(name, train, test, ks, seeds, quick, tell) for name in (LINEAR, SIGMOID, ROUND)}
        title = f"{of.title}{' (a part)' if quick else ''}: {self.measure.title}"
        picture = Picture("", title, partial(draw, title, self.measure, ks, found))
        return Result(self._summary(of, ks, found), [self._table(of, title, ks, found, len(seeds))], [picture])

    def _curve(
        self, name: str, train: Observed, test: Observed, ks: Sequence[int], seeds: range, quick: bool, tell: Tell
    ) -> Curve:
        """The method with an l2 chosen once, fitted with every number of components from every start."""

        def method(k: int) -> Method:
            return with_loss(name, k, False, QUICK_L2 if quick else L2)

        parts = [split_cells(train, HELD_OUT, random_state=seeds[0])]
        setting, _ = chosen(method(max(ks) if quick else CHOOSING_AT), parts, seeds[0], tell)
        errors = np.empty((len(ks), len(seeds), test.nnz), dtype=np.float32)
        for place, k in enumerate(ks):
            tell(f"{name}, k = {k}, {words(setting)}")
            for draw_number, seed in enumerate(seeds):
                errors[place, draw_number] = squared_errors(method(k).fit(train, setting, seed), test)
        both = {
            measure.title: np.array([[measure.of(one) for one in row] for row in errors])
            for measure in (ACCURACY, RMSE)
        }
        return Curve(words(setting), both)

    def _table(self, of: Ratings, title: str, ks: Sequence[int], found: Mapping[str, Curve], seeds: int) -> Table:
        columns = [Column("k")]
        for name in found:
            columns += [Column("mean", name, self.measure.form), Column("S.D.", name, self.measure.form)]
        rows: list[Sequence[Any]] = [
            [k, *(value for curve in found.values() for value in self._shown(curve, place))]
            for place, k in enumerate(ks)
        ]
        settings = "; ".join(f"{name}: {curve.setting}" for name, curve in found.items())
        footnotes = [
            f"Data: {of.title}, {of.words}. Without biases, as in the thesis. l2 is chosen by RMSE at {HELD_OUT:.0%} "
            f"of the training cells, at one k ({settings}). Mean and standard deviation of {seeds} starts. The thesis "
            "prints no numbers for this figure.",
        ]
        first = self.sets[0]
        if of is not first:
            footnotes.append(
                f"The thesis has {first.title} here, which is not in the data folder: get its two files from "
                f"{source(first.name).address}. What is shown is of {of.title}."
            )
        return Table(title, columns, rows, footnotes)

    def _shown(self, curve: Curve, place: int) -> tuple[float, float | None]:
        values = curve.measures[self.measure.title][place]
        return float(values.mean()), spread(values)

    def _summary(self, of: Ratings, ks: Sequence[int], found: Mapping[str, Curve]) -> str:
        at = len(ks) - 1 if CHOOSING_AT not in ks else list(ks).index(CHOOSING_AT)
        told = "; ".join(f"{name} {self._shown(curve, at)[0]:{self.measure.form}}" for name, curve in found.items())
        return f"{of.title}, k = {ks[at]}, {self.measure.title}: {told}."


def _small(of: Ratings, seed: int) -> tuple[Observed, Observed]:
    """The most active rows and columns of the training cells, parted anew."""
    return split_cells(draw_active(of.load(seed)[0], *QUICK_SIZE, random_state=seed), 0.2, random_state=seed)


def draw(title: str, measure: Measure, ks: Sequence[int], found: Mapping[str, Curve], figure: Figure) -> None:
    """The measure against k, a line a method, bars of a standard deviation."""
    axes = figure.add_subplot()
    for (name, curve), colour, marker in zip(found.items(), COLOURS, MARKERS, strict=False):
        values = curve.measures[measure.title]
        axes.errorbar(ks, values.mean(axis=1), values.std(axis=1), color=colour, marker=marker, capsize=3, label=name)
    axes.set(title=title, xlabel="components, k", ylabel=measure.title)
    axes.set_xticks(list(ks))
    axes.legend()
