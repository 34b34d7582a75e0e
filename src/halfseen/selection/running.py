"""All folds, some at a time."""

import warnings
from collections.abc import Sequence
from itertools import count
from threading import Event
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from halfseen.engines.threads import count_of
from halfseen.errors import DataWarning
from halfseen.estimators import watching
from halfseen.selection.judging import Judge
from halfseen.selection.walking import FALLING, Fold, Walk, walk


def all_walks(
    search: Any, models: Sequence[Any], ranks: Sequence[int], folds: Sequence[Fold], judge: Judge
) -> list[list[Walk]]:
    """The walk of every model (first) over the ranks of every fold (second).

    Threads, not processes: compiled loops leave them alone, and nothing need be copied. What a walk finds depends on
    its model and fold only, and not on the number of threads.
    """
    jobs = min(count_of(search.n_jobs), len(models) * len(folds))
    if jobs > 1:
        models = [clone(model).set_params(n_jobs=1) for model in models]
    steps, done, stopped = len(models) * len(folds) * len(ranks), count(1), Event()

    with watching.bar(search, steps, "score") as bar, warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # rows that lost all cells to a fold are no news
        warnings.simplefilter("ignore", ConvergenceWarning)  # told once, at the end

        def tell(score: float) -> None:
            place = next(done)
            if bar is not None:
                bar(place, score)
            if stopped.is_set():  # Ctrl-C reaches one thread only
                raise KeyboardInterrupt

        tasks = (
            delayed(walk)(model, ranks, fold, judge, bool(search.warm), tell) for model in models for fold in folds
        )
        try:
            walks = Parallel(jobs, require="sharedmem")(tasks)
        except KeyboardInterrupt:
            stopped.set()
            place = next(done)
            raise KeyboardInterrupt(
                f"The search was interrupted at fit {place} of {steps}; nothing of it is kept."
            ) from None
    return [walks[start : start + len(folds)] for start in range(0, len(walks), len(folds))]


def tell_of_unsettled(walks: Sequence[Sequence[Walk]], ranks: Sequence[int], stacklevel: int) -> None:
    """A warning if fits were not at their end."""
    unsettled = np.array([one.unsettled for of_model in walks for one in of_model])
    if unsettled.any():
        first = ranks[int(np.argmax(unsettled.any(axis=0)))]
        warnings.warn(
            "Fits should settle, else their scores say little of the rank. Found "
            f"{unsettled.sum()} of {unsettled.size} that stopped at max_iter, or by tol while the loss still fell by "
            f"more than {FALLING:.0%} in an iteration, the first with n_components={first}. "
            "Raise max_iter, lower tol, or set accelerate=True.",
            ConvergenceWarning,
            stacklevel=stacklevel,
        )
