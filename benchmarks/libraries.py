"""Beside other libraries on MovieLens: errors of ratings, rankings, seconds and memory, the same cells for all

Ratings: a tenth of the cells is for test, errors are of predictions cut to 1..5. Ranking: a fifth is for test, and all
films without a training cell are ranked, those with a test cell are relevant. A setting is chosen from a small grid
(benchmarks/raters.py, benchmarks/rankers.py) by as large a share of the training cells of the first split: by the root
mean squared error, by NDCG@100. Test cells never choose. On a million cells every second setting is tried, on one split
instead of three. Every model has a process of its own. Seconds are the less of two fits of the chosen setting with two
threads (Surprise has one), without the preparation of the data; memory is the peak of the whole process during the
first of these over what it held before.
"""

import ctypes
import gc
import json
import subprocess
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from os import environ
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.contenders import SEED, THREADS, Contender, Setting, words
from benchmarks.measuring import seconds_of, table
from halfseen import Observed
from halfseen.datasets import load_ratings
from halfseen.errors import DataError
from halfseen.io import split_cells
from halfseen.metrics import ranking_scores

#: Splits into training and test cells, and one setting of so many is tried.
SETS = {"movielens-100k": (3, 1), "movielens-1m": (1, 2)}
#: Rows for a first fit, after which everything is compiled and imported.
FEW_ROWS = 20


@dataclass(frozen=True)
class Contest:
    """What is asked of models, and how their answers are judged: lower is better, or higher, by the measure `by`."""

    share: float
    measures: tuple[str, ...]
    judge: Callable[[Contender, Any, Observed, Observed], Sequence[float]]
    by: int
    sign: int
    shows_defaults: bool


def _errors(contender: Contender, model: Any, train: Observed, test: Observed) -> Sequence[float]:
    """RMSE and MAE at test cells of known rows and columns, about which every library has something to say."""
    rows, columns = test.row_of_cell(), test.indices
    known = (train.seen_per_column()[columns] > 0) & (train.seen_per_row()[rows] > 0)
    predicted = np.clip(contender.answer(model, rows[known], columns[known]), 1, 5)
    off = predicted - test.values[known]
    return float(np.sqrt(np.mean(off**2))), float(np.abs(off).mean())


def _rankings(contender: Contender, model: Any, train: Observed, test: Observed) -> Sequence[float]:
    ten, hundred = (ranking_scores(contender.answer(model), train, test, k) for k in (10, 100))
    return [float(np.nanmean(one)) for one in (ten.ndcg, hundred.ndcg, ten.recall, hundred.recall)]


CONTESTS: Mapping[str, Contest] = {
    "ratings": Contest(0.1, ("RMSE", "MAE"), _errors, 0, -1, shows_defaults=True),
    "ranking": Contest(0.2, ("NDCG@10", "NDCG@100", "recall@10", "recall@100"), _rankings, 1, 1, shows_defaults=False),
}


def run() -> list[str]:
    lines = []
    for what in CONTESTS:
        for name in SETS:
            lines += [*_table(what, name), ""]
    return lines[:-1]


def _table(what: str, name: str) -> list[str]:
    try:
        train, test = _split(what, name, 0)
    except DataError as error:
        return [f"Left out, {what} on {name}: {error}"]
    contest, (splits, one_in) = CONTESTS[what], SETS[name]
    here = [one for one in contenders(what) if one.is_installed and (one_in == 1 or not one.takes_minutes)]
    quality = {one.name: _child("judged", what, name, one.name) for one in here}
    costs = {who: _child("spent", what, name, who, json.dumps(found["setting"])) for who, found in quality.items()}
    defaults = [f"{measure}, defaults" for measure in contest.measures] if contest.shows_defaults else []
    first = f"{name}, {train.nnz:,} cells to learn from, {test.nnz:,} to test by"
    header = (first, *defaults, "chosen", *contest.measures, "fit, s", "CPU s", "peak, MB")
    rows = [(who, *_figures(contest, found), *_costs(costs[who])) for who, found in quality.items()]
    return [*table(header, rows), *_remarks(contest, contenders(what), quality, splits)]


def _figures(contest: Contest, found: Mapping[str, Any]) -> list[str]:
    defaults = [f"{one:.4f}" for one in np.mean(found["defaults"], axis=0)] if contest.shows_defaults else []
    return [*defaults, words(found["setting"]), *(f"{one:.4f}" for one in np.mean(found["chosen"], axis=0))]


def _costs(cost: Mapping[str, Any]) -> tuple[str, str, str]:
    peak = "" if cost["peak"] is None else f"{cost['peak'] / 1e6:.0f}"
    return f"{cost['clock']:.2f}", f"{cost['cpu']:.2f}", peak


def _remarks(contest: Contest, everybody: Sequence[Contender], quality: Mapping[str, Any], splits: int) -> list[str]:
    remarks = []
    if splits > 1:
        by_split = np.array([found["chosen"] for found in quality.values()])[:, :, contest.by]
        spread = np.std(by_split - by_split[0], axis=1, ddof=1).max()
        remarks.append(
            f"Means of {splits} splits; what a model's {contest.measures[contest.by]} is above the first row's has a "
            f"standard deviation over splits of at most {spread:.4f}."
        )
    for one in everybody:
        if not one.is_installed:
            remarks.append(f"{one.name} was left out: {one.package} is not installed.")
        elif one.name not in quality:
            remarks.append(f"{one.name} was left out: it would take many minutes.")
    return ["", " ".join(remarks)] if remarks else []


def contenders(what: str) -> Sequence[Contender]:
    from benchmarks.rankers import RANKERS
    from benchmarks.raters import RATERS

    return {"ratings": RATERS, "ranking": RANKERS}[what]


def _split(what: str, name: str, seed: int) -> tuple[Observed, Observed]:
    ratings = load_ratings(name)
    plain = Observed.from_cells(ratings.row_of_cell(), ratings.indices, ratings.values, ratings.shape)
    return split_cells(plain, CONTESTS[what].share, random_state=seed)


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


def judged(what: str, name: str, who: str) -> Mapping[str, Any]:
    """The setting chosen, and the measures of this and of the defaults in every split."""
    contest, contender, (splits, one_in) = CONTESTS[what], _named(what, who), SETS[name]
    setting = _chosen(contest, contender, _split(what, name, 0)[0], contender.grid[::one_in])
    shown = {"chosen": setting} | ({"defaults": {}} if contest.shows_defaults else {})
    measures: dict[str, Any] = {key: [] for key in shown}
    for seed in range(splits):
        train, test = _split(what, name, seed)
        cells = contender.prepare(train)
        for key, one in shown.items():
            measures[key].append(contest.judge(contender, contender.fit(cells, one), train, test))
    return measures | {"setting": setting}


def _chosen(contest: Contest, contender: Contender, train: Observed, settings: Sequence[Setting]) -> Setting:
    """By cells held out of the training cells."""
    if len(settings) == 1:
        return settings[0]
    fitted, held_out = split_cells(train, contest.share, random_state=SEED)
    cells = contender.prepare(fitted)

    def score(setting: Setting) -> float:
        model = contender.fit(cells, setting)
        return contest.sign * contest.judge(contender, model, fitted, held_out)[contest.by]

    return max(settings, key=score)


def spent(what: str, name: str, who: str, setting: str) -> Mapping[str, Any]:
    """Seconds and bytes of a fit to the training cells of the first split."""
    contender, chosen = _named(what, who), json.loads(setting)
    train, _ = _split(what, name, 0)
    contender.fit(contender.prepare(train.select_rows(np.arange(FEW_ROWS))), chosen)
    cells = contender.prepare(train)
    before = _memory_reset()
    seconds = [seconds_of(lambda: contender.fit(cells, chosen))]
    peak = None if before is None else _memory("VmHWM") - before
    seconds.append(seconds_of(lambda: contender.fit(cells, chosen)))
    return {"clock": min(one.clock for one in seconds), "cpu": min(one.cpu for one in seconds), "peak": peak}


def _named(what: str, who: str) -> Contender:
    return next(contender for contender in contenders(what) if contender.name == who)


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
