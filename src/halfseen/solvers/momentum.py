"""Momentum: every epoch starts from where the last two states point to, and is kept only if the objective gains.

With F_t the factor after epoch t, the next one starts at

    F_t (F_t / F_{t-1})^beta,    beta = (s_t - 1) / s_{t+1},   s_{t+1} = (1 + sqrt(1 + 4 s_t^2)) / 2

which is Nesterov's extrapolation (1983) on the logarithms, where multiplicative steps are straight; factors of any
sign start at F_t + beta (F_t - F_{t-1}). An epoch after
which the objective would be worse is done again from F_t itself, and the momentum starts from rest (O'Donoghue & Candès
2015). So the objective never worsens if that of the solver does not.
"""

from collections.abc import Callable
from typing import Any, Generic, NamedTuple

import numpy as np

from halfseen.arrays import floored, namespace
from halfseen.solvers.base import FactorT, Solver, State, positive
from halfseen.solvers.task import Task

#: An entry may grow or shrink so many times beyond its factor: those on their way to 0 point to nowhere.
_FARTHEST = 20.0


class Momentum(Generic[FactorT]):
    """A solver's epochs with momentum: they remember the state before, so they serve one run."""

    def __init__(self, solver: Solver[FactorT]) -> None:
        self._solver = solver
        self._rest()

    def _rest(self) -> None:
        self._before: _Before | None = None
        self._s = 1.0

    def epoch(self, task: Task, state: State[FactorT]) -> State[FactorT]:
        """Both factors moved once, from ahead of them or, if that does not gain, from where they are."""
        new = self._from_ahead(task, state)
        if new is None:
            self._rest()
            new = self._solver.epoch(task, state)
        self._before = _Before(state.objective, _starts(state.rows), _starts(state.columns))
        self._s = _next(self._s)
        return new

    def _from_ahead(self, task: Task, state: State[FactorT]) -> State[FactorT] | None:
        solver, before = self._solver, self._before
        if before is None or not abs(state.objective - before.objective) <= solver.settling * abs(state.objective):
            return None
        beta = (self._s - 1.0) / _next(self._s)
        ahead = _ahead_on_logs if solver.multiplies else _ahead
        rows, columns = ahead(task, state.rows, before.rows, beta), ahead(task, state.columns, before.columns, beta)
        new = solver.epoch(task, solver.at(task.under(state.likelihood), rows, columns))
        gains = new.objective <= state.objective if solver.falls else new.objective >= state.objective
        return new if gains and np.isfinite(new.objective) else None


class _Before(NamedTuple):
    """What is remembered of a state: no more, because its arrays are large."""

    objective: float
    rows: dict[str, Any]
    columns: dict[str, Any]


def _next(s: float) -> float:
    return float((1.0 + np.sqrt(1.0 + 4.0 * s * s)) / 2.0)


def _starts(factor: Any) -> dict[str, Any]:
    return {name: getattr(factor, name) for name in factor.starts_from}


def _ahead_on_logs(task: Task, now: Any, before: dict[str, Any], beta: float) -> Any:
    """Those arrays of a factor that an epoch starts from, extrapolated on their logarithms."""

    def rule(now: Any, before: Any) -> Any:
        ratio = namespace(now).clip(now / floored(before, 1.0), 1.0 / _FARTHEST, _FARTHEST)
        return positive(now * ratio**beta)

    return _each(rule, task, now, before)


def _ahead(task: Task, now: Any, before: dict[str, Any], beta: float) -> Any:
    """The same, extrapolated as they are."""
    return _each(lambda now, before: now + beta * (now - before), task, now, before)


def _each(rule: Callable[..., Any], task: Task, now: Any, before: dict[str, Any]) -> Any:
    return now._replace(**{name: task.engine.each(rule, array, before[name]) for name, array in _starts(now).items()})
