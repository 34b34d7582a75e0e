"""Losses of generalized round-rank factorization: hinges around intervals, a sum of sigmoids, and squared error."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar, Self

import numpy as np

from halfseen.arrays import Array, ArraySpec, namespace, special
from halfseen.likelihoods.base import CellTerms, StateSpec
from halfseen.likelihoods.ordinal_base import (
    IntervalCost,
    IntervalOrdinal,
    Quadratic,
    SmoothOrdinal,
    ThresholdOrdinal,
)

#: Beyond this, sigmoids are 0 or 1 to all digits; exponentials overflow single precision only twice as far out.
_FAR = 40.0


@dataclass(frozen=True, eq=False)
class Round(IntervalOrdinal):
    """cost = (lower_y + margin - x)_+ + (x + margin - upper_y)_+   (section 3.2 of `grr-2018`, where margin = 0)

    smoothed quadratically over `smoothing`. The intervals of the lowest and the highest level are `ends` long: 1 in the
    thesis, here infinite, as in GRF. Without a margin an x on a threshold costs nothing for the levels on both sides,
    though it belongs to one of them only: with one, only x strictly inside the interval cost nothing.
    """

    margin: float = 0.05
    ends: float = np.inf
    smoothing: float = 0.01

    state: ClassVar[StateSpec] = {**IntervalOrdinal.state, "margin": float, "ends": float, "smoothing": float}
    name = "round"

    @property
    def _outermost(self) -> tuple[float, float]:
        return float(self.thresholds[0]) - self.ends, float(self.thresholds[-1]) + self.ends

    def _interval_cost(self, a: Any, b: Any) -> IntervalCost:
        below, above = self._hinge(a + self.margin), self._hinge(self.margin - b)
        ab = namespace(a).zeros_like(a)
        return IntervalCost(below.cost + above.cost, below.slope, above.slope, below.curvature, above.curvature, ab)

    def _hinge(self, r: Any) -> Quadratic:
        """(r)_+, by a parabola up to `smoothing`; and the least curvature of a parabola that touches it at r and lies
        above it everywhere: 1 / |2 r - smoothing|, and 1 / smoothing on the smoothed part."""
        xp, width = namespace(r), self.smoothing
        inside, slope = xp.clip(r, 0.0, width), xp.clip(r / width, 0.0, 1.0)
        cost = inside * slope / 2.0 + xp.clip(r - width, 0.0, None)
        return Quadratic(cost, slope, 1.0 / xp.clip(xp.abs(2.0 * r - width), width, None))

    def initialize(self, histogram: Array) -> Self:
        """The thresholds of the thesis, one unit apart, around 0."""
        return replace(self, thresholds=np.arange(self.highest) - (self.highest - 1) / 2.0)

    def mean(self, x: Any) -> Any:
        """The value of the level at x."""
        xp = namespace(x)
        level = xp.zeros_like(x)
        for threshold in self.thresholds:
            level = level + xp.astype(x > float(threshold), x.dtype)
        return self.decode(level)


@dataclass(frozen=True, eq=False)
class MultiSigmoid(ThresholdOrdinal):
    """cost = (y - psi(x))^2,   psi(x) = sum over d of sigmoid(x - tau_d)   (section 3.2 of `grr-2018`)."""

    name = "multi-sigmoid"

    @cached_property
    def cuts(self) -> Array:
        """Given thresholds; else the x with psi(x) = 1/2, 3/2, ..., N - 1/2: learned ones may lie so close together
        that psi has no steps any more, and only its height determines the level."""
        if not self.learned:
            return self.thresholds
        low, high = (np.full(self.highest, end) for end in (self.thresholds[0] - _FAR, self.thresholds[-1] + _FAR))
        goals = np.arange(self.highest) + 0.5
        for _ in range(64):  # bisection, to the last digit
            middle = 0.5 * (low + high)
            below = self._psi(middle)[0] < goals
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return 0.5 * (low + high)

    def _psi(self, x: Any) -> tuple[Any, Any]:
        """psi(x) and its slope."""
        height, squares = namespace(x).zeros_like(x), namespace(x).zeros_like(x)
        for step in self._steps(x):
            height, squares = height + step, squares + step * step
        return height, height - squares

    def _steps(self, x: Any) -> Iterator[Any]:
        """sigmoid(x - tau) of every threshold: by one exponential for all, e^-x e^tau, if they are close enough."""
        xp, middle = namespace(x), float(np.mean(self.thresholds))
        if np.abs(self.thresholds - middle).max() > _FAR / 2:
            yield from (special("expit", x - float(threshold)) for threshold in self.thresholds)
            return
        fallen = xp.exp(-xp.clip(x - middle, -_FAR, _FAR))
        yield from (1.0 / (1.0 + float(np.exp(threshold - middle)) * fallen) for threshold in self.thresholds)

    def quadratic(self, y: Any, x: Any) -> Quadratic:
        """The curvature is that of Gauss-Newton: without the second derivative of psi."""
        height, slope = self._psi(x)
        error = height - y
        return Quadratic(error * error, 2.0 * error * slope, 2.0 * slope * slope)

    def parameter_terms(self, y: Any, x: Any) -> CellTerms:
        """Of the gradient by the thresholds, then of the Gauss-Newton matrix; in double precision."""
        xp = namespace(x)
        steps = list(self._steps(xp.astype(x, xp.float64)))
        slopes = [step * (1.0 - step) for step in steps]
        error = sum(steps) - y
        gradient = [-2.0 * error * slope for slope in slopes]
        matrix = [2.0 * one * other for one in slopes for other in slopes]
        return (*gradient, *matrix), ()

    def _threshold_gradient(self, sums: Array) -> tuple[Array, Array]:
        return sums[: self.highest], sums[self.highest :].reshape(self.highest, self.highest)

    def initialize(self, histogram: Array) -> Self:
        """Thresholds at the quantiles of logistic noise that the levels have among the cells."""
        below = np.cumsum(histogram)[:-1] / histogram.sum()
        return replace(self, thresholds=np.log(below) - np.log1p(-below))

    def mean(self, x: Any) -> Any:
        """psi(x), in the values of the levels: each sigmoid is as high as the gap between its two levels."""
        return self._mean_of_steps(x, partial(special, "expit"))


@dataclass(frozen=True, eq=False)
class Linear(SmoothOrdinal):
    """cost = (y - offset - x)^2   (Eq. 1.5 of `grr-2018`, where the offset is 0): the squared error of the levels."""

    n_thresholds: int
    offset: float = 0.0
    learned: bool = True
    values: Array | None = None

    state: ClassVar[StateSpec] = {
        "n_thresholds": int,
        "offset": float,
        "learned": bool,
        "values": ArraySpec("fiu", ("levels",), optional=True),
    }
    name = "linear"

    @property
    def parameters(self) -> Array:
        return np.array([self.offset]) if self.learned else np.empty(0)

    def with_parameters(self, parameters: Array) -> Self:
        return replace(self, offset=float(parameters[0]))

    def shifted(self, by: float) -> Self:
        return replace(self, offset=self.offset - by)

    @property
    def highest(self) -> int:
        return self.n_thresholds

    @property
    def thresholds(self) -> Array:
        """Midpoints between the levels."""
        return np.arange(self.highest) + 0.5 - self.offset

    @property
    def cuts(self) -> Array:
        return self.thresholds

    def quadratic(self, y: Any, x: Any) -> Quadratic:
        error = x + self.offset - y
        return Quadratic(error * error, 2.0 * error, namespace(x).full_like(x, 2.0))

    def parameter_terms(self, y: Any, x: Any) -> CellTerms:
        _, slope, curvature = self.quadratic(y, x)
        return (slope, curvature), ()

    def parameter_gradient(self, sums: Array) -> tuple[Array, Array]:
        return sums[:1], sums[1:].reshape(1, 1)

    def initialize(self, histogram: Array) -> Self:
        """The mean level, if it is learned."""
        mean = float(np.average(np.arange(histogram.size), weights=histogram))
        return replace(self, offset=mean) if self.learned else self

    def mean(self, x: Any) -> Any:
        return self.decode(x + self.offset)
