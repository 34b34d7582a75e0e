"""The sections on levels: where they begin, and whether data drawn from the model look like the data."""

from __future__ import annotations

import numpy as np

from halfseen import plots
from halfseen.estimators.leveled import LeveledMixin
from halfseen.estimators.ordinal import OrdinalMixin
from halfseen.estimators.predictive import PredictiveMixin
from halfseen.metrics import predictive_check
from halfseen.plots.levels import level_names
from halfseen.report.blocks import LETTERS, Note, Picture, Section, Table, placed
from halfseen.report.drawing import drawn
from halfseen.report.known import Known

#: So many cells of data sets are drawn in all, which takes a few seconds; and so many sets at most, and at least.
_CELLS_DRAWN = 1e8
_MOST_SETS, _FEWEST_SETS = 10, 3


def where_levels_begin(known: Known) -> Section | None:
    """Thresholds between levels."""
    model = known.model
    if not isinstance(model, LeveledMixin):
        return None
    cuts = np.asarray(model.thresholds_, dtype=np.float64).tolist()  # type: ignore[attr-defined]
    names = level_names(model.levels_, LETTERS)
    heads, rows = ["Level", "Begins at"], [[name, cut] for name, cut in zip(placed(names)[1:], cuts, strict=True)]
    if isinstance(model, OrdinalMixin):  # whose scale is free
        heads, rows = [*heads, "Over the lowest"], [[*row, cut / cuts[0]] for row, cut in zip(rows, cuts, strict=True)]
    alt = f"Bars of the {len(names)} levels from {names[0]} to {names[-1]}, each from its threshold to the next."
    caption = "Where each level is, by the product of a row's and a column's factors."
    table = Table("Thresholds, in units of the product", heads, rows, is_wide=False)
    picture = Picture(drawn(lambda ax: plots.thresholds(model, ax=ax)), alt, caption)
    return Section("levels", "Where levels begin", [picture, table])


def drawn_data(known: Known) -> Section | None:
    """A posterior predictive check, where data can be drawn and the data of the fit are here."""
    model = known.model
    if known.train is None or not isinstance(model, PredictiveMixin):
        return None
    title = "Whether the model draws such data"
    cells = np.prod(known.shape, dtype=float) if model.unseen == "zero" else float(known.train.nnz)
    sets = int(min(_MOST_SETS, _CELLS_DRAWN // cells))
    if sets < _FEWEST_SETS:
        sentence = "The data are too large to draw whole sets of them here. See halfseen.metrics.predictive_check."
        return Section("drawn", title, [Note(sentence)])
    check = predictive_check(model, known.train, sets)
    checks = {type(model).__name__: check}
    names = level_names(check.levels, LETTERS)
    counts = zip(placed(names), check.observed, check.mean, check.low, check.high, strict=True)
    rows = [[name, *(float(number) for number in numbers)] for name, *numbers in counts]
    inside = int(np.count_nonzero((check.low <= check.observed) & (check.observed <= check.high)))
    alt = (
        f"Bars of the data's number of cells by level, points of the mean number in {sets} data sets drawn from the "
        f"model; {inside} of {len(names)} bars end within the interval of the draws."
    )
    caption = f"Cells of the data (bars) and of {sets} data sets drawn from the model (points), by level."
    heads = ["Level", "In the data", "Drawn, mean", "Low", "High"]
    picture = Picture(drawn(lambda ax: plots.level_histograms(checks, ax=ax)), alt, caption)
    table = Table("Cells by level", heads, rows, is_wide=False)
    told = "Where the model is right, bars end about where points are."
    return Section("drawn", title, [Note(told), picture, table])
