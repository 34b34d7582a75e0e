"""The methods of the paper's tables and the neighbours beside them, and what each may choose from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
from scipy.special import betainc

import halfseen
from halfseen.arrays import Array
from halfseen.estimators import CompoundPoisson
from halfseen.observed import Observed
from halfseen.studies.ordnmf import neighbours
from halfseen.studies.ordnmf.protocol import Cells, Method, Setting
from halfseen.studies.ordnmf.sets import EDGES


@dataclass(frozen=True)
class Effort:
    """How much is done: the K to choose from, starts, and when a fit of the paper's models ends; of the neighbours'
    settings one in `one_in` is tried."""

    K: tuple[int, ...]
    K_of_neighbours: tuple[int, ...]
    one_in: int
    starts: int
    tol: float
    max_iter: int = 3000


#: The paper's K, its five starts, and its end: a relative rise of the bound below 1e-5.
FULL = Effort((25, 50, 100, 150, 200, 250), (100, 200, 400), 1, 5, 1e-5)
#: What a quick run does.
QUICK = Effort((5, 10), (5,), 6, 2, 1e-3)

#: What the neighbours may choose from; l2 of SquaredOrdNMF as a part of sqrt(n) + sqrt(m).
EASE_L2 = (100.0, 300.0, 1000.0, 2000.0, 5000.0, 10_000.0, 20_000.0, 50_000.0, 100_000.0, 200_000.0)
ALS_REGULARIZATIONS = (30.0, 50.0, 100.0, 200.0, 300.0, 1000.0)
ALS_ALPHAS = (1.0, 4.0, 16.0)
L2_SHARES = (0.55, 0.75, 1.0, 1.35)
#: Whether EASE and HPF are given the levels, or ones in their place.
SEEN_AS = ("levels", "ones")
#: Iterations of SquaredOrdNMF: its ranking has settled long before its loss.
SQUARED_ITERATIONS = 100
#: The smallest probability whose logarithm is taken.
TINY = 1e-300


def of_table2(effort: Effort) -> list[Method]:
    """Levels as they are, and binary data from any rating on and from four stars on."""
    return [
        _factorization("OrdNMF", "R", halfseen.OrdNMF, lambda cells: cells.levels, effort),
        *(method for at_least in (1, 8) for method in _of_binary(at_least, effort)),
        _factorization("PF", "R", halfseen.PoissonFactorization, lambda cells: cells.raw, effort),
        *_neighbours("R", effort),
    ]


def of_table3(effort: Effort) -> list[Method]:
    """Quantised counts, counts as they are, and whether there are any."""
    ordnmf = _factorization("OrdNMF", "Q", halfseen.OrdNMF, lambda cells: cells.levels, effort)
    dcpf = _factorization("dcPF", "R", halfseen.CompoundPoisson, lambda cells: cells.raw, effort)
    return [
        replace(ordnmf, log_likelihood=lambda model, test: float(model.log_likelihood(test.levels))),
        replace(dcpf, log_likelihood=lambda model, test: log_likelihood_of_levels(model, test.levels, EDGES)),
        *_of_binary(1, effort),
        *_neighbours("Q", effort),
    ]


def _factorization(model: str, data: str, make: Any, cells_of: Callable[[Cells], Observed], effort: Effort) -> Method:
    """A variational factorization with K to choose."""

    def fit(cells: Cells, setting: Setting, seed: int) -> Any:
        estimator = make(setting["K"], random_state=seed, tol=effort.tol, max_iter=effort.max_iter)
        return estimator.fit(cells_of(cells))

    return Method(model, data, [{"K": K} for K in effort.K], fit)


def _of_binary(at_least: int, effort: Effort) -> list[Method]:
    models = {"BePoF": halfseen.BernoulliPoisson, "PF": halfseen.PoissonFactorization}
    return [
        _factorization(model, f"B (>= {at_least})", make, lambda cells: binary(cells.raw, at_least), effort)
        for model, make in models.items()
    ]


def binary(observed: Observed, at_least: float) -> Observed:
    """1 for the cells that reach this value; all others as if they had not been seen."""
    there = observed.select_cells(observed.values >= at_least)
    return replace(there, values=np.ones_like(there.values))


def _neighbours(data: str, effort: Effort) -> list[Method]:
    """Our SquaredOrdNMF, and recommenders of others."""

    def grid(**choices: Any) -> Sequence[Setting]:
        settings = [dict(zip(choices, values, strict=True)) for values in product(*choices.values())]
        return settings[:: effort.one_in]

    def squared(cells: Cells, setting: Setting, seed: int) -> Any:
        l2 = setting["l2_share"] * float(np.sqrt(cells.levels.shape).sum())
        how = {"l2": l2, "random_state": seed, "max_iter": SQUARED_ITERATIONS, "tol": 0.0}
        return halfseen.SquaredOrdNMF(setting["K"], **how).fit(cells.levels)

    def seen_as(cells: Cells, setting: Setting) -> Observed:
        return cells.levels if setting["on"] == "levels" else binary(cells.levels, 1)

    def ease(cells: Cells, setting: Setting, seed: int) -> Any:
        return neighbours.ease(seen_as(cells, setting), setting["l2"])

    def als(cells: Cells, setting: Setting, seed: int) -> Any:
        return neighbours.als(cells.levels, setting["K"], setting["regularization"], setting["alpha"], seed)

    def hpf(cells: Cells, setting: Setting, seed: int) -> Any:
        return neighbours.hpf(seen_as(cells, setting), setting["K"], seed)

    def popularity(cells: Cells, setting: Setting, seed: int) -> Any:
        return neighbours.popularity(cells.raw)

    few, both = effort.K_of_neighbours, f"{data} or B"
    alternating = grid(K=few, regularization=ALS_REGULARIZATIONS, alpha=ALS_ALPHAS)
    return [
        Method("SquaredOrdNMF", data, grid(K=few, l2_share=L2_SHARES), squared),
        Method("EASE", both, grid(l2=EASE_L2, on=SEEN_AS), ease, starts_at_random=False),
        Method("ALS (implicit)", data, alternating, als, package="implicit"),
        Method("HPF (hpfrec)", both, grid(K=effort.K[:3], on=SEEN_AS), hpf, package="hpfrec"),
        Method("popularity", "B (>= 1)", [{}], popularity, starts_at_random=False),
    ]


def log_likelihood_of_levels(model: CompoundPoisson, levels: Observed, edges: tuple[int, ...]) -> float:
    """Eq. 39, for dcPF:  sum over the cells of log P(edge_l <= count < edge_{l+1} | count > 0),  l the cell's level.

    Rows and columns of the cells are those of the fit, in their order.
    """
    x = np.einsum("ck,ck->c", model.W_[levels.row_of_cell()], model.H_[levels.indices])
    starts, ends = np.array(edges), np.append(edges[1:], np.inf)
    level = levels.values.astype(int) - 1
    reaching = survival(x, model.p_, starts[level])
    beyond = survival(x, model.p_, ends[level])
    share = (reaching - beyond) / np.maximum(survival(x, model.p_, np.ones_like(x)), TINY)
    return float(np.log(np.maximum(share, TINY)).sum())


def survival(x: Array, p: float, count: Array) -> Array:
    """P(count or more): a Poisson(x) number of logarithmic draws is negative binomial, with r = x / -log(1 - p)."""
    finite = np.where(np.isinf(count), 1.0, count)
    return np.where(np.isinf(count), 0.0, betainc(finite, x / -np.log1p(-p), p))
