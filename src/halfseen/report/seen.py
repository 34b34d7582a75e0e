"""The section on what was seen."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from halfseen import plots
from halfseen.observed import Observed
from halfseen.plots.axes import told_apart
from halfseen.plots.seeing import histogram_of_values
from halfseen.report.blocks import Block, Facts, Note, Picture, Section, Table, counted, percent, placed
from halfseen.report.drawing import drawn
from halfseen.report.known import Known
from halfseen.report.rendering import number

#: A matrix of fewer cells than this part is seen best with the fullest rows and columns first.
_SPARSE = 0.3
_MEANING = {
    "missing": "missing: they may be anything, and say nothing",
    "zero": "zeros: they count as observations of nothing",
    None: "cells in which nobody was asked",
}


def what_was_seen(known: Known) -> Section:
    """Shape, holes and values."""
    where = known.train or _seen_by(known.model)
    blocks: list[Block] = [Facts(_facts(known, where))]
    blocks += [Note(remark) for remark in known.remarks]
    if not known.is_of_fit:
        blocks.append(Note("These are not exactly the cells that the model was fitted on; the model remembers others."))
    if known.collected is not None:
        blocks.append(Note(str(known.collected.account)))
    blocks.append(_holes(known, where))
    values = _values(known)
    blocks.append(Note("Give the data of the fit to see their values here.") if values is None else values)
    return Section("seen", "What was seen", blocks)


def _seen_by(model: Any) -> Observed:
    """The cells that the model remembers to have seen, without their values."""
    indptr, indices = model.seen_.of(np.arange(len(model.W_)))
    return Observed(indptr, indices, np.ones(indices.size), (len(model.W_), len(model.H_)))


def _facts(known: Known, where: Observed) -> list[tuple[str, Any]]:
    n, m = known.shape
    cells = n * m
    seen = cells - where.unseen_places
    word = "asked" if known.is_uncoupled else "seen"
    pairs: list[tuple[str, Any]] = [
        ("Rows", n),
        ("Columns", m),
        (f"Cells {word}", f"{seen:,} of {cells:,} ({percent(seen / cells)})"),
        ("Unseen cells are", _MEANING[getattr(known.model, "unseen", None)]),
        (f"Cells {word} a row", _middle(where.seen_per_row())),
        (f"Cells {word} a column", _middle(where.seen_per_column())),
    ]
    if known.train is not None and not known.has_words:
        values = known.train.values
        pairs.append(("Values", f"{_from_to(values)}, {number(float(values.mean()))} in the mean"))
    if known.train is not None and known.train.weights is not None:
        pairs.append(("Weights", _from_to(known.train.weights)))
    return pairs


def _from_to(values: Any) -> str:
    return f"{number(float(values.min()))} to {number(float(values.max()))}"


def _middle(counts: Any) -> str:
    return f"{counts.min():,} to {counts.max():,}, median {np.median(counts):,.4g}"


def _holes(known: Known, where: Observed) -> Picture:
    n, m = where.shape
    share = where.nnz / (n * m)
    is_sparse = share < _SPARSE
    word = "asked" if known.is_uncoupled else "seen"
    order = ", those of which most is seen first" if is_sparse else ""
    alt = f"Map of {n:,} rows by {m:,} columns{order}: {percent(share)} of all cells are {word}."
    svg = drawn(lambda ax: plots.holes(where, sort=is_sparse, bins=120, ax=ax))
    return Picture(svg, alt, f"Which cells were {word}: the bluer, the more of a place.")


def _values(known: Known) -> Picture | None:
    X: Any = known.train if known.collected is None else known.collected
    if X is None and known.answers is not None:
        X = known.answers[0][None]  # a model that samples remembers the answers
    if X is None:
        return None
    counts, names, edges = histogram_of_values(X)
    what = "answer" if known.is_uncoupled else "cell"

    def draw(ax: Any) -> None:
        plots.values(X, ax=ax).set_ylabel(f"{what}s")

    bars = names or [f"{low} to {high}" for low, high in pairwise(told_apart(edges.tolist(), 4))]
    most = int(np.argmax(counts))
    whole = counted(int(counts.sum()), what)
    alt = f"Histogram of {whole} by value, from {bars[0]} to {bars[-1]}; most have {bars[most]}."
    rows = [[bar, int(count)] for bar, count in zip(placed(bars), counts, strict=True)]
    table = Table(f"Numbers of {what}s by value", ["Value", f"{what.capitalize()}s"], rows, bar=1)
    return Picture(drawn(draw), alt, f"How often each value was {'given' if what == 'answer' else 'seen'}.", table)
