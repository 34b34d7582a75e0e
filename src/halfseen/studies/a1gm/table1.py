"""Table 1: A1GM, and beyond the paper the exact solution, against KL-WNMF on real tables with holes."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import halfseen
from halfseen.arrays import Array
from halfseen.data.datasets import load_tabular
from halfseen.errors import DataError
from halfseen.studies.a1gm import PAPER
from halfseen.studies.a1gm.kl_wnmf import divergence, kl_wnmf, with_weights
from halfseen.studies.a1gm.printed import NO_LOADER, PRINTED, REASONS, Printed
from halfseen.studies.base import Column, Goal, Result, Study, Table, Tell, tell_nobody
from halfseen.studies.timing import median_seconds

COLUMNS = (
    Column("table"),
    Column("paper", "size"),
    Column("ours", "size"),
    Column("paper", "holes"),
    Column("ours", "holes"),
    Column("paper", "increase rate"),
    Column("ours", "increase rate", ".5f"),
    Column("paper", "relative error"),
    Column("A1GM", "relative error", ".4f"),
    Column("exact", "relative error", ".4f"),
    Column("paper", "relative run time"),
    Column("A1GM", "relative run time", ".4f"),
    Column("exact", "relative run time", ".4f"),
    Column("as printed"),
)

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
            tell(words(name))
            try:
                X = load_tabular(name, prepared=True).to_dense()
            except DataError as error:
                absent[name] = error
            else:
                measured[name] = measure(X, seed, **(ONCE if quick else {}))
        if not measured:
            raise next(iter(absent.values()))
        reasons = REASONS | {name: str(error) for name, error in absent.items()}
        return Result(_summary(measured), [_table(names, measured, reasons, quick)], goals=_goals(measured))


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
        size=X.shape,
        holes=int(np.isnan(X).sum()),
        rate=a1gm.increase_rate_,
        a1gm_error=a1gm_error / error,
        exact_error=exact_error / error,
        a1gm_time=a1gm_time / time,
        exact_time=exact_time / time,
        n_iter=baseline.n_iter,
    )


def words(name: str) -> str:
    return name.replace("_", " ")


def differences(printed: Printed, ours: Measured) -> list[str]:
    """The quantities whose digits are not those that the paper prints."""
    same = {
        "size": ours.size == printed.size,
        "holes": ours.holes == printed.holes,
        "rate": _digits(ours.rate, 5) == printed.rate,
        "error": _digits(ours.a1gm_error, 4) == printed.error,
    }
    return [quantity for quantity, equal in same.items() if not equal]


def _digits(value: float, decimals: int) -> str:
    """A number as the paper prints it: rounded, without zeros at the end."""
    return f"{value:.{decimals}f}".rstrip("0").rstrip(".")


def _table(names: tuple[str, ...], measured: Mapping[str, Measured], reasons: Mapping[str, str], quick: bool) -> Table:
    verdicts = {name: _verdict(PRINTED[name], measured.get(name)) for name in names}
    to_explain = dict.fromkeys(reasons[name] for name in names if verdicts[name] != "yes" and name in reasons)
    marks = {reason: f" ({number})" for number, reason in enumerate(to_explain, 1)}
    rows = [
        [*_numbers(name, measured.get(name)), verdict + marks.get(reasons.get(name, ""), "")]
        for name, verdict in verdicts.items()
    ]
    footnotes = [*(f"{mark.strip()} {reason}" for reason, mark in marks.items()), *_remarks(measured, quick)]
    return Table("Performance of A1GM and of the exact solution compared to KL-WNMF", COLUMNS, rows, footnotes)


def _verdict(printed: Printed, ours: Measured | None) -> str:
    if ours is None:
        return "no data"
    differing = differences(printed, ours)
    return f"not {', '.join(differing)}" if differing else "yes"


def _numbers(name: str, ours: Measured | None) -> list[Any]:
    """The row of a table up to the verdict, the paper's numbers beside ours."""
    printed = PRINTED[name]
    return [
        words(name),
        _size(printed.size),
        ours and _size(ours.size),
        printed.holes,
        ours and ours.holes,
        printed.rate,
        ours and ours.rate,
        printed.error,
        ours and ours.a1gm_error,
        ours and ours.exact_error,
        printed.time,
        ours and ours.a1gm_time,
        ours and ours.exact_time,
    ]


def _size(size: tuple[int, int]) -> str:
    return f"{size[0]} x {size[1]}"


def _remarks(measured: Mapping[str, Measured], quick: bool) -> list[str]:
    iterations = [ours.n_iter for ours in measured.values()]
    return [
        "Relative error: the divergence over the seen cells, divided by that of KL-WNMF. As printed: whether size, "
        "holes, increase rate and A1GM's relative error have the paper's digits.",
        f"KL-WNMF took {min(iterations)} to {max(iterations)} iterations (paper: 2 to 4), until one lowered its error "
        "by less than 1e-4 of the error at its start.",
        f"Relative run time: {'of one run each' if quick else 'medians'}, divided by that of KL-WNMF in NumPy, whose "
        "errors count as its work. All three start from an array with NaN; A1GM and exact have as many threads as "
        f"processors ({os.cpu_count()}). BLAS had one thread. The paper's are of Julia on one processor. Times vary "
        "between machines: their digits are not compared.",
    ]


def _goals(measured: Mapping[str, Measured]) -> list[Goal]:
    return [
        Goal(f"{words(name)}: size, holes, rate and error as printed", not differences(PRINTED[name], ours))
        for name, ours in measured.items()
    ]


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


STUDY = Table1()
