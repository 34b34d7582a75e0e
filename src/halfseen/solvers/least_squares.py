"""Alternating least squares: with one side fixed, the loss is a quadratic in each row of the other.

    (sum over cells of c g_i g_i^T + l2_u) f_u = sum over cells of c y g_i,   l2_u = l2 * (sum of c)^frequency

with c the weight of a cell. Where unseen cells are zeros they are among the cells, and their sum is the Gram matrix of
the other side (Hu, Koren & Volinsky 2008). The penalty of a row grows with the weight of its cells (Zhou and others
2008; Rendle and others 2022). A few steps of conjugate gradients from where a row is do nearly as well as its solution
(Takács, Pilászy & Tikk 2011), and each lowers the loss: so it never rises.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from halfseen.arrays import Array
from halfseen.engines import Side
from halfseen.likelihoods import Gaussian, Likelihood, UnseenPush, rules
from halfseen.likelihoods.rules import Terms
from halfseen.solvers.base import Solver, State
from halfseen.solvers.multiplicative import PointFactor
from halfseen.solvers.problem import Problem

#: Standard deviation of a random start times the root of the number of components.
_START = 0.1


class Quadratics(NamedTuple):
    """What all epochs of a fit share."""

    curvature: Any
    """The weight of each observed cell, less that of the unseen zero which the Gram matrix has in its place."""
    pull: Any
    """Weight times value of each observed cell."""
    l2: Mapping[Side, Any]
    """The penalty of each row, and of each column."""
    constant: float
    """The loss at x = 0."""


@dataclass(frozen=True, eq=False)
class LeastSquares(Solver[PointFactor]):
    """Alternating: rows, then columns, by conjugate gradients.

    Parameters
    ----------
    l2 : float
        Penalty on the entries of both factors, at a row whose cells weigh 1 in all.
    frequency : float, default=1.0
        Power of the weight of a row's cells, unseen zeros among them, that its penalty is multiplied by.
    n_steps : int, default=3
        Steps of conjugate gradients in each half of an epoch. New rows are folded in by as many as they need.
    """

    l2: float
    frequency: float = 1.0
    n_steps: int = 3

    name = "least squares"
    state: ClassVar[Mapping[str, Any]] = {"l2": float, "frequency": float, "n_steps": int}
    minimizes = True
    is_multiplicative = False

    def check(self, likelihood: Likelihood) -> None:
        self._require(isinstance(likelihood, Gaussian), likelihood, "of squared errors")

    def random(self, problem: Problem, size: tuple[int, int], random: np.random.RandomState) -> Array:
        """Small numbers around 0."""
        return random.normal(0.0, _START / np.sqrt(size[1]), size)

    def init_state(self, problem: Problem, W: Array, H: Array) -> State[PointFactor]:
        kept = self._quadratics(problem, *Side)
        terms = [problem.sweep(rules.costs, W, H).totals, *problem.cost_of_zeros(W, H)]
        factors = ((W, Side.ROWS), (H, Side.COLUMNS))
        terms += [problem.map(ridge_costs, None, F, kept.l2[side], side=side)[1] for F, side in factors]
        loss = sum(float(term[0]) for term in problem.engine.fetch(*terms))
        return State(PointFactor(W), PointFactor(H), kept, loss, problem.likelihood)

    def state_at(self, problem: Problem, rows: PointFactor, columns: PointFactor) -> State[PointFactor]:
        return State(rows, columns, self._quadratics(problem, *Side), np.inf, problem.likelihood)

    def init_factor(self, factor: Array) -> PointFactor:
        return PointFactor(factor)

    def epoch(
        self, problem: Problem, state: State[PointFactor], *, for_next: bool = True
    ) -> State[PointFactor]:  # fmt: skip
        kept: Quadratics = state.kept
        W, _ = self._solve(problem, kept, state.rows.mean, state.columns.mean, Side.ROWS, self.n_steps)
        H, of_cells = self._solve(problem, kept, state.columns.mean, W, Side.COLUMNS, self.n_steps)
        of_rows = problem.map(ridge_costs, None, W, kept.l2[Side.ROWS], side=Side.ROWS)[1]
        loss = kept.constant + sum(float(term[0]) for term in problem.engine.fetch(of_cells, of_rows))
        return State(PointFactor(W), PointFactor(H), kept, loss, state.likelihood)

    def half_step(self, problem: Problem, near: PointFactor, far: PointFactor, side: Side) -> PointFactor:
        """The solution itself, whatever the row is now."""
        tol = float(np.finfo(problem.cells.observed.dtype).eps) ** 2
        n_steps = 2 * far.mean.shape[1] + 8
        kept = self._quadratics(problem, side)
        return PointFactor(self._solve(problem, kept, near.mean, far.mean, side, n_steps, tol)[0])

    def _solve(
        self, problem: Problem, kept: Quadratics, near: Any, far: Any, side: Side, n_steps: int, tol: float = 0.0
    ) -> tuple[Any, Any]:
        """A side after its steps, and the loss but for the constant and the penalty of the other side."""
        engine, k = problem.engine, far.shape[1]
        if problem.zeros is None:
            gram = engine.asarray(np.zeros((k, k), problem.cells.observed.dtype))
        else:
            gram = problem.zeros.scale * problem.gram(far, side.other)
        cells = (problem.cells, kept.curvature, kept.pull)
        return engine.conjugate_gradients(*cells, near, far, gram, kept.l2[side], side, n_steps, tol)

    def _quadratics(self, problem: Problem, *sides: Side) -> Quadratics:
        engine, cells = problem.engine, problem.cells
        arrays = (cells.y, cells.weights, cells.is_first_at_cell)
        (curvature, pull), totals = engine.map(normal_equations, problem.zeros, *arrays, shards=cells.cell_shards)
        dtype = cells.observed.dtype
        l2 = {
            side: engine.asarray((self.l2 * problem.weight_along(side) ** self.frequency).astype(dtype), side)
            for side in sides
        }
        return Quadratics(curvature, pull, l2, float(engine.fetch(totals)[0][0]))

    def kept_again(self, problem: Problem, rows: PointFactor, columns: PointFactor, saved: Any) -> Any:
        return self._quadratics(problem, *Side)

    def converged(self, first: float, previous: float, current: float, tol: float) -> bool:
        """(previous - current) / loss at the start <= tol."""
        return previous - current <= tol * abs(first)

    def default_factor(self, average: Array, count: int, side: Side) -> PointFactor:
        return PointFactor(np.repeat(average[None], count, axis=0))


def normal_equations(zeros: UnseenPush | None, y: Any, weight: Any, first: Any) -> Terms:
    """Curvature and pull of each observed cell, and the terms of the loss at x = 0."""
    weight = y * 0.0 + 1.0 if weight is None else weight
    curvature = weight if zeros is None else weight - (zeros.scale if first is None else zeros.scale * first)
    return Terms((curvature, weight * y), (0.5 * weight * y * y,))


def ridge_costs(_: None, factor: Any, l2: Any) -> Terms:
    """l2 / 2 * |f_u|^2 of every row, to be summed."""
    return Terms((), (0.5 * l2[:, None] * factor * factor,))
