"""Figure 1: test MAE against the number of comparisons, on synthetic data, film genres and groups of sushi."""

from __future__ import annotations

from functools import partial

from halfseen.errors import DataError
from halfseen.studies.base import Picture, Result, Study, Tell, tell_nobody
from halfseen.studies.unmf import PAPER
from halfseen.studies.unmf.baselines import ORACLE, ROW_MEAN
from halfseen.studies.unmf.curves import draw
from halfseen.studies.unmf.goals import goals_table, judgements
from halfseen.studies.unmf.measuring import Measured, measured
from halfseen.studies.unmf.methods import GIBBS, HALF
from halfseen.studies.unmf.protocol import FULL, QUICK, Effort
from halfseen.studies.unmf.sets import SETS, DataSet
from halfseen.studies.unmf.tables import calibration_table, error_table, said_table


class Figure1(Study):
    name = "unmf/figure1"
    paper = PAPER
    title = "Uncoupled data: test MAE against comparisons a row, the paper's methods, ours, and those that know more"
    needs = tuple(of.source for of in SETS if of.source is not None)

    def run(self, *, quick: bool = False, seed: int = 0, tell: Tell = tell_nobody) -> Result:
        effort = QUICK if quick else FULL
        found: list[Measured] = []
        absent: dict[str, str] = {}
        for of in SETS:
            try:
                found.append(_measured(of, effort, seed, tell))
            except DataError as error:
                absent[of.title] = str(error)
        errors = [error_table(one) for one in found]
        tables = [*errors, said_table(found, list(absent.values())), calibration_table(found)]
        if not quick:  # goals are of whole runs
            tables.append(goals_table(found))
        pictures = [
            Picture("", "Test MAE against comparisons a row", partial(draw, found, False)),
            Picture("near", "The same, near the row mean", partial(draw, found, True)),
        ]
        goals = [] if quick else [judged.goal for one in found for judged in judgements(one)]
        left_out = [f"Left out, for want of data: {', '.join(absent)}."] if absent else []
        return Result(" ".join([*map(_sentence, found), *left_out]), tables, pictures, goals)


def _measured(of: DataSet, effort: Effort, seed: int, tell: Tell) -> Measured:
    draws = range(seed, seed + (of.draws if effort.every_draw else 1))
    return measured(of, [of.load(draw, effort.rows) for draw in draws], effort, seed, tell)


def _sentence(found: Measured) -> str:
    at = found.grid[-1]
    told = "; ".join(f"{name} {found.at(name, at):.3f}" for name in (HALF.name, GIBBS.name, ROW_MEAN, ORACLE))
    return f"{found.title}, {at} comparisons a row, test MAE: {told}."


STUDY = Figure1()
