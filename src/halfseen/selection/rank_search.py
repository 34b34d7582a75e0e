"""Choice of the number of components by held-out cells."""

import warnings
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import ParameterGrid
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from halfseen import checks
from halfseen.arrays import Array
from halfseen.errors import ParameterError
from halfseen.estimators import RankOneNMF
from halfseen.estimators.base import Factorization
from halfseen.estimators.inputs import feature_attributes, observe_for_fit
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
            raise ParameterError(f"estimator must be a model, not its class. Found {name}. Pass {name}().")
        why = {
            "RankOneNMF": ", which has one component",
            "UncoupledNMF": ", whose values have no cells that could be held out",
        }.get(name, "")
        remedy = "Use WeightedNMF()" if isinstance(estimator, RankOneNMF) else "Pass such a model"
        raise ParameterError(
            f"estimator must be a model of halfseen with n_components, such as OrdNMF(). Found a {name}{why}. {remedy}."
        )
    if not isinstance(estimator.init, str):
        raise ParameterError(
            "init must be the name of a start in a search, since the ranks differ. Found a pair of arrays. "
            "Leave it out."
        )
    return estimator


def check_ranks(ranks: Any) -> list[int]:
    """The ranks in ascending order."""
    must = "ranks must be different whole numbers of at least 1, one or more of them."
    is_iterable = hasattr(ranks, "__iter__") and not isinstance(ranks, str)
    listed = list(ranks) if is_iterable else []
    if not listed:
        found = "none" if is_iterable else repr(ranks)
        raise ParameterError(f"{must} Found {found}. List them, such as [5, 10, 20].")
    for rank in listed:
        if checks.whole(1)(rank) is not None:
            raise ParameterError(f"{must} Found {rank!r}. Replace it.")
    ascending = sorted(int(rank) for rank in listed)
    repeated = np.flatnonzero(np.diff(ascending) == 0)
    if repeated.size:
        raise ParameterError(f"{must} Found {ascending[repeated[0]]} twice. Leave one out.")
    return ascending


def check_grid(parameters: Any, estimator: Any, metric: Any) -> list[dict[str, Any]]:
    """All combinations of the further parameters; one empty dict if there are none."""
    if parameters is None:
        return [{}]
    if not isinstance(parameters, Mapping) or not all(
        isinstance(values, list | tuple | np.ndarray) and len(values) > 0 for values in parameters.values()
    ):
        raise ParameterError(
            "parameters must be None or a dict from names to lists of values, none of them empty. "
            f'Found {parameters!r}. Write {{"l2": [0.1, 1.0]}}.'
        )
    for name, instead in NOT_VARIED.items():
        if name in parameters:
            raise ParameterError(f"parameters must be ones that a search can vary. Found {name!r}. {instead}")
    if metric == "divergence" and "loss" in parameters:
        raise ParameterError(
            "Models must be judged by one measure. Found several losses and the metric 'divergence', each one's own. "
            'Set metric="rmse" or "mae", or search once for each loss.'
        )
    checks.check_names(parameters, estimator.get_params(deep=False), type(estimator).__name__)
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
                "Fit the estimator with best_params_ yourself, or set refit=True."
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
    estimator : a model with n_components, such as OrdNMF() or WeightedNMF(loss="frobenius").
    ranks : the numbers of components to try; None: 1, 2, 3, 5, 8, 12, 20, 30, 50, as far as X has rows and columns.
    metric : the score on held-out cells. Ranking: "ndcg@K", "precision@K", "recall@K", "map@K", with any K; values:
        "rmse", "mae"; "log-likelihood", its mean over cells (where unseen cells are zeros: given that there is
        something); "divergence", the mean of the model's own loss; or a function of (model, train, test), larger is
        better. None: "ndcg@100" where unseen cells are zeros, because the held-out ones were zeros in training; else
        "log-likelihood", or "divergence" for models that have none.
    relevant : for ranking: from which value on a held-out cell is relevant.
    parameters : further parameters to try with each rank, a dict such as {"l2": [0.1, 1, 10]}. Each rank is scored with
        its best values.
    rule : "one-standard-error", or "best" for the highest mean score. The standard error is that of the distance to the
        best, fold by fold.
    n_folds : the number of folds.
    warm : whether fits start from the factors of the previous rank: WeightedNMF and the models with gamma posteriors
        do; others always start from scratch, because they gain nothing.
    refit : whether to fit the estimator on all cells with the chosen parameters.
    random_state : seed of the folds and of the fits in them; the last fit has the estimator's own.
    n_jobs : how many folds at a time, each fit then on one thread; None takes all processors. With 1, fits have the
        estimator's own n_jobs. The numbers are the same.
    verbose : 1 shows a progress bar on a terminal.

    Attributes
    ----------
    best_n_components_ : the chosen number.
    best_params_ : it and the further parameters, for the estimator's `set_params`; best_score_ : its mean score.
    best_estimator_ : the model fitted on all cells; `predict`, `recommend`, `transform` and so on are its own.
    results_ : a dict of arrays with an entry for each rank, ascending: "n_components", "mean", "standard_error" (of the
        distance to the best mean), "scores" (ranks by folds), "seconds" (of all fits at this rank), with further
        parameters also "parameters" (the best at each rank); prints as a table.
    grid_ : with further parameters: a dict of "parameters", the list of all combinations, and "scores", an array of
        combinations by ranks by folds; else None.
    metric_ : the metric used.
    n_features_in_, feature_names_in_ : as in scikit-learn.

    Examples
    --------
    >>> import halfseen as hs
    >>> table, W, H = hs.data.planted(60, 40, 2, seen=0.6, noise="gaussian", random_state=0)  # of two components
    >>> model = hs.WeightedNMF(loss="frobenius", max_iter=2000)
    >>> search = hs.RankSearch(model, ranks=[1, 2, 3], random_state=0).fit(table)
    >>> search.best_n_components_
    2
    """

    parameter_rules: ClassVar[Mapping[str, checks.Rule]] = {
        "rule": checks.one_of(*RULES), "n_folds": checks.whole(2), "warm": checks.flag(), "refit": checks.flag(),
        "random_state": checks.seed(), "n_jobs": checks.threads(),
    }  # fmt: skip

    def __init__(
        self, estimator: Any, ranks: Any = None, *, metric: Any = None, relevant: float = 1,
        parameters: Mapping[str, Any] | None = None, rule: str = "one-standard-error", n_folds: int = 5,
        warm: bool = True, refit: bool = True, random_state: Any = None, n_jobs: int | None = None, verbose: int = 0,
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
        """Set parameters by name, `params`, those of the estimator as estimator__name; unknown ones get a hint."""
        own = [name for name in params if "__" not in name]
        checks.check_names(own, self.get_params(deep=False), type(self).__name__)
        super().set_params(**params)
        return self

    def fit(self, X: Any, y: Any = None, *, cell_weight: Any = None) -> Self:
        """Find the number of components, and fit the estimator with it.

        Parameters
        ----------
        X : whatever the estimator's `fit` takes.
        y : ignored, for scikit-learn's pipelines.
        cell_weight : how much each seen cell counts, as in the estimator's `fit`.
        """
        # validate
        checks.check_parameters(self.get_params(deep=False), self.parameter_rules)
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
            warnings.warn(
                "Fits should settle, else their scores say little of the rank. Found "
                f"{not_converged.sum()} of {not_converged.size} that stopped at max_iter, or by tol while the loss "
                f"still fell by more than {NOT_CONVERGED_TOL:.0%} in an iteration, the first with "
                f"n_components={first}. Raise max_iter, lower tol, or set accelerate=True.",
                ConvergenceWarning,
                stacklevel=2,
            )
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
