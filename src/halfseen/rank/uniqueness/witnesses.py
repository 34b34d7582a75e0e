"""Other matrices of the same rank that agree with all seen levels, and how far they can push an unseen cell.

With the rows U fixed, the factor v of column j may be anything in the polytope

    tau_{y_ij} < U_i v <= tau_{y_ij + 1}   for the seen i     (the intervals of Eq. 3.4)

and likewise u of row i with V fixed. An unseen cell (i, j) is in the conditions of neither polytope, so that u and v
may move together: x = u' v is pushed by linear programs over v and over u in turns. A program over v alone is what
Eq. 3.7 asks for, with the best r seen cells instead of any r: they are those of its optimal basis.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from halfseen.arrays import Array
from halfseen.rank.uniqueness.exact_levels import exact_levels
from halfseen.rank.uniqueness.programs import Optimum, Program, solved

#: How far from the ends of their intervals cells are kept, as a part of what the thresholds span.
_ROOM = 1e-7
#: How much of the way to an optimum is gone, if the whole way leads out of an interval.
_SHARES = (1.0, 1 - 1e-6, 1 - 1e-3)
#: How often columns and rows are set right in turns.
_ROUNDS = 5


@dataclass(frozen=True)
class Side:
    """The rows of a matrix (or its columns), each with a factor that may move while those of the other side stay."""

    own: Array
    other: Array
    codes: csr_array
    """The levels that were seen, plus 1, own side first."""
    thresholds: Array
    moves: Array
    """Which columns of the factors may move: not the 1 that belongs to the other side's biases."""

    @property
    def span(self) -> float:
        """The unit of x."""
        return float(np.ptp(self.thresholds) or np.abs(self.thresholds).max() or 1.0)

    def seen(self, place: int) -> tuple[Array, Array]:
        """Where on the other side cells are seen, and their levels."""
        cells = slice(*self.codes.indptr[place : place + 2])
        return self.codes.indices[cells], self.codes.data[cells] - 1

    def missed(self) -> Array:
        """The places of this side where a seen cell has not the level of the factors, once for each such cell."""
        levels = exact_levels(self.own[self.place_of_cell], self.other[self.codes.indices], self.thresholds)
        return self.place_of_cell[levels != self.codes.data - 1]

    @property
    def place_of_cell(self) -> Array:
        """The place on this side of each seen cell."""
        return np.repeat(np.arange(len(self.own)), np.diff(self.codes.indptr))

    def pushed(self, places: Array, goals: Array) -> Array:
        """The factors at `places` moved so that <goal, factor> is as large as the seen cells allow."""
        programs = [self._push(place, goal) for place, goal in zip(places, goals, strict=True)]
        moved = [self._nearly(place, optimum) for place, optimum in zip(places, solved(programs), strict=True)]
        return np.array(moved).reshape(goals.shape)

    def _push(self, place: int, goal: Array) -> Program:
        """max goal' v in the polytope, but no further than beyond all thresholds, because it may be unbounded."""
        normals, lower, upper = self._polytope(place)
        start = self.own[place]
        x = normals @ start
        beyond = max(float(np.abs(self.thresholds).max()), abs(float(goal @ start))) / self.span + 1
        lower, upper = np.minimum(lower + _ROOM, x), np.maximum(upper - _ROOM, x)  # so that the start itself is inside
        goal = goal / self.span
        return self._program(place, goal, np.vstack([normals, -normals, goal]), [upper, -lower, [beyond]])

    def centred(self, places: Array) -> Array:
        """The factors at `places` for which the seen cell nearest to an end of its interval, or beyond, is best off."""
        found = zip(places, solved([self._centring(place) for place in places]), strict=True)
        return np.array([self._at(place, optimum) for place, optimum in found])

    def _centring(self, place: int) -> Program:
        """max t  with  lower + t <= U v <= upper - t,  t <= 1."""
        normals, lower, upper = self._polytope(place)
        plain = self._program(place, np.zeros(self.own.shape[1]), np.vstack([normals, -normals]), [upper, -lower])
        left = np.pad(plain.left, ((0, 1), (0, 1)), constant_values=1.0)
        left[-1, :-1] = 0.0
        return Program(np.append(plain.goal, 1.0), left, np.append(plain.right, 1.0))

    def _polytope(self, place: int) -> tuple[Array, Array, Array]:
        """lower <= normals v <= upper  for the factor v at a place, in units of what the thresholds span."""
        near, levels = self.seen(place)
        edges = np.concatenate([[-np.inf], self.thresholds, [np.inf]]) / self.span
        return self.other[near] / self.span, edges[levels], edges[levels + 1]

    def _program(self, place: int, goal: Array, left: Array, right: list[Any]) -> Program:
        """For the columns that may move: what the others contribute is brought to the right."""
        held = np.concatenate(right) - left @ (self.own[place] * ~self.moves)
        bounded = np.isfinite(held)
        return Program(goal[self.moves], left[bounded][:, self.moves], held[bounded])

    def _at(self, place: int, optimum: Optimum | None) -> Array:
        """The factor at an optimum; as it was if there is none."""
        factor: Array = self.own[place].copy()
        if optimum is not None:
            factor[self.moves] = optimum.z[: np.count_nonzero(self.moves)]
        return factor

    def _nearly(self, place: int, optimum: Optimum | None) -> Array:
        """The factor at an optimum, or on the way to it, that rounds to all seen levels for sure; else as it was."""
        start, target = self.own[place], self._at(place, optimum)
        on_the_way = (start + share * (target - start) for share in _SHARES)
        return next((factor for factor in on_the_way if self._fits(place, factor)), start)

    def _fits(self, place: int, factor: Array) -> bool:
        near, levels = self.seen(place)
        found = exact_levels(np.broadcast_to(factor, (near.size, factor.size)), self.other[near], self.thresholds)
        return bool(np.all(found == levels))


def mended(rows: Side, columns: Side) -> tuple[Side, Side]:
    """The same factors, with rows and columns moved where they miss seen cells, to set that right, if they can."""
    for _ in range(_ROUNDS):
        for turned in (False, True):
            near, far = (rows, columns) if turned else (columns, rows)
            places = np.unique(near.missed())
            if not places.size:
                return rows, columns
            own = near.own.copy()
            own[places] = near.centred(places)
            near, far = replace(near, own=own), replace(far, other=own)
            rows, columns = (near, far) if turned else (far, near)
    return rows, columns


def reached(rows: Side, columns: Side, u: Array, i: Array) -> tuple[Array, Array]:
    """The lowest and the highest level found at each cell (u, i) when its row and its column move, in both orders."""
    ways = np.repeat([-1.0, 1.0], u.size)[:, None]
    u, i = np.tile(u, 2), np.tile(i, 2)
    W, H = rows.own[u], columns.own[i]
    far_H, far_W = columns.pushed(i, ways * W), rows.pushed(u, ways * H)
    ends = [(W, H), (rows.pushed(u, ways * far_H), far_H), (far_W, columns.pushed(i, ways * far_W))]
    levels = np.array([exact_levels(*factors, rows.thresholds) for factors in ends]).reshape(len(ends), 2, -1)
    return levels[:, 0].min(axis=0), levels[:, 1].max(axis=0)
