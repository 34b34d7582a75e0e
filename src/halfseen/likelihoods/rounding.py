"""The two losses of generalized round-rank factorization: hinges around intervals, and a staircase of sigmoids."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from scipy.special import expit

from halfseen.arrays import Array, namespace
from halfseen.likelihoods.graded import Ends, Graded, Intervals
from halfseen.likelihoods.smooth import Local

#: Where sigmoids are 0 or 1 to all digits; exponentials fit into single precision twice as far out.
_FAR = 40.0


@dataclass(frozen=True, eq=False)
class Round(Intervals):
    """cost = (lower_y + margin - x)_+ + (x + margin - upper_y)_+   (section 3.2 of `grr-2018`, where margin = 0)

    smoothed quadratically over `smoothing`. The intervals of the lowest and the highest level are `ends` long: in the
    thesis 1, here without end, as GRF has them. Without a margin an x on a threshold costs nothing at the levels on
    either side of it, though it is at one of them only: with one, only x strictly inside their intervals are free.
    """

    margin: float = 0.05
    ends: float = np.inf
    smoothing: float = 0.01

    name = "round"

    @property
    def _outermost(self) -> tuple[float, float]:
        return float(self.thresholds[0]) - self.ends, float(self.thresholds[-1]) + self.ends

    def _ends(self, a: Any, b: Any) -> Ends:
        below, above = self._hinge(a + self.margin), self._hinge(self.margin - b)
        nothing = namespace(a).zeros_like(a)
        return Ends(below.cost + above.cost, below.slope, above.slope, below.curvature, above.curvature, nothing)

    def _hinge(self, r: Any) -> Local:
        """(r)_+, by a parabola up to `smoothing`; and the least curvature of a parabola that touches it at r and lies
        above it everywhere: 1 / |2 r - smoothing|, and 1 / smoothing on the smoothed part."""
        xp, width = namespace(r), self.smoothing
        inside, slope = xp.clip(r, 0.0, width), xp.clip(r / width, 0.0, 1.0)
        cost = inside * slope / 2.0 + xp.clip(r - width, 0.0, None)
        return Local(cost, slope, 1.0 / xp.clip(xp.abs(2.0 * r - width), width, None))

    def started(self, histogram: Array) -> Self:
        """The thresholds of the thesis, a unit apart, around 0."""
        return replace(self, thresholds=np.arange(self.highest) - (self.highest - 1) / 2.0)

    def mean(self, x: Any) -> Any:
        """The value of the level at x: there is no other."""
        xp = namespace(x)
        level = xp.zeros_like(x)
        for threshold in self.thresholds:
            level = level + xp.astype(x > float(threshold), x.dtype)
        return self.valued(level)


@dataclass(frozen=True, eq=False)
class MultiSigmoid(Graded):
    """cost = (y - psi(x))^2,   psi(x) = sum over d of sigmoid(x - tau_d)   (section 3.2 of `grr-2018`)."""

    name = "multi-sigmoid"

    @cached_property
    def cuts(self) -> Array:
        """Given thresholds; else where psi(x) = 1/2, 3/2, ..., N - 1/2: learned ones may lie so close together that the
        staircase has no steps any more, and only its height tells the level."""
        if not self.learned:
            return self.thresholds
        low, high = (np.full(self.highest, end) for end in (self.thresholds[0] - _FAR, self.thresholds[-1] + _FAR))
        wanted = np.arange(self.highest) + 0.5
        for _ in range(64):  # halves the way 64 times: to the last digit
            middle = 0.5 * (low + high)
            below = self._stairs(middle)[0] < wanted
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return 0.5 * (low + high)

    def _stairs(self, x: Any) -> tuple[Any, Any]:
        """psi(x) and its slope."""
        height, squares = namespace(x).zeros_like(x), namespace(x).zeros_like(x)
        for step in self._steps(x):
            height, squares = height + step, squares + step * step
        return height, height - squares

    def _steps(self, x: Any) -> Iterator[Any]:
        """sigmoid(x - tau) of every step: by one exponential for all, e^-x e^tau, if they are not too far apart."""
        xp, middle = namespace(x), float(np.mean(self.thresholds))
        if np.abs(self.thresholds - middle).max() > _FAR / 2:
            yield from (expit(x - float(threshold)) for threshold in self.thresholds)
            return
        fallen = xp.exp(-xp.clip(x - middle, -_FAR, _FAR))
        yield from (1.0 / (1.0 + float(np.exp(threshold - middle)) * fallen) for threshold in self.thresholds)

    def local(self, y: Any, x: Any) -> Local:
        """The curvature is that of Gauss and Newton: it leaves out how psi itself bends."""
        height, slope = self._stairs(x)
        error = height - y
        return Local(error * error, 2.0 * error * slope, 2.0 * slope * slope)

    def sums_of_parameters(self, y: Any, x: Any, weight: Any) -> Array:
        """The gradient by the thresholds, then the matrix of Gauss and Newton."""
        x = np.asarray(x, dtype=np.float64)
        steps = list(self._steps(x))
        slopes = [step * (1.0 - step) for step in steps]
        error = sum(steps) - np.asarray(y)
        weight = np.ones_like(x) if weight is None else np.asarray(weight, dtype=np.float64)
        gradient = [-2.0 * np.sum(weight * error * slope) for slope in slopes]
        matrix = [2.0 * np.sum(weight * one * other) for one in slopes for other in slopes]
        return np.array(gradient + matrix)

    def _slopes_of_thresholds(self, sums: Array) -> tuple[Array, Array]:
        return sums[: self.highest], sums[self.highest :].reshape(self.highest, self.highest)

    def started(self, histogram: Array) -> Self:
        """Where the sigmoids part a logistic noise as the levels part the cells."""
        below = np.cumsum(histogram)[:-1] / histogram.sum()
        return replace(self, thresholds=np.log(below) - np.log1p(-below))

    def mean(self, x: Any) -> Any:
        """psi(x), in the values of the levels: each step is as high as the gap between its two levels."""
        return self._expected(x, expit)
