"""How a thing is to be read, and the last step that all readers share."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from halfseen.data.cells import Cells, index_dtype
from halfseen.data.labels import Places, positions_among, uniform
from halfseen.data.observed import Observed
from halfseen.data.scales import Scale
from halfseen.errors import DataError, ParameterError

LAYOUTS = ("auto", "long", "wide")


@dataclass(frozen=True)
class Reading:
    """The wishes of the caller of `observe`, under the same names."""

    unseen: str = "missing"
    cell_weight: Any = None
    duplicates: str = "error"
    layout: str = "auto"
    columns: tuple[Any, ...] | None = None
    column_labels: np.ndarray | None = None
    allow_empty: bool = False
    header: bool | None = None
    levels: Any = None

    def __post_init__(self) -> None:
        Scale.of(self.levels)
        if self.layout not in LAYOUTS:
            raise ParameterError(f"layout must be one of {', '.join(LAYOUTS)}. Found {self.layout!r}.")
        if self.columns is not None and not self._names_columns(self.columns):
            raise ParameterError(
                'columns must name different headers of rows, columns and values, such as ("user", "item", "rating"), '
                f"or the first two when every pair counts as 1. Found {self.columns!r}."
            )

    def _names_columns(self, columns: Any) -> bool:
        """Whether `columns` are two or three different names, the ids no weights."""
        is_tuple = isinstance(columns, (tuple, list)) and len(columns) in (2, 3)
        return is_tuple and len(set(columns)) == len(columns) and self.weight_name not in columns[:2]

    @cached_property
    def scale(self) -> Scale:
        """How values are written."""
        return Scale.of(self.levels)

    @property
    def weight_name(self) -> str | None:
        """The header of the column of weights, if the weights were given so."""
        return self.cell_weight if isinstance(self.cell_weight, str) else None

    @cached_property
    def fitted_labels(self) -> np.ndarray | None:
        """The labels of the fitted columns as one array; None if there are none to find."""
        return None if self.column_labels is None else uniform(self.column_labels, "column")

    def fits_column(self, name: Any) -> bool:
        """Whether a header is a fitted column's, which then holds values whatever it looks like."""
        return name in self._fitted_names

    @cached_property
    def _fitted_names(self) -> frozenset[Any]:
        return frozenset(() if self.fitted_labels is None else self.fitted_labels.tolist())

    @property
    def numbers_columns(self) -> bool:
        """Whether the columns of a long table are given by their positions."""
        return self.columns is not None and all(isinstance(name, int) for name in self.columns)

    def refuse_frame_words(self) -> None:
        """Refuse wishes that only frames and files can fulfil."""
        words = (self.columns, self.weight_name, self.header)
        if self.layout == "long" or any(word is not None for word in words):
            raise DataError(
                "layout, columns, header and a weight's column name speak of frames and files. Found them with an "
                "array. Pass a frame or a file, or leave them out."
            )

    def refuse_weight_name(self) -> None:
        """Refuse a single column of weights for a wide table."""
        if self.weight_name is not None:
            raise DataError(
                f"A wide table must have a weight for every cell. Found only the column {self.weight_name!r}. "
                "Pass an array of the table's shape."
            )

    def observed(
        self,
        cells: Cells,
        shape: tuple[int, int],
        row_labels: np.ndarray | None = None,
        column_labels: np.ndarray | None = None,
        zeros: str = "keep",
    ) -> Observed:
        """The cells, their columns placed among the fitted ones where these are known, as an `Observed`.

        The cells passed in are used up.
        Readers of dense arrays and wide tables say zeros="drop": a 0 is how nothing is written there.
        """
        if self.fitted_labels is not None:
            shape, column_labels = self._among_fitted(cells, shape, column_labels, self.fitted_labels)
        labels = (row_labels, column_labels)
        observed = Observed._of_cells(cells, shape, self.unseen, labels, self.duplicates, zeros, self.allow_empty)
        return replace(observed, level_names=self.scale.labels) if self.scale.names else observed

    def _among_fitted(
        self, cells: Cells, shape: tuple[int, int], labels: np.ndarray | None, fitted: np.ndarray
    ) -> tuple[tuple[int, int], np.ndarray]:
        if labels is not None:
            positions = positions_among(labels, fitted).astype(index_dtype((1, fitted.size), labels.size))
            cells.columns = positions[cells.columns]
            return (shape[0], fitted.size), fitted
        if shape[1] != fitted.size:
            raise DataError(
                f"X must have the {fitted.size} columns that were fitted. Found {shape[1]}, without names. "
                "Pass a frame whose columns have names, or an array of the right width."
            )
        return shape, fitted


def weights_of(cells: Cells, shape: tuple[int, int], cell_weight: Any) -> np.ndarray | None:
    """The weight of each of the cells, from an array of the matrix' shape, a sparse one, or a list in their order."""
    if cell_weight is None:
        return None
    if sparse.issparse(cell_weight):
        _check_shape(cell_weight.shape, shape)
        return _looked_up(cells, shape, cell_weight)
    weights = np.asarray(cell_weight)
    if weights.ndim == 1:
        return _one_each(weights, cells.values.size)
    _check_shape(weights.shape, shape)
    return weights[cells.rows, cells.columns]


def _one_each(weights: np.ndarray, count: int) -> np.ndarray:
    if weights.size != count:
        raise DataError(
            f"cell_weight must hold one weight for each of the {count} cells. Found {weights.size}. "
            "Pass them in the order of the cells."
        )
    return weights


def _check_shape(found: tuple[int, ...], shape: tuple[int, int]) -> None:
    if found != shape:
        raise DataError(f"cell_weight must have the shape of X, {shape}. Found {found}. Pass a weight for each cell.")


def _looked_up(cells: Cells, shape: tuple[int, int], weights: Any) -> np.ndarray:
    """Look every cell up among the stored weights, which must be of exactly these cells."""
    stored = weights.tocoo()
    rows, columns = stored.coords
    known = rows.astype(np.int64) * shape[1] + columns
    order = np.argsort(known, kind="stable")
    asked = cells.rows.astype(np.int64) * shape[1] + cells.columns
    place = np.minimum(np.searchsorted(known[order], asked), max(known.size - 1, 0))
    found = known[order][place] == asked if known.size else np.zeros(asked.size, dtype=bool)
    if not found.all():
        first = int(np.argmin(found))
        where = Places().of(int(cells.rows[first]), int(cells.columns[first]))
        raise DataError(f"cell_weight must store a weight for every cell of X. Found none at {where}. Add it.")
    if known.size != asked.size:
        raise DataError(
            f"cell_weight must store the same cells as X. Found {known.size} weights for {asked.size} cells. "
            "Delete the weights of unseen cells."
        )
    return stored.data[order][place]
