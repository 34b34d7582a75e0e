"""What Tables 2 and 3 have in common: methods in rows, NDCG@100 by threshold in columns, the paper's beside ours."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import combinations
from typing import Any, ClassVar

import numpy as np

from halfseen.arrays import Array
from halfseen.data import Observed
from halfseen.studies.base import Column, Goal, Result, Study, Table, Tell, tell_nobody
from halfseen.studies.ordnmf import PAPER
from halfseen.studies.ordnmf.methods import FULL, QUICK, Effort
from halfseen.studies.ordnmf.printed import Printed
from halfseen.studies.ordnmf.protocol import LENGTH, TEST_SHARE, Key, Measured, Method, measured, part, words
from halfseen.studies.ordnmf.sets import Prepared, at_hand

Found = Mapping[Key, Measured | None]


class RankingTable(Study):
    """A table for each set at hand. `RankingTable(["movielens-1m"])` works with these sets alone."""

    paper = PAPER
    set_of_the_paper: ClassVar[Prepared]
    sets_instead: ClassVar[Sequence[Prepared]]
    printed: ClassVar[Mapping[Key, Printed]]
    thresholds: ClassVar[tuple[int, ...]]
    #: The threshold at which settings are chosen; the paper's.
    choosing_at: ClassVar[int]
    has_log_likelihood: ClassVar[bool]

    def __init__(self, only: Sequence[str] | None = None) -> None:
        self.only = only

    @abstractmethod
    def methods(self, effort: Effort) -> Sequence[Method]:
        """The rows of the table."""

    @abstractmethod
    def levels(self, raw: Observed) -> Observed:
        """The ordered levels of the values."""

    def run(self, *, quick: bool = False, seed: int = 0, tell: Tell = tell_nobody) -> Result:
        effort = QUICK if quick else FULL
        tables, sentences, goals = [], [], []
        for of in [self._sets()[-1].part()] if quick else self._sets():
            raw = of.load(seed)
            found = self._measured(of, raw, effort, seed, tell)
            tables.append(self._table(of, raw, effort, found))
            sentences.append(self._best(of, found))
            goals.append(Goal(f"{of.title}: the paper's models in its order at every s", not self._turned(found)))
        return Result(" ".join(sentences), tables, goals=[] if quick else goals)

    def _sets(self) -> Sequence[Prepared]:
        if self.only is not None:
            return [one for one in (self.set_of_the_paper, *self.sets_instead) if one.name in self.only]
        return at_hand(self.set_of_the_paper, self.sets_instead, self.absent())

    def _measured(self, of: Prepared, raw: Observed, effort: Effort, seed: int, tell: Tell) -> Found:
        parted = part(raw, self.levels, seed)
        told = partial(_told_of, of, tell)
        return {
            method.key: measured(method, parted, self.thresholds, self.choosing_at, effort.starts, seed, told)
            for method in self.methods(effort)
        }

    def _table(self, of: Prepared, raw: Observed, effort: Effort, found: Found) -> Table:
        title = f"NDCG@{LENGTH} by the threshold s of relevance: {of.title}, {raw.shape[0]:,} x {raw.shape[1]:,}"
        rows = [self._row(key, ours) for key, ours in found.items()]
        return Table(title, self._columns(), rows, [self._ordering(found), *self._remarks(of, raw, effort)], of.name)

    def _columns(self) -> list[Column]:
        columns = [Column("model"), Column("data"), Column("paper", "setting"), Column("ours", "setting")]
        for s in self.thresholds:
            columns += _three(f"s = {s}", ".3f", ".4f")
        return columns + (_three("log-likelihood", ",.0f", ",.0f") if self.has_log_likelihood else [])

    def _row(self, key: Key, ours: Measured | None) -> list[Any]:
        printed = self.printed.get(key)
        setting = "not installed" if ours is None else words(ours.setting)
        row: list[Any] = [*key, printed and f"K {printed.K}", setting]
        for place in range(len(self.thresholds)):
            row += [printed and printed.ndcg[place], *_mean_and_spread(ours and ours.ndcg[:, place])]
        if self.has_log_likelihood:
            row += [printed and printed.log_likelihood, *_mean_and_spread(ours and ours.log_likelihood)]
        return row

    def _best(self, of: Prepared, found: Found) -> str:
        """Which method ranks best at which thresholds."""
        ours = _means(found)
        best = np.argmax(list(ours.values()), axis=0)
        told = [f"{list(ours)[one][0]} at s = {self._listed(np.flatnonzero(best == one))}" for one in np.unique(best)]
        return f"{of.title}: ranked best by {', '.join(told)}."

    def _ordering(self, found: Found) -> str:
        """Where two of the paper's models stand otherwise than in the paper, in words."""
        turned = self._turned(found)
        if not turned:
            return "The paper's models stand in the paper's order at every s."
        places = "; ".join(f"{_name(a)} and {_name(b)} at s = {self._listed(at)}" for (a, b), at in turned.items())
        return f"In another order than in the paper stand {places}."

    def _turned(self, found: Found) -> dict[tuple[Key, Key], Sequence[int]]:
        """Pairs of the paper's models that stand otherwise than in the paper, and at which thresholds."""
        ours = _means(found)
        return {
            (a, b): at
            for a, b in combinations([key for key in self.printed if key in ours], 2)
            if (at := turned_round([self.printed[a], self.printed[b]], [ours[a], ours[b]]))
        }

    def _listed(self, places: Iterable[int]) -> str:
        return ", ".join(str(self.thresholds[place]) for place in places)

    def _remarks(self, of: Prepared, raw: Observed, effort: Effort) -> list[str]:
        others = "" if of == self.set_of_the_paper else f" The paper's numbers are of {self.set_of_the_paper.title}."
        some = "" if effort.one_in == 1 else f", one setting in {effort.one_in} of what is there"
        remarks = [
            f"Data: {of.words}; {raw.nnz:,} cells.{others}",
            f"{TEST_SHARE:.0%} of the cells are for test. Every method's setting is the one that ranks best, at "
            f"s = {self.choosing_at}, another {TEST_SHARE:.0%} held out of the training cells; then it is fitted to "
            f"all training cells from {effort.starts} starts. S.D. is over the starts; EASE and popularity have none.",
            f"K of the paper's models is one of {', '.join(map(str, effort.K))}. What the others choose from: "
            f"halfseen.studies.ordnmf.methods{some}.",
        ]
        absent = [name for name in self.absent() if name != of.name]
        return remarks + ([f"Not in the data folder: {', '.join(absent)}."] if absent else [])


def turned_round(printed: Sequence[Printed], ours: Sequence[Array]) -> list[int]:
    """Of two models, at which thresholds the one that the paper prints ahead is not ahead here."""
    theirs = np.subtract(*(np.array(one.ndcg, float) for one in printed))
    return np.flatnonzero((theirs != 0) & (theirs * np.subtract(*ours) <= 0)).tolist()


def _means(found: Found) -> dict[Key, Array]:
    """The mean NDCG at each threshold, of the methods that were there."""
    return {key: one.ndcg.mean(axis=0) for key, one in found.items() if one is not None}


def _told_of(of: Prepared, tell: Tell, what: str) -> None:
    tell(f"{of.title}: {what}")


def _three(group: str, form: str, spread_form: str) -> list[Column]:
    return [Column("paper", group), Column("ours", group, form), Column("S.D.", group, spread_form)]


def _mean_and_spread(values: Array | None) -> list[float | None]:
    if values is None:
        return [None, None]
    return [float(values.mean()), float(values.std(ddof=1)) if values.size > 1 else None]


def _name(key: Key) -> str:
    return " ".join(key)
