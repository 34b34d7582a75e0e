"""What a model is judged by on held-out cells: a function of (model, train, test), larger is better."""

import re
from collections.abc import Callable, Mapping
from numbers import Real
from typing import Any

import numpy as np

from halfseen.arrays import Array
from halfseen.checks import did_you_mean
from halfseen.data import Observed
from halfseen.errors import DataError, ParameterError
from halfseen.estimators.leveled import LeveledMixin
from halfseen.estimators.pairs import products_at
from halfseen.metrics import map_at_k, ndcg_at_k, precision_at_k, recall_at_k

#: The score of a model that was fitted on `train`, by the cells of `test`.
Judge = Callable[[Any, Observed, Observed], float]

RANKING: Mapping[str, Callable[..., Any]] = {
    "ndcg": ndcg_at_k,
    "precision": precision_at_k,
    "recall": recall_at_k,
    "map": map_at_k,
}


def default_metric(estimator: Any) -> str:
    """Where unseen cells are zeros, held-out cells were zeros in training: their order tells more than their values.
    Else what the model itself says of their values."""
    if estimator.unseen == "zero":
        return "ndcg@100"
    return "log-likelihood" if hasattr(estimator, "log_likelihood") else "divergence"


def judge_of(metric: Any, relevant: Any, estimator: Any) -> Judge:
    """The judge that a metric's name stands for; a function is one itself."""
    if callable(metric):
        return _checked(metric)
    ranking = re.fullmatch(r"(\w+)@([1-9]\d*)", metric) if isinstance(metric, str) else None
    if ranking and ranking[1] in RANKING:
        measure, length = RANKING[ranking[1]], int(ranking[2])
        return lambda model, train, test: float(measure(model, train, test, k=length, relevant=relevant))
    if not isinstance(metric, str) or metric not in VALUES:
        raise ParameterError(_unknown(metric))
    if metric == "log-likelihood" and not hasattr(estimator, "log_likelihood"):
        raise ParameterError(
            f'metric must be one that the model has. Found "log-likelihood" for {type(estimator).__name__}, which is '
            'fitted by a mere loss. Use "divergence", that loss on held-out cells, or "rmse".'
        )
    return VALUES[metric]


def _unknown(metric: Any) -> str:
    known = [f"{name}@100" for name in RANKING] + list(VALUES)
    near = did_you_mean(str(metric), known)
    return (
        "metric must be 'ndcg@K', 'precision@K', 'recall@K' or 'map@K' with a whole number K, "
        f"{', '.join(map(repr, VALUES))}, or a function of (model, train, test). Found {metric!r}. "
        f"{f'Did you mean {near!r}?' if near else 'Choose one of these.'}"
    )


def _checked(function: Callable[..., Any]) -> Judge:
    """A user's function, whose answer must be a number."""

    def judge(model: Any, train: Observed, test: Observed) -> float:
        score = function(model, train, test)
        if not isinstance(score, Real):
            raise ParameterError(
                f"metric must give a number, larger for a better model. Found a {type(score).__name__}. Return a float."
            )
        return float(score)

    return judge


def _log_likelihood(model: Any, train: Observed, test: Observed) -> float:
    """The mean over cells of what the model's `log_likelihood` sums."""
    return float(np.average(model.log_likelihood(test, each=True), weights=model._held_out(test).weights))


def _divergence(model: Any, train: Observed, test: Observed) -> float:
    """Minus the mean divergence, log p(y|y) - log p(y|x), or loss, of the cells."""
    counted = model._counted(test) if hasattr(model, "_counted") else test
    likelihood, x = _at(model, test)
    return -float(np.average(likelihood.divergence(counted.values, x), weights=test.weights))


def _rmse(model: Any, train: Observed, test: Observed) -> float:
    return -float(np.sqrt(np.average(_errors(model, test) ** 2, weights=test.weights)))


def _mae(model: Any, train: Observed, test: Observed) -> float:
    return -float(np.average(np.abs(_errors(model, test)), weights=test.weights))


def _errors(model: Any, test: Observed) -> Array:
    if isinstance(model, LeveledMixin) and model._numbers is None:
        raise DataError(
            f"The metrics rmse and mae need levels that are numbers. Found {model.levels_[-1]!r}. "
            'Use "log-likelihood" or "divergence".'
        )
    likelihood, x = _at(model, test)
    errors: Array = likelihood.mean(x) - test.values
    return errors


def _at(model: Any, test: Observed) -> tuple[Any, Array]:
    """The likelihood at the cells, and x there."""
    places = test.row_of_cell(), test.indices
    return model._likelihood_at(*places), products_at(model.W_, model.H_, *places)


VALUES: Mapping[str, Judge] = {
    "log-likelihood": _log_likelihood,
    "divergence": _divergence,
    "rmse": _rmse,
    "mae": _mae,
}
