"""Figure 4: a posterior predictive check. Does a fitted model draw data with as many cells at each level?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

import halfseen
from halfseen.arrays import Array
from halfseen.errors import DataError
from halfseen.io import split_cells
from halfseen.observed import Observed
from halfseen.studies.base import Column, Picture, Result, Study, Table, Tell, tell_nobody
from halfseen.studies.ordnmf import PAPER
from halfseen.studies.ordnmf.methods import FULL, QUICK
from halfseen.studies.ordnmf.protocol import TEST_SHARE
from halfseen.studies.ordnmf.sets import EDGES, FILMS, MOVIELENS_20M, PLAYS, TASTE_PROFILE, Prepared, at_hand, quantized

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Components of every model, and data sets drawn by each, neither given in the paper; those of a quick run.
COMPONENTS, DRAWS = 100, 3
QUICK_COMPONENTS, QUICK_DRAWS = 5, 2

TRUTH = "truth"
HIGHEST = 10
#: Colours of Okabe and Ito, which colour-blind readers can tell apart: blue, red and orange as in the paper.
COLOURS = {TRUTH: "#0072B2", "OrdNMF": "#D55E00", "dcPF": "#E69F00"}


class Histogram(NamedTuple):
    """Cells at the levels 1..10, and the share of all cells that are above 0."""

    cells: Array
    above_zero: float

    @classmethod
    def of(cls, levels: Sequence[Array], grid: int) -> Histogram:
        """The mean over data sets, whose levels above 0 are given, on a grid of so many cells."""
        cells = np.mean([np.bincount(one.astype(int), minlength=HIGHEST + 1)[1:] for one in levels], axis=0)
        return cls(cells, float(cells.sum() / grid))


class Panel(NamedTuple):
    """One of the figure's two histograms; models by name: estimator, what it is fitted to, levels of what it draws."""

    name: str
    of_the_paper: Prepared
    instead: Prepared
    level_names: Sequence[str]
    levels_of: Callable[[Observed], Observed]
    models: Mapping[str, tuple[Callable[..., Any], Callable[[Observed], Observed], Callable[[Array], Array]]]


def _as_they_are(values: Any) -> Any:
    return values


PLAYED = [*(f"{a}" if b == a + 1 else f"{a} to {b - 1}" for a, b in pairwise(EDGES)), "501 and more"]
PANELS = (
    Panel(
        "plays", TASTE_PROFILE, PLAYS[0], PLAYED, quantized,
        {
            "OrdNMF": (halfseen.OrdNMF, quantized, _as_they_are),
            "dcPF": (halfseen.CompoundPoisson, _as_they_are, lambda counts: np.searchsorted(EDGES, counts, "right")),
        },
    ),
    Panel(
        "films", MOVIELENS_20M, FILMS[0], [f"{level / 2:g} stars" for level in range(1, HIGHEST + 1)], _as_they_are,
        {"OrdNMF": (halfseen.OrdNMF, _as_they_are, _as_they_are)},
    ),
)  # fmt: skip


class Figure4(Study):
    name = "ordnmf/figure4"
    paper = PAPER
    title = "Levels of data drawn by OrdNMF and dcPF beside those of the data they were fitted to"
    needs = tuple(one.name for panel in PANELS for one in (panel.of_the_paper, panel.instead))

    def run(self, *, quick: bool = False, seed: int = 0, tell: Tell = tell_nobody) -> Result:
        tables, pictures, sentences = [], [], []
        absent: dict[str, DataError] = {}
        for panel in PANELS:
            of = at_hand(panel.of_the_paper, [panel.instead], self.absent())[0]
            of = of.part() if quick else of
            try:
                raw = of.load(seed)
            except DataError as error:
                absent[panel.name] = error
                continue
            found = _histograms(panel, raw, of, quick, seed, tell)
            tables.append(_table(panel, of, found, quick))
            pictures.append(Picture(panel.name, of.title, partial(draw, panel, of, found)))
            sentences.append(_sentence(of, found))
        if not tables:
            raise next(iter(absent.values()))
        if absent:
            sentences.append(f"Left out, for want of data: {', '.join(absent)}.")
            tables[0] = replace(tables[0], footnotes=[*tables[0].footnotes, *map(str, absent.values())])
        return Result(" ".join(sentences), tables, pictures)


def _histograms(panel: Panel, raw: Observed, of: Prepared, quick: bool, seed: int, tell: Tell) -> dict[str, Histogram]:
    """By who drew the levels, the truth first."""
    train, _ = split_cells(raw, TEST_SHARE, random_state=seed)
    grid = raw.shape[0] * raw.shape[1]
    found = {TRUTH: Histogram.of([panel.levels_of(train).values], grid)}
    effort, K, draws = (QUICK, QUICK_COMPONENTS, QUICK_DRAWS) if quick else (FULL, COMPONENTS, DRAWS)
    for name, (make, fitted_to, levels_of) in panel.models.items():
        tell(f"{of.title}: {name}, K {K}")
        model = make(K, random_state=seed, tol=effort.tol, max_iter=effort.max_iter).fit(fitted_to(train))
        drawn = [levels_of(one.data) for one in model.sample(draws, random_state=seed)]
        found[name] = Histogram.of(drawn, grid)
    return found


def distance(a: Array, b: Array) -> float:
    """Half the sum of the differences between the shares of levels: 0 for the same, 1 for nothing in common."""
    return float(np.abs(a / a.sum() - b / b.sum()).sum() / 2)


def _table(panel: Panel, of: Prepared, found: Mapping[str, Histogram], quick: bool) -> Table:
    columns = [Column("level"), Column("values"), *(Column(name, "cells", ",.0f") for name in found)]
    levels = zip(range(1, HIGHEST + 1), panel.level_names, *(one.cells for one in found.values()), strict=True)
    rows: list[Sequence[Any]] = [list(row) for row in levels]
    rows.append(["all", "", *(one.cells.sum() for one in found.values())])
    footnote = (
        f"Data: {of.words}. Training cells, {1 - TEST_SHARE:.0%} of all, and the mean of "
        f"{QUICK_DRAWS if quick else DRAWS} data sets drawn with K = {QUICK_COMPONENTS if quick else COMPONENTS}: "
        "factors from their posteriors, then every cell. The paper prints no numbers for this figure."
    )
    return Table(of.title, columns, rows, [_sentence(of, found), footnote], panel.name)


def _sentence(of: Prepared, found: Mapping[str, Histogram]) -> str:
    truth = found[TRUTH]
    drawn = "; ".join(
        f"{name} {one.above_zero:.2%}, and {distance(one.cells, truth.cells):.1%} of them at other levels"
        for name, one in found.items()
        if name != TRUTH
    )
    return f"{of.title}: {truth.above_zero:.2%} of the cells are above 0, of those drawn by {drawn}."


def draw(panel: Panel, of: Prepared, found: Mapping[str, Histogram], figure: Figure) -> None:
    """Bars side by side for every level, the share of cells above 0 in the legend, as in the paper."""
    axes = figure.add_subplot()
    levels, width = np.arange(1, HIGHEST + 1), 0.8 / len(found)
    for place, (name, one) in enumerate(found.items()):
        middles = levels + (place - (len(found) - 1) / 2) * width
        axes.bar(middles, one.cells, width, color=COLOURS[name], label=f"{name} ({one.above_zero:.2%})")
    axes.set(title=of.title, xlabel="level", ylabel="cells")
    axes.set_xticks(levels, panel.level_names, rotation=45, ha="right")
    axes.legend()


STUDIES = (Figure4(),)
