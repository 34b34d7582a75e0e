"""Tables 2 and 3 of the OrdNMF paper: NDCG@100 of films and plays, the paper's models and other recommenders.

Methods in rows, relevance thresholds in columns, the paper's numbers beside ours.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from halfseen.arrays import Array
from halfseen.observed import Observed
from halfseen.studies import framework
from halfseen.studies import ordnmf_methods as ordnmf
from halfseen.studies.framework import Column, Goal, Progress, Result, RunSettings, Study, Table
from halfseen.studies.ordnmf_methods import LENGTH, TEST_SHARE, Dataset, Ranker, RankingConfig, score_rankers

#: Model and data.
Key = tuple[str, str]
#: Results of `score_rankers`; all but None for what is not installed.
Scores = Mapping[Key, Any]

#: Limits of ours for words of section 5.2 without numbers. "OrdNMF does not exhibit such differences" as BePoF: its
#: largest shortfall from the best model, as a share, is at most this part of either BePoF's (printed: 0.35). "OrdNMF is
#: competitive with dcPF": at most this share behind it (printed: 0.039).
NO_SUCH_DIFFERENCES, COMPETITIVE = 0.5, 0.05


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


class Summary(NamedTuple):
    """Row of our table, by which section 5.2 is judged: K, and means and S.D. over the starts (NaN for one start)."""

    K: int | None
    ndcg: Array
    std: Array
    log_likelihood: float | None = None
    log_likelihood_std: float | None = None


Summaries = Mapping[Key, Summary]


@dataclass(frozen=True)
class RankingTable(Study):
    """One table per available dataset, or per dataset in `only`.

    Settings are selected at the paper's threshold, `select_at`.
    """

    name: str
    title: str
    papers: Sequence[Dataset]
    substitutes: Sequence[Dataset]
    printed: Mapping[Key, PaperRow]
    thresholds: tuple[int, ...]
    select_at: int
    has_log_likelihood: bool
    rankers: Callable[[RankingConfig], Sequence[Ranker]]
    levels_of: Callable[[Observed], Observed]
    #: What section 5.2 says of the table, judged by its means and S.D. alone.
    claims: Callable[[Summaries], Sequence[Goal]]
    only: Sequence[str] | None = None

    @property
    def needs(self) -> tuple[str, ...]:
        return tuple(one.name for one in (*self.papers, *self.substitutes))

    def datasets(self) -> Sequence[Dataset]:
        """The datasets to run on."""
        if self.only is not None:
            return [one for one in (*self.papers, *self.substitutes) if one.name in self.only]
        return ordnmf.available(self.papers, self.substitutes, self.absent())

    def compute(self, settings: RunSettings, progress: Progress) -> Result:
        quick, seed = settings.quick, settings.seed
        config = replace(ordnmf.QUICK if quick else ordnmf.FULL, engine=settings.engine)
        tables, sentences, goals, substitutes = [], [], [], []
        for dataset in [self.datasets()[-1].sample()] if quick else self.datasets():
            raw = dataset.load(seed)
            cells = ordnmf.split(raw, self.levels_of, seed, dataset.split_seed)

            def titled(message: str, title: str = dataset.title) -> None:
                progress(f"{title}: {message}")

            scores = score_rankers(
                self.rankers(config), cells, self.thresholds, self.select_at, config.starts, settings, titled
            )
            means = {key: one.ndcg.mean(axis=0) for key, one in scores.items() if one is not None}
            table = self._table(dataset, raw, config, scores, self.order_in_words(means))
            tables.append(table)
            sentences.append(f"{dataset.title}: ranked best by {self.best_in_words(means)}.")
            if dataset.name in [one.name for one in self.papers]:
                goals += self.printed_goals(scores)
            else:
                substitutes.append(dataset.title)
            claims = self.claims(self.summaries(table))
            goals += [goal._replace(words=f"{dataset.title}: {goal.words}") for goal in claims]
        return Result(" ".join(sentences), tables, goals=goals, substitute=", ".join(substitutes))

    def printed_goals(self, scores: Scores) -> list[Goal]:
        """The numbers of the paper's table, on the paper's data."""
        goals = []
        for key, row in self.printed.items():
            for s, printed, draws in zip(self.thresholds, row.ndcg, scores[key].ndcg.T, strict=True):
                goals.append(Goal.printed(f"{' '.join(key)}, NDCG@{LENGTH} at s = {s}", printed, draws, "higher"))
            if row.log_likelihood is not None:
                number, _, exponent = row.log_likelihood.partition("e")
                words = f"{' '.join(key)}, log-likelihood in units of 1e{exponent}"
                goals.append(Goal.printed(words, number, scores[key].log_likelihood / 10 ** int(exponent), "higher"))
        return goals

    def _table(self, dataset: Dataset, raw: Observed, config: RankingConfig, scores: Scores, order: str) -> Table:
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
        is_paper = dataset.name in [one.name for one in self.papers]
        others = "" if is_paper else f" The paper's numbers are of its part of {self.papers[-1].title}."
        some = "" if config.one_in == 1 else f", one setting in {config.one_in} of what is there"
        footnotes = [
            order,
            f"Data: {dataset.words}; {raw.nnz:,} cells.{others}",
            f"{TEST_SHARE:.0%} of the cells are for test. Every method's setting is the one that ranks best, at "
            f"s = {self.select_at}, another {TEST_SHARE:.0%} held out of the training cells; then it is fitted to "
            f"all training cells from {config.starts} starts. S.D. is over the starts; EASE and popularity have none.",
            f"K of the paper's models is one of {', '.join(map(str, config.K))}, the shape alpha of their priors one "
            f"of {', '.join(map(str, config.alphas))}; the authors' script takes the K that is best on the test cells. "
            f"What the others choose from: halfseen.studies.ordnmf_methods{some}.",
        ]
        absent = [name for name in self.absent() if name != dataset.name]
        footnotes += [f"Not in the data folder: {', '.join(absent)}."] if absent and not is_paper else []
        title = f"NDCG@{LENGTH} by the threshold s of relevance: {dataset.title}, {raw.shape[0]:,} x {raw.shape[1]:,}"
        return Table(title, columns, rows, footnotes, dataset.name)

    def summaries(self, table: Table) -> dict[Key, Summary]:
        """The rows of one of our tables, also of a recorded one, without those that are not installed."""
        means, stds = (
            np.array([table.column(f"s = {s} {name}") for s in self.thresholds], dtype=np.float64).T
            for name in ("ours", "S.D.")
        )
        absent = [None] * len(table.rows)
        logs, log_stds = (
            table.column(f"log-likelihood {name}") if self.has_log_likelihood else absent for name in ("ours", "S.D.")
        )
        keys = zip(table.column("model"), table.column("data"), strict=True)
        K = [re.match(r"K (\d+)", setting) for setting in table.column("setting ours")]
        return {
            key: Summary(k and int(k[1]), *rest)
            for key, k, *rest in zip(keys, K, means, stds, logs, log_stds, strict=True)
            if not np.isnan(rest[0]).any()
        }

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


def ahead(
    words: str, rows: Summaries, first: Key, others: Sequence[Key], thresholds: Sequence[int], places: Sequence[int]
) -> Goal:
    """The claim that a model ranks better than others at some thresholds, by the means over starts.

    The words end with the smallest lead, and the S.D. over the starts of both models.
    """
    leads = [(float(rows[first].ndcg[at] - rows[other].ndcg[at]), at, other) for other in others for at in places]
    lead, at, other = min(leads)
    words += f" (smallest lead {lead:+.4f}, over {' '.join(other)} at s = {thresholds[at]}; "
    return Goal.claim(f"{words}{stds_in_words(rows, [first, other], at)})", lead > 0)


def stds_in_words(rows: Summaries, keys: Sequence[Key], at: int) -> str:
    """S.D. over the starts of some models at one threshold."""
    return f"S.D. {' and '.join('-' if np.isnan(rows[key].std[at]) else f'{rows[key].std[at]:.4f}' for key in keys)}"


def table2_claims(rows: Summaries) -> list[Goal]:
    """Section 5.2 on MovieLens, at the thresholds s = 1, 4, 6, 8, 10."""
    at, every, small, high = (1, 4, 6, 8, 10), range(5), [0, 1], [3, 4]
    ordnmf, one, eight = ("OrdNMF", "R"), "B (>= 1)", "B (>= 8)"
    binary = [(model, data) for data in (one, eight) for model in ("BePoF", "PF")]
    goals = [
        ahead(f"BePoF is slightly better than PF: {data}", rows, ("BePoF", data), [("PF", data)], at, every)
        for data in (one, eight)
    ]
    for data in (one, eight):
        ours, theirs = (rows[model, data].K for model in ("BePoF", "PF"))
        words = f"BePoF requires less latent factors than PF: {data} (K {ours}, {theirs})"
        goals.append(Goal.claim(words, bool(ours and theirs and ours < theirs)))
    best = [("OrdNMF", "R"), ("BePoF", one), ("PF", one), ("PF", eight)]
    goals += [
        ahead("BePoF of data >= 1 performs well on small s, that of data >= 8 poorly: s = 1 and 4", rows,
              ("BePoF", one), [("BePoF", eight), ("PF", eight)], at, small),
        ahead("BePoF of data >= 1 has poor performance after, behind that of data >= 8: s = 8 and 10", rows,
              ("BePoF", eight), [("BePoF", one)], at, high),
        ahead("BePoF of data >= 1 has poor performance after, behind OrdNMF: s = 8 and 10", rows, ordnmf,
              [("BePoF", one)], at, high),
        ahead("BePoF of data >= 8 achieves the best performance for s = 10", rows, ("BePoF", eight), best, at, [4]),
        ahead("OrdNMF outperforms BePoF and PF applied to binarized data: bold at s = 1 to 8", rows, ordnmf, binary,
              at, range(4)),
    ]  # fmt: skip

    models = [ordnmf, ("BePoF", one), ("BePoF", eight)]
    highest = np.max([rows[key].ndcg for key in (ordnmf, *binary)], axis=0)
    shortfalls = [1 - rows[key].ndcg / highest for key in models]
    worst = [float(shortfall.max()) for shortfall in shortfalls]
    place = int(shortfalls[0].argmax())
    words = f"OrdNMF does not exhibit such differences between NDCG scores as BePoF (it is up to {worst[0]:.1%} below "
    words += f"the best model of an s, at s = {at[place]}, BePoF of data >= 1 {worst[1]:.1%}, of data >= 8 "
    words += f"{worst[2]:.1%}; at most {NO_SUCH_DIFFERENCES:g} of either; {stds_in_words(rows, [ordnmf], place)})"
    goals.append(Goal.claim(words, worst[0] <= NO_SUCH_DIFFERENCES * min(worst[1:])))

    models = [ordnmf, ("BePoF", one), ("PF", one)]
    falls = [float(1 - rows[key].ndcg[4] / rows[key].ndcg[3]) for key in models]
    words = "OrdNMF has a small decrease of the performance with s = 10, smaller than BePoF and PF of data >= 1 have "
    words += f"(from s = 8 to 10 by {falls[0]:.1%}, BePoF {falls[1]:.1%}, PF {falls[2]:.1%}; "
    words += f"{stds_in_words(rows, models, 4)} at s = 10)"
    is_lowest = bool(rows[ordnmf].ndcg[4] < rows[ordnmf].ndcg[:4].min())
    goals.append(Goal.claim(words, is_lowest and falls[0] < min(falls[1:])))
    return goals


def table3_claims(rows: Summaries) -> list[Goal]:
    """Section 5.2 on the Taste Profile, at the thresholds s = 1, 3, 6, 11, 21, 51."""
    at, ordnmf, dcpf = (1, 3, 6, 11, 21, 51), ("OrdNMF", "Q"), ("dcPF", "R")
    binary = [("BePoF", "B (>= 1)"), ("PF", "B (>= 1)")]
    behind = 1 - rows[ordnmf].ndcg / rows[dcpf].ndcg
    place = int(behind.argmax())
    competitive = f"OrdNMF is competitive with dcPF: at most {COMPETITIVE:.0%} behind at every s ({behind[place]:+.1%} "
    competitive += f"at s = {at[place]}; {stds_in_words(rows, [ordnmf, dcpf], place)})"
    ours, theirs = (rows[key].log_likelihood for key in (ordnmf, dcpf))
    stds = " and ".join(
        "-" if std is None else f"{std:,.0f}" for std in (rows[key].log_likelihood_std for key in (ordnmf, dcpf))
    )
    words = f"OrdNMF presents a higher log-likelihood score than dcPF ({ours:,.0f} and {theirs:,.0f}; S.D. {stds})"
    return [
        ahead("OrdNMF outperforms BePoF and PF which exploit less data information", rows, ordnmf, binary, at,
              range(6)),
        Goal.claim(competitive, bool(behind[place] <= COMPETITIVE)),
        ahead("dcPF gives the best results for the highest thresholds: bold at s = 6 to 51", rows, dcpf,
              [ordnmf, *binary], at, range(2, 6)),
        Goal.claim(words, bool(ours is not None and theirs is not None and ours > theirs)),
    ]  # fmt: skip


STUDIES = (
    RankingTable(  # thresholds in half stars
        "ordnmf/table2",
        "Ranking films by their ratings: NDCG@100 of OrdNMF, of BePoF and PF of binary ratings, and of others",
        ordnmf.PAPER_FILMS, ordnmf.FILMS, TABLE2, thresholds=(1, 4, 6, 8, 10), select_at=8, has_log_likelihood=False,
        rankers=ordnmf.table2_rankers, levels_of=ordnmf.as_they_are, claims=table2_claims,
    ),
    RankingTable(  # thresholds in plays
        "ordnmf/table3",
        "Ranking by play counts: NDCG@100 and log-likelihood of OrdNMF, dcPF, BePoF and PF, and of others",
        ordnmf.PAPER_PLAYS, ordnmf.PLAYS, TABLE3, thresholds=(1, 3, 6, 11, 21, 51), select_at=1,
        has_log_likelihood=True, rankers=ordnmf.table3_rankers, levels_of=ordnmf.quantize,
        claims=table3_claims,
    ),
)  # fmt: skip
