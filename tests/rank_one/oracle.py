"""The truth about rank one with holes, in plain dense NumPy. A hole is NaN; `weights` has the shape of X."""

import string

import numpy as np
from scipy import special


def exposures(X, weights=None):
    """How much each cell counts: 0 at a hole, elsewhere 1 or its weight."""
    return np.where(np.isnan(X), 0.0, 1.0 if weights is None else weights)


def cost(X, w, h, weights=None):
    """D_Phi(X, w h') of Eq. 2, with 0 log 0 = 0."""
    return cost_tensor(X, [w, h], weights)


def slope(X, w, h, weights=None):
    """The derivatives of the cost by log w and by log h: the sums of the fit less those of the data."""
    excess = exposures(X, weights) * (np.outer(w, h) - np.nan_to_num(X))
    return np.concatenate([excess.sum(1), excess.sum(0)])


def best(X, weights=None, seed=None):
    """The minimiser (w, h). Rows and columns of sum 0 get 0; in each connected part of the others, S(w) = S(h).

    Where the minimum is only approached (see `limit_parts`), this is a point far on the way.
    """
    return tuple(map(np.exp, best_logs(X, weights, seed)))


def best_logs(X, weights=None, seed=None):
    """(log w, log h) by Newton's method, as the cost is convex in them, until the fit has the sums of the data to 13
    digits. Any scales will do. A seed moves the start.
    """
    C = exposures(X, weights)
    rows, columns = ((C * np.nan_to_num(X)).sum(axis) > 0 for axis in (1, 0))
    log_w, log_h = np.full(len(rows), -np.inf), np.full(len(columns), -np.inf)
    if rows.any():
        X, C = X[rows][:, columns], C[rows][:, columns]
        log_w[rows], log_h[columns] = _balanced(*_newton(X, C, seed), *parts(X, C))
    return log_w, log_h


def _newton(X, C, seed):
    data, n = C * np.nan_to_num(X), len(X)
    sums = np.concatenate([data.sum(1), data.sum(0)])
    logs = np.log(np.concatenate([sums[:n], sums[n:] / (C.T @ sums[:n])]))
    if seed is not None:
        logs += np.random.default_rng(seed).normal(size=logs.size)
    sizes = np.sqrt(sums)  # coordinates logs * sizes give all directions a curvature near 1, whatever the scales
    free = _free_directions(X, C) * sizes
    free /= np.linalg.norm(free, axis=1, keepdims=True)
    for _ in range(300):
        fit = C * np.exp(np.add.outer(logs[:n], logs[n:]))
        excess = np.concatenate([fit.sum(1), fit.sum(0)]) - sums
        if (np.abs(excess) < 1e-13 * sums).all():
            break
        curvature = np.block([[np.diag(fit.sum(1)), fit], [fit.T, np.diag(fit.sum(0))]]) / np.outer(sizes, sizes)
        step = np.linalg.solve(curvature + free.T @ free, excess / sizes) / sizes
        logs -= step * min(1.0, 1.0 / np.abs(step).max())
    return logs[:n], logs[n:]


def _free_directions(X, C):
    """Along these the cost is flat: w up and h down in one connected part."""
    labels = np.concatenate(parts(X, C))
    signs = np.where(np.arange(labels.size) < len(X), 1.0, -1.0)
    return np.array([signs * (labels == part) for part in range(labels.max() + 1)])


def _balanced(log_w, log_h, of_rows, of_columns):
    for part in np.unique(of_rows):
        mine, yours = of_rows == part, of_columns == part
        shift = (special.logsumexp(log_h[yours]) - special.logsumexp(log_w[mine])) / 2
        log_w[mine], log_h[yours] = log_w[mine] + shift, log_h[yours] - shift
    return log_w, log_h


def kl_wnmf(X, iterations, seed=0, weights=None):
    """KL-WNMF: multiplicative updates from a start that is uniform in (0, 1)."""
    C, Y = exposures(X, weights), np.nan_to_num(X)
    rng = np.random.default_rng(seed)
    w, h = rng.random(X.shape[0]), rng.random(X.shape[1])
    for _ in range(iterations):
        w = w * _ratio(C * _ratio(Y, np.outer(w, h)) @ h, C @ h)
        h = h * _ratio((C * _ratio(Y, np.outer(w, h))).T @ w, C.T @ w)
    return w, h


def _ratio(p, q):
    return np.divide(p, q, out=np.zeros_like(p), where=q > 0)


def em(X, iterations):
    """Section 2.2.2: fill the holes, take the best rank-one matrix r c' / S, fill the holes with it, and so on."""
    full = np.where(np.isnan(X), np.nanmean(X), X)
    for _ in range(iterations):
        w, h = full.sum(1) / np.sqrt(full.sum()), full.sum(0) / np.sqrt(full.sum())
        full = np.where(np.isnan(X), np.outer(w, h), X)
    return w, h


def a1gm(X):
    """Algorithm 1, without its permutations: all rows and columns with a hole meet in holes; then Theorem 1."""
    I, J = ~np.isnan(X).any(1), ~np.isnan(X).any(0)  # noqa: E741
    total, of_rows, of_columns = X[I][:, J].sum(), X[:, J].sum(1), X[I].sum(0)
    w = np.where(I, np.nan_to_num(X).sum(1) * np.sqrt(total) / X[I].sum(), of_rows / np.sqrt(total))
    h = np.where(J, np.nan_to_num(X).sum(0) * np.sqrt(total) / X[:, J].sum(), of_columns / np.sqrt(total))
    return w, h


def fit_tensor(factors):
    return np.einsum(",".join(string.ascii_letters[: len(factors)]), *factors)


def cost_tensor(X, factors, weights=None):
    """The same cost for any number of axes, one factor an axis."""
    C = exposures(X, weights)
    return (C * special.kl_div(np.where(C > 0, X, 0.0), np.where(C > 0, fit_tensor(factors), 0.0))).sum()


def best_tensor(X, weights=None, sweeps=10_000):
    """Every factor in turn: sums of the data along its axis over those of the other factors, until nothing changes.

    All factors have one sum.
    """
    C = exposures(X, weights)
    axes = string.ascii_letters[: X.ndim]
    factors = [np.ones(size) for size in X.shape]
    for _ in range(sweeps):
        before = fit_tensor(factors)
        for axis in range(X.ndim):
            letters, others = [a for a in axes if a != axes[axis]], factors[:axis] + factors[axis + 1 :]
            push = np.einsum(f"{axes},{','.join(letters)}->{axes[axis]}", C, *others)
            factors[axis] = _ratio(np.einsum(f"{axes}->{axes[axis]}", C * np.nan_to_num(X)), push)
        if np.allclose(fit_tensor(factors), before, rtol=1e-14, atol=0.0):
            break
    scale = np.prod([factor.sum() for factor in factors]) ** (1 / X.ndim)
    return [factor * (scale / factor.sum() if factor.any() else 1.0) for factor in factors]


def parts(X, weights=None):
    """The connected parts of the graph whose edges are the seen cells: a number for every row, one for every column."""
    seen = exposures(X, weights) > 0
    return _grouped(_reach(seen, seen), len(X))


def limit_parts(X, weights=None):
    """The strong parts of the graph with an edge row -> column at every seen cell, and back at every positive one.

    Along a change d of log w and of -log h the cost never rises if d_i <= d_j at all seen cells (i, j), and d_i = d_j
    at the positive ones: such a d is constant in a strong part. Where a connected part has several, the zeros between
    them get ever smaller fits along d: the minimum is approached and not reached, and it is the sum of the minima of
    the strong parts. (Save rows and columns of sum 0, which reach it with a factor of 0.)
    """
    seen = exposures(X, weights) > 0
    return _grouped(_reach(seen, seen & (np.nan_to_num(X) > 0)), len(X))


def _reach(there, back):
    """Which node is reached from which, rows before columns, along row -> column and back: paths of twice the length
    until there are no more.
    """
    n, m = there.shape
    reached = np.block([[np.eye(n, dtype=bool), there], [back.T, np.eye(m, dtype=bool)]])
    while True:
        longer = reached.astype(np.float32) @ reached.astype(np.float32) > 0
        if np.array_equal(longer, reached):
            return reached
        reached = longer


def _grouped(reached, n):
    """Nodes that reach each other, numbered by their first member: (of rows, of columns)."""
    first = np.argmax(reached & reached.T, axis=1)
    labels = np.unique(first, return_inverse=True)[1]
    return labels[:n], labels[n:]
