"""Several models on the same held-out cells, side by side, with simple baselines and standard errors by row."""

import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from halfseen import validation
from halfseen.arrays import Array
from halfseen.errors import DataError, ParameterError
from halfseen.estimators.base import BaseFactorization, BaseRecommender
from halfseen.labels import Index, Places
from halfseen.metrics.ranking import mean_of_rows, rank_test, standard_error
from halfseen.metrics.scorers import SCORES_AT_A_TIME, held_out, rows_of
from halfseen.metrics.value_scores import Estimate, cell_mean, given_not_lowest, group_means, root
from halfseen.observed import Observed, match_cells
from halfseen.ranking import Seen, native_frame, read_cells

#: Metrics of rankings and of values by name: how tables call them, and whether more (1) or less (-1) is better.
RANKING_METRICS = {
    "ndcg": ("NDCG", 1),
    "precision": ("precision", 1),
    "recall": ("recall", 1),
    "map": ("MAP", 1),
    "mrr": ("MRR", 1),
    "hit_rate": ("hit rate", 1),
    "coverage": ("coverage", 0),
    "novelty": ("novelty", 0),
    "auc": ("AUC", 1),
}
VALUE_METRICS = {
    "rmse": ("RMSE", -1),
    "mae": ("MAE", -1),
    "within_half": ("within 0.5", 1),
    "rps": ("RPS", -1),
    "log_loss": ("log loss", -1),
}
METRICS = RANKING_METRICS | VALUE_METRICS
#: Names in `Ranking.of_rows` that differ.
OF_ROWS = {"map": "average_precision", "mrr": "reciprocal_rank"}
#: Metrics of tables that are shown once for all lengths.
LAST = ("coverage", "novelty", "auc")
#: Metrics of predicted values, which means have, too.
ERRORS = ("rmse", "mae", "within_half")
#: Cells whose values are predicted at a time.
CELLS_AT_A_TIME = 1 << 18
#: Width of the printed tables.
WIDTH = 110


@dataclass(frozen=True)
class Score:
    """A metric of a model.

    Attributes
    ----------
    model, metric : str
        Names.
    k : int or None
        Length of the rankings, where the metric has one.
    relevant : float or None
        Lowest relevant test value, of metrics of rankings.
    value, standard_error : float
        Mean over rows (or over cells, or the share of columns), and its standard error by row.
    rows, cells : int
        Number of rows that count, and, of metrics of values, of cells.
    difference, difference_error : float or None
        From the best model, and its standard error, paired by row.
    is_best, is_tied : bool
        Whether the model is best by this metric, or within two standard errors of the best.
    of_rows : ndarray
        What the standard error is computed from: the metric of each row, or as much as it contributes.
    """

    model: str
    metric: str
    k: int | None
    relevant: float | None
    value: float
    standard_error: float
    rows: int
    cells: int | None
    difference: float | None = None
    difference_error: float | None = None
    is_best: bool = False
    is_tied: bool = False
    of_rows: Array = field(default_factory=lambda: np.empty(0), repr=False)

    @property
    def name(self) -> str:
        """Metric and length as tables show them: "NDCG@10"."""
        return METRICS[self.metric][0] + ("" if self.k is None else f"@{self.k}")


class Evaluation:
    """What `evaluate` returns: scores of every model, which print as a table.

    Parameters
    ----------
    models : dict
        Models by name, fitted; those of the baselines are not among them.
    scores : list of Score
        Every metric of every model.
    fit_seconds, rank_seconds : dict
        Seconds of the fit, and of all rankings, by name; None where there were none.
    notes : list of str
        What could not be computed, and why.
    level_of : dict
        Names of levels that are texts, by the numbers 1, 2, ... that stand for them.
    about_values : str
        What the captions of tables add about predicted values.
    """

    def __init__(
        self,
        models: dict[str, Any],
        scores: Sequence[Score],
        fit_seconds: dict[str, float | None],
        rank_seconds: dict[str, float | None],
        notes: Sequence[str] = (),
        level_of: Mapping[float, str] | None = None,
        about_values: str = "",
    ) -> None:
        self.models, self.fit_seconds, self.rank_seconds, self.notes = models, fit_seconds, rank_seconds, list(notes)
        self.level_of, self.about_values = dict(level_of or {}), about_values
        self.scores: list[Score] = []
        for group in {(one.metric, one.k, one.relevant): None for one in scores}:
            self.scores += compare([one for one in scores if (one.metric, one.k, one.relevant) == group])

    def get(self, model: str, metric: str, k: int | None = None, relevant: float | None = None) -> Score:
        """One score.

        Parameters
        ----------
        model, metric : str
            Names.
        k : int, default=None
            Length; None: the first that there is.
        relevant : float, default=None
            Threshold; None: the first that there is.

        Returns
        -------
        Score
        """
        for one in self.scores:
            if (one.model, one.metric) == (model, metric) and k in (None, one.k) and relevant in (None, one.relevant):
                return one
        raise KeyError((model, metric, k, relevant))

    def to_dict(self) -> dict[str, Any]:
        """Scores, seconds and notes as plain dictionaries and lists, as `--json` of the command line has them.

        Returns
        -------
        dict
            "models": a list with the name, the seconds and the "scores" of each; "notes".
        """
        models = []
        for name in self.fit_seconds:
            scores = [self._line(one) for one in self.scores if one.model == name]
            for one in scores:
                del one["model"]
            seconds = {"fit_seconds": self.fit_seconds[name], "rank_seconds": self.rank_seconds[name]}
            models.append({"model": name, **seconds, "scores": scores})
        return {"models": models, "notes": self.notes}

    def _line(self, score: Score) -> dict[str, Any]:
        line = {name: getattr(score, name) for name in COLUMNS}
        return line | {"relevant": self._relevant(score.relevant)}

    def _relevant(self, value: float | None) -> Any:
        """A threshold; the name of a level that is text."""
        return self.level_of.get(value, value) if value is not None else None

    def to_frame(self, backend: str | None = None) -> Any:
        """All scores as a frame with a line for every model, metric, length and threshold.

        Parameters
        ----------
        backend : {"polars", "pandas", "pyarrow"} or None, default=None
            Library of the frame; None: the first of these that is installed.

        Returns
        -------
        DataFrame or Table
            Columns model, metric, k, relevant, value, standard_error, rows, cells, difference, difference_error,
            is_best, is_tied; seconds to fit and to rank are metrics, too.
        """
        return native_frame(self.to_columns(), backend)

    def to_columns(self) -> dict[str, list[Any]]:
        """The columns of `to_frame` as lists."""
        lines = [self._line(one) for one in self.scores]
        for metric, seconds in (("fit_seconds", self.fit_seconds), ("rank_seconds", self.rank_seconds)):
            nothing: dict[str, Any] = dict.fromkeys(COLUMNS) | {"is_best": False, "is_tied": False}
            lines += [
                nothing | {"model": name, "metric": metric, "value": value}
                for name, value in seconds.items()
                if value is not None
            ]
        return {name: [line[name] for line in lines] for name in COLUMNS}

    def tables(self, differences: bool = False) -> list[tuple[str, list[str], list[list[str]]]]:
        """Tables as texts: a caption, heads, and a line for each model.

        Parameters
        ----------
        differences : bool, default=False
            Show the differences from the best model, rather than the scores.

        Returns
        -------
        list of tuple
        """
        groups: dict[tuple[str, Any], list[Score]] = {}
        for one in self.scores:
            what, part = ("values", None) if one.metric in VALUE_METRICS else ("rankings", one.relevant)
            groups.setdefault((what, part), []).append(one)
        tables = []
        for (what, relevant), scores in groups.items():
            if differences:
                scores = [one for one in scores if one.difference is not None]
            columns = {(one.metric, one.k): one.name for one in scores}
            in_order = sorted(columns, key=lambda c: (c[0] in LAST, c[1] or 0, list(METRICS).index(c[0])))
            names = [name for name in self.fit_seconds if any(one.model == name for one in scores)]
            n = max((one.rows if what == "rankings" else one.cells or 0 for one in scores), default=0)
            caption = f"Values of {n:,} cell{'' if n == 1 else 's'}{self.about_values}"
            if what == "rankings":
                level = self._relevant(relevant)
                from_ = level if isinstance(level, str) else f"{level:g}"
                caption = f"Rankings, relevant from {from_}: {n:,} row{'' if n == 1 else 's'}"
            cell = {(one.model, one.metric, one.k): one for one in scores}
            lines = []
            for name in names:
                found = [cell.get((name, *column)) for column in in_order]
                lines.append([name, *("" if one is None else shown(one, differences) for one in found)])
            if lines:
                tables.append((caption, [columns[column] for column in in_order], lines))
        return tables

    def __str__(self) -> str:
        blocks = []
        for caption, heads, lines in self.tables():
            blocks += [caption, *wrapped(heads, lines), ""]
        seconds = [
            [name, *("" if of[name] is None else f"{of[name]:.2f}" for of in (self.fit_seconds, self.rank_seconds))]
            for name in self.fit_seconds
            if (self.fit_seconds[name], self.rank_seconds[name]) != (None, None)
        ]
        blocks += ["Seconds", *wrapped(["fit", "rank"], seconds), ""]
        if any(one.difference is not None for one in self.scores):
            blocks += ["* best, = within two standard errors of the best (paired by row); ± standard error by row", ""]
            first = {"ndcg", "rmse"} & {one.metric for one in self.scores}
            for caption, heads, lines in self.tables(differences=True):
                kept = [at for at, head in enumerate(heads) if head.partition("@")[0] in {METRICS[m][0] for m in first}]
                few = [[line[0], *(line[1 + at] for at in kept)] for line in lines if any(line[1 + at] for at in kept)]
                if kept:
                    blocks += [f"Differences from the best. {caption}", *wrapped([heads[at] for at in kept], few), ""]
        return "\n".join([*blocks[:-1], *(f"note: {note}" for note in self.notes)])

    __repr__ = __str__


#: Columns of `Evaluation.to_frame`.
COLUMNS = (
    "model", "metric", "k", "relevant", "value", "standard_error", "rows", "cells", "difference", "difference_error",
    "is_best", "is_tied",
)  # fmt: skip


def compare(scores: Sequence[Score]) -> list[Score]:
    """The scores of several models by one metric, with their differences from the best; ties are within two errors."""
    direction = METRICS[scores[0].metric][1]
    known = [one for one in scores if not np.isnan(one.value)]
    if direction == 0 or len(known) < 2:
        return list(scores)
    best = max(known, key=lambda one: direction * one.value)
    compared = []
    for one in scores:
        error = float(standard_error(one.of_rows - best.of_rows)) if one is not best else 0.0
        difference = one.value - best.value
        is_tied = bool(one is not best and (difference == 0 or abs(difference) <= 2 * error))
        further = {"difference": difference, "difference_error": error, "is_best": one is best, "is_tied": is_tied}
        compared.append(Score(**{**vars(one), **further}))
    return compared


def shown(score: Score, difference: bool = False) -> str:
    """A score, or its difference from the best, with its standard error and a mark."""
    value, error = score.value, score.standard_error
    if difference:
        value, error = score.difference or 0.0, score.difference_error or 0.0
    if value != value:
        return ""
    decimals = 4 if abs(value) < 10 else max(0, 4 - int(np.log10(abs(value)))) if np.isfinite(value) else 0
    text = f"{value:+.{decimals}f}" if difference and not score.is_best else f"{value:.{decimals}f}"
    if error == error and not (difference and score.is_best):
        text += f" ±{f'{error:.{decimals}f}'.removeprefix('0')}"
    return text + ("*" if score.is_best else "=" if score.is_tied else " ")


def wrapped(heads: Sequence[str], lines: Sequence[Sequence[str]]) -> list[str]:
    """A table as plain lines, its columns below each other where they take more than `WIDTH`."""
    left = max(len(line[0]) for line in lines)
    widths = [max(len(head) + 1, *(len(line[at + 1]) for line in lines)) + 2 for at, head in enumerate(heads)]
    text: list[str] = []
    first = 0
    while first < len(heads):
        stop, total = first + 1, left + widths[first]
        while stop < len(heads) and total + widths[stop] <= WIDTH:
            total += widths[stop]
            stop += 1
        part = range(first, stop)
        text.append((" " * left + "".join(f"{heads[at] + ' ':>{widths[at]}}" for at in part)).rstrip())
        for line in lines:
            text.append((f"{line[0]:<{left}}" + "".join(f"{line[at + 1]:>{widths[at]}}" for at in part)).rstrip())
        first = stop
    return text


def evaluate(
    models: Any,
    train: Any,
    test: Any,
    *,
    k: Any = (10, 100),
    relevant: Any = 1,
    history: Any = None,
    metrics: Iterable[str] | None = None,
    baselines: bool = True,
    n_jobs: int | None = None,
) -> Evaluation:
    """Judge models by cells that were held out: rankings, predicted values and probabilities of levels.

    Every metric comes with its standard error by row, and with the difference from the best model, whose standard error
    is paired by row: rows that are hard for one model are hard for the others. Values are judged where a model says
    what values are: those for which unseen cells are missing; and those with probabilities of levels or counts for
    which they are zeros, at the cells above zero and given that they are, as `predict(..., given_seen=True)` has them.

    Parameters
    ----------
    models : dict, list, or one model
        Models by name; a list is named by classes. Estimators, fitted or not: those that are not are cloned and fitted
        on train; pairs of factors, arrays of scores and functions as for `metrics.ndcg_at_k`, which are only ranked.
    train : data or None
        Training cells. None: those that the fitted models have seen.
    test : data
        Held-out cells. Cells in rows or columns that a model does not know, or that it has seen, are left out.
    k : int or list of int, default=(10, 100)
        Length of the rankings, or several, from one ranking.
    relevant : float or array-like of float, default=1
        A column is relevant if its test value is at least this. A list of thresholds gives as many tables, from one
        ranking.
    history : data, default=None
        Cells of rows that are not in train, which are folded in (strong generalization; see `data.split_rows`): then
        the rows of test are these. Scores that are given as arrays or functions have the rows of history and the
        columns of train.
    metrics : list of str, default=None
        Some of "ndcg", "precision", "recall", "map", "mrr", "hit_rate", "coverage", "novelty", "auc", "rmse", "mae",
        "within_half", "rps", "log_loss". None: all.
    baselines : bool, default=True
        Whether to add popularity and, for values, the mean of all, of the row and of the column, and the frequencies of
        levels.
    n_jobs : int or None, default=None
        Number of threads; None: as the models have it. The result is the same for any number.

    Returns
    -------
    Evaluation

    Examples
    --------
    >>> import halfseen as hs
    >>> train, test = hs.data.split_cells(hs.data.load_movietweetings(), random_state=0, unseen="zero")
    >>> model = hs.PoissonFactorization(10, max_iter=20, tol=0, random_state=0)
    >>> report = hs.evaluate({"poisson": model}, train, test, k=10, metrics=["ndcg"])
    >>> [score.model for score in report.scores]
    ['poisson', 'Popularity']
    """
    given = named(models)
    chosen = list(METRICS) if metrics is None else list(metrics)
    for name in chosen:
        validation.check_parameters({"metrics": name}, {"metrics": validation.one_of(*METRICS)})
    validation.check_parameters({"baselines": baselines}, {"baselines": validation.flag()})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run = _Run(given, train, test, history, chosen, k, relevant, n_jobs)
        run.fit()
        for name in list(run.models):
            run.judge(name, run.models[name])
        if baselines:
            run.add_baselines()
    for one in {str(one.message): one for one in caught}.values():
        warnings.warn_explicit(one.message, one.category, *caller())
    seconds = run.fit_seconds, run.rank_seconds
    return Evaluation(run.models, run.scores, *seconds, run.notes, run.level_of, run.about_values)


def caller() -> tuple[str, int]:
    """File and line of whoever called the function that calls this."""
    import sys

    frame = sys._getframe(2)
    return frame.f_code.co_filename, frame.f_lineno


def named(models: Any) -> dict[str, Any]:
    """Models by name: of a list, by their classes."""
    names: dict[str, Any] = {}
    if isinstance(models, Mapping):
        names = {str(name): model for name, model in models.items()}
        models = []
    for model in models if isinstance(models, list) else [models]:
        name = getattr(model, "__name__", type(model).__name__)
        name = {"ndarray": "scores", "tuple": "factors"}.get(name, name)
        times = sum(one.partition(" (")[0] == name for one in names)
        names[name if not times else f"{name} ({times + 1})"] = model
    if not names:
        raise ParameterError("must name a model.", parameter="models", found="none", remedy="Pass one.")
    return names


class Reading(NamedTuple):
    """How data are read for a model."""

    unseen: str = "missing"
    levels: Any = None


class _Run:
    """An evaluation in the making."""

    def __init__(
        self,
        models: dict[str, Any],
        train: Any,
        test: Any,
        history: Any,
        metrics: list[str],
        k: Any,
        relevant: Any,
        n_jobs: int | None,
    ) -> None:
        self.models, self.metrics, self.k, self.relevant, self.n_jobs = dict(models), metrics, k, relevant, n_jobs
        self.data = {"train": train, "test": test, "history": history}
        self.scores: list[Score] = []
        self.fit_seconds: dict[str, float | None] = {}
        self.rank_seconds: dict[str, float | None] = {}
        self.notes: list[str] = []
        self._read: dict[tuple[str, str], Observed] = {}

    def fit(self) -> None:
        """Fit the estimators that are not, and choose the rows and columns in which all are compared."""
        for name, model in self.models.items():
            self.fit_seconds[name] = None
            if not isinstance(model, BaseEstimator):
                continue
            try:
                check_is_fitted(model)
                seconds = getattr(model, "trace_", {}).get("seconds", ())
                self.fit_seconds[name] = float(seconds[-1]) if len(seconds) else None
            except NotFittedError:
                if self.data["train"] is None:
                    must, remedy = "must be given to fit models on.", "Pass the training cells, or fitted models."
                    raise DataError(must, parameter="train", found="None", remedy=remedy) from None
                start = time.perf_counter()
                fitted: Any = clone(model)
                self.models[name] = fitted.fit(self.cells("train", self.reading(fitted)))
                self.fit_seconds[name] = time.perf_counter() - start
        self.models = {name: getattr(model, "best_estimator_", model) for name, model in self.models.items()}
        fitted = [model for model in self.models.values() if isinstance(model, BaseRecommender)]
        # baselines read data as the first of these does: models of levels first, then other models of values
        self.estimators = sorted(fitted, key=lambda one: (not says_values(one), not hasattr(one, "predict_proba")))
        self.main = self.reading(self.estimators[0]) if self.estimators else Reading()
        if self.data["train"] is not None:
            self.known = self.cells("train", self.main)
        elif self.estimators:
            record = self.estimators[0].model_
            indptr, indices = record.seen.in_rows(np.arange(record.shape[0]))
            ones, how = np.ones(indices.size), {"unseen": record.unseen, **record.labels._asdict()}
            self.known = Observed(indptr, indices, ones, record.shape, **how)
        else:
            must, remedy = "must be the cells that scores were trained on.", "Pass the training cells."
            raise DataError(must, parameter="train", found="None", remedy=remedy)
        self.rows = self.known
        if self.data["history"] is not None:
            given = self.cells("history", self.main)
            self.rows = rows_of(given, self.known.shape[1], self.known.column_labels)
        names = self.cells("test", self.main).level_names
        record = self.estimators[0].model_ if self.estimators else None
        is_text, start = getattr(getattr(record, "encoder", None), "is_text", False), int(self.main.unseen == "zero")
        self.about_values = ", given that they are above 0" if start else ""
        if is_text:
            self.about_values += f", levels counted {start}, {start + 1}, ... from {self.main.levels[0]!r}"
        self.level_of = {} if names is None else {at + 1.0: str(name) for at, name in enumerate(names)}

    def reading(self, model: Any) -> Reading:
        """How data are read for an estimator; for other models, as for the first estimator."""
        if isinstance(model, BaseEstimator):
            model = getattr(model, "best_estimator_", getattr(model, "estimator", model))
            record = getattr(model, "model_", None)
            levels = getattr(model if record is None else record, "levels_to_read", None)
            return Reading(getattr(model if record is None else record, "unseen", "missing"), levels)
        return self.main

    def cells(self, name: str, reading: Reading) -> Observed:
        """Train, test or history as it is read for a model, once for all that read alike."""
        key = name, repr(reading)
        if key not in self._read:
            self._read[key] = read_cells(self.data[name], name, *reading)
        return self._read[key]

    def judge(self, name: str, model: Any) -> None:
        """All metrics of a model."""
        reading = self.reading(model)
        train, history = (None if self.data[one] is None else self.cells(one, reading) for one in ("train", "history"))
        self.rank(name, model, train, history, self.cells("test", reading))
        if says_values(model) and set(self.metrics) & set(VALUE_METRICS):
            try:
                found, n_cells = self.values(model, history)
                for metric, estimate in found.items():
                    self.add(name, metric, None, None, estimate, n_cells)
            except DataError as error:  # a level that training did not have; the ranking is valid all the same
                self.notes.append(str(error))

    def rank(self, name: str, model: Any, train: Any, history: Any, test: Observed) -> None:
        """Metrics of rankings, which are computed once for all of them."""
        wanted = [one for one in RANKING_METRICS if one in self.metrics]
        self.rank_seconds[name] = None
        if not wanted:
            return
        start = time.perf_counter()
        names = {OF_ROWS.get(one, one) for one in wanted}
        ranking = rank_test(model, train, test, self.k, self.relevant, self.n_jobs, names, history)
        self.rank_seconds[name] = time.perf_counter() - start
        own = model.model_ if isinstance(model, BaseRecommender) and history is None else None
        for metric in wanted:
            of_rows = ranking.of_rows[OF_ROWS.get(metric, metric)]
            for place in np.ndindex(of_rows.shape[:2]):
                values = of_rows[place]
                value = ranking.coverage[place] if metric == "coverage" else mean_of_rows(values)
                k = None if metric == "auc" else int(ranking.lengths[place[0]])
                threshold = float(ranking.thresholds[place[1]])
                self.add(name, metric, k, threshold, Estimate(float(value), self.aligned(values, own)), None)

    def add(
        self, model: str, metric: str, k: int | None, relevant: float | None, estimate: Estimate, cells: int | None
    ) -> None:
        """Keep a metric of a model."""
        if metric in self.metrics:
            value, of_rows = estimate
            error, n = float(standard_error(of_rows)), int(np.count_nonzero(~np.isnan(of_rows)))
            self.scores.append(Score(model, metric, k, relevant, value, error, n, cells, of_rows=of_rows))

    def aligned(self, of_rows: Array, record: Any) -> Array:
        """A metric of the rows of a model in the rows in which all are compared."""
        known = self.rows.row_labels
        own = known if record is None else record.labels.row_labels
        if own is known or (own is not None and known is not None and np.array_equal(own, known)):
            return of_rows
        own, known = (
            np.arange(size) if labels is None else labels
            for labels, size in ((own, of_rows.size), (known, self.rows.shape[0]))
        )
        positions = Index(own).find(known)
        return np.where(positions < 0, np.nan, of_rows[positions])

    def held(self, reading: Reading, labels: Places, shape: tuple[int, int], seen: Seen) -> Observed:
        """Cells of test in the rows and columns of a model, or of all, that were not seen."""
        test = match_cells(self.cells("test", reading), shape, labels, "test", duplicates="keep")
        return held_out(test, seen)

    def values(self, model: Any, history: Any) -> tuple[dict[str, Estimate], int]:
        """Errors of predicted values, and scores of probabilities, and the number of cells."""
        record, reading = model.model_, self.reading(model)
        encoder, is_zero = record.encoder, record.unseen == "zero"
        has_levels, can_fold = hasattr(model, "predict_proba"), history is not None
        if history is None:
            labels, shape, seen = record.labels, record.shape, record.seen
        else:
            history = rows_of(history, record.shape[1], record.labels.column_labels)
            labels, shape = Places(history.row_labels, record.labels.column_labels), history.shape
            seen = Seen(history.indptr, history.indices, shape[1])
        cells = self.held(reading, labels, shape, seen)
        if is_zero:
            cells = cells.select_cells(encoder.codes(cells).values > 0)
        if cells.nnz == 0:
            return {}, 0
        codes, rows = encoder.codes(cells).values, cells.row_of_cell()

        lowest = 1 if is_zero else 0
        # text levels count 0, 1, ... in `predict`, 1, 2, ... where unseen cells are zeros
        values = codes if encoder.is_text else encoder.labels_of(codes)
        parts: list[dict[str, Array]] = []
        height = max(1, SCORES_AT_A_TIME // shape[1])
        tops = range(0, shape[0], height) if can_fold else range(0, cells.nnz, CELLS_AT_A_TIME)
        for top in tops:
            here = slice(top, min(top + CELLS_AT_A_TIME, cells.nnz))
            if can_fold:  # of new rows, all columns are predicted
                here = slice(*cells.indptr[[top, min(top + height, shape[0])]])
                if here.start == here.stop:
                    continue
                some = history.select_rows(np.arange(top, min(top + height, shape[0])))
                asked: tuple[Any, ...] = (some,)
                pick: Any = (rows[here] - top, cells.indices[here])
            else:
                asked, pick = (
                    (record.labels_at(rows[here], "row"), record.labels_at(cells.indices[here], "column")),
                    ...,
                )
            p = model.predict_proba(*asked)[pick] if has_levels else None
            losses: dict[str, Array] = {}
            if p is not None and is_zero:
                p = given_not_lowest(p)
                numbers = np.arange(p.shape[1]) if encoder.is_text else encoder.labels_of(np.arange(p.shape[1]))
                losses |= error_losses(p @ np.asarray(numbers, np.float64) - values[here])
            else:
                losses |= error_losses(model.predict(*asked, given_seen=is_zero)[pick] - values[here])
            if p is not None:
                losses |= level_losses(codes[here].astype(np.int64) - lowest, p[:, lowest:])
            parts.append(losses)
        whole = {name: np.concatenate([one[name] for one in parts]) for name in parts[0]}
        if hasattr(model, "log_likelihood") and not can_fold:
            whole["log_loss"] = -model.log_likelihood(cells, each=True)
        found = estimates(whole, rows, shape[0])
        own = None if can_fold else record
        return {name: Estimate(one.value, self.aligned(one.of_rows, own)) for name, one in found.items()}, rows.size

    def add_baselines(self) -> None:
        """Popularity; means of training cells, and frequencies of levels, beside models of values."""
        known, rows, shape = self.known, self.rows, self.rows.shape
        test = self.cells("test", self.main)
        if not any("Popularity" in (name, type(model).__name__) for name, model in self.models.items()):
            counts = Seen.from_observed(known).per_column().astype(np.float64)[:, None]
            history = None if rows is known else rows
            self.fit_seconds["Popularity"] = None
            self.rank("Popularity", (np.ones((shape[0], 1)), counts), known, history, test)
        scored = {one.metric for one in self.scores if one.metric in VALUE_METRICS}
        if not scored or self.data["train"] is None:
            return
        encoder, is_zero = self.estimators[0].model_.encoder, self.main.unseen == "zero"
        seen = Seen(rows.indptr, rows.indices, shape[1])
        cells = self.held(self.main, Places(rows.row_labels, rows.column_labels), shape, seen)
        try:
            coded = [encoder.codes(one).values for one in (known, rows, cells)]
        except DataError as error:
            self.notes.append(str(error))
            return
        if is_zero:  # given that a cell is seen
            coded = [code[code > 0] for code in coded]
            known, rows, cells = (one.select_cells(encoder.codes(one).values > 0) for one in (known, rows, cells))
        of_known, of_rows, truth = (code if encoder.is_text else encoder.labels_of(code) for code in coded)
        u, i = cells.row_of_cell(), cells.indices

        overall = float(np.average(of_known, weights=known.weights))
        of_row = group_means(rows.row_of_cell(), of_rows, shape[0], rows.weights, overall)
        of_column = group_means(known.indices, of_known, shape[1], known.weights, overall)
        guesses = {"Mean of all": overall, "Mean of the row": of_row[u], "Mean of the column": of_column[i]}
        losses = {name: error_losses(guess - truth) for name, guess in guesses.items() if scored & set(ERRORS)}
        if "rps" in scored:
            lowest = 1 if is_zero else 0
            counts = np.maximum(np.bincount(coded[0].astype(np.int64), None, encoder.n_levels), 0.5)[lowest:]
            shares, levels = counts / counts.sum(), coded[2].astype(np.int64) - lowest
            of_level = level_losses(np.arange(shares.size), np.broadcast_to(shares, (shares.size, shares.size)))
            losses["Frequency of levels"] = {metric: loss[levels] for metric, loss in of_level.items()}
        for name, of_cells in losses.items():
            self.fit_seconds[name] = self.rank_seconds[name] = None
            for metric, estimate in estimates(of_cells, u, shape[0]).items():
                self.add(name, metric, None, None, estimate, u.size)


def says_values(model: Any) -> bool:
    """Whether a model says what the values of seen cells are; of two levels, the lower one unseen, one is left."""
    if not isinstance(model, BaseFactorization) or model.model_.unseen == "missing":
        return isinstance(model, BaseFactorization)
    return "likelihood" in model.offers and model.model_.encoder.n_levels != 2


def error_losses(errors: Array) -> dict[str, Array]:
    """What the metrics of predicted values are means of, at each cell; the root is taken of the first."""
    return {"rmse": errors**2, "mae": np.abs(errors), "within_half": np.abs(errors) <= 0.5}


def level_losses(levels: Array, p: Array) -> dict[str, Array]:
    """Ranked probability score and log loss of each cell, as in `value_scores`."""
    below = np.cumsum(p[:, :-1], axis=1) - (levels[:, None] <= np.arange(p.shape[1] - 1))
    with np.errstate(divide="ignore"):
        logs = np.log(p[np.arange(levels.size), levels])
    return {"rps": np.sum(below**2, axis=1), "log_loss": -logs}


def estimates(losses: Mapping[str, Array], rows: Array, n_rows: int) -> dict[str, Estimate]:
    """Metrics from the losses of cells in these rows."""
    means = {name: cell_mean(rows, of_cells, n_rows) for name, of_cells in losses.items()}
    return means | ({"rmse": root(means["rmse"])} if "rmse" in means else {})
