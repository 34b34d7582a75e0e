"""The best columns for rows: ids and scores."""

from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from halfseen.arrays import Array
from halfseen.checks import check_parameters, whole
from halfseen.data import Observed
from halfseen.data.frames import as_frame
from halfseen.estimators.features import is_list_of_histories, observe_rows
from halfseen.estimators.labelling import labels_at, positions
from halfseen.estimators.seen import Seen

#: Scores held at a time, so that no dense matrix of all rows by all columns is made.
SCORES_PER_BLOCK = 1 << 22


class Recommendations(NamedTuple):
    """For each row asked for, the ids of its best columns and their scores, best first.

    Where a row has fewer candidates than another, its last ids are None (-1 for positions) and their scores NaN.
    """

    ids: Array
    scores: Array


class RecommendingMixin:
    """Adds `recommend` to an estimator with W_, H_, seen_ and labels."""

    def recommend(
        self, rows: Any, n: int = 10, exclude_seen: bool = True, items: Any = None, exclude: Any = None
    ) -> Recommendations:
        """The n best columns for each row, by the model's mean.

        Parameters
        ----------
        rows : labels (or positions) of rows of the fit; or new histories: a list of dicts from column labels to values,
            or data as for `transform`.
        n : how many columns a row.
        exclude_seen : leave out what the row has seen already (in the fit, or in its history).
        items : only these columns are candidates.
        exclude : columns that are never candidates.
        """
        check_is_fitted(self)
        check_parameters({"n": n}, {"n": whole(1)})
        W, (indptr, seen) = self._rows_to_serve(rows)
        candidates = self._candidates(items, exclude)
        H = self.H_ if candidates.size == len(self.H_) else self.H_[candidates]
        best = min(n, candidates.size)
        places = np.full((len(W), best), -1, np.int64)
        scores = np.full((len(W), best), np.nan, W.dtype)
        height = max(1, SCORES_PER_BLOCK // max(1, candidates.size))
        for top in range(0, len(W), height):
            block = slice(top, min(top + height, len(W)))
            x = W[block] @ H.T
            if exclude_seen:
                _hide(x, indptr[block.start : block.stop + 1], seen, candidates, len(self.H_))
            places[block], scores[block] = _best(x, best)
        return self._named(places, scores, candidates)

    def _rows_to_serve(self, rows: Any) -> tuple[Array, tuple[Array, Array]]:
        """W of the rows, and what each has seen."""
        if _is_data(rows):
            observed = observe_rows(self, [rows] if isinstance(rows, dict) else rows)
            W = self._folded_in(observed)
            # Nothing is known of a row without a history: it is served like the average row.
            W[observed.seen_per_row() == 0] = self.W_.mean(axis=0)
            return W, (observed.indptr, observed.indices)
        places = positions(self, rows, "row")
        return self.W_[places], self.seen_.of(places)

    def _candidates(self, items: Any, exclude: Any) -> Array:
        """Positions of the columns that may be recommended, ascending."""
        allowed = np.ones(len(self.H_), bool)
        if items is not None:
            allowed[:] = False
            allowed[positions(self, items, "column")] = True
        if exclude is not None:
            allowed[positions(self, exclude, "column")] = False
        return np.flatnonzero(allowed)

    def _named(self, places: Array, scores: Array, candidates: Array) -> Recommendations:
        """Positions among the candidates as ids, columns that no row filled left off."""
        filled = places >= 0
        width = int(filled.sum(axis=1).max(initial=0))
        places, scores, filled = places[:, :width], scores[:, :width], filled[:, :width]
        if candidates.size == 0:
            return Recommendations(places, scores)
        ids = labels_at(self, candidates[places], "column")
        if not filled.all():
            nobody: Any = -1 if self.column_labels_ is None else None
            ids = np.where(filled, ids, nobody)
        return Recommendations(ids, scores)

    W_: Array
    H_: Array
    seen_: Seen
    column_labels_: Array | None
    _folded_in: Any


def _is_data(rows: Any) -> bool:
    """Whether rows are histories to be folded in, rather than names of rows of the fit."""
    if isinstance(rows, Observed | dict) or is_list_of_histories(rows) or as_frame(rows) is not None:
        return True
    if isinstance(rows, list | tuple) and len(rows) > 0:
        return isinstance(rows[0], list | tuple | np.ndarray | dict)
    return getattr(rows, "ndim", 1) == 2


def _hide(x: Array, indptr: Array, seen: Array, candidates: Array, size: int) -> None:
    """Give what each row has seen a score that is never best."""
    among = np.full(size, -1, np.int64)
    among[candidates] = np.arange(candidates.size)
    cells = among[seen[indptr[0] : indptr[-1]]]
    rows = np.repeat(np.arange(len(x)), np.diff(indptr))
    x[rows[cells >= 0], cells[cells >= 0]] = -np.inf


def _best(x: Array, n: int) -> tuple[Array, Array]:
    """Positions and scores of the n best of each row, best first, ties by position; -1 and NaN where hidden."""
    top = _chosen(x, n)
    scores = np.take_along_axis(x, top, axis=1)
    order = np.argsort(-scores, axis=1, kind="stable")
    places, scores = np.take_along_axis(top, order, axis=1), np.take_along_axis(scores, order, axis=1)
    hidden = np.isneginf(scores)
    return np.where(hidden, -1, places), np.where(hidden, np.nan, scores)


def _chosen(x: Array, n: int) -> Array:
    """Positions of the n best of each row, ascending; of equal ones at the end of the list the first."""
    if n == x.shape[1]:
        return np.broadcast_to(np.arange(n), x.shape)
    last = np.partition(x, -n, axis=1)[:, [-n]]
    better, equal = x > last, x == last
    room = n - better.sum(axis=1, keepdims=True)
    equal &= np.cumsum(equal, axis=1, dtype=np.int32) <= room
    return np.nonzero(better | equal)[1].reshape(len(x), n)
