"""Rounding, ranks and certainty straight from their definitions: fractions, brute force, planted matrices."""

import itertools
from fractions import Fraction

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_array


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
    matrices = set()
    for v in itertools.combinations_with_replacement(values, n_columns):
        rows = sorted({tuple(level(u * each, thresholds) for each in v) for u in values})
        matrices.update(itertools.product(rows, repeat=n_rows))
    return {
        tuple(tuple(row[place] for place in order) for row in matrix)
        for matrix in matrices
        for order in itertools.permutations(range(n_columns))
    }


def is_outer_product(Y, tau):
    """Whether some u v' is above tau exactly where Y is 1: all signs, 0 among them, and sizes by a linear program."""
    n, m = np.shape(Y)
    for signs in itertools.product([-1, 0, 1], repeat=n + m):
        left, right = [], []
        for i, j in np.ndindex(n, m):
            sign = signs[i] * signs[n + j]
            # x = sign e^(a_i + b_j): above tau always, never, or where the sum is above or below log |tau|
            if sign == 0 or tau == 0 or sign * tau < 0:
                if (sign > tau) != Y[i][j]:
                    break
                continue
            row = np.zeros(n + m + 1)
            wants_larger = bool(Y[i][j]) == (sign > 0)
            row[[i, n + j]] = -1 if wants_larger else 1
            row[-1] = 1  # a margin
            left.append(row)
            right.append((-1 if wants_larger else 1) * np.log(abs(tau)))
        else:
            if not left:
                return True
            goal = np.append(np.zeros(n + m), -1.0)
            bounds = [(None, None)] * (n + m) + [(None, 1)]
            if linprog(goal, A_ub=left, b_ub=right, bounds=bounds, method="highs").x[-1] > 1e-7:
                return True
    return False


def shattered(binary):
    """The largest number of columns that show all patterns, by trying all sets."""
    binary = np.asarray(binary, dtype=int)
    for size in range(binary.shape[1], 0, -1):
        for columns in itertools.combinations(range(binary.shape[1]), size):
            if len({tuple(row) for row in binary[:, columns].tolist()}) == 2**size:
                return size
    return 0


def rows_in_the_plane(n_columns):
    """For every arrangement of vectors v_j in the plane, 0 among them: all rows [u' v_j > 0], and those without a 0.

    There are twice as many lines as columns to choose from, and u is on the normals of these lines or between them:
    angles are whole numbers, so that signs are exact.
    """
    quarter = 2 * n_columns  # angles of v are even, those of u any, 4 quarters being the circle
    arrangements = set()
    for vectors in itertools.product([None, *range(0, 4 * quarter, 2)], repeat=n_columns):
        rows = set()
        for u in [None, *range(4 * quarter)]:
            turns = [None if None in (u, v) else (v - u) % (4 * quarter) for v in vectors]
            on_normal = any(turn in (None, quarter, 3 * quarter) for turn in turns)
            row = tuple(int(turn is not None and not quarter <= turn <= 3 * quarter) for turn in turns)
            rows.add((row, not on_normal))
        arrangements.add((frozenset(row for row, _ in rows), frozenset(row for row, strict in rows if strict)))
    return [{rows for rows, _ in arrangements}, {strict for _, strict in arrangements}]


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


def planted(seed, shape, rank, n_thresholds, seen, kind="real"):
    """W, H, thresholds, all levels, and the mask of seen cells. "whole": everything is a small whole number."""
    rng = np.random.default_rng(seed)
    if kind == "whole":
        W, H = (rng.integers(-2, 3, (size, rank)).astype(float) for size in shape)
        thresholds = np.arange(n_thresholds) - float(n_thresholds // 2)
    else:
        W, H = (rng.standard_normal((size, rank)) for size in shape)
        thresholds = np.quantile(W @ H.T, (np.arange(n_thresholds) + rng.uniform(0.3, 0.7)) / n_thresholds)
    levels = np.searchsorted(thresholds, W @ H.T, side="left")
    return W, H, thresholds, levels, rng.random(shape) < seen


def seen_codes(levels, mask):
    """The seen levels, plus 1."""
    seen = np.nonzero(mask)
    return coo_array((levels[seen] + 1, seen), shape=mask.shape)


def ends_of(levels, mask, thresholds):
    """The lowest and highest x of every cell."""
    edges = np.concatenate([[-np.inf], thresholds, [np.inf]])
    return np.where(mask, edges[levels], -np.inf), np.where(mask, edges[levels + 1], np.inf)


def walk(W, H, lower, upper, steps, rng):
    """Members of X*, one after the other: rows and columns move along random chords of their polytopes."""
    W, H = W.copy(), H.copy()
    for _ in range(steps):
        for own, other, low, high in ((W, H, lower, upper), (H, W, lower.T, upper.T)):
            for place, factor in enumerate(own):
                direction = rng.standard_normal(factor.size)
                x, slope = other @ factor, other @ direction
                to_low, to_high = (low[place] - x) / slope, (high[place] - x) / slope
                first = max(np.minimum(to_low, to_high).max(), -2.0)
                last = min(np.maximum(to_low, to_high).min(), 2.0)
                if first < last:
                    own[place] = factor + direction * rng.uniform(first, last)
        yield W, H


def ranges_at_rank_one(lower, upper):
    """The smallest and largest x of every cell of u v' inside closed intervals, where no cell's row or column can be 0.

    For every choice of signs, a linear program in log |u| and log |v|. Ends at 0 or infinity are no conditions.
    """
    n, m = lower.shape
    least, most = np.full((n, m), np.inf), np.full((n, m), -np.inf)
    for signs in itertools.product([1, -1], repeat=n + m - 1):
        sign = np.outer((1, *signs[: n - 1]), signs[n - 1 :])
        low, high = np.where(sign > 0, lower, -upper), np.where(sign > 0, upper, -lower)
        if np.any(high <= 0):
            continue
        rows, columns = np.indices((n, m)).reshape(2, -1)
        sums = np.eye(n + m)[rows] + np.eye(n + m)[n + columns]  # log |u_i| + log |v_j|
        bounded_above, bounded_below = np.isfinite(high).reshape(-1), (low > 0).reshape(-1)
        left = np.vstack([sums[bounded_above], -sums[bounded_below]])
        right = np.concatenate([np.log(high[np.isfinite(high)]), -np.log(low[low > 0])])
        for i, j in np.ndindex(n, m):
            smallest, largest = (_extreme(left, right, way * sums[i * m + j]) for way in (1, -1))
            if smallest is None:
                break
            ends = sorted((sign[i, j] * smallest, sign[i, j] * largest))
            least[i, j], most[i, j] = min(least[i, j], ends[0]), max(most[i, j], ends[1])
    return least, most


def _extreme(left, right, goal):
    """The smallest |x|, its logarithm the goal, or the largest for minus that; None for contradictory conditions."""
    result = linprog(goal, A_ub=left, b_ub=right, bounds=(None, None), method="highs")
    if result.status == 2:
        return None
    way = np.sign(goal.sum())
    return (0.0 if way > 0 else np.inf) if result.status == 3 else float(np.exp(way * result.fun))
