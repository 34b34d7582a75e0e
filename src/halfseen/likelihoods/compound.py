"""Compound Poisson: counts as sums of a Poisson number of logarithmic draws, over-dispersed, negative binomial."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from halfseen.arrays import Array, floored, namespace, special
from halfseen.likelihoods.base import CellTerms, LearningLikelihood, StateSpec, UnseenPush

#: Above this, differences of log-gamma and digamma are taken term by term of Stirling's series.
_LARGE = 100.0
#: Bounds of s: p between nearly 0 (Poisson on the counts) and nearly 1 (Poisson on presence).
_BOUNDS = (1e-12, 700.0)


@dataclass(frozen=True, eq=False)
class CompoundPoisson(LearningLikelihood):
    """y = sum of n draws of P(k) = p^k / (k s),  n ~ Poisson(x),  s = -log(1 - p)   (dcPF, Gouvert et al. 2019).

    With r = x / s the count is negative binomial:

        log p(y|x) = sum over j < y of log(p (r + j)) - log y! - x
        pull = E[n] / x = (digamma(y + r) - digamma(r)) / s,    push = 1

    p -> 0 is Poisson on the counts, p -> 1 Poisson on presence. s is stored rather than p, which would round.
    """

    s: float
    learned: bool = True

    state: ClassVar[StateSpec] = {"s": float, "learned": bool}
    name = "compound Poisson"
    unseen = UnseenPush(power=0)
    pushes_as_unseen = True
    push_is_constant = True
    powers = (0.0, 1.0)
    domain = "Counts must be whole numbers, 0 or larger."
    remedy = "Round the values, or use `PoissonFactorization`."

    @property
    def learns(self) -> bool:
        return self.learned

    @property
    def learns_from_means(self) -> bool:
        return False

    @property
    def p(self) -> float:
        return -float(np.expm1(-self.s))

    def pull_push(self, y: Any, x: Any) -> tuple[Any, Any]:
        return _digamma_rise(y, floored(x, self.root) / self.s) / self.s, 1.0

    def push(self, y: Any, x: Any) -> Any:
        return 1.0

    def divergence(self, y: Any, x: Any) -> Any:
        """-log p(y|x), which is 0 or larger: the best that an x can do has no closed form and is not subtracted."""
        rise = _log_gamma_rise(y, floored(x, self.root) / self.s)
        return -(rise + y * float(np.log(self.p)) - special("gammaln", y + 1.0) - x)

    def mean(self, x: Any) -> Any:
        """E[y] = x p / ((1 - p) s)."""
        return x * float(np.expm1(self.s) / self.s)

    def sample(self, x: Array, random: np.random.Generator) -> Array:
        """n ~ Poisson(x), and y the sum of n draws of P(k) = p^k / (k s)."""
        y = random.poisson(x).astype(np.float64)
        is_positive = y > 0
        times = y[is_positive].astype(np.int64)
        draws = random.logseries(min(self.p, np.nextafter(1.0, 0.0)), times.sum())  # p may have been rounded to 1
        y[is_positive] = np.add.reduceat(draws, np.cumsum(times) - times) if times.size else 0.0
        return y

    def legal(self, y: Array) -> Array:
        return (y >= 0) & (y == np.floor(y))

    n_count_sums = 2

    def count_terms(self, y: Any, counts: Any) -> CellTerms:
        """E[n] and y; E[x] is not needed, because E[y] is linear in x."""
        return (counts, y), ()

    def refit(self, of_counts: Array, of_means: Array, unseen_mean: float) -> Self:
        """The s with s / (e^s - 1) = sum of E[n] / sum of y."""
        low, high = _BOUNDS
        ratio = float(of_counts[0] / of_counts[1])

        def excess(s: float) -> float:
            return float(np.log(s) - np.log(np.expm1(s)) - np.log(ratio))

        if excess(low) <= 0:
            return replace(self, s=low)
        from scipy.optimize import brentq  # loaded for fits alone

        return replace(self, s=high if excess(high) >= 0 else float(brentq(excess, low, high, xtol=1e-15)))


def _digamma_rise(y: Any, r: Any) -> Any:
    """digamma(y + r) - digamma(r) = sum over j < y of 1 / (r + j)."""
    xp, large = namespace(r), r > _LARGE
    safe, z = xp.where(large, 1.0, r), xp.where(large, r, 1.0)
    a, b = 1.0 / z, 1.0 / (z + y)
    series = xp.log1p(y / z) + (a - b) * (1 / 2 + (a + b) / 12 - (a**3 + a * a * b + a * b * b + b**3) / 120)
    return xp.where(large, series, special("digamma", safe + y) - special("digamma", safe))


def _log_gamma_rise(y: Any, r: Any) -> Any:
    """log(gamma(y + r) / gamma(r)) = sum over j < y of log(r + j)."""
    xp, large = namespace(r), r > _LARGE
    safe, z = xp.where(large, 1.0, r), xp.where(large, r, 1.0)
    a, b = 1.0 / z, 1.0 / (z + y)
    series = (z + y - 0.5) * xp.log1p(y / z) + y * xp.log(z) - y - (a - b) / 12 + (a**3 - b**3) / 360
    return xp.where(large, series, special("gammaln", safe + y) - special("gammaln", safe))
