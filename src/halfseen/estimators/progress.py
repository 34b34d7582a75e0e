"""Progress of a fit: scikit-learn's callbacks, a progress bar, and the warnings at the end."""

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from time import perf_counter
from typing import Any

import numpy as np
from sklearn import exceptions

from halfseen.arrays import Array
from halfseen.errors import DataWarning, Described
from halfseen.fitting import Callback
from halfseen.labels import quoted
from halfseen.model import Fit, Status


class ConvergenceWarning(Described, exceptions.ConvergenceWarning):
    """A fit ended before it converged: scikit-learn's warning, with the fields of our messages."""


@contextmanager
def callbacks(
    estimator: Any, X: Any, y: Any, cell_weight: Any, fitted_attributes: Callable[[Fit], dict[str, Any]]
) -> Iterator[Callback | None]:
    """One function to be called after every iteration, for scikit-learn's callbacks and the bar; None without any."""
    with ExitStack() as stack:
        called: list[Callback] = []
        if getattr(estimator, "_skl_callbacks", None):
            data = {"X": X, "y": y, "metadata": {} if cell_weight is None else {"cell_weight": cell_weight}}
            called.append(stack.enter_context(_sklearn_callbacks(estimator, data, fitted_attributes)))
        if estimator.verbose and sys.stderr.isatty():
            bar = _bar(type(estimator).__name__, estimator.max_iter, lambda state: float(state.objective))
            called.append(stack.enter_context(bar))

        def call_all(iteration: int, state: Any) -> bool:
            answers = [callback(iteration, state) for callback in called]  # all are called, even if the first says stop
            return any(answers)

        yield call_all if called else None


@contextmanager
def progress_bar(estimator: Any, steps: int, what: str = "objective") -> Iterator[Any]:
    """A bar outside the loop: a function of a step's number and of a number to show; None without a terminal."""
    if not (estimator.verbose and sys.stderr.isatty()):
        yield None
        return
    with _bar(type(estimator).__name__, steps, float, what) as bar:
        yield bar


@contextmanager
def _sklearn_callbacks(
    estimator: Any, data: dict[str, Any], fitted_attributes: Callable[[Fit], dict[str, Any]]
) -> Iterator[Callback]:
    """scikit-learn's callbacks: the fit is the task, every iteration a subtask."""
    context = estimator._init_callback_context(max_subtasks=estimator.max_iter * getattr(estimator, "n_init", 1))
    started = perf_counter()
    context.call_on_fit_task_begin(estimator=estimator, **data)

    def callback(iteration: int, state: Any) -> bool:
        def attributes() -> dict[str, Any]:
            """Fitted attributes as if the fit had stopped here."""
            trace = {"objective": np.array([state.objective]), "seconds": np.array([perf_counter() - started])}
            fit = Fit(state.rows, state.columns, state.likelihood, trace, Status.STOPPED)
            return fitted_attributes(fit) | {"n_iter_": iteration}

        subtask = context.subcontext(task_name="iteration")
        subtask.call_on_fit_task_begin(estimator=estimator, **data)
        return bool(subtask.call_on_fit_task_end(estimator=estimator, reconstruction_attributes=attributes, **data))

    yield callback
    context.call_on_fit_task_end(estimator=estimator, reconstruction_attributes={}, **data)


@contextmanager
def _bar(name: str, steps: int, number_of: Callable[[Any], float], what: str = "objective") -> Iterator[Callback]:
    """A bar on the terminal, with a number and the time left until all steps are done."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(f"{what} {{task.fields[number]}}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as progress:
        line = progress.add_task(name, total=steps, number="-")

        def callback(iteration: int, state: Any) -> bool:
            progress.update(line, completed=iteration, number=f"{number_of(state):.6g}")
            return False

        yield callback


def warn_if_empty(what: str, is_empty: Array, labels: Array | None, stacklevel: int, along: str = "") -> None:
    """Warn of rows or columns (`what`), or slices along an axis, without an observed cell."""
    positions = np.flatnonzero(is_empty)
    if positions.size:
        first = positions[0] if labels is None else quoted(labels[positions[0]])
        others = f" and {positions.size - 1} more" if positions.size > 1 else ""
        warning = DataWarning(
            f"Every {what}{along} should have a seen cell.",
            found="none",
            where=f"in {what} {first}{along}{others}",
            remedy=f"Such a {what} gets the average factor of the others; drop it if that is not wanted.",
        )
        warnings.warn(warning, stacklevel=stacklevel)


def warn_if_not_converged(estimator: Any, stacklevel: int) -> None:
    """Warn if the fit stopped early; raise KeyboardInterrupt again, now that the fit is kept."""
    status = estimator.status_
    if status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    stopped_early = status is Status.MAX_ITER and estimator.tol > 0
    if stopped_early or status in (Status.NOT_FINITE, Status.WORSENED, Status.UNMIXED):
        warnings.warn(ConvergenceWarning(f"{type(estimator).__name__}: {status.value}"), stacklevel=stacklevel)
