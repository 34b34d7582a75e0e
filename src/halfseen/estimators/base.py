"""Base classes of the estimators: what a fitted factorization can do, and how the loop fits one."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import narwhals as nw
import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from halfseen import checkpoint as checkpoints
from halfseen import validation
from halfseen.archive import save_model
from halfseen.arrays import Array
from halfseen.checkpoint import Checkpoint, CheckpointFolder
from halfseen.docstrings import insert_parameters
from halfseen.encoders import Encoder
from halfseen.engines import RULES as ENGINE_RULES
from halfseen.engines import Side, open_engine
from halfseen.errors import DataError, DataWarning, ParameterError
from halfseen.estimators.inputs import (
    Data,
    Labels,
    Seed,
    feature_attributes,
    is_list_of_histories,
    is_row_data,
    keep,
    observe_for_fit,
    observe_histories,
    observe_rows,
    warn_if_zeros_are_missing,
    warn_of,
    with_row_labels,
)
from halfseen.fitting import Callback, Outcome, callbacks, fit_at, run, warn_if_empty, warn_if_not_converged
from halfseen.io import observe
from halfseen.io.reader import grid_of
from halfseen.io.schema import spelled_long
from halfseen.io.sources import as_frame
from halfseen.io.tables import CellWeight, FilePath
from halfseen.likelihoods import Likelihood
from halfseen.model import (
    Fit,
    FittedModel,
    Folding,
    Interval,
    random_generator,
)
from halfseen.observed import Observed
from halfseen.ranking import Explanation, Ranker, Recommendations, Seen, index_of
from halfseen.solvers import Problem, Solver

#: The largest completed matrix that is made: 2^31 cells, 16 GB.
MAX_COMPLETED_CELLS = 1 << 31
SEED_RULES = {"n": validation.whole(1), "random_state": validation.seed()}


def fitted(get: Callable[[Any], Any], doc: str) -> property:
    """A fitted attribute that is read from `model_`."""
    return property(lambda self: get(self.model_), doc=doc)


def needs(*what: str) -> Callable[[Any], bool]:
    """Check for `available_if`: whether the estimator offers all of these."""
    return lambda self: self.offers.issuperset(what)


class BaseRecommender(BaseEstimator, ABC):
    """A model that ranks columns for rows. Subclasses say how `model_`, a `Ranker`, is found."""

    engine: str
    n_jobs: int | None

    model_: Any

    #: Rules of the parameters that all of them have; subclasses add theirs.
    parameter_rules: ClassVar[Mapping[str, validation.Rule]] = {**ENGINE_RULES}

    #: What fitted models have: "levels", "likelihood" (probabilities of values), "posterior" (of the factors).
    offers: ClassVar[frozenset[str]] = frozenset()

    #: Class of `model_`, and the types of `_more_state`, for files.
    record: ClassVar[type[Ranker]]
    more_state: ClassVar[tuple[Any, ...]] = ()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        insert_parameters(cls)

    row_labels_ = fitted(lambda model: model.labels.row_labels, "Labels of rows, None without any.")
    column_labels_ = fitted(lambda model: model.labels.column_labels, "Labels of columns, None without any.")
    seen_ = fitted(lambda model: model.seen, "Cells of the training data.")

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name; an unknown name is answered with the one probably meant.

        Parameters
        ----------
        **params : dict
            Parameters of the estimator.
        """
        validation.check_names(params, self.get_params(deep=False), type(self).__name__)
        super().set_params(**params)
        return self

    def recommend(
        self,
        rows: Labels | Data,
        n: int = 10,
        exclude_seen: bool = True,
        filter_items: Labels | None = None,
        exclude: Labels | None = None,
        strict: bool = False,
        *,
        items: Labels | None = None,
        approximate: bool = False,
    ) -> Recommendations:
        """Best columns for each row, by the expected value.

        Unknown rows get the most popular columns, those with most cells in training, and unknown columns are left out,
        with a `DataWarning` that counts them.

        Parameters
        ----------
        rows : label, array-like of labels, or data
            Rows of the fit, by label or position; or new histories: a list of dicts from column labels to values, or
            data as for `transform`.
        n : int, default=10
            Number of columns per row.
        exclude_seen : bool, default=True
            Leave out what the row has seen already, in the fit or in its history.
        filter_items : array-like of labels, default=None
            Only these columns are candidates, such as those in stock.
        exclude : array-like of labels, default=None
            Columns that are no candidates.
        strict : bool, default=False
            Refuse unknown rows, unknown columns, and values of histories between two levels of the fit, which are
            otherwise taken for the nearer one.
        items : array-like of labels, default=None
            Another name of `filter_items`.
        approximate : bool, default=False
            Look for the columns in an index (HNSW, ``pip install 'halfseen[index]'``), for millions of columns: lists
            may lack some of the best columns, but their scores are exact. The first call builds the index. Models
            without factors, and rows for which the index finds too few columns, are ranked exactly.

        Returns
        -------
        Recommendations
            A pair of ids and scores, best first, with `rows`, `is_known` and `to_frame`.
        """
        check_is_fitted(self)
        validation.check_parameters(
            {"n": n, "strict": strict, "approximate": approximate},
            {"n": validation.whole(1), "strict": validation.flag(), "approximate": validation.flag()},
        )
        if items is not None and filter_items is not None:
            must, found = "must not be given twice.", "`items` besides, which means the same"
            raise ParameterError(must, parameter="filter_items", found=found, remedy="Leave `items` out.")
        notes: list[DataWarning] = []
        if is_row_data(rows):
            rows, notes = observe_histories(self, rows, strict)
        found = self.model_.recommend(
            rows, n, exclude_seen, items if filter_items is None else filter_items, exclude, strict,
            engine=self.engine, n_jobs=self.n_jobs, name=type(self).__name__, approximate=approximate,
        )  # fmt: skip
        found.notes = (*notes, *found.notes)
        warn_of(found.notes)
        return found

    def similar_items(self, items: Labels, n: int = 10, strict: bool = False) -> Recommendations:
        """Columns most like the given ones: by the cosine of their factors, where a model has factors.

        Parameters
        ----------
        items : label or array-like of labels
            Columns of the fit, by label or position.
        n : int, default=10
            Number of similar columns for each.
        strict : bool, default=False
            Refuse unknown columns. By default those among known ones are left out, with a `DataWarning`.

        Returns
        -------
        Recommendations
            A pair of ids and scores (a cosine is 1 for columns that are quite alike), best first, without the column
            itself.
        """
        found = self._similar(items, "column", n, strict)
        warn_of(found.notes)
        return found

    def similar_users(self, users: Labels, n: int = 10, strict: bool = False) -> Recommendations:
        """Rows most like the given ones: by the cosine of their factors, where a model has factors.

        Parameters
        ----------
        users : label or array-like of labels
            Rows of the fit, by label or position.
        n : int, default=10
            Number of similar rows for each.
        strict : bool, default=False
            Refuse unknown rows. By default those among known ones are left out, with a `DataWarning`.

        Returns
        -------
        Recommendations
            A pair of ids (of rows) and scores, best first, without the row itself.
        """
        found = self._similar(users, "row", n, strict)
        warn_of(found.notes)
        return found

    def _similar(self, wanted: Any, side: str, n: int, strict: bool) -> Recommendations:
        check_is_fitted(self)
        validation.check_parameters({"n": n, "strict": strict}, {"n": validation.whole(1), "strict": validation.flag()})
        notes: list[DataWarning] = []
        positions = self.model_.known(wanted, side, strict, notes)
        similar: Recommendations = self.model_.similar(positions, side, n, self.engine, self.n_jobs)
        similar.notes = tuple(notes)
        return similar

    def explain(self, row: Any, item: Any, n: int = 10) -> Explanation:
        """Which cells of a row speak for a column: by how much its score falls if each of them is left out.

        The row's cells are folded in as a history, whole and without each of them in turn, so that this is exact for
        every model. It takes about as long as folding in one new row for each cell of the row. A row without any cell
        is taken for an average one: so the only cell of a row may have a contribution below 0.

        Parameters
        ----------
        row : label or data
            A row of the fit, by label or position; or a history: a dict from column labels to values, or data of one
            row.
        item : label
            A column of the fit, by label or position.
        n : int, default=10
            Number of cells to show, those that speak most for it.

        Returns
        -------
        Explanation
            The score, and items, values and contributions of the cells.
        """
        check_is_fitted(self)
        validation.check_parameters({"n": n}, {"n": validation.whole(1)})
        model: Ranker = self.model_
        if not model.can_fold_in:
            must = "A model must fold in new rows to explain its recommendations."
            raise ParameterError(must, found=f"a {type(self).__name__} that does not", remedy="Use another model.")
        if is_row_data(row):
            observed, notes = observe_histories(self, row, strict=False)
            observed = model.at_nearest_levels(observed, notes)
            warn_of(notes)
            label = "a new row" if observed.row_labels is None else observed.row_labels[0]
        else:
            position = model.positions(row, "row")
            dtype = model.scores(model.known_rows(position[:0])).dtype
            observed, label = model.seen.observed(position, model.unseen, dtype), model.labels_at(position, "row")[0]
        column = model.positions(item, "column")
        if observed.shape[0] != 1 or column.size != 1:
            must = "explain must be asked about one row and one column."
            raise DataError(must, found=f"{observed.shape[0]} and {column.size}", remedy="Ask about each in turn.")
        score, falls = model.explain(observed, int(column[0]), self.engine, self.n_jobs, type(self).__name__)
        best = np.argsort(-falls, kind="stable")[:n]
        items = model.labels_at(observed.indices[best], "column")
        return Explanation(
            label, model.labels_at(column, "column")[0], score, items, observed.values[best], falls[best]
        )

    @property
    def _can_update(self) -> bool:
        """Whether `partial_fit` can take in new cells: thresholds of each row or column, and draws, need a fit."""
        return False

    @available_if(lambda self: self._can_update)
    @insert_parameters
    def partial_fit(self, X: Data, y: object = None, *, cell_weight: CellWeight = None) -> Self:
        """Take in new cells without another search or long fit; the first call fits.

        Rows and columns are matched by their labels; those that the model does not know are added. The rows of arrays
        and other tables without labels of rows are all new. A cell that the model has seen gets its new value.

        Factorizations keep what they have learned of known columns:

        1. Every row with a new cell is solved again from all its cells, old and new, with the columns fixed, as
           `transform` does.
        2. Every new column is solved from its cells with the rows fixed; then the rows of 1. once more.
        3. Known columns, rows without a new cell, thresholds and other parameters of the likelihood stay as they are,
           to the last bit. The time taken depends on the rows with new cells, not on the others.

        `ItemGraph` and `Popularity`, which are found at once, are found again from all cells, with the penalty and the
        kind of values of the last fit. A `Blend` updates each of its models, and keeps their weights. Fit again from
        time to time.

        Parameters
        ----------
        {X}
        {y}
        {cell_weight}

        Returns
        -------
        self
        """
        if not hasattr(self, "model_"):
            self.fit(X, cell_weight=cell_weight)
            return self
        model = self.model_
        if model.index[0] is None:
            new = observe_rows(self, X, cell_weight=cell_weight)
        else:
            unseen = None if isinstance(X, Observed) else model.unseen
            new = observe(X, unseen=unseen, levels=model.levels_to_read, cell_weight=cell_weight, allow_empty=True)
        self.model_ = self._updated(new)
        self.n_features_in_ = self.model_.shape[1]
        if hasattr(self, "feature_names_in_"):
            self.feature_names_in_ = self.column_labels_
        return self

    def _updated(self, new: Observed) -> Ranker:
        """The record with new cells."""
        raise NotImplementedError

    def save(self, path: FilePath) -> None:
        """Write the fitted model to one file that `halfseen.load` reads; it holds no pickle.

        Parameters
        ----------
        path : str or path-like
            Where to write.
        """
        check_is_fitted(self)
        save_model(self, path)

    def _more_state(self) -> tuple[Any, ...]:
        """What a file keeps beside the model and the trace."""
        return ()

    def _set_state(self, model: Any, trace: dict[str, Array], more: tuple[Any, ...]) -> None:
        """Take back what a file kept."""
        self.model_, self.trace_ = model, trace


class BaseFactorization(CallbackSupportMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseRecommender):
    """A half-seen matrix as W H^T. Subclasses say how `model_` is found."""

    max_iter: int
    tol: float
    verbose: int
    unseen: str

    #: Rules of the parameters that all estimators have; subclasses add theirs.
    parameter_rules: ClassVar[Mapping[str, validation.Rule]] = {
        "max_iter": validation.whole(1),
        "tol": validation.number(0.0),
        "unseen": validation.one_of("missing", "zero"),
        **BaseRecommender.parameter_rules,
    }
    #: Whether `score` is a log-likelihood, or minus a mere loss.
    score_is_log_likelihood: ClassVar[bool] = False

    record: ClassVar[type[FittedModel]] = FittedModel

    W_ = fitted(lambda model: model.W, "Row factors, of shape (n_rows, n_components).")
    H_ = fitted(lambda model: model.H, "Column factors, of shape (n_columns, n_components).")
    components_ = fitted(lambda model: model.H.T, "`H_` transposed, as scikit-learn has it.")
    likelihood_ = fitted(lambda model: model.likelihood, "Likelihood, with the parameters that were learned.")

    @property
    def objective_name(self) -> str:
        """What the objective in the trace is, in words."""
        return "Evidence bound" if self.score_is_log_likelihood else "Loss"

    @abstractmethod
    def fit(self, X: Data, y: object = None, *, cell_weight: CellWeight = None) -> Self:
        """Find W and H."""

    @insert_parameters
    def fit_transform(self, X: Data, y: object = None, *, cell_weight: CellWeight = None) -> Array:
        """Fit, then fold the same rows in: a pipeline sees the same features in training as later.

        The W of the fit itself, which moved together with H, is the attribute `W_`.

        Parameters
        ----------
        {X}
        {y}
        {cell_weight}

        Returns
        -------
        ndarray of shape (n_rows, n_components)
        """
        return self.fit(X, y, cell_weight=cell_weight).transform(X, cell_weight=cell_weight)

    @insert_parameters
    def transform(self, X: Data, *, cell_weight: CellWeight = None) -> Array:
        """Fold new rows in: their W, with H as it was fitted. Each row depends on its own cells alone.

        Parameters
        ----------
        {X:rows}
        {cell_weight}

        Returns
        -------
        ndarray of shape (n_rows, n_components)
            Rows of a long frame are in the order of their first appearance.
        """
        check_is_fitted(self)
        observed = observe_rows(self, X, cell_weight=cell_weight)
        return with_row_labels(self, X, observed, self._fold_in(observed))

    def _fold_in(self, observed: Observed) -> Array:
        return self.model_.fold_in(observed, self.engine, self.n_jobs, type(self).__name__)

    def rows_of(self, X: Data) -> Array:
        """Factor of the rows of X: that of the fit if X was fitted, else folded in.

        Parameters
        ----------
        X : data
            As for `fit`.

        Returns
        -------
        ndarray of shape (n_rows, n_components)
        """
        observed = observe_rows(self, X)
        if observed.fingerprint() != self.model_.fingerprint:
            return self._fold_in(observed)
        n: int = observed.shape[0]  # rows of which only features are known come after those of X
        return self.W_ if n == len(self.W_) else self.W_[:n]

    def inverse_transform(self, W: ArrayLike) -> Array:
        """Expected value of every cell of rows with the given factor.

        Parameters
        ----------
        W : array-like of shape (n_rows, n_components)
            What `transform` returned.

        Returns
        -------
        ndarray of shape (n_rows, n_columns)
        """
        check_is_fitted(self)
        W = np.asarray(W)
        if W.ndim != 2 or W.shape[1] != self.H_.shape[1] or W.dtype.kind not in "fiub":
            raise ParameterError(
                f"must hold numbers, a column for each of the {self.H_.shape[1]} components.",
                parameter="W",
                found=f"shape {W.shape}, dtype {W.dtype}",
                remedy="Pass what transform returned.",
            )
        return self.model_.means(W)

    @insert_parameters
    def predict(self, rows: Labels | Data, cols: Labels | None = None, given_seen: bool = False) -> Array:
        """Expected values at pairs of rows and columns: where unseen cells are zeros, E[y] counts these zeros, too.

        With `unseen="zero"` this is what a cell is worth on average, seen or not: a user who would give five stars, but
        most likely never looks, is at .56. `given_seen=True` asks for the stars, E[y | y > 0].

        Parameters
        ----------
        {rows, cols:or data}
        given_seen : bool, default=False
            Predict the value of a cell that is seen, as `predict` does anyway where unseen cells are missing.

        Returns
        -------
        ndarray or float
            Expected value of each pair or, without `cols`, of every cell of the rows.
        """
        check_is_fitted(self)
        validation.check_parameters({"given_seen": given_seen}, {"given_seen": validation.flag()})
        if given_seen and self.model_.unseen == "zero" and "likelihood" not in self.offers:
            raise ParameterError(
                f"must be False for {type(self).__name__}, which has no probability that a cell is above 0.",
                parameter="given_seen",
                found="True",
                remedy="Use `OrdNMF`, `SquaredOrdNMF` or `PoissonFactorization`.",
            )
        means = self._predict("mean of seen" if given_seen else "mean", rows, cols)
        return means if means.shape else means[()]

    def _predict(self, what: str, rows: Any, cols: Any) -> Array:
        """What the model predicts at pairs or, without `cols`, for all columns of rows that are folded in."""
        model = self.model_
        if cols is not None:
            at_pairs: Array = model.predict(what, *model.pairs(rows, cols))
            return at_pairs
        if sparse.issparse(rows):
            raise DataError(
                "predict(X) gives the mean of every cell, so X must be dense.",
                found="a sparse matrix",
                remedy="Name the cells wanted, predict(rows, cols), or make the dense matrix on purpose: "
                "inverse_transform(transform(X)).",
                parameter="X",
            )
        return self._predict_rows(what, observe_rows(self, rows))

    def _predict_rows(self, what: str, observed: Observed) -> Array:
        answer: Array = self.model_.predict_rows(what, observed, self.engine, self.n_jobs, type(self).__name__)
        return answer

    @available_if(needs("likelihood", "levels"))
    @insert_parameters
    def predict_proba(self, rows: Labels | Data, cols: Labels | None = None) -> Array:
        """Probability of every level at pairs of rows and columns.

        Parameters
        ----------
        {rows, cols:or data}

        Returns
        -------
        ndarray of shape (..., n_levels)
            In the order of `levels_`.
        """
        check_is_fitted(self)
        return self._predict("probabilities", rows, cols)

    @available_if(needs("levels"))
    @insert_parameters
    def predict_level(self, rows: Labels | Data, cols: Labels | None = None) -> Array:
        """Median level at pairs of rows and columns: the lowest level that is not exceeded in half of all cases.

        For models without probabilities: the level whose interval holds x, GRF(x)  (Eq. 2.5 of `grr-2018`).

        Parameters
        ----------
        {rows, cols:or data}

        Returns
        -------
        ndarray
            Levels, as in `levels_`.
        """
        check_is_fitted(self)
        levels: Array = self.levels_[self._predict("level", rows, cols)]
        return levels

    @property
    def levels_(self) -> Array:
        """Levels of ordinal data from the lowest to the highest."""
        encoder: Any = self.model_.encoder
        if not encoder.has_levels:
            raise AttributeError(f"{type(self).__name__} has no levels.")
        labels: Array = encoder.labels
        return labels

    def complete(self, X: Data) -> Any:
        """Fill the missing cells of X with expected values, and leave the others as they are.

        Data that were fitted are filled from `W_`, as `predict` does; other rows are folded in.

        Parameters
        ----------
        X : array-like, sparse matrix, frame, path or Observed
            As for `fit`.

        Returns
        -------
        ndarray or frame
            An array for arrays, sparse matrices and files; a frame of the same kind for a wide frame; for a long frame
            one with a line for every pair.
        """
        check_is_fitted(self)
        model = self.model_
        if model.encoder.is_text:
            raise DataError(
                "complete fills holes with expected values, so levels must be numbers.",
                found=repr(self.levels_[-1]),
                remedy="Ask predict_level for the cells of interest, or fit on numbers.",
            )
        frame = as_frame(X)
        grid = grid_of(X) if frame is None and not is_list_of_histories(X) else None
        if grid is not None:  # no list of its cells need be made
            filled = self._means_of(X)
            np.copyto(filled, grid.values, where=~np.isnan(grid.values), casting="same_kind")
            return filled
        given = observe_rows(self, X, unseen="missing")
        n, m = given.shape
        if n * m > MAX_COMPLETED_CELLS:
            raise DataError(
                f"A completed matrix must have at most {MAX_COMPLETED_CELLS:,} cells.",
                found=f"{n:,} x {m:,}",
                remedy="Use predict for the cells of interest, or recommend for the best of each row.",
            )
        filled = self._means_of(X)
        filled[given.row_of_cell(), given.indices] = given.values
        if frame is None:
            return filled
        backend = nw.get_native_namespace(frame)
        header = spelled_long(frame.columns, lambda _: False)
        if header is None:  # wide: columns without a hole stay as they are
            holes = len(frame) - given.seen_per_column()
            labels = list(frame.columns) if given.column_labels is None else given.column_labels.tolist()
            columns = [
                nw.new_series(name, filled[:, position], backend=backend)
                for position, name in enumerate(labels)
                if name in frame.columns and holes[position] > 0
            ]
            return frame.with_columns(*columns).to_native()
        rows = np.arange(n) if given.row_labels is None else given.row_labels
        names = np.arange(m) if given.column_labels is None else given.column_labels
        lines: dict[Any, Any] = {
            header.row: np.repeat(rows, m).tolist(),
            header.column: np.tile(names, n).tolist(),
            header.value or "value": filled.reshape(-1),
        }
        return nw.from_dict(lines, backend=backend).to_native()

    def _means_of(self, X: Data) -> Array:
        """Expected values of the rows of X: those of the fit if X was fitted, else of rows that are folded in."""
        means: Array = self.model_.means(self.rows_of(X))
        return means

    @available_if(needs("likelihood"))
    def log_likelihood(self, X: Data, *, each: bool = False) -> float | Array:
        """Log-likelihood of cells that were held out of the fit.

            unseen="zero":     sum over the cells of X above 0 of  log p(y | y > 0, x)      (Eq. 39 of `ordnmf-2020`)
            unseen="missing":  sum over the cells of X of          log p(y | x)

        at x = W_u @ H_i, the posterior means. Where unseen cells are zeros, nobody knows which zeros were held out:
        so the sum asks how much a cell has, given that it has something. (With one level that is certain: it is 0.)

        Parameters
        ----------
        X : array-like, sparse matrix, frame, path or Observed
            As for `fit`. Rows and columns are matched by label, where there are labels; cells in rows or columns that
            were not fitted are left out, with a `DataWarning`. A cell with a weight counts so many times.
        each : bool, default=False
            Return the log-likelihood of each cell, in row order, without its weight.

        Returns
        -------
        float or ndarray
            In natural logarithms.
        """
        check_is_fitted(self)
        cells = self.model_.scored_cells(X)
        logs = self.model_.log_likelihoods(cells)
        return logs if each else float(np.sum(logs if cells.weights is None else logs * cells.weights))

    @available_if(needs("likelihood"))
    @insert_parameters
    def sample(self, n: int = 1, random_state: Seed = None) -> list[sparse.csr_array]:
        """Draw data sets from the posterior predictive distribution.

        Factors are drawn from their posteriors (where the model has none, they are what they are), and values from the
        likelihood at their products. With `unseen="zero"` every cell of the matrix is drawn, and what is not stored is
        0. With `unseen="missing"` the model does not say which cells are seen: values are drawn for the cells of the
        fit, and zeros among them are stored. Text levels come as their numbers 1, 2, ... in `levels_`.

        Parameters
        ----------
        n : int, default=1
            Number of data sets.
        {random_state:draws}

        Returns
        -------
        list of csr_array
            With the rows and columns of the fit.
        """
        check_is_fitted(self)
        validation.check_parameters({"n": n, "random_state": random_state}, SEED_RULES)
        random = random_generator(random_state)
        return [self.model_.sample(random) for _ in range(n)]

    @available_if(needs("likelihood"))
    @insert_parameters
    def predict_interval(
        self,
        rows: Labels,
        cols: Labels,
        level: float = 0.9,
        of: str = "value",
        *,
        n_draws: int = 500,
        random_state: Seed = 0,
    ) -> Interval:
        """Central intervals at pairs of rows and columns.

        Parameters
        ----------
        {rows, cols}
        level : float, default=0.9
            Probability that the interval holds what it is of.
        of : {"value", "mean", "x"}, default="value"
            "value": what the cell would show, a level or a count (0 where nothing is there); the interval of such whole
            steps is as short as can be, and so at least as probable as `level`. "mean": the expected value, which
            `predict` gives. "x": the product w_u @ h_i. The last two are intervals of what the posterior leaves open;
            a model without a posterior has none.
        n_draws : int, default=500
            Number of draws of w_u and h_i from their posteriors.
        {random_state:draws}

        Returns
        -------
        Interval
            Pair of arrays (low, high).
        """
        check_is_fitted(self)
        rules = {
            "level": validation.between(0.0, 1.0),
            "of": validation.one_of("value", "mean", "x"),
            "n_draws": validation.whole(1),
            "random_state": validation.seed(),
        }
        parameters = {"level": level, "of": of, "n_draws": n_draws, "random_state": random_state}
        validation.check_parameters(parameters, rules)
        if of != "value" and not self.model_.has_posterior:
            raise ParameterError(
                f'must be "value" for {type(self).__name__}, whose factors are single numbers without a posterior.',
                parameter="of",
                found=repr(of),
                remedy='Ask for "value", or fit `OrdNMF`, `PoissonFactorization` or `OrdinalMF(inference="gibbs")`.',
            )
        u, i = self.model_.pairs(rows, cols)
        return self.model_.interval(u, i, level, of, n_draws, random_generator(random_state))

    def score(self, X: Data, y: object = None) -> float:
        """How well the rows of X are explained after folding them in, per cell; larger is better.

        Every component helps to explain cells that it has seen: to choose n_components, or a penalty, hold cells out.

        Parameters
        ----------
        X : array-like, sparse matrix, frame, path or Observed
            As for `transform`.
        y : None
            Ignored, for scikit-learn's pipelines.

        Returns
        -------
        float
            Log-likelihood per cell, or minus the loss per cell.
        """
        check_is_fitted(self)
        model = self.model_
        observed = observe_rows(self, X, allow_empty=False)
        cells = model.encoder.weigh(model.encoder.codes(observed))
        W = self._fold_in(observed).astype(cells.dtype, copy=False)
        H = np.ascontiguousarray(model.H, dtype=cells.dtype)
        with open_engine(self.engine, self.n_jobs, model.likelihood) as engine:
            problem = Problem(engine, engine.place(cells, Side.ROWS), model.likelihood)
            loss = problem.divergence(engine.asarray(W, Side.ROWS), engine.asarray(H, Side.COLUMNS))
        gain = problem.saturated if self.score_is_log_likelihood else 0.0
        return (gain - loss) / problem.weight_of_cells

    @property
    def _n_features_out(self) -> int:
        return int(self.H_.shape[1])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = "levels" in self.offers
        tags.input_tags.positive_only = self.unseen == "zero" or "levels" not in self.offers
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


@dataclass(frozen=True)
class Method:
    """What the parameters of an estimator mean.

    Attributes
    ----------
    encoder : Encoder
        Between the values of the data and those of the likelihood.
    likelihood : Likelihood or callable
        Likelihood to start with; or a function of (encoded cells, fitted encoder) that makes it.
    solver : Solver or callable
        Solver; or a function of (encoded cells, that likelihood) that makes it.
    start : callable, optional
        Function of (problem, solver, shapes, random state) that makes random factors (W, H); by default the solver's.
    folding : callable, optional
        From the solver of the fit to the one that folds new rows in, if that is another.
    n_components : int, optional
        Number of components, if not that of the estimator.
    """

    encoder: Encoder
    likelihood: Likelihood | Callable[[Observed, Any], Likelihood]
    solver: Solver[Any] | Callable[[Observed, Any], Solver[Any]]
    start: Callable[[Problem, Any, Any, Any], tuple[Array, Array]] | None = None
    folding: Callable[[Any], Solver[Any]] | None = None
    n_components: int | None = None


class Factorization(BaseFactorization):
    """A factorization found by the loop: subclasses are a constructor, a docstring and `_method`."""

    n_components: Any
    accelerate: bool
    init: Any
    random_state: Any
    #: Subclasses elsewhere need not have this parameter.
    checkpoint: Any = None

    #: Whether unseen cells, missing by default, are zeros to users of other libraries' models of the kind.
    may_mean_zeros: ClassVar[bool] = False
    parameter_rules: ClassVar[Mapping[str, validation.Rule]] = {
        "n_components": validation.whole(1, validation.MOST_COMPONENTS),
        **BaseFactorization.parameter_rules,
        "accelerate": validation.flag(),
        "init": validation.start("random"),
        "random_state": validation.seed(),
        "checkpoint": checkpoints.rule,
    }

    @abstractmethod
    def _method(self) -> Method:
        """What the parameters mean."""

    @property
    def objective_name(self) -> str:
        """What the objective in the trace is, in words."""
        is_loss = self.model_.folding.solver.minimizes if hasattr(self, "model_") else not self.score_is_log_likelihood
        return "Loss" if is_loss else "Evidence bound"

    @property
    def levels_to_read(self) -> Any:
        """Which text may stand for values of training data, as `levels` of `halfseen.observe`."""
        return self._method().encoder.levels_to_read

    @with_callbacks
    @insert_parameters
    def fit(self, X: Data, y: object = None, *, cell_weight: CellWeight = None) -> Self:
        """Find W and H.

        Parameters
        ----------
        {X}
        {y}
        {cell_weight}

        Returns
        -------
        self
        """
        validation.check_parameters({"checkpoint": None, **self.get_params(deep=False)}, self.parameter_rules)
        checkpoint = Checkpoint.of(self.checkpoint)
        if checkpoint is not None:
            checkpoint.make_folder()
        place = None if checkpoint is None else checkpoint.folder
        observed = observe_for_fit(X, self.unseen, cell_weight, self.levels_to_read, self.engine, place)
        columns = feature_attributes(X, observed.shape[1])
        self._fit_observed(observed, columns, X, y, cell_weight)
        warn_if_not_converged(self, stacklevel=4)
        return self

    @property
    def _can_update(self) -> bool:
        return getattr(self, "own_thresholds", None) is None and getattr(self, "inference", "map") == "map"

    def _updated(self, new: Observed) -> FittedModel:
        model: FittedModel = self.model_.updated(new, self.engine, self.n_jobs, type(self).__name__)
        return model

    def _fit_observed(self, observed: Observed, columns: dict[str, Any], X: Any, y: Any, cell_weight: Any) -> None:
        """Fit what was read of X, and keep the fitted attributes, with those of the columns."""
        fingerprint = observed.fingerprint()
        fixed = () if self._is_one_run else ("max_iter",)
        with checkpoints.opened(self.checkpoint, self, fingerprint, fixed=fixed) as folder:
            self._fit_in_folder(folder, observed, fingerprint, columns, X, y, cell_weight)

    @property
    def _is_one_run(self) -> bool:
        """Whether a fit is one run, which a larger `max_iter` extends."""
        return True

    def _fit_in_folder(
        self, folder: CheckpointFolder | None, observed: Observed, fingerprint: str, columns: dict[str, Any],
        X: Any, y: Any, cell_weight: Any,
    ) -> None:  # fmt: skip
        """The same, with the folder of its checkpoint, if it has one."""
        method, encoder, cells, likelihood, solver = self._prepare(observed, folder)
        likelihood.check(cells, type(self).__name__)
        solver.check(likelihood)
        if observed.unseen == "missing":
            warn_if_empty("row", observed.seen_per_row() == 0, observed.row_labels, stacklevel=6)
            warn_if_empty("column", observed.seen_per_column() == 0, observed.column_labels, stacklevel=6)
            if self.may_mean_zeros:
                warn_if_zeros_are_missing(X, observed, stacklevel=6)
        folding = Folding(method.folding(solver) if method.folding else solver, self.max_iter, self.tol)

        def attributes(fit: Fit, fingerprint: str | None = None) -> dict[str, Any]:
            """Fitted attributes after a run."""
            rows, others = fit.rows, fit.columns
            if cells.dtype != observed.dtype:
                rows, others = (f._make(array.astype(observed.dtype) for array in f) for f in (rows, others))
            record = (rows, others, fit.likelihood, encoder, index_of(observed), Seen.from_observed(observed))
            model = FittedModel(*record, observed.unseen, folding, fingerprint)
            of_run = {"model_": model, "trace_": dict(fit.trace), "n_iter_": fit.n_iter, "status_": fit.status}
            return of_run | columns

        path = None if folder is None else folder.path
        with open_engine(self.engine, self.n_jobs, likelihood, solver, folder=path) as engine:
            engine.check_memory(cells, method.n_components or self.n_components, likelihood)
            problem = Problem(engine, engine.place(cells, Side.ROWS, Side.COLUMNS), likelihood)

            def at_iteration(outcome: Outcome) -> dict[str, Any]:
                return attributes(fit_at(problem, solver, *outcome))

            with callbacks(self, X, y, cell_weight, at_iteration, self.max_iter, engine=engine) as callback:
                fit = self._run(problem, solver, method, callback, folder)
                keep(self, attributes(fit, fingerprint))

    def _prepare(self, observed: Observed, folder: CheckpointFolder | None) -> "Prepared":
        """What `prepare` makes of training data; where the data decide more, this is where."""
        return prepare(self, observed)

    def _random(self, folder: CheckpointFolder | None) -> np.random.RandomState:
        """What `random_state` stands for."""
        random: np.random.RandomState = check_random_state(checkpoints.seed_of(self.random_state, folder))
        return random

    def _run(
        self, problem: Problem, solver: Solver[Any], method: Method, callback: Callback | None,
        folder: CheckpointFolder | None,
    ) -> Fit:  # fmt: skip
        random = self._random(folder)
        return run(
            problem,
            solver,
            lambda: self._start(problem, solver, method, random),
            max_iter=self.max_iter,
            tol=self.tol,
            accelerate=self.accelerate,
            callback=callback,
            stage=None if folder is None else folder.stage("fit", random),
        )

    def _start(
        self, problem: Problem, solver: Solver[Any], method: Method, random: np.random.RandomState
    ) -> tuple[Array, Array]:
        """Factors to start from, as `init` says."""
        n, m = problem.cells.observed.shape
        k = method.n_components or self.n_components
        shapes = ((n, k), (m, k))
        if not isinstance(self.init, str):
            W, H = (check_start(*given, solver) for given in zip(self.init, shapes, ("W0", "H0"), strict=True))
            return W, H
        random = problem.draws(random)
        if method.start is not None:
            return method.start(problem, solver, shapes, random)
        return solver.random(problem, shapes[0], random), solver.random(problem, shapes[1], random)


class Prepared(NamedTuple):
    """All that a fit starts with, but the factors."""

    method: Method
    encoder: Encoder
    cells: Observed
    likelihood: Likelihood
    solver: Solver[Any]


def prepare(estimator: Factorization, observed: Observed) -> Prepared:
    """Encode training data, and make the likelihood and the solver to start with.

    Parameters
    ----------
    estimator : Factorization
        Its parameters say how.
    observed : Observed
        Training data.

    Returns
    -------
    Prepared
    """
    method = estimator._method()
    encoder, codes = method.encoder.fit(observed, type(estimator).__name__)
    likelihood = method.likelihood(codes, encoder) if callable(method.likelihood) else method.likelihood
    solver = method.solver(codes, likelihood) if callable(method.solver) else method.solver
    return Prepared(method, encoder, encoder.weigh(codes, new_rows=False), likelihood, solver)


def check_start(factor: Any, shape: tuple[int, int], name: str, solver: Solver[Any]) -> Array:
    """A given initial factor, if it has the right shape and the solver can start from it."""
    factor = np.asarray(factor)
    if factor.shape != shape:
        raise ParameterError(
            f"{name} of init must have a row for each {'row' if name == 'W0' else 'column'} of X and a column for each "
            f"component, shape {shape}.",
            parameter="init",
            found=f"shape {factor.shape}",
            remedy="Reshape it.",
        )
    is_finite = factor.dtype.kind in "fiub" and np.all(np.isfinite(factor))
    if not (is_finite and (np.all(factor >= 0) or not solver.is_multiplicative) and solver.accepts_start(factor)):
        needs = f"finite numbers{' of 0 or more' if solver.is_multiplicative else ''}{solver.start_requirement}"
        raise ParameterError(
            f"{name} of init must hold {needs}.", parameter="init", found="others", remedy="Replace them."
        )
    return factor.astype(np.float64) if factor.dtype.kind != "f" else factor
