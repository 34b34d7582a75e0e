"""Choice of parameters by held-out cells: any of them together, with successive halving."""

import inspect
import math
import warnings
from collections.abc import Mapping
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.model_selection import ParameterGrid
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from halfseen import __version__, validation
from halfseen.arrays import Array
from halfseen.docstrings import insert_parameters
from halfseen.errors import ParameterError
from halfseen.estimators.inputs import Data, Seed, feature_attributes, keep, observe_for_fit
from halfseen.fitting import ConvergenceWarning
from halfseen.io.journal import Journal
from halfseen.io.tables import CellWeight, FilePath
from halfseen.observed import Observed
from halfseen.selection.scoring import (
    NOT_CONVERGED_TOL,
    Evaluator,
    Fold,
    Rung,
    default_metric,
    get_scorer,
    make_folds,
)

#: Candidates drawn where a parameter has a range, unless n_candidates says how many.
DEFAULT_CANDIDATES = 20
#: The largest number of combinations of lists that are tried without being asked for.
MOST_COMBINATIONS = 10_000
#: Parameters that can't be varied, and what to do instead.
NOT_VARIED = {
    "random_state": "Set that of the search: each fold has its own.",
    "unseen": "Search once for each: scores of different data can't be compared.",
    "n_jobs": "Leave it out: results don't depend on it.",
    "verbose": "Leave it out: results don't depend on it.",
}
#: Ranges of n_components by default: of models that rank (unseen cells are zeros), and of others.
RANKS = {"zero": (10, 200), "missing": (1, 50)}
#: An l2 of 0.1 to 10 times the estimator's own; of 1/4 to 4 times one that the estimator finds from the data.
L2_FACTORS = {"given": 10.0, "found": 4.0}
PRIOR_SHAPES = (0.1, 1.0)
_ERROR = "std. error of distance to best"


def check_estimator(estimator: Any) -> Any:
    """The estimator, if its fits can be judged by cells held out."""
    kind = estimator if isinstance(estimator, type) else type(estimator)
    is_model = hasattr(kind, "fit") and hasattr(kind, "get_params") and hasattr(kind, "recommend")
    if isinstance(estimator, type) and is_model:
        raise ParameterError(
            "must be a model, not its class.",
            parameter="estimator",
            found=kind.__name__,
            remedy=f"Pass {kind.__name__}().",
        )
    if not is_model or kind.__name__ == "UncoupledNMF":
        whose = ", whose values have no cells that could be held out" if kind.__name__ == "UncoupledNMF" else ""
        raise ParameterError(
            "must be a model of halfseen that recommends or predicts cells, such as SquaredOrdNMF().",
            parameter="estimator",
            found=f"a {kind.__name__}{whose}",
            remedy="Pass such a model.",
        )
    if not isinstance(getattr(estimator, "init", "random"), str):
        raise ParameterError(
            "must be the name of a start in a search, since the ranks differ.",
            parameter="init",
            found="a pair of arrays",
            remedy="Leave it out.",
        )
    return estimator


def check_varied(
    parameters: Mapping[str, Any], estimator: Any, metric: Any, not_varied: Mapping[str, str] = NOT_VARIED
) -> None:
    """Refuse parameters that the estimator does not have, or that make scores of different things."""
    for name, instead in not_varied.items():
        if name in parameters:
            raise ParameterError(
                "must be ones that a search can vary.", parameter="parameters", found=repr(name), remedy=instead
            )
    if metric == "divergence" and len(parameters.get("loss", ())) > 1:
        raise ParameterError(
            "Models must be compared by one measure.",
            parameter="metric",
            found="several losses and the metric 'divergence', each one's own",
            remedy='Set `metric="rmse"` or "mae", or search once for each loss.',
        )
    validation.check_names(parameters, estimator.get_params(deep=True), type(estimator).__name__)


def default_parameters(estimator: Any, observed: Observed) -> dict[str, Any]:
    """Ranges of the parameters that matter most, of those that the estimator has at their defaults.

    Parameters
    ----------
    estimator : estimator
        Parameters that it has otherwise than by default are left as they are.
    observed : Observed
        Training data.

    Returns
    -------
    dict
        From names to distributions or lists: n_components, l2 and prior_shape on a logarithmic scale, and loss, as the
        estimator has them.
    """
    defaults, given = inspect.signature(type(estimator).__init__).parameters, estimator.get_params(deep=False)
    names = [name for name in ("n_components", "l2", "prior_shape", "loss", "l1") if name in given and name in defaults]
    own = {name: given[name] for name in names if given[name] == defaults[name].default}
    ranges: dict[str, Any] = {}
    if "n_components" in own:
        low, high = RANKS[getattr(estimator, "unseen", "zero")]
        high = max(2, min(high, *observed.shape))
        ranges["n_components"] = log_range(min(low, max(1, high // 4)), high)
    if "l2" in own and getattr(estimator, "inference", "map") != "gibbs":
        l2, factor = own["l2"], L2_FACTORS["given"]
        if not isinstance(l2, float | int):  # the estimator finds it from the data
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                brief = {"max_iter": 1} if "max_iter" in own else {}
                l2 = getattr(clone(estimator).set_params(**brief).fit(observed), "l2_", None)
            factor = L2_FACTORS["found"]
        if l2:
            ranges["l2"] = log_range(float(l2) / factor, float(l2) * factor)
    if "prior_shape" in own:
        ranges["prior_shape"] = log_range(*PRIOR_SHAPES)
    if "loss" in own and "l1" in own:  # WeightedNMF; the losses of RoundMF are of different kinds of data
        ranges["loss"] = ["kullback-leibler", "frobenius"]
    return ranges


def log_range(low: float, high: float) -> Any:
    """A range on a logarithmic scale."""
    from scipy.stats import loguniform

    return loguniform(low, high)


def is_range(values: Any) -> bool:
    """Whether the values of a parameter are a distribution, not a list."""
    return callable(getattr(values, "ppf", None))


def list_candidates(
    parameters: Mapping[str, Any], estimator: Any, n_candidates: int | None, seed: int
) -> list[dict[str, Any]]:
    """All combinations of lists; or so many, of lists and ranges, spread evenly by a sequence of low discrepancy.

        u_t = u_0 + t (1/g, 1/g^2, ..., 1/g^d) modulo 1,    g^(d + 1) = g + 1      (Roberts' generalised golden ratio)

    The value of each parameter is its quantile at u. More candidates begin with the same ones.
    """
    ranges = [name for name, values in parameters.items() if is_range(values)]
    n_combinations = math.prod(len(values) for values in parameters.values() if not is_range(values))
    if not ranges and (n_candidates or MOST_COMBINATIONS) >= n_combinations:
        return list(ParameterGrid(dict(parameters)))
    if n_candidates is None and not ranges:
        raise ParameterError(
            f"must list at most {MOST_COMBINATIONS:,} combinations.",
            parameter="parameters",
            found=f"{n_combinations:,}",
            remedy="Set `n_candidates=50` to try so many of them.",
        )
    wanted, dimensions, ratio = n_candidates or DEFAULT_CANDIDATES, np.arange(1, len(parameters) + 1), 1.0
    for _ in range(64):
        ratio = (1.0 + ratio) ** (1.0 / (len(parameters) + 1))
    start = np.random.RandomState(seed).uniform(size=len(parameters))
    rules = getattr(estimator, "parameter_rules", {})
    found: dict[str, dict[str, Any]] = {}
    for step in range(50 * wanted):  # values repeat where they are whole or listed
        candidate = {}
        for (name, values), u in zip(parameters.items(), (start + step * ratio**-dimensions) % 1.0, strict=True):
            if not is_range(values):
                candidate[name] = values[int(u * len(values))]
                continue
            value = float(values.ppf(u))
            is_whole = name in rules and rules[name](value) is not None and rules[name](round(value)) is None
            candidate[name] = round(value) if is_whole else float(f"{value:.6g}")
        found.setdefault(repr(candidate), candidate)
        if len(found) == wanted:
            break
    return list(found.values())


def halving(n_candidates: int, factor: int | None, most: int, least: int = 1) -> list[tuple[int, int]]:
    """Numbers of candidates and of folds, rows or iterations, rung by rung; the last has `most`, and two at least.

    At each rung one in `factor` goes on, with `factor` times as much.
    """
    if factor is None:
        return [(n_candidates, most)]
    steps = 0
    while n_candidates / factor ** (steps + 1) >= 2:
        steps += 1
    amounts = sorted({max(least, math.ceil(most / factor**step)) for step in range(steps + 1)})
    return [(math.ceil(n_candidates / factor**step), min(amount, most)) for step, amount in enumerate(amounts)]


def distances_to_best(scores: Array, best: int | None = None) -> tuple[Array, Array]:
    """Mean distance of each candidate (first axis) to the best, and its standard error, std over folds / sqrt(folds).

    None: the best has the highest mean. Differences are taken within folds: folds differ in difficulty, and all
    candidates alike are affected. Folds on which a candidate was not fitted, NaN, are left out.
    """
    with warnings.catch_warnings():  # of a single fold
        warnings.simplefilter("ignore", RuntimeWarning)
        best = int(np.nanargmax(np.nanmean(scores, axis=1))) if best is None else best
        distances = scores[best] - scores
        errors = np.nanstd(distances, axis=1, ddof=1) / np.sqrt(np.isfinite(distances).sum(axis=1))
        return np.nanmean(distances, axis=1), errors


class Results(dict[str, Any]):
    """Arrays by name with an entry for each candidate or rank, shown as a table with a star at the chosen one."""

    def __init__(self, place: int, **columns: Any) -> None:
        super().__init__(**columns)
        self.place = place

    def __repr__(self) -> str:
        columns = {"n_components": "n_components", "mean": "mean score", "distance": "distance to best"}
        columns |= {"standard_error": _ERROR, "resource": self.get("resource_name", ""), "seconds": "seconds"}
        kinds = {"n_components": ">12", "mean": ">12.5g", "distance": ">16.2g", "standard_error": f">{len(_ERROR)}.2g"}
        kinds |= {"resource": f">{len(columns['resource'])}", "seconds": ">8.2f"}
        shown = [name for name in columns if name in self]
        lines = ["  ".join(f"{columns[name]:>{kinds[name][1:].partition('.')[0]}}" for name in shown)]
        for place in range(len(self["mean"])):
            line = "  ".join(f"{self[name][place]:{kinds[name]}}" for name in shown)
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


class Search(MetaEstimatorMixin, BaseEstimator):
    """Choose parameters together by cross-validation over cells, with successive halving.

    Candidates are combinations of listed values, or are drawn from ranges by a sequence that spreads them evenly. The
    seen cells are split into folds; a candidate is fitted on all folds but one and scored on the cells of that one. At
    first all candidates are tried on a few folds, then the best third on more, and so on: the candidates that reach the
    last rung have seen all folds, and the one with the best mean score is fitted on all cells. Data may be anything
    that the estimator's `fit` takes.

    Parameters
    ----------
    estimator : estimator
        Any model of halfseen that recommends or predicts cells, such as SquaredOrdNMF().
    parameters : dict or None, default=None
        From names to lists of values, or to distributions of scipy.stats, such as {"n_components": [20, 50, 100],
        "l2": loguniform(10, 1000)}; whole numbers are made of what is drawn where the parameter asks for them. None:
        good ranges of n_components, l2, prior_shape and loss, of those that the estimator has at their defaults.
    n_candidates : int or None, default=None
        Number of candidates. None: all combinations of lists; 20 if a parameter has a range. More candidates begin with
        the same ones.
    metric : str, callable or None, default=None
        Score on held-out cells, as in `RankSearch`: "ndcg@K", "precision@K", "recall@K", "map@K", with any K; "rmse",
        "mae"; "log-likelihood"; "divergence"; or a function of (model, train, test), larger is better. None:
        "ndcg@100" where unseen cells are zeros; else "log-likelihood", or "divergence" for models that have none;
        "rmse", if several losses are tried by default.
    relevant : float, default=1
        For ranking: from which value on a held-out cell is relevant.
    factor : int or None, default=3
        At each rung one in so many candidates goes on, with so many times the resource. None fits every candidate on
        all folds.
    resource : str, default="folds"
        What there is less of at first: "folds", whose scores are those of whole fits and are kept; "rows", a random
        part of the rows, with all folds; or the name of a whole-numbered parameter of the estimator, such as
        "max_iter". By rows or iterations other values may be best than in the end: of l2, say.
    n_folds : int, default=5
        Number of folds.
    warm : bool, default=True
        Whether fits of candidates that differ in n_components alone start from the factors of the next smaller one:
        WeightedNMF and the models with gamma posteriors do; others always start from scratch.
    refit : bool, default=True
        Whether to fit the estimator on all cells with the best parameters.
    journal : path-like or None, default=None
        File to which each finished evaluation is appended. A later search with the same data and settings goes on from
        it; more candidates may be asked for. Needs a whole number as `random_state`.
    random_state : int, RandomState or None, default=None
        Seed of the folds, of the fits in them, and of the candidates; the last fit has the estimator's own.
    n_jobs : int or None, default=None
        Number of fits at a time, each then on one thread; None uses all processors. With 1, fits have the estimator's
        own n_jobs. On a GPU, one fit follows the other. The numbers are the same.
    verbose : int, default=0
        1 shows a progress bar on a terminal, with the best score of the rung.

    Attributes
    ----------
    best_params_ : dict
        Parameters of the best candidate, for the estimator's `set_params`.
    best_score_ : float
        Its mean score.
    best_estimator_ : estimator
        Model fitted on all cells; `predict`, `recommend`, `transform` and so on are its own.
    results_ : dict of ndarray
        An entry for each candidate, those that came farthest first, the best before the others: "parameters", "mean",
        "distance" (of the mean to that of the best, on the folds of both) and its "standard_error", "resource" (the
        number of folds, rows or iterations of its scores), "scores" (candidates by folds, NaN where it was not
        fitted), "seconds" (of all its fits); prints as a table. "resource_name" says what the resource is.
    at_edge_ : dict
        Parameters whose best value is the "smallest" or the "largest" of those tried: better ones may lie beyond.
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
    >>> model = hs.WeightedNMF(loss="frobenius", max_iter=2000, tol=1e-6)
    >>> grid = {"n_components": [1, 2, 3], "l2": [0.0, 100.0]}
    >>> search = hs.Search(model, grid, random_state=0).fit(table)
    >>> search.best_params_
    {'l2': 0.0, 'n_components': 2}
    """

    parameter_rules: ClassVar[Mapping[str, validation.Rule]] = {
        "n_candidates": validation.or_else(validation.whole(1), None),
        "factor": validation.or_else(validation.whole(2), None), "n_folds": validation.whole(2),
        "warm": validation.flag(), "refit": validation.flag(), "random_state": validation.seed(),
        "n_jobs": validation.threads(),
    }  # fmt: skip

    def __init__(
        self, estimator: Any, parameters: Mapping[str, Any] | None = None, *, n_candidates: int | None = None,
        metric: Any = None, relevant: float = 1, factor: int | None = 3, resource: str = "folds", n_folds: int = 5,
        warm: bool = True, refit: bool = True, journal: FilePath | None = None, random_state: Seed = None,
        n_jobs: int | None = None, verbose: int = 0,
    ) -> None:  # fmt: skip
        self.estimator = estimator
        self.parameters = parameters
        self.n_candidates = n_candidates
        self.metric = metric
        self.relevant = relevant
        self.factor = factor
        self.resource = resource
        self.n_folds = n_folds
        self.warm = warm
        self.refit = refit
        self.journal = journal
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
        """Find the best parameters, and fit the estimator with them.

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
        estimator = clone(check_estimator(self.estimator))
        plain = {"verbose": 0, "checkpoint": None}  # the last fit alone has a checkpoint
        estimator.set_params(**{name: plain[name] for name in plain if name in estimator.get_params(deep=False)})
        metric = default_metric(estimator) if self.metric is None else self.metric
        self._check(estimator, metric)
        scorer = get_scorer(metric, self.relevant, estimator)
        if self.journal is not None and not isinstance(self.random_state, int | np.integer):
            raise ParameterError(
                "must be a whole number where there is a journal, so that a later search has the same folds.",
                parameter="random_state",
                found=repr(self.random_state),
                remedy="Use 0.",
            )
        levels = getattr(estimator, "levels_to_read", None)
        observed = observe_for_fit(X, getattr(estimator, "unseen", "zero"), cell_weight, levels)
        # list the candidates, and score them
        random = check_random_state(self.random_state)
        folds = list(make_folds(observed, self.n_folds, estimator, random))
        seeds = random.randint(2**31, size=2).tolist()
        candidates = self._candidates(estimator, observed, seeds[0])
        if metric == "divergence" and len({repr(one.get("loss")) for one in candidates}) > 1:  # each has its own
            metric, scorer = "rmse", get_scorer("rmse", self.relevant, estimator)
        rules = getattr(estimator, "parameter_rules", {})
        for one in candidates:
            validation.check_parameters(one, {name: rules[name] for name in one if name in rules})
        journal = None
        if self.journal is not None:
            model = {name: one for name, one in estimator.get_params(deep=False).items() if name != "random_state"}
            settings = {"version": __version__, "estimator": type(estimator).__name__, **model, "metric": metric}
            settings |= {
                name: getattr(self, name) for name in ("relevant", "n_folds", "random_state", "warm", "resource")
            }
            settings = {name: one for name, one in settings.items() if name not in ("checkpoint", "n_jobs", "verbose")}
            journal = Journal(self.journal, observed.fingerprint(), settings)
        evaluator = Evaluator(self, estimator, candidates, scorer, journal)
        evaluator.run(self._rungs(estimator, observed, folds, len(candidates), seeds[1]))
        if evaluator.not_converged.any():
            first = candidates[int(np.argmax(evaluator.not_converged.any(axis=1)))]
            count = f"{evaluator.not_converged.sum()} of {evaluator.n_whole}"
            shown = ", ".join(f"{name}={value}" for name, value in first.items())
            warning = ConvergenceWarning(
                "Fits should settle, else their scores say little about the parameters.",
                found=f"{count} that stopped at the last iteration, or while the loss still fell by more than "
                f"{NOT_CONVERGED_TOL:.0%} per iteration, the first with {shown}",
                remedy="Raise `max_iter`, lower `tol`, or set `accelerate=True`.",
                remedy_cli="Raise `max_iter`, or lower `tol`.",
            )
            warnings.warn(warning, stacklevel=2)
        fitted = self._choose(candidates, evaluator) | {"metric_": metric} | feature_attributes(X, observed.shape[1])
        if self.refit:
            best = clone(self.estimator).set_params(**fitted["best_params_"])
            fitted["best_estimator_"] = best.fit(X, cell_weight=cell_weight) if cell_weight is not None else best.fit(X)
        keep(self, fitted)  # all at once: after Ctrl-C or an error, those of the last fit are whole
        return self

    def _check(self, estimator: Any, metric: Any) -> None:
        """Refuse parameters before data are read."""
        names = {} if self.parameters is None else self.parameters
        if not isinstance(names, Mapping) or not all(
            is_range(values) or (isinstance(values, list | tuple | np.ndarray) and len(values) > 0)
            for values in names.values()
        ) or (self.parameters is not None and not names):  # fmt: skip
            raise ParameterError(
                "must be None or a dict from names to lists of values or distributions, none of them empty.",
                parameter="parameters",
                found=repr(self.parameters),
                remedy='Write {"l2": [0.1, 1.0]} or {"l2": scipy.stats.loguniform(0.1, 10)}.',
            )
        check_varied(names, estimator, self.metric)
        if self.resource in ("folds", "rows"):
            return
        known = estimator.get_params(deep=False)
        if self.resource in names or validation.whole(1)(known.get(str(self.resource))) is not None:
            raise ParameterError(
                'must be "folds", "rows", or a parameter of the estimator that is a whole number and is not searched.',
                parameter="resource",
                found=repr(self.resource),
                remedy="Leave it out.",
            )

    def _candidates(self, estimator: Any, observed: Observed, seed: int) -> list[dict[str, Any]]:
        parameters = default_parameters(estimator, observed) if self.parameters is None else self.parameters
        if not parameters:
            raise ParameterError(
                "must name what is to be searched.",
                parameter="parameters",
                found=f"nothing: a {type(estimator).__name__} has no parameter left at a default with a known range",
                remedy='Write {"name": [values]}.',
                remedy_cli="Name it: --param NAME=LOW:HIGH.",
            )
        return list_candidates(parameters, estimator, self.n_candidates, seed)

    def _rungs(self, estimator: Any, observed: Observed, folds: list[Fold], n_candidates: int, seed: int) -> list[Rung]:
        """What candidates are scored by, with less of the resource first."""
        if self.resource == "folds":
            rungs = halving(n_candidates, self.factor, self.n_folds)
            return [Rung(count, folds[:amount], amount, {}) for count, amount in rungs]
        if self.resource == "rows":
            most, order = observed.shape[0], np.random.RandomState(seed).permutation(observed.shape[0])
            rungs = halving(n_candidates, self.factor, most, min(most, 10 * self.n_folds))
            some = [observed.select_rows(np.sort(order[:amount])) for _, amount in rungs[:-1]]
            fewer = [list(make_folds(one, self.n_folds, estimator, np.random.RandomState(seed))) for one in some]
            return [
                Rung(count, within, amount, {"rows": amount} if amount < most else {})
                for (count, amount), within in zip(rungs, [*fewer, folds], strict=True)
            ]
        most = int(getattr(estimator, self.resource))
        return [
            Rung(count, folds, amount, {self.resource: amount} if amount < most else {})
            for count, amount in halving(n_candidates, self.factor, most)
        ]

    def _choose(self, candidates: list[dict[str, Any]], evaluator: Evaluator) -> dict[str, Any]:
        """The attributes of a fit: the best candidate, and all of them."""
        scores, resource = evaluator.scores, evaluator.resource
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            means = np.nanmean(scores, axis=1)
        order = np.lexsort((-means, -resource))
        distances, errors = np.full((2, len(candidates)), np.nan)
        # scores by fewer rows or iterations can't be compared
        alike = np.isfinite(means) if self.resource == "folds" else resource == resource.max()
        best = int(order[0])
        place = int(np.count_nonzero(alike[:best]))
        distances[alike], errors[alike] = distances_to_best(scores[alike], place)
        columns = {"mean": means, "distance": distances, "standard_error": errors, "resource": resource}
        columns |= {"scores": scores, "seconds": evaluator.seconds.sum(axis=1)}
        results = Results(0, parameters=[candidates[place] for place in order], resource_name=self.resource)
        results.update({name: column[order] for name, column in columns.items()})
        edges: dict[str, str] = {}
        for name, value in candidates[best].items():
            tried = [one[name] for one in candidates]
            if all(isinstance(one, Real) and not isinstance(one, bool) for one in tried) and min(tried) < max(tried):
                edges |= {name: "smallest"} if value == min(tried) else {name: "largest"} if value == max(tried) else {}
        return {
            "best_params_": candidates[best],
            "best_score_": float(means[best]),
            "results_": results,
            "at_edge_": edges,
        }

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
    similar_items = _delegate("similar_items")
    """`best_estimator_.similar_items`, with the same arguments, for models that have it."""
    similar_users = _delegate("similar_users")
    """`best_estimator_.similar_users`, with the same arguments, for models that have it."""
    explain = _delegate("explain")
    """`best_estimator_.explain`, with the same arguments, for models that have it."""
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
