"""Ordered levels 0..V as the quantised product of x and gamma noise, the other likelihood of OrdNMF's section 3.1."""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from scipy.special import gammaincc, gammaincinv

from halfseen.arrays import Array, floored
from halfseen.likelihoods.base import Likelihood
from halfseen.likelihoods.truncated_gamma import densities_at_bounds, log_mass, log_mass_and_mean
from halfseen.observed import Observed

#: By how much the logarithm of a threshold moves at most in one step.
_LONGEST_STEP = 1.0
#: Where a threshold stops that would go to 0, because no cell is below it.
_LOWEST = 1e-200


@dataclass(frozen=True, eq=False)
class GammaNoise(Likelihood):
    """P(y <= v | x) = P(shape, b_v / x), the incomplete gamma function  (Eq. 20 of `ordnmf-2020`).

    Level v is what x times noise g ~ Gamma(shape, 1) gives between the thresholds b_{v-1} and b_v; b_{-1} = 0 and
    b_V = inf. So at level v the noise is between b_{v-1} / x and b_v / x, and

        log p(v) = log of the mass of g there,    pull = E[g | v] / x,    push = shape / x

    Given the noise itself, log p is Itakura and Saito's, -shape log x - y* / x with y* = g x. Shape 1 is exponential
    noise, P(y > v) = exp(-b_v / x). No sum over unseen zeros has a closed form. `values` are what the levels 0..V stand
    for (themselves, if None). `learned` is for solvers that look whether a step of the thresholds gains anything, which
    no sums over cells can promise; to all others they are fixed.
    """

    thresholds: Array
    shape: float = 1.0
    learned: bool = True
    values: Array | None = None

    push_is_inverse = True
    powers = (-1.0, 1.0)
    root = 4.0
    domain = "Ordinal levels must be integers 0..V."
    remedy = "Round the values, or use WeightedNMF."

    @property
    def name(self) -> str:  # type: ignore[override]
        return "exponential noise" if self.shape == 1.0 else "gamma noise"

    @classmethod
    def from_histogram(cls, counts: Array, shape: float, x: float) -> Self:
        """Thresholds that give the levels 0..V the shares that they have, if every cell had this x."""
        shares = (np.cumsum(counts)[:-1] + 0.5) / (counts.sum() + 1.0)  # no level is without a share
        return cls(x * gammaincinv(shape, shares), shape)

    def _bounds(self, y: Any, x: Any) -> tuple[Array, Array]:
        """Between which numbers the noise lies at each cell, in double precision."""
        level, x = np.asarray(y).astype(np.int64), floored(np.asarray(x), self.root).astype(np.float64)
        edges = np.concatenate([[0.0], self.thresholds, [np.inf]])
        return edges[level] / x, edges[level + 1] / x

    def pull_push(self, y: Any, x: Any) -> tuple[Any, Any]:
        return self.pull_push_cost(y, x)[:2]

    def pull_push_cost(self, y: Any, x: Any) -> tuple[Any, Any, Any]:
        mass, mean = log_mass_and_mean(self.shape, *self._bounds(y, x))
        return (mean / floored(x, self.root)).astype(x.dtype), self.push(y, x), -mass.astype(x.dtype)

    def push(self, y: Any, x: Any) -> Any:
        return self.shape / floored(x, self.root)

    def divergence(self, y: Any, x: Any) -> Any:
        """-log p(y|x), which is 0 or larger: the best an x can do depends on the thresholds, and is not taken off."""
        return -log_mass(self.shape, *self._bounds(y, x)).astype(x.dtype)

    def saturated(self, y: Array) -> Array:
        return np.zeros_like(y)

    def mean(self, x: Any) -> Any:
        """E[y] = sum of (value of level v + 1 - value of level v) P(y > v), plus the lowest value  (Eq. 27)."""
        values = np.arange(self.thresholds.size + 1) if self.values is None else self.values
        expected = np.zeros_like(x) + float(values[0])
        for gap, threshold in zip(np.diff(values), self.thresholds, strict=True):
            expected = expected + float(gap) * gammaincc(self.shape, threshold / floored(x, self.root))
        return expected.astype(x.dtype)

    def probabilities(self, x: Array) -> Array:
        """p(v | x) for every level v, along a last axis."""
        bounds = self._bounds(np.arange(self.thresholds.size + 1), np.asarray(x)[..., None])
        return np.exp(log_mass(self.shape, *bounds))

    def legal(self, y: Array) -> Array:
        return (y >= 0) & (y <= self.thresholds.size) & (y == np.floor(y))

    def start(self, observed: Observed) -> float:
        return 1.0

    def derivatives(self, y: Any, x: Any, weight: Any = None) -> Array:
        """Sums by level, 0..V, of the first and second derivatives of log p by the logarithms of the thresholds.

        With g f(g) the density of log g, p the level's mass and u, t = g f(g) / p at its lower and upper bound, they
        are -u and t;  -(shape - low) u - u^2,  (shape - high) t - t^2  and, of both, t u.
        """
        level, size = np.asarray(y).astype(np.int64), self.thresholds.size + 1
        low, high = self._bounds(y, x)
        u, t = densities_at_bounds(self.shape, low, high, log_mass(self.shape, low, high))
        high = np.where(level == size - 1, 0.0, high)  # where t is 0
        parts = (-u, t, (low - self.shape - u) * u, (self.shape - high - t) * t, t * u)
        return np.concatenate(
            [np.bincount(level, part if weight is None else part * weight, minlength=size) for part in parts]
        )

    def stepped(self, derivatives: Array) -> Self:
        """After Newton's step in the logarithms of the thresholds, for fixed x.

        The sum of log p is concave in them, but a whole step may still be too long: whoever calls this must look, and
        go `halfway` back as often as it takes.
        """
        lower, upper, of_lower, of_upper, of_both = derivatives.reshape(5, -1)
        slope = upper[:-1] + lower[1:]
        bend = -np.diag(of_upper[:-1] + of_lower[1:]) - np.diag(of_both[1:-1], 1) - np.diag(of_both[1:-1], -1)
        # Thresholds far off all x hardly bend the sum: the diagonal keeps them from running away.
        step = np.linalg.solve(bend + (1e-12 * np.abs(bend).max() + 1e-300) * np.eye(slope.size), slope)
        step *= _LONGEST_STEP / max(_LONGEST_STEP, float(np.abs(step).max()))
        while np.any(np.diff(self.thresholds * np.exp(step)) <= 0):
            step /= 2
        return replace(self, thresholds=np.maximum(self.thresholds * np.exp(step), _LOWEST))

    def halfway(self, other: Self) -> Self:
        """With thresholds in the geometric middle of these and others."""
        return replace(self, thresholds=np.sqrt(self.thresholds * other.thresholds))
