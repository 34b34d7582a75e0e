"""Ratings with a posterior: OrdinalMF(inference="gibbs") beside myfm and its own point estimates, on MovieLens

The five splits u1 to u5 of MovieLens 100K: root mean squared error (RMSE), ranked probability score (RPS) divided by
the number of levels less 1, and the share of test cells in 90 % intervals of their level, beside the probability that
the model itself gives these intervals: levels are few, so that intervals of whole levels hold more than they are asked
for. All settings are defaults but for the numbers of components, which are those of the goals and were not chosen by
test cells. Features are genres of films and age, sex and occupation of users. myfm 0.4.0 (`pip install myfm`) is a
Gibbs sampler of factorization machines in C++; it gets the same rank and as many sweeps, and for who-rated-what its own
encoding of each user's and each film's set. Both are timed in turn on u1, in one process, with one chain each; myfm
uses one thread. MovieLens 1M: a tenth of the cells held out at random.

    HALFSEEN_SAMPLING="5 3"         splits, and runs of each timing
    HALFSEEN_SAMPLING_LARGE="20 50" numbers of components for MovieLens 1M; empty: leave it out
"""

import contextlib
import os
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from benchmarks.measuring import in_process, seconds_of, table, usage_of
from halfseen import Observed, OrdinalMF
from halfseen.datasets import data_folder, load_ratings, load_split
from halfseen.metrics import ranked_probability_score

SPLITS, RUNS = map(int, os.environ.get("HALFSEEN_SAMPLING", "5 3").split())
LARGE = tuple(map(int, os.environ.get("HALFSEEN_SAMPLING_LARGE", "20 50").split()))
SWEEPS, BURN = 200, 40
GENRES = 19


def run() -> Iterator[str]:
    warnings.simplefilter("ignore")
    yield from _quality()
    yield ""
    if find_spec("myfm"):
        yield from _beside_myfm()
        yield ""
    if LARGE:
        yield from _large()


def _features() -> dict[str, Any]:
    """Genres of films; age, sex and occupation of users."""
    folder = data_folder() / "movielens-100k"
    users = pd.read_csv(folder / "u.user", sep="|", names=["user", "age", "sex", "occupation", "zip"])
    films = pd.read_csv(folder / "u.item", sep="|", encoding="latin-1", header=None)
    films = films[[0, *range(5, 5 + GENRES)]].rename(columns={0: "film"}).rename(columns=str)
    return {"row_features": users.drop(columns="zip"), "column_features": films}


def _scores(model: Any, test: Observed) -> list[float]:
    """RMSE, RPS, and the share of cells in 90 % intervals with the probability that they have."""
    cells = test.row_labels[test.row_of_cell()], test.column_labels[test.indices]
    probabilities, levels = model.predict_proba(*cells), np.asarray(model.levels_, float)
    error = float(np.sqrt(np.mean((model.predict(*cells) - test.values) ** 2)))
    rps = ranked_probability_score(test.values, probabilities, labels=levels) / (len(levels) - 1)
    if not model.model_.has_posterior:
        return [error, rps, np.nan, np.nan]
    low, high = model.predict_interval(*cells, 0.9)
    inside = (levels >= np.asarray(low, float)[:, None]) & (levels <= np.asarray(high, float)[:, None])
    covered = np.mean((test.values >= low) & (test.values <= high))
    return [error, rps, float(covered), float(np.mean(probabilities[inside]) * inside.sum(axis=1).mean())]


def _quality() -> Iterator[str]:
    settings: dict[str, tuple[Callable[[], Any], float | None]] = {
        "map, K = 10": (partial(OrdinalMF, 10), None),
        "gibbs, K = 10": (partial(OrdinalMF, 10, inference="gibbs"), 0.8965),
        "gibbs, implicit, K = 20": (partial(OrdinalMF, 20, inference="gibbs", implicit=True), 0.8785),
        "gibbs, implicit, features, K = 20": (
            partial(OrdinalMF, 20, inference="gibbs", implicit=True, **_features()),
            0.8760,
        ),
    }
    names = ("", "RMSE", "goal", *(f"u{j + 1}" for j in range(SPLITS)), "RPS", "90 % hold", "as the model says")
    names = (*names, "seconds", "CPU s", "MB")
    yield from table(names, [])
    for name, (make, goal) in settings.items():

        def work(split: str, make: Callable[[], Any] = make) -> list[float]:
            train, test = load_split(split)
            make().set_params(**({"n_sweeps": 3, "n_burn": 1} if make().inference == "gibbs" else {})).fit(train)
            model, usage = usage_of(lambda: make().set_params(random_state=0).fit(train))
            return [*_scores(model, test), usage.clock, usage.cpu, (usage.peak - usage.held) / 1e6]

        found = np.array([in_process(partial(work, f"u{j + 1}")) for j in range(SPLITS)])
        mean = found.mean(axis=0)
        shown = ["" if np.isnan(one) else f"{one:.3f}" for one in mean[1:4]]
        met = "" if goal is None else f"{goal}, {'met' if mean[0] <= goal else '**missed**'}"
        errors = (f"{one:.4f}" for one in found[:, 0])
        costs = (f"{mean[4]:.1f}", f"{mean[5]:.1f}", f"{mean[6]:.0f}")
        yield f"| {' | '.join((name, f'**{mean[0]:.4f}**', met, *errors, *shown, *costs))} |"


# ours and myfm in turn


def _myfm(
    train: Observed, test: Observed, rank: int, implicit: bool
) -> tuple[Callable[[], Any], Callable[[Any], float]]:
    """What fits myfm's ordered probit, and what tells its RMSE; with relation blocks, as its authors advise."""
    import myfm

    blocks, groups = [], []
    sets = sparse.csr_matrix((np.ones(train.nnz), (train.row_of_cell(), train.indices)), train.shape)
    for side in (sets, sets.T.tocsr()):
        ones = sparse.identity(side.shape[0], format="csr")
        scaled = sparse.diags(np.maximum(np.diff(side.indptr), 1) ** -0.5) @ side
        blocks.append(sparse.hstack([ones, scaled], format="csr") if implicit else ones)
        groups += list(side.shape) if implicit else [side.shape[0]]

    def relations(cells: Observed) -> list[Any]:
        index = cells.row_of_cell(), cells.indices
        return [myfm.RelationBlock(one, block) for one, block in zip(index, blocks, strict=True)]

    def fit() -> Any:
        model, codes = myfm.MyFMOrderedProbit(rank=rank, random_seed=0), train.values.astype(int) - 1
        kept = {"n_iter": SWEEPS, "n_kept_samples": SWEEPS - BURN}
        with open(os.devnull, "w") as nowhere, contextlib.redirect_stderr(nowhere):
            return model.fit(None, codes, X_rel=relations(train), group_shapes=groups, **kept)

    def error(model: Any) -> float:
        expected = model.predict_proba(None, relations(test)) @ np.arange(1.0, 6.0)
        return float(np.sqrt(np.mean((expected - test.values) ** 2)))

    return fit, error


def _beside_myfm() -> Iterator[str]:
    train, test = load_split("u1")
    rows = []
    for rank, implicit in ((10, False), (10, True), (20, True)):
        fit, error = _myfm(train, test, rank, implicit)
        settings = {"n_components": rank, "implicit": implicit, "inference": "gibbs"}
        ours = OrdinalMF(**settings, n_chains=1, random_state=0)
        ours.set_params(n_sweeps=3, n_burn=1).fit(train)  # compiled
        ours.set_params(n_sweeps=SWEEPS, n_burn=BURN)
        times = [(seconds_of(partial(ours.fit, train)), seconds_of(fit)) for _ in range(RUNS)]
        (clock, cpu), (their_clock, their_cpu) = (min(one) for one in zip(*times, strict=True))
        name = f"K = {rank}{', who rated what' if implicit else ''}"
        met = "met" if clock <= their_clock / 4 else "**missed**"
        rows.append((
            name, f"{clock:.1f}", f"{their_clock:.1f}", f"**{clock / their_clock:.2f}**, {met}",
            f"{cpu / their_cpu:.2f}", f"{_scores(ours, test)[0]:.4f}", f"{error(fit()):.4f}",
        ))  # fmt: skip
    header = (f"u1, {SWEEPS} sweeps, one chain", "OrdinalMF, s", "myfm, s", "ratio (goal .25)", "of CPU seconds")
    yield from table((*header, "RMSE", "myfm"), rows)


# MovieLens 1M


def _large() -> Iterator[str]:
    ratings = load_ratings("movielens-1m")
    random = np.random.default_rng(0)
    held_out = random.random(ratings.nnz) < 0.1
    rows, columns, labels = ratings.row_of_cell(), ratings.indices, (ratings.row_labels, ratings.column_labels)

    def part(mask: Any) -> Observed:
        return Observed.from_cells(
            rows[mask], columns[mask], ratings.values[mask], shape=ratings.shape, row_labels=labels[0],
            column_labels=labels[1],
        )  # fmt: skip

    train, test = part(~held_out), part(held_out)
    yield from table(
        ("MovieLens 1M, implicit", "RMSE (goals .8215, .8170)", "RPS", "seconds (goal 90)", "CPU s", "MB", "status"), []
    )
    for k in LARGE:

        def work(k: int = k) -> list[Any]:
            small, _ = load_split("u1")
            OrdinalMF(k, inference="gibbs", implicit=True, n_sweeps=3, n_burn=1).fit(small)  # compiled
            length = {"n_sweeps": 100, "n_burn": 30} if k <= 20 else {"n_sweeps": 120, "n_burn": 40}
            make = OrdinalMF(k, inference="gibbs", implicit=True, **length, random_state=0)
            model, usage = usage_of(lambda: make.fit(train))
            status = f"{model.status_.name}, R-hat {model.diagnostics_['predicted cells'].r_hat:.3f}"
            return [*_scores(model, test)[:2], usage.clock, usage.cpu, (usage.peak - usage.held) / 1e6, status]

        error, rps, clock, cpu, peak, status = in_process(work)
        yield f"| K = {k} | **{error:.4f}** | {rps:.4f} | {clock:.0f} | {cpu:.0f} | {peak:.0f} | {status} |"
