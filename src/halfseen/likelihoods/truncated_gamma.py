"""A gamma variable g ~ Gamma(shape, 1) between two bounds: the logarithm of its mass there, and its mean.

    mass = P(shape, high) - P(shape, low) = Q(shape, low) - Q(shape, high),    P + Q = 1, regularised incomplete gammas
    mean = shape * mass at shape + 1 / mass at shape = shape + (low f(low) - high f(high)) / mass,    f the density

Differences are taken in the tail in which both ends lie, and of logarithms, so that nothing is lost where the masses
themselves are no numbers any more. Bounds may be 0 and infinite.
"""

import numpy as np
from scipy.special import gammainc, gammaincc, gammaln, hyp1f1

from halfseen.arrays import Array

#: Below this the incomplete gamma functions are near the end of the numbers, and their logarithms come from elsewhere.
_FAINT = 1e-280
#: Where the logarithm of the density changes by less than this, a few points of it are enough.
_NARROW = 1.0
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(12)
#: Steps of the continued fraction, which is used far out only, where five would do.
_STEPS = 20
#: Up to here SciPy takes long to find Q, which is not yet so small that P would not do.
_SLOW = 1.2
#: Up to this part of the shape the difference of densities would cancel all but a little of it.
_NEAR_ZERO = 0.3
#: From this many shapes on, what lies above is exponential to 12 digits; differences of logarithms would lose more.
_FAR = 1e6
#: Up to here the mean of the unit exponential within its bounds is taken from its power series.
_SMALL = 0.2


def log_mass_and_mean(shape: float, low: Array, high: Array) -> tuple[Array, Array]:
    """log P(low < g < high), and E[g | low < g < high]."""
    mass = log_mass(shape, low, high)
    if shape == 1.0:
        return mass, low + _exponential_mean(high - low)
    at_low, at_high = densities_at_bounds(shape, low, high, mass)
    mean = shape + at_low - at_high
    cancelled = high < _NEAR_ZERO * shape
    mean[cancelled] = _mean_by_ratio(shape, low[cancelled], high[cancelled], mass[cancelled])
    far = low > _FAR * max(shape, 1.0)
    mean[far] = low[far] + _exponential_mean(high[far] - low[far])
    return mass, np.clip(mean, low, high)  # rounding must not leave the interval


def densities_at_bounds(shape: float, low: Array, high: Array, mass: Array) -> tuple[Array, Array]:
    """g f(g) / mass, the density of log g, at both bounds; `mass` is its logarithm."""
    from_zero, to_infinity = low == 0, np.isposinf(high)
    at_low = log_density(shape, np.where(from_zero, 1.0, low)) - mass
    at_high = log_density(shape, np.where(to_infinity, 1.0, high)) - mass
    return np.exp(np.where(from_zero, -np.inf, at_low)), np.exp(np.where(to_infinity, -np.inf, at_high))


def _mean_by_ratio(shape: float, low: Array, high: Array, mass: Array) -> Array:
    return shape * np.exp(log_mass(shape + 1.0, low, high) - mass)


def log_mass(shape: float, low: Array, high: Array) -> Array:
    """log P(low < g < high)."""
    if shape == 1.0:
        return np.log(-np.expm1(low - high)) - low
    mass = np.empty(low.shape)
    narrow = _is_narrow(shape, low, high)
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


def _is_narrow(shape: float, low: Array, high: Array) -> Array:
    bounded = (low > 0) & np.isfinite(high)
    low, high = np.where(bounded, low, 1.0), np.where(bounded, high, 3.0)
    return bounded & (high - low < _NARROW) & (abs(shape - 1.0) * np.log(high / low) < _NARROW) & (high < 2.0 * low)


def _log_narrow(shape: float, low: Array, high: Array) -> Array:
    """By Gauss and Legendre's rule, relative to the density in the middle."""
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
