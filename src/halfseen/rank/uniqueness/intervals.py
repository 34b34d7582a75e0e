"""What is known of the numbers behind levels: the interval that each is in."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from halfseen.arrays import Array


@dataclass(frozen=True)
class Intervals:
    """x between `lower` and `upper`, an end itself excluded where it is open; infinite where nothing is known."""

    lower: Array
    upper: Array
    lower_open: Array
    upper_open: Array

    @classmethod
    def of_levels(cls, lowest: Array, highest: Array, thresholds: Array) -> "Intervals":
        """tau_lowest < x <= tau_{highest + 1}  (Eq. 2.5): the numbers that round to levels from lowest to highest."""
        edges = np.concatenate([[-np.inf], thresholds, [np.inf]])
        lower, upper = edges[lowest], edges[highest + 1]
        return cls(lower, upper, np.ones(lower.shape, bool), np.zeros(upper.shape, bool))

    def __getitem__(self, places: Any) -> "Intervals":
        ends = self.lower, self.upper, self.lower_open, self.upper_open
        return Intervals(*(end[places] for end in ends))

    def and_point(self, x: float) -> "Intervals":
        """With a number at the end that is known exactly."""
        ends = (np.append(end, x) for end in (self.lower, self.upper))
        return Intervals(*ends, *(np.append(is_open, False) for is_open in (self.lower_open, self.upper_open)))

    def turned(self, turn: Array) -> "Intervals":
        """Those of -x where `turn` says so."""
        return Intervals(
            np.where(turn, -self.upper, self.lower),
            np.where(turn, -self.lower, self.upper),
            np.where(turn, self.upper_open, self.lower_open),
            np.where(turn, self.lower_open, self.upper_open),
        )

    @property
    def without_zero(self) -> Array:
        """Where x can't be 0."""
        above = (self.lower > 0) | ((self.lower == 0) & self.lower_open)
        below = (self.upper < 0) | ((self.upper == 0) & self.upper_open)
        return above | below
