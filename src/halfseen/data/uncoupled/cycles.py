"""Comparisons that say more than an order: repeated ones, ties, cycles, and those that the answers contradict."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from halfseen.data.uncoupled.asking import Answers, AskedCells, Comparisons


class Oddities(NamedTuple):
    """Masks over the comparisons, and how many pairs were compared both ways."""

    half_known: np.ndarray
    repeated: np.ndarray
    two_way_pairs: int
    cyclic: np.ndarray
    contradictory: np.ndarray


def oddities(asked: AskedCells, answers: Answers, comparisons: Comparisons) -> Oddities:
    """What is odd about the comparisons.

    a >= b >= ... >= a holds only if all of them are equal: those of a strong component of the graph of comparisons
    are. That is as the paper writes ties where pairs compared both ways hold it together, else a cycle; and it can't be
    where the component has more cells than the row has equal answers, not given ones counted in.
    """
    higher, lower = comparisons.higher, comparisons.lower
    half_known = (higher < 0) != (lower < 0)
    repeated = np.zeros(higher.size, dtype=bool)
    repeated[1:] = (higher[1:] == higher[:-1]) & (lower[1:] == lower[:-1]) & ~half_known[1:]
    known = np.flatnonzero(~half_known & ~repeated)
    two_way = known[_compared_back(higher[known], lower[known], asked.respondents.size)]
    ties = _components(higher[two_way], lower[two_way], asked.respondents.size, "weak")
    equal = _components(higher[known], lower[known], asked.respondents.size, "strong")
    inside = ~half_known & (equal[higher] == equal[lower])
    impossible = _impossible(equal, asked, answers)
    return Oddities(
        half_known, repeated, two_way.size // 2,
        cyclic=inside & (ties[higher] != ties[lower]),
        contradictory=inside & impossible[equal[higher]],
    )  # fmt: skip


def _compared_back(higher: np.ndarray, lower: np.ndarray, n_cells: int) -> np.ndarray:
    """Which of different comparisons, sorted by higher and then lower, are there the other way round as well."""
    if not higher.size:
        return np.empty(0, dtype=bool)
    keys, back = higher * n_cells + lower, lower * n_cells + higher
    return keys[np.minimum(np.searchsorted(keys, back), keys.size - 1)] == back


def _components(higher: np.ndarray, lower: np.ndarray, n_cells: int, connection: str) -> np.ndarray:
    """The number of the component of each cell."""
    if not higher.size:
        return np.arange(n_cells)
    edges = sparse.csr_array((np.ones(higher.size, dtype=np.int8), (higher, lower)), shape=(n_cells, n_cells))
    return connected_components(edges, directed=True, connection=connection)[1]


def _impossible(component: np.ndarray, asked: AskedCells, answers: Answers) -> np.ndarray:
    """Which components have more cells than equal answers may be found for."""
    sizes = np.bincount(component)
    row_of = np.zeros(sizes.size, dtype=np.int64)
    row_of[component] = asked.row_of_cell()
    not_given = np.maximum(asked.askings() - np.diff(answers.indptr), 0)
    return (sizes > 1) & (sizes > (_most_equal(answers) + not_given)[row_of])


def _most_equal(answers: Answers) -> np.ndarray:
    """How often the most frequent answer of each row was given."""
    rows = np.repeat(np.arange(answers.indptr.size - 1), np.diff(answers.indptr))
    is_new = np.append(True, (answers.values[1:] != answers.values[:-1]) | (rows[1:] != rows[:-1]))
    starts = np.flatnonzero(is_new)
    most = np.zeros(answers.indptr.size - 1, dtype=np.int64)
    np.maximum.at(most, rows[starts], np.diff(np.append(starts, rows.size)))
    return most
