"""Does an outer product round to given levels? Decided exactly.

An outer product u v' has signs, of which one choice is left (signs.py), and sizes. Two rows of one sign that differ in
a column differ in size, and in one direction only: with s_i the sign of u_i and t_j that of v_j, the size of a cell
rises with s_i t_j y. So rows of one sign are ordered by size, and so are columns, or two of them contradict each other.
In the logarithms of the sizes everything else is a system of linear inequalities (corners.py), which has a solution
or an exact contradiction (inequalities.py).

Where thresholds are free, this is done for every level that 0 can be at, and their logarithms are unknown as well.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from halfseen.arrays import Array
from halfseen.rank.corners import Sorted, inequalities_of
from halfseen.rank.inequalities import solution
from halfseen.rank.proofs import Proof, Question
from halfseen.rank.rounding import grf
from halfseen.rank.signs import signs_of_factors

_WHY = "An outer product rounds to Y."
#: Logarithms of sizes are brought within this, if the thresholds are free to follow.
_WIDEST = 30.0


@dataclass(frozen=True)
class Decision:
    """Whether an outer product rounds to the levels: a proof, or that there is none, or neither."""

    proof: Proof | None
    impossible: bool


def as_outer_product(question: Question) -> Decision:
    """The levels must not repeat rows or columns, nor be all at the level of 0.

    It is decided unless some product must be equal to a threshold, and is not in floating point.
    """
    impossible = True
    for levels, level_of_zero, sizes in _cases(question):
        factors = _outer_product(levels, level_of_zero, sizes)
        if factors is None:
            continue
        impossible = False  # as far as is known
        for u, v in (factors, *_on_thresholds(factors, sizes)):
            if proof := question.proof(u[:, None], v[:, None], _WHY):
                return Decision(proof, False)
    return Decision(None, impossible)


def _cases(question: Question) -> list[tuple[Array, int, Array | None]]:
    """Levels, the level of 0 among them, and the sizes of the thresholds: one case for given ones."""
    if question.thresholds is not None:
        return [(question.levels, int(grf(0.0, question.thresholds)), np.abs(question.thresholds))]
    present, codes = np.unique(question.levels, return_inverse=True)
    return [(codes.reshape(question.levels.shape), level, None) for level in range(present.size)]


def _outer_product(levels: Array, level_of_zero: int, sizes: Array | None) -> tuple[Array, Array] | None:
    """u and v that should do, or None if nothing can."""
    signs = signs_of_factors(levels, level_of_zero)
    if signs is None:
        return None
    u, v = (sign.astype(np.float64) for sign in signs)
    rows, columns = _order(levels, u, v), _order(levels.T, v, u)
    if rows is None or columns is None:
        return None
    n_thresholds = int(levels.max()) if sizes is None else sizes.size
    cells = Sorted(levels[np.ix_(rows, columns)], u[rows], v[columns], level_of_zero, n_thresholds)
    system = inequalities_of(cells, sizes)
    logs = None if system is None else solution(system, sizes)
    if logs is None:
        return None
    if sizes is None:  # free thresholds can be raised to any power
        logs = logs * (_WIDEST / max(float(np.abs(logs).max()), _WIDEST))
    with np.errstate(over="ignore"):
        u[rows] *= np.exp(logs[: rows.size])
        v[columns] *= np.exp(logs[rows.size :])
    return u, v


def _order(levels: Array, own_signs: Array, other_signs: Array) -> Array | None:
    """Rows that are not 0 by sign, then by size, the smallest first; None if two rows contradict each other."""
    rising = levels * np.outer(own_signs, other_signs)
    orders = []
    for sign in (1, -1):
        rows = np.flatnonzero(own_signs == sign)
        rows = rows[np.argsort(rising[rows].sum(axis=1))]
        if np.any(np.diff(rising[rows], axis=0) < 0):
            return None
        orders.append(rows)
    return np.concatenate(orders)


def _on_thresholds(factors: tuple[Array, Array], sizes: Array | None) -> Iterator[tuple[Array, Array]]:
    """u as powers of 2 and v as such of a given threshold: if cells must be equal to that, they may be then."""
    u, v = factors
    for size in () if sizes is None else sizes[sizes > 0]:
        with np.errstate(over="ignore", invalid="ignore"):
            pair = _power_of_two(u), _power_of_two(v / size) * size
        yield pair


def _power_of_two(numbers: Array) -> Array:
    """The nearest power of 2, with the sign; 0 for 0."""
    logs = np.log2(np.abs(numbers), out=np.zeros(numbers.shape), where=numbers != 0)
    return np.sign(numbers) * 2.0 ** np.rint(logs)
