"""The section on how good the model is on held-out cells, beside simple rules."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from halfseen.arrays import Array
from halfseen.errors import DataError
from halfseen.metrics import log_score, ranked_probability_score, ranking_scores
from halfseen.model import products_at
from halfseen.observed import Observed
from halfseen.report.blocks import Block, Note, Section, Table, counted
from halfseen.report.context import ReportContext, units_differ
from halfseen.report.rendering import number


def quality(context: ReportContext, k: int, relevant: float) -> Section | None:
    """Rankings where unseen cells are zeros, errors where they are missing; probabilities of levels."""
    test = context.test
    if test is None:
        return None
    blocks: list[Block] = [Note(f"{counted(test.nnz, 'cell')} held out, in rows and columns of the model.")]
    blocks += [Note(text) for text in context.test_warnings]
    ranks = getattr(context.model, "unseen", None) == "zero"
    blocks += _rankings(context, test, k, relevant) if ranks else _errors(context, test)
    blocks += _level_scores(context, test)

    # headline: the first score beside that of the best simple rule
    first = next((block for block in blocks if isinstance(block, Table)), None)
    headline = ""
    if first is not None:
        (_, own, *_), *others = first.rows
        is_gain = "@" in first.heads[1]
        best = (max if is_gain else min)(others, key=lambda row: row[1], default=None)
        beside = "" if best is None else f" ({best[0]}: {number(best[1])})"
        units = "" if is_gain or context.units is None else f", in units of each {context.units.whose}'s spread"
        headline = f"{first.heads[1]} on held-out cells{units}: {number(own)}{beside}."
    return Section("quality", "How good it is", blocks, headline)


def _rankings(context: ReportContext, test: Observed, k: int, relevant: float) -> Iterator[Block]:
    seen = context.seen
    popularity = np.ones((seen.shape[0], 1)), np.bincount(seen.indices, minlength=seen.shape[1]).astype(float)[:, None]
    rules: dict[str, Any] = {
        type(context.model).__name__: (context.model, context.train),
        "Popularity": (popularity, seen),
    }
    rows = []
    for name, (model, train) in rules.items():
        scores = ranking_scores(model, train, test, k, relevant)
        rows.append([name, *(float(np.nanmean(score)) for score in scores)])
    heads = ["Ranked by", f"NDCG@{k}", f"Precision@{k}", f"Recall@{k}", f"MAP@{k}"]
    ranked = int(np.count_nonzero(~np.isnan(scores.ndcg)))
    yield Table(f"Rankings of unseen columns, means over {counted(ranked, 'row')}", heads, rows, own=[0])
    counting = f" (levels counted 1, 2, ... from {context.lowest})" if context.has_words else ""
    yield Note(
        f"Every row's unseen columns are ranked; a held-out cell is relevant if its value is {relevant:g} or more"
        f"{counting}. Larger is better. Popularity shows everybody the columns that were seen most often."
    )


def _errors(context: ReportContext, test: Observed) -> Iterator[Block]:
    """A table of errors; in units of each column's spread, where columns differ in units."""
    model, rows, columns = context.model, test.row_of_cell(), test.indices
    try:
        values = context.numbers(test)
    except DataError as error:  # a level that training did not have
        yield Note(str(error))
        return
    if context.inner_shape is not None:  # the columns of a tensor have no names
        predicted = products_at(model.W_, model.H_, rows, columns)
    else:
        predicted = model.predict(*context.labels(rows, columns))
    units, scale = context.units, np.ones(rows.size)
    if units is not None:
        scale = units.spreads[rows if units.are_rows else columns]
        if not scale.any():
            units, scale = None, np.ones(rows.size)
    has_scale = scale > 0
    lines = []
    for name, guess in {type(model).__name__: predicted, **_mean_rules(context, rows, columns)}.items():
        errors = (guess - values)[has_scale] / scale[has_scale]
        lines.append([name, float(np.sqrt(np.mean(errors**2))), float(np.mean(np.abs(errors)))])

    caption = f"Values of {counted(int(np.count_nonzero(has_scale)), 'cell')}"
    if context.has_words:
        caption += f", levels counted 0, 1, ... from {context.lowest}"
    if units is not None:
        source = "its answers" if units.whose == "question" else "the cells seen in training"
        caption += f", errors in units of each {units.whose}'s spread (the standard deviation over {source})"
    heads = ["Predicted by", "Root mean squared error", "Mean absolute error"]
    yield Table(f"{caption}: smaller is better", heads, lines, own=[0])
    if units is not None and not has_scale.all():
        yield Note(
            f"{counted(int(np.count_nonzero(~has_scale)), 'cell')} left out: the values of their {units.whose}s did "
            "not vary in training, and have no spread."
        )
    if len(lines) == 1:
        further = ", and errors in units of each column's spread: here the columns of the largest values decide"
        hidden = "levels" not in model.offers and units_differ(columns, test.values, test.shape[1])
        yield Note(f"Give the data of the fit to see simple rules beside the model{further if hidden else ''}.")


def _mean_rules(context: ReportContext, rows: Array, columns: Array) -> dict[str, Array]:
    """Predictions by means; a row, column or question without cells gets the mean of all."""
    train = context.train
    if train is not None:
        values, weights, (n, m) = context.numbers(train), train.weights, train.shape
        overall = float(np.average(values, weights=weights))
        return {
            "Mean of all": np.full(rows.size, overall),
            "Mean of the row": _weighted_means(train.row_of_cell(), values, weights, n, overall)[rows],
            "Mean of the column": _weighted_means(train.indices, values, weights, m, overall)[columns],
        }
    if context.answers is None:
        return {}
    answers, ends = context.answers
    size = ends.size - 1
    means = _weighted_means(np.repeat(np.arange(size), np.diff(ends)), answers, None, size, float(answers.mean()))
    return {"Mean of the question's answers": means[columns if context.model.questions_are_ == "columns" else rows]}


def _weighted_means(places: Array, values: Array, weights: Array | None, size: int, default: float) -> Array:
    weights = np.ones(values.size) if weights is None else weights
    total = np.bincount(places, weights, size)
    sums = np.bincount(places, weights * values, size)
    return np.divide(sums, total, out=np.full(size, default), where=total > 0)


def _level_scores(context: ReportContext, test: Observed) -> Iterator[Block]:
    """A table of proper scores of the levels' probabilities, beside those of the levels' frequencies."""
    model = context.model
    if not hasattr(model, "predict_proba"):
        return
    try:
        codes = model.model_.encoder.codes(test).values.astype(np.int64)
    except DataError as error:  # a level that training did not have
        yield Note(str(error))
        return
    is_zero = model.model_.unseen == "zero"
    kept = np.flatnonzero(codes > 0) if is_zero else np.arange(codes.size)
    if kept.size == 0:
        return
    p = model.predict_proba(*context.labels(test.row_of_cell()[kept], test.indices[kept]))
    guesses = {type(model).__name__: given_not_lowest(p) if is_zero else p}
    if context.train is not None:
        train_codes = model.model_.encoder.codes(replace(context.train, weights=None)).values.astype(np.int64)
        counts = np.maximum(np.bincount(train_codes, None, p.shape[1]), 0.5)  # half a cell of a level without any
        shares = counts / counts.sum()
        shares = given_not_lowest(shares) if is_zero else shares
        guesses["How often each level was seen"] = np.broadcast_to(shares, p.shape)
    first = 1 if is_zero else 0
    y = codes[kept] - first
    lines = [
        [name, ranked_probability_score(y, q[:, first:]), log_score(y, q[:, first:])] for name, q in guesses.items()
    ]
    heads = ["Foretold by", "Ranked probability score", "Mean log-probability"]
    given = ", given that they are above 0" if is_zero else ""
    yield Table(f"Levels of {counted(kept.size, 'cell')}{given}", heads, lines, own=[0])
    yield Note("Of the ranked probability score, smaller is better; of the log-probability, larger.")


def given_not_lowest(p: Array) -> Array:
    """Probabilities given that the level is not the lowest; uniform over the others where the lowest has all."""
    above = p.copy()
    above[..., 0] = 0.0
    total = above.sum(axis=-1, keepdims=True)
    evenly = np.where(np.arange(p.shape[-1]) > 0, 1 / (p.shape[-1] - 1), 0.0)
    return np.where(total > 0, above / np.where(total > 0, total, 1.0), evenly)
