"""Which levels of unseen cells are certain, given the seen levels and the rank: Chapter 3, and what it leaves open."""

import warnings
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike
from scipy.sparse import coo_array
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from halfseen import validation
from halfseen.arrays import Array
from halfseen.errors import DataError, DataWarning, ParameterError
from halfseen.estimators.ordinal_mf import ThresholdFactorization
from halfseen.labels import Places
from halfseen.observed import Observed, match_cells
from halfseen.ranking import read_cells
from halfseen.roundrank import witnesses
from halfseen.roundrank.chains import rank_one_level_ranges
from halfseen.roundrank.exact_rounding import exact_levels
from halfseen.roundrank.forcing import IntervalMatrix, forced_cells

#: Unseen cells that are examined without being named.
MAX_CELLS = 20_000
#: Largest share of seen cells that factors may miss and still be repaired.
_MAX_MISSED = 0.1


class Verdict(StrEnum):
    """Verdict on an unseen cell."""

    FORCED = "forced"
    """Every matrix of the model's rank that has the seen levels has the same level here: proved."""
    OPEN = "open"
    """Two such matrices with different levels here are known."""
    UNDECIDED = "undecided"
    """Neither."""


@dataclass(frozen=True)
class Certainty:
    """Verdicts on unseen cells: a table by columns, one entry per cell."""

    rows: Array
    """Row of the cell: its label in the model, or its position if it has none."""
    columns: Array
    """Column of the cell, likewise."""
    verdict: Array
    """"forced", "open" or "undecided"."""
    level: Array
    """Level of the model."""
    lowest: Array
    """Lowest level among the matrices found with all seen levels; the forced level where one is forced."""
    highest: Array
    """Highest of these levels."""
    coefficients: Array
    """sum |a_k|  of Eq. 3.1, with the r seen cells of the column for which it is least; infinite if there are none."""
    sufficient: Array
    """Whether Eq. 3.12 holds for these: no change of the column's factor alone gives the cell another level."""
    bound: float
    """T_min / T_max  of Eq. 3.1."""
    shape: tuple[int, int]
    """Shape of the data."""
    positions: tuple[Array, Array]
    """Positions of the rows and of the columns of the cells."""

    @property
    def counts(self) -> dict[str, int]:
        """Number of cells with each verdict."""
        return {str(verdict): int(np.count_nonzero(self.verdict == verdict)) for verdict in Verdict}

    def as_matrix(self) -> Array:
        """Return the verdicts in the shape of the data; empty texts at cells that are seen, or not requested."""
        matrix = np.full(self.shape, "", dtype=self.verdict.dtype)
        matrix[self.positions] = self.verdict
        return matrix


def certainty(
    model: ThresholdFactorization,
    Y: ArrayLike | Observed,
    cells: tuple[ArrayLike, ArrayLike] | None = None,
    *,
    effort: int = 200,
    random_state: int | RandomState | None = 0,
) -> Certainty:
    """For each unseen cell: is its level forced, open, or undecided, given the seen levels and the rank of the model?

    Let X* be all matrices X = U V' of the model's rank with  tau_y < x <= tau_{y+1}  at every seen cell, y its level:
    levels are taken as free of noise, and thresholds as known (section 3.1). A cell is *forced* if there is a proof
    that all of X* have one level there, *open* if two members of X* with different levels there are known, else
    *undecided*. Both are checked in exact arithmetic. With biases, U and V have a column of ones each.

    Parameters
    ----------
    model : RoundMF or OrdinalMF
        Fitted model; an OrdinalMF must have one set of thresholds for all cells.
    Y : array-like, sparse matrix, DataFrame or Observed
        Seen levels, data as for `fit`, in the rows and columns of the model.
    cells : tuple (rows, cols), default=None
        Unseen cells of interest, a pair as for `predict`. If None, all, if they are not too many.
    effort : int, default=200
        Number of sets of rows, and of columns, that are tried in the proofs about a cell, and of steps of a random walk
        through X* in search of other levels. More leaves fewer cells undecided.
    random_state : int, RandomState instance or None, default=0
        Random seed of the walk.

    Returns
    -------
    Certainty
        Arrays with one entry per cell, `counts` and `as_matrix()`.

    Examples
    --------
    >>> import numpy as np, halfseen as hs
    >>> Y = np.where(np.eye(8, k=3), np.nan, np.triu(np.ones((8, 8))))
    >>> model = hs.RoundMF(1, loss="round", thresholds=[0.5], biases=False, n_init=5, random_state=0).fit(Y)
    >>> hs.rank.certainty(model, Y).counts
    {'forced': 5, 'open': 0, 'undecided': 0}
    """
    validation.check_parameters(
        {"effort": effort, "random_state": random_state},
        {"effort": validation.whole(1), "random_state": validation.seed()},
    )
    seen = _read_levels(model, Y)
    u, i = _requested_cells(model, seen, cells)
    W, H, thresholds = (np.asarray(each, dtype=np.float64) for each in (model.W_, model.H_, model.thresholds_))
    codes = coo_array((seen.values.astype(np.intp) + 1, (seen.row_of_cell(), seen.indices)), shape=seen.shape)
    problem = UniquenessProblem(W, H, thresholds, codes, model.row_biases_ is not None)
    result = problem.decide(u, i, effort, check_random_state(random_state))
    if result.n_missed:
        warning = DataWarning(
            "The model should give every seen cell its level.", found=f"{result.n_missed} of {seen.nnz} that it misses",
            remedy='No cell was called open, for want of a matrix to start from: fit with `loss="round"`, more '
            "components, or more starts (`n_init`).",
        )  # fmt: skip
        warnings.warn(warning, stacklevel=2)
    verdict = np.where(result.lowest < result.highest, str(Verdict.OPEN), str(Verdict.UNDECIDED))
    coefficients, sufficient = witnesses.fixed_row_conditions(problem.sides[1], W, u, i)
    return Certainty(
        rows=model.model_.labels_at(u, "row"), columns=model.model_.labels_at(i, "column"),
        verdict=np.where(result.forced, str(Verdict.FORCED), verdict), level=model.levels_[result.level],
        lowest=model.levels_[result.lowest], highest=model.levels_[result.highest],
        coefficients=coefficients, sufficient=sufficient,
        bound=witnesses.coefficient_bound(np.asarray(model.thresholds_)), shape=seen.shape, positions=(u, i),
    )  # fmt: skip


def _read_levels(model: ThresholdFactorization, Y: ArrayLike | Observed) -> Observed:
    """The seen cells in the rows and columns of the model, their values as level codes."""
    if not isinstance(model, ThresholdFactorization):
        raise ParameterError(
            "must cut levels out of W H' by thresholds: a RoundMF or an OrdinalMF.",
            found=f"a {type(model).__name__}", remedy="Fit one of these.", parameter="model",
        )  # fmt: skip
    check_is_fitted(model)
    if getattr(model, "own_thresholds_", None) is not None:
        raise ParameterError(
            "must have the same thresholds in all cells.", found="thresholds per row or per column",
            remedy="Fit with `own_thresholds=None`.", parameter="model",
        )  # fmt: skip
    cells = read_cells(Y, "Y", model.model_.unseen, model.model_.encoder.levels_to_read)
    if cells.unseen == "zero":
        raise ParameterError(
            "Unseen cells of Y must be missing.", found='unseen="zero", which gives each of them a level',
            remedy='Observe Y with `unseen="missing"`.', parameter="Y",
        )  # fmt: skip
    shape, labels = (len(model.W_), len(model.H_)), Places(model.row_labels_, model.column_labels_)
    return model.model_.encoder.codes(match_cells(cells, shape, labels, "Y", duplicates="error"))


def _requested_cells(
    model: ThresholdFactorization, seen: Observed, cells: tuple[ArrayLike, ArrayLike] | None
) -> tuple[Array, Array]:
    """Positions of the requested cells, or of all unseen ones; refused if they are too many, or one of them is seen."""
    rows, columns = seen.row_of_cell(), seen.indices
    if cells is None:
        if seen.n_unobserved > MAX_CELLS:
            raise ParameterError(
                f"must be named where more than {MAX_CELLS} are unseen.", found=f"{seen.n_unobserved} unseen cells",
                remedy="Pass `cells=(rows, cols)`.", parameter="cells",
            )  # fmt: skip
        hidden = np.ones(seen.shape, bool)
        hidden[rows, columns] = False
        u, i = np.nonzero(hidden)
        return u, i
    if not (isinstance(cells, tuple | list) and len(cells) == 2):
        raise ParameterError(
            "must be a pair (rows, cols), or None for all.", found=repr(cells),
            remedy="Pass two equally long lists.", parameter="cells",
        )  # fmt: skip
    u, i = (np.atleast_1d(positions) for positions in np.broadcast_arrays(*model.model_.pairs(*cells)))
    width = seen.shape[1]
    known = np.flatnonzero(np.isin(u * width + i, rows.astype(np.int64) * width + columns))
    if known.size:
        first = Places(model.row_labels_, model.column_labels_).of(int(u[known[0]]), int(i[known[0]]))
        raise DataError(
            "must be unseen in Y.", found=f"{first} ({known.size} seen in all)",
            remedy="Leave them out.", parameter="cells",
        )  # fmt: skip
    return u, i


@dataclass(frozen=True)
class Decision:
    """Level codes and proofs with one entry per cell, and the number of seen cells that the factors miss for good."""

    level: Array
    lowest: Array
    highest: Array
    forced: Array
    n_missed: int


@dataclass(frozen=True)
class UniquenessProblem:
    """All matrices of the rank and the form of W H' that have the seen levels: which levels do they share?

    `seen` holds the seen levels, plus 1. With `biases` the last column of W and the last but one of H are fixed ones.
    """

    W: Array
    H: Array
    thresholds: Array
    seen: coo_array
    biases: bool = False

    @property
    def rank(self) -> int:
        return int(self.W.shape[1])

    @cached_property
    def sides(self) -> tuple[witnesses.Side, witnesses.Side]:
        """Rows and columns."""
        movable_rows, movable_columns = np.ones((2, self.rank), bool)
        if self.biases:
            movable_rows[-1] = movable_columns[-2] = False
        codes = self.seen.tocsr()
        codes.sort_indices()
        return (
            witnesses.Side(self.W, self.H, codes, self.thresholds, movable_rows),
            witnesses.Side(self.H, self.W, codes.T.tocsr(), self.thresholds, movable_columns),
        )

    def decide(self, u: Array, i: Array, effort: int, random: RandomState) -> Decision:
        """Which levels the unseen cells (u, i) have, can have, and must have."""
        level = exact_levels(self.W[u], self.H[i], self.thresholds)
        # factors with all seen levels, repaired if that helps
        rows, columns = self.sides
        n_missed = rows.violations().size
        if 0 < n_missed <= _MAX_MISSED * self.seen.nnz:
            repaired = witnesses.repair(rows, columns)
            if not repaired[0].violations().size:
                (rows, columns), n_missed = repaired, 0
        # other levels by moving row and column; then proofs; then other levels on a random walk
        lowest, highest = (level.copy(), level.copy()) if n_missed else witnesses.attained_levels(rows, columns, u, i)
        forced = np.zeros(u.size, bool)
        remaining = np.flatnonzero(lowest == highest)
        proved, levels = self.prove(u[remaining], i[remaining], lowest[remaining], effort)
        forced[remaining[proved]] = True
        lowest[remaining[proved]] = highest[remaining[proved]] = levels[proved]
        remaining = remaining[~proved]
        if not n_missed:
            lowest[remaining], highest[remaining] = witnesses.attained_on_walk(
                rows, columns, u[remaining], i[remaining], effort, random
            )
        return Decision(level, lowest, highest, forced, n_missed)

    def prove(self, u: Array, i: Array, levels: Array, effort: int) -> tuple[Array, Array]:
        """Which cells are forced, and to which levels: to those given, except at rank one, where they are computed."""
        if self.rank > 1:
            matrix = IntervalMatrix.of(self.seen, self.thresholds, self.rank, self.biases)
            return forced_cells(matrix, u, i, levels, effort), levels
        lowest, highest = rank_one_level_ranges(self.seen, self.thresholds, u, i)
        return lowest == highest, lowest
