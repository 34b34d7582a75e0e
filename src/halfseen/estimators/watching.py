"""Who looks on while a model is fitted: scikit-learn's callbacks, and a progress bar."""

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from time import perf_counter
from typing import Any

import numpy as np

from halfseen.fitting import Watch
from halfseen.result import Fit, Status


@contextmanager
def watch(model: Any, X: Any, y: Any, cell_weight: Any, observed: Any, task: Any) -> Iterator[Watch | None]:
    """One function that tells all who look on of every iteration; None if nobody does."""
    with ExitStack() as stack:
        watchers = []
        if getattr(model, "_skl_callbacks", None):
            watchers.append(stack.enter_context(_callbacks(model, X, y, cell_weight, observed, task)))
        if model.verbose and sys.stderr.isatty():
            watchers.append(stack.enter_context(_bar(type(model).__name__, model.max_iter, _objective_of_state)))

        def tell_all(iteration: int, state: Any) -> bool:
            answers = [tell(iteration, state) for tell in watchers]  # all are told, even if the first one says stop
            return any(answers)

        yield tell_all if watchers else None


@contextmanager
def bar(model: Any, steps: int, what: str = "objective") -> Iterator[Any]:
    """A bar for who does not go through the loop: a function of a step's number and what is told; or None."""
    if not (model.verbose and sys.stderr.isatty()):
        yield None
        return
    with _bar(type(model).__name__, steps, float, what) as tell:
        yield tell


@contextmanager
def _callbacks(model: Any, X: Any, y: Any, cell_weight: Any, observed: Any, task: Any) -> Iterator[Watch]:
    """scikit-learn's callbacks: the fit is the task, every iteration a subtask."""
    context = model._init_callback_context(max_subtasks=model.max_iter * getattr(model, "n_init", 1))
    started = perf_counter()
    told = {"X": X, "y": y, "metadata": {} if cell_weight is None else {"cell_weight": cell_weight}}
    context.call_on_fit_task_begin(estimator=model, **told)

    def tell(iteration: int, state: Any) -> bool:
        def so_far() -> dict[str, Any]:
            """The fitted attributes as if the fit had stopped here."""
            trace = {"objective": np.array([state.objective]), "seconds": np.array([perf_counter() - started])}
            fit = Fit(state.rows, state.columns, state.likelihood, trace, Status.STOPPED)
            return model._attributes(fit, observed) | {"n_iter_": iteration}

        iteration_context = context.subcontext(task_name="iteration")
        iteration_context.call_on_fit_task_begin(estimator=model, **told)
        return bool(iteration_context.call_on_fit_task_end(estimator=model, reconstruction_attributes=so_far, **told))

    yield tell
    context.call_on_fit_task_end(estimator=model, reconstruction_attributes={}, **told)


@contextmanager
def _bar(name: str, steps: int, number_of: Callable[[Any], float], what: str = "objective") -> Iterator[Watch]:
    """A bar on the terminal, with the objective (or what else is told) and the time left until all steps are done."""
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

        def tell(iteration: int, state: Any) -> bool:
            progress.update(line, completed=iteration, number=f"{number_of(state):.6g}")
            return False

        yield tell


def _objective_of_state(state: Any) -> float:
    return float(state.objective)
