"""Posterior predictive check: whether data drawn from a model look like the training data."""

from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from halfseen import validation
from halfseen.arrays import Array
from halfseen.docstrings import insert_parameters
from halfseen.errors import ParameterError
from halfseen.labels import text_array

#: Where the classes of counts begin by default: the round numbers of Gouvert, Oberlin & Févotte (2020).
EDGES = (1, 2, 5, 10, 20, 50, 100, 200, 500)


class PredictiveCheck(NamedTuple):
    """Numbers of cells at each level, or in each class of counts: of the data, and of data drawn.

    Attributes
    ----------
    levels : ndarray
        Levels, or classes of counts as text, such as "5-9".
    observed : ndarray
        Number of cells of the data.
    mean : ndarray
        Mean number over the data sets drawn.
    low, high : ndarray
        Central interval over the data sets drawn.
    """

    levels: Array
    observed: Array
    mean: Array
    low: Array
    high: Array


@insert_parameters
def predictive_check(
    model: Any, X: Any, n: int = 20, *, level: float = 0.9, edges: Any = None, random_state: Any = 0
) -> PredictiveCheck:
    """A posterior predictive check of the histogram of levels (section 5.3 of `ordnmf-2020`).

    n data sets are drawn from the model, as `sample` does, one at a time, and their cells are counted by level. Where
    the model is right, `observed` lies about where the draws lie. With `unseen="zero"` the whole grid is counted, its
    unseen cells at level 0; with `unseen="missing"` the cells of the fit.

    Parameters
    ----------
    model : estimator
        Fitted OrdNMF, OrdinalMF, SquaredOrdNMF, BernoulliPoisson, PoissonFactorization, CompoundPoisson or
        SquaredPoisson.
    X : data
        Training data, as for `fit`.
    n : int, default=20
        Number of data sets drawn.
    level : float, default=0.9
        Share of the draws between `low` and `high`.
    edges : array-like of float or None, default=None
        For counts, where the classes begin, in ascending order; None: 1, 2, 5, 10, 20, 50, 100, 200, 500.
    {random_state:draws}

    Returns
    -------
    PredictiveCheck
    """
    # validate
    if "likelihood" not in getattr(model, "offers", ()):
        raise ParameterError(
            "must be one that data can be drawn from.",
            parameter="model",
            found=f"a {type(model).__name__}",
            remedy="Fit OrdNMF, OrdinalMF, SquaredOrdNMF, BernoulliPoisson, PoissonFactorization, CompoundPoisson or "
            "SquaredPoisson.",
        )
    check_is_fitted(model)
    rules = {"n": validation.whole(1), "level": validation.between(0.0, 1.0), "edges": validation.rising(above=0.0)}
    parameters = {"n": n, "level": level, "edges": edges, "random_state": random_state}
    validation.check_parameters(parameters, {**rules, "random_state": validation.seed()})
    has_levels = "levels" in model.offers
    if edges is not None and has_levels:
        raise ParameterError(
            f"must be None for {type(model).__name__}, which has levels.",
            parameter="edges",
            found=repr(edges),
            remedy="Leave them out.",
        )
    # classes, and how to count the cells in each
    record = model.model_
    starts = record.encoder.level_values[1:] if has_levels else np.asarray(EDGES if edges is None else edges, float)
    labels = model.levels_ if has_levels else _class_names(starts)

    def histogram(values: Array, n_unobserved: int) -> Array:
        """Number of cells in each class; where unseen cells are zeros, the others are in the first."""
        counts = np.bincount(np.searchsorted(starts, values, "right"), minlength=starts.size + 1)
        counts[0] += n_unobserved if record.unseen == "zero" else 0
        return counts

    # count
    random, n_cells = check_random_state(random_state), record.shape[0] * record.shape[1]
    data_sets = (model.sample(1, random)[0].data for _ in range(n))
    drawn = np.stack([histogram(values, n_cells - values.size) for values in data_sets])
    low, high = np.quantile(drawn, [0.5 - level / 2, 0.5 + level / 2], axis=0)
    cells = record.read_cells(X)
    observed = histogram(record.encoder.values_of(record.encoder.codes(cells).values), cells.n_unobserved)
    return PredictiveCheck(labels, observed, drawn.mean(axis=0), low, high)


def _class_names(starts: Array) -> Array:
    """Classes of counts as "0", "1", "2-4", "5 and more"."""
    ends = zip([0.0, *starts[:-1]], starts - 1, strict=True)
    spans = [f"{low:g}" if high <= low else f"{low:g}-{high:g}" for low, high in ends]
    return text_array([*spans, f"{starts[-1]:g} and more"])
