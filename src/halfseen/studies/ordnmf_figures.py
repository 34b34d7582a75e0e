"""Figures of the OrdNMF paper: 3, distribution functions of noise; 4, a posterior predictive check of the levels."""

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
from halfseen.likelihoods.links import noise_cdf
from halfseen.observed import Observed
from halfseen.studies import framework
from halfseen.studies import ordnmf_methods as ordnmf
from halfseen.studies.framework import Column, Figure, Goal, Picture, Progress, Result, RunSettings, Study, Table
from halfseen.studies.ordnmf_methods import EDGES, FULL, QUICK, TEST_SHARE, Dataset, as_they_are, quantize

# Figure 3

#: Shapes of the noise (the text does not say which ones the figure has), and where the table has the functions.
SHAPES, AT = (0.5, 1.0, 2.0, 5.0), (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
#: Names of the noises, and how each is drawn.
NOISES: Mapping[str, Callable[[np.random.Generator, float, int], Array]] = {
    "gamma": lambda random, shape, size: random.standard_gamma(shape, size),
    "inverse-gamma": lambda random, shape, size: 1.0 / random.standard_gamma(shape, size),
}
#: Draws of the noise that check the functions, and how many standard errors they may be off.
NOISE_DRAWS, QUICK_NOISE_DRAWS, MAX_ERRORS = 1_000_000, 10_000, 5.0


class Figure3(Study):
    """P(y <= v) as a function of lambda at the threshold 1.

    No model is fitted: the goals check that the functions drawn are those that the paper states.
    """

    name = "ordnmf/figure3"
    title = "Functions lambda -> F(1 / lambda) of gamma and inverse-gamma noise"

    def compute(self, settings: RunSettings, progress: Progress) -> Result:
        progress("functions")
        x, at = np.geomspace(1e-4, 1e4, 2001), np.array(AT)
        functions = {
            (noise, shape): partial(noise_at_inverse, noise=noise, shape=shape) for noise in NOISES for shape in SHAPES
        }
        draws, worst = QUICK_NOISE_DRAWS if settings.quick else NOISE_DRAWS, 0.0
        for (noise, shape), function in functions.items():
            progress(f"{noise} noise, shape {shape:g}: {draws:,} draws")
            drawn = np.sort(NOISES[noise](np.random.default_rng(settings.seed), shape, draws))
            p = function(at)  # which is the share of draws with lambda * noise < 1
            errors = np.sqrt(np.maximum(p * (1 - p), 1.0 / draws) / draws)
            worst = max(worst, float(np.max(np.abs(np.searchsorted(drawn, 1 / at) / draws - p) / errors)))
        curves = {key: function(x) for key, function in functions.items()}
        is_decreasing = all(np.all(np.diff(y) <= 0) and y[0] > 1 - 0.02 and y[-1] < 0.02 for y in curves.values())
        gamma, inverse = (curves[noise, 1.0] for noise in NOISES)
        goals = [
            Goal.claim(
                f"Eqs. 15 to 20: the share of draws of lambda * noise below a threshold b is F(b / lambda) ({draws:,} "
                f"draws, at most {worst:.1f} standard errors off)", worst < MAX_ERRORS,
            ),
            Goal.claim("Gamma noise of shape 1 is exponential noise, F(x) = 1 - exp(-x)",
                       bool(np.allclose(gamma, -np.expm1(-1 / x), rtol=1e-12, atol=0))),
            Goal.claim("Inverse-gamma noise of shape 1 has F(x) = exp(-1 / x)",
                       bool(np.allclose(inverse, np.exp(-x), rtol=1e-12, atol=1e-300))),
            Goal.claim("F is increasing from 0 to 1, so that F(1 / lambda) falls from 1 to 0", is_decreasing),
        ]  # fmt: skip
        columns = [Column("lambda", form="g"), *(Column(f"{shape:g}", noise, ".4f") for noise, shape in functions)]
        rows = np.column_stack([at, *(function(at) for function in functions.values())]).tolist()
        footnote = "Columns are the shapes alpha of the noise. Level v is where lambda times noise is below b_v = 1."
        fit = "No model is fitted: the goals check that the functions drawn are those that the paper states."
        table = Table("F(1 / lambda)", columns, rows, [footnote, fit])
        pictures = [Picture(noise, f"{noise} noise", partial(draw_noise, noise)) for noise in NOISES]
        shapes = ", ".join(f"{shape:g}" for shape in SHAPES)
        summary = f"Distribution functions of gamma and inverse-gamma noise of shapes {shapes}."
        return Result(summary, [table], pictures, goals)


def noise_at_inverse(x: Array, noise: str, shape: float) -> Array:
    """F(1 / lambda) at x = lambda."""
    return noise_cdf(1.0 / x, noise, shape)


def draw_noise(noise: str, figure: Figure) -> None:
    """The functions of one noise, a line for each shape."""
    axes, x = figure.add_subplot(), np.linspace(0.01, 5.0, 500)
    for shape, colour in zip(SHAPES, framework.OKABE_ITO, strict=False):
        axes.plot(x, noise_at_inverse(x, noise, shape), color=colour, label=f"alpha = {shape:g}")
    axes.set(title=f"{noise} noise", xlabel="lambda", ylabel="F(1 / lambda)", ylim=(0, 1))
    axes.legend()


# Figure 4

#: Data sets drawn from each model, a number that is not in the paper.
DRAWS, QUICK_COMPONENTS, QUICK_DRAWS = 3, 5, 2
#: The class from which on dcPF fails, according to the paper: 51 plays and more.
LARGE = 7
#: The share of drawn cells that may be at other levels where the paper says that a model describes all "precisely", and
#: the relative error of the number of large values from which on it is said to "fail".
PRECISE, FAILS = 0.05, 0.1

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
    """One of the figure's two histograms. `models` by name: estimator, K, cells to fit, levels of what it draws."""

    name: str
    papers: Sequence[Dataset]
    substitute: Dataset
    level_names: Sequence[str]
    levels_of: Callable[[Observed], Observed]
    models: Mapping[str, tuple[Callable[..., Any], int, Callable[[Observed], Observed], Callable[[Array], Array]]]


#: K is that of the authors' scripts, the best of Tables 2 and 3.
PANELS = (
    HistogramPanel(
        "plays", ordnmf.PAPER_PLAYS, ordnmf.PLAYS[0],
        [*(f"{a}" if b == a + 1 else f"{a} to {b - 1}" for a, b in pairwise(EDGES)), "501 and more"], quantize,
        {
            "OrdNMF": (halfseen.OrdNMF, 250, quantize, as_they_are),
            "dcPF": (halfseen.CompoundPoisson, 150, as_they_are, lambda plays: np.searchsorted(EDGES, plays, "right")),
        },
    ),
    HistogramPanel(
        "films", ordnmf.PAPER_FILMS, ordnmf.FILMS[0],
        [f"{level / 2:g} stars" for level in range(1, HIGHEST + 1)], as_they_are,
        {"OrdNMF": (halfseen.OrdNMF, 150, as_they_are, as_they_are)},
    ),
)  # fmt: skip


class Figure4(Study):
    """A histogram of plays and one of films."""

    name = "ordnmf/figure4"
    title = "Levels of data drawn by OrdNMF and dcPF beside those of the data they were fitted to"
    needs = tuple(dataset.name for panel in PANELS for dataset in (*panel.papers, panel.substitute))

    def compute(self, settings: RunSettings, progress: Progress) -> Result:
        quick, seed = settings.quick, settings.seed
        config, draws = (QUICK, QUICK_DRAWS) if quick else (FULL, DRAWS)
        options = {"random_state": seed, "tol": config.tol, "max_iter": config.max_iter, "engine": settings.engine}
        tables, pictures, sentences, goals, substitutes = [], [], [], [], []
        absent: dict[str, DataError] = {}
        for panel in PANELS:
            dataset = ordnmf.available(panel.papers, [panel.substitute], self.absent())[0]
            dataset = dataset.sample() if quick else dataset
            try:
                raw = dataset.load(seed)
            except DataError as error:
                absent[panel.name] = error
                continue
            if dataset.name == panel.substitute.name:
                substitutes.append(dataset.title)
            train = ordnmf.split(raw, panel.levels_of, seed, dataset.split_seed).train
            n_cells = raw.shape[0] * raw.shape[1]
            histograms = {TRUTH: LevelHistogram.from_levels([train.levels.values], n_cells)}
            ranks = {name: QUICK_COMPONENTS if quick else K for name, (_, K, *_) in panel.models.items()}
            for name, (make, _, cells_of, levels_of) in panel.models.items():
                progress(f"{dataset.title}: {name}, K {ranks[name]}")
                model = make(ranks[name], **options).fit(cells_of(train.raw))
                drawn = [levels_of(one.data) for one in model.sample(draws, random_state=seed)]
                histograms[name] = LevelHistogram.from_levels(drawn, n_cells)
            goals += claims(dataset.title, histograms)

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
                f"Data: {dataset.words}. Training cells, {1 - TEST_SHARE:.0%} of all, and the mean of {draws} data "
                f"sets drawn (K = {' and '.join(map(str, ranks.values()))}): factors from their posteriors, then every "
                "cell. The paper prints no numbers for this figure."
            )
            tables.append(Table(title, columns, rows, [sentences[-1], footnote], panel.name))
            pictures.append(Picture(panel.name, title, partial(draw, title, panel.level_names, histograms)))
        if not tables:
            raise next(iter(absent.values()))
        if absent:
            sentences.append(f"Left out, as their data are not there: {', '.join(absent)}.")
            tables[0] = replace(tables[0], footnotes=[*tables[0].footnotes, *map(str, absent.values())])
        return Result(" ".join(sentences), tables, pictures, goals, substitute=", ".join(substitutes))


def claims(title: str, histograms: Mapping[str, LevelHistogram]) -> list[Goal]:
    """Section 5.3 on the histograms of one dataset."""
    truth, goals = histograms[TRUTH].cells, []
    off = distance(histograms["OrdNMF"].cells, truth)
    words = (
        f"{title}: OrdNMF seems to precisely describe all the ordinal categories ({off:.1%} of the cells above 0 at "
    )
    goals.append(Goal.claim(f"{words}other levels, at most {PRECISE:.0%})", off <= PRECISE))
    if "dcPF" in histograms:
        errors = [np.abs(histograms[name].cells / truth - 1)[LARGE - 1 :].max() for name in ("OrdNMF", "dcPF")]
        words = f"{title}: dcPF fails to model the very large values, from class {LARGE} on (number of cells up to "
        words += f"{errors[1]:.0%} off, that of OrdNMF {errors[0]:.0%}; failure: more than {FAILS:.0%})"
        goals.append(Goal.claim(words, bool(errors[1] > FAILS >= errors[0])))
    return goals


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
    axes.set(title=title, xlabel="level", ylabel="cells", yscale="log")
    axes.set_xticks(levels, names, rotation=45, ha="right")
    axes.legend()


STUDIES = (Figure3(), Figure4())
