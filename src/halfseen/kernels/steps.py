"""Steps of rows: Newton's method, conjugate gradients, AdaGrad cell by cell, and the gradient of all cells.

`F`, `G`, `indptr`, `indices` as in `cells`; `l2` is the L2 penalty of each component, `fixed` is 1 for components that
must not move, else 0.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from halfseen.kernels import inlined, kernel
from halfseen.kernels.cells import add_rows, dots

Array = npt.NDArray[Any]

#: Bytes of the rows of G that conjugate gradients copy for a row of F, whose steps then read them from the cache.
_COPIED_BYTES = 1 << 19
#: Rows of F for which they copy at a time, at most, where shards are summed apart.
_FEW_ROWS = 64
#: Bytes of the rows of G that they read twice in succession, for products and for sums.
_GROUP_BYTES = 1 << 13
#: Rows of F whose normal equations are summed before they are solved.
_ROWS_OF_EQUATIONS = 16


@kernel
def newton_step(
    indptr: Array,
    indices: Array,
    s: Array,
    c: Array,
    F: Array,
    G: Array,
    l2: Array,
    centre: Array,
    fixed: Array,
    out: Array,
) -> None:
    """out[u] = F[u] - A^{-1} g,   g = sum of s[p] G[i] + l2 (F[u] - centre),
    A = sum of c[p] G[i] G[i]^T + l2."""
    k = F.shape[1]
    A = np.empty((k, k), F.dtype)
    g = np.empty(k, F.dtype)
    first = indptr[0]
    for u in range(F.shape[0]):
        for a in range(k):
            g[a] = l2[a] * (F[u, a] - centre[a])
            for b in range(k):
                A[a, b] = 0
        p = np.int64(indptr[u] - first)
        stop = np.int64(indptr[u + 1] - first)
        while p + 4 <= stop:
            _add_four(G[indices[p]], G[indices[p + 1]], G[indices[p + 2]], G[indices[p + 3]], s, c, p, g, A)
            p += 4
        while p < stop:
            _add_one(G[indices[p]], s[p], c[p], g, A)
            p += 1
        for a in range(k):
            A[a, a] += l2[a]
        _solve(A, g, fixed)
        for a in range(k):
            out[u, a] = F[u, a] - g[a]


@kernel
def normal_equations(indptr: Array, indices: Array, ends: Array, s: Array, c: Array, G: Array, out: Array) -> None:
    """out[u] = the sum of s[p] G[i], then the lower half of the sum of c[p] G[i] G[i]^T, row after row.

    The cells of a row are summed apart by shards: those with i below ends[0], then below ends[1], and so on.
    """
    k = G.shape[1]
    of_shard = np.empty(k + k * k, G.dtype)
    g, A = of_shard[:k], of_shard[k:].reshape(k, k)
    parts, shards = _empty_tree(ends.size, of_shard.size)
    first = indptr[0]
    for u in range(out.shape[0]):
        p, stop = np.int64(indptr[u] - first), np.int64(indptr[u + 1] - first)
        n, shard = 0, 0
        while p < stop:
            while ends[shard] <= indices[p]:
                shard += 1
            for a in range(of_shard.size):
                of_shard[a] = 0
            while p + 4 <= stop and indices[p + 3] < ends[shard]:
                _add_four(G[indices[p]], G[indices[p + 1]], G[indices[p + 2]], G[indices[p + 3]], s, c, p, g, A)
                p += 4
            while p < stop and indices[p] < ends[shard]:
                _add_one(G[indices[p]], s[p], c[p], g, A)
                p += 1
            n = _new_part(parts, shards, n, shard)
            for a in range(of_shard.size):
                parts[n - 1, a] = of_shard[a]
        _sum_of_parts(parts, n)
        for a in range(k):
            out[u, a] = parts[0, a]
        place = k
        for a in range(k):
            start = k + k * a
            for b in range(a + 1):
                out[u, place + b] = parts[0, start + b]
            place += a + 1


@kernel
def solve_equations(sums: Array, F: Array, l2: Array, centre: Array, fixed: Array, out: Array) -> None:
    """What `newton_step` does, given the sums of `normal_equations`."""
    k = F.shape[1]
    A = np.empty((k, k), F.dtype)
    g = np.empty(k, F.dtype)
    for u in range(F.shape[0]):
        place = k
        for a in range(k):
            g[a] = sums[u, a]
            g[a] += l2[a] * (F[u, a] - centre[a])
            for b in range(a + 1):
                A[a, b] = sums[u, place]
                place += 1
            A[a, a] += l2[a]
        _solve(A, g, fixed)
        for a in range(k):
            out[u, a] = F[u, a] - g[a]


@kernel
def newton_step_of_shards(
    indptr: Array, indices: Array, ends: Array, s: Array, c: Array, F: Array, G: Array, l2: Array, centre: Array,
    fixed: Array, out: Array,
) -> None:  # fmt: skip
    """As `newton_step`, for a few rows at a time, by the `normal_equations` of shards."""
    n, k = F.shape
    sums = np.empty((min(n, _ROWS_OF_EQUATIONS), k * (k + 3) // 2))
    for start in range(0, n, _ROWS_OF_EQUATIONS):
        few = slice(start, min(start + _ROWS_OF_EQUATIONS, n))
        pointers, of_few = indptr[start : few.stop + 1], sums[: few.stop - start]
        cells = slice(np.int64(pointers[0] - indptr[0]), np.int64(pointers[-1] - indptr[0]))
        normal_equations(pointers, indices[cells], ends, s[cells], c[cells], G, of_few)
        solve_equations(of_few, F[few], l2, centre, fixed, out[few])


@kernel
def _empty_tree(n_shards: int, size: int) -> tuple[Array, Array]:
    """Room for the sums of shards that are still to be added, and for the first shard of each."""
    depth = 2
    while (1 << (depth - 2)) < n_shards:
        depth += 1
    return np.empty((depth, size)), np.empty(depth, np.int64)


@inlined
def _new_part(parts: Array, shards: Array, n: int, shard: int) -> int:
    """Let the sum of a shard be the last of n + 1 parts, after those are added that the tree adds before.

    The tree is that of `engines.threads.tree_sum`, in which two shards meet at the highest bit in which their numbers
    differ. Shards that are left out, whose sums are 0, change nothing. No views of rows are made: each takes as long as
    a cell.
    """
    while n > 1 and (shards[n - 2] ^ shards[n - 1]) < (shards[n - 1] ^ shard):
        n -= 1
        for a in range(parts.shape[1]):
            parts[n - 1, a] += parts[n, a]
    shards[n] = shard
    return n + 1


@inlined
def _sum_of_parts(parts: Array, n: int) -> None:
    """Add the n parts that are left, the last ones first, into the first one."""
    while n > 1:
        n -= 1
        for a in range(parts.shape[1]):
            parts[n - 1, a] += parts[n, a]
    if n == 0:
        parts[0, :] = 0


@kernel
def _add_one(row: Array, slope: Any, curvature: Any, g: Array, A: Array) -> None:
    for a in range(g.size):
        g[a] += slope * row[a]
        bent = curvature * row[a]
        for b in range(a + 1):
            A[a, b] += bent * row[b]


@kernel
def _add_four(g0: Array, g1: Array, g2: Array, g3: Array, s: Array, c: Array, p: int, g: Array, A: Array) -> None:
    """Four cells per iteration: fewer loads and stores of A."""
    s0, s1, s2, s3 = s[p], s[p + 1], s[p + 2], s[p + 3]
    c0, c1, c2, c3 = c[p], c[p + 1], c[p + 2], c[p + 3]
    for a in range(g.size):
        g[a] += (s0 * g0[a] + s1 * g1[a]) + (s2 * g2[a] + s3 * g3[a])
        b0, b1, b2, b3 = c0 * g0[a], c1 * g1[a], c2 * g2[a], c3 * g3[a]
        row = A[a]
        for b in range(a + 1):
            row[b] += (b0 * g0[b] + b1 * g1[b]) + (b2 * g2[b] + b3 * g3[b])


@kernel
def _solve(A: Array, g: Array, fixed: Array) -> None:
    """g <- A^{-1} g by Cholesky's method, A given by its lower half and overwritten; fixed components give 0."""
    k = g.size
    largest = A[0, 0] * 0
    for a in range(k):
        largest = max(largest, A[a, a])
    lowest = largest * np.finfo(A.dtype).eps * k
    for a in range(k):
        for b in range(a):
            dot = A[a, b]
            for j in range(b):
                dot -= A[a, j] * A[b, j]
            A[a, b] = dot * A[b, b]
        pivot = A[a, a]
        for j in range(a):
            pivot -= A[a, j] * A[a, j]
        # The diagonal holds the inverse roots: 0 for a component that is fixed or not determined.
        A[a, a] = 1 / np.sqrt(pivot) if pivot > lowest and fixed[a] == 0 else 0
    for a in range(k):
        dot = g[a]
        for j in range(a):
            dot -= A[a, j] * g[j]
        g[a] = dot * A[a, a]
    for a in range(k - 1, -1, -1):
        dot = g[a]
        for j in range(a + 1, k):
            dot -= A[j, a] * g[j]
        g[a] = dot * A[a, a]


@kernel
def conjugate_gradients(
    indptr: Array, indices: Array, c: Array, s: Array, F: Array, G: Array, gram: Array, l2: Array,
    n_steps: int, tol: float, noise: float, out: Array,
) -> float:  # fmt: skip
    """out[u] = F[u] after steps of conjugate gradients towards the solution of A f = b,

        A = gram + sum of c[p] G[i] G[i]^T + l2[u],   b = sum of s[p] G[i]

    and return the sum over rows of f A f / 2 - b f. A row without a pull becomes 0; others stop where a step
    lowers that by less than `tol` times the sum of |s|, and where A is at most `noise` times the Gram matrix along the
    next step.
    """
    # No loop both sums and stores: see `add_penalty`.
    k = F.shape[1]
    room, group = max(1, _COPIED_BYTES // (k * F.itemsize)), max(8, _GROUP_BYTES // (k * F.itemsize))
    longest = np.int64(0)
    for u in range(F.shape[0]):
        if indptr[u + 1] - indptr[u] > longest:
            longest = np.int64(indptr[u + 1] - indptr[u])
    copied = np.empty((min(room, longest), k), F.dtype)
    in_order = np.arange(max(len(copied), k)).astype(indices.dtype)
    x = np.empty(longest, F.dtype)
    residual, direction, image = np.empty(k, F.dtype), np.empty(k, F.dtype), np.empty(k, F.dtype)
    total, first = 0.0, indptr[0]
    for u in range(F.shape[0]):
        start, stop = np.int64(indptr[u] - first), np.int64(indptr[u + 1] - first)
        n = stop - start
        columns, curvature, pull = indices[start:stop], c[start:stop], s[start:stop]
        f, ridge, far, at = out[u], l2[u], G, columns
        weight = 0.0
        for p in range(n):
            weight += abs(pull[p])
        if weight == 0:
            f[:] = 0
            continue
        if n <= room:
            for p in range(n):
                row = G[columns[p]]
                for a in range(k):
                    copied[p, a] = row[a]
            far, at = copied, in_order[:n]
        for a in range(k):
            f[a] = F[u, a]
            direction[a] = -f[a]
            residual[a] = -ridge * f[a]
        add_rows(direction, gram, in_order[:k], residual)
        pulled, limit = 0.0, tol * weight
        for p in range(0, n, group):
            q = min(p + group, n)
            dots(f, far, at[p:q], x[p:q])
            for j in range(p, q):
                pulled += pull[j] * x[j]
            for j in range(p, q):
                x[j] = pull[j] - curvature[j] * x[j]
            add_rows(x[p:q], far, at[p:q], residual)
        for a in range(k):
            direction[a] = residual[a]
        size = _dot(residual, residual)
        total -= 0.5 * (pulled + _dot(f, residual))
        for _ in range(n_steps):
            image[:] = 0
            add_rows(direction, gram, in_order[:k], image)
            least = _dot(direction, image)
            for a in range(k):
                image[a] += ridge * direction[a]
            for p in range(0, n, group):
                q = min(p + group, n)
                dots(direction, far, at[p:q], x[p:q])
                for j in range(p, q):
                    x[j] *= curvature[j]
                add_rows(x[p:q], far, at[p:q], image)
            bend = _dot(direction, image)
            if not (size > 0 and bend > noise * least):  # the solution, to the last digit; or what overflowed
                break
            step = size / bend
            for a in range(k):
                f[a] += step * direction[a]
            for a in range(k):
                residual[a] -= step * image[a]
            shrunk = _dot(residual, residual)
            total -= 0.5 * step * size
            if step * size <= limit:
                break
            for a in range(k):
                direction[a] = residual[a] + shrunk / size * direction[a]
            size = shrunk
    return total


@kernel
def room_for_sums(F: Array, n_shards: int) -> tuple[Array, ...]:
    """What `residual_sums` computes in, for any number of calls."""
    k = F.shape[1]
    group = max(8, _GROUP_BYTES // (k * F.itemsize))
    parts, shards = _empty_tree(n_shards, k + 2)
    return np.empty(group, F.dtype), np.empty(k, F.dtype), parts, shards


@kernel
def residual_sums(
    indptr: Array, indices: Array, ends: Array, c: Array, s: Array, F: Array, G: Array, at: Array,
    room: tuple[Array, ...], out: Array, sizes: Array,
) -> None:  # fmt: skip
    """out[u] = the sum of (s[p] - c[p] x) G[i], and sizes[u] = those of s[p] x and of |s[p]|, with x = <F[u], G[i]>.

    G[i] is found at G[at[p]]. An empty s is one of 0; `sizes` are then not written. Cells are summed apart by shards,
    as in `normal_equations`; `room` is that of `room_for_sums`.
    """
    x, row, parts, shards = room
    k, group = F.shape[1], x.size
    first = indptr[0]
    for u in range(F.shape[0]):
        p, stop = np.int64(indptr[u] - first), np.int64(indptr[u + 1] - first)
        n, shard, f = 0, 0, F[u]
        while p < stop:
            while ends[shard] <= indices[p]:
                shard += 1
            for a in range(k):
                row[a] = 0
            pulled, weight, end = 0.0, 0.0, ends[shard]
            while p < stop and indices[p] < end:
                size = np.int64(group) if p + group < stop else stop - p
                if indices[p + size - 1] >= end:
                    below = np.int64(0)
                    for j in range(size):
                        below += indices[p + j] < end
                    size = below
                part = at[p : p + size]
                dots(f, G, part, x)
                if s.size > 0:
                    for j in range(size):
                        pulled += s[p + j] * x[j]
                    for j in range(size):
                        weight += abs(s[p + j])
                    for j in range(size):
                        x[j] = s[p + j] - c[p + j] * x[j]
                else:
                    for j in range(size):
                        x[j] *= -c[p + j]
                add_rows(x, G, part, row)
                p += size
            n = _new_part(parts, shards, n, shard)
            for a in range(k):
                parts[n - 1, a] = row[a]
            parts[n - 1, k], parts[n - 1, k + 1] = pulled, weight
        _sum_of_parts(parts, n)
        for a in range(k):
            out[u, a] = parts[0, a]
        if s.size > 0:
            sizes[u, 0], sizes[u, 1] = parts[0, k], parts[0, k + 1]


@kernel
def conjugate_gradients_of_shards(
    indptr: Array, indices: Array, ends: Array, c: Array, s: Array, F: Array, G: Array, gram: Array, l2: Array,
    n_steps: int, tol: float, noise: float, out: Array, total: Array,
) -> None:  # fmt: skip
    """As `conjugate_gradients`, for a few rows at a time, by the `residual_sums` of shards; `total` is of each row.

    The bits are those of `start_gradients` and `step_gradients` between passes over all cells, as on a cluster.
    """
    n, k = F.shape
    longest = max(1, _COPIED_BYTES // (k * F.itemsize))
    first, copied, in_order = indptr[0], np.empty((longest, k), F.dtype), np.arange(longest).astype(indices.dtype)
    room = room_for_sums(F, ends.size)
    all_sums, all_sizes = np.empty((_FEW_ROWS, k)), np.empty((_FEW_ROWS, 2))
    both, size, limit = np.empty((2, _FEW_ROWS, k), F.dtype), np.empty(_FEW_ROWS, F.dtype), np.empty(_FEW_ROWS)
    start = 0
    while start < n:
        stop = start + 1
        while stop < min(n, start + _FEW_ROWS) and indptr[stop + 1] - indptr[start] <= longest:
            stop += 1
        cells = slice(np.int64(indptr[start] - first), np.int64(indptr[stop] - first))
        some, of_some, pointers, columns = slice(start, stop), stop - start, indptr[start : stop + 1], indices[cells]
        far, at = G, columns
        if columns.size <= longest:
            for p in range(columns.size):
                i = columns[p]
                for a in range(k):
                    copied[p, a] = G[i, a]
            far, at = copied, in_order[: columns.size]
        sums, sizes, direction, c_of_some = all_sums[:of_some], all_sizes[:of_some], both[1, :of_some], c[cells]
        state = (out[some], both[0, :of_some], direction, size[:of_some], limit[:of_some], total[some])
        where = (pointers, columns, ends, c_of_some)
        residual_sums(*where, s[cells], F[some], far, at, room, sums, sizes)
        start_gradients(sums, sizes, F[some], gram, l2[some], tol, *state)
        for _ in range(n_steps):
            residual_sums(*where, s[:0], direction, far, at, room, sums, sizes)
            if not step_gradients(sums, gram, l2[some], noise, *state):
                break
        start = stop


@kernel
def start_gradients(
    sums: Array, sizes: Array, F: Array, gram: Array, l2: Array, tol: float,
    out: Array, residual: Array, direction: Array, size: Array, limit: Array, total: Array,
) -> None:  # fmt: skip
    """What `conjugate_gradients` does before its steps, given `residual_sums`: into the last six arrays.

    `size` is |residual|^2, or 0 for a row that has come to its end.
    """
    k = F.shape[1]
    rows = np.arange(k)
    for u in range(F.shape[0]):
        f, down = out[u], residual[u]
        if sizes[u, 1] == 0:
            f[:], down[:], direction[u, :] = 0, 0, 0
            size[u], limit[u], total[u] = 0, 0, 0
            continue
        f[:] = F[u]
        for a in range(k):
            direction[u, a] = -f[a]
        for a in range(k):
            down[a] = sums[u, a]
        for a in range(k):
            down[a] -= l2[u] * f[a]
        add_rows(direction[u], gram, rows, down)
        size[u] = _dot(down, down)
        limit[u] = tol * sizes[u, 1]
        total[u] = -0.5 * (sizes[u, 0] + _dot(f, down))
        direction[u, :] = down


@kernel
def step_gradients(
    sums: Array, gram: Array, l2: Array, noise: float,
    out: Array, residual: Array, direction: Array, size: Array, limit: Array, total: Array,
) -> bool:  # fmt: skip
    """One step of `conjugate_gradients`, given `residual_sums` of `direction`; whether any row goes on."""
    k, goes_on = out.shape[1], False
    rows, image = np.arange(k), np.empty(k, out.dtype)
    for u in range(out.shape[0]):
        if not size[u] > 0:
            continue
        f, down, along = out[u], residual[u], direction[u]
        image[:] = 0
        add_rows(along, gram, rows, image)
        least = _dot(along, image)
        for a in range(k):
            image[a] += l2[u] * along[a] - out.dtype.type(sums[u, a])
        bend = _dot(along, image)
        if not bend > noise * least:
            size[u] = 0
            continue
        step = size[u] / bend
        for a in range(k):
            f[a] += step * along[a]
        for a in range(k):
            down[a] -= step * image[a]
        shrunk, gain = _dot(down, down), step * size[u]
        total[u] -= 0.5 * gain
        turn = shrunk / size[u]
        for a in range(k):
            along[a] = down[a] + turn * along[a]
        size[u] = shrunk if gain > limit[u] else 0
        goes_on |= size[u] > 0
    return goes_on


@kernel
def _dot(f: Array, g: Array) -> Any:
    dot = f.dtype.type(0)
    for a in range(f.size):
        dot += f[a] * g[a]
    return dot


@kernel
def adagrad_step(
    rows: Array, columns: Array, s: Array, rate: float,
    W: Array, count_of_row: Array, sum_of_row: Array, l2: Array, centre: Array, fixed: Array,
    H: Array, count_of_column: Array, sum_of_column: Array, far_l2: Array, far_centre: Array, far_fixed: Array,
) -> None:  # fmt: skip
    """One AdaGrad step per cell, in order, of its row of W and its row of H:

        f <- f - rate * g / sqrt(sum),   sum <- sum + mean of g^2   (one number for each row)

    with g the gradient of the cell's cost and of its share of the penalty. `count_of_row` and `count_of_column` are the
    numbers of cells among which a row's penalty is divided.
    """
    k = W.shape[1]
    down_w, down_h = np.empty(k, W.dtype), np.empty(k, W.dtype)
    for p in range(rows.size):
        u, i = rows[p], columns[p]
        w, h = W[u], H[i]
        share_w, share_h = 1 / count_of_row[u], 1 / count_of_column[i]
        of_w, of_h = W.dtype.type(0), W.dtype.type(0)
        for a in range(k):
            down_w[a] = (s[p] * h[a] + share_w * l2[a] * (w[a] - centre[a])) * (1 - fixed[a])
            down_h[a] = (s[p] * w[a] + share_h * far_l2[a] * (h[a] - far_centre[a])) * (1 - far_fixed[a])
            of_w += down_w[a] * down_w[a]
            of_h += down_h[a] * down_h[a]
        sum_of_row[u] += of_w / k
        sum_of_column[i] += of_h / k
        step_w = rate / np.sqrt(sum_of_row[u]) if sum_of_row[u] > 0 else 0.0
        step_h = rate / np.sqrt(sum_of_column[i]) if sum_of_column[i] > 0 else 0.0
        for a in range(k):
            w[a] -= step_w * down_w[a]
            h[a] -= step_h * down_h[a]


#: Losses of `gradients`.
LINEAR, MULTI_SIGMOID, ROUND = range(3)


@kernel
def gradients(
    rows: Array, columns: Array, y: Array, weights: Array, loss: int, tau: Array, margin: float, ends: float,
    smoothing: float,
    W: Array, count_of_row: Array, l2: Array, centre: Array, fixed: Array,
    H: Array, count_of_column: Array, far_l2: Array, far_centre: Array, far_fixed: Array,
    of_W: Array, of_H: Array, of_tau: Array,
) -> float:  # fmt: skip
    """Return the summed cost with the penalty l2 / 2 |f - centre|^2 of both rows of each cell, and write its gradient.

    `tau` holds the thresholds; for `LINEAR` the offset. The outer ends of intervals move with no threshold.
    """
    k, n = W.shape[1], tau.size
    total = 0.0
    of_W[:], of_H[:], of_tau[:] = 0.0, 0.0, 0.0
    steps = np.empty(n)
    for p in range(rows.size):
        u, i = rows[p], columns[p]
        weight = weights[p] if weights.size else 1.0
        x = 0.0
        for a in range(k):
            x += W[u, a] * H[i, a]
        slope = 0.0
        if loss == LINEAR:
            error = x + tau[0] - y[p]
            slope = 2.0 * error
            total += weight * error * error
            of_tau[0] += weight * slope
        elif loss == MULTI_SIGMOID:
            height = 0.0
            for d in range(n):
                steps[d] = 1.0 / (1.0 + np.exp(tau[d] - x))
                height += steps[d]
            error = height - y[p]
            total += weight * error * error
            for d in range(n):
                steep = 2.0 * error * steps[d] * (1.0 - steps[d])
                slope += steep
                of_tau[d] -= weight * steep
        else:
            level = int(y[p])
            below = (tau[level - 1] if level > 0 else tau[0] - ends) + margin - x
            above = x + margin - (tau[level] if level < n else tau[n - 1] + ends)
            if below > 0:
                pull = min(below / smoothing, 1.0)
                slope -= pull
                total += weight * (below - 0.5 * smoothing if pull == 1.0 else 0.5 * below * pull)
                if level > 0:
                    of_tau[level - 1] += weight * pull
            if above > 0:
                push = min(above / smoothing, 1.0)
                slope += push
                total += weight * (above - 0.5 * smoothing if push == 1.0 else 0.5 * above * push)
                if level < n:
                    of_tau[level] -= weight * push
        slope *= weight
        for a in range(k):
            of_W[u, a] += slope * H[i, a]
            of_H[i, a] += slope * W[u, a]
    total += add_penalty(W, count_of_row, l2, centre, fixed, of_W)
    return total + add_penalty(H, count_of_column, far_l2, far_centre, far_fixed, of_H)


@kernel
def add_penalty(F: Array, count: Array, l2: Array, centre: Array, fixed: Array, gradient: Array) -> float:
    """Return count l2 / 2 |f - centre|^2 summed over rows; add its gradient, which is 0 for fixed components."""
    # Two loops: one that both sums and stores did not always add in the same order, by where its arrays lay.
    total = 0.0
    for u in range(F.shape[0]):
        for a in range(F.shape[1]):
            away = F[u, a] - centre[a]
            total += 0.5 * count[u] * l2[a] * away * away
    for u in range(F.shape[0]):
        for a in range(F.shape[1]):
            away = F[u, a] - centre[a]
            gradient[u, a] = (gradient[u, a] + count[u] * l2[a] * away) * (1 - fixed[a])
    return total
