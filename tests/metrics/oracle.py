"""The ranking metrics in plain Python, straight from their definitions."""

import math


def ranked(scores, seen):
    """The columns that were not seen, best first; of equal ones the first column first."""
    return sorted((i for i in range(len(scores)) if i not in seen), key=lambda i: (-scores[i], i))


def metrics(scores, seen, test, k, relevant):
    """(NDCG, precision, recall, average precision) of one row; None if nothing is relevant.

    `scores` is a list, `seen` a set of columns, `test` a dict from columns to values.
    """
    good = {i for i, value in test.items() if value >= relevant and i not in seen}
    if not good:
        return None
    first = ranked(scores, seen)[:k]
    gain = sum(1 / math.log2(rank + 1) for rank, i in enumerate(first, 1) if i in good)
    ideal = sum(1 / math.log2(rank + 1) for rank in range(1, min(k, len(good)) + 1))
    hits = [rank for rank, i in enumerate(first, 1) if i in good]
    precisions = [sum(i in good for i in first[:rank]) / rank for rank in hits]
    return gain / ideal, len(hits) / k, len(hits) / len(good), sum(precisions) / min(k, len(good))


def all_rows(scores, train, test, k, relevant):
    """The metrics of every row, tuples and Nones; `train` and `test` are lists of rows with NaN where unseen."""
    rows = zip(scores, train, test, strict=True)
    return [metrics(list(s), set(seen(a)), seen(b), k, relevant) for s, a, b in rows]


def seen(row):
    return {i: value for i, value in enumerate(row) if value == value}
