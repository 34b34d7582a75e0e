"""Rank one: exact bounds on unseen cells, by chains of cells.

With x_ij = u_i v_j the size of a cell is bounded along any path between its row and its column,

    |x_ij| <= |x_il| |x_kj| / |x_kl|,   and so on for longer ones:  upper ends and lower ends in turns.

In logarithms these are differences, log |u_i| - (-log |v_j|), and the best chains are shortest paths. Signs follow from
cells that can't be 0 (parts.py). Where these make one part of all rows and columns no sharper bounds exist. A wanted
cell between two parts is looked at with either sign; of other cells of unknown sign only the larger end is used.

Paths are found in floating point. Each is then multiplied out in fractions.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import NegativeCycleError, johnson

from halfseen.arrays import Array
from halfseen.errors import DataError
from halfseen.rank.uniqueness.intervals import Intervals
from halfseen.rank.uniqueness.parts import Parts

#: Added to the logarithms of open ends, and twice to those of closed ones: of equally long chains one with an open end
#: is found, and rounding makes no cycle negative.
_TIE = 1e-12
#: Distances that are kept at a time.
_DISTANCES_AT_A_TIME = 1 << 22


@dataclass(frozen=True)
class Cells:
    """Cells between row nodes and column nodes, and the intervals they are known to be in."""

    rows: Array
    columns: Array
    known: Intervals
    nodes: int


@dataclass(frozen=True)
class Steps:
    """Bounds on |x| as steps from node to node: from column to row times an upper end, back divided by a lower one."""

    start: Array
    stop: Array
    factor: Array
    divisor: Array
    is_open: Array


@dataclass(frozen=True)
class Bound:
    """A bound on x or |x|, itself excluded where it is open."""

    size: Fraction
    is_open: bool


def proven_levels(
    cells: tuple[Array, Array], known: Intervals, shape: tuple[int, int], thresholds: Array, wanted: tuple[Array, Array]
) -> tuple[Array, Array]:
    """The lowest and highest levels of wanted cells of an outer product whose other cells are in known intervals.

    Parameters
    ----------
    cells, wanted : rows and columns, as positions.
    """
    given = Cells(cells[0], shape[0] + cells[1], known, sum(shape))
    parts = Parts.of(given.rows, given.columns, known, given.nodes)
    u, i = wanted[0], shape[0] + wanted[1]
    levels = _levels_inside(given, parts, thresholds, u, i)
    if levels is None:
        raise DataError(
            "The seen levels must be those of a matrix of rank 1, without noise. Found that no such matrix has all of "
            "them, with these thresholds. Fit with more components."
        )
    for group in _pairs_of_parts(parts, u, i):
        levels[:, group] = _levels_between(given, parts, thresholds, u[group], i[group])
    return levels[0], levels[1]


def _pairs_of_parts(parts: Parts, u: Array, i: Array) -> list[Array]:
    """The cells whose sign is unknown, those between the same two parts together."""
    unknown = np.flatnonzero(parts.signs(u, i) == 0)
    names = np.vstack([parts.names[:, u[unknown]], parts.names[:, i[unknown]]])
    _, pair = np.unique(names, axis=1, return_inverse=True)
    return [unknown[pair.reshape(-1) == each] for each in range(pair.max(initial=-1) + 1)]


def _levels_between(cells: Cells, parts: Parts, thresholds: Array, u: Array, i: Array) -> Array:
    """Whatever cells between two parts can be if they are positive, negative, or 0."""
    each_sign = [parts.joined(int(u[0]), int(i[0]), sign) for sign in (1, -1)]
    levels = [_levels_inside(cells, joined, thresholds, u, i) for joined in each_sign]
    zero = np.full((2, u.size), np.count_nonzero(thresholds < 0))
    possible = np.array([zero, *(one for one in levels if one is not None)])
    return np.array([possible[:, 0].min(axis=0), possible[:, 1].max(axis=0)])


def _levels_inside(cells: Cells, parts: Parts, thresholds: Array, u: Array, i: Array) -> Array | None:
    """(2, cells) the lowest and highest levels inside parts, and anything between them; None for a contradiction."""
    signs = parts.signs(u, i)
    steps = _steps(cells, parts)
    if parts.contradict or np.any(steps.factor <= 0):
        return None
    tau = [Fraction(threshold) for threshold in thresholds.tolist()]
    levels = np.tile([[0], [thresholds.size]], u.size)
    inside = np.flatnonzero(signs)
    try:
        at_most, inverse = (
            _bounds(steps, cells.nodes, *ends) for ends in ((i[inside], u[inside]), (u[inside], i[inside]))
        )
        for cell, above, below in zip(inside, at_most, inverse, strict=True):
            levels[:, cell] = _levels(int(signs[cell]), above, below, tau)
    except NegativeCycleError:
        return None
    return levels


def _steps(cells: Cells, parts: Parts) -> Steps:
    """The steps that cells allow; of a cell with an unknown sign the larger end bounds its size."""
    signs = parts.signs(cells.rows, cells.columns)
    size, other = cells.known.turned(signs < 0), cells.known.turned(signs >= 0)
    larger = (signs == 0) & (other.upper >= size.upper)
    upper = np.where(larger, other.upper, size.upper)
    upper_open = np.where(larger, other.upper_open & ((other.upper > size.upper) | size.upper_open), size.upper_open)
    above, below = np.isfinite(upper), (signs != 0) & (size.lower > 0)
    return Steps(
        np.concatenate([cells.columns[above], cells.rows[below]]),
        np.concatenate([cells.rows[above], cells.columns[below]]),
        np.concatenate([upper[above], np.ones(below.sum())]),
        np.concatenate([np.ones(above.sum()), size.lower[below]]),
        np.concatenate([upper_open[above], size.lower_open[below]]),
    )


def _bounds(steps: Steps, nodes: int, starts: Array, stops: Array) -> Iterator[Bound | None]:
    """The best bound by a chain from each start to its stop; None where there is no chain."""
    weights = np.log(steps.factor) - np.log(steps.divisor) + np.where(steps.is_open, _TIE, 2 * _TIE)
    graph = csr_array((weights, (steps.start, steps.stop)), shape=(nodes, nodes))
    step_of = {pair: step for step, pair in enumerate(zip(steps.start.tolist(), steps.stop.tolist(), strict=True))}
    height = max(1, _DISTANCES_AT_A_TIME // nodes)
    for top in range(0, starts.size, height):
        different, place = np.unique(starts[top : top + height], return_inverse=True)
        before = johnson(graph, indices=different, return_predecessors=True)[1]
        for row, start, stop in zip(place, starts[top : top + height], stops[top : top + height], strict=True):
            yield _along(before[row], int(start), int(stop), step_of, steps)


def _along(before: Array, start: int, stop: int, step_of: dict[tuple[int, int], int], steps: Steps) -> Bound | None:
    """The product of a chain, walked backwards."""
    size, is_open = Fraction(1), False
    while stop != start:
        if before[stop] < 0:
            return None
        step = step_of[int(before[stop]), stop]
        size *= Fraction(float(steps.factor[step])) / Fraction(float(steps.divisor[step]))
        is_open |= bool(steps.is_open[step])
        stop = int(before[stop])
    return Bound(size, is_open)


def _levels(sign: int, at_most: Bound | None, inverse: Bound | None, tau: list[Fraction]) -> tuple[int, int]:
    """The lowest and highest level of x, given its sign, |x| <= at_most and 1 / |x| <= inverse."""
    at_least = Bound(Fraction(0), True) if inverse is None else Bound(1 / inverse.size, inverse.is_open)
    lower = at_least if sign > 0 else _turned(at_most)
    upper = _turned(at_least) if sign < 0 else at_most
    lowest = 0 if lower is None else sum(each < lower.size or (each == lower.size and lower.is_open) for each in tau)
    return lowest, len(tau) if upper is None else sum(each < upper.size for each in tau)


def _turned(bound: Bound | None) -> Bound | None:
    return None if bound is None else Bound(-bound.size, bound.is_open)
