"""Where levels begin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from halfseen.arrays import Array
from halfseen.errors import ParameterError
from halfseen.estimators.leveled import LeveledMixin
from halfseen.estimators.ordinal import OrdinalMixin
from halfseen.plots.axes import BLUE, ORANGE, name_ticks, new_axes
from halfseen.plots.levels import level_names
from halfseen.plots.models import best_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: How much of the owners' thresholds a whisker holds.
_MOST = (0.05, 0.95)


def thresholds(model: Any, *, ax: Axes | None = None) -> Axes:
    """The interval of the product x at which each level is: a bar a level, from its threshold to the next.

    The lowest and the highest level have no end; their bars go to the edge of the picture. Where rows or columns have
    thresholds of their own, whiskers hold nine tenths of these. OrdNMF's thresholds and factors share a free scale:
    they are drawn relative to the lowest threshold, as logarithms.

    Parameters
    ----------
    model : a fitted OrdNMF, SquaredOrdNMF, OrdinalMF or RoundMF.
    ax : the matplotlib Axes to draw on; None makes a figure, whose `ax.figure` can be saved.
    """
    model = best_of(model)
    if not isinstance(model, LeveledMixin):
        raise ParameterError(
            f"model must be one with thresholds between levels. Found a {type(model).__name__}. "
            "Fit OrdNMF, SquaredOrdNMF, OrdinalMF or RoundMF."
        )
    check_is_fitted(model)
    ax = new_axes("the attribute thresholds_") if ax is None else ax
    is_positive = isinstance(model, OrdinalMixin)
    cuts = np.asarray(model.thresholds_, dtype=np.float64)  # type: ignore[attr-defined]
    cuts = cuts / cuts[0] if is_positive else cuts
    edges = _with_ends(cuts, is_positive)
    places = np.arange(cuts.size + 1)
    ax.barh(places, np.diff(edges), left=edges[:-1], color=BLUE, height=0.8)
    own = getattr(model, "own_thresholds_", None)
    if own is not None:
        low, high = np.quantile(own, _MOST, axis=0)
        ax.errorbar(cuts, places[1:] - 0.5, xerr=np.maximum([cuts - low, high - cuts], 0), fmt="none", ecolor=ORANGE,
                    capsize=3, label=f"nine tenths of all {model.likelihood_.axis}")  # fmt: skip
        ax.legend()
    if is_positive:
        _plain_logarithms(ax)
    ax.set_xlim(edges[0], edges[-1])
    name_ticks(ax.yaxis, places, level_names(model.levels_))
    relative = ", relative to the lowest threshold" if is_positive else ""
    ax.set(xlabel=f"product of factors{relative}", ylabel="level")
    return ax


def _plain_logarithms(ax: Any) -> None:
    """An axis of logarithms with few numbers on it, written as people write them."""
    from matplotlib.ticker import FormatStrFormatter, LogLocator, NullFormatter

    ax.set_xscale("log")
    ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    ax.xaxis.set_major_formatter(FormatStrFormatter("%g"))
    ax.xaxis.set_minor_formatter(NullFormatter())


def _with_ends(cuts: Array, is_positive: bool) -> Array:
    """Thresholds and where the picture ends, as far beyond them as they are apart in the mean."""
    line = np.log(cuts) if is_positive else cuts
    beyond = float(np.ptp(line)) / (line.size - 1) if line.size > 1 else 1.0
    edges = np.concatenate([[line[0] - beyond], line, [line[-1] + beyond]])
    return np.exp(edges) if is_positive else edges
