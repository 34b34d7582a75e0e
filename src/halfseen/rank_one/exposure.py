"""How much each cell of a grid counts, held as a short list, and what that makes of a factor."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

import numpy as np

from halfseen.arrays import Array
from halfseen.engines.threads import Threads

#: The list is walked in at most so many blocks, each with sums of its own for all columns.
_MOST_BLOCKS = 8
_CELLS_PER_BLOCK = 1 << 18
#: As in the kernels: a sum left after subtracting is trusted down to this part of what it was subtracted from.
TRUSTED = 0.01


@dataclass(frozen=True, eq=False)
class Exposure:
    """phi_ij = base + the changes listed for the cell (i, j): row i lists indices[indptr[i]:indptr[i + 1]].

    Few holes: base 1 and a change of -1 at every hole. Few seen cells: base 0 and each cell's weight. Columns stand
    for the unfolded further axes of a tensor.
    """

    base: float
    indptr: Array
    indices: Array
    change: Array
    shape: tuple[int, int]

    @classmethod
    def everywhere(cls, shape: tuple[int, int]) -> "Exposure":
        """Every cell counts once."""
        return cls(1.0, np.zeros(shape[0] + 1, np.int64), np.empty(0, np.int32), np.empty(0), shape)

    @classmethod
    def of_holes(cls, indptr: Array, holes: Array, shape: tuple[int, int]) -> "Exposure":
        """Every cell counts once, but for the holes."""
        return cls(1.0, indptr, holes, _constant(-1.0, holes.size), shape)

    @classmethod
    def of_seen(cls, indptr: Array, seen: Array, weights: Array | None, shape: tuple[int, int]) -> "Exposure":
        """Only seen cells count, each once or by its weight."""
        change = _constant(1.0, seen.size) if weights is None else weights.astype(np.float64, copy=False)
        return cls(0.0, indptr, seen, change, shape)

    def of_rows(self, far: Array, threads: Threads) -> Array:
        """sum_j phi_ij far_j for every row i."""
        from halfseen.kernels.rank_one import row_exposures

        total = float(far.sum())
        out = np.empty(self.shape[0])

        def block(rows: slice) -> None:
            pointers = self.indptr[rows.start : rows.stop + 1]
            row_exposures(pointers, self.indices, self.change, far, self.base, total, out[rows])

        threads.all(block, self._blocks)
        return out

    def of_columns(self, near: Array, threads: Threads) -> Array:
        """sum_i phi_ij near_i for every column j."""
        from halfseen.kernels.rank_one import column_changes

        total = self.base * float(near.sum())

        def block(rows: slice) -> Array:
            changes = np.zeros(self.shape[1])
            pointers = self.indptr[rows.start : rows.stop + 1]
            column_changes(pointers, self.indices, self.change, near[rows], changes)
            return changes

        out: Array = total + summed(threads.all(block, self._blocks))
        doubtful = np.flatnonzero(out < TRUSTED * total)
        return self._summed_anew(near, out, doubtful) if doubtful.size else out

    def _summed_anew(self, near: Array, out: Array, columns: Array) -> Array:
        """Columns whose listed cells took nearly all of the total away, without subtracting."""
        from halfseen.kernels.rank_one import column_exposures

        out[columns] = 0.0
        column_exposures(self.indptr, self.indices, self.change, near, columns, np.ones(self.shape[1]), out)
        return out

    @cached_property
    def _blocks(self) -> list[slice]:
        """Consecutive rows with about equally many listed cells; they depend on the list alone, not on the threads."""
        n, listed = self.shape[0], self.indices.size
        if listed <= _CELLS_PER_BLOCK:
            return [slice(0, n)]
        step = max(_CELLS_PER_BLOCK, -(-listed // _MOST_BLOCKS))
        ends = np.unique(np.append(np.searchsorted(self.indptr, np.arange(step, listed, step)), n)).tolist()
        return [slice(a, b) for a, b in zip([0, *ends[:-1]], ends, strict=True)]


def summed(arrays: Sequence[Array]) -> Array:
    """The sum of arrays, in their order."""
    return reduce(np.add, arrays)


def _constant(value: float, size: int) -> Any:
    """The same number for every listed cell, in the room of one."""
    return np.broadcast_to(np.float64(value), (size,))
