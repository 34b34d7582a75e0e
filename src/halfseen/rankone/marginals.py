"""Marginals of an incomplete table: sums along each axis, and the matrix of cell weights.

The best rank-one fit depends on the data through these alone (they are the expectation parameters of Theorem 1).
"""

from dataclasses import dataclass, replace
from functools import cached_property, reduce

import numpy as np

from halfseen.arrays import Array
from halfseen.engines.threads import Threads

#: The stored cells are processed in at most this many blocks, each with its own column sums.
_MAX_BLOCKS = 8
_CELLS_PER_BLOCK = 1 << 18
#: Smallest ratio of a difference to its minuend at which the difference is used (as in the kernels).
MIN_DIFFERENCE = 0.01


@dataclass(frozen=True, eq=False)
class WeightMatrix:
    """Cell weights phi_ij = base + what a CSR matrix (indptr, indices, data) stores for the cell (i, j).

    With few missing cells, `base` is 1 and -1 is stored for each of them; with few observed cells, `base` is 0 and
    their weights are stored. The columns are the unfolded further axes of a tensor.
    """

    base: float
    indptr: Array
    indices: Array
    data: Array
    shape: tuple[int, int]

    @classmethod
    def from_missing(cls, indptr: Array, missing: Array, shape: tuple[int, int]) -> "WeightMatrix":
        """Weight 0 for missing cells, 1 for all others."""
        return cls(1.0, indptr, missing, np.broadcast_to(np.float64(-1.0), missing.shape), shape)

    @classmethod
    def from_observed(
        cls, indptr: Array, observed: Array, weights: Array | None, shape: tuple[int, int]
    ) -> "WeightMatrix":
        """Weight 1, or that given, for observed cells, 0 for all others."""
        constant = np.broadcast_to(np.float64(1.0), observed.shape)  # takes the memory of one number
        return cls(
            0.0, indptr, observed, constant if weights is None else weights.astype(np.float64, copy=False), shape
        )

    def matvec(self, h: Array, threads: Threads) -> Array:
        """sum_j phi_ij h_j for every row i."""
        from halfseen.rankone.table_sums import weight_matvec

        total = float(h.sum())
        out = np.empty(self.shape[0])

        def block(rows: slice) -> None:
            indptr = self.indptr[rows.start : rows.stop + 1]
            weight_matvec(indptr, self.indices, self.data, h, self.base, total, out[rows])

        threads.all(block, self._blocks)
        return out

    def rmatvec(self, w: Array, threads: Threads) -> Array:
        """sum_i phi_ij w_i for every column j."""
        from halfseen.rankone.table_sums import weight_rmatvec, weight_rmatvec_columns

        total = self.base * float(w.sum())

        def block(rows: slice) -> Array:
            sums = np.zeros(self.shape[1])
            weight_rmatvec(self.indptr[rows.start : rows.stop + 1], self.indices, self.data, w[rows], sums)
            return sums

        out: Array = total + reduce(np.add, threads.all(block, self._blocks))
        cancelled = np.flatnonzero(out < MIN_DIFFERENCE * total)
        if cancelled.size:  # nearly all of the total was subtracted: sum these columns again, without subtracting
            out[cancelled] = 0.0
            buffer = np.ones(self.shape[1])
            weight_rmatvec_columns(self.indptr, self.indices, self.data, w, cancelled, buffer, out)
        return out

    @cached_property
    def _blocks(self) -> list[slice]:
        """Consecutive rows with about the same number of stored cells; independent of the number of threads."""
        n, stored = self.shape[0], self.indices.size
        if stored <= _CELLS_PER_BLOCK:
            return [slice(0, n)]
        step = max(_CELLS_PER_BLOCK, -(-stored // _MAX_BLOCKS))
        ends = np.unique(np.append(np.searchsorted(self.indptr, np.arange(step, stored, step)), n)).tolist()
        return [slice(a, b) for a, b in zip([0, *ends[:-1]], ends, strict=True)]


@dataclass(frozen=True, eq=False)
class MergedRows:
    """Rows with the same missing cells, merged into one: their best factors are in proportion to their sums.

    `group` is the merged row of each row, `sums` are the sums of all rows, `low` and `high` the smallest and the
    largest positive one.
    """

    group: Array
    sums: Array
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Marginals:
    """Sums and numbers of observed cells along each axis, and the weights of all cells.

    The first axis is that of the rows of `weights`; the others, unfolded, are its columns. `axes` are the axes of the
    data in this order. `binary` says that all weights are 0 or 1.
    """

    sums: tuple[Array, ...]
    counts: tuple[Array, ...]
    weights: WeightMatrix
    axes: tuple[int, ...]
    binary: bool
    unseen: str = "missing"
    merged: MergedRows | None = None

    @property
    def total(self) -> float:
        """Weighted sum of all observed cells."""
        return float(self.sums[0].sum())

    @property
    def row_sums(self) -> Array:
        """Sums along the first axis, of all rows before merging."""
        return self.sums[0] if self.merged is None else self.merged.sums

    @property
    def row_sum_range(self) -> tuple[float, float]:
        """Smallest and largest positive sum of a row before merging; (inf, 0) if there is none."""
        if self.merged is not None:
            return self.merged.low, self.merged.high
        positive = self.sums[0][self.sums[0] > 0]
        return float(positive.min(initial=np.inf)), float(positive.max(initial=0.0))

    @property
    def inner_shape(self) -> tuple[int, ...]:
        """Lengths of all axes but the first."""
        return tuple(sums.size for sums in self.sums[1:])

    def is_empty(self, axis: int) -> Array:
        """Mask of the slices along an axis about which the data say nothing."""
        return (self.counts[axis] == 0) & (self.unseen == "missing")

    def expand(self, values: Array) -> Array:
        """Values of merged rows, repeated for each of their rows."""
        return values if self.merged is None else values[self.merged.group]

    def expand_factor(self, w: Array) -> Array:
        """Factor of merged rows, split among their rows in proportion to their sums."""
        if self.merged is None:
            return w
        share = np.divide(w, self.sums[0], out=np.zeros(w.size), where=self.sums[0] > 0)
        every: Array = self.merged.sums * share[self.merged.group]
        return every

    @property
    def merging_cost(self) -> float:
        """Cost of all rows minus that of the merged rows: minus the sum of r log(r / sum of the merged row)."""
        if self.merged is None:
            return 0.0
        positive = self.merged.sums > 0
        r, group = self.merged.sums[positive], self.merged.group[positive]
        return -float((r * np.log(r / self.sums[0][group])).sum())

    def unmerged(self) -> "Marginals":
        """The same marginals without merged rows."""
        if self.merged is None:
            return self
        counts = np.diff(self.weights.indptr)[self.merged.group]
        indptr = np.append(0, np.cumsum(counts))
        stored = np.arange(indptr[-1]) - np.repeat(indptr[:-1] - self.weights.indptr[self.merged.group], counts)
        return replace(
            self,
            sums=(self.merged.sums, *self.sums[1:]),
            counts=(self.weights.shape[1] - counts, *self.counts[1:]),
            weights=WeightMatrix.from_missing(
                indptr, self.weights.indices[stored], (counts.size, self.weights.shape[1])
            ),
            merged=None,
        )

    def signature(self, threads: Threads) -> tuple[Array, ...]:
        """Arrays that are equal, up to rounding, for equal data in any memory layout.

        Sums and counts along each axis, and phi times a vector of fixed random numbers.
        """
        every = self.unmerged()
        product = every.weights.matvec if self.axes[0] == 0 else every.weights.rmatvec
        size = every.weights.shape[1 if self.axes[0] == 0 else 0]
        along = [arrays[axis] for arrays in (every.sums, every.counts) for axis in np.argsort(self.axes)]
        return (*along, product(np.random.default_rng(0).random(size), threads))


def kron(factors: tuple[Array, ...]) -> Array:
    """Kronecker product of vectors: the factors of all axes but the first, as one of the unfolded axis."""
    return reduce(lambda left, right: np.multiply.outer(left, right).reshape(-1), factors)


def sum_along_axes(array: Array) -> tuple[Array, ...]:
    """Sums of an array along each of its axes."""
    if array.ndim == 1:
        return (array,)
    axes = range(array.ndim)
    return tuple(array.sum(axis=tuple(other for other in axes if other != axis)) for axis in axes)


def safe_divide(sums: Array, exposures: Array) -> Array:
    """sums / exposures, and 0 where either is 0: only zeros were observed there, or nothing."""
    return np.divide(sums, exposures, out=np.zeros(sums.shape), where=(sums > 0) & (exposures > 0))


def ignore_overflow() -> np.errstate:
    """Suppress floating-point warnings: a run that leaves the range of floats ends with a status instead."""
    return np.errstate(divide="ignore", over="ignore", under="ignore", invalid="ignore")
