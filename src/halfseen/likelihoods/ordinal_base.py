"""Base classes of ordinal likelihoods with x of any sign and thresholds tau_1 < ... < tau_N that are learned with it.

    SmoothOrdinal      a cost with a slope in x everywhere, and in its own parameters
    ThresholdOrdinal   whose parameters are the thresholds
    IntervalOrdinal    whose cost depends on the ends of the level's interval alone

Thresholds are parametrised by a vector without bounds, the first threshold and the logarithms of the gaps,

    tau_1 = p_1,    tau_{d+1} = tau_d + exp(p_{d+1})

so that they stay ordered wherever a solver moves the parameters.
"""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from halfseen.arrays import Array, ArraySpec, beside, namespace
from halfseen.likelihoods.base import CellTerms, Likelihood, StateSpec
from halfseen.observed import Observed

#: Logarithms of gaps are clipped to +-this: beyond, thresholds would coincide or overflow.
_WIDEST = 30.0


def thresholds_from_parameters(parameters: Array) -> Array:
    """tau of its parameters (along the last axis)."""
    gaps = np.exp(np.clip(parameters[..., 1:], -_WIDEST, _WIDEST))
    thresholds = [parameters[..., 0]]
    for d in range(gaps.shape[-1]):  # a gap that is lost in rounding becomes the smallest that is not
        below = thresholds[-1]
        thresholds.append(np.maximum(below + gaps[..., d], np.nextafter(below, np.inf)))
    return np.stack(thresholds, axis=-1)


def parameters_from_thresholds(thresholds: Array) -> Array:
    """The inverse of `thresholds_from_parameters`."""
    parameters: Array = np.concatenate([thresholds[..., :1], np.log(np.diff(thresholds, axis=-1))], axis=-1)
    return parameters


def threshold_jacobian(parameters: Array) -> Array:
    """d tau_d / d p_e along the last two axes: 1 for the first parameter, the gap for each later one up to d."""
    size = parameters.shape[-1]
    gaps = np.exp(np.clip(parameters, -_WIDEST, _WIDEST))
    gaps[..., 0] = 1.0
    jacobian: Array = np.tril(np.ones((size, size))) * gaps[..., None, :]
    return jacobian


class Quadratic(NamedTuple):
    """Cost of a cell at its x, the slope there, and a curvature of 0 or more: the local model of Newton's method."""

    cost: Any
    slope: Any
    curvature: Any


class SmoothOrdinal(Likelihood):
    """cost(y, x) with a slope in x everywhere, and in parameters of its own (thresholds, an offset).

    Values y are the codes of levels, 0..N. `parameters` is a vector without bounds.
    """

    powers = None
    x_is_positive = False
    alternative_for_zeros = "`OrdNMF`, which takes them for a level below all others"
    domain = "Ordinal levels must be integers 0..V."
    remedy = "Round the values, or use `WeightedNMF`."
    #: The numbers that the levels 0..N stand for; themselves, if None.
    values: Array | None

    @property
    @abstractmethod
    def highest(self) -> int:
        """The highest level N."""

    @property
    @abstractmethod
    def cuts(self) -> Array:
        """tau_1 < ... < tau_N, at which the level of x changes  (Eq. 2.5 of `grr-2018`)."""

    @property
    @abstractmethod
    def parameters(self) -> Array:
        """The parameters that are learned, in a vector without bounds; empty if all are fixed."""

    @abstractmethod
    def with_parameters(self, parameters: Array) -> Self:
        """The same likelihood with other parameters."""

    @abstractmethod
    def shifted(self, by: float) -> Self:
        """The likelihood whose cost at x + `by` is what the cost at x was."""

    @abstractmethod
    def initialize(self, histogram: Array) -> Self:
        """With the best parameters for x = 0 everywhere, given the number of cells at each level."""

    @abstractmethod
    def quadratic(self, y: Any, x: Any) -> Quadratic:
        """Cost, slope and curvature in x, elementwise."""

    @property
    def n_codes(self) -> int:
        """The number of values that y can have: levels, or levels of each owner of thresholds."""
        return self.highest + 1

    @abstractmethod
    def parameter_terms(self, y: Any, x: Any) -> CellTerms:
        """Terms of the sums over cells, and of the sums by level, from which `parameter_gradient` is computed."""

    def parameter_sums(self, y: Array, x: Array, weight: Array | None) -> Array:
        """The vector of these sums."""
        terms, by_level = self.parameter_terms(y, x)
        weight = np.ones(y.shape) if weight is None else np.asarray(weight, dtype=np.float64)
        levels = np.asarray(y).astype(np.intp)
        sums = [np.sum(term * weight, dtype=np.float64, keepdims=True).reshape(1) for term in terms]
        return np.concatenate(sums + [np.bincount(levels, term * weight, self.n_codes) for term in by_level])

    @abstractmethod
    def parameter_gradient(self, sums: Array) -> tuple[Array, Array]:
        """The gradient of the summed cost by the parameters, and a matrix of second derivatives or bounds on them."""

    def parameter_step(self, sums: Array, damping: float = 0.0) -> Array:
        """Newton step of the parameters, with `damping` times the mean second derivative added to the diagonal."""
        gradient, curvature = self.parameter_gradient(sums)
        damped = curvature + damping * np.mean(np.diag(curvature)) * np.eye(gradient.size)
        step: Array = -np.linalg.lstsq(damped, gradient, rcond=None)[0]
        return step

    @property
    def parameter_penalty(self) -> float:
        """The penalty on the parameters."""
        return 0.0

    def gradients(self, y: Any, x: Any, weight: Any) -> tuple[Any, Array]:
        """The slope in x of each cell, times its weight, and the gradient by the parameters: for SGD."""
        slope = self.quadratic(y, x).slope
        gradient = np.empty(0)
        if self.parameters.size:
            gradient = self.parameter_gradient(self.parameter_sums(y, x, weight))[0]
        return slope if weight is None else slope * weight, gradient

    def pull_push(self, y: Any, x: Any) -> tuple[Any, Any]:
        return self.pull_push_cost(y, x)[:2]

    def pull_push_cost(self, y: Any, x: Any) -> tuple[Any, Any, Any]:
        """The slope as pull and push, one of which is 0; and the cost."""
        cost, slope, _ = self.quadratic(y, x)
        xp = namespace(slope)
        return xp.maximum(-slope, xp.zeros_like(slope)), xp.maximum(slope, xp.zeros_like(slope)), cost

    def divergence(self, y: Any, x: Any) -> Any:
        """The cost, 0 or larger: the best that an x can do is not subtracted."""
        return self.quadratic(y, x).cost

    def legal(self, y: Array) -> Array:
        return (y >= 0) & (y <= self.highest) & (y == np.floor(y))

    def levels(self, x: Array) -> Array:
        """GRF(x): the number of cuts below x  (Eq. 2.5)."""
        return np.searchsorted(self.cuts, x, side="left")

    def decode(self, code: Any) -> Any:
        """The values of codes, by interpolation between two levels and extrapolation beyond all."""
        if self.values is None:
            return code
        xp = namespace(code)
        value = xp.zeros_like(code) + float(self.values[0])
        # From each level to the next the value rises by its gap; the first and the last slope continue to infinity.
        for level, gap in enumerate(np.diff(self.values)):
            low = 0.0 if level else -np.inf
            high = 1.0 if level < self.values.size - 2 else np.inf
            value = value + float(gap) * xp.clip(code - float(level), low, high)
        return value

    def start(self, observed: Observed) -> float:
        return 0.0


@dataclass(frozen=True, eq=False)
class ThresholdOrdinal(SmoothOrdinal):
    """An ordinal likelihood whose parameters are its thresholds, fixed or learned."""

    thresholds: Array
    learned: bool = True
    values: Array | None = None

    state: ClassVar[StateSpec] = {
        "thresholds": ArraySpec("f", ("levels-1",), rising=True),
        "learned": bool,
        "values": ArraySpec("fiu", ("levels",), optional=True),
    }

    @property
    def highest(self) -> int:
        return self.thresholds.size

    @property
    def cuts(self) -> Array:
        return self.thresholds

    @property
    def parameters(self) -> Array:
        return parameters_from_thresholds(self.thresholds) if self.learned else np.empty(0)

    def with_parameters(self, parameters: Array) -> Self:
        return replace(self, thresholds=thresholds_from_parameters(parameters))

    def shifted(self, by: float) -> Self:
        parameters = parameters_from_thresholds(self.thresholds)
        parameters[0] += by
        return replace(self, thresholds=thresholds_from_parameters(parameters))  # no gap is lost in rounding

    def parameter_gradient(self, sums: Array) -> tuple[Array, Array]:
        """Derivatives by the thresholds, transformed to the parameters by the chain rule."""
        gradient, curvature = self._threshold_gradient(sums)
        chain = threshold_jacobian(self.parameters)
        return chain.T @ gradient, chain.T @ curvature @ chain

    @abstractmethod
    def _threshold_gradient(self, sums: Array) -> tuple[Array, Array]:
        """The gradient by the thresholds, and a matrix of second derivatives."""

    def _mean_of_steps(self, x: Any, step: Callable[[Any], Any]) -> Any:
        """The lowest value, plus every gap between values times `step(x - tau)`."""
        xp = namespace(x)
        values = np.arange(self.highest + 1.0) if self.values is None else self.values
        expected = xp.zeros_like(x) + float(values[0])
        for gap, threshold in zip(np.diff(values), self.thresholds, strict=True):
            expected = expected + float(gap) * step(x - beside(x, threshold))
        return expected


class IntervalCost(NamedTuple):
    """Cost of a cell whose level's interval goes from a to b relative to x, and its derivatives by the two ends.

    d cost / d a = pull >= 0, -d cost / d b = push >= 0; then the second derivatives, or bounds on them.
    """

    cost: Any
    pull: Any
    push: Any
    aa: Any
    bb: Any
    ab: Any


class IntervalOrdinal(ThresholdOrdinal):
    """An ordinal likelihood that depends only on where a level's interval begins and ends, relative to x.

        cost(y, x) = c(lower_y - x, upper_y - x);    pull = dc/da,  push = -dc/db

    so that slope = push - pull, and each threshold moves with the cells of the two levels that it separates.
    """

    @abstractmethod
    def _interval_cost(self, a: Any, b: Any) -> IntervalCost:
        """The cost of an interval, and its derivatives."""

    @property
    @abstractmethod
    def _outermost(self) -> tuple[float, float]:
        """The lower end of level 0 and the upper end of level N."""

    @cached_property
    def _bounds(self) -> tuple[Array, Array]:
        """The lower and the upper end of each level's interval."""
        first, last = self._outermost
        return np.append(first, self.thresholds), np.append(self.thresholds, last)

    def _interval(self, y: Any, x: Any) -> tuple[Any, Any]:
        """The interval of each cell's level, relative to x."""
        xp = namespace(x)
        level = xp.astype(y, xp.int64)
        lower, upper = (xp.take(beside(x, bound), level) for bound in self._bounds)
        return lower - x, upper - x

    def _at_cells(self, y: Any, x: Any) -> IntervalCost:
        return self._interval_cost(*self._interval(y, x))

    def quadratic(self, y: Any, x: Any) -> Quadratic:
        """Cost and derivatives by x, which moves both ends."""
        cost, pull, push, aa, bb, ab = self._at_cells(y, x)
        return Quadratic(cost, push - pull, aa + bb + 2.0 * ab)

    def pull_push_cost(self, y: Any, x: Any) -> tuple[Any, Any, Any]:
        at_cells = self._at_cells(y, x)
        return at_cells.pull, at_cells.push, at_cells.cost

    @property
    def n_codes(self) -> int:
        return self._bounds[0].size

    def parameter_terms(self, y: Any, x: Any) -> CellTerms:
        """By level: pulls, pushes and the three second derivatives."""
        return (), tuple(self._at_cells(y, x)[1:])

    def gradients(self, y: Any, x: Any, weight: Any) -> tuple[Any, Array]:
        _, pull, push, *_ = self._at_cells(y, x)
        slope = push - pull
        gradient = np.empty(0)
        if self.learned:
            sums = np.concatenate(
                [
                    np.bincount(y.astype(np.intp), term if weight is None else term * weight, self.n_codes)
                    for term in (pull, push)
                ]
            )
            gradient, _ = self.parameter_gradient(np.concatenate([sums, np.zeros(3 * sums.size // 2)]))
        return slope if weight is None else slope * weight, gradient

    def _threshold_gradient(self, sums: Array) -> tuple[Array, Array]:
        gradient, curvature = interval_gradient(sums.reshape(5, 1, -1))
        return gradient[0], curvature[0]


def interval_gradient(sums: Array) -> tuple[Array, Array]:
    """The gradient by thresholds and the matrix of second derivatives, from `IntervalOrdinal`'s sums by level.

    The sums have shape (5, owners, levels), where each owner is a row or column with thresholds of its own.
    """
    pull, push, aa, bb, ab = sums
    owners, highest = pull.shape[0], pull.shape[1] - 1
    gradient, curvature = np.zeros((owners, highest)), np.zeros((owners, highest, highest))
    for level in range(highest + 1):
        # The outer ends of the first and the last level, if finite, move with the threshold next to them.
        a, b = max(level - 1, 0), min(level, highest - 1)
        gradient[:, a] += pull[:, level]
        gradient[:, b] -= push[:, level]
        curvature[:, a, a] += aa[:, level]
        curvature[:, b, b] += bb[:, level]
        curvature[:, a, b] += ab[:, level]
        curvature[:, b, a] += ab[:, level]
    return gradient, curvature
