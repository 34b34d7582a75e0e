"""What all estimators share: fit, fold in, predict, complete, score."""

import warnings
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from halfseen import checks
from halfseen.arrays import Array
from halfseen.data import Observed
from halfseen.data.labels import quoted
from halfseen.engines import RULES as ENGINE_RULES
from halfseen.engines import Side, open_engine
from halfseen.errors import DataError, DataWarning, ParameterError
from halfseen.estimators import watching
from halfseen.estimators.completing import completed
from halfseen.estimators.features import observe_for_fit, observe_rows, with_row_labels
from halfseen.estimators.filing import save
from halfseen.estimators.labelling import pair_positions
from halfseen.estimators.recommending import RecommendingMixin
from halfseen.fitting import run
from halfseen.folding import fold_in
from halfseen.likelihoods import Likelihood
from halfseen.result import Fit, Status
from halfseen.solvers import Solver, Task

#: Pairs whose two factor rows are gathered at a time.
_PAIRS_AT_A_TIME = 1 << 14


class Factorization(
    RecommendingMixin, CallbackSupportMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator
):
    """A half-seen matrix as W H^T. Subclasses say by which likelihood and which solver."""

    n_components: int
    max_iter: int
    tol: float
    init: Any
    random_state: Any
    verbose: int
    unseen: str
    engine: str
    n_jobs: int | None

    #: The rules of the parameters that all estimators have; subclasses add theirs.
    parameter_rules: ClassVar[Mapping[str, checks.Rule]] = {
        "n_components": checks.whole(1),
        "max_iter": checks.whole(1),
        "tol": checks.number(0.0),
        "init": checks.start("random"),
        "random_state": checks.seed(),
        "unseen": checks.one_of("missing", "zero"),
        **ENGINE_RULES,
    }
    #: Whether `score` is a log-likelihood, or minus a mere loss.
    score_is_log_likelihood: ClassVar[bool]

    @abstractmethod
    def _make_likelihood(self) -> Likelihood: ...

    @abstractmethod
    def _make_solver(self) -> Solver[Any]: ...

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name; an unknown name is answered with the one probably meant."""
        checks.check_names(params, self.get_params(deep=False), type(self).__name__)
        super().set_params(**params)
        return self

    @with_callbacks
    def fit(self, X: Any, y: Any = None, *, cell_weight: Any = None) -> Self:
        """Find W and H.

        Parameters
        ----------
        X : a dense array with NaN, a scipy sparse matrix, a pandas, polars or Arrow frame (long or wide), the path of a
            CSV or Parquet file, or what `halfseen.observe` made of one.
        y : ignored, for scikit-learn's pipelines.
        cell_weight : how much each seen cell counts: an array of X's shape, a sparse matrix that stores the same cells,
            a list in the order of the cells, or the name of a column of a long frame.
        """
        checks.check_parameters(self.get_params(deep=False), self.parameter_rules)
        likelihood, solver = self._make_likelihood(), self._make_solver()
        observed = observe_for_fit(self, X, cell_weight)
        likelihood.check(observed, type(self).__name__)
        solver.check(likelihood)
        _warn_of_blanks(observed)
        with open_engine(self.engine, self.n_jobs) as engine:
            task = Task(engine, engine.place(observed, Side.ROWS, Side.COLUMNS), likelihood)
            with watching.watch(self, X, y, cell_weight, observed, task) as watch:
                fit = run(
                    task, solver, lambda: self._start(task, solver), max_iter=self.max_iter, tol=self.tol, watch=watch
                )
                for name, value in self._attributes(fit, observed).items():
                    setattr(self, name, value)
                # A copy, because a sparse X shares its arrays with what was read of it, and may be changed later.
                self.seen_ = (observed.indptr.copy(), observed.indices.copy())
                self.fingerprint_ = observed.fingerprint()
        _tell_the_end(self)
        return self

    def _start(self, task: Task, solver: Solver[Any]) -> tuple[Array, Array]:
        n, m = task.cells.observed.shape
        sizes = ((n, self.n_components), (m, self.n_components))
        if isinstance(self.init, str):
            random = check_random_state(self.random_state)
            return solver.random(task, sizes[0], random), solver.random(task, sizes[1], random)
        W, H = (_checked_start(*given, solver) for given in zip(self.init, sizes, ("W0", "H0"), strict=True))
        return W, H

    @staticmethod
    def _attributes(fit: Fit, observed: Observed) -> dict[str, Any]:
        """What a fit leaves, by the names of the fitted attributes."""
        return {
            "factors_": (fit.rows, fit.columns),
            "W_": fit.rows.mean,
            "H_": fit.columns.mean,
            "likelihood_": fit.likelihood,
            "trace_": dict(fit.trace),
            "n_iter_": fit.n_iter,
            "status_": fit.status,
            "row_labels_": observed.row_labels,
            "column_labels_": observed.column_labels,
            "seen_": (observed.indptr, observed.indices),
        }

    def fit_transform(self, X: Any, y: Any = None, *, cell_weight: Any = None) -> Array:
        """Fit, then fold the same rows in: a pipeline sees the same features in training as later.

        The W of the fit itself, which moved together with H, is the attribute `W_`.
        """
        return self.fit(X, y, cell_weight=cell_weight).transform(X, cell_weight=cell_weight)

    def transform(self, X: Any, *, cell_weight: Any = None) -> Array:
        """Fold new rows in: their W, with H as it was fitted. Each row depends on its own cells alone.

        The rows of a long frame come in the order of their first appearance.
        """
        check_is_fitted(self)
        observed = observe_rows(self, X, cell_weight=cell_weight)
        return with_row_labels(self, X, observed, self._folded_in(observed))

    def _folded_in(self, observed: Observed) -> Array:
        """As `transform`, of rows already read, and always an array."""
        with open_engine(self.engine, self.n_jobs) as engine:
            return self._fold_in(Task(engine, engine.place(observed, Side.ROWS), self.likelihood_))

    def _fold_in(self, task: Task) -> Array:
        task.likelihood.check(task.cells.observed, type(self).__name__)
        far = self.factors_[1]._make(
            np.ascontiguousarray(array, dtype=task.cells.observed.dtype) for array in self.factors_[1]
        )
        average = self.W_.mean(axis=0)
        near = fold_in(task, self._make_solver(), far, average, max_iter=self.max_iter, tol=self.tol)
        W: Array = near.mean
        return W

    def inverse_transform(self, W: Any) -> Array:
        """The model's mean of every cell in rows with the given W."""
        check_is_fitted(self)
        W = np.asarray(W)
        if W.ndim != 2 or W.shape[1] != self.H_.shape[1] or W.dtype.kind not in "fiub":
            raise ParameterError(
                f"W must hold numbers, a column for each of the {self.H_.shape[1]} components. Found shape {W.shape}, "
                f"dtype {W.dtype}. "
                "Pass what transform returned."
            )
        means: Array = self.likelihood_.mean(W @ self.H_.T)
        return means

    def predict(self, rows: Any, cols: Any = None) -> Array:
        """The model's mean at the pairs (rows[j], cols[j]), named as X named them: by label, else by position.

        Without `cols`, `rows` is data as for `transform`: the rows are folded in, and the mean of every cell returned.
        """
        check_is_fitted(self)
        if cols is None:
            _refuse_sparse(rows)
            return self.inverse_transform(self._folded_in(observe_rows(self, rows)))
        u, i = pair_positions(self, rows, cols)
        x = np.empty(np.broadcast_shapes(u.shape, i.shape), self.W_.dtype)
        u, i = (np.broadcast_to(places, x.shape).reshape(-1) for places in (u, i))
        for start in range(0, x.size, _PAIRS_AT_A_TIME):
            part = slice(start, start + _PAIRS_AT_A_TIME)
            x.reshape(-1)[part] = np.einsum("pk,pk->p", self.W_[u[part]], self.H_[i[part]])
        means: Array = self.likelihood_.mean(x)
        return means if means.shape else means[()]

    def complete(self, X: Any) -> Any:
        """X with its holes filled by the model and the rest as given.

        Arrays come back as arrays, wide frames as frames of the same kind, long frames with a line for every pair;
        sparse matrices and files as dense arrays. Data that were fitted are filled from `W_`, as `predict` does; other
        rows are folded in.
        """
        check_is_fitted(self)
        return completed(self, X)

    def score(self, X: Any, y: Any = None) -> float:
        """How well the rows of X are explained after folding them in, a cell; larger is better.

        Every component helps to explain cells that it has seen: to choose n_components, hold cells out.
        """
        check_is_fitted(self)
        observed = observe_rows(self, X, allow_empty=False)
        with open_engine(self.engine, self.n_jobs) as engine:
            task = Task(engine, engine.place(observed, Side.ROWS), self.likelihood_)
            W, H = self._fold_in(task), np.ascontiguousarray(self.H_, dtype=observed.dtype)
            loss = task.divergence(engine.dots(task.cells, W, H), W, H)
        gain = task.saturated if self.score_is_log_likelihood else 0.0
        return (gain - loss) / task.weight_of_cells

    def save(self, path: Any) -> None:
        """Write the fitted model to one file that `halfseen.load` reads; no pickle in it."""
        check_is_fitted(self)
        save(self, path)

    @property
    def components_(self) -> Array:
        """H transposed: a row for each component, as scikit-learn has it."""
        H: Array = self.H_
        return H.T

    @property
    def _n_features_out(self) -> int:
        return int(self.H_.shape[1])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        tags.input_tags.positive_only = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _checked_start(factor: Any, size: tuple[int, int], name: str, solver: Solver[Any]) -> Array:
    factor = np.asarray(factor)
    if factor.shape != size:
        raise ParameterError(
            f"{name} of init must have a row for each {'row' if name == 'W0' else 'column'} of X and a column for each "
            f"component, shape {size}. Found shape {factor.shape}. Reshape it."
        )
    good = factor.dtype.kind in "fiub" and np.all(np.isfinite(factor)) and np.all(factor >= 0)
    if not (good and solver.starts(factor)):
        needs = f"finite numbers of 0 or more{solver.start_needs}"
        raise ParameterError(f"{name} of init must hold {needs}. Found others. Replace them.")
    return factor.astype(np.float64) if factor.dtype.kind != "f" else factor


def _refuse_sparse(X: Any) -> None:
    if sparse.issparse(X):
        raise DataError(
            "predict(X) gives the mean of every cell, so X must be dense. Found a sparse matrix. Name the cells "
            "wanted, predict(rows, cols), or make the dense matrix on purpose: inverse_transform(transform(X))."
        )


def _warn_of_blanks(observed: Observed) -> None:
    """Tell of rows and columns that nothing was seen of."""
    if observed.unseen == "zero":
        return
    for what, seen, labels in (
        ("row", observed.seen_per_row(), observed.row_labels),
        ("column", observed.seen_per_column(), observed.column_labels),
    ):
        blank = np.flatnonzero(seen == 0)
        if blank.size:
            first = blank[0] if labels is None else quoted(labels[blank[0]])
            others = f" and {blank.size - 1} more" if blank.size > 1 else ""
            warnings.warn(
                f"Every {what} should have a seen cell. Found none in {what} {first}{others}. "
                f"Such a {what} gets the average factor of the others; drop it if that is not wanted.",
                DataWarning,
                stacklevel=4,
            )


def _tell_the_end(model: Factorization) -> None:
    """A warning for an end that the user should know of; Ctrl-C goes on, now that the fit is kept."""
    status = model.status_
    if status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    unsettled = status is Status.MAX_ITER and model.tol > 0
    if unsettled or status in (Status.NOT_FINITE, Status.WORSENED):
        warnings.warn(f"{type(model).__name__}: {status.value}", ConvergenceWarning, stacklevel=4)
