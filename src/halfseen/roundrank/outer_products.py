"""Round-rank one: does an outer product u v' round to given levels? Decided exactly.

*Signs.* Let z be the level of 0, a the first threshold from 0 on and b the size of the last below it. Where levels are
above z, u_i v_j > a >= 0; where they are below, u_i v_j <= -b < 0; where they are z, -b < u_i v_j <= a. So a cell above
z asks its row and column for equal signs, a cell below for opposite ones; rows and columns without such cells can be 0.
Rows and columns that are linked by such cells, directly or through others, form a component, and all its signs follow
from one. Between two components all cells are at level z. Take a cell (i, j) of one and (k, l) of the other, neither at
z. From

    (u_i v_j) (u_k v_l) = (u_i v_l) (u_k v_j)

follows that both are above z, or both below: else the left is larger than a b in size, and the right, one factor of
which is positive and one negative, smaller. If both are above, the left is larger than a^2, so that the factors on the
right can't both be positive: u_i and u_k have opposite signs. If both are below, the left is at least b^2, and the
factors on the right can't both be negative: again u_i and u_k have opposite signs. So there are two components at most,
both wholly above or both wholly below, of opposite signs; three would need three signs. At most one choice of signs is
left, up to the sign of all.

*Sizes.* Two rows of one sign that differ in a column differ in size, and in one direction only: with s_i the sign of
u_i and t_j that of v_j, the size of a cell rises with s_i t_j y. So rows of one sign are ordered by size, and so are
columns, or two of them contradict each other. A positive cell at level y, and a negative one, must have

    log tau_y < a_i + b_j <= log tau_{y+1},         log |tau_{y+1}| <= a_i + b_j < log |tau_y|

a and b the logarithms of the sizes; nothing below if that threshold is 0 or of the other sign, nothing where there is
no threshold. With rows and columns in the order of their sizes, a cell's inequality follows from that of the cell
before it (or after it) in its row or its column, if that has its level and sign: only the corners of the levels count.
This system of linear inequalities has a solution or an exact contradiction (Motzkin's theorem).

Where thresholds are free, this is done for every level that 0 can be at, and their logarithms are unknown as well.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import lcm, prod

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_array, csr_array, hstack, vstack
from scipy.sparse.csgraph import breadth_first_order, connected_components

from halfseen.arrays import Array
from halfseen.roundrank.exact_rounding import Certificate, RoundingProblem, grf

#: Logarithms of sizes are scaled to this range, if the thresholds are free to follow.
_MAX_LOG = 30.0
#: Multipliers of a contradiction smaller than this count as 0; the others become fractions of at most this denominator.
_ZERO = 1e-9
_DENOMINATOR = 100_000
#: Unknowns are logarithms, and many small margins add up: the margin is limited so that they stay about within this.
_MAX_SPREAD = 100.0


def decide_outer_product(problem: RoundingProblem) -> tuple[Certificate | None, bool]:
    """A certificate that an outer product rounds to the levels, if there is one, and whether that is proved impossible.

    Levels must not repeat rows or columns, nor be all at the level of 0. It is decided unless some product must be
    equal to a threshold, and is not in floating point: then there is neither. A strict problem has the threshold 0:
    signs without 0 are those of an outer product exactly if they are one themselves.
    """
    if problem.strict:
        signs = np.where(problem.levels > 0, 1.0, -1.0)
        u, v = signs[:, :1], signs[:1].T * signs[0, 0]
        certificate = problem.certify(u, v, "The signs of Y are an outer product.")
        return certificate, certificate is None
    cases: list[tuple[Array, int, Array | None]]
    if problem.thresholds is not None:
        cases = [(problem.levels, int(grf(0.0, problem.thresholds)), np.abs(problem.thresholds))]
    else:  # one case for each level that 0 can be at
        present, codes = np.unique(problem.levels, return_inverse=True)
        cases = [(codes.reshape(problem.levels.shape), level, None) for level in range(present.size)]
    impossible = True
    for levels, level_of_zero, sizes in cases:
        factors = _candidate(levels, level_of_zero, sizes)
        if factors is None:
            continue
        impossible = False  # as far as is known
        for u, v in (factors, *_on_thresholds(*factors, sizes)):
            if certificate := problem.certify(u[:, None], v[:, None], "An outer product rounds to Y."):
                return certificate, False
    return None, impossible


def _candidate(levels: Array, level_of_zero: int, sizes: Array | None) -> tuple[Array, Array] | None:
    """u and v that round to the levels up to rounding errors; None if it is proved that there are none.

    `sizes` are those of the thresholds, or None for free ones.
    """
    signs = factor_signs(levels, level_of_zero)
    if signs is None:
        return None
    u, v = (sign.astype(np.float64) for sign in signs)
    rows, columns = _size_order(levels, u, v), _size_order(levels.T, v, u)
    if rows is None or columns is None:
        return None
    n_thresholds = int(levels.max()) if sizes is None else sizes.size
    ordered = levels[np.ix_(rows, columns)]
    system = _inequalities(ordered, u[rows], v[columns], level_of_zero, n_thresholds, sizes)
    logs = None if system is None else solve_inequalities(system, sizes)
    if logs is None:
        return None
    if sizes is None:  # free thresholds can be raised to any power
        logs = logs * (_MAX_LOG / max(float(np.abs(logs).max()), _MAX_LOG))
    with np.errstate(over="ignore"):
        u[rows] *= np.exp(logs[: rows.size])
        v[columns] *= np.exp(logs[rows.size :])
    return u, v


def _on_thresholds(u: Array, v: Array, sizes: Array | None) -> Iterator[tuple[Array, Array]]:
    """u as powers of 2 and v as powers of 2 times a given threshold: cells that must be equal to it then can be."""

    def power_of_two(numbers: Array) -> Array:
        logs = np.log2(np.abs(numbers), out=np.zeros(numbers.shape), where=numbers != 0)
        return np.sign(numbers) * 2.0 ** np.rint(logs)

    for size in () if sizes is None else sizes[sizes > 0]:
        with np.errstate(over="ignore", invalid="ignore"):
            pair = power_of_two(u), power_of_two(v / size) * size
        yield pair


def factor_signs(levels: Array, level_of_zero: int) -> tuple[Array, Array] | None:
    """Signs -1, 0, 1 of the rows and the columns of an outer product; None if no signs are possible."""
    cell_signs = np.sign(levels - level_of_zero)
    n_rows = len(levels)
    rows, columns = np.nonzero(cell_signs)
    nodes = sum(levels.shape)
    graph = coo_array((np.ones(rows.size), (rows, n_rows + columns)), shape=(nodes, nodes)).tocsr()
    _, component_of = connected_components(graph, directed=False)
    components = np.unique(component_of[rows])
    if len(components) > 2 or (len(components) == 2 and np.unique(cell_signs[rows, columns]).size > 1):
        return None
    signs = np.zeros(nodes, dtype=np.intp)
    for component, first_sign in zip(components, (1, -1), strict=False):
        # from a first row on, every node gets the sign that the cell between it and its predecessor asks for
        first_row = int(rows[component_of[rows] == component][0])
        order, before = breadth_first_order(graph, first_row, directed=False)
        signs[first_row] = first_sign
        for node in order[1:]:
            row, column = sorted((node, before[node]))
            signs[node] = signs[before[node]] * cell_signs[row, column - n_rows]
    u, v = signs[:n_rows], signs[n_rows:]
    return (u, v) if np.all((u[rows] * v[columns]) == cell_signs[rows, columns]) else None


def _size_order(levels: Array, own_signs: Array, other_signs: Array) -> Array | None:
    """Rows that are not 0 by sign, then by size, the smallest first; None if two rows contradict each other."""
    signed_levels = levels * np.outer(own_signs, other_signs)
    orders = []
    for sign in (1, -1):
        rows = np.flatnonzero(own_signs == sign)
        rows = rows[np.argsort(signed_levels[rows].sum(axis=1))]
        if np.any(np.diff(signed_levels[rows], axis=0) < 0):
            return None
        orders.append(rows)
    return np.concatenate(orders)


@dataclass(frozen=True)
class Inequalities:
    """of_unknowns x + of_logs log(sizes) >= 0, or > 0 where strict; the sizes may be unknown as well."""

    of_unknowns: csr_array
    of_logs: csr_array
    strict: Array


def _inequalities(
    levels: Array, row_signs: Array, column_signs: Array, level_of_zero: int, n_thresholds: int, sizes: Array | None
) -> Inequalities | None:
    """The inequalities of the corners, for thresholds of given sizes or free ones (None); None for a contradiction.

    Rows and columns of one sign are in the order of their sizes. Free thresholds can be raised a little: no cell need
    be equal to one, and none need be 0.
    """
    signs, free = np.outer(row_signs, column_signs), sizes is None
    positive = signs > 0
    below, above = np.where(positive, levels, levels + 1), np.where(positive, levels + 1, levels)
    bounded_below = np.where(positive, below > level_of_zero, below <= level_of_zero)
    bounded_above = np.where(positive, above <= n_thresholds, above >= 1)
    # number of the threshold that is 0, counted from 1, or 0 if none is
    zero = int(np.argmin(sizes)) + 1 if sizes is not None and np.any(sizes == 0) else 0
    if np.any(positive & bounded_above & (above == zero)):
        return None  # no positive number is at most 0
    # corners: cells before which, or after which, there is none of their level and sign, in neither direction
    signed_levels = levels * signs
    same_rows = (signed_levels[1:] == signed_levels[:-1]) & (row_signs[1:] == row_signs[:-1])[:, None]
    same_columns = (signed_levels[:, 1:] == signed_levels[:, :-1]) & (column_signs[1:] == column_signs[:-1])
    first, last = np.ones((2, *levels.shape), dtype=bool)
    first[1:] &= ~same_rows
    last[:-1] &= ~same_rows
    first[:, 1:] &= ~same_columns
    last[:, :-1] &= ~same_columns
    n_unknowns = sum(levels.shape)
    blocks = [
        _of_cells(bounded_below & first & (below != zero), below, 1, n_thresholds, positive | free),
        _of_cells(bounded_above & last, above, -1, n_thresholds, ~positive | free),
        _of_order(row_signs, 0, n_unknowns, n_thresholds),
        _of_order(column_signs, row_signs.size, n_unknowns, n_thresholds),
    ]
    return Inequalities(
        vstack([block.of_unknowns for block in blocks], format="csr"),
        vstack([block.of_logs for block in blocks], format="csr"),
        np.concatenate([block.strict for block in blocks]),
    )


def _of_cells(which: Array, thresholds: Array, sign: int, n_thresholds: int, strict: Array) -> Inequalities:
    """sign (a_i + b_j - log of the cell's threshold) > 0, or >= 0, for some cells; thresholds count from 1."""
    rows, columns = np.nonzero(which)
    count, number = rows.size, np.arange(rows.size)
    unknown = np.concatenate([rows, which.shape[0] + columns])
    of_unknowns = coo_array((np.full(2 * count, sign), (np.tile(number, 2), unknown)), shape=(count, sum(which.shape)))
    of_logs = coo_array((np.full(count, -sign), (number, thresholds[rows, columns] - 1)), shape=(count, n_thresholds))
    return Inequalities(csr_array(of_unknowns), csr_array(of_logs), strict[rows, columns])


def _of_order(signs: Array, offset: int, n_unknowns: int, n_thresholds: int) -> Inequalities:
    """Each row of a sign (or column, whose unknowns begin at `offset`) is larger than the one before."""
    smaller = np.flatnonzero(signs[1:] == signs[:-1]) + offset
    count, number = smaller.size, np.arange(smaller.size)
    unknown = np.concatenate([smaller, smaller + 1])
    of_unknowns = coo_array((np.repeat([-1, 1], count), (np.tile(number, 2), unknown)), shape=(count, n_unknowns))
    of_logs = csr_array((count, n_thresholds), dtype=np.int64)
    return Inequalities(csr_array(of_unknowns), of_logs, np.ones(count, dtype=bool))


def solve_inequalities(system: Inequalities, sizes: Array | None) -> Array | None:
    """An x that solves the system up to rounding, or None if it is proved that there is none.

    By Motzkin's theorem there is no solution exactly if some non-negative multiples of the inequalities add up to
    0 x >= c  with c > 0, or c = 0 and a strict one among them. The multipliers of the linear program that maximizes the
    margin t in  of_unknowns x + of_logs log(sizes) >= t  are such multiples; they are turned into fractions, and the
    sum is computed exactly.
    """
    n_unknowns = system.of_unknowns.shape[1]
    if sizes is None:
        known, unknown = np.zeros(system.strict.size), [system.of_unknowns, system.of_logs]
    else:  # no inequality has the logarithm of a size 0
        known = system.of_logs @ np.log(sizes, out=np.zeros(sizes.shape), where=sizes > 0)
        unknown = [system.of_unknowns]
    every = np.ones(system.strict.size, dtype=bool)
    for with_margin in (every, system.strict):  # the latter may find a solution on an edge that belongs to it
        left = hstack([*unknown, csr_array(-with_margin.astype(float)[:, None])], format="csr")
        objective = np.zeros(left.shape[1])
        objective[-1] = -1.0
        limit = min(1.0, _MAX_SPREAD / objective.size)
        bounds = [(None, None)] * (objective.size - 1) + [(None, limit)]
        optimum = linprog(objective, A_ub=-left, b_ub=known, bounds=bounds, method="highs-ds")
        if float(optimum.x[-1]) > 0:
            break
        if _is_contradiction(system, sizes, -optimum.ineqlin.marginals):
            return None
    return np.asarray(optimum.x[:n_unknowns])


def _is_contradiction(system: Inequalities, sizes: Array | None, multipliers: Array) -> bool:
    """Whether these multiples of the inequalities add up to a contradiction, in exact arithmetic."""
    used = np.flatnonzero(multipliers > _ZERO)
    if not used.size:
        return False
    shares = [Fraction(each).limit_denominator(_DENOMINATOR) for each in (multipliers[used] / multipliers[used].max())]
    denominator = lcm(*(share.denominator for share in shares))
    times = np.array([int(share * denominator) for share in shares], dtype=object)

    def exact_sum(rows: csr_array) -> Array:
        total = np.zeros(rows.shape[1], dtype=object)
        entries = rows.tocoo()
        row, column = entries.coords
        np.add.at(total, column, times[row] * entries.data.astype(int).astype(object))
        return total

    if np.any(exact_sum(system.of_unknowns[used])):
        return False
    strict = bool(system.strict[used].any())
    powers = exact_sum(system.of_logs[used])
    if sizes is None:
        return strict and not np.any(powers)
    product = prod((Fraction(size) ** int(power) for size, power in zip(sizes, powers, strict=True)), start=Fraction(1))
    return product < 1 or (product == 1 and strict)
