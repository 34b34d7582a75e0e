"""OrdNMF with gamma noise, dense and slow: variational inference with generalised inverse-Gaussian posteriors.

x = <w, h>, y* = x g, g ~ Gamma(alpha, 1), w, h ~ Gamma(a, b) with one learned b a row (or column). The bound is that of
GaP-NMF (Hoffman, Blei & Cook 2010): for any phi_k that add up to 1, and any omega > 0,

    E[-y* / x]    >= -y* sum_k phi_k^2 E[1 / w_k] E[1 / h_k]
    E[-log x]     >= -log omega - (sum_k E[w_k] E[h_k] - omega) / omega

and q(y*) is a gamma variable of shape alpha and scale 1 / sum_k phi_k^2 E[1 / w_k] E[1 / h_k], kept within its level.
Everything about the posteriors comes from quadrature in log w; levels from `noises`. No Bessel function anywhere.
"""

from dataclasses import dataclass

import numpy as np
from scipy import special

from . import noises

POINTS = 4001
#: Where E[1 / w] counts as endless, and the entry as one that says nothing: as 1 / sqrt(smallest number).
NOTHING = 6.7e153
THRESHOLDS = np.array([0.6, 1.5, 4.0])


def cells(alpha, n=7, m=6):
    """Levels, weights that are 0 at a third of them, and a start."""
    Y, *_ = noises.simulate(n, m, 2, THRESHOLDS, 3, "gamma", alpha)
    random = np.random.default_rng(4)
    C = (random.random(Y.shape) >= 0.3) * random.choice([1.0, 2.0, 0.5], Y.shape)
    return Y, C, random.gamma(1.0, 1.0, (n, 3)), random.gamma(1.0, 1.0, (m, 3))


@dataclass
class Posterior:
    """q(w) ~ w^(shape - 1) exp(-rate w - inverse_rate / w), entry by entry, by the trapezoidal rule in u = log w."""

    shape: float
    rate: np.ndarray
    inverse_rate: np.ndarray

    def __post_init__(self):
        self.inverse_rate = np.where(self.inverse_rate < 1 / NOTHING**1.9, 0.0, self.inverse_rate)
        a, rho, tau = self.shape, self.rate[..., None], self.inverse_rate[..., None]
        root = np.sqrt(a**2 + 4 * rho * tau)
        top = np.log((a + root) / (2 * rho))
        # To the left tau e^-u must have grown beyond all else, because E[1 / w] may live on what is there.
        with np.errstate(divide="ignore"):
            left = np.log(tau) - np.log(root / 2 + 15 * np.sqrt(root) + 100)
        left = np.where(tau > 0, left, top - 50 / a)
        right = top + np.maximum(12 / np.sqrt(root), np.log1p(80 / a))
        u = left + (right - left) * np.linspace(0, 1, POINTS)
        log_q = a * u - rho * np.exp(u) - tau * np.exp(-u)
        log_q += np.log((right - left) / (POINTS - 1))
        log_norm = special.logsumexp(log_q, axis=-1)
        q = np.exp(log_q - log_norm[..., None])
        self.mean = (q * np.exp(u)).sum(-1)
        self.mean_inverse = (q * np.exp(-u)).sum(-1)
        self.harmonic = np.where(self.mean_inverse < NOTHING, 1 / self.mean_inverse, 0.0)
        self.harmonic[self.inverse_rate == 0] = max(a - 1, 0) / self.rate[self.inverse_rate == 0]
        self.mean_log = (q * u).sum(-1)
        self.entropy = (
            log_norm - (a - 1) * self.mean_log + self.rate * self.mean + self.inverse_rate * self.mean_inverse
        )


@dataclass
class Point:
    """A start without a spread."""

    mean: np.ndarray

    @property
    def harmonic(self):
        return self.mean


@dataclass
class Record:
    w: Posterior
    h: Posterior
    thresholds: np.ndarray
    elbo: float


def ordnmf(Y, C, W, H, thresholds, iterations, alpha=1.0, shape=0.3, rate=None, learned=True):
    """A record after each iteration: rows, columns, thresholds. C are the weights of cells, 0 for what is unseen."""
    w, h, b = Point(W), Point(H), np.asarray(thresholds, float)
    for _ in range(iterations):
        w, row_rates = moved(Y, C, w, h, b, alpha, shape, rate)
        h, column_rates = moved(Y.T, C.T, h, w, b, alpha, shape, rate)
        if learned:
            b = better_thresholds(Y, C, harmonic_x(w, h), b, alpha)
        priors = log_prior(w, shape, row_rates) + log_prior(h, shape, column_rates)
        yield Record(w, h, b, bound_of_cells(Y, C, w, h, b, alpha) + priors + (w.entropy.sum() + h.entropy.sum()))


def harmonic_x(w, h):
    """As it is at seen cells; between parts that have nothing in common it would be 0."""
    x = w.harmonic @ h.harmonic.T
    return np.where(x > 0, x, 1)


def moved(Y, C, near, far, b, alpha, shape, rate):
    """The best q of one side, at the best phi, omega and q(y*) of the moment; and the prior's rates."""
    rates = np.full((len(Y), 1), rate) if rate else shape / near.mean.mean(1, keepdims=True)
    omega = near.mean @ far.mean.T
    near_inverse, far_inverse = (np.where(h > 0, 1 / np.where(h > 0, h, 1), 0) for h in (near.harmonic, far.harmonic))
    phi = near.harmonic[:, None, :] * far.harmonic[None]
    phi /= np.where(phi.sum(-1) > 0, phi.sum(-1), 1)[..., None]  # 0 between parts that have nothing in common
    scale = np.einsum("uik,uk,ik->ui", phi**2, near_inverse, far_inverse)
    scale = 1 / np.where(scale > 0, scale, 1)
    latent = scale * expected_noise(Y, scale, b, alpha)
    linear = rates + np.einsum("ui,ik->uk", C * alpha / omega, far.mean)
    inverse = np.einsum("ui,uik,ik->uk", C * np.where(C > 0, latent, 0), phi**2, far_inverse)
    return Posterior(shape, linear, inverse), rates


def expected_noise(Y, x, b, alpha):
    with np.errstate(invalid="ignore"):
        pull, _ = noises.pull_push(x, b, "gamma", alpha)
    return x * at(pull, Y)


def bound_of_cells(Y, C, w, h, b, alpha):
    """Sum of log of the integral of y*^(alpha - 1) e^(-y* / scale) / Gamma(alpha) over the level, - alpha log omega."""
    scale, omega = harmonic_x(w, h), w.mean @ h.mean.T
    with np.errstate(invalid="ignore"):
        logs = at(noises.log_probabilities(scale, b, "gamma", alpha), Y) + alpha * np.log(scale)
    return (C[C > 0] * (logs - alpha * np.log(omega))[C > 0]).sum()


def log_prior(q, shape, rates):
    logs = shape * np.log(rates) - special.gammaln(shape) + (shape - 1) * q.mean_log - rates * q.mean
    return logs.sum()


def better_thresholds(Y, C, x, b, alpha):
    """Newton's step in log b on the sum of log P(y | x), at most 1 long, halved (up to 8 times) until it is no loss."""

    def value(b):
        with np.errstate(invalid="ignore"):  # a step that is too long may leave a level nothing
            return (C[C > 0] * at(noises.log_probabilities(x, b, "gamma", alpha), Y)[C > 0]).sum()

    slope, bend = slope_and_bend(Y, C, x, b, alpha)
    step = np.linalg.solve(bend, slope)
    step /= max(1, np.abs(step).max())
    while np.any(np.diff(b * np.exp(step)) <= 0):
        step /= 2
    for _ in range(8):
        if value(b * np.exp(step)) >= value(b):
            return b * np.exp(step)
        step /= 2
    return b


def slope_and_bend(Y, C, x, b, alpha):
    """First derivatives, and minus the second ones, by log b: of log(F(b_y / x) - F(b_{y-1} / x)), cell by cell."""
    V = len(b)
    with np.errstate(invalid="ignore"):
        p = np.exp(noises.log_probabilities(x, b, "gamma", alpha))
    slope, bend = np.zeros(V), np.zeros((V, V))
    for cell in zip(*np.nonzero(C), strict=True):
        y, weight, one = Y[cell], C[cell], np.zeros(V)
        second = np.zeros((V, V))
        for v, sign in ((y - 1, -1.0), (y, 1.0)):
            if 0 <= v < V:
                z = b[v] / x[cell]
                density = np.exp(alpha * np.log(z) - z - special.gammaln(alpha)) / p[(*cell, y)]
                one[v] = sign * density
                second[v, v] = sign * (alpha - z) * density
        slope += weight * one
        bend -= weight * (second - np.outer(one, one))
    return slope, bend


def at(of_levels, Y):
    """Each cell at its own level; what other levels would be there, quadrature may fail to say."""
    return np.take_along_axis(of_levels, Y[..., None], -1)[..., 0]
