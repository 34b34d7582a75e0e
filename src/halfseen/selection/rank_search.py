"""Choice of the number of components by held-out cells."""

import warnings
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.model_selection import ParameterGrid
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from halfseen import validation
from halfseen.arrays import Array
from halfseen.docstrings import insert_parameters
from halfseen.errors import ParameterError
from halfseen.estimators import RankOneNMF
from halfseen.estimators.base import Factorization
from halfseen.estimators.inputs import Data, Seed, feature_attributes, observe_for_fit
from halfseen.fitting import ConvergenceWarning
from halfseen.io.tables import CellWeight
from halfseen.selection.scoring import NOT_CONVERGED_TOL, default_metric, get_scorer, make_folds, score_paths

#: Ranks tried by default, as far as the data have rows and columns.
DEFAULT_RANKS = (1, 2, 3, 5, 8, 12, 20, 30, 50)
#: Parameters that can't be varied, and what to do instead.
NOT_VARIED = {
    "n_components": "Move its values to ranks.",
    "random_state": "Set that of the search: each fold has its own.",
    "unseen": "Search once for each: scores of different data can't be compared.",
    "n_jobs": "Leave it out: results don't depend on it.",
    "verbose": "Leave it out: results don't depend on it.",
}
RULES = ("one-standard-error", "best")
_ERROR = "std. error of distance to best"


def check_estimator(estimator: Any) -> Factorization:
    """The estimator, if it has an n_components that can be varied."""
    if not isinstance(estimator, Factorization):
        name = estimator.__name__ if isinstance(estimator, type) else type(estimator).__name__
        if isinstance(estimator, type) and issubclass(estimator, Factorization):
            raise ParameterError(
                "must be a model, not its class.", parameter="estimator", found=name, remedy=f"Pass {name}()."
            )
        why = {
            "RankOneNMF": ", which has one component",
            "UncoupledNMF": ", whose values have no cells that could be held out",
        }.get(name, "")
        remedy = "Use WeightedNMF()" if isinstance(estimator, RankOneNMF) else "Pass such a model"
        raise ParameterError(
            "must be a model of halfseen with n_components, such as OrdNMF().",
            parameter="estimator",
            found=f"a {name}{why}",
            remedy=f"{remedy}.",
        )
    if not isinstance(estimator.init, str):
        raise ParameterError(
            "must be the name of a start in a search, since the ranks differ.",
            parameter="init",
            found="a pair of arrays",
            remedy="Leave it out.",
        )
    return estimator


def check_ranks(ranks: Any) -> list[int]:
    """The ranks in ascending order."""
    is_iterable = hasattr(ranks, "__iter__") and not isinstance(ranks, str)
    listed = list(ranks) if is_iterable else []
    bad = [rank for rank in listed if validation.whole(1)(rank) is not None]
    ascending = [] if bad else sorted(int(rank) for rank in listed)
    repeated = np.flatnonzero(np.diff(ascending) == 0)
    if listed and not bad and not repeated.size:
        return ascending
    if not listed:
        found, remedy = "none" if is_iterable else repr(ranks), "List them, such as [5, 10, 20]."
    elif bad:
        found, remedy = repr(bad[0]), "Replace it."
    else:
        found, remedy = f"{ascending[repeated[0]]} twice", "Leave one out."
    raise ParameterError(
        "must be different whole numbers of at least 1, one or more of them.",
        parameter="ranks",
        found=found,
        remedy=remedy,
        remedy_cli=remedy if listed else "List them: -k auto:5,10,20.",
    )


def check_grid(parameters: Any, estimator: Any, metric: Any) -> list[dict[str, Any]]:
    """All combinations of the further parameters; one empty dict if there are none."""
    if parameters is None:
        return [{}]
    if not isinstance(parameters, Mapping) or not all(
        isinstance(values, list | tuple | np.ndarray) and len(values) > 0 for values in parameters.values()
    ):
        raise ParameterError(
            "must be None or a dict from names to lists of values, none of them empty.",
            parameter="parameters",
            found=repr(parameters),
            remedy='Write {"l2": [0.1, 1.0]}.',
        )
    for name, instead in NOT_VARIED.items():
        if name in parameters:
            raise ParameterError(
                "must be ones that a search can vary.", parameter="parameters", found=repr(name), remedy=instead
            )
    if metric == "divergence" and "loss" in parameters:
        raise ParameterError(
            "Models must be compared by one measure.",
            parameter="metric",
            found="several losses and the metric 'divergence', each one's own",
            remedy='Set `metric="rmse"` or "mae", or search once for each loss.',
        )
    validation.check_names(parameters, estimator.get_params(deep=False), type(estimator).__name__)
    return list(ParameterGrid(dict(parameters)))


def distances_to_best(scores: Array) -> tuple[Array, Array]:
    """Mean distance of each rank (first axis) to the best, and its standard error, std over folds / sqrt(folds).

    Differences are taken within folds: folds differ in difficulty, and all ranks alike are affected.
    """
    distances = scores[np.argmax(scores.mean(axis=1))] - scores
    return distances.mean(axis=1), distances.std(axis=1, ddof=1) / np.sqrt(scores.shape[1])


def choose_rank(scores: Array, rule: str) -> int:
    """The position of the rank with the best mean score, or of the first within one standard error of it."""
    if rule == "best":
        return int(np.argmax(scores.mean(axis=1)))
    distance, error = distances_to_best(scores)
    return int(np.argmax(distance <= error))


class Results(dict[str, Any]):
    """Arrays by name with an entry for each rank, shown as a table with a star at the chosen rank."""

    def __init__(self, place: int, **columns: Any) -> None:
        super().__init__(**columns)
        self.place = place

    def __repr__(self) -> str:
        lines = [f"{'n_components':>12}  {'mean score':>12}  {_ERROR}  {'seconds':>8}"]
        columns = (self[name] for name in ("n_components", "mean", "standard_error", "seconds"))
        for place, (rank, mean, error, seconds) in enumerate(zip(*columns, strict=True)):
            line = f"{rank:>12}  {mean:>12.5g}  {error:>{len(_ERROR)}.2g}  {seconds:>8.2f}"
            further = self["parameters"][place] if "parameters" in self else {}
            line += "".join(f"  {name}={value}" for name, value in further.items())
            lines.append(f"{line}  *" if place == self.place else line)
        return "\n".join(lines)


def _delegate(name: str) -> Any:
    """A method that calls the same method of `best_estimator_`; there if the estimator has it."""

    def is_available(search: Any) -> bool:
        if not search.refit:
            raise AttributeError(
                f"{name} needs the model fitted on all cells, so refit must be True. Found {search.refit!r}. "
                "Fit the estimator with best_params_, or set refit=True."
            )
        return hasattr(search.estimator, name)

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        check_is_fitted(self)
        return getattr(self.best_estimator_, name)(*args, **kwargs)

    method.__name__ = name
    method.__doc__ = f"`best_estimator_.{name}`, with the same arguments."
    return available_if(is_available)(method)


class RankSearch(MetaEstimatorMixin, BaseEstimator):
    """Choose n_components by cross-validation over cells.

    The seen cells are split into folds. For each fold the estimator is fitted on the others, by ascending rank, each
    fit from the factors of the previous one where that saves time, and scored on the held-out cells. The smallest rank
    whose mean score is within one standard error of the best is chosen, and the estimator fitted with it on all cells.
    Data may be anything that the estimator's `fit` takes, also sparse matrices and long tables.

    Parameters
    ----------
    estimator : estimator
        Model with n_components, such as OrdNMF() or WeightedNMF(loss="frobenius").
    ranks : array-like of int or None, default=None
        Numbers of components to try; None: 1, 2, 3, 5, 8, 12, 20, 30, 50, as far as X has rows and columns.
    metric : str, callable or None, default=None
        Score on held-out cells. Ranking: "ndcg@K", "precision@K", "recall@K", "map@K", with any K; values: "rmse",
        "mae"; "log-likelihood", its mean over cells (where unseen cells are zeros: given that there is something);
        "divergence", the mean of the model's own loss; or a function of (model, train, test), larger is better. None:
        "ndcg@100" where unseen cells are zeros, because the held-out ones were zeros in training; else
        "log-likelihood", or "divergence" for models that have none.
    relevant : float, default=1
        For ranking: from which value on a held-out cell is relevant.
    parameters : dict or None, default=None
        Further parameters to try with each rank, such as {"l2": [0.1, 1, 10]}. Each rank is scored with its best
        values.
    rule : {"one-standard-error", "best"}, default="one-standard-error"
        Which rank to choose: the smallest within one standard error of the best, or the one with the highest mean
        score. The standard error is that of the distance to the best, fold by fold.
    n_folds : int, default=5
        Number of folds.
    warm : bool, default=True
        Whether fits start from the factors of the previous rank: WeightedNMF and the models with gamma posteriors do;
        others always start from scratch, because they gain nothing.
    refit : bool, default=True
        Whether to fit the estimator on all cells with the chosen parameters.
    random_state : int, RandomState or None, default=None
        Seed of the folds and of the fits in them; the last fit has the estimator's own.
    n_jobs : int or None, default=None
        Number of folds at a time, each fit then on one thread; None uses all processors. With 1, fits have the
        estimator's own n_jobs. On a GPU, one fit follows the other. The numbers are the same.
    verbose : int, default=0
        1 shows a progress bar on a terminal.

    Attributes
    ----------
    best_n_components_ : int
        Chosen number of components.
    best_params_ : dict
        It and the further parameters, for the estimator's `set_params`.
    best_score_ : float
        Mean score of the chosen rank.
    best_estimator_ : estimator
        Model fitted on all cells; `predict`, `recommend`, `transform` and so on are its own.
    results_ : dict of ndarray
        An entry for each rank, ascending: "n_components", "mean", "standard_error" (of the distance to the best mean),
        "scores" (ranks by folds), "seconds" (of all fits at this rank), with further parameters also "parameters" (the
        best at each rank); prints as a table.
    grid_ : dict or None
        With further parameters: "parameters", the list of all combinations, and "scores", an array of combinations by
        ranks by folds.
    metric_ : str or callable
        Metric used.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of columns, if X is a wide table whose columns are all named by text.

    Examples
    --------
    >>> import halfseen as hs
    >>> table, W, H = hs.data.planted(60, 40, 2, seen=0.6, noise="gaussian", random_state=0)  # of two components
    >>> model = hs.WeightedNMF(loss="frobenius", max_iter=2000)
    >>> search = hs.RankSearch(model, ranks=[1, 2, 3], random_state=0).fit(table)
    >>> search.best_n_components_
    2
    """

    parameter_rules: ClassVar[Mapping[str, validation.Rule]] = {
        "rule": validation.one_of(*RULES), "n_folds": validation.whole(2), "warm": validation.flag(),
        "refit": validation.flag(), "random_state": validation.seed(), "n_jobs": validation.threads(),
    }  # fmt: skip

    def __init__(
        self, estimator: Any, ranks: Any = None, *, metric: Any = None, relevant: float = 1,
        parameters: Mapping[str, Any] | None = None, rule: str = "one-standard-error", n_folds: int = 5,
        warm: bool = True, refit: bool = True, random_state: Seed = None, n_jobs: int | None = None, verbose: int = 0,
    ) -> None:  # fmt: skip
        self.estimator = estimator
        self.ranks = ranks
        self.metric = metric
        self.relevant = relevant
        self.parameters = parameters
        self.rule = rule
        self.n_folds = n_folds
        self.warm = warm
        self.refit = refit
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name, those of the estimator as estimator__name; unknown ones get a hint.

        Parameters
        ----------
        **params : dict
            Parameters of the search or of its estimator.
        """
        own = [name for name in params if "__" not in name]
        validation.check_names(own, self.get_params(deep=False), type(self).__name__)
        super().set_params(**params)
        return self

    @insert_parameters
    def fit(self, X: Data, y: object = None, *, cell_weight: CellWeight = None) -> Self:
        """Find the number of components, and fit the estimator with it.

        Parameters
        ----------
        {X}
        {y}
        {cell_weight}

        Returns
        -------
        self
        """
        # validate
        validation.check_parameters(self.get_params(deep=False), self.parameter_rules)
        estimator = clone(check_estimator(self.estimator)).set_params(verbose=0)
        metric = default_metric(estimator) if self.metric is None else self.metric
        grid = check_grid(self.parameters, estimator, metric)
        scorer = get_scorer(metric, self.relevant, estimator)
        ranks = [] if self.ranks is None else check_ranks(self.ranks)
        observed = observe_for_fit(X, estimator.unseen, cell_weight, estimator.levels_to_read)
        ranks = ranks or [rank for rank in DEFAULT_RANKS if rank <= max(1, min(observed.shape))]
        # score every combination, fold and rank
        models = [clone(estimator).set_params(**further) for further in grid]
        folds = list(make_folds(observed, self.n_folds, estimator, check_random_state(self.random_state)))
        every, seconds, not_converged = score_paths(self, models, ranks, folds, scorer)
        if not_converged.any():
            first = ranks[int(np.argmax(not_converged.any(axis=(0, 1))))]
            count = f"{not_converged.sum()} of {not_converged.size}"
            warning = ConvergenceWarning(
                "Fits should settle, else their scores say little about the rank.",
                found=f"{count} that stopped at the last iteration, or while the loss still fell by more than "
                f"{NOT_CONVERGED_TOL:.0%} per iteration, the first with {first} component{'' if first == 1 else 's'}",
                remedy="Raise `max_iter`, lower `tol`, or set `accelerate=True`.",
                remedy_cli="Raise `max_iter`, or lower `tol`.",
            )
            warnings.warn(warning, stacklevel=2)
        # choose: the best further parameters at each rank, then the rank
        every = every.swapaxes(1, 2)
        best = every.mean(axis=2).argmax(axis=0)
        scores = every[best, np.arange(len(ranks))]
        place = choose_rank(scores, self.rule)
        params = {"n_components": ranks[place], **grid[best[place]]}
        further = {"parameters": [grid[one] for one in best]} if self.parameters else {}
        results = Results(
            place, n_components=np.array(ranks), mean=scores.mean(axis=1), standard_error=distances_to_best(scores)[1],
            scores=scores, seconds=seconds.sum(axis=(0, 1)), **further,
        )  # fmt: skip
        fitted = {
            "best_n_components_": ranks[place],
            "best_params_": params,
            "best_score_": float(scores[place].mean()),
            "results_": results,
            "grid_": {"parameters": grid, "scores": every} if self.parameters else None,
            "metric_": metric,
        }
        fitted |= feature_attributes(X, observed.shape[1])
        if self.refit:
            fitted["best_estimator_"] = clone(self.estimator).set_params(**params).fit(X, cell_weight=cell_weight)
        # all attributes at once: after Ctrl-C or an error, those of the last fit are whole
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)
        for name, value in fitted.items():
            setattr(self, name, value)
        return self

    predict = _delegate("predict")
    """`best_estimator_.predict`, with the same arguments, for models that have it."""
    predict_level = _delegate("predict_level")
    """`best_estimator_.predict_level`, with the same arguments, for models that have it."""
    predict_proba = _delegate("predict_proba")
    """`best_estimator_.predict_proba`, with the same arguments, for models that have it."""
    predict_interval = _delegate("predict_interval")
    """`best_estimator_.predict_interval`, with the same arguments, for models that have it."""
    recommend = _delegate("recommend")
    """`best_estimator_.recommend`, with the same arguments, for models that have it."""
    transform = _delegate("transform")
    """`best_estimator_.transform`, with the same arguments, for models that have it."""
    inverse_transform = _delegate("inverse_transform")
    """`best_estimator_.inverse_transform`, with the same arguments, for models that have it."""
    complete = _delegate("complete")
    """`best_estimator_.complete`, with the same arguments, for models that have it."""
    score = _delegate("score")
    """`best_estimator_.score`, with the same arguments, for models that have it."""
    log_likelihood = _delegate("log_likelihood")
    """`best_estimator_.log_likelihood`, with the same arguments, for models that have it."""
    sample = _delegate("sample")
    """`best_estimator_.sample`, with the same arguments, for models that have it."""
    save = _delegate("save")
    """`best_estimator_.save`, with the same arguments, for models that have it."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.estimator).input_tags
        return tags
