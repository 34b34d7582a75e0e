"""Squared error of the levels themselves: what linear factorization does with them."""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from halfseen.arrays import Array, namespace
from halfseen.likelihoods.smooth import Local, Smooth


@dataclass(frozen=True, eq=False)
class Linear(Smooth):
    """cost = (y - offset - x)^2   (Eq. 1.5 of `grr-2018`, where the offset is 0)."""

    highest: int
    offset: float = 0.0
    learned: bool = True
    values: Array | None = None

    name = "linear"

    @property
    def parameters(self) -> Array:
        return np.array([self.offset]) if self.learned else np.empty(0)

    def at(self, parameters: Array) -> Self:
        return replace(self, offset=float(parameters[0]))

    @property
    def thresholds(self) -> Array:  # type: ignore[override]
        """Half-way between the levels."""
        return np.arange(self.highest) + 0.5 - self.offset

    def local(self, y: Any, x: Any) -> Local:
        error = x + self.offset - y
        return Local(error * error, 2.0 * error, namespace(x).full_like(x, 2.0))

    def sums_of_parameters(self, y: Any, x: Any, weight: Any) -> Array:
        error = np.asarray(self.local(y, x).slope, dtype=np.float64)
        weight = np.ones_like(error) if weight is None else np.asarray(weight, dtype=np.float64)
        return np.array([np.sum(weight * error), 2.0 * np.sum(weight)])

    def slopes(self, sums: Array) -> tuple[Array, Array]:
        return sums[:1], sums[1:].reshape(1, 1)

    def started(self, histogram: Array) -> Self:
        """The mean level, if it is learned."""
        mean = float(np.average(np.arange(histogram.size), weights=histogram))
        return replace(self, offset=mean) if self.learned else self

    def mean(self, x: Any) -> Any:
        return self.valued(x + self.offset)
