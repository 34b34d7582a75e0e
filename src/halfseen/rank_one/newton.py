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
from halfseen.rank_one.marginals import Marginals, along_axes, unfolded
from halfseen.rank_one.parts import Parts

#: Systems are solved to this part of the gradient: the next step mends the rest.
_PRECISION = 1e-3
_MOST_PRODUCTS = 2000
#: No entry grows or shrinks by more than e^4 at once.
_LONGEST_STEP = 4.0
#: A gain too small, as a part of the total, to be gone after: the best fit is a limit, and has been reached.
_NO_GAIN = 1e-25


def newton_step(factors: tuple[Array, ...], parts: Parts, threads: Threads) -> tuple[tuple[Array, ...], float]:
    """The factors after one step, and the largest change of a logarithm: 0 if nothing can be gained."""
    here = _Point(factors, parts.marginals, threads)
    direction = _solved(here.curvature, -here.gradient, np.where(here.lives, here.sums, 0.0))
    direction = _without_drift(direction, here.sums, parts)
    longest = float(np.abs(direction).max(initial=0.0))
    if -(here.gradient @ direction) <= _NO_GAIN:
        return factors, 0.0
    step = min(1.0, _LONGEST_STEP / longest)
    while True:
        moved = here.moved(step * direction)
        if step < 1e-6 or here.rise(moved, step * direction) <= 1e-15:
            return moved, step * longest
        step /= 2


class _Point:
    """The cost around given factors, all axes one after the other in one vector."""

    def __init__(self, factors: tuple[Array, ...], marginals: Marginals, threads: Threads) -> None:
        self.factors, self.inner_shape = factors, marginals.inner_shape
        exposure = marginals.exposure
        self._exposure, self._threads = exposure, threads
        self._splits = np.cumsum([factor.size for factor in factors])[:-1]
        self.w, self.h = factors[0] / marginals.total, unfolded(factors[1:])
        rows = self.w * exposure.of_rows(self.h, threads)
        self._columns = self.h * exposure.of_columns(self.w, threads)
        self._mass = float(rows.sum())
        self.sums = np.concatenate([rows, *along_axes(self._columns.reshape(self.inner_shape))])
        self._wanted = np.concatenate(marginals.sums) / marginals.total
        self.lives = self._wanted > 0
        self.gradient = np.where(self.lives, self.sums - self._wanted, 0.0)

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

    def rise(self, moved: tuple[Array, ...], by: Array) -> float:
        """By how much the cost is higher at the factors `moved` by a step, as a part of the total."""
        mass = self.w * np.exp(by[: self.w.size]) @ self._exposure.of_rows(unfolded(moved[1:]), self._threads)
        return float(mass - self._mass - self._wanted @ by)


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
