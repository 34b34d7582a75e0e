"""What a report is made from: the model, and the training and test cells in the model's rows and columns."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

import halfseen
from halfseen.arrays import Array
from halfseen.errors import DataError, DataWarning, ParameterError
from halfseen.estimators.inputs import unfold_rows
from halfseen.metrics.scorers import held_out
from halfseen.metrics.value_scores import group_means
from halfseen.model import FittedModel
from halfseen.observed import Observed, match_cells
from halfseen.plots.model_plots import best_model, describe_unfit, has_factors
from halfseen.plots.ordinal_plots import level_names
from halfseen.ranking import Seen, read_cells
from halfseen.report.page import MAX_LABEL_LENGTH, Ordered, in_order, label_text

#: Columns whose mean sizes differ by more than this factor are taken to have different units.
_UNITS_FACTOR = 20.0


@dataclass(frozen=True)
class Units:
    """Standard deviation of each column, or of the answers to each question (`of`), in training."""

    of: str
    spreads: Array
    are_rows: bool
    """Whether each belongs to a row of the model."""


@dataclass(frozen=True)
class ReportContext:
    """The model and its data; of test, the cells that training has not seen; and the warnings while reading them."""

    model: Any
    record: FittedModel
    unseen: str | None
    """What an unseen cell means; None for uncoupled data, where nobody was asked."""
    inner_shape: tuple[int, ...] | None
    """The further axes of a tensor."""
    train: Observed | None
    test: Observed | None
    uncoupled: Any
    """Training data of an UncoupledNMF, if they are given."""
    train_warnings: list[str]
    test_warnings: list[str]
    titles: Mapping[Any, str | None]
    """Of columns, by label."""

    @classmethod
    def from_data(cls, model: Any, train: Any, test: Any, titles: Mapping[Any, str | None]) -> ReportContext:
        """Read the data as the model reads them, or raise an error where they don't belong to it."""
        model = best_model(model)
        if not has_factors(model):
            must = "A report must be of a fitted model with factors."
            raise ParameterError(must, **describe_unfit(model), parameter="model")
        record, inner_shape = model.model_, getattr(model, "inner_shape_", None)
        unseen = None if hasattr(model, "questions_are_") else record.unseen
        uncoupled = train if isinstance(train, halfseen.Uncoupled) else None
        if train is not None and (uncoupled is None) != (unseen is not None):
            what = "a halfseen.Uncoupled" if uncoupled is None else "data as for its fit"
            raise DataError(
                f"must be {what} for a report of {type(model).__name__}.",
                parameter="train",
                found=type(train).__name__,
                remedy="Pass what the model was fitted on, or leave it out.",
            )
        read: dict[str, Observed | None] = {}
        caught: dict[str, list[warnings.WarningMessage]] = {}
        for name, X in (("train", None if uncoupled else train), ("test", test)):
            with warnings.catch_warnings(record=True) as caught[name]:
                warnings.simplefilter("always", DataWarning)
                cells = read[name] = _read(record, inner_shape, X, name)
                if name == "test" and cells is not None and unseen is not None:
                    known = read["train"]
                    further = [] if known is None else [Seen(known.indptr, known.indices, known.shape[1])]
                    read[name] = held_out(cells, model.seen_, *further)
        for one in (*caught["train"], *caught["test"]):
            warnings.warn(one.message, stacklevel=3)  # at the caller of make_report
        of_train, of_test = (
            [str(one.message) for one in of if issubclass(one.category, DataWarning)] for of in caught.values()
        )
        known, held = read["train"], read["test"]
        return cls(model, record, unseen, inner_shape, known, held, uncoupled, of_train, of_test, titles)

    @property
    def questions_are_rows(self) -> bool:
        """Of uncoupled data: whether questions are the rows of the model."""
        return bool(self.model.questions_are_ == "rows")

    @property
    def seen(self) -> Observed:
        """The cells of training; without them, the positions that the model remembers, with values of 1."""
        if self.train is not None:
            return self.train
        indptr, indices = self.model.seen_.in_rows(np.arange(self.record.shape[0]))
        how = {"unseen": self.unseen or "missing", **self.record.labels._asdict()}
        return Observed(indptr, indices, np.ones(indices.size), self.record.shape, **how)

    @property
    def is_training_data(self) -> bool:
        """Whether train is what the model was fitted on, as far as the model knows."""
        known, given = self.record.fingerprint, self.train or self.uncoupled
        return given is None or known is None or given.fingerprint() == known

    @property
    def answers(self) -> tuple[Array, Array] | None:
        """The answers of uncoupled data, and where those of each question begin and end, if they are known."""
        given = self.uncoupled if self.is_training_data else None
        known = getattr(self.model, "posterior_", None) if given is None else given
        return None if known is None or known.answers.size == 0 else (known.answers, known.answer_indptr)

    @property
    def has_text_levels(self) -> bool:
        """Whether levels are texts."""
        return self.record.encoder.is_text

    @property
    def lowest_level(self) -> str:
        """Name of the lowest level that is a text."""
        return label_text(self.record.encoder.levels_to_read[0])

    @cached_property
    def units(self) -> Units | None:
        """The units of columns, or of questions, where they differ and training is known."""
        if self.answers is not None:
            answers, ends = self.answers
            of, are_rows, size = "question", self.questions_are_rows, ends.size - 1
            positions, values = np.repeat(np.arange(size), np.diff(ends)), answers.astype(np.float64)
        elif self.train is None or self.record.encoder.has_levels:  # levels are the same everywhere
            return None
        else:
            of, are_rows, size = "column", False, self.record.shape[1]
            positions, values = self.train.indices, self.train.values.astype(np.float64)
        if not units_differ(positions, values, size):
            return None
        means = group_means(positions, values, size)
        return Units(of, np.sqrt(group_means(positions, (values - means[positions]) ** 2, size)), are_rows)

    def numeric_values(self, cells: Observed) -> Array:
        """The values of cells on the scale of `predict`: levels that are texts are 0, 1, ..."""
        return self.record.encoder.codes(cells).values if self.has_text_levels else cells.values

    def ordered_levels(self, labels: Array) -> list[Ordered]:
        """Levels of the model as tables show and sort them."""
        texts = in_order(level_names(self.model.levels_, MAX_LABEL_LENGTH))
        by_label = dict(zip(self.model.levels_.tolist(), texts, strict=True))
        return [by_label[label] for label in labels.tolist()]

    def cell_labels(self, rows: Array, columns: Array) -> tuple[Array, Array]:
        """The model's labels of cells at positions."""
        return self.record.labels_at(rows, "row"), self.record.labels_at(columns, "column")

    def names(self, positions: Array, side: str) -> list[str]:
        """Rows or columns as tables show them; those of a tensor by their positions on its axes."""
        if side == "column" and self.inner_shape is not None:
            return [", ".join(map(str, np.unravel_index(one, self.inner_shape))) for one in np.asarray(positions)]
        labels = self.record.labels_at(np.asarray(positions), side).tolist()
        titles = self.titles if side == "column" else {}
        return [label_text(titles.get(label) or label) for label in labels]


def units_differ(positions: Array, values: Array, size: int) -> bool:
    """Whether the values at some positions are many times those at others, and would hide them."""
    sizes = group_means(positions, np.abs(values), size)
    sizes = sizes[sizes > 0]
    return bool(sizes.size and sizes.max() > _UNITS_FACTOR * sizes.min())


def _read(record: FittedModel, inner_shape: tuple[int, ...] | None, X: Any, name: str) -> Observed | None:
    """The cells of X at the model's rows and columns, or None if there is no X."""
    if X is None:
        return None
    X = unfold_rows(X, inner_shape)[0]
    given = read_cells(X, name, record.unseen, record.encoder.levels_to_read)
    cells = match_cells(given, record.shape, record.labels, name, duplicates="keep")
    if cells.nnz == 0:
        raise DataError(
            "must have cells in the rows and columns of the model.",
            parameter=name,
            found=f"none among {given.nnz:,} cells of {given.shape[0]:,} rows and {given.shape[1]:,} columns",
            remedy="Check that it is of the data of the fit.",
        )
    return replace(cells, level_names=given.level_names)
