"""A table before and after its holes were filled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from halfseen import checks
from halfseen.arrays import Array
from halfseen.errors import ParameterError
from halfseen.estimators.features import observe_rows
from halfseen.estimators.labelling import labels_at
from halfseen.estimators.leveled import LeveledMixin
from halfseen.estimators.model import FactorModel
from halfseen.estimators.tensors import rows_unfolded
from halfseen.plots.axes import BLACK, PALE, name_ticks, new_axes
from halfseen.plots.models import best_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Columns of nothing between the two halves of the picture.
_GAP = 1
#: More names than this can't be read beside a heat map.
_MOST_NAMES = 40


def completion(
    model: Any, X: Any, *, most: int = 30, by_column: bool = False, random_state: Any = 0, ax: Axes | None = None
) -> Axes:
    """A table as it was seen, on the left, beside the same with its holes filled; a dot marks what was a hole.

    Of a table with more rows or columns than `most`, so many are drawn by lot, those of which more is seen more
    probably, and stay in their order.

    Parameters
    ----------
    model : a fitted model, but for UncoupledNMF; levels must be numbers.
    X : data as for `complete`.
    most : the largest number of rows, and of columns.
    by_column : colour every column from its lowest value to its highest, where columns have different units.
    random_state : None, a whole number or a RandomState, for the lots.
    ax : the matplotlib Axes to draw on; None makes a figure, whose `ax.figure` can be saved.
    """
    model = best_of(model)
    if not isinstance(model, FactorModel):
        raise ParameterError(
            f"model must be one that fills holes of a table. Found a {type(model).__name__}. "
            "Draw plots.coupling for uncoupled data."
        )
    check_is_fitted(model)
    if isinstance(model, LeveledMixin) and model._numbers is None:
        raise ParameterError(
            f"Levels must be numbers, so that they have a mean to fill holes with. Found {model.levels_[-1]!r}. "
            "Ask predict_level for the cells of interest, or fit on numbers."
        )
    wishes = {"most": most, "random_state": random_state}
    checks.check_parameters(wishes, {"most": checks.whole(1), "random_state": checks.seed()})
    seen, filled, rows, columns = _halves(model, X, most, np.random.default_rng(random_state))
    ax = new_axes("complete") if ax is None else ax
    gap = np.full((len(seen), _GAP), np.nan)
    both = np.hstack([_scaled(seen, filled), gap, _scaled(filled, filled)] if by_column else [seen, gap, filled])
    image = ax.imshow(both, aspect="auto", interpolation="nearest", cmap="cividis")
    ax.figure.colorbar(image, ax=ax, label="from the column's lowest to its highest" if by_column else "value")
    down, along = np.nonzero(np.isnan(seen))
    width = seen.shape[1] + _GAP
    ax.axvspan(-0.5, width - _GAP - 0.5, color=PALE, linewidth=0, zorder=-1)  # holes differ from the darkest cells
    ax.scatter(along + width, down, s=6, color="white", edgecolor=BLACK, linewidth=0.5, label="was a hole")
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), frameon=False)
    middle = (seen.shape[1] - 1) / 2
    ax.set_xticks([middle, width + middle], ["seen", "filled"])
    if len(rows) <= _MOST_NAMES:
        name_ticks(ax.yaxis, np.arange(len(rows)), rows)
    ax.set(xlabel=f"{len(columns)} columns, twice", ylabel="row")
    return ax


def _halves(model: Any, X: Any, most: int, random: np.random.Generator) -> tuple[Array, Array, Any, Any]:
    """Both tables, and the names of their rows and columns."""
    X = rows_unfolded(X, getattr(model, "inner_shape_", None))[0]
    given = observe_rows(model, X, unseen="missing")
    rows, columns = _lots(given.seen_per_row(), most, random), _lots(given.seen_per_column(), most, random)
    seen = given.select_rows(rows).to_dense()[:, columns]
    filled = _means_at(model, model._rows_of(X), rows, columns)
    names = given.row_labels[rows] if given.row_labels is not None else rows
    return seen, np.where(np.isnan(seen), filled, seen), names, labels_at(model, columns, "column")


def _scaled(values: Array, whole: Array) -> Array:
    """Values as shares of the way from the lowest of their column in the whole table to the highest."""
    low, span = whole.min(axis=0), np.ptp(whole, axis=0)
    scaled: Array = (values - low) / np.where(span > 0, span, 1.0)
    return scaled


def _means_at(model: Any, W: Array, rows: Array, columns: Array) -> Array:
    """The model's means of a part of the table; only rows of the fit have thresholds of their own."""
    owners = rows[:, None] if W is model.W_ else None
    means: Array = model._likelihood_at(owners, columns[None]).mean(W[rows] @ model.H_[columns].T)
    return means


def _lots(weights: Array, most: int, random: np.random.Generator) -> Array:
    """Places in ascending order: all, or `most` of them, drawn by their weights, then any others."""
    if weights.size <= most:
        return np.arange(weights.size)
    # The largest of log(u) / weight are a draw without replacement (Efraimidis and Spirakis, 2006).
    with np.errstate(divide="ignore"):
        keys = np.log(random.random(weights.size)) / weights
    return np.sort(np.argsort(-keys, kind="stable")[:most])
