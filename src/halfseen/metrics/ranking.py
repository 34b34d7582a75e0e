"""Ranking metrics: how well a model ranks the columns that a row has not seen in training, by those it has in test.

For every row the columns not seen in training are ranked by the model's scores. A column is relevant to the row if
its test value reaches a threshold. Rows without a relevant column are left out. With hit_r = 1 if the column at rank r
is relevant, else 0, and R the number of relevant columns:

    NDCG@k       sum_r hit_r / log2(r + 1)  over r <= k,  divided by the same sum with hits at the ranks 1..min(k, R)
    precision@k  sum_r hit_r / k
    recall@k     sum_r hit_r / R
    AP@k         sum_r hit_r (hit_1 + ... + hit_r) / r,  divided by min(k, R);  MAP@k is its mean over rows

A test cell counts only if the model can rank it. Those of rows or columns that the model does not know, and those that
were seen in training, are left out, with a `DataWarning`: so the metrics judge the ranking, and not which columns there
were to rank. Most protocols do so, since they take all rows and columns from the training data; some count an unknown
column as a miss, which makes the numbers smaller. After `split_cells` there are no such cells.
"""

from typing import Any, NamedTuple

import numpy as np

from halfseen import validation
from halfseen.arrays import Array
from halfseen.docstrings import insert_parameters
from halfseen.engines.topk import best_columns
from halfseen.errors import DataError, ParameterError
from halfseen.metrics.scorers import cell_keys, find_keys, held_out, scorer_of
from halfseen.observed import Observed, match_cells
from halfseen.ranking import Seen


class RankingScores(NamedTuple):
    """Metrics of every row, NaN where a row has no relevant column; take means by `np.nanmean`.

    Attributes
    ----------
    ndcg : ndarray of shape (n_rows,) or (n_thresholds, n_rows)
        Normalised discounted cumulative gain.
    precision : ndarray
        Share of relevant columns among the first k.
    recall : ndarray
        Share of the row's relevant columns that are among the first k.
    average_precision : ndarray
        Average precision.
    """

    ndcg: Array
    precision: Array
    recall: Array
    average_precision: Array


@insert_parameters
def ndcg_at_k(
    model: Any, train: Any, test: Any, k: int = 100, relevant: Any = 1, *, n_jobs: int | None = None
) -> float | Array:
    """Mean normalised discounted cumulative gain of the first k of each row's ranking.

    Parameters
    ----------
    {ranking}

    Returns
    -------
    float or ndarray
        An array for a list of thresholds.
    """
    return _mean(_ranking_scores(model, train, test, k, relevant, n_jobs).ndcg)


@insert_parameters
def precision_at_k(
    model: Any, train: Any, test: Any, k: int = 100, relevant: Any = 1, *, n_jobs: int | None = None
) -> float | Array:
    """Mean share of relevant columns among the first k of each row's ranking.

    Parameters
    ----------
    {ranking}

    Returns
    -------
    float or ndarray
        An array for a list of thresholds.
    """
    return _mean(_ranking_scores(model, train, test, k, relevant, n_jobs).precision)


@insert_parameters
def recall_at_k(
    model: Any, train: Any, test: Any, k: int = 100, relevant: Any = 1, *, n_jobs: int | None = None
) -> float | Array:
    """Mean share of each row's relevant columns that are among the first k.

    Parameters
    ----------
    {ranking}

    Returns
    -------
    float or ndarray
        An array for a list of thresholds.
    """
    return _mean(_ranking_scores(model, train, test, k, relevant, n_jobs).recall)


@insert_parameters
def map_at_k(
    model: Any, train: Any, test: Any, k: int = 100, relevant: Any = 1, *, n_jobs: int | None = None
) -> float | Array:
    """Mean average precision of the first k of each row's ranking.

    Parameters
    ----------
    {ranking}

    Returns
    -------
    float or ndarray
        An array for a list of thresholds.
    """
    return _mean(_ranking_scores(model, train, test, k, relevant, n_jobs).average_precision)


@insert_parameters
def ranking_scores(
    model: Any, train: Any, test: Any, k: int = 100, relevant: Any = 1, *, n_jobs: int | None = None
) -> RankingScores:
    """All four metrics of every row, from one ranking.

    Parameters
    ----------
    {ranking}

    Returns
    -------
    RankingScores

    Examples
    --------
    >>> import numpy as np, halfseen as hs
    >>> scores, nan = np.array([[0.1, 0.9, 0.5], [0.3, 0.2, 0.8]]), np.nan
    >>> train = np.array([[5, nan, nan], [nan, 4, nan]])
    >>> test = np.array([[nan, 3, nan], [2, nan, nan]])
    >>> hs.metrics.ranking_scores(scores, train, test, k=2).ndcg.round(2)
    array([1.  , 0.63])
    """
    return _ranking_scores(model, train, test, k, relevant, n_jobs)


def _mean(of_rows: Array) -> float | Array:
    means: Array = np.nanmean(of_rows, axis=-1)
    return means if means.shape else float(means)


def _ranking_scores(model: Any, train: Any, test: Any, k: int, relevant: Any, n_jobs: int | None) -> RankingScores:
    # validate
    validation.check_parameters({"k": k, "n_jobs": n_jobs}, {"k": validation.whole(1), "n_jobs": validation.threads()})
    thresholds = np.atleast_1d(np.asarray(relevant))
    is_list = thresholds.ndim == 1 and thresholds.size > 0 and thresholds.dtype.kind in "fiu"
    if not (is_list and np.all(np.isfinite(thresholds))):
        raise ParameterError(
            "must be a finite number, or a list of such.",
            parameter="relevant",
            found=repr(relevant),
            remedy="Use the lowest test value that makes a column relevant, such as 1 or 4.",
        )
    # read
    scorer, seen = scorer_of(model, train)
    if isinstance(seen, Observed):
        cells = match_cells(seen, scorer.shape, scorer.labels, "train", duplicates="keep")
        seen = Seen(cells.indptr, cells.indices, cells.shape[1])
    read = scorer.read(test, "test")
    asked = held_out(match_cells(read, scorer.shape, scorer.labels, "test", duplicates="max"), seen)
    # rank the rows that have a relevant column, some at a time
    scores = np.full((4, thresholds.size, scorer.shape[0]), np.nan)
    with_relevant = np.unique(asked.row_of_cell()[asked.values >= thresholds.min()])
    for top in range(0, with_relevant.size, scorer.rows_at_a_time):
        rows = with_relevant[top : top + scorer.rows_at_a_time]
        n_threads = scorer.n_jobs if n_jobs is None else n_jobs
        best = best_columns(scorer.scores_of(rows), k, seen.in_rows(rows), n_jobs=n_threads, engine=scorer.engine)
        scores[:, :, rows] = _row_scores(asked.select_rows(rows), best.columns, k, thresholds)
    is_empty = np.isnan(scores[0]).all(axis=1)
    if is_empty.any():
        names = read.level_names

        def level(value: float) -> str:
            """A value, or its name where levels are text, which stands for 1, 2, ..."""
            is_named = names is not None and value in range(1, names.size + 1)
            return repr(names[int(value) - 1]) if names is not None and is_named else f"{value:g}"

        highest = f"the highest has {level(asked.values.max())}" if asked.nnz else "there are none"
        lowest = level(thresholds[is_empty][0])
        raise DataError(
            "At least one row must have a test cell that is relevant and can be ranked.",
            found=f"none of {lowest} or more among {asked.nnz} cells; {highest}",
            remedy="Lower `relevant`, or check that test is of the rows and columns of the model.",
            parameter="relevant",
        )
    return RankingScores(*(scores if np.ndim(relevant) else scores[:, 0]))


def _row_scores(test: Observed, columns: Array, k: int, thresholds: Array) -> Array:
    """The four metrics (first axis) for each threshold (second) of each row (third) whose ranked columns are given."""
    n, m = test.shape
    keys = cell_keys(test.indptr, test.indices, m)
    positions = find_keys(np.where(columns < 0, -1, np.arange(n)[:, None] * m + columns), keys)
    values = np.where(positions < 0, -np.inf, np.append(test.values, np.nan)[positions])
    scores = []
    for threshold in thresholds:
        n_relevant = np.bincount(keys[test.values >= threshold] // m, minlength=n)
        scores.append(_metrics(values >= threshold, n_relevant, k))
    return np.stack(scores, axis=1)


def _metrics(hits: Array, count: Array, k: int) -> Array:
    """NDCG, precision, recall and average precision of each row with `count` relevant columns; NaN if it has none."""
    ranks = np.arange(1, hits.shape[1] + 1)
    gain = np.sum(hits / np.log2(ranks + 1), axis=1)
    best_gains = np.append(np.nan, np.cumsum(1 / np.log2(np.arange(2, k + 2))))
    relevant = np.where(count > 0, count, np.nan)
    found = hits.sum(axis=1)
    precisions = np.sum(hits * np.cumsum(hits, axis=1) / ranks, axis=1)
    return np.stack([
        gain / best_gains[np.minimum(count, k)],
        np.where(count > 0, found / k, np.nan),
        found / relevant,
        precisions / np.minimum(relevant, k),
    ])  # fmt: skip
