"""Scores of models on held-out cells, for each fold and rank."""

import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from itertools import count, product
from numbers import Real
from threading import Event
from time import perf_counter
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from halfseen.arrays import Array
from halfseen.engines.threads import thread_count
from halfseen.errors import DataError, DataWarning, ParameterError
from halfseen.fitting import progress_bar
from halfseen.io.splits import fold_indices
from halfseen.metrics import map_at_k, ndcg_at_k, precision_at_k, recall_at_k
from halfseen.model import Status
from halfseen.observed import Observed
from halfseen.selection.warm_start import warm_start
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
    if estimator.unseen == "zero":
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
        if "levels" in estimator.offers:
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


def score_paths(
    search: Any, models: Sequence[Any], ranks: Sequence[int], folds: Sequence[Fold], scorer: Scorer
) -> tuple[Array, Array, Array]:
    """Scores, seconds, and whether fits did not converge, by model, fold and rank, whatever the number of threads."""
    # on a GPU one fit at a time: it takes all of it
    is_cpu = all(model.engine == "cpu" for model in models)
    jobs = min(thread_count(search.n_jobs), len(models) * len(folds)) if is_cpu else 1
    if jobs > 1:
        models = [clone(model).set_params(n_jobs=1) for model in models]
    steps, done, stopped = len(models) * len(folds) * len(ranks), count(1), Event()

    with progress_bar(search, steps, "score") as bar, warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # rows without a cell in some fold are expected
        warnings.simplefilter("ignore", ConvergenceWarning)  # the search warns once, at the end

        def callback(score: float) -> None:
            step = next(done)
            if bar is not None:
                bar(step, score)
            if stopped.is_set():  # Ctrl-C reaches one thread only
                raise KeyboardInterrupt

        tasks = (
            delayed(_score_path)(model, ranks, fold, scorer, bool(search.warm), callback)
            for model, fold in product(models, folds)
        )
        try:
            paths = Parallel(jobs, require="sharedmem")(tasks)
        except KeyboardInterrupt:
            stopped.set()
            raise KeyboardInterrupt(
                f"The search was interrupted at fit {next(done)} of {steps}; nothing of it is kept."
            ) from None
    shape = len(models), len(folds), len(ranks)
    scores, seconds, not_converged = (np.array(part).reshape(shape) for part in zip(*paths, strict=True))
    return scores, seconds, not_converged


def _score_path(
    estimator: Any, ranks: Sequence[int], fold: Fold, scorer: Scorer, warm: bool, callback: Callable[[float], None]
) -> tuple[Array, Array, Array]:
    """Fit by ascending rank, each from the factors of the previous one if `warm`, and score on the test cells."""
    train, test, seed = fold
    random = np.random.RandomState(seed)
    scores, seconds, not_converged = np.empty(len(ranks)), np.empty(len(ranks)), np.zeros(len(ranks), dtype=bool)
    model: Any = None
    for place, rank in enumerate(ranks):
        started = perf_counter()
        start = warm_start(model, rank, train, random) if warm and model is not None else None
        model = clone(estimator).set_params(n_components=rank, random_state=seed)
        model.set_params(**({} if start is None else {"init": start})).fit(train)
        seconds[place] = perf_counter() - started
        not_converged[place] = _is_not_converged(model, train.nnz)
        score = scorer(model, train, test)
        if not np.isfinite(score):
            raise DataError(
                "Scores must be finite to be compared.",
                found=f"{score} with n_components={rank}",
                remedy="Choose another metric, or see how that fit ends.",
                remedy_cli="See how that fit ends.",
                parameter="metric",
            )
        scores[place] = score
        callback(scores[place])
    return scores, seconds, not_converged


def _is_not_converged(model: Any, n_cells: int) -> bool:
    """Whether a fit stopped at max_iter, or by tol while the loss still fell fast (if cells outnumber parameters)."""
    if model.tol == 0:  # a fixed number of iterations
        return False
    if model.status_ is Status.CONVERGED and model.n_iter_ > 1 and model.W_.size + model.H_.size < n_cells:
        before, last = model.trace_["objective"][-2:]
        return bool(before - last > NOT_CONVERGED_TOL * abs(last))
    return model.status_ is Status.MAX_ITER
