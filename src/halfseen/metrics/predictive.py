"""Whether data drawn from a model look like the data it was fitted on."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from halfseen import checks
from halfseen.arrays import Array
from halfseen.errors import ParameterError
from halfseen.estimators.features import read_cells
from halfseen.estimators.leveled import LeveledMixin
from halfseen.estimators.predictive import PredictiveMixin
from halfseen.labels import Places, text_array
from halfseen.observed import match_cells

#: Where the classes of counts begin by default: the round numbers of Gouvert, Oberlin & Févotte (2020).
EDGES = (1, 2, 5, 10, 20, 50, 100, 200, 500)

#: From the values of cells to the number of cells in each class.
Histogram = Callable[[Array], Array]


class PredictiveCheck(NamedTuple):
    """Numbers of cells at each level, or in each class of counts: those of the data, and those of data drawn."""

    levels: Array
    """The levels, or the classes of counts as text, such as "5-9"."""
    observed: Array
    """How many cells of the data are there."""
    mean: Array
    """The mean over the data sets drawn."""
    low: Array
    """Where the central interval over the data sets drawn begins."""
    high: Array
    """Where it ends."""


def predictive_check(
    model: Any, X: Any, n: int = 20, *, level: float = 0.9, edges: Any = None, random_state: Any = 0
) -> PredictiveCheck:
    """A posterior predictive check of the histogram of levels (section 5.3 of `ordnmf-2020`).

    n data sets are drawn from the model, as `sample` does, one at a time, and their cells are counted by level. Where
    the model is right, `observed` lies about where the draws lie. With `unseen="zero"` the whole grid is counted, its
    unseen cells at level 0; with `unseen="missing"` the cells of the fit.

    Parameters
    ----------
    model : a fitted OrdNMF, SquaredOrdNMF, BernoulliPoisson, PoissonFactorization, CompoundPoisson or SquaredPoisson.
    X : the data of the fit.
    n : how many data sets are drawn.
    level : how much of the draws lies between `low` and `high`.
    edges : for counts, where the classes begin, in ascending order; None: 1, 2, 5, 10, 20, 50, 100, 200, 500.
    random_state : None, a whole number or a RandomState. By default the same question has the same answer.
    """
    _check(model, n, level, edges, random_state)
    labels, histogram = _classes(model, edges)
    random = check_random_state(random_state)
    drawn = np.stack([_of_sample(model, histogram, model.sample(1, random)[0].data) for _ in range(n)])
    low, high = np.quantile(drawn, [0.5 - level / 2, 0.5 + level / 2], axis=0)
    return PredictiveCheck(labels, _of_data(model, histogram, X), drawn.mean(axis=0), low, high)


def _check(model: Any, n: int, level: float, edges: Any, random_state: Any) -> None:
    if not isinstance(model, PredictiveMixin):
        raise ParameterError(
            f"model must be one that data can be drawn from. Found a {type(model).__name__}. "
            "Fit OrdNMF, OrdinalMF, SquaredOrdNMF, BernoulliPoisson, PoissonFactorization, CompoundPoisson or "
            "SquaredPoisson."
        )
    check_is_fitted(model)
    wishes = {"n": n, "level": level, "edges": edges, "random_state": random_state}
    rules = {"n": checks.whole(1), "level": checks.between(0.0, 1.0), "edges": checks.rising(above=0.0)}
    checks.check_parameters(wishes, {**rules, "random_state": checks.seed()})
    if edges is not None and isinstance(model, LeveledMixin):
        raise ParameterError(
            f"edges must be None for {type(model).__name__}, which has levels. Found {edges!r}. Leave them out."
        )


def _classes(model: Any, edges: Any) -> tuple[Array, Histogram]:
    """The names of levels, or of classes of counts, and how to count the cells in each."""
    if isinstance(model, LeveledMixin):
        values = model._valued(np.arange(model.levels_.size))
        return model.levels_, lambda data: np.bincount(np.searchsorted(values, data), minlength=values.size)
    starts = np.asarray(EDGES if edges is None else edges, dtype=np.float64)
    return _named(starts), lambda data: np.bincount(np.searchsorted(starts, data, "right"), minlength=starts.size + 1)


def _named(starts: Array) -> Array:
    """Classes of counts as "0", "1", "2-4", "5 and more"."""
    from_to = zip([0.0, *starts[:-1]], starts - 1, strict=True)
    return text_array([*(_span(low, high) for low, high in from_to), f"{starts[-1]:g} and more"])


def _span(low: float, high: float) -> str:
    return f"{low:g}" if high <= low else f"{low:g}-{high:g}"


def _of_data(model: Any, histogram: Histogram, X: Any) -> Array:
    """The histogram of the cells of X that are in the model's rows and columns; unseen places of a grid are at 0."""
    shape, labels = (len(model.W_), len(model.H_)), Places(model.row_labels_, model.column_labels_)
    cells = match_cells(read_cells(X, "X", model.unseen, model._fitted_names()), shape, labels, "X", duplicates="keep")
    counts = histogram(model._valued(model._counted(cells).values))
    counts[0] += cells.n_unobserved if model.unseen == "zero" else 0
    return counts


def _of_sample(model: Any, histogram: Histogram, values: Array) -> Array:
    """The histogram of a data set drawn; what is not stored of a grid is at level 0."""
    counts = histogram(values)
    counts[0] += len(model.W_) * len(model.H_) - values.size if model.unseen == "zero" else 0
    return counts
