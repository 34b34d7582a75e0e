"""What every likelihood offers, and what an unseen cell says when it stands for a zero."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from halfseen.arrays import Array, smallest
from halfseen.errors import DataError
from halfseen.observed import Observed


@dataclass(frozen=True)
class UnseenPush:
    """An unseen cell that stands for a zero pushes x by `scale * x**power`; it never pulls.

    With power 0 or 1 the sum over the whole grid needs no dense matrix:
    power 0: sum over i of H_i, the same for every row;  power 1: W (H^T H).
    """

    power: int
    scale: float = 1.0

    def at(self, x: Any) -> Any:
        """The push at single cells."""
        return self.scale if self.power == 0 else self.scale * x

    def cost(self, x: Any) -> Any:
        """What the zero costs at single cells: the integral of its push."""
        return self.scale * x if self.power == 0 else 0.5 * self.scale * x * x


class Likelihood(ABC):
    """How a seen value y speaks about x = <w, h>.

    d log p(y|x) / dx = pull - push, both >= 0. All methods are plain array functions, cell by cell; a pull or a push
    that is the same everywhere may be returned as a float.
    """

    name: ClassVar[str]
    #: What an unseen cell pushes where it stands for a zero; None if that has no form without a dense matrix.
    unseen: ClassVar[UnseenPush | None] = None
    #: Whether a seen cell pushes just as an unseen one does (so that only weights make a difference).
    pushes_as_unseen: ClassVar[bool] = False
    #: Whether the push does not depend on x, which makes the gamma distribution conjugate.
    push_is_constant: ClassVar[bool] = False
    #: Whether the push is a constant / x, and log p of a convex kind in 1 / x: as generalised inverse-Gaussians need.
    push_is_inverse: ClassVar[bool] = False

    #: Whether x is a rate or a mean, 0 or larger; else it may have any sign.
    x_is_positive: ClassVar[bool] = True

    @property
    def learns(self) -> bool:
        """Whether it has parameters of its own that follow the factors: then it is a `LearningLikelihood`."""
        return False

    @property
    def root(self) -> float:
        """How far x is kept from 0, as in `floored`: twice the highest power of x that is divided by."""
        return 2.0

    @property
    @abstractmethod
    def powers(self) -> tuple[float, float] | None:
        """The powers of a factor in the terms that pull and push in the majorising function (see `multiplicative`);
        None where no such function is known."""

    @abstractmethod
    def pull_push(self, y: Any, x: Any) -> tuple[Any, Any]:
        """How hard y pulls x up, and how hard it pushes x down."""

    def push(self, y: Any, x: Any) -> Any:
        """The push alone, for those who need no pull."""
        return self.pull_push(y, x)[1]

    def pull_push_cost(self, y: Any, x: Any) -> tuple[Any, Any, Any]:
        """Pull, push and divergence, for those who need all three."""
        return *self.pull_push(y, x), self.divergence(y, x)

    @abstractmethod
    def divergence(self, y: Any, x: Any) -> Any:
        """log p(y|y) - log p(y|x): zero at x = y, positive elsewhere."""

    @abstractmethod
    def saturated(self, y: Array) -> Array:
        """log p(y|y), the best that any x can do (0 for a mere loss)."""

    def log_prob(self, y: Array, x: Array) -> Array:
        """log p(y|x)."""
        return self.saturated(y) - self.divergence(y, x)

    def mean(self, x: Any) -> Any:
        """The expected value of y."""
        return x

    @abstractmethod
    def legal(self, y: Array) -> Array:
        """Which values y can have a likelihood at all."""

    #: The legal domain in words, and what to do about a value outside it.
    domain: ClassVar[str]
    #: What else to use where unseen cells are to count as zeros.
    instead_of_zeros: ClassVar[str] = 'the loss "kullback-leibler" or "frobenius"'
    remedy: ClassVar[str]

    def check(self, observed: Observed, whose: str) -> None:
        """Refuse what can't be fitted: zeros where they have no meaning, illegal values, values near nothing."""
        self.refuse_zeros(observed.unseen, whose)
        self._refuse_illegal(observed, whose)
        self._refuse_dust(observed)

    def refuse_zeros(self, unseen: str, whose: str) -> None:
        """Refuse data whose unseen cells are zeros, where the likelihood has no short way to sum over them."""
        if unseen == "zero" and self.unseen is None:
            raise DataError(
                f'unseen="zero" needs a loss whose sum over all cells has a closed form. {whose} uses {self.name}, '
                f'which has none. Use unseen="missing", or {self.instead_of_zeros}.'
            )

    def _refuse_illegal(self, observed: Observed, whose: str) -> None:
        bad = np.flatnonzero(~self.legal(observed.values))
        negative = bad[observed.values[bad] < 0]
        bad = negative if negative.size else bad
        if bad.size:
            value = observed.values[bad[0]]
            others = f" ({bad.size} such cells)" if bad.size > 1 else ""
            raise DataError(
                f"{'Negative' if value < 0 else 'Illegal'} values in data passed to {whose}: {self.domain} "
                f"Found {value:g} at {observed.place(int(bad[0]))}{others}. {self.remedy}"
            )

    def _refuse_dust(self, observed: Observed) -> None:
        """Refuse data that are nowhere far above the floor that is kept under x."""
        largest = float(observed.values.max(initial=0.0))
        enough = 1e6 * smallest(observed.values) ** (1.0 / self.root)
        if 0.0 < largest < enough:
            raise DataError(
                f"The largest value must be above {enough:.1g} for the loss {self.name} in {observed.dtype}. "
                f"Found {largest:g}. Multiply X by a constant{', or use float64' if enough > 1e-30 else ''}."
            )

    def start(self, observed: Observed) -> float:
        """The mean of y, which x should have at the start."""
        seen = observed.values if observed.weights is None else observed.values * observed.weights
        weight = observed.nnz if observed.weights is None else observed.weights.sum(dtype=np.float64)
        if observed.unseen == "zero":
            weight += observed.unseen_places
        return float(seen.sum(dtype=np.float64) / max(weight, 1e-300))


class LearningLikelihood(Likelihood):
    """A likelihood with parameters of its own, which are refitted to the factors on the way."""

    @property
    def learns_from_means(self) -> bool:
        """Whether `refit` asks for E[x] at the cells."""
        return True

    @abstractmethod
    def sums_of_counts(self, y: Any, counts: Any, weight: Any) -> Array:
        """What `refit` asks of E[n] = pull * x at the cells, each times its weight: a vector of sums."""

    @abstractmethod
    def sums_of_means(self, y: Any, means: Any, weight: Any) -> Array:
        """What `refit` asks of E[x] at the cells, each times its weight: a vector of sums."""

    @abstractmethod
    def refit(self, of_counts: Array, of_means: Array, unseen_mean: float) -> Likelihood:
        """The likelihood with the parameters that are best for the sums; `unseen_mean` is E[x] over unseen zeros."""
