"""Matrix games by the thousand: which mixture of rows is best where it is worst."""

from typing import Any, NamedTuple

import numpy as np

from halfseen.arrays import Array

#: What counts as 0 in the tableaux, whose payoffs are at most 1 in size.
_ZERO = 1e-12
#: Pivots after which a game is left as it stands; a handful is usual.
_MOST_PIVOTS = 60


class Mixture(NamedTuple):
    """For each of B games: the basis of the simplex method, the weights of what is in it, and the worst payoff."""

    basis: Array
    """(B, s) numbers of rows; from P on, the columns (less P) that get more than the worst payoff."""
    weights: Array
    """(B, s) how much of each, 0 or more; those of rows add up to 1."""
    worst: Array

    def of(self, games: Any) -> "Mixture":
        """Some of them, or one."""
        return Mixture(*(each[games] for each in self))


def best_mixtures(payoffs: Array) -> Mixture:
    """max t  with  sum_p y_p A_pk >= t for every k,  sum y = 1,  y >= 0:  for each A (P, s) of a stack (B, P, s).

    The simplex method on a stack of tableaux. It starts from the row whose smallest payoff is largest. In the tableau
    t is a basic variable in a row of its own, the last, which serves as the objective as well.
    """
    scale = np.abs(payoffs).max(axis=(1, 2), initial=0.0)
    tableaux, basis = _first_tableaux(payoffs / np.where(scale > 0, scale, 1.0)[:, None, None])
    weights, worst = np.empty(basis.shape), np.empty(len(basis))
    final, left = np.empty_like(basis), np.arange(len(basis))
    for pivots in range(_MOST_PIVOTS + 1):
        entering = tableaux[:, -1, :-1].argmin(axis=1)
        column = tableaux[np.arange(left.size), :, entering]
        done = (column[:, -1] >= -_ZERO) | (column[:, :-1].max(axis=1) <= _ZERO) | (pivots == _MOST_PIVOTS)
        final[left[done]], weights[left[done]] = basis[done], tableaux[done, :-1, -1]
        worst[left[done]] = tableaux[done, -1, -1]
        tableaux, basis, left = tableaux[~done], basis[~done], left[~done]
        if not left.size:
            break
        _pivot(tableaux, basis, entering[~done])
    return Mixture(final, np.maximum(weights, 0.0), worst * scale)


def _first_tableaux(A: Array) -> tuple[Array, Array]:
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


def _pivot(tableaux: Array, basis: Array, entering: Array) -> None:
    """Let a variable into each basis, in place of the one that becomes 0 first."""
    each = np.arange(entering.size)
    column = tableaux[each, :, entering]
    limits = column[:, :-1] > _ZERO
    ratios = np.where(limits, tableaux[:, :-1, -1] / np.where(limits, column[:, :-1], 1.0), np.inf)
    leaving = ratios.argmin(axis=1)
    line = tableaux[each, leaving] / column[each, leaving, None]
    tableaux -= column[:, :, None] * line[:, None, :]
    tableaux[each, leaving] = line
    basis[each, leaving] = entering
