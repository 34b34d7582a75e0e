"""The number of components by cells that were held out."""

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.utils import check_random_state, get_tags

from halfseen import checks
from halfseen.estimators.features import observe_for_fit
from halfseen.selection.asking import checked_estimator, checked_grid, checked_ranks, usual_ranks
from halfseen.selection.choosing import RULES, Results, chosen, standard_errors
from halfseen.selection.delegating import delegated
from halfseen.selection.judging import default_metric, judge_of
from halfseen.selection.running import all_walks, tell_of_unsettled
from halfseen.selection.walking import Walk, folds_of


class RankSearch(MetaEstimatorMixin, BaseEstimator):
    """Choose n_components by the cells of folds: fit without them, see how well they are foretold.

    The seen cells are parted into folds. For each fold the estimator is fitted on all others, rank after rank, each fit
    from the factors of the one before where that saves time; held-out cells are the judges. The smallest rank is taken
    whose mean score is no more than one standard error below the best, and the estimator fitted anew with it on all
    cells. Data may be anything that the estimator's `fit` takes, also sparse matrices and long tables.

    Parameters
    ----------
    estimator : a model with n_components, such as OrdNMF() or WeightedNMF(loss="frobenius").
    ranks : the numbers of components to try; None: 1, 2, 3, 5, 8, 12, 20, 30, 50, as far as X has rows and columns.
    metric : what held-out cells say of a model. Ranking: "ndcg@K", "precision@K", "recall@K", "map@K", with any K;
        values: "rmse", "mae"; "log-likelihood", its mean over cells (where unseen cells are zeros: given that there is
        something); "divergence", the mean of the model's own loss; or a function of (model, train, test), larger is
        better. None: "ndcg@100" where unseen cells are zeros, because the held-out ones were zeros in training; else
        "log-likelihood", or "divergence" for models that have none.
    relevant : for ranking: from which value on a held-out cell is relevant.
    parameters : further parameters to try with each rank, a dict such as {"l2": [0.1, 1, 10]}. Each rank is then
        judged by its best values.
    rule : "one-standard-error", or "best" for the highest mean score. The standard error is that of the distance to the
        best, fold by fold.
    n_folds : into how many folds the cells are parted.
    warm : whether fits start from the factors of the rank before: WeightedNMF and the models with gamma posteriors do;
        others start from scratch all the same, because they gain nothing.
    refit : whether the estimator is fitted on all cells with what was chosen.
    random_state : seed of the folds and of the fits in them; the last fit has the estimator's own.
    n_jobs : how many folds at a time, each fit then on one thread; None takes all processors. With 1, fits have the
        estimator's own n_jobs. The numbers are the same.
    verbose : 1 shows a progress bar on a terminal.

    Attributes
    ----------
    best_n_components_ : the number chosen.
    best_params_ : it and the further parameters, for the estimator's `set_params`; best_score_ : its mean score.
    best_estimator_ : the model fitted on all cells; `predict`, `recommend`, `transform` and so on are its own.
    results_ : a dict of arrays with an entry for each rank, ascending: "n_components", "mean", "standard_error" (of the
        distance to the best mean), "scores" (ranks by folds), "seconds" (of all fits at this rank); prints as a table.
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
        "rule": checks.one_of(*RULES),
        "n_folds": checks.whole(2),
        "warm": checks.flag(),
        "refit": checks.flag(),
        "random_state": checks.seed(),
        "n_jobs": checks.threads(),
    }

    def __init__(
        self,
        estimator: Any,
        ranks: Any = None,
        *,
        metric: Any = None,
        relevant: float = 1,
        parameters: Mapping[str, Any] | None = None,
        rule: str = "one-standard-error",
        n_folds: int = 5,
        warm: bool = True,
        refit: bool = True,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
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
        checks.check_parameters(self.get_params(deep=False), self.parameter_rules)
        estimator = clone(checked_estimator(self.estimator)).set_params(verbose=0)
        metric = default_metric(estimator) if self.metric is None else self.metric
        grid = checked_grid(self.parameters, estimator, metric)
        judge = judge_of(metric, self.relevant, estimator)
        ranks = None if self.ranks is None else checked_ranks(self.ranks)
        observed = observe_for_fit(estimator, X, cell_weight)
        ranks = usual_ranks(observed.shape) if ranks is None else ranks
        models = [clone(estimator).set_params(**further) for further in grid]
        folds = list(folds_of(observed, self.n_folds, estimator, check_random_state(self.random_state)))
        walks = all_walks(self, models, ranks, folds, judge)
        tell_of_unsettled(walks, ranks, stacklevel=3)
        found = self._found(walks, ranks, grid) | {"metric_": metric}
        columns = ("n_features_in_", "feature_names_in_")
        found |= {name: getattr(estimator, name) for name in columns if hasattr(estimator, name)}
        if self.refit:
            best = clone(self.estimator).set_params(**found["best_params_"])
            found["best_estimator_"] = best.fit(X, cell_weight=cell_weight)
        self._keep(found)
        return self

    def _keep(self, found: dict[str, Any]) -> None:
        """Set the fitted attributes, all at once: after Ctrl-C or an error, nothing is half done."""
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)
        for name, value in found.items():
            setattr(self, name, value)

    def _found(self, walks: list[list[Walk]], ranks: list[int], grid: list[dict[str, Any]]) -> dict[str, Any]:
        """The fitted attributes that the walks tell of."""
        every = np.array([[one.scores for one in of_model] for of_model in walks]).swapaxes(1, 2)
        seconds = sum(one.seconds for of_model in walks for one in of_model)
        best = every.mean(axis=2).argmax(axis=0)  # the best further parameters at each rank
        scores = every[best, np.arange(len(ranks))]
        place = chosen(scores, self.rule)
        further = {"parameters": [grid[one] for one in best]} if self.parameters else {}
        results = Results(
            place, n_components=np.array(ranks), mean=scores.mean(axis=1), standard_error=standard_errors(scores),
            scores=scores, seconds=seconds, **further,
        )  # fmt: skip
        return {
            "best_n_components_": ranks[place],
            "best_params_": {"n_components": ranks[place], **grid[best[place]]},
            "best_score_": float(scores[place].mean()),
            "results_": results,
            "grid_": {"parameters": grid, "scores": every} if self.parameters else None,
        }

    predict = delegated("predict")
    """`best_estimator_.predict`, with the same arguments, for models that have it."""
    predict_level = delegated("predict_level")
    """`best_estimator_.predict_level`, with the same arguments, for models that have it."""
    predict_proba = delegated("predict_proba")
    """`best_estimator_.predict_proba`, with the same arguments, for models that have it."""
    predict_interval = delegated("predict_interval")
    """`best_estimator_.predict_interval`, with the same arguments, for models that have it."""
    recommend = delegated("recommend")
    """`best_estimator_.recommend`, with the same arguments, for models that have it."""
    transform = delegated("transform")
    """`best_estimator_.transform`, with the same arguments, for models that have it."""
    inverse_transform = delegated("inverse_transform")
    """`best_estimator_.inverse_transform`, with the same arguments, for models that have it."""
    complete = delegated("complete")
    """`best_estimator_.complete`, with the same arguments, for models that have it."""
    score = delegated("score")
    """`best_estimator_.score`, with the same arguments, for models that have it."""
    log_likelihood = delegated("log_likelihood")
    """`best_estimator_.log_likelihood`, with the same arguments, for models that have it."""
    sample = delegated("sample")
    """`best_estimator_.sample`, with the same arguments, for models that have it."""
    save = delegated("save")
    """`best_estimator_.save`, with the same arguments, for models that have it."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.estimator).input_tags
        return tags
