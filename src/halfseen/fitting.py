"""The loop: start, iterate, trace, stop; callbacks, early stopping, and warnings at the end.

Every iterative method goes through `iterate`, the solvers through `run`.
"""

import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from sklearn import exceptions

from halfseen.arrays import Array
from halfseen.checkpoint import ENDS, Along, Placed, Stage, interruptible
from halfseen.engines import Engine, Side
from halfseen.errors import DataWarning, Described, ParameterError
from halfseen.labels import quoted
from halfseen.model import Fit, Status
from halfseen.solvers import FACTORS, Momentum, Problem, Solver, State
from halfseen.solvers.base import Previous
from halfseen.solvers.problem import has_data, where

#: Returns the factors (W, H) to start from; a function, so that no other reference keeps these arrays alive.
Start = Callable[[], tuple[Array, Array]]
#: Called after every iteration with its number (from 1) and the state; a true answer stops the run.
Callback = Callable[[int, Any], bool | None]


class Outcome(NamedTuple):
    """Where iterations ended."""

    state: Any
    """The last state that was kept."""
    trace: dict[str, Array]
    """"objective" and "seconds", an entry per iteration."""
    status: Status
    """Why they ended."""


def iterate(
    steps: Iterator[Any],
    *,
    max_iter: int,
    started: float,
    initial: Any = None,
    trouble: Callable[[Any, Any], Status | None] | None = None,
    converged: Callable[[Any, Any], bool] | None = None,
    callback: Callback | None = None,
    done: Mapping[str, Sequence[float]] | None = None,
    keep: Callable[[Any, Mapping[str, Sequence[float]]], None] | None = None,
) -> Outcome:
    """Take steps until they end, converge, fail or are stopped.

    Parameters
    ----------
    steps : iterator
        States with an `objective`; the end of the iterator means convergence.
    max_iter : int
        Maximum number of steps.
    started : float
        Time of the start, by `perf_counter`.
    initial : object, default=None
        State to keep if the first step fails or is interrupted.
    trouble : callable, default=None
        From (last state, new state) to the status of a step that must not be kept, or None.
    converged : callable, default=None
        Whether (last state, new state) is the end.
    callback : callable, default=None
        Called after every step with its number, from 1, and the state; a true answer stops the run.
    done : mapping of str to sequence of float, default=None
        Trace of the steps that were taken before, and led to `initial`.
    keep : callable, default=None
        Called after every step that is not the last with the state and the trace so far.

    Returns
    -------
    Outcome
    """
    objectives, seconds = ([] if done is None else list(done[name]) for name in ("objective", "seconds"))
    state, status = initial, Status.MAX_ITER
    try:
        for new in islice(steps, max(0, max_iter - len(objectives))):
            if trouble is not None and (failed := trouble(state, new)):
                status = failed
                break
            last, state = state, new
            objectives.append(state.objective)
            seconds.append(perf_counter() - started)
            if callback is not None and callback(len(objectives), state):
                status = Status.STOPPED
                break
            if converged is not None and converged(last, state):
                status = Status.CONVERGED
                break
            if keep is not None:
                keep(state, {"objective": objectives, "seconds": seconds})
        else:
            status = Status.CONVERGED if len(objectives) < max_iter else Status.MAX_ITER
    except KeyboardInterrupt:
        if state is None:
            raise
        status = Status.INTERRUPTED
    return Outcome(state, {"objective": np.array(objectives), "seconds": np.array(seconds)}, status)


def run(
    problem: Problem,
    solver: Solver[Any],
    start: Start,
    *,
    max_iter: int,
    tol: float,
    accelerate: bool = False,
    callback: Callback | None = None,
    stage: Stage | None = None,
) -> Fit:
    """Move both factors from the start until the objective settles.

    Parameters
    ----------
    problem : Problem
        Cells, likelihood and engine.
    solver : Solver
        How the factors move.
    start : callable
        Returns the factors (W, H) to start from.
    max_iter : int
        Maximum number of iterations.
    tol : float
        Stop when an iteration gains less than this asks, as the solver counts it.
    accelerate : bool, default=False
        Whether iterations extrapolate, by momentum.
    callback : callable, default=None
        Called after every iteration with its number, from 1, and the state; a true answer stops the run.
    stage : Stage, default=None
        Of a checkpoint: where to go on from, and where to save.

    Returns
    -------
    Fit
    """
    started = perf_counter()
    dtype, engine = problem.cells.observed.dtype, problem.engine
    stopping = callback if isinstance(callback, EarlyStopping) else None
    momentum = Momentum(solver) if accelerate else None
    record = None if stage is None else stage.load()
    ended: Status | None = None
    done: Any = None
    if stage is None or record is None:
        W, H = (
            engine.asarray(factor.astype(dtype, copy=False), side) for factor, side in zip(start(), Side, strict=True)
        )
        initial = solver.init_state(problem, W, H)
        del W, H
        first = initial.objective
    else:
        if record.iteration > max_iter:
            raise ParameterError(
                f"must be at least the {record.iteration} iterations of the checkpoint.",
                parameter="max_iter",
                found=str(max_iter),
                remedy="Raise it, or name another folder.",
            )
        observed = problem.cells.observed
        lengths = {"rows": observed.shape[0], "columns": observed.shape[1], "cells": observed.nnz}
        saved = stage.folder.unpack(record.value, engine, lengths)
        with stage.folder.unpacking():
            initial, first = unpack_state(problem, solver, saved["state"]), float(saved["first"])
            done = {name: [float(number) for number in saved["trace"][name]] for name in ("objective", "seconds")}
            if {len(numbers) for numbers in done.values()} != {record.iteration}:
                raise ValueError
            if momentum is not None and saved["momentum"] is not None:
                s, *before = saved["momentum"]
                previous = Previous(*before)
                if {*previous.rows} != {*previous.columns} or {*previous.rows} != {*initial.rows.extrapolated}:
                    raise ValueError
                check_arrays(
                    problem, initial.rows.mean.shape[1], previous.likelihood,
                    [(array, Side.ROWS) for array in previous.rows.values()]
                    + [(array, Side.COLUMNS) for array in previous.columns.values()],
                )  # fmt: skip
                momentum.memory = float(s), previous
            if stopping is not None:
                stopping.recall(saved["stopping"], problem)
                if len(stopping.losses) != record.iteration:
                    raise ValueError
        started -= done["seconds"][-1] if done["seconds"] else 0.0
        ended = record.status if record.status in ENDS else None

    def epochs() -> Iterator[State[Any]]:
        state, mover = initial, solver if momentum is None else momentum
        while True:
            engine.iteration += 1
            old, state = state, mover.epoch(problem, state)
            if converged(old, state):
                better = solver.escape(problem, state, tol * abs(first))
                if better is not state and momentum is not None:
                    momentum.memory = None  # it begins again
                state = better
            yield state

    def packed(state: State[Any], trace: Mapping[str, Any]) -> Callable[[], Any]:
        """What is saved of this time, to be called later."""
        n, memory = len(trace["objective"]), None if momentum is None else momentum.memory
        stopped = None if stopping is None else stopping.memory

        def tree() -> Any:
            before: Any = None
            if memory is not None:
                s, previous = memory
                rows, columns = (
                    {name: Placed(array, side) for name, array in factor.items()}
                    for factor, side in ((previous.rows, Side.ROWS), (previous.columns, Side.COLUMNS))
                )
                before = s, float(previous.objective), rows, columns, previous.likelihood
            return {
                "state": pack_state(solver, state),
                "first": float(first),
                "trace": {name: [float(number) for number in numbers[:n]] for name, numbers in trace.items()},
                "momentum": before,
                "stopping": None if stopped is None else stopped(),
            }

        return tree

    def keep(state: State[Any], trace: Mapping[str, Sequence[float]]) -> None:
        if stage is not None:
            stage.step(len(trace["objective"]), packed(state, trace), engine)

    def trouble(old: State[Any], new: State[Any]) -> Status | None:
        """Status of an epoch whose objective is not finite, or worse by more than rounding."""
        if not np.isfinite(new.objective):
            return Status.NOT_FINITE
        if not (solver.is_monotone and np.isfinite(old.objective)):
            return None
        worse = (new.objective - old.objective) * (1 if solver.minimizes else -1)
        scale = max(abs(old.objective), abs(first) if np.isfinite(first) else 0.0)
        return Status.WORSENED if worse > 1e4 * np.finfo(dtype).eps * scale else None

    def settles(old: float, new: float) -> bool:
        return bool(np.isfinite(old)) and solver.converged(first, old, new, tol)

    def converged(old: State[Any], new: State[Any]) -> bool:
        return settles(old.objective, new.objective)

    if done is not None and ended is None and done["objective"]:  # it may have been stopped just before its end
        last = [first, *done["objective"]][-2:]
        if stopping is not None and stopping.is_out_of_patience:
            ended = Status.STOPPED
        elif settles(*last):
            ended = Status.CONVERGED
    if ended is not None:
        trace = {name: np.array(numbers) for name, numbers in done.items()}
        return fit_at(problem, solver, initial, trace, ended)
    if solver.minimizes and not np.isfinite(first):  # nothing that follows could be compared with the start
        trace = {"objective": np.empty(0), "seconds": np.empty(0)}
        return fit_at(problem, solver, initial, trace, Status.NOT_FINITE)
    with interruptible(None if stage is None else stage.folder):
        outcome = iterate(
            epochs(),
            max_iter=max_iter,
            started=started,
            initial=initial,
            trouble=trouble,
            converged=converged,
            callback=callback,
            done=done,
            keep=keep,
        )
    if stage is not None:
        if outcome.status is Status.INTERRUPTED:
            stage.folder.flush()
        else:
            stopped = outcome.status is Status.STOPPED and not (stopping is not None and stopping.is_out_of_patience)
            status = None if stopped else outcome.status
            stage.end(len(outcome.trace["objective"]), status, packed(outcome.state, outcome.trace), engine)
    return fit_at(problem, solver, *outcome)


def fit_at(problem: Problem, solver: Solver[Any], state: State[Any], trace: Mapping[str, Array], status: Status) -> Fit:
    """The fit of a run that ends in this state; rows and columns without an observed cell get the average factor."""
    observed, factors = problem.cells.observed, []
    for side, factor, count in (
        (Side.ROWS, state.rows, observed.seen_per_row()),
        (Side.COLUMNS, state.columns, observed.seen_per_column()),
    ):
        known, factor = has_data(count, observed.unseen), factor._make(problem.engine.to_numpy(a) for a in factor)
        if not known.all():
            average = factor.mean[known].mean(axis=0)
            factor = where(known, factor, solver.default_factor(average, len(known), side))
        factors.append(factor)
    return Fit(factors[0], factors[1], state.likelihood, trace, status)


def pack_state(solver: Solver[Any] | None, state: State[Any]) -> dict[str, Any]:
    """A state as a checkpoint saves it; without a solver, one from which nothing goes on."""
    kept = None if solver is None else solver.kept_to_save(state.kept)
    return {
        "factor": type(state.rows).__name__,
        "rows": [Placed(array, Side.ROWS) for array in state.rows],
        "columns": [Placed(array, Side.COLUMNS) for array in state.columns],
        "kept": kept and [array if along == "host" else Placed(array, along) for array, along in kept],
        "objective": float(state.objective),
        "likelihood": state.likelihood,
    }


def unpack_state(problem: Problem, solver: Solver[Any] | None, saved: dict[str, Any]) -> State[Any]:
    """The state that was saved; a ValueError, or what Python raises, if it is not of this problem."""
    factor, likelihood = FACTORS[saved["factor"]], saved["likelihood"]
    rows, columns = factor._make(saved["rows"]), factor._make(saved["columns"])
    k, kept = rows[0].shape[1], None
    sides = [(array, Side.ROWS) for array in rows] + [(array, Side.COLUMNS) for array in columns]
    check_arrays(problem, k, likelihood, sides)
    if solver is not None:
        kept = solver.kept_again(problem.with_likelihood(likelihood), rows, columns, saved["kept"])
        check_arrays(problem, k, likelihood, solver.kept_to_save(kept) or ())
    return State(rows, columns, kept, float(saved["objective"]), likelihood)


def check_arrays(problem: Problem, k: int, likelihood: Any, arrays: Sequence[tuple[Any, Along]]) -> None:
    """Raise a ValueError unless arrays and a likelihood are such as a fit to these cells has: kernels trust that."""
    kinds = [
        (
            type(one),
            {
                name: (field.dtype, field.shape) if isinstance(field, np.ndarray) else field
                for name, field in one.to_state().items()
                if isinstance(field, np.ndarray | str)
            },
        )
        for one in (likelihood, problem.likelihood)
    ]
    observed = problem.cells.observed
    (n, m), dtype = observed.shape, problem.engine.asarray(np.empty(0, observed.dtype)).dtype
    shapes = {Side.ROWS: (n, k), Side.COLUMNS: (m, k), "cells": (observed.nnz,), None: (k,)}
    fits = [along == "host" or (shapes[along] == array.shape and array.dtype == dtype) for array, along in arrays]
    if kinds[0] != kinds[1] or not all(fits):
        raise ValueError


class EarlyStopping:
    """Callback that stops when the mean loss of held-out cells has not fallen for `patience` iterations.

    Parameters
    ----------
    held_out : Problem
        Cells held out of the fit, on its engine.
    patience : int
        Number of iterations without improvement.
    callback : callable, default=None
        Another callback to be called.
    """

    def __init__(self, held_out: Problem, patience: int, callback: Callback | None = None) -> None:
        self._held_out = held_out
        self._patience = patience
        self._callback = callback
        self._best: State[Any] | None = None
        self.losses: list[float] = []

    def __call__(self, iteration: int, state: State[Any]) -> bool:
        held_out = self._held_out.with_likelihood(state.likelihood)
        self.losses.append(held_out.divergence(state.rows.mean, state.columns.mean) / held_out.weight_of_cells)
        if self.losses[-1] <= min(self.losses):
            self._best = state
        stops = self.is_out_of_patience
        return bool(self._callback is not None and self._callback(iteration, state)) or stops

    @property
    def memory(self) -> Callable[[], Any]:
        """What is to be saved of this time, to be called later."""
        losses, best = [float(loss) for loss in self.losses], self._best
        return lambda: {"losses": losses, "best": best and pack_state(None, best)}

    def recall(self, saved: dict[str, Any], problem: Problem) -> None:
        """Take back what was saved."""
        self.losses = [float(loss) for loss in saved["losses"]]
        self._best = saved["best"] and unpack_state(problem, None, saved["best"])

    @property
    def is_out_of_patience(self) -> bool:
        """Whether the last `patience` iterations brought nothing."""
        return len(self.losses) - 1 - int(np.argmin(self.losses)) >= self._patience

    def best(self, fit: Fit, problem: Problem, solver: Solver[Any]) -> Fit:
        """The fit at the iteration with the lowest held-out loss; the trace is of all iterations."""
        trace = {**fit.trace, "held_out": np.array(self.losses)}
        if self._best is None:
            return replace(fit, trace=trace)
        by_itself = fit.status in (Status.STOPPED, Status.CONVERGED, Status.MAX_ITER)
        status = Status.HELD_OUT if by_itself and self.is_out_of_patience else fit.status
        return fit_at(problem, solver, self._best, trace, status)


# ---------------------------------------------------------------------------------------------------------------------
# progress and warnings


class ConvergenceWarning(Described, exceptions.ConvergenceWarning):
    """A fit ended before it converged: scikit-learn's warning, with the fields of our messages."""


@contextmanager
def callbacks(
    estimator: Any,
    X: Any,
    y: Any,
    cell_weight: Any,
    fitted_attributes: Callable[[Outcome], dict[str, Any]],
    max_iter: int,
    planned: int | None = None,
    engine: Engine[Any] | None = None,
) -> Iterator[Callback | None]:
    """One function to be called after every iteration, for scikit-learn's callbacks and the bar; None without any.

    The bar goes to `planned`, if that is given, and is extended should there be more. On the engine of a cluster it
    shows the shards of a pass, too.
    """
    with (
        sklearn_callbacks(estimator, X, y, cell_weight, fitted_attributes, max_iter) as watching,
        progress_bar(estimator, planned or max_iter, "objective", lambda state: float(state.objective), engine) as bar,
    ):
        called = [callback for callback in (watching, bar) if callback is not None]

        def call_all(iteration: int, state: Any) -> bool:
            answers = [callback(iteration, state) for callback in called]  # all are called, even if the first says stop
            return any(answers)

        yield call_all if called else None


@contextmanager
def sklearn_callbacks(
    estimator: Any,
    X: Any,
    y: Any,
    cell_weight: Any,
    fitted_attributes: Callable[[Outcome], dict[str, Any]],
    max_iter: int,
) -> Iterator[Callback | None]:
    """scikit-learn's callbacks, the fit as the task and every iteration as a subtask; None without any.

    `fitted_attributes` gives those of a fit that was stopped; it is called if a callback asks for the model so far.
    """
    if not getattr(estimator, "_skl_callbacks", None):
        yield None
        return
    data = {"X": X, "y": y, "metadata": {} if cell_weight is None else {"cell_weight": cell_weight}}
    context = estimator._init_callback_context(max_subtasks=max_iter * getattr(estimator, "n_init", 1))
    started = perf_counter()
    trace: dict[str, list[float]] = {"objective": [], "seconds": []}
    forgotten = dict.fromkeys(name for name in vars(estimator) if name.endswith("_"))  # of an earlier fit
    context.call_on_fit_task_begin(estimator=estimator, **data)

    def callback(iteration: int, state: Any) -> bool:
        for numbers in trace.values():  # of iterations before this one goes on from a checkpoint, nothing is known here
            numbers += [np.nan] * (iteration - 1 - len(numbers))
        trace["objective"].append(state.objective)
        trace["seconds"].append(perf_counter() - started)

        def attributes() -> dict[str, Any]:
            """Fitted attributes as if the fit had stopped here; of several starts, the trace is that of the last."""
            of_run = {name: np.array(values[-iteration:]) for name, values in trace.items()}
            return forgotten | fitted_attributes(Outcome(state, of_run, Status.STOPPED))

        subtask = context.subcontext(task_name="iteration")
        subtask.call_on_fit_task_begin(estimator=estimator, **data)
        return bool(subtask.call_on_fit_task_end(estimator=estimator, reconstruction_attributes=attributes, **data))

    yield callback
    context.call_on_fit_task_end(estimator=estimator, reconstruction_attributes={}, **data)


@contextmanager
def progress_bar(
    estimator: Any, steps: int, what: str = "objective", number_of: Callable[[Any], float] = float,
    engine: Engine[Any] | None = None,
) -> Iterator[Callback | None]:  # fmt: skip
    """A bar with a number and the time left, as a function of the steps done and of what has the number.

    Twice as many steps are shown when there are more. None if not `verbose`, or without a terminal.
    """
    if not (estimator.verbose and sys.stderr.isatty()):
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(f"{what} {{task.fields[number]}}"),
        TextColumn("{task.fields[shards]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as progress:
        line = progress.add_task(type(estimator).__name__, total=steps, number="-", shards="")
        if engine is not None:
            engine.on_progress = lambda done, count: progress.update(line, shards=f"shards {done}/{count}")
            engine.on_loss = progress.console.print

        def callback(done: int, state: Any) -> bool:
            total = progress.tasks[0].total or steps
            total = total if done <= total else 2 * total
            progress.update(line, completed=done, total=total, number=f"{number_of(state):.6g}")
            return False

        yield callback


def warn_if_empty(
    what: str,
    is_empty: Array,
    labels: Array | None,
    stacklevel: int,
    along: str = "",
    effect: str = "gets the average factor of the others",
) -> None:
    """Warn of rows or columns (`what`), or slices along an axis, without an observed cell, and say what they get."""
    positions = np.flatnonzero(is_empty)
    if positions.size:
        first = positions[0] if labels is None else quoted(labels[positions[0]])
        others = f" and {positions.size - 1} more" if positions.size > 1 else ""
        warning = DataWarning(
            f"Every {what}{along} should have a seen cell.",
            found="none",
            where=f"in {what} {first}{along}{others}",
            remedy=f"Such a {what} {effect}; drop it if that is not wanted.",
        )
        warnings.warn(warning, stacklevel=stacklevel)


def warn_if_not_converged(estimator: Any, stacklevel: int) -> None:
    """Warn if the fit stopped early; raise KeyboardInterrupt again, now that the fit is kept."""
    status = estimator.status_
    if status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    stopped_early = status is Status.MAX_ITER and estimator.tol > 0
    if stopped_early or status in (Status.NOT_FINITE, Status.WORSENED, Status.UNMIXED, Status.TOO_SHORT):
        warnings.warn(ConvergenceWarning(f"{type(estimator).__name__}: {status.value}"), stacklevel=stacklevel)
