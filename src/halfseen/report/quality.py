"""The section on how good the model is on cells that were held out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from halfseen.metrics import ranking_scores
from halfseen.observed import Observed
from halfseen.report.baselines import popularity
from halfseen.report.blocks import Block, Note, Section, Table, counted
from halfseen.report.known import Known
from halfseen.report.probabilities import scores_of_levels
from halfseen.report.rendering import number
from halfseen.report.values import errors_of_values, in_what


def how_good(known: Known, k: int, relevant: float) -> Section | None:
    """Rankings where unseen cells are zeros, values where they are missing; likelihoods, where there are any."""
    if known.test is None:
        return None
    blocks: list[Block] = [
        Note(f"{counted(known.test.nnz, 'cell')} held out, in rows and columns of the model."),
        *(Note(remark) for remark in known.remarks_on_test),
    ]
    ranks = getattr(known.model, "unseen", None) == "zero"
    judged = _of_ranking(known, known.test, k, relevant) if ranks else errors_of_values(known, known.test)
    blocks += [*judged, *scores_of_levels(known, known.test)]
    return Section("quality", "How good it is", blocks, _headline(known, blocks))


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
    counting = f" (levels counted 1, 2, ... from {known.lowest})" if known.has_words else ""
    yield Note(
        f"Every row's unseen columns are ranked; a held-out cell is relevant if its value is {relevant:g} or more"
        f"{counting}. Larger is better. Popularity shows everybody the columns that were seen most often."
    )


def _remembered(known: Known) -> Observed:
    indptr, indices = known.model.seen_.of(np.arange(known.shape[0]))
    labels = {"row_labels": known.model.row_labels_, "column_labels": known.model.column_labels_}
    return Observed(indptr, indices, np.ones(indices.size), known.shape, unseen="zero", **labels)


def _headline(known: Known, blocks: list[Block]) -> str:
    """The first number on held-out cells, beside that of the best simple rule."""
    first = next((block for block in blocks if isinstance(block, Table)), None)
    if first is None:
        return ""
    (_, own, *_), *others = first.rows
    is_gain = "@" in first.heads[1]
    best = (max if is_gain else min)(others, key=lambda row: row[1], default=None)
    beside = "" if best is None else f" ({best[0]}: {number(best[1])})"
    return f"{first.heads[1]} on held-out cells{'' if is_gain else in_what(known)}: {number(own)}{beside}."
