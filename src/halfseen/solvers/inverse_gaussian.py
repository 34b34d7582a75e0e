"""Variational inference with gamma priors where x divides (Hoffman, Blei & Cook 2010, GaP-NMF, for Itakura-Saito).

For a likelihood whose push is c / x, with log p(y|x) + c log x the logarithm of a sum of exp(-s / x), each entry's
posterior is the generalised inverse-Gaussian q(w) ~ w^(a - 1) exp(-rate w - inverse_rate / w) with

    rate = b + sum of push * E[h],    inverse_rate = w^2 * sum of pull * h    at harmonic means w = 1 / E[1 / w], and h

where the pulls are taken at the harmonic x^ = w @ h, and the pushes at the mean x = <E[w], E[h]>. This is coordinate
ascent on the bound that Jensen's inequality, E[-s / x] >= -s / x^, and a tangent, E[-log x] >= -log <E[w], E[h]>, give:

    ELBO = sum of (log p(y|x^) - c log(<E[w], E[h]> / x^)) + sum of (E[log p(w)] - E[log q(w)]),

which therefore never falls. An entry whose harmonic mean has come down to 0 has its prior's shape left, and no pull.

The generalised inverse-Gaussian distribution, w^(shape - 1) exp(-rate w - inverse_rate / w) / Z, is at the end of the
module. With z = 2 sqrt(rate inverse_rate), s = sqrt(inverse_rate / rate) and R = K_{shape - 1}(z) / K_shape(z), where K
are the modified Bessel functions of the second kind,

    Z = 2 s^shape K_shape(z),    E[w] = shape / rate + s R,    1 / E[1 / w] = s / R

With inverse_rate = 0 it is Gamma(shape, rate), whose E[1 / w] is infinite for shapes up to 1.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaln, kve

from halfseen.arrays import Array, floored
from halfseen.engines import Side
from halfseen.likelihoods import Likelihood
from halfseen.likelihoods.rules import CellParams, Terms, weighted
from halfseen.solvers.base import NON_NEGATIVE, POSITIVE_OR_INFINITE, State, flush_to_zero, stored_as
from halfseen.solvers.gamma import Variational
from halfseen.solvers.problem import Problem

#: Largest number of halvings of a step of the likelihood's parameters in one epoch.
_MAX_HALVINGS = 8

#: Above this the Bessel functions are taken from the first terms of their series for large z, then exact to 1e-16.
_LARGE = 1e8
#: Where the density has fallen to e^-40 of its maximum, the rest is negligible.
_DEEP = 40.0
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(48)
#: Below this z the distribution is Gamma(shape, rate), to all digits.
_GAMMA_BELOW = 1e-300


@stored_as(
    shape=POSITIVE_OR_INFINITE,
    rate=POSITIVE_OR_INFINITE,
    inverse_rate=replace(NON_NEGATIVE, finite=False),
    mean=NON_NEGATIVE,
    harmonic=NON_NEGATIVE,
)
class InverseGaussianFactor(NamedTuple):
    """A factor whose entries are generalised inverse-Gaussian, with their means and harmonic means 1 / E[1 / w].

    Shape and rates are infinite before the first epoch: a distribution without spread."""

    shape: Any
    rate: Any
    inverse_rate: Any
    mean: Any
    harmonic: Any

    @property
    def plug_in(self) -> Any:
        return self.harmonic

    @property
    def extrapolated(self) -> tuple[str, ...]:
        return "mean", "harmonic"

    def sample(self, random: np.random.Generator) -> Array:
        """A draw of every entry."""
        return self._map(lambda shape, rate, inverse_rate: gig_sample(shape, rate, inverse_rate, random))

    def quantile(self, p: float) -> Array:
        """The p-quantile of every entry."""
        return self._map(lambda shape, rate, inverse_rate: gig_quantile(shape, rate, inverse_rate, p))

    def _map(self, function: Callable[..., Array]) -> Array:
        """A function of shape, rate and inverse rate; the mean where there is no spread yet."""
        spread = np.isfinite(self.rate)
        values: Array = self.mean.copy()
        if spread.any():
            rates = (array[spread].astype(np.float64) for array in (self.rate, self.inverse_rate))
            values[spread] = function(float(self.shape[spread][0]), *rates)
        return values


class InverseGaussian(Variational[InverseGaussianFactor]):
    """Alternating: both x are recomputed between the rows' half-step and the columns'; the likelihood is updated last.

    Its Bessel functions are SciPy's: it needs an engine with NumPy arrays.
    """

    name = "inverse-Gaussian"
    needs = frozenset({"numpy"})

    def check(self, likelihood: Likelihood) -> None:
        need = "whose push is a constant divided by x, such as that of gamma noise"
        self._require(likelihood.push_is_inverse, likelihood, need)

    def init_state(self, problem: Problem, W: Array, H: Array) -> State[InverseGaussianFactor]:
        # The bound of a start without a distribution is not defined: any first epoch gains.
        return self.state_at(problem, self.init_factor(W), self.init_factor(H))

    def state_at(
        self, problem: Problem, rows: InverseGaussianFactor, columns: InverseGaussianFactor
    ) -> State[InverseGaussianFactor]:
        return State(rows, columns, None, -np.inf, problem.likelihood)

    def init_factor(self, factor: Array) -> InverseGaussianFactor:
        """The harmonic means equal the means: a distribution without spread."""
        infinite = np.broadcast_to(np.asarray(np.inf, dtype=factor.dtype), factor.shape)
        return InverseGaussianFactor(infinite, infinite, infinite, factor, factor)

    def epoch(
        self, problem: Problem, state: State[InverseGaussianFactor], *, for_next: bool = True
    ) -> State[InverseGaussianFactor]:
        problem = problem.with_likelihood(state.likelihood)
        rows, row_gain = self._update(problem, state.rows, state.columns, Side.ROWS)
        columns, column_gain = self._update(problem, state.columns, rows, Side.COLUMNS)
        x = problem.engine.sddmm(problem.cells, rows.harmonic, columns.harmonic)
        means = problem.engine.sddmm(problem.cells, rows.mean, columns.mean)
        problem, gain = self._update_likelihood(problem, x, means)
        return State(rows, columns, None, gain + row_gain + column_gain, problem.likelihood)

    def half_step(
        self, problem: Problem, near: InverseGaussianFactor, far: InverseGaussianFactor, side: Side
    ) -> InverseGaussianFactor:
        return self._update(problem, near, far, side)[0]

    def _update(
        self, problem: Problem, near: InverseGaussianFactor, far: InverseGaussianFactor, side: Side
    ) -> tuple[InverseGaussianFactor, float]:
        """The side's new distribution, and its prior and entropy terms of the bound."""
        prior = self.priors[side]
        rows, columns = (near, far) if side is Side.ROWS else (far, near)
        P, Q = (
            (sums.rows or sums.columns)[0]
            for sums in (
                problem.sweep(pull_alone, rows.harmonic, columns.harmonic, side),
                problem.sweep(push_alone, rows.mean, columns.mean, side),
            )
        )
        b = np.full((len(P), 1), prior.rates(near.mean), P.dtype)
        params = (prior.shape, float(gammaln(prior.shape)))
        arrays, gain = problem.engine.map(inverse_gaussian_posterior, params, P, Q, near.harmonic, b)
        shape = np.broadcast_to(np.asarray(prior.shape, dtype=P.dtype), P.shape)
        return InverseGaussianFactor(shape, *arrays), float(gain[0])

    def _update_likelihood(self, problem: Problem, x: Any, means: Any) -> tuple[Problem, float]:
        """Step the likelihood's parameters towards the best for x^, if that gains; and the cells' part of the bound."""
        gain, likelihood = _bound_of_cells(problem, x, means), problem.likelihood
        if not getattr(likelihood, "learned", False):
            return problem, gain
        new: Any = likelihood
        cells, n_levels = problem.cells, new.highest + 1
        _, sums = problem.engine.map(threshold_terms, new, cells.y, x, cells.weights, n_levels=n_levels)
        new = new.newton_step(sums)
        for _ in range(_MAX_HALVINGS):
            if (new_gain := _bound_of_cells(problem.with_likelihood(new), x, means)) >= gain:
                return problem.with_likelihood(new), new_gain
            new = new.midpoint(likelihood)
        return problem, gain

    def default_factor(self, average: Array, count: int, side: Side) -> InverseGaussianFactor:
        """The prior around the average: a row without data is as uncertain as the prior."""
        mean = np.repeat(np.maximum(average, np.finfo(average.dtype).tiny ** 0.5)[None], count, axis=0)
        shape = np.full_like(mean, self.priors[side].shape)
        harmonic = np.maximum(1.0 - 1.0 / shape, 0.0) * mean
        return InverseGaussianFactor(shape, shape / mean, np.zeros_like(mean), mean, harmonic)


def pull_alone(params: CellParams, y: Any, x: Any, weight: Any, first: Any) -> Terms:
    """The pull."""
    return weighted(weight, (params.likelihood.pull_push(y, x)[0],))


def push_alone(params: CellParams, y: Any, x: Any, weight: Any, first: Any) -> Terms:
    """The push."""
    return weighted(weight, (params.likelihood.push(y, x),))


def inverse_gaussian_posterior(params: tuple[float, float], P: Any, Q: Any, harmonic: Any, b: Any) -> Terms:
    """The posterior of every entry; the total is E[log p(w)] - E[log q(w)]: both have (a - 1) E[log w]."""
    a, log_gamma_a = params
    dtype = P.dtype
    P, Q, harmonic, b = (array.astype(np.float64) for array in (P, Q, harmonic, b))
    root, rate = harmonic * np.sqrt(P), b + Q
    log_norm, mean, harmonic, inverse_part = gig_moments(a, rate, root)
    gain = a * np.log(b) - log_gamma_a + log_norm + Q * mean + inverse_part
    rate, inverse_rate, mean, harmonic = (array.astype(dtype) for array in (rate, root**2, mean, harmonic))
    return Terms((rate, inverse_rate, mean, flush_to_zero(harmonic)), (gain.sum(axis=1),))


def threshold_terms(likelihood: Any, y: Any, x: Any, weight: Any) -> Terms:
    """By level: derivatives of log p by the logarithms of the thresholds."""
    return weighted(weight, (), (), likelihood.threshold_derivatives(y, x))


def local_bound(likelihood: Any, y: Any, x: Any, weight: Any, mean: Any) -> Terms:
    """log p(y|x) - c log(mean x / x) at the harmonic x, where the push is c / x."""
    x = floored(x, likelihood.root)
    return weighted(weight, (), (likelihood.push(y, x) * x * np.log(x / mean) - likelihood.divergence(y, x),))


def _bound_of_cells(problem: Problem, x: Any, means: Any) -> float:
    cells = problem.cells
    _, (gain,) = problem.engine.map(local_bound, problem.likelihood, cells.y, x, cells.weights, means)
    return float(gain) + problem.saturated


class GigMoments(NamedTuple):
    """log Z, E[w], 1 / E[1 / w], and inverse_rate * E[1 / w]."""

    log_norm: Array
    mean: Array
    harmonic: Array
    inverse_part: Array


def gig_moments(shape: float, rate: Array, root: Array) -> GigMoments:
    """Moments of every entry; `root` is the square root of the inverse rate, which itself might underflow."""
    z, s = 2.0 * np.sqrt(rate) * root, root / np.sqrt(rate)
    is_gamma = z < _GAMMA_BELOW
    log_bessel, ratio = _log_bessel_and_ratio(shape, np.where(is_gamma, 1.0, z))
    harmonic = np.where(is_gamma, max(shape - 1.0, 0.0) / rate, s / ratio)
    log_norm = np.log(2.0) + shape * np.log(np.where(is_gamma, 1.0, s)) + log_bessel
    log_norm = np.where(is_gamma, gammaln(shape) - shape * np.log(rate), log_norm)
    return GigMoments(log_norm, shape / rate + s * ratio, harmonic, np.where(is_gamma, 0.0, 0.5 * z * ratio))


def _log_bessel_and_ratio(shape: float, z: Array) -> tuple[Array, Array]:
    """log K_shape(z), and R = K_{shape - 1}(z) / K_shape(z)."""
    near = np.minimum(z, _LARGE)
    lower, bessel = kve(abs(shape - 1.0), near), kve(shape, near)
    overflows = np.isinf(bessel)  # of shapes above 1, next to 0: the first terms of the series are enough
    first = gammaln(shape) - np.log(2.0) + shape * np.log(2.0 / z)
    log_bessel = np.where(overflows, first, np.log(np.where(overflows, 1.0, bessel)) - near)
    log_bessel -= np.where(z > _LARGE, z - near + 0.5 * np.log(z / near), 0.0)
    ratio = np.where(overflows, 0.5 * z / max(shape - 1.0, 1e-3), lower / np.where(overflows, 1.0, bessel))
    return log_bessel, np.where(z > _LARGE, 1.0 + (0.5 - shape) / z, ratio)


def gig_sample(shape: float, rate: Array, inverse_rate: Array, random: np.random.Generator) -> Array:
    """A draw of every entry, by rejection from an envelope that is flat in the middle and exponential on both sides."""
    mode, p = _mode_and_excess(shape, rate, inverse_rate)
    envelope = _Envelope(shape, p.reshape(-1))
    v, left = np.empty(p.size), np.arange(p.size)
    while left.size:
        proposed, accepted = envelope.propose(left, random)
        v[left[accepted]] = proposed[accepted]
        left = left[~accepted]
    draws: Array = mode * np.exp(v.reshape(p.shape))
    return draws


def gig_quantile(shape: float, rate: Array, inverse_rate: Array, probability: float) -> Array:
    """A quantile of every entry: bisection, then Newton's method, on sums over 96 points."""
    mode, p = _mode_and_excess(shape, rate, inverse_rate)
    lowest, highest = -(_DEEP / shape + 1.0), np.log1p(_DEEP / shape) + 3.0
    ends = [
        _bisected(lambda v: _psi(shape, p, v) < -_DEEP, np.zeros_like(p), end + 0.0 * p) for end in (lowest, highest)
    ]
    goal = probability * _mass(shape, p, *ends)
    low = _bisected(lambda v: _mass(shape, p, ends[0], v) > goal, ends[0], ends[1], halvings=12)
    for _ in range(4):
        low = low - (_mass(shape, p, ends[0], low) - goal) * np.exp(-_psi(shape, p, low))
    quantile: Array = mode * np.exp(low)
    return quantile


def _mode_and_excess(shape: float, rate: Array, inverse_rate: Array) -> tuple[Array, Array]:
    """The mode of w on the scale of logarithms, and p in the density e^psi of v = log(w / mode)  (Devroye 2014):

    psi(v) = -p (cosh(v) - 1) - shape (e^v - v - 1),    p = sqrt(shape^2 + 4 rate inverse_rate) - shape,

    which is concave.
    """
    square = 4.0 * rate * inverse_rate
    p = square / (np.sqrt(shape**2 + square) + shape)
    return (2.0 * shape + p) / (2.0 * rate), p


def _psi(shape: float, p: Array, v: Array) -> Array:
    away = np.minimum(np.abs(v), 700.0)  # farther out cosh overflows
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
    """The boundary between inside and beyond, by bisection."""
    for _ in range(halvings):
        middle = 0.5 * (inside + beyond)
        out = is_beyond(middle)
        inside, beyond = np.where(out, inside, middle), np.where(out, middle, beyond)
    return inside


class _Envelope:
    """Devroye's envelope: its two tangent points, left and right of the mode, its slopes there, and its flat part."""

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
        """A point under the envelope for each of these entries, and whether it is under e^psi too."""
        u, height = random.random((2, at.size))
        tail = random.standard_exponential(at.size)
        flat = self.flat_right[at] - self.flat_left[at]
        to_right, to_left = tail / self.fall[at], tail / self.rise[at]
        u *= flat + 1.0 / self.fall[at] + 1.0 / self.rise[at]
        middle, is_right = u < flat, u < flat + 1.0 / self.fall[at]
        beside = np.where(is_right, self.flat_right[at] + to_right, self.flat_left[at] - to_left)
        v = np.where(middle, self.flat_left[at] + u, beside)
        log_envelope = np.where(middle, 0.0, -tail)
        return v, np.log(height) + log_envelope <= _psi(self.shape, self.p[at], v)
