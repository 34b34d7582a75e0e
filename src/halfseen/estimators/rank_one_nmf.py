"""The best rank-one factorization of what was seen, of a matrix or a tensor."""

from collections.abc import Iterator, Mapping
from time import perf_counter
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from halfseen import checks, rank_one
from halfseen.arrays import Array
from halfseen.engines.threads import Threads
from halfseen.errors import ParameterError
from halfseen.estimators import tensors
from halfseen.estimators.model import FactorModel
from halfseen.estimators.rank_one_tables import Read, listed, read_for_fit, read_rows, seen_in
from halfseen.estimators.seen import Seen
from halfseen.estimators.telling import tell_the_end, warn_of_blanks, warn_of_parts
from halfseen.likelihoods import Poisson
from halfseen.observed import Observed
from halfseen.rank_one import Components, Marginals, Step, Table
from halfseen.result import Status
from halfseen.solvers import PointFactor

METHODS = ("exact", "a1gm", "em")


class RankOneNMF(FactorModel):
    """The best rank-one non-negative factorization under the Kullback-Leibler divergence, whatever is missing.

    Minimises the sum over seen cells of  weight * d(y | w_u h_i)  over non-negative w and h: a convex problem in their
    logarithms, so that there is one best fit, found without a start, a seed or a rank to choose. Unseen cells are
    *missing* by default and say nothing; with `unseen="zero"` each counts as an observed 0 of weight 1. Tensors (arrays
    of three and more axes) get one factor an axis.

    Parameters
    ----------
    method : "exact" takes any holes and zeros: one pass over the data for its row and column sums, then sweeps over
        these and the holes alone. "a1gm" is the closed form of Ghalamkari & Sugiyama (2022): exact if the holes are
        grid-like (rows with holes and columns with holes meet in holes only); otherwise it leaves out what was seen
        where they meet, and it needs a row and a column without a hole. "em" fills the holes and factorizes, again
        and again (section 2.2.2 of that paper).
    max_iter, tol : stop after max_iter sweeps, or when the factors are, relatively, within tol of the best, as far as
        the pace of their change tells.
    unseen : "missing" or "zero".
    verbose : without effect: the fit is over before a bar could be drawn.
    engine : where scores are computed; "cpu".
    n_jobs : number of threads; None takes all processors.

    Attributes
    ----------
    W_ : (n, 1), H_ : (m, 1), components_ : H_ transposed. The columns of a tensor are the cells of all axes but the
        first, in the order of `reshape`.
    axis_factors_ : the factors as vectors, one an axis, with equal sums; for a matrix the columns of W_ and H_.
    n_iter_, status_ : how many sweeps, and why they ended.
    trace_ : dict of arrays with an entry a sweep: "objective", the divergence but for the part that no factor can
        change (the sum of y log y - y over seen cells), and "seconds".
    n_parts_, parts_ : how many parts of the data are not connected by seen cells; the part of each row of each axis, -1
        where nothing above 0 was seen. Each part has a scale of its own, fixed by equal sums: what the model says of
        cells between two parts means nothing. (The factors of a tensor may be free in further ways.)
    inner_shape_ : the lengths of all axes but the first of a tensor; None for a matrix.
    increase_rate_ : for "a1gm", the number of cells treated as missing over the number of holes; 1: the fit is exact.
    n_features_in_, feature_names_in_ : as in scikit-learn.
    row_labels_, column_labels_ : the names of rows and columns, if X had any.

    Examples
    --------
    >>> import numpy as np, halfseen as hs
    >>> X = np.array([[2, 4, np.nan], [1, np.nan, 3], [4, 8, 12.0]])
    >>> model = hs.RankOneNMF().fit(X)
    >>> model.complete(X)[0].round(6)
    array([2., 4., 6.])
    """

    _signature: tuple[Array, ...] | None
    _parts: Components | None
    _fitted: Marginals | None
    _labels: tuple[Array, ...]
    _seen: Seen | None

    objective_name = "Loss, but for a constant of the data"
    factor_type = PointFactor
    score_is_log_likelihood = False
    n_components = 1
    parameter_rules: ClassVar[Mapping[str, checks.Rule]] = {
        "method": checks.one_of(*METHODS),
        **FactorModel.parameter_rules,
    }

    def __init__(
        self,
        method: str = "exact",
        *,
        max_iter: int = 10_000,
        tol: float = 1e-10,
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

    def _make_likelihood(self) -> Poisson:
        return Poisson()

    def fit(self, X: Any, y: Any = None, *, cell_weight: Any = None) -> Self:
        """Find the factors.

        Parameters
        ----------
        X : a dense array with NaN, of two axes or more; a scipy sparse matrix, a pandas, polars or Arrow frame (long or
            wide), the path of a CSV or Parquet file, or what `halfseen.observe` made of one.
        y : ignored, for scikit-learn's pipelines.
        cell_weight : how much each seen cell counts, as in `WeightedNMF.fit`; for method="exact" only.
        """
        checks.check_parameters(vars(self), self.parameter_rules)  # get_params takes a tenth of a small fit
        started = perf_counter()
        X, cell_weight, inner_shape = tensors.unfolded(X, cell_weight)
        with Threads(self.n_jobs) as threads:
            read = read_for_fit(self, X, cell_weight, inner_shape, threads)
            self._refuse_what_only_exact_can(read.table)
            parts = self._parts_of(read.table)
            last = self._run(self._steps(read.table, parts, threads), started)
        self._keep(last, read, parts, inner_shape)
        self._tell(read, parts)
        return self

    def _parts_of(self, table: Table) -> Components:
        """Where A1GM can be used, there is but one part; only the exact method may take rows for one."""
        if self.method == "a1gm":
            return rank_one.single_component(table.marginals)
        return rank_one.find_components(table, table.merged_marginals if self.method == "exact" else table.marginals)

    def _refuse_what_only_exact_can(self, table: Table) -> None:
        if self.method == "exact":
            return
        what = "a tensor" if len(table.marginals.sums) > 2 else "weights" if not table.marginals.binary else None
        if what:
            raise ParameterError(
                f"method={self.method!r} must have a matrix in which every seen cell counts once. Found {what}. "
                'Use method="exact".'
            )

    def _steps(self, table: Table, parts: Components, threads: Threads) -> Iterator[Step]:
        if self.method == "a1gm":
            grid_like = rank_one.a1gm(table, threads)
            self.increase_rate_ = grid_like.increase_rate
            return iter([grid_like.step])
        if hasattr(self, "increase_rate_"):  # of a fit before this one
            del self.increase_rate_
        if self.method == "em":
            return rank_one.em(parts.marginals, threads, self.tol)
        return rank_one.exact(parts, threads, self.tol)

    def _run(self, steps: Iterator[Step], started: float) -> Step:
        """Take steps until they end or have to; the last one is kept, and the way to it."""
        objectives: list[float] = []
        seconds: list[float] = []
        status = Status.CONVERGED
        last = next(steps)
        try:
            while True:
                objectives.append(last.objective)
                seconds.append(perf_counter() - started)
                if len(objectives) == self.max_iter and last.distance > self.tol:
                    status = Status.MAX_ITER
                    break
                following = next(steps, None)
                if following is None:
                    break
                if not np.isfinite(following.objective):
                    status = Status.NOT_FINITE
                    break
                last = following
        except KeyboardInterrupt:
            status = Status.INTERRUPTED
        self._trace = {"objective": np.array(objectives), "seconds": np.array(seconds)}
        self.n_iter_, self.status_ = len(objectives), status
        return last

    def _keep(self, last: Step, read: Read, parts: Components, inner_shape: tuple[int, ...] | None) -> None:
        factors = rank_one.rescale(last.factors, parts, self.tol, read.dtype)
        if not all(np.isfinite(factor).all() for factor in factors):
            self.status_ = Status.NOT_FINITE
        in_place = np.argsort(parts.marginals.axes)
        self.axis_factors_ = tuple(factors[axis].astype(read.dtype, copy=False) for axis in in_place)
        self._parts, self.n_parts_ = parts, parts.count
        self.inner_shape_ = inner_shape
        self.row_labels_, self.column_labels_ = read.labels
        self.likelihood_ = self._make_likelihood()
        self._marginals = read.table.merged_marginals if self.method == "exact" else read.table.marginals
        self._fitted = parts.marginals
        self._seen, self._signature = read.seen, None
        self._take_factors()

    def _take_factors(self) -> None:
        first, *others = self.axis_factors_
        self.W_, self.H_ = first[:, None], rank_one.kron(tuple(others))[:, None]
        self.factors_ = (PointFactor(self.W_), PointFactor(self.H_))

    def _tell(self, read: Read, parts: Components) -> None:
        marginals = parts.marginals
        for place, axis in enumerate(marginals.axes):
            blank = marginals.is_empty(place)
            if blank.any():
                blank = marginals.expand(blank) if place == 0 else blank
                is_matrix = self.inner_shape_ is None
                name, along = (("row", "column")[axis], "") if is_matrix else ("slice", f" along axis {axis}")
                warn_of_blanks(name, blank, read.labels[axis] if is_matrix else None, stacklevel=4, along=along)
        if self.n_parts_ > 1:
            warn_of_parts(self.parts_[0], parts.zeros is not None, self.row_labels_, stacklevel=4)
        tell_the_end(self, stacklevel=4)

    @property
    def parts_(self) -> tuple[Array, ...]:
        """The part of each row of each axis, -1 where nothing above 0 was seen."""
        check_is_fitted(self)
        if self._parts is not None:
            marginals, of = self._parts.marginals, self._parts.labels
            every = (np.where(marginals.row_sums > 0, marginals.expand(of[0]), -1), *of[1:])
            self._labels = rank_one.sort_labels([every[axis] for axis in np.argsort(marginals.axes)])
            self._parts = None
        return self._labels

    @property
    def trace_(self) -> dict[str, Array]:
        """The objective and the seconds of each sweep.

        What merged rows add to the first is found when it is asked for: a logarithm a row is much beside a fit.
        """
        check_is_fitted(self)
        if self._fitted is not None:
            self._trace["objective"] = self._trace["objective"] + self._fitted.merging_cost
            self._fitted = None
        return self._trace

    @trace_.setter
    def trace_(self, trace: dict[str, Array]) -> None:
        self._trace, self._fitted = trace, None

    @property
    def seen_(self) -> Seen:
        """Which cells were seen, made when it is asked for."""
        check_is_fitted(self)
        if self._seen is None:
            self._seen = seen_in(self._marginals)
        return self._seen

    @seen_.setter
    def seen_(self, seen: Seen) -> None:
        self._seen = seen

    def transform(self, X: Any, *, cell_weight: Any = None) -> Array:
        """Fold new rows in, in closed form: w_u = (what the row sums to) / (the h of what it saw).

        Parameters
        ----------
        X : rows over the columns of the fit, data as for `fit`; of a tensor, slices along its first axis.
        cell_weight : how much each seen cell counts, as in `fit`.
        """
        check_is_fitted(self)
        X, cell_weight = tensors.rows_unfolded(X, self.inner_shape_, cell_weight)
        return super().transform(X, cell_weight=cell_weight)

    def _folded_in(self, observed: Observed) -> Array:
        with Threads(self.n_jobs) as threads:
            return self._closed_form(listed(self, observed, None), threads)

    def _rows_of(self, X: Any) -> Array:
        with Threads(self.n_jobs) as threads:
            table = read_rows(self, X, threads)
            if self._signature is None:
                self._signature = self._marginals.signature(threads)
            pairs = zip(table.marginals.signature(threads), self._signature, strict=True)
            was_fitted = all(_same(found, known) for found, known in pairs)
            return self.W_ if was_fitted else self._closed_form(table, threads)

    def _closed_form(self, table: Table, threads: Threads) -> Array:
        """Rows of which nothing is known, or only columns that were always 0, get the average."""
        dtype = self.W_.dtype
        w = rank_one.solve_rows(table.marginals, self.H_[:, 0].astype(np.float64), threads)
        return np.where(np.isnan(w), self.W_.mean(), w).astype(dtype)[:, None]

    def predict(self, rows: Any, cols: Any = None, *more: Any) -> Array:
        """The model's mean at the pairs (rows[j], cols[j]); for a tensor, at positions on all its axes, the `more` too.

        Without `cols`, `rows` is data as for `transform`: the rows are folded in, and the mean of every cell returned.
        """
        check_is_fitted(self)
        if cols is None:
            return self._folded(super().predict(tensors.rows_unfolded(rows, self.inner_shape_)[0]))
        if self.inner_shape_ is not None:
            return super().predict(rows, tensors.columns_at((cols, *more), self.inner_shape_))
        if more:
            raise ParameterError("predict(rows, cols) must have two arguments for a matrix. Found more. Drop them.")
        return super().predict(rows, cols)

    def complete(self, X: Any) -> Any:
        """X with its holes filled by the model and the rest as given, in the shape in which it came."""
        check_is_fitted(self)
        return self._folded(super().complete(tensors.rows_unfolded(X, self.inner_shape_)[0]))

    def inverse_transform(self, W: Any) -> Array:
        """The model's mean of every cell in rows with the given W."""
        return self._folded(super().inverse_transform(W))

    def score(self, X: Any, y: Any = None) -> float:
        """Minus the Kullback-Leibler divergence a cell, after folding the rows of X in; larger is better.

        y is ignored, for scikit-learn's pipelines.
        """
        check_is_fitted(self)
        return super().score(tensors.rows_unfolded(X, self.inner_shape_)[0])

    def _folded(self, means: Array) -> Array:
        return means if self.inner_shape_ is None else means.reshape(len(means), *self.inner_shape_)

    def _further_arrays(self) -> dict[str, Array]:
        axes = range(len(self.axis_factors_))
        further = {f"factor{axis}": self.axis_factors_[axis] for axis in axes}
        further |= {f"part{axis}": self.parts_[axis] for axis in axes}
        with Threads(self.n_jobs) as threads:
            signature = self._signature or self._marginals.signature(threads)
        further |= {f"signature{place}": array for place, array in enumerate(signature)}
        return further | {"increase_rate": np.array(getattr(self, "increase_rate_", np.nan))}

    def _restore(self, further: dict[str, Array]) -> None:
        axes = range(sum(name.startswith("factor") for name in further))
        self.axis_factors_ = tuple(further[f"factor{axis}"] for axis in axes)
        self._signature = tuple(further[f"signature{place}"] for place in range(2 * len(axes) + 1))
        self._parts, self._labels = None, tuple(further[f"part{axis}"] for axis in axes)
        self.n_parts_ = int(max(part.max(initial=-1) for part in self.parts_)) + 1
        self.inner_shape_ = tuple(factor.size for factor in self.axis_factors_[1:]) if len(axes) > 2 else None
        if not np.isnan(further["increase_rate"]):
            self.increase_rate_ = float(further["increase_rate"])
        self._take_factors()
        super()._restore(further)


def _same(found: Array, known: Array) -> bool:
    return found.shape == known.shape and np.allclose(found, known, rtol=1e-12, atol=0.0)
