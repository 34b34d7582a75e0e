"""From what a user passes to a table for the rank-one methods; a dense one is not made a list of cells."""

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from halfseen.arrays import Array
from halfseen.engines.threads import Threads
from halfseen.estimators.features import is_list_of_histories, observe_for_fit, observe_rows, remember_columns
from halfseen.estimators.seen import Seen
from halfseen.io.reader import grid_of
from halfseen.likelihoods import Poisson
from halfseen.observed import Observed
from halfseen.rank_one import DenseTable, ListedTable, Marginals, Table


class Read(NamedTuple):
    """The data of a fit: as a table, which cells were seen if that is not in the table, the labels, the precision."""

    table: Table
    seen: Seen | None
    labels: tuple[Array | None, Array | None]
    dtype: np.dtype


def read_for_fit(model: Any, X: Any, cell_weight: Any, inner_shape: tuple[int, ...] | None, threads: Threads) -> Read:
    """The data that a model is fitted to."""
    if cell_weight is None and model.unseen == "missing" and (grid := grid_of(X)) is not None:
        table = DenseTable(grid.values, threads, inner_shape)
        if table.is_valid:
            remember_columns(model, X, grid.values.shape[1])
            return Read(table, None, (grid.row_labels, grid.column_labels), grid.values.dtype)
    # Weights, zeros, sparse and long data; and what is wrong with a dense table is found, and said, here.
    observed = observe_for_fit(model, X, cell_weight)
    labels = (observed.row_labels, observed.column_labels)
    return Read(listed(model, observed, inner_shape), Seen.in_(observed), labels, observed.dtype)


def read_rows(model: Any, X: Any, threads: Threads) -> Table:
    """Rows over the columns of the fit."""
    if model.unseen == "missing" and model.column_labels_ is None and not is_list_of_histories(X):
        grid = grid_of(X)
        if grid is not None and grid.column_labels is None and grid.values.shape[1] == model.n_features_in_:
            # In the order of rows, because these are asked for.
            table = DenseTable(np.ascontiguousarray(grid.values), threads, model.inner_shape_)
            if table.is_valid:
                return table
    return listed(model, observe_rows(model, X), model.inner_shape_)


def listed(model: Any, observed: Observed, inner_shape: tuple[int, ...] | None) -> ListedTable:
    """A list of cells that the Kullback-Leibler divergence allows."""
    Poisson().check(observed, type(model).__name__)
    return ListedTable(observed, inner_shape)


def seen_in(marginals: Marginals) -> Seen:
    """Which cells a dense table shows, as the shorter list that its weights store; rows are those of the data."""
    weights = marginals.unmerged().weights
    indptr, indices, shape = weights.indptr, weights.indices, weights.shape
    if marginals.axes[0] != 0:
        by_column = sparse.csr_array((np.ones(indices.size, bool), indices, indptr), shape).tocsc()
        indptr, indices, shape = by_column.indptr, by_column.indices, shape[::-1]
    return Seen(indptr, indices, shape[1], lists_holes=weights.base > 0)
