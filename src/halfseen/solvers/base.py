"""What every solver offers to the loop."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

import numpy as np

from halfseen.arrays import Array, namespace, smallest
from halfseen.engines import Side
from halfseen.errors import ParameterError
from halfseen.likelihoods import Likelihood
from halfseen.solvers.task import Task


class Factor(Protocol):
    """One side's factor, a named tuple of arrays of one shape: a point, or a distribution."""

    @property
    def starts_from(self) -> tuple[str, ...]:
        """The names of the arrays that the next epoch starts from; it makes the others anew."""

    @property
    def mean(self) -> Any: ...

    @property
    def linked(self) -> Any:
        """What goes into the dot product x."""

    @classmethod
    def _make(cls, iterable: Iterable[Any]) -> Self: ...

    def __iter__(self) -> Iterator[Any]: ...


#: A `Factor`; unbound, because the type checker does not see that a named tuple is one.
FactorT = TypeVar("FactorT")


@dataclass(frozen=True)
class State(Generic[FactorT]):
    """Where a fit stands: both factors, what the next epoch wants to know of the cells between them, the objective
    there, and the likelihood as it has become."""

    rows: FactorT
    columns: FactorT
    cells: Any
    objective: float
    likelihood: Likelihood


class Solver(ABC, Generic[FactorT]):
    """Moves the factors: one half-step `(near, far, side)` for both, and a schedule that calls it."""

    name: ClassVar[str]
    #: Whether the objective is to fall (a loss) or to rise (a bound on the evidence).
    falls: ClassVar[bool]
    #: Whether factors are 0 or more and steps multiply, so that they are straight on logarithms; else steps add.
    multiplies: ClassVar[bool] = True
    #: The relative gain of an epoch below which momentum may begin.
    settling: ClassVar[float] = np.inf
    #: What `starts` asks of a start beside finite numbers (of 0 or more), in words that follow these.
    start_needs: ClassVar[str] = ""

    def check(self, likelihood: Likelihood) -> None:
        """Refuse a likelihood that this solver can't serve."""

    def starts(self, factor: Array) -> bool:
        """Whether a given factor is one to start from."""
        return True

    @abstractmethod
    def random(self, task: Task, size: tuple[int, int], random: np.random.RandomState) -> Array:
        """A random factor to start from."""

    @abstractmethod
    def begin(self, task: Task, W: Array, H: Array) -> State[FactorT]:
        """The state at given factors."""

    @abstractmethod
    def at(self, task: Task, rows: FactorT, columns: FactorT) -> State[FactorT]:
        """A state to start an epoch from, at any factors; its objective is not worked out, but the worst there is."""

    @abstractmethod
    def begin_factor(self, factor: Array) -> FactorT:
        """A factor at the given means."""

    @abstractmethod
    def epoch(self, task: Task, state: State[FactorT]) -> State[FactorT]:
        """Both factors moved once. Uses `state.cells` up."""

    @abstractmethod
    def half_step(self, task: Task, near: FactorT, far: FactorT, side: Side, x: Any) -> FactorT:
        """One side moved, given x between the two. Uses x up."""

    @abstractmethod
    def converged(self, first: float, previous: float, current: float, tol: float) -> bool:
        """Whether the last epoch gained too little to go on."""

    @abstractmethod
    def blank(self, average: Array, count: int, side: Side) -> FactorT:
        """The factor of `count` rows (or columns) of which nothing is known but the average of the others."""

    def _needs(self, holds: bool, likelihood: Likelihood, need: str) -> None:
        if not holds:
            raise ParameterError(
                f"The {self.name} solver needs a likelihood {need}. Found {likelihood.name}. Choose another loss."
            )


def positive(factor: Any) -> Any:
    """Entries whose products would leave the normal numbers become 0: arithmetic below them is very slow."""
    dust = factor < smallest(factor) ** 0.5
    if namespace(factor).any(dust):
        factor[dust] = 0.0
    return factor
