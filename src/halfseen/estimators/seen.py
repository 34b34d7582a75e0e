"""Which cells a fit has seen, row by row."""

from dataclasses import dataclass

import numpy as np

from halfseen.arrays import Array
from halfseen.observed import Observed


@dataclass(frozen=True)
class Seen:
    """Columns listed for each row, indices[indptr[i]:indptr[i + 1]]: those seen or, where few are not, the holes."""

    indptr: Array
    indices: Array
    width: int
    lists_holes: bool = False

    @classmethod
    def in_(cls, observed: Observed) -> "Seen":
        """A copy, because a sparse X shares its arrays with what was read of it, and may be changed later."""
        return cls(observed.indptr.copy(), observed.indices.copy(), observed.shape[1])

    def of(self, rows: Array) -> tuple[Array, Array]:
        """What the given rows have seen: pointers, and columns."""
        counts = np.diff(self.indptr)[rows]
        ends = np.concatenate([[0], np.cumsum(counts)])
        cells = np.arange(ends[-1]) - np.repeat(ends[:-1] - self.indptr[rows], counts)
        return self._turned(ends, self.indices[cells]) if self.lists_holes else (ends, self.indices[cells])

    def _turned(self, ends: Array, holes: Array) -> tuple[Array, Array]:
        """From the holes of rows to what was seen."""
        seen = np.ones((ends.size - 1, self.width), bool)
        seen[np.repeat(np.arange(len(seen)), np.diff(ends)), holes] = False
        return np.arange(ends.size) * self.width - ends, np.nonzero(seen)[1]
