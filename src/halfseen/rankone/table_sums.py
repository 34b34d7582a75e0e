"""Loops of the rank-one methods: marginals of a dense table in one pass, products with a matrix of cell weights, and
whole fits to dense tables that present no difficulty.

Counters are unsigned, because a signed one would be checked for being negative at every use.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from halfseen.kernels import kernel

Array = npt.NDArray[Any]

_ONE = np.uintp(1)
#: Smallest ratio of a difference to its minuend at which the difference is used; below it, cancellation is too strong.
_MIN_DIFFERENCE = 0.01
#: Rows of at most this many columns are checked for missing cells first.
_NARROW = 32
#: Sums that differ by less than this factor leave room for all products of factors, in double and in single precision.
_WIDE_SUMS, _WIDE_SUMS_SINGLE = 1e30, 1e9
#: Cells per block of a table whose missing cells are listed.
_CELLS_PER_BLOCK = 1 << 16


@kernel
def dense_table_sums(
    X: Array,
    row_sums: Array,
    column_sums: Array,
    rows: Array,
    indptr: Array,
    missing: Array,
    flags: Array,
    totals: Array,
) -> int:
    """All statistics of a dense table, NaN where a cell is missing, that the rank-one methods need, in one pass.

    Sets `row_sums`, adds to `column_sums`, and lists the incomplete rows, `rows[:count]`, with the columns of their
    missing cells, `missing[indptr[k]:indptr[k + 1]]`. Returns the number of incomplete rows. `totals` receives the
    number of negative values; the sum of all complete rows; and, over rows with a positive sum, the smallest and the
    largest sum, the smallest and the largest number of positive values. `flags` is a buffer for one row. `missing` has
    one element more than X, because in an incomplete row every column is written, and kept if the cell is missing:
    there is no branch to predict.
    """
    n, m = X.shape
    count, incomplete = np.uintp(0), np.uintp(0)
    n_negative, complete_sum = 0.0, 0.0
    low, high, fewest, most = np.inf, 0.0, np.inf, 0.0
    indptr[0] = 0
    for i in range(n):
        x = X[i]
        total, positive = np.nan, 0.0
        if m <= _NARROW:  # most rows of a narrow table are complete and positive
            total = 0.0
            for j in range(m):
                value = np.float64(x[j])
                total += value
                positive += 1.0 if value > 0 else 0.0
        if total == total and positive == m:
            for j in range(m):
                column_sums[j] += np.float64(x[j])
            complete_sum += total
        else:
            total, positive, negative, n_missing = 0.0, 0.0, 0.0, 0.0
            for j in range(m):
                value = np.float64(x[j])
                is_missing = value != value
                flags[j] = is_missing
                observed = 0.0 if is_missing else value
                total += observed
                column_sums[j] += observed
                positive += 1.0 if value > 0 else 0.0
                negative += 1.0 if value < 0 else 0.0
                n_missing += 1.0 if is_missing else 0.0
            n_negative += negative
            if n_missing > 0:
                rows[incomplete] = i
                for j in range(np.uintp(m)):
                    missing[count] = j
                    count += np.uintp(flags[j])
                incomplete += _ONE
                indptr[incomplete] = count
            else:
                complete_sum += total
        row_sums[i] = total
        if total > 0:
            low, high = min(low, total), max(high, total)
            fewest, most = min(fewest, positive), max(most, positive)
    totals[0], totals[1], totals[2], totals[3], totals[4], totals[5] = n_negative, complete_sum, low, high, fewest, most
    return incomplete  # type: ignore[return-value]


@kernel
def weight_matvec(indptr: Array, indices: Array, data: Array, h: Array, base: float, total: float, out: Array) -> None:
    """out[i] = base * total + sum of data[p] * h[j] over the stored cells p = (i, j) of row i; total = sum(h).

    Where the stored cells cancel nearly all of the total, the row is summed again, cell by cell.
    """
    for i in range(out.size):
        first, stop = np.uintp(indptr[i]), np.uintp(indptr[i + 1])
        a, b, c, d = 0.0, 0.0, 0.0, 0.0
        p = first
        while p + np.uintp(4) <= stop:
            a += data[p] * h[np.uintp(indices[p])]
            b += data[p + np.uintp(1)] * h[np.uintp(indices[p + np.uintp(1)])]
            c += data[p + np.uintp(2)] * h[np.uintp(indices[p + np.uintp(2)])]
            d += data[p + np.uintp(3)] * h[np.uintp(indices[p + np.uintp(3)])]
            p += np.uintp(4)
        while p < stop:
            a += data[p] * h[np.uintp(indices[p])]
            p += _ONE
        result = base * total + ((a + b) + (c + d))
        if base > 0 and result < _MIN_DIFFERENCE * total:
            result = 0.0
            p = first
            for j in range(np.uintp(h.size)):
                weight = base
                while p < stop and np.uintp(indices[p]) == j:
                    weight += data[p]
                    p += _ONE
                if weight > 0:
                    result += weight * h[j]
        out[i] = result


@kernel
def weight_rmatvec(indptr: Array, indices: Array, data: Array, w: Array, out: Array) -> None:
    """out[j] += sum of data[p] * w[i] over the stored cells p = (i, j) of column j."""
    for i in range(w.size):
        w_i = w[i]
        for p in range(np.uintp(indptr[i]), np.uintp(indptr[i + 1])):
            out[np.uintp(indices[p])] += data[p] * w_i


@kernel
def weight_rmatvec_columns(
    indptr: Array, indices: Array, data: Array, w: Array, columns: Array, buffer: Array, out: Array
) -> None:
    """out[j] += sum over all rows i of (1 + data of the cell (i, j)) * w[i], for the given columns j.

    Nothing is subtracted from sums, unlike in `weight_rmatvec`. `buffer` holds a one for every column.
    """
    for i in range(w.size):
        first, stop = np.uintp(indptr[i]), np.uintp(indptr[i + 1])
        for p in range(first, stop):
            buffer[np.uintp(indices[p])] += data[p]
        for j in columns:
            if buffer[j] > 0:
                out[j] += buffer[j] * w[i]
        for p in range(first, stop):
            buffer[np.uintp(indices[p])] = 1.0


@kernel
def group_equal_rows(indptr: Array, indices: Array, group: Array, first_rows: Array) -> int:
    """Give rows with the same stored cells the same group; `first_rows` receives the first row of each group.

    Returns the number of groups, or -1 if there are more than `first_rows` has elements.
    """
    groups = 0
    latest = 0
    for i in range(group.size):
        match = -1
        for attempt in range(groups + 1):  # the latest group first: adjacent rows are often equal
            g = latest if attempt == 0 else attempt - 1
            if g < groups:
                a, b = np.uintp(indptr[i]), np.uintp(indptr[first_rows[g]])
                length = np.uintp(indptr[i + 1]) - a
                same = length == np.uintp(indptr[first_rows[g] + 1]) - b
                k = np.uintp(0)
                while same and k < length:
                    same = indices[a + k] == indices[b + k]
                    k += _ONE
                if same:
                    match = g
                    break
        if match < 0:
            if groups == first_rows.size:
                return -1
            first_rows[groups] = i
            match = groups
            groups += 1
        group[i] = match
        latest = match
    return groups


@kernel
def block_sums(X: Array, rows: Array, complete: Array, row_sums: Array, column_sums: Array) -> None:
    """Over the given rows: set row_sums[k], the sum over complete columns; add to column_sums[j] that of column j."""
    for k in range(rows.size):
        x = X[rows[k]]
        total = 0.0
        for j in range(x.size):
            value = np.float64(x[j])
            observed = 0.0 if value != value else value
            total += observed if complete[j] else 0.0
            column_sums[j] += observed
        row_sums[k] = total


@kernel
def dense_table_sums_by_blocks(X: Array, row_sums: Array, column_sums: Array) -> tuple[Array, Array, Array, Array]:
    """Apply `dense_table_sums` to blocks of rows, so that the list of missing cells is the one large array.

    Returns the incomplete rows, `indptr` and `missing`, which may be longer than the list, and `totals`.
    """
    n, m = X.shape
    height = min(n, max(1, _CELLS_PER_BLOCK // max(m, 1)))
    rows, indptr, flags = np.empty(n, np.int64), np.empty(n + 1, np.int64), np.empty(m, np.uint8)
    totals, buffer = np.empty(6), np.empty(height * m + 1, np.int32)
    if height == n:
        n_incomplete = np.int64(dense_table_sums(X, row_sums, column_sums, rows, indptr, buffer, flags, totals))
        return rows[:n_incomplete], indptr, buffer, totals
    count, size, missing, ends, part = 0, 0, np.empty(0, np.int32), np.empty(height + 1, np.int64), np.empty(6)
    totals[:], indptr[0] = 0.0, 0
    totals[2], totals[4] = np.inf, np.inf
    for top in range(0, n, height):
        stop = min(top + height, n)
        block, out = X[top:stop], row_sums[top:stop]
        new = int(dense_table_sums(block, out, column_sums, rows[count:], ends, buffer, flags, part))
        if size + ends[new] > missing.size:
            longer = np.empty(max(2 * missing.size, size + ends[new]), np.int32)
            longer[:size] = missing[:size]
            missing = longer
        missing[size : size + ends[new]] = buffer[: ends[new]]
        for k in range(new):
            rows[count + k] += top
            indptr[count + k + 1] = size + ends[k + 1]
        count += new
        size += ends[new]
        totals[0], totals[1] = totals[0] + part[0], totals[1] + part[1]
        totals[2], totals[3] = min(totals[2], part[2]), max(totals[3], part[3])
        totals[4], totals[5] = min(totals[4], part[4]), max(totals[5], part[5])
    return rows[:count], indptr, missing, totals


@kernel
def balance_sums(w: Array, h: Array, wide: float) -> bool:
    """Multiply w and divide h in place so that their sums are equal; whether these differed by less than `wide`."""
    ratio = h.sum() / w.sum()
    if not 1.0 / wide < ratio < wide:
        return False
    root = np.sqrt(ratio)
    w *= root
    h /= root
    return True


@kernel
def a1gm_of_dense(X: Array) -> tuple[Array, Array, float]:
    """Factors of A1GM (Algorithm 1) with equal sums, and the increase rate, all in one call.

    The rate is -1 for a table that `closed_forms.a1gm` must look at: one that it refuses, or with sums that are very
    small or large.
    """
    n, m = X.shape
    w, h, beside, below = np.empty(n), np.zeros(m), np.empty(n), np.zeros(m)
    rows, indptr, missing, totals = dense_table_sums_by_blocks(X, w, h)
    count, complete = rows.size, np.ones(m, np.bool_)
    n_missing, wide = indptr[count], _WIDE_SUMS if X.itemsize == 8 else _WIDE_SUMS_SINGLE
    for p in range(n_missing):
        complete[missing[p]] = False
    n_incomplete = m - complete.sum()
    easy = totals[0] == 0 and totals[2] > 1.0 / wide and totals[3] < wide
    if not easy or count == n or n_incomplete == m:
        return w, h, -1.0
    block_sums(X, rows, complete, beside[:count], below)
    above, cancelled = h - below, False
    for j in range(m):
        cancelled |= above[j] < _MIN_DIFFERENCE * h[j]
    if cancelled:  # nearly all of a column was subtracted: sum the complete rows instead
        above[:], k = 0.0, 0
        for i in range(n):
            if k < count and rows[k] == i:
                k += 1
            else:
                for j in range(m):
                    above[j] += X[i, j]
    # Theorem 1 without the root of S(X), as in `closed_forms.a1gm`
    above_complete, above_incomplete = 0.0, 0.0
    for j in range(m):
        if above[j] < 1.0 / wide and h[j] > 0:
            return w, h, -1.0
        if complete[j]:
            above_complete += above[j]
        else:
            above_incomplete += above[j]
            h[j] = above[j]
    below_complete = beside[:count].sum()
    if not above_complete > 0:
        return w, h, -1.0
    for j in range(m):
        if complete[j]:
            h[j] *= above_complete / (above_complete + below_complete)
    scale = 1.0 / (above_complete + above_incomplete)
    for i in range(n):
        w[i] *= scale
    for k in range(count):
        i = rows[k]
        if beside[k] < 1.0 / wide and w[i] > 0:
            return w, h, -1.0
        w[i] = beside[k] / above_complete
    rate = count * n_incomplete / n_missing if n_missing > 0 else 1.0
    return w, h, rate if balance_sums(w, h, wide) else -1.0


@kernel
def exact_of_dense(X: Array, tol: float, max_sweeps: int) -> tuple[Array, Array, int]:
    """Best factors with equal sums, and the number of sweeps, all in one call, for tables that present no difficulty.

    The number is 0 for a table that `exact_solution.exact` must look at: with an empty row or column, few observed
    cells, several components or sums of very different size; or if `max_sweeps` do not suffice.
    """
    n, m = X.shape
    w, c = np.empty(n), np.zeros(m)
    rows, indptr, missing, totals = dense_table_sums_by_blocks(X, w, c)
    count, wide = rows.size, _WIDE_SUMS if X.itemsize == 8 else _WIDE_SUMS_SINGLE
    n_negative, complete_sum, low, high, fewest, most = totals
    counts, h, exposures = np.full(m, np.float64(n)), np.empty(m), np.empty(m)
    for p in range(indptr[count]):
        counts[missing[p]] -= 1.0
    positive, least, largest = 0, np.inf, 0.0
    for j in range(m):
        if counts[j] == 0.0:
            return w, h, 0
        h[j] = c[j] / counts[j]
        if c[j] > 0:
            positive, least, largest = positive + 1, min(least, c[j]), max(largest, c[j])
    easy = n_negative == 0 and high < wide * low and largest < wide * least and fewest + most > positive
    if not easy or not 1.0 / wide < high < wide:
        return w, h, 0
    for k in range(count):
        if indptr[k + 1] - indptr[k] == m:
            return w, h, 0
    r = w[rows]
    partial = np.empty(count)
    last_change, last_rate = np.inf, 1.0
    for sweep in range(1, max_sweeps + 1):
        total = h.sum()
        mass = complete_sum / total
        for k in range(count):
            exposure = total
            for p in range(indptr[k], indptr[k + 1]):
                exposure -= h[missing[p]]
            if exposure < _MIN_DIFFERENCE * total:
                return w, h, 0
            partial[k] = r[k] / exposure
            mass += partial[k]
        exposures[:] = mass
        for k in range(count):
            for p in range(indptr[k], indptr[k + 1]):
                exposures[missing[p]] -= partial[k]
        change = 0.0
        for j in range(m):
            if c[j] > 0:
                if exposures[j] < _MIN_DIFFERENCE * mass:
                    return w, h, 0
                new = c[j] / exposures[j]
                change = max(change, abs(new / h[j] - 1.0))
                h[j] = new
        # changes that shrink by a rate q add up to change * q / (1 - q): as `exact_solution.error_estimator`
        rate = change / last_change if last_change < 0.5 else 1.0
        slower = max(rate, last_rate)
        if change <= 1e-13 or (slower < 1.0 and change * slower <= 0.25 * tol * (1.0 - slower)):
            total = h.sum()
            scale = 1.0 / total
            for i in range(n):
                w[i] *= scale
            for k in range(count):
                exposure = total
                for p in range(indptr[k], indptr[k + 1]):
                    exposure -= h[missing[p]]
                w[rows[k]] = r[k] / exposure
            return w, h, sweep if balance_sums(w, h, wide) else 0
        last_change, last_rate = change, rate
    return w, h, 0
