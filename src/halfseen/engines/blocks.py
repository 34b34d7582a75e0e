"""Consecutive rows with about as many cells each, for threads to share."""

import numpy as np

from halfseen.arrays import Array

#: The rows of a block, their pointers, and their cells.
Block = tuple[slice, slice, slice]


def blocks_of(indptr: Array, cells: int) -> list[Block]:
    """Blocks of about `cells` cells; they depend on the data alone."""
    n = indptr.size - 1
    goals = np.arange(cells, int(indptr[-1]), cells)
    ends = np.unique(np.append(np.searchsorted(indptr, goals), n))
    starts = np.append(0, ends[:-1])
    return [
        (slice(a, b), slice(a, b + 1), slice(int(indptr[a]), int(indptr[b])))
        for a, b in zip(starts.tolist(), ends.tolist(), strict=True)
    ]
