"""Chains: their length, several run side by side, the states that are kept, and how well they have mixed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from time import perf_counter
from typing import Any, ClassVar, NamedTuple

import numpy as np

from halfseen.arrays import Array
from halfseen.checkpoint import CheckpointFolder, Lasting, Stage
from halfseen.engines.threads import Threads, thread_count
from halfseen.fitting import Callback, iterate
from halfseen.model import Status

#: Above this split R-hat chains have not mixed.
MAX_R_HAT = 1.1


class Plan(NamedTuple):
    """Length of a chain: number of sweeps, of those discarded at the start, of draws kept of the rest."""

    sweeps: int
    burn: int
    draws: int

    def kept(self) -> Array:
        """Numbers of the sweeps that are kept, evenly spread over those not discarded, the last one among them."""
        after = self.sweeps - self.burn
        count = min(self.draws, after)
        return self.burn + (np.arange(1, count + 1) * after) // count


class Mixing(NamedTuple):
    """How well a quantity mixed: its mean, split R-hat (1 at best), and the number of independent draws it is worth."""

    mean: float
    r_hat: float
    effective: float


def mixing(draws: Array) -> Mixing:
    """Split R-hat and effective sample size, as in Gelman and others, Bayesian Data Analysis (2013), section 11.4-5.

    Each chain is cut into two halves of n draws. With W the mean of their variances and B = n times the variance of
    their means, r_hat^2 = (n - 1) / n + B / (n W). The autocorrelations, from the halves' variograms, are summed in
    pairs as long as a pair's sum stays positive. A quantity that never moved has mixed perfectly; of fewer than four
    draws nothing can be said: NaN.

    Parameters
    ----------
    draws : ndarray of shape (n_draws,) or (n_chains, n_draws)
        Draws of one quantity, in the order of the sweeps.

    Returns
    -------
    Mixing
    """
    draws = np.atleast_2d(draws)
    n = draws.shape[1] // 2
    halves = draws[:, : 2 * n].reshape(2 * len(draws), n)
    if n < 2:
        return Mixing(float(draws.mean()), np.nan, np.nan)
    if np.ptp(halves) == 0:
        return Mixing(float(draws.mean()), 1.0, float(draws.size))
    within = float(halves.var(axis=1, ddof=1).mean())
    overall = (n - 1) / n * within + float(halves.mean(axis=1).var(ddof=1))
    r_hat = float(np.sqrt(overall / within)) if within > 0 else np.inf

    # autocorrelations of lags 1, 2, ..., cut off before the first pair of lags (2t, 2t + 1) whose sum is not positive
    total, pair = 0.0, [1.0]  # lag 0
    for lag in range(1, n - 1):
        variogram = float(np.mean((halves[:, lag:] - halves[:, :-lag]) ** 2))
        pair.append(1 - variogram / (2 * overall))
        if len(pair) == 2:
            if sum(pair) <= 0:
                break
            total += sum(pair)
            pair = []
    return Mixing(float(draws.mean()), r_hat, halves.size / (1 + 2 * max(total - 1.0, 0.0)))


def worst(several: list[Mixing]) -> Mixing:
    """Of several quantities: the mean of the means, and the R-hat and number that nine of ten are not worse than."""
    means, r_hats, effective = np.transpose(several)
    between: Any = "linear" if np.isfinite(r_hats).all() else "higher"  # two infinite ones have nothing between them
    r_hat = float(np.quantile(r_hats, 0.9, method=between))
    return Mixing(float(means.mean()), r_hat, float(np.quantile(effective, 0.1)))


class Sampled(NamedTuple):
    """Draws of all chains, how well they mixed, the trace with an entry per sweep, and the status."""

    draws: Any
    mixing: dict[str, Mixing]
    trace: dict[str, Array]
    status: Status


class Recorder:
    """Records every sweep of several chains, and copies some of their states.

    A subclass knows one kind of chain: it has `sweep`, `copy` and `draws`, and says what it records.
    """

    #: What `sweep` returns, in this order, before what is monitored.
    quantities: ClassVar[tuple[str, ...]] = ("objective",)
    #: Names of the quantities that are diagnosed; these are in the trace, too.
    diagnosed: ClassVar[Mapping[str, str]] = {"log-likelihood": "objective"}
    #: What is monitored at some cells, the same number of each; it decides whether chains have mixed.
    monitored: ClassVar[tuple[str, ...]] = ("predicted cells",)
    #: Whether some of all sweeps are kept besides, evenly spread, should the chains be stopped before their end.
    keeps_spares: ClassVar[bool] = True

    def __init__(self, chains: list[Any], plan: Plan) -> None:
        self._chains, self._plan = chains, plan
        self._per_chain = max(1, plan.draws // len(chains))
        self._planned = set(plan._replace(draws=self._per_chain).kept().tolist())
        self._kept: dict[int, list[dict[str, Array]]] = {}
        self._spares: dict[int, list[dict[str, Array]]] = {}
        self._stride = 1
        self._last = self._copies()
        self._sweeps: list[Any] = []

    def sweep(self, chain: Any, number: int) -> tuple[float, ...]:
        """Take a sweep, the one of this number; return `quantities`, then what is monitored, cell by cell."""
        raise NotImplementedError

    def copy(self, chain: Any) -> dict[str, Array]:
        """The state of a chain."""
        raise NotImplementedError

    def draws(self) -> Any:
        """The states kept so far, as arrays."""
        raise NotImplementedError

    @property
    def objective(self) -> float:
        """Log-likelihood after the last sweep, the mean of all chains."""
        return float(np.mean([recorded[0] for recorded in self._sweeps[-1]]))

    def record(self, number: int, recorded: list[tuple[float, ...]]) -> None:
        """Record a sweep of all chains, and keep their states if that is planned."""
        self._sweeps.append(recorded)
        is_planned, is_spare = number in self._planned, self.keeps_spares and number % self._stride == 0
        if not (is_planned or is_spare):
            if not (self._kept or self.keeps_spares):
                self._last = self._copies()
            return
        copies = self._copies()
        if is_planned:
            self._kept[number] = copies
        if is_spare:
            self._spares[number] = copies
        if len(self._spares) > self._per_chain:
            self._stride *= 2
            self._spares = {one: kept for one, kept in self._spares.items() if one % self._stride == 0}

    def _copies(self) -> list[dict[str, Array]]:
        return [self.copy(chain) for chain in self._chains]

    @property
    def memory(self) -> dict[str, Any]:
        """What was recorded, as a checkpoint saves it: each draw is written once."""
        draws = self._spares | self._kept
        n_bytes = sum(array.nbytes for copied in self._last for array in copied.values())
        return {
            "plan": list(self._plan),
            "stride": self._stride,
            "sweeps": np.array(self._sweeps, np.float64),
            "kept": list(self._kept),
            "spares": list(self._spares),
            "draws": {
                str(number): Lasting(f"draw {number}", n_bytes, partial(_joined, copies))
                for number, copies in draws.items()
            },
        }

    def recall(self, saved: dict[str, Any], folder: CheckpointFolder) -> None:
        """Take back what was saved, of chains that are in the state of that time."""
        folder.check_arrays(saved["draws"], dict.fromkeys(saved["draws"], _joined(self._last)))
        self._plan, self._stride, self._sweeps = Plan(*saved["plan"]), saved["stride"], list(saved["sweeps"])
        self._planned = set(self._plan._replace(draws=self._per_chain).kept().tolist())

        def split_sweeps(joined: Array) -> list[dict[str, Array]]:
            ends = np.cumsum([array.nbytes for copied in self._last for array in copied.values()]).tolist()
            pieces = iter(np.split(joined, ends[:-1]))
            return [
                {name: next(pieces).view(array.dtype).reshape(array.shape) for name, array in copied.items()}
                for copied in self._last
            ]

        draws = {int(number): split_sweeps(joined) for number, joined in saved["draws"].items()}
        self._kept, self._spares = ({number: draws[number] for number in saved[name]} for name in ("kept", "spares"))

    @property
    def planned(self) -> int:
        """Number of sweeps that are planned."""
        return self._plan.sweeps

    def states(self) -> list[list[dict[str, Array]]]:
        """States kept so far, of each chain.

        Those planned or, of chains that were stopped, more from their second half at least; else the last one.
        """
        kept, done = list(self._kept.values()), len(self._sweeps)
        if done < self._plan.sweeps:
            after = min(self._plan.burn, done // 2)
            kept = max(kept, [copies for number, copies in self._spares.items() if number > after], key=len)
        return [list(of_chain) for of_chain in zip(*(kept or [self._last]), strict=True)]

    def trace(self, trace: Mapping[str, Array]) -> dict[str, Array]:
        """The trace of the loop with an entry per sweep of what is diagnosed, the mean of all chains."""
        count = len(self.quantities)
        shape = (len(self._sweeps), len(self._chains), count)
        recorded = np.array([[chain[:count] for chain in sweep] for sweep in self._sweeps]).reshape(shape)
        means = {name: recorded[:, :, self.quantities.index(name)] for name in self.diagnosed.values()}
        return {**{name: values.mean(axis=1) for name, values in means.items()}, **trace}

    def mixing(self) -> dict[str, Mixing]:
        """Of the sweeps that were not discarded; of all, if the chains were stopped before that."""
        if not self._sweeps:
            return {}
        start = self._plan.burn if len(self._sweeps) > self._plan.burn else 0
        recorded = np.transpose(self._sweeps[start:], (2, 1, 0))
        quantities = dict(zip(self.quantities, np.ascontiguousarray(recorded), strict=False))
        groups = np.split(recorded[len(quantities) :], len(self.monitored))
        cells = {name: worst(list(map(mixing, group))) for name, group in zip(self.monitored, groups, strict=True)}
        return cells | {name: mixing(quantities[key]) for name, key in self.diagnosed.items()}

    def extend(self, sweeps: int) -> None:
        """Plan so many sweeps in all: the same share is discarded, and those kept are spread evenly over the others."""
        done, self._plan = (
            self._plan.sweeps,
            self._plan._replace(sweeps=sweeps, burn=self._plan.burn * sweeps // self._plan.sweeps),
        )
        planned = self._plan._replace(draws=self._per_chain).kept()
        self._planned = set(planned.tolist())
        late = [number for number in self._kept if number > self._plan.burn]
        count = min(len(late), int(np.count_nonzero(planned <= done)))
        chosen = [late[(place + 1) * len(late) // count - 1] for place in range(count)]
        self._kept = {number: self._kept[number] for number in chosen}

    def _end(self, mixed: Mapping[str, Mixing]) -> Status:
        """Status of chains that drew all sweeps."""
        r_hats = np.array([mixed[name].r_hat for name in self.monitored])
        if np.isnan(r_hats).any():
            return Status.TOO_SHORT
        return Status.SAMPLED if np.all(r_hats <= MAX_R_HAT) else Status.UNMIXED

    @property
    def needs_more(self) -> bool:
        """Whether chains that drew all sweeps have not mixed."""
        return self._end(self.mixing()) is Status.UNMIXED

    def sampled(self, status: Status, trace: Mapping[str, Array]) -> Sampled:
        """What is left of chains that end here, with this status."""
        mixed = self.mixing()
        if status in (Status.MAX_ITER, Status.CONVERGED):  # all sweeps were drawn
            status = self._end(mixed)
        return Sampled(self.draws(), mixed, self.trace(trace), status)


def _joined(copies: Sequence[Mapping[str, Array]]) -> Array:
    """The states of all chains as one array of bytes."""
    arrays = [np.ascontiguousarray(array) for copied in copies for array in copied.values()]
    return np.concatenate([array.reshape(-1).view(np.uint8) for array in arrays])


def sample_chains(
    make_chain: Callable[[Threads, int], Any],
    recorder: Callable[[list[Any], Plan], Recorder],
    n_chains: int,
    plan: Plan,
    n_jobs: int | None,
    callback: Callback | None,
    max_sweeps: int | None = None,
    *,
    warm_up: Callable[[Any], None] | None = None,
    stage: Stage | None = None,
    saves_end: bool = True,
) -> Sampled:
    """Run chains as planned, side by side. A keyboard interrupt keeps the draws so far.

    Chains that have not mixed when the plan is done go on, for as many sweeps again, up to `max_sweeps`.

    Parameters
    ----------
    make_chain : callable
        Makes chain number j for the given threads.
    recorder : callable
        Makes the recorder of the chains; a subclass of `Recorder`.
    n_chains : int
        Number of chains.
    plan : Plan
        Length of each chain; `plan.draws` are kept of all together.
    n_jobs : int or None
        Number of threads.
    callback : callable or None
        Called after every sweep with its number and the recorder; a true answer stops the run.
    max_sweeps : int or None, default=None
        The most sweeps of a chain; None, or fewer than planned, stands for those planned.
    warm_up : callable, default=None
        Called with each chain before its first sweep.
    stage : Stage, default=None
        Of a checkpoint, with the generators of all chains: where to go on from, and where to save.
    saves_end : bool, default=True
        Whether the end is saved there, too.

    Returns
    -------
    Sampled
    """
    started = perf_counter()
    count = thread_count(n_jobs)
    with Threads(min(n_chains, count)) as over_chains, Threads(max(1, count // n_chains)) as inside:
        chains = over_chains.all(partial(make_chain, inside), range(n_chains))
        record = None if stage is None else stage.load()
        saved: Any = None
        if stage is not None and record is not None:
            saved = stage.folder.unpack(record.value)
            with stage.folder.unpacking():
                for chain, state in zip(chains, saved["chains"], strict=True):
                    stage.folder.check_arrays(state, chain.state)
                    chain.state = state
        elif warm_up is not None:
            over_chains.all(warm_up, chains)
        records, most, done = recorder(chains, plan), max(plan.sweeps, max_sweeps or 0), None
        if stage is not None and saved is not None:
            with stage.folder.unpacking():
                records.recall(saved["recorder"], stage.folder)
                done = saved["trace"]
                started -= done["seconds"][-1]

        def sweeps(number: int) -> Iterator[Recorder]:
            while True:
                if number == records.planned < most and records.needs_more:
                    records.extend(min(2 * number, most))
                if number == records.planned:
                    return
                number += 1
                records.record(number, over_chains.all(partial(records.sweep, number=number), chains))
                yield records

        def tree(trace: Mapping[str, Any]) -> Any:
            arrays = {name: np.array(numbers) for name, numbers in trace.items()}
            return {"chains": [chain.state for chain in chains], "recorder": records.memory, "trace": arrays}

        def keep(_: Any, trace: Mapping[str, Any]) -> None:
            if stage is not None:
                stage.step_in_place(len(trace["objective"]), partial(tree, trace))

        outcome = iterate(
            sweeps(0 if record is None else record.iteration),
            max_iter=most,
            started=started,
            initial=records,
            callback=callback,
            done=done,
            keep=keep,
        )
        sampled = records.sampled(outcome.status, outcome.trace)
        if stage is not None:
            if outcome.status is Status.INTERRUPTED:  # in the middle of a sweep, or by a signal after it
                stage.folder.flush()
            elif saves_end:
                status = None if outcome.status is Status.STOPPED else sampled.status
                stage.end(len(outcome.trace["objective"]), status, partial(tree, outcome.trace))
    return sampled
