"""Write small model files of the installed version of halfseen, and what that version says of them.

    python docs/building/make_fixtures.py tests/fixtures/models-0.1.0

Later versions must read these files and give the same answers: `tests/test_old_models.py` asks them. Each model has a
file NAME.hs; `expected.json.gz` maps every name to a list of questions and answers: the name of an attribute or method,
for a method also its arguments. Only public names are used, so that the script runs with any version; the answers are
those of the version that runs it, of the model loaded from the file.
"""

import argparse
import gzip
import json
import warnings
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np

import halfseen as hs

ATTRIBUTES = (
    "W_", "H_", "thresholds_", "own_thresholds_", "levels_", "level_weights_", "l2_", "p_", "n_iter_", "status_",
    "n_features_in_", "feature_names_in_", "row_labels_", "column_labels_", "axis_factors_", "n_parts_", "parts_",
    "inner_shape_", "increase_rate_", "diagnostics_", "n_clipped_", "w_", "balance_",
)  # fmt: skip

NAN = np.nan
AMOUNTS = np.array([[2, 4, NAN, 1.5], [1, NAN, 3, 0.5], [4, 8, 11, NAN], [NAN, 0, 2.5, 1], [0.5, 1.25, 1, 0]])
COUNTS = np.array([[4, 30, 0, 1], [6, 5, 0, NAN], [0, 1, 7, 24], [NAN, 0, 2, 9], [1, 2, 0, 3.0]])
STARS = np.array([[5, 4, NAN, 1], [4, NAN, 2, 1], [1, 2, 5, NAN], [NAN, 1, 4, 5], [3, 3, NAN, 2.0]])
RATINGS = [
    ("Zoë", "Alien", 5), ("Zoë", "Brazil", 4), ("bob", "Alien", 4), ("bob", "Clue", 1), ("cy", "Clue", 2),
    ("cy", "Brazil", 2), ("cy", "Dune", 4), ("dee", "Dune", 5), ("dee", "Alien", 1),
]  # fmt: skip
NAMES = ["awful", "bad", "fair", "good", "great"]
WORDS = [(user, film, NAMES[stars - 1]) for user, film, stars in RATINGS if stars != 3]
SEEN_NAMES = [name for name in NAMES if name != "fair"]
TENSOR = np.round(
    np.einsum("i,j,k->ijk", [1, 2, 4.0], [2, 1, 0.5, 3], [1, 1.5]) + np.arange(24).reshape(3, 4, 2) / 8, 3
)


def models() -> Iterator[tuple[str, Any, Any, dict[str, Any]]]:
    """Name, estimator, data, and further arguments of `fit`."""
    # A fixed number of iterations: rounding must not decide how many there are when new rows are folded in.
    short: dict[str, Any] = {"n_components": 2, "max_iter": 12, "tol": 0.0, "random_state": 0, "n_jobs": 1}
    weight = np.where(STARS > 3, 2.0, 0.5)
    missing = {"unseen": "missing"}
    for noise, shape in (("inverse-gamma", 1.0), ("exponential", 1.0), ("gamma", 2.5)):
        yield f"ordnmf-{noise}", hs.OrdNMF(noise=noise, noise_shape=shape, **short), STARS, {}
    yield "ordnmf-missing", hs.OrdNMF(**missing, **short), RATINGS, {}
    yield "ordnmf-words", hs.OrdNMF(levels=SEEN_NAMES, **short), WORDS, {}
    yield "ordnmf-words-missing", hs.OrdNMF(levels=SEEN_NAMES, noise="exponential", **missing, **short), WORDS, {}
    yield "ordnmf-float32", hs.OrdNMF(**short), STARS.astype(np.float32), {"cell_weight": weight}
    yield "ordnmf-thresholds", hs.OrdNMF(thresholds=[0.5, 1, 2, 3, 5], prior_rate=0.5, **short), STARS, {}
    yield "squared-ordnmf", hs.SquaredOrdNMF(**short), RATINGS, {}
    yield "squared-ordnmf-list", hs.SquaredOrdNMF(level_weight=np.array([1, 1, 2, 3, 5.0]), **short), STARS, {}
    yield "squared-ordnmf-missing", hs.SquaredOrdNMF(level_weight=None, l2=0.3, **missing, **short), STARS, {}
    yield "ordinal-mf", hs.OrdinalMF(**short), RATINGS, {}
    yield "ordinal-mf-rows", hs.OrdinalMF(own_thresholds="rows", **short), RATINGS, {}
    yield "ordinal-mf-columns", hs.OrdinalMF(own_thresholds="columns", link="probit", **short), STARS, {}
    for loss in ("multi-sigmoid", "round", "linear"):
        yield f"round-mf-{loss}", hs.RoundMF(loss=loss, **short), STARS, {}
    yield "round-mf-words", hs.RoundMF(levels=SEEN_NAMES, solver="sgd", **short), WORDS, {}
    yield "compound-poisson", hs.CompoundPoisson(**short), COUNTS, {}
    yield "bernoulli-poisson", hs.BernoulliPoisson(**short), COUNTS, {}
    yield "poisson", hs.PoissonFactorization(**short), RATINGS, {}
    yield "poisson-missing", hs.PoissonFactorization(**missing, **short), COUNTS, {}
    yield "squared-poisson", hs.SquaredPoisson(**short), COUNTS, {}
    yield "weighted-nmf", hs.WeightedNMF(**short), RATINGS, {}
    yield "weighted-nmf-zero", hs.WeightedNMF(loss="frobenius", unseen="zero", l2=0.1, **short), AMOUNTS, {}
    start = (np.linspace(0.5, 2, 10).reshape(5, 2), np.linspace(2, 0.5, 8).reshape(4, 2))
    yield "weighted-nmf-start", hs.WeightedNMF(loss=1.5, init=start, **short), AMOUNTS, {}
    yield "weighted-nmf-wide", hs.WeightedNMF(**short), _wide(), {}
    yield "rank-one", hs.RankOneNMF(n_jobs=1), hs.observe(RATINGS), {}
    yield "rank-one-few-holes", hs.RankOneNMF(n_jobs=1), AMOUNTS, {}
    yield "rank-one-zero", hs.RankOneNMF(unseen="zero", n_jobs=1), hs.observe(RATINGS, unseen="zero"), {}
    yield (
        "rank-one-grid",
        hs.RankOneNMF("a1gm", n_jobs=1),
        np.where(np.eye(5, 4) == 1, [NAN, 1, 1, 1], AMOUNTS + 1)[[0, 2, 4]],
        {},
    )
    yield "rank-one-tensor", hs.RankOneNMF(n_jobs=1), TENSOR, {}
    yield "rank-one-tensor-holes", hs.RankOneNMF(n_jobs=1), np.where(TENSOR > 9, NAN, TENSOR), {}
    how = {"n_components": 1, "random_state": 0, "n_jobs": 1}
    sweeps: dict[str, Any] = {"n_sweeps": 12, "n_burn": 4, "n_draws": 2, "max_iter": 20}
    collected = hs.Uncoupled.from_coupled(np.nan_to_num(AMOUNTS, nan=2.0)[:4], 4, random_state=0)
    asked = [(what, who) for what in ("rent", "food") for who in ("ann", "bob", "cy")]
    answers = [("rent", 640), ("rent", 820), ("rent", 990), ("food", 310), ("food", 350)]
    survey = hs.Uncoupled(asked, answers, [("rent", "cy", "ann"), ("rent", "bob", "ann"), ("food", "cy", "bob")])
    turned = hs.Uncoupled(asked, answers, None, questions_are="columns")
    yield "uncoupled-gibbs", hs.UncoupledNMF(**sweeps, **how), survey, {}
    yield "uncoupled-gibbs-positions", hs.UncoupledNMF(**sweeps, **how), collected, {}
    yield "uncoupled-gibbs-uncompared", hs.UncoupledNMF(**sweeps, **how), turned, {}
    for method in ("unmf", "bayes", "decode"):
        yield f"uncoupled-{method}", hs.UncoupledNMF(method=method, max_iter=12, tol=0.0, **how), survey, {}
    yield "uncoupled-unmf-columns", hs.UncoupledNMF(method="unmf", max_iter=12, tol=0.0, **how), turned, {}


def _wide() -> Any:
    import pandas as pd

    return pd.DataFrame(AMOUNTS, columns=["rent", "food", "fuel", "fun"])


def questions(model: Any, X: Any) -> Iterator[tuple[str, list[Any], dict[str, Any]]]:
    """Methods with arguments that JSON can hold."""
    labels = (model.row_labels_, model.column_labels_)
    rows, columns = (
        list(range(len(F))) if ids is None else ids.tolist()
        for F, ids in zip((model.W_, model.H_), labels, strict=True)
    )
    if getattr(model, "feature_names_in_", None) is not None:
        columns = model.feature_names_in_.tolist()
    pairs = [[rows[0], rows[1], rows[-1]], [columns[0], columns[-1], columns[1]]]
    is_uncoupled = isinstance(X, hs.Uncoupled)
    inner = getattr(model, "inner_shape_", None)
    if inner is not None:
        pairs = [[0, 1, 2], *(np.unravel_index([0, 3, 5], inner)[axis].tolist() for axis in range(len(inner)))]
    yield "predict", pairs, {}
    if is_uncoupled:
        if hasattr(model, "diagnostics_"):
            yield "predict_interval", pairs, {"level": 0.8}
            yield "coupling", [], {}
            yield "disclosure_risk", [], {}
            yield "disclosure_risk", [], {"comparisons": False}
        return
    if isinstance(X, np.ndarray):
        table = np.where(np.isnan(X), None, X.astype(object)).tolist()
        new = table[1:3]
        yield "complete", [table], {}
        yield "score", [table], {}
        yield "inverse_transform", [[[0.5] * model.W_.shape[1]]], {}
    elif model.row_labels_ is not None:
        values = [4, 5] if getattr(model, "levels", None) is None else ["good", "great"]
        new = [{columns[0]: values[1], columns[2]: values[0]}, {columns[1]: values[0]}]
    else:
        new = [{columns[0]: 2.5, columns[2]: 1.0}, {columns[1]: 0.5}]
    yield "transform", [new], {}
    if inner is not None:
        return
    yield "recommend", [[rows[0], rows[-1]]], {"n": 3}
    yield "recommend", [[rows[1]]], {"n": 2, "exclude_seen": False, "exclude": [columns[0]]}
    yield "recommend", [new], {"n": 2}
    for name in ("predict_proba", "predict_level"):
        if hasattr(model, name):
            yield name, pairs, {}
    if hasattr(model, "log_likelihood"):
        if isinstance(X, np.ndarray):
            yield "log_likelihood", [table], {"each": True}
        yield "predict_interval", pairs, {"level": 0.8, "n_draws": 40, "random_state": 0}
        yield "sample", [], {"n": 1, "random_state": 0}
    if hasattr(model, "factor_intervals"):
        yield "factor_intervals", [], {"level": 0.5}  # of all parameters of the posteriors
        yield "predict_interval", pairs, {"of": "mean", "n_draws": 40, "random_state": 0}


def plain(answer: Any) -> Any:
    """An answer as JSON holds it: arrays with their dtype, and NaN; records and lists by their entries."""
    if hasattr(answer, "toarray"):
        answer = answer.toarray()
    if isinstance(answer, np.ndarray | np.generic):
        return {"dtype": answer.dtype.str, "values": answer.tolist()}
    if isinstance(answer, dict):
        return {name: plain(one) for name, one in answer.items()}
    if isinstance(answer, list | tuple):
        return [plain(one) for one in answer]
    return answer.name if isinstance(answer, Enum) else answer


def answers_of(model: Any, X: Any) -> Iterator[dict[str, Any]]:
    """What the model says: its parameters, as far as they are not the usual ones, fitted attributes, and methods."""
    usual = type(model)().get_params(deep=False)
    for name, value in model.get_params(deep=False).items():
        if value != usual[name]:
            yield {"ask": name, "answer": value}
    for name in ATTRIBUTES:
        if hasattr(model, name):
            yield {"ask": name, "answer": plain(getattr(model, name))}
    yield {"ask": "trace_", "answer": plain({name: model.trace_[name] for name in model.trace_ if name != "seconds"})}
    for name, args, kwargs in questions(model, X):
        args, kwargs = json.loads(json.dumps([args, kwargs]))  # as they will be read
        yield {"ask": name, "args": args, "kwargs": kwargs, "answer": plain(getattr(model, name)(*args, **kwargs))}


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")  # few iterations, empty rows, faults of the lists
    lines = []
    for name, estimator, X, how in models():
        path = folder / f"{name}.hs"
        estimator.fit(X, **how).save(path)
        answers = list(answers_of(hs.load(path), X))
        listed = ",\n".join(f"  {json.dumps(answer, ensure_ascii=False)}" for answer in answers)
        lines.append(f"{json.dumps(name)}: [\n{listed}\n]")
    text = "{\n" + ",\n".join(lines) + "\n}\n"
    (folder / "expected.json.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
    size = sum(path.stat().st_size for path in folder.iterdir())
    print(f"{len(lines)} models of halfseen {hs.__version__} in {folder}: {size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
