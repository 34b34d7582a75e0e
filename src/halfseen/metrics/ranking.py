"""How well a model ranks the columns that a row has not seen in training, by those it has in test.

For every row the columns not seen in training are ranked by the model's scores. A column is relevant to the row if
its test value reaches a threshold. Rows without a relevant column are left out. With hit_r = 1 if the column at rank r
is relevant, else 0, and R the number of relevant columns:

    NDCG@k       sum_r hit_r / log2(r + 1)  over r <= k,  divided by the same sum with hits at the ranks 1..min(k, R)
    precision@k  sum_r hit_r / k
    recall@k     sum_r hit_r / R
    AP@k         sum_r hit_r (hit_1 + ... + hit_r) / r,  divided by min(k, R);  MAP@k is its mean over rows

A test cell counts only if the model can rank it. Those of rows or columns that the model does not know, and those that
were seen in training, are left out, with a `DataWarning` that tells their number: so the metrics judge the ranking, and
not which columns there were to rank. Most protocols do so, since they take all rows and columns from the training data;
some count an unknown column as a miss, which makes the numbers smaller. After `split_cells` there are no such cells.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from halfseen import checks
from halfseen.arrays import Array
from halfseen.engines.topk import best_columns
from halfseen.errors import DataError, ParameterError
from halfseen.model import Seen
from halfseen.metrics.held_out import held_out
from halfseen.metrics.hits import Held, metrics_of_rows
from halfseen.metrics.scorers import scorer_of
from halfseen.observed import Observed, match_cells


class RankingScores(NamedTuple):
    """The four metrics of every row of the model, NaN where a row has no relevant column.

    Arrays (n,), or (thresholds, n) where several thresholds were asked for. Take means by `np.nanmean`.
    """

    ndcg: Array
    """Normalised discounted cumulative gain."""
    precision: Array
    """The share of relevant columns among the first k."""
    recall: Array
    """The share of the row's relevant columns that are among the first k."""
    average_precision: Array
    """Average precision."""


def ndcg_at_k(
    model: Any, train: Any, test: Any, k: int = 100, relevant: Any = 1, *, n_jobs: int | None = None
) -> float | Array:
    """The mean normalised discounted cumulative gain of the first k of each row's ranking.

    Parameters
    ----------
    model : a fitted model, which ranks by <W_u, H_i>; a pair (W, H); an array of scores, rows by columns; or a function
        that takes an array of positions of rows and gives their scores, a row each. All but a fitted model have the
        rows and columns of train, in their order. For instance, with `train = observe(...)`, popularity is
        `(np.ones((n, 1)), train.seen_per_column()[:, None])`.
    train : what was seen in training and is not ranked: data as for `fit`; None: what the model was fitted on.
    test : the cells to rank by, data as for `fit`. Rows and columns are matched by label, where there are labels.
        Weights are not used. Where a dense array is read for a model with `unseen="zero"`, and only there, its zeros
        are unseen.
    k : how much of the ranking counts.
    relevant : a column is relevant if its test value is at least this. A list of thresholds gives an array of as many
        means, from one ranking.
    n_jobs : number of threads; None: as the model has it, else all processors. The result is the same for any number.
    """
    return _mean(_ranking_scores(model, train, test, k, relevant, n_jobs).ndcg)


def precision_at_k(
    model: Any, train: Any, test: Any, k: int = 100, relevant: Any = 1, *, n_jobs: int | None = None
) -> float | Array:
    """The mean share of relevant columns among the first k of each row's ranking.

    Parameters
    ----------
    model, train, test, k, relevant, n_jobs : as in `ndcg_at_k`.
    """
    return _mean(_ranking_scores(model, train, test, k, relevant, n_jobs).precision)


def recall_at_k(
    model: Any, train: Any, test: Any, k: int = 100, relevant: Any = 1, *, n_jobs: int | None = None
) -> float | Array:
    """The mean share of each row's relevant columns that are among the first k.

    Parameters
    ----------
    model, train, test, k, relevant, n_jobs : as in `ndcg_at_k`.
    """
    return _mean(_ranking_scores(model, train, test, k, relevant, n_jobs).recall)


def map_at_k(
    model: Any, train: Any, test: Any, k: int = 100, relevant: Any = 1, *, n_jobs: int | None = None
) -> float | Array:
    """The mean average precision of the first k of each row's ranking.

    Parameters
    ----------
    model, train, test, k, relevant, n_jobs : as in `ndcg_at_k`.
    """
    return _mean(_ranking_scores(model, train, test, k, relevant, n_jobs).average_precision)


def ranking_scores(
    model: Any, train: Any, test: Any, k: int = 100, relevant: Any = 1, *, n_jobs: int | None = None
) -> RankingScores:
    """All four metrics of every row, from one ranking.

    Parameters
    ----------
    model, train, test, k, relevant, n_jobs : as in `ndcg_at_k`.

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
    checks.check_parameters({"k": k, "n_jobs": n_jobs}, {"k": checks.whole(1), "n_jobs": checks.threads()})
    thresholds = _thresholds(relevant)
    scorer, seen = scorer_of(model, train)
    if isinstance(seen, Observed):
        cells = match_cells(seen, scorer.shape, scorer.labels, "train", duplicates="keep")
        seen = Seen(cells.indptr, cells.indices, cells.shape[1])
    read = scorer.read(test, "test")
    asked = held_out(match_cells(read, scorer.shape, scorer.labels, "test", duplicates="max"), seen)
    scores = np.full((4, thresholds.size, scorer.shape[0]), np.nan)
    for rows in _blocks(asked, thresholds.min(), scorer.rows_at_a_time):
        threads = scorer.n_jobs if n_jobs is None else n_jobs
        best = best_columns(scorer.scores_of(rows), k, seen.in_rows(rows), n_jobs=threads)
        scores[:, :, rows] = metrics_of_rows(Held.in_(asked.select_rows(rows)), best.columns, k, thresholds)
    _refuse_nothing_relevant(scores[0], thresholds, asked, read.level_names)
    return RankingScores(*(scores if np.ndim(relevant) else scores[:, 0]))


def _thresholds(relevant: Any) -> Array:
    thresholds = np.atleast_1d(np.asarray(relevant))
    good = thresholds.ndim == 1 and thresholds.size > 0 and thresholds.dtype.kind in "fiu"
    if not (good and np.all(np.isfinite(thresholds))):
        raise ParameterError(
            f"relevant must be a finite number, or a list of such. Found {relevant!r}. "
            "Use the lowest test value that makes a column relevant, such as 1 or 4."
        )
    return thresholds


def _blocks(test: Observed, lowest: float, height: int) -> Iterator[Array]:
    """The positions of the rows that have a relevant column, some at a time."""
    rows = np.unique(test.row_of_cell()[test.values >= lowest])
    return (rows[top : top + height] for top in range(0, rows.size, height))


def _refuse_nothing_relevant(ndcg: Array, thresholds: Array, test: Observed, names: Array | None) -> None:
    empty = np.isnan(ndcg).all(axis=1)
    if empty.any():
        highest = f"the highest has {_said(test.values.max(), names)}" if test.nnz else "there are none"
        raise DataError(
            f"At least one row must have a test cell that is relevant and can be ranked. Found none of "
            f"{_said(thresholds[empty][0], names)} or more among {test.nnz} cells; {highest}. "
            "Lower `relevant`, or check that test is of the rows and columns of the model."
        )


def _said(value: float, names: Array | None) -> str:
    """A value as users call it: by its name, where levels are words, which stand for 1, 2, ..."""
    if names is None or value not in range(1, names.size + 1):
        return f"{value:g}"
    return repr(names[int(value) - 1])
