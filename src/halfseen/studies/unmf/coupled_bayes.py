"""The sampler of couplings, given the coupling: what it would predict if the names had been kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from halfseen.arrays import Array
from halfseen.coupling.sampling.layout import Layout
from halfseen.data import Observed, Uncoupled
from halfseen.engines import blas
from halfseen.engines.threads import Threads

if TYPE_CHECKING:
    from halfseen.coupling.sampling.chain import Chain

#: Any will do: it weighs comparisons, and there are none.
TRUST = 1.0


def coupled_bayes(train: Observed, k: int, sweeps: int, burn: int, seed: int) -> Array:
    """The posterior mean of every cell under  x_ij ~ N(a_i . b_j, rho_i s_j^2), x known at the training cells."""
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
    means: Array = centre + scale * total / (sweeps - burn)
    return means


def known_chain(train: Observed, k: int, seed: int, threads: Threads) -> Chain:
    """A chain in which every cell has its own value. It keeps it as long as no exchanges are proposed."""
    from halfseen.coupling.sampling.chain import Chain

    layout = Layout.of(Uncoupled.from_coupled(train, 0))
    chain = Chain(layout, k, TRUST, np.random.default_rng(seed), threads)
    by_value = np.lexsort((train.values, train.row_of_cell()))  # tokens rise in each row
    chain.cell_of_token = by_value
    chain.token_of_cell = np.argsort(by_value)
    return chain
