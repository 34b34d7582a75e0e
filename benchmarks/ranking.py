"""Ranking: ours, with nothing set and tuned, beside irspack, EASE, SLIM, implicit, LensKit and popularity, on five sets

Of MovieLens latest-small, MovieTweetings and Last.fm rows and columns with 5 cells and more are kept; plays are ten
classes of counts. A fifth of the cells is for test, drawn once; NDCG@100 of the ranking of all columns without a
training cell, at four thresholds s of relevance: 1, 3, 4 and 5 stars; 1, 6, 8 and 10 of ten levels. A setting is chosen
from a grid by the mean over s on a fifth of the training cells; then all training cells are fitted from five starts.
Test cells never choose. The mean over s has the standard error of its difference from the Blend's, over rows (users),
after the mean over starts. Every fit has a process of its own. Seconds (the least of all starts) and processor seconds
are those of a fit with two threads, without the preparation of the data; memory is what is resident at the most beyond
what was before. "Users held out": a tenth of the rows, at most 1,000, is held out of the fit; four fifths of the cells
of each are its history, which is folded in, and the others are to be ranked, with the settings of the table before.

Settings by environment variables, so that a long run can be done in pieces and resumed:

    HALFSEEN_RANKING="5"                              starts
    HALFSEEN_RANKING_SETS="movielens-1m,lastfm"       sets, by the beginnings of their names
    HALFSEEN_RANKING_METHODS="irspack iALS;EASE"      what is run; others are shown if they were run before
    HALFSEEN_RANKING_CACHE=folder                     results are kept there, and not computed again
    HALFSEEN_RANKING_VERSION=name                     of the code of ours: its results are kept by this name
"""

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

import numpy as np

import halfseen
from benchmarks.contenders import THREADS, Setting, words
from benchmarks.measuring import in_process, seconds_of, table, usage_of
from benchmarks.rankers import OURS, RANKERS, Ranker
from halfseen import Observed
from halfseen.datasets import k_core, load_ratings
from halfseen.errors import DataError
from halfseen.io import split_cells
from halfseen.metrics import ranking_scores
from halfseen.studies.ordnmf_methods import quantize

LENGTH, SHARE, SPLIT_SEED = 100, 0.2, 0
#: Processor seconds of a fit at most, and of the whole choice of a setting.
LIMIT = 1200
#: Rows for a first fit, after which everything is compiled and imported.
FEW_ROWS = 40


def _setting(name: str, default: str = "") -> str:
    return os.environ.get(f"HALFSEEN_RANKING{name}", default)


STARTS = int(_setting("", "5"))


class Case(NamedTuple):
    """A set, and its thresholds of relevance."""

    load: Callable[[], Observed]
    thresholds: tuple[float, ...]


CASES: Mapping[str, Case] = {
    "movielens-1m": Case(lambda: load_ratings("movielens-1m"), (1, 3, 4, 5)),
    "movielens-100k": Case(lambda: load_ratings("movielens-100k"), (1, 3, 4, 5)),
    "movielens-latest-small": Case(lambda: k_core(load_ratings("movielens-latest-small"), 5), (1, 3, 4, 5)),
    "movietweetings-100k": Case(lambda: k_core(load_ratings("movietweetings-100k"), 5), (1, 6, 8, 10)),
    "lastfm-hetrec2011": Case(lambda: quantize(k_core(load_ratings("lastfm-hetrec2011"), 5)), (1, 6, 8, 10)),
}


class Split(NamedTuple):
    """Cells to fit, cells to be ranked, and of rows that are not fitted the histories, None for fitted rows."""

    train: Observed
    test: Observed
    history: Observed | None = None


def run() -> Iterator[str]:
    sets = [
        name for name in CASES if any(name.startswith(one) for one in _setting("_SETS", ",".join(CASES)).split(","))
    ]
    for name in sets:
        try:
            cells = _plain(CASES[name].load())
        except DataError as error:
            yield f"Left out, {name}: {error}"
            continue
        settings: dict[str, Setting] = {}
        yield from _table(name, "cells", weak(cells), settings)
        yield ""
        if name == "movielens-1m":
            yield from _table(name, "rows", strong(cells), settings)
            yield ""
            yield from end_to_end(weak(cells))
            yield ""


def _plain(cells: Observed) -> Observed:
    """Without labels, for which nobody should pay."""
    return Observed.from_cells(cells.row_of_cell(), cells.indices, cells.values, cells.shape)


def weak(cells: Observed) -> Split:
    """Cells are held out."""
    return Split(*split_cells(cells, SHARE, random_state=SPLIT_SEED))


def strong(cells: Observed) -> Split:
    """Rows are held out; a fifth of the cells of each is to be ranked, the others are its history."""
    n = cells.shape[0]
    is_out = np.zeros(n, bool)
    is_out[np.random.default_rng(SPLIT_SEED).permutation(n)[: min(1000, n // 10)]] = True
    history, test = split_cells(cells.select_rows(np.flatnonzero(is_out)), SHARE, random_state=SPLIT_SEED)
    return Split(cells.select_rows(np.flatnonzero(~is_out)), test, history)


def _table(name: str, kind: str, split: Split, settings: dict[str, Setting]) -> Iterator[str]:
    """One row per model; settings that are in `settings` are not chosen again, the others are put there."""
    thresholds = CASES[name].thresholds
    asked = [one for one in _setting("_METHODS").split(";") if one]
    found: dict[str, Any] = {}
    remarks = []
    for ranker in RANKERS:
        if not ranker.is_installed:
            remarks.append(f"{ranker.name} was left out: {ranker.package} is not installed.")
            continue
        if split.history is not None and (ranker.fold_in is None or ranker.name not in settings):
            continue
        is_asked = not asked or ranker.name in asked
        try:
            found[ranker.name] = judged(name, kind, ranker, split, thresholds, is_asked, settings.get(ranker.name))
            settings[ranker.name] = found[ranker.name]["setting"]
        except (TimeoutError, RuntimeError) as error:
            remarks.append(f"{ranker.name} was left out: {error}.")
        except LookupError:
            continue  # not asked for, and not run before
    what = "users held out" if split.history is not None else "cells held out"
    header = (
        f"{name}, {what}, {split.train.nnz:,} training cells", *(f"s = {s:g}" for s in thresholds), "mean",
        "behind Blend", "chosen", "fit, s", "CPU s", "MB",
    )  # fmt: skip
    ranked = sorted(found, key=lambda one: -np.nanmean(_mean_of_starts(found[one]), axis=1).mean())
    first = next((one for one in ranked if one == "halfseen Blend"), ranked[0] if ranked else "")
    rows = [_row(one, found[one], found[first]) for one in ranked]
    yield from table(header, rows)
    if remarks:
        yield ""
        yield " ".join(remarks)


def _mean_of_starts(result: Mapping[str, Any]) -> Any:
    """NDCG of each threshold and row, NaN where nothing is relevant."""
    return np.array(result["ndcg"], dtype=float).mean(axis=0)


def _row(name: str, result: Mapping[str, Any], first: Mapping[str, Any]) -> list[str]:
    of_rows, of_first = _mean_of_starts(result), _mean_of_starts(first)
    means = np.nanmean(of_rows, axis=1)
    behind = np.nanmean(of_first, axis=1).mean() - means.mean()
    # the mean over s of means over different rows: its standard error by the influence of each row
    has = ~np.isnan(of_rows)
    gaps = np.where(has, of_first - of_rows, 0.0)
    influence = (
        (gaps - np.where(has, gaps.sum(1, keepdims=True) / has.sum(1, keepdims=True), 0.0)) / has.sum(1, keepdims=True)
    ).mean(0)
    error = float(np.sqrt(np.sum(influence**2)))
    costs = f"{min(result['clock']):.2f}", f"{min(result['cpu']):.2f}", f"{max(result['peak']) / 1e6:.0f}"
    gap = "" if result is first else f"{behind:.4f} ± {error:.4f}"
    return [name, *(f"{one:.4f}" for one in means), f"**{means.mean():.4f}**", gap, words(result["setting"]), *costs]


def judged(
    name: str,
    kind: str,
    ranker: Ranker,
    split: Split,
    thresholds: Sequence[float],
    is_asked: bool,
    setting: Setting | None,
) -> Mapping[str, Any]:
    """The setting chosen; of each start NDCG by threshold and row, seconds and bytes."""
    version = _setting("_VERSION") if ranker.name in OURS else "1"
    key = f"{name} {kind} {ranker.name} {STARTS} {version}".replace("/", "-")
    cache = _setting("_CACHE")
    path = Path(cache or ".") / f"{key}.json"
    if cache and path.is_file():
        return json.loads(path.read_text(encoding="utf-8"))
    if not is_asked:
        raise LookupError(key)
    if setting is None and len(ranker.grid) == 1:
        setting = ranker.grid[0]
    if setting is None:
        setting = in_process(lambda: _chosen(ranker, split.train, thresholds), LIMIT)
    starts = STARTS if ranker.is_random else 1
    of_starts = [
        in_process(lambda seed=seed: _spent(ranker, setting, split, thresholds, seed), LIMIT) for seed in range(starts)
    ]
    result = {"setting": setting} | {
        one: [start[one] for start in of_starts] for one in ("ndcg", "clock", "cpu", "peak")
    }
    if cache:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(result), encoding="utf-8")
    return result


def _chosen(ranker: Ranker, train: Observed, thresholds: Sequence[float]) -> Setting:
    """By cells held out of the training cells."""
    fitted, held_out = split_cells(train, SHARE, random_state=SPLIT_SEED + 1)
    cells = ranker.prepare(fitted)

    def score(setting: Setting) -> float:
        model = ranker.answer(ranker.fit(cells, setting, 0))
        return float(np.nanmean(ranking_scores(model, fitted, held_out, LENGTH, list(thresholds)).ndcg, axis=1).mean())

    return max(ranker.grid, key=score)


def _spent(ranker: Ranker, setting: Setting, split: Split, thresholds: Sequence[float], seed: int) -> Mapping[str, Any]:
    ranker.fit(ranker.prepare(split.train.select_rows(np.arange(FEW_ROWS))), setting, seed)
    cells = ranker.prepare(split.train)
    model, usage = usage_of(lambda: ranker.fit(cells, setting, seed))
    if split.history is None:
        scores = ranking_scores(ranker.answer(model), split.train, split.test, LENGTH, list(thresholds))
    else:
        scores = ranking_scores(
            ranker.fold_in(model, split.history), split.history, split.test, LENGTH, list(thresholds)
        )
    ndcg = [[None if one != one else round(one, 6) for one in row] for row in scores.ndcg.tolist()]
    return {"ndcg": ndcg, "clock": usage.clock, "cpu": usage.cpu, "peak": usage.peak - usage.held}


def end_to_end(split: Split) -> Iterator[str]:
    """Fit with nothing set, recommend 100 to everybody, evaluate."""

    def timed(make: Callable[[], Any]) -> Mapping[str, Any]:
        make().fit(split.train.select_rows(np.arange(FEW_ROWS)))
        fitted: list[Any] = []
        fit = seconds_of(lambda: fitted.append(make().fit(split.train)))
        recommend = seconds_of(lambda: fitted[0].recommend(np.arange(split.train.shape[0]), n=LENGTH))
        evaluate = seconds_of(lambda: ranking_scores(fitted[0], None, split.test, LENGTH, [1, 3, 4, 5]))
        return {"clock": [fit.clock, recommend.clock, evaluate.clock], "cpu": fit.cpu + recommend.cpu + evaluate.cpu}

    rows = []
    for name in ("SquaredOrdNMF", "ImplicitMF", "ItemGraph", "Blend"):
        if hasattr(halfseen, name):
            kind = getattr(halfseen, name)
            spent = in_process(lambda kind=kind: timed(kind), LIMIT)
            rows.append(
                [name, *(f"{one:.2f}" for one in spent["clock"]), f"{sum(spent['clock']):.2f}", f"{spent['cpu']:.2f}"]
            )
    header = (
        "movielens-1m, nothing set",
        "fit, s",
        "recommend 100 to all, s",
        "evaluate, s",
        "together (goal 12)",
        "CPU s",
    )
    yield from table(header, rows)
    yield ""
    rivals = {one.name: one for one in RANKERS}
    rows = []
    for name, setting in (
        ("irspack iALS", {"n_components": 256, "alpha0": 1.0, "reg": 0.01}),
        ("halfseen SquaredOrdNMF, tuned", {"n_components": 200}),
        ("halfseen ImplicitMF, tuned", {"n_components": 256}),
    ):
        ranker = rivals.get(name)
        if ranker is not None and ranker.is_installed:
            spent = [
                in_process(lambda ranker=ranker, setting=setting: _spent(ranker, setting, split, (1,), 0), LIMIT)
                for _ in range(3)
            ]
            figures = (f"{min(one['clock'] for one in spent):.2f}", f"{min(one['cpu'] for one in spent):.2f}")
            rows.append([name, words(setting), *figures, f"{mean(one['peak'] for one in spent) / 1e6:.0f}"])
    yield from table(
        ("movielens-1m, least of three fits", "setting", f"fit, s, {THREADS} threads", "CPU s", "MB"), rows
    )
