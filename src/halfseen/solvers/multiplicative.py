"""Multiplicative updates: every entry grows or shrinks by the ratio of its pulls to its pushes.

    F <- F * (P / (Q + l1 + l2 F))^g

with g = 1 / (highest power of F that pushes - lowest power that pulls) in the function that majorises the loss. This
is the largest exponent for which the loss is known never to rise (Févotte & Idier 2011; Yang & Oja 2011): 1 for betas
from 1 to 2, 1 / (2 - beta) below, 1 / (beta - 1) above, and less where an L2 penalty raises the highest power.
"""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from halfseen.arrays import Array, namespace
from halfseen.engines import Side
from halfseen.likelihoods import Likelihood
from halfseen.priors import Penalty
from halfseen.solvers.base import Solver, State, positive
from halfseen.solvers.task import Task


class PointFactor(NamedTuple):
    """A factor known as single numbers."""

    mean: Any

    @property
    def linked(self) -> Any:
        return self.mean


class Multiplicative(Solver[PointFactor]):
    """Alternating: x is taken anew between the rows' half-step and the columns'."""

    name = "multiplicative"
    falls = True

    def __init__(self, penalty: Penalty | None = None, eager: float | None = None) -> None:
        """`eager` is an exponent to try first; an epoch that raises the loss is done again with the safe one."""
        self.penalty = penalty or Penalty()
        self.eager = eager

    def exponent(self, likelihood: Likelihood) -> float:
        """The largest exponent under which the loss never rises."""
        pull_power, push_power = likelihood.powers
        return 1.0 / (max(push_power, self.penalty.power) - pull_power)

    def random(self, task: Task, size: tuple[int, int], random: np.random.RandomState) -> Array:
        """Uniform on (0, 1), scaled so that x has the mean of y."""
        scale = 2.0 * np.sqrt(task.likelihood.start(task.cells.observed) / size[1])
        return random.uniform(size=size) * (scale or 1.0)

    def begin(self, task: Task, W: Array, H: Array) -> State[PointFactor]:
        return self._state(task, self.begin_factor(W), self.begin_factor(H), task.engine.dots(task.cells, W, H))

    def begin_factor(self, factor: Array) -> PointFactor:
        return PointFactor(factor)

    def epoch(self, task: Task, state: State[PointFactor]) -> State[PointFactor]:
        task = task.under(state.likelihood)
        safe = self.exponent(task.likelihood)
        if self.eager is None:
            return self._epoch(task, state, safe)
        new = self._epoch(task, state, self.eager)
        if new.objective <= state.objective:
            return new
        x = task.engine.dots(task.cells, state.rows.mean, state.columns.mean, into=new.x)
        return self._epoch(task, replace(state, x=x), safe)

    def _epoch(self, task: Task, state: State[PointFactor], exponent: float) -> State[PointFactor]:
        rows = self._moved(task, state.rows, state.columns, Side.ROWS, state.x, exponent)
        x = task.engine.dots(task.cells, rows.mean, state.columns.mean, into=state.x)
        columns = self._moved(task, state.columns, rows, Side.COLUMNS, x, exponent)
        x = task.engine.dots(task.cells, rows.mean, columns.mean, into=x)
        if task.likelihood.learns:
            task = task.refitted(task.counts(x), x, rows.mean, columns.mean)
        return self._state(task, rows, columns, x)

    def half_step(self, task: Task, near: PointFactor, far: PointFactor, side: Side, x: Any) -> PointFactor:
        return self._moved(task, near, far, side, x, self.exponent(task.likelihood))

    def _moved(
        self, task: Task, near: PointFactor, far: PointFactor, side: Side, x: Any, exponent: float
    ) -> PointFactor:
        F, G = near.mean, far.mean
        pull, push = task.pull_push(x)
        P = task.engine.spread(task.cells, pull, G, side)
        Q = task.pushes(push, F, G, side)
        penalty = self.penalty

        def move(F: Any, P: Any, Q: Any) -> Any:
            xp = namespace(F)
            Q = Q + penalty.push(F) if penalty else Q
            pushed = Q > 0
            # Where nothing pushes nothing pulls either: the entry says nothing about a seen cell, and stays.
            ratio = xp.where(pushed, P / xp.where(pushed, Q, 1.0), 1.0)
            return positive(F * (ratio if exponent == 1.0 else ratio**exponent))

        xp = namespace(F)
        return PointFactor(task.engine.each(move, F, P, xp.broadcast_to(Q, F.shape), into=(P,)))

    def converged(self, first: float, previous: float, current: float, tol: float) -> bool:
        """(previous - current) / loss at the start <= tol, the rule of the A1GM paper's KL-WNMF and of scikit-learn."""
        return previous - current <= tol * abs(first)

    def blank(self, average: Array, count: int, side: Side) -> PointFactor:
        return PointFactor(np.repeat(average[None], count, axis=0))

    def _state(self, task: Task, rows: PointFactor, columns: PointFactor, x: Any) -> State[PointFactor]:
        loss = task.divergence(x, rows.mean, columns.mean)
        if self.penalty:
            loss += sum(task.engine.total(self.penalty.cost, factor.mean) for factor in (rows, columns))
        return State(rows, columns, x, loss, task.likelihood)
