"""Model files of version 0.1.0, in the form of today's."""

from typing import Any

import numpy as np

from halfseen.arrays import Array
from halfseen.encoders import text_labels

#: Factor classes by the names of their arrays.
FACTORS = {
    ("mean",): "PointFactor",
    ("geometric", "mean", "rate", "shape"): "GammaFactor",
    ("harmonic", "inverse_rate", "mean", "rate", "shape"): "InverseGaussianFactor",
}
#: Parameters of a factorization by the loop that do not matter for its likelihood.
LOOP = {"l1": 0.0, "l2": 0.0, "max_iter": 1, "tol": 0.0}
#: Exponent that squared models tried first, without momentum and with it.
EAGER_EXPONENT = {False: 0.95, True: 0.65}
LOSSES = {"kullback-leibler": "Poisson", "frobenius": "Gaussian"}


def upgrade(kind: Any, header: dict[str, Any], arrays: dict[str, Array]) -> tuple[dict[str, Any], dict[str, Array]]:
    """Header and arrays of a file of format 1 as those of format 2.

    Parameters
    ----------
    kind : type
        Class of the estimator.
    header : dict
        Header of the file.
    arrays : dict of ndarray
        Arrays of the file, by name.

    Returns
    -------
    tuple of dict
        Header and arrays.
    """
    parameters = header["parameters"]
    named = {name: {"array": name} for name in arrays}
    record = {
        "rows": _factor(arrays, "rows"),
        "columns": _factor(arrays, "columns"),
        "index": [_index(arrays, "row_labels_"), _index(arrays, "column_labels_")],
        "seen": {
            "type": "Seen",
            "indptr": {"array": "seen/indptr"},
            "indices": {"array": "seen/indices"},
            "n_columns": header["n_features_in"],
            "lists_holes": header.get("seen_lists_holes", False),
        },
        "unseen": parameters.get("unseen", "missing"),
        "fingerprint": header.get("fingerprint"),
    }
    model, more = UPGRADES[header["estimator"]](parameters, arrays, named)
    model["likelihood"] = {name: value for name, value in model["likelihood"].items() if value is not None}
    upgraded = {
        "version": 2,
        "parameters": parameters,
        "status": header["status"],
        "n_features_in": header["n_features_in"],
        "trace": {name.partition("/")[2]: {"array": name} for name in arrays if name.startswith("trace/")},
        "feature_names": named.get("feature_names_in_"),
        "model": {"type": kind.record.__name__, **record, **model},
        "more": more,
    }
    return upgraded, arrays


def _factor(arrays: dict[str, Array], side: str) -> dict[str, Any]:
    names = sorted(name.partition("/")[2] for name in arrays if name.startswith(f"{side}/"))
    return {"type": FACTORS[tuple(names)], **{name: {"array": f"{side}/{name}"} for name in names}}


def _index(arrays: dict[str, Array], name: str) -> dict[str, Any] | None:
    return {"type": "Index", "labels": {"array": name}} if name in arrays else None


def _folding(parameters: dict[str, Any], solver: dict[str, Any]) -> dict[str, Any]:
    return {"type": "Folding", "solver": solver, "max_iter": parameters["max_iter"], "tol": parameters["tol"]}


def _gamma_solver(parameters: dict[str, Any], name: str = "Gamma", default_shape: float = 0.3) -> dict[str, Any]:
    shape = parameters["prior_shape"]
    shape = default_shape if shape is None else shape
    prior = {"type": "GammaPrior", "shape": shape, "rate": parameters["prior_rate"]}
    return {"type": name, "rows": prior, "columns": prior}


def _levels(parameters: dict[str, Any], arrays: dict[str, Array], **fields: Any) -> tuple[dict[str, Any], Any]:
    """The encoder, and the values of levels, which are None for text."""
    levels = arrays.pop("further/levels")
    is_text = levels.dtype.kind == "U"
    arrays["labels"] = text_labels(levels.tolist(), parameters["unseen"]) if is_text else levels
    values = None
    if not is_text:
        arrays["values"], values = levels, {"array": "values"}
    encoder = {"unseen": parameters["unseen"], "level_weights": None, "fill_zeros": False, "owners": None, "n_rows": 0}
    return {"type": "OrdinalEncoder", "labels": {"array": "labels"}, **encoder, **fields}, values


def _weighted_nmf(parameters: dict[str, Any], arrays: dict[str, Array], named: Any) -> Any:
    loss = parameters["loss"]
    beta = {"itakura-saito": 0.0}.get(loss, loss)
    likelihood = {"type": LOSSES[loss]} if loss in LOSSES else {"type": "BetaDivergence", "beta": float(beta)}
    penalty = {"type": "Penalty", "l1": parameters["l1"], "l2": parameters["l2"]}
    solver = {"type": "Multiplicative", "penalty": penalty, "eager": None}
    return {"likelihood": likelihood, "encoder": {"type": "Encoder"}, "folding": _folding(parameters, solver)}, []


def _poisson(parameters: dict[str, Any], arrays: dict[str, Array], named: Any) -> Any:
    folding = _folding(parameters, _gamma_solver(parameters))
    return {"likelihood": {"type": "Poisson"}, "encoder": {"type": "Encoder"}, "folding": folding}, []


def _bernoulli(parameters: dict[str, Any], arrays: dict[str, Array], named: Any) -> Any:
    arrays["decrements"] = np.ones(1)
    ordinal = _ordinal(False, {"array": "decrements"}, None)
    folding = _folding(parameters, _gamma_solver(parameters))
    return {"likelihood": ordinal, "encoder": {"type": "PresenceEncoder"}, "folding": folding}, []


def _compound(parameters: dict[str, Any], arrays: dict[str, Array], named: Any) -> Any:
    s = float(arrays.pop("further/s"))
    likelihood = {"type": "CompoundPoisson", "s": s, "learned": parameters["p"] is None}
    folding = _folding(parameters, _gamma_solver(parameters))
    return {"likelihood": likelihood, "encoder": {"type": "Encoder"}, "folding": folding}, []


def _ordinal(learned: bool, decrements: Any, values: Any, pinned: bool = False) -> dict[str, Any]:
    state = {"type": "Ordinal", "decrements": decrements, "learned": learned, "pinned": pinned}
    return state if values is None else {**state, "values": values}


def _ordnmf(parameters: dict[str, Any], arrays: dict[str, Array], named: Any) -> Any:
    x_divides, learned = parameters["noise"] != "inverse-gamma", parameters["thresholds"] is None
    encoder, values = _levels(parameters, arrays, fill_zeros=x_divides)
    if not x_divides:
        likelihood = _ordinal(learned, named["further/decrements"], values)
        solver = _gamma_solver(parameters)
    else:
        shape, thresholds = float(parameters["noise_shape"]), named["further/thresholds"]
        likelihood = {
            "type": "GammaNoise",
            "thresholds": thresholds,
            "shape": shape,
            "learned": learned,
            "values": values,
        }
        solver = _gamma_solver(parameters, "InverseGaussian", 1.0)
    return {"likelihood": likelihood, "encoder": encoder, "folding": _folding(parameters, solver)}, []


def _squared(parameters: dict[str, Any], arrays: dict[str, Array], inner: Any, encoder: Any) -> Any:
    penalty = {"type": "Penalty", "l1": 0.0, "l2": float(arrays.pop("further/l2"))}
    solver = {"type": "Multiplicative", "penalty": penalty, "eager": EAGER_EXPONENT[bool(parameters["accelerate"])]}
    likelihood = {"type": "Squared", "inner": inner}
    return {"likelihood": likelihood, "encoder": encoder, "folding": _folding(parameters, solver)}, []


def _squared_poisson(parameters: dict[str, Any], arrays: dict[str, Array], named: Any) -> Any:
    return _squared(parameters, arrays, {"type": "Poisson"}, {"type": "Encoder"})


def _squared_ordnmf(parameters: dict[str, Any], arrays: dict[str, Array], named: Any) -> Any:
    encoder, values = _levels(parameters, arrays, level_weights=named["further/level_weights"])
    inner = _ordinal(parameters["thresholds"] is None, named["further/decrements"], values, pinned=True)
    if isinstance(parameters["level_weight"], dict):  # whose keys JSON has turned into text
        first = 1 if parameters["unseen"] == "zero" else 0
        parameters["level_weight"] = arrays["further/level_weights"][first:].tolist()
    return _squared(parameters, arrays, inner, encoder)


def _thresholds(parameters: dict[str, Any], arrays: dict[str, Array], named: Any) -> Any:
    owners = parameters.get("own_thresholds")
    n_rows = len(arrays["rows/mean"]) if owners == "rows" else 0
    encoder, values = _levels(parameters, arrays, owners=owners, n_rows=n_rows)
    l2, biases, centred = arrays.pop("further/ridge").tolist()
    moved = arrays.pop("further/parameters")
    common = {"thresholds": named["further/thresholds"], "learned": parameters["thresholds"] is None, "values": values}
    if "link" in parameters:
        likelihood = {"type": "Cumulative", **common, "link": parameters["link"]}
        if "further/offsets" in arrays:
            own = {"offsets": named["further/offsets"], "l2": l2 / 3.0, "axis": owners}
            likelihood = {**likelihood, "type": "OwnThresholds", **own}
    elif parameters["loss"] == "round":
        likelihood = {"type": "Round", **common, "margin": parameters["margin"], "ends": np.inf, "smoothing": 0.01}
    elif parameters["loss"] == "multi-sigmoid":
        likelihood = {"type": "MultiSigmoid", **common}
    else:
        n_thresholds = arrays.pop("further/thresholds").size
        likelihood = {
            "type": "Linear",
            "n_thresholds": n_thresholds,
            "offset": float(moved[0]),
            "learned": True,
            "values": values,
        }
    ridge = {"type": "Ridge", "l2": l2, "biases": bool(biases), "centred": bool(centred)}
    folding = _folding(parameters, {"type": "Newton", "ridge": ridge})
    return {"likelihood": likelihood, "encoder": encoder, "folding": folding}, []


def _rank_one(parameters: dict[str, Any], arrays: dict[str, Array], named: Any) -> Any:
    axes = range(sum(name.startswith("further/factor") for name in arrays))
    rate = float(arrays.pop("further/increase_rate"))
    more = [
        [named[f"further/factor{axis}"] for axis in axes],
        [named[f"further/part{axis}"] for axis in axes],
        [named[f"further/signature{place}"] for place in range(2 * len(axes) + 1)],
        None if np.isnan(rate) else rate,
    ]
    return {"likelihood": {"type": "Poisson"}, "encoder": {"type": "Encoder"}, "folding": None}, more


def _uncoupled(parameters: dict[str, Any], arrays: dict[str, Array], named: Any) -> Any:
    more = {name.partition("/")[2]: named[name] for name in arrays if name.startswith("further/")}
    is_bayes = parameters["method"] == "bayes"
    gibbs = {"gibbs": "frobenius"}.get(parameters["method"], parameters["loss"])
    likelihood = {"type": "Poisson"} if is_bayes else _weighted_nmf({**LOOP, "loss": gibbs}, {}, {})[0]["likelihood"]
    return {"likelihood": likelihood, "encoder": {"type": "Encoder"}, "folding": None, "unseen": "missing"}, more


UPGRADES = {
    "WeightedNMF": _weighted_nmf,
    "PoissonFactorization": _poisson,
    "BernoulliPoisson": _bernoulli,
    "CompoundPoisson": _compound,
    "OrdNMF": _ordnmf,
    "SquaredOrdNMF": _squared_ordnmf,
    "SquaredPoisson": _squared_poisson,
    "OrdinalMF": _thresholds,
    "RoundMF": _thresholds,
    "RankOneNMF": _rank_one,
    "UncoupledNMF": _uncoupled,
}
