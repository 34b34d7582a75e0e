"""From the names that users give rows and columns to their positions, and back."""

from typing import Any

import numpy as np

from halfseen.arrays import Array
from halfseen.checks import did_you_mean
from halfseen.errors import DataError
from halfseen.labels import Index, quoted, uniform


def is_single(wanted: Any) -> bool:
    """Whether something is one label, rather than a list of them."""
    return isinstance(wanted, str | bytes) or not hasattr(wanted, "__len__")


def positions(model: Any, wanted: Any, side: str) -> Array:
    """The positions of rows or columns (`side`) asked for by label or, if the fit had no labels, by position.

    A single label counts as a list of one.
    """
    wanted = [wanted] if is_single(wanted) else wanted
    labels = model.row_labels_ if side == "row" else model.column_labels_
    size = len(model.W_ if side == "row" else model.H_)
    if len(wanted) == 0:
        return np.empty(0, np.int64)
    return _in_range(model, wanted, size, side) if labels is None else _looked_up(model, wanted, labels, side)


def labels_at(model: Any, places: Array, side: str) -> Array:
    """The labels at positions; the positions themselves if the fit had no labels."""
    labels = model.row_labels_ if side == "row" else model.column_labels_
    return places if labels is None else labels[places]


def pair_positions(model: Any, rows: Any, cols: Any) -> tuple[Array, Array]:
    """Both positions of each pair; one row for many columns, or one column for many rows, is welcome."""
    u, i = (
        positions(model, wanted, side).reshape(() if is_single(wanted) else -1)
        for wanted, side in ((rows, "row"), (cols, "column"))
    )
    if u.shape and i.shape and u.shape != i.shape:
        raise DataError(
            f"rows and cols must be equally long, a cell for each pair. Found {u.size} rows and {i.size} columns. "
            "Repeat the shorter one, or pass a single label."
        )
    return u, i


def _in_range(model: Any, wanted: Any, size: int, side: str) -> Array:
    wanted = np.asarray(wanted)
    if wanted.dtype.kind not in "iu":
        raise DataError(
            f"The {side}s of this model have no labels and are asked for by position, 0 to {size - 1}. "
            f"Found {wanted.reshape(-1)[:1].tolist()}. Pass whole numbers, or fit on data with labels."
        )
    outside = np.flatnonzero((wanted < 0) | (wanted >= size))
    if outside.size:
        raise DataError(
            f"Positions of {side}s must be 0 to {size - 1}. Found {wanted.reshape(-1)[outside[0]]} "
            f"({outside.size} outside in all). For a new {side}, fit again{_or_fold_in(model, side)}."
        )
    return wanted.astype(np.int64)


def _looked_up(model: Any, wanted: Any, labels: Array, side: str) -> Array:
    index = _index(model, labels, side)
    try:
        found = index.find(uniform(wanted, side))
    except DataError:  # ids of mixed kinds: each is looked up, and the first unknown one named below
        found = np.array([_position(index, label, side) for label in wanted], dtype=np.int64)
    unknown = np.flatnonzero(found < 0)
    if unknown.size:
        first = list(wanted)[unknown[0]]
        raise DataError(
            f"A {side} must be one of the {len(index)} {side}s that were fitted. Found {quoted(first)} "
            f"({unknown.size} unknown in all). {_hint(first, labels, index)}"
            f"For a new {side}, fit again{_or_fold_in(model, side)}."
        )
    return found


def _position(index: Index, label: Any, side: str) -> int:
    try:
        return index.positions.get(label, -1)
    except TypeError:
        raise DataError(
            f"A {side} must be asked for by a label, all of one kind. Found a {type(label).__name__}. "
            "Pass a list of labels, or a list of histories (dicts from columns to values)."
        ) from None


def _hint(label: Any, labels: Array, index: Index) -> str:
    """What was probably meant: a near spelling, or the same id as another kind."""
    if labels.dtype.kind != "O":
        return f"The ids are of type {labels.dtype}, not text. " if isinstance(label, str) else ""
    near = did_you_mean(str(label), index.positions)
    return f"Did you mean {near!r}? " if near else ""


def _index(model: Any, labels: Array, side: str) -> Index:
    """The index of the labels, made once a fit."""
    cache = model.__dict__.setdefault("_label_positions", {})
    kept = cache.get(side)
    if kept is None or kept.labels is not labels:
        kept = cache[side] = Index(labels)
    index: Index = kept
    return index


def _or_fold_in(model: Any, side: str) -> str:
    can = side == "row" and hasattr(model, "transform")
    return ", or pass its history (a dict from columns to values)" if can else ""
