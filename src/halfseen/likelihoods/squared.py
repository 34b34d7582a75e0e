"""Square link: any likelihood of a rate, at the rate x^2."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self, cast

import numpy as np

from halfseen.arrays import Array, floored
from halfseen.likelihoods.base import CellTerms, LearningLikelihood, Likelihood, StateSpec, UnseenPush
from halfseen.observed import Observed


@dataclass(frozen=True, eq=False)
class Squared(LearningLikelihood):
    """p(y | x) = inner(y | x^2): pull and push are those of the inner likelihood times 2 x.

    An unseen zero, which pushes a rate by a constant b, pushes x by 2 b x: high scores of unseen cells harder than low
    ones, and its sum over the whole grid is W (H^T H), as for the Gaussian. The majorising function has log x where it
    pulls and x^2 where it pushes.
    """

    inner: Likelihood

    state: ClassVar[StateSpec] = {"inner": Likelihood}
    name = "squared"
    powers = (0.0, 2.0)

    @property
    def highest(self) -> int | None:
        return self.inner.highest

    @property
    def learns(self) -> bool:
        return self.inner.learns

    @property
    def _learning(self) -> LearningLikelihood:
        """The inner likelihood, where `learns` is true."""
        return cast(LearningLikelihood, self.inner)

    @property
    def learns_from_means(self) -> bool:
        return self._learning.learns_from_means

    @property
    def unseen(self) -> UnseenPush | None:
        unseen = self.inner.unseen
        return None if unseen is None or unseen.power != 0 else UnseenPush(power=1, scale=2.0 * unseen.scale)

    @property
    def root(self) -> float:
        return 2.0 * self.inner.root

    def pull_push(self, y: Any, x: Any) -> tuple[Any, Any]:
        pull, push = self.inner.pull_push(y, x * x)
        return 2.0 * floored(x, self.root) * pull, 2.0 * x * push

    def pull_push_cost(self, y: Any, x: Any) -> tuple[Any, Any, Any]:
        pull, push, cost = self.inner.pull_push_cost(y, x * x)
        return 2.0 * floored(x, self.root) * pull, 2.0 * x * push, cost

    def divergence(self, y: Any, x: Any) -> Any:
        return self.inner.divergence(y, x * x)

    @property
    def saturated_is_zero(self) -> bool:
        return self.inner.saturated_is_zero

    def saturated(self, y: Array) -> Array:
        return self.inner.saturated(y)

    def mean(self, x: Any) -> Any:
        return self.inner.mean(x * x)

    def probabilities(self, x: Array) -> Array:
        """p(v | x) for every level v, along a last axis, where the inner likelihood has levels."""
        probabilities: Array = cast(Any, self.inner).probabilities(x * x)
        return probabilities

    def sample(self, x: Array, random: np.random.Generator) -> Array:
        return self.inner.sample(x * x, random) if self.highest is None else self._sample_levels(x, random)

    def legal(self, y: Array) -> Array:
        return self.inner.legal(y)

    @property
    def domain(self) -> str:
        return self.inner.domain

    @property
    def remedy(self) -> str:
        return self.inner.remedy

    def start(self, observed: Observed) -> float:
        return self.inner.start(observed) ** 0.5

    @property
    def kernel(self) -> str | None:
        return None if self.inner.kernel is None else f"squared {self.inner.kernel}"

    @property
    def n_count_sums(self) -> int:
        return self._learning.n_count_sums

    def count_terms(self, y: Any, counts: Any) -> CellTerms:
        """Of E[n] = pull * x / 2."""
        return self._learning.count_terms(y, counts / 2.0)

    def mean_terms(self, y: Any, means: Any) -> CellTerms:
        """Of the rates x^2."""
        return self._learning.mean_terms(y, means * means)

    def refit(self, of_counts: Array, of_means: Array, unseen_mean: float) -> Self:
        return replace(self, inner=self._learning.refit(of_counts, of_means, unseen_mean))
