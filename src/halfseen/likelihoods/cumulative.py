"""Cumulative links: levels as intervals of x plus noise."""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from halfseen.arrays import Array, namespace
from halfseen.likelihoods.graded import Ends, Intervals
from halfseen.likelihoods.links import LINKS, Link


@dataclass(frozen=True, eq=False)
class Cumulative(Intervals):
    """P(y <= v | x) = F(tau_{v+1} - x)  (section 2.1 of `ordnmf-2020`), F the distribution of the noise.

    cost = -log(F(b) - F(a)),   a = tau_y - x,  b = tau_{y+1} - x,   tau_0 = -inf, tau_{N+1} = inf
    pull = f(a) / (F(b) - F(a)),   push = f(b) / (F(b) - F(a))
    """

    link: Link = LINKS["logit"]

    name = "cumulative"

    @property
    def _outermost(self) -> tuple[float, float]:
        return -np.inf, np.inf

    def _ends(self, a: Any, b: Any) -> Ends:
        xp, link = namespace(a), self.link
        a, b = xp.clip(a, -link.far, link.far), xp.clip(b, -link.far, link.far)
        log_mass = link.log_mass(a, b)
        pull, push = (xp.exp(link.log_density(z) - log_mass) for z in (a, b))
        of_a, of_b = pull * (pull + link.score(a)), push * (push - link.score(b))
        return Ends(-log_mass, pull, push, of_a, of_b, -pull * push)

    def _judged(self, curvature: Any, slope: Any) -> Any:
        """Where the cost is not convex (as with cauchit), the square of the slope, which is the one expected."""
        return namespace(curvature).where(curvature > 0.0, curvature, slope * slope)

    def started(self, histogram: Array) -> Self:
        """Where the thresholds part the noise as the levels part the cells."""
        below = np.cumsum(histogram)[:-1] / histogram.sum()
        return replace(self, thresholds=np.asarray(self.link.quantile(below)))

    def probabilities(self, x: Array) -> Array:
        """p(v | x) for every level v, along a last axis."""
        below = np.stack([self.link.cdf(threshold - x) for threshold in self.thresholds], axis=-1)
        ends = np.zeros((*x.shape, 1))
        return np.diff(np.concatenate([ends, below, ends + 1.0], axis=-1), axis=-1)

    def mean(self, x: Any) -> Any:
        """E[y] = sum of (value of level v + 1 - value of level v) P(y > v), plus the lowest value."""
        xp = namespace(x)
        values = np.arange(self.highest + 1.0) if self.values is None else self.values
        expected = xp.zeros_like(x) + float(values[0])
        for gap, threshold in zip(np.diff(values), self.thresholds, strict=True):
            expected = expected + float(gap) * (1.0 - self.link.cdf(float(threshold) - x))
        return expected
