"""What a best rank-one factorization depends on: sums along the axes, and how much each cell counts."""

from dataclasses import dataclass
from functools import reduce

import numpy as np

from halfseen.arrays import Array
from halfseen.rank_one.exposure import Exposure


@dataclass(frozen=True, eq=False)
class Merged:
    """Rows without a hole, taken as one: what is best for them differs only in proportion to their sums.

    `rows` are those that stand for themselves, in their order; the merged row comes after them. `sums` are those of all
    rows one by one, `lowest` and `highest` the bounds of these that are above 0.
    """

    rows: Array
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
        whole = self.sums[0][-1]
        every: Array = self.merged.sums * (w[-1] / whole if whole > 0 else 0.0)
        every[self.merged.rows] = w[:-1]
        return every

    def label_of_each_row(self, labels: Array, none: int) -> Array:
        """As `each_row`, for labels; `none` where merged rows sum to 0."""
        if self.merged is None:
            return labels
        every = np.where(self.merged.sums > 0, labels[-1], none)
        every[self.merged.rows] = labels[:-1]
        return every

    def in_data_order(self) -> tuple[Array, ...]:
        """The sums, then the numbers of seen cells along all axes, row by row, in the order of the data's axes."""
        sums, counts = (self.every_sum, *self.sums[1:]), (self._every_count, *self.counts[1:])
        return tuple(arrays[axis] for arrays in (sums, counts) for axis in np.argsort(self.axes))

    @property
    def _every_count(self) -> Array:
        if self.merged is None:
            return self.counts[0]
        every = np.full(self.merged.sums.size, self.exposure.shape[1])
        every[self.merged.rows] = self.counts[0][:-1]
        return every


def unfolded(inner: tuple[Array, ...]) -> Array:
    """The product of the factors of all axes but the first, as one long factor; with two axes it is the second."""
    return reduce(lambda left, right: np.multiply.outer(left, right).reshape(-1), inner)


def along_axes(inner: Array) -> tuple[Array, ...]:
    """The sums of an array along each of its axes."""
    if inner.ndim == 1:
        return (inner,)
    every = range(inner.ndim)
    return tuple(inner.sum(axis=tuple(other for other in every if other != axis)) for axis in every)
