"""Between the values that users write and the level codes 0..V that ordinal models count with."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from halfseen import checks
from halfseen.arrays import Array
from halfseen.errors import DataError, ParameterError
from halfseen.labels import quoted
from halfseen.observed import Observed

#: More levels than this are taken for counts or measurements.
MOST_LEVELS = 100


@dataclass(frozen=True)
class Levels:
    """The values of levels 0..V in their order, and their names, where they are texts.

    Where unseen cells are zeros, level 0 is theirs: its value is 0, its name None.
    """

    values: Array
    unseen: str
    names: Array | None = None

    @classmethod
    def found_in(cls, observed: Observed, whose: str) -> "Levels":
        """The different values that were seen, in their order."""
        found = np.unique(observed.values)
        _refuse_counts(found, observed, whose)
        if observed.unseen == "zero":
            found = np.append(0.0, found[found != 0])
        levels = cls(found, observed.unseen, _names_of(found, observed.level_names))
        levels._refuse_too_few()
        return levels

    @classmethod
    def given(cls, levels: Any, unseen: str) -> "Levels":
        """Levels that a user lists, from the lowest to the highest."""
        if are_texts(levels):
            values = np.arange(0 if unseen == "zero" else 1, len(levels) + 1, dtype=np.float64)
            found = cls(values, unseen, _names_of(values, np.asarray(levels, dtype=object)))
        else:
            values = np.asarray(levels, dtype=np.float64)
            _refuse_negative(values, unseen)
            found = cls(np.append(0.0, values[values != 0]) if unseen == "zero" else values, unseen)
        found._refuse_too_few()
        return found

    @classmethod
    def fitted(cls, labels: Array, unseen: str) -> "Levels":
        """Those of a fit, by their labels: texts stand for 1, 2, ... now, without those that were not seen."""
        if labels.dtype.kind != "O":
            return cls(labels, unseen)
        return cls.given(texts_among(labels), "zero" if labels[0] is None else "missing")

    @property
    def labels(self) -> Array:
        """What users call the levels."""
        return self.values if self.names is None else self.names

    @property
    def highest(self) -> int:
        """V."""
        return self.values.size - 1

    def coded(self, observed: Observed, whence: str = "fitted") -> Observed:
        """What was seen, its values as codes; a value that is none of the levels "given" or "fitted" is refused."""
        values, seen = _alike(self.values, observed.values)
        places = np.searchsorted(values, seen).clip(0, self.highest)
        strange = np.flatnonzero(values[places] != seen)
        if strange.size:
            value = observed.values[strange[0]]
            cells = "1 such cell" if strange.size == 1 else f"{strange.size} such cells"
            remedy = "Add it to levels" if whence == "given" else "Fit with data that have this level"
            raise DataError(
                f"Values must be among the levels that were {whence}: {self.listed}. Found {value:g} at "
                f"{observed.place(int(strange[0]))} ({cells}). {remedy}, or round the value."
            )
        return replace(observed, values=places.astype(observed.dtype))

    def refuse_unseen(self, histogram: Array) -> None:
        """Refuse levels that no cell is at: nothing tells where their thresholds are."""
        first = 1 if self.unseen == "zero" else 0  # unseen zeros are at level 0
        empty = np.flatnonzero(histogram[first:] == 0)
        if empty.size:
            raise DataError(
                "Every level must be seen in the data of a fit. "
                f"Found none at level {said(self.labels[first + empty[0]])}. Leave it out of levels."
            )

    @property
    def listed(self) -> str:
        return ", ".join(said(label) for label in self.labels if label is not None)

    def _refuse_too_few(self) -> None:
        if self.values.size < 2:
            raise DataError(
                f"Ordinal data must have two levels or more. Found only {said(self.labels[0])}. "
                'Fit data with more, or OrdNMF with unseen="zero" if unseen cells are a level of their own.'
            )


def rule_of_levels() -> checks.Rule:
    """None, rising numbers, or different texts."""
    rising = checks.rising()

    def rule(value: Any) -> tuple[str, str] | None:
        if are_texts(value):
            texts = list(map(str, value))
            good = len(set(texts)) == len(texts) and all(text.strip() for text in texts)
        else:
            good = rising(value) is None
        return (
            None if good else ("None, rising numbers or different texts", "List them from the lowest to the highest.")
        )

    return rule


def are_texts(levels: Any) -> bool:
    """Whether levels are a list of texts."""
    is_list = not isinstance(levels, str) and hasattr(levels, "__len__") and len(levels) > 0
    return is_list and all(isinstance(level, str) for level in levels)


def texts_among(labels: Array) -> list[str]:
    """The texts among labels of levels: all but the None of unseen cells."""
    return [str(label) for label in labels if label is not None]


def _names_of(values: Array, names: Array | None) -> Array | None:
    """The name of each value 1, 2, ...; None for 0, which stands for unseen cells."""
    if names is None:
        return None
    places = values.astype(np.intp)
    _refuse_unnamed(values, names)
    found: Array = np.append(np.array([None], dtype=object), names)[places]
    return found


def _refuse_unnamed(values: Array, names: Array) -> None:
    unnamed = values[(values != np.floor(values)) | (values > names.size)]
    if unnamed.size:
        raise DataError(
            f"Values must be the numbers of levels, 0 to {names.size}, as {', '.join(map(quoted, names))} are read. "
            f"Found {unnamed[0]:g}. Merge repeated cells by min, max, first or last, not by sum or mean."
        )


def _alike(values: Array, seen: Array) -> tuple[Array, Array]:
    """Both in single precision, so that 0.1 is 0.1 whichever it was read in; as they are, if that merges levels."""
    single = values.astype(np.float32)
    return (single, seen.astype(np.float32)) if np.all(np.diff(single) > 0) else (values, seen)


def _refuse_negative(values: Array, unseen: str) -> None:
    if unseen == "zero" and values.min() < 0:
        raise ParameterError(
            f"levels must be 0 or larger where unseen cells are zeros, which are the lowest. Found {values.min():g}. "
            'Shift the levels, or use unseen="missing".'
        )


def said(label: Any) -> str:
    """A level as an error sentence shows it."""
    return quoted(label) if isinstance(label, str) else f"{label:g}"


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
            f"{found[0]:g} to {found[-1]:g}. Make levels of counts with Quantizer, or use PoissonFactorization."
        )
