"""A chain run from start to end, and what is kept of it."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import NamedTuple

import numpy as np

from halfseen.arrays import Array
from halfseen.coupling.sampling.chain import Chain
from halfseen.coupling.sampling.diagnostics import Mixing, mixing
from halfseen.coupling.sampling.layout import Layout
from halfseen.coupling.sampling.posterior import Draws
from halfseen.engines.threads import Threads
from halfseen.model import Status

#: Sweeps of the factors alone, before the first coupling is touched: else it would be lost to a random start.
SETTLING = 5
#: Exchanges proposed a cell: in the first sweep, and in every other.
MOVES_AT_FIRST, MOVES = 20, 3
#: Beyond this split R-hat of what is predicted, or of the noise, a chain has not mixed. The log-likelihood and the
#: spread of the means creep for long after that has settled, so they are shown and do not decide.
LARGEST_R_HAT = 1.1
DECIDING = ("predicted cells", "noise")
#: How many cells are watched.
WATCHED_CELLS = 20

#: Called after every sweep with its number (from 1) and the log-likelihood; a true answer stops the chain.
Watch = Callable[[int, float], bool | None]


class Plan(NamedTuple):
    """How long a chain runs: sweeps in all, those discarded at the start, how many draws are kept of the rest."""

    sweeps: int
    burn: int
    draws: int

    def kept(self) -> Array:
        """The numbers of the sweeps that are kept, evenly spread over those not discarded, the last one among them."""
        after = self.sweeps - self.burn
        count = min(self.draws, after)
        return self.burn + (np.arange(1, count + 1) * after) // count


class Sampled(NamedTuple):
    """The draws; a trace of every sweep; how well single quantities mixed; the end."""

    draws: Draws
    trace: dict[str, Array]
    mixing: dict[str, Mixing]
    status: Status


def sample(
    layout: Layout,
    n_components: int,
    trust: float,
    plan: Plan,
    random: np.random.Generator,
    threads: Threads,
    watch: Watch | None = None,
) -> Sampled:
    """Run a chain as planned. Ctrl-C ends it with draws of its second half."""
    keeper = _Keeper(layout, plan)
    status = Status.SAMPLED
    chain = Chain(layout, n_components, trust, random, threads)
    for _ in range(SETTLING):
        chain.sweep(0)
    keeper.begin(chain)
    try:
        for number in range(1, plan.sweeps + 1):
            chain.sweep(MOVES if number > 1 else MOVES_AT_FIRST)
            fit = keeper.take(number, chain)
            if watch is not None and watch(number, fit):
                status = Status.STOPPED
                break
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    trace, mixed = keeper.trace(), keeper.mixed()
    if status is Status.SAMPLED and not all(mixed[name].r_hat <= LARGEST_R_HAT for name in DECIDING):
        status = Status.UNMIXED
    return Sampled(keeper.draws(), trace, mixed, status)


class _Keeper:
    """Keeps what is wanted of every sweep, and all of some."""

    def __init__(self, layout: Layout, plan: Plan) -> None:
        self._layout, self._plan = layout, plan
        self._wanted = set(plan.kept().tolist())
        self._kept: list[tuple[Array, ...]] = []
        self._spread: dict[int, tuple[Array, ...]] = {}
        self._stride = 1
        self._told: dict[str, list[float]] = {"objective": [], "violated": [], "noise": [], "spread": [], "seconds": []}
        self._started = perf_counter()
        self._watched = np.unique(np.linspace(0, layout.n_cells - 1, WATCHED_CELLS).astype(np.int64))
        self._predicted: list[Array] = []

    def take(self, number: int, chain: Chain) -> float:
        """Note a sweep; returns its log-likelihood."""
        variance = chain.variance()
        fit = chain.log_likelihood(variance)
        told = (fit, chain.violations(), np.sqrt(variance.mean()), chain.mean.std())
        for name, value in zip(self._told, (*told, perf_counter() - self._started), strict=True):
            self._told[name].append(float(value))
        self._predicted.append(self._layout.told(chain.mean[self._watched], self._watched))
        self._keep(number, chain)
        return fit

    def _keep(self, number: int, chain: Chain) -> None:
        """Those planned, and, should the chain be stopped before its end, some of all sweeps, evenly spread."""
        is_wanted, is_turn = number in self._wanted, number % self._stride == 0
        if not (is_wanted or is_turn):
            return
        copy = self._copied(chain)
        if is_wanted:
            self._kept.append(copy)
        if is_turn:
            self._spread[number] = copy
        if len(self._spread) > self._plan.draws:
            self._stride *= 2
            self._spread = {one: kept for one, kept in self._spread.items() if one % self._stride == 0}

    def begin(self, chain: Chain) -> None:
        """Note the chain before its first sweep."""
        self._first = self._copied(chain)

    def _copied(self, chain: Chain) -> tuple[Array, ...]:
        layout, n_respondents = self._layout, self._layout.n_respondents
        first = layout.rows.indptr[layout.row_of_cell[layout.asked]]
        coupling = (chain.token_of_cell[layout.asked] - first).astype(layout.token_dtype)
        small = (chain.A, chain.B[:n_respondents], chain.noise.rows, chain.noise.columns[:n_respondents])
        return (*(array.astype(np.float32) for array in small), coupling, chain.tokens[~layout.is_answer])

    def _best_kept(self) -> list[tuple[Array, ...]]:
        """Those planned or, of a chain that was stopped, more from its second half at least; else its start."""
        sweeps = len(self._predicted)
        if sweeps == self._plan.sweeps:
            return self._kept
        start = min(self._plan.burn, sweeps // 2)
        late = [copy for number, copy in self._spread.items() if number > start]
        return max(self._kept, late, key=len) or [self._first]

    def draws(self) -> Draws:
        """What was kept, in the units of the answers."""
        layout = self._layout
        A, B, row_noise, column_noise, coupling, unknown = zip(*self._best_kept(), strict=True)
        lacking = np.diff(layout.rows.indptr) - layout.known
        return Draws(
            np.stack(A, axis=1), np.stack(B, axis=1), np.stack(row_noise, axis=1), np.stack(column_noise, axis=1),
            np.stack(coupling), layout.told(np.stack(unknown), np.flatnonzero(~layout.is_answer)),
            np.append(0, np.cumsum(lacking)), *layout.units,
        )  # fmt: skip

    def trace(self) -> dict[str, Array]:
        return {name: np.array(values) for name, values in self._told.items()}

    def mixed(self) -> dict[str, Mixing]:
        """Of the sweeps that were not discarded; of all, if the chain did not come so far."""
        names = {
            "noise": "noise",
            "violated comparisons": "violated",
            "log-likelihood": "objective",
            "spread": "spread",
        }
        sweeps = len(self._predicted)
        if sweeps == 0:
            return {}
        start = self._plan.burn if sweeps > self._plan.burn else 0
        of_cells = [mixing(draws) for draws in np.array(self._predicted[start:]).T]
        of_sweeps = {name: mixing(np.array(self._told[key][start:])) for name, key in names.items()}
        means, r_hats, effective = np.transpose(of_cells)
        worse = Mixing(float(means.mean()), float(np.quantile(r_hats, 0.9)), float(np.quantile(effective, 0.1)))
        return {"predicted cells": worse, **of_sweeps}
