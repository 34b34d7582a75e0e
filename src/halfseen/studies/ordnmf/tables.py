"""Tables 2 and 3: how OrdNMF ranks films and plays, beside the paper's other models and recommenders of other kinds.

Methods in rows, NDCG@100 by threshold in columns, the paper's numbers beside ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any, ClassVar, NamedTuple

import numpy as np

from halfseen.arrays import Array
from halfseen.observed import Observed
from halfseen.studies.base import Column, Goal, Result, Study, Table, Tell, mean_and_spread, tell_nobody, words
from halfseen.studies.ordnmf import PAPER
from halfseen.studies.ordnmf.methods import FULL, QUICK, Effort, of_table2, of_table3
from halfseen.studies.ordnmf.protocol import LENGTH, TEST_SHARE, Key, Measured, Method, measured, part
from halfseen.studies.ordnmf.sets import FILMS, MOVIELENS_20M, PLAYS, TASTE_PROFILE, Prepared, at_hand, quantized

Found = Mapping[Key, Measured | None]


class Printed(NamedTuple):
    """A row of a table, digit by digit: K, NDCG@100 by threshold s, and the log-likelihood where there is one."""

    K: str
    ndcg: tuple[str, ...]
    log_likelihood: str | None = None


#: Relevance thresholds on a scale from 1 to 10: half stars.
TABLE2_THRESHOLDS = (1, 4, 6, 8, 10)

#: By model and data. MovieLens 20M, 20,000 users by 12,000 films.
TABLE2 = {
    ("OrdNMF", "R"): Printed("150", ("0.444", "0.444", "0.439", "0.414", "0.353")),
    ("BePoF", "B (>= 1)"): Printed("50", ("0.433", "0.430", "0.421", "0.383", "0.310")),
    ("PF", "B (>= 1)"): Printed("100", ("0.431", "0.428", "0.418", "0.380", "0.306")),
    ("BePoF", "B (>= 8)"): Printed("50", ("0.389", "0.393", "0.399", "0.408", "0.369")),
    ("PF", "B (>= 8)"): Printed("150", ("0.386", "0.389", "0.395", "0.403", "0.365")),
}

#: Relevance thresholds in plays.
TABLE3_THRESHOLDS = (1, 3, 6, 11, 21, 51)

#: By model and data. Taste Profile, 16,000 users by 12,000 songs.
TABLE3 = {
    ("OrdNMF", "Q"): Printed("250", ("0.213", "0.174", "0.153", "0.135", "0.123", "0.117"), "-2.8e5"),
    ("dcPF", "R"): Printed("150", ("0.209", "0.173", "0.154", "0.137", "0.128", "0.121"), "-3.0e5"),
    ("BePoF", "B (>= 1)"): Printed("250", ("0.210", "0.170", "0.149", "0.131", "0.120", "0.115")),
    ("PF", "B (>= 1)"): Printed("250", ("0.206", "0.167", "0.146", "0.129", "0.118", "0.115")),
}


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
    #: The methods in rows, and the ordered levels of values.
    rows_and_levels: ClassVar[tuple[Callable[[Effort], Sequence[Method]], Callable[[Observed], Observed]]]

    def __init__(self, only: Sequence[str] | None = None) -> None:
        self.only = only

    def run(self, *, quick: bool = False, seed: int = 0, tell: Tell = tell_nobody) -> Result:
        effort = QUICK if quick else FULL
        methods_of, levels_of = self.rows_and_levels
        tables, sentences, goals = [], [], []
        for of in [self._sets()[-1].part()] if quick else self._sets():
            raw = of.load(seed)
            parted = part(raw, levels_of, seed)

            def progress(what: str, title: str = of.title) -> None:
                tell(f"{title}: {what}")

            found = {
                method.key: measured(method, parted, self.thresholds, self.choosing_at, effort.starts, seed, progress)
                for method in methods_of(effort)
            }
            title = f"NDCG@{LENGTH} by the threshold s of relevance: {of.title}, {raw.shape[0]:,} x {raw.shape[1]:,}"
            rows = [self._row(key, ours) for key, ours in found.items()]
            footnotes = [self._ordering(found), *self._remarks(of, raw, effort)]
            tables.append(Table(title, self._columns(), rows, footnotes, of.name))
            sentences.append(self._best(of, found))
            goals.append(Goal(f"{of.title}: the paper's models in its order at every s", not self._turned(found)))
        return Result(" ".join(sentences), tables, goals=[] if quick else goals)

    def _sets(self) -> Sequence[Prepared]:
        if self.only is not None:
            return [one for one in (self.set_of_the_paper, *self.sets_instead) if one.name in self.only]
        return at_hand(self.set_of_the_paper, self.sets_instead, self.absent())

    def _columns(self) -> list[Column]:
        columns = [Column("model"), Column("data"), Column("paper", "setting"), Column("ours", "setting")]
        groups = [(f"s = {s}", ".3f", ".4f") for s in self.thresholds]
        if self.has_log_likelihood:
            groups.append(("log-likelihood", ",.0f", ",.0f"))
        for group, form, spread_form in groups:
            columns += [Column("paper", group), Column("ours", group, form), Column("S.D.", group, spread_form)]
        return columns

    def _row(self, key: Key, ours: Measured | None) -> list[Any]:
        printed = self.printed.get(key)
        setting = "not installed" if ours is None else words(ours.setting)
        row: list[Any] = [*key, printed and f"K {printed.K}", setting]
        groups = [(printed and printed.ndcg[at], ours and ours.ndcg[:, at]) for at in range(len(self.thresholds))]
        if self.has_log_likelihood:
            groups.append((printed and printed.log_likelihood, ours and ours.log_likelihood))
        for theirs, values in groups:
            row += [theirs, *((None, None) if values is None else mean_and_spread(values))]
        return row

    def _best(self, of: Prepared, found: Found) -> str:
        """Which method ranks best at which thresholds."""
        ours = _means(found)
        best = np.argmax(list(ours.values()), axis=0)
        names = [f"{list(ours)[one][0]} at s = {self._listed(np.flatnonzero(best == one))}" for one in np.unique(best)]
        return f"{of.title}: ranked best by {', '.join(names)}."

    def _ordering(self, found: Found) -> str:
        """Where two of the paper's models stand otherwise than in the paper, in words."""
        turned = self._turned(found)
        if not turned:
            return "The paper's models stand in the paper's order at every s."
        places = [f"{' '.join(a)} and {' '.join(b)} at s = {self._listed(at)}" for (a, b), at in turned.items()]
        return f"In another order than in the paper stand {'; '.join(places)}."

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


class Table2(RankingTable):
    name = "ordnmf/table2"
    title = "Ranking films by their ratings: NDCG@100 of OrdNMF, of BePoF and PF of binary ratings, and of others"
    needs = (MOVIELENS_20M.name, *(one.name for one in FILMS))
    set_of_the_paper = MOVIELENS_20M
    sets_instead = FILMS
    printed = TABLE2
    thresholds = TABLE2_THRESHOLDS
    choosing_at = 8
    has_log_likelihood = False
    rows_and_levels = (of_table2, lambda raw: raw)


class Table3(RankingTable):
    name = "ordnmf/table3"
    title = "Ranking by play counts: NDCG@100 and log-likelihood of OrdNMF, dcPF, BePoF and PF, and of others"
    needs = (TASTE_PROFILE.name, *(one.name for one in PLAYS))
    set_of_the_paper = TASTE_PROFILE
    sets_instead = PLAYS
    printed = TABLE3
    thresholds = TABLE3_THRESHOLDS
    choosing_at = 1
    has_log_likelihood = True
    rows_and_levels = (of_table3, quantized)


STUDIES = (Table2(), Table3())
