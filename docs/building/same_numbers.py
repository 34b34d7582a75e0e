"""Record the numbers that every estimator gives, and compare two recordings to the last bit.

    python docs/building/same_numbers.py record before.npz
    python docs/building/same_numbers.py record after.npz
    python docs/building/same_numbers.py compare before.npz after.npz

Meant for changes of the code that must not change its numbers. Only public names are used, so that the script runs on
the code before and after such a change. Every estimator is fitted on generated and built-in data with every option that
changes the arithmetic; fitted attributes and what every method returns are recorded, of the fitted model and of the
model that is saved and loaded. All is done with one thread and with two, on data large enough for both.
"""

from __future__ import annotations

import argparse
import fnmatch
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

import halfseen as hs

Record = dict[str, np.ndarray]

#: Documented fitted attributes; a model has some of them.
ATTRIBUTES = (
    "W_", "H_", "components_", "W_shape_", "W_rate_", "H_shape_", "H_rate_", "W_inverse_rate_", "H_inverse_rate_",
    "thresholds_", "own_thresholds_", "levels_", "level_weights_", "l2_", "p_", "row_biases_", "column_biases_",
    "n_iter_", "n_features_in_", "feature_names_in_", "row_labels_", "column_labels_", "axis_factors_", "n_parts_",
    "parts_", "inner_shape_", "increase_rate_", "diagnostics_", "n_clipped_", "w_", "balance_",
)  # fmt: skip


LEVELS = ["awful", "bad", "fair", "good", "great"]

# --- data -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Data:
    """What a model is fitted on, new rows, and histories: values at some of the columns."""

    X: Any
    new: Any = None
    history: tuple[Any, ...] = ()
    weight: Any = None
    new_weight: Any = None
    everything: bool = True  # complete, sample and so on; not for the large data

    @property
    def unweighted(self) -> tuple[Any, Any]:
        """X and new rows without a column of weights."""
        return tuple(x.drop(columns=self.weight) if isinstance(self.weight, str) else x for x in (self.X, self.new))


def half_seen(n: int, m: int, kind: str, seed: int, holes: float = 0.35, dtype: Any = np.float64) -> np.ndarray:
    """A dense array with NaN, zeros, an empty row and an empty column; kind: "amounts", "counts" or "levels"."""
    rng = np.random.default_rng(seed)
    if kind == "levels":
        x = rng.normal(size=(n, 2)) @ rng.normal(size=(2, m)) + rng.normal(size=m) + 0.5 * rng.logistic(size=(n, m))
        X = 1.0 + np.digitize(x, np.quantile(x, [0.1, 0.35, 0.6, 0.85]))
    else:
        X = rng.gamma(1.5, 1.0, (n, 2)) @ rng.gamma(1.0, 1.0, (2, m)) + 0.05
        X = np.asarray(rng.poisson(X), np.float64) if kind == "counts" else X * rng.gamma(5.0, 0.2, (n, m))
        X[rng.random((n, m)) < 0.1] = 0.0
        X[2], X[:, 4] = 0.0, 0.0
    X[rng.random((n, m)) < holes] = np.nan
    X[5], X[:, 7] = np.nan, np.nan
    return X.astype(dtype)


def long_frame(seed: int, *, users: str = "u", names: bool = False, weights: bool = False) -> Any:
    """A long frame with text ids, ratings 1..5 or their names, and perhaps weights, its lines in any order."""
    import pandas as pd

    rng = np.random.default_rng(seed)
    Y = half_seen(25, 15, "levels", seed)
    rows, columns = np.nonzero(~np.isnan(Y))
    order = rng.permutation(rows.size)
    rows, columns = rows[order], columns[order]
    rating = Y[rows, columns].astype(int)
    if names:
        rating = pd.Categorical.from_codes(rating - 1, LEVELS, ordered=True)
    users_and_items = {"user": [f"{users}{row}" for row in rows], "item": [f"i {column}" for column in columns]}
    weight = {"weight": rng.choice([0.5, 1.0, 3.0, 0.37], rows.size)} if weights else {}
    return pd.DataFrame({**users_and_items, "rating": rating, **weight})


@cache
def data() -> dict[str, Data]:
    """All data by name. Made once: what is generated does not depend on the code that is compared."""
    import pandas as pd

    rng = np.random.default_rng(1)
    made: dict[str, Data] = {}
    for kind, values in (("amounts", (2.5, 1.0, 0.0)), ("counts", (2.0, 1.0, 4.0)), ("levels", (5.0, 1.0, 3.0))):
        for dtype in (np.float64, np.float32):
            X, new = half_seen(30, 20, kind, 3, dtype=dtype), half_seen(9, 20, kind, 4, dtype=dtype)
            weight, new_weight = (rng.choice([0.5, 1.0, 3.0, 0.37, 0.0], array.shape) for array in (X, new))
            name = kind if dtype is np.float64 else f"{kind}32"
            made[name] = Data(X, new, values)
            made[f"weighted-{name}"] = Data(X, new, values, weight, new_weight)
        full = np.nan_to_num(half_seen(30, 20, kind, 5, holes=0.0), nan=1.0) + (0.1 if kind == "amounts" else 0.0)
        made[f"full-{kind}"] = Data(full, full[:5] + 0.0, values)
        X, new = (np.nan_to_num(half_seen(n, 40, kind, 6, holes=0.8)) for n in (60, 9))
        made[f"sparse-{kind}"] = Data(sparse.csr_array(X), sparse.coo_array(new), values)
        # more cells than one block of the engine: two threads share the work
        X = half_seen(700, 400, kind, 7, holes=0.4)
        made[f"large-{kind}"] = Data(X, X[:50] + 0.0, values, everything=False)
    positive = half_seen(30, 20, "amounts", 14, dtype=np.float32) + np.float32(0.1)
    made["positive32"] = Data(positive, positive[10:15], (2.5, 1.0, 0.3), np.where(positive > 1, 0.5, 2.0))
    levels = half_seen(30, 20, "levels", 3)
    binary = np.where(np.isnan(levels), np.nan, levels > 2)
    made["binary"] = Data(binary, binary[:6], (1.0, 0.0, 1.0))
    wide = pd.DataFrame(half_seen(20, 8, "levels", 8), columns=[f"question {column}" for column in range(8)])
    wide.insert(0, "id", [f"p{row}" for row in range(20)])
    made["wide"] = Data(wide, wide.head(5), (5, 1, 3))
    made["long"] = Data(long_frame(9), long_frame(10, users="v"), (5, 1, 3))
    weighted = (long_frame(seed, users=users, weights=True) for seed, users in ((9, "u"), (10, "v")))
    made["weighted-long"] = Data(*weighted, (5, 1, 3), "weight", "weight")
    texts = [long_frame(seed, users=users, names=True) for seed, users in ((11, "u"), (12, "v"))]
    made["texts"] = Data(*texts, ("great", "awful", "fair"))
    made["unordered-texts"] = Data(*(one.astype({"rating": str}) for one in texts), ("great", "awful", "fair"))
    repeated = pd.concat([long_frame(9), long_frame(9).head(30).assign(rating=2)])
    for unseen in ("zero", "missing"):
        observed = hs.observe(repeated, duplicates="keep", unseen=unseen)
        made[f"repeated-{unseen}"] = Data(observed, long_frame(10, users="v"), (5, 1, 3))
    sample = hs.datasets.load_movietweetings()
    some = hs.observe(sample.select_rows(np.arange(0, 400, 7)), unseen="missing")
    made["sample"] = Data(sample, some, (9, 2, 6), everything=False)
    made["sample-zero"] = Data(
        hs.observe(sample, unseen="zero"), hs.observe(some, unseen="zero"), (9, 2, 6), everything=False
    )
    tensor = (
        rng.gamma(2.0, 1.0, (7, 1, 1))
        * rng.gamma(2.0, 1.0, (5, 1))
        * rng.gamma(2.0, 1.0, 4)
        * rng.gamma(9.0, 0.1, (7, 5, 4))
    )
    holed = np.where(rng.random(tensor.shape) < 0.3, np.nan, tensor)
    weight = rng.choice([0.5, 1.0, 2.0], tensor.shape)
    made["tensor"] = Data(tensor, tensor[:3] + 1.0)
    made["holed-tensor"] = Data(holed, holed[2:5])
    made["weighted-tensor"] = Data(holed, holed[2:5], weight=weight, new_weight=weight[2:5])
    grid = half_seen(30, 20, "amounts", 13, holes=0.0)[:, :7] + 0.1
    grid = np.where(np.isnan(grid), 1.0, grid)
    grid[np.ix_([1, 4, 9], [0, 3])] = np.nan
    made["grid-like"] = Data(grid, grid[:5])
    scattered = grid.copy()
    scattered[15, 2] = np.nan
    made["scattered"] = Data(scattered, scattered[:5])
    made["two-parts"] = Data(np.block([[grid[:9], np.full((9, 7), np.nan)], [np.full((9, 7), np.nan), grid[9:18]]]))
    return made


@cache
def collections() -> dict[str, Any]:
    """Uncoupled data: with labels, by position, with questions as columns, odd, and without comparisons."""
    rng = np.random.default_rng(2)
    X = 6.0 + rng.normal(size=(12, 2)) @ rng.normal(size=(2, 9)) + 0.4 * rng.normal(size=(12, 9))
    holed = X.copy()
    holed[1:][rng.random((11, 9)) < 0.2] = np.nan
    survey = hs.datasets.make_survey(10, 8, 12, random_state=0)
    asked = [(int(i), int(j)) for i, j in zip(*np.nonzero(~np.isnan(holed)), strict=True)]
    answers = [(i, round(float(holed[i, j]))) for place, (i, j) in enumerate(asked) if place % 9]
    pairs = [
        (i, *sorted(rng.choice(9, 2, replace=False).tolist(), key=lambda j: -X[i, j]))
        for i in range(12)
        for _ in "abcd"
    ]
    odd = [(i, None if place % 7 == 3 else a, None if place % 7 == 5 else b) for place, (i, a, b) in enumerate(pairs)]
    return {
        "survey": survey.collected,
        "holed": hs.Uncoupled.from_coupled(holed, 6, random_state=0),
        "columns": hs.Uncoupled.from_coupled(holed, 6, random_state=0, questions_are="columns"),
        "odd": hs.Uncoupled(asked + asked[5:8], [*answers, (2, 5.0), (5, 6.5)], odd),
        "uncompared": hs.Uncoupled.from_coupled(holed, 0, random_state=0),
    }


# --- cases ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """An estimator with its parameters, and the name of its data."""

    estimator: str
    data: str
    params: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Estimator, data and parameters, as they stand in a recording."""
        shown = ",".join(f"{name}={_short(value)}" for name, value in sorted(self.params.items()))
        return f"{self.estimator}({shown})[{self.data}]"


def _short(value: Any) -> str:
    return f"arrays{value[0].shape[1]}" if isinstance(value, tuple) else str(value).replace(" ", "")


def cases() -> Iterator[Case]:
    """Every estimator with every option that changes its arithmetic."""

    def of(estimator: str, names: str, *variants: dict[str, Any], **params: Any) -> Iterator[Case]:
        for name in names.split():
            for variant in variants or ({},):
                yield Case(estimator, name, {**params, **variant})

    def start(name: str, k: int, extra: int = 0) -> dict[str, Any]:
        rng = np.random.default_rng(17)
        n, m = np.shape(data()[name].X)
        return {"init": (rng.uniform(0.2, 1.5, (n, k + extra)), rng.uniform(0.2, 1.5, (m, k + extra)))}

    k3, short = {"n_components": 3}, {"n_components": 3, "max_iter": 40}
    few = {"n_components": 8, "max_iter": 4}
    zero, missing, plain, fast = {"unseen": "zero"}, {"unseen": "missing"}, {"accelerate": False}, {"accelerate": True}

    # multiplicative updates
    yield from of("WeightedNMF", "amounts", {}, fast, zero, {"init": "rank-one"}, start("amounts", 3), **short)
    losses = [{"loss": loss} for loss in ("frobenius", "itakura-saito", 0.5, 1.5, 3.0, -1.0)]
    yield from of("WeightedNMF", "full-amounts positive32", *losses, {"l1": 0.1, "l2": 0.3}, **short)
    yield from of("WeightedNMF", "sparse-amounts", {"loss": "frobenius"}, {}, {"l2": 0.2} | fast, **short, **zero)
    yield from of("WeightedNMF", "weighted-amounts amounts32 wide long weighted-long", **short)
    yield from of("WeightedNMF", "repeated-missing", **short)
    yield from of("WeightedNMF", "repeated-zero", **short, **zero)
    yield from of("WeightedNMF", "large-amounts", {}, fast, zero, {"loss": "frobenius", "init": "rank-one"}, **few)
    # exact rank one
    for method in ("exact", "em", "a1gm"):
        yield from of("RankOneNMF", "grid-like scattered full-amounts", method=method)
    yield from of("RankOneNMF", "amounts amounts32 long wide two-parts sample large-amounts")
    yield from of("RankOneNMF", "weighted-amounts weighted-long sparse-amounts tensor holed-tensor weighted-tensor")
    yield from of("RankOneNMF", "sparse-amounts amounts weighted-amounts", **zero)
    yield from of("RankOneNMF", "repeated-zero sample-zero", **zero)
    yield from of("RankOneNMF", "amounts", {"method": "em"}, {"max_iter": 3})
    # gamma posteriors
    for name in ("PoissonFactorization", "BernoulliPoisson", "CompoundPoisson"):
        yield from of(name, "counts", {}, missing, plain, {"prior_shape": 1.2, "prior_rate": 0.7}, **short)
        yield from of(name, "counts", start("counts", 3), **short)
        yield from of(name, "sparse-counts weighted-counts32", **short)
        yield from of(name, "weighted-counts", {}, missing, **short)
        yield from of(name, "long sample repeated-zero", **short)
        yield from of(name, "large-counts", {}, missing, **few)
    yield from of("CompoundPoisson", "counts", {"p": 0.4}, **short)
    # ordinal, gamma posteriors
    noises = [{}, {"noise": "exponential", "max_iter": 20}, {"noise": "gamma", "noise_shape": 2.5, "max_iter": 12}]
    yield from of("OrdNMF", "levels texts weighted-long", *noises, *(noise | missing for noise in noises), **short)
    yield from of("OrdNMF", "levels", *(noise | plain for noise in noises), **short)
    yield from of("OrdNMF", "levels", *(noise | start("levels", 3) for noise in noises), **short)
    yield from of("OrdNMF", "sparse-levels weighted-levels levels32 wide", *noises, **short)
    thresholds = {"thresholds": [0.4, 1.0, 1.9, 3.0, 5.0]}
    yield from of(
        "OrdNMF", "levels", thresholds, noises[1] | thresholds, {"prior_shape": 1.5, "prior_rate": 0.5}, **short
    )
    yield from of("OrdNMF", "levels", {"levels": [1, 2, 3, 4, 5]}, **short)
    yield from of("OrdNMF", "texts unordered-texts", {"levels": LEVELS}, **short)
    yield from of("OrdNMF", "repeated-zero binary", **short)
    yield from of("OrdNMF", "repeated-missing", *noises[:2], **short, **missing)
    yield from of("OrdNMF", "sample large-levels", {}, missing, **few)
    yield from of(
        "OrdNMF", "large-levels", *({**noise, "max_iter": 2} for noise in noises[1:]), **missing, n_components=4
    )
    # squared rates
    yield from of("SquaredOrdNMF", "levels", {}, missing, plain, {"l2": 0.5}, start("levels", 3), **k3)
    weights = [{"level_weight": w} for w in (None, [1, 1, 2, 3, 5.0], {1: 0.5, 2: 1, 3: 1, 4: 2, 5: 3})]
    yield from of("SquaredOrdNMF", "levels weighted-long", *weights, weights[1] | missing, **k3)
    yield from of("SquaredOrdNMF", "levels", {"thresholds": [0.4, 1.0, 1.9, 3.0, 5.0]}, **k3)
    yield from of("SquaredOrdNMF", "texts sparse-levels levels32 weighted-levels repeated-zero", **k3)
    yield from of("SquaredOrdNMF", "sample large-levels", {}, missing, **few)
    yield from of("SquaredPoisson", "counts", {}, missing, plain, {"l2": 0.5}, start("counts", 3), **k3)
    yield from of("SquaredPoisson", "sparse-counts weighted-counts counts32 long", **k3)
    yield from of("SquaredPoisson", "sample large-counts", {}, missing, **few)
    # weighted least squares
    yield from of("ImplicitMF", "counts", {}, {"confidence": "ones"}, {"l2": 0.1}, {"n_steps": 8}, **k3)
    yield from of("ImplicitMF", "sparse-counts counts32 long sample large-counts", **few)
    # thresholds on factors of any sign
    common = [
        {}, plain, {"biases": False}, {"centred": False}, {"l2": 0.8}, {"solver": "sgd", "max_iter": 20},
        {"solver": "sgd", "learning_rate": 0.1, "batch_size": 16, "max_iter": 10}, {"n_init": 3},
        {"early_stopping": True},
        {"early_stopping": True, "n_init": 2, "validation_fraction": 0.25, "n_iter_no_change": 2},
        {"solver": "sgd", "early_stopping": True, "n_init": 2, "max_iter": 30}, {"thresholds": [-1.5, -0.5, 0.5, 1.5]},
        start("levels", 3), start("levels", 3, extra=2),
    ]  # fmt: skip
    yield from of("OrdinalMF", "levels", *common, n_components=3)
    links = [{"link": link} for link in ("probit", "cloglog", "loglog", "cauchit")]
    owners = [{"own_thresholds": owner} for owner in ("rows", "columns")]
    yield from of("OrdinalMF", "levels", *links, *owners, **k3)
    yield from of("OrdinalMF", "weighted-long", *owners, {"link": "probit", **owners[0]}, **k3)
    yield from of("OrdinalMF", "levels", {**owners[0], "early_stopping": True}, {**owners[1], "n_init": 2}, **k3)
    yield from of("OrdinalMF", "texts long wide levels32 weighted-levels repeated-missing binary", **k3)
    yield from of("OrdinalMF", "sample large-levels", {}, {"solver": "sgd"}, owners[1], **few)
    for loss in ("multi-sigmoid", "round", "linear"):
        variants = [one for one in common if loss != "linear" or "thresholds" not in one]
        yield from of("RoundMF", "levels", *variants, n_components=3, loss=loss, max_iter=30)
        yield from of("RoundMF", "texts long levels32 weighted-levels binary large-levels", loss=loss, **few)
    yield from of("RoundMF", "levels", {"init": "random"}, {"margin": 0.2}, {}, loss="round", **k3)
    yield from of("RoundMF", "sample", {}, **few)
    # uncoupled data
    sweeps = {"n_sweeps": 40, "n_burn": 15, "n_draws": 10, "n_components": 2}
    scales = [{"scale": "all"}, {"scale": "question"}, {"trust": 3.0}, {"n_draws": 1}]
    yield from of("UncoupledNMF", "survey holed columns odd uncompared", method="gibbs", **sweeps)
    yield from of("UncoupledNMF", "survey", *scales, method="gibbs", **sweeps)
    loop = {"n_components": 2, "max_iter": 40}
    for method in ("unmf", "bayes", "decode"):
        yield from of("UncoupledNMF", "survey holed columns odd uncompared", method=method, **loop)
    balances = [{"balance": balance} for balance in ("zero", "half", 1.5, [0.5, 1.0] * 5)]
    kl = [{"loss": loss} for loss in ("kullback-leibler", "itakura-saito", 1.5)]
    init = {"init": (np.linspace(0.5, 2.0, 20).reshape(10, 2), np.linspace(0.3, 1.5, 16).reshape(8, 2))}
    yield from of("UncoupledNMF", "survey", *balances, *kl, init, method="unmf", **loop)
    yield from of(
        "UncoupledNMF", "survey", {"prior_shape": 0.4, "prior_rate": None}, *balances[1:3], init, method="bayes", **loop
    )
    yield from of("UncoupledNMF", "survey", *kl, method="decode", **loop)


# --- what is recorded -------------------------------------------------------------------------------------------------


def flat(name: str, value: Any) -> Iterator[tuple[str, np.ndarray]]:
    """A result as named arrays: records, dicts, lists, sparse matrices, frames by their parts; texts by their repr."""
    if sparse.issparse(value):
        value = {"data": value.data, "indices": value.indices, "indptr": value.indptr, "shape": np.array(value.shape)}
    elif hasattr(value, "columns") and hasattr(value, "iloc"):
        value = {"index": np.asarray(value.index), **{f"column {key}": value[key].to_numpy() for key in value.columns}}
    elif hasattr(value, "_asdict"):
        value = value._asdict()
    elif isinstance(value, hs.Observed):
        names = ("indptr", "indices", "values", "weights", "shape", "unseen", "row_labels", "column_labels")
        value = {key: getattr(value, key) for key in names}
    if isinstance(value, dict):
        for key, one in value.items():
            yield from flat(f"{name}.{key}", one)
    elif isinstance(value, list | tuple) and not all(isinstance(one, int | float | str) for one in value):
        for place, one in enumerate(value):
            yield from flat(f"{name}.{place}", one)
    else:
        array = np.asarray(value)
        if array.dtype.kind not in "biuf":  # texts, None, objects
            array = np.array([array.dtype.kind, str(array.shape), *map(repr, array.ravel().tolist())])
        yield name, array


def refusable(ask: Callable[[], Any]) -> Any:
    """What `ask` returns, or the class of halfseen's error."""
    try:
        return ask()
    except hs.errors.HalfseenError as error:
        return f"refused: {type(error).__name__}"


def attributes_of(model: Any) -> dict[str, Any]:
    """The documented fitted attributes, but for times."""
    found = {name: getattr(model, name) for name in ATTRIBUTES if hasattr(model, name)}
    found["status_"] = model.status_.name
    return found | {f"trace_.{name}": array for name, array in model.trace_.items() if name != "seconds"}


def ids_of(model: Any, axis: int) -> list[Any]:
    """How users name the rows or columns of a model."""
    labels = (model.row_labels_, model.column_labels_)[axis]
    return list(range(len((model.W_, model.H_)[axis]))) if labels is None else labels.tolist()


def questions(model: Any, given: Data) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Calls of every method that a factorization may have, by name."""
    everything = given.everything
    X, new = given.unweighted
    rows, columns = ids_of(model, 0), ids_of(model, 1)
    rng = np.random.default_rng(23)
    us, js = (rng.integers(len(ids), size=40) for ids in (rows, columns))
    pairs: tuple[Any, ...] = ([rows[u] for u in us], [columns[j] for j in js])
    is_tensor = getattr(model, "inner_shape_", None) is not None
    if is_tensor:
        pairs = (us, *np.unravel_index(js, model.inner_shape_))
    yield "predict", lambda: model.predict(*pairs)
    yield "predict one", lambda: model.predict(*(one[0] for one in pairs))
    if new is not None:
        yield "transform", lambda: model.transform(new)
        yield "transform weighted", lambda: model.transform(given.new, cell_weight=given.new_weight)
        yield "score new", lambda: model.score(new)
    yield "score", lambda: model.score(X)
    if everything:
        yield "transform fitted", lambda: model.transform(X)
        yield "complete", lambda: model.complete(X)
        if new is not None:
            yield "complete new", lambda: model.complete(new)
            yield "inverse_transform", lambda: model.inverse_transform(model.transform(new))
            if not sparse.issparse(new):
                yield "predict rows", lambda: model.predict(new)
    for name in ("predict_proba", "predict_level"):
        method = getattr(model, name, None)
        if method is not None:
            yield name, lambda ask=method: ask(*pairs)
            if new is not None and everything and not sparse.issparse(new):
                yield f"{name} rows", lambda ask=method: ask(new)
    if hasattr(model, "log_likelihood"):
        yield "log_likelihood", lambda: model.log_likelihood(X)
        if everything:
            yield "log_likelihood each", lambda: model.log_likelihood(X, each=True)
    if hasattr(model, "predict_interval"):
        some = tuple(one[:12] for one in pairs)
        for of in ("value", "mean", "x"):
            yield f"interval {of}", lambda of=of: model.predict_interval(*some, 0.8, of, n_draws=60, random_state=5)
    if hasattr(model, "sample") and everything:
        yield "sample", lambda: model.sample(2, random_state=3)
        yield "sample RandomState", lambda: model.sample(1, random_state=np.random.RandomState(4))
    if hasattr(model, "sample_factors") and everything:
        yield "sample_factors", lambda: model.sample_factors(2, random_state=3)
        yield "factor_intervals", lambda: model.factor_intervals(0.8)
    if not is_tensor:
        known = [rows[u] for u in us[:10]]
        items = columns[: max(2, len(columns) // 2)]
        yield "recommend", lambda: model.recommend(known, 5)
        yield "recommend all", lambda: model.recommend(rows, 3, exclude_seen=False)
        yield (
            "recommend some",
            lambda: model.recommend(known, 100 if everything else 20, items=items, exclude=columns[1]),
        )
        if given.history:
            history = dict(zip([columns[0], columns[2], columns[3]], given.history, strict=True))
            yield "recommend histories", lambda: model.recommend([history, {}, {columns[1]: given.history[0]}], 5)
        if new is not None:
            yield "recommend new", lambda: model.recommend(new, 5)


def uncoupled_questions(model: Any, X: Any) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Calls of every method of UncoupledNMF, by name."""
    rows, columns = ids_of(model, 0), ids_of(model, 1)
    pairs = [one for one in rows for _ in columns], columns * len(rows)
    yield "predict", lambda: model.predict(*pairs)
    yield "predict one", lambda: model.predict(rows[1], columns[2])
    yield "predict_interval", lambda: model.predict_interval(*pairs, 0.8)
    yield "complete", lambda: model.complete(X)
    yield "coupling", model.coupling
    yield "disclosure_risk", model.disclosure_risk
    yield "disclosure_risk without", lambda: model.disclosure_risk(comparisons=False)


def record_case(case: Case, n_jobs: int, folder: Path) -> Record:
    """All that a model says, fitted and, with one thread, also loaded."""
    is_uncoupled = case.estimator == "UncoupledNMF"
    given = collections()[case.data] if is_uncoupled else data()[case.data]
    params = dict(case.params) | {"n_jobs": n_jobs}
    if case.estimator != "RankOneNMF":
        params["random_state"] = 0
    model = getattr(hs, case.estimator)(**params)
    how = {} if is_uncoupled or given.weight is None else {"cell_weight": given.weight}
    results: dict[str, Any] = {}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        outcome = refusable(lambda: model.fit(given if is_uncoupled else given.X, **how))
        results["warnings"] = [*sorted({w.category.__name__ for w in caught if issubclass(w.category, UserWarning)})]
        warnings.simplefilter("ignore")
        if isinstance(outcome, str):
            return dict(flat("fit", outcome))
        models = {"": model}
        if n_jobs == 1:
            model.save(folder / "model.hs")
            models["loaded: "] = hs.load(folder / "model.hs")
        for prefix, one in models.items():
            asked = uncoupled_questions(one, given) if is_uncoupled else questions(one, given)
            results |= {f"{prefix}{name}": value for name, value in attributes_of(one).items()}
            results |= {f"{prefix}{name}": refusable(ask) for name, ask in asked}
    return dict(pair for name, value in results.items() for pair in flat(name, value))


def others(n_jobs: int) -> Iterator[tuple[str, Callable[[], Any]]]:
    """What is no single model: searches, metrics, splits, quantizing, shared rank one, round-rank."""
    every = data()
    levels, amounts, long = every["levels"].X, every["amounts"].X, every["long"].X
    full = every["full-amounts"].X

    def search(model: Any, X: Any, **params: Any) -> dict[str, Any]:
        found = hs.RankSearch(model, [1, 2, 4], n_folds=3, random_state=0, n_jobs=n_jobs, **params).fit(X)
        shown = {name: found.results_[name] for name in ("n_components", "mean", "standard_error", "scores")}
        shown |= {
            "params": repr(sorted(found.best_params_.items())),
            "score": found.best_score_,
            "metric": found.metric_,
        }
        if found.grid_ is not None:
            shown["grid"] = found.grid_["scores"]
        if found.refit:
            shown |= {
                "W": found.best_estimator_.W_,
                "H": found.best_estimator_.H_,
                "recommend": found.recommend([0], 3),
            }
        return shown

    how: dict[str, Any] = {"max_iter": 30, "random_state": 0, "n_jobs": 1}
    yield "RankSearch OrdNMF", lambda: search(hs.OrdNMF(**how), levels)
    yield (
        "RankSearch OrdNMF rmse",
        lambda: search(hs.OrdNMF(unseen="missing", **how), levels, metric="rmse", rule="best"),
    )
    yield (
        "RankSearch OrdNMF exponential",
        lambda: search(hs.OrdNMF(noise="exponential", **how), levels, metric="log-likelihood"),
    )
    yield "RankSearch WeightedNMF", lambda: search(hs.WeightedNMF(**how), amounts, parameters={"l2": [0.0, 0.5]})
    yield (
        "RankSearch WeightedNMF cold",
        lambda: search(hs.WeightedNMF(**how), amounts, warm=False, metric="mae", refit=False),
    )
    yield "RankSearch OrdinalMF", lambda: search(hs.OrdinalMF(own_thresholds="rows", **how), levels)
    yield "RankSearch RoundMF", lambda: search(hs.RoundMF(**how), levels, metric="divergence")
    yield "RankSearch SquaredOrdNMF", lambda: search(hs.SquaredOrdNMF(**how), levels, metric="map@5", relevant=4)
    yield (
        "RankSearch CompoundPoisson",
        lambda: search(hs.CompoundPoisson(**how), every["counts"].X, metric="precision@3"),
    )

    train, test = hs.data.split_cells(long, 0.3, random_state=1)
    yield "split_cells", lambda: (train, test)
    yield "k_folds", lambda: list(hs.data.k_folds(levels, 3, random_state=2))
    model = hs.OrdNMF(3, max_iter=30, random_state=0, n_jobs=n_jobs).fit(train)
    yield "ranking_scores", lambda: hs.metrics.ranking_scores(model, train, test, 5, 4, n_jobs=n_jobs)
    yield "ndcg_at_k", lambda: hs.metrics.ndcg_at_k(model, train, test, 5, [1, 4], n_jobs=n_jobs)
    yield "predictive_check", lambda: hs.metrics.predictive_check(model, train, 5)
    missing = hs.OrdinalMF(2, random_state=0, n_jobs=n_jobs).fit(levels)
    rows, columns = np.nonzero(~np.isnan(levels))
    told, chances = levels[rows, columns], missing.predict_proba(rows, columns)
    yield "log_score", lambda: hs.metrics.log_score(told, chances, labels=missing.levels_)
    yield "ranked_probability_score", lambda: hs.metrics.ranked_probability_score(told, chances, labels=missing.levels_)
    yield "calibration", lambda: hs.metrics.calibration(told, chances, 5, labels=missing.levels_)
    yield "fit_transform", lambda: hs.OrdNMF(2, max_iter=20, random_state=0, n_jobs=n_jobs).fit_transform(levels)

    for edges in ("quantiles", [1, 2, 5]):
        for name in ("counts", "sparse-counts", "counts32", "long"):
            X = every[name].X
            yield f"Quantizer {edges} {name}", lambda X=X, edges=edges: _quantized(hs.Quantizer(edges, n_levels=3), X)
    yield "rank_one_nmmf", lambda: hs.rank_one_nmmf(full, full[:, :7].T @ full, full[:, :5], alpha=0.7, beta=1.3)
    yield "conservation_gap", lambda: hs.geometry.conservation_gap(full, full.sum(1), full.sum(0))
    for name, build in (
        ("identity", hs.rank.identity(6)),
        ("triangular", hs.rank.triangular(6)),
        ("band", hs.rank.band(7, 3)),
    ):
        yield f"rank {name}", lambda build=build: build
        yield f"round_rank {name}", lambda build=build: vars(hs.rank.round_rank(build.Y))
    rounded = hs.RoundMF(2, loss="round", biases=False, random_state=0, n_jobs=n_jobs)
    Y = np.where(
        np.random.default_rng(3).random((12, 10)) < 0.3, np.nan, np.add.outer(np.arange(12), np.arange(10)) // 8
    )
    yield (
        "certainty",
        lambda: {key: value for key, value in vars(hs.rank.certainty(rounded.fit(Y), Y)).items() if key != "verdict"},
    )
    yield "make_survey", lambda: hs.datasets.make_survey(5, 4, 6, random_state=1).truth


def _quantized(quantizer: Any, X: Any) -> dict[str, Any]:
    levels = quantizer.fit(X).transform(X)
    back = quantizer.inverse_transform(levels)
    return {"edges": quantizer.edges_, "values": quantizer.values_, "levels": levels, "back": back}


# --- recording and comparing ------------------------------------------------------------------------------------------


def record(only: str, n_jobs: list[int], quiet: bool) -> Record:
    """All results under the names "threads/case/result"."""
    results: Record = {}

    def keep(threads: int, case: str, make: Callable[[], Record]) -> None:
        if fnmatch.fnmatchcase(case, only):
            began = time.perf_counter()
            made = {f"{threads}/{case}/{name}": array for name, array in make().items()}
            if not made.keys().isdisjoint(results):
                raise ValueError(f"Cases must have different names. Found {case} twice.")
            results.update(made)
            if not quiet:
                print(f"{time.perf_counter() - began:7.2f} s  {threads}  {case}", flush=True)

    with tempfile.TemporaryDirectory() as folder:
        for threads in n_jobs:
            for case in cases():
                keep(threads, case.name, lambda case=case, threads=threads: record_case(case, threads, Path(folder)))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                for name, ask in others(threads):
                    keep(threads, name, lambda ask=ask: dict(flat("result", refusable(ask))))
    return results


def differences(one: Record, other: Record) -> Iterator[str]:
    """What differs, one line each: names that only one has, dtypes, shapes, bits (with the largest difference)."""
    for name in sorted(one.keys() ^ other.keys()):
        yield f"{name}: only in the {'first' if name in one else 'second'}"
    for name in sorted(one.keys() & other.keys()):
        a, b = one[name], other[name]
        if a.dtype != b.dtype or a.shape != b.shape:
            yield f"{name}: {a.dtype} {a.shape} and {b.dtype} {b.shape}"
        elif a.tobytes() != b.tobytes():
            yield f"{name}: {_distance(a, b)}"


def _distance(a: np.ndarray, b: np.ndarray) -> str:
    if a.dtype.kind == "U":
        first = np.flatnonzero(a != b)[0]
        return f"{str(a[first])!r} and {str(b[first])!r}"
    a, b = a.astype(np.float64).ravel(), b.astype(np.float64).ravel()
    differ = ~((a == b) | (np.isnan(a) & np.isnan(b)))
    if not differ.any():
        return "signs of zeros, or kinds of NaN"
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = np.abs(a - b)[differ] / np.maximum(np.abs(a), np.abs(b))[differ]
    return f"{differ.sum()} of {a.size} entries, relative difference at most {relative.max(initial=0.0):.2g}"


def inner_differences(results: Record) -> Iterator[str]:
    """Differences inside a recording: between one thread and two, between a model and the same model loaded."""
    by_threads: dict[str, Record] = {}
    for name, array in results.items():
        threads, _, rest = name.partition("/")
        by_threads.setdefault(threads, {})[rest] = array
    first, *rest = by_threads.values()
    for another in rest:
        one = {name: array for name, array in first.items() if "/loaded: " not in name}
        yield from (f"threads: {line}" for line in differences(one, another))
    loaded = {name.replace("/loaded: ", "/"): array for name, array in first.items() if "/loaded: " in name}
    fitted = {name: array for name, array in first.items() if name in loaded}
    yield from (f"loaded: {line}" for line in differences(fitted, loaded))


def _load(path: str) -> Record:
    with np.load(path) as archive:
        return {name: archive[name] for name in archive.files}


def main() -> int:
    """Run the command line; 1 if something differs."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    recording = commands.add_parser("record", help="write all results to one file")
    recording.add_argument("out", help="the .npz file")
    recording.add_argument("--only", default="*", help="pattern of the cases to record, such as 'OrdNMF*'")
    recording.add_argument("--n-jobs", type=int, nargs="+", default=[1, 2], help="numbers of threads")
    recording.add_argument("--quiet", action="store_true", help="no line for each case")
    comparing = commands.add_parser("compare", help="list what differs between two recordings")
    comparing.add_argument("recordings", nargs=2)
    options = parser.parse_args()
    if options.command == "record":
        began = time.perf_counter()
        results = record(options.only, options.n_jobs, options.quiet)
        np.savez_compressed(options.out, **results)
        cases_told = len({name.split("/")[1] for name in results})
        print(f"{len(results):,} arrays of {cases_told} cases in {time.perf_counter() - began:.0f} s: {options.out}")
        lines = list(inner_differences(results))
    else:
        lines = list(differences(*map(_load, options.recordings)))
    print(*lines, sep="\n") if lines else print("Equal to the last bit.")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
