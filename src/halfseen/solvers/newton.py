"""Newton's method by rows: each row's step uses its own gradient and curvature, with the other side fixed.

    f_u <- f_u - (sum of c g_i g_i^T + l2)^{-1} (sum of s g_i + l2 (f_u - centre))

with s and c the slope and the curvature of each observed cell's cost. A row that its step would make worse tries
shorter ones, and stays if none helps: so the loss never rises. Rows are independent, so each is judged by its own loss.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from halfseen.arrays import Array, beside, namespace
from halfseen.engines import RidgePenalty, Side
from halfseen.likelihoods import Likelihood, Quadratic, SmoothOrdinal
from halfseen.likelihoods.rules import Terms
from halfseen.solvers.base import Solver, State
from halfseen.solvers.multiplicative import PointFactor
from halfseen.solvers.problem import Problem, where_rows

#: The l2 of biases, as a part of that of factors.
BIAS_L2 = 1.0 / 3.0
#: Largest change of a likelihood's parameter (an offset, the logarithm of a gap) in one step.
_LONGEST_STEP = 1.0
#: Parts of its step that a row tries.
_STEP_SIZES = (1.0, 0.4, 0.1, 0.01, 1e-3, 1e-4, 0.0)
#: Damping of the step of a likelihood's parameters, raised until the step helps.
_DAMPING = (0.0, 0.1, 1.0, 30.0)
#: Standard deviation of a random start.
_START = 0.1


@dataclass(frozen=True)
class Ridge:
    """l2 / 2 * sum over rows u of |f_u - centre|^2 for both factors, and with a third of that l2 for biases.

    Rows are drawn to sqrt(3) e_1 and columns to sqrt(3) e_2, not to 0: near there x is about sqrt(3) (h_1 + w_2), so
    that columns and rows have biases at the price of l2 / 3, and each row its own sensitivity w_1 to those of columns,
    each column its own to those of rows. (Around 0, what all rows have in common would be penalised in every single
    one; and around the mean of the rows, the means would grow until biases cost nothing.) Biases proper are the last
    two components: rows have [w, b, 1], columns [h, 1, c], so that x = w @ h + b + c.

    Parameters
    ----------
    l2 : float
        Penalty on the entries of both factors.
    biases : bool, default=False
        Whether the last two components are biases.
    centred : bool, default=True
        Whether the centre is as above, or 0.
    """

    l2: float
    biases: bool = False
    centred: bool = True

    state: ClassVar[Mapping[str, Any]] = {"l2": float, "biases": bool, "centred": bool}

    def penalty(self, size: int, side: Side) -> RidgePenalty:
        """The penalty of each component; the ones beside biases are fixed."""
        mine = 0 if side is Side.ROWS else 1
        l2, centre, fixed = np.full(size, self.l2), np.zeros(size), np.zeros(size)
        if self.centred and mine < size - 2 * self.biases:  # with one component, the centre of columns is 0
            centre[mine] = BIAS_L2**-0.5
        if self.biases:
            l2[-2:] = BIAS_L2 * self.l2
            centre[-1 - mine], fixed[-1 - mine] = 1.0, 1.0
        return RidgePenalty(l2, centre, fixed)

    def with_biases(self, factor: Array, side: Side) -> Array:
        """A factor with the two components of biases, which start at 0."""
        if not self.biases:
            return factor
        bias, ones = np.zeros((len(factor), 1), factor.dtype), np.ones((len(factor), 1), factor.dtype)
        return np.hstack([factor, bias, ones] if side is Side.ROWS else [factor, ones, bias])

    def initialize(self, factor: Array, side: Side) -> Array:
        """A small random factor moved to the centre, with biases if there are any."""
        wide = self.with_biases(factor, side)
        penalty = self.penalty(wide.shape[1], side)
        return wide + np.where(penalty.fixed == 1, 0.0, penalty.centre).astype(factor.dtype)


def ridge_costs(penalty: RidgePenalty, factor: Any) -> Terms:
    """l2 / 2 * |f_u - centre|^2 of each row u, and to be summed."""
    xp = namespace(factor)
    l2, centre = (beside(factor, array) for array in (penalty.l2, penalty.centre))
    costs = xp.sum(0.5 * l2 * (factor - centre) ** 2, axis=1)
    return Terms((costs,), (costs,))


@dataclass(frozen=True, eq=False)
class Newton(Solver[PointFactor]):
    """Alternating: rows, columns, then the likelihood's parameters, each from where the others have come to."""

    ridge: Ridge

    name = "newton"
    needs = frozenset({"newton"})
    minimizes = True
    is_multiplicative = False
    state: ClassVar[Mapping[str, Any]] = {"ridge": Ridge}

    def check(self, likelihood: Likelihood) -> None:
        self._require(isinstance(likelihood, SmoothOrdinal), likelihood, "with a slope everywhere")

    def random(self, problem: Problem, size: tuple[int, int], random: np.random.RandomState) -> Array:
        """Small numbers around 0: biases and thresholds come first, then the differences between rows."""
        return random.normal(0.0, _START, size)

    def init_state(self, problem: Problem, W: Array, H: Array) -> State[PointFactor]:
        x = problem.engine.sddmm(problem.cells, W, H)
        return self._state(problem, PointFactor(W), PointFactor(H), x, problem.costs(x))

    def state_at(self, problem: Problem, rows: PointFactor, columns: PointFactor) -> State[PointFactor]:
        x = problem.engine.sddmm(problem.cells, rows.mean, columns.mean)
        return State(rows, columns, x, np.inf, problem.likelihood)

    def init_factor(self, factor: Array) -> PointFactor:
        return PointFactor(factor)

    def epoch(
        self, problem: Problem, state: State[PointFactor], *, for_next: bool = True
    ) -> State[PointFactor]:  # fmt: skip
        problem = problem.with_likelihood(state.likelihood)
        cells = problem.quadratic(state.kept)
        rows, _, cells = self._update(problem, state.rows, state.columns, Side.ROWS, cells, problem.quadratic)
        columns, x, cells = self._update(problem, state.columns, rows, Side.COLUMNS, cells, problem.costs)
        problem, cells = _update_parameters(problem, x, cells)
        return self._state(problem, rows, columns, x, cells)

    def half_step(self, problem: Problem, near: PointFactor, far: PointFactor, side: Side) -> PointFactor:
        x = problem.engine.sddmm(
            problem.cells, *((near.mean, far.mean) if side is Side.ROWS else (far.mean, near.mean))
        )
        return self._update(problem, near, far, side, problem.quadratic(x), problem.costs)[0]

    def _update(
        self, problem: Problem, near: PointFactor, far: PointFactor, side: Side, cells: Quadratic,
        evaluate: Callable[[Any], Quadratic],
    ) -> tuple[PointFactor, Any, Quadratic]:  # fmt: skip
        """One side after its step, x there, and `evaluate(x)`. `cells` are cost, slope and curvature before it."""
        F, G = near.mean, far.mean
        penalty = self.ridge.penalty(F.shape[1], side)
        before = _row_losses(problem, cells, F, G, side, penalty)
        new = problem.engine.newton_step(problem.cells, cells.slope, cells.curvature, F, G, penalty, side)
        kept, worse = F, np.ones(len(before), bool)
        for step_size in _STEP_SIZES:
            trial = F + step_size * (new - F) if step_size else F
            kept = trial if worse.all() else where_rows(worse, trial, kept)
            x = problem.engine.sddmm(problem.cells, *((kept, G) if side is Side.ROWS else (G, kept)))
            evaluated = evaluate(x)
            worse = _row_losses(problem, evaluated, kept, G, side, penalty) > before
            if not worse.any():
                break
        return PointFactor(kept), x, evaluated

    def converged(self, first: float, previous: float, current: float, tol: float) -> bool:
        """(previous - current) / loss at the start <= tol."""
        return previous - current <= tol * abs(first)

    def default_factor(self, average: Array, count: int, side: Side) -> PointFactor:
        return PointFactor(np.repeat(average[None], count, axis=0))

    def _state(
        self, problem: Problem, rows: PointFactor, columns: PointFactor, x: Any, cells: Quadratic
    ) -> State[PointFactor]:
        loss = _cell_loss(problem, cells)
        for factor, side in ((rows.mean, Side.ROWS), (columns.mean, Side.COLUMNS)):
            penalty = self.ridge.penalty(factor.shape[1], side)
            loss += float(problem.engine.fetch(problem.engine.map(ridge_costs, penalty, factor)[1])[0][0])
        return State(rows, columns, x, loss, problem.likelihood)


def _row_losses(problem: Problem, cells: Quadratic, F: Any, G: Any, side: Side, penalty: RidgePenalty) -> Array:
    """The loss of each row of F: its cells' costs, and its penalty. NaN counts as infinite."""
    engine = problem.engine
    of_cells = engine.to_numpy(engine.spmm(problem.cells, cells.cost, namespace(G).ones_like(G[:, :1]), side))
    losses = of_cells[:, 0] + engine.to_numpy(engine.map(ridge_costs, penalty, F)[0][0])
    return np.where(np.isnan(losses), np.inf, losses)


def _update_parameters(problem: Problem, x: Any, cells: Quadratic) -> tuple[Problem, Quadratic]:
    """The likelihood's parameters after a step of Newton's method, damped until it helps."""
    likelihood: Any = problem.likelihood
    parameters = likelihood.parameters
    if not parameters.size:
        return problem, cells
    sums, loss = problem.parameter_sums(x), _cell_loss(problem, cells)
    if not np.isfinite(sums).all():  # from factors that will be rejected
        return problem, cells
    for damping in _DAMPING:
        step = np.clip(likelihood.parameter_step(sums, damping), -_LONGEST_STEP, _LONGEST_STEP)
        moved = problem.with_likelihood(likelihood.with_parameters(parameters + step))
        costs = moved.costs(x)
        if _cell_loss(moved, costs) < loss:
            return moved, costs
    return problem, cells


def _cell_loss(problem: Problem, cells: Quadratic) -> float:
    """The summed cost of the cells, and the penalty on the likelihood's parameters."""
    likelihood: Any = problem.likelihood
    (cost,) = problem.engine.fetch(problem.engine.map(summed, None, cells.cost)[1])
    return float(cost[0]) + float(likelihood.parameter_penalty)


def summed(_: None, array: Any) -> Terms:
    """The array, to be summed."""
    return Terms((), (array,))
