"""Values drawn from likelihoods, and whole data sets drawn block by block: no matrix of all rows by all columns."""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import logsumexp

from halfseen.arrays import Array, floored
from halfseen.engines.threads import hold_blas, release_blas
from halfseen.estimators.pairs import products_at
from halfseen.estimators.seen import Seen
from halfseen.likelihoods import Likelihood

#: Cells that are drawn at a time.
CELLS_AT_A_TIME = 1 << 18

#: From x to values drawn there, 0 for what is not there; it may be told the rows and columns of the cells.
Draw = Callable[..., Array]


def generator(random_state: Any) -> np.random.Generator:
    """A new generator for None, the same one for the same number, the next one of a RandomState."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(0, 2**32, 4, dtype=np.uint32))
    return np.random.default_rng(random_state)


def away_from_zero(x: Array, likelihood: Likelihood) -> Array:
    """x in double precision; where it is a rate next to nothing, so much that its square has a logarithm.

    Nothing is lost: so near to 0 log p(y | x) - log p(y > 0 | x) has reached its limit to the last digit.
    """
    x = x.astype(np.float64)
    far: Array = floored(x, 4.0) if likelihood.x_is_positive else x
    return far


def logs_of_levels(likelihood: Likelihood, highest: int, x: Array) -> Array:
    """log p(v | x) of the levels v = 1..highest, along a first axis. None is found by subtracting probabilities."""
    return np.stack([likelihood.log_prob(np.full_like(x, v), x) for v in range(1, highest + 1)])


def draw_levels(likelihood: Likelihood, highest: int, x: Array, random: np.random.Generator) -> Array:
    """Levels 0..highest: first whether a cell is above 0, then, for those that are, at which level.

    A cell is above 0 if e ~ Exp(1) is below -log p(0 | x).
    """
    y = np.zeros(x.shape)
    above = random.standard_exponential(x.shape) < _cost_of_zero(likelihood, x)
    logs = logs_of_levels(likelihood, highest, away_from_zero(x[above], likelihood))
    up_to = np.cumsum(np.exp(logs - logsumexp(logs, axis=0)), axis=0)
    y[above] = 1 + (up_to[:-1] < random.random(up_to.shape[1])).sum(axis=0)
    return y


def draw_counts(x: Array, random: np.random.Generator) -> Array:
    """y ~ Poisson(x)."""
    return random.poisson(x).astype(np.float64)


def draw_compound(x: Array, p: float, random: np.random.Generator) -> Array:
    """n ~ Poisson(x), and y the sum of n draws of P(k) = p^k / (-k log(1 - p))."""
    y = draw_counts(x, random)
    there = y > 0
    times = y[there].astype(np.int64)
    draws = random.logseries(min(p, np.nextafter(1.0, 0.0)), times.sum())  # p may have been rounded to 1
    y[there] = np.add.reduceat(draws, np.cumsum(times) - times) if times.size else 0.0
    return y


def _cost_of_zero(likelihood: Likelihood, x: Array) -> Array:
    """-log p(0 | x): the shortest way, because most cells of a grid ask for nothing else."""
    zeros = likelihood.unseen
    cost: Array = -likelihood.log_prob(np.zeros_like(x), x) if zeros is None else zeros.cost(x)
    return cost


def drawn_everywhere(W: Array, H: Array, draw: Draw, random: np.random.Generator) -> sparse.csr_array:
    """A value for every cell of the grid; zeros are not stored."""
    n, m = len(W), len(H)
    height = max(1, CELLS_AT_A_TIME // max(1, m))
    counts, columns, values = [np.zeros(1, np.int64)], [np.empty(0, np.int64)], [np.empty(0)]
    hold_blas()
    try:
        for top in range(0, n, height):
            y = draw(W[top : top + height] @ H.T, random)
            here = np.nonzero(y)
            counts.append(np.bincount(here[0], minlength=len(y)))
            columns.append(here[1])
            values.append(y[here])
    finally:
        release_blas()
    indptr = np.cumsum(np.concatenate(counts))
    return sparse.csr_array((np.concatenate(values), np.concatenate(columns), indptr), shape=(n, m))


def drawn_at_seen(W: Array, H: Array, seen: Seen, draw: Draw, random: np.random.Generator) -> sparse.csr_array:
    """A value for every place that was seen, once or oftener; zeros are stored."""
    rows, columns = np.repeat(np.arange(len(W)), np.diff(seen.indptr)), seen.indices
    first = np.ones(columns.size, bool)
    first[1:] = (np.diff(rows) > 0) | (np.diff(columns) != 0)  # cells of one place stand side by side
    rows, columns = rows[first], columns[first]
    values = np.empty(columns.size)
    for start in range(0, values.size, CELLS_AT_A_TIME):
        part = slice(start, start + CELLS_AT_A_TIME)
        values[part] = draw(products_at(W, H, rows[part], columns[part]), random, rows[part], columns[part])
    indptr = np.searchsorted(rows, np.arange(len(W) + 1))
    return sparse.csr_array((values, columns, indptr), shape=(len(W), len(H)))
