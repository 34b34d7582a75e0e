"""The panels of Figure 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from halfseen.studies.unmf.baselines import BEST_K, COUPLED_BAYES, ORACLE, RANDOM, ROW_MEAN
from halfseen.studies.unmf.measuring import Measured
from halfseen.studies.unmf.methods import BAYES, DECODE, GIBBS, HALF, KL, WHOLE, ZERO

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Colours of Okabe and Ito, which colour-blind readers can tell apart; a marker for each method, none for baselines.
CURVES: dict[str, dict[str, Any]] = {
    ZERO.name: {"color": "#D55E00", "marker": "s"},
    HALF.name: {"color": "#E69F00", "marker": "D"},
    WHOLE.name: {"color": "#CC79A7", "marker": "^"},
    KL.name: {"color": "#56B4E9", "marker": "v"},
    BAYES.name: {"color": "#009E73", "marker": "P"},
    DECODE.name: {"color": "#999999", "marker": "X"},
    GIBBS.name: {"color": "#0072B2", "marker": "o"},
}
LINES: dict[str, dict[str, Any]] = {
    RANDOM: {"color": "#999999", "linestyle": ":"},
    ROW_MEAN: {"color": "#000000", "linestyle": "-"},
    ORACLE: {"color": "#D55E00", "linestyle": "--"},
    BEST_K: {"color": "#009E73", "linestyle": "--"},
    COUPLED_BAYES: {"color": "#0072B2", "linestyle": "-."},
}
BARS: dict[str, Any] = {"capsize": 2, "elinewidth": 0.8, "markersize": 5}
#: Inches of a panel, and of the legend below.
PANEL, LEGEND = (4.4, 3.8), 0.9
#: How far the axis goes on below the lowest mean, and above the row mean or the highest.
MARGIN, NEAR = 1.03, 1.12
#: Where a logarithmic axis has ticks, between 1 and 10.
TICKS = (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0)


def draw(found: Sequence[Measured], near: bool, figure: Figure) -> None:
    """A panel for every set: a curve a method with bars of a standard deviation, a line for what needs no comparisons.

    `near` shows what is near the row mean, else all means are shown, on a logarithmic axis.
    """
    figure.set_size_inches(PANEL[0] * len(found), PANEL[1] + LEGEND)
    panels = figure.subplots(1, len(found), squeeze=False)[0]
    for axes, one in zip(panels, found, strict=True):
        _draw_panel(axes, one)
        axes.set_ylim(*_limits(one, near))
        if not near:
            axes.set_yscale("log", subs=[])
            axes.yaxis.get_major_locator().set_params(subs=TICKS)
        axes.yaxis.set_major_formatter("{x:g}")
    panels[0].set_ylabel("mean absolute error at test cells")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)


def _draw_panel(axes: Axes, one: Measured) -> None:
    for name, style in LINES.items():
        axes.axhline(float(one.means(name)[0]), label=name, **style)
    for name, style in CURVES.items():
        axes.errorbar(one.grid, one.means(name), one.spreads(name), label=name, **BARS, **style)
    axes.set(title=f"({one.of.letter}) {one.title}", xlabel="comparisons in each row")
    axes.set_xticks(list(one.grid)[:: 2 if len(one.grid) > 6 else 1])


def _limits(one: Measured, near: bool) -> tuple[float, float]:
    """From a little below the lowest mean to a little above the row mean, or above the highest."""
    means = [float(mean) for name in one.errors for mean in one.means(name)]
    highest = float(one.means(ROW_MEAN)[0]) if near else max(means)
    return min(means) / MARGIN, NEAR * highest
