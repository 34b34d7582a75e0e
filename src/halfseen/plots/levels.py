"""Histograms of levels: what was seen beside what a model draws."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from halfseen.arrays import Array
from halfseen.errors import ParameterError
from halfseen.metrics import PredictiveCheck, predictive_check
from halfseen.plots.axes import LETTERS, name_ticks, new_axes, shown, told_apart
from halfseen.plots.models import best_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: More letters than this do not stand side by side below an Axes.
_LETTERS_IN_A_ROW = 40
#: From here on the largest number of cells hides the smallest, and numbers are drawn as logarithms.
_MANY_TIMES = 50.0


def posterior_predictive(
    model: Any,
    X: Any,
    *,
    n: int = 20,
    level: float = 0.9,
    edges: Any = None,
    log: bool | None = None,
    ax: Axes | None = None,
    random_state: Any = 0,
) -> Axes:
    """The histogram of levels of the data beside those of data drawn from the model (Figure 4 of `ordnmf-2020`).

    Bars are the data, points the means of n data sets drawn, with the interval that holds `level` of these, which is
    often too short to be seen. The numbers are those of `halfseen.metrics.predictive_check`.

    Parameters
    ----------
    model : a fitted model that has levels or counts; or a dict from names to several such models of the same data.
    X : the data of the fit.
    n, level, edges, random_state : as in `halfseen.metrics.predictive_check`.
    log : whether numbers are drawn as logarithms; None: where the largest is more than 50 times the smallest.
    ax : the matplotlib Axes to draw on; None makes a figure, whose `ax.figure` can be saved.
    """
    model = best_of(model)
    models: Mapping[str, Any] = model if isinstance(model, Mapping) else {type(model).__name__: model}
    if not models:
        raise ParameterError("model must be a fitted model, or several by name. Found none. Pass one at least.")
    ask: dict[str, Any] = {"level": level, "edges": edges, "random_state": random_state}
    checks = {name: predictive_check(one, X, n, **ask) for name, one in models.items()}
    return level_histograms(checks, log=log, ax=ax)


def level_histograms(checks: Mapping[str, PredictiveCheck], *, log: bool | None = None, ax: Axes | None = None) -> Axes:
    """As `posterior_predictive`, from checks that were made before, by name; all of the same levels or classes.

    So models can be compared that were fitted on different forms of the data, such as levels and counts: the bars are
    those of the first check.

    Parameters
    ----------
    checks : what `halfseen.metrics.predictive_check` gave, by the names to show.
    log : whether the numbers of cells are on a logarithmic scale; None: if they differ much.
    ax : the Axes to draw on; None makes new ones.
    """
    if not checks:
        raise ParameterError("checks must be one check, or several, by name. Found none. Pass one at least.")
    ax = new_axes("halfseen.metrics.predictive_check") if ax is None else ax
    first = next(iter(checks.values()))
    for name, check in checks.items():
        if check.levels.size != first.levels.size:
            raise ParameterError(
                f"All checks must be of the same levels or classes: {first.levels.size} of them. Found "
                f"{check.levels.size} in {name!r}. Draw each on Axes of its own."
            )
    places = np.arange(first.levels.size)
    ax.bar(places, first.observed, color="0.8", label=f"data{_share_above_zero(first, first.observed)}")
    for shift, (name, check) in zip(_shifts(len(checks)), checks.items(), strict=True):
        label = f"{name}{_share_above_zero(check, check.mean)}"
        ax.errorbar(places + shift, check.mean, _arms(check), fmt="o", markersize=4, capsize=4, label=label)
    if is_steep(first.observed) if log is None else log:
        ax.set_yscale("log")
    names = level_names(first.levels)
    name_ticks(ax.xaxis, places, names, **slanted_if_long(names))
    ax.set(xlabel="count" if isinstance(first.levels[-1], str) and "more" in names[-1] else "level", ylabel="cells")
    ax.legend()
    return ax


def slanted_if_long(names: list[str]) -> dict[str, Any]:
    """How names are set that would not stand side by side."""
    return {"rotation": 30, "ha": "right"} if sum(map(len, names)) > _LETTERS_IN_A_ROW else {}


def _shifts(count: int) -> Array:
    """Where the points of each of several models stand beside the middle of a bar."""
    return (np.arange(count) - (count - 1) / 2) * 0.6 / count


def _arms(check: PredictiveCheck) -> Array:
    """How far the interval reaches below and above the mean."""
    return np.maximum([check.mean - check.low, check.high - check.mean], 0.0)


def is_steep(counts: Array) -> bool:
    """Whether the largest number hides the smallest."""
    there = counts[counts > 0]
    return bool(there.size and there.max() > _MANY_TIMES * there.min())


def _share_above_zero(check: PredictiveCheck, counts: Array) -> str:
    """How many of the cells have anything, as the paper tells it; nothing where the lowest level is seen, too."""
    return f", {1 - counts[0] / counts.sum():.2%} above 0" if check.levels[0] in (0, "0", None) else ""


def level_names(levels: Array, letters: int = LETTERS) -> list[str]:
    """What levels, or classes of counts, are called."""
    if levels.dtype.kind in "fiu":
        return told_apart(levels.tolist())
    return ["unseen" if level is None else shown(level, letters) for level in levels.tolist()]
