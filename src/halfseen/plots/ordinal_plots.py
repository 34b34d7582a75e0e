"""Plots of ordered levels: histograms of data and of draws from a model, and thresholds between levels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from halfseen.arrays import Array
from halfseen.errors import ParameterError
from halfseen.metrics import PredictiveCheck, predictive_check
from halfseen.plots import axes
from halfseen.plots.model_plots import best_model

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Quantiles of the rows' or columns' own thresholds at the ends of a whisker.
_WHISKERS = (0.05, 0.95)


def posterior_predictive(
    model: BaseEstimator | Mapping[str, BaseEstimator],
    X: Any,
    *,
    n: int = 20,
    level: float = 0.9,
    edges: ArrayLike | None = None,
    log: bool | None = None,
    ax: Axes | None = None,
    random_state: int | np.random.RandomState | None = 0,
) -> Axes:
    """Histogram of the levels of the data beside those of data drawn from the model (Figure 4 of `ordnmf-2020`).

    Bars are the data. Points are the means of n data sets drawn, with the central interval that holds `level` of them
    (often too short to be seen). The numbers are those of `halfseen.metrics.predictive_check`.

    Parameters
    ----------
    model : estimator or dict of str to estimator
        Fitted model of levels or counts, or several of the same data, by name.
    X : {array-like, sparse matrix, DataFrame, Observed}
        Data of the fit.
    n : int, default=20
        Number of data sets drawn.
    level : float, default=0.9
        Share of the draws inside the interval.
    edges : array-like of int, default=None
        For counts: the lowest count of each class, as in `predictive_check`.
    log : bool, default=None
        Whether the scale is logarithmic. None: if the largest count is more than 50 times the smallest.
    ax : matplotlib.axes.Axes, default=None
        Axes to draw on and return. None makes a new figure, `ax.figure`.
    random_state : int, RandomState or None, default=0
        Random seed.
    """
    model = best_model(model)
    models: Mapping[str, Any] = model if isinstance(model, Mapping) else {type(model).__name__: model}
    if not models:
        must = "must be a fitted model, or several by name."
        raise ParameterError(must, found="none", remedy="Pass one at least.", parameter="model")
    options: dict[str, Any] = {"level": level, "edges": edges, "random_state": random_state}
    checks = {name: predictive_check(one, X, n, **options) for name, one in models.items()}
    return level_histograms(checks, log=log, ax=ax)


def level_histograms(checks: Mapping[str, PredictiveCheck], *, log: bool | None = None, ax: Axes | None = None) -> Axes:
    """`posterior_predictive` from checks made before, all of the same levels or classes.

    Compares models that were fitted to different forms of the data, such as levels and counts. The bars are those of
    the first check.

    Parameters
    ----------
    checks : dict of str to PredictiveCheck
        Results of `halfseen.metrics.predictive_check`, by the names to show.
    log : bool, default=None
        Whether the scale is logarithmic. None: if the largest count is more than 50 times the smallest.
    ax : matplotlib.axes.Axes, default=None
        Axes to draw on and return. None makes a new figure, `ax.figure`.
    """
    if not checks:
        must = "must be one check, or several, by name."
        raise ParameterError(must, found="none", remedy="Pass one at least.", parameter="checks")
    ax = axes.new_axes("halfseen.metrics.predictive_check") if ax is None else ax
    first = next(iter(checks.values()))
    for name, check in checks.items():
        if check.levels.size != first.levels.size:
            must = f"All checks must be of the same levels or classes: {first.levels.size} of them."
            found, remedy = f"{check.levels.size} in {name!r}", "Draw each on Axes of its own."
            raise ParameterError(must, found=found, remedy=remedy, parameter="checks")

    def positive_share(check: PredictiveCheck, counts: Array) -> str:
        """Share of cells above 0, as in the paper's legend; nothing where the lowest level is not 0."""
        return f", {1 - counts[0] / counts.sum():.2%} above 0" if check.levels[0] in (0, "0", None) else ""

    places = np.arange(first.levels.size)
    ax.bar(places, first.observed, color="0.8", label=f"data{positive_share(first, first.observed)}")
    shifts = (np.arange(len(checks)) - (len(checks) - 1) / 2) * 0.6 / len(checks)
    for shift, (name, check) in zip(shifts, checks.items(), strict=True):
        arms = np.maximum([check.mean - check.low, check.high - check.mean], 0.0)
        label = f"{name}{positive_share(check, check.mean)}"
        ax.errorbar(places + shift, check.mean, arms, fmt="o", markersize=4, capsize=4, label=label)
    if axes.needs_log_scale(first.observed) if log is None else log:
        ax.set_yscale("log")
    names = level_names(first.levels)
    axes.label_ticks(ax.xaxis, places, names, **axes.slant_if_long(names))
    ax.set(xlabel="count" if isinstance(first.levels[-1], str) and "more" in names[-1] else "level", ylabel="cells")
    ax.legend()
    return ax


def thresholds(model: BaseEstimator, *, ax: Axes | None = None) -> Axes:
    """Interval of the product x of each level: one bar per level, from its threshold to the next.

    The bars of the lowest and the highest level are unbounded and go to the edge of the plot. Where rows or columns
    have their own thresholds, whiskers hold nine tenths of these. The thresholds and factors of OrdNMF share a free
    scale: they are drawn relative to the lowest threshold, on a logarithmic scale.

    Parameters
    ----------
    model : OrdNMF, SquaredOrdNMF, OrdinalMF or RoundMF
        Fitted model.
    ax : matplotlib.axes.Axes, default=None
        Axes to draw on and return. None makes a new figure, `ax.figure`.
    """
    model = best_model(model)
    if "levels" not in getattr(model, "offers", ()):
        must, remedy = "must be one with thresholds between levels.", "Fit OrdNMF, SquaredOrdNMF, OrdinalMF or RoundMF."
        raise axes.wrong_type("model", model, must, remedy)
    check_is_fitted(model)
    ax = axes.new_axes("the attribute thresholds_") if ax is None else ax
    is_positive = model.likelihood_.x_is_positive
    cuts = np.asarray(model.thresholds_, dtype=np.float64)
    cuts = cuts / cuts[0] if is_positive else cuts
    # the plot ends as far beyond the outer thresholds as thresholds are apart on average
    line = np.log(cuts) if is_positive else cuts
    beyond = float(np.ptp(line)) / (line.size - 1) if line.size > 1 else 1.0
    edges = np.concatenate([[line[0] - beyond], line, [line[-1] + beyond]])
    edges = np.exp(edges) if is_positive else edges
    places = np.arange(cuts.size + 1)
    ax.barh(places, np.diff(edges), left=edges[:-1], color=axes.BLUE, height=0.8)
    own = getattr(model, "own_thresholds_", None)
    if own is not None:
        low, high = np.quantile(own, _WHISKERS, axis=0)
        arms, label = np.maximum([cuts - low, high - cuts], 0), f"nine tenths of all {model.likelihood_.axis}"
        ax.errorbar(cuts, places[1:] - 0.5, xerr=arms, fmt="none", ecolor=axes.ORANGE, capsize=3, label=label)
        ax.legend()
    if is_positive:
        from matplotlib.ticker import FormatStrFormatter, LogLocator, NullFormatter

        ax.set_xscale("log")
        ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        ax.xaxis.set_major_formatter(FormatStrFormatter("%g"))
        ax.xaxis.set_minor_formatter(NullFormatter())
    ax.set_xlim(edges[0], edges[-1])
    axes.label_ticks(ax.yaxis, places, level_names(model.levels_))
    relative = ", relative to the lowest threshold" if is_positive else ""
    ax.set(xlabel=f"product of factors{relative}", ylabel="level")
    return ax


def level_names(levels: Array, max_length: int = axes.MAX_LABEL_LENGTH) -> list[str]:
    """Names of levels, or of classes of counts."""
    if levels.dtype.kind in "fiu":
        return axes.format_distinct(levels.tolist())
    return ["unseen" if level is None else axes.display_label(level, max_length) for level in levels.tolist()]
