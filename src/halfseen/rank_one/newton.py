"""Newton's method on the logarithms of the factors, its systems solved by conjugate gradients.

With p = phi_ij w_i h_j / total, the gradient of the cost along an axis is what p sums to there less what the data do.
The second derivative takes a direction (d_0, d_1, ...) to the sums of p * (d_0[i] + d_1[j] + ...) along each axis: one
product costs as much as a sweep.
"""

from collections.abc import Callable
from functools import reduce

import numpy as np

from halfseen.arrays import Array
from halfseen.engines.threads import Threads
from halfseen.rank_one.marginals import along_axes, unfolded
from halfseen.rank_one.parts import Parts

#: Systems are solved to this part of the gradient: the next step mends the rest.
_PRECISION = 1e-3
_MOST_PRODUCTS = 2000
#: No entry grows or shrinks by more than e^4 at once.
_LONGEST_STEP = 4.0
_MOST_HALVINGS = 20
#: Sums are right up to this part of them.
_ROUNDING = 1e-13


def newton_step(factors: tuple[Array, ...], parts: Parts, threads: Threads) -> tuple[tuple[Array, ...], float]:
    """The factors after one step and the largest change of a logarithm: 0 if there is nothing to gain but rounding."""
    here = _Point(factors, parts, threads)
    direction = _solved(here.curvature, -here.gradient, np.where(here.lives, here.sums, 0.0))
    direction = _without_drift(direction, here.sums, parts)
    steps = _LONGEST_STEP / np.maximum(here.largest(direction), _LONGEST_STEP)
    for halvings in range(_MOST_HALVINGS + 1):  # a step of its own for each part
        by = steps[here.part] * direction
        moved = here.moved(by)
        rising = here.rise(moved, by) > 1e-15
        if not rising.any():
            break
        steps = np.where(rising, steps / 2 if halvings < _MOST_HALVINGS - 1 else 0.0, steps)
    return moved, float(np.abs(by).max())


class _Point:
    """The cost around given factors, all axes one after the other in one vector.

    Every part is brought to a total of 1, so that small parts are solved as well as large ones.
    """

    def __init__(self, factors: tuple[Array, ...], parts: Parts, threads: Threads) -> None:
        marginals = parts.marginals
        exposure = marginals.exposure
        self.factors, self.inner_shape = factors, marginals.inner_shape
        self._exposure, self._threads = exposure, threads
        self._splits = np.cumsum([factor.size for factor in factors])[:-1]
        inside = parts.of[0] >= 0
        totals = np.bincount(parts.of[0][inside], marginals.sums[0][inside], minlength=parts.count)
        shares = [sums / np.where(of >= 0, totals[of], 1.0) for sums, of in zip(marginals.sums, parts.of, strict=True)]
        self.w = factors[0] / np.where(inside, totals[parts.of[0]], 1.0)
        self.h = unfolded(factors[1:])
        rows = self.w * exposure.of_rows(self.h, threads)
        self._columns = self.h * exposure.of_columns(self.w, threads)
        self._rows = rows
        self.sums = np.concatenate([rows, *along_axes(self._columns.reshape(self.inner_shape))])
        self._wanted = np.concatenate(shares)
        self.lives = self._wanted > 0
        self.part = np.where(self.lives, np.concatenate(parts.of), 0)
        self._count = parts.count
        difference = self.sums - self._wanted
        # The rounding of heavy rows would drown what is left to do in light ones.
        self.gradient = np.where(self.lives & (np.abs(difference) > _ROUNDING * self._wanted), difference, 0.0)

    def curvature(self, direction: Array) -> Array:
        """The second derivative times a direction."""
        first, *others = np.split(direction, self._splits)
        inner = reduce(lambda left, right: np.add.outer(left, right).reshape(-1), others)
        along_rows = self.w * _signed(self._exposure.of_rows, self.h * inner, self._threads)
        along_columns = self._columns * inner + self.h * _signed(
            self._exposure.of_columns, self.w * first, self._threads
        )
        rows = self.sums[: first.size] * first + along_rows
        return np.concatenate([rows, *along_axes(along_columns.reshape(self.inner_shape))])

    def moved(self, by: Array) -> tuple[Array, ...]:
        steps = np.split(by, self._splits)
        return tuple(factor * np.exp(step) for factor, step in zip(self.factors, steps, strict=True))

    def largest(self, direction: Array) -> Array:
        """The largest change of a logarithm in each part."""
        largest = np.zeros(self._count)
        np.maximum.at(largest, self.part, np.abs(direction))
        return largest

    def rise(self, moved: tuple[Array, ...], by: Array) -> Array:
        """By how much the cost of each part is higher at the factors `moved` by a step, as a part of its total."""
        grown = self.w * np.exp(by[: self.w.size]) * self._exposure.of_rows(unfolded(moved[1:]), self._threads)
        mass = np.bincount(self.part[: self.w.size], grown - self._rows, minlength=self._count)
        return mass - np.bincount(self.part, self._wanted * by, minlength=self._count)


def _without_drift(direction: Array, mass: Array, parts: Parts) -> Array:
    """The direction freed of what only scales the factors of a part against each other: such is left by rounding."""
    splits = np.cumsum([of.size for of in parts.of])[:-1]
    first, *others = np.split(direction.copy(), splits)
    inside = parts.of[0] >= 0
    for by, weight, of in zip(others, np.split(mass, splits)[1:], parts.of[1:], strict=True):
        lives = of >= 0
        masses = np.bincount(of[lives], weight[lives], minlength=parts.count)
        drift = np.bincount(of[lives], (weight * by)[lives], minlength=parts.count) / masses
        by[lives] -= drift[of[lives]]
        first[inside] += drift[parts.of[0][inside]]
    return np.concatenate([first, *others])


def _signed(sums: Callable[[Array, Threads], Array], vector: Array, threads: Threads) -> Array:
    """Sums of a vector of any sign; those of an exposure are kept exact for numbers that do not cancel."""
    return sums(np.maximum(vector, 0.0), threads) - sums(np.maximum(-vector, 0.0), threads)


def _solved(product: Callable[[Array], Array], right: Array, diagonal: Array) -> Array:
    """product(x) = right by conjugate gradients, preconditioned by the diagonal; where that is 0, x is 0."""
    solution = np.zeros_like(right)
    rest = right.copy()
    scaled = _over(rest, diagonal)
    direction, size = scaled, float(rest @ scaled)
    enough = _PRECISION**2 * size
    for _ in range(_MOST_PRODUCTS):
        if size <= enough:
            break
        bent = product(direction)
        curvature = float(direction @ bent)
        if curvature <= 0:  # flat up to rounding: what is left can't be told from the free scale
            break
        step = size / curvature
        solution += step * direction
        rest -= step * bent
        scaled = _over(rest, diagonal)
        previous, size = size, float(rest @ scaled)
        direction = scaled + size / previous * direction
    return solution


def _over(vector: Array, diagonal: Array) -> Array:
    return np.divide(vector, diagonal, out=np.zeros_like(vector), where=diagonal > 0)
