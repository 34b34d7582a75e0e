"""Cumulative links: levels as intervals of x plus noise."""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from halfseen.arrays import Array, namespace
from halfseen.likelihoods.graded import Ends, Intervals
from halfseen.likelihoods.links import LINKS, Link
from halfseen.likelihoods.smooth import Local


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
        return self.link.ends(*self._in_reach(a, b))

    def _local(self, a: Any, b: Any) -> Local:
        """Where the cost is not convex (as with cauchit), steps are judged by the square of the slope."""
        cost, slope, curvature = self.link.local(*self._in_reach(a, b))
        return Local(cost, slope, namespace(curvature).where(curvature > 0.0, curvature, slope * slope))

    def divergence(self, y: Any, x: Any) -> Any:
        return self.link.cost(*self._in_reach(*self._interval(y, x)))

    def _in_reach(self, a: Any, b: Any) -> tuple[Any, Any]:
        """An interval that lies farther out than the link can reckon, moved to where it just can; and one that was lost
        in rounding, as wide as one can be."""
        xp, far = namespace(a), self.link.far
        if far < np.inf:
            beyond = xp.clip(a - far, 0.0, None) + xp.clip(b + far, None, 0.0)
            a, b = a - beyond, b - beyond
        lost = b <= a
        if xp.any(lost):
            b = xp.where(lost, a + 4.0 * float(xp.finfo(a.dtype).eps) * (1.0 + xp.abs(a)), b)
        return a, b

    def started(self, histogram: Array) -> Self:
        """Where the thresholds part the noise as the levels part the cells."""
        below = np.cumsum(histogram)[:-1] / histogram.sum()
        return replace(self, thresholds=np.asarray(self.link.quantile(below)))

    def probabilities(self, x: Array) -> Array:
        """p(v | x) for every level v, along a last axis."""
        levels = (np.full_like(x, level) for level in range(self.highest + 1))
        return np.stack([np.exp(-self._at_cells(level, x).cost) for level in levels], axis=-1)

    def mean(self, x: Any) -> Any:
        """E[y] = sum of (value of level v + 1 - value of level v) P(y > v), plus the lowest value."""
        return self._expected(x, lambda z: 1.0 - self.link.cdf(-z))
