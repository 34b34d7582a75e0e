"""Levels cut out of a line by thresholds, in dense NumPy and SciPy, written from the papers: the truth to compare with.

Y holds the codes 0..N, C how much each cell counts (0: it is not there); x = W H^T is cut at tau_1 < ... < tau_N, and
N thresholds make N + 1 levels. A loss is a function (Y, x, tau) -> (cost, d cost / dx), cell by cell.

Costs of the losses: Pezeshkpour (2018), Eq. 1.5 and section 3.2; of cumulative links: section 2.1 of Gouvert, Oberlin &
Févotte (2020), with the noises as scipy.stats has them.
"""

from typing import NamedTuple

import numpy as np
from scipy import optimize, special, stats

#: The noise of each link. F of gumbel_l is 1 - exp(-exp(z)), of gumbel_r exp(-exp(-z)).
NOISES = {
    "logit": stats.logistic,
    "probit": stats.norm,
    "cloglog": stats.gumbel_l,
    "loglog": stats.gumbel_r,
    "cauchit": stats.cauchy,
}


# --- cells --------------------------------------------------------------------------------------------------------


def grf(x, tau):
    """The number of thresholds strictly below x (Eq. 2.5)."""
    return (np.asarray(x)[..., None] > np.asarray(tau)).sum(axis=-1)


def log_mass(noise, a, b):
    """log(F(b) - F(a)), from whichever tail is the shorter: none of the two logarithms is near 0 there."""
    upper = a > noise.median()
    of_far = np.where(upper, noise.logsf(b), noise.logcdf(a))
    of_near = np.where(upper, noise.logsf(a), noise.logcdf(b))
    with np.errstate(divide="ignore", invalid="ignore"):
        return of_near + np.log1p(-np.exp(of_far - of_near))


def cumulative(link):
    """-log(F(tau_{y+1} - x) - F(tau_y - x)), tau_0 = -inf, tau_{N+1} = inf."""
    noise = NOISES[link]

    def loss(Y, x, tau):
        ends = np.concatenate([[-np.inf], tau, [np.inf]])
        level = np.asarray(Y, int)
        a, b = ends[level] - x, ends[level + 1] - x
        log = log_mass(noise, a, b)
        density_a, density_b = (
            np.where(np.isinf(z), -np.inf, noise.logpdf(np.where(np.isinf(z), 0, z))) for z in (a, b)
        )
        return -log, np.exp(density_b - log) - np.exp(density_a - log)

    return loss


def rounding(margin=0.0, smoothing=0.01):
    """(tau_y + margin - x)_+ + (x + margin - tau_{y+1})_+, whose corners are parabolas of the length `smoothing`."""

    def hinge(r):
        cost = np.where(r <= 0, 0.0, np.where(r < smoothing, r**2 / (2 * smoothing), r - smoothing / 2))
        return cost, np.clip(r / smoothing, 0, 1)

    def loss(Y, x, tau):
        ends = np.concatenate([[-np.inf], tau, [np.inf]])
        level = np.asarray(Y, int)
        (below, up), (above, down) = hinge(ends[level] + margin - x), hinge(x + margin - ends[level + 1])
        return below + above, down - up

    return loss


def multi_sigmoid(Y, x, tau):
    """(y - sum over d of sigmoid(x - tau_d))^2."""
    steps = special.expit(np.asarray(x)[..., None] - tau)
    error = steps.sum(-1) - Y
    return error**2, 2 * error * (steps * (1 - steps)).sum(-1)


def linear(Y, x, tau):
    """(y - offset - x)^2; the thresholds stand half-way between the levels, so the first tells of the offset."""
    error = x + 0.5 - tau[0] - Y
    return error**2, 2 * error


LOSSES = {
    "multi-sigmoid": multi_sigmoid,
    "round": rounding(0.05),
    "linear": linear,
    **{link: cumulative(link) for link in NOISES},
}


def probabilities(link, x, tau):
    """p(v | x) of every level v, along a last axis."""
    below = NOISES[link].cdf(np.asarray(tau) - np.asarray(x)[..., None])
    ends = np.zeros((*np.shape(x), 1))
    return np.diff(np.concatenate([ends, below, ends + 1], axis=-1), axis=-1)


# --- matrices -----------------------------------------------------------------------------------------------------


class Prior(NamedTuple):
    """l2 / 2 |f_u - centre|^2; with biases, W = [w, b, 1] and H = [h, 1, c], and their l2 is a third of it.

    Rows are drawn to sqrt(3) e_1, columns to sqrt(3) e_2; or all to 0. `side` is 0 for rows and 1 for columns.
    """

    l2: float
    biases: bool = False
    centred: bool = True

    def weights(self, k):
        weights = np.full(k, float(self.l2))
        if self.biases:
            weights[-2:] /= 3
        return weights

    def centre(self, k, side):
        centre = np.zeros(k)
        if self.centred and side < k - 2 * self.biases:
            centre[side] = np.sqrt(3)
        return np.where(self.held(k, side) == 1, 1.0, centre)

    def held(self, k, side):
        """1 where a one stands beside the biases of the other side."""
        held = np.zeros(k)
        if self.biases:
            held[-1 - side] = 1.0
        return held

    def with_biases(self, F, side):
        """A factor and, with biases, its two last columns: biases of 0 and ones."""
        if not self.biases:
            return F
        nothing, ones = np.zeros((len(F), 1), F.dtype), np.ones((len(F), 1), F.dtype)
        return np.hstack([F, ones, nothing] if side else [F, nothing, ones])

    def cost(self, F, side):
        k = F.shape[1]
        return (0.5 * self.weights(k) * (F - self.centre(k, side)) ** 2).sum()

    def slope(self, F, side):
        k = F.shape[1]
        return self.weights(k) * (F - self.centre(k, side))


def summed(loss, Y, C, x, tau):
    """The cost of all cells, and its slope at each."""
    cost, slope = loss(np.where(C > 0, Y, 0), x, tau)
    return (np.where(C > 0, C * cost, 0.0)).sum(), np.where(C > 0, C * slope, 0.0)


def objective(loss, Y, C, W, H, tau, prior):
    return summed(loss, Y, C, W @ H.T, tau)[0] + prior.cost(W, 0) + prior.cost(H, 1)


def slopes(loss, Y, C, W, H, tau, prior):
    """The gradients by W and by H, 0 where a component is held."""
    _, slope = summed(loss, Y, C, W @ H.T, tau)
    of_W, of_H = slope @ H + prior.slope(W, 0), slope.T @ W + prior.slope(H, 1)
    return of_W * (1 - prior.held(W.shape[1], 0)), of_H * (1 - prior.held(H.shape[1], 1))


def by_thresholds(loss, Y, C, x, tau, step=1e-5):
    """The gradient by the thresholds, by finite differences."""
    steps = step * np.eye(len(tau))
    costs = [[summed(loss, Y, C, x, tau + way)[0] for way in (one, -one)] for one in steps]
    return np.array([(up - down) / (2 * step) for up, down in costs])


def newton_half(slope, curvature, F, G, penalty, centre, held):
    """f_u - A^{-1} g for each row, of cells in dense matrices (0 where none is); held components keep still."""
    moved = F.astype(float).copy()
    free = np.flatnonzero(held == 0)
    for u in range(len(F)):
        g = G.T @ slope[u] + penalty * (F[u] - centre)
        A = (G.T * curvature[u]) @ G + np.diag(penalty)
        moved[u, free] -= np.linalg.lstsq(A[np.ix_(free, free)], g[free], rcond=None)[0]
    return moved


def descended(cells, slope, W, H, rate, past, seen, pulls):
    """W, H and the past after one cell after another: past <- past + mean(g^2), f <- f - rate g / sqrt(past)."""
    W, H = W.astype(float).copy(), H.astype(float).copy()
    past = [one.astype(float).copy() for one in past]
    for (u, i), s in zip(cells, slope, strict=True):
        steps = []
        for F, a, far, side in ((W, u, H[i], 0), (H, i, W[u], 1)):
            penalty, centre, held = pulls[side]
            g = np.where(held == 1, 0.0, s * far + penalty * (F[a] - centre) / seen[side][a])
            past[side][a] += np.mean(g**2)
            steps.append((F, a, rate * g / np.sqrt(past[side][a]) if past[side][a] > 0 else 0 * g))
        for F, a, step in steps:
            F[a] -= step
    return W, H, past


# --- optima -------------------------------------------------------------------------------------------------------


def best_row(loss, y, c, G, tau, penalty, centre, held, start):
    """The row that is best for its own cells: by BFGS from `start`, in the components that are free."""
    free = np.flatnonzero(held == 0)

    def cost(z):
        f = start.copy()
        f[free] = z
        total, slope = summed(loss, y[None], c[None], (G @ f)[None], tau)
        down = G.T @ slope[0] + penalty * (f - centre)
        return total + (0.5 * penalty * (f - centre) ** 2).sum(), down[free]

    found = optimize.minimize(cost, start[free], jac=True, method="BFGS", options={"gtol": 1e-10})
    best = start.copy()
    best[free] = found.x
    return best


def lowest(loss, Y, C, W, H, tau, prior, learned=True, steps=25):
    """The lowest objective that L-BFGS finds from here in so many steps, moving everything that may move."""
    n, m, k = len(W), len(H), W.shape[1]

    def parts(z):
        return z[: n * k].reshape(n, k), z[n * k : (n + m) * k].reshape(m, k), z[(n + m) * k :]

    def cost(z):
        W, H, gaps = parts(z)
        tau_now = np.cumsum(np.append(gaps[:1], np.exp(gaps[1:])))
        down = [*slopes(loss, Y, C, W, H, tau_now, prior)]
        by_tau = by_thresholds(loss, Y, C, W @ H.T, tau_now) if learned else np.zeros(len(tau))
        by_step = np.cumsum(by_tau[::-1])[::-1] * np.append(1.0, np.exp(gaps[1:]))
        return objective(loss, Y, C, W, H, tau_now, prior), np.concatenate([*(g.ravel() for g in down), by_step])

    start = np.concatenate([W.ravel(), H.ravel(), tau[:1], np.log(np.diff(tau))])
    found = optimize.minimize(
        cost, start, jac=True, method="L-BFGS-B", options={"maxiter": steps, "ftol": 1e-15, "gtol": 1e-9}
    )
    return found.fun


def ordinal_regression(link, Y, C, l2):
    """P(y <= v) = F(tau_{v+1} - b_u - c_i), a regression on the row and the column alone, with the prior on both.

    Convex for a noise of log-concave density: what is found is the one optimum. Gives x and the thresholds.
    """
    n, m = Y.shape
    N = int(np.where(C > 0, Y, 0).max())
    loss = cumulative(link)

    def parts(z):
        b, c, steps = z[:n], z[n : n + m], z[n + m :]
        return b, c, np.cumsum(np.append(steps[:1], np.exp(steps[1:])))

    def cost(z):
        b, c, tau = parts(z)
        total, slope = summed(loss, Y, C, b[:, None] + c, tau)
        penalty = 0.5 * l2 * ((b**2).sum() + (c**2).sum())
        by_tau = by_thresholds(loss, Y, C, b[:, None] + c, tau)
        by_step = np.cumsum(by_tau[::-1])[::-1] * np.append(1.0, np.exp(z[n + m + 1 :]))
        down = slope.sum(1) + l2 * b, slope.sum(0) + l2 * c
        return total + penalty, np.concatenate([*down, by_step])

    found = optimize.minimize(cost, np.zeros(n + m + N), jac=True, method="L-BFGS-B",
                              options={"maxiter": 5000, "ftol": 1e-16, "gtol": 1e-8})  # fmt: skip
    b, c, tau = parts(found.x)
    return b[:, None] + c, tau
