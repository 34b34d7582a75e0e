"""Figure 5 of the A1GM paper: run time against the size of the matrix, for holes on a grid."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from statistics import mean, stdev
from typing import Any, NamedTuple

import numpy as np

import halfseen
from halfseen.arrays import Array
from halfseen.studies import framework
from halfseen.studies.framework import Column, Figure, Goal, Picture, Progress, Result, RunSettings, Study, Table
from halfseen.studies.kl_wnmf import kl_wnmf, with_weights

#: Share of cells that are holes: 5 % in the paper's (b), not given for its (a).
SHARE = 0.05
SIZES, TRIALS = (100, 200, 400, 700, 1000, 1400, 2000, 2800, 4000), 5
QUICK_SIZES, QUICK_TRIALS = (100, 200, 300), 2

METHODS = ("A1GM", "exact", "KL-WNMF")
#: Markers and lines as in the paper.
STYLES: dict[str, dict[str, Any]] = {
    "A1GM": {"marker": "^", "linestyle": ":", "color": framework.BLUE},
    "exact": {"marker": "s", "linestyle": "-", "color": framework.GREEN},
    "KL-WNMF": {"marker": "o", "linestyle": "--", "color": framework.VERMILION},
}
COLUMNS = (
    Column("N"),
    *(Column(name, f"{method} ms", ",.2f") for method in METHODS for name in ("mean", "S.D.")),
    Column("iterations", "KL-WNMF"),
    *(Column(method, "times as fast as KL-WNMF", ".1f") for method in METHODS[:2]),
)

#: Draws the rows and columns of a block of holes, given the size of the matrix and of the block.
Pattern = Callable[[np.random.Generator, int, int], tuple[Array, Array]]


def corner(random: np.random.Generator, size: int, block: int) -> tuple[Array, Array]:
    """Holes at the lower right, the form of Eq. 4: the last rows, the last columns."""
    last = np.arange(size - block, size)
    return last, last


def grid(random: np.random.Generator, size: int, block: int) -> tuple[Array, Array]:
    """Grid-like holes, Definition 1: as many rows, as many columns, anywhere."""
    return random.choice(size, block, replace=False), random.choice(size, block, replace=False)


PATTERNS: dict[str, tuple[str, Pattern]] = {
    "a": ("holes in the lower right corner", corner),
    "b": ("random grid-like holes", grid),
}


class Trials(NamedTuple):
    """Trials with matrices of one size: seconds by method, and the iterations of KL-WNMF."""

    seconds: Mapping[str, Sequence[float]]
    n_iter: Sequence[int]

    def speedup(self, method: str) -> float:
        """Mean run time of KL-WNMF over that of the method."""
        return mean(self.seconds["KL-WNMF"]) / mean(self.seconds[method])


def with_holes(pattern: Pattern, size: int, random: np.random.Generator) -> Array:
    """A square matrix, uniform in (0, 1], with NaN in a block of rows and columns that hold `SHARE` of the cells."""
    X = 1.0 - random.random((size, size))
    X[np.ix_(*pattern(random, size, round(size * SHARE**0.5)))] = np.nan
    return X


def run_trials(pattern: Pattern, size: int, n_trials: int, seed: int) -> Trials:
    """Time all methods on one matrix per trial."""
    seconds, n_iter = [], []
    fits = [halfseen.RankOneNMF(method="a1gm").fit, halfseen.RankOneNMF(method="exact").fit]
    for trial in range(n_trials):
        X = with_holes(pattern, size, np.random.default_rng([seed, size, trial]))
        functions: list[Any] = [partial(fit, X) for fit in (*fits, lambda X: kl_wnmf(with_weights(X), seed))]
        seconds.append(framework.median_seconds(functions, at_least=1, until=0.05))
        n_iter.append(kl_wnmf(with_weights(X), seed).n_iter)
    return Trials(dict(zip(METHODS, zip(*seconds, strict=True), strict=True)), n_iter)


class Figure5(Study):
    """A table and a picture for each pattern of holes."""

    name = "a1gm/figure5"
    title = "Run time of A1GM, of the exact solution and of KL-WNMF against the size of a matrix with grid-like holes"

    def compute(self, settings: RunSettings, progress: Progress) -> Result:
        quick, seed = settings.quick, settings.seed
        sizes, n_trials = (QUICK_SIZES, QUICK_TRIALS) if quick else (SIZES, TRIALS)
        series: dict[str, dict[int, Trials]] = {}
        for name, (words, pattern) in PATTERNS.items():
            series[name] = {}
            for size in sizes:
                progress(f"{words}, N = {size}")
                series[name][size] = run_trials(pattern, size, n_trials, seed)
        # the paper: A1GM is an order of magnitude faster than KL-WNMF; judged at the largest size
        goals = [
            Goal.claim(f"({name}) A1GM ten times as fast as KL-WNMF at N = {size}", trials.speedup("A1GM") >= 10)
            for name, by_size in series.items()
            for size, trials in [max(by_size.items())]
        ]
        tables = [_table(name, by_size, n_trials) for name, by_size in series.items()]
        pictures = [Picture(name, _title(name), partial(draw, name, by_size)) for name, by_size in series.items()]

        ends = []
        for size in (sizes[-1], sizes[0]):
            speedups = (
                f"{method} {' and '.join(f'{by_size[size].speedup(method):.1f}' for by_size in series.values())}"
                for method in METHODS[:2]
            )
            ends.append(f"at N = {size} {', '.join(speedups)}")
        iterations = _span(n for by_size in series.values() for trials in by_size.values() for n in trials.n_iter)
        summary = (
            f"Times as fast as KL-WNMF, in (a) and in (b): {'; '.join(ends)} (paper: A1GM an order of magnitude). "
            f"KL-WNMF took {iterations} iterations (paper: 2 to 4)."
        )
        return Result(summary, tables, pictures, goals)


def _title(name: str) -> str:
    return f"({name}) {PATTERNS[name][0]}, {100 * SHARE:g} % of the cells"


def _span(numbers: Iterable[int]) -> str:
    numbers = sorted(numbers)
    return f"{numbers[0]}" if numbers[0] == numbers[-1] else f"{numbers[0]} to {numbers[-1]}"


def _table(name: str, by_size: Mapping[int, Trials], n_trials: int) -> Table:
    rows = []
    for size, trials in by_size.items():
        times = [1000 * value for one in METHODS for value in (mean(trials.seconds[one]), stdev(trials.seconds[one]))]
        rows.append([size, *times, _span(trials.n_iter), *map(trials.speedup, METHODS[:2])])
    footnote = (
        f"Mean and standard deviation of {n_trials} trials, each with a matrix of its own, uniform in (0, 1]. All "
        "three start from an array with NaN; A1GM and exact have as many threads as processors "
        f"({os.cpu_count()}). BLAS had one thread. The paper prints no numbers for this figure."
    )
    return Table(_title(name), COLUMNS, rows, [footnote], name)


def draw(name: str, by_size: Mapping[int, Trials], figure: Figure) -> None:
    """Mean run time with its standard deviation against N, both axes logarithmic."""
    axes = figure.add_subplot()
    for method, style in STYLES.items():
        seconds = [trials.seconds[method] for trials in by_size.values()]
        means, deviations = [mean(one) for one in seconds], [stdev(one) for one in seconds]
        axes.errorbar(list(by_size), means, deviations, label=method, capsize=3, **style)
    axes.set(xscale="log", yscale="log", title=_title(name), xlabel="number of rows and of columns, N",
             ylabel="run time in seconds")  # fmt: skip
    axes.set_xticks(list(by_size), [f"{size:,}" for size in by_size])
    axes.xaxis.minorticks_off()
    axes.legend()


STUDIES = (Figure5(),)
