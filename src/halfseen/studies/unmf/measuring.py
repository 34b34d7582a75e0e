"""Every method and baseline on one set of data, fold by fold, and the goals that were to be reached."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from halfseen.arrays import Array
from halfseen.studies.base import Tell
from halfseen.studies.unmf.methods import BASELINES, GIBBS, HALF, METHODS, NAMES, ROW_MEAN, WHOLE
from halfseen.studies.unmf.protocol import MOVIELENS, SUSHI, SYNTHETIC, DataSet, Effort, Fold, folds

#: The level of intervals whose coverage is measured, and the numbers of comparisons at which it is.
LEVEL = 0.9
AT = (6, 12, 20, 28)

#: Goals. The largest test MAE of sampled couplings, by data and comparisons a row.
LARGEST = {SYNTHETIC.title: {28: 0.66}, MOVIELENS.title: {12: 0.400, 28: 0.388}, SUSHI.title: {12: 0.905, 28: 0.900}}
#: Nowhere may they be worse than the row mean by more than this factor.
AGAINST_ROW_MEAN = 1.02
#: Five-fold figures of a prototype that was written before, and how far ours may be from them.
EARLIER = {
    (HALF.name, MOVIELENS.title): {6: 1.04, 12: 0.811, 20: 0.697, 28: 0.620},
    (WHOLE.name, MOVIELENS.title): {6: 0.552, 12: 0.508, 20: 0.480, 28: 0.471},
    (HALF.name, SUSHI.title): {6: 1.60, 12: 1.33, 20: 1.30, 28: 1.30},
    (WHOLE.name, SUSHI.title): {6: 1.48, 12: 1.26, 20: 1.21, 28: 1.20},
}
TOLERANCE = 0.05


class Calibration(NamedTuple):
    """Of one fit: how many test cells lie in their intervals, how wide these are, the mean disclosure risk of the
    asked cells, and how many of these have the answer that was most likely."""

    coverage: float
    width: float
    risk: float
    hits: float


def calibrated(model: Any, fold: Fold) -> Calibration:
    """Of a model with sampled couplings, by the values that it was not given: this chooses nothing."""
    low, high = model.predict_interval(*fold.places, LEVEL)
    answer: Array = model.coupling().answer  # cells in the order of the training cells
    return Calibration(
        float(np.mean((low <= fold.test.values) & (fold.test.values <= high))),
        float(np.mean(high - low)),
        float(model.disclosure_risk().mean()),
        float(np.mean(answer == fold.train.values)),
    )


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
        return np.asarray(self.errors[name].mean(axis=0))

    def spreads(self, name: str) -> Array:
        """The standard deviations that go with them."""
        return np.std(self.errors[name], axis=0, ddof=1)

    def at(self, name: str, n_per: int) -> float:
        """The mean of a method with so many comparisons a row."""
        return float(self.means(name)[list(self.grid).index(n_per)])


def measured(of: DataSet, effort: Effort, seed: int, tell: Tell) -> Measured:
    """All methods on the folds of all matrices, which are drawn with the seeds from `seed` on."""
    draws = range(seed, seed + (of.draws if effort.every_draw else 1))
    matrices = [of.load(draw, effort.rows) for draw in draws]
    runs: dict[str, list[list[float]]] = {name: [] for name in NAMES}
    calibrations: dict[int, list[Calibration]] = {}
    for draw, X in zip(draws, matrices, strict=True):
        for number, fold in enumerate(folds(X, draw)[: effort.folds], 1):
            where = f"{of.title}, {f'draw {draw}, ' if of.draws > 1 else ''}fold {number}"
            tell(f"{where}: baselines")
            for name, predict in BASELINES.items():
                runs[name].append([fold.error(predict(fold, of, effort))] * len(effort.grid))
            for method in METHODS:
                runs[method.name].append([])
            for n_per in effort.grid:
                tell(f"{where}: {n_per} comparisons a row")
                seen = fold.taken_apart(n_per, draw)
                models = {method.name: method.fit(seen, of.k, effort, fold.seed) for method in METHODS}
                for name, model in models.items():
                    runs[name][-1].append(fold.error(model.predict(*fold.places)))
                if n_per in AT:
                    calibrations.setdefault(n_per, []).append(calibrated(models[GIBBS.name], fold))
    errors = {name: np.array(of_folds) for name, of_folds in runs.items()}
    shape = matrices[0].shape
    return Measured(of, effort, shape, errors, {n_per: np.array(found) for n_per, found in calibrations.items()})


class Judgement(NamedTuple):
    """A row of the table of goals: whose, on which data, with how many comparisons; what was to be, what is."""

    method: str
    data: str
    comparisons: int
    wanted: str
    ours: float
    reached: bool


def judgements(found: Measured) -> Iterator[Judgement]:
    """All that can be judged by what was measured on one set of data."""
    data = found.of.title
    for n_per, largest in LARGEST[data].items():
        if n_per in found.grid:
            ours = found.at(GIBBS.name, n_per)
            yield Judgement(GIBBS.name, data, n_per, f"at most {largest:.3f}", ours, ours <= largest)
    # where sampled couplings are worst, as seen from the row mean
    means, row_means = found.means(GIBBS.name), found.means(ROW_MEAN)
    worst = int((means / row_means).argmax())
    largest, ours = AGAINST_ROW_MEAN * row_means[worst], float(means[worst])
    wanted = f"at most {largest:.3f}, {AGAINST_ROW_MEAN:g} times the row mean, at every number: here the worst"
    yield Judgement(GIBBS.name, data, found.grid[worst], wanted, ours, bool(ours <= largest))
    for (name, where), figures in EARLIER.items():
        for n_per, earlier in figures.items():
            if where == data and n_per in found.grid:
                ours = found.at(name, n_per)
                near = abs(ours - earlier) <= TOLERANCE * earlier
                yield Judgement(name, data, n_per, f"{earlier:#.3g} within {TOLERANCE:.0%}", ours, near)
