"""The operations that every engine implements, on arrays of its own kind.

A cell array has one number per observed cell, in row order, whichever side it is used for. A factor array has one row
per row (or column) of the matrix and one column per component. Rules are those of `likelihoods.rules`, or functions of
the same form on other arrays: called with parameters and arrays, they return `Terms`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Any, ClassVar, Generic, Literal, NamedTuple, Protocol, Self, TypeVar

import numpy as np
from scipy.special import ndtri

from halfseen.array_files import ArrayFile, write_array
from halfseen.arrays import Array, namespace
from halfseen.likelihoods.base import Likelihood
from halfseen.likelihoods.rules import Terms, summed
from halfseen.observed import Observed

#: From parameters and arrays to `Terms`.
Rule = Callable[..., Terms]


class Side(Enum):
    """Which factor a half-step updates."""

    ROWS = "rows"
    """W, one row per row of the matrix."""
    COLUMNS = "columns"
    """H, one row per column of the matrix."""

    @property
    def other(self) -> "Side":
        return Side.COLUMNS if self is Side.ROWS else Side.ROWS


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

    @property
    def row_shards(self) -> Sequence[slice] | None:
        """Rows that are summed apart, where the order of sums is to be that of a cluster; None if it is not."""

    @property
    def cell_shards(self) -> Sequence[slice] | None:
        """The cells of these rows."""


CellsT = TypeVar("CellsT", bound=DeviceCells)
#: What an array has an entry of along its first axis: rows or columns of the matrix, observed cells, or neither.
Along = Side | Literal["cells"] | None

#: A sum of squares that cells take back from a Gram matrix up to so many units of rounding is taken for 0.
CANCELLED = 64
#: Columns listed for each row, as in a CSR matrix: pointers, and columns.
ColumnLists = tuple[Array, Array]


class Best(NamedTuple):
    """For each row its best columns and their scores, best first; -1 and NaN where fewer columns remained."""

    columns: Array
    scores: Array


class Sums(NamedTuple):
    """Results of a pass over the cells."""

    rows: tuple[Any, ...]
    """For each array of the rule, its sum times the columns' factor along each row; empty if not asked for."""
    columns: tuple[Any, ...]
    """The same along columns."""
    totals: Any
    """A vector in double precision: the sums of the rule's totals, then those by level, level after level."""


class RidgePenalty(NamedTuple):
    """l2 / 2 * (f - centre)^2 for each component of every row f of a factor."""

    l2: Array
    centre: Array
    fixed: Array
    """1 for components that must not move, else 0."""


class Gradients(NamedTuple):
    """The summed cost, and its gradient by both factors and by the parameters of the loss."""

    cost: float
    rows: Array
    columns: Array
    parameters: Array


class AdagradState(NamedTuple):
    """Sums of squared gradients so far, one number per row, per column and per parameter of the likelihood."""

    learning_rate: float
    rows: Array
    columns: Array
    parameters: Array


class RowDraws:
    """Random numbers for factors to start from, with a stream for each row, keyed on the seed and the row.

    No range of rows depends on what was drawn for others. Every call draws from streams of its own. The methods are
    those of `numpy.random.RandomState` that solvers use.

    Parameters
    ----------
    seed : int
        Of all streams.
    first : int, default=0
        Number of the first row that is drawn.
    stream : int, default=0
        Number of calls before.
    """

    def __init__(self, seed: int, first: int = 0, stream: int = 0) -> None:
        self._seed, self._first, self._stream = seed, first, stream

    def uniform(self, size: tuple[int, int]) -> Array:
        from halfseen.kernels.random_streams import fill_rows

        numbers = np.empty(size)
        fill_rows(self._seed, self._stream, self._first, numbers)
        self._stream += 1
        return numbers

    def standard_gamma(self, shape: float, size: tuple[int, int]) -> Array:
        """Of shape 1: exponential numbers."""
        if shape != 1.0:
            raise NotImplementedError(f"a shape of {shape}")
        return -np.log1p(-self.uniform(size))

    def normal(self, loc: float, scale: float, size: tuple[int, int]) -> Array:
        draws: Array = loc + scale * ndtri(self.uniform(size) + 2.0**-54)
        return draws


class Engine(ABC, Generic[CellsT]):
    """A device to compute on. Use it as a context: threads and devices are held only inside.

    An engine must have the abstract operations; `sweep` and others are made of these, until an engine does better.
    """

    name: str
    #: What there is beyond them: "newton", "sgd", "gd" and "numpy" (its arrays are NumPy's), which solvers and
    #: likelihoods may need, and "top_k".
    offers: ClassVar[frozenset[str]] = frozenset()
    #: Where the workers of a cluster find files; None: a temporary folder.
    folder: Path | None = None
    #: Number of the iteration that runs, for the names of tasks on a cluster.
    iteration: int = 0
    #: On a cluster: called now and then with how many tasks of a pass over the cells are done, and how many there are.
    on_progress: Callable[[int, int], None] | None = None
    #: On a cluster: called with a sentence when workers are lost; without it, that is logged.
    on_loss: Callable[[str], None] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def check_memory(self, observed: Observed, n_components: int, likelihood: Likelihood) -> None:
        """Refuse a fit that the device has no room for, before anything is placed there; the host is not checked."""
        return

    @abstractmethod
    def place(self, observed: Observed, *sides: Side, shards: Sequence[slice] | None = None) -> CellsT:
        """Copy the observed cells to the device, ordered for the sides along which sums will be taken.

        `shards` are rows to be summed apart, as `DeviceCells.row_shards`, those of other cells of the same rows; None
        lets the cells decide.
        """

    @abstractmethod
    def asarray(self, array: Array, side: Side | None = None) -> Any:
        """Copy an array to the device; `side` says whose rows it has, if that is one of the two."""

    @abstractmethod
    def to_numpy(self, array: Any) -> Array:
        """Copy an array back to the host."""

    def fetch(self, *vectors: Any) -> list[Array]:
        """Copy vectors in double precision back to the host, all at once."""
        return [self.to_numpy(vector) for vector in vectors]

    def store(self, arrays: Mapping[str, Any], folder: Path) -> "dict[str, list[ArrayFile]]":
        """Write arrays of the device to files of a folder, each in one piece, or in several by rows.

        Parameters
        ----------
        arrays : mapping of str to array
            Names of files to begin with, and what they hold.
        folder : Path
            Where to write; it exists, and on a cluster all workers see it.

        Returns
        -------
        dict of str to list of ArrayFile
            The pieces of each array, in the order of their rows.
        """
        return {name: [write_array(self.to_numpy(array), folder / name)] for name, array in arrays.items()}

    def restore(self, pieces: "Sequence[ArrayFile]", along: Along = None) -> Any:
        """An array that `store` wrote, by this engine or another one, on this device.

        Parameters
        ----------
        pieces : sequence of ArrayFile
            As `store` returned them. They must stay until the next `store`.
        along : Side or "cells", default=None
            Whether it has a row for each row of the matrix, or for each column, or an entry for each observed cell. The
            cells are placed before arrays of rows and of cells are restored.
        """
        arrays = [piece.read() for piece in pieces]
        whole = arrays[0] if len(arrays) == 1 else np.concatenate(arrays)
        return self.asarray(whole, along if isinstance(along, Side) else None)

    def by_shard(self, function: Callable[..., Any], cells: CellsT, *arrays: Array) -> list[Any]:
        """What `function(engine, cells, *arrays)` gives for the rows of each shard, in their order.

        For work in which rows are independent. Arrays are those of the host.
        """
        return [function(self, cells, *arrays)]

    def row_draws(self, seed: int) -> Any:
        """Draws of random starts of matrices with several shards."""
        return RowDraws(seed)

    @abstractmethod
    def sddmm(self, cells: CellsT, W: Any, H: Any) -> Any:
        """x = W_u @ H_i at every observed cell."""

    @abstractmethod
    def spmm(self, cells: CellsT, c: Any, far: Any, side: Side) -> Any:
        """For each row u (or column, by `side`): the sum of c * far_i over its observed cells, c a cell array."""

    def sweep(
        self, cells: CellsT, rule: Rule, params: Any, W: Any, H: Any, *sides: Side, n_levels: int = 0
    ) -> Sums:  # fmt: skip
        """One pass over the observed cells.

        Parameters
        ----------
        cells : DeviceCells
            The cells.
        rule : callable
            Called as `rule(params, y, x, weights, first)` with x = W_u @ H_i.
        params : object
            Its parameters.
        W, H : array
            The factors. One of them may be None if the rule does not need x, and only the other side is summed.
        *sides : Side
            Along which to sum: each array of the rule times the other side's factor. Totals are there unless these are
            the columns alone.
        n_levels : int, default=0
            Number of levels of the sums by level.

        Returns
        -------
        Sums
        """
        x = None if W is None or H is None else self.sddmm(cells, W, H)
        terms = rule(params, cells.y, x, cells.weights, cells.is_first_at_cell)
        rows, columns = (
            tuple(self.spmm(cells, c, far, side) for c in terms.arrays) if side in sides else ()
            for side, far in ((Side.ROWS, H), (Side.COLUMNS, W))
        )
        return Sums(rows, columns, self._totals(cells.y, terms, n_levels))

    def map(
        self, rule: Rule, params: Any, *arrays: Any, n_levels: int = 0, shards: Sequence[slice] | None = None
    ) -> tuple[tuple[Any, ...], Any]:
        """`rule(params, *arrays)`, for a rule that treats every entry along the first axis independently.

        Returns its arrays, and a vector in double precision as `Sums.totals`; the first of the arrays that it is given
        holds the levels. Arrays may be None. `shards` are entries to be summed apart, as `DeviceCells` has them.
        """
        terms = rule(params, *arrays)
        return terms.arrays, self._totals(arrays[0], terms, n_levels)

    def _totals(self, levels: Any, terms: Terms, n_levels: int) -> Any:
        """The vector of all sums of a rule."""
        if not terms.totals and not terms.by_level:
            return None
        sums = [self._double_sum(total)[None] for total in terms.totals]
        sums += [self.sums_by_level(levels, values, n_levels) for values in terms.by_level]
        return namespace(sums[0]).concat(sums)

    @staticmethod
    def _double_sum(array: Any) -> Any:
        xp = namespace(array)
        return xp.sum(array, dtype=xp.float64)

    def sums_by_level(self, levels: Any, values: Any, n_levels: int) -> Any:
        """The sum in double precision of the values of each level."""
        xp = namespace(values)
        zero = xp.zeros_like(values)
        return xp.stack([self._double_sum(xp.where(levels == v, values, zero)) for v in range(n_levels)])

    def column_sums(self, factor: Any, shards: Sequence[slice] | None = None) -> Any:
        """The sum over all rows of a factor, one number per component."""
        xp = namespace(factor)
        return xp.astype(xp.sum(factor, axis=0, dtype=xp.float64), factor.dtype)

    def over_rows(
        self, function: Callable[..., Any], params: Any, *arrays: Any, shards: Sequence[slice] | None = None,
        summed: bool = True,
    ) -> Any:  # fmt: skip
        """`function(params, *arrays)`, of the rows of each shard: a sum over rows, or else an array of as many rows."""
        return function(params, *arrays)

    def gram(self, factor: Any, shards: Sequence[slice] | None = None) -> Any:
        """F^T F: one row and one column per component."""
        return factor.T @ factor

    def conjugate_gradients(
        self, cells: CellsT, curvature: Any, pull: Any, near: Any, far: Any, gram: Any, l2: Any, side: Side,
        n_steps: int, tol: float = 0.0,
    ) -> tuple[Any, Any]:  # fmt: skip
        """Each row f of `near` (or column, by `side`) after steps of conjugate gradients towards the solution of

            A f = b,   A = gram + sum of curvature * far_i far_i^T + l2_u,   b = sum of pull * far_i

        over its observed cells; curvature and pull are cell arrays, `l2` has a number for each row of `near`. A row
        stops early when a step lowers f A f / 2 - b f by less than `tol` times the sum of its |pull|, and stays where A
        is 0 but for rounding. A row without a pull becomes 0.

        Returns
        -------
        rows : array
            The rows after the steps.
        total : array of shape (1,)
            The sum over rows of f A f / 2 - b f, in double precision.
        """
        xp = namespace(near)

        def along_cells(F: Any) -> Any:
            return self.sddmm(cells, *((F, far) if side is Side.ROWS else (far, F)))

        def dots(F: Any, G: Any) -> Any:
            return xp.sum(F * G, axis=1, keepdims=True)

        def total_of(array: Any, shards: Any) -> Any:
            return self.map(summed, None, array, shards=shards)[1]

        shards = cells.row_shards if side is Side.ROWS else None
        weight = self.spmm(cells, namespace(pull).abs(pull), namespace(far).ones_like(far[:, :1]), side)
        near, limit = xp.where(weight > 0, near, 0.0), tol * weight
        l2, x = l2[:, None], along_cells(near)
        residual = self.spmm(cells, pull - curvature * x, far, side) - (near @ gram + l2 * near)
        total = -0.5 * (total_of(pull * x, cells.cell_shards) + total_of(near * residual, shards))
        direction, size = residual, dots(residual, residual)
        moves = (size > 0) & (weight > 0)
        for _ in range(n_steps):
            image = direction @ gram
            noise = CANCELLED * float(xp.finfo(near.dtype).eps) * dots(direction, image)
            image = image + l2 * direction + self.spmm(cells, curvature * along_cells(direction), far, side)
            bend = dots(direction, image)
            moves = moves & (bend > noise)
            step = xp.where(moves, size / xp.where(moves, bend, 1.0), 0.0)
            near, residual = near + step * direction, residual - step * image
            total = total - 0.5 * total_of(step * size, shards)
            moves = moves & (step * size > limit)
            shrunk = dots(residual, residual)
            direction = residual + xp.where(moves, shrunk / xp.where(moves, size, 1.0), 0.0) * direction
            size = shrunk
        return near, total

    def newton_step(
        self, cells: CellsT, slope: Any, curvature: Any, near: Any, far: Any, penalty: RidgePenalty, side: Side
    ) -> Any:
        """Each row u of `near` (or column, by `side`) after an independent step of Newton's method:

            near_u - A^{-1} g,   g = sum of slope * far_i + l2 * (near_u - centre),
                                 A = sum of curvature * far_i far_i^T + l2

        over its observed cells; slope and curvature are cell arrays. Of engines that offer "newton".
        """
        raise NotImplementedError

    def sddmm_at(self, cells: CellsT, which: Array, W: Any, H: Any) -> Any:
        """x = W_u @ H_i at some of the observed cells, by index. Of engines that offer "sgd"."""
        raise NotImplementedError

    def adagrad_step(
        self, cells: CellsT, which: Array, slope: Any, W: Any, H: Any, state: AdagradState,
        counts: tuple[Array, Array], penalties: tuple[RidgePenalty, RidgePenalty],
    ) -> None:  # fmt: skip
        """Update W, H and `state`, in place, by one cell of `which` after another:

            f <- f - learning_rate * g / sqrt(sum),   g = slope * far + l2 * (f - centre) / count,
                                                      sum <- sum + mean(g^2)

        `counts` are the numbers of cells per row and per column, among which the penalties are divided. Of engines that
        offer "sgd".
        """
        raise NotImplementedError

    def gradients(
        self, cells: CellsT, loss: str, tau: Array, shape: tuple[float, float, float], W: Any, H: Any,
        counts: tuple[Array, Array], penalties: tuple[RidgePenalty, RidgePenalty],
    ) -> Gradients:  # fmt: skip
        """The summed cost of the observed cells under a loss of `likelihoods.rounding`, with the ridge of both rows of
        each cell, and the gradient of that sum. `tau` are the thresholds, or the offset of "linear"; `shape` are
        margin, ends and smoothing of "round"; `counts` are the weights of all cells of each row and column. Of engines
        that offer "gd".
        """
        raise NotImplementedError

    def top_k(self, W: Array, H: Array, n: int, hidden: ColumnLists | None) -> Best:
        """The n best columns of each row of W @ H.T, but for hidden ones; of equal scores the first column.

        Arrays are the host's. Scores of NaN and -inf are never among them. Of engines that offer "top_k".
        """
        raise NotImplementedError
