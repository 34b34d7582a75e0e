"""The scale of the factors, which the product leaves free."""

import numpy as np

from halfseen.arrays import Array
from halfseen.rank_one.exact import unbounded
from halfseen.rank_one.marginals import Marginals
from halfseen.rank_one.parts import Links, Parts


def scaled(factors: tuple[Array, ...], parts: Parts, tol: float, dtype: np.dtype) -> tuple[Array, ...]:
    """The factors as they are shown: row by row, equal sums in each part, the average where nothing is known."""
    marginals = parts.marginals
    with unbounded():
        factors = _balanced(factors, parts, dtype)
        if parts.links is not None:
            factors = _pulled_apart(factors[0], factors[1], parts, parts.links, tol * marginals.total, dtype)
        factors = (marginals.each_row(factors[0]), *factors[1:])
        return tuple(_with_blanks_filled(factor, axis, marginals) for axis, factor in enumerate(factors))


def _with_blanks_filled(factor: Array, axis: int, marginals: Marginals) -> Array:
    blank = marginals.blank(axis)
    if not blank.any() or blank.all():
        return factor
    blank = marginals.told_of_each_row(blank) if axis == 0 else blank
    return np.where(blank, factor.sum() / np.count_nonzero(~blank), factor)


def _balanced(factors: tuple[Array, ...], parts: Parts, dtype: np.dtype) -> tuple[Array, ...]:
    """The factors with equal sums in each part, or as near to that as numbers of this dtype can be.

    The product of all factors stays as it is. A factor whose numbers span hundreds of powers of ten can be multiplied
    only by so much before the smallest of them vanish.
    """
    if parts.count == 0:
        return factors
    lives = [of >= 0 for of in parts.of]
    measured = np.array([_measured(axis, factor, parts) for axis, factor in enumerate(factors)])
    sums, lowest, highest = measured.swapaxes(0, 1)
    limits = np.finfo(dtype)
    shift = _within(sums.mean(axis=0) - sums, np.log(limits.tiny) - lowest, np.log(limits.max) - highest)
    halves = np.exp(shift / 2)  # in two halves, because the whole may be beyond all numbers
    return tuple(
        np.where(alive, factor * half[of] * half[of], factor)
        for factor, alive, half, of in zip(factors, lives, halves, parts.of, strict=True)
    )


def _measured(axis: int, factor: Array, parts: Parts) -> tuple[Array, Array, Array]:
    """Logarithms for each part: what a factor sums to there, its smallest and its largest entry, row by row."""
    of, marginals = parts.of[axis], parts.marginals
    alive = of >= 0
    sums = np.bincount(of[alive], factor[alive], minlength=parts.count)
    lowest, highest = np.full(parts.count, np.inf), np.zeros(parts.count)
    np.minimum.at(lowest, of[alive], factor[alive])
    np.maximum.at(highest, of[alive], factor[alive])
    sums, lowest, highest = np.log([sums, lowest, highest])
    if axis == 0 and marginals.merged is not None:
        shares = np.log(factor[alive]) - np.log(marginals.sums[0][alive])
        np.minimum.at(lowest, of[alive], shares + np.log(marginals.merged.lowest))
        np.maximum.at(highest, of[alive], shares + np.log(marginals.merged.highest))
    return sums, lowest, highest


def _within(shift: Array, low: Array, high: Array) -> Array:
    """Shifts of the axes (rows) that sum to 0, moved inside their bounds as far as these leave room."""
    bounded = np.clip(shift, low, np.maximum(low, high))
    left = -bounded.sum(axis=0)
    for axis, room in enumerate(zip(low - bounded, high - bounded, strict=True)):
        step = np.clip(left, np.minimum(0.0, room[0]), np.maximum(0.0, room[1]))
        bounded[axis] += step
        left = left - step
    bounded[0] += left
    return bounded


def _pulled_apart(
    w: Array, h: Array, parts: Parts, links: Links, allowed: float, dtype: np.dtype
) -> tuple[Array, Array]:
    """Parts so far from each other that the fit has no more than `allowed` at the zeros between them.

    They would be met exactly at an infinite distance; it is cut where numbers of this dtype are about to end.
    """
    farthest = 0.8 * np.log(np.finfo(dtype).max)
    fitted = w[links.rows] * h[links.columns]
    between = float((fitted if links.weights is None else fitted * links.weights).sum())
    wanted = np.log(max(allowed, 1e-300) / between)
    step = max(min(wanted, 0.0), -farthest / int(links.levels.max()))
    levels = links.levels - links.levels.max() / 2
    return _moved(w, parts.of[0], -step * levels), _moved(h, parts.of[1], step * levels)


def _moved(factor: Array, part: Array, by: Array) -> Array:
    return np.where(part >= 0, factor * np.exp(by[part]), factor)
