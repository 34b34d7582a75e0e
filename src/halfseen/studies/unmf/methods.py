"""The methods that are compared: the paper's and ours for uncoupled data, and baselines that need no comparisons."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import halfseen
from halfseen.arrays import Array
from halfseen.engines import blas
from halfseen.engines.threads import Threads
from halfseen.io import k_folds
from halfseen.observed import Observed
from halfseen.studies.base import quietly
from halfseen.studies.unmf.protocol import DataSet, Effort, Fold
from halfseen.uncoupled import Uncoupled
from halfseen.uncoupled.layout import Layout


@dataclass(frozen=True)
class Method:
    """A way to fit `UncoupledNMF`; `k` components, or as many as the paper has for the data."""

    name: str
    how: Mapping[str, Any]
    k: int | None = None

    def fit(self, seen: Uncoupled, k: int, effort: Effort, seed: int) -> Any:
        """The fitted model, after a fixed number of iterations: nothing looks at what is predicted."""
        if self.how["method"] == "gibbs":
            length: dict[str, Any] = {"n_sweeps": effort.sweeps, "n_burn": effort.burn}
        else:
            length = {"max_iter": effort.iterations, "tol": 0.0}
        with quietly():
            return halfseen.UncoupledNMF(self.k or k, **self.how, **length, random_state=seed).fit(seen)


ZERO = Method("UNMF, λ zero", {"method": "unmf", "balance": "zero"})
HALF = Method("UNMF, λ half", {"method": "unmf", "balance": "half"})
WHOLE = Method("UNMF, λ full", {"method": "unmf", "balance": "full"})
KL = Method("UNMF, λ full, KL", {"method": "unmf", "balance": "full", "loss": "kullback-leibler"})
BAYES = Method("bayes", {"method": "bayes"})
DECODE = Method("decode, k = 1", {"method": "decode"}, k=1)
GIBBS = Method("gibbs, k = 5", {"method": "gibbs"}, k=5)

#: The first two are the paper's.
METHODS = (ZERO, HALF, WHOLE, KL, BAYES, DECODE, GIBBS)

#: Numbers of components to choose from, by so many folds of the training cells.
KS, CHOOSING_FOLDS = (1, 2, 3, 5), 5
#: Components of the coupled sampler, as of `GIBBS`, and its trust in comparisons, of which it has none.
BAYES_K, TRUST = 5, 1.0


def row_means(train: Observed) -> Array:
    """The mean of each row's training cells; of all, where a row has none."""
    counts = train.seen_per_row()
    sums = np.bincount(train.row_of_cell(), train.values, minlength=train.shape[0])
    return np.where(counts > 0, sums / np.maximum(counts, 1), train.values.mean())


def coupled_nmf(train: Observed, places: tuple[Array, Array], k: int, effort: Effort, seed: int) -> Array:
    """The paper's ORACLE: squared error, multiplicative updates, as many of them as the uncoupled methods have."""
    model = halfseen.WeightedNMF(k, loss="frobenius", max_iter=effort.iterations, tol=0.0, random_state=seed)
    with quietly():
        return np.asarray(model.fit(train).predict(*places))


def best_k(train: Observed, ks: Sequence[int], effort: Effort, seed: int) -> int:
    """The k with the lowest absolute error over folds of the training cells."""
    parts = list(k_folds(train, CHOOSING_FOLDS, random_state=seed))

    def error(k: int) -> float:
        errors = []
        for fitted, held_out in parts:
            predicted = coupled_nmf(fitted, (held_out.row_of_cell(), held_out.indices), k, effort, seed)
            errors.append(float(np.abs(predicted - held_out.values).sum()))
        return sum(errors)

    return min(ks, key=error)


def coupled_bayes(train: Observed, k: int, sweeps: int, burn: int, seed: int) -> Array:
    """The sampler of couplings, given the coupling: what it would predict if the names had been kept.

    The posterior mean of every cell under  x_ij ~ N(a_i . b_j, rho_i s_j^2), x known at the training cells.
    """
    total = np.zeros(train.shape)
    blas.hold()  # its matrices are small
    try:
        with Threads(None) as threads:
            chain = known_chain(train, k, seed, threads)
            for number in range(sweeps):
                chain.sweep(0)
                if number >= burn:
                    total += chain.A @ chain.B.T
    finally:
        blas.release()
    centre, scale = (unit[:, None] for unit in chain.layout.units)
    return np.asarray(centre + scale * total / (sweeps - burn))


def known_chain(train: Observed, k: int, seed: int, threads: Threads) -> Any:
    """A chain in which every cell has its own value. It keeps it as long as no exchanges are proposed."""
    from halfseen.uncoupled.chain import Chain

    layout = Layout.from_collection(Uncoupled.from_coupled(train, 0))
    chain = Chain(layout, k, TRUST, np.random.default_rng(seed), threads)
    by_value = np.lexsort((train.values, train.row_of_cell()))  # tokens rise in each row
    chain.cell_of_token = by_value
    chain.token_of_cell = np.argsort(by_value)
    return chain


RANDOM, ROW_MEAN = "RANDOM", "row mean"
ORACLE, BEST_K, COUPLED_BAYES = "coupled NMF", "coupled NMF, best k", "coupled Bayes, k = 5"

#: Predictions at the test cells of a fold, by name. RANDOM, uniform in the range that the paper names, and ORACLE are
#: the paper's.
BASELINES: dict[str, Callable[[Fold, DataSet, Effort], Array]] = {
    RANDOM: lambda fold, of, effort: np.random.default_rng(fold.seed).uniform(*of.guesses, size=fold.test.nnz),
    ROW_MEAN: lambda fold, of, effort: row_means(fold.train)[fold.places[0]],
    ORACLE: lambda fold, of, effort: coupled_nmf(fold.train, fold.places, of.k, effort, fold.seed),
    BEST_K: lambda fold, of, effort: coupled_nmf(
        fold.train, fold.places, best_k(fold.train, KS, effort, fold.seed), effort, fold.seed
    ),
    COUPLED_BAYES: lambda fold, of, effort: coupled_bayes(fold.train, BAYES_K, effort.sweeps, effort.burn, fold.seed)[
        fold.places
    ],
}

#: The rows of the tables.
NAMES = (*(method.name for method in METHODS), *BASELINES)
