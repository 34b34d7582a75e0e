"""Figures of the paper on uncoupled data: test MAE against the number of comparisons (1), and heat maps (2)."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from halfseen.arrays import Array
from halfseen.errors import DataError
from halfseen.studies import framework
from halfseen.studies import unmf_methods as unmf
from halfseen.studies.framework import Column, Figure, Goal, Picture, Progress, Result, RunSettings, Study, Table
from halfseen.studies.unmf_methods import FULL, GIBBS, HALF, ORACLE, QUICK, ROW_MEAN, ZERO, ErrorCurves

#: A marker for each method, none for baselines.
CURVES: dict[str, dict[str, Any]] = {
    ZERO.name: {"color": framework.VERMILION, "marker": "s"},
    HALF.name: {"color": framework.ORANGE, "marker": "D"},
    unmf.WHOLE.name: {"color": framework.PURPLE, "marker": "^"},
    unmf.KL.name: {"color": framework.SKY, "marker": "v"},
    unmf.BAYES.name: {"color": framework.GREEN, "marker": "P"},
    unmf.DECODE.name: {"color": framework.GREY, "marker": "X"},
    GIBBS.name: {"color": framework.BLUE, "marker": "o"},
}
LINES: dict[str, dict[str, Any]] = {
    unmf.RANDOM: {"color": framework.GREY, "linestyle": ":"},
    ROW_MEAN: {"color": framework.BLACK, "linestyle": "-"},
    ORACLE: {"color": framework.VERMILION, "linestyle": "--"},
    unmf.BEST_K: {"color": framework.GREEN, "linestyle": "--"},
    unmf.COUPLED_BAYES: {"color": framework.BLUE, "linestyle": "-."},
}
#: Inches of a panel, and of the legend below.
PANEL, LEGEND = (4.4, 3.8), 0.9
#: How far the axis goes on below the lowest mean, and above the row mean or the highest.
MARGIN, NEAR = 1.03, 1.12
#: Ticks of a logarithmic axis, between 1 and 10.
TICKS = (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0)


class Figure1(Study):
    """A panel and a table of errors per dataset; the paper's words, calibration and goals."""

    name = "unmf/figure1"
    title = "Uncoupled data: test MAE against comparisons a row, the paper's methods, ours, and those that know more"
    needs = tuple(dataset.source for dataset in unmf.DATASETS if dataset.source is not None)

    def compute(self, settings: RunSettings, progress: Progress) -> Result:
        quick, seed = settings.quick, settings.seed
        curves: list[ErrorCurves] = []
        absent: dict[str, str] = {}
        for dataset in unmf.DATASETS:
            try:
                curves.append(unmf.error_curves(dataset, QUICK if quick else FULL, seed, progress))
            except DataError as error:
                absent[dataset.title] = error.render("`{}`".format)
        tables = [*map(error_table, curves), words_table(curves, list(absent.values())), calibration_table(curves)]
        goals = []
        if not quick:  # goals are of whole runs
            tables.append(goals_table(curves))
            for method, data, comparisons, wanted, _, reached in (row for one in curves for row in unmf.goal_rows(one)):
                goals.append(Goal.claim(f"{method}, {data}, {comparisons} comparisons: {wanted}", reached))
        pictures = [
            Picture("", "Test MAE against comparisons a row", partial(draw_curves, curves, False)),
            Picture("near", "The same, near the row mean", partial(draw_curves, curves, True)),
        ]
        sentences = []
        for each in curves:
            at = each.config.grid[-1]
            errors = "; ".join(f"{name} {each.at(name, at):.3f}" for name in (HALF.name, GIBBS.name, ROW_MEAN, ORACLE))
            sentences.append(f"{each.title}, {at} comparisons a row, test MAE: {errors}.")
        if absent:
            sentences.append(f"Left out, for want of data: {', '.join(absent)}.")
        return Result(" ".join(sentences), tables, pictures, goals)


def error_table(curves: ErrorCurves) -> Table:
    """One row per method, mean and standard deviation for every number of comparisons."""
    dataset, config = curves.dataset, curves.config
    columns = [
        Column("method"),
        *framework.mean_and_std_columns([f"{n_per} a row" for n_per in curves.config.grid], ".3f"),
    ]
    rows = [[name, *_interleave(curves.means(name), curves.stds(name))] for name in unmf.NAMES]
    n_folds = f"{len(curves.errors[ROW_MEAN])} folds"
    if dataset.draws > 1:
        n_folds += f", those of {'every draw' if config.every_draw else 'one draw'} of the matrix"
    here = "" if config is FULL else f" here, {FULL.iterations} in a whole run"
    footnotes = [
        f"Mean and standard deviation of {n_folds}; a fifth of the cells is for test in each. UNMF, bayes and "
        f"{ORACLE!r}, the paper's ORACLE, have the paper's k = {dataset.k}. RANDOM guesses uniformly in "
        f"[{dataset.guesses[0]}, {dataset.guesses[1]}], as in the paper, which prints no numbers for this figure.",
        f"All that loops has the same number of iterations, {config.iterations}{here}; the paper does not tell its "
        "own. No fit looks at test cells to stop: the number of a whole run is the one with which UNMF has the figures "
        "of a prototype that was written before. Where k is too large for the data, errors grow with further "
        f"iterations. Samplers draw {config.sweeps} sweeps, the first {config.burn} of which do not count.",
        "λ zero, half or full: that share of w_1 + w_2 in Eq. 4; the paper has the first two. "
        f"{unmf.BEST_K!r} has the k, out of {', '.join(map(str, unmf.KS))}, that is best over "
        f"{unmf.SELECTION_FOLDS} folds of the training cells. {unmf.COUPLED_BAYES!r} is the sampler of couplings, "
        "given the coupling.",
    ]
    title = f"({dataset.letter}) {curves.title}, {curves.shape[0]} x {curves.shape[1]}: test MAE by comparisons a row"
    return Table(title, columns, rows, footnotes, dataset.letter)


def _interleave(means: Array, stds: Array) -> list[float]:
    return [float(value) for pair in zip(means, stds, strict=True) for value in pair]


def words_table(curves: Sequence[ErrorCurves], absent: Sequence[str]) -> Table:
    """What the paper says in words, beside our numbers."""
    columns = [Column(name) for name in ("data", "method", "comparisons a row")]
    for group, form in {"test MAE": ".3f", "times the oracle's": ".2f"}.items():
        columns += [Column("fewest", group, form), Column("most", group, form)]
    columns.append(Column("paper"))
    rows: list[list[Any]] = []
    for one in curves:
        fewest, *_, most = one.config.grid
        for name in (ZERO.name, HALF.name):
            ends = [one.at(name, fewest), one.at(name, most)]
            ratios = [end / one.at(ORACLE, fewest) for end in ends]
            words = "improves, and approaches the oracle"
            rows.append([one.title, name, f"{fewest} and {most}", *ends, *ratios, words])
    footnotes = [f"The paper also says that {HALF.name!r} is stable even with few comparisons.", *absent]
    return Table("The paper's words and our numbers", columns, rows, footnotes, "said")


def calibration_table(curves: Sequence[ErrorCurves]) -> Table:
    """One row per dataset and number of comparisons."""
    columns = [Column("data"), Column("comparisons a row")]
    for kind in unmf.Calibration._fields:
        columns += framework.mean_and_std_columns([kind], ".2f" if kind == "width" else ".1%")
    rows = [
        [one.title, n_per, *_interleave(runs.mean(axis=0), runs.std(axis=0, ddof=1))]
        for one in curves
        for n_per, runs in one.calibrations.items()
    ]
    footnote = (
        f"Coverage: the share of test cells inside their {unmf.LEVEL:.0%} intervals; width: the mean width of these. "
        "Risk: the mean disclosure risk of the asked cells; hits: the share of them whose answer is the one that was "
        "most likely. Mean and standard deviation over the folds. The truth is looked at here, and chose nothing."
    )
    return Table("Calibration of gibbs", columns, rows, [footnote], "calibration")


def goals_table(curves: Sequence[ErrorCurves]) -> Table:
    """One row per goal."""
    columns = [Column(name) for name in ("method", "data", "comparisons a row", "goal")]
    columns += [Column("ours", form=".4f"), Column("reached")]
    goals = [row for one in curves for row in unmf.goal_rows(one)]
    footnotes = [
        "Goals with a tolerance are five-fold figures of a prototype that was written before this library.",
        f"What {GIBBS.name!r} takes as given (k, trust, priors) was settled with that prototype, by a look at one fold "
        "of the real data: the third digit deserves no trust.",
    ]
    rows = [[*row[:-1], "yes" if row.reached else "short"] for row in goals]
    return Table("Test MAE that was to be reached", columns, rows, footnotes, "goals")


def draw_curves(curves: Sequence[ErrorCurves], near: bool, figure: Figure) -> None:
    """A panel per dataset: a curve per method with bars of one standard deviation, a line per baseline.

    `near` shows errors near the row mean, else all means are shown, on a logarithmic axis.
    """
    figure.set_size_inches(PANEL[0] * len(curves), PANEL[1] + LEGEND)
    panels = figure.subplots(1, len(curves), squeeze=False)[0]
    for axes, one in zip(panels, curves, strict=True):
        grid = list(one.config.grid)
        for name, style in LINES.items():
            axes.axhline(float(one.means(name)[0]), label=name, **style)
        bars = {"capsize": 2, "elinewidth": 0.8, "markersize": 5}
        for name, style in CURVES.items():
            axes.errorbar(grid, one.means(name), one.stds(name), label=name, **bars, **style)
        axes.set(title=f"({one.dataset.letter}) {one.title}", xlabel="comparisons in each row")
        axes.set_xticks(grid[:: 2 if len(grid) > 6 else 1])
        means = [float(mean) for name in one.errors for mean in one.means(name)]
        highest = float(one.means(ROW_MEAN)[0]) if near else max(means)
        axes.set_ylim(min(means) / MARGIN, NEAR * highest)
        if not near:
            axes.set_yscale("log", subs=[])
            axes.yaxis.get_major_locator().set_params(subs=TICKS)
        axes.yaxis.set_major_formatter("{x:g}")
    panels[0].set_ylabel("mean absolute error at test cells")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)


#: Figure 2: comparisons per row, as in the paper, and inches of a heat map.
N_PER = 12
TRUTH = "true matrix"
HEAT_MAP = (3.6, 3.6)


class Figure2(Study):
    """The synthetic matrix and two estimates."""

    name = "unmf/figure2"
    title = f"Heat maps of the synthetic matrix, true and estimated from {N_PER} comparisons a row"

    def compute(self, settings: RunSettings, progress: Progress) -> Result:
        quick, seed = settings.quick, settings.seed
        config = QUICK if quick else FULL
        X = unmf.SYNTHETIC.load(seed)
        fold = unmf.make_folds(X, seed)[0]
        seen = fold.uncouple(N_PER, seed)
        truth = X.to_dense()
        is_test = np.zeros(X.shape, bool)
        is_test[fold.test_cells] = True
        matrices, rows = {TRUTH: truth}, []
        for method in (HALF, GIBBS):
            progress(method.name)
            matrices[method.name] = method.fit(seen, unmf.SYNTHETIC.k, config, fold.seed).complete(seen)
            errors = np.abs(matrices[method.name] - truth)
            rows.append([method.name, *(float(one.mean()) for one in (errors[~is_test], errors[is_test], errors))])
        columns = [Column("estimate")]
        columns += [Column(cells, "MAE", ".3f") for cells in ("training cells", "test cells", "all")]
        footnote = (
            "One draw of the matrix, noise and all, and the first of its five folds. The paper does not tell which of "
            "its two versions it shows. At training cells gibbs has the mean of the answers that the cell may have, "
            f"UNMF the product of its factors. UNMF has {config.iterations} iterations, gibbs {config.sweeps} sweeps."
        )
        table = Table(f"Distance from the true matrix with {N_PER} comparisons a row", columns, rows, [footnote])
        distances = "; ".join(f"{row[0]} {row[-1]:.3f}" for row in rows)
        summary = f"Mean absolute distance from the true matrix over all cells: {distances}."
        return Result(summary, [table], [Picture("", self.title, partial(draw_heat_maps, matrices, fold.test_cells))])


def draw_heat_maps(matrices: Mapping[str, Array], test_cells: tuple[Array, Array], figure: Figure) -> None:
    """A heat map per matrix, all in the scale of the truth; dots at the test cells."""
    figure.set_size_inches(HEAT_MAP[0] * len(matrices) + 0.8, HEAT_MAP[1])
    panels = figure.subplots(1, len(matrices), squeeze=False)[0]
    low, high = matrices[TRUTH].min(), matrices[TRUTH].max()
    for axes, letter, (name, matrix) in zip(panels, "abc", matrices.items(), strict=True):
        image = axes.imshow(matrix, cmap="cividis", vmin=low, vmax=high)
        axes.set(title=f"({letter}) {name}", xlabel="column")
        axes.set_xticks(range(0, matrix.shape[1], 2), range(1, matrix.shape[1] + 1, 2))
        axes.set_yticks(range(0, matrix.shape[0], 2), range(1, matrix.shape[0] + 1, 2))
        if name != TRUTH:
            axes.plot(*test_cells[::-1], ".", color="white", markeredgecolor="black", label="test cell")
    panels[0].set_ylabel("row")
    figure.legend(*panels[-1].get_legend_handles_labels(), loc="outside lower center")
    figure.colorbar(image, ax=panels, label="value", extend="both")


STUDIES = (Figure1(), Figure2())
