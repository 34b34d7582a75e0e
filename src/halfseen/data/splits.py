"""Seen cells parted into those to learn from and those to test by."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from halfseen.checks import between, check_parameters, seed, whole
from halfseen.data.observed import Observed
from halfseen.data.readers import observe
from halfseen.errors import DataError, ParameterError


def split_cells(
    X: Any, test_size: float = 0.2, random_state: Any = None, *, unseen: str | None = None, levels: Any = "ordered"
) -> tuple[Observed, Observed]:
    """Part the seen cells into training and test cells, each set of cells equally likely.

    Both parts have all rows and columns of X, and their labels and weights, so that what was fitted on one is
    understood by the other. Nothing is said about single rows: one with few cells may have all of them in test.

    Parameters
    ----------
    X : whatever `observe` takes. Values of a cell that was seen several times stay together.
    test_size : the share of the cells that are for test, rounded to whole cells, or their number.
    random_state : None, a whole number or a RandomState: the same number parts the same cells alike.
    unseen : what an unseen cell means, as in `observe`; None: as an `Observed` has it, else "missing". Say "zero" for
        dense arrays in which 0 is no more than an unseen cell: else it is a value, and may be drawn for test.
    levels : the texts among the values from the lowest to the highest; "ordered" takes those of ordered categories.

    Returns
    -------
    train, test : two `Observed`.

    Examples
    --------
    >>> import numpy as np, halfseen as hs
    >>> train, test = hs.data.split_cells(np.ones((10, 10)), test_size=0.2, random_state=0)
    >>> train.nnz, test.nnz, train.shape == test.shape
    (80, 20, True)
    """
    observed = observe(X, unseen=unseen, levels=levels)
    place_of_cell, places = _places(observed)
    chosen = drawn_for_test(places, test_size, random_state)
    return _parted(observed, chosen if place_of_cell is None else chosen[place_of_cell])


def drawn_for_test(places: int, test_size: float, random_state: Any) -> np.ndarray:
    """Which of so many places are for test."""
    chosen = np.zeros(places, bool)
    chosen[_shuffled(places, random_state)[: _test_count(test_size, places)]] = True
    return chosen


def k_folds(
    X: Any, n_folds: int = 5, random_state: Any = None, *, unseen: str | None = None, levels: Any = "ordered"
) -> Iterator[tuple[Observed, Observed]]:
    """As `split_cells`, `n_folds` times over: every cell is a test cell once, in one of folds of equal size.

    Parameters
    ----------
    X, random_state, unseen, levels : as in `split_cells`.
    n_folds : into how many folds the cells are parted.

    Returns
    -------
    An iterator over `n_folds` pairs (train, test).
    """
    check_parameters({"n_folds": n_folds}, {"n_folds": whole(2)})
    observed = observe(X, unseen=unseen, levels=levels)
    place_of_cell, places = _places(observed)
    if places < n_folds:
        raise DataError(f"Every fold must have a cell. Found {places} cells for {n_folds} folds. Make fewer folds.")
    fold = np.empty(places, np.int32)
    fold[_shuffled(places, random_state)] = np.arange(places) % n_folds
    fold = fold if place_of_cell is None else fold[place_of_cell]
    return (_parted(observed, fold == test) for test in range(n_folds))


def _places(observed: Observed) -> tuple[np.ndarray | None, int]:
    """The number of the place of each cell, None if no place was seen twice, and how many places there are."""
    if observed.firsts is None:
        return None, observed.nnz
    place_of_cell = np.cumsum(observed.firsts, dtype=np.int64) - 1
    return place_of_cell, int(place_of_cell[-1]) + 1


def _shuffled(count: int, random_state: Any) -> np.ndarray:
    from sklearn.utils import check_random_state

    check_parameters({"random_state": random_state}, {"random_state": seed()})
    shuffled: np.ndarray = check_random_state(random_state).permutation(count)
    return shuffled


def _test_count(test_size: Any, cells: int) -> int:
    if whole(1)(test_size) is None:
        count = int(test_size)
    elif between(0, 1)(test_size) is None:
        count = round(cells * test_size)
    else:
        raise ParameterError(
            "test_size must be a share between 0 and 1, both excluded, or a whole number of cells of at least 1. "
            f"Found {test_size!r}. Use 0.2 for a fifth of the cells."
        )
    if not 0 < count < cells:
        raise DataError(
            f"Training and test must have a cell each. Found {cells} seen, of which test_size={test_size!r} makes "
            f"{count} test cells. Choose another test_size{'' if cells > 1 else ', or get more cells'}."
        )
    return count


def _parted(observed: Observed, is_test: np.ndarray) -> tuple[Observed, Observed]:
    return observed.select_cells(~is_test), observed.select_cells(is_test)
