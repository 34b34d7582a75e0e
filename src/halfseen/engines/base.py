"""The operations that every engine implements, on arrays of its own kind.

A cell array has one number per observed cell, in row order, whichever side it is used for. A factor array has one row
per row (or column) of the matrix and one column per component.

Their names in version 0.1.0: dots (sddmm), spread (spmm), spread_both (spmm_both), each (map), tally (map_reduce),
total (sum), fetch (to_numpy), place_factor (asarray), dots_at (sddmm_at), newton (newton_step), descend (adagrad_step).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from enum import Enum
from typing import Any, Generic, NamedTuple, Protocol, Self, TypeVar

from halfseen.arrays import Array
from halfseen.observed import Observed


class Side(Enum):
    """Which factor a half-step updates."""

    ROWS = "rows"
    """W, one row per row of the matrix."""
    COLUMNS = "columns"
    """H, one row per column of the matrix."""


class DeviceCells(Protocol):
    """The observed cells in the memory of an engine."""

    @property
    def observed(self) -> Observed:
        """The matrix they come from, in host memory."""

    @property
    def y(self) -> Any:
        """The values."""

    @property
    def weights(self) -> Any | None:
        """The weights; None if all are 1."""

    @property
    def is_first_at_cell(self) -> Any | None:
        """As `Observed.is_first_at_cell`; None also where unseen cells are missing, because only zeros need it."""


CellsT = TypeVar("CellsT", bound=DeviceCells)


class RidgePenalty(NamedTuple):
    """l2 / 2 * (f - centre)^2 for each component of every row f of a factor."""

    l2: Array
    centre: Array
    fixed: Array
    """1 for components that must not move, else 0."""


class AdagradState(NamedTuple):
    """Sums of squared gradients so far, one number per row, per column and per parameter of the likelihood."""

    learning_rate: float
    rows: Array
    columns: Array
    parameters: Array


class Engine(ABC, Generic[CellsT]):
    """A device to compute on. Use it as a context: threads and devices are held only inside."""

    name: str

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    @abstractmethod
    def place(self, observed: Observed, *sides: Side) -> CellsT:
        """Copy the observed cells to the device, ordered for the sides along which sums will be taken."""

    @abstractmethod
    def asarray(self, factor: Array) -> Any:
        """Copy a factor to the device."""

    @abstractmethod
    def to_numpy(self, array: Any) -> Array:
        """Copy an array back to the host."""

    @abstractmethod
    def sddmm(self, cells: CellsT, W: Any, H: Any, into: Any | None = None) -> Any:
        """x = W_u @ H_i at every observed cell; `into` may be overwritten with it."""

    @abstractmethod
    def map(self, rule: Callable[..., Any], *arrays: Any, into: tuple[Any | None, ...] = ()) -> Any:
        """`rule(*arrays)`, for a rule that treats every entry along the first axis independently.

        The rule returns an array or a tuple of arrays; a scalar result is returned as it is. `into` lists arrays that
        may be overwritten with the results, in their order.
        """

    @abstractmethod
    def sum(self, rule: Callable[..., Any], *arrays: Any) -> float:
        """The sum of `rule(*arrays)` in double precision, for a rule as in `map`."""

    @abstractmethod
    def map_reduce(self, rule: Callable[..., Any], *arrays: Any, into: tuple[Any | None, ...] = ()) -> tuple[Any, ...]:
        """As `map`, for a rule that returns a tuple: first a vector of sums over the entries that it was given, which
        are added up in double precision and returned as a NumPy array; then results as those of `map`."""

    @abstractmethod
    def spmm(self, cells: CellsT, c: Any, far: Any, side: Side) -> Any:
        """For each row u (or column, by `side`): the sum of c * far_i over its observed cells.

        `c` is a cell array or one number for all cells; for 0 the sum is the number 0, not an array.
        """

    def spmm_both(self, cells: CellsT, c: Any, d: Any, far: Any, side: Side) -> tuple[Any, Any]:
        """`spmm` of two coefficients, which an engine may do in one pass."""
        return self.spmm(cells, c, far, side), self.spmm(cells, d, far, side)

    @abstractmethod
    def newton_step(
        self, cells: CellsT, slope: Any, curvature: Any, near: Any, far: Any, penalty: RidgePenalty, side: Side
    ) -> Any:
        """Each row u of `near` (or column, by `side`) after an independent step of Newton's method:

            near_u - A^{-1} g,   g = sum of slope * far_i + l2 * (near_u - centre),
                                 A = sum of curvature * far_i far_i^T + l2

        over its observed cells; slope and curvature are cell arrays.
        """

    @abstractmethod
    def sddmm_at(self, cells: CellsT, which: Array, W: Any, H: Any) -> Any:
        """x = W_u @ H_i at some of the observed cells, by index."""

    @abstractmethod
    def adagrad_step(
        self, cells: CellsT, which: Array, slope: Any, W: Any, H: Any, state: AdagradState,
        counts: tuple[Array, Array], penalties: tuple[RidgePenalty, RidgePenalty],
    ) -> None:  # fmt: skip
        """Update W, H and `state`, in place, by one cell of `which` after another:

            f <- f - learning_rate * g / sqrt(sum),   g = slope * far + l2 * (f - centre) / count,
                                                      sum <- sum + mean(g^2)

        `counts` are the numbers of cells per row and per column, among which the penalties are divided.
        """

    @abstractmethod
    def column_sums(self, factor: Any) -> Any:
        """The sum over all rows of a factor, one number per component."""

    def gram(self, factor: Any) -> Any:
        """F^T F: one row and one column per component."""
        return factor.T @ factor

    @staticmethod
    @abstractmethod
    def digamma_and_log_gamma(a: Any) -> tuple[Any, Any]:
        """The two special functions of the gamma distribution; may be called inside a rule."""
