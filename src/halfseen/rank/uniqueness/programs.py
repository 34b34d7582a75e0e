"""Small linear programs, many at a time."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import block_diag, csr_array

from halfseen.arrays import Array

#: Coefficients that are given to the solver in one go: it is called seldom, and never with a huge program.
_COEFFICIENTS_AT_A_TIME = 50_000
_TOLERANCE = 1e-10


@dataclass(frozen=True)
class Program:
    """max goal' z  with  left z <= right."""

    goal: Array
    left: Array
    right: Array


@dataclass(frozen=True)
class Optimum:
    """Where the goal is largest, and the multipliers of the conditions:  left' multipliers = goal."""

    z: Array
    multipliers: Array


def solved(programs: Sequence[Program]) -> list[Optimum | None]:
    """The optimum of each, None for those that have none; they are put side by side into few large programs."""
    found: list[Optimum | None] = []
    start = 0
    while start < len(programs):
        stop, size = start + 1, programs[start].left.size
        while stop < len(programs) and size + programs[stop].left.size <= _COEFFICIENTS_AT_A_TIME:
            size += programs[stop].left.size
            stop += 1
        found += _solved_together(programs[start:stop])
        start = stop
    return found


def _solved_together(programs: Sequence[Program]) -> list[Optimum | None]:
    """One without an optimum spoils those it is solved with: then halves are solved by themselves."""
    right = np.concatenate([program.right for program in programs])
    answer = linprog(
        -np.concatenate([program.goal for program in programs]),
        A_ub=csr_array(block_diag([program.left for program in programs])), b_ub=right, bounds=(None, None),
        method="highs-ds", options={"primal_feasibility_tolerance": _TOLERANCE},
    )  # fmt: skip
    if answer.status == 0:
        unknowns = np.cumsum([program.goal.size for program in programs])[:-1]
        conditions = np.cumsum([program.right.size for program in programs])[:-1]
        both = zip(np.split(answer.x, unknowns), np.split(-answer.ineqlin.marginals, conditions), strict=True)
        return [Optimum(z, multipliers) for z, multipliers in both]
    if len(programs) == 1:
        return [None]
    half = len(programs) // 2
    return _solved_together(programs[:half]) + _solved_together(programs[half:])
