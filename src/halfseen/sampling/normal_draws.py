"""Draws of a factorization with normal noise: latent values, rows of a factor, weights of features, thresholds.

Every loop walks the rows from `start` to `stop` of whole arrays, each row with a stream of its own (`apart` 1): the
same draws for any number of threads. With `apart` 0 all rows have the same stream: then a row's draws depend on its own
cells alone, not on which row it is.
"""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from halfseen.kernels import kernel
from halfseen.kernels.random_streams import normal, start_stream, uniform

Array = npt.NDArray[Any]

#: Cells of a row that are gathered at a time.
_CELLS_AT_A_TIME = 120
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
def interval(a: float, b: float) -> Any:
    """Probability that a standard normal number is between a and b; 0 beyond all numbers."""
    if a > 0.0:
        return 0.5 * (math.erfc(a * 0.7071067811865476) - math.erfc(b * 0.7071067811865476))
    return 0.5 * (math.erfc(-b * 0.7071067811865476) - math.erfc(-a * 0.7071067811865476))


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


@kernel
def draw_latent(
    start: int, stop: int, indptr: Array, indices: Array, codes: Array, x: Array, bounds: Array, owners: int,
    row_roots: Array, column_roots: Array, seed: int, apart: int, latent: Array,
) -> None:  # fmt: skip
    """Latent value of every cell, N(x, 1 / (row_root * column_root)^2) between the two bounds of its level.

    `bounds` has a row for all cells or, if `owners` is 1 or 2, for each row or each column.
    """
    stream = np.empty(1, np.uint64)
    for u in range(start, stop):
        start_stream(seed, u * apart, stream)
        for p in range(indptr[u], indptr[u + 1]):
            owner = 0 if owners == 0 else (u if owners == 1 else indices[p])
            root = row_roots[u] * column_roots[indices[p]]
            low, high = (bounds[owner, codes[p]] - x[p]) * root, (bounds[owner, codes[p] + 1] - x[p]) * root
            latent[p] = x[p] + truncated_normal(low, high, stream) / root


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
    A, r, G, q = np.empty((k, k)), np.empty(k), np.empty((k, k)), np.empty(k)
    gathered, target = np.empty((k, _CELLS_AT_A_TIME)), np.empty(_CELLS_AT_A_TIME)
    for u in range(start, stop):
        G[:] = 0.0
        q[:] = 0.0
        for first in range(indptr[u], indptr[u + 1], _CELLS_AT_A_TIME):
            size = min(_CELLS_AT_A_TIME, indptr[u + 1] - first)
            for c in range(size):
                i = indices[first + c]
                target[c] = (latent[order[first + c]] - offset[i]) * far_roots[i]
                for a in range(k):
                    gathered[a, c] = far[i, a]
            for a in range(k):
                dot = 0.0
                for c in range(size):
                    dot += gathered[a, c] * target[c]
                q[a] += dot
                for b in range(a + 1):
                    dot = 0.0
                    for c in range(size):
                        dot += gathered[a, c] * gathered[b, c]
                    G[a, b] += dot
        for a in range(k):
            q[a] *= near_noise[u]
            for b in range(a + 1):
                G[a, b] *= near_noise[u]
                G[b, a] = G[a, b]
        for a in range(k):
            dot = precision[a] * mean[a] + q[a]
            for b in range(k):
                dot -= G[a, b] * linear[u, b]
                A[a, b] = G[a, b]
            r[a] = dot
            A[a, a] += precision[a]
        start_stream(seed, u * apart, stream)
        for a in range(k):
            own[u, a] = normal(stream)
        draw_normal(A, r, u, own)
        for a in range(k):
            factor[u, a] = own[u, a] + linear[u, a]
        if grams.shape[0]:
            for a in range(k):
                dot = q[a]
                for b in range(k):
                    dot -= G[a, b] * factor[u, b]
                    grams[u, a, b] = G[a, b]
                pulls[u, a] = dot


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
    for p in range(start, stop):
        u, i = rows[p], columns[p]
        owner = 0 if owners == 0 else (u if owners == 1 else i)
        for y in range(n + 1):
            out[p, y] = 0.0
        for d in range(n_draws):
            x = np.float64(W[u, d, k]) + H[i, d, k] if biases else 0.0
            for a in range(k):
                x += np.float64(W[u, d, a]) * H[i, d, a]
            root = math.sqrt(np.float64(row_noise[u, d]) * column_noise[i, d]) * 0.7071067811865476
            # the smaller of the two tails beside each threshold: differences of large ones would lose digits
            below, last_is_low = 0.0, True
            for y in range(n + 1):
                if y < n:
                    t = (thresholds[owner, d, y] - x) * root
                    tail, is_low = 0.5 * math.erfc(abs(t)), t <= 0.0
                else:
                    tail, is_low = 0.0, False
                if is_low:
                    out[p, y] += tail - below
                elif last_is_low:
                    out[p, y] += 1.0 - tail - below
                else:
                    out[p, y] += below - tail
                below, last_is_low = tail, is_low
        for y in range(n + 1):
            out[p, y] /= n_draws


@kernel
def log_likelihoods(
    start: int, stop: int, indptr: Array, indices: Array, codes: Array, x: Array, bounds: Array, owners: int,
    row_roots: Array, column_roots: Array, out: Array,
) -> None:  # fmt: skip
    """Log-likelihood of the levels of each row."""
    for u in range(start, stop):
        out[u] = 0.0
        for p in range(indptr[u], indptr[u + 1]):
            owner = 0 if owners == 0 else (u if owners == 1 else indices[p])
            root = row_roots[u] * column_roots[indices[p]]
            a, b = (bounds[owner, codes[p]] - x[p]) * root, (bounds[owner, codes[p] + 1] - x[p]) * root
            probability = interval(a, b)
            out[u] += math.log(probability) if probability > 1e-280 else log_interval(a, b)


# Features: linear maps into a factor.


@kernel
def draw_weights(
    indptr: Array, rows: Array, values: Array, grams: Array, pulls: Array, mean: Array, precision: Array, seed: int,
    weights: Array, linear: Array, factor: Array,
) -> None:  # fmt: skip
    """Weights of features, coordinate by coordinate: for each coordinate k and each feature j in turn

        weights_jk ~ N(r / a, 1 / a),   a = precision_k + sum of v^2 G_u,kk,
        r = precision_k mean_k + sum of v (pulls_uk + v G_u,kk weights_jk)

    over the rows u that have the feature, with value v. G_u and pulls_u (what row u's cells ask of its factor, as
    `draw_rows` leaves them) are all that the cells say: there is no pass over them. Features are in column order.
    """
    n, k = pulls.shape
    row = np.empty((n, 3))  # G_u,kk, pulls_uk, and the change of factor_uk
    stream = np.empty(1, np.uint64)
    for a in range(weights.shape[1]):
        for u in range(n):
            row[u, 0], row[u, 1], row[u, 2] = grams[u, a, a], pulls[u, a], 0.0
        start_stream(seed, a, stream)
        for j in range(indptr.size - 1):
            total, pull = 0.0, 0.0
            for p in range(indptr[j], indptr[j + 1]):
                u, v = rows[p], values[p]
                total += v * v * row[u, 0]
                pull += v * (row[u, 1] - row[u, 0] * row[u, 2])
            old, total_precision = weights[j, a], precision[a] + total
            new = (precision[a] * mean[a] + pull + total * old) / total_precision
            new += normal(stream) / math.sqrt(total_precision)
            weights[j, a] = new
            for p in range(indptr[j], indptr[j + 1]):
                row[rows[p], 2] += values[p] * (new - old)
        for u in range(n):
            change = row[u, 2]
            linear[u, a] += change
            factor[u, a] += change
            for b in range(k):
                pulls[u, b] -= grams[u, b, a] * change


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
    for u in range(start, stop):
        out[u] = 0.0
        for p in range(indptr[u], indptr[u + 1]):
            y = codes[p]
            a, b, new_a, new_b = bounds[0, y], bounds[0, y + 1], proposed[y], proposed[y + 1]
            root = row_roots[u] * column_roots[indices[p]]
            if new_b != b:
                out[u, y] += log_ratio((a - x[p]) * root, (b - x[p]) * root, (new_b - x[p]) * root)
            elif new_a != a:  # the same from above
                out[u, y - 1] += log_ratio((x[p] - b) * root, (x[p] - a) * root, (x[p] - new_a) * root)


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
