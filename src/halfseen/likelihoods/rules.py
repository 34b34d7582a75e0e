"""Rules of a pass over the observed cells: pure functions of y and x at each cell.

A rule is called with parameters, the cells' values, x, weights (None if all are 1) and `first` (1 for the first value
of a cell and 0 for others; None if no cell has several). It returns `Terms`. Rules are module-level functions of small
parameters, so that they can be sent to another process, and replaced by a compiled loop of the same name.
"""

from typing import Any, NamedTuple

from halfseen.arrays import namespace
from halfseen.likelihoods.base import Likelihood, UnseenPush


class Terms(NamedTuple):
    """What a rule gives: an entry per cell in each array."""

    arrays: tuple[Any, ...] = ()
    """Coefficients that are multiplied by a factor and summed along rows or columns, or results by themselves."""
    totals: tuple[Any, ...] = ()
    """Terms of sums over all cells."""
    by_level: tuple[Any, ...] = ()
    """Terms of sums over the cells of each level: y is the level."""


class CellParams(NamedTuple):
    """Parameters of the rules below."""

    likelihood: Any
    zeros: UnseenPush | None
    """The push of an unseen cell that counts as a zero; None if unseen cells are missing."""


def pulls(params: CellParams, y: Any, x: Any, weight: Any, first: Any) -> Terms:
    """Pull; log p(y|x) + push x but for log p(y|y), the local term of the evidence bound; sums of E[n] = pull x."""
    likelihood = params.likelihood
    pull, push, cost = likelihood.pull_push_cost(y, x)
    totals, by_level = likelihood.count_terms_at(y, x, pull) if likelihood.learns else ((), ())
    return weighted(weight, (pull,), (push * x - cost, *totals), by_level)


def pulls_and_pushes(params: CellParams, y: Any, x: Any, weight: Any, first: Any) -> Terms:
    """Pull, push and divergence. Where zeros count, those of an unseen cell are subtracted: they are added for the
    whole grid."""
    likelihood, zeros = params
    pull, push, cost = likelihood.pull_push_cost(y, x)
    (pull, push), (cost,), _ = weighted(weight, (pull, push), (cost,))
    if zeros is not None:
        push, cost = push - _of_first(zeros.at(x), first), cost - _of_first(zeros.cost(x), first)
    return Terms((pull, push + namespace(x).zeros_like(x)), (cost,))


def pushes(params: CellParams, y: Any, x: Any, weight: Any, first: Any) -> Terms:
    """Push, less that of an unseen zero, where neither depends on x, which is None."""
    likelihood, zeros = params
    (push,), _, _ = weighted(weight, (likelihood.push(y, y),))
    push = push + namespace(y).zeros_like(y)
    return Terms((push if zeros is None else push - _of_first(zeros.scale, first),))


def costs(params: CellParams, y: Any, x: Any, weight: Any, first: Any) -> Terms:
    """Divergence, less the cost of an unseen zero."""
    likelihood, zeros = params
    _, (cost,), _ = weighted(weight, (), (likelihood.divergence(y, x),))
    return Terms((), (cost if zeros is None else cost - _of_first(zeros.cost(x), first),))


def means(params: CellParams, y: Any, x: Any, weight: Any, first: Any) -> Terms:
    """x (or x^2, where an unseen zero pushes in proportion to x), once per cell, and the terms of E[x] of a refit."""
    likelihood, zeros = params
    seen = _of_first(x if zeros is None or zeros.power == 0 else x * x, first)
    totals, by_level = likelihood.mean_terms(y, x)
    _, totals, by_level = weighted(weight, (), totals, by_level)
    return Terms((), (seen, *totals), by_level)


def counts_and_means(params: CellParams, y: Any, x: Any, weight: Any, first: Any) -> Terms:
    """As `means`, with the terms of E[n] before those of E[x]."""
    likelihood = params.likelihood
    totals, by_level = likelihood.count_terms_at(y, x, likelihood.pull_push(y, x)[0])
    _, totals, by_level = weighted(weight, (), totals, by_level)
    of_means = means(params, y, x, weight, first)
    return Terms((), (of_means.totals[0], *totals, *of_means.totals[1:]), (*by_level, *of_means.by_level))


def counts(params: CellParams, y: Any, x: Any, weight: Any, first: Any) -> Terms:
    """0, then the terms of E[n] of a refit."""
    likelihood = params.likelihood
    totals, by_level = likelihood.count_terms_at(y, x, likelihood.pull_push(y, x)[0])
    return weighted(weight, (), (namespace(x).zeros_like(x), *totals), by_level)


def quadratics(likelihood: Any, y: Any, x: Any, weight: Any) -> Terms:
    """Cost, slope and curvature under a `SmoothOrdinal` likelihood."""
    return weighted(weight, tuple(likelihood.quadratic(y, x)))


def divergences(likelihood: Likelihood, y: Any, x: Any, weight: Any) -> Terms:
    """Cost without derivatives."""
    return weighted(weight, (likelihood.divergence(y, x),))


def parameter_terms(likelihood: Any, y: Any, x: Any, weight: Any) -> Terms:
    """Terms of the sums from which a `SmoothOrdinal` likelihood updates its parameters."""
    return weighted(weight, (), *likelihood.parameter_terms(y, x))


def weighted(
    weight: Any, arrays: tuple[Any, ...] = (), totals: tuple[Any, ...] = (), by_level: tuple[Any, ...] = ()
) -> Terms:
    """Terms, each times the weight of its cell."""
    if weight is None:
        return Terms(arrays, totals, by_level)
    return Terms(*(tuple(term * weight for term in terms) for terms in (arrays, totals, by_level)))


def _of_first(term: Any, first: Any) -> Any:
    return term if first is None else term * first


def summed(_: None, array: Any) -> Terms:
    """An array, to be summed."""
    return Terms((), (array,))
