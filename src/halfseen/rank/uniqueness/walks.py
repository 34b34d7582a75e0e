"""A random walk among the matrices that agree with all seen levels: hit and run, all columns and then all rows at once.

From a fit, row and column of a cell may have little room. Elsewhere they have more.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from halfseen.arrays import Array
from halfseen.rank.uniqueness.exact_levels import exact_levels
from halfseen.rank.uniqueness.witnesses import Side, reached

#: How much of the way to the ends of intervals is used.
_SHARE = 0.999
#: Steps of the walk after which the rows and columns of cells that did not change yet are pushed anew.
_STEPS_BETWEEN = 25


def reached_on_walk(
    rows: Side, columns: Side, u: Array, i: Array, steps: int, random: np.random.RandomState
) -> tuple[Array, Array]:
    """The lowest and highest levels found at cells (u, i) on a walk, and from places on it by moving row and column."""
    lowest = exact_levels(rows.own[u], columns.own[i], rows.thresholds)
    highest = lowest.copy()
    for step, (near, far) in enumerate(walked(rows, columns, steps, random), 1):
        left = np.flatnonzero(lowest == highest)
        if not left.size:
            break
        here = exact_levels(near.own[u], far.own[i], rows.thresholds)
        lowest, highest = np.minimum(lowest, here), np.maximum(highest, here)
        if step % _STEPS_BETWEEN == 0:
            low, high = reached(near, far, u[left], i[left])
            lowest[left], highest[left] = np.minimum(lowest[left], low), np.maximum(highest[left], high)
    return lowest, highest


def walked(rows: Side, columns: Side, steps: int, random: np.random.RandomState) -> Iterator[tuple[Side, Side]]:
    """Where the walk is after each step."""
    lengths = [float(np.sqrt(np.mean(side.own**2))) for side in (rows, columns)]
    for _ in range(steps):
        columns = _moved(columns, lengths[1], random)
        rows = _moved(replace(rows, other=columns.own), lengths[0], random)
        columns = replace(columns, other=rows.own)
        yield rows, columns


def _moved(side: Side, length: float, random: np.random.RandomState) -> Side:
    """v + t d  for every place, d a random direction, t anywhere on the chord that the seen cells leave, |t| <= 1.

    A place where rounding would take a cell out of its interval stays.
    """
    direction = length * random.standard_normal(side.own.shape) * side.moves
    low, high = _chords(side, direction)
    t = low + (high - low) * random.uniform(0.5 - _SHARE / 2, 0.5 + _SHARE / 2, len(low))
    own = side.own + t[:, None] * direction
    moved = replace(side, own=own)
    back = np.unique(moved.missed())
    own[back] = side.own[back]
    return moved


def _chords(side: Side, direction: Array) -> tuple[Array, Array]:
    """From where to where t may go at every place."""
    place = side.place_of_cell
    x, slope = (np.einsum("pk,pk->p", each[place], side.other[side.codes.indices]) for each in (side.own, direction))
    edges = np.concatenate([[-np.inf], side.thresholds, [np.inf]])
    slope = np.where(slope == 0, np.finfo(np.float64).tiny, slope)
    with np.errstate(over="ignore"):
        to_lower, to_upper = (edges[side.codes.data - 1] - x) / slope, (edges[side.codes.data] - x) / slope
    low, high = np.full(len(side.own), -1.0), np.full(len(side.own), 1.0)
    np.maximum.at(low, place, np.minimum(to_lower, to_upper))
    np.minimum.at(high, place, np.maximum(to_lower, to_upper))
    return np.minimum(low, 0.0), np.maximum(high, 0.0)
