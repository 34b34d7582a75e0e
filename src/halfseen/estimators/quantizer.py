"""Counts as ordered levels."""

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self

import narwhals as nw
import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from halfseen import validation
from halfseen.arrays import Array
from halfseen.docstrings import insert_parameters
from halfseen.errors import DataError
from halfseen.estimators.inputs import Data
from halfseen.io import observe
from halfseen.io.reader import Grid, grid_of
from halfseen.io.schema import ReadOptions, recognise
from halfseen.io.sources import as_frame, frame_table
from halfseen.observed import Observed, as_values

#: From values to as many values, NaN to NaN.
Rule = Callable[[Array], Array]


def _edges() -> validation.Rule:
    def rule(value: Any) -> tuple[str, str] | None:
        if isinstance(value, str) and value == "quantiles":
            return None
        is_list = not isinstance(value, str) and hasattr(value, "__len__") and np.ndim(value) == 1 and len(value) > 0
        edges = np.asarray(value) if is_list else np.zeros(1)
        if edges.dtype.kind in "iuf" and edges[0] > 0 and np.all(np.diff(edges) > 0) and np.all(np.isfinite(edges)):
            return None
        return '"quantiles" or a list of finite numbers above 0, each larger than the one before', "Sort them."

    return rule


class Quantizer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Counts as ordered levels: the level of a value is the number of edges that it reaches.

        level(y) = #{ l : edge_l <= y }

    0 below the first edge, V from the last of V edges on. Unseen cells stay unseen, and X keeps its kind: an array
    gives an array, a sparse matrix one that stores the same cells, an `Observed` an `Observed`, a wide frame a frame
    with other numbers, a long frame one with another column of values. A file gives an `Observed`.

    Parameters
    ----------
    edges : "quantiles" or array-like of float, default="quantiles"
        Ascending numbers above 0, so that 0 stays level 0; [1, 2, 3, 6, 11, 21, 51, 101, 201, 501] are where the
        classes of play counts of Gouvert, Oberlin & Févotte (2020) begin. "quantiles": edges are learned from the
        values above 0 that `fit` sees, the lowest of them first, so that each level has about as many.
    n_levels : int, default=10
        Number of levels above 0 that are learned by "quantiles"; fewer where one value alone fills several.

    Attributes
    ----------
    edges_ : ndarray
        Edges, given or learned.
    values_ : ndarray
        For each level 0..V a value that has it, which `inverse_transform` gives: the median of the values of this level
        in the fit; of a level that had none, its edge (0 for level 0).
    n_features_in_ : int
        Number of columns, if the columns of X are the columns of the matrix.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if these are text.

    Examples
    --------
    >>> import numpy as np, halfseen as hs
    >>> plays = np.array([[0, 1, np.nan], [3, 30, 7.0]])
    >>> hs.Quantizer([1, 2, 5, 10]).fit_transform(plays)
    array([[ 0.,  1., nan],
           [ 2.,  4.,  3.]])
    """

    parameter_rules: ClassVar[Mapping[str, validation.Rule]] = {"edges": _edges(), "n_levels": validation.whole(1)}

    def __init__(self, edges: Any = "quantiles", *, n_levels: int = 10) -> None:
        self.edges = edges
        self.n_levels = n_levels

    @insert_parameters
    def fit(self, X: Data, y: object = None) -> Self:
        """Learn the edges, if they are not given, and what a value of each level is.

        Parameters
        ----------
        {X}
        {y}

        Returns
        -------
        self
        """
        validation.check_parameters(self.get_params(deep=False), self.parameter_rules)
        values = np.sort(observe(X, unseen=None).values.astype(np.float64))
        edges = self._learned(values) if isinstance(self.edges, str) else np.asarray(self.edges, np.float64)
        self._compare_columns(X, reset=True)
        self.edges_, self.values_ = edges, _medians(values, edges)
        return self

    @insert_parameters
    def transform(self, X: Data) -> Any:
        """Replace values by levels.

        Parameters
        ----------
        {X}

        Returns
        -------
        array, sparse matrix, frame or Observed
            Of the kind of X.
        """
        check_is_fitted(self)
        self._compare_columns(X, reset=False)
        return _replaced(X, self._levels_of)

    @insert_parameters
    def inverse_transform(self, X: Data) -> Any:
        """Replace levels by values: each by the one in `values_`, which `transform` turns back.

        Parameters
        ----------
        {X}

        Returns
        -------
        array, sparse matrix, frame or Observed
            Of the kind of X.
        """
        check_is_fitted(self)
        return _replaced(X, self._values_of)

    def _learned(self, values: Array) -> Array:
        """Of the values above 0, in order, those that begin each of `n_levels` equal parts."""
        positive = values[np.searchsorted(values, 0.0, side="right") :]
        if positive.size == 0:
            raise DataError(
                "Edges are learned from values above 0.",
                found=f"none among {values.size}",
                remedy="Give the edges: Quantizer([1, 2, 5, 10]).",
                parameter="edges",
            )
        return np.unique(positive[np.arange(self.n_levels) * positive.size // self.n_levels])

    def _levels_of(self, values: Array) -> Array:
        levels = np.searchsorted(self.edges_, values, side="right").astype(values.dtype)
        return np.where(np.isnan(values), values, levels)

    def _values_of(self, levels: Array) -> Array:
        seen = ~np.isnan(levels)
        known = np.isin(levels, np.arange(self.values_.size))
        if np.any(seen & ~known):
            raise DataError(
                f"Levels must be whole numbers from 0 to {self.edges_.size}.",
                found=f"{levels[seen & ~known][0]}",
                remedy="Pass levels as transform gives them; round expected ones.",
                parameter="X",
            )
        values = self.values_[np.where(seen, levels, 0).astype(np.intp)].astype(levels.dtype)
        return np.where(seen, values, levels)

    def _compare_columns(self, X: Data, reset: bool) -> None:
        """Keep the columns of a table, or compare them with those kept; anything else has cells, and no columns."""
        if reset:
            for name in ("n_features_in_", "feature_names_in_"):
                self.__dict__.pop(name, None)
        if sparse.issparse(X) or grid_of(X) is not None:
            validate_data(self, X, skip_check_array=True, reset=reset)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _medians(values: Array, edges: Array) -> Array:
    """The median of the values, which are sorted, of each level: one of them, so that it has the level itself."""
    ends = np.append(np.searchsorted(values, edges), values.size)
    starts = np.append(0, ends[:-1])
    middles = np.minimum((starts + ends - 1) // 2, values.size - 1)
    return np.where(ends > starts, values[middles], np.append(0.0, edges))


def _replaced(X: Any, rule: Rule) -> Any:
    """X with other values."""
    observed = observe(X, unseen=None, allow_empty=True)  # which refuses what can't be read, with its place
    if isinstance(X, Observed | str | os.PathLike):
        return replace(observed, values=rule(observed.values))
    if sparse.issparse(X):
        return _replaced_in_sparse(X, rule)
    frame, grid = as_frame(X), grid_of(X)
    if grid is None:
        return _replaced_in_long(frame, rule)
    return rule(grid.values) if frame is None else _replaced_in_wide(frame, grid, rule)


def _replaced_in_sparse(X: Any, rule: Rule) -> Any:
    stored = X.tocsr() if X.format in ("lil", "dok") else X.copy()
    stored.data = rule(as_values(stored.data))
    return stored.asformat(X.format)


def _replaced_in_long(frame: Any, rule: Rule) -> Any:
    table = frame_table(frame)
    header = recognise(table, ReadOptions())
    if header is None or header.value is None:
        raise DataError(
            "A long table must have a column of values.",
            found=f"only {', '.join(map(repr, frame.columns))}, every pair counting as 1",
            remedy='Count the pairs first: `observe(X, duplicates="sum")`.',
            parameter="X",
        )
    return _with_columns(frame, {header.value: rule(table.numbers(header.value))})


def _replaced_in_wide(frame: Any, grid: Grid, rule: Rule) -> Any:
    """Columns that name the rows stay."""
    names = frame.columns if grid.column_labels is None else grid.column_labels.tolist()
    return _with_columns(frame, dict(zip(names, rule(grid.values).T, strict=True)))


def _with_columns(frame: Any, columns: dict[Any, Array]) -> Any:
    """The frame with these columns in the place of its own; whole numbers stay whole numbers."""
    backend = nw.get_native_namespace(frame)
    series = []
    for name, numbers in columns.items():
        whole = frame.schema[name].is_integer() and np.all(numbers == np.floor(numbers))
        series.append(nw.new_series(name, numbers.astype(np.int64) if whole else numbers, backend=backend))
    return frame.with_columns(*series).to_native()
