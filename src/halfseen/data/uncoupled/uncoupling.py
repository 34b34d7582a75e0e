"""A coupled matrix taken apart as a survey would: pairs of seen cells are drawn in each row, and compared."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from halfseen.data.observed import Observed
from halfseen.data.synthetic import different
from halfseen.data.uncoupled.asking import Answers, AskedCells, Comparisons
from halfseen.data.uncoupled.reckoning import Collection, settled
from halfseen.errors import DataError

FEW = 2  # times as many pairs as wanted: few enough to look at all of them


def taken_apart(X: Observed, n_comparisons: int, rng: np.random.Generator, questions_are: str) -> Collection:
    """Who was asked, what was answered, and n_comparisons in each row or column, as `questions_are` says."""
    _check_plain(X)
    questions, respondents, values, shape = X.row_of_cell(), X.indices, X.values, X.shape
    labels = (X.row_labels, X.column_labels)
    if questions_are == "columns":
        order = X.columns.order
        questions, respondents, values = respondents[order], questions[order], values[order]
        shape, labels = shape[::-1], labels[::-1]
    asked = AskedCells.of(questions, respondents, shape)
    answers = Answers.of(questions, values.astype(np.float64), asked.n_questions)
    pairs = compared_pairs(asked.indptr, values, n_comparisons, rng)
    return settled(asked, answers, Comparisons.of(*pairs, asked.indptr), labels, left_out={})


def _check_plain(X: Observed) -> None:
    if X.firsts is not None or X.weights is not None:
        found = "weights" if X.firsts is None else "cells that were seen more than once"
        raise DataError(
            f"A matrix to be taken apart must have one value in each cell, and no weights. Found {found}. "
            'Drop the weights; merge such cells: observe(X, duplicates="mean").'
        )


class Compared(NamedTuple):
    """Comparisons by the row and the two cells, as they were drawn."""

    rows: np.ndarray
    higher: np.ndarray
    lower: np.ndarray


def compared_pairs(indptr: np.ndarray, values: np.ndarray, n_comparisons: int, rng: np.random.Generator) -> Compared:
    """min(n_comparisons, l (l - 1) / 2) different pairs in each row of l cells, by value; equal ones go both ways."""
    rows, first, second = _drawn_cells(indptr, n_comparisons, rng)
    is_higher = values[first] >= values[second]
    higher, lower = np.where(is_higher, first, second), np.where(is_higher, second, first)
    tied = values[first] == values[second]
    return Compared(np.append(rows, rows[tied]), np.append(higher, lower[tied]), np.append(lower, higher[tied]))


def _drawn_cells(indptr: np.ndarray, n_comparisons: int, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    sizes = np.diff(indptr).astype(np.int64)
    n_pairs = sizes * (sizes - 1) // 2
    wanted = np.minimum(n_pairs, n_comparisons)
    few = n_pairs <= FEW * wanted
    starts = np.append(0, np.cumsum(n_pairs))
    pairs = np.append(
        _chosen_of_all(starts, n_pairs * few, wanted, rng), _drawn_anew(starts, n_pairs, wanted * ~few, rng)
    )
    rows = np.searchsorted(starts, pairs, side="right") - 1
    first, second = _members(pairs - starts[rows])
    return rows, indptr[rows] + first, indptr[rows] + second


def _chosen_of_all(starts: np.ndarray, n_pairs: np.ndarray, wanted: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The pairs of the `wanted` smallest of random numbers, one for each of the n_pairs of a row."""
    rows = np.repeat(np.arange(n_pairs.size), n_pairs)
    before = np.append(0, np.cumsum(n_pairs))[rows]
    rank = np.arange(rows.size) - before  # 0, 1, ... in each row
    order = np.argsort((rows << 32) + rng.integers(0, 1 << 32, rows.size), kind="stable")  # row by row
    return (starts[rows] + rank)[order[rank < wanted[rows]]]


def _drawn_anew(starts: np.ndarray, n_pairs: np.ndarray, wanted: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """As many different pairs as `wanted` in each row: drawn, repetitions dropped, and those that lack drawn anew."""
    pairs = np.empty(0, dtype=np.int64)
    lacking = wanted
    while lacking.any():
        rows = np.repeat(np.arange(wanted.size), lacking)
        pairs = different(np.append(pairs, starts[rows] + rng.integers(0, n_pairs[rows])))
        lacking = wanted - np.diff(np.searchsorted(pairs, starts))
    return pairs


def _members(pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pair number second (second - 1) / 2 + first, 0 <= first < second, as (first, second)."""
    second = ((1 + np.sqrt(8.0 * pairs + 1)) / 2).astype(np.int64)
    second -= second * (second - 1) // 2 > pairs  # where the root was rounded
    second += second * (second + 1) // 2 <= pairs
    return pairs - second * (second - 1) // 2, second
