"""Filling the holes of a table of mixed columns."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import narwhals as nw
import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.validation import check_is_fitted, validate_data
from threadpoolctl import threadpool_limits

from halfseen import validation
from halfseen.arrays import Array
from halfseen.docstrings import insert_parameters
from halfseen.errors import DataError, DataWarning
from halfseen.estimators.inputs import Seed
from halfseen.imputation.blend import CANDIDATES, FEW_CELLS, Filled, TableModel, fit_table
from halfseen.imputation.columns import LEFT_OUT, NUMBERS, Column, missing_cells, recognise_choices, recognise_numbers
from halfseen.io.schema import check_present
from halfseen.io.sources import as_frame

#: Least weight of a candidate that `quality_` names.
NAMED_WEIGHT = 0.1


def column_list(must: str) -> validation.Rule:
    def rule(value: Any) -> tuple[str, str] | None:
        is_list = not isinstance(value, str) and isinstance(value, Sequence | np.ndarray | frozenset | set)
        return None if is_list else (f"a list of columns {must}", "Write ['name'] for a single one.")

    return rule


def level_lists() -> validation.Rule:
    def rule(value: Any) -> tuple[str, str] | None:
        lists = value.values() if isinstance(value, Mapping) else () if value is None else (value,)
        ordered = [not isinstance(one, str) and hasattr(one, "__len__") and len(one) > 1 for one in lists]
        if all(ordered) and all(len(set(one)) == len(one) for one in lists):
            return None
        must = "None, a list of different levels from the lowest to the highest, or a dict of such lists by column"
        return must, 'Write `levels=["bad", "fair", "good"]`.'

    return rule


@dataclass(frozen=True)
class Cells:
    """A table as it was passed, and its columns: floats with NaN, or objects.

    Parameters
    ----------
    frame : narwhals DataFrame or None
        The frame, if it is one.
    array : ndarray or None
        The array, if it is one.
    names : list
        Names of the columns, or their positions.
    columns : list of ndarray
        Their cells.
    orders : dict of int to list
        Levels of ordered categories of a frame, by position.
    """

    frame: Any
    array: Any
    names: list[Any]
    columns: list[Array]
    orders: dict[int, list[Any]]


@insert_parameters
class TableImputer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Fill the holes of a table: numbers of any sign, ordered levels, categories and booleans.

    Every hole has several candidates: the column's mean; a Gaussian with all other columns, fitted by EM to the cells
    that are seen; the same on normal scores, which are levels with thresholds where values are few (a Gaussian copula);
    both with the mean residual of the ten rows most alike; these rows' own mean; gradient boosting. They are blended
    with weights for each column that are best on cells held out, so that a column which nothing predicts gets its mean.
    Residuals of the held-out cells give the intervals.

    Numbers are filled with their expected values, within the range of what was seen. Columns of ids, codes, dates and
    free text are left as they are: their holes stay. Arrays give arrays, frames of pandas and polars such frames.

    Parameters
    ----------
    levels : list or dict of list, default=None
        Ordered levels from the lowest to the highest: for columns by name (or position), or one list for all columns of
        text that hold nothing else. Ordered categories of a frame have their order already.
    categories : list of str or int, default=()
        Columns whose different values are categories, also where they are numbers.
    numbers : list of str or int, default=()
        Columns of numbers that are amounts, though their name speaks of ids or codes.
    skip : list of str or int, default=()
        Columns to leave as they are and out of the fit.
    decimals : "auto" or None, default=None
        "auto" rounds what is filled in to the digits that a column's numbers have. Columns of integers stay integers
        in any case.
    boosting : bool, default=True
        Whether gradient boosting is a candidate, in tables of at most 100 columns (categories count one each). Without
        it, a fit takes a fraction of the time.
    max_rows : int, default=10000
        Rows of the fit, drawn at random where there are more. All rows are filled.
    random_state : int, RandomState or None, default=None
        Seed of the draws of held-out cells and rows.

    Attributes
    ----------
    quality_ : dict of ndarray
        An entry per column, for `pandas.DataFrame(imputer.quality_)`: "column"; "kind"; "error" of held-out cells, root
        mean squared, in the column's standard deviation; "mean_error", the column mean's; "held_out", their number;
        "used", the candidates that weigh most, or why a column is left as it is.
    columns_ : tuple of Column
        What each column was recognised as, with its categories or levels.
    notes_ : tuple of DataWarning
        Columns that are left as they are, and why.
    model_ : TableModel or None
        The fitted candidates and weights; None if there is no column to fit.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if these are text.

    Notes
    -----
    Errors and intervals are those of cells that were hidden at random: they hold where missing cells are like seen ones
    given the row's other cells. Where a cell is missing because of its own value, no method that looks at the seen
    cells can know.

    Examples
    --------
    >>> import numpy as np, halfseen as hs
    >>> table = np.array([[i, 2.0 * i, 30 - i] for i in range(30)])
    >>> table[4, 1] = np.nan
    >>> imputer = hs.TableImputer(random_state=0, decimals="auto").fit(table)
    >>> imputer.transform(table)[4]
    array([ 4.,  8., 26.])
    """

    parameter_rules: ClassVar[Mapping[str, validation.Rule]] = {
        "levels": level_lists(),
        "categories": column_list("of categories"),
        "numbers": column_list("of amounts"),
        "skip": column_list("to leave as they are"),
        "decimals": validation.one_of("auto", or_none=True),
        "boosting": validation.flag(),
        "max_rows": validation.whole(2),
        "random_state": validation.seed(),
    }

    def __init__(
        self,
        *,
        levels: Any = None,
        categories: Sequence[Any] = (),
        numbers: Sequence[Any] = (),
        skip: Sequence[Any] = (),
        decimals: str | None = None,
        boosting: bool = True,
        max_rows: int = 10_000,
        random_state: Seed = None,
    ) -> None:
        self.levels = levels
        self.categories = categories
        self.numbers = numbers
        self.skip = skip
        self.decimals = decimals
        self.boosting = boosting
        self.max_rows = max_rows
        self.random_state = random_state

    def fit(self, X: Any, y: object = None) -> Self:
        """Recognise the columns and fit the candidates and their weights.

        Parameters
        ----------
        X : array-like or frame of shape (n, p)
            Dense array, or pandas or polars frame; NaN or null where nothing was seen.
        y : None
            Ignored, for scikit-learn's pipelines.

        Returns
        -------
        self
        """
        validation.check_parameters(self.get_params(deep=False), self.parameter_rules)
        cells = self._read(X, reset=True)
        columns = self._recognise(cells)
        features = features_of(columns, cells)
        groups = np.repeat(np.arange(len(columns)), [column.width for column in columns])
        model: TableModel | None = None
        if features.shape[1]:
            random = check_random_state(self.random_state)
            with threadpool_limits(1 if features.size <= FEW_CELLS else None):
                model = fit_table(features, groups, trees=self.boosting, max_rows=self.max_rows, random_state=random)
        self.columns_, self.model_ = columns, model
        self.quality_ = quality_table(columns, groups, model)
        self.notes_ = tuple(
            DataWarning(f"Column {column.name!r} is left as it is: {LEFT_OUT[column.kind]}.")
            for column in columns
            if column.kind in LEFT_OUT
        )
        holey = [
            f"{column.name!r} ({LEFT_OUT[column.kind]})"
            for column, one in zip(columns, cells.columns, strict=True)
            if column.kind in LEFT_OUT and column.kind != "skipped" and missing_cells(one).any()
        ]
        if holey:
            others = "" if len(holey) <= 5 else f", and {len(holey) - 5} more"
            must = "Columns with holes should hold numbers, levels, categories or booleans."
            remedy = "Their holes stay. Name such columns in `numbers`, `categories` or `levels`, or in `skip`."
            warnings.warn(DataWarning(must, found=", ".join(holey[:5]) + others, remedy=remedy), stacklevel=2)
        return self

    def transform(self, X: Any) -> Any:
        """Fill the holes of rows of the table, or of new ones.

        Parameters
        ----------
        X : array-like or frame of shape (n, p)
            Rows with the columns of the fit.

        Returns
        -------
        array or frame of shape (n, p)
            Of the kind of X; what was seen stays as it was.
        """
        check_is_fitted(self)
        cells = self._read(X, reset=False)
        features, filled = self._predict(cells)
        return self._fill(cells, self._completed(features, filled))

    def predict_interval(self, X: Any, level: float = 0.9) -> tuple[Any, Any]:
        """Intervals that hold the missing values with a given probability.

        Parameters
        ----------
        X : array-like or frame of shape (n, p)
            Rows with the columns of the fit.
        level : float, default=0.9
            Probability that an interval holds the value.

        Returns
        -------
        low, high : array or frame of shape (n, p)
            Ends, of the kind of X; seen cells are themselves. Holes of categories stay, as these have no order.
        """
        check_is_fitted(self)
        validation.check_parameters({"level": level}, {"level": validation.between(0, 1)})
        cells = self._read(X, reset=False)
        features, filled = self._predict(cells)
        ends = []
        for probability in ((1 - level) / 2, (1 + level) / 2):
            asked = None if filled is None else np.full(filled.means.size, probability)
            ends.append(self._fill(cells, self._completed(features, filled, asked), interval=True))
        return ends[0], ends[1]

    @insert_parameters
    def sample(self, X: Any, n: int = 1, random_state: Seed = None) -> list[Any]:
        """Draw complete tables, for multiple imputation.

        The holes of a row are drawn together: they vary with each other as the Gaussian says, each by the residuals
        of its column.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, p)
            Rows with the columns of the fit.
        n : int, default=1
            Number of tables.
        {random_state:draws}

        Returns
        -------
        list of (array or frame)
            Of the kind of X.
        """
        check_is_fitted(self)
        rules = {"n": validation.whole(1), "random_state": validation.seed()}
        validation.check_parameters({"n": n, "random_state": random_state}, rules)
        cells, random = self._read(X, reset=False), check_random_state(random_state)
        features, filled = self._predict(cells)
        model, tables = self.model_, []
        for _ in range(n):
            if model is None or filled is None:
                tables.append(self._fill(cells, features))
                continue
            ranks = model.ranks(features, filled, random)
            completed, means, places = self._completed(features, filled, ranks), features.copy(), features.copy()
            means[filled.rows, filled.columns], places[filled.rows, filled.columns] = filled.means, ranks
            for column, start in zip(self.columns_, self._starts(), strict=True):
                if column.kind in ("category", "boolean"):
                    rows, here = np.isnan(features[:, start]), slice(start, start + column.width)
                    completed[rows, here] = column.draw(means[rows, here], places[rows, start])
            tables.append(self._fill(cells, completed))
        return tables

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _read(self, X: Any, reset: bool) -> Cells:
        """The columns of X, which must be those of the fit unless `reset`."""
        frame = as_frame(X)
        if frame is None:
            array = validate_data(self, X, dtype=None, ensure_all_finite=False, reset=reset)
            if array.dtype.kind not in "OUS":
                array = array if array.dtype in (np.float32, np.float64) else array.astype(np.float64)
            else:
                try:
                    array = array.astype(np.float64)
                except ValueError:  # text; a TypeError of what is no cell at all passes
                    array = array.astype(object)
            cells = Cells(None, array, list(range(array.shape[1])), [as_floats(one) for one in array.T], {})
        else:
            validate_data(self, X, skip_check_array=True, reset=reset)
            if len(frame) == 0 or not frame.columns:
                must = "A table must have a row and a column."
                raise DataError(must, found=f"shape {frame.shape}", remedy="Check what was passed.", parameter="X")
            dtypes = [frame.schema[name] for name in frame.columns]
            orders = {place: list(one.categories) for place, one in enumerate(dtypes) if isinstance(one, nw.Enum)}
            columns = [series_cells(frame[name]) for name in frame.columns]
            cells = Cells(frame, None, list(frame.columns), columns, orders)
        for name, column in zip(cells.names, cells.columns, strict=True):
            if column.dtype.kind == "f" and np.isinf(column).any():
                row = int(np.argmax(np.isinf(column)))
                where, remedy = f"at row {row}, column {name!r}", "Replace it by NaN if it is unknown."
                raise DataError(
                    "Values must be finite.", found=str(column[row]), where=where, remedy=remedy, parameter="X"
                )
        return cells

    def _recognise(self, cells: Cells) -> tuple[Column, ...]:
        """The kinds of all columns."""
        by_name = dict(self.levels) if isinstance(self.levels, Mapping) else {}
        for name in (*by_name, *self.categories, *self.numbers, *self.skip):
            check_present(name, cells.names)
        for_all = [] if self.levels is None or by_name else list(self.levels)
        columns = []
        for position, (name, one) in enumerate(zip(cells.names, cells.columns, strict=True)):
            levels = by_name.get(name, cells.orders.get(position))
            is_text = one.dtype.kind == "O"
            if levels is None and is_text and for_all:
                present = {value for value in one.tolist() if isinstance(value, str)}
                levels = for_all if present and present <= set(for_all) else None
            if name in self.skip:
                columns.append(Column(name, "skipped"))
            elif levels is not None or name in self.categories or is_text:
                columns.append(recognise_choices(name, one, levels, name in self.categories))
            else:
                named, amount = cells.frame is not None, name in self.numbers
                columns.append(recognise_numbers(name, one, named=named, amount=amount))
        return tuple(columns)

    def _predict(self, cells: Cells) -> tuple[Array, Filled | None]:
        """The columns of the fit, and predictions for their holes."""
        features = features_of(self.columns_, cells)
        if self.model_ is None or not np.isnan(features).any():
            return features, None
        return features, self.model_.predict(features)

    def _completed(self, features: Array, filled: Filled | None, probabilities: Array | None = None) -> Array:
        """The columns of the fit, completed: by means, and medians of levels, or by quantiles at probabilities."""
        if self.model_ is None or filled is None:
            return features
        completed = features.copy()
        values = filled.means if probabilities is None else self.model_.quantile(filled, probabilities)
        completed[filled.rows, filled.columns] = values
        for column, start in zip(self.columns_, self._starts(), strict=True):
            here = filled.columns == start
            if column.kind != "levels" or not here.any():
                continue
            levels, shares = self.model_.level_shares(filled, start)
            asked = np.full(here.sum(), 0.5) if probabilities is None else probabilities[here]
            places = (np.cumsum(shares, axis=0) < asked).sum(axis=0)
            completed[filled.rows[here], start] = levels[np.minimum(places, levels.size - 1)]
        return completed

    def _starts(self) -> Array:
        """The first column of the fit of each column."""
        return np.cumsum([0, *(column.width for column in self.columns_)])[:-1]

    def _fill(self, cells: Cells, completed: Array, interval: bool = False) -> Any:
        """The table with the holes filled, as it was passed."""
        array = None if cells.array is None else cells.array.copy()
        frame = cells.frame
        kinds = zip(self.columns_, self._starts(), cells.columns, strict=True)
        for position, (column, start, one) in enumerate(kinds):
            rows = np.flatnonzero(missing_cells(one)) if column.width else np.empty(0, int)
            if rows.size == 0 or (interval and column.kind in ("category", "boolean")):
                continue
            round_to = column.decimals if self.decimals == "auto" and not interval else None
            values = column.decode(completed[rows, start : start + column.width], round_to)
            if array is not None:
                array[rows, position] = values
            else:
                frame = frame.with_columns(scattered(frame[cells.names[position]], rows, values, interval))
        if array is not None:
            return array
        wanted = None if interval else _get_output_config("transform", self)["dense"]
        if wanted == "pandas" and not frame.implementation.is_pandas():
            return frame.to_pandas()
        if wanted == "polars" and not frame.implementation.is_polars():
            return frame.to_polars()
        return frame.to_native()


def as_floats(cells: Array) -> Array:
    """A column as floats if all that it shows are numbers, else as it is."""
    if cells.dtype.kind == "f":
        return cells.astype(np.float64, copy=False)
    holes = missing_cells(cells)
    if not all(
        isinstance(one, int | float | np.number) and not isinstance(one, bool) for one in cells[~holes].tolist()
    ):
        return cells
    numbers = np.full(cells.size, np.nan)
    numbers[~holes] = cells[~holes]
    return numbers


def series_cells(series: Any) -> Array:
    """A column of a frame: floats, or objects."""
    if series.dtype.is_numeric():
        return series.cast(nw.Float64).to_numpy().astype(np.float64, copy=False)
    cells = np.empty(len(series), dtype=object)
    cells[:] = series.to_list()
    return as_floats(cells)


def features_of(columns: Sequence[Column], cells: Cells) -> Array:
    """The columns of the fit side by side, NaN where nothing is known."""
    parts = [np.empty((len(cells.columns[0]), 0))]
    for column, one in zip(columns, cells.columns, strict=True):
        if not column.width:
            continue
        if column.kind in NUMBERS and one.dtype.kind != "f":
            odd = next((value for value in one.tolist() if isinstance(value, str | bool)), None)
            if odd is not None:
                must, where = "A column of numbers must hold numbers.", f"in column {column.name!r}"
                raise DataError(
                    must, found=repr(odd), where=where, remedy="Use a null if it is unknown.", parameter="X"
                )
        numbers, unknown = column.encode(one)
        if unknown.size:
            must = f"Column {column.name!r} should hold what it held in the fit."
            found = f"{one[unknown[0]]!r} at row {unknown[0]}" + (
                f", and {unknown.size - 1} more" if unknown.size > 1 else ""
            )
            remedy = "It stays, and says nothing of the other cells of its row."
            warnings.warn(DataWarning(must, found=found, remedy=remedy), stacklevel=4)
        parts.append(numbers)
    return np.hstack(parts)


def scattered(series: Any, rows: Array, values: Array, interval: bool) -> Any:
    """The series with these values in these rows, of its own type; floats for the ends of intervals."""
    dtype = series.dtype
    if dtype.is_numeric():
        if dtype.is_integer() and not interval:
            return series.scatter(rows.tolist(), np.round(values.astype(float)).astype(np.int64).tolist())
        series = series.cast(nw.Float64) if dtype.is_integer() else series
        return series.scatter(rows.tolist(), values.astype(float).tolist())
    if isinstance(dtype, nw.Categorical | nw.Enum) and not series.implementation.is_pandas_like():
        texts = series.cast(nw.String).scatter(rows.tolist(), values.tolist())
        return texts.cast(dtype)
    return series.scatter(rows.tolist(), values.tolist())


def quality_table(columns: Sequence[Column], groups: Array, model: TableModel | None) -> dict[str, Array]:
    """An entry per column: its kind, errors of held-out cells, and what was used."""
    errors, mean_errors, held_out, used = [], [], [], []
    for place, column in enumerate(columns):
        own = np.flatnonzero(groups == place)
        if model is None or own.size == 0:
            errors.append(np.nan)
            mean_errors.append(np.nan)
            held_out.append(0)
            used.append(f"nothing: {LEFT_OUT[column.kind]}" if column.kind in LEFT_OUT else "mean")
            continue
        shown = model.n_held_out[own[0]] > 0
        errors.append(np.sqrt(np.mean(model.errors[own] ** 2)) if shown else np.nan)
        mean_errors.append(np.sqrt(np.mean(model.mean_errors[own] ** 2)) if shown else np.nan)
        held_out.append(int(model.n_held_out[own[0]]))
        weights = model.weights[own].mean(axis=0)
        named = [CANDIDATES[c] for c in np.argsort(-weights, kind="stable") if weights[c] >= NAMED_WEIGHT]
        used.append("mean" if column.kind == "constant" else ", ".join(named) or "mean")
    names = np.empty(len(columns), dtype=object)
    names[:] = [column.name for column in columns]
    return {
        "column": names,
        "kind": np.array([column.kind for column in columns]),
        "error": np.array(errors, dtype=float),
        "mean_error": np.array(mean_errors, dtype=float),
        "held_out": np.array(held_out, dtype=int),
        "used": np.array(used),
    }
