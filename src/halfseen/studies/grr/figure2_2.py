"""Figure 2.2: how badly matrices of generalized round-rank 2 and less are approximated by such of low linear rank."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from halfseen.arrays import Array
from halfseen.rank import approximation_errors
from halfseen.studies.base import Column, Picture, Result, Study, Table, Tell, tell_nobody
from halfseen.studies.grr import PAPER
from halfseen.studies.grr.matrices import BAND, IDENTITY, RANDOM, RANDOM_SIGNS, UPPER_TRIANGLE, Family
from halfseen.studies.grr.styles import COLOURS, MARKERS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FAMILIES = (IDENTITY, BAND, UPPER_TRIANGLE, RANDOM_SIGNS, RANDOM)
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
        picture = Picture("", f"Best approximations of rank k, size {size} x {size}", partial(draw, errors))
        return Result(_summary(errors, size), [_table(errors, size, seeds)], [picture])


def relative_errors(family: Family, size: int, seed: int) -> Array:
    """min over Y' of rank k of  ||Y - Y'||_F^2 / ||Y||_F^2,  k = 0..n  (Theorem 2.2.2)."""
    errors = approximation_errors(family.levels(size, seed))
    return errors / errors[0]


def _table(errors: Mapping[str, Array], size: int, seeds: int) -> Table:
    ranks = sorted({round(share * size) for share in SHARES})
    columns = [Column("k"), *(Column(part, title, ".4f") for title in errors for part in ("mean", "S.D."))]
    rows: list[Sequence[Any]] = [[k, *_means_and_spreads(errors, k)] for k in ranks]
    footnote = (
        f"The squared error of the best approximation of rank k, as a part of the squared norm; {size} x {size}. "
        f"Random matrices: mean and standard deviation of {seeds}. All have a generalized round-rank of 2 or less: "
        "there the error is 0 at k = 2. The thesis prints no numbers for this figure."
    )
    return Table(f"Relative error of the best approximation of rank k, {size} x {size}", columns, rows, [footnote])


def _means_and_spreads(errors: Mapping[str, Array], k: int) -> list[float]:
    return [float(value) for each in errors.values() for value in (each[:, k].mean(), each[:, k].std(ddof=1))]


def _summary(errors: Mapping[str, Array], size: int) -> str:
    at_two = "; ".join(f"{title} {each[:, 2].mean():.1%}" for title, each in errors.items())
    return (
        f"With linear rank 2 there remains of the squared norm, at size {size} x {size}: {at_two}. With GRR 2: nothing."
    )


def draw(errors: Mapping[str, Array], figure: Figure) -> None:
    """Error against rank, a line a matrix."""
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


STUDY = Figure2_2()
