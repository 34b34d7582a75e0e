"""Half-seen tables of every kind for the rank-one methods, fits of them, and what is true of the best fit."""

import math
import warnings

import numpy as np
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from halfseen import RankOneNMF
from halfseen.errors import DataWarning

from . import oracle

NAN = np.nan


def fitted(X, method="exact", *, cell_weight=None, **parameters):
    """A fit, whatever it has to say about the data."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        return RankOneNMF(method, **parameters).fit(X, cell_weight=cell_weight)


def factors(model):
    return model.W_[:, 0].astype(float), model.H_[:, 0].astype(float)


def product(model):
    return np.outer(*factors(model))


def holed(X, share, seed=0):
    return np.where(np.random.default_rng(seed + 1000).random(X.shape) < share, NAN, X)


def gammas(shape, seed=0, form=1.5):
    return np.random.default_rng(seed).gamma(form, 2.0, shape) + 0.01


def counts(shape, seed=0, mean=2.0):
    return np.random.default_rng(seed).poisson(mean, shape).astype(float)


def weights_for(X, seed=0):
    return np.random.default_rng(seed + 2000).choice([0.37, 0.5, 1.0, 3.0], X.shape)


def chain(n, seed=0):
    """Row i sees columns i and i + 1: a tree, which can be fitted without error."""
    values = gammas((2, n), seed)
    X = np.full((n, n), NAN)
    X[np.arange(n), np.arange(n)] = values[0]
    X[np.arange(n - 1), np.arange(1, n)] = values[1, 1:]
    return X


def tree(n, m, seed=0):
    """A random tree of rows and columns: n + m - 1 cells, each hanging a new row or column on an old one."""
    rng = np.random.default_rng(seed)
    X = np.full((n, m), NAN)
    X[0, 0] = 1.0
    rows, columns = [0], [0]
    for kind in rng.permutation([0] * (n - 1) + [1] * (m - 1)):
        if kind == 0:
            rows.append(len(rows))
            X[rows[-1], rng.choice(columns)] = rng.gamma(1.0) + 0.01
        else:
            columns.append(len(columns))
            X[rng.choice(rows), columns[-1]] = rng.gamma(1.0) + 0.01
    return X


def blocks(*tables):
    """Tables along the diagonal, holes elsewhere."""
    n, m = (sum(sizes) for sizes in zip(*(table.shape for table in tables), strict=True))
    X, top, left = np.full((n, m), NAN), 0, 0
    for table in tables:
        X[top : top + table.shape[0], left : left + table.shape[1]] = table
        top, left = top + table.shape[0], left + table.shape[1]
    return X


def with_dead_lines(X):
    """A row and a column of zeros, an empty row and an empty column."""
    X = X.copy()
    X[1], X[:, 2] = np.where(np.isnan(X[1]), NAN, 0.0), np.where(np.isnan(X[:, 2]), NAN, 0.0)
    X[3], X[:, 4] = NAN, NAN
    return X


#: Every kind of table of which the best fit is reached: no part of any is held together by zeros alone.
TABLES = {
    "whole": gammas((9, 7)),
    "one hole": np.where(np.arange(63).reshape(9, 7) == 10, NAN, gammas((9, 7), 1)),
    "few holes": holed(gammas((12, 9), 2), 0.1),
    "half of it": holed(gammas((12, 9), 3), 0.5, 3),
    "few seen": holed(gammas((14, 10), 4), 0.75, 1),
    "counts": holed(counts((12, 9), 5, 3.0), 0.15),
    "sparse counts": holed(counts((15, 12), 6, 0.7), 0.1),
    "dead lines": with_dead_lines(holed(counts((12, 9), 7, 4.0), 0.1)),
    "chain": chain(12),
    "tree": tree(9, 7),
    "parts": blocks(gammas((3, 2), 8), holed(gammas((5, 4), 9), 0.2), chain(4), np.array([[7.0]])),
    "a hole in every row": np.where(np.eye(8, 6) + np.eye(8, 6, -6) > 0, NAN, gammas((8, 6), 10)),
    "row": holed(gammas((1, 8), 11), 0.3),
    "column": holed(gammas((8, 1), 12), 0.3),
    "cell": np.array([[3.0]]),
    "rank one": holed(np.outer(gammas(9, 13), gammas(8, 14)), 0.4),
    "uneven": holed(np.outer(10.0 ** np.arange(-4, 5), 10.0 ** np.arange(3, -4, -1)) * gammas((9, 7), 15), 0.2),
}


def grid_like(n, m, rows, columns, seed=0):
    """Rows `rows` and columns `columns` meet in holes, and there are no others."""
    X = gammas((n, m), seed)
    X[np.ix_(rows, columns)] = NAN
    return X


GRID_LIKE = {
    "no hole": grid_like(6, 5, [], []),
    "one": grid_like(6, 5, [2], [3], 1),
    "in a row": grid_like(6, 5, [2], [0, 1, 3], 2),
    "in a column": grid_like(6, 5, [0, 2, 5], [3], 3),
    "a corner": grid_like(6, 5, [3, 4, 5], [3, 4], 4),
    "spread": grid_like(9, 8, [1, 4, 6], [0, 3, 5, 7], 5),
    "most": grid_like(9, 8, [0, 1, 2, 4, 5, 6, 7, 8], [0, 1, 2, 3, 4, 5, 7], 6),
    "with zeros": grid_like(9, 8, [1, 4], [0, 5], 7) * (counts((9, 8), 7) < 4),
    "counts": np.where(np.isnan(grid_like(9, 8, [3], [2, 3])), NAN, counts((9, 8), 9)),
}


@st.composite
def half_seen(draw, largest=6):
    """Small tables with holes and zeros anywhere, at least one cell seen."""
    n, m = draw(st.integers(1, largest)), draw(st.integers(1, largest))
    value = st.sampled_from([NAN, NAN, 0.0, 0.0, 1.0, 2.0, 0.5, 9.0])
    cells = draw(st.lists(value, min_size=n * m, max_size=n * m))
    X = np.array(cells).reshape(n, m)
    if np.isnan(X).all():
        X[0, 0] = 1.0
    return X


def sums_of(X, weights=None):
    weighted = oracle.exposures(X, weights) * np.nan_to_num(X)
    return weighted.sum(1), weighted.sum(0)


def living_parts(X, weights=None, of=oracle.limit_parts):
    """The parts of rows and of columns, numbered by their first member, rows first; -1 where the sum is 0."""
    rows, columns = (sums > 0 for sums in sums_of(X, weights))
    living = np.where(np.outer(rows, columns), X, NAN)  # a row of zeros is met by w = 0, and connects nothing
    labels = np.concatenate(of(living, weights))
    labels = np.where(np.append(rows, columns), labels, -1)
    number = {label: place for place, label in enumerate(dict.fromkeys(labels[labels >= 0].tolist()))}
    numbered = np.array([number.get(label, -1) for label in labels.tolist()])
    return numbered[: len(X)], numbered[len(X) :]


def is_reached(X, weights=None):
    """Whether some factors have the lowest cost: no zeros lie between strong parts."""
    strong, weak = (np.concatenate(living_parts(X, weights, of)) for of in (oracle.limit_parts, oracle.parts))
    return bool((strong == weak).all())


def infimum(X, weights=None):
    """The lowest cost, reached or not: the sum over the strong parts."""
    of_rows, of_columns = living_parts(X, weights)
    lowest = 0.0
    for part in range(max(of_rows.max(), of_columns.max()) + 1):
        inside = np.ix_(of_rows == part, of_columns == part)
        C = None if weights is None else weights[inside]
        lowest += oracle.cost(X[inside], *oracle.best(X[inside], C), C)
    return lowest


def constant(X, weights=None):
    """The sum of y log y - y, by which the objective is below the cost."""
    C, Y = oracle.exposures(X, weights), np.nan_to_num(X)
    return float((C * (Y * np.log(np.where(Y > 0, Y, 1.0)) - Y)).sum())


def relative_gap(X, w, h, weights=None):
    """How far the sums of the fit are from those of the data, as a part of these, where they are above 0.

    As `halfseen.geometry.conservation_gap`, but each sum by itself and without rounding: no scale hides another.
    """
    C = oracle.exposures(X, weights)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        data, fit = (np.where(C > 0, C * values, 0.0) for values in (X, np.outer(w, h)))
    lines = zip([*data, *data.T], [*fit, *fit.T], strict=True)
    sums = [(math.fsum(wanted), math.fsum(found)) for wanted, found in lines]
    return max((abs(found / wanted - 1.0) for wanted, found in sums if wanted > 0), default=0.0)
