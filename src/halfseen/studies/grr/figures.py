"""Figure 2.2: how badly matrices of generalized round-rank 2 and less are approximated by such of low linear rank.

Figures 4.1 to 4.3: recovery of small matrices. Figures 4.4 to 4.6: ratings, factorized with more and more components.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from halfseen.arrays import Array
from halfseen.datasets import source
from halfseen.io import observe, split_cells
from halfseen.observed import Observed
from halfseen.rank import approximation_errors
from halfseen.studies.base import Column, Goal, Picture, Result, Study, Table, Tell, mean_and_spread, tell_nobody
from halfseen.studies.grr import PAPER, sets
from halfseen.studies.grr.methods import LINEAR, RATINGS_L2, ROUND, SIGMOID, of_ratings, of_recovery
from halfseen.studies.grr.protocol import accuracy, chosen, rmse, squared_errors, words
from halfseen.studies.grr.sets import MOVIELENS_1M, MOVIELENS_100K, SMALLNETFLIX, Family, Ratings

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Colours of Okabe and Ito, which colour-blind readers can tell apart.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")


def _means_and_spreads(names: Sequence[str], form: str) -> list[Column]:
    return [Column(part, name, form) for name in names for part in ("mean", "S.D.")]


# Figure 2.2

FAMILIES = (sets.IDENTITY, sets.BAND, sets.UPPER_TRIANGLE, sets.RANDOM_SIGNS, sets.RANDOM)
SIZE, SEEDS = 100, 5
SMALL_SIZE, SMALL_SEEDS = 20, 2
#: Of the size: the ranks that the table shows.
SHARES = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 1.0)


class Figure2_2(Study):
    name = "grr/figure2.2"
    paper = PAPER
    title = "Errors of the best approximations of rank k of matrices whose generalized round-rank is 2 or less"

    def run(self, *, quick: bool = False, seed: int = 0, tell: Tell = tell_nobody) -> Result:
        size, seeds = (SMALL_SIZE, SMALL_SEEDS) if quick else (SIZE, SEEDS)
        errors: dict[str, Array] = {}
        for family in FAMILIES:
            tell(family.title)
            errors[family.title] = np.array([relative_errors(family, size, seed + draw) for draw in range(seeds)])
        rows = [
            [k, *(value for each in errors.values() for value in mean_and_spread(each[:, k]))]
            for k in sorted({round(share * size) for share in SHARES})
        ]
        footnote = (
            f"The squared error of the best approximation of rank k, as a part of the squared norm; {size} x {size}. "
            f"Random matrices: mean and standard deviation of {seeds}. All have a generalized round-rank of 2 or less: "
            "there the error is 0 at k = 2. The thesis prints no numbers for this figure."
        )
        title = f"Relative error of the best approximation of rank k, {size} x {size}"
        table = Table(title, [Column("k"), *_means_and_spreads(list(errors), ".4f")], rows, [footnote])
        at_two = "; ".join(f"{title} {each[:, 2].mean():.1%}" for title, each in errors.items())
        summary = (
            f"With linear rank 2 there remains of the squared norm, at size {size} x {size}: {at_two}. With GRR 2: "
            "nothing."
        )
        picture = Picture("", f"Best approximations of rank k, size {size} x {size}", partial(draw_errors, errors))
        return Result(summary, [table], [picture])


def relative_errors(family: Family, size: int, seed: int) -> Array:
    """min over Y' of rank k of  ||Y - Y'||_F^2 / ||Y||_F^2,  k = 0..n  (Theorem 2.2.2)."""
    errors = approximation_errors(family.levels(size, seed))
    return errors / errors[0]


def draw_errors(errors: Mapping[str, Array], figure: Figure) -> None:
    """Error against rank, a line for each matrix."""
    axes = figure.add_subplot()
    for (title, each), colour, marker in zip(errors.items(), COLOURS, MARKERS, strict=False):
        k = np.arange(each.shape[1])
        axes.plot(k, each.mean(axis=0), color=colour, marker=marker, markevery=max(1, k.size // 10), label=title)
    size = k.size - 1
    axes.set(title=f"Best approximation of linear rank k, {size} x {size}", xlabel="rank k",
             ylabel="squared error / squared norm")  # fmt: skip
    axes.set_xlim(0, size)
    axes.set(yscale="log", ylim=(1e-4, 1.2))
    axes.legend()


# Figures 4.1 to 4.3

RECOVERY_SIZE = 10
ITERATIONS, RECOVERY_SEEDS = (1, 2, 3, 5, 8, 12, 20, 40, 100, 200), 10
QUICK_ITERATIONS, QUICK_RECOVERY_SEEDS = (1, 10, 100), 2


@dataclass(frozen=True)
class RecoveryFigure(Study):
    """A small matrix, all of it seen: RMSE of its reconstruction against iterations."""

    name: str
    title: str
    family: Family
    paper = PAPER

    def run(self, *, quick: bool = False, seed: int = 0, tell: Tell = tell_nobody) -> Result:
        iterations, seeds = (QUICK_ITERATIONS, QUICK_RECOVERY_SEEDS) if quick else (ITERATIONS, RECOVERY_SEEDS)
        found: dict[str, Array] = {}  # RMSE of each method: seeds by iterations, each time from the same start
        for method in of_recovery(self.family):
            tell(method.name)
            errors = np.empty((seeds, len(iterations)))
            for draw in range(seeds):
                cells: Observed = observe(self.family.levels(RECOVERY_SIZE, seed + draw).astype(np.float64))
                for at, number in enumerate(iterations):
                    errors[draw, at] = rmse(squared_errors(method.fit(cells, {"max_iter": number}, seed + draw), cells))
            found[method.name] = errors

        ends = {name: errors[:, -1] for name, errors in found.items()}
        exact = {name: f"{int((errors == 0).sum())} of {seeds}" for name, errors in ends.items()}
        rows: list[list[Any]] = [
            [number, *(value for errors in found.values() for value in mean_and_spread(errors[:, at]))]
            for at, number in enumerate(iterations)
        ]
        rows.append(["seeds at 0", *(value for name in found for value in (exact[name], None))])
        footnotes = [
            f"RMSE over all cells, which are all seen; mean and standard deviation of {seeds} seeds, each with a start "
            "(and a random matrix) of its own. An iteration moves all rows, all columns and the thresholds once; those "
            "of Round begin where Multi-sigmoid has come to after as many. The last line: how many seeds ended at "
            "exactly 0.",
            "The thesis prints no numbers for this figure. It says that Round converges to zero, and that "
            "Multi-sigmoid with learned thresholds is ahead of Linear.",
        ]
        title = f"{self.family.title}, {RECOVERY_SIZE} x {RECOVERY_SIZE}, k = {self.family.k}"
        columns = [Column("iterations"), *_means_and_spreads(list(found), ".4f")]
        table = Table(f"RMSE of the reconstruction: {title}", columns, rows, footnotes)
        goals = [  # what the thesis says of the figure
            Goal(f"{ROUND} ends at 0 for every seed", bool((ends[ROUND] == 0).all())),
            Goal(f"{SIGMOID} ends below {LINEAR}", bool(ends[SIGMOID].mean() < ends[LINEAR].mean())),
        ]
        last = "; ".join(f"{name} {errors.mean():.3f} (0 for {exact[name]} seeds)" for name, errors in ends.items())
        picture = Picture("", title, partial(draw_recovery, title, iterations, found))
        return Result(f"RMSE in the end: {last}.", [table], [picture], [] if quick else goals)


def draw_recovery(title: str, iterations: Sequence[int], found: Mapping[str, Array], figure: Figure) -> None:
    """Mean RMSE against iterations, a band of a standard deviation around it."""
    axes = figure.add_subplot()
    for (name, errors), colour, marker in zip(found.items(), COLOURS, MARKERS, strict=False):
        mean, width = errors.mean(axis=0), np.array([mean_and_spread(each)[1] or 0.0 for each in errors.T])
        axes.plot(iterations, mean, color=colour, marker=marker, label=name)
        low = np.maximum(mean - width, 0.0)
        axes.fill_between(iterations, low, mean + width, color=colour, alpha=0.15, linewidth=0)
    axes.set(title=title, xscale="log", xlabel="iterations", ylabel="RMSE of the reconstruction")
    axes.set_xticks([1, 10, 100], ["1", "10", "100"])
    axes.set_ylim(bottom=-0.01)
    axes.legend()


# Figures 4.4 to 4.6

KS, STARTS = (2, 5, 10, 20, 30), 5
#: The number of components at which l2 is chosen, by this share of the training cells.
CHOOSING_AT, HELD_OUT = 10, 0.1
QUICK_KS, QUICK_STARTS, QUICK_L2 = (1, 3), 2, (3.0, 6.0)


class Measure(NamedTuple):
    """What is drawn: one number of squared errors, its name and its format."""

    of: Callable[[Array], float]
    title: str
    form: str


ACCURACY = Measure(accuracy, "share of predictions within 0.5", ".2%")
RMSE = Measure(rmse, "RMSE", ".4f")


class RatingCurves(Study):
    """A measure against the number of components, on the first of the sets that is in the data folder."""

    paper = PAPER

    def __init__(self, name: str, title: str, measure: Measure, *sets: Ratings) -> None:
        self.name, self.title, self.measure, self.sets = name, title, measure, sets
        self.needs = tuple(one.name for one in sets)

    def run(self, *, quick: bool = False, seed: int = 0, tell: Tell = tell_nobody) -> Result:
        absent = self.absent()
        of = next((one for one in self.sets if one.name not in absent), self.sets[-1])
        data, how = of.title, of.words
        train, test = of.load(seed)
        if quick:
            data, how = f"{data} (a part)", f"{how}; of the training cells a part, {sets.OF_A_PART}"
            train, test = sets.small_split(train, seed)
        ks, l2 = (QUICK_KS, QUICK_L2) if quick else (KS, RATINGS_L2)
        seeds = range(seed, seed + (QUICK_STARTS if quick else STARTS))

        # l2 is chosen once, then every number of components fitted from every start
        choosing_at = max(ks) if quick else CHOOSING_AT
        parts = [split_cells(train, HELD_OUT, random_state=seed)]
        found: dict[str, Array] = {}  # the measure of each method, components by starts
        settings = []
        for name in (LINEAR, SIGMOID, ROUND):
            setting, _ = chosen(of_ratings(name, choosing_at, False, l2), parts, seed, tell)
            settings.append(f"{name}: {words(setting)} at k = {choosing_at}")
            found[name] = np.empty((len(ks), len(seeds)))
            for place, k in enumerate(ks):
                tell(f"{name}, k = {k}, {words(setting)}")
                for number, start in enumerate(seeds):
                    errors = squared_errors(of_ratings(name, k, False, l2).fit(train, setting, start), test)
                    found[name][place, number] = self.measure.of(errors.astype(np.float32))

        title = f"{data}: {self.measure.title}"
        rows = [
            [k, *(value for values in found.values() for value in mean_and_spread(values[place]))]
            for place, k in enumerate(ks)
        ]
        footnotes = [
            f"Data: {of.title}, {how}. Without biases, as in the thesis. l2 is chosen by RMSE at "
            f"{HELD_OUT:.0%} of the training cells, once for all k ({'; '.join(settings)}). Mean and standard "
            f"deviation of {len(seeds)} starts. The thesis prints no numbers for this figure.",
        ]
        if of is not self.sets[0]:
            footnotes.append(
                f"The thesis has {self.sets[0].title} here, which is not in the data folder: get its two files from "
                f"{source(self.sets[0].name).address}. What is shown is of {of.title}."
            )
        table = Table(title, [Column("k"), *_means_and_spreads(list(found), self.measure.form)], rows, footnotes)
        at = ks.index(CHOOSING_AT) if CHOOSING_AT in ks else len(ks) - 1
        means = "; ".join(f"{name} {values[at].mean():{self.measure.form}}" for name, values in found.items())
        picture = Picture("", title, partial(draw_curves, title, self.measure.title, ks, found))
        return Result(f"{data}, k = {ks[at]}, {self.measure.title}: {means}.", [table], [picture])


def draw_curves(title: str, measure: str, ks: Sequence[int], found: Mapping[str, Array], figure: Figure) -> None:
    """The measure against k, a line for each method, bars of a standard deviation."""
    axes = figure.add_subplot()
    for (name, values), colour, marker in zip(found.items(), COLOURS, MARKERS, strict=False):
        spreads = [mean_and_spread(each)[1] or 0.0 for each in values]
        axes.errorbar(ks, values.mean(axis=1), spreads, color=colour, marker=marker, capsize=3, label=name)
    axes.set(title=title, xlabel="components, k", ylabel=measure)
    axes.set_xticks(list(ks))
    axes.legend()


_RMSE, _COMPONENTS = "RMSE against iterations", "against the number of components"
_NETFLIX = f"on smallnetflix {_COMPONENTS} (without it MovieLens 1M)"
STUDIES = (
    Figure2_2(),
    RecoveryFigure("grr/figure4.1", f"Recovery of a band diagonal matrix: {_RMSE}", sets.BAND),
    RecoveryFigure("grr/figure4.2", f"Recovery of random matrices of generalized round-rank 2: {_RMSE}", sets.RANDOM),
    RecoveryFigure("grr/figure4.3", f"Recovery of an upper triangular matrix: {_RMSE}", sets.UPPER_TRIANGLE),
    RatingCurves("grr/figure4.4", f"Accuracy {_NETFLIX}", ACCURACY, SMALLNETFLIX, MOVIELENS_1M),
    RatingCurves("grr/figure4.5", f"RMSE {_NETFLIX}", RMSE, SMALLNETFLIX, MOVIELENS_1M),
    RatingCurves("grr/figure4.6", f"Accuracy on MovieLens 100K {_COMPONENTS}", ACCURACY, MOVIELENS_100K),
)
