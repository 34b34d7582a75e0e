"""Tables 2 and 3 of the OrdNMF paper: NDCG@100 of films and plays, the paper's models and other recommenders.

Methods in rows, relevance thresholds in columns, the paper's numbers beside ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from halfseen.arrays import Array
from halfseen.observed import Observed
from halfseen.studies import framework
from halfseen.studies import ordnmf_methods as ordnmf
from halfseen.studies.framework import Column, Goal, Progress, Result, RunSettings, Study, Table
from halfseen.studies.ordnmf_methods import LENGTH, TEST_SHARE, Dataset, Ranker, RankingConfig, score_ranker

#: Model and data.
Key = tuple[str, str]


class PaperRow(NamedTuple):
    """Row of a table, digit by digit: K, NDCG@100 by threshold s, and the log-likelihood where there is one."""

    K: str
    ndcg: tuple[str, ...]
    log_likelihood: str | None = None


#: MovieLens 20M, 20,000 users by 12,000 films.
TABLE2 = {
    ("OrdNMF", "R"): PaperRow("150", ("0.444", "0.444", "0.439", "0.414", "0.353")),
    ("BePoF", "B (>= 1)"): PaperRow("50", ("0.433", "0.430", "0.421", "0.383", "0.310")),
    ("PF", "B (>= 1)"): PaperRow("100", ("0.431", "0.428", "0.418", "0.380", "0.306")),
    ("BePoF", "B (>= 8)"): PaperRow("50", ("0.389", "0.393", "0.399", "0.408", "0.369")),
    ("PF", "B (>= 8)"): PaperRow("150", ("0.386", "0.389", "0.395", "0.403", "0.365")),
}
#: Taste Profile, 16,000 users by 12,000 songs.
TABLE3 = {
    ("OrdNMF", "Q"): PaperRow("250", ("0.213", "0.174", "0.153", "0.135", "0.123", "0.117"), "-2.8e5"),
    ("dcPF", "R"): PaperRow("150", ("0.209", "0.173", "0.154", "0.137", "0.128", "0.121"), "-3.0e5"),
    ("BePoF", "B (>= 1)"): PaperRow("250", ("0.210", "0.170", "0.149", "0.131", "0.120", "0.115")),
    ("PF", "B (>= 1)"): PaperRow("250", ("0.206", "0.167", "0.146", "0.129", "0.118", "0.115")),
}


@dataclass(frozen=True)
class RankingTable(Study):
    """One table per available dataset, or per dataset in `only`.

    Settings are selected at the paper's threshold, `select_at`.
    """

    name: str
    title: str
    dataset: Dataset
    substitutes: Sequence[Dataset]
    printed: Mapping[Key, PaperRow]
    thresholds: tuple[int, ...]
    select_at: int
    has_log_likelihood: bool
    rankers: Callable[[RankingConfig], Sequence[Ranker]]
    levels_of: Callable[[Observed], Observed]
    only: Sequence[str] | None = None

    @property
    def needs(self) -> tuple[str, ...]:
        return tuple(one.name for one in (self.dataset, *self.substitutes))

    def datasets(self) -> Sequence[Dataset]:
        """The datasets to run on."""
        if self.only is not None:
            return [one for one in (self.dataset, *self.substitutes) if one.name in self.only]
        return ordnmf.available(self.dataset, self.substitutes, self.absent())

    def compute(self, settings: RunSettings, progress: Progress) -> Result:
        quick, seed = settings.quick, settings.seed
        config = ordnmf.QUICK if quick else ordnmf.FULL
        tables, sentences, goals = [], [], []
        for dataset in [self.datasets()[-1].sample()] if quick else self.datasets():
            raw = dataset.load(seed)
            cells = ordnmf.split(raw, self.levels_of, seed)

            def titled(message: str, title: str = dataset.title) -> None:
                progress(f"{title}: {message}")

            scores = {
                ranker.key: score_ranker(ranker, cells, self.thresholds, self.select_at, config.starts, seed, titled)
                for ranker in self.rankers(config)
            }
            means = {key: one.ndcg.mean(axis=0) for key, one in scores.items() if one is not None}
            tables.append(self._table(dataset, raw, config, scores, self.order_in_words(means)))
            sentences.append(f"{dataset.title}: ranked best by {self.best_in_words(means)}.")
            goals.append(
                Goal.claim(f"{dataset.title}: the paper's models in its order at every s", not self._reversed(means))
            )
        return Result(" ".join(sentences), tables, goals=goals)

    def _table(
        self, dataset: Dataset, raw: Observed, config: RankingConfig, scores: Mapping[Key, Any], order: str
    ) -> Table:
        columns = [Column("model"), Column("data"), Column("paper", "setting"), Column("ours", "setting")]
        groups = [(f"s = {s}", ".3f", ".4f") for s in self.thresholds]
        if self.has_log_likelihood:
            groups.append(("log-likelihood", ",.0f", ",.0f"))
        for group, form, std_form in groups:
            columns += [Column("paper", group), Column("ours", group, form), Column("S.D.", group, std_form)]
        rows = []
        for key, ours in scores.items():
            printed = self.printed.get(key)
            setting = "not installed" if ours is None else framework.describe(ours.setting)
            row: list[Any] = [*key, printed and f"K {printed.K}", setting]
            pairs = [(printed and printed.ndcg[at], ours and ours.ndcg[:, at]) for at in range(len(self.thresholds))]
            if self.has_log_likelihood:
                pairs.append((printed and printed.log_likelihood, ours and ours.log_likelihood))
            for theirs, values in pairs:
                row += [theirs, *((None, None) if values is None else framework.mean_and_std(values))]
            rows.append(row)
        others = "" if dataset == self.dataset else f" The paper's numbers are of {self.dataset.title}."
        some = "" if config.one_in == 1 else f", one setting in {config.one_in} of what is there"
        footnotes = [
            order,
            f"Data: {dataset.words}; {raw.nnz:,} cells.{others}",
            f"{TEST_SHARE:.0%} of the cells are for test. Every method's setting is the one that ranks best, at "
            f"s = {self.select_at}, another {TEST_SHARE:.0%} held out of the training cells; then it is fitted to "
            f"all training cells from {config.starts} starts. S.D. is over the starts; EASE and popularity have none.",
            f"K of the paper's models is one of {', '.join(map(str, config.K))}. What the others choose from: "
            f"halfseen.studies.ordnmf_methods{some}.",
        ]
        absent = [name for name in self.absent() if name != dataset.name]
        footnotes += [f"Not in the data folder: {', '.join(absent)}."] if absent else []
        title = f"NDCG@{LENGTH} by the threshold s of relevance: {dataset.title}, {raw.shape[0]:,} x {raw.shape[1]:,}"
        return Table(title, columns, rows, footnotes, dataset.name)

    def best_in_words(self, means: Mapping[Key, Array]) -> str:
        """Which method ranks best at which thresholds."""
        best = np.argmax(list(means.values()), axis=0)
        return ", ".join(
            f"{list(means)[one][0]} at s = {self._listed(np.flatnonzero(best == one))}" for one in np.unique(best)
        )

    def order_in_words(self, means: Mapping[Key, Array]) -> str:
        """Pairs of the paper's models that stand in another order than in the paper."""
        pairs = self._reversed(means)
        if not pairs:
            return "The paper's models stand in the paper's order at every s."
        places = [f"{' '.join(a)} and {' '.join(b)} at s = {self._listed(at)}" for (a, b), at in pairs.items()]
        return f"In another order than in the paper stand {'; '.join(places)}."

    def _reversed(self, means: Mapping[Key, Array]) -> dict[tuple[Key, Key], Sequence[int]]:
        """Pairs of the paper's models in another order than in the paper, and at which thresholds."""
        return {
            (a, b): at
            for a, b in combinations([key for key in self.printed if key in means], 2)
            if (at := reversed_at([self.printed[a], self.printed[b]], [means[a], means[b]]))
        }

    def _listed(self, places: Iterable[int]) -> str:
        return ", ".join(str(self.thresholds[place]) for place in places)


def reversed_at(printed: Sequence[PaperRow], ours: Sequence[Array]) -> list[int]:
    """Thresholds at which the one of two models that the paper prints ahead is not ahead here."""
    theirs = np.subtract(*(np.array(one.ndcg, float) for one in printed))
    return np.flatnonzero((theirs != 0) & (theirs * np.subtract(*ours) <= 0)).tolist()


STUDIES = (
    RankingTable(  # thresholds in half stars
        "ordnmf/table2",
        "Ranking films by their ratings: NDCG@100 of OrdNMF, of BePoF and PF of binary ratings, and of others",
        ordnmf.MOVIELENS_20M, ordnmf.FILMS, TABLE2, thresholds=(1, 4, 6, 8, 10), select_at=8, has_log_likelihood=False,
        rankers=ordnmf.table2_rankers, levels_of=lambda raw: raw,
    ),
    RankingTable(  # thresholds in plays
        "ordnmf/table3",
        "Ranking by play counts: NDCG@100 and log-likelihood of OrdNMF, dcPF, BePoF and PF, and of others",
        ordnmf.TASTE_PROFILE, ordnmf.PLAYS, TABLE3, thresholds=(1, 3, 6, 11, 21, 51), select_at=1,
        has_log_likelihood=True, rankers=ordnmf.table3_rankers, levels_of=ordnmf.quantize,
    ),
)  # fmt: skip
