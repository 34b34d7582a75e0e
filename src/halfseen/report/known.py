"""What a report knows: the model, and the cells of training and test in the model's rows and columns."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from halfseen.arrays import Array
from halfseen.data.uncoupled import Uncoupled
from halfseen.errors import DataError, DataWarning, ParameterError
from halfseen.estimators.features import read_cells
from halfseen.estimators.labelling import labels_at
from halfseen.estimators.leveled import LeveledMixin
from halfseen.estimators.seen import Seen
from halfseen.estimators.tensors import rows_unfolded
from halfseen.labels import Places
from halfseen.metrics.held_out import held_out
from halfseen.observed import Observed, match_cells
from halfseen.plots.levels import level_names
from halfseen.plots.models import best_of, found, has_factors
from halfseen.report.blocks import LETTERS, Placed, placed, text_of


@dataclass(frozen=True)
class Known:
    """All that sections are written from; of test, the cells that training has not seen.

    `remarks` are what was warned of while the data of the fit were read, `remarks_on_test` what of test.
    """

    model: Any
    train: Observed | None
    test: Observed | None
    collected: Uncoupled | None
    remarks: tuple[str, ...]
    remarks_on_test: tuple[str, ...]

    @classmethod
    def of(cls, model: Any, train: Any, test: Any) -> Known:
        """Reads the data as the model reads them; refuses what has nothing to do with it."""
        model = best_of(model)
        collected = train if isinstance(train, Uncoupled) else None
        _check_kinds(model, train, collected)
        with _caught() as of_train:
            seen = None if collected else _cells(model, train, "train")
        with _caught() as of_test:
            held = _held_out(model, seen, _cells(model, test, "test"))
        for one in (*of_train, *of_test):
            warnings.warn(one.message, stacklevel=3)  # where the user asked for a report
        return cls(model, seen, held, collected, _sentences(of_train), _sentences(of_test))

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
        given = self.train or self.collected
        return given is None or known is None or given.fingerprint() == known

    @property
    def answers(self) -> tuple[Array, Array] | None:
        """Of uncoupled data the answers, and where those of each question begin and end, if they are known."""
        collected = self.collected if self.is_of_fit else None
        known = getattr(self.model, "_posterior", None) if collected is None else collected
        return None if known is None or known.answers.size == 0 else (known.answers, known.answer_indptr)

    @property
    def has_words(self) -> bool:
        """Whether levels are texts."""
        return isinstance(self.model, LeveledMixin) and self.model._numbers is None

    @property
    def lowest(self) -> str:
        """What the lowest level that is a text is called."""
        return text_of(self.model._fitted_names()[0])

    @property
    def counting(self) -> str:
        """How levels that are texts are counted where numbers are needed, for a caption."""
        return f", levels counted 0, 1, ... from {self.lowest}" if self.has_words else ""

    def numbers(self, cells: Observed) -> Array:
        """The values of cells as `predict` tells them: levels that are texts count 0, 1, ..."""
        if self.has_words:
            return self.model._counted(cells).values
        return cells.values

    def levels(self, labels: Array) -> list[Placed]:
        """Levels of the model as tables show and sort them."""
        texts = level_names(self.model.levels_, LETTERS)
        names = dict(zip(self.model.levels_.tolist(), placed(texts), strict=True))
        return [names[label] for label in labels.tolist()]

    def names(self, places: Array, side: str) -> list[str]:
        """Rows or columns at positions as tables show them; those of a tensor by their places on its axes."""
        inner = getattr(self.model, "inner_shape_", None)
        if side == "column" and inner is not None:
            return [", ".join(map(str, np.unravel_index(place, inner))) for place in np.asarray(places)]
        return [text_of(label) for label in labels_at(self.model, np.asarray(places), side).tolist()]


def _check_kinds(model: Any, train: Any, collected: Uncoupled | None) -> None:
    if not has_factors(model):
        raise ParameterError(f"A report must be of a fitted model with factors. {found(model)}")
    if train is not None and (collected is None) != hasattr(model, "unseen"):
        what = "a halfseen.Uncoupled" if collected is None else "data as for its fit"
        raise DataError(
            f"train must be {what} for a report of {type(model).__name__}. Found {type(train).__name__}. "
            "Pass what the model was fitted on, or leave it out."
        )


def _held_out(model: Any, train: Observed | None, test: Observed | None) -> Observed | None:
    """The cells of test that neither the fit nor train has seen; an answer that was asked for was not seen."""
    if test is None or not hasattr(model, "unseen"):
        return test
    further = [] if train is None else [Seen(train.indptr, train.indices, train.shape[1])]
    return held_out(test, model.seen_, *further)


def _sentences(caught: list[warnings.WarningMessage]) -> tuple[str, ...]:
    return tuple(str(one.message) for one in caught if issubclass(one.category, DataWarning))


@contextmanager
def _caught() -> Iterator[list[warnings.WarningMessage]]:
    """What is warned of meanwhile."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", DataWarning)
        yield caught


def _cells(model: Any, X: Any, name: str) -> Observed | None:
    """The cells of X at the model's rows and columns, or None if there is no X."""
    if X is None:
        return None
    X = rows_unfolded(X, getattr(model, "inner_shape_", None))[0]
    names = model._fitted_names() if hasattr(model, "_fitted_names") else None
    given = read_cells(X, name, getattr(model, "unseen", "missing"), names)
    shape, labels = (len(model.W_), len(model.H_)), Places(model.row_labels_, model.column_labels_)
    cells = match_cells(given, shape, labels, name, duplicates="keep")
    if cells.nnz == 0:
        raise DataError(
            f"{name} must have cells in the rows and columns of the model. Found none among {given.nnz:,} cells of "
            f"{given.shape[0]:,} rows and {given.shape[1]:,} columns. Check that it is of the data of the fit."
        )
    return replace(cells, level_names=given.level_names)
