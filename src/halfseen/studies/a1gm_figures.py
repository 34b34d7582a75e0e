"""Figures 4 and 5 of the A1GM paper: its example, and run time against the size of a matrix with grid-like holes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from statistics import mean, median, stdev
from typing import Any, NamedTuple

import numpy as np

import halfseen
from halfseen.arrays import Array
from halfseen.studies import framework
from halfseen.studies.framework import Column, Figure, Goal, Picture, Progress, Result, RunSettings, Study, Table
from halfseen.studies.kl_wnmf import fit_seconds, kl_wnmf, with_weights

#: The input of Figure 4, with its two holes, and the factors that it prints to two significant digits.
EXAMPLE = (
    (2, 3, 3, 1, 4),
    (3, 4, 1, np.nan, 1),
    (3, 9, 1, 1, 3),
    (5, np.nan, 3, 4, 1),
    (1, 4, 2, 2, 3),
)
EXAMPLE_FACTORS = {
    "w": ("1.5", "1.3", "1.9"),
    "h": ("1.8", "1.6", "1.3"),
    "a": ("1.9", "1.1"),
    "b": ("0.85", "3.4"),
}

#: Share of cells that are holes: 5 % in the paper's (b), not given for its (a).
SHARE = 0.05
#: The authors' sizes are 10 to 1995.
SIZES, TRIALS = (10, 20, 50, 100, 200, 500, 1000, 2000, 4000), 10
QUICK_SIZES, QUICK_TRIALS = (10, 100, 200), 2

METHODS = ("A1GM", "exact", "KL-WNMF")
#: Markers and lines as in the paper.
STYLES: dict[str, dict[str, Any]] = {
    "A1GM": {"marker": "^", "linestyle": ":", "color": framework.BLUE},
    "exact": {"marker": "s", "linestyle": "-", "color": framework.GREEN},
    "KL-WNMF": {"marker": "o", "linestyle": "--", "color": framework.VERMILION},
}
COLUMNS = (
    Column("N"),
    Column("holes", form=".2%"),
    *(Column(name, f"{method} ms", ",.4f") for method in METHODS for name in ("mean", "S.D.")),
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


#: What the paper says of each pattern, and how many times as fast A1GM must be for that.
CLAIMS = {
    "a": ("A1GM is an order of magnitude faster than the gradient method", 10),
    "b": ("A1GM is always faster than the gradient method", 1),
}


class Trials(NamedTuple):
    """Trials with matrices of one size: seconds by method, and the iterations of KL-WNMF."""

    seconds: Mapping[str, Sequence[float]]
    n_iter: Sequence[int]

    def speedups(self, method: str, other: str = "KL-WNMF") -> list[float]:
        """Run time of the other method over that of the method, for each trial."""
        return [theirs / ours for ours, theirs in zip(self.seconds[method], self.seconds[other], strict=True)]

    def speedup(self, method: str, other: str = "KL-WNMF") -> float:
        """Median of the ratios over the trials."""
        return median(self.speedups(method, other))


def with_holes(pattern: Pattern, size: int, random: np.random.Generator) -> Array:
    """A square matrix, uniform in (0, 1], with NaN where as many rows and columns meet as hold about `SHARE` of it."""
    X = 1.0 - random.random((size, size))
    X[np.ix_(*pattern(random, size, block_of_holes(size)))] = np.nan
    return X


def block_of_holes(size: int) -> int:
    """Rows and columns of the block of holes: the whole number whose square comes near `SHARE` of the cells."""
    return round(size * SHARE**0.5)


def run_trials(pattern: Pattern, size: int, n_trials: int, seed: int) -> Trials:
    """Time all methods on one matrix per trial."""
    seconds, n_iter = [], []
    for trial in range(n_trials):
        X = with_holes(pattern, size, np.random.default_rng([seed, size, trial]))
        seconds.append(fit_seconds(X, seed, at_least=3, until=0.05))
        n_iter.append(kl_wnmf(with_weights(X), seed).n_iter)
    return Trials(dict(zip(METHODS, zip(*seconds, strict=True), strict=True)), n_iter)


class Figure4(Study):
    """The example: holes added, lines with holes moved to the end, Theorem 1, and the lines moved back."""

    name = "a1gm/figure4"
    title = "The steps of A1GM on the paper's example of five rows and five columns"

    def compute(self, settings: RunSettings, progress: Progress) -> Result:
        X = np.array(EXAMPLE)
        holes = np.isnan(X)
        rows, columns = (lines_to_end(holes.any(axis=axis)) for axis in (1, 0))
        n, m = ((~holes.any(axis=axis)).sum() for axis in (1, 0))
        grid_like = X.copy()
        grid_like[np.ix_(rows[n:], columns[m:])] = np.nan
        gathered = grid_like[np.ix_(rows, columns)]
        factors = halfseen.rank_one_nmmf(gathered[:n, :m], gathered[n:, :m], gathered[:n, m:])
        c, d = np.empty(len(rows)), np.empty(len(columns))
        c[rows], d[columns] = np.append(factors.w, factors.a), np.append(factors.h, factors.b)
        result = np.outer(c, d)

        places = {"w": rows[:n], "a": rows[n:], "h": columns[:m], "b": columns[m:]}
        table = [
            [name, place + 1, theirs, ours]
            for name, printed in EXAMPLE_FACTORS.items()
            for place, theirs, ours in zip(places[name].tolist(), printed, getattr(factors, name), strict=True)
        ]
        goals = [
            Goal.claim(
                f"Figure 4: {name} = ({', '.join(printed)})",
                all(
                    float(f"{ours:.2g}") == float(theirs)
                    for ours, theirs in zip(getattr(factors, name), printed, strict=True)
                ),
            )
            for name, printed in EXAMPLE_FACTORS.items()
        ]
        steps = {"Input": X, "Step 1": grid_like, "Step 2": gathered, "Step 3": result}
        matrices = [
            [step, *(None if np.isnan(value) else f"{value:.2g}" for value in row)]
            for step, matrix in steps.items()
            for row in matrix
        ]
        tables = [
            Table("Theorem 1", [*map(Column, ("factor", "line", "paper")), Column("ours", form=".4f")], table,
                  ["Line: row (w, a) or column (h, b) of the input, from 1."], "factors"),
            Table("Steps", [Column("step"), *(Column(str(1 + j)) for j in range(X.shape[1]))], matrices,
                  ["Step 2 has the lines in the order of Algorithm 1, step 3 in that of the input."], "steps"),
        ]  # fmt: skip
        pictures = [Picture("steps", self.title, partial(draw_steps, steps))]
        reached = sum(goal.state == framework.PASS for goal in goals)
        summary = f"{reached} of {len(EXAMPLE_FACTORS)} factors have the digits that the figure prints."
        return Result(summary, tables, pictures, goals)


def lines_to_end(incomplete: Array) -> Array:
    """Order of lines in Algorithm 1: those with holes swap places, in turn, with complete ones among the last."""
    order, first = np.arange(incomplete.size), incomplete.size - np.count_nonzero(incomplete)
    from_front, from_end = np.flatnonzero(incomplete[:first]), first + np.flatnonzero(~incomplete[first:])
    order[from_front], order[from_end] = from_end, from_front
    return order


def draw_steps(steps: Mapping[str, Array], figure: Figure) -> None:
    """The matrices of the steps side by side, holes hatched."""
    for place, (name, matrix) in enumerate(steps.items(), 1):
        axes = figure.add_subplot(1, len(steps), place)
        axes.set(title=name, xlim=(0, matrix.shape[1]), ylim=(matrix.shape[0], 0), xticks=[], yticks=[], aspect="equal")
        for (i, j), value in np.ndenumerate(matrix):
            if np.isnan(value):
                axes.fill([j, j + 1, j + 1, j], [i, i, i + 1, i + 1], facecolor="none", edgecolor="grey", hatch="xxx")
            else:
                axes.text(j + 0.5, i + 0.5, f"{value:.2g}", ha="center", va="center")


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
        goals = []
        for name, by_size in series.items():
            words, least = CLAIMS[name]
            for size, trials in by_size.items():
                ratios = trials.speedups("A1GM")
                found = (
                    f"{median(ratios):.1f} times as fast ({min(ratios):.1f} to {max(ratios):.1f} in {n_trials} trials)"
                )
                goals.append(Goal.claim(f"({name}) {words}, at N = {size}: {found}", median(ratios) > least))
            taken = [n for trials in by_size.values() for n in trials.n_iter]
            goals.append(
                Goal.claim(
                    f"({name}) KL-WNMF needs between 2 and 4 iterations: {_span(taken)} here", {*taken} <= {2, 3, 4}
                )
            )
        tables = [_table(name, by_size, n_trials) for name, by_size in series.items()]
        pictures = [Picture(name, _title(name), partial(draw, name, by_size)) for name, by_size in series.items()]

        ends = []
        for size in (sizes[-1], sizes[0]):
            speedups = (
                f"{method} {' and '.join(f'{by_size[size].speedup(method):.1f}' for by_size in series.values())}"
                for method in METHODS[:2]
            )
            ends.append(f"at N = {size} {', '.join(speedups)}")
        n_faster = {
            (method, other): " and ".join(
                str(sum(trials.speedup(method, other) > 1 for trials in by_size.values()))
                for by_size in series.values()
            )
            for method, other in (("A1GM", "KL-WNMF"), ("exact", "KL-WNMF"), ("exact", "A1GM"))
        }
        iterations = _span(n for by_size in series.values() for trials in by_size.values() for n in trials.n_iter)
        summary = (
            f"Times as fast as KL-WNMF, in (a) and in (b): {'; '.join(ends)} (paper: A1GM an order of magnitude). "
            f"A1GM is faster than KL-WNMF at {n_faster['A1GM', 'KL-WNMF']} of {len(sizes)} sizes, exact at "
            f"{n_faster['exact', 'KL-WNMF']}; exact is faster than A1GM at {n_faster['exact', 'A1GM']}. "
            f"KL-WNMF took {iterations} iterations (paper: 2 to 4)."
        )
        return Result(summary, tables, pictures, goals)


def _title(name: str) -> str:
    return f"({name}) {PATTERNS[name][0]}, about {100 * SHARE:g} % of the cells"


def _span(numbers: Iterable[int]) -> str:
    numbers = sorted(numbers)
    return f"{numbers[0]}" if numbers[0] == numbers[-1] else f"{numbers[0]} to {numbers[-1]}"


def _table(name: str, by_size: Mapping[int, Trials], n_trials: int) -> Table:
    rows = []
    for size, trials in by_size.items():
        times = [1000 * value for one in METHODS for value in (mean(trials.seconds[one]), stdev(trials.seconds[one]))]
        rows.append(
            [size, (block_of_holes(size) / size) ** 2, *times, _span(trials.n_iter), *map(trials.speedup, METHODS[:2])]
        )
    footnote = (
        f"Mean and standard deviation of {n_trials} trials, each with a matrix of its own, uniform in (0, 1]. Times as "
        "fast: the median of the ratios of the trials. Holes: as many rows as columns, so that small N come only near "
        f"{100 * SHARE:g} %. All three methods start from an array with NaN and have one thread. A1GM and exact are "
        "compiled, KL-WNMF is NumPy; in the paper both are Julia. It prints no numbers for this figure."
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


STUDIES = (Figure4(), Figure5())
