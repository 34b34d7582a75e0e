"""The section on quality on held-out cells, beside simple baselines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from halfseen.arrays import Array
from halfseen.errors import DataError
from halfseen.metrics import evaluate, standard_error
from halfseen.metrics.evaluation import RANKING_METRICS, estimates, level_losses
from halfseen.metrics.value_scores import cell_mean, given_not_lowest, group_means, root
from halfseen.model import products_at
from halfseen.observed import Observed
from halfseen.report.context import ReportContext, units_differ
from halfseen.report.page import Block, Measured, Section, Table, count, format_value


def quality(context: ReportContext, k: int, relevant: float) -> Section | None:
    """Rankings where unseen cells are zeros, errors where they are missing; probabilities of levels."""
    test = context.test
    if test is None:
        return None
    n_cells = f"{count(test.nnz, 'cell')} held out, in rows and columns of the model."
    blocks: list[Block] = [n_cells, *context.test_warnings]
    blocks += _rankings(context, test, k, relevant) if context.unseen == "zero" else _errors(context, test)
    blocks += _level_scores(context, test)

    # headline: the first score beside that of the best baseline
    first = next((block for block in blocks if isinstance(block, Table)), None)
    headline = ""
    if first is not None:
        (_, own, *_), *others = first.rows
        is_gain = "@" in first.heads[1]
        best = (max if is_gain else min)(others, key=lambda row: row[1], default=None)
        beside = "" if best is None else f" ({best[0]}: {format_value(float(best[1]))})"
        units = "" if is_gain or context.units is None else f", in units of each {context.units.of}'s spread"
        headline = f"{first.heads[1]} on held-out cells{units}: {format_value(float(own))}{beside}."
    return Section("quality", "Quality on held-out cells", blocks, headline)


def _rankings(context: ReportContext, test: Observed, k: int, relevant: float) -> Iterator[Block]:
    """A table of ranking scores beside those of popularity, with their standard errors."""
    name = type(context.model).__name__
    metrics = [metric for metric in RANKING_METRICS if metric != "novelty"]
    judged = evaluate({name: context.model}, context.train, test, k=k, relevant=relevant, metrics=metrics)
    rows, ranked = [], judged.get(name, "ndcg").rows
    for ranker in (name, "Popularity"):
        scores = [judged.get(ranker, metric) for metric in metrics]
        rows.append([ranker, *(Measured(one.value, one.standard_error) for one in scores)])
    heads = ["Ranked by", *(one.name[:1].upper() + one.name[1:] for one in scores)]
    yield Table(f"Rankings of unseen columns, means over {count(ranked, 'row')}", heads, rows, highlighted=[0])
    counting = f" (levels counted 1, 2, ... from {context.lowest_level})" if context.has_text_levels else ""
    yield (
        f"Every row's unseen columns are ranked; a held-out cell is relevant if its value is {relevant:g} or more"
        f"{counting}. Larger is better; ± standard error by row. Popularity recommends the columns seen most often to "
        "everybody. Coverage is the share of columns that are recommended to somebody."
    )
    first, other = (judged.get(ranker, "ndcg") for ranker in (name, "Popularity"))
    gap = other if first.is_best else first
    if gap.difference is not None and gap.difference_error == gap.difference_error:
        yield (
            f"{gap.name} of {gap.model} is {-gap.difference:.4g} ± {gap.difference_error:.2g} lower (paired by row)"
            f"{', within two standard errors' if gap.is_tied else ''}."
        )


def _errors(context: ReportContext, test: Observed) -> Iterator[Block]:
    """A table of errors beside those of means; in units of each column's spread, where columns differ in units."""
    model, rows, columns = context.model, test.row_of_cell(), test.indices
    try:
        values = context.numeric_values(test)
    except DataError as error:  # a level that training did not have
        yield str(error)
        return
    if context.inner_shape is not None:  # the columns of a tensor have no names
        predicted = products_at(model.W_, model.H_, rows, columns)
    else:
        predicted = model.predict(*context.cell_labels(rows, columns))
    units, scale = context.units, np.ones(rows.size)
    if units is not None:
        scale = units.spreads[rows if units.are_rows else columns]
        if not scale.any():
            units, scale = None, np.ones(rows.size)
    has_scale = scale > 0
    lines = []
    for name, guess in {type(model).__name__: predicted, **_means(context, rows, columns)}.items():
        errors = (guess - values)[has_scale] / scale[has_scale]
        square, size = (cell_mean(rows[has_scale], one, test.shape[0]) for one in (errors**2, np.abs(errors)))
        lines.append([name, *(Measured(one.value, standard_error(one.of_rows)) for one in (root(square), size))])

    caption = f"Values of {count(int(np.count_nonzero(has_scale)), 'cell')}"
    if context.has_text_levels:
        caption += f", levels counted 0, 1, ... from {context.lowest_level}"
    if units is not None:
        source = "its answers" if units.of == "question" else "the cells seen in training"
        caption += f", errors in units of each {units.of}'s spread (the standard deviation over {source})"
    heads = ["Predicted by", "Root mean squared error", "Mean absolute error"]
    yield Table(f"{caption}: smaller is better", heads, lines, highlighted=[0])
    if units is not None and not has_scale.all():
        yield (
            f"{count(int(np.count_nonzero(~has_scale)), 'cell')} left out: the values of their {units.of}s did "
            "not vary in training, and have no spread."
        )
    if len(lines) == 1:
        further = ", and errors in units of each column's spread: here the columns of the largest values decide"
        is_hidden = not context.record.encoder.has_levels and units_differ(columns, test.values, test.shape[1])
        yield f"Pass the training data to see simple baselines beside the model{further if is_hidden else ''}."


def _means(context: ReportContext, rows: Array, columns: Array) -> dict[str, Array]:
    """Predictions by means; a row, column or question without cells gets the mean of all."""
    train = context.train
    if train is not None:
        values, weights, (n, m) = context.numeric_values(train), train.weights, train.shape
        overall = float(np.average(values, weights=weights))
        return {
            "Mean of all": np.full(rows.size, overall),
            "Mean of the row": group_means(train.row_of_cell(), values, n, weights, overall)[rows],
            "Mean of the column": group_means(train.indices, values, m, weights, overall)[columns],
        }
    if context.answers is None:
        return {}
    answers, ends = context.answers
    size = ends.size - 1
    means = group_means(np.repeat(np.arange(size), np.diff(ends)), answers, size, default=float(answers.mean()))
    return {"Mean of the question's answers": means[rows if context.questions_are_rows else columns]}


def _level_scores(context: ReportContext, test: Observed) -> Iterator[Block]:
    """A table of proper scores of the levels' probabilities, beside those of the levels' frequencies."""
    model, encoder = context.model, context.record.encoder
    if not hasattr(model, "predict_proba"):
        return
    try:
        codes = encoder.codes(test).values.astype(np.int64)
    except DataError as error:  # a level that training did not have
        yield str(error)
        return
    is_zero = context.unseen == "zero"
    kept = np.flatnonzero(codes > 0) if is_zero else np.arange(codes.size)
    if kept.size == 0:
        return
    p = model.predict_proba(*context.cell_labels(test.row_of_cell()[kept], test.indices[kept]))
    guesses = {type(model).__name__: given_not_lowest(p) if is_zero else p}
    if context.train is not None:
        train_codes = encoder.codes(replace(context.train, weights=None)).values.astype(np.int64)
        counts = np.maximum(np.bincount(train_codes, None, p.shape[1]), 0.5)  # half a cell of a level without any
        shares = counts / counts.sum()
        shares = given_not_lowest(shares) if is_zero else shares
        guesses["How often each level was seen"] = np.broadcast_to(shares, p.shape)
    first = 1 if is_zero else 0
    y = codes[kept] - first
    lines = []
    for name, q in guesses.items():
        found = estimates(level_losses(y, q[:, first:]), test.row_of_cell()[kept], test.shape[0])
        score, loss = found["rps"], found["log_loss"]
        signed = zip((score.value, -loss.value), (score, loss), strict=True)
        lines.append([name, *(Measured(value, standard_error(one.of_rows)) for value, one in signed)])
    heads = ["Predicted by", "Ranked probability score", "Mean log-probability"]
    given = ", given that they are above 0" if is_zero else ""
    yield Table(f"Levels of {count(kept.size, 'cell')}{given}", heads, lines, highlighted=[0])
    yield "Of the ranked probability score, smaller is better; of the log-probability, larger."
