"""The sections with examples: what some rows should see next, and what may be in some holes."""

from __future__ import annotations

from typing import Any

import numpy as np

from halfseen import plots
from halfseen.arrays import Array
from halfseen.estimators.labelling import labels_at
from halfseen.estimators.leveled import LeveledMixin
from halfseen.report.blocks import Block, Component, Components, Note, Picture, Section, Table, text_of
from halfseen.report.drawing import drawn
from halfseen.report.known import Known
from halfseen.report.units import units_of

_ROWS, _COLUMNS, _HOLES = 4, 8, 12
#: Of what a row has seen, so much is told.
_FAVOURITES = 5
#: How sure the intervals of examples are.
_LEVEL = 0.9


def recommendations(known: Known) -> Section | None:
    """The best unseen columns for some rows, where unseen cells are zeros, or values are levels such as stars."""
    model = known.model
    is_tensor = getattr(model, "inner_shape_", None) is not None
    rates = getattr(model, "unseen", None) == "zero" or isinstance(model, LeveledMixin)
    if not rates or is_tensor or not hasattr(model, "recommend"):
        return None
    n, m = known.shape
    rows = _spread(np.diff(model.seen_.of(np.arange(n))[0]), m)
    if rows.size == 0:
        return None
    parts = [_recommended(known, int(row)) for row in rows]
    told = "The best unseen columns for some rows, from those of which little is seen to those of which much is."
    return Section("recommended", "Examples of recommendations", [Note(told), Components(parts)])


def _spread(counts: Array, width: int) -> Array:
    """Some rows in which something was seen, but not all, from those with few to those with many."""
    order = np.argsort(counts, kind="stable")
    order = order[(counts[order] > 0) & (counts[order] < width)]
    if order.size <= _ROWS:
        return order
    places = (np.linspace(0.3, 0.95, _ROWS) * (order.size - 1)).astype(np.int64)
    return order[np.unique(places)]


def _recommended(known: Known, row: int) -> Component:
    model = known.model
    found = model.recommend(labels_at(model, np.array([row]), "row"), n=_COLUMNS)
    pairs = [
        (text_of(one), float(score)) for one, score in zip(found.ids[0], found.scores[0], strict=True) if score == score
    ]
    (name,) = known.names(np.array([row]), "row")
    table = Table(f"Recommended to row {name}", ["Column", "Score"], pairs, bar=1)
    return Component(f"Row {name}", _favourites(known, row), [table])


def _favourites(known: Known, row: int) -> str:
    if known.train is None:
        return ""
    cells = slice(*known.train.indptr[row : row + 2])
    best = np.argsort(-known.train.values[cells], kind="stable")[:_FAVOURITES]
    return f"Highest of what was seen: {'; '.join(known.names(known.train.indices[cells][best], 'column'))}"


def completions(known: Known) -> Section | None:
    """What some holes may hold, where unseen cells are missing, or nobody was asked."""
    model = known.model
    if getattr(model, "unseen", "missing") != "missing":
        return None
    rows, columns = _some_holes(model, known.shape)
    if rows.size == 0:
        return None
    blocks: list[Block] = []
    has_picture = known.train is not None and not known.has_words
    if has_picture:
        blocks.append(_picture(known))
    if known.has_words:
        blocks.append(Note(f"Predicted values are means of levels counted 0, 1, ... from {known.lowest}."))
    blocks.append(_holes_table(known, rows, columns, is_wide=not has_picture))
    return Section("completed", "Examples of completions", blocks)


def _some_holes(model: Any, shape: tuple[int, int]) -> tuple[Array, Array]:
    """Unseen cells drawn by lot: a row that has any, and one of its unseen columns."""
    random = np.random.default_rng(0)
    rows: list[int] = []
    columns: list[int] = []
    for row in random.permutation(shape[0])[: 20 * _HOLES]:
        unseen = np.setdiff1d(np.arange(shape[1]), model.seen_.of(np.array([row]))[1])
        if unseen.size and len(rows) < _HOLES:
            rows.append(row)
            columns.append(random.choice(unseen))
    return np.array(rows, np.int64), np.array(columns, np.int64)


def _holes_table(known: Known, rows: Array, columns: Array, is_wide: bool) -> Table:
    model = known.model
    told: list[list[Any]] = [known.names(rows, "row"), known.names(columns, "column")]
    heads = ["Row", "Column"]
    if getattr(model, "inner_shape_", None) is not None:
        told.append([float(w[0] * h[0]) for w, h in zip(model.W_[rows], model.H_[columns], strict=True)])
        return Table("What some holes may hold", [*heads, "Predicted"], list(zip(*told, strict=True)), is_wide=is_wide)
    at = labels_at(model, rows, "row"), labels_at(model, columns, "column")
    told.append(model.predict(*at).tolist())
    heads.append("Predicted")
    if hasattr(model, "predict_level"):
        told.append(known.levels(model.predict_level(*at)))
        heads.append("Level")
    if _has_intervals(model):
        interval = model.predict_interval(*at, _LEVEL)
        told += [known.levels(end) if hasattr(model, "levels_") else end.tolist() for end in interval]
        heads += [f"{_LEVEL:.0%} from", "to"]
    return Table("What some holes may hold", heads, list(zip(*told, strict=True)), is_wide=is_wide)


def _has_intervals(model: Any) -> bool:
    return hasattr(model, "predict_interval") and getattr(model, "_posterior", True) is not None


def _picture(known: Known) -> Picture:
    n, m = known.shape
    alt = f"Two heat maps of up to 20 of {n:,} rows and {m:,} columns: as seen, and with the holes filled and marked."
    caption = "A part of the table as it was seen, and filled; dots mark what were holes."
    inner = getattr(known.model, "inner_shape_", None)
    train: Any = known.train
    X = train if inner is None else train.to_dense().reshape(-1, *inner)
    how: dict[str, Any] = {"most": 20, "by_column": units_of(known) is not None}
    return Picture(drawn(lambda ax: plots.completion(known.model, X, **how, ax=ax), height=4.0), alt, caption)
