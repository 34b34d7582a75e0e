"""Figure 1: test MAE against the number of comparisons, on synthetic data, film genres and groups of sushi.

Figure 2: the true matrix and the estimated ones, as heat maps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from halfseen.arrays import Array
from halfseen.errors import DataError
from halfseen.studies.base import Column, Goal, Picture, Result, Study, Table, Tell, tell_nobody
from halfseen.studies.unmf import PAPER, methods
from halfseen.studies.unmf.measuring import LEVEL, Calibration, Measured, judgements, measured
from halfseen.studies.unmf.methods import BEST_K, COUPLED_BAYES, GIBBS, HALF, NAMES, ORACLE, ROW_MEAN, ZERO
from halfseen.studies.unmf.protocol import FULL, QUICK, SETS, SYNTHETIC, folds

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Colours of Okabe and Ito, which colour-blind readers can tell apart; a marker for each method, none for baselines.
CURVES: dict[str, dict[str, Any]] = {
    ZERO.name: {"color": "#D55E00", "marker": "s"},
    HALF.name: {"color": "#E69F00", "marker": "D"},
    methods.WHOLE.name: {"color": "#CC79A7", "marker": "^"},
    methods.KL.name: {"color": "#56B4E9", "marker": "v"},
    methods.BAYES.name: {"color": "#009E73", "marker": "P"},
    methods.DECODE.name: {"color": "#999999", "marker": "X"},
    GIBBS.name: {"color": "#0072B2", "marker": "o"},
}
LINES: dict[str, dict[str, Any]] = {
    methods.RANDOM: {"color": "#999999", "linestyle": ":"},
    ROW_MEAN: {"color": "#000000", "linestyle": "-"},
    ORACLE: {"color": "#D55E00", "linestyle": "--"},
    BEST_K: {"color": "#009E73", "linestyle": "--"},
    COUPLED_BAYES: {"color": "#0072B2", "linestyle": "-."},
}
#: Inches of a panel, and of the legend below.
PANEL, LEGEND = (4.4, 3.8), 0.9
#: How far the axis goes on below the lowest mean, and above the row mean or the highest.
MARGIN, NEAR = 1.03, 1.12
#: Where a logarithmic axis has ticks, between 1 and 10.
TICKS = (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0)


class Figure1(Study):
    name = "unmf/figure1"
    paper = PAPER
    title = "Uncoupled data: test MAE against comparisons a row, the paper's methods, ours, and those that know more"
    needs = tuple(of.source for of in SETS if of.source is not None)

    def run(self, *, quick: bool = False, seed: int = 0, tell: Tell = tell_nobody) -> Result:
        found: list[Measured] = []
        absent: dict[str, str] = {}
        for of in SETS:
            try:
                found.append(measured(of, QUICK if quick else FULL, seed, tell))
            except DataError as error:
                absent[of.title] = str(error)
        tables = [*map(error_table, found), words_table(found, list(absent.values())), calibration_table(found)]
        goals = []
        if not quick:  # goals are of whole runs
            tables.append(goals_table(found))
            for one in (judgement for each in found for judgement in judgements(each)):
                words = f"{one.method}, {one.data}, {one.comparisons} comparisons: {one.wanted}"
                goals.append(Goal(words, one.reached))
        pictures = [
            Picture("", "Test MAE against comparisons a row", partial(draw_curves, found, False)),
            Picture("near", "The same, near the row mean", partial(draw_curves, found, True)),
        ]
        sentences = []
        for each in found:
            at = each.grid[-1]
            errors = "; ".join(f"{name} {each.at(name, at):.3f}" for name in (HALF.name, GIBBS.name, ROW_MEAN, ORACLE))
            sentences.append(f"{each.title}, {at} comparisons a row, test MAE: {errors}.")
        if absent:
            sentences.append(f"Left out, for want of data: {', '.join(absent)}.")
        return Result(" ".join(sentences), tables, pictures, goals)


def error_table(found: Measured) -> Table:
    """A row for each method, a mean and a standard deviation for every number of comparisons."""
    of, effort = found.of, found.effort
    columns = [Column("method")]
    for n_per in found.grid:
        columns += [Column(part, f"{n_per} a row", ".3f") for part in ("mean", "S.D.")]
    rows = [[name, *_interleaved(found.means(name), found.spreads(name))] for name in NAMES]
    n_folds = f"{len(found.errors[ROW_MEAN])} folds"
    if of.draws > 1:
        n_folds += f", those of {'every draw' if effort.every_draw else 'one draw'} of the matrix"
    here = "" if effort is FULL else f" here, {FULL.iterations} in a whole run"
    footnotes = [
        f"Mean and standard deviation of {n_folds}; a fifth of the cells is for test in each. UNMF, bayes and "
        f"{ORACLE!r}, the paper's ORACLE, have the paper's k = {of.k}. RANDOM guesses uniformly in "
        f"[{of.guesses[0]}, {of.guesses[1]}], as in the paper, which prints no numbers for this figure.",
        f"All that loops has the same number of iterations, {effort.iterations}{here}; the paper does not tell its "
        "own. No fit looks at test cells to stop: the number of a whole run is the one with which UNMF has the figures "
        "of a prototype that was written before. Where k is too large for the data, errors grow with further "
        f"iterations. Samplers draw {effort.sweeps} sweeps, the first {effort.burn} of which do not count.",
        "λ zero, half or full: that share of w_1 + w_2 in Eq. 4; the paper has the first two. "
        f"{BEST_K!r} has the k, out of {', '.join(map(str, methods.KS))}, that is best over {methods.CHOOSING_FOLDS} "
        f"folds of the training cells. {COUPLED_BAYES!r} is the sampler of couplings, given the coupling.",
    ]
    title = f"({of.letter}) {found.title}, {found.shape[0]} x {found.shape[1]}: test MAE by comparisons a row"
    return Table(title, columns, rows, footnotes, of.letter)


def _interleaved(means: Array, spreads: Array) -> list[float]:
    return [float(value) for pair in zip(means, spreads, strict=True) for value in pair]


def words_table(found: Sequence[Measured], absent: Sequence[str]) -> Table:
    """What the paper says in words, beside our numbers."""
    columns = [Column(name) for name in ("data", "method", "comparisons a row")]
    for group, form in {"test MAE": ".3f", "times the oracle's": ".2f"}.items():
        columns += [Column("fewest", group, form), Column("most", group, form)]
    columns.append(Column("paper"))
    rows: list[list[Any]] = []
    for one in found:
        fewest, most = one.grid[0], one.grid[-1]
        for name in (ZERO.name, HALF.name):
            ends = [one.at(name, fewest), one.at(name, most)]
            ratios = [end / one.at(ORACLE, fewest) for end in ends]
            words = "improves, and approaches the oracle"
            rows.append([one.title, name, f"{fewest} and {most}", *ends, *ratios, words])
    footnotes = [f"The paper also says that {HALF.name!r} is stable even with few comparisons.", *absent]
    return Table("The paper's words and our numbers", columns, rows, footnotes, "said")


def calibration_table(found: Sequence[Measured]) -> Table:
    """A row for every set and number of comparisons."""
    kinds = {"coverage": ".1%", "width": ".2f", "risk": ".1%", "hits": ".1%"}
    columns = [Column("data"), Column("comparisons a row")]
    for kind in Calibration._fields:
        columns += [Column("mean", kind, kinds[kind]), Column("S.D.", kind, kinds[kind])]
    rows = [
        [one.title, n_per, *_interleaved(runs.mean(axis=0), runs.std(axis=0, ddof=1))]
        for one in found
        for n_per, runs in one.calibrations.items()
    ]
    footnote = (
        f"Coverage: the share of test cells inside their {LEVEL:.0%} intervals; width: the mean width of these. Risk: "
        "the mean disclosure risk of the asked cells; hits: the share of them whose answer is the one that was most "
        "likely. Mean and standard deviation over the folds. The truth is looked at here, and chose nothing."
    )
    return Table("Calibration of gibbs", columns, rows, [footnote], "calibration")


def goals_table(found: Sequence[Measured]) -> Table:
    columns = [Column(name) for name in ("method", "data", "comparisons a row", "goal")]
    columns += [Column("ours", form=".4f"), Column("reached")]
    rows = [[*judged[:-1], "yes" if judged.reached else "short"] for one in found for judged in judgements(one)]
    footnotes = [
        "Goals with a tolerance are five-fold figures of a prototype that was written before this library.",
        f"What {GIBBS.name!r} takes as given (k, trust, priors) was settled with that prototype, by a look at one fold "
        "of the real data: the third digit deserves no trust.",
    ]
    return Table("Test MAE that was to be reached", columns, rows, footnotes, "goals")


def draw_curves(found: Sequence[Measured], near: bool, figure: Figure) -> None:
    """A panel for every set: a curve for each method with bars of a standard deviation, a line for each baseline.

    `near` shows what is near the row mean, else all means are shown, on a logarithmic axis.
    """
    figure.set_size_inches(PANEL[0] * len(found), PANEL[1] + LEGEND)
    panels = figure.subplots(1, len(found), squeeze=False)[0]
    for axes, one in zip(panels, found, strict=True):
        for name, style in LINES.items():
            axes.axhline(float(one.means(name)[0]), label=name, **style)
        bars = {"capsize": 2, "elinewidth": 0.8, "markersize": 5}
        for name, style in CURVES.items():
            axes.errorbar(one.grid, one.means(name), one.spreads(name), label=name, **bars, **style)
        axes.set(title=f"({one.of.letter}) {one.title}", xlabel="comparisons in each row")
        axes.set_xticks(list(one.grid)[:: 2 if len(one.grid) > 6 else 1])
        means = [float(mean) for name in one.errors for mean in one.means(name)]
        highest = float(one.means(ROW_MEAN)[0]) if near else max(means)
        axes.set_ylim(min(means) / MARGIN, NEAR * highest)
        if not near:
            axes.set_yscale("log", subs=[])
            axes.yaxis.get_major_locator().set_params(subs=TICKS)
        axes.yaxis.set_major_formatter("{x:g}")
    panels[0].set_ylabel("mean absolute error at test cells")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)


#: Figure 2: comparisons a row, as in the paper, and inches of a heat map.
N_PER = 12
TRUTH = "true matrix"
HEAT_MAP = (3.6, 3.6)


class Figure2(Study):
    name = "unmf/figure2"
    paper = PAPER
    title = f"Heat maps of the synthetic matrix, true and estimated from {N_PER} comparisons a row"

    def run(self, *, quick: bool = False, seed: int = 0, tell: Tell = tell_nobody) -> Result:
        effort = QUICK if quick else FULL
        X = SYNTHETIC.load(seed)
        fold = folds(X, seed)[0]
        seen = fold.taken_apart(N_PER, seed)
        truth = X.to_dense()
        is_test = np.zeros(X.shape, bool)
        is_test[fold.places] = True
        matrices, rows = {TRUTH: truth}, []
        for method in (HALF, GIBBS):
            tell(method.name)
            matrices[method.name] = method.fit(seen, SYNTHETIC.k, effort, fold.seed).complete(seen)
            errors = np.abs(matrices[method.name] - truth)
            rows.append([method.name, *(float(one.mean()) for one in (errors[~is_test], errors[is_test], errors))])
        columns = [
            Column("estimate"),
            *(Column(part, "MAE", ".3f") for part in ("training cells", "test cells", "all")),
        ]
        footnote = (
            "One draw of the matrix, noise and all, and the first of its five folds. The paper does not tell which of "
            "its two versions it shows. At training cells gibbs has the mean of the answers that the cell may have, "
            f"UNMF the product of its factors. UNMF has {effort.iterations} iterations, gibbs {effort.sweeps} sweeps."
        )
        table = Table(f"Distance from the true matrix with {N_PER} comparisons a row", columns, rows, [footnote])
        distances = "; ".join(f"{row[0]} {row[-1]:.3f}" for row in rows)
        summary = f"Mean absolute distance from the true matrix over all cells: {distances}."
        return Result(summary, [table], [Picture("", self.title, partial(draw_heat_maps, matrices, fold.places))])


def draw_heat_maps(matrices: Mapping[str, Array], test_places: tuple[Array, Array], figure: Figure) -> None:
    """A heat map for each matrix, all in one scale, that of the truth; dots where nobody was asked."""
    figure.set_size_inches(HEAT_MAP[0] * len(matrices) + 0.8, HEAT_MAP[1])
    panels = figure.subplots(1, len(matrices), squeeze=False)[0]
    low, high = matrices[TRUTH].min(), matrices[TRUTH].max()
    for axes, letter, (name, matrix) in zip(panels, "abc", matrices.items(), strict=True):
        image = axes.imshow(matrix, cmap="cividis", vmin=low, vmax=high)
        axes.set(title=f"({letter}) {name}", xlabel="column")
        axes.set_xticks(range(0, matrix.shape[1], 2), range(1, matrix.shape[1] + 1, 2))
        axes.set_yticks(range(0, matrix.shape[0], 2), range(1, matrix.shape[0] + 1, 2))
        if name != TRUTH:
            axes.plot(*test_places[::-1], ".", color="white", markeredgecolor="black", label="test cell")
    panels[0].set_ylabel("row")
    figure.legend(*panels[-1].get_legend_handles_labels(), loc="outside lower center")
    figure.colorbar(image, ax=panels, label="value", extend="both")


STUDIES = (Figure1(), Figure2())
