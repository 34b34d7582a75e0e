"""Which rows and columns hang together by what was seen.

The scale of a factor is fixed only against that of the others, through seen cells. Rows and columns that no chain of
seen cells connects belong to different parts, and each part has a scale of its own, which the data leave free.

Seen zeros can connect rows and columns so loosely that the best fit is a limit. In [[1, 0], [?, 1]] the cost falls as
long as row 0 shrinks and column 0 grows, and the hole runs away. A seen zero can be met exactly only at the end of that
way, so it is taken out of the fit, and divides a part. It is met by a finite factor if and only if the table's sums
could also be had with a positive value there: if a way leads back from its column to its row, along seen cells from
rows to columns and along cells above zero from columns to rows. So the parts are the strongly connected components.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from halfseen.arrays import Array
from halfseen.rank_one.exposure import Exposure
from halfseen.rank_one.marginals import Marginals
from halfseen.rank_one.tables import SeenCells, Table


@dataclass(frozen=True)
class Links:
    """Seen zeros between parts: the row's part must become ever smaller than the column's, by their `levels`."""

    rows: Array
    columns: Array
    weights: Array | None
    levels: Array


@dataclass(frozen=True)
class Parts:
    """The parts: how many, the part of each row of each axis (-1 where all that was seen is 0, or nothing was)."""

    count: int
    of: tuple[Array, ...]
    #: What is fitted: the data's marginals but, where there are links, without these.
    marginals: Marginals
    links: Links | None = None


def parts_of(table: Table, marginals: Marginals) -> Parts:
    """The parts of a table, for one of its marginals; in most cases by counts alone, else by a walk over its cells."""
    if _surely_one(table, marginals):
        return one_part(marginals)
    cells = table.cells()
    return _of_matrix(marginals, cells) if len(marginals.sums) == 2 else _of_tensor(marginals, cells)


def one_part(marginals: Marginals) -> Parts:
    """All that is above 0 as one part."""
    return Parts(int(marginals.total > 0), tuple(np.where(sums > 0, 0, -1) for sums in marginals.sums), marginals)


def _surely_one(table: Table, marginals: Marginals) -> bool:
    """Whether counts alone prove that all hangs together.

    If the fullest row and any other have together more values above 0 than there are columns, they share a column.
    """
    exposure = marginals.exposure
    without_holes = exposure.base > 0 and exposure.indices.size == 0
    if without_holes or marginals.total == 0:
        return True
    if marginals.unseen == "zero":
        return not table.hides_zeros
    columns = np.count_nonzero(marginals.sums[1]) if len(marginals.sums) == 2 else exposure.shape[1]
    return bool(sum(table.positives) > columns)


def _of_matrix(marginals: Marginals, cells: SeenCells) -> Parts:
    r, c = marginals.every_sum, marginals.sums[1]
    n, m = r.size, c.size
    lives = (r[cells.rows] > 0) & (c[cells.columns] > 0)
    rows, columns = cells.rows[lives], cells.columns[lives].astype(np.int64) + n
    above = cells.positive[lives]
    ways = sparse.coo_array(
        (np.ones(rows.size + int(above.sum()), bool),
         (np.append(rows, columns[above]), np.append(columns, rows[above]))), (n + m, n + m)
    ).tocsr()  # fmt: skip
    labels = _numbered(connected_components(ways, connection="strong")[1], np.append(r, c) > 0)
    of = (labels[:n], labels[n:])
    between = np.flatnonzero(lives & (of[0][cells.rows] != of[1][cells.columns]))
    count = int(labels.max()) + 1
    if between.size == 0:
        return Parts(count, (_of_merged(marginals, of[0]), of[1]), marginals)
    rows, columns = cells.rows[between], cells.columns[between]
    weights = None if cells.weights is None else cells.weights[between]
    links = Links(rows, columns, weights, _levels(of[0][rows], of[1][columns], count))
    return Parts(count, of, _without(between, cells, marginals), links)


def _of_merged(marginals: Marginals, labels: Array) -> Array:
    """Labels of rows, with one for all that are merged: having seen the same columns, they are in one part."""
    if marginals.merged is None:
        return labels
    merged = np.full(marginals.sums[0].size, -1)
    np.maximum.at(merged, marginals.merged.group, labels)
    return merged


def _of_tensor(marginals: Marginals, cells: SeenCells) -> Parts:
    """Parts of the rows of all axes, whatever is zero; a tensor's factors may be free in further ways."""
    sums = (marginals.every_sum, *marginals.sums[1:])
    starts = np.cumsum([0, *(along.size for along in sums)])
    places = (cells.rows, *np.unravel_index(cells.columns, marginals.inner_shape))
    lives = np.logical_and.reduce([along[place] > 0 for along, place in zip(sums, places, strict=True)])
    rows, *inner = (place[lives] for place in places)
    ends = np.concatenate([place + start for place, start in zip(inner, starts[1:], strict=False)])
    ways = sparse.coo_array((np.ones(ends.size, bool), (np.tile(rows, len(inner)), ends)), (starts[-1], starts[-1]))
    labels = _numbered(connected_components(ways, directed=False)[1], np.concatenate(sums) > 0)
    first, *others = np.split(labels, starts[1:-1])
    return Parts(int(labels.max()) + 1, (_of_merged(marginals, first), *others), marginals)


def in_order(labels: Sequence[Array]) -> tuple[Array, ...]:
    """The labels of all axes, parts numbered in the order in which they appear."""
    joined = np.concatenate(labels)
    return tuple(np.split(_numbered(joined, joined >= 0), np.cumsum([of.size for of in labels])[:-1]))


def _numbered(labels: Array, lives: Array) -> Array:
    """Labels as 0, 1, ... in the order of their first living member; -1 for those that do not live."""
    found, first, numbers = np.unique(labels[lives], return_index=True, return_inverse=True)
    rank = np.empty(found.size, np.int64)
    rank[np.argsort(first)] = np.arange(found.size)
    numbered = np.full(labels.size, -1)
    numbered[lives] = rank[numbers]
    return numbered


def _levels(smaller: Array, larger: Array, count: int) -> Array:
    """A level for each part so that, at every link, the part of the column is above that of the row.

    The links have no cycles, or their parts would be one.
    """
    levels = np.zeros(count, np.int64)
    while True:
        higher = levels.copy()
        np.maximum.at(higher, larger, levels[smaller] + 1)
        if np.array_equal(higher, levels):
            return levels
        levels = higher


def _without(left_out: Array, cells: SeenCells, marginals: Marginals) -> Marginals:
    """The same sums, with all seen cells but some."""
    n, m = marginals.length(0), marginals.length(1)
    stay = np.ones(cells.rows.size, bool)
    stay[left_out] = False
    counts = np.bincount(cells.rows, minlength=n)
    indptr = np.append(0, np.cumsum(np.bincount(cells.rows[stay], minlength=n)))
    weights = None if cells.weights is None else cells.weights[stay]
    exposure = Exposure.of_seen(indptr, cells.columns[stay], weights, (n, m))
    sums = (marginals.every_sum, marginals.sums[1])
    return Marginals(sums, (counts, marginals.counts[1]), exposure, marginals.axes, marginals.binary, marginals.unseen)
