"""Systems of linear inequalities with whole coefficients: a solution with some room, or an exact contradiction."""

from dataclasses import dataclass
from fractions import Fraction
from math import lcm, prod

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array, hstack

from halfseen.arrays import Array

#: Multipliers of a contradiction smaller than this are none; their denominators are at most so large.
_NONE = 1e-9
_DENOMINATOR = 100_000
#: Unknowns may be logarithms, and many small differences add up: no more room than that they stay about within this.
_WIDEST = 100.0


@dataclass(frozen=True)
class Inequalities:
    """of_unknowns x + of_logs log(sizes) >= 0, or > 0 where strict; the sizes may be unknown as well."""

    of_unknowns: csr_array
    of_logs: csr_array
    strict: Array


@dataclass(frozen=True)
class Attempt:
    """The x that leaves the most room, and the multipliers that show why there is no more."""

    x: Array
    room: float
    multipliers: Array


def solution(system: Inequalities, sizes: Array | None) -> Array | None:
    """An x that solves the system up to rounding, or None if it is proved that there is none.

    By Motzkin's theorem there is no solution exactly if some non-negative multiples of the inequalities add up to
    0 x >= c  with c > 0, or c = 0 and a strict one among them. The multipliers of the linear program that looks for
    the most room are such multiples; they are taken for fractions, and the sum is made exactly.
    """
    every = np.ones(system.strict.size, dtype=bool)
    for with_room in (every, system.strict):  # the latter may find a solution on an edge that belongs to it
        attempt = _roomiest(system, sizes, with_room)
        if attempt.room > 0:
            return attempt.x
        if _contradicts(system, sizes, attempt.multipliers):
            return None
    return attempt.x


def _roomiest(system: Inequalities, sizes: Array | None, with_room: Array) -> Attempt:
    """Maximize the room t in  of_unknowns x + of_logs log(sizes) >= t  (0 where nothing asks for room), t <= `most`."""
    room = csr_array(-with_room.astype(float)[:, None])
    known = np.zeros(system.strict.size) if sizes is None else system.of_logs @ _logs(sizes)
    unknown = [system.of_unknowns, system.of_logs] if sizes is None else [system.of_unknowns]
    left = hstack([*unknown, room], format="csr")
    goal = np.zeros(left.shape[1])
    goal[-1] = -1.0
    most = min(1.0, _WIDEST / goal.size)
    bounds = [(None, None)] * (goal.size - 1) + [(None, most)]
    found = linprog(goal, A_ub=-left, b_ub=known, bounds=bounds, method="highs-ds")
    return Attempt(found.x[: system.of_unknowns.shape[1]], float(found.x[-1]), -found.ineqlin.marginals)


def _logs(sizes: Array) -> Array:
    """Logarithms, or 0 for those of 0, which no inequality speaks of."""
    return np.log(sizes, out=np.zeros(sizes.shape), where=sizes > 0)


def _contradicts(system: Inequalities, sizes: Array | None, multipliers: Array) -> bool:
    """Whether these multiples of the inequalities add up to what can't be, in exact arithmetic."""
    used = np.flatnonzero(multipliers > _NONE)
    if not used.size:
        return False
    shares = [Fraction(each).limit_denominator(_DENOMINATOR) for each in (multipliers[used] / multipliers[used].max())]
    whole = lcm(*(share.denominator for share in shares))
    times = np.array([int(share * whole) for share in shares], dtype=object)
    if np.any(_summed(system.of_unknowns[used], times)):
        return False
    strict = bool(system.strict[used].any())
    powers = _summed(system.of_logs[used], times)
    if sizes is None:
        return strict and not np.any(powers)
    product = prod((Fraction(size) ** int(power) for size, power in zip(sizes, powers, strict=True)), start=Fraction(1))
    return product < 1 or (product == 1 and strict)


def _summed(rows: csr_array, times: Array) -> Array:
    """The sum of whole multiples of rows of whole numbers, without rounding."""
    total = np.zeros(rows.shape[1], dtype=object)
    entries = rows.tocoo()
    row, column = entries.coords
    np.add.at(total, column, times[row] * entries.data.astype(int).astype(object))
    return total
