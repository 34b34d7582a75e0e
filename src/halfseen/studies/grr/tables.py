"""Tables 4.1 to 4.3: completion of small matrices. Table 4.4: ratings of MovieLens 100K.

The thesis's numbers as they are printed, digit by digit, beside ours.
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
from halfseen.studies.base import Column, Goal, Result, Study, Table, Tell, mean_and_spread, tell_nobody
from halfseen.studies.grr import PAPER, methods
from halfseen.studies.grr.methods import LINEAR, MARGIN, ROUND, ROUND_FIXED, SIGMOID, SIGMOID_FIXED
from halfseen.studies.grr.protocol import Method, Setting, accuracy, chosen, rmse, squared_errors, words
from halfseen.studies.grr.sets import BAND, OF_A_PART, RANDOM, UPPER_TRIANGLE, Family, small_split

#: Tables 4.1 to 4.3: what share of all cells is for training.
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

#: The share of the cells that are for test, and the folds by which settings are chosen.
TEST_SHARE, FOLDS = 0.2, 3
SIZE = 50
CHOSEN = "ours: whichever"


class Effort(NamedTuple):
    """How much work is done: seeds, settings to choose from, and starts when choosing and afterwards."""

    proportions: Sequence[float]
    seeds: int
    l2: Sequence[float]
    epochs: int
    starts: tuple[int, int]


FULL = Effort(PROPORTIONS, 5, methods.L2, methods.EPOCHS, (1, 10))
QUICK = Effort((0.2, 0.8), 2, (0.1,), 4, (1, 1))


@dataclass(frozen=True)
class CompletionTable(Study):
    """Completion of matrices of one family: methods in rows, RMSE by the share of cells seen in columns."""

    name: str
    title: str
    family: Family
    printed: Rows
    paper = PAPER

    def run(self, *, quick: bool = False, seed: int = 0, tell: Tell = tell_nobody) -> Result:
        effort = QUICK if quick else FULL
        found: dict[str, Array] = {}  # RMSE of each row: an array of proportions by seeds
        for place, proportion in enumerate(effort.proportions):
            for number in range(effort.seeds):
                tell(f"{proportion:.0%} seen, seed {seed + number}")
                cells = split_levels(self.family.levels(SIZE, seed + number), proportion, seed + number)
                for name, error in self._errors(*cells, effort, seed + number).items():
                    found.setdefault(name, np.empty((len(effort.proportions), effort.seeds)))[place, number] = error

        # in how many columns ours are at or below the thesis's best, in the digits that it prints
        places = [PROPORTIONS.index(proportion) for proportion in effort.proportions]
        theirs = np.array([[float(value) for value in row] for row in self.printed.values()]).min(axis=0)[places]
        means = {name: errors.mean(axis=1) for name, errors in found.items()}
        best_rows = {f"The row {CHOSEN!r}": means[CHOSEN], "The best of our rows": np.min(list(means.values()), axis=0)}
        sentences, goals = [], []
        for whose, ours in best_rows.items():
            reached = int(np.sum(np.round(ours, 2) <= theirs))
            sentences.append(f"{whose} is at or below the thesis's best in {reached} of {len(places)} columns.")
        for proportion, best, one in zip(effort.proportions, theirs.tolist(), means[CHOSEN].tolist(), strict=True):
            what = f"{CHOSEN!r} with {proportion:.0%} seen: RMSE of at most {best}, the thesis's best"
            goals.append(Goal(what, round(one, 2) <= best))
        return Result(" ".join(sentences), [self._table(effort, found)], goals=[] if quick else goals)

    def _errors(self, train: Observed, test: Observed, effort: Effort, seed: int) -> dict[str, float]:
        """RMSE at the test cells by row; the last is that of ours which was best at the cells held out of training."""
        folds = list(k_folds(train, FOLDS, seed))
        errors, held_out = {}, {}
        for method in methods.of_the_thesis(self.family, SIZE, effort.epochs):
            errors[method.name] = rmse(squared_errors(method.fit(train, {}, seed), test))
        few, many = (methods.our_own(self.family, effort.l2, starts) for starts in effort.starts)
        for method, afterwards in zip(few, many, strict=True):
            setting, held_out[method.name] = chosen(method, folds, seed, tell_nobody)
            errors[method.name] = rmse(squared_errors(afterwards.fit(train, setting, seed), test))
        errors[CHOSEN] = errors[min(held_out, key=lambda name: held_out[name])]
        return errors

    def _table(self, effort: Effort, found: Mapping[str, Array]) -> Table:
        family, starts = self.family, effort.starts[1]
        title = f"RMSE at test cells by the share of cells seen: {family.title}, {SIZE} x {SIZE}, k = {family.k}"
        columns, rows = [Column("method")], []
        for group in (f"{proportion:.0%}" for proportion in effort.proportions):
            columns += [Column("paper", group), Column("ours", group, ".3f"), Column("S.D.", group, ".3f")]
        for name, errors in found.items():
            row: list[Any] = [name]
            for proportion, each in zip(effort.proportions, errors, strict=True):
                printed = self.printed.get(name)
                row += [printed and printed[PROPORTIONS.index(proportion)], *mean_and_spread(each)]
            rows.append(row)
        footnotes = [
            f"Mean and standard deviation of {effort.seeds} seeds, each with cells (and a random matrix) of its own. "
            f"{TEST_SHARE:.0%} of all cells are for test, the share named is for training.",
            "The thesis's rows: stochastic gradients from a start uniform in (-0.005, 0.005), no biases, "
            f"{effort.epochs} epochs. Linear has an offset, and the outer intervals of Round no end. "
            f"Fixed thresholds: {', '.join(f'{value:g}' for value in family.fixed)}. Round with learned ones has "
            f"a margin of {MARGIN}: without one it stays where x is the threshold.",
            "Ours: Newton's method, biases or none, a ridge around 0 or our centre, and l2 out of "
            f"{', '.join(f'{value:g}' for value in effort.l2)} (Round: fixed thresholds or not, no biases) as is best "
            f"over {FOLDS} folds of the training cells, then "
            f"{'one start' if starts == 1 else f'the best of {starts} starts'}. {CHOSEN!r} is the one of "
            "the three with the lowest error over the folds.",
        ]
        return Table(title, columns, rows, footnotes)


def split_levels(levels: Array, proportion: float, seed: int) -> tuple[Observed, Observed]:
    """Cells for training, `proportion` of all, and for test, drawn uniformly; more have all those that fewer have."""

    def cells(places: Array) -> Observed:
        rows, columns = np.divmod(np.sort(places), levels.shape[1])
        return Observed.from_cells(rows, columns, levels[rows, columns].astype(np.float64), levels.shape)

    order = np.random.default_rng(seed).permutation(levels.size)
    n_test = round(TEST_SHARE * levels.size)
    return cells(order[n_test:][: round(proportion * levels.size)]), cells(order[:n_test])


class Printed(NamedTuple):
    """A row of Table 4.4: the number of components, as printed, and the RMSE."""

    k: str
    rmse: str


TABLE4_4 = {
    "APG": Printed("70", "1.037"),
    "AIS-Impute": Printed("70", "1.037"),
    "CWOCFI": Printed("10", "1.01"),
    ROUND: Printed("10", "1.007"),
    LINEAR: Printed("10", "0.995"),
    "UCMF": Printed("-", "0.948"),
    SIGMOID: Printed("10", "0.928"),
    "SVDPlusPlus": Printed("10", "0.911"),
    "SIAFactorModel": Printed("10", "0.908"),
    "GG": Printed("30", "0.907"),
}
MOVIELENS = "MovieLens 100K"
K = 10
SPLITS = ("u1", "u2", "u3", "u4", "u5")
SEEDS = 5
#: The share of the training cells that settings are chosen by.
HELD_OUT = 0.1
QUICK_K, QUICK_SEEDS, QUICK_L2 = 2, 2, (2.0, 5.0)


class Measured(NamedTuple):
    """A method: the setting of each split; RMSE, accuracy and RPS at test cells as an array of splits by seeds by 3."""

    settings: Sequence[Setting]
    scores: Array


class Table4_4(Study):
    """Beyond the thesis: biases, OrdinalMF, accuracy, probabilities, and all five splits."""

    name = "grr/table4.4"
    paper = PAPER
    title = (
        "Ratings of MovieLens 100K: RMSE of Round, Linear and Multi-sigmoid, with biases and without, and of OrdinalMF"
    )
    needs = ("movielens-100k",)

    def run(self, *, quick: bool = False, seed: int = 0, tell: Tell = tell_nobody) -> Result:
        splits = [small_split(load_ratings("movielens-100k"), seed)] if quick else [load_split(one) for one in SPLITS]
        seeds = range(seed, seed + (QUICK_SEEDS if quick else SEEDS))
        k, ordinal_k, l2 = (QUICK_K, (QUICK_K,), QUICK_L2) if quick else (K, methods.ORDINAL_K, methods.RATINGS_L2)
        forms = product((ROUND, LINEAR, SIGMOID), (False, True))
        rows = [methods.of_ratings(name, k, biases, l2) for name, biases in forms]
        ordinal = [{"n_components": k, "l2": value} for k, value in product(ordinal_k, l2)]
        rows.append(Method("OrdinalMF", halfseen.OrdinalMF, ordinal))
        found = {method.name: _measured(method, splits, seeds, tell) for method in rows}
        goals = [  # the thesis's own rows, in the digits that it prints
            Goal(
                f"{name}: RMSE on u1 of at most {row.rmse}", found[name].scores[0, :, 0].mean() < float(row.rmse) + 5e-4
            )
            for name, row in ((name, TABLE4_4[name]) for name in found if name in TABLE4_4)
        ]
        return Result(_summary(found, quick), [_table(found, quick)], goals=[] if quick else goals)


def _measured(method: Method, splits: Sequence[tuple[Observed, Observed]], seeds: range, tell: Tell) -> Measured:
    """The setting chosen by cells held out of each split's training cells, then fits to all of these."""
    settings, scores = [], []
    for number, (train, test) in enumerate(splits, 1):
        parts = [split_cells(train, HELD_OUT, random_state=seeds[0])]
        setting, _ = chosen(method, parts, seeds[0], tell)
        settings.append(setting)
        tell(f"split {number}: {method.name}, {words(setting)}")
        of_seeds = []
        for model in (method.fit(train, setting, seed) for seed in seeds):
            errors = squared_errors(model, test)
            rps = ranked_probability_score(test.values, methods.probabilities(model, test), labels=model.levels_)
            of_seeds.append((rmse(errors), accuracy(errors), rps))
        scores.append(of_seeds)
    return Measured(settings, np.array(scores))


def _table(found: Mapping[str, Measured], quick: bool) -> Table:
    # the one split of a quick run is none of the published
    split, where, ours = ("", "a part", "ours, a part") if quick else ("u1 ", "u1", "ours")
    columns = [
        Column("model"), Column("paper", "k"), Column("ours", "k"),
        Column("paper", f"{split}RMSE"), Column(ours, f"{split}RMSE", ".4f"), Column("S.D.", f"{split}RMSE", ".4f"),
        Column(where, "within 0.5", ".1%"), Column(where, "RPS", ".4f"),
        Column("setting" if quick else "setting for u1"),
    ]  # fmt: skip
    if not quick:
        means = {"RMSE": ".4f", "within 0.5": ".1%", "RPS": ".4f"}
        columns += [Column("mean", f"u1 to u5 {what}", form) for what, form in means.items()]
    rows: list[list[Any]] = [[name, row.k, None, row.rmse] for name, row in TABLE4_4.items() if name not in found]
    for name, one in found.items():
        printed, first, setting = TABLE4_4.get(name), one.scores[0], one.settings[0]
        k = str(setting.get("n_components", QUICK_K if quick else K))
        row = [name, printed and printed.k, k, printed and printed.rmse, *mean_and_spread(first[:, 0])]
        row += [float(first[:, 1].mean()), float(first[:, 2].mean()), words(setting)]
        rows.append(row if quick else [*row, *map(float, one.scores.mean(axis=(0, 1)))])
    rows = [[*row, *[None] * (len(columns) - len(row))] for row in rows]
    of_a_part = (
        f"Ours is a quick run on a part of the data, {OF_A_PART}. The paper's are of all the data, its own on their "
        "split u1: the two are not to be compared."
    )
    footnotes = [
        *([of_a_part] if quick else []),
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


def _summary(found: Mapping[str, Measured], quick: bool) -> str:
    first = {name: f"{name} {one.scores[0, :, 0].mean():.4f}" for name, one in found.items()}
    if quick:
        return f"RMSE on a part of {MOVIELENS}: {'; '.join(first.values())}."
    both = "; ".join(f"{first[name]}, over all splits {one.scores[:, :, 0].mean():.4f}" for name, one in found.items())
    return f"RMSE on the first split: {both}."


_RMSE = "RMSE by the share of cells seen"
STUDIES = (
    CompletionTable(
        "grr/table4.1", f"Completion of upper triangular matrices (k = 1): {_RMSE}", UPPER_TRIANGLE, TABLE4_1
    ),
    CompletionTable("grr/table4.2", f"Completion of band diagonal matrices (k = 2): {_RMSE}", BAND, TABLE4_2),
    CompletionTable(
        "grr/table4.3", f"Completion of random matrices of generalized round-rank 2: {_RMSE}", RANDOM, TABLE4_3
    ),
    Table4_4(),
)
