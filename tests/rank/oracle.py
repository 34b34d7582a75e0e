"""Rounding and ranks straight from their definitions, in fractions and by brute force."""

import itertools
from fractions import Fraction

import numpy as np


def level(x, thresholds):
    """How many thresholds are strictly below x; Python compares floats and fractions exactly."""
    return sum(1 for tau in thresholds if tau < x)


def levels_of(W, H, thresholds):
    """The levels of W H', every product and sum exact."""
    W, H = (np.asarray(factor, dtype=float).tolist() for factor in (W, H))
    return [
        [level(sum((Fraction(a) * Fraction(b) for a, b in zip(w, h, strict=True)), Fraction(0)), thresholds) for h in H]
        for w in W
    ]


def outer_products(n_rows, n_columns, thresholds, sizes):
    """All matrices of levels that are rounded from u v', the entries of u and v being 0 or of the given sizes.

    Given v, a row of levels depends on its own entry of u alone: so all choices of rows are made at once.
    """
    values = [0.0, *sizes, *(-size for size in sizes)]
    found = set()
    for v in itertools.combinations_with_replacement(values, n_columns):
        rows = sorted({tuple(level(u * each, thresholds) for each in v) for u in values})
        found.update(itertools.product(rows, repeat=n_rows))
    return {
        tuple(tuple(row[place] for place in order) for row in matrix)
        for matrix in found
        for order in itertools.permutations(range(n_columns))
    }


def shattered(binary):
    """The largest number of columns that show all patterns, by trying all sets."""
    binary = np.asarray(binary, dtype=int)
    sizes = range(1, binary.shape[1] + 1)
    return max(
        (
            size
            for size in sizes
            for columns in itertools.combinations(range(binary.shape[1]), size)
            if len({tuple(row) for row in binary[:, columns].tolist()}) == 2**size
        ),
        default=0,
    )


def linear_rank(matrix):
    """By elimination in fractions."""
    rows = [[Fraction(int(entry)) for entry in row] for row in np.asarray(matrix).tolist()]
    rank = 0
    for column in range(len(rows[0])):
        pivot = next((row for row in rows[rank:] if row[column] != 0), None)
        if pivot is None:
            continue
        rows.remove(pivot)
        rows.insert(rank, pivot)
        for other in rows[rank + 1 :]:
            factor = other[column] / pivot[column]
            other[:] = [a - factor * b for a, b in zip(other, pivot, strict=True)]
        rank += 1
    return rank
