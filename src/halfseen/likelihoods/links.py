"""Links of cumulative models: distributions of the noise that is added to x before it is cut into levels.

Each has a name, its distribution function F, and three functions that lose no digits in the tails: log(F(b) - F(a)) for
a < b, log f(z), and f'(z) / f(z). The cost of an interval follows from these; some links override it by a shorter
formula.
"""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
from scipy.special import gammainc, gammaincc, ndtri

from halfseen.arrays import namespace, special
from halfseen.likelihoods.ordinal_base import IntervalCost, Quadratic


class Link(ABC):
    """A distribution with mean or mode 0 and a fixed scale."""

    name: ClassVar[str]
    #: How far out an interval may lie: beyond, exponentials of exponentials would overflow single precision.
    far: ClassVar[float] = np.inf

    def __str__(self) -> str:
        return self.name

    @abstractmethod
    def cdf(self, z: Any) -> Any:
        """F(z)."""

    @abstractmethod
    def quantile(self, p: Any) -> Any:
        """The z with F(z) = p, of NumPy arrays."""

    @abstractmethod
    def log_mass(self, a: Any, b: Any) -> Any:
        """log(F(b) - F(a)); a may be -inf, and b inf."""

    @abstractmethod
    def log_density(self, z: Any) -> Any:
        """log f(z)."""

    @abstractmethod
    def score(self, z: Any) -> Any:
        """f'(z) / f(z)."""

    def interval_cost(self, a: Any, b: Any) -> IntervalCost:
        """cost = -log(F(b) - F(a)) and its derivatives: pull = f(a) / (F(b) - F(a)), push = f(b) / (F(b) - F(a)).

        An end at infinity neither pulls nor pushes.
        """
        xp = namespace(a)
        log_mass, a_is_finite, b_is_finite = self.log_mass(a, b), xp.isfinite(a), xp.isfinite(b)
        a, b = xp.where(a_is_finite, a, 0.0), xp.where(b_is_finite, b, 0.0)
        pull = xp.exp(xp.where(a_is_finite, self.log_density(a), -np.inf) - log_mass)
        push = xp.exp(xp.where(b_is_finite, self.log_density(b), -np.inf) - log_mass)
        aa, bb = pull * (pull + self.score(a)), push * (push - self.score(b))
        return IntervalCost(-log_mass, pull, push, aa, bb, -pull * push)

    def cost(self, a: Any, b: Any) -> Any:
        return -self.log_mass(a, b)

    def quadratic(self, a: Any, b: Any) -> Quadratic:
        """The cost, and its first and second derivatives by x, which moves both ends down."""
        cost, pull, push, aa, bb, ab = self.interval_cost(a, b)
        return Quadratic(cost, push - pull, aa + bb + 2.0 * ab)


class Logit(Link):
    """F(z) = 1 / (1 + exp(-z))."""

    name = "logit"

    def cdf(self, z: Any) -> Any:
        return special("expit", z)

    def quantile(self, p: Any) -> Any:
        return np.log(p) - np.log1p(-p)

    def log_mass(self, a: Any, b: Any) -> Any:
        """F(b) - F(a) = F(b) F(-a) (1 - exp(a - b))."""
        xp = namespace(a)
        return xp.log(-xp.expm1(a - b)) - _softplus(-b) - _softplus(a)

    def log_density(self, z: Any) -> Any:
        return -_softplus(z) - _softplus(-z)

    def score(self, z: Any) -> Any:
        return 1.0 - 2.0 * special("expit", z)

    def interval_cost(self, a: Any, b: Any) -> IntervalCost:
        """With A = F(a), B = F(b) and the mass B (1 - A) (1 - exp(a - b)), f / mass is a ratio of tails:

        pull = A / B / (1 - exp(a - b)),    push = (1 - B) / (1 - A) / (1 - exp(a - b)).
        """
        xp = namespace(a)
        larger = (1.0 + xp.exp(-xp.abs(b))) / (1.0 + xp.exp(-xp.abs(a)))  # F(|a|) / F(|b|)
        open_part = -xp.expm1(a - b)
        pull = xp.exp(xp.clip(a, None, 0.0) - xp.clip(b, None, 0.0)) * larger / open_part
        push = xp.exp(xp.clip(a, 0.0, None) - xp.clip(b, 0.0, None)) / (larger * open_part)
        aa, bb = pull * (pull - xp.tanh(0.5 * a)), push * (push + xp.tanh(0.5 * b))
        return IntervalCost(self.cost(a, b), pull, push, aa, bb, -pull * push)

    def quadratic(self, a: Any, b: Any) -> Quadratic:
        """slope = (1 - B) - A,  curvature = A (1 - A) + B (1 - B), all from exp(-|a|) and exp(-|b|)."""
        xp = namespace(a)
        small_a, small_b = xp.exp(-xp.abs(a)), xp.exp(-xp.abs(b))
        large_a, large_b = 1.0 / (1.0 + small_a), 1.0 / (1.0 + small_b)  # F(|a|), F(|b|)
        rest_a, rest_b = small_a * large_a, small_b * large_b
        slope = xp.where(b > 0.0, rest_b, large_b) - xp.where(a > 0.0, large_a, rest_a)
        beyond = xp.clip(a, 0.0, None) - xp.clip(b, None, 0.0)
        cost = beyond - xp.log(-large_a * large_b * xp.expm1(a - b))
        return Quadratic(cost, slope, rest_a * large_a + rest_b * large_b)

    def cost(self, a: Any, b: Any) -> Any:
        xp = namespace(a)
        both = (1.0 + xp.exp(-xp.abs(a))) * (1.0 + xp.exp(-xp.abs(b)))
        return xp.clip(a, 0.0, None) - xp.clip(b, None, 0.0) + xp.log(both / -xp.expm1(a - b))


class Probit(Link):
    """F is the normal distribution's."""

    name = "probit"

    def cdf(self, z: Any) -> Any:
        return special("ndtr", z)

    def quantile(self, p: Any) -> Any:
        return ndtri(p)

    def log_mass(self, a: Any, b: Any) -> Any:
        """By symmetry in the lower tail, where the logarithm of F is accurate."""
        xp = namespace(a)
        upper = a > 0.0
        a, b = xp.where(upper, -b, a), xp.where(upper, -a, b)
        log_b = special("log_ndtr", b)
        return log_b + xp.log(-xp.expm1(special("log_ndtr", a) - log_b))

    def log_density(self, z: Any) -> Any:
        return -0.5 * z * z - 0.5 * float(np.log(2.0 * np.pi))

    def score(self, z: Any) -> Any:
        return -z


class Cloglog(Link):
    """F(z) = 1 - exp(-exp(z)): the complementary log-log link, noise with a heavy lower tail."""

    name = "cloglog"
    far = 80.0

    def cdf(self, z: Any) -> Any:
        return -namespace(z).expm1(-_exp(z))

    def quantile(self, p: Any) -> Any:
        return np.log(-np.log1p(-p))

    def log_mass(self, a: Any, b: Any) -> Any:
        """F(b) - F(a) = exp(-e^a) (1 - exp(e^a - e^b))."""
        below, above = _exp(a), _exp(b)
        xp = namespace(a)
        return xp.log(-xp.expm1(below - above)) - below

    def log_density(self, z: Any) -> Any:
        return z - _exp(z)

    def score(self, z: Any) -> Any:
        return 1.0 - _exp(z)


class Loglog(Link):
    """F(z) = exp(-exp(-z)): the log-log link, the complementary one mirrored."""

    name = "loglog"
    far = 80.0
    _mirrored = Cloglog()

    def cdf(self, z: Any) -> Any:
        return namespace(z).exp(-_exp(-z))

    def quantile(self, p: Any) -> Any:
        return -np.log(-np.log(p))

    def log_mass(self, a: Any, b: Any) -> Any:
        return self._mirrored.log_mass(-b, -a)

    def log_density(self, z: Any) -> Any:
        return self._mirrored.log_density(-z)

    def score(self, z: Any) -> Any:
        return -self._mirrored.score(-z)


class Cauchit(Link):
    """F(z) = 1/2 + arctan(z) / pi: noise with tails so heavy that an outlier hardly counts."""

    name = "cauchit"

    def cdf(self, z: Any) -> Any:
        return 0.5 + namespace(z).atan(z) / float(np.pi)

    def quantile(self, p: Any) -> Any:
        return np.tan(np.pi * (p - 0.5))

    def log_mass(self, a: Any, b: Any) -> Any:
        """arctan(b) - arctan(a) as one angle, which loses nothing where both are far out."""
        xp = namespace(a)
        a, b = xp.clip(a, -1e15, None), xp.clip(b, None, 1e15)  # beyond, angles are not representable
        return xp.log(xp.atan2(b - a, 1.0 + a * b) / float(np.pi))

    def log_density(self, z: Any) -> Any:
        xp = namespace(z)
        return -xp.log1p(z * z) - float(np.log(np.pi))

    def score(self, z: Any) -> Any:
        return -2.0 * z / (1.0 + z * z)


def _exp(z: Any) -> Any:
    """exp(z), clipped where single precision overflows: everything computed from it has reached its limit by then."""
    xp = namespace(z)
    return xp.exp(xp.clip(z, None, 87.0))


def _softplus(z: Any) -> Any:
    """log(1 + exp(z))."""
    xp = namespace(z)
    return xp.maximum(z, xp.zeros_like(z)) + xp.log1p(xp.exp(-xp.abs(z)))


def noise_cdf(x: Any, noise: str, shape: float = 1.0) -> Any:
    """Distribution function F of noise that multiplies x, in NumPy arrays  (section 3.1 of `ordnmf-2020`).

        gamma, Gamma(shape, 1):            F(x) = gamma(shape, x) / Gamma(shape)        1 - exp(-x) for shape 1
        inverse-gamma, IG(shape, 1):       F(x) = Gamma(shape, 1 / x) / Gamma(shape)    exp(-1 / x) for shape 1

    With thresholds b_0 < b_1 < ... the levels have P(y <= v | lambda) = F(b_v / lambda)  (Eq. 20).
    """
    if noise == "gamma":
        return gammainc(shape, x)
    with np.errstate(divide="ignore"):
        return gammaincc(shape, np.divide(1.0, x))


LINKS: dict[str, Link] = {link.name: link for link in (Logit(), Probit(), Cloglog(), Loglog(), Cauchit())}
