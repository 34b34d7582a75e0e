"""Rows of which only intervals are known: are they linearly independent, whatever the numbers in the intervals?

Let rows x_1 .. x_s be dependent, sum alpha_k x_k = 0 with alpha other than 0. Negate rows so that no alpha_k is
negative. Then in every column  sum alpha_k lower_k <= 0 <= sum alpha_k upper_k:  with A for the rows of all such
conditions,  A alpha <= 0.  If some mixture y >= 0 of the conditions has  g = A' y >= 0,  then  0 <= g' alpha <= 0,
and alpha_k = 0 wherever g_k > 0. It is 0 as well where a condition of the mixture has an open end in row k: with
alpha_k > 0 that condition, and so the sum, would be strict. What remains is a dependence between fewer rows. If it is
ruled out in the same way, and all this for every choice of rows to negate, then the rows are independent.

Nothing is missed in this way. If the rows are independent, then no alpha with all alpha_k > 0 solves the conditions, in
which those with an infinite end have no part; by Motzkin's theorem there is a y with g >= 0, and with some g_k > 0 or
an open end in its mixture. The fewer rows that it leaves are independent as well, and more conditions are finite there.

The best mixture is an optimal mixed strategy of the matrix game A. The games are solved in floating point, and the
mixtures checked exactly: by a bound on the rounding error, or, where g_k may be 0, with fractions.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from halfseen.arrays import Array
from halfseen.roundrank.exact_rounding import PRECISION, SMALLEST, Intervals

#: Open ends are moved inwards by this in the search, relative to the largest end, so that they count.
_NUDGE = 1e-7
#: A worst g_k that is smaller, relative to the largest end, may be 0; the weight of the others in the search then.
_NEAR_ZERO = 1e-9
_WEIGHT_OF_OTHERS = 1e-4
#: What counts as 0 in the tableaux, whose payoffs are at most 1 in size.
_ZERO = 1e-12
#: Pivots after which a game is left as it is; a handful is usual.
_MAX_PIVOTS = 60


def are_independent(rows: Intervals) -> Array:
    """(B,) for each of B stacks (s, c) of s rows in c columns, whether the rows are proved independent."""
    stacks = np.arange(len(rows.lower))
    return np.isin(stacks, list(groups_with_independent_rows(rows, stacks)))


def groups_with_independent_rows(rows: Intervals, group_of: Array) -> set[int]:
    """The groups of stacks (s, c) in which the rows of at least one stack are proved independent."""
    others = product([False, True], repeat=rows.lower.shape[1] - 1)
    negations = [np.array([False, *other])[:, None] for other in others]
    # screen the stacks with all choices of rows to negate: a mixture without g >= 0 proves nothing
    remaining, mixtures = np.arange(len(rows.lower)), list[Mixture]()
    for negation in negations:
        best = _best_mixtures(rows[remaining].negated(negation))
        passed = best.value > 0
        remaining, mixtures = remaining[passed], [mixture[passed] for mixture in [*mixtures, best]]
        if not remaining.size:
            return set()
    # check the others exactly, those with the fewest doubts first, until one is proved in each group
    conditions = [_conditions(rows[remaining].negated(negation)) for negation in negations]
    proved = np.array([_clearly_positive(*pair) for pair in zip(conditions, mixtures, strict=True)])
    groups: set[int] = set()
    for stack in np.argsort(np.count_nonzero(~proved, axis=0), kind="stable"):
        group = int(group_of[remaining[stack]])
        doubts = ((conditions[k][stack], mixtures[k][stack]) for k in np.flatnonzero(~proved[:, stack]))
        if group not in groups and all(_excludes_dependence(rows[remaining[stack]], *doubt) for doubt in doubts):
            groups.add(group)
    return groups


@dataclass(frozen=True)
class Conditions:
    """A alpha <= 0 for alpha >= 0: the rows of A, and where alpha_k > 0 makes a condition strict. May be a stack."""

    A: Array
    is_open: Array

    def __getitem__(self, index: Any) -> "Conditions":
        return Conditions(self.A[index], self.is_open[index])


def _conditions(rows: Intervals) -> Conditions:
    """A: lower ends, and negated upper ends; where one is infinite, that the sum of alpha is 0 or more."""
    ends = np.concatenate([rows.lower, -rows.upper], axis=2).transpose(0, 2, 1)
    is_open = np.concatenate([rows.lower_open, rows.upper_open], axis=2).transpose(0, 2, 1)
    finite = np.isfinite(ends).all(axis=2, keepdims=True)
    scale = np.abs(ends).max(axis=(1, 2), initial=0.0, keepdims=True, where=finite)
    return Conditions(np.where(finite, ends, -np.where(scale > 0, scale, 1.0)), is_open & finite)


def _best_mixtures(rows: Intervals) -> "Mixture":
    """Mixtures whose worst g_k is largest; where that is 0, those of them that have other g_k > 0, or open ends."""
    conditions = _conditions(rows)
    largest = np.abs(conditions.A).max(axis=(1, 2), initial=0.0, keepdims=True)
    scale = np.where(largest > 0, largest, 1.0)
    payoffs = conditions.A + _NUDGE * scale * conditions.is_open
    best = solve_matrix_games(payoffs)
    near = np.flatnonzero(np.abs(best.value) <= _NEAR_ZERO * scale[:, 0, 0])
    if near.size:
        others = _WEIGHT_OF_OTHERS * payoffs[near].sum(axis=2, keepdims=True)
        tied = solve_matrix_games(payoffs[near] + others)
        best.basis[near], best.weights[near], best.value[near] = tied.basis, tied.weights, tied.value
    return best


def _clearly_positive(conditions: Conditions, mixtures: "Mixture") -> Array:
    """(B,) whether g = A' y > 0 beyond all rounding: a sum of s products is off by at most s + 1 halves of a unit."""
    _, n, size = conditions.A.shape
    y = np.where(mixtures.basis < n, mixtures.weights, 0.0)
    A = np.take_along_axis(conditions.A, np.minimum(mixtures.basis, n - 1)[:, :, None], axis=1)
    g = np.einsum("bp,bpk->bk", y, A)
    slack = (size + 2) * (PRECISION * np.einsum("bp,bpk->bk", y, np.abs(A)) + SMALLEST)
    return np.all(g > slack, axis=1)


def _excludes_dependence(rows: Intervals, conditions: Conditions, mixture: "Mixture") -> bool:
    """Whether no alpha >= 0 that meets the conditions makes the rows dependent: by the mixture, or by fewer rows."""
    remaining = _rows_not_excluded(conditions, mixture.basis, mixture.weights)
    if remaining is None or remaining.size == len(rows.lower):
        return False
    return not remaining.size or bool(are_independent(rows[None, remaining])[0])


def _rows_not_excluded(conditions: Conditions, basis: Array, weights: Array) -> Array | None:
    """The k for which mixtures of the conditions in the basis leave alpha_k > 0 possible; None if there is no mixture.

    Numbers from P on stand for  -alpha_k <= 0.  A mixture y >= 0 is valid if  M' y >= 0;  so is the sum of valid
    ones. Tried are the weights, and for each k the y that leaves nothing but alpha_k:  (M' y)_l = 0 for all other l.
    """
    n, size = conditions.A.shape
    M = [[Fraction(x) for x in (conditions.A[p] if p < n else -np.eye(size)[p - n]).tolist()] for p in basis]
    candidates: list[list[Fraction] | None] = [[Fraction(y) for y in np.where(basis < n, weights, 0.0).tolist()]]
    candidates += [_null_vector([row[:k] + row[k + 1 :] for row in M]) for k in range(size)]
    valid = [y for y in candidates if y is not None and min(_combined(y, M)) >= 0]
    used = [p for p in range(size) if basis[p] < n and any(y[p] > 0 for y in valid)]
    if not used:
        return None
    g = _combined([sum((y[p] for y in valid), Fraction(0)) for p in used], [M[p] for p in used])
    strict = np.any(conditions.is_open[basis[used]], axis=0).tolist()
    return np.flatnonzero([g[k] == 0 and not strict[k] for k in range(size)])


def _combined(y: Sequence[Fraction], M: Sequence[Sequence[Fraction]]) -> list[Fraction]:
    """M' y."""
    return [sum((weight * row[k] for weight, row in zip(y, M, strict=True)), Fraction(0)) for k in range(len(M[0]))]


def _null_vector(rows: Sequence[Sequence[Fraction]]) -> list[Fraction] | None:
    """y >= 0, other than 0, with  sum y_p rows_p = 0,  or None unless there is one, up to scale: s rows of s - 1."""
    size = len(rows)
    # Gauss-Jordan elimination of the transposed matrix; pivots are the columns of the leading ones
    lines, pivots = [[row[k] for row in rows] for k in range(size - 1)], list[int]()
    for column in range(size):
        done = len(pivots)
        pivot = next((line for line in range(done, len(lines)) if lines[line][column]), None)
        if pivot is None:
            continue
        lines[done], lines[pivot] = lines[pivot], lines[done]
        lines[done] = [entry / lines[done][column] for entry in lines[done]]
        for number, line in enumerate(lines):
            if number != done and line[column]:
                lines[number] = [a - line[column] * b for a, b in zip(line, lines[done], strict=True)]
        pivots.append(column)
    free = [p for p in range(size) if p not in pivots]
    if len(free) != 1:
        return None
    y = [Fraction(0)] * size
    y[free[0]] = Fraction(1)
    for line, p in zip(lines, pivots, strict=False):
        y[p] = -line[free[0]]
    return y if min(y) >= 0 else None


# Matrix games.


@dataclass(frozen=True)
class Mixture:
    """Optimal mixed strategies of B games: the basis of the simplex method, the weights in it, and the value.

    `basis` (B, s) holds numbers of rows; from P on, of columns (plus P) with more than the value. `weights` (B, s) are
    0 or more, and those of rows add up to 1. `value` (B,) is the worst payoff.
    """

    basis: Array
    weights: Array
    value: Array

    def __getitem__(self, index: Any) -> "Mixture":
        return Mixture(self.basis[index], self.weights[index], self.value[index])


def solve_matrix_games(payoffs: Array) -> Mixture:
    """max t  with  sum_p y_p A_pk >= t for every k,  sum y = 1,  y >= 0:  for each A (P, s) of a stack (B, P, s).

    The simplex method on a stack of tableaux. It starts from the row whose smallest payoff is largest. In the tableau
    t is a basic variable in a separate row, the last, which serves as the objective as well.
    """
    scale = np.abs(payoffs).max(axis=(1, 2), initial=0.0)
    tableaux, basis = _initial_tableaux(payoffs / np.where(scale > 0, scale, 1.0)[:, None, None])
    weights, value = np.empty(basis.shape), np.empty(len(basis))
    final, remaining = np.empty_like(basis), np.arange(len(basis))
    for pivots in range(_MAX_PIVOTS + 1):
        entering = tableaux[:, -1, :-1].argmin(axis=1)
        column = tableaux[np.arange(remaining.size), :, entering]
        done = (column[:, -1] >= -_ZERO) | (column[:, :-1].max(axis=1) <= _ZERO) | (pivots == _MAX_PIVOTS)
        final[remaining[done]], weights[remaining[done]] = basis[done], tableaux[done, :-1, -1]
        value[remaining[done]] = tableaux[done, -1, -1]
        tableaux, basis, remaining = tableaux[~done], basis[~done], remaining[~done]
        if not remaining.size:
            break
        # pivot: a variable enters each basis, in place of the one that becomes 0 first
        each, entering, column = np.arange(remaining.size), entering[~done], column[~done]
        limits = column[:, :-1] > _ZERO
        ratios = np.where(limits, tableaux[:, :-1, -1] / np.where(limits, column[:, :-1], 1.0), np.inf)
        leaving = ratios.argmin(axis=1)
        line = tableaux[each, leaving] / column[each, leaving, None]
        tableaux -= column[:, :, None] * line[:, None, :]
        tableaux[each, leaving] = line
        basis[each, leaving] = entering
    return Mixture(final, np.maximum(weights, 0.0), value * scale)


def _initial_tableaux(A: Array) -> tuple[Array, Array]:
    """(B, s + 1, P + s + 1): a line for each basic variable, the last for t; columns y_1..y_P, slacks, right side.

    With a the payoffs of the first row taken and k its worst column:  sum y = 1  is in line k,
    slack_l + sum y_p ((a_l - A_pl) - (a_k - A_pk)) - slack_k = a_l - a_k  in the others,  and in the last
    t + sum y_p (a_k - A_pk) + slack_k = a_k.
    """
    games, n_rows, size = A.shape
    each = np.arange(games)
    first = A.min(axis=2).argmax(axis=1)
    a = A[each, first]
    worst = a.argmin(axis=1)
    equations = np.zeros((games, size + 1, n_rows + size + 1))
    equations[:, :size, :n_rows] = a[:, :, None] - A.transpose(0, 2, 1)
    equations[:, :size, n_rows:-1] = np.eye(size)
    equations[:, :size, -1] = a
    equations[:, -1] = equations[each, worst]
    equations[:, :-1] -= equations[:, -1:]
    equations[each, worst] = np.concatenate([np.ones(n_rows), np.zeros(size), [1.0]])
    basis = np.tile(np.arange(n_rows, n_rows + size), (games, 1))
    basis[each, worst] = first
    return equations, basis
