"""Tables of the thesis on generalized round-rank: completion of small matrices (4.1 to 4.3) and ratings (4.4).

The thesis's numbers, digit by digit, beside ours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import numpy as np

import halfseen
from halfseen.arrays import Array
from halfseen.datasets import load_ratings, load_split
from halfseen.io import k_folds, split_cells
from halfseen.metrics import ranked_probability_score
from halfseen.observed import Observed
from halfseen.studies import framework
from halfseen.studies import grr_methods as grr
from halfseen.studies.framework import (
    Column,
    Goal,
    Progress,
    Result,
    RunSettings,
    Setting,
    Study,
    Table,
    describe,
    no_progress,
)
from halfseen.studies.grr_methods import LINEAR, ROUND, ROUND_FIXED, SIGMOID, SIGMOID_FIXED, MatrixFamily, Method

#: Tables 4.1 to 4.3: share of all cells that is for training.
PROPORTIONS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)

#: RMSE at each proportion, by row.
Rows = dict[str, tuple[str, ...]]

TABLE4_1: Rows = {
    LINEAR: ("0.50", "0.50", "0.50", "0.50", "0.50", "0.50", "0.50", "0.50"),
    SIGMOID: ("0.51", "0.30", "0.25", "0.25", "0.26", "0.25", "0.23", "0.23"),
    SIGMOID_FIXED: ("0.58", "0.37", "0.36", "0.36", "0.35", "0.35", "0.34", "0.34"),
    ROUND: ("0.46", "0.34", "0.27", "0.25", "0.26", "0.21", "0.20", "0.16"),
    ROUND_FIXED: ("0.38", "0.26", "0.23", "0.19", "0.15", "0.13", "0.15", "0.13"),
}
TABLE4_2: Rows = {
    LINEAR: ("0.49", "0.46", "0.46", "0.46", "0.46", "0.46", "0.46", "0.46"),
    SIGMOID: ("0.39", "0.26", "0.23", "0.23", "0.22", "0.21", "0.20", "0.20"),
    SIGMOID_FIXED: ("0.48", "0.49", "0.33", "0.31", "0.30", "0.29", "0.29", "0.29"),
    ROUND: ("0.71", "0.41", "0.35", "0.29", "0.29", "0.27", "0.23", "0.22"),
    ROUND_FIXED: ("0.61", "0.57", "0.39", "0.52", "0.58", "0.30", "0.29", "0.34"),
}
TABLE4_3: Rows = {
    LINEAR: ("1.73", "1.06", "0.97", "0.90", "0.85", "0.85", "0.87", "0.83"),
    SIGMOID: ("1.92", "0.53", "0.48", "0.42", "0.39", "0.38", "0.36", "0.35"),
    SIGMOID_FIXED: ("1.96", "1.54", "1.37", "1.32", "1.29", "1.28", "1.25", "1.23"),
    ROUND: ("1.49", "0.92", "0.60", "0.48", "0.48", "0.39", "0.30", "0.28"),
    ROUND_FIXED: ("2.44", "1.50", "1.50", "1.43", "1.36", "1.39", "1.44", "1.34"),
}

#: Share of the cells for test, and the folds by which settings are selected.
TEST_SHARE, FOLDS = 0.2, 3
SIZE = 50
SELECTED = "ours: whichever"


class CompletionConfig(NamedTuple):
    """Size of a run: proportions, seeds, the l2 to select from, epochs, and starts while selecting and afterwards."""

    proportions: Sequence[float]
    seeds: int
    l2: Sequence[float]
    epochs: int
    starts: tuple[int, int]


FULL = CompletionConfig(PROPORTIONS, 5, grr.L2, grr.EPOCHS, (1, 10))
QUICK = CompletionConfig((0.2, 0.8), 2, (0.1,), 4, (1, 1))


@dataclass(frozen=True)
class CompletionTable(Study):
    """Completion of matrices of one family: methods in rows, RMSE by the share of cells seen in columns."""

    name: str
    title: str
    family: MatrixFamily
    printed: Rows

    def compute(self, settings: RunSettings, progress: Progress) -> Result:
        quick, seed = settings.quick, settings.seed
        config = QUICK if quick else FULL
        scores: dict[str, Array] = {}  # RMSE of each row: (proportions, seeds)
        for place, proportion in enumerate(config.proportions):
            for number in range(config.seeds):
                progress(f"{proportion:.0%} seen, seed {seed + number}")
                train, test = split_levels(self.family.levels(SIZE, seed + number), proportion, seed + number)
                for name, error in self._test_rmse(train, test, config, seed + number).items():
                    scores.setdefault(name, np.empty((len(config.proportions), config.seeds)))[place, number] = error

        # columns in which ours are at or below the thesis's best, in the digits that it prints
        places = [PROPORTIONS.index(proportion) for proportion in config.proportions]
        theirs = np.array([[float(value) for value in row] for row in self.printed.values()]).min(axis=0)[places]
        means = {name: errors.mean(axis=1) for name, errors in scores.items()}
        best_rows = {
            f"The row {SELECTED!r}": means[SELECTED],
            "The best of our rows": np.min([*means.values()], axis=0),
        }
        sentences, goals = [], []
        for whose, ours in best_rows.items():
            reached = int(np.sum(np.round(ours, 2) <= theirs))
            sentences.append(f"{whose} is at or below the thesis's best in {reached} of {len(places)} columns.")
        for proportion, best, one in zip(config.proportions, theirs.tolist(), means[SELECTED].tolist(), strict=True):
            words = f"{SELECTED!r} with {proportion:.0%} seen: RMSE of at most {best}, the thesis's best"
            goals.append(Goal.claim(words, round(one, 2) <= best))
        return Result(" ".join(sentences), [self._table(config, scores)], goals=goals)

    def _test_rmse(self, train: Observed, test: Observed, config: CompletionConfig, seed: int) -> dict[str, float]:
        """RMSE at the test cells by row; the last is the one of ours with the lowest RMSE over the folds."""
        folds = list(k_folds(train, FOLDS, seed))
        errors, held_out = {}, {}

        def test_rmse(method: Method, setting: Setting) -> float:
            return grr.rmse(grr.squared_errors(method.fit(train, setting, seed), test))

        for method in grr.thesis_methods(self.family, SIZE, config.epochs):
            errors[method.name] = test_rmse(method, {})
        few, many = (grr.our_methods(self.family, config.l2, starts) for starts in config.starts)
        for method, afterwards in zip(few, many, strict=True):
            setting, held_out[method.name] = grr.select_setting(method, folds, seed, no_progress)
            errors[method.name] = test_rmse(afterwards, setting)
        errors[SELECTED] = errors[min(held_out, key=lambda name: held_out[name])]
        return errors

    def _table(self, config: CompletionConfig, scores: Mapping[str, Array]) -> Table:
        family, starts = self.family, config.starts[1]
        title = f"RMSE at test cells by the share of cells seen: {family.title}, {SIZE} x {SIZE}, k = {family.k}"
        columns, rows = [Column("method")], []
        for group in (f"{proportion:.0%}" for proportion in config.proportions):
            columns += [Column("paper", group), Column("ours", group, ".3f"), Column("S.D.", group, ".3f")]
        for name, errors in scores.items():
            row: list[Any] = [name]
            for proportion, each in zip(config.proportions, errors, strict=True):
                printed = self.printed.get(name)
                row += [printed and printed[PROPORTIONS.index(proportion)], *framework.mean_and_std(each)]
            rows.append(row)
        footnotes = [
            f"Mean and standard deviation of {config.seeds} seeds, each with cells (and a random matrix) of its own. "
            f"{TEST_SHARE:.0%} of all cells are for test, the share named is for training.",
            "The thesis's rows: stochastic gradients from a start uniform in (-0.005, 0.005), no biases, "
            f"{config.epochs} epochs. Linear has an offset, and the outer intervals of Round no end. "
            f"Fixed thresholds: {', '.join(f'{value:g}' for value in family.fixed)}. Round with learned ones has "
            f"a margin of {grr.MARGIN}: without one it stays where x is the threshold.",
            "Ours: Newton's method, biases or none, a ridge around 0 or our centre, and l2 out of "
            f"{', '.join(f'{value:g}' for value in config.l2)} (Round: fixed thresholds or not, no biases) as is best "
            f"over {FOLDS} folds of the training cells, then "
            f"{'one start' if starts == 1 else f'the best of {starts} starts'}. {SELECTED!r} is the one of "
            "the three with the lowest error over the folds.",
        ]
        return Table(title, columns, rows, footnotes)


def split_levels(levels: Array, proportion: float, seed: int) -> tuple[Observed, Observed]:
    """Cells for training, `proportion` of all, and for test, drawn uniformly; larger proportions contain smaller."""

    def observed(places: Array) -> Observed:
        rows, columns = np.divmod(np.sort(places), levels.shape[1])
        return Observed.from_cells(rows, columns, levels[rows, columns].astype(np.float64), levels.shape)

    order = np.random.default_rng(seed).permutation(levels.size)
    n_test = round(TEST_SHARE * levels.size)
    return observed(order[n_test:][: round(proportion * levels.size)]), observed(order[:n_test])


#: Number of components and RMSE by row, as printed.
TABLE4_4 = {
    "APG": ("70", "1.037"),
    "AIS-Impute": ("70", "1.037"),
    "CWOCFI": ("10", "1.01"),
    ROUND: ("10", "1.007"),
    LINEAR: ("10", "0.995"),
    "UCMF": ("-", "0.948"),
    SIGMOID: ("10", "0.928"),
    "SVDPlusPlus": ("10", "0.911"),
    "SIAFactorModel": ("10", "0.908"),
    "GG": ("30", "0.907"),
}
MOVIELENS = "MovieLens 100K"
K = 10
SPLITS = ("u1", "u2", "u3", "u4", "u5")
SEEDS = 5
#: Share of the training cells by which settings are selected.
HELD_OUT = 0.1
QUICK_K, QUICK_SEEDS, QUICK_L2 = 2, 2, (2.0, 5.0)


class RatingScores(NamedTuple):
    """Setting for each split, and RMSE, accuracy and RPS at test cells as (splits, seeds, 3)."""

    settings: Sequence[Setting]
    scores: Array


class Table4_4(Study):
    """Beyond the thesis: biases, OrdinalMF, accuracy, probabilities, and all five splits."""

    name = "grr/table4.4"
    title = (
        "Ratings of MovieLens 100K: RMSE of Round, Linear and Multi-sigmoid, with biases and without, and of OrdinalMF"
    )
    needs = ("movielens-100k",)

    def compute(self, settings: RunSettings, progress: Progress) -> Result:
        quick, seed = settings.quick, settings.seed
        splits = (
            [grr.quick_split(load_ratings("movielens-100k"), seed)] if quick else [load_split(one) for one in SPLITS]
        )
        seeds = range(seed, seed + (QUICK_SEEDS if quick else SEEDS))
        k, ordinal_k, l2 = (QUICK_K, (QUICK_K,), QUICK_L2) if quick else (K, grr.ORDINAL_K, grr.RATINGS_L2)
        forms = product((ROUND, LINEAR, SIGMOID), (False, True))
        methods = [grr.ratings_method(name, k, biases, l2) for name, biases in forms]
        ordinal = [{"n_components": k, "l2": value} for k, value in product(ordinal_k, l2)]
        methods.append(Method("OrdinalMF", halfseen.OrdinalMF, ordinal))
        ours = {method.name: score_ratings(method, splits, seeds, progress) for method in methods}
        goals = [  # the thesis's own rows, in the digits that it prints
            Goal.claim(f"{name}: RMSE on u1 of at most {rmse}", ours[name].scores[0, :, 0].mean() < float(rmse) + 5e-4)
            for name, rmse in ((name, TABLE4_4[name][1]) for name in ours if name in TABLE4_4)
        ]
        first = {name: f"{name} {one.scores[0, :, 0].mean():.4f}" for name, one in ours.items()}
        summary = f"RMSE on a part of {MOVIELENS}: {'; '.join(first.values())}."
        return Result(summary if quick else summarize(ours), [ratings_table(ours, quick)], goals=goals)


def score_ratings(
    method: Method, splits: Sequence[tuple[Observed, Observed]], seeds: range, progress: Progress
) -> RatingScores:
    """Select a setting by cells held out of each split's training cells, then fit all of these and score."""
    settings, scores = [], []
    for number, (train, test) in enumerate(splits, 1):
        held_out = [split_cells(train, HELD_OUT, random_state=seeds[0])]
        setting, _ = grr.select_setting(method, held_out, seeds[0], progress)
        settings.append(setting)
        progress(f"split {number}: {method.name}, {describe(setting, '-')}")
        by_seed = []
        for model in (method.fit(train, setting, seed) for seed in seeds):
            errors = grr.squared_errors(model, test)
            probabilities = grr.level_probabilities(model, test)
            rps = ranked_probability_score(test.values, probabilities, labels=model.levels_)
            by_seed.append((grr.rmse(errors), grr.accuracy(errors), rps))
        scores.append(by_seed)
    return RatingScores(settings, np.array(scores))


def ratings_table(ours: Mapping[str, RatingScores], quick: bool) -> Table:
    """The thesis's rows, then ours; the one split of a quick run is none of the published."""
    split, where, name_of_ours = ("", "a part", "ours, a part") if quick else ("u1 ", "u1", "ours")
    rmse = f"{split}RMSE"
    columns = [
        *(Column("model"), Column("paper", "k"), Column("ours", "k")),
        *(Column("paper", rmse), Column(name_of_ours, rmse, ".4f"), Column("S.D.", rmse, ".4f")),
        *(Column(where, "within 0.5", ".1%"), Column(where, "RPS", ".4f")),
        Column("setting" if quick else "setting for u1"),
    ]
    if not quick:
        means = {"RMSE": ".4f", "within 0.5": ".1%", "RPS": ".4f"}
        columns += [Column("mean", f"u1 to u5 {name}", form) for name, form in means.items()]
    rows: list[list[Any]] = [[name, k, None, error] for name, (k, error) in TABLE4_4.items() if name not in ours]
    for name, one in ours.items():
        (printed_k, printed_rmse), first, setting = TABLE4_4.get(name, (None, None)), one.scores[0], one.settings[0]
        k = str(setting.get("n_components", QUICK_K if quick else K))
        row = [name, printed_k, k, printed_rmse, *framework.mean_and_std(first[:, 0])]
        row += [float(first[:, 1].mean()), float(first[:, 2].mean()), describe(setting, "-")]
        rows.append(row if quick else [*row, *map(float, one.scores.mean(axis=(0, 1)))])
    rows = [[*row, *[None] * (len(columns) - len(row))] for row in rows]
    sample = (
        f"Ours is a quick run on a part of the data, {grr.QUICK_SAMPLE}. The paper's are of all the data, its own on "
        "their split u1: the two are not to be compared."
    )
    footnotes = [
        *([sample] if quick else []),
        f"Settings are chosen by RMSE at {HELD_OUT:.0%} of the cells, held out of the training cells"
        f"{'' if quick else ' of each split'}; the test cells are looked at once. Mean and standard deviation of "
        f"{QUICK_SEEDS if quick else SEEDS} starts. The thesis's other rows are quoted there from other papers, on "
        "other splits.",
        "Within 0.5: the share of predictions that near to the stars. RPS: the ranked probability score, in stars, "
        "smaller is better; Multi-sigmoid's steps are taken as its probabilities, Round and Linear put all "
        "on one level.",
    ]
    title = f"{MOVIELENS}{' (a part)' if quick else ''}: the thesis's rows and ours"
    return Table(title, columns, rows, footnotes)


def summarize(ours: Mapping[str, RatingScores]) -> str:
    """RMSE on the first split and over all splits."""
    rmse = {name: one.scores[:, :, 0] for name, one in ours.items()}
    both = (f"{name} {one[0].mean():.4f}, over all splits {one.mean():.4f}" for name, one in rmse.items())
    return f"RMSE on the first split: {'; '.join(both)}."


_RMSE = "RMSE by the share of cells seen"
STUDIES = (
    CompletionTable(
        "grr/table4.1", f"Completion of upper triangular matrices (k = 1): {_RMSE}", grr.UPPER_TRIANGLE, TABLE4_1
    ),
    CompletionTable("grr/table4.2", f"Completion of band diagonal matrices (k = 2): {_RMSE}", grr.BAND, TABLE4_2),
    CompletionTable(
        "grr/table4.3", f"Completion of random matrices of generalized round-rank 2: {_RMSE}", grr.RANDOM, TABLE4_3
    ),
    Table4_4(),
)
