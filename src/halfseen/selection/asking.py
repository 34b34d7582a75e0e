"""Whether what a search is asked to try can be tried."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.model_selection import ParameterGrid

from halfseen import checks
from halfseen.errors import ParameterError
from halfseen.estimators import RankOneNMF
from halfseen.estimators.base import Factorization

#: What is tried if nothing is asked for: no step much larger than from simple to double.
USUAL = (1, 2, 3, 5, 8, 12, 20, 30, 50)

#: Parameters that a search sets itself or that must be the same for all, and what to do instead of trying several.
OF_THE_SEARCH = {
    "n_components": "Move its values to ranks.",
    "random_state": "Set that of the search: each fold has its own.",
    "unseen": "Search once for each: scores of different data can't be compared.",
    "n_jobs": "Leave it out: results don't depend on it.",
    "verbose": "Leave it out: results don't depend on it.",
}


def checked_estimator(estimator: Any) -> Factorization:
    """The estimator, if it has a number of components to choose and is not bound to one."""
    if not isinstance(estimator, Factorization):
        name = estimator.__name__ if isinstance(estimator, type) else type(estimator).__name__
        why = {
            "RankOneNMF": ", which has one component",
            "UncoupledNMF": ", whose values have no cells that could be held out",
        }.get(name, "")
        if isinstance(estimator, type) and issubclass(estimator, Factorization):
            raise ParameterError(f"estimator must be a model, not its class. Found {name}. Pass {name}().")
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


def checked_ranks(ranks: Any) -> list[int]:
    """The ranks in ascending order."""
    must = "ranks must be different whole numbers of at least 1, one or more of them."
    whole = checks.whole(1)
    if isinstance(ranks, str) or not hasattr(ranks, "__iter__"):
        raise ParameterError(f"{must} Found {ranks!r}. List them, such as [5, 10, 20].")
    listed = list(ranks)
    if not listed:
        raise ParameterError(f"{must} Found none. List them, such as [5, 10, 20].")
    for rank in listed:
        if whole(rank) is not None:
            raise ParameterError(f"{must} Found {rank!r}. Replace it.")
    ascending = sorted(int(rank) for rank in listed)
    repeated = np.flatnonzero(np.diff(ascending) == 0)
    if repeated.size:
        raise ParameterError(f"{must} Found {ascending[repeated[0]]} twice. Leave one out.")
    return ascending


def usual_ranks(shape: tuple[int, int]) -> list[int]:
    """Those that are tried if nothing is asked for; more components than rows or columns are of no use."""
    return [rank for rank in USUAL if rank <= max(1, min(shape))]


def checked_grid(parameters: Mapping[str, Any] | None, estimator: Any, metric: Any) -> list[dict[str, Any]]:
    """All combinations of the further parameters; of none, one empty one."""
    if parameters is None:
        return [{}]
    if not isinstance(parameters, Mapping) or not all(map(_is_list, parameters.values())):
        raise ParameterError(
            "parameters must be None or a dict from names to lists of values, none of them empty. "
            f'Found {parameters!r}. Write {{"l2": [0.1, 1.0]}}.'
        )
    for name, instead in OF_THE_SEARCH.items():
        if name in parameters:
            raise ParameterError(f"parameters must be ones that a search can vary. Found {name!r}. {instead}")
    if metric == "divergence" and "loss" in parameters:
        raise ParameterError(
            "Models must be judged by one measure. Found several losses and the metric 'divergence', each one's own. "
            'Set metric="rmse" or "mae", or search once for each loss.'
        )
    checks.check_names(parameters, estimator.get_params(deep=False), type(estimator).__name__)
    return list(ParameterGrid(dict(parameters)))


def _is_list(values: Any) -> bool:
    return isinstance(values, list | tuple | np.ndarray) and len(values) > 0
