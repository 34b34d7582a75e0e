"""Early stopping: some cells are held out of the fit, and say when it should end."""

from dataclasses import replace
from typing import Any

import numpy as np

from halfseen.arrays import Array
from halfseen.errors import DataError
from halfseen.estimators.pairs import products_at
from halfseen.fitting import Watch, fit_at
from halfseen.observed import Observed
from halfseen.result import Fit, Status
from halfseen.solvers import Problem, Solver, State


class Patience:
    """Watches the mean cost of held-out cells, remembers where it was lowest, and asks to stop when it has not fallen
    for so many iterations."""

    def __init__(self, held_out: Observed, patience: int) -> None:
        self._cells = held_out
        self._rows = held_out.row_of_cell()
        self._patience = patience
        self.losses: list[float] = []
        self._best: State[Any] | None = None

    def watch(self, iteration: int, state: State[Any]) -> bool:
        self.losses.append(self._loss(state))
        if self.losses[-1] <= min(self.losses):
            self._best = state
        return self._has_waited

    @property
    def _has_waited(self) -> bool:
        return len(self.losses) - 1 - int(np.argmin(self.losses)) >= self._patience

    def _loss(self, state: State[Any]) -> float:
        cells = self._cells
        x = products_at(state.rows.mean, state.columns.mean, self._rows, cells.indices)
        return float(np.average(state.likelihood.divergence(cells.values, x), weights=cells.weights))

    def beside(self, other: Watch | None) -> Watch:
        """A watch that tells both."""

        def both(iteration: int, state: State[Any]) -> bool:
            stops = self.watch(iteration, state)
            return bool(other is not None and other(iteration, state)) or stops

        return both

    def best(self, fit: Fit, task: Problem, solver: Solver[Any]) -> Fit:
        """The fit at the iteration where the held-out loss was lowest; the trace tells of all."""
        trace = {**fit.trace, "held_out": np.array(self.losses)}
        if self._best is None:
            return replace(fit, trace=trace)
        of_its_own = fit.status in (Status.STOPPED, Status.CONVERGED, Status.MAX_ITER)
        status = Status.HELD_OUT if of_its_own and self._has_waited else fit.status
        return fit_at(task, solver, self._best, trace, status)


def held_out(observed: Observed, share: float, random: np.random.RandomState) -> tuple[Observed, Observed]:
    """The cells to fit, and those to judge by: a random share of them, but the only cell of a row or column never."""
    order = random.permutation(observed.nnz)
    rows, columns = observed.row_of_cell(), observed.indices
    spare = _spare(rows[order], observed.shape[0]) & _spare(columns[order], observed.shape[1])
    chosen = order[spare][: round(share * observed.nnz)]
    if not chosen.size:
        raise DataError(
            "Early stopping must hold cells out of rows and columns that keep others. Found none that could be, among "
            f"{observed.nnz} cells. Set early_stopping=False, or raise validation_fraction."
        )
    kept = np.ones(observed.nnz, bool)
    kept[chosen] = False
    return observed.select_cells(np.flatnonzero(kept)), observed.select_cells(np.sort(chosen))


def _spare(places: Array, count: int) -> Array:
    """Which cells, in their order, are not the first of their row (or column)."""
    first = np.full(count, -1)
    first[places[::-1]] = np.arange(places.size)[::-1]
    return np.arange(places.size) != first[places]
