"""Fifteen public tables with holes, by name: those of Table 1 of Ghalamkari and Sugiyama (2022)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from halfseen.checks import check_parameters, one_of
from halfseen.data import headings
from halfseen.data.arrays import dense_cells
from halfseen.data.catalogue import SOURCES, TABULAR
from halfseen.data.columns import Columns, line_of, named_table, picked, sheet_columns, text_columns
from halfseen.data.labels import text_array
from halfseen.data.observed import Observed
from halfseen.data.preparing import as_in_a1gm
from halfseen.data.reading import Reading
from halfseen.data.shelf import Source, paths_of
from halfseen.data.tables import Table
from halfseen.errors import DataError

Reader = Callable[..., Columns]

SPOTS = "Number of Sunspots"
CLASS = "A16"


def load_tabular(name: str, *, prepared: bool = False) -> Observed:
    """A public table with holes: its numeric columns, with their names, and the values as in the file.

    The names are those of `tabular_names()`, and `source(name)` says where a table comes from and on which terms. The
    files must lie in the data folder, which the environment variable HALFSEEN_DATA names (by default `halfseen` in
    the user's cache directory).

    prepared=True makes every value positive as Ghalamkari and Sugiyama (2022) do for their Table 1; see `as_in_a1gm`.
    Sizes and holes are those of that table but for three: Big Mart has one row more, credit approval is the original
    of 690 rows, and human resources has 54 holes, not 519.

    Columns that need a word: sunspots_daily has the row number, from 0, as its first column, and -1 is a hole among
    the counts but a value among the standard deviations, as in the paper. credit_approval has the class A16 as 1 for
    "+" and 0 for "-". heart_disease, lung_cancer, arrhythmia and hcc_survival have their class among the columns.
    """
    check_parameters({"name": name}, {"name": one_of(*TABULAR)})
    columns = READERS[name](*paths_of(TABULAR[name]))
    array = np.column_stack(list(columns.values()))
    observed = Reading().observed(dense_cells(array), array.shape, column_labels=text_array(columns))
    return as_in_a1gm(observed) if prepared else observed


def tabular_names() -> tuple[str, ...]:
    """The names `load_tabular` knows, in the order of the paper's Table 1."""
    return tuple(TABULAR)


def source(name: str) -> Source:
    """Where the table, or the ratings or counts, of this `name` come from: title, address, terms, citation, files."""
    check_parameters({"name": name}, {"name": one_of(*SOURCES)})
    return SOURCES[name]


def _headed(*keep: str) -> Reader:
    """A reader of a file with a header line: these columns, or all."""
    return lambda path: text_columns(path, keep)


def _unheaded(*header: str) -> Reader:
    """A reader of a file without a header line: all columns, under these names."""
    return lambda path: text_columns(path, header=header)


def _auto_mpg(path: Path) -> Columns:
    """Eight numbers between blanks; then a tab and the name of the car."""
    table = named_table(path, ("numbers", "car name"))
    records = [text.split() for text in table.column("numbers")]
    wrong = next((place for place, record in enumerate(records) if len(record) != len(headings.AUTO_MPG)), None)
    if wrong is not None:
        raise DataError(
            f"Every line must have {len(headings.AUTO_MPG)} numbers. Found {len(records[wrong])} on "
            f"{line_of(path, table, wrong)}. Mend it, or copy or download the file again."
        )
    split = Table(list(headings.AUTO_MPG), [list(fields) for fields in zip(*records, strict=True)], has_header=False)
    return picked(split, (), {}, lambda position: line_of(path, split, position))


def _sunspots(path: Path) -> Columns:
    """The row number is a column of the paper's file; -1 marks the days without a count."""
    columns = text_columns(path, headings.SUNSPOTS_DAILY)
    counts = columns[SPOTS]
    columns[SPOTS] = np.where(counts == -1, np.nan, counts)
    return {"row": np.arange(float(counts.size)), **columns}


def _credit_approval(path: Path) -> Columns:
    """The six continuous attributes and the class."""
    codes = {CLASS: {"+": "1", "-": "0"}}
    return text_columns(path, (*headings.CREDIT_CONTINUOUS, CLASS), headings.CREDIT_APPROVAL, codes)


def _human_resources(employees: Path, evaluations: Path) -> Columns:
    """What is known of each employee, and how each was evaluated, joined by the employee's number."""
    known = text_columns(employees, headings.EMPLOYEES)
    judged = sheet_columns(evaluations, headings.EVALUATIONS)
    order = _positions(known.pop("employee_id"), judged.pop("EMPLOYEE #"), evaluations)
    return {name: values[order] for name, values in judged.items()} | known


def _positions(wanted: np.ndarray, ids: np.ndarray, path: Path) -> np.ndarray:
    """Where each wanted id stands among the ids."""
    place = {one: position for position, one in enumerate(ids.tolist())}
    absent = next((one for one in wanted.tolist() if one not in place), None)
    if absent is not None or len(place) != ids.size:
        what = "one of them more than once" if absent is None else f"no employee {absent:g}"
        raise DataError(f"{path.name} must have every employee once. Found {what}. Copy or download it again.")
    return np.array([place[one] for one in wanted.tolist()])


READERS: dict[str, Reader] = {
    "auto_mpg": _auto_mpg,
    "sunspots_daily": _sunspots,
    "california_housing": _headed(*headings.CALIFORNIA_HOUSING),
    "big_mart": _headed(*headings.BIG_MART),
    "credit_approval": _credit_approval,
    "human_resources": _human_resources,
    "heart_disease": _unheaded(*headings.HEART_DISEASE),
    "lung_cancer": _unheaded(*headings.LUNG_CANCER),
    "perth_house_prices": _headed(*headings.PERTH_HOUSE_PRICES),
    "sleep_mammals": _headed(*headings.SLEEP_MAMMALS),
    "arrhythmia": _unheaded(*headings.ARRHYTHMIA),
    "boston_housing": _headed(),
    "life_expectancy": _headed(*headings.LIFE_EXPECTANCY),
    "hcc_survival": _unheaded(*headings.HCC_SURVIVAL),
    "wiki4he": _headed(),
}
