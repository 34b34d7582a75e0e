"""What Figures 4.1 to 4.3 have in common: a small matrix, all of it seen, and its error as the fit goes on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

import halfseen
from halfseen.arrays import Array
from halfseen.data import Observed, observe
from halfseen.studies.base import Column, Goal, Picture, Result, Study, Table, Tell, tell_nobody
from halfseen.studies.grr import PAPER
from halfseen.studies.grr.matrices import Family
from halfseen.studies.grr.printed import LINEAR, ROUND, ROUND_FIXED, SIGMOID, SIGMOID_FIXED
from halfseen.studies.grr.protocol import Method, rmse, spread, squared_errors
from halfseen.studies.grr.styles import COLOURS, MARKERS
from halfseen.studies.grr.variants import ONE_THREAD, fixed_thresholds

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIZE = 10
ITERATIONS = (1, 2, 3, 5, 8, 12, 20, 40, 100, 200)
SEEDS = 10
QUICK_ITERATIONS, QUICK_SEEDS = (1, 10, 100), 2
#: Next to nothing: the matrix is to be met, not predicted.
L2 = 1e-5

#: RMSE of each method: an array of seeds by iterations.
Found = Mapping[str, Array]


class RecoveryFigure(Study):
    """RMSE of the reconstruction against iterations."""

    paper = PAPER
    family: ClassVar[Family]

    def run(self, *, quick: bool = False, seed: int = 0, tell: Tell = tell_nobody) -> Result:
        iterations, seeds = (QUICK_ITERATIONS, QUICK_SEEDS) if quick else (ITERATIONS, SEEDS)
        found: dict[str, Array] = {}
        for method in methods(self.family):
            tell(method.name)
            found[method.name] = np.array([self._errors(method, iterations, seed + draw) for draw in range(seeds)])
        title = f"{self.family.title}, {SIZE} x {SIZE}, k = {self.family.k}"
        picture = Picture("", title, partial(draw, title, iterations, found))
        goals = [] if quick else _goals(found)
        return Result(_summary(found), [_table(title, iterations, found)], [picture], goals)

    def _errors(self, method: Method, iterations: Sequence[int], seed: int) -> list[float]:
        """RMSE after so many iterations, each time from the same start."""
        cells: Observed = observe(self.family.levels(SIZE, seed).astype(np.float64))
        models = (method.fit(cells, {"max_iter": number}, seed) for number in iterations)
        return [rmse(squared_errors(model, cells)) for model in models]


def methods(family: Family) -> list[Method]:
    """The thesis's five, without biases."""
    fixed = fixed_thresholds(family)
    settings: dict[str, dict[str, Any]] = {
        LINEAR: {"loss": "linear"},
        SIGMOID: {"loss": "multi-sigmoid"},
        SIGMOID_FIXED: {"loss": "multi-sigmoid", **fixed},
        ROUND: {"loss": "round"},
        ROUND_FIXED: {"loss": "round", **fixed},
    }
    make = partial(halfseen.RoundMF, family.k, biases=False, l2=L2, tol=0.0, n_jobs=ONE_THREAD)
    return [Method(name, partial(make, **setting)) for name, setting in settings.items()]


def _table(title: str, iterations: Sequence[int], found: Found) -> Table:
    columns = [Column("iterations"), *(Column(part, name, ".4f") for name in found for part in ("mean", "S.D."))]
    rows: list[Sequence[Any]] = [
        [
            number,
            *(value for errors in found.values() for value in (float(errors[:, at].mean()), spread(errors[:, at]))),
        ]
        for at, number in enumerate(iterations)
    ]
    rows.append(["seeds at 0", *(value for errors in found.values() for value in (exact(errors), None))])
    seeds = len(next(iter(found.values())))
    footnotes = [
        f"RMSE over all cells, which are all seen; mean and standard deviation of {seeds} seeds, each with a start "
        "(and a random matrix) of its own. An iteration moves all rows, all columns and the thresholds once; those of "
        "Round begin where Multi-sigmoid has come to after as many. The last line: how many seeds ended at exactly 0.",
        "The thesis prints no numbers for this figure. It says that Round converges to zero, and that Multi-sigmoid "
        "with learned thresholds is ahead of Linear.",
    ]
    return Table(f"RMSE of the reconstruction: {title}", columns, rows, footnotes)


def exact(errors: Array) -> str:
    """How many seeds end without any error."""
    return f"{int((errors[:, -1] == 0).sum())} of {len(errors)}"


def _goals(found: Found) -> list[Goal]:
    """What the thesis says of the figure."""
    ends = {name: errors[:, -1] for name, errors in found.items()}
    return [
        Goal(f"{ROUND} ends at 0 for every seed", bool((ends[ROUND] == 0).all())),
        Goal(f"{SIGMOID} ends below {LINEAR}", bool(ends[SIGMOID].mean() < ends[LINEAR].mean())),
    ]


def _summary(found: Found) -> str:
    told = "; ".join(
        f"{name} {errors[:, -1].mean():.3f} (0 for {exact(errors)} seeds)" for name, errors in found.items()
    )
    return f"RMSE in the end: {told}."


def draw(title: str, iterations: Sequence[int], found: Found, figure: Figure) -> None:
    """Mean RMSE against iterations, a band of a standard deviation around it."""
    axes = figure.add_subplot()
    for (name, errors), colour, marker in zip(found.items(), COLOURS, MARKERS, strict=False):
        mean, width = errors.mean(axis=0), np.array([spread(each) or 0.0 for each in errors.T])
        axes.plot(iterations, mean, color=colour, marker=marker, label=name)
        axes.fill_between(
            iterations, np.maximum(mean - width, 0.0), mean + width, color=colour, alpha=0.15, linewidth=0
        )
    axes.set(title=title, xscale="log", xlabel="iterations", ylabel="RMSE of the reconstruction")
    axes.set_xticks([1, 10, 100], ["1", "10", "100"])
    axes.set_ylim(bottom=-0.01)
    axes.legend()
