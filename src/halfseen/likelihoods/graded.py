"""Levels 0..N cut out of a line by thresholds tau_1 < ... < tau_N, each with an interval of its own."""

from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np

from halfseen.arrays import Array, namespace
from halfseen.likelihoods.smooth import Local, Smooth
from halfseen.likelihoods.steps import jacobian, parameters_of, thresholds_of


@dataclass(frozen=True, eq=False)
class Graded(Smooth):
    """A likelihood whose parameters are its thresholds: fixed, or learned through `steps`."""

    thresholds: Array
    learned: bool = True
    values: Array | None = None

    @property
    def highest(self) -> int:  # type: ignore[override]
        return self.thresholds.size

    @property
    def parameters(self) -> Array:
        return parameters_of(self.thresholds) if self.learned else np.empty(0)

    def at(self, parameters: Array) -> Self:
        return replace(self, thresholds=thresholds_of(parameters))

    def slopes(self, sums: Array) -> tuple[Array, Array]:
        """Those by the thresholds, carried over to the parameters by the chain rule."""
        gradient, curvature = self._slopes_of_thresholds(sums)
        chain = jacobian(self.parameters)
        return chain.T @ gradient, chain.T @ curvature @ chain

    @abstractmethod
    def _slopes_of_thresholds(self, sums: Array) -> tuple[Array, Array]:
        """The gradient by the thresholds, and a matrix of curvatures."""


class Ends(NamedTuple):
    """A cell's cost at an interval from a to b that is seen from x, and how it changes as the two ends move.

    d cost / d a = pull >= 0, -d cost / d b = push >= 0; then the second derivatives, or bounds on them.
    """

    cost: Any
    pull: Any
    push: Any
    of_a: Any
    of_b: Any
    across: Any


class Intervals(Graded):
    """A likelihood that knows of a cell only where its level's interval begins and ends, as seen from x.

        cost(y, x) = c(lower_y - x, upper_y - x);    pull = dc/da,  push = -dc/db

    so that slope = push - pull, and each threshold moves with the cells of the two levels that it parts.
    """

    @abstractmethod
    def _ends(self, a: Any, b: Any) -> Ends:
        """The cost of an interval, and its derivatives."""

    @property
    @abstractmethod
    def _outermost(self) -> tuple[float, float]:
        """Where the interval of level 0 begins and that of level N ends."""

    @cached_property
    def _bounds(self) -> tuple[Array, Array]:
        """Where the interval of each level begins and ends."""
        first, last = self._outermost
        return np.append(first, self.thresholds), np.append(self.thresholds, last)

    def _at_cells(self, y: Any, x: Any) -> Ends:
        xp = namespace(x)
        level = xp.astype(y, xp.int64)
        lower, upper = (xp.take(xp.asarray(bound, dtype=x.dtype), level) for bound in self._bounds)
        return self._ends(lower - x, upper - x)

    def local(self, y: Any, x: Any) -> Local:
        cost, pull, push, of_a, of_b, across = self._at_cells(y, x)
        return Local(cost, push - pull, self._judged(of_a + of_b + 2.0 * across, push - pull))

    def _judged(self, curvature: Any, slope: Any) -> Any:
        """The curvature, where it is one to judge steps by."""
        return curvature

    def pull_push(self, y: Any, x: Any) -> tuple[Any, Any]:
        ends = self._at_cells(y, x)
        return ends.pull, ends.push

    def pull_push_cost(self, y: Any, x: Any) -> tuple[Any, Any, Any]:
        ends = self._at_cells(y, x)
        return ends.pull, ends.push, ends.cost

    def sums_of_parameters(self, y: Any, x: Any, weight: Any) -> Array:
        """By level: pulls, pushes and the three second derivatives."""
        ends = self._at_cells(y, x)
        levels = np.asarray(y).astype(np.int64)
        weight = None if weight is None else np.asarray(weight)

        def by_level(what: Any) -> Array:
            each = np.asarray(what, dtype=np.float64)
            return np.bincount(levels, each if weight is None else each * weight, minlength=self.highest + 1)

        return np.concatenate([by_level(what) for what in ends[1:]])

    def _slopes_of_thresholds(self, sums: Array) -> tuple[Array, Array]:
        pull, push, of_a, of_b, across = sums.reshape(5, -1)
        gradient, curvature = np.zeros(self.highest), np.zeros((self.highest, self.highest))
        for level in range(self.highest + 1):
            # The outer ends of the first and the last level, if they have any, move with the threshold next to them.
            a, b = max(level - 1, 0), min(level, self.highest - 1)
            gradient[a] += pull[level]
            gradient[b] -= push[level]
            curvature[a, a] += of_a[level]
            curvature[b, b] += of_b[level]
            curvature[a, b] += across[level]
            curvature[b, a] += across[level]
        return gradient, curvature
