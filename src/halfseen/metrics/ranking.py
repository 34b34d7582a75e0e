"""Ranking metrics: how well a model ranks the columns that a row has not seen in training, by those it has in test.

For every row the columns not seen in training are ranked by the model's scores. A column is relevant to the row if
its test value reaches a threshold. Rows without a relevant column are left out. With hit_r = 1 if the column at rank r
is relevant, else 0, and R the number of relevant columns:

    NDCG@k       sum_r hit_r / log2(r + 1)  over r <= k,  divided by the same sum with hits at the ranks 1..min(k, R)
    precision@k  sum_r hit_r / k
    recall@k     sum_r hit_r / R
    AP@k         sum_r hit_r (hit_1 + ... + hit_r) / r,  divided by min(k, R);  MAP@k is its mean over rows
    RR@k         1 / r of the first hit, 0 without one;  MRR@k is its mean over rows
    hit rate@k   1 if there is a hit
    AUC          share of the pairs of a relevant and another unseen column in which the relevant one scores higher;
                 pairs of equal scores count half
    coverage@k   share of the columns that are among the first k of some row
    novelty@k    mean over the first k of -log2 p_i,  p_i the share of the training rows that have seen column i

A test cell counts only if the model can rank it. Those of rows or columns that the model does not know, and those that
were seen in training, are left out, with a `DataWarning`: so the metrics judge the ranking, and not which columns there
were to rank. Most protocols do so, since they take all rows and columns from the training data; some count an unknown
column as a miss, which makes the numbers smaller. After `split_cells` there are no such cells.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from halfseen import validation
from halfseen.arrays import Array
from halfseen.docstrings import insert_parameters
from halfseen.engines.base import ColumnLists
from halfseen.engines.topk import Scores, best_columns, count_above, count_hidden
from halfseen.errors import DataError, ParameterError
from halfseen.metrics.scorers import cell_keys, find_keys, held_out, scorer_of
from halfseen.observed import Observed, match_cells
from halfseen.ranking import Seen


class RankingScores(NamedTuple):
    """Metrics of every row, NaN where a row has no relevant column; take means by `np.nanmean`.

    Attributes
    ----------
    ndcg : ndarray of shape (n_rows,), (n_thresholds, n_rows) or (n_lengths, n_thresholds, n_rows)
        Normalised discounted cumulative gain. An axis for lengths, and one for thresholds, where lists of them were
        given.
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


#: Metrics of the first k of each row's ranking.
OF_FIRST = ("ndcg", "precision", "recall", "average_precision", "reciprocal_rank", "hit_rate")


@dataclass(frozen=True)
class Ranking:
    """What one pass over the rankings of all rows has shown."""

    lengths: tuple[int, ...]
    thresholds: Array
    of_rows: dict[str, Array]
    """Metrics by name, of shape (n_lengths, n_thresholds, n_rows), NaN where a row has no relevant column; "auc" has
    one length. The mean of "coverage" over rows is not the coverage, but they vary as much as it does with the rows
    (jackknife)."""
    coverage: Array
    """Of shape (n_lengths, n_thresholds)."""

    def as_asked(self, name: str, k: Any, relevant: Any) -> Array:
        """A metric of all rows, without the axes of lengths and of thresholds that were not given as lists."""
        array = self.of_rows[name] if np.ndim(k) else self.of_rows[name][0]
        return array if np.ndim(relevant) else array[..., 0, :]

    def mean(self, name: str, k: Any, relevant: Any) -> float | Array:
        """The mean of a metric over rows, in the same way."""
        means = self.coverage if name == "coverage" else mean_of_rows(self.of_rows[name])
        means = means if np.ndim(k) else means[0]
        means = means if np.ndim(relevant) else means[..., 0]
        return means if np.ndim(means) else float(means)


@insert_parameters
def ndcg_at_k(
    model: Any, train: Any, test: Any, k: Any = 100, relevant: Any = 1, *, n_jobs: int | None = None
) -> float | Array:
    """Mean normalised discounted cumulative gain of the first k of each row's ranking.

    Parameters
    ----------
    {ranking}
    {ranking lengths}
    {ranking thresholds}

    Returns
    -------
    float or ndarray
        An array for a list of lengths or of thresholds, with an axis for each list.
    """
    return rank_test(model, train, test, k, relevant, n_jobs).mean("ndcg", k, relevant)


@insert_parameters
def precision_at_k(
    model: Any, train: Any, test: Any, k: Any = 100, relevant: Any = 1, *, n_jobs: int | None = None
) -> float | Array:
    """Mean share of relevant columns among the first k of each row's ranking.

    Parameters
    ----------
    {ranking}
    {ranking lengths}
    {ranking thresholds}

    Returns
    -------
    float or ndarray
        An array for a list of lengths or of thresholds, with an axis for each list.
    """
    return rank_test(model, train, test, k, relevant, n_jobs).mean("precision", k, relevant)


@insert_parameters
def recall_at_k(
    model: Any, train: Any, test: Any, k: Any = 100, relevant: Any = 1, *, n_jobs: int | None = None
) -> float | Array:
    """Mean share of each row's relevant columns that are among the first k.

    Parameters
    ----------
    {ranking}
    {ranking lengths}
    {ranking thresholds}

    Returns
    -------
    float or ndarray
        An array for a list of lengths or of thresholds, with an axis for each list.
    """
    return rank_test(model, train, test, k, relevant, n_jobs).mean("recall", k, relevant)


@insert_parameters
def map_at_k(
    model: Any, train: Any, test: Any, k: Any = 100, relevant: Any = 1, *, n_jobs: int | None = None
) -> float | Array:
    """Mean average precision of the first k of each row's ranking.

    Parameters
    ----------
    {ranking}
    {ranking lengths}
    {ranking thresholds}

    Returns
    -------
    float or ndarray
        An array for a list of lengths or of thresholds, with an axis for each list.
    """
    return rank_test(model, train, test, k, relevant, n_jobs).mean("average_precision", k, relevant)


@insert_parameters
def mrr_at_k(
    model: Any, train: Any, test: Any, k: Any = 100, relevant: Any = 1, *, n_jobs: int | None = None
) -> float | Array:
    """Mean of 1 / rank of the first relevant column, 0 where none is among the first k.

    Parameters
    ----------
    {ranking}
    {ranking lengths}
    {ranking thresholds}

    Returns
    -------
    float or ndarray
        An array for a list of lengths or of thresholds, with an axis for each list.
    """
    return rank_test(model, train, test, k, relevant, n_jobs).mean("reciprocal_rank", k, relevant)


@insert_parameters
def hit_rate_at_k(
    model: Any, train: Any, test: Any, k: Any = 100, relevant: Any = 1, *, n_jobs: int | None = None
) -> float | Array:
    """Share of the rows that have a relevant column among the first k.

    Parameters
    ----------
    {ranking}
    {ranking lengths}
    {ranking thresholds}

    Returns
    -------
    float or ndarray
        An array for a list of lengths or of thresholds, with an axis for each list.
    """
    return rank_test(model, train, test, k, relevant, n_jobs).mean("hit_rate", k, relevant)


@insert_parameters
def coverage_at_k(
    model: Any, train: Any, test: Any, k: Any = 100, relevant: Any = 1, *, n_jobs: int | None = None
) -> float | Array:
    """Share of all columns that are among the first k of some row's ranking, of the rows with a relevant column.

    Parameters
    ----------
    {ranking}
    {ranking lengths}
    {ranking thresholds}

    Returns
    -------
    float or ndarray
        An array for a list of lengths or of thresholds, with an axis for each list.
    """
    ranking = rank_test(model, train, test, k, relevant, n_jobs, ("coverage",))
    return ranking.mean("coverage", k, relevant)


@insert_parameters
def novelty_at_k(
    model: Any, train: Any, test: Any, k: Any = 100, relevant: Any = 1, *, n_jobs: int | None = None
) -> float | Array:
    """Mean of -log2 of the popularity of the first k columns of each row's ranking, in bits.

    The popularity of a column is the share of the training rows that have seen it; one that nobody has seen counts as
    if one had. 0 where everybody has seen all that is recommended.

    Parameters
    ----------
    {ranking}
    {ranking lengths}
    {ranking thresholds}

    Returns
    -------
    float or ndarray
        An array for a list of lengths or of thresholds, with an axis for each list.
    """
    ranking = rank_test(model, train, test, k, relevant, n_jobs, ("novelty",))
    return ranking.mean("novelty", k, relevant)


@insert_parameters
def auc(model: Any, train: Any, test: Any, relevant: Any = 1, *, n_jobs: int | None = None) -> float | Array:
    """Mean area under the ROC curve of each row: how often a relevant column scores higher than another unseen one.

    Over all columns that the row has not seen in training, exactly, equal scores counting half. A column without a
    score (-inf) is below all others. Rows whose unseen columns are all relevant are left out of the mean.

    Parameters
    ----------
    {ranking}
    {ranking thresholds}

    Returns
    -------
    float or ndarray
        An array for a list of thresholds.
    """
    return rank_test(model, train, test, 1, relevant, n_jobs, ("auc",)).mean("auc", 1, relevant)


@insert_parameters
def ranking_scores(
    model: Any, train: Any, test: Any, k: Any = 100, relevant: Any = 1, *, n_jobs: int | None = None
) -> RankingScores:
    """NDCG, precision, recall and average precision of every row, from one ranking.

    Parameters
    ----------
    {ranking}
    {ranking lengths}
    {ranking thresholds}

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
    ranking = rank_test(model, train, test, k, relevant, n_jobs)
    return RankingScores(*(ranking.as_asked(name, k, relevant) for name in RankingScores._fields))


def mean_of_rows(of_rows: Array) -> Array:
    """Mean over the last axis without NaN; NaN where nothing else is."""
    counts = ~np.isnan(of_rows)
    n, sums = counts.sum(axis=-1), np.where(counts, of_rows, 0.0).sum(axis=-1)
    return np.divide(sums, n, out=np.full(np.shape(n), np.nan), where=n > 0)


def standard_error(of_rows: Any) -> float | Array:
    """Standard error of the mean over rows: their standard deviation (n - 1) / sqrt(n).

    Parameters
    ----------
    of_rows : array-like
        A metric of each row (last axis), as `ranking_scores` has them; NaN where a row does not count. Of a difference
        between two models, take the differences of each row: rows that are hard for one are hard for the other.

    Returns
    -------
    float or ndarray
        NaN where fewer than two rows count.

    Examples
    --------
    >>> import halfseen as hs
    >>> of_rows = [1.0, 3.0, float("nan")]
    >>> hs.metrics.standard_error(of_rows)
    1.0
    """
    values = np.asarray(of_rows, np.float64)
    counts = ~np.isnan(values)
    n = counts.sum(axis=-1)
    means = mean_of_rows(values)[..., None]
    squares = np.sum(np.where(counts, values - means, 0.0) ** 2, axis=-1)
    errors: Array = np.where(n > 1, np.sqrt(squares / np.maximum(n - 1, 1) / np.maximum(n, 1)), np.nan)
    return errors if errors.shape else float(errors)


def rank_test(
    model: Any,
    train: Any,
    test: Any,
    k: Any,
    relevant: Any,
    n_jobs: int | None,
    metrics: Collection[str] = OF_FIRST,
    history: Any = None,
) -> Ranking:
    """Rank the rows of test that have a relevant column, once for all lengths, thresholds and metrics.

    Parameters
    ----------
    model, train, test, relevant, n_jobs
        See `ndcg_at_k`.
    k : int or list of int
        Lengths.
    metrics : collection of str
        What is wanted: "auc", "coverage", "novelty", or those of `OF_FIRST`, which come together.
    history : data or None
        Cells of new rows, which are folded in, and are the rows of test.

    Returns
    -------
    Ranking
    """
    # validate
    lengths = list(k) if np.ndim(k) == 1 and len(k) else [k]
    for length in lengths:
        validation.check_parameters({"k": length}, {"k": validation.whole(1)})
    validation.check_parameters({"n_jobs": n_jobs}, {"n_jobs": validation.threads()})
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
    scorer, seen = scorer_of(model, train, history)
    if isinstance(seen, Observed):
        cells = match_cells(seen, scorer.shape, scorer.labels, "train", duplicates="keep")
        seen = Seen(cells.indptr, cells.indices, cells.shape[1])
    read = scorer.read(test, "test")
    asked = held_out(match_cells(read, scorer.shape, scorer.labels, "test", duplicates="max"), seen)
    # rank the rows that have a relevant column, some at a time
    n, m = scorer.shape
    lengths = lengths if set(metrics) - {"auc"} else []
    parts = _Parts(lengths, thresholds, n, m, metrics, scorer.popularity(seen) if "novelty" in metrics else None)
    with_relevant = np.unique(asked.row_of_cell()[asked.values >= thresholds.min()])
    n_threads = scorer.n_jobs if n_jobs is None else n_jobs
    for top in range(0, with_relevant.size, scorer.rows_at_a_time):
        rows = with_relevant[top : top + scorer.rows_at_a_time]
        scores, hidden, wanted = scorer.scores_of(rows), seen.in_rows(rows), asked.select_rows(rows)
        if lengths:
            best = best_columns(scores, max(lengths), hidden, n_jobs=n_threads, engine=scorer.engine)
            parts.add_first(rows, wanted, best.columns)
        if "auc" in metrics:
            parts.add_auc(rows, wanted, scores, hidden, n_threads)
    has_relevant = np.zeros((thresholds.size, n), bool)
    for at, threshold in enumerate(thresholds):
        has_relevant[at, asked.row_of_cell()[asked.values >= threshold]] = True
    is_empty = ~has_relevant.any(axis=1)
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
    return parts.ranking(has_relevant)


class _Parts:
    """A `Ranking` in the making: some rows after the others."""

    def __init__(
        self, lengths: list[int], thresholds: Array, n: int, m: int, metrics: Collection[str], popularity: Array | None
    ) -> None:
        self.lengths, self.thresholds, self.m = lengths, thresholds, m
        self.bits = None if popularity is None else -np.log2(popularity)
        size = (len(lengths), thresholds.size)
        names = [*OF_FIRST, *(["novelty"] if "novelty" in metrics else [])] if lengths else []
        self.of_rows = {name: np.full((*size, n), np.nan) for name in names}
        if "auc" in metrics:
            self.of_rows["auc"] = np.full((1, thresholds.size, n), np.nan)
        # of each column, how many rows have it among their first k, and the last of these rows
        self.times, self.owner = (np.zeros((*size, m if "coverage" in metrics else 0), np.int64) for _ in range(2))

    def add_first(self, rows: Array, test: Observed, columns: Array) -> None:
        """The metrics of some rows whose cells of test and ranked columns are given."""
        n, m = test.shape
        keys = cell_keys(test.indptr, test.indices, m)
        positions = find_keys(np.where(columns < 0, -1, np.arange(n)[:, None] * m + columns), keys)
        values = np.where(positions < 0, -np.inf, np.append(test.values, np.nan)[positions])
        for at, threshold in enumerate(self.thresholds):
            n_relevant = np.bincount(keys[test.values >= threshold] // m, minlength=n)
            for which, k in enumerate(self.lengths):
                metrics = _metrics(values[:, :k] >= threshold, n_relevant, k)
                for name, metric in zip(OF_FIRST, metrics, strict=True):
                    self.of_rows[name][which, at, rows] = metric
                first, counts = columns[:, :k], n_relevant > 0
                filled = first >= 0
                if self.bits is not None:
                    bits = np.where(filled, self.bits[first], 0.0).sum(axis=1) / np.maximum(filled.sum(axis=1), 1)
                    self.of_rows["novelty"][which, at, rows] = np.where(counts & filled.any(axis=1), bits, np.nan)
                if self.times.size:
                    kept = filled & counts[:, None]
                    self.times[which, at] += np.bincount(first[kept], minlength=m)
                    self.owner[which, at, first[kept]] = rows[np.nonzero(kept)[0]]

    def add_auc(self, rows: Array, test: Observed, scores: Scores, hidden: ColumnLists, n_jobs: int | None) -> None:
        """The AUC of some rows: over R relevant columns, sum (below + equal / 2) without their R (R - 1) / 2 pairs."""
        n = rows.size
        test = test.select_cells(test.values >= self.thresholds.min())
        above, equal = count_above(scores, (test.indptr, test.indices), hidden, n_jobs)
        row_of_cell, n_unseen = test.row_of_cell(), self.m - count_hidden(hidden, n)
        wins = n_unseen[row_of_cell] - 1 - above - 0.5 * equal
        for at, threshold in enumerate(self.thresholds):
            is_relevant = test.values >= threshold
            relevant = np.bincount(row_of_cell[is_relevant], minlength=n)
            total = np.bincount(row_of_cell[is_relevant], wins[is_relevant], n) - relevant * (relevant - 1) / 2
            pairs = relevant * (n_unseen - relevant)
            self.of_rows["auc"][0, at, rows] = np.divide(total, pairs, out=np.full(n, np.nan), where=pairs > 0)

    def ranking(self, has_relevant: Array) -> Ranking:
        """The whole; a column that one row alone has among its first k would not be covered without that row."""
        coverage = np.full((len(self.lengths), self.thresholds.size), np.nan)
        if self.times.size:
            coverage = np.count_nonzero(self.times, axis=2) / self.m
            of_rows = self.of_rows["coverage"] = np.full((*coverage.shape, has_relevant.shape[1]), np.nan)
            for place in np.ndindex(coverage.shape):
                rows = np.flatnonzero(has_relevant[place[1]])
                alone = np.bincount(self.owner[place][self.times[place] == 1], minlength=has_relevant.shape[1])[rows]
                of_rows[place][rows] = coverage[place] + (rows.size - 1) * alone / self.m
        return Ranking(tuple(self.lengths), self.thresholds, self.of_rows, coverage)


def _metrics(hits: Array, count: Array, k: int) -> Array:
    """The metrics `OF_FIRST` of each row with `count` relevant columns; NaN if it has none."""
    ranks = np.arange(1, hits.shape[1] + 1)
    gain = np.sum(hits / np.log2(ranks + 1), axis=1)
    best_gains = np.append(np.nan, np.cumsum(1 / np.log2(np.arange(2, k + 2))))
    relevant = np.where(count > 0, count, np.nan)
    found = hits.sum(axis=1)
    precisions = np.sum(hits * np.cumsum(hits, axis=1) / ranks, axis=1)
    has_hit = hits.any(axis=1)
    return np.stack([
        gain / best_gains[np.minimum(count, k)],
        np.where(count > 0, found / k, np.nan),
        found / relevant,
        precisions / np.minimum(relevant, k),
        np.where(count > 0, has_hit / (np.argmax(hits, axis=1) + 1.0), np.nan),
        np.where(count > 0, has_hit, np.nan),
    ])  # fmt: skip
