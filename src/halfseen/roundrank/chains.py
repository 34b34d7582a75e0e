"""Rank one: exact bounds on unseen cells, by chains of cells.

With x_ij = u_i v_j the size of a cell is bounded along any path between its row and its column,

    |x_ij| <= |x_il| |x_kj| / |x_kl|,   and so on for longer ones:  upper ends and lower ends alternate.

In logarithms these are differences, log |u_i| - (-log |v_j|), and the best chains are shortest paths. Signs follow from
cells that can't be 0. Where these connect all rows and columns no sharper bounds exist. A requested cell between two
components is examined with either sign; of other cells of unknown sign only the larger end is used.

Paths are found in floating point. Each is then multiplied out with fractions.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import NegativeCycleError, connected_components, johnson

from halfseen.arrays import Array
from halfseen.errors import DataError
from halfseen.roundrank.exact_rounding import Intervals

#: Added to the logarithms of open ends, and twice to those of closed ones: of equally long chains one with an open end
#: is found, and rounding makes no cycle negative.
_TIE = 1e-12
#: Entries of the matrix of distances that is computed at a time.
_BATCH_SIZE = 1 << 22


@dataclass(frozen=True)
class KnownCells:
    """Cells between row nodes and column nodes, and the intervals they are known to be in."""

    rows: Array
    columns: Array
    intervals: Intervals
    n_nodes: int


@dataclass(frozen=True)
class SignComponents:
    """Connected components of rows and columns, as nodes, linked by cells that can't be 0: one sign gives all others.

    Every node is there twice, as it is and negated; a negative cell links one to the other. So there are two `labels`
    of components for each node, and two nodes have the same sign if their first labels are the same, opposite signs if
    the first label of one is the second of the other.
    """

    labels: Array

    @classmethod
    def of(cls, cells: KnownCells) -> "SignComponents":
        rows, columns, known, n = cells.rows, cells.columns, cells.intervals, cells.n_nodes
        # cells of 0 or less are negative between nodes that can't be 0
        nonzero = np.zeros(n, bool)
        nonzero[rows[known.exclude_zero]] = nonzero[columns[known.exclude_zero]] = True
        not_zero = known.exclude_zero | (nonzero[rows] & nonzero[columns])
        positive, negative = not_zero & (known.lower >= 0), not_zero & (known.upper <= 0)
        u = np.concatenate([rows[positive], rows[positive] + n, rows[negative], rows[negative] + n])
        i = np.concatenate([columns[positive], columns[positive] + n, columns[negative] + n, columns[negative]])
        links = coo_array((np.ones(u.size), (u, i)), shape=(2 * n, 2 * n))
        return cls(connected_components(links, directed=False)[1].reshape(2, n))

    @property
    def contradictory(self) -> bool:
        """Whether some node would have to be positive and negative."""
        return bool(np.any(self.labels[0] == self.labels[1]))

    def signs(self, rows: Array, columns: Array) -> Array:
        """The sign of x at cells, 0 where it is not known."""
        same = self.labels[0, rows] == self.labels[0, columns]
        opposite = self.labels[0, rows] == self.labels[1, columns]
        return same.astype(np.intp) - opposite

    def with_sign(self, row: int, column: int, sign: int) -> "SignComponents":
        """The components if the cell of these nodes, of two components, had this sign."""
        labels = self.labels.copy()
        for negated in (0, 1):
            labels[self.labels == self.labels[negated, column]] = self.labels[negated if sign > 0 else 1 - negated, row]
        return SignComponents(labels)


@dataclass(frozen=True)
class Arcs:
    """Bounds on |x| as arcs: from column to row times an upper end, from row to column divided by a lower one."""

    tail: Array
    head: Array
    factor: Array
    divisor: Array
    is_open: Array

    @classmethod
    def of(cls, cells: KnownCells, components: SignComponents) -> "Arcs":
        """The arcs that the cells allow; of a cell with an unknown sign the larger end bounds its size."""
        signs = components.signs(cells.rows, cells.columns)
        size, other = cells.intervals.negated(signs < 0), cells.intervals.negated(signs >= 0)
        larger = (signs == 0) & (other.upper >= size.upper)
        upper = np.where(larger, other.upper, size.upper)
        open_if_larger = other.upper_open & ((other.upper > size.upper) | size.upper_open)
        upper_open = np.where(larger, open_if_larger, size.upper_open)
        above, below = np.isfinite(upper), (signs != 0) & (size.lower > 0)
        return cls(
            np.concatenate([cells.columns[above], cells.rows[below]]),
            np.concatenate([cells.rows[above], cells.columns[below]]),
            np.concatenate([upper[above], np.ones(below.sum())]),
            np.concatenate([np.ones(above.sum()), size.lower[below]]),
            np.concatenate([upper_open[above], size.lower_open[below]]),
        )

    def bounds(self, n_nodes: int, starts: Array, stops: Array) -> Iterator["Bound | None"]:
        """The best bound by a chain from each start to its stop; None where there is no chain."""
        weights = np.log(self.factor) - np.log(self.divisor) + np.where(self.is_open, _TIE, 2 * _TIE)
        graph = csr_array((weights, (self.tail, self.head)), shape=(n_nodes, n_nodes))
        arc_of = {pair: arc for arc, pair in enumerate(zip(self.tail.tolist(), self.head.tolist(), strict=True))}
        height = max(1, _BATCH_SIZE // n_nodes)
        for top in range(0, starts.size, height):
            distinct, inverse = np.unique(starts[top : top + height], return_inverse=True)
            predecessors = johnson(graph, indices=distinct, return_predecessors=True)[1]
            for row, start, stop in zip(inverse, starts[top : top + height], stops[top : top + height], strict=True):
                bound, node, before = Bound(Fraction(1), False), int(stop), predecessors[row]
                while node != start and before[node] >= 0:  # from the stop back to the start
                    arc = arc_of[int(before[node]), node]
                    ratio = Fraction(float(self.factor[arc])) / Fraction(float(self.divisor[arc]))
                    bound = Bound(bound.size * ratio, bound.is_open or bool(self.is_open[arc]))
                    node = int(before[node])
                yield bound if node == start else None


@dataclass(frozen=True)
class Bound:
    """A bound on x or |x|, itself excluded where it is open."""

    size: Fraction
    is_open: bool

    def __neg__(self) -> "Bound":
        return Bound(-self.size, self.is_open)


def rank_one_level_ranges(seen: coo_array, thresholds: Array, u: Array, i: Array) -> tuple[Array, Array]:
    """The lowest and highest levels at cells (u, i) of all outer products with the seen levels, stored plus 1."""
    (rows, columns), (n, m) = seen.coords, seen.shape
    given = KnownCells(rows, n + columns, Intervals.of_levels(seen.data - 1, seen.data - 1, thresholds), n + m)
    components, i = SignComponents.of(given), n + i
    levels = _levels_within(given, components, thresholds, u, i)
    if levels is None:
        raise DataError(
            "The seen levels must be those of a matrix of rank 1, without noise.", remedy="Fit with more components.",
            found="that no such matrix has all of them, with these thresholds",
        )  # fmt: skip
    # cells whose sign is unknown, those between the same two components together: positive, negative, or 0
    unknown = np.flatnonzero(components.signs(u, i) == 0)
    labels = np.vstack([components.labels[:, u[unknown]], components.labels[:, i[unknown]]])
    _, pair_of = np.unique(labels, axis=1, return_inverse=True)
    for pair in range(pair_of.max(initial=-1) + 1):
        group = unknown[pair_of.reshape(-1) == pair]
        possible = [np.full((2, group.size), np.count_nonzero(thresholds < 0))]
        for sign in (1, -1):
            joined = components.with_sign(int(u[group[0]]), int(i[group[0]]), sign)
            with_sign = _levels_within(given, joined, thresholds, u[group], i[group])
            possible += [] if with_sign is None else [with_sign]
        levels[:, group] = np.min(possible, axis=0)[0], np.max(possible, axis=0)[1]
    return levels[0], levels[1]


def _levels_within(
    known: KnownCells, components: SignComponents, thresholds: Array, u: Array, i: Array
) -> Array | None:
    """(2, cells) lowest and highest levels inside components, 0 and N between them; None for a contradiction."""
    signs, arcs = components.signs(u, i), Arcs.of(known, components)
    if components.contradictory or np.any(arcs.factor <= 0):
        return None
    tau = [Fraction(threshold) for threshold in thresholds.tolist()]
    levels = np.tile([[0], [thresholds.size]], u.size)
    inside = np.flatnonzero(signs)
    try:  # |x| <= at_most, 1 / |x| <= inverse
        at_most = list(arcs.bounds(known.n_nodes, i[inside], u[inside]))
        inverse = list(arcs.bounds(known.n_nodes, u[inside], i[inside]))
    except NegativeCycleError:
        return None
    for cell, upper, reciprocal in zip(inside, at_most, inverse, strict=True):
        lower = Bound(Fraction(0), True) if reciprocal is None else Bound(1 / reciprocal.size, reciprocal.is_open)
        low, high = (lower, upper) if signs[cell] > 0 else (None if upper is None else -upper, -lower)
        if low is not None:
            levels[0, cell] = sum(each < low.size or (each == low.size and low.is_open) for each in tau)
        if high is not None:
            levels[1, cell] = sum(each < high.size for each in tau)
    return levels
