"""The best rank-one factorization of the observed cells of a matrix or a tensor."""

import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property
from time import perf_counter
from types import SimpleNamespace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.callback import with_callbacks
from sklearn.utils.validation import check_is_fitted

from halfseen import rankone, validation
from halfseen.arrays import Array, ArraySpec
from halfseen.docstrings import insert_parameters
from halfseen.encoders import Encoder
from halfseen.engines import check_is_cpu
from halfseen.engines.threads import Threads
from halfseen.errors import DataError, DataWarning, ParameterError
from halfseen.estimators.base import BaseFactorization
from halfseen.estimators.inputs import (
    Data,
    Labels,
    Shape,
    columns_of_axes,
    feature_attributes,
    is_list_of_histories,
    keep,
    observe_for_fit,
    observe_rows,
    unfold_rows,
    unfold_tensor,
)
from halfseen.fitting import Outcome, iterate, sklearn_callbacks, warn_if_empty, warn_if_not_converged
from halfseen.io.reader import grid_of
from halfseen.io.tables import CellWeight
from halfseen.labels import Index, quoted
from halfseen.likelihoods import Poisson
from halfseen.model import FittedModel, Status
from halfseen.observed import Observed
from halfseen.ranking import Seen
from halfseen.rankone import Components, DenseTable, ListedTable, Marginals, Step, Table
from halfseen.solvers import PointFactor

METHODS = ("exact", "a1gm", "em")
TOL = 1e-10
#: Sweeps of `rank_one` before it leaves a table to `RankOneNMF`, which has Newton's method.
FEW_SWEEPS = 50
#: Codes of NumPy's float64, float32, bool and integers: what `rank_one` takes without the estimator.
PLAIN_NUMBERS = frozenset("df?bBhHiIlLqQ")
#: A vector of any length, in a file.
AXIS = ArraySpec("f", ("*",))


@dataclass(frozen=True, eq=False)
class RankOneModel(FittedModel):
    """Factors of rank one: new rows are folded in by a closed form, w_u = (sum of the row) / (h of its cells)."""

    can_fold_in = True

    def fold_in(self, observed: Observed, engine: str, n_jobs: int | None, name: str) -> Array:
        with Threads(n_jobs) as threads:
            return self.fold_table(listed_table(observed, None, name), threads)

    def fold_table(self, table: Table, threads: Threads) -> Array:
        """W of the rows of a table; rows without a cell, or only with columns that were always 0, get the average."""
        w = rankone.solve_rows(table.marginals, self.H[:, 0].astype(np.float64), threads)
        return np.where(np.isnan(w), self.W.mean(), w).astype(self.W.dtype)[:, None]


@dataclass(eq=False)
class _RankOneFit:
    """A fit whose less needed results are computed when they are first asked for: they take longer than the fit."""

    axis_factors: tuple[Array, ...]
    components: Components
    marginals: Marginals
    raw_trace: dict[str, Array]
    index: tuple[Index | None, Index | None]
    given_seen: Seen | None
    unseen: str
    n_jobs: int | None

    @cached_property
    def trace(self) -> dict[str, Array]:
        """Objective and seconds of each sweep; what merged rows add to the objective is computed here."""
        return {**self.raw_trace, "objective": self.raw_trace["objective"] + self.components.marginals.merging_cost}

    @cached_property
    def part_labels(self) -> tuple[Array, ...]:
        """Connected component of each row of each axis, -1 where nothing above 0 was seen."""
        marginals, of = self.components.marginals, self.components.labels
        every = (np.where(marginals.row_sums > 0, marginals.expand(of[0]), -1), *of[1:])
        return rankone.sort_labels([every[axis] for axis in np.argsort(marginals.axes)])

    @cached_property
    def signature(self) -> tuple[Array, ...]:
        """Sums by which the training data are recognised."""
        with Threads(self.n_jobs) as threads:
            return self.marginals.signature(threads)

    @cached_property
    def model(self) -> RankOneModel:
        seen = seen_cells(self.marginals) if self.given_seen is None else self.given_seen
        first, *others = self.axis_factors
        rows, columns = PointFactor(first[:, None]), PointFactor(rankone.kron(tuple(others))[:, None])
        return RankOneModel(rows, columns, Poisson(), Encoder(), self.index, seen, self.unseen, None)


def seen_cells(marginals: Marginals) -> Seen:
    """Cells that a dense table shows, as the shorter list that its weights is; rows are those of the data."""
    weights = marginals.unmerged().weights
    indptr, indices, shape = weights.indptr, weights.indices, weights.shape
    if marginals.axes[0] != 0:
        by_column = sparse.csr_array((np.ones(indices.size, bool), indices, indptr), shape).tocsc()
        indptr, indices, shape = by_column.indptr, by_column.indices, shape[::-1]
    return Seen(indptr, indices, shape[1], lists_holes=weights.base > 0)


def listed_table(observed: Observed, inner_shape: Shape | None, name: str) -> ListedTable:
    """A list of cells that the Kullback-Leibler divergence allows."""
    Poisson().check(observed, name)
    return ListedTable(observed, inner_shape)


class RankOne(NamedTuple):
    """Result of `rank_one`: X is about w h'."""

    w: Array
    """Factor of the rows."""
    h: Array
    """Factor of the columns; it has the sum of w."""
    n_iter: int
    """Number of sweeps; 1 for "a1gm"."""
    status: Status
    """Why the sweeps ended."""
    increase_rate: float | None
    """For "a1gm": cells treated as missing / missing cells, 1 if the fit is exact. Else None."""


def rank_one(X: Data, *, method: str = "exact") -> RankOne:
    """Factors (w, h) of the fit of `RankOneNMF`: the least sum over observed cells of  d(y | w_u h_i)  (Eq. 2 of [1]_).

    For many or small matrices, or where time matters: an array of float64, float32, integers or booleans, or a list of
    lists of numbers, is fitted by one compiled loop on one thread, in microseconds if it is small, without an
    estimator, a trace or a list of observed cells. What that loop does not solve (little observed, several parts, very
    different sizes; other kinds of X, method="em") is left to `RankOneNMF`, with the same numbers, messages and
    warnings.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_rows, n_columns), frame, path or Observed
        Non-negative values, NaN where a cell is missing. For tensors see `RankOneNMF`.
    method : {"exact", "a1gm", "em"}, default="exact"
        As for `RankOneNMF`.

    Returns
    -------
    RankOne
        w, h, with equal sums in each part; float32 if X is, else float64; n_iter, status, increase_rate.

    References
    ----------
    .. [1] K. Ghalamkari, M. Sugiyama, "Fast rank-1 NMF for missing data with KL divergence", AISTATS 2022.

    Examples
    --------
    >>> import numpy as np, halfseen as hs
    >>> w, h, *_ = hs.rank_one(np.array([[2, 4, np.nan], [1, np.nan, 3], [4, 8, 12.0]]))
    >>> np.outer(w, h)[0].round(6)
    array([2., 4., 6.])
    """
    array = _as_plain_array(X)
    if array is not None and method in ("exact", "a1gm"):
        a1gm_of_dense, exact_of_dense = _compiled_loops()
        is_exact, transposed = method == "exact", not array.flags.c_contiguous and array.flags.f_contiguous
        kind = array.dtype.char
        table = np.ascontiguousarray(array.T if transposed else array, None if kind in "df" else np.float64)
        w, h, outcome = exact_of_dense(table, TOL, FEW_SWEEPS) if is_exact else a1gm_of_dense(table)
        if outcome > 0:
            if kind == "f":
                w, h = w.astype(np.float32), h.astype(np.float32)
            w, h = (h, w) if transposed else (w, h)
            return RankOne(w, h, outcome if is_exact else 1, Status.CONVERGED, None if is_exact else outcome)
    inner_shape = unfold_tensor(X)[2]
    if inner_shape is not None:
        raise DataError(
            "X must be a matrix.",
            parameter="X",
            found=f"{1 + len(inner_shape)} axes",
            remedy="Use `RankOneNMF`, which has a factor per axis.",
        )
    model = RankOneNMF(method, n_jobs=1).fit(X)
    w, h = model.axis_factors_
    return RankOne(w, h, model.n_iter_, model.status_, getattr(model, "increase_rate_", None))


@cache
def _compiled_loops() -> tuple[Callable[..., Any], ...]:
    """Loops of A1GM and of the exact method, imported once: an import statement takes a tenth of a small fit."""
    from halfseen.rankone.table_sums import a1gm_of_dense, exact_of_dense

    return a1gm_of_dense, exact_of_dense


def _as_plain_array(X: Any) -> Array | None:
    """X as a matrix of plain numbers, if it is an array of those or a list of lists of them; else None."""
    if type(X) is list and X and type(X[0]) is list:
        try:
            X = np.array(X)
        except (ValueError, TypeError, OverflowError):  # the estimator says what is wrong
            return None
    if type(X) is not np.ndarray or X.ndim != 2 or not (X.dtype.char in PLAIN_NUMBERS and X.dtype.isnative):
        return None
    return X if X.size < 2**31 or max(X.shape) < 2**31 else None  # the loop numbers columns by int32


class RankOneNMF(BaseFactorization):
    """The best rank-one non-negative factorization under the Kullback-Leibler divergence, whatever is missing.

    Minimises the sum over observed cells of  weight * d(y | w_u h_i)  over non-negative w and h: a convex problem in
    their logarithms, so that there is one best fit, found without a start, a seed or a rank to choose. Unseen cells are
    *missing* by default and carry no information; with `unseen="zero"` each counts as an observed 0 of weight 1.
    Tensors (arrays of three and more axes) get one factor per axis.

    Parameters
    ----------
    method : {"exact", "a1gm", "em"}, default="exact"
        "exact" allows any missing cells and zeros: one pass over the data for its row and column sums, then sweeps over
        these and the missing cells alone. "a1gm" is the closed form of [1]_: exact if the missing cells are grid-like
        (rows with missing cells and columns with missing cells meet in missing cells only); otherwise it leaves out the
        observed cells where they meet, and it needs a row and a column without a missing cell (of a tensor, such slices
        along two axes). "em" fills the missing cells and factorizes, again and again (section 2.2.2 of that paper).
    max_iter : int, default=10000
        Maximum number of sweeps.
    tol : float, default=1e-10
        Stop when the factors are, relatively, within `tol` of the best, as estimated from the pace of their change.
    {unseen}
    verbose : int, default=0
        Without effect: the fit is over before a bar could be drawn.
    {engine:cpu}
    {n_jobs}

    Attributes
    ----------
    W_ : ndarray of shape (n_rows, 1)
        Row factor.
    H_ : ndarray of shape (n_columns, 1)
        Column factor. The columns of a tensor are the cells of all axes but the first, in the order of `reshape`.
    components_ : ndarray of shape (1, n_columns)
        `H_` transposed.
    axis_factors_ : tuple of ndarray
        Factors as vectors, one per axis, with equal sums; for a matrix the columns of W_ and H_.
    n_iter_ : int
        Number of sweeps.
    status_ : Status
        Why the sweeps ended.
    trace_ : dict of ndarray
        An entry per sweep: "objective", the divergence but for the terms that no factor can change (the sum of
        y log y - y over observed cells), and "seconds".
    n_parts_ : int
        Number of parts of the data that no observed cells connect. Each part has a scale of its own, fixed by equal
        sums: predictions for cells between two parts are meaningless. (The factors of a tensor may be free in further
        ways.)
    parts_ : tuple of ndarray
        Part of each row of each axis, -1 where nothing above 0 was seen.
    inner_shape_ : tuple of int or None
        Lengths of all axes but the first of a tensor; None for a matrix.
    increase_rate_ : float
        For "a1gm", the number of cells treated as missing over the number of missing cells; 1: the fit is exact.
    model_ : FittedModel
        All that prediction needs.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of columns, if X is a wide table whose columns are all named by text.
    row_labels_, column_labels_ : ndarray or None
        Labels of rows and columns, if the data had any.

    References
    ----------
    .. [1] K. Ghalamkari, M. Sugiyama, "Fast rank-1 NMF for missing data with KL divergence", AISTATS 2022.

    Examples
    --------
    >>> import numpy as np, halfseen as hs
    >>> X = np.array([[2, 4, np.nan], [1, np.nan, 3], [4, 8, 12.0]])
    >>> model = hs.RankOneNMF().fit(X)
    >>> model.complete(X)[0].round(6)
    array([2., 4., 6.])
    """

    axis_factors_: tuple[Array, ...]
    inner_shape_: Shape | None
    _fit: Any

    record = RankOneModel
    more_state = ([AXIS], [replace(AXIS, kind="iu", low=-1)], [replace(AXIS, kind="fiu")], float | None)
    levels_to_read = None
    objective_name = "Loss, but for a constant of the data"
    n_components = 1
    parameter_rules: ClassVar[Mapping[str, validation.Rule]] = {
        "method": validation.one_of(*METHODS),
        **BaseFactorization.parameter_rules,
    }

    def __init__(
        self,
        method: str = "exact",
        *,
        max_iter: int = 10_000,
        tol: float = TOL,
        unseen: str = "missing",
        verbose: int = 0,
        engine: str = "cpu",
        n_jobs: int | None = None,
    ) -> None:
        self.method = method
        self.max_iter = max_iter
        self.tol = tol
        self.unseen = unseen
        self.verbose = verbose
        self.engine = engine
        self.n_jobs = n_jobs

    @property
    def model_(self) -> RankOneModel:
        """All that prediction needs."""
        model: RankOneModel = self._fit.model
        return model

    @property
    def trace_(self) -> dict[str, Array]:  # type: ignore[override]
        """Objective and seconds of each sweep."""
        trace: dict[str, Array] = self._fit.trace
        return trace

    @property
    def parts_(self) -> tuple[Array, ...]:
        """Part of each row of each axis, -1 where nothing above 0 was seen."""
        check_is_fitted(self)
        labels: tuple[Array, ...] = self._fit.part_labels
        return labels

    @with_callbacks
    @insert_parameters
    def fit(self, X: Data, y: object = None, *, cell_weight: CellWeight = None) -> Self:
        """Find the factors.

        Parameters
        ----------
        {X}
            An array may have more than two axes.
        {y}
        {cell_weight}
            For method="exact" only.

        Returns
        -------
        self
        """
        validation.check_parameters(vars(self), self.parameter_rules)  # get_params takes a tenth of a small fit
        check_is_cpu(self.engine, type(self).__name__)
        started = perf_counter()
        matrix, weights, inner_shape = unfold_tensor(X, cell_weight)
        with Threads(self.n_jobs) as threads:
            # read: a dense table is not made a list of cells
            grid = grid_of(matrix) if weights is None and self.unseen == "missing" else None
            table: Any = None if grid is None else DenseTable(grid.values, threads, inner_shape)
            seen: Seen | None = None
            if grid is not None and table.is_valid:
                labels, dtype, n_columns = (
                    (grid.row_labels, grid.column_labels),
                    grid.values.dtype,
                    grid.values.shape[1],
                )
            else:  # weights, zeros, sparse and long data; and what is wrong with a dense table is found here
                observed = observe_for_fit(matrix, self.unseen, weights, None)
                labels, dtype, n_columns = (
                    (observed.row_labels, observed.column_labels),
                    observed.dtype,
                    observed.shape[1],
                )
                table, seen = listed_table(observed, inner_shape, type(self).__name__), Seen.from_observed(observed)
            features = feature_attributes(matrix, n_columns)
            self._check_method(table)

            # iterate; where A1GM can be used there is but one part, and only the exact method may merge rows
            marginals = table.merged_marginals if self.method == "exact" else table.marginals
            if self.method == "a1gm":
                grid_like = rankone.a1gm(table, threads)
                marginals, components = grid_like.marginals, rankone.single_component(grid_like.marginals)
                steps: Iterator[Step] = iter([grid_like.step])
                features["increase_rate_"] = grid_like.increase_rate
            else:
                components = rankone.find_components(table, marginals)
                is_em = self.method == "em"
                steps = (
                    rankone.em(components.marginals, threads, self.tol)
                    if is_em
                    else rankone.exact(components, threads, self.tol)
                )
            index = (None if labels[0] is None else Index(labels[0]), None if labels[1] is None else Index(labels[1]))

            def attributes(outcome: Outcome) -> dict[str, Any]:
                """Fitted attributes after these sweeps."""
                status = outcome.status
                if status is Status.MAX_ITER and outcome.state.distance <= self.tol:
                    status = Status.CONVERGED
                factors = rankone.rescale(outcome.state.factors, components, self.tol, dtype)
                is_finite = all(np.isfinite(factor).all() for factor in factors)
                order = np.argsort(components.marginals.axes)
                axis_factors = tuple(factors[axis].astype(dtype, copy=False) for axis in order)
                return features | {
                    "axis_factors_": axis_factors,
                    "inner_shape_": inner_shape,
                    "n_parts_": components.count,
                    "n_iter_": len(outcome.trace["objective"]),
                    "status_": status if is_finite else Status.NOT_FINITE,
                    "_fit": _RankOneFit(
                        axis_factors, components, marginals, outcome.trace, index, seen, self.unseen, self.n_jobs
                    ),
                }

            # verbose shows no bar: most fits are over before it could be drawn
            with sklearn_callbacks(self, X, y, cell_weight, attributes, self.max_iter) as callback:
                outcome = iterate(
                    steps, max_iter=self.max_iter, started=started, trouble=_check_finite, callback=callback
                )
                keep(self, attributes(outcome))
        self._warn(components, labels)
        return self

    def _check_method(self, table: Table) -> None:
        if self.method == "exact":
            return
        is_tensor = len(table.marginals.sums) > 2
        what = "weights" if not table.marginals.binary else "a tensor" if is_tensor and self.method == "em" else None
        if what:
            data = "a matrix" if self.method == "em" else "data"
            raise ParameterError(
                f"method={self.method!r} must have {data} in which every seen cell counts once.",
                parameter="method",
                found=what,
                remedy='Use `method="exact"`.',
            )

    def _warn(self, components: Components, labels: tuple[Array | None, Array | None]) -> None:
        """Warnings at the end of a fit."""
        marginals = components.marginals
        for place, axis in enumerate(marginals.axes):
            is_empty = marginals.is_empty(place)
            if is_empty.any():
                is_empty = marginals.expand(is_empty) if place == 0 else is_empty
                is_matrix = self.inner_shape_ is None
                name, along = (("row", "column")[axis], "") if is_matrix else ("slice", f" along axis {axis}")
                warn_if_empty(name, is_empty, labels[axis] if is_matrix else None, stacklevel=5, along=along)
        if self.n_parts_ > 1:
            of_rows, count = self.parts_[0], int(self.parts_[0].max()) + 1
            first = int(np.argmax(of_rows == min(1, count - 1)))
            name = str(first) if labels[0] is None else quoted(labels[0][first])
            if components.zeros is not None:
                warning = DataWarning(
                    "Seen zeros should not be all that connects rows and columns.",
                    found=f"{count} parts held together by nothing else, the second one with row {name}",
                    remedy="The best fit is a limit that no factors reach: they come as near as the tolerance asks and "
                    "numbers allow, and missing cells between parts diverge.",
                )
            else:
                warning = DataWarning(
                    "Seen cells should connect all rows and columns.",
                    found=f"{count} parts without a connection, the second one with row {name}",
                    remedy="Each has a scale of its own, fixed by equal sums; predictions for cells between parts are "
                    "meaningless.",
                )
            warnings.warn(warning, stacklevel=4)
        warn_if_not_converged(self, stacklevel=5)

    @insert_parameters
    def transform(self, X: Data, *, cell_weight: CellWeight = None) -> Array:
        """Fold new rows in, in closed form: w_u = (sum of the row) / (h of its cells).

        Parameters
        ----------
        {X:rows}
            For a tensor, slices along its first axis.
        {cell_weight}

        Returns
        -------
        ndarray of shape (n_rows, 1)
        """
        check_is_fitted(self)
        X, cell_weight = unfold_rows(X, self.inner_shape_, cell_weight)
        return super().transform(X, cell_weight=cell_weight)

    def rows_of(self, X: Data) -> Array:
        """Factor of the rows of X: that of the fit if X was fitted, else folded in.

        Parameters
        ----------
        X : data
            As for `fit`.

        Returns
        -------
        ndarray of shape (n_rows, 1)
        """
        model = self.model_
        table: Any = None
        with Threads(self.n_jobs) as threads:
            if model.unseen == "missing" and model.index[1] is None and not is_list_of_histories(X):
                grid = grid_of(X)
                if grid is not None and grid.column_labels is None and grid.values.shape[1] == model.shape[1]:
                    # in the order of rows, because these are asked for
                    table = DenseTable(np.ascontiguousarray(grid.values), threads, self.inner_shape_)
            if table is None or not table.is_valid:
                table = listed_table(observe_rows(self, X), self.inner_shape_, type(self).__name__)
            pairs = zip(table.marginals.signature(threads), self._fit.signature, strict=True)
            was_fitted = all(_is_close(new, fitted) for new, fitted in pairs)
            return model.W if was_fitted else model.fold_table(table, threads)

    @insert_parameters
    def predict(self, rows: Labels | Data, cols: Labels | None = None, *more: ArrayLike) -> Array:
        """Expected values at pairs of rows and columns; for a tensor, at positions on all its axes.

        Parameters
        ----------
        {rows, cols:or data}
        *more : array-like of int
            Positions on the further axes of a tensor.

        Returns
        -------
        ndarray or float
            Expected value of each pair or, without `cols`, of every cell of the rows.
        """
        check_is_fitted(self)
        if cols is None:
            return self._to_tensor(super().predict(unfold_rows(rows, self.inner_shape_)[0]))
        if self.inner_shape_ is not None:
            return super().predict(rows, columns_of_axes((cols, *more), self.inner_shape_))
        if more:
            raise ParameterError(
                "predict(rows, cols) must have two arguments for a matrix.", found="more", remedy="Drop them."
            )
        return super().predict(rows, cols)

    def complete(self, X: Data) -> Any:
        """Fill the missing cells of X with expected values, and leave the others as they are.

        Parameters
        ----------
        X : array-like, sparse matrix, frame, path or Observed
            As for `fit`.

        Returns
        -------
        ndarray or frame
            In the shape in which X came.
        """
        check_is_fitted(self)
        return self._to_tensor(super().complete(unfold_rows(X, self.inner_shape_)[0]))

    def inverse_transform(self, W: ArrayLike) -> Array:
        """Expected value of every cell of rows with the given factor.

        Parameters
        ----------
        W : array-like of shape (n_rows, 1)
            What `transform` returned.

        Returns
        -------
        ndarray
        """
        return self._to_tensor(super().inverse_transform(W))

    def score(self, X: Data, y: object = None) -> float:
        """Minus the Kullback-Leibler divergence per cell, after folding the rows of X in; larger is better.

        Parameters
        ----------
        X : array-like, sparse matrix, frame, path or Observed
            As for `transform`.
        y : None
            Ignored, for scikit-learn's pipelines.

        Returns
        -------
        float
        """
        check_is_fitted(self)
        return super().score(unfold_rows(X, self.inner_shape_)[0])

    def _more_state(self) -> tuple[Any, ...]:
        rate = getattr(self, "increase_rate_", None)
        return self.axis_factors_, self.parts_, self._fit.signature, rate

    def _set_state(self, model: Any, trace: dict[str, Array], more: tuple[Any, ...]) -> None:
        factors, parts, signature, increase_rate = more
        lengths = tuple(factor.size for factor in factors)
        if len(lengths) < 2 or (lengths[0], int(np.prod(lengths[1:]))) != model.shape:
            raise ValueError(f"axes of lengths {lengths} for {model.shape[0]} rows and {model.shape[1]} columns")
        if tuple(part.size for part in parts) != lengths or any(part.max() >= part.size for part in parts):
            raise ValueError(f"parts that are not those of axes of lengths {lengths}")
        if tuple(sums.size for sums in signature) != (*lengths, *lengths, lengths[0]):
            raise ValueError(f"sums that are not those of axes of lengths {lengths}")
        self.axis_factors_ = factors
        self.inner_shape_ = lengths[1:] if len(lengths) > 2 else None
        self.n_parts_ = int(max(part.max(initial=-1) for part in parts)) + 1
        if increase_rate is not None:
            self.increase_rate_ = increase_rate
        self._fit = SimpleNamespace(model=model, trace=trace, part_labels=parts, signature=signature)

    def _to_tensor(self, means: Array) -> Array:
        return means if self.inner_shape_ is None else means.reshape(len(means), *self.inner_shape_)


def _check_finite(last: Step | None, new: Step) -> Status | None:
    return None if last is None or np.isfinite(new.objective) else Status.NOT_FINITE


def _is_close(new: Array, fitted: Array) -> bool:
    return new.shape == fitted.shape and np.allclose(new, fitted, rtol=1e-12, atol=0.0)
