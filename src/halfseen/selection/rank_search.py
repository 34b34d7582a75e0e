"""Choice of the number of components by held-out cells."""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from sklearn.model_selection import ParameterGrid

from halfseen import validation
from halfseen.arrays import Array
from halfseen.errors import ParameterError
from halfseen.estimators import RankOneNMF
from halfseen.estimators.inputs import Seed
from halfseen.io.tables import FilePath
from halfseen.observed import Observed
from halfseen.selection.scoring import Evaluator
from halfseen.selection.search import NOT_VARIED, Results, Search, check_varied, distances_to_best

#: Ranks tried by default, as far as the data have rows and columns.
DEFAULT_RANKS = (1, 2, 3, 5, 8, 12, 20, 30, 50)
RULES = ("one-standard-error", "best")


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


def check_grid(parameters: Any) -> list[dict[str, Any]]:
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
    return list(ParameterGrid(dict(parameters)))


def choose_rank(scores: Array, rule: str) -> int:
    """The position of the rank with the best mean score, or of the first within one standard error of it."""
    if rule == "best":
        return int(np.argmax(scores.mean(axis=1)))
    distance, error = distances_to_best(scores)
    return int(np.argmax(distance <= error))


class RankSearch(Search):
    """Choose n_components by cross-validation over cells.

    The seen cells are split into folds. For each fold the estimator is fitted on the others, by ascending rank, each
    fit from the factors of the previous one where that saves time, and scored on the held-out cells. The smallest rank
    whose mean score is within one standard error of the best is chosen, and the estimator fitted with it on all cells.
    Data may be anything that the estimator's `fit` takes, also sparse matrices and long tables. `Search` is for any
    parameters, and tries less of those that do badly.

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
    journal : path-like or None, default=None
        File to which each finished evaluation is appended. A later search with the same data and settings goes on from
        it. Needs a whole number as `random_state`.
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
        warm: bool = True, refit: bool = True, journal: FilePath | None = None, random_state: Seed = None,
        n_jobs: int | None = None, verbose: int = 0,
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
        self.journal = journal
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    #: All candidates are fitted on all folds.
    factor, resource = None, "folds"

    def _check(self, estimator: Any, metric: Any) -> None:
        if "n_components" not in estimator.get_params(deep=False):
            is_rank_one = isinstance(estimator, RankOneNMF)
            raise ParameterError(
                "must be a model of halfseen with n_components, such as OrdNMF().",
                parameter="estimator",
                found=f"a {type(estimator).__name__}{', which has one component' if is_rank_one else ''}",
                remedy="Use WeightedNMF()." if is_rank_one else "Use `Search` for other parameters.",
            )
        check_grid(self.parameters)
        check_varied(
            self.parameters or {}, estimator, metric, NOT_VARIED | {"n_components": "Move its values to ranks."}
        )
        if self.ranks is not None:
            check_ranks(self.ranks)

    def _candidates(self, estimator: Any, observed: Observed, seed: int) -> list[dict[str, Any]]:
        ranks = [rank for rank in DEFAULT_RANKS if rank <= max(1, min(observed.shape))]
        ranks = ranks if self.ranks is None else check_ranks(self.ranks)
        return [{**further, "n_components": rank} for further in check_grid(self.parameters) for rank in ranks]

    def _choose(self, candidates: list[dict[str, Any]], evaluator: Evaluator) -> dict[str, Any]:
        """The best further parameters at each rank, then the rank."""
        grid = check_grid(self.parameters)
        ranks = [one["n_components"] for one in candidates[: len(candidates) // len(grid)]]
        every = evaluator.scores.reshape(len(grid), len(ranks), -1)
        best = every.mean(axis=2).argmax(axis=0)
        scores = every[best, np.arange(len(ranks))]
        place = choose_rank(scores, self.rule)
        further = {"parameters": [grid[one] for one in best]} if self.parameters else {}
        results = Results(
            place, n_components=np.array(ranks), mean=scores.mean(axis=1), standard_error=distances_to_best(scores)[1],
            scores=scores, seconds=evaluator.seconds.reshape(every.shape).sum(axis=(0, 2)), **further,
        )  # fmt: skip
        return {
            "best_n_components_": ranks[place],
            "best_params_": {"n_components": ranks[place], **grid[best[place]]},
            "best_score_": float(scores[place].mean()),
            "results_": results,
            "grid_": {"parameters": grid, "scores": every} if self.parameters else None,
        }
