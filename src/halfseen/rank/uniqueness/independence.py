"""Rows of which only intervals are known: are they linearly independent, whatever the numbers in the intervals?

Let rows x_1 .. x_s be dependent, sum alpha_k x_k = 0 with alpha other than 0. Turn rows around so that no alpha_k is
negative. Then in every column  sum alpha_k lower_k <= 0 <= sum alpha_k upper_k:  with A for the rows of all such
conditions,  A alpha <= 0.  If some mixture y >= 0 of the conditions has  g = A' y >= 0,  then  0 <= g' alpha <= 0,
and alpha_k = 0 wherever g_k > 0. It is 0 as well where a condition of the mixture has an open end in row k: with
alpha_k > 0 that condition, and so the sum, would be strict. What is left is a dependence between fewer rows. If it is
ruled out in the same way, and all this for every way to turn the rows, then the rows are independent.

Nothing is missed in this way. If the rows are independent, then no alpha with all alpha_k > 0 solves the conditions, in
which those with an infinite end have no part; by Motzkin's theorem there is a y with g >= 0, and with some g_k > 0 or
an open end in its mixture. The fewer rows that it leaves are independent as well, and more conditions are finite there.

The mixtures are found in floating point. They are checked for the numbers as they stand: by a bound on the rounding
error, or, where g_k may be 0, in fractions.
"""

from itertools import product

import numpy as np

from halfseen.arrays import Array
from halfseen.rank.uniqueness.combinations import Conditions, rows_left
from halfseen.rank.uniqueness.games import Mixture, best_mixtures
from halfseen.rank.uniqueness.intervals import Intervals

#: By how much open ends are moved inwards in the search, as a part of the largest end, so that they tell.
_NUDGE = 1e-7
#: A worst g_k that is smaller, as a part of the largest end, may be 0; how much the others count in the search then.
_NEAR_ZERO = 1e-9
_SHARE_OF_OTHERS = 1e-4
_PRECISION = float(np.finfo(np.float64).eps)
_SMALLEST = float(np.finfo(np.float64).smallest_normal)


def surely_independent(rows: Intervals) -> Array:
    """(B,) for each of B stacks (s, c) of s rows in c columns, whether the rows are independent, for sure."""
    stacks = np.arange(len(rows.lower))
    return np.isin(stacks, list(groups_with_independent_rows(rows, stacks)))


def groups_with_independent_rows(rows: Intervals, group_of: Array) -> set[int]:
    """The groups of stacks (s, c) in which the rows of at least one stack are independent, for sure.

    Every stack is screened first by all ways to turn its rows; those that pass are looked at more closely, until one
    is found in their group.
    """
    turns = [np.array([False, *further])[:, None] for further in product([False, True], repeat=rows.lower.shape[1] - 1)]
    left, mixtures = _screened(rows, turns)
    if not left.size:
        return set()
    conditions = [_conditions(rows[left].turned(turn)) for turn in turns]
    clear = np.array([_clearly_positive(*both) for both in zip(conditions, mixtures, strict=True)])
    found: set[int] = set()
    for place in np.argsort(np.count_nonzero(~clear, axis=0), kind="stable"):
        group = int(group_of[left[place]])
        doubts = ((conditions[turn].of(place), mixtures[turn].of(place)) for turn in np.flatnonzero(~clear[:, place]))
        if group not in found and all(_excluded(rows[left[place]], *doubt) for doubt in doubts):
            found.add(group)
    return found


def _screened(rows: Intervals, turns: list[Array]) -> tuple[Array, list[Mixture]]:
    """The stacks that no turn speaks against, and the mixtures of these for every turn."""
    left, mixtures = np.arange(len(rows.lower)), list[Mixture]()
    for turn in turns:
        found = _best_mixtures(rows[left].turned(turn))
        passed = found.worst > 0
        left, mixtures = left[passed], [one.of(passed) for one in [*mixtures, found]]
        if not left.size:
            break
    return left, mixtures


def _best_mixtures(rows: Intervals) -> Mixture:
    """Those whose worst g_k is largest; where that is 0, those of them that have other g_k > 0, or open ends."""
    conditions = _conditions(rows)
    largest = np.abs(conditions.ends).max(axis=(1, 2), initial=0.0, keepdims=True)
    scale = np.where(largest > 0, largest, 1.0)
    payoffs = conditions.ends + _NUDGE * scale * conditions.is_open
    found = best_mixtures(payoffs)
    near = np.flatnonzero(np.abs(found.worst) <= _NEAR_ZERO * scale[:, 0, 0])
    if near.size:
        others = _SHARE_OF_OTHERS * payoffs[near].sum(axis=2, keepdims=True)
        for first, second in zip(found, best_mixtures(payoffs[near] + others), strict=True):
            first[near] = second
    return found


def _excluded(rows: Intervals, conditions: Conditions, mixture: Mixture) -> bool:
    """Whether no alpha >= 0 that meets the conditions makes the rows dependent: by the mixture, or by fewer rows."""
    left = rows_left(conditions, mixture.basis, mixture.weights)
    if left is None or left.size == len(rows.lower):
        return False
    return not left.size or bool(surely_independent(rows[None, left])[0])


def _conditions(rows: Intervals) -> Conditions:
    """A: lower ends, and upper ends with the other sign; where one is infinite, that the sum of alpha is 0 or more."""
    ends = np.concatenate([rows.lower, -rows.upper], axis=2).transpose(0, 2, 1)
    is_open = np.concatenate([rows.lower_open, rows.upper_open], axis=2).transpose(0, 2, 1)
    usable = np.isfinite(ends).all(axis=2, keepdims=True)
    scale = np.abs(ends).max(axis=(1, 2), initial=0.0, keepdims=True, where=usable)
    return Conditions(np.where(usable, ends, -np.where(scale > 0, scale, 1.0)), is_open & usable)


def _clearly_positive(conditions: Conditions, mixtures: Mixture) -> Array:
    """(B,) whether g = A' y > 0 beyond all rounding: a sum of s products is off by at most s + 1 halves of a unit."""
    _, n, size = conditions.ends.shape
    used = np.where(mixtures.basis < n, mixtures.weights, 0.0)
    ends = np.take_along_axis(conditions.ends, np.minimum(mixtures.basis, n - 1)[:, :, None], axis=1)
    g = np.einsum("bp,bpk->bk", used, ends)
    slack = (size + 2) * (_PRECISION * np.einsum("bp,bpk->bk", used, np.abs(ends)) + _SMALLEST)
    return np.all(g > slack, axis=1)
