"""Between the values that users write and the level codes 0..V that ordinal models count with."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from halfseen.arrays import Array
from halfseen.data import Observed
from halfseen.data.labels import quoted
from halfseen.errors import DataError

#: More levels than this are taken for counts or measurements.
MOST_LEVELS = 100


@dataclass(frozen=True)
class Levels:
    """The values of levels 0..V in their order. Where unseen cells are zeros, level 0 is theirs, and its value is 0."""

    values: Array
    unseen: str

    @classmethod
    def found_in(cls, observed: Observed, whose: str) -> "Levels":
        """The different values that were seen, in their order."""
        found = np.unique(observed.values)
        _refuse_counts(found, observed, whose)
        if observed.unseen == "zero":
            found = np.append(0.0, found[found != 0])
        _refuse_too_few(found, observed)
        return cls(found, observed.unseen)

    @property
    def highest(self) -> int:
        """V."""
        return self.values.size - 1

    def coded(self, observed: Observed, whose: str) -> Observed:
        """What was seen, its values as codes; a value that is no level is refused."""
        places = np.searchsorted(self.values, observed.values).clip(0, self.highest)
        strange = np.flatnonzero(self.values[places] != observed.values)
        if strange.size:
            value = observed.values[strange[0]]
            raise DataError(
                f"{whose} must meet the levels that were fitted: {self.listed}. Found {value:g} at "
                f"{observed.place(int(strange[0]))} ({strange.size} such cells). Fit with data that have this level, "
                "or round the value."
            )
        return replace(observed, values=places.astype(observed.dtype))

    def refuse_unseen(self, histogram: Array) -> None:
        """Refuse levels that no cell is at: nothing tells where their thresholds are."""
        first = 1 if self.unseen == "zero" else 0  # unseen zeros are at level 0
        empty = np.flatnonzero(histogram[first:] == 0)
        if empty.size:
            raise DataError(
                "Every level must be seen in the data of a fit. "
                f"Found none at level {self.values[first + empty[0]]:g}. Leave it out of levels."
            )

    @property
    def listed(self) -> str:
        return ", ".join(f"{value:g}" for value in self.values)


def given(levels: Any, unseen: str) -> Levels:
    """Levels that a user lists, from the lowest to the highest."""
    values = np.asarray(levels, dtype=np.float64)
    return Levels(np.append(0.0, values[values != 0]) if unseen == "zero" else values, unseen)


def _refuse_counts(found: Array, observed: Observed, whose: str) -> None:
    negative = np.flatnonzero(observed.values < 0) if observed.unseen == "zero" else np.empty(0, int)
    if negative.size:
        value, place = observed.values[negative[0]], observed.place(int(negative[0]))
        raise DataError(
            f"Negative values in data passed to {whose}: levels must be 0 or larger where unseen cells are zeros. "
            f'Found {value:g} at {place}. Shift the values, or use unseen="missing".'
        )
    if found.size > MOST_LEVELS:
        raise DataError(
            f"{whose} must have at most {MOST_LEVELS} ordered levels. Found {found.size} different values, from "
            f"{quoted(float(found[0]))} to {quoted(float(found[-1]))}. Make levels of counts with Quantizer, or use "
            "PoissonFactorization."
        )


def _refuse_too_few(found: Array, observed: Observed) -> None:
    if found.size < 2:
        raise DataError(
            f"Ordinal data must have two levels or more. Found only {found[0]:g}. "
            'Use unseen="zero" if unseen cells are a level of their own.'
        )
