"""Item graphs: Gram matrices of sparse columns, ridge regressions of columns on their neighbours, scores of rows.

Cells are in CSR order (indptr, indices, values), and listed once more in column order: the cells of column j are those
at the positions order[starts[j]:starts[j + 1]], in the rows rows[...]. Every number is summed in one order.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from halfseen.kernels import kernel

Array = npt.NDArray[Any]


@kernel
def fill_gram(
    first: int,
    last: int,
    starts: Array,
    rows: Array,
    order: Array,
    indptr: Array,
    indices: Array,
    values: Array,
    G: Array,
) -> None:
    """G[j, i] = sum_u x_uj x_ui  for the columns j of a block and i >= j; the others stay as they are."""
    for j in range(first, last):
        column = G[j]
        for p in range(starts[j], starts[j + 1]):
            x = values[order[p]]
            for q in range(order[p], indptr[rows[p] + 1]):
                column[indices[q]] += x * values[q]


@kernel
def list_neighbours(
    first: int,
    last: int,
    starts: Array,
    rows: Array,
    order: Array,
    indptr: Array,
    indices: Array,
    values: Array,
    squares: Array,
    neighbours: Array,
    products: Array,
) -> None:
    """For the columns j of a block, the columns of the largest  |G_ij| / sqrt(G_ii G_jj),  ascending, and these G_ij.

    `squares` is the diagonal of G; empty places of `neighbours` hold -1.
    """
    m, room = squares.size, neighbours.shape[1]
    column, is_met, met = np.zeros(m), np.zeros(m, np.bool_), np.empty(m, np.int64)
    for j in range(first, last):
        count = 0
        for p in range(starts[j], starts[j + 1]):
            x = values[order[p]]
            for q in range(indptr[rows[p]], indptr[rows[p] + 1]):
                i = indices[q]
                if not is_met[i]:
                    is_met[i] = True
                    met[count] = i
                    count += 1
                column[i] += x * values[q]
        here = np.sort(met[:count])
        strengths = np.zeros(count)
        for c in range(count):
            i = here[c]
            if i != j and column[i] != 0:
                strengths[c] = abs(column[i]) / np.sqrt(squares[i] * squares[j])
        found = np.count_nonzero(strengths)
        threshold, ties = 0.0, 0
        if found > room:  # those above the threshold, and the first of those at it
            threshold = np.partition(strengths, count - room)[count - room]
            ties = room - np.count_nonzero(strengths > threshold)
        kept = 0
        for c in range(count):
            i = here[c]
            if strengths[c] > threshold or (ties > 0 and strengths[c] == threshold and threshold > 0):
                ties -= strengths[c] == threshold
                neighbours[j, kept], products[j, kept] = i, column[i]
                kept += 1
            column[i], is_met[i] = 0.0, False
        neighbours[j, kept:] = -1


@kernel
def solve_columns(
    first: int,
    last: int,
    neighbours: Array,
    products: Array,
    squares: Array,
    l2: Array,
    width: int,
    chosen: Array,
    weights: Array,
) -> None:
    """Ridge regressions of the columns j of a block on their `width` strongest neighbours S:

        w = (G_SS + diag(l2_S))^-1 G_Sj

    with the entries of G that `neighbours` lists, and 0 for those that neither of two columns lists.
    """
    place_of = np.full(squares.size, -1)
    for j in range(first, last):
        chosen[j] = -1
        if squares[j] == 0:
            continue
        listed = 0
        while listed < neighbours.shape[1] and neighbours[j, listed] >= 0:
            listed += 1
        strengths = np.empty(listed)
        for c in range(listed):
            strengths[c] = abs(products[j, c]) / np.sqrt(squares[neighbours[j, c]] * squares[j])
        size = min(width, listed)
        if size == 0:
            continue
        strongest = np.sort(np.argsort(-strengths, kind="mergesort")[:size])
        A, right = np.zeros((size, size)), np.empty(size)
        for a in range(size):
            i = neighbours[j, strongest[a]]
            place_of[i] = a
            A[a, a] = squares[i] + l2[i]
            right[a] = products[j, strongest[a]]
        for a in range(size):
            i = neighbours[j, strongest[a]]
            for c in range(neighbours.shape[1]):
                other = neighbours[i, c]
                if other < 0:
                    break
                b = place_of[other]
                if b >= 0 and b != a:
                    A[a, b] = A[b, a] = products[i, c]
        solution = np.linalg.solve(A, right)
        for a in range(size):
            chosen[j, a], weights[j, a] = neighbours[j, strongest[a]], solution[a]
            place_of[chosen[j, a]] = -1


def _exact(function: Any) -> Any:
    """A kernel whose sums are those of NumPy, term by term, to the last bit."""
    return kernel(function, fastmath=False)


@_exact
def add_rows(indptr: Array, indices: Array, values: Array, weights: Array, first: int, x: Array) -> None:
    """x_ui += sum_j x_uj B_ji  for the columns i from `first` on, B dense, a row for each column of histories."""
    last = first + x.shape[1]
    for u in range(x.shape[0]):
        row = x[u]
        for p in range(indptr[u], indptr[u + 1]):
            value, far = values[p], weights[indices[p], first:last]
            for i in range(row.size):
                row[i] += value * far[i]


@_exact
def add_sparse_rows(
    indptr: Array,
    indices: Array,
    values: Array,
    starts: Array,
    columns: Array,
    weights: Array,
    first: int,
    x: Array,
) -> None:
    """The same for a sparse B whose row j has the weights at the columns in starts[j]:starts[j + 1]."""
    last = first + x.shape[1]
    for u in range(x.shape[0]):
        row = x[u]
        for p in range(indptr[u], indptr[u + 1]):
            value, j = values[p], indices[p]
            for q in range(starts[j], starts[j + 1]):
                i = columns[q]
                if first <= i < last:
                    row[i - first] += value * weights[q]
