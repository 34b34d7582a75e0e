"""The scale of the factors, which the product leaves free."""

import numpy as np

from halfseen.arrays import Array
from halfseen.rank_one.marginals import Marginals
from halfseen.rank_one.parts import Links, Parts


def scaled(factors: tuple[Array, ...], parts: Parts, tol: float, dtype: np.dtype) -> tuple[Array, ...]:
    """The factors as they are shown: row by row, equal sums in each part, the average where nothing is known."""
    marginals = parts.marginals
    factors = _balanced(factors, parts, dtype)
    if parts.links is not None:
        factors = _pulled_apart(factors[0], factors[1], parts, parts.links, tol * marginals.total)
    first, *others = (_with_blanks_filled(factor, axis, marginals) for axis, factor in enumerate(factors))
    return marginals.each_row(first), *others


def _with_blanks_filled(factor: Array, axis: int, marginals: Marginals) -> Array:
    blank = marginals.blank(axis)
    count = np.count_nonzero(blank)
    known = marginals.length(axis) - count
    return np.where(blank, factor.sum() / known, factor) if count and known else factor


def _balanced(factors: tuple[Array, ...], parts: Parts, dtype: np.dtype) -> tuple[Array, ...]:
    """The factors with equal sums in each part, or as near to that as numbers of this dtype can be.

    The product of all factors stays as it is. A factor whose numbers span hundreds of powers of ten can be multiplied
    only by so much before the smallest of them vanish.
    """
    factors = tuple(factor.copy() for factor in factors)
    limits = np.log([np.finfo(dtype).tiny, np.finfo(dtype).max])
    for part in range(parts.count):
        members = [of == part for of in parts.of]
        logs = np.log([factor[inside].sum() for factor, inside in zip(factors, members, strict=True)])
        bounds = np.log([_bounds(axis, factors[axis][members[axis]], parts) for axis in range(len(factors))])
        shift = _within(logs.mean() - logs, limits[0] - bounds[:, 0], limits[1] - bounds[:, 1])
        for factor, inside, by in zip(factors, members, shift, strict=True):
            half = np.exp(by / 2)  # in two halves, because the whole may be beyond all numbers
            factor[inside] = factor[inside] * half * half
    return factors


def _bounds(axis: int, factor: Array, parts: Parts) -> tuple[float, float]:
    """The smallest and the largest entry of a factor, those of merged rows among them."""
    low, high = float(factor.min()), float(factor.max())
    marginals, merged = parts.marginals, parts.marginals.merged
    if axis > 0 or merged is None or marginals.sums[0][-1] <= 0:
        return low, high
    share = float(factor[-1]) / marginals.sums[0][-1]
    return min(low, share * merged.lowest), max(high, share * merged.highest)


def _within(shift: Array, low: Array, high: Array) -> Array:
    """Shifts that sum to 0, moved inside their bounds as far as these leave room."""
    bounded = np.clip(shift, low, np.maximum(low, high))
    left = -bounded.sum()
    for axis in np.argsort(bounded - high if left > 0 else low - bounded):
        step = np.clip(left, min(0.0, low[axis] - bounded[axis]), max(0.0, high[axis] - bounded[axis]))
        bounded[axis] += step
        left -= step
    bounded[0] += left
    return bounded


def _pulled_apart(w: Array, h: Array, parts: Parts, links: Links, allowed: float) -> tuple[Array, Array]:
    """Parts so far from each other that the fit has no more than `allowed` at the zeros between them.

    They would be met exactly at an infinite distance; it is cut where numbers end, at 10^200 in all.
    """
    between = float((w[links.rows] * h[links.columns]).sum())
    wanted = np.log(max(allowed, 1e-300) / between)
    step = max(min(wanted, 0.0), -460.0 / int(links.levels.max()))
    return _moved(w, parts.of[0], -step * links.levels), _moved(h, parts.of[1], step * links.levels)


def _moved(factor: Array, part: Array, by: Array) -> Array:
    return np.where(part >= 0, factor * np.exp(by[part]), factor)
