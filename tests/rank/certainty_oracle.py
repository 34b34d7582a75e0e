"""What is certain of unseen cells, without the library: planted matrices, members of X*, rank one by signs and logs."""

import itertools

import numpy as np
from scipy.optimize import linprog


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
        left, right = _log_conditions(np.maximum(low, 0.0), high)
        for i, j in np.ndindex(n, m):
            smallest, largest = (_extreme(left, right, n, i, j, way) for way in (1, -1))
            if smallest is None:
                break
            ends = sorted((sign[i, j] * smallest, sign[i, j] * largest))
            least[i, j], most[i, j] = min(least[i, j], ends[0]), max(most[i, j], ends[1])
    return least, most


def _log_conditions(low, high):
    n, m = low.shape
    left, right = [], []
    for i, j in np.ndindex(n, m):
        row = np.zeros(n + m)
        row[[i, n + j]] = 1.0
        if np.isfinite(high[i, j]):
            left.append(row)
            right.append(np.log(high[i, j]))
        if low[i, j] > 0:
            left.append(-row)
            right.append(-np.log(low[i, j]))
    return np.array(left), np.array(right)


def _extreme(left, right, n, i, j, way):
    """The smallest (way 1) or largest (-1) |x_ij|; None if the conditions contradict each other."""
    goal = np.zeros(left.shape[1])
    goal[[i, n + j]] = way
    found = linprog(goal, A_ub=left, b_ub=right, bounds=(None, None), method="highs")
    if found.status == 2:
        return None
    return (0.0 if way > 0 else np.inf) if found.status == 3 else float(np.exp(way * found.fun))
