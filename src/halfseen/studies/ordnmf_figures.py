"""Figure 4 of the OrdNMF paper: a posterior predictive check of the number of cells at each level."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

import halfseen
from halfseen.arrays import Array
from halfseen.errors import DataError
from halfseen.io import split_cells
from halfseen.observed import Observed
from halfseen.studies import framework
from halfseen.studies import ordnmf_methods as ordnmf
from halfseen.studies.framework import Column, Figure, Picture, Progress, Result, RunSettings, Study, Table
from halfseen.studies.ordnmf_methods import EDGES, FULL, QUICK, TEST_SHARE, Dataset, quantize

#: Components of every model, and data sets drawn from each, neither given in the paper.
COMPONENTS, DRAWS = 100, 3
QUICK_COMPONENTS, QUICK_DRAWS = 5, 2

TRUTH = "truth"
HIGHEST = 10
#: Blue, red and orange as in the paper.
COLOURS = {TRUTH: framework.BLUE, "OrdNMF": framework.VERMILION, "dcPF": framework.ORANGE}


class LevelHistogram(NamedTuple):
    """Cells at the levels 1..10, and the share of all cells that are above 0."""

    cells: Array
    above_zero: float

    @classmethod
    def from_levels(cls, levels: Sequence[Array], n_cells: int) -> LevelHistogram:
        """Mean over data sets, given by their levels above 0, of matrices with this many cells."""
        cells = np.mean([np.bincount(one.astype(int), minlength=HIGHEST + 1)[1:] for one in levels], axis=0)
        return cls(cells, float(cells.sum() / n_cells))


class HistogramPanel(NamedTuple):
    """One of the figure's two histograms. `models` by name: estimator, cells to fit, levels of what it draws."""

    name: str
    dataset: Dataset
    substitute: Dataset
    level_names: Sequence[str]
    levels_of: Callable[[Observed], Observed]
    models: Mapping[str, tuple[Callable[..., Any], Callable[[Observed], Observed], Callable[[Array], Array]]]


def _same(values: Any) -> Any:
    return values


PANELS = (
    HistogramPanel(
        "plays", ordnmf.TASTE_PROFILE, ordnmf.PLAYS[0],
        [*(f"{a}" if b == a + 1 else f"{a} to {b - 1}" for a, b in pairwise(EDGES)), "501 and more"], quantize,
        {
            "OrdNMF": (halfseen.OrdNMF, quantize, _same),
            "dcPF": (halfseen.CompoundPoisson, _same, lambda counts: np.searchsorted(EDGES, counts, "right")),
        },
    ),
    HistogramPanel(
        "films", ordnmf.MOVIELENS_20M, ordnmf.FILMS[0],
        [f"{level / 2:g} stars" for level in range(1, HIGHEST + 1)], _same, {"OrdNMF": (halfseen.OrdNMF, _same, _same)},
    ),
)  # fmt: skip


class Figure4(Study):
    """A histogram of plays and one of films."""

    name = "ordnmf/figure4"
    title = "Levels of data drawn by OrdNMF and dcPF beside those of the data they were fitted to"
    needs = tuple(dataset.name for panel in PANELS for dataset in (panel.dataset, panel.substitute))

    def compute(self, settings: RunSettings, progress: Progress) -> Result:
        quick, seed = settings.quick, settings.seed
        config, K, draws = (QUICK, QUICK_COMPONENTS, QUICK_DRAWS) if quick else (FULL, COMPONENTS, DRAWS)
        tables, pictures, sentences = [], [], []
        absent: dict[str, DataError] = {}
        for panel in PANELS:
            dataset = ordnmf.available(panel.dataset, [panel.substitute], self.absent())[0]
            dataset = dataset.sample() if quick else dataset
            try:
                raw = dataset.load(seed)
            except DataError as error:
                absent[panel.name] = error
                continue
            train, _ = split_cells(raw, TEST_SHARE, random_state=seed)
            n_cells = raw.shape[0] * raw.shape[1]
            histograms = {TRUTH: LevelHistogram.from_levels([panel.levels_of(train).values], n_cells)}
            for name, (make, cells_of, levels_of) in panel.models.items():
                progress(f"{dataset.title}: {name}, K {K}")
                model = make(K, random_state=seed, tol=config.tol, max_iter=config.max_iter).fit(cells_of(train))
                drawn = [levels_of(one.data) for one in model.sample(draws, random_state=seed)]
                histograms[name] = LevelHistogram.from_levels(drawn, n_cells)

            truth = histograms[TRUTH]
            shares = "; ".join(
                f"{name} {one.above_zero:.2%}, and {distance(one.cells, truth.cells):.1%} of them at other levels"
                for name, one in histograms.items()
                if name != TRUTH
            )
            title = dataset.title
            sentences.append(f"{title}: {truth.above_zero:.2%} of the cells are above 0, of those drawn by {shares}.")
            columns = [Column("level"), Column("values"), *(Column(name, "cells", ",.0f") for name in histograms)]
            counts = [one.cells for one in histograms.values()]
            levels = range(1, HIGHEST + 1)
            rows: list[Sequence[Any]] = [list(row) for row in zip(levels, panel.level_names, *counts, strict=True)]
            rows.append(["all", "", *(one.sum() for one in counts)])
            footnote = (
                f"Data: {dataset.words}. Training cells, {1 - TEST_SHARE:.0%} of all, and the mean of "
                f"{draws} data sets drawn with K = {K}: "
                "factors from their posteriors, then every cell. The paper prints no numbers for this figure."
            )
            tables.append(Table(title, columns, rows, [sentences[-1], footnote], panel.name))
            pictures.append(Picture(panel.name, title, partial(draw, title, panel.level_names, histograms)))
        if not tables:
            raise next(iter(absent.values()))
        if absent:
            sentences.append(f"Left out, for want of data: {', '.join(absent)}.")
            tables[0] = replace(tables[0], footnotes=[*tables[0].footnotes, *map(str, absent.values())])
        return Result(" ".join(sentences), tables, pictures)


def distance(a: Array, b: Array) -> float:
    """Total variation distance of two histograms: 0 for the same shares, 1 for disjoint levels."""
    return float(np.abs(a / a.sum() - b / b.sum()).sum() / 2)


def draw(title: str, names: Sequence[str], histograms: Mapping[str, LevelHistogram], figure: Figure) -> None:
    """Bars side by side for every level, the share of cells above 0 in the legend, as in the paper."""
    axes = figure.add_subplot()
    levels, width = np.arange(1, HIGHEST + 1), 0.8 / len(histograms)
    for place, (name, one) in enumerate(histograms.items()):
        middles = levels + (place - (len(histograms) - 1) / 2) * width
        axes.bar(middles, one.cells, width, color=COLOURS[name], label=f"{name} ({one.above_zero:.2%})")
    axes.set(title=title, xlabel="level", ylabel="cells")
    axes.set_xticks(levels, names, rotation=45, ha="right")
    axes.legend()


STUDIES = (Figure4(),)
