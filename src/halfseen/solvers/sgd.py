"""Stochastic gradient descent: mini-batches of cells in random order, with AdaGrad's steps by rows.

An epoch visits every observed cell once. Slopes are computed for a batch at once, at the factors before it; the cells
of the batch then update their rows one after another. The likelihood's parameters are updated once per batch. An epoch
after which the loss is higher is repeated with half the learning rate, so the loss never rises.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from halfseen.arrays import Array
from halfseen.engines import AdagradState, Side
from halfseen.solvers.base import State
from halfseen.solvers.multiplicative import PointFactor
from halfseen.solvers.newton import Newton, Ridge
from halfseen.solvers.problem import Problem

#: Attempts at an epoch, each with half the learning rate, before it is given up.
_MAX_HALVINGS = 6
#: Small data have smaller batches: an epoch should make many steps.
_MIN_BATCHES = 50


class SGD(Newton):
    """Stochastic epochs; folding in and the loss are those of Newton's method, which has the same optimum.

    Parameters
    ----------
    ridge : Ridge
        Penalty on the factors.
    learning_rate : float
        Length of the first step.
    batch_size : int
        Largest number of cells per batch.
    random : RandomState
        Draws the order of cells.
    """

    name = "stochastic"
    needs = frozenset({"newton", "sgd", "numpy"})

    def __init__(self, ridge: Ridge, learning_rate: float, batch_size: int, random: np.random.RandomState) -> None:
        super().__init__(ridge)
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self._random = random

    def init_state(self, problem: Problem, W: Array, H: Array) -> State[PointFactor]:
        n, m = problem.cells.observed.shape
        likelihood: Any = problem.likelihood
        adagrad = AdagradState(self.learning_rate, np.zeros(n), np.zeros(m), np.zeros(likelihood.parameters.size))
        return self._state_with(problem, PointFactor(W), PointFactor(H), adagrad)

    def epoch(
        self, problem: Problem, state: State[PointFactor], *, for_next: bool = True
    ) -> State[PointFactor]:  # fmt: skip
        problem, rate = problem.with_likelihood(state.likelihood), state.kept.learning_rate
        for _ in range(_MAX_HALVINGS):
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # what is not finite is repeated
                new = self._epoch(problem, state, rate)
            if new.objective <= state.objective:
                return new
            rate /= 2.0
        return state

    def _epoch(self, problem: Problem, state: State[PointFactor], rate: float) -> State[PointFactor]:
        engine, cells, observed = problem.engine, problem.cells, problem.cells.observed
        W, H = state.rows.mean.copy(), state.columns.mean.copy()
        adagrad = AdagradState(rate, *(sums.copy() for sums in state.kept[1:]))
        counts = (observed.seen_per_row(), observed.seen_per_column())
        penalties = (self.ridge.penalty(W.shape[1], Side.ROWS), self.ridge.penalty(H.shape[1], Side.COLUMNS))
        order = self._random.permutation(observed.nnz)
        size = max(1, min(self.batch_size, observed.nnz // _MIN_BATCHES))
        for first in range(0, observed.nnz, size):
            which = order[first : first + size]
            x = engine.sddmm_at(cells, which, W, H)
            weight = None if cells.weights is None else cells.weights[which]
            smooth: Any = problem.likelihood
            slope, gradient = smooth.gradients(cells.y[which], x, weight)
            engine.adagrad_step(cells, which, slope, W, H, adagrad, counts, penalties)
            if gradient.size:
                likelihood: Any = problem.likelihood
                sums = adagrad.parameters
                sums += gradient**2
                parameters = likelihood.parameters - rate * gradient / np.sqrt(np.maximum(sums, 1e-300))
                problem = problem.with_likelihood(likelihood.with_parameters(parameters))
        return self._state_with(problem, PointFactor(W), PointFactor(H), adagrad)

    def _state_with(
        self, problem: Problem, rows: PointFactor, columns: PointFactor, adagrad: AdagradState
    ) -> State[PointFactor]:
        x = problem.engine.sddmm(problem.cells, rows.mean, columns.mean)
        return replace(self._state(problem, rows, columns, x, problem.costs(x)), kept=adagrad)
