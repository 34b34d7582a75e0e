"""How probable the levels of held-out cells were, beside what one knows from how often each level was seen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from halfseen.arrays import Array
from halfseen.errors import DataError
from halfseen.estimators.labelling import labels_at
from halfseen.metrics import log_score, ranked_probability_score
from halfseen.observed import Observed
from halfseen.report.baselines import shares_of_levels
from halfseen.report.blocks import Block, Note, Table, counted
from halfseen.report.known import Known


def scores_of_levels(known: Known, test: Observed) -> Iterator[Block]:
    """A table of proper scores, where the model has probabilities."""
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
