"""What a report knows: the model, and the cells of training and test in the model's rows and columns."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from halfseen.arrays import Array
from halfseen.data import Observed, Uncoupled
from halfseen.data.labels import Places
from halfseen.data.matching import matched
from halfseen.errors import DataError, DataWarning, ParameterError
from halfseen.estimators.features import read_cells
from halfseen.estimators.labelling import labels_at
from halfseen.estimators.leveled import LeveledMixin
from halfseen.estimators.tensors import rows_unfolded
from halfseen.report.blocks import text_of


@dataclass(frozen=True)
class Known:
    """All that sections are written from. `remarks` are what was warned of while data were read."""

    model: Any
    train: Observed | None
    test: Observed | None
    collected: Uncoupled | None
    remarks: tuple[str, ...]

    @classmethod
    def of(cls, model: Any, train: Any, test: Any) -> Known:
        """Reads the data as the model reads them; refuses what has nothing to do with it."""
        collected = train if isinstance(train, Uncoupled) else None
        _check_kinds(model, train, collected)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", DataWarning)
            cells = [_cells(model, X, name) for X, name in ((None if collected else train, "train"), (test, "test"))]
        remarks = tuple(str(one.message) for one in caught if issubclass(one.category, DataWarning))
        for one in caught:
            warnings.warn(one.message, stacklevel=3)  # where the user asked for a report
        return cls(model, cells[0], cells[1], collected, remarks)

    @property
    def is_uncoupled(self) -> bool:
        """Whether the model is of uncoupled data."""
        return not hasattr(self.model, "unseen")

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.model.W_), len(self.model.H_)

    @property
    def is_of_fit(self) -> bool:
        """Whether train is what the model was fitted on, as far as the model can tell."""
        known = getattr(self.model, "fingerprint_", None)
        return self.train is None or known is None or self.train.fingerprint() == known

    def numbers(self, cells: Observed) -> Array:
        """The values of cells as `predict` tells them: levels that are texts count 0, 1, ..."""
        if isinstance(self.model, LeveledMixin) and self.model._numbers is None:
            return self.model._counted(cells).values
        return cells.values

    def names(self, places: Array, side: str) -> list[str]:
        """Rows or columns at positions as tables show them; those of a tensor by their places on its axes."""
        inner = getattr(self.model, "inner_shape_", None)
        if side == "column" and inner is not None:
            return [", ".join(map(str, np.unravel_index(place, inner))) for place in np.asarray(places)]
        return [text_of(label) for label in labels_at(self.model, np.asarray(places), side).tolist()]


def _check_kinds(model: Any, train: Any, collected: Uncoupled | None) -> None:
    if not hasattr(model, "trace_") or not hasattr(model, "H_"):
        raise ParameterError(
            f"A report must be of a fitted model with factors. Found a {type(model).__name__} "
            f"{'that is not fitted' if hasattr(model, 'fit') else 'instead'}. Fit a model, or load one."
        )
    if train is not None and (collected is None) != hasattr(model, "unseen"):
        what = "a halfseen.Uncoupled" if collected is None else "data as for its fit"
        raise DataError(
            f"train must be {what} for a report of {type(model).__name__}. Found {type(train).__name__}. "
            "Pass what the model was fitted on, or leave it out."
        )


def _cells(model: Any, X: Any, name: str) -> Observed | None:
    """The cells of X at the model's rows and columns, or None if there is no X."""
    if X is None:
        return None
    X = rows_unfolded(X, getattr(model, "inner_shape_", None))[0]
    names = model._fitted_names() if hasattr(model, "_fitted_names") else None
    given = read_cells(X, name, getattr(model, "unseen", "missing"), names)
    shape, labels = (len(model.W_), len(model.H_)), Places(model.row_labels_, model.column_labels_)
    found = matched(given, shape, labels, name, duplicates="keep")
    if found.nnz == 0:
        raise DataError(
            f"{name} must have cells in the rows and columns of the model. Found none among {given.nnz:,} cells of "
            f"{given.shape[0]:,} rows and {given.shape[1]:,} columns. Check that it is of the data of the fit."
        )
    return replace(found, level_names=given.level_names)
