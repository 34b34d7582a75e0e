"""Levels 0..N cut out of a line by thresholds tau_1 < ... < tau_N, each with an interval of its own."""

from abc import abstractmethod
from collections.abc import Callable
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

    def _expected(self, x: Any, above: Callable[[Any], Any]) -> Any:
        """The lowest value, and of every gap between values the share that `above(x - tau)` gives of it."""
        xp = namespace(x)
        values = np.arange(self.highest + 1.0) if self.values is None else self.values
        expected = xp.zeros_like(x) + float(values[0])
        for gap, threshold in zip(np.diff(values), self.thresholds, strict=True):
            expected = expected + float(gap) * above(x - xp.asarray(threshold, dtype=x.dtype))
        return expected


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

    def _interval(self, y: Any, x: Any) -> tuple[Any, Any]:
        """Where the interval of each cell's level begins and ends, as seen from x."""
        xp = namespace(x)
        level = xp.astype(y, xp.int64)
        lower, upper = (xp.take(xp.asarray(bound, dtype=x.dtype), level) for bound in self._bounds)
        return lower - x, upper - x

    def _at_cells(self, y: Any, x: Any) -> Ends:
        return self._ends(*self._interval(y, x))

    def local(self, y: Any, x: Any) -> Local:
        return self._local(*self._interval(y, x))

    def _local(self, a: Any, b: Any) -> Local:
        """The cost of an interval, and its derivatives by x, which moves both ends."""
        cost, pull, push, of_a, of_b, across = self._ends(a, b)
        return Local(cost, push - pull, of_a + of_b + 2.0 * across)

    def pull_push(self, y: Any, x: Any) -> tuple[Any, Any]:
        ends = self._at_cells(y, x)
        return ends.pull, ends.push

    def pull_push_cost(self, y: Any, x: Any) -> tuple[Any, Any, Any]:
        ends = self._at_cells(y, x)
        return ends.pull, ends.push, ends.cost

    def sums_of_parameters(self, y: Any, x: Any, weight: Any) -> Array:
        """By level: pulls, pushes and the three second derivatives."""
        return self._by_level(y, weight, *self._at_cells(y, x)[1:])

    def _by_level(self, y: Any, weight: Any, *each: Any) -> Array:
        levels = np.asarray(y).astype(np.int64)
        weight = 1.0 if weight is None else np.asarray(weight)
        sums = (np.bincount(levels, np.asarray(what) * weight, minlength=self._bounds[0].size) for what in each)
        return np.concatenate(list(sums))

    def descent(self, y: Any, x: Any, weight: Any) -> tuple[Any, Array]:
        _, pull, push, *_ = self._at_cells(y, x)
        slope = push - pull
        gradient = np.empty(0)
        if self.learned:
            sums = self._by_level(y, weight, pull, push)
            gradient, _ = self.slopes(np.concatenate([sums, np.zeros(3 * sums.size // 2)]))
        return slope if weight is None else slope * weight, gradient

    def _slopes_of_thresholds(self, sums: Array) -> tuple[Array, Array]:
        gradient, curvature = slopes_by_level(sums.reshape(5, 1, -1))
        return gradient[0], curvature[0]


def slopes_by_level(sums: Array) -> tuple[Array, Array]:
    """The gradient by thresholds and the matrix of second derivatives, from `Intervals`' sums by level.

    The sums have shape (5, owners, levels): whoever has thresholds of his own has sums of his own.
    """
    pull, push, of_a, of_b, across = sums
    owners, highest = pull.shape[0], pull.shape[1] - 1
    gradient, curvature = np.zeros((owners, highest)), np.zeros((owners, highest, highest))
    for level in range(highest + 1):
        # The outer ends of the first and the last level, if they have any, move with the threshold next to them.
        a, b = max(level - 1, 0), min(level, highest - 1)
        gradient[:, a] += pull[:, level]
        gradient[:, b] -= push[:, level]
        curvature[:, a, a] += of_a[:, level]
        curvature[:, b, b] += of_b[:, level]
        curvature[:, a, b] += across[:, level]
        curvature[:, b, a] += across[:, level]
    return gradient, curvature
