"""Gamma and inverse-gamma noise: ordered levels 0..V as the quantised product of x and noise (`ordnmf-2020`, 3.1).

Below: a gamma variable g ~ Gamma(shape, 1) truncated to an interval, the logarithm of its mass there and its mean.

    mass = P(shape, high) - P(shape, low) = Q(shape, low) - Q(shape, high),    P + Q = 1, regularised incomplete gammas
    mean = shape * mass at shape + 1 / mass at shape = shape + (low f(low) - high f(high)) / mass,    f the density

Differences are taken in the tail in which both bounds lie, and of logarithms, so that nothing is lost where the masses
themselves underflow. Bounds may be 0 and infinite.
"""

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import gammainc, gammaincc, gammainccinv, gammaincinv, gammaln, hyp1f1

from halfseen.arrays import Array, ArraySpec, floored
from halfseen.likelihoods.base import CellTerms, StateSpec
from halfseen.likelihoods.ordinal import InverseThresholds, NoisyLevels

#: Largest change of the logarithm of a threshold in one step.
_LONGEST_STEP = 1.0
#: Lower bound of thresholds: one with no cell below it would go to 0.
_LOWEST = 1e-200

#: Below this the incomplete gamma functions are close to underflow, and their logarithms are computed otherwise.
_FAINT = 1e-280
#: Where the logarithm of the density changes by less than this, a few points of quadrature are enough.
_NARROW = 1.0
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(12)
#: Steps of the continued fraction, which is used far out only, where five would do.
_STEPS = 20
#: Up to here SciPy takes long to compute Q, which is not yet so small that P would not do.
_SLOW = 1.2
#: Up to this part of the shape the difference of densities would cancel almost completely.
_NEAR_ZERO = 0.3
#: From this many shapes on, the upper tail is exponential to 12 digits; differences of logarithms would lose more.
_FAR = 1e6
#: Up to here the mean of the truncated unit exponential is taken from its power series.
_SMALL = 0.2


class GammaInterval(NoisyLevels):
    """Levels of which each is an interval of g ~ Gamma(shape, 1), the noise or its inverse, for a given x."""

    shape: float
    needs = frozenset({"numpy"})

    @abstractmethod
    def _bounds(self, y: Any, x: Any) -> tuple[Array, Array]:
        """The interval of g at each cell, in double precision."""

    def pull_push(self, y: Any, x: Any) -> tuple[Any, Any]:
        return self.pull_push_cost(y, x)[:2]

    def divergence(self, y: Any, x: Any) -> Any:
        """-log p(y|x), which is 0 or larger: the best an x can do depends on the thresholds and is not subtracted."""
        return -log_mass(self.shape, *self._bounds(y, x)).astype(x.dtype)

    def mean(self, x: Any) -> Any:
        return super().mean(x).astype(x.dtype)

    def probabilities(self, x: Array) -> Array:
        """p(v | x) for every level v, along a last axis."""
        return np.exp(log_mass(self.shape, *self._bounds(np.arange(self.highest + 1), np.asarray(x)[..., None])))

    @staticmethod
    def shares_up_to(counts: Array) -> Array:
        """Shares of the cells at levels up to 0..V-1, by the cells at each level; no level is without a share."""
        return (np.cumsum(counts)[:-1] + 0.5) / (counts.sum() + 1.0)


@dataclass(frozen=True, eq=False)
class GammaNoise(GammaInterval):
    """P(y <= v | x) = P(shape, b_v / x), the incomplete gamma function  (Eq. 20 of `ordnmf-2020`).

    Level v is what x times noise g ~ Gamma(shape, 1) gives between the thresholds b_{v-1} and b_v; b_{-1} = 0 and
    b_V = inf. So at level v the noise is between b_{v-1} / x and b_v / x, and

        log p(v) = log of the mass of g there,    pull = E[g | v] / x,    push = shape / x

    Given the noise itself, log p is Itakura and Saito's, -shape log x - y* / x with y* = g x. Shape 1 is exponential
    noise, P(y > v) = exp(-b_v / x). The sum over unseen zeros has no closed form. `values` are the numbers that the
    levels 0..V stand for (themselves, if None). `learned` is for solvers that test whether a step of the thresholds
    raises the bound, which no sums over cells can guarantee; for all others they are fixed.
    """

    thresholds: Array
    shape: float = 1.0
    learned: bool = True
    values: Array | None = None

    state: ClassVar[StateSpec] = {
        "thresholds": ArraySpec("f", ("levels-1",), low=0.0, sorted=True),
        "shape": float,
        "learned": bool,
        "values": ArraySpec("fiu", ("levels",), optional=True),
    }
    push_is_inverse = True
    powers = (-1.0, 1.0)
    root = 4.0

    @property
    def name(self) -> str:
        return "exponential noise" if self.shape == 1.0 else "gamma noise"

    @property
    def highest(self) -> int:
        return self.thresholds.size

    @classmethod
    def from_histogram(cls, counts: Array, shape: float, x: float) -> Self:
        """Thresholds at which the levels 0..V have their observed shares if every cell has this x."""
        return cls(x * gammaincinv(shape, cls.shares_up_to(counts)), shape)

    def _bounds(self, y: Any, x: Any) -> tuple[Array, Array]:
        level, x = np.asarray(y).astype(np.int64), floored(np.asarray(x), self.root).astype(np.float64)
        edges = np.concatenate([[0.0], self.thresholds, [np.inf]])
        return edges[level] / x, edges[level + 1] / x

    def pull_push_cost(self, y: Any, x: Any) -> tuple[Any, Any, Any]:
        mass, mean = log_mass_and_mean(self.shape, *self._bounds(y, x))
        return (mean / floored(x, self.root)).astype(x.dtype), self.push(y, x), -mass.astype(x.dtype)

    def push(self, y: Any, x: Any) -> Any:
        return self.shape / floored(x, self.root)

    def above(self, level: int, x: Any) -> Any:
        return gammaincc(self.shape, self.thresholds[level] / floored(x, self.root))

    def threshold_derivatives(self, y: Any, x: Any) -> tuple[Array, ...]:
        """The first and second derivatives of log p by the logarithms of the thresholds, whose sums by level matter.

        With g f(g) the density of log g, p the level's mass and u, t = g f(g) / p at its lower and upper bound, they
        are -u and t;  -(shape - low) u - u^2,  (shape - high) t - t^2  and, of both, t u.
        """
        level, size = np.asarray(y).astype(np.int64), self.thresholds.size + 1
        low, high = self._bounds(y, x)
        u, t = densities_at_bounds(self.shape, low, high, log_mass(self.shape, low, high))
        high = np.where(level == size - 1, 0.0, high)  # where t is 0
        return -u, t, (low - self.shape - u) * u, (self.shape - high - t) * t, t * u

    def newton_step(self, derivatives: Array) -> Self:
        """After a Newton step in the logarithms of the thresholds, for fixed x.

        The sum of log p is concave in them, but a whole step may still be too long: the caller must test it, and go
        back to the `midpoint` until it helps.
        """
        lower, upper, of_lower, of_upper, of_both = derivatives.reshape(5, -1)
        slope = upper[:-1] + lower[1:]
        bend = -np.diag(of_upper[:-1] + of_lower[1:]) - np.diag(of_both[1:-1], 1) - np.diag(of_both[1:-1], -1)
        # Thresholds far from all x have next to no curvature: the diagonal keeps their steps finite.
        step = np.linalg.solve(bend + (1e-12 * np.abs(bend).max() + 1e-300) * np.eye(slope.size), slope)
        step *= _LONGEST_STEP / max(_LONGEST_STEP, float(np.abs(step).max()))
        while np.any(np.diff(self.thresholds * np.exp(step)) <= 0):
            step /= 2
        return replace(self, thresholds=np.maximum(self.thresholds * np.exp(step), _LOWEST))

    def midpoint(self, other: Self) -> Self:
        """With the geometric means of these and other thresholds."""
        return replace(self, thresholds=np.sqrt(self.thresholds * other.thresholds))


@dataclass(frozen=True, eq=False)
class InverseGammaNoise(GammaInterval, InverseThresholds):
    """P(y <= v | x) = Q(shape, theta_v x), the incomplete gamma function  (Eq. 20 of `ordnmf-2020`, for IG(shape, 1)).

    Level v is where g ~ Gamma(shape, 1), the inverse of the noise, lies between theta_v x and theta_{v-1} x, with
    theta_{-1} = inf and theta_V = 0. With f the density of g and D_v = theta_{v-1} - theta_v,

        log p(v) = log of the mass of g there,    push = theta_{v-1}  (theta_0 for level 0)
        pull = push + (theta_{v-1} f(theta_{v-1} x) - theta_v f(theta_v x)) / mass

    For shape > 1 the pull is never negative, and

        exp(theta_{v-1} x) p(v) ~ x^shape D_v * integral over 0 < u < 1 of (theta_v + u D_v)^(shape-1) exp((1-u) D_v x)
        exp(theta_0 x) p(0) ~ integral over s > 0 of (theta_0 x + s)^(shape-1) exp(-s)

    are log-convex in log x and log D, as sums and powers of such functions are: their tangents are lower bounds
    linear in the logarithms, conjugate to gamma posteriors, and the sums of E[n] by decrement give new decrements in
    closed form, as Eq. 35 does. Only shape 1, which is `Ordinal`, has zeros that are linear in x, so that unseen ones
    have a closed form. `values` are the numbers that the levels 0..V stand for (themselves, if None).

    Shapes below 1 can be evaluated, but not fitted: the slope of log p(0) at x = 0 is minus infinity, so that no
    constant push leaves a pull of 0 or more; and p(v) is no longer log-convex in log D. What still holds is in
    docs/methods.md.
    """

    decrements: Array
    shape: float
    learned: bool = True
    values: Array | None = None

    state: ClassVar[StateSpec] = {
        "decrements": ArraySpec("f", ("levels-1",), low=0.0),
        "shape": float,
        "learned": bool,
        "values": ArraySpec("fiu", ("levels",), optional=True),
    }
    name = "inverse-gamma noise"
    push_is_constant = True
    powers = (0.0, 1.0)
    alternative_for_zeros = "`OrdNMF` with its default noise"

    @classmethod
    def from_histogram(cls, counts: Array, shape: float, x: float) -> Self:
        """Decrements at which the levels 0..V have their observed shares if every cell has this x."""
        return cls(-np.diff(gammainccinv(shape, cls.shares_up_to(counts)) / x, append=0.0), shape)

    def _bounds(self, y: Any, x: Any) -> tuple[Array, Array]:
        level, x = np.asarray(y).astype(np.int64), floored(np.asarray(x), self.root).astype(np.float64)
        above = np.append(np.inf, self.theta)
        return self.theta[level] * x, above[level] * x

    def pull_push_cost(self, y: Any, x: Any) -> tuple[Any, Any, Any]:
        low, high = self._bounds(y, x)
        mass, push = log_mass(self.shape, low, high), self.push(y, x)
        at_low, at_high = densities_at_bounds(self.shape, low, high, mass)
        at = floored(np.asarray(x), self.root).astype(np.float64)
        pull = np.maximum(push + (at_high - at_low) / at, 0.0)  # rounding must not make it negative
        return pull.astype(x.dtype), push.astype(x.dtype), -mass.astype(x.dtype)

    def push(self, y: Any, x: Any) -> Any:
        theta = self.theta
        return np.append(theta[0], theta[:-1])[np.asarray(y).astype(np.int64)]

    def above(self, level: int, x: Any) -> Any:
        return gammainc(self.shape, self.theta[level] * x)

    @property
    def n_count_sums(self) -> int:
        return 2 * self.theta.size

    def count_terms(self, y: Any, counts: Any) -> CellTerms:
        raise NotImplementedError("Decrements are refitted by `count_terms_at`.")

    def count_terms_at(self, y: Any, x: Any, pull: Any) -> CellTerms:
        """By level: E[n] / D_l of a cell's own decrement, x (1 + f(high) / mass), and that of the decrements above it,
        x (1 + (f(high) - f(low)) / mass)."""
        low, high = self._bounds(y, x)
        at_low, at_high = densities_at_bounds(self.shape, low, high, log_mass(self.shape, low, high))
        own = x + np.divide(at_high, high, out=np.zeros_like(high), where=np.isfinite(high)) * x
        f_low = np.divide(at_low, low, out=np.zeros_like(low), where=low > 0)  # f(0) = 0
        return (), (own, np.maximum(own - f_low * x, 0.0))

    def refit(self, of_counts: Array, of_means: Array, unseen_mean: float) -> Self:
        """D_l <- D_l (own of level l + above of lower levels) / sum of E[x] at levels up to l, as in Eq. 35."""
        own, above = np.split(of_counts, 2)
        counts = self.decrements * (own[1:] + np.cumsum(above)[:-1])
        below = np.cumsum(of_means)[1:]
        return replace(self, decrements=counts / below) if np.all(below > 0) and np.all(counts > 0) else self


def log_mass_and_mean(shape: float, low: Array, high: Array) -> tuple[Array, Array]:
    """log P(low < g < high), and E[g | low < g < high]."""
    mass = log_mass(shape, low, high)
    if shape == 1.0:
        return mass, low + _exponential_mean(high - low)
    at_low, at_high = densities_at_bounds(shape, low, high, mass)
    mean = shape + at_low - at_high
    cancelled = high < _NEAR_ZERO * shape
    above = log_mass(shape + 1.0, low[cancelled], high[cancelled])
    mean[cancelled] = shape * np.exp(above - mass[cancelled])
    far = low > _FAR * max(shape, 1.0)
    mean[far] = low[far] + _exponential_mean(high[far] - low[far])
    return mass, np.clip(mean, low, high)  # rounding must not leave the interval


def densities_at_bounds(shape: float, low: Array, high: Array, mass: Array) -> tuple[Array, Array]:
    """g f(g) / mass, the density of log g, at both bounds; `mass` is its logarithm."""
    from_zero, to_infinity = low == 0, np.isposinf(high)
    at_low = log_density(shape, np.where(from_zero, 1.0, low)) - mass
    at_high = log_density(shape, np.where(to_infinity, 1.0, high)) - mass
    return np.exp(np.where(from_zero, -np.inf, at_low)), np.exp(np.where(to_infinity, -np.inf, at_high))


def log_mass(shape: float, low: Array, high: Array) -> Array:
    """log P(low < g < high)."""
    if shape == 1.0:
        return np.log(-np.expm1(low - high)) - low
    mass = np.empty(low.shape)
    bounded = (low > 0) & np.isfinite(high)
    a, b = np.where(bounded, low, 1.0), np.where(bounded, high, 3.0)
    narrow = bounded & (b - a < _NARROW) & (abs(shape - 1.0) * np.log(b / a) < _NARROW) & (b < 2.0 * a)
    upper = (low > max(shape, _SLOW)) & ~narrow
    lower = ~(upper | narrow)
    mass[narrow] = _log_narrow(shape, low[narrow], high[narrow])
    mass[upper] = _log_difference(_log_upper(shape, low[upper]), _log_upper(shape, high[upper]))
    mass[lower] = _log_difference(_log_lower(shape, high[lower]), _log_lower(shape, low[lower]))
    return mass


def log_density(shape: float, g: Array) -> Array:
    """log of g f(g), the density of log g."""
    return shape * np.log(g) - g - gammaln(shape)


def _exponential_mean(width: Array) -> Array:
    """E[g | g < width] = 1 - width / (e^width - 1) of the unit exponential."""
    d = np.minimum(width, _SMALL)
    series = d * (1 / 2 - d * (1 / 12 - d**2 * (1 / 720 - d**2 * (1 / 30240 - d**2 / 1209600))))
    at = np.clip(width, _SMALL, 700.0)
    return np.where(width < _SMALL, series, 1.0 - at / np.expm1(at))


def _log_narrow(shape: float, low: Array, high: Array) -> Array:
    """By Gauss-Legendre quadrature, relative to the density at the midpoint."""
    middle, half = 0.5 * (high + low), 0.5 * (high - low)
    offset = half * _NODES[:, None]
    relative = np.exp((shape - 1.0) * np.log1p(offset / middle) - offset)
    return log_density(shape, middle) - np.log(middle) + np.log(half * (_WEIGHTS @ relative))


def _log_difference(larger: Array, smaller: Array) -> Array:
    """log(e^larger - e^smaller)."""
    return larger + np.log(-np.expm1(smaller - larger))


def _log_upper(shape: float, z: Array) -> Array:
    """log Q(shape, z); far out by the continued fraction of Abramowitz & Stegun 6.5.31."""
    mass = gammaincc(shape, z)
    faint = (mass < _FAINT) & np.isfinite(z)
    logs = np.log(np.where(mass < _FAINT, 1.0, mass))
    logs[np.isposinf(z)] = -np.inf
    far = z[faint]
    fraction = far + (2 * _STEPS + 1 - shape)
    for step in range(_STEPS, 0, -1):
        fraction = far + (2 * step - 1 - shape) - step * (step - shape) / fraction
    logs[faint] = log_density(shape, far) - np.log(fraction)
    return logs


def _log_lower(shape: float, z: Array) -> Array:
    """log P(shape, z); near 0 by its series z^shape e^-z 1F1(1, shape + 1, z) / gamma(shape + 1)."""
    mass = gammainc(shape, z)
    faint = (mass < _FAINT) & (z > 0)
    logs = np.log(np.where(mass < _FAINT, 1.0, mass))
    logs[z == 0] = -np.inf
    near = z[faint]
    logs[faint] = log_density(shape, near) - np.log(shape) + np.log(hyp1f1(1.0, shape + 1.0, near))
    return logs
