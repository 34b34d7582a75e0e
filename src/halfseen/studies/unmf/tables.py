"""The tables of Figure 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from halfseen.studies.base import Column, Table
from halfseen.studies.unmf.baselines import BEST_K, CHOOSING_FOLDS, COUPLED_BAYES, KS, ORACLE, ROW_MEAN
from halfseen.studies.unmf.calibration import LEVEL, Calibration
from halfseen.studies.unmf.measuring import NAMES, Measured
from halfseen.studies.unmf.methods import HALF, ZERO
from halfseen.studies.unmf.protocol import FULL


def error_table(found: Measured) -> Table:
    """A row a method, a mean and a standard deviation for every number of comparisons."""
    columns = [Column("method")]
    for n_per in found.grid:
        columns += [Column(part, f"{n_per} a row", ".3f") for part in ("mean", "S.D.")]
    rows = [[name, *_interleaved(found, name)] for name in NAMES]
    title = f"({found.of.letter}) {found.title}, {found.shape[0]} x {found.shape[1]}: test MAE by comparisons a row"
    return Table(title, columns, rows, _footnotes(found), found.of.letter)


def _interleaved(found: Measured, name: str) -> list[float]:
    return [float(value) for pair in zip(found.means(name), found.spreads(name), strict=True) for value in pair]


def _footnotes(found: Measured) -> list[str]:
    (low, high), effort = found.of.guesses, found.effort
    here = "" if effort is FULL else f" here, {FULL.iterations} in a whole run"
    return [
        f"Mean and standard deviation of {_folds(found)}; a fifth of the cells is for test in each. UNMF, bayes and "
        f"{ORACLE!r}, the paper's ORACLE, have the paper's k = {found.of.k}. RANDOM guesses uniformly in "
        f"[{low}, {high}], as in the paper, which prints no numbers for this figure.",
        f"All that loops has the same number of iterations, {effort.iterations}{here}; the paper does not tell its "
        "own. No fit looks at test cells to stop: the number of a whole run is the one with which UNMF has the figures "
        "of a prototype that was written before. Where k is too large for the data, errors grow with further "
        f"iterations. Samplers draw {effort.sweeps} sweeps, the first {effort.burn} of which do not count.",
        "λ zero, half or full: that share of w_1 + w_2 in Eq. 4; the paper has the first two. "
        f"{BEST_K!r} has the k, out of {', '.join(map(str, KS))}, that is best over {CHOOSING_FOLDS} folds of "
        f"the training cells. {COUPLED_BAYES!r} is the sampler of couplings, given the coupling.",
    ]


def _folds(found: Measured) -> str:
    """What was averaged over."""
    folds = f"{len(found.errors[ROW_MEAN])} folds"
    if found.of.draws == 1:
        return folds
    return f"{folds}, those of {'every draw' if found.effort.every_draw else 'one draw'} of the matrix"


def said_table(found: Sequence[Measured], absent: Sequence[str]) -> Table:
    """What the paper says in words, beside our numbers."""
    columns = [
        Column("data"), Column("method"), Column("comparisons a row"), Column("fewest", "test MAE", ".3f"),
        Column("most", "test MAE", ".3f"), Column("fewest", "times the oracle's", ".2f"),
        Column("most", "times the oracle's", ".2f"), Column("paper"),
    ]  # fmt: skip
    words = "improves, and approaches the oracle"
    rows: list[list[Any]] = []
    for one in found:
        for name in (ZERO.name, HALF.name):
            ends = [one.at(name, one.grid[place]) for place in (0, -1)]
            oracle = one.at(ORACLE, one.grid[0])
            span = f"{one.grid[0]} and {one.grid[-1]}"
            rows.append([one.title, name, span, *ends, *(end / oracle for end in ends), words])
    footnotes = [f"The paper also says that {HALF.name!r} is stable even with few comparisons.", *absent]
    return Table("The paper's words and our numbers", columns, rows, footnotes, "said")


def calibration_table(found: Sequence[Measured]) -> Table:
    """A row for every set and number of comparisons."""
    kinds = {"coverage": ".1%", "width": ".2f", "risk": ".1%", "hits": ".1%"}
    columns = [Column("data"), Column("comparisons a row")]
    for kind in Calibration._fields:
        columns += [Column("mean", kind, kinds[kind]), Column("S.D.", kind, kinds[kind])]
    rows: list[list[Any]] = []
    for one in found:
        for n_per, runs in one.calibrations.items():
            pairs = zip(runs.mean(axis=0), runs.std(axis=0, ddof=1), strict=True)
            rows.append([one.title, n_per, *(float(value) for pair in pairs for value in pair)])
    footnote = (
        f"Coverage: the share of test cells inside their {LEVEL:.0%} intervals; width: the mean width of these. Risk: "
        "the mean disclosure risk of the asked cells; hits: the share of them whose answer is the one that was most "
        "likely. Mean and standard deviation over the folds. The truth is looked at here, and chose nothing."
    )
    return Table("Calibration of gibbs", columns, rows, [footnote], "calibration")
