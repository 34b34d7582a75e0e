"""The generalised inverse-Gaussian distribution, w^(shape - 1) exp(-rate w - inverse_rate / w) / Z.

With z = 2 sqrt(rate inverse_rate), s = sqrt(inverse_rate / rate) and R = K_{shape - 1}(z) / K_shape(z), where K are the
modified Bessel functions of the second kind,

    Z = 2 s^shape K_shape(z),    E[w] = shape / rate + s R,    1 / E[1 / w] = s / R

With inverse_rate = 0 it is Gamma(shape, rate), whose E[1 / w] is endless for shapes up to 1.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln, kve

from halfseen.arrays import Array

#: Above this the Bessel functions are taken from the first terms of their series for large z, then exact to 1e-16.
_LARGE = 1e8
#: Where the density has fallen to e^-40 of its top, nothing is left of it.
_DEEP = 40.0
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(48)
#: Below this z the distribution is Gamma(shape, rate), to all digits.
_STILL = 1e-300


class Moments(NamedTuple):
    """log Z, E[w], 1 / E[1 / w], and inverse_rate * E[1 / w]."""

    log_norm: Array
    mean: Array
    harmonic: Array
    inverse_part: Array


def moments(shape: float, rate: Array, root: Array) -> Moments:
    """Of every entry; `root` is the square root of the inverse rate, which itself might be too small a number."""
    z, s = 2.0 * np.sqrt(rate) * root, root / np.sqrt(rate)
    still = z < _STILL
    log_bessel, ratio = _log_bessel_and_ratio(shape, np.where(still, 1.0, z))
    harmonic = np.where(still, max(shape - 1.0, 0.0) / rate, s / ratio)
    log_norm = np.log(2.0) + shape * np.log(np.where(still, 1.0, s)) + log_bessel
    log_norm = np.where(still, gammaln(shape) - shape * np.log(rate), log_norm)
    return Moments(log_norm, shape / rate + s * ratio, harmonic, np.where(still, 0.0, 0.5 * z * ratio))


def _log_bessel_and_ratio(shape: float, z: Array) -> tuple[Array, Array]:
    """log K_shape(z), and R = K_{shape - 1}(z) / K_shape(z)."""
    near = np.minimum(z, _LARGE)
    lower, bessel = kve(abs(shape - 1.0), near), kve(shape, near)
    endless = np.isinf(bessel)  # of shapes above 1, next to 0: the first terms of the series are enough
    first = gammaln(shape) - np.log(2.0) + shape * np.log(2.0 / z)
    log_bessel = np.where(endless, first, np.log(np.where(endless, 1.0, bessel)) - near)
    log_bessel -= np.where(z > _LARGE, z - near + 0.5 * np.log(z / near), 0.0)
    ratio = np.where(endless, 0.5 * z / max(shape - 1.0, 1e-3), lower / np.where(endless, 1.0, bessel))
    return log_bessel, np.where(z > _LARGE, 1.0 + (0.5 - shape) / z, ratio)


def draw(shape: float, rate: Array, inverse_rate: Array, random: np.random.Generator) -> Array:
    """A draw of every entry, by rejection under a lid that is flat in the middle and exponential on both sides."""
    mode, p = _mode_and_excess(shape, rate, inverse_rate)
    lid = _Lid(shape, p.reshape(-1))
    v, left = np.empty(p.size), np.arange(p.size)
    while left.size:
        proposed, accepted = lid.propose(left, random)
        v[left[accepted]] = proposed[accepted]
        left = left[~accepted]
    drawn: Array = mode * np.exp(v.reshape(p.shape))
    return drawn


def quantile(shape: float, rate: Array, inverse_rate: Array, part: float) -> Array:
    """Below which number this part of every entry's mass is: bisection, then Newton's steps, on sums over 96 points."""
    mode, p = _mode_and_excess(shape, rate, inverse_rate)
    lowest, highest = -(_DEEP / shape + 1.0), np.log1p(_DEEP / shape) + 3.0
    ends = [
        _bisected(lambda v: _psi(shape, p, v) < -_DEEP, np.zeros_like(p), end + 0.0 * p) for end in (lowest, highest)
    ]
    wanted = part * _mass(shape, p, *ends)
    low = _bisected(lambda v: _mass(shape, p, ends[0], v) > wanted, ends[0], ends[1], halvings=12)
    for _ in range(4):
        low = low - (_mass(shape, p, ends[0], low) - wanted) * np.exp(-_psi(shape, p, low))
    found: Array = mode * np.exp(low)
    return found


def _mode_and_excess(shape: float, rate: Array, inverse_rate: Array) -> tuple[Array, Array]:
    """The mode of w in the scale of logarithms, and p in the density e^psi of v = log(w / mode)  (Devroye 2014):

    psi(v) = -p (cosh(v) - 1) - shape (e^v - v - 1),    p = sqrt(shape^2 + 4 rate inverse_rate) - shape,

    which is concave.
    """
    square = 4.0 * rate * inverse_rate
    p = square / (np.sqrt(shape**2 + square) + shape)
    return (2.0 * shape + p) / (2.0 * rate), p


def _psi(shape: float, p: Array, v: Array) -> Array:
    away = np.minimum(np.abs(v), 700.0)  # farther out it is no number any more
    return -p * (np.cosh(away) - 1.0) - shape * (np.expm1(v) - v)


def _mass(shape: float, p: Array, low: Array, high: Array) -> Array:
    """The integral of e^psi from low to high, on both sides of the mode at 0."""
    total = np.zeros_like(p)
    for start, end in ((low, np.minimum(high, 0.0)), (np.maximum(low, 0.0), high)):
        half = np.maximum(0.5 * (end - start), 0.0)
        for node, weight in zip(_NODES, _WEIGHTS, strict=True):
            total += weight * half * np.exp(_psi(shape, p, start + half * (node + 1.0)))
    return total


def _bisected(is_beyond: Callable[[Array], Array], inside: Array, beyond: Array, halvings: int = 40) -> Array:
    """How far one can go from inside towards beyond."""
    for _ in range(halvings):
        middle = 0.5 * (inside + beyond)
        out = is_beyond(middle)
        inside, beyond = np.where(out, inside, middle), np.where(out, middle, beyond)
    return inside


class _Lid:
    """Where Devroye's lid bends, left and right of the mode, how steep it is there, and its three areas."""

    def __init__(self, shape: float, p: Array) -> None:
        self.shape, self.p = shape, p
        drop = -_psi(shape, p, np.ones_like(p))
        right = np.where(drop > 2.0, np.sqrt(2.0 / (p + shape)), np.where(drop < 0.5, np.log(4 / (p + 2 * shape)), 1.0))
        drop = -_psi(shape, p, -np.ones_like(p))
        inverse = 1.0 / np.maximum(p, 1e-8)
        wide = np.minimum(1.0 / shape, np.log1p(inverse + np.sqrt(inverse**2 + 2.0 * inverse)))
        left = np.where(drop > 2.0, np.sqrt(4.0 / (p * np.cosh(1.0) + shape)), np.where(drop < 0.5, wide, 1.0))
        self.right, self.left = right, -left
        self.fall, self.rise = -self._slope(self.right), self._slope(self.left)
        self.flat_right = right + _psi(shape, p, self.right) / self.fall
        self.flat_left = -left - _psi(shape, p, self.left) / self.rise

    def _slope(self, v: Array) -> Array:
        return -self.p * np.sinh(v) - self.shape * np.expm1(v)

    def propose(self, at: Array, random: np.random.Generator) -> tuple[Array, Array]:
        """A point under the lid for each of these entries, and whether it is under e^psi too."""
        u, height = random.random((2, at.size))
        tail = random.standard_exponential(at.size)
        flat = self.flat_right[at] - self.flat_left[at]
        to_right, to_left = tail / self.fall[at], tail / self.rise[at]
        u *= flat + 1.0 / self.fall[at] + 1.0 / self.rise[at]
        middle, is_right = u < flat, u < flat + 1.0 / self.fall[at]
        beside = np.where(is_right, self.flat_right[at] + to_right, self.flat_left[at] - to_left)
        v = np.where(middle, self.flat_left[at] + u, beside)
        log_lid = np.where(middle, 0.0, -tail)
        return v, np.log(height) + log_lid <= _psi(self.shape, self.p[at], v)
