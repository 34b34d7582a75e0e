"""Filling the holes of a table of mixed columns."""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, ClassVar, Self

import narwhals as nw
import numpy as np
import pyarrow as pa
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from halfseen import validation
from halfseen.arrays import Array
from halfseen.docstrings import insert_parameters
from halfseen.errors import DataError, DataWarning
from halfseen.estimators.inputs import Seed
from halfseen.imputation.blend import CANDIDATES, HELD_OUT, Filled, TableModel, fit_table
from halfseen.imputation.columns import (
    CHOICES,
    LEFT_OUT,
    Column,
    choose_scale,
    missing_cells,
    plain_value,
    recognise_choices,
    recognise_numbers,
)
from halfseen.imputation.trees import limited_threads
from halfseen.io.schema import check_present
from halfseen.io.sources import as_frame

#: Least weight of a candidate that `quality_` names.
NAMED_WEIGHT = 0.1
#: Standard errors by which the most frequent value must be more often right than the median level, to be noted.
SURE = 2.5
#: Share of a column's variance from which on a single cell is noted, in columns that show so many cells.
MOST_VARIANCE, LEAST_CELLS = 0.9, 20


def column_list(must: str) -> validation.Rule:
    def rule(value: Any) -> tuple[str, str] | None:
        is_list = not isinstance(value, str) and isinstance(value, Sequence | np.ndarray | frozenset | set)
        return None if is_list else (f"a list of columns {must}", "Write ['name'] for a single one.")

    return rule


def level_lists() -> validation.Rule:
    def rule(value: Any) -> tuple[str, str] | None:
        lists = list(value.values()) if isinstance(value, Mapping) else scales_of(value)
        ordered = [not isinstance(one, str) and hasattr(one, "__len__") and len(one) > 1 for one in lists]
        if all(ordered) and all(len(set(one)) == len(one) for one in lists):
            return None
        must = "None, a list of different levels from the lowest to the highest, several such lists, or a dict of them"
        return must, 'Write `levels=["bad", "fair", "good"]`.'

    return rule


def scales_of(levels: Any) -> list[Any]:
    """The lists of levels for all columns of text: one, several, or none."""
    if levels is None or isinstance(levels, Mapping):
        return []
    several = levels if isinstance(levels, Sequence) and not isinstance(levels, str) else ()
    nested = any(isinstance(one, Sequence) and not isinstance(one, str) for one in several)
    return list(levels) if nested else [levels]


def has_choices(imputer: Any) -> bool:
    """Whether a fitted imputer has columns whose values have probabilities; True before the fit."""
    columns = getattr(imputer, "columns_", None)
    return columns is None or any(column.kind in CHOICES for column in columns)


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
    are_integers : list of bool
        Which columns of a frame are of integers.
    """

    frame: Any
    array: Any
    names: list[Any]
    columns: list[Array]
    orders: dict[int, list[Any]]
    are_integers: list[bool]


@insert_parameters
class TableImputer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Fill the holes of a table: numbers of any sign, ordered levels, categories and booleans.

    Every hole has several candidates: the column's mean; a Gaussian with all other columns, fitted by EM to the cells
    that are seen; the same on normal scores, which are levels with thresholds where values are few (a Gaussian copula);
    both with the mean residual of the ten rows most alike; these rows' own mean; gradient boosting; random trees. They
    are blended with weights for each column that are best on cells held out, so that a column which nothing predicts
    gets its mean. Residuals of the held-out cells give the intervals.

    Numbers are filled with their expected values, within the range of what was seen, categories with the most likely
    one, levels with the median one. Whole numbers of few different values are levels, too: columns of floats get their
    expected value, columns of integers and all columns under ``decimals="auto"`` the median level. Columns of ids,
    codes, dates and free text are left as they are: their holes stay. Arrays give arrays, frames of pandas and polars
    such frames.

    Parameters
    ----------
    levels : list, list of list or dict of list, default=None
        Ordered levels from the lowest to the highest: for columns by name (or position), or one or more lists for all
        columns of text that hold nothing else. Ordered categories of a frame have their order already, and words of
        common scales are found (low, medium, high; Tier 1, Tier 2; <18, 18-25, 26+): `notes_` lists the orders.
    categories : list of str or int, default=()
        Columns whose different values are categories without an order, also where they are numbers.
    numbers : list of str or int, default=()
        Columns of numbers that are amounts, though their name speaks of ids or codes, or few values are different.
    skip : list of str or int, default=()
        Columns to leave as they are and out of the fit.
    decimals : "auto" or None, default=None
        "auto" rounds what is filled in to the digits that a column's numbers have. Columns of integers stay integers
        in any case.
    trees : bool, default=True
        Whether gradient boosting and random trees are candidates, in tables of at most 100 columns (each value of a
        category counts as one). Without them, a fit takes a fraction of the time.
    max_rows : int, default=10000
        Rows of the fit, drawn at random where there are more. All rows are filled.
    random_state : int, RandomState or None, default=None
        Seed of the draws of held-out cells and rows.

    Attributes
    ----------
    quality_ : dict of ndarray
        An entry per column, for `pandas.DataFrame(imputer.quality_)`: "column"; "kind"; "error" of held-out cells, root
        mean squared, in the column's standard deviation (of categories: over the 0/1 indicators of their values);
        "mean_error", the column mean's; "ratio" of the two, and its "standard_error"; "accuracy", the share of held-out
        cells that the most likely category or the median level gets right, and "mode_accuracy", that of the most
        frequent value, for levels, categories and booleans of at most 20 values; "held_out", the number of cells;
        "used", the candidates that weigh most, or why a column is left as it is.
    columns_ : tuple of Column
        What each column was recognised as, with its categories or levels.
    notes_ : tuple of DataWarning
        Columns that are left as they are, and why; orders of levels that are words; levels that may be categories, as
        the most frequent value is more often right than the median one; numbers so large that their column's mean
        and spread are theirs.
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
        "trees": validation.flag(),
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
        trees: bool = True,
        max_rows: int = 10_000,
        random_state: Seed = None,
    ) -> None:
        self.levels = levels
        self.categories = categories
        self.numbers = numbers
        self.skip = skip
        self.decimals = decimals
        self.trees = trees
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
            with limited_threads(features.size):
                model = fit_table(features, groups, trees=self.trees, max_rows=self.max_rows, random_state=random)
        self.columns_, self.model_ = columns, model
        self.quality_ = quality_table(columns, groups, model, np.count_nonzero(~np.isnan(features), axis=0))
        notes = [
            DataWarning(f"Column {column.name!r} is left as it is: {LEFT_OUT[column.kind]}.")
            for column in columns
            if column.kind in LEFT_OUT
        ]
        notes += order_notes(columns)
        notes += doubtful_levels(self.quality_)
        for note in (*unused_scales(scales_of(self.levels), columns), *strange_cells(columns, cells.columns)):
            notes.append(note)
            warnings.warn(note, stacklevel=2)
        self.notes_ = tuple(notes)
        holey = [
            f"{column.name!r} ({LEFT_OUT[column.kind]})"
            for column, one in zip(columns, cells.columns, strict=True)
            if column.kind in LEFT_OUT and column.kind != "skipped" and missing_cells(one).any()
        ]
        if holey:
            others = "" if len(holey) <= 5 else f", and {len(holey) - 5} more"
            must = "Columns with holes should hold numbers, levels, categories or booleans."
            are_empty = all(one.endswith(f"({LEFT_OUT['empty']})") for one in holey)
            remedy = (
                "Their holes stay. Drop such columns, or name them in `skip`."
                if are_empty
                else "Their holes stay. Name such columns in `numbers`, `categories` or `levels`, or in `skip`."
            )
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
        if self.model_ is None or filled is None:
            return self._fill(cells, features)
        completed = features.copy()
        completed[filled.rows, filled.columns] = filled.means
        for column, start, is_integer in zip(self.columns_, self._starts(), cells.are_integers, strict=True):
            # levels are filled by the median one; numbers in place of these if they may have decimals
            wanted = is_integer or self.decimals == "auto" if column.is_numeric else column.kind == "levels"
            here = filled.columns == start
            if wanted and column.kind in ("levels", "boolean") and here.any():
                levels, shares = self.model_.level_shares(filled, start)
                places = (np.cumsum(shares, axis=0) < 0.5).sum(axis=0)
                completed[filled.rows[here], start] = levels[np.minimum(places, levels.size - 1)]
        return self._fill(cells, completed)

    @available_if(has_choices)
    def predict_proba(self, X: Any) -> dict[Any, Array]:
        """Probabilities of the values of levels, categories and booleans; there if the fit found such columns.

        Those of levels, also of numbers, are the areas between the column's thresholds under a normal with the
        copula's variance and the blend's mean: ``probabilities @ values`` is what numbers are filled with, and the
        median is what words are filled with, which need not be the most likely level. Those of categories are the
        blend's predictions of their 0/1 indicators, negative ones as 0, scaled to sum 1; the most likely one is filled.
        Both come from least squares on held-out cells, without further calibration.

        Parameters
        ----------
        X : array-like or frame of shape (n, p)
            Rows with the columns of the fit.

        Returns
        -------
        dict of ndarray of shape (n, n_values)
            By column (name, or position in an array), in the order of `columns_[j].values`. Seen cells have 1 at their
            value, and NaN if the fit did not see it.
        """
        check_is_fitted(self)
        cells = self._read(X, reset=False)
        features, filled = self._predict(cells)
        model, means, found = self.model_, features.copy(), {}
        if filled is not None:
            means[filled.rows, filled.columns] = filled.means
        for column, start, one in zip(self.columns_, self._starts(), cells.columns, strict=True):
            if column.kind not in CHOICES:
                continue
            n_values, place_of = len(column.values), {value: place for place, value in enumerate(column.values)}
            places, holes = (
                np.array([place_of.get(plain_value(value), -1) for value in one.tolist()]),
                missing_cells(one),
            )
            shares = np.where(places[:, None] < 0, np.nan, np.eye(n_values)[places])
            if model is not None and filled is not None and holes.any():
                if column.kind == "levels":
                    here, (levels, by_level) = filled.columns == start, model.level_shares(filled, start)
                    at = np.searchsorted(column.values, levels) if column.is_numeric else np.round(levels).astype(int)
                    predicted = np.zeros(shares.shape)
                    for level, share in zip(np.clip(at, 0, n_values - 1), by_level, strict=True):
                        predicted[filled.rows[here], level] += share
                else:
                    predicted = column.shares(means[:, start : start + column.width])
                shares[holes] = predicted[holes]
            found[column.name] = shares
        return found

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
            Ends, of the kind of X; seen cells are themselves. Where different values are few, both ends are such
            values, and the probability is as near to `level` as they allow. Holes of categories stay, as these have no
            order.
        """
        check_is_fitted(self)
        validation.check_parameters({"level": level}, {"level": validation.between(0, 1)})
        cells = self._read(X, reset=False)
        features, filled = self._predict(cells)
        if self.model_ is None or filled is None:
            return self._fill(cells, features, interval=True), self._fill(cells, features, interval=True)
        ends = []
        for values in self.model_.interval(filled, level):
            completed = features.copy()
            completed[filled.rows, filled.columns] = values
            ends.append(self._fill(cells, completed, interval=True))
        return ends[0], ends[1]

    @insert_parameters
    def sample(self, X: Any, n: int = 1, random_state: Seed = None) -> list[Any]:
        """Draw tables with filled holes, for multiple imputation.

        The holes of a row are drawn together: they vary with each other as the Gaussian says, each by the residuals
        of its column; levels, also of numbers, categories and booleans by their probabilities. Each table is drawn with
        a Gaussian fitted to another bootstrap of the rows, so that draws vary by the uncertainty of the parameters, too
        (proper imputation): Rubin's rules need this.

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
        if model is None or filled is None:
            return [self._fill(cells, features) for _ in range(n)]
        for ranks in model.ranks(features, filled, n, random):
            completed, means, places = features.copy(), features.copy(), features.copy()
            completed[filled.rows, filled.columns] = model.quantile(filled, ranks)
            means[filled.rows, filled.columns], places[filled.rows, filled.columns] = filled.means, ranks
            for column, start in zip(self.columns_, self._starts(), strict=True):
                if column.kind in ("category", "boolean"):
                    rows, here = np.isnan(features[:, start]), slice(start, start + column.width)
                    noise = random.standard_normal(np.count_nonzero(rows))
                    completed[rows, here] = column.draw(means[rows, here], places[rows, here], noise)
            tables.append(self._fill(cells, completed))
        return tables

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _read(self, X: Any, reset: bool) -> Cells:
        """The columns of X, which must be those of the fit unless `reset`."""
        frame = as_frame(X)
        if frame is None:
            array = validate_data(self, X, dtype=None, ensure_all_finite=False, reset=reset)
            if array.dtype.kind in "mM":  # dates are not numbers
                array = np.where(np.isnat(array), None, array.astype(object))
            elif array.dtype.kind not in "OUS":
                array = array if array.dtype in (np.float32, np.float64) else array.astype(np.float64)
            else:
                try:
                    array = array.astype(np.float64)
                except ValueError:  # text; a TypeError of what is no cell at all passes
                    is_nan = array == "nan" if array.dtype.kind == "U" else np.zeros(array.shape, dtype=bool)
                    array = array.astype(object)
                    array[is_nan] = None  # as NumPy writes NaN beside texts
            cells = Cells(
                None,
                array,
                list(range(array.shape[1])),
                [as_floats(one) for one in array.T],
                {},
                [False] * array.shape[1],
            )
        else:
            validate_data(self, X, skip_check_array=True, reset=reset)
            if len(frame) == 0 or not frame.columns:
                must = "A table must have a row and a column."
                found = " and ".join(
                    f"{n} {one}{'' if n == 1 else 's'}" for n, one in zip(frame.shape, ("row", "column"), strict=True)
                )
                raise DataError(must, found=found, remedy="Check what was passed.", parameter="X")
            dtypes = list(frame.schema.values())
            orders = {place: list(one.categories) for place, one in enumerate(dtypes) if isinstance(one, nw.Enum)}
            columns = [series_cells(frame.get_column(name)) for name in frame.columns]
            are_integers = [dtype.is_integer() for dtype in dtypes]
            cells = Cells(frame, None, list(frame.columns), columns, orders, are_integers)
        return cells

    def _recognise(self, cells: Cells) -> tuple[Column, ...]:
        """The kinds of all columns."""
        by_name = dict(self.levels) if isinstance(self.levels, Mapping) else {}
        for name in (*by_name, *self.categories, *self.numbers, *self.skip):
            check_present(name, cells.names)
        columns = []
        for position, (name, one) in enumerate(zip(cells.names, cells.columns, strict=True)):
            is_text, is_category = one.dtype.kind == "O", name in self.categories
            levels = by_name.get(name)
            if levels is None and not is_category:
                scale = choose_scale(one, scales_of(self.levels)) if is_text else None
                levels = cells.orders.get(position, scale)
            if name in self.skip:
                columns.append(Column(name, "skipped"))
            elif levels is not None or is_category or is_text:
                if is_text and name in self.numbers:
                    odd = next((value for value in one[~missing_cells(one)].tolist() if not is_amount(value)), None)
                    must, remedy = "Columns in `numbers` must hold numbers.", "Convert the column first."
                    where = f"in column {name!r}"
                    raise DataError(must, found=repr(odd), where=where, remedy=remedy, parameter="numbers")
                columns.append(recognise_choices(name, one, levels, is_category))
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

    def _starts(self) -> Array:
        """The first column of the fit of each column."""
        return np.cumsum([0, *(column.width for column in self.columns_)])[:-1]

    def _fill(self, cells: Cells, completed: Array, interval: bool = False) -> Any:
        """The table with the holes filled, as it was passed."""
        array = None if cells.array is None else cells.array.copy()
        frame, changed = cells.frame, []
        kinds = zip(self.columns_, self._starts(), cells.columns, strict=True)
        for position, (column, start, one) in enumerate(kinds):
            rows = np.flatnonzero(missing_cells(one)) if column.width else np.empty(0, int)
            if rows.size == 0 or (interval and column.kind in ("category", "boolean") and not column.is_numeric):
                continue
            round_to = column.decimals if self.decimals == "auto" and not interval else None
            values = column.decode(completed[rows, start : start + column.width], round_to)
            if array is not None:
                array[rows, position] = values
            else:
                changed.append(scattered(frame.get_column(cells.names[position]), rows, values, interval))
        if array is not None:
            return array
        frame = frame.with_columns(*changed) if changed else frame
        wanted = None if interval else _get_output_config("transform", self)["dense"]
        if wanted == "pandas" and not frame.implementation.is_pandas():
            return frame.to_pandas()
        if wanted == "polars" and not frame.implementation.is_polars():
            return frame.to_polars()
        return frame.to_native()


def is_amount(value: Any) -> bool:
    """Whether a cell is a number, and no boolean."""
    return isinstance(value, int | float | np.number | Decimal) and not isinstance(value, bool)


def as_floats(cells: Array) -> Array:
    """A column as floats if all that it shows are numbers, else as it is."""
    if cells.dtype.kind == "f":
        return cells.astype(np.float64, copy=False)
    holes = missing_cells(cells)
    if not all(map(is_amount, cells[~holes].tolist())):
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
    return cells if isinstance(series.dtype, nw.Categorical | nw.Enum) else as_floats(cells)


def features_of(columns: Sequence[Column], cells: Cells) -> Array:
    """The columns of the fit side by side, NaN where nothing is known."""
    parts = [np.empty((len(cells.columns[0]), 0))]
    for column, one in zip(columns, cells.columns, strict=True):
        if not column.width:
            continue
        if column.is_numeric and one.dtype.kind != "f":
            odd = next((value for value in one.tolist() if isinstance(value, str | bool)), None)
            if odd is not None:
                must, where = "A column of numbers must hold numbers.", f"in column {column.name!r}"
                raise DataError(
                    must, found=repr(odd), where=where, remedy="Use a null if it is unknown.", parameter="X"
                )
        if column.is_numeric and np.isinf(one).any():
            row = int(np.argmax(np.isinf(one)))
            where, remedy = f"at row {row}, column {column.name!r}", "Replace it by NaN if it is unknown."
            raise DataError("Values must be finite.", found=str(one[row]), where=where, remedy=remedy, parameter="X")
        numbers, unknown = column.encode(one)
        if unknown.size:
            must = f"Column {column.name!r} should hold what it held in the fit."
            found = f"{plain_value(one[unknown[0]])!r} at row {unknown[0]}" + (
                f", and {unknown.size - 1} more" if unknown.size > 1 else ""
            )
            remedy = "It stays, and says nothing of the other cells of its row."
            if column.is_numeric:
                remedy = "It stays, and enters as the number that it is. Check whether it is a slip."
            warnings.warn(DataWarning(must, found=found, remedy=remedy), stacklevel=4)
        parts.append(numbers)
    return np.hstack(parts)


def scattered(series: Any, rows: Array, values: Array, interval: bool) -> Any:
    """The series with these values in these rows, of its own type; floats for the ends of intervals.

    A type that can't hold them, as that of new rows in which nothing of the column is seen, becomes one that can.
    """
    if series.implementation.is_pandas_like() and hasattr(series.to_native(), "sparse"):  # nothing can be written into
        series = nw.from_native(series.to_native().sparse.to_dense(), series_only=True)
    dtype = series.dtype
    if isinstance(values[0], str | bool) and (dtype.is_numeric() or isinstance(dtype, nw.Unknown)):
        if series.implementation.is_pandas_like():
            series = nw.from_native(series.to_native().astype(object), series_only=True)
        else:
            series = series.cast(nw.Boolean if isinstance(values[0], bool) else nw.String)
        dtype = series.dtype
    elif values.dtype.kind == "f" and not dtype.is_numeric() and not series.implementation.is_pandas_like():
        series = series.cast(nw.Float64)
        dtype = series.dtype
    if isinstance(dtype, nw.Categorical | nw.Enum) and series.implementation.is_pandas_like():
        native = series.to_native()
        if not hasattr(native, "cat"):  # a dictionary of Arrow
            return replaced(series, rows, values)
        lacking = [one for one in dict.fromkeys(values.tolist()) if one not in native.cat.categories]
        series = nw.from_native(native.cat.add_categories(lacking), series_only=True)
    elif isinstance(dtype, nw.Enum) and not set(values.tolist()) <= set(dtype.categories):
        series = series.cast(nw.String)
        dtype = series.dtype
    if values.dtype.kind == "f" and dtype == nw.Object and any(isinstance(one, Decimal) for one in series.to_list()):
        return series.scatter(rows.tolist(), [Decimal(repr(one)) for one in values.tolist()])  # which adds to no floats
    if dtype.is_numeric():
        if dtype.is_integer() and not interval:
            return series.scatter(rows.tolist(), np.round(values.astype(float)).astype(np.int64).tolist())
        series = series.cast(nw.Float64) if dtype.is_integer() else series
        values = values.astype(float)
        if isinstance(dtype, nw.Decimal) and series.implementation.is_pyarrow():
            values = np.array(pa.array(values).cast(series.to_native().type, safe=False).to_pylist(), dtype=object)
            return replaced(series, rows, values)
        if series.implementation.is_pandas_like():
            native = series.to_native()
            if isinstance(native.dtype, np.dtype):  # which takes no number that it would have to round
                values = values.astype(native.dtype).astype(float)
        return series.scatter(rows.tolist(), values.tolist())
    if series.implementation.is_pyarrow():  # which replaces no large strings and no dictionaries
        return replaced(series, rows, values)
    if isinstance(dtype, nw.Categorical | nw.Enum) and not series.implementation.is_pandas_like():
        texts = series.cast(nw.String).scatter(rows.tolist(), values.tolist())
        return texts.cast(dtype)
    return series.scatter(rows.tolist(), values.tolist())


def replaced(series: Any, rows: Array, values: Array) -> Any:
    """The same for types of Arrow that nothing can be written into: a new series of the same type."""
    cells, native = series.to_list(), series.to_native()
    for row, value in zip(rows.tolist(), values.tolist(), strict=True):
        cells[row] = value
    if series.implementation.is_pandas_like():
        native = type(native)(cells, index=native.index, dtype=native.dtype)
    else:
        native = pa.chunked_array([pa.array(cells, native.type)])
    return nw.from_native(native, series_only=True).alias(series.name)


def unused_scales(scales: Sequence[Sequence[Any]], columns: Sequence[Column]) -> Iterator[DataWarning]:
    """Lists of levels that no column has, each with what the column lacks that has most of its words."""
    for scale in scales:
        if any(column.order == "given" and set(column.values) == set(scale) for column in columns):
            continue
        must, remedy = "Each list of `levels` should hold the words of a column.", "Check their spelling."
        found = f"no column of: {', '.join(map(str, scale))}"
        words = [[one for one in column.values if isinstance(one, str)] for column in columns]
        at = max(range(len(columns)), key=lambda place: len(set(words[place]) & set(scale)))
        near, lacking = columns[at], [repr(one) for one in words[at] if one not in scale]
        if words[at] and not lacking:
            order = f" in the order {' < '.join(words[at])}" if near.order else ""
            found += f"; column {near.name!r} holds {'levels' if near.order else 'categories'} already{order}"
            remedy = f"Pass a dict to say otherwise: `levels={{{near.name!r}: {list(scale)!r}}}`."
        elif lacking and len(lacking) < len(words[at]):
            others = f" and {len(lacking) - 5} more" if len(lacking) > 5 else ""
            found += f"; column {near.name!r} also holds {', '.join(lacking[:5])}{others}"
            remedy = "Add what is missing, or check the spelling."
        yield DataWarning(must, found=found, remedy=remedy)


def order_notes(columns: Sequence[Column]) -> Iterator[DataWarning]:
    """The orders of levels that are words, each with the columns that have it."""
    alike: dict[tuple[tuple[Any, ...], str], list[Any]] = {}
    for column in columns:
        if column.order:
            alike.setdefault((column.values, column.order), []).append(column.name)
    for (values, order), names in alike.items():
        start = f"Column {names[0]!r} holds" if len(names) == 1 else f"Columns {', '.join(map(repr, names[:5]))}"
        start += "" if len(names) == 1 else f"{f' and {len(names) - 5} more' if len(names) > 5 else ''} hold"
        must = f"{start} levels, in the order {order}: {' < '.join(map(str, values))}."
        remedy = "" if order == "given" else f"If they have no order, pass `categories={names[:1]!r}`."
        yield DataWarning(must, remedy=remedy)


def doubtful_levels(quality: Mapping[str, Array]) -> Iterator[DataWarning]:
    """Levels whose median is less often right than their most frequent value, by more than chance.

    The shares p and q of n held-out cells that two fills get right differ by chance by about sqrt((p + q - 2 p q) / n).
    """
    right, mode, n = quality["accuracy"], quality["mode_accuracy"], quality["held_out"]
    chance = np.sqrt((right + mode - 2 * right * mode) / np.maximum(n, 1))
    places = np.flatnonzero((quality["kind"] == "levels") & (mode - right > SURE * chance))
    if places.size:
        names = quality["column"][places[:5]].tolist()
        shown = (
            f"{right[j]:.0%} against {mode[j]:.0%} of the held-out cells of {quality['column'][j]!r}" for j in places
        )
        found = ", ".join([*shown][:5]) + (f", and {places.size - 5} more" if places.size > 5 else "")
        must = "The median level should be right as often as the most frequent value."
        yield DataWarning(
            must, found=found, remedy=f"If the values are names, not amounts, pass `categories={names!r}`."
        )


def strange_cells(columns: Sequence[Column], cells: Sequence[Array]) -> Iterator[DataWarning]:
    """Numbers so far from all others of their column that its mean and spread are theirs, in one note."""
    found = []
    for column, one in zip(columns, cells, strict=True):
        seen = np.flatnonzero(~missing_cells(one))
        if column.kind not in ("continuous", "count") or seen.size < LEAST_CELLS:
            continue
        values = one[seen].astype(float)
        scaled = values / np.abs(values).max()
        squares = (scaled - scaled.mean()) ** 2
        place = int(np.argmax(squares))
        if squares[place] > MOST_VARIANCE * squares.sum():
            found.append(f"{values[place]:g} at row {seen[place]} of column {column.name!r}")
    if found:
        others = f", and {len(found) - 5} more" if len(found) > 5 else ""
        must = "No single cell should make up nearly all of its column's variance."
        remedy = "Make it missing if it is a slip; else fill the column's logarithms."
        yield DataWarning(must, found=", ".join(found[:5]) + others, remedy=remedy)


def ratio_error(ratio: Array, n_cells: Array) -> Array:
    """Standard error of the ratio of a prediction's and the mean's root mean squared errors over the same cells.

        ratio * sqrt((1 - rho^2) / n),    rho = min(ratio, 1 / ratio)

    log(s_1 / s_2) of n pairs of normals with correlation rho has the variance (1 - rho^2) / n. The residual of a
    prediction correlates with the value by the ratio of their spreads, if scaling the prediction would not improve it;
    by the inverse, if the prediction is noise.

    Parameters
    ----------
    ratio : ndarray of shape (p,)
        Error of the prediction over that of the mean.
    n_cells : ndarray of shape (p,)
        Number of different cells.
    """
    rho = np.minimum(ratio, 1 / np.maximum(ratio, 1e-300))
    return ratio * np.sqrt((1 - rho**2) / np.maximum(n_cells, 1))


def quality_table(
    columns: Sequence[Column], groups: Array, model: TableModel | None, n_seen: Array
) -> dict[str, Array]:
    """An entry per column: its kind, errors of held-out cells, and what was used."""
    names, used = np.empty(len(columns), dtype=object), []
    names[:] = [column.name for column in columns]
    errors, mean_errors = np.full(len(columns), np.nan), np.full(len(columns), np.nan)
    accuracies, mode_accuracies = np.full(len(columns), np.nan), np.full(len(columns), np.nan)
    held_out, n_cells = np.zeros(len(columns), dtype=int), np.zeros(len(columns))
    for place, column in enumerate(columns):
        own = np.flatnonzero(groups == place)
        if model is None or own.size == 0:
            used.append(f"nothing: {LEFT_OUT[column.kind]}" if column.kind in LEFT_OUT else "mean")
            continue
        held_out[place] = model.n_held_out[own[0]]
        # different cells: of a small table some are held out more than once
        n = max(n_seen[own[0]], 1)
        n_cells[place] = n * (1 - (1 - HELD_OUT) ** (held_out[place] / (HELD_OUT * n)))
        if held_out[place]:
            errors[place], mean_errors[place] = (
                np.sqrt(np.mean(one[own] ** 2)) for one in (model.errors, model.mean_errors)
            )
        if column.kind in CHOICES:
            accuracies[place], mode_accuracies[place] = model.accuracies[own[0]], model.mode_accuracies[own[0]]
        weights = model.weights[own].mean(axis=0)
        shares = {"mean": 1 - weights.sum(), **dict(zip(CANDIDATES, weights, strict=True))}
        named = [name for name in sorted(shares, key=lambda one: -shares[one]) if shares[name] >= NAMED_WEIGHT]
        used.append("mean" if column.kind == "constant" else ", ".join(named))
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = np.where(mean_errors > 0, errors / mean_errors, np.nan)
    return {
        "column": names,
        "kind": np.array([column.kind for column in columns]),
        "error": errors,
        "mean_error": mean_errors,
        "ratio": ratio,
        "standard_error": ratio_error(ratio, n_cells),
        "accuracy": accuracies,
        "mode_accuracy": mode_accuracies,
        "held_out": held_out,
        "used": np.array(used),
    }
