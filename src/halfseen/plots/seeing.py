"""What was seen: where, and which values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from halfseen import checks
from halfseen.arrays import Array
from halfseen.estimators.tensors import unfolded
from halfseen.io import observe
from halfseen.observed import Observed
from halfseen.plots.axes import BLUE, blues, name_ticks, new_axes, shown, told_apart
from halfseen.plots.levels import is_steep, slanted_if_long
from halfseen.uncoupled import Uncoupled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: More different values than this are put together in bars of equal width.
MOST_VALUES = 30


def holes(X: Any, *, sort: bool = False, bins: int = 200, ax: Axes | None = None) -> Axes:
    """Which cells are seen: blue where all are, empty where none is.

    Of more rows or columns than `bins`, neighbours share a place, and its shade grows with the root of the share of
    their cells that are seen: no matrix is too large, and single cells of sparse ones are not lost.

    Parameters
    ----------
    X : data as for `fit`, or a `halfseen.Uncoupled`, of which the asked cells are drawn.
    sort : put the rows and columns of which most is seen first.
    bins : the largest number of places along an axis.
    ax : the matplotlib Axes to draw on; None makes a figure, whose `ax.figure` can be saved.
    """
    checks.check_parameters({"bins": bins}, {"bins": checks.whole(1)})
    rows, columns, shape = _cells(X)
    ax = new_axes("halfseen.observe") if ax is None else ax
    from matplotlib.colors import PowerNorm

    if sort:
        rows, columns = (_by_number(places, size) for places, size in zip((rows, columns), shape, strict=True))
    share = _shares(rows, columns, shape, bins)
    extent = (0, shape[1], shape[0], 0)
    norm = PowerNorm(0.5, 0.0, max(share.max(initial=0.0), np.finfo(float).tiny))  # where little is seen, that little
    image = ax.imshow(share, norm=norm, cmap=blues(), aspect="auto", interpolation="nearest", extent=extent)
    if share.shape != shape:
        ax.figure.colorbar(image, ax=ax, label="share of cells seen")
    most_first = ", most seen first" if sort else ""
    ax.set(xlabel=f"column{most_first}", ylabel=f"row{most_first}")
    return ax


def values(X: Any, *, log: bool | None = None, ax: Axes | None = None) -> Axes:
    """A histogram of the values that were seen, or of the answers that were given.

    Up to 30 different values have a bar each; more are put together in bars of equal width.

    Parameters
    ----------
    X : data as for `fit`, or a `halfseen.Uncoupled`, of which all answers are counted.
    log : whether numbers of cells are drawn as logarithms; None: where the largest is more than 50 times the smallest.
    ax : the matplotlib Axes to draw on; None makes a figure, whose `ax.figure` can be saved.
    """
    counts, names, edges = histogram_of_values(X)
    ax = new_axes("halfseen.observe") if ax is None else ax
    if names is not None:
        ax.bar(np.arange(counts.size), counts, color=BLUE)
        name_ticks(ax.xaxis, np.arange(counts.size), names, **slanted_if_long(names))
    else:
        ax.bar(edges[:-1], counts, np.diff(edges), align="edge", color=BLUE)
    if is_steep(counts) if log is None else log:
        ax.set_yscale("log")
    ax.set(xlabel="value", ylabel="answers" if isinstance(X, Uncoupled) else "cells")
    return ax


def histogram_of_values(X: Any) -> tuple[Array, list[str] | None, Array]:
    """Numbers of cells, the names of the values if each has a bar of its own, and the edges of the bars."""
    found, level_names = _values(X)
    different, counts = np.unique(found, return_counts=True)
    if different.size > MOST_VALUES:
        counts, edges = np.histogram(found, MOST_VALUES)
        return counts, None, edges
    names = [
        _named(value, text, level_names)
        for value, text in zip(different.tolist(), told_apart(different.tolist()), strict=True)
    ]
    return counts, names, np.arange(counts.size + 1) - 0.5


def _named(value: float, text: str, level_names: Array | None) -> str:
    """What a value is called: levels that were texts were read as 1, 2, ..."""
    is_level = level_names is not None and value == int(value) and 1 <= value <= len(level_names)
    return shown(level_names[int(value) - 1]) if is_level and level_names is not None else text


def _values(X: Any) -> tuple[Array, Array | None]:
    if isinstance(X, Uncoupled):
        return X.answers, None
    observed = _observed(X)
    return observed.values, observed.level_names


def _observed(X: Any) -> Observed:
    return observe(unfolded(X)[0], unseen=None, levels="ordered", allow_empty=True)


def _cells(X: Any) -> tuple[Array, Array, tuple[int, int]]:
    """The row and the column of every seen cell, in their places in the matrix of the user."""
    if isinstance(X, Uncoupled):
        places = (X.row_of_cell(), X.respondents)
        rows, columns = places if X.questions_are == "rows" else places[::-1]
        return rows, columns, X.shape
    observed = _observed(X)
    rows, columns = observed.row_of_cell(), observed.indices
    if observed.firsts is not None:  # a place that was seen twice is one place
        first = observed.firsts > 0
        rows, columns = rows[first], columns[first]
    return rows, columns, observed.shape


def _by_number(places: Array, size: int) -> Array:
    """The rank of each cell's row, or column, by the number of its cells."""
    order = np.argsort(-np.bincount(places, minlength=size), kind="stable")
    rank = np.empty(size, np.int64)
    rank[order] = np.arange(size)
    return rank[places]


def _shares(rows: Array, columns: Array, shape: tuple[int, int], bins: int) -> Array:
    """The share of cells that are seen, of places of neighbouring rows and columns."""
    size = tuple(min(length, bins) for length in shape)
    place = [
        index.astype(np.int64) * few // many for index, few, many in zip((rows, columns), size, shape, strict=True)
    ]
    found = np.bincount(place[0] * size[1] + place[1], minlength=size[0] * size[1]).reshape(size)
    heights, widths = (np.bincount(np.arange(many) * few // many) for few, many in zip(size, shape, strict=True))
    share: Array = found / np.outer(heights, widths)
    return share
