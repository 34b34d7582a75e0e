"""Multiplicative updates: every entry is multiplied by the ratio of its pulls to its pushes.

    F <- F * (P / (Q + l1 + l2 F))^g

with g = 1 / (highest power of F that pushes - lowest power that pulls) in the function that majorises the loss. This
is the largest exponent for which the loss is known never to rise (Févotte & Idier 2011; Yang & Oja 2011): 1 for betas
from 1 to 2, 1 / (2 - beta) below, 1 / (beta - 1) above, and less where an L2 penalty raises the highest power.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np

from halfseen.arrays import Array, namespace
from halfseen.engines import Side
from halfseen.likelihoods import Likelihood
from halfseen.solvers.base import ENTRIES, Penalty, Solver, State, flush_to_zero, stored_as
from halfseen.solvers.problem import Problem


@stored_as(mean=ENTRIES)
class PointFactor(NamedTuple):
    """A factor as a point estimate."""

    mean: Any
    """The estimates, one row per row or column of the matrix."""

    @property
    def plug_in(self) -> Any:
        """The array that enters the dot product x: the estimates themselves."""
        return self.mean

    @property
    def extrapolated(self) -> tuple[str, ...]:
        """The names of the arrays that the next epoch starts from."""
        return ("mean",)


@dataclass(frozen=True, eq=False)
class Multiplicative(Solver[PointFactor]):
    """Alternating: x is recomputed between the rows' half-step and the columns'.

    Parameters
    ----------
    penalty : Penalty, default=Penalty()
        Penalty on both factors.
    eager : float, default=None
        An exponent to try first; an epoch that raises the loss is repeated with the safe one.
    """

    penalty: Penalty = field(default_factory=Penalty)
    eager: float | None = None

    name = "multiplicative"
    state: ClassVar[Mapping[str, Any]] = {"penalty": Penalty, "eager": float | None}
    minimizes = True

    def check(self, likelihood: Likelihood) -> None:
        self._require(likelihood.powers is not None, likelihood, "of values that non-negative factors can have")

    def exponent(self, likelihood: Likelihood) -> float:
        """The largest exponent under which the loss never rises."""
        pull_power, push_power = likelihood.powers or (0.0, 1.0)
        return 1.0 / (max(push_power, self.penalty.power) - pull_power)

    def random(self, problem: Problem, size: tuple[int, int], random: np.random.RandomState) -> Array:
        """Uniform on (0, 1), scaled so that x has the mean of y."""
        scale = 2.0 * np.sqrt(problem.likelihood.start(problem.cells.observed) / size[1])
        return random.uniform(size=size) * (scale or 1.0)

    def init_state(self, problem: Problem, W: Array, H: Array) -> State[PointFactor]:
        rows, columns = self.init_factor(W), self.init_factor(H)
        return self._state(problem, rows, columns, problem.engine.sddmm(problem.cells, W, H))

    def state_at(self, problem: Problem, rows: PointFactor, columns: PointFactor) -> State[PointFactor]:
        x = problem.engine.sddmm(problem.cells, rows.mean, columns.mean)
        return State(rows, columns, problem.pull_push(x), np.inf, problem.likelihood)

    def init_factor(self, factor: Array) -> PointFactor:
        return PointFactor(factor)

    def epoch(self, problem: Problem, state: State[PointFactor]) -> State[PointFactor]:
        problem = problem.with_likelihood(state.likelihood)
        safe = self.exponent(problem.likelihood)
        if self.eager is None:
            return self._epoch(problem, state, safe, spare=state.cells)
        new = self._epoch(problem, state, self.eager)
        return new if new.objective <= state.objective else self._epoch(problem, state, safe)

    def _epoch(
        self, problem: Problem, state: State[PointFactor], exponent: float, spare: tuple[Any, Any] = (None, None)
    ) -> State[PointFactor]:
        """Update both factors; `spare` are two cell arrays that may be overwritten once the rows are updated."""
        sddmm = problem.engine.sddmm
        rows = self._updated(problem, state.rows, state.columns, Side.ROWS, state.cells, exponent)
        x = sddmm(problem.cells, rows.mean, state.columns.mean, into=spare[0])
        pull, push = problem.pull_push(x, spare[1])
        columns = self._updated(problem, state.columns, rows, Side.COLUMNS, (pull, push), exponent)
        x = sddmm(problem.cells, rows.mean, columns.mean, into=pull)
        if problem.likelihood.learns:
            problem = problem.update_parameters(problem.sums_of_counts(x), rows.mean, columns.mean, x)
        return self._state(problem, rows, columns, x, push)

    def half_step(self, problem: Problem, near: PointFactor, far: PointFactor, side: Side, x: Any) -> PointFactor:
        return self._updated(problem, near, far, side, problem.pull_push(x), self.exponent(problem.likelihood))

    def _updated(
        self, problem: Problem, near: PointFactor, far: PointFactor, side: Side, cells: tuple[Any, Any], exponent: float
    ) -> PointFactor:
        F, G = near.mean, far.mean
        P, Q = problem.pulls_and_pushes(*cells, F, G, side)
        penalty = self.penalty

        def update(F: Any, P: Any, Q: Any) -> Any:
            xp = namespace(F)
            Q = Q + penalty.push(F) if penalty else Q
            pushed = Q > 0
            # Where nothing pushes nothing pulls either: no observed cell depends on the entry, and it stays.
            ratio = P / Q if xp.all(pushed) else xp.where(pushed, P / xp.where(pushed, Q, 1.0), 1.0)
            return flush_to_zero(F * (ratio if exponent == 1.0 else ratio**exponent))

        xp = namespace(F)
        return PointFactor(problem.engine.map(update, F, P, xp.broadcast_to(Q, F.shape), into=(P,)))

    def converged(self, first: float, previous: float, current: float, tol: float) -> bool:
        """(previous - current) / loss at the start <= tol, the rule of the A1GM paper's KL-WNMF and of scikit-learn."""
        return previous - current <= tol * abs(first)

    def default_factor(self, average: Array, count: int, side: Side) -> PointFactor:
        return PointFactor(np.repeat(average[None], count, axis=0))

    def _state(
        self, problem: Problem, rows: PointFactor, columns: PointFactor, x: Any, spare: Any | None = None
    ) -> State[PointFactor]:
        """Pulls, pushes and the penalised loss at x, which is overwritten, as is `spare`."""
        pull, push, cost = problem.pull_push_cost(x, spare)
        loss = cost + problem.cost_of_zeros(rows.mean, columns.mean)
        if self.penalty:
            loss += sum(problem.engine.sum(self.penalty.cost, factor.mean) for factor in (rows, columns))
        return State(rows, columns, (pull, push), loss, problem.likelihood)
