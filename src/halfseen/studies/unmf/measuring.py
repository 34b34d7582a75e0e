"""Every method and baseline on one set of data, fold by fold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from halfseen.arrays import Array
from halfseen.data import Observed
from halfseen.studies.base import Tell
from halfseen.studies.unmf.baselines import BASELINES
from halfseen.studies.unmf.calibration import AT, calibrated
from halfseen.studies.unmf.methods import GIBBS, METHODS
from halfseen.studies.unmf.protocol import Effort, Fold, folds
from halfseen.studies.unmf.sets import DataSet

#: The rows of the tables.
NAMES = (*(method.name for method in METHODS), *BASELINES)


class Measured(NamedTuple):
    """Test MAE by method, as arrays of runs by numbers of comparisons: a run is a fold of a matrix, and what needs no
    comparisons is the same for every number. Calibrations by number of comparisons, as arrays of runs by kinds."""

    of: DataSet
    effort: Effort
    shape: tuple[int, int]
    errors: Mapping[str, Array]
    calibrations: Mapping[int, Array]

    @property
    def grid(self) -> Sequence[int]:
        """Numbers of comparisons."""
        return self.effort.grid

    @property
    def title(self) -> str:
        """What was measured: the data, or a part of them."""
        return f"{self.of.title} (a part)" if self.shape[0] == self.effort.rows else self.of.title

    def means(self, name: str) -> Array:
        """Of a method's test MAE over the runs, by number of comparisons."""
        means: Array = self.errors[name].mean(axis=0)
        return means

    def spreads(self, name: str) -> Array:
        """The standard deviations that go with them."""
        return np.std(self.errors[name], axis=0, ddof=1)

    def at(self, name: str, n_per: int) -> float:
        """The mean of a method with so many comparisons a row."""
        return float(self.means(name)[list(self.grid).index(n_per)])


def measured(of: DataSet, matrices: Sequence[Observed], effort: Effort, seed: int, tell: Tell) -> Measured:
    """All methods on the folds of all matrices, which were drawn with the seeds from `seed` on."""
    runs = []
    for draw, X in enumerate(matrices, seed):
        for number, fold in enumerate(folds(X, draw)[: effort.folds], 1):
            where = f"{of.title}, {f'draw {draw}, ' if of.draws > 1 else ''}fold {number}"
            runs.append(_run(fold, of, effort, draw, _telling(tell, where)))
    errors = {name: np.array([run.errors[name] for run in runs]) for name in NAMES}
    looked_at = runs[0].calibrations
    calibrations = {n_per: np.array([run.calibrations[n_per] for run in runs]) for n_per in looked_at}
    return Measured(of, effort, matrices[0].shape, errors, calibrations)


class _Run(NamedTuple):
    """One fold: test MAE by method, a list by number of comparisons, and calibrations by that number."""

    errors: Mapping[str, Sequence[float]]
    calibrations: Mapping[int, Sequence[float]]


def _run(fold: Fold, of: DataSet, effort: Effort, draw: int, tell: Tell) -> _Run:
    tell("baselines")
    errors = {name: [fold.error(ask(fold, of, effort))] * len(effort.grid) for name, ask in BASELINES.items()}
    errors |= {method.name: [] for method in METHODS}
    calibrations = {}
    for n_per in effort.grid:
        tell(f"{n_per} comparisons a row")
        seen = fold.taken_apart(n_per, draw)
        models = {method.name: method.fit(seen, of.k, effort, fold.seed) for method in METHODS}
        for name, model in models.items():
            errors[name].append(fold.error(model.predict(*fold.places)))
        if n_per in AT:
            calibrations[n_per] = calibrated(models[GIBBS.name], fold)
    return _Run(errors, calibrations)


def _telling(tell: Tell, where: str) -> Tell:
    return lambda what: tell(f"{where}: {what}")
