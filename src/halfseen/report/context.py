"""What a report is made from: the model, and the cells of training and test in the model's rows and columns."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from halfseen.arrays import Array
from halfseen.errors import DataError, DataWarning, ParameterError
from halfseen.estimators.inputs import unfold_rows
from halfseen.metrics.scorers import held_out
from halfseen.model import Seen, read_cells
from halfseen.observed import Observed, match_cells
from halfseen.plots.model_plots import best_model, describe_unfit, has_factors
from halfseen.plots.ordinal_plots import level_names
from halfseen.report.blocks import MAX_LETTERS, Placed, label_text, placed
from halfseen.uncoupled import Uncoupled

#: Columns whose mean sizes differ by more than this factor are taken to have different units.
_UNITS_FACTOR = 20.0


@dataclass(frozen=True)
class Units:
    """The standard deviation of each column ("column"), or of each question's answers ("question"), in training."""

    whose: str
    spreads: Array
    are_rows: bool
    """Whether each belongs to a row of the model."""


@dataclass(frozen=True)
class ReportContext:
    """The model and its data; of test, the cells that training has not seen; and the warnings while reading them."""

    model: Any
    train: Observed | None
    test: Observed | None
    collected: Uncoupled | None
    train_warnings: list[str]
    test_warnings: list[str]

    @classmethod
    def from_data(cls, model: Any, train: Any, test: Any) -> ReportContext:
        """Read the data as the model reads them, or raise an error where they don't belong to it."""
        model = best_model(model)
        collected = train if isinstance(train, Uncoupled) else None
        if not has_factors(model):
            raise ParameterError("A report must be of a fitted model with factors.", **describe_unfit(model))
        if train is not None and (collected is None) != hasattr(model, "unseen"):
            what = "a halfseen.Uncoupled" if collected is None else "data as for its fit"
            raise DataError(
                f"train must be {what} for a report of {type(model).__name__}. Found {type(train).__name__}. "
                "Pass what the model was fitted on, or leave it out."
            )
        with _recorded_warnings() as of_train:
            cells = None if collected else _read(model, train, "train")
        with _recorded_warnings() as of_test:
            held = _read(model, test, "test")
            if held is not None and hasattr(model, "unseen"):
                further = [] if cells is None else [Seen(cells.indptr, cells.indices, cells.shape[1])]
                held = held_out(held, model.seen_, *further)
        for one in (*of_train, *of_test):
            warnings.warn(one.message, stacklevel=3)  # at the caller of make_report
        texts = (
            [str(one.message) for one in caught if issubclass(one.category, DataWarning)]
            for caught in (of_train, of_test)
        )
        return cls(model, cells, held, collected, *texts)

    @property
    def is_uncoupled(self) -> bool:
        return not hasattr(self.model, "unseen")

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.model.W_), len(self.model.H_)

    @property
    def inner_shape(self) -> tuple[int, ...] | None:
        """The further axes of a tensor."""
        return getattr(self.model, "inner_shape_", None)

    @property
    def seen(self) -> Observed:
        """The cells of training; without them, the positions that the model remembers, with values of 1."""
        if self.train is not None:
            return self.train
        model = self.model
        indptr, indices = model.seen_.in_rows(np.arange(len(model.W_)))
        how = {"row_labels": model.row_labels_, "column_labels": model.column_labels_}
        how |= {} if self.is_uncoupled else {"unseen": model.model_.unseen}
        return Observed(indptr, indices, np.ones(indices.size), self.shape, **how)

    @property
    def is_of_fit(self) -> bool:
        """Whether train is what the model was fitted on, as far as the model knows."""
        known = self.model.model_.fingerprint
        given = self.train or self.collected
        return given is None or known is None or given.fingerprint() == known

    @property
    def answers(self) -> tuple[Array, Array] | None:
        """The answers of uncoupled data, and where those of each question begin and end, if they are known."""
        collected = self.collected if self.is_of_fit else None
        known = getattr(self.model, "posterior_", None) if collected is None else collected
        return None if known is None or known.answers.size == 0 else (known.answers, known.answer_indptr)

    @property
    def has_words(self) -> bool:
        """Whether levels are texts."""
        return bool(self.model.model_.encoder.is_text)

    @property
    def lowest(self) -> str:
        """The name of the lowest level that is a text."""
        return label_text(self.model.model_.encoder.levels_to_read[0])

    @cached_property
    def units(self) -> Units | None:
        """The units of columns, or of questions, where they differ and training is known."""
        if self.answers is not None:
            answers, ends = self.answers
            whose, are_rows, size = "question", self.model.questions_are_ == "rows", ends.size - 1
            places, values = np.repeat(np.arange(size), np.diff(ends)), answers.astype(np.float64)
        elif self.train is None or "levels" in self.model.offers:  # levels are the same everywhere
            return None
        else:
            whose, are_rows, size = "column", False, self.shape[1]
            places, values = self.train.indices, self.train.values.astype(np.float64)
        if not units_differ(places, values, size):
            return None
        means = _means(places, values, size)
        return Units(whose, np.sqrt(_means(places, (values - means[places]) ** 2, size)), are_rows)

    def numbers(self, cells: Observed) -> Array:
        """The values of cells on the scale of `predict`: levels that are texts are 0, 1, ..."""
        return self.model.model_.encoder.codes(cells).values if self.has_words else cells.values

    def levels(self, labels: Array) -> list[Placed]:
        """Levels of the model as tables show and sort them."""
        texts = level_names(self.model.levels_, MAX_LETTERS)
        names = dict(zip(self.model.levels_.tolist(), placed(texts), strict=True))
        return [names[label] for label in labels.tolist()]

    def labels(self, rows: Array, columns: Array) -> tuple[Any, Any]:
        """The model's labels of cells at positions."""
        record = self.model.model_
        return record.labels_at(rows, "row"), record.labels_at(columns, "column")

    def names(self, places: Array, side: str) -> list[str]:
        """Rows or columns as tables show them; those of a tensor by their positions on its axes."""
        if side == "column" and self.inner_shape is not None:
            return [", ".join(map(str, np.unravel_index(place, self.inner_shape))) for place in np.asarray(places)]
        return [label_text(label) for label in self.model.model_.labels_at(np.asarray(places), side).tolist()]


def units_differ(places: Array, values: Array, size: int) -> bool:
    """Whether the values at some places are many times those at others, and would hide them."""
    sizes = _means(places, np.abs(values), size)
    sizes = sizes[sizes > 0]
    return bool(sizes.size and sizes.max() > _UNITS_FACTOR * sizes.min())


def _means(places: Array, values: Array, size: int) -> Array:
    """The mean of the values at each place; 0 where there are none."""
    return np.bincount(places, values, size) / np.maximum(np.bincount(places, minlength=size), 1)


@contextmanager
def _recorded_warnings() -> Iterator[list[warnings.WarningMessage]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", DataWarning)
        yield caught


def _read(model: Any, X: Any, name: str) -> Observed | None:
    """The cells of X at the model's rows and columns, or None if there is no X."""
    if X is None:
        return None
    X = unfold_rows(X, getattr(model, "inner_shape_", None))[0]
    record = model.model_
    given = read_cells(X, name, record.unseen, record.encoder.levels_to_read)
    cells = match_cells(given, record.shape, record.labels, name, duplicates="keep")
    if cells.nnz == 0:
        raise DataError(
            f"{name} must have cells in the rows and columns of the model. Found none among {given.nnz:,} cells of "
            f"{given.shape[0]:,} rows and {given.shape[1]:,} columns. Check that it is of the data of the fit."
        )
    return replace(cells, level_names=given.level_names)
