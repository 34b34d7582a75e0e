"""Table 1: A1GM, and beyond the paper the exact solution, against KL-WNMF on real tables with holes."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import halfseen
from halfseen.arrays import Array
from halfseen.datasets import load_tabular
from halfseen.errors import DataError
from halfseen.studies.a1gm import PAPER
from halfseen.studies.a1gm.kl_wnmf import divergence, kl_wnmf, with_weights
from halfseen.studies.a1gm.printed import NO_LOADER, PRINTED, REASONS, Printed
from halfseen.studies.base import Column, Goal, Result, Study, Table, Tell, tell_nobody
from halfseen.studies.timing import median_seconds

COLUMNS = (
    Column("table"), Column("paper", "size"), Column("ours", "size"), Column("paper", "holes"), Column("ours", "holes"),
    Column("paper", "increase rate"), Column("ours", "increase rate", ".5f"), Column("paper", "relative error"),
    Column("A1GM", "relative error", ".4f"), Column("exact", "relative error", ".4f"),
    Column("paper", "relative run time"), Column("A1GM", "relative run time", ".4f"),
    Column("exact", "relative run time", ".4f"), Column("as printed"),
)  # fmt: skip

#: What a quick run does: small tables, each method once.
SMALL = ("auto_mpg", "lung_cancer", "sleep_mammals")
ONCE = {"at_least": 1, "until": 0.0}


@dataclass(frozen=True)
class Measured:
    """Our numbers for one table; errors and times relative to those of KL-WNMF, which took `n_iter` iterations."""

    size: tuple[int, int]
    holes: int
    rate: float
    a1gm_error: float
    exact_error: float
    a1gm_time: float
    exact_time: float
    n_iter: int


class Table1(Study):
    name = "a1gm/table1"
    paper = PAPER
    title = (
        "Rank one on 17 real tables with holes: error and run time of A1GM and of the exact solution against KL-WNMF"
    )
    needs = tuple(name for name in PRINTED if REASONS.get(name) != NO_LOADER)

    def run(self, *, quick: bool = False, seed: int = 0, tell: Tell = tell_nobody) -> Result:
        names = SMALL if quick else tuple(PRINTED)
        measured: dict[str, Measured] = {}
        absent: dict[str, DataError] = {}
        for name in (name for name in names if name in self.needs):
            tell(_spaced(name))
            try:
                X = load_tabular(name, prepared=True).to_dense()
            except DataError as error:
                absent[name] = error
            else:
                measured[name] = measure(X, seed, **(ONCE if quick else {}))
        if not measured:
            raise next(iter(absent.values()))
        reasons = REASONS | {name: str(error) for name, error in absent.items()}
        goals = [
            Goal(f"{_spaced(name)}: size, holes, rate and error as printed", not differences(PRINTED[name], ours))
            for name, ours in measured.items()
        ]
        return Result(_summary(measured), [_table(names, measured, reasons, quick)], goals=goals)


def _spaced(name: str) -> str:
    return name.replace("_", " ")


def measure(X: Array, seed: int, **timing: Any) -> Measured:
    """Fit all three methods to a matrix with NaN in its holes, and time them."""
    baseline = kl_wnmf(with_weights(X), seed)
    a1gm, exact = (halfseen.RankOneNMF(method=method) for method in ("a1gm", "exact"))
    error, a1gm_error, exact_error = (
        divergence(X, w, h)
        for w, h in (baseline[:2], *((model.fit(X).W_[:, 0], model.H_[:, 0]) for model in (a1gm, exact)))
    )
    time, a1gm_time, exact_time = median_seconds(
        [lambda: kl_wnmf(with_weights(X), seed), lambda: a1gm.fit(X), lambda: exact.fit(X)], **timing
    )
    return Measured(
        X.shape, int(np.isnan(X).sum()), a1gm.increase_rate_, a1gm_error / error, exact_error / error,
        a1gm_time / time, exact_time / time, baseline.n_iter,
    )  # fmt: skip


def differences(printed: Printed, ours: Measured) -> list[str]:
    """The quantities whose digits are not those that the paper prints: rounded, without zeros at the end."""
    rate, error = (
        f"{value:.{decimals}f}".rstrip("0").rstrip(".") for value, decimals in ((ours.rate, 5), (ours.a1gm_error, 4))
    )
    shown = zip(Printed._fields, printed, (ours.size, ours.holes, rate, error), strict=False)
    return [quantity for quantity, theirs, one in shown if one != theirs]


def _table(names: tuple[str, ...], measured: Mapping[str, Measured], reasons: Mapping[str, str], quick: bool) -> Table:
    rows: list[list[Any]] = []
    marks: dict[str, str] = {}  # by reason why a table is not as printed
    for name in names:
        printed, ours = PRINTED[name], measured.get(name)
        differing = differences(printed, ours) if ours else []
        verdict = "no data" if ours is None else f"not {', '.join(differing)}" if differing else "yes"
        if verdict != "yes" and name in reasons:
            verdict += marks.setdefault(reasons[name], f" ({len(marks) + 1})")
        sizes = ("{} x {}".format(*size) if size else None for size in (printed.size, ours and ours.size))
        row = [_spaced(name), *sizes, printed.holes, ours and ours.holes, printed.rate, ours and ours.rate]
        row += [printed.error, ours and ours.a1gm_error, ours and ours.exact_error]
        rows.append([*row, printed.time, ours and ours.a1gm_time, ours and ours.exact_time, verdict])
    iterations = [ours.n_iter for ours in measured.values()]
    footnotes = [
        *(f"{mark.strip()} {reason}" for reason, mark in marks.items()),
        "Relative error: the divergence over the seen cells, divided by that of KL-WNMF. As printed: whether size, "
        "holes, increase rate and A1GM's relative error have the paper's digits.",
        f"KL-WNMF took {min(iterations)} to {max(iterations)} iterations (paper: 2 to 4), until one lowered its error "
        "by less than 1e-4 of the error at its start.",
        f"Relative run time: {'of one run each' if quick else 'medians'}, divided by that of KL-WNMF in NumPy, whose "
        "errors count as its work. All three start from an array with NaN; A1GM and exact have as many threads as "
        f"processors ({os.cpu_count()}). BLAS had one thread. The paper's are of Julia on one processor. Times vary "
        "between machines: their digits are not compared.",
    ]
    return Table("Performance of A1GM and of the exact solution compared to KL-WNMF", COLUMNS, rows, footnotes)


def _summary(measured: Mapping[str, Measured]) -> str:
    worst = max(ours.exact_error for ours in measured.values())
    above = sum(round(ours.exact_error, 4) > 1 for ours in measured.values())
    bound = f"above 1.0000 in {above} of" if above else "at most 1.0000 in each of"
    same = sum(not differences(PRINTED[name], ours) for name, ours in measured.items())
    return (
        f"The exact solution's relative error is {bound} {len(measured)} tables (largest {worst:.4f}); A1GM's goes up "
        f"to {max(ours.a1gm_error for ours in measured.values()):.4f}. "
        f"{same} of {len(measured)} tables have all the digits that the paper prints."
    )


STUDIES = (Table1(),)
