"""What every fitted pair of factors can do: fold in, predict, complete, score, save."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from halfseen import checks
from halfseen.arrays import Array
from halfseen.engines import RULES as ENGINE_RULES
from halfseen.engines import Side, open_engine
from halfseen.errors import DataError, ParameterError
from halfseen.estimators.completing import completed
from halfseen.estimators.features import observe_rows, with_row_labels
from halfseen.estimators.filing import save
from halfseen.estimators.labelling import pair_positions
from halfseen.estimators.pairs import products_at
from halfseen.estimators.recommending import RecommendingMixin
from halfseen.likelihoods import Likelihood
from halfseen.observed import Observed
from halfseen.solvers import Problem


class FactorModel(RecommendingMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator, ABC):
    """A half-seen matrix as W H^T. Subclasses say how W and H are found, and how new rows are folded in."""

    max_iter: int
    tol: float
    verbose: int
    unseen: str
    engine: str
    n_jobs: int | None

    #: The rules of the parameters that all estimators have; subclasses add theirs.
    parameter_rules: ClassVar[Mapping[str, checks.Rule]] = {
        "max_iter": checks.whole(1),
        "tol": checks.number(0.0),
        "unseen": checks.one_of("missing", "zero"),
        **ENGINE_RULES,
    }
    #: Whether `score` is a log-likelihood, or minus a mere loss.
    score_is_log_likelihood: ClassVar[bool]

    @property
    def objective_name(self) -> str:
        """What the objective in the trace is, in words."""
        return "Evidence bound" if self.score_is_log_likelihood else "Loss"

    @abstractmethod
    def fit(self, X: Any, y: Any = None, *, cell_weight: Any = None) -> Self:
        """Find W and H."""

    @abstractmethod
    def _make_likelihood(self) -> Likelihood: ...

    def _coded(self, observed: Observed) -> Observed:
        """New cells as the fitted likelihood counts them."""
        return observed

    def _levels_to_read(self) -> Any:
        """For `observe`, in a fit: which texts may stand for values."""
        return None

    def _fitted_names(self) -> Any:
        """For `observe`, after a fit: the texts that stand for the values 1, 2, ..., if any do."""
        return None

    @abstractmethod
    def _folded_in(self, observed: Observed) -> Array:
        """As `transform`, of rows already read, and always an array."""

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name, `params`; an unknown name is answered with the one probably meant."""
        checks.check_names(params, self.get_params(deep=False), type(self).__name__)
        super().set_params(**params)
        return self

    def fit_transform(self, X: Any, y: Any = None, *, cell_weight: Any = None) -> Array:
        """Fit, then fold the same rows in: a pipeline sees the same features in training as later.

        The W of the fit itself, which moved together with H, is the attribute `W_`.

        Parameters
        ----------
        X : data as for `fit`.
        y : ignored, for scikit-learn's pipelines.
        cell_weight : how much each seen cell counts, as in `fit`.
        """
        return self.fit(X, y, cell_weight=cell_weight).transform(X, cell_weight=cell_weight)

    def transform(self, X: Any, *, cell_weight: Any = None) -> Array:
        """Fold new rows in: their W, with H as it was fitted. Each row depends on its own cells alone.

        The rows of a long frame come in the order of their first appearance.

        Parameters
        ----------
        X : rows over the columns of the fit, data as for `fit`; or a list of dicts from column labels to values.
        cell_weight : how much each seen cell counts, as in `fit`.
        """
        check_is_fitted(self)
        observed = observe_rows(self, X, cell_weight=cell_weight)
        return with_row_labels(self, X, observed, self._folded_in(observed))

    def _rows_of(self, X: Any) -> Array:
        """W of the rows of X: that of the fit if X was fitted, else folded in."""
        observed = observe_rows(self, X)
        W: Array = self.W_ if observed.fingerprint() == self.fingerprint_ else self._folded_in(observed)
        return W

    def inverse_transform(self, W: Any) -> Array:
        """The model's mean of every cell in rows with the given W, which `transform` returned."""
        check_is_fitted(self)
        W = np.asarray(W)
        if W.ndim != 2 or W.shape[1] != self.H_.shape[1] or W.dtype.kind not in "fiub":
            raise ParameterError(
                f"W must hold numbers, a column for each of the {self.H_.shape[1]} components. Found shape {W.shape}, "
                f"dtype {W.dtype}. "
                "Pass what transform returned."
            )
        return self._means(W)

    def _means(self, W: Array) -> Array:
        rows = np.arange(len(W))[:, None] if W is self.W_ else None
        means: Array = self._likelihood_at(rows, None).mean(W @ self.H_.T)
        return means

    def _likelihood_at(self, rows: Array | None, columns: Array | None) -> Any:
        """The likelihood at cells of these positions, for who has one for each row or column; None: new rows, all
        columns."""
        return self.likelihood_

    def predict(self, rows: Any, cols: Any = None) -> Array:
        """The model's mean at the pairs (rows[j], cols[j]), named as X named them: by label, else by position.

        Without `cols`, `rows` is data as for `transform`: the rows are folded in, and the mean of every cell returned.
        """
        check_is_fitted(self)
        x, likelihood = self._x_and_likelihood(rows, cols)
        means: Array = likelihood.mean(x)
        return means if means.shape else means[()]

    def _x_and_likelihood(self, rows: Any, cols: Any) -> tuple[Array, Any]:
        """<w_u, h_i>, and the likelihood there: at pairs of rows and columns or, without `cols`, for all columns of
        rows that are folded in."""
        if cols is None:
            _refuse_sparse(rows)
            return self._folded_in(observe_rows(self, rows)) @ self.H_.T, self._likelihood_at(None, None)
        places = pair_positions(self, rows, cols)
        return products_at(self.W_, self.H_, *places), self._likelihood_at(*places)

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

        Every component helps to explain cells that it has seen: to choose n_components, or a penalty, hold cells out.
        y is ignored, for scikit-learn's pipelines.
        """
        check_is_fitted(self)
        observed = observe_rows(self, X, allow_empty=False)
        W = self._folded_in(observed).astype(observed.dtype, copy=False)
        observed = self._coded(observed)
        H = np.ascontiguousarray(self.H_, dtype=observed.dtype)
        with open_engine(self.engine, self.n_jobs) as engine:
            task = Problem(engine, engine.place(observed, Side.ROWS), self.likelihood_)
            loss = task.divergence(engine.sddmm(task.cells, W, H), W, H)
        gain = task.saturated if self.score_is_log_likelihood else 0.0
        return (gain - loss) / task.weight_of_cells

    def save(self, path: Any) -> None:
        """Write the fitted model to one file at `path` that `halfseen.load` reads; no pickle in it."""
        check_is_fitted(self)
        save(self, path)

    def _further_arrays(self) -> dict[str, Array]:
        """Arrays of its own that an estimator wants kept in model files."""
        return {}

    def _restore(self, further: dict[str, Array]) -> None:
        """Take these arrays back from a model file."""
        self.likelihood_ = self._make_likelihood()

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


def _refuse_sparse(X: Any) -> None:
    if sparse.issparse(X):
        raise DataError(
            "predict(X) gives the mean of every cell, so X must be dense. Found a sparse matrix. Name the cells "
            "wanted, predict(rows, cols), or make the dense matrix on purpose: inverse_transform(transform(X))."
        )
