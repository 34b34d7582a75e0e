"""What a best rank-one factorization depends on: sums along the axes, and how much each cell counts."""

from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

from halfseen.arrays import Array
from halfseen.engines.threads import Threads
from halfseen.rank_one.exposure import Exposure


@dataclass(frozen=True, eq=False)
class Merged:
    """Rows with the same holes, taken as one: what is best for them differs only in proportion to their sums.

    `group` tells which merged row each row is part of, `sums` are those of all rows one by one, `lowest` and `highest`
    the bounds of these that are above 0.
    """

    group: Array
    sums: Array
    lowest: float
    highest: float


@dataclass(frozen=True, eq=False)
class Marginals:
    """The sums of what was seen along each axis, the numbers of seen cells, and how much each cell counts.

    The first axis is that of the exposure's rows; the others, unfolded, are its columns. `axes` says which axes of the
    data they are. `binary` tells that every cell counts either once or not at all.
    """

    sums: tuple[Array, ...]
    counts: tuple[Array, ...]
    exposure: Exposure
    axes: tuple[int, ...]
    binary: bool
    unseen: str = "missing"
    merged: Merged | None = None

    @property
    def total(self) -> float:
        return float(self.sums[0].sum())

    @property
    def every_sum(self) -> Array:
        """The sums of the first axis, row by row."""
        return self.sums[0] if self.merged is None else self.merged.sums

    @property
    def bounds_of_rows(self) -> tuple[float, float]:
        """The lowest and the highest sum of a row that is above 0; (inf, 0) if none is."""
        if self.merged is not None:
            return self.merged.lowest, self.merged.highest
        above = self.sums[0][self.sums[0] > 0]
        return float(above.min(initial=np.inf)), float(above.max(initial=0.0))

    @property
    def inner_shape(self) -> tuple[int, ...]:
        """The lengths of all axes but the first."""
        return tuple(sums.size for sums in self.sums[1:])

    def blank(self, axis: int) -> Array:
        """Which rows (of an axis) nothing is known of."""
        return (self.counts[axis] == 0) & (self.unseen == "missing")

    def length(self, axis: int) -> int:
        """How many rows an axis has, before any were merged."""
        return self.every_sum.size if axis == 0 else self.sums[axis].size

    def each_row(self, w: Array) -> Array:
        """A factor of the first axis, row by row: merged rows have their shares."""
        if self.merged is None:
            return w
        share = np.divide(w, self.sums[0], out=np.zeros(w.size), where=self.sums[0] > 0)
        every: Array = self.merged.sums * share[self.merged.group]
        return every

    @property
    def cost_of_merging(self) -> float:
        """What the cost is more than that of the merged rows: the logarithms of their rows' shares."""
        if self.merged is None:
            return 0.0
        lives = self.merged.sums > 0
        r, group = self.merged.sums[lives], self.merged.group[lives]
        return -float((r * np.log(r / self.sums[0][group])).sum())

    def told_of_each_row(self, told: Array) -> Array:
        """What is told of the rows of the first axis, row by row."""
        return told if self.merged is None else told[self.merged.group]

    def row_by_row(self) -> "Marginals":
        """The same, nothing merged."""
        if self.merged is None:
            return self
        counts = np.diff(self.exposure.indptr)[self.merged.group]
        indptr = np.append(0, np.cumsum(counts))
        places = np.arange(indptr[-1]) - np.repeat(indptr[:-1] - self.exposure.indptr[self.merged.group], counts)
        exposure = Exposure.of_holes(indptr, self.exposure.indices[places], (counts.size, self.exposure.shape[1]))
        return replace(
            self,
            sums=(self.merged.sums, *self.sums[1:]),
            counts=(self.exposure.shape[1] - counts, *self.counts[1:]),
            exposure=exposure,
            merged=None,
        )

    def signature(self, threads: Threads) -> tuple[Array, ...]:
        """Arrays that are the same, up to rounding, for the same data, however they lie.

        Sums and numbers of seen cells along each axis, row by row; and what each row of the data sees of fixed random
        numbers, one a column.
        """
        every = self.row_by_row()
        exposures = every.exposure.of_rows if self.axes[0] == 0 else every.exposure.of_columns
        columns = every.exposure.shape[1 if self.axes[0] == 0 else 0]
        told = [arrays[axis] for arrays in (every.sums, every.counts) for axis in np.argsort(self.axes)]
        return (*told, exposures(np.random.default_rng(0).random(columns), threads))


def unfolded(inner: tuple[Array, ...]) -> Array:
    """The product of the factors of all axes but the first, as one long factor; with two axes it is the second."""
    return reduce(lambda left, right: np.multiply.outer(left, right).reshape(-1), inner)


def along_axes(inner: Array) -> tuple[Array, ...]:
    """The sums of an array along each of its axes."""
    if inner.ndim == 1:
        return (inner,)
    every = range(inner.ndim)
    return tuple(inner.sum(axis=tuple(other for other in every if other != axis)) for axis in every)
