"""Ranking metrics by their definitions, user by user."""

import numpy as np


def ndcg(scores, seen, test, k=100, relevant=1):
    """NDCG@k, averaged over the users with a relevant test item.

    Items seen in training are left out; an item is relevant if its level in `test` is `relevant` or more (Eq. 38). The
    gain at rank r = 1, 2, ... is 1 / log2(r + 1), over the gain of a list that begins with all relevant items.
    """
    values = []
    for score, known, truth in zip(scores, seen, test, strict=True):
        wanted = truth >= relevant
        if not wanted.any():
            continue
        new = np.flatnonzero(~known)
        listed = new[np.argsort(-score[new], kind="stable")[:k]]
        gains = 1 / np.log2(np.arange(2, k + 2))
        values.append((gains[: len(listed)] * wanted[listed]).sum() / gains[: wanted.sum()].sum())
    return np.mean(values)
