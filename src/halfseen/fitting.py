"""The loop: start, epoch, trace, stop. Every method of halfseen that iterates goes through here."""

from collections.abc import Callable, Mapping
from time import perf_counter
from typing import Any

import numpy as np

from halfseen.arrays import Array
from halfseen.engines import Side
from halfseen.folding import has_data, where
from halfseen.result import Fit, Status
from halfseen.solvers import Momentum, Problem, Solver, State

#: Gives the factors (W, H) to start from; a function, so that nobody else holds on to these arrays.
Start = Callable[[], tuple[Array, Array]]
#: Called after every iteration with its number (from 1) and the state; a true answer stops the run.
Watch = Callable[[int, State[Any]], bool | None]


def run(
    task: Problem,
    solver: Solver[Any],
    start: Start,
    *,
    max_iter: int,
    tol: float,
    accelerate: bool = False,
    watch: Watch | None = None,
) -> Fit:
    """Move both factors from where `start` puts them until the objective settles, and say how it ended.

    Parameters
    ----------
    task : the cells, the likelihood and the engine.
    solver : how the factors move.
    start : a function that gives the factors (W, H) to start from.
    max_iter, tol : stop after max_iter iterations, or when one gains less than tol asks, as the solver counts it.
    accelerate : whether iterations start ahead of the last one, by momentum.
    watch : called after every iteration with its number, from 1, and the state; a true answer stops the run.
    """
    started = perf_counter()
    mover = Momentum(solver) if accelerate else solver
    state = _begun(task, solver, start)
    first = state.objective
    objectives: list[float] = []
    seconds: list[float] = []
    status = Status.MAX_ITER
    if solver.minimizes and not np.isfinite(first):  # nothing that follows could be compared with the start
        status, max_iter = Status.NOT_FINITE, 0
    try:
        while len(objectives) < max_iter:
            new = mover.epoch(task, state)
            if bad := _trouble(task, solver, state, new, first):
                status = bad
                break
            previous, state = state.objective, new
            objectives.append(state.objective)
            seconds.append(perf_counter() - started)
            if watch is not None and watch(len(objectives), state):
                status = Status.STOPPED
                break
            if np.isfinite(previous) and solver.converged(first, previous, state.objective, tol):
                status = Status.CONVERGED
                break
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    trace = {"objective": np.array(objectives), "seconds": np.array(seconds)}
    return fit_at(task, solver, state, trace, status)


def fit_at(
    task: Problem, solver: Solver[Any], state: State[Any], trace: Mapping[str, np.ndarray], status: Status
) -> Fit:
    """The fit of a run that ends in this state."""
    rows, columns = _with_blanks_filled(task, solver, state)
    return Fit(_fetched(task, rows), _fetched(task, columns), state.likelihood, trace, status)


def _begun(task: Problem, solver: Solver[Any], start: Start) -> State[Any]:
    dtype = task.cells.observed.dtype
    W, H = (task.engine.asarray(factor.astype(dtype, copy=False)) for factor in start())
    return solver.init_state(task, W, H)


def _trouble(task: Problem, solver: Solver[Any], old: State[Any], new: State[Any], first: float) -> Status | None:
    """Whether an epoch must not be kept: its objective is no number, or worse by more than rounding."""
    if not np.isfinite(new.objective):
        return Status.NOT_FINITE
    if not np.isfinite(old.objective):
        return None
    worse = (new.objective - old.objective) * (1 if solver.minimizes else -1)
    scale = max(abs(old.objective), abs(first) if np.isfinite(first) else 0.0)
    return Status.WORSENED if worse > 1e4 * np.finfo(task.cells.observed.dtype).eps * scale else None


def _with_blanks_filled(task: Problem, solver: Solver[Any], state: State[Any]) -> tuple[Any, Any]:
    """Rows and columns without a seen cell get the average of the others: nothing else is known of them."""
    observed = task.cells.observed
    sides = (
        (Side.ROWS, state.rows, observed.seen_per_row()),
        (Side.COLUMNS, state.columns, observed.seen_per_column()),
    )
    filled = []
    for side, factor, seen in sides:
        with_data = has_data(seen, observed.unseen)
        if not with_data.all():
            average = task.engine.to_numpy(factor.mean)[with_data].mean(axis=0)
            factor = where(with_data, factor, solver.default_factor(average, len(with_data), side))
        filled.append(factor)
    return filled[0], filled[1]


def _fetched(task: Problem, factor: Any) -> Any:
    return factor._make(task.engine.to_numpy(array) for array in factor)
