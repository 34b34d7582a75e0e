"""Stochastic gradient descent: a few cells at a time, in random order, with AdaGrad's steps by rows.

An epoch visits every seen cell once. Slopes are taken for a batch at once, at the factors before it; the cells of the
batch then move their rows one after another. The likelihood's own parameters move once a batch. An epoch after which
the loss is higher is done again with half the rate, so the loss never rises.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from halfseen.arrays import Array, namespace
from halfseen.engines import Descent, Side
from halfseen.solvers.base import State
from halfseen.solvers.multiplicative import PointFactor
from halfseen.solvers.newton import Newton
from halfseen.solvers.ridge import Ridge
from halfseen.solvers.task import Task

#: So often the rate is halved before an epoch is given up.
_HALVINGS = 6
#: Small data have smaller batches: an epoch should go many ways.
_FEWEST_BATCHES = 50


@dataclass(frozen=True)
class Past:
    """The squared slopes so far: of each row, each column and each parameter; and the rate in force."""

    rows: Array
    columns: Array
    parameters: Array
    rate: float


class Stochastic(Newton):
    """Epochs by single cells; folding in and the loss are those of Newton's method, which has the same optimum."""

    name = "stochastic"

    def __init__(self, ridge: Ridge, rate: float, batch: int, random: np.random.RandomState) -> None:
        super().__init__(ridge)
        self.rate = rate
        self.batch = batch
        self._random = random

    def begin(self, task: Task, W: Array, H: Array) -> State[PointFactor]:
        n, m = task.cells.observed.shape
        past = Past(np.zeros(n), np.zeros(m), np.zeros(task.likelihood.parameters.size), self.rate)  # type: ignore[attr-defined]
        return self._ended(task, PointFactor(W), PointFactor(H), past)

    def epoch(self, task: Task, state: State[PointFactor]) -> State[PointFactor]:
        task, rate = task.under(state.likelihood), state.cells.rate
        for _ in range(_HALVINGS):
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # what is not finite is done again
                new = self._epoch(task, state, rate)
            if new.objective <= state.objective:
                return new
            rate /= 2.0
        return state

    def _epoch(self, task: Task, state: State[PointFactor], rate: float) -> State[PointFactor]:
        engine, past = task.engine, state.cells
        xp = namespace(state.rows.mean)
        W, H = xp.asarray(state.rows.mean, copy=True), xp.asarray(state.columns.mean, copy=True)
        observed = task.cells.observed
        descent = Descent(
            rate,
            (past.rows.copy(), past.columns.copy()),
            (observed.seen_per_row(), observed.seen_per_column()),
            (self.ridge.pulled(W.shape[1], Side.ROWS), self.ridge.pulled(H.shape[1], Side.COLUMNS)),
        )
        of_parameters = past.parameters.copy()
        order = self._random.permutation(observed.nnz)
        size = max(1, min(self.batch, observed.nnz // _FEWEST_BATCHES))
        for first in range(0, observed.nnz, size):
            which = order[first : first + size]
            x = engine.dots_at(task.cells, which, W, H)
            slope, gradient = task.descent_at(which, x)
            engine.descend(task.cells, which, slope, W, H, descent)
            task = _parameters_moved(task, gradient, of_parameters, rate)
        rows, columns = descent.past
        return self._ended(task, PointFactor(W), PointFactor(H), Past(rows, columns, of_parameters, rate))

    def _ended(self, task: Task, rows: PointFactor, columns: PointFactor, past: Past) -> State[PointFactor]:
        x = task.engine.dots(task.cells, rows.mean, columns.mean)
        return replace(self._state(task, rows, columns, x, task.costs(x)), cells=past)


def _parameters_moved(task: Task, gradient: Array, past: Array, rate: float) -> Task:
    """The likelihood's own parameters after a step down the slope of a batch; `past` is added to."""
    if not past.size:
        return task
    likelihood: Any = task.likelihood
    past += gradient**2
    return task.under(likelihood.at(likelihood.parameters - rate * gradient / np.sqrt(np.maximum(past, 1e-300))))
