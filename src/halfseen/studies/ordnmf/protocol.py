"""How every method is measured: a setting chosen by cells held out of training, several starts, the test cells."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from halfseen.arrays import Array
from halfseen.io import split_cells
from halfseen.metrics import ndcg_at_k
from halfseen.observed import Observed
from halfseen.studies.base import Tell, words
from halfseen.studies.ordnmf.neighbours import is_installed

#: The paper's share of test cells; as much of what is left is held out to choose settings by.
TEST_SHARE = 0.2
#: The paper's length of a list of recommendations.
LENGTH = 100

Setting = Mapping[str, Any]
#: A model and its data.
Key = tuple[str, str]


class Cells(NamedTuple):
    """Cells as methods take them: values as they are, and as ordered levels."""

    raw: Observed
    levels: Observed


class Parted(NamedTuple):
    """The cells of a set: all for training, those held out of these and what remains, and the test cells."""

    train: Cells
    test: Cells
    fitted: Cells
    held_out: Cells


@dataclass(frozen=True)
class Method:
    """A row of a table: a model of data, its settings to choose from, and how it is fitted."""

    model: str
    data: str
    grid: Sequence[Setting]
    fit: Callable[[Cells, Setting, int], Any]
    """From training cells, a setting and a seed to what `ndcg_at_k` ranks by."""
    starts_at_random: bool = True
    package: str | None = None
    log_likelihood: Callable[[Any, Cells], float] | None = None
    """Of test cells, by Eq. 39."""

    @property
    def key(self) -> Key:
        return self.model, self.data


class Measured(NamedTuple):
    """What came of a method: its setting, NDCG@100 (starts, thresholds), log-likelihoods (starts) if it has any."""

    setting: Setting
    ndcg: Array
    log_likelihood: Array | None


def part(raw: Observed, levels_of: Callable[[Observed], Observed], seed: int) -> Parted:
    """Test cells, and cells held out of the others, drawn uniformly."""
    train, test = split_cells(raw, TEST_SHARE, random_state=seed)
    fitted, held_out = split_cells(train, TEST_SHARE, random_state=seed)
    return Parted(*(Cells(cells, levels_of(cells)) for cells in (train, test, fitted, held_out)))


def ndcg(model: Any, train: Cells, test: Cells, thresholds: Sequence[int]) -> Array:
    """NDCG@100 at each threshold; only what was not seen in training is ranked, whatever the model made of it."""
    return np.asarray(ndcg_at_k(model, train.raw, test.raw, LENGTH, list(thresholds)))


def chosen(method: Method, parted: Parted, threshold: int, seed: int, tell: Tell) -> Setting:
    """The setting with the best ranking of the cells held out of training; test cells are not looked at."""
    if len(method.grid) == 1:
        return method.grid[0]

    def score(setting: Setting) -> float:
        tell(f"{method.model} {method.data}, choosing: {words(setting)}")
        model = method.fit(parted.fitted, setting, seed)
        return float(ndcg(model, parted.fitted, parted.held_out, [threshold])[0])

    return max(method.grid, key=score)


def measured(
    method: Method, parted: Parted, thresholds: Sequence[int], threshold: int, starts: int, seed: int, tell: Tell
) -> Measured | None:
    """A method on the test cells, from several starts, its setting chosen at one threshold; None: not installed."""
    if method.package and not is_installed(method.package):
        return None
    setting = chosen(method, parted, threshold, seed, tell)
    ndcgs, log_likelihoods = [], []
    for start in range(starts if method.starts_at_random else 1):
        tell(f"{method.model} {method.data}, {words(setting)}, start {start + 1}")
        model = method.fit(parted.train, setting, seed + start)
        ndcgs.append(ndcg(model, parted.train, parted.test, thresholds))
        if method.log_likelihood is not None:
            log_likelihoods.append(method.log_likelihood(model, parted.test))
    return Measured(setting, np.array(ndcgs), np.array(log_likelihoods) if log_likelihoods else None)
