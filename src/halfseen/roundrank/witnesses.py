"""Other matrices of the same rank that agree with all seen levels, and how far they can push an unseen cell.

With the rows U fixed, the factor v of column j may be anything in the polytope

    tau_{y_ij} < U_i v <= tau_{y_ij + 1}   for the seen i     (the intervals of Eq. 3.4)

and likewise u of row i with V fixed. An unseen cell (i, j) is in the conditions of neither polytope, so that u and v
may move together: x = u' v is pushed by linear programs over v and over u in turns. A program over v alone is what
Eq. 3.7 asks for, with the best r seen cells instead of any r: they are those of its optimal basis.

From a fit, row and column of a cell may have little room. Elsewhere they have more: a random walk among the matrices
that agree with all seen levels (hit and run, all columns and then all rows at once) visits other places.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.random import RandomState
from scipy.optimize import linprog
from scipy.sparse import block_diag, csr_array

from halfseen.arrays import Array
from halfseen.roundrank.exact_rounding import exact_levels

#: Distance at which cells are kept from the ends of their intervals, relative to the span of the thresholds.
_MARGIN = 1e-7
#: Shares of the way to an optimum that are tried in turn, if the whole way leads out of an interval.
_STEP_SHARES = (1.0, 1 - 1e-6, 1 - 1e-3)
#: Rounds of repair, of columns and then rows.
_REPAIR_ROUNDS = 5
#: Share of a chord that the walk uses, and steps between two attempts to push the cells that have not changed yet.
_CHORD_SHARE = 0.999
_PUSH_INTERVAL = 25
#: A sum of coefficients from here on counts as infinite: the row is no combination of the seen ones.
_INFINITE = 1e6
#: Coefficients smaller than this count as 0.
_ZERO = 1e-9
#: Coefficients that are given to the solver of linear programs in one call, and its tolerance.
_BATCH_SIZE = 50_000
_TOLERANCE = 1e-10


@dataclass(frozen=True)
class LinearProgram:
    """max objective' z  with  A z <= b."""

    objective: Array
    A: Array
    b: Array


@dataclass(frozen=True)
class Optimum:
    """A z where the objective is largest, and the multipliers of the conditions:  A' multipliers = objective."""

    z: Array
    multipliers: Array


def solve_linear_programs(programs: Sequence[LinearProgram]) -> list[Optimum | None]:
    """The optimum of each, None for those that have none; they are solved side by side in few large programs."""
    optima: list[Optimum | None] = []
    start = 0
    while start < len(programs):
        stop, size = start + 1, programs[start].A.size
        while stop < len(programs) and size + programs[stop].A.size <= _BATCH_SIZE:
            size += programs[stop].A.size
            stop += 1
        optima += _solve_together(programs[start:stop])
        start = stop
    return optima


def _solve_together(programs: Sequence[LinearProgram]) -> list[Optimum | None]:
    """One program without an optimum spoils those it is solved with: then halves are solved separately."""
    result = linprog(
        -np.concatenate([program.objective for program in programs]),
        A_ub=csr_array(block_diag([program.A for program in programs])),
        b_ub=np.concatenate([program.b for program in programs]), bounds=(None, None),
        method="highs-ds", options={"primal_feasibility_tolerance": _TOLERANCE},
    )  # fmt: skip
    if result.status == 0:
        unknowns = np.cumsum([program.objective.size for program in programs])[:-1]
        conditions = np.cumsum([program.b.size for program in programs])[:-1]
        pairs = zip(np.split(result.x, unknowns), np.split(-result.ineqlin.marginals, conditions), strict=True)
        return [Optimum(z, multipliers) for z, multipliers in pairs]
    if len(programs) == 1:
        return [None]
    half = len(programs) // 2
    return _solve_together(programs[:half]) + _solve_together(programs[half:])


@dataclass(frozen=True)
class Side:
    """The rows of a matrix (or its columns), each with a factor that may move while those of the other side stay.

    `codes` holds the seen levels, plus 1; `movable` is the mask of the columns of the factors that may move: not the 1
    that belongs to the other side's biases.
    """

    own: Array
    other: Array
    codes: csr_array
    thresholds: Array
    movable: Array

    @property
    def span(self) -> float:
        """The unit of x."""
        return float(np.ptp(self.thresholds) or np.abs(self.thresholds).max() or 1.0)

    @property
    def row_of_cell(self) -> Array:
        """The row of each seen cell."""
        return np.repeat(np.arange(len(self.own)), np.diff(self.codes.indptr))

    def seen(self, row: int) -> tuple[Array, Array]:
        """Positions on the other side of the seen cells of a row, and their levels."""
        cells = slice(*self.codes.indptr[row : row + 2])
        return self.codes.indices[cells], self.codes.data[cells] - 1

    def violations(self) -> Array:
        """The rows where a seen cell does not have the level of the factors, once for each such cell."""
        levels = exact_levels(self.own[self.row_of_cell], self.other[self.codes.indices], self.thresholds)
        return self.row_of_cell[levels != self.codes.data - 1]

    def maximize(self, rows: Array, objectives: Array) -> Array:
        """The factors of `rows` moved so that <objective, factor> is as large as the seen cells allow.

        No further than beyond all thresholds, because it may be unbounded. A factor moves only as far as all seen
        levels are kept, in exact arithmetic.
        """
        programs = []
        for row, objective in zip(rows, objectives, strict=True):
            normals, lower, upper = self._polytope(row)
            start = self.own[row]
            x = normals @ start
            limit = max(float(np.abs(self.thresholds).max()), abs(float(objective @ start))) / self.span + 1
            lower, upper = np.minimum(lower + _MARGIN, x), np.maximum(upper - _MARGIN, x)  # the start itself is inside
            goal = objective / self.span
            programs.append(self._program(row, goal, np.vstack([normals, -normals, goal]), [upper, -lower, [limit]]))
        factors = []
        for row, optimum in zip(rows, solve_linear_programs(programs), strict=True):
            start, target = self.own[row], self._factor_at(row, optimum)
            near, levels = self.seen(row)
            for share in _STEP_SHARES:
                factor = start + share * (target - start)
                repeated = np.broadcast_to(factor, (near.size, factor.size))
                if np.all(exact_levels(repeated, self.other[near], self.thresholds) == levels):
                    break
            else:
                factor = start
            factors.append(factor)
        return np.array(factors).reshape(objectives.shape)

    def center(self, rows: Array) -> Array:
        """max t  with  lower + t <= U v <= upper - t,  t <= 1,  for each of `rows`: the factors v.

        The seen cell nearest to an end of its interval, or furthest beyond it, is then as far inside as possible.
        """
        programs = []
        for row in rows:
            normals, lower, upper = self._polytope(row)
            plain = self._program(row, np.zeros(self.own.shape[1]), np.vstack([normals, -normals]), [upper, -lower])
            A = np.pad(plain.A, ((0, 1), (0, 1)), constant_values=1.0)
            A[-1, :-1] = 0.0
            programs.append(LinearProgram(np.append(plain.objective, 1.0), A, np.append(plain.b, 1.0)))
        optima = zip(rows, solve_linear_programs(programs), strict=True)
        return np.array([self._factor_at(row, optimum) for row, optimum in optima])

    def _polytope(self, row: int) -> tuple[Array, Array, Array]:
        """lower <= normals v <= upper  for the factor v of a row, in units of the span of the thresholds."""
        near, levels = self.seen(row)
        edges = np.concatenate([[-np.inf], self.thresholds, [np.inf]]) / self.span
        return self.other[near] / self.span, edges[levels], edges[levels + 1]

    def _program(self, row: int, objective: Array, A: Array, b: list[Any]) -> LinearProgram:
        """For the columns that may move: what the others contribute is moved to the right side."""
        right = np.concatenate(b) - A @ (self.own[row] * ~self.movable)
        finite = np.isfinite(right)
        return LinearProgram(objective[self.movable], A[finite][:, self.movable], right[finite])

    def _factor_at(self, row: int, optimum: Optimum | None) -> Array:
        """The factor at an optimum; unchanged if there is none."""
        factor: Array = self.own[row].copy()
        if optimum is not None:
            factor[self.movable] = optimum.z[: np.count_nonzero(self.movable)]
        return factor


def repair(rows: Side, columns: Side) -> tuple[Side, Side]:
    """The same factors, with rows and columns that violate seen levels moved so that they don't, if they can."""
    for _ in range(_REPAIR_ROUNDS):
        for of_rows in (False, True):
            near, far = (rows, columns) if of_rows else (columns, rows)
            violated = np.unique(near.violations())
            if not violated.size:
                return rows, columns
            own = near.own.copy()
            own[violated] = near.center(violated)
            near, far = replace(near, own=own), replace(far, other=own)
            rows, columns = (near, far) if of_rows else (far, near)
    return rows, columns


def attained_levels(rows: Side, columns: Side, u: Array, i: Array) -> tuple[Array, Array]:
    """The lowest and the highest level at each cell (u, i) when its row and its column move, in both orders."""
    signs = np.repeat([-1.0, 1.0], u.size)[:, None]
    u, i = np.tile(u, 2), np.tile(i, 2)
    W, H = rows.own[u], columns.own[i]
    far_H, far_W = columns.maximize(i, signs * W), rows.maximize(u, signs * H)
    ends = [(W, H), (rows.maximize(u, signs * far_H), far_H), (far_W, columns.maximize(i, signs * far_W))]
    levels = np.array([exact_levels(*factors, rows.thresholds) for factors in ends]).reshape(len(ends), 2, -1)
    return levels[:, 0].min(axis=0), levels[:, 1].max(axis=0)


# The random walk.


def attained_on_walk(
    rows: Side, columns: Side, u: Array, i: Array, steps: int, random: RandomState
) -> tuple[Array, Array]:
    """The lowest and highest levels at cells (u, i) on a walk, and from places on it by moving row and column."""
    lowest = exact_levels(rows.own[u], columns.own[i], rows.thresholds)
    highest = lowest.copy()
    for step, (near, far) in enumerate(hit_and_run(rows, columns, steps, random), 1):
        remaining = np.flatnonzero(lowest == highest)
        if not remaining.size:
            break
        here = exact_levels(near.own[u], far.own[i], rows.thresholds)
        lowest, highest = np.minimum(lowest, here), np.maximum(highest, here)
        if step % _PUSH_INTERVAL == 0:
            low, high = attained_levels(near, far, u[remaining], i[remaining])
            lowest[remaining] = np.minimum(lowest[remaining], low)
            highest[remaining] = np.maximum(highest[remaining], high)
    return lowest, highest


def hit_and_run(rows: Side, columns: Side, steps: int, random: RandomState) -> Iterator[tuple[Side, Side]]:
    """Rows and columns after each step of a hit-and-run walk."""
    lengths = [float(np.sqrt(np.mean(side.own**2))) for side in (rows, columns)]
    for _ in range(steps):
        columns = _random_step(columns, lengths[1], random)
        rows = _random_step(replace(rows, other=columns.own), lengths[0], random)
        columns = replace(columns, other=rows.own)
        yield rows, columns


def _random_step(side: Side, length: float, random: RandomState) -> Side:
    """v + t d  for every row, d a random direction, t anywhere on the chord that the seen cells leave, |t| <= 1.

    A row where rounding would take a cell out of its interval stays.
    """
    direction = length * random.standard_normal(side.own.shape) * side.movable
    # the ends of the chords
    row = side.row_of_cell
    x, slope = (np.einsum("pk,pk->p", each[row], side.other[side.codes.indices]) for each in (side.own, direction))
    edges = np.concatenate([[-np.inf], side.thresholds, [np.inf]])
    slope = np.where(slope == 0, np.finfo(np.float64).tiny, slope)
    with np.errstate(over="ignore"):
        to_lower, to_upper = (edges[side.codes.data - 1] - x) / slope, (edges[side.codes.data] - x) / slope
    low, high = np.full(len(side.own), -1.0), np.full(len(side.own), 1.0)
    np.maximum.at(low, row, np.minimum(to_lower, to_upper))
    np.minimum.at(high, row, np.maximum(to_lower, to_upper))
    low, high = np.minimum(low, 0.0), np.maximum(high, 0.0)
    # a random point on each
    t = low + (high - low) * random.uniform(0.5 - _CHORD_SHARE / 2, 0.5 + _CHORD_SHARE / 2, len(low))
    own = side.own + t[:, None] * direction
    moved = replace(side, own=own)
    back = np.unique(moved.violations())
    own[back] = side.own[back]
    return moved


# The thesis's own conditions for a unique level, with the rows U fixed.


def coefficient_bound(thresholds: Array) -> float:
    """T_min / T_max  (Eq. 3.1, with its constant 1), of the intervals that have two ends; NaN if there are none."""
    lengths = np.diff(thresholds)
    return float(lengths.min() / lengths.max()) if lengths.size else float("nan")


def fixed_row_conditions(columns: Side, W: Array, u: Array, i: Array) -> tuple[Array, Array]:
    """U_i = sum a_k U_{i_k}  over seen cells of the column with the least sum |a_k|, and whether Eq. 3.12 holds.

    These are the thesis's own conditions for a unique level, with the rows U fixed (Theorems 3.1.1 and 3.1.2).
    That least sum is  max U_i v  with  -1 <= U_k v <= 1  for all seen k,  and the a_k are the multipliers: r of them at
    most are other than 0. It is infinite if U_i is no combination of the seen U_k.
    """
    programs = []
    for w, column in zip(W[u], i, strict=True):
        normals = columns.other[columns.seen(column)[0]]
        b = np.append(np.ones(2 * len(normals)), _INFINITE)
        programs.append(LinearProgram(w, np.vstack([normals, -normals, w]), b))
    sums, sufficient = np.full(u.size, np.inf), np.zeros(u.size, bool)
    for cell, optimum in enumerate(solve_linear_programs(programs)):
        w = W[u[cell]]
        if optimum is None or w @ optimum.z > _INFINITE / 2:
            continue
        above, below = np.split(optimum.multipliers[:-1], 2)
        a = above - below
        sums[cell] = np.abs(a).sum()
        sufficient[cell] = _is_sufficient(columns, w, int(i[cell]), np.where(np.abs(a) > _ZERO, a, 0.0))
    return sums, sufficient


def _is_sufficient(columns: Side, w: Array, column: int, a: Array) -> bool:
    """Distance of X_ij from the ends of its interval >= max(sum a_k e_k^sign, |sum a_k e_k^-sign|)   (Eq. 3.12).

    e_k^+ and e_k^- say how far the seen cell k can move up and down in its interval. The lowest and highest intervals
    have one end each; a seen cell in one may move without limit.
    """
    near, levels = columns.seen(column)
    v = columns.own[column]
    x, own = columns.other[near] @ v, float(w @ v)
    edges = np.concatenate([[-np.inf], columns.thresholds, [np.inf]])
    up, down = edges[levels + 1] - x, edges[levels] - x
    level = int(np.searchsorted(columns.thresholds, own, side="left"))
    distance = min(own - edges[level], edges[level + 1] - own)
    used = a != 0
    rise = float(np.sum(a[used] * np.where(a > 0, up, down)[used]))
    fall = float(np.sum(a[used] * np.where(a > 0, down, up)[used]))
    return bool(distance >= max(rise, abs(fall)))
