"""Draws of a factorization with normal noise: latent values, rows of a factor, weights of features, thresholds.

Every loop walks the rows from `start` to `stop` of whole arrays, each row with a stream of its own (`apart` 1): the
same draws for any number of threads. With `apart` 0 all rows have the same stream: then a row's draws depend on its own
cells alone, not on which row it is.
"""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from halfseen.kernels import inlined, kernel
from halfseen.kernels.random_streams import STRIDE, mix_bits, normal, start_stream, uniform
from halfseen.kernels.special import log, normal_quantile, normal_tail, share_of_bits

Array = npt.NDArray[Any]

#: Cells of a row that are gathered at a time.
_CELLS_AT_A_TIME = 120
#: Standard normal numbers beyond this, and probabilities below these, are left to slower formulas.
_FAR, _LEAST_SHARE, _LEAST_PROBABILITY = 37.0, 1e-11, 1e-280
#: The standard normal number beyond which there is the least share.
_LEAST_END = 6.706023155495137
_LOG_2_PI = np.log(2 * np.pi)


# Normal distributions of one variable.


@kernel
def truncated_normal(a: float, b: float, stream: Array) -> Any:
    """Standard normal number between a and b, by rejection (Robert 1995).

    From a uniform distribution where the interval is short, else from a normal one around 0, or an exponential one in
    the tail. Of an interval that is empty, or not a number, its lower end; of one beyond 1e8, the end next to 0, from
    which a draw could not be told apart.
    """
    if not a < b:
        return a
    sign = 1.0
    if b < 0.0:
        a, b, sign = -b, -a, -1.0
    if a > 1e8:
        return sign * a
    if a <= 0.0:
        if b - a > 2.5:
            while True:
                z = normal(stream)
                if a <= z <= b:
                    return sign * z
        while True:
            z = a + (b - a) * uniform(stream)
            if uniform(stream) < math.exp(-0.5 * z * z):
                return sign * z
    root = math.sqrt(a * a + 4.0)
    if (b - a) * (a + root) < 3.2974425414002564 * math.exp(0.25 * a * (a - root)):  # 2 sqrt(e)
        while True:
            z = a + (b - a) * uniform(stream)
            if uniform(stream) < math.exp(0.5 * (a * a - z * z)):
                return sign * z
    rate = 0.5 * (a + root)
    while True:
        z = a - math.log(1.0 - uniform(stream)) / rate
        if z <= b and uniform(stream) < math.exp(-0.5 * (z - rate) ** 2):
            return sign * z


@kernel
def log_tail(a: float) -> Any:
    """log of the probability that a standard normal number is above a >= 0."""
    if a < 25.0:
        return math.log(0.5 * math.erfc(a * 0.7071067811865476))
    s = 1.0 / (a * a)
    return -0.5 * (a * a + _LOG_2_PI) - math.log(a) + math.log1p(-s * (1.0 - s * (3.0 - s * (15.0 - 105.0 * s))))


@kernel
def log_interval(a: float, b: float) -> Any:
    """log of the probability that a standard normal number is between a and b, of any size."""
    if b < 0.0:
        a, b = -b, -a
    if a <= 0.0:
        inside = 1.0 - 0.5 * (math.erfc(-a * 0.7071067811865476) + math.erfc(b * 0.7071067811865476))
        return math.log(inside) if inside > 0.0 else -np.inf
    near = log_tail(a)
    if b == np.inf:
        return near
    ratio = math.exp(log_tail(b) - near)
    return near + math.log1p(-ratio) if ratio < 1.0 else -np.inf


# Passes over the cells.


@kernel
def products(
    start: int, stop: int, indptr: Array, indices: Array, W: Array, far: Array, offset: Array, x: Array
) -> None:
    """x = <W_u, far_i> + offset_i at every cell."""
    k = W.shape[1]
    for u in range(start, stop):
        for p in range(indptr[u], indptr[u + 1]):
            i = indices[p]
            dot = offset[i]
            for a in range(k):
                dot += W[u, a] * far[i, a]
            x[p] = dot


@inlined
def tails(a: float, b: float) -> Any:
    """P(Z < a) and P(Z < b) of a standard normal number or, if 0 < a < b, P(Z > b) and P(Z > a)."""
    low, high = (-b, -a) if a > 0.0 else (a, b)
    tail = normal_tail(min(abs(high), _FAR))
    return normal_tail(min(abs(low), _FAR)), tail if high <= 0.0 else 1.0 - tail


@kernel
def draw_latent(
    start: int, stop: int, indptr: Array, indices: Array, codes: Array, x: Array, bounds: Array, owners: int,
    row_roots: Array, column_roots: Array, seed: int, apart: int, latent: Array, logs: Array,
) -> None:  # fmt: skip
    """Latent value of every cell, N(x, 1 / (row_root * column_root)^2) between the two bounds of its level.

    By the inverse of the distribution function or, if that falls deep into a tail, where it has few digits, by
    rejection within the tail. `bounds`
    has a row for all cells or, if `owners` is 1 or 2, for each row or each column. `logs` gets the log-likelihood of
    the levels of each row.
    """
    stream = np.empty(1, np.uint64)
    low, high, below, inside, draw, root, log_inside = np.empty((7, _CELLS_AT_A_TIME))
    for u in range(start, stop):
        start_stream(seed, u * apart, stream)
        counter, logs[u] = stream[0], 0.0
        stream[0] += (
            np.uint64(indptr[u + 1] - indptr[u]) * STRIDE
        )  # a number for each cell; beyond are those of rejection
        for first in range(indptr[u], indptr[u + 1], _CELLS_AT_A_TIME):
            size = min(_CELLS_AT_A_TIME, indptr[u + 1] - first)
            for c in range(size):
                p = first + c
                owner = 0 if owners == 0 else (u if owners == 1 else indices[p])
                root[c] = row_roots[u] * column_roots[indices[p]]
                low[c], high[c] = (
                    (bounds[owner, codes[p]] - x[p]) * root[c],
                    (bounds[owner, codes[p] + 1] - x[p]) * root[c],
                )
            for c in range(size):
                start_share, end_share = tails(low[c], high[c])
                inside[c] = end_share - start_share
                chance = share_of_bits(mix_bits(counter + np.uint64(c + 1) * STRIDE))
                below[c] = start_share + chance * inside[c]
            counter += np.uint64(size) * STRIDE
            for c in range(size):
                z = normal_quantile(below[c])
                draw[c] = min(max(-z if low[c] > 0.0 else z, low[c]), high[c])
                log_inside[c] = log(max(inside[c], _LEAST_PROBABILITY))
            for c in range(size):
                if not _LEAST_SHARE < below[c] < 1.0 - _LEAST_SHARE:  # what is left to draw is where in that tail
                    if low[c] > 0.0 or not below[c] < 0.5:
                        draw[c] = truncated_normal(max(low[c], min(_LEAST_END, high[c])), high[c], stream)
                    else:
                        draw[c] = truncated_normal(low[c], min(high[c], max(-_LEAST_END, low[c])), stream)
                if not inside[c] > _LEAST_PROBABILITY:
                    log_inside[c] = log_interval(low[c], high[c])
                latent[first + c] = x[first + c] + draw[c] / root[c]
                logs[u] += log_inside[c]


@kernel
def squares(
    start: int, stop: int, indptr: Array, indices: Array, order: Array, x: Array, latent: Array, far_roots: Array,
    out: Array,
) -> None:  # fmt: skip
    """Sum over the cells of each row of (root_i (latent - x))^2."""
    for u in range(start, stop):
        total = 0.0
        for p in range(indptr[u], indptr[u + 1]):
            total += (far_roots[indices[p]] * (latent[order[p]] - x[order[p]])) ** 2
        out[u] = total


@kernel
def draw_rows(
    start: int, stop: int, indptr: Array, indices: Array, order: Array, latent: Array, far: Array, offset: Array,
    near_noise: Array, far_roots: Array, linear: Array, mean: Array, precision: Array, seed: int, apart: int,
    own: Array, factor: Array, grams: Array, pulls: Array,
) -> None:  # fmt: skip
    """own_u ~ N(A^{-1} r, A^{-1}),   A = diag(precision) + G_u,   r = precision * mean + q_u - G_u linear_u,

        G_u = noise_u * sum of far_i far_i^T,    q_u = noise_u * sum of far_i root_i (latent - offset_i)

    over the cells of row u, whose factor is own_u + linear_u. `far` comes multiplied by the roots of the precisions of
    the noise on its side. `order` has the positions of the cells in `latent`. If `grams` has rows, G_u and
    q_u - G_u factor_u are kept there and in `pulls`.
    """
    k = far.shape[1]
    stream = np.empty(1, np.uint64)
    A, r = np.empty((k, k)), np.empty(k)
    # row k holds what the cells ask for, further ones nothing: two rows are multiplied by four at a time
    height = (k + 4) // 4 * 4
    gathered, products = np.zeros((height, _CELLS_AT_A_TIME)), np.empty((height, height))
    for u in range(start, stop):
        products[:] = 0.0
        for first in range(indptr[u], indptr[u + 1], _CELLS_AT_A_TIME):
            size = min(_CELLS_AT_A_TIME, indptr[u + 1] - first)
            for c in range(size):
                i = indices[first + c]
                gathered[k, c] = (latent[order[first + c]] - offset[i]) * far_roots[i]
                for a in range(k):
                    gathered[a, c] = far[i, a]
            add_products(gathered, size, products)
        for a in range(k):
            products[k, a] *= near_noise[u]
            for b in range(a + 1):
                products[a, b] *= near_noise[u]
                products[b, a] = products[a, b]
        G, q = products[:k, :k], products[k]
        for a in range(k):
            dot = precision[a] * mean[a] + q[a]
            for b in range(k):
                dot -= G[a, b] * linear[u, b]
                A[a, b] = G[a, b]
            r[a] = dot
            A[a, a] += precision[a]
        start_stream(seed, u * apart, stream)
        counter = stream[0]
        for a in range(k):
            own[u, a] = share_of_bits(mix_bits(counter + np.uint64(a + 1) * STRIDE))
        for a in range(k):
            own[u, a] = normal_quantile(own[u, a])
        draw_normal(A, r, u, own)
        for a in range(k):
            factor[u, a] = own[u, a] + linear[u, a]
        if grams.shape[1]:
            for a in range(k):
                dot = q[a]
                for b in range(k):
                    dot -= G[a, b] * factor[u, b]
                    grams[a, u, b] = G[a, b]
                pulls[u, a] = dot


@kernel
def add_products(rows: Array, size: int, products: Array) -> None:
    """products[a, b] += <rows[a, :size], rows[b, :size]> for b <= a, and some beyond."""
    for a in range(0, len(rows), 2):
        for b in range(0, a + 1, 4):
            s0, s1, s2, s3, t0, t1, t2, t3 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
            for c in range(size):
                f, g = rows[a, c], rows[a + 1, c]
                h0, h1, h2, h3 = rows[b, c], rows[b + 1, c], rows[b + 2, c], rows[b + 3, c]
                s0, s1, s2, s3 = s0 + f * h0, s1 + f * h1, s2 + f * h2, s3 + f * h3
                t0, t1, t2, t3 = t0 + g * h0, t1 + g * h1, t2 + g * h2, t3 + g * h3
            products[a, b] += s0
            products[a, b + 1] += s1
            products[a, b + 2] += s2
            products[a, b + 3] += s3
            products[a + 1, b] += t0
            products[a + 1, b + 1] += t1
            products[a + 1, b + 2] += t2
            products[a + 1, b + 3] += t3


@kernel
def draw_normal(A: Array, r: Array, u: int, out: Array) -> None:
    """With A = C C^T, by Cholesky's method: C^T out[u] = C^{-1} r + out[u]. Overwrites r and the upper half of A.

    The upper half becomes C^T, row by row, each subtracted from the rows below it: loops without sums, which vectorise.
    """
    k = r.size
    for a in range(k):
        scale = 1.0 / math.sqrt(A[a, a])
        for b in range(a, k):
            A[a, b] *= scale
        r[a] *= scale
        for j in range(a + 1, k):
            factor = A[a, j]
            r[j] -= factor * r[a]
            for b in range(j, k):
                A[j, b] -= factor * A[a, b]
    for a in range(k - 1, -1, -1):
        dot = r[a] + out[u, a]
        for j in range(a + 1, k):
            dot -= A[a, j] * out[u, j]
        out[u, a] = dot / A[a, a]


# What draws predict.


@kernel
def level_probabilities(
    start: int, stop: int, rows: Array, columns: Array, W: Array, H: Array, biases: bool, row_noise: Array,
    column_noise: Array, thresholds: Array, owners: int, out: Array,
) -> None:  # fmt: skip
    """Mean over the draws of the probability of every level, at pairs of rows and columns.

    W, H and the noise have draws along their second axis, and `thresholds` a row of all (`owners` 0), of rows (1) or of
    columns (2).
    """
    n_draws, size = W.shape[1], W.shape[2]
    n = thresholds.shape[2]
    k = size - 1 if biases else size
    x, root, t, before, after = np.empty((5, n_draws))
    for p in range(start, stop):
        u, i = rows[p], columns[p]
        owner = 0 if owners == 0 else (u if owners == 1 else i)
        for d in range(n_draws):
            x[d] = np.float64(W[u, d, k]) + H[i, d, k] if biases else 0.0
            for a in range(k):
                x[d] += np.float64(W[u, d, a]) * H[i, d, a]
            root[d] = math.sqrt(np.float64(row_noise[u, d]) * column_noise[i, d])
        # tails on the near side of each threshold, those above it as negative numbers: differences of shares near 1
        # would lose digits
        before[:] = 0.0
        for y in range(n + 1):
            total = 0.0
            for d in range(n_draws):
                t[d] = (thresholds[owner, d, y] - x[d]) * root[d] if y < n else np.inf
            for d in range(n_draws):
                tail = normal_tail(min(abs(t[d]), _FAR))
                after[d] = tail if t[d] <= 0.0 else -tail
                both_on_one_side = (before[d] >= 0.0) == (after[d] >= 0.0)
                total += after[d] - before[d] if both_on_one_side else 1.0 + after[d] - before[d]
            out[p, y] = total / n_draws
            before, after = after, before


# Features: linear maps into a factor.


@kernel
def draw_weights(
    indptr: Array, rows: Array, values: Array, scales: Array, grams: Array, pulls: Array, mean: Array, precision: Array,
    seed: int, weights: Array, linear: Array, factor: Array,
) -> None:  # fmt: skip
    """Weights of features, coordinate by coordinate: for each coordinate k and each feature j in turn

        weights_jk ~ N(r / a, 1 / a),   a = precision_k + sum of v^2 G_u,kk,
        r = precision_k mean_k + sum of v (pulls_uk + v G_u,kk weights_jk)

    over the rows u that have the feature, with value v: the scale of the row times one of `values`, which are all 1 if
    there are none. G_u and pulls_u (what row u's cells ask of its factor, as `draw_rows` leaves them) are all that the
    cells say: there is no pass over them. Features are in column order.
    """
    n, k = pulls.shape
    row = np.empty((n, 3))  # G_u,kk, pulls_uk, and the change of factor_uk, for rows of scale 1
    stream = np.empty(1, np.uint64)
    for a in range(weights.shape[1]):
        for u in range(n):
            row[u, 0], row[u, 1], row[u, 2] = scales[u] * scales[u] * grams[a, u, a], scales[u] * pulls[u, a], 0.0
        start_stream(seed, a, stream)
        for j in range(indptr.size - 1):
            total, pull = 0.0, 0.0
            for p in range(indptr[j], indptr[j + 1]):
                u = rows[p]
                v = values[p] if values.size else 1.0
                total += v * v * row[u, 0]
                pull += v * (row[u, 1] - row[u, 0] * row[u, 2])
            old, total_precision = weights[j, a], precision[a] + total
            new = (precision[a] * mean[a] + pull + total * old) / total_precision
            new += normal_quantile(uniform(stream)) / math.sqrt(total_precision)
            weights[j, a] = new
            for p in range(indptr[j], indptr[j + 1]):
                row[rows[p], 2] += (values[p] if values.size else 1.0) * (new - old)
        for u in range(n):
            change = scales[u] * row[u, 2]
            linear[u, a] += change
            factor[u, a] += change
            for b in range(k):
                pulls[u, b] -= grams[a, u, b] * change


@kernel
def move_weights(
    indptr: Array, rows: Array, values: Array, own_mean: Array, own_precision: Array, mean: Array, precision: Array,
    seed: int, a: int, weights: Array, own: Array, linear: Array,
) -> None:  # fmt: skip
    """Weights of features in coordinate a given the factor, to which own vectors give what features take: in turn

        weights_ja ~ N(r / d, 1 / d),   d = precision_a + own_precision_a sum of v^2,
        r = precision_a mean_a + own_precision_a sum of v (own_ua - own_mean_a + v weights_ja)

    for each feature j, over the rows u that have it. `draw_weights` keeps own vectors instead, and then cells that tell
    much of the factor hold the weights where they are (Yu and Meng 2011, on alternating the two).
    """
    n = len(own)
    rest = own[:, a] - own_mean[a]
    stream = np.empty(1, np.uint64)
    start_stream(seed, a, stream)
    for j in range(indptr.size - 1):
        total, asked, old = 0.0, 0.0, weights[j, a]
        for p in range(indptr[j], indptr[j + 1]):
            total += values[p] * values[p]
            asked += values[p] * rest[rows[p]]
        d = precision[a] + own_precision[a] * total
        new = (precision[a] * mean[a] + own_precision[a] * (asked + total * old)) / d + normal(stream) / math.sqrt(d)
        weights[j, a] = new
        for p in range(indptr[j], indptr[j + 1]):
            rest[rows[p]] -= values[p] * (new - old)
    for u in range(n):
        change = own[u, a] - own_mean[a] - rest[u]
        own[u, a] -= change
        linear[u, a] += change


# Thresholds, by Metropolis' algorithm with the latent values integrated out.


@kernel
def log_ratio(a: float, b: float, new: float) -> Any:
    """log of the probability of (a, new) less that of (a, b)."""
    if a > 0.0:
        tail = math.erfc(a * 0.7071067811865476)
        before, after = tail - math.erfc(b * 0.7071067811865476), tail - math.erfc(new * 0.7071067811865476)
    else:
        tail = math.erfc(-a * 0.7071067811865476)
        before, after = math.erfc(-b * 0.7071067811865476) - tail, math.erfc(-new * 0.7071067811865476) - tail
    if before > 1e-280 and after > 1e-280:
        return math.log(after / before)
    return log_interval(a, new) - log_interval(a, b)


@kernel
def threshold_gains(
    start: int, stop: int, indptr: Array, indices: Array, codes: Array, x: Array, row_roots: Array,
    column_roots: Array, bounds: Array, proposed: Array, out: Array,
) -> None:  # fmt: skip
    """Log-likelihood gained by the cells of each row if thresholds move from `bounds` to `proposed`.

    Of two neighbouring thresholds at most one moves: `out[u, d]` is what the cells beside threshold d gain.
    """
    before, after, log_before, log_after = np.empty((4, _CELLS_AT_A_TIME))
    ends = np.empty((4, _CELLS_AT_A_TIME))
    n = proposed.size - 2
    moves = np.empty(n + 1, np.int64)  # which threshold beside a level does; none: n
    for y in range(n + 1):
        moves[y] = y if proposed[y + 1] != bounds[0, y + 1] else (y - 1 if proposed[y] != bounds[0, y] else n)
    gains = np.empty(n + 1)
    for u in range(start, stop):
        gains[:] = 0.0
        for first in range(indptr[u], indptr[u + 1], _CELLS_AT_A_TIME):
            size = min(_CELLS_AT_A_TIME, indptr[u + 1] - first)
            for c in range(size):
                p = first + c
                root, y = row_roots[u] * column_roots[indices[p]], codes[p]
                ends[0, c], ends[1, c] = (bounds[0, y] - x[p]) * root, (bounds[0, y + 1] - x[p]) * root
                ends[2, c], ends[3, c] = (proposed[y] - x[p]) * root, (proposed[y + 1] - x[p]) * root
            for c in range(size):
                a, b = tails(ends[0, c], ends[1, c])
                before[c] = b - a
                a, b = tails(ends[2, c], ends[3, c])
                after[c] = b - a
            for c in range(size):
                log_before[c] = log(max(before[c], _LEAST_PROBABILITY))
                log_after[c] = log(max(after[c], _LEAST_PROBABILITY))
            for c in range(size):
                if not min(before[c], after[c]) > _LEAST_PROBABILITY:
                    log_before[c] = log_interval(ends[0, c], ends[1, c])
                    log_after[c] = log_interval(ends[2, c], ends[3, c])
                gains[moves[codes[first + c]]] += log_after[c] - log_before[c]
        out[u] = gains[:n]


@kernel
def log_prior(bounds: Array, owner: int, mean: Array, precision: Array) -> Any:
    """Log-density of the thresholds, up to a constant: the first one and the logarithms of the gaps are normal."""
    n = bounds.shape[1] - 2
    total = -0.5 * precision[0] * (bounds[owner, 1] - mean[0]) ** 2
    for d in range(1, n):
        gap = math.log(bounds[owner, d + 1] - bounds[owner, d])
        total -= 0.5 * precision[d] * (gap - mean[d]) ** 2 + gap
    return total


@kernel
def move_own_thresholds(
    start: int, stop: int, indptr: Array, indices: Array, order: Array, codes: Array, x: Array, far_roots: Array,
    rounds: int, mean: Array, precision: Array, scales: Array, seed: int, bounds: Array, accepted: Array,
) -> None:  # fmt: skip
    """Random walks of the thresholds of each owner (row or column) in turn; `accepted` counts successes.

    Those of an owner without a cell are drawn from the prior.
    """
    n = bounds.shape[1] - 2
    stream = np.empty(1, np.uint64)
    for owner in range(start, stop):
        start_stream(seed, owner, stream)
        first, last = indptr[owner], indptr[owner + 1]
        if first == last:
            bounds[owner, 1] = mean[0] + normal(stream) / math.sqrt(precision[0])
            for d in range(1, n):
                gap = math.exp(mean[d] + normal(stream) / math.sqrt(precision[d]))
                bounds[owner, d + 1] = bounds[owner, d] + gap
            continue
        for _ in range(rounds):
            for d in range(1, n + 1):
                old = bounds[owner, d]
                new = old + scales[d - 1] * normal(stream)
                chance = uniform(stream)
                if not bounds[owner, d - 1] < new < bounds[owner, d + 1]:
                    continue
                gain = -log_prior(bounds, owner, mean, precision)
                bounds[owner, d] = new
                gain += log_prior(bounds, owner, mean, precision)
                for p in range(first, last):
                    y, at, root = codes[order[p]], x[order[p]], far_roots[indices[p]]
                    if y == d - 1:
                        gain += log_ratio((bounds[owner, y] - at) * root, (old - at) * root, (new - at) * root)
                    elif y == d:
                        gain += log_ratio((at - bounds[owner, y + 1]) * root, (at - old) * root, (at - new) * root)
                if math.log(chance) < gain:
                    accepted[owner, d - 1] += 1
                else:
                    bounds[owner, d] = old
