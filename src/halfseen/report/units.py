"""In which units errors are told: columns of a table may have each its own, and so may questions of a survey."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from halfseen.arrays import Array
from halfseen.estimators.leveled import LeveledMixin
from halfseen.observed import Observed
from halfseen.report.known import Known

#: From here on columns are taken to have different units.
_MANY_TIMES = 20.0


@dataclass(frozen=True)
class Units:
    """The spread of the values of each column, or question, in training: their standard deviation."""

    whose: str
    """ "column" or "question"."""
    spreads: Array
    """0 where values did not vary."""
    are_rows: bool
    """Whether each belongs to a row of the model."""

    def at(self, rows: Array, columns: Array) -> Array:
        """The unit of each cell."""
        spreads: Array = self.spreads[rows if self.are_rows else columns]
        return spreads


def units_of(known: Known) -> Units | None:
    """The units of columns, or questions, where they differ; None where all have the same, or training is not known."""
    if known.answers is not None:
        answers, ends = known.answers
        questions = np.repeat(np.arange(ends.size - 1), np.diff(ends))
        return _differing("question", questions, answers, ends.size - 1, are_rows=not known.model._turned)
    if known.train is None or isinstance(known.model, LeveledMixin):  # levels are the same everywhere
        return None
    return _differing("column", known.train.indices, known.train.values, known.shape[1], are_rows=False)


def _differing(whose: str, places: Array, values: Array, size: int, *, are_rows: bool) -> Units | None:
    values = values.astype(np.float64)
    if not _differ(places, values, size):
        return None
    means = _means(places, values, size)
    return Units(whose, np.sqrt(_means(places, (values - means[places]) ** 2, size)), are_rows)


def columns_differ(cells: Observed) -> bool:
    """Whether columns seem to have different units."""
    return _differ(cells.indices, cells.values, cells.shape[1])


def _differ(places: Array, values: Array, size: int) -> bool:
    """Whether the values of some are many times those of others, which these then hide."""
    sizes = _means(places, np.abs(values), size)
    sizes = sizes[sizes > 0]
    return bool(sizes.size and sizes.max() > _MANY_TIMES * sizes.min())


def _means(places: Array, values: Array, size: int) -> Array:
    """The mean of the values at each place; 0 where there are none."""
    means: Array = np.bincount(places, values, size) / np.maximum(np.bincount(places, minlength=size), 1)
    return means
