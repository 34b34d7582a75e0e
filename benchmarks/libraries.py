"""Ratings beside other libraries on MovieLens: errors, seconds and memory, the same cells for all

A tenth of the cells is for test, errors are of predictions cut to 1..5. A setting is chosen from a small grid
(benchmarks/raters.py) by as large a share of the training cells of the first split, by the root mean squared error.
Test cells never choose. On a million cells every second setting is tried, on one split instead of three. Rankings are
in benchmarks/ranking.py. Every model has a process of its own. Seconds are the less of two fits of the chosen setting
with two threads (Surprise has one), without the preparation of the data; memory is the peak of the whole process during
the first of these over what it held before.
"""

import ctypes
import gc
import json
import subprocess
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from os import environ
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.contenders import SEED, THREADS, Contender, Setting, words
from benchmarks.measuring import seconds_of, table
from benchmarks.raters import RATERS
from halfseen import Observed
from halfseen.datasets import load_ratings
from halfseen.errors import DataError
from halfseen.io import split_cells

#: Splits into training and test cells, and one setting of so many is tried.
SETS = {"movielens-100k": (3, 1), "movielens-1m": (1, 2)}
#: Rows for a first fit, after which everything is compiled and imported.
FEW_ROWS = 20


SHARE, MEASURES = 0.1, ("RMSE", "MAE")


def _errors(contender: Contender, model: Any, train: Observed, test: Observed) -> Sequence[float]:
    """RMSE and MAE at test cells of known rows and columns, about which every library has something to say."""
    rows, columns = test.row_of_cell(), test.indices
    known = (train.seen_per_column()[columns] > 0) & (train.seen_per_row()[rows] > 0)
    predicted = np.clip(contender.answer(model, rows[known], columns[known]), 1, 5)
    off = predicted - test.values[known]
    return float(np.sqrt(np.mean(off**2))), float(np.abs(off).mean())


def run() -> list[str]:
    lines = []
    for name in SETS:
        lines += [*_table(name), ""]
    return lines[:-1]


def _table(name: str) -> list[str]:
    try:
        train, test = _split(name, 0)
    except DataError as error:
        return [f"Left out, {name}: {error}"]
    splits = SETS[name][0]
    here = [one for one in RATERS if one.is_installed]
    quality = {one.name: _child("judged", name, one.name) for one in here}
    costs = {who: _child("spent", name, who, json.dumps(found["setting"])) for who, found in quality.items()}
    defaults = [f"{measure}, defaults" for measure in MEASURES]
    first = f"{name}, {train.nnz:,} cells to learn from, {test.nnz:,} to test by"
    header = (first, *defaults, "chosen", *MEASURES, "fit, s", "CPU s", "peak, MB")
    rows = [(who, *_figures(found), *_costs(costs[who])) for who, found in quality.items()]
    return [*table(header, rows), *_remarks(quality, splits)]


def _figures(found: Mapping[str, Any]) -> list[str]:
    defaults = [f"{one:.4f}" for one in np.mean(found["defaults"], axis=0)]
    return [*defaults, words(found["setting"]), *(f"{one:.4f}" for one in np.mean(found["chosen"], axis=0))]


def _costs(cost: Mapping[str, Any]) -> tuple[str, str, str]:
    peak = "" if cost["peak"] is None else f"{cost['peak'] / 1e6:.0f}"
    return f"{cost['clock']:.2f}", f"{cost['cpu']:.2f}", peak


def _remarks(quality: Mapping[str, Any], splits: int) -> list[str]:
    remarks = []
    if splits > 1:
        by_split = np.array([found["chosen"] for found in quality.values()])[:, :, 0]
        spread = np.std(by_split - by_split[0], axis=1, ddof=1).max()
        remarks.append(
            f"Means of {splits} splits; what a model's {MEASURES[0]} is above the first row's has a "
            f"standard deviation over splits of at most {spread:.4f}."
        )
    for one in RATERS:
        if not one.is_installed:
            remarks.append(f"{one.name} was left out: {one.package} is not installed.")
    return ["", " ".join(remarks)] if remarks else []


def _split(name: str, seed: int) -> tuple[Observed, Observed]:
    ratings = load_ratings(name)
    plain = Observed.from_cells(ratings.row_of_cell(), ratings.indices, ratings.values, ratings.shape)
    return split_cells(plain, SHARE, random_state=seed)


def _child(job: str, *arguments: str) -> dict[str, Any]:
    """What a function below gives, called in a process of its own."""
    program = f"import sys; from benchmarks import libraries; libraries.tell(libraries.{job}, *sys.argv[1:])"
    threads = {name: str(THREADS) for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "LK_NUM_THREADS")}
    found = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        env=environ | threads,
    )
    told: dict[str, Any] = json.loads(found.stdout.splitlines()[-1])
    return told


def tell(job: Callable[..., Mapping[str, Any]], *arguments: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of every library about its own matters
        print(json.dumps(job(*arguments)))


def judged(name: str, who: str) -> Mapping[str, Any]:
    """The setting chosen, and the measures of this and of the defaults in every split."""
    contender, (splits, one_in) = _named(who), SETS[name]
    setting = _chosen(contender, _split(name, 0)[0], contender.grid[::one_in])
    shown = {"chosen": setting, "defaults": {}}
    measures: dict[str, Any] = {key: [] for key in shown}
    for seed in range(splits):
        train, test = _split(name, seed)
        cells = contender.prepare(train)
        for key, one in shown.items():
            measures[key].append(_errors(contender, contender.fit(cells, one), train, test))
    return measures | {"setting": setting}


def _chosen(contender: Contender, train: Observed, settings: Sequence[Setting]) -> Setting:
    """By cells held out of the training cells."""
    if len(settings) == 1:
        return settings[0]
    fitted, held_out = split_cells(train, SHARE, random_state=SEED)
    cells = contender.prepare(fitted)

    def score(setting: Setting) -> float:
        model = contender.fit(cells, setting)
        return _errors(contender, model, fitted, held_out)[0]

    return min(settings, key=score)


def spent(name: str, who: str, setting: str) -> Mapping[str, Any]:
    """Seconds and bytes of a fit to the training cells of the first split."""
    contender, chosen = _named(who), json.loads(setting)
    train, _ = _split(name, 0)
    contender.fit(contender.prepare(train.select_rows(np.arange(FEW_ROWS))), chosen)
    cells = contender.prepare(train)
    before = _memory_reset()
    seconds = [seconds_of(lambda: contender.fit(cells, chosen))]
    peak = None if before is None else _memory("VmHWM") - before
    seconds.append(seconds_of(lambda: contender.fit(cells, chosen)))
    return {"clock": min(one.clock for one in seconds), "cpu": min(one.cpu for one in seconds), "peak": peak}


def _named(who: str) -> Contender:
    return next(contender for contender in RATERS if contender.name == who)


def _memory_reset() -> int | None:
    """Let the kernel forget the highest point so far; what the process holds now, None where that can't be told.

    What was freed is given back first: else a fit could take it, and seem to need less.
    """
    switch = Path("/proc/self/clear_refs")
    if not switch.exists():
        return None
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    switch.write_text("5")
    return _memory("VmRSS")


def _memory(what: str) -> int:
    """Bytes, as Linux counts them: of compiled libraries too, which tracemalloc does not see."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(what))
