"""The interface of likelihoods, and the contribution of an unseen cell that counts as a zero."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import logsumexp

from halfseen.arrays import Array, ArraySpec, floored, in_parts, smallest
from halfseen.errors import DataError
from halfseen.observed import Observed

#: The arguments of a likelihood that files hold: arrays by their `ArraySpec`, numbers, flags and texts by their type,
#: an inner likelihood by `Likelihood`.
StateSpec = Mapping[str, ArraySpec | type]
#: Arrays to be summed over all cells, and arrays to be summed over the cells of each level.
CellTerms = tuple[tuple[Any, ...], tuple[Any, ...]]


@dataclass(frozen=True)
class UnseenPush:
    """An unseen cell that counts as a zero pushes x by `scale * x**power`; it never pulls.

    With power 0 or 1 the sum over the whole grid needs no dense matrix:
    power 0: sum over i of H_i, the same for every row;  power 1: W (H^T H).
    """

    power: int
    scale: float = 1.0

    def at(self, x: Any) -> Any:
        """The push at single cells."""
        return self.scale if self.power == 0 else self.scale * x

    def cost(self, x: Any) -> Any:
        """The cost of the zero at single cells: the integral of its push."""
        return self.scale * x if self.power == 0 else 0.5 * self.scale * x * x


class Likelihood(ABC):
    """log p(y|x) of an observed value y at x = w @ h, by its derivative.

    d log p(y|x) / dx = pull - push, both >= 0. All methods are plain array functions, elementwise; a pull or a push
    that is the same everywhere may be returned as a float.
    """

    #: The constructor's arguments that files hold.
    state: ClassVar[StateSpec] = {}
    #: Whether an observed cell pushes just as an unseen one does (so that only weights make a difference).
    pushes_as_unseen: ClassVar[bool] = False
    #: Whether the push does not depend on x, which makes the gamma distribution conjugate.
    push_is_constant: ClassVar[bool] = False
    #: Whether the push is a constant / x, and log p convex in 1 / x: required by generalised inverse-Gaussians.
    push_is_inverse: ClassVar[bool] = False
    #: Whether x is a rate or a mean, 0 or larger; else it may have any sign.
    x_is_positive: ClassVar[bool] = True
    #: What an engine must offer for it, as `Engine.offers`.
    needs: ClassVar[frozenset[str]] = frozenset()
    #: What else to use where unseen cells should count as zeros.
    alternative_for_zeros: ClassVar[str] = 'the loss "kullback-leibler" or "frobenius"'

    @property
    @abstractmethod
    def name(self) -> str:
        """The name in messages."""

    @property
    def kernel(self) -> str | None:
        """The name by which engines know a compiled form of its rules; None without one."""
        return None

    @property
    def unseen(self) -> UnseenPush | None:
        """The push of an unseen cell that counts as a zero; None if that has no form without a dense matrix."""
        return None

    @property
    def highest(self) -> int | None:
        """The highest level V, where values are codes of ordered levels 0..V; else None."""
        return None

    @property
    def learns(self) -> bool:
        """Whether it has parameters that are updated with the factors: then it is a `LearningLikelihood`."""
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
        """The push alone."""
        return self.pull_push(y, x)[1]

    def pull_push_cost(self, y: Any, x: Any) -> tuple[Any, Any, Any]:
        """Pull, push and divergence."""
        return *self.pull_push(y, x), self.divergence(y, x)

    @abstractmethod
    def divergence(self, y: Any, x: Any) -> Any:
        """log p(y|y) - log p(y|x): zero at x = y, positive elsewhere."""

    @property
    def saturated_is_zero(self) -> bool:
        """Whether log p(y|y) is taken as 0, so that `divergence` is -log p(y|x), or a mere loss."""
        return type(self).saturated is Likelihood.saturated

    def saturated(self, y: Array) -> Array:
        """log p(y|y), the best that any x can do; 0 unless overridden."""
        return np.zeros_like(y)

    def log_prob(self, y: Array, x: Array) -> Array:
        """log p(y|x)."""
        return self.saturated(y) - self.divergence(y, x)

    def mean(self, x: Any) -> Any:
        """The expected value of y."""
        return x

    def sample(self, x: Array, random: np.random.Generator) -> Array:
        """Draw a value at every x: a count, or the code of a level."""
        raise NotImplementedError(f"No values can be drawn from the loss {self.name}.")

    def away_from_zero(self, x: Array) -> Array:
        """x in double precision; if it is a rate, at least so large that its square has a logarithm.

        Nothing is lost: so near to 0 log p(y|x) - log p(y > 0|x) has reached its limit to the last digit.
        """
        x = x.astype(np.float64)
        far: Array = floored(x, 4.0) if self.x_is_positive else x
        return far

    def log_prob_levels(self, x: Array) -> Array:
        """log p(v|x) of the levels v = 1..V, along a first axis; none is the difference of two probabilities."""
        return np.stack([self.log_prob(np.full_like(x, v), x) for v in range(1, (self.highest or 0) + 1)])

    def _sample_levels(self, x: Array, random: np.random.Generator) -> Array:
        """Levels 0..V: first whether a cell is above 0, which is cheap and often all; then, if so, at which level.

        A cell is above 0 if e ~ Exp(1) is below -log p(0|x).
        """
        y = np.zeros(x.shape)
        cost_of_zero = -self.log_prob(np.zeros_like(x), x) if self.unseen is None else self.unseen.cost(x)
        above = random.standard_exponential(x.shape) < cost_of_zero
        logs = self.log_prob_levels(self.away_from_zero(x[above]))
        up_to = np.cumsum(np.exp(logs - logsumexp(logs, axis=0)), axis=0)
        y[above] = 1 + (up_to[:-1] < random.random(up_to.shape[1])).sum(axis=0)
        return y

    @abstractmethod
    def legal(self, y: Array) -> Array:
        """Mask of the values y that have a likelihood."""

    @property
    @abstractmethod
    def domain(self) -> str:
        """The legal values, as a sentence for messages."""

    @property
    @abstractmethod
    def remedy(self) -> str:
        """What to do about a value that is not legal, as a sentence for messages."""

    def check(self, observed: Observed, model: str) -> None:
        """Refuse data that can't be fitted: zeros without a closed form, illegal values, values near underflow."""
        self.check_unseen(observed.unseen, model)
        illegal, negative, done = list[Array](), list[Array](), 0
        for (values,) in in_parts(observed.values):
            bad = np.flatnonzero(~self.legal(values))
            illegal.append(bad + done)
            negative.append(bad[values[bad] < 0] + done)
            done += values.size
        if any(one.size for one in illegal):
            bad = np.concatenate(negative if any(one.size for one in negative) else illegal)
            value = observed.values[bad[0]]
            others = f" ({bad.size} such cells)" if bad.size > 1 else ""
            raise DataError(
                f"{'Negative' if value < 0 else 'Illegal'} values in data passed to {model}: {self.domain}",
                found=f"{value:g}",
                where=f"at {observed.place(int(bad[0]))}{others}",
                remedy=self.remedy,
            )
        self.check_magnitude(observed)

    def check_unseen(self, unseen: str, model: str) -> None:
        """Refuse data whose unseen cells are zeros if the likelihood has no closed form for the sum over them."""
        if unseen == "zero" and self.unseen is None:
            raise DataError(
                f'`unseen="zero"` needs a loss whose sum over all cells has a closed form. {model} uses {self.name}, '
                "which has none.",
                remedy=f'Use `unseen="missing"`, or {self.alternative_for_zeros}.',
                parameter="unseen",
            )

    def check_magnitude(self, observed: Observed) -> None:
        """Refuse data whose largest value is not far above the floor that is kept under x."""
        largest = float(observed.values.max(initial=0.0))
        enough = 1e6 * smallest(observed.values) ** (1.0 / self.root)
        if 0.0 < largest < enough:
            raise DataError(
                f"The largest value must be above {enough:.1g} for the loss {self.name} in {observed.dtype}.",
                found=f"{largest:g}",
                remedy=f"Multiply X by a constant{', or use float64' if enough > 1e-30 else ''}.",
            )

    def to_state(self) -> dict[str, Any]:
        """The arguments that make this likelihood, by the names in `state`; optional arrays that are None are left out.

        An inner likelihood is a dict of its own state and its "type", a name in `LIKELIHOODS`.
        """
        state = {}
        for name, spec in self.state.items():
            value = getattr(self, name)
            if isinstance(value, Likelihood):
                state[name] = {"type": type(value).__name__, **value.to_state()}
            elif value is not None:
                state[name] = value if isinstance(spec, ArraySpec) else spec(value)
        return state

    @classmethod
    def from_state(cls, state: Mapping[str, Any], sizes: dict[str, int] | None = None) -> Self:
        """The likelihood that `to_state` describes.

        Parameters
        ----------
        state : mapping of str to object
            What `to_state` returned.
        sizes : dict of str to int, default=None
            Sizes of symbols that the arrays must agree with, see `ArraySpec.check`.

        Raises
        ------
        ValueError
            If a field is missing, unknown, or not as `state` of the class demands.
        """
        return cls(**cls._arguments(state, {} if sizes is None else sizes))

    @classmethod
    def _arguments(cls, state: Mapping[str, Any], sizes: dict[str, int]) -> dict[str, Any]:
        """The checked arguments of the constructor."""
        optional = {name for name, spec in cls.state.items() if isinstance(spec, ArraySpec) and spec.optional}
        if not cls.state.keys() - optional <= state.keys() <= cls.state.keys():
            names = ", ".join(cls.state) or "nothing"
            raise ValueError(f"The state of {cls.__name__} must hold {names}. Found {', '.join(state) or 'nothing'}.")
        arguments = {}
        for name, value in state.items():
            spec = cls.state[name]
            if isinstance(spec, ArraySpec):
                spec.check(name, value, sizes)
            elif spec is Likelihood:
                value = _inner_from_state(name, value, sizes)
            elif type(value) is not spec or value != value:
                raise ValueError(f"{name} must be of type {spec.__name__}. Found {value!r}.")
            arguments[name] = value
        return arguments

    def start(self, observed: Observed) -> float:
        """The mean of y, which x should have at the start."""
        seen = observed.values if observed.weights is None else observed.values * observed.weights
        weight = observed.nnz if observed.weights is None else observed.weights.sum(dtype=np.float64)
        if observed.unseen == "zero":
            weight += observed.n_unobserved
        return float(seen.sum(dtype=np.float64) / max(weight, 1e-300))


class LearningLikelihood(Likelihood):
    """A likelihood with parameters that are refitted to the factors during the fit."""

    @property
    def learns_from_means(self) -> bool:
        """Whether `refit` needs E[x] at the cells."""
        return True

    @property
    @abstractmethod
    def n_count_sums(self) -> int:
        """The number of sums that `count_terms` leads to."""

    @abstractmethod
    def count_terms(self, y: Any, counts: Any) -> CellTerms:
        """Terms of the sums over cells, and of the sums by level, that `refit` needs of E[n] = pull * x."""

    def count_terms_at(self, y: Any, x: Any, pull: Any) -> CellTerms:
        """The same from x itself, for likelihoods whose parameters need more than E[n]."""
        return self.count_terms(y, pull * x)

    def mean_terms(self, y: Any, means: Any) -> CellTerms:
        """The same of E[x]."""
        return (), ()

    @abstractmethod
    def refit(self, of_counts: Array, of_means: Array, unseen_mean: float) -> Likelihood:
        """The likelihood with the best parameters for the sums; `unseen_mean` is E[x] over unseen zeros."""


def _inner_from_state(name: str, value: Any, sizes: dict[str, int]) -> Likelihood:
    """The inner likelihood of another one, which has no inner likelihood itself."""
    from halfseen.likelihoods import LIKELIHOODS

    kind = value.get("type") if isinstance(value, Mapping) else None
    inner = LIKELIHOODS.get(kind) if isinstance(kind, str) else None
    if inner is None or Likelihood in inner.state.values():
        raise ValueError(f"{name} must be the state of a likelihood. Found {kind!r}.")
    return inner.from_state({key: field for key, field in value.items() if key != "type"}, sizes)
