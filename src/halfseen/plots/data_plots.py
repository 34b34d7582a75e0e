"""Plots of data: which cells are seen, which values they have, and a table before and after completion."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from halfseen import validation
from halfseen.arrays import Array
from halfseen.errors import ParameterError
from halfseen.estimators.base import BaseFactorization
from halfseen.estimators.inputs import observe_rows, unfold_rows, unfold_tensor
from halfseen.io import observe
from halfseen.observed import Observed
from halfseen.plots import axes
from halfseen.plots.model_plots import best_model
from halfseen.uncoupled import Uncoupled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Up to this many distinct values have one bar each; more are binned.
_MAX_BARS = 30
#: Empty columns between the two halves of a completion.
_GAP = 1


def holes(X: Any, *, sort: bool = False, bins: int = 200, ax: Axes | None = None) -> Axes:
    """Which cells are seen: blue where all are, empty where none is.

    More rows or columns than `bins` are binned. The shade grows with the square root of the share of cells seen in a
    bin, so that single cells of large sparse matrices stay visible.

    Parameters
    ----------
    X : {array-like, sparse matrix, DataFrame, Observed, Uncoupled}
        Data as for `fit`. For an Uncoupled, the asked cells are drawn.
    sort : bool, default=False
        Whether to put the rows and columns with the most cells first.
    bins : int, default=200
        Largest number of bins along an axis.
    ax : matplotlib.axes.Axes, default=None
        Axes to draw on and return. None makes a new figure, `ax.figure`.
    """
    validation.check_parameters({"bins": bins}, {"bins": validation.whole(1)})
    if isinstance(X, Uncoupled):
        places, shape = [X.row_of_cell(), X.respondents], X.shape
        places = places if X.questions_are == "rows" else places[::-1]
    else:
        observed = _observe(X)
        places, shape = [observed.row_of_cell(), observed.indices], observed.shape
        if observed.is_first_at_cell is not None:  # duplicates are one cell
            places = [one[observed.is_first_at_cell > 0] for one in places]
    ax = axes.new_axes("halfseen.observe") if ax is None else ax
    from matplotlib.colors import PowerNorm

    if sort:
        for axis, size in enumerate(shape):
            order = np.argsort(-np.bincount(places[axis], minlength=size), kind="stable")
            rank = np.empty(size, np.int64)
            rank[order] = np.arange(size)
            places[axis] = rank[places[axis]]
    share = _binned_share(places[0], places[1], shape, bins)
    norm = PowerNorm(0.5, 0.0, max(share.max(initial=0.0), np.finfo(float).tiny))  # scaled to the fullest bin
    extent = (0, shape[1], shape[0], 0)
    image = ax.imshow(
        share, norm=norm, cmap=axes.blue_colormap(), aspect="auto", interpolation="nearest", extent=extent
    )
    if share.shape != shape:
        ax.figure.colorbar(image, ax=ax, label="share of cells seen")
    most_first = ", most seen first" if sort else ""
    ax.set(xlabel=f"column{most_first}", ylabel=f"row{most_first}")
    return ax


def _observe(X: Any) -> Observed:
    return observe(unfold_tensor(X)[0], unseen=None, levels="ordered", allow_empty=True)


def _binned_share(rows: Array, columns: Array, shape: tuple[int, int], bins: int) -> Array:
    """Share of cells seen in bins of neighbouring rows and columns."""
    size = tuple(min(length, bins) for length in shape)
    row_bin, column_bin = (
        index.astype(np.int64) * few // many for index, few, many in zip((rows, columns), size, shape, strict=True)
    )
    counts = np.bincount(row_bin * size[1] + column_bin, minlength=size[0] * size[1]).reshape(size)
    heights, widths = (np.bincount(np.arange(many) * few // many) for few, many in zip(size, shape, strict=True))
    return np.asarray(counts / np.outer(heights, widths))


def values(X: Any, *, log: bool | None = None, ax: Axes | None = None) -> Axes:
    """Histogram of the seen values, or of the answers of uncoupled data.

    Up to 30 distinct values have one bar each; more are binned in bars of equal width.

    Parameters
    ----------
    X : {array-like, sparse matrix, DataFrame, Observed, Uncoupled}
        Data as for `fit`. For an Uncoupled, all answers are counted.
    log : bool, default=None
        Whether the scale is logarithmic. None: if the largest count is more than 50 times the smallest.
    ax : matplotlib.axes.Axes, default=None
        Axes to draw on and return. None makes a new figure, `ax.figure`.
    """
    counts, names, edges = value_histogram(X)
    ax = axes.new_axes("halfseen.observe") if ax is None else ax
    if names is not None:
        ax.bar(np.arange(counts.size), counts, color=axes.BLUE)
        axes.label_ticks(ax.xaxis, np.arange(counts.size), names, **axes.slant_if_long(names))
    else:
        ax.bar(edges[:-1], counts, np.diff(edges), align="edge", color=axes.BLUE)
    if axes.needs_log_scale(counts) if log is None else log:
        ax.set_yscale("log")
    ax.set(xlabel="value", ylabel="answers" if isinstance(X, Uncoupled) else "cells")
    return ax


def value_histogram(X: Any) -> tuple[Array, list[str] | None, Array]:
    """Counts, names of the values (None if they are binned), and edges of the bars."""
    observed = None if isinstance(X, Uncoupled) else _observe(X)
    all_values = X.answers if observed is None else observed.values
    distinct, counts = np.unique(all_values, return_counts=True)
    if distinct.size > _MAX_BARS:
        counts, edges = np.histogram(all_values, _MAX_BARS)
        return counts, None, edges
    names = axes.format_distinct(distinct.tolist())
    level_names = None if observed is None else observed.level_names
    if level_names is not None:  # text levels were read as 1, 2, ...
        for place, value in enumerate(distinct.tolist()):
            if value == int(value) and 1 <= value <= len(level_names):
                names[place] = axes.display_label(level_names[int(value) - 1])
    return counts, names, np.arange(counts.size + 1) - 0.5


def completion(
    model: BaseEstimator,
    X: Any,
    *,
    most: int = 30,
    by_column: bool = False,
    random_state: int | np.random.RandomState | None = 0,
    ax: Axes | None = None,
) -> Axes:
    """A table as seen, on the left, beside the same table completed; a dot marks each filled cell.

    Of more than `most` rows or columns a random sample is drawn, in its original order, with probabilities that grow
    with the number of seen cells.

    Parameters
    ----------
    model : estimator
        Fitted model, except UncoupledNMF. Levels must be numbers.
    X : {array-like, sparse matrix, DataFrame, Observed}
        Data as for `complete`.
    most : int, default=30
        Largest number of rows, and of columns.
    by_column : bool, default=False
        Whether to colour each column from its lowest to its highest value, for columns of different units.
    random_state : int, RandomState or None, default=0
        Random seed of the sample.
    ax : matplotlib.axes.Axes, default=None
        Axes to draw on and return. None makes a new figure, `ax.figure`.
    """
    model = best_model(model)
    if not isinstance(model, BaseFactorization):
        must, remedy = "must be one that fills holes of a table.", "Draw `plots.coupling` for uncoupled data."
        raise axes.wrong_type("model", model, must, remedy)
    check_is_fitted(model)
    levels = getattr(model, "levels_", None)
    if levels is not None and levels.dtype.kind == "O":
        raise ParameterError(
            "Levels must be numbers, so that they have a mean to fill holes with.",
            found=repr(levels[-1]),
            remedy="Ask predict_level for the cells of interest, or fit on numbers.",
            parameter="model",
        )
    validation.check_parameters(
        {"most": most, "random_state": random_state}, {"most": validation.whole(1), "random_state": validation.seed()}
    )
    # both tables; the model's own rows may have their own thresholds, new ones don't
    X = unfold_rows(X, getattr(model, "inner_shape_", None))[0]
    given = observe_rows(model, X, unseen="missing")
    random = np.random.default_rng(random_state)
    rows = _weighted_sample(given.seen_per_row(), most, random)
    columns = _weighted_sample(given.seen_per_column(), most, random)
    seen = given.select_rows(rows).to_dense()[:, columns]
    W = model.rows_of(X)
    likelihood = model.model_.likelihood_at(rows[:, None] if W is model.W_ else None, columns[None])
    filled = np.where(np.isnan(seen), likelihood.mean(W[rows] @ model.H_[columns].T), seen)

    ax = axes.new_axes("complete") if ax is None else ax
    halves = [seen, filled]
    if by_column:
        low, span = filled.min(axis=0), np.ptp(filled, axis=0)
        halves = [(half - low) / np.where(span > 0, span, 1.0) for half in halves]
    both = np.hstack([halves[0], np.full((len(seen), _GAP), np.nan), halves[1]])
    image = ax.imshow(both, aspect="auto", interpolation="nearest", cmap="cividis")
    ax.figure.colorbar(image, ax=ax, label="from the column's lowest to its highest" if by_column else "value")
    hole_rows, hole_columns = np.nonzero(np.isnan(seen))
    width = seen.shape[1] + _GAP
    ax.axvspan(-0.5, width - _GAP - 0.5, color=axes.PALE, linewidth=0, zorder=-1)  # holes differ from the darkest cells
    ax.scatter(
        hole_columns + width, hole_rows, s=6, color="white", edgecolor=axes.BLACK, linewidth=0.5, label="was a hole"
    )
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), frameon=False)
    middle = (seen.shape[1] - 1) / 2
    ax.set_xticks([middle, width + middle], ["seen", "filled"])
    if len(rows) <= axes.MAX_TICK_LABELS:
        labels = given.row_labels[rows] if given.row_labels is not None else rows
        axes.label_ticks(ax.yaxis, np.arange(len(rows)), labels)
    ax.set(xlabel=f"{len(columns)} columns, twice", ylabel="row")
    return ax


def _weighted_sample(weights: Array, size: int, random: np.random.Generator) -> Array:
    """Sorted positions: all, or `size` of them drawn without replacement by weight, those of weight 0 last."""
    if weights.size <= size:
        return np.arange(weights.size)
    # The largest of log(u) / weight are a draw without replacement (Efraimidis and Spirakis, 2006).
    with np.errstate(divide="ignore"):
        keys = np.log(random.random(weights.size)) / weights
    return np.sort(np.argsort(-keys, kind="stable")[:size])
