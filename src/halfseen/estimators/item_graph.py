"""ItemGraph, a model of columns that speak for columns; Popularity, the baseline of all rankings."""

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from halfseen import validation
from halfseen.arrays import Array
from halfseen.docstrings import insert_parameters
from halfseen.engines.threads import Threads
from halfseen.errors import DataError
from halfseen.estimators.base import BaseRecommender, fitted
from halfseen.estimators.inputs import Data, Labels, feature_attributes, keep, observe_for_fit, observe_rows
from halfseen.graphs import (
    MOST_DENSE_COLUMNS,
    NEIGHBOURS,
    VALUES,
    ItemGraphModel,
    PopularityModel,
    Ridge,
    fit_graph,
    scores_at,
)
from halfseen.io.tables import CellWeight
from halfseen.model import Status
from halfseen.observed import Observed
from halfseen.ranking import Ranker, Seen, index_of


class DirectRecommender(BaseRecommender):
    """A recommender that is found without iterating, and ranks by scores that are no expected values."""

    unseen: ClassVar[str] = "zero"
    #: Which text may stand for values of training data, as `levels` of `halfseen.observe`.
    levels_to_read: ClassVar[Any] = "ordered"
    #: What the objective in the trace is, in words, and what it has an entry for.
    objective_name: ClassVar[str] = "NDCG@100 of held-out cells"
    step_name: ClassVar[str] = "trial"

    @insert_parameters
    def fit(self, X: Data, y: object = None, *, cell_weight: CellWeight = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        {X}
        {y}
        {cell_weight}

        Returns
        -------
        self
        """
        validation.check_parameters(self.get_params(deep=False), self.parameter_rules)
        observed = observe_for_fit(X, self.unseen, cell_weight, self.levels_to_read)
        columns = feature_attributes(X, observed.shape[1])
        model, trace = self._fit_observed(observed)
        direct = {"model_": model, "trace_": trace, "n_iter_": len(trace["objective"]), "status_": Status.DIRECT}
        keep(self, direct | columns)
        return self

    def _fit_observed(self, observed: Observed) -> tuple[Any, dict[str, Array]]:
        """The record, and what was tried on the way."""
        raise NotImplementedError

    #: Parameters that a fit finds, and later fits to more of the same data need not find again.
    finds: ClassVar[tuple[str, ...]] = ()

    @property
    def _can_update(self) -> bool:
        return True

    def _updated(self, new: Observed) -> Ranker:
        cells, _ = self.model_.merged(new, np.float64)
        found = {name: getattr(self.model_, name) for name in self.finds}
        model: Ranker = clone(self).set_params(**found)._fit_observed(cells)[0]
        return model

    @insert_parameters
    def predict(self, rows: Labels | Data, cols: Labels | None = None) -> Array:
        """Scores by which columns are ranked, at pairs of rows and columns.

        Parameters
        ----------
        rows : label, array-like of labels, or data
            Rows of the pairs, by label, or by position if the data of the fit had no labels. Without `cols`: histories,
            as for `recommend`.
        cols : label or array-like of labels, default=None
            Columns of the pairs; one row may be paired with many columns, and one column with many rows.

        Returns
        -------
        ndarray or float
            Score of each pair or, without `cols`, of every column for the histories.
        """
        check_is_fitted(self)
        model = self.model_
        if cols is not None:
            scores: Array = scores_at(model, *model.pairs(rows, cols))
            return scores if scores.shape else scores[()]
        if sparse.issparse(rows):
            must = "predict(X) gives the score of every column, so X must be dense."
            remedy = "Name the cells wanted, predict(rows, cols), or ask `recommend` for the best."
            raise DataError(must, found="a sparse matrix", remedy=remedy, parameter="X")
        observed = observe_rows(self, rows)
        served = model.served_rows(observed, self.engine, self.n_jobs, type(self).__name__)
        dense: Array = model.scores(served).tile(slice(0, observed.shape[0]), slice(0, model.shape[1]))
        return dense

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        return tags


class ItemGraph(DirectRecommender):
    """Every column regressed on all others, in closed form: a cell in one column speaks for others (EASE).

    Unseen cells are *zeros*. A column's score for a row is the sum over the row's cells of value times weight,
    ``x_u B``, where B minimises

        sum_u r_u |x_u - x_u B|^2 + sum_ij l_i B_ij^2,   B_jj = 0

    so new rows need no fit: their histories are all that is asked for. Beside the published model, rows with many
    cells count less (r_u), and columns with many cells are held down more (l_i): on five sets of ratings and plays
    each of the two raised NDCG@100 of held-out cells.

    Parameters
    ----------
    values : {{"values", "log", "presence"}} or None, default=None
        What a cell is in x_u: its value, log(1 + value), or 1. None takes the value and, where the largest is more
        than ten times the median, what ranks held-out cells best.
    l2 : float or None, default=None
        Mean of the penalties l_i. None finds it: a fifth of the cells is held out, and the penalty goes up or down by
        factors of 2 while they are ranked better.
    l2_exponent : float, default=0.5
        l_i is in proportion to this power of the column's sum of squares; 0 is the published model.
    row_exponent : float, default=0.5
        r_u is in proportion to 1 over this power of the row's number of cells; 0 is the published model.
    n_neighbors : int, "all" or None, default=None
        Number of weights per column: "all" others, at 12 bytes a pair, or those of so many neighbours, found by a
        regression on these alone, in memory that is in proportion to cells and columns. None: all up to 12,000 columns
        (1.7 GB), else 200.
    random_state : int, RandomState or None, default=None
        Seed of the held-out cells.
    {engine:cpu}
    {n_jobs}

    Attributes
    ----------
    weights_ : ndarray or csr_array of shape (n_columns, n_columns)
        B: row i has what a cell in column i adds to the scores of the columns.
    values_ : str
        What a cell is in x_u.
    l2_ : float
        Mean penalty of the fit.
    trace_ : dict of ndarray
        An entry per penalty that was tried: "l2", its mean; "objective", NDCG@100 of held-out cells; "seconds".
    n_iter_ : int
        Number of penalties that were tried.
    status_ : Status
        DIRECT.
    model_ : ItemGraphModel
        All that ranking needs, as a record that later changes of parameters do not touch.
    n_features_in_ : int
        Number of columns.
    row_labels_, column_labels_ : ndarray or None
        Labels of rows and columns, if the data had any.

    References
    ----------
    .. [1] H. Steck, "Embarrassingly shallow autoencoders for sparse data", WWW 2019.

    Examples
    --------
    >>> import halfseen as hs
    >>> stars = [("ann", "Alien", 5), ("ann", "Brazil", 4), ("bob", "Alien", 4), ("bob", "Clue", 1)]
    >>> model = hs.ItemGraph(random_state=0).fit(stars)
    >>> model.recommend(["bob"], n=5).ids
    array([['Brazil']], dtype=object)
    """

    record = ItemGraphModel
    finds = ("values", "l2")
    parameter_rules: ClassVar[Mapping[str, validation.Rule]] = {
        "values": validation.one_of(*VALUES, or_none=True),
        "l2": validation.number(0.0, above=True, or_none=True),
        "l2_exponent": validation.number(0.0),
        "row_exponent": validation.number(0.0),
        "n_neighbors": validation.or_else(lambda n: None if n is None else validation.whole(1)(n), "all"),
        "random_state": validation.seed(),
        **BaseRecommender.parameter_rules,
        "engine": validation.one_of("cpu"),
    }

    values_ = fitted(lambda model: model.values, "What a cell is in x_u.")
    l2_ = fitted(lambda model: model.l2, "Mean penalty of the fit.")
    weights_ = fitted(lambda model: model.weights.matrix, "B, dense or sparse.")

    def __init__(
        self,
        *,
        values: str | None = None,
        l2: float | None = None,
        l2_exponent: float = 0.5,
        row_exponent: float = 0.5,
        n_neighbors: int | str | None = None,
        random_state: int | np.random.RandomState | None = None,
        engine: str = "cpu",
        n_jobs: int | None = None,
    ) -> None:
        self.values = values
        self.l2 = l2
        self.l2_exponent = l2_exponent
        self.row_exponent = row_exponent
        self.n_neighbors = n_neighbors
        self.random_state = random_state
        self.engine = engine
        self.n_jobs = n_jobs

    def _fit_observed(self, observed: Observed) -> tuple[ItemGraphModel, dict[str, Array]]:
        width = self.n_neighbors
        if width is None and observed.shape[1] > MOST_DENSE_COLUMNS:
            width = NEIGHBOURS
        neighbours = None if width is None or isinstance(width, str) else int(width)
        is_sparse = neighbours is not None and neighbours < observed.shape[1] - 1
        ridge = Ridge(self.l2_exponent, self.row_exponent, neighbours if is_sparse else None)
        random = check_random_state(self.random_state)
        with Threads(self.n_jobs) as threads:
            fit = fit_graph(observed, self.values, self.l2, ridge, random, threads)
        return fit.model, {"l2": fit.l2, "objective": fit.ndcg, "seconds": fit.seconds}


class Popularity(DirectRecommender):
    """Columns in the order of how much they are seen, the same for every row: the baseline of all rankings.

    Parameters
    ----------
    by : {{"cells", "values"}}, default="cells"
        Score of a column: the number of its cells, or the sum of their values; weighted where cells have weights.
    {engine:cpu}
    {n_jobs}

    Attributes
    ----------
    popularity_ : ndarray of shape (n_columns,)
        Scores of the columns.
    model_ : PopularityModel
        All that ranking needs.
    n_features_in_ : int
        Number of columns.
    row_labels_, column_labels_ : ndarray or None
        Labels of rows and columns, if the data had any.

    Examples
    --------
    >>> import halfseen as hs
    >>> stars = [("ann", "Alien", 5), ("ann", "Brazil", 4), ("bob", "Alien", 4), ("bob", "Clue", 1)]
    >>> hs.Popularity().fit(stars).recommend([{"Brazil": 5}], n=1)
    Recommendations(ids=array([['Alien']], dtype=object), scores=array([[2.]]))
    """

    record = PopularityModel
    parameter_rules: ClassVar[Mapping[str, validation.Rule]] = {
        "by": validation.one_of("cells", "values"),
        **BaseRecommender.parameter_rules,
        "engine": validation.one_of("cpu"),
    }

    popularity_ = fitted(lambda model: model.popularity, "Scores of the columns.")

    def __init__(self, by: str = "cells", *, engine: str = "cpu", n_jobs: int | None = None) -> None:
        self.by = by
        self.engine = engine
        self.n_jobs = n_jobs

    def _fit_observed(self, observed: Observed) -> tuple[PopularityModel, dict[str, Array]]:
        first = observed.is_first_at_cell
        counts = np.ones(observed.nnz) if first is None else first
        counts = observed.values if self.by == "values" else counts
        counts = counts if observed.weights is None else counts * observed.weights
        popularity = np.bincount(observed.indices, counts, observed.shape[1])
        record = index_of(observed), Seen.from_observed(observed), observed.unseen, observed.fingerprint()
        return PopularityModel(popularity, *record, observed.level_names), {
            "objective": np.empty(0),
            "seconds": np.empty(0),
        }
