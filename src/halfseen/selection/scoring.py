"""Scores of models on held-out cells, for each fold and candidate; successive halving."""

import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise, product
from numbers import Real
from threading import Event, Lock
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from halfseen.arrays import Array
from halfseen.engines.threads import thread_count
from halfseen.errors import DataError, DataWarning, ParameterError
from halfseen.estimators.base import Factorization
from halfseen.fitting import Callback, progress_bar
from halfseen.io.journal import Journal
from halfseen.io.splits import fold_indices
from halfseen.metrics import map_at_k, ndcg_at_k, precision_at_k, recall_at_k
from halfseen.model import Status
from halfseen.observed import Observed
from halfseen.selection.warm_start import has_warm_start, warm_start
from halfseen.validation import did_you_mean

#: The score of a model fitted on `train` by the cells of `test`, from (model, train, test); larger is better.
Scorer = Callable[[Any, Observed, Observed], float]
#: Training cells, test cells, and the seed of the fits.
Fold = tuple[Observed, Observed, int]

RANKING = {"ndcg": ndcg_at_k, "precision": precision_at_k, "recall": recall_at_k, "map": map_at_k}
#: A fit whose last iteration lowered the loss by more than this share has not converged.
NOT_CONVERGED_TOL = 0.01


def default_metric(estimator: Any) -> str:
    """A ranking where unseen cells are zeros, since held-out cells were zeros in training; else the model's own fit."""
    if getattr(estimator, "unseen", "zero") == "zero":
        return "ndcg@100"
    return "log-likelihood" if hasattr(estimator, "log_likelihood") else "divergence"


def get_scorer(metric: Any, relevant: Any, estimator: Any) -> Scorer:
    """The scorer of a metric: a name, or a function of (model, train, test)."""
    if callable(metric):

        def checked(model: Any, train: Observed, test: Observed) -> float:
            score = metric(model, train, test)
            if not isinstance(score, Real):
                raise ParameterError(
                    "must give a number, larger for a better model.",
                    parameter="metric",
                    found=f"a {type(score).__name__}",
                    remedy="Return a float.",
                )
            return float(score)

        return checked
    ranking = re.fullmatch(r"(\w+)@([1-9]\d*)", metric) if isinstance(metric, str) else None
    if ranking and ranking[1] in RANKING:
        measure, k = RANKING[ranking[1]], int(ranking[2])
        return lambda model, train, test: float(measure(model, train, test, k=k, relevant=relevant))
    if not isinstance(metric, str) or metric not in VALUES:
        near = did_you_mean(str(metric), [f"{name}@100" for name in RANKING] + list(VALUES))
        raise ParameterError(
            "must be 'ndcg@K', 'precision@K', 'recall@K' or 'map@K' with a whole number K, "
            f"{', '.join(map(repr, VALUES))}, or a function of (model, train, test).",
            parameter="metric",
            found=repr(metric),
            remedy=f"Did you mean {near!r}?" if near else "Choose one of these.",
        )
    if metric == "log-likelihood" and not hasattr(estimator, "log_likelihood"):
        raise ParameterError(
            "must be one that the model has.",
            parameter="metric",
            found=f'"log-likelihood" for {type(estimator).__name__}, which is fitted by a mere loss',
            remedy='Use "divergence", that loss on held-out cells, or "rmse".',
        )
    if not hasattr(estimator, "predict"):
        raise ParameterError(
            "must be a ranking for a model that only ranks.",
            parameter="metric",
            found=f"{metric!r} for {type(estimator).__name__}",
            remedy='Use "ndcg@100".',
        )
    return VALUES[metric]


def _log_likelihood(model: Any, train: Observed, test: Observed) -> float:
    """Mean log-likelihood of the cells."""
    return float(np.average(model.log_likelihood(test, each=True), weights=model.model_.scored_cells(test).weights))


def _divergence(model: Any, train: Observed, test: Observed) -> float:
    """Minus the mean divergence, log p(y|y) - log p(y|x), or loss, of the cells."""
    likelihood, x = _likelihood_and_x(model, test)
    codes = model.model_.encoder.codes(test).values
    return -float(np.average(likelihood.divergence(codes, x), weights=test.weights))


def _rmse(model: Any, train: Observed, test: Observed) -> float:
    return -float(np.sqrt(np.average(_errors(model, test) ** 2, weights=test.weights)))


def _mae(model: Any, train: Observed, test: Observed) -> float:
    return -float(np.average(np.abs(_errors(model, test)), weights=test.weights))


def _errors(model: Any, test: Observed) -> Array:
    if model.model_.encoder.is_text:
        raise DataError(
            "The metrics rmse and mae need levels that are numbers.",
            found=repr(model.levels_[-1]),
            remedy='Use "log-likelihood" or "divergence".',
            parameter="metric",
        )
    likelihood, x = _likelihood_and_x(model, test)
    return likelihood.mean(x) - test.values


def _likelihood_and_x(model: Any, test: Observed) -> tuple[Any, Array]:
    cells = test.row_of_cell(), test.indices
    return model.model_.likelihood_at(*cells), model.model_.products(*cells)


VALUES: dict[str, Scorer] = {"log-likelihood": _log_likelihood, "divergence": _divergence, "rmse": _rmse, "mae": _mae}


def make_folds(observed: Observed, n_folds: int, estimator: Any, random: np.random.RandomState) -> Iterator[Fold]:
    """Split the cells into folds; the only cells of a level stay in training, which needs them for its threshold."""
    cli = "Get more cells, or give a number, such as -k 5."
    try:
        folds = fold_indices(observed, n_folds, random)
    except DataError as error:
        error.remedy_cli = cli
        raise
    for _, held in folds:
        is_test = np.zeros(observed.nnz, dtype=bool)
        is_test[held] = True
        if "levels" in getattr(estimator, "offers", ()):
            is_test &= np.isin(observed.values, observed.values[~is_test])
        if not is_test.any():
            raise DataError(
                "Every fold must have a cell to score.",
                found=f"none whose level is in other folds as well, among {observed.nnz} cells",
                remedy="Make fewer folds, or get more cells.",
                remedy_cli=cli,
                parameter="n_folds",
            )
        yield observed.select_cells(~is_test), observed.select_cells(is_test), int(random.randint(2**31))


class Rung(NamedTuple):
    """What candidates are scored by before all but the best of them leave."""

    n_candidates: int
    folds: Sequence[Fold]
    resource: int
    """How many folds, rows or iterations."""
    less: dict[str, Any]
    """What is less than the whole: none for whole fits; the rows, or a parameter of the fits."""


class Evaluator:
    """Scores of candidates on folds, whatever the number of threads.

    Where warm starts help, candidates that differ in n_components alone are fitted by ascending rank, each from the
    factors of the previous one. What the journal has is not computed again, unless the next fit starts from it.
    """

    def __init__(
        self, search: Any, estimator: Any, candidates: Sequence[dict[str, Any]], scorer: Scorer, journal: Journal | None
    ) -> None:
        n_folds = (len(candidates), search.n_folds)
        self.scores = np.full(n_folds, np.nan)  # of the last rung of each candidate
        self.seconds = np.zeros(n_folds)
        self.not_converged = np.zeros(n_folds, dtype=bool)
        self.resource = np.zeros(len(candidates), dtype=int)
        self.left = np.arange(len(candidates))
        self._search, self._estimator, self._candidates = search, estimator, candidates
        self._scorer, self._journal = scorer, journal
        self._is_warm = bool(search.warm) and has_warm_start(estimator)
        self.n_whole = 0  # fits with the whole resource
        self._done, self._best, self._lock, self._stopped = 0, -np.inf, Lock(), Event()

    def run(self, rungs: Sequence[Rung]) -> None:
        """Score what is left at each rung, and let those that did best go on."""
        steps = sum(rung.n_candidates * len(rung.folds) for rung in rungs)
        steps -= sum(after.n_candidates * len(rung.folds) for rung, after in pairwise(rungs) if not rung.less)
        with progress_bar(self._search, steps, "best score") as bar, warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)  # rows without a cell in some fold are expected
            warnings.simplefilter("ignore", ConvergenceWarning)  # the search warns once, at the end
            try:
                for number, rung in enumerate(rungs):
                    if number:
                        means = np.nanmean(self.scores[self.left], axis=1)
                        self.left = self.left[np.sort(np.argsort(-means, kind="stable")[: rung.n_candidates])]
                    if number and rungs[number - 1].less:  # these scores can't be compared with those that come
                        self.scores[self.left] = np.nan
                    self.resource[self.left], self._best = rung.resource, -np.inf
                    self._run_rung(rung, bar)
            except KeyboardInterrupt:
                self._stopped.set()
                kept = "nothing of it is kept" if self._journal is None else self._journal.where_to_go_on()
                raise KeyboardInterrupt(
                    f"The search was interrupted at fit {self._done + 1} of {steps}; {kept}."
                ) from None

    def _run_rung(self, rung: Rung, bar: Callback | None) -> None:
        chains: dict[Any, list[int]] = {}
        for place in self.left.tolist():
            others = {name: value for name, value in self._candidates[place].items() if name != "n_components"}
            chains.setdefault(repr(others) if self._is_warm else place, []).append(place)
        for chain in chains.values():
            chain.sort(key=lambda place: self._candidates[place].get("n_components", 0))
        todo = [
            (chain, fold)
            for chain, fold in product(chains.values(), range(len(rung.folds)))
            if np.isnan(self.scores[chain[0], fold])
        ]
        # on a GPU one fit at a time: it takes all of it
        is_cpu = getattr(self._estimator, "engine", "cpu") == "cpu"
        jobs = min(thread_count(self._search.n_jobs), len(todo)) if is_cpu else 1
        estimator = self._estimator
        if jobs > 1 and "n_jobs" in estimator.get_params(deep=False):
            estimator = clone(estimator).set_params(n_jobs=1)
        Parallel(jobs, require="sharedmem")(
            delayed(self._run_chain)(estimator, chain, fold, rung, bar) for chain, fold in todo
        )

    def _run_chain(self, estimator: Any, chain: Sequence[int], fold: int, rung: Rung, bar: Callback | None) -> None:
        train, test, seed = rung.folds[fold]
        random, is_seeded = np.random.RandomState(seed), "random_state" in estimator.get_params(deep=False)
        keys: list[dict[str, Any]] = [
            {"fold": fold, **rung.less, "parameters": self._candidates[place]} for place in chain
        ]
        for number, key in enumerate(keys):  # what a fit started from
            if self._is_warm:
                key["after"] = [self._candidates[place]["n_components"] for place in chain[:number]]
        known = [None if self._journal is None else self._journal.find(**key) for key in keys]
        last = max((number for number, found in enumerate(known) if found is None), default=-1)
        model: Any = None
        for number, place in enumerate(chain):
            params, found, started = {**self._candidates[place], **rung.less}, known[number], perf_counter()
            params.pop("rows", None)
            if number <= last:
                start = None if model is None else warm_start(model, params["n_components"], train, random)
                model = clone(estimator).set_params(
                    **params,
                    **({"random_state": seed} if is_seeded else {}),
                    **({} if start is None else {"init": start}),
                )
                model.fit(train)
            if found is None:
                seconds = perf_counter() - started
                score = self._scorer(model, train, test)
                if not np.isfinite(score):
                    raise DataError(
                        "Scores must be finite to be compared.",
                        found=f"{score} with {', '.join(f'{name}={value}' for name, value in params.items())}",
                        remedy="Choose another metric, or see how that fit ends.",
                        remedy_cli="See how that fit ends.",
                        parameter="metric",
                    )
                found = {"score": score, "seconds": seconds, "converged": not _is_not_converged(model, train.nnz)}
                if self._journal is not None:
                    self._journal.append(**keys[number], **found)
            with self._lock:
                self._done += 1
                self.scores[place, fold] = found["score"]
                self.seconds[place, fold] += found["seconds"]
                self.n_whole += not rung.less
                self.not_converged[place, fold] = not rung.less and not found["converged"]
                mean = self.scores[place, : len(rung.folds)].mean()
                self._best = np.fmax(self._best, mean)
                if bar is not None:
                    bar(self._done, self._best if np.isfinite(self._best) else found["score"])
            if self._stopped.is_set():  # Ctrl-C reaches one thread only
                raise KeyboardInterrupt


def _is_not_converged(model: Any, n_cells: int) -> bool:
    """Whether a fit stopped at max_iter, or by tol while the loss still fell fast (if cells outnumber parameters)."""
    if not isinstance(model, Factorization) or model.tol == 0:  # no iterations, or a fixed number
        return False
    has_objective = model.n_iter_ > 1 and "objective" in model.trace_
    if model.status_ is Status.CONVERGED and has_objective and model.W_.size + model.H_.size < n_cells:
        before, last = model.trace_["objective"][-2:]
        return bool(before - last > NOT_CONVERGED_TOL * abs(last))
    return model.status_ is Status.MAX_ITER
