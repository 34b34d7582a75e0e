"""Figure 5: run time against the size of the matrix, where A1GM needs no holes to be added."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from statistics import mean, stdev
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

import halfseen
from halfseen.arrays import Array
from halfseen.studies.a1gm import PAPER
from halfseen.studies.a1gm.kl_wnmf import kl_wnmf, with_weights
from halfseen.studies.base import Column, Goal, Picture, Result, Study, Table, Tell, tell_nobody
from halfseen.studies.timing import median_seconds

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: The share of cells that are holes: 5 % in the paper's (b), not given for its (a).
SHARE = 0.05
SIZES, TRIALS = (100, 200, 400, 700, 1000, 1400, 2000, 2800, 4000), 5
#: What a quick run does.
SMALL_SIZES, SMALL_TRIALS = (100, 200, 300), 2

METHODS = ("A1GM", "exact", "KL-WNMF")

#: Markers and lines as in the paper; colours of Okabe and Ito that colour-blind readers can tell apart.
STYLES: dict[str, dict[str, Any]] = {
    "A1GM": {"marker": "^", "linestyle": ":", "color": "#0072B2"},
    "exact": {"marker": "s", "linestyle": "-", "color": "#009E73"},
    "KL-WNMF": {"marker": "o", "linestyle": "--", "color": "#D55E00"},
}

#: Draws which rows and which columns hold holes where they meet, out of so many, so many.
Pattern = Callable[[np.random.Generator, int, int], tuple[Array, Array]]


class Trials(NamedTuple):
    """The trials with matrices of one size: seconds by method, and the iterations of KL-WNMF."""

    seconds: Mapping[str, Sequence[float]]
    n_iter: Sequence[int]

    def times_as_fast(self, method: str) -> float:
        """As KL-WNMF, by the means."""
        return mean(self.seconds["KL-WNMF"]) / mean(self.seconds[method])


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

COLUMNS = (
    Column("N"),
    *(Column(name, f"{method} ms", ",.2f") for method in METHODS for name in ("mean", "S.D.")),
    Column("iterations", "KL-WNMF"),
    *(Column(method, "times as fast as KL-WNMF", ".1f") for method in METHODS[:2]),
)


class Figure5(Study):
    name = "a1gm/figure5"
    paper = PAPER
    title = "Run time of A1GM, of the exact solution and of KL-WNMF against the size of a matrix with grid-like holes"

    def run(self, *, quick: bool = False, seed: int = 0, tell: Tell = tell_nobody) -> Result:
        sizes, trials = (SMALL_SIZES, SMALL_TRIALS) if quick else (SIZES, TRIALS)
        series: dict[str, dict[int, Trials]] = {}
        for name, (words, pattern) in PATTERNS.items():
            series[name] = {}
            for size in sizes:
                tell(f"{words}, N = {size}")
                series[name][size] = _trials(pattern, size, trials, seed)
        # the paper: A1GM is an order of magnitude faster than KL-WNMF; seen where matrices are largest
        goals = [
            Goal(f"({name}) A1GM ten times as fast as KL-WNMF at N = {size}", made.times_as_fast("A1GM") >= 10)
            for name, by_size in series.items()
            for size, made in [max(by_size.items())]
        ]
        tables = [_table(name, by_size, trials) for name, by_size in series.items()]
        pictures = [Picture(name, _title(name), partial(draw, name, by_size)) for name, by_size in series.items()]
        return Result(_summary(series, sizes), tables, pictures, [] if quick else goals)


def with_holes(pattern: Pattern, size: int, random: np.random.Generator) -> Array:
    """A square matrix, uniform in (0, 1], with NaN in a block of rows and columns that hold `SHARE` of the cells."""
    X = 1.0 - random.random((size, size))
    X[np.ix_(*pattern(random, size, round(size * SHARE**0.5)))] = np.nan
    return X


def _trials(pattern: Pattern, size: int, trials: int, seed: int) -> Trials:
    randoms = [np.random.default_rng([seed, size, trial]) for trial in range(trials)]
    seconds, n_iter = zip(*(_trial(with_holes(pattern, size, random), seed) for random in randoms), strict=True)
    return Trials(dict(zip(METHODS, zip(*seconds, strict=True), strict=True)), n_iter)


def _trial(X: Array, seed: int) -> tuple[list[float], int]:
    """Seconds of each method in the order of `METHODS`, and the iterations of KL-WNMF."""
    a1gm, exact = (halfseen.RankOneNMF(method=method) for method in ("a1gm", "exact"))
    works = [lambda: a1gm.fit(X), lambda: exact.fit(X), lambda: kl_wnmf(with_weights(X), seed)]
    return median_seconds(works, at_least=1, until=0.05), kl_wnmf(with_weights(X), seed).n_iter


def _title(name: str) -> str:
    return f"({name}) {PATTERNS[name][0]}, {100 * SHARE:g} % of the cells"


def _table(name: str, by_size: Mapping[int, Trials], trials: int) -> Table:
    rows = []
    for size, made in by_size.items():
        times = [1000 * value for one in METHODS for value in (mean(made.seconds[one]), stdev(made.seconds[one]))]
        rows.append([size, *times, _span(made.n_iter), *map(made.times_as_fast, METHODS[:2])])
    footnote = (
        f"Mean and standard deviation of {trials} trials, each with a matrix of its own, uniform in (0, 1]. All three "
        "start from an array with NaN; A1GM and exact have as many threads as processors "
        f"({os.cpu_count()}). BLAS had one thread. The paper prints no numbers for this figure."
    )
    return Table(_title(name), COLUMNS, rows, [footnote], name)


def _span(numbers: Iterable[int]) -> str:
    numbers = sorted(numbers)
    return f"{numbers[0]}" if numbers[0] == numbers[-1] else f"{numbers[0]} to {numbers[-1]}"


def _summary(series: Mapping[str, Mapping[int, Trials]], sizes: Sequence[int]) -> str:
    ends = []
    for size in (sizes[-1], sizes[0]):
        ratios = {
            method: " and ".join(f"{by_size[size].times_as_fast(method):.1f}" for by_size in series.values())
            for method in METHODS[:2]
        }
        ends.append(f"at N = {size} " + ", ".join(f"{method} {ratio}" for method, ratio in ratios.items()))
    iterations = _span(n for by_size in series.values() for made in by_size.values() for n in made.n_iter)
    return (
        f"Times as fast as KL-WNMF, in (a) and in (b): {'; '.join(ends)} (paper: A1GM an order of magnitude). "
        f"KL-WNMF took {iterations} iterations (paper: 2 to 4)."
    )


def draw(name: str, by_size: Mapping[int, Trials], figure: Figure) -> None:
    """Mean run time with its standard deviation against N, both axes logarithmic."""
    axes = figure.add_subplot()
    for method, style in STYLES.items():
        seconds = [made.seconds[method] for made in by_size.values()]
        means, spreads = [mean(one) for one in seconds], [stdev(one) for one in seconds]
        axes.errorbar(list(by_size), means, spreads, label=method, capsize=3, **style)
    axes.set(xscale="log", yscale="log", title=_title(name), xlabel="number of rows and of columns, N",
             ylabel="run time in seconds")  # fmt: skip
    axes.set_xticks(list(by_size), [f"{size:,}" for size in by_size])
    axes.xaxis.minorticks_off()
    axes.legend()


STUDIES = (Figure5(),)
