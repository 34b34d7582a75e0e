"""A coupled matrix taken apart as a survey would: pairs of seen cells are drawn in each row, and compared."""

from __future__ import annotations

from typing import Any

import numpy as np

from halfseen.data.uncoupled.collect import Answers, AskedCells, Comparisons, settle
from halfseen.errors import DataError
from halfseen.observed import Observed

FEW = 2  # times as many pairs as wanted: few enough to look at all of them


def taken_apart(X: Observed, n_comparisons: int, rng: np.random.Generator, questions_are: str) -> dict[str, Any]:
    """The fields of an `Uncoupled`: min(n_comparisons, l (l - 1) / 2) different pairs in each question of l cells,
    compared by value; equal ones go both ways."""
    if X.is_first_at_cell is not None or X.weights is not None:
        found = "weights" if X.is_first_at_cell is None else "cells that were seen more than once"
        raise DataError(
            f"A matrix to be taken apart must have one value in each cell, and no weights. Found {found}. "
            'Drop the weights; merge such cells: observe(X, duplicates="mean").'
        )
    questions, respondents, values, shape = X.row_of_cell(), X.indices, X.values, X.shape
    labels = (X.row_labels, X.column_labels)
    if questions_are == "columns":
        order = X.columns.order
        questions, respondents, values = respondents[order], questions[order], values[order]
        shape, labels = shape[::-1], labels[::-1]
    asked = AskedCells.of(questions, respondents, shape)
    answers = Answers.of(questions, values.astype(np.float64), shape[0])

    rows, first, second = _drawn_pairs(asked.indptr, n_comparisons, rng)
    is_higher, tied = values[first] >= values[second], values[first] == values[second]
    higher, lower = np.where(is_higher, first, second), np.where(is_higher, second, first)
    rows = np.append(rows, rows[tied])
    higher, lower = np.append(higher, lower[tied]), np.append(lower, higher[tied])
    return settle(asked, answers, Comparisons.of(rows, higher, lower, asked.indptr), labels)[0]


def _drawn_pairs(indptr: np.ndarray, n_comparisons: int, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """The rows and both cells of different pairs."""
    sizes = np.diff(indptr).astype(np.int64)
    n_pairs = sizes * (sizes - 1) // 2
    wanted = np.minimum(n_pairs, n_comparisons)
    few = n_pairs <= FEW * wanted
    starts = np.append(0, np.cumsum(n_pairs))

    # rows with few pairs: those of the smallest of random numbers, one for each pair
    rows = np.repeat(np.arange(sizes.size), n_pairs * few)
    rank = np.arange(rows.size) - np.append(0, np.cumsum(n_pairs * few))[rows]  # 0, 1, ... in each row
    order = np.argsort((rows << 32) + rng.integers(0, 1 << 32, rows.size), kind="stable")  # row by row
    chosen = (starts[rows] + rank)[order[rank < wanted[rows]]]

    # the others: pairs are drawn, repetitions dropped, and as many drawn again
    drawn, lacking = np.empty(0, dtype=np.int64), wanted * ~few
    while lacking.any():
        rows = np.repeat(np.arange(sizes.size), lacking)
        drawn = different(np.append(drawn, starts[rows] + rng.integers(0, n_pairs[rows])))
        lacking = wanted * ~few - np.diff(np.searchsorted(drawn, starts))

    pairs = np.append(chosen, drawn)
    rows = np.searchsorted(starts, pairs, side="right") - 1
    first, second = _members(pairs - starts[rows])
    return rows, indptr[rows] + first, indptr[rows] + second


def _members(pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pair number second (second - 1) / 2 + first, 0 <= first < second, as (first, second)."""
    second = ((1 + np.sqrt(8.0 * pairs + 1)) / 2).astype(np.int64)
    second -= second * (second - 1) // 2 > pairs  # where the root was rounded
    second += second * (second + 1) // 2 <= pairs
    return pairs - second * (second - 1) // 2, second


def different(numbers: np.ndarray) -> np.ndarray:
    """The distinct numbers, sorted in place; much faster than np.unique where most are in order already."""
    numbers.sort(kind="stable")
    return numbers[np.append(True, numbers[1:] != numbers[:-1])]
