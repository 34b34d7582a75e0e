"""The section on how good the model is on cells that were held out."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from halfseen.arrays import Array
from halfseen.data import Observed
from halfseen.errors import DataError, DataWarning
from halfseen.estimators.labelling import labels_at
from halfseen.estimators.pairs import products_at
from halfseen.metrics import log_score, ranked_probability_score, ranking_scores
from halfseen.report.baselines import mean_rules, popularity, shares_of_levels
from halfseen.report.blocks import Block, Note, Section, Table, counted
from halfseen.report.known import Known


def how_good(known: Known, k: int, relevant: float) -> Section | None:
    """Rankings where unseen cells are zeros, values where they are missing; likelihoods, where there are any."""
    if known.test is None:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # what there was to warn of was told when the data were read
        blocks = [Note(f"{counted(known.test.nnz, 'cell')} held out, in rows and columns of the model.")]
        ranks = getattr(known.model, "unseen", None) == "zero"
        of_values = _of_ranking(known, known.test, k, relevant) if ranks else _of_values(known, known.test)
        return Section("quality", "How good it is", [*blocks, *of_values, *_of_probabilities(known, known.test)])


def _of_ranking(known: Known, test: Observed, k: int, relevant: float) -> Iterator[Block]:
    seen = known.train or _remembered(known)
    rules: dict[str, Any] = {
        type(known.model).__name__: (known.model, None if known.train is None else seen),
        "Popularity": (popularity(seen.indices, seen.shape), seen),
    }
    rows = []
    for name, (model, train) in rules.items():
        scores = ranking_scores(model, train, test, k, relevant)
        rows.append([name, *(float(np.nanmean(score)) for score in scores)])
    heads = ["Ranked by", f"NDCG@{k}", f"Precision@{k}", f"Recall@{k}", f"MAP@{k}"]
    judged = int(np.count_nonzero(~np.isnan(scores.ndcg)))
    yield Table(f"Rankings of unseen columns, means over {counted(judged, 'row')}", heads, rows, own=[0])
    yield Note(
        "Every row's unseen columns are ranked; a held-out cell is relevant if its value is "
        f"{relevant:g} or more. Larger is better. Popularity shows everybody the columns that were seen most often."
    )


def _remembered(known: Known) -> Observed:
    indptr, indices = known.model.seen_.of(np.arange(known.shape[0]))
    labels = {"row_labels": known.model.row_labels_, "column_labels": known.model.column_labels_}
    return Observed(indptr, indices, np.ones(indices.size), known.shape, unseen="zero", **labels)


def _of_values(known: Known, test: Observed) -> Iterator[Block]:
    rows, columns = test.row_of_cell(), test.indices
    try:
        values = known.numbers(test)
    except DataError as error:
        yield Note(str(error))
        return
    guesses = {type(known.model).__name__: _predicted(known, rows, columns), **_rules(known, rows, columns)}
    lines = [
        [name, float(np.sqrt(np.mean((guess - values) ** 2))), float(np.mean(np.abs(guess - values)))]
        for name, guess in guesses.items()
    ]
    heads = ["Predicted by", "Root mean squared error", "Mean absolute error"]
    yield Table(f"Values of {counted(test.nnz, 'cell')}: smaller is better", heads, lines, own=[0])
    if len(lines) == 1:
        yield Note("Give the data of the fit to see simple rules beside the model.")


def _predicted(known: Known, rows: Array, columns: Array) -> Array:
    model = known.model
    if getattr(model, "inner_shape_", None) is not None:  # of a tensor, whose columns have no names
        return products_at(model.W_, model.H_, rows, columns)
    predicted: Array = model.predict(labels_at(model, rows, "row"), labels_at(model, columns, "column"))
    return predicted


def _rules(known: Known, rows: Array, columns: Array) -> dict[str, Array]:
    if known.train is not None:
        return mean_rules(known.train, known.numbers(known.train), rows, columns)
    posterior = getattr(known.model, "_posterior", None)
    if posterior is None:
        return {}
    questions = columns if known.model._turned else rows
    ends = posterior.answer_indptr
    sums = np.add.reduceat(np.append(posterior.answers, 0.0), ends[:-1]) * (np.diff(ends) > 0)
    means = np.where(np.diff(ends) > 0, sums / np.maximum(np.diff(ends), 1), posterior.answers.mean())
    return {"Mean of the question's answers": means[questions]}


def _of_probabilities(known: Known, test: Observed) -> Iterator[Block]:
    """How probable the held-out levels were, beside what one knows from how often each level was seen."""
    model = known.model
    if not hasattr(model, "predict_proba"):
        return
    try:
        codes = model._counted(test).values.astype(np.int64)
    except DataError as error:  # a level that training did not have
        yield Note(str(error))
        return
    is_zero = model.unseen == "zero"
    there = np.flatnonzero(codes > 0) if is_zero else np.arange(codes.size)
    if there.size == 0:
        return
    rows, columns = test.row_of_cell()[there], test.indices[there]
    p = model.predict_proba(labels_at(model, rows, "row"), labels_at(model, columns, "column"))
    guesses = {type(model).__name__: _given_something(p) if is_zero else p}
    if known.train is not None:
        guesses["How often each level was seen"] = _frequencies(known, known.train, p.shape)
    start = 1 if is_zero else 0
    lines = [
        [
            name,
            ranked_probability_score(codes[there] - start, q[:, start:]),
            log_score(codes[there] - start, q[:, start:]),
        ]
        for name, q in guesses.items()
    ]
    heads = ["Foretold by", "Ranked probability score", "Mean log-probability"]
    given = ", given that they are above 0" if is_zero else ""
    yield Table(f"Levels of {counted(there.size, 'cell')}{given}", heads, lines, own=[0])
    yield Note("Of the ranked probability score, smaller is better; of the log-probability, larger.")


def _given_something(p: Array) -> Array:
    """Probabilities of levels given that the level is not the lowest; where that has all, the others are as likely."""
    above = p.copy()
    above[..., 0] = 0.0
    total = above.sum(axis=-1, keepdims=True)
    evenly = np.where(np.arange(p.shape[-1]) > 0, 1 / (p.shape[-1] - 1), 0.0)
    scaled: Array = np.where(total > 0, above / np.where(total > 0, total, 1.0), evenly)
    return scaled


def _frequencies(known: Known, train: Observed, shape: tuple[int, ...]) -> Array:
    coded = known.model._counted(replace(train, weights=None))
    codes = coded.values.astype(np.int64)
    shares = shares_of_levels(codes, shape[1], None)
    shares = _given_something(shares) if known.model.unseen == "zero" else shares
    return np.broadcast_to(shares, shape)
