"""Nesterov momentum: every epoch starts from an extrapolation of the last two states, kept only if it gains.

With F_t the factor after epoch t, the next one starts at

    F_t (F_t / F_{t-1})^beta,    beta = (s_t - 1) / s_{t+1},   s_{t+1} = (1 + sqrt(1 + 4 s_t^2)) / 2

which is Nesterov's extrapolation (1983) of the logarithms, in which multiplicative steps are linear; factors of any
sign start at F_t + beta (F_t - F_{t-1}). An epoch after which the objective would be worse is repeated from F_t itself,
and the momentum is reset (O'Donoghue & Candès 2015). So the objective never worsens if that of the solver does not.
"""

from typing import Any, Generic, NamedTuple

import numpy as np

from halfseen.arrays import floored, namespace
from halfseen.likelihoods.rules import Terms
from halfseen.solvers.base import FactorT, Solver, State, flush_to_zero
from halfseen.solvers.problem import Problem

#: Largest ratio by which an entry is extrapolated: ratios of entries on their way to 0 are meaningless.
_LARGEST_RATIO = 20.0


class Momentum(Generic[FactorT]):
    """A solver's epochs with momentum: it keeps the previous state, so it serves one run."""

    def __init__(self, solver: Solver[FactorT]) -> None:
        self._solver = solver
        self._reset()

    def _reset(self) -> None:
        self._previous: _Previous | None = None
        self._s = 1.0

    def epoch(self, problem: Problem, state: State[FactorT]) -> State[FactorT]:
        """Update both factors once, from their extrapolation or, if that does not gain, from where they are."""
        new = self._extrapolated_epoch(problem, state)
        if new is None:
            self._reset()
            new = self._solver.epoch(problem, state, for_next=False)
        self._previous = _Previous(state.objective, _arrays(state.rows), _arrays(state.columns))
        self._s = _next(self._s)
        return new

    def _extrapolated_epoch(self, problem: Problem, state: State[FactorT]) -> State[FactorT] | None:
        solver, previous = self._solver, self._previous
        if previous is None:
            return None
        if not abs(state.objective - previous.objective) <= solver.momentum_below * abs(state.objective):
            return None
        beta = (self._s - 1.0) / _next(self._s)

        params = (beta, solver.is_multiplicative)

        def extrapolate(factor: Any, before: dict[str, Any]) -> Any:
            arrays, _ = problem.engine.map(extrapolated, params, *_arrays(factor).values(), *before.values())
            return factor._replace(**dict(zip(before, arrays, strict=True)))

        rows, columns = extrapolate(state.rows, previous.rows), extrapolate(state.columns, previous.columns)
        start = solver.state_at(problem.with_likelihood(state.likelihood), rows, columns)
        new = solver.epoch(problem, start, for_next=False)
        gains = new.objective <= state.objective if solver.minimizes else new.objective >= state.objective
        return new if gains and np.isfinite(new.objective) else None


class _Previous(NamedTuple):
    """What is kept of a state: no more, because its arrays are large."""

    objective: float
    rows: dict[str, Any]
    columns: dict[str, Any]


def extrapolated(params: tuple[float, bool], *arrays: Any) -> Terms:
    """Each of the first half of the arrays, extrapolated by beta from its predecessor in the second half."""
    beta, multiplies = params
    half = len(arrays) // 2
    results = []
    for now, before in zip(arrays[:half], arrays[half:], strict=True):
        if multiplies:
            ratio = namespace(now).clip(now / floored(before, 1.0), 1.0 / _LARGEST_RATIO, _LARGEST_RATIO)
            results.append(flush_to_zero(now * ratio**beta))
        else:
            results.append(now + beta * (now - before))
    return Terms(tuple(results))


def _next(s: float) -> float:
    return float((1.0 + np.sqrt(1.0 + 4.0 * s * s)) / 2.0)


def _arrays(factor: Any) -> dict[str, Any]:
    return {name: getattr(factor, name) for name in factor.extrapolated}
