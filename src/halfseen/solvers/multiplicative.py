"""Multiplicative updates: every entry grows or shrinks by the ratio of its pulls to its pushes.

    F <- F * (P / (Q + l1 + l2 F))^g

with g = 1 / (highest power of F that pushes - lowest power that pulls) in the function that majorises the loss. This
is the largest exponent for which the loss is known never to rise (Févotte & Idier 2011; Yang & Oja 2011): 1 for betas
from 1 to 2, 1 / (2 - beta) below, 1 / (beta - 1) above, and less where an L2 penalty raises the highest power.
"""

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
    """The numbers, a row for each row or column of the matrix."""

    @property
    def linked(self) -> Any:
        """What x is made of: the numbers themselves."""
        return self.mean

    @property
    def starts_from(self) -> tuple[str, ...]:
        """The names of the arrays that the next epoch starts from."""
        return ("mean",)


class Multiplicative(Solver[PointFactor]):
    """Alternating: x is taken anew between the rows' half-step and the columns'.

    penalty : on both factors; None: none. eager : an exponent to try first, before the one that is safe.
    """

    name = "multiplicative"
    falls = True

    def __init__(self, penalty: Penalty | None = None, eager: float | None = None) -> None:
        """`eager` is an exponent to try first; an epoch that raises the loss is done again with the safe one."""
        self.penalty = penalty or Penalty()
        self.eager = eager

    def check(self, likelihood: Likelihood) -> None:
        self._needs(likelihood.powers is not None, likelihood, "of values that non-negative factors can have")

    def exponent(self, likelihood: Likelihood) -> float:
        """The largest exponent under which the loss never rises."""
        pull_power, push_power = likelihood.powers or (0.0, 1.0)
        return 1.0 / (max(push_power, self.penalty.power) - pull_power)

    def random(self, task: Task, size: tuple[int, int], random: np.random.RandomState) -> Array:
        """Uniform on (0, 1), scaled so that x has the mean of y."""
        scale = 2.0 * np.sqrt(task.likelihood.start(task.cells.observed) / size[1])
        return random.uniform(size=size) * (scale or 1.0)

    def begin(self, task: Task, W: Array, H: Array) -> State[PointFactor]:
        rows, columns = self.begin_factor(W), self.begin_factor(H)
        return self._between(task, rows, columns, task.engine.dots(task.cells, W, H))

    def at(self, task: Task, rows: PointFactor, columns: PointFactor) -> State[PointFactor]:
        x = task.engine.dots(task.cells, rows.mean, columns.mean)
        return State(rows, columns, task.pull_push(x), np.inf, task.likelihood)

    def begin_factor(self, factor: Array) -> PointFactor:
        return PointFactor(factor)

    def epoch(self, task: Task, state: State[PointFactor]) -> State[PointFactor]:
        task = task.under(state.likelihood)
        safe = self.exponent(task.likelihood)
        if self.eager is None:
            return self._epoch(task, state, safe, spare=state.cells)
        new = self._epoch(task, state, self.eager)
        return new if new.objective <= state.objective else self._epoch(task, state, safe)

    def _epoch(
        self, task: Task, state: State[PointFactor], exponent: float, spare: tuple[Any, Any] = (None, None)
    ) -> State[PointFactor]:
        """Both factors moved; `spare` are two cell arrays that may be written over once the rows have moved."""
        dots = task.engine.dots
        rows = self._moved(task, state.rows, state.columns, Side.ROWS, state.cells, exponent)
        x = dots(task.cells, rows.mean, state.columns.mean, into=spare[0])
        pull, push = task.pull_push(x, spare[1])
        columns = self._moved(task, state.columns, rows, Side.COLUMNS, (pull, push), exponent)
        x = dots(task.cells, rows.mean, columns.mean, into=pull)
        if task.likelihood.learns:
            task = task.refitted(task.sums_of_counts(x), rows.mean, columns.mean, x)
        return self._between(task, rows, columns, x, push)

    def half_step(self, task: Task, near: PointFactor, far: PointFactor, side: Side, x: Any) -> PointFactor:
        return self._moved(task, near, far, side, task.pull_push(x), self.exponent(task.likelihood))

    def _moved(
        self, task: Task, near: PointFactor, far: PointFactor, side: Side, cells: tuple[Any, Any], exponent: float
    ) -> PointFactor:
        F, G = near.mean, far.mean
        P, Q = task.pulls_and_pushes(*cells, F, G, side)
        penalty = self.penalty

        def move(F: Any, P: Any, Q: Any) -> Any:
            xp = namespace(F)
            Q = Q + penalty.push(F) if penalty else Q
            pushed = Q > 0
            # Where nothing pushes nothing pulls either: the entry says nothing about a seen cell, and stays.
            ratio = P / Q if xp.all(pushed) else xp.where(pushed, P / xp.where(pushed, Q, 1.0), 1.0)
            return positive(F * (ratio if exponent == 1.0 else ratio**exponent))

        xp = namespace(F)
        return PointFactor(task.engine.each(move, F, P, xp.broadcast_to(Q, F.shape), into=(P,)))

    def converged(self, first: float, previous: float, current: float, tol: float) -> bool:
        """(previous - current) / loss at the start <= tol, the rule of the A1GM paper's KL-WNMF and of scikit-learn."""
        return previous - current <= tol * abs(first)

    def blank(self, average: Array, count: int, side: Side) -> PointFactor:
        return PointFactor(np.repeat(average[None], count, axis=0))

    def _between(
        self, task: Task, rows: PointFactor, columns: PointFactor, x: Any, spare: Any | None = None
    ) -> State[PointFactor]:
        """Pulls, pushes and the penalised loss at x, which is used up, as is `spare`."""
        pull, push, cost = task.pull_push_cost(x, spare)
        loss = cost + task.cost_of_zeros(rows.mean, columns.mean)
        if self.penalty:
            loss += sum(task.engine.total(self.penalty.cost, factor.mean) for factor in (rows, columns))
        return State(rows, columns, (pull, push), loss, task.likelihood)
