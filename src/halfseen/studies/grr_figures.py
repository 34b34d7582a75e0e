"""Figures of the thesis on generalized round-rank (GRR).

Figure 2.2: errors of low linear rank for matrices of GRR 2 or less. Figures 4.1 to 4.3: recovery of small matrices.
Figures 4.4 to 4.6: ratings by number of components.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from halfseen.arrays import Array
from halfseen.datasets import source
from halfseen.io import observe, split_cells
from halfseen.observed import Observed
from halfseen.rank import approximation_errors
from halfseen.studies import framework
from halfseen.studies import grr_methods as grr
from halfseen.studies.framework import (
    Column,
    Figure,
    Goal,
    Picture,
    Progress,
    Result,
    RunSettings,
    Study,
    Table,
    mean_and_std,
)
from halfseen.studies.grr_methods import LINEAR, ROUND, SIGMOID, MatrixFamily, RatingsDataset, rmse, squared_errors

#: Colours and markers of the lines.
LOOKS = tuple(zip(framework.OKABE_ITO, "os^DvPX*", strict=True))

# Figure 2.2

FAMILIES = (grr.IDENTITY, grr.BAND, grr.UPPER_TRIANGLE, grr.RANDOM_SIGNS, grr.RANDOM)
SIZE, SEEDS = 100, 5
QUICK_SIZE, QUICK_SEEDS = 20, 2
#: Ranks in the table, as shares of the size.
SHARES = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 1.0)


class Figure2_2(Study):
    """Error of the best approximation against its rank."""

    name = "grr/figure2.2"
    title = "Errors of the best approximations of rank k of matrices whose generalized round-rank is 2 or less"

    def compute(self, settings: RunSettings, progress: Progress) -> Result:
        quick, seed = settings.quick, settings.seed
        size, seeds = (QUICK_SIZE, QUICK_SEEDS) if quick else (SIZE, SEEDS)
        errors: dict[str, Array] = {}
        for family in FAMILIES:
            progress(family.title)
            errors[family.title] = np.array([relative_errors(family, size, seed + draw) for draw in range(seeds)])
        ks = sorted({round(share * size) for share in SHARES})
        rows = framework.mean_and_std_rows(ks, [each.T[ks] for each in errors.values()])
        footnote = (
            f"The squared error of the best approximation of rank k, as a part of the squared norm; {size} x {size}. "
            f"Random matrices: mean and standard deviation of {seeds}. All have a generalized round-rank of 2 or less: "
            "there the error is 0 at k = 2. The thesis prints no numbers for this figure."
        )
        title = f"Relative error of the best approximation of rank k, {size} x {size}"
        columns = [Column("k"), *framework.mean_and_std_columns(errors, ".4f")]
        at_two = "; ".join(f"{title} {each[:, 2].mean():.1%}" for title, each in errors.items())
        summary = (
            f"With linear rank 2 there remains of the squared norm, at size {size} x {size}: {at_two}. With GRR 2: "
            "nothing."
        )
        picture = Picture("", f"Best approximations of rank k, size {size} x {size}", partial(draw_errors, errors))
        return Result(summary, [Table(title, columns, rows, [footnote])], [picture])


def relative_errors(family: MatrixFamily, size: int, seed: int) -> Array:
    """min over Y' of rank k of  ||Y - Y'||_F^2 / ||Y||_F^2,  k = 0..n  (Theorem 2.2.2)."""
    errors = approximation_errors(family.levels(size, seed))
    return errors / errors[0]


def draw_errors(errors: Mapping[str, Array], figure: Figure) -> None:
    """Error against rank, one line per family."""
    axes = figure.add_subplot()
    for (title, each), (colour, marker) in zip(errors.items(), LOOKS, strict=False):
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
    family: MatrixFamily

    def compute(self, settings: RunSettings, progress: Progress) -> Result:
        quick, seed = settings.quick, settings.seed
        iterations, seeds = (QUICK_ITERATIONS, QUICK_RECOVERY_SEEDS) if quick else (ITERATIONS, RECOVERY_SEEDS)
        curves: dict[str, Array] = {}  # RMSE of each method: (seeds, iterations), each time from the same start
        for method in grr.recovery_methods(self.family):
            progress(method.name)
            errors = np.empty((seeds, len(iterations)))
            for draw in range(seeds):
                cells: Observed = observe(self.family.levels(RECOVERY_SIZE, seed + draw).astype(np.float64))
                for at, number in enumerate(iterations):
                    errors[draw, at] = rmse(squared_errors(method.fit(cells, {"max_iter": number}, seed + draw), cells))
            curves[method.name] = errors

        ends = {name: errors[:, -1] for name, errors in curves.items()}
        exact = {name: f"{int((errors == 0).sum())} of {seeds}" for name, errors in ends.items()}
        rows = framework.mean_and_std_rows(iterations, [errors.T for errors in curves.values()])
        rows.append(["seeds at 0", *(value for name in curves for value in (exact[name], None))])
        footnotes = [
            f"RMSE over all cells, which are all seen; mean and standard deviation of {seeds} seeds, each with a start "
            "(and a random matrix) of its own. An iteration moves all rows, all columns and the thresholds once; those "
            "of Round begin where Multi-sigmoid has come to after as many. The last line: how many seeds ended at "
            "exactly 0.",
            "The thesis prints no numbers for this figure. It says that Round converges to zero, and that "
            "Multi-sigmoid with learned thresholds is ahead of Linear.",
        ]
        title = f"{self.family.title}, {RECOVERY_SIZE} x {RECOVERY_SIZE}, k = {self.family.k}"
        columns = [Column("iterations"), *framework.mean_and_std_columns(curves, ".4f")]
        table = Table(f"RMSE of the reconstruction: {title}", columns, rows, footnotes)
        goals = [  # what the thesis says of the figure
            Goal.claim(f"{ROUND} ends at 0 for every seed", bool((ends[ROUND] == 0).all())),
            Goal.claim(f"{SIGMOID} ends below {LINEAR}", bool(ends[SIGMOID].mean() < ends[LINEAR].mean())),
        ]
        last = "; ".join(f"{name} {errors.mean():.3f} (0 for {exact[name]} seeds)" for name, errors in ends.items())
        picture = Picture("", title, partial(draw_recovery, title, iterations, curves))
        return Result(f"RMSE in the end: {last}.", [table], [picture], goals)


def draw_recovery(title: str, iterations: Sequence[int], curves: Mapping[str, Array], figure: Figure) -> None:
    """Mean RMSE against iterations, with a band of one standard deviation."""
    axes = figure.add_subplot()
    for (name, errors), (colour, marker) in zip(curves.items(), LOOKS, strict=False):
        mean, width = errors.mean(axis=0), np.array([mean_and_std(each)[1] or 0.0 for each in errors.T])
        axes.plot(iterations, mean, color=colour, marker=marker, label=name)
        low = np.maximum(mean - width, 0.0)
        axes.fill_between(iterations, low, mean + width, color=colour, alpha=0.15, linewidth=0)
    axes.set(title=title, xscale="log", xlabel="iterations", ylabel="RMSE of the reconstruction")
    axes.set_xticks([1, 10, 100], ["1", "10", "100"])
    axes.set_ylim(bottom=-0.01)
    axes.legend()


# Figures 4.4 to 4.6

KS, STARTS = (2, 5, 10, 20, 30), 5
#: The number of components at which l2 is selected, by this share of the training cells.
SELECT_AT, HELD_OUT = 10, 0.1
QUICK_KS, QUICK_STARTS, QUICK_L2 = (1, 3), 2, (3.0, 6.0)


class Measure(NamedTuple):
    """A score of squared errors, its name and its format."""

    score: Callable[[Array], float]
    title: str
    form: str


ACCURACY = Measure(grr.accuracy, "share of predictions within 0.5", ".2%")
RMSE = Measure(rmse, "RMSE", ".4f")


@dataclass(frozen=True)
class RatingCurves(Study):
    """A measure against the number of components, on the first of the datasets that is in the data folder."""

    name: str
    title: str
    measure: Measure
    datasets: tuple[RatingsDataset, ...]

    @property
    def needs(self) -> tuple[str, ...]:
        return tuple(dataset.name for dataset in self.datasets)

    def compute(self, settings: RunSettings, progress: Progress) -> Result:
        quick, seed = settings.quick, settings.seed
        absent = self.absent()
        dataset = next((one for one in self.datasets if one.name not in absent), self.datasets[-1])
        data, split = dataset.title, dataset.split
        train, test = dataset.load(seed)
        if quick:
            data, split = f"{data} (a part)", f"{split}; of the training cells a part, {grr.QUICK_SAMPLE}"
            train, test = grr.quick_split(train, seed)
        ks, l2 = (QUICK_KS, QUICK_L2) if quick else (KS, grr.RATINGS_L2)
        seeds = range(seed, seed + (QUICK_STARTS if quick else STARTS))

        # l2 is selected once, then every number of components fitted from every start
        select_at = max(ks) if quick else SELECT_AT
        splits = [split_cells(train, HELD_OUT, random_state=seed)]
        scores: dict[str, Array] = {}  # of each method: (components, starts)
        chosen = []
        for name in (LINEAR, SIGMOID, ROUND):
            method = grr.ratings_method(name, select_at, False, l2)
            setting, _ = grr.select_setting(method, splits, seed, progress)
            words = framework.describe(setting, "-")
            chosen.append(f"{name}: {words} at k = {select_at}")
            scores[name] = np.empty((len(ks), len(seeds)))
            for place, k in enumerate(ks):
                progress(f"{name}, k = {k}, {words}")
                method = grr.ratings_method(name, k, False, l2)
                for number, start in enumerate(seeds):
                    errors = squared_errors(method.fit(train, setting, start), test)
                    scores[name][place, number] = self.measure.score(errors.astype(np.float32))

        title = f"{data}: {self.measure.title}"
        rows = framework.mean_and_std_rows(ks, scores.values())
        footnotes = [
            f"Data: {dataset.title}, {split}. Without biases, as in the thesis. l2 is chosen by RMSE at "
            f"{HELD_OUT:.0%} of the training cells, once for all k ({'; '.join(chosen)}). Mean and standard "
            f"deviation of {len(seeds)} starts. The thesis prints no numbers for this figure.",
        ]
        first = self.datasets[0]
        if dataset is not first:
            footnotes.append(
                f"The thesis has {first.title} here, which is not in the data folder: get its two files from "
                f"{source(first.name).address}. What is shown is of {dataset.title}."
            )
        columns = [Column("k"), *framework.mean_and_std_columns(scores, self.measure.form)]
        table = Table(title, columns, rows, footnotes)
        at = ks.index(SELECT_AT) if SELECT_AT in ks else len(ks) - 1
        means = "; ".join(f"{name} {values[at].mean():{self.measure.form}}" for name, values in scores.items())
        picture = Picture("", title, partial(draw_curves, title, self.measure.title, ks, scores))
        return Result(f"{data}, k = {ks[at]}, {self.measure.title}: {means}.", [table], [picture])


def draw_curves(title: str, measure: str, ks: Sequence[int], scores: Mapping[str, Array], figure: Figure) -> None:
    """The measure against k, one line per method, with bars of one standard deviation."""
    axes = figure.add_subplot()
    for (name, values), (colour, marker) in zip(scores.items(), LOOKS, strict=False):
        deviations = [mean_and_std(each)[1] or 0.0 for each in values]
        axes.errorbar(ks, values.mean(axis=1), deviations, color=colour, marker=marker, capsize=3, label=name)
    axes.set(title=title, xlabel="components, k", ylabel=measure)
    axes.set_xticks(list(ks))
    axes.legend()


_RMSE, _COMPONENTS = "RMSE against iterations", "against the number of components"
_NETFLIX = f"on smallnetflix {_COMPONENTS} (without it MovieLens 1M)"
_SUBSTITUTED = (grr.SMALLNETFLIX, grr.MOVIELENS_1M)
STUDIES = (
    Figure2_2(),
    RecoveryFigure("grr/figure4.1", f"Recovery of a band diagonal matrix: {_RMSE}", grr.BAND),
    RecoveryFigure("grr/figure4.2", f"Recovery of random matrices of generalized round-rank 2: {_RMSE}", grr.RANDOM),
    RecoveryFigure("grr/figure4.3", f"Recovery of an upper triangular matrix: {_RMSE}", grr.UPPER_TRIANGLE),
    RatingCurves("grr/figure4.4", f"Accuracy {_NETFLIX}", ACCURACY, _SUBSTITUTED),
    RatingCurves("grr/figure4.5", f"RMSE {_NETFLIX}", RMSE, _SUBSTITUTED),
    RatingCurves("grr/figure4.6", f"Accuracy on MovieLens 100K {_COMPONENTS}", ACCURACY, (grr.MOVIELENS_100K,)),
)
