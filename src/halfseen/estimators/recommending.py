"""The best columns for rows: ids and scores."""

from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from halfseen.arrays import Array
from halfseen.checks import check_parameters, whole
from halfseen.engines.topk import Best, ColumnLists, Products, best_columns
from halfseen.estimators.features import is_list_of_histories, observe_rows
from halfseen.estimators.labelling import labels_at, positions
from halfseen.estimators.seen import Seen
from halfseen.io.sources import as_frame
from halfseen.observed import Observed


class Recommendations(NamedTuple):
    """For each row asked for, the ids of its best columns and their scores, best first.

    Where a row has fewer candidates than another, its last ids are None (-1 for positions) and their scores NaN.
    """

    ids: Array
    """(rows, n) the labels of the columns, or their positions where they have none."""
    scores: Array
    """(rows, n) what the columns were ranked by."""


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
        W, seen = self._rows_to_serve(rows)
        best = best_columns(
            Products(W, self.H_),
            n,
            hidden=seen if exclude_seen else None,
            candidates=self._candidates(items, exclude),
            n_jobs=self.n_jobs,
        )
        return self._named(best)

    def _rows_to_serve(self, rows: Any) -> tuple[Array, ColumnLists]:
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

    def _named(self, best: Best) -> Recommendations:
        """Positions as ids, columns that no row filled left off."""
        filled = best.columns >= 0
        width = int(filled.sum(axis=1).max(initial=0))
        places, scores, filled = best.columns[:, :width], best.scores[:, :width], filled[:, :width]
        if filled.all():
            return Recommendations(labels_at(self, places, "column"), scores)
        nobody: Any = -1 if self.column_labels_ is None else None
        return Recommendations(np.where(filled, labels_at(self, places, "column"), nobody), scores)

    W_: Array
    H_: Array
    seen_: Seen
    column_labels_: Array | None
    n_jobs: int | None
    _folded_in: Any


def _is_data(rows: Any) -> bool:
    """Whether rows are histories to be folded in, rather than names of rows of the fit."""
    if isinstance(rows, Observed | dict) or is_list_of_histories(rows) or as_frame(rows) is not None:
        return True
    if isinstance(rows, list | tuple) and len(rows) > 0:
        return isinstance(rows[0], list | tuple | np.ndarray | dict)
    return getattr(rows, "ndim", 1) == 2
