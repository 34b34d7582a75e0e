"""The levels of section 3.1 for any multiplicative noise: y = number of thresholds b_v <= x e (Eq. 15, 16), x > 0.

All three noises are one gamma variable g ~ Gamma(alpha, 1) and an interval: level v is the event

    inverse-gamma noise, e = 1 / g:   x / b_v     <  g <=  x / b_{v-1}
    gamma noise, e = g:               b_{v-1} / x <= g <   b_v / x          (exponential: alpha = 1)

with b_{-1} = 0 and b_V = inf. As g f(g) has the derivative (alpha - g) f(g), both slopes are those of an EM step:

    inverse-gamma:   d log p / dx =  alpha / x - E[g | y] / x
    gamma:           d log p / dx =  E[g | y] / x - alpha / x

The left terms pull, the right ones push. The masses of the intervals come from quadrature in log g, which loses no
logarithm. For alpha = 1 they are e^{-x theta_v} - e^{-x theta_{v-1}} (Eq. 25) and e^{-b_{v-1} / x} - e^{-b_v / x}.
"""

import numpy as np
from scipy import special

NODES, WEIGHTS = np.polynomial.legendre.leggauss(120)


def cumulative(x, thresholds, noise="inverse-gamma", alpha=1.0):
    """P(y <= v | x), v = 0..V, along a new last axis (Eq. 20): Q(alpha, x / b_v), or P(alpha, b_v / x)."""
    ratios = np.asarray(x, float)[..., None] / np.append(thresholds, np.inf)
    if noise == "inverse-gamma":
        return special.gammaincc(alpha, ratios)
    with np.errstate(divide="ignore"):
        return special.gammainc(alpha, 1 / ratios)


def log_probabilities(x, thresholds, noise="inverse-gamma", alpha=1.0):
    """log P(y = v | x), v = 0..V, along a new last axis (Eq. 22)."""
    return _log_mass_and_mean(alpha, *intervals(x, thresholds, noise))[0]


def pull_push(x, thresholds, noise="inverse-gamma", alpha=1.0):
    """The two parts of d log P(y = v | x) / dx, as EM splits them; v = 0..V along a new last axis."""
    mean, x = _log_mass_and_mean(alpha, *intervals(x, thresholds, noise))[1], np.asarray(x, float)[..., None]
    level, spread = np.broadcast_to(alpha / x, mean.shape), mean / x
    return (level, spread) if noise == "inverse-gamma" else (spread, level)


def intervals(x, thresholds, noise):
    """(low, high) of the gamma variable, for each x and each level."""
    edges = np.concatenate([[0.0], thresholds, [np.inf]])
    with np.errstate(divide="ignore"):
        at = np.asarray(x, float)[..., None] / edges
        return (at[..., 1:], at[..., :-1]) if noise == "inverse-gamma" else (1 / at[..., :-1], 1 / at[..., 1:])


def _log_mass_and_mean(alpha, low, high):
    """log P(low < g < high) and E[g | low < g < high].

    The integrand e^{alpha u - e^u} / Gamma(alpha), u = log g, is log-concave with its mode at log alpha. From its
    highest point within the interval it is followed both ways until it has fallen by e^45, or to the end.
    """
    with np.errstate(divide="ignore"):
        low, high = np.log(low), np.log(high)
    top = np.clip(np.log(alpha), low, high)
    left = np.maximum(low, top - 45 / alpha - 1)
    right = np.minimum(high, np.log(np.exp(top) + 60 + 10 * np.sqrt(alpha) + alpha))
    u = np.concatenate([_at(top, side) for side in (left, right)])
    log_weights = np.concatenate([_log_weights(top, side) for side in (left, right)])
    logs = alpha * u - np.exp(u) + log_weights - special.gammaln(alpha)
    mass = special.logsumexp(logs, axis=0)
    return mass, np.exp(special.logsumexp(logs + u, axis=0) - mass)


def _at(top, side):
    shares = (1 + NODES).reshape(-1, *[1] * top.ndim) / 2
    return top + (side - top) * shares


def _log_weights(top, side):
    with np.errstate(divide="ignore"):
        return np.log(WEIGHTS.reshape(-1, *[1] * top.ndim) / 2) + np.log(np.abs(side - top))


def log_likelihood_of_seen(y, x, thresholds, noise="inverse-gamma", alpha=1.0):
    """sum log P(y | y > 0, x) (Eq. 39)."""
    logs = log_probabilities(x, thresholds, noise, alpha)
    at = np.take_along_axis(logs, np.asarray(y)[..., None], -1)[..., 0]
    return (at - special.logsumexp(logs[..., 1:], axis=-1)).sum()


# --- drawing -------------------------------------------------------------------------------------------------------


def draw_levels(x, thresholds, random, noise="inverse-gamma", alpha=1.0):
    """Eq. 15 and 16, literally."""
    g = random.gamma(alpha, 1.0, np.shape(x))
    latent = x / g if noise == "inverse-gamma" else x * g
    return (latent[..., None] >= np.asarray(thresholds)).sum(-1)


def simulate(n, m, K, thresholds, seed, noise="inverse-gamma", alpha=1.0):
    """(Y, W, H) with W, H ~ Gamma(1, 1). The toy example: simulate(100, 200, 3, [1, 5, 10, 20, 50], seed).

    Y tells the thresholds only up to one common factor, because W H' can be divided by what b is divided by.
    """
    random = np.random.default_rng(seed)
    W, H = random.gamma(1.0, 1.0, (n, K)), random.gamma(1.0, 1.0, (m, K))
    return draw_levels(W @ H.T, thresholds, random, noise, alpha), W, H
