"""The loops of the rank-one methods: one pass over a dense table, and sums over a list of cells.

Counters are unsigned, because a signed one would be checked for being negative at every use.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from halfseen.kernels import kernel

Array = npt.NDArray[Any]

_ONE = np.uintp(1)
#: A sum that is left after subtracting is trusted down to this part of what it was subtracted from.
_TRUSTED = 0.01
#: Rows up to so many columns are looked over for holes before they are taken apart.
_NARROW = 32


@kernel
def survey(
    X: Array,
    row_sums: Array,
    column_sums: Array,
    rows: Array,
    indptr: Array,
    holes: Array,
    flags: Array,
    found: Array,
) -> int:
    """Everything that the rank-one methods ask of a dense table, where NaN is a hole, in one pass.

    Writes the sum of each row, adds to the sums of the columns, and lists the rows that have holes, `rows[:listed]`,
    with the columns of these, `holes[indptr[k]:indptr[k + 1]]`. Returns how many rows it has listed. `found` takes the
    number of negative values; what the rows without holes sum to; and, of the rows above 0, the lowest and the highest
    sum, the fewest and the most values above 0. `flags` is room for one row; `holes` has room for one more than all
    cells, because in a row with holes every column is noted, and kept if it is a hole: no branch to foresee.
    """
    n, m = X.shape
    count, listed = np.uintp(0), np.uintp(0)
    negatives, whole = 0.0, 0.0
    lowest, highest, fewest, most = np.inf, 0.0, np.inf, 0.0
    indptr[0] = 0
    for i in range(n):
        x = X[i]
        total, above = np.nan, 0.0
        if m <= _NARROW:  # most rows of a narrow table are whole and above 0: a quick look tells
            total = 0.0
            for j in range(m):
                value = np.float64(x[j])
                total += value
                above += 1.0 if value > 0 else 0.0
        if total == total and above == m:
            for j in range(m):
                column_sums[j] += np.float64(x[j])
            whole += total
        else:
            total, above, below, missing = 0.0, 0.0, 0.0, 0.0
            for j in range(m):
                value = np.float64(x[j])
                hole = value != value
                flags[j] = hole
                seen = 0.0 if hole else value
                total += seen
                column_sums[j] += seen
                above += 1.0 if value > 0 else 0.0
                below += 1.0 if value < 0 else 0.0
                missing += 1.0 if hole else 0.0
            negatives += below
            if missing > 0:
                rows[listed] = i
                for j in range(np.uintp(m)):
                    holes[count] = j
                    count += np.uintp(flags[j])
                listed += _ONE
                indptr[listed] = count
            else:
                whole += total
        row_sums[i] = total
        if total > 0:
            lowest, highest = min(lowest, total), max(highest, total)
            fewest, most = min(fewest, above), max(most, above)
    found[0], found[1], found[2], found[3], found[4], found[5] = negatives, whole, lowest, highest, fewest, most
    return listed  # type: ignore[return-value]


@kernel
def row_exposures(
    indptr: Array, indices: Array, change: Array, far: Array, base: float, total: float, out: Array
) -> None:
    """out[i] = base * total + sum of change[p] * far[j] over the listed cells p = (i, j) of row i; total = sum(far).

    Where the listed cells take nearly all of the total away, the rest is summed anew, cell by cell.
    """
    for i in range(out.size):
        first, stop = np.uintp(indptr[i]), np.uintp(indptr[i + 1])
        a, b, c, d = 0.0, 0.0, 0.0, 0.0
        p = first
        while p + np.uintp(4) <= stop:
            a += change[p] * far[np.uintp(indices[p])]
            b += change[p + np.uintp(1)] * far[np.uintp(indices[p + np.uintp(1)])]
            c += change[p + np.uintp(2)] * far[np.uintp(indices[p + np.uintp(2)])]
            d += change[p + np.uintp(3)] * far[np.uintp(indices[p + np.uintp(3)])]
            p += np.uintp(4)
        while p < stop:
            a += change[p] * far[np.uintp(indices[p])]
            p += _ONE
        rest = base * total + ((a + b) + (c + d))
        if base > 0 and rest < _TRUSTED * total:
            rest = 0.0
            p = first
            for j in range(np.uintp(far.size)):
                exposure = base
                while p < stop and np.uintp(indices[p]) == j:
                    exposure += change[p]
                    p += _ONE
                if exposure > 0:
                    rest += exposure * far[j]
        out[i] = rest


@kernel
def column_changes(indptr: Array, indices: Array, change: Array, near: Array, out: Array) -> None:
    """out[j] += sum of change[p] * near[i] over the listed cells p = (i, j) of column j."""
    for i in range(near.size):
        here = near[i]
        for p in range(np.uintp(indptr[i]), np.uintp(indptr[i + 1])):
            out[np.uintp(indices[p])] += change[p] * here


@kernel
def column_exposures(
    indptr: Array, indices: Array, change: Array, near: Array, wanted: Array, room: Array, out: Array
) -> None:
    """out[j] += sum over all rows i of (1 + change of the cell (i, j)) * near[i], for the wanted columns j.

    Nothing is subtracted from sums, unlike in `column_changes`. `room` holds a one for every column.
    """
    for i in range(near.size):
        first, stop = np.uintp(indptr[i]), np.uintp(indptr[i + 1])
        for p in range(first, stop):
            room[np.uintp(indices[p])] += change[p]
        for j in wanted:
            if room[j] > 0:
                out[j] += room[j] * near[i]
        for p in range(first, stop):
            room[np.uintp(indices[p])] = 1.0


@kernel
def alike(indptr: Array, indices: Array, group: Array, firsts: Array) -> int:
    """Rows with the same list of cells get the same group, numbered by their first rows, `firsts`.

    Returns how many groups there are; -1 as soon as `firsts` has no room for another.
    """
    groups = 0
    latest = 0
    for i in range(group.size):
        found = -1
        for tried in range(groups + 1):  # the latest group first: rows that follow each other are often alike
            g = latest if tried == 0 else tried - 1
            if g < groups:
                a, b = np.uintp(indptr[i]), np.uintp(indptr[firsts[g]])
                length = np.uintp(indptr[i + 1]) - a
                same = length == np.uintp(indptr[firsts[g] + 1]) - b
                k = np.uintp(0)
                while same and k < length:
                    same = indices[a + k] == indices[b + k]
                    k += _ONE
                if same:
                    found = g
                    break
        if found < 0:
            if groups == firsts.size:
                return -1
            firsts[groups] = i
            found = groups
            groups += 1
        group[i] = found
        latest = found
    return groups


@kernel
def sums_beside(X: Array, rows: Array, free: Array, beside: Array, below: Array) -> None:
    """For the listed rows: beside[k], the sum over free columns; below[j], added to, the sum of column j over them."""
    for k in range(rows.size):
        x = X[rows[k]]
        total = 0.0
        for j in range(x.size):
            value = np.float64(x[j])
            seen = 0.0 if value != value else value
            total += seen if free[j] else 0.0
            below[j] += seen
        beside[k] = total
