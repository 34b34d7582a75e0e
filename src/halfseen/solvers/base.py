"""The interface of solvers, the priors on factors, and Nesterov momentum for any solver."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, Self, TypeVar

import numpy as np

from halfseen.arrays import Array, ArraySpec, floored, namespace, smallest
from halfseen.engines import Side
from halfseen.errors import ParameterError
from halfseen.likelihoods import Likelihood
from halfseen.likelihoods.rules import Terms
from halfseen.solvers.problem import Problem

#: Largest ratio by which an entry is extrapolated: ratios of entries on their way to 0 are meaningless.
_LARGEST_RATIO = 20.0
#: A `Factor`; unbound, because the type checker does not see that a named tuple is one.
FactorT = TypeVar("FactorT")


@dataclass(frozen=True)
class Penalty:
    """l1 * sum(F) + l2 / 2 * sum(F^2), for both factors: an exponential and a half-normal prior, at their mode."""

    l1: float = 0.0
    l2: float = 0.0

    state: ClassVar[Mapping[str, Any]] = {"l1": float, "l2": float}

    def push(self, factor: Any) -> Any:
        """The derivative, which pushes every entry down."""
        return self.l1 + self.l2 * factor

    def cost(self, factor: Any) -> Any:
        return factor * (self.l1 + 0.5 * self.l2 * factor)

    def of_columns(self, count: int) -> Array:
        """The l2 of each of `count` columns."""
        return np.full(count, self.l2)

    @property
    def power(self) -> float:
        """The highest power of a factor in the penalty; 0 without one."""
        return 2.0 if self.l2 else 1.0 if self.l1 else 0.0

    def __bool__(self) -> bool:
        return bool(self.l1 or self.l2)


@dataclass(frozen=True, eq=False)
class ColumnPenalty(Penalty):
    """The same, but the l2 of column i is l2 * columns[i]: frequency-scaled regularisation. New rows need only l2."""

    columns: Array = field(default_factory=lambda: np.ones(0))

    state: ClassVar[Mapping[str, Any]] = {**Penalty.state, "columns": ArraySpec("f", ("columns",), low=0.0)}

    def of_columns(self, count: int) -> Array:
        return self.l2 * self.columns


@dataclass(frozen=True)
class GammaPrior:
    """Every entry of a factor ~ Gamma(shape, rate); without a rate, each row of the factor learns one.

    The learned rate maximises the evidence bound: shape / mean over k of E[w_uk].
    """

    shape: float = 0.3
    rate: float | None = None

    state: ClassVar[Mapping[str, Any]] = {"shape": float, "rate": float | None}

    def rates(self, mean: Array) -> Any:
        """The fixed rate, or a column with one learned rate per row."""
        if self.rate is not None:
            return self.rate
        return self.shape / floored(namespace(mean).mean(mean, axis=1, keepdims=True), 2.0)


#: Requirements on an array of a factor in a file; "length" is the number of rows, or of columns.
ENTRIES = ArraySpec("f", ("length", "components"))
NON_NEGATIVE = replace(ENTRIES, low=0.0)
#: Shapes and rates are infinite where a distribution has no spread.
POSITIVE_OR_INFINITE = replace(ENTRIES, low=float(np.nextafter(0.0, 1.0)), finite=False)


def stored_as(**state: ArraySpec) -> Callable[[type[FactorT]], type[FactorT]]:
    """Class decorator that gives a named tuple of arrays its `state`, what files hold of it."""

    def decorate(factor: Any) -> Any:
        factor.state = state
        return factor

    return decorate


class Factor(Protocol):
    """One side's factor, a named tuple of arrays of one shape: a point, or a distribution.

    `state` maps the names of its arrays to their `ArraySpec` in files.
    """

    @property
    def extrapolated(self) -> tuple[str, ...]:
        """The names of the arrays that the next epoch starts from, which momentum extrapolates."""

    @property
    def mean(self) -> Any: ...

    @property
    def plug_in(self) -> Any:
        """The array that enters the dot product x."""

    @classmethod
    def _make(cls, iterable: Iterable[Any]) -> Self: ...

    def __iter__(self) -> Iterator[Any]: ...


@dataclass(frozen=True)
class State(Generic[FactorT]):
    """State of a fit: both factors, what the solver keeps of its last pass over the cells, objective and likelihood."""

    rows: FactorT
    columns: FactorT
    kept: Any
    objective: float
    likelihood: Likelihood


class Solver(ABC, Generic[FactorT]):
    """Updates the factors: one half-step `(near, far, side)` for both sides, and a schedule that calls it."""

    name: ClassVar[str]
    #: Whether the objective is minimised (a loss) or maximised (a bound on the evidence).
    minimizes: ClassVar[bool]
    #: Whether the objective never worsens, so that an epoch after which it does has failed.
    is_monotone: ClassVar[bool] = True
    #: Whether factors are 0 or more and steps multiply, so that they are linear in logarithms; else steps add.
    is_multiplicative: ClassVar[bool] = True
    #: What an engine must offer, as `Engine.offers`.
    needs: ClassVar[frozenset[str]] = frozenset()
    #: Momentum begins once the relative gain of an epoch is below this.
    momentum_below: ClassVar[float] = np.inf
    #: What `accepts_start` requires of a start beside finite numbers (of 0 or more), as it continues that sentence.
    start_requirement: ClassVar[str] = ""

    #: Constructor arguments in a model file, for solvers that fold new rows in; attributes of the same names.
    state: ClassVar[Mapping[str, Any]] = {}

    def check(self, likelihood: Likelihood) -> None:
        """Refuse a likelihood that this solver does not support."""

    def accepts_start(self, factor: Array) -> bool:
        """Whether a given factor may be started from."""
        return True

    @abstractmethod
    def random(self, problem: Problem, size: tuple[int, int], random: np.random.RandomState) -> Array:
        """A random factor to start from."""

    @abstractmethod
    def init_state(self, problem: Problem, W: Array, H: Array) -> State[FactorT]:
        """The state at given factors."""

    @abstractmethod
    def state_at(self, problem: Problem, rows: FactorT, columns: FactorT) -> State[FactorT]:
        """A state to start an epoch from, at any factors; its objective is not computed, but the worst possible."""

    @abstractmethod
    def init_factor(self, factor: Array) -> FactorT:
        """A factor with the given means."""

    @abstractmethod
    def epoch(self, problem: Problem, state: State[FactorT], *, for_next: bool = True) -> State[FactorT]:
        """Update both factors once; `for_next` says whether the next epoch is likely to start from the new state."""

    @abstractmethod
    def half_step(self, problem: Problem, near: FactorT, far: FactorT, side: Side) -> FactorT:
        """Update one side."""

    @abstractmethod
    def converged(self, first: float, previous: float, current: float, tol: float) -> bool:
        """Whether the last epoch gained too little to continue."""

    def escape(self, problem: Problem, state: State[FactorT], least: float) -> State[FactorT]:
        """What is tried before a run ends as converged: a better state, beyond a saddle for instance, or the same one.

        `least` is the gain that is worth going on for.
        """
        return state

    def extrapolate(self, now: Any, before: Any, beta: float) -> Any:
        """The likelihood to start an epoch with that momentum moves ahead; `before` is that of the state before."""
        return now

    def kept_to_save(self, kept: Any) -> Any:
        """What a checkpoint saves of `State.kept`: a tuple of pairs of an array and what its first axis is along, a
        side, "cells", or None, "host" if it is NumPy's on every engine; None for what `kept_again` finds without it."""
        return None

    def kept_again(self, problem: Problem, rows: FactorT, columns: FactorT, saved: Any) -> Any:
        """`State.kept` of these factors, from the arrays that `kept_to_save` gave, or None."""
        return None

    @abstractmethod
    def default_factor(self, average: Array, count: int, side: Side) -> FactorT:
        """The factor of `count` rows (or columns) without data, given the average of the others."""

    def for_new_columns(self, known: int, count: int) -> "Solver[FactorT]":
        """The solver for the first `known` columns of the fit and `count` new ones, which have no frequency yet."""
        return self

    def _require(self, holds: bool, likelihood: Likelihood, need: str) -> None:
        if not holds:
            raise ParameterError(
                f"The {self.name} solver needs a likelihood {need}.",
                found=likelihood.name,
                remedy="Choose another loss.",
            )


def flush_to_zero(factor: Any) -> Any:
    """Set entries whose products would be subnormal to 0: arithmetic with subnormal numbers is very slow."""
    return namespace(factor).where(factor < smallest(factor) ** 0.5, 0.0, factor)


class Momentum(Generic[FactorT]):
    """A solver's epochs with momentum: it keeps the previous state, so it serves one run.

    Every epoch starts from an extrapolation of the last two states, kept only if it gains. With F_t the factor after
    epoch t, the next one starts at

        F_t (F_t / F_{t-1})^beta,    beta = (s_t - 1) / s_{t+1},   s_{t+1} = (1 + sqrt(1 + 4 s_t^2)) / 2

    which is Nesterov's extrapolation (1983) of the logarithms, in which multiplicative steps are linear; factors of any
    sign start at F_t + beta (F_t - F_{t-1}), and so do parameters of the likelihood if the solver says so: factors that
    run ahead of their thresholds would gain nothing. An epoch after which the objective would be worse is repeated from
    F_t itself, and the momentum is reset (O'Donoghue & Candès 2015). So the objective never worsens if that of the
    solver does not.
    """

    def __init__(self, solver: Solver[FactorT]) -> None:
        self._solver = solver
        self._reset()

    def _reset(self) -> None:
        self._previous: Previous | None = None
        self._s = 1.0

    @property
    def memory(self) -> "tuple[float, Previous] | None":
        """What the next epoch needs of those before: the step number s, and the state before; None at the start."""
        return None if self._previous is None else (self._s, self._previous)

    @memory.setter
    def memory(self, memory: "tuple[float, Previous] | None") -> None:
        self._s, self._previous = (1.0, None) if memory is None else memory

    def epoch(self, problem: Problem, state: State[FactorT]) -> State[FactorT]:
        """Update both factors once, from their extrapolation or, if that does not gain, from where they are."""
        new = self._extrapolated_epoch(problem, state)
        if new is None:
            self._reset()
            new = self._solver.epoch(problem, state)
        self._previous = Previous(state.objective, _arrays(state.rows), _arrays(state.columns), state.likelihood)
        self._s = _next(self._s)
        return new

    def _extrapolated_epoch(self, problem: Problem, state: State[FactorT]) -> State[FactorT] | None:
        solver, previous = self._solver, self._previous
        if previous is None:
            return None
        if not abs(state.objective - previous.objective) <= solver.momentum_below * abs(state.objective):
            return None
        beta = (self._s - 1.0) / _next(self._s)

        params = Extrapolation(beta, solver.is_multiplicative, _LARGEST_RATIO)

        def extrapolate(factor: Any, before: dict[str, Any]) -> Any:
            arrays, _ = problem.engine.map(extrapolated, params, *_arrays(factor).values(), *before.values())
            return factor._replace(**dict(zip(before, arrays, strict=True)))

        rows, columns = extrapolate(state.rows, previous.rows), extrapolate(state.columns, previous.columns)
        likelihood = solver.extrapolate(state.likelihood, previous.likelihood, beta)
        start = solver.state_at(problem.with_likelihood(likelihood), rows, columns)
        new = solver.epoch(problem, start, for_next=False)
        gains = new.objective <= state.objective if solver.minimizes else new.objective >= state.objective
        return new if gains and np.isfinite(new.objective) else None


class Previous(NamedTuple):
    """What is kept of a state: no more, because its arrays are large."""

    objective: float
    rows: dict[str, Any]
    columns: dict[str, Any]
    likelihood: Likelihood


class Extrapolation(NamedTuple):
    """How far, whether of logarithms, and the largest ratio of two entries that is believed."""

    beta: float
    multiplies: bool
    largest_ratio: float


def extrapolated(params: Extrapolation, *arrays: Any) -> Terms:
    """Each of the first half of the arrays, extrapolated by beta from its predecessor in the second half."""
    beta, multiplies, largest = params
    half = len(arrays) // 2
    results = []
    for now, before in zip(arrays[:half], arrays[half:], strict=True):
        if multiplies:
            ratio = namespace(now).clip(now / floored(before, 1.0), 1.0 / largest, largest)
            results.append(flush_to_zero(now * ratio**beta))
        else:
            results.append(now + beta * (now - before))
    return Terms(tuple(results))


def _next(s: float) -> float:
    return float((1.0 + np.sqrt(1.0 + 4.0 * s * s)) / 2.0)


def _arrays(factor: Any) -> dict[str, Any]:
    return {name: getattr(factor, name) for name in factor.extrapolated}
