"""Table 4.4: RMSE on MovieLens 100K, split u1, k = 10; and beyond it accuracy, probabilities, and all five splits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from halfseen.arrays import Array
from halfseen.data import Observed, split_cells
from halfseen.data.datasets import load_ratings, load_split
from halfseen.studies.base import Column, Goal, Result, Study, Table, Tell, tell_nobody
from halfseen.studies.grr import PAPER
from halfseen.studies.grr.printed import LINEAR, ROUND, SIGMOID, TABLE4_4
from halfseen.studies.grr.protocol import Method, Setting, accuracy, chosen, rmse, spread, squared_errors, words
from halfseen.studies.grr.rating_methods import L2, ORDINAL_K, ordinal, score_of_probabilities, with_loss
from halfseen.studies.grr.rating_sets import OF_A_PART, part_of, small_split

TITLE = "MovieLens 100K"
K = 10
SPLITS = ("u1", "u2", "u3", "u4", "u5")
SEEDS = 5
#: The share of the training cells that settings are chosen by.
HELD_OUT = 0.1

QUICK_K, QUICK_SEEDS, QUICK_L2 = 2, 2, (2.0, 5.0)


class Scores(NamedTuple):
    """Of one fit at the test cells."""

    rmse: float
    accuracy: float
    rps: float


class Measured(NamedTuple):
    """A method: the setting of each split, and scores as an array of splits by seeds by kinds."""

    settings: Sequence[Setting]
    scores: Array


class Table4_4(Study):
    name = "grr/table4.4"
    paper = PAPER
    title = (
        "Ratings of MovieLens 100K: RMSE of Round, Linear and Multi-sigmoid, with biases and without, and of OrdinalMF"
    )
    needs = ("movielens-100k",)

    def run(self, *, quick: bool = False, seed: int = 0, tell: Tell = tell_nobody) -> Result:
        splits = [_small(seed)] if quick else [load_split(name) for name in SPLITS]
        seeds = range(seed, seed + (QUICK_SEEDS if quick else SEEDS))
        found = {}
        for method in methods(*((QUICK_K, (QUICK_K,), QUICK_L2) if quick else (K, ORDINAL_K, L2))):
            found[method.name] = measured(method, splits, seeds, tell)
        return Result(_summary(found, quick), [_table(found, quick)], goals=[] if quick else _goals(found))


def _small(seed: int) -> tuple[Observed, Observed]:
    return small_split(load_ratings("movielens-100k"), seed)


def methods(k: int, ordinal_k: Sequence[int], l2: Sequence[float]) -> list[Method]:
    """The thesis's three, each with biases too, and OrdinalMF."""
    kinds = [with_loss(name, k, biases, l2) for name in (ROUND, LINEAR, SIGMOID) for biases in (False, True)]
    return [*kinds, ordinal(ordinal_k, l2)]


def measured(method: Method, splits: Sequence[tuple[Observed, Observed]], seeds: range, tell: Tell) -> Measured:
    """The setting chosen by cells held out of each split's training cells, then fits to all of these."""
    settings, scores = [], []
    for number, (train, test) in enumerate(splits, 1):
        parts = [split_cells(train, HELD_OUT, random_state=seeds[0])]
        setting, _ = chosen(method, parts, seeds[0], tell)
        settings.append(setting)
        tell(f"split {number}: {method.name}, {words(setting)}")
        scores.append([scored(method.fit(train, setting, seed), test) for seed in seeds])
    return Measured(settings, np.array(scores))


def scored(model: Any, test: Observed) -> Scores:
    errors = squared_errors(model, test)
    return Scores(rmse(errors), accuracy(errors), score_of_probabilities(model, test))


def _table(found: Mapping[str, Measured], quick: bool) -> Table:
    theirs: list[Sequence[Any]] = [
        [name, printed.k, None, printed.rmse] for name, printed in TABLE4_4.items() if name not in found
    ]
    ours = [_row(name, one, quick) for name, one in found.items()]
    columns = _columns_of_a_part() if quick else _columns()
    rows = [[*row, *[None] * (len(columns) - len(row))] for row in (*theirs, *ours)]
    where = part_of(TITLE) if quick else TITLE
    return Table(f"{where}: the thesis's rows and ours", columns, rows, _footnotes(quick))


def _columns() -> list[Column]:
    return [
        Column("model"), Column("paper", "k"), Column("ours", "k"),
        Column("paper", "u1 RMSE"), Column("ours", "u1 RMSE", ".4f"), Column("S.D.", "u1 RMSE", ".4f"),
        Column("u1", "within 0.5", ".1%"), Column("u1", "RPS", ".4f"), Column("setting for u1"),
        Column("mean", "u1 to u5 RMSE", ".4f"), Column("mean", "u1 to u5 within 0.5", ".1%"),
        Column("mean", "u1 to u5 RPS", ".4f"),
    ]  # fmt: skip


def _columns_of_a_part() -> list[Column]:
    """What a quick run has: one split, which is none of the published."""
    return [
        Column("model"), Column("paper", "k"), Column("ours", "k"),
        Column("paper", "RMSE"), Column("ours, a part", "RMSE", ".4f"), Column("S.D.", "RMSE", ".4f"),
        Column("a part", "within 0.5", ".1%"), Column("a part", "RPS", ".4f"), Column("setting"),
    ]  # fmt: skip


def _row(name: str, one: Measured, quick: bool) -> list[Any]:
    printed = TABLE4_4.get(name)
    first, k = one.scores[0], QUICK_K if quick else K
    row = [
        name, printed and printed.k, str(one.settings[0].get("n_components", k)), printed and printed.rmse,
        float(first[:, 0].mean()), spread(first[:, 0]), float(first[:, 1].mean()), float(first[:, 2].mean()),
        words(one.settings[0]),
    ]  # fmt: skip
    return row if quick else [*row, *map(float, one.scores.mean(axis=(0, 1)))]


def _footnotes(quick: bool) -> list[str]:
    of_a_part = (
        f"Ours is a quick run on a part of the data, {OF_A_PART}. The paper's are of all the data, its own on their "
        "split u1: the two are not to be compared."
    )
    return [
        *([of_a_part] if quick else []),
        f"Settings are chosen by RMSE at {HELD_OUT:.0%} of the cells, held out of the training cells"
        f"{'' if quick else ' of each split'}; the test cells are looked at once. Mean and standard deviation of "
        f"{QUICK_SEEDS if quick else SEEDS} starts. The thesis's other rows are quoted there from other papers, on "
        "other splits.",
        "Within 0.5: the share of predictions that near to the stars. RPS: the ranked probability score, in stars, "
        "smaller is better; Multi-sigmoid's steps are taken as its probabilities, Round and Linear put all "
        "on one level.",
    ]


def _goals(found: Mapping[str, Measured]) -> list[Goal]:
    """The thesis's own rows, in the digits that it prints."""
    return [
        Goal(f"{name}: RMSE on u1 of at most {printed.rmse}", one.scores[0, :, 0].mean() < float(printed.rmse) + 5e-4)
        for name, one in found.items()
        if (printed := TABLE4_4.get(name)) is not None
    ]


def _summary(found: Mapping[str, Measured], quick: bool) -> str:
    first = {name: f"{name} {one.scores[0, :, 0].mean():.4f}" for name, one in found.items()}
    if quick:
        return f"RMSE on a part of {TITLE}: {'; '.join(first.values())}."
    told = "; ".join(f"{first[name]}, over all splits {one.scores[:, :, 0].mean():.4f}" for name, one in found.items())
    return f"RMSE on the first split: {told}."


STUDY = Table4_4()
