"""Multiplicative updates: every entry is multiplied by the ratio of its pulls to its pushes.

    F <- F * (P / (Q + l1 + l2 F))^g

with g = 1 / (highest power of F that pushes - lowest power that pulls) in the function that majorises the loss. This
is the largest exponent for which the loss is known never to rise (Févotte & Idier 2011; Yang & Oja 2011): 1 for betas
from 1 to 2, 1 / (2 - beta) below, 1 / (beta - 1) above, and less where an L2 penalty raises the highest power.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from halfseen.arrays import Array, namespace
from halfseen.engines import Side
from halfseen.likelihoods import Likelihood, rules
from halfseen.likelihoods.rules import Terms
from halfseen.solvers.base import ENTRIES, ColumnPenalty, Penalty, Solver, State, flush_to_zero, stored_as
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
        return self._state(problem, self.init_factor(W), self.init_factor(H))

    def state_at(self, problem: Problem, rows: PointFactor, columns: PointFactor) -> State[PointFactor]:
        return State(rows, columns, None, np.inf, problem.likelihood)

    def init_factor(self, factor: Array) -> PointFactor:
        return PointFactor(factor)

    def epoch(
        self, problem: Problem, state: State[PointFactor], *, for_next: bool = True
    ) -> State[PointFactor]:  # fmt: skip
        problem = problem.with_likelihood(state.likelihood)
        safe = self.exponent(problem.likelihood)
        if self.eager is None:
            return self._epoch(problem, state, safe, for_next)
        if state.kept is None:  # the rows' sums may be needed twice
            state = replace(state, kept=problem.pulls_and_pushes(state.rows.mean, state.columns.mean, Side.ROWS)[:2])
        new = self._epoch(problem, state, self.eager, for_next)
        return new if new.objective <= state.objective else self._epoch(problem, state, safe, for_next)

    def _epoch(
        self, problem: Problem, state: State[PointFactor], exponent: float, for_next: bool
    ) -> State[PointFactor]:
        """Update both factors, then the likelihood's parameters."""
        rows = self._updated(problem, state.rows, state.columns, Side.ROWS, exponent, state.kept)
        columns = self._updated(problem, state.columns, rows, Side.COLUMNS, exponent)
        likelihood: Any = problem.likelihood
        if likelihood.learns:
            rule = rules.counts_and_means if likelihood.learns_from_means else rules.counts
            totals = problem.sweep(rule, rows.mean, columns.mean).totals
            (sums,) = problem.engine.fetch(problem.unseen_first(totals, rows.mean, columns.mean))
            unseen, of_counts, of_means = np.split(sums, [1, 1 + likelihood.n_count_sums])
            problem = problem.refit(of_counts, np.append(unseen, of_means))
        return self._state(problem, rows, columns, for_next)

    def half_step(self, problem: Problem, near: PointFactor, far: PointFactor, side: Side) -> PointFactor:
        return self._updated(problem, near, far, side, self.exponent(problem.likelihood))

    def _updated(
        self, problem: Problem, near: PointFactor, far: PointFactor, side: Side, exponent: float, sums: Any = None
    ) -> PointFactor:
        """A side after its step; `sums` are its pulls and pushes, if they are known."""
        P, Q = problem.pulls_and_pushes(near.mean, far.mean, side)[:2] if sums is None else sums
        row, Q = (Q, None) if Q.ndim == 1 else (None, Q)
        penalty = self.penalty
        if side is Side.COLUMNS and (l2 := self._l2_of_columns(problem, near.mean)) is not None:
            (Q,), _ = problem.map(pushed_by_columns, row, near.mean, Q, l2, side=side)
            row, penalty = None, Penalty(penalty.l1)
        arrays, _ = problem.map(multiplied, (penalty, exponent, row), near.mean, P, Q, side=side)
        return PointFactor(arrays[0])

    def _l2_of_columns(self, problem: Problem, H: Any) -> Any:
        """l2 of every column, as a column vector on the engine; None if all have the same."""
        if not isinstance(self.penalty, ColumnPenalty):
            return None
        return problem.engine.asarray(
            (self.penalty.l2 * self.penalty.columns[:, None]).astype(problem.cells.observed.dtype), Side.COLUMNS
        )

    def kept_to_save(self, kept: Any) -> Any:
        if kept is None:
            return None
        P, Q = kept
        return (P, Side.ROWS), (Q, Side.ROWS if Q.ndim == 2 else None)

    def kept_again(self, problem: Problem, rows: PointFactor, columns: PointFactor, saved: Any) -> Any:
        return saved

    def converged(self, first: float, previous: float, current: float, tol: float) -> bool:
        """(previous - current) / loss at the start <= tol, the rule of the A1GM paper's KL-WNMF and of scikit-learn."""
        return previous - current <= tol * abs(first)

    def for_new_columns(self, known: int, count: int) -> "Multiplicative":
        if not isinstance(self.penalty, ColumnPenalty):
            return self
        if not known:
            return replace(self, penalty=Penalty(self.penalty.l1, self.penalty.l2))
        columns = np.append(self.penalty.columns[:known], np.ones(count))
        return replace(self, penalty=replace(self.penalty, columns=columns))

    def default_factor(self, average: Array, count: int, side: Side) -> PointFactor:
        return PointFactor(np.repeat(average[None], count, axis=0))

    def _state(
        self, problem: Problem, rows: PointFactor, columns: PointFactor, for_next: bool = True
    ) -> State[PointFactor]:
        """The penalised loss, and the rows' pulls and pushes for the next epoch."""
        W, H = rows.mean, columns.mean
        if for_next:
            *kept, totals = problem.pulls_and_pushes(W, H, Side.ROWS)
        else:
            kept, totals = None, problem.sweep(rules.costs, W, H).totals
        l2 = self._l2_of_columns(problem, H)
        penalties = [
            problem.map(penalties_of, self.penalty, *arrays, side=side)[1]
            for side, *arrays in ((Side.ROWS, W, None), (Side.COLUMNS, H, l2))
            if self.penalty
        ]
        terms = problem.engine.fetch(totals, *problem.cost_of_zeros(W, H), *penalties)
        loss = sum(float(term[0]) for term in terms)
        return State(rows, columns, kept, loss, problem.likelihood)


def multiplied(params: tuple[Penalty, float, Any], F: Any, P: Any, Q: Any) -> Terms:
    """F (P / (Q + l1 + l2 F))^g. Parameters are the penalty, g, and the row of Q where all have the same."""
    penalty, exponent, row = params
    xp = namespace(F)
    Q = xp.broadcast_to(row, F.shape) if Q is None else Q
    Q = Q + penalty.push(F) if penalty else Q
    pushed = Q > 0
    # Where nothing pushes nothing pulls either: no observed cell depends on the entry, and it stays.
    ratio = xp.where(pushed, P / xp.where(pushed, Q, 1.0), 1.0)
    return Terms((flush_to_zero(F * (ratio if exponent == 1.0 else ratio**exponent)),))


def pushed_by_columns(row: Any, F: Any, Q: Any, l2: Any) -> Terms:
    """Q + l2 F, where each row of F, a column of the matrix, has its own l2; the parameter is the row of Q."""
    return Terms(((row if Q is None else Q) + l2 * F,))


def penalties_of(penalty: Penalty, F: Any, l2: Any) -> Terms:
    """The penalty of every entry, to be summed; with its own l2 for each row, if that is given."""
    return Terms((), (penalty.cost(F) if l2 is None else F * (penalty.l1 + 0.5 * l2 * F),))
