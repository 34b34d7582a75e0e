"""Connected components of an incomplete table, and the scale of the factors in each of them.

The scale of a factor is determined only relative to the others, through observed cells. Rows and columns that no path
of observed cells connects are in different components, and each component has a scale that the data leave free.

Observed zeros can connect rows and columns so weakly that no factors attain the minimum. In [[1, 0], [?, 1]] the cost
decreases as long as row 0 shrinks and column 0 grows, and the missing cell diverges. Such a zero is fitted exactly only
in the limit, so it is left out of the fit and separates two components. It is fitted by finite factors if and only if
the table's marginals are also those of a table with a positive value there: if a path leads back from its column to its
row, along observed cells from rows to columns and along positive cells from columns to rows. So the components are the
strongly connected ones of this directed graph.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from halfseen.arrays import Array
from halfseen.rankone.incomplete_tables import ObservedCells, Table
from halfseen.rankone.marginals import Marginals, WeightMatrix, ignore_overflow


@dataclass(frozen=True)
class SeparatingZeros:
    """Observed zeros between components: the row's component must be scaled down against the column's.

    `levels` order the components: at every such zero, that of the column is above that of the row.
    """

    rows: Array
    columns: Array
    weights: Array | None
    levels: Array


@dataclass(frozen=True)
class Components:
    """Connected components of a table; if there are zeros between them, the best fit is a limit."""

    count: int
    #: For each axis, the component of each row; -1 where all observed values are 0, or none is observed.
    labels: tuple[Array, ...]
    #: What is to be fitted: the marginals of the table, without the separating zeros.
    marginals: Marginals
    zeros: SeparatingZeros | None = None


def find_components(table: Table, marginals: Marginals) -> Components:
    """Find the components of a table for one of its marginals; its cells are visited only if counts do not suffice."""
    if _is_connected(table, marginals):
        return single_component(marginals)
    find = _components_of_matrix if len(marginals.sums) == 2 else _components_of_tensor
    return find(marginals, table.observed_cells())


def single_component(marginals: Marginals) -> Components:
    """One component of all rows and columns with a positive sum."""
    labels = tuple(np.where(sums > 0, 0, -1) for sums in marginals.sums)
    return Components(int(marginals.total > 0), labels, marginals)


def _is_connected(table: Table, marginals: Marginals) -> bool:
    """Whether counts alone prove that the table is connected.

    If the row with the most positive values and any other have together more of them than there are columns, the two
    share a column.
    """
    weights = marginals.weights
    complete = weights.base > 0 and weights.indices.size == 0
    if complete or marginals.total == 0:
        return True
    if marginals.unseen == "zero":
        return not table.has_zero_weights
    n_columns = np.count_nonzero(marginals.sums[1]) if len(marginals.sums) == 2 else weights.shape[1]
    return bool(sum(table.positive_counts) > n_columns)


def _components_of_matrix(marginals: Marginals, cells: ObservedCells) -> Components:
    """Strongly connected components of rows and columns with a positive sum."""
    r, c = marginals.row_sums, marginals.sums[1]
    n, m = r.size, c.size
    active = (r[cells.rows] > 0) & (c[cells.columns] > 0)
    rows, columns = cells.rows[active], cells.columns[active].astype(np.int64) + n
    positive = cells.positive[active]
    edges = (np.append(rows, columns[positive]), np.append(columns, rows[positive]))
    graph = sparse.coo_array((np.ones(edges[0].size, bool), edges), (n + m, n + m)).tocsr()
    every = _renumber(connected_components(graph, connection="strong")[1], np.append(r, c) > 0)
    labels = (every[:n], every[n:])
    count = int(every.max()) + 1
    between = active & (labels[0][cells.rows] != labels[1][cells.columns])
    if not between.any():
        return Components(count, (_merge_labels(marginals, labels[0]), labels[1]), marginals)
    # leave the zeros between components out, and order the components by them
    rows, columns = cells.rows[between], cells.columns[between]
    removed, kept = (None if cells.weights is None else cells.weights[mask] for mask in (between, ~between))
    zeros = SeparatingZeros(rows, columns, removed, _levels(labels[0][rows], labels[1][columns], count))
    indptr = np.append(0, np.cumsum(np.bincount(cells.rows[~between], minlength=n)))
    weights = WeightMatrix.from_observed(indptr, cells.columns[~between], kept, (n, m))
    counts = (np.bincount(cells.rows, minlength=n), marginals.counts[1])
    reduced = Marginals((r, c), counts, weights, marginals.axes, marginals.binary, marginals.unseen)
    return Components(count, labels, reduced, zeros)


def _components_of_tensor(marginals: Marginals, cells: ObservedCells) -> Components:
    """Components of the slices along all axes, zero or not; a tensor's factors may have further free scales."""
    sums = (marginals.row_sums, *marginals.sums[1:])
    starts = np.cumsum([0, *(along.size for along in sums)])
    positions = (cells.rows, *np.unravel_index(cells.columns, marginals.inner_shape))
    active = np.logical_and.reduce([along[at] > 0 for along, at in zip(sums, positions, strict=True)])
    rows, *inner = (at[active] for at in positions)
    ends = np.concatenate([at + start for at, start in zip(inner, starts[1:], strict=False)])
    graph = sparse.coo_array((np.ones(ends.size, bool), (np.tile(rows, len(inner)), ends)), (starts[-1], starts[-1]))
    every = _renumber(connected_components(graph, directed=False)[1], np.concatenate(sums) > 0)
    first, *others = np.split(every, starts[1:-1])
    return Components(int(every.max()) + 1, (_merge_labels(marginals, first), *others), marginals)


def _merge_labels(marginals: Marginals, labels: Array) -> Array:
    """Labels of merged rows: with the same observed columns, their rows are in one component."""
    if marginals.merged is None:
        return labels
    merged = np.full(marginals.sums[0].size, -1)
    np.maximum.at(merged, marginals.merged.group, labels)
    return merged


def sort_labels(labels: Sequence[Array]) -> tuple[Array, ...]:
    """Labels of all axes, with the components numbered in order of appearance."""
    joined = np.concatenate(labels)
    return tuple(np.split(_renumber(joined, joined >= 0), np.cumsum([one.size for one in labels])[:-1]))


def _renumber(labels: Array, active: Array) -> Array:
    """Labels 0, 1, ... in the order of their first active member; -1 where not active."""
    distinct, first, numbers = np.unique(labels[active], return_index=True, return_inverse=True)
    rank = np.empty(distinct.size, np.int64)
    rank[np.argsort(first)] = np.arange(distinct.size)
    numbered = np.full(labels.size, -1)
    numbered[active] = rank[numbers]
    return numbered


def _levels(lower: Array, upper: Array, count: int) -> Array:
    """Longest path to each component along the edges lower -> upper.

    There are no cycles, or their components would be one.
    """
    levels = np.zeros(count, np.int64)
    while True:
        raised = levels.copy()
        np.maximum.at(raised, upper, levels[lower] + 1)
        if np.array_equal(raised, levels):
            return levels
        levels = raised


def rescale(factors: tuple[Array, ...], components: Components, tol: float, dtype: np.dtype) -> tuple[Array, ...]:
    """Rescale the factors of a fit to equal sums in each component, in the range of `dtype`; undo the merging of rows.

    At separating zeros the fit gets at most `tol` times the total. Rows and columns without observed cells get the
    average factor.
    """
    marginals = components.marginals
    with ignore_overflow():
        factors = _balance(factors, components, dtype)
        if components.zeros is not None:
            factors = _separate(factors[0], factors[1], components, components.zeros, tol * marginals.total, dtype)
        rescaled = [marginals.expand_factor(factors[0]), *factors[1:]]
        for axis, factor in enumerate(rescaled):
            empty = marginals.is_empty(axis)
            if empty.any() and not empty.all():
                empty = marginals.expand(empty) if axis == 0 else empty
                rescaled[axis] = np.where(empty, factor.sum() / np.count_nonzero(~empty), factor)
        return tuple(rescaled)


def _balance(factors: tuple[Array, ...], components: Components, dtype: np.dtype) -> tuple[Array, ...]:
    """Factors with equal sums in each component, or as near to that as the range of the dtype permits.

    The product of all factors stays the same. A factor that spans hundreds of powers of ten can be multiplied only by
    so much before its smallest entries underflow.
    """
    count, marginals = components.count, components.marginals
    if count == 0:
        return factors
    sums, low, high = np.empty((3, len(factors), count))  # logarithms
    for axis, (factor, labels) in enumerate(zip(factors, components.labels, strict=True)):
        active = labels >= 0
        label, values = labels[active], factor[active]
        smallest, largest = np.full(count, np.inf), np.zeros(count)
        np.minimum.at(smallest, label, values)
        np.maximum.at(largest, label, values)
        sums[axis], low[axis], high[axis] = np.log([np.bincount(label, values, minlength=count), smallest, largest])
        if axis == 0 and marginals.merged is not None:
            shares = np.log(values) - np.log(marginals.sums[0][active])
            np.minimum.at(low[axis], label, shares + np.log(marginals.merged.low))
            np.maximum.at(high[axis], label, shares + np.log(marginals.merged.high))
    limits = np.finfo(dtype)
    shifts = _clip_shifts(sums.mean(axis=0) - sums, np.log(limits.tiny) - low, np.log(limits.max) - high)
    halves = np.exp(shifts / 2)  # applied twice, because the whole may overflow
    return tuple(
        np.where(labels >= 0, factor * half[labels] * half[labels], factor)
        for factor, half, labels in zip(factors, halves, components.labels, strict=True)
    )


def _clip_shifts(shifts: Array, low: Array, high: Array) -> Array:
    """Shifts of the axes (rows) that sum to 0, moved into their bounds as far as these permit."""
    clipped = np.clip(shifts, low, np.maximum(low, high))
    rest = -clipped.sum(axis=0)
    for axis, room in enumerate(zip(low - clipped, high - clipped, strict=True)):
        step = np.clip(rest, np.minimum(0.0, room[0]), np.maximum(0.0, room[1]))
        clipped[axis] += step
        rest = rest - step
    clipped[0] += rest
    return clipped


def _separate(
    w: Array, h: Array, components: Components, zeros: SeparatingZeros, allowed: float, dtype: np.dtype
) -> tuple[Array, ...]:
    """Scale components against each other until the fit has at most `allowed` at the zeros between them.

    They would be fitted exactly at infinite scales; these are cut off near the ends of the dtype's range.
    """
    limit = 0.8 * np.log(np.finfo(dtype).max)
    fitted = w[zeros.rows] * h[zeros.columns]
    mass = float((fitted if zeros.weights is None else fitted * zeros.weights).sum())
    wanted = np.log(max(allowed, 1e-300) / mass)
    step = max(min(wanted, 0.0), -limit / int(zeros.levels.max()))
    levels = zeros.levels - zeros.levels.max() / 2
    return tuple(
        np.where(labels >= 0, factor * np.exp((sign * step * levels)[labels]), factor)
        for factor, labels, sign in ((w, components.labels[0], -1), (h, components.labels[1], 1))
    )
