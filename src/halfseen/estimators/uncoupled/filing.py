"""What a model of uncoupled data keeps in its file beside the factors."""

from typing import Any

import numpy as np

from halfseen.arrays import Array
from halfseen.coupling.sampling.diagnostics import Mixing
from halfseen.coupling.sampling.posterior import Draws, SampledCoupling
from halfseen.coupling.sampling.unsampled import AnyCoupling
from halfseen.estimators.uncoupled.asked import Asked
from halfseen.solvers import GammaFactor, PointFactor

#: Fitted attributes that some methods leave.
FURTHER = ("diagnostics_", "w_", "balance_")
#: What a posterior may be; the file has its place here.
KINDS = [type(None), AnyCoupling, SampledCoupling]


def factor_of(**arrays: Array) -> Any:
    """A factor from its arrays: "bayes" leaves distributions, the others points."""
    return GammaFactor(**arrays) if "shape" in arrays else PointFactor(**arrays)


def further_arrays(model: Any) -> dict[str, Array]:
    """Who was asked, and all that the posterior is made of."""
    asked, posterior = model._asked, model._posterior
    arrays = {"indptr": asked.indptr, "respondents": asked.respondents, "askings": asked.askings}
    arrays |= {"turned": np.array(model._turned)}
    arrays |= {"n_clipped": np.array(model.n_clipped_), "posterior": np.array(KINDS.index(type(posterior)))}
    arrays |= {name: getattr(model, name) for name in ("w_", "balance_") if hasattr(model, name)}
    if posterior is None:
        return arrays
    arrays |= {"answers": posterior.answers, "answer_indptr": posterior.answer_indptr}
    if isinstance(posterior, AnyCoupling):
        return arrays
    arrays |= {f"draws_{name}": array for name, array in posterior.draws._asdict().items()}
    arrays["diagnosed"] = np.array(list(model.diagnostics_), dtype=object)
    arrays["diagnostics"] = np.array(list(model.diagnostics_.values()))
    return arrays


def restore(model: Any, arrays: dict[str, Array]) -> None:
    """Take them back."""
    model._turned, model.n_clipped_ = bool(arrays["turned"]), int(arrays["n_clipped"])
    n, m = (len(factor) for factor in ((model.H_, model.W_) if model._turned else (model.W_, model.H_)))
    model._asked = Asked(arrays["indptr"], arrays["respondents"], m, arrays["askings"])
    _check_sizes({"asked cells": (arrays["indptr"], arrays["respondents"], n)})
    for name, shape in (("w_", (n, 2)), ("balance_", (n,)), ("askings", (n,))):
        if name in arrays and arrays[name].shape != shape:
            raise ValueError(f"{name}: {arrays[name].shape} instead of {shape}")
    model.__dict__.update({name: arrays[name] for name in ("w_", "balance_") if name in arrays})
    kind, model._posterior = KINDS[int(arrays["posterior"])], None
    if kind is type(None):
        return
    answers = arrays["answers"], arrays["answer_indptr"]
    _check_sizes({"answers": (answers[1], answers[0], n)})
    if kind is AnyCoupling:
        model._posterior, model.diagnostics_ = model._asked.any_coupling(*answers), {}
        return
    draws = Draws(*(arrays[f"draws_{name}"] for name in Draws._fields))
    _check_draws(draws, n, m, model._asked.respondents.size)
    model._posterior = SampledCoupling(draws, arrays["indptr"], *answers)
    mixings = zip(arrays["diagnosed"].tolist(), arrays["diagnostics"].tolist(), strict=True)
    model.diagnostics_ = {name: Mixing(*numbers) for name, numbers in mixings}


def _check_sizes(lists: dict[str, tuple[Array, Array, int]]) -> None:
    """Refuse lists that do not have as many entries as their pointers say, or pointers that are not the questions'."""
    for what, (indptr, entries, n_questions) in lists.items():
        if indptr.size != n_questions + 1 or int(indptr[-1]) != entries.size:
            raise ValueError(f"{what}: {entries.size} for {n_questions} questions")


def _check_draws(draws: Draws, n: int, m: int, cells: int) -> None:
    """Refuse draws whose sizes contradict each other."""
    count, k = draws.A.shape[1:]
    wanted = {
        "A": (n, count, k), "B": (m, count, k), "row_noise": (n, count), "column_noise": (m, count),
        "coupling": (count, cells), "unknown": (count, int(draws.unknown_indptr[-1])), "unknown_indptr": (n + 1,),
        "centre": (n,), "scale": (n,),
    }  # fmt: skip
    for name, shape in wanted.items():
        if getattr(draws, name).shape != shape:
            raise ValueError(f"draws of {name}: {getattr(draws, name).shape} instead of {shape}")
