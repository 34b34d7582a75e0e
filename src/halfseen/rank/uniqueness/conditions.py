"""The thesis's own conditions for a unique level, with the rows U fixed (Theorems 3.1.1 and 3.1.2)."""

from dataclasses import dataclass

import numpy as np

from halfseen.arrays import Array
from halfseen.rank.uniqueness.programs import Program, solved
from halfseen.rank.uniqueness.witnesses import Side

#: A sum of coefficients from here on counts as infinite: the row is no combination of the seen ones.
_INFINITE = 1e6
#: Coefficients smaller than this are none.
_NONE = 1e-9


@dataclass(frozen=True)
class FixedRowConditions:
    """For each cell, what Chapter 3 asks."""

    sums: Array
    """sum |a_k|  of Eq. 3.1, as small as seen cells of the column allow; infinite if U_i is no combination of them."""
    sufficient: Array
    """Whether Eq. 3.12 holds with these a_k."""


def bound_of_sums(thresholds: Array) -> float:
    """T_min / T_max  (Eq. 3.1, with its constant 1), of the intervals that have two ends; NaN if there are none."""
    lengths = np.diff(thresholds)
    return float(lengths.min() / lengths.max()) if lengths.size else float("nan")


def conditions_at(columns: Side, W: Array, u: Array, i: Array) -> FixedRowConditions:
    """U_i = sum a_k U_{i_k}  over seen cells of the column with the least sum |a_k|.

    That least sum is  max U_i v  with  -1 <= U_k v <= 1  for all seen k,  and the a_k are the multipliers: r of them at
    most are other than 0.
    """
    cells = list(zip(u.tolist(), i.tolist(), strict=True))
    found = solved([_least_sum(columns, W[row], column) for row, column in cells])
    sums, sufficient = np.full(u.size, np.inf), np.zeros(u.size, bool)
    for cell, ((row, column), optimum) in enumerate(zip(cells, found, strict=True)):
        if optimum is None or W[row] @ optimum.z > _INFINITE / 2:
            continue
        above, below = np.split(optimum.multipliers[:-1], 2)
        a = above - below
        sums[cell] = np.abs(a).sum()
        sufficient[cell] = _is_sufficient(columns, W[row], column, np.where(np.abs(a) > _NONE, a, 0.0))
    return FixedRowConditions(sums, sufficient)


def _least_sum(columns: Side, goal: Array, column: int) -> Program:
    normals = columns.other[columns.seen(column)[0]]
    right = np.append(np.ones(2 * len(normals)), _INFINITE)
    return Program(goal, np.vstack([normals, -normals, goal]), right)


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
