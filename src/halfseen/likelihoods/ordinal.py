"""OrdNMF's likelihood: ordered levels 0..V as the quantised product of x and inverse-gamma noise."""

from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from halfseen.arrays import Array, ArraySpec, beside, floored, namespace
from halfseen.likelihoods.base import CellTerms, LearningLikelihood, Likelihood, StateSpec, UnseenPush
from halfseen.observed import Observed


class NoisyLevels(Likelihood):
    """Ordered levels 0..V as the quantised product of x and multiplicative noise (`ordnmf-2020`, section 3.1)."""

    #: The numbers that the levels 0..V stand for; themselves, if None.
    values: Array | None

    domain = "Ordinal levels must be integers 0..V."
    remedy = "Round the values, or use `WeightedNMF`."

    @property
    @abstractmethod
    def highest(self) -> int:
        """The highest level V."""

    @abstractmethod
    def above(self, level: int, x: Any) -> Any:
        """P(y > level | x)."""

    def mean(self, x: Any) -> Any:
        """E[y] = lowest value + sum over v of (value of level v + 1 - value of level v) P(y > v)  (Eq. 27)."""
        values = np.arange(self.highest + 1) if self.values is None else self.values
        expected = namespace(x).zeros_like(x) + float(values[0])
        for level, gap in enumerate(np.diff(values)):
            expected = expected + float(gap) * self.above(level, x)
        return expected

    def sample(self, x: Array, random: np.random.Generator) -> Array:
        return self._sample_levels(x, random)

    def legal(self, y: Array) -> Array:
        return (y >= 0) & (y <= self.highest) & (y == np.floor(y))

    def start(self, observed: Observed) -> float:
        return 1.0


class InverseThresholds(NoisyLevels, LearningLikelihood):
    """Levels between thresholds b_v = 1 / theta_v with theta_v = D_{v+1} + ... + D_V, by their decrements D."""

    decrements: Array
    learned: bool

    @property
    def highest(self) -> int:
        return self.decrements.size

    @property
    def learns(self) -> bool:
        return self.learned

    @cached_property
    def theta(self) -> Array:
        """theta_0 > ... > theta_V = 0, the inverse thresholds (Eq. 36)."""
        return np.append(np.cumsum(self.decrements[::-1])[::-1], 0.0)

    @property
    def thresholds(self) -> Array:
        """b_0 < ... < b_{V-1} between the levels."""
        return 1.0 / self.theta[:-1]

    @staticmethod
    def decrements_of(thresholds: Array) -> Array:
        """D_1..D_V of given thresholds."""
        return -np.diff(1.0 / thresholds, append=0.0)

    def mean_terms(self, y: Any, means: Any) -> CellTerms:
        """By level, 0..V."""
        return (), (means,)


@dataclass(frozen=True, eq=False)
class Ordinal(InverseThresholds):
    """P(y <= v | x) = exp(-theta_v x)  (Eq. 23 of `ordnmf-2020`), theta_v = D_{v+1} + ... + D_V, theta_V = 0.

    Level v is what x times inverse-gamma noise gives between the thresholds b_{v-1} and b_v = 1 / theta_v. Hence

        log p(0) = -theta_0 x,    log p(v) = -theta_v x + log(1 - exp(-D_v x))       (Eq. 26)
        pull = D_v / (1 - exp(-D_v x)),    push = theta_{v-1}  (theta_0 for level 0, which does not pull)

    With one level and D_1 = 1 it is the Bernoulli-Poisson model. `decrements` are D_1..D_V, `values` the numbers
    that the levels 0..V stand for (themselves, if None).
    """

    decrements: Array
    learned: bool = True
    values: Array | None = None
    #: Whether theta_0 stays 1 because a penalty fixes the scale of x; else thresholds and factors share a free scale.
    pinned: bool = False

    state: ClassVar[StateSpec] = {
        "decrements": ArraySpec("f", ("levels-1",), low=0.0),
        "learned": bool,
        "values": ArraySpec("fiu", ("levels",), optional=True),
        "pinned": bool,
    }
    name = "ordinal"
    push_is_constant = True
    powers = (0.0, 1.0)

    @property
    def unseen(self) -> UnseenPush:
        return UnseenPush(power=0, scale=float(self.theta[0]))

    kernel: ClassVar[str | None] = "ordinal"

    @property
    def pushes_as_unseen(self) -> bool:  # type: ignore[override]
        """One level above 0 pushes as 0 does."""
        return self.highest == 1

    @cached_property
    def table(self) -> Array:
        """For each level 0..V: its decrement (0 for level 0), the same but infinite for level 0, its theta, its push.

        With the second, 1 - exp(-D x) is 1 at level 0, which neither pulls nor adds to the logarithm.
        """
        D, theta = self.decrements.astype(np.float64), self.theta.astype(np.float64)
        return np.stack([np.append(0.0, D), np.append(np.inf, D), theta, np.append(theta[0], theta[:-1])])

    def pull_push(self, y: Any, x: Any) -> tuple[Any, Any]:
        decrement, steep, push = self._at(y, x, 0, 1, 3)
        return decrement / self._risen(steep, x), push

    def push(self, y: Any, x: Any) -> Any:
        return self._at(y, x, 3)[0]

    def pull_push_cost(self, y: Any, x: Any) -> tuple[Any, Any, Any]:
        decrement, steep, theta, push = self._at(y, x, 0, 1, 2, 3)
        risen = self._risen(steep, x)
        return decrement / risen, push, theta * x - namespace(x).log(risen)

    def divergence(self, y: Any, x: Any) -> Any:
        """-log p(y|x), which is 0 or larger: the best an x can do depends on the thresholds and is not subtracted."""
        steep, theta = self._at(y, x, 1, 2)
        return theta * x - namespace(x).log(self._risen(steep, x))

    def _risen(self, steep: Any, x: Any) -> Any:
        """1 - exp(-D x), which is D x where that is small: there the pull is 1 / x, Poisson's for a single count."""
        return -namespace(x).expm1(-steep * floored(x, self.root))

    def _at(self, y: Any, x: Any, *which: int) -> list[Any]:
        """These rows of `table` at each cell's level, as arrays of the kind of x."""
        xp = namespace(x)
        level = xp.astype(y, xp.int64)
        return [xp.take(beside(x, self.table[row]), level) for row in which]

    def above(self, level: int, x: Any) -> Any:
        return -namespace(x).expm1(-float(self.theta[level]) * x)

    def probabilities(self, x: Array) -> Array:
        """p(v | x) for every level v, along a last axis."""
        up_to = np.exp(-x[..., None] * self.theta)  # P(y <= v)
        return np.diff(up_to, axis=-1, prepend=0.0)

    @property
    def n_count_sums(self) -> int:
        return self.theta.size

    def count_terms(self, y: Any, counts: Any) -> CellTerms:
        """By level, 0..V."""
        return (), (counts,)

    def refit(self, of_counts: Array, of_means: Array, unseen_mean: float) -> Self:
        """D_l = sum of E[n] at level l / sum of E[x] at levels up to l  (Eq. 35); unseen zeros are at level 0."""
        counts, below = of_counts[1:], np.cumsum(of_means)[1:] + unseen_mean
        if not counts.any():  # every x has gone to 0: the thresholds are not determined
            return self
        multiplier = 0.0
        if self.pinned:  # the Lagrange multiplier at which the decrements add up to theta_0 = 1
            from scipy.optimize import brentq  # loaded for fits alone

            def log_theta_0(mu: float) -> float:
                return float(np.log((counts / (below + mu)).sum()))

            lowest = -float(below[counts > 0].min())
            multiplier = float(brentq(log_theta_0, lowest * (1 - 1e-12), float(counts.sum())))
        return replace(self, decrements=counts / (below + multiplier))

    @classmethod
    def from_histogram(cls, counts: Array, zeros: float) -> Self:
        """The initial values of the paper: D_l = N_l / (N_0 + ... + N_l), with N_0 := `zeros`."""
        return cls(counts / (zeros + np.cumsum(counts)))

    def expected_counts(self, y: Array, x: Array) -> Array:
        """E[n] = z / (1 - exp(-z)) with z = D_y x, of q(n) = ZTP(z) at levels above 0 (Table 1); 0 at level 0."""
        z = np.append(0.0, self.decrements)[y.astype(np.intp)] * x
        counts: Array = np.where(z > 0, z, 1.0) / np.where(z > 0, -np.expm1(-z), 1.0)
        return np.where(y > 0, counts, 0.0)


@dataclass(frozen=True, eq=False)
class SingleCountOrdinal(Ordinal):
    """`Ordinal` for fits in which q(n) = delta_1 at levels above 0  (section 4.2 of `ordnmf-2020`):

        log p(v, n = 1 | x) = log(D_v x) - theta_{v-1} x  (Eq. 29),    pull = 1 / x,    push = theta_{v-1}

    in the place of log p(v | x), of which it is a lower bound. That is near where D_v x is small: E[n] is then near 1.
    Probabilities and divergences are those of `Ordinal`. With one level it is Poisson factorization of zeros and ones.
    """

    kernel = None

    def pull_push(self, y: Any, x: Any) -> tuple[Any, Any]:
        return self.pull_push_cost(y, x)[:2]

    def pull_push_cost(self, y: Any, x: Any) -> tuple[Any, Any, Any]:
        decrement, push = self._at(y, x, 0, 3)
        xp, at, is_above = namespace(x), floored(x, self.root), decrement > 0
        pull = xp.where(is_above, 1.0 / at, xp.zeros_like(at))
        return pull, push, push * x - xp.log(xp.where(is_above, decrement * at, xp.ones_like(at)))
