"""One fold: fit rank after rank on its training cells, and judge each by the cells held out."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.base import clone

from halfseen.arrays import Array
from halfseen.data import Observed, k_folds
from halfseen.errors import DataError
from halfseen.estimators.leveled import LeveledMixin
from halfseen.result import Status
from halfseen.selection.growing import grown
from halfseen.selection.judging import Judge

#: A loss that an iteration still lowers by this part has not settled.
FALLING = 0.01


@dataclass(frozen=True)
class Fold:
    """Cells to learn from, cells to judge by, and the seed of what is random between them."""

    train: Observed
    test: Observed
    seed: int


@dataclass(frozen=True)
class Walk:
    """What was found at each rank of one fold."""

    scores: Array
    seconds: Array
    unsettled: Array
    """Whether the fit had to stop at max_iter, or tol stopped it while it was still getting better fast."""


def folds_of(observed: Observed, n_folds: int, estimator: Any, random: np.random.RandomState) -> Iterator[Fold]:
    """The seen cells in folds; the only cells of a level are never held out, since no threshold could be learned."""
    numbered = replace(observed, values=np.arange(observed.nnz, dtype=np.float64), level_names=None)
    for _, held in k_folds(numbered, n_folds, random):
        is_test = np.zeros(observed.nnz, dtype=bool)
        is_test[held.values.astype(np.intp)] = True
        if isinstance(estimator, LeveledMixin):
            is_test &= np.isin(observed.values, observed.values[~is_test])
        if not is_test.any():
            raise DataError(
                f"Every fold must have a cell to judge by. Found none whose level is in other folds as well, among "
                f"{observed.nnz} cells. Make fewer folds, or get more cells."
            )
        train, test = observed.select_cells(~is_test), observed.select_cells(is_test)
        yield Fold(train, test, int(random.randint(2**31)))


def walk(
    estimator: Any, ranks: Sequence[int], fold: Fold, judge: Judge, warm: bool, tell: Callable[[float], None]
) -> Walk:
    """Fit by ascending rank, each from the factors of the one before if `warm`; `tell` hears every score."""
    random = np.random.RandomState(fold.seed)
    scores, seconds, unsettled = np.empty(len(ranks)), np.empty(len(ranks)), np.zeros(len(ranks), dtype=bool)
    model: Any = None
    for place, rank in enumerate(ranks):
        started = perf_counter()
        start = grown(model, rank, fold.train, random) if warm and model is not None else None
        model = clone(estimator).set_params(n_components=rank, random_state=fold.seed)
        model.set_params(**({} if start is None else {"init": start})).fit(fold.train)
        seconds[place] = perf_counter() - started
        unsettled[place] = _is_unsettled(model, fold.train.nnz)
        scores[place] = _finite(judge(model, fold.train, fold.test), rank)
        tell(scores[place])
    return Walk(scores, seconds, unsettled)


def _is_unsettled(model: Any, cells: int) -> bool:
    """Whether the fit stopped at max_iter, or while its loss still fell by much of what was left.

    The latter may be where tol is a share of the loss at the start. With more parameters than cells nothing need be
    left at all, and a loss that falls for ever says nothing.
    """
    if model.tol == 0:  # so many iterations are wished for
        return False
    if model.status_ is Status.CONVERGED and model.n_iter_ > 1 and model.W_.size + model.H_.size < cells:
        before, last = model.trace_["objective"][-2:]
        return bool(before - last > FALLING * abs(last))
    return model.status_ is Status.MAX_ITER


def _finite(score: float, rank: int) -> float:
    if not np.isfinite(score):
        raise DataError(
            f"Scores must be finite to be compared. Found {score} with n_components={rank}. Choose another metric, or "
            "see how that fit ends."
        )
    return score
