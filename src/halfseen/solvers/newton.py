"""Newton's method by rows: each row's step looks at its own slopes and curvatures, the other side held fixed.

    f_u <- f_u - (sum of c g_i g_i^T + penalty)^{-1} (sum of s g_i + penalty (f_u - centre))

with s and c the slope and the curvature of each seen cell's cost. A row that its step would make worse tries shorter
ones, and stays if none helps: so the loss never rises. Rows are independent, and so the loss of each is its own judge.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from halfseen.arrays import Array, namespace
from halfseen.engines import Pulled, Side
from halfseen.likelihoods import Likelihood, Local, Smooth
from halfseen.solvers.base import Solver, State
from halfseen.solvers.multiplicative import PointFactor
from halfseen.solvers.ridge import Ridge, costs_of_rows
from halfseen.solvers.task import Task

#: The parameters of a likelihood (offsets, logarithms of gaps) move at most so far at a time.
_FARTHEST = 1.0
#: Parts of its step that a row tries.
_PARTS = (1.0, 0.4, 0.1, 0.01, 1e-3, 1e-4, 0.0)
#: How much stiffer than they are the parameters of a likelihood are taken to be, until a step helps.
_STIFFER = (0.0, 0.1, 1.0, 30.0)
#: How large the entries of a random start are.
_START = 0.1


class Newton(Solver[PointFactor]):
    """Alternating: rows, columns, then the likelihood's own parameters, each from where the others have come to."""

    name = "newton"
    falls = True
    multiplies = False

    def __init__(self, ridge: Ridge) -> None:
        self.ridge = ridge

    def check(self, likelihood: Likelihood) -> None:
        self._needs(isinstance(likelihood, Smooth), likelihood, "with a slope everywhere")

    def random(self, task: Task, size: tuple[int, int], random: np.random.RandomState) -> Array:
        """Small numbers around 0: biases and thresholds come first, then what sets rows apart."""
        return random.normal(0.0, _START, size)

    def begin(self, task: Task, W: Array, H: Array) -> State[PointFactor]:
        x = task.engine.dots(task.cells, W, H)
        return self._state(task, PointFactor(W), PointFactor(H), x, task.costs(x))

    def at(self, task: Task, rows: PointFactor, columns: PointFactor) -> State[PointFactor]:
        return State(rows, columns, task.engine.dots(task.cells, rows.mean, columns.mean), np.inf, task.likelihood)

    def begin_factor(self, factor: Array) -> PointFactor:
        return PointFactor(factor)

    def epoch(self, task: Task, state: State[PointFactor]) -> State[PointFactor]:
        task = task.under(state.likelihood)
        local = task.local(state.cells)
        rows, _, local = self._moved(task, state.rows, state.columns, Side.ROWS, local, task.local)
        columns, x, found = self._moved(task, state.columns, rows, Side.COLUMNS, local, task.costs)
        task, found = _refitted(task, x, found)
        return self._state(task, rows, columns, x, found)

    def half_step(self, task: Task, near: PointFactor, far: PointFactor, side: Side, x: Any) -> PointFactor:
        return self._moved(task, near, far, side, task.local(x), task.costs)[0]

    def _moved(
        self, task: Task, near: PointFactor, far: PointFactor, side: Side, local: Local, look: Callable[[Any], Local]
    ) -> tuple[PointFactor, Any, Local]:
        """One side moved, x there, and what `look` sees of the cells at it. `local` is what was to be seen before."""
        F, G = near.mean, far.mean
        pulled = self.ridge.pulled(F.shape[1], side)
        before = _losses(task, local, F, G, side, pulled)
        new = task.engine.newton(task.cells, local.slope, local.curvature, F, G, pulled, side)
        kept, worse = F, np.ones(len(before), bool)
        for part in _PARTS:
            kept = _where(worse, F + part * (new - F) if part else F, kept)
            x = task.engine.dots(task.cells, *((kept, G) if side is Side.ROWS else (G, kept)))
            found = look(x)
            worse = _losses(task, found, kept, G, side, pulled) > before
            if not worse.any():
                break
        return PointFactor(kept), x, found

    def converged(self, first: float, previous: float, current: float, tol: float) -> bool:
        """(previous - current) / loss at the start <= tol."""
        return previous - current <= tol * abs(first)

    def blank(self, average: Array, count: int, side: Side) -> PointFactor:
        return PointFactor(np.repeat(average[None], count, axis=0))

    def _state(self, task: Task, rows: PointFactor, columns: PointFactor, x: Any, found: Local) -> State[PointFactor]:
        engine = task.engine
        loss = _loss_of_cells(task, found)
        for factor, side in ((rows.mean, Side.ROWS), (columns.mean, Side.COLUMNS)):
            pulled = self.ridge.pulled(factor.shape[1], side)
            loss += engine.total(lambda rows, pulled=pulled: costs_of_rows(rows, pulled), factor)
        return State(rows, columns, x, loss, task.likelihood)


def _losses(task: Task, found: Local, F: Any, G: Any, side: Side, pulled: Pulled) -> Array:
    """The loss of each row of F: its cells' costs, and its penalty. No number counts as the worst there is."""
    engine = task.engine
    of_cells = engine.fetch(engine.spread(task.cells, found.cost, namespace(G).ones_like(G[:, :1]), side))
    losses = of_cells[:, 0] + engine.fetch(engine.each(lambda rows: costs_of_rows(rows, pulled), F))
    return np.where(np.isnan(losses), np.inf, losses)


def _where(mask: Array, yes: Any, no: Any) -> Any:
    if mask.all():
        return yes
    xp = namespace(yes)
    return xp.where(xp.asarray(mask[:, None]), yes, no)


def _refitted(task: Task, x: Any, found: Local) -> tuple[Task, Local]:
    """The likelihood's own parameters after a step of Newton's method, held back until it helps."""
    likelihood: Any = task.likelihood
    parameters = likelihood.parameters
    if not parameters.size:
        return task, found
    sums, loss = task.sums_of_parameters(x), _loss_of_cells(task, found)
    if not np.isfinite(sums).all():  # from factors that no one will keep
        return task, found
    for stiffness in _STIFFER:
        step = np.clip(likelihood.step(sums, stiffness), -_FARTHEST, _FARTHEST)
        moved = task.under(likelihood.at(parameters + step))
        costs = moved.costs(x)
        if _loss_of_cells(moved, costs) < loss:
            return moved, costs
    return task, found


def _loss_of_cells(task: Task, found: Local) -> float:
    """What the cells cost, and the likelihood's own parameters."""
    likelihood: Any = task.likelihood
    return task.engine.total(lambda cost: cost, found.cost) + float(likelihood.penalty)
