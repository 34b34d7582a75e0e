"""Figures of the paper on uncoupled data: test MAE against the number of comparisons (1), and heat maps (2)."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from halfseen.arrays import Array
from halfseen.errors import DataError
from halfseen.studies import framework
from halfseen.studies import unmf_methods as unmf
from halfseen.studies.framework import Column, Figure, Goal, Picture, Progress, Result, RunSettings, Study, Table
from halfseen.studies.unmf_methods import FULL, GIBBS, HALF, ORACLE, QUICK, ROW_MEAN, ZERO, ErrorCurves

#: A marker for each method, none for baselines; Kullback-Leibler has the colour of the squared error with the same λ.
CURVES: dict[str, dict[str, Any]] = {
    ZERO.name: {"color": framework.VERMILION, "marker": "s"},
    HALF.name: {"color": framework.ORANGE, "marker": "D"},
    unmf.WHOLE.name: {"color": framework.PURPLE, "marker": "^"},
    unmf.KL_ZERO.name: {"color": framework.VERMILION, "marker": "<", "linestyle": ":"},
    unmf.KL_HALF.name: {"color": framework.ORANGE, "marker": ">", "linestyle": ":"},
    unmf.KL_WHOLE.name: {"color": framework.PURPLE, "marker": "v", "linestyle": ":"},
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
#: How far the axis goes on below the lowest error, and above the row mean's or the highest.
MARGIN, NEAR = 1.03, 1.12
#: Ticks of a logarithmic axis, between 1 and 10.
TICKS = (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0)


class Figure1(Study):
    """A panel and a table of errors per dataset; ratios to the oracle, calibration, and the paper's claims."""

    name = "unmf/figure1"
    title = "Uncoupled data: test MAE against comparisons per row, the paper's methods, ours, and those that know more"
    needs = tuple(dataset.source for dataset in unmf.DATASETS if dataset.source is not None)

    def compute(self, settings: RunSettings, progress: Progress) -> Result:
        config = QUICK if settings.quick else FULL
        tasks: list[unmf.FoldTask] = []
        absent: dict[str, str] = {}
        for dataset in unmf.DATASETS:
            try:
                tasks = unmf.fold_tasks(dataset, config, settings.seed) + tasks  # the largest matrices first
            except DataError as error:
                absent[dataset.title] = error.render("`{}`".format)
        results = framework.parallel_map(unmf.fold_errors, tasks, settings.n_jobs, progress)
        curves = []
        for dataset in unmf.DATASETS:
            done = [pair for pair in zip(tasks, results, strict=True) if pair[0].dataset is dataset]
            if done:
                curves.append(ErrorCurves.from_folds(*zip(*done, strict=True)))
        tables = [*map(error_table, curves), ratio_table(curves, list(absent.values())), share_table(curves)]
        tables.append(calibration_table(curves))
        pictures = [
            Picture("", "Test MAE against comparisons per row", partial(draw_curves, curves, False)),
            Picture("near", "Medians, near the row mean", partial(draw_curves, curves, True)),
        ]
        sentences = []
        for each in curves:
            at = each.config.grid[-1]
            errors = "; ".join(f"{name} {each.at(name, at):.3f}" for name in (HALF.name, GIBBS.name, ROW_MEAN, ORACLE))
            sentences.append(f"{each.title}, {at} comparisons per row, test MAE: {errors}.")
        if absent:
            sentences.append(f"Left out, because their data are absent: {', '.join(absent)}.")
        goals = [goal for one in curves for goal in unmf.claims(one)]
        return Result(" ".join(sentences), tables, pictures, goals, absent=list(absent))


def error_table(curves: ErrorCurves) -> Table:
    """One row per method; mean, standard deviation and median for every number of comparisons."""
    dataset, config = curves.dataset, curves.config
    statistics = {"mean": curves.means, "S.D.": curves.stds, "median": curves.medians}
    columns = [Column("method")]
    columns += [Column(name, f"{n_per} per row", ".3f") for n_per in config.grid for name in statistics]
    rows = [
        [name, *np.stack([statistic(name) for statistic in statistics.values()], axis=1).ravel().tolist()]
        for name in unmf.NAMES
    ]
    what = "of the matrix" if dataset is unmf.SYNTHETIC else "of folds and comparisons"
    n_draws = dataset.draws if config.every_draw else 1
    footnotes = [
        f"Mean, standard deviation and median of {len(curves.errors[ROW_MEAN])} folds, of {n_draws} "
        f"{'draw' if n_draws == 1 else 'draws'} {what}; a fifth of the cells is for test in each. UNMF, bayes and "
        f"{ORACLE!r}, the paper's ORACLE, have the paper's k = {dataset.k}. RANDOM guesses uniformly in "
        f"[{dataset.guesses[0]}, {dataset.guesses[1]}], as in the paper, which prints no numbers for this figure.",
        f"All that iterates stops by the library's rule, with tol = {config.tol:g} and max_iter = {config.max_iter}, "
        "the defaults of UncoupledNMF; the paper does not say how it stops. No fit sees test cells. Samplers draw "
        f"{config.sweeps} sweeps, of which the first {config.burn} are discarded; gibbs in two chains, and up "
        "to twice as many where these have not mixed.",
        "λ zero, half or full: that share of w_1 + w_2 in Eq. 4; the paper has the first two, with the squared error. "
        "KL: Eq. 6. "
        f"{unmf.BEST_K!r} has the k, out of {', '.join(map(str, unmf.KS))}, that is best over "
        f"{unmf.SELECTION_FOLDS} folds of the training cells. {unmf.COUPLED_BAYES!r} is the sampler of couplings, "
        "given the coupling. What gibbs takes as given (k, trust, priors) was chosen on one fold of the real "
        "data: do not rely on the third digit.",
    ]
    title = f"({dataset.letter}) {curves.title}, {curves.shape[0]} x {curves.shape[1]}: test MAE by comparisons per row"
    return Table(title, columns, rows, footnotes, dataset.letter)


def ratio_table(curves: Sequence[ErrorCurves], absent: Sequence[str]) -> Table:
    """Errors of the paper's methods with the fewest and the most comparisons, also as multiples of the oracle's."""
    columns = [Column(name) for name in ("data", "method", "comparisons per row")]
    groups = {"test MAE": ".3f", "median": ".3f", "times the oracle's mean": ".2f"}
    columns += [Column(end, group, form) for group, form in groups.items() for end in ("fewest", "most")]
    rows: list[list[Any]] = []
    for one in curves:
        fewest, *_, most = one.config.grid
        for name in (ZERO.name, HALF.name):
            ends = [one.at(name, fewest), one.at(name, most)]
            medians = one.medians(name)[[0, -1]].tolist()
            ratios = [end / one.at(ORACLE, fewest) for end in ends]
            rows.append([one.title, name, f"{fewest} and {most}", *ends, *medians, *ratios])
    return Table("The paper's methods and its oracle", columns, rows, absent, "ratios")


def share_table(curves: Sequence[ErrorCurves]) -> Table:
    """How far Eq. 4 is from the oracle if all pairs are compared, as printed and with the same share of a row."""
    columns = [Column("data"), Column("method")]
    for group in ("most comparisons", "all pairs"):
        columns += [Column(name, group, ".3f") for name in ("Eq. 4", "equal shares")]
    columns.append(Column(ORACLE, form=".3f"))
    rows = [
        [one.title, name, *runs.mean(axis=0).tolist(), one.at(ORACLE, one.config.grid[0])]
        for one in curves
        for name, runs in one.shares.items()
    ]
    footnote = (
        "Test MAE, mean of the folds. Eq. 4 weights one sum by a row's share of the comparisons, the other by its "
        "share of the asked cells. Where rows have different numbers of cells these differ, and the "
        "pseudo-observations of a row are too high or too low by their ratio, however many pairs are compared: fully "
        "with λ zero, by half with λ half. 'Equal shares' has the share of the asked cells in both places; it is not "
        "in the paper."
    )
    return Table("Shares of rows in Eq. 4", columns, rows, [footnote], "shares")


def calibration_table(curves: Sequence[ErrorCurves]) -> Table:
    """One row per dataset and number of comparisons."""
    columns = [Column("data"), Column("comparisons per row")]
    for kind in unmf.Calibration._fields:
        columns += framework.mean_and_std_columns([kind], ".2f" if kind == "width" else ".1%")
    rows = [
        [one.title, n_per, *np.stack([runs.mean(axis=0), runs.std(axis=0, ddof=1)], axis=1).ravel().tolist()]
        for one in curves
        for n_per, runs in one.calibrations.items()
    ]
    footnote = (
        f"Coverage: the share of test cells inside their {unmf.LEVEL:.0%} intervals; width: the mean width of these. "
        "Risk: the mean disclosure risk of the asked cells; hits: the share of them whose answer is the one that was "
        "most likely. Mean and standard deviation over the folds. The truth is looked at here, and chose nothing."
    )
    return Table("Calibration of gibbs", columns, rows, [footnote], "calibration")


def draw_curves(curves: Sequence[ErrorCurves], near: bool, figure: Figure) -> None:
    """A panel per dataset: a curve per method, a line per baseline.

    Means with bars of one standard deviation on a logarithmic axis; `near` shows medians, near the row mean's.
    """
    figure.set_size_inches(PANEL[0] * len(curves), PANEL[1] + LEGEND)
    panels = figure.subplots(1, len(curves), squeeze=False)[0]
    for axes, one in zip(panels, curves, strict=True):
        grid = list(one.config.grid)
        heights = {name: one.medians(name) if near else one.means(name) for name in one.errors}
        for name, style in LINES.items():
            axes.axhline(float(heights[name][0]), label=name, **style)
        bars = {"capsize": 2, "elinewidth": 0.8, "markersize": 5}
        for name, style in CURVES.items():
            axes.errorbar(grid, heights[name], None if near else one.stds(name), label=name, **bars, **style)
        axes.set(title=f"({one.dataset.letter}) {one.title}", xlabel="comparisons per row")
        axes.set_xticks(grid[:: 2 if len(grid) > 6 else 1])
        drawn = np.concatenate(list(heights.values()))
        highest = float(heights[ROW_MEAN][0]) if near else float(drawn.max())
        axes.set_ylim(float(drawn.min()) / MARGIN, NEAR * highest)
        if not near:
            axes.set_yscale("log", subs=[])
            axes.yaxis.get_major_locator().set_params(subs=TICKS)
        axes.yaxis.set_major_formatter("{x:g}")
    panels[0].set_ylabel(f"{'median' if near else 'mean'} of the folds' test MAE")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)


#: Figure 2: comparisons per row, as in the paper, and inches of a heat map.
N_PER = 12
TRUTH = "true matrix"
#: Random starts of UNMF of which the one with the lowest loss is kept.
STARTS = 10
BEST_START = f"{HALF.name}, best of {STARTS} starts"
HEAT_MAP = (3.6, 3.6)
#: The cells of the two blocks of the synthetic matrix.
NUMBER = np.arange(1, 11)
BLOCKS = np.logical_or(np.outer(NUMBER <= 4, NUMBER <= 4), np.outer(NUMBER > 5, NUMBER > 5))


class Recovery(NamedTuple):
    """How far an estimate is from the true matrix, in how many rows it shows the block, and its largest value."""

    train: float
    test: float
    everywhere: float
    rows: float
    largest: float


class FoldEstimates(NamedTuple):
    """The true matrix of a fold, its test cells, and the estimates by method."""

    truth: Array
    test_cells: tuple[Array, Array]
    estimates: Mapping[str, Array]

    def recovery(self, name: str) -> Recovery:
        """Mean absolute distances; a row shows its block if that is on average above the row's other columns."""
        estimate, is_test = self.estimates[name], np.zeros(self.truth.shape, bool)
        is_test[self.test_cells] = True
        errors = np.abs(estimate - self.truth)
        pairs = [pair for pair in zip(estimate, BLOCKS, strict=True) if pair[1].any()]
        rows = sum(row[block].mean() > row[~block].mean() for row, block in pairs)
        distances = errors[~is_test].mean(), errors[is_test].mean(), errors.mean()
        return Recovery(*map(float, (*distances, rows, estimate.max())))


def fold_estimates(task: unmf.FoldTask) -> FoldEstimates:
    """All cells of a fold's matrix, as UNMF and gibbs estimate them from uncoupled data, and two baselines."""
    fold, everything = task.fold, task.fold._replace(test=task.X)
    seen = fold.uncouple(N_PER, task.draw)
    estimates = {}
    for method in (ZERO, HALF, GIBBS):
        estimates[method.name] = method.fit(seen, task.dataset.k, task.config, fold.seed).complete(seen)
    starts = [HALF.fit(seen, task.dataset.k, task.config, fold.seed + start) for start in range(STARTS)]
    estimates[BEST_START] = min(starts, key=lambda model: model.trace_["objective"][-1]).complete(seen)
    for name in (ORACLE, ROW_MEAN):
        predicted = unmf.predict_baseline(name, everything, task.dataset, task.config)
        estimates[name] = predicted.reshape(task.X.shape)
    return FoldEstimates(task.X.to_dense(), fold.test_cells, estimates)


class Figure2(Study):
    """The synthetic matrix and two estimates of it; distances and blocks over the folds of all draws."""

    name = "unmf/figure2"
    title = f"Heat maps of the synthetic matrix, true and estimated from {N_PER} comparisons per row"

    def compute(self, settings: RunSettings, progress: Progress) -> Result:
        config = QUICK if settings.quick else FULL
        tasks = unmf.fold_tasks(unmf.SYNTHETIC, config, settings.seed)
        folds: list[FoldEstimates] = framework.parallel_map(fold_estimates, tasks, settings.n_jobs, progress)
        largest = max(fold.truth.max() for fold in folds)
        rows, medians = [], {}
        for name in folds[0].estimates:
            runs = np.array([fold.recovery(name) for fold in folds])
            medians[name] = median = Recovery(*np.median(runs, axis=0).tolist())
            n_away = int(np.count_nonzero(runs[:, -1] > 2 * largest))
            rows.append([name, *median[:4], float(runs[:, 1].mean()), float(runs[:, 1].max()), n_away])
        columns = [Column("estimate")]
        columns += [Column(cells, "median MAE", ".3f") for cells in ("training cells", "test cells", "all cells")]
        columns += [Column("rows that show their block", "median", "g")]
        columns += [Column(name, "MAE at test cells", ".3f") for name in ("mean", "largest")]
        columns += [Column("folds that diverge")]

        half, row_mean, n_rows = medians[HALF.name], medians[ROW_MEAN], int(BLOCKS.any(axis=1).sum())
        says = f"'UNMF well recovered the true matrix' ({HALF.name}, median of {len(folds)} folds)"
        goals = [
            Goal.claim(
                f"{says}: {where} it is nearer to it than the row means, which know nothing of the columns: "
                f"{ours:.3f} against {theirs:.3f}",
                ours < theirs,
            )
            for where, ours, theirs in (
                ("over all cells", half.everywhere, row_mean.everywhere),
                ("at the test cells alone", half.test, row_mean.test),
            )
        ]
        blocks = f"{says}: its two blocks are seen in all of their {n_rows} rows: {half.rows:g}"
        goals.append(Goal.claim(blocks, half.rows == n_rows))

        # a fold that is neither good nor bad luck
        order = np.argsort([fold.recovery(HALF.name).everywhere for fold in folds], kind="stable")
        shown = folds[order[len(folds) // 2]]
        matrices = {TRUTH: shown.truth} | {name: shown.estimates[name] for name in (HALF.name, GIBBS.name)}
        footnotes = [
            f"{len(folds)} folds and their fits as in Figure 1 (a); the true matrix has its noise. The paper shows one "
            "estimate, and does not say which of its two versions. The picture shows the fold with the median distance "
            f"of {HALF.name!r}. At training cells gibbs has the mean of the answers that the cell may have, UNMF the "
            "product of its factors.",
            f"A fold diverges if an estimate is above {2 * largest:.1f}, twice the largest true value. That is where "
            "the cells that were asked hardly limit a component's weight in a row: those in which the component is "
            "large are for test. Nothing in Eq. 4 holds such cells back. The best start has the lowest loss.",
        ]
        table = Table(f"Distance from the true matrix with {N_PER} comparisons per row", columns, rows, footnotes)
        distances = "; ".join(f"{name} {median.everywhere:.3f}" for name, median in medians.items())
        summary = f"Mean absolute distance from the true matrix over all cells, median of the folds: {distances}."
        picture = Picture("", self.title, partial(draw_heat_maps, matrices, shown.test_cells))
        return Result(summary, [table], [picture], goals)


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
