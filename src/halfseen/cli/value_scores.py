"""How far off a model's values are at cells that it has not seen."""

from typing import Any, NamedTuple

import numpy as np

from halfseen.data import Observed


class ValueScores(NamedTuple):
    """Of the values that a model predicts, and of its probabilities of levels, if it has any."""

    cells: int
    root_mean_squared_error: float
    within_half: float
    """The share of cells with |prediction - value| <= 1/2."""
    ranked_probability_score: float | None


def value_scores(model: Any, cells: Observed) -> ValueScores | None:
    """The scores over cells in the rows and columns of the model; None if there are none."""
    from halfseen.metrics import ranked_probability_score

    cells = model._counted(cells) if hasattr(model, "levels_") else cells
    if cells.nnz == 0:
        return None
    rows, columns = cells.row_of_cell(), cells.indices
    u = rows if model.row_labels_ is None else model.row_labels_[rows]
    i = columns if model.column_labels_ is None else model.column_labels_[columns]
    errors = np.abs(model.predict(u, i) - _values(model, cells))
    ranked = None
    if hasattr(model, "predict_proba"):
        ranked = ranked_probability_score(cells.values.astype(np.int64), model.predict_proba(u, i))
    return ValueScores(cells.nnz, float(np.sqrt(np.mean(errors**2))), float(np.mean(errors <= 0.5)), ranked)


def _values(model: Any, cells: Observed) -> Any:
    """The values of cells as `predict` tells them: levels that are words count 0, 1, ..."""
    levels = getattr(model, "levels_", None)
    if levels is None or levels.dtype.kind == "O":
        return cells.values
    return levels[cells.values.astype(np.int64)]


def counted_levels(model: Any) -> str:
    """How levels that are words count where a model tells numbers; nothing of other values."""
    levels = getattr(model, "levels_", None)
    if levels is None or levels.dtype.kind != "O":
        return ""
    return f"levels counted {'1, 2' if model.unseen == 'zero' else '0, 1'}, ... from {model._fitted_names()[0]!r}"
