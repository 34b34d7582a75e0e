"""The verbs that every engine has, on arrays of its own kind.

A cell array has one number a seen cell, in row order, whatever the side it is used for. A factor array has one row a
row (or column) of the matrix and one column a component.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from enum import Enum
from typing import Any, NamedTuple, Protocol, Self

from halfseen.arrays import Array
from halfseen.observed import Observed


class Side(Enum):
    """Which factor a half-step moves."""

    ROWS = "rows"
    """W, a row for each row of the matrix."""
    COLUMNS = "columns"
    """H, a row for each column of the matrix."""


class Placed(Protocol):
    """The seen cells where the engine wants them."""

    observed: Observed
    y: Any
    weights: Any | None
    #: As `Observed.firsts`; None also where unseen cells are missing, because only zeros need it.
    firsts: Any | None


class Pulled(NamedTuple):
    """What pulls every row of a factor, whatever its cells say: a number for each component."""

    penalty: Array
    """How hard it is pulled..."""
    centre: Array
    """...to where;"""
    held: Array
    """1 where it must not move, else 0."""


class Descent(NamedTuple):
    """How single cells move rows and columns down the slope: for each of the two sides..."""

    rate: float
    past: tuple[Array, Array]
    """...the squared slopes so far, which are added to,"""
    seen: tuple[Array, Array]
    """how many cells a row has, over which what pulls it is shared out,"""
    pulled: tuple[Pulled, Pulled]
    """and what pulls it."""


class Engine(ABC):
    """A place to run. Use it as a context: threads and devices are held only inside."""

    name: str

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    @abstractmethod
    def place(self, observed: Observed, *sides: Side) -> Placed:
        """Bring what was seen to where it is computed with, ordered for the sides that will be walked."""

    @abstractmethod
    def place_factor(self, factor: Array) -> Any:
        """Bring a factor there."""

    @abstractmethod
    def fetch(self, array: Any) -> Array:
        """Bring an array back as a NumPy array."""

    @abstractmethod
    def dots(self, cells: Placed, W: Any, H: Any, into: Any | None = None) -> Any:
        """x = <W_u, H_i> at every seen cell; `into` may be written over with it."""

    @abstractmethod
    def each(self, rule: Callable[..., Any], *arrays: Any, into: tuple[Any | None, ...] = ()) -> Any:
        """`rule(*arrays)`, for a rule that treats every entry along the first axis by itself.

        The rule returns an array or a tuple of them; a result that is a plain number is handed back as it is.
        `into` names arrays that may be written over with the results, in their order.
        """

    @abstractmethod
    def total(self, rule: Callable[..., Any], *arrays: Any) -> float:
        """The sum of `rule(*arrays)` in double precision, for a rule as in `each`."""

    @abstractmethod
    def tally(self, rule: Callable[..., Any], *arrays: Any, into: tuple[Any | None, ...] = ()) -> tuple[Any, ...]:
        """As `each`, for a rule that returns a tuple: first a vector of sums over the entries that it was given, which
        are added up in double precision and come back as a NumPy array; then results as those of `each`."""

    @abstractmethod
    def spread(self, cells: Placed, c: Any, far: Any, side: Side) -> Any:
        """For each row u (or column, by `side`): the sum of c * far_i over its seen cells.

        `c` is a cell array or one number for all cells; for 0 the sum is the number 0, not an array.
        """

    def spread_both(self, cells: Placed, c: Any, d: Any, far: Any, side: Side) -> tuple[Any, Any]:
        """`spread` of two coefficients, which an engine may do in one go."""
        return self.spread(cells, c, far, side), self.spread(cells, d, far, side)

    @abstractmethod
    def newton(self, cells: Placed, slope: Any, curvature: Any, near: Any, far: Any, pulled: Pulled, side: Side) -> Any:
        """Each row u of `near` (or column, by `side`) after a step of Newton's method by itself:

            near_u - A^{-1} g,   g = sum of slope * far_i + penalty * (near_u - centre),
                                 A = sum of curvature * far_i far_i^T + penalty

        over its seen cells; slope and curvature are cell arrays.
        """

    @abstractmethod
    def dots_at(self, cells: Placed, which: Array, W: Any, H: Any) -> Any:
        """x = <W_u, H_i> at some of the seen cells, by number."""

    @abstractmethod
    def descend(self, cells: Placed, which: Array, slope: Any, W: Any, H: Any, descent: Descent) -> None:
        """Move W and H, in place, by one cell of `which` after another:

        f <- f - rate * g / sqrt(past),   g = slope * far + penalty * (f - centre) / seen,   past <- past + mean(g^2)
        """

    @abstractmethod
    def column_sums(self, factor: Any) -> Any:
        """The sum over all rows of a factor, one number a component."""

    def gram(self, factor: Any) -> Any:
        """F^T F: one row and one column a component."""
        return factor.T @ factor

    @staticmethod
    @abstractmethod
    def digamma_and_log_gamma(a: Any) -> tuple[Any, Any]:
        """The two special functions of the gamma distribution; may be called inside a rule."""
