"""Binary matrices whose rows are runs: ones side by side, in some order of the columns. Two columns of factors do.

With x_j > 0 rising, and a < b, neither of them an x_j, the run of all x_j between a and b is where

    (x - a)(b - x) > 0,   that is   (a + b) x - x^2 > a b,   that is   -x - a b / x > -(a + b)

The second form has a positive threshold after division by a b, the third a negative one after division by a + b; with
threshold 0 all three terms are needed.
"""

from collections.abc import Iterator

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from halfseen.arrays import Array


def factors_of_runs(binary: Array, threshold: float) -> tuple[Array, Array] | None:
    """W and H whose product is above the threshold where `binary` is true, or None if rows are not seen to be runs."""
    for order in _orders(binary):
        ends = _ends(binary[:, order])
        if ends is not None:
            W, inner = _on_a_curve(*ends, len(order), threshold)
            H = np.empty_like(inner)
            H[order] = inner
            return W, H
    return None


def _on_a_curve(first: Array, last: Array, count: int, threshold: float) -> tuple[Array, Array]:
    """The factors for runs from `first` to `last`, this one excluded, among `count` columns."""
    x, a, b = (np.arange(count) + 1) / count, (first + 0.5) / count, (last + 0.5) / count
    if threshold > 0:
        return np.column_stack([a + b, -np.ones_like(a)]) / (a * b)[:, None] * threshold, np.column_stack([x, x**2])
    if threshold < 0:
        return np.column_stack([np.ones_like(a), a * b]) / (a + b)[:, None] * threshold, np.column_stack([x, 1 / x])
    return np.column_stack([-a * b, a + b, -np.ones_like(a)]), np.column_stack([np.ones_like(x), x, x**2])


def _ends(binary: Array) -> tuple[Array, Array] | None:
    """Where the run of each row begins and where it is over; None if the ones of a row have zeros between them."""
    first = np.where(binary.any(axis=1), binary.argmax(axis=1), 0)
    last = first + binary.sum(axis=1)
    place = np.arange(binary.shape[1])
    runs = (place >= first[:, None]) & (place < last[:, None])
    return (first, last) if np.array_equal(runs, binary) else None


def _orders(binary: Array) -> Iterator[Array]:
    """Orders of the columns in which rows may be runs: as they are, and by Fiedler vectors.

    Columns that share many ones are near each other in the eigenvector of the second smallest eigenvalue of the
    Laplacian of their numbers of shared ones. Where rows can be runs and the columns hang together, it orders them so
    (Atkins, Boman & Hendrickson, "A spectral algorithm for seriation and the consecutive ones problem", 1998).
    """
    yield np.arange(binary.shape[1])
    shared = binary.T.astype(float) @ binary
    _, part_of = connected_components(csr_array(shared), directed=False)
    parts = (np.flatnonzero(part_of == part) for part in np.unique(part_of))
    yield np.concatenate([part[np.argsort(_fiedler_vector(shared[np.ix_(part, part)]))] for part in parts])


def _fiedler_vector(shared: Array) -> Array:
    if len(shared) < 3:
        return np.arange(len(shared), dtype=float)
    _, vectors = np.linalg.eigh(np.diag(shared.sum(axis=1)) - shared)
    second: Array = vectors[:, 1]
    return second
