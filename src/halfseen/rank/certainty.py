"""What is certain of the unseen cells of a matrix of ordered levels: Chapter 3, and what it leaves open."""

import warnings
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from scipy.sparse import coo_array
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from halfseen import checks
from halfseen.arrays import Array
from halfseen.errors import DataError, DataWarning, ParameterError
from halfseen.estimators.ordinal_mf import ThresholdFactorization as GradedFactorization
from halfseen.labels import Places
from halfseen.model import read_cells
from halfseen.observed import Observed, match_cells
from halfseen.rank.uniqueness.answers import Answers, Question, answers
from halfseen.rank.uniqueness.conditions import bound_of_sums

#: Unseen cells that are looked at without being named.
MOST_CELLS = 20_000
_RULES = {"effort": checks.whole(1), "random_state": checks.seed()}


class Verdict(StrEnum):
    """What is known of an unseen cell."""

    FORCED = "forced"
    """Every matrix of the model's rank that has the seen levels has the same level here: proved."""
    OPEN = "open"
    """Two such matrices with different levels here were found."""
    UNDECIDED = "undecided"
    """Neither."""


@dataclass(frozen=True)
class Certainty:
    """A table by columns, a line for each unseen cell that was asked about."""

    rows: Array
    """The row of the cell: its label as in the model, its position if it has none."""
    columns: Array
    """The column of the cell, likewise."""
    verdict: Array
    """"forced", "open" or "undecided"."""
    level: Array
    """The level of the model."""
    lowest: Array
    """The lowest level of matrices that were found with all seen levels; the forced level where one is forced."""
    highest: Array
    """The highest of these."""
    coefficients: Array
    """sum |a_k|  of Eq. 3.1, with the r seen cells of the column for which it is least; infinite if there are none."""
    sufficient: Array
    """Whether Eq. 3.12 holds for these: no change of the column's factor alone gives the cell another level."""
    bound: float
    """T_min / T_max  of Eq. 3.1."""
    shape: tuple[int, int]
    """The shape of the data."""
    positions: tuple[Array, Array]
    """The positions of the rows and of the columns of the cells."""

    @property
    def counts(self) -> dict[str, int]:
        """How many cells got each verdict."""
        return {str(verdict): int(np.count_nonzero(self.verdict == verdict)) for verdict in Verdict}

    def as_matrix(self) -> Array:
        """The verdicts in the shape of the data; empty texts at cells that were seen, or not asked about."""
        matrix = np.full(self.shape, "", dtype=self.verdict.dtype)
        matrix[self.positions] = self.verdict
        return matrix


def certainty(model: Any, Y: Any, cells: Any = None, *, effort: int = 200, random_state: Any = 0) -> Certainty:
    """For each unseen cell: is its level forced, open, or undecided, given the seen levels and the rank of the model?

    Let X* be all matrices X = U V' of the model's rank with  tau_y < x <= tau_{y+1}  at every seen cell, y its level:
    levels are taken as free of noise, and thresholds as known (section 3.1). A cell is *forced* if a proof was found
    that all of X* have one level there, *open* if two members of X* with different levels there were found, else
    *undecided*. Both are checked in exact arithmetic. With biases, U and V have a column of ones each.

    Parameters
    ----------
    model : a fitted RoundMF, or OrdinalMF without own thresholds.
    Y : the seen levels, data as for `fit`, in the rows and columns of the model.
    cells : the unseen cells of interest, as a pair (rows, cols) like that of `predict`; None: all, if they are not too
        many.
    effort : how many sets of rows, and of columns, are tried in the proofs about a cell, and how many steps a random
        walk through X* takes in search of other levels. More leaves fewer cells undecided.
    random_state : of the walk.

    Returns
    -------
    A `Certainty`: arrays with an entry a cell, `counts` and `as_matrix()`.

    Examples
    --------
    >>> import numpy as np, halfseen as hs
    >>> Y = np.where(np.eye(8, k=3), np.nan, np.triu(np.ones((8, 8))))
    >>> model = hs.RoundMF(1, loss="round", thresholds=[0.5], biases=False, random_state=0).fit(Y)
    >>> hs.rank.certainty(model, Y).counts
    {'forced': 5, 'open': 0, 'undecided': 0}
    """
    checks.check_parameters({"effort": effort, "random_state": random_state}, _RULES)
    _check_model(model)
    seen = _levels_seen(model, Y)
    u, i = _unseen(seen) if cells is None else _asked(model, seen, cells)
    found = answers(_question(model, seen), u, i, effort, check_random_state(random_state))
    _warn_of_missed(found, seen)
    return _told(model, seen, u, i, found)


def _check_model(model: Any) -> None:
    if not isinstance(model, GradedFactorization):
        raise ParameterError(
            "model must cut levels out of W H' by thresholds: a RoundMF or an OrdinalMF. "
            f"Found a {type(model).__name__}. Fit one of these."
        )
    check_is_fitted(model)
    if getattr(model, "own_thresholds_", None) is not None:
        raise ParameterError(
            "model must have the same thresholds in all cells. Found thresholds of rows' or columns' own. "
            "Fit with own_thresholds=None."
        )


def _levels_seen(model: Any, Y: Any) -> Observed:
    """The seen cells, their values as level codes."""
    cells = read_cells(Y, "Y", model.model_.unseen, model.model_.encoder.levels_to_read)
    if cells.unseen == "zero":
        raise ParameterError(
            'Unseen cells of Y must be missing. Found unseen="zero", which gives each of them a level. '
            'Observe Y with unseen="missing".'
        )
    shape, labels = (len(model.W_), len(model.H_)), Places(model.row_labels_, model.column_labels_)
    counted: Observed = model.model_.encoder.codes(match_cells(cells, shape, labels, "Y", duplicates="error"))
    return counted


def _unseen(seen: Observed) -> tuple[Array, Array]:
    if seen.n_unobserved > MOST_CELLS:
        raise ParameterError(
            f"cells must be named where more than {MOST_CELLS} are unseen. Found {seen.n_unobserved} unseen cells. "
            "Pass cells=(rows, cols)."
        )
    hidden = np.ones(seen.shape, bool)
    hidden[seen.row_of_cell(), seen.indices] = False
    u, i = np.nonzero(hidden)
    return u, i


def _asked(model: Any, seen: Observed, cells: Any) -> tuple[Array, Array]:
    """The positions of named cells; refused where one of them was seen."""
    if not (isinstance(cells, tuple | list) and len(cells) == 2):
        raise ParameterError(
            f"cells must be a pair (rows, cols), or None for all. Found {cells!r}. Pass two equally long lists."
        )
    u, i = (np.atleast_1d(places) for places in np.broadcast_arrays(*model.model_.pairs(*cells)))
    place = seen.row_of_cell().astype(np.int64) * seen.shape[1] + seen.indices
    known = np.flatnonzero(np.isin(u * seen.shape[1] + i, place))
    if known.size:
        where = Places(model.row_labels_, model.column_labels_).of(int(u[known[0]]), int(i[known[0]]))
        raise DataError(f"cells must be unseen in Y. Found {where} ({known.size} seen in all). Leave them out.")
    return u, i


def _question(model: Any, seen: Observed) -> Question:
    codes = coo_array((seen.values.astype(np.intp) + 1, (seen.row_of_cell(), seen.indices)), shape=seen.shape)
    W, H, thresholds = (np.asarray(each, dtype=np.float64) for each in (model.W_, model.H_, model.thresholds_))
    return Question(W, H, thresholds, codes, model.row_biases_ is not None)


def _warn_of_missed(found: Answers, seen: Observed) -> None:
    if found.missed:
        warnings.warn(
            f"The model should give every seen cell its level. Found {found.missed} of {seen.nnz} that it misses. "
            'No cell was called open, for want of a matrix to start from: fit with loss="round", more components, or '
            "more starts (n_init).",
            DataWarning,
            stacklevel=3,  # where the user called certainty
        )


def _told(model: Any, seen: Observed, u: Array, i: Array, found: Answers) -> Certainty:
    verdict = np.where(found.lowest < found.highest, str(Verdict.OPEN), str(Verdict.UNDECIDED))
    return Certainty(
        rows=model.model_.labels_at(u, "row"),
        columns=model.model_.labels_at(i, "column"),
        verdict=np.where(found.is_forced, str(Verdict.FORCED), verdict),
        level=model.levels_[found.level],
        lowest=model.levels_[found.lowest],
        highest=model.levels_[found.highest],
        coefficients=found.conditions.sums,
        sufficient=found.conditions.sufficient,
        bound=bound_of_sums(np.asarray(model.thresholds_)),
        shape=seen.shape,
        positions=(u, i),
    )
